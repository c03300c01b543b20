import json

import numpy as np
import pytest

from skcal import Binning, calibration_report
from skcal.hypothesis_tests import segment_test


@pytest.fixture(scope="module")
def audited():
    rng = np.random.default_rng(0)
    p, group = rng.uniform(size=600), rng.choice(["<old>", "young"], 600)
    y = (rng.uniform(size=600) < np.where(group == "young", p**2, p)).astype(int)
    features = {"age": group, "score": rng.normal(size=600)}
    options = {"n_resamples": 99, "random_state": 0}
    report = calibration_report(y, p, segments=features, candidates=[Binning()], **options)
    return report, segment_test(y, p, features, relative=True, **options)


def test_numbers_are_those_of_the_test(audited):
    report, test = audited
    assert report.segments.pvalue == test.pvalue == 0.01
    assert report.segments.segments == test.segments
    data = report.to_dict()["segments"]
    assert data["pvalue"] == test.pvalue
    assert data["n_segments"] == len(test.segments)
    assert data["worst"] == [segment._asdict() for segment in test.segments[:10]]


def test_every_view_shows_the_worst_segment(audited):
    report, test = audited
    worst = test.segments[0]
    said = "of 14 overlapping segments "
    assert said in " ".join(str(report).split())
    assert worst.name in str(report)
    assert f"first {worst.name}." in report.verdict
    page = report._repr_html_()
    assert "<h4>Segments</h4>" in page
    assert "age = young" in page
    assert "<old>" not in page
    assert json.loads(report.to_json())["segments"]["worst"][0]["name"] == worst.name


def test_without_features_there_are_no_segments():
    y, p = np.tile([0, 1], 20), np.full(40, 0.5)
    report = calibration_report(y, p, candidates=[Binning()], n_resamples=19, random_state=0)
    assert report.segments is None
    assert "segment" not in str(report)


def test_a_model_that_is_off_everywhere_is_off_in_no_segment_beyond_that():
    rng = np.random.default_rng(1)
    p, site = rng.uniform(size=600), rng.choice(["a", "b", "c"], 600)
    y = rng.uniform(size=600) < p**2
    options = {"candidates": [Binning()], "n_resamples": 99, "random_state": 0}
    report = calibration_report(y, p, segments={"site": site}, **options)
    assert report.overall.test.pvalue == 0.005
    assert "segment" not in report.verdict
    assert "None of 3 overlapping segments differs significantly" in str(report)


def test_segments_that_are_too_small_are_told_by_the_name_of_the_argument():
    y, p = np.tile([0, 1], 30), np.full(60, 0.5)
    with pytest.raises(ValueError, match=r"^segments make no segment of at least 20 samples"):
        calibration_report(y, p, segments={"age": np.arange(60.0)}, candidates=[Binning()], cv=2)
