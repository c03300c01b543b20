"""Tables of predictions: ``.csv`` and ``.parquet`` files."""

from __future__ import annotations

import csv

import numpy as np

from skcal.cli.checks import FileError, Places, Predictions, check_size, listed, misses_1

_NO_CLASS = (
    "Remove columns that are no classes; name that of the labels by --label, that of subgroups by "
    "--groups (command report)."
)


def read_parquet(path, label, groups, max_bytes, check) -> Predictions:
    """Read a Parquet table; ``check`` gets its places, probabilities, labels and classes."""
    try:
        import pandas  # noqa: F401
        from pyarrow import parquet
    except ImportError as error:
        raise FileError(
            f"{path}: reading Parquet needs pandas and pyarrow: pip install 'skcal[parquet]'."
        ) from error
    with parquet.ParquetFile(path) as file:
        check_size(path, 8 * file.metadata.num_rows * file.metadata.num_columns, max_bytes)
        return _from_frame(path, file.read().to_pandas(), label, groups, check)


def _from_frame(path, frame, label, groups, check) -> Predictions:
    header = [str(name).strip() for name in frame.columns]
    _check_header(path, header, label, groups, "the table")
    apart = [header.index(name) for name in (label, groups) if name is not None]
    names = [name for k, name in enumerate(header) if k not in apart]
    _require_cells(path, names, frame)
    columns = [_column(path, frame, k, header[k]) for k in range(len(header)) if k not in apart]
    labels = [_plain_label(path, row, value) for row, value in enumerate(frame.iloc[:, apart[0]])]
    predictions = _from_table(np.column_stack(columns), labels, check, Places(path, names=names))
    found = None if groups is None else frame.iloc[:, apart[1]].astype(str).to_numpy(dtype=str)
    return predictions._replace(groups=found)


def _column(path, frame, k, name) -> np.ndarray:
    try:
        if frame.dtypes.iloc[k].kind in ("m", "M"):
            raise TypeError("dates or times")
        return frame.iloc[:, k].to_numpy(dtype=np.float64, na_value=np.nan)
    except (TypeError, ValueError) as error:
        raise FileError(
            f"{path}: column {name!r} holds {frame.dtypes.iloc[k]}, not numbers. {_NO_CLASS}"
        ) from error


def _plain_label(path, row, value) -> str:
    """A label as the header can name it."""
    if value is None or value != value:
        raise FileError(f"{path}: row {row} has no label. Drop or label that sample.")
    whole = isinstance(value, float) and value.is_integer()
    return str(int(value) if whole else value).strip()


def read_csv(path, label, groups, max_bytes, check) -> Predictions:
    """Read a table of comma-separated text, as :func:`read_parquet` does."""
    with path.open(newline="", encoding="utf-8-sig") as file:
        rows = csv.reader(file)
        header = [name.strip() for name in next(rows, [])]
        _check_header(path, header, label, groups)
        apart = [header.index(name) for name in (label, groups) if name is not None]
        names = [name for k, name in enumerate(header) if k not in apart]
        values, labels, lines, found = [], [], [], []
        for row in rows:
            if row:
                values.append(_numbers(path, rows.line_num, header, row, apart))
                labels.append(row[apart[0]].strip())
                found.append(row[apart[-1]].strip())
                lines.append(rows.line_num)
    _require_cells(path, names, values)
    predictions = _from_table(np.array(values), labels, check, Places(path, lines, names))
    return predictions._replace(groups=None if groups is None else np.array(found))


def _require_cells(path, names, values):
    if not names or not len(values):
        missing = "rows of probabilities below the header" if names else "columns of probabilities"
        raise FileError(
            f"{path}: no {missing}. Give a header, a column per class and a row per sample."
        )


def _check_header(path, header, label, groups, first="line 1") -> None:
    if not any(header):
        raise FileError(
            f"{path}: {first} is empty. Give a header: the class of each column, and the column "
            "of labels."
        )
    remedy = "Name the column of labels by --label."
    if len(header) == 1 and ";" in header[0]:
        remedy = "Separate the fields by commas, not semicolons."
    elif header and all(_is_number(name) for name in header):
        remedy = "Give a header: the class of each column, and the column of labels."
    for name in (label, groups):
        if name is not None and name not in header:
            raise FileError(
                f"{path}: {first} has no column {name!r} (columns: {listed(header)}). "
                f"{remedy if name == label else 'Name a column by --groups.'}"
            )
    for name in header:
        if not name:
            raise FileError(
                f"{path}: {first} has a column without a name. Remove it; pandas writes none with "
                "to_csv(…, index=False)."
            )
        if header.count(name) > 1:
            raise FileError(f"{path}: {first} names column {name!r} twice. Name each class once.")


def _is_number(text) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _numbers(path, line, header, row, apart) -> list[float]:
    if len(row) != len(header):
        raise FileError(
            f"{path}: line {line} has {len(row)} fields, the header {len(header)}. "
            "Give one a column."
        )
    numbers = []
    for k, text in enumerate(row):
        if k in apart:
            continue
        try:
            numbers.append(float(text))
        except ValueError:
            place = f"{path}: line {line}, column {header[k]!r} is"
            if not text.strip():
                raise FileError(f"{place} empty. Give a probability, or drop the row.") from None
            raise FileError(f"{place} {text!r}, not a number. {_NO_CLASS}") from None
    return numbers


def _from_table(values, labels, check, places) -> Predictions:
    names = places.names
    if len(names) == 1:
        return check(places, values[:, 0], np.array(labels), None)
    _refuse_other_columns(values, labels, places)
    return check(places, values, np.array(labels), np.array(names))


def _refuse_other_columns(values, labels, places) -> None:
    """Name columns that no label names and without which the rows sum to 1."""
    names = places.names
    unnamed = ~np.isin(names, labels)
    if unnamed.all():
        like = _like_labels(names, labels)
        remedy = (
            f"Rename them to the labels, such as {like!r} to {labels[0]!r}."
            if like
            else "Give a column per class, named by the class, or a single column, of P(positive). "
            f"{_NO_CLASS}"
        )
        raise FileError(
            f"{places.path}: columns {listed(names)}: none has the name of a label, such as "
            f"{labels[0]!r} in {places.row(0)}. {remedy}"
        )
    if not misses_1(values).any():
        return
    for apart in (unnamed & ((values < 0) | (values > 1)).any(axis=0), unnamed):
        if apart.any() and not misses_1(values[:, ~apart]).any():
            others = [repr(name) for name, out in zip(names, apart, strict=True) if out]
            raise FileError(
                f"{places.path}: {listed(others)}: no label has this name, and the rows sum to 1 "
                f"without it. {_NO_CLASS}"
            )


def _like_labels(names, labels):
    """The first label's column if columns are named as p_cat, p_dog for labels cat, dog."""
    first, others = labels[0], set(labels)
    for name in names:
        if first and first in name and {name.replace(first, k, 1) for k in others} <= set(names):
            return name
    return None
