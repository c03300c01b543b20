"""Names that only who calls functions knows, in what commands print."""

import inspect
import re
from contextlib import contextmanager

import skcal
from skcal.cli import commands

ROOMS = (
    "choice",
    "functions",
    "hypothesis_tests",
    "metrics",
    "model_selection",
    "recalibration",
    "report",
)
PUBLIC = [
    getattr(room, name)
    for room in (skcal, skcal.displays, skcal.monitoring, *(getattr(skcal, r) for r in ROOMS))
    for name in room.__all__
]
CALLABLES = [one for one in PUBLIC if callable(one)]
#: Classes whose names are no words of English, arguments and functions with an underscore.
NAMES = {one.__name__ for one in CALLABLES if re.match("[A-Z][a-z]+[A-Z]", one.__name__)}
NAMES |= {one.__name__ for one in CALLABLES if "_" in one.__name__}
NAMES |= {"Zero", "Identity"}
NAMES |= {
    name
    for one in CALLABLES
    for method in (one, *(m for _, m in inspect.getmembers(one, inspect.isfunction)))
    for name in (method.__name__, *inspect.signature(method).parameters)
    if "_" in name.strip("_") and not name.startswith("_")
}
ARGUMENT = r"(?<![\w-])[A-Za-z_]\w*=(?![=\"])[\w'…]*"
#: What names arrays of .npz files, which functions write, what others print, the values of an
#: option, and a class that is said to be one of Python.
ALLOWED = r"numpy\.savez\([^)]*\)|\(n_samples,[^)]*\)|\(shape=[^)]*\)|\(Cannot have [^)]*\)"
ALLOWED += r"|--only '?\w+=(\w+|…)'?|\w+ of the Python package"


def python_names(text: str, given: str = "") -> list[str]:
    """The names in a text that are not in what was ``given``, such as arguments of a command."""
    text = re.sub(ALLOWED, "", text)
    words = re.findall(rf"{ARGUMENT}|skcal\.\w+|\w+", text)
    known = set(re.findall(r"\w+", given))
    return [
        word
        for word in words
        if (word in NAMES or "=" in word or word.startswith("skcal."))
        and not known.issuperset(re.findall(r"[A-Za-z]\w*", word))
    ]


@contextmanager
def recorded(monkeypatch):
    """All that commands print in the block as text, without JSON and metrics."""
    said: list[str] = []
    for name in ("print_message", "print_result"):
        real = getattr(commands, name)

        def say(text="", real=real):
            if not str(text).startswith(("{", "[", "# HELP")):
                said.append(str(text))
            return real(text)

        monkeypatch.setattr(commands, name, say)
    yield said
