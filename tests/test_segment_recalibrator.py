"""Named segments: their rules, their offsets, silence where calibrated, proof, and JSON."""

import json

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit, logit
from sklearn.exceptions import NotFittedError

from skcal import Recalibrator
from skcal.choice import SegmentRecalibrator
from skcal.hypothesis_tests import segment_features
from skcal.recalibration import Identity, PlattScaling

QUICK = {"cv": 2, "random_state": 0}


def clinic(n, seed=0, effect=1.0):
    rng = np.random.default_rng(seed)
    features = {
        "age": rng.integers(20, 81, n),
        "sex": rng.choice(["F", "M"], n),
        "site": rng.choice(list("ABCDEF"), n),
    }
    p = expit(rng.normal(0, 1.2, n))
    shift = 0.9 * ((features["age"] > 65) & (features["sex"] == "F"))
    shift = shift - 0.8 * (features["site"] == "C")
    truth = expit(logit(p) + effect * shift)
    return p, (rng.random(n) < truth).astype(int), features, truth


@pytest.fixture(scope="module")
def fitted():
    p, y, features, _ = clinic(4000)
    return SegmentRecalibrator(PlattScaling(), **QUICK).fit(p, y, segments=features)


def test_the_segments_that_are_wrong_are_named_and_corrected(fitted):
    names = [segment.name for segment in fitted.segments_]
    assert "site = C" in names
    assert any("sex = F" in name and "age >" in name for name in names)
    assert len(names) <= 4
    by_name = {segment.name: segment for segment in fitted.segments_}
    assert by_name["site = C"].offset == pytest.approx(-0.7, abs=0.25)
    for segment in fitted.segments_:
        assert abs(segment.gap_after) < abs(segment.gap_before)
    assert fitted.comparison_["log_loss"].pvalue < 0.001
    p, _, features, truth = clinic(20_000, seed=1)
    after = fitted.predict_proba(p, segments=features)[:, 1]
    without = fitted.recalibrator_.predict_proba(p)[:, 1]
    assert np.sqrt(np.mean((after - truth) ** 2)) < 0.6 * np.sqrt(np.mean((without - truth) ** 2))
    text = fitted.summary()
    assert "site = C" in text
    assert "log loss: " in text


def test_offsets_are_those_of_a_penalised_logistic_regression(fitted):
    p, y, features, _ = clinic(4000)
    q = fitted.recalibrator_.predict_proba(p)[:, 1]
    members = [segment.rows(features) for segment in fitted.segments_]
    design = np.column_stack([*members, np.ones(4000)])
    offsets = np.array([*(segment.offset for segment in fitted.segments_), fitted.offset_])
    after = expit(logit(q) + design @ offsets)
    assert_allclose(fitted.predict_proba(p, segments=features)[:, 1], after)
    assert_allclose(design.T @ (y - after), offsets, atol=0.05)  # Newton steps end near the mode


def test_calibrated_predictions_stay_as_they_are_in_most_sets():
    changed = 0
    for seed in range(20):
        p, y, features, _ = clinic(400, seed, effect=0.0)
        model = SegmentRecalibrator(Identity(), n_resamples=99, **QUICK)
        model.fit(p, y, segments=features)
        changed += bool(model.segments_)
        if not model.segments_:
            assert_array_equal(model.predict_proba(p, segments=features)[:, 1], p)
            assert "none is changed" in model.summary()
    # The level is 5 %: of 20, more than 5 with probability 3e-4.
    assert changed <= 5


def test_rules_hold_for_the_samples_of_their_segments():
    rng = np.random.default_rng(0)
    n = 300
    column = rng.normal(size=n)
    column[:30] = np.nan
    features = {
        "x": column,
        "few": rng.integers(0, 3, n),
        "kind": np.array([None, "a", "b"], dtype=object)[rng.integers(0, 3, n)],
        "flag": rng.random(n) < 0.5,
    }
    segments = segment_features.make_segments(features, n, n_bins=4, order=2, min_samples=5)
    columns = {name: np.asarray(values) for name, values in features.items()}
    for number, name in enumerate(segments.names):
        rules = segments.rules_of(number)
        assert " and ".join(map(str, rules)) in name
        held = np.all([rule.holds(columns[rule.column]) for rule in rules], axis=0)
        assert_array_equal(np.flatnonzero(held), np.sort(segments.rows_of(number)))


