"""Levels of public tests and coverage of intervals on calibrated data: doc/levels.rst.

``python tests/battery/battery.py 200 > doc/levels.rst`` writes it, from 200 data sets a cell. A
test is in the table by being public; what a test refuses or warns of is counted apart.
"""

from __future__ import annotations

import sys
import warnings
from functools import partial

import numpy as np
from scipy.stats import binom

from skcal import hypothesis_tests, metrics

SIZES = (100, 300, 1000)
CLASSICAL = ("cox_test", "hosmer_lemeshow_test", "spiegelhalter_test")
NO_TEST = {"adjust_pvalues": "takes p-values", "consistency_test": "promises no level"}
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


def draw_labels(rng, truth):
    """One label a row."""
    if truth.ndim == 1:
        return (rng.uniform(size=len(truth)) < truth).astype(int)
    below = truth.cumsum(axis=1) < rng.uniform(size=(len(truth), 1))
    return np.minimum(below.sum(axis=1), truth.shape[1] - 1)


def flattened(proba):
    """A second calibrated classifier, that knows nothing but the mean."""
    if proba.ndim == 1:  # the mean of the model: that of the sample would depend on the labels
        return np.full_like(proba, 0.5 if proba.mean() > 0.2 else 0.01)
    return np.full_like(proba, 1 / proba.shape[1])


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
        if name not in NO_TEST:
            function = getattr(hypothesis_tests, name)
            for options in options_of(function):
                form = next((v for k, v in options.items() if k != "n_resamples"), "")
                found[f"{name} {form}".strip()] = function, options
    return found


def run(function, options, y, proba, seed):
    """The result of a test on its most demanding notion."""
    binary = proba.ndim == 1
    scalar = function.__name__ in CLASSICAL or _of_scalars(options.get("statistic", ""))
    notion = "binary" if binary else "confidence" if scalar else "canonical"
    columns = [0, 1] if binary else range(proba.shape[1])
    options = {"notion": notion, "labels": columns, **options}
    if "random_state" in getattr(function, "_skl_parameter_constraints", {}):
        options["random_state"] = seed
    if function is hypothesis_tests.bias_curve:
        return function(y, proba, _confidence(proba), **options)
    if function is hypothesis_tests.segment_test:
        return function(y, proba, {"confidence": _confidence(proba)}, **options)
    if function is hypothesis_tests.compare_calibration:
        return function(y, proba, flattened(proba), **options)
    return function(y, proba, **options)


def _confidence(proba):
    return proba if proba.ndim == 1 else proba.max(axis=1)


def _of_scalars(statistic):
    return any(word in statistic for word in ("smirnov", "maximum_mean", "smooth", "density"))


def pvalue(function, options, y, proba, seed):
    """The p-value, or NaN of a test that refuses or warns."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        try:
            return run(function, options, y, proba, seed).pvalue
        except (ValueError, UserWarning):
            return np.nan


def intervals() -> dict:
    """Name → function(y, proba, seed) that tells whether an interval covers the truth, 0."""
    error = partial(metrics.expected_calibration_error, norm=2, debias=True, root=False)

    def bootstrap(y, proba, seed, *, metric, notion):
        binary = proba.ndim == 1
        found = metrics.bootstrap_interval(
            metric,
            y,
            proba,
            method="percentile",
            n_resamples=199,
            random_state=seed,
            notion="binary" if binary else notion,
            labels=[0, 1] if binary else range(proba.shape[1]),
        )
        return found.low <= 0 <= found.high

    def of_test(y, proba, seed, *, function, truth=0, **options):
        low, high = run(function, options, y, proba, seed).confidence_interval()
        return low <= truth <= high

    compare, skce = hypothesis_tests.compare_calibration, hypothesis_tests.skce_test
    cox = partial(of_test, function=hypothesis_tests.cox_test)
    return {
        "debiased squared error, class-wise": partial(bootstrap, metric=error, notion="classwise"),
        "debiased squared error, confidence": partial(bootstrap, metric=error, notion="confidence"),
        "compare_calibration projection": partial(of_test, function=compare),
        "compare_calibration skce": partial(of_test, function=compare, method="skce"),
        "skce_test block": partial(of_test, function=skce, method="block"),
        "spiegelhalter_test": partial(of_test, function=hypothesis_tests.spiegelhalter_test),
        "cox_test intercept": partial(cox, hypothesis="intercept"),
        "cox_test slope": partial(cox, hypothesis="slope", truth=1),
    }


def covered(interval, y, proba, seed):
    """1 or 0, or NaN of an interval that is refused or warned of."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        try:
            return float(interval(y, proba, seed))
        except (ValueError, UserWarning):
            return np.nan


