"""What the studies draw: predictions, what is true of them, and labels."""

import numpy as np
from scipy.special import expit, logit


def uniform(rng, n):
    """Predictions between 0 and 1."""
    return rng.random(n)


def inner(rng, n):
    """Predictions that are not too close to 0 and 1."""
    return rng.uniform(0.002, 0.998, n)


def between(low, high):
    return lambda rng, n: rng.uniform(low, high, n)


def beta(a, b):
    return lambda rng, n: rng.beta(a, b, n)


def normal_logits(mean, deviation):
    return lambda rng, n: expit(rng.normal(mean, deviation, n))


def nearly_certain(rng, n):
    return np.clip(rng.beta(9, 0.3, n), 0.01, 1 - 1e-7)


def same(p):
    """Predictions are calibrated."""
    return p


def odds(slope=1.0, shift=0.0):
    """Log-odds are off by a factor and a shift."""
    return lambda p: expit(slope * logit(p) + shift)


def labels_of(q, rng):
    """Labels of chances of the event, or of rows of chances."""
    if q.ndim == 1:
        return (rng.random(len(q)) < q).astype(int)
    return (q.cumsum(axis=1)[:, :-1] < rng.random((len(q), 1))).sum(axis=1)
