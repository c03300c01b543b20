"""JSON, Excel and Parquet become named columns."""

from __future__ import annotations

import io
import json
import zipfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import Any

import numpy as np

from skcal._show import listed
from skcal.cli.cells import Dialect, fields_in, is_likely_number, is_whole
from skcal.cli.frames import Frame
from skcal.cli.header import PROBED, head_of, note_of_header, note_of_totals, notes_of, samples_of
from skcal.cli.problems import FileError, check_size, unreadable
from skcal.cli.text import encoding_of

_FIRST = 1000  # objects that name the columns
_ROWS = 2**17  # that are held at a time where a file is counted
_BLOCK_BYTES = 2**26  # the same of texts
_BATCH_BYTES = 2**29  # of texts that are expanded at a time


def _read_lines_of_json(pandas, path, content: bytes, dialect: Dialect, max_bytes) -> Frame:
    return read_objects(pandas, path, str(content, encoding_of(dialect)))


def read_objects(pandas, path, text: str, n_before: int = 0, names: Sequence[str] = ()) -> Frame:
    """The columns of objects of JSON, one a line, of which some may be named already.

    ``n_before`` lines of the file stand before the text.
    """
    numbered = enumerate(io.StringIO(text), 1 + n_before)
    lines = [(k, line) for k, line in numbered if line.strip()]
    records = [_fields_of_record(path, number, line) for number, line in lines]
    numbers = [number for number, _ in lines]
    frame = _frame_of_records(pandas, path, records, numbers.__getitem__, names)
    frame.records = [line for _, line in lines]
    return frame


def _frame_of_records(pandas, path, records, line_of=None, names=()) -> Frame:
    """The columns of objects: those that the first thousand name."""
    named = (name for record in records[:_FIRST] for name in record)
    header = list(dict.fromkeys([*names, *named]))
    cells = {k: [record.get(name, "") for record in records] for k, name in enumerate(header)}
    frame = Frame(path, header, pandas.DataFrame(cells, dtype=object), line_of)
    frame.is_ordered = False
    return with_fields(pandas, frame)


def _read_json(pandas, path, content: bytes, dialect: Dialect, max_bytes) -> Frame:
    """Objects in a list, also below a name; or columns by name, as pandas writes them."""
    remedy = 'Give a list of objects, such as [{"confidence": 0.9, "correct": 1}].'
    try:
        whole = json.loads(str(content, "utf-8-sig"), **_AS_TEXT)
    except (ValueError, RecursionError) as error:
        if content.lstrip()[:1] == b"{" and b"\n" in content.strip():
            return _read_lines_of_json(pandas, path, content, dialect, max_bytes)
        raise FileError(f"{path}: is no JSON ({error}). {remedy}") from error
    whole = _records_in(whole)
    if not (isinstance(whole, list) and whole and all(isinstance(row, dict) for row in whole)):
        raise FileError(f"{path}: holds no list of objects. {remedy}")
    return _frame_of_records(pandas, path, [dict(_flat(record)) for record in whole])


def _records_in(whole: Any) -> list[dict]:
    """The objects of the longest table in a value of JSON; [] if there is none.

    Tables are lists of objects, names beside rows, and columns of one length by name.
    """
    if isinstance(whole, list):
        records = whole if all(isinstance(row, dict) for row in whole) else []
        return max(records, _records_in(whole[0]), key=len) if len(whole) == 1 else records
    if not isinstance(whole, dict):
        return []
    tables = [_records_in(value) for value in whole.values()]
    lists = {name: value for name, value in whole.items() if isinstance(value, list) and value}
    for key, names in lists.items():
        for rows in lists.values():
            if all(isinstance(name, str) for name in names) and all(
                isinstance(row, list) and len(row) == len(names) for row in rows
            ):
                alike = {k: v for k, v in lists.items() if len(v) == len(rows) and k != "index"}
                if len(alike) > 1:  # the classes of one of several columns
                    tables.append(_rows_of({**alike, key: [names] * len(rows)}))
                else:
                    tables.append([dict(zip(names, row, strict=True)) for row in rows])
    keyed = [value for value in whole.values() if isinstance(value, dict)]
    if len(keyed) == len(whole) > 1 and len({tuple(value) for value in keyed}) == 1:  # of pandas
        columns = {name: [*value.values()] for name, value in whole.items()}
        tables.append(keyed if all(map(str.isdecimal, whole)) else _rows_of(columns))
    sizes = Counter(map(len, lists.values()))
    n_rows = max(sizes, key=lambda n: (sizes[n], n), default=0)
    if n_rows > 1 and sizes[n_rows] > 1:
        tables.append(_rows_of({k: value for k, value in lists.items() if len(value) == n_rows}))
    return max(tables, key=len, default=[])


def _rows_of(columns: dict[str, list]) -> list[dict]:
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _with_distinct_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) < len(pairs):
        raise ValueError("a name stands twice")
    return record


_AS_TEXT: dict[str, Any] = {
    "object_pairs_hook": _with_distinct_names,
    **dict.fromkeys(["parse_float", "parse_int", "parse_constant"], str),
}


