"""The README's code runs and prints what the README shows."""

import contextlib
import io
import re
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
import pytest

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
SHOWN = re.search(r"```text\n(.*?)```", README, re.DOTALL)[1]


@pytest.fixture(scope="module")
def printed(tmp_path_factory):
    """What each block prints, run one after the other in a folder of their own."""
    matplotlib.use("Agg")
    names, printed = {}, []
    with contextlib.chdir(tmp_path_factory.mktemp("readme")):
        for block in BLOCKS:
            with contextlib.redirect_stdout(io.StringIO()) as out:
                exec(block, names)
            printed.append(out.getvalue())
        assert Path("report.html").stat().st_size > 10_000
    plt.close("all")
    return printed


def test_the_examples_print_the_table_that_is_shown(printed):
    shown = [line.split()[:2] for line in SHOWN.splitlines()]
    got = [line.split()[:2] for line in printed[0].splitlines()]
    # Candidates, the choice and the estimates; digits after it depend on the BLAS.
    assert [words for words in got if words in shown] == shown


def test_the_second_example_compares_risks(printed):
    assert any("risk(a) - risk(b) = " in text for text in printed)
