"""Shares and votes of the classes in place of labels: equal to labels, and to rows of votes."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from report_cases import verdict_test
from scipy.stats import binom
from sklearn.base import clone
from sklearn.naive_bayes import GaussianNB

from skcal import (
    CalibrationErrorEstimator,
    CalibrationTable,
    Recalibrator,
    TemperatureScaling,
    calibration_report,
)
from skcal.functions import Binning, DirichletKernelDensity, PlugIn
from skcal.hypothesis_tests import calibration_test, monte_carlo_test, scan_test, skce_test
from skcal.metrics import (
    binned_rms_error_interval,
    calibration_bins,
    calibration_intercept,
    calibration_slope,
    cox_recalibration,
    cutoff_calibration_error,
    decision_curve,
    expected_calibration_error,
    get_scorer,
    integrated_calibration_index,
    kolmogorov_smirnov_calibration_error,
    maximum_calibration_error,
    murphy_diagram,
    net_benefit,
    score_decomposition,
    smooth_calibration_error,
    squared_kernel_calibration_error,
)
from skcal.metrics.statistic import draw_shares
from skcal.recalibration import IsotonicCalibration, VectorScaling
from skcal.sample import read_sample

RNG = np.random.default_rng(0)
N, C = 60, 3
PROBA = RNG.dirichlet(np.ones(C), N)
VOTES = np.array([RNG.multinomial(n, p) for n, p in zip(RNG.integers(1, 6, N), PROBA, strict=True)])
LABELS = VOTES.argmax(axis=1)
METRICS = [
    expected_calibration_error,
    lambda y, p, **o: expected_calibration_error(y, p, norm=2, debias=True, **o),
    maximum_calibration_error,
    squared_kernel_calibration_error,
    lambda y, p, **o: score_decomposition(y, p, **o).miscalibration,
    lambda y, p, **o: score_decomposition(y, p, score="log-loss", **o).score,
]
SCALAR = [
    smooth_calibration_error,
    kolmogorov_smirnov_calibration_error,
    cutoff_calibration_error,
    lambda y, p, **o: score_decomposition(y, p, strategy="isotonic", **o).discrimination,
]
#: Those of pairs of samples leave out pairs of one sample, which the rows of its votes do not know.
OF_PAIRS = {METRICS[1], squared_kernel_calibration_error}
CASES = [
    (metric, notion)
    for notion in ("confidence", "classwise", "top-label", "canonical")
    for metric in (METRICS[:4] if notion == "canonical" else [*METRICS, *SCALAR])
]


@pytest.mark.parametrize(("metric", "notion"), CASES)
def test_votes_are_rows_and_weighted_shares(metric, notion):
    rows, columns = as_rows(VOTES)
    if metric not in OF_PAIRS:
        expected = metric(columns, PROBA[rows], notion=notion)
        assert_allclose(metric(VOTES, PROBA, notion=notion), expected, rtol=1e-9, atol=1e-12)
    shares = VOTES / VOTES.sum(axis=1, keepdims=True)
    rounded = shares * (1 + 5e-6)  # what their sum misses is divided out
    of_shares = metric(rounded, PROBA, notion=notion, sample_weight=VOTES.sum(axis=1))
    assert_allclose(metric(VOTES, PROBA, notion=notion), of_shares, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("names", [["a", "b", "c"], [3, 1, 2]])
@pytest.mark.parametrize("notion", ["confidence", "classwise"])
def test_one_hot_rows_are_in_the_order_of_named_classes(names, notion):
    options = {"notion": notion, "labels": names}
    expected = expected_calibration_error(np.array(names)[LABELS], PROBA, **options)
    assert expected_calibration_error(np.eye(C)[LABELS], PROBA, **options) == expected


def test_soft_labels_in_another_order_or_of_other_classes_are_refused():
    pd = pytest.importorskip("pandas")
    proba = pd.DataFrame(PROBA, columns=["a", "b", "c"])
    votes = pd.DataFrame(VOTES, columns=["a", "b", "c"])
    expected = expected_calibration_error(VOTES, PROBA)
    assert expected_calibration_error(votes, proba) == expected
    with pytest.raises(ValueError, match=r"the columns \['c', 'b', 'a'\].*another order"):
        expected_calibration_error(votes.set_axis(["c", "b", "a"], axis=1), proba)
    with pytest.raises(ValueError, match="labels holds 2 distinct classes, y_proba has 3 columns"):
        expected_calibration_error(VOTES, PROBA, labels=["a", "b"])


def test_samples_of_weight_0_are_no_groups():
    weight = np.where(np.arange(N) < 30, 0.0, 1.0)
    tested = [
        monte_carlo_test(VOTES, PROBA, sample_weight=weight, n_resamples=19, random_state=0),
        monte_carlo_test(VOTES[30:], PROBA[30:], n_resamples=19, random_state=0),
    ]
    assert "signs of 30 groups" in tested[0].method
    assert_allclose(*[one.null_distribution for one in tested], rtol=1e-12)


def test_a_share_of_what_was_said_to_be_impossible_refutes():
    p = np.linspace(0, 0.98, 50)
    shares = np.column_stack([1 - p, p])
    options = {"n_resamples": 19, "random_state": 0, "resolution": None}
    assert calibration_test(shares, p, **options).n_impossible == 0
    shares[0] = [0.8, 0.2]
    result = calibration_test(shares, p, **options)
    assert (result.n_impossible, result.pvalue) == (1, 0.05)
    assert result.statistic == pytest.approx(np.log(20))


def test_debiased_votes_are_rows_in_groups():
    rows, columns = as_rows(VOTES)
    options = {"norm": 2, "debias": True, "notion": "confidence"}
    expected = expected_calibration_error(columns, PROBA[rows], groups=rows, **options)
    assert_allclose(expected_calibration_error(VOTES, PROBA, **options), expected, rtol=1e-9)


@pytest.mark.filterwarnings("ignore:The squared calibration error is estimated as")
def test_functions_fitted_to_shares_are_those_of_rows_of_single_votes():
    """Of functions whose fit is of sums."""
    shares = VOTES / VOTES.sum(axis=1, keepdims=True)
    rows, columns = as_rows(VOTES)
    one_hot = np.eye(C)[columns]
    for function in (Binning(), DirichletKernelDensity(0.1), PlugIn(TemperatureScaling())):
        fitted = CalibrationErrorEstimator(function).fit(PROBA, shares)
        assert np.isfinite(fitted.score(PROBA, shares))
        of_rows = clone(function).fit(PROBA[rows], one_hot - PROBA[rows])
        of_votes = clone(function).fit(PROBA, shares - PROBA, sample_weight=VOTES.sum(axis=1))
        assert_allclose(of_votes.residual(PROBA), of_rows.residual(PROBA), atol=1e-5)


@pytest.mark.parametrize("map", [TemperatureScaling(), VectorScaling(), IsotonicCalibration()])
def test_maps_are_fitted_to_votes_as_to_rows(map):
    rows, columns = as_rows(VOTES)
    expected = clone(map).fit(PROBA[rows], columns).predict_proba(PROBA)
    assert_allclose(clone(map).fit(PROBA, VOTES).predict_proba(PROBA), expected, rtol=1e-4)


def draw(seed, n_votes, spread=None, concentration=(1, 1, 1), n=150):
    """Votes of calibrated predictions: from the prediction, or from a law around it."""
    rng = np.random.default_rng([seed, n_votes])
    p = rng.dirichlet(concentration, n)
    law = p if spread is None else np.array([rng.dirichlet(spread * q + 1e-9) for q in p])
    return np.array([rng.multinomial(n_votes, q) for q in law]), p


@pytest.mark.slow
@pytest.mark.parametrize("n_votes", [3, 50])
@pytest.mark.parametrize("spread", [None, 2.0])
@pytest.mark.parametrize("concentration", [(1, 1, 1), (30, 0.6, 0.3)], ids=["even", "rare"])
@pytest.mark.parametrize("test", [monte_carlo_test, calibration_test, skce_test, scan_test])
def test_the_level_holds_for_votes(test, concentration, spread, n_votes):
    options = {"n_resamples": 99, "random_state": 0}
    samples = (draw(k, n_votes, spread, concentration) for k in range(200))
    rejected = sum(test(*sample, **options).pvalue <= 0.05 for sample in samples)
    assert rejected <= binom.isf(1e-3, 200, 0.05)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.ones((N, 2)), r"should be a 1d array, got an array of shape \(60, 2\)"),
        (np.full((N, C), -1.0), "row 0, column 0 is -1: negative"),
        (np.zeros((N, C)), "row 0 has no votes"),
        (np.ones((N, C)), "row 0 has several classes"),
        (np.full((N, C), 0.4), "row 0 sums to 1.2"),
        (np.full((N, C), np.nan), "contains NaN"),
    ],
)
def test_what_is_neither_shares_nor_votes_is_refused(y, message):
    with pytest.raises(ValueError, match=message):
        expected_calibration_error(y, PROBA)


def as_rows(votes):
    """A row for each vote: its sample and its class."""
    samples, columns = np.nonzero(votes)
    return (np.repeat(part, votes[samples, columns]) for part in (samples, columns))


#: Numbers of metrics and tests that know groups, or need not know them.
OF_GROUPS = {
    "interval": lambda y, p, **o: binned_rms_error_interval(y, p, n_bins=4, **o).estimate,
    "cox": lambda y, p, **o: [
        *(found := cox_recalibration(y, p, **o)).slope_interval,
        found.slope,
        found.intercept,
    ],
    "decisions": lambda y, p, **o: decision_curve(y, p, **o).net_benefit,
}
ALONE = {
    "slope": calibration_slope,
    "intercept": calibration_intercept,
    "index": integrated_calibration_index,
    "benefit": net_benefit,
    "bins": lambda y, p: (found := calibration_bins(y, p)).gap[found.weight > 0],
    "murphy": lambda y, p: murphy_diagram(y, p, thresholds=[0.4, 0.6]).score,
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:Too few outcomes are uncertain")
@pytest.mark.parametrize("name", [*OF_GROUPS, *ALONE])
def test_votes_are_rows_whose_groups_are_the_samples(name):
    samples, columns = as_rows(VOTES)
    if name in OF_GROUPS:
        measure = OF_GROUPS[name]
        expected = measure(columns, PROBA[samples], groups=samples)
    else:
        measure = ALONE[name]
        expected = measure(columns, PROBA[samples])
    assert_allclose(measure(VOTES, PROBA), expected, rtol=1e-7, atol=1e-9)


def test_a_table_debiases_votes_and_refuses_labels_as_the_metric_does():
    edges, options = np.arange(5) / 4, {"norm": 2, "debias": True}
    table = CalibrationTable(edges=edges).update(VOTES, PROBA)
    expected = expected_calibration_error(VOTES, PROBA, edges=edges, **options)
    assert_allclose(expected_calibration_error(table, edges=edges, **options), expected, rtol=1e-3)
    with pytest.raises(ValueError, match=r"holds shares or votes.* Use debias=True"):
        expected_calibration_error(table, edges=edges, norm=2, debias="labels")


@pytest.mark.usefixtures("few_draws")
def test_a_report_of_votes_says_what_the_functions_say():
    options = {"n_resamples": 19, "n_bins": 5}
    report = calibration_report(VOTES, PROBA, **options)
    assert report.overall.ece.estimate == expected_calibration_error(VOTES, PROBA, n_bins=5)
    assert report.overall.test.pvalue == verdict_test(VOTES, PROBA).pvalue
    assert report.overall.overview.n_groups is None
    samples, columns = as_rows(VOTES)
    of_rows = calibration_report(columns, PROBA[samples], groups=samples, **options)
    for name in ("base_rates", "mean_predictions", "accuracy", "mean_confidence"):
        values = [getattr(one.overall.overview, name) for one in (report, of_rows)]
        assert_allclose(*values, rtol=1e-12)
    assert_allclose(
        [score.score for score in report.overall.scores],
        [score.score for score in of_rows.overall.scores],
    )


def test_a_recalibrator_of_votes_is_that_of_rows():
    """With the same folds: those of the rows hold whole samples."""
    samples, columns = as_rows(VOTES)
    folds = [(np.flatnonzero(np.arange(N) % 3 != k), np.arange(k, N, 3)) for k in range(3)]
    of_rows = [tuple(np.flatnonzero(np.isin(samples, part)) for part in pair) for pair in folds]
    maps = [TemperatureScaling(), VectorScaling()]
    options = {"do_no_harm": False, "random_state": 0}
    sharp = PROBA**2 / (PROBA**2).sum(axis=1, keepdims=True)
    first = Recalibrator(maps, folds, **options).fit(sharp, VOTES)
    second = Recalibrator(maps, of_rows, **options).fit(sharp[samples], columns, groups=samples)
    scores = [one.cv_results_["mean_test_score"] for one in (first, second)]
    # A map is mixed with a uniform one of weight 1 / (samples + 1), and rows are more than samples.
    assert_allclose(*scores, atol=2e-3)
    assert first.best_name_ == second.best_name_
    assert_allclose(first.predict_proba(sharp), second.predict_proba(sharp), atol=0.02)


def test_scorers_take_votes():
    classifier = GaussianNB().fit(PROBA, LABELS)
    proba = classifier.predict_proba(PROBA)
    scorer = get_scorer("neg_expected_calibration_error")
    assert scorer(classifier, PROBA, VOTES) == -expected_calibration_error(VOTES, proba)
    binary = GaussianNB().fit(PROBA, LABELS == 1)
    two = np.column_stack([VOTES[:, [0, 2]].sum(axis=1), VOTES[:, 1]])
    expected = expected_calibration_error(two, binary.predict_proba(PROBA)[:, 1])
    assert scorer(binary, PROBA, two) == -expected


def test_shares_of_two_classes_beside_one_column():
    shares = np.array([[0.5, 0.5], [0.25, 0.75], [1.0, 0.0]])
    found = expected_calibration_error(shares, [0.5, 0.5, 0.25], n_bins=1)
    assert_allclose(found, abs(1.25 - 1.25) / 3)
    assert_array_equal(CalibrationErrorEstimator().fit(PROBA, VOTES).classes_, [0, 1, 2])


def test_redrawn_shares_vary_as_the_observed_ones_with_the_largest_once_more():
    p = np.array([0.1, 0.2, 0.4, 0.5, 0.3])
    share = p + np.array([0.05, -0.1, 0.1, 0.02, -0.04])
    [problem] = read_sample(np.column_stack([1 - share, share]), p).problems()
    spread = p * (1 - p)
    ratio = (np.sum((share - p) ** 2) + 0.1**2) / spread.sum()
    draws = draw_shares(problem, range(4000))[:, :, 0]
    # Five standard errors of means and, by a kurtosis of at most 6, of variances.
    assert_allclose(draws.mean(axis=0), p, atol=5 * np.sqrt(ratio * spread.max() / 4000))
    assert_allclose(draws.var(axis=0), ratio * spread, rtol=5 * np.sqrt(5 / 4000))
