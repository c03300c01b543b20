"""Numbers, names and sentences as text."""

from __future__ import annotations

import json
import math
import os
import re
import shlex
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import fields, is_dataclass
from typing import Any, NamedTuple

import numpy as np

from skcal._running import carried

_TEXT_WIDTH = 100  # of text
_NARROW_COLUMN = 40  # what a wrapped column has at least
_NAMED, _NAMED_ABOVE = 6, 25  # on each side of a limit, and above it
#: What the verdict on an error says before the limit, first the one that decides for all.
VERDICTS = {
    "above": "significantly above",
    "unknown": "not significantly below or above",
    "below": "significantly below",
}
# What moves a terminal's cursor, writes from right to left, is not seen, or is no character.
_CONTROLS = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]"
)


def printable(text: str) -> str:
    """The text with control characters, which names from outside may hold, escaped."""
    return _CONTROLS.sub(lambda match: ascii(match[0])[1:-1], text)


class _Command(NamedTuple):
    only: Sequence[str] = ()
    by: str = "COLUMN"


_ON_COMMAND_LINE = carried(ContextVar[_Command | None]("on_command_line", default=None))


@contextmanager
def on_command_line(only: Sequence[str] = (), by: str = "COLUMN") -> Iterator[None]:
    """Let sentences that are made in the block name options and commands, not arguments.

    The command reads ``only`` the rows with these values, such as "country=DE". Subgroups that it
    does not compare are named ``by`` a column; "" is for commands that compare them.
    """
    token = _ON_COMMAND_LINE.set(_Command(only, by))
    try:
        yield
    finally:
        _ON_COMMAND_LINE.reset(token)


def worded(python: str, command: str) -> str:
    """What a sentence says to who calls functions, and to who runs commands."""
    return python if _ON_COMMAND_LINE.get() is None else command


def only(values: Sequence[str]) -> str:
    """The options of a command for rows of these values, as far as this command reads them."""
    columns = [value.partition("=")[0] for value in values]
    command = _ON_COMMAND_LINE.get() or _Command()
    kept = [one for one in command.only if one.partition("=")[0] not in columns]
    return " ".join(worded("", f"--only {shlex.quote(one)}") for one in [*kept, *values])


def not_compared() -> str:
    """That subgroups were not compared, and what compares them; "" of commands that did."""
    by = (_ON_COMMAND_LINE.get() or _Command()).by
    compare = worded("by= compares them", f"report --by {shlex.quote(by)} compares them")
    return f"Subgroups were not compared; {compare}." if by else ""


_SPOKEN_NAMES = {"Zero": "No error", "Identity": "No change"}


def method_name(name: str) -> str:
    """The name of a class, on the command line in words: ``Temperature scaling``."""
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name)
    return worded(name, _SPOKEN_NAMES.get(name, words[:1] + words[1:].lower()))


def as_json(data: Any, indent: int | None = 2) -> str:
    """Strict JSON in ASCII, which terminals and files of any encoding hold."""
    return json.dumps(data, indent=indent, allow_nan=False)


