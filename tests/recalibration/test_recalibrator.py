"""The recalibrator: its choice, its judgement and what it predicts."""

import json
import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit, logit, softmax
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.pipeline import make_pipeline

from skcal import Recalibrator, TemperatureScaling
from skcal._folds import absent_class, shuffled_folds
from skcal._groups import INDEPENDENT, read_groups
from skcal._scores import log_losses, of_outcomes
from skcal._show import about
from skcal.datasets import make_tempered
from skcal.hypothesis_tests import calibration_error_interval
from skcal.recalibration import Identity, LogProbabilities, MatrixScaling, Mixture, VectorScaling
from skcal.recalibration.mixture import mixture_weights

FEW = [TemperatureScaling(), (VectorScaling(), {"C": [0.01, 0.1]})]


def tempered(n_samples=600, temperature=2.0, n_classes=3, seed=0):
    data = make_tempered(
        n_samples, n_classes=n_classes, temperature=temperature, n_truth_draws=0, random_state=seed
    )
    return data.proba, data.labels


def with_random_labels(n_samples, seed=0, share=0.4):
    """Predictions that are far too sharp, and labels of which a share is drawn at random."""
    P, y = tempered(n_samples, 4.0, seed=seed)
    rng = np.random.default_rng(seed)
    return P, np.where(rng.random(n_samples) < share, rng.integers(0, 3, n_samples), y)


def mean_log_loss(proba, y):
    return of_outcomes(log_losses(proba), y).mean()


def test_one_candidate_without_a_choice_is_that_map_mixed_with_uniform_probabilities():
    P, y = tempered()
    found = Recalibrator([TemperatureScaling()], do_no_harm=False).fit(P, y).predict_proba(P)
    expected = TemperatureScaling().fit(P, y).predict_proba(P)
    assert_allclose(found, (600 * expected + 1 / 3) / 601, rtol=1e-12)


def test_out_of_fold_losses_are_those_of_maps_fitted_to_the_other_folds():
    P, y = tempered()
    cv = KFold(4, shuffle=True, random_state=1)
    fitted = Recalibrator([TemperatureScaling()], cv=cv).fit(P, y)
    expected = np.empty_like(P)
    for train, test in cv.split(P):
        own = TemperatureScaling().fit(P[train], y[train]).predict_proba(P[test])
        expected[test] = (len(train) * own + 1 / 3) / (len(train) + 1)
    assert_allclose(fitted.cross_fit_predict_proba(P), expected, rtol=1e-12)
    assert fitted.comparison_["log_loss"].after == pytest.approx(mean_log_loss(expected, y))
    assert fitted.comparison_["log_loss"].before == pytest.approx(mean_log_loss(P, y))
    assert fitted.best_score_ == pytest.approx(-mean_log_loss(expected, y), rel=1e-3)


def test_miscalibrated_predictions_are_mended_and_it_is_said():
    P, y = tempered(1200)
    fitted = Recalibrator(cv=3, random_state=0).fit(P[:600], y[:600])
    assert fitted.best_name_ != "Identity"
    assert mean_log_loss(fitted.predict_proba(P[600:]), y[600:]) < mean_log_loss(P[600:], y[600:])
    won = fitted.comparison_["log_loss"]
    assert won.difference > 0
    assert won.pvalue < 0.01
    text = fitted.summary()
    simplest = fitted.simplest_name_
    assert (f"{simplest} is simpler" in text) == (simplest != fitted.best_name_)
    assert f"* {fitted.best_name_}" in text
    assert "log loss" in text


def test_calibrated_predictions_stay_as_they_are():
    kept = 0
    for seed in range(20):
        P, y = tempered(120, temperature=1.0, seed=seed)
        fitted = Recalibrator([TemperatureScaling()], cv=3, random_state=0).fit(P, y)
        kept += fitted.best_name_ == "Identity"
        if fitted.best_name_ == "Identity":
            assert_array_equal(fitted.predict_proba(P), P)
            unchanged = fitted
    assert "as they are" in unchanged.summary()
    # The level is 5 %: of 20, less than 15 with probability 3e-4.
    assert kept >= 15


def test_the_identity_is_always_among_the_candidates_and_first():
    P, y = tempered(100)
    fitted = Recalibrator([TemperatureScaling(), Identity()]).fit(P, y)
    assert fitted.names_ == ["Identity", "TemperatureScaling"]
    assert fitted.comparisons_[fitted.names_.index(fitted.best_name_)].difference == 0


