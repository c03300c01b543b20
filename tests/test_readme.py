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


NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?(?:e-?\d+)?")


def print_blocks(folder, names):
    """What each block prints, run one after the other in a folder of their own."""
    matplotlib.use("Agg")
    printed: list[str] = []
    with contextlib.chdir(folder):
        for block in BLOCKS:
            with contextlib.redirect_stdout(io.StringIO()) as out:
                exec(block, names)
            printed.append(out.getvalue())
    plt.close("all")
    return printed


def test_the_examples_print_what_is_shown(tmp_path):
    names = {}
    printed = print_blocks(tmp_path, names)
    assert_printed(printed[0], SHOWN)
    sentence, pvalue = printed[1].splitlines()
    assert sentence in " ".join(SHOWN.split())  # one number, whoever is asked
    assert f"p ≤ {pvalue}" in SHOWN
    shown = NUMBER.findall(BLOCKS[2].rpartition("#")[2])
    assert [f"{float(number):.4f}" for number in printed[2].split()] == shown


def assert_printed(found, shown):
    """The same words; numbers to the last digit, which another BLAS may round otherwise."""
    assert NUMBER.sub("#", found) == NUMBER.sub("#", shown)
    for one, other in zip(NUMBER.findall(found), NUMBER.findall(shown), strict=True):
        digits, _, exponent = other.replace(",", "").partition("e")
        unit = 10.0 ** (int(exponent or 0) - len(digits.partition(".")[2]))
        assert abs(float(one.replace(",", "")) - float(other.replace(",", ""))) < 1.5 * unit


def test_the_readme_is_short():
    assert len(README.splitlines()) <= 140
