"""Dirichlet kernel density ratio."""

from __future__ import annotations

import copy
from itertools import compress
from numbers import Real
from typing import Self

import numpy as np
from sklearn.base import clone

from skcal._sklearn_compat import Interval, StrOptions, _fit_context
from skcal._validation import check_unit_interval, row_blocks, row_weights
from skcal.functions.base import BilinearFunction, BlockFits, recover_outcomes
from skcal.functions.beta_sums import are_near, beta_sums
from skcal.functions.dirichlet_sums import (
    TargetPoints,
    is_limit,
    kernel_sums,
    loo_log_likelihoods,
    simplex_points,
    suits_interpolation,
    weighted_targets,
)
from skcal.pair_risk import PlugInSums, plug_in_risks

BANDWIDTHS = np.concatenate([np.logspace(-5, -1, 15), np.linspace(0.2, 1, 5)])
_TRIAL_ROWS = 1000  # of a block that is too large to be held
_BEHIND = 1.5  # times the lowest risk on these, from which on a bandwidth is given up


class DirichletKernelDensity(BilinearFunction):
    """Estimate residuals by Dirichlet kernels: smoothed frequency minus prediction.

    ĝ(z) = Σ_j K_b(z; p_j) e_{y_j} / Σ_j K_b(z; p_j) - z, with the Dirichlet kernel on the simplex
    and the Beta kernel on [0, 1] [1]_.

    Parameters
    ----------
    bandwidth : float > 0 or "loo", default=0.02
        Width b of the kernel. "loo" takes the value of the grid of [1]_ with the highest
        leave-one-out likelihood of the predictions. The grid has 15 values from 1e-5 to 1e-1 and 5
        from 0.2 to 1.

    Attributes
    ----------
    bandwidth_ : float
    proba_ : ndarray of shape (n_samples, d)
        Training predictions of positive weight.
    outcomes_ : ndarray of shape (n_samples, d)
        The outcomes: one-hot rows, or 0/1 for a single column, as booleans; shares as numbers.
    weight_ : ndarray of shape (n_samples,)
    form_ : None
        The identity.
    n_features_in_ : int

    See Also
    --------
    skcal.Binning, skcal.TwoStepKernelRidge

    Notes
    -----
    If z has zeros at which every training point has mass, the weights are their limits for z_c → 0.
    Then only points with the least mass there count. So no point of the simplex gives NaN.
    ``predict`` never leaves a sample out. A fit is free; prediction costs O(n k C) time for k
    training samples, in blocks of bounded memory. All bandwidths of a search share the product Σ_c
    p_c log z_c, so each further one costs its n k exponentials. All fits of a search share the sums
    over the points of each block. Some blocks exceed ``working_memory``, such as 50,000 samples of
    1,000 classes. Bandwidths whose risk on the first 1,000 samples is 1.5 times the lowest or more,
    in every fit, then keep that risk as their score. For a single column the sums of more than 2¹⁸
    pairs are interpolated in near-linear time, with relative errors below 1e-9.

    References
    ----------
    .. [1] Popordanoska, Sayer & Blaschko, A consistent and differentiable Lp canonical calibration
       error estimator, NeurIPS 2022.

    Examples
    --------
    >>> import numpy as np
    >>> from skcal import DirichletKernelDensity
    >>> p = np.array([[0.2], [0.2], [0.8], [0.8]])
    >>> outcome = np.array([[0.0], [0.0], [1.0], [1.0]])
    >>> DirichletKernelDensity(bandwidth=0.001).fit(p, outcome - p).residual([[0.2], [0.8]])
    array([[-0.2],
           [ 0.2]])
    """

    _parameter_constraints: dict = {
        "bandwidth": [Interval(Real, 0, None, closed="neither"), StrOptions({"loo"})],
    }

    def __init__(self, bandwidth=0.02):
        self.bandwidth = bandwidth

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y, sample_weight=None) -> Self:
        """Store the predictions and their outcomes; choose the bandwidth if asked to.

        Parameters
        ----------
        X : array-like of shape (n_samples, d)
            Predicted probabilities: rows of the simplex, or one column of values in [0, 1].
        y : array-like of shape (n_samples,) or (n_samples, d)
            Residuals; X + y must be outcomes.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            If X is outside [0, 1], X + y are not outcomes, or "loo" has fewer than two samples.
        """
        X, residuals, weight = self._validate(X, y, sample_weight)
        self.proba_, self.weight_ = X, weight
        self.outcomes_ = _outcomes_of(X, residuals)
        self.bandwidth_ = self._width(self.bandwidth)
        self.form_ = None
        return self

    def _width(self, bandwidth):
        if bandwidth != "loo":
            return bandwidth
        likelihood = loo_log_likelihoods(self.proba_, BANDWIDTHS, row_weights(self.weight_))
        return float(BANDWIDTHS[np.argmax(likelihood)])

    def _shares_with(self, other) -> bool:
        """See ``BilinearFunction``; the samples are the same."""
        return isinstance(other, DirichletKernelDensity)

    def _over_blocks(self, functions, blocks):
        """See ``BilinearFunction``; kernel sums over the points of each block are shared."""
        return _SumsOverBlocks(clone(self), blocks)

    def residual(self, X):
        """Smoothed frequency minus prediction, ĝ(x).

        Parameters
        ----------
        X : array-like of shape (n_samples, d)
            Features of the samples, as given to ``fit``.

        Returns
        -------
        residual : ndarray of shape (n_samples, d)
        """
        return self._residuals(self._validate_features(X), [self.bandwidth_])[0]

    def _residuals(self, X, bandwidths):
        """ĝ under each bandwidth, shape (n_bandwidths, n_samples, d)."""
        check_unit_interval(X)
        points = TargetPoints(self.proba_, self.outcomes_, self.weight_)
        sums, _, _ = _sums_of_sets(X, [points], bandwidths)
        return _residuals_of(sums[0], X)


