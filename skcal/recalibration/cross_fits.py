"""Maps that have not seen the samples which they judge, and what recalibration wins there."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from skcal._scores import LOSSES, of_outcomes
from skcal.recalibration.losses import LossComparison
from skcal.recalibration.mixture import LabelledPredictions, mapped_proba
from skcal.recalibration.selection import Trial

#: Name of a loss → scikit-learn's name of its score.
SCORES = {"log_loss": "neg_log_loss", "brier_score": "neg_brier_score"}


class CrossFit(NamedTuple):
    """A map, and the samples that neither its fit nor its choice has seen.

    Attributes
    ----------
    test : ndarray of int
        Rows of these samples.
    fitted : map
    n_train : int
        Samples of positive weight that it was fitted to.
    """

    test: np.ndarray
    fitted: Any
    n_train: int


def cross_fits(trial: Trial, data, splits, do_no_harm: bool, identity: bool) -> list[CrossFit]:
    """For each split the map that the others choose, or the identity."""
    found = []
    for number, (train, test) in enumerate(splits):
        others = [k for k in range(len(splits)) if k != number] or [number]
        setting = 0 if identity else trial.choose(others, do_no_harm)
        fitted = trial.held_out[setting][number].fitted
        found.append(CrossFit(test, fitted, int(np.count_nonzero(data.weight[train]))))
    return found


def cross_fitted(fits: list[CrossFit], X: np.ndarray, n_classes: int):
    """Rows that were held out, in order, and their recalibrated probabilities."""
    rows = np.concatenate([one.test for one in fits])
    parts = [mapped_proba(one.fitted, X[one.test], one.n_train, n_classes) for one in fits]
    order = np.argsort(rows)
    return rows[order], np.concatenate(parts)[order]


def compare(fits: list[CrossFit], identity, data: LabelledPredictions) -> dict[str, LossComparison]:
    """Losses before and after on the samples that were held out."""
    rows, after = cross_fitted(fits, data.X, data.n_classes)
    before = identity.predict_proba(data.X[rows])
    codes, weight = data.codes[rows], data.weight[rows]
    return {
        name: LossComparison.of(
            of_outcomes(LOSSES[score](before), codes),
            of_outcomes(LOSSES[score](after), codes),
            weight,
        )
        for name, score in SCORES.items()
    }
