"""The calibration error of predictions by one function and one notion."""

from __future__ import annotations

from typing import Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from skcal._labels import is_positive_first
from skcal._selection import telling_parameters
from skcal._sklearn_compat import _fit_context
from skcal._validation import as_given, check_weight, effective_weights
from skcal.functions import BilinearFunction, FixedFunction, KroneckerKernelRidge
from skcal.model_selection import engine
from skcal.model_selection.adaptive import adaptive_squared_error
from skcal.model_selection.errors import ErrorEstimate, estimate_error
from skcal.model_selection.estimates import ConfidenceInterval, OneStepEstimate, one_step
from skcal.notions import Problems, make_problems
from skcal.pair_risk import PairRisk
from skcal.sample import HoldsNotion, read_fit, read_proba

__all__ = ["CalibrationErrorEstimator", "ConfidenceInterval", "OneStepEstimate"]


def _check_function(function) -> BilinearFunction:
    if function is None:
        return KroneckerKernelRidge()
    if not isinstance(function, BilinearFunction):
        if callable(function) and not isinstance(function, type):
            return FixedFunction(function)
        shown = function.__name__ if isinstance(function, type) else type(function).__name__
        raise TypeError(
            f"function is {shown}. Pass an instance of a calibration-estimation function, such as "
            "skcal.Binning(); wrap a scikit-learn estimator as skcal.PlugIn(estimator)."
        )
    return function


def _have_residual(self):
    functions = getattr(self, "functions_", [self.function or KroneckerKernelRidge()])
    for function in functions:
        if not hasattr(function, "residual"):
            raise AttributeError(
                f"{type(function).__name__} has no residual(X). Use TwoStepKernelRidge, PlugIn, "
                "Binning without debias, DirichletKernelDensity or Stacking."
            )
    return True


