"""Exact limits of a proportion."""

from __future__ import annotations

import numpy as np
from scipy.stats import beta


def clopper_pearson(hits, n, tail, upper_tail=None):
    """Limits of a binomial proportion, each missed with probability ``tail`` at most.

    The upper one with ``upper_tail``, where given. Of NaN hits they are 0 and 1.
    """
    upper_tail = tail if upper_tail is None else upper_tail
    with np.errstate(invalid="ignore"):
        low = beta.ppf(tail, hits, n - hits + 1)
        high = beta.ppf(1 - upper_tail, hits + 1, n - hits)
    return np.where(hits > 0, low, 0.0), np.where(hits < n, high, 1.0)
