"""The calibration error and its limits against known truths, beside other estimators (slow).

Each cell is a law of predictions and a calibration curve, so that the true error is known. "plain"
are independent samples, other kinds have weights that differ, groups of samples that depend on each
other, five votes for each sample, or several classes or labels. For each data set the study stores
the limits, and with ``--accuracy`` the estimate and other estimators. The lower limit, which is the
dearest, is stored for the first ``--low`` data sets of cells that are not calibrated. There the
test of the verdict, without which it is 0, runs where it is above the truth. Where predictions are
calibrated that test alone decides, and its level is exact. Run

    python tests/studies/calibration_error_study.py --out rows.csv --seeds 200 --low 200
    python tests/studies/calibration_error_study.py --out rows.csv --tables doc/evidence
"""

import warnings
from collections import defaultdict

import numpy as np
from laws import between, inner, labels_of, nearly_certain, normal_logits, odds, same
from scipy.stats import norm
from study_tools import append, command_line, kept, rows_of, write_table

from skcal.hypothesis_tests import calibration_test
from skcal.metrics import expected_calibration_error, smooth_calibration_error
from skcal.metrics.error_limits import ErrorLimits
from skcal.metrics.gap_sums import largest_signed_sums
from skcal.sample import read_sample

NOTIONS = ("classwise", "top-label", "multi-label")
KINDS = ("plain", "weights", "groups", "votes", *NOTIONS)
LIKE_OTHERS = ("calibrated, uniform", "slope 0.8", "nearly certain, 0.06 too high", "2 %, x 1.5")
SHARE, N_CLASSES = 0.3, 5  # of classes that are drawn uniformly, in place of by the predictions


def levels(k):
    return lambda rng, n: rng.integers(0, k + 1, n) / k


def with_spike(rng, n):
    return np.where(rng.random(n) < 0.05, rng.uniform(0.88, 0.9, n), rng.random(n))


def sine(periods, size):
    return lambda p: np.clip(p + size * np.sin(2 * np.pi * periods * p), 0, 1)


def lobes(n_lobes, size):
    """Too low and too high in turn."""
    return lambda p: np.clip(p + size * np.where(np.floor(p * n_lobes) % 2 == 0, 1, -1), 0, 1)


# Cells: predictions and the probability of the event. The first of the miscalibrated ones cross the
# diagonal at most three times, so that the upper limit holds for them.
CELLS = {
    "calibrated, uniform": (inner, same),
    "calibrated, 2 %": (normal_logits(-4.2, 1.1), same),
    "calibrated, nearly certain": (nearly_certain, same),
    "calibrated, multiples of 0.05": (levels(20), same),
    "calibrated, 0.5 %": (normal_logits(-5.6, 0.8), same),
    "shift of 0.15": (inner, odds(1, 0.15)),
    "slope 0.8": (inner, odds(0.8)),
    "2 %, x 1.5": (normal_logits(-4.2, 1.1), lambda p: np.minimum(1.5 * p, 1)),
    "nearly certain, 0.06 too high": (nearly_certain, lambda p: np.where(p > 0.97, p - 0.06, p)),
    "spike": (with_spike, lambda p: np.where((p > 0.88) & (p < 0.9), 0.5, p)),
    "plateau from 0.3 to 0.7": (inner, lambda p: np.where((p > 0.3) & (p < 0.7), 0.5, p)),
    "jump at 0.5": (inner, lambda p: np.where(p > 0.5, p - 0.1, p)),
    "sevenths, shrunk": (levels(6), lambda p: 0.5 + 0.75 * (p - 0.5)),
    "three crossings, sine": (inner, sine(2, 0.2)),
    "three crossings, jumps": (inner, lobes(4, 0.15)),
    "three crossings, sd 2": (normal_logits(0, 2), sine(2, 0.15)),
    "three crossings, unequal": (
        inner,
        lambda p: np.clip(p + 0.2 * np.where((p < 0.1) | ((p > 0.5) & (p < 0.8)), 1, -1), 0, 1),
    ),
    "three crossings, rounded": (levels(20), sine(2, 0.15)),
    "five crossings": (inner, sine(3, 0.1)),
    "nine crossings": (inner, sine(5, 0.12)),
    "19 crossings": (between(0.1, 0.9), lobes(20, 0.1)),
}
CROSSINGS = {"five crossings": 5, "nine crossings": 9, "19 crossings": 19}  # of others at most 3


