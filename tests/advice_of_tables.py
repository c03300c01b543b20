"""Advice of tables, samples, labels and weights: as tests/advice_of_input.py."""

from unittest.mock import patch

import numpy as np
from advice_of_displays import told as told_of
from advice_of_input import GROUPS, NAMES, THREE, WEIGHT, C, N, P, Y, by_hand, ece, frame, quietly
from advice_of_methods import RIGHT
from scipy.special import expit, logit

import skcal
from skcal import CalibrationTable, Sample, metrics
from skcal.metrics import calibration_bins, squared_kernel_calibration_error
from skcal.monitoring import CalibrationMonitor
from skcal.recalibration import PlattScaling, TemperatureScaling
from skcal.table import cells

BINARY, OF_CLASSES = by_hand(Y, P), ece(C, THREE, notion="classwise")


def count(y=Y, p=P, table=None, **options):
    """A table of two halves, and the error that it tells."""
    table = CalibrationTable() if table is None else table
    for rows in (slice(0, 60), slice(60, N)):
        part = {k: v[rows] if isinstance(v, np.ndarray) else v for k, v in options.items()}
        table.update(y[rows], p[rows], **part)
    return table


def told(*args, **options):
    return ece(count(*args, **options))


def with_small(name, most, call):
    with patch(f"skcal.table.{name}", most):
        return call()


def of_frame(change=lambda table: table):
    return ece(CalibrationTable.from_frame(change(count().to_frame())))


def of_classes_apart():
    return with_small(
        "sums._MOST_BYTES", 15_000, lambda: sum(told(k == C, THREE[:, k]) for k in range(3))
    )


def reported(table, **options):
    return quietly(
        skcal.calibration_report, table, n_resamples=19, random_state=0, **options
    ).overall.ece.estimate


def merged(proba, *others):
    """What a table tells of predictions whose rows have been counted in two calls."""
    table = CalibrationTable("classwise", labels=NAMES)
    for part, rows in zip((proba, *others), (slice(0, 60), slice(60, N)), strict=True):
        table.update(NAMES[C[rows]], part[rows])
    return ece(table)


