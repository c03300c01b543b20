"""Where subgroups or segments differ, the advice can be followed, and after it they do not."""

import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from scipy.special import expit, logit

from skcal import Recalibrator
from skcal.choice import SegmentRecalibrator
from skcal.cli.commands import main
from skcal.recalibration import PlattScaling
from skcal.report import calibration_report
from skcal.report.centres import differing_columns
from skcal.report.compare import split
from skcal.report.findings import ReportSamples
from skcal.report.words import advice_by_part
from skcal.sample import read_sample

N, FRESH = 12_000, 3000  # where maps are fitted, and judged
FAST = {"n_resamples": 19, "random_state": 0}
OFF = {
    "nothing": lambda x, cases: 0 * x,
    "one slope": lambda x, cases: -0.5 * x,
    "channel": lambda x, cases: 0.9 * (cases["channel"] == "app"),
    "both": lambda x, cases: 0.9 * (cases["channel"] == "app") + 0.6 * (cases["sex"] == "f"),
    "slopes": lambda x, cases: np.where(cases["sex"] == "f", -0.5, 0.8) * x,
}


def draw(seed, off, n=N):
    """Outcomes, predictions and cases; countries use other channels, and are at other risk."""
    rng = np.random.default_rng(seed)
    channel = rng.choice(["app", "web", "shop"], n, p=[0.3, 0.5, 0.2])
    in_app, others = (
        rng.choice(["DE", "FR", "IT"], n, p=p) for p in ([0.8, 0.2, 0], [0.3, 0.4, 0.3])
    )
    country = np.where(channel == "app", in_app, others)
    cases = {"country": country, "sex": rng.choice(["f", "m"], n), "channel": channel}
    p = expit(rng.normal(-1.5, 1, n) + 0.8 * (country == "FR"))
    truth = expit(logit(p) + OFF[off](logit(p), cases))
    return (rng.random(n) < truth).astype(int), p, cases


def by_each(column, values, seed, off):
    """New samples, recalibrated by a map for each of some values of a column, fitted to others.

    Of seeds 1 to 10 two differ by chance; the test also rejects the truth of seed 1 (p = 0.009).
    """
    (y, p, cases), (new_y, new_p, new) = draw(seed, off), draw(seed + 3, off, FRESH)
    after = new_p.copy()
    for value in values:
        own, there = cases[column] == value, new[column] == value
        fitted = Recalibrator([PlattScaling()], random_state=0).fit(p[own], y[own])
        after[there] = fitted.predict_proba(new_p[there])[:, 1]
    return new_y, after, new


@pytest.mark.parametrize("off", ["channel", "slopes"])
def test_each_subgroup_of_the_column_that_explains_the_others_gets_a_map(off):
    y, p, cases = draw(0, off)
    report = calibration_report(y, p, by=cases, **FAST)
    advice = advice_by_part(report)
    [(column, values)] = re.findall(
        r"Fit a Recalibrator to (?:each of )?(\w+) = ([\w, ]+) on a held-out", advice
    )
    assert (column, values) == {"channel": ("channel", "app"), "slopes": ("sex", "f and m")}[off]
    stars = [part.name for part in report.subgroups if part.is_significant]
    assert {f"{column} = {value}" for value in values.split(" and ")} <= set(stars)
    explained = (
        "The differences by channel are the largest. Beside them, the differences by country"
    )
    assert (explained in advice) == (off == "channel")
    new_y, after, new = by_each(column, values.split(" and "), 0, off)
    again = calibration_report(new_y, after, by=new, **FAST)
    assert not advice_by_part(again)
    assert not again.overall.is_significant


def test_columns_that_overlap_are_recalibrated_together():
    """One map for each subgroup cannot be: each sample is in several."""
    y, p, cases = draw(0, "both")
    advice = advice_by_part(calibration_report(y, p, by=cases, **FAST))
    assert "Each sample is in a subgroup of channel and one of sex, so these overlap." in advice
    assert "Fit a SegmentRecalibrator to these columns on a held-out set" in advice
    assert "Fit a Recalibrator" not in advice
    columns = {name: cases[name] for name in ("channel", "sex")}
    method = SegmentRecalibrator(PlattScaling(), cv=2, random_state=0, n_resamples=99)
    method.fit(p, y, segments=columns)
    new_y, new_p, new = draw(1, "both", FRESH)
    after = method.predict_proba(new_p, segments={name: new[name] for name in columns})[:, 1]
    assert not advice_by_part(calibration_report(new_y, after, by=new, **FAST))


def test_segments_that_differ_are_recalibrated_together():
    y, p, cases = draw(0, "channel")
    report = calibration_report(y, p, segments=cases, **FAST)
    assert (
        "Fit a SegmentRecalibrator to the features on a held-out set" in report.answer.sentences[-1]
    )
    method = SegmentRecalibrator(PlattScaling(), cv=2, random_state=0, n_resamples=99)
    method.fit(p, y, segments=cases)
    new_y, new_p, new = draw(1, "channel", FRESH)
    after = method.predict_proba(new_p, segments=new)[:, 1]
    assert not advice_by_part(calibration_report(new_y, after, segments=new, **FAST))


