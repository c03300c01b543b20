"""How many threads BLAS has during a search and the fit of a recalibrator."""

import pytest
from sklearn.linear_model import LinearRegression
from threadpoolctl import threadpool_info, threadpool_limits

from skcal import CalibrationErrorSearchCV, PlugIn, Recalibrator, TemperatureScaling, Zero
from skcal.choice import recalibrator, search

seen: list[int] = []


class Spy(LinearRegression):
    def fit(self, X, y):
        seen.extend(blas_threads())
        return super().fit(X, y)


class SpyingMap(TemperatureScaling):
    def fit(self, X, y, sample_weight=None):
        seen.extend(blas_threads())
        return super().fit(X, y, sample_weight)


def blas_threads():
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]


@pytest.mark.parametrize("small", [True, False])
@pytest.mark.parametrize(
    ("module", "limit", "estimator"),
    [
        (search, "_MANY_FEATURES", CalibrationErrorSearchCV([PlugIn(Spy()), Zero()], cv=3)),
        (recalibrator, "_MANY_PROBABILITIES", Recalibrator([SpyingMap()], cv=3)),
    ],
    ids=["search", "recalibrator"],
)
def test_small_fits_leave_blas_one_thread_and_large_ones_all(
    monkeypatch, rng, module, limit, estimator, small
):
    if not blas_threads():
        pytest.skip("threadpoolctl knows no BLAS here")
    monkeypatch.setattr(module, limit, 61 if small else 60)
    p, y = rng.uniform(size=60), rng.integers(0, 2, 60)
    seen.clear()
    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        estimator.set_params(random_state=0).fit(p, y)
        assert blas_threads() == before
    assert set(seen) == ({1} if small else set(before))
