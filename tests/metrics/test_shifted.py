"""The calibration error of a target without labels: weights, limits, refusals and warnings."""

import warnings
from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import expit, softmax
from scipy.stats import binom
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from skcal.hypothesis_tests import calibration_error_interval
from skcal.metrics import calibration_error, shifted, shifted_calibration_error
from skcal.recalibration import BetaCalibration, estimate_prevalence

FEW = {"n_resamples": 20, "random_state": 0}
of_few = partial(shifted_calibration_error, **FEW)


def of_classes(prevalence, n, rng):
    """Overconfident predictions, whose slope is 1.6 at a prevalence of 0.5."""
    y = (rng.random(n) < prevalence).astype(int)
    return y, expit(2.4 * rng.normal(1.5 * (y - 0.5)))


def of_features(mean, n, rng):
    X = rng.normal(size=(n, 2)) + np.array([mean, 0])
    z = X @ [1, 0.5]
    return X, (rng.random(n) < expit(z)).astype(int), expit(1.6 * z - 0.3), expit(z)


CENTRES = 1.2 * np.random.default_rng(3).normal(size=(5, 4))


def of_five(prevalences, n, rng):
    y = rng.choice(5, n, p=prevalences)
    X = CENTRES[y] + rng.normal(size=(n, 4))
    z = -0.5 * ((X[:, None, :] - CENTRES) ** 2).sum(axis=-1)
    return y, softmax(1.5 * z, axis=1), z


def truth_of_classes(prevalence):
    _, p = of_classes(prevalence, 1_000_000, np.random.default_rng(1))
    z = np.log(p / (1 - p)) / 1.6 + np.log(prevalence / (1 - prevalence))
    return np.abs(expit(z) - p).mean()


def truth_of_features(mean):
    _, _, p, h = of_features(mean, 1_000_000, np.random.default_rng(1))
    return np.abs(h - p).mean()


def truth_of_five(prevalences):
    """By 400 cells of 1,000 predictions each."""
    _, p, z = of_five(prevalences, 400_000, np.random.default_rng(1))
    right = softmax(z + np.log(prevalences), axis=1)[np.arange(len(p)), p.argmax(axis=1)]
    gap = (right - p.max(axis=1))[np.argsort(p.max(axis=1))]
    return np.abs(gap.reshape(400, -1).mean(axis=1)).mean()


def drawn(kind, target, n, seed):
    """Labels and predictions of the source, and options that describe the target."""
    rng = np.random.default_rng(seed)
    if kind == "covariate":
        X, y, p, _ = of_features(0, n, rng)
        target_X, _, target_p, _ = of_features(target, n, rng)
        return y, p, {"shift": kind, "target_proba": target_p, "X": X, "target_X": target_X}
    draw, source = (of_classes, 0.5) if kind == "label" else (of_five, np.full(5, 0.2))
    (y, p, *_), (_, target_p, *_) = (draw(share, n, rng) for share in (source, target))
    return y, p, {"target_proba": target_p}


def estimated(kind, target, n, seed, **options):
    y, p, described = drawn(kind, target, n, seed)
    return shifted_calibration_error(y, p, random_state=seed, **described, **options)


def plain_estimate(y, p, target_proba, X=None, target_X=None, shift="label"):
    """With weights by maximum likelihood, or by one logistic regression that saw all samples."""
    if shift == "label":
        method, share = BetaCalibration().fit(p, y), y.mean()
        target = estimate_prevalence(method.predict_proba(target_proba)[:, 1], prevalence=share)
        prevalence = float(np.atleast_1d(target)[-1])
        weight = np.where(y == 1, prevalence / share, (1 - prevalence) / (1 - share))
    else:
        domain = np.repeat([0, 1], [len(X), len(target_X)])
        fitted = LogisticRegression(C=1e3).fit(np.vstack([X, target_X]), domain)
        odds = fitted.predict_proba(X)
        weight = odds[:, 1] / odds[:, 0]
    return calibration_error(y, p, sample_weight=weight)


