"""The ranges of numbers that options take; test_wrong_calls.py tries that calls heed them."""

import importlib
from collections import Counter, defaultdict
from functools import reduce
from inspect import signature

from test_public_surface import surface

from skcal._sklearn_compat import Interval

RANGES = {
    "(-inf, inf)": "coef0",
    "(0.0, 1.0)": (
        "SegmentRecalibrator.alpha c_width confidence_level e_benjamini_hochberg.alpha level "
        "limit max_error max_risk prevalence test_size tolerance "
        "validation_sample_size.threshold"
    ),
    "(0.0, 1.0]": "min_share resolution window",
    "(0.0, inf)": (
        "C C_diagonal C_intercept C_off_diagonal alpha bandwidth concentration gamma "
        "kernel_bound net_benefit_width oe_width run_length slope_width temperature tol"
    ),
    "(0.5, 1.0)": "c_statistic",
    "(1.0, inf)": "max_temperature",
    "[0.0, 1.0)": "KroneckerKernelRidge.tol TwoStepKernelRidge.tol threshold",
    "[0.0, 1.0]": "noise pvalue quantile",
    "[0.0, inf)": "degree estimate_prevalence.tol min_expected strength",
    "[1.0, 50.0]": "kernel_density_calibration_error.norm",
    "[1.0, inf]": "norm",
    "[2.2250738585072014e-308, 1.0)": "CalibrationMonitor.alpha",
    "an int in the range [0, 100]": "max_crossings",
    "an int in the range [0, inf)": "max_segments n_truth_draws",
    "an int in the range [1, 100000]": "n_bins n_points",
    "an int in the range [1, 100]": "compare_calibration.degree",
    "an int in the range [1, 2]": "order",
    "an int in the range [1, 50]": "SimplexDisplay.from_predictions.n_bins",
    "an int in the range [1, inf)": (
        "max_iter max_rank min_samples n_landmarks n_locations n_pairs "
        "n_repeats n_resamples n_samples"
    ),
    "an int in the range [19, inf)": (
        "BinCountDisplay.from_predictions.n_resamples "
        "RecalibrationDisplay.from_predictions.n_resamples "
        "ReliabilityDisplay.from_predictions.n_resamples calibration_report.n_resamples "
        "validation_measures.n_resamples"
    ),
    "an int in the range [2, inf)": (
        "block_size bootstrap_interval.n_resamples cv max_samples n_classes n_knots "
        "segment_test.n_bins"
    ),
    "an int in the range [20, inf)": "max_search_samples shifted_calibration_error.n_resamples",
    "an int in the range [3, 100000]": "hosmer_lemeshow_test.n_bins",
}


def constraints():
    """Each public function or class with an option and what is allowed of it."""
    for module, name, line in surface():
        if not line.endswith(": as above"):
            thing = reduce(getattr, name.split("."), importlib.import_module(module))
            allowed = getattr(thing, "_skl_parameter_constraints", None)
            if isinstance(thing, type):
                allowed = getattr(thing, "_parameter_constraints", None)
            for option, parts in (allowed or {}).items():
                if option in signature(thing).parameters:  # not of other displays alone
                    yield name, option, parts


def found_ranges():
    """Range → options; what takes an option in another range than most is named with it."""
    ranges = defaultdict(list)
    for name, option, parts in constraints():
        for part in parts if isinstance(parts, list) else ():
            if isinstance(part, Interval):
                ranges[option].append((name, str(part).removeprefix("a float in the range ")))
    found = defaultdict(set)
    for option, pairs in ranges.items():
        [(usual, _)] = Counter(text for _, text in pairs).most_common(1)
        for name, text in pairs:
            found[text].add(option if text == usual else f"{name}.{option}")
    return {text: sorted(names) for text, names in found.items()}


def test_every_number_has_the_range_of_the_table():
    assert found_ranges() == {text: names.split() for text, names in RANGES.items()}
