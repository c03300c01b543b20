"""Advice for a user's own functions, notions, kernels and maps: as tests/advice_of_input.py."""

import numpy as np
from advice_of_input import THREE, C, N, P, Y, by_hand, quietly
from advice_of_searches import DELTA, FEATURES, X, of_map
from scipy.optimize import isotonic_regression
from scipy.special import logit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.frozen import FrozenEstimator
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neighbors import KNeighborsRegressor

import skcal
from skcal.functions import BilinearFunction
from skcal.hypothesis_tests import monte_carlo_test
from skcal.metrics import squared_kernel_calibration_error
from skcal.metrics.statistic import prepared_by
from skcal.notions import Notion, Problem
from skcal.recalibration import PlattScaling, TemperatureScaling

MEAN = DELTA.mean()
SPLIT = np.array([[MEAN**2, 0.5], [-0.5, 0.0]])  # of sum MEAN², but not symmetric


class Constant(BilinearFunction):
    """The squared mean residual everywhere, as φᵀ M φ with φ = 1."""

    def __init__(self, form=None, rows=lambda n: np.full((n, 1), MEAN)):
        self.form, self.rows = form, rows

    def fit(self, X, y, sample_weight=None):
        self._validate(X, y, sample_weight)
        if not isinstance(self.form, str):
            self.form_ = self.form
        self.fitted_ = True
        return self

    def feature_map(self, X):
        return self.rows(len(X))


class Hasty(Constant):
    """The same, which does not read its arguments."""

    def fit(self, X, y, sample_weight=None):
        self.form_, self.fitted_ = None, True
        return self


def constant(form=None, rows=lambda n: np.full((n, 1), MEAN)):
    return Constant(form, rows).fit(X, DELTA).predict(X)


def pair_score(value):
    """Minus the pair risk of a constant, by its definition."""
    products = DELTA @ DELTA.T
    return -((products[~np.eye(N, dtype=bool)] - value) ** 2).mean()


def ones(n):
    return np.ones((n, 2))


