"""Repeated outer splits: estimates are medians over the shuffles."""

import naive_estimates as naive
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.model_selection import KFold, RepeatedKFold, ShuffleSplit

from skcal import CalibrationErrorSearchCV, PlugIn, TemperatureScaling, TwoStepKernelRidge, Zero
from skcal.model_selection.estimates import OneStepEstimate, median_of_one_steps

CANDIDATES = [
    (Zero(), {}),
    (TwoStepKernelRidge(), {"alpha": [1e-3, 1e-1]}),
    (PlugIn(TemperatureScaling()), {}),
]


@pytest.fixture
def data(tempered):
    return tempered[0][:240], tempered[1][:240]


def searched(data, candidates=CANDIDATES, weight=None, **parameters):
    parameters = {"cv": 3, "random_state": 0} | parameters
    search = CalibrationErrorSearchCV(candidates, "confidence", **parameters)
    return search.fit(*data, sample_weight=weight)


SINGLE = ShuffleSplit(1, test_size=0.2)


@pytest.mark.parametrize(
    ("outer_cv", "n_splits", "n_tests"), [(None, 3, 240), (SINGLE, 1, 48), (4, 4, 240)]
)
def test_every_repeat_shuffles_anew(data, outer_cv, n_splits, n_tests):
    search = searched(data, CANDIDATES[:1], outer_cv=outer_cv, n_repeats=4)
    tests = {}
    for result in search.outer_results_:
        tests.setdefault(result.outer.repeat, []).append(result.outer.test)
    assert sorted(tests) == [0, 1, 2, 3]
    assert len(search.outer_results_) == 4 * n_splits
    firsts = {tuple(np.sort(parts[0])) for parts in tests.values()}
    assert len(firsts) == 4
    for parts in tests.values():
        joined = np.concatenate(parts)
        assert len(np.unique(joined)) == len(joined) == n_tests
    everyone = np.unique(np.concatenate([np.concatenate(parts) for parts in tests.values()]))
    assert search.n_test_samples_ == len(everyone)


@pytest.mark.parametrize("outer_cv", [None, SINGLE, 2])
def test_the_first_repeat_is_the_search_without_repeats(data, outer_cv):
    once = searched(data, CANDIDATES[:2], outer_cv=outer_cv)
    repeated = searched(data, CANDIDATES[:2], outer_cv=outer_cv, n_repeats=2)
    first = [result for result in repeated.outer_results_ if result.outer.repeat == 0]
    for one, other in zip(once.outer_results_, first, strict=True):
        assert_array_equal(one.outer.test, other.outer.test)
        assert_array_equal(one.plug_ins, other.plug_ins)
        assert_array_equal(one.corrections[0], other.corrections[0])
    one, other = once.cross_fits_[0], repeated.cross_fits_[0]
    assert one.one_step.value == other.one_step.value
    assert one.squared_error.value == other.squared_error.value


@pytest.mark.parametrize(
    ("outer_cv", "n_repeats", "weighted"), [(None, 3, True), (SINGLE, 2, False), (3, 2, True)]
)
def test_estimates_are_the_medians_over_repeats(data, rng, outer_cv, n_repeats, weighted):
    data = data[0][:120], data[1][:120]
    weight = rng.uniform(0.5, 2, 120) if weighted else None
    search = searched(data, outer_cv=outer_cv, n_repeats=n_repeats, weight=weight)
    w = np.ones(120) if weight is None else weight
    plug_ins, values, errors, adaptive = [], [], [], []
    for repeat in range(n_repeats):
        results = [r for r in search.outer_results_ if r.outer.repeat == repeat]
        shares = [w[r.outer.test].sum() for r in results]
        plug_ins.append(np.average([r.plug_ins.mean() for r in results], weights=shares))
        fit = search.cross_fits_[repeat]
        assert len(fit.data.weight) == sum(len(r.outer.test) for r in results)
        _, value, error = naive.one_step(fit.corrections, fit.data)
        values.append(value)
        errors.append(error)
        adaptive.append(naive.adaptive(fit.data, fit.corrections)[2:4])
    assert len(set(values)) == n_repeats
    assert_allclose(search.plug_in_squared_error_, np.median(plug_ins), rtol=1e-12)
    squared, deviations = np.transpose(adaptive)
    assert_allclose(search.squared_error_, np.median(squared), rtol=1e-7)
    spread = np.median(deviations**2 + (squared - np.median(squared)) ** 2)
    assert_allclose(search.standard_error_, np.sqrt(spread), rtol=1e-7)
    assert_allclose(search.rms_calibration_error_, np.sqrt(np.median(squared)), rtol=1e-7)
    limits = [fit.calibrated_up_to for fit in search.cross_fits_]
    assert_allclose(search.calibrated_up_to_, np.sqrt(np.median(limits)), rtol=1e-12)
    middle = np.median(values)
    assert_allclose(search.one_step_squared_error_, middle, rtol=1e-10)
    # Chernozhukov et al. (2018), Definition 3.3.
    expected = np.sqrt(np.median(np.square(errors) + (values - middle) ** 2))
    assert_allclose(search.one_step_standard_error_, expected, rtol=1e-10)
    every = np.concatenate([r.plug_ins for r in search.outer_results_])
    assert_allclose(search.fold_spread_, np.std(every), rtol=1e-12)
    bound = search.lower_confidence_bound()
    assert_allclose(bound, middle - 1.6448536 * expected, rtol=1e-6)


def test_the_median_of_estimates_is_by_hand():
    terms = [np.full(2, k) for k in range(4)]
    estimates = [
        OneStepEstimate(value, error, term)
        for value, error, term in zip(
            [1.0, 4.0, 2.0, 9.0], [0.3, 0.4, 0.1, 2.0], terms, strict=True
        )
    ]
    odd = median_of_one_steps(estimates[:3])
    # Around 2: 0.09 + 1, 0.16 + 4 and 0.01 + 0.
    assert (odd.value, odd.standard_error) == (2.0, pytest.approx(np.sqrt(1.09)))
    assert odd.terms is terms[2]
    even = median_of_one_steps(estimates)
    # Around 3: 0.09 + 4, 0.16 + 1, 0.01 + 1 and 4 + 36.
    assert (even.value, even.standard_error) == (3.0, pytest.approx(np.sqrt((1.16 + 4.09) / 2)))
    assert any(even.terms is terms[k] for k in (1, 2))
    assert median_of_one_steps(estimates[:1]) is estimates[0]
    assert median_of_one_steps([estimates[0], None]) is None
    several = median_of_one_steps([estimates[0]] * 3)
    assert (several.value, several.standard_error) == (1.0, pytest.approx(0.3, rel=1e-15))


@pytest.mark.parametrize(
    "outer_cv",
    [KFold(3), RepeatedKFold(n_splits=2, n_repeats=2), [(np.arange(200), np.arange(200, 240))]],
)
def test_splitters_of_ones_own_are_not_shuffled_anew(data, outer_cv):
    with pytest.raises(ValueError, match=r"^n_repeats=2 shuffles the samples anew, which outer_cv"):
        searched(data, outer_cv=outer_cv, n_repeats=2)
    assert len(searched(data, outer_cv=outer_cv).outer_results_) >= 1
