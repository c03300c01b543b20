"""Labels of a file become those of its predictions, or an error names the ways to read them.

Samples without a value are left out: the message says how many.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple
from warnings import warn

import numpy as np
from scipy.special import expit

from skcal._labels import check_labels, read_shares
from skcal._show import listed
from skcal._validation import is_code, likely_codes
from skcal.cli.cells import LEAVE_OUT, is_likely_number, is_missing, is_whole, quoted, whole
from skcal.cli.columns import Columns
from skcal.cli.find import OF_PERCENT
from skcal.cli.names import is_known, words_of
from skcal.cli.problems import PERCENT, FileError
from skcal.cli.table import FileTable
from skcal.exceptions import InputError
from skcal.metrics.base import ROUNDING

_BINARY = ("0", "1")
_TRUE = ["1", "true", "t", "yes", "y", "right", "correct", "pass", "passed", "c", "accurate"]
_FALSE = ["0", "false", "f", "no", "n", "wrong", "incorrect", "fail", "failed", "i", "inaccurate"]
_PAIRS = list(zip(_FALSE, _TRUE, strict=True))
WRONG_RIGHT = np.array([0, 1])
_FEWEST = 20  # numbers from which on their scale is judged
_WIDE = 0.5  # range of probabilities, in which log-odds would not stay
_OFTEN = 30.0  # times the mean prediction that the rarer label happens
MOST_ROUNDED = 0.005  # of numbers of float16 beyond 0 and 1, by --normalize
_NEAR = 3.0  # the ratio of a rate to the mean of probabilities of that label
_FAR = 30  # a log-odds
_FEW_OTHERS = 4  # words beside those for right and wrong that a command names
_FEW = 0.1  # of the samples, by labels that an offered command leaves out
_THE_SAME = "If they are logarithms of probabilities, --log-probabilities gives the same."
_REMEDIES = {
    "logits": "If these are logits, pass --logits. Log-likelihoods of answers are logits, too.",
    "probabilities": "Leave --logits out.",
    "range": "Give probabilities. For percentages pass --percent, for logits --logits.",
    "rounding": f"--normalize is for rounded rows alone, sums within {ROUNDING} of 1. Give a "
    "column of probabilities for each class.",
    "rounded": "If that is rounding, pass --normalize.",
    "classes": "Every label must be the name of a column of probabilities.",
    "positive class": "Name the positive one by --pos-label.",
    "sum": "Give a column of probabilities for each class.",
    "multi-label": "Give one class for each sample, or name one label's columns by --score and "
    "--label.",
    "shape": "Save one label for each row of the predictions. An array of shares, with a column "
    "for each class, is named by --soft.",
    "dimensions": "Save a row for each sample, of one number or of a column for each class.",
}


@contextmanager
def errors_in_words_of(table: FileTable, options):
    """Let errors about arrays name the file's lines and columns, and what its owner can do."""
    try:
        yield
    except InputError as error:
        if error.argument == "y_proba":
            error.argument = "proba"
        remedy, more = _REMEDIES.get(error.kind), dict[str, Any]()
        numbers = table.numbers
        if error.kind == "integers":
            remedy = f"Are columns swapped, or are these predicted classes? {_REMEDIES['range']}"
        codes = _codes(numbers, options)
        of_row = error.argument == "proba" and error.row is not None
        if error.kind == "sum" and abs(numbers[error.row].sum() - 1) <= ROUNDING:
            remedy, more = "If it was rounded, pass --normalize.", {"normalize": True}
        elif of_row and np.isnan(numbers[error.row]).any():
            remedy, more = LEAVE_OUT, {"drop_missing": True}
        elif of_row and codes:
            code, reason, where = codes
            error = InputError("proba", reason, **where)
            remedy = f"If {code} marks missing values, pass --missing {code}."
            more = {"missing": [code]}
        elif of_row and _are_percentages(numbers):
            remedy, more = "If these are percentages, pass --percent.", {"scale": PERCENT}
        elif of_row and error.kind == "range" and _are_rounded(numbers):
            n = np.count_nonzero((numbers < 0) | (numbers > 1))
            remedy = f"{_REMEDIES['rounded']} {n:,} of {numbers.size:,} numbers are then set to 0 "
            remedy, more = f"{remedy}or 1.", {"normalize": True}
        elif error.kind == "log-probabilities":
            remedy, more = _logs(numbers)
        elif error.kind in ("logits", "rounded"):
            more = {{"rounded": "normalize"}.get(error.kind, error.kind): True}
            if error.kind == "logits" and (numbers <= 0).all():
                remedy = f"No number is above 0. {remedy} {_THE_SAME}"
        row = None if error.row is None else table.words_for_row(error.row)
        k = 0 if error.argument == "proba" and len(table.names) == 1 else error.column
        column = None if k is None else table.words_for_column(k)
        message = error.message(remedy, row, column)
        raise FileError(f"{table.path}: {message}", **more) from error


