import numpy as np
import pytest
from display_cases import binary, tempered
from numpy.testing import assert_allclose, assert_array_equal

from skcal.displays import BinCountDisplay
from skcal.hypothesis_tests import monte_carlo_test
from skcal.metrics import expected_calibration_error


def numbers_of(y, proba, **options):
    options = {"n_resamples": 99, "random_state": 0, "plot": False, **options}
    return BinCountDisplay.from_predictions(y, proba, **options)


@pytest.mark.parametrize("notion", ["confidence", "top-label", "binary"])
@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
def test_errors_are_the_metric(notion, strategy):
    y, proba = tempered() if notion != "binary" else binary(400)
    names = np.array(["b", "c", "a"])[y]
    labels = ["b", "c", "a"] if notion != "binary" else ["b", "c"]
    weight = np.random.default_rng(0).integers(1, 4, len(y))
    options = {"notion": notion, "strategy": strategy, "labels": labels, "sample_weight": weight}
    display = numbers_of(names, proba, n_bins=[7, 1, 7, 30], **options)
    assert_array_equal(display.n_bins, [1, 7, 30])
    for b, error, debiased in zip(
        display.n_bins, display.error, display.debiased_error, strict=True
    ):
        options = {**options, "n_bins": int(b), "norm": 2}
        assert_allclose(error, expected_calibration_error(names, proba, **options))
        expected = expected_calibration_error(names, proba, debias=True, **options)
        assert_allclose(debiased, expected, atol=1e-12)


def test_null_is_that_of_the_monte_carlo_test():
    y, proba = tempered()
    display = numbers_of(y, proba, notion="confidence", n_bins=[10])
    options = {"n_bins": 10, "norm": 2, "n_resamples": 99, "random_state": 0}
    null = monte_carlo_test(y, proba, notion="confidence", **options).null_distribution
    assert_allclose(display.null_mean, null.mean())
    assert_allclose([display.null_low, display.null_high], np.quantile(null, [[0.025], [0.975]]))
    of_classes = numbers_of(y, proba, notion="top-label", n_bins=[10])  # squares are added
    assert of_classes.null_low[0] <= of_classes.null_mean[0] <= of_classes.null_high[0]


def test_both_biases_are_seen():
    rng = np.random.default_rng(0)
    proba = rng.uniform(size=4000)
    calibrated = (rng.random(4000) < proba).astype(int)
    display = numbers_of(calibrated, proba)
    assert display.null_mean[-1] > 4 * display.null_mean[0]  # noise grows with the bins
    # 12 dependent bands of 95 %; with this seed the error leaves none of them.
    assert (display.error <= display.null_high).all()
    # Too high below 1/2 and too low above: one bin hides it.
    bent = (rng.random(4000) < np.clip(proba + 0.15 * np.sign(proba - 0.5), 0, 1)).astype(int)
    display = numbers_of(bent, proba)
    assert display.debiased_error[0] < 0.05
    assert display.debiased_error[5] > 0.1


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"n_bins": [0, 3]}, "n_bins"),
        ({"n_bins": [2.5]}, "n_bins"),
        ({"n_bins": []}, "n_bins"),
        ({"strategy": "sweep"}, "strategy"),
        ({"n_resamples": 5}, "n_resamples"),
        ({"n_resamples": None}, r"n_resamples.*\[19, inf\)\. Got None"),
        ({"notion": "classwise"}, r"Pass y_true == labels\[k\]"),
        ({"notion": "canonical"}, "conditions on a vector"),
    ],
)
def test_bad_options_of_bin_counts_are_named(options, match):
    with pytest.raises(ValueError, match=match):
        numbers_of(*tempered(), **options)


def test_few_samples_are_drawn():
    for n_samples in (1, 2, 30):
        display = numbers_of(*binary(n_samples), labels=[0, 1], n_resamples=19, name="a $ b $")
        assert f"n = {n_samples}" in display.plot().ax_.get_title()


def test_lines_hold_the_numbers_and_the_axis_names_the_bins():
    display = numbers_of(*binary(300)).plot()
    assert_array_equal(display.line_.get_ydata(), display.error)
    assert_array_equal(display.debiased_line_.get_ydata(), display.debiased_error)
    assert_array_equal(display.null_line_.get_ydata(), display.null_mean)
    assert display.ax_.get_xlabel() == "number of uniform bins"
    assert [text.get_text() for text in display.ax_.get_xticklabels()][:3] == ["1", "2", "5"]
