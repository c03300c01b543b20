"""A file is opened within the size that is allowed, and becomes named columns."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zipfile
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from skcal._show import listed
from skcal.cli.cells import Dialect
from skcal.cli.frames import Frame
from skcal.cli.objects import READERS, read_parquet, with_fields
from skcal.cli.problems import STANDARD_INPUT, FileError, at_most_bytes, check_size, open_bytes
from skcal.cli.text import first_line, read_separated

_PACKED: dict[str, Callable] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
_KINDS = {
    **dict.fromkeys([".csv", ".tsv", ".txt", ".tab", ".dat"], "csv"),
    **dict.fromkeys([".jsonl", ".ndjson"], "jsonl"),
    **dict.fromkeys([".xlsx", ".xlsm"], "excel"),
    **dict.fromkeys([".parquet", ".pq"], "parquet"),
    ".json": "json",
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
        names = [names[0].removesuffix(".zip"), *_members(path)]
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


def read_frame(path: Path, max_bytes: float, dialect: Dialect) -> Frame:
    """Read the columns of a file that is no ``.npz`` archive.

    Parameters
    ----------
    path : Path
        ``-`` is the standard input, read as ``.csv`` or, if it begins with a brace, as ``.jsonl``.
    max_bytes : float
        Content that takes more is refused, before it is held where the file tells its size.
    dialect : Dialect
    """
    pandas = _pandas(path)
    kind = kind_of(path)
    if kind == "parquet":
        return read_parquet(path, max_bytes)
    if kind == "csv" and Path(path).is_file():  # which can be opened again
        opened: Callable = partial(_opened, path, max_bytes)
        return with_fields(pandas, read_separated(pandas, path, opened, dialect))
    with ExitStack() as stack:
        file = _opened(path, max_bytes, stack)
        content = first_line(path, file) + file.read()
    if str(path) == STANDARD_INPUT and content.lstrip()[:1] in (b"{", b"["):
        kind = "jsonl" if content.lstrip()[:1] == b"{" else "json"
    if kind == "csv":
        frame = read_separated(pandas, path, lambda stack: io.BytesIO(content), dialect)
        return with_fields(pandas, frame)
    return READERS[kind](pandas, path, content, dialect, max_bytes)


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
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError) as error:
        raise FileError(f"{path}: a damaged .zip file ({error}). Pack it again.") from error
    return io.BytesIO(content)
