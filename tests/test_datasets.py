"""The generative models against closed forms, quadrature and their own samples."""

import contextlib
import pickle
from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.stats import beta, chi2, sem

from skcal import datasets
from skcal.datasets import TrueError, make_dirichlet, make_distorted, make_tempered
from skcal.notions import make_problems
from skcal.pair_risk import one_step_terms

# A normal mean leaves 4.5 standard errors with probability 7e-6.
SIGMAS = 4.5
MODELS = [("M1", 0.5), ("M2", 0.5), ("M2", 0.2), ("M3", 0.5)]
DISTORTED = ["class-dependent", "non-monotone", "confused-pair"]
SHAPES = [(2, 1.0), (3, 0.5), (10, 0.1)]


def assert_mean_is(terms, truth):
    error = np.hypot(np.std(terms) / np.sqrt(len(terms)), truth.standard_error)
    assert abs(np.mean(terms) - truth.value) <= SIGMAS * error + 1e-12


def conditional(proba, model, noise):
    """P(Y = k | p) as the docstring gives it."""
    towards = {"M1": proba, "M2": np.eye(proba.shape[1])[0], "M3": 1 / proba.shape[1]}[model]
    return (1 - noise) * proba + noise * towards if model == "M2" else towards + 0 * proba


def true_residual(features, model, noise, n_classes):
    """Return E[δ | max p]: the arg max is any class, independently of max p."""
    shrink = {"M1": 0.0, "M2": noise, "M3": 1.0}[model]
    return shrink * (1 / n_classes - features)


@pytest.mark.parametrize(("n_classes", "concentration"), SHAPES)
@pytest.mark.parametrize(("model", "noise"), MODELS)
def test_dirichlet_truths_are_the_means_over_samples(model, noise, n_classes, concentration):
    data = make_dirichlet(
        20_000,
        n_classes=n_classes,
        concentration=concentration,
        model=model,
        noise=noise,
        random_state=0,
    )
    p, truths = data.proba, data.true_squared_errors
    gap = conditional(p, model, noise) - p
    assert_mean_is(np.sum(gap**2, axis=1), truths["canonical"])
    assert_mean_is(0.5 * np.sum(np.abs(gap), axis=1), TrueError(data.true_total_variation))
    top = true_residual(p.max(axis=1), model, noise, n_classes)
    assert_mean_is(top**2, truths["confidence"])
    # The labels have these truths too: the one-step terms at the true E[δ | x] are unbiased.
    for notion, correction in (("canonical", gap), ("confidence", top[:, None])):
        [problem] = make_problems(p, data.labels, notion)
        assert_mean_is(one_step_terms(correction, problem.residuals), truths[notion])
    classes = make_problems(p, data.labels, "classwise")
    terms = sum(one_step_terms(gap[:, [k]], classes[k].residuals) for k in range(n_classes))
    assert_mean_is(terms, truths["classwise"])


@pytest.mark.parametrize(
    ("model", "canonical", "confidence", "variation"),
    [("M1", 0, 0, 0), ("M2", 1 / 6, 1 / 48, 1 / 4), ("M3", 1 / 6, 1 / 12, 1 / 4)],
)
def test_truths_of_uniform_predictions_are_by_hand(model, canonical, confidence, variation):
    # C = 2, α = 1, π = ½: p_1 is uniform on [0, 1], so that E‖p‖² = 2/3, and max p on [½, 1].
    data = make_dirichlet(5, n_classes=2, concentration=1.0, model=model, random_state=0)
    truths = data.true_squared_errors
    assert all(truth.standard_error == 0 for truth in truths.values())
    assert truths["canonical"].value == pytest.approx(canonical, rel=1e-14)
    assert truths["classwise"].value == pytest.approx(canonical, rel=1e-14)
    assert truths["confidence"].value == pytest.approx(confidence, rel=1e-10)  # quadrature
    assert data.true_total_variation == pytest.approx(variation, rel=1e-14)


