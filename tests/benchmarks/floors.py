"""Print the time of each method over that of the products and exponentials it cannot do without.

    python tests/benchmarks/floors.py

Both are measured in the same run, on the same numbers of rows, columns and BLAS threads.
"""

import time

import numpy as np
from benchmark_cases import simplex
from measuring import seconds_of
from scipy.linalg import eigh
from scipy.spatial.distance import cdist

from skcal import DirichletKernelDensity, KroneckerKernelRidge, TwoStepKernelRidge
from skcal.functions.kernel_density import BANDWIDTHS
from skcal.metrics import expected_calibration_error, squared_kernel_calibration_error
from skcal.notions import make_problems
from skcal.pair_risk import pair_risk

N_TRAIN, N_EVALUATION, N_CLASSES, RANK = 6400, 1600, 10, 456
ALPHAS = np.logspace(6, -11, 18)
LABELS, PROBA = simplex(N_TRAIN + N_EVALUATION, N_CLASSES)
[PROBLEM] = make_problems(PROBA, LABELS, "canonical", np.ones(len(LABELS)))
TRAIN, EVALUATION = slice(0, N_TRAIN), slice(N_TRAIN, None)


def seconds(work, rounds=3):
    """Least time of some rounds."""
    return min(seconds_of(work, time.perf_counter, repeat=False) for _ in range(rounds))


def product(n, k, m):
    """Time of a product of (n, k) and (k, m)."""
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(n, k)), rng.normal(size=(k, m))
    return seconds(lambda: a @ b)


def exponentials(count):
    """Time of so many, in blocks that stay in the cache."""
    block = -np.random.default_rng(0).random(2**17)
    return seconds(lambda: np.exp(block)) * count / len(block)


def score_on_evaluation(functions):
    """Fit functions that share work to the training rows, and score them on the others."""
    blocks = [
        (PROBLEM.features[rows], PROBLEM.residuals[rows], PROBLEM.weight[rows])
        for rows in (TRAIN, EVALUATION)
    ]
    functions[0]._over_blocks(functions, blocks).scores(functions, 1, [(0,)])


def ridge(kind):
    """One fold of a path of alphas: factor, and the risks on the evaluation samples."""

    def work():
        score_on_evaluation([kind(alpha, max_rank=RANK, tol=0) for alpha in ALPHAS])

    return work


def ridge_floor(per_alpha):
    """Kernel, Cholesky, moments, eigenvectors, features of the evaluation samples."""
    matrix = np.eye(RANK) + 1 / RANK
    return (
        exponentials((N_TRAIN + N_EVALUATION) * RANK)
        + 2 * product(N_TRAIN, RANK, RANK) / 2  # Cholesky and moments: half a product each
        + seconds(lambda: eigh(matrix))
        + product(N_EVALUATION, RANK, RANK)
        + len(ALPHAS) * per_alpha
    )


def density():
    """One fold of the path of bandwidths."""
    score_on_evaluation([DirichletKernelDensity(bandwidth) for bandwidth in BANDWIDTHS])


def density_floor():
    """One product of logarithms for all bandwidths; exponentials and class sums for each."""
    pairs = N_TRAIN * N_EVALUATION
    sums = product(N_EVALUATION, N_TRAIN, N_CLASSES + 1)
    each = exponentials(pairs) + sums
    return product(N_EVALUATION, N_CLASSES, N_TRAIN) + len(BANDWIDTHS) * each


def skce_floor():
    """Distances, exponentials and inner products of half of the pairs."""
    block = PROBA[:1000]
    distances = seconds(lambda: cdist(block, block, "cityblock")) / len(block) ** 2
    pairs = len(PROBA) ** 2 / 2
    inner = product(len(block), len(block), N_CLASSES) / len(block) ** 2
    return pairs * (distances + inner) + exponentials(pairs)


def risk_case():
    """Form and features of the risk with its standard error."""
    rng = np.random.default_rng(0)
    phi = rng.normal(size=(N_TRAIN, RANK))
    return lambda: pair_risk(phi, PROBLEM.residuals[TRAIN], np.eye(RANK))


def main():
    """Print a line for each method."""
    triangular = product(N_EVALUATION, RANK, RANK) / 2  # of a symmetric form, half a product
    cases = {
        "Kronecker ridge, 18 alphas, a fold": (
            ridge(KroneckerKernelRidge),
            ridge_floor(triangular + product(RANK, RANK, RANK)),
        ),
        "two-step ridge, 18 alphas, a fold": (
            ridge(TwoStepKernelRidge),
            ridge_floor(product(N_EVALUATION, RANK, N_CLASSES)),
        ),
        "kernel density, 20 bandwidths, a fold": (density, density_floor()),
        "SKCE, canonical": (
            lambda: squared_kernel_calibration_error(LABELS, PROBA, notion="canonical"),
            skce_floor(),
        ),
        "pair risk with standard error": (
            risk_case(),
            # scatter, the form on both sides of it, and two symmetric forms of each row
            1.5 * product(N_TRAIN, RANK, RANK) + 2 * product(RANK, RANK, RANK),
        ),
        "ECE": (
            lambda: expected_calibration_error(LABELS, PROBA, notion="confidence"),
            seconds(lambda: np.bincount(PROBA.argmax(axis=1), PROBA.max(axis=1))),
        ),
    }
    print("| method | time, s | floor, s | ratio |")
    print("|---|---|---|---|")
    for name, (work, floor) in cases.items():
        time_of = seconds(work)
        print(f"| {name} | {time_of:.3g} | {floor:.3g} | {time_of / floor:.1f} |", flush=True)


if __name__ == "__main__":
    main()
