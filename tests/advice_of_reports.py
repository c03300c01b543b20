"""Advice of reports, monitors, recalibrators and searches: as tests/advice_of_input.py."""

import pickle
from unittest.mock import patch

import numpy as np
from advice_of_displays import axes, error, simplex, told, told_quietly
from advice_of_input import THREE, C, N, P, Y, by_hand, quietly
from advice_of_methods import RIGHT
from advice_of_searches import (
    BINNING,
    DELTA,
    EARLY,
    LOGITS,
    RIDGE,
    SEGMENT,
    Wild,
    X,
    of_binning,
    search,
    squared,
)
from advice_of_tables import SEVERAL, TRUE
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

import skcal
from skcal import CalibrationErrorEstimator, displays
from skcal import hypothesis_tests as tests
from skcal.choice import SegmentRecalibrator
from skcal.model_selection import FunctionCorrection
from skcal.monitoring import CalibrationMonitor, merge_e_values
from skcal.monitoring.evidence import Evidence
from skcal.recalibration import BayesianCalibration, TemperatureScaling, VectorScaling

RNG = np.random.default_rng(0)
Z = RNG.normal(size=4000)
SHARP, SHARP_Y = expit(3 * Z), (RNG.random(4000) < expit(Z)).astype(int)
NEVER = np.full(3000, 0.001)
HEAVY = np.r_[1e9, np.ones(N - 1)]
OF_NAMES = np.array(["low", "mid", "top"])
TRUTH = THREE.repeat(5, axis=0)
LABELS = (TRUTH.cumsum(axis=1) > RNG.random((5 * N, 1))).argmax(axis=1)
MANY = np.arange(480) % 4


def estimate(*args, **options):
    return tests.calibration_error_interval(*args, **options).estimate


def findings(y, proba, notion):
    return skcal.report.Findings.of(skcal.Sample(y, proba, notion=notion)).error.estimate


def by_groups(by, told=told):
    with patch("skcal.report.compare._MOST_DRAWS", 59):
        return told(SHARP_Y[:480], SHARP[:480], by=by)


def of_labels(**options):
    return told(TRUE, SEVERAL, notion="multi-label", **options)


def panels(**options):
    display = told_quietly(Y, P, **options).plot(ax=axes(2), by=True)
    return [panel.count.sum() for panel in display.panels]


