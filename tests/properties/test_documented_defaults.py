"""The docstrings of public names say the defaults that the signatures have."""

import importlib
import inspect
import re

import pytest

PACKAGES = [
    importlib.import_module(name)
    for name in (
        *("skcal", "skcal.datasets", "skcal.displays", "skcal.functions"),
        *("skcal.hypothesis_tests", "skcal.metrics", "skcal.monitoring", "skcal.report"),
    )
]
PUBLIC = {
    f"{package.__name__}.{name}": getattr(package, name)
    for package in PACKAGES
    for name in getattr(package, "__all__", [])
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


def pairs():
    for place, thing in PUBLIC.items():
        told = documented(thing)
        for name, value in defaults(thing).items():
            yield pytest.param(told.get(name, ""), value, id=f"{place} {name}")


PAIRS = list(pairs())


@pytest.mark.parametrize(("said", "value"), PAIRS)
def test_a_documented_default_is_that_of_the_signature(said, value):
    if isinstance(value, str):
        assert said.strip("\"'") == value
    elif isinstance(value, bool | type(None) | tuple | list):
        assert said == repr(value)
    else:
        assert float(said.replace("_", "")) == value


def test_there_are_defaults_to_compare():
    assert len(PAIRS) > 200
