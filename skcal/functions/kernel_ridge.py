"""Kernel ridge forms on a low-rank factor of the kernel."""

from __future__ import annotations

import copy
from abc import abstractmethod
from functools import cached_property
from itertools import compress
from numbers import Integral, Real
from typing import NamedTuple, Self

import numpy as np
from scipy.linalg import eigh
from sklearn import get_config
from sklearn.base import clone

from skcal._matrices import square_of_products, times_rows
from skcal._sklearn_compat import Interval, StrOptions, _fit_context
from skcal._validation import check_unit_interval, row_blocks
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

_ACCURACY_OF_H = 1e-7  # of h beside its maximum, a tenth of what tol="auto" promises
_FINEST_TOL, _COARSEST = 1e-15, 1e-8  # tolerances between which it chooses
_PENALTY_BYTES = 2**20  # of penalised products of eigenvalues
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
    ):
        self.alpha = alpha
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.tol = tol
        self.max_rank = max_rank
        self.coordinates = coordinates

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
        basis = self._basis(X, weight, self._rank_limit(len(X)))
        rotation = self._take_factor(basis, _Moments.of(basis.psi, residuals, weight))
        self.projection_ = basis.projection(rotation)
        self._solve()
        return self

    def _basis(self, X, weight, rank) -> KernelBasis:
        """Set the kernel's width and tolerance; return the basis that it has on rows of X."""
        X = self._in_coordinates(X)
        self.gamma_ = self._width(X)
        self.tol_ = self._tolerance(X, weight)
        return kernel_basis(X, weight, self.kernel, self._kernel_parameters(), self.tol_, rank)

    def _take_factor(self, basis, moments):
        """Take the eigenvectors that training samples of these moments have; return them."""
        self.eigenvalues_, rotation = eigh(moments.gram)
        self.landmarks_, self.rank_ = basis.landmarks, len(basis.landmarks)
        self.trace_error_, self.approximation_ = basis.trace_error, basis.approximation
        self._moments = moments.cross @ rotation  # Ã U (m, r)
        self._total = moments.total
        return rotation

    def _solved_by(self, fitted):
        """A copy of this function, fitted by the factor that another one has taken, in O(r²)."""
        function: _KernelRidge = copy.copy(self)
        solution = {*self._parameter_constraints, "form_", "coef_"}
        function.__dict__.update({k: v for k, v in vars(fitted).items() if k not in solution})
        function._solve()
        return function

    @abstractmethod
    def _solve(self):
        """Set what depends on ``alpha`` from the moments and the eigenvalues."""

    @abstractmethod
    def _risk_form(self):
        """M on the features of the factor, where :meth:`_has_risk_form`."""

    def _has_risk_form(self, n_residuals, rank):
        """Whether products with M give the risk, and not products of as many residuals."""
        return True

    def _shares_with(self, other) -> bool:
        """See ``BilinearFunction``; the kernel matrix is the same."""
        if not isinstance(other, _KernelRidge):
            return False
        mine, its = self.get_params(deep=False), other.get_params(deep=False)
        return all(mine[k] is its[k] or mine[k] == its[k] for k in mine.keys() - {"alpha"})

    def _over_blocks(self, functions, blocks):
        """See ``BilinearFunction``; the smallest ``alpha`` needs the most accurate factor."""
        return _RidgeFits(min(functions, key=lambda function: function.alpha), blocks, _FIRST_RANK)

    def _tolerance(self, X, weight):
        """Share of the trace that changes h by less than ``_ACCURACY_OF_H`` of its maximum.

        What is left out of K, of norm at most tol tr K, moves ĝ by that over nα and the Kronecker
        solution, where it is multiplied by K, by tol (tr K)² over n²α.
        """
        if self.tol != "auto":
            return self.tol
        diagonal = kernel_diagonal(X, self.kernel, self._kernel_parameters())
        mean = weight @ diagonal / weight.sum()
        share = _ACCURACY_OF_H * self.alpha / max(mean, mean**2, np.finfo(np.float64).tiny)
        return float(np.clip(share, _FINEST_TOL, _COARSEST))

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
        s, penalty = self.eigenvalues_, self._total**2 * self.alpha
        self.form_ = self._moments.T @ self._moments
        for rows in row_blocks(len(s), 8 * len(s), most=_PENALTY_BYTES):
            self.form_[rows] /= np.outer(s[rows], s) + penalty

    def _risk_form(self):
        return self.form_

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

    def _risk_form(self):
        return self.coef_ @ self.coef_.T

    def _has_risk_form(self, n_residuals, rank):
        return n_residuals > rank

    def residual(self, X):
        """Return the estimated residual ĝ(x) of each row, shape (n_samples, m).

        Parameters
        ----------
        X : array-like of shape (n_samples, d)
            Features of the samples, as given to ``fit``.
        """
        return self._factor_features(X) @ self.coef_


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
        return _Moments(*(mine + more for mine, more in zip(self, other, strict=True)))

    def first(self, rank):
        """The moments of the first features."""
        return _Moments(self.gram[:rank, :rank], self.cross[:, :rank], self.total)


