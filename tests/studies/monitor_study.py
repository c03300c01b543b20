"""False alarms of a monitor, and its delay after a change, beside tests that are repeated (slow).

Calibrated streams: the share of them with an alarm, at α = 5 %, within 10,000 samples or batches.
Changed streams: calibrated for 10,000 samples in batches of 100, then one of three changes; the
share of alarms before it, and the samples from it to the alarm, median and 90 %. Beside the
monitor, tests of each batch at level α, and at α divided by the 200 batches. Drifts of binary
predictions: the mean delay beside that of a CUSUM that knows the drift, with 5 % of false alarms
within 20,000 samples (which the e-detector of the run length 400,000 promises) and within 100,000;
and how far :meth:`CalibrationMonitor.plan` is from the median. Run

    python tests/studies/monitor_study.py levels
    python tests/studies/monitor_study.py delays
    python tests/studies/monitor_study.py cusum
    python tests/studies/monitor_study.py tables
    python tests/studies/monitor_study.py speed

"tables" has the delays of a monitor that is fed with a table a day, beside those of its rows.
"""

import argparse
import time
import warnings

import numpy as np
from laws import beta, labels_of, normal_logits, odds, uniform
from scipy.special import expit, logit, softmax
from scipy.stats import binom

from skcal import CalibrationTable
from skcal.hypothesis_tests import cox_test, monte_carlo_test, spiegelhalter_test
from skcal.monitoring import CalibrationMonitor

ALPHA = 0.05
RUN_LENGTH = 400_000  # within 20,000 samples, about as many false alarms as ALPHA


STREAMS = {
    "uniform": uniform,
    "1 % positives": normal_logits(-5.0, 0.9),
    "C = 2": lambda rng, n: rng.dirichlet(np.full(2, 0.5), n),
    "C = 10": lambda rng, n: rng.dirichlet(np.full(10, 0.3), n),
    "C = 100": lambda rng, n: rng.dirichlet(np.full(100, 0.05), n),
}
NOTIONS = {
    "uniform": ["binary"],
    "1 % positives": ["binary"],
    "C = 2": ["canonical"],
    "C = 10": ["confidence", "canonical", "top-label", "classwise"],
    "C = 100": ["confidence", "canonical"],
}


def sizes(n_samples, largest, rng):
    """Sizes of batches, from 1 to ``largest``, uniform on a logarithmic scale."""
    found = []
    while sum(found) < n_samples:
        found.append(int(np.exp(rng.uniform(0, np.log(largest + 1)))))
    return found


def false_alarm(stream, notion, seed, n_samples=10_000, largest=1000):
    """Whether a calibrated stream has an alarm."""
    rng = np.random.default_rng([seed, largest])
    monitor = CalibrationMonitor(notion, alpha=ALPHA)
    for size in sizes(n_samples, largest, rng):
        proba = STREAMS[stream](rng, size)
        labels = None if proba.ndim == 1 else range(proba.shape[1])
        monitor.set_params(labels=labels).update(proba, labels_of(proba, rng))
        if monitor.alarm_:
            return True
    return False


def print_levels(n_streams):
    """Print a row a stream and notion."""
    cells = [(s, notion, 10_000, 1000) for s in STREAMS for notion in NOTIONS[s]]
    cells += [("uniform", "binary", 10_000, size) for size in (1, 10_000)]
    for stream, notion, n_samples, largest in cells:
        start = time.perf_counter()
        n = n_streams if largest > 1 else n_streams // 4
        alarms = sum(false_alarm(stream, notion, s, n_samples, largest) for s in range(n))
        most = int(binom.isf(0.001, n, ALPHA))
        seconds = time.perf_counter() - start
        print(
            f"{stream:14}{notion:12}batches of 1 to {largest:<6}{alarms:4} of {n} "
            f"({alarms / n:.1%}; up to {most} if the level is {ALPHA:.0%})  {seconds:.0f} s",
            flush=True,
        )


