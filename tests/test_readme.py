"""The README's code runs and prints what the README shows."""

import contextlib
import io
import re
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
SHOWN = re.search(r"```text\n(.*?)```", README, re.DOTALL)[1]


def print_blocks(folder, names):
    """What each block prints, run one after the other in a folder of their own."""
    matplotlib.use("Agg")
    printed: list[str] = []
    with contextlib.chdir(folder):
        for block in BLOCKS:
            with contextlib.redirect_stdout(io.StringIO()) as out:
                exec(block, names)
            printed.append(out.getvalue())
        assert Path("report.html").stat().st_size > 10_000
    plt.close("all")
    return printed


def test_the_examples_print_what_is_shown(tmp_path):
    names = {}
    printed = print_blocks(tmp_path, names)
    # Every digit: the oldest and the newest versions and two kernels of OpenBLAS print the same.
    assert printed[1] == SHOWN
    assert any("risk(a) - risk(b) = " in text for text in printed)
    assert_numbers_of_the_first_figure(names["look"], names["recalibrator"])


def assert_numbers_of_the_first_figure(look, recalibrator):
    """What the text below the figure says is what the figure shows."""
    [before], [after] = look.before.panels, look.after.panels
    for panel in (before, after):
        error = panel.without_bins
        shown = f"{error['estimate']:.3f} ± {error['standard_error']:.3f}"
        assert shown in README.replace("\n", " ")
    assert f"{100 * before.frequency[-1]:.0f} of 100 cases" in README.replace("\n", " ")
    brier = recalibrator.comparison_["brier_score"]
    assert f"from {brier.before:.3f} to {brier.after:.3f}" in README