OF_FUNCTIONS = {
    "Return an array of shape ({}, {}).": (
        lambda: constant(rows=lambda n: np.full(n, MEAN)),
        lambda: constant(rows=lambda n: np.full((n, 1), MEAN)),
        MEAN**2,
    ),
    "Make it an array of floats.": (
        lambda: constant(rows=lambda n: [["much"]] * n),
        lambda: constant(rows=lambda n: np.array([[str(MEAN)]] * n).astype(float)),
        MEAN**2,
    ),
    "Make it finite.": (
        lambda: constant(np.full((2, 2), np.nan), ones),
        lambda: constant(np.full((2, 2), MEAN**2 / 4), ones),
        MEAN**2,
    ),
    "Let fit set it: M, or None for the identity.": (
        lambda: constant("not set"),
        lambda: [constant(np.full((1, 1), MEAN**2), lambda n: np.ones((n, 1))), constant(None)],
        MEAN**2,
    ),
    "Let fit set it to shape ({}, {}), or to None for the identity.": (
        lambda: constant(np.eye(3)),
        lambda: [constant(np.eye(1)), constant(None)],
        MEAN**2,
    ),
    "Set it to (M + M.T) / 2.": (
        lambda: constant(SPLIT, ones),
        lambda: constant((SPLIT + SPLIT.T) / 2, ones),
        MEAN**2,
    ),
    "Let fit begin with X, residuals, weight = self._validate(X, y, sample_weight).": (
        lambda: Hasty().fit(X, DELTA).score(X, DELTA),
        lambda: Constant().fit(X, DELTA).score(X, DELTA),
        lambda: pair_score(MEAN**2),
    ),
    "sample_weight was given, but {}.fit does not take it. Choose another estimator or leave "
    "sample_weight out.": (
        lambda: plugged(KNeighborsRegressor(5), X, DELTA, TWICE),
        lambda: [
            plugged(LinearRegression(), X, DELTA, TWICE),
            plugged(KNeighborsRegressor(5), X, DELTA),
        ],
        lambda: [
            LinearRegression().fit(X[AGAIN], DELTA[AGAIN]).predict(X) ** 2,
            KNeighborsRegressor(5).fit(X, DELTA).predict(X) ** 2,
        ],
    ),
    "Return shape ({}, {}).": (
        lambda: plugged(Sliced(rows=slice(1, None)), X, DELTA),
        lambda: plugged(Sliced(), X, DELTA),
        lambda: LinearRegression().fit(X, DELTA).predict(X) ** 2,
    ),
    "k(x, x) is zero on all training samples. Choose another kernel.": (
        lambda: of_kernel(lambda A, B: 0 * (A @ B.T)),
        lambda: of_kernel("laplacian", gamma=1.0),
        lambda: of_kernel(lambda A, B: np.exp(-abs(A - B.T))),
    ),
    "The kernel is not positive semidefinite: at X row {} the remainder of k(x, x) is {}. Choose a "
    "positive semidefinite kernel.": (
        lambda: of_kernel(lambda A, B: 1 + abs(A - B.T)),
        lambda: of_kernel("laplacian", gamma=1.0),
        lambda: of_kernel(lambda A, B: np.exp(-abs(A - B.T))),
    ),
    "Return k(x, z) = k(z, x); for matrices the transpose of k(z, x).": (
        lambda: skce(lambda A, B: A @ np.triu(np.ones((3, 3))) @ B.T),
        lambda: [
            skce(lambda A, B: A @ B.T),
            skce(lambda A, B: (A @ B.T)[:, :, None, None] * np.eye(3)),
        ],
        lambda: np.mean(((THREE @ THREE.T) * (RESIDUAL @ RESIDUAL.T))[~np.eye(N, dtype=bool)]),
    ),
}
OF_FUNCTIONS |= {
    "{} predicts NaN or infinity for X row {}. IsotonicRegression needs out_of_bounds='clip'.": (
        lambda: beyond(IsotonicRegression()),
        lambda: beyond(IsotonicRegression(out_of_bounds="clip")),
        lambda: (np.interp(P, *knots()) - P)[:, None],
    ),
    "The kernel returned {} for X row {} and {}. Its values must be finite.": (
        lambda: skce(lambda A, B: np.log(A @ B.T - 0.5)),
        lambda: skce(lambda A, B: A @ B.T),
        lambda: np.mean(((THREE @ THREE.T) * (RESIDUAL @ RESIDUAL.T))[~np.eye(N, dtype=bool)]),
    ),
    "statistic {} returned {}. It must return a finite number for every outcome of the "
    "predictions.": (
        lambda: drawn(lambda y, p: np.log(np.mean(y) - 0.6)),
        lambda: drawn(lambda y, p: np.exp(np.mean(y))).statistic,
        np.exp(Y.mean()),
    ),
    "The prepared statistic {} returned {} for {} rows of outcomes. It must return finite numbers "
    "of shape ({},).": (
        lambda: drawn(prepared(lambda codes: codes.mean())),
        lambda: drawn(prepared(lambda codes: codes.mean(axis=1))).statistic,
        Y.mean(),
    ),
}
MIDDLE = (P > 0.2) & (P < 0.8)


def beyond(estimator):
    """Residuals by a regression of the outcomes on the predictions between 0.2 and 0.8."""
    plugged = skcal.PlugIn(estimator, target="outcome")
    return plugged.fit(X[MIDDLE], DELTA[MIDDLE]).residual(X)


def knots():
    """Predictions in order, and the frequencies of an increasing regression there."""
    order = np.argsort(P[MIDDLE])
    return P[MIDDLE][order], isotonic_regression(Y[MIDDLE][order]).x


def prepared(values):
    """A statistic that is prepared for all draws of the outcomes."""

    @prepared_by(lambda problem: values)
    def mean(y_true, y_proba, *, notion="auto", labels=None, sample_weight=None):
        return np.mean(y_true)

    return mean


def drawn(statistic):
    return monte_carlo_test(Y, P, statistic, n_resamples=19)


TWICE = np.where(np.arange(N) < 40, 2.0, 1.0)
AGAIN = np.r_[:40, :N]
RESIDUAL = np.eye(3)[C] - THREE


class Sliced(LinearRegression):
    """A regression whose predictions may lack rows."""

    def __init__(self, rows=slice(None)):
        super().__init__()
        self.rows = rows

    def predict(self, X):
        return super().predict(X)[self.rows]


