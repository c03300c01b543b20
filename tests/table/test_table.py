"""Tables give what the samples give that they count, however these come."""

import inspect
import json
import math

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import skcal
from skcal import (
    CalibrationTable,
    Sample,
    calibration_error,
    calibration_test,
    displays,
    equivalence_test,
    hypothesis_tests,
    metrics,
    scan_test,
)
from skcal.metrics import (
    calibration_bins,
    expected_calibration_error,
    maximum_calibration_error,
    score_decomposition,
    sharpness,
)
from skcal.metrics.error_limits import ErrorLimits
from skcal.metrics.gap_sums import FOLDS
from skcal.table import cells

pytestmark = pytest.mark.filterwarnings("ignore:n_resamples")


def binary(n, seed=0, kind="uniform"):
    """Miscalibrated binary predictions of several shapes."""
    rng = np.random.default_rng([seed, n])
    p = {
        "uniform": lambda: rng.random(n),
        "rare": lambda: rng.beta(1, 30, n),
        "sharp": lambda: 1 / (1 + np.exp(-4 * rng.standard_normal(n))),
        "rounded": lambda: rng.integers(0, 101, n) / 100,
        "atoms": lambda: np.where(
            rng.random(n) < 0.2, rng.integers(0, 3, n) / 2, rng.beta(2, 2, n)
        ),
    }[kind]()
    return (rng.random(n) < np.clip(p**1.2 + 0.02 * np.sin(9 * p), 0, 1)).astype(int), p


def rows_of(n, n_classes=3, seed=0):
    """Labels and overconfident rows of classes."""
    rng = np.random.default_rng([seed, n])
    truth = rng.dirichlet(np.full(n_classes, 0.5), n)
    P = truth**1.2
    return (truth.cumsum(1) < rng.random((n, 1))).sum(1), P / P.sum(1, keepdims=True)


