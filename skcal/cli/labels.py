"""Labels of a file become those of its predictions, or an error names the ways to read them.

Samples without a value are left out: the message says how many.
"""

from __future__ import annotations

import re
from collections import Counter
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
from skcal.cli.names import RIGHT_WRONG, is_known, looks_like, words_of
from skcal.cli.problems import PERCENT, FileError
from skcal.cli.table import FileTable
from skcal.exceptions import InputError
from skcal.metrics.base import ROUNDING

_BINARY = ("0", "1")
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
_RANGE = "Give probabilities. For percentages pass --percent, for logits --logits."
_REMEDIES = {
    "logits": "If these are logits, pass --logits. Log-likelihoods of answers are logits, too.",
    "probabilities": "Leave --logits out.",
    "range": _RANGE,
    "integers": f"Are columns swapped, or are these predicted classes? {_RANGE}",
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
        argument = "proba" if error.argument == "y_proba" else error.argument
        of_row = argument == "proba" and error.row is not None
        error, remedy, more = _with_remedy(error, of_row, table.numbers, options)
        row = None if error.row is None else table.words_for_row(error.row)
        k = 0 if argument == "proba" and len(table.names) == 1 else error.column
        column = None if k is None else table.words_for_column(k)
        message = error.message(remedy, row, column, argument)
        raise FileError(f"{table.path}: {message}", **more) from error


def _with_remedy(error, of_row: bool, numbers, options) -> tuple[InputError, str | None, dict]:
    """The error, or a plainer one, what the owner of a file can do, and options that do it."""
    kind, remedy = error.kind, _REMEDIES.get(error.kind)
    if kind == "sum" and abs(numbers[error.row].sum() - 1) <= ROUNDING:
        return error, "If it was rounded, pass --normalize.", {"normalize": True}
    if of_row and np.isnan(numbers[error.row]).any():
        return error, LEAVE_OUT, {"drop_missing": True}
    if of_row and (found := _likely_code(numbers, options)) is not None:
        code, error = found
        remedy = f"If {code} marks missing values, pass --missing {code}."
        return error, remedy, {"missing": [code]}
    if of_row and _are_percentages(numbers):
        return error, "If these are percentages, pass --percent.", {"scale": PERCENT}
    if of_row and kind == "range" and np.nanmax(np.abs(numbers - 0.5)) <= 0.5 + MOST_ROUNDED:
        n = np.count_nonzero((numbers < 0) | (numbers > 1))
        how = f"{n:,} of {numbers.size:,} numbers are then set to 0 or 1."
        return error, f"{_REMEDIES['rounded']} {how}", {"normalize": True}
    if kind == "log-probabilities":
        return error, *_logs(numbers)
    if kind == "logits" and (numbers <= 0).all():
        remedy = f"No number is above 0. {remedy} {_THE_SAME}"
    option = {"logits": "logits", "rounded": "normalize"}.get(kind)
    return error, remedy, {option: True} if option else {}


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
        is_named = looks_like("percent", "".join(table.names))  # both readings are shown
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


def _likely_code(numbers: np.ndarray, options) -> tuple[str, InputError] | None:
    """A number that seems to mark missing values, and what is wrong with it at its first place."""
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
    return f"{code:g}", InputError("proba", reason, **dict(where))


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
        _refuse_others_than_classes(table, labels, classes.tolist())
    codes, classes = check_labels(labels, proba, classes, name="label", proba_name="proba")
    return classes[codes], classes


def of_classes(table: FileTable, labels: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """The classes that the labels of further rows name, or FileError for the first other one."""
    names = np.array(list(map(str, classes.tolist())))
    _refuse_others_than_classes(table, labels, names.tolist())
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
    are_texts = labels.dtype.kind == "U" and labels.ndim == 1
    if are_texts and pos_label is None and name != "0":
        happened = labels == "1"  # without a sort
        if (happened | (labels == "0")).all():
            return happened.astype(int), None
    present = np.unique(labels)
    named = _class_of(name, present.tolist()) if labels.dtype.kind == "U" else None
    if named is None and event in (None, "true") and present.tolist() == ["false", "true"]:
        named = "true"  # of JSON
    if pos_label is not None or named:
        if len(present) < 2:
            raise ValueError(
                f"--pos-label {pos_label!r} needs two labels, found {listed(present.tolist())}. "
                "Give samples of both."
            )
        if len(present) > 2:
            raise _several_classes(table, labels, present.tolist())
        return labels, positive_last(present, pos_label or named)
    if not are_texts:
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
    counts = Counter(labels.tolist())
    names = [text for text in counts if not is_missing(text)]
    remedy = (
        "With a single column of probabilities labels must be 0 or 1; for other labels name the "
        "positive one by --pos-label."
    )
    _refuse_two_spellings(table, names)
    if len(names) == 1 and len(counts) == 2 and "" not in counts:
        [name], [other] = names, counts.keys() - {*names}
        raise FileError(
            f"{_place_of(table, labels == other)} is {other!r}. If it is a class, pass --pos-label "
            f"{name!r}: {counts[name]:,} events of {len(labels):,}. If it marks missing labels, "
            f"all others are {name!r}, and calibration needs labels of both classes.",
            pos_label=name,
        )
    if len(names) == 2 and set(names) != set(_BINARY):
        n, mean = sum(counts[text] for text in names), np.nanmean(table.numbers)
        shown = "; ".join(f"--pos-label {x}: {counts[x]:,} events of {n:,}" for x in names)
        likely = [text for text in names if is_known("positive", text)]
        is_clear = len(likely) == 1 and any(is_known("negative", text) for text in names)
        more: dict[str, Any] = {"choices": [{"pos_label": text} for text in names]}
        if event is not None:
            remedy += f" The predicted class is {event!r} wherever the score is above 0.5."
            more = {"pos_label": event}
        elif is_clear and not options.logits:  # scores may grow with either label
            more = {"pos_label": likely[0]}
        first = next(text for text in names if text not in _BINARY)
        place = f"{_place_of(table, labels == first)} is {first!r}."
        raise FileError(f"{place} {remedy} {shown}; the mean prediction is {mean:.3g}.", **more)
    words = [text for text in names if not text.lstrip("+-").isdecimal()]
    known = words if len(words) == 2 else _BINARY
    others = {*names} - {*known}
    if len(names) > 2 and not ({*known} <= {*names} and all(_is_mark(x, known) for x in others)):
        raise _several_classes(table, labels, names)
    _refuse_others(table, labels, known, ".", remedy)


def _place_of(table: FileTable, rows: np.ndarray) -> str:
    """What messages call the label of the first of the rows."""
    return f"{table.path}: label {table.words_for_row(int(np.argmax(rows)))}"


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
        verb = "mark" if len(rare) > 1 else "marks"
        which = listed(list(map(repr, rare)))
        shown += f". If {which} {verb} no outcome, pass {_dropping(rare)}"
    return FileError(
        f"{table.path}: the labels are {shown}. The one column {column} cannot hold the "
        f"probabilities of {len(names):,} classes. Give a column of probabilities for each class. "
        f"If the column is the probability of one class (its mean is "
        f"{np.nanmean(table.numbers):.3g}), name by --label a column of 1 for that class and 0 for "
        "all others. If it is the probability of the class that another column names, name that "
        "one by --predicted. If a label marks missing ones, leave out its samples by --drop-label."
    )


def _dropping(labels: Sequence[str]) -> str:
    """The options that leave out labels."""
    return " ".join(f"--drop-label {quoted(label)}" for label in labels)


def _refuse_two_spellings(table: FileTable, names: Sequence[str]) -> None:
    """Raise where labels differ in nothing but capitals."""
    plain = [name.lower() for name in names]
    if twice := [name for name in plain if plain.count(name) > 1]:
        first, second, *_ = (name for name in names if name.lower() == twice[0])
        raise FileError(
            f"{table.path}: the labels {first!r} and {second!r} may be one label, written in two "
            "ways. Write each label in one way."
        )


def read_right(table: FileTable, labels: np.ndarray, right: str | None) -> np.ndarray:
    """1 of right answers and 0 of wrong ones, of any of the words for that, or of one word.

    Words of several pairs, such as C, I and N, are refused: N is no answer there, and no in y, n.
    """
    labels = labels.astype(str)
    words, codes = np.unique(labels, return_inverse=True)
    plain = {word: whole(word).lower() for word in words.tolist()}
    answers = [word for word in plain if not is_missing(word)]
    if right is not None:
        if whole(right).lower() not in plain.values():
            raise ValueError(f"--pos-label {right!r} is not one of the words {listed([*plain])}.")
        _refuse_others(table, labels, answers, "", "")
        return np.array([text == whole(right).lower() for text in plain.values()], int)[codes]
    pairs = [pair for pair in RIGHT_WRONG if not {*pair}.isdisjoint(plain.values())]
    both = [pair for pair in pairs if {*pair} <= {*plain.values()}]
    meant = {text: 1 - k for pair in both or pairs[:1] for k, text in enumerate(pair)}
    known = [word for word, text in plain.items() if text in meant]
    others = [word for word in answers if word not in known]
    remedy = (
        "Write 1 or 0, true or false, yes or no, right or wrong, correct or incorrect, pass or "
        "fail, C or I."
    )
    if known and others and len(others) <= _FEW_OTHERS:
        shown = [word for word in known if meant[plain[word]]] or ["C"]
        is_other = np.isin(labels, others)
        n, n_right, n_others = len(labels), np.isin(labels, shown).sum(), is_other.sum()
        first = str(labels[np.argmax(is_other)])
        raise FileError(
            f"{_place_of(table, is_other)} is {first!r}, neither right nor wrong. {remedy} "
            f"{n_others:,} of {n:,} labels are {listed(others)}. If these answers are wrong, pass "
            f"--pos-label {shown[0]!r}: then {n_right / n:.3g} are right. To leave them out, pass "
            f"{_dropping(others)}: then {n_right / (n - n_others):.3g} are.",
            choices=[{"pos_label": shown[0]}, {"drop_label": others}],
        )
    _refuse_others(table, labels, known, ", neither right nor wrong.", remedy)
    return np.array([meant[text] for text in plain.values()])[codes]


def _refuse_others_than_classes(table: FileTable, labels, names: Sequence[str]) -> None:
    """Raise where labels are no names of columns."""
    what = f", which is not one of the classes {listed(names)}."
    _refuse_others(table, labels, names, what, _REMEDIES["classes"])


def _refuse_others(table: FileTable, labels, known: Sequence[str], what: str, remedy: str) -> None:
    """Raise where texts are not among the known labels, with what would leave out the others."""
    wrong = ~np.isin(labels, list(known))
    if not wrong.any():
        return
    label, more = str(labels[np.argmax(wrong)]), dict[str, Any]()
    others = [text for text in dict.fromkeys(labels[wrong].tolist()) if not is_missing(text)]
    if {text.lower() for text in known} & {text.lower() for text in others}:
        _refuse_two_spellings(table, [*known, *others])
    if is_missing(label):
        remedy, more = LEAVE_OUT, {"drop_missing": True}
    elif _are_one_above([*known], {*labels.tolist()}):
        remedy += " The labels are one above the names of the columns. If they are the same "
        remedy += "classes, write the labels as the names of the columns."
    elif len(set(labels[~wrong].tolist())) > 1 and len(others) <= 5:
        how_many = f"{wrong.sum():,} of {len(wrong):,}"
        if not all(_is_mark(text, known) for text in others):
            remedy += f" If samples of other labels, {how_many}, are of no class, leave them out "
            remedy += f"by {_dropping(others)}."
        else:
            remedy += f" To leave out such samples, {how_many}, pass {_dropping(others)}."
            more = {"drop_label": others} if wrong.mean() < _FEW else more
    raise FileError(f"{_place_of(table, wrong)} is {label!r}{what} {remedy}", **more)


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
    sizes, lost : dict of str to int
        The numbers of all samples, named "", and of each subgroup, and how many are left out.
    reasons : dict of str to int
        How many are left out for each.
    """

    sizes: Counter[str]
    lost: Counter[str]
    reasons: Mapping[str, int]

    @property
    def samples(self) -> tuple[int, int]:
        """How many are left out, and of how many."""
        return self.lost[""], self.sizes[""]

    def __str__(self):
        n, size = self.samples
        if not n:
            return "No sample is left out."
        whys = ", ".join(f"{count:,} {reason}" for reason, count in self.reasons.items() if count)
        text = f"{n:,} of {size:,} samples ({100 * n / size:.2g} %) are left out: {whys}."
        sizes = [(name, size) for name, size in self.sizes.items() if name]
        parts = [f"{name} {self.lost[name]:,} of {size:,}" for name, size in sizes]
        return f"{text} By subgroup: {listed(parts)}." if parts else text

    def plus(self, other: Lost) -> Lost:
        """Return the sums."""
        sums = [Counter(part) for part in self]
        for part, more in zip(sums, other, strict=True):
            part.update(more)
        return Lost(*sums)


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
        sizes = Counter({"": len(self.out)})
        lost = Counter({"": int(np.count_nonzero(self.out))})
        for column, values in self.subgroups.items():
            for counts, part in ((sizes, values), (lost, values[self.out])):
                names, numbers = np.unique(part, return_counts=True)
                shown = [f"{column} = {'missing' if x == '' else x}" for x in names.tolist()]
                counts.update(dict(zip(shown, numbers.tolist(), strict=True)))
        return Lost(sizes, lost, self.reasons)

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
    n, found = len(table.numbers), list[tuple[str, np.ndarray]]()
    if drops_missing(options) and table.numbers.dtype.kind == "f":
        parts, what = [table.numbers], "a prediction"
        if isinstance(outcomes, FileTable):
            parts, what = [*parts, outcomes.numbers], "all predictions and shares"
        lost = [np.isnan(part).reshape(n, -1).any(axis=1) for part in parts]
        found.append((f"without {what}", np.any(lost, axis=0)))
    if not isinstance(outcomes, FileTable):
        texts = outcomes.astype(str)
        known = list(dict.fromkeys(texts.tolist()))
        if drops_missing(options) or options.skip_unlabelled:
            classes = [] if columns.classes is None else columns.classes.tolist()
            named = {*table.names, *map(str, classes)}
            absent = [text for text in known if is_missing(text) and text not in named]
            found.append(("without a label", np.isin(texts, absent)))
        for label in dict.fromkeys(options.drop_label):
            if label not in known and not of_part:
                raise FileError(
                    f"{table.path}: no sample has the label {label!r} of --drop-label (labels: "
                    f"{listed(known)}). Leave the option out."
                )
            found.append((f"labelled {label!r}", texts == label))
    out, reasons = np.zeros(n, dtype=bool), dict[str, int]()
    for reason, rows in found:
        reasons[reason] = int((rows & ~out).sum())
        out |= rows
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
