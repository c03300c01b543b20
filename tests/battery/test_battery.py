"""Levels hold on the cells of the battery: python -m pytest -m "slow or not slow" tests/battery."""

from functools import partial

import battery
import numpy as np
import pytest
import tables
from scipy.stats import binom

TESTS = battery.public_tests()
N_SETS = 60


@pytest.mark.parametrize("cell", battery.CELLS)
def test_cells_are_calibrated_on_average(cell):
    gaps = []
    for seed in range(20):
        y, proba, *_ = battery.sample(cell, 200, seed)
        outcomes = y if proba.ndim == 1 else np.eye(proba.shape[1])[y]
        gaps.append(np.mean(outcomes - proba, axis=0))
    error = np.std(gaps, axis=0) / np.sqrt(20)
    assert (np.abs(np.mean(gaps, axis=0)) <= 5 * error + 1e-12).all()


@pytest.mark.slow
@pytest.mark.parametrize("cell", battery.CELLS)
@pytest.mark.parametrize("name", TESTS)
def test_levels_hold_where_a_test_neither_refuses_nor_warns(name, cell):
    [(rate, kept)] = battery.rates([partial(battery.level, *TESTS[name])], cell, 100, N_SETS)
    # A level of 8 % passes this number with probability below 1e-5; asymptotic tests get that.
    assert not kept or rate * kept <= binom.isf(1e-5, kept, 0.08)


@pytest.mark.slow
@pytest.mark.parametrize("cell", ["uniform", "3 classes, Dir(0.1)", "20 classes, Dir(10)"])
@pytest.mark.parametrize("name", battery.intervals())
def test_intervals_cover(name, cell):
    one = partial(battery.covered, name, truth=battery.truth(name, cell))
    [(rate, kept)] = battery.rates([one], cell, 300, N_SETS)
    assert not kept or rate * kept >= binom.ppf(1e-5, kept, 0.9)


@pytest.mark.parametrize("kind", battery.DISTORTIONS)
def test_distortions_are_not_calibrated(kind):
    name = "binned_rms_error_interval, class-wise"
    assert battery.truth(name, kind) > 1e-3


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:n_resamples")
@pytest.mark.parametrize("cell", tables.CELLS)
def test_tables_have_the_levels_and_limits_of_their_samples(cell):
    values = tables.measured(cell, 1000, N_SETS)
    rejected, *missed = values[..., :3].sum(axis=0).T  # of tables and of samples
    wrong = [*missed, rejected] if tables.error_of(cell) == 0 else missed
    assert np.max(wrong) <= binom.isf(1e-5, N_SETS, 0.08)
    # Where one of both rejects, it is either as often.
    apart = np.diff(values[..., 0], axis=1).ravel()
    n_apart = np.count_nonzero(apart)
    assert (apart > 0).sum() <= binom.isf(1e-5, n_apart, 0.5)
    assert (apart < 0).sum() <= binom.isf(1e-5, n_apart, 0.5)
    upper = values[..., 5]
    np.testing.assert_allclose(upper[:, 0], upper[:, 1], rtol=0.15)
