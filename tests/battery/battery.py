"""Levels of public tests and coverage of intervals on calibrated data: doc/levels.rst.

``python tests/battery/battery.py 400 2 > doc/levels.rst`` writes it, from 400 data sets a cell by
two workers; it takes 25 minutes of one processor. With a third argument, ``weights``, it writes
the part with weights alone. A test is in the table by being public; what a test refuses or warns
of is counted apart.
"""

from __future__ import annotations

import sys
import time
import warnings
from functools import partial
from typing import NamedTuple

import numpy as np
from joblib import Parallel, delayed
from scipy.stats import binom, norm, rankdata

from skcal import hypothesis_tests, metrics
from skcal.datasets import make_distorted

SIZES = (100, 300, 1000)
LARGE, N_LARGE = 10_000, 4  # samples that tell the truth of distorted predictions
OF_SCALARS = ("cox_test", "hosmer_lemeshow_test", "kolmogorov_smirnov_test", "scan_test")
NO_TEST = {
    "adjust_pvalues": "takes p-values",
    "calibration_error_interval": "has limits: calibration_error_study.py",
    "equivalence_test": "has bounds, and no p-value",
    "equivalence_tests": "has bounds, and no p-value",
}
RESAMPLED = {"n_resamples": 99}
CLOSED = ("block", "chi2", "distribution-free", "hotelling")  # forms that draw nothing


def uniform(rng, n):
    return rng.uniform(size=n)


def rare(rng, n):
    return 0.01 * np.exp(0.5 * rng.standard_normal(n) - 0.125)


def rare_sharp(rng, n):
    return rng.beta(0.3, 29.7, n)


def near_0_and_1(rng, n):
    offset = rng.uniform(size=n) * 1e-4
    ends = np.where(rng.uniform(size=n) < 0.5, 1 - offset, offset)
    return np.where(rng.uniform(size=n) < 0.9, ends, rng.uniform(size=n))


def confident(rng, n):
    """Ten classes, 99 % accurate."""
    top, rest = rng.integers(10, size=n), rng.beta(0.3, 29.7, n)
    proba = rest[:, None] * rng.dirichlet(np.ones(9), n)
    return np.stack([np.insert(p, k, 1 - p.sum()) for p, k in zip(proba, top, strict=True)])


def dirichlet(rng, n, concentration, n_classes):
    return rng.dirichlet(np.full(n_classes, concentration), n)


#: Calibrated predictions: name, draw(rng, n).
CELLS = {
    "uniform": uniform,
    "1 % positives": rare,
    "1 % positives, sharp": rare_sharp,
    "90 % near 0 and 1": near_0_and_1,
    "3 classes, Dir(0.1)": partial(dirichlet, concentration=0.1, n_classes=3),
    "10 classes, 99 % sure": confident,
    "20 classes, Dir(10)": partial(dirichlet, concentration=10, n_classes=20),
}


#: Calibrated predictions with lognormal weights: name → (cell, whether weights rise with p).
WEIGHTED = {
    f"{cell}, {'tied' if tied else 'free'}": (cell, tied)
    for cell in ("uniform", "3 classes, Dir(0.1)")
    for tied in (False, True)
}
N_WEIGHTED = 300
SHARES = (0.6, 0.2, 0.05)  # effective sample sizes, as shares of n


def lognormal_weights(rng, proba, spread, tied):
    """Weights of a log standard deviation, free of the predictions or increasing in them."""
    normal = rng.standard_normal(len(proba))
    if tied:
        normal = norm.ppf((rankdata(_confidence(proba), "ordinal") - 0.5) / len(proba))
    return np.exp(spread * normal)


#: Distorted predictions: what the labels of ``make_distorted`` follow in place of them.
DISTORTIONS = ("class-dependent", "confused-pair", "non-monotone")


def draw_labels(rng, truth):
    """One label a row."""
    if truth.ndim == 1:
        return (rng.uniform(size=len(truth)) < truth).astype(int)
    below = truth.cumsum(axis=1) < rng.uniform(size=(len(truth), 1))
    return np.minimum(below.sum(axis=1), truth.shape[1] - 1)


