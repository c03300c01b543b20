"""Binning estimators of the calibration error."""

from __future__ import annotations

from numbers import Integral
from typing import Self

import numpy as np
from scipy import sparse
from sklearn.utils.metaestimators import available_if

from skcal._bins import (
    SCALAR_PARTITIONS,
    SIMPLEX_PARTITIONS,
    bin_sums,
    find_partition,
    variance_of_means,
)
from skcal._sklearn_compat import Interval, StrOptions, _fit_context
from skcal._validation import BIN_COUNT, check_unit_interval
from skcal.functions.base import BilinearFunction, recover_outcomes


def _has_residual(self):
    return not self.debias


class Binning(BilinearFunction):
    """Estimate miscalibration by the mean residual of each bin, as the binned ECE does.

    A bin is half open, (b_{j-1}, b_j], the first closed at 0. A bin without training samples
    predicts the mean residual of all training samples.

    Parameters
    ----------
    n_bins : int, default=15
        Number of bins; on the simplex, of intervals per class. Ignored by "sweep", "unique" and
        "median-variance", which find it.
    strategy : {"uniform", "quantile", "sweep", "unique", "median-variance"}, default="uniform"
        "uniform": equal widths. "quantile": equal masses, equal values together, so there may be
        fewer bins. "sweep" [1]_: the most equal-mass bins with monotone frequencies. "unique": a
        bin for each distinct prediction. On the simplex "uniform", "unique" and
        "median-variance" [2]_.
    debias : bool or "labels", default=False
        Whether to subtract the variance of the bin means from h(x, x') within a bin. True: the
        variance of the mean residual. "labels": that of the mean outcome, as in [3]_. In bins with
        fewer than two samples h is 0.
    min_samples : int, default=100
        Fewest samples in a cell of "median-variance".

    Attributes
    ----------
    n_bins_ : int
        Number of bins used.
    partition_ : object
        The bins; ``partition_.assign(X)`` gives the bin of each row.
    bin_residuals_ : ndarray of shape ``(n_bins_ + 1, m)``
        Mean residual of each bin; the last row, of all samples, serves cells unseen in training.
    bin_weights_ : ndarray of shape ``(n_bins_,)``
        Sum of the weights in each bin.
    n_bins_not_debiased_ : int
        Bins with too few samples to debias, where h is 0 (0 without ``debias``).
    form_ : sparse array of shape (r, r) or None
    n_features_in_ : int

    See Also
    --------
    skcal.KroneckerKernelRidge, skcal.DirichletKernelDensity

    Notes
    -----
    Without ``debias`` φ(x) is the mean residual of the bin and M the identity, so the mean of
    h(x, x) over the training samples is the squared L2 calibration error of the bins ([4]_,
    Eq. 24). With it φ holds also the standard error of the bin in the bin's own column, and
    M = diag(I, -I).
    O(n log n) for one column, O(n C log n) on the simplex.

    References
    ----------
    .. [1] Roelofs et al., Mitigating bias in calibration error estimation, AISTATS 2022.
    .. [2] Widmann, Lindsten & Zachariah, Calibration tests in multi-class classification,
       NeurIPS 2019.
    .. [3] Kumar, Liang & Ma, Verified uncertainty calibration, NeurIPS 2019.
    .. [4] Gruber & Bach, Optimizing Estimators of Squared Calibration Errors in Classification,
       TMLR 2025.

    Examples
    --------
    >>> import numpy as np
    >>> from skcal import Binning
    >>> confidence = np.array([[0.55], [0.6], [0.9], [0.95]])
    >>> correct = np.array([0, 1, 1, 1])
    >>> binning = Binning(n_bins=2).fit(confidence, correct - confidence.ravel())
    >>> binning.residual(confidence).ravel()
    array([0., 0., 0., 0.])
    """

    _parameter_constraints: dict = {
        "n_bins": [BIN_COUNT],
        "strategy": [StrOptions(set(SCALAR_PARTITIONS) | set(SIMPLEX_PARTITIONS))],
        "debias": ["boolean", StrOptions({"labels"})],
        "min_samples": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(self, n_bins=15, strategy="uniform", debias=False, min_samples=100):
        self.n_bins = n_bins
        self.strategy = strategy
        self.debias = debias
        self.min_samples = min_samples

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y, sample_weight=None) -> Self:
        """Compute the bins and their mean residuals.

        Parameters
        ----------
        X : array-like of shape (n_samples, d)
            Predicted probabilities in [0, 1].
        y : array-like of shape (n_samples,) or (n_samples, d)
            Residuals.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            If X is outside [0, 1] or the strategy does not fit its number of columns. Also if X + y
            are not the outcomes that "sweep" and ``debias="labels"`` need.
        """
        X, residuals, weight = self._validate(X, y, sample_weight)
        check_unit_interval(X)
        partition = find_partition(self.strategy, X.shape[1])
        needs_outcomes = self.strategy == "sweep" or self.debias == "labels"
        outcomes = recover_outcomes(X, residuals, shares=False) if needs_outcomes else None
        self.partition_ = partition(
            X, outcomes, weight, n_bins=self.n_bins, min_samples=self.min_samples
        )
        self.n_bins_ = self.partition_.n_bins
        bins = self.partition_.assign(X)
        overall = weight @ residuals / weight.sum()
        self.bin_weights_: np.ndarray = np.bincount(bins, weight, minlength=self.n_bins_)
        means = self._bin_means(residuals, bins, weight, overall)
        self.bin_residuals_ = np.vstack([means, overall])
        self.n_bins_not_debiased_, self.form_ = 0, None
        if self.debias:
            self._fit_debiased(residuals, outcomes, bins, weight)
        return self

    def _bin_means(self, values, bins, weight, empty):
        """Weighted mean of the values in each bin; ``empty`` for a bin without samples."""
        sums = bin_sums(bins, weight[:, None] * values, self.n_bins_)
        filled = self.bin_weights_ > 0
        means = np.tile(np.asarray(empty, dtype=np.float64), (self.n_bins_, 1))
        means[filled] = sums[filled] / self.bin_weights_[filled, None]
        return means

    def _one_hot(self, bins):
        """Sparse (n, n_bins) indicator of the bins; an unseen cell is a row of zeros."""
        seen = np.flatnonzero(bins < self.n_bins_)
        ones = np.ones(len(seen))
        return sparse.csr_array((ones, (seen, bins[seen])), shape=(len(bins), self.n_bins_))

    def _fit_debiased(self, residuals, outcomes, bins, weight):
        total: np.ndarray = self.bin_weights_
        squares = np.bincount(bins, weight**2, minlength=self.n_bins_)
        count = np.bincount(bins, minlength=self.n_bins_)
        sums = total, squares, count, self.bin_residuals_[:-1]
        if self.debias == "labels":
            means = self._bin_means(outcomes, bins, weight, np.zeros(outcomes.shape[1]))
            variance, too_few = variance_of_means(*sums, frequencies=means)
        else:
            losses = weight**2 * (residuals**2).sum(axis=1)
            square_errors = np.bincount(bins, losses, minlength=self.n_bins_)
            variance, too_few = variance_of_means(*sums, square_errors)
        self.n_bins_not_debiased_ = int(np.count_nonzero(too_few))
        ones = np.ones(residuals.shape[1])
        self.form_ = sparse.diags_array(np.concatenate([ones, -variance])).tocsr()

    @available_if(_has_residual)
    def residual(self, X):
        """Mean residual ĝ(x) of the bin of each sample, shape (n_samples, m).

        Parameters
        ----------
        X : array-like of shape (n_samples, d)
            Features of the samples, as given to ``fit``.
        """
        return self.bin_residuals_[self._assign(X)]

    def feature_map(self, X):
        """Return the mean residual of each row's bin, φ(x); with ``debias`` a sparse array.

        Parameters
        ----------
        X : array-like of shape (n_samples, d)
            Features of the samples, as given to ``fit``.
        """
        bins = self._assign(X)
        if not self.debias:
            return self.bin_residuals_[bins]
        means = sparse.csr_array(self.bin_residuals_[bins])
        return sparse.hstack([means, self._one_hot(bins)], format="csr")

    def _assign(self, X):
        X = self._validate_features(X)
        check_unit_interval(X)
        return self.partition_.assign(X)
