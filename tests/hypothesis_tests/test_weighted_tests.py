"""Weights of samples in tests, bounds and measures: what they change, and what they leave."""

import inspect

import numpy as np
import pytest
from numpy.testing import assert_allclose
from report_cases import verdict_test
from scipy.optimize import brentq
from scipy.special import expit, logit, xlogy
from scipy.stats import rankdata
from used import used

from skcal import calibration_report, hypothesis_tests, metrics
from skcal.hypothesis_tests.joint_statistics import JointStatistics
from skcal.hypothesis_tests.scan import RangeScan
from skcal.hypothesis_tests.skce import LargestOfWidths, null_squares
from skcal.kernels import Kernel
from skcal.metrics.statistic import observed_codes
from skcal.sample import read_sample

N = 120


def weighted_sample(seed=0, n=N, n_classes=None):
    """Labels, predictions on a grid, and weights of which some are 0."""
    rng = np.random.default_rng(seed)
    weight = rng.lognormal(size=n) * (rng.uniform(size=n) < 0.9)
    if n_classes is None:
        p = rng.uniform(size=n).round(2)
        return (rng.uniform(size=n) < p**1.3).astype(int), p, weight
    proba = rng.dirichlet(np.ones(n_classes), size=n)
    return rng.integers(n_classes, size=n), proba, weight


def counted_sample(**options):
    """The same without the samples of weight 0."""
    sample = weighted_sample(**options)
    return [part[sample[2] > 0] for part in sample]


def functions_of_weights():
    """Every public test, and the measures of medicine."""
    functions = {name: getattr(hypothesis_tests, name) for name in hypothesis_tests.__all__}
    functions = {
        name: function
        for name, function in functions.items()
        if inspect.isfunction(function)
        and "sample_weight" in inspect.signature(function).parameters
    }
    return {**functions, "validation_measures": metrics.validation_measures}


def asked(name, rows=slice(None)):
    """A function of the weights of some samples."""
    y, p, _ = weighted_sample()
    y, p, feature = y[rows], p[rows], (np.arange(N) % 7)[rows]
    others = {
        "bias_curve": [feature],
        "segment_test": [{"feature": feature}],
        "compare_calibration": [p**2],
    }
    function = functions_of_weights()[name]
    options = {"n_resamples": 39, "random_state": 0, "limit": 0.3, "min_samples": 5}
    takes = inspect.signature(function).parameters
    options = {key: value for key, value in options.items() if key in takes}

    def numbers(weight):
        result = function(y, p, *others.get(name, []), sample_weight=weight, **options)
        return {key: repr(value) for key, value in vars(result).items()}

    return numbers


@pytest.mark.parametrize("name", functions_of_weights())
@pytest.mark.filterwarnings("ignore:Too few", "ignore:n_resamples")
def test_weights_of_1_change_no_bit_their_scale_nothing_and_weight_0_leaves_out(name):
    numbers, (_, _, weight) = asked(name), weighted_sample()
    assert numbers(np.ones(N)) == numbers(None)
    found = numbers(weight)
    assert found != numbers(None)
    counted = np.flatnonzero(weight)
    if name != "kolmogorov_smirnov_test":
        assert numbers(16 * weight) == found
    assert asked(name, counted)(weight[counted]) == found


@pytest.mark.parametrize("n_classes", [None, 3])
def test_statistics_of_the_joint_test_meet_their_definition(n_classes):
    y, p, weight = counted_sample(n_classes=n_classes)
    notion = "binary" if n_classes is None else "canonical"
    [problem] = read_sample(y, p, notion, weight).problems()
    joint = JointStatistics(problem)
    [found] = joint(observed_codes(joint.problem))
    x, delta, w = problem.features, problem.residuals, weight / weight.mean()
    variance = (w**2)[:, None] * x * (1 - x)
    moved = w[:, None] * delta
    if n_classes is None:
        z, y = logit(np.clip(x, 1e-6, 1 - 1e-6))[:, 0], problem.outcomes[:, 0]
        fitted = expit(z + brentq(lambda a: w @ (expit(z + a) - y), -9, 9, xtol=1e-14))
        bias = 2 * w @ (xlogy(y, fitted / expit(z)) + xlogy(1 - y, (1 - fitted) / expit(-z)))
        assert_allclose(found[joint.names.index("bias")], np.sqrt(bias), atol=1e-8)
        z = z - np.average(z, weights=w * fitted * (1 - fitted))
        score = (w * (problem.outcomes[:, 0] - fitted)) @ z
        slope = abs(score) / np.sqrt((w**2 * fitted * (1 - fitted)) @ z**2)
        assert_allclose(found[joint.names.index("slope")], slope, atol=1e-8)
        assert_allclose(found[joint.names.index("scan")], scan_of(problem), rtol=1e-12)
    else:
        bias = np.sum((moved.sum(0) / np.sqrt(variance.sum(0))) ** 4)
        assert_allclose(found[joint.names.index("bias")], bias, rtol=1e-9)
        largest = []
        for width in (0.01, 0.1, 1.0):
            kernel = Kernel.of("laplacian", width, x)
            products = kernel.matrix(x, x) * (moved @ moved.T)
            pairs = products.sum() - np.trace(products)
            largest.append(pairs / np.sqrt(2 * null_squares(x, kernel, weight=w)))
        assert_allclose(found[joint.names.index("kernel")], max(largest), rtol=1e-6)


