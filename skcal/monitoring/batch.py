"""Predictions and outcomes of one problem, scalar or not, as columns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from skcal._validation import row_blocks

_FLOOR = 1e-12
_BLOCK_BYTES = 2**22


@dataclass(frozen=True, eq=False)
class Batch:
    """Predictions and outcomes of one problem.

    Attributes
    ----------
    proba : ndarray of shape (n_rows, n_columns)
        Rows sum to 1; a scalar problem has the columns 1 - x and x.
    code : ndarray of shape (n_rows,)
        The column that happened.
    target : ndarray of shape (n_rows,)
        The column t.
    weight : ndarray of shape (n_rows,)
    """

    proba: np.ndarray
    code: np.ndarray
    target: np.ndarray
    weight: np.ndarray

    @classmethod
    def of(cls, features: np.ndarray, outcomes: np.ndarray, weight: np.ndarray) -> Batch:
        """Read the features (n, d) and outcomes (n, d) of a problem."""
        features = features.astype(np.float64)
        if features.shape[1] == 1:
            proba = np.hstack([1 - features, features])
            code = outcomes[:, 0].astype(np.intp)
            return cls(proba, code, np.ones(len(proba), dtype=np.intp), weight)
        # Ratios to p have the mean 1 only if p sums to 1: a miss of 1e-6 adds up over samples.
        proba = features / features.sum(axis=1, keepdims=True)
        return cls(proba, outcomes.argmax(axis=1), proba.argmax(axis=1), weight)

    def blocks(self) -> Iterator[Batch]:
        """Cut into batches whose temporary arrays stay small."""
        for rows in row_blocks(len(self.proba), 64 * self.proba.shape[1], most=_BLOCK_BYTES):
            yield Batch(self.proba[rows], self.code[rows], self.target[rows], self.weight[rows])

    def of_column(self, array: np.ndarray, column: np.ndarray) -> np.ndarray:
        """Entries of an array (n, C) at one column a row."""
        return array[np.arange(len(array)), column]

    @property
    def log_proba(self) -> np.ndarray:
        """Logarithms with the floor."""
        return np.log(np.maximum(self.proba, _FLOOR))

    @property
    def happened(self) -> np.ndarray:
        """The probability of what happened."""
        return self.of_column(self.proba, self.code)

    @property
    def hit(self) -> np.ndarray:
        """Whether the target happened."""
        return (self.code == self.target).astype(np.float64)

    @property
    def expected(self) -> np.ndarray:
        """The probability of the target."""
        return self.of_column(self.proba, self.target)