def as_data(value: Any) -> Any:
    """Dicts, lists, strings and finite numbers, as JSON holds them; None for what is not known.

    A result that shows other parts than its fields has a method ``_data``, which returns them.
    """
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, np.ndarray):
        return as_data(value.tolist())
    if hasattr(value, "_data"):
        return as_data(value._data())
    if isinstance(value, list | tuple):
        return [as_data(part) for part in value]
    if isinstance(value, dict):
        return {name: as_data(part) for name, part in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        return as_data({part.name: getattr(value, part.name) for part in fields(value)})
    return value


def listed(names: Sequence, most: int = 12) -> str:
    """Return the first names, and how many more there are; not "1 more", but its name."""
    most += len(names) == most + 1
    more = f", … {len(names) - most} more" if len(names) > most else ""
    return (", ".join(map(str, names[:most])) or "none") + more


def number(value: float | None, decimals: int = 4) -> str:
    """Fixed decimals, or two digits of what is smaller; a dash for None."""
    if value is None:
        return "–"
    fixed = value == 0 or abs(value) >= 10.0 ** (1 - decimals)
    return f"{value:.{decimals}f}" if fixed else f"{value:.1e}"


def percent(level: float) -> str:
    """``95 %``."""
    return f"{100 * level:g} %"


def plain(value):
    """A number of numpy as one of Python, whose text holds nothing but digits."""
    return value.item() if isinstance(value, np.generic) else value


_TINY_NUMBER, _HUGE = 1e-6, 1e6  # numbers that are shown with an exponent
_SAYS_NOTHING = 1e-3  # of an estimate


def plain_number(value: float) -> str:
    """Three decimals, or two digits of what is below 0.01 or huge: 0.138, 0.0042, 1.7e-98."""
    return f"{value:.3f}" if value == 0 or 0.01 <= abs(value) < _HUGE else significant(value)


def significant(value: float, digits: int = 2) -> str:
    """So many digits, with an exponent only where there would be long rows of zeros."""
    if 0 < abs(value) < _TINY_NUMBER or _HUGE <= abs(value) < math.inf:
        return f"{value:.{digits - 1}e}"
    text = np.format_float_positional(value, digits, unique=False, fractional=False)
    return text.rstrip(".") if math.isfinite(value) else str(value)


def beside_limit(value: float, limit: float, shown: Callable[[float], str] = plain_number) -> str:
    """A value, with more digits where rounding would move it to the other side of a limit."""
    text, digits = shown(value), 3
    while (float(text) <= limit) != (value <= limit):
        text, digits = significant(value, digits), digits + 1
    return text


def says_above_0(low: float, estimate: float) -> bool:
    """Whether a lower limit says no more of an estimate than that it is above 0."""
    return 0 < low < _SAYS_NOTHING * estimate


def sides_of_limit(verdicts: Sequence[tuple[str, str]], limit: float) -> str:
    """``above 0.05 in a; undecided in b; below 0.05 in c``, of names and their verdicts."""
    sides = f"above {limit:g} in", "undecided in", f"below {limit:g} in"
    named = [[name for name, one in verdicts if one == verdict] for verdict in VERDICTS]
    most = _NAMED_ABOVE, _NAMED, _NAMED
    return "; ".join(
        f"{side} {listed(names, n)}"
        for side, names, n in zip(sides, named, most, strict=True)
        if names
    )


def about(value: float, limit: float) -> str:
    """``about 0.013``, of no more decimals than its limit has."""
    return f"about {value:.{len(plain_number(limit).partition('.')[2])}f}"


_SMALLEST_PVALUE = 1e-300  # p-value of a limit law that floating point can tell from 0


def pvalue_text(value: float, smallest: float = 1e-4) -> str:
    """``p = 0.012``; ``p ≤ 0.001`` where no smaller p-value is possible or told."""
    shown = pvalue_number(value, smallest)
    return f"p {'' if shown.startswith('≤') else '= '}{shown}"


def pvalue_number(value: float, smallest: float = 0.0) -> str:
    """Two digits, or more where these would move it to the other side of 5 %; never 0.

    What is at most the smallest p-value that is possible is ``≤ 0.001``.
    """
    smallest = max(smallest, _SMALLEST_PVALUE)
    sign, shown = ("≤ ", smallest) if value <= smallest * (1 + 1e-9) else ("", value)
    return sign + beside_limit(shown, 0.05 + 1e-12, "{:.2g}".format)


def share(value: float) -> str:
    """A probability in percent, of two digits: ``31 %``, ``1.2 %``; only 1 itself is ``100 %``."""
    text = f"{100 * value:.1f}" if abs(value) < 0.0995 else f"{100 * value:.0f}"
    if text == "100" and value < 1:
        left = 100 * (1 - value)
        text = (
            f"{100 * value:.{math.ceil(-math.log10(left))}f}" if left >= 1e-4 else "just below 100"
        )
    if 0 < abs(value) < 0.001:
        text = f"{100 * value:.1g}" if abs(value) >= 1e-6 else "less than 0.0001"
    return f"{text.removesuffix('.0')} %"


def rounded(value) -> str:
    """Four significant digits of a number, of several with their names; a dash for None and NaN."""
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        value = dict(zip(value._fields, value, strict=True))
    if isinstance(value, dict):
        return ", ".join(f"{name} {rounded(part)}" for name, part in value.items())
    if value is None:
        return "–"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.4g}" if value == value else "–"


