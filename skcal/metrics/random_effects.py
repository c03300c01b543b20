"""How much a number differs between centres, and what a new centre would have."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import stats
from scipy.optimize import minimize_scalar
from scipy.special import expit, logit, wrightomega

_FREEDOM_LOST = 2
_SHRUNK = 1.0  # events of all centres, beside those of one, in its variance of an event
_NODES, _WEIGHTS = np.polynomial.hermite.hermgauss(31)
_STEPS, _SMALL = 100, 1e-10
_MOST = 1000  # of a limit that is printed


@dataclass(frozen=True)
class Heterogeneity:
    """A measure of several subgroups, as draws from a normal law: of log O/E, slope or logit C.

    Attributes
    ----------
    column : str
        The column that names the subgroups; "" if it has no name.
    measure : {"O/E", "calibration slope", "C-statistic"}
    n_subgroups : int
        Subgroups in which the measure is known.
    standard_deviation : float
        That of the true log O/E, slope or logit of C between subgroups.
    estimate : float
        The measure of a typical subgroup.
    low, high : float
        The prediction interval of the measure of a new subgroup.
    confidence_level : float
    """

    column: str
    measure: str
    n_subgroups: int
    standard_deviation: float
    estimate: float
    low: float
    high: float
    confidence_level: float

    def sentence(self) -> str:
        """Return what a new subgroup would have, in words."""
        of = f" ({self.column})" if self.column else ""
        high = f"{self.high:.2f}" if self.high < _MOST else f"more than {_MOST:,}"
        name = self.measure if self.measure == "O/E" else f"the {self.measure}"
        return (
            f"In a new subgroup{of}, {name} is expected between {self.low:.2f} and {high} "
            f"({100 * self.confidence_level:g} % prediction interval). The standard deviation of "
            f"{_SCALES[self.measure][0]} between the {self.n_subgroups} subgroups is "
            f"{self.standard_deviation:.2f}, without sampling error."
        )


_SCALES: dict[str, tuple[str, Callable, Callable]] = {
    "O/E": ("log O/E", np.log, lambda value: np.exp(np.minimum(value, 700))),
    "calibration slope": ("the slope", lambda value: value, lambda value: value),
    "C-statistic": ("logit C", logit, expit),
}


def heterogeneity_of_ratios(
    column: str, observed, expected, variance, confidence_level: float
) -> Heterogeneity | None:
    """Return how much O/E ratios differ between subgroups beyond sampling error.

    Parameters
    ----------
    column : str
    observed, expected : array-like of shape (n_subgroups,)
        Numbers of events.
    variance : array-like of shape (n_subgroups,)
        Sampling variances of the numbers that were observed.
    confidence_level : float
        The confidence level of the limits.

    Returns
    -------
    heterogeneity : Heterogeneity or None
        None if there was no event at all.

    Notes
    -----
    Given θ_k, the events O_k of subgroup k have the mean E_k exp(θ_k) and the likelihood of Poisson
    events of the dispersion φ_k, so that a subgroup without an event counts as what it is [1]_.
    θ_k is normal with mean μ and variance τ². The integral over θ_k is that of an adaptive
    Gauss-Hermite rule. φ_k is Var O_k / O_k, below 1 where events are frequent and above 1 in
    dependent samples, after one event of all subgroups was added to it. τ² maximises the profile
    likelihood of μ, adjusted by the information about it [2]_, which is the restricted likelihood
    if O_k is normal. The standard error of μ is that of the information, times the root of
    Pearson's statistic over k - 1 where that is above 1, as by Hartung and Knapp. The prediction
    interval is μ ± t √(τ² + se²), with Student's t of k - 2 degrees of freedom [3]_ [4]_.

    References
    ----------
    .. [1] Stijnen, Hamza & Özdemir, Random effects meta-analysis of event outcome in the framework
       of the generalized linear mixed model, Statistics in Medicine 2010.
    .. [2] Cox & Reid, Parameter orthogonality and approximate conditional inference, Journal of the
       Royal Statistical Society B 1987.
    .. [3] Higgins, Thompson & Spiegelhalter, A re-evaluation of random-effects meta-analysis,
       Journal of the Royal Statistical Society A 2009.
    .. [4] Debray et al., A guide to systematic review and meta-analysis of prediction model
       performance, BMJ 2017.
    """
    observed, expected, variance = (np.array(x, float) for x in (observed, expected, variance))
    if not observed.sum() > 0:
        return None
    shared = _SHRUNK * variance.sum() / observed.sum()
    dispersion = np.maximum((variance + shared) / (observed + _SHRUNK), 1e-9)
    events, offset = observed / dispersion, expected / dispersion

    def deviance(between):
        _, value, information = fitted_mean(between, events, offset)
        return np.log(information) - 2 * value

    rough = np.log((observed + 0.5) / (expected + 0.5))
    between = _least(deviance, 4 * np.ptp(rough) ** 2 + 1e-12)
    mean, _, information = fitted_mean(between, events, offset)
    marginal = offset * np.exp(mean + between / 2)
    pearson = (events - marginal) ** 2 / (marginal + marginal**2 * np.expm1(between))
    return _predicted(
        column, "O/E", mean, between, 1 / information, pearson.sum(), len(events), confidence_level
    )


def heterogeneity_of_limits(
    column: str, measure: str, values, low, high, confidence_level: float
) -> Heterogeneity:
    """Return how much slopes or C-statistics differ between subgroups beyond sampling error.

    Their estimates, on a scale on which they are about normal, have standard errors by their
    limits. τ² maximises the restricted likelihood; the rest is as of O/E.
    """
    _, scale, _ = _SCALES[measure]
    values, low, high = (scale(np.array(x, float)) for x in (values, low, high))
    spread = ((high - low) / (2 * stats.norm.isf((1 - confidence_level) / 2))) ** 2
    between = restricted_likelihood_variance(values, spread)
    weight = 1 / (between + spread)
    mean = float(weight @ values / weight.sum())
    squares = float(weight @ (values - mean) ** 2)
    about = between, 1 / weight.sum(), squares, len(values), confidence_level
    return _predicted(column, measure, mean, *about)


def _predicted(column, measure, mean, between, variance, squares, n, level) -> Heterogeneity:
    """The prediction interval, from the variance of the mean and a sum of squares of n - 1."""
    error = np.sqrt(between + variance * max(squares / (n - 1), 1.0))
    half = stats.t(n - _FREEDOM_LOST).isf((1 - level) / 2) * error
    back, deviation = _SCALES[measure][2], float(np.sqrt(between))
    estimate, low, high = back(np.array([mean, mean - half, mean + half])).tolist()
    return Heterogeneity(column, measure, n, deviation, estimate, low, high, level)


def fitted_mean(between: float, events, offset) -> tuple[float, float, float]:
    """Return μ, the log-likelihood there and its negative second derivative, given τ²."""
    mean = float(np.log(events.sum() / offset.sum()))
    for _ in range(_STEPS):  # the likelihood is log-concave, as all marginals of such ones
        value, score, information = marginal_likelihood(mean, between, events, offset)
        step = float(np.clip(score / information, -1, 1))
        mean += step
        if abs(step) < _SMALL:
            break
    return mean, value, information


def marginal_likelihood(mean, between, events, offset) -> tuple[float, float, float]:
    """Return the log-likelihood of μ and τ², but for constants, and its derivatives by μ.

    Its first derivative is Σ E[O_k - r_k] and its second one Σ Var r_k - E[r_k], of the rates r_k =
    E_k exp(θ_k) given O_k.
    """
    if between == 0:
        rates = offset * np.exp(mean)
        value = events * mean - rates
        return float(value.sum()), float((events - rates).sum()), float(rates.sum())
    top = mean + between * events
    rate = wrightomega(np.log(between * offset) + top)  # of the mode, times τ²
    scale = np.sqrt(2 * between / (1 + rate))
    theta = (top - rate)[:, None] + scale[:, None] * _NODES
    rates = offset[:, None] * np.exp(theta)
    logs = events[:, None] * theta - rates - (theta - mean) ** 2 / (2 * between)
    logs += np.log(_WEIGHTS) + _NODES**2 + np.log(scale / np.sqrt(2 * np.pi * between))[:, None]
    values = np.logaddexp.reduce(logs, axis=1)
    chance = np.exp(logs - values[:, None])
    means = (chance * rates).sum(axis=1)
    variances = (chance * (rates - means[:, None]) ** 2).sum(axis=1)
    return (
        float(values.sum()),
        float((events - means).sum()),
        max(float((means - variances).sum()), 1e-300),
    )


def restricted_likelihood_variance(values: np.ndarray, variances: np.ndarray) -> float:
    """Return the variance between values that have these sampling variances, by REML."""

    def deviance(between):
        weight = 1 / (between + variances)
        mean = weight @ values / weight.sum()
        return weight @ (values - mean) ** 2 - np.log(weight).sum() + np.log(weight.sum())

    return _least(deviance, 4 * np.ptp(values) ** 2 + 1e-12)


def _least(deviance: Callable[[float], float], top: float) -> float:
    """Where a function of a variance is least, from 0 to ``top``."""
    starts = np.concatenate([[0.0], np.geomspace(1e-5, 1, 25) * top])
    best = int(np.argmin([deviance(between) for between in starts]))
    bounds = starts[max(best - 1, 0)], starts[min(best + 1, len(starts) - 1)]
    inner = minimize_scalar(deviance, bounds=bounds, method="bounded", options={"xatol": 1e-10})
    return min([0.0, float(inner.x)], key=deviance)
