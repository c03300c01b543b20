"""Sphinx configuration of skcal's documentation."""

import contextlib
import re
import sys
import textwrap
from pathlib import Path

import skcal

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "doc" / "_extensions"))

project = "skcal"
author = "The skcal developers"
copyright = "The skcal developers, BSD-3-Clause"
version = release = skcal.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "decision_tree",
]
exclude_patterns = ["_build", "_templates"]
templates_path = ["_templates"]
default_role = "literal"
pygments_style = "friendly"
add_module_names = False
toc_object_entries = False

autosummary_generate = True
autodoc_typehints = "none"  # docstrings name the types
autodoc_member_order = "bysource"
numpydoc_show_class_members = False  # the template lists them
numpydoc_class_members_toctree = False

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "subsection_order": [
        f"../examples/{name}" for name in ("tune", "measure", "decide", "estimators")
    ],
    "filename_pattern": r"plot_",
    "backreferences_dir": "api/generated/backreferences",
    "doc_module": ("skcal",),
    "reference_url": {"skcal": None},
    "remove_config_comments": True,
    "show_memory": False,
    "write_computation_times": False,
    "download_all_examples": False,
}

html_theme = "pydata_sphinx_theme"
html_title = "skcal"
html_static_path = ["_static"]
html_search_scorer = str(Path(__file__).parent / "_static" / "search_scorer.js")
html_css_files = ["skcal.css"]
html_show_sourcelink = False
html_sidebars = {
    name: []
    for name in (
        "index",
        "getting_started",
        "grid_search",
        "howto/index",
        "explanation/index",
        "validation/index",
        "faq",
        "glossary",
        "benchmarks",
        "changelog",
        "evidence",
        "levels",
        "citing",
        "contributing",
    )
}
html_theme_options = {
    "logo": {"text": f"skcal {version}"},
    "navbar_end": ["theme-switcher"],
    "header_links_before_dropdown": 7,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": ["sphinx-version"],
    "show_prev_next": True,
}

# Pages that are files of the repository in Markdown.
INCLUDED = {"changelog": "CHANGELOG.md", "contributing": "CONTRIBUTING.md"}


def to_rst(markdown: str) -> str:
    """Translate the little Markdown that this repository uses: headings, code, links, lists."""
    parts = re.split(r"^```(\w*)\n(.*?)^```$", markdown, flags=re.MULTILINE | re.DOTALL)
    text = ""
    for prose, language, code in zip(*([*parts, "", ""][i::3] for i in range(3)), strict=True):
        prose = re.sub(r"`([^`]+)`", r"``\1``", prose)
        prose = re.sub(r"\[([^\]]+)\]\((http[^)]+)\)", r"`\1 <\2>`__", prose)
        prose = re.sub(
            r"^(#+) (.*)$",
            lambda match: f"{match[2]}\n{'=-~^'[len(match[1]) - 1] * len(match[2])}",
            prose,
            flags=re.MULTILINE,
        )
        text += prose
        if code:
            indented = re.sub("^(?=.)", "   ", code, flags=re.MULTILINE)
            text += f".. code-block:: {language or 'text'}\n\n{indented}"
    return text


# In benchmarks.rst, what tests/benchmarks/curves.py prints.
MARKED = re.compile(r"^\.\. table starts\n(.*?)^\.\. table ends$", re.MULTILINE | re.DOTALL)


def to_list_table(markdown: str) -> str:
    """Translate a table of Markdown."""
    rows = [line.strip().strip("|").split("|") for line in markdown.strip().splitlines()]
    text = ".. list-table::\n   :header-rows: 1\n   :widths: auto\n\n"
    for row in [rows[0], *rows[2:]]:
        text += "   * - " + "\n     - ".join(cell.strip() for cell in row) + "\n"
    return text


def read_included(app, docname, source):
    """Translate what a page takes from Markdown: a table, or all of it."""
    if docname == "benchmarks":
        source[0] = MARKED.sub(lambda match: to_list_table(match[1]), source[0])
    if docname in INCLUDED:
        path = ROOT / INCLUDED[docname]
        app.env.note_dependency(str(path))
        source[0] = to_rst(path.read_text(encoding="utf-8"))


def skip_foreign_members(app, what, name, obj, skip, options):
    """Leave out what is inherited from scikit-learn, numpy or tuple."""
    function = getattr(obj, "fget", None) or getattr(obj, "fn", None) or obj
    module = getattr(function, "__module__", None)
    if callable(function) and not str(module).startswith("skcal"):
        return True
    return skip or None


def write_report(app, exception):
    """Run the code of the home page, which writes the report that it leads to."""
    if exception is None and app.builder.format == "html":
        page = (ROOT / "doc" / "index.rst").read_text(encoding="utf-8")
        code = re.search(r"\.\. code-block:: python\n\n((?: {9}.*\n|\n)+)", page)[1]
        with contextlib.chdir(Path(app.outdir, "_static")):
            exec(textwrap.dedent(code), {})


def setup(app):
    """Register the handlers."""
    app.connect("build-finished", write_report)
    app.connect("source-read", read_included)
    app.connect("autodoc-skip-member", skip_foreign_members)
