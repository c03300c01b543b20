"""What CalibrationErrorSearchCV reports comes from samples that no fit and no choice has used."""

import re
from functools import cache

import naive_estimates as naive
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm
from sklearn.model_selection import KFold, ShuffleSplit

from skcal import (
    Binning,
    CalibrationErrorEstimator,
    CalibrationErrorSearchCV,
    KroneckerKernelRidge,
    PlugIn,
    TemperatureScaling,
    TwoStepKernelRidge,
    Zero,
)
from skcal.choice import summaries as summary
from skcal.choice.summaries import as_dict
from skcal.hypothesis_tests import calibration_error_interval, calibration_test
from skcal.model_selection.families import group_families
from skcal.notions import Problems, make_problems, resolve_notion

TRAIN, TEST = np.arange(240), np.arange(240, 300)
CANDIDATES = [
    (Zero(), {}),
    (KroneckerKernelRidge(tol=1e-14), {"alpha": [1e-4, 1e-2]}),
    (TwoStepKernelRidge(tol=1e-14), {"alpha": [1e-4, 1e-2]}),
    (PlugIn(TemperatureScaling()), {}),
]
NO_RESIDUAL = [(KroneckerKernelRidge(), {"alpha": [1e-4, 1e-2]}), (Binning(debias=True), {})]


def searched(data, candidates=CANDIDATES, notion="confidence", weight=None, **parameters):
    parameters = {"cv": KFold(3), "outer_cv": [(TRAIN, TEST)]} | parameters
    search = CalibrationErrorSearchCV(candidates, notion, **parameters)
    return search.fit(*data, sample_weight=weight)


@pytest.fixture(scope="module")
def found(tempered):
    """The search of CANDIDATES under a notion, made once."""
    return cache(lambda notion: searched((tempered[0][:300], tempered[1][:300]), notion=notion))


def fitted(P, y, function, notion, rows, weight=None):
    weight = None if weight is None else weight[rows]
    return CalibrationErrorEstimator(function, notion).fit(P[rows], y[rows], weight)


def mean_corrections(fits, data):
    """Mean of the residuals that fits estimate, of each problem."""
    return [
        np.mean([fit.functions_[k].residual(part.features) for fit in fits], axis=0)
        for k, part in enumerate(data.parts)
    ]


@pytest.mark.parametrize(
    ("notion", "weighted"),
    [("canonical", True), ("confidence", False), ("classwise", True), ("top-label", True)],
)
def test_estimates_are_means_over_fold_models_of_the_best_function_and_the_best_with_residual(
    data, rng, notion, weighted
):
    weight = rng.uniform(0.5, 2, size=300) if weighted else None
    search = searched(data, notion=notion, weight=weight)
    families = [family for family in search.families_ if family.name != "KroneckerKernelRidge"]
    best = max(families, key=lambda family: family.scores.max())
    assert type(search.one_step_function_) is type(best.best_function)
    P, y = data
    folds = [
        fitted(P, y, best.best_function, notion, fold, weight) for fold, _ in KFold(3).split(TRAIN)
    ]
    w = np.ones(60) if weight is None else weight[TEST]
    plug_ins = [
        np.average(
            fitted(P, y, search.best_function_, notion, fold, weight).predict(P[TEST]), weights=w
        )
        for fold, _ in KFold(3).split(TRAIN)
    ]
    assert_allclose(search.plug_in_squared_error_, np.mean(plug_ins), rtol=1e-10)
    assert_allclose(search.fold_spread_, np.std(plug_ins), rtol=1e-6)
    assert search.n_test_samples_ == len(TEST)
    tested = Problems(make_problems(P[TEST], y[TEST], resolve_notion(notion, P), w), w)
    corrections = mean_corrections(folds, tested)
    terms, value, error = naive.one_step(corrections, tested)
    assert_allclose(search.one_step_.terms, terms, rtol=1e-8, atol=1e-12)
    assert_allclose(search.one_step_squared_error_, value, rtol=1e-8)
    assert_allclose(search.one_step_standard_error_, error, rtol=1e-8)
    _, unshrunk, squared_error, standard_error, _ = naive.adaptive(tested, corrections)
    assert_allclose(search.cross_fits_[0].squared_error.unshrunk, unshrunk, rtol=1e-7, atol=1e-12)
    assert_allclose(search.squared_error_, squared_error, rtol=1e-7, atol=1e-12)
    assert_allclose(search.rms_calibration_error_**2, max(squared_error, 0), rtol=1e-7, atol=1e-12)
    assert_allclose(search.standard_error_, standard_error, rtol=1e-7)
    low, high = value + norm.ppf([0.05, 0.95]) * error
    limits = search.confidence_interval(confidence_level=0.9)
    interval = [min(low, squared_error), max(high, squared_error)]
    assert_allclose(limits, interval, rtol=1e-8, atol=1e-12)
    assert_allclose([limits.low, limits.high], limits)
    assert_allclose(search.one_step_.pvalue, norm.sf(value / error))
    for level in (0.01, 0.3, 0.9):
        assert search.lower_confidence_bound(level) <= search.squared_error_
        low, high = search.confidence_interval(level)
        assert low <= search.squared_error_ <= high
    # One-sided at 95 % and two-sided at 90 % have the same quantile.
    assert_allclose(search.lower_confidence_bound(confidence_level=0.95), limits.low, rtol=1e-10)


def test_without_a_residual_there_is_no_one_step_estimate_and_the_summary_says_so(data):
    search = searched(data, NO_RESIDUAL)
    assert search.one_step_function_ is None
    assert search.one_step_squared_error_ is None
    assert search.one_step_standard_error_ is None
    for method in (search.confidence_interval, search.lower_confidence_bound):
        with pytest.raises(ValueError, match="no candidate has `residual`"):
            method()
    assert "one-step                none: no candidate estimates the residual" in search.summary()


def test_the_one_step_estimate_rests_on_the_best_setting_with_residual(data):
    outer_cv = KFold(2)
    candidates = [(Binning(), {"n_bins": [20, 40], "debias": [True, False]})]
    search = searched(data, candidates, outer_cv=outer_cv)
    assert search.best_params_["function__debias"]
    plain = searched(data, [(Binning(), {"n_bins": [20, 40]})], outer_cv=outer_cv)
    assert not search.one_step_function_.debias
    assert search.one_step_squared_error_ == plain.one_step_squared_error_
    assert ", by Binning" in search.summary()


@pytest.mark.parametrize("level", [0, 1, 95])
def test_confidence_levels_are_fractions(found, level):
    search = found("confidence")
    for method in (search.confidence_interval, search.lower_confidence_bound):
        with pytest.raises(
            ValueError, match=r"confidence_level.* a float in the range \(0.0, 1.0\)"
        ):
            method(level)


def test_one_test_sample_is_too_few_for_a_bound(data):
    search = searched(data, outer_cv=[(TRAIN, [250])])
    with pytest.raises(ValueError, match="at least 2 test samples"):
        search.lower_confidence_bound()
    assert f"{search.squared_error_:.6f}" in search.summary()


def test_outer_folds_test_every_sample_once_in_a_whole_search_each(data, rng):
    notion, w = "canonical", rng.uniform(0.5, 2, size=300)
    P, _ = data
    search = searched(data, notion=notion, weight=w, outer_cv=KFold(3))
    tested = np.concatenate([result.outer.test for result in search.outer_results_])
    assert_array_equal(np.sort(tested), np.arange(300))
    assert search.n_test_samples_ == 300
    terms, plug_ins = np.zeros(300), []
    for train, test in KFold(3).split(P):
        # Nothing of the test samples enters: the same search on the training samples alone.
        one = searched(data, notion=notion, weight=w, outer_cv=[(train, test)])
        plug_ins.append(one.plug_in_squared_error_)
        terms[test] = one.one_step_.terms
    shares = [w[test].sum() for _, test in KFold(3).split(P)]
    mean = np.average(plug_ins, weights=shares)
    assert_allclose(search.plug_in_squared_error_, mean, rtol=1e-10)
    mean = np.average(terms, weights=w)
    assert_allclose(search.one_step_squared_error_, mean, rtol=1e-9)
    share = w / w.sum()
    variance = np.sum(share**2 * (terms - mean) ** 2) / (1 - np.sum(share**2))
    assert search.one_step_standard_error_ >= np.sqrt(variance) * (1 - 1e-9)  # the guard may raise
    [fit] = search.cross_fits_
    guarded = naive.one_step(fit.corrections, fit.data)[2]
    assert_allclose(search.one_step_standard_error_, guarded, rtol=1e-9)


def test_with_outer_folds_the_choice_is_made_on_all_samples(data):
    P, y = data
    search = searched(data, outer_cv=KFold(3))
    one_more = np.vstack([P, P[:1]]), np.append(y, y[0])
    alone = searched(one_more, outer_cv=[(np.arange(300), [300])])
    key = "mean_test_score"
    assert_array_equal(search.cv_results_[key], alone.cv_results_[key])
    assert_array_equal(search.predict(P), alone.predict(P))
    assert len(search.outer_results_) == 3
    assert len(search.estimators_) == 3


def test_a_sample_tested_twice_counts_once_by_its_mean_correction(data):
    P, _ = data
    splits = list(ShuffleSplit(2, test_size=100, random_state=0).split(P))
    assert len(np.intersect1d(splits[0][1], splits[1][1])) > 10
    search = searched(data, outer_cv=splits)
    tested = np.union1d(splits[0][1], splits[1][1])
    total, count = np.zeros(300), np.zeros(300)
    for pair in splits:
        [one] = searched(data, outer_cv=[pair]).outer_results_
        total[pair[1]] += one.corrections[0][:, 0]
        count[pair[1]] += 1
    correction = (total / np.maximum(count, 1))[tested]
    delta = (P.argmax(axis=1) == data[1])[tested] - P.max(axis=1)[tested]
    terms = correction * (2 * delta - correction)
    assert_allclose(search.one_step_.terms, terms, rtol=1e-9, atol=1e-12)
    assert_allclose(search.one_step_squared_error_, np.mean(terms), rtol=1e-9)
    assert search.n_test_samples_ == len(search.one_step_.terms) == len(tested)


def test_test_samples_do_not_enter_the_choice(data, found, rng):
    (P, y), search = data, found("confidence")
    other = np.append(y[TRAIN], rng.permutation(y[TEST]))
    changed = searched((P, other))
    key = "mean_test_score"
    assert_array_equal(changed.cv_results_[key], search.cv_results_[key])
    assert_array_equal(changed.predict(P), search.predict(P))
    assert changed.plug_in_squared_error_ == search.plug_in_squared_error_
    assert changed.squared_error_ != search.squared_error_
    assert changed.one_step_squared_error_ != search.one_step_squared_error_


def test_a_negative_squared_error_keeps_its_sign_and_has_root_0_with_a_warning():
    """Predicted is 0.1; 0.2 of the training samples are positive, of the test samples 1 / 12."""
    P = np.full(300, 0.1)
    y = np.where(np.arange(300) < 240, np.arange(300) % 5 == 0, np.arange(300) % 12 == 0)
    with pytest.warns(UserWarning, match=r"estimated as -0.00102; its root is reported as 0"):
        search = searched((P, y.astype(int)), [Binning(1)], "binary")
    # Of 60 test samples 5 have the residual 0.9 and 55 have -0.1, which sum to -1.
    assert_allclose(search.squared_error_, (1 - 5 * 0.81 - 55 * 0.01) / (60 * 59), rtol=1e-12)
    assert search.rms_calibration_error_ == 0
    assert_allclose(search.plug_in_squared_error_, 0.01, rtol=0.05)
    assert "0.0000   (its square is estimated as -" in search.summary()


def test_verbose_prints_a_line_per_candidate_and_outer_split(data, capsys):
    searched(data, CANDIDATES[:1], verbose=0)
    assert capsys.readouterr().out == ""
    search = searched(data, verbose=1, outer_cv=KFold(2))
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3 * len(CANDIDATES)  # two outer folds and all samples
    last, names = lines[-len(CANDIDATES) :], [family.name for family in search.families_]
    for k, (line, family) in enumerate(zip(last, search.families_, strict=True)):
        start = f"[CalibrationErrorSearchCV] {k + 1} of {len(CANDIDATES)}, {family.name}: "
        assert line.startswith(f"{start}{len(family.settings)} setting(s), 3 folds")
        told, _, following = line.partition("; next ")
        assert told.endswith(f"lowest risk {-family.scores.max():.9g}")
        assert not following or following in names[k + 1 :]
    assert sum("; next " in line for line in last) == len(group_families(search.families_)) - 1


@pytest.mark.parametrize("notion", ["canonical", "confidence"])
def test_summary_names_every_candidate_its_risk_and_the_choice(found, notion):
    search = found(notion)
    text = search.summary()
    rows = text.splitlines()[3 : 3 + len(CANDIDATES)]
    for row, family in zip(rows, search.families_, strict=True):
        assert row[2:].startswith(family.name)
        assert f"{-family.scores.max():.7f}" in row
        assert row.startswith("* ") == (family is search.best_family_)
    assert text.startswith(f"{notion} calibration of 300 predictions, 4 classes")
    assert f"chosen: {search.best_family_.name}, which has the lowest risk" in text
    assert f"{search.rms_calibration_error_:.4f}" in text
    assert f"± {search.standard_error_:.6f} (s.e.)\n" in text
    assert f"{search.one_step_squared_error_:.6f} ± {search.one_step_standard_error_:.6f}" in text
    assert "one-step test" not in text  # calibration_test alone decides whether there is an error
    assert search.simplest_family_.name in ("Zero", search.best_family_.name) or (
        f"{search.simplest_family_.name} is simpler, and its risk is not significantly higher"
        in text
    )


def summary_of(monkeypatch, search, one_step, **changes):
    """The summary with other numbers."""
    facts = as_dict(search)
    changed = facts | changes | {"one_step": facts["one_step"] | one_step}
    monkeypatch.setattr("skcal.choice.summaries.as_dict", lambda _: changed)
    return search.summary()


def test_the_choice_says_nothing_of_zero_which_is_for_tests_of_calibration(found, monkeypatch):
    search = found("confidence")
    assert "Zero is simpler" not in summary_of(monkeypatch, search, {}, simplest_not_worse="Zero")
    assert "PlugIn is simpler" in summary_of(monkeypatch, search, {}, simplest_not_worse="PlugIn")


def test_small_numbers_of_the_summary_keep_their_digits(found, monkeypatch):
    text = summary_of(
        monkeypatch,
        found("confidence"),
        {"standard_error": 1.236e-6, "lower_confidence_bound": 0.25},
        squared_error=4.016e-7,
        plug_in_squared_error=4.016e-7,
        fold_spread=5.5e-8,
    )
    assert "RMS calibration error   6.3e-04   root of 4.0e-07 ± " in text
    assert "plug-in                 6.3e-04   root of 4.0e-07; " in text
    assert "spread by 5.5e-08" in text
    assert "± 1.2e-06 (s.e.)" in text


@pytest.mark.parametrize(
    ("bound", "low", "pvalue", "reading"),
    [
        (None, 0.0, 0.5, None),
        (-1e-9, 0.0, 0.04, None),
        (4e-4, 0.0, 0.2, None),  # calibration_test decides whether there is an error
        (4e-4, 0.01, 0.04, "0.0200   root of 0.000400: the RMS error is at least this (95 %"),
        (4e-4, 0.03, 0.04, "0.0300   that of the calibration error"),  # a mean is below its RMS
    ],
)
def test_a_lower_bound_is_shown_where_the_verdict_is_significant(bound, low, pvalue, reading):
    facts = {
        "one_step": {"lower_confidence_bound": bound},
        "pvalue": pvalue,
        "calibration_error": {"low": low},
    }
    shown = [text for _, text in summary._lower_bound(facts)]
    assert len(shown) == (reading is not None)
    assert all(text.startswith(reading) for text in shown)


def test_the_summary_opens_with_the_headline_and_the_verdict_of_the_test(found):
    search = found("confidence")
    test, error = search.verdict()
    sample = search._sample
    given = sample.y_true, sample.proba
    assert test.pvalue == calibration_test(*given, random_state=0).pvalue
    assert error == calibration_error_interval(*given)
    assert f"calibration error       {error.sentence().split(' error ')[1]}\n" in search.summary()
    assert re.search(r"^verdict +(no evidence|significantly)", search.summary(), re.MULTILINE)
    assert found("canonical").verdict()[1] is None
    assert not re.search("^calibration error", found("canonical").summary(), re.MULTILINE)


@pytest.mark.parametrize(
    ("squared", "shown"),
    [(-1e-4, "its square is estimated as -0.000100"), (0.0, "root of 0"), (0.04, "0.2000")],
)
def test_roots_of_negative_squares_are_0_and_say_so(squared, shown):
    assert shown in summary._root_of(squared)