class Data(NamedTuple):
    """Labels, predictions, weights, and the log standard deviation of weights tied to these."""

    y: np.ndarray
    proba: np.ndarray
    weight: np.ndarray | None = None
    tie: float = 0.0

    def flattened(self):
        """A second calibrated classifier, that knows nothing but the mean of the model."""
        if self.proba.ndim == 1:  # the mean of the sample would depend on the labels
            # Weights exp(tie Φ⁻¹(p)) of uniform p have the mean Φ(tie / √2).
            mean = norm.cdf(self.tie / np.sqrt(2)) if self.proba.mean() > 0.2 else 0.01
            return np.full_like(self.proba, mean)
        return np.full_like(self.proba, 1 / self.proba.shape[1])

    def asked(self, notion):
        """Options of a notion for classes, of single probabilities "binary"."""
        binary = self.proba.ndim == 1
        columns = [0, 1] if binary else range(self.proba.shape[1])
        notion = "binary" if binary else notion
        return {"notion": notion, "labels": columns, "sample_weight": self.weight}


def options_of(function):
    """The values of the parameter that tells forms of a test apart, as lists of options."""
    constraints = getattr(function, "_skl_parameter_constraints", {})
    forms = ("method", "statistic", "hypothesis", "strategy")
    name = next((form for form in forms if form in constraints), None)
    values = [v for c in constraints.get(name, []) for v in getattr(c, "options", [])]
    resampled = RESAMPLED if "n_resamples" in constraints else {}
    return [
        {name: value, **({} if value in CLOSED else resampled)} for value in sorted(values)
    ] or [resampled]


def public_tests() -> dict:
    """Name → (function, options) for every form of every public test."""
    found = {}
    for name in hypothesis_tests.__all__:
        function = getattr(hypothesis_tests, name)
        if name not in NO_TEST and not isinstance(function, type):  # of results
            for options in options_of(function):
                form = next((v for k, v in options.items() if k != "n_resamples"), "")
                found[f"{name} {form}".strip()] = function, options
    return found


def run(function, options, data, seed):
    """The result of a test on its most demanding notion."""
    y, proba = data.y, data.proba
    scalar = function.__name__ in OF_SCALARS or _of_scalars(options.get("statistic", ""))
    options = {**data.asked("confidence" if scalar else "canonical"), **options}
    if "random_state" in getattr(function, "_skl_parameter_constraints", {}):
        options["random_state"] = seed
    if function is hypothesis_tests.bias_curve:
        return function(y, proba, _confidence(proba), **options)
    if function is hypothesis_tests.segment_test:
        return function(y, proba, {"confidence": _confidence(proba)}, **options)
    if function is hypothesis_tests.compare_calibration:
        return function(y, proba, data.flattened(), **options)
    return function(y, proba, **options)


def _confidence(proba):
    return proba if proba.ndim == 1 else proba.max(axis=1)


def _of_scalars(statistic):
    return any(word in statistic for word in ("smirnov", "maximum_mean", "smooth", "density"))