def write(path, y, p, cases):
    rows = zip(p.tolist(), y.tolist(), *(column.tolist() for column in cases.values()), strict=True)
    lines = [",".join(["p", "y", *cases]), *(",".join(map(str, row)) for row in rows)]
    Path(path).write_text("\n".join(lines) + "\n", encoding="utf-8")


def test_commands_recalibrate_column_by_column(tmp_path, monkeypatch, capsys):
    """As the report says: the values of one column first, and then those of the next one."""
    monkeypatch.chdir(tmp_path)
    paths = ["a.csv", "b.csv", "c.csv"]
    for seed, path in enumerate(paths):
        write(path, *draw(seed, "both", FRESH if path == paths[-1] else N))
    asked = "--label", "y", "--score", "p", "--by", "sex", "--by", "channel", "--resamples", "19"
    order = []
    while paths:
        assert main(["report", paths[0], *asked]) == 0
        told = " ".join(capsys.readouterr().out.split())
        found = re.search(
            r"Recalibrate (\w+) = ([\w, ]+) separately \(recalibrate --only (\w+=\w+|'\w+=…')\)",
            told,
        )
        if found is None:
            break
        column, fit, paths = found[1], paths[0], paths[1:]
        order.append(column)
        for path in paths:
            for value in re.split(", | and ", found[2]):
                only = f"{column}={value}"
                command = ["recalibrate", fit, path, "--only", only, "--out", "out.csv"]
                assert main([*command, *asked[:4], "--method", "intercept"]) == 0
                Path("out.csv").replace(path)  # the other rows stay as they are
        capsys.readouterr()
    assert order == ["channel", "sex"]
    assert "differ, so one recalibration" not in told


def test_commands_recalibrate_the_worst_segment_as_the_report_says(tmp_path, monkeypatch, capsys):
    """A combination of values, among the rows that the report is about."""
    monkeypatch.chdir(tmp_path)
    for seed, path in enumerate(["a.csv", "b.csv"]):
        y, p, cases = draw(seed, "nothing")
        rng = np.random.default_rng(seed + 10)
        off = (cases["channel"] == "app") & (cases["sex"] == "f")
        p = np.where(off, expit(logit(p) - 1.2), p)
        write(path, y, p, {**cases, "age": rng.uniform(20, 80, N)})
    asked = "--label", "y", "--score", "p", "--resamples", "19"
    segments = "--segments", "sex", "--segments", "channel"

    def said(*arguments):
        assert main([*arguments, *asked]) == 0
        return " ".join(capsys.readouterr().out.split())

    told = said("report", "a.csv", *segments, "--only", "country=DE")
    command = re.search(r"Recalibrate the worst segment \((recalibrate [^)]+)\)", told)[1]
    assert command == "recalibrate --only country=DE --only sex=f --only channel=app"
    assert "overlap need SegmentRecalibrator of the Python package" in told
    name, *options = shlex.split(command)
    assert main([name, "a.csv", "b.csv", *options, "--out", "b.csv", *asked[:4]]) == 0
    capsys.readouterr()
    assert "Segments differ" not in said("report", "b.csv", *segments, "--only", "country=DE")
    by = said("report", "a.csv", "--by", "sex", "--by", "channel", "--only", "country=DE")
    assert "recalibrate --only country=DE --only" in by