def _are_rounded(numbers: np.ndarray) -> bool:
    """Whether no number is farther outside [0, 1] than ``--normalize`` sets right."""
    return bool(np.nanmin(numbers) >= -MOST_ROUNDED and np.nanmax(numbers) <= 1 + MOST_ROUNDED)


def refuse_wrong_scale(table: FileTable, labels, options) -> None:
    """Raise where ``--logits`` or ``--percent`` is given beside probabilities of one column."""
    numbers = table.numbers
    single = numbers.dtype.kind in "fiu" and (numbers.ndim == 1 or numbers.shape[1] == 1)
    if not single or not (options.logits or options.scale == PERCENT):
        return
    codes = likely_codes(numbers)
    rest = numbers[~(np.isnan(numbers) | np.isin(numbers, list(codes)))]
    _, counts = np.unique(labels, return_counts=True)
    if len(rest) < _FEWEST or rest.min() < 0 or rest.max() > 1 or len(counts) < 2:
        _doubt_codes_of_logits(table, options)
        return
    option = "--logits" if options.logits else "--percent"
    if options.logits:
        are_others = bool(codes) or rest.max() - rest.min() > _WIDE
    else:
        rates, mean = counts / counts.sum(), rest.mean()
        fits = (np.abs(np.log(rates / max(mean, 1e-300))) < np.log(_NEAR)).any()
        is_named = OF_PERCENT.search("".join(table.names))  # of which both readings are shown
        are_others = not is_named and fits and rates.min() > _OFTEN * mean / options.scale
    if not are_others:
        return
    place = f"column {table.names[0]!r}" if table.names else "the array of predictions"
    beside = f", but for {', '.join(f'{code:g}' for code in codes)}" if codes else ""
    raise FileError(
        f"{table.path}: {place} is from {rest.min():.3g} to {rest.max():.3g}{beside}, as "
        f"probabilities are. Leave {option} out.",
        **({"logits": False} if options.logits else {"scale": 1.0}),
    )


def _doubt_codes_of_logits(table: FileTable, options) -> None:
    """Warn of numbers far from all others among log-odds, such as -99."""
    numbers = table.numbers[~np.isnan(table.numbers)]
    values, counts = np.unique(numbers[np.abs(numbers) >= _FAR], return_counts=True)
    if options.logits and 0 < len(values) <= 3 and not (values % 1).any() and counts.max() > 1:
        code = f"{values[counts.argmax()]:g}"
        warn(
            f"{table.path}: {counts.max():,} log-odds are {code}, and most are below {_FAR}. If "
            f"{code} marks missing values, pass --missing {code}.",
            stacklevel=2,
        )


def _logs(numbers: np.ndarray) -> tuple[str, dict[str, Any]]:
    """Both readings of a column without a number above 0."""
    as_logs, as_odds = np.nanmean(np.exp(numbers)), np.nanmean(expit(numbers))
    remedy = (
        "No number is above 0. If these are logarithms of probabilities, as language models give, "
        f"pass --log-probabilities: the mean prediction is then {as_logs:.3g}. If they are "
        f"log-odds, pass --logits: it is then {as_odds:.3g}."
    )
    return remedy, {"choices": [{"log_probabilities": True}, {"logits": True}]}


