"""The Brier score and the log loss of single predictions, each defined once, and their comparison.

Predictions have a column a class, or one column, P(positive class). The scale of the Brier score is
that of :func:`sklearn.metrics.brier_score_loss`: (p - y)² of two classes, the sum over classes of
(p_k - 1[y = k])² of more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from skcal._groups import INDEPENDENT, Groups, law_of_mean
from skcal._matrices import rowwise_dot
from skcal._show import ShownRounded, number, pvalue_text


def log_losses(proba: np.ndarray) -> np.ndarray:
    """Return -log p of every outcome, (n, C); infinite where p is 0."""
    columns = np.hstack([1 - proba, proba]) if proba.shape[1] == 1 else proba
    with np.errstate(divide="ignore"):
        return -np.log(columns)


def brier_losses(proba: np.ndarray) -> np.ndarray:
    """Return the squared distance of p from every outcome, (n, C); of two classes half of it."""
    if proba.shape[1] == 1:
        return np.hstack([proba**2, (1 - proba) ** 2])
    losses = np.einsum("ij,ij->i", proba, proba)[:, None] + 1 - 2 * proba
    return losses / 2 if proba.shape[1] == 2 else losses


#: Name as of scikit-learn's scorers → losses (n, C) of all outcomes, by probabilities (n, C).
LOSSES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "neg_log_loss": log_losses,
    "neg_brier_score": brier_losses,
}


def of_outcomes(losses: np.ndarray, happened: np.ndarray) -> np.ndarray:
    """Return the losses (n,) of what happened: a column each, or shares of one column or all."""
    if happened.dtype.kind != "f":
        return np.take_along_axis(losses, happened[:, None], axis=1)[:, 0]
    shares = np.column_stack([1 - happened, happened]) if happened.ndim == 1 else happened
    return (shares * np.where(shares != 0, losses, 0)).sum(axis=1)


def bounded_log_losses(
    proba: np.ndarray, codes: np.ndarray, logits: np.ndarray | None = None
) -> np.ndarray:
    """Return the log losses (n,) of what happened, none of them infinite.

    Parameters
    ----------
    proba : ndarray of shape (n, 1) or (n, C)
        Kept off 0 and 1 by the resolution of the dtype, as in :func:`sklearn.metrics.log_loss`.
    codes : ndarray of shape (n,) or (n, C)
        Columns of the outcomes, 0 and 1 for a single column; or shares of the classes, floats.
    logits : ndarray of the shape of ``proba``, default=None
        The logit of a single column, or the logarithms of several; used instead, without bounds.
    """
    if logits is not None:
        return log_losses_of_logits(logits, codes)
    floor = np.finfo(proba.dtype).eps
    bounded = np.clip(proba, floor, 1 - floor).astype(np.float64)
    return of_outcomes(log_losses(bounded), codes)


def log_losses_of_logits(logits: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Return the log losses (n,) of one column of logits, or of the logarithms of probabilities."""
    if logits.shape[1] > 1:
        return -of_outcomes(logits, codes)
    z = logits[:, 0]
    # y log(1 + exp(-z)) + (1 - y) log(1 + exp(z)) of shares y, of which labels lose no digit.
    return np.logaddexp(0, -np.abs(z)) + (np.maximum(z, 0) - codes * z)


_FEW_EVENTS = 10  # below which the spread of losses says little of their variance
_SAME_LOSS = 1e-12  # between losses that differ by rounding


def _gain(before: np.ndarray, after: np.ndarray) -> np.ndarray:
    """Losses before minus after; 0 where they differ by rounding, or both are infinite."""
    with np.errstate(invalid="ignore"):
        return np.where(np.isclose(before, after, _SAME_LOSS, _SAME_LOSS), 0.0, before - after)


