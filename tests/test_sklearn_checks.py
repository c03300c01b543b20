"""scikit-learn's estimator contract, with every expected failure and its reason."""

import ast
import re
from pathlib import Path

import pytest
import sklearn
from scipy.special import softmax
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import (
    check_estimator,
    check_param_validation,
    check_sample_weight_equivalence_on_dense_data,
)
from sklearn.utils.fixes import parse_version

import skcal
from skcal import (
    Binning,
    CalibrationErrorEstimator,
    CalibrationErrorSearchCV,
    DirichletKernelDensity,
    KroneckerKernelRidge,
    PlugIn,
    RecalibratedClassifierCV,
    Recalibrator,
    Stacking,
    TemperatureScaling,
    TwoStepKernelRidge,
    Zero,
    functions,
    recalibration,
)
from skcal.functions import FixedFunction
from skcal.model_selection import ClassifierProbabilities, FunctionCorrection
from skcal.recalibration import (
    BayesianCalibration,
    BetaCalibration,
    ClassBasedTemperatureScaling,
    DirichletCalibration,
    EnsembleTemperatureScaling,
    HistogramBinning,
    Identity,
    InterceptCalibration,
    IsotonicCalibration,
    LogProbabilities,
    MatrixScaling,
    Mixture,
    PlattScaling,
    ProbabilityInteractions,
    QuadraticScaling,
    RecalibrationMap,
    Smoothed,
    SplineScaling,
    VectorScaling,
    VennAbers,
)

FUNCTIONS = [
    Binning(debias=True),
    DirichletKernelDensity(bandwidth="loo"),
    PlugIn(MatrixScaling(structured=True)),
]
# Other options and maps of these; with -m slow.
MORE_FUNCTIONS = [
    KroneckerKernelRidge(coordinates="square-root", gamma="median"),
    TwoStepKernelRidge(),
    PlugIn(make_pipeline(ProbabilityInteractions(), Ridge()), equivariant=True),
    PlugIn(make_pipeline(LogProbabilities(), LogisticRegression())),
    Zero(),
    Binning(),
    Binning(strategy="median-variance", min_samples=3),
    DirichletKernelDensity(),
    KroneckerKernelRidge(),
    TwoStepKernelRidge(coordinates="log-ratio", kernel="laplacian"),
    PlugIn(LinearRegression()),
    PlugIn(TemperatureScaling()),
    PlugIn(ClassBasedTemperatureScaling()),
    PlugIn(VectorScaling()),
    PlugIn(MatrixScaling()),
    PlugIn(MatrixScaling(structured=True, coordinates="log-ratio", C_intercept=0.1)),
    Stacking([TwoStepKernelRidge(), PlugIn(MatrixScaling(structured=True))], random_state=0),
    Stacking([Zero(), Binning(debias=True), PlugIn(TemperatureScaling())], random_state=0),
]
SCALAR_FUNCTIONS = [PlugIn(SplineScaling())]
MORE_SCALAR_FUNCTIONS = [Binning(), PlugIn(BetaCalibration())]
ANY_FEATURES = [
    KroneckerKernelRidge(),
    TwoStepKernelRidge(gamma="median"),
    Stacking([PlugIn(LinearRegression()), Zero()], cv=2),
]


def inner_product(X, Z):
    return X @ Z.T


MORE_ANY_FEATURES = [
    FixedFunction(inner_product),
    Zero(),
    TwoStepKernelRidge(),
    PlugIn(LinearRegression()),
]

# The checks pass labels of 3 classes beside 2 columns, and predictions have a column per class.
_COLUMNS = "y has more classes than the check's X has columns"
PREDICTIONS_ARE_NOT_FEATURES = dict.fromkeys(
    (
        "check_estimators_overwrite_params",
        "check_estimators_fit_returns_self",
        "check_readonly_memmap_input",
    ),
    _COLUMNS,
)


_WEIGHTS = "check_sample_weight_equivalence_on_dense_data"
FOLDS = {_WEIGHTS: "the copies of a repeated row may come into different folds of the stack"}
MEDIAN = {_WEIGHTS: "the median distance counts a row once, whatever its weight"}


def _of_function(function):
    if isinstance(function, Stacking):
        return FOLDS
    return MEDIAN if getattr(function, "gamma", None) == "median" else {}


def _of_estimator(estimator):
    expected = dict(PREDICTIONS_ARE_NOT_FEATURES)
    if isinstance(estimator, CalibrationErrorSearchCV):
        return expected
    function = estimator.function
    if getattr(function, "debias", False):
        expected[_WEIGHTS] = "the variance of a bin mean is that of importance weights"
    steps = getattr(getattr(function, "estimator", None), "steps", [(None, None)])
    if isinstance(steps[-1][1], LogisticRegression):
        expected[_WEIGHTS] = "LogisticRegression stops at a gradient of 1e-4"
    if isinstance(function, Stacking):
        expected |= FOLDS
    if getattr(function, "gamma", None) == "median":
        expected |= MEDIAN
    return expected


