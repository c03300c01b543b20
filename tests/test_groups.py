"""Samples that belong together: what groups change, what they leave as it is, what they refuse."""

import inspect
import re
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import t as student
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold, KFold
from test_public_surface import surface

import skcal
import skcal.displays
from skcal import CalibrationErrorEstimator, hypothesis_tests, metrics
from skcal._groups import INDEPENDENT, GroupBlocks, Groups, read_groups
from skcal.choice import SegmentRecalibrator
from skcal.functions import Binning
from skcal.hypothesis_tests.monte_carlo import STATISTICS, draw_nulls
from skcal.metrics.base import outcome_of
from skcal.metrics.limits import proportion_limits
from skcal.metrics.murphy import _all_jumps, _deviation_of_groups
from skcal.metrics.statistic import (
    draw_codes,
    flip_groups,
    group_signs,
    observed_codes,
    observed_outcomes,
    prepare,
)
from skcal.model_selection import compare_risks
from skcal.model_selection.adaptive import candidates_of, partitions_of
from skcal.notions import Problems
from skcal.sample import read_sample


def clustered(n_groups=12, size=5, n_classes=None, seed=0):
    """Labels, predictions and groups; a third of the samples are alone in theirs."""
    rng = np.random.default_rng(seed)
    n = n_groups * size
    groups = np.repeat([f"unit {k:02}" for k in range(n_groups)], size).astype("U20")
    groups[2 * n // 3 :] = [f"alone {k}" for k in range(n - 2 * n // 3)]
    if n_classes is None:
        proba = rng.uniform(size=n).round(2)
        return (rng.uniform(size=n) < proba**1.5).astype(int), proba, groups
    proba = rng.dirichlet(np.ones(n_classes), size=n)
    return rng.integers(n_classes, size=n), proba, groups


def public_takers_of_groups():
    """Every public function and method that takes groups."""
    return [
        name
        for _, name, line in surface()
        # Other constructors of displays pass their arguments on to from_predictions.
        if re.search(r"\bgroups=", line)
        and not name.endswith((".from_estimator", ".from_cv_results"))
    ]


def functions_of_groups():
    """Every public function that takes groups."""
    modules = skcal, skcal.model_selection, metrics, hypothesis_tests
    functions = {name: getattr(module, name) for module in modules for name in module.__all__}
    return {
        name: functions[name]
        for name in public_takers_of_groups()
        if "." not in name
        and name not in ("calibration_report", "shifted_calibration_error", "Sample", "OutOfFold")
        # Reports are tried below, shifts, which need a target, in metrics/test_shifted.py. A Sample
        # holds groups for all of these: properties/test_samples_as_arguments.py. OutOfFold is a
        # result.
    }


def arguments_of(name, y, proba):
    """Further arguments that a function needs, and options that make it quick."""
    function = functions_of_groups()[name]
    takes = inspect.signature(function).parameters
    options = {"n_resamples": 39, "random_state": 0}
    options = {key: value for key, value in options.items() if key in takes}
    feature = np.arange(len(y)) % 7
    first = {"bootstrap_interval": [metrics.expected_calibration_error]}.get(name, [])
    others = {
        "bias_curve": [feature],
        "segment_test": [{"feature": feature}],
        "compare_calibration": [proba**2],
    }
    if name == "expected_calibration_error":
        options |= {"norm": 2, "debias": True}
    if name == "equivalence_test":
        options["limit"] = 0.3
    if name == "segment_test":
        options["min_samples"] = 5
    if name == "coverage_at_risk":
        options["max_risk"] = 0.6
    if name == "compare_risks":
        fits = [CalibrationErrorEstimator(Binning(k)).fit(proba, y) for k in (5, 2)]
        return [*fits, proba, y], {}
    return [*first, y, proba, *others.get(name, [])], options


def numbers_of(result):
    """All arrays and numbers of a result."""
    values = vars(result) if hasattr(result, "__dict__") else {"value": result}
    return {name: repr(value) for name, value in values.items()}


@pytest.mark.parametrize("name", functions_of_groups())
@pytest.mark.filterwarnings("ignore:Too few")
def test_groups_of_one_sample_change_no_bit_and_real_ones_change_the_result(name):
    y, proba, groups = clustered(n_groups=20)
    if name == "calibration_error":  # which is the bias, where that is significant
        proba = np.clip(proba + (y - proba).mean(), 0, 1)
    (arguments, options), function = arguments_of(name, y, proba), functions_of_groups()[name]
    expected = numbers_of(function(*arguments, **options))
    singles = np.random.default_rng(1).permutation(len(y))
    assert numbers_of(function(*arguments, groups=singles, **options)) == expected
    assert numbers_of(function(*arguments, groups=groups, **options)) != expected


def tables_of(display):
    """The numbers of a display."""
    return {name: repr(value) for name, value in vars(display).items()} | {
        "curve": numbers_of(getattr(display, "curve", display)),
        "panels": [numbers_of(panel) for panel in getattr(display, "panels", [])],
        "diagram": numbers_of(getattr(display, "diagram", display)),
    }


def stacked(y, proba, groups):
    fitted = skcal.Stacking([Binning(5), Binning(2)], random_state=0).fit(
        proba[:, None], y - proba, groups=groups
    )
    return {"weights": fitted.weights_.tolist()}


def estimated(method):
    def numbers(y, proba, groups):
        half = len(y) // 2
        estimator = CalibrationErrorEstimator(Binning(5)).fit(proba[:half], y[:half])
        groups = None if groups is None else groups[half:]
        return numbers_of(getattr(estimator, method)(proba[half:], y[half:], groups=groups))

    return numbers


def fitted_weights(y, proba, groups):
    function = skcal.Stacking([Binning(5), Binning(2)], random_state=0)
    estimator = CalibrationErrorEstimator(function).fit(proba, y, groups=groups)
    return {"weights": estimator.functions_[0].weights_.tolist()}


def shown(name):
    display = getattr(skcal.displays, name)
    options = {"n_resamples": 39} if name == "ReliabilityDisplay" else {}
    return lambda y, proba, groups: tables_of(
        display.from_predictions(y, proba, groups=groups, plot=False, **options)
    )


def recalibrated_display(y, proba, groups):
    options = {"groups": groups, "n_resamples": 39, "plot": False}
    display = skcal.displays.RecalibrationDisplay.from_predictions(y, proba, proba**2, **options)
    return {
        name: tables_of(part) for name, part in vars(display).items() if hasattr(part, "panels")
    }


def reported(y, proba, groups):
    return skcal.calibration_report(y, proba, groups=groups, n_resamples=19).to_dict()


def searched(y, proba, groups):
    search = quick("search").fit(proba, y, groups=groups)
    return {
        **numbers_of(search.one_step_),
        "scores": search.cv_results_["mean_test_score"].tolist(),
    }


def recalibrated(y, proba, groups):
    fitted = quick("recalibrator").fit(proba, y, groups=groups)
    tests = [one.test.tolist() for one in fitted._cross_fits]
    return {**numbers_of(fitted.comparison_["log_loss"]), "tests": tests}


def segmented(y, proba, groups):
    options = {"cv": 2, "n_resamples": 19, "random_state": 0}
    fitted = SegmentRecalibrator(skcal.TemperatureScaling(), **options)
    fitted.fit(proba, y, groups=groups, segments=np.arange(len(y)) % 3)
    return numbers_of(fitted.comparison_["log_loss"])


def classified(y, proba, groups):
    fitted = quick("classifier").fit(proba[:, None], y, groups=groups)
    shown = fitted.predict_proba(proba[:5, None]), fitted.out_of_fold_.after
    return {"proba": [part.tolist() for part in shown]}


#: What is no function of (y, proba, groups): its numbers.
METHODS = {
    "CalibrationErrorEstimator.error": estimated("error"),
    "CalibrationErrorEstimator.one_step": estimated("one_step"),
    "CalibrationErrorEstimator.fit": fitted_weights,
    "CalibrationErrorSearchCV.fit": searched,
    "RecalibratedClassifierCV.fit": classified,
    "Recalibrator.fit": recalibrated,
    "SegmentRecalibrator.fit": segmented,
    "Stacking.fit": stacked,
    "calibration_report": reported,
    "RecalibrationDisplay.from_predictions": recalibrated_display,
    **{
        f"{name}.from_predictions": shown(name)
        for name in (
            "CalibrationCurveDisplay",
            "DecisionCurveDisplay",
            "MurphyDisplay",
            "ReliabilityDisplay",
            "RiskCoverageDisplay",
        )
    },
}
# metrics/test_shifted.py; monitoring/test_evidence.py; properties/test_samples_as_arguments.py
ELSEWHERE = {
    "CalibrationMonitor.update",
    "CalibrationTable.update",  # tests/table/test_table.py
    "shifted_calibration_error",
    "Sample",
}
# Made by Recalibrator, which is tried.
RESULTS = {"OutOfFold", "LossComparison.of", "LossComparison.of_predictions"}


def test_every_public_function_and_method_that_takes_groups_is_tried():
    tried = set(functions_of_groups()) | set(METHODS) | ELSEWHERE | RESULTS
    assert tried == set(public_takers_of_groups())


@pytest.mark.usefixtures("few_draws")
@pytest.mark.parametrize("name", METHODS)
@pytest.mark.filterwarnings("ignore:Too few")
def test_groups_of_one_sample_change_no_bit_of_fits_displays_and_reports(name):
    y, proba, groups = clustered(n_groups=24)
    singles = np.random.default_rng(1).permutation(len(y))
    expected = METHODS[name](y, proba, None)
    assert repr(METHODS[name](y, proba, singles)) == repr(expected)
    assert repr(METHODS[name](y, proba, groups)) != repr(expected)


#: How uncertain a result is: p-values, widths of limits, standard errors, minus lower bounds.
UNCERTAINTY = {
    "binned_rms_error_interval": lambda found: [found.high - found.low],
    "calibration_error_interval": lambda found: [found.high],
    "compare_calibration": lambda found: [found.standard_error, width(found.error_difference)],
    "compare_risks": lambda found: [found.standard_error],
    "coverage_at_risk": lambda found: [-found.low],
    "cox_recalibration": lambda found: [
        np.ptp(found.slope_interval),
        np.ptp(found.intercept_in_the_large_interval),
    ],
    "decision_curve": lambda found: [width(found), found.band_high - found.band_low],
    "equivalence_test": lambda found: [found.high],
    "flexible_calibration_curve": lambda found: [width(found), found.band_high - found.band_low],
    "murphy_diagram": lambda found: [width(found)],
    "risk_coverage_curve": lambda found: [width(found)],
    "validation_measures": lambda found: [
        width(getattr(found, name)) for name in ("brier_score", "c_statistic", "ici", "e50", "emax")
    ],
}
ESTIMATES = {
    "calibration_error",
    "expected_calibration_error",
    "cross_fitted_calibration_error",
    "refinement_loss",
}
RESAMPLED = {"bootstrap_interval"}  # groups are drawn with all of their samples


def width(found):
    return found.high - found.low


@pytest.mark.parametrize("name", sorted(set(functions_of_groups()) - ESTIMATES - RESAMPLED))
@pytest.mark.filterwarnings("ignore:Too few", "ignore:groups holds")
def test_no_result_is_more_certain_where_groups_share_their_label(name):
    """Five images of each of 40 patients, who have one diagnosis each."""
    rng = np.random.default_rng(3)
    proba = np.repeat(rng.beta(2, 2, 40).round(2), 5)
    y = np.repeat((rng.uniform(size=40) < proba[::5]).astype(int), 5)
    (arguments, options), function = arguments_of(name, y, proba), functions_of_groups()[name]
    if name == "bias_curve":
        arguments[2] = proba  # the feature
    uncertainty = UNCERTAINTY.get(name, lambda found: [found.pvalue])
    ignored, told = (
        np.hstack(uncertainty(function(*arguments, groups=groups, **options)))
        for groups in (None, np.arange(200) // 5)
    )
    assert (told >= ignored - 1e-12).all()
    assert told.mean() > ignored.mean()


# At the door


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        (np.arange(60) % 5, "groups holds 5 groups, and at least 6 are needed"),
        (np.arange(59), "groups has 59 rows, not 60"),
        (np.append(np.arange(59.0), np.nan), "groups row 59 is nan"),
        (np.append(np.arange(59).astype(object), None), "groups row 59 is missing"),
    ],
)
def test_groups_that_tell_nothing_are_refused(groups, message):
    with pytest.raises(ValueError, match=message):
        hypothesis_tests.monte_carlo_test(*clustered()[:2], groups=groups)


