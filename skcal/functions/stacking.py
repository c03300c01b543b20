"""A weighted sum of calibration-estimation functions, the weights chosen by the risk."""

from __future__ import annotations

import copy
from itertools import zip_longest
from numbers import Integral
from typing import Self

import numpy as np
from scipy import sparse
from scipy.linalg import block_diag, eigh
from scipy.optimize import nnls
from sklearn.base import clone
from sklearn.model_selection import KFold
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from skcal._groups import GroupBlocks, read_groups
from skcal._sklearn_compat import Interval, _fit_context
from skcal.functions.base import BilinearFunction, read_feature_map, read_residual
from skcal.functions.plug_in import proba_of_logits
from skcal.pair_risk import pair_products

_GRAM_ROUNDING = 1e-10  # eigenvalues of a Gram matrix of unit diagonal below this are noise


def _all_have_residual(self):
    return all(hasattr(function, "residual") for function in self.functions)


class Stacking(BilinearFunction):
    """Combine calibration functions by weights that are chosen on out-of-fold samples.

    Parameters
    ----------
    functions : list of calibration-estimation functions
        The functions to combine.
    cv : int ≥ 2, default=5
        Folds whose held-out parts choose the weights; fewer if there are fewer than 2 cv samples.
    random_state : int, RandomState instance or None, default=None
        Shuffles the folds.

    Attributes
    ----------
    weights_ : ndarray of shape (n_functions,)
        a.
    residual_weights_ : ndarray of shape (n_functions,)
        b ≥ 0 of ``residual``; only where all functions have it.
    functions_ : list of fitted functions
        Refitted on all samples.
    form_ : array or sparse array of shape (r, r)
        The forms of the functions along the diagonal, times their weights.
    n_features_in_ : int

    Notes
    -----
    The combination is h = Σ_k a_k h_k with the weights a ≥ 0 of the lowest pair risk. The pair risk
    is quadratic in a. Its matrix Σ_{i≠j} h_k h_l comes from the factored forms in O(n r²), and the
    weights from non-negative least squares. With fewer than 4 samples the weights are 0. A fit
    costs cv + 1 fits of each function.

    ``residual`` is ĝ = Σ_k b_k ĝ_k, with b ≥ 0 by least squares on the out-of-fold residuals. The
    one-step estimate rests on it; h is not ⟨ĝ, ĝ⟩.

    Examples
    --------
    >>> from skcal import Binning, CalibrationErrorEstimator, Stacking, Zero
    >>> from skcal.datasets import make_tempered
    >>> data = make_tempered(1000, temperature=2.0, n_truth_draws=0, random_state=0)
    >>> stack = Stacking([Binning(5), Binning(50), Zero()])
    >>> estimator = CalibrationErrorEstimator(stack, "confidence").fit(data.proba, data.labels)
    >>> [function] = estimator.functions_
    >>> function.weights_.shape
    (3,)
    """

    _parameter_constraints: dict = {
        "functions": [list, tuple],
        "cv": [Interval(Integral, 2, None, closed="left")],
        "random_state": ["random_state"],
    }

    def __init__(self, functions, cv=5, random_state=None):
        self.functions = functions
        self.cv = cv
        self.random_state = random_state

    @property
    def reads_logits(self):
        """Whether one of the functions takes logits."""
        return any(function.reads_logits for function in self.functions)

    def reading(self, from_logits):
        """Return this function for predictions that are logits, or probabilities.

        Parameters
        ----------
        from_logits : bool
            Whether predictions are logits.
        """
        functions = [function.reading(from_logits) for function in self.functions]
        changed = any(a is not b for a, b in zip(functions, self.functions, strict=True))
        return clone(self).set_params(functions=functions) if changed else self

    def _seen_by(self, function, X):
        """Features as one of the functions reads them."""
        same = function.reads_logits == self.reads_logits
        return X if same else proba_of_logits(X)

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(self, X, y, sample_weight=None, groups=None) -> Self:
        """Choose the weights on held-out folds and fit every function on all samples.

        Parameters
        ----------
        X : array-like of shape (n_samples, d)
            Features.
        y : array-like of shape (n_samples,) or (n_samples, m)
            Residuals.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples.
        groups : array-like of shape (n_samples,), default=None
            Samples of one group may depend on each other, so that folds hold whole groups. None:
            all are independent.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            If there is no function, or one cannot be fitted.
        """
        X, residuals, weight = self._validate(X, y, sample_weight)
        together = read_groups(groups, weight)
        products = self._held_out_products(X, residuals, weight, together)
        return self._combine(self.fit_parts(X, residuals, weight), products)

    @property
    def parts(self):
        """The functions whose fits :meth:`combined` takes."""
        return self.functions

    def combined(self, fitted, products):
        """Combine fitted functions with the weights that ``products`` gives.

        Parameters
        ----------
        fitted : list of fitted functions
            The result of :meth:`fit_parts`.
        products : ndarray of shape (2, n_functions, n_functions + 1)
            The sum of :meth:`products` over sets of samples that other fits held out.

        Returns
        -------
        stack : Stacking
        """
        stack = copy.copy(self)
        stack._n_residuals, stack.n_features_in_ = fitted[0]._n_residuals, fitted[0].n_features_in_
        return stack._combine(fitted, products)

    def _combine(self, fitted, products):
        self.functions_ = fitted
        self.weights_ = best_weights(products[0])
        if _all_have_residual(self):
            self.residual_weights_ = best_weights(products[1])
        used = [(f, a) for f, a in zip(self.functions_, self.weights_, strict=True) if a > 0]
        self._used = [function for function, _ in used]
        blocks = [a * (np.eye(_n_features_of(f)) if f.form_ is None else f.form_) for f, a in used]
        self.form_ = _block_diagonal(blocks) if blocks else np.zeros((1, 1))
        return self

    def _check_functions(self):
        for position, function in enumerate(self.functions):
            if not isinstance(function, BilinearFunction):
                raise ValueError(
                    f"functions[{position}] is {function!r}. Pass calibration-estimation "
                    "functions, such as skcal.Binning(); wrap scikit-learn estimators and "
                    "recalibration maps as skcal.PlugIn(estimator)."
                )
        if not self.functions:
            raise ValueError("functions is empty. Pass at least one function.")

    def fit_parts(self, X, residuals, weight, known=()):
        """Fit clones of all functions.

        Parameters
        ----------
        X : ndarray of shape (n_samples, d)
            Features of the samples, as given to ``fit``.
        residuals : ndarray of shape (n_samples, m)
            Outcomes minus predictions, a column for each output.
        weight : ndarray of shape (n_samples,)
            Weights of the samples.
        known : sequence of fitted functions or None
            Of each function its fit to these samples, or None; none is known if it is empty.

        Returns
        -------
        fitted : list of fitted functions
        """
        self._check_functions()
        return [
            clone(function).fit(self._seen_by(function, X), residuals, sample_weight=weight)
            if known_fit is None
            else known_fit
            for function, known_fit in zip_longest(self.functions, known)
        ]

    def _held_out_products(self, X, residuals, weight, groups):
        count, n_units = len(self.functions), groups.n_units(len(X))
        n_splits = min(self.cv, n_units // 2)
        total = np.zeros((2, count, count + 1))
        if n_splits >= 2:
            folds = KFold(n_splits, shuffle=True, random_state=self.random_state)
            codes = None
            if not groups.independent:
                seed = check_random_state(self.random_state).randint(2**31 - 1)
                folds, codes = GroupBlocks(n_splits, seed), groups.codes
            for train, test in folds.split(X, groups=codes):
                fitted = self.fit_parts(X[train], residuals[train], weight[train])
                total += self.products(fitted, X[test], residuals[test], weight[test])
        return total

    def products(self, fitted, X, residuals, weight):
        """Return the sums over held-out samples from which the weights are computed.

        Parameters
        ----------
        fitted : list of fitted functions
            Those that ``fit_parts`` returned, one for each candidate.
        X : ndarray of shape (n_samples, d)
            Features of the samples, as given to ``fit``.
        residuals : ndarray of shape (n_samples, m)
            Outcomes minus predictions, a column for each output.
        weight : ndarray of shape (n_samples,)
            Weights of the samples.

        Returns
        -------
        products : ndarray of shape (2, n_functions, n_functions + 1)
            Products of the functions h with each other and, in the last column, with the
            residuals, over pairs; the same of the corrections ĝ over samples, or zeros.
        """
        seen = [self._seen_by(function, X) for function in fitted]
        parts = [
            (read_feature_map(f, features), f.form_)
            for f, features in zip(fitted, seen, strict=True)
        ]
        both = [pair_products(parts, residuals, weight)]
        if _all_have_residual(self):
            corrections = [
                read_residual(f, features) for f, features in zip(fitted, seen, strict=True)
            ]
            both.append(_residual_products(corrections, residuals, weight))
        total = np.zeros((2, len(fitted), len(fitted) + 1))
        for products, (gram, moments) in zip(total, both, strict=False):
            products[:, :-1], products[:, -1] = gram, moments
        return total

    def feature_map(self, X):
        """Return φ(x) of the functions of positive weight, side by side.

        Parameters
        ----------
        X : array-like of shape (n_samples, d)
            Features of the samples, as given to ``fit``.
        """
        X = self._validate_features(X)
        if not self._used:
            return np.zeros((len(X), 1))
        parts = [read_feature_map(function, self._seen_by(function, X)) for function in self._used]
        return (
            sparse.hstack(parts, format="csr")
            if any(sparse.issparse(part) for part in parts)
            else np.hstack(parts)
        )

    @available_if(_all_have_residual)
    def residual(self, X):
        """Estimate ĝ(x) = Σ_k b_k ĝ_k(x) of E[δ | x], shape (n_samples, m).

        Parameters
        ----------
        X : array-like of shape (n_samples, d)
            Features of the samples, as given to ``fit``.
        """
        check_is_fitted(self)
        X = self._validate_features(X)
        total = np.zeros((len(X), self._n_residuals))
        for function, weight in zip(self.functions_, self.residual_weights_, strict=True):
            if weight > 0:
                total += weight * read_residual(function, self._seen_by(function, X))
        return total


def _block_diagonal(blocks):
    if any(sparse.issparse(block) for block in blocks):
        return sparse.block_diag([sparse.csr_array(block) for block in blocks], format="csr")
    return block_diag(*blocks)


def _residual_products(fitted, residuals, weight):
    """Σ w ⟨ĝ_k, ĝ_l⟩ and Σ w ⟨ĝ_k, δ⟩ over held-out samples."""
    rows = np.stack([np.sqrt(weight)[:, None] * correction for correction in fitted]).reshape(
        len(fitted), -1
    )
    target = (np.sqrt(weight)[:, None] * residuals).ravel()
    return rows @ rows.T, rows @ target


def _n_features_of(function):
    """How many features φ has, by a row that may be one of logits or of probabilities."""
    value = 0.0 if function.reads_logits else 1 / function.n_features_in_
    return read_feature_map(function, np.full((1, function.n_features_in_), value)).shape[1]


def best_weights(products):
    """Return the a ≥ 0 that minimise aᵀGa - 2 mᵀa; functions that are zero get no weight.

    Parameters
    ----------
    products : ndarray of shape (k, k + 1)
        G and m side by side: the products of the functions with each other, and the residuals.
    """
    gram, moments = products[:, :-1], products[:, -1]
    weights = np.zeros(len(moments))
    alive = np.flatnonzero(np.diagonal(gram) > 0)
    if len(alive):
        scale = 1 / np.sqrt(np.diagonal(gram)[alive])
        values, vectors = eigh(gram[np.ix_(alive, alive)] * np.outer(scale, scale))
        root = np.sqrt(np.maximum(values, _GRAM_ROUNDING * values.max()))
        target = (vectors.T @ (moments[alive] * scale)) / root
        weights[alive] = nnls(root[:, None] * vectors.T, target)[0] * scale
    return weights
