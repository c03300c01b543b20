"""The path protocol that a function has from its base class."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone

from skcal import Binning, DirichletKernelDensity, KroneckerKernelRidge, TwoStepKernelRidge, Zero
from skcal.functions import BilinearFunction


class Shrunk(BilinearFunction):
    """The mean residual times ``share``; fits share the mean."""

    path_parameter = "share"

    def __init__(self, share=1.0):
        self.share = share

    def fit(self, X, y, sample_weight=None):
        _, residuals, weight = self._validate(X, y, sample_weight)
        self.mean_, self.form_ = weight @ residuals / weight.sum(), None
        return self

    def feature_map(self, X):
        return np.tile(self.share * self.mean_, (len(self._validate_features(X)), 1))

    def shares_factor(self, other):
        return isinstance(other, Shrunk)

    def with_factor_of(self, fitted):
        function = clone(self)
        vars(function).update({k: v for k, v in vars(fitted).items() if k != "share"})
        return function


def test_a_path_scores_as_single_fits_do(rng):
    X, y, weight = rng.uniform(size=(40, 1)), rng.normal(size=40), rng.uniform(size=40)
    scores = Shrunk().fit(X, y).score_path(X, y, [0.5, 1.0], weight)
    assert_array_equal(scores, [Shrunk(share).fit(X, y).score(X, y, weight) for share in (0.5, 1)])


@pytest.mark.parametrize("function", [Zero(), Binning()])
def test_functions_share_nothing_unless_they_say_so(function):
    assert function.path_parameter is None
    assert not function.shares_factor(clone(function))
    with pytest.raises(NotImplementedError, match="shares nothing"):
        function.with_factor_of(clone(function))


@pytest.mark.parametrize(
    "function", [KroneckerKernelRidge(), TwoStepKernelRidge(), DirichletKernelDensity()]
)
def test_functions_with_a_path_share_their_fits(function):
    assert function.path_parameter in function.get_params()
    assert function.shares_factor(clone(function))
    assert not function.shares_factor(Zero())
