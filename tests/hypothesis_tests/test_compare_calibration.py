"""Comparison of two classifiers: its definition, its level and what it refuses."""

import numpy as np
import pytest
from calibrated_samples import sample, superclass
from numpy.polynomial import Legendre
from numpy.testing import assert_allclose
from scipy.spatial.distance import pdist
from scipy.special import expit
from scipy.stats import binom, norm
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB

from skcal.hypothesis_tests import compare_calibration, comparison
from skcal.kernels import Kernel
from skcal.metrics import squared_kernel_calibration_error
from skcal.notions import make_problems

NOTIONS = ["binary", "confidence", "top-label", "classwise", "canonical", "top-2", superclass]
METHODS = ["projection", "skce"]
# Of "top-label" the SKCE is refused.
COMPARABLE = [(n, m) for n in NOTIONS for m in METHODS if (n, m) != ("top-label", "skce")]
every_comparison = pytest.mark.parametrize(("notion", "method"), COMPARABLE)


def pair(notion, n=60):
    """Labels and the predictions of two classifiers."""
    y, a = sample(notion, n)
    _, b = sample(notion, n, seed=1)
    return y, a, (a + 2 * b) / 3


def with_nan(proba):
    wrong = proba.copy()
    wrong[3] = np.nan
    return wrong


@pytest.fixture
def pairs_alone(monkeypatch):
    """Leave out the difference of the errors, which takes most of the time."""
    monkeypatch.setattr(comparison, "difference_of_errors", lambda *_: None)


def check(result, estimate, error):
    assert_allclose(result.estimate, estimate, rtol=1e-8)
    assert_allclose(result.standard_error, error, rtol=1e-8)
    assert_allclose(result.statistic, estimate / error, rtol=1e-8)
    assert_allclose(result.pvalue, 2 * norm.sf(abs(estimate / error)), rtol=1e-7)
    interval = estimate + norm.ppf([0.05, 0.95]) * error
    assert_allclose(result.confidence_interval(0.9), interval, rtol=1e-7)


# Definitions


def whitened(x, degree):
    """Orthonormal polynomials of the mid-ranks of some columns, and the columns."""
    ranks = np.stack([(x[:, None] > x).mean(1) + (x[:, None] == x).mean(1) / 2 for x in x.T], 1)
    powers = [Legendre.basis(d)(2 * ranks - 1) for d in range(1, degree + 1)]
    lines = (x - x.mean(axis=0)) / x.std(axis=0)
    psi = np.column_stack([np.ones(len(x)), *powers, lines])
    left, values, _ = np.linalg.svd(psi, full_matrices=False)
    return left[:, values > 1e-2 * values[0]] * np.sqrt(len(x))


def pair_matrix(proba, y, notion, degree):
    """W_ij ⟨δ_i, δ_j⟩ of all problems."""
    n = len(y)
    H = np.zeros((n, n))
    for X, D, _, share, *_, rows in make_problems(proba, y, notion):
        if len(X) > 1:
            psi = whitened(X, degree)
            own = np.arange(n)[rows]
            H[np.ix_(own, own)] += (psi @ psi.T) * (D @ D.T) / share
    return H


def moments_of_pairs(H):
    """Mean over pairs i ≠ j and the two parts of its variance."""
    n = len(H)
    off = ~np.eye(n, dtype=bool)
    means = np.array([H[i, off[i]].mean() for i in range(n)])
    of_pairs = np.var(H[off])
    of_means = np.var(means, ddof=1)
    linear = max(of_means - (of_pairs - of_means) / (n - 2), 0)
    return H[off].mean(), np.sqrt((4 * (n - 2) * linear + 2 * of_pairs) / (n * (n - 1)))


@pytest.mark.parametrize("degree", [1, 3])
@pytest.mark.parametrize("notion", NOTIONS)
def test_projection_is_the_mean_over_pairs_and_its_variance_has_two_parts(notion, degree):
    y, a, b = pair(notion)
    H = pair_matrix(a, y, notion, degree) - pair_matrix(b, y, notion, degree)
    check(compare_calibration(y, a, b, notion=notion, degree=degree), *moments_of_pairs(H))