def cases(n):
    rng = np.random.default_rng(n)
    (y, p), (labels, P) = binary(n), rows_of(n)
    several = (rng.random((n, 3)) < P).astype(int)
    votes = rng.binomial(5, p**1.3)
    weight, groups = rng.lognormal(0, 0.5, n), rng.integers(0, n // 4, n)
    return {
        "binary": (y, p, {}, {}),
        "names": (np.array(["no", "yes"])[y], p, {"pos_label": "no"}, {}),
        "two columns": (y, np.column_stack([p, 1 - p]), {"pos_label": 0, "labels": [0, 1]}, {}),
        "weights": (y, p, {}, {"sample_weight": weight}),
        "weights of 0": (y, p, {}, {"sample_weight": np.where(y, 1.0, p > 0.3)}),
        "groups": (y, p, {}, {"groups": groups}),
        "shares": (np.column_stack([5 - votes, votes]) / 5, p, {}, {}),
        "votes": (np.column_stack([5 - votes, votes]), p, {}, {"sample_weight": weight}),
        "confidence": (labels, P, {}, {}),
        "logits": (labels, np.log(P) + 3, {}, {"from_logits": True}),
        "top-label": (labels, P, {"notion": "top-label"}, {"sample_weight": weight}),
        "class-wise": (labels, P, {"notion": "classwise"}, {}),
        "class-wise, groups": (labels, P, {"notion": "classwise"}, {"groups": groups}),
        "multi-label": (several, P, {"notion": "multi-label"}, {}),
    }


CASES = list(cases(20))


LIMITED = ("weights", "groups", "shares", "top-label")


def both(case, n):
    """A table and a sample of the same predictions."""
    y, p, reading, more = cases(n)[case]
    return CalibrationTable(**reading).update(y, p, **more), Sample(y, p, **reading, **more)


def limits(each, max_crossings=3):
    """Estimate, limits and crossings, whatever the test says."""
    of = ErrorLimits.of(each if isinstance(each, Sample) else each._as_sample())
    return of.estimate, of.low(0.05), *of.high(0.05, max_crossings)


def of_shares(case):
    return case in ("shares", "votes")


@pytest.mark.parametrize("case", CASES)
def test_binned_numbers_and_scores_are_those_of_the_samples(case):
    table, sample = both(case, 900)
    inexact = of_shares(case) or "groups" in case  # of products within cells
    rtol = 1e-3 if inexact else 1e-11
    for measure, options in [
        (expected_calibration_error, {}),
        (expected_calibration_error, {"norm": 2, "debias": True, "root": False}),
        (expected_calibration_error, {"n_bins": 5, "average": "macro"}),
        (maximum_calibration_error, {}),
        (sharpness, {}),
    ]:
        weighted = options.get("debias") and ("weights" in case or case == "top-label")
        found, expected = measure(table, **options), measure(sample, **options)
        # Of weights and predictions within a cell Σ w² p is not known.
        rough = {"rtol": 1e-3, "atol": 3e-6} if weighted or inexact else {"rtol": rtol}
        assert_allclose(found, expected, **rough)
    for score in ("brier", "log-loss"):
        found, expected = (
            score_decomposition(each, score=score, strategy="uniform") for each in (table, sample)
        )
        rtol = 1e-4 if inexact else 1e-8
        assert_allclose(found.score, expected.score, rtol=rtol)
        assert_allclose(found.miscalibration, expected.miscalibration, rtol=rtol, atol=1e-9)
    ece = expected_calibration_error(table) - expected_calibration_error(sample)
    assert abs(ece) < 1e-12
    if "groups" not in case:
        found, expected = calibration_bins(table), calibration_bins(sample)
        assert_array_equal(found.count, expected.count)
        assert_allclose(found.prediction, expected.prediction, rtol=1e-12)
        assert_allclose(found.low, expected.low, rtol=1e-9)


@pytest.mark.parametrize("case", CASES)
def test_limits_are_close_to_those_of_the_samples(case):
    (error, low, high, crossings), expected = map(limits, both(case, 3000))
    assert_allclose(error, expected[0], rtol=0.02, atol=1e-4)
    assert_allclose(high, expected[2], rtol=0.025)
    assert high > 0.97 * expected[2]
    assert low <= 1.2 * expected[1] + 1e-3
    assert crossings == expected[3]


@pytest.mark.parametrize("kind", ["uniform", "rare", "sharp", "rounded", "atoms"])
def test_limits_of_many_samples_agree(kind):
    y, p = binary(30_000, kind=kind)
    found, expected = limits(CalibrationTable().update(y, p)), limits(Sample(y, p))
    for value, same, rtol in zip(found, expected, (0.02, 0.02, 0.02, 0), strict=True):
        assert_allclose(value, same, rtol=rtol)


def in_folds(each):
    """How much weight each cell, outcome and fold has, of each part of the error."""
    of = ErrorLimits.of(each if isinstance(each, Sample) else each._as_sample())
    for part in of.parts:
        place = (3 * cells(part.x) + np.rint(part.x + part.residuals)) * FOLDS + part.folds
        yield np.bincount(place.astype(int), part.weight, 3 * FOLDS * 24_579)


@pytest.mark.parametrize("case", ["binary", "groups", "top-label", "class-wise"])
def test_the_folds_of_tables_are_those_of_the_samples(case):
    y, p, reading, _ = cases(3000)[case]
    more = {"groups": np.arange(3000) % 700} if case == "groups" else {}
    table, sample = (
        CalibrationTable(**reading).update(y, p, **more),
        Sample(y, p, **reading, **more),
    )
    for ours, theirs in zip(in_folds(table), in_folds(sample), strict=True):
        assert_allclose(ours, theirs, atol=1e-12)


def test_tables_of_the_other_outcome_have_the_same_limits():
    y, p = binary(3000)
    p = np.rint(p * 2**20) / 2**20  # whose 1 - p is exact
    found = limits(CalibrationTable().update(1 - y, 1 - p))
    assert_allclose(found, limits(CalibrationTable().update(y, p)), rtol=1e-9)


@pytest.mark.parametrize("case", CASES)
def test_tests_say_what_they_say_of_samples(case):
    table, sample = both(case, 1200)
    options = {"n_resamples": 199}
    found, expected = (calibration_test(each, **options) for each in (table, sample))
    assert found.pvalue <= 0.3 or expected.pvalue > 0.05
    assert expected.pvalue <= 0.3 or found.pvalue > 0.05
    assert found.n_impossible == expected.n_impossible
    assert found.statistic_pvalues.keys() == expected.statistic_pvalues.keys()
    found, expected = (scan_test(each, **options) for each in (table, sample))
    assert_allclose(found.statistic, expected.statistic, rtol=0.2)
    for error in ("calibration", "cutoff", "ece") if case in LIMITED else ():
        found, expected = (
            equivalence_test(each, limit=0.1, error=error) for each in (table, sample)
        )
        assert_allclose(found.high, expected.high, rtol=0.12)
        assert found.n_samples == expected.n_samples == 1200 - (sample.weight == 0).sum()


def panels_of(each, **options):
    show = displays.ReliabilityDisplay.from_predictions
    return show(each, plot=False, n_resamples=19, **options).panels


def assert_alike(ours, theirs, names, atol):
    for name in names:
        difference = np.abs(getattr(ours, name) - getattr(theirs, name))
        assert (difference <= atol).all(), (name, difference)


def assert_same_line(ours, theirs, atol):
    """Compare lines whose grids differ by rounding, and where they stop."""
    assert abs(np.isnan(ours.line_y).mean() - np.isnan(theirs.line_y).mean()) < 0.05
    drawn = [~np.isnan(panel.line_y) for panel in (ours, theirs)]
    line = np.interp(theirs.line_x, ours.line_x[drawn[0]], ours.line_y[drawn[0]])
    assert_allclose(line[drawn[1]], theirs.line_y[drawn[1]], atol=atol)


BINS = ("prediction", "frequency", "low", "high", "band_low", "band_high")


@pytest.mark.parametrize("case", CASES)
def test_diagrams_are_those_of_the_samples(case):
    table, sample = both(case, 1500)
    votes = 0.03 if of_shares(case) else 0  # limits of shares are those of labels
    for scale in ("linear", "logit")[: 1 + (case in LIMITED)]:
        panels = panels_of(table, scale=scale), panels_of(sample, scale=scale)
        for ours, theirs in zip(*panels, strict=True):
            for name in ("axis", "line", "n_samples", "n_bins", "sides", "label"):
                assert getattr(ours, name) == getattr(theirs, name)
            assert ours.n_events == pytest.approx(
                theirs.n_events, abs=2 if case == "votes" else 1e-9
            )
            # A cell that an end of a bin or bar cuts is on one side of it.
            assert_alike(ours, theirs, ("count", "histogram"), 4)
            assert_alike(ours, theirs, ("histogram_edges",), 1e-12)
            assert_alike(ours, theirs, BINS, 2 / theirs.count + votes)
            assert_same_line(ours, theirs, 0.003)
            assert_allclose(ours.number.estimate, theirs.number.estimate, atol=2e-3)
            assert_allclose(ours.number.high, theirs.number.high, rtol=0.03)
            assert_allclose(ours.number.low, theirs.number.low, atol=0.006)


@pytest.mark.parametrize(
    "options", [{}, {"scale": "logit"}, {"n_bins": 15}, {"method": "isotonic"}]
)
@pytest.mark.parametrize("step", [20, 100])
def test_diagrams_of_rounded_predictions_hold_the_digits_of_the_samples(step, options):
    rng = np.random.default_rng(step)
    p = rng.integers(0, step + 1, 4000) / step  # at ends of bins and of bars
    y, weight = (rng.random(4000) < p**1.5).astype(int), rng.lognormal(0, 0.4, 4000)
    given = {"sample_weight": weight} if "scale" in options else {}
    [ours] = panels_of(CalibrationTable().update(y, p, **given), **options)
    [theirs] = panels_of(Sample(y, p, **given), **options)
    assert (ours.axis, ours.line, ours.n_bins) == (theirs.axis, theirs.line, theirs.n_bins)
    assert_alike(ours, theirs, ("count", "histogram", "histogram_edges"), 1e-9)
    assert_alike(ours, theirs, BINS, 1e-8)
    assert_same_line(ours, theirs, 1e-6)
    assert ours.ranges
    assert theirs.ranges


@pytest.mark.parametrize("least", [3e-10, 1e-7, 9e-7, 1.1e-6, 1e-4])
def test_predictions_next_to_0_and_1_stay_apart_in_diagrams_of_tables(least):
    p = np.repeat([0, least, 3 * least, 0.5, 1 - least, 1.0], 70)
    y = np.random.default_rng(0).random(420) < p
    [ours] = panels_of(CalibrationTable().update(y, p), scale="logit")
    [theirs] = panels_of(Sample(y, p), scale="logit")
    assert_array_equal(ours.count, theirs.count)
    assert_allclose(ours.prediction, theirs.prediction, rtol=1e-5, atol=1e-30)
    bins = panels_of(CalibrationTable().update(y, p), edges=CalibrationTable().edges)[0]
    assert bins.count.tolist() == [210, 70, 140]


def test_a_diagram_of_a_table_is_drawn_and_bins_that_cut_cells_are_refused():
    pytest.importorskip("matplotlib")
    y, p = binary(900)
    show = displays.ReliabilityDisplay.from_predictions
    drawn = [show(each, n_resamples=19) for each in (CalibrationTable().update(y, p), Sample(y, p))]
    titles = [display.ax_.get_title() for display in drawn]
    assert titles[0].partition(" (")[0] == titles[1].partition(" (")[0]
    assert repr(drawn[0]) == repr(drawn[1])
    for display in drawn:
        display.figure_.clear()
    with pytest.raises(ValueError, match="cut cells of the CalibrationTable"):
        panels_of(CalibrationTable().update(y, p), n_bins=10)


def test_impossible_outcomes_and_rounding_are_those_of_the_samples():
    y, p = binary(2000, kind="rounded")
    p[:40], y[:40] = 0.0, 1
    table = CalibrationTable().update(y, p)
    found, expected = calibration_test(table), calibration_test(y, p)
    assert (found.resolution, found.n_rounded) == (expected.resolution, expected.n_rounded)
    assert found.resolution == 0.01
    exact, exact_of_rows = (
        calibration_test(table, resolution=None),
        calibration_test(y, p, resolution=None),
    )
    assert exact.n_impossible == exact_of_rows.n_impossible >= 40
    p = np.append(p, 0.123456)
    table.update([0], [0.123456]).update([0], [0.1234560001])
    assert calibration_test(table).resolution is None
    with pytest.raises(ValueError, match=r"resolution is 0\.01"):
        calibration_test(table, resolution=0.01)


def rejections(draw, n_sets):
    return sum(
        calibration_test(draw(seed), n_resamples=39).pvalue <= 0.05 for seed in range(n_sets)
    )


@pytest.mark.parametrize("kind", ["weights", "shares", "few values", "rare"])
def test_calibrated_tables_are_rejected_no_more_often_than_the_level(kind):
    def draw(seed):
        rng = np.random.default_rng(seed)
        p = rng.random(300) if kind != "rare" else rng.beta(0.5, 40, 300)
        p = rng.choice([0.1, 0.3, 0.4, 0.8], 300) if kind == "few values" else p
        y = (rng.random(300) < p).astype(int)
        if kind == "shares":
            y = rng.binomial(4, p) / 4
            y = np.column_stack([1 - y, y])
        weight = rng.lognormal(0, 1, 300) if kind == "weights" else None
        return CalibrationTable(labels=[0, 1]).update(y, p, sample_weight=weight)

    # At level 5 %, more than 10 of 60 rejections have probability 1e-4.
    assert rejections(draw, 60) <= 10


@pytest.mark.parametrize("case", CASES)
def test_any_order_of_samples_calls_and_tables_gives_the_same(case):
    y, p, reading, more = cases(400)[case]
    rng = np.random.default_rng(0)
    order = rng.permutation(400)

    def part(rows):
        of_rows = {
            name: value[rows] if isinstance(value, np.ndarray) else value
            for name, value in more.items()
        }
        labels = {"labels": reading.get("labels", np.unique(y) if y.ndim == 1 else None)}
        if case == "names":
            labels = {"labels": ["yes", "no"]}
        options = {**reading, **({} if case in ("two columns", "multi-label") else labels)}
        options.pop("pos_label" if case == "names" else "", None)
        return CalibrationTable(**options).update(y[rows], p[rows], **of_rows)

    whole, parts = part(np.arange(400)), [part(rows) for rows in np.split(order, [50, 51, 300])]
    first, second = sum(parts), parts[2] + (parts[3] + (parts[0] + parts[1]))
    frame = whole.to_frame()
    for other in (first, second):
        keys = [
            name for name in frame if name in ("problem", "group", "cell", "bin", "outcome", "n")
        ]
        pd.testing.assert_frame_equal(other.to_frame()[keys], frame[keys])
        assert_allclose(other._sums.values, whole._sums.values, rtol=1e-12)
        assert_allclose(limits(other), limits(whole), rtol=1e-9)
        found, expected = (calibration_test(each, n_resamples=19) for each in (other, whole))
        assert found.pvalue == expected.pvalue


@pytest.mark.parametrize("case", CASES)
def test_frames_and_json_hold_everything(case):
    table, _ = both(case, 300)
    read = CalibrationTable.from_json(table.to_json())
    assert read.to_json() == table.to_json()
    assert limits(read) == limits(table)
    frame = table.to_frame().sample(frac=1, random_state=0)
    read = CalibrationTable.from_frame(frame, notion=table.notion_, labels=table.classes_)
    pd.testing.assert_frame_equal(read.to_frame(), table.to_frame())
    known = table._products is None  # what frames do not hold
    assert_allclose(calibration_error(read), calibration_error(table), rtol=0 if known else 0.1)
    later = CalibrationTable.from_json(table.to_json())
    y, p, _, more = cases(300)[case]
    assert later.update(y, p, **more).n_samples_seen_ == 2 * table.n_samples_seen_


def test_edges_are_exact_for_any_bins():
    edges = np.array([0, 0.1, 0.1000001, 0.3, 0.3000000001, 0.30000000011, 0.99, 1])
    rng = np.random.default_rng(0)
    p = np.concatenate([rng.random(500), edges, np.nextafter(edges[1:], 0), rng.choice(edges, 90)])
    y = rng.integers(0, 2, len(p))
    for dtype in (np.float32, np.float64):
        table = CalibrationTable(edges=edges).update(y, p.astype(dtype))
        found = calibration_bins(table, edges=edges)
        expected = calibration_bins(y, p.astype(dtype), edges=edges)
        assert_array_equal(found.count, expected.count)
        ece = expected_calibration_error(table, edges=edges)
        expected = expected_calibration_error(y, p.astype(dtype), edges=edges)
        assert_allclose(ece, expected, rtol=1e-12 if dtype == np.float64 else 1e-6)
    for grid in (15, 30):  # multiples of edges
        p = rng.integers(0, grid + 1, 300) / grid
        for dtype in (np.float32, np.float64):
            table = CalibrationTable().update(y[:300], p.astype(dtype))
            found, expected = (
                calibration_bins(*each).count for each in ((table,), (y[:300], p.astype(dtype)))
            )
            assert_array_equal(found, expected)


def test_cells_are_narrow_and_whole_numbers_tell_them():
    """Against the definition of the docstring, one number at a time."""
    rng = np.random.default_rng(0)
    p = np.concatenate([rng.random(500), 10.0 ** -rng.uniform(0, 14, 500), [0, 0.5, 1]])
    p = np.concatenate([p, 1 - p, 2.0 ** -np.arange(40), np.nextafter(2.0 ** -np.arange(1, 40), 0)])

    def defined(x):
        q = min(x, 1 - x)
        i = int(np.floor(2.0**33 * q))
        s = max(i.bit_length() - 10, 0)
        c = 0 if q == 0 else 1 + 512 * s + (i >> s)
        return c if x <= 0.5 else 24_578 - c

    cell = cells(p)
    assert cell.tolist() == [defined(x) for x in p.tolist()]
    assert (np.diff(cell[np.argsort(p)]) >= 0).all()
    q = np.minimum(p, 1 - p)
    for number in np.unique(cell):
        held = q[cell == number]
        assert np.ptp(held) <= max(held.max() / 512, 2.0**-33)
    with pytest.raises(ValueError, match=r"p holds 1.5"):
        cells([0.1, 1.5])


def changed(name, change):
    frame = CalibrationTable().update(*binary(50)).to_frame()
    frame[name] = frame[name].astype(float)
    frame.loc[3, name] = change(frame.loc[3, name])
    return frame


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("n", lambda n: -n),
        ("n", lambda n: n + 0.5),
        ("n", lambda n: np.nan),
        ("w", lambda w: -w),
        ("w2", lambda w2: 10 * w2),
        ("w2", lambda w2: w2 / 10),
        ("wp", lambda wp: -wp),
        ("wp", lambda wp: wp + 1),
        ("wp2", lambda wp2: 2 * wp2 + 1),
        ("wp2", lambda wp2: wp2 - 0.01),
        ("wy", lambda wy: wy + 0.5),
        ("wy2", lambda wy2: wy2 + 0.5),
        ("cell", lambda cell: 24_579),
        ("cell", lambda cell: cell + 0.5),
        ("bin", lambda bin_: 15),
        ("bin", lambda bin_: (bin_ + 3) % 15),
        ("outcome", lambda outcome: 3),
    ],
)
def test_sums_that_no_predictions_have_are_refused_by_name_and_row(name, change):
    with pytest.raises(ValueError, match=f"{name} row 3"):
        CalibrationTable.from_frame(changed(name, change))


