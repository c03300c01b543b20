"""Kernel ridge forms on a low-rank factor of the kernel."""

from __future__ import annotations

import copy
import warnings
from abc import abstractmethod
from itertools import chain, islice
from numbers import Integral, Real
from typing import NamedTuple, Self

import numpy as np
from sklearn import get_config
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted, check_memory

from skcal._matrices import square_of_products, times_rows
from skcal._sklearn_compat import HasMethods, Interval, StrOptions, _fit_context
from skcal._validation import check_unit_interval
from skcal.functions.base import BilinearFunction, BlockFits
from skcal.kernels import (
    KERNEL_NAMES,
    KernelBasis,
    kernel_basis,
    kernel_diagonal,
    kernel_matrix,
    median_distance,
)
from skcal.pair_risk import pair_risk_path, plug_in_risks
from skcal.recalibration.features import COORDINATES

_ACCURACY = 1e-7  # of h beside its maximum, a tenth of what tol="auto" promises
_ROUNDING, _COARSEST = 1e-15, 1e-8  # tolerances between which it chooses
_FIRST_RANK = 150  # of fits that share a basis; twice as many while the chosen ones need it


class _KernelRidge(BilinearFunction):
    """Parameters and the shared factor of both kernel ridge forms."""

    _parameter_constraints: dict = {
        "alpha": [Interval(Real, 0, None, closed="neither")],
        "kernel": [StrOptions(set(KERNEL_NAMES)), callable],
        "gamma": [Interval(Real, 0, None, closed="neither"), StrOptions({"median"}), None],
        "degree": [Interval(Real, 0, None, closed="left")],
        "coef0": [Interval(Real, None, None, closed="neither")],
        "tol": [Interval(Real, 0, 1, closed="left"), StrOptions({"auto"})],
        "max_rank": [Interval(Integral, 1, None, closed="left"), None],
        "coordinates": [StrOptions(set(COORDINATES)), None],
        "memory": [str, HasMethods("cache"), None],
    }

    def __init__(
        self,
        alpha=1e-6,
        kernel="rbf",
        gamma=1.0,
        degree=3,
        coef0=1,
        tol="auto",
        max_rank=None,
        coordinates=None,
        memory=None,
    ):
        self.alpha = alpha
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.tol = tol
        self.max_rank = max_rank
        self.coordinates = coordinates
        self.memory = memory

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y, sample_weight=None) -> Self:
        """Factor the kernel and solve for M.

        Parameters
        ----------
        X : array-like of shape (n_samples, d)
            Features, any real numbers.
        y : array-like of shape (n_samples,) or (n_samples, m)
            Residuals.
        sample_weight : array-like of shape (n_samples,), default=None

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            If the kernel returns values that are not finite, or is not positive semidefinite.
        """
        X, residuals, weight = self._validate(X, y, sample_weight)
        basis = self._basis(X, weight)
        return self._fit_moments(basis, _Moments.of(basis.psi, residuals, weight))

    def _basis(self, X, weight, rank=None):
        """Set the kernel's width and tolerance; return the basis that it has on rows of X."""
        X = self._in_coordinates(X)
        self.gamma_ = self._width(X)
        self.tol_ = self._tolerance(X, weight)
        rank = self._rank_limit(len(X)) if rank is None else rank
        options = self.kernel, self._kernel_parameters(), self.tol_, rank
        basis = check_memory(self.memory).cache(kernel_basis)(X, weight, *options)
        if not isinstance(basis, KernelBasis) or basis.landmarks.shape[1:] != X.shape[1:]:
            warnings.warn(
                f"memory={self.memory!r} holds {type(basis).__name__} in place of a factor, which "
                "is computed anew. Empty that folder.",
                stacklevel=2,
            )
            basis = kernel_basis(X, weight, *options)
        return basis

    def _fit_moments(self, basis, moments):
        """Rotate the features of a basis for training samples of these moments, and solve."""
        factor = basis.rotated(moments.gram)
        self.landmarks_, self.projection_ = factor.landmarks, factor.projection
        self.eigenvalues_ = factor.eigenvalues
        self.rank_, self.trace_error_ = len(factor.landmarks), factor.trace_error
        self.approximation_ = factor.approximation
        self._rotation = factor.rotation
        self._moments = moments.cross @ factor.rotation  # Ã U (m, r)
        self._total = moments.total
        self._solve()
        return self

    @property
    def _blocks_share(self):
        """See ``BilinearFunction``; "median" is a width of the training samples alone."""
        return None if self.gamma == "median" else "fits"

    def _over_blocks(self, blocks):
        """See ``BilinearFunction``; the fits have one basis."""
        return _BlockFits(self, blocks)

    @abstractmethod
    def _solve(self):
        """Set what depends on ``alpha`` from the moments and the eigenvalues."""

    @abstractmethod
    def _forms(self, alphas, n_residuals):
        """M under each ``alpha``, or None where products of as many residuals cost less."""

    path_parameter = "alpha"

    def _tolerance(self, X, weight):
        """Share of the trace that changes h by less than ``_ACCURACY`` of its maximum.

        What is left out of K, of norm at most tol tr K, moves ĝ by that over nα and the Kronecker
        solution, where it is multiplied by K, by tol (tr K)² over n²α.
        """
        if self.tol != "auto":
            return self.tol
        diagonal = kernel_diagonal(X, self.kernel, self._kernel_parameters())
        mean = weight @ diagonal / weight.sum()
        share = _ACCURACY * self.alpha / max(mean, mean**2, np.finfo(np.float64).tiny)
        return float(np.clip(share, _ROUNDING, _COARSEST))

    def shares_factor(self, other) -> bool:
        """Whether a fit of ``other`` factors the same kernel matrix, accurately enough."""
        if not isinstance(other, _KernelRidge):
            return False
        if self.tol == "auto" and self.alpha < other.alpha:
            return False
        mine, its = self.get_params(deep=False), other.get_params(deep=False)
        return all(
            mine[name] is its[name] or mine[name] == its[name]
            for name in mine.keys() - {"alpha", "memory"}
        )

    def serving_value(self, values):
        """Return the smallest ``alpha``, at which h needs the most accurate factor."""
        return min(values)

    def with_factor_of(self, fitted):
        """See ``BilinearFunction``; it takes O(r²)."""
        function = copy.copy(self)
        own = {*self._parameter_constraints, "form_", "coef_"}
        function.__dict__.update({k: v for k, v in vars(fitted).items() if k not in own})
        function._solve()
        return function

    def _with_alpha(self, alpha):
        function = copy.copy(self)
        function.alpha = alpha
        function._solve()
        return function

    def score_path(self, X, y, values, sample_weight=None):
        """See ``BilinearFunction``; the features of the samples are computed once."""
        check_is_fitted(self)
        alphas = np.asarray(values, dtype=np.float64)
        if not (alphas.size and (alphas > 0).all()):
            raise ValueError(f"alphas is {alphas.tolist()}; pass at least one, every alpha > 0.")
        features, y = self._factor_features(X), self._check_residuals(y)
        return -_risks([(self, alphas)], features, y, sample_weight)

    def _rank_limit(self, n_samples):
        """The rank that was asked for, or at which the (n, r) factor fills ``working_memory``."""
        if self.max_rank is not None:
            return min(n_samples, self.max_rank)
        held = int(get_config()["working_memory"] * 2**20 / (8 * n_samples))
        return min(n_samples, max(1, held))

    def _in_coordinates(self, X):
        if self.coordinates is None:
            return X
        check_unit_interval(X)
        return COORDINATES[self.coordinates](X)

    def _width(self, X):
        if self.gamma != "median":
            return self.gamma
        if self.kernel == "rbf":
            return 1 / (2 * median_distance(X, "euclidean") ** 2)
        if self.kernel == "laplacian":
            return 1 / median_distance(X, "cityblock")
        raise ValueError(
            f'gamma="median" is for the kernels "rbf" and "laplacian", not {self.kernel!r}. Pass a '
            "number."
        )

    def _kernel_parameters(self):
        return {"gamma": self.gamma_, "degree": self.degree, "coef0": self.coef0}

    def _factor_features(self, X):
        """Uᵀψ(x), the features before ``alpha`` enters."""
        X = self._in_coordinates(self._validate_features(X))
        return kernel_matrix(X, self.landmarks_, self.kernel, self._kernel_parameters()) @ (
            self.projection_
        )


