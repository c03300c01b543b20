"""Risk and coverage: exact with ties, in any order of rows; the threshold keeps its promise."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import beta
from sklearn.metrics import roc_auc_score

from skcal import metrics
from skcal.metrics import area_under_risk_coverage, coverage_at_risk, risk_coverage_curve


def answers(seed, n=30, levels=6):
    rng = np.random.default_rng(seed)
    confidence = rng.integers(1, levels + 1, n) / levels
    return (rng.random(n) < 0.4 + confidence / 2).astype(int), confidence


def of_one_order(right, generalized):
    """The published sums, of answers in this order."""
    wrong, k = np.cumsum(1 - right), np.arange(1, len(right) + 1)
    return np.mean(wrong / (len(right) if generalized else k))


@pytest.mark.parametrize("generalized", [False, True])
def test_the_area_is_the_mean_over_the_orders_of_ties(generalized):
    for seed in range(10):
        right, confidence = answers(seed, n=6, levels=3)
        orders = [
            right[list(rows)]
            for rows in itertools.permutations(range(6))
            if (np.diff(confidence[list(rows)]) <= 0).all()
        ]
        expected = np.mean([of_one_order(one, generalized) for one in orders])
        area = area_under_risk_coverage(right, confidence, generalized=generalized)
        assert_allclose(area, expected, rtol=1e-12)
        curve = risk_coverage_curve(right, confidence)
        assert area == (curve.generalized_area if generalized else curve.area)


def test_the_curve_is_its_definition_at_each_threshold():
    right, confidence = answers(0)
    curve = risk_coverage_curve(right, confidence, confidence_level=0.9)
    assert_array_equal(curve.thresholds, np.unique(confidence)[::-1])
    for k, threshold in enumerate(curve.thresholds):
        kept = confidence >= threshold
        n, wrong = kept.sum(), (1 - right)[kept].sum()
        assert curve.coverage[k] == kept.mean()
        assert_allclose(curve.risk[k], wrong / n)
        low = beta.ppf(0.05, wrong, n - wrong + 1) if wrong else 0
        assert_allclose([curve.low[k], curve.high[k]], [low, beta.isf(0.05, wrong + 1, n - wrong)])
    assert_allclose(curve.roc_auc, roc_auc_score(right, confidence))
    assert risk_coverage_curve(np.ones(3), [0.1, 0.2, 0.3]).roc_auc is None


def every_number(right, confidence, **options):
    curve = risk_coverage_curve(right, confidence, **options)
    result = coverage_at_risk(right, confidence, 0.3, **options)
    arrays = curve.coverage, curve.risk, curve.low, curve.high
    plain = curve.area, curve.generalized_area, curve.roc_auc, result.coverage, result.low
    return np.concatenate([*arrays, plain, [result.threshold]])


@pytest.mark.parametrize("grouped", [False, True])
def test_the_order_of_rows_weight_0_and_the_scale_of_weights_do_not_matter(grouped):
    for seed in range(2):
        right, confidence = answers(seed, n=120)
        rng = np.random.default_rng(seed)
        groups = rng.integers(0, 40, 120) if grouped else None
        rows, weight = rng.permutation(120), rng.uniform(0.5, 2, 120)
        keep = rng.random(120) < 0.8
        for options in ({}, {"sample_weight": weight}):
            if grouped:
                options = options | {"groups": groups}
            moved = {name: values[rows] for name, values in options.items()}
            one = every_number(right, confidence, **options)
            assert_allclose(every_number(right[rows], confidence[rows], **moved), one, rtol=1e-9)
            part = {name: values[keep] for name, values in options.items()}
            zero = options | {"sample_weight": options.get("sample_weight", np.ones(120)) * keep}
            one = every_number(right[keep], confidence[keep], **part)
            assert_allclose(every_number(right, confidence, **zero), one, rtol=1e-9)
        scaled, same = (
            every_number(right, confidence, sample_weight=s * weight) for s in (1e-9, 1)
        )
        assert_allclose(scaled, same, rtol=1e-9)


def test_whole_weights_repeat_rows():
    right, confidence = answers(3)
    times = np.random.default_rng(0).integers(0, 4, len(right))
    repeated = every_number(right.repeat(times), confidence.repeat(times))
    assert_allclose(every_number(right, confidence, sample_weight=times), repeated, rtol=1e-12)


def test_only_the_order_of_confidences_matters():
    right, confidence = answers(4)
    one = risk_coverage_curve(right, confidence)
    other = risk_coverage_curve(right, 100 * np.log(confidence))
    assert (one.area, one.roc_auc) == (other.area, other.roc_auc)
    assert_array_equal(one.risk, other.risk)


def test_one_of_five_starts_has_a_fifth_of_the_error():
    """1 of 52 wrong: at most 0.088 with 95 % confidence, 0.12 with 99 %."""
    rows = np.arange(200)
    assert coverage_at_risk(rows < 51, np.where(rows < 52, 0.9, 0.5), 0.1).coverage == 0


def test_copies_in_a_group_count_once():
    """5 copies of each answer: risk and area as before, limits not narrower."""
    right, confidence = answers(5, n=200)
    copies = [a.repeat(5) for a in (right, confidence, np.arange(200))]
    single = risk_coverage_curve(right, confidence)
    curve = risk_coverage_curve(*copies[:2], groups=copies[2])
    assert_allclose(curve.risk, single.risk)
    assert (curve.high >= single.high - 1e-12).all()
    assert (curve.low <= single.low + 1e-12).all()


def test_limits_with_groups_are_those_of_proportion_limits():
    right, confidence = answers(6, n=300)
    groups = np.random.default_rng(6).integers(0, 60, 300)
    curve = risk_coverage_curve(right, confidence, groups=groups)
    for k, threshold in enumerate(curve.thresholds):
        kept = confidence >= threshold
        together = metrics.selective.read_groups(groups[kept], np.ones(kept.sum()))
        low, high = metrics.selective.proportion_limits(
            (1 - right)[kept], np.ones(kept.sum()), together, 0.025
        )
        assert_allclose([curve.low[k], curve.high[k]], [low, high], rtol=1e-9)


def test_a_perfect_and_a_hopeless_model():
    right, confidence = np.ones(100), np.linspace(0, 1, 100)
    assert area_under_risk_coverage(right, confidence) == 0
    result = coverage_at_risk(right, confidence, 0.05)
    assert (result.coverage, result.threshold, result.risk) == (1, 0, 0)
    assert "Keep answers whose confidence is at least 0." in str(result)
    result = coverage_at_risk(1 - right, confidence, 0.05)
    assert (result.coverage, result.low, result.threshold, result.risk) == (0, 0, np.inf, None)
    assert "to keep the share of wrong answers at or below 5 %" in str(result)
    assert (result.nearest, result.lowest_risk, result.n_needed) == (None, 1, None)
    assert "More answers would hardly help" in str(result)
    assert area_under_risk_coverage(1 - right, confidence) == 1


def test_the_threshold_is_the_shortest_number_that_keeps_the_same_answers():
    right, confidence = np.ones(100), np.r_[np.full(80, 0.98765), np.full(20, 0.98123)]
    right[80:] = 0
    result = coverage_at_risk(right, confidence, 0.1)
    assert (result.threshold, result.coverage) == (0.987, 0.8)
    assert coverage_at_risk(right, -1000 + confidence, 0.1).coverage == 0.8


@pytest.mark.parametrize("grouped", [False, True])
def test_an_unproven_limit_names_the_lowest_proven_one_and_how_many_answers_it_takes(grouped):
    rng = np.random.default_rng(0)
    confidence = rng.choice([0.6, 0.7, 0.8, 0.9, 1.0], 400)
    right = rng.random(400) < confidence - 0.1
    groups = np.arange(400) // 2 if grouped else None

    def at(risk, times=1):
        many = None if groups is None else (groups + 200 * np.arange(times)[:, None]).ravel()
        return coverage_at_risk(
            np.tile(right, times), np.tile(confidence, times), risk, groups=many
        )

    found = at(0.08)
    lowest = next(one for k in range(81, 1000) if (one := at(k / 1000)).risk is not None)
    assert vars(found.nearest) == vars(lowest)
    kept = confidence >= lowest.threshold
    assert (lowest.n_kept, lowest.risk) == (kept.sum(), np.mean(~right[kept]))
    # The same answers again and again: first proven at about the number that is said.
    times = next(times for times in range(2, 100) if at(0.08, times).risk is not None)
    n, what = (200, "questions") if grouped else (400, "answers")
    assert n * (times - 1) < found.n_needed <= 1.15 * n * times
    assert f"about {found.n_needed:,} {what} in all are needed" in " ".join(str(found).split())
    assert found.n_groups == (200 if grouped else None)
    assert found.n_needed_low < found.n_needed
    assert found.n_needed_high is None  # the upper limit of the share is above 8 %
    assert f"to more than {10 * n:,}." in " ".join(str(found).split())
    assert found.n_lowest == np.sum(confidence == 1)
    shares = [np.mean(~right[confidence >= one]) for one in np.unique(confidence)]
    assert found.lowest_risk == min(shares) < 0.08
    for beside in (-0.001, 0.001):  # noise decides on which side of the limit the share lies
        close = coverage_at_risk(right, confidence, min(shares) + beside)
        assert close.lowest_risk_low < close.max_risk
        assert close.n_needed is None
        assert "More answers may help" in str(close)
    few = at(0.01)
    assert few.lowest_risk is None
    assert at(1e-17).n_needed > 1e17
    assert 0.99**few.n_needed <= 0.05 / 5 < 0.99 ** (few.n_needed - 1)
    assert "There are too few" in str(few)


@pytest.mark.parametrize("risk", [0.01, 0.08, 0.12])
def test_questions_that_are_asked_several_times_are_counted_once(risk):
    rng = np.random.default_rng(0)
    confidence = rng.choice([0.6, 0.7, 0.8, 0.9, 1.0], 400)
    right, questions = rng.random(400) < confidence - 0.1, np.arange(400) // 2
    once, often = (
        coverage_at_risk(
            np.tile(right, n), np.tile(confidence, n), risk, groups=np.tile(questions, n)
        )
        for n in (1, 4)
    )
    assert once.n_groups == often.n_groups == (None if once.risk is not None else 200)
    for name in ("n_needed", "n_needed_low", "n_needed_high"):
        assert getattr(once, name) == getattr(often, name)
    if once.risk is None:
        assert "(95 % confidence, 1,600 answers to 200 questions)" in " ".join(str(often).split())
        assert " answers in all" not in str(often)


def share_of_broken_promises(draw, max_risk, n_sets, seed, **options):
    """The share of sets whose threshold has a true risk above the limit, and the mean coverage."""
    rng = np.random.default_rng(seed)
    population, truth, _ = draw(200_000, rng)
    broken, coverage = 0, []
    for _ in range(n_sets):
        confidence, right_rate, groups = draw(600, rng)
        right = rng.random(600) < right_rate
        if groups is not None:  # in most groups all answers hang together
            shared = rng.random(600)[groups]
            right = np.where(rng.random(600) < 0.8, shared, rng.random(600)) < right_rate
        result = coverage_at_risk(right, confidence, max_risk, groups=groups)
        coverage.append(result.coverage)
        kept = population >= result.threshold
        broken += bool(kept.any()) and 1 - truth[kept].mean() > max_risk
    return broken / n_sets, np.mean(coverage)


def stated(n, rng):
    """Heavy ties, overconfident at 100 %."""
    confidence = rng.choice([0.5, 0.7, 0.8, 0.9, 0.95, 1.0], n, p=[0.1, 0.1, 0.1, 0.2, 0.2, 0.3])
    return confidence, confidence - 0.08 * confidence**4, None


def continuous(n, rng):
    confidence = rng.beta(4, 1, n)
    return confidence, confidence**0.5, None


def in_groups(n, rng):
    """Five answers a question, with one confidence."""
    confidence, rate, _ = stated(-(-n // 5), rng)
    return confidence.repeat(5)[:n], rate.repeat(5)[:n], np.arange(n) // 5


def on_the_border(n, rng):
    """All thresholds have a risk just above the limit of 0.1, in groups of four."""
    return rng.random(n), np.full(n, 0.8999), np.arange(n) // 4


def alone_on_the_border(n, rng):
    return rng.random(n), np.full(n, 0.8999), None


CELLS = [  # with the coverage that is at least reached on average
    (stated, 0.15, 0.5),
    (stated, 0.092, 0),
    (continuous, 0.1, 0.7),
    (in_groups, 0.2, 0.5),
    (in_groups, 0.15, 0),
    (on_the_border, 0.1, 0),
    (alone_on_the_border, 0.1, 0),
]


@pytest.mark.slow
@pytest.mark.parametrize(("draw", "max_risk", "at_least"), CELLS)
def test_the_threshold_keeps_its_promise_in_95_percent_of_1000_sets(draw, max_risk, at_least):
    broken, coverage = share_of_broken_promises(draw, max_risk, 1000, seed=1)
    # With 5 % broken, more than 73 of 1,000 have probability 1e-3.
    assert broken <= 0.073
    assert coverage >= at_least


def test_the_promise_in_few_sets():
    broken, coverage = share_of_broken_promises(in_groups, 0.17, 60, seed=0)
    assert broken <= 8 / 60  # more have probability 2e-3 at 5 %
    assert coverage > 0.2


@pytest.mark.parametrize(
    ("right", "confidence", "match"),
    [
        ([0.9, 0.2], [1, 0], r"correct row 0 is 0.9, neither right .* swapped\?"),
        (["yes", "no"], [1, 0], r"correct row 0 is 'yes', neither right \(1\) nor wrong \(0\)"),
        ([1, None], [1, 0], "correct row 1 is None"),
        ([1, 0, 1], [0.5, 0.5], "correct has 3 rows and confidence 2"),
        ([[1, 0]], [[0.5, 0.5]], r"correct has shape \(1, 2\)"),
        ([1, 0], [0.5, np.nan], "confidence contains NaN"),
        ([], [], "correct has shape"),
    ],
)
def test_bad_answers_are_refused_by_name(right, confidence, match):
    for call in (risk_coverage_curve, area_under_risk_coverage):
        with pytest.raises(ValueError, match=match):
            call(right, confidence)
    with pytest.raises(ValueError, match=match):
        coverage_at_risk(right, confidence, 0.1)


def test_answers_come_as_booleans_objects_and_frames():
    pandas = pytest.importorskip("pandas")
    right, confidence = answers(7)
    one = area_under_risk_coverage(right, confidence)
    for same in (right.astype(bool), right.astype(object), pandas.Series(right, dtype="boolean")):
        assert area_under_risk_coverage(same, pandas.Series(confidence)) == one


def test_an_interval_with_and_without_groups():
    right, confidence = answers(8, n=200)
    area, options = area_under_risk_coverage, {"n_resamples": 99, "random_state": 0}
    one = metrics.bootstrap_interval(area, right, confidence, **options)
    groups = np.arange(200) // 2
    other = metrics.bootstrap_interval(area, right, confidence, groups=groups, **options)
    assert one.estimate == other.estimate == area(right, confidence)
    assert one.low < one.estimate < one.high
    assert other.low < other.estimate < other.high
