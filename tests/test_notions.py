"""Notions of calibration against their definitions, sample by sample."""

import copy
import pickle

import numpy as np
import pytest

from skcal import Binning, CalibrationErrorEstimator
from skcal.hypothesis_tests import monte_carlo_test
from skcal.metrics import expected_calibration_error
from skcal.notions import ANSWERS, NOTIONS, Lens, Notion, Problem, make_problems, resolve_notion

EVERY_NOTION = [*NOTIONS, "top-1", "top-2", "top-3", "precision-at-2"]
MULTICLASS = ["canonical", "confidence", "top-label", "classwise", "top-1", "top-2", "top-3"]


def predictions(n_classes=5, n_samples=60, dtype=np.float64):
    """Return rows with many ties, zeros and ones, and labels of every class."""
    rng = np.random.default_rng(0)
    counts = rng.multinomial(8, rng.dirichlet(np.full(n_classes, 0.5), size=n_samples))
    return (counts / 8).astype(dtype), rng.integers(0, n_classes, size=n_samples)


def first_largest(row):
    best = 0
    for k in range(1, len(row)):
        if row[k] > row[best]:
            best = k
    return best


def ranking(row):
    """Classes by decreasing probability, the first of equals first."""
    order, left = [], list(range(len(row)))
    while left:
        order.append(left.pop(first_largest([row[k] for k in left])))
    return order


def unit(k, width):
    return [float(j == k) for j in range(width)]


def naive_cases(row, label, notion):
    """Yield (problem, feature, outcome) for one sample, from the table of the definitions."""
    best = first_largest(row)
    if notion == "canonical":
        yield 0, list(row), unit(label, len(row))
    elif notion == "confidence":
        yield 0, [row[best]], [float(label == best)]
    elif notion == "top-label":
        yield best, [row[best]], [float(label == best)]
    elif notion == "precision-at-2":
        top = ranking(row)[:2]
        yield 0, [(row[top[0]] + row[top[1]]) / 2], [float(label in top) / 2]
    elif notion in ("classwise", "multi-label"):
        for k in range(len(row)):
            yield k, [row[k]], [float(label == k)]
    elif notion == "binary":
        yield 0, [row[1]], [float(label == 1)]
    else:
        k, order = int(notion[4:]), ranking(row)
        top = [row[j] for j in order[:k]]
        rest = sum(row[j] for j in order[k:])
        yield 0, [*top, rest], unit(min(order.index(label), k), k + 1)


def naive_problems(proba, codes, notion):
    problems = {}
    for i, (row, label) in enumerate(zip(proba, codes, strict=True)):
        for k, feature, outcome in naive_cases(row, label, notion):
            problems.setdefault(k, []).append((i, feature, np.subtract(outcome, feature)))
    return problems


@pytest.mark.parametrize("notion", EVERY_NOTION)
def test_problems_match_the_definition_sample_by_sample(notion):
    proba, codes = predictions(2 if notion == "binary" else 5)
    naive = naive_problems(proba, codes, notion)
    problems, unknown = (make_problems(proba, given, notion) for given in (codes, None))
    assert len(problems) == (5 if resolve_notion(notion, proba).by_class else 1)
    for k, (problem, without_labels) in enumerate(zip(problems, unknown, strict=True)):
        rows, features, residuals = (np.array(part) for part in zip(*naive[k], strict=True))
        np.testing.assert_array_equal(np.arange(len(proba))[problem.rows], rows)
        # Multiples of 1/8: every sum is exact.
        np.testing.assert_array_equal(problem.features, features)
        np.testing.assert_array_equal(problem.residuals, residuals)
        np.testing.assert_array_equal(without_labels.features, features)
        assert without_labels.residuals is None


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("notion", EVERY_NOTION)
def test_features_plus_residuals_are_outcomes_of_the_same_dtype(notion, dtype):
    rng = np.random.default_rng(1)
    n_classes = 2 if notion == "binary" else 5
    proba = rng.dirichlet(np.full(n_classes, 0.5), size=200).astype(dtype)
    codes = rng.integers(0, n_classes, size=200)
    for problem in make_problems(proba, codes, notion):
        assert problem.features.dtype == problem.residuals.dtype == dtype
        assert problem.features.shape == problem.residuals.shape
        assert (problem.features.shape[1] == 1) == resolve_notion(notion, proba).scalar
        outcome = problem.features + problem.residuals
        # outcome - feature and its sum with the feature are rounded once each, at most eps / 2.
        halves = 2 if notion == "precision-at-2" else 1
        whole = np.rint(halves * outcome) / halves
        np.testing.assert_allclose(outcome, whole, rtol=0, atol=np.finfo(dtype).eps)
        if not resolve_notion(notion, proba).scalar:
            np.testing.assert_array_equal(np.rint(outcome).sum(axis=1), 1)


