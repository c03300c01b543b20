"""Samples of which any of several labels may hold: K binary questions, and precision at k."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.special import logit
from scipy.stats import binom, norm
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import make_scorer
from sklearn.model_selection import cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.naive_bayes import GaussianNB

from skcal import CalibrationErrorEstimator, CalibrationErrorSearchCV, Zero
from skcal.displays import BinCountDisplay, ReliabilityDisplay
from skcal.functions import Binning
from skcal.hypothesis_tests import (
    adjust_pvalues,
    calibration_test,
    hosmer_lemeshow_test,
    monte_carlo_test,
    scan_test,
)
from skcal.metrics import (
    bootstrap_interval,
    cutoff_calibration_error,
    expected_calibration_error,
    kernel_density_calibration_error,
    kolmogorov_smirnov_calibration_error,
    make_calibration_scorer,
    score_decomposition,
    smooth_calibration_error,
    squared_kernel_calibration_error,
)
from skcal.metrics.limits import surprises
from skcal.model_selection import FunctionCorrection
from skcal.sample import read_sample

RNG = np.random.default_rng(0)
N, K = 120, 4
P = RNG.beta(0.6, 1.5, (N, K))
Y = (RNG.random((N, K)) < P).astype(int)
LABELS = {"notion": "multi-label"}
METRICS = [
    expected_calibration_error,
    lambda y, p, **o: expected_calibration_error(y, p, norm=2, debias=True, root=False, **o),
    squared_kernel_calibration_error,
    smooth_calibration_error,
    kolmogorov_smirnov_calibration_error,
    cutoff_calibration_error,
    kernel_density_calibration_error,
]


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("logits", [False, True])
def test_each_label_is_a_binary_question(metric, logits):
    p, options = (logit(P), {"from_logits": True}) if logits else (P, {})
    alone = [metric(Y[:, k], p[:, k], **options) for k in range(K)]
    options |= LABELS
    assert_array_equal(metric(Y, p, average=None, **options), alone)
    assert_allclose(metric(Y, p, **options), np.sum(alone))
    assert_allclose(metric(Y, p, average="macro", **options), np.mean(alone))


def test_other_sums_over_labels_are_those_of_the_binary_questions():
    for score in ("brier", "log-loss"):
        whole = score_decomposition(Y, P, score=score, **LABELS)
        parts = [score_decomposition(Y[:, k], P[:, k], score=score) for k in range(K)]
        for name in ("score", "miscalibration", "discrimination"):
            expected = sum(getattr(part, name) for part in parts)
            assert_allclose(getattr(whole, name), expected, rtol=1e-9)


@pytest.mark.parametrize("options", [{}, {"strategy": "quantile", "n_bins": 5}, {"norm": np.inf}])
def test_micro_puts_all_labels_into_the_same_bins(options):
    expected = expected_calibration_error(Y.ravel(), P.ravel(), **options)
    found = expected_calibration_error(Y, P, average="micro", **LABELS, **options)
    assert_allclose(found, expected, rtol=1e-12)
    rows = np.repeat(np.arange(N), K)
    options = {"norm": 2, "debias": True, "n_bins": 4}
    expected = expected_calibration_error(Y.ravel(), P.ravel(), groups=rows, **options)
    found = expected_calibration_error(Y, P, average="micro", **LABELS, **options)
    assert_allclose(found, expected, rtol=1e-9)
    with pytest.raises(ValueError, match="debias='labels' is not for average='micro'"):
        expected_calibration_error(Y, P, average="micro", norm=2, debias="labels", **LABELS)


def test_micro_of_predicted_classes_puts_their_samples_into_the_same_bins():
    proba = P / P.sum(axis=1, keepdims=True)
    y, options = RNG.integers(0, K, N), {"sample_weight": RNG.uniform(1, 2, N)}
    expected = expected_calibration_error(y, proba, notion="confidence", **options)
    options |= {"notion": "top-label", "average": "micro"}
    assert_allclose(expected_calibration_error(y, proba, **options), expected, rtol=1e-12)


def test_micro_of_one_problem_is_its_error():
    y, p = Y[:, 0], P[:, 0]
    assert expected_calibration_error(y, p, average="micro") == expected_calibration_error(y, p)


def test_a_label_that_never_holds_and_is_known_not_to_surprises_nobody():
    y, p, weight = Y[:, 0], P[:, 0], 1 + np.arange(N) % 3
    both = (np.column_stack([part, 0 * part]) for part in (y, p))
    expected = surprises(read_sample(y, p, notion="binary", sample_weight=weight))
    assert_allclose(surprises(read_sample(*both, sample_weight=weight, **LABELS)), expected)


def test_a_test_of_labels_is_that_of_each_adjusted_by_holm():
    """Each redraws its own label alone, so that nothing is assumed of several together."""
    options = {"n_resamples": 99, "random_state": 0}
    result = calibration_test(Y, P, **LABELS, **options)
    assert "exact level, Holm over 4" in result.method
    assert result.pvalue == result.class_pvalues.min()
    alone = [calibration_test(Y[:, k], P[:, k], **options) for k in range(K)]
    assert result.class_statistics[0] == alone[0].statistic
    adjusted = adjust_pvalues([test.pvalue for test in alone])
    assert_allclose(result.class_pvalues, adjusted, atol=0.2)  # of other random numbers
    wrong = P.copy()
    wrong[:, 2] **= 0.3
    assert scan_test(Y, wrong, **LABELS, **options).class_pvalues[2] == 0.04


@pytest.mark.parametrize("k", [1, 2, 4])
def test_precision_at_k_is_what_the_first_k_labels_say_and_are(k):
    first = np.argsort(-P, axis=1)[:, :k]
    predicted = np.take_along_axis(P, first, axis=1).mean(axis=1)
    held = np.take_along_axis(Y, first, axis=1).mean(axis=1)
    notion = f"precision-at-{k}"
    found = expected_calibration_error(Y, P, notion=notion, n_bins=1)
    assert_allclose(found, abs(held.mean() - predicted.mean()))
    result = monte_carlo_test(Y, P, notion=notion, n_resamples=99, random_state=0)
    assert ("signs of 120 groups flipped" in result.method) == (k > 1)
    panels = ReliabilityDisplay.from_predictions(Y, P, notion=notion, n_resamples=19, plot=False)
    assert len(panels.panels) == 1
    if k == 1:
        return  # which holds or not, with the probability that is predicted
    with pytest.raises(ValueError, match=r"y_true holds shares or votes.*Use monte_carlo_test"):
        hosmer_lemeshow_test(Y, P, notion=notion)


@pytest.mark.parametrize("notion", ["multi-label", "precision-at-1", "precision-at-2"])
def test_numbers_of_bins_are_not_tried_for_labels(notion):
    with pytest.raises(ValueError, match=r"how several labels are drawn.*Use ReliabilityDisplay"):
        BinCountDisplay.from_predictions(Y, P, notion=notion, plot=False)


def test_the_first_label_is_one_outcome():
    first = P.argmax(axis=1)
    y, p = Y[np.arange(N), first], P.max(axis=1)
    options = {"n_resamples": 99, "random_state": 0}
    for test in (monte_carlo_test, calibration_test, scan_test):
        found = test(Y, P, notion="precision-at-1", **options)
        expected = test(y, p, **options)
        assert (found.statistic, found.pvalue) == (expected.statistic, expected.pvalue)
        assert found.method == expected.method
    found = hosmer_lemeshow_test(Y, P, notion="precision-at-1")
    assert found.statistic == hosmer_lemeshow_test(y, p).statistic


def test_a_diagram_has_a_panel_a_label():
    display = ReliabilityDisplay.from_predictions(
        Y, P, labels=["cat", "dog", "cow", "hen"], n_resamples=99, plot=False, **LABELS
    )
    assert [panel.label for panel in display.panels] == [
        f"label {name}" for name in ("cat", "dog", "cow", "hen")
    ]


@pytest.mark.filterwarnings("ignore:The squared calibration error is estimated as")
def test_estimators_sum_the_risks_of_the_labels():
    estimator = CalibrationErrorEstimator(Binning(n_bins=3), "multi-label").fit(P, Y)
    alone = [CalibrationErrorEstimator(Binning(n_bins=3)).fit(P[:, k], Y[:, k]) for k in range(K)]
    expected = sum(one.predict(P[:, k]) for k, one in enumerate(alone))
    assert_allclose(estimator.predict(P), expected)
    expected = sum(one.score(P[:, k], Y[:, k]) for k, one in enumerate(alone))
    assert_allclose(estimator.score(P, Y), expected)
    search = CalibrationErrorSearchCV(
        [Zero(), Binning(n_bins=3)], "multi-label", cv=3, random_state=0
    ).fit(P, Y)
    assert np.isfinite(search.error().estimate)
    assert_allclose(search.predict(P), search.best_estimator_.predict(P))
    with pytest.raises(ValueError, match=r"is not of one class a sample.*to each label"):
        FunctionCorrection(CalibrationErrorEstimator(Binning(), "multi-label")).fit(P, Y)


@pytest.mark.parametrize("dense", [True, False])
def test_what_classifiers_of_several_labels_give_is_taken(dense):
    X = RNG.normal(size=(N, 3))
    y = (X @ RNG.normal(size=(3, K)) + RNG.normal(size=(N, K)) > 0).astype(int)
    given = y if dense else sparse.csr_array(y)
    one = OneVsRestClassifier(LogisticRegression()).fit(X, y)
    other = MultiOutputClassifier(LogisticRegression()).fit(X, y)
    columns = one.predict_proba(X)
    listed = other.predict_proba(X)
    assert isinstance(listed, list)
    expected = expected_calibration_error(y, columns, **LABELS)
    assert_allclose(expected_calibration_error(given, listed, **LABELS), expected, rtol=1e-6)
    forest = RandomForestClassifier(10, random_state=0).fit(X, y)
    estimator = CalibrationErrorEstimator(Binning(), "multi-label").fit(forest.predict_proba(X), y)
    assert estimator.predict(forest.predict_proba(X)).shape == (N,)
    interval = bootstrap_interval(
        expected_calibration_error, y, listed, n_resamples=19, random_state=0, **LABELS
    )
    assert_allclose(interval.estimate, expected, rtol=1e-6)


def test_scorers_take_labels_of_both_kinds_of_classifiers():
    X = RNG.normal(size=(N, 3))
    y = (X @ RNG.normal(size=(3, K)) + RNG.normal(size=(N, K)) > 0).astype(int)
    scorer = make_calibration_scorer(expected_calibration_error, average="macro", **LABELS)
    for classifier in (OneVsRestClassifier(GaussianNB()), MultiOutputClassifier(GaussianNB())):
        fitted = classifier.fit(X, y)
        expected = expected_calibration_error(y, fitted.predict_proba(X), average="macro", **LABELS)
        assert scorer(fitted, X, y) == -expected
        assert cross_val_score(classifier, X, y, scoring=scorer, cv=2).shape == (2,)
    plain = make_scorer(expected_calibration_error, response_method="predict_proba", **LABELS)
    fitted = OneVsRestClassifier(GaussianNB()).fit(X, y)
    expected = expected_calibration_error(y, fitted.predict_proba(X), **LABELS)
    assert plain(fitted, X, y) == expected


@pytest.mark.parametrize(
    ("y", "p", "notion", "message"),
    [
        (Y[:, :3], P, "multi-label", r"y_true has shape \(120, 3\).*MultiLabelBinarizer"),
        (Y * 2, P, "multi-label", "is 2, not 0 or 1"),
        (Y * 0.5, P, "precision-at-2", "is 0.5, not 0 or 1"),
        (Y, P * 3, "multi-label", "not a probability"),
        (Y, P, "precision-at-5", "K must be from 1 to 4"),
        (Y, P, "canonical", "has several classes.*notion=.multi-label"),
        (Y, [np.column_stack([1 - P[:, 0], P[:, 0]]), P[:, :1]], "multi-label", "for label 1"),
    ],
)
def test_what_is_no_set_of_labels_is_refused(y, p, notion, message):
    with pytest.raises(ValueError, match=message):
        expected_calibration_error(y, p, notion=notion)


def test_what_needs_a_class_refuses_labels():
    with pytest.raises(ValueError, match="pos_label has no meaning"):
        expected_calibration_error(Y, P, pos_label=1, **LABELS)


def draw(seed, n, n_labels, dependence):
    """Rare labels of calibrated predictions, of a Gaussian copula or all the same."""
    rng = np.random.default_rng([seed, n, n_labels])
    p = rng.beta(0.3, 14.7, (n, n_labels if dependence < 1 else 1)) * np.ones(n_labels)
    z = np.sqrt(dependence) * rng.normal(size=(n, 1))
    z = z + np.sqrt(1 - dependence) * rng.normal(size=(n, n_labels))
    return (norm.cdf(z) < p).astype(int), p


@pytest.mark.slow
@pytest.mark.parametrize("dependence", [0.8, 1])
@pytest.mark.parametrize("n_labels", [3, 20])
@pytest.mark.parametrize("notion", ["multi-label", "precision-at-3"])
def test_the_level_holds_for_rare_and_dependent_labels(notion, n_labels, dependence):
    enough = 399 if n_labels == 20 and notion == "multi-label" else 99  # for Holm's method
    options = {"n_resamples": enough, "random_state": 0, "notion": notion}
    samples = (draw(k, 200, n_labels, dependence) for k in range(200))
    rejected = sum(monte_carlo_test(*sample, **options).pvalue <= 0.05 for sample in samples)
    assert rejected <= binom.isf(1e-3, 200, 0.05)
