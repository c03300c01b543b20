"""With a limit, a report says on which side of it each subgroup is, by simultaneous limits."""

import numpy as np
import pytest
from scipy.stats import binom

from skcal import Sample
from skcal.hypothesis_tests import equivalence_test
from skcal.hypothesis_tests.equivalence import equivalence_tests
from skcal.report import calibration_report, views


def parts(sizes, off=0.0):
    """Labels, predictions and subgroups; predictions of the last one are too high by ``off``."""
    rng = np.random.default_rng(0)
    where = np.repeat(["urban", "existing", "rural"], sizes)
    p = rng.uniform(off, 1, len(where))
    return (rng.random(len(p)) < p - off * (where == "rural")).astype(int), p, where


@pytest.mark.parametrize(
    ("sizes", "off", "sides", "each"),
    [
        (
            [1500, 1500, 60],
            0.0,
            "undecided in rural; below 0.1 in all samples, existing, urban",
            1 - 0.05 / 4,
        ),
        (
            [1500, 1500, 300],
            0.4,
            "above 0.1 in rural; below 0.1 in all samples, existing, urban",
            1 - 0.05 / 4,
        ),
        ([1500] * 3, 0.0, "below 0.1 in all samples, existing, rural, urban", 0.95),
    ],
)
def test_the_sides_of_all_subgroups_hold_together(sizes, off, sides, each, monkeypatch):
    for figures in ("_figures", "_curves"):
        monkeypatch.setattr(views, figures, lambda *_: "")
    y, p, where = parts(sizes, off)
    report = calibration_report(y, p, by=where, max_error=0.1, n_resamples=19)
    said = f"The calibration error is {sides} (joint confidence 95 %)."
    assert said in report.further
    assert said in " ".join(str(report).split())
    assert said.replace(" %", "\N{NO-BREAK SPACE}%") in report._repr_html_()
    rows = [np.ones(len(y), dtype=bool), *(where == part.name for part in report.subgroups)]
    for result, part in zip(report.decided, rows, strict=True):
        expected = equivalence_test(y[part], p[part], limit=0.1, confidence_level=each)
        assert (result.low, result.high) == (expected.low, expected.high)
    facts = report.to_dict()["decided"]
    assert [one["verdict"] for one in facts] == [one.verdict for one in report.decided]


def test_without_a_limit_or_without_subgroups_nothing_is_decided():
    y, p, where = parts([100, 100, 100])
    for options in ({"by": where}, {"max_error": 0.1}):
        report = calibration_report(y, p, n_resamples=19, **options)
        assert report.decided == []
        assert "joint confidence" not in str(report)


def test_what_is_decided_alone_but_not_together_is_explained():
    """The title goes by the limits of all samples alone, the decision by wider ones."""
    y, p, where = parts([400, 60, 60])
    wide = [
        equivalence_test(y, p, limit=0.1, confidence_level=level).high
        for level in (0.95, 1 - 0.05 / 4)
    ]
    limit = float(np.mean(wide))
    report = calibration_report(y, p, by=where, max_error=limit, n_resamples=19)
    assert report.overall.error.high < limit < report.decided[0].high
    assert report.answer.title == f"Calibrated within {limit:g}"
    [said] = [text for text in report.further if "joint confidence" in text]
    assert "undecided in all samples" in said
    assert said.endswith(
        f"Alone, by the limits in the table, the error is below {limit:g} in all samples; all 4 "
        "rows together need wider limits."
    )


@pytest.mark.slow
@pytest.mark.parametrize("others", [0.0, 0.05])
def test_joint_decisions_beside_an_error_at_the_limit_are_rarely_wrong(others):
    """Predictions are too low by the limit in one subgroup of five, or in all."""
    rng, wrong, off = np.random.default_rng(0), 0, np.repeat([0.05, *[others] * 4], 400)
    true = [off.mean(), *off[::400]]
    for _ in range(60):
        p = rng.uniform(0, 0.9, 2000)
        y = (rng.random(2000) < p + off).astype(int)
        whole = Sample(y, p)
        samples = [whole, *(Sample(y[k : k + 400], p[k : k + 400]) for k in range(0, 2000, 400))]
        decided = equivalence_tests([(one, "calibration") for one in samples], limit=0.05)
        wrong += any(
            one.verdict == ("below" if error >= 0.05 else "above")
            or (error == 0.05 and one.verdict == "above")
            for one, error in zip(decided, true, strict=True)
        )
    assert wrong <= binom.isf(1e-2, 60, 0.05)
