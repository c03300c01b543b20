"""How many surprises the variance of a sample rests on."""

from __future__ import annotations

import numpy as np

from skcal._notes import note
from skcal.metrics.base import Sample


def surprises(sample: Sample) -> float:
    """Effective number of outcomes that were not predicted: (Σ e)² / Σ e², e = w² ‖δ‖².

    Never above Σ ‖δ‖², since where nothing has happened all errors are small, and alike.
    """
    proba, rows = sample.proba, np.arange(len(sample.codes))
    if proba.ndim == 1:
        errors = (sample.codes - proba) ** 2
    else:
        errors = 1 - 2 * proba[rows, sample.codes] + (proba**2).sum(axis=1)
    most, errors = errors.sum(), sample.weight**2 * errors
    squares = (errors**2).sum()
    return float(min(errors.sum() ** 2 / squares, most)) if squares > 0 else 0.0


def warn_if_few_surprises(sample: Sample, at_least: int) -> None:
    """Warn where no resample and no limit knows what may happen."""
    events = surprises(sample)
    if events < at_least:
        note(
            f"Too few outcomes are uncertain for the interval: {events:.2g} effective ones differ "
            f"from the predictions, fewer than {at_least}. Use more samples, or monte_carlo_test.",
            UserWarning,
        )
