"""The squared mean embedding calibration error, at a few test locations."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state

from skcal._sklearn_compat import Interval, is_named, validate_params
from skcal._validation import check_proba
from skcal.kernels import Kernel
from skcal.metrics.base import estimate_problems
from skcal.metrics.kernel import KERNEL_OPTIONS
from skcal.metrics.statistic import prepared_by
from skcal.sample import Sample, read_sample


@prepared_by(random_state=0)
@validate_params(
    {
        **KERNEL_OPTIONS,
        "locations": ["array-like", None],
        "location_classes": ["array-like", None],
        "n_locations": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
    },
    prefer_skip_nested_validation=True,
    used_with={"n_locations": {"locations": (None,)}, "bandwidth": {"kernel": is_named}},
)
def squared_mean_embedding_calibration_error(
    y_true: ArrayLike | Sample,
    y_proba: ArrayLike | None = None,
    *,
    notion: str | Callable = "auto",
    locations: ArrayLike | None = None,
    location_classes: ArrayLike | None = None,
    n_locations: int = 10,
    kernel: Literal["laplacian", "rbf"] | Callable = "laplacian",
    bandwidth: float | Literal["median"] = "median",
    random_state: int | np.random.RandomState | None = 0,
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    pos_label: Any = None,
    from_logits: bool = False,
) -> float:
    """Squared mean embedding calibration error at test locations, UCME.

    The mean over locations (t_j, c_j) of (mean_i k(x_i, t_j) δ_{i, c_j})².

    Parameters
    ----------
    y_true : array-like of shape (n_samples,) or (n_samples, n_classes), or Sample
        Labels, or shares or votes of the classes; see :doc:`/guide/soft_labels`.
    y_proba : array-like of shape (n_samples,) or (n_samples, n_classes), default=None
        Probabilities in [0, 1]; rows sum to 1. A 1-D array holds P(positive class).
        Left out beside a :class:`skcal.Sample`.
    notion : str or callable, default="auto"
        "auto" is "binary" for one and two columns and "confidence" for more.
    locations : array-like of shape (n_locations,) or (n_locations, d), default=None
        Points t_j among the features. None takes distinct predictions: at evenly spaced ranks for
        scalar notions, at random for vectors.
    location_classes : array-like of int of shape (n_locations,), default=None
        Columns c_j of the residuals; None draws each from the probabilities t_j. Scalar notions
        have column 0.
    n_locations : int, default=10
        Number of locations to take, if there are as many distinct predictions; not beside
        ``locations``.
    kernel : {"laplacian", "rbf"} or callable, default="laplacian"
    bandwidth : float > 0 or "median", default="median"
        The width of the kernel, as in :func:`squared_kernel_calibration_error`.
    random_state : int, RandomState instance or None, default=0
        The seed of the draws, which do not depend on the labels.
    sample_weight : array-like of shape (n_samples,), default=None
        A weight of 2 counts as a repeated row.
    labels : array-like of shape (n_classes,), default=None
        The class of each column; for 1-D predictions (negative class, positive class).
    pos_label : label, default=None
        The positive class of 1-D predictions, or of two columns for "binary"; an error otherwise.
    from_logits : bool, default=False
        Whether ``y_proba`` holds logits; probabilities keep full precision.

    Returns
    -------
    error : float ≥ 0
        A square; biased upwards by its variance, of the order of 1/n.

    Raises
    ------
    ValueError
        If predictions, labels or weights are not valid, or the locations do not fit the notion.

    See Also
    --------
    squared_kernel_calibration_error

    Notes
    -----
    O(n J (C + 1)) time for J locations.

    References
    ----------
    .. [1] Widmann, Lindsten & Zachariah, Calibration tests beyond classification, ICLR 2021.

    Examples
    --------
    >>> from skcal.metrics import squared_mean_embedding_calibration_error
    >>> squared_mean_embedding_calibration_error([0, 1], [0.5, 0.5], locations=[0.5], bandwidth=1.0)
    0.0
    """
    sample = read_sample(y_true, y_proba, notion, sample_weight, labels, pos_label, from_logits)
    rng = check_random_state(random_state)

    def measure(problem):
        points, classes = place_locations(
            problem.features, locations, location_classes, n_locations, rng
        )
        width = Kernel.of(kernel, bandwidth, problem.features)
        deviations = embedding_terms(problem, width, points, classes)
        return np.mean((problem.weight @ deviations / problem.weight.sum()) ** 2)

    return estimate_problems(sample, measure)  # only the single problem of a vector draws


def place_locations(X, locations, location_classes, n_locations, rng):
    """Return test locations (J, d) and their columns (J,), given or taken from the features X."""
    n_columns = X.shape[1]
    if locations is None:
        # Along an axis numpy compares rows, which is far slower than numbers.
        points = np.unique(X, axis=None if n_columns == 1 else 0).astype(np.float64)
        points = points.reshape(-1, n_columns)
        size = min(n_locations, len(points))
        if n_columns == 1:
            rows = ((np.arange(size) + 0.5) / size * len(points)).astype(np.intp)
        else:
            rows = rng.choice(len(points), size=size, replace=False)
        points = points[rows]
    else:
        points = check_proba(locations, name="locations", sums=False)
        points = points[:, None] if points.ndim == 1 else points
    if points.shape[1] != n_columns:
        raise ValueError(
            f"locations have {points.shape[1]} columns, the features of the notion {n_columns}."
        )
    if location_classes is None:
        below = np.cumsum(points, axis=1) < rng.uniform(size=(len(points), 1))
        return points, np.minimum(below.sum(axis=1), n_columns - 1)
    classes = np.asarray(location_classes)
    if classes.shape != (len(points),) or classes.dtype.kind not in "iu":
        raise ValueError(
            f"location_classes must hold an integer for each of the {len(points)} locations."
        )
    if classes.min() < 0 or classes.max() >= n_columns:
        raise ValueError(
            f"location_classes must be from 0 to {n_columns - 1}; {classes.max()} is not a column."
        )
    return points, classes


def embedding_terms(problem, kernel, points, classes):
    """k(x_i, t_j) δ_{i, c_j}, shape (n, J)."""
    return kernel.matrix(problem.features, points) * problem.residuals[:, classes]