def plugged(estimator, X, y, weight=None):
    return skcal.PlugIn(estimator).fit(X, y, weight).predict(X)[:, None]


def of_kernel(kernel, **options):
    return skcal.TwoStepKernelRidge(kernel=kernel, **options).fit(X, DELTA).predict(X)


def skce(kernel):
    return squared_kernel_calibration_error(C, THREE, notion="canonical", kernel=kernel)


class Event(Notion):
    """The notion of a positive class, as a user may write it."""

    scalar = True

    def __new__(cls, change=None):
        return str.__new__(cls, "event")

    def __init__(self, change=None):
        self.change = change or (lambda *parts: parts)

    def problems(self, proba, codes, weight):
        features = proba[:, 1:]
        return [Problem(*self.change(features, codes[:, None] - features, weight))]


def ece(change=None):
    return skcal.metrics.expected_calibration_error(Y, P, notion=Event(change))


def of_lens(lens, rows=slice(None)):
    """Score on all samples of a function that is fitted to some."""
    fitted = skcal.CalibrationErrorEstimator(skcal.Binning(n_bins=3), notion=lens)
    return quietly(fitted.fit, THREE[rows], C[rows]).score(THREE, C)


def of_canonical(lens):
    return skcal.metrics.expected_calibration_error(C, THREE, notion=lens)


def numbered_anew(proba):
    """The largest class alone, by numbers that follow from the rows."""
    return np.unique(proba.argmax(axis=1), return_inverse=True)[1][:, None] * np.array([0, 0, 1])


def last_alone(proba):
    return np.broadcast_to([0, 0, 1], proba.shape)


TOP_0 = np.flatnonzero(THREE.argmax(axis=1) == 0)
OF_NOTIONS = {
    "{} returned features of shape {} for {} rows. Return shape ({}, {}).": (
        lambda: ece(lambda x, delta, weight: (x[:, 0], delta, weight)),
        lambda: ece(lambda x, delta, weight: (x[:, :1], delta, weight)),
        by_hand(Y, P),
    ),
    "{} returned weight of shape {} for {} rows. Return one a row.": (
        lambda: ece(lambda x, delta, weight: (x, delta, 1.0)),
        lambda: ece(lambda x, delta, weight: (x, delta, np.ones(len(x)))),
        by_hand(Y, P),
    ),
    "{} returned residuals of shape {} and features of shape {}. Return both of one shape.": (
        lambda: ece(lambda x, delta, weight: (x, delta[:, 0], weight)),
        lambda: ece(lambda x, delta, weight: (x, delta, weight)),
        by_hand(Y, P),
    ),
    "{} returned features and residuals that add up to {} in row {}, not to outcomes of 0 and 1. "
    "Return residuals = outcomes - features.": (
        lambda: ece(lambda x, delta, weight: (x, -delta, weight)),
        lambda: ece(lambda x, delta, weight: (x, Y[:, None] - x, weight)),
        by_hand(Y, P),
    ),
    "notion: The lens returned {} of shape {}. It must return a non-negative integer group for "
    "every class of every sample, shape {}.": (
        lambda: of_canonical(lambda proba: [0, 0, 1]),
        lambda: of_canonical(last_alone),
        lambda: by_hand(C == 2, THREE[:, 2]),
    ),
    "notion: The lens returned group {} at row {}, column {}. It must return non-negative integer "
    "groups below the {} classes.": (
        lambda: of_canonical(lambda proba: last_alone(proba) * 5),
        lambda: of_canonical(last_alone),
        lambda: by_hand(C == 2, THREE[:, 2]),
    ),
    "The lens returned group {}, which the training samples do not have. Let it number the groups "
    "in the same way for every sample.": (
        lambda: of_lens(numbered_anew, TOP_0),
        lambda: of_lens(last_alone, TOP_0),
        lambda: (  # the residual stands in two columns, so that products are twice as large
            4
            * skcal.CalibrationErrorEstimator(skcal.Binning(n_bins=3))
            .fit(THREE[TOP_0, 2], C[TOP_0] == 2)
            .score(THREE[:, 2], C == 2)
        ),
    ),
}


class Scaled(ClassifierMixin, BaseEstimator):
    """A logistic regression whose predictions are changed."""

    def __init__(self, change=lambda p: p):
        self.change = change

    def fit(self, X, y):
        self.model_ = LogisticRegression().fit(X, y)
        self.classes_ = self.model_.classes_
        return self

    def predict_proba(self, X):
        return self.change(self.model_.predict_proba(X))


class Decides(Scaled):
    """The same, by the name of logits."""

    predict_proba = property()

    def decision_function(self, X):
        return self.change(self.model_.predict_proba(X))


def recalibrated(estimator):
    method = skcal.RecalibratedClassifierCV(
        estimator, cv=3, random_state=0, recalibrator=TemperatureScaling()
    )
    return quietly(method.fit, FEATURES, Y).predict_proba(FEATURES)


def odds(proba):
    return logit(proba[:, 1])


def as_it_is():
    return recalibrated(LogisticRegression())


OF_CLASSIFIERS = {
    "Return shape {}, a column for each class.": (
        lambda: recalibrated(Scaled(lambda p: np.hstack([p, p]) / 2)),
        lambda: recalibrated(Scaled(lambda p: p)),
        as_it_is,
    ),
    "Return probabilities.": (
        lambda: recalibrated(Scaled(lambda p: p.astype(str))),
        lambda: recalibrated(Scaled(lambda p: p.astype(str).astype(float))),
        as_it_is,
    ),
    "Correct the classifier.": (
        lambda: recalibrated(Scaled(lambda p: np.where(p > 0.5, np.nan, p))),
        lambda: recalibrated(Scaled(lambda p: np.where(p > 2, np.nan, p))),
        as_it_is,
    ),
    "Return numbers from 0 to 1; name the method decision_function if these are logits.": (
        lambda: recalibrated(Scaled(odds)),
        lambda: [recalibrated(Scaled()), recalibrated(Decides(odds))],
        lambda: [as_it_is(), as_it_is()],
    ),
    "Return rows that sum to 1.": (
        lambda: recalibrated(Scaled(lambda p: p / 2)),
        lambda: recalibrated(Scaled(lambda p: p / p.sum(axis=1, keepdims=True))),
        as_it_is,
    ),
    "Name the method predict_proba.": (
        lambda: recalibrated(Decides()),
        lambda: recalibrated(Scaled()),
        as_it_is,
    ),
    "Fit it before FrozenEstimator({}) is made, which does not fit it.": (
        lambda: recalibrated(FrozenEstimator(LogisticRegression())),
        lambda: recalibrated(FrozenEstimator(LogisticRegression().fit(FEATURES, Y))),
        lambda: of_map(LogisticRegression().fit(FEATURES, Y).predict_proba(FEATURES)),
    ),
}


class Rows(ClassifierMixin, BaseEstimator):
    """A map of scikit-learn's form, of which columns are kept."""

    def __init__(self, columns=slice(None)):
        self.columns = columns

    def fit(self, X, y):
        self.classes_, self.map_ = np.arange(3), TemperatureScaling().fit(X, y)
        return self

    def predict_proba(self, X):
        return self.map_.predict_proba(X)[:, self.columns]


class Mapped(PlattScaling):
    """A map of skcal whose own method may lack a column."""

    columns = slice(None)

    def _map(self, z):
        return super()._map(z)[:, self.columns]


class Cut(Mapped):
    columns = slice(1, None)


def chosen(method):
    search = skcal.Recalibrator([method], do_no_harm=False, random_state=0)
    return quietly(search.fit, THREE, C).predict_proba(THREE)


OF_MAPS = {
    "{}.predict_proba returned an array of shape {} for {} samples of {} classes. Return shape {}: "
    "a column for each class.": (
        lambda: chosen(Rows(slice(2))),
        lambda: chosen(Rows()),
        lambda: chosen(TemperatureScaling()),
    ),
    "{}.{} returned an array of shape {} for {} samples of {} classes. Return a column for each "
    "class.": (
        lambda: Cut().fit(P, Y).predict_proba(P),
        lambda: Mapped().fit(P, Y).predict_proba(P),
        lambda: PlattScaling().fit(P, Y).predict_proba(P),
    ),
}
CASES = {**OF_FUNCTIONS, **OF_NOTIONS, **OF_CLASSIFIERS, **OF_MAPS}