def test_of_many_columns_a_residual_sees_the_polynomials_of_its_own_probability(monkeypatch):
    y, a, b = pair("canonical")
    for limit, degree in (("_SHARED_CLASSES", 2), ("_MANY_CLASSES", 1)):
        monkeypatch.setattr(comparison, limit, 3)
        found = compare_calibration(y, a, b, notion="canonical", degree=2)
        expected = compare_calibration(y, a, b, notion="classwise", degree=degree)
        assert_allclose(found.statistic, expected.statistic, rtol=1e-9)


def test_sums_do_not_depend_on_blocks_and_squares_hardly_on_which_are_averaged(monkeypatch):
    y, a, b = pair("canonical")
    one = compare_calibration(y, a, b, notion="canonical")
    monkeypatch.setattr(comparison, "_VECTOR_BYTES", 2000)
    assert_allclose(compare_calibration(y, a, b, notion="canonical").statistic, one.statistic)
    rng = np.random.default_rng(0)  # both are calibrated, so that squares are all there is
    a = rng.uniform(size=400)
    y, b = (rng.uniform(size=400) < a).astype(int), np.where(a > 0.5, 0.75, 0.25)
    full = compare_calibration(y, a, b, method="skce")
    monkeypatch.setattr(comparison, "_SQUARED_ROWS", 200)
    part = compare_calibration(y, a, b, method="skce")
    assert_allclose(part.estimate, full.estimate, rtol=1e-12)
    assert_allclose(part.standard_error, full.standard_error, rtol=0.1)


@pytest.mark.parametrize("kernel", ["laplacian", "rbf"])
@pytest.mark.parametrize("notion", [n for n in NOTIONS if n != "top-label"])
def test_skce_is_the_difference_of_the_metric_with_the_error_of_its_pairs(notion, kernel):
    y, a, b = pair(notion, 24)
    options = {"notion": notion, "kernel": kernel, "bandwidth": 0.3}
    H = np.zeros((24, 24))
    for proba, sign in ((a, 1), (b, -1)):
        for X, D, *_ in make_problems(proba, y, notion):
            H += sign * Kernel.of(kernel, 0.3, X).matrix(X, X) * (D @ D.T)
    result = compare_calibration(y, a, b, method="skce", **options)
    check(result, *moments_of_pairs(H))
    one, other = (squared_kernel_calibration_error(y, p, **options) for p in (a, b))
    assert_allclose(result.estimate, one - other, rtol=1e-8)


@pytest.mark.parametrize("notion", ["binary", "canonical"])
def test_the_median_width_is_that_of_both_predictions_together(notion):
    y, a, b = pair(notion)
    both = np.concatenate([a, b]).reshape(2 * len(y), -1)
    width = np.median(pdist(both, "cityblock")) / (1 if notion == "binary" else 2)
    options = {"notion": notion, "method": "skce"}
    expected = compare_calibration(y, a, b, bandwidth=width, **options)
    assert_allclose(compare_calibration(y, a, b, **options).statistic, expected.statistic)


# Equal and constant differences


@every_comparison
def test_identical_predictions_have_p_1(notion, method):
    y, a, _ = pair(notion)
    result = compare_calibration(y, a, a.copy(), notion=notion, method=method)
    assert (result.estimate, result.statistic, result.pvalue) == (0, 0, 1)


@pytest.mark.parametrize("method", METHODS)
def test_a_difference_without_spread_has_no_standard_error(method):
    y, a, b = np.ones(40, int), np.full(40, 0.75), np.full(40, 0.25)
    with pytest.raises(ValueError, match="same for every sample, so it has no standard error"):
        compare_calibration(y, a, b, method=method, labels=[0, 1])


# Level


@pytest.mark.parametrize("method", METHODS)
def test_of_two_calibrated_classifiers_neither_is_named_more_often_than_nominal(
    method, pairs_alone
):
    """Two views of rare events; tests/battery compares other predictions."""
    rejections, estimates = 0, []
    for seed in range(20):
        rng = np.random.default_rng([seed, 5])
        z = rng.standard_normal((500, 2))
        truth = 0.06 * np.exp(0.7 * z.sum(axis=1) - 0.49)
        one, other = np.minimum(0.06 * np.exp(0.7 * z - 0.245).T, 1)
        y = (rng.uniform(size=500) < truth).astype(int)
        result = compare_calibration(y, one, other, method=method, labels=[0, 1])
        rejections += result.pvalue <= 0.05
        estimates.append(result.estimate)
    # A level of 6 % passes this number with probability below 1e-4.
    assert rejections <= binom.isf(1e-4, 20, 0.06)
    assert abs(np.mean(estimates)) < 4 * np.std(estimates) / np.sqrt(20)


