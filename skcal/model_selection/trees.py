"""Trees of scikit-learn, one after the other."""

from __future__ import annotations

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.tree import ExtraTreeRegressor
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from skcal._border import BaseEstimator


class SequentialExtraTrees(MultiOutputMixin, RegressorMixin, BaseEstimator):
    """The numbers of :class:`~sklearn.ensemble.ExtraTreesRegressor` without its joblib.

    That sets the filters of warnings, which all threads share, around each tree.

    Parameters
    ----------
    n_estimators : int, default=30
        The number of trees.
    min_samples_leaf : int, default=20
        The number of samples that a leaf holds at least.
    random_state : int, RandomState instance or None, default=0
    """

    def __init__(self, n_estimators=30, min_samples_leaf=20, random_state=0):
        self.n_estimators = n_estimators
        self.min_samples_leaf = min_samples_leaf
        self.random_state = random_state

    def fit(self, X, y, sample_weight=None):
        """Fit the trees.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        sample_weight : array-like of shape (n_samples,), default=None

        Returns
        -------
        self : object
        """
        options = {"dtype": np.float32, "multi_output": True, "y_numeric": True}
        X, y = validate_data(self, X, y, **options)
        y = np.ascontiguousarray(y.reshape(len(y), -1), dtype=np.float64)
        rng = check_random_state(self.random_state)
        seeds = [rng.randint(np.iinfo(np.int32).max) for _ in range(self.n_estimators)]
        self.estimators_ = [
            ExtraTreeRegressor(min_samples_leaf=self.min_samples_leaf, random_state=seed).fit(
                X, y, sample_weight, check_input=False
            )
            for seed in seeds
        ]
        return self

    def predict(self, X):
        """The mean of the trees, (n_samples,) or (n_samples, n_outputs)."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float32, reset=False)
        total = sum(tree.predict(X, check_input=False) for tree in self.estimators_)
        return total / self.n_estimators