class KroneckerKernelRidge(_KernelRidge):
    """Estimate miscalibration by kernel ridge regression on pairs of predictions.

    Parameters
    ----------
    alpha : float > 0, default=1e-6
        λ of [1]_, Eq. (27); the penalty that is added to products of eigenvalues is n²λ.
    kernel : str or callable, default="rbf"
        A name of :func:`sklearn.metrics.pairwise.pairwise_kernels`, or a callable that takes
        (n, d) and (k, d) and returns the (n, k) matrix. Positive semidefinite.
    gamma : float > 0, "median" or None, default=1.0
        The parameter γ of the rbf, laplacian, polynomial, sigmoid and chi2 kernels. "median":
        1/(2 m²) for rbf and 1/m for laplacian, with m the median distance of the rows
        (weights aside). None: scikit-learn's default.
    degree : float, default=3
        The degree of the polynomial kernel.
    coef0 : float, default=1
        The constant of the polynomial and sigmoid kernels.
    tol : float in [0, 1) or "auto", default="auto"
        Share of the kernel's trace that its low-rank factor may leave out. "auto" follows
        ``alpha``, so that h(x, x) is off by less than 1e-6 of its maximum. If ``alpha`` is below
        4e-9, it is off by less than 4e-15 / alpha, the accuracy that the kernel's rounding allows.
        (Of a kernel of mean diagonal m ≠ 1 read alpha / max(m, m²) for alpha.)
    max_rank : int, default=None
        Largest rank of the factor. None: as large as ``working_memory`` (see
        :func:`sklearn.set_config`) holds; n asks for the exact decomposition.
    coordinates : {"square-root", "log", "log-ratio", "probability"} or None, default=None
        The coordinates in which the kernel measures: √p (Hellinger distances), log p, log p minus
        its mean (Aitchison's), or the features as they are.
    memory : str or object with the joblib.Memory interface, default=None
        Caches the factor, so that both ridge forms and every ``alpha`` of one ``tol_`` share it.

    Attributes
    ----------
    form_ : ndarray of shape (r, r)
        M; not always positive semidefinite, so that h(x, x) may be negative.
    gamma_ : float or None
        The width used.
    tol_ : float
        The tolerance used.
    landmarks_ : ndarray of shape (r, d)
    projection_ : ndarray of shape (r, r)
        φ(x) is ``k(x, landmarks_) @ projection_``.
    eigenvalues_ : ndarray of shape (r,)
        The eigenvalues of the factored kernel matrix.
    rank_ : int
    trace_error_ : float
        Share of the trace left out.
    approximation_ : {"low-rank", "exact", "nystroem"}
        "low-rank": ``tol`` was reached. "nystroem": the rank limit came first; see
        ``trace_error_``.
    n_features_in_ : int

    See Also
    --------
    skcal.TwoStepKernelRidge : regresses δ first and takes the product afterwards.

    Notes
    -----
    The products ⟨δ, δ'⟩ of residuals are regressed on pairs, in the tensor-product space.
    O(n r²) time and O(n r) memory, r the numerical rank; every further ``alpha`` O(r²).

    References
    ----------
    .. [1] Gruber & Bach, Optimizing Estimators of Squared Calibration Errors in Classification,
       TMLR 2025, Eq. (27)-(29).

    Examples
    --------
    >>> import numpy as np
    >>> from skcal import KroneckerKernelRidge
    >>> confidence = np.linspace(0.5, 1, 20)[:, None]
    >>> residuals = np.where(np.arange(20) % 2, 0.1, -0.3)
    >>> ridge = KroneckerKernelRidge(alpha=1e-3).fit(confidence, residuals)
    >>> ridge.predict(confidence).mean().round(3)
    np.float64(0.01)
    """

    def _solve(self):
        # [GB] Eq. (29) on the factor: M = (UᵀÃᵀÃU) ⊘ (ssᵀ + n²λ), nothing divides by a small s.
        penalty = self._total**2 * self.alpha
        s = self.eigenvalues_
        self.form_ = (self._moments.T @ self._moments) / (np.outer(s, s) + penalty)

    def _forms(self, alphas, n_residuals):
        return (function.form_ for function in map(self._with_alpha, alphas))

    def feature_map(self, X):
        """Return φ(x), the rotated kernel features, shape ``(n_samples, rank_)``.

        Parameters
        ----------
        X : array-like of shape (n_samples, d)
            Features of the samples, as given to ``fit``.
        """
        return self._factor_features(X)


