"""What calls that do not fit a signature are told."""

import inspect

import pytest
from sklearn import config_context

from skcal import calibration_report
from skcal._sklearn_compat import validate_params
from skcal.displays import ReliabilityDisplay
from skcal.hypothesis_tests import skce_test
from skcal.metrics import CalibrationAccumulator, expected_calibration_error

Y, P = [0, 1], [[0.5, 0.5], [0.2, 0.8]]


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
            r"^expected_calibration_error\(\) got too many positional arguments\. "
            r"Pass options by name\.$",
        ),
        (
            expected_calibration_error,
            (Y,),
            {},
            r"^expected_calibration_error\(\) missing a required argument: 'y_proba'$",
        ),
        (
            expected_calibration_error,
            (Y, P),
            {"y_true": Y},
            r"^expected_calibration_error\(\) got multiple values for argument 'y_true'$",
        ),
        (
            skce_test,
            (Y, P),
            {"from_logits": Y},
            r"^skce_test\(\) got .*'from_logits'\. Use y_true, .*pos_label\.$",
        ),
        (calibration_report, (Y, P), {"n_job": 1}, r"^calibration_report\(\) .*'n_jobs'\?$"),
        (
            ReliabilityDisplay.from_predictions,
            (Y, P),
            {"bins": 10},
            r"^ReliabilityDisplay\.from_predictions\(\) .* Did you mean 'n_bins'\?$",
        ),
        (
            CalibrationAccumulator().expected_calibration_error,
            (),
            {"norms": 2},
            r"^CalibrationAccumulator\.expected_calibration_error\(\) .* Did you mean 'norm'\?$",
        ),
        (CalibrationAccumulator().expected_calibration_error, (), {"x": 2}, r"Use (?!self)"),
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
    del plain.__signature__
    assert str(inspect.signature(checked)) == str(inspect.signature(plain))
    method = CalibrationAccumulator().expected_calibration_error
    assert "self" not in inspect.signature(method).parameters