class CalibrationErrorEstimator(HoldsNotion, BaseEstimator):
    """Estimate the squared calibration error of predictions with one function.

    Parameters
    ----------
    function : calibration-estimation function or callable, default=None
        Such as :class:`skcal.Binning`, or ``h(X, Z)`` of all pairs of rows, which becomes a
        :class:`skcal.functions.FixedFunction`; None: :class:`skcal.KroneckerKernelRidge` with its
        defaults.
    notion : str or callable, default="auto"
        "canonical", "confidence", "top-label", "classwise", "binary", "top-K" for an integer K,
        "auto", or a lens; see :mod:`skcal.notions`. For 1-D predictions "canonical" and
        "classwise" mean "binary".
    labels : array-like of shape (n_classes,), default=None
        The class of each column. None: the names of a data frame's columns, if these name all
        labels; otherwise the sorted labels, if they are unambiguous.
    from_logits : bool, default=False
        Whether the predictions are logits. A recalibration map, as in
        ``PlugIn(TemperatureScaling())``, takes them without loss, any other function their
        probabilities.
    pos_label : int, float, bool or str, default=None
        The positive class of the notion "binary": of two columns, which may stand in any order, or
        of one-dimensional predictions. None: the class of the second column.

    Attributes
    ----------
    functions_ : list of fitted functions, one a problem
    notion_ : str or callable
        The notion used.
    classes_ : ndarray of shape (n_classes,)
        The class of each column, of 1-D predictions (negative class, positive class).
    n_features_in_ : int
        Number of columns; 1 for 1-D predictions.

    See Also
    --------
    skcal.CalibrationErrorSearchCV : chooses the function by the risk.

    Notes
    -----
    Fit and score on different samples. A problem of ``"top-label"`` with fewer than two training
    samples has h = 0; one with fewer than two evaluation samples adds no risk.

    References
    ----------
    .. [1] Gruber & Bach, Optimizing Estimators of Squared Calibration Errors in Classification,
       TMLR 2025.

    Examples
    --------
    >>> from skcal import Binning, CalibrationErrorEstimator
    >>> from skcal.datasets import make_tempered
    >>> data = make_tempered(2000, temperature=2.0, random_state=0)
    >>> estimator = CalibrationErrorEstimator(Binning(10), notion="confidence")
    >>> estimator.fit(data.proba[:1000], data.labels[:1000])
    CalibrationErrorEstimator(function=Binning(n_bins=10), notion='confidence')
    >>> round(estimator.squared_error(data.proba[1000:]), 3)
    0.026
    """

    _parameter_constraints: dict = {
        "function": "no_validation",  # in fit, which names the remedy
        "notion": [str, callable],
        "labels": ["array-like", None],
        "from_logits": ["boolean"],
        "pos_label": "no_validation",  # in read_sample, which knows the labels
    }

    def __init__(
        self, function=None, notion="auto", labels=None, from_logits=False, pos_label=None
    ):
        self.function = function
        self.notion = notion
        self.labels = labels
        self.from_logits = from_logits
        self.pos_label = pos_label

    def set_params(self, **params):
        """Set parameters, those of the function by names such as ``function__n_bins``.

        Parameters
        ----------
        **params : dict
            Parameters by name; those of the function are ``function__name``.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            If there is no such parameter.
        """
        with telling_parameters(self, params):
            return super().set_params(**params)

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(self, X, y, sample_weight=None, groups=None) -> Self:
        """Fit the function on the pairs of training samples.

        Parameters
        ----------
        X : array-like of shape (n_samples,) or (n_samples, n_classes)
            Predicted probabilities.
        y : array-like of shape (n_samples,) or (n_samples, n_classes)
            Labels, or shares or votes of the classes; see :doc:`/guide/soft_labels`.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples; a weight of 2 counts as a repeated row. None: all 1.
        groups : array-like of shape (n_samples,), default=None
            Samples of one group may depend on each other. A function whose fit divides the samples,
            such as :class:`skcal.Stacking`, keeps groups together. Others ignore groups. None: all
            are independent.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            If X is not probabilities, y not the labels of its columns, a weight negative or the
            notion unknown. Also if the function does not fit the notion. The message names the
            argument and the first row.
        TypeError
            If the function is not a calibration-estimation function.
        """
        function = _check_function(self.function).reading(self.from_logits)
        sample = read_fit(self, X, y, self.notion, sample_weight, self.labels, groups)
        self.classes_, self.notion_ = sample.given_classes, sample.notion
        data = Problems(sample.problems(), sample.weight, sample.groups)
        self.functions_ = engine.fit(function, data)
        return self

    def predict(self, X) -> np.ndarray:
        """Estimated squared calibration error at each prediction.

        Parameters
        ----------
        X : array-like of shape (n_samples,) or (n_samples, n_classes)
            Predicted probabilities; one column holds P(positive class).

        Returns
        -------
        h : ndarray of shape (n_samples,)
            h(x, x), summed over the class-wise problems. Its mean is :meth:`squared_error`.
        """
        data = self._unlabelled(X)
        return as_given(engine.pointwise(self.functions_, data), X)

    def squared_error(self, X, sample_weight=None) -> float:
        """Plug-in estimate of the squared calibration error.

        Parameters
        ----------
        X : array-like of shape (n_samples,) or (n_samples, n_classes)
            Predictions that the function was not fitted on.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples; only their ratios matter. None: all equal.

        Returns
        -------
        squared_error : float
            The error in squared probability units; signed, an estimate may be negative.
        """
        data = self._unlabelled(X, sample_weight)
        return engine.plug_in(self.functions_, data)

    @available_if(_have_residual)
    def one_step(self, X, y, sample_weight=None, groups=None) -> OneStepEstimate:
        """One-step estimate of the squared calibration error, in expectation never too high.

        Parameters
        ----------
        X : array-like of shape (n_samples,) or (n_samples, n_classes)
            Predictions that neither the fit nor any choice has used.
        y : array-like of shape (n_samples,) or (n_samples, n_classes)
            Labels, or shares or votes of the classes; see :doc:`/guide/soft_labels`.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples; only their ratios matter. None: all equal.
        groups : array-like of shape (n_samples,), default=None
            Samples of one group may depend on each other; those of training samples should be
            others.

        Returns
        -------
        estimate : OneStepEstimate
        """
        data = self._labelled(X, y, sample_weight, groups)
        return one_step(engine.corrections(self.functions_, data), data)

    @available_if(_have_residual)
    def error(self, X, y, kind="l1", sample_weight=None, groups=None) -> ErrorEstimate:
        """Estimate an error that people report.

        Parameters
        ----------
        X : array-like of shape (n_samples,) or (n_samples, n_classes)
            Predictions that neither the fit nor any choice has used.
        y : array-like of shape (n_samples,) or (n_samples, n_classes)
            Labels, or shares or votes of the classes; see :doc:`/guide/soft_labels`.
        kind : {"squared", "rms", "l1", "l2", "log"}, default="l1"
            As in :meth:`CalibrationErrorSearchCV.error`.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples; only their ratios matter. None: all equal.
        groups : array-like of shape (n_samples,), default=None
            Samples of one group may depend on each other; those of training samples should be
            others.

        Returns
        -------
        error : ErrorEstimate
        """
        data = self._labelled(X, y, sample_weight, groups)
        data = data.take(np.flatnonzero(data.weight))
        corrections = engine.corrections(self.functions_, data)
        squared_error = adaptive_squared_error(data, corrections)
        squared = one_step(corrections, data)
        return estimate_error(kind, self.notion_, data, corrections, squared_error, squared)

    def risk(self, X, y, sample_weight=None) -> PairRisk:
        """Pair risk on held-out samples, with its standard error.

        Parameters
        ----------
        X : array-like of shape (n_samples,) or (n_samples, n_classes)
            Predicted probabilities; one column holds P(positive class).
        y : array-like of shape (n_samples,)
            Labels, as given to ``fit``.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples; only their ratios matter. None: all equal.

        Returns
        -------
        risk : PairRisk
        """
        data = self._labelled(X, y, sample_weight)
        return engine.risk(self.functions_, data)

    def score(self, X, y, sample_weight=None) -> float:
        """Minus the pair risk; greater is better. Arguments as for :meth:`risk`.

        Parameters
        ----------
        X : array-like of shape (n_samples,) or (n_samples, n_classes)
            Predicted probabilities; one column holds P(positive class).
        y : array-like of shape (n_samples,)
            Labels, as given to ``fit``.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples; only their ratios matter. None: all equal.
        """
        data = self._labelled(X, y, sample_weight)
        return engine.score(self.functions_, data)

    def _labelled(self, X, y, sample_weight, groups=None) -> Problems:
        """Check the arguments of a later call; the problems of the notion, with residuals."""
        check_is_fitted(self)
        asked = self.notion_, sample_weight, self.classes_, groups
        sample = read_fit(self, X, y, *asked, reset=False)
        return Problems(sample.problems(), sample.weight, sample.groups)

    def _unlabelled(self, X, sample_weight=None) -> Problems:
        """Check the arguments of a later call; the problems of the notion, without residuals."""
        proba, logits, _ = self._predictions(X)
        weight = effective_weights(check_weight(sample_weight, len(proba)))
        return Problems(make_problems(proba, None, self.notion_, weight, logits), weight)

    def _predictions(self, X) -> tuple[np.ndarray, np.ndarray | None, bool]:
        """Checked probabilities, their logits, and whether ``pos_label`` turned two columns."""
        check_is_fitted(self)
        proba, logits = read_proba(X, self.notion_, self.from_logits, "X", self, reset=False)
        turned = is_positive_first(proba, self.classes_, self.pos_label)
        if turned:
            proba, logits = proba[:, ::-1], None if logits is None else logits[:, ::-1]
        return proba, logits, turned

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags
