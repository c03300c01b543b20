"""Numbers and tables as text, alike in summaries, reports and the command line."""

from __future__ import annotations

from collections.abc import Sequence


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