# Without do_no_harm: labels of the checks are random, and the identity has no use for weights.
RECALIBRATOR = Recalibrator(
    [TemperatureScaling()], cv=3, from_logits=True, do_no_harm=False, random_state=0
)
MAPS = [
    TemperatureScaling(from_logits=True),
    MatrixScaling(structured=True, from_logits=True, tol=1e-10),
]
MORE_MAPS = [
    ClassBasedTemperatureScaling(from_logits=True),
    EnsembleTemperatureScaling(from_logits=True),
    DirichletCalibration(from_logits=True, tol=1e-10),
    BayesianCalibration(from_logits=True),
    Smoothed(TemperatureScaling(), from_logits=True),
    Mixture([TemperatureScaling(from_logits=True), Identity(from_logits=True)], [0.5, 0.5]),
    VectorScaling(structured=True, from_logits=True),
    MatrixScaling(from_logits=True),
    *(
        one(from_logits=True)
        for one in (BetaCalibration, HistogramBinning, Identity, IsotonicCalibration, SplineScaling)
    ),
    VennAbers(from_logits=True),
    *(one(from_logits=True) for one in (InterceptCalibration, PlattScaling, QuadraticScaling)),
    Recalibrator([TemperatureScaling()], cv=3, from_logits=True, random_state=0),
    RECALIBRATOR,
    FunctionCorrection(CalibrationErrorEstimator(Binning(), "confidence", from_logits=True)),
]


def _of_map(scaling):
    expected = PREDICTIONS_ARE_NOT_FEATURES | dict.fromkeys(
        ("check_classifiers_classes", "check_classifiers_train"), _COLUMNS
    )
    keep_order = TemperatureScaling | ClassBasedTemperatureScaling | Identity | Recalibrator
    if isinstance(scaling, keep_order | FunctionCorrection | Smoothed | Mixture):
        expected["check_classifiers_one_label"] = "the order of the classes may be kept"
    if isinstance(scaling, DirichletCalibration):
        expected[_WEIGHTS] = "L-BFGS stops at a relative gain of 1e-15, where probabilities of 30 "
        expected[_WEIGHTS] += "classes and 69 samples differ by 1e-6"
    return expected


def estimators(functions, scalar_functions):
    options = {"from_logits": True}
    return [
        *(CalibrationErrorEstimator(one, "canonical", **options) for one in functions),
        *(CalibrationErrorEstimator(one, "confidence", **options) for one in scalar_functions),
    ]


SEARCH = CalibrationErrorSearchCV(
    [(Zero(), {}), (PlugIn(LinearRegression()), {})],
    cv=3,
    from_logits=True,
    random_state=0,
    notion="canonical",
)
CLASSIFIERS = [
    RecalibratedClassifierCV(GaussianNB(), TemperatureScaling(), cv=2),
    RecalibratedClassifierCV(
        LogisticRegression(), Recalibrator([TemperatureScaling()], cv=2), cv=2, ensemble=False
    ),
]


CASES = [
    (_of_function, ANY_FEATURES),
    (_of_map, MAPS),
    (_of_estimator, [*estimators(FUNCTIONS, SCALAR_FUNCTIONS), SEARCH]),
    (lambda estimator: {}, [CLASSIFIERS[0], ClassifierProbabilities(LogisticRegression())]),
]
MORE_CASES = [
    (_of_function, MORE_ANY_FEATURES),
    (lambda estimator: {}, CLASSIFIERS[1:]),
    (_of_map, MORE_MAPS),
    (_of_estimator, estimators(MORE_FUNCTIONS, MORE_SCALAR_FUNCTIONS)),
]


def test_every_public_function_is_checked():
    tried = {
        type(one)
        for one in (
            *FUNCTIONS,
            *MORE_FUNCTIONS,
            *SCALAR_FUNCTIONS,
            *ANY_FEATURES,
            *MORE_ANY_FEATURES,
        )
    }
    public = {getattr(functions, name) for name in functions.__all__}
    assert public - {functions.BilinearFunction} == tried
    maps = {
        one for name in recalibration.__all__ if hasattr(one := getattr(recalibration, name), "fit")
    }
    maps |= {Recalibrator}
    no_maps = {RecalibrationMap, LogProbabilities, ProbabilityInteractions}
    assert maps - no_maps == {type(one) for one in (*MAPS, *MORE_MAPS)} - {FunctionCorrection}


