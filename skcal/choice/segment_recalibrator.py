"""Recalibrate named segments: a global recalibration, and a log-odds offset for each segment."""

from __future__ import annotations

import json
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, logit
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from skcal._folds import absent_class, shuffled_folds
from skcal._groups import Groups, read_groups
from skcal._labels import named_columns, plain_labels, refuse_another_order
from skcal._scores import LOSSES, LossComparison
from skcal._show import Document, Table
from skcal._sklearn_compat import HasMethods, Interval, _fit_context, _num_samples, _safe_indexing
from skcal._validation import InputError, check_weight, decoded, row_weights
from skcal.choice.recalibrator import Recalibrator
from skcal.hypothesis_tests.segment_features import Rule, make_segments
from skcal.hypothesis_tests.segments import segment_test
from skcal.recalibration.base import RecalibrationMap
from skcal.recalibration.bayesian import FARTHEST_LOGIT
from skcal.recalibration.likelihood import TwoClasses
from skcal.recalibration.trial import SCORES

FORMAT = 1
RULES = ("true", "missing", "category", "value", "range")
_PASS_SEGMENTS = "Pass what SegmentRecalibrator.to_json() returned."
_N_RANGES, _LEAST_SIZE = 4, 20  # quantile ranges of a number; samples of a segment


class RecalibratedSegment(NamedTuple):
    """A segment whose predictions are corrected.

    Attributes
    ----------
    name : str
        Such as ``age > 65 and sex = F``.
    offset : float
        What is added to the log-odds of its samples.
    n_samples : int
    gap_before, gap_after : float
        Observed minus predicted mean, of cross-validated predictions without and with segments.
    rules : tuple of Rule
        The conditions that its samples fulfil.
    """

    name: str
    offset: float
    n_samples: int
    gap_before: float
    gap_after: float
    rules: tuple[Rule, ...]

    def rows(self, features) -> np.ndarray:
        """Return whether each row of a table of features is in the segment, (n_samples,).

        Parameters
        ----------
        features : dict of str to array
            Columns by name.
        """
        return _in_segments(self.rules, _segment_columns(features))

    def __str__(self):
        return (
            f"{self.name}: log-odds {self.offset:+.2f} in {self.n_samples:,} samples; observed "
            f"minus predicted {self.gap_before:+.3f} before, {self.gap_after:+.3f} after"
        )


