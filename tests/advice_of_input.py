"""Advice of public functions: a call that provokes it, what it says, and the right number.

Each case is named by the text of its message, as tests/advice.py collects it: a call, the call that
follows the advice to the letter, and what is right, by another way.
"""

import warnings

import numpy as np
import pandas as pd
from scipy.special import expit, logit, softmax

import skcal
from skcal import hypothesis_tests as tests
from skcal import metrics
from skcal.metrics import expected_calibration_error

N = 120
RNG = np.random.default_rng(0)
P = RNG.uniform(0.02, 0.98, N)
Y = (RNG.random(N) < P).astype(int)
ROWS = np.column_stack([1 - P, P])
THREE = RNG.dirichlet([2, 3, 4], N)
C = (THREE.cumsum(axis=1) > RNG.random((N, 1))).argmax(axis=1)
HOT = np.eye(3)[C]
GROUPS = np.arange(N) // 4
WEIGHT = RNG.uniform(0.5, 2, N)
NAMES, NUMBERS = np.array(["a", "b", "c"]), np.arange(3)
SAMPLE = skcal.Sample(Y, P)
ece = expected_calibration_error


def quietly(function, *args, **kwargs):
    """What a function returns, without its warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return function(*args, **kwargs)


def by_hand(y, p, n_bins=15):
    """ECE of equal bins from its definition."""
    place = np.minimum((p * n_bins).astype(int), n_bins - 1)
    return sum(abs((y - p)[place == k].sum()) for k in range(n_bins)) / len(p)


def frame(proba, names):
    return pd.DataFrame(proba, columns=list(names))


#: ECE of predictions of an event, by its definition.
BINARY = by_hand(Y, P)
#: ECE of the most probable of three classes.
MOST = by_hand((THREE.argmax(axis=1) == C).astype(int), THREE.max(axis=1))

CODED = np.where(np.arange(N) % 9 == 2, -99, P)
KEEP = CODED != -99
LABELS = {
    "If {} marks missing values, drop them: keep = {}, then pass {}[keep], and the labels of these "
    "rows.": (
        lambda: ece(Y, CODED),
        lambda: [
            ece(Y[KEEP], CODED[KEEP]),
            ece(C[(rows := np.where(KEEP[:, None], THREE, -99)).min(axis=1) > 0], rows[KEEP]),
        ],
        [by_hand(Y[KEEP], P[KEEP]), ece(C[KEEP], THREE[KEEP])],
    ),
    "Pass labels= with the class of every column.": (
        lambda: ece(np.array(["a", "b"])[C % 2], THREE),
        lambda: ece(NAMES[C], THREE, labels=NAMES),
        MOST,
    ),
    "Pass the class of each column, once.": (
        lambda: ece(NAMES[C], THREE, labels=["a", "b", "b"]),
        lambda: ece(NAMES[C], THREE, labels=["a", "b", "c"]),
        MOST,
    ),
    "Pass labels=[negative class, positive class].": (
        lambda: ece(Y, P, labels=[0, 1, 2]),
        lambda: ece(Y, P, labels=[0, 1]),
        BINARY,
    ),
    "Pass labels=[negative class, positive class]{}{}, or labels in {0, 1} or {-1, 1}.": (
        lambda: ece(NAMES[Y], P),
        lambda: [ece(NAMES[Y], P, labels=["a", "b"]), ece(2 * Y - 1, P)],
        [BINARY, BINARY],
    ),
    "pos_label={} is an array. Pass one label.": (
        lambda: ece(NAMES[Y], P, pos_label=["b", "b"]),
        lambda: ece(NAMES[Y], P, pos_label="b"),
        BINARY,
    ),
    "pos_label={} has no meaning for notion={}, which takes two columns alike. Leave it out, or "
    "use notion='binary'.": (
        lambda: ece(Y, ROWS, notion="confidence", pos_label=1),
        lambda: [ece(Y, ROWS, notion="confidence"), ece(Y, ROWS, notion="binary", pos_label=1)],
        [by_hand(((P > 0.5) == Y).astype(int), ROWS.max(axis=1)), BINARY],
    ),
    "Pass one label per sample, or shares of the {} classes; are the": (
        lambda: ece(np.ones((N, 2)), THREE),
        lambda: [ece(C, THREE), ece(HOT, THREE)],
        [MOST, MOST],
    ),
    "Pass {}.ravel().": (
        lambda: ece(C[None], THREE),
        lambda: ece(C[None].ravel(), THREE),
        MOST,
    ),
    "Pass {}.ravel() beside predictions of shape (n_samples, n_classes).": (
        lambda: ece(C[:, None, None], THREE),
        lambda: ece(C[:, None, None].ravel(), THREE),
        MOST,
    ),
    "Pass shares or counts of votes.": (
        lambda: ece(2 * HOT - 1, THREE),
        lambda: [ece(HOT, THREE), ece(3 * HOT, THREE)],
        [MOST, MOST],
    ),
    "Pass shares that sum to 1, or whole numbers of votes.": (
        lambda: ece(0.7 * HOT, THREE),
        lambda: [
            ece(0.7 * HOT / (0.7 * HOT).sum(axis=1, keepdims=True), THREE),
            ece(7 * HOT, THREE),
        ],
        [MOST, MOST],
    ),
    "Pass labels, or shares of the classes that happened.": (
        lambda: ece(THREE, THREE),
        lambda: [ece(C, THREE), ece(HOT, THREE)],
        [MOST, MOST],
    ),
    "Are the arguments swapped? Pass labels as {} and probabilities as {}.": (
        lambda: ece(THREE, HOT),
        lambda: ece(y_true=HOT, y_proba=THREE),
        MOST,
    ),
    "Pass {}[{}].": (
        lambda: ece(frame(HOT[:, ::-1], "cba"), frame(THREE, "abc")),
        lambda: ece(frame(HOT[:, ::-1], "cba")[["a", "b", "c"]], frame(THREE, "abc")),
        MOST,
    ),
    "Name the columns of both alike, or pass arrays of the same order.": (
        lambda: ece(frame(HOT, "xyz"), frame(THREE, "abc")),
        lambda: [ece(frame(HOT, "abc"), frame(THREE, "abc")), ece(HOT, THREE)],
        [MOST, MOST],
    ),
    "Pass labels= with the class of every column, in the order of {}, or name the columns by the "
    "labels.": (
        lambda: ece(NAMES[C], frame(THREE, "xyz")),
        lambda: [
            ece(NAMES[C], frame(THREE, "xyz"), labels=NAMES),
            ece(NAMES[C], frame(THREE, NAMES)),
        ],
        [MOST, MOST],
    ),
    "If so pass labels=range(1, {}), else labels=range({}).": (
        lambda: ece(np.where(C == 2, 1, C + 1), sharp(np.where(C == 2, 0, C))),
        lambda: ece(np.where(C == 2, 1, C + 1), sharp(np.where(C == 2, 0, C)), labels=range(1, 4)),
        0.1,
    ),
    "If {} marks samples to ignore, drop them: keep = numpy.asarray({}) != {}, then pass {}[keep] "
    "and {}[keep].": (
        lambda: ece(np.r_[C[:-1], -100], THREE),
        lambda: ece(C[:-1], THREE[:-1]),
        by_hand((THREE.argmax(axis=1) == C)[:-1].astype(int), THREE.max(axis=1)[:-1]),
    ),
    "Pass integers or strings, of one type.": (
        lambda: ece(np.array([0, "b", "c"], dtype=object)[C], THREE),
        lambda: [ece(np.array([0, 1, 2])[C], THREE), ece(NAMES[C], THREE)],
        [MOST, MOST],
    ),
    "Pass sklearn.preprocessing.MultiLabelBinarizer().fit_transform(…) of sets of labels.": (
        lambda: ece(C, THREE, notion="multi-label"),
        lambda: ece(HOT, THREE, notion="multi-label"),
        sum(by_hand(HOT[:, k], THREE[:, k]) for k in range(3)),
    ),
    "Pass whether each label holds.": (
        lambda: ece(2 * HOT, THREE, notion="multi-label"),
        lambda: ece(2 * HOT > 0, THREE, notion="multi-label"),
        sum(by_hand(HOT[:, k], THREE[:, k]) for k in range(3)),
    ),
    "All predictions in {} are 0 or 1, as the classes from predict are. Pass the probabilities{}; "
    "if these are, the classifier gives none in between.": (
        lambda: ece(Y, (P > 0.5).astype(float)),
        lambda: ece(Y, P),
        BINARY,
    ),
    "Pass {}.loc[{}.index], or arrays if the rows belong together.": (
        lambda: ece(pd.Series(Y), pd.Series(P)[::-1]),
        lambda: [ece(pd.Series(Y), pd.Series(P)[::-1].loc[pd.Series(Y).index]), ece(Y, P)],
        [BINARY, BINARY],
    ),
}


def sharp(most):
    """Predictions of .9 for a class."""
    return 0.85 * np.eye(3)[most] + 0.05


PREDICTIONS = {
    "Pass True or False.": (
        lambda: ece(Y, P, from_logits="no"),
        lambda: [ece(Y, P, from_logits=False), ece(Y, logit(P), from_logits=True)],
        [BINARY, BINARY],
    ),
    "Pass numbers.": (
        lambda: ece(Y, np.arange(N).astype("M8[D]")),
        lambda: ece(Y, P),
        BINARY,
    ),
    "Pass an array of numbers.": (lambda: ece(Y, "0.5"), lambda: ece(Y, P), BINARY),
    "Pass that of the positive class as a 1-D array, {}.ravel().": (
        lambda: ece(Y, P[:, None]),
        lambda: ece(Y, P[:, None].ravel()),
        BINARY,
    ),
    "Pass predict_proba output, or divide each row by its sum.": (
        lambda: ece(C, THREE / 2),
        lambda: ece(C, (THREE / 2) / (THREE / 2).sum(axis=1, keepdims=True)),
        MOST,
    ),
    "If it was rounded (float16, text), pass skcal.metrics.normalize_proba({}).": (
        lambda: ece(C, THREE * 1.004),
        lambda: ece(C, metrics.normalize_proba(THREE * 1.004)),
        MOST,
    ),
    "If these are logits, apply scipy.special.softmax(…, axis=1){}.": (
        lambda: ece(C, 2 + np.log(THREE)),
        lambda: [
            ece(C, softmax(2 + np.log(THREE), axis=1)),
            ece(C, np.log(THREE), from_logits=True),
        ],
        [MOST, MOST],
    ),
    "If that is rounding, pass numpy.clip({}, 0, 1).": (
        lambda: ece(np.r_[Y, 1], np.r_[P, 1 + 1e-9]),
        lambda: ece(np.r_[Y, 1], np.clip(np.r_[P, 1 + 1e-9], 0, 1)),
        by_hand(np.r_[Y, 1], np.r_[P, 1]),
    ),
    "Pass predict_proba output; divide percentages by 100; for logits apply {}.": (
        lambda: ece(Y, np.r_[100 * P[1:], -2.5]),
        lambda: [ece(Y, 100 * P / 100), ece(Y, expit(logit(P)))],
        [BINARY, BINARY],
    ),
    "scipy.special.softmax or expit{}": (
        lambda: ece(Y, np.r_[logit(P[1:]), 3.7]),
        lambda: [ece(Y, expit(logit(P))), ece(Y, logit(P), from_logits=True)],
        [BINARY, BINARY],
    ),
    "{}scipy.special.expit({}){}.": (
        lambda: ece(Y, -np.abs(logit(P))),
        lambda: ece(Y, expit(-np.abs(logit(P)))),
        by_hand(Y, np.minimum(P, 1 - P)),
    ),
    "All logits in {} are from 0 to 1, as probabilities are. If they are probabilities, do not "
    "pass them as logits.": (
        lambda: ece(Y, P, from_logits=True),
        lambda: ece(Y, P),
        BINARY,
    ),
    "Pass weights ≥ 0.": (
        lambda: ece(Y, P, sample_weight=-WEIGHT),
        lambda: ece(Y, P, sample_weight=np.abs(-WEIGHT)),
        lambda: ece(Y, P, sample_weight=3 * WEIGHT),
    ),
    "Pass one weight per sample.": (
        lambda: ece(Y, P, sample_weight=np.array(["x"] * N)),
        lambda: ece(Y, P, sample_weight=np.ones(N)),
        BINARY,
    ),
    "Pass (n_samples,) probabilities of the positive class": (
        lambda: ece(Y, ROWS.reshape(N, 1, 1, 2)),
        lambda: [ece(Y, ROWS.reshape(N, 1, 1, 2)[:, 0, 0, 1]), ece(Y, ROWS)],
        [BINARY, BINARY],
    ),
    "If the classes are {}, pass {}.reshape(-1, {}), and the labels by {}. What belongs to one "
    "text "
    "or image depends on each other: name it by groups where that is an option.": (
        lambda: ece(C.reshape(30, 4), THREE.reshape(30, 4, 3)),
        lambda: ece(C.reshape(30, 4).ravel(), THREE.reshape(30, 4, 3).reshape(-1, 3)),
        MOST,
    ),
    "numpy.ravel": (
        lambda: ece(C.reshape(30, 4).tolist(), THREE.reshape(30, 4, 3).tolist()),
        lambda: ece(np.ravel(C.reshape(30, 4).tolist()), THREE),
        MOST,
    ),
    "numpy.asarray({})": (
        lambda: ece(C.reshape(30, 4).tolist(), THREE.reshape(30, 4, 3).tolist()),
        lambda: ece(C, np.asarray(THREE.reshape(30, 4, 3).tolist()).reshape(-1, 3)),
        MOST,
    ),
    "numpy.moveaxis({}, 1, -1)": (
        lambda: ece(C.reshape(30, 2, 2), THREE.reshape(30, 2, 2, 3).transpose(0, 3, 1, 2)),
        lambda: ece(
            C.reshape(30, 2, 2).ravel(),
            np.moveaxis(THREE.reshape(30, 2, 2, 3).transpose(0, 3, 1, 2), 1, -1).reshape(-1, 3),
        ),
        MOST,
    ),
    "Rounding explains {}; pass probabilities, of logits the softmax.": (
        lambda: metrics.normalize_proba(np.log(THREE)),
        lambda: ece(C, metrics.normalize_proba(softmax(np.log(THREE), axis=1))),
        MOST,
    ),
}

SAMPLES = {
    "Pass the arrays that it was read from.": (
        lambda: np.asarray(SAMPLE),
        lambda: (
            ece(SAMPLE.source.y_true, SAMPLE.source.y_proba)
            if hasattr(SAMPLE.source, "y_true")
            else ece(Y, P)
        ),
        BINARY,
    ),
    "Pass a skcal.Sample of the second model, too, or arrays of both.": (
        lambda: tests.compare_calibration(SAMPLE, P**2),
        lambda: [
            tests.compare_calibration(SAMPLE, skcal.Sample(Y, P**2)).pvalue,
            tests.compare_calibration(Y, P, P**2).pvalue,
        ],
        lambda: [tests.compare_calibration(Y, ROWS, np.column_stack([1 - P**2, P**2])).pvalue] * 2,
    ),
    "Pass the same classes.": (
        lambda: tests.compare_calibration(SAMPLE, skcal.Sample(NAMES[Y], P**2, pos_label="b")),
        lambda: tests.compare_calibration(SAMPLE, skcal.Sample(Y, P**2)).pvalue,
        lambda: tests.compare_calibration(Y, P, P**2).pvalue,
    ),
    "Pass two models' predictions of the same outcomes, weights and groups.": (
        lambda: tests.compare_calibration(SAMPLE, skcal.Sample(1 - Y, P**2)),
        lambda: tests.compare_calibration(SAMPLE, skcal.Sample(Y, P**2)).pvalue,
        lambda: tests.compare_calibration(Y, P, P**2).pvalue,
    ),
    "Pass {} to skcal.Sample.": (
        lambda: ece(SAMPLE, sample_weight=WEIGHT),
        lambda: ece(skcal.Sample(Y, P, sample_weight=WEIGHT)),
        lambda: ece(Y, P, sample_weight=WEIGHT),
    ),
    "Leave it out, and pass what follows by name.": (
        lambda: tests.bias_curve(SAMPLE, P, WEIGHT, random_state=0),
        lambda: tests.bias_curve(SAMPLE, feature=WEIGHT, random_state=0).pvalue,
        lambda: tests.bias_curve(Y, P, WEIGHT, random_state=0).pvalue,
    ),
    "Pass it, beside a Sample by name: {}=….": (
        lambda: tests.bias_curve(SAMPLE, random_state=0),
        lambda: tests.bias_curve(SAMPLE, feature=WEIGHT, random_state=0).pvalue,
        lambda: tests.bias_curve(Y, P, WEIGHT, random_state=0).pvalue,
    ),
    "Pass notion={} to skcal.Sample.": (
        lambda: ece(skcal.Sample(C, THREE), notion="multi-label"),
        lambda: ece(skcal.Sample(HOT, THREE, notion="multi-label")),
        sum(by_hand(HOT[:, k], THREE[:, k]) for k in range(3)),
    ),
    "Pass predictions, or a skcal.Sample alone.": (
        lambda: ece(Y),
        lambda: [ece(Y, P), ece(SAMPLE)],
        [BINARY, BINARY],
    ),
    "notion={} conditions on a vector, where a single probability is needed. Use one of {}.": (
        lambda: metrics.binned_rms_error_interval(C, THREE, notion="canonical"),
        lambda: metrics.binned_rms_error_interval(C, THREE, notion="confidence").estimate,
        lambda: (
            metrics.binned_rms_error_interval(
                (THREE.argmax(axis=1) == C).astype(int), THREE.max(axis=1)
            ).estimate
        ),
    ),
    "{} is unknown. Use one of {}, 'top-K' or 'precision-at-K' for an integer K, or a callable.": (
        lambda: ece(C, THREE, notion="toplabel"),
        lambda: [ece(C, THREE, notion="top-1"), ece(C, THREE, notion="confidence")],
        [MOST, MOST],
    ),
    "Use one of {}, 'precision-at-K'.": None,
    "Pass notion='binary' for probabilities of the positive class, and for confidences beside y "
    "= 1 "
    "where the prediction was right. For max(p, 1 - p) pass numpy.column_stack([1 - p, p]).": (
        lambda: ece(Y, P, notion="confidence"),
        lambda: [
            ece(Y, P, notion="binary"),
            ece(((P > 0.5) == Y).astype(int), np.maximum(P, 1 - P), notion="binary"),
            ece(Y, np.column_stack([1 - P, P]), notion="confidence"),
        ],
        [BINARY, *[by_hand(((P > 0.5) == Y).astype(int), np.maximum(P, 1 - P))] * 2],
    ),
    "Pass y_true == labels[k] and y_proba[:, k] for a class k, or use 'classwise', 'confidence' "
    "or 'canonical'.": (
        lambda: metrics.validation_measures(C, THREE),
        lambda: [
            quietly(
                metrics.validation_measures, NUMBERS[2] == C, THREE[:, 2], n_resamples=19
            ).observed_expected_ratio.estimate,
            ece(C, THREE, notion="classwise", average="macro"),
            ece(C, THREE, notion="confidence"),
            ece(C, THREE, notion="canonical", strategy="unique"),
        ],
        lambda: [
            np.mean(C == 2) / THREE[:, 2].mean(),
            np.mean([by_hand(HOT[:, k], THREE[:, k]) for k in range(3)]),
            MOST,
            np.abs(HOT - THREE).sum(axis=1).mean() / 2,
        ],
    ),
    "{} returned {}. Return a list of skcal.notions.Problem.": None,
}
CASES = {**LABELS, **PREDICTIONS, **SAMPLES}
CASES = {text: case for text, case in CASES.items() if case is not None}
