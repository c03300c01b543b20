"""Notions of calibration: from predictions and labels to problems (features, residuals).

A notion turns (proba, codes) into one or several problems. Within a problem the squared
calibration error is ``E‖E[δ | x]‖²``, with features x and residuals δ of the same width, and
features + residuals is the outcome. Observed minus predicted: δ > 0 means underconfident.

=============== ======== ==================================== ===========================
notion          problems feature x                            residual δ
=============== ======== ==================================== ===========================
``canonical``   1        p                                    e_y − p
``confidence``  1        max p                                1[y = arg max p] − max p
``top-label``   C        max p, where arg max p = k           1[y = k] − p_k
``classwise``   C        p_k                                  1[y = k] − p_k
``top-K``       1        the K largest, sorted, and the rest  e_rank − x
``binary``      1        P(positive)                          y − P(positive)
``multi-label`` K        p_k                                  y_k − p_k
a callable      1        sums of p over groups of classes     e_group − x
=============== ======== ==================================== ===========================

In ``multi-label`` any of K labels may hold, so that rows of y are of 0 and 1 and rows of p have no
sum. ``precision-at-K`` is one problem of the same: the mean of the K largest predictions of a
sample, and the share of these labels that hold.

``top-K`` stands for ``"top-1"``, ``"top-2"``, …. A callable *lens* maps (n, C) probabilities to
(n, C) integers, the group of each class for each sample; it sees no labels. Ties of the arg max
go to the first class.

A notion is a string, its name, that knows what every user of its problems asks: a new one is a
subclass of :class:`Notion`, passed as an object or entered into ``NOTIONS``.

References
----------
Vaicenavicius et al., Evaluating model calibration in classification, AISTATS 2019.
Gupta & Ramdas, Top-label calibration and multiclass-to-binary reductions, ICLR 2022.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from scipy.special import log_expit, logsumexp

from skcal._groups import INDEPENDENT, quantile_of_weights
from skcal._matrices import hits, one_hot, two_columns
from skcal._show import worded
from skcal._validation import InputError

_Lens: TypeAlias = Callable[..., np.ndarray]
_ALL_ROWS = slice(None)
_OUTCOME_ROUNDING = 1e-5  # of features plus residuals
_PRECISION = r"precision-at-\d+"


class Counted(NamedTuple):
    """What rows stand for that are several independent samples each, with nearly one prediction.

    Features are then the means of whole cells, so that the outcomes of a cell lie at one place.

    Attributes
    ----------
    counts : ndarray of shape (n_rows,)
        Numbers of samples, whose outcomes are alike.
    uneven : ndarray of shape (n_rows,)
        Σ w² / (Σ w)² of the samples of each row, 1 / n of equal weights.
    means, spread : ndarray of shape (n_rows,)
        Mean and variance of the predictions of the samples of each row, by weight.
    scatter : ndarray of shape (n_rows,)
        The variance of their outcomes; 0 of labels.
    bins : ndarray of shape (n_rows,)
        The bin of each row.
    intervals : skcal._bins.Intervals
        The bins.
    of_shares : bool
        Whether outcomes are shares of votes.
    """

    counts: np.ndarray
    uneven: np.ndarray
    means: np.ndarray
    spread: np.ndarray
    scatter: np.ndarray
    bins: np.ndarray
    intervals: Any
    of_shares: bool = False

    def take(self, places: Any) -> Counted:
        """Return what some of the rows stand for.

        Parameters
        ----------
        places : slice or ndarray
            Numbers of rows, or whether each is taken.
        """
        taken = {name: part[places] for name, part in zip(self._fields, self[:6], strict=False)}
        return self._replace(**taken)


class Problem(NamedTuple):
    """One calibration problem.

    Attributes
    ----------
    features : ndarray of shape (n_rows, d)
    residuals : ndarray of shape (n_rows, d) or None
        None when the labels are unknown.
    weight : ndarray of shape (n_rows,)
        The weights of the rows, not negative.
    share : float
        π, the share of the problem in sums over problems: 1 where problems are about the same
        samples, else its part of the weight of all samples.
    logits : ndarray of shape (n_rows, d) or None
        Of predictions that were logits the logarithms of the features, of a single feature its
        logit, without the loss of probabilities near 0 and 1.
    groups : skcal._groups.Groups
        Which of its rows belong together; :data:`skcal._groups.INDEPENDENT` where none do.
    counted : Counted or None
        What rows stand for, where they are not a sample each.
    rows : slice or ndarray of int
        The samples that the problem is about.
    """

    features: np.ndarray
    residuals: Any
    weight: np.ndarray
    share: float = 1.0
    logits: Any = None
    groups: Any = INDEPENDENT
    counted: Any = None
    rows: slice | np.ndarray = _ALL_ROWS

    @property
    def of_all_samples(self) -> bool:
        """Whether the problem is about all samples; otherwise problems divide them."""
        return isinstance(self.rows, slice)

    @property
    def has_pairs(self) -> bool:
        """Whether it has the samples that a risk needs, which a part of all samples may lack."""
        return self.of_all_samples or int(np.count_nonzero(self.weight)) >= 2

    @property
    def of_shares(self) -> bool:
        """Whether outcomes are shares of votes, whose law is not known."""
        return self.groups.of_shares or (self.counted is not None and self.counted.of_shares)

    def number(self, rows: Any = _ALL_ROWS) -> int:
        """How many samples there are in some of the rows.

        Parameters
        ----------
        rows : slice or ndarray, default=all
            Numbers of rows, or whether each is taken.
        """
        if self.counted is None:
            return len(self.weight[rows])
        return int(self.counted.counts[rows].sum())

    def cut_at(self, intervals: Any) -> Problem:
        """Return the problem, whose rows are binned as wholes if they are several samples each.

        Parameters
        ----------
        intervals : skcal._bins.Intervals
            Whose inner edges are among the features.
        """
        if self.counted is None:
            return self
        bins = np.searchsorted(intervals.edges[1:-1], self.features[:, 0])
        return self._replace(counted=self.counted._replace(bins=bins, intervals=intervals))

    @property
    def sizes(self) -> np.ndarray:
        """The number of samples of each row."""
        if self.counted is None:
            return np.ones(len(self.weight), dtype=np.intp)
        return np.rint(self.counted.counts).astype(np.intp)

    def quantiles(self, shares: np.ndarray) -> np.ndarray:
        """Quantiles of the single predictions of the samples, which are among them.

        Parameters
        ----------
        shares : ndarray of shape (n_quantiles,)
            The shares of the samples that lie below, from 0 to 1.
        """
        counts = None if self.counted is None else self.counted.counts
        return np.quantile(self.features[:, 0], shares, method="inverted_cdf", weights=counts)

    def quantile(self, tail: float) -> float:
        """The upper quantile of a studentised mean; weights have the mean 1.

        Parameters
        ----------
        tail : float
            The probability to lie above it, in (0, 1).
        """
        if self.counted is None:
            return self.groups.or_singles(self.weight).quantile(tail, self.weight)
        effective = self.weight.sum() ** 2 / self.squares.sum()
        return quantile_of_weights(tail, effective, self.number())

    @property
    def squares(self) -> np.ndarray:
        """Σ w² of each row."""
        squares = self.weight**2
        return squares if self.counted is None else squares * self.counted.uneven

    @property
    def of_mean_1(self) -> Problem:
        """The problem with weights of which a sample has 1 on average."""
        if self.counted is None:
            return self._replace(weight=self.weight / self.weight.mean())
        return self._replace(weight=self.weight * (self.number() / self.weight.sum()))

    @property
    def as_cells(self) -> Problem:
        """The problem with one row for all outcomes of a counted cell."""
        if self.counted is None:
            return self
        x, place = np.unique(self.features[:, 0], return_inverse=True)
        w = self.weight
        weight, counts, squares, sums = (
            np.bincount(place, values)
            for values in (w, self.counted.counts, self.squares, w * self.residuals[:, 0])
        )
        seen = np.bincount(place, w * (self.residuals[:, 0] ** 2 + self.counted.scatter))
        mean, none = sums / weight, np.zeros(len(x))
        scatter = np.maximum(seen / weight - mean**2, 0)
        intervals, of_shares = self.counted[6:]
        counted = Counted(counts, squares / weight**2, x, none, scatter, none, intervals, of_shares)
        return self._replace(
            features=x[:, None], residuals=mean[:, None], weight=weight, counted=counted
        )

    @property
    def outcomes(self) -> np.ndarray:
        """Outcomes of the shape of the features: 0/1, or other numbers in place of labels."""
        total = self.features + self.residuals
        whole = np.rint(total)
        apart = total - whole
        near = np.abs(apart, out=apart) <= _OUTCOME_ROUNDING
        return whole if near.all() else np.where(near, whole, total)

    def take(self, places: Any, rows: slice | np.ndarray, weight: np.ndarray) -> Problem:
        """Return the problem about some of its rows, samples ``rows`` of those with ``weight``.

        Parameters
        ----------
        places : ndarray of int
            Rows of this problem that are kept.
        rows : slice or ndarray of int
            Numbers of these rows among the samples with ``weight``.
        weight : ndarray of shape (n_samples,)
            Weights of the samples.
        """
        residuals = None if self.residuals is None else self.residuals[places]
        logits = None if self.logits is None else self.logits[places]
        problem = _problem(self.features[places], residuals, weight, logits, rows)
        counted = None if self.counted is None else self.counted.take(places)
        return problem._replace(groups=self.groups.take(places), counted=counted)

    def seen_by(self, function: Any) -> np.ndarray:
        """Return the features as a calibration-estimation function reads them.

        Parameters
        ----------
        function : calibration-estimation function
            Its ``reads_logits`` says whether it takes logits.
        """
        return self.logits if function.reads_logits else self.features


def _problem(
    features: np.ndarray,
    residuals: Any,
    weight: np.ndarray,
    logits: Any,
    rows: slice | np.ndarray = _ALL_ROWS,
) -> Problem:
    """A problem about some of the samples, whose weights are given."""
    if isinstance(rows, slice):
        return Problem(features, residuals, weight, logits=logits)
    weight_of_rows, total = weight[rows], weight.sum()
    share = float(weight_of_rows.sum() / total) if total else 0.0
    return Problem(features, residuals, weight_of_rows, share, logits, rows=rows)


class Problems(NamedTuple):
    """All problems of a notion about some samples.

    Attributes
    ----------
    parts : list of Problem
    weight : ndarray of shape (n_samples,)
        The weights of the samples.
    groups : skcal._groups.Groups
        Which samples belong together.
    """

    parts: list[Problem]
    weight: np.ndarray
    groups: Any = INDEPENDENT

    @property
    def share_samples(self) -> bool:
        """Whether every problem is about all samples; otherwise each sample belongs to one."""
        return self.parts[0].of_all_samples

    @property
    def dependent(self) -> Any:
        """The groups, with the strongest dependence that a problem shows."""
        strongest = max((part.groups for part in self.parts), key=lambda groups: groups.strength)
        return replace(self.groups, dependence=strongest.dependence)

    def take(self, rows: np.ndarray) -> Problems:
        """Return the problems about the samples of the given rows, uncopied if these are all.

        Parameters
        ----------
        rows : ndarray of int
            Numbers of the rows that are kept.
        """
        if np.array_equal(rows, np.arange(len(self.weight))):
            return self
        weight, groups = self.weight[rows], self.groups.take(rows)
        if self.share_samples:
            taken = [part.take(rows, slice(None), weight) for part in self.parts]
            return Problems(taken, weight, groups)
        member, place = (np.empty(len(self.weight), dtype=np.intp) for _ in range(2))
        for k, part in enumerate(self.parts):
            member[part.rows], place[part.rows] = k, np.arange(len(part.features))
        order = np.argsort(member[rows], kind="stable")
        ends = np.searchsorted(member[rows][order], np.arange(1, len(self.parts)))
        parts = zip(self.parts, np.split(order, ends), strict=True)
        taken = [part.take(place[rows[kept]], kept, weight) for part, kept in parts]
        return Problems(taken, weight, groups)


def _simplex_problem(
    proba: np.ndarray, codes: np.ndarray | None, weight: np.ndarray, logits: Any
) -> Problem:
    """``codes`` are columns of labels, or outcomes of the shape of the predictions."""
    if codes is not None and codes.ndim == 1:
        codes = one_hot(codes, proba.shape[1], proba.dtype)
    residuals = None if codes is None else codes.astype(proba.dtype, copy=False) - proba
    return _problem(proba, residuals, weight, logits)


def _scalar_problem(
    predicted: np.ndarray,
    hit: np.ndarray | None,
    weight: np.ndarray,
    logits: Any,
    rows: slice | np.ndarray = _ALL_ROWS,
) -> Problem:
    residuals = None
    if hit is not None:
        residuals = hit.astype(predicted.dtype)[:, None]
        residuals -= predicted[:, None]
    logits = None if logits is None else logits[:, None]
    return _problem(predicted[:, None], residuals, weight, logits, rows)


def _top(proba: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The first most probable class and its probability."""
    top = proba.argmax(axis=1)
    return top, np.take_along_axis(proba, top[:, None], axis=1)[:, 0]