#: Private names of scikit-learn that skcal uses, and why no public one serves.
PRIVATE = {
    "sklearn._config._get_threadlocal_config": "config_context copies the settings twice a call, "
    "which takes as long as a function of a small sample",
    "sklearn.base._fit_context": "the only way by which estimators check parameters as its own do",
    "sklearn.metrics._scorer._BaseScorer": "scorers share predictions and take metadata through it",
    "sklearn.metrics.pairwise._euclidean_distances": "the public function checks again what is "
    "checked, block by block",
    "sklearn.utils._array_api.get_namespace": "the array API of tensors, which torch lacks itself",
    "sklearn.utils._param_validation.HasMethods": "constraints of parameters have no public name",
    "sklearn.utils._param_validation.Hidden": "as HasMethods",
    "sklearn.utils._param_validation.Interval": "as HasMethods",
    "sklearn.utils._param_validation.InvalidParameterError": "as HasMethods",
    "sklearn.utils._param_validation.StrOptions": "as HasMethods",
    "sklearn.utils._param_validation.make_constraint": "as HasMethods",
    "sklearn.utils._param_validation.validate_parameter_constraints": "as HasMethods",
    "sklearn.utils._safe_indexing": "rows of arrays, data frames, sparse matrices and lists",
    "sklearn.utils.parallel._get_threadpool_controller": "a new controller looks for all libraries "
    "again",
    "sklearn.utils.validation._check_method_params": "the rows of what a fit passes on",
    "sklearn.utils.validation._num_samples": "the number of rows of any container",
}


