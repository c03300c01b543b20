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
a callable      1        sums of p over groups of classes     e_group − x
=============== ======== ==================================== ===========================

``top-K`` stands for ``"top-1"``, ``"top-2"``, …. A callable *lens* maps (n, C) probabilities to
(n, C) integers, the group of each class for each sample; it sees no labels. Ties of the arg max
go to the first class.

References
----------
Vaicenavicius et al., Evaluating model calibration in classification, AISTATS 2019.
Gupta & Ramdas, Top-label calibration and multiclass-to-binary reductions, ICLR 2022.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np

_Lens: TypeAlias = Callable[..., np.ndarray]


class Problem(NamedTuple):
    """One calibration problem.

    Attributes
    ----------
    features : ndarray of shape (n_rows, d)
    residuals : ndarray of shape (n_rows, d) or None
        None when the labels are unknown.
    rows : slice or ndarray of int
        The samples that the problem is about. Its share π of an estimate is the share of their
        weight; 1 for every notion but ``top-label``.
    """

    features: np.ndarray
    residuals: np.ndarray | None
    rows: slice | np.ndarray = slice(None)


class Problems(NamedTuple):
    """All problems of a notion about some samples.

    Attributes
    ----------
    parts : list of Problem
    weight : ndarray of shape (n_samples,)
        Of the samples.
    """

    parts: list[Problem]
    weight: np.ndarray

    def take(self, rows: np.ndarray) -> Problems:
        """Return the problems about the samples of the given rows."""
        weight = self.weight[rows]
        if isinstance(self.parts[0].rows, slice):
            return Problems([_take(part, rows, slice(None)) for part in self.parts], weight)
        # Every sample belongs to one problem.
        member, place = (np.empty(len(self.weight), dtype=np.intp) for _ in range(2))
        for k, part in enumerate(self.parts):
            member[part.rows], place[part.rows] = k, np.arange(len(part.features))
        order = np.argsort(member[rows], kind="stable")
        ends = np.searchsorted(member[rows][order], np.arange(1, len(self.parts)))
        parts = zip(self.parts, np.split(order, ends), strict=True)
        return Problems([_take(part, place[rows[own]], own) for part, own in parts], weight)


def _take(part: Problem, places: np.ndarray, rows: slice | np.ndarray) -> Problem:
    residuals = None if part.residuals is None else part.residuals[places]
    return Problem(part.features[places], residuals, rows)


def _one_hot(codes: np.ndarray, width: int, dtype: np.dtype) -> np.ndarray:
    outcome = np.zeros((len(codes), width), dtype=dtype)
    outcome[np.arange(len(codes)), codes] = 1
    return outcome


def _simplex_problem(proba: np.ndarray, codes: np.ndarray | None) -> Problem:
    if codes is None:
        return Problem(proba, None)
    return Problem(proba, _one_hot(codes, proba.shape[1], proba.dtype) - proba)


def _scalar_problem(
    predicted: np.ndarray, hit: np.ndarray | None, rows: slice | np.ndarray = slice(None)
) -> Problem:
    residuals = None if hit is None else (hit.astype(predicted.dtype) - predicted)[:, None]
    return Problem(predicted[:, None], residuals, rows)


def _canonical(proba: np.ndarray, codes: np.ndarray | None) -> list[Problem]:
    return [_simplex_problem(proba, codes)]


def _confidence(proba: np.ndarray, codes: np.ndarray | None) -> list[Problem]:
    top, confidence = _top(proba)
    return [_scalar_problem(confidence, None if codes is None else codes == top)]


