"""Types of the options of metrics, by which editors and type checkers find a misspelt one.

A metric of several classes returns an array where ``average=None``, else a float; its overloads
say so, and name its other options by one of the dictionaries here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypedDict

import numpy as np
from numpy.typing import ArrayLike

Average = Literal["sum", "macro"]
Distance = Literal["total-variation", "euclidean", "sqeuclidean", "cityblock"]
Strategy = Literal["uniform", "quantile", "sweep", "unique", "median-variance"]


class Columns(TypedDict, total=False):
    """The classes of the columns of predictions, and the weights of the samples."""

    sample_weight: ArrayLike | None
    labels: ArrayLike | None
    pos_label: Any
    from_logits: bool


class OfScalars(Columns, total=False):
    """And the kind of calibration, of single probabilities."""

    notion: str


class Smooth(OfScalars, total=False):
    """And the width of a kernel."""

    bandwidth: float | Literal["self-consistent"]


class Density(Columns, total=False):
    """And of the error of a density."""

    notion: str | Callable
    bandwidth: float | Literal["loo"]
    norm: float
    root: bool


class Kernels(Columns, total=False):
    """And of pairs of samples."""

    notion: str | Callable
    bandwidth: float | Literal["median"]
    method: Literal["unbiased", "biased", "linear", "block", "incomplete"]
    kernel: Literal["laplacian", "rbf"] | Callable
    block_size: int | None
    n_pairs: int | None
    class_kernel: ArrayLike | None
    random_state: int | np.random.RandomState | None


class Bins(Columns, total=False):
    """And of the error in bins."""

    notion: str | Callable
    n_bins: int | Literal["cube_root"]
    strategy: Strategy
    min_samples: int
    edges: ArrayLike | None
    norm: float
    debias: bool | Literal["labels"]
    distance: Literal["auto"] | Distance
    root: bool
    groups: ArrayLike | None
