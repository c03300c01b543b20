"""The search: choose the function by the risk, test it on every sample, report the error."""

from __future__ import annotations

import warnings
from contextlib import nullcontext
from numbers import Integral
from typing import Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from skcal._folds import refuse_no_pairs
from skcal._labels import refuse_another_order
from skcal._running import one_blas_thread
from skcal._selection import cv_results
from skcal._show import Summarized, Summary
from skcal._sklearn_compat import CallbackSupportMixin, Interval, _fit_context, as_tasks
from skcal._validation import n_rows, plain_array
from skcal.choice.summaries import as_dict, summary_of_search
from skcal.hypothesis_tests import calibration_error_interval, calibration_test
from skcal.model_selection.adapters import FunctionCorrection
from skcal.model_selection.candidates import (
    expand_candidates,
    family_name,
    resolve_candidates,
    try_families,
)
from skcal.model_selection.comparison import compare_families, simplest_family
from skcal.model_selection.cross_fitting import CrossFit, best_family, compare_folds, try_choices
from skcal.model_selection.errors import (
    ErrorEstimate,
    check_kind,
    estimate_error,
    median_of_errors,
    with_reading,
)
from skcal.model_selection.estimates import (
    ConfidenceInterval,
    OneStepEstimate,
    median_of_one_steps,
    median_of_repeats,
)
from skcal.model_selection.estimator import CalibrationErrorEstimator
from skcal.model_selection.families import Work, group_families, score_groups
from skcal.model_selection.plan import make_plans, warn_of_small_problems
from skcal.notions import NOTIONS, Problems
from skcal.sample import HoldsNotion, read_fit, read_proba

_MANY_FEATURES = 2**22  # from here on several BLAS threads pay


