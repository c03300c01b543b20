"""What the columns of a monitor's predictions mean, fixed by its first batch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from skcal._validation import (
    InputError,
    check_labels,
    check_proba,
    check_weight,
    column_names,
    row_blocks,
)
from skcal.monitoring.batch import Batch
from skcal.monitoring.evidence import Evidence
from skcal.notions import NOTIONS, Notion, make_problems, resolve_notion

_PART_BYTES = 2**25


@dataclass(frozen=True, eq=False)
class Layout:
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

    @classmethod
    def of(cls, X, y, notion, labels) -> Layout:
        """Read the columns of a first batch."""
        names, proba = column_names(X), check_proba(X, name="X")
        classes = check_labels(y, proba, labels, columns=names, name="y", proba_name="X")[1]
        return cls(_width(proba), names, classes, resolve_notion(notion, proba))

    def read(self, X, y, sample_weight) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Check a batch, and return predictions, columns of labels and weights above 0."""
        names, proba = column_names(X), check_proba(X, name="X")
        self._require(_width(proba), names)
        codes, _ = check_labels(y, proba, self.classes, name="y", proba_name="X")
        weight = _check_counts(check_weight(sample_weight, len(proba)))
        if not weight.all():
            keep = weight > 0
            return proba[keep], codes[keep], weight[keep]
        return proba, codes, weight

    def batches(self, proba, codes, weight) -> Iterator[list[Batch]]:
        """Cut into parts of bounded memory, each a batch for every problem."""
        for rows in row_blocks(len(proba), 64 * len(self.classes), most=_PART_BYTES):
            problems = make_problems(proba[rows], codes[rows], self.notion, weight[rows])
            parts: list[tuple] = [(part.features, part.outcomes, part.weight) for part in problems]
            if self.pooled:
                parts = [tuple(map(np.concatenate, zip(*parts, strict=True))), *parts]
            yield [Batch.of(*part) for part in parts]

    def _require(self, n_columns: int | None, names: list | None) -> None:
        if n_columns != self.n_columns:
            earlier = _described(self.n_columns)
            reason = f"has {_described(n_columns)}, earlier batches have {earlier}."
            raise InputError("X", reason, "Begin a new monitor for another model.")
        if names is not None and self.names is not None and names != self.names:
            reason = f"has the columns {names[:8]}, earlier batches have {self.names[:8]}."
            raise InputError("X", reason, "Bring the columns into the same order.")

    @property
    def pooled(self) -> bool:
        """Whether all problems are also one: each sample belongs to one of them."""
        return self.notion.by_class and not self.notion.shares_samples

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

    def evidence(self) -> list[Evidence]:
        """Return the evidence of each problem before any sample."""
        width, scalar = 2, self.notion.scalar
        if not scalar:
            proba = np.full((1, len(self.classes)), 1 / len(self.classes))
            width = make_problems(proba, None, self.notion)[0].features.shape[1]
        return [Evidence(width, scalar) for _ in self.titles()]

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
    """Whether the name alone tells the notion."""
    try:
        return type(resolve_notion(str(notion), np.zeros((1, 10_000)))) is type(notion)
    except ValueError:
        return notion is NOTIONS.get(str(notion))


def _width(proba: np.ndarray) -> int | None:
    return None if proba.ndim == 1 else proba.shape[1]


def _described(n_columns: int | None) -> str:
    return "one dimension" if n_columns is None else f"{n_columns} columns"


def _check_counts(weight: np.ndarray) -> np.ndarray:
    """Weights that are counts, or at most 1."""
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
    return weight
