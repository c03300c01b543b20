"""Columns that no option names, and that say which rows belong together, or how much they count."""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np

from skcal.cli.cells import Dialect
from skcal.cli.frames import Frame
from skcal.cli.problems import FileError

_IDS = frozenset(["id", "ids", "nr", "uuid", "guid", "pid", "uid", "qid", "mrn", "ssn", "hash"])
_ROWS = frozenset(["row", "rows", "rowname", "rownames", "rowindex", "index", "idx", "no", "nr"])
#: What has several samples, in the last word of the name of a column.
_OWNERS = re.compile(
    r"patient|pat|patientin|subject|subj|person|participant|respondent|user|username|"
    r"customer|client|kunde|account|member|household|family|student|pupil|employee|"
    r"borrower|animal|eye|record|case|sample|question|prompt|problem|item|doc|"
    r"document|text|article|image|img|picture|photo|video|clip|recording|speaker|"
    r"author|device|machine|sensor|session|encounter|admission|stay|episode|claim|"
    r"policy|loan|order|match|game|team|athlete|mother|prof|psu|cluster"
)
_BESIDE = _IDS | {"number", "num", "no", "key", "name", "code", "index", "idx"}
_OF_FOLDS = re.compile(r"(fold|repeat|rep|boot|resample|split|cv|train|test)", re.IGNORECASE)
#: Of sample weights, without signs between the words.
_WEIGHTS = re.compile(
    r"(p|f|a|i|fnl|final|sampl(e|ing)|survey|design|analy(sis|tic)|person|household|hh|per|"
    r"instance|importance|observation|obs|propensity|population|probability|replicate|"
    r"(post)?strat(ification)?|inverseprobability)(weight|wgt|wt)s?|s?ip[tc]?w|llcpwt|wt(mec|int)\d+yr"
)
_PLAIN_WEIGHTS = frozenset(["w", "wt", "wgt", "weight", "weights", "freq", "frequency"])
_NEAR_1 = 0.1  # by which the mean of weights of a plain name may differ from 1
_UNEQUAL = 0.5  # of their mean, above which the standard deviation of bodies' weights is rare
_FIRST = 100  # rows by which a column is known
_FEWEST = 10  # different values of a column that is named as one of samples
_FEWEST_OTHERS = 30  # the same of another name, below which the outcome may be made of it
_OFTEN = 0.05  # of the rows, from which on their values repeat
_CERTAIN = np.log(1e-6)  # the probability by chance of what contents alone show
_LIKELY = np.log(0.05)  # the same of a column that is named as one of rows
_BINS = 0.4  # power of the number of samples
_MOST_CELLS = 2 * 10**7  # columns times rows that are looked at, those named as of samples first


class Cluster(NamedTuple):
    """A column that may say which rows belong together: its name, number of values, and why."""

    name: str
    n_values: int
    why: str

    @staticmethod
    def repeats(sizes: np.ndarray, n_rows: int, n_values: int, is_named: bool) -> bool:
        """Whether so many rows are of values that have several, by the number of rows of each."""
        fewest = _FEWEST if is_named else _FEWEST_OTHERS
        return bool(sizes[sizes > 1].sum() > _OFTEN * n_rows and n_values >= fewest)


def refuse_or_tell(frame: Frame, rest, rows, scores, happened, options) -> list[str]:
    """A sentence on the rows that may belong together; refuse a verdict on such rows.

    Parameters
    ----------
    frame : Frame
    rest : sequence of str
        Columns that nothing else was read from.
    rows : ndarray of shape (n_samples,) or None
        The rows of the file; None is all.
    scores : ndarray of shape (n_samples,) or (n_samples, n_classes)
    happened : ndarray of int of shape (n_samples,)
        The class of each row.
    options : argparse.Namespace
    """
    found = clusters(frame, rest, rows, scores, happened)
    return told_of_clusters(frame.path, found, len(happened), options)


def told_of_clusters(path, found: list[Cluster], n_rows: int, options) -> list[str]:
    """A sentence on the column of the fewest clusters, if any; refuse a verdict on such rows."""
    if not found:
        return []
    name, n_values, why = min(found, key=lambda cluster: cluster.n_values)
    text = (
        f"Column {name!r} has {n_values:,} values in {n_rows:,} rows{why}. If the rows of a "
        f"value belong together, limits are too narrow: pass --groups {name!r}. If all rows are "
        f"independent, pass --ignore {name!r}."
    )
    return _refused_or_told(path, text, {"groups": name}, options)


def refuse_or_tell_weights(frame: Frame, rest, rows, options) -> list[str]:
    """The same of the first column that may hold sample weights."""
    name = next((name for name in rest if _may_weigh(frame, name, rows, options)), None)
    if name is None:
        return []
    text = (
        f"Column {name!r} may hold sample weights, and every row counts alike here. If it does, "
        f"pass --weight {name!r}. If not, pass --ignore {name!r}."
    )
    return _refused_or_told(frame.path, text, {"weight": name}, options)


def _refused_or_told(path, text: str, choice: dict[str, str], options) -> list[str]:
    """The text, or an error where a verdict would rest on such rows."""
    decides = ("max_error", "fail_if_worse")
    if any(getattr(options, option, None) for option in decides):
        raise FileError(
            f"{path}: {text[0].lower()}{text[1:]}",
            choices=[choice, {"ignore": list(choice.values())}],
        )
    return [text]


