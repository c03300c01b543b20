"""Tables of predictions: ``.csv`` and ``.parquet`` files."""

from __future__ import annotations

import numpy as np

from skcal.cli.checks import NO_CLASS, FileError, Places, Predictions, check_size, listed
from skcal.cli.text_files import Numbers, is_number, open_rows
from skcal.metrics.rounded import misses_1

_BATCH_BYTES = 2**29  # of texts that are expanded at a time
_TRIED = 1000  # names and labels whose likeness is looked for
_SEPARATORS = {";": "semicolons", "\t": "tabulators", "|": "bars"}


def read_parquet(path, label, groups, max_bytes, check, ignored=()) -> Predictions:
    """Read a Parquet table; ``check`` gets its places, probabilities, labels and classes."""
    frame = read_frame(path, max_bytes)
    return _from_frame(path, frame, label, groups, max_bytes, check, ignored)


def read_frame(path, max_bytes):
    """The data frame of a Parquet file."""
    try:
        import pandas  # noqa: F401
        from pyarrow import ArrowException, parquet
    except ImportError as error:
        raise FileError(
            f"{path}: reading Parquet needs pandas and pyarrow: pip install 'skcal[parquet]'."
        ) from error
    try:
        with parquet.ParquetFile(path) as file:
            table = _read_within(path, file, max_bytes)
        table.validate(full=True)  # texts are UTF-8
        return table.to_pandas()
    except ArrowException as error:
        if isinstance(error, ValueError | LookupError | TypeError | MemoryError | OSError):
            raise  # those that every reader may raise
        raise FileError(f"{path}: a damaged file ({error!r}). Save it again.") from error