def warmer(proba, _):
    """Predictions become overconfident by a temperature of 1.3."""
    log = logit(proba) if proba.ndim == 1 else np.log(np.maximum(proba, 1e-300))
    return expit(log / 1.3) if proba.ndim == 1 else softmax(log / 1.3, axis=1)


def lost(proba, _):
    """The last class no longer occurs."""
    truth = proba.copy()
    truth[:, -1] = 0
    return truth / np.maximum(truth.sum(axis=1, keepdims=True), 1e-300)


def doubled(proba, _):
    """Positives (the last class) are twice as frequent."""
    if proba.ndim == 1:
        return np.minimum(2 * proba, 1)
    truth = proba * np.where(np.arange(proba.shape[1]) == proba.shape[1] - 1, 2.0, 1.0)
    return truth / truth.sum(axis=1, keepdims=True)


CHANGES = [
    ("temperature 1.3", warmer, "C = 10", "confidence"),
    ("temperature 1.3", warmer, "C = 10", "canonical"),
    ("temperature 1.3", warmer, "C = 10", "classwise"),
    ("class lost", lost, "C = 10", "canonical"),
    ("class lost", lost, "C = 10", "classwise"),
    ("class lost", lost, "C = 10", "confidence"),
    ("class lost", lost, "C = 100", "canonical"),
    ("base rate doubled", doubled, "1 % positives", "binary"),
    ("temperature 1.3", warmer, "uniform", "binary"),
]


def spiegelhalter(y, proba, notion, labels):
    """p-value."""
    return spiegelhalter_test(y, proba, notion=notion, labels=labels).pvalue


def cox(y, proba, notion, labels):
    """p-value; 1 where a batch has no positives or is separated."""
    try:
        return cox_test(y, proba, notion=notion, labels=labels).pvalue
    except ValueError:
        return 1.0


def monte_carlo(y, proba, notion, labels):
    """p-value of the ECE, small enough for 200 tests."""
    options = {"labels": labels, "n_resamples": 4999, "random_state": 0}
    return monte_carlo_test(y, proba, notion=notion, **options).pvalue


def times_to_alarm(change, stream, notion, seed, tests, before=100, after=100, size=100):
    """Batch of the first alarm of each method; infinity for none."""
    rng = np.random.default_rng([seed, 7])
    probe = STREAMS[stream](rng, 1)
    labels = [0, 1] if probe.ndim == 1 else range(probe.shape[1])
    monitor = CalibrationMonitor(notion, labels, ALPHA)
    evidence = {"monitor": [], f"e-detector, {RUN_LENGTH:,}": []}
    pvalues = {name: [] for name in tests}
    for batch in range(before + after):
        proba = STREAMS[stream](rng, size)
        y = labels_of(proba if batch < before else change(proba, rng), rng)
        monitor.update(proba, y)
        found = (monitor.e_value_ * ALPHA, monitor.detector_ / RUN_LENGTH)
        for values, value in zip(evidence.values(), found, strict=True):
            values.append(value >= 1)
        for name, test in tests.items():
            pvalues[name].append(test(y, proba, notion, labels))
    alarms = dict(evidence)
    for name, values in pvalues.items():
        alarms[name] = np.array(values) <= ALPHA
        alarms[f"{name}, Bonferroni"] = np.array(values) <= ALPHA / (before + after)
    return {name: 1 + np.argmax(at) if np.any(at) else np.inf for name, at in alarms.items()}