FIVE = [0.5, 0.2, 0.1, 0.1, 0.1]
TRUTHS = {"label": truth_of_classes, "covariate": truth_of_features, "five": truth_of_five}
CELLS = [("label", 0.2), ("label", 0.05), ("five", FIVE), ("covariate", 0.7), ("covariate", 1.4)]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The weighted source does not have")
@pytest.mark.filterwarnings("ignore:.* of the target samples are unlike any source sample")
@pytest.mark.parametrize(("kind", "target"), CELLS)
def test_each_limit_holds_in_95_percent_of_200_sets(kind, target):
    truth = TRUTHS[kind](target)
    options = {"n_resamples": 30} if kind == "covariate" else {}
    found = [estimated(kind, target, 3000, seed, **options) for seed in range(200)]
    # Of limits that hold in 95 % fewer than this hold in 200 with probability 1e-3.
    least = binom.ppf(1e-3, 200, 0.95)
    assert sum(one.low <= truth for one in found) >= least
    assert sum(truth <= one.high for one in found) >= least
    # Of 1 % more than this have probability 1e-3; 30 resamples have no such p-value.
    assert sum(one.pvalue <= 0.01 for one in found) <= binom.isf(1e-3, 200, 0.01)
    error = np.mean([abs(one.estimate - truth) for one in found])
    if kind == "five":
        assert error <= 0.01
        return
    sets = [drawn(kind, target, 3000, seed) for seed in range(200)]
    plain = [plain_estimate(y, p, **described) for y, p, described in sets]
    assert error <= 1.3 * np.mean([abs(one - truth) for one in plain])


@pytest.mark.parametrize(("kind", "target"), CELLS)
def test_the_error_of_the_target_is_found_without_its_labels(kind, target):
    truth = TRUTHS[kind](target)
    found = estimated(kind, target, 2000, 1, n_resamples=20)
    assert abs(found.estimate - truth) < 0.05
    assert found.low - 0.02 < truth < found.high + 0.02
    assert found.low <= found.estimate <= found.high


def test_prevalences_are_consistent_where_the_recalibration_is_wrong():
    """Predictions that no Beta map recalibrates: the scores then lose precision only."""
    rng = np.random.default_rng(0)
    (y, p), (labels, target) = (of_classes(share, 40_000, rng) for share in (0.5, 0.1))
    p, target = (np.where((q > 0.3) & (q < 0.7), 1 - q, q) for q in (p, target))
    result = of_few(y, p, target_proba=target)
    error = result.prevalences[1] - labels.mean()
    assert abs(error) < 4 * result.prevalence_errors[1] < 0.03
    assert_allclose(result.prevalences.sum(), 1)
    one = result.weights[y == 1][0] / result.weights[y == 0][0]
    share = y.mean()
    odds = result.prevalences[1] / result.prevalences[0] * (1 - share) / share
    assert_allclose(one, odds)


def test_the_estimate_is_the_calibration_error_with_the_weights():
    rng = np.random.default_rng(1)
    (y, p), (_, target) = (of_classes(share, 800, rng) for share in (0.5, 0.2))
    result = of_few(y, p, target_proba=target)
    weighted = calibration_error(y, p, sample_weight=result.weights)
    assert_allclose(result.estimate, np.clip(weighted, result.low, result.high), rtol=0.02)
    assert_allclose(result.weights.mean(), 1)
    assert_allclose(result.effective_size, 800**2 / (result.weights**2).sum())


def test_without_a_shift_the_answer_is_near_that_of_the_source():
    rng = np.random.default_rng(2)
    (y, p), (_, target) = (of_classes(0.5, 2000, rng) for _ in "ab")
    result = of_few(y, p, target_proba=target)
    interval = calibration_error_interval(y, p)
    assert abs(result.estimate - interval.estimate) < 0.02
    assert result.high < interval.high + 0.03
    assert result.effective_size > 1900


def draws(n=400, classes=2):
    rng = np.random.default_rng(3)
    if classes == 2:
        return (*of_classes(0.5, n, rng), of_classes(0.2, n, rng)[1])
    y, p, _ = of_five(np.full(5, 0.2), n, rng)
    return y, p, of_five(FIVE, n, rng)[1]


