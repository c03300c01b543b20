"""Samples of a validation study: the published examples, closed forms, and simulated widths."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.special import expit, logit
from scipy.stats import beta, norm
from sklearn.metrics import roc_auc_score

from skcal.metrics import sample_size, validation_measures, validation_sample_size
from skcal.metrics.error_limits import ErrorLimits
from skcal.sample import read_sample

Z = norm.isf(0.025)


def test_the_examples_of_riley_et_al_2021():
    """By their standard errors: sections 3.1.1, 3.3.1 and 3.4.1, and the heart valves of 4."""
    of_oe, of_c = sample_size._of_oe, sample_size._of_c
    assert [of_oe(0.5, 0.051), of_oe(0.1, 0.051), of_oe(0.1, 0.175)] == [385, 3461, 294]
    assert of_oe(0.018, 0.245) == 909
    cases = (0.1, 0.7), (0.5, 0.8), (0.018, 0.8), (0.018, 0.75)
    assert [of_c(*case, 0.1 / 3.92) for case in cases] == [1154, 302, 4252, 5125]
    assert sample_size._of_net_benefit(0.72, 0.6, 0.88, 0.8, 0.051) == 546  # 545.5


def test_the_heart_valves_and_the_thromboses_of_riley_et_al_2021():
    """Abstract: 9,835 for the slope, 6,443 for the net benefit at 8 %. Thromboses: 2,408.

    The help of their program gives the log-odds of the first: mean -5.8, variance 5, skewness -0.5,
    kurtosis 4, of a generalised lambda distribution (Ramberg 1979), a million of which it draws.
    """
    u = (np.arange(200_000) + 0.5) / 200_000
    x = (1 - u) ** 0.0446839 - u**0.0258578
    x = (x - x.mean()) / x.std()
    assert_allclose([(x**3).mean(), (x**4).mean()], [-0.5, 4], rtol=0.01)
    valves = expit(-5.8 + np.sqrt(5) * x)
    size = validation_sample_size(0.018, y_proba=valves, threshold=0.08)
    assert_allclose([size.slope, size.net_benefit], [9835, 6443], rtol=0.006)
    assert abs(validation_sample_size(0.22, linear_predictor=(-1.75, 1.47)).slope - 2408) <= 2


@pytest.mark.filterwarnings("ignore:The mean of the predictions is 0")
def test_the_tests_of_the_published_program():
    """pmvalsampsize finds 905, 4,252 and these slopes, by a million drawn predictions."""
    beta_distributed = beta.ppf((np.arange(20_000) + 0.5) / 20_000, 0.5, 0.5)
    cases = (
        ({"linear_predictor": (-5, 2.5)}, 4544),
        ({"y_proba": beta_distributed}, 1644),
        ({}, 17080),  # of log-odds of mean -4.7 without the event; ours are logit(.018) - v / 2
    )
    for described, slope in cases:
        size = validation_sample_size(0.018, c_statistic=0.8, oe_width=1, **described)
        assert (size.observed_expected_ratio, size.c_statistic) == (906, 4252)
        assert_allclose(size.slope, slope, rtol=0.003)
        assert size.n_samples == max(size.slope, 4252)


def test_one_sample_less_is_too_few_for_each_width():
    size = validation_sample_size(0.1, c_statistic=0.8, threshold=0.2)

    def oe_width(n):
        error = np.sqrt(0.9 / (0.1 * n))
        return np.exp(Z * error) - np.exp(-Z * error)

    def c_width(n):
        c, half = 0.8, n / 2 - 1
        terms = 1 + half * (1 - c) / (2 - c) + half * c / (1 + c)
        return 2 * Z * np.sqrt(c * (1 - c) * terms / (n**2 * 0.09))

    for width, n, target in (
        (oe_width, size.observed_expected_ratio, 0.2),
        (c_width, size.c_statistic, 0.1),
    ):
        assert width(n) <= target < width(n - 1)


def test_integrals_over_a_normal_linear_predictor():
    mean, sd, threshold = -1.75, 1.47, 0.3
    size = validation_sample_size(0.219, linear_predictor=(mean, sd), threshold=threshold)

    def expectation(f, low=-np.inf):
        low = max(low, mean - 12 * sd)
        return quad(lambda x: norm.pdf(x, mean, sd) * f(x), low, mean + 12 * sd, limit=200)[0]

    a, b, d = (expectation(lambda x, k=k: expit(x) * expit(-x) * x**k) for k in range(3))
    assert size.slope == np.ceil(a / ((0.1 / Z) ** 2 * (a * d - b**2)))
    event = expectation(expit)
    sensitivity = expectation(expit, logit(threshold)) / event
    false = expectation(lambda x: expit(-x), logit(threshold)) / (1 - event)
    benefit = sensitivity - false * (1 - 0.219) / 0.219 * threshold / (1 - threshold)
    assert_allclose(size.anticipated["net_benefit"], benefit, atol=1e-4)


def test_predictions_stand_for_their_distribution():
    rng = np.random.default_rng(0)
    x = rng.normal(-1.75, 1.47, 50_000)
    of_numbers = validation_sample_size(0.219, linear_predictor=(-1.75, 1.47), threshold=0.3)
    of_sample = validation_sample_size(0.219, y_proba=expit(x), threshold=0.3)
    for name in of_numbers.targets:
        assert_allclose(getattr(of_sample, name), getattr(of_numbers, name), rtol=0.03)
    shuffled = validation_sample_size(0.219, y_proba=expit(rng.permutation(x)), threshold=0.3)
    assert [getattr(shuffled, name) for name in of_sample.targets] == [
        getattr(of_sample, name) for name in of_sample.targets
    ]
    p = np.array([0.1, 0.1, 0.4, 0.9])  # every prediction once with and once without the event
    y, both, weight = np.repeat([1, 0], 4), np.tile(p, 2), np.r_[p, 1 - p]
    size = validation_sample_size(0.375, y_proba=p)
    assert_allclose(size.anticipated["c_statistic"], roc_auc_score(y, both, sample_weight=weight))


def test_the_c_statistic_and_the_prevalence_imply_the_predictions():
    for prevalence, c in ((0.02, 0.65), (0.3, 0.9)):
        x, share = sample_size._distribution(prevalence, None, None, c)
        assert_allclose(share @ expit(x), prevalence, rtol=1e-6)
        assert_allclose(sample_size._c_of_calibrated(expit(x), share), c, rtol=1e-4)


def test_it_prints_a_row_for_each_criterion():
    text = str(validation_sample_size(0.1, c_statistic=0.8))
    assert "Collect 4,196 samples, with about 420 events" in text
    assert "* calibration slope" in text
    assert "net benefit" not in text
    assert (
        "net benefit" in validation_sample_size(0.1, c_statistic=0.8, threshold=0.2)._repr_html_()
    )


def test_predictions_of_another_prevalence_are_warned_of():
    with pytest.warns(
        UserWarning, match=r"mean of the predictions is 0.219, but prevalence is 0.1"
    ):
        validation_sample_size(0.1, linear_predictor=(-1.75, 1.47))


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({}, "linear_predictor is missing, and so are y_proba and c_statistic"),
        ({"linear_predictor": (0, 1), "y_proba": [0.5]}, "y_proba is given beside"),
        ({"linear_predictor": (0, 0)}, r"linear_predictor is \(0, 0\). Pass mean and standard"),
        ({"linear_predictor": 3}, "linear_predictor is 3"),
        ({"y_proba": [0.5, 1.0]}, "y_proba row 1 is 0 or 1, whose log-odds are infinite"),
        ({"y_proba": [0.5, 2.0]}, "y_proba row 1 is 2, not a probability"),
        ({"y_proba": [[0.5, 0.5]]}, "y_proba has two dimensions"),
        ({"c_statistic": 0.5}, "c_statistic"),
        ({"c_statistic": 0.7, "oe_width": 0}, "oe_width"),
        ({"c_statistic": 0.7, "threshold": 1.0}, "threshold"),
    ],
)
def test_bad_numbers_are_refused_by_name(options, match):
    with pytest.raises(ValueError, match=match):
        validation_sample_size(0.3, **options)
    with pytest.raises(ValueError, match="prevalence"):
        validation_sample_size(1.0, c_statistic=0.7)


def normal(mean, sd):
    def draw(n, rng):
        p = expit(rng.normal(mean, sd, n))
        return (rng.random(n) < p).astype(int), p

    return draw, {"linear_predictor": (mean, sd)}


def of_c_statistic(prevalence, c):
    v = 2 * norm.ppf(c) ** 2

    def draw(n, rng):
        y = (rng.random(n) < prevalence).astype(int)
        return y, expit(rng.normal(logit(prevalence) - v / 2 + v * y, np.sqrt(v)))

    return draw, {"c_statistic": c}


def width(criterion, y, p, threshold):
    """The interval's width: of O/E on the log scale; of net benefit normal; others as skcal's."""
    rate, n = y.mean(), len(y)
    if criterion == "observed_expected_ratio":
        return rate / p.mean() * 2 * np.sinh(Z * np.sqrt((1 - rate) / (n * rate)))
    if criterion == "net_benefit":
        odds = (1 - rate) / rate * threshold / (1 - threshold)
        gain = np.where(y == 1, (p >= threshold) / rate, -odds * (p >= threshold) / (1 - rate))
        hit, false = gain[y == 1].mean() * rate, -gain[y == 0].mean() * (1 - rate) / odds
        variance = hit * (1 - hit) / rate + odds**2 * false * (1 - false) / (1 - rate)
        return 2 * Z * np.sqrt((variance + odds**2 * false**2 / (rate * (1 - rate))) / n)
    measure = getattr(validation_measures(y, p, n_resamples=None), criterion)
    return measure.high - measure.low


@pytest.mark.slow
@pytest.mark.parametrize(
    ("prevalence", "drawn", "threshold", "widths"),
    [
        (0.21883, normal(-1.75, 1.47), 0.3, {}),
        (0.02811, normal(-4, 1), 0.05, {"oe_width": 0.5, "slope_width": 0.4}),
        (0.1, of_c_statistic(0.1, 0.8), 0.2, {"slope_width": 0.3}),
        (0.4, of_c_statistic(0.4, 0.7), 0.5, {"c_width": 0.06}),
    ],
)
def test_the_promised_widths_are_reached_in_the_median_of_500_sets(
    prevalence, drawn, threshold, widths
):
    draw, options = drawn
    size = validation_sample_size(prevalence, threshold=threshold, **options, **widths)
    rng = np.random.default_rng(0)
    for criterion, target in size.targets.items():
        n = getattr(size, criterion)
        found = [width(criterion, *draw(n, rng), threshold) for _ in range(500)]
        # The median of 500 widths, each with a deviation of 5 to 15 %, is known to 1 %.
        assert_allclose(np.median(found), target, rtol=0.03)


@pytest.mark.parametrize(("prevalence", "c", "max_error"), [(0.3, 0.8, 0.08), (0.1, 0.7, 0.06)])
def test_nine_of_ten_calibrated_studies_pass_the_limit_of_the_calibration_error(
    prevalence, c, max_error
):
    size = validation_sample_size(prevalence, c_statistic=c, max_error=max_error)
    draw, _ = of_c_statistic(prevalence, c)
    rng = np.random.default_rng(0)
    samples = (read_sample(*draw(size.calibration_error, rng)) for _ in range(200))
    passed = sum(ErrorLimits(sample).high(0.05)[0] <= max_error for sample in samples)
    # At 90 % fewer than 165 or more than 193 of 200 have probability 1e-3.
    assert 165 <= passed <= 193
    assert "calibration error, upper limit" in str(size)
    assert validation_sample_size(prevalence, c_statistic=c).calibration_error is None
