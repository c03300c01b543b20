"""scikit-learn's estimator contract, with every expected failure and its reason."""

import pytest
import sklearn
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.fixes import parse_version

from skcal import (
    Binning,
    CalibrationErrorEstimator,
    CalibrationErrorSearchCV,
    DirichletKernelDensity,
    KroneckerKernelRidge,
    PlugIn,
    RecalibratedClassifierCV,
    Stacking,
    TemperatureScaling,
    TwoStepKernelRidge,
    Zero,
)
from skcal.recalibration import (
    BetaCalibration,
    ClassBasedTemperatureScaling,
    LogProbabilities,
    MatrixScaling,
    ProbabilityInteractions,
    SplineScaling,
    VectorScaling,
)

FUNCTIONS = [
    Zero(),
    Binning(),
    Binning(strategy="median-variance", min_samples=3),
    Binning(debias=True),
    DirichletKernelDensity(),
    DirichletKernelDensity(bandwidth="loo"),
    KroneckerKernelRidge(),
    KroneckerKernelRidge(coordinates="square-root", gamma="median"),
    TwoStepKernelRidge(),
    TwoStepKernelRidge(coordinates="log-ratio", kernel="laplacian"),
    PlugIn(LinearRegression()),
    PlugIn(TemperatureScaling()),
    PlugIn(ClassBasedTemperatureScaling()),
    PlugIn(VectorScaling()),
    PlugIn(MatrixScaling()),
    PlugIn(make_pipeline(ProbabilityInteractions(), Ridge()), equivariant=True),
    PlugIn(MatrixScaling(structured=True)),
    PlugIn(MatrixScaling(structured=True, coordinates="log-ratio", C_intercept=0.1)),
    Stacking(
        [Zero(), Binning(debias=True), TwoStepKernelRidge(), PlugIn(MatrixScaling(structured=True))]
    ),
    PlugIn(make_pipeline(LogProbabilities(), LogisticRegression())),
]
SCALAR_FUNCTIONS = [Binning(), PlugIn(SplineScaling()), PlugIn(BetaCalibration())]
ANY_FEATURES = [
    Zero(),
    KroneckerKernelRidge(),
    TwoStepKernelRidge(),
    TwoStepKernelRidge(gamma="median"),
    PlugIn(LinearRegression()),
    Stacking([PlugIn(LinearRegression()), TwoStepKernelRidge()]),
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


@parametrize_with_checks(ANY_FEATURES, expected_failed_checks=_of_function)
def test_functions_of_any_features_keep_the_contract(estimator, check):
    check(estimator)


MAPS = [
    TemperatureScaling(from_logits=True),
    ClassBasedTemperatureScaling(from_logits=True),
    VectorScaling(structured=True, from_logits=True),
    MatrixScaling(from_logits=True),
    MatrixScaling(structured=True, from_logits=True, tol=1e-10),
]


def _of_map(scaling):
    expected = PREDICTIONS_ARE_NOT_FEATURES | dict.fromkeys(
        ("check_classifiers_classes", "check_classifiers_train"), _COLUMNS
    )
    if isinstance(scaling, TemperatureScaling | ClassBasedTemperatureScaling):
        expected["check_classifiers_one_label"] = "a temperature keeps the order of the classes"
    return expected


@pytest.mark.filterwarnings("ignore:.* did not converge")
@parametrize_with_checks(MAPS, expected_failed_checks=_of_map)
def test_recalibration_maps_keep_the_contract(estimator, check):
    check(estimator)


@pytest.mark.filterwarnings("ignore:The squared calibration error is estimated as -")
@pytest.mark.filterwarnings("ignore:Class :UserWarning")
@parametrize_with_checks(
    [
        CalibrationErrorEstimator(function, from_logits=True, notion="canonical")
        for function in FUNCTIONS
    ]
    + [
        CalibrationErrorEstimator(function, notion="confidence", from_logits=True)
        for function in SCALAR_FUNCTIONS
    ]
    + [
        CalibrationErrorSearchCV(
            [(Zero(), {}), (TwoStepKernelRidge(), {"alpha": [1e-3, 1e-1]})],
            cv=3,
            from_logits=True,
            random_state=0,
            notion="canonical",
        )
    ],
    expected_failed_checks=_of_estimator,
)
def test_estimators_of_calibration_errors_keep_the_contract(estimator, check):
    check(estimator)


def _of_classifier(classifier):
    reason = "the copies of a repeated row may come into different folds"
    expected = {_WEIGHTS: reason}
    # Older checks take a refusal of sparse data, as of GaussianNB, for a pass.
    takes_sparse = not isinstance(classifier.estimator, GaussianNB)
    if takes_sparse or parse_version(sklearn.__version__) >= parse_version("1.7"):
        expected[_WEIGHTS.replace("dense", "sparse")] = reason
    return expected


@pytest.mark.filterwarnings("ignore:divide by zero:RuntimeWarning")  # of classes of weight 0
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
@parametrize_with_checks(
    [
        RecalibratedClassifierCV(GaussianNB(), TemperatureScaling(), cv=2),
        RecalibratedClassifierCV(LogisticRegression(), cv=2, ensemble=False),
    ],
    expected_failed_checks=_of_classifier,
)
def test_recalibrated_classifiers_keep_the_contract(estimator, check):
    check(estimator)
