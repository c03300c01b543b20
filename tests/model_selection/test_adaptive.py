"""The adaptive estimate is that of its definition, pair by pair, and beats the plug-in."""

import itertools
import tracemalloc

import naive_estimates as naive
import numpy as np
import pytest
from notion_cases import every_notion
from numpy.testing import assert_allclose

from skcal.model_selection import estimates as calibrated_limit_module
from skcal.model_selection.adaptive import adaptive_squared_error
from skcal.model_selection.estimates import calibrated_limit
from skcal.notions import Problem, Problems, make_problems, resolve_notion


def drawn(proba, rng):
    """Labels that follow the predictions."""
    return np.minimum((proba.cumsum(axis=1) < rng.random((len(proba), 1))).sum(axis=1), 3)


def problems(proba, labels, notion, weight=None):
    weight = np.ones(len(proba)) if weight is None else weight
    if notion == "binary":
        proba, labels = proba[:, 0], (labels == 0).astype(int)
    return Problems(make_problems(proba, labels, resolve_notion(notion, proba), weight), weight)


def made(notion, n=50, weighted=False, seed=0, size=0.2):
    """Problems about overconfident predictions, and corrections that say a part of it."""
    rng = np.random.default_rng(seed)
    truth = rng.dirichlet(np.full(4, 0.7), n)
    proba = truth**1.6 / (truth**1.6).sum(axis=1, keepdims=True)
    weight = rng.choice([0.5, 1.0, 1.5], n) if weighted else None
    data = problems(proba, drawn(truth, rng), notion, weight)
    return data, [
        size * (0.4 - part.features) + 0.01 * rng.normal(size=part.features.shape)
        for part in data.parts
    ]


def check_equal(data, corrections):
    estimate = adaptive_squared_error(data, corrections)
    expected = naive.candidates(data, corrections)
    for one, (name, value, variance, _) in zip(estimate.candidates, expected, strict=True):
        assert one[0] == name
        assert_allclose(one[1], value, rtol=1e-8, atol=1e-13, err_msg=name)
        assert_allclose(one[2], np.sqrt(max(variance, 0)), rtol=1e-7, atol=1e-10, err_msg=name)
    names, value, shrunk, error, z = naive.adaptive(data, corrections)
    assert estimate.chosen == names
    found = [estimate.unshrunk, estimate.value, estimate.standard_error, estimate.z]
    assert_allclose(found, [value, shrunk, error, z], rtol=1e-7, atol=1e-12)
    return estimate


@every_notion
@pytest.mark.parametrize(("weighted", "size"), [(True, 0.2), (False, 0.0)])
def test_the_estimate_is_that_of_its_definition(notion, weighted, size):
    data, corrections = made(notion, weighted=weighted, size=size)
    assert len(check_equal(data, corrections).candidates) >= 3


@pytest.mark.parametrize("n", [2, 3, 5])
@pytest.mark.parametrize("notion", ["canonical", "confidence", "classwise", "top-label"])
def test_few_samples_have_an_estimate(notion, n):
    estimate = check_equal(*made(notion, n))
    assert np.isfinite([estimate.value, estimate.standard_error]).all()


