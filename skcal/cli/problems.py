"""Everything that is wrong with files is listed at once, with a command that reads them."""

from __future__ import annotations

import shlex
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from skcal.cli.bounds import FileError
from skcal.cli.predictions import PERCENT

_Found = TypeVar("_Found")


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
    are tried, until the files are read or an error has no remedy.
    """
    try:
        return read(options)
    except FileError as error:
        problems, last = [str(error)], error
    if not all(Path(file).is_file() for file in (options.file, options.second) if file is not None):
        raise last  # what cannot be read again
    given, added = options, dict[str, Any]()
    while last.remedy:
        added |= {
            name: [*added.get(name, []), *value] if isinstance(value, list) else value
            for name, value in last.remedy.items()
        }
        given = Namespace(**vars(options) | _merged(options, added))
        try:
            read_now = read(given)
        except FileError as error:
            if str(error) in problems:
                break
            problems.append(str(error))
            last = error
        else:
            raise Problems(problems, _remedy(options, added, read_now))
    raise Problems(problems, [])


def _merged(options: Namespace, added: dict[str, Any]) -> dict[str, Any]:
    """Values of options, those that may be repeated after those that were given."""
    return {
        name: [*getattr(options, name), *value] if isinstance(value, list) else value
        for name, value in added.items()
    }


def _remedy(options: Namespace, added: dict[str, Any], read: Any) -> list[str]:
    """The command that reads the files, and what it leaves out."""
    first = read[0] if type(read) is tuple else read
    if not set(added.get("ignore", [])).isdisjoint(map(str, np.unique(first.labels).tolist())):
        return []  # a class is no column to ignore
    words = []
    for name, value in added.items():
        option = f"--{name.replace('_', '-')}"
        if value is True:
            words.append(option)
        elif name == "scale" and value == PERCENT:
            words.append("--percent")
        else:
            for part in value if isinstance(value, list) else [value]:
                words += [option, "tab" if part == "\t" else str(part)]
    shown = shlex.join(["python", "-m", "skcal", *options.arguments, *words])
    lines = [f"With these options the file can be read: {shown}"]
    return lines if first.left_out is None else [str(first.left_out), *lines]