def test_few_and_unequal_groups_are_warned_of_and_samples_of_weight_0_do_not_count():
    with pytest.warns(UserWarning, match="9 groups. With fewer than 10 groups, levels"):
        read_groups(np.arange(18) % 9, np.ones(18))
    with pytest.warns(UserWarning, match=r"largest with 50% of the samples.* as 3\.9 groups of eq"):
        read_groups(np.repeat(np.arange(41), [200, *[5] * 40]), np.ones(400))
    assert read_groups(np.arange(18) % 9, np.repeat([1.0, 0.0], 9)).independent
    weight = np.r_[0.0, 0.0, np.ones(22)]
    groups = read_groups(np.repeat(np.arange(12), 2), weight)
    assert groups.n_groups == 11
    assert_array_equal(groups.codes[2:], np.repeat(np.arange(11), 2))
    y, proba, names = clustered()
    weight = np.r_[np.zeros(7), np.ones(53)]
    kept = read_sample(y, proba, sample_weight=weight, groups=names)
    alike = read_sample(y[7:], proba[7:], groups=names[7:])
    assert_array_equal(kept.groups.codes, alike.groups.codes)
    assert_array_equal(kept.groups.alone, alike.groups.alone)
    [problem] = kept.take(np.array([5, 1, 40])).problems()
    assert_array_equal(problem.groups.codes, kept.groups.codes[[5, 1, 40]])


