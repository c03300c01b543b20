"""Advice of searches, functions and recalibrated classifiers: as tests/advice_of_input.py."""

from functools import cache, partial

import numpy as np
import sklearn
from advice_of_input import GROUPS, HOT, THREE, WEIGHT, C, N, P, Y, quietly
from scipy.special import expit, logit, softmax
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    ShuffleSplit,
    StratifiedGroupKFold,
    StratifiedKFold,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.svm import SVC

import skcal
from skcal import CalibrationErrorEstimator, CalibrationErrorSearchCV, functions
from skcal.choice import SegmentRecalibrator
from skcal.model_selection import FunctionCorrection, compare_risks
from skcal.recalibration import LogProbabilities, TemperatureScaling

ROWS = np.arange(N)
X, DELTA = P[:, None], (Y - P)[:, None]
LOGITS = logit(P)
FEATURES = np.column_stack([LOGITS, WEIGHT])
CUT = [(ROWS[::2], ROWS[1::2]), (ROWS[1::2], ROWS[::2])]  # through groups of 4
BLOCKS = [(np.delete(ROWS, part), part) for part in np.array_split(ROWS, 3)]
SORTED, IN_ORDER = np.sort(C), THREE[np.argsort(C, kind="stable")]
RARE = np.where(ROWS == 5, 2, C % 2)
BINNING = skcal.Binning(debias=False)
RIDGE = skcal.TwoStepKernelRidge(gamma=2.0)
WITH_RESIDUAL = [
    skcal.PlugIn(LogisticRegression()),
    RIDGE,
    BINNING,
    skcal.DirichletKernelDensity(),
    skcal.Stacking([BINNING], random_state=0),
]
FEW = slice(0, 8)


class Wild(skcal.Binning):
    """A function whose risk is infinite."""

    def fit(self, X, y, sample_weight=None):
        super().fit(X, y, sample_weight)
        self.form_ = np.array([[1e200]])
        return self

    def feature_map(self, X):
        return np.full((len(X), 1), 1e200)


def search(*found, proba=P, y=Y, groups=None, loud=False, **options):
    candidates = [(function, {}) for function in found or [BINNING]]
    method = CalibrationErrorSearchCV(candidates, **{"cv": 3, "random_state": 0, **options})
    return (method.fit if loud else partial(quietly, method.fit))(proba, y, groups=groups)


@cache
def of_binning(debias=False):
    return search(skcal.Binning(debias=debias))


@cache
def with_both():
    """A search from logits whose best function has no residual, beside one that has."""
    return search(Spread(debias=True), RIDGE, proba=LOGITS, from_logits=True)


class Spread(skcal.Binning):
    """The best function of a search, for its risk is as low as can be."""

    def score(self, X, y, sample_weight=None):
        return 0.0


def squared(found):
    return found.squared_error_


def recalibrated(**options):
    method = skcal.Recalibrator([TemperatureScaling()], do_no_harm=False, random_state=0, **options)
    return partial(quietly, method.fit)


def proba_of(estimator=None, X=FEATURES, y=Y, fit=None, **options):
    options = {"cv": 3, "random_state": 0, "recalibrator": TemperatureScaling(), **options}
    method = skcal.RecalibratedClassifierCV(estimator or LogisticRegression(), **options)
    return quietly(method.fit, X, y, **(fit or {})).predict_proba(X)


def loudly(estimator=None, X=FEATURES, y=Y, fit=None, **options):
    options = {"cv": 3, "random_state": 0, "recalibrator": TemperatureScaling(), **options}
    skcal.RecalibratedClassifierCV(estimator or LogisticRegression(), **options).fit(
        X, y, **(fit or {})
    )


def by_folds(estimator=None, X=FEATURES, y=Y, cv=3, weight=None):
    """What a recalibrated classifier predicts, by its definition: the mean over its folds."""
    estimator = estimator or LogisticRegression()
    fits, given = [], {} if weight is None else {"sample_weight": weight}
    names, codes = np.unique(y, return_inverse=True)
    held_out, m = np.empty((len(X), len(names))), len(names)
    folds = StratifiedKFold(cv) if isinstance(cv, int) else cv
    for train, test in folds.split(X, y) if hasattr(folds, "split") else folds:
        of_train = {name: values[train] for name, values in given.items()}
        fits.append(sklearn.base.clone(estimator).fit(X[train], codes[train], **of_train))
        held_out[test] = fits[-1].predict_proba(X[test])
    fitted = TemperatureScaling().fit(held_out, codes, **given)
    n = len(X) if weight is None else weight.sum()
    each = [n * fitted.predict_proba(part.predict_proba(X)) + 1 / m for part in fits]
    return np.mean(each, axis=0) / (n + 1)


