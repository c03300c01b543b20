"""The calibration error of predictions by one function and one notion."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from scipy.stats import norm
from sklearn.base import BaseEstimator, clone
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from skcal._sklearn_compat import _fit_context
from skcal._validation import (
    check_confidence_level,
    check_labels,
    check_proba,
    check_weight,
    column_names,
)
from skcal.functions import BilinearFunction, KroneckerKernelRidge, Zero
from skcal.functions.base import telling_places
from skcal.notions import Problems, make_problems, resolve_notion
from skcal.pair_risk import PairRisk, add_problems, excess_risk, one_step_terms, weighted_mean


class ConfidenceInterval(NamedTuple):
    """An interval with fields ``low`` and ``high``, as scipy's results have."""

    low: float
    high: float


@dataclass(frozen=True, eq=False)
class OneStepEstimate:
    """One-step estimate of a squared calibration error.

    Attributes
    ----------
    value : float
        Estimate; negative values are possible.
    standard_error : float
        Of the mean of the terms, given the fitted function.
    terms : ndarray of shape (n_samples,)
        The independent terms ψ_i, whose (weighted) mean is the value.
    """

    value: float
    standard_error: float
    terms: np.ndarray = field(repr=False)

    def confidence_interval(self, confidence_level=0.95) -> ConfidenceInterval:
        """Normal interval around the value.

        It covers the squared error minus E‖ĝ - g*‖², so only its lower end bounds the calibration
        error.
        """
        self._check_level(confidence_level)
        half = norm.ppf((1 + confidence_level) / 2) * self.standard_error
        return ConfidenceInterval(float(self.value - half), float(self.value + half))

    def lower_confidence_bound(self, confidence_level=0.95) -> float:
        """One-sided lower confidence limit of the squared calibration error."""
        self._check_level(confidence_level)
        return float(self.value - norm.ppf(confidence_level) * self.standard_error)

    def _check_level(self, confidence_level):
        check_confidence_level(confidence_level)
        if not np.isfinite(self.standard_error):
            raise ValueError(
                f"An interval needs at least 2 test samples, there are {len(self.terms)}. "
                "Pass a larger test split."
            )


def _check_function(function) -> BilinearFunction:
    if function is None:
        return KroneckerKernelRidge()
    if not isinstance(function, BilinearFunction):
        shown = function.__name__ if isinstance(function, type) else type(function).__name__
        raise TypeError(
            f"function is {shown}. Pass an instance of a calibration-estimation function, such as "
            "skcal.Binning(); wrap a scikit-learn estimator as skcal.PlugIn(estimator)."
        )
    return function


def _functions_have(method):
    def check(self):
        functions = getattr(self, "functions_", [self.function or KroneckerKernelRidge()])
        lacking = [
            type(function).__name__ for function in functions if not hasattr(function, method)
        ]
        if lacking:
            raise AttributeError(
                f"{lacking[0]} has no {method}(X). Use TwoStepKernelRidge, PlugIn, Binning without "
                "debias, DirichletKernelDensity or Stacking."
            )
        return True

    return check


