"""The mean embedding test: its definition, its null covariance, its asymptotic forms."""

import ast
import re

import numpy as np
import pytest
from calibrated_samples import kernel_value, polynomial, sample, superclass
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import chi2, f
from used import used

from skcal.hypothesis_tests import mean_embedding, mean_embedding_test
from skcal.metrics import squared_mean_embedding_calibration_error
from skcal.notions import make_problems

# Definitions hold where limits are not to be trusted; what is warned of is tested below.
pytestmark = pytest.mark.filterwarnings("ignore:Too few outcomes are uncertain:UserWarning")

SINGLE_PROBLEMS = ["binary", "confidence", "canonical", "top-2", superclass]
COLUMNS = {"canonical": 4, "top-2": 3, superclass: 2}


def place(notion, n_locations=3):
    """Given locations (J, m) and their columns."""
    rng = np.random.default_rng(6)
    m = COLUMNS.get(notion, 1)
    points = rng.dirichlet(np.ones(max(m, 2)), size=n_locations)[:, :m]
    return points, rng.integers(0, m, size=n_locations)


def options_of(notion, kernel="laplacian", n_locations=3):
    points, columns = place(notion, n_locations)
    locations = points if notion in COLUMNS else points[:, 0]
    options = {"notion": notion, "locations": locations, "location_classes": columns}
    return options | {"kernel": kernel, "bandwidth": 0.3, "random_state": 0}


def naive_terms(y, proba, notion, kernel, n_locations=3):
    """k(x_i, t_j) (1[y = c_j] - x_{c_j}) and its variance if calibrated, one at a time."""
    [(x, residuals, *_)] = make_problems(proba, y, notion)
    points, columns = place(notion, n_locations)
    J, n = n_locations, len(x)
    k = np.array([[kernel_value(a, t, kernel, 0.3) for t in points] for a in x])
    terms = [[k[i, a] * residuals[i, columns[a]] for a in range(J)] for i in range(n)]
    V = np.zeros((J, J))
    for i in range(n):
        for a in range(J):
            for b in range(J):
                p, q = x[i, columns[a]], x[i, columns[b]]
                V[a, b] += k[i, a] * k[i, b] * ((columns[a] == columns[b]) * p - p * q) / n
    return np.array(terms), V


@pytest.mark.parametrize("kernel", ["laplacian", "rbf", polynomial])
@pytest.mark.parametrize("notion", SINGLE_PROBLEMS)
def test_statistic_is_the_squared_length_of_standardized_mean_deviations(notion, kernel):
    y, proba = sample(notion)
    terms, V = naive_terms(y, proba, notion, kernel)
    mean, options = terms.mean(axis=0), options_of(notion, kernel)
    options = used(mean_embedding_test, **options)
    result = mean_embedding_test(y, proba, n_resamples=19, **options)
    assert_allclose(result.statistic, len(y) * mean @ np.linalg.solve(V, mean), rtol=1e-6)
    assert_allclose(result.estimate, np.mean(mean**2), rtol=1e-9)
    assert_allclose(result.estimate, squared_mean_embedding_calibration_error(y, proba, **options))


@pytest.mark.parametrize("notion", ["classwise", "top-label"])
def test_notions_of_several_problems_take_locations_in_each(notion):
    y, proba = sample(notion, n=120, n_classes=3)
    options = {"locations": [0.3, 0.7], "bandwidth": 0.3, "random_state": 0, "n_resamples": 59}
    result = mean_embedding_test(y, proba, notion=notion, **options)
    expected = estimate = 0.0
    for k in range(3):
        rows = slice(None) if notion == "classwise" else proba.argmax(axis=1) == k
        share = 1 if notion == "classwise" else np.mean(rows)
        one = mean_embedding_test((y[rows] == k).astype(int), proba[rows, k], **options)
        expected, estimate = expected + share * one.statistic, estimate + share * one.estimate
    assert_allclose(result.statistic, expected, rtol=1e-9)
    assert_allclose(result.estimate, estimate, rtol=1e-9)
    assert (result.class_pvalues is None) == (notion == "top-label")


# Locations


