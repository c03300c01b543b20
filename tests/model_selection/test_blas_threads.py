"""How many threads BLAS has during a search."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression
from threadpoolctl import threadpool_info, threadpool_limits

from skcal import CalibrationErrorSearchCV, PlugIn, Zero
from skcal.model_selection import search as module

seen: list[int] = []


class Spy(LinearRegression):
    def fit(self, X, y):
        seen.extend(blas_threads())
        return super().fit(X, y)


def blas_threads():
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]


@pytest.mark.parametrize("small", [True, False])
def test_small_searches_leave_blas_one_thread_and_large_ones_all(monkeypatch, rng, small):
    if not blas_threads():
        pytest.skip("threadpoolctl knows no BLAS here")
    monkeypatch.setattr(module, "_MANY_FEATURES", 61 if small else 60)
    P, y = rng.uniform(size=60), rng.integers(0, 2, 60)
    seen.clear()
    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        search = CalibrationErrorSearchCV([PlugIn(Spy()), Zero()], "binary", cv=3, random_state=0)
        search.fit(P, y)
        assert blas_threads() == before
    assert set(seen) == ({1} if small else set(before))
    assert np.isfinite(search.squared_error_)
