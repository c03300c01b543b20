"""Segments by their definition, their p-values by brute force, and the level of the whole test."""

import re
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import beta, binom, binomtest

from skcal.datasets import make_dirichlet
from skcal.hypothesis_tests import bias_curve, segment_test
from skcal.hypothesis_tests.segment_features import make_segments

pd = pytest.importorskip("pandas")


def draw(n, seed=0, wrong=0.0):
    """Two features, predictions, and outcomes that are off where b is "y" and a is high."""
    rng = np.random.default_rng(seed)
    features = {"a": rng.normal(size=n), "b": rng.choice(["x", "y"], n)}
    proba = rng.uniform(size=n)
    off = (features["a"] > 0.6) & (features["b"] == "y")
    return rng.uniform(size=n) < np.where(off, (1 - wrong) * proba, proba), proba, features


def members_of(segments):
    """Whether each sample, a column, belongs to each segment, a row."""
    members = np.zeros((len(segments.names), segments.single.shape[0]), dtype=bool)
    for k, row in enumerate(members):
        row[segments.rows_of(k)] = True
    return members


def test_segments_are_categories_ranges_and_their_pairs():
    rng = np.random.default_rng(0)
    features = pd.DataFrame(
        {
            "number": np.tile([0.0, 1.0, 2.0, 3.0, 4.0, 5.0, np.nan, 7.0], 10),
            "kind": rng.choice(np.array(["u", "v", None]), 80),
            "flag": rng.choice([True, False], 80),
            "small": rng.choice([1, 2], 80),
        }
    )
    found = make_segments(features, 80, n_bins=2, order=1, min_samples=1)
    members = dict(zip(found.names, members_of(found), strict=True))
    number = features["number"].to_numpy()
    assert_array_equal(members["number ≤ 3"], number <= 3)
    assert_array_equal(members["number > 3"], number > 3)
    assert_array_equal(members["number missing"], np.isnan(number))
    assert_array_equal(members["kind = u"], features["kind"].to_numpy() == "u")
    assert_array_equal(members["kind missing"], features["kind"].isna())
    assert_array_equal(members["flag"], features["flag"])
    assert_array_equal(members["small = 2"], features["small"] == 2)
    assert len(members) == 3 + 3 + 1 + 2
    both = make_segments(features, 80, n_bins=2, order=2, min_samples=1)
    pairs = dict(zip(both.names, members_of(both), strict=True))
    for name, rows in pairs.items():
        parts = name.split(" and ")
        assert_array_equal(rows, np.all([members[part] for part in parts], axis=0))
    few = make_segments(features, 80, n_bins=2, order=2, min_samples=10)
    sizes = {name: rows.sum() for name, rows in pairs.items()}
    assert set(few.names) == {name for name, size in sizes.items() if size >= 10}
    assert few.n_left_out <= sum(0 < size < 10 for size in sizes.values())


def definition(y, p, w, members):
    """Standardised biases as the documentation has them, one by one."""
    found = []
    for rows in members:
        happened, predicted = (w * y)[rows].sum(), (w * p)[rows].sum()
        variance = (w**2 * p * (1 - p))[rows].sum() + (w[rows] ** 2).mean()
        found.append((happened - predicted) / np.sqrt(variance))
    return np.array(found)