class TwoStepKernelRidge(_KernelRidge):
    """Estimate miscalibration by kernel ridge regression of the residuals.

    Parameters
    ----------
    alpha : float > 0, default=1e-6
        λ of [1]_, Eq. (32); the penalty that is added to eigenvalues is nλ.
    kernel : str or callable, default="rbf"
        A name of :func:`sklearn.metrics.pairwise.pairwise_kernels`, or a callable that takes
        (n, d) and (k, d) and returns the (n, k) matrix. Positive semidefinite.
    gamma : float > 0, "median" or None, default=1.0
        The parameter γ of the rbf, laplacian, polynomial, sigmoid and chi2 kernels. "median":
        1/(2 m²) for rbf and 1/m for laplacian, with m the median distance of the rows
        (weights aside). None: scikit-learn's default.
    degree : float, default=3
        The degree of the polynomial kernel.
    coef0 : float, default=1
        The constant of the polynomial and sigmoid kernels.
    tol : float in [0, 1) or "auto", default="auto"
        Share of the kernel's trace that its low-rank factor may leave out. "auto" follows
        ``alpha``, so that h(x, x) is off by less than 1e-6 of its maximum. If ``alpha`` is below
        4e-9, it is off by less than 4e-15 / alpha, the accuracy that the kernel's rounding allows.
        (Of a kernel of mean diagonal m ≠ 1 read alpha / max(m, m²) for alpha.)
    max_rank : int, default=None
        Largest rank of the factor. None: as large as ``working_memory`` (see
        :func:`sklearn.set_config`) holds; n asks for the exact decomposition.
    coordinates : {"square-root", "log", "log-ratio", "probability"} or None, default=None
        The coordinates in which the kernel measures: √p (Hellinger distances), log p, log p minus
        its mean (Aitchison's), or the features as they are.
    memory : str or object with the joblib.Memory interface, default=None
        Caches the factor, so that both ridge forms and every ``alpha`` of one ``tol_`` share it.

    Attributes
    ----------
    form_ : None
        The identity.
    coef_ : ndarray of shape (r, m)
        ĝ(x) is ``k(x, landmarks_) @ projection_ @ coef_``.
    gamma_, tol_, landmarks_, projection_, eigenvalues_, rank_, trace_error_, approximation_
        The attributes of :class:`skcal.KroneckerKernelRidge`.
    n_features_in_ : int

    See Also
    --------
    skcal.KroneckerKernelRidge : regresses the products of residuals themselves.

    Notes
    -----
    The estimate of the residual is ĝ(x) = Δᵀ(K + nλI)⁻¹k(x), and h = ⟨ĝ, ĝ⟩. O(n r²) time and
    O(n r) memory, r the numerical rank; every further ``alpha`` O(r m).

    References
    ----------
    .. [1] Gruber & Bach, Optimizing Estimators of Squared Calibration Errors in Classification,
       TMLR 2025, Eq. (32).

    Examples
    --------
    >>> import numpy as np
    >>> from skcal import TwoStepKernelRidge
    >>> confidence = np.linspace(0.5, 1, 20)[:, None]
    >>> ridge = TwoStepKernelRidge(alpha=1e-3).fit(confidence, np.full(20, -0.1))
    >>> ridge.residual([[0.7]]).round(3)
    array([[-0.101]])
    """

    def _solve(self):
        # [GB] Eq. (32) on the factor: ĝ(x) = (ÃU) diag(1/(s + nλ)) Uᵀψ(x).
        penalty = self._total * self.alpha
        self.coef_ = (self._moments / (self.eigenvalues_ + penalty)).T
        self.form_ = None

    def _forms(self, alphas, n_residuals):
        if n_residuals <= self.rank_:
            return None
        # M of the features is smaller than ĝ of many classes.
        return (function.coef_ @ function.coef_.T for function in map(self._with_alpha, alphas))

    def residual(self, X):
        """Return the estimated residual ĝ(x) of each row, shape (n_samples, m).

        Parameters
        ----------
        X : array-like of shape (n_samples, d)
            Features of the samples, as given to ``fit``.
        """
        return self._factor_features(X) @ self.coef_


