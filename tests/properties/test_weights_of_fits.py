"""Weights of fits are numbers of rows, or what they are worth, for every public estimator."""

import inspect
from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.preprocessing import StandardScaler
from test_function_properties import FUNCTIONS, NOT_REPETITIONS

import skcal
from skcal import functions, model_selection, recalibration
from skcal.choice import SegmentRecalibrator
from skcal.functions import BilinearFunction, PlugIn, TwoStepKernelRidge
from skcal.model_selection import CalibrationErrorEstimator, FunctionCorrection
from skcal.recalibration import Identity, Mixture, RecalibrationMap, Smoothed, TemperatureScaling
from skcal.recalibration.mixture import mapped_proba

pytestmark = pytest.mark.filterwarnings("ignore:The frequency of events clearly falls")


def drawn(n, n_classes, seed=0):
    """Predictions that are too extreme and biased, and labels."""
    rng = np.random.default_rng(seed)
    z = 1.5 * rng.normal(size=(n, n_classes))
    truth = softmax(0.7 * z + np.linspace(-0.4, 0.4, n_classes), axis=1)
    y = (truth.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
    return softmax(z, axis=1), np.minimum(y, n_classes - 1)


def accurate(map_class):
    """A map that is found to the last digits."""
    options = {"tol": 1e-12, "max_iter": 5000}
    takes = inspect.signature(map_class).parameters
    return map_class(**{name: value for name, value in options.items() if name in takes})


MAPS = {
    name: accurate(kind)
    for name, kind in vars(recalibration).items()
    if inspect.isclass(kind)
    and issubclass(kind, RecalibrationMap)
    and kind not in (RecalibrationMap, Smoothed)
}
TEMPERATURE = TemperatureScaling()
MAPS |= {
    "Smoothed": Smoothed(MAPS["PlattScaling"]),
    "Mixture": Mixture([Identity(), MAPS["IsotonicCalibration"]], [0.4, 0.6]),
    "FunctionCorrection": FunctionCorrection(
        CalibrationErrorEstimator(TwoStepKernelRidge(1e-2), "canonical")
    ),
    # Choices by tests state an uncertainty, which repeated rows lower and weights do not.
    "Recalibrator": skcal.Recalibrator(do_no_harm=False, random_state=0),
    "Recalibrator, one map": skcal.Recalibrator(
        [MAPS["VennAbers"]], do_no_harm=False, mix=False, random_state=0
    ),
    "RecalibratedClassifierCV": skcal.RecalibratedClassifierCV(
        GaussianNB(), MAPS["IsotonicCalibration"], random_state=0
    ),
}
#: Other estimators whose fit takes weights, and their own tests.
ELSEWHERE = {
    "SegmentRecalibrator": "below",
    "CalibrationErrorEstimator": "holds every function, below",
    "CalibrationErrorSearchCV": "below",
    "ClassifierProbabilities": "hands weights to its classifier",
    "BilinearFunction": "the base class",
    "RecalibrationMap": "the base class",
    "FixedFunction": "learns nothing",
}
ITERATIVE = {"FunctionCorrection", "EnsembleTemperatureScaling"} | {
    name for name, one in MAPS.items() if hasattr(one, "tol") or hasattr(one, "max_iter")
}
# What more rows make more flexible: repeated rows are then followed more closely.
FLEXIBLE = (
    "BayesianCalibration",
    "HistogramBinning",
    "IsotonicCalibration",
    "SplineScaling",
    "VennAbers",
)
every_map = pytest.mark.parametrize("name", MAPS)


def takes_weights(kind):
    return hasattr(kind, "fit") and "sample_weight" in inspect.signature(kind.fit).parameters


def test_every_public_estimator_that_takes_weights_is_tested():
    public = {
        name: getattr(room, name)
        for room in (skcal, functions, recalibration, model_selection)
        for name in room.__all__
        if inspect.isclass(getattr(room, name)) and takes_weights(getattr(room, name))
    }
    tested = {type(one).__name__ for one in MAPS.values()}
    tested |= {type(one).__name__ for one in FUNCTIONS.values()} | set(ELSEWHERE)
    assert set(public) <= tested


def fit(name, P, y, weight=None, folds=None):
    """Fit one of the maps, by folds of given numbers if it has any."""
    estimator = clone(MAPS[name])
    if folds is not None and "cv" in estimator.get_params():
        splits = [(np.flatnonzero(folds != k), np.flatnonzero(folds == k)) for k in range(3)]
        estimator.set_params(cv=splits)
    return estimator.fit(P, y, sample_weight=weight)


def outcomes(kind, y, n_classes):
    """Labels, or shares that go with them."""
    shares = (np.eye(n_classes)[y] + np.roll(np.eye(n_classes), 1, axis=1)[y] / 3) * 0.75
    return shares if kind == "shares" else y


@pytest.mark.parametrize("kind", ["labels", "shares"])
@pytest.mark.parametrize("n_classes", [2, 3])
@every_map
def test_integer_weights_are_repeated_rows_and_weight_0_is_no_row(name, n_classes, kind):
    if kind == "shares" and name == "RecalibratedClassifierCV":
        pytest.skip("a classifier has labels")
    P, y = drawn(90, n_classes)
    times, folds = np.random.default_rng(1).integers(0, 4, 90), np.arange(90) % 3
    happened = outcomes(kind, y, n_classes)
    weighted, rows = fit(name, P, happened, times, folds), np.arange(90).repeat(times)
    repeated = fit(name, P[rows], happened[rows], None, folds[rows])
    if name == "Recalibrator":
        assert weighted.n_rows_ == repeated.n_rows_ == times.sum()
        scores = (one.cv_results_["mean_test_score"] for one in (weighted, repeated))
        assert_allclose(*scores, rtol=1e-6)
        return
    iterative = name in ITERATIVE or name.startswith("Recalibrat")
    tolerance = {"rtol": 1e-6 if iterative else 1e-9, "atol": 1e-12}
    assert_allclose(weighted.predict_proba(P), repeated.predict_proba(P), **tolerance)


@pytest.mark.parametrize("kind", ["labels", "shares"])
@every_map
def test_weights_below_their_worth_count_as_that(name, kind):
    """The same fit at every scale at which the sum is below the effective sample size."""
    if kind == "shares" and name == "RecalibratedClassifierCV":
        pytest.skip("a classifier has labels")
    P, y = drawn(120, 3)
    happened = outcomes(kind, y, 3)
    weight, folds = np.random.default_rng(1).lognormal(0, 0.7, 120), np.arange(120) % 3
    worth = weight.sum() / (weight @ weight)
    if "cv" in clone(MAPS[name]).get_params():  # of every training fold
        worth = min(w.sum() / (w @ w) for w in (weight[folds != k] for k in range(3)))
    one, *others = (
        fit(name, P, happened, c * weight, folds).predict_proba(P)
        for c in (worth, worth / 3, 1e-6, 1e-300)
    )
    for other in others:
        assert_allclose(other, one, rtol=1e-6 if name in ITERATIVE else 1e-9, atol=1e-12)
    equal = fit(name, P, happened, np.full(120, 1e-3), folds).predict_proba(P)
    plain = fit(name, P, happened, None, folds).predict_proba(P)
    assert_allclose(equal, plain, rtol=1e-6 if name in ITERATIVE else 1e-9, atol=1e-12)


HELD_OUT = drawn(4000, 5, seed=1)


def log_loss(fitted):
    P, y = HELD_OUT
    return -np.log(fitted.predict_proba(P)[np.arange(len(y)), y]).mean()


@pytest.mark.parametrize("name", [name for name in MAPS if name != "RecalibratedClassifierCV"])
def test_the_held_out_loss_hardly_depends_on_the_scale_of_weights(name):
    """More rows than there are can only be followed too closely, which is what they ask for."""
    P, y = drawn(1000, 5)
    weight = np.random.default_rng(1).lognormal(0, 0.5, 1000)
    weight /= weight.mean()
    folds = np.arange(1000) % 3
    loss = log_loss(fit(name, P, y, weight, folds))
    more = () if any(kind in str(MAPS[name]) for kind in FLEXIBLE) else (30, 1e6)
    for c in (1e-6, 0.9, *more):
        assert log_loss(fit(name, P, y, c * weight, folds)) == pytest.approx(loss, abs=0.01)


@pytest.mark.parametrize(("weight", "counted"), [(2.0**39, 2.0**39), (2.0**41, 2.0**40)])
def test_a_weight_counts_as_up_to_two_to_the_40_rows(weight, counted):
    P, y = drawn(60, 2)
    fitted = skcal.Recalibrator([TEMPERATURE], random_state=0).fit(P, y, np.full(60, weight))
    assert fitted.n_rows_ == 60 * counted


@pytest.mark.parametrize("name", FLEXIBLE)
def test_ten_times_the_weight_is_every_row_ten_times(name):
    P, y = drawn(150, 2)
    ten = fit(name, P, y, np.full(150, 10)).predict_proba(P)
    repeated = fit(name, P.repeat(10, axis=0), y.repeat(10)).predict_proba(P)
    assert_allclose(ten, repeated, rtol=1e-6 if name in ITERATIVE else 1e-9)


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if name not in NOT_REPETITIONS])
def test_functions_count_rows_and_what_weights_are_worth(name):
    P, y = drawn(60, 3)
    rng = np.random.default_rng(1)
    notion = "canonical"
    if name.startswith("Binning"):
        notion = "confidence"

    def predict(rows, weight):
        estimator = CalibrationErrorEstimator(clone(FUNCTIONS[name]), notion, labels=[0, 1, 2])
        return estimator.fit(P[rows], y[rows], weight).predict(P)

    everyone, times = np.arange(60), rng.integers(0, 4, 60)
    weighted, repeated = predict(everyone, times), predict(everyone.repeat(times), None)
    assert_allclose(weighted, repeated, rtol=1e-6, atol=1e-9)
    weight = rng.lognormal(0, 0.7, 60)
    worth = weight.sum() / (weight @ weight)
    one, *others = (predict(everyone, c * weight) for c in (worth, 1e-6, 1e-300))
    for other in others:
        assert_allclose(other, one, rtol=1e-6, atol=1e-9)
    assert_allclose(predict(everyone, np.full(60, 1e-3)), predict(everyone, None), atol=1e-9)