@dataclass(frozen=True, eq=False)
class LossComparison(ShownRounded):
    """Mean loss before and after, on the same samples.

    Attributes
    ----------
    before, after : float
        Infinite where something happened that was given probability 0.
    difference : float
        Before minus after: positive where the loss became lower.
    standard_error : float
        The standard error of the difference, given the maps; NaN where that is infinite.
    pvalue : float
        Two-sided normal p-value of equal expected losses, of groups by Student's distribution; 1
        for identical predictions, NaN where the difference is infinite.
    """

    before: float
    after: float
    difference: float
    standard_error: float
    pvalue: float

    @classmethod
    def of(
        cls,
        before: np.ndarray,
        after: np.ndarray,
        weight: np.ndarray,
        groups: Groups = INDEPENDENT,
        law: float = 0.0,
    ) -> LossComparison:
        """Compare losses (n,) of the same samples; of groups no variance is below ``law``.

        Parameters
        ----------
        before : ndarray of shape (n_samples,)
            Losses of each sample.
        after : ndarray of shape (n_samples,)
            Losses of each sample.
        weight : ndarray of shape (n_samples,)
            Weights of the samples.
        groups : Groups, default=INDEPENDENT
            Which samples depend on each other.
        law : float, default=0.0
            The least variance of the difference.
        """
        counted = weight > 0
        before, after, share = before[counted], after[counted], weight[counted] / weight.sum()
        means = float(share @ before), float(share @ after)
        if np.isinf(means).any():
            gap = np.nan if np.isinf(means).all() else np.inf if np.isinf(means[0]) else -np.inf
            return cls(*means, gap, np.nan, np.nan)
        gain = _gain(before, after)
        value = float(share @ gain)
        spread = share**2 @ (gain - value) ** 2
        unbiased = 1 - share @ share
        groups, variance = groups.take(counted), np.inf
        if unbiased > 0:
            variance = max(spread / unbiased, law)
        error = float(np.sqrt(groups.larger_variance(variance, share * (gain - value))))
        student = law_of_mean(groups.degrees_of_freedom(share))
        pvalue = float(2 * student.sf(abs(value) / error)) if error > 0 else float(value == 0)
        return cls(*means, value, error, pvalue)

    @classmethod
    def of_predictions(
        cls,
        losses: Callable[[np.ndarray], np.ndarray],
        proba: Sequence[np.ndarray],
        outcomes: Sequence[np.ndarray],
        weight: np.ndarray,
        groups: Groups = INDEPENDENT,
    ) -> LossComparison:
        """Compare two predictions (n, C) by a table of ``LOSSES``.

        ``outcomes`` are those of each. If they are the same, the standard error is no less than
        what the dependence in groups implies and, if fewer than 10 outcomes were not the most
        probable class, than that of outcomes that follow the mean of both predictions. So few
        events say little of their own variance.

        Parameters
        ----------
        losses : callable
            Of :mod:`skcal._scores`: predictions and outcomes to losses.
        proba : sequence of two ndarray of shape (n_samples, n_classes)
            Predictions before and after.
        outcomes : ndarray, or a pair of them
            Outcomes of both, or of each.
        weight : ndarray of shape (n_samples,)
            Weights of the samples.
        groups : Groups, default=INDEPENDENT
            Which samples depend on each other.
        """
        tables, law = [losses(p) for p in proba], 0.0
        before, after = map(of_outcomes, tables, outcomes)
        if np.array_equal(outcomes[0], outcomes[1]):
            chance, share = (proba[0] + proba[1]) / 2, weight / weight.sum()
            if not groups.independent or _are_rare(outcomes[0], chance, weight):
                law = _variance_of_gain(_gain(*tables), chance, outcomes[0], share, groups)
        return cls.of(before, after, weight, groups, law)

    def __str__(self):
        return self.sentence()

    def sentence(self) -> str:
        """Return the losses before and after, and the difference, in words."""
        if np.isinf([self.before, self.after]).any():
            texts = ["infinite" if np.isinf(x) else number(x) for x in (self.before, self.after)]
            why = "something happened that had probability 0"
            return f"{texts[0]} before, {texts[1]} after ({why})"
        if self.difference == 0 and self.standard_error == 0:
            return f"{number(self.before)} before and after"
        change = "better" if self.difference > 0 else "worse"
        return (
            f"{number(self.before)} before, {number(self.after)} after: {change} by "
            f"{number(abs(self.difference))} ± {number(self.standard_error)} (s.e.), "
            f"{pvalue_text(self.pvalue, 0)}"
        )


def _are_rare(codes, chance, weight) -> bool:
    """Whether fewer than 10 labels are another than the class of the largest chance."""
    other = (weight > 0) & (codes != chance.argmax(axis=1))
    return int(np.count_nonzero(other)) < _FEW_EVENTS


def _variance_of_gain(gain, chance, happened, share, groups: Groups) -> float:
    """Variance of the mean of what outcomes gain (n, C), if they follow these chances (n, C)."""
    groups = groups.of_outcomes(chance, happened)
    gain = np.where(np.isfinite(gain), gain, 0.0)
    mean = rowwise_dot(chance, gain)
    variances = np.maximum(rowwise_dot(chance * gain, gain) - mean**2, 0)
    between = groups.variance_of_sum(share * (mean - share @ mean))
    return groups.variance_of_terms(share * np.sqrt(variances)) + float(between)
