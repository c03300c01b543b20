"""Advice of maps, recalibrators and monitors: as tests/advice_of_input.py."""

import numpy as np
from advice_of_input import ROWS, THREE, WEIGHT, C, N, P, Y, quietly
from advice_of_searches import FEATURES, by_folds, of_map
from advice_of_searches import proba_of as with_classifier
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.neighbors import KNeighborsClassifier

import skcal
from skcal.metrics import expected_calibration_error
from skcal.monitoring import CalibrationMonitor, merge_e_values
from skcal.notions import Notion, make_problems
from skcal.recalibration import (
    BayesianCalibration,
    MatrixScaling,
    PlattScaling,
    TemperatureScaling,
    VectorScaling,
    adjust_prevalence,
    estimate_prevalence,
)


def adjusted(new):
    return adjust_prevalence([[0.0, 0.0, 1.0]], prevalence=[0.2, 0.3, 0.5], new_prevalence=new)


RECALIBRATED = skcal.RecalibratedClassifierCV(LogisticRegression(), cv=5)


CASES = {
    "Pass an instance of it.": (
        lambda: skcal.RecalibratedClassifierCV(LogisticRegression).fit(FEATURES, Y),
        lambda: with_classifier(LogisticRegression()),
        by_folds,
    ),
    "Pass the features of the samples.": (
        lambda: RECALIBRATED.fit(None, Y),
        lambda: with_classifier(LogisticRegression()),
        by_folds,
    ),
    "Pass the class of each sample; are the arguments swapped?": (
        lambda: RECALIBRATED.fit(FEATURES, P),
        lambda: with_classifier(LogisticRegression()),
        by_folds,
    ),
    "Class {} has {} samples, less than cv={} folds. Pass fewer folds or more samples.": (
        lambda: RECALIBRATED.fit(FEATURES[:40], np.arange(40) < 3),
        lambda: [
            *with_classifier(X=FEATURES[:40], y=np.arange(40) % 9 == 4, cv=4)[:, 1],
            *with_classifier(X=FEATURES[:60], y=np.arange(60) % 12 == 5, cv=5)[:, 1],
        ],
        lambda: [
            *by_folds(X=FEATURES[:40], y=np.arange(40) % 9 == 4, cv=4)[:, 1],
            *by_folds(X=FEATURES[:60], y=np.arange(60) % 12 == 5, cv=5)[:, 1],
        ],
    ),
    "Pass a classifier that takes it, or no weights.": (
        lambda: skcal.RecalibratedClassifierCV(KNeighborsClassifier(), cv=3).fit(
            FEATURES, Y, sample_weight=WEIGHT
        ),
        lambda: [
            with_classifier(fit={"sample_weight": WEIGHT}),
            with_classifier(KNeighborsClassifier()),
        ],
        lambda: [by_folds(weight=WEIGHT), by_folds(KNeighborsClassifier())],
    ),
    "Pass the predictions of fit, or call predict_proba.": (
        lambda: MAP.cross_fit_predict_proba(P[1:]),
        lambda: [
            *heated(cv=HALVES).cross_fit_predict_proba(P)[:, 1],
            *heated().predict_proba(P[1:])[:, 1],
        ],
        lambda: [*by_halves(), *of_map(P)[1:, 1]],
    ),
    "Pass a map such as skcal.TemperatureScaling(), or (map, param_grid); a map has fit and "
    "predict_proba.": (
        lambda: skcal.Recalibrator(["temperature"]).fit(P, Y),
        lambda: [
            proba_of(method, P, Y)
            for method in (TemperatureScaling(), (TemperatureScaling(), {"from_logits": [False]}))
        ],
        lambda: [of_map(P)] * 2,
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
        lambda: np.round(
            CalibrationMonitor().update(skcal.CalibrationTable().update(Y, P)).e_value_, 5
        ),
        lambda: np.round(MONITOR.e_value_, 5),
    ),
    "Pass the table alone.": (
        lambda: CalibrationMonitor().update(skcal.CalibrationTable().update(Y, P), Y),
        lambda: np.round(
            CalibrationMonitor().update(skcal.CalibrationTable().update(Y, P)).e_value_, 5
        ),
        lambda: np.round(MONITOR.e_value_, 5),
    ),
    "Pass labels, or a CalibrationTable alone.": (
        lambda: CalibrationMonitor().update(P),
        lambda: CalibrationMonitor().update(P, Y).n_samples_seen_,
        lambda: CalibrationMonitor().update(skcal.CalibrationTable().update(Y, P)).n_samples_seen_,
    ),
    "Pass the same labels= to each CalibrationTable.": (
        lambda: CalibrationMonitor(labels=[1, 0]).update(skcal.CalibrationTable().update(Y, P)),
        lambda: np.round(
            CalibrationMonitor(labels=[1, 0])
            .update(skcal.CalibrationTable(labels=[1, 0]).update(Y, P))
            .log_e_value_,
            5,
        ),
        lambda: np.round(CalibrationMonitor().update(P, 1 - Y).log_e_value_, 5),
    ),
    "Pass one that update() counted, of counts or of weights up to 1.": (
        lambda: CalibrationMonitor().update(
            skcal.CalibrationTable().update(Y, P, sample_weight=np.full(N, 1.5))
        ),
        lambda: np.round(
            CalibrationMonitor()
            .update(skcal.CalibrationTable().update(Y, P, sample_weight=np.full(N, 0.5)))
            .e_value_,
            5,
        ),
        lambda: np.round(
            CalibrationMonitor().update(P, Y, sample_weight=np.full(N, 0.5)).e_value_, 5
        ),
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
            CalibrationMonitor(alpha=0.01)
            .update(P, Y)
            .merge(CalibrationMonitor(alpha=0.01))
            .e_value_
        ),
        lambda: MONITOR.e_value_,
    ),
}
LOGITS = np.log(P / (1 - P))
POINTS = 600 + 50 * LOGITS
HALF = P.astype(np.float32)
HALF[:4] = [0, 1, 0, 1e-9]
AFTER = np.r_[[0, 1, 0, 0], Y[4:]]


class Unweighted(ClassifierMixin, BaseEstimator):
    """A map of scikit-learn's form that takes no weights, and no logits."""

    def fit(self, X, y):
        self.classes_, self.map_ = np.unique(y), TemperatureScaling().fit(X, y)
        return self

    def predict_proba(self, X):
        return self.map_.predict_proba(X)


class Weighted(Unweighted):
    """The same with weights."""

    def fit(self, X, y, sample_weight=None):
        self.classes_ = np.unique(y)
        self.map_ = TemperatureScaling().fit(X, y, sample_weight)
        return self


def chosen(method, **options):
    return skcal.Recalibrator([method], do_no_harm=False, random_state=0, **options)


def proba_of(method, X=THREE, y=C, **options):
    return quietly(chosen(method).fit, X, y, **options).predict_proba(X)


def above_line(method):
    """By how much the log loss of recalibrated points is above that of the best line."""
    z = LOGITS[:, None]
    line = LogisticRegression(C=np.inf, tol=1e-9, max_iter=10**4).fit(z, Y).predict_proba(z)
    return log_loss(Y, method.fit(POINTS, Y).predict_proba(POINTS)) - log_loss(Y, line)


def heated(**options):
    return quietly(chosen(TemperatureScaling(), **options).fit, P, Y)


HALVES = [(np.arange(60), np.arange(60, N)), (np.arange(60, N), np.arange(60))]


def by_halves():
    """Each half by the map of the other, mixed with even odds as one more sample."""
    proba = np.empty(N)
    for train, test in HALVES:
        fitted = TemperatureScaling().fit(P[train], Y[train]).predict_proba(P[test])[:, 1]
        proba[test] = (60 * fitted + 1 / 2) / 61
    return proba