def pvalue(function, options, data, seed):
    """The p-value, or NaN of a test that refuses or warns."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        try:
            return run(function, options, data, seed).pvalue
        except (ValueError, UserWarning):
            return np.nan


def intervals() -> dict:
    """Name → (function(data, seed) with estimate, low, high, its calibrated value)."""
    error = partial(metrics.expected_calibration_error, norm=2, debias=True, root=False)

    def bootstrap(data, seed, *, notion):
        few = 2 if len(data.y) >= LARGE else 199
        options = {"method": "percentile", "n_resamples": few, "random_state": seed}
        options |= data.asked(notion)
        return metrics.bootstrap_interval(error, data.y, data.proba, **options)

    def closed(data, seed, *, notion):
        options = data.asked(notion)
        return metrics.binned_rms_error_interval(data.y, data.proba, root=False, **options)

    def of_cox(data, seed, *, name):
        result = metrics.cox_recalibration(data.y, data.proba, **data.asked("confidence"))
        return Ends(getattr(result, name), *getattr(result, f"{name}_interval"))

    def of_test(data, seed, *, function, **options):
        result = run(function, options, data, seed)
        return Ends(result.estimate, *result.confidence_interval())

    compare, skce = hypothesis_tests.compare_calibration, hypothesis_tests.skce_test
    spiegelhalter = hypothesis_tests.spiegelhalter_test
    return {
        "bootstrap, debiased squared error, class-wise": (
            partial(bootstrap, notion="classwise"),
            0,
        ),
        "bootstrap, debiased squared error, confidence": (
            partial(bootstrap, notion="confidence"),
            0,
        ),
        "binned_rms_error_interval, class-wise": (partial(closed, notion="classwise"), 0),
        "binned_rms_error_interval, confidence": (partial(closed, notion="confidence"), 0),
        "compare_calibration projection": (partial(of_test, function=compare), 0),
        "compare_calibration skce": (partial(of_test, function=compare, method="skce"), 0),
        "skce_test block": (partial(of_test, function=skce, method="block", bandwidth=0.1), 0),
        "spiegelhalter_test": (partial(of_test, function=spiegelhalter), 0),
        "cox_recalibration intercept": (partial(of_cox, name="intercept"), 0),
        "cox_recalibration slope": (partial(of_cox, name="slope"), 1),
        "cox_recalibration in the large": (partial(of_cox, name="intercept_in_the_large"), 0),
    }


class Ends(NamedTuple):
    """An interval and what it is about."""

    estimate: float
    low: float
    high: float


def truth(name, cell):
    """The value of the population that an interval is about."""
    interval, calibrated = intervals()[name]
    if cell not in DISTORTIONS:
        return calibrated
    return np.mean([interval(sample(cell, LARGE, -1 - k), k).estimate for k in range(N_LARGE)])


def covered(name, data, seed, *, truth):
    """1 or 0, or NaN of an interval that is refused or warned of."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        try:
            found = intervals()[name][0](data, seed)
        except (ValueError, UserWarning):
            return np.nan
    return float(found.low <= truth <= found.high)


def sample(cell, n, seed):
    """Labels, predictions and weights, calibrated but for distortions; truths have seeds below 0.

    For a cell of ``WEIGHTED`` n is the effective sample size as a share of the samples.
    """
    if cell in WEIGHTED:
        plain, tied = WEIGHTED[cell]
        drawn, spread = sample(plain, N_WEIGHTED, seed), np.sqrt(-np.log(n))
        rng = np.random.default_rng([seed, int(1000 * n), tied])
        weight = lognormal_weights(rng, drawn.proba, spread, tied)
        return drawn._replace(weight=weight, tie=spread * tied)
    if cell in DISTORTIONS:
        seeds = np.random.SeedSequence([seed + N_LARGE, n, DISTORTIONS.index(cell)])
        options = {"n_classes": 4, "distortion": cell, "n_truth_draws": 0}
        drawn = make_distorted(n, random_state=int(seeds.generate_state(1)[0]), **options)
        return Data(drawn.labels, drawn.proba)
    rng = np.random.default_rng([seed, n, list(CELLS).index(cell)])
    proba = CELLS[cell](rng, n)
    return Data(draw_labels(rng, proba), proba)


def rates(rows, cell, n, n_sets):
    """Of each row the share of ones among what is not NaN, how many that is."""
    values = np.array(
        [
            [one(data, seed) for one in rows]
            for seed in range(n_sets)
            for data in [sample(cell, n, seed)]
        ]
    )
    kept = (~np.isnan(values)).sum(axis=0)
    return [(np.nansum(v) / max(k, 1), k) for v, k in zip(values.T, kept, strict=True)]


def level(function, options, data, seed):
    """Whether a test rejects at 5 %, NaN where it refuses or warns."""
    p = pvalue(function, options, data, seed)
    return np.nan if np.isnan(p) else float(p <= 0.05)