def truth_of(cell, kind="plain"):
    if kind in NOTIONS:
        p = np.random.default_rng(1).dirichlet(np.full(N_CLASSES, 0.5), 1_000_000)
        p = p.max(axis=1) if kind == "top-label" else p
        return float(np.abs(SHARE * (1 / N_CLASSES - p)).mean())
    draw, curve = CELLS[cell]
    p = draw(np.random.default_rng(1), 1_000_000)
    return float(np.abs(curve(p) - p).mean())


def sample_of(cell, kind, n, seed):
    """Labels or votes, predictions, and the options that belong to the kind."""
    rng = np.random.default_rng([seed, n, KINDS.index(kind)])
    if kind in NOTIONS:
        p = rng.dirichlet(np.full(N_CLASSES, 0.5), n)
        q = (1 - SHARE) * p + SHARE / N_CLASSES
        if kind == "multi-label":
            return (rng.random(q.shape) < q).astype(int), p, {"notion": kind}
        return labels_of(q, rng), p, {"notion": kind, "labels": range(N_CLASSES)}
    draw, curve = CELLS[cell]
    p = draw(rng, n)
    q, options = curve(p), {"labels": [0, 1]}
    if kind == "votes":  # five, which depend on each other
        shares = rng.beta(np.maximum(2 * q, 1e-9), np.maximum(2 * (1 - q), 1e-9))
        votes = rng.binomial(5, shares)
        return np.column_stack([5 - votes, votes]), p, options
    if kind == "groups":  # of five, whose normal scores are correlated by 0.5
        groups = np.arange(n) // 5
        score = np.sqrt(0.5) * (rng.normal(size=n) + rng.normal(size=n)[groups])
        return (score < norm.ppf(q)).astype(int), p, {**options, "groups": groups}
    if kind == "weights":
        options["sample_weight"] = rng.lognormal(0, 0.7, n)
    return labels_of(q, rng), p, options


def fixed_limit(y, p, crossings):
    """The upper limit for a number of crossings that is known, of independent samples."""
    order = np.argsort(p, kind="stable")
    starts = np.unique(p[order], return_index=True)[1]
    largest = largest_signed_sums(np.add.reduceat((y - p)[order], starts), crossings)[-1] / len(p)
    variance = max(np.mean((y - p) ** 2), np.mean(p * (1 - p))) - largest**2
    return largest + 1.645 * np.sqrt(max(variance, 0) / len(p)) + np.log(20) / len(p)


def rows_for(cell, kind, n, seeds, n_low, accuracy):
    """Rows of a data set each."""
    truth = truth_of(cell, kind)
    for seed in seeds:
        y, p, options = sample_of(cell, kind, n, seed)
        limits = ErrorLimits(read_sample(y, p, **options))
        low, (high, crossings), others = "", limits.high(0.05), [""] * 5
        if seed < n_low and truth > 0:
            low = limits.low(0.05)
            if low > truth and calibration_test(limits.sample, n_resamples=None).pvalue > 0.05:
                low = 0.0
        if kind == "plain":
            others[3:] = fixed_limit(y, p, 3), fixed_limit(y, p, CROSSINGS.get(cell, 3))
            if accuracy:
                others[0] = limits.estimate
                others[1] = smooth_calibration_error(y, p, labels=[0, 1])
                others[2] = expected_calibration_error(y, p, labels=[0, 1])
        yield [[cell, kind, n, seed, low, high, crossings, *others]]


