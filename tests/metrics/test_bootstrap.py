"""Bootstrap intervals against their formulas, and what is resampled."""

import warnings
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from joblib import parallel_config
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from sklearn.metrics import log_loss

from skcal._groups import INDEPENDENT, Groups
from skcal.metrics import (
    bootstrap_interval,
    calibration_intercept,
    expected_calibration_error,
    kolmogorov_smirnov_calibration_error,
    maximum_calibration_error,
    maximum_mean_calibration_error,
    score_decomposition,
    smooth_calibration_error,
    squared_kernel_calibration_error,
)
from skcal.metrics.binned import _MANY_RESAMPLED
from skcal.metrics.bootstrap import interval_of_counts, resample_counts
from skcal.metrics.statistic import CountedCells, prepare_counts, prepared_by

pytestmark = pytest.mark.filterwarnings("ignore:Too few outcomes are uncertain for the interval")

# Averages over samples, and hence those for which a count is a weight.
PLUG_IN = {
    "ece": partial(expected_calibration_error, n_bins=5),
    "quantile": partial(expected_calibration_error, n_bins=5, strategy="quantile", norm=2),
    "ks": kolmogorov_smirnov_calibration_error,
    "smooth": smooth_calibration_error,
    "mmce": maximum_mean_calibration_error,
    "brier": lambda *args, **options: score_decomposition(*args, **options).miscalibration,
}


@pytest.fixture
def data(rng):
    """60 calibrated binary predictions: outcomes, p."""
    p = rng.uniform(size=60)
    return (rng.uniform(size=60) < p).astype(int), p


def on_rows(metric):
    """The metric without sample_weight and labels, as a user may write it."""
    return lambda y, proba: metric(y, proba)


def mean_gap(y, p, sample_weight=None):
    return np.average(y - p, weights=sample_weight)


def naive_bca(estimate, left_out, distribution, levels):
    """Efron & Tibshirani (1993), Eqs. (14.9), (14.10), (14.14) and (14.15)."""
    below = np.mean(distribution < estimate) + np.mean(distribution == estimate) / 2
    shift, gap = stats.norm.ppf(below), left_out.mean() - left_out
    acceleration = np.sum(gap**3) / (6 * np.sum(gap**2) ** 1.5)
    z = shift + stats.norm.ppf(levels)
    return np.quantile(distribution, stats.norm.cdf(shift + z / (1 - acceleration * z)))


# The interval


@pytest.mark.parametrize(
    ("metric", "confidence_level"), [(mean_gap, 0.5), (expected_calibration_error, 0.9)]
)
def test_limits_are_those_of_their_formulas_and_of_scipy(data, metric, confidence_level):
    y, p = data
    rows = np.arange(len(y))
    levels = np.array([(1 - confidence_level) / 2, (1 + confidence_level) / 2])
    estimate = metric(y, p)
    left_out = np.array([metric(np.delete(y, i), np.delete(p, i)) for i in rows])
    for method in ("percentile", "basic", "BCa"):
        options = {"method": method, "confidence_level": confidence_level}
        own = bootstrap_interval(metric, y, p, **options, n_resamples=200, random_state=0)
        quantiles = np.quantile(own.distribution, levels)
        expected = {
            "percentile": quantiles,
            "basic": 2 * estimate - quantiles[::-1],
            "BCa": naive_bca(estimate, left_out, own.distribution, levels),
        }[method]
        assert_allclose([own.low, own.high], expected, rtol=1e-9)
        again = stats.bootstrap(
            (rows,),
            lambda i: metric(y[i], p[i]),
            vectorized=False,
            n_resamples=0,
            bootstrap_result=SimpleNamespace(bootstrap_distribution=own.distribution),
            **options,
        )
        assert_allclose([own.low, own.high], again.confidence_interval, rtol=1e-9)
        assert_allclose(own.estimate, estimate, rtol=1e-12)
        assert_allclose(own.standard_error, again.standard_error, rtol=1e-12)
        assert own.confidence_level == confidence_level


# What is resampled


@pytest.mark.parametrize("metric", PLUG_IN.values(), ids=PLUG_IN)
def test_weights_of_resamples_are_repeated_rows(data, metric):
    options = {"n_resamples": 12, "random_state": 0}
    weighted = bootstrap_interval(partial(metric), *data, **options)
    repeated = bootstrap_interval(on_rows(metric), *data, **options)
    assert weighted.distribution.std() > 0
    assert_allclose(weighted.distribution, repeated.distribution, rtol=1e-9, atol=1e-12)
    assert_allclose([weighted.low, weighted.high], [repeated.low, repeated.high], atol=1e-10)