@pytest.mark.parametrize("concentration", [0.01, 0.5, 50.0])
def test_for_two_classes_confidence_has_half_the_canonical_error(concentration):
    # Under M3 both ask for the distance to ½; one truth is a closed form, the other quadrature.
    truths = make_dirichlet(
        2, n_classes=2, concentration=concentration, model="M3", random_state=0
    ).true_squared_errors
    half = truths["canonical"].value / 2
    assert truths["confidence"].value == pytest.approx(half, rel=0, abs=1e-10)


@pytest.mark.parametrize("concentration", [1e-3, 0.04, 1.0, 1e3])
@pytest.mark.parametrize("n_classes", [2, 100])
@pytest.mark.parametrize(
    "make",
    [
        make_dirichlet,
        make_tempered,
        *(partial(make_distorted, distortion=one) for one in DISTORTED),
    ],
)
def test_predictions_and_truths_are_finite_at_every_concentration(make, n_classes, concentration):
    options = {"model": "M3"} if make is make_dirichlet else {"n_truth_draws": 0}
    data = make(300, n_classes=n_classes, concentration=concentration, random_state=0, **options)
    assert_allclose(data.proba.sum(axis=1), 1, rtol=1e-12)
    assert data.proba.min() >= 0
    assert set(np.unique(data.labels)) <= set(range(n_classes))
    if make is make_dirichlet:
        assert 0 < data.true_total_variation < 1


def two_class_tempered_error(temperature, concentration):
    """E(π - p(π))² with p = π^T / (π^T + (1 - π)^T), by quadrature over u = F(π)."""

    def squared_gap(u):
        truth = beta.ppf(u, concentration, concentration)
        powered, other = truth**temperature, (1 - truth) ** temperature
        return (truth - powered / (powered + other)) ** 2

    return 2 * quad(squared_gap, 0, 0.5, epsabs=1e-10)[0]


@pytest.mark.parametrize(("temperature", "concentration"), [(2.0, 0.3), (0.5, 1.0)])
def test_two_class_tempered_truths_are_one_integral(temperature, concentration):
    # p is increasing in π, so that p, p_k and max p all determine π.
    binary = two_class_tempered_error(temperature, concentration)
    options = {"n_classes": 2, "concentration": concentration, "n_truth_draws": 250_000}
    truths = make_tempered(1, temperature=temperature, **options).true_squared_errors
    for notion, factor in (("canonical", 2), ("classwise", 2), ("confidence", 1)):
        # The draws are fixed; within the 800 bins of a batch the gap is constant to 1e-5.
        distance = abs(truths[notion].value - factor * binary)
        assert distance < SIGMAS * truths[notion].standard_error + 1e-5
        assert 0 < truths[notion].standard_error < 1e-4


def test_tempered_truths_are_the_published_ones():
    truths = make_tempered(1).true_squared_errors
    for notion, value in (("canonical", 0.0391), ("confidence", 0.0257)):
        # Half a unit of the last digit and the Monte Carlo error.
        distance = abs(truths[notion].value - value)
        assert distance < 5e-5 + SIGMAS * truths[notion].standard_error
        assert truths[notion].standard_error < 5e-5


@pytest.mark.parametrize("notion", ["canonical", "confidence", "classwise"])
def test_tempered_truths_are_those_of_the_samples(notion):
    data = make_tempered(60_000, random_state=1)
    p, stated = data.proba, data.true_squared_errors[notion]
    truth = np.sqrt(p) / np.sqrt(p).sum(axis=1, keepdims=True)  # π, as T = 2
    if notion == "canonical":
        [problem] = make_problems(p, data.labels, notion)
        assert_mean_is(np.sum((truth - p) ** 2, axis=1), stated)
        assert_mean_is(one_step_terms(truth - p, problem.residuals), stated)
    elif notion == "confidence":
        assert_mean_is(explained(p.max(axis=1), truth.max(axis=1) - p.max(axis=1)), stated)
    else:
        assert_mean_is(sum(explained(p[:, k], (truth - p)[:, k]) for k in range(5)), stated)


