"""Kernel calibration errors by double loops: mathematics.md §8."""

from itertools import combinations, product

import numpy as np

from skcal.notions import make_problems


def first_or_other(proba):
    """A lens."""
    return np.tile([0, 1, 1], (len(proba), 1))


def polynomial(X, Z):
    """A kernel of the user."""
    return (1 + X @ Z.T) ** 2


SCALAR_NOTIONS = ["binary", "confidence", "classwise", "top-label"]
NOTIONS = [*SCALAR_NOTIONS, "canonical", "top-2", first_or_other]
METHODS = [
    {"method": "unbiased"},
    {"method": "biased"},
    {"method": "linear"},
    {"method": "block", "block_size": 5},
    {"method": "block"},  # of √n
]


def draw(notion, n=46):
    """Labels and predictions over three classes, or P(positive) for "binary"; with ties."""
    rng = np.random.default_rng(2)
    labels, proba = rng.integers(0, 3, n), rng.dirichlet(np.full(3, 0.7), size=n)
    proba[5:9] = proba[4]
    return (labels // 2, proba[:, 0]) if notion == "binary" else (labels, proba)


def distance(x, z, kernel):
    """Total variation (|x - z| for numbers) or Euclidean."""
    if kernel == "rbf":
        return np.sqrt(np.sum((x - z) ** 2))
    return np.sum(np.abs(x - z)) / (2 if len(x) > 1 else 1)


def value(x, z, kernel, width):
    if callable(kernel):
        return kernel(x[None], z[None])[0, 0]
    d = distance(x, z, kernel)
    return np.exp(-d / width) if kernel == "laplacian" else np.exp(-(d**2) / (2 * width**2))


def naive_skce(
    x, residuals, kernel, width, method="unbiased", A=None, weight=None, block_size=None
):
    """mathematics.md §8, one pair at a time."""
    n = len(x)
    A = np.eye(residuals.shape[1]) if A is None else A
    weight = np.ones(n) if weight is None else weight
    if width == "median" and not callable(kernel):
        width = np.median([distance(a, b, kernel) for a, b in combinations(x, 2)])
    size = {"linear": 2, "block": block_size or max(2, int(np.sqrt(n)))}.get(method, n)
    total = mass = 0.0
    for start in range(0, n - size + 1, size):
        for i, j in product(range(start, start + size), repeat=2):
            if i != j or method == "biased":
                h = value(x[i], x[j], kernel, width) * (residuals[i] @ A @ residuals[j])
                total += weight[i] * weight[j] * h
                mass += weight[i] * weight[j]
    return total / mass


def naive_sum(y, proba, notion, one_problem, weight):
    """Sum over the problems of a notion, each times its share π of the weight."""
    total = 0.0
    for x, residuals, *_, rows in make_problems(proba, y, notion):
        share = 1.0 if isinstance(rows, slice) else weight[rows].sum() / weight.sum()
        total += share * one_problem(x, residuals, weight=weight[rows])
    return total
