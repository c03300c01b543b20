"""Which column holds what happened: the names in a header, and likely columns of labels."""

from __future__ import annotations

import re
from argparse import Namespace
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from skcal._show import listed
from skcal.cli.cells import Dialect, is_missing, is_whole, quoted
from skcal.cli.clusters import hints
from skcal.cli.find import MOST_CHOICES, Seeker
from skcal.cli.frames import FEW, Frame, all_names
from skcal.cli.names import is_known, looks_like, says_what_happened
from skcal.cli.problems import FileError

_SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabulators", "|": "bars", " ": "blanks"}
_CODE = re.compile(r"-?9{1,4}|-[1-9]")  # for missing labels
_MOST_SHOWN, _FEW_SHOWN, _MOST_LOOKED_AT = 12, 4, 500  # columns, and texts of one
ROUNDED = 0.01  # by which two rounded probabilities may sum to less than 1
_SURE = 20  # samples from which on scores say the labels
#: Ranks: named as labels; of labels that name columns; named as an outcome, or of the words that
#: were predicted; of 0 and 1 or yes and no; of two labels; of more; predicted.
_NAMED, _BY_COLUMNS, _OUTCOME, _PAIR, _TWO, _SEVERAL, _PREDICTED = range(7)


def ordered_names(frame: Frame) -> list[str]:
    """All names of columns, first those that can be labels, then those that can be scores."""

    def rank(name: str) -> int:
        if is_known("label", name):
            return 0
        kind = frame.kind(name) if len(frame.header) < 500 else "text"
        if kind in ("number", "text") and 2 <= frame.n_distinct(name) <= FEW:
            return 1
        return 2 if kind in ("number", "vector") else 3

    names = [name for name in dict.fromkeys(frame.header) if name]
    return sorted(names, key=rank)


def check_header(frame: Frame, options: dict[str, str], given: Namespace, dialect) -> None:
    """Raise unless every column has a name of its own, and those that options name are there."""
    path, place, header = frame.path, frame.place, frame.header
    if not any(header):
        raise FileError(
            f"{path}: {place} is empty. Give a header: the class of each column, and the column "
            "of labels."
        )
    sep = frame.sep or ","
    other = next((sign for sign in _SEPARATORS if sign != sep and sign in header[0]), None)
    if len(header) == 1 and other and not options.keys() <= set(header):
        option = {"\t": "tab"}.get(other, repr(other))
        raise FileError(
            f"{path}: {place} is one column. If {_SEPARATORS[other]} separate its fields, not "
            f"{_SEPARATORS.get(sep, repr(sep))}, pass --sep {option}.",
            sep=other,
        )
    if header[0].startswith("#") and not options.keys() <= set(header):
        raise FileError(f"{path}: {place} is {header[0]!r}, not a header. Delete that line.")
    for name, option in options.items():
        if name not in header:
            raise absent_column(frame, name, option, given, dialect)
    known: set[str] = set()
    for name in header:
        if not name and name not in options and name not in frame.aside:
            raise FileError(
                f"{path}: {place} has a column without a name. Pass --ignore '' if it numbers the "
                "rows.",
                ignore=[""],
            )
        if name in known:
            raise FileError(f"{path}: {place} names column {name!r} twice. Name each class once.")
        known.add(name)


def absent_column(frame: Frame, name: str, option: str, given, dialect) -> FileError:
    """Return the error for a missing column that an option names."""
    header, place = frame.header, f"{frame.path}: {frame.place}"
    remedy, offer = f"Name a column by {option}.", dict[str, Any]()
    numbers = [name for name in header if Dialect(decimal=dialect.decimal).is_number(name)]
    called = f"called column1 to column{len(header)}"
    if dialect.header and (len(numbers) == len(header) or not all(map(is_whole, numbers))):
        return FileError(
            f"{place} holds numbers where names of columns are expected, such as {numbers[-1]!r}. "
            f"If the file has no header, pass --header none; its columns are then {called}.",
            header="none",
        )
    named = [n for n in header if n and n not in frame.aside and frame.kind(n) == "text"]
    again = next((n for n in named if n in frame.few_labels(n)), "")  # as in a first sample
    if dialect.header and again and option == "--label":
        return FileError(
            f"{place} names a column {again!r}, which stands in its rows, too. If that line is a "
            f"sample, pass --header none; the columns are then {called}. If not, name the column "
            "of labels by --label.",
        )
    names = ordered_names(frame)
    if name == given.label and option == "--label":
        remedy, offer = _remedy_of_label(frame, given, dialect)
        remedy += "" if offer else hints(frame, names)
    elif "," in name and option == "--ignore":
        remedy = "Repeat --ignore for each column."
    text = f"{place} has no column {name!r} (columns: {all_names(names)}). {remedy}"
    return FileError(text, **offer)


