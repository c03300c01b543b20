"""Several files of one table: a folder, names with wildcards, partitions."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from glob import glob, has_magic
from itertools import accumulate, compress
from pathlib import Path
from urllib.parse import unquote

import numpy as np

from skcal._show import listed
from skcal.cli.cells import Dialect
from skcal.cli.files import kind_of, read_frame
from skcal.cli.frames import Frame, Texts
from skcal.cli.problems import STANDARD_INPUT, FileError, errors_that_name

_PARTITION = re.compile(r"([A-Za-z_]\w*)=(.*)")
_MOST_NOTES = 8
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"


def files_named(names: Sequence[str]) -> list[Path]:
    """The files that names, folders and names with wildcards mean, or FileError.

    No file is named twice: its samples would count twice.
    """
    files: list[Path] = []
    for name in names:
        if name == STANDARD_INPUT and len(names) > 1:
            raise FileError("the standard input is one file. Pass - alone, or names of files.")
        is_pattern = has_magic(name) and not Path(name).exists()
        paths = [] if not is_pattern else [Path(one) for one in sorted(glob(name, recursive=True))]
        paths = paths or [Path(name)]
        several = len(names) > 1 or len(paths) > 1
        for path in paths:
            if several and path.is_dir():
                files += [] if "**" in name else tables_of(path)
            else:
                files.append(path)
    known = set[Path]()
    for path in files:
        if path.resolve() in known:
            raise FileError(f"{path}: is given twice, and its samples count once. Pass it once.")
        known.add(path.resolve())
    for path in files if len(files) > 1 else ():
        if path.exists() and kind_of(path) == "npz":
            raise FileError(f"{path}: an archive is no table of several files. Pass it alone.")
    return files


def name_of(files: Sequence[Path]) -> str:
    """What several files are called."""
    return f"{files[0].name} … {files[-1].name} ({len(files):,} files)"


def tables_of(folder: Path) -> list[Path]:
    """All files of tables in a folder and below, in the order of their names."""
    files = sorted(
        part
        for part in folder.rglob("*")
        if part.is_file() and not part.name.startswith((".", "_")) and _is_table(part)
    )
    if not files:
        raise FileError(f"{folder}: is a folder without tables. Pass the path of a file.")
    return files


def _is_table(path) -> bool:
    try:
        return kind_of(path) not in ("npz", "folder")
    except FileError:
        return False


def key_of(path: Path, dialect: Dialect) -> tuple:
    """The key of a table among those that were read before."""
    return str(path), *dialect._replace(percent=False, missing=False, codes=(), bounds=False)


def read_table(
    path: Path,
    max_bytes: float,
    dialect: Dialect,
    known: dict | None = None,
    files: Sequence[Path] = (),
) -> Frame:
    """Read the columns of a file, of all tables of a folder, or of several files.

    Parameters
    ----------
    path : Path
        What several files are called.
    max_bytes : float
    dialect : Dialect
    known : dict, default=None
        Tables that were read before, to which this one is added, and perhaps the standard input.
    files : sequence of Path, default=()
        Several files.
    """
    key = key_of(path, dialect)
    if known is not None and key in known:
        return known[key]
    if not files and kind_of(path) == "folder":
        files = tables_of(path)
    if files:
        frames = []
        for part in files:
            with errors_that_name(part, max_bytes):
                frames.append(with_partitions(read_frame(part, max_bytes, dialect), path))
        frame: Frame = joined(path, frames, dialect)
    else:
        stream = None if known is None else known.get(STANDARD_INPUT)
        content = stream.content() if stream is not None and str(path) == STANDARD_INPUT else None
        frame = read_frame(path, max_bytes, dialect, content)
    if known is not None:
        known[key] = frame
    return frame


# Rows of several frames


class JoinedFrame(Frame):
    """The rows of several frames of the same columns, one after the other.

    Parameters
    ----------
    path : Path
        What they are called together.
    parts : list of Frame
    names : sequence of str
        What messages call the file of each part; "" where there is one.
    notes : sequence of str, default=()
    """

    def __init__(self, path, parts: list[Frame], names: Sequence[str], notes: Sequence[str] = ()):
        header = parts[0].header
        super().__init__(path, header, None, sep=parts[0].sep)
        of_parts = list(dict.fromkeys(note for part in parts for note in part.notes))
        more = [f"{len(of_parts) - _MOST_NOTES:,} more such sentences are not shown."]
        self.notes = [*of_parts[:_MOST_NOTES], *more * (len(of_parts) > _MOST_NOTES), *notes]
        self._parts, self._names = parts, names
        self._starts = list(accumulate(map(len, parts), initial=0))
        self.aside, self.partitions = parts[0].aside, parts[0].partitions
        self.is_ordered = parts[0].is_ordered
        self.records = [record for part in parts for record in part.records]

    def __len__(self):
        return self._starts[-1]

    def _place(self, row: int) -> tuple[int, int]:
        """The part of a row, and its row there."""
        k = int(np.searchsorted(self._starts, row, side="right")) - 1
        return k, int(row) - self._starts[k]

    def _first(self, most: int | None) -> Iterator[tuple[Frame, int | None]]:
        """The parts that hold the first rows, with the number of rows there; None is all."""
        for part, start in zip(self._parts, self._starts, strict=False):
            if most is None or start < most:
                yield part, None if most is None else min(most - start, len(part))

    def words_for_row(self, row: int) -> str:
        """Return what messages call a row, of several files with its file."""
        k, row = self._place(row)
        return self._parts[k].words_for_row(row) + f" of {self._names[k]}" * bool(self._names[k])

    def place_of(self, row: int) -> str:
        """Return what messages call a row, with the file."""
        k, row = self._place(row)
        return self._parts[k].place_of(row)

    def series(self, name: str, most: int | None = None, as_read: bool = False):
        """A column, or its first rows."""
        import pandas

        as_read = as_read and self.is_numeric(name)
        found = [part.series(name, n_rows, as_read) for part, n_rows in self._first(most)]
        if len({series.dtype for series in found}) > 1:
            found = [series.astype(object) for series in found]
        return pandas.concat(found, ignore_index=True)

    def is_numeric(self, name: str) -> bool:
        """Whether all cells are numbers."""
        return all(part.is_numeric(name) for part in self._parts)

    def numbers(self, name: str, dialect: Dialect, most: int | None = None) -> np.ndarray:
        """The numbers of a column, or of its first rows; FileError names a cell that is none."""
        return np.concatenate(
            [part.numbers(name, dialect, n_rows) for part, n_rows in self._first(most)]
        )

    def texts(self, name: str, most: int | None = None) -> Texts:
        """The texts of a column, or of its first rows; "" where one is missing."""
        return Texts.joined(part.texts(name, n_rows) for part, n_rows in self._first(most))


def joined(path: Path, frames: list[Frame], dialect: Dialect) -> Frame:
    """The rows of files whose columns have the same names, in any order."""
    top = os.path.commonpath([frame.path.parent for frame in frames])
    shown = [os.path.relpath(frame.path, top) for frame in frames]
    are_filled = [any(frame.header) and len(frame) > 0 for frame in frames]
    filled, names = (list(compress(parts, are_filled)) for parts in (frames, shown))
    if not filled:
        return frames[0]
    header = filled[0].header
    if dialect.header and all(map(Dialect().is_number, header)):
        raise FileError(
            f"{path}: {names[0]} has no header, but numbers in line 1. Pass --header none, or save "
            "the files with names of the columns, in Spark by header=True.",
            header="none",
        )
    for frame, name in zip(filled, names, strict=True):
        require_columns(frame, header, path, name, names[0])
    notes = [f"The rows of {len(names):,} files stand one after the other: {listed(names, 4)}."]
    if empty := [name for name, filled in zip(shown, are_filled, strict=True) if not filled]:
        verb = "s hold" if len(empty) > 1 else " holds"
        notes.append(f"{len(empty):,} file{verb} no rows: {listed(empty, 4)}.")
    frame = JoinedFrame(path, filled, names, notes)
    frame.files = np.repeat(names, list(map(len, filled)))
    return frame


def require_columns(frame: Frame, header: Sequence[str], path, name: str, first: str) -> None:
    """Raise unless a frame has the columns of the first one."""
    if sorted(frame.header) != sorted(header):
        other = sorted(set(frame.header) ^ set(header))
        raise FileError(
            f"{path}: {name} and {first} have different columns; not in both: {listed(other)}. "
            "Pass files of the same columns."
        )


def with_partitions(frame: Frame, root: Path) -> Frame:
    """Add what names of folders below ``root`` say of all rows of a file, such as ``day=1``."""
    path = frame.path
    folders = path.relative_to(root).parts[:-1] if path.is_relative_to(root) else path.parts[:-1]
    for name, value in filter(None, map(_partition, folders)):
        if any(frame.header) and name not in frame.header:
            frame.add_partition(name, value)
    return frame


def _partition(folder: str) -> tuple[str, str] | None:
    """The name and value of ``day=2026-01-01``."""
    found = _PARTITION.fullmatch(folder)
    if found is None:
        return None
    return found[1], "" if found[2] == _NO_VALUE else unquote(found[2])
