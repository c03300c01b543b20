"""Every public estimator, fitted, is stored by skops and says the same when it is read."""

from importlib import import_module

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression
from test_public_surface import surface

from skcal import (
    Binning,
    CalibrationErrorEstimator,
    CalibrationErrorSearchCV,
    TemperatureScaling,
    TwoStepKernelRidge,
    Zero,
)
from skcal.functions import BilinearFunction
from skcal.recalibration import Identity, RecalibrationMap

RNG = np.random.default_rng(0)
THREE = RNG.dirichlet(np.ones(3), 90)
LABELS = (THREE.cumsum(axis=1) < RNG.uniform(size=(90, 1))).sum(axis=1)
PROBLEMS = {
    "three": (THREE, LABELS, np.eye(3)[LABELS] - THREE),
    "one": (THREE[:, 0], 1 * (LABELS == 0), (LABELS == 0)[:, None] - THREE[:, :1]),
}
ESTIMATORS = {
    name: thing
    for module, name, _ in surface()
    if "." not in name
    and isinstance(thing := getattr(import_module(module), name), type)
    and issubclass(thing, BaseEstimator)
    and thing not in (BilinearFunction, RecalibrationMap)
}


def equal(X, Z):
    """A function of a user, whose module skops reads."""
    return np.ones((len(X), len(Z)))


ARGUMENTS = {
    "PlugIn": lambda X, y: (LogisticRegression(),),
    "Stacking": lambda X, y: ([Zero(), TwoStepKernelRidge()],),
    "FixedFunction": lambda X, y: (equal,),
    "FunctionCorrection": lambda X, y: (CalibrationErrorEstimator(Binning(n_bins=3), "canonical"),),
    "ClassifierProbabilities": lambda X, y: (LogisticRegression().fit(X, y),),
    "Mixture": lambda X, y: ([Identity(), TemperatureScaling()], [0.5, 0.5]),
    "Smoothed": lambda X, y: (TemperatureScaling(),),
    "CalibrationErrorSearchCV": lambda X, y: ([Zero(), Binning(n_bins=3)],),
}
#: What takes two classes alone.
OF_TWO = ("SegmentRecalibrator",)


def fitted(name, X, y, residuals):
    """An estimator, fitted, and used once: what it remembers is stored, too."""
    thing = ESTIMATORS[name]
    estimator = thing(*ARGUMENTS.get(name, lambda X, y: ())(X, y))
    if name == "CalibrationMonitor":
        return estimator.update(X, y)
    if name == "SegmentRecalibrator":
        return estimator.fit(X, y, segments={"a": np.arange(90) % 2})
    return estimator.fit(X, residuals if issubclass(thing, BilinearFunction) else y)


def said(estimator, name, X, y):
    """What a fitted estimator returns for its samples."""
    if name == "SegmentRecalibrator":
        return estimator.predict_proba(X, segments={"a": np.arange(90) % 2})
    if name == "CalibrationMonitor":
        return estimator.to_json()
    if isinstance(estimator, CalibrationErrorSearchCV):
        return estimator.error().estimate
    for method in ("predict_proba", "transform", "predict"):
        if hasattr(estimator, method):
            return getattr(estimator, method)(X)
    raise AssertionError(f"say what {name} returns")


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("name", ESTIMATORS)
def test_skops_stores_every_estimator(name, problem):
    skops = pytest.importorskip("skops.io")
    if name in OF_TWO and problem == "three":
        pytest.skip("it takes two classes")
    X, y, residuals = PROBLEMS[problem]
    if issubclass(ESTIMATORS[name], BilinearFunction):
        X = X.reshape(90, -1)
    if name in (
        "RecalibratedClassifierCV",
        "LogProbabilities",
        "ProbabilityInteractions",
        "ClassifierProbabilities",
    ):
        X = THREE  # features
    estimator = fitted(name, X, y, residuals)
    expected = said(estimator, name, X, y)
    stored = skops.dumps(estimator)
    types = skops.get_untrusted_types(data=stored)
    assert all(found.startswith(("skcal.", "test_skops.")) for found in types), types
    assert_array_equal(said(skops.loads(stored, trusted=types), name, X, y), expected)