def scan_of(problem):
    scan = RangeScan(problem)
    return scan(observed_codes(scan.problem))[0]


def test_scan_and_its_ranges_meet_their_definition():
    _, p, weight = counted_sample(n=200)
    y = (p > 0.5).astype(int)  # so that a range is found
    [problem] = read_sample(y, p, "binary", weight).problems()
    order = np.argsort(p, kind="stable")
    x, delta, w = p[order], (y - p)[order], (weight / weight.mean())[order]
    starts = RangeScan(problem).starts
    edges, best = np.append(starts, len(x)), -np.inf
    total = (w**2 * x * (1 - x)).sum()
    for a in edges:
        for b in edges[edges > a]:
            own = w[a:b]
            V = (own**2 * x[a:b] * (1 - x[a:b])).sum()
            if V > 0:
                gap = abs((own * delta[a:b]).sum()) / np.sqrt(V)
                best = max(best, gap - np.sqrt(2 * np.log(np.e * total / V)))
    assert_allclose(scan_of(problem), best, rtol=1e-9)
    result = hypothesis_tests.scan_test(y, p, sample_weight=weight, random_state=0)
    for one in result.ranges:
        inside = (one.low <= p) & (p <= one.high)
        assert one.n_samples == inside.sum()
        assert_allclose(one.observed, np.average(y[inside], weights=weight[inside]))
        assert_allclose(one.predicted, np.average(p[inside], weights=weight[inside]))
        assert one.observed_low <= one.observed <= one.observed_high
    assert result.ranges


@pytest.mark.parametrize("n_classes", [None, 3])
@pytest.mark.parametrize("biased", [False, True])
def test_skce_of_widths_meets_its_definition(biased, n_classes):
    y, p, weight = counted_sample(n_classes=n_classes)
    w, notion = weight / weight.mean(), "binary" if n_classes is None else "canonical"
    [problem] = read_sample(y, p, notion, weight).problems()
    X, delta = problem.features, w[:, None] * problem.residuals
    kernels = [Kernel.of("laplacian", width, X) for width in (0.1, 1.0)]
    [found] = LargestOfWidths(problem, kernels, biased)(observed_codes(problem))
    law = np.eye(X.shape[1]) * X[:, None] - X[:, :, None] * X[:, None]  # of an outcome
    law = w[:, None, None] ** 2 * law
    values, squares = [], np.tensordot(law, law, axes=([1, 2], [1, 2]))
    expected = np.trace(law, axis1=1, axis2=2).sum()
    for kernel in kernels:
        K = kernel.matrix(X, X)
        H, scale = K * (delta @ delta.T), np.sqrt(2 * ((K**2 * squares).sum() - np.trace(squares)))
        values.append((H.sum() - (expected if biased else np.trace(H))) / scale)
    pairs = w.sum() ** 2, w.sum() ** 2 - w @ w
    single = n_classes is not None  # precision of products of vectors
    value = max(values) * (pairs[1] / pairs[0] if biased else 1)
    assert_allclose(found, value, rtol=1e-5 if single else 1e-9)


@pytest.mark.parametrize("method", ["projection", "skce"])
def test_comparison_meets_its_definition(method):
    y, p, weight = counted_sample()
    w = weight / weight.mean()
    options = {"sample_weight": weight, "method": method, "degree": 1, "bandwidth": 0.3}
    options = used(hypothesis_tests.compare_calibration, **options)
    result = hypothesis_tests.compare_calibration(y, p, p**2, **options)
    difference, kernel, slope = 0.0, 0.0, 0.0
    for sign, x in ((1, p), (-1, p**2)):
        W = np.exp(-np.abs(x[:, None] - x) / 0.3)
        if method == "projection":
            ranks = np.array([w[x < one].sum() - w[x > one].sum() for one in x]) / w.sum()
            psi = np.column_stack([np.ones(len(x)), ranks, x])
            W = psi @ np.linalg.inv(psi.T @ (w[:, None] * psi) / w.sum()) @ psi.T
        difference = difference + sign * W * np.outer(y - x, y - x)
        kernel, slope = kernel + sign * W, slope + sign * W @ (w * (y - x))
    pairs = np.outer(w, w) * (1 - np.eye(len(w)))
    estimate = (pairs * difference).sum() / pairs.sum()
    assert_allclose(result.estimate, estimate, rtol=1e-6)
    centred = pairs * (difference - estimate)
    influence, square = 2 * centred.sum(axis=1), (centred**2).sum()
    n = len(w)
    variance = n / (n - 1) * max((influence**2).sum() - 4 * square, 0) + 2 * square
    if method == "projection":  # no smaller than by the mean of the two probabilities
        law = (p + p**2) / 2 * (1 - (p + p**2) / 2) * w**2
        both = law @ kernel**2 @ law
        variance = max(variance, 4 * (law @ slope**2 - both) + 2 * both)
    assert_allclose(result.standard_error, np.sqrt(variance) / pairs.sum(), rtol=1e-6)


