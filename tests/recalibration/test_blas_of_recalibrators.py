"""How many threads BLAS has during the fit of a recalibrator."""

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from skcal import Recalibrator, TemperatureScaling
from skcal.recalibration import recalibrator as module

seen: list[int] = []


class Spy(TemperatureScaling):
    def fit(self, X, y, sample_weight=None):
        seen.extend(blas_threads())
        return super().fit(X, y, sample_weight)


def blas_threads():
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]


@pytest.mark.parametrize("small", [True, False])
def test_few_probabilities_leave_blas_one_thread_and_many_all(monkeypatch, rng, small):
    if not blas_threads():
        pytest.skip("threadpoolctl knows no BLAS here")
    monkeypatch.setattr(module, "_MANY_PROBABILITIES", 61 if small else 60)
    p, y = rng.uniform(size=60), rng.integers(0, 2, 60)
    seen.clear()
    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        Recalibrator([Spy()], cv=3, random_state=0).fit(p, y)
        assert blas_threads() == before
    assert set(seen) == ({1} if small else set(before))