def test_a_resample_has_as_many_rows_as_the_data_and_keeps_pairs_together(rng):
    proba = rng.dirichlet(np.ones(3), size=30)
    y = np.repeat([0, 1, 2], 10)
    pairs = {(*row, label) for row, label in zip(proba.tolist(), y.tolist(), strict=True)}

    def metric(y, predictions):
        drawn = [(*row, k) for row, k in zip(predictions.tolist(), y.tolist(), strict=True)]
        assert set(drawn) <= pairs
        assert len(drawn) == 30
        return len(set(drawn)) / 30

    interval = bootstrap_interval(metric, y, proba, n_resamples=500, random_state=0)
    # A row is drawn with probability 1 - (29/30)^30 = 0.638; the share of rows drawn has a
    # standard deviation of 0.055, its mean over 500 resamples one of 0.0025.
    assert_allclose(interval.distribution.mean(), 1 - (29 / 30) ** 30, atol=0.01)
    assert interval.estimate == 1


def test_pairs_of_copies_do_not_bias_u_statistics(data):
    y, p = (array[:15] for array in data)
    error = partial(squared_kernel_calibration_error, bandwidth=0.5)
    options = {"n_resamples": 400, "random_state": 0}
    own = bootstrap_interval(error, y, p, **options)
    naive = bootstrap_interval(on_rows(error), y, p, **options)
    # Repeated rows meet themselves with probability 1/n, so that the average becomes
    # (1 - 1/n) U + 1/n mean_i δ_i². Four Monte Carlo errors are 4 sd/√400.
    copies = (own.estimate * (len(y) - 1) + np.mean((y - p) ** 2)) / len(y)
    tolerance = 4 * own.standard_error / np.sqrt(400)
    assert abs(own.distribution.mean() - own.estimate) < tolerance
    assert abs(naive.distribution.mean() - copies) < tolerance
    assert copies - own.estimate > 2 * tolerance


def test_sample_weights_are_resampled_with_their_rows(data, rng):
    y, p = data
    weight = rng.uniform(0.5, 2, len(y))
    seen = []

    def metric(y, p, sample_weight):
        counts = sample_weight / weight
        assert_allclose(counts, np.rint(counts), atol=1e-12)
        seen.append(round(counts.sum()))
        return mean_gap(y, p, sample_weight)

    interval = bootstrap_interval(
        metric, y, p, sample_weight=weight, n_resamples=20, random_state=0
    )
    assert set(seen) == {len(y)}
    assert_allclose(interval.estimate, np.average(y - p, weights=weight), rtol=1e-12)
    assert len(interval.distribution) == 20


# Binned measures by counting


BINNED = {
    "ECE": {},
    "RMS": {"norm": 2},
    "maximum": {"norm": np.inf},
    "debiased": {"norm": 2, "debias": True, "root": False},
    "labels": {"norm": 2, "debias": "labels", "root": False},
    "macro": {"average": "macro"},
    "unique": {"strategy": "unique"},
    "quantile": {"strategy": "quantile", "n_bins": 4},
    "cube root": {"n_bins": "cube_root"},
    "euclidean": {"distance": "euclidean"},
}


NOTIONS = ["binary", "confidence", "top-label", "classwise", "canonical", "top-2"]


@pytest.mark.parametrize(
    ("name", "notion"), [(n, NOTIONS[(i + j) % 6]) for i, n in enumerate(BINNED) for j in (0, 2)]
)
def test_binned_errors_of_counts_are_those_of_weights(rng, name, notion):
    options, weighted = BINNED[name], notion in ("confidence", "top-label", "canonical")
    if notion in ("canonical", "top-2") and options.get("strategy") == "quantile":
        pytest.skip("no quantiles of vectors")
    y, proba = rng.integers(0, 3, 40), rng.dirichlet(np.ones(3), size=40)
    y, proba = (y == 1, proba[:, 1]) if notion == "binary" else (y, proba)
    weight = rng.integers(0, 4, 40) * 0.3 if weighted else np.ones(40)
    options = {"n_resamples": 8, "random_state": 0, "notion": notion, **options}
    for error in (expected_calibration_error, maximum_calibration_error):
        if error is maximum_calibration_error and not BINNED[name].keys() <= {"n_bins", "strategy"}:
            continue
        given = weight if weighted else None
        counted = bootstrap_interval(error, y, proba, sample_weight=given, **options)
        by_rows = bootstrap_interval(
            lambda *args, e=error, **kwargs: e(*args, **kwargs),
            *(y, proba),
            sample_weight=weight,
            **options,
        )
        # A root is as exact as its argument.
        assert_allclose(counted.distribution, by_rows.distribution, rtol=1e-9, atol=1e-8)
        assert_allclose([counted.low, counted.high], [by_rows.low, by_rows.high], atol=1e-7)