def _outcomes_of(X, residuals):
    """Outcomes, of labels as booleans, an eighth of the memory."""
    outcomes = recover_outcomes(X, residuals.astype(X.dtype, copy=False))
    happened = outcomes.astype(bool)
    return happened if (happened == outcomes).all() else outcomes


def _residuals_of(sums, X):
    """ĝ of sums of the outcomes and of the weight (..., n, d + 1), in their place."""
    residuals = sums[..., :-1]
    residuals /= sums[..., -1:]
    residuals -= X
    return residuals


def _sums_of_sets(X, sets, bandwidths):
    """Kernel sums over sets of ``TargetPoints``, logs of their factors, and interpolated rows.

    Shapes (n_sets, n_bandwidths, n, d + 1), (n_sets, n_bandwidths, n) and (n,). The factors of
    rows that are interpolated are the same for all sets.
    """
    shape = len(sets), len(bandwidths), len(X), X.shape[1] + 1
    if X.shape[1] > 1:
        limits = len(sets) == 1
        both = [kernel_sums(X, points, bandwidths, limits) for points in sets]
        factors = np.array([factors for _, factors in both])
        return [sums for sums, _ in both], factors, np.zeros(len(X), dtype=bool)
    sums, log_factors = np.empty(shape), np.zeros(shape[:-1])
    fast = suits_interpolation(X, sum(len(points.proba) for points in sets))
    if fast.any():
        charged = [
            (simplex_points(points.proba), weighted_targets(points.outcomes, points.weight))
            for points in sets
        ]
        for k, values in enumerate(beta_sums(simplex_points(X[fast]), charged, bandwidths)):
            sums[:, k, slice(None) if fast.all() else fast] = values
    if not fast.all():  # many at 0 and 1
        values, place = np.unique(X[~fast, 0], return_inverse=True)
        for k, points in enumerate(sets):
            at_values, factors = kernel_sums(values[:, None], points, bandwidths, len(sets) == 1)
            sums[k][:, ~fast], log_factors[k][:, ~fast] = at_values[:, place], factors[:, place]
    return sums, log_factors, fast


