"""Every option of every public function changes its result, or is refused by name.

Functions, options and named values are read from the public surface, signatures and constraints,
so that new ones are tried by themselves: an option without another value in ``CHANGED`` fails.
"""

import warnings
from functools import cache
from inspect import signature

import numpy as np
import pytest
from test_outcome_properties import ENTRANCES, LABELS, PROBA, SECOND, ask, content, owner_of

from skcal import TemperatureScaling, datasets, metrics
from skcal._sklearn_compat import StrOptions
from skcal.functions import Binning

#: Another value of each option than its default; of options with names all are tried.
CHANGED = {
    "at": [0.2, 0.6],
    "bandwidth": 0.3,
    "block_size": 5,
    "c_statistic": 0.8,
    "c_width": 0.2,
    "class_kernel": 3 * np.eye(3),
    "compare": SECOND,
    "concentration": 0.5,
    "confidence_level": 0.8,
    "cv": 3,
    "degree": 2,
    "edges": [0, 0.2, 0.55, 1],
    "function": Binning(n_bins=3),
    "interval": (0.2, 0.7),
    "kernel_bound": 2.0,
    "limit": 0.2,
    "location_classes": [0],
    "locations": [[0.2, 0.3, 0.5]],
    "max_crossings": 1,
    "max_error": 0.1,
    "min_expected": 1,
    "min_samples": 25,
    "min_share": 0.3,
    "n_bins": 3,
    "n_classes": 3,
    "n_locations": 3,
    "n_pairs": 50,
    "n_points": 20,
    "n_resamples": 29,
    "n_samples": 40,
    "net_benefit_width": 0.3,
    "noise": 0.3,
    "norm": 2,
    "oe_width": 0.3,
    "order": 1,
    "pvalue": 0.5,
    "quantile": 0.5,
    "recalibrator": TemperatureScaling(),
    "resolution": 0.5,
    "slope_width": 0.3,
    "test_size": 0.3,
    "threshold": 0.3,
    "thresholds": [0.2, 0.6],
    "window": 0.2,
}
#: Options of samples, and those that may not change a result: workers and seeds.
OF_SAMPLES = {
    "sample_weight",
    "groups",
    "labels",
    "pos_label",
    "from_logits",
    "notion",
    "random_state",
    "n_jobs",
    "second_y_true",
    "target_proba",
    "X",
    "target_X",
    "estimator",
    "n_truth_draws",
    "linear_predictor",
    "y_proba",
}
#: (function, option): why a value may make no difference with some other options.
NO_DIFFERENCE = {
    ("expected_calibration_error", "root"): "the first power is its own root",
    ("kernel_density_calibration_error", "root"): "the first power is its own root",
    ("expected_calibration_error", "distance"): "single numbers have one distance",
    ("maximum_calibration_error", "distance"): "single numbers have one distance",
    ("expected_calibration_error", "average"): "a vector is one problem",
    ("squared_kernel_calibration_error", "average"): "a vector is one problem",
    ("binned_rms_error_interval", "root"): "0 is its own root",
    ("equivalence_test", "pvalue"): "these samples have the lower limit 0 with any p-value",
    ("kolmogorov_smirnov_test", "n_resamples"): "groups and votes alone are drawn",
}
BINARY = (LABELS == 1).astype(int), PROBA[:, 1]
SAMPLES = [
    (LABELS, PROBA, {}),
    (*BINARY, {}),
    *((LABELS, PROBA, {"notion": notion}) for notion in ("canonical", "classwise", "top-label")),
]
#: Functions without labels, and their first arguments.
OTHERS = {
    "validation_sample_size": lambda **options: metrics.validation_sample_size(
        0.2, y_proba=PROBA[:, 1], **options
    ),
    "make_dirichlet": lambda **options: datasets.make_dirichlet(
        50, n_truth_draws=0, random_state=0, **options
    ),
}
MODULES = {"validation_sample_size": metrics, "make_dirichlet": datasets}
FUNCTIONS = [
    name
    for name, module in ENTRANCES.items()
    if not isinstance(owner_of(name, module), type) and name != "calibration_report"
]


def function_of(name):
    return getattr(MODULES[name], name) if name in MODULES else owner_of(name, ENTRANCES[name])


def outcome(name, sample, options):
    """What a call returns, and what it raises."""
    y, proba, question = sample
    try:
        if name in OTHERS:
            return content(OTHERS[name](**options)), None
        if name == "segment_test":
            features = np.column_stack([PROBA[:, 0], PROBA[:, 1]])
            call = owner_of(name, ENTRANCES[name])
            options = {"n_resamples": 19, "random_state": 0, "min_samples": 5} | options
            return content(call(y, proba, features, **question, **options)), None
        return content(ask(name, y, proba, **question, **options)), None
    except (ValueError, TypeError) as error:
        return None, error


def values_of(function):
    """Other values of each option than its default."""
    constraints = getattr(function, "_skl_parameter_constraints", {})
    found = {}
    for option in signature(function).parameters.values():
        if option.kind is not option.KEYWORD_ONLY or option.name in OF_SAMPLES:
            continue
        values = [CHANGED[option.name]] if option.name in CHANGED else []
        for constraint in constraints.get(option.name, []):
            values += sorted(constraint.options) if isinstance(constraint, StrOptions) else []
        if isinstance(option.default, bool):
            values.append(not option.default)
        found[option.name] = [
            value
            for value in values
            if not isinstance(value, str | int | float) or value != option.default
        ]
        assert found[option.name], f"name another value of {option.name} in CHANGED"
    return found


def makes_a_difference(name, plainly, mode, option, values):
    """Whether a value changes the result on some samples, or is refused by name."""
    for k, sample in enumerate(SAMPLES):
        plain, error = plainly(k)
        for value in values if error is None else []:
            changed, error = outcome(name, sample, mode | {option: value})
            if changed != plain if error is None else option in str(error):
                return True
    return False


@pytest.mark.parametrize("name", [*FUNCTIONS, *OTHERS])
def test_an_option_changes_the_result_or_is_refused_beside_each_other_one(name):
    values = values_of(function_of(name))
    modes = [
        {mode: value}
        for mode, some in values.items()
        for value in some
        if not isinstance(value, int | float) or isinstance(value, bool) or mode == "norm"
    ]
    unused = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for mode in [{}, *modes]:
            plainly = cache(lambda k, mode=mode: outcome(name, SAMPLES[k], mode))
            if all(plainly(k)[1] for k in range(len(SAMPLES))):
                continue  # it needs further options
            for option, some in values.items():
                if option in mode or (name, option) in NO_DIFFERENCE:
                    continue
                if not makes_a_difference(name, plainly, mode, option, some):
                    unused.append((mode, option))
    assert not unused, unused
