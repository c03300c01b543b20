"""The command ``recalibrate``: predictions of a file by a map that another file teaches."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from skcal._files import replacing
from skcal._validation import InputError, check_proba
from skcal.cli.checks import FileError, Places, Predictions, check_size, listed, one_sentence
from skcal.recalibration import Recalibrator

_FORMATS = (".csv", ".npz")


class Unlabelled(NamedTuple):
    """Predictions to be recalibrated, and what stands beside them in their file.

    Attributes
    ----------
    proba : ndarray of shape (n_samples,) or (n_samples, n_classes)
        In the order of the classes that were fitted.
    columns : list of int
        Of a table: the place of each class.
    header : list of str
    rows : list of list of str
    arrays : dict of ndarray
        Of an archive: its other arrays.
    """

    proba: np.ndarray
    columns: list[int]
    header: list[str]
    rows: list[list[str]]
    arrays: dict[str, np.ndarray]


def recalibrate(fit: Predictions, path, options) -> tuple[Recalibrator, Unlabelled, np.ndarray]:
    """Fit a recalibrator to labelled predictions and apply it to those of a file."""
    unlabelled = read_unlabelled(path, fit, options.label, options.max_size * 2**30, options.ignore)
    recalibrator = Recalibrator(
        scoring=options.scoring,
        labels=fit.classes,
        n_jobs=options.n_jobs,
        random_state=options.seed,
    ).fit(fit.proba, fit.labels)
    return recalibrator, unlabelled, recalibrator.predict_proba(unlabelled.proba)


def check_formats(path, out) -> None:
    """Say before the work what cannot be read or written."""
    for name in (path, out):
        if Path(name).suffix.lower() not in _FORMATS:
            raise FileError(f"{name}: unknown kind of file. Pass a .csv or .npz file.")
    if Path(path).suffix.lower() != Path(out).suffix.lower():
        raise FileError(f"{out}: is another kind of file than {path}. Pass the same kind.")
    folder = Path(out).parent
    if not folder.is_dir():
        raise FileError(f"{out}: the folder {folder} is absent.")


def read_unlabelled(
    path, fit: Predictions, label: str, max_bytes: float, ignored: Sequence[str] = ()
) -> Unlabelled:
    """Read predictions for the classes of ``fit``; other columns are kept as they are."""
    path = Path(path)
    try:
        check_size(path, path.stat().st_size, max_bytes)
        if path.suffix.lower() == ".csv":
            return _read_csv(path, fit, (label, *ignored))
        return _read_npz(path, fit)
    except UnicodeDecodeError as error:
        raise FileError(f"{path}: not UTF-8 text. Save it as UTF-8.") from error
    except csv.Error as error:
        raise FileError(f"{path}: {error}. Save it as a table, one line a sample.") from error


def _read_csv(path, fit, apart) -> Unlabelled:
    with path.open(newline="", encoding="utf-8-sig") as file:
        reader = csv.reader(file)
        header = [name.strip() for name in next(reader, [])]
        columns = _columns(path, header, fit, apart)
        rows, lines = [], []
        for row in reader:
            if row:
                rows.append(row)
                lines.append(reader.line_num)
    values = np.empty((len(rows), len(columns)))
    for number, (row, line) in enumerate(zip(rows, lines, strict=True)):
        if len(row) != len(header):
            raise FileError(
                f"{path}: line {line} has {len(row)} fields, the header {len(header)}. Give one a "
                "column."
            )
        for place, column in enumerate(columns):
            try:
                values[number, place] = float(row[column])
            except ValueError:
                raise FileError(
                    f"{path}: line {line}, column {header[column]!r} is {row[column]!r}, not a "
                    "number. Give a probability, or drop the row."
                ) from None
    names = [header[column] for column in columns]
    proba = _checked(values if len(columns) > 1 else values[:, 0], Places(path, lines, names))
    return Unlabelled(proba, columns, header, rows, {})


def _columns(path, header, fit, apart) -> list[int]:
    """The column of each class, or the one column of P(positive)."""
    if fit.proba.ndim == 1:
        columns = [k for k, name in enumerate(header) if name not in apart]
        if len(columns) != 1:
            raise FileError(
                f"{path}: has {len(columns)} columns beside that of labels ({listed(header)}), the "
                "predictions to fit to have one. Keep the probabilities of the positive class."
            )
        return columns
    names = [str(name) for name in fit.classes.tolist()]
    missing = [name for name in names if name not in header]
    if missing:
        raise FileError(
            f"{path}: line 1 has no column {missing[0]!r} (columns: {listed(header)}). Name a "
            "column by each class of the predictions to fit to."
        )
    return [header.index(name) for name in names]


def _read_npz(path, fit) -> Unlabelled:
    try:
        with np.load(path, allow_pickle=False) as data:
            arrays = {name: data[name] for name in data.files}
    except (OSError, ValueError, EOFError) as error:
        raise FileError(f"{path}: {one_sentence(str(error))}") from error
    if "proba" not in arrays:
        raise FileError(
            f"{path}: array 'proba' is missing (found: {listed(list(arrays))}). Save it by "
            "numpy.savez(file, proba=…)."
        )
    proba = arrays.pop("proba")
    order: list[int] = []
    if "classes" in arrays and fit.proba.ndim == 2:
        own = [str(name) for name in arrays["classes"].tolist()]
        names = [str(name) for name in fit.classes.tolist()]
        if sorted(own) != sorted(names):
            raise FileError(f"{path}: has classes {listed(own)}, not {listed(names)}.")
        order = [own.index(name) for name in names]
        proba = proba[:, order] if proba.ndim == 2 and proba.shape[1] == len(own) else proba
    if proba.shape[1:] != fit.proba.shape[1:]:
        raise FileError(
            f"{path}: array 'proba' has shape {proba.shape}, that to fit to {fit.proba.shape}. "
            "Give the same columns."
        )
    return Unlabelled(_checked(proba, Places(path)), order, [], [], arrays)


def _checked(proba, places) -> np.ndarray:
    if not len(proba):
        raise FileError(f"{places.path}: no rows of probabilities. Give a row per sample.")
    try:
        return check_proba(proba, name="proba")
    except InputError as error:
        row = None if error.row is None else places.row(error.row)
        column = 0 if len(places.names) == 1 else error.column
        column = None if column is None else places.column(column)
        message = one_sentence(error.told(None, row, column))
        raise FileError(f"{places.path}: {message}") from error


def write_recalibrated(out, unlabelled: Unlabelled, proba: np.ndarray) -> None:
    """Write a file like the one that was read, with the new probabilities in place of the old."""
    values = proba[:, 1] if unlabelled.proba.ndim == 1 else proba
    if unlabelled.header:
        _write_csv(out, unlabelled, values.reshape(len(values), -1))
        return
    if unlabelled.columns:
        back = np.argsort(unlabelled.columns)
        values = values[:, back]
    with replacing(out) as file:
        arrays: dict[str, Any] = {"proba": values, **unlabelled.arrays}
        np.savez(file, **arrays)


def _write_csv(out, unlabelled, values) -> None:
    with replacing(out, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(unlabelled.header)
        for row, own in zip(unlabelled.rows, values.tolist(), strict=True):
            for column, value in zip(unlabelled.columns, own, strict=True):
                row[column] = repr(value)
            writer.writerow(row)


def facts(recalibrator: Recalibrator, options, n_applied: int) -> dict:
    """What was chosen and won, as plain numbers and strings."""
    return {
        "fitted_to": str(options.file),
        "applied_to": str(options.second),
        "written_to": str(options.out),
        "n_fitted": recalibrator.n_samples_,
        "n_applied": n_applied,
        "classes": [str(name) for name in recalibrator.classes_.tolist()],
        "chosen": recalibrator.best_name_,
        "comparison": {
            name: {key: _plain(value) for key, value in vars(comparison).items()}
            for name, comparison in recalibrator.comparison_.items()
        },
    }


def _plain(value):
    return float(value) if np.isfinite(value) else None
