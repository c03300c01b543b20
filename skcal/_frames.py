"""Data frames, which the core does without."""

from __future__ import annotations


def import_pandas():
    """The module pandas, or an error that says how to install it."""
    try:
        import pandas
    except ImportError as error:
        raise ImportError("to_frame() needs pandas: pip install 'skcal[pandas]'.") from error
    return pandas
