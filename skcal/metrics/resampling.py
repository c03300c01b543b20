"""Bootstrap resamples as counts of rows."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from scipy.stats import poisson

from skcal._validation import row_blocks

_FEW_ROWS = 10_000  # fewer are drawn one by one
_WORDS = 2**16
_UNDECIDED = 255
_CACHE_BYTES = 2**18


def resample_counts(rng: np.random.Generator, n: int) -> np.ndarray:
    """Return how often each of n rows is among n draws with replacement.

    Poisson counts are multinomial given their sum. So those of a mean a little below 1 are drawn,
    and what they lack in n one by one: exact, at a third of the cost of n draws.
    """
    if n < _FEW_ROWS:
        return np.bincount(rng.integers(n, size=n), minlength=n)
    mean = 1 - 5 / np.sqrt(n)
    lacking = -1
    while lacking < 0:  # once in a million
        counts = _poisson_counts(rng, n, mean)
        lacking = n - int(counts.sum(dtype=np.int64))
    np.add.at(counts, rng.integers(n, size=lacking), 1)
    return counts


def _poisson_counts(rng, n, mean):
    """Poisson variates below 255 by inversion: 16 bits decide, or more are drawn."""
    cdf, table = _poisson_table(mean)
    words = rng.integers(_WORDS, size=n, dtype=np.uint16)
    counts = np.empty(n, dtype=np.uint8)
    for rows in row_blocks(n, 8, most=_CACHE_BYTES):
        np.take(table, words[rows], out=counts[rows], mode="clip")
    undecided = np.flatnonzero(counts == _UNDECIDED)
    uniform = (words[undecided] + rng.random(len(undecided))) / _WORDS
    counts[undecided] = np.searchsorted(cdf, uniform, side="right")
    return counts


@lru_cache(maxsize=8)
def _poisson_table(mean):
    """The distribution function, and the variate of each uniform number cut to 16 bits."""
    cdf = poisson.cdf(np.arange(30), mean)
    bounds = np.arange(_WORDS + 1) / _WORDS
    low = np.searchsorted(cdf, bounds[:-1], side="right")
    high = np.searchsorted(cdf, bounds[1:], side="left")
    return cdf, np.where(low == high, low, _UNDECIDED).astype(np.uint8)