def print_delays(n_streams, before=100, size=100):
    """Print a row a change and method."""
    for name, change, stream, notion in CHANGES:
        tests = {}
        if notion in ("binary", "confidence"):
            tests = {"Spiegelhalter": spiegelhalter, "Cox": cox}
        if stream == "uniform":
            tests["Monte Carlo"] = monte_carlo
        case = change, stream, notion
        rows = [times_to_alarm(*case, seed, tests, before) for seed in range(n_streams)]
        for method in rows[0]:
            alarms = np.array([row[method] for row in rows])
            early = alarms <= before
            delay = (alarms[~early] - before) * size
            shown = np.quantile(delay, [0.5, 0.9], method="higher") if len(delay) else [np.nan] * 2
            print(
                f"{name:18}{stream:14}{notion:12}{method:28}false {early.mean():6.1%}   "
                f"delay {shown[0]:7.0f} {shown[1]:7.0f}   missed {np.isinf(alarms).mean():.1%}",
                flush=True,
            )


DRIFTS = {
    "1 % events, odds 1.4": (STREAMS["1 % positives"], odds(1, np.log(1.4))),
    "1 % events, odds 2": (STREAMS["1 % positives"], odds(1, np.log(2))),
    "14 % events, odds 1.5": (beta(1, 6), odds(1, np.log(1.5))),
    "14 % events, odds 0.66": (beta(1, 6), odds(1, -np.log(1.5))),
    "14 % events, slope 0.7": (beta(1, 6), odds(0.7)),
    "uniform, odds 1.35": (STREAMS["uniform"], odds(1, np.log(1.35))),
    "uniform, slope 0.77": (STREAMS["uniform"], odds(1 / 1.3)),
}


def cusum(p, q, y):
    """The CUSUM of log likelihood ratios of probabilities q to p, after each sample."""
    sums = np.cumsum(np.where(y, np.log(q / p), np.log1p(-q) - np.log1p(-p)))
    return sums - np.minimum(0, np.minimum.accumulate(sums))


def cusum_thresholds(draw, drift, n_streams=200):
    """What 5 % of calibrated streams reach within 20,000 and within 100,000 samples."""
    tops = []
    for seed in range(n_streams):
        rng = np.random.default_rng([seed, 99])
        p = draw(rng, 100_000)
        path = cusum(p, drift(p), rng.uniform(size=len(p)) < p)
        tops.append((path[:20_000].max(), path.max()))
    return np.quantile(tops, 1 - ALPHA, axis=0)


