"""The code of a page: its snippets in order, how each is run, and the pictures that it draws.

A picture in ``doc/_static/made`` is the last figure of the code above it on its page;
``python tests/studies/pictures.py`` draws it.
"""

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

import matplotlib.pyplot as plt
from matplotlib.text import Text
from pages import PAGES, TEXTS

from skcal import Zero
from skcal.cli.commands import main
from skcal.model_selection import candidates
from skcal.report import views as report_page

MADE = "_static/made"
PICTURE = re.compile(rf"^ *\.\. image:: (?P<path>\S*{MADE}/\S+)$", re.MULTILINE)

# A block of code with what it needs, and the indented lines after it.
BLOCK = re.compile(
    r"^(?:\.\. needs: (?P<needs>\w+)\n\n)?"
    r"(?P<indent> *)\.\. code-block:: (?P<language>\w+)\n(?P<code>(?:[ ]*\n|(?P=indent) +.*\n)*)",
    re.MULTILINE,
)
NEEDS = re.compile(r"^\.\. this page needs: (.+)$", re.MULTILINE)
OPTIONS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
# Shell commands that are for the reader; those of skcal itself run.
FOR_THE_READER = (
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
    pictures = [
        (text[: match.start()].count("\n"), "picture", match["path"])
        for match in PICTURE.finditer(text)
    ]
    code = sorted([*examples, *blocks], key=lambda snippet: snippet[0])
    drawn = [picture for picture in pictures if code and picture[0] > code[0][0]]
    return sorted([*code, *drawn], key=lambda snippet: snippet[0])


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


def run_page(page, see):
    """Run the code of a page in the current folder, and call `see(path)` at each picture."""
    module = types.ModuleType("a_page")  # so that its classes can be pickled
    with patch.dict(sys.modules, a_page=module):
        for line, language, code in snippets(TEXTS[page]):
            if language == "picture":
                see((PAGES[page].parent / code).resolve())
            else:
                run(language, code, vars(module), page, line)


# Pictures


def texts(figure):
    """Return what a reader finds written in a drawn figure."""
    figure.canvas.draw()
    shown = figure.findobj(lambda one: isinstance(one, Text) and one.get_visible())
    return [one for one in shown if one.get_text().strip()]


def words(figure):
    """Return the texts of a figure in an order that does not depend on how it was drawn."""
    return " | ".join(sorted({one.get_text() for one in texts(figure)}))


def last_figure():
    assert plt.get_fignums(), "no figure was drawn above the picture"
    return plt.figure(plt.get_fignums()[-1])