def test_json_predicts_the_same_and_holds_the_rules(fitted):
    p, _, features, _ = clinic(300, seed=3)
    text = fitted.to_json()
    read = SegmentRecalibrator.from_json(text)
    expected = fitted.predict_proba(p, segments=features)
    assert_array_equal(read.predict_proba(p, segments=features), expected)
    assert_array_equal(read.predict_proba(p, segments=pd.DataFrame(features)), expected)
    assert read.segments_[0].name == fitted.segments_[0].name
    parts = json.loads(text)
    assert parts["formula"]
    parts["segments"][0]["rules"][0]["kind"] = "eval"
    with pytest.raises(ValueError, match="rules hold a 'eval'"):
        SegmentRecalibrator.from_json(json.dumps(parts))
    with pytest.raises(ValueError, match="segment_recalibrator is None"):
        SegmentRecalibrator.from_json("{}")


def test_weights_and_groups_reach_every_part():
    p, y, features, _ = clinic(800)
    weight = np.where(np.arange(800) < 400, 1.0, 0.0)
    half = {name: values[:400] for name, values in features.items()}
    model = SegmentRecalibrator(PlattScaling(), max_segments=2, **QUICK)
    weighted = model.fit(p, y, weight, segments=features).recalibrator_
    alone = PlattScaling().fit(p[:400], y[:400])
    assert weighted.slope_ == pytest.approx(alone.slope_, abs=1e-4)
    groups = np.arange(400) // 4
    model.set_params(recalibrator=Recalibrator([PlattScaling()], cv=2, random_state=0))
    model.fit(p[:400], y[:400], groups=groups, segments=half)
    assert model.comparison_["log_loss"].standard_error >= 0


def test_what_is_wrong_is_said(fitted):
    p, _, features, _ = clinic(60)
    with pytest.raises(ValueError, match="has no column 'site', by which a segment is made"):
        fitted.predict_proba(p, segments={"age": features["age"], "sex": features["sex"]})
    with pytest.raises(ValueError, match="has shape"):
        fitted.predict_proba(p[:5], segments=features)
    three = np.random.default_rng(0).dirichlet(np.ones(3), 60)
    with pytest.raises(NotFittedError):
        SegmentRecalibrator().predict(p, segments=features)
    with pytest.raises(ValueError, match="y has 3 classes; segments shift the log-odds of two"):
        SegmentRecalibrator(Identity(), **QUICK).fit(three, np.arange(60) % 3, segments=features)


@pytest.mark.filterwarnings("ignore:Class 1 does not occur .* maps:UserWarning")
def test_folds_without_a_class_are_refused_by_name():
    y = np.repeat([0, 1], [79, 1])
    p, segments = np.linspace(0.01, 0.1, 80), {"a": np.arange(80)}
    message = "y is unsuitable for 5 folds. Class 1 does not occur in the training part of fold"
    with pytest.raises(ValueError, match=message):
        SegmentRecalibrator(random_state=0).fit(p, y, segments=segments)
    for seed in range(6):  # two samples of a class are in every training part
        y[0] = 1
        SegmentRecalibrator(random_state=seed, max_segments=0).fit(p, y, segments=segments)


def test_a_new_category_and_a_missing_value_are_in_no_segment_of_their_column(fitted):
    proba = np.full(2, 0.4)
    features = {"age": np.array([40, np.nan]), "sex": ["F", "F"], "site": ["new", "A"]}
    after = fitted.predict_proba(proba, segments=features)[:, 1]
    plain = fitted.recalibrator_.predict_proba(proba)[:, 1]
    assert_allclose(after, expit(logit(plain) + fitted.offset_))
