"""A function of pairs that its user wrote, which learns nothing."""

from __future__ import annotations

from numbers import Integral
from typing import Self

import numpy as np

from skcal._sklearn_compat import Interval, _fit_context
from skcal._validation import InputError
from skcal.functions.base import BilinearFunction
from skcal.kernels import kernel_matrix

_KEPT = 1e-12  # eigenvalues of h among the landmarks, relative to the largest
_MISSED = 1e-6  # of the largest value, by which h may be missed between the landmarks


class FixedFunction(BilinearFunction):
    """Use your own function h(x, x'), such as a calibration error that you suspect.

    It learns nothing from the residuals. An estimator or a search takes the callable itself.

    Parameters
    ----------
    function : callable
        ``function(X, Z)`` returns h of all pairs of rows, an array of shape (n, k). It is
        symmetric.
    n_landmarks : int ≥ 1, default=300
        Number of distinct features of the training samples at which h is evaluated, evenly taken in
        their order. h is exact if its rank is lower, as for polynomials.

    Attributes
    ----------
    landmarks_ : ndarray of shape (n_landmarks, d)
    form_ : ndarray of shape (r, r)
    n_features_in_ : int

    Raises
    ------
    InputError
        In ``fit``, if h is not symmetric. Also if h differs from its value by the landmarks by more
        than a millionth of its largest value.

    Notes
    -----
    At the landmarks Z, K = h(Z, Z) = U Λ Uᵀ. Then φ(x) = h(x, Z) U and M = Λ⁻¹, so h(x, x') ≈
    h(x, Z) K⁺ h(Z, x'). This is the method of Nyström if h is a positive semidefinite kernel.

    Examples
    --------
    >>> from skcal import CalibrationErrorEstimator
    >>> from skcal.datasets import make_tempered
    >>> data = make_tempered(2000, temperature=2.0, random_state=0)
    >>> def suspected(X, Z):  # the error is 0.3 (p - 0.5)
    ...     return 0.09 * (X - 0.5) @ (Z - 0.5).T
    >>> estimator = CalibrationErrorEstimator(suspected, notion="confidence")
    >>> round(estimator.fit(data.proba, data.labels).squared_error(data.proba), 3)
    0.01
    """

    _parameter_constraints: dict = {
        "function": [callable],
        "n_landmarks": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(self, function, n_landmarks=300):
        self.function = function
        self.n_landmarks = n_landmarks

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y, sample_weight=None) -> Self:
        """Evaluate h at landmarks; the residuals are only checked.

        Parameters
        ----------
        X : array-like of shape (n_samples, d)
            Features; only their number is used.
        y : array-like of shape (n_samples,) or (n_samples, m)
            Residuals; only the number of columns is used.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples.

        Returns
        -------
        self : object
        """
        X, _, _ = self._validate(X, y, sample_weight)
        distinct = np.unique(X, axis=0)
        taken = np.linspace(0, len(distinct) - 1, min(len(distinct), self.n_landmarks))
        self.landmarks_ = distinct[np.rint(taken).astype(int)]
        values = self._values(self.landmarks_)
        largest = np.abs(values).max()
        if np.abs(values - values.T).max() > _MISSED * largest:
            raise InputError("function", "is not symmetric: h(x, z) differs from h(z, x).")
        eigenvalues, self._vectors = np.linalg.eigh((values + values.T) / 2)
        if not largest:  # h = 0
            eigenvalues = np.ones(len(eigenvalues))
        kept = np.abs(eigenvalues) > _KEPT * np.abs(eigenvalues).max()
        self._vectors, self.form_ = self._vectors[:, kept], np.diag(1 / eigenvalues[kept])
        others = distinct[:: max(1, len(distinct) // 100)]
        wrong = np.abs(
            self.predict_pairs(others) - kernel_matrix(others, others, self.function, {})
        )
        if wrong.max() > _MISSED * largest:
            raise InputError(
                "function",
                f"is missed by {wrong.max():.2g} between {len(self.landmarks_)} landmarks.",
                "Pass FixedFunction(function, n_landmarks) with more, or a smoother function.",
            )
        return self

    def feature_map(self, X) -> np.ndarray:
        """Return the features h(x, Z) U at the landmarks Z, shape (n_samples, r).

        Parameters
        ----------
        X : array-like of shape (n_samples, d)
            Features of the samples, as given to ``fit``.
        """
        return self._values(self._validate_features(X)) @ self._vectors

    def _values(self, X):
        return kernel_matrix(X, self.landmarks_, self.function, {})