@pytest.mark.parametrize("weighted", [False, True])
def test_statistics_and_step_down_pvalues_by_brute_force(weighted):
    y, p, features = draw(300, wrong=0.6)
    w = np.random.default_rng(1).integers(1, 4, 300) / 2 if weighted else np.ones(300)
    options = {"sample_weight": w if weighted else None, "n_resamples": 99}
    result = segment_test(y, p, features, random_state=0, **options)
    segments = make_segments(features, 300)
    members = members_of(segments)
    observed = dict(zip(segments.names, definition(y, p, w, members), strict=True))
    assert {one.name for one in result.segments} == set(observed)
    for one in result.segments:
        assert_allclose(one.statistic, observed[one.name], rtol=1e-9)
        rows = members[segments.names.index(one.name)]
        assert one.n_samples == rows.sum()
        assert_allclose(one.predicted, np.average(p[rows], weights=w[rows]))
        assert_allclose(one.observed, np.average(y[rows], weights=w[rows]))
    # The seeds of the redraws are the first numbers that the generator gives.
    seeds = np.random.RandomState(0).randint(2**31 - 1, size=(99, 1))[:, 0]
    drawn = np.array(
        [np.abs(definition(np.random.default_rng(s).random(300) < p, p, w, members)) for s in seeds]
    )
    values = np.abs(list(observed.values()))
    order, last = np.argsort(-values, kind="stable"), 0.0
    adjusted = {}
    for place, k in enumerate(order):
        later = drawn[:, order[place:]].max(axis=1)
        last = max(last, (1 + np.count_nonzero(later >= values[k] - 1e-9)) / 100)
        adjusted[segments.names[k]] = last
    assert {one.name: one.pvalue for one in result.segments} == pytest.approx(adjusted)


def test_of_equal_pvalues_the_largest_certain_difference_is_first():
    y, p, features = draw(900, wrong=0.9)
    result = segment_test(y, p, features, n_resamples=19, random_state=0)
    for one in result.segments:
        inside = one.low <= one.expected <= one.high
        assert one.surely == pytest.approx(
            0 if inside else min(abs(one.low - one.expected), abs(one.high - one.expected))
        )
    certain = [(one.pvalue, -one.surely, -abs(one.statistic)) for one in result.segments]
    assert certain == sorted(certain)
    assert sum(one.surely > 0 for one in result.segments) > 1


@pytest.mark.parametrize("level", [0.8, 0.95])
def test_intervals_are_those_of_clopper_and_pearson_for_all_segments_together(level):
    y, p, features = draw(300, wrong=0.6)
    options = {"n_resamples": 99, "random_state": 0, "confidence_level": level}
    result = segment_test(y, p, features, **options)
    n_segments = len(result.segments)
    for one in result.segments:
        hits = round(one.observed * one.n_samples)
        exact = binomtest(hits, one.n_samples).proportion_ci(1 - (1 - level) / n_segments)
        assert_allclose([one.low, one.high], exact, atol=1e-9)
    weight = np.arange(1.0, 301)
    result = segment_test(y, p, {"b": features["b"]}, sample_weight=weight, **options)
    for one in result.segments:
        own = weight[features["b"] == one.name.removeprefix("b = ")]
        n = own.sum() ** 2 / (own @ own)
        hits, tail = n * one.observed, (1 - level) / 2 / 2
        exact = beta.ppf([tail, 1 - tail], [hits, hits + 1], [n - hits + 1, n - hits])
        assert_allclose([one.low, one.high], exact, rtol=1e-9)


def missed(seed, n=600):
    """Whether an interval of some segment misses its mean, where predictions are overconfident."""
    rng = np.random.default_rng([seed, 3])
    features = {"a": rng.normal(size=n), "b": rng.choice(list("xyz"), n)}
    p = rng.beta(0.3, 0.3, n)
    truth = np.where((features["b"] == "x") & (features["a"] > 0), 0.7, 0.2 + 0.6 * p)
    options = {"n_resamples": 199, "random_state": seed}
    result = segment_test(rng.random(n) < truth, p, features, **options)
    segments = make_segments(features, n)
    means = {segments.names[k]: truth[rows].mean() for k, rows in enumerate(members_of(segments))}
    return any(not one.low <= means[one.name] <= one.high for one in result.segments)


@pytest.mark.slow
def test_all_intervals_hold_together_where_some_segments_are_wrong():
    assert sum(map(missed, range(300))) <= binom.isf(1e-3, 300, 0.05)


