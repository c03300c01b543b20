"""Reports of samples of which any of several labels may hold: pairs, each label, the first K."""

from dataclasses import astuple

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from report_cases import verdict_test

from skcal import calibration_report
from skcal.hypothesis_tests import adjust_pvalues, calibration_error_interval, compare_calibration
from skcal.metrics import expected_calibration_error
from skcal.model_selection import candidates

N, K = 150, 3
NAMES = ["news", "sport", "trade"]
FEW = {"notion": "multi-label", "labels": NAMES, "n_resamples": 19, "random_state": 0}


@pytest.fixture(autouse=True)
def short_searches(monkeypatch):
    """What is recommended does not matter here, and takes long."""
    monkeypatch.setitem(candidates.CANDIDATES, "recommended", lambda *_: [(candidates.Zero(), {})])


@pytest.fixture(scope="module")
def labelled():
    rng = np.random.default_rng(2)
    proba = rng.beta(0.7, 1.2, (N, K))
    law = proba.copy()
    law[:, 2] = 0.5 * proba[:, 2]  # too high of the last label
    return (rng.random((N, K)) < law).astype(int), proba


@pytest.fixture(scope="module")
def report(labelled):
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(candidates.CANDIDATES, "recommended", lambda *_: [(candidates.Zero(), {})])
        return calibration_report(*labelled, **FEW)


def test_verdict_and_error_are_those_of_the_labels_and_the_rest_is_of_all_pairs(report, labelled):
    expected = verdict_test(*labelled, notion="multi-label")
    assert report.overall.test.statistic_pvalues == expected.statistic_pvalues
    assert report.overall.error == calibration_error_interval(*labelled, notion="multi-label")
    assert report.overall.ece.estimate == expected_calibration_error(
        *labelled, notion="multi-label", average="macro"
    )
    assert (report.overall.overview.n_samples, report.overall.overview.n_groups) == (N * K, N)
    assert report.settings["notion_asked"] == "multi-label"


def test_each_label_is_a_subgroup_that_is_tested_exactly(report, labelled):
    holds, proba = labelled

    pvalues = [verdict_test(holds[:, k], proba[:, k]).pvalue for k in range(K)]
    assert [part.name for part in report.subgroups] == [f"label = {name}" for name in NAMES]
    assert_array_equal([part.test.pvalue for part in report.subgroups], adjust_pvalues(pvalues))
    assert "exact level" in report.subgroups[0].test.method
    assert report.subgroups[2].ece.estimate == expected_calibration_error(holds[:, 2], proba[:, 2])


def test_the_verdict_names_the_labels_that_are_off(report):
    said = "Labels: 1 of 3 significantly miscalibrated: label = trade. "
    assert said in report.verdict
    assert "Labels differ, so one recalibration of all samples" in report.verdict
    assert "There is no evidence of miscalibration in the other 2, but" in report.verdict


def test_what_stands_beside_the_samples_is_repeated_for_their_labels(labelled):
    n = 30
    holds, proba = (array[:n] for array in labelled)
    rng = np.random.default_rng(0)
    weight, x = rng.uniform(0.5, 2, n), rng.normal(size=n)
    site = pd.DataFrame({"site": np.arange(n) % 2})
    found = calibration_report(
        holds,
        proba,
        by=site,
        sample_weight=weight,
        groups=np.arange(n) // 2,
        segments=pd.DataFrame({"x": x}),
        compare=[np.column_stack([1 - p, p]) for p in proba.T],
        **FEW,
    )
    rows = np.repeat(np.arange(n), K)
    expected = calibration_report(
        np.array(["no label", "a label"])[holds.ravel()],
        proba.ravel(),
        labels=["no label", "a label"],
        by={"label": np.tile(NAMES, n), "site": site["site"].to_numpy()[rows]},
        sample_weight=weight[rows],
        groups=rows // 2,
        segments={"x": x[rows]},
        compare=proba.ravel(),
        n_resamples=19,
        random_state=0,
    )
    assert [part.name for part in found.subgroups] == [part.name for part in expected.subgroups]
    for one, other in [(found, expected), *zip(found.subgroups, expected.subgroups, strict=True)]:
        one, other = (getattr(report, "overall", report) for report in (one, other))
        assert (one.overview, one.scores) == (other.overview, other.scores)
        assert repr(one.validation) == repr(other.validation)  # some of it is NaN
        assert one.cutoff.high == other.cutoff.high
        assert one.scan.ranges == other.scan.ranges
    assert str(found.segments) == str(expected.segments)


