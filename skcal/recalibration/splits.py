"""Splits of samples whose test sets do not overlap."""

from __future__ import annotations

from numbers import Integral

import numpy as np
from sklearn.model_selection import KFold, check_cv
from sklearn.utils import check_random_state


def as_rows(pairs, n_samples: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Training and test rows of (train, test) pairs of numbers or masks."""
    everyone = np.arange(n_samples)
    return [(everyone[train], everyone[test]) for train, test in pairs]


def refuse_overlap(splits, n_samples: int) -> None:
    """Raise where a sample is tested twice."""
    count = np.bincount(np.concatenate([test for _, test in splits]), minlength=n_samples)
    if count.max() > 1:
        raise ValueError(
            f"cv tests sample {np.argmax(count > 1)} {count[count > 1][0]} times. Pass splits "
            "whose test sets do not overlap."
        )


def splits_that_choose(data, cv, most: int, random_state) -> list[tuple[np.ndarray, np.ndarray]]:
    """Training and test rows of labelled predictions, of ``most`` that are drawn if there are more.

    Samples of weight 0 do not choose; an int ``cv`` means shuffled folds.
    """
    rng = check_random_state(random_state)
    seed = rng.randint(2**31 - 1)
    chosen = np.flatnonzero(data.weight > 0)
    if len(chosen) > most:
        chosen = np.sort(rng.choice(chosen, most, replace=False))
    if not isinstance(cv, Integral):
        return _given_splits(cv, data, chosen)
    if len(chosen) < 2:
        raise ValueError(
            f"n_samples={len(chosen)}: a map that is judged on other samples needs 2. Pass more "
            "samples."
        )
    folds = KFold(min(cv, len(chosen)), shuffle=True, random_state=seed)
    return [(chosen[train], chosen[test]) for train, test in folds.split(chosen)]


def _given_splits(cv, data, chosen):
    """The splits of a splitter or an iterable, without what was not drawn."""
    n_samples = len(data.codes)
    drawn = np.zeros(n_samples, dtype=bool)
    drawn[chosen] = True
    try:
        pairs = check_cv(cv, data.codes, classifier=True).split(data.X, data.codes)
        splits = as_rows(pairs, n_samples)
    except (ValueError, IndexError) as error:
        raise ValueError(f"cv cannot split {n_samples} samples. ({error})") from error
    refuse_overlap(splits, n_samples)
    splits = [(train[drawn[train]], test[drawn[test]]) for train, test in splits]
    empty = [k for k, pair in enumerate(splits) if min(map(len, pair)) == 0]
    if empty:
        raise ValueError(
            f"cv leaves no sample in a part of split {empty[0]} of {n_samples} samples. Pass fewer "
            "splits or more samples."
        )
    return splits
