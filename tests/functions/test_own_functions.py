"""What is wrong in a function of the user's own is said by its class and method."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, RegressorMixin

from skcal import (
    CalibrationErrorEstimator,
    CalibrationErrorSearchCV,
    PlugIn,
    Stacking,
    TwoStepKernelRidge,
    Zero,
)
from skcal._validation import InputError
from skcal.datasets import make_tempered
from skcal.functions import BilinearFunction, FixedFunction
from skcal.hypothesis_tests import risk_test
from skcal.model_selection import compare_risks
from skcal.notions import make_problems
from skcal.pair_risk import dense_pair_risk

DATA = make_tempered(60, n_classes=3, temperature=2.0, n_truth_draws=0, random_state=0)
P, Y = DATA.proba, DATA.labels


class Mean(BilinearFunction):
    """The mean residual, and what is wrong with what a method returns."""

    def __init__(self, wrong=None):
        self.wrong = wrong

    def fit(self, X, y, sample_weight=None):
        X, residuals, weight = self._validate(X, y, sample_weight)
        self.mean_ = weight @ residuals / weight.sum()
        self.form_ = None
        return self

    def residual(self, X):
        X = self._validate_features(X)
        mean = np.tile(self.mean_, (len(X), 1))
        return mean if self.wrong is None else self.wrong(mean)


class Ones(BilinearFunction):
    """h = M, the form of one feature."""

    def __init__(self, form=None, wrong=None):
        self.form = form
        self.wrong = wrong

    def fit(self, X, y, sample_weight=None):
        self._validate(X, y, sample_weight)
        self.form_ = self.form
        return self

    def feature_map(self, X):
        ones = np.full((len(self._validate_features(X)), 2), 0.01)
        return ones if self.wrong is None else self.wrong(ones)


class NoForm(Ones):
    def fit(self, X, y, sample_weight=None):
        self._validate(X, y, sample_weight)
        self.fitted_ = True
        return self


class NotValidating(Ones):
    def fit(self, X, y, sample_weight=None):
        self.form_, self.n_features_in_ = None, X.shape[1]
        return self


def with_nan(rows):
    rows = rows.copy()
    rows[3, 0] = np.nan
    return rows


WRONG_ROWS = {
    "one dimension": (
        np.ravel,
        r"returned shape \(\d+,\) for \d+ rows. Return an array of shape \(",
    ),
    "too few rows": (lambda rows: rows[:-1], r"returned shape .* for \d+ rows. Return an array"),
    "three dimensions": (
        lambda rows: rows[None],
        r"returned shape \(1, .* Return an array of shape",
    ),
    "not finite": (with_nan, "row 3 holds NaN or infinity"),
    "no numbers": (lambda rows: rows.astype(str).astype(object) + "x", "not of numbers"),
    "nothing": (lambda rows: None, "is a NoneType|returned shape"),
}


@pytest.mark.parametrize("wrong", WRONG_ROWS)
@pytest.mark.parametrize("notion", ["canonical", "top-label"])
def test_a_residual_that_is_wrong_is_named(notion, wrong):
    change, message = WRONG_ROWS[wrong]
    estimator = CalibrationErrorEstimator(Mean(change), notion).fit(P, Y)
    for call in (estimator.one_step, estimator.error, estimator.risk, estimator.score):
        with pytest.raises(InputError, match=rf"Mean.residual\(X\) .*({message})"):
            call(P, Y)
    with pytest.raises(InputError, match=r"Mean.residual\(X\)"):
        estimator.predict(P)


def test_a_residual_has_a_column_for_each_residual_of_the_fit():
    estimator = CalibrationErrorEstimator(Mean(lambda rows: rows[:, :1]), "canonical").fit(P, Y)
    match = r"Mean.residual\(X\) returned shape \(60, 1\) for 60 rows. .* shape \(60, 3\)."
    with pytest.raises(InputError, match=match):
        estimator.one_step(P, Y)


@pytest.mark.parametrize("wrong", WRONG_ROWS)
def test_a_feature_map_that_is_wrong_is_named(wrong):
    change, message = WRONG_ROWS[wrong]
    function = Ones(wrong=change)
    estimator = CalibrationErrorEstimator(function, "confidence").fit(P, Y)
    for call in (estimator.risk, estimator.score):
        with pytest.raises(InputError, match=rf"Ones.feature_map\(X\) .*({message})"):
            call(P, Y)
    with pytest.raises(InputError, match=r"Ones.feature_map\(X\)"):
        risk_test(Y, P, function, notion="confidence", n_resamples=19)


WRONG_FORMS = {
    "a number": (np.array(2.0), r"has shape \(\), feature_map\(X\) 2 columns. .* shape \(2, 2\)"),
    "a row": (np.ones(2), r"has shape \(2,\), feature_map\(X\) 2 columns"),
    "too wide": (np.eye(3), r"has shape \(3, 3\), feature_map\(X\) 2 columns"),
    "sparse": (sparse.eye_array(3), r"has shape \(3, 3\), feature_map\(X\) 2 columns"),
    "not symmetric": (np.array([[1.0, 0.5], [0.0, 1.0]]), "is not symmetric. Set it to"),
    "sparse, not symmetric": (sparse.csr_array([[1.0, 0.5], [0.0, 1.0]]), "is not symmetric"),
    "not finite": (np.array([[1.0, np.inf], [np.inf, 1.0]]), "holds NaN or infinity"),
    "no numbers": ("identity", "not of numbers"),
}


@pytest.mark.parametrize("wrong", WRONG_FORMS)
def test_a_form_that_is_wrong_is_named(wrong):
    form, message = WRONG_FORMS[wrong]
    estimator = CalibrationErrorEstimator(Ones(form), "confidence").fit(P, Y)
    for call in (estimator.risk, estimator.score, lambda X, y: estimator.predict(X)):
        with pytest.raises(InputError, match=rf"Ones.form_ .*{message}"):
            call(P, Y)


def test_a_form_may_miss_symmetry_by_rounding():
    form = np.array([[1.0, 0.5], [0.5 + 1e-12, 1.0]])
    CalibrationErrorEstimator(Ones(form), "confidence").fit(P, Y).risk(P, Y)
    CalibrationErrorEstimator(Ones(np.zeros((2, 2))), "confidence").fit(P, Y).risk(P, Y)


def test_what_fit_forgot_is_named():
    with pytest.raises(InputError, match=r"NoForm.form_ is missing. Let fit set it: M, or None"):
        CalibrationErrorEstimator(NoForm(), "confidence").fit(P, Y).predict(P)
    with pytest.raises(InputError, match=r"NotValidating.fit has not called _validate. Let fit"):
        CalibrationErrorEstimator(NotValidating(), "confidence").fit(P, Y).score(P, Y)


@pytest.mark.parametrize("wrong", ["one dimension", "not finite"])
def test_searches_stacks_and_comparisons_say_it_too(wrong):
    function = Mean(WRONG_ROWS[wrong][0])
    match = r"Mean.residual\(X\)"
    with pytest.raises(InputError, match=match):
        CalibrationErrorSearchCV([Zero(), function], "confidence", random_state=0).fit(P, Y)
    with pytest.raises(InputError, match=match):
        CalibrationErrorEstimator(Stacking([Zero(), function]), "confidence").fit(P, Y)
    zero, own = (CalibrationErrorEstimator(f, "confidence").fit(P, Y) for f in (Zero(), function))
    with pytest.raises(InputError, match=match):
        compare_risks(zero, own, P, Y)


def test_whole_numbers_and_lists_are_read_as_floats():
    as_int = CalibrationErrorEstimator(Mean(lambda rows: (100 * rows).astype(int)), "confidence")
    as_list = CalibrationErrorEstimator(Mean(lambda rows: rows.tolist()), "confidence")
    assert np.isfinite(as_int.fit(P, Y).one_step(P, Y).value)
    expected = CalibrationErrorEstimator(Mean(), "confidence").fit(P, Y).one_step(P, Y)
    assert as_list.fit(P, Y).one_step(P, Y).value == expected.value


class Predictor(RegressorMixin, BaseEstimator):
    def __init__(self, predicted=None):
        self.predicted = predicted

    def fit(self, X, y):
        return self

    def predict(self, X):
        return self.predicted(X)


@pytest.mark.parametrize(
    ("predicted", "message"),
    [
        (
            lambda X: np.zeros(len(X) - 1),
            r"returned shape \(59,\) for 60 rows. Return shape \(60, 1",
        ),
        (lambda X: np.zeros((len(X), 7)), r"returned shape \(60, 7\) for 60 rows"),
        (lambda X: None, r"returned shape \(\) for 60 rows"),
    ],
)
def test_predictions_of_another_shape_are_named(predicted, message):
    estimator = CalibrationErrorEstimator(PlugIn(Predictor(predicted)), "confidence").fit(P, Y)
    with pytest.raises(InputError, match=rf"Predictor.predict\(X\) {message}"):
        estimator.one_step(P, Y)


def test_a_function_whose_fit_takes_no_weights_is_refused_where_it_is_defined():
    with pytest.raises(TypeError, match=r"^Own\.fit does not take sample_weight.*Define fit\(self"):

        class Own(BilinearFunction):
            def fit(self, X, y):
                return self

    class Any(BilinearFunction):
        def fit(self, X, y, **options):
            return self


def wave(X, Z):
    """A smooth function that is no polynomial, and not positive semidefinite."""
    return (
        np.cos(3 * X.sum(axis=1))[:, None] * np.sin(2 * Z[:, 0])
        + np.cos(3 * Z.sum(axis=1)) * (np.sin(2 * X[:, 0])[:, None])
    )


@pytest.mark.parametrize("notion", ["confidence", "classwise", "canonical"])
def test_a_callable_of_pairs_is_a_function(notion):
    estimator = CalibrationErrorEstimator(wave, notion).fit(P[:30], Y[:30])
    problems = make_problems(P, Y, notion)
    expected = sum(np.trace(wave(one.features, one.features)) for one in problems) / len(P)
    assert estimator.squared_error(P) == pytest.approx(expected, rel=1e-8)
    if notion != "classwise":
        [problem] = problems
        slow = dense_pair_risk(wave, problem.features, problem.residuals).value
        assert estimator.risk(P, Y).value == pytest.approx(slow, rel=1e-8)
    zero = CalibrationErrorEstimator(lambda X, Z: np.zeros((len(X), len(Z))), notion).fit(P, Y)
    assert zero.squared_error(P) == 0
    assert zero.score(P, Y) == CalibrationErrorEstimator(Zero(), notion).fit(P, Y).score(P, Y)


@pytest.mark.filterwarnings("ignore:The squared calibration error is estimated as -")
def test_searches_take_callables():
    search = CalibrationErrorSearchCV([wave, Zero()], "confidence", cv=3, random_state=0)
    search.fit(P, Y)
    assert [family.name for family in search.families_] == ["FixedFunction", "Zero"]


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda X, Z: X @ Z.T + X[:, :1], r"^function is not symmetric"),
        (lambda X, Z: (X @ Z.T > 0.4) * 1.0, r"^function is missed by 1\.5 between 10 landmarks"),
        (lambda X, Z: X[:, 0] * Z[:, 0], r"returned shape .*for x in X\]"),
        (lambda X, Z: np.full((len(X), len(Z)), np.nan), r"must be finite"),
    ],
)
def test_a_callable_that_is_no_function_of_pairs_is_refused(function, message):
    with pytest.raises(ValueError, match=message):
        CalibrationErrorEstimator(FixedFunction(function, 10), "canonical").fit(P, Y)


@pytest.mark.parametrize(
    "kernel",
    [
        lambda x, z: np.exp(-abs(x[0] - z[0])).item(),
        lambda x, z: np.exp(-abs(x - z)),
        lambda x, z: np.exp(-abs(x - z).sum()),
    ],
)
def test_a_kernel_of_two_points_is_told_how_to_be_one_of_all_pairs(kernel):
    match = r"A callable kernel\(X, Z\) must return the matrix .* for x in X\]\.$"
    with pytest.raises(ValueError, match=match):
        CalibrationErrorEstimator(TwoStepKernelRidge(kernel=kernel), "confidence").fit(P, Y)
    of_pairs = lambda X, Z: [[np.exp(-abs(x - z).sum()) for z in Z] for x in X]  # noqa: E731
    CalibrationErrorEstimator(TwoStepKernelRidge(kernel=of_pairs), "confidence").fit(P, Y)