def test_segment_recalibration_counts_rows_and_what_weights_are_worth():
    rng = np.random.default_rng(0)
    p, site = rng.uniform(0.1, 0.9, 300), rng.integers(0, 2, 300)
    y = (rng.random(300) < np.where(site == 1, p**3, p)).astype(int)
    options = {"cv": 2, "n_resamples": 99, "random_state": 0}

    def offsets(rows, weight):
        recalibrator = SegmentRecalibrator(TEMPERATURE, **options)
        recalibrator.fit(p[rows], y[rows], weight, segments={"site": site[rows]})
        assert recalibrator.segments_
        return [*(segment.offset for segment in recalibrator.segments_), recalibrator.offset_]

    everyone = np.arange(300)
    plain = offsets(everyone, None)
    assert_allclose(offsets(everyone, np.full(300, 1e-3)), plain, rtol=1e-9)
    assert_allclose(offsets(everyone, np.full(300, 2)), offsets(everyone.repeat(2), None), 1e-6)
    weight = rng.lognormal(0, 0.3, 300)
    assert_allclose(offsets(everyone, weight * 1e-6), offsets(everyone, weight * 1e-3), rtol=1e-9)


@pytest.mark.parametrize("scale", [1e-6, 1e-3, 1e-1])
def test_a_search_chooses_by_ratios_of_weights_below_their_worth(scale):
    P, y = drawn(200, 2)
    weight = np.random.default_rng(1).lognormal(0, 0.5, 200)
    weight /= weight.max() * 2
    candidates = [
        (PlugIn(LogisticRegression()), {"estimator__C": [0.01, 1]}),
        (PlugIn(MAPS["VectorScaling"]), {"estimator__C": [0.01, 1]}),
        (TwoStepKernelRidge(), {"alpha": [1e-3, 1e-1]}),
    ]
    for passed in (weight, np.ones(200)):
        one, other = (
            skcal.CalibrationErrorSearchCV(candidates, "binary", cv=3, random_state=0).fit(
                P[:, 1], y, passed * c
            )
            for c in (1, scale)
        )
        assert str(other.best_function_) == str(one.best_function_)
        for name in ("squared_error_", "best_risk_", "standard_error_"):
            if hasattr(one, name):
                assert getattr(other, name) == pytest.approx(getattr(one, name), rel=1e-5)