def test_only_binned_errors_are_counted(data):
    y, p = data
    every = np.ones(60)
    options = [{}, {"n_bins": 3}, {"strategy": "unique"}]
    for metric in (expected_calibration_error, maximum_calibration_error):
        assert all(prepare_counts(metric, y, p, every, o) for o in options)
        assert prepare_counts(partial(metric, n_bins=3), y, p, every, {})
    for options in ({"strategy": "quantile"}, {"n_bins": "cube_root"}):
        assert not prepare_counts(maximum_calibration_error, y, p, every, options)
        evaluate = prepare_counts(expected_calibration_error, y, p, every, options)
        for counts in (every, resample_counts(np.random.default_rng(0), 60)):
            by_weights = expected_calibration_error(y, p, sample_weight=counts, **options)
            assert_allclose(evaluate(counts), by_weights, rtol=1e-12)
    for metric in (smooth_calibration_error, mean_gap):
        assert not prepare_counts(metric, y, p, every, {})


def test_a_users_metric_is_counted_once_it_says_how(data):
    y, p = data

    def count(sample, scale):
        [problem] = sample.problems()
        terms = problem.weight * problem.residuals[:, 0]
        return lambda counts: float(scale * (counts @ terms) / (counts @ problem.weight))

    def metric(y, p, *, scale=1.0, notion="binary", sample_weight=None):
        return float(scale * np.average(y - p, weights=sample_weight))

    options = {"scale": 2.0, "sample_weight": np.arange(1.0, 61), "n_resamples": 39}
    by_rows = bootstrap_interval(metric, y, p, random_state=0, **options)
    counted = bootstrap_interval(prepared_by(counts=count)(metric), y, p, random_state=0, **options)
    assert_allclose(counted.distribution, by_rows.distribution, rtol=0, atol=1e-14)


def test_an_option_of_a_partial_gives_way_to_that_of_the_call(data):
    options = {"n_resamples": 10, "random_state": 0}
    ece, options["n_bins"] = expected_calibration_error, 7
    one = bootstrap_interval(partial(ece, n_bins=3), *data, **options)
    other = bootstrap_interval(ece, *data, **options)
    assert_array_equal(one.distribution, other.distribution)


def test_counts_are_multinomial(rng):
    counts = np.stack([resample_counts(rng, 10) for _ in range(4000)])
    assert (counts.sum(axis=1) == 10).all()
    # Means of 1 and variances of 0.9, which leave 4.5 standard errors with probability 1.4e-4.
    assert (np.abs(counts.mean(axis=0) - 1) < 4.5 * np.sqrt(0.9 / 4000)).all()
    assert (np.abs(counts.var(axis=0) - 0.9) < 4.5 * np.sqrt(2.034 / 4000)).all()


def test_a_metric_of_your_own_takes_sets_of_labels(rng):
    proba = rng.dirichlet(np.ones(3), size=40)
    sets = (rng.uniform(size=(40, 3)) < proba).astype(int)
    ece = partial(expected_calibration_error, notion="multi-label")
    options = {"n_resamples": 5, "random_state": 0}
    own = bootstrap_interval(on_rows(ece), sets, proba, **options)
    known = bootstrap_interval(ece, sets, proba, **options)
    assert_allclose(own.distribution, known.distribution, rtol=1e-11)


# Randomness and workers


@pytest.mark.parametrize("backend", ["threading", pytest.param("loky", marks=pytest.mark.slow)])
def test_the_seed_decides_and_workers_do_not(data, backend):
    run = partial(
        bootstrap_interval, partial(expected_calibration_error, n_bins=5), *data, n_resamples=70
    )
    one = run(random_state=0)
    assert_array_equal(run(random_state=0).distribution, one.distribution)
    with parallel_config(backend=backend):
        assert_array_equal(run(random_state=0, n_jobs=2).distribution, one.distribution)
    assert (run(random_state=1).distribution != one.distribution).any()
    rng = np.random.RandomState(0)
    assert_array_equal(run(random_state=rng).distribution, one.distribution)
    assert (run(random_state=rng).distribution != one.distribution).any()
    assert len(set(one.distribution.tolist())) > 60  # no two tasks share a stream