def _risks(paths, features, y, sample_weight, constant=None):
    """Risks of functions of one factor under their values of ``alpha``, path after path.

    Parameters
    ----------
    paths : list of (fitted function, values)
    features : ndarray of shape (n_samples, r)
        Those of the factor.
    y : ndarray of shape (n_samples, m)
    sample_weight : ndarray of shape (n_samples,) or None
    constant : float, default=None
        As of :func:`pair_risk_path`.
    """
    forms = [function._forms(values, y.shape[1]) for function, values in paths]
    every = [form for form in forms if form is not None]
    by_form = iter(())
    if every:
        options = {"sample_weight": sample_weight, "constant": constant}
        by_form = iter(pair_risk_path(features, y, chain(*every), **options))
    risks: list = []
    for (function, values), form in zip(paths, forms, strict=True):
        if form is None:
            phis = (features @ one.coef_ for one in map(function._with_alpha, values))
            risks.append(plug_in_risks(phis, y, sample_weight=sample_weight))
        else:
            risks.append(list(islice(by_form, len(values))))
    return np.concatenate(risks)


class _Moments(NamedTuple):
    """Sums over samples of which a fit is a function: ΨᵀWΨ (r, r), Ã = ΔᵀWΨ (m, r), and Σ w."""

    gram: np.ndarray
    cross: np.ndarray
    total: float

    @classmethod
    def of(cls, psi, residuals, weight):
        """Sum over the rows of Ψ (n, r)."""
        weighted = times_rows(psi, np.sqrt(weight))
        return cls(weighted.T @ weighted, (residuals * weight[:, None]).T @ psi, weight.sum())

    def __add__(self, other):
        return _Moments(*(one + more for one, more in zip(self, other, strict=True)))

    def first(self, rank):
        """The moments of the first features."""
        return _Moments(self.gram[:rank, :rank], self.cross[:, :rank], self.total)


