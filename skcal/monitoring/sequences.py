"""Confidence sequences: bounds of a running mean that hold at all times at once.

Terms T_i ≥ -c with conditional means m_i, given the past, satisfy (Howard et al. 2021, from Fan et
al. 2015) for every 0 ≤ λ < 1 / c that

    E exp(λ (T_i - m_i) - ψ(cλ) T_i² / c²) ≤ 1,      ψ(s) = -log(1 - s) - s,

since exp(λ ξ - ψ(λ) ξ²) ≤ 1 + λ ξ for ξ ≥ -1 and 1 + λ m ≤ exp(λ m). The product over samples is
a supermartingale, and so is its average over several λ. By Ville's inequality the average stays
below 1 / α at all times with probability 1 - α; where it does,

    Σ m_i ≥ Σ T_i - c u(Σ T_i² / c²),      u(V) solving  mean_j exp(λ_j u - ψ(λ_j) V) = 1 / α.

The m_i may differ: the bound is of their running mean. Only the sums of T and T² are needed. A
term of weight w ≤ 1 is w T with the square w² T²; one of weight 2, 3, … stands for so many terms.

References
----------
Fan, Grama & Liu, Exponential inequalities for martingales with applications, Electron. J. Probab.
2015. Howard, Ramdas, McAuliffe & Sekhon, Time-uniform, nonparametric, nonasymptotic confidence
sequences, Ann. Statist. 2021. Waudby-Smith & Ramdas, Estimating means of bounded random variables
by betting, J. R. Statist. Soc. B 2024.
"""

from __future__ import annotations

from typing import Any

import numpy as np

_RATES = 0.9 * 0.5 ** np.arange(16.0)  # λ: the smallest suits some 1e9 samples
_PSI = -np.log1p(-_RATES) - _RATES
_STEPS = 60


def boundary(variance: Any, alpha: float) -> np.ndarray:
    """Return u(V), the most that the sum of T - m may be.

    Parameters
    ----------
    variance : array-like of float ≥ 0
        V.
    alpha : float in (0, 1)

    Returns
    -------
    u : ndarray of the same shape

    Examples
    --------
    >>> from skcal.monitoring.sequences import boundary
    >>> boundary([0, 100, 10_000], alpha=0.05).round(1)
    array([  6.3,  37.9, 338.7])
    """
    cost = np.asarray(variance, dtype=np.float64)[..., None] * _PSI
    threshold = np.log(len(_RATES) / alpha)
    u = ((threshold + cost) / _RATES).min(axis=-1)  # one λ alone is above 1 / α: Newton descends
    for _ in range(_STEPS):
        terms = _RATES * u[..., None] - cost
        total = np.logaddexp.reduce(terms, axis=-1)
        slope = (np.exp(terms - total[..., None]) * _RATES).sum(axis=-1)
        step = (total - threshold) / slope
        u = u - step
        if (np.abs(step) <= 1e-12 * u).all():
            break
    return u


def lower_bound(total: Any, squares: Any, count: Any, alpha: float, least: float = 1.0) -> Any:
    """Return the lower confidence bound of the running mean of terms ≥ -``least``.

    Parameters
    ----------
    total, squares : array-like of float
        Σ T and Σ T².
    count : array-like of float
        The number of terms; the bound of none is ``-inf``.
    alpha : float in (0, 1)
    least : float, default=1
        c.
    """
    total, squares, count = np.broadcast_arrays(total, squares, count)
    bound = np.full(total.shape, -np.inf)
    some = count > 0
    margin = least * boundary(squares[some] / least**2, alpha)
    bound[some] = (total[some] - margin) / count[some]
    return bound
