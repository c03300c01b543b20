"""The calibration error with its limits, of which the lower one agrees with the verdict."""

from __future__ import annotations

from numbers import Integral
from typing import Any

from numpy.typing import ArrayLike

from skcal._sklearn_compat import Interval, validate_params
from skcal._validation import CONFIDENCE_LEVEL
from skcal.hypothesis_tests.joint import verdict_of
from skcal.metrics.error_limits import CalibrationErrorInterval, ErrorLimits
from skcal.sample import Sample, read_sample


@validate_params({"max_crossings": [Interval(Integral, 0, 100, closed="both")], **CONFIDENCE_LEVEL})
def calibration_error_interval(
    y_true: ArrayLike | Sample,
    y_proba: ArrayLike | None = None,
    *,
    notion: str = "auto",
    confidence_level: float = 0.95,
    max_crossings: int = 3,
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    pos_label: Any = None,
    from_logits: bool = False,
) -> CalibrationErrorInterval:
    """Calibration error with one-sided confidence limits, without bins and without smoothness.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,) or (n_samples, n_classes), or Sample
        Labels, or shares or votes of the classes; see :doc:`/guide/soft_labels`.
    y_proba : array-like of shape (n_samples,) or (n_samples, n_classes), default=None
        Probabilities in [0, 1]; rows sum to 1. A 1-D array holds P(positive class).
        Left out beside a :class:`skcal.Sample`.
    notion : str, default="auto"
        A scalar notion; "auto" is "binary" for one and two columns and "confidence" for more. The
        error of "classwise" and of "multi-label" is the mean over the classes.
    confidence_level : float in (0, 1), default=0.95
        Of each of the two limits.
    max_crossings : int in [0, 100], default=3
        The upper limit holds for calibration curves that cross the diagonal at most so often. It
        allows more crossings where the data show more.
    sample_weight : array-like of shape (n_samples,), default=None
        Importance weights, whose scale does not matter.
    groups : array-like of shape (n_samples,), default=None
        Samples of one group may depend on each other; None: all are independent. See
        :doc:`/guide/dependent_samples`.
    labels : array-like of shape (n_classes,), default=None
        The class of each column; for 1-D predictions (negative class, positive class).
    pos_label : label, default=None
        The positive class of 1-D predictions, or of two columns for "binary"; an error otherwise.
    from_logits : bool, default=False
        Whether ``y_proba`` holds logits; probabilities keep full precision.

    Returns
    -------
    interval : CalibrationErrorInterval
        Its ``sentence()`` says estimate and limits in words.

    Raises
    ------
    ValueError
        If the input is not valid or the notion has vectors.

    See Also
    --------
    calibration_error : only the estimate.
    skcal.hypothesis_tests.calibration_test : decides whether the lower limit is above 0.
    skcal.hypothesis_tests.equivalence_test : is the error below a limit that you set?
    bootstrap_interval : intervals of other measures.
    skcal.Sample : Labels and predictions, read once for several questions.

    Notes
    -----
    For a pattern of signs s(p) the mean of (y - p) s(p) estimates at most E abs(E[y | p] - p), and
    just that if s is the sign of the gap. T_k is the largest such mean over patterns that change
    their sign at most k times.

    *Upper limit.* T_k plus the half width of the pattern that attains it. The pattern of the true
    gap is a fixed one. If it changes its sign at most k times, its own mean is at most T_k, and
    misses the error by more than its half width in 5 % of the data sets. k is ``max_crossings``, or
    larger where T_k of a larger k exceeds it by more than noise. The attribute ``max_crossings``
    says which. A curve that crosses the diagonal more often than that, by so little that the data
    do not show it, may have a larger error than this limit. The argument needs a half width as
    large as that of the true pattern. Independent samples have one for all patterns. Effects of
    groups add up in a constant pattern and cancel in an alternating one. With ``groups`` the limit
    is the largest of T_j plus the half width of its pattern, for j = 0, …, k.

    *Lower limit.* The larger of two, each at half the level: that of the bias, and that of the mean
    of (y - p) s(p), where the models of :func:`calibration_error` choose s, between -1 and 1, for
    each of ten folds from the other nine. The folds come from a fixed seed and the sorted rows. The
    limit is 0 where :func:`~skcal.hypothesis_tests.calibration_test` (seed 0, rows sorted, 999
    redraws, and 199 of more than 100,000 samples) does not reject. Where that test alone shows an
    error, ``low`` is 0 as well, and ``sentence()`` says that the error is above 0.

    Share of data sets whose limit is on the wrong side of the truth, over curves that cross at most
    three times (``tests/studies/calibration_error_study.py``, the page "Validation" of the
    documentation): independent samples, 18 curves, lower 2.2 %, 2.2 % and 2.9 % at n = 300, 1,000
    and 10,000, of 2,600, 2,600 and 385 data sets, and at most 13 of 200 of one curve at n = 300 and
    1,000; upper 0.1 %, 0.2 % and 0.3 % of 3,600, 3,600 and 1,979.
    Lognormal weights, groups of five and five votes a sample, four curves: lower 0.5 to 1.3 % of
    600 each at n = 300 and 0.3 to 2 % of 300 each at n = 1,000, upper 0 of 800 and of 400 each,
    which could be narrower. Large groups whose latent scores are correlated by 0.4 to 0.6, a gap on
    one side of 0.15, 0.1 and 0.075: upper 3.0, 2.9 and 4.4 % of 2,000 each (10 groups of 800, 12 of
    1,000 and 40 of 400).

    Standard errors are the larger of the observed one and that of calibrated predictions, of
    ``groups`` by their sums, with quantiles of Student's distribution for groups and for weights
    that differ. The estimate and its accuracy: :func:`calibration_error`. Neither a seed nor the
    order of the rows changes a digit.

    Examples
    --------
    >>> import numpy as np
    >>> from skcal.hypothesis_tests import calibration_error_interval
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(size=1000)
    >>> y = rng.uniform(size=1000) < p**1.5
    >>> print(calibration_error_interval(y, p).sentence())
    calibration error 0.080 (at least 0.055, at most 0.120, each with 95 % confidence)
    """
    options: dict[str, Any] = {"from_logits": from_logits, "groups": groups}
    sample = read_sample(y_true, y_proba, notion, sample_weight, labels, pos_label, **options)
    return ErrorLimits.of(sample).interval(
        verdict_of(sample).pvalue, confidence_level, max_crossings
    )
