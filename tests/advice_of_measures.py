"""Advice of metrics, tests and shifts of the population: as tests/advice_of_input.py."""

import warnings
from functools import cache

import numpy as np
import pandas as pd
from advice_of_input import HOT, THREE, WEIGHT, C, N, P, Y, by_hand, ece, quietly
from advice_of_methods import MODEL
from advice_of_searches import FEATURES
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from skcal import hypothesis_tests as tests
from skcal import metrics
from skcal.metrics import make_calibration_scorer, shifted_calibration_error
from skcal.monitoring import merge_e_values
from skcal.recalibration import adjust_prevalence

RNG = np.random.default_rng(1)


def population(n, mean):
    """A feature, predictions, labels, and the true calibration error of the predictions."""
    x = mean + RNG.normal(size=n)
    p, truth = expit(x), expit(1.5 * x + 0.5)
    return x[:, None], p, (RNG.random(n) < truth).astype(int), np.abs(truth - p).mean()


SOURCE, MOVED, FAR = (population(1000, mean) for mean in (0, 0.7, 4))


def with_fewer_events(share, n=1000):
    """A population with a smaller share of events, where cases of each class look as in SOURCE."""
    x, p, y, _ = population(40_000, 0)
    rate = y.mean()
    kept = np.r_[np.flatnonzero(y)[: int(share * n)], np.flatnonzero(1 - y)[: n - int(share * n)]]
    odds = np.log(share / (1 - share) * (1 - rate) / rate)
    truth = expit(1.5 * x[kept, 0] + 0.5 + odds)
    return x[kept], p[kept], y[kept], np.abs(truth - p[kept]).mean()


RARER = with_fewer_events(0.2)
PLACE = np.random.default_rng(2).normal(size=1000)


def shifted(target, *, X=None, target_X=None, loud=False, **options):
    """The error in a target without labels."""
    options = {"n_resamples": 20, "random_state": 0, "target_proba": target[1], **options}
    if options.setdefault("shift", "covariate") == "covariate":
        options["X"] = SOURCE[0] if X is None else X
        options["target_X"] = target[0] if target_X is None else target_X
    call = (
        shifted_calibration_error
        if loud
        else lambda *a, **k: quietly(shifted_calibration_error, *a, **k)
    )
    return call(SOURCE[2], SOURCE[1], **options)


def holds(found, target):
    """Whether limits hold the true error of the target."""
    return found.low <= target[3] <= found.high


def labelled(target):
    """With labels of the target."""
    return holds(tests.calibration_error_interval(target[2], target[1]), target)


def said(target, **options):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        shifted(target, n_resamples=199, loud=True, **options)
    return " ".join(str(warning.message) for warning in caught)


def with_place():
    return {
        "X": np.column_stack([SOURCE[0], PLACE]),
        "target_X": np.column_stack([MOVED[0], PLACE + 50]),
    }


def of_rare(y, proba, target=THREE):
    options = {"n_resamples": 20, "notion": "confidence", "random_state": 0}
    return quietly(shifted_calibration_error, y, proba, target_proba=target, **options).estimate


def merge(proba):
    return np.column_stack([proba[:, 0] + proba[:, 1], proba[:, 2]])


