"""Cox's likelihood ratio tests of intercept and slope."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import chi2

from skcal._sklearn_compat import StrOptions, validate_params
from skcal.hypothesis_tests.by_problem import of_each_problem
from skcal.hypothesis_tests.result import CalibrationTestResult, positive
from skcal.metrics.base import Outcome, check_both
from skcal.metrics.cox import check_overlap, fit_intercept, fit_logistic, log_likelihood
from skcal.sample import read_sample


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
    from_logits: bool = False,
) -> CalibrationTestResult:
    """Likelihood ratio test of the calibration intercept and slope of Cox.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Labels.
    y_proba : array-like of shape (n_samples,) or (n_samples, n_classes)
        Probabilities in [0, 1]; rows sum to 1. A 1-D array holds P(positive class).
    notion : {"auto", "binary", "confidence", "top-label", "classwise"}, default="auto"
        "auto" is "binary" for one and two columns and "confidence" for more. The last two test each
        class and adjust by Holm's method.
    hypothesis : {"calibrated", "intercept", "slope"}, default="calibrated"
        "calibrated": intercept 0 and slope 1, 2 degrees of freedom. "intercept": intercept 0 given
        slope 1; "slope": slope 1 with a free intercept; 1 degree of freedom each.
    labels : array-like of shape (n_classes,), default=None
        The class of each column; for 1-D predictions (negative class, positive class).
    pos_label : label, default=None
        The positive class of 1-D predictions, or of two columns for "binary"; an error otherwise.
    from_logits : bool, default=False
        Whether ``y_proba`` holds logits, of which no digit is lost.

    Returns
    -------
    result : CalibrationTestResult
        ``estimate`` is the intercept or the slope; NaN for "calibrated" and for several classes.
        Asymptotic. ``confidence_interval()`` is a normal one; that of the likelihood is in
        :func:`skcal.metrics.cox_recalibration`.

    Raises
    ------
    ValueError
        If :func:`skcal.metrics.cox_recalibration` raises it, of a class by its name.

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
    options = {"labels": labels, "pos_label": pos_label, "from_logits": from_logits}
    sample = read_sample(y_true, y_proba, notion, scalar=True, **options)
    return of_each_problem(sample, lambda problem: _test(problem, hypothesis))


def _test(problem, hypothesis):
    """Twice the difference of the largest log-likelihoods."""
    outcome = Outcome(problem)
    data = outcome.logit, outcome.happened, outcome.weight
    check_both(data[1])
    estimate, error, freedom = np.nan, np.nan, 2 if hypothesis == "calibrated" else 1
    if hypothesis == "intercept":  # needs no slope, so no overlap either
        fit, null = fit_intercept(*data), log_likelihood(*data)
        estimate, error = fit.coefficients[0], np.sqrt(fit.covariance[0, 0])
    else:
        check_overlap(*data[:2])
        fit, null = fit_logistic(*data), log_likelihood(*data)
        if hypothesis == "slope":
            null = fit_intercept(*data).log_likelihood
            estimate, error = fit.coefficients[1], np.sqrt(fit.covariance[1, 1])
    statistic = max(2 * (fit.log_likelihood - null), 0.0)
    return CalibrationTestResult(
        statistic=statistic,
        pvalue=positive(chi2.sf(statistic, freedom)),
        estimate=float(estimate),
        method=f"likelihood ratio, χ² with {freedom} degree(s) of freedom, asymptotic level",
        notion="",
        standard_error=float(error),
    )