class CalibrationErrorSearchCV(CallbackSupportMixin, Summarized, HoldsNotion, BaseEstimator):
    """Choose a calibration function by cross-validation and estimate the RMS calibration error.

    The search scores every candidate and parameter setting by the pair risk [1]_. By default it
    cuts the samples into blocks and fits each candidate without every pair of blocks. It then
    estimates the error on each block by fits that used neither this block nor the one that chose
    them. So every sample counts once.

    Parameters
    ----------
    candidates : list of (function, param_grid), str or None, default=None
        None or "recommended": :class:`~skcal.Zero`, the published search space and temperature
        scaling. Scalar notions add isotonic regression, splines and their stack. Vectors add
        structured matrix scaling and a stack of maps and trees (vector scaling above 100 classes).
        Vectors have no kernel density if the training samples of a fold, squared, times the number
        of classes exceed 5 · 10¹¹, as with 50,000 samples of 1,000 classes.
        "gruber-bach": the search space of [1]_. A grid may be a callable of the number of training
        samples in a fold.
    notion : str or callable, default="auto"
        The notion, as in :class:`CalibrationErrorEstimator`.
    labels : array-like of shape (n_classes,), default=None
        The class of each column. None: the names of a data frame's columns, if these name all
        labels; otherwise the sorted labels, if they are unambiguous.
    from_logits : bool, default=False
        Whether the predictions are logits: recalibration maps among the candidates then take them
        without loss, and other functions their probabilities.
    pos_label : int, float, bool or str, default=None
        The positive class of the notion "binary": of two columns, which may stand in any order, or
        of one-dimensional predictions. None: the class of the second column.
    cv : int ≥ 3, cross-validation splitter or iterable, default=5
        The blocks. An int K means K shuffled blocks, and K (K - 1) / 2 fits of every function. The
        validation sets of a splitter are the blocks, and must hold every sample once. With
        ``outer_cv`` the splits of the training samples.
    outer_cv : int, cross-validation splitter or iterable, default=None
        None: nested cross-fitting over pairs of blocks. Otherwise splits into training and test
        samples, with a whole search in each. ``ShuffleSplit(1, test_size=0.2)`` is the single split
        of [1]_, which tests on a fifth.
    n_repeats : int, default=1
        Repeats with blocks or outer splits that are shuffled anew; the estimates are then the
        medians over the repeats [2]_. Needs ``outer_cv`` None, an int or a ``ShuffleSplit`` without
        ``random_state``.
    n_jobs : int, default=None
        Jobs that score settings and folds in parallel. Results do not depend on it. Warnings of
        other packages in workers are printed by the workers.
    verbose : int, default=0
        1 prints a line per candidate, which names the next one. scikit-learn's callbacks (1.9 and
        later) are called for every candidate: ``search.set_callbacks(ProgressBar())``, which
        ``pip install rich`` makes ready.
    random_state : int, RandomState instance or None, default=None
        Shuffles the blocks and the default outer split.

    Attributes
    ----------
    squared_error_ : float
        The estimate of the squared calibration error. The forms are the product mean ⟨δ, ĝ⟩,
        debiased cells and both. The estimate is the mean of the forms that are as good as the best
        that the samples can bear. If it is within the noise, it is shrunk towards 0; see
        ``skcal.model_selection.adaptive``. Negative values are possible.
    standard_error_ : float
        The standard error of ``squared_error_``.
    rms_calibration_error_ : float
        The root mean squared difference of predicted probability and observed frequency: the root
        of ``squared_error_``, 0 with a warning where that is negative. It is at least as large as
        the calibration error, the mean absolute difference.
    calibrated_up_to_ : float
        ``rms_calibration_error_`` is below this with probability 0.95 if the predictions are
        calibrated. It comes from outcomes that are redrawn from the predictions, given the
        corrections. It says how large noise is; :func:`skcal.hypothesis_tests.calibration_test`
        says whether the error is significant.
    plug_in_squared_error_ : float
        Eq. 21 of [1]_, the mean of h(x, x) over test samples, averaged over the fits of the best
        function. It holds the noise of the fits.
    fold_spread_ : float
        The standard deviation of the plug-ins of single fits; not a standard error.
    one_step_squared_error_, one_step_standard_error_ : float or None
        The one-step estimate on the test samples, which in expectation is never too high; its lower
        confidence limit is :meth:`lower_confidence_bound`.
    one_step_function_ : calibration-estimation function or None
        The best function whose ``residual`` is not zero throughout, on which it rests; of the last
        outer split.
    best_function_, best_params_, best_risk_, best_score_, best_index_
        The chosen function and what chose it. ``best_score_`` is minus ``best_risk_``.
    best_estimator_ : CalibrationErrorEstimator
        The chosen function, refitted to all samples (all training samples of a single split).
    estimators_ : list of CalibrationErrorEstimator
        Fits of the chosen function without a part of the samples, one a split.
    cv_results_ : dict
        The scores of all candidates, as of :class:`~sklearn.model_selection.GridSearchCV`. The
        splits are the blocks, and the score of a block is the mean over the fits that lack it.
    families_, best_family_, simplest_family_
        Per candidate: ``name``, ``best_function``, scores and fold models; the chosen one; and the
        simplest whose risk is not significantly above the lowest (p > 0.05), which describes the
        table after the choice.
    comparisons_ : list of RiskComparison
        Paired difference of each candidate's validation risk to the best one's.
    outer_results_ : list of OuterResult
        The estimates for the samples of each block, or outer split, by the fits chosen for it.
    cross_fits_ : list of CrossFit
        The tested samples of each repeat with their corrections, and the estimates.
    notion_, classes_, n_features_in_, n_samples_, n_test_samples_

    See Also
    --------
    skcal.CalibrationErrorEstimator : one function, no choice.

    Notes
    -----
    For block o, the function and its setting are chosen by the risks of the fits without o and
    another block v, on v. The correction ĝ of a sample in o is the mean over these fits. So neither
    a fit nor a choice has used the sample. ``best_function_``, ``cv_results_`` and ``comparisons_``
    come from the scores of all fits. Blocks are shuffled until every class of three samples or more
    is in every training set. They are not stratified by the labels. Strata would give training and
    test samples the same share of events, and so a spurious error.

    These formulas, with only splines, were measured against known truth (60 data sets a cell, 16 at
    n = 5,000). The 15 scalar cells have calibrated, rare, tied, stepped, sparse and distorted
    predictions; on ten of them no constant was chosen. The geometric mean over cells of the mean
    absolute error of the root is 0.0120, 0.0066 and 0.0035 at n = 300, 1,000 and 5,000. That of
    debiased 15 bins is 0.0187, 0.0110 and 0.0053. The gain is largest for calibrated predictions
    (0.0021 against 0.0060 at n = 1,000). For others it is 0.0142 against 0.0165, and three of nine
    cells are 5 to 15 % worse. Above ``calibrated_up_to_`` were 8 % of 250 calibrated data sets of
    n = 300, most with few events, and 3 % of 150 of n = 1,000.

    The lower bound at 95 % was above the truth in at most 3.8 % of 400 data sets in every cell,
    rare events at n = 200 to 5,000 included. It was measured with one logistic, isotonic or binned
    correction in five folds. Risks rank functions on the *same* samples; they do not compare
    classifiers.

    The default candidates take some seconds for 10,000 samples of a scalar notion. "canonical"
    takes some 20 seconds for 10,000 samples of 10 classes, and minutes for 20,000 of 300. The time
    of kernel densities of vectors grows as n² C, and ridge forms need up to 1,000 landmarks, some
    minutes with 50,000 samples of 1,000 classes. Leave them out to be quicker. The time of maps,
    such as ``candidates=[Zero(), PlugIn(TemperatureScaling())]``, grows as n C². One function by
    :class:`CalibrationErrorEstimator` is quicker, too. ``verbose=1`` and callbacks show how far a
    search is.

    Searches of less than 2²² features (samples × classes) leave BLAS one thread: more of them wait
    for each other on matrices of this size. Workers of ``n_jobs`` share the processors. BLAS is one
    for the process: it has one thread until the last such search of any Python thread has ended.

    References
    ----------
    .. [1] Gruber & Bach, Optimizing Estimators of Squared Calibration Errors in Classification,
       TMLR 2025.
    .. [2] Chernozhukov et al., Double/debiased machine learning for treatment and structural
       parameters, The Econometrics Journal 2018, Definition 3.3.

    Examples
    --------
    >>> from skcal import CalibrationErrorSearchCV
    >>> from skcal.datasets import make_tempered
    >>> data = make_tempered(1000, temperature=2.0, random_state=0)
    >>> search = CalibrationErrorSearchCV(notion="confidence", random_state=0)
    >>> search.fit(data.proba, data.labels).families_[0].name
    'Zero'
    >>> bool(search.lower_confidence_bound() > 0)
    True
    """

    _set_last = "one_step_standard_error_"

    _parameter_constraints: dict = {
        "candidates": [list, tuple, str, None],
        "notion": [str, callable],
        "labels": ["array-like", None],
        "from_logits": ["boolean"],
        "pos_label": "no_validation",  # in read_sample, which knows the labels
        "cv": ["cv_object"],
        "outer_cv": ["cv_object", None],
        "n_repeats": [Interval(Integral, 1, None, closed="left")],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        candidates=None,
        notion="auto",
        labels=None,
        from_logits=False,
        pos_label=None,
        cv=5,
        outer_cv=None,
        n_repeats=1,
        n_jobs=None,
        verbose=0,
        random_state=None,
    ):
        self.candidates = candidates
        self.notion = notion
        self.labels = labels
        self.from_logits = from_logits
        self.pos_label = pos_label
        self.cv = cv
        self.outer_cv = outer_cv
        self.n_repeats = n_repeats
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(self, X, y, sample_weight=None, groups=None) -> Self:
        """Choose functions by their risks, and estimate the error by cross-validation.

        Parameters
        ----------
        X : array-like of shape (n_samples,) or (n_samples, n_classes)
            Predicted probabilities of samples that the classifier was not trained on.
        y : array-like of shape (n_samples,) or (n_samples, n_classes)
            Labels, or shares or votes of the classes; see :doc:`/guide/soft_labels`.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples; fits count a weight of 2 as a repeated row. None: all 1.
        groups : array-like of shape (n_samples,), default=None
            Samples of one group may depend on each other: blocks hold whole groups, and standard
            errors are those of sums over groups. See :doc:`/guide/dependent_samples`.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            If :class:`CalibrationErrorEstimator` raises it or there are too few samples for the
            splits. Also if the splits overlap, or a candidate cannot be fitted. The error comes
            before the long work.
        """
        sample = read_fit(self, X, y, self.notion, sample_weight, self.labels, groups)
        self.notion_, self.classes_ = sample.notion, sample.given_classes
        self._sample = sample if sample.weight.all() else sample.take(sample.weight > 0)
        self._verdict: tuple | None = None
        plans = make_plans(self, sample)
        data = Problems(sample.problems(), sample.weight, sample.groups)
        if not data.share_samples:
            warn_of_small_problems(plans, data.parts, sample)
        largest = max(data.parts, key=lambda problem: len(problem.features))
        families = self._families(largest, sample, plans[0])
        with one_blas_thread() if largest.features.size < _MANY_FEATURES else nullcontext():
            try_families(families, largest, plans[0].trainings[0])
            context = self._init_callback_context(max_subtasks=len(plans))
            context.call_on_fit_task_begin(estimator=self, X=X, y=y)
            self.outer_results_ = []
            for number, plan in enumerate(plans):
                if number:
                    families = self._families(largest, sample, plan)
                work = Work(data, plan, self.n_jobs)
                self._search(families, work, context)
                self.outer_results_ += try_choices(families, work)
            self.outer_results_.sort(key=lambda result: result.outer.repeat)
            self._set_choice(families, work)
            self._set_estimates(data)
            context.call_on_fit_task_end(estimator=self, X=X, y=y)
        return self

    def _families(self, problem, sample, plan):
        width = problem.features.shape[1]
        n_train = n_rows(sample.weight[plan.trainings[0]])
        candidates = resolve_candidates(self.candidates, self.notion_, width, n_train)
        return expand_candidates(candidates, self.from_logits)

    def _estimator(self, function, functions):
        """An estimator that holds functions which are fitted."""
        estimator = CalibrationErrorEstimator(
            function, self.notion_, self.classes_, self.from_logits, self.pos_label
        )
        estimator.classes_, estimator.notion_ = self.classes_, self.notion_
        estimator.n_features_in_, estimator.functions_ = self.n_features_in_, functions
        return estimator

    def _search(self, families, work, context):
        """Score the families on the columns of a plan; keep those of a finite risk."""
        groups = group_families(families)
        context = context.subcontext(task_name="search", max_subtasks=len(groups))
        context.call_on_fit_task_begin(estimator=self)
        scored = score_groups(groups, work)
        names = [group[0].name for group in groups]
        done, count = 0, sum(map(len, groups))
        following = [*(f"; next {name}" for name in names[1:]), ""]
        tasks = zip(groups, as_tasks(scored, names, self, context), following, strict=True)
        for group, _, more in tasks:
            for family in group if self.verbose else ():
                done += 1
                line = f"{done} of {count}, {family.report()}{more if family is group[-1] else ''}"
                print(f"[CalibrationErrorSearchCV] {line}", flush=True)
        families[:] = [family for family in families if np.isfinite(family.scores.max())]
        if not families:
            raise ValueError("No candidate has a finite risk. Pass others in candidates.")
        context.call_on_fit_task_end(estimator=self)

    def _set_choice(self, families, work):
        """Set what all columns of a plan choose, refitted to all of its samples."""
        best = best_family(families)
        fits = compare_folds(families, work)
        for family, of_family in zip(families, fits, strict=True):
            family.models = [self._estimator(family.best_function, fit) for fit in of_family]
        self.families_, self.best_family_, self.estimators_ = families, best, best.models
        self.best_function_ = best.best_function
        self.comparisons_ = compare_families(families, best)
        self.simplest_family_ = simplest_family(families, self.comparisons_)
        fitted = best.fit_to_all(work)
        self.best_estimator_ = self._estimator(best.best_function, fitted)
        for family in families:
            family.forget_fits()
        self.cv_results_ = cv_results(
            np.concatenate([family.split_scores for family in families]),
            np.concatenate([family.scores for family in families]),
            [times for family in families for times in family.times],
            [
                {"function": family.function}
                | {f"function__{name}": value for name, value in setting.items()}
                for family in families
                for setting in family.settings
            ],
        )
        self.best_index_ = int(np.argmax(self.cv_results_["mean_test_score"]))
        self.best_params_ = self.cv_results_["params"][self.best_index_]
        self.best_score_ = float(self.cv_results_["mean_test_score"][self.best_index_])
        self.best_risk_ = -self.best_score_

    def _set_estimates(self, data):
        """Estimate from all test samples of a repeat; medians over repeats."""
        repeats = [
            CrossFit.of([r for r in self.outer_results_ if r.outer.repeat == number], data)
            for number in range(self.n_repeats)
        ]
        self.n_samples_ = len(data.weight)
        tested = np.unique(np.concatenate([result.outer.test for result in self.outer_results_]))
        self.n_test_samples_ = int(np.count_nonzero(data.weight[tested]))
        self.cross_fits_ = repeats
        estimates = [repeat.squared_error for repeat in repeats]
        self.squared_error_, self.standard_error_ = median_of_repeats(
            [repeat.value for repeat in estimates], [repeat.standard_error for repeat in estimates]
        )
        limit = np.median([repeat.calibrated_up_to for repeat in repeats])
        self.calibrated_up_to_ = float(np.sqrt(limit))
        self.plug_in_squared_error_ = float(np.median([repeat.plug_in for repeat in repeats]))
        self.fold_spread_ = float(np.std(np.concatenate([r.plug_ins for r in self.outer_results_])))
        if self.squared_error_ < 0:
            warnings.warn(
                f"The squared calibration error is estimated as {self.squared_error_:.3g}; its "
                "root is reported as 0.",
                stacklevel=2,
            )
        self.rms_calibration_error_ = float(np.sqrt(max(self.squared_error_, 0.0)))
        self.one_step_ = median_of_one_steps([repeat.one_step for repeat in repeats])
        self.one_step_function_ = self.outer_results_[-1].function
        self.one_step_squared_error_ = self.one_step_ and self.one_step_.value
        self.one_step_standard_error_ = self.one_step_ and self.one_step_.standard_error

    def verdict(self):
        """Whether miscalibration is significant, and the calibration error with its limits.

        Returns
        -------
        test : JointTestResult
            As :func:`skcal.hypothesis_tests.calibration_test` returns it, with ``random_state=0``.
        error : CalibrationErrorInterval or None
            As :func:`skcal.calibration_error_interval` returns it; None for vectors, which
            have no such error.
        """
        check_is_fitted(self)
        if self._verdict is None:
            interval = calibration_error_interval if self.notion_.scalar else lambda _: None
            test = calibration_test(self._sample, n_resamples=None)
            self._verdict = test, interval(self._sample)
        return self._verdict

    def confidence_interval(self, confidence_level=0.95) -> ConfidenceInterval:
        """Normal interval around the one-step estimate.

        Parameters
        ----------
        confidence_level : float in (0, 1), default=0.95
            Share of samples, drawn anew, for which the limits hold.

        Returns
        -------
        interval : ConfidenceInterval
            ``low`` and ``high``, in squared probability units. It covers the squared error minus
            what the function misses, so only its lower end bounds the calibration error. It is
            widened where ``squared_error_`` lies outside.
        """
        low, high = self._one_step().confidence_interval(confidence_level)
        return ConfidenceInterval(min(low, self.squared_error_), max(high, self.squared_error_))

    def lower_confidence_bound(self, confidence_level=0.95) -> float:
        """One-sided lower confidence limit of the squared calibration error.

        Parameters
        ----------
        confidence_level : float in (0, 1), default=0.95
            Share of samples, drawn anew, for which the bound holds.

        Returns
        -------
        bound : float
            The bound in squared probability units, at most ``squared_error_``; negative bounds say
            nothing. It is above 0 only where the one-step estimate is significantly above 0 at this
            level, and so is the estimate.
        """
        return min(self._one_step().lower_confidence_bound(confidence_level), self.squared_error_)

    def error(self, kind="l1") -> ErrorEstimate:
        """Estimate a calibration error of the chosen kind, from the fits that were made.

        Parameters
        ----------
        kind : {"squared", "rms", "l1", "l2", "log"}, default="l1"
            "squared": the mean squared error. "rms": its root. "l1": the mean total variation
            (what ECE estimates). "l2": the mean Euclidean norm. "log": the log loss in nats that
            calibration would save. Errors of several classes are summed.

        Returns
        -------
        error : ErrorEstimate
            ``estimate``, ``standard_error``, ``lower_confidence_bound(0.95)`` and, for "l1" of
            scalar notions, its parts ``over`` and ``under``.

        Raises
        ------
        ValueError
            If there is no such kind, or if no candidate estimates the residual.
        """
        check_is_fitted(self)
        check_kind(kind)
        error = median_of_errors(
            [
                estimate_error(
                    kind, self.notion_, fit.data, fit.corrections, fit.squared_error, fit.one_step
                )
                for fit in self.cross_fits_
            ]
        )
        return with_reading(error, self.cross_fits_[0].data, self.cross_fits_[0].corrections)

    def recalibrator(self) -> FunctionCorrection:
        """Return a recalibration map that adds the best function's residuals to the predictions.

        Returns
        -------
        map : FunctionCorrection
            A fitted map, with ``predict_proba``.

        Raises
        ------
        ValueError
            If the best function does not estimate the residual, or the notion is "top-K" or a lens.
        """
        check_is_fitted(self)
        best = self.best_estimator_
        if self.one_step_function_ is not None and not hasattr(self.best_function_, "residual"):
            raise ValueError(
                f"The best function, {type(self.best_function_).__name__}, has no residual(X) to "
                "be added to predictions. Fit skcal.model_selection.FunctionCorrection("
                "sklearn.base.clone(search.best_estimator_).set_params("
                "function=search.one_step_function_)) to the samples instead: the best function "
                "that has."
            )
        return FunctionCorrection(clone(best))._set(best, n_rows(self._sample.weight))

    def _one_step(self) -> OneStepEstimate:
        check_is_fitted(self)
        if self.one_step_ is None:
            raise ValueError(
                "There is no one-step estimate: no candidate has `residual` other than zero "
                "throughout. Add one that has, such as skcal.TwoStepKernelRidge()."
            )
        return self.one_step_

    def predict(self, X) -> np.ndarray:
        """Estimated squared error at each prediction, by ``best_estimator_``.

        Parameters
        ----------
        X : array-like of shape (n_samples,) or (n_samples, n_classes)
            Predicted probabilities; one column holds P(positive class).

        Returns
        -------
        h : ndarray of shape (n_samples,)
        """
        X = self._checked(X)
        return self.best_estimator_.predict(X)

    def score(self, X, y, sample_weight=None) -> float:
        """Minus the pair risk of ``best_estimator_``; greater is better.

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
        score : float
        """
        refuse_another_order({"X": X, "y": y, "sample_weight": sample_weight})
        X = self._checked(X)
        return self.best_estimator_.score(X, y, sample_weight)

    def _checked(self, X):
        """Compare the columns with those of ``fit``; return an array."""
        check_is_fitted(self)
        read_proba(X, self.notion_, self.from_logits, "X", self, reset=False)
        return plain_array(X, "X")

    def to_dict(self) -> dict:
        """Return what the summary says as plain data, which JSON holds.

        Returns
        -------
        facts : dict
            The candidates with their risks, the choice, the errors with their limits, the verdict.
        """
        check_is_fitted(self)
        return as_dict(self)

    def settings(self) -> dict:
        """Return candidates and splits as JSON holds them; need not be fitted.

        Returns
        -------
        settings : dict
            "candidates", their names if they are listed, "cv" and "outer_cv".

        Raises
        ------
        ValueError
            If there are no such candidates, or a list of splits holds no pairs of rows.
        """
        candidates, splits = self.candidates, {"cv": self.cv, "outer_cv": self.outer_cv}
        for name, cv in splits.items():
            refuse_no_pairs(cv, name)
        resolved = resolve_candidates(candidates, NOTIONS["confidence"], 1, 1)
        if candidates is not None and not isinstance(candidates, str):
            candidates = [family_name(function) for function, _ in resolved]
        shown = {
            name: cv if isinstance(cv, int | None) else repr(cv) for name, cv in splits.items()
        }
        return {"candidates": candidates, **shown}

    def _summary(self) -> Summary:
        return summary_of_search(self)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags
