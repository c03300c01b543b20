"""The docstrings of public names say the defaults that the signatures have."""

import importlib
import inspect
import re

PACKAGES = [
    importlib.import_module(name)
    for name in (
        *("skcal", "skcal.datasets", "skcal.displays", "skcal.functions"),
        *("skcal.hypothesis_tests", "skcal.metrics", "skcal.monitoring"),
        *("skcal.choice", "skcal.recalibration", "skcal.report"),
    )
]
PUBLIC = {
    f"{package.__name__}.{name}": getattr(package, name)
    for package in PACKAGES
    for name in package.__all__
}
ENTRY = re.compile(r"^([\w, ]+) : (.*)$", re.MULTILINE)


def documented(thing):
    """The default that each parameter's entry names; entries of several: "default=5 and None"."""
    text = inspect.getdoc(thing).replace("\\\n", "")
    _, _, text = text.partition("Parameters\n----------\n")
    text = re.split(r"\n\n\w[\w ]+\n---+\n", text)[0]
    found = {}
    for names, description in ENTRY.findall(text):
        names = [name.strip() for name in names.split(",")]
        _, _, said = description.partition("default=")
        each = said.split(" and ") if " and " in said else [said] * len(names)
        found |= dict(zip(names, each, strict=True))
    return found


def defaults(thing):
    return {
        name: parameter.default
        for name, parameter in inspect.signature(thing).parameters.items()
        if parameter.default is not parameter.empty
    }


def agree(said, value):
    """Whether the text of an entry is the default of the signature."""
    if isinstance(value, str):
        return said.strip("\"'") == value
    if isinstance(value, bool | type(None) | tuple | list):
        return said == repr(value)
    return said != "" and float(said.replace("_", "")) == value


def test_a_documented_default_is_that_of_the_signature():
    pairs = {
        f"{place} {name}": (documented(thing).get(name, ""), value)
        for place, thing in PUBLIC.items()
        if "Parameters\n----------\n" in inspect.getdoc(thing)  # results are not made by users
        for name, value in defaults(thing).items()
    }
    wrong = {where: pair for where, pair in pairs.items() if not agree(*pair)}
    assert not wrong, wrong
    assert len(pairs) > 450