def _top(proba: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The first most probable class and its probability."""
    top = proba.argmax(axis=1)
    return top, np.take_along_axis(proba, top[:, None], axis=1)[:, 0]


def _top_label(proba: np.ndarray, codes: np.ndarray | None) -> list[Problem]:
    top, confidence = _top(proba)
    problems = []
    for k in range(proba.shape[1]):
        rows = np.flatnonzero(top == k)
        hit = None if codes is None else codes[rows] == k
        problems.append(_scalar_problem(confidence[rows], hit, rows))
    return problems


def _classwise(proba: np.ndarray, codes: np.ndarray | None) -> list[Problem]:
    return [
        _scalar_problem(proba[:, k], None if codes is None else codes == k)
        for k in range(proba.shape[1])
    ]


def _binary(proba: np.ndarray, codes: np.ndarray | None) -> list[Problem]:
    return [_scalar_problem(proba[:, 1], None if codes is None else codes == 1)]


NOTIONS: dict[str, Callable[..., list[Problem]]] = {
    "canonical": _canonical,  # the whole vector p
    "confidence": _confidence,  # condition on max p alone
    "top-label": _top_label,  # condition on (max p, arg max p)
    "classwise": _classwise,  # each p_k by itself, summed
    "binary": _binary,  # P(positive class)
}


def _ranks(proba: np.ndarray, k: int) -> np.ndarray:
    """Group of each class: its rank, the classes after the k-th sharing group k."""
    order = np.argsort(-proba, axis=1, kind="stable")
    groups = np.full(proba.shape, k)
    np.put_along_axis(groups, order[:, :k], np.arange(k)[None, :], axis=1)
    return groups


def induced(
    proba: np.ndarray, codes: np.ndarray | None, groups: np.ndarray, n_groups: int
) -> Problem:
    """Return the canonical problem of the model that a lens induces."""
    mass = np.zeros((len(proba), n_groups), dtype=proba.dtype)
    rows = np.arange(len(proba))
    for k in range(proba.shape[1]):
        mass[rows, groups[:, k]] += proba[:, k]
    np.minimum(mass, 1, out=mass)  # sums of probabilities may pass 1 by rounding
    return _simplex_problem(mass, None if codes is None else groups[rows, codes])


@dataclass(frozen=True)
class Lens:
    """A user's lens with the number of groups that it had at fit.

    Attributes
    ----------
    function : callable
    n_groups : int
        Evaluation samples may lack the last groups, but may not have further ones.
    """

    function: _Lens
    n_groups: int

    @classmethod
    def of(cls, function: _Lens, proba: np.ndarray) -> Lens:
        """Return the lens with as many groups as it has on these predictions."""
        return cls(function, int(_groups(function, proba).max()) + 1)

    def __call__(self, proba: np.ndarray) -> np.ndarray:
        """Return the group of each class of each sample."""
        groups = _groups(self.function, proba)
        if groups.max(initial=0) >= self.n_groups:
            raise ValueError(
                f"The lens returned group {groups.max()}, which the training samples do not have. "
                "Let it number the groups in the same way for every sample."
            )
        return groups


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


def _two_columns(proba: np.ndarray) -> np.ndarray:
    """The rows of 1-D predictions as columns of the negative and the positive class."""
    return np.column_stack([1 - proba, proba]) if proba.ndim == 1 else proba


def resolve_notion(notion: str | _Lens, proba: np.ndarray) -> str | _Lens:
    """Return the notion that a question about ``proba`` means, or raise.

    ``"auto"`` is ``"binary"`` for one-dimensional input and ``"confidence"`` otherwise.
    ``"canonical"`` and ``"classwise"`` questions about one-dimensional input are the ``"binary"``
    one; the error of the equivalent two columns is exactly twice as large.
    """
    n_classes = 2 if proba.ndim == 1 else proba.shape[1]
    if callable(notion):
        return notion if isinstance(notion, Lens) else Lens.of(notion, _two_columns(proba))
    if notion == "auto":
        return "binary" if proba.ndim == 1 else "confidence"
    if proba.ndim == 1 and notion in ("canonical", "classwise"):
        return "binary"
    if notion == "binary" and n_classes > 2:
        raise ValueError(
            f"notion='binary' needs 1-D predictions or two columns, not {n_classes}. "
            "Use 'classwise', 'confidence' or 'canonical'."
        )
    if isinstance(notion, str) and notion in NOTIONS:
        return notion
    k = _top_k(notion)
    if k is not None and 1 <= k < n_classes:
        return notion
    if k is not None:
        raise ValueError(
            f"notion={notion!r}: K must be from 1 to {n_classes - 1}, below the number of classes."
        )
    raise ValueError(
        f"notion={notion!r} is unknown. Use one of {', '.join(map(repr, NOTIONS))}, "
        "'top-K' for an integer K, or a callable lens."
    )


def _top_k(notion: object) -> int | None:
    match = re.fullmatch(r"top-(\d+)", notion) if isinstance(notion, str) else None
    return int(match[1]) if match else None


def is_scalar(notion: object) -> bool:
    """Whether the features of the notion are single numbers."""
    return notion in ("confidence", "top-label", "classwise", "binary")


def make_problems(
    proba: np.ndarray, codes: np.ndarray | None, notion: str | _Lens
) -> list[Problem]:
    """Translate predictions and labels into the problems of a notion.

    Parameters
    ----------
    proba : ndarray of shape (n_samples,) or (n_samples, n_classes)
        Checked probabilities; a 1-D array holds P(positive class).
    codes : ndarray of shape (n_samples,) or None
        The column of each sample's label; None leaves the residuals out.
    notion : str or callable
        As :func:`resolve_notion` returns it; a bare lens has as many groups as it returns.

    Returns
    -------
    problems : list of Problem

    Examples
    --------
    >>> import numpy as np
    >>> from skcal.notions import make_problems
    >>> proba = np.array([[0.5, 0.25, 0.25], [0.125, 0.75, 0.125]])
    >>> [problem] = make_problems(proba, np.array([0, 2]), "confidence")
    >>> problem.features.ravel(), problem.residuals.ravel()
    (array([0.5 , 0.75]), array([ 0.5 , -0.75]))
    """
    if proba.ndim == 1:
        if notion == "binary":
            return [_scalar_problem(proba, None if codes is None else codes == 1)]
        proba = _two_columns(proba)
    if callable(notion):
        lens = notion if isinstance(notion, Lens) else Lens.of(notion, proba)
        return [induced(proba, codes, lens(proba), lens.n_groups)]
    k = _top_k(notion)
    if k is not None:
        return [induced(proba, codes, _ranks(proba, k), k + 1)]
    return NOTIONS[notion](proba, codes)