def _fields_of_record(path, number: int, line: str) -> dict[str, str]:
    """The fields of an object of JSON as text; those of an object within it as "name.part"."""
    try:
        record = json.loads(line, **_AS_TEXT)
        if not isinstance(record, dict):
            raise ValueError("not an object")
        return dict(_flat(record))
    except (ValueError, RecursionError) as error:
        raise FileError(
            f"{path}: line {number} is not an object of JSON ({error}). Give one a line, such as "
            '{"confidence": 0.9, "correct": 1}.'
        ) from error


def with_fields(pandas, frame: Frame, depth: int = 4) -> Frame:
    """Columns of texts that hold objects become one for each field, named as in JSON."""
    records = {
        name: [fields_in(cell) for cell in cells]
        for name in frame.header
        if frame.kind(name) in ("text", "other")
        and fields_in(next(iter(frame.cells(name, 1)), "")) is not None
        for cells in [frame.cells(name)]
    }
    records = {name: cells for name, cells in records.items() if None not in cells}
    if not records or not depth:
        return frame
    fields = {
        name: [dict(_flat(cell or {}, f"{name}.")) for cell in cells]
        for name, cells in records.items()
    }
    names = {
        name: dict.fromkeys(part for row in rows[:_FIRST] for part in row)
        for name, rows in fields.items()
    }
    header, parts = list[str](), list[Any]()
    for name, (_, column) in zip(frame.header, frame.columns.items(), strict=True):
        if name in fields:
            header += names[name]
            parts += [[row.get(part, "") for row in fields[name]] for part in names[name]]
        elif not any(name in produced for produced in names.values()):  # of an earlier block
            header, parts = [*header, name], [*parts, column.to_numpy(dtype=object)]
    whole = pandas.DataFrame(dict(enumerate(parts)), dtype=object)
    found = Frame(frame.path, header, whole, frame.line_of, frame.records, frame.notes, frame.sep)
    found.aside, found.place, found.is_ordered = frame.aside, frame.place, False
    return with_fields(pandas, found, depth - 1)


def _flat(record: dict, start: str = "") -> Iterator[tuple[str, str]]:
    for name, value in record.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{start}{name}.")
        elif isinstance(value, bool):
            yield f"{start}{name}", "true" if value else "false"
        elif isinstance(value, list):
            yield f"{start}{name}", json.dumps(value)
        else:
            yield f"{start}{name}", "" if value is None else str(value)


# Excel and Parquet


def _read_excel(pandas, path, content: bytes, dialect: Dialect, max_bytes) -> Frame:
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            check_size(path, sum(entry.file_size for entry in archive.infolist()), max_bytes)
        sheets = pandas.read_excel(
            io.BytesIO(content), sheet_name=None, header=None, dtype=str, keep_default_na=False
        )
    except ImportError as error:
        raise FileError(f"{path}: reading it needs openpyxl: pip install openpyxl.") from error
    frames = {
        name: _frame_of_sheet(path, sheet.fillna(""), dialect)
        for name, sheet in sheets.items()
        if len(sheet)
    }
    frame = _chosen_sheet(path, frames, dialect.sheet)
    return with_fields(pandas, frame)


def _frame_of_sheet(path, sheet, dialect: Dialect) -> Frame:
    rows = [list(map(str.strip, row)) for row in sheet.iloc[:PROBED].values.tolist()]
    above, n_rows, names, aside = head_of(rows, has_header=dialect.header)
    columns = sheet.iloc[above + n_rows :]
    again = (columns == sheet.iloc[above]).all(axis=1).to_numpy() if n_rows else np.array([False])
    lines = 1 + np.arange(above + n_rows, len(sheet))
    notes = notes_of(aside, above + 1 if above else None)
    if again.any():
        notes.append(note_of_header(lines[again].tolist()))
        columns, lines = columns[~again], lines[~again]
    columns = columns.reset_index(drop=True)
    n, totals = samples_of(columns)
    notes += note_of_totals(totals, lines.__getitem__)
    frame = Frame(path, names, columns.iloc[:n], lines.__getitem__, notes=notes)
    frame.aside, frame.place = aside, f"line {above + 1}"
    return frame


def _chosen_sheet(path, frames: dict[str, Frame], given: str | None) -> Frame:
    """The sheet that an option names, or the only one with rows of numbers that are not whole."""
    names = listed([repr(name) for name in frames], len(frames))
    if given is not None:
        if given not in frames:
            raise FileError(f"{path}: has no sheet {given!r} with cells (sheets: {names}).")
        return frames[given]
    likely = [name for name in frames if _holds_fractions(frames[name])]
    if len(frames) == 1 or len(likely) == 1:
        [name] = likely if len(frames) > 1 else frames
        said = f"Sheet {name!r} is read, of the sheets {names}."
        frames[name].notes += [said] * (len(frames) > 1)
        return frames[name]
    raise FileError(
        f"{path}: has {len(frames)} sheets with cells: {names}. Name the one with predictions by "
        "--sheet.",
        choices=[{"sheet": name} for name in (likely or frames)],
    )