# Flips


@pytest.mark.parametrize("n_classes", [None, 3])
def test_flips_change_the_signs_of_groups_and_redraw_samples_that_are_alone(n_classes):
    y, proba, groups = clustered(n_classes=n_classes)
    notion = "binary" if n_classes is None else "canonical"
    [problem] = read_sample(y, proba, notion, groups=groups).problems()
    signs = group_signs(range(40), problem.groups)
    block = flip_groups(problem, signs, range(40, 80))
    residuals = block.reshape(40, len(y), -1) - problem.features
    for draw, kept, seed in zip(residuals, signs, range(40, 80), strict=True):
        for group in np.unique(groups[~problem.groups.alone]):
            rows = groups == group
            sign = 1 if kept[problem.groups.codes[rows][0]] else -1
            assert_allclose(draw[rows], sign * problem.residuals[rows], atol=1e-15)
        alone = problem.groups.alone
        [codes] = draw_codes(problem.features[alone], [seed])
        happened = codes[:, None] if n_classes is None else np.eye(n_classes)[codes]
        assert_allclose(draw[alone], happened - problem.features[alone], atol=1e-15)
    assert 0.4 < signs.mean() < 0.6


@pytest.mark.parametrize("notion", ["binary", "canonical"])
@pytest.mark.parametrize("name", STATISTICS)
def test_statistics_of_numbers_are_those_of_codes_and_of_residuals(name, notion):
    y, proba, groups = clustered(n_classes=None if notion == "binary" else 3)
    [problem] = read_sample(y, proba, notion, groups=groups).problems()
    params = {"norm": 2, "debias": True} if name == "expected_calibration_error" else {}
    for options in ({}, params):
        try:
            statistic = prepare(STATISTICS[name], problem, options)
            [value] = statistic(observed_codes(problem))
        except ValueError:
            assert notion == "canonical"  # a metric of single probabilities
            return
        assert_allclose(statistic(observed_outcomes(problem)), value, rtol=1e-5, atol=1e-7)
        if name == "kernel_density_calibration_error":
            return  # which tells residuals from their opposites
        flipped = flip_groups(problem, np.zeros((1, problem.groups.n_groups), bool), [0])
        alone = problem.groups.alone
        flipped[0][alone] = (2 * problem.features - problem.outcomes).reshape(flipped[0].shape)[
            alone
        ]
        assert_allclose(statistic(flipped), value, rtol=1e-5, atol=1e-7)


