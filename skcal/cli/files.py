"""A file is opened within the size that is allowed, and becomes named columns."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import chain, islice, pairwise
from pathlib import Path

from skcal._show import listed
from skcal.cli.cells import Dialect
from skcal.cli.frames import Frame
from skcal.cli.objects import (
    READERS,
    blocks_of_parquet,
    n_rows_of_parquet,
    read_objects,
    read_parquet,
    with_fields,
)
from skcal.cli.problems import (
    STANDARD_INPUT,
    FileError,
    at_most_bytes,
    check_size,
    open_bytes,
    unreadable,
)
from skcal.cli.text import blocks_of_text, encoding_of, first_line, read_separated

_PACKED: dict[str, Callable] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
_KINDS = {
    **dict.fromkeys([".csv", ".tsv", ".txt", ".tab", ".dat", ".md", ".markdown", ".arff"], "csv"),
    **dict.fromkeys([".out", ".predict", ".pred", ".prn"], "csv"),
    **dict.fromkeys([".jsonl", ".ndjson"], "jsonl"),
    **dict.fromkeys([".xlsx", ".xlsm"], "excel"),
    **dict.fromkeys([".parquet", ".pq"], "parquet"),
    **dict.fromkeys([".json", ".geojson"], "json"),
    ".npz": "npz",
}
_GZIP = b"\x1f\x8b"  # what compressed content begins with


def kind_of(path) -> str:
    """Return "csv", "jsonl", "json", "excel", "parquet", "npz" or "folder", or raise FileError."""
    if str(path) == STANDARD_INPUT:
        return "csv"
    names = [Path(path).name.lower()]
    if Path(path).is_dir():
        return "folder" if not names[0].endswith(".npz") else "npz"
    if names[0].endswith(".zip"):
        members = _members(path)
        names = [names[0].removesuffix(".zip"), *members]
        if any(name.endswith(".npy") for name in members):
            return "npz"
    for name in names:
        for ending in _PACKED:
            name = name.removesuffix(ending)
        kind = _KINDS.get(Path(name).suffix)
        if kind is not None:
            return kind
    if Path(path).is_file():  # as services name parts of their predictions
        with open(path, "rb") as file:
            if file.read(1) == b"{":
                return "jsonl"
    raise FileError(
        f"{path}: unknown kind of file. Pass a .csv, .tsv, .txt, .jsonl, .json, .parquet, .xlsx or "
        ".npz file; text may be packed as .gz, .bz2, .xz or .zip. Save other kinds as .csv."
    )


def _members(path) -> list[str]:
    """The names of the files in an archive, if it is one."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = [entry.filename for entry in archive.infolist() if not entry.is_dir()]
    except (OSError, zipfile.BadZipFile):
        return []
    return [name for name in names if not name.startswith("__MACOSX")]


def read_frame(
    path: Path, max_bytes: float, dialect: Dialect, content: bytes | None = None
) -> Frame:
    """Read the columns of a file that is no ``.npz`` archive.

    Parameters
    ----------
    path : Path
        ``-`` is the standard input, read as ``.csv`` or, if it begins with a brace, as ``.jsonl``.
    max_bytes : float
        Content that takes more is refused, before it is held where the file tells its size.
    dialect : Dialect
    content : bytes, default=None
        Of the standard input, where it was read before.
    """
    pandas = _pandas(path)
    kind = kind_of(path)
    if kind == "parquet":
        return read_parquet(path, max_bytes)
    if kind == "csv" and Path(path).is_file():  # which can be opened again
        opened: Callable = partial(_opened, path, max_bytes)
        return with_fields(pandas, read_separated(pandas, path, opened, dialect))
    if content is None:
        with ExitStack() as stack:
            file = _opened(path, max_bytes, stack)
            content = first_line(path, file) + file.read()
    if str(path) == STANDARD_INPUT and content.lstrip()[:1] in (b"{", b"["):
        kind = "jsonl" if content.lstrip()[:1] == b"{" else "json"
    if kind == "csv":
        opened = partial(_again, content)
        return with_fields(pandas, read_separated(pandas, path, opened, dialect))
    return READERS[kind](pandas, path, content, dialect, max_bytes)