def test_a_series_names_its_segments():
    y, p, _ = draw(200)
    site = pd.Series(np.where(np.arange(200) % 2, "Ghent", "Leiden"), name="site")
    result = segment_test(y, p, site, n_resamples=19, random_state=0)
    assert {one.name for one in result.segments} == {"site = Ghent", "site = Leiden"}


def test_a_vector_is_worst_in_the_class_that_is_off():
    data = make_dirichlet(3000, n_classes=3, random_state=0)
    half = np.arange(3000) < 1500
    labels = np.where(half & (data.labels == 1), 2, data.labels)
    for notion in ("canonical", "classwise"):
        result = segment_test(labels, data.proba, half, notion=notion, random_state=0)
        assert result.segments[0].name == "feature 0"
        assert result.segments[0].outcome in ("1", "2", "class 1", "class 2")
        assert result.pvalue <= 0.003


def test_errors_that_cancel_show_in_the_ece_alone():
    rng = np.random.default_rng(0)
    p, group = rng.uniform(size=4000), rng.choice(list("uv"), 4000)
    flat = np.where(group == "u", (p + 0.5) / 2, p)
    y = rng.uniform(size=4000) < flat
    bias = segment_test(y, p, {"group": group}, random_state=0)
    ece = segment_test(y, p, {"group": group}, statistic="ece", random_state=0)
    assert bias.pvalue > 0.05
    assert (ece.segments[0].name, ece.pvalue) == ("group = u", 0.001)
    assert ece.segments[1].pvalue > 0.05


def test_top_label_segments_are_of_predicted_classes():
    data = make_dirichlet(500, n_classes=3, model="M3", random_state=0)
    tested = data.labels, data.proba, np.arange(500) % 2
    options = {"n_resamples": 99, "random_state": 0}
    result = segment_test(*tested, notion="top-label", **options)
    assert len(result.segments) == 6
    assert sum(one.n_samples for one in result.segments) == 500
    assert_allclose(result.pvalue, 0.01)  # 1 of 100, times 3 where classes are drawn apart
    assert_allclose(segment_test(*tested, notion="classwise", **options).pvalue, 0.03)


def test_results_do_not_depend_on_jobs():
    y, p, features = draw(400, wrong=0.5)
    weight = (np.arange(400) % 3 > 0).astype(float)
    options = {"n_resamples": 59, "random_state": 0, "order": 1, "sample_weight": weight}
    one, two = (segment_test(y, p, features, n_jobs=n_jobs, **options) for n_jobs in (1, 2))
    assert one.segments == two.segments


class Lazy:
    """A table whose columns cannot be read."""

    columns = ("x",)

    def __getitem__(self, name):
        raise TypeError("not subscriptable")


