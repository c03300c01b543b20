"""A second function fitted to what a first one leaves."""

from __future__ import annotations

import numpy as np
from sklearn.base import clone

from skcal._sklearn_compat import _fit_context
from skcal.functions.base import BilinearFunction
from skcal.functions.kernel_ridge import TwoStepKernelRidge
from skcal.functions.plug_in import PlugIn
from skcal.recalibration import StructuredMatrixScaling


class Boosting(BilinearFunction):
    """h = ⟨ĝ, ĝ⟩ with ĝ = ĝ_first + ĝ_rest, the rest fitted to the residuals of the first.

    A parametric map catches most of the miscalibration of a network, a ridge or tree form what the
    map cannot express.

    Parameters
    ----------
    first : calibration-estimation function with ``residual``, default=None
        None: ``PlugIn(StructuredMatrixScaling())``.
    rest : calibration-estimation function with ``residual``, default=None
        Fitted to y minus the first one's ĝ, so not one that needs outcomes; None:
        ``TwoStepKernelRidge(alpha=1e-3)``. Pass the functions themselves where their parameters
        are searched (``rest__alpha``).

    Attributes
    ----------
    first_, rest_ : fitted functions
    form_ : None
    n_features_in_ : int

    See Also
    --------
    skcal.Stacking : weighs functions that are fitted side by side.

    Examples
    --------
    >>> import numpy as np
    >>> from skcal import Boosting, PlugIn, TemperatureScaling, TwoStepKernelRidge
    >>> p = np.tile(np.linspace(0.05, 0.95, 10), 10)[:, None]
    >>> outcome = (np.arange(100) // 10 < 5).astype(float)  # half of them, whatever p says
    >>> boosting = Boosting(PlugIn(TemperatureScaling()), TwoStepKernelRidge(alpha=1e-4))
    >>> boosting.fit(p, outcome - p[:, 0]).residual([[0.95]]).round(1)
    array([[-0.4]])
    """

    _parameter_constraints: dict = {
        "first": [BilinearFunction, None],
        "rest": [BilinearFunction, None],
    }

    def __init__(self, first=None, rest=None):
        self.first = first
        self.rest = rest

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(self, X, y, sample_weight=None):
        """Fit the first function, then the rest.

        Parameters
        ----------
        X : array-like of shape (n_samples, d)
            Features.
        y : array-like of shape (n_samples,) or (n_samples, m)
            Residuals.
        sample_weight : array-like of shape (n_samples,), default=None

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            If a function has no ``residual``.
        """
        first = PlugIn(StructuredMatrixScaling()) if self.first is None else clone(self.first)
        rest = TwoStepKernelRidge(alpha=1e-3) if self.rest is None else clone(self.rest)
        for name, function in (("first", first), ("rest", rest)):
            require_residual(name, function)
        X, residuals, weight = self._validate(X, y, sample_weight)
        self.first_ = first.fit(X, residuals, sample_weight=weight)
        left = residuals - self.first_.residual(X)
        self.rest_ = rest.fit(X, left, sample_weight=weight)
        self.form_, self._n_outputs = None, residuals.shape[1]
        return self

    def residual(self, X):
        """Estimate ĝ(x) of E[δ | x], shape (n_samples, m)."""
        X = self._validate_features(X)
        return np.asarray(self.first_.residual(X) + self.rest_.residual(X))

    def transform(self, X):
        """Return φ(x) = ĝ(x)."""
        return self.residual(X)


def require_residual(name, function):
    """Raise unless the function is a plug-in, h = ⟨ĝ, ĝ⟩."""
    if not hasattr(function, "residual"):
        raise ValueError(
            f"{name}={function!r} has no `residual`. Pass a plug-in function, such as "
            "TwoStepKernelRidge() or PlugIn(…)."
        )