FEW = np.flatnonzero((C != 0) | (np.cumsum(C == 0) <= 3))
MORE = np.r_[FEW, np.flatnonzero(C == 0)[3:10]]
SHIFTS = {
    "Add labels until it has {}, or merge it with another class.": (
        lambda: of_rare(C[FEW], THREE[FEW]),
        lambda: [
            of_rare(C[MORE], THREE[MORE]) >= 0,
            of_rare(np.maximum(C[FEW] - 1, 0), merge(THREE[FEW]), merge(THREE)),
        ],
        lambda: [
            True,
            of_rare((C[FEW] == 2).astype(int), merge(THREE[FEW]), merge(np.r_[THREE, THREE])),
        ],
    ),
    "After weighting, the {} source samples count as {}, fewer than {}: few of them are like the "
    "target. Estimate and limits are rough. Collect labels in the target.": (
        lambda: shifted(FAR, loud=True),
        lambda: labelled(FAR),
        True,
    ),
    "Collect labels in the target, or leave out features that only name the place.": (
        lambda: shifted(MOVED, **with_place()),
        lambda: [
            labelled(MOVED),
            holds(shifted(MOVED, **{k: v[:, :1] for k, v in with_place().items()}), MOVED),
        ],
        True,
    ),
    "{} of the target samples are unlike any source sample (by X). Nothing is known of the error "
    "there. Collect labels for such cases.": (
        lambda: shifted(FAR, loud=True),
        lambda: labelled(FAR),
        True,
    ),
    "The weighted source does not have the target's distribution of predictions (p ≤ {}), so {} "
    "does not describe what changed. {}, or collect labels in the target.": (
        lambda: shifted(MOVED, shift="label", n_resamples=199, loud=True),
        lambda: labelled(MOVED),
        True,
    ),
    "Try the other shift": (
        lambda: shifted(MOVED, shift="label", n_resamples=199, loud=True),
        lambda: [
            holds(shifted(MOVED), MOVED),
            labelled(MOVED),
            "Try the other shift" in said(RARER, X=PLACE[:, None], target_X=PLACE[:, None]),
            holds(shifted(RARER, shift="label"), RARER),
        ],
        True,
    ),
    "Leave out its column, and divide each row by its sum.": (
        lambda: adjust_prevalence(THREE, prevalence=[0.4, 0.6, 0], new_prevalence=[0.5, 0.5, 0]),
        lambda: adjust_prevalence(
            THREE[:, :2] / THREE[:, :2].sum(axis=1, keepdims=True),
            prevalence=[0.4, 0.6],
            new_prevalence=[0.5, 0.5],
        )[:, 0],
        lambda: (THREE[:, 0] / 0.4) / (THREE[:, 0] / 0.4 + THREE[:, 1] / 0.6),
    ),
}


def width(interval):
    return interval[1] - interval[0]


@cache
def planned():
    """Predictions of a pilot study, and the samples that a validation needs."""
    pilot = expit(np.random.default_rng(0).normal(-1, 1.2, 5000))
    return pilot, quietly(metrics.validation_sample_size, pilot.mean(), y_proba=pilot)


def width_of_slope(n):
    rng = np.random.default_rng(3)
    p = rng.choice(planned()[0], n)
    found = metrics.cox_recalibration((rng.random(n) < p).astype(int), p)
    return width(found.slope_interval)


CERTAIN = np.where(P < 0.1, 0, P)
RARE_Y, RARE_P = (P[:60] > 0.95).astype(int), P[:60]
LARGE_P = np.random.default_rng(4).uniform(0.02, 0.98, 1500)
LARGE_Y = (np.random.default_rng(5).random(1500) < LARGE_P**2).astype(int)


def of_product(A, B):
    return (A @ B.T)[:, :, None, None] * np.eye(3)


def skce(class_kernel=None):
    return metrics.squared_kernel_calibration_error(
        C, THREE, notion="canonical", kernel=of_product, class_kernel=class_kernel
    )


def blocks(size):
    return tests.skce_test(Y, P, method="block", block_size=size, kernel=np_ones)


FIVE, OF_FIVE = np.array([0.1, 0.3, 0.5, 0.7, 0.9]), np.array([0, 1, 0, 1, 1])


def embedded(**options):
    options |= {"kernel": narrow, "method": "chi2"}
    return quietly(tests.mean_embedding_test, OF_FIVE, FIVE, **options).statistic


def narrow(A, B):
    return np.exp(-9 * abs(A - B.T))


def at_a_location():
    """The squared sum of weighted residuals beside its variance if calibrated."""
    k = np.exp(-9 * abs(FIVE - 0.5))
    return (k @ (OF_FIVE - FIVE)) ** 2 / (k**2 @ (FIVE * (1 - FIVE)))


def np_ones(A, B):
    return np.ones((len(A), len(B)))


def of_blocks(size):
    """The mean product of residuals within blocks, by its definition."""
    parts = (Y - P).reshape(-1, size)
    return np.mean(parts.sum(axis=1) ** 2 - (parts**2).sum(axis=1)) / (size * (size - 1))


def windows(keep):
    feature = np.where(np.arange(N) % 9 == 2, np.nan, WEIGHT)
    return tests.bias_curve(Y[keep], P[keep], feature[keep], n_resamples=99, n_points=96).observed


def segments(features, **options):
    return tests.segment_test(Y, P, features, n_resamples=99, **options)


HALF = np.where(np.arange(N) % 2, 1.0, 0)
TWICE = pd.DataFrame(np.column_stack([P > 0.5, WEIGHT > 1]), columns=["a", "a"])
SHARPER = THREE**2 / (THREE**2).sum(axis=1, keepdims=True)
OTHER = THREE[:, [1, 2, 0]]


def curve(y, p):
    return metrics.flexible_calibration_curve(y, p)


def murphy(y, p, other, **options):
    return metrics.murphy_diagram(y, p, compare=other, thresholds=[0.3], **options).difference[0]


def elementary(y, p, t):
    """The cost of decisions at a threshold."""
    return np.mean(np.where(p > t, (1 - y) * t, y * (1 - t)))


def validated(y, p):
    found = quietly(metrics.validation_measures, y, p, n_resamples=19)
    warnings.warn(" ".join(str(found).split()), stacklevel=2)
    return found


MEASURES = {
    "Collect {} samples, with about {} events": (
        lambda: warnings.warn(str(planned()[1]), stacklevel=2),
        lambda: abs(width_of_slope(planned()[1].n_samples) - 0.2) < 0.01,
        True,
    ),
    "Leave such predictions out, or replace them by what the model means.": (
        lambda: metrics.validation_sample_size(P.mean(), y_proba=CERTAIN),
        lambda: [
            quietly(metrics.validation_sample_size, 0.5, y_proba=proba).slope
            for proba in (CERTAIN[CERTAIN > 0], np.where(CERTAIN == 0, P, CERTAIN))
        ],
        lambda: [
            quietly(metrics.validation_sample_size, 0.5, y_proba=np.r_[proba, proba]).slope
            for proba in (P[P >= 0.1], P)
        ],
    ),
    "Pass 2 samples or more.": (
        lambda: metrics.decision_curve([[1, 3]], [0.6], thresholds=[0.5]),
        lambda: metrics.decision_curve([[1, 3], [2, 2]], [0.6, 0.7], thresholds=[0.5]).net_benefit,
        (3 - 1 + 2 - 2) / 8,
    ),
    "Leave class_kernel out.": (
        lambda: skce(np.eye(3)),
        skce,
        lambda: np.mean(
            ((THREE @ THREE.T) * ((HOT - THREE) @ (HOT - THREE).T))[~np.eye(N, dtype=bool)]
        ),
    ),
    "y_proba has {} samples, {} block(s) of {}; at least {} are needed. Lower block_size.": (
        lambda: blocks(80),
        lambda: blocks(40).estimate,
        lambda: of_blocks(40),
    ),
    "{} samples are too few for {} locations. Lower n_locations, or pass fewer locations.": (
        lambda: embedded(locations=FIVE),
        lambda: [embedded(locations=[0.5]), embedded(n_locations=1) > 0],
        lambda: [at_a_location(), True],
    ),
    "Leave out missing values.": (
        lambda: windows(np.full(N, True)),
        lambda: windows(np.arange(N) % 9 != 2),
        lambda: [
            Y[rows].mean()
            for rows in np.lib.stride_tricks.sliding_window_view(ORDER, round(0.1 * len(ORDER)))
        ],
    ),
    "Lower min_samples.": (
        lambda: segments({"a": P > 0.5}, min_samples=50, sample_weight=HALF),
        lambda: segments({"a": P > 0.5}, min_samples=20, sample_weight=HALF).segments[0].difference,
        lambda: np.mean((Y - P)[(P > 0.5) & (HALF > 0)]),
    ),
    "Name each once.": (
        lambda: segments(TWICE),
        lambda: segments(TWICE.set_axis(["a", "b"], axis=1)).pvalue,
        lambda: segments({"a": P > 0.5, "b": WEIGHT > 1}).pvalue,
    ),
    "They are 0 and 1. Collect more samples.": (
        lambda: curve(RARE_Y, RARE_P),
        lambda: (
            np.mean(
                ((found := curve(LARGE_Y, LARGE_P)).low <= found.prediction**2)
                & (found.prediction**2 <= found.high)
            )
            > 0.9
        ),
        True,
    ),
    "min_samples={}: the fullest bin holds {} samples. Lower min_samples or n_bins.": (
        lambda: metrics.maximum_calibration_error(Y, P, min_samples=50),
        lambda: [
            metrics.maximum_calibration_error(Y, P, min_samples=1),
            metrics.maximum_calibration_error(Y, P, min_samples=50, n_bins=1),
        ],
        lambda: [ece(Y, P, norm=np.inf), abs(np.mean(Y - P))],
    ),
    "metric returned {}; an interval needs one finite number. Wrap it: lambda y, p, **options: "
    "metric(y, p, **options).attribute.": (
        lambda: interval(metrics.cox_recalibration),
        lambda: interval(lambda y, p, **options: metrics.cox_recalibration(y, p, **options).slope),
        lambda: LogisticRegression(C=np.inf, tol=1e-10).fit(LOGIT, Y).coef_[0, 0],
    ),
    "compare is about other events than y_proba: the predicted classes differ. Compare P(positive "
    "class), with notion='binary'.": (
        lambda: murphy(C, THREE, OTHER, notion="confidence"),
        lambda: murphy(C == 2, THREE[:, 2], OTHER[:, 2], notion="binary"),
        lambda: elementary(C == 2, THREE[:, 2], 0.3) - elementary(C == 2, OTHER[:, 2], 0.3),
    ),
    "{} events in {} samples are too few for a slope, a C-statistic, and intervals of the curve "
    "and the Brier score: at least {} events and as many samples without one are needed, and those "
    "of dependent samples count less. Collect more samples.": (
        lambda: validated(RARE_Y, RARE_P),
        lambda: quietly(validated, Y, P).slope.estimate,
        lambda: LogisticRegression(C=np.inf, tol=1e-10).fit(LOGIT, Y).coef_[0, 0],
    ),
    "sample_weight weighs a mean. Leave it out of a product.": (
        lambda: merge_e_values([8.0, 0.5, 2.0], independent=True, sample_weight=[1, 2, 3]),
        lambda: merge_e_values([8.0, 0.5, 2.0], independent=True),
        8.0,
    ),
}
ORDER = np.argsort(WEIGHT, kind="stable")
ORDER = ORDER[ORDER % 9 != 2]
LOGIT = np.log(P / (1 - P))[:, None]


