"""Calibration functions of the user: a scikit-learn estimator, or a function of pairs."""

from __future__ import annotations

import warnings
from numbers import Integral
from typing import Any, Self

import numpy as np
from scipy.special import expit, softmax
from sklearn import config_context
from sklearn.base import clone, is_classifier
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags

from skcal._labels import rows_of_shares
from skcal._sklearn_compat import HasMethods, Interval, StrOptions, _fit_context
from skcal._validation import InputError, check_unit_interval
from skcal.functions.base import BilinearFunction, recover_outcomes, takes_weight
from skcal.kernels import kernel_matrix


class Zero(BilinearFunction):
    """Return h = 0 for all pairs: the hypothesis that the model is calibrated.

    Attributes
    ----------
    form_ : None
    n_features_in_ : int

    Examples
    --------
    >>> from skcal import Zero
    >>> Zero().fit([[0.6], [0.7]], [0.4, -0.7]).predict([[0.5]])
    array([0.])
    """

    _parameter_constraints: dict = {}

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y, sample_weight=None) -> Self:
        """Check the arguments; nothing is learnt.

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
        self._validate(X, y, sample_weight)
        self.form_ = None
        return self

    def residual(self, X):
        """Return zeros of shape (n_samples, m).

        Parameters
        ----------
        X : array-like of shape (n_samples, d)
            Features of the samples, as given to ``fit``.
        """
        return np.zeros((len(self._validate_features(X)), self._n_residuals))

    def feature_map(self, X):
        """Return a single feature of zeros, which costs less than the residuals.

        Parameters
        ----------
        X : array-like of shape (n_samples, d)
            Features of the samples, as given to ``fit``.
        """
        return np.zeros((len(self._validate_features(X)), 1))


class PlugIn(BilinearFunction):
    """Estimate miscalibration by a regression of the residuals with any scikit-learn estimator.

    So regressors, classifiers and recalibration maps compete with the kernel estimators under one
    risk. ``PlugIn(MatrixScaling())`` is matrix scaling.

    Parameters
    ----------
    estimator : estimator object
        A regressor, single-output ones are wrapped in
        :class:`~sklearn.multioutput.MultiOutputRegressor`; or a classifier, whose
        ``predict_proba`` estimates the outcome.
    target : {"residual", "outcome"}, default="residual"
        The target of a regressor. "outcome" suits recalibration maps c: ĝ(x) = c(x) - x. A
        classifier is always fitted to outcomes.
    equivariant : bool, default=False
        Whether the estimator gets the classes of each sample in descending order of their features.
        Then a permutation of the classes permutes ĝ. That suits errors which do not depend on the
        names of the classes, with far fewer samples.

    Attributes
    ----------
    estimator_ : estimator object
        The fitted clone; None when all outcomes are of one class, which is then predicted.
    form_ : None
    n_features_in_ : int

    See Also
    --------
    skcal.recalibration.LogProbabilities, skcal.TemperatureScaling

    Notes
    -----
    The function is h(x, x') = ⟨ĝ(x), ĝ(x')⟩, with ĝ from the estimator. Features and residuals must
    add up to outcomes if outcomes are the target. A class without training samples is predicted
    with probability 0. If the function is equivariant, equal features stay in the order of their
    columns. A map with ``from_logits=True`` is fitted to logits, which take the place of the
    features X.

    References
    ----------
    .. [1] Rahimi et al., Intra order-preserving functions for calibration of multi-class neural
       networks, NeurIPS 2020, on maps equivariant to permutations.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.isotonic import IsotonicRegression
    >>> from skcal import PlugIn
    >>> p, outcome = np.array([[0.1], [0.2], [0.8], [0.9]]), np.array([0, 0, 1, 1])
    >>> isotonic = PlugIn(IsotonicRegression(out_of_bounds="clip"), target="outcome")
    >>> isotonic.fit(p, outcome - p.ravel()).residual(p).ravel().round(2)
    array([-0.1, -0.2,  0.2,  0.1])
    """

    _parameter_constraints: dict = {
        "estimator": [HasMethods(["fit"])],
        "target": [StrOptions({"residual", "outcome"})],
        "equivariant": ["boolean"],
    }

    _columns: np.ndarray  # of outcomes, which a classifier predicts
    estimator_: Any

    def __init__(self, estimator, target="residual", equivariant=False):
        self.estimator = estimator
        self.target = target
        self.equivariant = equivariant

    @property
    def _has_small_fits(self):
        """See ``BilinearFunction``; true of recalibration maps."""
        return hasattr(self.estimator, "to_json")

    @property
    def reads_logits(self):
        """Whether the estimator takes logits."""
        return bool(getattr(self.estimator, "from_logits", False))

    def reading(self, from_logits):
        """Return this function for predictions that are logits, or probabilities.

        Parameters
        ----------
        from_logits : bool
            Whether predictions are logits.
        """
        if getattr(self.estimator, "from_logits", from_logits) == from_logits:
            return self
        return clone(self).set_params(estimator__from_logits=from_logits)

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(self, X, y, sample_weight=None) -> Self:
        """Fit the estimator to the residuals or to the outcomes.

        Parameters
        ----------
        X : array-like of shape (n_samples, d)
            Features; probabilities, or logits, where outcomes are the target.
        y : array-like of shape (n_samples,) or (n_samples, m)
            Residuals.
        sample_weight : array-like of shape (n_samples,), default=None
            The estimator must take weights unless all are equal to 1.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            If outcomes are the target and X + y are not outcomes, or the estimator does not take
            the weights given. Also if ``equivariant=True`` and X and y differ in width.
        """
        X, target, weight = self._read(X, y, sample_weight)
        if is_classifier(self.estimator):
            X, target, weight = self._read_classes(X, target, weight)  # which frees the outcomes
            self.estimator_ = None
            if len(self._columns) > 1:
                self.estimator_ = _fit(clone(self.estimator), X, target, weight)
                self._columns = self.estimator_.classes_
        else:
            single = target.shape[1] == 1
            estimator = clone(self.estimator)
            if not single and not get_tags(estimator).target_tags.multi_output:
                estimator = MultiOutputRegressor(estimator)
            self.estimator_ = _fit(estimator, X, target.ravel() if single else target, weight)
        return self

    def _read(self, X, y, sample_weight):
        """What the estimator is fitted to, and weights."""
        X, residuals, weight = self._validate(X, y, sample_weight)
        self.form_ = None
        self._predicts_outcome = is_classifier(self.estimator) or self.target == "outcome"
        target = residuals
        if self._predicts_outcome:
            target = recover_outcomes(self._features(X), residuals)
        return *(self._in_descending_order(X, target) if self.equivariant else (X, target)), weight

    def _read_classes(self, X, outcomes, weight):
        """Classes of outcomes; a row of shares becomes one for each class with a share."""
        shares = np.hstack([1 - outcomes, outcomes]) if outcomes.shape[1] == 1 else outcomes
        codes = shares.argmax(axis=1)
        if not np.isin(shares, (0, 1)).all():
            rows, codes, parts = rows_of_shares(np.maximum(shares, 0))
            X, weight = X[rows], parts * (1.0 if weight is None else weight[rows])
        self._columns = np.unique(codes)
        return X, codes, weight

    def _in_descending_order(self, X, target):
        if X.shape[1] != target.shape[1]:
            raise ValueError(
                f"X has {X.shape[1]} columns and y {target.shape[1]}: equivariant=True needs as "
                "many features as residuals."
            )
        order = _descending(X)
        return np.take_along_axis(X, order, axis=1), np.take_along_axis(target, order, axis=1)

    def residual(self, X):
        """Return the estimated residual ĝ(x) of each row, an estimate of E[δ | x].

        Parameters
        ----------
        X : array-like of shape (n_samples, d)
            Features of the samples, as given to ``fit``.

        Returns
        -------
        residual : ndarray of shape (n_samples, m)
        """
        X = self._validate_features(X)
        features = self._features(X)
        if self._predicts_outcome:
            check_unit_interval(features)
        if self.equivariant:
            order = _descending(X)
            ranked = self._predict(np.take_along_axis(X, order, axis=1))
            predicted = np.empty_like(ranked)
            np.put_along_axis(predicted, order, ranked, axis=1)
        else:
            predicted = self._predict(X)
        finite = np.isfinite(predicted).all(axis=1)
        if not finite.all():
            raise ValueError(
                f"{type(self.estimator).__name__} predicts NaN or infinity for X row "
                f"{int(np.argmin(finite))}. IsotonicRegression needs out_of_bounds='clip'."
            )
        return predicted - features if self._predicts_outcome else predicted

    def _features(self, X):
        """Probabilities, of logits too."""
        return proba_of_logits(X) if self.reads_logits else X

    def _predict(self, X):
        if is_classifier(self.estimator):
            return self._predict_proba(X)
        predicted = np.asarray(self.estimator_.predict(X), dtype=np.float64)
        if predicted.size != len(X) * self._n_residuals:
            raise InputError(
                f"{type(self.estimator).__name__}.predict(X)",
                f"returned shape {predicted.shape} for {len(X)} rows.",
                f"Return shape ({len(X)}, {self._n_residuals}).",
            )
        return predicted.reshape(len(X), self._n_residuals)

    def _predict_proba(self, X):
        n_classes = max(2, self._n_residuals)
        proba = np.zeros((len(X), n_classes))
        proba[:, self._columns] = (
            1.0 if self.estimator_ is None else self.estimator_.predict_proba(X)
        )
        return proba[:, 1:] if self._n_residuals == 1 else proba


def proba_of_logits(X):
    """Return probabilities (n, d) of logits, of a single column by the logistic function."""
    return expit(X) if X.shape[1] == 1 else softmax(X, axis=1)


def _descending(X):
    return np.argsort(-X, axis=1, kind="stable")


def _fit(estimator, X, y, weight):
    """Fit with weights unless all are 1; a pipeline hands them to its last step.

    Labels are column numbers, of which none was counted from 1.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*better counted from 1", UserWarning)
        return _fit_to_columns(estimator, X, y, weight)


def _fit_to_columns(estimator, X, y, weight):
    if (weight == 1).all():
        return estimator.fit(X, y)
    name, inner = _weight_keyword(estimator)
    if not takes_weight(inner.fit):
        raise ValueError(
            f"sample_weight was given, but {type(inner).__name__}.fit does not take it. "
            "Choose another estimator or leave sample_weight out."
        )
    with config_context(enable_metadata_routing=False):
        return estimator.fit(X, y, **{name: weight})


def _weight_keyword(estimator):
    """Name of the weights in ``fit``, through pipelines, and the estimator that receives them."""
    if isinstance(estimator, MultiOutputRegressor):
        return _weight_keyword(estimator.estimator)
    if isinstance(estimator, Pipeline):
        step, final = estimator.steps[-1]
        name, inner = _weight_keyword(final)
        return f"{step}__{name}", inner
    return "sample_weight", estimator


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