def test_pvalues_of_flips_meet_their_definition_and_never_pass_that_of_redraws():
    y, proba, groups = clustered()
    groups[40:] = np.repeat([f"pair {k}" for k in range(10)], 2)
    result = hypothesis_tests.monte_carlo_test(y, proba, groups=groups, random_state=0)
    [problem] = read_sample(y, proba, groups=groups).problems()
    rng = np.random.default_rng(0)
    signs = np.where(rng.integers(2, size=(4000, 18)) == 1, 1, -1)
    residuals = signs[:, problem.groups.codes] * problem.residuals[:, 0]
    bins = np.maximum(np.ceil(proba * 15).astype(int) - 1, 0)
    sums = np.stack([residuals[:, bins == k].sum(axis=1) for k in range(15)])
    flips = np.abs(sums).sum(axis=0) / len(y)
    share = np.mean(flips >= result.statistic * (1 - 1e-9))
    redrawn = hypothesis_tests.monte_carlo_test(y, proba, random_state=0).pvalue
    # 5 standard errors of both resampled shares.
    assert abs(result.pvalue - max(share, redrawn)) < 5 * np.sqrt(0.25 / 4000 + 0.25 / 1000)
    assert result.pvalue >= redrawn


def test_a_group_keeps_its_sign_in_the_problems_of_all_classes():
    y, proba, groups = clustered(n_classes=3)
    problems = read_sample(y, proba, "top-label", groups=groups).problems()

    def sign_of(problem):
        row = np.flatnonzero((problem.groups.codes == shared) & ~problem.groups.alone)[0]
        return lambda block: np.sign(block[:, row] - problem.features[row, 0])

    shared = next(
        k for k in range(40) if all((p.groups.codes[~p.groups.alone] == k).any() for p in problems)
    )
    draws = draw_nulls(
        [sign_of(problem) for problem in problems], problems, 60, np.random.RandomState(0)
    )
    signs = np.stack([draw.nulls[0] / draw.observed[0] for draw in draws])
    assert_array_equal(signs[0], signs[1])
    assert_array_equal(signs[0], signs[2])
    assert 10 < (signs[0] > 0).sum() < 50


