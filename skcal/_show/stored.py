"""What is stored: files that are replaced as a whole, and JSON of which every part is checked."""

from __future__ import annotations

import json
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import numpy as np


@contextmanager
def replacing(path, mode: str = "wb", **options: Any) -> Iterator[IO]:
    """Open a new file that takes the place of ``path`` when the block ends without an error.

    An error, such as a full disk or an interrupt, leaves the old file whole and no other beside it.

    Parameters
    ----------
    path : path-like
        The file to write. The target of a symbolic link is replaced, with the permissions that it
        has. What is no regular file, such as a terminal or a pipe, is written to directly.
    mode : {"wb", "w"}, default="wb"
        Bytes, or text.
    **options
        ``encoding``, ``newline`` and ``errors`` of text, as of :func:`open`.

    Yields
    ------
    file : file object

    Raises
    ------
    OSError
        With ``path`` as its ``filename``: the file or its folder cannot be written, or the disk is
        full.
    """
    target = Path(os.path.realpath(path))
    direct = target.exists() and not target.is_file()
    written = target if direct else target.with_name(f".{secrets.token_hex(8)}.tmp")
    try:
        with open(written, mode, **options) as file:
            yield file
        if target.is_file():
            shutil.copymode(target, written)
        if not direct:
            os.replace(written, target)
    except OSError as error:
        if error.errno is None or error.filename not in (None, str(written), str(target)):
            raise
        raise OSError(error.errno, error.strerror or str(error), str(path)) from error
    finally:
        if not direct:
            with suppress(OSError):
                written.unlink(missing_ok=True)


class Document:
    """An object of JSON that may be hostile: each part is checked when it is read.

    Every refusal is a ValueError of one sentence that names the part, and of the remedy.

    Parameters
    ----------
    parts : dict
        As JSON holds them.
    remedy : str
        What to pass instead, a whole sentence.
    """

    def __init__(self, parts: dict, remedy: str) -> None:
        self.parts = parts
        self.remedy = remedy

    @classmethod
    def parse(cls, text: str | bytes, kind: str, remedy: str) -> Document:
        """Read strict JSON, without NaN and infinity; ``kind`` is what its object should be."""
        document = cls({}, remedy)
        try:
            document.parts = json.loads(text, parse_constant=_refuse_constant)
        except (TypeError, ValueError, RecursionError) as error:
            raise document.wrong("text", f"is not JSON ({error})") from None
        if not isinstance(document.parts, dict):
            raise document.wrong("text", f"is not {kind}")
        return document

    def wrong(self, name: str, reason: str) -> ValueError:
        """Return the error for a part, for the caller to raise."""
        return ValueError(f"{name} {reason}. {self.remedy}")

    def expect(self, name: str, value: Any) -> None:
        """Refuse all but one value, such as the number of a format."""
        given = self.parts.get(name)
        if type(given) is not type(value) or given != value:
            raise self.wrong(name, f"is {given!r:.80}, and {value!r} can be read")

    def value(self, name: str, *kinds: type) -> Any:
        """Return a part of one of the kinds: str, bool, int, float, list, dict."""
        value = self.parts.get(name)
        if type(value) not in kinds:
            raise self.wrong(name, "is missing or of another kind")
        return value

    def part(self, name: str) -> Document:
        """Return an object within this one."""
        return Document(self.value(name, dict), self.remedy)

    def objects(self, name: str) -> list[Document]:
        """Return a list of objects."""
        values = self.value(name, list)
        if not all(isinstance(value, dict) for value in values):
            raise self.wrong(name, "is not a list of objects")
        return [Document(value, self.remedy) for value in values]

    def count(self, name: str, least: int, most: int = 2**62) -> int:
        """Return an integer between bounds, both included."""
        value = self.parts.get(name)
        if type(value) is not int or not least <= value <= most:
            raise self.wrong(name, f"is {str(value)[:40]}, not a count")
        return value

    def number(self, name: str, low: float, high: float) -> float:
        """Return a finite number between bounds, both included."""
        value: Any = self.parts.get(name)
        if type(value) not in (int, float) or not low <= value <= high:
            raise self.wrong(name, f"is {str(value)[:40]}, not a number from {low:g} to {high:g}")
        return float(value)

    def labels(self, name: str, n_labels: int | None = None) -> list:
        """Return names or numbers, each once: ``n_labels`` of them, or two and more."""
        labels = self.value(name, list)
        plain = all(isinstance(label, str | int | float) for label in labels)
        n_labels = max(2, len(labels)) if n_labels is None else n_labels
        if not plain or len(set(labels)) != len(labels) or len(labels) != n_labels:
            raise self.wrong(name, "is not one name or number a column, each once")
        return labels

    def array(
        self, name: str, *, low: float = -np.inf, high: float = np.inf, infinite: bool = False
    ) -> np.ndarray:
        """Return nested lists of numbers between bounds as an array, of int64 or float64.

        Infinities, "inf" and "-inf", may be there where ``infinite`` says so.
        """
        try:
            entries = np.array(self.parts.get(name), dtype=object)
            if not all(_is_number(entry) for entry in entries.ravel()):
                raise ValueError("an entry is not a number")
            array = entries.astype(np.float64)
        except (ValueError, TypeError, OverflowError) as error:
            raise self.wrong(name, f"is not an array of numbers ({error})") from error
        possible = np.isfinite(array) & (low <= array) & (array <= high)
        if infinite:
            possible |= np.isinf(array)
        if not possible.all():
            raise self.wrong(name, "holds a number that is not possible")
        integers = array.size and all(type(entry) is int for entry in entries.ravel())
        return entries.astype(np.int64) if integers else array


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no number of JSON")


def _is_number(entry: Any) -> bool:
    return entry in ("inf", "-inf") if isinstance(entry, str) else type(entry) in (int, float)
