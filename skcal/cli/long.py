"""Tables with a row for each sample and class become tables with a row for each sample."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from skcal._show import listed
from skcal.cli.cells import Dialect, whole
from skcal.cli.frames import Frame, RowsOf
from skcal.cli.problems import PERCENT, FileError
from skcal.metrics.base import ROUNDING

_FIRST = 1000  # rows by which a column of probabilities is known
_MOST_CLASSES = 200
_FEWEST = 5  # samples
_MOST = 0.9  # of the samples, whose probabilities sum to 1
_HOT = frozenset(["0", "1", "true", "false"])


class _Long(NamedTuple):
    """The columns of probabilities and of classes, what names the samples, and their numbers."""

    score: str
    classes: str
    key: str | None
    codes: np.ndarray


def by_sample(frame: Frame, options) -> Frame:
    """The table with a row for each sample, if it has one for each sample and class; else itself.

    It has if in nearly each sample the classes differ and their probabilities sum to 1. A column
    names the samples, or their rows stand one below the other. Probabilities become objects of
    class and number, and a column that is 1 in one row of each sample becomes its class.
    """
    key = "by sample", id(frame), options.score, options.label, options.scale, options.decimal
    if key not in options.frames:
        found = list(_readings(frame, options))
        scores = list(dict.fromkeys(long.score for long in found))
        if len(scores) > 1:
            raise FileError(
                f"{frame.path}: the table has a row for each sample and class, and columns "
                f"{listed(scores, len(scores))} of probabilities. Name one by --score.",
                choices=[{"score": name} for name in scores],
            )
        read = (_of_samples(frame, long, options) for long in found)
        wide = [pair for pair in read if pair is not None]
        best = max(wide, key=lambda pair: pair[0], default=(None, frame))
        options.frames[key] = best[1]
    return options.frames[key]


def _readings(frame: Frame, options) -> Iterator[_Long]:
    """What the columns may be, the first key of each pair of columns."""
    n = len(frame)
    if n < 2 * _FEWEST or len(frame.header) != len({*frame.header}):
        return
    scores, values = list[str](), dict[str, np.ndarray]()
    for name in frame.header if options.score is None else [options.score]:
        if name in frame.header and _is_score(frame, name, options):
            scores.append(name)
    given = options.label if "label" in getattr(options, "given", ()) else None
    if not scores:
        return
    codes = {
        name: frame.codes(name)
        for name in frame.header
        if name not in scores and frame.kind(name) in ("text", "number")
    }
    known = {name: int(part.max()) + 1 for name, part in codes.items() if part.min() >= 0}
    for score in scores:
        sums_to_1 = False
        for classes, n_classes in known.items():
            if classes == given or not 2 <= n_classes <= min(_MOST_CLASSES, n // _FEWEST):
                continue
            for key, part in _keys(codes, known, classes, n):
                if score not in values:
                    values[score] = _numbers(frame, score, options)
                if _are_rows(part, values[score]):
                    sums_to_1 = True
                    yield _Long(score, classes, key, part)
                    break
        if not sums_to_1 and options.score is None:
            return  # of which the score may be another column


def _keys(codes, known, classes: str, n: int) -> Iterator[tuple[str | None, np.ndarray]]:
    """Columns in each value of which all classes differ; None is rows one below the other."""
    n_classes = known[classes]
    for key, n_keys in known.items():
        if key != classes and n / n_classes <= n_keys <= n / 2 and n_keys >= _FEWEST:
            pairs = codes[key].astype(np.int64) * n_classes + codes[classes]
            if len(np.unique(pairs)) == n:
                yield key, codes[key]
    if n % n_classes == 0 and n >= _FEWEST * n_classes:
        blocks = np.sort(codes[classes].reshape(-1, n_classes), axis=1)
        if (blocks == np.arange(n_classes)).all():
            yield None, np.arange(n) // n_classes


def _is_score(frame: Frame, name: str, options) -> bool:
    """Whether the first numbers of a column may be probabilities, or what was asked for."""
    if frame.kind(name) != "number":
        return False
    try:
        numbers = _numbers(frame, name, options, _FIRST)
    except FileError:
        return False
    known = numbers[~np.isnan(numbers)]
    inside = len(known) and known.min() >= 0 and known.max() <= PERCENT
    return bool(inside and (known % 1 > 0).any())


def _numbers(frame: Frame, name: str, options, most: int | None = None) -> np.ndarray:
    """Numbers of a column, as probabilities."""
    dialect = Dialect(decimal=options.decimal, missing=True, percent=True, codes=options.missing)
    numbers = frame.numbers(name, dialect, most)
    return np.exp(numbers) if options.log_probabilities else numbers


def _are_rows(codes: np.ndarray, numbers: np.ndarray) -> bool:
    sums = np.bincount(codes, np.nan_to_num(numbers))
    near = [np.abs(sums - total) <= ROUNDING * total for total in (1, PERCENT)]
    return max(part.mean() for part in near) >= _MOST


def _of_samples(frame: Frame, long: _Long, options) -> tuple[tuple[bool, bool], Frame] | None:
    """How well a reading suits the other columns, and the table of samples."""
    import pandas

    order = np.argsort(long.codes, kind="stable")
    starts = np.flatnonzero(np.diff(long.codes[order], prepend=-1))
    first = order[starts]
    names = np.array([whole(text.strip()) for text in frame.texts(long.classes).values])
    names = names[np.asarray(frame.texts(long.classes).codes)]
    numbers = _numbers(frame, long.score, options)
    if options.log_probabilities:
        numbers = np.log(numbers)
    columns, unread, says_class = dict[str, Any](), list[str](), False
    for name in frame.header:
        if name == long.score:
            ends = [*starts[1:].tolist(), len(order)]
            columns[name] = [
                dict(zip(names[order[a:b]].tolist(), numbers[order[a:b]].tolist(), strict=True))
                for a, b in zip(starts.tolist(), ends, strict=True)
            ]
        elif name != long.classes:
            values = frame.codes(name)[order]
            ends_of = [end.reduceat(values, starts) for end in (np.minimum, np.maximum)]
            if (ends_of[0] == ends_of[1]).all():
                columns[name] = frame.cells(name)[first]
                texts = {whole(text.strip()) for text in frame.texts(name).values}
                says_class |= len(texts) > 1 and texts <= {*names.tolist()} and name != long.key
            elif (hot := _hot(frame, name, order, starts)) is not None:
                columns[name], says_class = names[hot], True
            else:
                unread.append(name)
    if not says_class and long.classes == options.label:
        return None
    which = "these stand one below the other"
    which = which if long.key is None else f"column {long.key!r} names the sample"
    notes = [
        *frame.notes,
        f"Each of {len(first):,} samples has a row for each class: {which}, column "
        f"{long.classes!r} names the class, and column {long.score!r} holds its probability.",
    ]
    if unread:
        notes.append(f"Columns that differ in the rows of a sample are not read: {listed(unread)}.")
    header = list(columns)
    cells = pandas.DataFrame({k: columns[name] for k, name in enumerate(header)}, dtype=object)
    wide = RowsOf(frame, header, cells, first, notes)
    wide.aside, wide.is_ordered = frame.aside & {*header}, False
    return (says_class, frame.kind(long.classes) == "text"), wide


def _hot(frame: Frame, name: str, order, starts) -> np.ndarray | None:
    """The row of each sample in which a column is 1, and 0 in its others; None of other columns."""
    texts = frame.texts(name)
    values = [whole(text.strip()).lower() for text in texts.values]
    if len(values) != 2 or not {*values} <= _HOT:
        return None
    is_one = np.isin(np.array(values)[np.asarray(texts.codes)], ("1", "true"))[order]
    ones = order[is_one]
    return ones if (np.add.reduceat(is_one.astype(int), starts) == 1).all() else None
