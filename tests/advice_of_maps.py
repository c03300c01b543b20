"""Advice of maps, recalibrators and monitors: as tests/advice_of_input.py."""

import numpy as np
from advice_of_input import ROWS, THREE, WEIGHT, C, N, P, Y, quietly
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier

import skcal
from skcal.monitoring import CalibrationMonitor, merge_e_values
from skcal.recalibration import adjust_prevalence

FEATURES = np.column_stack([P, WEIGHT])


def adjusted(new):
    return adjust_prevalence([[0.0, 0.0, 1.0]], prevalence=[0.2, 0.3, 0.5], new_prevalence=new)


def recalibrated(**kwargs):
    options = {"cv": 3, **kwargs}
    return skcal.RecalibratedClassifierCV(LogisticRegression(), **options)


CASES = {
    "Pass an instance of it.": (
        lambda: skcal.RecalibratedClassifierCV(LogisticRegression).fit(FEATURES, Y),
        lambda: quietly(recalibrated().fit, FEATURES, Y).predict_proba(FEATURES).sum(),
        N,
    ),
    "Pass the features of the samples.": (
        lambda: recalibrated().fit(None, Y),
        lambda: quietly(recalibrated().fit, FEATURES, Y).predict_proba(FEATURES).sum(),
        N,
    ),
    "Pass the class of each sample; are the arguments swapped?": (
        lambda: recalibrated().fit(FEATURES, P),
        lambda: quietly(recalibrated().fit, FEATURES, Y).predict_proba(FEATURES).sum(),
        N,
    ),
    "Class {} has {} samples, less than cv={} folds. Pass fewer folds or more samples.": (
        lambda: recalibrated(cv=5).fit(FEATURES[:40], np.arange(40) < 4),
        lambda: quietly(recalibrated(cv=4).fit, FEATURES[:40], np.arange(40) < 4).classes_,
        [False, True],
    ),
    "Pass a classifier that takes it, or no weights.": (
        lambda: skcal.RecalibratedClassifierCV(KNeighborsClassifier(), cv=3).fit(
            FEATURES, Y, sample_weight=WEIGHT
        ),
        lambda: quietly(recalibrated().fit, FEATURES, Y, sample_weight=WEIGHT).classes_,
        [0, 1],
    ),
    "Pass the predictions of fit, or call predict_proba.": (
        lambda: MAP.cross_fit_predict_proba(P[1:]),
        lambda: [
            MAP.cross_fit_predict_proba(P)[:, 1].shape[0],
            MAP.predict_proba(P[1:]).shape[0],
        ],
        [N, N - 1],
    ),
    "Pass a map such as skcal.TemperatureScaling(), or (map, param_grid); a map has fit and "
    "predict_proba.": (
        lambda: skcal.Recalibrator(["temperature"]).fit(P, Y),
        lambda: (
            quietly(skcal.Recalibrator([skcal.TemperatureScaling()], random_state=0).fit, P, Y)
            .predict_proba(P)
            .sum()
        ),
        N,
    ),
    "Pass preserve_classes=False, or temperatures, which keep it.": (
        lambda: skcal.Recalibrator(
            [skcal.recalibration.VectorScaling()], preserve_classes=True
        ).fit(THREE, C),
        lambda: (
            quietly(
                skcal.Recalibrator([skcal.TemperatureScaling()], preserve_classes=True).fit,
                THREE,
                C,
            )
            .predict_proba(THREE)
            .argmax(axis=1)
        ),
        THREE.argmax(axis=1),
    ),
    "Pass a new_prevalence above 0 for them.": (
        lambda: adjusted([0.5, 0.5, 0.0]),
        lambda: adjusted([0.5, 0.4, 0.1]),
        [[0, 0, 1]],
    ),
    "Pass from_logits=True to Smoothed instead.": (
        lambda: skcal.recalibration.Smoothed(skcal.TemperatureScaling(from_logits=True)).fit(P, Y),
        lambda: (
            skcal.recalibration.Smoothed(skcal.TemperatureScaling(), from_logits=True)
            .fit(np.log(THREE), C)
            .predict_proba(np.log(THREE))
        ),
        lambda: (
            skcal.recalibration.Smoothed(skcal.TemperatureScaling())
            .fit(THREE, C)
            .predict_proba(THREE)
        ),
    ),
    "Pass one e-value a stream, at least one.": (
        lambda: merge_e_values([]),
        lambda: merge_e_values([4.0]),
        4.0,
    ),
    "Pass e_value_ of monitors.": (
        lambda: merge_e_values([2.0, -1.0]),
        lambda: merge_e_values([MONITOR.e_value_]),
        lambda: MONITOR.e_value_,
    ),
    "Pass one vote of each sample, drawn at random.": (
        lambda: CalibrationMonitor().update(P, np.column_stack([3 - Y, Y])),
        lambda: CalibrationMonitor().update(P, Y).e_value_,
        lambda: MONITOR.e_value_,
    ),
    "Pass whole numbers, which repeat rows, or divide by the largest weight: a power above 1 of "
    "a bet "
    "on one outcome would not be a fair bet.": (
        lambda: CalibrationMonitor().update(P, Y, sample_weight=np.full(N, 1.5)),
        lambda: CalibrationMonitor().update(P, Y, sample_weight=np.full(N, 1.5) / 1.5).e_value_,
        lambda: MONITOR.e_value_,
    ),
    "Pass a table of one vote of each sample, drawn at random.": (
        lambda: CalibrationMonitor().update(
            skcal.CalibrationTable().update(np.column_stack([3 - Y, Y]), P)
        ),
        lambda: CalibrationMonitor().update(skcal.CalibrationTable().update(Y, P)).n_samples_seen_,
        N,
    ),
    "Pass the table alone.": (
        lambda: CalibrationMonitor().update(skcal.CalibrationTable().update(Y, P), Y),
        lambda: CalibrationMonitor().update(skcal.CalibrationTable().update(Y, P)).n_samples_seen_,
        N,
    ),
    "Pass labels, or a CalibrationTable alone.": (
        lambda: CalibrationMonitor().update(P),
        lambda: CalibrationMonitor().update(P, Y).n_samples_seen_,
        lambda: CalibrationMonitor().update(skcal.CalibrationTable().update(Y, P)).n_samples_seen_,
    ),
    "Pass the same labels= to each CalibrationTable.": (
        lambda: CalibrationMonitor(labels=[1, 0]).update(skcal.CalibrationTable().update(Y, P)),
        lambda: (
            CalibrationMonitor(labels=[1, 0])
            .update(skcal.CalibrationTable(labels=[1, 0]).update(Y, P))
            .n_samples_seen_
        ),
        N,
    ),
    "Pass one that update() counted, of counts or of weights up to 1.": (
        lambda: CalibrationMonitor().update(
            skcal.CalibrationTable().update(Y, P, sample_weight=np.full(N, 1.5))
        ),
        lambda: (
            CalibrationMonitor()
            .update(skcal.CalibrationTable().update(Y, P, sample_weight=np.full(N, 0.5)))
            .n_samples_seen_
        ),
        N,
    ),
    "Pass a short sentence.": (
        lambda: CalibrationMonitor().update(P, Y).reset(note="x" * 10**6),
        lambda: CalibrationMonitor().update(P, Y).reset(note="a new model").n_samples_seen_,
        0,
    ),
    "There are no samples to plan by. Add a batch, or pass predictions X.": (
        lambda: CalibrationMonitor().plan(1.4, batch_size=20),
        lambda: [
            CalibrationMonitor().plan(1.4, batch_size=N, X=P).n_batches,
            CalibrationMonitor().update(P, Y).plan(1.4, batch_size=N).n_batches,
        ],
        lambda: [CalibrationMonitor().plan(1.4, batch_size=N, X=ROWS).n_batches] * 2,
    ),
    "There are no batches yet. Pass batch_size.": (
        lambda: CalibrationMonitor().plan(1.4, X=P),
        lambda: CalibrationMonitor().plan(1.4, X=P, batch_size=N).n_batches,
        lambda: CalibrationMonitor().plan(1.4, X=ROWS, batch_size=N).n_batches,
    ),
    "ratio is {}, and predictions with a mean of {} allow O/E from {} to {}. Pass one between "
    "them.": (
        lambda: CalibrationMonitor().plan(50.0, X=P, batch_size=20),
        lambda: CalibrationMonitor().plan(1.5, X=P, batch_size=20).n_batches,
        lambda: CalibrationMonitor().plan(1.5, X=ROWS, batch_size=20).n_batches,
    ),
    "The monitors have different {}. Pass the same to each.": (
        lambda: CalibrationMonitor().merge(CalibrationMonitor(alpha=0.01)),
        lambda: (
            CalibrationMonitor(alpha=0.01).update(P, Y).merge(CalibrationMonitor(alpha=0.01))
            is not None
        ),
        True,
    ),
}
MAP = quietly(skcal.Recalibrator(random_state=0).fit, P, Y)
MONITOR = CalibrationMonitor().update(P, Y)