@pytest.mark.parametrize(
    ("name", "value", "remedy"),
    [
        ("outcome", np.nan, "leave out rows without one"),
        ("outcome", "yes", "Count outcomes 0 and 1"),
        ("wp", np.nan, "leave out rows without one"),
        ("cell", -3070, "divide percentages by 100"),
        ("bin", 15, "edges= as they were"),
    ],
)
def test_columns_that_an_engine_counted_of_other_rows_say_which_rows_to_count(name, value, remedy):
    frame = CalibrationTable().update(*binary(50)).to_frame().assign(**{name: value})
    with pytest.raises(ValueError, match=f"^{name} .*{remedy}"):
        CalibrationTable.from_frame(frame)


def test_frames_of_others_are_refused_by_name():
    frame = CalibrationTable().update(*binary(50)).to_frame()
    with pytest.raises(ValueError, match="frame has no column 'wp2'"):
        CalibrationTable.from_frame(frame.drop(columns="wp2"))
    with pytest.raises(ValueError, match=r"bin row .* (the edges are others|from 0 to 13)"):
        CalibrationTable.from_frame(frame, edges=np.linspace(0, 1, 15) ** 2)
    with pytest.raises(ValueError, match="notion is 'canonical'"):
        CalibrationTable.from_frame(frame, notion="canonical")
    several = CalibrationTable("classwise").update(*rows_of(50)).to_frame()
    with pytest.raises(ValueError, match="holds the problem"):
        CalibrationTable.from_frame(several, notion="classwise", labels=["a", "b", "c"])
    short = frame.drop(columns=["w", "w2", "wy", "wy2"])
    whole = CalibrationTable.from_frame(short)
    pd.testing.assert_frame_equal(whole.to_frame(), frame)