# Refusals


A, B = (pair("canonical")[k] for k in (1, 2))
BINARY = pair("binary")[0]
VOTES = np.column_stack([np.ones(60, int), np.arange(60) % 3 + 1])


@pytest.mark.parametrize(
    ("arguments", "second", "match"),
    [
        ((BINARY, A, np.column_stack([B, 0 * BINARY])), None, r"\(60, 4\), y_proba_b \(60, 5\)"),
        ((BINARY, A, B[1:]), None, r"y_proba_a has shape \(60, 4\), y_proba_b \(59, 4\)"),
        ((BINARY, A[:, 0], A[:, :2]), None, r"shape \(60,\), y_proba_b \(60, 2\)"),
        ((BINARY, with_nan(A), B), None, "y_proba_a contains NaN: y_proba_a row 3"),
        ((BINARY, A, with_nan(B)), None, "y_proba_b contains NaN: y_proba_b row 3"),
        ((BINARY, A[:, 0], B[:, 0]), BINARY[1:], "second_y_true"),
        ((BINARY, A[:, 0], B[:, 0]), 2 * BINARY, "second_y_true"),
        ((VOTES, A[:, 0], B[:, 0]), 2 * VOTES, "second_y_true holds other numbers of votes"),
    ],
)
def test_errors_name_what_is_wrong(arguments, second, match):
    with pytest.raises(ValueError, match=match):
        compare_calibration(*arguments, second_y_true=second)


def test_few_events_or_few_of_much_weight_are_warned_of():
    y, p = np.zeros(200, int), np.linspace(0.001, 0.02, 200)
    y[:3] = 1
    with pytest.warns(UserWarning, match="Too few outcomes are uncertain for the comparison"):
        compare_calibration(y, p, np.full(200, 0.01))
    y[:6] = 1
    compare_calibration(y, p, np.full(200, 0.01))
    p = np.random.default_rng(0).uniform(0.05, 0.1, 400)
    y, weight = np.arange(400) % 13 == 0, np.where(np.arange(400) < 2, 1000.0, 1.0)
    compare_calibration(y, p, p**1.1)
    with pytest.warns(UserWarning, match=r"effective number of events is 0\.94"):
        compare_calibration(y, p, p**1.1, sample_weight=weight)


@pytest.mark.slow
def test_errors_that_follow_the_probabilities_more_than_their_ranks_are_seen():
    """Polynomials of ranks alone have a p-value of 0.12; nine in ten predictions are certain."""
    X, y = load_digits(return_X_y=True)
    train, test, y_train, y_test = train_test_split(X, y, test_size=600, random_state=1)
    fitted = [GaussianNB(), CalibratedClassifierCV(GaussianNB(), method="sigmoid")]
    bayes, softer = (model.fit(train, y_train).predict_proba(test) for model in fitted)
    result = compare_calibration(y_test, bayes, softer, notion="canonical")
    assert result.estimate > 0
    assert result.pvalue < 0.01


# Outcomes of their own


@every_comparison
def test_each_model_may_have_outcomes_of_its_own(notion, method, pairs_alone):
    y, a, b = pair(notion)
    second = np.random.default_rng(7).permutation(y)
    options = {"notion": notion, "method": method}
    same = compare_calibration(y, a, b, second_y_true=y, **options)
    assert same.statistic == compare_calibration(y, a, b, **options).statistic
    one = compare_calibration(y, a, b, second_y_true=second, **options)
    other = compare_calibration(second, b, a, second_y_true=y, **options)
    assert_allclose([other.estimate, other.pvalue], [-one.estimate, one.pvalue], rtol=1e-8)
    if method == "projection":
        H = pair_matrix(a, y, notion, 3) - pair_matrix(b, second, notion, 3)
        check(one, *moments_of_pairs(H))
        rows = np.random.default_rng(8).permutation(len(y))
        options["second_y_true"] = second[rows]
        moved = compare_calibration(y[rows], a[rows], b[rows], **options)
        assert_allclose(moved.statistic, one.statistic, rtol=1e-8)