@pytest.mark.parametrize("notion", ["confidence", "canonical"])
@pytest.mark.parametrize("method", ["monte-carlo", "chi2"])
def test_drawn_locations_never_depend_on_the_labels(notion, method):
    y, proba = sample(notion)
    seen = []

    def kernel(X, Z):
        seen.append(Z)
        return np.exp(-5 * ((X[:, None] - Z) ** 2).sum(axis=2))

    options = {"kernel": kernel, "n_locations": 3, "method": method, "n_resamples": 19}
    options = used(mean_embedding_test, **options)
    for labels in (y, 3 - y, np.roll(y, 1)):
        mean_embedding_test(labels, proba, notion=notion, random_state=0, **options)
    first, *others = seen[:: len(seen) // 3]
    for points in others:
        assert_array_equal(points, first)
    features = make_problems(proba, y, notion)[0].features
    assert (first[:, None] == features).all(axis=2).any(axis=1).all()


def test_there_are_no_more_locations_than_distinct_predictions():
    p = np.repeat([0.2, 0.5, 0.7], 20)
    y = np.random.default_rng(0).integers(0, 2, 60)
    one, other = (
        mean_embedding_test(y, p, n_resamples=19, random_state=0, **options)
        for options in ({}, {"locations": [0.2, 0.5, 0.7]})
    )
    assert_allclose(one.statistic, other.statistic, rtol=1e-9)


# Asymptotic forms


@pytest.mark.parametrize("kernel", ["laplacian", polynomial])
@pytest.mark.parametrize("notion", SINGLE_PROBLEMS)
def test_asymptotic_forms_of_the_covariance_under_h0(notion, kernel):
    y, proba = sample(notion)
    terms, V = naive_terms(y, proba, notion, kernel)
    n, J = terms.shape
    mean = terms.mean(axis=0)
    squared = n * mean @ np.linalg.solve(V, mean)
    pvalues = {
        "chi2": chi2.sf(squared, J),
        "hotelling": f.sf((n - J) / (J * (n - 1)) * squared, J, n - J),
    }
    for method, pvalue in pvalues.items():
        options = used(mean_embedding_test, method=method, **options_of(notion, kernel))
        result = mean_embedding_test(y, proba, **options)
        assert_allclose(result.statistic, squared, rtol=1e-6)
        assert_allclose(result.pvalue, pvalue, rtol=1e-6)
        assert_allclose(result.estimate, np.mean(mean**2), rtol=1e-9)


# Refusals


@pytest.mark.parametrize("method", ["monte-carlo", "chi2", "hotelling"])
def test_a_singular_covariance_says_how_many_locations_carry_information(method):
    y, p = sample("binary")
    options = {"locations": [0.1, 0.5, 0.5, 0.9, 0.1], "method": method, "n_resamples": 19}
    options = used(mean_embedding_test, **options)
    given = np.array(options["locations"])
    with pytest.raises(ValueError, match=r"at 5 locations .* of rank 3\. Pass only") as caught:
        mean_embedding_test(y, p, **options)
    kept = ast.literal_eval(re.search(r"numbered (\[.*\])\.", str(caught.value))[1])
    assert sorted(given[kept]) == [0.1, 0.5, 0.9]
    followed = mean_embedding_test(y, p, **{**options, "locations": given[kept]})
    right = mean_embedding_test(y, p, **{**options, "locations": [0.1, 0.5, 0.9]})
    assert followed.statistic == pytest.approx(right.statistic)
    y, proba = sample("canonical")
    proba = np.column_stack([proba, np.zeros(len(y))])  # a class without variance
    options |= {"locations": proba[[0, 30, 50]], "location_classes": [0, 4, 1]}
    with pytest.raises(ValueError, match=r"at 3 locations .* of rank 2\. Pass only .* \[0, 2\]"):
        mean_embedding_test(y, proba, notion="canonical", **options)


@pytest.mark.parametrize("method", ["monte-carlo", "chi2"])
def test_certain_predictions_carry_no_information(method):
    y = np.array([0, 1, 1, 0, 1])
    with pytest.raises(ValueError, match="predictions are all certain"):
        mean_embedding_test(y, y.astype(float), method=method)


def test_asymptotic_forms_need_more_samples_than_locations():
    p = [0.1, 0.3, 0.5, 0.7, 0.9]
    with pytest.raises(ValueError, match=r"5 samples are too few for 5 locations\. Lower n_loc"):
        mean_embedding_test([0, 1, 0, 1, 1], p, method="chi2", n_locations=5)


# Where the limits hold


@pytest.mark.parametrize("name", ["1 % positives", "20 classes"])
@pytest.mark.parametrize("locations", ["auto", 10])
def test_where_no_limit_can_be_trusted_there_is_a_warning(name, locations):
    rng = np.random.default_rng(0)
    if name == "1 % positives":
        p = rng.beta(0.3, 29.7, 500)
        y, options = (rng.uniform(size=len(p)) < p).astype(int), {"labels": [0, 1]}
    else:
        p = rng.dirichlet([10] * 20, 200)
        y, options = p.argmax(axis=1), {"notion": "canonical", "labels": range(20)}
    options |= {"n_locations": locations, "method": "chi2", "random_state": 0}
    with pytest.warns(UserWarning, match=r"Too few outcomes.*Use method='monte-carlo'"):
        mean_embedding_test(y, p, **options)


def test_events_of_one_location_are_those_of_its_outcomes():
    """A constant prediction p: n² / Σ E s⁴ = n p (1 - p) / (1 - 3 p (1 - p))."""
    p = np.full((400, 1), 0.1)
    k = np.ones((400, 1))
    V = np.array([[0.09]])
    found = mean_embedding._effective_events(p, k, np.array([0]), V)
    assert_allclose(found, 400 * 0.09 / (1 - 0.27))
    both = np.hstack([1 - p, p])
    assert_allclose(mean_embedding._effective_events(both, k, np.array([0]), V), found)
    assert mean_embedding._effective_events(p, k, np.array([0]), np.array([[0.0]])) == 0