class Drops(LogisticRegression):
    """A classifier that forgets a class."""

    def fit(self, X, y, sample_weight=None):
        return super().fit(np.asarray(X)[y < 2], np.asarray(y)[y < 2])


FROZEN = FrozenEstimator(LogisticRegression().fit(FEATURES, Y))
PIPELINE = make_pipeline(FunctionTransformer(), LogisticRegression())
EARLY = GROUPS < 15
LATE = (GROUPS > 27).astype(int)
SHUFFLED = StratifiedKFold(5, shuffle=True, random_state=0)
SHUFFLED_GROUPS = StratifiedGroupKFold(2, shuffle=True, random_state=0)
TILTED = (np.random.default_rng(3).random(N) < np.where(EARLY, P**0.3, P**3)).astype(int)


@cache
def of_segments(name="early"):
    method = SegmentRecalibrator(skcal.Recalibrator([TemperatureScaling()], random_state=0))
    return quietly(
        method.fit, P, TILTED, segments={name: EARLY if name == "early" else 1.0 * EARLY}
    )


def off_by_segments(proba):
    """The larger mean residual of both segments; of P it is above 0.2."""
    return max(abs((TILTED - proba)[rows].mean()) for rows in (EARLY, ~EARLY))


def minimum(A, B):
    return np.minimum(A, B.T)


def risk(function, X=X, y=DELTA):
    return function.fit(X, y).score(X, y)