NAMED = frame(THREE, NAMES)
SWAPPED = NAMED[["b", "a", "c"]]
TEN = np.linspace(0, 1, 11)
TABLES = {
    "Call update(y_true, y_proba) first.": (
        lambda: ece(CalibrationTable()),
        lambda: ece(CalibrationTable().update(Y, P)),
        BINARY,
    ),
    "Bring the columns into the same order.": (
        lambda: merged(NAMED, SWAPPED),
        lambda: merged(NAMED, SWAPPED[list(NAMED.columns)]),
        OF_CLASSES,
    ),
    "Count a CalibrationTable({}).": (
        lambda: ece(count(C, THREE, CalibrationTable("confidence")), notion="classwise"),
        lambda: ece(count(C, THREE, CalibrationTable("classwise")), notion="classwise"),
        OF_CLASSES,
    ),
    "Count a CalibrationTable of 'binary' or 'confidence'.": (
        lambda: reported(count(C, THREE, CalibrationTable("classwise"))),
        lambda: [
            reported(count(table=CalibrationTable("binary"))),
            reported(count(C, THREE, CalibrationTable("confidence"))),
        ],
        [BINARY, by_hand(*RIGHT)],
    ),
    "Count a CalibrationTable(edges=…) of fewer bins.": (
        lambda: told_of(count()),
        lambda: reported(count(table=CalibrationTable(edges=[0, 0.5, 1]))),
        by_hand(Y, P, 2),
    ),
    "Leave {} out, or count a CalibrationTable(edges=…).": (
        lambda: reported(count(), n_bins=10),
        lambda: [reported(count()), reported(count(table=CalibrationTable(edges=TEN)))],
        [BINARY, by_hand(Y, P, 10)],
    ),
    "Count fewer classes or groups in a table, such as one table for each class.": (
        lambda: with_small(
            "sums._MOST_BYTES", 15_000, lambda: told(C, THREE, CalibrationTable("classwise"))
        ),
        of_classes_apart,
        OF_CLASSES,
    ),
    "Count fewer samples in a table.": (
        lambda: with_small("counted._MOST_ROWS", 100, lambda: told(groups=GROUPS)),
        lambda: with_small(
            "counted._MOST_ROWS", 100, lambda: told(Y[:100], P[:100], groups=GROUPS[:100])
        ),
        by_hand(Y[:100], P[:100]),
    ),
    "Count the table anew.": (
        lambda: of_frame(lambda table: table.assign(wp=table["wp"] / 2)),
        of_frame,
        BINARY,
    ),
    "Count probabilities: divide percentages by 100, and leave out rows without one.": (
        lambda: of_frame(lambda table: table.assign(cell=-3070)),
        of_frame,
        BINARY,
    ),
    "Count outcomes 0 and 1, and leave out rows without one.": (
        lambda: of_frame(lambda table: table.assign(outcome=np.nan)),
        of_frame,
        BINARY,
    ),
    "Name the columns as to_frame() does.": (
        lambda: of_frame(lambda table: table.rename(columns={"n": "samples"})),
        lambda: of_frame(
            lambda table: table.rename(columns={"n": "samples"}).set_axis(table.columns, axis=1)
        ),
        BINARY,
    ),
    "Leave it out: predictions are not rounded.": (
        lambda: skcal.calibration_error(count(table=CalibrationTable(resolution=0.01))),
        lambda: skcal.calibration_error(count()) - skcal.calibration_error(Y, P) < 1e-3,
        True,
    ),
    "Leave those samples out of all arguments.": (
        lambda: told(LEFT, groups=GROUPS, sample_weight=WEIGHT, ignore_label=-100),
        lambda: told(Y[KEPT], P[KEPT], groups=GROUPS[KEPT], sample_weight=WEIGHT[KEPT]),
        lambda: ece(Y, P, sample_weight=np.where(KEPT, WEIGHT, 0)),
    ),
    "Divide all by one number, so that the largest is between 1e-60 and 1e+60.": (
        lambda: told(sample_weight=1e70 * WEIGHT),
        lambda: told(sample_weight=1e70 * WEIGHT / 1e30),
        lambda: ece(Y, P, sample_weight=WEIGHT),
    ),
    "Make a new {} for another model.": (
        lambda: CalibrationMonitor().update(P, Y).reset().update(THREE, C),
        lambda: [CalibrationMonitor().update(THREE, C).e_value_, told(C, THREE)],
        lambda: [CalibrationMonitor("binary").update(*RIGHT[::-1]).e_value_, by_hand(*RIGHT)],
    ),
    "Leave the groups out of the Sample.": (
        lambda: calibration_bins(Sample(Y, P, groups=GROUPS)).gap,
        lambda: [calibration_bins(Sample(Y, P), n_bins=2).count],
        [[(P < 0.5).sum(), (P >= 0.5).sum()]],
    ),
}
KEPT = np.arange(N) % 9 != 2
LEFT = np.where(KEPT, Y, -100)
GAP = np.where(KEPT, P, np.nan)
NO_VOTES = np.where(KEPT[:, None], np.eye(3)[C] * 4, 0)
MASKED = np.ma.array(P, mask=~KEPT)
LOGITS = np.log(THREE)
EMPTY = np.where(KEPT[:, None], LOGITS, -np.inf)
LARGE = np.r_[1e30, WEIGHT[1:]]
TEN_FIRST = np.r_[10.0, WEIGHT[1:]]


def heated(X, y, at=LOGITS):
    return TemperatureScaling(from_logits=True).fit(X, y).predict_proba(at)


def skce(weight, rows=slice(None)):
    return squared_kernel_calibration_error(
        Y[rows], P[rows], sample_weight=weight[rows], kernel=lambda A, B: np.ones((len(A), len(B)))
    )


def of_pairs(weight):
    """The mean product of residuals over pairs of different samples."""
    weighted = weight * (Y - P)
    return (weighted.sum() ** 2 - (weighted**2).sum()) / (weight.sum() ** 2 - (weight**2).sum())


def at_large(weight):
    return metrics.cox_recalibration(Y, P, sample_weight=weight).intercept_in_the_large


