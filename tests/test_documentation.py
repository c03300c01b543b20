"""The pages' code runs and prints what they show; the reference lists every public name."""

import contextlib
import doctest
import importlib
import importlib.util
import inspect
import io
import pkgutil
import re
import shlex
import shutil
import subprocess
import sys
import textwrap
import types
from dataclasses import is_dataclass
from pathlib import Path
from unittest.mock import patch

import matplotlib
import matplotlib.pyplot as plt
import pytest

import skcal.hypothesis_tests
from skcal import Zero
from skcal.cli.commands import main
from skcal.model_selection import candidates
from skcal.report import page as report_page

DOC = Path(__file__).parents[1] / "doc"
GENERATED = {"_build", "_templates", "auto_examples", "generated"}
PAGES = {
    str(path.relative_to(DOC)): path
    for path in sorted(DOC.rglob("*.rst"))
    if not GENERATED & set(path.relative_to(DOC).parts)
}
TEXTS = {name: path.read_text(encoding="utf-8") for name, path in PAGES.items()}

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


def test_every_page_is_in_a_table_of_contents():
    listed = {
        (Path(other).parent / entry).as_posix()
        for other, text in TEXTS.items()
        for tree in re.findall(r"\.\. toctree::\n((?:   .*\n|\n)*)", text)
        for entry in tree.split()
    }
    pages = {Path(page).with_suffix("").as_posix() for page in PAGES}
    assert len(pages) > 40
    assert pages - listed <= {"index"}


def included_paths(page):
    """Return the files that a page includes or leads to."""
    text, folder = TEXTS[page], PAGES[page].parent
    included = re.findall(r"^ *(?:\.\. (?:include|image)::|:file:) (\S+)$", text, re.MULTILINE)
    others = re.findall(r":doc:`(?:[^`<]*<)?([^`>]+)>?`", text)
    return [folder / name for name in included] + [
        (DOC / name[1:] if name[0] == "/" else folder / name).with_suffix(".rst")
        for name in others
        if "auto_examples" not in name
    ]


def test_what_a_page_includes_is_there():
    missing = [(page, path) for page in PAGES for path in included_paths(page) if not path.exists()]
    assert not missing, missing


def test_links_of_markdown_lead_somewhere():
    for path in DOC.parent.glob("*.md"):
        for link in re.findall(r"\]\(([^)]+)\)", path.read_text(encoding="utf-8")):
            assert link.startswith("https://") or (DOC.parent / link).exists(), (path.name, link)


def test_the_table_of_tests_holds_rows_of_the_module_docstring():
    rows = re.findall(r"^\S.* {2,}\d.* %.*$", TEXTS["guide/calibrated.rst"], re.MULTILINE)
    assert len(rows) > 10
    assert set(rows) <= set(skcal.hypothesis_tests.__doc__.splitlines())


# The reference

BLOCKS = ("skcal.datasets", "skcal.notions", "skcal.pair_risk", "skcal.kernels")


def public_modules():
    for info in pkgutil.walk_packages(skcal.__path__, "skcal."):
        if not any(part.startswith("_") for part in info.name.split(".")):
            yield importlib.import_module(info.name)


def own_names(module):
    """Functions and classes that a module without ``__all__`` defines for others."""
    return [
        name
        for name, thing in vars(module).items()
        if name[0] != "_"
        and (inspect.isfunction(thing) or inspect.isclass(thing))
        and thing.__module__ == module.__name__
    ]


def public_names():
    """Return every public name with what it stands for, once by the shortest path."""
    names = {}
    for module in (skcal, *public_modules()):
        own = own_names(module) if module.__name__ in BLOCKS else getattr(module, "__all__", [])
        names |= {f"{module.__name__}.{name}": getattr(module, name) for name in own}
    return names


def listed_names():
    """Return the names of the reference's tables."""
    names = []
    for page, text in TEXTS.items():
        module = None
        for line in text.splitlines() if page.startswith("api") else ():
            if match := re.match(r"\.\. currentmodule:: (\S+)", line):
                module = match[1]
            elif match := re.match(r"   ([A-Za-z]\w*(?:\.\w+)*)$", line):
                names += [f"{module}.{match[1]}"] if module else []
    return names


def resolve(name):
    module, _, attribute = name.rpartition(".")
    return getattr(importlib.import_module(module), attribute)


