"""Summaries of fits that chose among candidates, as text and as tables."""

import csv
import io
import re

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.naive_bayes import GaussianNB

from skcal import (
    CalibrationErrorSearchCV,
    PlugIn,
    RecalibratedClassifierCV,
    Recalibrator,
    TemperatureScaling,
    Zero,
)
from skcal._show import Summary, Table, one_line, pvalue_number, pvalue_text, share, tex
from skcal.choice import summaries
from skcal.datasets import make_tempered

DATA = make_tempered(200, n_classes=3, temperature=2.0, n_truth_draws=0, random_state=0)


def fitted(kind):
    if kind == "search":
        candidates = [Zero(), PlugIn(TemperatureScaling())]
        search = CalibrationErrorSearchCV(candidates, cv=3, random_state=0)
        return search.fit(DATA.proba, DATA.labels)
    recalibrator = Recalibrator([TemperatureScaling()], cv=3, random_state=0)
    if kind == "recalibrator":
        return recalibrator.fit(DATA.proba, DATA.labels)
    return RecalibratedClassifierCV(GaussianNB(), recalibrator, cv=3).fit(DATA.proba, DATA.labels)


@pytest.mark.parametrize("kind", ["search", "recalibrator", "classifier"])
def test_tables_hold_the_numbers_of_the_summary(kind):
    pytest.importorskip("pandas")
    one = fitted(kind)
    frame = one.to_frame()
    read = list(csv.DictReader(io.StringIO(one.summary(format="csv"))))
    assert [row["candidate"] for row in read] == frame["candidate"].tolist()
    assert frame["chosen"].sum() == 1
    column = "risk" if kind == "search" else "loss"
    assert [float(row[column]) for row in read] == frame[column].tolist()
    lines = one.summary(format="latex").splitlines()
    assert lines[0].startswith("% ")
    assert next(line for line in lines if r"\textbf{" in line).startswith(
        rf"\textbf{{{frame['candidate'][frame['chosen'].idxmax()]}}}"
    )
    assert all(line.endswith(r" \\") for line in lines if " & " in line)
    assert len([line for line in lines if " & " in line]) == len(frame) + 1
    text = one.summary()
    assert text.count("\n* ") == 2
    assert all(name in text for name in frame["candidate"])


def test_summaries_are_of_fitted_estimators_and_of_known_forms():
    with pytest.raises(NotFittedError):
        Recalibrator().summary()
    with pytest.raises(NotFittedError):
        CalibrationErrorSearchCV().to_frame()
    with pytest.raises(ValueError, match=r"format='html' is unknown\. Use one of text, csv, latex"):
        fitted("recalibrator").summary(format="html")


def test_a_recalibrator_that_was_read_says_so():
    read = Recalibrator.from_json(fitted("recalibrator").to_json())
    assert read.summary().endswith(", read from JSON")
    assert Summary("nothing").numbers.csv() == "\n"


def test_latex_prints_what_it_would_otherwise_read():
    names = {r"a\b": r"a\textbackslash{}b", "50 % & #1_$": r"50 \% \& \#1\_\$", "{~^}": None}
    for name, expected in names.items():
        assert tex(name) == expected or expected is None
    assert tex("{~^}") == r"\{\textasciitilde{}\textasciicircum{}\}"
    assert tex("  part") == r"\quad part"
    assert "\n" not in tex("two\nlines")
    table = Table(["x"], [["y"]], title="a\nb").latex()
    assert table.startswith("% a b\n\\begin{tabular}{l}\n\\toprule\nx \\\\\n\\midrule\ny")


def test_csv_is_not_evaluated():
    text = Table(("a", "b"), [("=1+1", 0.1), ("x,y", None)]).csv()
    assert text == 'a,b\n\'=1+1,0.1\n"x,y",\n'
    numbers = (np.float64(0.1), np.float32(0.5), np.int64(3), np.bool_(True))
    assert Table(tuple("abcd"), [numbers]).csv() == "a,b,c,d\n0.1,0.5,3,True\n"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a name of 15 ch", "a name of 15 ch"),
        ("a name of 16 chr", "a name of…6 chr"),
        (" two\n lines\t", "two lines"),
        ("\x1b[31mred", "\N{REPLACEMENT CHARACTER}[31mred"),
    ],
)
def test_long_names_lose_their_middle(text, shown):
    assert one_line(text, 15) == shown


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (1.0, "100 %"),
        (0.9999998, "just below 100 %"),
        (0.99998, "99.998 %"),
        (0.997, "99.7 %"),
        (0.995, "99.5 %"),
        (0.9949, "99 %"),
        (0.0, "0 %"),
        (1e-8, "less than 0.0001 %"),
    ],
)
def test_only_what_is_certain_is_said_to_be(value, said):
    assert share(value) == said


@pytest.mark.parametrize("smallest", [0.0, 1e-4])
def test_no_pvalue_is_shown_as_0(smallest):
    for value in (0.0, 1e-310, 1e-20, 1e-5, 0.04):
        assert pvalue_text(value, smallest).split()[-1] != "0"
        assert pvalue_number(value) != "0"
    assert pvalue_text(0.0, 0.0) == "p ≤ 1e-300"


@pytest.mark.parametrize(("most", "drawn"), [(None, False), (300, False), (299, True), (100, True)])
def test_a_summary_says_how_many_predictions_were_drawn_and_what_a_single_map_averages(most, drawn):
    rng = np.random.default_rng(0)
    p = rng.beta(1, 3, 300)
    y = rng.random(300) < p**1.5
    fitted = Recalibrator(max_samples=most, random_state=0).fit(p, y.astype(int))
    text = " ".join(fitted.summary().split())
    assert (f", {most} of them drawn at random; cross" in text) == drawn
    assert "the only method that was tried" not in text
    if fitted.best_name_ == "BayesianCalibration":
        assert (
            "chosen: BayesianCalibration, an average of maps, weighted by how well they fit: "
            in text
        )
        assert "; the only other candidate is to leave the predictions as they are." in text
        largest = max(fitted.best_estimator_.weights_, key=fitted.best_estimator_.weights_.get)
        largest = summaries._IN_WORDS.get(largest, largest)
        assert re.search(rf"how well they fit: \d+ % {largest}[,;]", text)


@pytest.mark.parametrize(("power", "seed"), [(1.0, 0), (1.0, 3), (1.2, 0), (2.5, 0)])
def test_the_choice_of_a_recalibrator_says_where_no_gain_is_certain(power, seed):
    rng = np.random.default_rng(seed)
    p = rng.beta(1, 3, 400)
    y = (rng.random(400) < p**power).astype(int)
    fitted = Recalibrator(random_state=0).fit(p, y)
    text = " ".join(fitted.summary().split())
    kept = fitted.best_name_ == "Identity"
    assert kept == (seed == 3)
    assert ("calibration error after" in text) == (not kept)
    gains = [gap.difference > 0 and gap.pvalue <= 0.05 for gap in fitted.comparison_.values()]
    smaller = fitted.remaining_error().high < fitted.initial_error().estimate
    uncertain = not kept and not any(gains) and not smaller
    error = fitted.initial_error()
    said = "No gain over the predictions as they are is certain; they may stay as they are."
    if error.is_significant:
        said = f"The predictions are miscalibrated ({error.sentence()}), but cross-validation does "
        said += "not show for certain that this map gains on new data."
    assert (f"leave the predictions as they are. {said}" in text) == uncertain
    assert uncertain == (power < 2 and not kept)
    assert ("so a reduction is not certain" in text) == (not kept and not smaller)