def _codes(numbers: np.ndarray, options) -> tuple[str, str, dict[str, int]] | None:
    """A number that seems to mark missing values, what is wrong with it, and its first place."""
    if numbers.dtype.kind not in "fiu" or options.logits or options.log_probabilities:
        return None
    written, most = np.round(numbers * options.scale, 9), options.scale
    codes = likely_codes(written, most)
    if not codes and most == 1:
        most, codes = PERCENT, likely_codes(written, PERCENT)
    if not codes or (most != options.scale and np.nanmedian(written) <= 1):
        return None
    code = next(iter(codes))
    what = "probability in [0, 1]" if most == 1 else f"number in [0, {most:g}]"
    reason = f"is {code:g}, not a {what}, as are {codes[code]:,} of {numbers.size:,} numbers."
    where = zip(("row", "column"), map(int, np.argwhere(written == code)[0]), strict=False)
    return f"{code:g}", reason, dict(where)


def _are_percentages(numbers: np.ndarray) -> bool:
    """Whether numbers from 0 to 100 look like percentages: most are above 1, or rows sum to 100."""
    known = numbers[~np.isnan(numbers)]
    if not known.size or known.min() < 0 or known.max() > PERCENT:
        return False
    if numbers.ndim == 2 and numbers.shape[1] > 1:
        with np.errstate(invalid="ignore"):
            return bool(np.median(np.abs(np.nansum(numbers, axis=1) - PERCENT)) < 5)
    return bool(np.median(known) > 1)


# Labels


def encode(table, proba, labels, classes, options, known, event) -> tuple[np.ndarray, np.ndarray]:
    """Labels, and the classes of the columns, of a single one (negative class, positive class)."""
    if proba.ndim == 1 and classes is None:
        if options.logits:
            table = table._replace(numbers=expit(table.numbers))
        labels, classes = _of_one_column(table, labels, options, known, event)
    if classes is not None and labels.dtype.kind == classes.dtype.kind == "U":
        what = f", which is not one of the classes {listed(classes.tolist())}."
        _refuse_others(table, labels, classes.tolist(), what, _REMEDIES["classes"])
    codes, classes = check_labels(labels, proba, classes, name="label", proba_name="proba")
    return classes[codes], classes


def of_classes(table: FileTable, labels: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """The classes that the labels of further rows name, or FileError for the first other one."""
    names = np.array(list(map(str, classes.tolist())))
    what = f", which is not one of the classes {listed(names.tolist())}."
    _refuse_others(table, labels, names.tolist(), what, _REMEDIES["classes"])
    order = np.argsort(names)
    return classes[order[np.searchsorted(names[order], labels)]]


def positive_last(classes: np.ndarray, pos_label) -> np.ndarray:
    """The classes, of which two have the positive one second, 1 or a word such as yes."""
    names = [str(name) for name in classes.tolist()]
    if pos_label is None:
        words = is_known("positive", names[0]) and is_known("negative", names[-1])
        is_first = names in (["1", "0"], ["1", "-1"]) or words
        return classes[::-1] if is_first and len(names) == 2 else classes
    pos_label = pos_label if pos_label in names else whole(pos_label)
    if len(names) != 2 or pos_label not in names:
        raise ValueError(f"--pos-label {pos_label!r} is not one of two classes: {listed(names)}.")
    return classes[:: 1 if pos_label == names[1] else -1]


def _of_one_column(table, labels, options, known, event):
    """Labels of a single column, and the classes where they are known."""
    pos_label, name = options.pos_label, table.names[0] if table.names else ""
    if known is not None and set(labels.tolist()) <= set(known.tolist()):
        pos_label = pos_label or (name if name == str(known[0]) else None)
        return labels, known[::-1] if pos_label == str(known[0]) else known
    if labels.dtype.kind == "U" and labels.ndim == 1 and pos_label is None and name != "0":
        happened = labels == "1"  # without a sort
        if (happened | (labels == "0")).all():
            return happened.astype(int), None
    present = np.unique(labels)
    if pos_label is not None or (labels.dtype.kind == "U" and _class_of(name, present.tolist())):
        if len(present) < 2:
            raise ValueError(
                f"--pos-label {pos_label!r} needs two labels, found {listed(present.tolist())}. "
                "Give samples of both."
            )
        if len(present) > 2:
            raise _several_classes(table, labels, present.tolist())
        return labels, positive_last(present, pos_label or _class_of(name, present.tolist()))
    if labels.dtype.kind != "U" or labels.ndim != 1:
        return labels, None
    _refuse_unclear(table, labels, event, options)
    return labels.astype(int), None


def _class_of(name: str, labels: list[str]) -> str | None:
    """The one of two labels that the name of a column holds, as ``p_yes`` does."""
    if len(labels) != 2 or (sorted(labels) == ["0", "1"] and name != "0"):
        return None
    if name in labels:
        return name
    parts = {part for part in re.split(r"[^\w]+|_", name.lower()) if part}
    named = [label for label in labels if not label.isdecimal() and label.lower() in parts]
    alone = len(named) == 1 and parts - {named[0].lower()} <= words_of("of probability")
    return named[0] if alone else None


def _refuse_unclear(table, labels, event, options) -> None:
    """Raise unless the labels of a single column are 0 and 1."""
    names = [text for text in dict.fromkeys(labels.tolist()) if not is_missing(text)]
    remedy = (
        "With a single column of probabilities labels must be 0 or 1; for other labels name the "
        "positive one by --pos-label."
    )
    if len({text.lower() for text in names}) < len(names):
        raise _two_spellings(table, names)
    others = {*np.unique(labels).tolist()} - {*names}
    if len(names) == len(others) == 1 and "" not in others:
        [other], [name] = others, names
        row = int(np.argmax(labels == other))
        raise FileError(
            f"{table.path}: label {table.words_for_row(row)} is {other!r}. If it is a class, pass "
            f"--pos-label {name!r}: {(labels == name).sum():,} events of {len(labels):,}. If it "
            f"marks missing labels, all others are {name!r}, and calibration needs labels of both "
            "classes.",
            pos_label=name,
        )
    if len(names) == 2 and set(names) != set(_BINARY):
        n, mean = sum(int((labels == text).sum()) for text in names), np.nanmean(table.numbers)
        counts = [f"--pos-label {x}: {(labels == x).sum():,} events of {n:,}" for x in names]
        likely = [text for text in names if is_known("positive", text)]
        is_clear = len(likely) == 1 and any(is_known("negative", text) for text in names)
        more: dict[str, Any] = {"choices": [{"pos_label": text} for text in names]}
        if event is not None:
            remedy += f" The predicted class is {event!r} wherever the score is above 0.5."
            more = {"pos_label": event}
        elif is_clear and not options.logits:  # scores may grow with either label
            more = {"pos_label": likely[0]}
        missing = np.array([is_missing(text) for text in labels.tolist()])
        row = int(np.argmax((labels != "0") & (labels != "1") & ~missing))
        place = f"{table.path}: label {table.words_for_row(row)} is {str(labels[row])!r}."
        shown = "; ".join(counts)
        raise FileError(f"{place} {remedy} {shown}; the mean prediction is {mean:.3g}.", **more)
    words = [text for text in names if not text.lstrip("+-").isdecimal()]
    known = words if len(words) == 2 else _BINARY
    others = {*names} - {*known}
    if len(names) > 2 and not ({*known} <= {*names} and all(_is_mark(x, known) for x in others)):
        raise _several_classes(table, labels, names)
    _refuse_others(table, labels, known, ".", remedy)


def _several_classes(table: FileTable, labels, names: Sequence[str]) -> FileError:
    """What a single column of probabilities may mean beside labels of more than two classes."""
    n, column = len(labels), repr(table.names[0]) if table.names else "of probabilities"
    counts = {x: int(np.sum(labels == x)) for x in names}
    shown = listed([f"{x!r} ({counts[x]:,} of {n:,})" for x in names])
    numbers = [x for x in names if is_likely_number(x)]
    if 2 * len(numbers) > len(names) and not all(map(is_whole, numbers)):
        return FileError(
            f"{table.path}: the labels are {shown}, amounts and not classes. No option makes an "
            "event of an amount: name by --label a column of 1 where the event happened and 0 "
            "where it did not."
        )
    rare = sorted(names, key=lambda x: -counts[x])[2:]
    if sum(counts[x] for x in rare) <= _FEW * n:
        dropped = " ".join(f"--drop-label {quoted(x)}" for x in rare)
        verb = "mark" if len(rare) > 1 else "marks"
        shown += f". If {listed(list(map(repr, rare)))} {verb} no outcome, pass {dropped}"
    return FileError(
        f"{table.path}: the labels are {shown}. The one column {column} cannot hold the "
        f"probabilities of {len(names):,} classes. Give a column of probabilities for each class. "
        f"If the column is the probability of one class (its mean is "
        f"{np.nanmean(table.numbers):.3g}), name by --label a column of 1 for that class and 0 for "
        "all others. If it is the probability of the class that another column names, name that "
        "one by --predicted. If a label marks missing ones, leave out its samples by --drop-label."
    )


def _two_spellings(table: FileTable, names: Sequence[str]) -> FileError:
    """Labels that differ in nothing but capitals."""
    first = next(text for text in names if [x.lower() for x in names].count(text.lower()) > 1)
    pair = [text for text in names if text.lower() == first.lower()][:2]
    return FileError(
        f"{table.path}: the labels {pair[0]!r} and {pair[1]!r} may be one label, written in two "
        "ways. Write each label in one way."
    )


def read_right(table: FileTable, labels: np.ndarray, right: str | None) -> np.ndarray:
    """1 of right answers and 0 of wrong ones, of any of the words for that, or of one word.

    Words of several pairs, such as C, I and N, are refused: N is no answer there, and no in y, n.
    """
    labels = labels.astype(str)
    words, codes = np.unique(labels, return_inverse=True)
    plain = [whole(word).lower() for word in words.tolist()]
    if right is not None:
        if whole(right).lower() not in plain:
            raise ValueError(
                f"--pos-label {right!r} is not one of the words {listed(words.tolist())}."
            )
        _refuse_others(
            table, labels, [word for word in words.tolist() if not is_missing(word)], "", ""
        )
        return np.array([text == whole(right).lower() for text in plain]).astype(int)[codes]
    held = [pair for pair in _PAIRS if not {*pair}.isdisjoint(plain)]
    both = [pair for pair in held if {*pair} <= {*plain}]
    pairs = both or held[:1]
    meant = {text: k for pair in pairs for k, text in enumerate(pair)}
    known = [word for word, text in zip(words.tolist(), plain, strict=True) if text in meant]
    others = [word for word in words.tolist() if word not in known and not is_missing(word)]
    remedy = (
        "Write 1 or 0, true or false, yes or no, right or wrong, correct or incorrect, pass or "
        "fail, C or I."
    )
    if known and others and len(others) <= _FEW_OTHERS:
        row = int(np.argmax(np.isin(labels, others)))
        shown = [word for word in known if meant[whole(word).lower()]] or ["C"]
        n, n_right = len(labels), int(np.isin(labels, shown).sum())
        n_others = int(np.isin(labels, others).sum())
        drop = " ".join(f"--drop-label {quoted(word)}" for word in others)
        raise FileError(
            f"{table.path}: label {table.words_for_row(row)} is {str(labels[row])!r}, neither "
            f"right nor wrong. {remedy} {n_others:,} of {n:,} labels are {listed(others)}. If "
            f"these answers are wrong, pass --pos-label {shown[0]!r}: then "
            f"{n_right / n:.3g} are right. To leave them out, pass {drop}: then "
            f"{n_right / (n - n_others):.3g} are.",
            choices=[{"pos_label": shown[0]}, {"drop_label": others}],
        )
    _refuse_others(table, labels, known, ", neither right nor wrong.", remedy)
    return np.array([meant[text] for text in plain])[codes]


def _refuse_others(
    table: FileTable, labels, known: Sequence[str], what: str, remedy: str, **more: Any
) -> None:
    """Raise where texts are not among the known labels, with what would leave out the others."""
    wrong = ~np.isin(labels, list(known))
    if not wrong.any():
        return
    row = int(np.argmax(wrong))
    label = str(labels[row])
    others = [text for text in dict.fromkeys(labels[wrong].tolist()) if not is_missing(text)]
    if {text.lower() for text in known} & {text.lower() for text in others}:
        raise _two_spellings(table, [*known, *others])
    if is_missing(label):
        remedy, more = LEAVE_OUT, {"drop_missing": True}
    elif _are_one_above([*known], {*labels.tolist()}):
        remedy += " The labels are one above the names of the columns. If they are the same "
        remedy += "classes, write the labels as the names of the columns."
    elif len(set(labels[~wrong].tolist())) > 1 and len(others) <= 5:
        how_many = f"{wrong.sum():,} of {len(wrong):,}"
        drop = " ".join(f"--drop-label {quoted(text)}" for text in others)
        if not all(_is_mark(text, known) for text in others):
            remedy += f" If samples of other labels, {how_many}, are of no class, leave them out "
            remedy += f"by {drop}."
        else:
            remedy += f" To leave out such samples, {how_many}, pass {drop}."
            more = {"drop_label": others} if wrong.mean() < _FEW else more
    place = f"{table.path}: label {table.words_for_row(row)}"
    raise FileError(f"{place} is {label!r}{what} {remedy}", **more)


def _is_mark(text: str, known: Sequence[str]) -> bool:
    """Whether a label is a word beside numbers, or a number such as -9 or 99 beside 0 and 1."""
    numbers = [int(name) for name in known if name.isdecimal()]
    if not text.lstrip("+-").isdecimal():
        return len(numbers) == len(known)
    return len(numbers) in (0, len(known)) and is_code(int(text), max(numbers, default=1))


def _are_one_above(known: list[str], labels: set[str]) -> bool:
    """Whether labels are 1, 2, … where columns are 0, 1, …."""
    if not all(text.isdecimal() for text in (*known, *labels)):
        return False
    return {int(text) - 1 for text in labels} <= set(map(int, known)) == set(range(len(known)))


def check_shares(proba, names, shares: FileTable, classes, options) -> str | None:
    """Refuse shares that do not suit the predictions; return the class of a single column."""
    with errors_in_words_of(shares, options):
        if read_shares(shares.numbers, proba, "shares", "proba") is None:
            raise InputError(
                "shares", f"have shape {shares.numbers.shape}.", "Give a column for each class."
            )
    if len(classes) != shares.numbers.shape[1]:
        raise ValueError(
            f"array 'classes' has {len(classes)} entries, that of shares {shares.numbers.shape[1]} "
            "columns. Save the class of each column, once."
        )
    pos_label = options.pos_label
    if proba.ndim == 1 and pos_label is None:
        known = [str(name) for name in classes.tolist()]
        pos_label = next((name for name in (*names, "1") if name in known), None)
        if pos_label is None or (pos_label == "1" and "0" not in known):
            raise ValueError(
                f"The single column of probabilities may be of either class, {listed(known)}. "
                f"{_REMEDIES['positive class']}"
            )
    return pos_label


class Lost(NamedTuple):
    """How many samples are left out, which add up.

    Attributes
    ----------
    samples : tuple of int
        How many are left out, and of how many.
    reasons : dict of str to int
    subgroups : dict of str to tuple of int
    """

    samples: tuple[int, int]
    reasons: Mapping[str, int]
    subgroups: Mapping[str, tuple[int, int]]

    def __str__(self):
        n, size = self.samples
        if not n:
            return "No sample is left out."
        whys = ", ".join(f"{count:,} {reason}" for reason, count in self.reasons.items() if count)
        text = f"{n:,} of {size:,} samples ({100 * n / size:.2g} %) are left out: {whys}."
        parts = [f"{name} {n:,} of {size:,}" for name, (n, size) in self.subgroups.items()]
        return f"{text} By subgroup: {listed(parts)}." if parts else text

    def plus(self, other: Lost) -> Lost:
        """Return the sums."""

        def add(one, two):
            return (one[0] + two[0], one[1] + two[1])

        names = dict.fromkeys([*self.subgroups, *other.subgroups])
        none = (0, 0)
        parts = {k: add(self.subgroups.get(k, none), other.subgroups.get(k, none)) for k in names}
        keys = dict.fromkeys([*self.reasons, *other.reasons])
        reasons = {k: self.reasons.get(k, 0) + other.reasons.get(k, 0) for k in keys}
        return Lost(add(self.samples, other.samples), reasons, parts)


NAMES_END = "\x1f"  # between the parts of a sample's name


class LeftOut(NamedTuple):
    """The samples of a file that are left out.

    Attributes
    ----------
    out : ndarray of bool of shape (n_rows,)
        Whether a row of the file is left out.
    reasons : dict of str to int
        Numbers of samples that are left out, by the reason.
    names : ndarray of str of shape (n_rows,)
        What a row is called, or its number.
    subgroups : dict of str to ndarray of shape (n_rows,)
        The columns of subgroups.
    """

    out: np.ndarray
    reasons: Mapping[str, int]
    names: np.ndarray
    subgroups: Mapping[str, np.ndarray]

    def __str__(self):
        return str(self.total)

    @property
    def total(self) -> Lost:
        """The numbers of samples."""
        parts: dict[str, tuple[int, int]] = {}
        for column, values in self.subgroups.items():
            names, codes = np.unique(values, return_inverse=True)
            lost = np.bincount(codes[self.out], minlength=len(names)).tolist()
            for name, n, size in zip(names.tolist(), lost, np.bincount(codes), strict=True):
                parts[f"{column} = {'missing' if name == '' else name}"] = n, size
        return Lost((int(np.count_nonzero(self.out)), len(self.out)), self.reasons, parts)

    def beside(self, other: LeftOut, name: str, other_name: str) -> LeftOut:
        """What is left out of this file where the other one lacks samples, too."""
        out = self.out | np.isin(self.names, other.names[other.out])
        reasons = {f"{why} in {name}": count for why, count in self.reasons.items()}
        reasons |= {f"{why} in {other_name}": count for why, count in other.reasons.items()}
        return self._replace(out=out, reasons=reasons)


def drops_missing(options) -> bool:
    """Whether options leave out samples without a prediction or a label."""
    return options.drop_missing or bool(options.missing)


def samples_left_out(columns: Columns, options, of_part: bool = False) -> LeftOut | None:
    """Find the rows without a prediction or a label, or with a label that is dropped.

    Numbers are NaN where one is missing. Return None if no option asks for that. A part of a file
    may lack a label that is dropped, and all of it may be left out.
    """
    if not (drops_missing(options) or options.drop_label or options.skip_unlabelled):
        return None
    table, outcomes = columns.table, columns.outcomes
    n, reasons = len(table.numbers), dict[str, int]()
    out = np.zeros(n, dtype=bool)

    def leave_out(rows, reason):
        reasons[reason] = int((rows & ~out).sum())
        out[rows] = True

    if drops_missing(options) and table.numbers.dtype.kind == "f":
        parts, what = [table.numbers], "a prediction"
        if isinstance(outcomes, FileTable):
            parts, what = [*parts, outcomes.numbers], "all predictions and shares"
        lost = [np.isnan(part).reshape(n, -1).any(axis=1) for part in parts]
        leave_out(np.any(lost, axis=0), f"without {what}")
    if not isinstance(outcomes, FileTable):
        texts = outcomes.astype(str)
        known = list(dict.fromkeys(texts.tolist()))
        if drops_missing(options) or options.skip_unlabelled:
            classes = [] if columns.classes is None else columns.classes.tolist()
            named = {*table.names, *map(str, classes)}
            absent = [text for text in known if is_missing(text) and text not in named]
            leave_out(np.isin(texts, absent), "without a label")
        for label in dict.fromkeys(options.drop_label):
            if label not in known and not of_part:
                raise FileError(
                    f"{table.path}: no sample has the label {label!r} of --drop-label (labels: "
                    f"{listed(known)}). Leave the option out."
                )
            leave_out(texts == label, f"labelled {label!r}")
    if out.all() and not of_part:
        raise FileError(
            f"{table.path}: each sample would be left out. Check the columns of predictions and "
            "labels."
        )
    ids = [columns.others[name] for name in options.id if name in columns.others]
    names = joined_names(ids) if ids else np.arange(n).astype(str)
    subgroups = {name: columns.others[name] for name in options.by if name in columns.others}
    return LeftOut(out, reasons, names, subgroups)


def joined_names(columns: Sequence[np.ndarray]) -> np.ndarray:
    """Join columns to one of text, (n_rows,)."""
    first, *others = [np.asarray(column).astype(str) for column in columns]
    for other in others:
        first = np.char.add(np.char.add(first, NAMES_END), other)
    return first
