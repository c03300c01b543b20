"""No number rests on the constant that replaces probabilities of 0 and 1, unless it is said."""

import re
import warnings

import numpy as np
import pytest
from each_case import for_each
from property_cases import numbers
from test_hypothesis_test_properties import TESTS
from test_metric_properties import FACTS, ask_metric

from skcal import calibration_report
from skcal._scores import bounded_log_losses
from skcal.hypothesis_tests import calibration_test
from skcal.metrics import bins, calibration_slope, validation_measures
from skcal.recalibration import features

#: What these tell of a recalibration is true whatever number its fit takes for log 0.
BY_FITS = {"risk_test", "refinement_loss"}
BY_ANY = {("refinement_loss", 0), ("refinement_loss", 4)}
SAID = "The log loss is infinite|The calibration slope of all predictions is undefined"
pytestmark = [
    pytest.mark.filterwarnings("ignore:n_resamples=19.* possible p-value:UserWarning"),
    pytest.mark.filterwarnings("ignore:The sum of .label:UserWarning"),
    pytest.mark.filterwarnings(f"ignore:{SAID.split('|')[0]}:UserWarning"),
    pytest.mark.filterwarnings(f"ignore:{SAID.split('|')[1]}:UserWarning"),
]


def draw(n=120, n_against=4, steps=20, seed=0):
    """Calibrated predictions that are multiples, and outcomes against some of 0 and of 1."""
    rng = np.random.default_rng(seed)
    p = np.round(rng.beta(0.5, 0.5, n) * steps) / steps
    y = (rng.random(n) < p).astype(int)
    for end in (0, 1):
        y[np.flatnonzero(p == end)[: n_against // 2]] = 1 - end
    return y, p


def with_floor(monkeypatch, floor, call):
    """The numbers of a call if the floor is another one, and what it warns of."""
    with monkeypatch.context() as patch, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if floor is not None:
            patch.setattr(features, "PROBABILITY_FLOOR", floor)
            patch.setattr(features.log_probabilities, "__defaults__", (floor,))
            patch.setattr(
                bins,
                "bounded_log_losses",
                lambda p, *more: bounded_log_losses(np.clip(p, floor, 1 - floor), *more),
            )
        return numbers(call()), any(re.match(SAID, str(one.message)) for one in caught)


@pytest.mark.filterwarnings("ignore:Too few outcomes are uncertain:UserWarning")
def test_no_number_is_decided_by_a_floor_unless_a_warning_says_so(monkeypatch):
    calls = {
        name: lambda y, p, name=name: ask_metric(name, y, p, notion="binary")
        for name, facts in FACTS.items()
        if "binary" in facts.notions
    }
    moved = set()

    def check(case):
        (name, call), n_against = case
        y, p = draw(n_against=n_against)
        (as_is, said), (other, _) = (
            with_floor(monkeypatch, floor, lambda: call(y, p)) for floor in (None, 1e-9)
        )
        if not np.allclose(as_is, other, rtol=1e-6, atol=1e-8, equal_nan=True):
            assert said or name in BY_FITS, name
            moved.add((name.partition(",")[0], n_against))

    for_each([(call, n) for call in (calls | TESTS).items() for n in (0, 4)], check)
    assert moved == {("score_decomposition", 4), ("risk_test", 4), *BY_ANY}


@pytest.mark.parametrize("n_against", [1, 12])
def test_the_report_says_what_outcomes_against_0_and_1_leave_undefined(n_against):
    y, p = draw(1500, 0, steps=31)
    y[np.flatnonzero(p == 0)[:n_against]] = 1
    report = calibration_report(y, p, n_resamples=19)
    text = " ".join(str(report).split())
    many = f"{n_against} outcome{'s' * (n_against > 1)} against predictions of exactly 0 or 1"
    with pytest.warns(UserWarning, match=many):
        slope = calibration_slope(y, p)
    inner = (p > 0) & (p < 1)
    assert slope == pytest.approx(calibration_slope(y[inner], p[inner]), rel=1e-9)
    assert f"calibration slope {slope:.3f}" in text
    assert f"Slope undefined: {many}" in text
    assert "multiples of 1/31. Pass resolution=1/31 if" in text
    measures = report.overall.validation
    assert measures.observed_expected_ratio.estimate == pytest.approx(y.mean() / p.mean())
    assert many in str(validation_measures(y, p, n_resamples=19, random_state=0))
    rounded = str(calibration_report(y, p, n_resamples=19, resolution=1 / 31))
    assert ("undefined" in rounded) == (calibration_test(y, p, resolution=1 / 31).n_rounded == 0)
    assert "multiples of" not in rounded


def test_steps_that_were_found_leave_observed_over_expected_as_it_is():
    y, p = draw(1500, 4, steps=20)
    report = calibration_report(y, p, n_resamples=19)
    assert report.overall.test.n_rounded == 4
    ratio = report.overall.validation.observed_expected_ratio.estimate
    assert ratio == pytest.approx(y.mean() / p.mean(), rel=1e-12)
    [brier] = [score.score for score in report.overall.scores if score.name == "Brier score"]
    assert brier == pytest.approx(np.mean((y - p) ** 2), rel=1e-12)
    assert "undefined" not in str(report)


def test_intervals_of_slopes_of_rounded_calibrated_predictions_hold_1():
    """With a floor the interval held 1 in 3 of 20 sets of 4,000 multiples of 1/31."""
    held = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        chance = rng.beta(0.6, 2, 2000)
        y, p = (rng.random(2000) < chance).astype(int), np.round(chance * 31) / 31
        low, high = validation_measures(y, p, n_resamples=19, random_state=0).slope[1:]
        held += low <= 1 <= high
    assert held >= 16
