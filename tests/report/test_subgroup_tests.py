"""Many subgroups: what can be shown does not depend on how many there are."""

import numpy as np
import pytest
from report_cases import CANDIDATES

from skcal.hypothesis_tests import adjust_pvalues, calibration_test
from skcal.report import calibration_report
from skcal.report import compare as module

# scikit-learn's own, of splines of a few samples that one class has alone.
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
OPTIONS = {"candidates": CANDIDATES[:1], "cv": 3, "random_state": 0}


def test_a_subgroup_among_many_takes_more_draws_where_it_needs_them(monkeypatch):
    monkeypatch.setattr(module, "_DRAWS_A_GROUP", 1000)
    rng = np.random.default_rng(0)
    by = np.repeat(np.arange(3), 30)
    p = rng.uniform(0.1, 0.6, len(by))
    y = np.where(by == 1, 1, rng.random(len(p)) < p).astype(int)
    parts = calibration_report(y, p, by=by, n_resamples=19, **OPTIONS).subgroups
    assert [part.test.null_distribution.shape[-1] for part in parts] == [199, 2999, 199]
    assert parts[1].test.pvalue == 0.001
    assert min(parts[0].test.pvalue, parts[2].test.pvalue) > 0.05


def test_subgroups_have_the_pvalues_of_the_test_adjusted_for_all():
    p = np.linspace(0.1, 0.9, 60)
    y = (np.random.default_rng(0).random(60) < p).astype(int)
    by = np.arange(60) % 2
    report = calibration_report(y, p, by=by, n_resamples=199, **OPTIONS)
    options = {"random_state": 0, "labels": [0, 1]}
    pvalues = [calibration_test(y[by == k], p[by == k], **options).pvalue for k in (0, 1)]
    assert [part.test.pvalue for part in report.subgroups] == list(adjust_pvalues(pvalues))


def test_more_subgroups_than_draws_allow_are_a_caution(monkeypatch):
    monkeypatch.setattr(module, "_MOST_DRAWS", 100)
    by = np.repeat(np.arange(11), 3)
    labels = np.tile([0, 1, 1], 11)
    report = calibration_report(labels, np.full(33, 0.5), by=by, n_resamples=19, **OPTIONS)
    text = "11 subgroups are too many for their tests: the smallest adjusted p-value is 0.11"
    assert any(caution.startswith(text) for caution in report.warnings)
