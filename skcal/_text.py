"""Numbers and tables as text, alike in summaries, reports and the command line."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

# What moves a terminal's cursor, writes from right to left, is not seen, or is no character.
_CONTROLS = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]"
)


def printable(text: str) -> str:
    """The text with control characters, which names from outside may hold, escaped."""
    return _CONTROLS.sub(lambda match: ascii(match[0])[1:-1], text)


def as_json(data: Any, indent: int | None = 2) -> str:
    """Strict JSON; control characters are escaped, others stand as they are."""
    text = json.dumps(data, indent=indent, allow_nan=False, ensure_ascii=False)
    return _CONTROLS.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def read_json(text: str | bytes) -> Any:
    """What strict JSON says; ValueError for anything else, such as NaN and infinity."""
    return json.loads(text, parse_constant=_refuse_constant)


def _refuse_constant(name):
    raise ValueError(f"{name} is no number of JSON")


def number(value: float | None, decimals: int = 4) -> str:
    """Fixed decimals, or two digits of what is smaller; a dash for None."""
    if value is None:
        return "–"
    fixed = value == 0 or abs(value) >= 10.0 ** (1 - decimals)
    return f"{value:.{decimals}f}" if fixed else f"{value:.1e}"


def percent(level: float) -> str:
    """``95 %``."""
    return f"{100 * level:g} %"


def as_columns(table: Sequence[Sequence[str]], sides: str = "") -> list[str]:
    """Align a table of text; ``sides`` has < or > a column, by default the first is left."""
    sides = sides or "<" + ">" * (len(table[0]) - 1)
    widths = [max(len(row[k]) for row in table) for k in range(len(table[0]))]
    return [
        "  ".join(
            f"{cell:{side}{width}}" for cell, side, width in zip(row, sides, widths, strict=True)
        ).rstrip()
        for row in table
    ]