@pytest.mark.parametrize("beside", [(), ("groups", "sample_weight")])
def test_errors_of_labels_are_those_of_the_functions_in_all_samples_and_subgroups(beside):
    rng, n = np.random.default_rng(len(beside)), 80
    proba = rng.beta(1, 2, (n, K))
    holds = (rng.random((n, K)) < proba ** rng.uniform(0.6, 1.6, K)).astype(int)
    site = np.arange(n) % 2
    given = {"groups": np.arange(n) // 2, "sample_weight": rng.integers(0, 3, n)}
    given = {name: given[name] for name in beside}
    report = calibration_report(holds, proba, by={"site": site}, compare=proba**2, **given, **FEW)
    *labels, _, last = report.subgroups
    for part, rows in ((report.overall, slice(None)), (last, site == 1)):
        options = {name: values[rows] for name, values in given.items()}
        number = calibration_error_interval(
            holds[rows], proba[rows], notion="multi-label", **options
        )
        assert (part.error.estimate, part.error.high) == (number.estimate, number.high)
    for k, part in enumerate(labels):
        number = calibration_error_interval(holds[:, k], proba[:, k], **given)
        assert (part.error.estimate, part.error.high) == (number.estimate, number.high)
    compared = compare_calibration(holds, proba, proba**2, notion="multi-label", **given)
    assert_allclose(astuple(report.comparison.error_difference), astuple(compared.error_difference))


@pytest.mark.parametrize("k", [1, 2, 3])
def test_a_report_of_precisions_says_what_the_functions_say(labelled, k):
    (holds, proba), notion, given = labelled, f"precision-at-{k}", {}
    if k != 2:
        weight = np.random.default_rng(1).uniform(0.5, 2, N)
        given = {"groups": np.arange(N) // 2, "sample_weight": weight}
    by = {"site": np.arange(N) % 2} if k == 2 else None
    report = calibration_report(*labelled, by=by, **FEW | {"notion": notion, **given})
    expected = verdict_test(*labelled, notion=notion, labels=NAMES, **given)
    assert report.overall.test.statistic_pvalues == expected.statistic_pvalues
    assert report.overall.test.method == expected.method.replace(notion, "binary")
    weight = given.get("sample_weight")
    error = expected_calibration_error(*labelled, notion=notion, sample_weight=weight)
    assert_allclose(report.overall.ece.estimate, error, rtol=1e-12)
    assert report.settings["notion_asked"] == notion
    view = report.overall.overview
    first = np.argsort(-proba, axis=1)[:, :k]
    held, predicted = (
        np.average(np.take_along_axis(values, first, axis=1).mean(axis=1), weights=weight)
        for values in (holds, proba)
    )
    assert_allclose([view.base_rates[1], view.mean_predictions[1]], [held, predicted])
    assert (view.of_shares, len(report.subgroups)) == (k > 1, 2 * (k == 2))
    if k == 2:  # of the first two labels one may hold, which is half an event
        event = "The event (outcome 'a label of the first 2') happened in"
        said = f"{N} samples with a predicted probability. {event} {100 * held:.0f} %."
        assert view.n_groups is None
        assert said in " ".join(str(report).split())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y_true": np.full((N, K), 2)}, "not 0 or 1"),
        ({"pos_label": 1}, "pos_label"),
        ({"labels": ["news", "sport"]}, "labels"),
        ({"compare": np.ones((N, 2))}, "compare"),
        ({"by": np.arange(N + 1) % 2}, r"by column 'subgroup' has shape \(151,\)"),
        ({"by": {"label": np.arange(N) % 2}}, "by has a column 'label'.*another name"),
        ({"by": {"site": np.arange(N - 1) % 2}}, r"by column 'site' has shape \(149,\)"),
        (
            {"notion": "precision-at-2", "compare": np.ones((N, K))},
            "compare is not for notion='precision-at-2'.*a report of each",
        ),
        ({"notion": "precision-at-4"}, "K must be from 1 to 3"),
        ({"notion": "canonical"}, "notion is 'canonical'.*'precision-at-K'"),
    ],
)
def test_what_is_wrong_is_named(labelled, change, message):
    arguments = {"y_true": labelled[0], "y_proba": labelled[1], **FEW, **change}
    with pytest.raises(ValueError, match=message):
        calibration_report(**arguments)
