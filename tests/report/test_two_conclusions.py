"""Where two measures name different models, one sentence says why, by the numbers beside it."""

import re

import numpy as np
import pytest
from scipy.special import expit

from skcal import Sample
from skcal._show import plain_number
from skcal.notions import ANSWERS
from skcal.recalibration import PlattScaling
from skcal.report import calibration_report
from skcal.report.rows import centres_table, segments_table, subgroups_table

N = 4000
NAMES = {"name": "coarse", "compare_name": "sharp"}


def two_models(first_is_coarse):
    """A calibrated model that knows little, and an overconfident one that knows all."""
    rng = np.random.default_rng(0)
    z = rng.normal(0, 1.5, N)
    y = (rng.random(N) < expit(z)).astype(int)
    known = 0.5 * z + rng.normal(0, 0.6, N)
    coarse = PlattScaling().fit(expit(known), y).predict_proba(expit(known))[:, 1]
    pair = coarse, expit(1.8 * z)
    site = rng.choice(list("ABCDE"), N)
    return y, *(pair if first_is_coarse else pair[::-1]), site


@pytest.mark.parametrize("first_is_coarse", [True, False])
def test_a_model_that_is_calibrated_worse_and_scores_better_is_said_to_discriminate(
    first_is_coarse,
):
    y, first, second, site = two_models(first_is_coarse)
    names = dict(zip(NAMES, list(NAMES.values())[:: 1 if first_is_coarse else -1], strict=True))
    report = calibration_report(
        y,
        first,
        compare=second,
        by={"site": site},
        segments={"site": site},
        n_resamples=19,
        **names,
    )
    text = report.verdict
    assert text.startswith("coarse is better calibrated")
    other = "sharp" if first_is_coarse else "coarse"  # whose subgroups are not in the table
    hidden = ", and may be off although it is not" * (other == "coarse")  # which is calibrated
    assert f"Those of {other} were not compared{hidden}." in text
    [lower] = re.findall(r"But sharp has the lower ([\w ]+): it discriminates better", text)
    by = {True: {}, False: {}}
    for test in report.comparison.score_tests:
        by[(test.estimate > 0) == first_is_coarse][test.measure] = test
    assert set(lower.split(" and ")) <= set(by[True]) - set(by[False])
    models = {model.name: model for model in (report.overall, report.comparison.second)}
    [coarse], [sharp] = (
        [score for score in models[name].scores if score.name == lower.split(" and ")[0]]
        for name in ("coarse", "sharp")
    )
    for part in ("discrimination", "miscalibration"):
        pair = (plain_number(getattr(score, part)) for score in (sharp, coarse))
        assert "({} against {}".format(*pair) in text
    assert sharp.score < coarse.score
    gain = sharp.discrimination - coarse.discrimination
    assert gain > sharp.miscalibration - coarse.miscalibration > 0
    for table in (subgroups_table(report), centres_table(report), segments_table(report)):
        assert f"All rows are of {names['name']}, none of {names['compare_name']}." in table.notes
    assert " ".join(str(report).split()).count("All rows are of") == 3


def test_a_model_that_is_better_by_all_is_not_said_to_be_worse_by_one():
    y, coarse, sharp, _ = two_models(True)
    right = PlattScaling().fit(sharp, y).predict_proba(sharp)[:, 1]
    report = calibration_report(y, sharp, compare=right, n_resamples=19, **NAMES)
    assert report.verdict.startswith("sharp is better calibrated")
    assert "But" not in report.verdict
    alone = calibration_report(y, coarse, by=y > 2, n_resamples=19)
    assert "All rows" not in subgroups_table(alone).notes[0]


@pytest.mark.parametrize("differ", [False, True])
def test_what_differs_between_subgroups_is_said_beyond_chance(differ):
    rng = np.random.default_rng(1)
    site = np.repeat(np.arange(6), 800)
    z = rng.normal(size=len(site))
    y = (rng.random(len(z)) < expit(z + differ * 0.5 * (site - 2.5))).astype(int)
    report = calibration_report(y, expit(z), by={"site": site}, n_resamples=19)
    for found in report.heterogeneity:
        shown = f"{found.standard_deviation:.2f}"
        chance = "Chance explains how the 6 subgroups differ." in found.sentence()
        assert chance == (shown == "0.00")
        assert (f"by a standard deviation of {shown}." in found.sentence()) != chance
    assert any("Beyond chance, log O/E" in one.sentence() for one in report.heterogeneity) == differ


def test_confidences_that_rank_better_and_err_more_are_said_to_tell_right_answers():
    """Answers of two language models, the first of which is too sure and ranks better."""
    rng = np.random.default_rng(3)
    z = rng.normal(0.8, 0.7, N)
    right = (rng.random(N) < expit(z)).astype(int)
    flat = np.full(N, right.mean()) + rng.uniform(-0.02, 0.02, N)
    sure, flat = (Sample(right, p, notion=ANSWERS) for p in (expit(9 * z), flat))
    report = calibration_report(sure, compare=flat, n_resamples=19, **NAMES)
    assert (
        "But coarse has the lower area under the risk-coverage curve: its confidences tell right "
        "answers from wrong ones better."
    ) in report.verdict