SEARCHES = {
    "No candidate has a finite risk. Pass others in candidates.": (
        lambda: search(Wild(), loud=True),
        lambda: squared(search(BINNING)),
        lambda: squared(of_binning()),
    ),
    "The best function, {}, has no residual(X) to be added to predictions. Fit "
    "skcal.model_selection.FunctionCorrection(sklearn.base.clone(search.best_estimator_)."
    "set_params(function=search.one_step_function_)) to the samples instead: the best function "
    "that has.": (
        lambda: with_both().recalibrator(),
        lambda: (
            skcal.model_selection.FunctionCorrection(
                sklearn.base.clone(with_both().best_estimator_).set_params(
                    function=with_both().one_step_function_
                )
            )
            .fit(LOGITS, Y)
            .predict_proba(LOGITS)
        ),
        lambda: (
            FunctionCorrection(CalibrationErrorEstimator(RIDGE, from_logits=True))
            .fit(LOGITS, Y)
            .predict_proba(LOGITS)
        ),
    ),
    "There is no one-step estimate: no candidate has `residual` other than zero throughout. Add "
    "one that has, such as skcal.TwoStepKernelRidge().": (
        lambda: of_binning(debias=True).lower_confidence_bound(),
        lambda: search(skcal.Binning(debias=True), skcal.TwoStepKernelRidge()).one_step_.value,
        lambda: search(skcal.TwoStepKernelRidge()).one_step_.value,
    ),
    "There is no correction of the predictions: no candidate has `residual`. Add one that has, "
    "such as skcal.TwoStepKernelRidge().": (
        lambda: of_binning(debias=True).error("l2"),
        lambda: np.isfinite(
            search(skcal.Binning(debias=True), skcal.TwoStepKernelRidge()).error("l2").estimate
        ),
        True,
    ),
    "kind={} is unknown. Use one of {}.": (
        lambda: of_binning().error("mean"),
        lambda: [
            np.isfinite(of_binning().error(kind).signed)
            for kind in ("squared", "rms", "l1", "l2", "log")
        ],
        [True] * 5,
    ),
    "The log error is infinite: what happened in tested sample {} has probability 0, so that the "
    "log loss of the model is infinite. Keep predictions away from 0 and 1, or use kind='l1'.": (
        lambda: search(proba=np.r_[P, 0.0], y=np.r_[Y, 1]).error("log"),
        lambda: [
            np.isfinite(found.error(kind).signed)
            for found, kind in [
                (search(proba=np.r_[P, 0.01], y=np.r_[Y, 1]), "log"),
                (search(proba=np.r_[P, 0.0], y=np.r_[Y, 1]), "l1"),
            ]
        ],
        [True, True],
    ),
    "An interval needs at least 2 test samples, there are {}. Pass a larger test split.": (
        lambda: search(outer_cv=[(ROWS[1:], ROWS[:1])]).confidence_interval(),
        lambda: search(outer_cv=[(ROWS[60:], ROWS[:60])]).confidence_interval()[0] < 1,
        True,
    ),
    "{} has no residual(X). Use TwoStepKernelRidge, PlugIn, Binning without debias, "
    "DirichletKernelDensity or Stacking.": (
        lambda: CalibrationErrorEstimator(skcal.Binning(debias=True)).fit(P, Y).one_step,
        lambda: [
            np.isfinite(quietly(CalibrationErrorEstimator(f).fit(P, Y).one_step, P, Y).value)
            for f in WITH_RESIDUAL
        ],
        [True] * 5,
    ),
    "{} has no residual(X), which would be added to the predictions. Use PlugIn, "
    "TwoStepKernelRidge, Binning without debias, DirichletKernelDensity or Stacking.": (
        lambda: FunctionCorrection(CalibrationErrorEstimator(skcal.Binning(debias=True))).fit(P, Y),
        lambda: [corrected(P, Y, f)[:, 1] for f in WITH_RESIDUAL],
        lambda: [
            moved(CalibrationErrorEstimator(f).fit(P, Y).functions_[0].residual(X)[:, 0])
            for f in WITH_RESIDUAL
        ],
    ),
    "notion={} corrects sums of probabilities and tells no probability of a class. Use "
    "'canonical', 'confidence', 'top-label' or 'classwise'.": (
        lambda: FunctionCorrection(CalibrationErrorEstimator(BINNING, notion="top-2")).fit(
            THREE, C
        ),
        lambda: [  # predictions that are right on average
            np.abs((HOT - corrected(THREE, C, BINNING, notion=notion)).mean(axis=0)).max() < 0.02
            for notion in ("canonical", "confidence", "top-label", "classwise")
        ],
        [True] * 4,
    ),
    "Use notion='confidence' or 'classwise'.": (
        lambda: compared("top-label", groups=GROUPS),
        lambda: [compared(notion, groups=GROUPS) for notion in ("confidence", "classwise")],
        [0, 0],
    ),
    "The risk needs pairs: no class is predicted for 2 samples (n_samples = {}). Pass more "
    "samples.": (
        lambda: compared("top-label", rows=np.unique(THREE.argmax(axis=1), return_index=True)[1]),
        lambda: compared("top-label"),
        0,
    ),
}


def moved(residual):
    """P with a residual added, where no outcome loses all but 1 / √N of its probability."""
    pair = np.maximum([P + residual, 1 - P - residual], np.array([P, 1 - P]) / np.sqrt(N))
    return pair[0] / pair.sum(axis=0)


def corrected(proba, y, function, **options):
    estimator = CalibrationErrorEstimator(function, **options)
    return FunctionCorrection(estimator).fit(proba, y).predict_proba(proba)


def compared(notion, rows=slice(None), **options):
    fitted = CalibrationErrorEstimator(BINNING, notion=notion).fit(THREE, C)
    return compare_risks(fitted, fitted, THREE[rows], C[rows], **options).difference


PLANS = {
    "cv={} makes {} blocks, and functions are fitted without two of them. Pass {}.": (
        lambda: search(cv=2),
        lambda: [squared(search(cv=3)), squared(search(cv=2, outer_cv=BLOCKS)) < 1],
        lambda: [squared(of_binning()), True],
    ),
    "cv validates sample {} {} times. To test on every sample, its validation sets must hold each "
    "sample once; otherwise pass outer_cv, such as ShuffleSplit(1, test_size=0.2).": (
        lambda: search(cv=BLOCKS[:2]),
        lambda: [
            squared(search(cv=BLOCKS)),
            squared(search(cv=3, outer_cv=ShuffleSplit(1, test_size=0.2))) < 1,
        ],
        lambda: [squared(search(cv=KFold(3))), True],
    ),
    "cv holds fixed rows, but there are several outer splits and so several training sets. Pass an "
    "int or a splitter as cv.": (
        lambda: search(cv=BLOCKS, outer_cv=KFold(3)),
        lambda: [squared(search(cv=cv, outer_cv=KFold(3))) < 1 for cv in (3, KFold(3))],
        [True, True],
    ),
    "n_repeats={} shuffles the samples anew, which outer_cv of type {} does not allow. Pass None, "
    "an int or a ShuffleSplit without random_state as outer_cv.": (
        lambda: search(outer_cv=KFold(3), n_repeats=2),
        lambda: [
            squared(search(outer_cv=outer_cv, n_repeats=2)) < 1
            for outer_cv in (None, 3, ShuffleSplit(1, test_size=0.2))
        ],
        [True] * 3,
    ),
    "outer_cv leaves 0 test samples in split {} of {} samples. Pass fewer splits or a larger "
    "test_size.": (
        lambda: weighted(KFold(60)),
        lambda: [weighted(cv) < 1 for cv in (KFold(3), ShuffleSplit(1, test_size=0.5))],
        [True, True],
    ),
    "cv leaves {} {} sample(s) in fold {} of {} samples (n_samples); a risk needs 2. Pass {}more "
    "samples.": (
        lambda: search(proba=P[FEW], y=Y[FEW], cv=5),
        lambda: [
            squared(search(proba=P[FEW], y=Y[FEW], cv=3)) < 1,
            squared(search(proba=P[:12], y=Y[:12], cv=5)) < 1,
        ],
        [True, True],
    ),
    "Class {} ({} such classes) is predicted for fewer than 2 samples of some fold: it adds no "
    "risk there, and where it was not trained its error is estimated as 0. Pass more samples, or "
    "notion='confidence', which takes all predicted classes together.": (
        lambda: search(proba=THREE[:20], y=C[:20], notion="top-label", loud=True),
        lambda: [
            squared(search(proba=THREE, y=C, notion="top-label")) < 1,
            squared(search(proba=THREE[FEW], y=C[FEW], notion="confidence")) < 1,
        ],
        [True, True],
    ),
    "{}: {}. Pass {}more samples of this class.": (
        lambda: mapped(IN_ORDER, SORTED, KFold(3)),
        lambda: [
            mapped(IN_ORDER, SORTED, 3) is not None,
            mapped(np.tile(THREE, (2, 1)), np.r_[C, C], 3) is not None,
        ],
        [True, True],
    ),
    "Pass a number of folds or a splitter.": (
        lambda: recalibrated(cv=[])(P, Y),
        lambda: [recalibrated(cv=cv)(P, Y).predict_proba(P) for cv in (3, KFold(3))],
        lambda: [of_map(P)] * 2,
    ),
}


def weighted(outer_cv):
    method = CalibrationErrorSearchCV([(BINNING, {})], outer_cv=outer_cv, cv=3, random_state=0)
    return squared(quietly(method.fit, P, Y, sample_weight=(ROWS > 3).astype(float)))


def mapped(proba, y, cv):
    return skcal.Recalibrator([TemperatureScaling()], cv=cv, random_state=0).fit(proba, y)


