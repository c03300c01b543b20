"""What a type checker sees of the package: the types of results, and options that are misspelt."""

import inspect
import re
from pathlib import Path
from typing import Literal, get_args, get_origin, get_type_hints

import pytest
from test_readme import BLOCKS

from skcal import hypothesis_tests, metrics
from skcal._sklearn_compat import InvalidParameterError

ROOT = Path(__file__).parents[1]
# What the README's names hold, of those that it has.
RESULTS = {
    "report": "CalibrationReport",
    "recalibrator": "Recalibrator",
    "recalibrator.summary()": "str",
    "after": "ndarray",
    "look": "RecalibrationDisplay",
}
SCRIPT = """
import numpy as np
import skcal
from skcal import calibration_report
from skcal.displays import ReliabilityDisplay
from skcal.hypothesis_tests import calibration_test, compare_calibration, equivalence_test
from skcal.metrics import bootstrap_interval, calibration_bins, expected_calibration_error
from skcal.metrics import score_decomposition, squared_kernel_calibration_error
from skcal.monitoring import CalibrationMonitor
from skcal.recalibration import TemperatureScaling

rng = np.random.default_rng(0)
p = rng.uniform(size=500)
y = (rng.uniform(size=500) < p).astype(int)
weight = rng.lognormal(size=500)
reveal_type(expected_calibration_error(y, p, n_bins=10, sample_weight=weight))  # float
reveal_type(expected_calibration_error(y, p, average=None))  # ndarray
reveal_type(squared_kernel_calibration_error(y, p, return_standard_error=True)[1])  # float
reveal_type(bootstrap_interval(expected_calibration_error, y, p).low)  # float
reveal_type(calibration_bins(y, p).gap)  # ndarray
reveal_type(score_decomposition(y, p))  # ScoreDecomposition
reveal_type(calibration_test(y, p).pvalue)  # float
reveal_type(compare_calibration(y, p, p**2, method="skce"))  # ComparisonResult
reveal_type(equivalence_test(y, p, limit=0.1).high)  # float
report = calibration_report(y, p)
reveal_type(report)  # CalibrationReport
reveal_type(report.summary())  # str
reveal_type(ReliabilityDisplay.from_predictions(y, p))  # ReliabilityDisplay
scaling = TemperatureScaling().fit(p, y)
reveal_type(ReliabilityDisplay.from_estimator(scaling, p, y, n_bins=5))  # ReliabilityDisplay
reveal_type(ReliabilityDisplay.from_cv_results({}, p, y))  # ReliabilityDisplay
reveal_type(scaling)  # TemperatureScaling
reveal_type(scaling.predict_proba(p))  # ndarray
reveal_type(CalibrationMonitor(alpha=0.01).update(p, y))  # CalibrationMonitor
reveal_type(skcal.Binning(5).fit(p[:, None], y - p))  # Binning
reveal_type(skcal.CalibrationErrorSearchCV().fit(p, y))  # CalibrationErrorSearchCV
"""
MISSPELT = """
import numpy as np
from skcal import Recalibrator, ReliabilityDisplay
from skcal.hypothesis_tests import equivalence_test, skce_test
from skcal.metrics import expected_calibration_error
y, p = np.zeros(3), np.zeros(3)
expected_calibration_error(y, p, bins=10)  # "bins" .* did you mean "n_bins"
expected_calibration_error(y, p, strategy="uniforms")  # No overload variant
skce_test(y, p, method="monte_carlo")  # "method" to "skce_test"
equivalence_test(y, p, limits=0.1)  # "limits" for "equivalence_test"
ReliabilityDisplay.from_estimator(Recalibrator(), p, y, bins=5)  # "bins"
Recalibrator(scores="neg_log_loss")  # "scores" for "Recalibrator"
"""


def checked(script, folder):
    """What mypy says of the lines of a script, a text for each."""
    api = pytest.importorskip("mypy.api")
    path = folder / "script.py"
    path.write_text(script)
    options = ["--config-file", str(ROOT / "setup.cfg"), "--cache-dir", str(ROOT / ".mypy_cache")]
    options += ["--follow-imports", "silent", "--show-error-codes"]
    out, errors, _ = api.run([*options, str(path)])
    assert not errors
    said: dict[int, str] = {}
    for number, text in re.findall(r"script\.py:(\d+): (.*)", out):
        said[int(number)] = said.get(int(number), "") + text + "\n"
    lines = script.splitlines()
    return {lines[number - 1]: text for number, text in said.items()}


def test_types_of_results_are_known_and_misspelt_options_are_errors(tmp_path):
    readme = "".join(BLOCKS)
    held = [
        f"reveal_type({value})  # {name}\n"
        for value, name in RESULTS.items()
        if re.search(rf"^{value.partition('.')[0]} = ", readme, re.MULTILINE)
    ]
    assert held
    lines = [*held, *SCRIPT.splitlines(), *MISSPELT.splitlines()]
    said = checked("\n".join([readme, *lines]), tmp_path)
    asked = {line.rstrip(): line.rstrip().rpartition("# ")[2] for line in lines if "  # " in line}
    assert said.keys() == asked.keys(), said
    for line, expected in asked.items():
        if line.startswith("reveal_type"):
            expected = rf'type is "(\w+\.)*{expected}(\[|")'
        assert re.search(expected, said[line]), said[line]


def options_of_names():
    for room in (metrics, hypothesis_tests):
        for function in (getattr(room, name) for name in room.__all__):
            if inspect.isfunction(function):
                hints = get_type_hints(function)
                yield from ((function, name) for name, hint in hints.items() if literals(hint))


def literals(annotation):
    """The strings that an annotation allows."""
    if get_origin(annotation) is Literal:
        return list(get_args(annotation))
    return [name for part in get_args(annotation) for name in literals(part)]


@pytest.mark.parametrize(
    ("function", "option"),
    [pytest.param(*pair, id=f"{pair[0].__name__} {pair[1]}") for pair in options_of_names()],
)
def test_names_that_types_allow_are_those_that_calls_do(function, option):
    needed = {"limit": 0.1, "metric": metrics.expected_calibration_error, "features": [0] * 3}
    needed |= {"y_proba_b": [0.5] * 3, "y_true": [0, 1, 1], "y_proba": [0.5, 0.2, 0.3]}
    needed |= {"y_proba_a": [0.5] * 3}
    takes = inspect.signature(function).parameters
    given = {name: value for name, value in needed.items() if name in takes}
    conditions = getattr(function, "_used_with", {}).get(option, {})
    given |= {name: allowed[0] for name, allowed in conditions.items() if not callable(allowed)}
    with pytest.raises(InvalidParameterError, match=rf"'{option}' parameter") as caught:
        function(**given, **{option: "misspelt"})
    allowed = " ".join(re.findall(r"str among \{(.*?)\}", str(caught.value)))
    assert set(re.findall(r"'([\w-]+)'", allowed)) == set(
        literals(get_type_hints(function)[option])
    )