def _remedy_of_label(frame: Frame, given: Namespace, dialect) -> tuple[str, dict[str, Any]]:
    """Return the remedy for a missing column of labels, and what an offered command names."""
    aside = {*given.ignore, given.score, given.predicted, *frame.aside}
    rest = [name for name in frame.header if name not in aside]
    remedy, start = "Name the column of labels by --label.", None
    if not any(is_known("label", name) for name in rest):
        start = _one_hot(frame, dialect)
    if start:
        how = f"If the columns {start}… hold 1 for the class that happened, pass --soft "
        return f"{remedy} {how}{quoted(start)}.", {"soft": start}
    whys, likely = _likely_labels(frame, rest, given, dialect)
    if not likely:
        remedy = f"If no column holds what happened, add one. {remedy}"
    if whys:
        shown = [f"{name!r} ({why})" for name, why in whys.items()]
        remedy += f" What happened may be in {listed(shown, _MOST_SHOWN)}."
    if len(likely) == len(whys) == 1:
        return remedy, {"label": likely[0]}
    if len(likely) > MOST_CHOICES:
        return remedy, {}
    return remedy, {"choices": [{"label": name} for name in likely]}


def _likely_labels(
    frame: Frame, rest: Sequence[str], options, dialect: Dialect
) -> tuple[dict[str, str], list[str]]:
    """Columns that may hold what happened, the likeliest first, with why, and the likely ones."""
    rest, numbers = rest if len(rest) < _MOST_LOOKED_AT else [], dict[str, np.ndarray]()
    seeker = Seeker(frame, [], None, {*frame.header} - {*rest}, options, dialect)
    for name in filter(seeker.is_in_unit, seeker.candidates()):
        with suppress(FileError):
            numbers[name] = seeker.numbers(name)
    read = {name: _as_outcome(frame, name, numbers) for name in rest if name not in numbers}
    found = {name: part for name, part in read.items() if part is not None}
    predicted = [words for rank, words, _ in found.values() if rank == _PREDICTED]
    ranks = {
        name: _OUTCOME if _BY_COLUMNS < rank < _PREDICTED and words in predicted else rank
        for name, (rank, words, _) in found.items()
    }
    best = max(_BY_COLUMNS, min(ranks.values(), default=0))
    best = {_PAIR: _TWO, _PREDICTED: -1}.get(best, best)  # since of two labels words say little
    whys = {name: found[name][2] for name in sorted(ranks, key=ranks.__getitem__)}
    return whys, [name for name in whys if ranks[name] <= best]


def _as_outcome(
    frame: Frame, name: str, numbers: dict[str, np.ndarray]
) -> tuple[int, set[str], str] | None:
    """The rank of a column, its labels and why it may hold what happened; None if it cannot."""
    texts = frame.few_labels(name)
    known = [text for text in texts if not _CODE.fullmatch(text)]
    texts = known if len(known) > 1 else texts
    if not texts or any(Dialect().is_number(text) and not is_whole(text) for text in texts):
        return None
    found = frame.labels(name).array()
    n_empty, words = np.sum(found == ""), {*texts}
    if len(texts) + (n_empty > 0) < 2:
        return None
    why = ", ".join(f"{text}: {np.sum(found == text):,}" for text in texts[:_FEW_SHOWN])
    why += ", …" * (len(texts) > _FEW_SHOWN) + f", empty: {n_empty:,}" * bool(n_empty)
    columns, is_predicted = _columns_of(found, texts, numbers)
    if columns:
        why += f"; named so are the columns {listed(columns)}"
    if is_predicted or looks_like("predicted", name):
        why += "; as the scores say in each row" if is_predicted else "; named as predictions"
        return _PREDICTED, words, why
    last = name.rpartition(".")[2]  # of a field of an object
    is_pair = words == {"0", "1"} or any(is_known("negative", text) for text in texts)
    ranks = {
        _NAMED: is_known("label", last) and name.lower() not in ("label", "class"),
        _BY_COLUMNS: bool(columns),
        _OUTCOME: says_what_happened(name),
        _PAIR: len(texts) == 1 or (len(texts) == 2 and is_pair),
        _TWO: len(texts) == 2,
        _SEVERAL: True,
    }
    return next(rank for rank, is_so in ranks.items() if is_so), words, why