def test_levels_that_flips_cannot_reach_are_refused():
    y, proba, _ = clustered()
    groups = np.arange(60) % 8
    with pytest.warns(UserWarning, match="8 groups"):  # noqa: SIM117
        with pytest.raises(ValueError, match=r"p-values of at least 0.0078, above the level 0.005"):
            hypothesis_tests.scan_test(y, proba, groups=groups, confidence_level=0.995)
    y, proba, _ = clustered(n_classes=3)
    with pytest.warns(UserWarning, match="groups") as warned:
        hypothesis_tests.monte_carlo_test(
            y, proba, notion="classwise", groups=np.arange(60) % 6, n_resamples=59
        )
    assert "the smallest possible p-value of 3 tests is 0.0938" in str(warned[1].message)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("skce_test", {"method": "distribution-free"}),
        ("skce_test", {"method": "asymptotic"}),
        ("skce_test", {"method": "spectral"}),
        ("skce_test", {"method": "block"}),
        ("mean_embedding_test", {"method": "chi2"}),
        ("mean_embedding_test", {"method": "hotelling"}),
    ],
)
def test_what_holds_for_independent_samples_alone_refuses_groups(name, options):
    y, proba, groups = clustered()
    with pytest.raises(ValueError, match=r"groups is not for .* that of independent samples. Use"):
        getattr(hypothesis_tests, name)(y, proba, groups=groups, **options)


def test_the_debiased_error_and_its_interval_leave_out_pairs_of_one_group():
    y, proba, groups = clustered(20)
    weight = np.random.default_rng(0).uniform(0.5, 2, len(y))
    bins, delta = np.maximum(np.ceil(proba * 4).astype(int) - 1, 0), weight * (y - proba)
    total = 0.0
    for k in range(4):
        own = bins == k
        apart = groups[own][:, None] != groups[own]
        products = np.outer(delta[own], delta[own])[apart].sum()
        total += weight[own].sum() * products / np.outer(weight[own], weight[own])[apart].sum()
    options = {"n_bins": 4, "sample_weight": weight, "groups": groups, "root": False}
    ece = metrics.expected_calibration_error(y, proba, norm=2, debias=True, **options)
    interval = metrics.binned_rms_error_interval(y, proba, **options)
    assert_allclose([ece, interval.estimate], total / weight.sum(), rtol=1e-9)
    assert_allclose(ece, interval.estimate, rtol=1e-9)


def test_formulas_of_groups_are_those_of_samples_where_each_has_one():
    y, proba, _ = clustered(80)
    singles = Groups(np.random.default_rng(0).permutation(len(y)), np.zeros(len(y), bool), len(y))
    for function, arguments, names in (
        (metrics.binned_rms_error_interval, (), ("estimate", "low", "high", "standard_error")),
        (metrics.cox_recalibration, (), ("slope", "slope_standard_error")),
        (hypothesis_tests.compare_calibration, (proba**2,), ("estimate", "standard_error")),
    ):
        one, other = function(y, proba, *arguments), function(y, proba, *arguments, groups=singles)
        rtol = 0.25 if function is metrics.cox_recalibration else 0.02
        for name in names:
            assert_allclose(getattr(other, name), getattr(one, name), rtol=rtol, err_msg=name)


@pytest.mark.parametrize("shape", [(40,), (40, 3)])
def test_sums_of_independent_samples_are_those_of_groups_of_one_sample(shape):
    values = np.random.default_rng(0).normal(size=shape)
    singles = Groups(np.arange(40), np.ones(40, dtype=bool), 40)
    for independent in (INDEPENDENT, replace(INDEPENDENT, dependence=None)):
        variance, expected = (g.variance_of_sum(values) for g in (independent, singles))
        assert_allclose(variance, expected * 39 / 40)
        if len(shape) == 2:
            assert_allclose(np.diagonal(independent.covariance_of_sums(values)), variance)