def test_ties_of_the_arg_max_go_to_the_first_class():
    proba, codes = np.array([[0.25, 0.375, 0.375]] * 3), np.array([0, 1, 2])
    [confidence] = make_problems(proba, codes, "confidence")
    assert confidence.residuals.ravel().tolist() == [-0.375, 0.625, -0.375]
    assert [len(p.features) for p in make_problems(proba, codes, "top-label")] == [0, 3, 0]
    [top_2] = make_problems(proba, codes, "top-2")
    assert (top_2.residuals + top_2.features).tolist() == [[0, 0, 1], [1, 0, 0], [0, 1, 0]]
    [halves] = make_problems(np.array([0.5, 0.5]), np.array([0, 1]), "confidence")
    assert halves.residuals.ravel().tolist() == [0.5, -0.5]  # class 0 is the arg max


# Lenses.


def confidence_lens(proba):
    return (np.arange(proba.shape[1]) != proba.argmax(axis=1)[:, None]).astype(int)


def test_entries_of_a_lens_are_its_groups():
    proba = np.full((2, 5), 0.2)
    lens = resolve_notion(confidence_lens, proba)
    assert lens.titles(list("abcde")) == ["group 0", "group 1"]


def test_a_lens_that_tells_all_classes_apart_asks_the_canonical_question():
    proba, codes = predictions()
    [lens] = make_problems(proba, codes, lambda p: np.tile(np.arange(5), (len(p), 1)))
    [canonical] = make_problems(proba, codes, "canonical")
    np.testing.assert_array_equal(lens.features, canonical.features)
    np.testing.assert_array_equal(lens.residuals, canonical.residuals)


@pytest.mark.parametrize(
    "bad",
    [
        lambda p: confidence_lens(p)[:, 1:],
        lambda p: confidence_lens(p)[0],
        lambda p: confidence_lens(p).astype(float),
        lambda p: confidence_lens(p) - 1,
        lambda p: "group",
    ],
)
def test_a_lens_with_other_output_than_groups_is_refused(bad):
    proba, codes = predictions()
    with pytest.raises(ValueError, match=r"^notion: The lens returned .*non-negative integer"):
        make_problems(proba, codes, bad)


# One-dimensional input.


@pytest.mark.parametrize("notion", ["canonical", "classwise"])
def test_two_columns_have_exactly_twice_the_binary_products(notion):
    proba, codes = predictions(2)
    assert resolve_notion(notion, proba[:, 1]) == "binary"
    [binary] = make_problems(proba[:, 1], codes, "binary")
    columns = make_problems(proba, codes, notion)
    products = sum(problem.residuals @ problem.residuals.T for problem in columns)
    np.testing.assert_array_equal(products, 2 * binary.residuals @ binary.residuals.T)


# Names.


def test_auto_is_binary_for_two_classes_and_confidence_for_more():
    proba, _ = predictions(2)
    assert resolve_notion("auto", proba[:, 1]) == resolve_notion("auto", proba) == "binary"
    assert resolve_notion("auto", predictions(3)[0]) == "confidence"


def test_a_lens_remembers_its_number_of_groups():
    proba, codes = predictions()
    lens = resolve_notion(confidence_lens, proba)
    assert (lens.function, lens.n_groups) == (confidence_lens, 2)
    assert resolve_notion(lens, proba[:1]) is lens
    narrow = resolve_notion(lambda proba: np.zeros(proba.shape, int), proba)
    assert make_problems(proba, codes, narrow)[0].features.shape[1] == 1
    with pytest.raises(ValueError, match="lens returned group 1, which the training samples do"):
        make_problems(proba, codes, Lens(confidence_lens, 1))


@pytest.mark.parametrize("notion", ["top", "top-", "top-x", "Confidence", "toplabel", None, 3, []])
def test_an_unknown_notion_is_told_the_known_ones(notion):
    with pytest.raises(
        ValueError, match=r"^notion=.* is unknown\. Use one of .*'classwise'.*callable"
    ):
        resolve_notion(notion, predictions()[0])


@pytest.mark.parametrize(("notion", "n_classes"), [("top-0", 5), ("top-5", 5), ("top-2", 2)])
def test_top_k_leaves_at_least_one_class_over(notion, n_classes):
    with pytest.raises(ValueError, match=rf"K must be from 1 to {n_classes - 1}, below"):
        resolve_notion(notion, predictions(n_classes)[0])


def test_one_dimensional_predictions_have_two_classes():
    p = predictions(2)[0][:, 1]
    assert resolve_notion("top-1", p) == "top-1"
    with pytest.raises(ValueError, match="K must be from 1 to 1, below"):
        resolve_notion("top-2", p)


def test_binary_needs_two_classes():
    with pytest.raises(
        ValueError, match=r"^notion='binary' needs .* not 5\. Pass .* or use 'classwise'"
    ):
        resolve_notion("binary", predictions()[0])


# A notion of one's own.


