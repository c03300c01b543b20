"""What a report is made of: plain numbers, and the data and options that they come from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from skcal.notions import Notion

LEVEL = 0.05  # of every test that a report draws a conclusion from


@dataclass(frozen=True)
class Overview:
    """What was predicted and what happened."""

    n_samples: int
    classes: list
    base_rates: list[float]
    mean_predictions: list[float]
    accuracy: float
    mean_confidence: float


@dataclass(frozen=True)
class BinnedError:
    """ECE with its bootstrap interval and what calibrated predictions would show."""

    notion: Notion
    estimate: float
    low: float
    high: float
    null_mean: float
    null_limit: float
    pvalue: float
    n_bins: int
    strategy: str
    n_empty: int
    n_nearly_empty: int


@dataclass(frozen=True)
class WorstBin:
    """MCE among bins that hold enough samples."""

    notion: Notion
    estimate: float
    min_bin_samples: int
    left: float
    right: float
    count: int
    prediction: float
    frequency: float
    low: float
    high: float
    n_left_out: int
    n_bins: int
    strategy: str


@dataclass(frozen=True)
class KernelError:
    """SKCE and the p-value of calibration."""

    notion: Notion
    estimate: float
    pvalue: float
    method: str


@dataclass(frozen=True)
class Score:
    """A proper score = miscalibration - discrimination + uncertainty; None: no parts."""

    name: str
    notion: Notion
    score: float
    miscalibration: float | None = None
    discrimination: float | None = None
    uncertainty: float | None = None


@dataclass(frozen=True)
class Measures:
    """Everything about one set of predictions; None is what could not be estimated."""

    name: str
    overview: Overview
    tuned: list[dict]
    ece: BinnedError | None
    without_bins: dict | None
    mce: WorstBin | None
    skce: list[KernelError]
    scores: list[Score]
    sharpness: float
    validation: dict | None
    curve: dict | None
    decision: dict | None
    diagram: dict | None
    warnings: list[str]


class Settings(NamedTuple):
    """How a report is made; the options of ``calibration_report``."""

    notion: Notion
    search: bool
    n_bins: int
    strategy: str
    min_bin_samples: int
    confidence_level: float
    n_resamples: int
    candidates: Any
    cv: Any
    outer_cv: Any
    max_search_samples: int | None
    n_jobs: int | None
    random_state: int
    verbose: bool | int = 0

    @property
    def bins(self) -> dict:
        """The options of a function that bins predictions."""
        return {name: getattr(self, name) for name in ("notion", "n_bins", "strategy")}


class Data(NamedTuple):
    """Checked predictions; labels are values, ``classes`` those of the columns."""

    labels: np.ndarray
    proba: np.ndarray
    classes: np.ndarray
    codes: np.ndarray

    def take(self, rows) -> Data:
        """Some of the samples."""
        return self._replace(
            labels=self.labels[rows], proba=self.proba[rows], codes=self.codes[rows]
        )

    def n_searched(self, settings: Settings) -> int:
        """How many samples the searches see."""
        most = settings.max_search_samples
        return len(self.codes) if most is None else min(most, len(self.codes))

    def searched(self, settings: Settings) -> Data:
        """At most ``max_search_samples`` of the samples, drawn without replacement, in order."""
        size = self.n_searched(settings)
        if size == len(self.codes):
            return self
        rng = np.random.default_rng(settings.random_state)
        return self.take(np.sort(rng.choice(len(self.codes), size=size, replace=False)))

    @property
    def rows(self) -> np.ndarray:
        """Probabilities with a column a class."""
        one = self.proba.ndim == 1
        return np.column_stack([1 - self.proba, self.proba]) if one else self.proba
