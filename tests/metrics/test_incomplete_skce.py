"""The incomplete U-statistic of the squared kernel calibration error."""

import functools

import numpy as np
import pytest
from numpy.testing import assert_allclose

from skcal.datasets import make_dirichlet
from skcal.metrics import squared_kernel_calibration_error

OPTIONS = {"notion": "canonical", "bandwidth": 0.5}


def skce(data, **options):
    return squared_kernel_calibration_error(data.labels, data.proba, **OPTIONS | options)


incomplete = functools.partial(skce, method="incomplete", return_standard_error=True)


@functools.cache
def draw(seed, n=300, model="M2"):
    return make_dirichlet(n, n_classes=3, model=model, noise=0.3, random_state=seed)


@pytest.mark.parametrize("n", [2, 3, 51])  # of an even number, half a shift would be missing
@pytest.mark.parametrize("weighted", [False, True])
def test_all_pairs_give_the_unbiased_estimate(n, weighted):
    data = draw(0, n)
    weight = np.random.default_rng(0).uniform(0.5, 2, n) if weighted else None
    value, _ = incomplete(data, n_pairs=10**9, sample_weight=weight)
    assert_allclose(value, skce(data, sample_weight=weight), rtol=1e-10)


def test_it_is_the_mean_over_cyclic_pairs_of_shuffled_samples():
    data = draw(1, 40)
    order = np.random.RandomState(5).permutation(40)
    p, delta = data.proba[order], (np.eye(3)[data.labels] - data.proba)[order]
    h = np.exp(-0.5 * np.abs(p[:, None] - p).sum(axis=2) / 0.5) * (delta @ delta.T)
    pairs = [(i, (i + s) % 40) for s in (1, 2, 3) for i in range(40)]
    terms = np.array([h[pair] for pair in pairs])
    t = terms - terms.mean()
    sums = np.zeros(40)
    for (i, j), deviation in zip(pairs, t, strict=True):
        sums[i] += deviation
        sums[j] += deviation
    variance = max(sums @ sums - t @ t, t @ t) / 120**2
    value, standard_error = incomplete(data, n_pairs=101, random_state=5)
    assert_allclose(value, terms.mean(), rtol=1e-12)
    assert_allclose(standard_error, np.sqrt(variance), rtol=1e-10)


@pytest.mark.parametrize(
    ("model", "n_pairs"), [pytest.param("M1", 2400, marks=pytest.mark.slow), ("M2", 120)]
)
def test_the_standard_error_is_the_spread_over_data_sets(model, n_pairs):
    estimates = np.array(
        [incomplete(draw(s, 120, model), n_pairs=n_pairs, random_state=s) for s in range(200)]
    )
    ratio = np.mean(estimates[:, 1] ** 2) / np.var(estimates[:, 0], ddof=1)
    # The variance of 200 draws has a standard error of 10 %: outside with probability 3e-3; the
    # floor at independent pairs errs to the safe side.
    assert 0.7 < ratio < 1.6


def test_samples_of_weight_0_have_no_influence():
    data = draw(3, 31)
    weight = np.ones(31)
    weight[:20] = 0
    value, _ = incomplete(data, n_pairs=10**9, sample_weight=weight)
    full = squared_kernel_calibration_error(data.labels[20:], data.proba[20:], **OPTIONS)
    assert_allclose(value, full, rtol=1e-10)


@pytest.mark.parametrize("options", [{"method": "unbiased"}, {"notion": "classwise"}])
def test_other_methods_and_several_problems_have_no_standard_error(options):
    with pytest.raises(ValueError, match="return_standard_error needs method='incomplete'"):
        incomplete(draw(4, 30), **options)
