"""The contract of every calibration-estimation function."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from inspect import Parameter, signature
from typing import Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted, validate_data

from skcal._validation import (
    FLOATS,
    InputError,
    as_given,
    check_unit_interval,
    check_weight,
    decoded,
    is_plain,
    naming,
    read_features,
    refuse_no_features,
    refuse_no_numbers,
    row_blocks,
    row_weights,
)
from skcal.pair_risk import pair_risk, pair_risk_path, quadratic_form

_ASYMMETRY_OF_M = 1e-8  # of M, relative to its largest entry, that rounding may leave
_OUTCOME_BYTES = 2**22  # of the temporaries of outcomes


class BilinearFunction(BaseEstimator, ABC):
    """Base of calibration functions, which estimate miscalibration from pairs of predictions.

    The function h(x, x') = φ(x)ᵀ M φ(x') estimates ⟨E[δ | x], E[δ | x']⟩.

    Subclasses implement ``fit(X, y, sample_weight=None)``, which calls ``_validate`` and sets
    ``form_`` (M, or None for the identity), and ``feature_map(X)`` (φ). Those with
    h(x, x') = ⟨ĝ(x), ĝ(x')⟩ have ``residual(X)`` instead, the estimate ĝ of E[δ | x] and φ.

    Fits of several functions, and of one function to several sets of samples, may share work in a
    search, as ``_shares_with`` and ``_over_blocks`` tell.

    A search fits the ``parts`` of a function that combines others. Their values on held-out samples
    choose the combination, as :class:`skcal.Stacking` declares it.

    A function whose ``reads_logits`` is true takes logits as X, as do recalibration maps with
    ``from_logits=True``. These are logarithms of the features, or the logit of a single feature.

    In every fit a sample of weight 0 is as good as removed, and n means the sum of the weights.
    """

    form_: np.ndarray | None

    def __init_subclass__(cls, **options):
        super().__init_subclass__(**options)
        if not takes_weight(cls.fit):
            raise TypeError(
                f"{cls.__name__}.fit does not take sample_weight, which searches and estimators "
                "pass. Define fit(self, X, y, sample_weight=None)."
            )

    @property
    def reads_logits(self) -> bool:
        """Whether X of the methods holds logits."""
        return False

    def reading(self, from_logits: bool) -> BilinearFunction:
        """Return this function for predictions that are logits, or probabilities.

        Parameters
        ----------
        from_logits : bool
            Whether predictions are logits.
        """
        return self

    @property
    def _has_small_fits(self) -> bool:
        """Whether fits are small beside the samples: a search keeps those of all settings."""
        return False

    @property
    def parts(self) -> Sequence[BilinearFunction]:
        """The functions that this one combines, in a search from fits that it makes itself."""
        return ()

    @abstractmethod
    def fit(self, X, y, sample_weight=None) -> Self:
        """Fit on features X (n, d) and residuals y (n,) or (n, m).

        Parameters
        ----------
        X : array-like of shape (n_samples, d)
            Features of the samples.
        y : array-like of shape (n_samples,) or (n_samples, m)
            Residuals: outcomes minus predictions.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples; a weight of 2 counts as a repeated row. A sum below the
            effective sample size (Σ w)² / Σ w² is raised to it. None: all 1.
        """

    def feature_map(self, X):
        """Return φ(x) for each row, shape (n_samples, r): ĝ(x) unless a subclass says otherwise.

        Parameters
        ----------
        X : array-like of shape (n_samples, d)
            Features of the samples, as given to ``fit``.
        """
        return self.residual(X)

    def _shares_with(self, other) -> bool:
        """Whether :meth:`_over_blocks` fits this function and another one by the same work."""
        return False

    def _over_blocks(self, functions: Sequence, blocks: Sequence[tuple]) -> BlockFits:
        """Return fits of functions that share work to unions of blocks of samples.

        Parameters
        ----------
        functions : sequence of calibration-estimation functions
            This one, and others with which it shares work.
        blocks : sequence of (X, y, sample_weight)
        """
        raise NotImplementedError(f"{type(self).__name__} shares no work.")

    def predict(self, X) -> np.ndarray:
        """Pointwise squared calibration error h(x, x).

        Parameters
        ----------
        X : array-like of shape (n_samples, d)
            Features. Training samples are not left out of their own estimate.

        Returns
        -------
        h : ndarray of shape (n_samples,)
            May be negative where M is not positive semidefinite. Under
            ``sklearn.config_context(array_api_dispatch=True)`` of the library and device of X.
        """
        check_is_fitted(self)
        return as_given(quadratic_form(read_feature_map(self, X), self.form_), X)

    def predict_pairs(self, X, Z=None) -> np.ndarray:
        """Values of h for all pairs of rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, d)
            Features of the samples, as given to ``fit``.
        Z : array-like of shape (k, d), default=None
            Further features; None stands for X.

        Returns
        -------
        h : ndarray of shape (n_samples, k)
            Of the library and device of X, as in :meth:`predict`.
        """
        check_is_fitted(self)
        phi = read_feature_map(self, X)
        other = phi if Z is None else read_feature_map(self, Z)
        values = (phi if self.form_ is None else phi @ self.form_) @ other.T
        return as_given(values.toarray() if sparse.issparse(values) else values, X)

    def score(self, X, y, sample_weight=None) -> float:
        """Minus the pair risk on held-out samples; greater is better.

        Parameters
        ----------
        X : array-like of shape (n_samples, d)
            Features of the samples, as given to ``fit``.
        y : array-like of shape (n_samples,) or (n_samples, m)
            Residuals.
        sample_weight : array-like of shape (n_samples,), default=None
            Importance weights of the pairs, w_i w_j.

        Returns
        -------
        score : float
        """
        check_is_fitted(self)
        phi, y = read_feature_map(self, X), self._check_residuals(y)
        return -float(pair_risk_path(phi, y, [self.form_], sample_weight=sample_weight)[0])

    def risk(self, X, y, sample_weight=None):
        """Pair risk on held-out samples, a :class:`~skcal.pair_risk.PairRisk`.

        Parameters
        ----------
        X : array-like of shape (n_samples, d)
            Features of the samples, as given to ``fit``.
        y : array-like of shape (n_samples,) or (n_samples, m)
            Residuals: outcomes minus predictions.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples; only their ratios matter. None: all equal.
        """
        check_is_fitted(self)
        phi, y = read_feature_map(self, X), self._check_residuals(y)
        return pair_risk(phi, y, self.form_, sample_weight=sample_weight)

    def _check_residuals(self, y):
        """Residuals (n, m) of the width of the fit."""
        residuals = _read_residuals(y)
        residuals = residuals.reshape(len(residuals), -1)
        if residuals.shape[1] != _fitted_width(self):
            raise ValueError(
                f"y has {residuals.shape[1]} columns of residuals, the function was fitted on "
                f"{self._n_residuals}. Pass the residuals of the same notion."
            )
        return residuals

    def _validate(self, X, y, sample_weight):
        """Check fit's arguments; return (X, residuals (n, m), weight) without weightless rows.

        A sum of weights below the effective sample size is raised to it.
        """
        X, y = decoded(X), decoded(y)
        if y is not None and not is_plain(y, 1, 2):
            refuse_no_numbers(y, "y")
            y = _read_residuals(y)
        if is_plain(X, 2) and is_plain(y, 1, 2) and len(X) == len(y):
            X = read_features(self, X, y)
        else:
            refuse_no_features(X, y)
            with naming("X", "y"):
                X, y = validate_data(self, X, y, dtype=FLOATS, multi_output=True, y_numeric=True)
        residuals = np.asarray(y, dtype=np.float64).reshape(len(X), -1)
        self._n_residuals = residuals.shape[1]
        weight = check_weight(sample_weight, len(X))
        if not weight.all():
            keep = weight > 0
            X, residuals, weight = X[keep], residuals[keep], weight[keep]
        return X, residuals, row_weights(weight)

    def _validate_features(self, X):
        check_is_fitted(self)
        return read_features(self, X, reset=False)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.single_output = True
        tags.target_tags.multi_output = True
        return tags


class BlockFits(ABC):
    """Fits of functions to unions of blocks of samples, which share what they compute.

    What is shared may come from the features and the weights of every block, also of one that tests
    a fit, but from residuals of those blocks alone that the function is fitted to.

    Attributes
    ----------
    of_single_blocks : bool
        Whether nothing but scores on the same block shares work, so that jobs may divide the
        blocks.
    rank : int
        The accuracy of an approximation that may be refined.
    """

    of_single_blocks = False
    rank = 0

    @abstractmethod
    def fit(self, function: BilinearFunction, training: tuple[int, ...]) -> BilinearFunction:
        """Return one of the functions, fitted to the blocks of these numbers."""

    @abstractmethod
    def scores(self, functions: Sequence, block: int, trainings: Sequence[tuple]) -> np.ndarray:
        """Return scores of fits on a block, (n_functions, n_trainings).

        Parameters
        ----------
        functions : sequence of calibration-estimation functions
        block : int
            The number of the block whose samples score.
        trainings : sequence of tuple of int
            The numbers of the blocks of each fit.
        """

    def coarser(self) -> BlockFits | None:
        """Return fits of half the accuracy; None where no approximation could be finer."""
        return None

    def finer(self) -> BlockFits:
        """Return fits of twice the accuracy, where there are coarser ones."""
        raise NotImplementedError


def takes_weight(fit: Callable) -> bool:
    """Whether a method ``fit`` takes ``sample_weight``."""
    parameters = signature(fit).parameters
    return "sample_weight" in parameters or any(
        parameter.kind is Parameter.VAR_KEYWORD for parameter in parameters.values()
    )


def read_feature_map(function: BilinearFunction, X) -> np.ndarray | sparse.sparray:
    """Return φ(x) of a fitted function for each row, and check it and ``form_``.

    Functions are often a user's own. A wrong shape would broadcast to a wrong number, or fail far
    from its cause.

    Parameters
    ----------
    function : calibration-estimation function
    X : array-like of shape (n_samples, d)

    Returns
    -------
    phi : ndarray or sparse array of shape (n_samples, r)

    Raises
    ------
    InputError
        If φ is not of this shape, ``form_`` is missing, not (r, r) or not symmetric, or one of them
        is not of finite numbers; names the class and the method.
    """
    if type(function).feature_map is BilinearFunction.feature_map:
        phi = read_residual(function, X)
    else:
        phi = _read_rows(function, "feature_map", X, None)
    _check_form(function, phi.shape[1])
    return phi


def read_residual(function: BilinearFunction, X) -> np.ndarray | sparse.sparray:
    """Return ĝ(x) of a fitted function for each row, and check it.

    Parameters
    ----------
    function : calibration-estimation function
    X : array-like of shape (n_samples, d)

    Returns
    -------
    residual : ndarray or sparse array of shape (n_samples, m)

    Raises
    ------
    InputError
        If it has not as many columns as the residuals of the fit, or is not of finite numbers;
        names the class and the method.
    """
    return _read_rows(function, "residual", X, _fitted_width(function))


def _read_rows(function, method, X, n_columns):
    """The result of a method as floats of shape (n_samples, n_columns)."""
    name = f"{type(function).__name__}.{method}(X)"
    rows = getattr(function, method)(X)
    if not sparse.issparse(rows):
        rows = _float_array(rows, name)
    n_samples = np.shape(X)[0]
    width = "n_columns" if n_columns is None else n_columns
    if rows.ndim != 2 or rows.shape != (n_samples, n_columns or rows.shape[1]):
        reason = f"returned shape {rows.shape} for {n_samples} rows."
        raise InputError(name, reason, f"Return an array of shape ({n_samples}, {width}).")
    _check_finite_rows(rows, name)
    return rows


def _float_array(values, name) -> np.ndarray:
    try:
        array = np.asarray(values)
        return array if array.dtype.kind == "f" else array.astype(np.float64)
    except (ValueError, TypeError) as error:
        reason = f"is a {type(values).__name__} that is not of numbers ({error})."
        raise InputError(name, reason, "Make it an array of floats.") from error


def _check_finite_rows(array, name):
    finite = np.isfinite(array.data if sparse.issparse(array) else array)
    if not finite.all():
        row = None if sparse.issparse(array) else int(np.argwhere(~finite)[0, 0])
        raise InputError(name, "holds NaN or infinity.", "Make it finite.", row=row)


def _check_form(function, n_columns):
    """Raise unless M is None or a symmetric, finite matrix of the width of φ."""
    name = f"{type(function).__name__}.form_"
    if not hasattr(function, "form_"):
        raise InputError(name, "is missing.", "Let fit set it: M, or None for the identity.")
    form = function.form_
    if form is None:
        return
    if not sparse.issparse(form):
        form = _float_array(form, name)
    if form.shape != (n_columns, n_columns):
        reason = f"has shape {form.shape}, feature_map(X) {n_columns} columns."
        remedy = f"Let fit set it to shape ({n_columns}, {n_columns}), or to None for the identity."
        raise InputError(name, reason, remedy)
    _check_finite_rows(form, name)
    if abs(form - form.T).max() > _ASYMMETRY_OF_M * abs(form).max():
        raise InputError(name, "is not symmetric.", "Set it to (M + M.T) / 2.")


def _fitted_width(function) -> int:
    """The number of columns of the residuals of the fit."""
    if not hasattr(function, "_n_residuals"):
        name = type(function).__name__
        remedy = "Let fit begin with X, residuals, weight = self._validate(X, y, sample_weight)."
        raise InputError(f"{name}.fit", "has not called _validate.", remedy)
    return function._n_residuals


def _read_residuals(y):
    if is_plain(y, 1, 2):
        return y
    with naming("y"):
        return check_array(decoded(y), dtype=FLOATS, ensure_2d=False, input_name="y")


def recover_outcomes(X: np.ndarray, residuals: np.ndarray, shares: bool = True) -> np.ndarray:
    """Return features + residuals, the outcome: one-hot rows, 0/1 for a single column, or shares.

    Parameters
    ----------
    X : ndarray of shape (n_samples, d)
        Predicted probabilities.
    residuals : ndarray of shape (n_samples, m)
    shares : bool, default=True
        Whether outcomes may be shares of the classes.

    Returns
    -------
    outcomes : ndarray of shape (n_samples, d)
        Exactly 0.0 or 1.0 up to 1e-5; of soft labels between, in rows that sum to 1.

    Raises
    ------
    ValueError
        Names the first row whose features and residuals do not add up to an outcome.
    """
    check_unit_interval(X)
    if residuals.shape[1] != X.shape[1]:
        raise ValueError(
            f"y has {residuals.shape[1]} columns, X has {X.shape[1]}: features and residuals must "
            "have equal widths to add up to outcomes."
        )
    outcomes = np.empty(X.shape, np.result_type(X, residuals))
    for rows in row_blocks(len(X), 4 * outcomes.itemsize * X.shape[1], most=_OUTCOME_BYTES):
        total = X[rows] + residuals[rows]
        whole = np.rint(total)
        close = (np.abs(total - whole) <= 1e-5).all(axis=1)
        outcome = outcomes[rows] = np.where(close[:, None], whole, total)
        wrong = ((outcome < 0) | (outcome > 1)).any(axis=1)
        if X.shape[1] > 1:
            wrong |= np.abs(outcome.sum(axis=1) - 1) > 1e-4
        if not shares:
            wrong |= (outcome != whole).any(axis=1)
        if wrong.any():
            first = int(np.argmax(wrong))
            row = rows.start + first
            raise ValueError(
                f"X row {row} and y row {row} add up to {_format(total[first])}, not to an outcome "
                f"(0 or 1, or a unit vector{', or shares' * shares}). Pass y = outcome - X."
            )
    return outcomes


def _format(row: np.ndarray) -> str:
    return "[" + ", ".join(f"{value:.4g}" for value in row[:4]) + (", …]" if len(row) > 4 else "]")