def _may_weigh(frame: Frame, name: str, rows, options) -> bool:
    """Whether a name is one of weights, and its values are numbers from 0 that differ.

    Names that features have, too, count where the mean is near 1 or the numbers are very unequal.
    """
    words = re.sub(r"[\W_]", "", name.lower())
    is_plain = words in _PLAIN_WEIGHTS
    if not (is_plain or _WEIGHTS.fullmatch(words)):
        return False
    try:
        numbers = frame.numbers(name, Dialect(decimal=options.decimal, missing=True))
    except FileError:  # of texts
        return False
    numbers = numbers if rows is None else numbers[rows]
    numbers = numbers[~np.isnan(numbers)]
    if not len(numbers) or not 0 <= numbers.min() < numbers.max() < np.inf:
        return False
    mean, spread = numbers.mean(), numbers.std()
    return not is_plain or abs(mean - 1) < _NEAR_1 or bool(spread > _UNEQUAL * mean)


def clusters(frame: Frame, rest, rows, scores, happened) -> list[Cluster]:
    """The columns whose values repeat as names of what has several samples."""
    n, found = len(happened), []
    rest = sorted(rest, key=_kind_of_name, reverse=True)[: 1 + _MOST_CELLS // max(n, 1)]
    for name in rest:
        kind = _kind_of_name(name)
        if not _may_name(frame, name):
            continue
        codes = frame.codes(name)
        codes = codes if rows is None else codes[rows]
        known = codes >= 0
        values, codes, sizes = np.unique(codes[known], return_inverse=True, return_counts=True)
        if not Cluster.repeats(sizes, n, len(values), kind > 0):
            continue
        if kind == 2:
            found.append(Cluster(name, len(values), ", as names of what has several samples do"))
            continue
        chance = log_chance_of_one_outcome(codes, scores[known], happened[known])
        if chance < (_LIKELY if kind else _CERTAIN):
            why = ", and the rows of a value have one outcome, as repeated samples have"
            found.append(Cluster(name, len(values), why))
    return found


def may_name_owners(frame: Frame, name: str) -> bool:
    """Whether a column is named as one of what has several samples, and may hold names."""
    return _kind_of_name(name) == 2 and _may_name(frame, name)


def _kind_of_name(name: str) -> int:
    """2 of a name of what has several samples, 1 of a name of rows, 0 of another."""
    words = re.findall(r"[A-Z]?[a-zäöü]+|[A-Z]+(?![a-z])|#", name)
    words = [word.lower() for word in words]
    words = [part for word in words for part in _apart(word)]
    beside = []
    while words and words[-1] in _BESIDE and (len(words) > 1 or words[-1] not in _ROWS):
        beside.append(words.pop())
    last = words[-1] if words else ""
    if last in _ROWS or name in ("", "#"):
        return 1
    return 2 if _OWNERS.fullmatch(last) or set(beside) & _IDS else 0


def _apart(word: str) -> list[str]:
    """The words patient and id of patientid."""
    start = word.removesuffix("id")
    is_known = start in _ROWS or _OWNERS.fullmatch(start)
    return [start, "id"] if word != start and is_known else [word]


def _may_name(frame: Frame, name: str) -> bool:
    """Whether a column holds texts or whole numbers, by its first rows."""
    kind = frame.kind(name)
    if kind == "text":
        return not all(map(_OF_FOLDS.match, map(str, frame.cells(name, _FIRST))))
    try:
        numbers = frame.numbers(name, Dialect(missing=True), _FIRST) if kind == "number" else None
    except FileError:  # of numbers such as 1,5
        numbers = None
    return numbers is not None and not (numbers[~np.isnan(numbers)] % 1).any()


def log_chance_of_one_outcome(codes, scores: np.ndarray, happened: np.ndarray) -> float:
    """Log-probability that the samples of each cluster have one outcome, if all are independent.

    A cluster of the probabilities P of class k has one outcome with probability Σ_k Π P_k. These
    are the frequencies in bins of the predictions, which are thus not taken to be calibrated.

    Parameters
    ----------
    codes : ndarray of int of shape (n_samples,)
        The cluster of each sample, from 0.
    scores : ndarray of shape (n_samples,) or (n_samples, n_classes)
        Predictions, perhaps as logits.
    happened : ndarray of int of shape (n_samples,)
        The class of each sample.

    Returns
    -------
    log_chance : float
        0 where the samples of a cluster have several outcomes.
    """
    order = np.argsort(codes, kind="stable")
    starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
    lowest, highest = (
        extreme.reduceat(happened[order], starts) for extreme in (np.minimum, np.maximum)
    )
    if (lowest != highest).any():
        return 0.0
    scores = np.column_stack([-scores, scores]) if scores.ndim == 1 else scores
    chances = np.zeros(len(starts))
    with np.errstate(divide="ignore"):
        for k, column in enumerate(scores.T):
            chances += np.exp(np.bincount(codes, np.log(_frequencies(column, happened == k))))
        return float(np.log(np.minimum(chances, 1)).sum())


def _frequencies(p: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The frequency of outcomes y (n,) in the bin of equally many predictions p (n,) of each."""
    edges = np.unique(np.quantile(p, np.linspace(0, 1, 2 + int(len(p) ** _BINS))[1:-1]))
    bins = np.searchsorted(edges, p)
    return (np.bincount(bins, y) / np.maximum(np.bincount(bins), 1))[bins]
