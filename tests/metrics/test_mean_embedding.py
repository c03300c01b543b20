"""Maximum mean and mean embedding calibration errors against their definitions."""

from functools import partial

import numpy as np
import pytest
from naive_kernel import NOTIONS, draw, first_or_other, naive_sum, polynomial, value
from numpy.testing import assert_allclose
from used import used

from skcal.metrics import (
    maximum_mean_calibration_error,
    squared_kernel_calibration_error,
    squared_mean_embedding_calibration_error,
)

# Maximum mean calibration error


@pytest.mark.parametrize("bandwidth", [0.4, 0.05])
def test_mmce_is_the_root_of_a_double_sum_over_confidences(bandwidth):
    y, proba = draw("confidence")
    conf, r = proba.max(axis=1), (proba.argmax(axis=1) == y) - proba.max(axis=1)
    kernel = np.exp(-np.abs(conf[:, None] - conf) / bandwidth)
    error = maximum_mean_calibration_error(y, proba, bandwidth=bandwidth)
    assert_allclose(error, np.sqrt(r @ kernel @ r) / len(y), rtol=1e-12)
    squared = squared_kernel_calibration_error(y, proba, method="biased", bandwidth=bandwidth)
    assert_allclose(error**2, squared, rtol=1e-12)


def test_mmce_of_one_column_is_that_of_its_confidence():
    """The more probable class, not P(positive) beside the arg max."""
    p, y = np.array([0.9, 0.2, 0.4, 0.0]), np.array([1, 0, 1, 0])
    two = np.column_stack([1 - p, p])
    assert maximum_mean_calibration_error(y, p) == maximum_mean_calibration_error(y, two)
    assert maximum_mean_calibration_error([0, 1], [0.0, 1.0]) == 0


# Mean embeddings at test locations


@pytest.mark.parametrize(
    ("kernel", "weighted"), [("laplacian", True), ("rbf", False), (polynomial, True)]
)
@pytest.mark.parametrize("notion", NOTIONS)
def test_ucme_is_the_mean_square_of_embeddings_at_its_locations(notion, weighted, kernel):
    y, proba = draw(notion)
    rng = np.random.default_rng(6)
    weight = rng.uniform(0.2, 3, len(y)) if weighted else np.ones(len(y))
    m = {"canonical": 3, "top-2": 3, first_or_other: 2}.get(notion, 1)
    points = rng.dirichlet(np.ones(max(m, 2)), size=4)[:, :m]
    columns = rng.integers(0, m, size=4)

    def one_problem(x, residuals, weight):
        kernels = np.array([[value(a, t, kernel, 0.3) for t in points] for a in x])
        means = weight @ (kernels * residuals[:, columns])
        return np.mean(np.square(means)) / weight.sum() ** 2

    locations = {"locations": points if m > 1 else points[:, 0], "location_classes": columns}
    options = {"notion": notion, "kernel": kernel, "bandwidth": 0.3, "sample_weight": weight}
    options = used(squared_mean_embedding_calibration_error, **options)
    error = squared_mean_embedding_calibration_error(y, proba, **options, **locations)
    assert_allclose(error, naive_sum(y, proba, notion, one_problem, weight), rtol=1e-10)


def locations_of(y, proba, **options):
    """Return the error and the locations that a kernel is called with."""
    seen = []

    def kernel(X, Z):
        seen.append(Z)
        return polynomial(X, Z)

    error = squared_mean_embedding_calibration_error(y, proba, kernel=kernel, **options)
    [points] = seen
    return error, points


def test_locations_are_reproducible_predictions_and_see_no_labels():
    y, proba = draw("canonical")
    of = partial(locations_of, proba=proba, notion="canonical")
    error, points = of(y, random_state=0)
    assert points.shape == (10, 3)
    assert len(np.unique(np.vstack([points, proba]), axis=0)) == len(np.unique(proba, axis=0))
    assert len(np.unique(points, axis=0)) == 10
    again, same = of(y, random_state=0)
    assert again == error
    for labels in (2 - y, np.zeros_like(y)):
        np.testing.assert_array_equal(of(labels, random_state=0)[1], same)
    assert of(y, random_state=1)[0] != error
    assert (of(y, random_state=1)[1] != points).any()


@pytest.mark.parametrize("notion", ["binary", "canonical"])
@pytest.mark.parametrize("n_locations", [43, 44, 1000])
def test_no_more_locations_are_taken_than_there_are_distinct_predictions(n_locations, notion):
    y, proba = draw(notion)  # 46 with 4 copies
    _, points = locations_of(y, proba, notion=notion, n_locations=n_locations)
    distinct = np.unique(proba, axis=0).reshape(42, -1)
    np.testing.assert_array_equal(np.unique(points, axis=0), distinct)


def test_locations_of_numbers_are_evenly_spaced_ranks():
    p = np.array([0.5, 0.1, 0.9, 0.3, 0.7, 0.9, 0.9])  # copies have one rank
    y = np.zeros(7, dtype=int)
    for n_locations, expected in ((1, [0.5]), (2, [0.3, 0.7]), (5, [0.1, 0.3, 0.5, 0.7, 0.9])):
        _, points = locations_of(y, p, n_locations=n_locations)
        assert points.ravel().tolist() == expected


def test_location_classes_are_drawn_from_the_probabilities_there():
    y, t = np.array([0, 1, 2, 2, 2, 2]), np.array([0.2, 0.3, 0.5])
    proba = np.tile(t, (6, 1))
    metric = partial(squared_mean_embedding_calibration_error, y, proba, notion="canonical")
    each = np.array([metric(locations=[t], location_classes=[c]) for c in range(3)])
    assert np.isclose(metric(), each).any()
    mean, variance = t @ each, t @ each**2 - (t @ each) ** 2
    # Leaves 4 standard errors with probability 6e-5.
    error = metric(locations=np.tile(t, (40_000, 1)))
    assert abs(error - mean) < 4 * np.sqrt(variance / 40_000)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"locations": [[0.5, 0.5]]}, "locations have 2 columns, the features of the notion 3"),
        ({"locations": [0.5]}, "locations have 1 columns, the features of the notion 3"),
        ({"locations": np.ones((0, 3))}, "minimum of 1 is required|0 sample"),
        ({"location_classes": [0, 1]}, "an integer for each of the 10 locations"),
        ({"location_classes": [0.0] * 10}, "an integer for each of the 10 locations"),
        ({"location_classes": [3] * 10}, "from 0 to 2; 3 is not a column"),
        ({"location_classes": [-1] * 10}, "from 0 to 2; -1 is not a column"),
        ({"locations": [[0.2, 0.3, np.nan]]}, "locations contains NaN"),
        ({"n_locations": 0}, "'n_locations'"),
    ],
)
def test_locations_that_do_not_fit_are_refused(options, match):
    y, proba = draw("canonical")
    with pytest.raises(ValueError, match=match):
        squared_mean_embedding_calibration_error(y, proba, notion="canonical", **options)
