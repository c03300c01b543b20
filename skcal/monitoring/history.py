"""The course of a monitor in a bounded number of rows."""

from __future__ import annotations

import numpy as np

from skcal.monitoring.evidence import N_SUMS, estimate

MOST_ROWS = 256
_FIRST = ("n_samples", "log_e_value", "log_detector")


class History:
    """Rows of what was known after some of the batches, the last among them.

    When there are too many, every second is dropped, and from then on only every second, fourth, …
    batch leaves a row. Rows hold sums over all earlier samples, so that nothing is lost but steps.

    Attributes
    ----------
    rows : ndarray of shape (n_rows, 3 + N_SUMS)
        Samples, logarithms of e-value and e-detector, and the sums of the estimates.
    n_batches, stride : int
        Batches so far, and how many share a row.
    """

    def __init__(self) -> None:
        self.rows = np.empty((0, len(_FIRST) + N_SUMS))
        self.n_batches, self.stride = 0, 1

    def add(self, *values: float, sums: np.ndarray) -> None:
        """Add a row; the last one gives way unless its turn had come."""
        if self.n_batches % self.stride:
            self.rows = self.rows[:-1]
        self.rows = np.vstack([self.rows, np.concatenate([values, sums])])
        self.n_batches += 1
        if len(self.rows) == MOST_ROWS and self.n_batches % self.stride == 0:
            self.rows, self.stride = self.rows[1::2], 2 * self.stride

    def columns(self, alpha: float) -> dict[str, np.ndarray]:
        """Return columns: evidence, bias and error with their limits, bias since the last row."""
        table = dict(zip(_FIRST, self.rows.T, strict=False))
        sums = self.rows[:, len(_FIRST) :]
        count, bias = np.diff(sums[:, :2], axis=0, prepend=0.0).T
        with np.errstate(divide="ignore", invalid="ignore"):
            recent = bias / count
        limits = estimate(sums, alpha)._asdict()
        unknown = np.where(sums[:, 0] > 0, 0.0, np.nan)  # of a notion without a common bias
        return {
            "n_samples": table["n_samples"].astype(np.int64),
            "e_value": as_e_value(table["log_e_value"]),
            "log_e_value": table["log_e_value"],
            "detector": as_e_value(table["log_detector"]),
            "recent_bias": recent,
            **{name: value + unknown for name, value in limits.items()},
        }


def as_e_value(logarithm):
    """Return the exponential; what is too large for float64 is infinite."""
    with np.errstate(over="ignore"):
        return np.exp(logarithm)
