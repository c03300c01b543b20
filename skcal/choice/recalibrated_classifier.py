"""A classifier with its recalibrator, fitted to out-of-fold predictions."""

from __future__ import annotations

import pickle
import warnings
from contextlib import contextmanager
from inspect import signature
from multiprocessing import parent_process
from numbers import Integral
from typing import Self

import numpy as np
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import StratifiedGroupKFold, check_cv
from sklearn.svm import LinearSVC
from sklearn.utils import Bunch, get_tags, indexable
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.validation import check_is_fitted

from skcal._folds import absent_class, read_splits, refuse_overlap
from skcal._groups import read_groups
from skcal._labels import plain_labels, refuse_another_order, refuse_mark, shortened, sorted_labels
from skcal._running import one_by_one
from skcal._show import Summarized, Summary
from skcal._sklearn_compat import (
    CallbackSupportMixin,
    HasMethods,
    Hidden,
    StrOptions,
    _check_method_params,
    _fit_context,
    _num_samples,
    _safe_indexing,
    as_tasks,
)
from skcal._validation import (
    InputError,
    as_given,
    check_proba,
    check_weight,
    decoded,
    first_of,
    is_dispatched,
    naming,
    refuse_masked,
    refuse_probabilities,
)
from skcal.choice.recalibrator import Recalibrator


