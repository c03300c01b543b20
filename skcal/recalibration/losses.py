"""Paired comparisons of the mean losses of predictions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from skcal._groups import INDEPENDENT, Groups, law_of_mean
from skcal._matrices import rowwise_dot
from skcal._scores import of_outcomes
from skcal._show import ShownRounded, number, pvalue_text

_FEW_EVENTS = 10  # below which the spread of losses says little of their variance


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
        gain = before - after
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
            Of :mod:`skcal.recalibration.losses`: predictions and outcomes to losses.
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
                with np.errstate(invalid="ignore"):
                    gain = tables[0] - tables[1]
                law = _variance_of_gain(gain, chance, outcomes[0], share, groups)
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
