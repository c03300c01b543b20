"""What ``fit`` of a recalibration map was given is read once: predictions, outcomes, weights."""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np

from skcal._groups import INDEPENDENT, Groups, read_groups
from skcal._labels import (
    is_clearly_lower,
    read_outcomes,
    refuse_another_order,
    refuse_several_labels,
    rows_of_shares,
)
from skcal._validation import (
    InputError,
    check_weight,
    first_of,
    n_rows,
    read_columns,
    row_weights,
)


class LabelledPredictions(NamedTuple):
    """Predictions (n, 1) or (n, C) that maps understand, what happened, weights and groups.

    What happened is the column of each label, (n,), or shares of all classes, (n, C). Weights are
    as they were passed, times votes.
    """

    X: np.ndarray
    happened: np.ndarray
    weight: np.ndarray
    groups: Groups = INDEPENDENT

    def take(self, rows) -> LabelledPredictions:
        """Return those of some samples."""
        groups = self.groups.take(rows)
        return LabelledPredictions(self.X[rows], self.happened[rows], self.weight[rows], groups)

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return max(2, self.X.shape[1])

    def for_fit_of(self, estimator) -> LabelledPredictions:
        """Return what a map is fitted to: shares, or labels if it is not of this package."""
        return self if getattr(estimator, "_takes_shares", False) else self.as_labels()

    def counted(self) -> LabelledPredictions:
        """Return the same with weights that are numbers of rows."""
        return self._replace(weight=row_weights(self.weight))

    @property
    def n_rows(self) -> float:
        """The number of rows that the weights stand for."""
        return n_rows(self.weight)

    def with_counts_together(self, n_folds: int) -> LabelledPredictions:
        """Return the same with the rows of each prediction as one group, if this counts cases.

        A table of counts has a row for each unit and label, whose weight counts its cases: one row
        for each prediction and label, or as many of each label for each prediction. If folds parted
        the rows of a unit, training and test rows would have other frequencies of events. They are
        votes of one sample instead, if folds have two units. The k-th rows of equal predictions and
        different labels are a unit.
        """
        if self.of_shares or not self.groups.independent:
            return self
        if self.weight.max() <= 1 or (self.weight % 1).any():
            return self
        codes = np.unique(self.X, axis=0, return_inverse=True)[1].reshape(-1)
        pairs, n_pairs = codes * self.n_classes + self.happened, (codes.max() + 1) * self.n_classes
        rows, counted = (
            np.bincount(pairs, of, n_pairs).reshape(-1, self.n_classes)
            for of in (np.ones(len(pairs)), self.weight > 0)
        )
        if not (is_single := counted.max() == 1) and (rows != rows[:, :1]).any():
            return self
        if not is_single:
            order = np.argsort(pairs, kind="stable")
            first = rows.cumsum() - rows.ravel()
            place = np.empty(len(pairs), dtype=int)
            place[order] = np.arange(len(pairs)) - first[pairs[order]]
            codes = np.unique(codes * len(pairs) + place, return_inverse=True)[1].reshape(-1)
        n_units = int(codes.max()) + 1
        if n_units == len(codes) or n_units < 2 * n_folds:
            return self
        alone = np.bincount(codes, self.weight)[codes] == 1
        return self._replace(groups=Groups(codes, alone, n_units, of_shares=True))

    def as_labels(self) -> LabelledPredictions:
        """Return a row for each class of a sample that has a share, instead of the shares."""
        if not self.of_shares:
            return self
        rows, codes, shares = rows_of_shares(self.happened)
        return LabelledPredictions(self.X[rows], codes, self.weight[rows] * shares)

    def against_the_rest(self, k: int) -> np.ndarray:
        """Return whether class k happened, or the shares of the others and of it, (n, 2)."""
        if self.of_shares:
            return np.column_stack([1 - self.happened[:, k], self.happened[:, k]])
        return (self.happened == k).astype(int)

    @property
    def has_absent(self) -> bool:
        """Whether options are absent, whose logits are -inf."""
        return bool(np.isneginf(self.X).any())

    @property
    def of_shares(self) -> bool:
        """Whether what happened are shares."""
        return self.happened.ndim == 2

    @property
    def n_positive(self) -> int:
        """Number of samples of positive weight."""
        return int(np.count_nonzero(self.weight))


