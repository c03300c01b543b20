"""One test: each statistic is that of its definition, and the combined p-value is exact."""

from fractions import Fraction

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from scipy.special import expit, logit

from skcal.hypothesis_tests import calibration_test, scan_test, skce_test
from skcal.hypothesis_tests.joint import combined_pvalues
from skcal.hypothesis_tests.joint_statistics import WEIGHTS, JointStatistics
from skcal.hypothesis_tests.monte_carlo import draw_nulls
from skcal.metrics import calibration_slope
from skcal.metrics.statistic import observed_codes
from skcal.notions import make_problems


def few_predictions(rng, n, high=0.9):
    p = rng.uniform(0.05, high, n)
    return (rng.uniform(size=n) < p).astype(int), p


def test_scan_and_vector_kernel_are_those_of_their_tests(rng):
    y, p = few_predictions(rng, 300)
    result = calibration_test(y, p**1.3, n_resamples=99, random_state=3)
    [problem] = make_problems(p**1.3, y, "binary")
    statistics = JointStatistics(problem)
    scan = scan_test(y, p**1.3, n_resamples=99, random_state=3)
    seed = np.random.RandomState(3)
    [draws] = draw_nulls([statistics], [statistics.problem], 99, seed)
    assert_allclose(draws.nulls[0, :, -1], scan.null_distribution)
    assert draws.observed[0, -1] == pytest.approx(scan.statistic)
    assert result.statistic_pvalues["scan"] >= scan.pvalue

    proba = rng.dirichlet([1, 1, 1], 100)
    [problem] = make_problems(proba, rng.integers(0, 3, 100), "canonical")
    statistics = JointStatistics(problem)
    codes = problem.outcomes.argmax(axis=1)[None]
    test = skce_test(codes[0], proba, notion="canonical", n_resamples=19, random_state=0)
    kernel = statistics.names.index("kernel")
    assert statistics(codes)[0, kernel] == pytest.approx(test.statistic, rel=1e-4)
    gaps = (np.eye(3)[codes[0]] - proba).sum(axis=0)
    deviations = gaps / np.sqrt((proba * (1 - proba)).sum(axis=0))
    assert statistics(codes)[0, 0] == pytest.approx((deviations**4).sum())


def test_many_predictions_share_cells_and_bias_does_not_change(rng):
    for n_classes in (2, 3):
        proba = rng.dirichlet(np.ones(n_classes), 2000)
        y = rng.integers(0, n_classes, 2000)
        given, notion = (proba[:, 1], "binary") if n_classes == 2 else (proba, "canonical")
        [problem] = make_problems(given, y, notion)
        statistics = JointStatistics(problem)
        assert len(statistics.sums) <= 256
    deviations = (np.eye(3)[y] - proba).sum(axis=0)
    deviations /= np.sqrt((proba * (1 - proba)).sum(axis=0))
    codes = statistics.problem.outcomes.argmax(axis=1)
    assert statistics(codes[None])[0, 0] == pytest.approx((deviations**4).sum(), rel=1e-6)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_classes", [3, 10])
def test_slope_of_vectors_is_the_score_of_a_temperature(rng, n_classes, weighted):
    proba = rng.dirichlet(np.ones(n_classes), 200) * 0.99 + 0.01 / n_classes
    y = rng.integers(0, n_classes, 200)
    weight = rng.lognormal(size=200) if weighted else np.ones(200)
    [problem] = make_problems(proba, y, "canonical", weight)
    joint = JointStatistics(problem)
    shares = weight / weight.mean()

    def log_likelihoods(slope, codes):
        powers = proba**slope
        powers /= powers.sum(axis=1, keepdims=True)
        return np.log(np.take_along_axis(powers, codes[:, None], axis=1)[:, 0])

    scores = np.column_stack(
        [
            (log_likelihoods(1 + 1e-5, codes) - log_likelihoods(1 - 1e-5, codes)) / 2e-5
            for codes in np.repeat(np.arange(n_classes)[:, None], 200, axis=1)
        ]
    )  # of each class
    assert_allclose((proba * scores).sum(axis=1), 0, atol=1e-8)
    deviation = np.sqrt(shares**2 @ (proba * scores**2).sum(axis=1))
    expected = abs(shares @ scores[np.arange(200), y]) / deviation
    outcomes = observed_codes(joint.problem), np.eye(n_classes)[y][None]
    for codes in outcomes:
        assert joint(codes)[0, joint.names.index("slope")] == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(
    ("power", "spread"), [(0.8, "too extreme"), (1.25, "not extreme enough"), (1, "")]
)
def test_it_says_whether_vectors_are_too_extreme(rng, power, spread):
    proba = rng.dirichlet(np.ones(5), 1500)
    truth = proba**power
    truth /= truth.sum(axis=1, keepdims=True)
    y = (truth.cumsum(axis=1) > rng.random((1500, 1))).argmax(axis=1)
    options = {"notion": "canonical", "n_resamples": 199, "random_state": 0}
    for given in ({"y_proba": proba}, {"y_proba": np.log(proba), "from_logits": True}):
        result = calibration_test(y, **given, **options)
        assert (result.direction, result.spread) == ("", spread)
        assert (result.statistic_pvalues["slope"] <= 0.05) == (spread != "")