def test_comparisons_take_pairs_of_different_groups():
    y, proba, groups = clustered(30)
    result = hypothesis_tests.compare_calibration(y, proba, proba**2, degree=1, groups=groups)
    kernels = []
    for x in (proba, proba**2):
        ranks = 2 * (np.argsort(np.argsort(x)) + 1) - 1
        ranks = np.array([ranks[x == value].mean() for value in x]) / len(x) - 1
        psi = np.linalg.qr(np.column_stack([np.ones(len(x)), ranks, x]))[0] * np.sqrt(len(x))
        vectors = psi * (y - x)[:, None]
        kernels.append(vectors @ vectors.T)
    apart = groups[:, None] != groups
    assert_allclose(result.estimate, (kernels[0] - kernels[1])[apart].mean(), rtol=1e-6)


def in_problems(y, proba, groups):
    sample = read_sample(y, proba, "auto", groups=groups)
    return Problems(sample.problems(), sample.weight, sample.groups)


@pytest.mark.parametrize("n_classes", [None, 3])
def test_candidates_of_a_squared_error_take_pairs_of_different_groups(n_classes):
    y, proba, groups = clustered(30, n_classes=n_classes)
    data = in_problems(y, proba, groups)
    [part] = data.parts
    correction = 0.1 * np.sin(9 * part.features)
    apart = groups[:, None] != groups
    signs = np.random.default_rng(1).choice([-1.0, 1.0], size=(5, data.groups.n_groups))
    products = part.residuals @ part.residuals.T
    found = {one.name: one for one in candidates_of(data, [correction])}
    for name, cells in partitions_of(data):
        expected = sum(
            np.mean(cells[0] == k) * products[same & apart].mean()
            for k in np.unique(cells[0])
            for same in [np.logical_and.outer(cells[0] == k, cells[0] == k)]
        )
        assert_allclose(found[name].value, expected, rtol=1e-9)
    alone = np.ones((1, data.groups.n_groups))
    for one in found.values():
        assert_allclose(one.sums.flipped(alone), [one.value], rtol=1e-9, atol=1e-12)
        flipped = part._replace(residuals=signs[0][data.groups.codes, None] * part.residuals)
        others = candidates_of(data._replace(parts=[flipped]), [correction])
        [other] = [other for other in others if other.name == one.name]
        assert_allclose(one.sums.flipped(signs)[0], other.value, rtol=1e-9, atol=1e-12)
        assert_allclose(other.variance, one.variance, rtol=1e-9)


def test_blocks_hold_whole_groups_of_about_the_same_size():
    sizes = np.r_[40, np.full(20, 9), np.full(60, 2)]
    groups = np.random.default_rng(0).permutation(np.repeat(np.arange(81), sizes))
    splits = list(GroupBlocks(5, 0).split(groups, groups=groups))
    assert_array_equal(np.sort(np.concatenate([test for _, test in splits])), np.arange(340))
    for train, test in splits:
        assert not set(groups[train]) & set(groups[test])
        assert abs(len(test) - 68) <= 2
    others = list(GroupBlocks(5, 1).split(groups, groups=groups))
    pairs = zip(splits, others, strict=True)
    assert not all(np.array_equal(one[1], other[1]) for one, other in pairs)
    with pytest.raises(ValueError, match="makes 9 groups of 18 samples, and 5 blocks need 10"):
        next(GroupBlocks(5, 0).split(np.arange(18), groups=np.arange(18) % 9))
    with pytest.warns(UserWarning, match="One of the groups holds 12 of 30 samples"):
        next(GroupBlocks(3, 0).split(np.arange(30), groups=np.maximum(np.arange(30) - 11, 0)))


def quick(kind):
    """An estimator that is fitted to predictions and groups, and what it tells."""
    functions = [skcal.Zero(), skcal.PlugIn(skcal.TemperatureScaling())]
    maps = [skcal.TemperatureScaling()]
    return {
        "search": skcal.CalibrationErrorSearchCV(functions, random_state=0, cv=3),
        "nested": skcal.CalibrationErrorSearchCV(functions, random_state=0, cv=3, outer_cv=3),
        "given": skcal.CalibrationErrorSearchCV(functions, cv=GroupKFold(3)),
        "recalibrator": skcal.Recalibrator(maps, random_state=0, cv=3),
        "classifier": skcal.RecalibratedClassifierCV(
            LogisticRegression(), recalibrator=skcal.TemperatureScaling(), cv=3
        ),
    }[kind]