def _holds_fractions(frame: Frame) -> bool:
    """Whether a column holds numbers, of which some have decimals, or lists."""
    kinds = [frame.kind(name) for name in frame.header] if len(frame.header) > 1 else []
    numbers = [name for name, kind in zip(frame.header, kinds, strict=False) if kind == "number"]
    cells = (str(cell).strip("%") for name in numbers for cell in frame.cells(name, _FIRST))
    return "vector" in kinds or any(is_likely_number(cell) and not is_whole(cell) for cell in cells)


def read_parquet(path, max_bytes) -> Frame:
    """The columns of a Parquet file."""
    with _opened_parquet(path) as file:
        table = _read_arrow(path, file, max_bytes)
        table.validate(full=True)  # texts are UTF-8
        return _frame_of_arrow(path, table)


@contextmanager
def _opened_parquet(path):
    """A file, whose damages are named."""
    try:
        from pyarrow import ArrowException, parquet
    except ImportError as error:
        raise FileError(
            f"{path}: reading Parquet needs pandas and pyarrow: pip install pandas pyarrow."
        ) from error
    try:
        with parquet.ParquetFile(path) as file:
            yield file
    except (FileError, MemoryError):
        raise
    except (ArrowException, ValueError, LookupError, TypeError, AttributeError, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # of the system, such as of a file that may not be read
        raise unreadable(path, error) from error


def _frame_of_arrow(path, table, start: int = 0) -> Frame:
    columns = table.to_pandas()
    frame = Frame(path, [str(name).strip() for name in columns.columns], columns)
    frame.start = start
    return frame


def n_rows_of_parquet(path) -> int:
    """The number of rows, which a Parquet file tells."""
    with _opened_parquet(path) as file:
        return file.metadata.num_rows


def blocks_of_parquet(
    path, max_bytes, names: Sequence[str] | None = None, n_rows: int | None = None
) -> Iterator[Frame]:
    """The rows of a Parquet file, some at a time, or the first rows of each group of rows.

    Of ``names`` only these columns are read.
    """
    from pyarrow import Table

    with _opened_parquet(path) as file:
        columns = [
            name for name in file.schema_arrow.names if names is None or name.strip() in names
        ]
        start = 0
        for k in range(file.metadata.num_row_groups):
            longest = _sizes_of(file, [k], columns)[1]
            check_size(path, longest, max_bytes)
            most = min(_ROWS, max(16, _BATCH_BYTES // max(1, longest)))
            size, row = most if n_rows is None else min(n_rows, most), start
            batches: list = []
            for batch in chain(file.iter_batches(size, row_groups=[k], columns=columns), [None]):
                n_held, n_bytes = sum(map(len, batches)), sum(part.nbytes for part in batches)
                if n_held and (
                    batch is None or n_held >= (n_rows or _ROWS) or n_bytes > _BLOCK_BYTES
                ):
                    table = Table.from_batches(batches)
                    table.validate(full=True)
                    frame = _frame_of_arrow(path, table, row)
                    yield frame if n_rows is None else frame.copied()
                    row, batches = row + n_held, []
                    if n_rows is not None:
                        break
                batches.append(batch)
            start += file.metadata.row_group(k).num_rows


def _sizes_of(file, groups, names) -> tuple[int, int]:
    """The bytes of the numbers of columns, also of those in lists, and of their texts."""
    metadata, numbers, texts = file.metadata, 0, 0
    widths = [max(8, column.length) for column in file.schema]  # the length of fixed texts
    for k in groups:
        group = metadata.row_group(k)
        for place in range(group.num_columns):
            chunk = group.column(place)
            path = chunk.path_in_schema
            if names is not None and not any(path == n or path.startswith(f"{n}.") for n in names):
                continue
            numbers += chunk.num_values * widths[place]
            texts += chunk.total_uncompressed_size * (chunk.physical_type == "BYTE_ARRAY")
    return numbers, texts


def _read_arrow(path, file, max_bytes):
    """The table, as long as what it expands to stays within bounds.

    Repeated values take hardly any bytes in a file. Numbers, also those of lists, are counted
    before they are read. Texts are expanded some rows at a time, since no text is longer than all
    columns of texts are in the file, uncompressed.
    """
    from pyarrow import Table

    schema = file.schema_arrow
    numbers, longest = _sizes_of(file, range(file.metadata.num_row_groups), None)
    check_size(path, numbers, max_bytes)
    check_size(path, longest, max_bytes)
    size, batches = 0, []
    for batch in file.iter_batches(min(2**16, max(16, _BATCH_BYTES // max(1, longest)))):
        size += batch.nbytes
        check_size(path, size, max_bytes)
        batches.append(batch)
    return Table.from_batches(batches, schema=schema)


READERS = {
    "jsonl": _read_lines_of_json,
    "json": _read_json,
    "excel": _read_excel,
}
