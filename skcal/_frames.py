"""Data frames, which the core does without."""

from __future__ import annotations

from typing import Any


def import_pandas():
    """The module pandas, or an error that says how to install it."""
    try:
        import pandas
    except ImportError as error:
        raise ImportError("to_frame() needs pandas: pip install 'skcal[pandas]'.") from error
    return pandas


def decoded(values: Any) -> Any:
    """The values of an Arrow column, or table, in place of codes of dictionaries; else the input.

    numpy reads a null among the codes of a column in chunks as the last value.
    """
    kind: Any = getattr(values, "type", None)
    if type(kind).__name__ == "DictionaryType":
        return values.cast(kind.value_type)
    schema: Any = getattr(values, "schema", None)
    if type(schema).__module__ != "pyarrow.lib":
        return values
    for k, field in enumerate(schema):
        if type(field.type).__name__ == "DictionaryType":
            values = values.set_column(k, field.name, decoded(values.column(k)))
    return values