@pytest.mark.parametrize("loss", ["log_loss", "brier_score"])
def test_results_have_the_form_of_a_grid_search_by_either_score(loss):
    P, y = tempered(200)
    fitted = Recalibrator(FEW, cv=3, scoring=f"neg_{loss}", random_state=0).fit(P, y)
    results = fitted.cv_results_
    assert [type(one["map"]) for one in results["params"]] == [
        Identity,
        TemperatureScaling,
        VectorScaling,
        VectorScaling,
        Mixture,
    ]
    assert results["params"][2]["map__C"] == 0.01
    assert results["params"][fitted.best_index_] == fitted.best_params_
    splits = np.stack([results[f"split{k}_test_score"] for k in range(3)])
    assert_allclose(splits.mean(axis=0), results["mean_test_score"], rtol=0.02)
    assert results["rank_test_score"].min() == 1
    assert fitted.names_[-1] == "Mixture"
    assert fitted.best_score_ == results["mean_test_score"][fitted.best_index_]
    assert -fitted.best_score_ == pytest.approx(fitted.comparison_[loss].after, rel=0.05)


@pytest.mark.filterwarnings("ignore:All predictions in")
def test_an_infinite_loss_is_left_and_said():
    P, y = tempered(400, n_classes=2)
    P = np.round(P[:, 1])
    fitted = Recalibrator(cv=3, random_state=0).fit(P, y)
    assert fitted.best_name_ != "Identity"
    assert np.isinf(fitted.comparison_["log_loss"].before)
    assert "infinite" in fitted.summary()
    assert fitted.predict_proba(P).min() > 0


# Cross-fitted predictions


def test_cross_fitted_predictions_are_aligned_and_by_maps_without_the_sample_and_its_group():
    P, y = tempered(600)
    groups = np.arange(600) // 4
    for together in (None, groups):
        fitted = Recalibrator([TemperatureScaling()], max_samples=150, random_state=0)
        fitted.fit(P, y, groups=together)
        # The choice rests on 150 samples, and the fit on all.
        assert fitted.n_samples_ == 600
        assert fitted.best_estimator_.temperature_ == TemperatureScaling().fit(P, y).temperature_
        proba = fitted.cross_fit_predict_proba(P)
        assert proba.shape == (600, 3)
        codes = np.arange(600) if together is None else together
        judged = np.concatenate([one.test for one in fitted._cross_fits])
        assert len(judged) == 150
        for one in fitted._cross_fits:
            trained = np.setdiff1d(judged, one.test)
            rows = np.concatenate([one.test, one.others])
            assert not set(codes[trained]) & set(codes[rows])
            expected = TemperatureScaling().fit(P[trained], y[trained]).predict_proba(P[rows])
            n = len(trained)
            assert_allclose(proba[rows], (n * expected + 1 / 3) / (n + 1), rtol=1e-6)


def test_cross_fitted_predictions_of_other_rows_and_of_rows_without_a_map_are_refused():
    P, y = tempered(60)
    fitted = Recalibrator([TemperatureScaling()], cv=3, random_state=0).fit(P, y)
    with pytest.raises(ValueError, match="X has 59 rows, but 60 were passed to fit"):
        fitted.cross_fit_predict_proba(P[:59])
    once = [(np.arange(40), np.arange(40, 60))]
    fitted = Recalibrator([TemperatureScaling()], cv=once, random_state=0).fit(P, y)
    with pytest.raises(ValueError, match="X row 0 took part in every fit: cv never tests it"):
        fitted.cross_fit_predict_proba(P)


# Sentences


class Inverted(TemperatureScaling):
    """A harmful map."""

    def predict_proba(self, X):
        return super().predict_proba(X)[:, ::-1]


def test_a_significantly_harmful_map_is_left_out_or_warned_of():
    P, y = tempered(300)
    with pytest.warns(UserWarning, match="makes the predictions worse.*log loss rises by"):
        Recalibrator([Inverted()], do_no_harm=False).fit(P, y)
    fitted = Recalibrator([Inverted()]).fit(P, y)
    assert fitted.best_name_ == "Identity"


@pytest.mark.parametrize("seed", range(4))
def test_what_is_said_of_the_simplest_map_agrees_with_its_pvalue(seed):
    P, y = tempered(100, temperature=1.3, seed=seed)
    fitted = Recalibrator(FEW, cv=3, do_no_harm=False, random_state=0).fit(P, y)
    gap = fitted.comparisons_[fitted.names_.index(fitted.simplest_name_)]
    [said] = [line for line in fitted.summary().splitlines() if "simpler" in line] or [""]
    if fitted.simplest_name_ == fitted.best_name_:
        assert not said
        return
    assert said.endswith(f"(p = {gap.pvalue:.2g}).")
    assert ("not significantly" in said) == (gap.pvalue > 0.05)
    assert ("higher" in said) == (gap.difference > 0)


@pytest.mark.parametrize("call", ["predict", "predict_proba", "transform", "score", "summary"])
def test_an_unfitted_recalibrator_says_so(call):
    arguments = {"summary": (), "score": ([0.1], [1])}.get(call, ([0.1],))
    with pytest.raises(NotFittedError):
        getattr(Recalibrator(), call)(*arguments)


# Predictions


def test_single_probabilities_columns_and_two_columns_are_one():
    P, y = tempered(300, n_classes=2)
    options = {"random_state": 0, "candidates": [TemperatureScaling()]}
    single = Recalibrator(**options).fit(P[:, 1], y)
    column = Recalibrator(**options).fit(P[:, 1:], y)
    both = Recalibrator(**options).fit(P, y)
    assert single.n_features_in_ == 1
    expected = both.predict_proba(P)
    assert expected.shape == (300, 2)
    assert_allclose(single.predict_proba(P[:, 1]), expected, atol=1e-9)
    assert_allclose(column.predict_proba(P[:, 1:]), expected, atol=1e-9)
    logits = np.log(P[:, 1] / P[:, 0])
    of_logits = Recalibrator(**options, from_logits=True).fit(logits, y)
    assert_allclose(of_logits.predict_proba(logits), expected, atol=1e-9)


def test_labels_of_any_type_name_the_columns():
    P, y = tempered(150)
    names, one = np.array(["cat", "dog", "eel"]), [TemperatureScaling()]
    fitted = Recalibrator(one, cv=3, random_state=0).fit(P, names[y])
    assert_array_equal(fitted.classes_, names)
    assert set(fitted.predict(P)) <= set(names)
    plain = Recalibrator(one, cv=3, random_state=0).fit(P, y)
    assert_array_equal(fitted.transform(P), plain.predict_proba(P))
    frame = pd.DataFrame(P[:, [2, 0, 1]], columns=names[[2, 0, 1]])
    swapped = Recalibrator(one, cv=3, random_state=0).fit(frame, names[y])
    assert_array_equal(swapped.classes_, names[[2, 0, 1]])
    given = Recalibrator(one, cv=3, labels=names[::-1], random_state=0).fit(P[:, ::-1], names[y])
    assert_allclose(given.predict_proba(P[:, ::-1])[:, ::-1], plain.predict_proba(P), atol=1e-6)


def test_logits_are_used_as_they_are():
    P, y = tempered(400)
    P = (P + 1e-6) / (1 + 3e-6)
    logits = 10 * np.log(P)  # their softmax underflows
    fitted = Recalibrator(cv=3, random_state=0, from_logits=True).fit(logits, y)
    mild = Recalibrator([TemperatureScaling()], cv=3, random_state=0).fit(P, y)
    temperature = Recalibrator([TemperatureScaling()], from_logits=True, random_state=0)
    temperature.fit(logits, y)
    scale = temperature.best_estimator_.temperature_ / mild.best_estimator_.temperature_
    assert scale == pytest.approx(10, rel=1e-6)
    assert_allclose(temperature.predict_proba(logits), mild.predict_proba(P), rtol=1e-6)
    assert fitted.comparison_["log_loss"].difference > 1
    assert_allclose(fitted.out_of_fold_.before, softmax(logits, axis=1))


def test_any_classifier_of_probabilities_is_a_candidate():
    P, y = tempered(300)
    own = make_pipeline(LogProbabilities(), LogisticRegression())
    fitted = Recalibrator([own], do_no_harm=False, mix=False, random_state=0)
    weight = np.arange(300) % 3
    fitted.fit(P, y, weight)
    expected = clone(own).fit(P, y, logisticregression__sample_weight=weight).predict_proba(P)
    assert_allclose(fitted.predict_proba(P), (300 * expected + 1 / 3) / 301, rtol=1e-9)
    assert (fitted.n_samples_, fitted.n_rows_) == (200, 300)


def test_weight_zero_removes_a_sample():
    P, y = tempered(300)
    weight = np.ones(300)
    weight[200:] = 0
    splits = list(KFold(5).split(P[:200]))
    weighted = Recalibrator(FEW, cv=splits, random_state=0).fit(P, y, weight)
    alone = Recalibrator(FEW, cv=splits, random_state=0).fit(P[:200], y[:200])
    assert_allclose(weighted.predict_proba(P), alone.predict_proba(P), atol=1e-9)
    assert weighted.n_samples_ == 200


# Errors


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"candidates": [IsotonicRegression()]}, r"candidates\[0\] is IsotonicRegression.*has fit"),
        ({"candidates": [(TemperatureScaling(), {"D": [1]})]}, r"candidates\[0\], Temperature"),
        ({"cv": [([0, 1], [2, 3]), ([0, 1], [3, 4])]}, "cv tests sample 3 2 times"),
        ({"cv": [([], [2, 3])]}, "leaves no sample in a part of split 0"),
        (
            {"candidates": [LogisticRegression()], "from_logits": True},
            "LogisticRegression, has no from_logits",
        ),
        ({"scoring": "accuracy"}, "scoring"),
    ],
)
def test_impossible_options_raise(options, message):
    P, y = tempered(50)
    X = np.log(P) if "from_logits" in options else P
    with pytest.raises(ValueError, match=message):
        Recalibrator(**options).fit(X, y)


def test_impossible_predictions_raise():
    with pytest.raises(ValueError, match=r"X row 1 sums to 1\.1"):
        Recalibrator().fit([[0.5, 0.5], [0.6, 0.5]], [0, 1])
    with pytest.raises(ValueError, match="n_samples=1"):
        Recalibrator().fit([[0.5, 0.5]], [0])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The chosen map makes the predictions worse")
def test_the_choice_is_hardly_optimistic():
    """What ``comparison_`` says is what other samples show, also of calibrated predictions."""
    said, shown = [], []
    for seed in range(60):
        P, y = tempered(5300, temperature=1.0 + 0.2 * (seed % 2), seed=seed)
        candidates = [
            TemperatureScaling(),
            (MatrixScaling(structured=True), {"C": [0.01, 0.1, 1, 10]}),
        ]
        fitted = Recalibrator(candidates, do_no_harm=False, random_state=0).fit(P[:300], y[:300])
        said.append(fitted.comparison_["log_loss"].difference)
        after = fitted.predict_proba(P[300:])
        shown.append(mean_log_loss(P[300:], y[300:]) - mean_log_loss(after, y[300:]))
    gap = np.array(said) - shown
    # Four fifths of the samples teach the maps that are judged.
    assert gap.mean() < 2 * gap.std() / np.sqrt(60)


# Maps of one's own


class OneDimensional(TemperatureScaling):
    def predict_proba(self, X):
        return super().predict_proba(X)[:, 1]


class WithoutWeights(TemperatureScaling):
    def fit(self, X, y):
        return super().fit(X, y)


def test_what_is_wrong_with_a_map_of_ones_own_is_said():
    P, y = tempered(100)
    with pytest.raises(ValueError, match=r"OneDimensional.predict_proba returned .* shape \(20,\)"):
        Recalibrator([OneDimensional()]).fit(P, y)
    fitted = Recalibrator([WithoutWeights()], do_no_harm=False, random_state=0).fit(P, y)
    assert fitted.predict_proba(P).shape == (100, 3)
    with pytest.raises(ValueError, match=r"sample_weight varies, and WithoutWeights\.fit does"):
        Recalibrator([WithoutWeights()]).fit(P, y, np.arange(1, 101))


# Many classes


@pytest.mark.parametrize(("mix", "slack"), [(True, 1.0), (False, 0.1)])
@pytest.mark.parametrize("share", [0, 0.4])
def test_the_first_map_that_is_not_clearly_worse_than_the_best_is_chosen(share, mix, slack):
    chosen = set()
    for seed in range(4):
        fitted = Recalibrator(FEW, cv=3, mix=mix, do_no_harm=False, random_state=0)
        fitted.fit(*with_random_labels(300, seed, share))
        means = [gap.before for gap in fitted.comparisons_]
        best = 1 + int(np.argmin(means[1:]))
        place = fitted.names_.index(fitted.best_name_)
        chosen.add(fitted.best_name_)
        if place == best:  # the differences of all that come before it are known
            gaps = fitted.comparisons_[1:place]
            assert all(gap.difference > slack * gap.standard_error for gap in gaps)
        else:
            gap = fitted.comparisons_[best]
            assert -gap.difference <= slack * gap.standard_error
    assert chosen & {"TemperatureScaling", "Mixture"}


@pytest.mark.parametrize(("share", "n_classes"), [(0, 12), (0.1, 12), (0, 101), (0.1, 101)])
def test_several_classes_get_the_simple_map_that_is_right(share, n_classes):
    rng = np.random.default_rng(0)
    z = 4 * rng.normal(size=(1000, n_classes))
    chance = (1 - share) * softmax(z, axis=1) + share / n_classes
    y = (chance.cumsum(axis=1) > rng.random((1000, 1))).argmax(axis=1)
    fitted = Recalibrator(cv=3, from_logits=True, random_state=0).fit(1.3 * z, y)
    right = {"EnsembleTemperatureScaling"} | ({"TemperatureScaling"} if share == 0 else set())
    assert fitted.best_name_ in right < set(fitted.names_)


def test_the_mixture_of_many_classes_ends_with_a_temperature_of_cross_fitted_means():
    P, y = with_random_labels(600)
    cv = KFold(3, shuffle=True, random_state=0)
    fitted = Recalibrator(FEW, cv=cv).fit(P, y)
    mixture = fitted.best_estimator_
    assert isinstance(mixture, Mixture)
    text = fitted.summary()
    assert text.count("weights") == 1
    for share in fitted._shares.values():
        assert f"{100 * share:.0f} %" in text
    means = np.empty_like(P)
    for train, test in cv.split(P):  # by weights of the other folds
        weights = {}
        for other, held in cv.split(P):
            if set(held) == set(test):
                continue
            for name, one in enumerate(maps_of_few()):
                proba = one.fit(P[other], y[other]).predict_proba(P[held])
                proba = mixed_in(proba, name, len(other))
                of_labels = proba[np.arange(len(held)), y[held]]
                weights.setdefault(name, []).append(-np.log(of_labels))
        columns = np.stack([np.concatenate(weights[name]) for name in range(4)], axis=1)
        share = mixture_weights(columns, np.ones(len(columns)))
        maps = maps_of_few()
        means[test] = sum(
            weight * one.fit(P[train], y[train]).predict_proba(P[test])
            for weight, one in zip(share, maps, strict=True)
        )
    expected = TemperatureScaling().fit(means, y).temperature_
    assert mixture.temperature == pytest.approx(expected, rel=1e-5)
    plain = Mixture(mixture.estimators, mixture.weights).fit(P, y).predict_proba(P)
    tempered_means = softmax(np.log(plain) / mixture.temperature, axis=1)
    assert_allclose(mixture.predict_proba(P), tempered_means)
    alone = [fitted.predict_proba(row)[0] for row in P[:3, None]]
    assert_allclose(alone, fitted.predict_proba(P)[:3])


def maps_of_few():
    return [Identity(), TemperatureScaling(), VectorScaling(C=0.01), VectorScaling(C=0.1)]


def mixed_in(proba, name, n):
    return proba if name == 0 else (n * proba + 1 / 3) / (n + 1)


def test_classes_are_kept_if_asked_for():
    P, y = tempered(300)
    fitted = Recalibrator(preserve_classes=True, cv=3, random_state=0).fit(P, y)
    assert fitted.best_name_ != "Identity"
    order = fitted.predict_proba(P).argsort(axis=1, kind="stable")
    assert_array_equal(order, P.argsort(axis=1, kind="stable"))
    with pytest.raises(ValueError, match=r"candidates\[1\] is VectorScaling, which can change"):
        Recalibrator(FEW, preserve_classes=True).fit(P, y)
    with pytest.raises(ValueError, match="monotone=False belongs to the default candidates"):
        Recalibrator(FEW, monotone=False).fit(P, y)
    for model, columns in [
        (Recalibrator(monotone=False), P),
        (Recalibrator(monotone=False, preserve_classes=True), P[:, 1]),
    ]:
        with pytest.raises(ValueError, match="monotone=False belongs to the default map of two"):
            model.fit(columns, np.minimum(y, np.ndim(columns)))


# The error that is left


def test_the_error_that_is_left_is_that_of_cross_fitted_predictions():
    P, y = tempered(60, n_classes=2)
    groups = np.arange(60) // 2
    fitted = Recalibrator([TemperatureScaling()], do_no_harm=False, random_state=0)
    fitted.fit(P, y, groups=groups)
    proba = fitted.cross_fit_predict_proba(P)
    expected = calibration_error_interval(y, proba, groups=groups)
    assert vars(fitted.remaining_error()) == vars(expected)
    before = calibration_error_interval(y, P, groups=groups, notion="classwise")
    assert vars(fitted.initial_error("classwise")) == vars(before)
    text = " ".join(fitted.summary().split())
    after = f"calibration error after {about(expected.estimate, expected.high)} "
    assert f"{after}(at most {expected.high:.3f} with 95 % confidence); this limit is above" in text
    assert f"accuracy {(P.argmax(axis=1) == y).mean():.4f} before" in text
    assert "predicted classes 0 % of the samples change theirs" in text


def test_shares_have_an_error_and_an_accuracy():
    P, y = tempered(60)
    shares = 0.8 * np.eye(3)[y] + 0.2 / 3
    fitted = Recalibrator([TemperatureScaling()], random_state=0).fit(P, shares)
    assert 0 <= fitted.remaining_error().estimate < 1
    right = shares[np.arange(60), P.argmax(axis=1)].mean()
    assert f"{right:.4f} before" in fitted.summary()


def test_without_out_of_fold_predictions_no_error_is_estimated():
    P, y = tempered(200)
    fitted = Recalibrator([TemperatureScaling()], store_out_of_fold=False).fit(P, y)
    with pytest.raises(ValueError, match="Fit with store_out_of_fold=True"):
        fitted.remaining_error()
    assert "calibration error" not in fitted.summary()
    assert not hasattr(Recalibrator.from_json(fitted.to_json()), "out_of_fold_")


# JSON


@pytest.mark.parametrize(
    ("n_classes", "from_logits", "temperature"),
    [(1, False, 2.0), (2, True, 2.0), (4, False, 2.0), (4, True, 2.0), (4, False, 1.0)],
)
def test_what_is_read_from_json_predicts_the_same(n_classes, from_logits, temperature):
    P, y = tempered(300, temperature, max(n_classes, 2))
    P[0], names = np.eye(len(P[0]))[0], np.array(["a", "b", "c", "d"])
    X = np.log(np.maximum(P, 1e-9)) if from_logits else P[:, 1] if n_classes == 1 else P
    candidates = FEW if n_classes == 2 else None
    fitted = Recalibrator(candidates, cv=3, from_logits=from_logits, random_state=0)
    fitted.fit(X, names[y])
    read = Recalibrator.from_json(fitted.to_json())
    assert_array_equal(read.predict_proba(X), fitted.predict_proba(X))
    assert_array_equal(read.predict(X), fitted.predict(X))
    assert fitted.best_name_ in read.summary()
    with pytest.raises(ValueError, match="no cross-fitted maps"):
        read.cross_fit_predict_proba(X)


@pytest.mark.parametrize("from_logits", [False, True])
def test_a_mixture_that_is_read_from_json_predicts_the_same(from_logits):
    P, y = with_random_labels(600)
    X = np.log(P) if from_logits else P
    fitted = Recalibrator(FEW, cv=3, from_logits=from_logits, random_state=0).fit(X, y)
    assert fitted.best_name_ == "Mixture"
    read = Recalibrator.from_json(fitted.to_json())
    assert_array_equal(read.predict_proba(X), fitted.predict_proba(X))
    assert "Mixture" in read.summary()


@pytest.fixture(scope="module")
def text():
    return Recalibrator(FEW, random_state=0).fit(*tempered(100)).to_json()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda told: "{", "text is not JSON"),
        (lambda told: [told], "text is not a recalibrator"),
        (lambda told: {"map": "Identity"}, "text is not a recalibrator"),
        (lambda told: told | {"recalibrator": 2}, "recalibrator is 2, and 1 can be read"),
        (lambda told: told | {"classes": ["a", "a"]}, "classes is not one name or number"),
        (lambda told: told | {"n_features_in": 7}, "n_features_in is 7 for 3 classes"),
        (lambda told: told | {"n_samples": 0}, "n_samples is 0, not a count"),
        (lambda told: told | {"from_logits": 1}, "from_logits is missing or of another kind"),
        (lambda told: told | {"map": {"map": "Mixture", "weights": [1], "maps": []}}, "weights"),
        (lambda told: told | {"map": {"map": "Mixture", "weights": [1], "maps": [3]}}, "objects"),
        (lambda told: told | {"map": {"map": "eval"}}, "map is 'eval', which is none of"),
    ],
)
def test_a_text_that_is_no_recalibrator_raises(change, message, text):
    changed = change(json.loads(text))
    with pytest.raises(ValueError, match=message):
        Recalibrator.from_json(changed if isinstance(changed, str) else json.dumps(changed))


def test_maps_of_other_packages_have_no_json():
    P, y = tempered(100)
    own = Recalibrator([LogisticRegression()], do_no_harm=False, mix=False).fit(P, y)
    with pytest.raises(TypeError, match="LogisticRegression is no map of skcal"):
        own.to_json()


def test_warnings_of_maps_of_the_users_own_are_passed_on():
    class Warns(TemperatureScaling):
        def fit(self, X, y, sample_weight=None):
            warnings.warn("look out", UserWarning, stacklevel=1)
            return super().fit(X, y, sample_weight)

    data = make_tempered(200, random_state=0, n_truth_draws=0)
    with pytest.warns(UserWarning, match="look out"):
        Recalibrator([Warns()], random_state=0).fit(data.proba, data.labels)


def shuffled_of_three(seed):
    """Calibrated predictions of which three of 120 are events."""
    y = np.zeros(120, dtype=int)
    y[:3] = 1
    return np.random.default_rng(seed).uniform(0.01, 0.05, 120), y


@pytest.mark.parametrize("ordered", [KFold(3), list(KFold(3).split(np.zeros(120)))])
def test_a_training_fold_without_a_class_is_warned_of_by_name(ordered):
    p, y = shuffled_of_three(0)
    message = "Class 1 does not occur in the training part of fold 0: maps that were fitted"
    with pytest.warns(UserWarning, match=message):
        Recalibrator(cv=ordered, random_state=0).fit(p, y)
    shares = np.column_stack([1 - y, y]) * 0.9 + np.where(y == 1, 0.05, 0)[:, None]
    shares[y == 0] = [1, 0]
    if isinstance(ordered, list):
        with pytest.warns(UserWarning, match=message):
            Recalibrator(cv=ordered, random_state=0).fit(p, shares)
    with pytest.warns(UserWarning, match="Class 'b' does not occur in the training part of fold 0"):
        Recalibrator(cv=ordered, random_state=0).fit(p, np.array(["a", "b"])[y])
    Recalibrator(cv=StratifiedKFold(3, shuffle=True), random_state=0).fit(p, y)  # the remedy


def test_shuffled_folds_keep_a_class_of_two_samples_in_every_training_part():
    weight, together = np.ones(60), read_groups(np.arange(60) // 2, np.ones(60))
    for rare, groups in (([0, 1], INDEPENDENT), ([0, 2], together)):
        happened = np.isin(np.arange(60), rare).astype(int)
        first = []
        for seed in range(60):
            folds = shuffled_folds(groups, 3, seed, happened, weight)
            assert absent_class((train for train, _ in folds), happened, weight, groups) is None
            plain = groups.blocks(3, seed).split(happened, groups=groups.codes)
            first.append(all(happened[train].any() for train, _ in plain))
        # The first shuffle suffices with probability about 2/3: 60 of 60 has 3e-11.
        assert 20 < sum(first) < 60


def test_a_class_of_one_sample_is_warned_of():
    p, y = shuffled_of_three(0)
    y[1:] = 0
    with pytest.warns(UserWarning, match="Class 1 does not occur in the training part of fold"):
        Recalibrator(random_state=0).fit(p, y)


def test_what_does_not_lower_the_calibration_error_is_no_gain():
    """1 % events, of which the highest predictions are too high: chance decides the others."""
    rng = np.random.default_rng(0)
    before, with_choice, without, kept = [], [], [], 0
    for _ in range(4):
        p = expit(-6 + 1.9 * rng.normal(size=300))
        y = rng.random(300) < np.minimum(p, 0.12)
        y[:2] = [False, True]
        new = expit(-6 + 1.9 * rng.normal(size=2000))
        truth = np.minimum(new, 0.12)
        fits = [
            Recalibrator(do_no_harm=safe, cv=3, random_state=0).fit(p, y) for safe in (True, False)
        ]
        for errors, fitted in zip((with_choice, without), fits, strict=True):
            errors.append(np.abs(fitted.predict_proba(new)[:, 1] - truth).mean())
        before.append(np.abs(new - truth).mean())
        text = fits[0].summary()
        kept += "does not clearly lower the cross-validated calibration error" in text
        p = rng.uniform(0.05, 0.95, 300)  # where recalibration helps it is not refused
        shifted = Recalibrator(cv=3, random_state=0).fit(p, rng.random(300) < expit(logit(p) + 1))
        assert shifted.best_name_ == "BayesianCalibration"
    assert kept > 0
    assert np.mean(with_choice) < np.mean(without)


@pytest.mark.parametrize("order", ["labels", "predictions", "shuffled"])
def test_a_table_of_counts_is_recalibrated_like_the_votes_that_it_holds(order):
    rng = np.random.default_rng(0)
    p = np.exp(rng.normal(np.log(0.005), 1, 200))
    clicks = rng.binomial(100_000, p / 1.61)
    counts = np.column_stack([100_000 - clicks, clicks])
    rows = {"labels": np.arange(400), "predictions": np.arange(400).reshape(2, 200).T.ravel()}
    rows = rows.get(order, rng.permutation(400))
    y, weight = np.repeat([0, 1], 200)[rows], counts.T.ravel()[rows]
    fitted = Recalibrator(random_state=0).fit(np.tile(p, 2)[rows], y, sample_weight=weight)
    votes = Recalibrator(random_state=0).fit(p, counts)
    assert fitted.best_name_ == votes.best_name_ == "BayesianCalibration"
    assert_allclose(fitted.predict_proba(p), votes.predict_proba(p), rtol=1e-9)
    assert_allclose(fitted.predict_proba(p)[:, 1], p / 1.61, rtol=0.1)
    for name, judged in fitted.comparison_.items():
        assert_allclose(judged.difference, votes.comparison_[name].difference, rtol=1e-3)


@pytest.mark.parametrize(
    "weight", [np.tile([1, 7], 30), np.tile([1.5, 7], 30), np.r_[np.zeros(2), np.ones(58)]]
)
def test_weights_that_are_no_table_of_counts_make_no_groups(weight):
    p, y = np.repeat(np.linspace(0.1, 0.9, 12), 5), np.tile([0, 1, 1, 0, 1], 12)
    fitted = Recalibrator(random_state=0).fit(p, y, sample_weight=weight)
    assert fitted.out_of_fold_.groups.independent


@pytest.mark.parametrize("rows_without_cases", ["kept", "dropped"])
@pytest.mark.parametrize("table", ["one row each", "three devices", "rounded predictions"])
def test_units_of_a_table_of_counts_stay_in_one_fold(table, rows_without_cases):
    rng = np.random.default_rng(1)
    p = np.exp(rng.normal(np.log(0.004), 1, 200))
    p = np.exp(np.round(np.log(p) * 4) / 4) if table == "rounded predictions" else p
    p = np.repeat(p, 3) if table == "three devices" else p
    clicks = rng.binomial(500, p / 2)
    y, weight = np.repeat([0, 1], len(p)), np.r_[500 - clicks, clicks]
    kept = (weight > 0) | (rows_without_cases == "kept")
    assert 0.2 < np.mean(weight[len(p) :] == 0) < 0.7
    fitted = Recalibrator(random_state=0).fit(np.tile(p, 2)[kept], y[kept], weight[kept])
    if table == "one row each" or rows_without_cases == "kept":
        assert fitted.out_of_fold_.groups.n_groups == len(p)
        votes = Recalibrator(random_state=0).fit(p, np.column_stack([500 - clicks, clicks]))
        assert_allclose(fitted.predict_proba(p), votes.predict_proba(p), rtol=1e-9)
        assert fitted.best_name_ == "BayesianCalibration"
    else:  # which rows belong together is not known
        assert fitted.out_of_fold_.groups.independent


def test_a_table_of_fewer_predictions_than_two_a_fold_is_fitted():
    p = np.tile(np.linspace(0.1, 0.9, 9), 2)
    Recalibrator(random_state=0).fit(p, np.repeat([0, 1], 9), sample_weight=np.arange(2, 20))