class RecalibratedClassifierCV(
    CallbackSupportMixin, Summarized, ClassifierMixin, MetaEstimatorMixin, BaseEstimator
):
    """Recalibrate a classifier, and estimate the gain and the calibration error that is left.

    As :class:`~sklearn.calibration.CalibratedClassifierCV`: classifiers are fitted without each
    fold in turn, and the map is fitted to their predictions for it. Here *one* map is fitted to the
    predictions of all folds. It is chosen among several. The predictions stay as they are unless
    cross-validation shows a gain: a significant one with three and more classes, a likely one with
    two.

    Parameters
    ----------
    estimator : classifier, default=None
        One with ``predict_proba``, or with ``decision_function``, whose values are then taken as
        logits. A fitted classifier in :class:`~sklearn.frozen.FrozenEstimator` is not fitted again;
        pass samples that it was not trained on, whose labels are among its classes. None:
        :class:`~sklearn.svm.LinearSVC`.
    recalibrator : Recalibrator or map, default=None
        None: :class:`skcal.Recalibrator`. Its ``cv``, ``labels``, ``from_logits`` and
        ``store_out_of_fold`` are set by the classifier. A map, such as
        :class:`skcal.TemperatureScaling`, is used without a choice.
    cv : int, cross-validation splitter or iterable, default=5
        The folds, stratified where it is an int; their test sets may not overlap.
    ensemble : bool or "auto", default="auto"
        Whether predictions are the mean over the classifiers of the folds, each recalibrated; else
        those of one classifier that is fitted to all samples. "auto": True. A frozen classifier
        stays one, and ``ensemble`` changes nothing.
    n_jobs : int, default=None
        Jobs that fit the classifiers in parallel.
    random_state : int, RandomState instance or None, default=None
        That of the default classifier and recalibrator, and of the search for calibration errors; a
        recalibrator that is passed keeps its own. Folds of an int ``cv`` are not shuffled.
    store_out_of_fold : bool, default=True
        Whether ``out_of_fold_`` is stored. Without it a fitted classifier pickles without
        training labels and predictions, but cannot estimate calibration errors.

    Attributes
    ----------
    classifiers_ : list of classifiers
        Whose predictions are recalibrated and averaged.
    recalibrator_ : Recalibrator
        Fitted to the out-of-fold predictions.
    comparison_ : dict of LossComparison
        ``"log_loss"`` and ``"brier_score"`` before and after, of samples that neither the
        classifier nor the map has seen, with the paired difference, its standard error and p.
    out_of_fold_ : OutOfFold
        These predictions, if ``store_out_of_fold``; of many samples those that the recalibrator
        drew.
    classes_ : ndarray of shape (n_classes,)
        Those of a frozen classifier, else the sorted labels.
    n_features_in_ : int
        If the classifier has it.

    See Also
    --------
    skcal.Recalibrator : the same for predictions.

    Notes
    -----
    Folds of the classifiers and of the judgement of maps are the same: the map that judges a fold
    was fitted to the predictions for the others. Those come from classifiers that were fitted to
    this fold too, as in stacking. The mean of an ensemble is in general better than its members,
    of which ``comparison_`` tells.

    The probabilities of a map are mixed with uniform ones of weight 1 / (n + 1), where n is the
    number of rows that the map was fitted to. So no class gets less than 1 / ((n + 1) C) of C
    classes, and the last digits differ from those of the map by itself. Predictions that stay as
    they are keep every digit.

    scikit-learn's callbacks (1.9 and later) are called for every fold and by the recalibrator:
    ``classifier.set_callbacks(ProgressBar())``.

    The map is fitted to predictions of single classifiers. The mean of an ensemble is more accurate
    than they are, so that its recalibrated probabilities are too low by about the gain in accuracy.
    Naive Bayes on two halves of the digits: the calibration error was 0.16 and 0.17, by an ensemble
    0.033 and 0.064, with ``ensemble=False`` 0.014 and 0.039.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from skcal import RecalibratedClassifierCV
    >>> X, y = load_digits(return_X_y=True)
    >>> classifier = RecalibratedClassifierCV(GaussianNB()).fit(X[:1200], y[:1200])
    >>> classifier.predict_proba(X[1200:]).shape
    (597, 10)
    >>> won = classifier.comparison_["brier_score"]
    >>> bool(won.after < 0.8 * won.before), bool(won.pvalue < 0.001)
    (True, True)
    >>> bool(classifier.remaining_error().estimate < classifier.initial_error().estimate)
    True
    """

    _set_last = "comparison_"

    _parameter_constraints: dict = {
        "estimator": [
            HasMethods(["fit", "predict_proba"]),
            HasMethods(["fit", "decision_function"]),
            None,
        ],
        "recalibrator": [HasMethods(["fit", "predict_proba"]), None],
        "cv": ["cv_object", Hidden(StrOptions({"prefit"}))],
        "ensemble": ["boolean", StrOptions({"auto"})],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
        "store_out_of_fold": ["boolean"],
    }

    def __init__(
        self,
        estimator=None,
        recalibrator=None,
        cv=5,
        *,
        ensemble="auto",
        n_jobs=None,
        random_state=None,
        store_out_of_fold=True,
    ):
        self.estimator = estimator
        self.recalibrator = recalibrator
        self.cv = cv
        self.ensemble = ensemble
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.store_out_of_fold = store_out_of_fold

    def _estimator(self):
        for name in ("estimator", "recalibrator"):
            if isinstance(kind := getattr(self, name), type):
                raise InputError(name, f"is a class, {kind.__name__}.", "Pass an instance of it.")
        if isinstance(self.cv, str):
            remedy = "Leave cv out, and pass FrozenEstimator(estimator) of sklearn.frozen."
            raise InputError("cv", "is 'prefit', which scikit-learn has replaced.", remedy)
        if self.estimator is not None:
            return self.estimator
        estimator = LinearSVC(random_state=self.random_state)
        if get_config()["enable_metadata_routing"]:
            estimator.set_fit_request(sample_weight=True)
        return estimator

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(self, X, y, sample_weight=None, groups=None, **fit_params) -> Self:
        """Fit classifiers and the recalibrator of their predictions.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features, as the classifier takes them.
        y : array-like of shape (n_samples,)
            Labels of two classes or more. Classes of a frozen classifier may be absent.
        sample_weight : array-like of shape (n_samples,), default=None
            Used by the recalibrator, and by a classifier that takes it.
        groups : array-like of shape (n_samples,), default=None
            Samples of one group may depend on each other: folds hold whole groups, an int ``cv``
            those of :class:`~sklearn.model_selection.StratifiedGroupKFold`. See
            :doc:`/guide/dependent_samples`.
        **fit_params : dict
            Passed on to the ``fit`` of the classifiers.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            If there are less than two classes, the training part of a fold lacks a class, test sets
            overlap, or a label is not among the classes of a frozen classifier. Exceptions of the
            classifier are raised as they are, with a note on the fold.
        """
        given = {"X": X, "y": y, "sample_weight": sample_weight, "groups": groups}
        refuse_another_order(given)
        X, y = _checked(X, y)
        estimator = self._estimator()
        frozen = isinstance(estimator, FrozenEstimator)
        if frozen:
            kind = type(estimator.estimator).__name__
            remedy = f"Fit it before FrozenEstimator({kind}) is made, which does not fit it."
            check_is_fitted(estimator, msg=f"{kind} is not fitted. {remedy}")
        present, codes = sorted_labels(y, "y")
        if len(present) < 2:
            raise ValueError(
                f"y holds one class, {present.tolist()[0]!r}. A classifier needs samples of "
                "two classes or more."
            )
        if not frozen and len(present) > 2:
            refuse_mark(y, present, len(present), "y", "X", "Pass numpy.asarray(y).astype(str).")
        self.classes_ = self._fitted_classes = decoded(estimator.classes_) if frozen else present
        codes = _places_of(present, self.classes_)[codes]
        if (codes < 0).any():
            row = int(np.argmax(codes < 0))
            reason = f"is {y.tolist()[row]!r}, not a class of the frozen classifier: its classes "
            reason += f"are {shortened(self.classes_)}."
            raise InputError("y", reason, "Pass labels as the classifier was trained on.", row=row)
        weight = check_weight(sample_weight, len(codes))
        together = read_groups(groups, weight, fewest=2)
        given_weight = None if sample_weight is None else as_given(weight, X)
        routed = self._route(estimator, given_weight, fit_params)
        splits = self._splits(X, y, codes, weight, together, routed.splitter.split, frozen)
        rows = np.concatenate([test for _, test in splits])
        sizes = [len(test) for _, test in splits]
        context = self._init_callback_context(max_subtasks=1 if frozen else len(splits) + 1)
        context.call_on_fit_task_begin(estimator=self, X=X, y=y)
        if frozen:
            self.classifiers_ = [clone(estimator)]
            predictions = _aligned_predictions(estimator, _safe_indexing(X, rows), self.classes_)
        else:
            labels = y
            if is_dispatched(X) and y.dtype.kind not in "biuf":  # other libraries hold no texts
                labels, self._fitted_classes = codes, np.arange(len(self.classes_))
            predictions = self._fit_classifiers(
                estimator, X, as_given(labels, X), splits, routed.estimator.fit, context
            )
        self._fit_recalibrator(predictions, rows, codes, weight, together, sizes, context)
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.classifiers_[0], name):
                setattr(self, name, getattr(self.classifiers_[0], name))
        context.call_on_fit_task_end(estimator=self, X=X, y=y)
        return self

    def _fit_classifiers(self, estimator, X, y, splits, params, context):
        """The classifier of each fold or, unless an ensemble, of all; predictions of the folds."""
        calls = [
            (_fit_fold, clone(estimator), X, y, fold, *split, params, self._fitted_classes)
            for fold, split in enumerate(splits)
        ]
        names = [f"fold {k}" for k in range(len(splits))]
        fits = list(as_tasks(one_by_one(calls, self.n_jobs), names, self, context))
        self.classifiers_ = [classifier for classifier, _ in fits]
        if self.ensemble is False:
            with noting(estimator, "fit with all samples"):
                self.classifiers_ = [clone(estimator).fit(X, y, **params)]
        return np.concatenate([held_out for _, held_out in fits])

    def _route(self, estimator, sample_weight, fit_params):
        if get_config()["enable_metadata_routing"]:
            return process_routing(self, "fit", sample_weight=sample_weight, **fit_params)
        params = dict(fit_params)
        if sample_weight is not None:
            of_a_step = any(name.endswith("__sample_weight") for name in fit_params)
            if "sample_weight" in signature(estimator.fit).parameters:
                params["sample_weight"] = sample_weight
            elif not isinstance(estimator, FrozenEstimator) and not of_a_step:
                remedy = "Pass a classifier that takes it, or no weights."
                if hasattr(estimator, "steps"):
                    step = estimator.steps[-1][0]
                    remedy = f"Pass {step}__sample_weight to fit, too, for its last step."
                warnings.warn(
                    f"{type(estimator).__name__} does not take sample_weight: the recalibrator "
                    f"alone uses it. {remedy}",
                    stacklevel=2,
                )
        return Bunch(splitter=Bunch(split={}), estimator=Bunch(fit=params))

    def _splits(self, X, y, codes, weight, groups, params, frozen):
        """Training and test rows of the folds; no sample is tested twice."""
        kept = np.flatnonzero(weight)
        counts = np.bincount(codes[kept], minlength=len(self.classes_))
        if not frozen and np.count_nonzero(counts) < 2:
            raise ValueError(
                f"All samples of positive weight are of one class, "
                f"{self.classes_.tolist()[counts.argmax()]!r}. A classifier needs two or more."
            )
        if not frozen and isinstance(self.cv, Integral) and counts.min() < int(self.cv):
            raise ValueError(
                f"Class {self.classes_.tolist()[counts.argmin()]!r} has {counts.min()} samples, "
                f"less than cv={self.cv} folds. Pass fewer folds or more samples."
            )
        cv = check_cv(self.cv, y, classifier=True)
        if not groups.independent and (self.cv is None or isinstance(self.cv, Integral)):
            cv = StratifiedGroupKFold(cv.n_splits)
        with warnings.catch_warnings():
            if frozen:  # whose folds need not hold every class
                warnings.filterwarnings("ignore", "The least populated class", UserWarning)
            if len(kept) < len(codes) and (self.cv is None or isinstance(self.cv, Integral)):
                splits = read_splits(cv, kept, codes[kept], groups.take(kept), **params)
                splits = _with_others(splits, kept, np.flatnonzero(weight == 0))
            else:
                splits = self._given_splits(cv, X, y, groups, weight > 0, params)
        refuse_overlap(splits, len(codes))
        absent = absent_class((train for train, _ in splits), codes, weight, groups)
        if absent and not frozen:
            self._refuse_absent(absent, groups)
        return splits

    @staticmethod
    def _given_splits(cv, X, y, groups, counted, params):
        try:
            return read_splits(cv, X, y, groups, counted=counted, **params)
        except InputError as error:
            if error.kind != "no sample" or counted.all():
                raise
            remedy = "Leave out the samples of weight 0, or pass a number of folds."
            raise error.with_remedy(remedy) from None

    def _refuse_absent(self, absent, groups):
        """Raise for a training part without a class, with folds that help if there are any."""
        kind = "StratifiedKFold" if groups.independent else "StratifiedGroupKFold"
        remedy = f"Pass cv={kind}({min(absent.n_held, 5)}, shuffle=True)."
        if absent.n_held == 1:
            unit = "sample" if groups.independent else "group"
            remedy = f"This class has one {unit}: pass more of it, or leave the class out."
        reason = f"is unsuitable. {absent.sentence(self.classes_)}, so that a classifier would "
        raise InputError("cv", f"{reason}give it probability 0.", remedy)

    def _fit_recalibrator(self, predictions, rows, codes, weight, groups, sizes, context):
        recalibrator = self.recalibrator
        if recalibrator is None:
            recalibrator = Recalibrator(random_state=self.random_state)
        elif not isinstance(recalibrator, Recalibrator):
            only = {"do_no_harm": False, "mix": False, "random_state": self.random_state}
            recalibrator = Recalibrator([recalibrator], **only)
        places = np.arange(len(rows))
        blocks = np.split(places, np.cumsum(sizes)[:-1])
        splits = [(np.setdiff1d(places, block), block) for block in blocks]
        cv = splits if len(splits) > 1 else 5
        logits = not hasattr(self.classifiers_[0], "predict_proba")
        # Column numbers are the labels: those that are tested may lack a class.
        labels = np.arange(len(self.classes_))
        recalibrator = clone(recalibrator).set_params(
            cv=cv, labels=labels, from_logits=logits, store_out_of_fold=self.store_out_of_fold
        )
        task = context.subcontext(task_name="recalibrator")
        with task.propagate_callback_context(recalibrator):
            together = groups.take(rows)
            self.recalibrator_ = recalibrator.fit(predictions, codes[rows], weight[rows], together)
        self.__dict__.pop("out_of_fold_", None)  # of an earlier fit
        if self.store_out_of_fold:
            judged = self.recalibrator_.out_of_fold_
            self.out_of_fold_ = judged._replace(rows=rows[judged.rows])
        self.comparison_ = self.recalibrator_.comparison_

    def predict_proba(self, X) -> np.ndarray:
        """Recalibrated probabilities, of an ensemble their mean.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features, as given to ``fit``.

        Returns
        -------
        proba : ndarray of shape (n_samples, n_classes)
            Under ``sklearn.config_context(array_api_dispatch=True)`` of the library and device of
            X.
        """
        check_is_fitted(self)
        proba = [
            self.recalibrator_.predict_proba(
                _aligned_predictions(classifier, X, self._fitted_classes)
            )
            for classifier in self.classifiers_
        ]
        return as_given(np.mean(proba, axis=0), X)

    def predict(self, X) -> np.ndarray:
        """Most probable class of each sample, which may differ from the classifier's.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features, as given to ``fit``.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            Numbers are of the library and device of X, as in :meth:`predict_proba`.
        """
        check_is_fitted(self)
        return as_given(self.classes_[decoded(self.predict_proba(X)).argmax(axis=1)], X)

    def remaining_error(self, notion="auto"):
        """Return the calibration error after recalibration, on out-of-fold predictions.

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
        check_is_fitted(self)
        return self.recalibrator_.remaining_error(notion)

    def initial_error(self, notion="auto"):
        """Return the calibration error of the classifier, on the same samples.

        Parameters
        ----------
        notion : str, default="auto"
            As in :meth:`remaining_error`.

        Returns
        -------
        error : CalibrationErrorInterval
        """
        check_is_fitted(self)
        return self.recalibrator_.initial_error(notion)

    def _summary(self) -> Summary:
        return self.recalibrator_._summary()

    def get_metadata_routing(self):
        """Say which metadata go to the classifier and to the splitter.

        Returns
        -------
        routing : MetadataRouter
        """
        return (
            MetadataRouter(owner=self)
            .add_self_request(self)
            .add(
                estimator=self._estimator(),
                method_mapping=MethodMapping().add(caller="fit", callee="fit"),
            )
            .add(
                splitter=self.cv,
                method_mapping=MethodMapping().add(caller="fit", callee="split"),
            )
        )

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = get_tags(self._estimator()).input_tags.sparse
        return tags


def _checked(X, y):
    """X as the classifier reads it, and labels."""
    y = plain_labels(y, "y")
    refuse_masked(X, "X")
    if X is None:
        raise InputError("X", "is None.", "Pass the features of the samples.")
    fractions = y.dtype.kind == "f" and y % 1 != 0
    if np.any(fractions):
        where, lead = first_of(fractions), "Unknown label type: continuous. "
        reason = f"is {y[where['row']]:.6g}, a fraction."
        remedy = "Pass the class of each sample; are the arguments swapped?"
        raise InputError("y", reason, remedy, lead=lead, **where)
    with naming("X"):
        [X] = indexable(X)
        n_samples = _num_samples(X)
    if not n_samples:
        reason = "has 0 samples."
        raise InputError("X", reason, "A classifier needs samples of two classes or more.")
    if n_samples != len(y):
        lead = "Found input variables with inconsistent numbers of samples: "
        raise InputError("X", f"has {n_samples} rows, y {len(y)}.", lead=lead)
    return X, y


@contextmanager
def noting(classifier, what):
    """Add to errors of the user's classifier what it was asked to do."""
    try:
        yield
    except Exception as error:
        note = f"RecalibratedClassifierCV called {type(classifier).__name__}.{what}."
        error.add_note(note)
        if parent_process() is not None and not _returns_from_a_worker(error):
            raise RuntimeError(f"{error!r} {note}") from None
        raise


