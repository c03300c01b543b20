"""The door: labels, predictions, weights and groups are checked once and become one sample."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from skcal._groups import FEW_OF_TESTS, INDEPENDENT, Groups, read_groups
from skcal._labels import (
    columns_of_labels,
    is_positive_first,
    read_outcomes,
    refuse_another_order,
    refuse_several_labels,
)
from skcal._matrices import hits, two_columns
from skcal._validation import InputError, check_predictions, check_weight
from skcal.notions import Notion, Problem, make_problems, resolve_notion

_SMALLEST = 1e-100
_SAME = 1e-9  # by which weights may differ relatively that count as equal
SCALAR_NOTIONS = "'binary', 'confidence', 'top-label', 'classwise'"


class Sample(NamedTuple):
    """Checked predictions and labels; those of metrics are without samples of weight 0.

    Attributes
    ----------
    proba : ndarray of shape (n_samples,) or (n_samples, n_classes)
    codes : ndarray of shape (n_samples,)
        The column of each label.
    weight : ndarray of shape (n_samples,)
    classes : ndarray of shape (n_classes,)
    notion : Notion
        The notion as :func:`skcal.notions.resolve_notion` returns it.
    logits : ndarray of the shape of ``proba`` or None
        Of predictions that were logits, what
        ``skcal._validation.check_predictions`` returns.
    positive_first : bool
        Whether ``pos_label`` is the class of the first of the two columns that were passed; those
        of the sample are always (negative class, positive class).
    groups : Groups
        Which samples depend on each other, :data:`skcal._groups.INDEPENDENT` where none do.
    outcomes : ndarray of shape (n_samples, n_classes) or None
        How much of each class happened, where that is not told by ``codes``.
    votes : ndarray of shape (n_samples,) or None
        Of outcomes that are shares of votes how many there were, NaN where that is not known. A
        sample weighs as many as its votes.
    """

    proba: np.ndarray
    codes: np.ndarray
    weight: np.ndarray
    classes: np.ndarray
    notion: Notion
    logits: np.ndarray | None = None
    positive_first: bool = False
    groups: Groups = INDEPENDENT
    outcomes: np.ndarray | None = None
    votes: np.ndarray | None = None

    def problems(self) -> list[Problem]:
        """Translate into problems; those of ``top-label`` may hold no samples."""
        problems = make_problems(self.proba, self.happened, self.notion, self.weight, self.logits)
        return [
            part._replace(groups=self.groups.take(part.rows).about(part.features, part.residuals))
            for part in problems
        ]

    @property
    def happened(self) -> np.ndarray:
        """The column of each label, (n_samples,), or how much of each class happened."""
        return self.codes if self.outcomes is None else self.outcomes

    @property
    def y_true(self) -> np.ndarray:
        """What public functions take: labels, or shares or counts of votes."""
        if self.outcomes is None:
            return self.classes[self.codes]
        if self.votes is None or np.isnan(self.votes).any():
            return self.outcomes
        return np.rint(self.outcomes * self.votes[:, None])

    @property
    def accuracy(self) -> float:
        """The weighted share of outcomes that are the first most probable class, or of answers."""
        if self.notion.of_answers:
            return float(self.frequencies[-1])
        likely = two_columns(self.proba).argmax(axis=1)
        return float(np.average(hits(self.happened, likely), weights=self.weight))

    @property
    def mean_confidence(self) -> float:
        """The weighted mean of the largest probabilities, or of the confidences of answers."""
        rows = two_columns(self.proba)
        confidence = rows[:, -1] if self.notion.of_answers else rows.max(axis=1)
        return float(np.average(confidence, weights=self.weight))

    @property
    def frequencies(self) -> np.ndarray:
        """The weighted share of each class among the outcomes, (n_classes,)."""
        if self.outcomes is None:
            sums = np.bincount(self.codes, self.weight, len(self.classes))
        else:
            sums = self.weight @ self.outcomes
        return sums / self.weight.sum()

    @property
    def given_classes(self) -> np.ndarray:
        """The class of each column as it was passed; of one-dimensional predictions ``classes``."""
        return self.classes[::-1] if self.positive_first else self.classes

    @property
    def columns(self) -> np.ndarray:
        """Predictions in two dimensions, (n_samples, 1) or (n_samples, n_classes)."""
        return self.proba.reshape(len(self.proba), -1)

    def take(self, rows: slice | np.ndarray, weight: np.ndarray | None = None) -> Sample:
        """Return some of the samples, with weights other than their own if these are given."""
        return self._replace(
            proba=self.proba[rows],
            codes=self.codes[rows],
            weight=self.weight[rows] if weight is None else weight,
            logits=None if self.logits is None else self.logits[rows],
            groups=self.groups.take(rows),
            outcomes=None if self.outcomes is None else self.outcomes[rows],
            votes=None if self.votes is None else self.votes[rows],
        )


def read_sample(
    y_true,
    y_proba,
    notion="auto",
    sample_weight=None,
    labels=None,
    pos_label=None,
    from_logits: bool | None = None,
    *,
    groups: Any = None,
    few_groups: int = FEW_OF_TESTS,
    at_least: int = 1,
    names: tuple[str, str] = ("y_true", "y_proba"),
    keep_weightless: bool = False,
) -> Sample:
    """Check what a function was given: labels, predictions and weights, once for all that follows.

    Parameters
    ----------
    y_true, y_proba, notion, sample_weight, labels, pos_label, from_logits
        The arguments as users pass them; ``from_logits=None`` where there is no such option. Of
        shares and votes of the classes, (n_samples, n_classes), those of a sample belong together,
        so that whoever needs independent labels refuses them by :func:`refuse_groups`.
    groups : array-like of shape (n_samples,), default=None
        The argument as users pass it.
    few_groups : int
        Below so many groups there is a warning.
    at_least : int
        Fewest samples of positive weight that are needed.
    names : tuple of two str
        What error messages call ``y_true`` and ``y_proba``.
    keep_weightless : bool, default=False
        Whether samples of weight 0 stay, so that rows are those of the arguments.

    Returns
    -------
    sample : Sample
    """
    if not is_of_labels(notion):
        refuse_several_labels(y_true, y_proba, names)
    predictions = read_predictions(y_proba, notion, from_logits, names[1])
    rows = {names[1]: y_proba, names[0]: y_true, "sample_weight": sample_weight}
    refuse_another_order({**rows, "groups": groups})
    question = notion, sample_weight, labels, pos_label, groups, few_groups
    sample = _read(y_true, y_proba, predictions, question, names, rescale=False)
    ones = sample_weight is None and sample.votes is None
    if not (keep_weightless or ones or sample.weight.all()):
        sample = sample.take(sample.weight > 0)
    if len(sample.codes) < at_least:
        raise ValueError(
            f"{names[1]} has {len(sample.codes)} sample(s) of positive weight, but {at_least} "
            "are needed."
        )
    return sample


def read_fit(
    estimator: Any, X, y, notion, sample_weight, labels, groups=None, reset: bool = True
) -> Sample:
    """Check what the method of an estimator was given, which has ``pos_label``, ``from_logits``.

    Its number and names of columns are set, or compared (``reset=False``). Samples of weight 0
    stay, so that rows are those of ``X``, and huge or tiny weights are rescaled.
    """
    names, of_estimator = ("y", "X"), {"estimator": estimator, "reset": reset}
    if not is_of_labels(notion):
        refuse_several_labels(y, X, names)
    predictions = read_predictions(X, notion, estimator.from_logits, "X", **of_estimator)
    refuse_another_order({"X": X, "y": y, "sample_weight": sample_weight, "groups": groups})
    question = notion, sample_weight, labels, estimator.pos_label, groups, FEW_OF_TESTS
    return _read(y, X, predictions, question, names, rescale=True)


def read_predictions(
    y_proba, notion, from_logits: bool | None, name: str, estimator: Any = None, reset: bool = True
) -> tuple[np.ndarray, np.ndarray | None]:
    """Checked probabilities, whose rows are those of labels or sum to 1, and their logits."""
    of_labels = is_of_labels(notion)
    return check_predictions(
        columns_of_labels(y_proba, name) if of_labels else y_proba,
        from_logits,
        name=name,
        estimator=estimator,
        reset=reset,
        sums=not of_labels,
    )


def _read(y_true, y_proba, predictions, question, names, rescale: bool) -> Sample:
    """Labels and checked predictions in the order of their classes, with weights and groups."""
    notion, sample_weight, labels, pos_label, groups, few_groups = question
    proba, logits = predictions
    notion = resolve_notion(notion, proba)
    of_labels = notion.of_labels and proba.ndim == 2
    if pos_label is not None and proba.ndim == 2 and not of_labels:
        _require_positive_class(pos_label, proba.shape[1], notion)
    options = {"pos_label": pos_label, "of_labels": of_labels, "counted": True}
    codes, classes, outcomes, votes = read_outcomes(
        y_true, y_proba, proba, labels, names, **options
    )
    positive_first = is_positive_first(proba, classes, pos_label)
    if positive_first:
        proba, codes, classes = proba[:, ::-1], 1 - codes, classes[::-1]
        logits = None if logits is None else logits[:, ::-1]
    weight = check_weight(sample_weight, len(proba), rescale=rescale)
    if votes is not None:
        weight = weight * np.nan_to_num(votes, nan=1.0)
    ones = sample_weight is None and votes is None
    if not (ones or _SMALLEST < weight.max() < 1 / _SMALLEST):  # counts are not rescaled, but such
        weight = weight / weight.max()
    together = read_groups(groups, weight, few_groups)
    if notion.of_shares:
        together = together.with_votes(np.full(len(weight), np.nan), weight)
    elif votes is not None:
        together = together.with_votes(votes, weight)
    return Sample(
        proba, codes, weight, classes, notion, logits, positive_first, together, outcomes, votes
    )


def is_of_labels(notion: Any) -> bool:
    """Whether columns are labels of which any may hold, by the notion as users pass it."""
    if isinstance(notion, Notion):
        return notion.of_labels
    return isinstance(notion, str) and notion.startswith(("multi-label", "precision-at-"))


def refuse_groups(groups: Groups, who: str, remedy: str, name: str = "y_true") -> None:
    """Raise where outcomes belong together, for what holds for independent labels alone."""
    if groups.independent:
        return
    if groups.of_shares:
        raise error_of_shares(who, remedy, name)
    reason = f"is not for {who}, whose law is that of independent samples."
    raise InputError("groups", reason, remedy)


def error_of_shares(who: str, remedy: str, name: str = "y_true") -> InputError:
    """What is raised where shares are refused."""
    reason = f"holds shares or votes, where {who} needs labels."
    return InputError(name, reason, remedy)


def refuse_weights(sample: Any, who: str, remedy: str) -> None:
    """Raise where weights differ, for what counts samples."""
    if np.ptp(sample.weight) > _SAME * sample.weight.max():
        raise InputError("sample_weight", f"is not for {who}, which counts samples.", remedy)


def refuse_vectors(sample: Sample) -> None:
    """Raise where features are vectors, for what is about single probabilities."""
    if not sample.notion.scalar:
        raise ValueError(
            f"notion={sample.notion!r} conditions on a vector, where a single probability is "
            f"needed. Use one of {SCALAR_NOTIONS}."
        )


def _require_positive_class(pos_label, n_columns: int, notion: Notion) -> None:
    """Raise unless the notion is about one of two columns."""
    if n_columns > 2:
        raise ValueError(
            f"pos_label={pos_label!r} has no meaning for {n_columns} columns. Leave it out."
        )
    if not notion.of_positive_class:
        raise ValueError(
            f"pos_label={pos_label!r} has no meaning for notion={notion!r}, which takes two "
            "columns alike. Leave it out, or use notion='binary'."
        )
