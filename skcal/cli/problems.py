"""What is wrong with files, said in a line or listed at once."""

from __future__ import annotations

import codecs
import csv
import io
import lzma
import os
import shlex
import sys
import zipfile
import zlib
from argparse import Namespace
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import IO, Any, TypeVar

import numpy as np

from skcal._show import printable

STANDARD_INPUT = "-"
PERCENT = 100.0
#: Errors of those who unpack or parse.
_OF_CONTENT = (
    *(EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile, csv.Error),
    *(LookupError, AttributeError, SyntaxError),
)
_LONGEST_MESSAGE = 8000  # characters: names in files may be of any length


class FileError(ValueError):
    """A file that cannot be read as predictions; the message is one line of bounded length.

    Parameters
    ----------
    message : str
    choices : sequence of dict, default=()
        Where several readings are possible, the options of each, by their names in the parsed
        arguments. None of them is taken.
    **remedy
        Options with which the file can be read as far as this error is concerned.
    """

    def __init__(self, message: str, choices: Sequence[dict] = (), **remedy: Any) -> None:
        message = printable(" ".join(message.splitlines()))
        if len(message) > _LONGEST_MESSAGE:
            start, end = _LONGEST_MESSAGE // 2, _LONGEST_MESSAGE // 4
            message = f"{message[:start]} … {message[-end:]}"
        super().__init__(message)
        self.remedy, self.choices = remedy, choices


@contextmanager
def errors_that_name(path: Path, max_bytes: float, files: Sequence[Path] | None = None):
    """Refuse files that are too large, and let every error name the file and a remedy.

    ``path`` stands for several ``files`` where these are given.
    """
    try:
        for part in [path] if files is None else files:
            if str(part) != STANDARD_INPUT:
                check_size(part, part.stat().st_size, max_bytes)
        yield
    except FileError:
        raise
    except OSError as error:
        if error.errno is None:  # not of the system, but of one who unpacks
            raise unreadable(path, error) from error
        reason = " ".join(str(error.strerror or error).split()).rstrip(".")
        raise FileError(f"{path}: {reason}.") from error
    except UnicodeDecodeError as error:
        encoding, name = _likely_encoding(error)
        raise FileError(
            f"{path}: is not text in {error.encoding.upper()}. Pass --encoding {encoding} if it is "
            f"{name}, or the encoding in which it was saved.",
            encoding=encoding,
        ) from error
    except MemoryError as error:
        raise FileError(f"{path}: its arrays do not fit into memory.") from error
    except (ValueError, TypeError) as error:
        message = " ".join(str(error).split())
        if message.endswith((".", "?")):  # of skcal
            raise FileError(f"{path}: {message}") from error
        raise unreadable(path, error) from error
    except _OF_CONTENT as error:
        raise unreadable(path, error) from error


def unreadable(path, error: Exception) -> FileError:
    """A file whose content a library refuses, such as one that is cut."""
    reason = " ".join(str(error).split()).rstrip(".")
    if isinstance(error, LookupError | AttributeError):
        reason = repr(error)
    return FileError(f"{path}: cannot be read ({reason}). Save it again.")


def _likely_encoding(error: UnicodeDecodeError) -> tuple[str, str]:
    """The name of an encoding for Python, and what people call it."""
    start = error.object[: 2**16]
    for mark, encoding in ((codecs.BOM_UTF32_LE, "utf-32"), (codecs.BOM_UTF32_BE, "utf-32")):
        if start.startswith(mark):
            return encoding, "UTF-32"
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16", "UTF-16 (Unicode text of Windows)"
    return "cp1252", "Western European text of Windows"


def check_size(path, size, max_bytes) -> None:
    """Refuse content of more bytes than the user allows."""
    if size > max_bytes:
        raise FileError(
            f"{path}: holds {size / 2**30:.3g} GB, more than {max_bytes / 2**30:.3g}. "
            "Raise --max-size if that is meant."
        )


def check_output(path, endings=()) -> None:
    """Raise before the work where a file, if there is one, cannot be written after it."""
    if path is None:
        return
    path = Path(path)
    if endings and path.suffix.lower() not in endings:
        raise FileError(f"{path}: unknown format {path.suffix!r}. Use {' or '.join(endings)}.")
    if path.is_dir():
        raise FileError(f"{path}: is a folder. Pass the path of a file.")
    if not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
        raise FileError(f"{path}: the folder {path.parent} is absent or cannot be written.")


def read_text(path, max_bytes: float) -> str:
    """The whole text of a file; raises FileError where it holds more than ``max_bytes``."""
    with open(path, "rb") as file:
        return str(at_most_bytes(file, path, max_bytes).read(), "utf-8")


def open_bytes(path, stack) -> IO[bytes]:
    """The bytes of a file, which the stack closes, or of the standard input, which stays open."""
    if str(path) != STANDARD_INPUT:
        return stack.enter_context(open(path, "rb"))
    if sys.stdin is None:
        raise FileError("standard input: is closed. Pass the name of a file.")
    return sys.stdin.buffer


def at_most_bytes(stream, path, max_bytes) -> io.BufferedReader:
    """The same bytes, refused once there are more than ``max_bytes``."""
    return io.BufferedReader(_BoundedBytes(stream, path, max_bytes))


class _BoundedBytes(io.RawIOBase):
    """A stream that is refused once it has given more than ``max_bytes``; it stays open.

    Parameters
    ----------
    stream : file object
    path : path-like
        What messages call it.
    max_bytes : float
    """

    def __init__(self, stream, path, max_bytes):
        self._stream, self._path, self._max_bytes = stream, path, max_bytes
        self._size = 0

    def readable(self):
        return True

    def readinto(self, buffer):
        n_read = self._stream.readinto(buffer)
        self._size += n_read
        check_size(self._path, self._size, self._max_bytes)
        return n_read


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


def _commands(options, read, added, problems, before=()):
    """Options with which the files are read, beside those that were given, and what is read.

    Problems are added to the list, after a choice those of readings that end in a command alone.
    ``before`` holds the problems that led to a choice: a remedy after which one of them comes back
    is none.
    """
    given = Namespace(**vars(options))
    given.given = {*getattr(options, "given", ()), *added}
    given.is_sought = bool(added)  # then what two commands read apart has one for each
    for name, value in added.items():
        setattr(given, name, [*getattr(given, name), *value] if _repeats(name) else value)
    try:
        yield added, read(given)
    except FileError as error:
        if str(error) in (*before, *problems):
            return
        problems.append(str(error))
        if error.remedy:
            yield from _commands(options, read, _joined(added, error.remedy), problems, before)
            return
        known = (*before, *problems)
        for choice in error.choices:
            more: list[str] = []
            commands = list(_commands(options, read, _joined(added, choice), more, known))
            if commands or len(error.choices) == 1:
                problems += [text for text in more if text not in problems]
            yield from commands


def _repeats(name: str) -> bool:
    return name in ("ignore", "drop_label", "missing", "only")


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
    words, arguments = [], options.arguments
    for name, value in added.items():
        option = f"--{name.replace('_', '-')}"
        if value is True:
            words.append(option)
        elif value is None:
            arguments = _without(arguments, option)
        elif value is False or (name == "scale" and value == 1 and "--percent" in arguments):
            arguments = [part for part in arguments if part not in (option, "--percent")]
        elif name == "scale" and value == PERCENT:
            words.append("--percent")
        else:
            parts = value if isinstance(value, list) and _repeats(name) else [value]
            for part in parts:
                part = ",".join(part) if isinstance(part, list) else str(part)
                words += [option, {"\t": "tab"}.get(part, part)]
    for name in added:  # what stood there before was wrong
        if name in ("label", "decimal", "score", "sep", "groups"):
            arguments = _without(arguments, f"--{name}")
    return shlex.join(["python", "-m", "skcal", *arguments, *words])


def _without(arguments: list[str], option: str) -> list[str]:
    """Arguments without a value that another one replaces."""
    pairs = zip(["", *arguments], arguments, strict=False)
    return [part for last, part in pairs if option not in (last, part, part.partition("=")[0])]