@pytest.mark.parametrize("kind", ["search", "nested", "given", "recalibrator", "classifier"])
def test_fits_keep_groups_together_and_tell_of_groups(kind):
    rng = np.random.default_rng(0)
    y, proba, groups = clustered(50, 6)
    X = proba if kind != "classifier" else np.column_stack([proba, rng.normal(size=len(y))])
    fitted = quick(kind).fit(X, y, groups=groups)
    if kind in ("search", "nested", "given"):
        assert np.isfinite(fitted.one_step_.degrees_of_freedom)
        for result in fitted.outer_results_:
            assert not set(groups[result.outer.train]) & set(groups[result.outer.test])
    elif kind == "recalibrator":
        for one in fitted._cross_fits:
            assert not set(groups[one.test]) & set(np.delete(groups, one.test))
    else:
        assert not fitted.out_of_fold_.groups.independent


@pytest.mark.filterwarnings("ignore:The groups parameter is ignored by KFold")
def test_splits_that_cut_groups_are_refused():
    y, proba, groups = clustered(50, 6)
    for kind, name in (("search", "cv"), ("recalibrator", "cv"), ("classifier", "cv")):
        estimator = quick(kind).set_params(cv=KFold(3))
        X = proba if kind != "classifier" else proba[:, None]
        with pytest.raises(ValueError, match=f"{name} puts a group into both parts of split 0"):
            estimator.fit(X, y, groups=groups)


def test_compared_risks_are_of_pairs_of_different_groups():
    rng = np.random.default_rng(5)
    p, groups = rng.uniform(size=240), rng.integers(0, 30, 240)
    y, weight = (rng.uniform(size=240) < p**1.5).astype(int), rng.integers(1, 3, 240)
    a, b = (CalibrationErrorEstimator(f).fit(p[:120], y[:120]) for f in (Binning(5), Binning(2)))
    found = compare_risks(a, b, p, y, weight, groups=groups)
    products = np.multiply.outer(y - p, y - p)
    losses = []
    for one in (a, b):
        phi, form = one.functions_[0].feature_map(p[:, None]), one.functions_[0].form_
        h = phi @ (phi.T if form is None else form @ phi.T)
        losses.append(np.asarray(h**2 - 2 * products * h))
    pairs = np.multiply.outer(weight, weight) * (groups[:, None] != groups)
    assert_allclose(found.difference, np.average(losses[0] - losses[1], weights=pairs), rtol=1e-9)
    alone = compare_risks(a, b, p, y, weight, groups=np.arange(240))
    assert vars(alone) == vars(compare_risks(a, b, p, y, weight))


@pytest.mark.parametrize("few", [0, 256])
@pytest.mark.parametrize("notion", ["classwise", "canonical"])
def test_pairs_of_groups_are_the_same_one_by_one_and_by_their_trace(few, notion, monkeypatch):
    y, proba, groups = clustered(24, 5, n_classes=3)
    weight = np.random.default_rng(0).integers(0, 3, len(y))
    functions = skcal.TwoStepKernelRidge(), Binning(3)
    a, b = (CalibrationErrorEstimator(f, notion).fit(proba, y) for f in functions)
    expected = compare_risks(a, b, proba, y, weight, groups=groups)
    monkeypatch.setattr(skcal.model_selection.comparison, "_FEW_PAIRS", few)
    found = compare_risks(a, b, proba, y, weight, groups=groups)
    assert_allclose(found.difference, expected.difference, rtol=1e-9)
    assert_allclose(found.standard_error, expected.standard_error, rtol=1e-9)


