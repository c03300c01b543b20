"""Many subgroups: what can be shown does not depend on how many there are."""

import numpy as np
import pytest
from report_cases import verdict_test

from skcal.hypothesis_tests import adjust_pvalues
from skcal.report import calibration_report, compare
from skcal.report.measure import Settings
from skcal.report.words import answer_of_subgroups
from skcal.sample import read_sample

SETTINGS = Settings(False, 15, "uniform", None, 0.95, 19, None, 2, None, None, None, 0)


def adjusted_tests(y, p, by):
    """The tests of the subgroups, and their warnings."""
    names = [str(name) for name in np.unique(by)]
    parts = [read_sample(y[by == k], p[by == k], labels=[0, 1]) for k in np.unique(by)]
    tests, _, warnings = compare.subgroup_tests(names, parts, SETTINGS)
    return tests, warnings


def test_a_subgroup_among_many_takes_more_draws_where_it_needs_them(monkeypatch):
    monkeypatch.setattr(compare, "_DRAWS_A_GROUP", 1000)
    rng = np.random.default_rng(0)
    by = np.repeat(np.arange(3), 30)
    p = rng.uniform(0.1, 0.6, len(by))
    y = np.where(by == 1, 1, rng.random(len(p)) < p).astype(int)
    tests, _ = adjusted_tests(y, p, by)
    assert [test.null_distribution.shape[-1] for test in tests] == [199, 2999, 199]
    assert tests[1].pvalue == 0.001
    assert min(tests[0].pvalue, tests[2].pvalue) > 0.05


def test_subgroups_have_the_pvalues_of_the_test_adjusted_for_all():
    p = np.linspace(0.1, 0.9, 60)
    y = (np.random.default_rng(0).random(60) < p).astype(int)
    by = np.arange(60) % 2
    pvalues = [verdict_test(y[by == k], p[by == k], labels=[0, 1]).pvalue for k in (0, 1)]
    assert [test.pvalue for test in adjusted_tests(y, p, by)[0]] == list(adjust_pvalues(pvalues))


def test_more_subgroups_than_draws_allow_are_a_caution_of_the_report(monkeypatch):
    monkeypatch.setattr(compare, "_MOST_DRAWS", 30)
    y, by = np.tile([0, 1, 1], 2), np.repeat([0, 1], 3)
    report = calibration_report(y, np.full(6, 0.5), by=by, n_resamples=19)
    text = "2 subgroups are too many for their tests: the smallest adjusted p-value is 0.065"
    assert any(caution.startswith(text) for caution in report.warnings)


@pytest.mark.parametrize("events", [(60, 60, 60), (60, 74, 60), (60, 74, 20), (74, 47, 60)])
def test_the_verdict_names_intervals_without_a_star_that_exclude_1(events):
    y = np.concatenate([np.arange(200) < n for n in events]).astype(int)
    by = np.repeat(np.arange(3), 200)
    report = calibration_report(y, np.full(600, 0.3), by=by, n_resamples=19, random_state=0)
    off = [
        part.name
        for part in report.subgroups
        if not part.is_significant and not part.ratio.low <= 1 <= part.ratio.high
    ]
    assert len(off) == sum(n in (74, 47) for n in events)
    said = f"Without the correction for all rows, the O/E interval excludes 1 in {', '.join(off)}; "
    said += "chance alone does this in 5 % of calibrated subgroups."
    assert (said in answer_of_subgroups(report)) == bool(off)
    assert ("excludes 1" in answer_of_subgroups(report)) == bool(off)
