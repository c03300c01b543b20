"""Names that README and the pages mention are names of the package."""

import pkgutil
import re

import pytest
from pages import DOC, TEXTS

MENTIONED = {
    "README.md": (DOC.parent / "README.md").read_text(encoding="utf-8"),
    **{page: text for page, text in TEXTS.items() if page != "changelog.rst"},
}
ROLE = re.compile(r":(?:func|class|meth|mod|attr|exc|data|obj):`(?:[^`<]*<)?[~!]?(skcal[\w.]*)>?`")
DOTTED = re.compile(r"(?<![\w./-])(skcal(?:\.[a-z_A-Z]\w*)+)(?!\w|\.\w)")
FILES = re.compile(r"\.(?:py|rst|md|css|toml|json|html)$")


def names_in(text):
    """Return the dotted names of the package in a text, also those of roles."""
    return {name for name in ROLE.findall(text) + DOTTED.findall(text) if not FILES.search(name)}


def exists(name):
    try:
        pkgutil.resolve_name(name)
    except (ImportError, AttributeError):
        return False
    return True


@pytest.mark.parametrize("page", MENTIONED)
def test_every_name_of_the_package_exists(page):
    missing = sorted(name for name in names_in(MENTIONED[page]) if not exists(name))
    assert not missing, f"{page} names {missing}, which skcal does not have"


def test_names_are_found_and_abolished_ones_are_seen():
    text = "See :func:`~skcal.hypothesis_tests.certificate`, `skcal.metrics.gone` and skcal.Zero."
    found = names_in(text)
    assert found == {"skcal.hypothesis_tests.certificate", "skcal.metrics.gone", "skcal.Zero"}
    assert [name for name in sorted(found) if exists(name)] == ["skcal.Zero"]
    assert sum(len(names_in(text)) for text in MENTIONED.values()) > 100
