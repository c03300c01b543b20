"""What calls that do not fit a signature are told."""

import importlib
import inspect

import pytest
from sklearn import config_context

from skcal import calibration_report
from skcal._sklearn_compat import validate_params
from skcal.displays import ReliabilityDisplay
from skcal.hypothesis_tests import CalibrationTestResult, compare_calibration, skce_test
from skcal.metrics import expected_calibration_error

Y, P = [0, 1], [[0.5, 0.5], [0.2, 0.8]]
RESULT = CalibrationTestResult(pvalue=1.0, statistic=0.0, method="none", notion="binary")


@pytest.mark.parametrize(
    ("function", "arguments", "options", "message"),
    [
        (
            expected_calibration_error,
            (Y, P),
            {"bins": 10},
            r"^expected_calibration_error\(\) got an unexpected keyword argument 'bins'\. "
            r"Did you mean 'n_bins'\?$",
        ),
        (
            expected_calibration_error,
            (Y, P, 10),
            {},
            r"^expected_calibration_error\(\) takes from 1 to 2 positional arguments but 3 were "
            "given$",
        ),
        (
            compare_calibration,
            (Y,),
            {},
            r"^compare_calibration\(\) missing 1 required positional argument: 'y_proba_a'$",
        ),
        (
            expected_calibration_error,
            (Y, P),
            {"y_true": Y},
            r"^expected_calibration_error\(\) got multiple values for argument 'y_true'$",
        ),
        (skce_test, (Y, P), {"x": Y}, r"^skce_test\(\) got .*'x'\. Use y_true, .*from_logits\.$"),
        (calibration_report, (Y, P), {"n_job": 1}, r"^calibration_report\(\) .*'n_jobs'\?$"),
        (
            ReliabilityDisplay.from_predictions,
            (Y, P),
            {"bins": 10},
            r"^ReliabilityDisplay\.from_predictions\(\) .* Did you mean 'n_bins'\?$",
        ),
        (
            RESULT.confidence_interval,
            (),
            {"confidence_levels": 0.9},
            r"^CalibrationTestResult\.confidence_interval.* Did you mean 'confidence_level'\?$",
        ),
        (RESULT.confidence_interval, (), {"x": 2}, r"Use (?!self)"),
    ],
)
def test_calls_that_do_not_fit_name_the_function_and_what_is_meant(
    function, arguments, options, message
):
    with pytest.raises(TypeError, match=message):
        function(*arguments, **options)
    with config_context(skip_parameter_validation=True), pytest.raises(TypeError, match=r"\(\) "):
        function(*arguments, **options)  # Python's own words


def test_signatures_are_those_of_plain_functions():
    def plain(y_true, y_proba: list, *, notion: str = "auto", **options) -> float: ...

    checked = validate_params({}, prefer_skip_nested_validation=True)(plain)
    assert str(inspect.signature(checked)) == str(inspect.signature(plain))
    assert "self" not in inspect.signature(RESULT.confidence_interval).parameters


# One contract of options over functions, estimators and displays

OPTIONS = {"sample_weight": None, "labels": None, "pos_label": None, "from_logits": False}
OF_CORRECT = "takes whether predictions were right, and confidences"
OF_PROBA = "recalibrates or rescales probabilities, and takes no labels"
OF_INDEPENDENT = "its limits are those of independent samples, as its docstring says"
# What lacks an option, or has another default, and why.
REASONS = {
    ("adjust_prevalence", "sample_weight labels pos_label from_logits"): OF_PROBA,
    ("estimate_prevalence", "labels pos_label from_logits"): OF_PROBA,
    ("normalize_proba", "sample_weight labels pos_label from_logits"): OF_PROBA,
    ("bootstrap_interval", "pos_label from_logits"): "metric_params holds the metric's options",
    ("risk_coverage_curve", "labels pos_label from_logits"): OF_CORRECT,
    ("area_under_risk_coverage", "labels pos_label from_logits"): OF_CORRECT,
    ("coverage_at_risk", "labels pos_label from_logits"): OF_CORRECT,
    (
        "validation_sample_size",
        "sample_weight groups labels pos_label from_logits",
    ): "plans a study",
    ("RiskCoverageDisplay.from_predictions", "labels pos_label from_logits"): OF_CORRECT,
    ("BinCountDisplay.from_predictions", "groups"): OF_INDEPENDENT,
    ("SimplexDisplay.from_predictions", "pos_label"): "shows three classes, none of them positive",
    ("hosmer_lemeshow_test", "groups"): OF_INDEPENDENT,
    ("spiegelhalter_test", "groups"): OF_INDEPENDENT,
    ("calibration_bins", "groups"): OF_INDEPENDENT,
}


def public_callables():
    """Name, callable and kind of everything public."""
    for room in ("metrics", "hypothesis_tests", "displays", "report", "recalibration"):
        module = importlib.import_module(f"skcal.{room}")
        for name in module.__all__:
            public = getattr(module, name)
            if inspect.isfunction(public):
                yield name, public, room
            elif hasattr(public, "from_predictions"):
                yield f"{name}.from_predictions", public.from_predictions, room


def takes(function, option):
    return option in inspect.signature(function).parameters


def expected_options():
    for name, function, room in public_callables():
        if any(takes(function, p) for p in ("y_proba", "y_proba_a", "y_before", "correct")):
            for option, default in OPTIONS.items():
                yield name, function, option, default
            interval = takes(function, "confidence_level") or room == "hypothesis_tests"
            if interval:
                yield name, function, "groups", None
        if takes(function, "random_state"):
            yield name, function, "random_state", 0


def test_options_have_one_name_one_default_and_are_everywhere_or_a_reason_says_why_not():
    lacks = {(name, option) for (name, options) in REASONS for option in options.split()}
    wrong = {}
    for name, function, option, default in expected_options():
        parameter = inspect.signature(function).parameters.get(option)
        found = "missing" if parameter is None else parameter.default
        if found != default or found is not default:
            wrong[name, option] = found
    assert wrong.keys() - lacks == set(), {key: wrong[key] for key in wrong.keys() - lacks}
    assert lacks - wrong.keys() == set()