def private_names():
    """What the code imports of scikit-learn with an underscore in its path."""
    found = {}
    for path in Path(skcal.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("sklearn"):
                names = [f"{node.module}.{one.name}" for one in node.names]
                found.update({one: path.name for one in names if "._" in one})
    return found


def test_private_names_of_scikit_learn_are_listed_and_imported_in_one_place():
    assert private_names() == dict.fromkeys(PRIVATE, "_sklearn_compat.py")


#: Failures of estimators of predictions as constructed, with logits, and the number of checks.
FAILURES = {
    "TemperatureScaling": (40, 8, 62),
    "Recalibrator": (44, 8, 68),
    "CalibrationErrorEstimator": (30, 3, 49),
    "CalibrationErrorSearchCV": (30, 3, 49),
}
COUNTED = [MAPS[0], *MORE_MAPS[-3:-2], CASES[2][1][1], SEARCH]
PAGE = Path(__file__).parents[1] / "doc" / "api" / "sklearn_checks.rst"
HEAD = """scikit-learn's checks
=====================

The estimators run through :func:`sklearn.utils.estimator_checks.check_estimator`. The checks pass
features that are no probabilities. Estimators that take predictions refuse them, and so fail most
checks as they are constructed. With ``from_logits=True`` they take any numbers:

.. list-table::
   :header-rows: 1
   :widths: 40 30 30

   * - checks of scikit-learn 1.9 that fail
     - as constructed
     - with ``from_logits=True``
{counts}
Every failure as constructed comes from the refusal of such an X.

With ``from_logits=True`` the checks of the next table fail, for its reasons; all others pass.
Classifiers, :class:`~skcal.model_selection.ClassifierProbabilities` and functions of any features
run as constructed. :class:`~skcal.Binning` and :class:`~skcal.DirichletKernelDensity` need features
in [0, 1] and run inside a :class:`~skcal.CalibrationErrorEstimator`. The checks do not reach
:class:`~skcal.choice.SegmentRecalibrator`, whose ``fit`` needs ``segments``.

.. list-table::
   :header-rows: 1
   :widths: 30 25 45

   * - check
     - estimators
     - reason
"""
NEXT_HEAD = "\nscikit-learn's tests of CalibratedClassifierCV\n"  # see test_sklearn_calibration.py
PRIVATE_HEAD = """
Private names
-------------

skcal imports these private names of scikit-learn, all in ``skcal/_sklearn_compat.py``. A test
compares this list with the code.

.. list-table::
   :header-rows: 1
   :widths: 50 50

   * - name
     - why
"""


def page_of_failures():
    """The page of expected failures, a row for each check and reason."""
    rows: dict[tuple, set] = {}
    for expected, some in [*CASES, *MORE_CASES]:
        for estimator in some:
            function = getattr(estimator, "function", None) or getattr(estimator, "estimator", None)
            name = type(estimator).__name__
            for check, reason in expected(estimator).items():
                of_function = isinstance(estimator, CalibrationErrorEstimator) and check == _WEIGHTS
                shown = f"{name} of {type(function).__name__}" if of_function else name
                rows.setdefault((check, reason), set()).add(shown)
    lines = [
        f"   * - ``{check}``\n     - {', '.join(sorted(names))}\n     - {reason}\n"
        for (check, reason), names in sorted(rows.items())
    ]
    private = [f"   * - ``{name}``\n     - {reason}\n" for name, reason in PRIVATE.items()]
    counts = "".join(
        f"   * - ``{name}()``\n     - {constructed} of {n_checks}\n     - {logits} of {n_checks}\n"
        for name, (constructed, logits, n_checks) in FAILURES.items()
    )
    return HEAD.format(counts=counts) + "".join(lines) + PRIVATE_HEAD + "".join(private)


@pytest.mark.skipif(
    parse_version(sklearn.__version__) < parse_version("1.7"), reason="older checks pass some"
)
def test_the_page_of_expected_failures_is_that_of_the_code():
    text, following, _ = PAGE.read_text(encoding="utf-8").partition(NEXT_HEAD)
    assert text == page_of_failures()
    assert following


@pytest.mark.filterwarnings(
    "ignore:.* did not converge",
    "ignore:The squared calibration error is estimated as -",
    "ignore:Class :UserWarning",
    "ignore:The chosen map makes the predictions worse",  # labels of the checks are random
    "ignore:The frequency of events clearly falls",
    "ignore:divide by zero:RuntimeWarning",  # of classes of weight 0
    "ignore:invalid value:RuntimeWarning",
)
@pytest.mark.parametrize(
    ("expected", "estimator"),
    [
        *(pytest.param(one, e, id=str(e)) for one, some in CASES for e in some),
        *(
            pytest.param(one, e, id=str(e), marks=pytest.mark.slow)
            for one, some in MORE_CASES
            for e in some
        ),
    ],
)
def test_estimators_keep_the_contract(expected, estimator):
    reasons = expected(estimator)
    results = check_estimator(estimator, expected_failed_checks=reasons, on_skip=None, on_fail=None)
    assert len(results) > 30
    failed = {one["check_name"]: one["exception"] for one in results if one["status"] == "failed"}
    assert not failed
    n_expected = sum(one["status"] == "xfail" for one in results)
    if estimator in COUNTED and sklearn.__version__.startswith("1.9"):
        assert (n_expected, len(results)) == FAILURES[type(estimator).__name__][1:]
    passed = {one["check_name"] for one in results if one["status"] == "passed"}
    assert not passed & reasons.keys(), "these pass: no reason is needed"


def test_the_weight_check_of_a_recalibrator_compares_maps_that_change_predictions(monkeypatch):
    changes, predict = [], Recalibrator.predict_proba

    def predict_proba(self, X):
        proba = predict(self, X)
        changes.append(abs(proba - softmax(X, axis=1)).max())
        return proba

    monkeypatch.setattr(Recalibrator, "predict_proba", predict_proba)
    check_sample_weight_equivalence_on_dense_data("Recalibrator", RECALIBRATOR)
    assert changes
    assert min(changes) > 1e-3  # where the check allows 1e-7


def causes(error):
    """The messages of an error and of those that it was raised from."""
    while error is not None:
        yield str(error)
        error = error.__cause__ or error.__context__


OF_PREDICTIONS = {
    type(one)
    for expected, some in [*CASES, *MORE_CASES]
    if expected in (_of_map, _of_estimator)
    for one in some
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "kind", sorted(OF_PREDICTIONS - {FunctionCorrection, Smoothed, Mixture}, key=str)
)
def test_estimators_of_predictions_fail_as_constructed_by_refusing_what_is_no_probability(kind):
    results = check_estimator(kind(), on_skip=None, on_fail=None)
    failed = [one["exception"] for one in results if one["status"] == "failed"]
    refused = re.compile(r"sums to .*, not 1\.|not a probability in \[0, 1\]")
    other = [one for one in failed if not any(map(refused.search, causes(one)))]
    assert not other
    assert 2 * len(failed) > len(results)
    if kind.__name__ in FAILURES and sklearn.__version__.startswith("1.9"):
        constructed, _, n_checks = FAILURES[kind.__name__]
        assert (len(failed), len(results)) == (constructed, n_checks)


def test_parameters_that_are_none_are_refused_by_name():
    every = [FUNCTIONS, MORE_FUNCTIONS, *(some for _, some in (*CASES, *MORE_CASES))]
    for kind, estimator in {type(one): one for some in every for one in some}.items():
        check_param_validation(kind.__name__, estimator)


if __name__ == "__main__":  # writes the page
    following = PAGE.read_text(encoding="utf-8").partition(NEXT_HEAD)[1:]
    PAGE.write_text(page_of_failures() + "".join(following), encoding="utf-8")
