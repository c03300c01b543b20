"""The recalibrator: maps are tried on held-out samples, and the best is applied if it helps."""

from __future__ import annotations

import warnings
from contextlib import nullcontext
from functools import partial
from numbers import Integral
from typing import Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from skcal._folds import absent_class, warn_of_absent_class
from skcal._running import one_blas_thread
from skcal._scores import LOSSES
from skcal._selection import LEVEL, cv_results, simplest
from skcal._show import Summarized, Summary, number, pvalue_text
from skcal._sklearn_compat import CallbackSupportMixin, Interval, StrOptions, _fit_context, as_tasks
from skcal._validation import InputError, as_given, decoded, read_columns
from skcal.choice.recalibrator_json import recalibrator_from_text, recalibrator_to_text
from skcal.choice.summaries import summary_of_recalibrator
from skcal.hypothesis_tests.error_interval import calibration_error_interval
from skcal.recalibration.base import RecalibrationMap, warn_of_line
from skcal.recalibration.bayesian import is_contradicted, warn_if_contradicted
from skcal.recalibration.mixture import (
    default_max_samples,
    fit_map,
    make_map_candidates,
    mapped_proba,
)
from skcal.recalibration.reading import LabelledPredictions, read_labelled
from skcal.recalibration.trial import (
    SCORES,
    cross_fitted,
    judged_choice,
    splits_that_choose,
    try_maps,
)

_MANY_PROBABILITIES = 2**22  # from here on several BLAS threads pay
_LOSS_OF_SCORE = {score: loss for loss, score in SCORES.items()}