def interval(metric):
    return metrics.bootstrap_interval(metric, Y, P, n_resamples=19).estimate


def scorer(metric=ece, y=Y, **options):
    return make_calibration_scorer(metric, **options)(MODEL, FEATURES, y)


def of_model():
    return -by_hand(Y, MODEL.predict_proba(FEATURES)[:, 1])


def slope_of(y, p, labels=None):
    return metrics.cox_recalibration(y, p, labels=labels).slope


SCORERS = {
    "labels are those of the estimator's classes_. Leave labels= out.": (
        lambda: scorer(labels=[0, 1]),
        scorer,
        of_model,
    ),
    "Scorers ask predict_proba for probabilities. Leave from_logits= out.": (
        lambda: scorer(from_logits=True),
        scorer,
        of_model,
    ),
    "y_true holds {}, classes_ of the estimator {}: labels of another type. Score with labels as "
    "in fit.": (
        lambda: scorer(y=Y.astype(str)),
        lambda: scorer(y=Y.astype(str).astype(int)),
        of_model,
    ),
    "{} returns {}, not a number. Make the scorer of a function that returns one of its numbers.": (
        lambda: scorer(metrics.cox_recalibration),
        lambda: scorer(slope_of),
        lambda: -metrics.cox_recalibration(Y, MODEL.predict_proba(FEATURES)[:, 1]).slope,
    ),
}
CASES = {**SHIFTS, **MEASURES, **SCORERS}
