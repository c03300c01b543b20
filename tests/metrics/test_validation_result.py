"""Validation measures in the forms of a manuscript."""

import csv
import functools
import io

import numpy as np
import pytest
from numpy.testing import assert_equal

from skcal.metrics import validation_measures


@functools.cache
def measured(n=400):
    rng = np.random.default_rng(0)
    p = rng.uniform(size=n)
    return validation_measures(rng.random(n) < p**1.5, p, n_resamples=39, random_state=0)


def test_the_heading_counts_samples_and_events():
    found = measured()
    assert found.n_events == round(400 * found.prevalence.estimate)
    assert str(found).startswith(f"Validation of 400 predictions, {found.n_events} events; 95 %")
    assert found.summary() == str(found)


def test_the_paragraph_says_every_measure_as_it_is_rounded():
    found = measured()
    said = found.summary(format="paragraph")
    low, high = found.slope.low, found.slope.high
    assert f"calibration slope {found.slope.estimate:.2f} ({low:.2f} to {high:.2f})" in said
    assert f"expected {400 * found.mean_prediction.estimate:.1f}, O/E ratio" in said
    assert f"off by {found.ici.estimate:.3f} (" in said
    assert "nan" not in said


def test_csv_holds_all_digits_and_latex_a_row_for_each_measure():
    found = measured()
    rows = list(csv.DictReader(io.StringIO(found.summary(format="csv"))))
    assert [row["measure"] for row in rows] == list(found.measures)
    assert [float(row["estimate"]) for row in rows] == [m.estimate for m in found.measures.values()]
    assert rows[1]["low"] == ""
    latex = found.summary(format="latex")
    assert latex.count(r" \\") == 1 + len(rows)
    assert r"95 \% interval" in latex
    with pytest.raises(ValueError, match=r"format='html' is unknown. Use one of text, paragraph"):
        found.summary(format="html")


def test_every_view_says_what_noise_adds_and_estimates_lie_in_their_intervals():
    found = measured()
    views = str(found), found._repr_html_(), found.summary("paragraph"), found.summary("latex")
    for view in views:
        assert (
            "ICI, E50, E90 and Emax are above 0 even for calibrated predictions. A lower"
            in " ".join(view.split())
        )
    for name in ("ici", "e50", "e90", "emax"):
        estimate, low, high = getattr(found, name)
        assert 0 <= low <= estimate <= high


@pytest.mark.parametrize(
    ("n", "n_events", "told"),
    [
        (60, 15, "15 events are fewer than the 100 of a rule of thumb for validations"),
        (300, 250, "50 samples without an event are fewer than the 100"),
        (220, 110, None),
    ],
)
def test_every_view_says_that_events_are_few(n, n_events, told):
    rng = np.random.default_rng(0)
    y = np.arange(n) < n_events
    found = validation_measures(y, rng.uniform(0.05, 0.95, n) * 0.5 + 0.4 * y, n_resamples=19)
    for view in str(found), found._repr_html_(), found.summary("paragraph"), found.summary("latex"):
        view = " ".join(view.split())
        assert ("rule of thumb" in view) == (told is not None)
        assert told is None or told in view


def test_without_resamples_distances_have_no_intervals_and_all_else_is_the_same():
    rng = np.random.default_rng(0)
    p = rng.uniform(size=200)
    y = rng.uniform(size=200) < p
    full, quick = (
        validation_measures(y, p, n_resamples=n_resamples, random_state=0).measures
        for n_resamples in (19, None)
    )
    for name, measure in full.items():
        if name in ("ici", "e50", "e90", "emax"):
            assert quick[name].estimate == measure.estimate
            assert np.isnan(quick[name][1:]).all()
        else:
            assert_equal(quick[name], measure)  # NaN equals NaN