def _top_logits(logits: Any, top: np.ndarray) -> Any:
    """Return log p - log(1 - p) of the class in each row, by log p of all classes (n, C)."""
    if logits is None:
        return None
    others = logits.copy()
    np.put_along_axis(others, top[:, None], -np.inf, axis=1)
    return np.take_along_axis(logits, top[:, None], axis=1)[:, 0] - logsumexp(others, axis=1)


def _class_logits(logits: Any) -> Any:
    """Return log p - log(1 - p) of every class; 1 - p ≥ 1/2 of all but the most probable."""
    if logits is None:
        return None
    top = logits.argmax(axis=1)
    odds = logits - np.log1p(-np.exp(np.minimum(logits, np.log(0.5))))
    np.put_along_axis(odds, top[:, None], _top_logits(logits, top)[:, None], axis=1)
    return odds


class Notion(str):
    """A notion of calibration: a string, its name, with what its problems are like.

    A new notion says in ``problems`` what its features and residuals are, and overrides the
    attributes that differ.

    Attributes
    ----------
    scalar : bool, default=True
        The features are single numbers.
    by_class : bool, default=False
        It has a problem a class, and not one.
    shares_samples : bool, default=True
        All problems are about all samples; otherwise every sample belongs to one of them.
    joint_law : bool, default=True
        Outcomes of all problems may be redrawn, given their features; otherwise each problem is
        tested by itself.
    of_positive_class : bool, default=False
        It is about one of two columns, so that ``pos_label`` has a meaning.
    of_given_classes : bool, default=False
        Outcomes are classes as they are named, not those that the predictions rank.
    of_largest : bool, default=False
        Features are the largest probability alone, so that errors are over- and underconfidence.
    of_labels : bool, default=False
        Columns are labels, any of which may hold, not classes, one of which does.
    of_shares : bool, default=False
        Outcomes are shares whose law is not known, given the predictions.
    of_answers : bool, default=False
        A prediction is the confidence of an answer, and its outcome whether the answer was right.
    """

    scalar = True
    by_class = False
    shares_samples = True
    joint_law = True
    of_positive_class = False
    of_given_classes = False
    of_largest = False
    of_labels = False
    of_shares = False
    of_answers = False

    def __eq__(self, other: object) -> bool:
        """Whether the other is the same notion, or the name of this one as a plain string."""
        if isinstance(other, Notion) and type(other) is not type(self):
            return False
        return str.__eq__(self, other) is True

    def __ne__(self, other: object) -> bool:
        """Whether the other is another notion."""
        return not self == other

    __hash__ = str.__hash__

    def problems(
        self, proba: np.ndarray, codes: np.ndarray | None, weight: np.ndarray, logits: Any = None
    ) -> list[Problem]:
        """Translate rows (n, C) of probabilities, the column of each label, and weights.

        ``logits`` are the logarithms of the rows, of predictions that were logits.

        Parameters
        ----------
        proba : ndarray of shape (n_samples, n_classes)
            Predicted probabilities.
        codes : ndarray of shape (n_samples,) or (n_samples, n_classes)
            The column of each label, or how much of each class happened.
        weight : ndarray of shape (n_samples,)
            Weights of the samples.
        logits : ndarray of shape (n_samples, n_classes), default=None
            Logarithms of the rows, of predictions that were logits.
        """
        raise NotImplementedError

    def of_one_column(self) -> Notion:
        """Return the notion that the question means for P(positive) alone."""
        return self

    def check(self, n_classes: int) -> None:
        """Raise a ValueError unless predictions of this many classes have the notion.

        Parameters
        ----------
        n_classes : int
            Number of classes.
        """

    @property
    def single(self) -> bool:
        """Whether it is one problem whose features are single numbers."""
        return self.scalar and not self.by_class

    def values_per_row(self, n_classes: int) -> int:
        """Return the most entries of features that a sample has, in all problems.

        Parameters
        ----------
        n_classes : int
            Number of classes.
        """
        return 1 if self.scalar and not (self.by_class and self.shares_samples) else n_classes

    def titles(self, classes: list[str]) -> list[str]:
        """Return the name of each problem of a scalar notion, or of each entry of a vector.

        Parameters
        ----------
        classes : array-like of shape (n_classes,)
            The classes, in the order of the columns.
        """
        return [f"class {name}" for name in classes] if self.by_class else [str(self)]


