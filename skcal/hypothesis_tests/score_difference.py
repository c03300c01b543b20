"""Paired differences of two models in accuracy, proper scores and selective prediction."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skcal._scores import brier_losses, log_losses
from skcal._show import percent
from skcal.metrics import area_under_risk_coverage
from skcal.recalibration.losses import LossComparison
from skcal.sample import Sample

_LOSSES = {"Brier score": brier_losses, "log loss": log_losses}


class ScoreDifference(NamedTuple):
    """The first model minus the second, with its interval.

    Attributes
    ----------
    measure : str
    estimate, low, high, pvalue : float
    method : str
    larger_is_better : bool
    """

    measure: str
    estimate: float
    low: float
    high: float
    pvalue: float
    method: str
    larger_is_better: bool = False


def score_differences(
    first: Sample, second: Sample, level: float, n_resamples: int, random_state: int
) -> list[ScoreDifference]:
    """Return differences of Brier score and log loss, and of predictions that are right or wrong.

    The latter are those of the accuracy, of the area under the risk-coverage curve, and of the
    largest coverage at which the observed risk is at most half of the smaller share of wrong
    answers, in one digit. Means and the area, by its influence function, have the limits of means;
    the coverage has a bootstrap of samples, or of groups. An infinite difference is left out.
    """
    found, samples = [], (first, second)
    for name, losses in _LOSSES.items():
        proba = [sample.proba_of_classes for sample in samples]
        outcomes = [sample.happened for sample in samples]
        about = first.weight, first.groups
        gain = LossComparison.of_predictions(losses, proba, outcomes, *about)
        found += _of_means(name, gain, first, level)
    if first.notion.single and not first.notion.of_positive_class and first.outcomes is None:
        found += _of_answers(first, second, level, n_resamples, random_state)
    return found


def _of_answers(first, second, level, n_resamples, random_state) -> list[ScoreDifference]:
    answers = [_Ranked.of(sample) for sample in (first, second)]
    found: list[ScoreDifference] = []
    for name, larger in (("accuracy", True), ("area under the risk-coverage curve", False)):
        values = [one.right if larger else one.influence() for one in answers]
        gain = LossComparison.of(values[0], values[1], first.weight, first.groups)
        found += _of_means(name, gain, first, level, larger)
    share = min(1 - float(np.average(one.right, weights=first.weight)) for one in answers)
    risk = float(f"{share / 2:.1g}")
    if not 0 < risk < 1:
        return found
    units = first.groups.units(len(first.codes))
    n_units, rng = int(units.max()) + 1, np.random.default_rng(random_state)
    estimate = answers[0].coverage(risk) - answers[1].coverage(risk)
    drawn = np.empty(n_resamples)
    for k in range(n_resamples):
        times = np.bincount(rng.integers(n_units, size=n_units), minlength=n_units)[units]
        drawn[k] = answers[0].coverage(risk, times) - answers[1].coverage(risk, times)
    low, high = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2])
    tails = [(1 + np.count_nonzero(side)) / (1 + n_resamples) for side in (drawn <= 0, drawn >= 0)]
    name, method = f"coverage at a risk of {percent(risk)}", "bootstrap"
    ends = float(min(low, estimate)), float(max(high, estimate))
    found.append(ScoreDifference(name, estimate, *ends, min(1.0, 2 * min(tails)), method, True))
    return found


def _of_means(name, gain: LossComparison, sample, level, larger=False) -> list[ScoreDifference]:
    if not np.isfinite(gain.standard_error):
        return []
    half = sample.groups.quantile((1 - level) / 2, sample.weight) * gain.standard_error
    ends = gain.difference - half, gain.difference + half
    method = "normal limit" if sample.groups.independent else "Student's limit of groups"
    return [ScoreDifference(name, gain.difference, *ends, gain.pvalue, method, larger)]


class _Ranked(NamedTuple):
    """Answers, and their ranks by confidence, the highest first; equal ones are kept together."""

    right: np.ndarray
    weight: np.ndarray
    order: np.ndarray
    last: np.ndarray
    level: np.ndarray

    @classmethod
    def of(cls, sample: Sample) -> _Ranked:
        [problem] = sample.problems()
        sure = problem.features[:, 0]
        order = np.argsort(-sure, kind="stable")
        ends = np.append(np.diff(sure[order]) < 0, True)
        level = np.empty(len(order), dtype=np.intp)
        level[order] = np.cumsum(ends) - ends  # of each answer, from the surest
        return cls(problem.outcomes[:, 0], problem.weight, order, np.flatnonzero(ends), level)

    def _kept(self, times=1) -> tuple[np.ndarray, np.ndarray]:
        """Weights of the answers that each level keeps, and of the wrong ones among them."""
        weight = (self.weight * times)[self.order]
        wrong = weight * (1 - self.right[self.order])
        return np.cumsum(weight)[self.last], np.cumsum(wrong)[self.last]

    def coverage(self, risk: float, times=1) -> float:
        """The largest share of answers that a level keeps whose risk is at most this."""
        kept, wrong = self._kept(times)
        allowed = kept[(wrong <= risk * kept) & (kept > 0)]
        return float(allowed.max(initial=0.0) / kept[-1])

    def influence(self) -> np.ndarray:
        """Terms whose mean is the area, and whose variance is that of the area.

        The area is E[r(S)], of the risk r(s) = P(wrong, S ≥ s) / g(s), g(s) = P(S ≥ s). An answer
        of confidence s moves it by r(s), and by the integral of (wrong - r) / g over what is at
        most as sure.
        """
        kept, wrong = self._kept()
        risk, mass = wrong / kept, np.diff(kept, prepend=0.0)
        area = area_under_risk_coverage(self.right, -self.level, sample_weight=self.weight)
        below = np.cumsum((mass / kept)[::-1])[::-1][self.level]
        of_risk = np.cumsum((mass * risk / kept)[::-1])[::-1][self.level]
        terms = risk[self.level] + (1 - self.right) * below - of_risk
        return area + terms - np.average(terms, weights=self.weight)