@pytest.mark.parametrize("classes", [2, 5])
def test_rows_weights_and_names_of_classes_do_not_matter(classes):
    y, p, target = draws(classes=classes)
    rng = np.random.default_rng(0)
    weight, rows = rng.uniform(0.5, 2, 400), rng.permutation(400)
    one = of_few(y, p, target_proba=target, sample_weight=weight)
    again = of_few(y, p, target_proba=target, sample_weight=1e-6 * weight)
    assert_allclose([again.estimate, again.low, again.high], [one.estimate, one.low, one.high])
    moved = of_few(y[rows], p[rows], target_proba=target[::-1], sample_weight=weight[rows])
    assert_allclose(moved.prevalences, one.prevalences, rtol=1e-3)
    assert_allclose(moved.weights, one.weights[rows], rtol=1e-3)
    names = np.array(list("vwxyz"))[:classes]
    named = of_few(names[y], p, target_proba=target, sample_weight=weight, labels=names)
    assert named.estimate == one.estimate
    keep = rng.random(400) < 0.8
    zero = of_few(y, p, target_proba=target, sample_weight=1.0 * keep)
    part = of_few(y[keep], p[keep], target_proba=target)
    assert_allclose([zero.estimate, zero.high], [part.estimate, part.high])
    assert len(zero.weights) == keep.sum()


def test_the_positive_class_and_two_columns():
    y, p, target = draws()
    one = of_few(y, p, target_proba=target)
    columns = [np.column_stack([1 - q, q]) for q in (p, target)]
    two = of_few(y, columns[0], target_proba=columns[1])
    assert_allclose([two.estimate, two.high], [one.estimate, one.high])
    logits = [np.log(q / (1 - q)) for q in (p, target)]
    of_logits = of_few(y, logits[0], target_proba=logits[1], from_logits=True)
    assert_allclose([of_logits.estimate, of_logits.high], [one.estimate, one.high], rtol=1e-4)
    other = of_few(y, columns[0], target_proba=columns[1], pos_label=0, notion="binary")
    assert_allclose(other.prevalences[::-1], one.prevalences)
    assert_allclose(other.estimate, one.estimate, rtol=0.05)


def test_groups_of_one_sample_are_none_and_copies_widen_the_limits():
    y, p, target = draws()
    one = of_few(y, p, target_proba=target)
    alone = of_few(y, p, target_proba=target, groups=np.arange(400))
    assert (alone.low, alone.high) == (one.low, one.high)
    copies = [a.repeat(4) for a in (y, p, np.arange(400))]
    told, not_told = (
        of_few(*copies[:2], target_proba=target, groups=groups) for groups in (copies[2], None)
    )
    assert told.high - told.estimate > not_told.high - not_told.estimate
    X = np.random.default_rng(0).normal(size=(1600, 2))
    options = {"shift": "covariate", "X": X, "target_X": X[:400], "groups": copies[2]}
    assert of_few(*copies[:2], **options).effective_size > 1500


def test_another_classifier_tells_source_from_target():
    rng = np.random.default_rng(4)
    X, y, p, _ = of_features(0, 600, rng)
    other, *_ = of_features(0.7, 600, rng)
    tree = DecisionTreeClassifier(max_depth=3, random_state=0)
    options = {"shift": "covariate", "X": X, "target_X": other, "estimator": tree}
    result = of_few(y, p, **options)
    assert (result.pvalue, result.prevalences) == (None, None)
    assert np.corrcoef(result.weights, X[:, 0])[0, 1] > 0.5


def test_the_wrong_shift_is_warned_of():
    rng = np.random.default_rng(5)
    y, p = of_classes(0.5, 3000, rng)
    target = expit(0.3 * rng.normal(size=3000))  # neither class looks so
    with pytest.warns(UserWarning, match="shift='label' does not describe what changed"):
        result = shifted_calibration_error(y, p, target_proba=target, random_state=0)
    assert "Warning: the weighted source does not have" in str(result)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        right = of_classes(0.2, 3000, rng)[1]
        result = shifted_calibration_error(y, p, target_proba=right, random_state=0)
    assert result.pvalue > 0.01
    assert "Class shares in the target" in str(result)