class _Canonical(Notion):
    scalar, of_given_classes = False, True

    def problems(
        self, proba: np.ndarray, codes: np.ndarray | None, weight: np.ndarray, logits: Any = None
    ) -> list[Problem]:
        return [_simplex_problem(proba, codes, weight, logits)]

    def of_one_column(self) -> Notion:
        return NOTIONS["binary"]

    def titles(self, classes: list[str]) -> list[str]:
        return list(classes)


class _Confidence(Notion):
    of_largest = True

    def problems(
        self, proba: np.ndarray, codes: np.ndarray | None, weight: np.ndarray, logits: Any = None
    ) -> list[Problem]:
        top, confidence = _top(proba)
        return [_scalar_problem(confidence, hits(codes, top), weight, _top_logits(logits, top))]

    def of_one_column(self) -> Notion:
        raise InputError(
            "notion",
            "is 'confidence', which needs a column for each class; the predictions are "
            "one-dimensional.",
            "Pass notion='binary' for probabilities of the positive class, and for confidences "
            "beside y = 1 where the prediction was right. For max(p, 1 - p) pass "
            "numpy.column_stack([1 - p, p]).",
        )


class _TopLabel(Notion):
    by_class, shares_samples, of_largest = True, False, True

    def problems(
        self, proba: np.ndarray, codes: np.ndarray | None, weight: np.ndarray, logits: Any = None
    ) -> list[Problem]:
        top, confidence = _top(proba)
        odds = _top_logits(logits, top)
        problems = []
        for k in range(proba.shape[1]):
            rows = np.flatnonzero(top == k)
            hit = None if codes is None else hits(codes[rows], k)
            logit = None if odds is None else odds[rows]
            problems.append(_scalar_problem(confidence[rows], hit, weight, logit, rows))
        return problems

    def titles(self, classes: list[str]) -> list[str]:
        return [f"predicted {name}" for name in classes]


class _Classwise(Notion):
    by_class, joint_law, of_given_classes = True, False, True

    def problems(
        self, proba: np.ndarray, codes: np.ndarray | None, weight: np.ndarray, logits: Any = None
    ) -> list[Problem]:
        odds = self.odds(logits)
        return [
            _scalar_problem(
                proba[:, k], hits(codes, k), weight, None if odds is None else odds[:, k]
            )
            for k in range(proba.shape[1])
        ]

    def odds(self, logits: Any) -> Any:
        """Logits of the columns, by those of the predictions."""
        return _class_logits(logits)

    def of_one_column(self) -> Notion:
        return NOTIONS["binary"]


class _MultiLabel(_Classwise):
    """Each label by itself; how those of one sample depend on each other is not known."""

    of_labels = True

    def odds(self, logits: Any) -> Any:
        return logits

    def titles(self, classes: list[str]) -> list[str]:
        return [f"label {name}" for name in classes]


class _Binary(Notion):
    of_positive_class, of_given_classes = True, True

    def problems(
        self, proba: np.ndarray, codes: np.ndarray | None, weight: np.ndarray, logits: Any = None
    ) -> list[Problem]:
        positive = proba if proba.ndim == 1 else proba[:, 1]
        if logits is not None and logits.ndim == 2:
            logits = logits[:, 1] - logits[:, 0]
        return [_scalar_problem(positive, hits(codes, 1), weight, logits)]

    def check(self, n_classes: int) -> None:
        if n_classes > 2:
            remedy = worded(
                "Pass y_true == labels[k] and y_proba[:, k] for a class k, or use 'classwise', "
                "'confidence' or 'canonical'.",
                "Use 'classwise', 'confidence' or 'canonical'.",
            )
            raise ValueError(
                f"{_asked('binary')} needs 1-D predictions or two columns, not {n_classes}. "
                f"{remedy}"
            )

    def titles(self, classes: list[str]) -> list[str]:
        return [f"P({classes[1]})"]


