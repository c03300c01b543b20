"""Distorted predictions: their truth against an independent Monte Carlo, and their labels."""

import numpy as np
import pytest
from scipy.stats import chi2

from skcal.datasets import make_distorted
from skcal.pair_risk import one_step_terms

# A normal mean leaves 4.5 standard errors with probability 7e-6.
SIGMAS = 4.5
KINDS = ["class-dependent", "non-monotone", "confused-pair"]
every_kind = pytest.mark.parametrize("kind", KINDS)
SLOW = pytest.mark.slow


def conditional(p, kind):
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


def explained(feature, gap, n_bins=400):
    """Terms whose mean is E(E[gap | feature])² up to O(n_bins⁻²): the gap times that of others."""
    bins = np.minimum((n_bins * np.sqrt(feature)).astype(int), n_bins - 1)
    others = np.bincount(bins)[bins] - 1
    return gap * (np.bincount(bins, gap)[bins] - gap) / np.maximum(others, 1)


@every_kind
@pytest.mark.parametrize(("n_classes", "concentration"), [(2, 1.0), (5, 0.3)])
@pytest.mark.parametrize("n", [8_000, pytest.param(100_000, marks=SLOW)])
def test_truths_are_those_of_an_independent_monte_carlo(kind, n_classes, concentration, n):
    rng = np.random.default_rng(12345)
    p = rng.gamma(concentration, size=(n, n_classes))
    p /= p.sum(axis=1, keepdims=True)
    gap = conditional(p, kind) - p
    top = p.argmax(axis=1)
    terms = {
        "canonical": np.sum(gap**2, axis=1),
        "classwise": sum(explained(p[:, k], gap[:, k]) for k in range(n_classes)),
        "confidence": explained(p.max(axis=1), gap[np.arange(len(p)), top]),
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


@every_kind
def test_labels_are_drawn_from_the_distorted_probabilities(kind):
    data = make_distorted(40_000, distortion=kind, n_truth_draws=100_000, random_state=3)
    q = conditional(data.proba, kind)
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
