"""The classes and the kind of a monitor's columns, fixed by its first batch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from skcal._labels import column_names, refuse_other_columns
from skcal._validation import InputError, check_proba, check_weight, naming, row_blocks
from skcal.monitoring.bets import Batch
from skcal.monitoring.evidence import Evidence
from skcal.notions import NOTIONS, Notion, make_problems, resolve_notion
from skcal.sample import HoldsNotion, Sample, read_sample, refuse_groups

_PART_BYTES = 2**25


@dataclass(frozen=True, eq=False)
class Layout(HoldsNotion):
    """Columns, classes and notion.

    Attributes
    ----------
    n_columns : int or None
        The number of columns; None for 1-D predictions.
    names : list or None
        Names of the columns of a data frame.
    classes : ndarray of shape (n_classes,)
    notion : Notion
    """

    n_columns: int | None
    names: list | None
    classes: np.ndarray
    notion: Notion
    _notion_name: ClassVar[str] = "notion"

    def batches(self, sample: Sample) -> Iterator[list[Batch]]:
        """Cut into parts of bounded memory, each a batch for every problem."""
        for rows in row_blocks(len(sample.codes), 64 * len(self.classes), most=_PART_BYTES):
            problems = sample.take(rows).problems()
            parts: list[tuple] = [(part.features, part.outcomes, part.weight) for part in problems]
            if self.pooled:
                parts = [tuple(map(np.concatenate, zip(*parts, strict=True))), *parts]
            yield [Batch.of(*part) for part in parts]

    @property
    def pooled(self) -> bool:
        """Whether all problems are also one: each sample belongs to one of them."""
        return self.notion.by_class and not self.notion.shares_samples

    @property
    def common(self) -> bool:
        """Whether the first problem is about all samples, not about one class."""
        return self.pooled or not self.notion.by_class

    def titles(self) -> list[str]:
        """Return the name of each problem, all samples first where they are one problem, too."""
        if not self.notion.by_class:
            return [str(self.notion)]
        return ["all"] * self.pooled + self.notion.titles([str(name) for name in self.classes])

    def shares(self) -> np.ndarray:
        """Weights of the problems' e-values in their mean, (n_problems,)."""
        n_problems = len(self.titles())
        if not self.pooled:
            return np.full(n_problems, 1 / n_problems)
        return np.array([0.5] + [0.5 / (n_problems - 1)] * (n_problems - 1))

    def evidence(self, ranges: bool = True) -> list[Evidence]:
        """Return the evidence of each problem before any sample.

        ``ranges`` says whether there are bets on ranges of the predictions of a problem that has
        all samples.
        """
        width, scalar = 2, self.notion.scalar
        if not scalar:
            proba = np.full((1, len(self.classes)), 1 / len(self.classes))
            width = make_problems(proba, None, self.notion)[0].features.shape[1]
        ranges &= self.common
        return [Evidence(width, scalar, ranges and not k) for k in range(len(self.titles()))]

    def refuse_other_columns(self, shape: tuple, names: list | None) -> None:
        """Raise unless predictions of this shape have the same columns."""
        earlier = () if self.n_columns is None else (self.n_columns,)
        refuse_other_columns(shape[1:], names, earlier, self.names, "X", "batches")

    def difference(self, other: Layout) -> str | None:
        """Return the name of what another layout has otherwise, or None."""
        for name in ("n_columns", "names", "notion"):
            if getattr(self, name) != getattr(other, name):
                return name
        return None if self.classes.tolist() == other.classes.tolist() else "classes"

    def to_dict(self) -> dict[str, Any]:
        """Return plain data; a lens or a notion of the user's own has none."""
        if not _is_named(self.notion):
            raise ValueError(
                f"notion={str(self.notion)!r} is code, which JSON does not hold. Use a notion that "
                "has a name."
            )
        for label in [*self.classes.tolist(), *(self.names or [])]:
            if not isinstance(label, str | int | float | bool):
                raise ValueError(
                    f"The label {label!r} is {type(label).__name__}, which JSON does not hold. Use "
                    "strings or numbers."
                )
        return {
            "n_columns": self.n_columns,
            "names": self.names,
            "classes": self.classes.tolist(),
            "notion": str(self.notion),
        }


def _is_named(notion: Notion) -> bool:
    """Whether the notion can be restored from its name."""
    try:
        return type(resolve_notion(str(notion), np.zeros((1, 10_000)))) is type(notion)
    except ValueError:
        return notion is NOTIONS.get(str(notion))


def read_batch(X, y, sample_weight, notion, labels, layout: Layout | None) -> tuple[Layout, Sample]:
    """Check a batch against the layout of earlier ones, or of the first one make it.

    The sample is without rows of weight 0.
    """
    names = column_names(X)
    with naming("X"):
        shape = np.shape(X)
    n_columns = shape[1] if len(shape) == 2 else None
    if layout is not None:
        if len(shape) in (1, 2):  # others are refused below
            layout.refuse_other_columns(shape, names)
        notion, labels = layout.notion, layout.classes
    options: dict[str, Any] = {"names": ("y", "X"), "keep_weightless": True}
    sample = read_sample(y, X, notion, None, labels, **options)
    remedy = "Pass one vote of each sample, drawn at random."
    refuse_groups(sample.groups, "a monitor", remedy, "y")
    weight = sample.weight * check_weight(sample_weight, len(sample.codes))
    _check_counts(weight)
    rows = slice(None) if weight.all() else np.flatnonzero(weight)
    sample = sample.take(rows, weight[rows])
    return layout or Layout(n_columns, names, sample.classes, sample.notion), sample


def read_unlabelled(X, notion, labels, layout: Layout | None) -> tuple[Layout, Batch]:
    """Check predictions, and return a batch whose outcomes mean nothing."""
    proba = check_proba(X, name="X")
    if layout is None:
        n_columns = proba.shape[1] if proba.ndim == 2 else None
        classes = np.arange(n_columns or 2) if labels is None else np.asarray(labels)
        layout = Layout(n_columns, column_names(X), classes, resolve_notion(notion, proba))
    else:
        layout.refuse_other_columns(proba.shape, column_names(X))
    features = [part.features for part in make_problems(proba, None, layout.notion)]
    joined = np.concatenate(features) if layout.pooled else features[0]
    return layout, Batch.of(joined, np.zeros_like(joined), np.ones(len(joined)))


def _check_counts(weight: np.ndarray) -> None:
    """Raise unless weights are counts, or at most 1."""
    wrong = (weight > 1) & (weight % 1 != 0)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise InputError(
            "sample_weight",
            f"is {weight[row]:.6g}: neither a count nor at most 1.",
            "Pass whole numbers, which repeat rows, or divide by the largest weight: a power above "
            "1 of a bet on one outcome would not be a fair bet.",
            row=row,
        )