@pytest.mark.filterwarnings("ignore:groups holds")
@pytest.mark.parametrize("n_groups", [6, 12, 40])
@pytest.mark.parametrize("method", ["percentile", "basic"])
def test_few_groups_widen_the_interval_to_the_tail_of_student(rng, n_groups, method):
    """The expanded interval of Hesterberg (2015), where a mean of groups has its t interval."""
    sizes = rng.integers(1, 9, n_groups)
    groups, weight = np.repeat(np.arange(n_groups), sizes), rng.uniform(0.5, 2, sizes.sum())
    p, y = rng.uniform(size=(2, len(groups)))
    interval = bootstrap_interval(
        mean_gap, (y < p).astype(int), p, groups=groups, sample_weight=weight, method=method
    )
    mass = np.bincount(groups, weight)
    number = mass.sum() ** 2 / (mass**2).sum()
    t = stats.t(number - 1).ppf(0.975) * np.sqrt(number / (number - 1))
    limits = np.quantile(interval.distribution, stats.norm.cdf([-t, t]))
    expected = limits if method == "percentile" else 2 * interval.estimate - limits[::-1]
    assert_allclose([interval.low, interval.high], expected, atol=1e-12)
    assert interval.confidence_level == 0.95


def test_intervals_of_ten_groups_miss_as_often_as_they_say():
    """400 sets of ten groups: of a right level more than 36 misses have probability 3e-4.

    Quantiles at the tails of 2.5 % miss 41 of these.
    """
    misses = narrow = 0
    for seed in range(400):
        rng = np.random.default_rng(seed)
        groups = np.repeat(np.arange(10), 20)
        gaps = rng.normal(size=10)[groups] + rng.normal(size=200)
        about = Groups(groups, np.zeros(200, bool), 10)
        means = partial(np.average, gaps)
        interval = interval_of_counts(
            gaps.mean(),
            lambda counts, means=means: means(weights=counts),
            np.ones(200),
            about,
            199,
            seed,
            method="percentile",
        )
        misses += not interval.low <= 0 <= interval.high
        low, high = np.quantile(interval.distribution, [0.025, 0.975])
        narrow += not low <= 0 <= high
    assert misses <= 36 < narrow


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("n_groups", [29, 30])
def test_fewer_than_30_groups_are_warned_of(rng, n_groups):
    groups = np.repeat(np.arange(n_groups), 20)
    p, draws = rng.uniform(size=(2, len(groups)))
    with warnings.catch_warnings(record=True) as caught:
        bootstrap_interval(mean_gap, (draws < p).astype(int), p, groups=groups, n_resamples=9)
    said = [str(each.message) for each in caught]
    assert (
        said
        == ["groups holds 29 groups. With fewer than 30 groups, levels and intervals are rough."][
            : n_groups < 30
        ]
    )


class Unpicklable(Exception):
    def __init__(self, first, second):
        super().__init__(f"{first} {second}")


def test_an_exception_that_pickle_loses_names_the_call_that_shows_it(data):
    def fails(y, p):
        if np.mean(y) != np.mean(data[0]):
            raise Unpicklable("of", "mine")
        return 0.0

    with pytest.raises(BrokenProcessPool) as caught:
        bootstrap_interval(fails, *data, n_jobs=2)
    assert "n_jobs=1" in caught.value.__notes__[0]
    with pytest.raises(Unpicklable, match="of mine"):
        bootstrap_interval(fails, *data, n_jobs=1)


@pytest.mark.parametrize("n_resamples", [2, 64, 65])
def test_as_many_resamples_as_asked_for(data, n_resamples):
    interval = bootstrap_interval(mean_gap, *data, n_resamples=n_resamples, random_state=0)
    assert interval.distribution.shape == (n_resamples,)


# Labels


@pytest.mark.parametrize(
    "metric",
    [expected_calibration_error, log_loss, lambda y, p, **kwargs: log_loss(y, p, **kwargs)],
)
def test_resamples_without_a_class_keep_its_column(rng, metric):
    proba = rng.dirichlet(np.ones(3), size=20)
    names = np.array(["a", "b", "c"])
    y = np.repeat([0, 1, 2], [10, 9, 1])  # every third resample lacks "c"
    options = {"n_resamples": 20, "random_state": 0}
    by_name = bootstrap_interval(metric, names[y], proba, **options)
    by_code = bootstrap_interval(metric, y, proba, **options)
    assert_allclose(by_name.distribution, by_code.distribution, rtol=1e-12)
    if metric is expected_calibration_error:  # scikit-learn's log_loss wants sorted columns
        turned = [2, 0, 1]
        options["labels"] = names[turned]
        by_order = bootstrap_interval(metric, names[y], proba[:, turned], **options)
        assert_allclose(by_order.distribution, by_code.distribution, rtol=1e-12)