def one_line(text, width: int = 60) -> str:
    """Text on one line; what does not print is replaced, the middle of what is longer left out."""
    text = " ".join(str(text).split())
    text = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
    if len(text) <= width:
        return text
    end = width // 3
    return text[: width - 1 - end] + "…" + text[-end:]


def cut_apart(texts: Iterable, width: int = 60) -> list[str]:
    """Texts on one line, cut so that two that differ do not look alike.

    Names that :func:`one_line` would make equal lose the start that they share.
    """
    whole = [one_line(text, sys.maxsize) for text in texts]
    shown = {text: one_line(text, width) for text in whole}
    for group in _alike(shown):
        start = os.path.commonprefix(group)  # noqa: RUF071 - names are no paths
        start = start[: max(map(start.rfind, " _")) + 1] or start
        rests = cut_apart([text[len(start) :] for text in group], max(width - 1, 3))
        for text, rest in zip(group, rests, strict=True):
            shown[text] = f"{start[: max(width - 1 - len(rest), 0)]}…{rest}"
    while more := [text for group in _alike(shown) for text in group if shown[text] != text]:
        shown |= dict(zip(more, more, strict=True))
    return [shown[text] for text in whole]


def _alike(shown: dict[str, str]) -> list[list[str]]:
    """The texts that are shown as the same, in groups of at least two."""
    groups: dict[str, list[str]] = {}
    for text, cut in shown.items():
        groups.setdefault(cut, []).append(text)
    return [group for group in groups.values() if len(group) > 1]


def broken(text: str, width: int) -> str:
    """Text in lines of at most so many letters, which end at blanks or underscores if they can."""
    lines = [""]
    for part in re.findall(r"[^ _]*[ _]|[^ _]+", text):
        if len(lines[-1]) + len(part.rstrip(" ")) > width and lines[-1]:
            lines.append("")
        while len(part.rstrip(" ")) > width:
            lines[-1:], part = [part[:width], ""], part[width:]
        lines[-1] += part
    return "\n".join(line.rstrip(" ") for line in lines)


def stated(sentence: str) -> str:
    """A sentence with a capital and a full stop, as it stands alone."""
    return f"{sentence[0].upper()}{sentence[1:]}{'' if sentence.endswith('.') else '.'}"


def wrapped(text: str, first: str = "", others: str = "") -> str:
    """Text in lines of at most 100 columns, behind what starts the first and the other lines."""
    width = max(_TEXT_WIDTH, len(first) + _NARROW_COLUMN)
    text = " ".join(text.split())
    return textwrap.fill(text, width, initial_indent=first, subsequent_indent=others)


_LATEX = {
    "\\": r"\textbackslash{}",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "≤": r"$\le$",
    "≥": r"$\ge$",
    "±": r"$\pm$",
    "−": "$-$",
    "∞": r"$\infty$",
    "–": "--",
    "…": r"\dots{}",
}


def tex(text: str) -> str:
    """Text as LaTeX prints it; two spaces in front indent it."""
    words = printable(" ".join(text.split()))
    escaped = "".join(_LATEX.get(sign, sign) for sign in words)
    return rf"\quad {escaped}" if text.startswith("  ") else escaped


def import_pyplot():
    """The module matplotlib.pyplot, or an error that says how to install it."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("Displays need matplotlib: pip install matplotlib.") from error
    return plt


def import_pandas():
    """The module pandas, or an error that says how to install it."""
    try:
        import pandas
    except ImportError as error:
        raise ImportError("to_frame() needs pandas: pip install pandas.") from error
    return pandas
