"""Outcomes drawn under H0, and the fast statistics against the metrics that they stand for."""

import numpy as np
import pytest
from calibrated_samples import polynomial, sample, single_problem, superclass
from joblib import parallel_config
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import softmax
from sklearn import config_context
from used import used

from skcal.hypothesis_tests.monte_carlo import draw_nulls
from skcal.metrics import expected_calibration_error, squared_kernel_calibration_error
from skcal.metrics.binned import BinnedStatistic
from skcal.metrics.kernel import KernelStatistic
from skcal.metrics.statistic import (
    MetricStatistic,
    draw_codes,
    observed_codes,
    prepare,
    prepared_by,
)

ECE, SKCE = expected_calibration_error, squared_kernel_calibration_error
SCALARS, VECTORS = ["binary", "confidence"], ["canonical", "top-2", superclass]
SCALAR_BINS = [
    {},
    {"n_bins": 4},
    {"n_bins": "cube_root"},
    {"strategy": "quantile", "n_bins": 7},
    {"strategy": "unique"},
]
VECTOR_BINS = [
    {},
    {"n_bins": 2},
    {"strategy": "unique"},
    {"strategy": "median-variance", "min_samples": 10},
]
DISTANCES = ["auto", "total-variation", "euclidean", "sqeuclidean", "cityblock"]


def problem_and_codes(notion, weighted=False, n=60):
    """A problem, and a block of its observed and three redrawn outcomes."""
    weight = np.random.default_rng(1).uniform(0.2, 3, n) if weighted else None
    problem = single_problem(*sample(notion, n), notion, weight)
    return problem, np.vstack([observed_codes(problem), draw_codes(problem.features, range(3))])


def metric_of(metric, problem, codes, **params):
    """The metric of each row of outcomes, by its own code."""
    X = problem.features
    scalar = X.shape[1] == 1
    params |= {"notion": "binary" if scalar else "canonical", "sample_weight": problem.weight}
    labels = np.arange(2 if scalar else X.shape[1])
    return [metric(row, X[:, 0] if scalar else X, labels=labels, **params) for row in codes]


# Outcomes


def test_drawn_outcomes_have_the_predicted_frequencies():
    n_draws = 4000
    rows = [[0.1, 0.2, 0.3, 0.4], [0.5, 0, 0, 0.5], [0, 0.75, 0.25, 0], [0, 1, 0, 0], [1, 0, 0, 0]]
    X = np.array([*rows, [0, 0, 0, 1], [1 / 3, 1 / 3, 1 / 3, 0]])
    codes = draw_codes(X, range(n_draws))
    frequency = (codes[:, :, None] == np.arange(4)).mean(axis=0)
    # Each of 17 counts leaves 5 standard errors with probability 1e-6; 0 and 1 have none.
    assert (np.abs(frequency - X) <= 5 * np.sqrt(X * (1 - X) / n_draws)).all()
    p = np.array([0.1, 0.5, 0.9, 0.0, 1.0])
    frequency = draw_codes(p[:, None], range(n_draws)).mean(axis=0)
    assert (np.abs(frequency - p) <= 5 * np.sqrt(p * (1 - p) / n_draws)).all()


def test_outcomes_of_different_rows_are_independent():
    p = np.array([0.2, 0.3, 0.5])
    codes = draw_codes(np.tile(p, (2000, 1)), range(3))
    agreement, pairs = p @ p, [(codes[:, ::2], codes[:, 1::2]), (codes[0], codes[1])]
    for one, other in pairs:
        # 5 standard errors: probability 6e-7.
        gap = np.mean(one == other) - agreement
        assert abs(gap) < 5 * np.sqrt(agreement * (1 - agreement) / one.size)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_of_one_class_always_draw_it_and_its_complement_never(dtype):
    X = np.eye(5, dtype=dtype)
    assert_array_equal(draw_codes(X, range(50)), np.tile(np.arange(5), (50, 1)))
    # Rows that miss 1 draw no class of probability 0 for that.
    X = np.array([[0, 0.9, 0], [0.5, 0.4, 0], [0, 0.2, 1]], dtype=dtype)
    codes = draw_codes(X, range(200))
    assert (X[np.arange(3), codes] > 0).all()


