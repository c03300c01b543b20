"""The refinement loss against its definition, and what no model can win by."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import expit, log_softmax, softmax, xlogy
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss, log_loss
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score, cross_validate
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skcal import TemperatureScaling
from skcal.metrics import get_scorer, make_calibration_scorer, refinement_loss
from skcal.recalibration import Identity, PlattScaling

NAMES = ("neg_refinement_loss", "neg_brier_refinement_loss")


def two_classes(n, seed=0):
    rng = np.random.default_rng(seed)
    z = 1.5 * rng.normal(size=n)
    return (rng.uniform(size=n) < expit(z)).astype(int), z


def four_classes(n, seed=0):
    rng = np.random.default_rng(seed)
    z = 1.5 * rng.normal(size=(n, 4))
    return (softmax(z, axis=1).cumsum(axis=1) < rng.uniform(size=(n, 1))).sum(axis=1), z


@pytest.mark.parametrize("score", ["log-loss", "brier"])
def test_it_is_the_loss_of_predictions_recalibrated_in_folds(score):
    y, z = two_classes(90)
    p, cv = expit(z), KFold(3)
    after = np.empty(90)
    for train, test in cv.split(p):
        fitted = PlattScaling().fit(p[train], y[train])
        after[test] = (60 * fitted.predict_proba(p[test])[:, 1] + 0.5) / 61
    expected = {"log-loss": log_loss, "brier": brier_score_loss}[score](y, after)
    found = refinement_loss(y, p, score=score, recalibrator=PlattScaling(), cv=cv)
    assert_allclose(found, expected, rtol=1e-9)


@pytest.mark.parametrize("notion", ["canonical", "classwise"])
def test_without_recalibration_it_is_the_score_of_the_predictions(notion):
    """So the calibration part and this part add up to the score."""
    y, z = four_classes(60)
    p = softmax(z, axis=1)
    options = {"recalibrator": Identity(), "notion": notion}
    hit = np.eye(4)[y]
    loss = -(xlogy(hit, p) + (notion == "classwise") * xlogy(1 - hit, 1 - p)).sum() / 60
    assert_allclose(refinement_loss(y, p, **options), loss, rtol=1e-9)
    brier = ((hit - p) ** 2).sum() / 60
    assert_allclose(refinement_loss(y, p, score="brier", **options), brier, rtol=1e-9)
    two = refinement_loss(y > 1, p[:, :2] / p[:, :2].sum(1)[:, None], score="brier", **options)
    q = p[:, 1] / p[:, :2].sum(1)
    assert_allclose(two, np.mean((q - (y > 1)) ** 2), rtol=1e-9)


@pytest.mark.parametrize("n", [40, 400])
@pytest.mark.parametrize("scale", [0.1, 0.5, 3.0])
def test_the_temperature_of_the_predictions_does_not_matter(n, scale):
    y, z = two_classes(n)
    expected = refinement_loss(y, z, from_logits=True)
    assert_allclose(refinement_loss(y, scale * z, from_logits=True), expected, atol=2e-3)
    assert_allclose(refinement_loss(y, expit(scale * z)), expected, atol=2e-3)
    shifted = refinement_loss(y, scale * z + 2, from_logits=True)
    assert_allclose(shifted, expected, atol=2e-3)
    y, z = four_classes(n)
    expected = refinement_loss(y, softmax(z, axis=1))
    assert_allclose(refinement_loss(y, softmax(scale * z, axis=1)), expected, atol=1e-4)
    logits = log_softmax(scale * z, axis=1)
    assert_allclose(refinement_loss(y, logits, from_logits=True), expected, atol=1e-4)


@pytest.mark.parametrize("score", ["log-loss", "brier"])
@pytest.mark.parametrize("of_classes", [False, True])
def test_neither_constants_nor_shuffled_predictions_win(score, of_classes):
    """Whatever they are; by chance they may be below the frequencies by a few hundredths."""
    for seed in range(2):
        y, z = (four_classes if of_classes else two_classes)(200, seed)
        p = softmax(z, axis=1) if of_classes else expit(z)
        rng = np.random.default_rng(seed)
        shares = np.bincount(y) / len(y) if of_classes else y.mean()
        useless = [rng.permutation(p), np.full_like(p, shares), np.full_like(p, p[0])]
        sharp = softmax(20 * z, axis=1) if of_classes else expit(20 * z)
        useless.append(rng.permutation(sharp))
        informative = refinement_loss(y, p, score=score)
        losses = [refinement_loss(y, q, score=score) for q in useless]
        assert min(losses) > informative + 0.02
        constant = refinement_loss(y, useless[1], score=score)
        assert min(losses) > constant - 0.03


def test_models_are_compared_on_the_same_folds():
    """The folds are the same whatever the predictions, with equal shares of the classes."""
    seen = []

    class Recorder(TemperatureScaling):
        def fit(self, X, y, sample_weight=None):
            seen.append((len(y), int(np.sum(y))))
            return super().fit(X, y, sample_weight)

    y = np.repeat([0, 1], [40, 10])
    refinement_loss(y, np.linspace(0.1, 0.9, 50), recalibrator=Recorder())
    refinement_loss(y, np.linspace(0.9, 0.1, 50), recalibrator=Recorder())
    assert seen == [(40, 8)] * 10


# What is refused


def test_too_few_samples_are_refused_with_the_least_number_and_the_remedy_works():
    p = np.linspace(0.1, 0.9, 10)
    y = (p > 0.5).astype(int)
    with pytest.raises(ValueError, match=r"y_true has 9 samples.*cv=5 needs 10.*cv=2 needs 4"):
        refinement_loss(y[:9], p[:9])
    assert np.isfinite(refinement_loss(y, p))
    with pytest.raises(ValueError, match=r"3 samples.*cv=2 needs 4"):
        refinement_loss(y[:3], p[:3], cv=2)
    assert np.isfinite(refinement_loss(y[3:7], p[3:7], cv=2))
    with pytest.raises(ValueError, match=r"groups makes 10 groups .* 6 blocks need 12"):
        refinement_loss(np.tile(y, 9), np.tile(p, 9), groups=np.arange(90) % 10, cv=6)


@pytest.mark.parametrize("notion", ["confidence", "top-label", "top-2"])
def test_notions_of_the_predicted_class_are_refused(notion):
    y, z = four_classes(40)
    with pytest.raises(
        ValueError, match=r"notion=.* always wrong is the best\. Pass notion='canonical'"
    ):
        refinement_loss(y, softmax(z, axis=1), notion=notion)
    for remedy in ("canonical", "classwise"):
        assert np.isfinite(refinement_loss(y, softmax(z, axis=1), notion=remedy))


def test_a_class_that_a_training_part_lacks_is_named():
    y, z = four_classes(60)
    y = np.where(y == 3, 0, y)
    y[7] = 3
    with pytest.warns(UserWarning, match="Class 3 does not occur in the training part"):
        loss = refinement_loss(y, softmax(z, axis=1))
    assert np.isfinite(loss)


# As a scorer


class Scrambled(ClassifierMixin, BaseEstimator):
    """Naive Bayes that returns its predictions in another order."""

    def __init__(self, scrambled=True):
        self.scrambled = scrambled

    def fit(self, X, y):
        self.model_ = GaussianNB().fit(X, y)
        self.classes_ = self.model_.classes_
        return self

    def predict_proba(self, X):
        proba = self.model_.predict_proba(X)
        return np.random.default_rng(0).permutation(proba) if self.scrambled else proba


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", NAMES)
def test_a_grid_search_by_it_does_not_take_the_constant(name):
    X, y = load_wine(return_X_y=True)
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=500))
    grid = {"logisticregression__C": [1e-9, 1.0]}
    search = GridSearchCV(model, grid, scoring=get_scorer(name), cv=3).fit(X, y)
    # C = 1e-9 is ranked as well as C = 1 but for few digits: what is lost is calibration.
    assert search.best_score_ > -0.3
    scores = [
        cross_val_score(estimator, X, y, scoring=get_scorer(name), cv=3).mean()
        for estimator in (DummyClassifier(), Scrambled(), Scrambled(scrambled=False))
    ]
    assert scores[2] > max(scores[:2]) + 0.2


def test_options_groups_and_weights_are_routed():
    X, y = load_breast_cancer(return_X_y=True)
    X, y, model = X[:300], y[:300], GaussianNB()
    groups, weight = np.arange(300) // 3, np.linspace(0.1, 2, 300)
    scorer = make_calibration_scorer(refinement_loss, cv=2, score="brier")
    with config_context(enable_metadata_routing=True):
        asked = scorer.set_score_request(groups=True, sample_weight=True)
        found = cross_validate(
            model.set_fit_request(sample_weight=False),
            X,
            y,
            scoring=asked,
            cv=KFold(2),
            params={"groups": groups, "sample_weight": weight},
        )
    half = slice(0, 150)
    proba = GaussianNB().fit(X[150:], y[150:]).predict_proba(X[half])[:, 1]
    options = {"groups": groups[half], "sample_weight": weight[half], "score": "brier", "cv": 2}
    assert_allclose(found["test_score"][0], -refinement_loss(y[half], proba, **options), rtol=1e-12)
    assert found["test_score"][0] != -refinement_loss(y[half], proba, score="brier", cv=2)


def test_small_validation_parts_name_the_argument_and_the_least_number():
    X, y = load_breast_cancer(return_X_y=True)
    X, y = np.concatenate([X[y == k][:20] for k in (0, 1)]), np.repeat([0, 1], 20)
    options = {"cv": 5, "error_score": "raise"}
    with pytest.raises(ValueError, match=r"y_true has 8 samples.*cv=5 needs 10"):
        cross_val_score(GaussianNB(), X, y, scoring=get_scorer(NAMES[0]), **options)
    scorer = make_calibration_scorer(refinement_loss, cv=2)
    assert np.isfinite(cross_val_score(GaussianNB(), X, y, scoring=scorer, **options)).all()