class StandardInput(io.RawIOBase):
    """The standard input, of which the beginning is held; it can be read once.

    Parameters
    ----------
    max_bytes : float
    """

    def __init__(self, max_bytes: float):
        path = Path(STANDARD_INPUT)
        self._file = _opened(path, max_bytes, ExitStack())
        self.held = first_line(path, self._file)
        self._n_read = 0

    def n_rows(self, most: int) -> int:
        """The number of lines, which are then held, up to one more than these."""
        parts, n_lines = [self.held], self.held.count(b"\n")
        while n_lines <= most and (part := self._file.read(2**20)):
            parts.append(part)
            n_lines += part.count(b"\n")
        parts.append(self._file.readline())
        self.held = b"".join(parts)
        return 0 if self.held.lstrip()[:1] == b"[" else n_lines

    def content(self) -> bytes:
        """Return all bytes."""
        self._require_all()
        self.held += self._file.read()
        return self.held

    def _require_all(self) -> None:
        """Raise where some bytes were read that are not held."""
        if self._n_read:
            raise FileError("standard input: is read already. Pass the name of a file.")

    def readable(self):
        """Whether bytes can be read."""
        return True

    def readinto(self, buffer):
        """Fill a buffer by what is held, then by what comes."""
        part = self.held[self._n_read : self._n_read + len(buffer)] or self._file.read(len(buffer))
        self._n_read += len(part)
        buffer[: len(part)] = part
        return len(part)

    def blocks(self, dialect: Dialect, n_rows: int | None = None) -> Iterator[Frame]:
        """The rows some at a time, or the first rows of each block of what is held."""
        path = Path(STANDARD_INPUT)
        kind = "jsonl" if self.held.lstrip()[:1] == b"{" else "csv"
        self._require_all()
        file = io.BytesIO(self.held) if n_rows is not None else io.BufferedReader(self)
        stream = io.TextIOWrapper(file, encoding_of(dialect))
        yield from blocks_of_stream(_pandas(path), path, stream, kind, dialect, n_rows)


def n_rows_of(path: Path, most: int, max_bytes: float) -> int:
    """The number of rows of a table that can be read in blocks, or of lines above ``most``."""
    kind = kind_of(path)
    if kind == "parquet":
        return n_rows_of_parquet(path)
    n_lines = 0
    with ExitStack() as stack:
        if kind in ("csv", "jsonl"):
            file = _opened(path, max_bytes, stack)
            while n_lines <= most and (part := file.read(2**20)):
                n_lines += part.count(b"\n")
    return n_lines


def blocks_of(
    path: Path,
    max_bytes: float,
    dialect: Dialect,
    names: Sequence[str] | None = None,
    n_rows: int | None = None,
) -> Iterator[Frame]:
    """Read the rows of a table some at a time, or the first rows of each block.

    Parameters
    ----------
    path : Path
    max_bytes : float
    dialect : Dialect
    names : sequence of str, default=None
        The columns that are needed; others may be absent.
    n_rows : int, default=None
        The rows of each block that are read; None is all.

    Yields
    ------
    frame : Frame
        Excel files and lists of JSON are one block.
    """
    pandas, kind = _pandas(path), kind_of(path)
    if kind == "parquet":
        yield from blocks_of_parquet(path, max_bytes, names, n_rows)
        return
    if kind not in ("csv", "jsonl"):
        yield read_frame(path, max_bytes, dialect)
        return
    with ExitStack() as stack:
        stream = io.TextIOWrapper(_opened(path, max_bytes, stack), encoding_of(dialect))
        yield from blocks_of_stream(pandas, path, stream, kind, dialect, n_rows)


def blocks_of_stream(pandas, path, stream, kind, dialect, n_rows=None) -> Iterator[Frame]:
    """The same of a stream of text; each block of a table is read below the first lines of all."""
    head, n_before = "", 0
    header: list[str] = []
    blocks = blocks_of_text(stream, n_rows)
    for block, following in pairwise(chain(blocks, [None])):
        text, n_lines = block or ("", 0)
        if kind == "jsonl":
            frame = read_objects(pandas, path, text, n_before, header)
            header = frame.header
        else:
            content = f"{head}{text}".encode(dialect.encoding)
            opened = partial(_again, content)
            n_head = head.count("\n")
            is_end = following is None and (n_rows is None or n_lines <= n_rows)
            frame = read_separated(pandas, path, opened, dialect, n_before - n_head, is_end)
            frame = with_fields(pandas, frame)
            if not n_before and len(frame):
                head = "".join(islice(io.StringIO(text), frame.line_of(0) - 1))
        n_before += n_lines
        yield frame


def _again(content: bytes, stack: ExitStack) -> io.BytesIO:
    return io.BytesIO(content)


def _pandas(path):
    try:
        import pandas
    except ImportError as error:
        raise FileError(f"{path}: reading it needs pandas: pip install pandas.") from error
    return pandas


def _opened(path, max_bytes: float, stack: ExitStack):
    """The bytes of a file, expanded if it is packed, and refused where they are too many."""
    name = str(path).lower()
    if name.endswith(".zip"):
        return _opened_zip(path, max_bytes, stack)
    file = at_most_bytes(open_bytes(path, stack), path, max_bytes)
    unpack = next((how for end, how in _PACKED.items() if name.endswith(end)), None)
    if unpack is None and file.peek(2)[:2] == _GZIP:
        unpack = gzip.open
    if unpack is not None:
        file = at_most_bytes(stack.enter_context(unpack(file)), path, max_bytes)
    return file


def _opened_zip(path, max_bytes, stack):
    try:
        archive, names = stack.enter_context(zipfile.ZipFile(path)), _members(path)
        if len(names) != 1:
            raise FileError(
                f"{path}: holds {len(names)} files ({listed(names)}). Pack one file, or unpack "
                "them and pass the folder."
            )
        check_size(path, archive.getinfo(names[0]).file_size, max_bytes)
        content = at_most_bytes(archive.open(names[0]), path, max_bytes).read()
    except RuntimeError as error:  # of another method, or one that needs a password
        raise unreadable(path, error) from error
    return io.BytesIO(content)