class LeastProbable(Notion):
    """Is the class that is called least probable as rare as it claims?"""

    def problems(self, proba, codes, weight):
        claim, least = proba.min(axis=1), proba.argmin(axis=1)
        residuals = None if codes is None else ((codes == least) - claim)[:, None]
        return [Problem(claim[:, None], residuals, weight)]


@pytest.mark.parametrize("registered", [False, True])
def test_a_new_notion_is_one_class_for_metrics_tests_and_estimators(registered, monkeypatch):
    notion = LeastProbable("least-probable")
    if registered:
        monkeypatch.setitem(NOTIONS, "least-probable", notion)
        notion = "least-probable"
    rng = np.random.default_rng(4)
    proba = rng.dirichlet(np.ones(4), size=300)
    y = (proba.cumsum(axis=1) < rng.random((300, 1))).sum(axis=1)
    happened, claim = (y == proba.argmin(axis=1)).astype(int), proba.min(axis=1)
    assert expected_calibration_error(y, proba, notion=notion) == expected_calibration_error(
        happened, claim
    )
    options = {"n_resamples": 39, "random_state": 0}
    found = monte_carlo_test(y, proba, notion=notion, **options)
    expected = monte_carlo_test(happened, claim, **options)
    assert found.notion == "least-probable"
    np.testing.assert_array_equal(found.null_distribution, expected.null_distribution)
    estimator = CalibrationErrorEstimator(Binning(5), notion=notion).fit(proba, y)
    scalar = CalibrationErrorEstimator(Binning(5)).fit(claim, happened)
    assert (estimator.notion_, scalar.notion_) == ("least-probable", "binary")
    assert estimator.score(proba, y) == scalar.score(claim, happened)


WRONG_PROBLEMS = {
    "nothing": (lambda problem: None, "a NoneType. Return a list of skcal.notions.Problem"),
    "no list": (lambda problem: problem, "a Problem. Return a list"),
    "no problem": (lambda problem: [], "an empty list. Return a list"),
    "features of one dimension": (
        lambda problem: [problem._replace(features=problem.features[:, 0])],
        r"features of shape \(30,\) for 30 rows. Return shape \(30, 1\)",
    ),
    "fewer rows": (
        lambda problem: [Problem(*(part[:-1] for part in problem[:3]))],
        r"features of shape \(29, 1\) for 30 rows",
    ),
    "fewer weights": (
        lambda problem: [problem._replace(weight=problem.weight[:-1])],
        r"weight of shape \(29,\) for 30 rows",
    ),
    "residuals of one dimension": (
        lambda problem: [problem._replace(residuals=problem.residuals[:, 0])],
        r"residuals of shape \(30,\) and features of shape \(30, 1\)",
    ),
    "no residuals": (
        lambda problem: [problem._replace(residuals=problem.residuals / 2)],
        "add up to .* in row 0, not to outcomes of 0 and 1. Return residuals = outcomes - features",
    ),
    "no probabilities": (
        lambda problem: [problem._replace(features=problem.features * np.nan)],
        "features that are not probabilities",
    ),
}


@pytest.mark.parametrize("wrong", WRONG_PROBLEMS)
def test_what_is_wrong_in_a_new_notion_is_named(wrong):
    change, message = WRONG_PROBLEMS[wrong]

    class Wrong(LeastProbable):
        def problems(self, proba, codes, weight):
            return change(super().problems(proba, codes, weight)[0])

    proba, notion = np.random.default_rng(4).dirichlet(np.ones(4), size=30), Wrong("wrong")
    y = np.arange(30) % 4
    for call in (
        lambda: expected_calibration_error(y, proba, notion=notion),
        lambda: monte_carlo_test(y, proba, notion=notion, n_resamples=19),
        lambda: CalibrationErrorEstimator(Binning(5), notion=notion).fit(proba, y),
    ):
        with pytest.raises(ValueError, match=rf"^Wrong.problems returned .*{message}"):
            call()


def test_a_notion_is_its_name_and_survives_copies():
    proba = predictions()[0]
    for asked in (*MULTICLASS, confidence_lens):
        notion = resolve_notion(asked, proba)
        copies = pickle.loads(pickle.dumps(notion)), copy.deepcopy(notion)
        assert all(one == notion and type(one) is type(notion) for one in copies)
        assert str(notion) == getattr(asked, "__name__", asked)
    lens = resolve_notion(confidence_lens, proba)
    assert lens != "confidence_lens"  # another lens may have the same name
    assert lens != Lens(confidence_lens, 3)


def test_notions_of_one_name_are_equal_if_they_are_of_one_kind():
    binary, other = NOTIONS["binary"], ANSWERS
    assert binary == "binary" == other
    assert hash(binary) == hash("binary") == hash(other)
    assert binary != other
    assert not binary == other  # noqa: SIM201
    assert len({binary, other, NOTIONS["canonical"]}) == 3
    assert pickle.loads(pickle.dumps(other)) == other
    for notion in NOTIONS.values():
        assert [one for one in NOTIONS.values() if one == notion] == [notion]
