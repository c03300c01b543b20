"""Binned calibration errors by Python loops and exact rational numbers: mathematics.md §2, 5, 8."""

import functools
import math
from fractions import Fraction
from statistics import mean, median, pvariance, variance

import numpy as np

SCALAR, VECTOR = ["binary", "confidence", "top-label", "classwise"], ["canonical", "top-2"]
FORMS = [(n, s) for n in SCALAR for s in ("uniform", "quantile", "sweep", "unique")]
FORMS += [(n, s) for n in VECTOR for s in ("uniform", "median-variance", "unique")]
N_BINS, MIN_SAMPLES = 10, 4


def grid(rng, n_classes, dtype):
    """Multiples of 1/10, where every bin has its edge; and what they are exactly."""
    tenths = rng.multinomial(10, rng.dirichlet(np.full(n_classes, 0.6), size=40))
    exact = [[Fraction(int(k), 10) for k in row] for row in tenths]
    return (tenths / 10).astype(dtype), exact


def continuous(rng, n_classes, dtype):
    proba = rng.dirichlet(np.full(n_classes, 0.6), size=40).astype(dtype)
    return proba, [[Fraction(float(p)) for p in row] for row in proba]


@functools.cache
def draw(kind, notion, dtype=np.float64):
    """Return predictions, the same as fractions, and labels."""
    rng = np.random.default_rng(0)
    n_classes = 2 if notion == "binary" else 3
    return *kind(rng, n_classes, dtype), rng.integers(0, n_classes, 40)


def cases(row, label, notion):
    """Yield (problem, features, outcome) of one sample."""
    happened = [Fraction(label == k) for k in range(len(row))]
    order = sorted(range(len(row)), key=lambda k: -row[k])  # the first of equals first
    best = order[0]
    if notion == "binary":
        yield 0, row[1:], happened[1:]
    elif notion in ("confidence", "top-label"):
        yield 0 if notion == "confidence" else best, [row[best]], [happened[best]]
    elif notion == "classwise":
        yield from ((k, [row[k]], [happened[k]]) for k in range(len(row)))
    else:
        places = order if notion == "top-2" else range(len(row))  # the rest of 3 is one class
        yield 0, [row[k] for k in places], [happened[k] for k in places]


def equal_mass(xs, n_bins):
    """Edges at the smallest values of cumulative count ≥ j n / B; the largest starts no bin."""
    ordered = sorted(xs)
    edges = {ordered[-(-j * len(xs) // n_bins) - 1] for j in range(1, n_bins)} - {ordered[-1]}
    return [sum(edge < x for edge in edges) for x in xs]


def sweep(xs, hits):
    best = [0] * len(xs)
    for n_bins in range(2, len(xs) + 1):
        bins = equal_mass(xs, n_bins)
        frequencies = [
            mean(hit for hit, b in zip(hits, bins, strict=True) if b == k)
            for k in sorted(set(bins))
        ]
        if frequencies != sorted(frequencies):
            break
        best = bins
    return best


def median_variance(rows):
    """Paths in the tree that splits at the median of the first class with the largest variance."""
    columns = list(zip(*rows, strict=True))
    variances = [pvariance(column) for column in columns]
    column = columns[variances.index(max(variances))]
    below = [x < median(column) for x in column]
    if min(sum(below), len(rows) - sum(below)) < MIN_SAMPLES:
        return [()] * len(rows)
    paths = {
        side: iter(median_variance([r for r, b in zip(rows, below, strict=True) if b == side]))
        for side in (True, False)
    }
    return [(side, *next(paths[side])) for side in below]


def assign(rows, outcomes, strategy):
    """Return the bin of each sample, named in any way."""
    ranks = {row: k for k, row in enumerate(sorted(set(map(tuple, rows))))}
    xs = [ranks[tuple(row)] for row in rows]
    if strategy == "uniform":
        return [tuple(max(1, math.ceil(N_BINS * x)) for x in row) for row in rows]
    if strategy == "quantile":
        return equal_mass(xs, N_BINS)
    if strategy == "sweep":
        return sweep(xs, [hit for (hit,) in outcomes])
    return xs if strategy == "unique" else median_variance(rows)


@functools.cache
def bins_of(kind, notion, strategy, dtype=np.float64):
    """``naive_bins`` of what is drawn, once for all tests that ask for them."""
    _, exact, y = draw(kind, notion, dtype)
    return naive_bins(exact, y, notion, strategy)


def naive_bins(exact, y, notion, strategy):
    """Problem → list of bins, a bin being the (features, outcomes) of its samples."""
    problems = {}
    for row, label in zip(exact, y.tolist(), strict=True):
        for k, x, outcome in cases(row, label, notion):
            problems.setdefault(k, []).append((x, outcome))
    for k, samples in problems.items():
        groups = {}
        for b, sample in zip(assign(*zip(*samples, strict=True), strategy), samples, strict=True):
            groups.setdefault(b, []).append(sample)
        problems[k] = [tuple(zip(*group, strict=True)) for group in groups.values()]
    return problems


def residual_columns(rows, outcomes):
    columns = zip(zip(*rows, strict=True), zip(*outcomes, strict=True), strict=True)
    return [[o - x for x, o in zip(*column, strict=True)] for column in columns]


SIZES = {
    "total-variation": lambda gap: sum(map(abs, gap)) / 2,
    "euclidean": lambda gap: math.sqrt(sum(g * g for g in gap)),
    "sqeuclidean": lambda gap: sum(g * g for g in gap),
    "cityblock": lambda gap: sum(map(abs, gap)),
}


def gap_size(rows, outcomes, distance):
    gap = [mean(column) for column in residual_columns(rows, outcomes)]
    return abs(gap[0]) if len(gap) == 1 else SIZES[distance](gap)


def variance_of_mean(rows, outcomes, debias):
    """Summed over columns; of a single sample its square, so that nothing is left."""
    if not debias:
        return 0
    if len(rows) == 1:
        return sum(column[0] ** 2 for column in residual_columns(rows, outcomes))
    labels = debias == "labels"
    columns = zip(*outcomes, strict=True) if labels else residual_columns(rows, outcomes)
    return sum(variance(column) for column in columns) / len(rows)


def naive_powers(problems, norm, distance="euclidean", debias=False):
    """Problem → (π, Σ_b n_b/n ‖gap‖^q), or the largest ‖gap‖ for q = ∞."""
    powers = {}
    counts = {k: sum(len(rows) for rows, _ in bins) for k, bins in problems.items()}
    for k, bins in problems.items():
        sizes = [gap_size(*samples, distance) for samples in bins]
        power = max(sizes)
        if norm != math.inf:
            power = sum(
                len(samples[0]) * (size**norm - variance_of_mean(*samples, debias))
                for samples, size in zip(bins, sizes, strict=True)
            )
            power = float(power / counts[k])
        powers[k] = counts[k] / sum(counts.values()), float(power)
    return powers


def naive_sum(bins, notion, norm, distance="euclidean", debias=False):
    """Σ_k π_k times the powers, or their maximum for q = ∞."""
    powers = naive_powers(bins, norm, distance, debias).values()
    if norm == math.inf:
        return max(power for _, power in powers)
    return sum((share if notion == "top-label" else 1) * power for share, power in powers)