INPUT = {
    "Drop or fix that sample.": (
        lambda: ece(Y, GAP),
        lambda: [ece(Y[KEPT], GAP[KEPT]), ece(Y, np.where(KEPT, GAP, P))],
        [by_hand(Y[KEPT], P[KEPT]), BINARY],
    ),
    "Drop or label that sample.": (
        lambda: ece(np.where(KEPT, Y, np.nan), P),
        lambda: [
            ece(np.where(KEPT, Y, np.nan)[KEPT], P[KEPT]),
            ece(np.where(KEPT, Y, np.nan_to_num(Y)), P),
        ],
        [by_hand(Y[KEPT], P[KEPT]), BINARY],
    ),
    "Drop that sample.": (
        lambda: ece(NO_VOTES, THREE),
        lambda: [ece(NO_VOTES[KEPT], THREE[KEPT]), *heated(EMPTY[KEPT], C[KEPT])[0]],
        lambda: [ece(C[KEPT], THREE[KEPT]), *heated(LOGITS[KEPT], C[KEPT])[0]],
    ),
    "Drop the masked rows first.": (
        lambda: ece(Y, MASKED),
        lambda: ece(Y[~MASKED.mask], MASKED[~MASKED.mask]),
        by_hand(Y[KEPT], P[KEPT]),
    ),
    "Leave it out.": (
        lambda: ece(np.eye(3)[C], THREE, pos_label=2),
        lambda: ece(np.eye(3)[C], THREE),
        by_hand(*RIGHT),
    ),
    "pos_label={} has no meaning for {} columns. Leave it out.": (
        lambda: ece(C, THREE, pos_label=2),
        lambda: ece(C, THREE),
        by_hand(*RIGHT),
    ),
    "Reshape your data: a row per sample.": (
        lambda: TemperatureScaling().fit(THREE, C).predict_proba(THREE[0]),
        lambda: TemperatureScaling().fit(THREE, C).predict_proba(THREE[0].reshape(1, -1)),
        lambda: TemperatureScaling().fit(THREE, C).predict_proba(THREE)[:1],
    ),
    "Lower that weight, or drop the sample.": (
        lambda: skce(LARGE),
        lambda: [skce(np.r_[1.0, WEIGHT[1:]]), skce(LARGE, slice(1, None))],
        lambda: [of_pairs(np.r_[1.0, WEIGHT[1:]]), of_pairs(np.r_[0, WEIGHT[1:]])],
    ),
    "Lower the largest weight.": (
        lambda: at_large(LARGE),
        lambda: np.average(expit(logit(P) + at_large(TEN_FIRST)), weights=TEN_FIRST),
        lambda: np.average(Y, weights=TEN_FIRST),
    ),
    "If these are percentages, divide by 100.": (
        lambda: ece(C, 100 * THREE),
        lambda: ece(C, 100 * THREE / 100),
        by_hand(*RIGHT),
    ),
    "If the classifier saw one outcome of that label alone, leave the label out.": (
        lambda: ece(TRUE, [*FOREST[:2], np.ones((N, 1))], notion="multi-label"),
        lambda: ece(TRUE[:, :2], FOREST[:2], notion="multi-label"),
        lambda: sum(by_hand(y, p) for y, p in zip(TRUE.T[:2], SEVERAL.T[:2], strict=True)),
    ),
    "Correct the label or the logit.": (
        lambda: heated(ABSENT, C),
        lambda: [heated(ABSENT, np.where(BEYOND, 1, C)), heated(np.maximum(ABSENT, LOGITS), C)],
        lambda: [
            heated(np.maximum(ABSENT, -1e4), np.where(BEYOND, 1, C)),
            TemperatureScaling().fit(THREE, C).predict_proba(THREE),
        ],
    ),
    "Fit a map for each label, to {} and y[:, k].": (
        lambda: PlattScaling().fit(SEVERAL, TRUE),
        lambda: [
            PlattScaling().fit(SEVERAL[:, k], TRUE[:, k]).predict_proba(SEVERAL[:, k])
            for k in range(3)
        ],
        lambda: [
            PlattScaling().fit(p.tolist(), y.tolist()).predict_proba(p)
            for p, y in zip(SEVERAL.T, TRUE.T, strict=True)
        ],
    ),
    "Leave {} out.": (
        lambda: squared_kernel_calibration_error(Y, P, kernel=minimum, bandwidth=0.5),
        lambda: squared_kernel_calibration_error(Y, P, kernel=minimum),
        lambda: np.mean((np.minimum.outer(P, P) * np.outer(Y - P, Y - P))[~np.eye(N, dtype=bool)]),
    ),
}
SEVERAL = np.random.default_rng(5).uniform(0.1, 0.9, (N, 3))
TRUE = (np.random.default_rng(6).random((N, 3)) < SEVERAL).astype(int)
FOREST = [np.column_stack([1 - p, p]) for p in SEVERAL.T]
BEYOND = (C == 0) & (np.arange(N) % 5 == 0)
ABSENT = np.where(BEYOND[:, None] & [True, False, False], -np.inf, LOGITS)