def delays_after(draw, drift, thresholds, seed, before, size, most):
    """Samples from the drift to the alarm of e-value, e-detector and each CUSUM; most at most."""
    rng = np.random.default_rng([seed, 11])
    p = draw(rng, before + most)
    q = np.concatenate([p[:before], drift(p[before:])])
    y = rng.uniform(size=len(p)) < q
    monitor, found = CalibrationMonitor(labels=[0, 1], alpha=ALPHA), [0, 0]
    for start in range(0, len(p), size):
        rows = slice(start, start + size)
        monitor.update(p[rows], y[rows].astype(int))
        evidence = monitor.e_value_ * ALPHA, monitor.detector_ / RUN_LENGTH
        for k, value in enumerate(evidence):
            found[k] = found[k] or (value >= 1) * (start + size)
        if all(found):
            break
    path = cusum(p, drift(p), y)[size - 1 :: size]
    path[: before // size] = 0  # false alarms do not make a delay shorter
    ends = [(np.argmax(path >= h) + 1) * size if path.max() >= h else 0 for h in thresholds]
    alarms = np.array([*found, *ends]) - before
    return np.where(alarms == -before, most, alarms)


def print_cusum(n_streams, before, size=200, most=20_000):
    """Print a row a drift."""
    for name, (draw, drift) in DRIFTS.items():
        thresholds = cusum_thresholds(draw, drift)
        rows = np.array(
            [
                delays_after(draw, drift, thresholds, seed, before, size, most)
                for seed in range(n_streams)
            ]
        )
        early, late = (rows <= 0).sum(axis=0), rows[(rows > 0).all(axis=1)]
        means = late.mean(axis=0)
        p = draw(np.random.default_rng(0), 20_000)
        ratio = drift(p).mean() / p.mean()
        planned = ""
        if "slope" not in name:
            plan = CalibrationMonitor(alpha=ALPHA).plan(ratio, size, n_before=before, X=p)
            planned = f"   median {np.median(late[:, 0]):.0f}, planned {plan.n_batches * size}"
        print(
            f"{name:24}O/E {ratio:.2f} before {before}: e-value {means[0]:.0f}, e-detector "
            f"{means[1]:.0f}, CUSUM {means[2]:.0f} and {means[3]:.0f}; ratios "
            f"{means[1] / means[2]:.2f} {means[0] / means[2]:.2f} {means[0] / means[3]:.2f}; early "
            f"{early[0]} {early[1]}{planned}",
            flush=True,
        )


OF_TABLES = {
    "1 % events, odds 1.4": (STREAMS["1 % positives"], odds(1, np.log(1.4))),
    "14 % events, odds 1.3": (beta(1, 6), odds(1, np.log(1.3))),
    "14 % events, slope 0.7": (beta(1, 6), odds(0.7)),
    "uniform, odds 1.2": (uniform, odds(1, np.log(1.2))),
    "uniform, slope 0.8": (uniform, odds(0.8)),
    "uniform, a range": (uniform, lambda p: p + 0.4 * ((p > 0.35) & (p < 0.39))),
}


def delay_in_days(draw, drift, seed, size, before, most, by_table):
    """Samples from the drift to the alarm, at most ``most``."""
    rng, monitor = np.random.default_rng([seed, 3]), CalibrationMonitor(labels=[0, 1])
    for start in range(0, before + most, size):
        p = draw(rng, size)
        q = p if start < before else drift(p)
        y = (rng.uniform(size=size) < q).astype(int)
        monitor.update(*([CalibrationTable(labels=[0, 1]).update(y, p)] if by_table else [p, y]))
        if monitor.alarm_:
            return monitor.alarm_ - before
    return most


def print_tables(n_streams):
    """Print a row a drift: the mean delay of rows and of tables, without early alarms."""
    for days in ((200, 4_000, 20_000), (2_000, 10_000, 40_000), (20_000, 20_000, 200_000)):
        for name, case in OF_TABLES.items():
            found = np.array(
                [
                    [delay_in_days(*case, seed, *days, by_table) for by_table in (False, True)]
                    for seed in range(n_streams)
                ]
            )
            means = found[(found > 0).all(axis=1)].mean(axis=0)
            print(f"{days[0]:7,} {name:24} rows {means[0]:8.0f} tables {means[1]:8.0f}", flush=True)


def print_speed():
    """Print seconds of the processor a million samples, and the size of the state."""
    rng = np.random.default_rng(0)
    for stream, notions in NOTIONS.items():
        for notion in notions:
            n = 100_000 if stream == "C = 100" else 300_000
            proba = STREAMS[stream](rng, n)
            y = labels_of(proba, rng)
            labels = [0, 1] if proba.ndim == 1 else range(proba.shape[1])
            for size in (1000, 100_000):
                monitor = CalibrationMonitor(notion, labels)
                start = time.process_time()
                for rows in range(0, n, size):
                    monitor.update(proba[rows : rows + size], y[rows : rows + size])
                seconds = (time.process_time() - start) * 1e6 / n
                print(
                    f"{stream:14}{notion:12}batches of {size:<8}{seconds:6.1f} s a million; "
                    f"{len(monitor.to_json()) / 1000:.0f} kB",
                    flush=True,
                )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("study", choices=["levels", "delays", "cusum", "tables", "speed"])
    parser.add_argument("--n-streams", type=int)
    options = parser.parse_args()
    warnings.filterwarnings("ignore", "Too few outcomes are uncertain")  # of tests of rare events
    if options.study == "levels":
        print_levels(options.n_streams or 400)
    elif options.study == "delays":
        print_delays(options.n_streams or 100)
    elif options.study == "tables":
        print_tables(options.n_streams or 12)
    elif options.study == "cusum":
        for before in (2_000, 10_000):
            print_cusum(options.n_streams or 24, before)
    else:
        print_speed()
