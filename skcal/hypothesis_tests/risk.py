"""Test whether a fitted function has a lower risk than h = 0, which means miscalibration."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.model_selection import GroupShuffleSplit, ShuffleSplit
from sklearn.utils import check_random_state

from skcal._sklearn_compat import Interval, validate_params
from skcal._validation import weight_of_pairs
from skcal.functions import PlugIn
from skcal.functions.base import BilinearFunction, read_feature_map
from skcal.hypothesis_tests.monte_carlo import draw_nulls, from_draws, nonempty
from skcal.hypothesis_tests.result import RESAMPLING, CalibrationTestResult
from skcal.metrics.statistic import outcome_rows
from skcal.model_selection import CalibrationErrorEstimator
from skcal.recalibration.scaling import MatrixScaling
from skcal.sample import Sample, read_sample


@validate_params(
    {
        "function": [BilinearFunction, None],
        "test_size": [Interval(Real, 0, 1, closed="neither")],
        **RESAMPLING,
    },
    prefer_skip_nested_validation=False,
)
def risk_test(
    y_true: ArrayLike | Sample,
    y_proba: ArrayLike | None = None,
    function: BilinearFunction | None = None,
    *,
    notion: str | Callable = "auto",
    test_size: float = 0.5,
    n_resamples: int = 999,
    random_state: int | np.random.RandomState | None = 0,
    n_jobs: int | None = None,
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    pos_label: Any = None,
    from_logits: bool = False,
) -> CalibrationTestResult:
    """Test calibration with a calibration function that is fitted to other samples.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,) or (n_samples, n_classes), or Sample
        Labels, or shares or votes of the classes; see :doc:`/guide/soft_labels`.
    y_proba : array-like of shape (n_samples,) or (n_samples, n_classes), default=None
        Probabilities in [0, 1]; rows sum to 1. A 1-D array holds P(positive class).
        Left out beside a :class:`skcal.Sample`.
    function : calibration-estimation function, default=None
        It aims the test: :class:`skcal.PlugIn` of a recalibration map has power against errors that
        this map can fix. None is logistic recalibration: of the logit for scalar notions, matrix
        scaling (``LogisticRegression(C=0.01)`` on log-probabilities) for vectors.
    notion : str or callable, default="auto"
        "auto" is "binary" for one and two columns and "confidence" for more.
    test_size : float in (0, 1), default=0.5
        Share of the samples, or of the groups, on which the risks are compared.
    n_resamples : int, default=999
        Outcomes of the test part are redrawn from the predictions, with h fixed.
    random_state : int, RandomState instance or None, default=0
        The seed of the split and the outcomes.
    n_jobs : int, default=None
        Workers; results do not depend on it.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the samples; they must not depend on the labels.
    groups : array-like of shape (n_samples,), default=None
        Samples of one group may depend on each other; None: all are independent. See
        :doc:`/guide/dependent_samples`.
    labels : array-like of shape (n_classes,), default=None
        The class of each column; for 1-D predictions (negative class, positive class).
    pos_label : label, default=None
        The positive class of 1-D predictions, or of two columns for "binary"; an error otherwise.
    from_logits : bool, default=False
        Whether ``y_proba`` holds logits; probabilities are computed from them without loss of
        precision.

    Returns
    -------
    result : CalibrationTestResult
        ``statistic``: risk of h = 0 minus that of h. A small p-value rejects calibration. It does
        not say that h lowers the risk: the gain is below 0 on average if calibrated, and a
        significant one may be negative. ``estimate`` is NaN. Exact level.

    Raises
    ------
    ValueError
        If the input is not valid or a part has fewer than two samples.

    Notes
    -----
    O(n r C) time a resample for h of rank r, some 10 s for a million samples of one probability;
    choose fewer resamples there. The p-value is of one split; do not choose among splits.

    References
    ----------
    .. [1] Gruber & Bach, Optimizing Estimators of Squared Calibration Errors in Classification,
       TMLR 2025.

    Examples
    --------
    >>> from skcal.datasets import make_tempered
    >>> from skcal.hypothesis_tests import risk_test
    >>> data = make_tempered(500, temperature=1.5, n_truth_draws=0, random_state=0)
    >>> risk_test(data.labels, data.proba, notion="canonical", random_state=0).pvalue
    0.003
    """
    question = notion, sample_weight, labels, pos_label, from_logits
    sample = read_sample(y_true, y_proba, *question, groups=groups, at_least=4)
    rng = check_random_state(random_state)
    n_test = int(np.ceil(test_size * len(sample.codes)))
    if min(n_test, len(sample.codes) - n_test) < 2:
        raise ValueError(
            f"test_size={test_size} leaves {len(sample.codes) - n_test} training and {n_test} test "
            "samples; both parts need two."
        )
    seed = rng.randint(2**31 - 1)
    if sample.groups.independent:
        split = ShuffleSplit(1, test_size=n_test, random_state=seed)
        train, test = next(split.split(sample.codes))
    else:
        split = GroupShuffleSplit(1, test_size=test_size, random_state=seed)
        train, test = next(split.split(sample.codes, groups=sample.groups.codes))
    alike = np.ptp(sample.weight) == 0
    weight = None if alike else sample.weight[train] / sample.weight[train].mean()
    if function is None:
        function = PlugIn(MatrixScaling(C=1.0 if sample.notion.scalar else 0.01))
    estimator = CalibrationErrorEstimator(
        function,
        notion=sample.notion,
        labels=range(len(sample.classes)) if sample.proba.ndim == 2 else [0, 1],
    ).fit(sample.proba[train], sample.happened[train], weight)
    held_out = sample.take(test)
    functions = [
        fitted
        for fitted, problem in zip(estimator.functions_, held_out.problems(), strict=True)
        if len(problem.weight)
    ]
    problems = nonempty(held_out)
    statistics = [_RiskGain(*pair) for pair in zip(functions, problems, strict=True)]
    draws = draw_nulls(statistics, problems, n_resamples, rng, n_jobs)
    method = "risk on held-out samples by Monte Carlo"
    return replace(from_draws(held_out, draws, method), estimate=np.nan)


class _RiskGain:
    """Risk of 0 minus risk of h: the mean of 2 ⟨δ_i, δ_j⟩ h_ij - h_ij² over pairs i ≠ j.

    A pair weighs w_i w_j.
    """

    def __init__(self, function, problem):
        self.X = problem.features
        self.weight = problem.weight / problem.weight.mean()
        squares = self.weight**2
        single = len(self.X) == 1  # of which top-label may have a class
        self.pairs = 0.0 if single else weight_of_pairs(self.weight.sum(), squares.sum())
        phi = read_feature_map(function, self.X)
        self.phi = np.asarray(phi.toarray() if hasattr(phi, "toarray") else phi, dtype=np.float64)
        form = function.form_
        self.left = self.phi if form is None else np.asarray(self.phi @ form)
        self.diagonal = np.einsum("ij,ij->i", self.left, self.phi)
        # Σ_ij w_i w_j h_ij² = tr(M S M S), S = ΦᵀWΦ
        product = self.left.T @ (self.weight[:, None] * self.phi)
        self.squares = np.einsum("ij,ji->", product, product) - squares @ self.diagonal**2

    def __call__(self, codes):
        if not self.pairs:
            return np.zeros(len(codes))
        return np.array([self._gain(row) for row in codes])

    def _gain(self, codes):
        residuals = outcome_rows(codes, self.X.shape[1]) - self.X
        residuals = self.weight[:, None] * residuals
        inner = np.vdot(self.left.T @ residuals, self.phi.T @ residuals)
        inner -= self.diagonal @ np.einsum("ij,ij->i", residuals, residuals)
        return (2 * inner - self.squares) / self.pairs
