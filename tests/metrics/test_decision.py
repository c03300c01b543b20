"""Net benefit, decision curves and Murphy diagrams against definitions, identities and peers."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from skcal.metrics import decision_curve, murphy_diagram, net_benefit
from skcal.metrics.limits import MeanOfSets

GRID = np.linspace(0, 0.95, 20)


def draw(n, seed=0, ties=False):
    rng = np.random.default_rng([seed, n])
    p = rng.uniform(size=n)
    p = np.round(p * 16) / 16 if ties else p
    weight = rng.uniform(0.2, 2, n)
    return (rng.random(n) < p**1.5).astype(int), p, weight


def gains(y, p, t):
    """What each sample adds to the net benefit."""
    return (p >= t) * np.where(y == 1, 1, -t / (1 - t))


def scores(y, p, t):
    """The elementary score of each sample."""
    return np.where(y == 1, (1 - t) * (p < t), t * (p >= t))


@pytest.mark.parametrize("ties", [False, True])
def test_net_benefit_is_the_mean_gain(ties):
    y, p, weight = draw(200, ties=ties)
    curve = decision_curve(y, p, thresholds=GRID, sample_weight=weight)
    for t, value in zip(GRID, curve.net_benefit, strict=True):
        expected = np.average(gains(y, p, t), weights=weight)
        assert_allclose(value, expected, atol=1e-12)
        assert_allclose(net_benefit(y, p, threshold=t, sample_weight=weight), expected, atol=1e-12)
    rate = np.average(y, weights=weight)
    assert_allclose(curve.treat_all, rate - (1 - rate) * GRID / (1 - GRID))
    assert_allclose(curve.net_benefit[0], rate)


def test_a_prediction_equal_to_the_threshold_is_treated():
    assert net_benefit([1, 0], [0.5, 0.25], threshold=0.5) == 0.5
    assert net_benefit([1, 0], [0.5, 0.25], threshold=np.nextafter(0.5, 1)) == 0
    assert_allclose(net_benefit([1, 0], [0.5, 0.25], threshold=0.25), 0.5 - 0.5 / 3)


def test_limits_are_normal_ones_after_two_more_samples():
    y, p, _ = draw(50)
    curve = decision_curve(y, p, thresholds=[0.3, 0.9])
    for k, t in enumerate(curve.thresholds):
        odds = t / (1 - t)
        values = np.append(gains(y, p, t), [1, -odds])
        half = 1.959964 * values.std() / np.sqrt(52)
        expected = values.mean() - half, values.mean() + half
        assert_allclose((curve.low[k], curve.high[k]), expected, rtol=1e-6)


def test_variances_and_simultaneous_limits_are_those_of_the_influences():
    y, p, weight = draw(400)
    weight = weight / weight.sum()
    values = np.stack([np.ones(20), -GRID / (1 - GRID)])
    terms = np.stack([gains(y, p, t) for t in GRID])
    influence = weight * (terms - terms @ weight[:, None])
    treated = p >= GRID[:, None]
    shares = [[(treated * (y == k)) @ mass for k in (1, 0)] for mass in (weight, weight**2)]
    gain = MeanOfSets(*np.array(shares), values, np.sum(weight**2))
    assert_allclose(gain.variance(), (influence**2).sum(axis=1), rtol=1e-9)
    deviation = np.sqrt((influence**2).sum(axis=1))
    draws = np.random.default_rng(1).standard_normal((4000, 400)) @ influence.T / deviation
    expected = np.quantile(np.abs(draws).max(axis=1), 0.95)
    # The standard error of each quantile is about 0.02.
    assert abs(gain.simultaneous_z(0.95, 1.96) - expected) < 0.1


def test_nobody_treated_leaves_a_limit():
    y, p, _ = draw(100)
    curve = decision_curve(y, p / 2, thresholds=[0.6, 0.7])
    assert (curve.net_benefit == 0).all()
    assert (curve.low < 0).all()
    assert (curve.high > 0).all()
    nobody = MeanOfSets(np.zeros((2, 1)), np.zeros((2, 1)), np.ones((2, 1)), 0.01)
    assert nobody.simultaneous_z(0.95, 1.9) == 1.9
    low, high = nobody.limits(0.1)
    assert low == 0 < high  # the estimate is always inside


def test_bands_hold_the_limits_and_these_the_net_benefit():
    y, p, weight = draw(300)
    curve = decision_curve(y, p, sample_weight=weight)
    rows = [curve.band_low, curve.low, curve.net_benefit, curve.high, curve.band_high]
    assert (np.diff(rows, axis=0) >= 0).all()


def test_net_benefits_are_those_of_dcurves():
    y, p, _ = draw(200)
    curve = decision_curve(y, p, thresholds=[0.1, 0.25, 0.5, 0.75, 0.9])
    # dcurves 1.1.7: dca(data, "y", ["p"], thresholds=…).
    assert_allclose(curve.net_benefit, [0.330556, 0.235, 0.15, 0.02, -0.085], atol=5e-7)
    assert_allclose(curve.treat_all, [0.322222, 0.186667, -0.22, -1.44, -5.1], atol=5e-7)


@pytest.mark.parametrize("ties", [False, True])
def test_the_mean_elementary_score_is_that_of_its_definition(ties):
    y, p, weight = draw(200, ties=ties)
    diagram = murphy_diagram(y, p, thresholds=GRID, sample_weight=weight)
    expected = [np.average(scores(y, p, t), weights=weight) for t in GRID]
    assert_allclose(diagram.score, expected, atol=1e-12)
    curve = decision_curve(y, p, thresholds=GRID, sample_weight=weight)
    rate = np.average(y, weights=weight)
    assert_allclose(diagram.score, (1 - GRID) * (rate - curve.net_benefit), atol=1e-12)


def test_all_jumps_are_between_the_values_at_and_above_a_prediction():
    y, p, _ = draw(50, ties=True)
    diagram = murphy_diagram(y, p)
    assert len(diagram.thresholds) == 2 * len(np.unique(p)) + 2
    for k, t in enumerate(diagram.thresholds[1:-1], 1):
        shown = t if k % 2 else np.nextafter(t, 2)
        assert_allclose(diagram.score[k], scores(y, p, shown).mean(), atol=1e-12)


@pytest.mark.parametrize("thresholds", [None, GRID])
def test_differences_are_those_of_the_scores_and_their_limits_normal(thresholds):
    y, p, weight = draw(200, ties=True)
    q = np.round(16 * np.sqrt(p)) / 16
    options = {"thresholds": thresholds, "sample_weight": weight}
    both = murphy_diagram(y, p, compare=q, **options)
    assert_allclose(both.difference, both.score - both.compared)
    other = murphy_diagram(y, q, compare=p, **options)
    assert_allclose(other.difference, -both.difference)
    assert_allclose(other.low, -both.high)
    if thresholds is not None:
        assert_allclose(both.compared, murphy_diagram(y, q, **options).score)
        plain = murphy_diagram(y, p, compare=q, thresholds=[0.5])
        gap = np.append(
            scores(y, p, 0.5) - scores(y, q, 0.5), np.repeat([0.5, -0.5], 1)
        )  # two samples, half of one in each of four sets of values ±½
        half = 1.959964 * gap.std() / np.sqrt(202)
        expected = gap.mean() - half, gap.mean() + half
        assert_allclose((plain.low[0], plain.high[0]), expected, rtol=1e-6)


def test_refusals_say_what_to_do():
    y, p, _ = draw(30)
    with pytest.raises(ValueError, match="threshold"):
        net_benefit(y, p, threshold=1.0)
    with pytest.raises(ValueError, match=r"thresholds must be a 1-D array .* \[0, 1\)"):
        decision_curve(y, p, thresholds=[0.5, 1.0])
    with pytest.raises(ValueError, match="in increasing order"):
        murphy_diagram(y, p, thresholds=[0.5, 0.1])
    with pytest.raises(ValueError, match="Use 'binary' or 'confidence'"):
        net_benefit(y, np.column_stack([1 - p, p]), notion="classwise")
    with pytest.raises(ValueError, match="compare"):
        murphy_diagram(y, p, compare=p[:-1])
    three = np.full((3, 3), 1 / 3)
    with pytest.raises(ValueError, match="about other events"):
        murphy_diagram([0, 1, 2], three, compare=np.eye(3))


def test_curves_are_shown_and_framed():
    y, p, _ = draw(100)
    assert "Decision curve, binary, 100 samples" in decision_curve(y, p)._repr_html_()
    assert "Murphy diagram, binary, 100 samples" in murphy_diagram(y, p)._repr_html_()
    pytest.importorskip("pandas")
    assert list(decision_curve(y, p).to_frame())[:2] == ["threshold", "net_benefit"]
    assert "difference" in murphy_diagram(y, p, compare=p).to_frame()
    assert "difference" not in murphy_diagram(y, p).to_frame()


# Of 300 sets, fewer than 271 hold with probability 1e-3 if 95 % do.
@pytest.mark.slow
def test_bands_hold_the_net_benefit():
    grid, held = np.arange(100) / 100, 0
    positive = (1 - grid**2.5) / 2.5  # of p uniform, P(Y = 1 | p) = p^1.5
    truth = positive - (1 - grid - positive) * grid / (1 - grid)
    for seed in range(300):
        y, p, _ = draw(500, seed + 1)
        curve = decision_curve(y, p)
        held += ((curve.band_low <= truth) & (truth <= curve.band_high)).all()
    assert held >= 271