def test_texts_that_are_cut_or_changed_are_refused():
    text = CalibrationTable("classwise").update(*rows_of(30)).to_json()
    for end in (0, 1, len(text) // 2, len(text) - 1):
        with pytest.raises(ValueError, match="text is not JSON"):
            CalibrationTable.from_json(text[:end])
    document = json.loads(text)
    for name, value in [
        ("format", "other"),
        ("version", 99),
        ("notion", "canonical"),
        ("labels", [0]),
        ("edges", [0, 2]),
        ("edges", [0.5, 0.4]),
        ("joint", -1),
        ("products", [0.0]),
        ("products", [31.0, *document["products"][1:]]),
        ("n", document["n"][1:]),
        ("cell", [*document["cell"][1:], 10**9]),
        ("wp", [-1, *document["wp"][1:]]),
        ("problem", [3, *document["problem"][1:]]),
        ("groups", [3, 2]),
        ("resolution", 7),
    ]:
        with pytest.raises(ValueError, match=name if name != "format" else "text"):
            CalibrationTable.from_json(json.dumps({**document, name: value}))


@pytest.mark.parametrize("weighted", [False, True])
def test_products_of_two_classes_are_sums_over_the_samples(weighted):
    y, P = rows_of(300)
    y, P = np.append(y, [0, 1, 2, 2]), np.vstack([P, np.eye(3)[[0, 1, 1]], [[0.0, 0.5, 0.5]]])
    weight = np.random.default_rng(0).lognormal(0, 1, len(y)) if weighted else None
    parts = [
        CalibrationTable("classwise", labels=range(3)).update(
            y[rows], P[rows], sample_weight=None if weight is None else weight[rows]
        )
        for rows in (slice(0, 100), slice(100, None))
    ]
    mass = np.ones(len(y)) if weight is None else weight
    residuals = (np.eye(3)[y] - P) * (mass / mass.sum())[:, None]
    signs = np.where(P < 1 / 16, -1.0, 1.0)  # which change between coarse cells
    terms = residuals * signs
    products = sum(parts)._as_sample().products
    given = [(P[:, k], signs[:, k], np.ones(len(y))) for k in range(3)]
    expected = sum(terms[:, k] @ terms[:, j] for k in range(3) for j in range(k))
    assert_allclose(products.between(given), expected, rtol=1e-9)
    read = CalibrationTable.from_json(sum(parts).to_json())
    assert_array_equal(read._as_sample().products.values, products.values)


def test_limits_of_classes_whose_products_are_not_known_are_no_narrower():
    table = CalibrationTable("classwise").update(*rows_of(3000))
    unknown = CalibrationTable.from_frame(table.to_frame(), notion="classwise", labels=range(3))
    assert limits(unknown)[2] > limits(table)[2]
    for mixed in (table + unknown, unknown + table):
        assert mixed._as_sample().products is None


@pytest.mark.parametrize("case", ["class-wise", "class-wise, groups"])
@pytest.mark.parametrize("weighted", [False, True])
def test_frames_of_classes_know_the_sum_of_the_residuals_of_a_sample(case, weighted):
    y, P, reading, more = cases(900)[case]
    if weighted:
        more = {**more, "sample_weight": 1.0 + (y == 1)}
    table = CalibrationTable(**reading).update(y, P, **more)
    read = CalibrationTable.from_frame(table.to_frame(), notion="classwise", labels=range(3))
    assert_allclose(read._joint, table._joint, rtol=1e-9)


def test_frames_of_several_labels_do_not_know_it():
    y, P, reading, _ = cases(300)["multi-label"]
    frame = CalibrationTable(**reading).update(y, P).to_frame()
    read = CalibrationTable.from_frame(frame, notion="multi-label", labels=range(3))
    assert np.isinf(read._joint)


def test_limits_of_frames_of_classes_are_little_wider_than_those_of_the_samples():
    y, P = rows_of(3000, 10)
    options = {"notion": "classwise", "labels": range(10)}
    table = CalibrationTable(**options).update(y, P)
    read = CalibrationTable.from_frame(table.to_frame(), **options)
    expected = limits(Sample(y, P, **options))[2]
    assert expected < limits(read)[2] < 1.08 * expected


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        (lambda frame: frame[(frame["problem"] != "class 1") | (frame.index % 2 == 0)], "in 'clas"),
        (lambda frame: frame.assign(outcome=0, wy=0.0, wy2=0.0), "0 are of a class"),
    ],
)
def test_frames_of_classes_hold_each_sample_in_each_class(changed, reason):
    frame = CalibrationTable("classwise").update(*rows_of(50)).to_frame()
    with pytest.raises(ValueError, match=f"frame holds .*{reason}.*Count each sample in each"):
        CalibrationTable.from_frame(changed(frame), notion="classwise", labels=range(3))