def explained(feature, gap, n_bins=500):
    """Terms whose mean is E(E[gap | feature])² up to O(n_bins⁻²).

    Each gap times the mean of the others in its bin, so that no square is biased; bins of equal
    width in √p, in which the truth is smooth.
    """
    bins = np.minimum((n_bins * np.sqrt(feature)).astype(int), n_bins - 1)
    others = np.bincount(bins)[bins] - 1
    return gap * (np.bincount(bins, gap)[bins] - gap) / np.maximum(others, 1)


def test_temperature_1_is_calibrated():
    data = make_tempered(50_000, temperature=1.0, random_state=0)
    assert all(truth == (0.0, 0.0) for truth in data.true_squared_errors.values())
    outcome = np.eye(5)[data.labels]
    for k in range(5):
        assert_mean_is((outcome[:, k] - data.proba[:, k]) * data.proba[:, 0], TrueError(0.0))


@pytest.mark.parametrize("make", [make_dirichlet, make_tempered, make_distorted])
def test_samples_are_reproducible_by_random_state(make):
    first, again, other = (make(50, random_state=seed) for seed in (0, 0, 1))
    state = make(50, random_state=np.random.RandomState(0))
    for same in (again, state):
        np.testing.assert_array_equal(first.proba, same.proba)
        np.testing.assert_array_equal(first.labels, same.labels)
    assert not np.array_equal(first.proba, other.proba)
    assert first.proba.shape == (50, first.proba.shape[1])
    assert first.labels.dtype == np.int64


@pytest.mark.parametrize("make", [make_tempered, make_distorted])
def test_overwriting_a_truth_does_not_change_the_next_one(make):
    setting = {"n_classes": 3, "n_truth_draws": 1000, "random_state": 0}
    before = make(5, **setting).true_squared_errors["canonical"]
    with contextlib.suppress(TypeError):  # a read-only mapping
        make(5, **setting).true_squared_errors["canonical"] = None
    assert make(5, **setting).true_squared_errors["canonical"] == before


def count_calls(function, calls):
    def counted(*setting):
        calls.append(setting)
        return function(*setting)

    return counted


@pytest.mark.parametrize("make", [make_dirichlet, make_tempered, make_distorted])
def test_truths_are_left_out_or_computed_when_asked_for_and_once(make, monkeypatch):
    left_out, calls = make(10, n_truth_draws=0, random_state=0), []
    assert not left_out.true_squared_errors
    assert left_out.true_total_variation is None
    for name in ("_dirichlet_errors", "_simulated_errors"):
        original = getattr(datasets, name)
        monkeypatch.setattr(datasets, name, count_calls(original, calls))
    options = {} if make is make_dirichlet else {"n_truth_draws": 1000}
    data = make(10, random_state=0, **options)
    np.testing.assert_array_equal(left_out.proba, data.proba)
    assert not calls
    assert data.true_squared_errors is data.true_squared_errors
    assert len(calls) == 1
    monkeypatch.undo()
    copy = pickle.loads(pickle.dumps(make(10, random_state=0, **options)))
    assert dict(copy.true_squared_errors) == dict(data.true_squared_errors)
    assert copy.true_total_variation == data.true_total_variation


def test_the_error_of_a_truth_is_that_of_the_mean_of_ten_batches(monkeypatch):
    found = iter(range(20))  # in turn the class-wise one and that of the confidence
    monkeypatch.setattr(datasets, "_explained", lambda *_: float(next(found)))
    truths = datasets._simulated_errors.__wrapped__(2.0, 2, 1.0, 100)
    assert truths["confidence"].value == 10
    assert_allclose(truths["confidence"].standard_error, sem(np.arange(1, 20, 2)))
    assert truths["classwise"].value == 2 * 9


