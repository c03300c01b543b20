"""Columns that no option names, and that say which rows belong together, or how much they count."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from skcal.cli.cells import Dialect, is_missing
from skcal.cli.frames import Frame
from skcal.cli.names import is_known, is_of_weights, kind_of_samples, words_of
from skcal.cli.problems import FileError

_NEAR_1 = 0.1  # by which the mean of weights of a plain name may differ from 1
_UNEQUAL = 0.5  # of their mean, above which the standard deviation of bodies' weights is rare
_FIRST = 100  # rows by which a column is known
_FEWEST = 10  # different values of a column that is named as one of samples
_FEWEST_OTHERS = 30  # the same of another name, below which the outcome may be made of it
_OFTEN = 0.05  # of the rows, from which on their values repeat
_CERTAIN = np.log(1e-6)  # the probability by chance of what contents alone show
_LIKELY = np.log(0.05)  # the same of a column that is named as one of rows
_MOSTLY = 0.9  # of the numbers of a column of amounts, which are rounded
_BINS = 0.4  # power of the number of samples
_MOST_CELLS = 2 * 10**7  # columns times rows that are looked at, those named as of samples first


class Cluster(NamedTuple):
    """A column that may say which rows belong together.

    Attributes
    ----------
    name : str
    n_values : int
    why : str
    is_one : bool
        Whether all rows of a value have one outcome, which is no chance.
    """

    name: str
    n_values: int
    why: str
    is_one: bool = False

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
    if options.groups is not None:  # which may be others than those that share an outcome
        given = frame.codes(options.groups)
        found = [one for one in found if one.is_one and not _lies_within(frame, one.name, given)]
    times = 0
    if found:
        codes = frame.codes(_likeliest(found).name)
        times = _times_alike(codes if rows is None else codes[rows], happened)
    return told_of_clusters(frame.path, found, len(happened), options, times)


def told_of_clusters(path, found, n_rows: int, options, times: int = 0) -> list[str]:
    """A sentence on the column of the fewest clusters, if any; refuse a verdict on such rows.

    ``times`` rows stand for each value, if all have as many, of one outcome each.
    """
    if not found:
        return []
    name, n_values, why, _ = _likeliest(found)
    of_models = (
        f"If each of the {times} rows of a value is of another model or version, write these into "
        "files of their own, and pass one. "
    )
    text = (
        f"Column {name!r} has {n_values:,} values in {n_rows:,} rows{why}. If the rows of a value "
        f"belong together, limits are too narrow: pass --groups {name!r}"
        f"{'' if options.groups is None else f' in place of {options.groups!r}'}. "
        f"{of_models if times else ''}If all rows are independent, pass --ignore {name!r}."
    )
    return refused_or_told(path, text, [{"groups": name}, {"ignore": [name]}], options)


def refuse_or_tell_copies(frame: Frame, rest, rows, options) -> list[str]:
    """The same of rows that are equal in all columns, where one of these names the samples."""
    names = [name for name in rest if may_name_owners(frame, name)]
    rows = np.arange(len(frame)) if rows is None else rows
    if not names or len(rows) * len(frame.header) > _MOST_CELLS:
        return []
    codes = frame.codes(names[0])[rows]
    repeated = np.bincount(codes[codes >= 0], minlength=1)[codes] > 1
    n = np.count_nonzero(are_copies(frame, rows[repeated])) if repeated.any() else 0
    if not n:
        return []
    text = (
        f"{n:,} of {len(rows):,} rows are copies of others, equal in all columns. If they stand "
        f"twice by mistake, pass --distinct. If they are other samples, pass --ignore {names[0]!r}."
    )
    return refused_or_told(frame.path, text, [{"distinct": True}, {"ignore": names[:1]}], options)


def are_copies(frame: Frame, rows: np.ndarray) -> np.ndarray:
    """Whether each of these rows is equal to an earlier one of them in all columns."""
    import pandas

    cells = {
        k: frame.codes(name)[rows]
        if frame.kind(name) in ("number", "text", "empty")
        else list(map(str, frame.cells(name)[rows]))
        for k, name in enumerate(dict.fromkeys(frame.header))
    }
    return pandas.DataFrame(cells).duplicated().to_numpy()


def _lies_within(frame: Frame, name: str, given: np.ndarray) -> bool:
    """Whether all rows of each value of a column are of one of the given groups."""
    pairs = np.unique(np.column_stack([frame.codes(name), given]), axis=0)
    return len(np.unique(pairs[:, 0])) == len(pairs)


def _times_alike(codes: np.ndarray, happened: np.ndarray) -> int:
    """How often each value stands if all stand equally often and have one outcome each, else 0."""
    _, first, codes, times = np.unique(
        codes, return_index=True, return_inverse=True, return_counts=True
    )
    is_one = len({*times.tolist()}) == 1 and (happened[first][codes] == happened).all()
    return int(times[0]) if is_one else 0


def refuse_or_tell_weights(frame: Frame, rest, rows, options) -> list[str]:
    """The same of the first column that may hold sample weights."""
    found = ((name, _weigh(frame, name, rows, options)) for name in rest)
    name, ways = next(((name, ways) for name, ways in found if ways), ("", ""))
    if not ways:
        return []
    how = f"If it holds sample weights, pass --weight {name!r}. If not, pass --ignore {name!r}."
    if ways == "count":
        how = f"If each row stands for so many samples, pass --count {name!r}. {how}"
    text = f"Column {name!r} may say how much each row counts, and all count alike here. {how}"
    options_of = [{way: name} for way in ("count", "weight") if way in ("weight", ways)]
    return refused_or_told(frame.path, text, [*options_of, {"ignore": [name]}], options)


def tell_counts(frame: Frame, rows, options) -> list[str]:
    """The same where a column that is named as numbers of samples is given as weights."""
    name = options.weight
    if not is_known("count", name) or _weigh(frame, name, rows, options) != "count":
        return []
    return [
        f"Column {name!r} holds whole numbers, and weights add no samples. If each row stands for "
        f"so many samples, pass --count {name!r} in place of --weight {name!r}."
    ]


def refused_or_told(path, text: str, choices: list[dict], options) -> list[str]:
    """The text, or an error where a verdict would rest on such rows, or a command is sought."""
    decides = ["max_error", "fail_if_worse", "max_risk", *["alpha"] * (options.command == "test")]
    if getattr(options, "is_sought", False) or any(
        getattr(options, option, None) for option in decides
    ):
        raise FileError(f"{path}: {text[0].lower()}{text[1:]}", choices=choices)
    return [text]


def _weigh(frame: Frame, name: str, rows, options) -> str:
    """Return "count" or "weight" if a name is one of such, with numbers from 0 that differ.

    Names that features have, too, count where the mean is near 1 or the numbers are very unequal,
    and names of numbers of samples where all are whole.
    """
    is_plain, is_count = is_known("plain weight", name), is_known("count", name)
    if not (is_plain or is_count or is_of_weights(name)):
        return ""
    try:
        numbers = frame.numbers(name, Dialect(decimal=options.decimal, missing=True))
    except FileError:  # of texts
        return ""
    numbers = numbers if rows is None else numbers[rows]
    numbers = numbers[~np.isnan(numbers)]
    if not len(numbers) or not 0 <= numbers.min() < numbers.max() < np.inf:
        return ""
    mean, spread, is_whole = numbers.mean(), numbers.std(), not (numbers % 1).any()
    unequal = abs(mean - 1) < _NEAR_1 or spread > _UNEQUAL * mean
    if is_whole and (is_count or (is_plain and unequal)):
        return "count"
    return "weight" if unequal or not (is_plain or is_count) else ""


def clusters(frame: Frame, rest, rows, scores, happened) -> list[Cluster]:
    """The columns whose values repeat as names of what has several samples."""
    n, found = len(happened), []
    rest = sorted(rest, key=kind_of_samples, reverse=True)[: 1 + _MOST_CELLS // max(n, 1)]
    for name in rest:
        kind = kind_of_samples(name)
        if not may_name(frame, name):
            continue
        codes = frame.codes(name)
        codes = codes if rows is None else codes[rows]
        known = codes >= 0
        if frame.kind(name) == "text":  # such as the date of what did not happen
            known &= ~np.isin(codes, _codes_of_missing(frame, name, codes, rows))
        values, codes, sizes = np.unique(codes[known], return_inverse=True, return_counts=True)
        if not Cluster.repeats(sizes, n, len(values), kind > 0):
            continue
        chance = log_chance_of_one_outcome(codes, scores[known], happened[known])
        if chance < (_LIKELY if kind == 1 else _CERTAIN):
            why = ", and the rows of a value have one outcome, as repeated samples have"
            found.append(Cluster(name, len(values), why, is_one=True))
        elif kind == 2 and not _are_amounts(frame, name):
            found.append(Cluster(name, len(values), ", as names of what has several samples do"))
    return found


def _codes_of_missing(frame: Frame, name: str, codes: np.ndarray, rows) -> list[int]:
    """The code of the most frequent text of a column if it is a word for a missing value."""
    known = codes[codes >= 0]
    if not len(known):
        return []
    often = int(np.bincount(known).argmax())
    row = int(np.argmax(codes == often))
    text = str(frame.series(name).iloc[row if rows is None else rows[row]])
    return [often] if is_missing(text) else []


def _likeliest(found: Sequence[Cluster]) -> Cluster:
    """One whose rows have one outcome, if there is one, and of these the fewest values."""
    return min(found, key=lambda cluster: (not cluster.is_one, cluster.n_values))


def may_name_owners(frame: Frame, name: str) -> bool:
    """Whether a column is named as one of what has several samples, and may hold names."""
    is_named = kind_of_samples(name) == 2 and may_name(frame, name)
    return is_named and frame.n_distinct(name) >= _FEWEST and not _are_amounts(frame, name)


def _are_amounts(frame: Frame, name: str) -> bool:
    """Whether nearly all of the first numbers are multiples of 10, as sums of money and no ids."""
    if frame.kind(name) != "number":
        return False
    numbers = frame.numbers(name, Dialect(missing=True), _FIRST)
    return bool(np.mean(numbers[~np.isnan(numbers)] % 10 == 0) > _MOSTLY)


def hints(frame: Frame, names) -> str:
    """Sentences on columns that are named as weights, or as of what has several samples."""
    weights = [name for name in names if is_of_weights(name) or is_known("plain weight", name)]
    owners = [name for name in names if may_name_owners(frame, name)]
    owners = [name for name in owners if frame.n_distinct(name) <= len(frame) / 2]
    text = f" If {weights[0]!r} holds sample weights, name it by --weight." if weights else ""
    if owners:
        text += f" If rows of one {owners[0]!r} belong together, name it by --groups."
    return text


def may_name(frame: Frame, name: str) -> bool:
    """Whether a column holds texts or whole numbers, by its first rows."""
    kind = frame.kind(name)
    if kind == "text":
        folds = tuple(words_of("fold"))
        return not all(str(cell).lower().startswith(folds) for cell in frame.cells(name, _FIRST))
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
