"""Everything that is wrong with files is listed at once, with a command that reads them."""

from __future__ import annotations

import shlex
from argparse import Namespace
from collections.abc import Callable
from itertools import islice
from typing import Any, TypeVar

import numpy as np

from skcal.cli.bounds import FileError
from skcal.cli.cells import PERCENT

_Found = TypeVar("_Found")
_MOST_COMMANDS = 12


class Problems(FileError):
    """Several things that are wrong with files.

    Attributes
    ----------
    lines : list of str
        One for each of them; then, if there is a command that reads the files, what it leaves out
        and the command.
    """

    def __init__(self, problems: list[str], remedy: list[str]) -> None:
        super().__init__(" ".join(problems))
        self.lines = [*problems, *remedy]


def read_or_list_problems(options: Namespace, read: Callable[[Namespace], _Found]) -> _Found:
    """What ``read(options)`` returns, or an error that lists all problems.

    An error says with which options a file can be read as far as this problem is concerned. They
    are tried, until the files are read or an error has no remedy. Where several readings are
    possible, the command of each is shown.
    """
    problems: list[str] = []
    commands = list(islice(_commands(options, read, {}, problems), _MOST_COMMANDS))
    if not problems:
        return commands[0][1]
    lines = []
    one, others = "With these options the file can be read", "Read it so"
    for k, (added, found) in enumerate(commands):
        if not _ignores_a_class(added, found):
            words = others if len(commands) > 1 else one
            first = found[0] if type(found) is tuple else found
            if first.left_out is not None and not k:
                lines.append(str(first.left_out))
            lines.append(f"{'Or' if k else words}: {_command(options, added)}")
    raise Problems(problems, lines)


def _commands(options, read, added, problems):
    """Options with which the files are read, beside those that were given, and what is read.

    Problems are added to the list, after a choice those of readings that end in a command alone.
    """
    given = Namespace(**vars(options))
    given.given = {*getattr(options, "given", ()), *added}
    for name, value in added.items():
        setattr(given, name, [*getattr(given, name), *value] if _repeats(name) else value)
    try:
        yield added, read(given)
    except FileError as error:
        if str(error) in problems:
            return
        problems.append(str(error))
        if error.remedy:
            yield from _commands(options, read, _joined(added, error.remedy), problems)
            return
        for choice in error.choices:
            more: list[str] = []
            commands = list(_commands(options, read, _joined(added, choice), more))
            problems += [text for text in more if text not in problems] if commands else []
            yield from commands


def _repeats(name: str) -> bool:
    return name in ("ignore", "drop_label")


def _joined(added: dict, more: dict) -> dict:
    """Options after others; those that may be repeated are."""
    repeated = filter(_repeats, added.keys() & more.keys())
    return {**added, **more, **{name: [*added[name], *more[name]] for name in repeated}}


def _ignores_a_class(added: dict, read: Any) -> bool:
    """Whether a column is ignored that a label names."""
    first = read[0] if type(read) is tuple else read
    return not set(added.get("ignore", [])).isdisjoint(map(str, np.unique(first.labels).tolist()))


def _command(options: Namespace, added: dict[str, Any]) -> str:
    """A command with these options beside those that were given."""
    words = []
    for name, value in added.items():
        option = f"--{name.replace('_', '-')}"
        if value is True:
            words.append(option)
        elif name == "scale" and value == PERCENT:
            words.append("--percent")
        else:
            parts = value if isinstance(value, list) and _repeats(name) else [value]
            for part in parts:
                part = ",".join(part) if isinstance(part, list) else str(part)
                words += [option, {"\t": "tab"}.get(part, part)]
    arguments = options.arguments
    for name in added:  # what stood there before was wrong
        if name in ("label", "decimal", "score", "sep"):
            arguments = _without(arguments, f"--{name}")
    return shlex.join(["python", "-m", "skcal", *arguments, *words])


def _without(arguments: list[str], option: str) -> list[str]:
    """Arguments without a value that another one replaces."""
    pairs = zip(["", *arguments], arguments, strict=False)
    return [part for last, part in pairs if option not in (last, part, part.partition("=")[0])]