def test_what_does_not_fit_is_refused_and_changes_nothing():
    y, p = binary(60)
    table = CalibrationTable().update(y, p)
    before = table.to_json()
    other = CalibrationTable(edges=[0, 0.5, 1]).update(y, p)
    for wrong, match in [
        (lambda: table + other, "other has 2 bins"),
        (lambda: table + CalibrationTable(pos_label=0).update(y, p), "labels="),
        (lambda: table.update(y, 2 * p), "y_proba"),
        (lambda: table.update(y + 1, p), "y_true"),
        (lambda: table.update(y[1:], p), "y_true has 59 rows"),
        (lambda: table.update(*rows_of(60)), "y_proba has 3 columns"),
        (lambda: table.update(y, p, sample_weight=-p), "sample_weight"),
        (lambda: table.update(y, p, sample_weight=np.full(60, 1e200)), "sample_weight is up to"),
        (lambda: table.update(y, p, groups=np.arange(59)), "groups has 59 rows"),
        (lambda: table.update(y, p, groups=np.arange(60)), "groups are given for some"),
    ]:
        with pytest.raises(ValueError, match=match):
            wrong()
        assert table.to_json() == before
    with pytest.raises(TypeError):
        table + 3
    with pytest.raises(ValueError, match="holds no samples"):
        calibration_error(CalibrationTable())
    with pytest.raises(ValueError, match="holds no samples"):
        calibration_error(CalibrationTable().update([0, 1], [0.2, 0.7]).reset())


