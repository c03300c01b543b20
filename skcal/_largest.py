"""The largest probability of each row of logits, without a copy of the rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import log_softmax, logsumexp, softmax

from skcal._validation import row_blocks

_BLOCK_BYTES = 2**20  # of float64, which stay in the processor's cache
_TINY = 1e-280  # below which sums of probabilities lose digits


class Softmax:
    """Probabilities of rows of logits; the largest of each row are computed first.

    It is read where labels are checked, in place of an array: others are computed when asked for.

    Attributes
    ----------
    top : ndarray of shape (n_samples,)
        The first most probable class.
    confidence : ndarray of shape (n_samples,)
        Its probability, in float64.
    odds : ndarray of shape (n_samples,)
        The logit of that probability, without the loss of probabilities near 1.
    """

    ndim = 2

    def __init__(self, logits: np.ndarray):
        self._logits, self.shape = logits, logits.shape
        parts = [_largest(logits[rows]) for rows in row_blocks(*self._size, most=_BLOCK_BYTES)]
        self.top, self.confidence, self.odds = map(np.concatenate, zip(*parts, strict=True))

    @property
    def _size(self) -> tuple[int, int]:
        return len(self), 8 * self.shape[1]

    def __len__(self) -> int:
        return len(self._logits)

    def __getitem__(self, places: Any) -> np.ndarray:
        """The probabilities of some rows, or one for each of the numbers of rows and columns."""
        if not isinstance(places, tuple):
            return softmax(self._logits[places].astype(np.float64), axis=1)
        z = self._logits
        largest = z[places[0], self.top[places[0]]].astype(np.float64)
        return self.confidence[places[0]] * np.exp(z[places] - largest)

    def item(self, place: int) -> float:
        """Return a probability by its place in the flattened rows."""
        row, column = divmod(place, self.shape[1])
        return float(self[row : row + 1][0, column])


def _largest(logits: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The first most probable class of each row, its probability and the logit of that."""
    proba = logits.astype(np.float64)
    proba -= proba.max(axis=1, keepdims=True)
    np.exp(proba, out=proba)
    proba /= proba.sum(axis=1, keepdims=True)
    rows, top = np.arange(len(proba)), proba.argmax(axis=1)
    confidence = proba[rows, top]
    proba[rows, top] = 0
    others = proba.sum(axis=1)
    small = others < _TINY
    odds = np.log(confidence) - np.log(np.where(small, 1, others))
    if small.any():
        z = log_softmax(logits[small].astype(np.float64), axis=1)
        rows, top_of_small = np.arange(len(z)), top[small]
        odds[small] = z[rows, top_of_small]
        z[rows, top_of_small] = -np.inf
        odds[small] -= logsumexp(z, axis=1)
    return top, confidence, odds
