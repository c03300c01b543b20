"""Predictions where the classes are more or less frequent than where they were made for."""

from __future__ import annotations

import warnings
from numbers import Integral, Real

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning

from skcal._sklearn_compat import Interval, validate_params
from skcal._validation import InputError, check_proba, check_weight

_TOLERANCE = 1e-6  # by which the sum of prevalences may miss 1


def adjust_prevalence(
    y_proba: ArrayLike, *, prevalence: float | ArrayLike, new_prevalence: float | ArrayLike
) -> np.ndarray:
    """Adjust predicted probabilities to other class prevalences (prior shift).

    The result is p_k π'_k / π_k, divided by its sum over the classes [1]_. The logit of a single
    probability is shifted by logit π' - logit π. This is right if the classes became more or less
    frequent and cases within each look as before (label shift), as after subsampling one class.

    Parameters
    ----------
    y_proba : array-like of shape (n_samples,) or (n_samples, n_classes)
        Probabilities in [0, 1], calibrated at ``prevalence``; rows sum to 1. A 1-D array holds
        P(positive class).
    prevalence : float in (0, 1) or array-like of shape (n_classes,)
        π, the share of each class in the population where the predictions are calibrated, such as
        the training data. For a 1-D ``y_proba`` it is the share of the positive class.
    new_prevalence : float in [0, 1] or array-like of shape (n_classes,)
        π', the shares where the predictions are used.

    Returns
    -------
    adjusted : ndarray of the shape of ``y_proba``
        0 and 1 stay.

    Raises
    ------
    ValueError
        If the input is not valid, or a row gives probability only to classes of new prevalence 0.

    See Also
    --------
    estimate_prevalence : the new prevalence from predictions without labels.
    skcal.Recalibrator : learns a map from labels of the place of use.

    References
    ----------
    .. [1] Elkan, The foundations of cost-sensitive learning, IJCAI 2001, Theorem 2. Saerens,
       Latinne & Decaestecker, Adjusting the outputs of a classifier to new a priori probabilities,
       Neural Computation 2002.

    Examples
    --------
    >>> from skcal.recalibration import adjust_prevalence
    >>> adjust_prevalence([0.5, 0.9], prevalence=0.5, new_prevalence=0.1)
    array([0.1, 0.5])
    """
    proba = check_proba(y_proba)
    old = _positive_shares(prevalence, proba)
    new = _shares(new_prevalence, "new_prevalence", proba)
    parts = _of_all_classes(proba) * (new / old)
    total = parts.sum(axis=1, keepdims=True)
    if not total.all():
        row = int(np.argmin(total))
        raise InputError(
            "y_proba",
            "gives all probability to classes of new prevalence 0.",
            "Pass a new_prevalence above 0 for them.",
            row=row,
        )
    parts /= total
    return parts[:, 1] if proba.ndim == 1 else parts