def sample(cell, n, seed):
    """Labels and calibrated predictions."""
    rng = np.random.default_rng([seed, n, list(CELLS).index(cell)])
    proba = CELLS[cell](rng, n)
    return draw_labels(rng, proba), proba


def rates(one, cell, n, n_sets):
    """Share of ones among what is not NaN, how many that is, for ``one(y, proba, seed)``."""
    values = np.array([one(*sample(cell, n, seed), seed) for seed in range(n_sets)])
    kept = values[~np.isnan(values)]
    return (kept.mean() if len(kept) else np.nan), len(kept)


def level(function, options, y, proba, seed):
    """Whether a test rejects at 5 %, NaN where it refuses or warns."""
    p = pvalue(function, options, y, proba, seed)
    return np.nan if np.isnan(p) else float(p <= 0.05)


def cell_text(rate, kept, n_sets, nominal):
    """A share in percent, marked where its binomial band does not hold the promise."""
    if kept < n_sets / 10:
        return "–"
    low, high = binom.ppf([0.005, 0.995], kept, nominal) / kept
    mark = "*" if (rate > high if nominal < 0.5 else rate < low) else ""
    share = f" ({100 * kept / n_sets:.0f})" if kept < n_sets else ""
    return f"{100 * rate:.0f}{mark}{share}"


def table(rows, names, nominal, n_sets):
    """A grid in reStructuredText: a row for each test, a column for each cell."""
    width = max(map(len, rows))
    columns = [max(30, len(name)) for name in names]  # three shares, each with its own share
    bar = " ".join(["=" * width, *("=" * c for c in columns)])
    heads = [*(f"{name:<{c}}" for name, c in zip(names, columns, strict=True))]
    lines = [bar, " ".join([" " * width, *heads]).rstrip(), bar]
    for row, one in rows.items():
        texts = []
        for cell in names:
            found = (rates(one, cell, n, n_sets) for n in SIZES)
            texts.append(", ".join(cell_text(*pair, n_sets, nominal) for pair in found))
        cells = (f"{text:<{c}}" for text, c in zip(texts, columns, strict=True))
        lines.append(" ".join([f"{row:<{width}}", *cells]).rstrip())
        print(lines[-1], file=sys.stderr, flush=True)
    return "\n".join([*lines, bar])


INTRODUCTION = """\
Levels and coverage
===================

Calibrated predictions, n = 100, 300 and 1,000 in this order, {n_sets} data sets a cell ({n_few} for
intervals); written by ``tests/battery/battery.py``, in which a test is by being public. In brackets
the share of data sets, in percent, on which the test neither refuses nor warns; a dash where that
is below a tenth. A star marks what is outside the 99 % binomial band of the promise: that of 5 % is
up to {high:.0f} %, that of 95 % down to {low:.0f} %. One number in 200 has a star by chance. Tests
that redraw outcomes are not in the table, since most of their levels are exact by construction; the
slow tests run all.

Rejections at 5 %, in percent
-----------------------------

``compare_calibration`` compares predictions with the mean of the model, which is calibrated too.

"""


def drawing_nothing() -> dict:
    """Tests of the page: those without resamples."""
    return {name: test for name, test in public_tests().items() if "n_resamples" not in test[1]}


def page(n_sets, n_few):
    """The whole page."""
    high, low = binom.ppf(0.995, n_sets, 0.05) / n_sets, binom.ppf(0.005, n_few, 0.95) / n_few
    text = INTRODUCTION.format(n_sets=n_sets, n_few=n_few, high=100 * high, low=100 * low)
    rows = {name: partial(level, *test) for name, test in drawing_nothing().items()}
    text += table(rows, list(CELLS), 0.05, n_sets) + "\n\n"
    text += "Coverage of 95 % intervals, in percent\n--------------------------------------\n\n"
    text += "Percentile intervals of the bootstrap; the others are normal.\n\n"
    rows = {name: partial(covered, interval) for name, interval in intervals().items()}
    return text + table(rows, list(CELLS), 0.95, n_few)


if __name__ == "__main__":
    sets = int(sys.argv[1])
    print(page(sets, max(sets // 4, 2)))