class _Answers(_Binary):
    """The same numbers in words of answers: confidence and accuracy, not events."""

    of_positive_class, of_answers = False, True

    def titles(self, classes: list[str]) -> list[str]:
        return ["confidence"]


#: The binary notion of confidences beside whether each answer was right.
ANSWERS = _Answers("binary")

#: Notions by name; ``top-K`` and lenses come on top.
NOTIONS: dict[str, Notion] = {
    "canonical": _Canonical("canonical"),  # the whole vector p
    "confidence": _Confidence("confidence"),  # condition on max p alone
    "top-label": _TopLabel("top-label"),  # condition on (max p, arg max p)
    "classwise": _Classwise("classwise"),  # each p_k by itself, summed
    "binary": _Binary("binary"),  # P(positive class)
    "multi-label": _MultiLabel("multi-label"),  # each of several labels, any of which may hold
}


class _PrecisionAtK(Notion):
    """The mean of the K largest predictions of labels, and how many of these labels hold."""

    of_labels = True

    @property
    def k(self) -> int:
        return int(self.rpartition("-")[2])

    @property
    def of_shares(self) -> bool:  # type: ignore[override]
        """Whether several labels count; a single one holds with its predicted probability."""
        return self.k > 1

    def problems(
        self, proba: np.ndarray, codes: np.ndarray | None, weight: np.ndarray, logits: Any = None
    ) -> list[Problem]:
        """Ties go to the first label."""
        first = np.argsort(-proba, axis=1, kind="stable")[:, : self.k]
        predicted = np.take_along_axis(proba, first, axis=1).mean(axis=1)
        held = None
        if codes is not None:
            held = np.mean([hits(codes, first[:, rank]) for rank in range(self.k)], axis=0)
        if logits is not None:
            z = np.take_along_axis(logits, first, axis=1)
            logits = logsumexp(log_expit(z), axis=1) - logsumexp(log_expit(-z), axis=1)
        return [_scalar_problem(predicted, held, weight, logits)]

    def check(self, n_classes: int) -> None:
        if not 1 <= self.k <= n_classes:
            raise ValueError(f"{_asked(self)}: K must be from 1 to {n_classes}, the labels.")


class _TopK(Notion):
    """The K largest probabilities, sorted, and the sum of the others."""

    scalar = False

    @property
    def k(self) -> int:
        return int(self[4:])

    def problems(
        self, proba: np.ndarray, codes: np.ndarray | None, weight: np.ndarray, logits: Any = None
    ) -> list[Problem]:
        """Group each class by its rank, the classes after the k-th sharing group k."""
        order = np.argsort(-proba, axis=1, kind="stable")
        groups = np.full(proba.shape, self.k)
        np.put_along_axis(groups, order[:, : self.k], np.arange(self.k)[None, :], axis=1)
        return [induced(proba, codes, groups, self.k + 1, weight, logits)]

    def check(self, n_classes: int) -> None:
        if not 1 <= self.k < n_classes:
            raise ValueError(
                f"{_asked(self)}: K must be from 1 to {n_classes - 1}, below the number of classes."
            )

    def titles(self, classes: list[str]) -> list[str]:
        later = [f"{rank}th" for rank in range(4, self.k + 1)]
        return [*["most probable", "second", "third", *later][: self.k], "rest"]


def induced(
    proba: np.ndarray,
    codes: np.ndarray | None,
    groups: np.ndarray,
    n_groups: int,
    weight: np.ndarray,
    logits: Any = None,
) -> Problem:
    """Return the canonical problem of the model that a lens induces."""
    mass = np.zeros((len(proba), n_groups), dtype=proba.dtype)
    sums = None if logits is None else np.full(mass.shape, -np.inf)
    rows = np.arange(len(proba))
    for k in range(proba.shape[1]):
        mass[rows, groups[:, k]] += proba[:, k]
        if sums is not None:
            sums[rows, groups[:, k]] = np.logaddexp(sums[rows, groups[:, k]], logits[:, k])
    np.minimum(mass, 1, out=mass)  # sums of probabilities may pass 1 by rounding
    if codes is not None and codes.ndim == 2:
        happened = np.zeros(mass.shape)
        np.add.at(happened, (rows[:, None], groups), codes)
        return _simplex_problem(mass, happened, weight, sums)
    return _simplex_problem(mass, None if codes is None else groups[rows, codes], weight, sums)