@pytest.mark.parametrize("p", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("positive", ["none", "some", "all"])
def test_one_value_makes_one_cell(p, positive):
    proba = np.full(60, p)
    labels = {"none": np.zeros(60), "all": np.ones(60), "some": np.arange(60) % 3 == 0}[positive]
    data = Problems(
        make_problems(proba, labels.astype(int), resolve_notion("binary", proba)), np.ones(60)
    )
    corrections = [np.full((60, 1), 0.1)]
    estimate = check_equal(data, corrections)
    assert {name.split()[0] for name, *_ in estimate.candidates} == {"product", "1"}
    assert np.isfinite([estimate.value, estimate.standard_error]).all()
    if p in (0.0, 1.0):
        assert calibrated_limit(data, corrections, estimate) == 0
        # What was said to be impossible has happened, and is no noise.
        n_wrong = abs({"none": 0, "all": 60, "some": 20}[positive] - 60 * int(p))
        values = dict(one[:2] for one in estimate.candidates)
        assert values["1 cell"] == pytest.approx(n_wrong * (n_wrong - 1) / (60 * 59))
        assert (estimate.value > 0) == (n_wrong > 0)


def test_equal_values_stay_in_one_cell_and_cells_halve_the_mass():
    rng = np.random.default_rng(0)
    proba = rng.choice([0.1, 0.2, 0.3, 0.6, 0.8], 200)
    labels = (rng.random(200) < proba).astype(int)
    data = Problems(make_problems(proba, labels, resolve_notion("binary", proba)), np.ones(200))
    names = [name for name, *_ in check_equal(data, [np.zeros((200, 1))]).candidates]
    # No more than there are values, and no partition twice: 10 bins would part all five.
    assert names[1:] == [
        f"{n} cell{'s' * (n > 1)}{more}"
        for n in (1, 2, 4, 5)
        for more in ("", " and the product within")
    ] + ["5 bins"]


@pytest.mark.parametrize("notion", ["canonical", "confidence", "classwise", "top-label"])
def test_order_of_samples_and_names_of_classes_do_not_matter(notion):
    rng = np.random.default_rng(5)
    proba = rng.dirichlet(np.full(4, 0.7), 300)
    labels, weight = drawn(proba, rng), rng.choice([0.5, 1.0, 2.0], 300)
    order, classes = rng.permutation(300), rng.permutation(4)
    new_names = np.argsort(classes)[labels]

    def estimate(proba, labels, weight):
        data = problems(proba, labels, notion, weight)
        corrections = [0.1 * (0.3 - part.features) for part in data.parts]
        found = adaptive_squared_error(data, corrections)
        return found, calibrated_limit(data, corrections, found)

    one = estimate(proba, labels, weight)
    shuffled = estimate(proba[order], labels[order], weight[order])
    renamed = estimate(proba[:, classes], new_names, weight)
    scaled = estimate(proba, labels, 7 * weight)
    for other, limit in (shuffled, renamed, scaled):
        assert other.chosen == one[0].chosen
        assert_allclose(other.value, one[0].value, rtol=1e-9)
        assert_allclose(other.standard_error, one[0].standard_error, rtol=1e-9)
        assert_allclose(limit, one[1], rtol=0.3)  # other draws


@pytest.mark.parametrize("notion", ["canonical", "confidence"])
def test_single_precision_gives_the_numbers_of_double(notion):
    data, corrections = made(notion, n=400)
    single = data._replace(
        parts=[
            part._replace(
                features=part.features.astype(np.float32),
                residuals=part.residuals.astype(np.float32),
            )
            for part in data.parts
        ]
    )
    one, other = (adaptive_squared_error(some, corrections) for some in (data, single))
    assert one.chosen == other.chosen
    assert_allclose(other.value, one.value, rtol=1e-4)
    assert_allclose(other.standard_error, one.standard_error, rtol=1e-4)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_the_deviation_of_a_cell_is_that_of_all_outcomes(n_classes):
    """Every sequence of outcomes with its probability, of a scalar and of a vector problem."""
    rng = np.random.default_rng(4)
    n = 6
    proba, weight = rng.dirichlet(np.ones(n_classes), n), rng.choice([0.5, 1.0, 1.5], n)
    outcomes = np.array(list(itertools.product(range(n_classes), repeat=n)))
    chance = np.prod(proba[np.arange(n), outcomes], axis=1)
    features = proba if n_classes > 2 else proba[:, 1:]
    happened = np.eye(n_classes)[outcomes] if n_classes > 2 else outcomes[..., None]
    residuals = weight[:, None] * (happened - features)
    products = (residuals.sum(axis=1) ** 2).sum(axis=1) - (residuals**2).sum(axis=(1, 2))
    values = products / (weight.sum() ** 2 - np.sum(weight**2))
    assert chance @ values == pytest.approx(0, abs=1e-12)
    part = Problem(features, (happened - features)[0], weight)
    found = adaptive_squared_error(Problems([part], weight), [np.zeros_like(features)]).candidates
    name, value, deviation = found[1]
    assert name == "1 cell"
    assert_allclose([value, deviation], [values[0], np.sqrt(chance @ values**2)], rtol=1e-9)


@pytest.mark.parametrize("notion", ["canonical", "confidence", "classwise", "top-label"])
def test_redrawn_values_are_those_of_the_candidates(notion, monkeypatch):
    """Outcomes as the simulation draws them, made into residuals of the same problems."""
    monkeypatch.setattr(calibrated_limit_module, "_DRAWN_TOGETHER", 10_000)
    data, corrections = made(notion, weighted=True)
    values = calibrated_limit_module._redrawn(data, corrections)
    claimed = [deviation for *_, deviation in adaptive_squared_error(data, corrections).candidates]
    # The product has no less than the deviation of one cell, more than its own.
    assert values[:, 0].std() < claimed[0]
    assert_allclose(values[:, 1:].std(axis=0), claimed[1:], rtol=0.2)
    parts = [part for part in data.parts if len(part.weight)]
    rng, share = np.random.default_rng(0), data.share_samples
    several = list(calibrated_limit_module._outcomes(parts, rng, len(values), share))
    assert len(several) > 1
    for k in (0, 1, len(values) - 1):
        draw, before = 0, k
        while before >= several[draw][0][0]:
            before, draw = before - several[draw][0][0], draw + 1
        drawn = []
        for part, (_, draws, rows, columns) in zip(parts, several[draw], strict=True):
            residuals, own = -part.features.astype(float), draws == before
            residuals[rows[own], columns[own]] += 1
            drawn.append(part._replace(residuals=residuals))
        kept = [g for part, g in zip(data.parts, corrections, strict=True) if len(part.weight)]
        expected = adaptive_squared_error(data._replace(parts=drawn), kept).candidates
        assert_allclose(values[k], [value for _, value, _ in expected], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("last", [[1, 11, 4], [1, 7, 8], [0, 9, 7], [0, 1, 15]])
def test_a_single_sample_that_is_not_certain_makes_no_pair(last):
    """What rounding leaves of its variance with others, of either sign, is 0."""
    proba = np.array([[0, 0, 16], [0, 0, 16], [0, 0, 16], last]) / 16
    for weight in np.ones(4), np.random.default_rng(0).uniform(0.5, 2, 4):
        data = problems(proba, np.zeros(4, dtype=int), "canonical", weight)
        found = adaptive_squared_error(data, [0.3 * (1 / 3 - proba)])
        deviations = {name: deviation for name, _, deviation in found.candidates}
        assert deviations["1 cell"] == 0
        scaled = problems(proba, np.zeros(4, dtype=int), "canonical", 1e-9 * weight)
        other = adaptive_squared_error(scaled, [0.3 * (1 / 3 - proba)])
        assert_allclose(other.value, found.value, rtol=1e-9)


@every_notion
def test_redrawn_outcomes_have_the_predicted_frequencies_and_a_sample_has_one(notion):
    data, _ = made(notion, n=40)
    parts = [part for part in data.parts if len(part.weight)]
    happened = [np.zeros((600, *part.features.shape)) for part in parts]
    rng, first = np.random.default_rng(5), 0
    for drawn_parts in calibrated_limit_module._outcomes(parts, rng, 600, data.share_samples):
        for found, (_, draws, rows, columns) in zip(happened, drawn_parts, strict=True):
            found[first + draws, rows, columns] += 1
        first += drawn_parts[0][0]
    assert first == 600
    for found, part in zip(happened, parts, strict=True):
        p = part.features
        # Of at most 160 frequencies one is beyond 5 standard errors with probability 1e-4.
        assert (np.abs(found.mean(axis=0) - p) <= 5 * np.sqrt(p * (1 - p) / 600) + 5 / 600).all()
    if data.share_samples and notion != "confidence" and notion != "binary":
        assert (sum(found.sum(axis=2) for found in happened) == 1).all()


def test_calibrated_predictions_stay_below_what_is_claimed():
    """Of 40 data sets 2 are expected above; 8 or more have probability 0.0006."""
    rng = np.random.default_rng(2)
    above = 0
    for _ in range(40):
        proba = rng.beta(0.7, 0.7, 100)
        labels = (rng.random(100) < proba).astype(int)
        data = Problems(make_problems(proba, labels, resolve_notion("binary", proba)), np.ones(100))
        estimate = adaptive_squared_error(data, [np.zeros((100, 1))])
        above += estimate.value > calibrated_limit(data, [np.zeros((100, 1))], estimate)
    assert above <= 7


def test_memory_is_a_few_numbers_a_sample():
    rng = np.random.default_rng(0)
    n = 60_000
    proba = rng.random(n)
    labels = (rng.random(n) < proba).astype(int)
    data = Problems(make_problems(proba, labels, resolve_notion("binary", proba)), np.ones(n))
    tracemalloc.start()
    adaptive_squared_error(data, [np.zeros((n, 1))])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 60 * 8 * n  # 15 candidates of an influence each