def read_for_map(map_, X, y, sample_weight) -> LabelledPredictions:
    """As :func:`read_labelled`; maps have no option ``labels``, which the errors of others name."""
    try:
        return read_labelled(map_, X, y, sample_weight, counted="If so pass y - 1.")
    except InputError as error:
        remedies = {
            "positive class": "Pass y == positive class.",
            "classes": "Pass y as column numbers of X, from 0, or X as a data frame whose columns "
            "are named by the classes.",
            "names": "Name the columns by the classes, or pass X as an array.",
        }
        raise error.with_remedy(remedies.get(error.kind)) from None


def read_labelled(
    estimator, X, y, sample_weight, labels=None, groups=None, counted: bool | str = False
) -> LabelledPredictions:
    """Read what ``fit`` of a map was given, and set its ``classes_``.

    For a single column, the second of two sorted labels is positive, as ``classes_[1]`` of
    scikit-learn's classifiers, unless ``labels`` has another order. A sample weighs as many as its
    votes, 1 where unknown.
    """
    try:
        refuse_several_labels(y, X, ("y", "X"))
    except InputError as error:
        place = "X[k][:, 1]" if isinstance(X, list | tuple) and np.ndim(X[0]) == 2 else "X[:, k]"
        remedy = f"Fit a map for each label, to {place} and y[:, k]."
        raise error.with_remedy(remedy) from None
    columns = read_columns(estimator, X)
    refuse_another_order({"X": X, "y": y, "sample_weight": sample_weight, "groups": groups})
    proba = columns[:, 0] if columns.shape[1] == 1 else columns
    single: dict = {"single": "single column", "any_two": True}
    if getattr(estimator, "from_logits", False):
        single["of_logits"] = None
    codes, classes, shares, votes = read_outcomes(
        y, X, proba, labels, ("y", "X"), counted=counted, **single
    )
    if shares is None and proba.ndim == 1 and labels is None:
        _warn_if_reversed(proba.astype(np.float64), codes, classes)
    refuse_absent_labels(columns, codes if shares is None else shares, classes)
    estimator.classes_ = classes
    weight = check_weight(sample_weight, len(columns))
    together = read_groups(groups, weight, fewest=2)  # folds need no more
    if shares is None:
        return LabelledPredictions(columns, codes, weight, together)
    assert votes is not None
    votes = np.nan_to_num(votes, nan=1.0)
    weight = weight * votes
    return LabelledPredictions(columns, shares, weight, together.with_votes(votes, weight))


def refuse_absent_labels(columns, happened, classes) -> None:
    """Raise where a label is an absent option, whose logit is -inf."""
    absent = np.isneginf(columns)
    if not absent.any():
        return
    if happened.ndim == 1:
        happened = np.arange(columns.shape[1]) == happened[:, None]
    wrong = absent & (happened > 0)
    if wrong.any():
        where = first_of(wrong)
        reason = f"is -inf, but y says that {str(classes[where['column']])!r} happened there."
        raise InputError("X", reason, "Correct the label or the logit.", **where)


def _warn_if_reversed(x, codes, classes) -> None:
    """Warn where the predictions are clearly those of the other of two named classes."""
    if classes.tolist() not in ([0, 1], [-1, 1]) and is_clearly_lower(x, codes):
        other, taken = (repr(label) for label in classes.tolist())
        warnings.warn(
            f"X was read as predictions of {taken}, the second label in order, but is higher for "
            f"{other}. If it predicts {other}, pass y == {other}, or Recalibrator(labels=[{taken}, "
            f"{other}]).",
            UserWarning,
            stacklevel=2,
        )