class Lens(Notion):
    """A user's lens with the number of groups that it had at fit; its name is the function's.

    Attributes
    ----------
    function : callable
    n_groups : int
        Evaluation samples may lack the last groups, but may not have further ones.
    """

    scalar = False
    function: _Lens
    n_groups: int

    def __new__(cls, function: _Lens, n_groups: int) -> Lens:
        """Name the lens after its function."""
        name = getattr(function, "__name__", "lens").replace("<lambda>", "lens")
        lens = super().__new__(cls, name)
        lens.function, lens.n_groups = function, n_groups
        return lens

    def __getnewargs__(self) -> Any:
        """Return what a copy is made from."""
        return self.function, self.n_groups

    def __eq__(self, other: object) -> bool:
        """Whether the other is a lens of the same function; names alone do not tell."""
        if not isinstance(other, Lens):
            return False
        return self.function == other.function and self.n_groups == other.n_groups

    def __hash__(self) -> int:
        """Hash of what makes two lenses equal."""
        return hash((self.function, self.n_groups))

    @classmethod
    def of(cls, function: _Lens, proba: np.ndarray) -> Lens:
        """Return the lens with as many groups as it has on these predictions.

        Parameters
        ----------
        function : callable
            Takes rows of probabilities and returns what the calibration is about.
        proba : ndarray of shape (n_samples, n_classes)
            Predicted probabilities.
        """
        return cls(function, int(_groups(function, proba).max()) + 1)

    def problems(
        self, proba: np.ndarray, codes: np.ndarray | None, weight: np.ndarray, logits: Any = None
    ) -> list[Problem]:
        """Return the problem of the grouped classes.

        Parameters
        ----------
        proba : ndarray of shape (n_samples, n_classes)
            Predicted probabilities.
        codes : ndarray of shape (n_samples,) or (n_samples, n_classes)
            The column of each label, or how much of each class happened.
        weight : ndarray of shape (n_samples,)
            Weights of the samples.
        logits : ndarray of shape (n_samples, n_classes), default=None
            Logarithms of the rows, of predictions that were logits.
        """
        groups = _groups(self.function, proba)
        if groups.max(initial=0) >= self.n_groups:
            raise ValueError(
                f"The lens returned group {groups.max()}, which the training samples do not have. "
                "Let it number the groups in the same way for every sample."
            )
        return [induced(proba, codes, groups, self.n_groups, weight, logits)]

    def titles(self, classes: list[str]) -> list[str]:
        """Return the number of each group.

        Parameters
        ----------
        classes : array-like of shape (n_classes,)
            The classes, in the order of the columns.
        """
        return [f"group {k}" for k in range(self.n_groups)]


def _groups(lens: _Lens, proba: np.ndarray) -> np.ndarray:
    groups = np.asarray(lens(proba))
    if groups.shape != proba.shape or groups.dtype.kind not in "biu":
        raise ValueError(
            f"notion: The lens returned {groups.dtype} of shape {groups.shape}. It must return a "
            f"non-negative integer group for every class of every sample, shape {proba.shape}."
        )
    outside = (groups < 0) | (groups >= proba.shape[1])
    if outside.any():
        row, column = (int(i) for i in np.argwhere(outside)[0])
        raise ValueError(
            f"notion: The lens returned group {groups[row, column]} at row {row}, column {column}. "
            f"It must return non-negative integer groups below the {proba.shape[1]} classes."
        )
    return groups.astype(np.intp)


def _log_columns(logits: np.ndarray | None) -> np.ndarray | None:
    """Return log(1 - p) and log p of 1-D logits."""
    if logits is None or logits.ndim == 2:
        return logits
    return -np.logaddexp(0, np.column_stack([logits, -logits]))


def resolve_notion(notion: str | _Lens, proba: np.ndarray) -> Notion:
    """Return the notion that a question about ``proba`` means, or raise.

    ``"auto"`` is ``"binary"`` for one-dimensional input and two columns, and ``"confidence"`` for
    more. ``"canonical"`` and ``"classwise"`` questions about one-dimensional input are the
    ``"binary"`` one; the error of the equivalent two columns is exactly twice as large.
    """
    n_classes = 2 if proba.ndim == 1 else proba.shape[1]
    if isinstance(notion, str) and notion == "auto":
        notion = NOTIONS["binary" if n_classes == 2 else "confidence"]
    resolved = _as_notion(notion, proba)
    if proba.ndim == 1:
        resolved = resolved.of_one_column()
    resolved.check(n_classes)
    return resolved


def _asked(notion: Any) -> str:
    """How a sentence names the notion that was asked for."""
    return worded(f"notion={notion!r}", f"--notion {notion}")