LISTED = {name: resolve(name) for name in listed_names()}
# The class or function once, with the name under which the reference has it.
EVERY = {id(thing): (name, thing) for name, thing in LISTED.items()}


def test_the_reference_lists_every_public_name():
    names = public_names()
    missing = [name for name, thing in names.items() if id(thing) not in EVERY]
    assert not missing, f"add {missing} to a page in doc/api"
    assert len(names) > 140


def test_the_reference_lists_nothing_twice():
    assert len(EVERY) == len(LISTED) > 70


def test_every_public_name_is_stable_or_experimental():
    listed = {}
    for module, names in re.findall(
        r"^(skcal\S*)\n((?:   .*\n)+)", TEXTS["api/stability.rst"], re.M
    ):
        listed |= {f"{module}.{name}": None for name in re.findall(r"`(\w+)`", names)}
    found = [id(resolve(name)) for name in listed]
    assert len(found) == len(set(found)), "a name is in doc/api/stability.rst twice"
    missing = [name for name, thing in public_names().items() if id(thing) not in found]
    assert not missing, "say in doc/api/stability.rst what they are"
    assert set(found) == {id(thing) for thing in public_names().values()}


# Docstrings

# Checks of numpydoc 1.7 and later that hold for every public name. Left out are those of the
# layout of paragraphs and sections (GL01 to GL03, GL09, SA02 to SA04, the periods of PR08, PR09,
# RT04 and RT05): entries may be phrases or need no words; of a one-paragraph style (SS02, SS05,
# SS06, ES01: summaries may be nouns and need no further text); and SA01, RT03, PR07: a name, a
# shape and a default may say it all.
CHECKS = {
    "GL05",  # tabs
    "GL06",  # unknown section
    "GL07",  # order of sections
    "GL08",  # no docstring
    "GL10",  # directives
    "SS01",  # no summary
    "SS03",  # summary without a period
    "SS04",  # summary with leading spaces
    "PR01",  # parameter without a line
    "PR02",  # line without a parameter
    "PR03",  # order of the parameters
    "PR04",  # parameter without a type
    "PR10",  # space before the colon
    "RT01",  # no section Returns
    "YD01",  # no section Yields
    "EX01",  # no example
}
# Methods say in a sentence what they take and return, where scikit-learn's names tell.
OF_METHODS = CHECKS - {"PR01", "RT01", "EX01", "PR04"}
# Building blocks, results, which callers get with a table of attributes, and the abstract class.
OF_BLOCKS = CHECKS - {"PR01", "RT01", "EX01"}


def complaints(name, checks):
    from numpydoc.validate import validate

    return [f"{name}: {code} {text}" for code, text in validate(name)["errors"] if code in checks]


def complaints_about(name, public):
    thing = LISTED[name]
    made_by_others = inspect.isclass(thing) and (
        id(thing) not in public or is_dataclass(thing) or issubclass(thing, tuple)
    )
    lenient = made_by_others or inspect.isabstract(thing) or thing.__module__ in BLOCKS[1:]
    found = complaints(name, OF_BLOCKS if lenient else CHECKS)
    if inspect.isclass(thing):
        own = [key for key, value in vars(thing).items() if inspect.isroutine(value)]
        for method in own:
            if not method.startswith("_"):
                found += complaints(f"{name}.{method}", OF_METHODS)
    return found


def test_docstrings_hold_what_numpydoc_asks_for():
    public = {id(thing) for thing in public_names().values()}
    found = [line for name in LISTED for line in complaints_about(name, public)]
    assert not found, "\n".join(found)


@pytest.mark.slow
def test_the_pages_build_without_a_warning(tmp_path):
    pytest.importorskip("sphinx_gallery", reason="needs the extra doc")
    generated = shutil.ignore_patterns("_build", "auto_examples", "generated")
    for folder in ("doc", "examples"):  # a build without figures would spoil one with them
        shutil.copytree(DOC.parent / folder, tmp_path / folder, ignore=generated)
    for name in ("CHANGELOG.md", "CONTRIBUTING.md"):
        shutil.copy(DOC.parent / name, tmp_path)
    options = ["-W", "--keep-going", "-q", "-D", "plot_gallery=0", "-b", "html"]
    result = subprocess.run(
        [sys.executable, "-m", "sphinx", *options, tmp_path / "doc", tmp_path / "html"],
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr
