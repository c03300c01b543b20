"""scikit-learn's installed tests of CalibratedClassifierCV, run for RecalibratedClassifierCV."""

import inspect
import os
import subprocess
import sys
from importlib.util import find_spec, module_from_spec
from pathlib import Path

import numpy as np
import pytest
import sklearn
import sklearn.calibration
from sklearn.utils.fixes import parse_version

from skcal import RecalibratedClassifierCV, TemperatureScaling
from skcal._validation import as_given, is_dispatched
from skcal.recalibration import IsotonicCalibration, PlattScaling


class _Temperature(TemperatureScaling):
    """With the name of scikit-learn for 1 / T, as an array of the library and type of X."""

    given = None

    @property
    def beta_(self):
        """The factor of logits; T itself is a number."""
        if not is_dispatched(self.given):
            return 1 / self.temperature_
        return as_given(np.asarray(1 / self.temperature_, str(self.given.dtype)[-7:]), self.given)


ARRAY_API = os.environ.get("SCIPY_ARRAY_API") == "1"
NEWEST = parse_version(sklearn.__version__) >= parse_version("1.9")
METHODS = {
    "sigmoid": PlattScaling,
    "isotonic": IsotonicCalibration,
    "temperature": _Temperature,
}


class CalibratedClassifierCV(RecalibratedClassifierCV):
    """The names of scikit-learn for the parameters and attributes of skcal."""

    _parameter_constraints = {
        name: constraints
        for name, constraints in RecalibratedClassifierCV._parameter_constraints.items()
        if name in ("estimator", "cv", "n_jobs", "ensemble")
    }

    def __init__(self, estimator=None, *, method="sigmoid", cv=None, n_jobs=None, ensemble="auto"):
        self.estimator, self.method, self.cv = estimator, method, cv
        self.n_jobs, self.ensemble = n_jobs, ensemble

    random_state, store_out_of_fold = None, True

    def fit(self, X, y, sample_weight=None, groups=None, **fit_params):
        """Fit, and keep of which library X is."""
        self.given = X
        return super().fit(X, y, sample_weight, groups, **fit_params)

    @property
    def recalibrator(self):
        """The map that a method names."""
        if self.method not in METHODS:
            raise ValueError(f"method={self.method!r} is none of {', '.join(METHODS)}.")
        return METHODS[self.method]()

    @property
    def calibrated_classifiers_(self):
        """The classifiers, each with the one map."""
        return [_Recalibrated(self, classifier) for classifier in self.classifiers_]


class _Recalibrated:
    """One of the classifiers with its map."""

    def __init__(self, whole, classifier):
        self.whole, self.estimator = whole, classifier
        self.calibrators = [whole.recalibrator_.best_estimator_]
        self.calibrators[0].given = whole.given

    def predict_proba(self, X):
        """Probabilities of this classifier alone, recalibrated."""
        one = sklearn.base.clone(self.whole)
        one.__dict__.update(vars(self.whole), classifiers_=[self.estimator])
        return one.predict_proba(X)


def installed_tests():
    """The test functions and fixtures of the installed file, for the class above."""
    if not NEWEST:
        return {}
    spec = find_spec("sklearn.tests.test_calibration")
    if spec is None:
        return {}
    before, module = sklearn.calibration.CalibratedClassifierCV, module_from_spec(spec)
    sklearn.calibration.CalibratedClassifierCV = CalibratedClassifierCV
    try:
        spec.loader.exec_module(module)
    finally:
        sklearn.calibration.CalibratedClassifierCV = before
    sys.modules.setdefault(module.__name__, module)
    for thing in vars(module).values():  # pytest wants lists in place of generators
        for mark in getattr(thing, "pytestmark", ()):
            if mark.name == "parametrize":
                object.__setattr__(mark, "args", (mark.args[0], _once(*mark.args)))
    return {
        name: thing
        for name, thing in vars(module).items()
        if type(thing).__name__.startswith("FixtureFunction") or _is_about_the_class(name, thing)
    }


def _once(names, values):
    """A list of the values; seeds and sparse containers after the first are slow."""
    first, *others = values
    if names in ("seed", "csr_container"):
        others = [pytest.param(value, marks=pytest.mark.slow) for value in others]
    return [first, *others]


def _is_about_the_class(name, thing):
    """Whether a test makes a CalibratedClassifierCV, of other arrays if that can be."""
    if not name.startswith("test_") or ("array_api" in name and not ARRAY_API):
        return False
    return "CalibratedClassifierCV" in inspect.getsource(thing)


@pytest.fixture
def global_random_seed():
    """As that of scikit-learn's ``conftest.py``."""
    return 42


@pytest.fixture
def global_dtype():
    """As that of scikit-learn's ``conftest.py``."""
    return np.float64


#: Cases that fail, and why; the documentation lists them.
FAILURES = {
    "test_calibration_cv_nfold": "LeaveOneOut is taken: one map is fitted to the predictions of "
    "all folds",
    "test_calibration_ensemble_false[sigmoid-calibrator0]": "Platt scaling has a prior, and "
    "probabilities are mixed with uniform ones of weight 1 / (n + 1)",
    "test_calibration_ensemble_false[isotonic-calibrator1]": "isotonic calibration is centred, and "
    "probabilities are mixed with uniform ones of weight 1 / (n + 1)",
    "test_calibration_ensemble_false[temperature-calibrator2]": "probabilities are mixed with "
    "uniform ones of weight 1 / (n + 1)",
    "test_calibration_less_classes[True]": "a training part that lacks a class is refused",
    "test_calibration_less_classes[False]": "a training part that lacks a class is refused",
}


@pytest.fixture(autouse=True)
def expected_failure(request):
    """An unexpected pass fails, since ``xfail_strict`` is set."""
    if request.node.name in FAILURES:
        request.applymarker(pytest.mark.xfail(reason=FAILURES[request.node.name]))


def test_the_documentation_lists_the_failures():
    path = Path(__file__).parents[1] / "doc" / "api" / "sklearn_checks.rst"
    if not path.exists():
        pytest.skip("the documentation is not beside the tests")
    listed = " ".join(path.read_text(encoding="utf-8").split())
    for name, reason in FAILURES.items():
        assert f"``{name}`` - {reason}" in listed
    assert listed.count("``test_") == len(FAILURES)
    assert "8 with NumPy, 16 with array_api_strict and 16 with PyTorch" in listed  # as below


@pytest.mark.skipif(ARRAY_API or not NEWEST, reason="it starts those of scikit-learn 1.9")
@pytest.mark.parametrize(
    ("library", "cases", "n_cases"),
    [
        ("array_api_strict", "strict or numpy", 24),
        pytest.param("torch", "torch", 16, marks=pytest.mark.integrations),
    ],
)
def test_arrays_of_other_libraries_pass(library, cases, n_cases):
    """In another process, since scipy reads its variable when it is imported."""
    pytest.importorskip(library)
    command = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-m", ""]
    done = subprocess.run(
        [sys.executable, *command, __file__, "-k", f"array_api and ({cases})"],
        env={**os.environ, "SCIPY_ARRAY_API": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert f"{n_cases} passed" in done.stdout, done.stdout + done.stderr


globals().update(installed_tests())
pytestmark = pytest.mark.filterwarnings("default")
