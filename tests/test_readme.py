"""The README's code runs and prints what the README shows."""

import contextlib
import io
import re
from pathlib import Path

import pytest

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
SHOWN = re.search(r"```text\n(.*?)```", README, re.DOTALL)[1]


@pytest.fixture(scope="module")
def printed():
    out, names = io.StringIO(), {}
    with contextlib.redirect_stdout(out):
        for block in BLOCKS:
            exec(block, names)
    return out.getvalue()


def test_the_examples_print_the_table_that_is_shown(printed):
    shown = [line.split()[:2] for line in SHOWN.splitlines()]
    got = [line.split()[:2] for line in printed.splitlines()]
    # Candidates, the choice and the estimates; digits after it depend on the BLAS.
    assert [words for words in got if words in shown] == shown


def test_the_second_example_compares_risks(printed):
    assert any(line.startswith("risk(a) - risk(b) = ") for line in printed.splitlines())