def brute_force_ranks(values):
    """Of 20 rows; the first of a column falls with its distance from the second."""
    ranks = [[sum(other[s] >= row[s] for other in values) for s in range(3)] for row in values]
    for s in range(3):
        first, second, third = sorted(values[:, s])[:-4:-1]
        for row in ranks:
            if row[s] == 1 and second > third:
                row[s] = Fraction(float(np.exp(-(first - second) / (second - third))))
    return ranks


def brute_force_pvalues(values, weights):
    n, ranks = len(values), brute_force_ranks(values)
    shares = [Fraction(weight, sum(weights)) for weight in weights]
    pairs = [list(zip(shares, row, strict=True)) for row in ranks]
    means = [1 / sum(share / rank for share, rank in row) for row in pairs]
    whole = sum(mean <= means[-1] for mean in means) / n
    last = ranks[-1]
    single = [max(whole, sum(min(row) <= rank for row in ranks) / n) for rank in last]
    return means, [whole if r == min(last) else s for r, s in zip(last, single, strict=True)]


@pytest.mark.parametrize("seed", range(20))
def test_adjusted_pvalues_are_counts_of_draws_that_show_as_much(seed):
    values = np.random.default_rng(seed).integers(0, 12, (20, 3)).astype(float)
    weights = np.random.default_rng(seed).integers(1, 4, 3).tolist()
    means, adjusted = combined_pvalues(values, weights)
    expected_means, expected = brute_force_pvalues(values, weights)
    assert_allclose(means, [float(mean) / 20 for mean in expected_means])
    assert_allclose(adjusted, expected)


@pytest.mark.parametrize("seed", range(5))
def test_of_exchangeable_rows_at_most_a_share_has_a_pvalue_of_that_share(seed):
    values = np.random.default_rng(seed).standard_t(2, (60, 4))
    values[:, 3] = values[:, 3].round()  # ties
    pvalues = []
    for k in range(60):
        rows = np.append(np.delete(values, k, axis=0), values[k : k + 1], axis=0)
        pvalues.append(combined_pvalues(rows, [1, 2, 3, 4])[1].min())
    assert (np.sort(pvalues) >= np.arange(1, 61) / 60 - 1e-12).all()
    assert min(pvalues) == 1 / 60


@pytest.mark.parametrize("n_classes", [1, 4])
@pytest.mark.parametrize("seed", range(3))
def test_very_strong_errors_have_the_smallest_pvalue(n_classes, seed):
    rng = np.random.default_rng(seed)
    p = rng.uniform(0.02, 0.5, 120) if n_classes == 1 else rng.dirichlet(np.ones(n_classes), 120)
    y = (rng.uniform(size=120) < p + 0.45) if n_classes == 1 else p.argmin(axis=1)
    test = calibration_test(y, p, notion="canonical", labels=range(max(2, n_classes)))
    assert test.pvalue == 0.001


@pytest.mark.parametrize("weighted", [False, True])
def test_fine_errors_count_half_at_60_events_of_information(rng, weighted):
    # Outcomes of the weights 1 and 3 inform as 4² / (1² + 3²) of the weight 1.
    weight = np.repeat([1.0, 3.0], 150) if weighted else np.ones(240)
    p = np.full(len(weight), 0.5)
    [problem] = make_problems(p, (rng.uniform(size=len(p)) < p).astype(int), "binary", weight)
    shares = dict(zip(WEIGHTS, JointStatistics(problem).weights / [*WEIGHTS.values()], strict=True))
    halved = {"curvature", "waves", "scan"}
    assert shares == pytest.approx({name: 0.5 if name in halved else 1.0 for name in WEIGHTS})


