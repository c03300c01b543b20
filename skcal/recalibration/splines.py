"""B-splines on given knots."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from sklearn.preprocessing import SplineTransformer


def b_splines(x: np.ndarray, knots: np.ndarray, degree: int) -> np.ndarray:
    """Values of the B-splines (n, k) at numbers (n, 1), beyond the knots those at the last one."""
    return _fitted(tuple(knots.tolist()), degree).transform(x)


@lru_cache(maxsize=64)
def _fitted(knots, degree):
    """A transformer; to fit one takes as long as its values at some hundreds of numbers."""
    column = np.array(knots)[:, None]
    return SplineTransformer(knots=column, degree=degree, extrapolation="constant").fit(column)
