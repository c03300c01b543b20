"""Training and test rows of folds: read from a splitter or shuffled, and checked."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from numbers import Integral
from typing import NamedTuple

import numpy as np
from sklearn.utils.metadata_routing import get_routing_for_object

from skcal._groups import Groups
from skcal._validation import InputError

OUTCOMES_UNKNOWN = "functions that learn outcomes give it probability 0 there"
_SHUFFLES = 20  # tries to keep every class in every training part


def read_splits(cv, X, y, groups: Groups, name: str = "cv", *, counted=True, **params) -> list:
    """Row numbers (training, test) of the splits of a splitter, which hold whole groups.

    Samples that are not ``counted``, such as those of weight 0, may be of any group.
    """
    everyone = np.arange(len(y))  # turns masks into numbers, and refuses what is neither
    if not groups.independent:
        params["groups"] = groups.codes
    elif get_routing_for_object(cv).consumes("split", ["groups"]):
        reason = f"is a {type(cv).__name__}, which splits by groups."
        raise InputError(name, reason, "Pass groups to fit, too.")
    refuse_no_pairs(getattr(cv, "cv", None), name)  # the list of scikit-learn's wrapper
    try:
        pairs = list(cv.split(X, y, **params))
    except Exception as error:
        if type(error) in (ValueError, TypeError) and type(cv).__module__.startswith("sklearn."):
            finer = "more samples" if groups.independent else "finer groups"
            remedy = f"Pass fewer folds or {finer}. ({error})"
            raise InputError(name, f"cannot split {len(y)} samples.", remedy) from error
        error.add_note(f"{name} was to split {len(y)} samples.")
        raise
    refuse_no_pairs(pairs, name)
    try:
        splits = [(everyone[train], everyone[test]) for train, test in pairs]
    except (ValueError, IndexError, TypeError) as error:
        remedy = f"Pass rows of these samples. ({error})"
        raise InputError(name, f"cannot split {len(y)} samples.", remedy) from error
    if not splits:
        raise InputError(name, "holds no splits.", "Pass a number of folds or a splitter.")
    counted = np.broadcast_to(counted, len(y))
    for number, pair in enumerate(splits):
        if not all(counted[rows].any() for rows in pair):  # as scikit-learn 1.6 leaves some folds
            reason = f"leaves no sample in a part of split {number} of {len(y)} samples."
            finer = "more samples" if groups.independent else "finer groups"
            raise InputError(name, reason, f"Pass fewer folds or {finer}.", kind="no sample")
    _refuse_cut_groups(splits, groups.codes, name, counted)
    return splits


def refuse_no_pairs(cv, name: str) -> None:
    """Raise if a split in a list is not a pair of arrays of rows."""
    if not isinstance(cv, list | tuple | np.ndarray):
        return
    for number, pair in enumerate(cv):
        is_pair = isinstance(pair, list | tuple | np.ndarray) and len(pair) == 2
        if not (is_pair and all(np.ndim(rows) == 1 for rows in pair)):
            reason = f"has the split {number} {pair!r:.80}."
            raise InputError(name, reason, "Pass pairs of arrays: rows of training, and of test.")


def _refuse_cut_groups(splits, codes: np.ndarray | None, name: str, counted) -> None:
    """Raise where a group has samples in both parts of a split."""
    if codes is None:
        return
    for number, (train, test) in enumerate(splits):
        cut = counted[test] & np.isin(codes[test], codes[train[counted[train]]])
        if cut.any():
            raise InputError(
                name,
                f"puts a group into both parts of split {number}, that of sample "
                f"{test[int(np.argmax(cut))]}.",
                "Pass an int, or a splitter of groups such as GroupKFold.",
            )


def refuse_overlap(splits, n_samples: int) -> None:
    """Raise where a sample is tested twice."""
    count = np.bincount(np.concatenate([test for _, test in splits]), minlength=n_samples)
    if count.max() > 1:
        raise ValueError(
            f"cv tests sample {np.argmax(count > 1)} {count[count > 1][0]} times. Pass splits "
            "whose test sets do not overlap."
        )


class Absent(NamedTuple):
    """A class without samples of positive weight in the training part of a fold.

    Attributes
    ----------
    code : int
        The first such class of the first such fold.
    fold : int
    n_absent : int
        How many classes this fold lacks.
    n_held : int
        How many samples, or groups, hold the class at all.
    """

    code: int
    fold: int
    n_absent: int
    n_held: int

    def sentence(self, classes: np.ndarray) -> str:
        """Return the reason of an error, without a remedy."""
        others = f" ({self.n_absent} such classes)" if self.n_absent > 1 else ""
        return (
            f"Class {classes.tolist()[self.code]!r} does not occur in the training part of fold "
            f"{self.fold}{others}"
        )


def absent_class(
    trainings: Iterable[np.ndarray], happened: np.ndarray, weight: np.ndarray, groups: Groups
) -> Absent | None:
    """Return a class that occurs, but not in the training rows of a fold, if there is one.

    Parameters
    ----------
    trainings : iterable of ndarray of int
        Rows, fold after fold.
    happened : ndarray of shape (n_samples,) or (n_samples, n_classes)
        The column of each label, or the shares of the classes.
    weight : ndarray of shape (n_samples,)
    groups : Groups
    """
    n_classes = int(happened.max(initial=0)) + 1

    def mass(rows):
        if happened.ndim > 1:
            return weight[rows] @ happened[rows]
        return np.bincount(happened[rows], weight[rows], n_classes)

    occurs = mass(slice(None)) > 0
    for fold, rows in enumerate(trainings):
        absent = np.flatnonzero(occurs & ~(mass(rows) > 0))
        if len(absent):
            code = int(absent[0])
            holds = (happened[:, code] > 0 if happened.ndim > 1 else happened == code) & (
                weight > 0
            )
            n_held = len(np.unique(groups.units(len(weight))[holds]))
            return Absent(code, fold, len(absent), n_held)
    return None


def warn_of_absent_class(
    absent: Absent | None, classes: np.ndarray, consequence: str, cv, fewest: int = 2
) -> None:
    """Warn of a class that a training part lacks, and say what follows from it.

    A number of folds keeps a class in each training part that ``fewest`` samples or groups hold.
    """
    if absent is not None:
        other = (
            "" if isinstance(cv, Integral) or absent.n_held < fewest else "a number of folds, or "
        )
        warnings.warn(
            f"{absent.sentence(classes)}: {consequence}. Pass {other}more samples of this class.",
            UserWarning,
            stacklevel=2,
        )


def shuffled_folds(
    groups: Groups, n_splits: int, seed: int, happened: np.ndarray, weight: np.ndarray
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return training and test rows of shuffled blocks of whole groups.

    Blocks are shuffled again while a training part lacks a class, as far as some tries help.
    """
    places = np.arange(len(weight))
    for again in range(_SHUFFLES):
        blocks = groups.blocks(n_splits, (seed + again) % 2**31)
        folds = list(blocks.split(places, groups=groups.codes))
        if not absent_class((train for train, _ in folds), happened, weight, groups):
            break
    return folds