class Recalibrator(
    CallbackSupportMixin, Summarized, ClassifierMixin, TransformerMixin, BaseEstimator
):
    """Choose a recalibration map by its cross-validated loss, and apply it if that helps.

    Maps and parameters compete in cross-validation on predictions and labels of samples that the
    classifier was not trained on. The predictions stay as they are unless the best map gains more
    than chance would if they were calibrated. With two classes one map averages over simple and
    flexible ones, including the identity. It is applied if cross-validation shows a likely gain.

    Parameters
    ----------
    candidates : list of maps or of (map, param_grid), default=None
        Classifiers of probabilities, the simplest first, such as
        ``[TemperatureScaling(), (VectorScaling(), {"C": [0.1, 1]})]``. The identity is always among
        them, as the first. None: of two classes ``BayesianCalibration``, of more a temperature,
        ``EnsembleTemperatureScaling`` and vector scaling, and up to 100 classes a temperature of
        smoothed probabilities and matrix scaling.
    cv : int ≥ 2, cross-validation splitter or iterable, default=5
        The splits that choose; an int means as many shuffled folds. Test sets may not overlap.
    scoring : {"neg_log_loss", "neg_brier_score"}, default="neg_log_loss"
        The score that chooses. A map is fitted by its likelihood all the same.
    do_no_harm : bool, default=True
        Whether the predictions stay as they are unless a map is significantly better, and where the
        maps that the other folds choose raise the loss by more than a standard error, or do not
        clearly lower the calibration error: the gains of loss and calibration error sum to less
        than 1.6 standard errors. ``BayesianCalibration`` averages with the identity: it needs no
        significance, and a smaller gain where its weight of the identity is below 1/2.
    mix : bool, default=True
        Whether the mean of the candidates' probabilities, by weights of the highest held-out
        likelihood, is a candidate, too. It is applied if its loss is below that of each simpler one
        by more than the standard error of the difference. With three and more classes a temperature
        is fitted to the cross-fitted means. If not all samples take part in the choice, there is no
        mixture: with so many samples one map is as good.
    monotone : bool, default=True
        With two classes, whether the default map is increasing. Then the ranking of samples and the
        area under the ROC curve stay. If False, it may fall where the outcomes do.
    preserve_classes : bool, default=False
        Whether only maps are tried that keep the order of the classes of every sample: then no
        predicted class changes. The default ones are temperatures.
    labels : array-like of shape (n_classes,), default=None
        The class of each column; of single probabilities (negative class, positive class). None:
        the names of a data frame's columns, when these name all labels; else the sorted labels,
        with a warning where single probabilities are clearly those of the first.
    from_logits : bool, default=False
        Whether the predictions are logits, which the maps then use as they are. A logit of -inf is
        that of an absent option, whose probability stays 0. By default only temperatures compete
        then: they treat options alike and keep the answer.
    max_samples : int, default=None
        So many samples at most, drawn at random, choose; the chosen map is fitted to all. None:
        50,000 of two classes, 5,000 of more.
    store_out_of_fold : bool, default=True
        Whether ``out_of_fold_`` is stored. Without it a fitted recalibrator pickles without
        training labels and predictions, but cannot estimate calibration errors.
    n_jobs : int, default=None
        Jobs that fit settings and splits in parallel.
    random_state : int, RandomState instance or None, default=None
        Shuffles the folds and draws the samples.

    Attributes
    ----------
    best_estimator_ : map
        The chosen map, fitted to all samples.
    best_name_, best_params_, best_index_, best_score_
        Its name, its parameters, its place in ``cv_results_`` and its mean score.
    cv_results_ : dict
        The scores of all settings, as of :class:`~sklearn.model_selection.GridSearchCV`.
    names_ : list of str
        The candidates, in the order of ``comparisons_``.
    simplest_name_ : str
        The first candidate whose loss is not significantly above that of the chosen one (p > 0.05).
    comparisons_ : list of LossComparison
        The cross-validated loss of the best setting of each candidate (``before``) against that of
        the chosen one. The labels took part in the choice.
    comparison_ : dict of LossComparison
        ``"log_loss"`` and ``"brier_score"`` of the predictions before and after recalibration, on
        samples whose labels took part in neither the fit of the map nor its choice.
    out_of_fold_ : OutOfFold
        Cross-validated predictions before and after, with labels, if ``store_out_of_fold``.
    n_samples_ : int
        The samples of positive weight that the chosen map was fitted to.
    n_rows_ : float
        The rows that their weights stand for: the sum, at least (Σ w)² / Σ w².
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int

    See Also
    --------
    skcal.RecalibratedClassifierCV : a classifier with its recalibrator.
    skcal.CalibrationErrorSearchCV : estimates the calibration error.

    Notes
    -----
    scikit-learn's callbacks (1.9 and later) are called after every fit of a setting to a fold:
    ``recalibrator.set_callbacks(ProgressBar())``. The default takes about a second for 100,000
    samples of ten classes and some 20 s for 10,000 of a hundred.
    ``candidates=[TemperatureScaling()]``, or a plain ``TemperatureScaling``, then takes a second.

    To judge a fold, the map is chosen by the losses of the other folds, and fitted to the other
    folds. Other maps that took part in this choice were fitted to samples of the fold. So
    ``comparison_`` is nearly free of the optimism of a choice; a third set of samples is free of
    it. ``p`` of a choice is that of a gain Σ log q_Y / p_Y above its mean, in units of its standard
    deviation, if Y follows p: both are known given the map, and outliers of overconfident
    predictions do not hide what they show.

    The probabilities of a map are mixed with uniform ones of weight 1 / (n + 1): n samples cannot
    show that anything is impossible. If there are weights, n is ``n_rows_``.

    Examples
    --------
    >>> from skcal import Recalibrator
    >>> from skcal.datasets import make_tempered
    >>> data = make_tempered(2000, temperature=2.0, n_truth_draws=0, random_state=0)
    >>> recalibrator = Recalibrator(random_state=0).fit(data.proba[:1000], data.labels[:1000])
    >>> recalibrator.best_name_, recalibrator.simplest_name_
    ('TemperatureScaling', 'TemperatureScaling')
    >>> bool(recalibrator.comparison_["log_loss"].pvalue < 1e-3)
    True
    >>> recalibrator.predict_proba(data.proba[1000:]).shape
    (1000, 5)
    """

    _set_last = "best_estimator_"
    _treats_options_alike = True
    _takes_absent = RecalibrationMap._takes_absent

    _parameter_constraints: dict = {
        "candidates": [list, tuple, None],
        "cv": ["cv_object"],
        "scoring": [StrOptions(set(LOSSES))],
        "do_no_harm": ["boolean"],
        "mix": ["boolean"],
        "monotone": ["boolean"],
        "preserve_classes": ["boolean"],
        "labels": ["array-like", None],
        "from_logits": ["boolean"],
        "store_out_of_fold": ["boolean"],
        "max_samples": [Interval(Integral, 2, None, closed="left"), None],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        candidates=None,
        cv=5,
        *,
        scoring="neg_log_loss",
        do_no_harm=True,
        mix=True,
        monotone=True,
        preserve_classes=False,
        labels=None,
        from_logits=False,
        max_samples=None,
        store_out_of_fold=True,
        n_jobs=None,
        random_state=None,
    ):
        self.candidates = candidates
        self.cv = cv
        self.scoring = scoring
        self.do_no_harm = do_no_harm
        self.mix = mix
        self.monotone = monotone
        self.preserve_classes = preserve_classes
        self.labels = labels
        self.from_logits = from_logits
        self.max_samples = max_samples
        self.store_out_of_fold = store_out_of_fold
        self.n_jobs = n_jobs
        self.random_state = random_state

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(self, X, y, sample_weight=None, groups=None) -> Self:
        """Try the maps, choose one and fit it to all samples.

        Parameters
        ----------
        X : array-like of shape (n_samples,) or (n_samples, n_classes)
            Predictions for samples that the classifier was not trained on; one-dimensional ones are
            those of the positive class.
        y : array-like of shape (n_samples,) or (n_samples, n_classes)
            Labels, or shares or votes of the classes; see :doc:`/guide/soft_labels`.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples; a weight of 2 counts as a repeated row. A sum below the
            effective sample size (Σ w)² / Σ w² is raised to it. None: all 1. If there is a row for
            each label of a prediction, whose weight counts its cases, an int ``cv`` keeps these
            rows in one fold.
        groups : array-like of shape (n_samples,), default=None
            Samples of one group may depend on each other: folds hold whole groups, and losses are
            compared by the sums over groups. Maps themselves are fitted as if samples were
            independent: repeated rows count as often as they stand. See
            :doc:`/guide/dependent_samples`.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            If X is not predictions, y not the labels of its columns, or the splits overlap or leave
            nothing to fit to.
        """
        data = read_labelled(self, X, y, sample_weight, self.labels, groups, counted=True)
        if isinstance(self.cv, Integral):
            data = data.with_counts_together(int(self.cv))
        self._n_rows = len(data.X)
        self._errors: dict = {}
        with one_blas_thread() if data.X.size < _MANY_PROBABILITIES else nullcontext():
            return self._fit(data, X, y)

    def _fit(self, data: LabelledPredictions, X, y):
        candidates = make_map_candidates(
            self.candidates,
            data.n_classes,
            self.from_logits,
            self.monotone,
            self.preserve_classes,
            data.has_absent,
        )
        most = self.max_samples or default_max_samples(data.n_classes)
        splits = splits_that_choose(data, self.cv, most, self.random_state)
        drawn = np.unique(np.concatenate([rows for split in splits for rows in split]))
        counts = np.where(np.isin(np.arange(len(data.X)), drawn), data.weight, 0.0)
        absent = absent_class((train for train, _ in splits), data.happened, counts, data.groups)
        judge = "maps that were fitted without it judge it"
        warn_of_absent_class(absent, self.classes_, judge, self.cv)
        n_chosen = len(np.unique(np.concatenate([test for _, test in splits])))
        mix = self.mix and len(splits) > 2 and n_chosen == data.n_positive and len(candidates) > 2
        n_fits = sum(len(candidate.settings) for candidate in candidates) * len(splits)
        context = self._init_callback_context(max_subtasks=n_fits)
        context.call_on_fit_task_begin(estimator=self, X=X, y=y)
        progress = partial(as_tasks, estimator=self, context=context)
        trial = try_maps(candidates, data, splits, self.scoring, mix, self.n_jobs, progress)
        choice = judged_choice(trial, self.do_no_harm, _LOSS_OF_SCORE[self.scoring])
        self._set_results(trial, choice)
        self.n_samples_, self.n_rows_ = data.n_positive, data.n_rows
        self.best_estimator_ = fit_map(trial.maps[self.best_index_], data)
        contradicted = self.best_estimator_
        if is_contradicted(contradicted) and not data.groups.independent:
            # Those of one group may say no more than one sample.
            _, firsts = np.unique(data.groups.units(len(data.X)), return_index=True)
            contradicted = fit_map(contradicted, data.take(firsts))
        warn_if_contradicted(contradicted)
        warn_of_line(self.best_estimator_)
        context.call_on_fit_task_end(estimator=self, X=X, y=y)
        return self

    def _set_results(self, trial, choice):
        best, self._harm, self._cross_fits, out_of_fold, self.comparison_ = choice
        self.__dict__.pop("out_of_fold_", None)  # of an earlier fit
        if self.store_out_of_fold:
            self.out_of_fold_ = out_of_fold
        _warn_of_harm(_LOSS_OF_SCORE[self.scoring], self.comparison_[_LOSS_OF_SCORE[self.scoring]])
        means = trial.mean_losses()
        self.best_index_ = best
        self.best_params_ = trial.settings[best]
        self.best_name_ = trial.names[trial.owners[best]]
        self.best_score_ = -float(means[best])
        self.names_ = trial.names
        shown = trial.best_of_candidates(means)
        shown[trial.owners[best]] = best
        self._shown_params = [trial.settings[setting] for setting in shown]
        self._shares = trial.shares_of_mixture() if self.best_name_ == "Mixture" else {}
        self.comparisons_ = [trial.compare(setting, best) for setting in shown]
        self.simplest_name_ = self.names_[simplest(self.comparisons_)]
        by_split = [trial.of_splits([k]).mean_losses() for k in range(len(trial.splits))]
        self.cv_results_ = cv_results(
            -np.stack(by_split, axis=1),
            -means,
            [np.array([judged.times for judged in row]) for row in trial.held_out],
            trial.settings,
        )

    def cross_fit_predict_proba(self, X) -> np.ndarray:
        """Recalibrate the training samples, each by a map that was not fitted to it.

        Parameters
        ----------
        X : array-like of shape (n_samples,) or (n_samples, n_classes)
            The predictions that were passed to ``fit``, in the same order.

        Returns
        -------
        proba : ndarray of shape (n_samples, n_classes)
            Row i belongs to row i of X. A sample of a fold is recalibrated by the map that was
            chosen by and fitted to the other folds. Samples that were not drawn for the choice
            are shared out among these maps.

        Raises
        ------
        InputError
            If X has another number of rows than in ``fit``, or if ``cv`` uses a sample for every
            fit and never tests it.
        """
        check_is_fitted(self)
        if not self._cross_fits:
            raise ValueError("A recalibrator that was read from JSON has no cross-fitted maps.")
        predictions = read_columns(self, X, reset=False)
        if len(predictions) != self._n_rows:
            reason = f"has {len(predictions)} rows, but {self._n_rows} were passed to fit."
            raise InputError("X", reason, "Pass the predictions of fit, or call predict_proba.")
        proba = cross_fitted(self._cross_fits, predictions, len(self.classes_))
        if np.isnan(proba).any():
            row = int(np.argmax(np.isnan(proba[:, 0])))
            reason = "took part in every fit: cv never tests it."
            raise InputError("X", reason, "Fit with a cv that tests every sample.", row=row)
        return proba.astype(predictions.dtype, copy=False)

    def remaining_error(self, notion="auto"):
        """Return the calibration error after recalibration, on cross-validated predictions.

        Parameters
        ----------
        notion : str, default="auto"
            The kind of calibration: "binary" for two classes, "confidence" for more; see
            :mod:`skcal.notions`.

        Returns
        -------
        error : CalibrationErrorInterval
            With ``estimate``, one-sided 95 % limits ``low`` and ``high``, and ``sentence()``; see
            :func:`skcal.calibration_error_interval`.
        """
        return self._error("after", notion)

    def initial_error(self, notion="auto"):
        """Return the calibration error before recalibration, on the same samples.

        Parameters
        ----------
        notion : str, default="auto"
            As in :meth:`remaining_error`.

        Returns
        -------
        error : CalibrationErrorInterval
        """
        return self._error("before", notion)

    def _error(self, which: str, notion):
        check_is_fitted(self)
        if not hasattr(self, "out_of_fold_"):
            raise ValueError(
                "The cross-validated predictions, which show the calibration error, were not "
                "stored. Fit with store_out_of_fold=True; JSON never holds them."
            )
        if (which, notion) not in self._errors:
            judged = self.out_of_fold_
            self._errors[which, notion] = calibration_error_interval(
                judged.codes,
                getattr(judged, which),
                notion=notion,
                sample_weight=judged.weight,
                groups=judged.groups.codes,
                labels=np.arange(len(self.classes_)),
            )
        return self._errors[which, notion]

    def predict_proba(self, X) -> np.ndarray:
        """Recalibrated probabilities.

        Parameters
        ----------
        X : array-like of shape (n_samples,) or (n_samples, n_classes)
            Predictions of the kind that the recalibrator was fitted to.

        Returns
        -------
        proba : ndarray of shape (n_samples, n_classes)
        """
        check_is_fitted(self)
        map, predictions = self.best_estimator_, read_columns(self, X, reset=False)
        proba = mapped_proba(map, predictions, self.n_rows_, len(self.classes_))
        return as_given(proba, X)

    def transform(self, X) -> np.ndarray:
        """Recalibrated probabilities, as :meth:`predict_proba`, for pipelines.

        Parameters
        ----------
        X : array-like of shape (n_samples,) or (n_samples, n_classes)
            Predicted probabilities; one column holds P(positive class).
        """
        return self.predict_proba(X)

    def predict(self, X) -> np.ndarray:
        """Most probable class of each sample.

        Parameters
        ----------
        X : array-like of shape (n_samples,) or (n_samples, n_classes)
            Predicted probabilities; one column holds P(positive class).
        """
        most_probable = decoded(self.predict_proba(X)).argmax(axis=1)
        return as_given(self.classes_[most_probable], X)

    def get_feature_names_out(self, input_features=None):
        """Return the classes as names of the columns.

        Parameters
        ----------
        input_features : array-like of str, default=None
            Ignored; there for scikit-learn.
        """
        check_is_fitted(self)
        return self.classes_.astype(str).astype(object)

    def _summary(self) -> Summary:
        return summary_of_recalibrator(self)

    def to_json(self) -> str:
        """Return the fitted recalibrator as JSON text, with the formula of its map.

        Returns
        -------
        text : str
            A recalibrator that :meth:`from_json` reads predicts the same. The keys are those of
            ``skcal.choice.recalibrator_json``.

        Raises
        ------
        TypeError
            If the chosen map is not one of the package.
        """
        check_is_fitted(self)
        return recalibrator_to_text(self)

    @classmethod
    def from_json(cls, text: str) -> Recalibrator:
        """A recalibrator that predicts as the one that :meth:`to_json` wrote.

        Parameters
        ----------
        text : str
            What :meth:`to_json` returned.

        Returns
        -------
        recalibrator : Recalibrator
            Without what was found on the training samples, such as ``comparison_``.

        Raises
        ------
        ValueError
            If the text holds no recalibrator, or its parts do not fit together.
        """
        recalibrator = cls()
        recalibrator_from_text(recalibrator, text)
        return recalibrator

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


def _warn_of_harm(loss: str, judged) -> None:
    if not (judged.difference < 0 and judged.pvalue <= LEVEL):
        return
    warnings.warn(
        f"The chosen map makes the predictions worse: the cross-validated {loss.replace('_', ' ')} "
        f"rises by {number(-judged.difference)} ± {number(judged.standard_error)} "
        f"({pvalue_text(judged.pvalue)}). Pass another map, or Recalibrator([the map], "
        "do_no_harm=True), which then leaves the predictions as they are.",
        UserWarning,
        stacklevel=2,
    )