def expected(share):
    """The mean of predictions that are adjusted from 0.3 to a prevalence."""
    odds = P / (1 - P) * share / (1 - share) * 0.7 / 0.3
    return np.round(np.mean(odds / (1 + odds)) - share, 8) + share


def prevalence_of(p, **options):
    return quietly(estimate_prevalence, p, **options)


WORDS = np.array(["b", "a"])[Y]
MORE = {
    "{} lacks the slope or the offset that the scores in X need: its log loss is {} above that of "
    "a line on them. Use a map that has both": (
        lambda: TemperatureScaling(from_logits=True).fit(POINTS, Y),
        lambda: [
            above_line(method(from_logits=True)) < 0.02
            for method in (BayesianCalibration, VectorScaling)
        ],
        [True, True],
    ),
    "{} of {} probabilities in X are 0 or 1, which float32 rounded: their logarithms are lost. "
    "Pass logits to a map with from_logits=True.": (
        lambda: TemperatureScaling().fit(HALF, AFTER),
        lambda: TemperatureScaling(from_logits=True).fit(LOGITS, Y).predict_proba(LOGITS),
        lambda: TemperatureScaling().fit(P, Y).predict_proba(P),
    ),
    "Add it to fit, or pass equal weights.": (
        lambda: proba_of(Unweighted(), sample_weight=WEIGHT),
        lambda: [
            proba_of(Weighted(), sample_weight=WEIGHT),
            proba_of(Unweighted(), sample_weight=np.ones(N)),
        ],
        lambda: [proba_of(TemperatureScaling(), sample_weight=WEIGHT), proba_of(Unweighted())],
    ),
    "{}, has no from_logits. Pass maps that have it, or probabilities and from_logits=False.": (
        lambda: chosen(Unweighted(), from_logits=True).fit(np.log(THREE), C),
        lambda: [
            quietly(
                chosen(TemperatureScaling(), from_logits=True).fit, np.log(THREE), C
            ).predict_proba(np.log(THREE)),
            proba_of(Unweighted()),
        ],
        lambda: [proba_of(TemperatureScaling())] * 2,
    ),
    "The prevalence still changes after max_iter={} steps. Pass a larger max_iter; predictions "
    "that hardly tell the classes apart need many.": (
        lambda: estimate_prevalence(P, prevalence=0.3, max_iter=1),
        lambda: (share := estimate_prevalence(P, prevalence=0.3, max_iter=100)) - expected(share),
        0.0,
    ),
    "The likelihood is highest where class {} is absent, a prevalence of 0: no estimate inside "
    "(0, 1) fits these predictions. Most often they are not calibrated at the prevalence that was "
    "passed, or the samples are few. Check them with labels, or count some labels of the place of "
    "use.": (
        lambda: estimate_prevalence(P, prevalence=0.99),
        lambda: [0 < prevalence_of(P, prevalence=P.mean()) < 1, abs(Y.mean() - P.mean()) < 0.1],
        [True, True],
    ),
    "Pass one inside (0, 1).": (
        lambda: adjust_prevalence(P, prevalence=1.0, new_prevalence=0.5),
        lambda: adjust_prevalence(P, prevalence=0.5, new_prevalence=0.5),
        lambda: P,
    ),
    "Pass {}.": (
        lambda: adjust_prevalence(THREE, prevalence=0.2, new_prevalence=0.5),
        lambda: [
            adjust_prevalence(THREE, prevalence=[0.2, 0.3, 0.5], new_prevalence=[0.2, 0.3, 0.5]),
            adjust_prevalence(ROWS, prevalence=[0.2, 0.8], new_prevalence=[0.2, 0.8])[:, [1] * 3],
        ],
        lambda: [THREE, P[:, None] + np.zeros(3)],
    ),
    "Pass shares of the classes, which sum to 1.": (
        lambda: adjust_prevalence(THREE, prevalence=[20, 30, 50], new_prevalence=[0.2, 0.3, 0.5]),
        lambda: adjust_prevalence(
            THREE, prevalence=[0.2, 0.3, 0.5], new_prevalence=[0.2, 0.3, 0.5]
        ),
        lambda: THREE,
    ),
    "X was read as predictions of {}, the second label in order, but is higher for {}. If it "
    "predicts {}, pass y == {}, or Recalibrator(labels=[{}, {}]).": (
        lambda: PlattScaling().fit(P, WORDS),
        lambda: [
            PlattScaling().fit(P, WORDS == "a").predict_proba(P)[:, 1],
            quietly(
                skcal.Recalibrator(labels=["b", "a"], random_state=0).fit, P, WORDS
            ).predict_proba(P)[:, 1],
        ],
        lambda: [
            PlattScaling().fit(P, Y).predict_proba(P)[:, 1],
            MAP.predict_proba(P)[:, 1],
        ],
    ),
    "{}={} belongs to the structured penalty. Pass structured=True, too, or leave it out.": (
        lambda: MatrixScaling(C_intercept=0.1).fit(THREE, C),
        lambda: [
            quietly(MatrixScaling(**options).fit, THREE, C).predict_proba(THREE).sum()
            for options in ({"C_intercept": 0.1, "structured": True}, {})
        ],
        [N, N],
    ),
    "n_samples={}: a map that is judged on other samples needs 2. Pass more samples.": (
        lambda: skcal.Recalibrator(random_state=0).fit(P[:1], Y[:1]),
        lambda: heated().predict_proba(P),
        lambda: of_map(P),
    ),
    "notion={} is code, which JSON does not hold. Use a notion that has a name.": (
        lambda: monitor(largest).to_json(),
        lambda: CalibrationMonitor.from_json(monitor("confidence").to_json()).e_value_,
        lambda: monitor("confidence").e_value_,
    ),
    "notion is a callable, which JSON does not hold. Use a named notion.": (
        lambda: CalibrationMonitor(largest).to_json(),
        lambda: (
            CalibrationMonitor.from_json(CalibrationMonitor("confidence").to_json())
            .update(THREE, C)
            .e_value_
        ),
        lambda: monitor("confidence").e_value_,
    ),
    "The label {} is {}, which JSON does not hold. Use strings or numbers.": (
        lambda: monitor("confidence", y=OBJECTS[C], labels=OBJECTS).to_json(),
        lambda: [
            CalibrationMonitor.from_json(monitor("confidence", y=y).to_json()).e_value_
            for y in (C, np.array(["a", "b", "c"])[C])
        ],
        lambda: [monitor("confidence").e_value_] * 2,
    ),
    "{} returned {}. Return a list of skcal.notions.Problem.": (
        lambda: expected_calibration_error(Y, P, notion=Own(as_list=False)),
        lambda: expected_calibration_error(Y, P, notion=Own(as_list=True)),
        lambda: expected_calibration_error(Y, P),
    ),
}
OBJECTS = np.array([(0, 1), (1, 2), (2, 3)], dtype="i4,i4").astype(object)


def largest(proba):
    return np.tile(proba.argmax(axis=1)[:, None], (1, proba.shape[1])) == np.arange(proba.shape[1])


def monitor(notion, y=C, **options):
    return CalibrationMonitor(notion, **options).update(THREE, y)


class Own(Notion):
    """A notion of the user's own, that of one probability."""

    def __new__(cls, as_list):
        return str.__new__(cls, "own")

    def __init__(self, as_list):
        self.as_list = as_list

    def problems(self, proba, codes, weight):
        [problem] = make_problems(proba[:, 1], codes, "binary", weight)
        return [problem] if self.as_list else problem


CASES |= MORE
MAP = quietly(skcal.Recalibrator(random_state=0).fit, P, Y)
MONITOR = CalibrationMonitor().update(P, Y)