def negative_log_likelihood(parameters, y, z, weight):
    eta = parameters[0] + parameters[1] * z
    return weight @ (np.logaddexp(0, eta) - y * eta)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("shift", "slope"), [(0, 1), (0.5, 1), (-0.4, 1.4), (-0.3, 0.6)])
def test_bias_is_the_likelihood_ratio_of_an_intercept(rng, shift, slope, weighted):
    p = rng.choice(np.linspace(0.02, 0.6, 40), 800)
    y = (rng.uniform(size=800) < expit(shift + slope * logit(p))).astype(int)
    weight = rng.integers(1, 4, 800) if weighted else np.ones(800)
    [problem] = make_problems(p, y, "binary", weight)
    joint = JointStatistics(problem)
    value = joint(observed_codes(joint.problem))[0, joint.names.index("bias")]
    weight = weight / weight.mean()
    fits = logit(p), weight
    calibrated = negative_log_likelihood([0, 1], y, *fits)
    [intercept] = minimize(lambda a: negative_log_likelihood([a[0], 1], y, *fits), [0]).x
    alone = negative_log_likelihood([intercept, 1], y, *fits)
    assert value == pytest.approx(np.sqrt(2 * (calibrated - alone)), rel=1e-3)


def test_sums_of_cells_are_those_of_each_sample(rng):
    p = rng.uniform(size=3000).round(2)
    for weight in (np.ones(3000), rng.uniform(0.5, 2, 3000)):
        y = (rng.uniform(size=3000) < p).astype(int)
        [problem] = make_problems(p, y, "binary", weight)
        joint = JointStatistics(problem)
        codes = observed_codes(joint.problem)
        delta = (codes[0] - joint.X[:, 0]) * joint.weight
        for outcomes in (codes, codes.astype(float)):
            gaps = joint._gaps(joint._sums(outcomes))[0]
            assert_allclose(gaps, np.bincount(joint.cells, delta), atol=1e-9)


def test_curvature_and_waves_are_scores_of_regressions_on_distinct_predictions(rng):
    p = np.repeat(np.linspace(0.05, 0.9, 20), 30)
    y = (rng.uniform(size=600) < p**1.2).astype(int)
    weight = np.repeat(rng.uniform(0.5, 2, 20), 30)
    [problem] = make_problems(p, y, "binary", weight)
    joint = JointStatistics(problem)
    values = dict(zip(joint.names, joint(observed_codes(joint.problem))[0], strict=True))
    w = joint.weight
    variance = w**2 * p * (1 - p)
    z, time = logit(p), (variance.reshape(20, 30).sum(axis=1).cumsum() / variance.sum()).repeat(30)
    time -= variance.reshape(20, 30).sum(axis=1).repeat(30) / variance.sum() / 2

    def score(column, others):
        """The score of a column beside others, by weighted least squares."""
        root = np.sqrt(variance)
        fit = np.linalg.lstsq(root[:, None] * others, root * column, rcond=None)[0]
        rest = column - others @ fit
        return (w * (y - p)) @ rest / np.sqrt(variance @ rest**2)

    powers = np.column_stack([np.ones(600), z])
    assert values["curvature"] == pytest.approx(abs(score(z**2, powers)), rel=1e-6)
    cosines = np.column_stack([np.cos(np.pi * k * time) for k in range(8)])
    scores = [score(cosines[:, k], cosines[:, :k]) for k in range(2, 8)]
    assert values["waves"] == pytest.approx(np.square(scores).sum(), rel=1e-6)
    gaps = np.bincount(joint.cells, w * (y - p))
    centres = np.unique(p)
    kernel = np.exp(-np.abs(centres - centres[:, None]) / 0.1)
    assert values["kernel"] == pytest.approx(gaps @ kernel @ gaps, rel=1e-6)


