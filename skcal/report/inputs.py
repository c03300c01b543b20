"""Checks of what a report takes beside predictions and labels."""

from __future__ import annotations

import re
from collections.abc import Mapping
from numbers import Integral

import numpy as np
from sklearn.utils import check_random_state

from skcal._validation import column_names, plain_labels
from skcal.report.numbers import plain
from skcal.report.parts import Data
from skcal.sample import read_sample


def make_seed(random_state) -> int:
    """An int as it is, or one drawn."""
    if isinstance(random_state, Integral):
        return int(random_state)
    return int(check_random_state(random_state).randint(2**31 - 1))


def read_second(y_true, y_proba, compare, strategy, options) -> Data:
    """Predictions of a second model for the same samples."""
    if np.shape(compare) != np.shape(y_proba):
        raise ValueError(
            f"compare has shape {np.shape(compare)}, y_proba {np.shape(y_proba)}. Pass predictions "
            "of the same classes for the same samples."
        )
    if strategy != "uniform":
        raise ValueError(
            f"strategy={strategy!r} makes other bins for every model. With compare use 'uniform'."
        )
    sample = read_sample(y_true, compare, proba_name="compare", **options)
    return Data(sample.classes[sample.codes], sample.proba, sample.classes, sample.codes)


def _natural(name: str) -> list:
    """Texts in the order of the numbers in them: "site 2" before "site 10"."""
    return [
        (0, int(part), part) if part.isdecimal() else (1, 0, part)
        for part in re.split(r"(\d+)", name)
        if part
    ]


def read_groups(groups, n_samples) -> list[tuple]:
    """Name and rows of each subgroup; of several columns each makes its own."""
    names = list(groups) if isinstance(groups, Mapping) else column_names(groups)
    if names is not None:
        return [
            (f"{name} = {value}", rows)
            for name in names
            for value, rows in read_groups(groups[name], n_samples)
        ]
    groups = plain_labels(groups, "groups")
    if len(groups) != n_samples:
        raise ValueError(f"groups has {len(groups)} entries, y_proba {n_samples} rows.")
    try:
        names, group = np.unique(groups, return_inverse=True)
    except TypeError as error:
        raise ValueError(f"groups cannot be sorted ({error}). Pass strings.") from error
    found = [
        (str(plain(name)), np.flatnonzero(group == k)) for k, name in enumerate(names.tolist())
    ]
    found.sort(key=lambda one: _natural(one[0]))
    for label, rows in found:
        if len(rows) < 2:
            raise ValueError(f"groups has a single sample in {label!r}. Merge it with another.")
    return found