class _BlockFits(BlockFits):
    """Ridge forms on one basis, the landmarks of which are predictions of all blocks.

    Landmarks are chosen by the features and weights of the samples, never by their residuals, so
    that those of a block which tests a fit may be among them.
    """

    def __init__(self, function, blocks, rank=None):
        self._function, self._blocks, self._fits = clone(function), blocks, {}
        X, residuals, weight = self._function._validate(
            *map(np.concatenate, zip(*blocks, strict=True))
        )
        limit = self._function._rank_limit(len(X))
        self._rank = min(rank or _FIRST_RANK, limit)
        self._basis = self._function._basis(X, weight, self._rank)
        self._may_grow = self._basis.approximation == "nystroem" and self._rank < limit
        ends = np.cumsum([np.count_nonzero(weight) for _, _, weight in blocks])[:-1]
        self._parts = list(
            zip(
                *(np.split(rows, ends) for rows in (self._basis.psi, residuals, weight)),
                strict=True,
            )
        )
        self._moments = [_Moments.of(*part) for part in self._parts]
        self._squares = [
            square_of_products(times_rows(residuals, np.sqrt(weight)))
            for _, residuals, weight in self._parts
        ]

    def coarser(self):
        """The fits of half the rank, where the rank is what limits them."""
        if not self._may_grow:
            return None
        coarser, rank = copy.copy(self), self._rank // 2
        coarser._basis, coarser._fits = self._basis.first(rank), {}
        coarser._parts = [(psi[:, :rank], *others) for psi, *others in self._parts]
        coarser._moments = [moments.first(rank) for moments in self._moments]
        return coarser

    def finer(self):
        """The fits of twice the rank."""
        return _BlockFits(self._function, self._blocks, 2 * self._rank)

    def fit(self, training):
        """See ``BlockFits``; a sum of the moments of blocks."""
        if training not in self._fits:
            moments = sum((self._moments[k] for k in training[1:]), self._moments[training[0]])
            self._fits[training] = copy.copy(self._function)._fit_moments(self._basis, moments)
        return self._fits[training]

    def scores(self, paths, block, trainings):
        """See ``BlockFits``."""
        psi, residuals, weight = self._parts[block]
        scores = []
        for fitted in map(self.fit, trainings):
            features = psi @ fitted._rotation
            fits = [(function.with_factor_of(fitted), values) for function, values in paths]
            scores.append(-_risks(fits, features, residuals, weight, self._squares[block]))
        return np.stack(scores, axis=1)