@pytest.mark.parametrize("notion", [*SCALARS, *VECTORS])
def test_observed_outcomes_are_those_of_the_problem(notion):
    y, proba = sample(notion)
    [codes] = observed_codes(single_problem(y, proba, notion))
    order = np.argsort(-proba, axis=-1, kind="stable")
    expected = {
        "binary": lambda: y,
        "confidence": lambda: y == order[:, 0],
        "canonical": lambda: y,
        "top-2": lambda: np.minimum((order == y[:, None]).argmax(axis=1), 2),
        superclass: lambda: y // 2,
    }
    assert_array_equal(codes, expected[notion]())


# Statistics


@pytest.mark.parametrize(("norm", "weighted"), [(1, True), (3.5, False), (np.inf, True)])
@pytest.mark.parametrize(
    ("notion", "bins"),
    [(n, b) for n in SCALARS for b in SCALAR_BINS] + [(n, b) for n in VECTORS for b in VECTOR_BINS],
)
def test_binned_statistic_is_the_binned_error(notion, bins, norm, weighted):
    problem, codes = problem_and_codes(notion, weighted)
    for distance in DISTANCES if problem.features.shape[1] > 1 else ["auto"]:
        params = {"norm": norm, "distance": distance, **bins}
        statistic = prepare(ECE, problem, params)
        assert isinstance(statistic, BinnedStatistic)
        expected = metric_of(expected_calibration_error, problem, codes, **params)
        assert_allclose(statistic(codes), expected, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("params", [{"strategy": "sweep"}, {"norm": 2, "debias": True}])
def test_bins_and_variances_that_depend_on_labels_are_found_anew_for_each_outcome(params):
    problem, codes = problem_and_codes("confidence")
    statistic = prepare(ECE, problem, params)
    assert isinstance(statistic, MetricStatistic)
    expected = metric_of(expected_calibration_error, problem, codes, **params)
    assert_array_equal(statistic(codes), expected)


@pytest.mark.parametrize(
    ("kernel", "weighted"), [("laplacian", True), ("rbf", False), (polynomial, True)]
)
@pytest.mark.parametrize("method", ["unbiased", "biased"])
@pytest.mark.parametrize("notion", [*SCALARS, *VECTORS])
def test_kernel_statistic_is_the_kernel_error(notion, method, kernel, weighted):
    problem, codes = problem_and_codes(notion, weighted)
    params = {"method": method, "kernel": kernel, "bandwidth": 0.3}
    params = used(squared_kernel_calibration_error, **params)
    statistic = prepare(SKCE, problem, params)
    assert isinstance(statistic, KernelStatistic)
    expected = metric_of(squared_kernel_calibration_error, problem, codes, **params)
    vectors = problem.features.shape[1] > 1  # whose products are float32
    rounding = 2e-6 * (4 if kernel is polynomial else 1) if vectors else 1e-14
    assert_allclose(statistic(codes), expected, rtol=0, atol=rounding)
    with config_context(working_memory=0.01):  # MiB: blocks of 14 rows
        assert_allclose(statistic(codes), expected, rtol=0, atol=rounding)


@pytest.mark.parametrize("notion", [*SCALARS, *VECTORS])
def test_what_sums_do_not_resolve_shrinks_as_those_of_random_roundings(notion):
    problem, _ = problem_and_codes(notion)
    rows = np.tile(np.arange(len(problem.weight)), 4)
    fourfold = problem._replace(
        features=problem.features[rows],
        residuals=problem.residuals[rows],
        weight=np.ones(len(rows)),
    )
    once, again = (prepare(SKCE, one, {"bandwidth": 0.3}).slack for one in (problem, fourfold))
    assert again == pytest.approx(once / 2)
    assert (once > 1e-12) == (problem.features.shape[1] > 1)  # whose products are float32


def is_subnormal(values):
    return (values != 0) & (np.abs(values) < np.finfo(np.float32).tiny)


def test_tiny_probabilities_enter_no_product_as_subnormal_numbers(rng, monkeypatch):
    """Such as naive Bayes predicts: with them products in float32 took 20 times longer."""
    logits = 60 * rng.standard_normal((60, 5))
    X = softmax(logits, axis=1)
    assert is_subnormal(X.astype(np.float32)).mean() > 0.02
    problem = single_problem(X.argmax(axis=1), X, "canonical", None)
    codes = np.vstack([observed_codes(problem), draw_codes(X, range(3))])
    seen, forms = [], KernelStatistic._quadratic_forms
    monkeypatch.setattr(
        KernelStatistic, "_quadratic_forms", lambda self, V: seen.append(V) or forms(self, V)
    )
    params = {"kernel": "laplacian", "bandwidth": 0.01}
    found = prepare(SKCE, problem, params)(codes)
    expected = metric_of(squared_kernel_calibration_error, problem, codes, **params)
    assert_allclose(found, expected, rtol=0, atol=2e-6)
    assert seen
    assert not any(is_subnormal(V).any() for V in seen)


@pytest.mark.parametrize("scale", [1e-25, 1e-18, 1e15])
def test_the_scale_of_a_kernel_is_that_of_the_statistic(scale):
    problem, codes = problem_and_codes("canonical")
    unit = prepare(SKCE, problem, {"kernel": polynomial})
    scaled = prepare(SKCE, problem, {"kernel": lambda X, Z: scale * polynomial(X, Z)})
    assert_allclose(scaled(codes) / scale, unit(codes), rtol=0, atol=1e-5)
    assert scaled.slack / scale == pytest.approx(unit.slack)


def test_a_single_sample_has_no_pairs():
    problem = single_problem([1], [[0.2, 0.8]], "canonical")
    assert_array_equal(prepare(SKCE, problem, {})(np.array([[0], [1]])), [0, 0])
    expected = [2 * 0.8**2, 2 * 0.2**2]
    biased = prepare(SKCE, problem, {"method": "biased"})(np.array([[0], [1]]))
    assert_allclose(biased, expected, rtol=1e-6)


def test_a_users_statistic_is_fast_once_it_says_what_it_prepares():
    problem, codes = problem_and_codes("confidence")
    calls = []

    def prepare_gap(problem, above=0.5):
        calls.append(above)
        sure = problem.features[:, 0] > above
        return lambda codes: np.abs((codes - problem.features[:, 0])[:, sure].mean(axis=1))

    def gap(outcomes, features, above=0.5):
        sure = features > above
        return abs(np.mean(outcomes[sure] - features[sure]))

    expected = prepare(gap, problem, {"above": 0.6})(codes)
    declared = prepared_by(prepare_gap)(gap)
    assert declared is gap
    assert_allclose(prepare(gap, problem, {"above": 0.6})(codes), expected, rtol=1e-14)
    assert calls == [0.6]


def test_options_without_a_fast_form_go_by_the_definition():
    problem, codes = problem_and_codes("confidence")
    metric = prepared_by(lambda problem, **params: None)(lambda y, p: float(np.mean(y)))
    statistic = prepare(metric, problem, {})
    assert isinstance(statistic, MetricStatistic)
    assert_array_equal(statistic(codes), codes.mean(axis=1))


# Null distributions


@pytest.mark.parametrize("notion", ["confidence", "canonical"])
def test_statistics_in_double_precision_have_no_slack(notion):
    problem, _ = problem_and_codes(notion)
    for statistic in (ECE, lambda outcomes, features: float(outcomes.mean())):
        function = prepare(statistic, problem, {})
        [draws] = draw_nulls([function], [problem], 5, np.random.RandomState(0))
        assert draws.slack == 0


def spread(outcomes, features):
    """A statistic of the user, for vectors and numbers."""
    return float(np.mean((outcomes[1:] - outcomes[:-1]) * features.ravel()[: len(outcomes) - 1]))


@pytest.mark.parametrize("notion", ["confidence", "canonical"])
@pytest.mark.parametrize("statistic", [ECE, SKCE, spread])
def test_null_distribution_is_invariant_to_workers_and_blocks(statistic, notion):
    problem, _ = problem_and_codes(notion)

    def draw_null(chunk=None, n_jobs=None):
        function = prepare(statistic, problem, {})
        if chunk:
            function.chunk = chunk
        [draws] = draw_nulls([function], [problem], 37, np.random.RandomState(0), n_jobs)
        return draws.nulls[0], draws.observed[0]

    null, observed = draw_null()
    assert null.shape == (37,)
    rounding = 2e-6 if statistic is SKCE else 0
    with parallel_config("threading"):
        assert_array_equal(draw_null(n_jobs=2)[0], null)
    for chunk in (1, 5, 100):
        others, same = draw_null(chunk)
        assert_allclose(others, null, rtol=0, atol=rounding)
        assert same == observed
