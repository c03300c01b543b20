"""The number of surprises on which the variance of a sample rests."""

from __future__ import annotations

import warnings

import numpy as np

from skcal.sample import Sample

FEWEST_EVENTS = 5  # below that limits are off by more than a percent or two


def surprises(sample: Sample) -> float:
    """Effective number of outcomes that were not predicted, e = w² ‖δ‖².

    Never above Σ ‖δ‖², since where nothing has happened all errors are small, and alike.
    """
    proba, rows = sample.proba, np.arange(len(sample.codes))
    if proba.ndim == 1:
        errors = (sample.codes - proba) ** 2
    else:
        errors = 1 - 2 * proba[rows, sample.codes] + (proba**2).sum(axis=1)
    most, errors = errors.sum(), sample.weight**2 * errors
    return float(min(effective_number(errors, errors**2), most))


def effective_number(variances: np.ndarray, fourth_moments: np.ndarray) -> float:
    """(Σ variance)² / Σ fourth moment: how many equal terms of ±1 would be as far from normal.

    It is close to the expected number of events where those are rare.
    """
    total = fourth_moments.sum()
    return variances.sum() ** 2 / total if total > 0 else 0.0


def warn_if_few_events(events: float, at_least: float, of: str, remedy: str) -> None:
    """Warn where no resample and no limit knows what may happen."""
    if events < at_least:
        warnings.warn(
            f"Too few outcomes are uncertain for {of}: the effective number of events is "
            f"{events:.2g}, below {at_least}. {remedy}",
            stacklevel=2,
        )