def distorted(p, kind):
    """P(Y = k | p), one row after the other."""
    q = np.empty_like(p)
    for i, row in enumerate(p):
        if kind == "class-dependent":
            powered = row ** (1.5 if np.argmax(row) % 2 else 0.5)
            q[i] = powered / powered.sum()
        elif kind == "confused-pair":
            *_, second, first = np.argsort(row)
            s = np.sin(2 * np.pi * (row[first] - row[second])) ** 2 / 2
            exchanged = row.copy()
            exchanged[[first, second]] = row[[second, first]]
            q[i] = (1 - s) * row + s * exchanged
        else:
            s = np.sin(2 * np.pi * row.max()) ** 2 / 2
            for k in range(len(row)):  # what leaves class k - 1 goes to class k
                q[i, k] = (1 - s) * row[k] + s * row[k - 1]
    return q


@pytest.mark.parametrize("kind", DISTORTED)
@pytest.mark.parametrize(("n_classes", "concentration"), [(2, 1.0), (5, 0.3)])
@pytest.mark.parametrize("n", [8_000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_truths_are_those_of_an_independent_monte_carlo(kind, n_classes, concentration, n):
    rng = np.random.default_rng(12345)
    p = rng.gamma(concentration, size=(n, n_classes))
    p /= p.sum(axis=1, keepdims=True)
    gap = distorted(p, kind) - p
    top = p.argmax(axis=1)
    terms = {
        "canonical": np.sum(gap**2, axis=1),
        "classwise": sum(explained(p[:, k], gap[:, k], 400) for k in range(n_classes)),
        "confidence": explained(p.max(axis=1), gap[np.arange(len(p)), top], 400),
    }
    options = {"n_classes": n_classes, "concentration": concentration, "n_truth_draws": 100_000}
    truths = make_distorted(1, distortion=kind, **options).true_squared_errors
    for notion, values in terms.items():
        error = np.hypot(values.std() / np.sqrt(len(p)), truths[notion].standard_error)
        # 12 comparisons: false alarms 8e-5; and the jump of q at max p = ½ within its bins.
        assert abs(values.mean() - truths[notion].value) < SIGMAS * error + 1e-4
        assert 0 < truths[notion].standard_error < 1e-2 * truths["canonical"].value
    assert truths["confidence"].value <= truths["canonical"].value
    assert truths["classwise"].value <= truths["canonical"].value + 1e-4


@pytest.mark.parametrize("kind", DISTORTED)
def test_labels_are_drawn_from_the_distorted_probabilities(kind):
    data = make_distorted(40_000, distortion=kind, n_truth_draws=100_000, random_state=3)
    q = distorted(data.proba, kind)
    outcome = np.eye(5)[data.labels]
    for k in range(5):
        for feature in (q[:, k], data.proba[:, k]):
            cells = (np.argsort(np.argsort(feature)) * 20) // len(feature)
            deviation = np.bincount(cells, outcome[:, k] - q[:, k])
            variance = np.bincount(cells, q[:, k] * (1 - q[:, k]))
            used = variance > 5  # smaller cells are not normal
            statistic = np.sum(deviation[used] ** 2 / variance[used])
            assert used.sum() >= 5
            # 20 tests at 1e-6: a false alarm has probability 2e-5.
            assert chi2.sf(statistic, used.sum()) > 1e-6
            # They are not drawn from p.
            calibrated = np.bincount(cells, outcome[:, k] - data.proba[:, k])
            assert chi2.sf(np.sum(calibrated[used] ** 2 / variance[used]), used.sum()) < 1e-6
    # One-step terms at the distortion have the truth as mean.
    terms = one_step_terms(q - data.proba, outcome - data.proba)
    truth = data.true_squared_errors["canonical"]
    error = np.hypot(terms.std() / np.sqrt(len(terms)), truth.standard_error)
    assert abs(terms.mean() - truth.value) < SIGMAS * error  # false alarms 1.4e-5
    assert truth.value > 25 * error
