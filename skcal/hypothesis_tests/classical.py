"""The tests of the medical and meteorological literature, all asymptotic."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import chi2, norm

from skcal._bins import bin_sums
from skcal._sklearn_compat import Interval, StrOptions, validate_params
from skcal.hypothesis_tests.result import CalibrationTestResult, positive
from skcal.metrics import cox_recalibration
from skcal.metrics.base import read_sample
from skcal.metrics.cox import check_both, read_logits
from skcal.metrics.logistic import fit_intercept, log_likelihood
from skcal.metrics.moments import problem_moments


def spiegelhalter_test(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    notion: str = "auto",
    labels: ArrayLike | None = None,
    pos_label: Any = None,
) -> CalibrationTestResult:
    """Test whether the Brier score is what the predictions promise, by Spiegelhalter's z.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Labels.
    y_proba : array-like of shape (n_samples,) or (n_samples, n_classes)
        Probabilities in [0, 1]; rows sum to 1. A 1-D array holds P(positive class).
    notion : {"auto", "binary", "confidence"}, default="auto"
        "auto" is "binary" for one and two columns and "confidence" for more.
    labels : array-like of shape (n_classes,), default=None
        The class of each column; for 1-D predictions (negative class, positive class).
    pos_label : label, default=None
        The positive class of 1-D predictions, or of two columns for "binary"; an error otherwise.

    Returns
    -------
    result : CalibrationTestResult
        ``statistic`` is z, ``estimate`` the excess of the Brier score over its expectation,
        positive for overconfident predictions; two-sided p-value, asymptotic.
        ``confidence_interval()`` is by the variance of the sample, z by that under H0, so the
        interval may hold 0 where p < 0.05.

    Raises
    ------
    ValueError
        If the input is not valid, or every prediction is 0, ½ or 1, where z is 0/0.

    Notes
    -----
    Blind to miscalibration that leaves the Brier score as expected. Measured level at 5 %
    on confidences of model M1, C = 10, Dir(0.1): 3.8 % at n = 50, 5.1 % at n = 250 (2,000 data
    sets).

    References
    ----------
    .. [1] Spiegelhalter, Probabilistic prediction in patient management and clinical trials,
       Statistics in Medicine 1986.

    Examples
    --------
    >>> from skcal.hypothesis_tests import spiegelhalter_test
    >>> result = spiegelhalter_test([0, 1, 1, 1], [0.1, 0.4, 0.2, 0.9])
    >>> round(result.statistic, 4), round(result.pvalue, 4)
    (1.0302, 0.3029)
    """
    sample = read_sample(
        y_true, y_proba, notion=notion, labels=labels, pos_label=pos_label, at_least=2
    )
    x, outcome = _single(sample)
    terms = (outcome - x) * (1 - 2 * x)
    deviation = np.sqrt(((1 - 2 * x) ** 2 * x * (1 - x)).sum())
    if deviation == 0:
        raise ValueError(
            "Spiegelhalter's z has a variance of 0: every prediction in y_proba is 0, 0.5 or 1. "
            "Use monte_carlo_test."
        )
    z = float(terms.sum() / deviation)
    return CalibrationTestResult(
        statistic=z,
        pvalue=positive(2 * norm.sf(abs(z))),
        estimate=float(terms.mean()),
        method="Spiegelhalter's z, asymptotic level",
        notion=sample.notion,
        standard_error=float(terms.std(ddof=1) / np.sqrt(len(x))),
    )


@validate_params(
    {
        "n_bins": [Interval(Integral, 3, None, closed="left")],
        "strategy": [StrOptions({"uniform", "quantile"})],
        "min_expected": [Interval(Real, 0, None, closed="left")],
        "external": ["boolean"],
    },
    prefer_skip_nested_validation=True,
)
def hosmer_lemeshow_test(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    notion: str = "auto",
    n_bins: int = 10,
    strategy: str = "quantile",
    min_expected: float = 5,
    external: bool = True,
    labels: ArrayLike | None = None,
    pos_label: Any = None,
) -> CalibrationTestResult:
    """Hosmer-Lemeshow test: Σ_b (O_b - E_b)² / (E_b (1 - E_b / n_b)) against χ².

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Labels.
    y_proba : array-like of shape (n_samples,) or (n_samples, n_classes)
        Probabilities in [0, 1]; rows sum to 1. A 1-D array holds P(positive class).
    notion : {"auto", "binary", "confidence"}, default="auto"
        "auto" is "binary" for one and two columns and "confidence" for more.
    n_bins : int ≥ 3, default=10
    strategy : {"quantile", "uniform"}, default="quantile"
        The rule of the bins, as in :func:`skcal.metrics.expected_calibration_error`; equal
        predictions share a bin.
    min_expected : float ≥ 0, default=5
        Fewest positives and fewest negatives that the predictions expect in a bin: neighbouring
        bins are merged until they have them. 0 leaves the bins as they are.
    external : bool, default=True
        Whether the samples are other than those that the model was fitted to: degrees of freedom
        are the number of bins, else that minus 2.
    labels : array-like of shape (n_classes,), default=None
        The class of each column; for 1-D predictions (negative class, positive class).
    pos_label : label, default=None
        The positive class of 1-D predictions, or of two columns for "binary"; an error otherwise.

    Returns
    -------
    result : CalibrationTestResult
        ``estimate`` is NaN; asymptotic.

    Raises
    ------
    ValueError
        If the input is not valid, all samples together expect fewer than ``min_expected`` of either
        outcome, or a bin holds certain predictions only (all 0 or all 1).

    Notes
    -----
    The value depends on the bins. Measured level at 5 % (400 data sets, standard error 1 %):
    confidences of model M1, C = 10, Dir(0.1), 3.5 % at n = 50 and 5.0 % at n = 250; 1 % positives,
    2.5 % at n = 500 and 6.8 % at n = 3,000; 20 classes, Dir(10), n = 200, 6.8 %. Without merging,
    ``min_expected=0``, 12.2 % for 1 % positives at n = 500.

    References
    ----------
    .. [1] Hosmer & Lemeshow, Goodness of fit tests for the multiple logistic regression model,
       Comm. Statist. A 1980.

    Examples
    --------
    >>> import numpy as np
    >>> from skcal.hypothesis_tests import hosmer_lemeshow_test
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(size=500)
    >>> hosmer_lemeshow_test(rng.uniform(size=500) < p**2, p).pvalue < 1e-6
    True
    """
    sample = read_sample(y_true, y_proba, notion=notion, labels=labels, pos_label=pos_label)
    _single(sample)
    [problem] = sample.problems()
    sums = problem_moments(problem, (n_bins, strategy, 1))
    expected = bin_sums(sums.bins, problem.features.astype(np.float64), len(sums.weight))[:, 0]
    table = np.stack([sums.weight, expected, sums.residuals[:, 0]], axis=1)[sums.weight > 0]
    weight, expected, gaps = _merge(table, min_expected).T
    variance = expected * (1 - expected / weight)
    certain = variance <= 1e-12 * weight
    if (certain & (np.abs(gaps) > 1e-9)).any() or certain.all():
        raise ValueError(
            "A bin holds only predictions of 0 or 1 in y_proba, whose variance is 0. Use "
            "monte_carlo_test."
        )
    statistic = float((gaps[~certain] ** 2 / variance[~certain]).sum())
    freedom = int((~certain).sum()) - (0 if external else 2)
    if freedom < 1:
        raise ValueError(
            f"{int((~certain).sum())} bins are too few with external={external}. Pass more n_bins."
        )
    return CalibrationTestResult(
        statistic=statistic,
        pvalue=positive(chi2.sf(statistic, freedom)),
        estimate=np.nan,
        method=f"Hosmer-Lemeshow, χ² with {freedom} degrees of freedom, asymptotic level",
        notion=sample.notion,
    )


def _merge(table, least):
    """Rows (samples, expected, gap) of neighbouring bins summed until enough is expected."""

    def enough(row):
        return min(row[1], row[0] - row[1]) >= least

    rows: list[np.ndarray] = []
    rest = np.zeros(3)
    for row in table:
        rest = rest + row
        if enough(rest):
            rows, rest = [*rows, rest], np.zeros(3)
    if rows:
        rows[-1] = rows[-1] + rest  # what is left over joins the last
        return np.stack(rows)
    raise ValueError(
        f"y_proba expects {rest[1]:.3g} positives among {rest[0]:.0f} samples, and at least "
        f"min_expected={least:g} of either outcome are needed. Use monte_carlo_test."
    )


@validate_params(
    {"hypothesis": [StrOptions({"calibrated", "intercept", "slope"})]},
    prefer_skip_nested_validation=True,
)
def cox_test(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    notion: str = "auto",
    hypothesis: str = "calibrated",
    labels: ArrayLike | None = None,
    pos_label: Any = None,
) -> CalibrationTestResult:
    """Likelihood ratio test of the calibration intercept and slope of Cox.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Labels.
    y_proba : array-like of shape (n_samples,) or (n_samples, n_classes)
        Probabilities in [0, 1]; rows sum to 1. A 1-D array holds P(positive class).
    notion : {"auto", "binary", "confidence"}, default="auto"
        "auto" is "binary" for one and two columns and "confidence" for more.
    hypothesis : {"calibrated", "intercept", "slope"}, default="calibrated"
        "calibrated": intercept 0 and slope 1, 2 degrees of freedom. "intercept": intercept 0 given
        slope 1; "slope": slope 1 with a free intercept; 1 degree of freedom each.
    labels : array-like of shape (n_classes,), default=None
        The class of each column; for 1-D predictions (negative class, positive class).
    pos_label : label, default=None
        The positive class of 1-D predictions, or of two columns for "binary"; an error otherwise.

    Returns
    -------
    result : CalibrationTestResult
        ``estimate`` is the intercept or the slope; NaN for "calibrated". Asymptotic.

    Raises
    ------
    ValueError
        If :func:`skcal.metrics.cox_recalibration` raises it.

    Notes
    -----
    Measured level at 5 % of "calibrated", on confidences of model M1, C = 10, Dir(0.1): 4.3 % at
    n = 50, 6.4 % at n = 250 (2,000 data sets).

    References
    ----------
    .. [1] Cox, Two further applications of a model for binary regression, Biometrika 1958.

    Examples
    --------
    >>> import numpy as np
    >>> from skcal.hypothesis_tests import cox_test
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(size=500)
    >>> cox_test(rng.uniform(size=500) < p**2, p).pvalue < 1e-6
    True
    """
    options = {"notion": notion, "labels": labels, "pos_label": pos_label}
    if hypothesis == "intercept":  # needs no slope, so no overlap either
        logit, outcome, weight, notion = read_logits(y_true, y_proba, sample_weight=None, **options)
        check_both(outcome)
        large = fit_intercept(logit, outcome, weight)
        likelihoods = large.log_likelihood, log_likelihood(logit, outcome, weight)
        freedom, estimate, error = 1, large.coefficients[0], np.sqrt(large.covariance[0, 0])
    else:
        fit = cox_recalibration(y_true, y_proba, **options)
        notion, null = fit.notion, "calibrated" if hypothesis == "calibrated" else "intercept"
        likelihoods = fit.log_likelihood["intercept and slope"], fit.log_likelihood[null]
        freedom, estimate, error = 2, np.nan, np.nan
        if hypothesis == "slope":
            freedom, estimate, error = 1, fit.slope, fit.slope_standard_error
    statistic = max(2 * (likelihoods[0] - likelihoods[1]), 0.0)
    return CalibrationTestResult(
        statistic=statistic,
        pvalue=positive(chi2.sf(statistic, freedom)),
        estimate=float(estimate),
        method=f"likelihood ratio, χ² with {freedom} degree(s) of freedom, asymptotic level",
        notion=notion,
        standard_error=float(error),
    )


def _single(sample):
    """Features and outcomes of a notion with one problem."""
    if not sample.notion.single:
        raise ValueError(
            f"notion={sample.notion!r} is several problems or a vector. Use 'binary' or "
            "'confidence', or test each class and adjust_pvalues."
        )
    [problem] = sample.problems()
    return problem.features[:, 0].astype(np.float64), problem.outcomes[:, 0]