def objects(*values):
    column = np.empty(50, dtype=object)
    column[:] = list(values) * (50 // len(values))
    return {"x": column}


@pytest.mark.parametrize(
    ("features", "match"),
    [
        ({"a": np.zeros(49)}, r"column 'a' has shape \(49,\), y_proba 50 rows"),
        ({"name": [f"n{k}" for k in range(50)]}, "no segment of at least 20 samples"),
        ({"day": np.zeros(50, dtype="datetime64[D]")}, "holds datetime64"),
        ({}, "has no columns"),
        (np.zeros((50, 2, 2)), "has 3 dimensions"),
        (objects([1, 2]), "column 'x' holds lists"),
        (objects({}), "column 'x' holds dicts"),
        (objects(*np.ones((50, 2))), "column 'x' holds ndarrays"),
        (pd.DataFrame(np.zeros((50, 2)), columns=["x", "x"]), r"two columns 'x'\. Name each once"),
        (Lazy(), "features is a Lazy, .* Pass a data frame"),
    ],
)
def test_bad_features_are_named(features, match):
    with pytest.raises(ValueError, match=match):
        segment_test([0, 1] * 25, np.full(50, 0.5), features)


def test_the_family_wise_level_holds_for_rare_events():
    rejections = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        p, features = np.minimum(rng.gamma(0.2, 0.05, 200), 1), rng.normal(size=(200, 2))
        options = {"n_bins": 3, "min_samples": 5, "n_resamples": 39, "random_state": seed}
        rejections += segment_test(rng.uniform(size=200) < p, p, features, **options).pvalue <= 0.05
    low, high = binom.interval(0.999, 100, 0.05)
    assert low <= rejections <= high


def test_a_bias_curve_is_made_of_windows():
    y, p, features = draw(1000, wrong=0.8)
    curve = bias_curve(y, p, features["a"], window=0.2, n_points=5, random_state=0)
    order = np.argsort(features["a"])
    starts = [0, 200, 400, 600, 800]
    windows = [order[start : start + 200] for start in starts]
    assert_allclose(curve.values, [np.median(features["a"][rows]) for rows in windows])
    assert_allclose(curve.predicted, [p[rows].mean() for rows in windows])
    assert_allclose(curve.observed, [y[rows].mean() for rows in windows])
    assert_allclose(curve.to_frame()["observed"], curve.observed)
    outside = np.abs(curve.observed - curve.predicted) > curve.chance
    assert outside[-1]
    assert curve.pvalue <= 0.05
    # The band is where the test rejects.
    variances = [(p[rows] * (1 - p[rows])).sum() + 1 for rows in windows]
    limit = np.sort(curve.null_distribution)[949]
    assert_allclose(curve.chance, limit * np.sqrt(variances) / 200)
    with pytest.raises(ValueError, match="feature is not of finite numbers"):
        bias_curve(y, p, np.full(1000, np.nan))


def test_a_bias_curve_of_few_values_has_a_point_for_each_in_any_order(rng):
    x, p = rng.integers(0, 5, 1500), rng.uniform(size=1500)
    y = (rng.uniform(size=1500) < p).astype(int)
    first = bias_curve(y, p, x, random_state=0)
    assert_array_equal(first.values, np.arange(5))
    assert_allclose(first.observed, [y[x == k].mean() for k in range(5)])
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(1500)
        curve = bias_curve(y[order], p[order], x[order], random_state=0)
        assert_allclose(curve.observed, first.observed)
        assert_allclose(curve.statistic, first.statistic)
        assert abs(curve.pvalue - first.pvalue) < 0.06  # of other draws
    half = np.where(rng.uniform(size=1500) < 0.5, 0.0, x)  # a tie of more than half of all samples
    values = bias_curve(y, p, half, random_state=0).values
    assert (np.diff(values) > 0).all()


def test_segments_of_the_same_samples_are_one_with_all_names():
    features = {"a": np.repeat([0, 1], 30), "b": np.repeat(["u", "v"], 30)}
    features["c"] = np.tile([0, 1], 30)
    segments = make_segments(features, 60, order=2, min_samples=5)
    rows = {row.tobytes() for row in members_of(segments)}
    assert len(segments.names) == len(rows) == 8
    assert "a = 0, also b = u and 1 more" in segments.names


def relative(seed, wrong=0.0, n=1000):
    """A model that is too low everywhere, and in one of the groups by more."""
    rng = np.random.default_rng([seed, 7])
    group, p = rng.choice(["u", "v", "w"], n), rng.uniform(0.05, 0.7, n)
    truth = np.minimum(p**0.7 + wrong * (group == "w"), 1)
    options = {"relative": True, "order": 1, "n_resamples": 99, "random_state": 0}
    y = rng.uniform(size=n) < truth
    return segment_test(y, p, {"group": group, "number": rng.normal(size=n)}, **options)


def test_relative_segments_differ_from_all_samples_not_from_their_predictions():
    result = relative(0, wrong=0.2)
    worst = result.segments[0]
    assert (worst.name, result.pvalue) == ("group = w", 0.01)
    assert "underpredicted more than all samples by 0.1" in str(worst)
    assert worst.observed - worst.predicted > worst.difference + 0.05
    assert f", {worst.observed - worst.difference:.4f} against {worst.observed:.4f}" in str(worst)
    mean = sum(one.n_samples * one.difference for one in result.segments if "group" in one.name)
    assert abs(mean / 1000) < 1e-3  # of all samples
    data = make_dirichlet(100, n_classes=3, random_state=0)
    with pytest.raises(ValueError, match="conditions on a vector"):
        segment_test(data.labels, data.proba, data.labels, relative=True, notion="canonical")


@pytest.mark.slow
def test_the_level_of_relative_segments_holds_where_all_are_off():
    rejected = sum(relative(seed).pvalue <= 0.05 for seed in range(400))
    assert rejected <= binom.isf(1e-3, 400, 0.05)


def test_a_notebook_shows_few_segments_with_their_pvalues(monkeypatch):
    y, proba, features = draw(1500, wrong=0.5)
    features["c"] = np.random.default_rng(1).choice(["u", "v", "w"], 1500)
    result = segment_test(y, proba, features, n_resamples=19, random_state=0)
    page = result._repr_html_()
    assert len(result.segments) > 10
    [head] = re.findall("<thead>.*</thead>", page)
    names = re.findall(r"<th [^>]*>(?:<bdi>)?([^<]*)", head)
    assert names == ["segment", "samples", "predicted", "observed", "difference", "p-value"]
    assert page.split(head)[1].count("<tr") == 10
    assert f"and {len(result.segments) - 10} more segments" in page
    assert "Intervals hold, and p-values are adjusted, for all segments together" in page
    assert "Intervals hold, and p-values are adjusted, for all" in str(result)
    assert result.segments[0].name in str(result)
    assert "overpredicted" in str(result.segments[0])
    frame = result.to_frame()
    assert list(frame.columns) == list(result.segments[0]._fields)
    assert list(frame["name"]) == [one.name for one in result.segments]
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="pip install pandas"):
        result.to_frame()