def test_few_like_the_target_are_warned_of_and_none_is_refused():
    rng = np.random.default_rng(6)
    X, y, p, _ = of_features(0, 200, rng)
    options = {"shift": "covariate", "X": X, **FEW}
    far, *_ = of_features(2.5, 200, rng)
    few = pytest.warns(UserWarning, match="the 200 source samples count as")
    with pytest.warns(UserWarning, match="target samples are unlike any source"), few:
        result = shifted_calibration_error(y, p, target_X=far, **options)
    assert result.effective_size < 50
    assert "same X have the same risk" in str(result)
    with pytest.raises(ValueError, match="X separates source and target"):
        shifted_calibration_error(y, p, target_X=X + 50, **options)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({}, "target_proba is missing, and shift='label' needs it"),
        ({"target_proba": [0.1, 2.0]}, "target_proba row 1 is 2, not a probability"),
        ({"target_proba": np.full((9, 3), 1 / 3)}, r"target_proba has shape \(9, 3\), but y_proba"),
        ({"target_proba": [0.5] * 9, "X": [[1]] * 400}, "X has no meaning for shift='label'"),
        ({"shift": "covariate"}, "X is missing, and shift='covariate' needs it"),
        ({"shift": "covariate", "X": np.ones((400, 2))}, "target_X is missing"),
        ({"shift": "covariate", "X": np.ones((3, 2)), "target_X": np.ones((9, 2))}, "X has 3 rows"),
        (
            {"shift": "covariate", "X": np.ones((400, 2)), "target_X": np.ones((9, 3))},
            "target_X has 3 columns, and X 2",
        ),
        (
            {"shift": "covariate", "X": np.ones((400, 2)), "target_X": np.ones((9, 2))},
            "target_X has 9 rows of positive weight. At least 10",
        ),
        ({"shift": "covariate", "X": [["a"]] * 400, "target_X": [[1]] * 9}, "X"),
        ({"target_proba": [0.5] * 9, "notion": "canonical"}, "notion='canonical'"),
    ],
)
def test_bad_input_is_refused_by_name(options, match):
    y, p, _ = draws()
    if options.get("notion") == "canonical":
        p = np.column_stack([1 - p, p])
        options = options | {"target_proba": p}
    with pytest.raises(ValueError, match=match):
        of_few(y, p, **options)


def test_what_tells_nothing_of_prevalences_is_refused():
    y, p, target = draws(classes=5)
    with pytest.raises(ValueError, match=r"y_true holds 0 sample\(s\) of class"):
        of_few(y % 4, p, target_proba=target, labels=range(5))
    flat = np.full((400, 5), 0.2)
    with pytest.raises(ValueError, match="y_proba does not tell the classes apart"):
        of_few(y, flat, target_proba=flat)
    few = np.where(np.arange(400) < 12, 4, y % 4)
    of_few(few, p, target_proba=target)
    groups = np.repeat(np.arange(20), 20)
    with pytest.raises(ValueError, match=r"y_true holds 1 group\(s\) of class 4, too few"):
        of_few(few, p, target_proba=target, groups=groups)
    votes = np.eye(5)[y] * 3
    with pytest.raises(ValueError, match="Pass a row for each vote"):
        of_few(votes, p, target_proba=target)


def test_variances_over_resamples_are_those_of_reweighted_means():
    y, p, target = draws(200)
    result = of_few(y, p, target_proba=target)
    sample = shifted.read_sample(y, p)._replace(weight=result.weights)
    rng = np.random.default_rng(0)
    resampled = rng.uniform(size=(30, 200))
    limits = shifted._ShiftedLimits(sample, resampled)
    [part] = limits.parts
    [sign] = part.largest_patterns([2])
    means = [np.average(part.residuals * sign, weights=one[part.rows]) for one in resampled]
    assert_allclose(limits._variance([sign], [0.0]), np.var(means, ddof=1) * 29 / 27)
    means = [np.average(part.residuals, weights=one[part.rows]) for one in resampled]
    assert_allclose(limits.bias[1], np.std(means, ddof=1) * np.sqrt(29 / 27))


@pytest.mark.filterwarnings("ignore:After weighting")
@pytest.mark.parametrize("notion", ["confidence", "classwise", "top-label"])
def test_classes_may_be_absent_from_the_target(notion):
    """Only source samples of the classes of the target count then, and limits are numbers."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 5, 1000)
    P = 0.02 / 5 + 0.98 * np.eye(5)[y]  # tells the classes apart
    for k in (0, 1):
        result = of_few(y, P, target_proba=P[y == k], notion=notion)
        assert_allclose(result.prevalences, np.eye(5)[k], atol=1e-9)
        error = calibration_error(y[y == k], P[y == k], notion=notion, labels=range(5))
        assert_allclose(result.estimate, error, atol=1e-9)
        assert result.low <= result.estimate <= result.high <= 1
