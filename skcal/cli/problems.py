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
    problems, added, given = list[str](), dict[str, Any](), Namespace(**vars(options))
    while True:
        try:
            read_now = read(given)
        except FileError as error:
            files = [file for file in (options.file, options.second) if file is not None]
            if not problems and not all(Path(file).is_file() for file in files):
                raise  # what cannot be read again
            if str(error) in problems:
                raise Problems(problems, []) from error
            problems.append(str(error))
            if not error.remedy:
                raise Problems(problems, []) from error
            for name, value in error.remedy.items():
                if isinstance(value, list):  # after those that were given
                    added[name] = [*added.get(name, []), *value]
                    value = [*getattr(given, name), *value]
                else:
                    added[name] = value
                setattr(given, name, value)
        else:
            if not problems:
                return read_now
            raise Problems(problems, _remedy(options, added, read_now))


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