class Noting(ClassifierMixin, BaseEstimator):
    """A user's own classifier or map, which keeps the weights that it gets."""

    seen: list = []

    def fit(self, X, y, sample_weight=None):
        self.seen.append(sample_weight)
        self.classes_ = np.unique(y)
        self.model_ = LogisticRegression().fit(X, y)
        return self

    def predict_proba(self, X):
        return self.model_.predict_proba(X)


class NotingFunction(BilinearFunction):
    """A user's own function, which keeps the weights that it gets."""

    seen: list = []

    def fit(self, X, y, sample_weight=None):
        self.seen.append(sample_weight)
        self._validate(X, y, sample_weight)
        self.form_ = None
        return self

    def residual(self, X):
        return np.zeros((len(X), self._n_residuals))


def test_a_users_own_estimators_get_the_weights_as_passed():
    P, y = drawn(120, 2)
    weight = 1e-6 * np.random.default_rng(1).lognormal(0, 1, 120)
    rows = partial(np.isin, test_elements=weight)
    for kind, estimator, X in (
        (Noting, skcal.RecalibratedClassifierCV(Noting(), TEMPERATURE, cv=3), P[:, :1]),
        (Noting, skcal.Recalibrator([Noting()], cv=3, random_state=0), P),
        (Noting, Mixture([Noting()], [1.0]), P),
        (NotingFunction, CalibrationErrorEstimator(NotingFunction(), "binary"), P[:, 1]),
        (
            NotingFunction,
            skcal.CalibrationErrorSearchCV([(NotingFunction(), {})], "binary", cv=3),
            P[:, 1],
        ),
    ):
        kind.seen = []
        estimator.fit(X, y, sample_weight=weight)
        assert kind.seen
        for seen in kind.seen:
            assert rows(seen).all()