@pytest.mark.parametrize("thresholds", [None, [0.1, 0.25, 0.5, 0.51]])
@pytest.mark.parametrize("compared", [False, True])
def test_murphy_diagrams_sum_over_groups(compared, thresholds, monkeypatch):
    y, p, groups = clustered(40)
    weight = np.random.default_rng(0).uniform(0.5, 2, len(y))
    q = (p**1.3).round(2) if compared else None
    first, second = (
        one if one is None else outcome_of(read_sample(y, one, sample_weight=weight, groups=groups))
        for one in (p, q)
    )
    if thresholds is None:
        grid, strict = _all_jumps(p if q is None else np.concatenate([p, q]))
    else:
        grid, strict = np.array(thresholds), np.zeros(4, dtype=bool)
    expected, share = [], weight / weight.sum()
    codes, n = first.problem.groups.codes, first.problem.groups.n_groups
    for t, above in zip(grid, strict, strict=True):
        at = [(x > t) if above else (x >= t) for x in (p, q) if x is not None]
        scores = [np.where(y == 1, (1 - t) * ~one, t * one) for one in at]
        score = scores[0] - scores[1] if compared else scores[0]
        sums = np.bincount(codes, share * (score - share @ score))
        expected.append(np.sqrt(n / (n - 1) * sums @ sums))
    assert_allclose(_deviation_of_groups(first, second, grid, strict), expected, atol=1e-7)
    monkeypatch.setattr(skcal.metrics.murphy, "_MOST_OF_GROUPS", 40)
    assert_allclose(_deviation_of_groups(first, second, grid, strict), expected, atol=0.01)
    options = {"compare": q, "thresholds": thresholds, "sample_weight": weight}
    told = metrics.murphy_diagram(y, p, groups=groups, **options)
    ignored = metrics.murphy_diagram(y, p, **options)
    assert_allclose(told.score, ignored.score)
    assert (told.high - told.low >= ignored.high - ignored.low - 1e-12).all()


def test_limits_of_bins_are_those_of_the_effective_number_of_samples():
    y, p, groups = clustered(60, 8)
    options = {"n_bins": 4, "strategy": "uniform", "n_resamples": 19, "plot": False}
    show = skcal.displays.ReliabilityDisplay.from_predictions
    [ignored] = show(y, p, **options).panels
    [told] = show(y, p, groups=groups, **options).panels
    [problem] = read_sample(y, p, groups=groups).problems()
    for k in range(4):
        rows = np.maximum(np.ceil(p * 4).astype(int) - 1, 0) == k
        own = y[rows].astype(float), np.ones(rows.sum()), problem.groups.take(rows)
        for tail, low, high in ((0.025, "low", "high"), (0.025 / 4, "band_low", "band_high")):
            limits = proportion_limits(*own, tail)
            assert_allclose(getattr(told, low)[k], min(limits[0], getattr(ignored, low)[k]))
            assert_allclose(getattr(told, high)[k], max(limits[1], getattr(ignored, high)[k]))


@pytest.mark.parametrize("n_bins", [3, 4000])
def test_cells_are_the_groups_in_each_bin(n_bins):
    rng = np.random.default_rng(0)
    bins, codes = rng.integers(n_bins, size=200), rng.integers(30, size=200)
    of_cells, place = Groups(codes, np.zeros(200, bool), 30).cells(bins, n_bins)
    assert_array_equal(of_cells[place], bins)
    pairs = {(b, c): k for b, c, k in zip(bins, codes, place, strict=True)}
    assert len(pairs) == len(of_cells) == len(set(place))
    assert all(
        pairs[one] == k for *one, k in zip(bins, codes, place, strict=True) for one in [tuple(one)]
    )


@pytest.mark.usefixtures("few_draws")
def test_a_comparison_in_a_report_knows_groups():
    y, p, groups = clustered(40, 6)
    options = {"groups": groups, "compare": p**2, "n_resamples": 19}
    comparison = skcal.calibration_report(y, p, **options).comparison
    paired = hypothesis_tests.compare_calibration(y, p, p**2, groups=groups)
    assert [test.measure for test in comparison.tests] == ["squared error"]
    assert comparison.tests[0].pvalue == paired.pvalue
    gain = (y - p) ** 2 - (y - p**2) ** 2
    codes = read_sample(y, p, groups=groups).groups
    n, chance = codes.n_groups, (p + p**2) / 2
    payoff = 2 * (p**2 - p)
    mean = chance * payoff + p**2 - p**4
    seen, between = (
        n / (n - 1) * (codes.sums(each - each.mean()) ** 2).sum() for each in (gain, mean)
    )
    strength = codes.about(chance[:, None], (y - chance)[:, None]).strength
    deviations = np.abs(payoff) * np.sqrt(chance * (1 - chance))
    law = strength * (codes.sums(deviations) ** 2).sum() + (1 - strength) * deviations @ deviations
    error = np.sqrt(max(seen, law + between, gain.var(ddof=1) * len(y))) / len(y)
    [brier] = [test for test in comparison.score_tests if test.measure == "Brier score"]
    freedom = len(y) ** 2 / (np.bincount(codes.codes) ** 2).sum() - 1
    assert_allclose(brier.high - brier.estimate, student.isf(0.025, freedom) * error, rtol=1e-9)
    assert brier.method == "Student's limit of groups"