def _returns_from_a_worker(error) -> bool:
    """Whether an exception can be pickled and read; else joblib says that its pool is broken."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return False
    return True


def _fit_fold(classifier, X, y, fold, train, test, params, classes):
    """A classifier of the training rows, and its predictions for the test rows."""
    params = _check_method_params(X, params, indices=train)
    with noting(classifier, f"fit with the training part of fold {fold}"):
        classifier.fit(_safe_indexing(X, train), _safe_indexing(y, train), **params)
    held_out = _safe_indexing(X, test)
    return classifier, _aligned_predictions(classifier, held_out, classes, f" of fold {fold}")


def _aligned_predictions(classifier, X, classes, of_fold=""):
    """Probabilities or, of classifiers without, logits; columns are in the order of classes."""
    name, fitted = type(classifier).__name__, decoded(classifier.classes_)
    place = _places_of(classes, fitted)
    if (place < 0).any() or len(place) != len(fitted):
        raise ValueError(
            f"{name} was fitted to the classes {shortened(classes)}, but its classes_ are "
            f"{shortened(fitted)}. Pass a classifier that keeps all classes."
        )
    method = "predict_proba" if hasattr(classifier, "predict_proba") else "decision_function"
    with noting(classifier, f"{method} with the test part{of_fold}" if of_fold else method):
        values = np.asarray(decoded(getattr(classifier, method)(X)))
    _refuse_no_predictions(values, f"{name}.{method}", _num_samples(X), len(classes))
    if values.ndim == 1:
        return values if place[0] == 0 else -values
    return values if (np.diff(place) == 1).all() else values[:, place]


def _refuse_no_predictions(values, method, n_samples, n_classes):
    """Raise for what a classifier returns that are no predictions, which X does not explain."""
    if values.shape != (n_samples, n_classes) and (n_classes > 2 or values.shape != (n_samples,)):
        reason = f"returned shape {values.shape} for {n_samples} samples of {n_classes} classes."
        remedy = f"Return shape {n_samples, n_classes}, a column for each class."
        if values.ndim == 2 and len(values) == n_samples:
            reason = f"has {values.shape[1]} columns for {n_classes} classes."
            if method.endswith("decision_function"):
                remedy = "Pass a classifier with a column per class, such as "
                remedy += "SVC(decision_function_shape='ovr')."
        raise InputError(method, reason, remedy)
    if values.dtype.kind not in "fiub":
        reason = f"returned an array of dtype {values.dtype}, not numbers."
        raise InputError(method, reason, "Return probabilities.")
    columns = values.reshape(len(values), -1)  # -inf is the logit of an absent class among others
    wrong = np.isnan(values) | np.isposinf(values)
    wrong[np.isneginf(columns).all(axis=1)] = True
    if wrong.any():
        where = first_of(wrong)
        reason = "is NaN." if np.isnan(values[tuple(where.values())]) else "is infinite."
        raise InputError(method, reason, "Correct the classifier.", **where)
    if not method.endswith("predict_proba"):
        try:
            refuse_probabilities(values, method)
        except InputError as error:
            raise error.with_remedy("Name the method predict_proba.") from None
        return
    remedy = "Return numbers from 0 to 1; name the method decision_function if these are logits."
    try:
        check_proba(values, name=method, sums=False)
        remedy = "Return rows that sum to 1."
        check_proba(values, name=method)
    except InputError as error:
        raise error.with_remedy(remedy) from None


def _with_others(splits, rows, others) -> list:
    """Folds of some rows, as rows of all; the others are dealt out to test parts."""
    tests = [np.r_[rows[test], others[k :: len(splits)]] for k, (_, test) in enumerate(splits)]
    everyone = np.sort(np.r_[rows, others])
    return [(np.setdiff1d(everyone, test), np.sort(test)) for test in tests]


def _places_of(labels, classes) -> np.ndarray:
    """The place of each label among the classes, -1 for labels that are none of them."""
    place = {label: k for k, label in enumerate(classes.tolist())}
    return np.array([place.get(label, -1) for label in labels.tolist()])