class SegmentRecalibrator(ClassifierMixin, BaseEstimator):
    """Recalibrate all predictions, then those of named segments that are still miscalibrated.

    A segment is a category, a range of a number, or two of these together, such as "age > 65 and
    sex = F". While :func:`~skcal.hypothesis_tests.segment_test` is significant, the worst segment
    gets an offset of its log-odds. All offsets are fitted together and shrunk. Where no segment is
    significant, nothing is added.

    Parameters
    ----------
    recalibrator : Recalibrator or map, default=None
        The recalibration of all samples, which comes first. None: :class:`skcal.Recalibrator`.
    alpha : float in (0, 1), default=0.05
        The level of the test of all segments together.
    max_segments : int ≥ 0, default=8
        Segments that get an offset at most.
    cv : int ≥ 2, default=5
        Folds of the comparison.
    n_resamples : int, default=199
        Redraws of each test.
    random_state : int, RandomState instance or None, default=None
        Seed of the folds; None draws others in each fit.

    Attributes
    ----------
    recalibrator_ : Recalibrator or map
        Fitted to all samples.
    segments_ : list of RecalibratedSegment
        In the order in which they were found.
    offset_ : float
        What is added to the log-odds of all samples, 0 without segments.
    comparison_ : dict of LossComparison
        ``"log_loss"`` and ``"brier_score"`` by cross-validation: ``before`` without segments,
        ``after`` with segments, which are found anew for each fold.
    classes_ : ndarray of shape (2,)
    n_features_in_ : int

    See Also
    --------
    skcal.hypothesis_tests.segment_test : names miscalibrated segments.
    skcal.Recalibrator : corrects all samples alike.

    Notes
    -----
    New log-odds are logit q + ``offset_`` + the offsets of the segments that hold the sample, for
    the recalibrated probability q. The prior of an offset is standard normal. If segments raise the
    cross-validated log loss by more than its standard error, none is kept. Numbers are cut at their
    quartiles, segments have at least 20 samples, and there are two classes. With 5,000 samples of
    three features a fit takes about 10 s, ``cv=2`` a third of that.

    References
    ----------
    .. [1] Hébert-Johnson et al., Multicalibration: calibration for the (computationally-
       identifiable) masses, ICML 2018.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.special import expit, logit
    >>> from skcal.choice import SegmentRecalibrator
    >>> from skcal.recalibration import PlattScaling
    >>> rng = np.random.default_rng(0)
    >>> features = {"site": rng.choice(["A", "B", "C"], 2000), "age": rng.integers(20, 80, 2000)}
    >>> p = rng.uniform(0.05, 0.95, 2000)
    >>> truth = expit(logit(p) - (features["site"] == "C"))
    >>> y = (rng.random(2000) < truth).astype(int)
    >>> fitted = SegmentRecalibrator(PlattScaling(), cv=2, random_state=0)
    >>> fitted = fitted.fit(p, y, segments=features)
    >>> [segment.name for segment in fitted.segments_]
    ['site = C']
    >>> bool(fitted.comparison_["log_loss"].pvalue < 0.001)
    True
    >>> new = {"site": ["A", "C"], "age": [50, 50]}
    >>> fitted.predict_proba([0.5, 0.5], segments=new)[:, 1].round(1)
    array([0.5, 0.3])
    """

    _parameter_constraints: dict = {
        "recalibrator": [HasMethods(["fit", "predict_proba"]), None],
        "alpha": [Interval(Real, 0, 1, closed="neither")],
        "max_segments": [Interval(Integral, 0, None, closed="left")],
        "cv": [Interval(Integral, 2, None, closed="left")],
        "n_resamples": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        recalibrator=None,
        alpha=0.05,
        max_segments=8,
        *,
        cv=5,
        n_resamples=199,
        random_state=None,
    ):
        self.recalibrator = recalibrator
        self.alpha = alpha
        self.max_segments = max_segments
        self.cv = cv
        self.n_resamples = n_resamples
        self.random_state = random_state

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(self, X, y, sample_weight=None, groups=None, *, segments):
        """Recalibrate all samples, find the segments, and compare by cross-validation.

        Parameters
        ----------
        X : array-like of shape (n_samples,) or (n_samples, 2)
            Probabilities of samples that the classifier was not trained on; one-dimensional ones
            are those of the positive class.
        y : array-like of shape (n_samples,)
            Labels of two classes.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples; a weight of 2 counts as a repeated row. A sum below the
            effective sample size (Σ w)² / Σ w² is raised to it. None: all 1.
        groups : array-like of shape (n_samples,), default=None
            Samples of one group may depend on each other; folds hold whole groups.
        segments : data frame, arrow table, dict of columns, or array-like
            The features that make segments, a row for each sample; see
            :func:`~skcal.hypothesis_tests.segment_test`.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            If there are other than two classes, or X, y and segments differ in length.
        """
        X, y = decoded(X), plain_labels(y, "y")
        weight = check_weight(sample_weight, len(y))
        refuse_another_order({"X": X, "y": y, "segments": segments})
        columns = dict(named_columns(segments, len(y)))
        data = _Data(X, y, weight, read_groups(groups, weight), columns)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        whole = self._fit_model(data, seed)
        self.recalibrator_, self.classes_ = whole.recalibrator, whole.recalibrator.classes_
        self.n_features_in_ = self.recalibrator_.n_features_in_
        before, after = np.empty(len(y)), np.empty(len(y))
        happened = y == self.classes_[1]
        folds = shuffled_folds(data.groups, self.cv, seed, happened.astype(int), weight)
        trainings = (train for train, _ in folds)
        if absent := absent_class(trainings, happened.astype(int), weight, data.groups):
            reason = f"is unsuitable for {self.cv} folds. {absent.sentence(self.classes_)}."
            raise InputError("y", reason, "Pass more samples of this class.")
        for train, test in folds:
            model, held_out = self._fit_model(data.take(train), seed), data.take(test)
            before[test] = model.log_odds(held_out.X)
            after[test] = model.corrected(before[test], held_out.columns)
        self.comparison_ = _comparison(before, after, happened, data)
        judged = self.comparison_["log_loss"]
        if judged.difference < -judged.standard_error:  # what the folds find does harm
            whole, after = whole._replace(rules=[], offsets=np.zeros(1)), before
            self.comparison_ = _comparison(before, before, happened, data)
        self.offset_ = float(whole.offsets[-1])
        self.segments_ = [
            _described(rules, offset, data, happened, expit(before), expit(after))
            for rules, offset in zip(whole.rules, whole.offsets[:-1].tolist(), strict=True)
        ]
        return self

    def _fit_model(self, data: _Data, seed: int) -> _SegmentModel:
        """The recalibration of some samples, and the segments that are significant after it."""
        recalibrator = self.recalibrator
        if recalibrator is None:
            recalibrator = Recalibrator(random_state=seed, store_out_of_fold=False)
        options = {} if (data.weight == 1).all() else {"sample_weight": data.weight}
        if isinstance(recalibrator, Recalibrator):
            options["groups"] = data.groups.codes
        fitted = clone(recalibrator).fit(data.X, data.y, **options)
        if len(fitted.classes_) != 2:
            reason = f"has {len(fitted.classes_)} classes; segments shift the log-odds of two."
            lead = "Only binary classification is supported. "
            raise InputError("y", reason, "Recalibrate one class against the rest.", lead=lead)
        model = _SegmentModel(fitted, [], np.zeros(1))
        log_odds, happened = model.log_odds(data.X), data.y == fitted.classes_[1]
        if self.max_segments == 0:
            return model
        made = make_segments(data.columns, len(data.y), n_bins=_N_RANGES, min_samples=_LEAST_SIZE)
        rules_of = {name: made.rules_of(k) for k, name in enumerate(made.names)}
        while len(model.rules) < self.max_segments:
            test = segment_test(
                happened.astype(int),
                expit(model.corrected(log_odds, data.columns)),
                data.columns,
                n_bins=_N_RANGES,
                min_samples=_LEAST_SIZE,
                n_resamples=self.n_resamples,
                random_state=seed,
                sample_weight=data.weight,
                groups=data.groups.codes,
            )
            order = sorted(test.segments, key=lambda one: (one.pvalue, -abs(one.statistic)))
            significant = [rules_of[one.name] for one in order if one.pvalue <= self.alpha]
            new = [rules for rules in significant if rules not in model.rules]
            if not new:
                break
            rules = [*model.rules, new[0]]
            offsets = _offsets(rules, log_odds, happened, data)
            model = model._replace(rules=rules, offsets=offsets)
        return model

    def predict_proba(self, X, *, segments):
        """Recalibrated probabilities.

        Parameters
        ----------
        X : array-like of shape (n_samples,) or (n_samples, 2)
            Predictions of the kind that the recalibrator was fitted to.
        segments : data frame, arrow table, dict of columns, or array-like
            The features as in ``fit``, a row for each sample. A category that ``fit`` has not seen,
            or a missing value, is in no segment of its column. If it is in no segment at all, its
            log-odds change by ``offset_`` alone.

        Returns
        -------
        proba : ndarray of shape (n_samples, 2)
        """
        check_is_fitted(self)
        X = decoded(X)
        refuse_another_order({"X": X, "segments": segments})
        columns = dict(named_columns(segments, _num_samples(X)))
        offsets = np.array([*(segment.offset for segment in self.segments_), self.offset_])
        rules = [segment.rules for segment in self.segments_]
        model = _SegmentModel(self.recalibrator_, rules, offsets)
        if not rules:
            return np.asarray(decoded(self.recalibrator_.predict_proba(X)))
        plain = model.log_odds(X)
        log_odds = model.corrected(plain, columns)
        return np.column_stack([expit(-log_odds), expit(log_odds)]).astype(plain.dtype, copy=False)

    def predict(self, X, *, segments):
        """Return the more probable class of each sample; arguments of :meth:`predict_proba`.

        Parameters
        ----------
        X : array-like of shape (n_samples,) or (n_samples, n_classes)
            Predicted probabilities; one column holds P(positive class).
        segments : data frame, dict or array-like
            Features that make the segments, as given to ``fit``.
        """
        more_probable = self.predict_proba(X, segments=segments).argmax(axis=1)
        return self.classes_[more_probable]

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def summary(self) -> str:
        """Return the segments and what they change, as text."""
        check_is_fitted(self)
        if not self.segments_:
            return "No segment is significantly miscalibrated after recalibration: none is changed."
        rows = [
            (
                segment.name,
                f"{segment.n_samples:,}",
                f"{segment.offset:+.2f}",
                f"{segment.gap_before:+.3f}",
                f"{segment.gap_after:+.3f}",
            )
            for segment in self.segments_
        ]
        columns = ("segment", "samples", "log-odds", "gap before", "gap after")
        notes = [
            f"All samples: log-odds {self.offset_:+.2f}.",
            "Gap: observed minus predicted mean, of cross-validated predictions.",
            *(f"{key.replace('_', ' ')}: {gap}" for key, gap in self.comparison_.items()),
        ]
        return Table(columns, rows, "lrrrr", notes=notes).text()

    def to_json(self) -> str:
        """The fitted recalibrator as JSON text, with its formula.

        Returns
        -------
        text : str
            What :meth:`from_json` reads predicts the same.
        """
        check_is_fitted(self)
        segments = [
            segment._asdict() | {"rules": [rule._asdict() for rule in segment.rules]}
            for segment in self.segments_
        ]
        parts = {
            "segment_recalibrator": FORMAT,
            "formula": "σ(logit(q) + offset + the offsets of the segments whose rules all hold), q "
            "the probability of the recalibrator; without segments q",
            "offset": self.offset_,
            "segments": segments,
            "recalibrator": json.loads(self.recalibrator_.to_json()),
        }
        return json.dumps(parts, allow_nan=False, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> SegmentRecalibrator:
        """A recalibrator that predicts as the one that :meth:`to_json` wrote.

        Parameters
        ----------
        text : str
            What :meth:`to_json` returned.

        Returns
        -------
        recalibrator : SegmentRecalibrator
            Without ``comparison_``.

        Raises
        ------
        ValueError
            If the text holds no segment recalibrator, or its parts do not fit together.
        """
        document = Document.parse(text, "a segment recalibrator", _PASS_SEGMENTS)
        document.expect("segment_recalibrator", FORMAT)
        read, inner = cls(), document.value("recalibrator", dict)
        kind: Any = Recalibrator if "recalibrator" in inner else RecalibrationMap
        read.recalibrator_ = kind.from_json(json.dumps(inner))
        read.classes_ = read.recalibrator_.classes_
        read.n_features_in_ = read.recalibrator_.n_features_in_
        if len(read.classes_) != 2:
            raise document.wrong("recalibrator", "is not of two classes")
        read.offset_ = document.number("offset", -1e3, 1e3)
        read.segments_ = [
            RecalibratedSegment(
                part.value("name", str),
                part.number("offset", -1e3, 1e3),
                part.count("n_samples", 0),
                part.number("gap_before", -1, 1),
                part.number("gap_after", -1, 1),
                tuple(_rule(rule) for rule in part.objects("rules")),
            )
            for part in document.objects("segments")
        ]
        return read


def _rule(document: Document) -> Rule:
    """A rule of JSON."""
    column, kind, name = (document.value(key, str) for key in ("column", "kind", "name"))
    low, high = (document.value(key, str, int, float, type(None)) for key in ("low", "high"))
    is_text = isinstance(low, str) or isinstance(high, str)
    if kind not in RULES or is_text != (kind == "category"):
        raise document.wrong("rules", f"hold a {kind!r:.40}, which is none of {', '.join(RULES)}")
    return Rule(column, kind, low, high, name)


class _Data(NamedTuple):
    """Predictions, labels, weights, groups and features of samples."""

    X: Any
    y: np.ndarray
    weight: np.ndarray
    groups: Groups
    columns: dict[str, np.ndarray]

    def take(self, rows) -> _Data:
        groups = self.groups.take(rows)
        columns = {name: column[rows] for name, column in self.columns.items()}
        return _Data(_safe_indexing(self.X, rows), self.y[rows], self.weight[rows], groups, columns)


class _SegmentModel(NamedTuple):
    """A fitted recalibrator, the rules of segments, and their offsets; the last one is of all."""

    recalibrator: Any
    rules: list[tuple[Rule, ...]]
    offsets: np.ndarray

    def log_odds(self, X) -> np.ndarray:
        """Recalibrated log-odds, without segments."""
        q = np.asarray(decoded(self.recalibrator.predict_proba(X)))[:, 1]
        with np.errstate(divide="ignore"):
            return np.clip(logit(q), -FARTHEST_LOGIT, FARTHEST_LOGIT)

    def corrected(self, log_odds, columns) -> np.ndarray:
        """Log-odds with the offsets of the segments."""
        return log_odds + _design(self.rules, columns) @ self.offsets if self.rules else log_odds


def _segment_columns(features) -> dict[str, np.ndarray]:
    """Columns of a table of features of any number of rows."""
    first = next(iter(features.values())) if isinstance(features, dict) else features
    return dict(named_columns(features, _num_samples(first)))


def _in_segments(rules, columns) -> np.ndarray:
    """Whether all rules hold."""
    absent = [rule.column for rule in rules if rule.column not in columns]
    if absent:
        reason = f"has no column {absent[0]!r}, by which a segment is made."
        raise InputError("segments", reason, "Pass the columns of fit.")
    return np.all([rule.holds(columns[rule.column]) for rule in rules], axis=0)


def _design(segments, columns) -> np.ndarray:
    """Members of the segments, and a column of ones."""
    members = [_in_segments(rules, columns) for rules in segments]
    return np.column_stack([*members, np.ones(len(next(iter(columns.values()))))]).astype(float)


def _offsets(segments, log_odds, happened, data) -> np.ndarray:
    """Offsets of the highest likelihood under standard normal priors; the last one is of all."""
    mass = row_weights(data.weight)
    likelihood = TwoClasses(log_odds, _design(segments, data.columns), mass * happened, mass)
    return likelihood.mode()


def _comparison(before, after, happened, data) -> dict[str, LossComparison]:
    """Losses of log-odds before and after."""
    codes = happened.astype(int)
    proba = [np.column_stack([expit(-z), expit(z)]) for z in (before, after)]
    return {
        name: LossComparison.of_predictions(
            LOSSES[score], proba, (codes, codes), data.weight, data.groups
        )
        for name, score in SCORES.items()
    }


def _described(rules, offset, data, happened, before, after) -> RecalibratedSegment:
    inside = _in_segments(rules, data.columns)
    weight = data.weight * inside
    gap, left = (float(np.average(happened - p, weights=weight)) for p in (before, after))
    name = " and ".join(str(rule) for rule in rules)
    return RecalibratedSegment(name, offset, int(inside.sum()), gap, left, rules)
