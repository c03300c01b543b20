"""The reference lists every public name, docstrings are whole, and links lead somewhere."""

import importlib
import inspect
import pkgutil
import re
import shutil
import subprocess
import sys
from dataclasses import is_dataclass
from pathlib import Path

import pytest
from pages import DOC, PAGES, TEXTS

import skcal.hypothesis_tests


def test_every_page_is_in_a_table_of_contents():
    listed = {
        (Path("/", other).parent / entry.partition("<")[2].rstrip(">")).as_posix()[1:]
        if "<" in entry
        else (Path("/", other).parent / entry.strip()).as_posix()[1:]
        for other, text in TEXTS.items()
        for tree in re.findall(r"\.\. toctree::\n((?:   .*\n|\n)*)", text)
        for entry in tree.splitlines()
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

BLOCKS = ("skcal.notions", "skcal.pair_risk", "skcal.kernels")


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
            elif match := re.match(r"   ~?([A-Za-z]\w*(?:\.\w+)*)$", line):
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


def test_the_reference_shows_names_without_the_modules_in_between():
    shown = [
        line for page, text in TEXTS.items() if page.startswith("api") for line in text.splitlines()
    ]
    deep = [line for line in shown if re.match(r"   [a-z_]+\.[\w.]+$", line)]
    assert deep == []


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
# SS06, ES01: summaries may be nouns and need no further text); and SA01.
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
    "PR07",  # parameter without a description
    "PR10",  # space before the colon
    "RT01",  # no section Returns
    "RT03",  # what is returned has no description
    "YD01",  # no section Yields
    "EX01",  # no example
}
# Methods say in a sentence what they return, where scikit-learn's names tell.
OF_METHODS = CHECKS - {"RT01", "RT03", "EX01", "PR04"}
# Building blocks, results, which callers get with a table of attributes, and the abstract class.
OF_BLOCKS = CHECKS - {"PR01", "RT01", "RT03", "EX01"}


def complaints(name, checks):
    from numpydoc.validate import validate

    return [f"{name}: {code} {text}" for code, text in validate(name)["errors"] if code in checks]


def complaints_about(name, public):
    thing = LISTED[name]
    made_by_others = inspect.isclass(thing) and (
        id(thing) not in public or is_dataclass(thing) or issubclass(thing, tuple)
    )
    lenient = made_by_others or inspect.isabstract(thing) or thing.__module__ in BLOCKS
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