def test_bounds_of_weights_are_of_the_weighted_population():
    rng = np.random.default_rng(0)
    p = rng.uniform(size=4000)
    weight = np.where(p > 0.5, 3.0, 1.0) * rng.lognormal(size=4000)
    y = rng.uniform(size=4000) < np.where(p > 0.5, p - 0.2, p)
    options = {"limit": 0.05, "sample_weight": weight}
    for error in ("cutoff", "ece"):
        result = hypothesis_tests.equivalence_test(y, p, error=error, **options)
        assert result.low < 0.15 < result.high  # 0.2 × 3/4 of the weight
        plain = hypothesis_tests.equivalence_test(y, p, error=error, limit=0.05)
        assert plain.low < 0.1 < plain.high < result.high
    inside = hypothesis_tests.equivalence_test(y, p, interval=(0.6, 0.9), **options)
    assert inside.low < 0.2 < inside.high
    with pytest.raises(ValueError, match="sample_weight is not for method='exact'"):
        hypothesis_tests.equivalence_test(y, p, error="cutoff", method="exact", **options)


def test_measures_of_medicine_are_those_of_repeated_rows_with_wider_intervals():
    y, p, _ = weighted_sample(n=300)
    times = np.random.default_rng(0).integers(1, 4, 300)
    options = {"n_resamples": None}  # limits of curves are not compared
    weighted = metrics.validation_measures(y, p, sample_weight=times, **options)
    repeated = metrics.validation_measures(np.repeat(y, times), np.repeat(p, times), **options)
    for name, one in weighted.measures.items():
        other = repeated.measures[name]
        rtol = 0.2 if name in ("ici", "e50", "e90", "emax") else 1e-6  # knots count samples
        assert_allclose(one.estimate, other.estimate, rtol=rtol, err_msg=name)
        if name in ("prevalence", "slope", "c_statistic", "brier_score"):
            assert 1.2 < (one.high - one.low) / (other.high - other.low) < 2.5
    grouped = metrics.validation_measures(
        np.repeat(y, times), np.repeat(p, times), groups=np.repeat(np.arange(300), times), **options
    )
    for name in ("prevalence", "slope", "c_statistic", "brier_score"):
        one, other = weighted.measures[name], grouped.measures[name]
        # Never below standard errors of as many independent samples, of which there are more there.
        assert_allclose([one.low, one.high], [other.low, other.high], rtol=0.05, err_msg=name)


def test_c_statistic_of_weights_meets_its_definition():
    y, p, weight = weighted_sample()
    found = metrics.validation_measures(y, p, sample_weight=weight, n_resamples=None).c_statistic
    above = (p[:, None] > p) + 0.5 * (p[:, None] == p)
    pairs = np.outer(weight * y, weight * (1 - y))
    assert_allclose(found.estimate, (pairs * above).sum() / pairs.sum())
    plain = metrics.validation_measures(y, p, n_resamples=None).c_statistic
    ranks = rankdata(p)[y == 1].sum() - y.sum() * (y.sum() + 1) / 2
    assert_allclose(plain.estimate, ranks / (y.sum() * (1 - y).sum()))


@pytest.mark.usefixtures("few_draws")
@pytest.mark.parametrize("n_classes", [None, 3])
def test_a_report_of_weights_is_that_of_its_parts(n_classes):
    y, proba, weight = weighted_sample(n=160, n_classes=n_classes)
    options = {"n_resamples": 39, "by": np.arange(160) % 2, "segments": {"half": np.arange(160)}}
    second = proba**2 if n_classes is None else proba[:, ::-1]
    report = calibration_report(y, proba, sample_weight=weight, compare=second, **options)
    assert all(" not estimated" not in text for text in report.warnings)
    counted = weight > 0
    y, proba, weight, second = y[counted], proba[counted], weight[counted], second[counted]
    overall = report.overall
    assert overall.test.pvalue == verdict_test(y, proba, sample_weight=weight).pvalue
    ece = metrics.expected_calibration_error(y, proba, sample_weight=weight)
    assert overall.ece.estimate == pytest.approx(ece)
    paired = hypothesis_tests.compare_calibration(y, proba, second, sample_weight=weight)
    assert report.comparison.tests[0].estimate == paired.estimate
    rates = [np.average(y == k, weights=weight) for k in range(n_classes or 2)]
    assert overall.overview.base_rates == pytest.approx(rates)
    assert f"worth {weight.sum() ** 2 / (weight @ weight):,.0f} of equal weight" in str(report)
    assert sum(part.overview.n_samples for part in report.subgroups) == len(y)
    if n_classes is None:
        slope = metrics.cox_recalibration(y, proba, sample_weight=weight).slope
        assert overall.validation.slope.estimate == pytest.approx(slope)