def test_a_column_that_differs_is_advised_before_its_worst_segment(tmp_path, monkeypatch, capsys):
    """The worst segment is a part of a channel, all of which is off."""
    monkeypatch.chdir(tmp_path)
    write("a.csv", *draw(0, "channel"))
    asked = "--label", "y", "--score", "p", "--resamples", "19", "--by", "channel"
    assert main(["report", "a.csv", *asked, "--segments", "channel", "--segments", "sex"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "Subgroups and segments differ" in told
    assert re.search(r"Recalibrate channel = .* separately \(recalibrate --only", told)
    assert "the worst segment (" not in told


def test_a_segment_of_a_range_is_recalibrated_in_python(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    y, p, cases = draw(0, "nothing")
    age = np.random.default_rng(10).uniform(20, 80, N)
    write("a.csv", y, np.where(age > 65, expit(logit(p) - 1.2), p), {**cases, "age": age})
    asked = "--label", "y", "--score", "p", "--resamples", "19"
    assert main(["report", "a.csv", *asked, "--segments", "age"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "Commands recalibrate no segment such as the worst one, but SegmentRecal" in told


def test_one_recalibration_is_enough_where_it_fixes_every_subgroup():
    """O/E differs between countries, since they are at other risk; the map is the same."""
    y, p, cases = draw(0, "one slope")
    report = calibration_report(y, p, by=cases, **FAST)
    ratios = [part.ratio for part in report.subgroups]
    assert max(one.low for one in ratios) > min(one.high for one in ratios)
    assert "differ, so one" not in report.verdict
    assert "difference between subgroups: recalibrate all together." in report.verdict
    fitted = Recalibrator([PlattScaling()], random_state=0).fit(p, y)
    new_y, new_p, new = draw(1, "one slope", FRESH)
    again = calibration_report(new_y, fitted.predict_proba(new_p)[:, 1], by=new, **FAST)
    assert not advice_by_part(again)
    assert not any(part.is_significant for part in again.subgroups)


def test_a_subgroup_that_is_small_for_a_map_of_its_own_is_named():
    y, p, cases = draw(0, "channel", 900)
    report = calibration_report(y, p, by=cases["channel"], **FAST)
    off = [one for one in report.subgroups if one.is_significant]
    small = [one.name for one in off if one.overview.n_samples < 300]
    assert small
    text = f"Each recalibration needs about 300 samples; fewer are in {', '.join(small)}."
    assert text in advice_by_part(report)
    assert "fewer are in" not in advice_by_part(calibration_report(*draw(0, "channel")[:2], **FAST))


@pytest.mark.parametrize("copies", [1, 4])
def test_columns_differ_by_chance_as_rarely_as_the_level_says(copies):
    """Of 200 data sets at most 22 at level 5 %: more has the probability 3e-4. So with copies."""
    found = 0
    for seed in range(200):
        y, p, cases = draw(seed, "nothing", 400)
        rows = np.repeat(np.arange(400), copies)
        groups = None if copies == 1 else rows
        options = {"groups": groups, "at_least": 2, "keep_weightless": True}
        sample = read_sample(y[rows], p[rows], **options)
        by = {name: column[rows] for name, column in cases.items()}
        columns = split(by, sample, ReportSamples.of(sample.counted))
        found += bool(differing_columns(columns, sample.counted, 0.95).columns)
    assert found <= 22


def test_a_constant_column_and_a_single_column_of_answers_are_read():
    y, p, cases = draw(0, "slopes")
    proba = np.column_stack([1 - p, p])
    constant = {"sex": cases["sex"], "all": np.full(N, "x")}
    report = calibration_report(y, proba, notion="confidence", by=constant, **FAST)
    assert report.differing.columns == ["sex"]
    assert "Subgroups differ, so one recalibration of all samples" in report.verdict
    assert not calibration_report(y, p, by=constant["all"], **FAST).differing.columns


def test_models_that_err_to_opposite_sides_in_one_table_do_not_get_one_map():
    """Pooled, a model that is too sure and one that is not sure enough look almost calibrated."""
    rng = np.random.default_rng(0)
    truth = rng.dirichlet(np.full(4, 0.6), size=N)
    model = rng.choice(["cautious", "sure"], N)
    proba = truth ** np.where(model == "sure", 1.8, 0.6)[:, None]
    proba /= proba.sum(axis=1, keepdims=True)
    y = (truth.cumsum(axis=1) < rng.uniform(size=(N, 1))).sum(axis=1).clip(0, 3)
    report = calibration_report(y, proba, by={"model": model}, **FAST)
    assert "Recalibrate on a held-out set" in calibration_report(y, proba, **FAST).verdict
    assert "Recalibrate on a held-out set" not in report.verdict
    assert "Fit a Recalibrator to each of model = cautious and sure on a held-out" in report.verdict
    assert "model = sure (overconfident)" in report.verdict
    assert "model = cautious (underconfident)" in report.verdict
    after = proba.copy()
    half = rng.random(N) < 0.7
    for name in np.unique(model):
        own = model == name
        fitted = Recalibrator(random_state=0).fit(proba[own & half], y[own & half])
        after[own] = fitted.predict_proba(proba[own])
    again = calibration_report(y[~half], after[~half], by={"model": model[~half]}, **FAST)
    assert not advice_by_part(again)


@pytest.mark.parametrize("kind", ["one outcome", "one prediction", "certain", "weights of 0"])
def test_columns_are_compared_where_little_is_known(kind):
    y, p, cases = draw(0, "channel", 600)
    weight = None
    if kind == "one outcome":
        y = np.zeros(600, int)
    elif kind == "one prediction":
        p = np.full(600, 0.3)
    elif kind == "certain":
        p = np.where(np.arange(600) % 3, p, np.round(p))
    else:
        weight = (np.arange(600) % 2).astype(float)
    report = calibration_report(
        y, p, by=cases, sample_weight=weight, labels=[0, 1], max_error=0.9, **FAST
    )
    assert set(report.differing.columns) <= set(cases)
    assert kind != "one outcome" or report.differing.columns == []
    if kind == "weights of 0":
        half = {name: column[1::2] for name, column in cases.items()}
        alone = calibration_report(y[1::2], p[1::2], by=half, **FAST)
        assert alone.differing == report.differing