def _read_within(path, file, max_bytes):
    """The table, as long as what it expands to stays within bounds.

    Repeated values take hardly any bytes in a file. Numbers are counted before they are read. Texts
    are expanded some rows at a time, since no text is longer than all columns of texts are in the
    file, uncompressed. Lists may hold anything, and are no probabilities.
    """
    from pyarrow import Table, types

    metadata, schema = file.metadata, file.schema_arrow
    for field in schema:
        if types.is_nested(field.type):
            raise FileError(f"{path}: column {field.name!r} holds {field.type}. {NO_CLASS}")
    widths = [max(8, column.length) for column in file.schema]  # the length of fixed texts
    check_size(path, metadata.num_rows * sum(widths), max_bytes)
    groups = [metadata.row_group(k) for k in range(metadata.num_row_groups)]
    columns = [group.column(k) for group in groups for k in range(group.num_columns)]
    texts = [one for one in columns if one.physical_type == "BYTE_ARRAY"]
    longest = sum(one.total_uncompressed_size for one in texts)
    check_size(path, longest, max_bytes)
    size, batches = 0, []
    for batch in file.iter_batches(min(2**16, max(16, _BATCH_BYTES // max(1, longest)))):
        size += batch.nbytes
        check_size(path, size, max_bytes)
        batches.append(batch)
    return Table.from_batches(batches, schema=schema)


def _from_frame(path, frame, label, groups, max_bytes, check, ignored=()) -> Predictions:
    header = [str(name).strip() for name in frame.columns]
    check_header(path, header, label, groups, ignored, "the table")
    apart = _apart(header, label, groups, ignored)
    names = [name for k, name in enumerate(header) if k not in apart]
    require_cells(path, names, frame)
    columns = [frame_column(path, frame, k) for k in range(len(header)) if k not in apart]
    labels = _labels(path, frame.iloc[:, apart[0]], max_bytes)
    places = Places(path, names=names)
    predictions = _from_table(np.column_stack(columns), labels, check, places, max_bytes)
    if groups is None:
        return predictions
    codes, values = frame.iloc[:, header.index(groups)].factorize(use_na_sentinel=False)
    texts = [str(value) for value in values.tolist()]
    return predictions._replace(groups=text_array(path, texts, max_bytes, codes))


def _labels(path, column, max_bytes) -> np.ndarray:
    """Labels as the header can name them; of repeated texts there is one each."""
    codes, values = column.factorize()
    if (codes < 0).any():
        row = int(np.argmax(codes < 0))
        raise FileError(f"{path}: row {row} has no label. Drop or label that sample.")
    texts = [_plain_label(value) for value in values.tolist()]
    return text_array(path, texts, max_bytes, codes)


def _plain_label(value) -> str:
    whole = isinstance(value, float) and value.is_integer()
    return str(int(value) if whole else value).strip()


def text_array(path, texts: list[str], max_bytes, codes=None) -> np.ndarray:
    """An array of texts, or of those that codes name; each takes the place of the longest."""
    count = len(texts) if codes is None else len(codes)
    check_size(path, 4 * count * max(map(len, texts), default=0), max_bytes)
    array = np.array(texts, dtype=str)
    return array if codes is None else array[codes]


def frame_column(path, frame, k) -> np.ndarray:
    """Numbers of a column of a data frame."""
    try:
        if frame.dtypes.iloc[k].kind in ("m", "M"):
            raise TypeError("dates or times")
        return frame.iloc[:, k].to_numpy(dtype=np.float64, na_value=np.nan)
    except (TypeError, ValueError) as error:
        name = str(frame.columns[k]).strip()
        raise FileError(
            f"{path}: column {name!r} holds {frame.dtypes.iloc[k]}, not numbers. {NO_CLASS}"
        ) from error


def read_csv(path, label, groups, max_bytes, check, ignored=()) -> Predictions:
    """Read a table of comma-separated text, as :func:`read_parquet` does.

    A path of ``-`` is the standard input; what gzip has compressed is expanded.
    """
    with open_rows(path, max_bytes) as rows:
        header = [name.strip() for name in next(rows, [])]
        check_header(path, header, label, groups, ignored)
        apart = _apart(header, label, groups, ignored)
        group = 0 if groups is None else header.index(groups)
        names = [name for k, name in enumerate(header) if k not in apart]
        numbers = Numbers(path, header, apart, max_bytes)
        labels, found = [], []
        for row in rows:
            if row:
                numbers.add(rows.line_num, row)
                labels.append(numbers.kept(row[apart[0]].strip()))
                found.append(numbers.kept(row[group].strip()))
    require_cells(path, names, labels)
    texts = text_array(path, labels, max_bytes)
    places = Places(path, numbers.lines, names)
    predictions = _from_table(numbers.values(), texts, check, places, max_bytes)
    return predictions._replace(
        groups=None if groups is None else text_array(path, found, max_bytes)
    )


def _apart(header, label, groups, ignored) -> list[int]:
    """Columns that hold no probabilities, that of the labels first."""
    names = [label, *([groups] if groups is not None else []), *ignored]
    return [header.index(name) for name in dict.fromkeys(names)]


def require_cells(path, names, values):
    """Raise unless there are rows and columns."""
    if not names or not len(values):
        missing = "rows of probabilities below the header" if names else "columns of probabilities"
        raise FileError(
            f"{path}: no {missing}. Give a header, a column per class and a row per sample."
        )


def check_header(path, header, label, groups, ignored=(), first="line 1") -> None:
    """Raise unless every column has a name of its own, and those that options name are there."""
    if not any(header):
        raise FileError(
            f"{path}: {first} is empty. Give a header: the class of each column, and the column "
            "of labels."
        )
    remedy = "Name the column of labels by --label."
    separator = next((one for one in ";\t|" if one in header[0]), None)
    if len(header) == 1 and separator:
        remedy = f"Separate the fields by commas, not {_SEPARATORS[separator]}."
    elif header and all(is_number(name) for name in header):
        remedy = "Give a header: the class of each column, and the column of labels."
    options = {**dict.fromkeys(ignored, "--ignore"), groups: "--groups", label: "--label"}
    for name, option in options.items():
        if name is not None and name not in header:
            if name != label:
                remedy = f"Name a column by {option}."
                if "," in name and option == "--ignore":
                    remedy = "Repeat --ignore for each column."
            raise FileError(
                f"{path}: {first} has no column {name!r} (columns: {listed(header)}). {remedy}"
            )
    known: set[str] = set()
    for name in header:
        if not name:
            raise FileError(
                f"{path}: {first} has a column without a name. Remove it; pandas writes none with "
                "to_csv(…, index=False)."
            )
        if name in known:
            raise FileError(f"{path}: {first} names column {name!r} twice. Name each class once.")
        known.add(name)


def _from_table(values, labels, check, places, max_bytes) -> Predictions:
    names = places.names
    if len(names) == 1:
        return check(places, values[:, 0], labels, None)
    classes = text_array(places.path, names, max_bytes)
    _refuse_other_columns(values, labels.tolist(), places)
    return check(places, values, labels, classes)


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
            f"{NO_CLASS}"
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
                f"without it. {NO_CLASS}"
            )


def _like_labels(names, labels):
    """The first label's column if columns are named as p_cat, p_dog for labels cat, dog."""
    first, others, known = labels[0], set(labels), set(names)
    for name in names[:_TRIED] if len(others) <= _TRIED else ():
        if first and first in name and {name.replace(first, k, 1) for k in others} <= known:
            return name
    return None