def answers_to_the_same_questions(seed, n=300, per_question=1, gap=0.0):
    """Stated confidences with ties; questions are easy or hard for both models."""
    rng = np.random.default_rng(seed)
    hard = rng.random(n).repeat(per_question)
    stated = rng.choice([0.5, 0.7, 0.9, 0.95, 1.0], size=(2, n)).repeat(per_question, axis=1)
    own = rng.random((2, n * per_question))
    shared = rng.random((2, n * per_question)) < 0.6  # right or wrong by the question
    right = np.where(shared, hard, own) < np.minimum(stated - [[0.0], [gap]], 0.97)
    return right.astype(int), stated, np.arange(n).repeat(per_question)


@pytest.mark.parametrize("per_question", [1, 5])
def test_of_two_equally_calibrated_models_none_is_named_and_a_worse_one_is(
    per_question, pairs_alone
):
    level, power = 0, 0
    for seed in range(40):
        (y, second), (a, b), groups = answers_to_the_same_questions(seed, 300, per_question)
        together = {"groups": groups} if per_question > 1 else {}
        level += compare_calibration(y, a, b, second_y_true=second, **together).pvalue <= 0.05
        if seed % 2:
            continue
        (y, second), (a, b), _ = answers_to_the_same_questions(seed, 300, per_question, gap=0.2)
        result = compare_calibration(y, a, b, second_y_true=second, **together)
        power += result.pvalue <= 0.05 and result.estimate < 0
    # A level of 6 % passes this number with probability below 1e-4.
    assert level <= binom.isf(1e-4, 40, 0.06)
    assert power >= 18  # of 20


def test_one_model_may_be_always_right():
    _, (a, b), _ = answers_to_the_same_questions(0)
    second = (np.random.default_rng(0).random(300) < b - 0.1).astype(int)
    ones = np.ones(300, dtype=int)
    result = compare_calibration(ones, a, b, second_y_true=second)
    mirrored = compare_calibration(second, b, a, second_y_true=ones)
    assert_allclose(mirrored.estimate, -result.estimate, rtol=1e-9)
    assert_allclose(
        compare_calibration(ones, a, b, second_y_true=second, labels=[0, 1]).estimate,
        result.estimate,
    )


@pytest.mark.filterwarnings("ignore:Too few outcomes are uncertain")
def test_weights_of_rare_events_do_not_tell_errors_of_equal_size_apart(pairs_alone):
    """1 % events and lognormal weights: a sample without a heavy event shows no variance."""
    found = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        p, weight = expit(rng.normal(-5, 0.9, 1500)), rng.lognormal(0, 1.3, 1500)
        y, e = (rng.random(1500) < p).astype(int), 0.35 * p * (1 - p)
        found.append(compare_calibration(y, p + e, p - e, sample_weight=weight).pvalue <= 0.05)
    assert sum(found) <= 6  # at 5 %, more have a probability of 0.3 %


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Too few outcomes are uncertain")
@pytest.mark.parametrize("rates", [(9, 0.6, 0.4), (2, 2, 6)])
def test_vectors_of_equal_error_whose_groups_share_a_label(rates):
    """Two models err as far. More than 13 of 100 at 5 % have a probability of 5e-4."""
    rejected = 0
    for seed in range(100):
        rng = np.random.default_rng([seed, 5])
        chances = rng.dirichlet(rates, 50)
        label = (chances.cumsum(axis=1)[:, :2] < rng.random((50, 1))).sum(axis=1)
        groups = np.repeat(np.arange(50), 20)
        y, p = label[groups], chances[groups]
        moved = 0.3 * (p * (1 - p))[:, :1]
        away = np.hstack([moved, -moved * p[:, 1:] / p[:, 1:].sum(axis=1, keepdims=True)])
        options = {"notion": "canonical", "groups": groups, "labels": [0, 1, 2]}
        rejected += compare_calibration(y, p + away, p - away, **options).pvalue <= 0.05
    assert rejected <= 13
