"""Samples and bounds that tests of the hypothesis tests share."""

import numpy as np

from skcal.sample import read_sample

FALSE_ALARM = 1e-4  # of a test about levels


def superclass(proba):
    """A lens: the first two classes against the others."""
    return np.tile(np.arange(proba.shape[1]) // 2 > 0, (len(proba), 1)).astype(int)


def awkward(rng, n, n_classes):
    """Skewed predictions, a third rounded to one decimal (so with ties), a sixth one-hot."""
    proba = rng.dirichlet(np.geomspace(0.1, 1, n_classes), size=n)
    rounded = np.round(proba[: n // 3], 1) + np.eye(n_classes)[0] * 0.1
    proba[: n // 3] = rounded / rounded.sum(axis=1, keepdims=True)
    proba[: n // 6] = np.eye(n_classes)[rng.integers(n_classes, size=n // 6)]
    return proba


def draw(rng, proba):
    """Labels of calibrated predictions."""
    cdf = np.cumsum(proba, axis=1) / proba.sum(axis=1, keepdims=True)
    return np.minimum((cdf <= rng.uniform(size=(len(proba), 1))).sum(axis=1), proba.shape[1] - 1)


def sample(notion="confidence", n=60, seed=0, n_classes=4):
    """Labels and awkward predictions that are not calibrated; one-dimensional for "binary"."""
    rng = np.random.default_rng(seed)
    proba = awkward(rng, n, n_classes)
    labels = draw(rng, (proba + 1 / n_classes) / 2)
    return (labels // 2, proba[:, :2].sum(axis=1)) if notion == "binary" else (labels, proba)


def polynomial(X, Z):
    """A kernel of the user."""
    return (1 + X @ Z.T) ** 2


def kernel_value(x, z, kernel, width):
    """k(x, z) of two rows."""
    if callable(kernel):
        return kernel(x[None], z[None])[0, 0]
    if kernel == "rbf":
        return np.exp(-np.sum((x - z) ** 2) / (2 * width**2))
    return np.exp(-np.sum(np.abs(x - z)) / (2 if len(x) > 1 else 1) / width)


def single_problem(y, proba, notion, weight=None):
    """The one problem of a notion."""
    [problem] = read_sample(y, proba, notion=notion, sample_weight=weight).problems()
    return problem