REPORTS = {
    "One of the outcomes never happened, so no limit says much. Collect more samples.": (
        lambda: told(np.zeros(3000, int), NEVER, labels=[0, 1]),
        lambda: error(np.r_[np.zeros(3000, int), 1], np.r_[NEVER, 0.001]),
        lambda: estimate(np.r_[np.zeros(3000, int), 1], np.r_[NEVER, 0.001]),
    ),
    "One sample has more than half of the weight, so every number here is mostly about that "
    "sample. Check {}.": (
        lambda: told(Y, P, sample_weight=HEAVY),
        lambda: [int(HEAVY.argmax()), error(Y, P, sample_weight=np.minimum(HEAVY, 1))],
        lambda: [0, estimate(Y, P)],
    ),
    "Make a Sample of 'binary' or 'confidence'.": (
        lambda: findings(C, THREE, "canonical"),
        lambda: [findings(Y, P, "binary"), findings(C, THREE, "confidence")],
        lambda: [estimate(Y, P), estimate(*RIGHT)],
    ),
    "Recalibrate on a held-out set, {}": (
        lambda: told(skcal.CalibrationTable().update(SHARP_Y, SHARP)),
        lambda: error(SHARP_Y[2000:], halved().predict_proba(SHARP[2000:])) < 0.03,
        True,
    ),
    "Shuffled labels would fit these predictions better than the labels do. The columns may be in "
    "another order than the labels, or the other class may be the positive one: check {}.": (
        lambda: told(1 - SHARP_Y, SHARP),
        lambda: error(1 - SHARP_Y, SHARP, pos_label=0),
        lambda: estimate(SHARP_Y, SHARP),
    ),
    "After one recalibration of all samples there would be no significant difference between "
    "subgroups: recalibrate all together.": (
        lambda: told(SHARP_Y[:1000], SHARP[:1000], by=HALF[:1000]),
        lambda: [
            error(SHARP_Y[2000:][HALF[2000:] == k], together()[HALF[2000:] == k]) < 0.05
            for k in (0, 1)
        ],
        [True, True],
    ),
    "Recalibration does not fix this. Run this report again on the right columns.": (
        lambda: told(OF_NAMES[LABELS], TRUTH[:, [1, 2, 0]]),
        lambda: error(OF_NAMES[LABELS], TRUTH),
        lambda: estimate(TRUTH.argmax(axis=1) == LABELS, TRUTH.max(axis=1)),
    ),
    "{} subgroups are too many for their tests: the smallest adjusted p-value is {} even with {} "
    "draws of each. Merge some.": (
        lambda: by_groups(MANY),
        lambda: [
            "too many" in " ".join((merged := by_groups(MANY // 2, told_quietly)).warnings),
            merged.subgroups[0].error.estimate,
        ],
        lambda: [False, estimate(SHARP_Y[:480][MANY < 2], SHARP[:480][MANY < 2])],
    ),
    "by=True, but the report has no subgroups. Make it with by=….": (
        panels,
        lambda: panels(by=EARLY),
        [(~EARLY).sum(), EARLY.sum()],
    ),
    "Give it another name.": (
        lambda: of_labels(by={"label": EARLY}),
        lambda: sum(
            "early" in str(part.name) for part in quietly(of_labels, by={"early": EARLY}).subgroups
        ),
        2,
    ),
    "Make a report of each model.": (
        lambda: told(TRUE, SEVERAL, notion="precision-at-1", compare=SEVERAL**2),
        lambda: [
            told_quietly(TRUE, proba, notion="precision-at-1").overall.ece.estimate
            for proba in (SEVERAL, SEVERAL**2)
        ],
        lambda: [by_hand(FIRST, p) for p in (SEVERAL.max(axis=1), SEVERAL.max(axis=1) ** 2)],
    ),
}


FIRST = TRUE[np.arange(N), SEVERAL.argmax(axis=1)]


HALF = np.arange(4000) % 2


def together():
    """Later samples, by a map of all earlier ones."""
    return halved().predict_proba(SHARP[2000:])[:, 1]


def halved():
    return skcal.Recalibrator(random_state=0).fit(SHARP[:2000], SHARP_Y[:2000])


def watch(y=C, proba=THREE, notion="confidence"):
    return CalibrationMonitor(notion).update(proba, y)


def batches(monitor):
    """How soon a drift would be found, by the sums of all samples."""
    plan = monitor.plan(1.4, 60)
    return plan.n_batches, plan.n_batches_90, plan.n_before


def old():
    """A monitor as an early version saved it."""
    with patch("skcal.monitoring.layout.Evidence", lambda *shape: Evidence(*shape[:2], False)):
        return watch(Y, P, "binary")


MONITORS = {
    "The monitors have different {}. Merge those of one model and notion.": (
        lambda: watch().merge(watch(notion="classwise")),
        lambda: batches(watch(C[:60], THREE[:60]).merge(watch(C[60:], THREE[60:]))),
        lambda: batches(watch()),
    ),
    "The monitors have different bets: one has a state of format 3. Merge their e-values with "
    "merge_e_values.": (
        lambda: old().merge(watch(Y, P, "binary")),
        lambda: merge_e_values([old().e_value_, watch(Y, P, "binary").e_value_]),
        lambda: (old().e_value_ + watch(Y, P, "binary").e_value_) / 2,
    ),
    "notion={} has a problem for each class. Plan with 'binary' or 'confidence'.": (
        lambda: watch(notion="classwise").plan(1.4, 50),
        lambda: [
            watch().plan(1.4, 50).n_batches > 0,
            watch(Y, P, "binary").plan(1.4, 50).n_batches > 0,
        ],
        [True, True],
    ),
    "monitor has seen no samples. Call update(X, y) first.": (
        lambda: displays.MonitorDisplay.from_monitor(CalibrationMonitor(), plot=False),
        lambda: displays.MonitorDisplay.from_monitor(
            CalibrationMonitor().update(P, Y), plot=False
        ).columns["n_samples"][-1],
        N,
    ),
    "superclasses and notion both say how to sum classes. Leave one of them out.": (
        lambda: simplex(C, THREE, superclasses=EACH, notion="top-2"),
        lambda: [
            arrows(superclasses=EACH),
            arrows(notion="top-2"),
        ],
        lambda: [arrows(), arrows(np.argsort(np.argsort(-THREE))[ROWS, C], -np.sort(-THREE))],
    ),
    "superclasses {}. Put each of the classes {} into one.": (
        lambda: simplex(C, THREE, superclasses={"a": [0], "b": [1], "c": [0]}),
        lambda: arrows(superclasses=EACH),
        lambda: arrows(),
    ),
}
EACH = {"a": [0], "b": [1], "c": [2]}
ROWS = np.arange(N)


def arrows(y=C, proba=THREE, **options):
    return simplex(y, proba, **options).arrows.distance.sum()


HEAT = [TemperatureScaling()]


def recalibrator(y=C, proba=THREE, maps=HEAT, **options):
    options = {"do_no_harm": False, "random_state": 0, "cv": 3, **options}
    return quietly(skcal.Recalibrator(maps, **options).fit, proba, y)


HALVES = [(ROWS[:60], ROWS[60:]), (ROWS[60:], ROWS[:60])]
FLIPPED = np.where(SHARP > 0.9, 0, SHARP_Y)
DENSITY = skcal.DirichletKernelDensity(bandwidth=0.1)


def cross_fitted():
    """Each half by the map of the other, mixed with uniform rows as one more sample."""
    proba = np.empty_like(THREE)
    for train, test in HALVES:
        fitted = TemperatureScaling().fit(THREE[train], C[train]).predict_proba(THREE[test])
        proba[test] = (60 * fitted + 1 / 3) / 61
    return proba


def by_segment(X, y):
    method = SegmentRecalibrator(skcal.Recalibrator([TemperatureScaling()], random_state=0))
    return quietly(method.fit, X, y, segments=SEGMENT).predict_proba(X, segments=SEGMENT)


def vector(**options):
    return VectorScaling(**options).fit(THREE, C).predict_proba(THREE)


def score(function, *args, **options):
    return CalibrationErrorEstimator(function, **options).fit(*args).score(*args)


OTHERS = {
    "Fit with a cv that tests every sample.": (
        lambda: recalibrator(cv=HALVES[:1]).cross_fit_predict_proba(THREE),
        lambda: recalibrator(cv=HALVES).cross_fit_predict_proba(THREE),
        cross_fitted,
    ),
    "Leave one of them out.": (
        lambda: recalibrator(Y, P, monotone=False),
        lambda: [
            recalibrator(Y, P).predict_proba(P),
            recalibrator(Y, P, maps=None, monotone=False).predict_proba(P),
        ],
        lambda: [
            (N * TemperatureScaling().fit(P, Y).predict_proba(P) + 0.5) / (N + 1),
            recalibrator(Y, P, maps=[BayesianCalibration(monotone=False)]).predict_proba(P),
        ],
    ),
    "Recalibrate one class against the rest.": (
        lambda: by_segment(THREE, C),
        lambda: by_segment(THREE[:, 2], C == 2),
        lambda: by_segment(np.column_stack([1 - THREE[:, 2], THREE[:, 2]]), (C == 2).astype(int)),
    ),
    "The cross-validated predictions, which show the calibration error, were not stored. Fit with "
    "store_out_of_fold=True; JSON never holds them.": (
        lambda: recalibrator(store_out_of_fold=False).initial_error(),
        lambda: recalibrator(store_out_of_fold=True).initial_error().estimate,
        lambda: estimate(*RIGHT),
    ),
    "The frequency of events clearly falls somewhere while the predictions rise, which no "
    "increasing map can follow. Check the labels": (
        lambda: BayesianCalibration().fit(SHARP, FLIPPED),
        lambda: (
            np.abs(
                BayesianCalibration().fit(SHARP, SHARP_Y).predict_proba(SHARP)[:, 1] - expit(Z)
            ).mean()
            < 0.02
        ),
        True,
    ),
    "The risk of {} with {}{} is not finite. The search leaves {} out. Check what this candidate "
    "predicts.": (
        lambda: search(Wild(), BINNING, loud=True),
        lambda: [
            np.isfinite(quietly(Wild().fit(X, DELTA).predict, X)).any(),
            squared(search(BINNING, BINNING)),
        ],
        lambda: [False, squared(of_binning())],
    ),
    "Wrap the function in CalibrationErrorEstimator(function, from_logits=True) for logits.": (
        lambda: DENSITY.fit(LOGITS[:, None], DELTA),
        lambda: score(DENSITY, LOGITS, Y, from_logits=True),
        lambda: score(DENSITY, P, Y),
    ),
    "notion={} is not of one class a sample. Fit a correction, or a map, to each label by "
    "itself.": (
        lambda: FunctionCorrection(CalibrationErrorEstimator(RIDGE, notion="multi-label")).fit(
            SEVERAL, TRUE
        ),
        lambda: [corrected(SEVERAL[:, k], TRUE[:, k]) for k in range(3)],
        lambda: [
            inside(p + RIDGE.fit(p[:, None], (y - p)[:, None]).residual(p[:, None])[:, 0])
            for p, y in zip(SEVERAL.T, TRUE.T, strict=True)
        ],
    ),
    "{} did not converge in {} iterations and stays the identity. Lower C or raise max_iter.": (
        lambda: vector(max_iter=12),
        lambda: [vector(max_iter=12, C=0.1), vector(max_iter=99)],
        lambda: [vector(C=0.1), vector()],
    ),
    "{} is no map of skcal and has no JSON. Store it by skops or pickle.": (
        lambda: recalibrator(Y, P, maps=[LogisticRegression()], mix=False).to_json(),
        lambda: pickle.loads(
            pickle.dumps(recalibrator(Y, P, maps=[LogisticRegression()], mix=False))
        ).predict_proba(P),
        lambda: (
            (N * LogisticRegression().fit(P[:, None], Y).predict_proba(P[:, None]) + 0.5) / (N + 1)
        ),
    ),
}


def corrected(p, y):
    method = FunctionCorrection(CalibrationErrorEstimator(RIDGE, notion="binary"))
    return inside(quietly(method.fit, p, y).predict_proba(p)[:, 1])


def inside(p):
    return np.clip(p, 0.02, 0.98)


CASES = {**REPORTS, **MONITORS, **OTHERS}