SQUARES = np.linspace(0, 1, 16) ** 2
YES, NO = np.array(["yes", "no"])[Y], np.array(["no"] * 5)
IMAGES = np.moveaxis(THREE.reshape(2, 60, 1, 3), -1, 1)


def cut(y, p):
    """ECE of bins between squares, by its definition."""
    place = np.searchsorted(SQUARES, p, side="right")
    return sum(abs((y - p)[place == k].sum()) for k in range(1, 17)) / len(p)


def framed(proba_labels, change=lambda frame: frame):
    table = count(C, THREE, CalibrationTable("classwise"))
    frame = change(table.to_frame())
    return ece(CalibrationTable.from_frame(frame, notion="classwise", labels=proba_labels))


def grown(*given, **options):
    """A table of 120 samples and then those of another call."""
    return ece(count(**options).update(*given))


FILLED = {
    "Use error='calibration', 'ece' or 'cutoff' with method='asymptotic'.": (
        lambda: equal(count(), error="rms"),
        lambda: [
            equal(count(), error="ece"),
            equal(count(), error="cutoff"),
            equal(count(), error="calibration") - skcal.calibration_error(Y, P) < 1e-3,
        ],
        lambda: [equal(Sample(Y, P), error="ece"), metrics.cutoff_calibration_error(Y, P), True],
    ),
    "Pass a skcal.Sample.": (
        lambda: equal(count(), interval=(0.2, 0.4)),
        lambda: equal(Sample(Y, P), interval=(0.2, 0.4)),
        lambda: abs(np.mean((Y - P)[(P >= 0.2) & (P <= 0.4)])),
    ),
    "Pass edges=table.edges, or count a CalibrationTable(edges=…) with yours.": (
        lambda: ece(count(), edges=TEN),
        lambda: [
            ece(table := count(), edges=table.edges),
            ece(count(table=CalibrationTable(edges=TEN)), edges=TEN),
        ],
        [BINARY, by_hand(Y, P, 10)],
    ),
    "Pass edges=table.edges, or count a CalibrationTable(edges=numpy.arange({}) / {}).": (
        lambda: ece(count(table=CalibrationTable(edges=SQUARES)), n_bins=10),
        lambda: [
            ece(table := count(table=CalibrationTable(edges=SQUARES)), edges=table.edges),
            ece(count(table=CalibrationTable(edges=np.arange(11) / 10)), n_bins=10),
        ],
        [cut(Y, P), by_hand(Y, P, 10)],
    ),
    "Leave strategy out, or pass a skcal.Sample.": (
        lambda: ece(count(), strategy="quantile"),
        lambda: [
            ece(count()),
            ece(count(Y[:60], P[:60]), n_bins="cube_root"),
            ece(Sample(Y, P), n_bins=4, strategy="quantile"),
        ],
        lambda: [BINARY, by_hand(Y[:60], P[:60], 3), quarters()],
    ),
    "Pass arrays, or a skcal.Sample of them.": (
        lambda: metrics.smooth_calibration_error(count()),
        lambda: [
            metrics.smooth_calibration_error(Y, P),
            metrics.smooth_calibration_error(Sample(Y, P)),
        ],
        lambda: [metrics.smooth_calibration_error(Y.tolist(), P.tolist())] * 2,
    ),
    "Pass numbers p in [0, 1].": (
        lambda: cells(100 * P),
        lambda: np.unique(cells(P), return_inverse=True)[1].argsort(kind="stable"),
        lambda: cells(100 * P / 100).argsort(kind="stable"),
    ),
    "Pass what to_json() of a CalibrationTable returned.": (
        lambda: CalibrationTable.from_json("[]"),
        lambda: ece(CalibrationTable.from_json(count().to_json())),
        BINARY,
    ),
    "Pass edges= as they were when the bins were counted.": (
        lambda: CalibrationTable.from_frame(count().to_frame(), edges=SQUARES),
        lambda: ece(
            CalibrationTable.from_frame(
                count(table=CalibrationTable(edges=SQUARES)).to_frame(), edges=SQUARES
            ),
            edges=SQUARES,
        ),
        cut(Y, P),
    ),
    "Count each sample in each class, with the outcome 1 in its own.": (
        lambda: framed(range(3), lambda frame: frame[frame.index != 3]),
        lambda: framed(range(3)),
        OF_CLASSES,
    ),
    "Pass the labels of all classes.": (
        lambda: framed(["a", "b", "c"]),
        lambda: framed([0, 1, 2]),
        OF_CLASSES,
    ),
    "Pass sums.": (
        lambda: of_frame(lambda table: table.assign(w="much")),
        lambda: of_frame(lambda table: table.assign(w=table["w"].astype(str))),
        BINARY,
    ),
    "Use 'binary', 'confidence', 'top-label', 'classwise' or 'multi-label'.": (
        lambda: told(C, THREE, CalibrationTable("canonical")),
        lambda: [
            told(table=CalibrationTable("binary")),
            *(
                told(C, THREE, CalibrationTable(notion))
                for notion in ("confidence", "top-label", "classwise")
            ),
            told(np.eye(3, dtype=int)[C], THREE, CalibrationTable("multi-label")),
        ],
        lambda: [
            BINARY,
            by_hand(*RIGHT),
            ece(C, THREE, notion="top-label"),
            OF_CLASSES,
            OF_CLASSES,
        ],
    ),
    "Pass labels=[negative class, positive class] to the CalibrationTable.": (
        lambda: CalibrationTable(pos_label="no").update(NO, P[:5]),
        lambda: ece(CalibrationTable(labels=["yes", "no"]).update(NO, P[:5]).update(YES, P)),
        by_hand(np.r_[np.ones(5), Y], np.r_[P[:5], P]),
    ),
    "Pass {}= to each table.": (
        lambda: count() + count(YES, P, CalibrationTable(labels=["yes", "no"])),
        lambda: ece(sum(count(YES, P, CalibrationTable(labels=["yes", "no"])) for _ in "ab")),
        BINARY,
    ),
    "Pass as many of each.": (
        lambda: grown(Y, P[1:]),
        lambda: grown(Y[1:], P[1:]),
        by_hand(np.r_[Y, Y[1:]], np.r_[P, P[1:]]),
    ),
    "Pass the same edges to each CalibrationTable.": (
        lambda: count() + count(table=CalibrationTable(edges=SQUARES)),
        lambda: ece(sum(count(table=CalibrationTable(edges=SQUARES)) for _ in "ab"), edges=SQUARES),
        cut(Y, P),
    ),
    "Pass arrays, or add up tables with +.": (
        lambda: count().update(count(), P),
        lambda: [ece(count() + count(1 - Y)), grown(1 - Y, P)],
        [by_hand(np.r_[Y, 1 - Y], np.r_[P, P])] * 2,
    ),
    "Pass one label, such as -100.": (
        lambda: told(LEFT, ignore_label=[-100, -1]),
        lambda: told(LEFT, ignore_label=-100),
        by_hand(Y[KEPT], P[KEPT]),
    ),
    "Pass (N, C, H, W).": (
        lambda: CalibrationTable().update(C.reshape(2, 60, 1), IMAGES[:, None]),
        lambda: ece(CalibrationTable().update(C.reshape(2, 60, 1), IMAGES)),
        by_hand(*RIGHT),
    ),
    "Pass one label for each sample or pixel.": (
        lambda: CalibrationTable().update(C[:2], IMAGES),
        lambda: ece(CalibrationTable().update(C.reshape(2, 60, 1), IMAGES)),
        by_hand(*RIGHT),
    ),
    "Pass groups for all samples or for none.": (
        lambda: grown(Y, P, groups=GROUPS),
        lambda: [grown(Y, P), ece(count(groups=GROUPS).update(Y, P, groups=GROUPS))],
        [BINARY, BINARY],
    ),
}


def quarters():
    """ECE of four bins of 30 samples, by its definition."""
    return sum(abs((Y - P)[rows].sum()) for rows in np.argsort(P).reshape(4, 30)) / N


def equal(given, **options):
    return skcal.equivalence_test(given, limit=0.3, **options).estimate


def minimum(A, B):
    return np.minimum(A, B.T)


CASES = {**TABLES, **INPUT, **FILLED}
