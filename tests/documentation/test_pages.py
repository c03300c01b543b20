"""The code of every page runs, prints what the page shows and draws its pictures."""

import contextlib
import textwrap

import matplotlib
import matplotlib.pyplot as plt
import pytest
from page_code import NEEDS, last_figure, run, run_page, snippets, words
from pages import PAGES, TEXTS
from PIL import Image


def pages():
    """Yield the pages with code; that of other libraries runs with -m integrations."""
    for name, text in TEXTS.items():
        if snippets(text):
            marks = pytest.mark.integrations if NEEDS.search(text) else ()
            yield pytest.param(name, marks=marks)


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")
@pytest.mark.filterwarnings("ignore:PySpark does not yet fully support:FutureWarning")
@pytest.mark.parametrize("page", list(pages()))
def test_the_code_of_a_page_runs_and_prints_what_it_shows(page, tmp_path):
    matplotlib.use("Agg")
    for library in " ".join(NEEDS.findall(TEXTS[page])).split():
        pytest.importorskip(library)
    with contextlib.chdir(tmp_path):
        run_page(page, see)
    plt.close("all")


def see(path):
    """The picture is that of the code: draw it again by tests/studies/pictures.py if not."""
    with Image.open(path) as picture:
        assert picture.text["Words"] == words(last_figure()), path.name


@pytest.mark.parametrize("page", TEXTS)
def test_no_printed_result_is_elided(page):
    shown = [code.want for _, language, code in snippets(TEXTS[page]) if language == "doctest"]
    assert [want for want in shown if "..." in want and "Traceback" not in want] == []


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