def cell_text(rate, kept, n_sets, nominal):
    """A share in percent, marked where its binomial band does not hold the promise."""
    if kept < n_sets / 10:
        return "–"
    mark = ""
    if nominal is not None:
        low, high = binom.ppf([0.005, 0.995], kept, nominal) / kept
        mark = "*" if (rate > high if nominal < 0.5 else rate < low) else ""
    share = f" ({100 * kept / n_sets:.0f})" if kept < n_sets else ""
    return f"{100 * rate:.0f}{mark}{share}"


def column(rows, cell, nominal, n_sets):
    """Texts of one cell, a row for each name of ``rows(cell)``."""
    own = rows(cell)
    sizes = SHARES if cell in WEIGHTED else SIZES
    found = [rates(list(own.values()), cell, n, n_sets) for n in sizes]
    print(cell, f"{time.process_time():.0f} s", file=sys.stderr, flush=True)
    texts = [
        [cell_text(*pair, n_sets, nominal) for pair in line] for line in zip(*found, strict=True)
    ]
    return dict(zip(own, map(", ".join, texts), strict=True))


def table(rows, names, nominal, n_sets, n_jobs=1, heading="test"):
    """A grid in reStructuredText: a row for each name, a column for each cell.

    ``rows(cell)`` maps names to functions of a sample; a nominal share of None promises nothing.
    """
    texts = Parallel(n_jobs=n_jobs)(
        delayed(column)(rows, cell, nominal, n_sets) for cell in reversed(names)
    )[::-1]
    width = max(map(len, texts[0]))
    widths = [max(map(len, [name, *own.values()])) for name, own in zip(names, texts, strict=True)]
    bar = " ".join(["=" * width, *("=" * c for c in widths)])
    heads = [
        f"{heading:<{width}}",
        *(f"{cell:<{c}}" for cell, c in zip(names, widths, strict=True)),
    ]
    lines = [bar, " ".join(heads).rstrip(), bar]
    for name in texts[0]:
        line = [f"{own[name]:<{c}}" for own, c in zip(texts, widths, strict=True)]
        lines.append(" ".join([f"{name:<{width}}", *line]).rstrip())
    return "\n".join([*lines, bar])


INTRODUCTION = """\
.. _levels:

Levels and coverage
===================

Three shares stand in each cell: for n = 100, 300 and 1,000. The tables have {n_sets} data sets
a cell ({n_few} for intervals and power). ``tests/battery/battery.py`` writes this page; the
script covers every public test. Brackets hold the share of data sets, in percent, on which the
test neither refuses nor warns. A dash stands where this share is below a tenth. A star marks a
share outside the 99 % binomial band of the promise: that of 5 % is up to {high:.1f} %, that of
95 % down to {low:.0f} %. One number in 200 has a star by chance. Tests that redraw outcomes are
not in the table, since most of their levels are exact by construction; the slow tests run all.

Rejections at 5 % of calibrated predictions, in percent
-------------------------------------------------------

``compare_calibration`` compares predictions with the mean of the model, which is calibrated too.

"""
POWER = """\
Rejections at 5 % of distorted predictions, in percent
------------------------------------------------------

Four classes, :func:`skcal.datasets.make_distorted`; ``compare_calibration`` as above. Notions are
"confidence" for tests of scalars and "canonical" for the others.

"""
COVERAGE = """\
Coverage of 95 % intervals, in percent
--------------------------------------

The predictions are calibrated or distorted; the truths of distorted ones come from {n_large}
samples. Bootstrap intervals are percentile ones.

"""


STARS = """\
Where intervals do not hold
---------------------------

- With four classes normal intervals of ``compare_calibration`` (up to n = 1,000) and of
  ``skce_test(method="block")`` with its ten blocks (n = 100) miss a true error more often than they
  should, by up to 10 or 15 points. Their standard error varies with the estimate.
- Class-wise ``binned_rms_error_interval`` up to n = 300: bins of one sample have no pairs and are
  left out, though the truth counts their error.

The stars of the first table are chance: on 1,200 other data sets the same cells have 4.6 %
(``cox_test slope``), 4.3 % (``spiegelhalter_test``), 4.2 % (``hosmer_lemeshow_test quantile``) and
5.2 % (``skce_test block``), with a standard error of 0.6 %.
"""