@validate_params(
    {
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
    },
    prefer_skip_nested_validation=True,
)
def estimate_prevalence(
    y_proba: ArrayLike,
    *,
    prevalence: float | ArrayLike,
    sample_weight: ArrayLike | None = None,
    max_iter: int = 1000,
    tol: float = 1e-8,
) -> float | np.ndarray:
    """Estimate class prevalences in unlabelled data, from the predictions.

    The shares of the highest likelihood, by accelerated expectation and maximisation [1]_: they are
    the mean of the predictions that are adjusted to them.

    Parameters
    ----------
    y_proba : array-like of shape (n_samples,) or (n_samples, n_classes)
        Probabilities for samples of the place of use, calibrated at ``prevalence``. A 1-D array
        holds P(positive class).
    prevalence : float in (0, 1) or array-like of shape (n_classes,)
        The share of each class where the predictions are right; of a 1-D ``y_proba`` that of the
        positive class.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the samples.
    max_iter : int, default=1000
        The largest number of iterations.
    tol : float ≥ 0, default=1e-8
        By how much the shares may still change in a step.

    Returns
    -------
    new_prevalence : float or ndarray of shape (n_classes,)
        0 for classes without which the likelihood is highest.

    Raises
    ------
    ValueError
        If the input is not valid.

    Warns
    -----
    ConvergenceWarning
        If ``max_iter`` steps do not suffice.
    UserWarning
        If the likelihood is highest where a class is absent.

    See Also
    --------
    adjust_prevalence : probabilities at the prevalence found.

    Notes
    -----
    Much less certain than a count of labels. The standard deviation was 0.037, 0.017 and 0.010 for
    predictions with C-statistics of 0.69, 0.84 and 0.96, at n = 1,000 and a new prevalence of 5 %.
    That of counting labels is 0.007. Trust the estimate only if the predictions are calibrated at
    ``prevalence`` and the classes look as before (label shift). Errors of the predictions go into
    the estimate: predictions that are too low by a constant factor can bring it to 0.

    References
    ----------
    .. [1] Saerens, Latinne & Decaestecker, Adjusting the outputs of a classifier to new a priori
       probabilities, Neural Computation 2002.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.special import expit
    >>> from skcal.recalibration import estimate_prevalence
    >>> rng = np.random.default_rng(0)
    >>> y = rng.random(5000) < 0.2  # it was 0.5 where the model comes from
    >>> p = expit(2 * rng.normal(np.where(y, 1, -1)))
    >>> round(estimate_prevalence(p, prevalence=0.5), 1)
    0.2
    """
    proba = check_proba(y_proba)
    weight = check_weight(sample_weight, len(proba))
    proba, weight = proba[weight > 0], weight[weight > 0]
    old = _positive_shares(prevalence, proba)
    shares, ratios, weight = old, _of_all_classes(proba) / old, weight / weight.sum()
    for _ in range(max_iter):
        before, shares = shares, _two_steps(shares, ratios, weight)
        if np.abs(shares - before).max() <= tol:
            break
    else:
        warnings.warn(
            f"The prevalence still changes after max_iter={max_iter} steps. Pass a larger "
            "max_iter; predictions that hardly tell the classes apart need many.",
            ConvergenceWarning,
            stacklevel=2,
        )
    absent = (shares < 1e-4) & (weight @ (ratios / (ratios @ shares)[:, None]) <= 1)
    if absent.any():
        shares = np.where(absent, 0.0, shares / shares[~absent].sum())
        warnings.warn(
            f"The likelihood is highest where class {int(np.argmax(absent))} is absent, a "
            "prevalence of 0: no estimate inside (0, 1) fits these predictions. Most often they "
            "are not calibrated at the prevalence that was passed, or the samples are few. Check "
            "them with labels, or count some labels of the place of use.",
            stacklevel=2,
        )
    return float(shares[1]) if proba.ndim == 1 else shares


def _two_steps(shares, ratios, weight):
    """Two steps of expectation and maximisation, and beyond them where that is likelier [1]_.

    .. [1] Varadhan & Roland, Simple and globally convergent methods for accelerating the
       convergence of any EM algorithm, Scandinavian J. Statistics 2008.
    """

    def step(shares):
        density = ratios @ shares
        return weight @ np.log(density), shares * ((weight / density) @ ratios)

    _, after_one = step(shares)
    likelihood, after_two = step(after_one)
    move, turn = after_one - shares, after_two - 2 * after_one + shares
    length = np.linalg.norm(turn)
    if length == 0:
        return after_two
    far = max(1.0, float(np.linalg.norm(move) / length))
    beyond = np.maximum(shares + 2 * far * move + far**2 * turn, after_two / 10)
    better, after_three = step(beyond / beyond.sum())
    return after_three if better > likelihood else after_two


def _of_all_classes(proba):
    proba = proba.astype(np.float64)
    return np.column_stack([1 - proba, proba]) if proba.ndim == 1 else proba


def _positive_shares(prevalence, proba) -> np.ndarray:
    """Shares where the predictions are right; of a class of share 0 they say nothing."""
    shares = _shares(prevalence, "prevalence", proba)
    if not (shares > 0).all():
        reason = f"is 0 for class {int(np.argmin(shares))}: of a class of share 0 nothing is known."
        remedy = "Leave out its column, and divide each row by its sum."
        remedy = "Pass one inside (0, 1)." if proba.ndim == 1 else remedy
        raise InputError("prevalence", reason, remedy)
    return shares


def _shares(given, name, proba) -> np.ndarray:
    """Shares of all columns, which sum to 1."""
    n_classes = 2 if proba.ndim == 1 else proba.shape[1]
    shares = np.asarray(given, dtype=np.float64)
    if proba.ndim == 1 and shares.ndim == 0:
        shares = np.array([1 - shares, shares])
    if shares.shape != (n_classes,):
        needed = "one number" if proba.ndim == 1 else f"{n_classes} numbers, one a column"
        raise InputError(name, f"has shape {np.shape(given)}.", f"Pass {needed}.")
    if not (shares >= 0).all() or abs(shares.sum() - 1) > _TOLERANCE:
        raise InputError(
            name,
            f"holds no shares that sum to 1: {given!r}.",
            "Pass shares of the classes, which sum to 1.",
        )
    return shares / shares.sum()
