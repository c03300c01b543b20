"""Predictions to be recalibrated: read with what stands beside them, and written again."""

from __future__ import annotations

import csv
import gzip
import io
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from skcal._files import replacing
from skcal.cli.checks import FileError, Places, listed, plain_predictions, telling_places
from skcal.cli.files import kind_of, open_archive, plain_array, telling_damage
from skcal.cli.tables import (
    check_header,
    frame_column,
    read_frame,
    require_cells,
)
from skcal.cli.text_files import STANDARD_INPUT, Numbers, open_rows


class Wanted(NamedTuple):
    """What a fitted recalibrator reads.

    Attributes
    ----------
    classes : list of str
        The class of each column.
    single : bool
        Whether there is one column, of the positive class.
    from_logits : bool
    normalize : bool
        Whether rows of probabilities are divided by their sums.
    apart : tuple of str
        Columns of a table that are no single column of predictions.
    """

    classes: list[str]
    single: bool
    from_logits: bool
    normalize: bool
    apart: tuple[str, ...]


class Unlabelled(NamedTuple):
    """Predictions in the order of the classes, and the file that they stand in.

    Attributes
    ----------
    predictions : ndarray of shape (n_samples,) or (n_samples, n_classes)
    columns : list of int
        The place of each class in the file.
    content : (header, rows), data frame or dict of arrays
    """

    predictions: np.ndarray
    columns: list[int]
    content: Any


def check_kinds(path, out) -> None:
    """Say before the work what cannot be read or written."""
    if str(out) == STANDARD_INPUT:
        raise FileError("--out - : the standard output has the summary. Pass the name of a file.")
    if kind_of(path) != kind_of(out):
        raise FileError(f"{out}: is another kind of file than {path}. Pass the same kind.")
    check_folder(out)


def check_folder(out) -> None:
    """Raise unless the folder of a file is there."""
    folder = Path(out).parent
    if not folder.is_dir():
        raise FileError(f"{out}: the folder {folder} is absent.")


def read_unlabelled(path, wanted: Wanted, max_bytes: float) -> Unlabelled:
    """Read predictions of the kinds of :func:`skcal.cli.files.read_predictions`.

    Other columns, or arrays, are kept as they are; labels may be absent and are not read.
    """
    path = Path(path)
    read = {"csv": _read_csv, "parquet": _read_parquet, "npz": _read_npz}[kind_of(path)]
    with telling_damage(path, max_bytes):
        return read(path, wanted, max_bytes)


def _read_csv(path, wanted, max_bytes) -> Unlabelled:
    with open_rows(path, max_bytes) as reader:
        header = [name.strip() for name in next(reader, [])]
        columns = _columns(path, header, wanted)
        numbers = Numbers(path, header, set(range(len(header))) - set(columns), max_bytes)
        rows = []
        for row in reader:
            if row:
                numbers.add(reader.line_num, row)
                rows.append(row)
    require_cells(path, header, rows)
    array = numbers.values()[:, np.argsort(np.argsort(columns))]
    places = Places(path, numbers.lines, [header[column] for column in columns])
    return Unlabelled(_checked(array, places, wanted), columns, (header, rows))


def _read_parquet(path, wanted, max_bytes) -> Unlabelled:
    frame = read_frame(path, max_bytes)
    header = [str(name).strip() for name in frame.columns]
    columns = _columns(path, header, wanted, "the table")
    require_cells(path, header, frame)
    array = np.column_stack([frame_column(path, frame, column) for column in columns])
    places = Places(path, names=[header[column] for column in columns])
    return Unlabelled(_checked(array, places, wanted), columns, frame)


def _columns(path, header, wanted, first="line 1") -> list[int]:
    """The column of each class, or the one column of P(positive)."""
    check_header(path, header, None, None, first=first)
    if wanted.single:
        columns = [k for k, name in enumerate(header) if name not in wanted.apart]
        if len(columns) != 1:
            raise FileError(
                f"{path}: {first} has {len(columns)} columns that may be predictions (columns: "
                f"{listed(header)}), the map reads one. Name the others by --ignore, that of the "
                "labels by --label."
            )
        return columns
    place = {name: column for column, name in enumerate(header)}
    missing = [name for name in wanted.classes if name not in place]
    if missing:
        raise FileError(
            f"{path}: {first} has no column {missing[0]!r} (columns: {listed(header)}). Name a "
            "column by each class of the predictions to fit to."
        )
    return [place[name] for name in wanted.classes]


def _read_npz(path, wanted, max_bytes) -> Unlabelled:
    with open_archive(path, max_bytes) as data:
        arrays = {name: plain_array(path, data, name, max_bytes) for name in data.files}
    if "proba" not in arrays:
        raise FileError(
            f"{path}: array 'proba' is missing (found: {listed(list(arrays))}). Save it by "
            "numpy.savez(file, proba=…)."
        )
    proba, count = arrays["proba"], len(wanted.classes)
    shape = () if wanted.single else (count,)
    if proba.shape[1:] != shape or not proba.ndim:
        meant = "one dimension" if wanted.single else f"{count} columns"
        raise FileError(
            f"{path}: array 'proba' has shape {proba.shape}, where the map reads {meant}. Give "
            "the columns of the predictions to fit to."
        )
    order = list(range(count))
    if "classes" in arrays and not wanted.single:
        own = [str(name) for name in arrays["classes"].tolist()]
        if sorted(own) != sorted(wanted.classes):
            raise FileError(f"{path}: has classes {listed(own)}, not {listed(wanted.classes)}.")
        order = [own.index(name) for name in wanted.classes]
        proba = proba[:, order]
    return Unlabelled(_checked(proba, Places(path), wanted), order, arrays)


def _checked(array, places, wanted) -> np.ndarray:
    if not len(array):
        raise FileError(f"{places.path}: no rows of probabilities. Give a row per sample.")
    if wanted.single and array.ndim == 2:
        array = array[:, 0]
    with telling_places(places, array):
        return plain_predictions(array, wanted.normalize and array.ndim == 2, wanted.from_logits)


def write_recalibrated(out, unlabelled: Unlabelled, proba: np.ndarray) -> None:
    """Write a file like the one that was read, with the new probabilities in place of the old."""
    single = unlabelled.predictions.ndim == 1
    values = proba[:, 1:] if single else proba
    write = {"csv": _write_csv, "parquet": _write_parquet, "npz": _write_npz}[kind_of(out)]
    with replacing(out) as file:
        write(file, unlabelled, values, str(out).lower().endswith(".gz"))


def _write_csv(file, unlabelled, values, packed):
    header, rows = unlabelled.content
    target = gzip.GzipFile(fileobj=file, mode="wb", mtime=0) if packed else file
    text = io.TextIOWrapper(target, encoding="utf-8", newline="", write_through=True)
    writer = csv.writer(text)
    writer.writerow(header)
    for row, own in zip(rows, values.tolist(), strict=True):
        for column, value in zip(unlabelled.columns, own, strict=True):
            row[column] = repr(value)
        writer.writerow(row)
    text.detach()
    if packed:
        target.close()


def _write_parquet(file, unlabelled, values, packed):
    frame = unlabelled.content
    for column, own in zip(unlabelled.columns, values.T, strict=True):
        frame.isetitem(column, own)
    frame.to_parquet(file)


def _write_npz(file, unlabelled, values, packed):
    if unlabelled.predictions.ndim == 1:
        values = values[:, 0]
    else:
        values = values[:, np.argsort(unlabelled.columns)]
    np.savez(file, **(unlabelled.content | {"proba": values}))