CHOICE = {
    "Pass pairs of arrays: rows of training, and of test.": (
        lambda: recalibrated(cv=[ROWS[:60]])(P, Y),
        lambda: recalibrated(cv=BLOCKS)(P, Y).predict_proba(P),
        lambda: recalibrated(cv=KFold(3))(P, Y).predict_proba(P),
    ),
    "Pass an int, or a splitter of groups such as GroupKFold.": (
        lambda: recalibrated(cv=CUT)(P, Y, groups=GROUPS),
        lambda: [
            recalibrated(cv=cv)(P, Y, groups=GROUPS).predict_proba(P) for cv in (3, GroupKFold(3))
        ],
        lambda: [of_map(P)] * 2,
    ),
    "Leave cv out, and pass FrozenEstimator(estimator) of sklearn.frozen.": (
        lambda: proba_of(FROZEN.estimator, cv="prefit"),
        lambda: (
            skcal.RecalibratedClassifierCV(
                FrozenEstimator(FROZEN.estimator), recalibrator=TemperatureScaling()
            )
            .fit(FEATURES, Y)
            .predict_proba(FEATURES)
        ),
        lambda: of_map(FROZEN.predict_proba(FEATURES)),
    ),
    "Pass numpy.asarray(y).astype(str).": (
        lambda: proba_of(y=MARKED),
        lambda: proba_of(y=np.asarray(MARKED).astype(str)),
        lambda: proba_of(y=np.where(MARKED < 0, 0, MARKED + 1)),
    ),
    "Pass labels as the classifier was trained on.": (
        lambda: proba_of(FROZEN, y=Y + 1),
        lambda: proba_of(FROZEN, y=Y),
        lambda: of_map(FROZEN.predict_proba(FEATURES)),
    ),
    "Pass {}__sample_weight to fit, too, for its last step.": (
        lambda: loudly(PIPELINE, fit={"sample_weight": WEIGHT}),
        lambda: proba_of(
            PIPELINE,
            fit={"sample_weight": WEIGHT, "logisticregression__sample_weight": WEIGHT},
        ),
        lambda: proba_of(fit={"sample_weight": WEIGHT}),
    ),
    "Pass cv={}({}, shuffle=True).": (
        lambda: proba_of(y=SORTED, cv=KFold(3)),
        lambda: [
            proba_of(y=SORTED, cv=SHUFFLED)[:, 1],
            proba_of(y=LATE, fit={"groups": GROUPS}, cv=SHUFFLED_GROUPS)[:, 1],
        ],
        lambda: [
            by_folds(y=SORTED, cv=SHUFFLED)[:, 1],
            by_folds(y=LATE, cv=list(SHUFFLED_GROUPS.split(FEATURES, LATE, GROUPS)))[:, 1],
        ],
    ),
    "This class has one {}: pass more of it, or leave the class out.": (
        lambda: proba_of(y=RARE, cv=KFold(3)),
        lambda: [
            *proba_of(y=np.where(ROWS % 40 == 5, 2, RARE), cv=KFold(3))[:, 1],
            *proba_of(X=np.delete(FEATURES, 5, 0), y=np.delete(RARE, 5), cv=KFold(3))[:, 1],
        ],
        lambda: [
            *by_folds(y=np.where(ROWS % 40 == 5, 2, RARE), cv=KFold(3))[:, 1],
            *by_folds(X=np.delete(FEATURES, 5, 0), y=np.delete(RARE, 5), cv=KFold(3))[:, 1],
        ],
    ),
    "{} was fitted to the classes {}, but its classes_ are {}. Pass a classifier that keeps all "
    "classes.": (
        lambda: proba_of(Drops(), y=C),
        lambda: proba_of(LogisticRegression(), y=C),
        lambda: by_folds(y=C),
    ),
    "Pass a classifier with a column per class, such as": (
        lambda: proba_of(SVC(decision_function_shape="ovo"), y=ROWS % 4),
        lambda: proba_of(SVC(decision_function_shape="ovr"), y=ROWS % 4),
        lambda: proba_of(SVC(), y=ROWS % 4),
    ),
    "Pass what SegmentRecalibrator.to_json() returned.": (
        lambda: SegmentRecalibrator.from_json("{}"),
        lambda: SegmentRecalibrator.from_json(of_segments().to_json()).predict_proba(
            P, segments=SEGMENT
        ),
        lambda: of_segments().predict_proba(P, segments=SEGMENT),
    ),
    "Pass more samples of this class.": (
        lambda: quietly(SegmentRecalibrator(random_state=0).fit, P, ROWS == 5, segments=SEGMENT),
        lambda: off_by_segments(of_segments().predict_proba(P, segments=SEGMENT)[:, 1]) < 0.06,
        True,
    ),
    "Pass one label per sample; are the arguments swapped?": (
        lambda: SegmentRecalibrator().fit(P, HOT, segments=SEGMENT),
        lambda: off_by_segments(of_segments().predict_proba(P, segments=SEGMENT)[:, 1]) < 0.06,
        True,
    ),
    "Pass numbers, as before.": (
        lambda: of_segments("age").predict_proba(P, segments={"age": EARLY.astype(str)}),
        lambda: of_segments("age").predict_proba(P, segments={"age": 1.0 * EARLY})[EARLY][:, 1],
        lambda: of_segments().predict_proba(P, segments=SEGMENT)[EARLY][:, 1],
    ),
    "Pass the columns of fit.": (
        lambda: of_segments().predict_proba(P, segments={"late": ~EARLY}),
        lambda: of_segments().predict_proba(P[EARLY], segments={"early": EARLY[EARLY]}),
        lambda: of_segments().predict_proba(P, segments=SEGMENT)[EARLY],
    ),
}
MARKED = np.where(RARE == 2, -100, np.where(np.arange(N) % 3 == 0, -100, C))
SEGMENT = {"early": EARLY}