class _SumsOverBlocks(BlockFits):
    """Density ratios, whose kernel sums over the points of some blocks are sums over the blocks."""

    of_single_blocks = True

    def __init__(self, function, blocks):
        self._function, self._points, self._residuals = function, [], []
        for X, residuals, weight in blocks:
            if weight.any():
                X, residuals, _ = function._validate(X, residuals, weight)
                weight = weight[weight > 0]  # raised in unions of blocks alone
            else:  # no sample of the problem counts in this block
                X, residuals, weight = X[:0], residuals[:0], weight[:0]
            self._points.append(TargetPoints(X, _outcomes_of(X, residuals), weight))
            self._residuals.append(residuals)

    def fit(self, function, training):
        """See ``BlockFits``; the points of the blocks."""
        fitted = self._union(training)
        fitted.bandwidth, fitted.bandwidth_ = function.bandwidth, fitted._width(function.bandwidth)
        return fitted

    def _union(self, training):
        """The function fitted to some blocks, but for its bandwidth."""
        fitted, points = copy.copy(self._function), [self._points[k] for k in training]
        fitted.proba_, fitted.outcomes_, fitted.weight_ = (
            np.concatenate([getattr(part, name) for part in points])
            for name in ("proba", "outcomes", "weight")
        )
        fitted.form_ = None
        return fitted

    def scores(self, functions, block, trainings):
        """See ``BlockFits``; the likelihood of each training set chooses a bandwidth "loo"."""
        points, residuals = self._points[block], self._residuals[block]
        X, weight = points.proba, points.weight
        scores = np.empty((len(functions), len(trainings)))
        chosen = np.array([function.bandwidth == "loo" for function in functions])
        if not chosen.all():
            widths = np.array([function.bandwidth for function in compress(functions, ~chosen)])
            scores[~chosen] = -self._near_risks(trainings, X, residuals, weight, widths)
        for k in np.flatnonzero(chosen):
            fits = (self.fit(functions[k], training) for training in trainings)
            scores[k] = [fitted.score(X, residuals, weight) for fitted in fits]
        return scores

    def _near_risks(self, trainings, X, residuals, weight, widths):
        """Risks (n_widths, n_trainings) of fixed bandwidths by the points of each training set.

        Where ``working_memory`` does not hold the sums of all rows, the risk on the first rows is
        enough of those that are far behind there.
        """
        row_bytes = 16 * len(widths) * (len(self._points) + 1) * (X.shape[1] + 1)
        blocks = list(row_blocks(len(X), row_bytes))
        if len(blocks) < 2:
            paths = self._residuals_by(trainings, X, widths)
            columns = [plug_in_risks(path, residuals, sample_weight=weight) for path in paths]
            return np.stack(columns, axis=1)
        first = np.flatnonzero(weight)[:_TRIAL_ROWS]
        trial = list(row_blocks(len(X[first]), row_bytes))
        risks = self._risks(trainings, X[first], residuals[first], weight[first], widths, trial)
        near = (risks <= _BEHIND * risks.min(axis=0)).any(axis=1)
        risks[near] = self._risks(trainings, X, residuals, weight, widths[near], blocks)
        return risks

    def _risks(self, trainings, X, residuals, weight, widths, blocks):
        """Risks whose sums are taken over blocks of rows, each with its products found once."""
        sums = [PlugInSums(len(widths)) for _ in trainings]
        for rows in blocks:
            paths = self._residuals_by(trainings, X[rows], widths)
            for of_training, path in zip(sums, paths, strict=True):
                of_training.add(path, residuals[rows], weight[rows])
        return np.stack([of_training.risks() for of_training in sums], axis=1)

    def _residuals_by(self, trainings, X, widths):
        """ĝ(X) by the points of each training set, (n_bandwidths, n, d)."""
        # A class that is seldom predicted has no samples in some blocks.
        numbers = [k for k in sorted(set().union(*trainings)) if len(self._points[k].weight)]
        points = [self._points[k] for k in numbers]
        sums, log_factors, interpolated = _sums_of_sets(X, points, widths)
        for training in trainings:
            places = [place for place, k in enumerate(numbers) if k in training]
            top = log_factors[places].max(axis=0)
            if top.any() or log_factors[places].any():
                total = sum(sums[k] * np.exp(log_factors[k] - top)[..., None] for k in places)
            else:
                total = sum(sums[k] for k in places)
            lost = self._lost_rows(X, training, widths, top, interpolated)
            total[lost] = 1.0
            path = _residuals_of(total, X)
            rows = np.flatnonzero(lost.any(axis=0))
            if len(rows):
                narrow = np.flatnonzero(lost.any(axis=1))
                whole = self._union(training)._residuals(X[rows], widths[narrow])
                at = np.ix_(narrow, rows)
                path[at] = np.where(lost[at][..., None], whole, path[at])
            yield path

    def _lost_rows(self, X, training, widths, log_factors, interpolated):
        """Rows whose sums need all points of a training set at once, by width.

        They are limits of zeros, or interpolated rows that are far from the points.
        """
        lost = np.array([is_limit(*pair) for pair in zip(log_factors, widths, strict=True)])
        rows = np.flatnonzero(interpolated)
        if len(rows):
            proba = np.concatenate([self._points[k].proba for k in training])
            z, points = simplex_points(X[rows]), simplex_points(proba)
            for lost_rows, near in zip(lost, are_near(z, points, widths), strict=True):
                lost_rows[rows[~near]] = True
        return lost