def tables(path, folder):
    """Mean limits and misses of each cell and pooled, limits of many crossings, and accuracy."""
    by_cell = defaultdict(list)
    for cell, kind, n, _, *values in rows_of(path):
        by_cell[cell, kind, int(n)].append([float(value or "nan") for value in values])
    cells, pooled, many, accuracy = [], defaultdict(list), [], []
    for (cell, kind, n), values in by_cell.items():
        truth, rows = truth_of(cell, kind), np.array(values)
        low, high, _, estimate, smooth, bins, of_three, of_known = rows.T
        low, below, above = low[np.isfinite(low)], low[np.isfinite(low)] > truth, high < truth
        share = f"{low.mean() / truth:.2f}" if len(low) else "–"
        missed = f"{below.sum()} of {len(low)}" if len(low) else "–"
        row = [cell, kind, n, f"{truth:.4f}", share, missed]
        cells.append([*row, f"{high.mean():.4f}", f"{above.sum()} of {len(rows)}"])
        if cell not in CROSSINGS:
            pooled[kind, n].append([below.sum(), len(low), above.sum(), len(rows)])
        elif kind == "plain":
            upper = (high, of_three, of_known)
            fixed = (f"{one.mean():.4f} ({100 * np.mean(one < truth):.0f} %)" for one in upper)
            many.append([cell, n, f"{truth:.4f}", *fixed])
        known = np.isfinite(estimate)
        if known.any():
            errors = (np.abs(one[known] - truth).mean() for one in (estimate, smooth, bins))
            figures = [f"{1000 * x:.1f}" for x in (truth, *errors)]
            accuracy.append([cell, n, *figures, known.sum()])
    header = ["cell", "kind", "n", "truth", "mean lower / truth", "lower missed"]
    write_table(folder, "limits", [*header, "mean upper", "upper missed"], cells)
    rows = []
    for (kind, n), values in pooled.items():
        below, n_low, above, n_sets = np.sum(values, axis=0)
        rows.append([kind, n, share_of(below, n_low), n_low, share_of(above, n_sets), n_sets])
    header = ["kind", "n", "lower missed", "data sets", "upper missed", "data sets"]
    write_table(folder, "limits_pooled", header, rows)
    header = ["cell", "n", "truth", "upper limit (missed)", "of 3 crossings", "of the true number"]
    write_table(folder, "limits_crossings", header, many)
    header = ["curve", "n", "truth", "calibration error", "smooth ECE", "15 bins", "data sets"]
    write_table(folder, "accuracy", header, accuracy)


def share_of(count, total):
    """A share in percent with its standard error."""
    share = count / max(total, 1)
    return f"{100 * share:.1f} ± {100 * np.sqrt(share * (1 - share) / max(total, 1)):.1f} %"


def main():
    parser = command_line(__doc__)
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--low", type=int, default=200)
    parser.add_argument("--sizes", type=int, nargs="+", default=[300, 1000, 10_000])
    parser.add_argument("--kinds", nargs="+", default=KINDS, choices=KINDS)
    parser.add_argument("--cells", nargs="+", help="of these curves only")
    parser.add_argument("--accuracy", action="store_true")
    options = parser.parse_args()
    if options.tables:
        tables(options.out, options.tables)
        return
    warnings.simplefilter("ignore")
    done = kept(options.out, 4)
    for n in options.sizes:
        for kind in options.kinds:
            cells = CELLS if kind == "plain" else LIKE_OTHERS
            for cell in ["mixed with uniform"] if kind in NOTIONS else options.cells or cells:
                seeds = range(options.first, options.first + options.seeds)
                seeds = [one for one in seeds if (cell, kind, str(n), str(one)) not in done]
                n_low = options.first + options.low
                found = rows_for(cell, kind, n, seeds, n_low, options.accuracy)
                append(options.out, found)


if __name__ == "__main__":
    main()