@pytest.mark.parametrize("n_values", [1, 2, 3, 4])
def test_directions_that_few_predictions_cannot_have_count_nothing(rng, n_values):
    p = rng.choice([0.1, 0.4, 0.8, 0.6][:n_values], 200)
    [problem] = make_problems(p, (rng.uniform(size=200) < p).astype(int), "binary")
    joint = JointStatistics(problem)
    [values] = joint(observed_codes(joint.problem))
    assert np.isfinite(values).all()
    named = dict(zip(joint.names, values, strict=True))
    assert (named["curvature"] == 0) == (named["waves"] == 0) == (n_values < 3)


def test_single_probabilities_have_the_statistics_of_the_table(rng):
    result = calibration_test(*few_predictions(rng, 60), n_resamples=19, random_state=0)
    assert tuple(result.statistic_pvalues) == tuple(WEIGHTS)


@pytest.mark.parametrize(
    ("shift", "slope", "sides"),
    [
        (-0.7, 1.0, {"direction": "too high"}),
        (0.7, 1.0, {"direction": "too low"}),
        (0.0, 0.5, {"spread": "too extreme"}),
        (0.0, 2.0, {"spread": "not extreme enough"}),
    ],
)
def test_it_says_on_which_side_predictions_are(rng, shift, slope, sides):
    p = rng.uniform(0.1, 0.9, 1500)
    y = (rng.uniform(size=1500) < expit(shift + slope * logit(p))).astype(int)
    result = calibration_test(y, p, n_resamples=199, random_state=0)
    [(name, side)] = sides.items()
    assert getattr(result, name) == side
    assert f"predictions {side}" in str(result)
    assert min(result.statistic_pvalues.values()) == result.pvalue <= 0.01


def test_a_bias_is_not_taken_for_a_slope_and_the_side_is_that_of_the_fitted_slope(rng):
    p = rng.uniform(0.3, 0.95, 2000).round(2)
    y = (rng.uniform(size=2000) < expit(2.6 + logit(p))).astype(int)
    result = calibration_test(y, p, n_resamples=199, random_state=0)
    assert (result.direction, result.spread) == ("too low", "")
    assert result.statistic_pvalues["slope"] > 0.05
    for shift, slope in rng.uniform([-2, 0.3], [2, 2], (20, 2)):
        y = (rng.uniform(size=2000) < expit(shift + slope * logit(p))).astype(int)
        [problem] = make_problems(p, y, "binary")
        steep = calibration_slope(y, p) > 1
        assert JointStatistics(problem).sides()["slope"] == (
            "not extreme enough" if steep else "too extreme"
        )


def test_one_outcome_alone_or_one_prediction_tells_no_slope():
    for y, p in ((np.zeros(30, int), np.linspace(0.1, 0.9, 30)), (np.arange(30) % 2, [0.3] * 30)):
        [problem] = make_problems(np.array(p), y, "binary")
        joint = JointStatistics(problem)
        [values] = joint(observed_codes(joint.problem))
        assert np.isfinite(values).all()
        assert values[joint.names.index("slope")] == pytest.approx(0, abs=0.3)


def test_classes_are_adjusted_and_certainty_that_fails_refutes(rng):
    proba = rng.dirichlet([1, 1, 1], 300)
    y = rng.integers(0, 3, 300)
    for notion in ("classwise", "top-label"):
        result = calibration_test(y, proba, notion=notion, n_resamples=99, random_state=0)
        assert result.pvalue == np.nanmin(result.class_pvalues)
        assert min(result.statistic_pvalues.values()) == pytest.approx(result.pvalue)
        assert result.null_distribution.shape == (3, 99)
    assert calibration_test([0, 1, 1], [0.0, 1.0, 1.0], n_resamples=19).pvalue == 1
    p = np.append(rng.uniform(size=199), 1.0)
    y = np.append(rng.uniform(size=199) < p[:-1], 0).astype(int)
    for groups in (None, np.arange(200) // 4):
        result = calibration_test(y, p, n_resamples=99, random_state=0, groups=groups)
        assert (result.n_impossible, result.pvalue) == (1, 0.01)
        assert result.statistic_pvalues["bias"] > 0.05
        assert result.direction == ""
    options = {"n_resamples": 19, "random_state": 0}
    for proba, notion in (([0.0, 1.0, 1.0, 0.5], "binary"), (np.eye(3)[[0, 1, 2, 2]], "canonical")):
        labels = [0, 1, 2][: 1 + np.ndim(proba)]
        wrong = calibration_test([1, 1, 0, 1], proba, notion=notion, labels=labels, **options)
        assert wrong.pvalue == 0.05
