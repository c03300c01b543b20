"""The code of every page runs and prints what the page shows."""

import contextlib
import doctest
import importlib.util
import io
import re
import shlex
import sys
import textwrap
import types
from unittest.mock import patch

import matplotlib
import matplotlib.pyplot as plt
import pytest
from pages import PAGES, TEXTS

from skcal import Zero
from skcal.cli.commands import main
from skcal.model_selection import candidates
from skcal.report import page as report_page

# A block of code with what it needs, and the indented lines after it.
BLOCK = re.compile(
    r"^(?:\.\. needs: (?P<needs>\w+)\n\n)?"
    r"(?P<indent> *)\.\. code-block:: (?P<language>\w+)\n(?P<code>(?:[ ]*\n|(?P=indent) +.*\n)*)",
    re.MULTILINE,
)
OPTIONS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
# Shell commands that are for the reader; those of skcal itself run.
FOR_THE_READER = (
    "git worktree",
    "python3 -m venv",
    "pip install",
    "python -m pytest",
    "sphinx-build",
    "python tests",
)


def snippets(text):
    """Return (line, language, code) of every snippet in order; doctests one example at a time."""
    examples = [
        (example.lineno, "doctest", example)
        for example in doctest.DocTestParser().get_examples(text)
    ]
    blocks = [
        (text[: match.start("code")].count("\n"), match["language"], textwrap.dedent(match["code"]))
        for match in BLOCK.finditer(text)
        if match["needs"] is None or importlib.util.find_spec(match["needs"])
    ]
    return sorted([*examples, *blocks], key=lambda snippet: snippet[0])


def run_doctest(example, names, page):
    test = doctest.DocTest([example], {}, page, str(PAGES[page]), 0, None)
    test.globs, out = names, []
    doctest.DocTestRunner(optionflags=OPTIONS).run(test, out=out.append, clear_globs=False)
    assert not out, "".join(out)


def run_commands(code):
    for command in code.replace("\\\n", " ").splitlines():
        words = shlex.split(command, comments=True)
        if words[:3] == ["python", "-m", "skcal"]:
            assert main(words[3:]) in (None, 0), command
        else:
            assert not words or command.startswith(FOR_THE_READER), command


def run(language, code, names, page, line):
    source = code.source if language == "doctest" else code
    recommended = candidates.CANDIDATES["recommended"]
    # Searches and figures of reports are tested elsewhere.
    if language == "bash" or "calibration_report(" in source:
        recommended = lambda *_: [(Zero(), {})]  # noqa: E731
    with (
        patch.dict(candidates.CANDIDATES, recommended=recommended),
        patch.multiple(report_page, _figures=lambda *_: "", _curves=lambda *_: ""),
    ):
        run_snippet(language, code, names, page, line)


def run_snippet(language, code, names, page, line):
    if language == "doctest":
        return run_doctest(code, names, page)
    assert language in ("python", "bash", "text"), f"{page}, line {line}: {language}"
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        if language == "python":
            exec(compile("\n" * (line + 1) + code, PAGES[page], "exec"), names)
        elif language == "bash":
            run_commands(code)


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")
@pytest.mark.parametrize("page", [name for name in PAGES if snippets(TEXTS[name])])
def test_the_code_of_a_page_runs_and_prints_what_it_shows(page, tmp_path, monkeypatch):
    matplotlib.use("Agg")
    module = types.ModuleType("a_page")  # so that its classes can be pickled
    monkeypatch.setitem(sys.modules, "a_page", module)
    names = vars(module)
    with contextlib.chdir(tmp_path):
        for line, language, code in snippets(TEXTS[page]):
            run(language, code, names, page, line)
    plt.close("all")


def test_snippets_are_found_in_order_and_failures_are_seen():
    text = textwrap.dedent(
        """
        .. code-block:: python

           x = [1,
                2]

        .. needs: no_such_package

        .. code-block:: python

           raise AssertionError

        >>> sum(x)
        4

        .. code-block:: bash

           rm -r nothing
        """
    )
    assert [(line, language) for line, language, _ in snippets(text)] == [
        (2, "python"),
        (12, "doctest"),
        (16, "bash"),
    ]
    names, page = {}, next(iter(PAGES))
    (_, _, code), (_, _, example), (_, _, commands) = snippets(text)
    run("python", code, names, page, 2)
    with pytest.raises(AssertionError, match=r"(?s)line 13.*Expected:\s+4\s+Got:\s+3"):
        run("doctest", example, names, page, 12)
    with pytest.raises(AssertionError, match="rm -r nothing"):
        run("bash", commands, names, page, 16)
