"""What TRIPOD asks for stands in the summary of one event: slope and intercept of an update."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import expit, logit
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold

from skcal import Recalibrator, TemperatureScaling
from skcal.metrics import cox_recalibration


def drawn(n, slope=0.7, shift=-0.4, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.uniform(0.02, 0.98, n)
    return p, (rng.random(n) < expit(slope * logit(p) + shift)).astype(int)


def facts(fitted):
    lines = [line.partition("  ") for line in fitted.summary().splitlines()]
    return {name: text.strip() for name, _, text in lines if name}


def logistic(p, y, weight=None):
    fitted = LogisticRegression(C=1e9, tol=1e-9).fit(logit(p)[:, None], y, weight)
    return float(fitted.intercept_[0]), float(fitted.coef_[0, 0])


@pytest.mark.parametrize("both_columns", [False, True])
def test_an_update_is_proven_on_folds_that_it_has_not_seen(both_columns):
    p, y = drawn(600)
    cv = KFold(4, shuffle=True, random_state=3)
    fitted = Recalibrator(cv=cv).fit(np.column_stack([1 - p, p]) if both_columns else p, y)
    said, updated = facts(fitted), np.empty(600)
    for train, test in cv.split(p):
        intercept, slope = logistic(p[train], y[train])
        updated[test] = expit(intercept + slope * logit(p[test]))
    intercept, slope = logistic(p, y)
    update, _, proof = said["logistic update"].partition("; cross-validated: ")
    start = "for comparison, not the chosen map: "
    assert update == f"{start}new log-odds = {intercept:.3g} + {slope:.3g} × log-odds"
    expected = cox_recalibration(y, updated)
    assert proof == expected.sentence()
    assert expected.slope_interval.low < 1 < expected.slope_interval.high
    assert said["slope and intercept before"] == cox_recalibration(y, p).sentence()
    after = fitted.cross_fit_predict_proba(np.column_stack([1 - p, p]) if both_columns else p)
    assert said["slope and intercept after"] == cox_recalibration(y, after[:, 1]).sentence()


def test_groups_and_weights_count_in_the_intervals():
    p, y = drawn(400)
    groups, weight = np.arange(400) // 5, np.random.default_rng(1).lognormal(0, 0.3, 400)
    fitted = Recalibrator(random_state=0).fit(p, y, sample_weight=weight, groups=groups)
    expected = cox_recalibration(y, p, sample_weight=weight, groups=groups).sentence()
    assert facts(fitted)["slope and intercept before"] == expected
    assert expected != cox_recalibration(y, p, sample_weight=weight).sentence()


def test_predictions_that_stay_have_no_line_after():
    p, y = drawn(1000, 1, 0)
    fitted = Recalibrator(random_state=0).fit(p, y)
    assert fitted.best_name_ == "Identity"
    said = facts(fitted)
    assert "slope and intercept after" not in said
    assert_allclose(float(said["logistic update"].split("+ ")[1].split(" ×")[0]), 1, atol=0.2)


def test_what_the_outcomes_do_not_determine_is_said():
    p, y = drawn(200)
    separated = Recalibrator(random_state=0).fit(p, (p > 0.5).astype(int))
    assert facts(separated)["calibration slope"].startswith("undefined: these outcomes")
    few = Recalibrator(cv=3, random_state=0).fit(p, np.isin(np.arange(200), [3, 90, 150]))
    assert "slope" in facts(few)["slope and intercept before"]
    assert "logistic update" not in facts(few)
    certain = np.where(p > 0.9, 1, p)
    said = facts(Recalibrator(random_state=0).fit(certain, y))
    assert "undefined: " in said["slope and intercept before"]
    assert "undefined" not in said["slope and intercept after"]


def test_several_classes_have_no_single_line():
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.ones(3), 200)
    fitted = Recalibrator([TemperatureScaling()], random_state=0).fit(P, rng.integers(0, 3, 200))
    assert not [name for name in facts(fitted) if "slope" in name or "update" in name]