class CalibrationErrorEstimator(BaseEstimator):
    """Estimate the squared calibration error of predictions with one function.

    Parameters
    ----------
    function : calibration-estimation function, default=None
        Such as :class:`skcal.Binning`; None: :class:`skcal.KroneckerKernelRidge` with its
        defaults.
    notion : str or callable, default="auto"
        "canonical", "confidence", "top-label", "classwise", "binary", "top-K" for an integer K,
        "auto", or a lens; see :mod:`skcal.notions`. For 1-D predictions "canonical" and
        "classwise" mean "binary".
    labels : array-like of shape (n_classes,), default=None
        The class of each column. None: the names of a data frame's columns, when these name all
        labels; else the sorted labels, when they tell.
    from_logits : bool, default=False
        Whether the predictions are logits, to which the softmax (1-D: the logistic function) is
        applied.

    Attributes
    ----------
    functions_ : list of fitted functions, one a problem
    notion_ : str or callable
        The notion used.
    classes_ : ndarray of shape (n_classes,)
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
    }

    def __init__(self, function=None, notion="auto", labels=None, from_logits=False):
        self.function = function
        self.notion = notion
        self.labels = labels
        self.from_logits = from_logits

    def set_params(self, **params):
        """Set parameters, those of the function by names such as ``function__n_bins``.

        Parameters
        ----------
        **params : dict

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            If there is no such parameter.
        """
        with telling_places(self, params):
            return super().set_params(**params)

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(self, X, y, sample_weight=None):
        """Fit the function on the pairs of training samples.

        Parameters
        ----------
        X : array-like of shape (n_samples,) or (n_samples, n_classes)
            Predicted probabilities.
        y : array-like of shape (n_samples,)
            Labels.
        sample_weight : array-like of shape (n_samples,), default=None

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            If X is not probabilities, y not the labels of its columns, a weight negative, the
            notion unknown, or the function does not fit the notion; names the argument and the
            first row.
        TypeError
            If the function is not a calibration-estimation function.
        """
        _check_function(self.function)
        proba = check_proba(X, from_logits=self.from_logits, name="X", estimator=self)
        codes, self.classes_ = check_labels(
            y, proba, self.labels, columns=column_names(X), name="y", proba_name="X"
        )
        weight = check_weight(sample_weight, len(proba))
        self.notion_ = resolve_notion(self.notion, proba)
        return self._fit(Problems(make_problems(proba, codes, self.notion_, weight), weight))

    def _fit(self, data):
        """Fit the functions to the problems of the notion."""
        template = _check_function(self.function)
        self.functions_ = []
        for problem in data.parts:
            weight = problem.weight
            enough = self._has_pairs(weight)
            function = clone(template if enough else Zero())
            if enough:
                function.fit(problem.features, problem.residuals, sample_weight=weight)
            else:
                function.fit(np.full((1, 1), 0.5), [0.0])
            self.functions_.append(function)
        return self

    def predict(self, X):
        """Estimated squared calibration error at each prediction.

        Parameters
        ----------
        X : array-like of shape (n_samples,) or (n_samples, n_classes)

        Returns
        -------
        h : ndarray of shape (n_samples,)
            h(x, x), summed over the class-wise problems. Its mean is :meth:`squared_error`.
        """
        return self._pointwise(self._read(X, None))

    def _pointwise(self, data):
        total = np.zeros(len(data.weight))
        for function, problem in zip(self.functions_, data.parts, strict=True):
            if len(problem.features):
                total[problem.rows] += function.predict(problem.features)
        return total

    def squared_error(self, X, sample_weight=None):
        """Plug-in estimate of the squared calibration error.

        Parameters
        ----------
        X : array-like of shape (n_samples,) or (n_samples, n_classes)
            Predictions that the function was not fitted on.
        sample_weight : array-like of shape (n_samples,), default=None

        Returns
        -------
        squared_error : float
            In squared probability units; signed, an estimate may be negative.
        """
        return self._plug_in(self._read(X, sample_weight))

    def _plug_in(self, data):
        return float(np.average(self._pointwise(data), weights=data.weight))

    @available_if(_functions_have("residual"))
    def one_step(self, X, y, sample_weight=None):
        """One-step estimate of the squared calibration error, in expectation never too high.

        Parameters
        ----------
        X : array-like of shape (n_samples,) or (n_samples, n_classes)
            Predictions that neither the fit nor any choice has seen.
        y : array-like of shape (n_samples,)
            Labels.
        sample_weight : array-like of shape (n_samples,), default=None

        Returns
        -------
        estimate : OneStepEstimate
        """
        return self._one_step(self._read(X, sample_weight, y))

    def _one_step(self, data):
        terms = np.zeros(len(data.weight))
        for function, problem in zip(self.functions_, data.parts, strict=True):
            if len(problem.features):
                correction = function.residual(problem.features)
                terms[problem.rows] += one_step_terms(correction, problem.residuals)
        value, standard_error = weighted_mean(terms, data.weight)
        return OneStepEstimate(value, standard_error, terms)

    def risk(self, X, y, sample_weight=None) -> PairRisk:
        """Pair risk on held-out samples, with its standard error.

        Parameters
        ----------
        X : array-like of shape (n_samples,) or (n_samples, n_classes)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), default=None

        Returns
        -------
        risk : PairRisk
        """
        data = self._read(X, sample_weight, y)
        return self._sum_over_problems(lambda function, *problem: function.risk(*problem), data)

    def score(self, X, y, sample_weight=None):
        """Minus the pair risk; greater is better. Arguments as for :meth:`risk`."""
        return self._score(self._read(X, sample_weight, y))

    def _score(self, data):
        return float(self._add_scores(lambda function, *problem: function.score(*problem), data))

    def _score_path(self, template, values, data):
        """Scores of ``template`` for each value, from what the fitted functions hold."""

        def scores(function, features, residuals, weight):
            if not template.shares_factor(function):  # h = 0, for want of training samples
                return np.full(len(values), function.score(features, residuals, weight))
            function = clone(template).with_factor_of(function)
            return function.score_path(features, residuals, values, weight)

        return self._add_scores(scores, data)

    def _excess_risk(self, data) -> PairRisk:
        """Risk above that of h = 0."""

        def excess(function, features, residuals, weight):
            return excess_risk(
                function.feature_map(features), residuals, function.form_, sample_weight=weight
            )

        return self._sum_over_problems(excess, data)

    def _add_scores(self, score, data):
        """``score(function, features, residuals, weight)`` over problems, by their shares."""
        total, counted = 0.0, False
        for function, problem in zip(self.functions_, data.parts, strict=True):
            if self._has_pairs(problem.weight):
                counted = True
                value = score(function, problem.features, problem.residuals, problem.weight)
                total = total + value * problem.share
        if not counted:
            _raise_no_pairs(len(data.weight))
        return total

    def _sum_over_problems(self, risk, data):
        """Add ``risk(function, features, residuals, weight)`` over problems with enough samples."""
        risks, shares, rows = [], [], []
        for function, problem in zip(self.functions_, data.parts, strict=True):
            own = problem.weight
            enough = self._has_pairs(own)
            risks.append(
                risk(function, problem.features, problem.residuals, own) if enough else None
            )
            shares.append(problem.share)
            rows.append(problem.rows)
        if all(risk is None for risk in risks):
            _raise_no_pairs(len(data.weight))
        return add_problems(risks, shares, rows, len(data.weight))

    def _has_pairs(self, rows_weight) -> bool:
        """Whether a problem has enough samples; of ``top-label`` some may be too small."""
        return self.notion_.shares_samples or int(np.count_nonzero(rows_weight)) >= 2

    def _read(self, X, sample_weight, *labels) -> Problems:
        """Check the arguments; return the problems of the notion, with residuals if labelled."""
        check_is_fitted(self)
        proba = check_proba(X, from_logits=self.from_logits, name="X", estimator=self, reset=False)
        codes = None
        for y in labels:
            codes, _ = check_labels(y, proba, self.classes_, name="y", proba_name="X")
        weight = check_weight(sample_weight, len(proba))
        return Problems(make_problems(proba, codes, self.notion_, weight), weight)

    def _fitted_to(self, function, data):
        """A copy with the same classes and notion, whose functions are fitted to ``data``."""
        other = copy.copy(self)
        other.function = function
        return other._fit(data)

    def _with_functions(self, template, functions):
        """A fitted copy with other fitted functions of the same notion."""
        other = copy.copy(self)
        other.function, other.functions_ = template, functions
        return other

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


def _raise_no_pairs(n_samples):
    raise ValueError(
        "The risk needs pairs: no class is predicted for 2 samples "
        f"(n_samples = {n_samples}). Pass more samples."
    )