def _as_notion(notion: Any, proba: np.ndarray) -> Notion:
    if isinstance(notion, Notion):
        return notion
    if callable(notion):
        return Lens.of(notion, two_columns(proba))
    if isinstance(notion, str) and notion in NOTIONS:
        return NOTIONS[notion]
    if isinstance(notion, str) and re.fullmatch(r"top-\d+", notion):
        return _TopK(notion)
    if isinstance(notion, str) and re.fullmatch(_PRECISION, notion):
        return _PrecisionAtK(notion)
    raise ValueError(
        f"{_asked(notion)} is unknown. Use one of {', '.join(map(repr, NOTIONS))}, "
        "'top-K' or 'precision-at-K' for an integer K, or a callable."
    )


def make_problems(
    proba: np.ndarray,
    codes: np.ndarray | None,
    notion: str | _Lens,
    weight: np.ndarray | None = None,
    logits: np.ndarray | None = None,
) -> list[Problem]:
    """Translate predictions and labels into the problems of a notion.

    Parameters
    ----------
    proba : ndarray of shape (n_samples,) or (n_samples, n_classes)
        Checked probabilities; a 1-D array holds P(positive class).
    codes : ndarray of shape (n_samples,) or (n_samples, n_classes), or None
        The column of each sample's label, or how much of each class happened; None leaves the
        residuals out.
    notion : str or callable
        The notion as :func:`resolve_notion` returns it, or its name; a bare lens has as many groups
        as it returns.
    weight : ndarray of shape (n_samples,), default=None
        The weights of the samples; None weighs them alike.
    logits : ndarray of the shape of ``proba``, default=None
        Of predictions that were logits, what
        ``skcal._validation.check_predictions`` returns.

    Returns
    -------
    problems : list of Problem

    Raises
    ------
    ValueError
        If a notion of the user's own makes something else; names its class.

    Examples
    --------
    >>> import numpy as np
    >>> from skcal.notions import make_problems
    >>> proba = np.array([[0.5, 0.25, 0.25], [0.125, 0.75, 0.125]])
    >>> [problem] = make_problems(proba, np.array([0, 2]), "confidence")
    >>> problem.features.ravel(), problem.residuals.ravel()
    (array([0.5 , 0.75]), array([ 0.5 , -0.75]))
    """
    resolved = _as_notion(notion, proba)
    weight = np.ones(len(proba)) if weight is None else weight
    if not resolved.of_positive_class:
        proba, logits = two_columns(proba), _log_columns(logits)
    options = {} if logits is None else {"logits": logits}
    problems = resolved.problems(proba, codes, weight, **options)
    if type(resolved).__module__ != __name__:
        _check_problems(resolved, problems, len(proba), labelled=codes is not None)
    return problems


def _check_problems(notion: Notion, problems: Any, n_samples: int, labelled: bool) -> None:
    """Raise unless a notion of the user's own made problems whose parts fit together."""
    name = f"{type(notion).__name__}.problems"
    listed = isinstance(problems, list) and problems
    if not (listed and all(isinstance(problem, Problem) for problem in problems)):
        kind = "an empty list" if problems == [] else f"a {type(problems).__name__}"
        raise ValueError(f"{name} returned {kind}. Return a list of skcal.notions.Problem.")
    for problem in problems:
        X, delta = np.asarray(problem.features), problem.residuals
        n_rows = len(np.arange(n_samples)[problem.rows])
        width = 1 if notion.scalar else "d"
        if X.ndim != 2 or len(X) != n_rows or (notion.scalar and X.shape[1] != 1):
            raise ValueError(
                f"{name} returned features of shape {X.shape} for {n_rows} rows. Return shape "
                f"({n_rows}, {width})."
            )
        if np.shape(problem.weight) != (n_rows,):
            shape = np.shape(problem.weight)
            raise ValueError(
                f"{name} returned weight of shape {shape} for {n_rows} rows. Return one a row."
            )
        if not ((X >= 0) & (X <= 1)).all():
            raise ValueError(f"{name} returned features that are not probabilities in [0, 1].")
        if not labelled:
            continue
        if np.shape(delta) != X.shape:
            raise ValueError(
                f"{name} returned residuals of shape {np.shape(delta)} and features of shape "
                f"{X.shape}. Return both of one shape."
            )
        total = X + delta
        wrong = ~(np.abs(total - np.clip(np.rint(total), 0, 1)) <= _OUTCOME_ROUNDING).all(axis=1)
        if wrong.any():
            row = int(np.argmax(wrong))
            raise ValueError(
                f"{name} returned features and residuals that add up to {total[row].tolist()} in "
                f"row {row}, not to outcomes of 0 and 1. Return residuals = outcomes - features."
            )