def of_map(proba):
    """A map of the predictions, mixed with uniform ones as one more row."""
    return (N * TemperatureScaling().fit(proba, Y).predict_proba(proba) + 0.5) / (N + 1)


FUNCTIONS = {
    "{}.fit does not take sample_weight, which searches and estimators pass. Define fit(self, X, "
    "y, sample_weight=None).": (
        lambda: type("Own", (skcal.Binning,), {"fit": lambda self, X, y: self}),
        lambda: risk(type("Own", (skcal.Binning,), {"fit": own_fit})()),
        lambda: risk(skcal.Binning()),
    ),
    "y has {} columns of residuals, the function was fitted on {}. Pass the residuals of the same "
    "notion.": (
        lambda: skcal.Binning().fit(X, DELTA).score(X, HOT - THREE),
        lambda: skcal.Binning().fit(X, DELTA).score(X, DELTA),
        lambda: risk(skcal.Binning(), y=Y - P),
    ),
    "X row {} and y row {} add up to {}, not to an outcome (0 or 1, or a unit vector{}). Pass y = "
    "outcome - X.": (
        lambda: skcal.DirichletKernelDensity().fit(X, Y),
        lambda: risk(skcal.DirichletKernelDensity(), y=Y[:, None] - X),
        lambda: risk(skcal.DirichletKernelDensity()),
    ),
    'gamma="median" is for the kernels "rbf" and "laplacian", not {}. Pass a number.': (
        lambda: risk(skcal.KroneckerKernelRidge(kernel="polynomial", gamma="median")),
        lambda: risk(skcal.KroneckerKernelRidge(kernel="polynomial", gamma=1.0)) < 1,
        True,
    ),
    "Pass FixedFunction(function, n_landmarks) with more, or a smoother function.": (
        lambda: functions.FixedFunction(minimum, 3).fit(X, DELTA),
        lambda: [
            functions.FixedFunction(minimum, N).fit(X, DELTA).predict_pairs(X),
            functions.FixedFunction(smooth, 3).fit(X, DELTA).predict_pairs(X),
        ],
        lambda: [np.minimum(X, X.T), X @ X.T],
    ),
    "functions[{}] is {}. Pass calibration-estimation functions, such as skcal.Binning(); wrap "
    "scikit-learn estimators and recalibration maps as skcal.PlugIn(estimator).": (
        lambda: risk(skcal.Stacking([LogisticRegression()])),
        lambda: [
            risk(skcal.Stacking([part])) < 1
            for part in (
                skcal.Binning(),
                *map(skcal.PlugIn, (FROZEN.estimator, TemperatureScaling())),
            )
        ],
        [True] * 3,
    ),
    "Pass probabilities.{}": (
        lambda: skcal.Binning().fit(np.array(["a", "b"])[Y], P),
        lambda: risk(skcal.Binning(), P[:, None], Y - P),
        lambda: risk(skcal.Binning()),
    ),
    "Reshape your data by X.reshape(-1, 1) if it is single probabilities, P(positive class); else "
    "pass (n_samples, n_classes).{}": (
        lambda: skcal.Binning().fit(P, Y - P),
        lambda: [
            risk(skcal.Binning(), P.reshape(-1, 1), Y - P),
            risk(skcal.Binning(), THREE, HOT - THREE) < 1,
        ],
        lambda: [risk(skcal.Binning()), True],
    ),
    "For logits pass scipy.special.{}.": (
        lambda: LogProbabilities().fit(LOGITS[:, None]),
        lambda: [
            LogProbabilities().fit_transform(expit(LOGITS)[:, None])[:, 0],
            LogProbabilities().fit_transform(softmax(np.log(THREE), axis=1))[:, 1],
        ],
        lambda: [LOGITS, np.log(THREE)[:, 1]],
    ),
}


def own_fit(self, X, y, sample_weight=None):
    return skcal.Binning.fit(self, X, y, sample_weight)


def smooth(A, B):
    return A @ B.T


CASES = {**SEARCHES, **PLANS, **CHOICE, **FUNCTIONS}