def test_segments_of_several_outcomes_name_them():
    rng = np.random.default_rng(0)
    proba = rng.dirichlet([1, 1, 1], 300)
    result = segment_test(
        rng.integers(3, size=300), proba, rng.normal(size=300), notion="classwise", n_resamples=59
    )
    assert [row[1] for row in result.worst(5).rows] == [s.outcome for s in result.segments[:5]]
    assert result.worst(5).columns[1] == "outcome"


@pytest.mark.parametrize("n_kinds", [3, 90])
def test_sums_of_segments_are_those_of_their_members_dense_and_sparse(n_kinds):
    rng = np.random.default_rng(0)
    features = {f"{k}": rng.integers(n_kinds, size=400).astype(str) for k in range(3)}
    segments = make_segments(features, 400, min_samples=1)
    assert isinstance(segments.single, np.ndarray) == (n_kinds == 3)
    column, kind = segments.names[1].split(" = ")
    assert_array_equal(members_of(segments)[1], features[column] == kind)
    values = rng.normal(size=(400, 2))
    assert_allclose(segments.sums(values), members_of(segments) @ values, atol=1e-12)
    some = rng.permutation(400)[:150]
    assert_allclose(
        segments.take(some).sums(values[some]),
        members_of(segments)[:, some] @ values[some],
        atol=1e-12,
    )


def test_the_last_range_of_a_value_that_many_share_ends_with_it():
    y, p, x = np.tile([0, 1], 50), np.full(100, 0.5), np.minimum(np.arange(100.0), 60)
    segments = segment_test(y, p, {"x": x}, n_bins=4, order=1, n_resamples=19).segments
    assert {segment.name: segment.n_samples for segment in segments} == {
        "x ≤ 24": 25,
        "x in (24, 49]": 25,
        "x > 49": 50,
    }