def _columns_of(found, texts, numbers: dict[str, np.ndarray]) -> tuple[list[str], bool]:
    """Columns of probabilities that labels name, and whether scores alone say the labels."""
    columns, is_said, marks = list[str](), False, np.isin(found, texts)
    for part in Seeker.patterns(list(numbers), texts).values():
        if 1 < len(part) == len(texts):
            rows = np.column_stack([numbers[part[text]] for text in texts])[marks]
            rows = np.where(np.isnan(rows), 0.0, rows)
            if np.mean(np.abs(rows.sum(axis=1) - 1) < ROUNDED) > 0.5:
                columns = columns or [part[text] for text in texts]
                same = np.array(texts)[rows.argmax(axis=1)] == found[marks]
                is_said |= len(same) >= _SURE and same.mean() > 1 - ROUNDED
    for values in numbers.values() if len(texts) == 2 else ():
        with np.errstate(invalid="ignore"):
            marks = np.isin(found, texts) & (values >= 0) & (values <= 1)
        first, second = (values[marks & (found == text)] for text in texts)
        if len(first) and len(second) and marks.sum() >= _SURE and np.ptp(values[marks]) > 0:
            is_said |= bool(first.min() >= second.max() or second.min() >= first.max())
    return columns, is_said


def _one_hot(frame: Frame, dialect: Dialect) -> str | None:
    """Return the prefix of one-hot columns beside others of the same endings, if there are any."""
    names = [name for name in frame.header if frame.kind(name) == "number"]
    if not 4 <= len(names) <= 200:
        return None
    found = set()
    for start in {name[:k] for name in names for k in range(1, len(name))}:
        ends = [name.removeprefix(start) for name in names if name.startswith(start)]
        ends = [end for end in ends if end]
        if len(ends) < 2 or 2 * len(ends) > len(names):
            continue
        hot = np.column_stack([frame.numbers(f"{start}{end}", dialect) for end in ends])
        if not (np.isin(hot, (0, 1)).all() and (hot.sum(axis=1) == 1).all()):
            continue
        others = [name for name in names if not name.startswith(start)]
        if all(any(name.endswith(end) for name in others) for end in ends):
            found.add(start)
    return max(found, key=len) if found else None


def refuse_two_columns_of_labels(frame: Frame, label, distinct, aside, options) -> None:
    """Raise where ``label``, which no option names, may be what was predicted."""
    if options.correct is not None or options.predicted is not None:
        return
    if "label" in getattr(options, "given", ()):
        return
    for name in frame.header:
        is_plain = name.lower() in ("label", "labels", "class")
        if is_plain or name in aside or not is_known("label", name):
            continue
        texts, which = frame.few_labels(name), f"{frame.path}: the columns {label!r} and {name!r}"
        if set(texts) == set(distinct):
            raise FileError(
                f"{which} hold the same labels. Name the one that holds what happened by --label; "
                "if the other is what was predicted, and the score its probability, name that by "
                "--predicted.",
                choices=[{"label": name}, {"label": label}],
            )
        if not len(texts) == len(distinct) > 1:
            continue
        pairs = {*zip(*(frame.labels(x).array().tolist() for x in (label, name)), strict=True)}
        known = [pair for pair in pairs if not any(map(is_missing, pair))]
        if len(known) > len(texts):  # else these are two names of each label
            raise FileError(
                f"{which} hold {len(texts)} labels each, and differ. One may be what was "
                "predicted. Name the one that holds what happened by --label."
            )
