"""Timings of every promised cost: python -m pytest -m benchmark tests/benchmarks."""

import pytest
from benchmark_cases import CASES

pytest.importorskip("pytest_benchmark", reason="needs the extra benchmark")

SETTINGS = [(name, size) for name, case in CASES.items() for size in case.sizes]


@pytest.mark.benchmark
@pytest.mark.parametrize(("name", "size"), SETTINGS, ids=[f"{n}-{s}" for n, s in SETTINGS])
def test_cost(benchmark, name, size):
    benchmark.group = name
    benchmark.pedantic(CASES[name].prepare(size), rounds=3, warmup_rounds=1)
