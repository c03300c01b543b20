"""Everything that a defensible account of a classifier's calibration holds, in one call."""

from __future__ import annotations

from numbers import Integral, Real

from skcal._bins import SCALAR_PARTITIONS
from skcal._sklearn_compat import Interval, StrOptions, validate_params
from skcal.displays.base import default_resamples
from skcal.model_selection.candidates import CANDIDATES
from skcal.report.comparison import compare_models
from skcal.report.group_tests import compare_groups
from skcal.report.inputs import make_seed, read_groups, read_second
from skcal.report.numbers import Attempts, measure, run_searches
from skcal.report.parts import Data, Settings
from skcal.report.plain_data import as_settings, version
from skcal.report.report import CalibrationReport
from skcal.report.segment_audit import audit
from skcal.sample import read_sample


@validate_params(
    {
        "notion": [StrOptions({"auto", "binary", "confidence"})],
        "search": ["boolean"],
        "n_bins": [Interval(Integral, 1, None, closed="left")],
        "strategy": [StrOptions(set(SCALAR_PARTITIONS))],
        "min_bin_samples": [Interval(Integral, 1, None, closed="left")],
        "confidence_level": [Interval(Real, 0, 1, closed="neither")],
        "n_resamples": [Interval(Integral, 19, None, closed="left"), None],
        "candidates": [list, tuple, StrOptions(set(CANDIDATES)), None],
        "cv": ["cv_object"],
        "outer_cv": ["cv_object", None],
        "max_search_samples": [Interval(Integral, 20, None, closed="left"), None],
        "name": [str],
        "compare_name": [str],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
    },
    prefer_skip_nested_validation=False,
)
def calibration_report(
    y_true,
    y_proba,
    *,
    notion="auto",
    search=False,
    groups=None,
    segments=None,
    compare=None,
    n_bins=15,
    strategy="uniform",
    min_bin_samples=30,
    confidence_level=0.95,
    n_resamples=None,
    candidates=None,
    cv=5,
    outer_cv=None,
    max_search_samples=100_000,
    labels=None,
    pos_label=None,
    name="classifier",
    compare_name="second classifier",
    random_state=None,
    n_jobs=None,
    verbose=0,
):
    """Estimate, test and show the calibration of predictions.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        The label of each sample.
    y_proba : array-like of shape (n_samples,) or (n_samples, n_classes)
        Probabilities in [0, 1]; rows sum to 1. A 1-D array holds P(positive class).
    notion : {"auto", "binary", "confidence"}, default="auto"
        The notion of ECE, MCE, the figure and the tuned error; "auto" is "binary" for one
        and two columns and "confidence" for more.
    search : bool, default=False
        Whether to tune the canonical and the class-wise error too, which takes longer.
    groups : array-like of shape (n_samples,), default=None
        The subgroup of each sample; the report holds the same numbers for each subgroup. A data
        frame or a dict of several columns makes the groups of each.
    segments : data frame, arrow table, dict of columns or array-like, default=None
        Features of each sample, whose segments are tested for bias all together, as by
        :func:`skcal.hypothesis_tests.segment_test`.
    compare : array-like of the shape of ``y_proba``, default=None
        Predictions of a second model for the same samples.
    n_bins : int, default=15
        The number of bins.
    strategy : {"uniform", "quantile", "sweep", "unique"}, default="uniform"
        The rule of the bins, as in :func:`skcal.metrics.expected_calibration_error`. With
        ``compare`` it is "uniform", since the others depend on the predictions.
    min_bin_samples : int, default=30
        The number of samples that a bin needs in order to count for MCE.
    confidence_level : float in (0, 1), default=0.95
        The confidence level of intervals, bands and the one-sided lower bound.
    n_resamples : int ≥ 19, default=None
        The number of resamples of intervals, null bands and tests; None is 999, above 100,000
        samples 199.
    candidates : list of (function, param_grid), str or None, default=None
        The candidates of :class:`skcal.CalibrationErrorSearchCV`.
    cv, outer_cv : int, cross-validation generator or iterable, default=5 and None
        The inner and the outer splits of that search.
    max_search_samples : int, default=100_000
        The largest number of samples for tuned errors and their paired test; of more, they use this
        many, drawn by
        ``np.random.default_rng(seed).choice(n_samples, …, replace=False)`` and sorted; None uses
        all.
    labels : array-like of shape (n_classes,), default=None
        The class of each column; for 1-D predictions (negative class, positive class).
    pos_label : label, default=None
        The positive class of 1-D predictions, or of two columns for "binary"; an error otherwise.
    name, compare_name : str, default="classifier" and "second classifier"
        The names of the models, for titles.
    random_state : int, RandomState instance or None, default=None
        The seed. An int goes to every function as it is; otherwise one is drawn and kept in
        ``settings``.
    n_jobs : int, default=None
        The number of workers; results do not depend on it.
    verbose : int, default=0
        1 prints a line when a part begins, and a line per candidate of the searches.

    Returns
    -------
    report : CalibrationReport
        The numbers, which ``print(report)``, ``report.save("report.html")``, ``report.plot()``,
        ``report.to_frame()`` and ``report.to_json()`` show.

    Raises
    ------
    ValueError
        If the input is not valid. What the samples do not allow is left out with a warning in the
        report.

    See Also
    --------
    skcal.CalibrationErrorSearchCV : The search behind the tuned error.
    skcal.hypothesis_tests.compare_calibration : The paired test of two models.

    Notes
    -----
    Every number is that of the public function with the same seed:
    ``bootstrap_interval`` of ``expected_calibration_error`` (an end below 0 is shown as 0) and the
    null distribution of ``monte_carlo_test``; the bin of ``calibration_bins(…).largest_gap``;
    ``skce_test`` of the notion and of "canonical" (1-D: "binary"), where exact level
    costs seconds by Monte Carlo, for larger samples by the spectrum or by blocks, as the report
    says; ``score_decomposition`` by isotonic regression of each class,
    for "binary" of the positive class, also of two columns; there also ``validation_measures``,
    ``calibration_curve`` and ``decision_curve``.

    The p-values of groups are adjusted by Holm's method. Where ``n_resamples`` is too few for the
    number of groups, outcomes of each group are drawn until 20 of them show as much, up to 100
    times the number of groups [1]_.

    With ``compare``, both models are also measured by one function: of those that estimate the
    residual the one with the lowest sum of both models' validation risks, so that it favours
    neither. ``compare_calibration`` tests the difference by the same function, and by the SKCE.

    About 10 s for 10,000 predictions of 10 classes and a minute for a million of one; a report of
    groups or of two models takes that for each. Weights are not offered: the tests know none.

    References
    ----------
    .. [1] Besag & Clifford, Sequential Monte Carlo p-values, Biometrika 1991.

    Examples
    --------
    >>> from skcal.datasets import make_tempered
    >>> from skcal.report import calibration_report
    >>> data = make_tempered(400, temperature=2.0, n_truth_draws=0, random_state=0)
    >>> report = calibration_report(data.labels, data.proba, n_bins=10, random_state=0)
    >>> print(report)  # doctest: +ELLIPSIS
    Calibration report: classifier
    ==============================
    400 predictions of 5 classes, confidence calibration unless said
    ...
    """
    options = {"labels": labels, "pos_label": pos_label, "notion": notion, "at_least": 2}
    sample = read_sample(y_true, y_proba, **options)
    data = Data(sample.classes[sample.codes], sample.proba, sample.classes, sample.codes)
    second = None if compare is None else read_second(y_true, y_proba, compare, strategy, options)
    parts = [] if groups is None else read_groups(groups, len(data.codes))
    n_resamples = n_resamples or default_resamples(len(data.codes))
    settings = Settings(
        notion=sample.notion,
        search=search,
        n_bins=n_bins,
        strategy=strategy,
        min_bin_samples=min_bin_samples,
        confidence_level=confidence_level,
        n_resamples=n_resamples,
        candidates=candidates,
        cv=cv,
        outer_cv=outer_cv,
        max_search_samples=max_search_samples,
        n_jobs=n_jobs,
        random_state=make_seed(random_state),
        verbose=verbose,
    )
    described = as_settings(settings, data.n_searched(settings))
    attempt = Attempts(name, verbose)
    searches = run_searches(data, settings, attempt)
    taken = [data.take(rows) for _, rows in parts]
    measures = [
        _measure(label, part, settings) for (label, _), part in zip(parts, taken, strict=True)
    ]
    measures, pvalues, cautions = compare_groups(measures, taken, settings)
    overall = measure(name, data, settings, searches, attempt)
    overall.warnings.extend(cautions)
    return CalibrationReport(
        overall=overall,
        segments=None if segments is None else audit(data, segments, settings),
        groups=measures,
        group_pvalues=pvalues,
        comparison=second and compare_models(compare_name, data, second, settings, searches),
        notion=sample.notion,
        n_searched=data.n_searched(settings),
        settings=described,
        version=version(),
    )


def _measure(name, data, settings):
    attempt = Attempts(name, settings.verbose)
    return measure(name, data, settings, run_searches(data, settings, attempt), attempt)
