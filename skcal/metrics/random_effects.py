"""How much a number differs between centres, and what a new centre would have."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import stats
from scipy.optimize import minimize_scalar

_NO_EVENTS = 0.5  # is added to observed and expected events of a centre that had none
_FREEDOM_LOST = 2


@dataclass(frozen=True)
class Heterogeneity:
    """O/E ratios of several subgroups, as draws from a normal law of their logarithm.

    Attributes
    ----------
    column : str
        The column that names the subgroups; "" if it has no name.
    n_subgroups : int
    standard_deviation : float
        That of the true log O/E between subgroups.
    ratio : float
        The O/E ratio of a typical subgroup.
    low, high : float
        The prediction interval of the O/E ratio of a new subgroup.
    confidence_level : float
    """

    column: str
    n_subgroups: int
    standard_deviation: float
    ratio: float
    low: float
    high: float
    confidence_level: float

    def sentence(self) -> str:
        """Return what a new subgroup would have, in words."""
        of = f" ({self.column})" if self.column else ""
        return (
            f"In a new subgroup{of}, O/E is expected between {self.low:.2f} and {self.high:.2f} "
            f"({100 * self.confidence_level:g} % prediction interval). The standard deviation of "
            f"log O/E between the {self.n_subgroups} subgroups is {self.standard_deviation:.2f}, "
            "without sampling error."
        )


def heterogeneity_of_ratios(
    column: str, observed, expected, variance, confidence_level: float
) -> Heterogeneity:
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

    Notes
    -----
    log O/E of subgroup k is normal with mean μ and variance τ² + s_k², s_k² = Var O_k / O_k² [1]_.
    τ² maximises the restricted likelihood, and μ has the standard error of Hartung and Knapp, never
    below the usual one. The prediction interval is μ ± t √(τ² + se²), with Student's t of k - 2
    degrees of freedom [2]_ [3]_.

    References
    ----------
    .. [1] Debray et al., A guide to systematic review and meta-analysis of prediction model
       performance, BMJ 2017.
    .. [2] Higgins, Thompson & Spiegelhalter, A re-evaluation of random-effects meta-analysis,
       Journal of the Royal Statistical Society A 2009.
    .. [3] Partlett & Riley, Random effects meta-analysis: coverage performance of 95% confidence
       and prediction intervals following REML estimation, Statistics in Medicine 2017.
    """
    observed, expected, variance = (np.array(x, float) for x in (observed, expected, variance))
    none = observed <= 0
    observed[none] += _NO_EVENTS
    expected[none] += _NO_EVENTS
    variance[none] = _NO_EVENTS
    ratios, spread = np.log(observed / expected), variance / observed**2
    between = restricted_likelihood_variance(ratios, spread)
    weight = 1 / (between + spread)
    mean = float(weight @ ratios / weight.sum())
    n = len(ratios)
    inflation = max(float(weight @ (ratios - mean) ** 2) / (n - 1), 1.0)
    error = np.sqrt(between + inflation / weight.sum())
    half = stats.t(n - _FREEDOM_LOST).isf((1 - confidence_level) / 2) * error
    low, ratio, high = np.exp([mean - half, mean, mean + half]).tolist()
    return Heterogeneity(column, n, float(np.sqrt(between)), ratio, low, high, confidence_level)


def restricted_likelihood_variance(values: np.ndarray, variances: np.ndarray) -> float:
    """Return the variance between values that have these sampling variances, by REML."""

    def deviance(between):
        weight = 1 / (between + variances)
        mean = weight @ values / weight.sum()
        return weight @ (values - mean) ** 2 - np.log(weight).sum() + np.log(weight.sum())

    top = 4 * np.ptp(values) ** 2 + 1e-12
    starts = np.concatenate([[0.0], np.geomspace(1e-6, 1, 40) * top])
    best = int(np.argmin([deviance(between) for between in starts]))
    bounds = starts[max(best - 1, 0)], starts[min(best + 1, len(starts) - 1)]
    inner = minimize_scalar(deviance, bounds=bounds, method="bounded", options={"xatol": 1e-10})
    return min([0.0, float(inner.x)], key=deviance)