def test_named_columns_of_a_data_frame_are_the_classes(data):
    pd = pytest.importorskip("pandas")
    y, p = data
    frame = pd.DataFrame({"yes": p, "no": 1 - p})
    names = pd.Series(np.where(y == 1, "yes", "no"))
    options = {"n_resamples": 20, "random_state": 0}
    by_name = bootstrap_interval(calibration_intercept, names, frame, notion="binary", **options)
    # "no" is the second column: P(no).
    by_code = bootstrap_interval(calibration_intercept, 1 - y, 1 - p, **options)
    assert_allclose(by_name.distribution, by_code.distribution, rtol=1e-7)


# Bad input


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"notion": "marginal"}, "notion='marginal' is unknown"),
        ({"y_true": [0, 1]}, "inconsistent numbers of samples"),
        ({"y_true": [0, 1] * 40}, "inconsistent numbers of samples"),
        ({"metric": on_rows(mean_gap), "y_true": [0, 1] * 40}, "inconsistent numbers of samples"),
        ({"y_proba": np.linspace(0, 1.5, 60)}, "not a probability"),
        ({"sample_weight": np.zeros(60)}, "all zero"),
        ({"sample_weight": np.arange(60) == 3}, "samples of positive weight"),
    ],
)
def test_what_cannot_be_resampled_raises(data, options, match):
    y, p = data
    call = {"metric": expected_calibration_error, "y_true": y, "y_proba": p, **options}
    with pytest.raises(ValueError, match=match):
        bootstrap_interval(**call)


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("of_vectors", [False, True])
def test_few_events_are_warned_of(of_vectors):
    p = np.full(1500, 0.01)
    for n_events in (0, 14, 16):
        y = (np.arange(1500) < n_events).astype(int)
        proba = np.column_stack([1 - p, p]) if of_vectors else p
        options = {"n_resamples": 5, "notion": "binary", "labels": [0, 1]}
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            bootstrap_interval(expected_calibration_error, y, proba, **options)
        assert ["Too few outcomes" in str(w.message) for w in caught] == [True] * (n_events < 15)


@pytest.mark.filterwarnings("default")
def test_the_positive_class_decides_what_an_event_is():
    y, p = np.repeat(["a", "b"], [984, 16]), np.full(1000, 0.985)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        bootstrap_interval(expected_calibration_error, y, p, n_resamples=5, pos_label="a")


@pytest.mark.filterwarnings("default")
def test_labels_that_only_the_metric_knows_are_not_looked_at():
    def metric(y, p):
        return float(np.mean(y - p))

    y = np.random.default_rng(0).normal(size=30)
    assert bootstrap_interval(metric, y, np.full(30, 0.5), n_resamples=5).low < 1


@pytest.mark.parametrize("n", [_MANY_RESAMPLED - 1, _MANY_RESAMPLED])
@pytest.mark.parametrize("law", ["uniform", "rare", "rounded", "edges"])
def test_resamples_of_cells_vary_as_those_of_rows_do(n, law):
    rng = np.random.default_rng(0)
    p = {"uniform": rng.random(n), "rare": rng.beta(1, 400, n)}.get(
        law, rng.integers(0, 16, n) / 15
    )
    y = (rng.random(n) < p + 0.02 * (1 - p)).astype(int)
    options = {"edges": [0, 0.0005, 0.3, 1]} if law == "edges" else {}
    for metric in (expected_calibration_error, maximum_calibration_error):
        evaluate = prepare_counts(metric, y, p, np.ones(n), options)
        assert isinstance(evaluate, CountedCells) == (n >= _MANY_RESAMPLED)
        interval = bootstrap_interval(metric, y, p, n_resamples=400, random_state=1, **options)
        if n < _MANY_RESAMPLED:
            continue
        assert_allclose(evaluate.of_cells(evaluate.sizes), interval.estimate, rtol=1e-9)
        rows = partial(evaluate.of_rows)
        slow = interval_of_counts(interval.estimate, rows, np.ones(n), INDEPENDENT, 200, 1)
        # Standard errors of deviations of 400 and 200 values: 3.5 and 5 %.
        assert 0.75 < interval.standard_error / slow.standard_error < 1.33
        apart = interval.distribution.mean() - slow.distribution.mean()
        assert abs(apart) < 5 * slow.standard_error / np.sqrt(130)