def test_a_bad_row_of_a_large_array_is_named(monkeypatch):
    monkeypatch.setattr("skcal.table.table._BLOCK", 100)
    monkeypatch.setattr("skcal.table.table._FEWEST", 1)
    y, p = binary(250)
    whole = CalibrationTable().update(y, p)
    p[170] = np.nan
    with pytest.raises(ValueError, match="y_proba row 70") as caught:
        CalibrationTable().update(y, p)
    assert caught.value.__notes__ == ["Row 0 is row 100 of the array."]
    monkeypatch.undo()
    once = CalibrationTable().update(*binary(250))
    assert_allclose(once._sums.values, whole._sums.values, rtol=1e-13)


def test_calls_without_rows_or_weight_change_nothing():
    y, p = binary(40)
    table = CalibrationTable().update([], [])
    assert table.n_samples_seen_ == 0
    table.update(y, p).update([], []).update(y, p, sample_weight=np.zeros(40))
    assert table.n_samples_seen_ == 40
    assert repr(table) == "<CalibrationTable of 40 samples, notion='binary'>"
    assert table.reset().n_samples_seen_ == 0
    assert table.classes_.tolist() == [0, 1]


def test_answers_are_remembered_until_the_next_samples_come():
    y, p = binary(500)
    table = CalibrationTable().update(y, p)
    first = calibration_test(table)
    assert calibration_test(table) is first
    table.update(1 - y, p)
    assert calibration_test(table).pvalue != first.pvalue