WEIGHTS = """\
.. _levels-with-weights:

With weights: rejections at 5 % of calibrated predictions, in percent
---------------------------------------------------------------------

The weights are lognormal. They are free of the predictions, or they increase with the predicted
probability ("tied"; with three classes: with the confidence). Three shares stand in each cell: for
weights worth 60, 20 and 5 % of the {n} samples, (Σ w)² / Σ w². The first table has
{n_sets} data sets a cell. The tests of the second one redraw outcomes or are slow; it has {n_slow}.
A row of dashes is a test that refuses weights, or several classes.

"""
WEIGHTED_COVERAGE = """\
With weights: coverage of 95 % intervals, in percent
----------------------------------------------------

The predictions are calibrated, the weights those of the tables above. The first table has {n_few}
data sets a cell, the second one {n_slow}.

"""
SLOW = ("compare_calibration", "bootstrap", "bias_curve")  # rows of fewer data sets


def drawing_nothing() -> dict:
    """Tests of the page: those without resamples."""
    return {name: test for name, test in public_tests().items() if "n_resamples" not in test[1]}


def tests_of(cell):
    """The tests of the page as functions of a sample."""
    return {name: partial(level, *test) for name, test in drawing_nothing().items()}


def intervals_of(cell):
    """The intervals as functions of a sample that tell whether they cover."""
    return {name: partial(covered, name, truth=truth(name, cell)) for name in intervals()}


def weighted_part(n_sets, n_few, n_jobs):
    """The section about weights: tables of tests and intervals, of slow ones with fewer sets."""
    quick = set(drawing_nothing())
    tests = {name: partial(level, *test) for name, test in public_tests().items()}
    slow = {name for name in tests if name not in quick or name.startswith(SLOW)}

    def made(names, rows, nominal, sets, heading="test"):
        def of_cell(cell):
            return {name: row for name, row in rows(cell).items() if name in names}

        text = table(of_cell, list(WEIGHTED), nominal, sets, n_jobs, heading) + "\n\n"
        print(text, file=sys.stderr, flush=True)
        return text

    n_slow = max(n_sets // 20, 2)
    parts = [WEIGHTS.format(n=N_WEIGHTED, n_sets=n_sets, n_slow=n_slow)]
    parts += [made(set(tests) - slow, lambda _: tests, 0.05, n_sets)]
    names = set(intervals())
    slow_intervals = {name for name in names if name.startswith(SLOW)}
    coverage = [WEIGHTED_COVERAGE.format(n_few=n_few, n_slow=n_slow)]
    coverage += [made(names - slow_intervals, intervals_of, 0.95, n_few, "interval")]
    coverage += [made(slow_intervals, intervals_of, 0.95, n_slow, "interval")]
    parts += [made(slow, lambda _: tests, 0.05, n_slow)]
    return "".join(parts + coverage)


def page(n_sets, n_few, n_jobs):
    """The whole page."""
    high, low = binom.ppf(0.995, n_sets, 0.05) / n_sets, binom.ppf(0.005, n_few, 0.95) / n_few
    text = INTRODUCTION.format(n_sets=n_sets, n_few=n_few, high=100 * high, low=100 * low)
    text += table(tests_of, list(CELLS), 0.05, n_sets, n_jobs) + "\n\n"
    print(text, file=sys.stderr, flush=True)
    text += POWER + table(tests_of, list(DISTORTIONS), None, n_few, n_jobs) + "\n\n"
    text += COVERAGE.format(n_large=f"{N_LARGE * LARGE:,}")
    text += table(intervals_of, [*CELLS, *DISTORTIONS], 0.95, n_few, n_jobs, "interval") + "\n\n"
    return text + weighted_part(n_sets, n_few, n_jobs) + STARS


if __name__ == "__main__":
    sets, jobs = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1
    part = weighted_part if sys.argv[3:] == ["weights"] else page
    print(part(sets, max(sets // 4, 2), jobs), end="")