class _RidgeFits(BlockFits):
    """Ridge forms on one basis, the landmarks of which are predictions of all blocks.

    Landmarks, and a median width, come from the features and weights of the samples, never from
    their residuals, so that those of a block which tests a fit may take part.
    """

    def __init__(self, function, blocks, rank, half=None):
        self._function, self._blocks, self.rank = clone(function), blocks, rank
        self._half = half  # the fits of half the rank that these refine
        self._factors: dict[tuple[int, ...], tuple] = {}
        self._fitted: dict[tuple[int, ...], _KernelRidge] = {}
        self._known: dict[tuple, float] = {}  # scores

    @cached_property
    def _sums(self) -> _SharedSums:
        """What all fits share, computed by the job that needs it first."""
        function = self._function
        X, residuals, weight = function._validate(
            *map(np.concatenate, zip(*self._blocks, strict=True))
        )
        limit = function._rank_limit(len(X))
        rank = min(self.rank, limit)
        basis = function._basis(X, weight, rank)
        ends = np.cumsum([np.count_nonzero(weight) for *_, weight in self._blocks])[:-1]
        split = [np.split(rows, ends) for rows in (basis.psi, residuals, weight)]
        parts = list(zip(*split, strict=True))
        sums = _SharedSums(
            basis,
            parts,
            [_Moments.of(*part) for part in parts],
            [square_of_products(times_rows(delta, np.sqrt(w))) for _, delta, w in parts],
            may_grow=basis.approximation == "nystroem" and rank < limit,
        )
        self._share(sums)
        return sums

    def coarser(self):
        """The fits of half the rank, where the rank is what limits them."""
        if not self._sums.may_grow:
            return None
        if self._half is None:
            self._half = _RidgeFits(self._function, self._blocks, self.rank // 2)
            self._half._sums = self._sums.first(self._half.rank)
        return self._half

    def _share(self, sums):
        """Let coarser fits have views of the same sums, so that no rows are held twice."""
        half = self._half
        if half is None:
            return
        coarser, known = sums.first(half.rank), half._sums.basis
        if np.array_equal(known.landmarks, coarser.basis.landmarks):
            basis = coarser.basis._replace(trace_error=known.trace_error)
            half._sums = coarser._replace(basis=basis)
            half._share(coarser)
        else:
            self._half = None

    def __getstate__(self):
        """Without coarser fits, for other processes."""
        return vars(self) | {"_half": None}

    def finer(self):
        """The fits of twice the rank."""
        return _RidgeFits(self._function, self._blocks, 2 * self.rank, half=self)

    def _factor(self, training):
        """The function that has taken the sum of the blocks' moments, and its eigenvectors."""
        if training not in self._factors:
            first, *others = (self._sums.moments[k] for k in training)
            taken = copy.copy(self._function)
            rotation = taken._take_factor(self._sums.basis, sum(others, first))
            self._factors[training] = taken, rotation
        return self._factors[training]

    def fit(self, function, training):
        """See ``BlockFits``."""
        if training not in self._fitted:
            self._fitted[training], rotation = self._factor(training)
            self._fitted[training].projection_ = self._sums.basis.projection(rotation)
            del self._factors[training]  # eigenvectors, which only scores need
        return function._solved_by(self._fitted[training])

    def scores(self, functions, block, trainings):
        """See ``BlockFits``; each is computed once."""
        keys = [[(type(f), f.alpha, block, t) for t in trainings] for f in functions]
        new = [k for k, row in enumerate(keys) if not all(key in self._known for key in row)]
        if new:
            values = self._scores([functions[k] for k in new], block, trainings)
            for k, row in zip(new, values, strict=True):
                self._known.update(zip(keys[k], row, strict=True))
        return np.array([[self._known[key] for key in row] for row in keys])

    def _scores(self, functions, block, trainings):
        """The products of a block's features are computed once."""
        psi, residuals, weight = self._sums.parts[block]
        options = {"sample_weight": weight, "constant": self._sums.squares[block]}
        size = residuals.shape[1], psi.shape[1]
        has_form = np.array([function._has_risk_form(*size) for function in functions])
        by_form, by_residual = (list(compress(functions, rows)) for rows in (has_form, ~has_form))
        risks = np.empty((len(functions), len(trainings)))
        for column, (taken, rotation) in zip(risks.T, map(self._factor, trainings), strict=True):
            features = psi @ rotation
            if by_form:
                forms = (function._solved_by(taken)._risk_form() for function in by_form)
                column[has_form] = pair_risk_path(features, residuals, forms, **options)
            if by_residual:
                phis = (features @ function._solved_by(taken).coef_ for function in by_residual)
                column[~has_form] = plug_in_risks(phis, residuals, sample_weight=weight)
        return -risks


class _SharedSums(NamedTuple):
    """A basis, and by block the rows (Ψ, residuals, weight), their moments, and Σ ww'⟨δ, δ'⟩²."""

    basis: KernelBasis
    parts: list[tuple]
    moments: list[_Moments]
    squares: list[float]
    may_grow: bool

    def first(self, rank):
        """Those of the first landmarks."""
        return self._replace(
            basis=self.basis.first(rank),
            parts=[(psi[:, :rank], *others) for psi, *others in self.parts],
            moments=[moments.first(rank) for moments in self.moments],
        )