def test_memory_does_not_grow_with_the_samples():
    rng, sizes = np.random.default_rng(0), []
    table = CalibrationTable()
    for _ in range(30):
        p = rng.random(20_000)
        sizes.append(len(table.update(rng.random(20_000) < p, p)._sums.keys))
    assert sizes[-1] < 2 * 24_593
    assert sizes[-1] - sizes[-2] < 20_000 / 10


def test_too_many_cells_are_refused(monkeypatch):
    monkeypatch.setattr("skcal.table.sums._MOST_BYTES", 10_000)
    with pytest.raises(ValueError, match="more than 2 GiB"):
        CalibrationTable("classwise").update(*rows_of(500))
    monkeypatch.undo()
    table = CalibrationTable().update(*binary(200), groups=np.arange(200) // 2)
    monkeypatch.setattr("skcal.table.counted._MOST_ROWS", 100)
    with pytest.raises(ValueError, match="groups hold 200 samples"):
        calibration_error(table)


ROWS = binary(200)
TAKEN = {
    "bootstrap_interval",
    "calibration_report",
    "ReliabilityDisplay.from_predictions",
    "calibration_bins",
    "calibration_error",
    "calibration_error_interval",
    "calibration_test",
    "equivalence_test",
    "expected_calibration_error",
    "maximum_calibration_error",
    "scan_test",
    "score_decomposition",
    "sharpness",
}


def public_functions():
    modules = skcal, metrics, hypothesis_tests, displays
    found = {name: getattr(module, name) for module in modules for name in module.__all__}
    for name, thing in list(found.items()):
        if inspect.isclass(thing) and hasattr(thing, "from_predictions"):
            found[f"{name}.from_predictions"] = thing.from_predictions
    return {
        name: thing
        for name, thing in found.items()
        if not inspect.isclass(thing) and "y_true" in inspect.signature(thing).parameters
    }


@pytest.mark.parametrize("name", public_functions())
def test_every_public_function_answers_a_table_or_refuses_it_by_name(name):
    function = public_functions()[name]
    parameters = inspect.signature(function).parameters.values()
    given = {
        one.name: 0.1 if one.name == "limit" else ROWS[1]
        for one in parameters
        if one.default is one.empty and one.kind not in (one.VAR_KEYWORD, one.VAR_POSITIONAL)
    }
    table = CalibrationTable().update(*ROWS)
    more = {}
    names = {one.name for one in parameters}
    others = {"y_proba_b": ROWS[1], "feature": ROWS[1], "features": {"a": ROWS[1]}}
    others |= {"y_after": ROWS[1], "metric": expected_calibration_error}
    given |= {"y_proba": None} if "metric" in names else {}
    more |= {key: value for key, value in others.items() if key in names}
    if name in TAKEN:
        assert function(**{**given, "y_true": table, **more}) is not None
        with pytest.raises(ValueError, match="beside a Sample"):
            function(**{**given, "y_true": table, "y_proba": ROWS[1], **more})
        return
    with pytest.raises((ValueError, TypeError), match="CalibrationTable"):
        function(**{**given, "y_true": table, **more})


class Lazy:
    """What dask holds elsewhere, as far as is asked."""

    def __dask_graph__(self):
        raise AssertionError("it was gathered")

    def __array__(self, *_, **__):
        raise AssertionError("it was gathered")

    def __len__(self):
        return 200


@pytest.mark.parametrize("name", public_functions())
def test_every_public_function_refuses_what_a_cluster_holds_and_names_the_table(name):
    function = public_functions()[name]
    parameters = inspect.signature(function).parameters.values()
    others = {"limit": 0.1, "metric": expected_calibration_error, "features": {"a": ROWS[1]}}
    if not {"y_true", "y_proba"} <= {one.name for one in parameters}:
        pytest.skip("it names its predictions otherwise")
    given = {
        one.name: others.get(one.name, ROWS[1])
        for one in parameters
        if one.name in ("feature", "features")
        or (one.default is one.empty and one.kind not in (one.VAR_KEYWORD, one.VAR_POSITIONAL))
    }
    with pytest.raises(ValueError, match=r"is held by .*CalibrationTable"):
        function(**{**given, "y_true": ROWS[0], "y_proba": Lazy()})


def test_tables_and_samples_refuse_what_a_cluster_holds():
    for call in (Sample, CalibrationTable().update):
        with pytest.raises(ValueError, match=r"y_proba is held by .*CalibrationTable"):
            call(ROWS[0], Lazy())
        with pytest.raises(ValueError, match=r"y_true is held by .*CalibrationTable"):
            call(Lazy(), ROWS[1])


@pytest.mark.parametrize("n_blocks", [500, pytest.param(10_000, marks=pytest.mark.slow)])
def test_sums_of_a_billion_rows_lose_no_digits(n_blocks):
    rng = np.random.default_rng(0)
    n = 100_000
    p = np.where(rng.random(n) < 0.5, 0.1, 0.3 + 1e-5 * rng.random(n))
    weight = rng.lognormal(0, 1, n)
    block = CalibrationTable().update(rng.random(n) < p, p, sample_weight=weight)
    stream = CalibrationTable(labels=[0, 1])
    for _ in range(n_blocks):
        stream = stream + block
    frame = stream.to_frame()
    assert stream.n_samples_seen_ == n * n_blocks
    assert len(frame) == 4  # two cells of two outcomes: as many terms a sum as can be
    for name, of_rows in [("wp", weight * p), ("wp2", weight * p * p), ("w2", weight**2)]:
        exact = n_blocks * math.fsum(of_rows)
        assert abs(math.fsum(frame[name]) / exact - 1) < 1e-12, name