def test_a_map_is_mixed_with_uniform_probabilities_by_the_rows_of_its_weights():
    P, y = drawn(100, 3)
    for weight, n in ((np.full(100, 2.0), 200), (np.full(100, 1e-3), 100), (None, 100)):
        fitted = skcal.Recalibrator([TEMPERATURE], do_no_harm=False, cv=3, random_state=0)
        fitted.fit(P, y, weight)
        assert fitted.n_rows_ == n
        own = fitted.best_estimator_.predict_proba(P)
        assert_allclose(fitted.predict_proba(P), (n * own + 1 / 3) / (n + 1), rtol=1e-12)
        assert_allclose(mapped_proba(fitted.best_estimator_, P, n, 3), fitted.predict_proba(P))
        again = skcal.Recalibrator.from_json(fitted.to_json())
        assert again.predict_proba(P).tobytes() == fitted.predict_proba(P).tobytes()


@pytest.mark.parametrize("ensemble", [True, False])
@pytest.mark.parametrize("map_name", ["PlattScaling", "IsotonicCalibration", "TemperatureScaling"])
def test_doubled_weights_are_doubled_rows_of_a_classifier(map_name, ensemble):
    """What scikit-learn tests of ``CalibratedClassifierCV``, whose folds are then equal."""
    X, y = load_iris(return_X_y=True)
    X, y = StandardScaler().fit_transform(X)[:100], y[:100]
    model = skcal.RecalibratedClassifierCV(
        LogisticRegression(), MAPS[map_name], cv=2, ensemble=ensemble
    )
    weighted = clone(model).fit(X, y, sample_weight=np.full(100, 2))
    repeated = clone(model).fit(X.repeat(2, axis=0), y.repeat(2))
    for one, other in zip(weighted.classifiers_, repeated.classifiers_, strict=True):
        assert_allclose(one.coef_, other.coef_)
    assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X))
