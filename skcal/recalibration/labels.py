"""Labels of the predictions that maps learn from."""

from __future__ import annotations

import warnings

import numpy as np

from skcal._validation import InputError, check_labels, plain_labels

_CLEAR = 3.0  # standard errors


def map_labels(y, X: np.ndarray, columns):
    """Column numbers and classes; names of a data frame's columns count if they name all labels."""
    try:
        if columns is not None and not set(plain_labels(y, "y").tolist()) <= set(columns):
            columns = None
        return labels_of(y, X, columns=columns if X.shape[1] > 1 else None)
    except InputError as error:  # recalibration maps have no option labels
        remedies = {
            "positive class": "Pass y == positive class.",
            "classes": "Pass y as column numbers of X, from 0, or X as a data frame whose columns "
            "are named by the classes.",
        }
        raise ValueError(error.told(remedies.get(error.kind))) from None


def labels_of(y, X: np.ndarray, labels=None, *, columns=None):
    """Column numbers and classes of predictions (n, 1) or (n, C).

    Of a single column and two labels of which none is known to be positive, the second in order is,
    as ``classes_[1]`` of scikit-learn's classifiers.
    """
    codes, classes = check_labels(
        y,
        X[:, 0] if X.shape[1] == 1 else X,
        labels,
        columns=columns,
        name="y",
        proba_name="X",
        single="single column",
        any_two=True,
    )
    if X.shape[1] == 1 and labels is None and classes.tolist() not in ([0, 1], [-1, 1]):
        _tell_if_reversed(X[:, 0].astype(np.float64), codes, classes)
    return codes, classes


def _tell_if_reversed(x, codes, classes) -> None:
    """A warning where the predictions are clearly those of the other class."""
    negative, positive = x[codes == 0], x[codes == 1]
    if min(len(negative), len(positive)) < 2:
        return
    error = np.sqrt(negative.var() / len(negative) + positive.var() / len(positive))
    if negative.mean() - positive.mean() > _CLEAR * error:
        other, taken = (repr(label) for label in classes.tolist())
        warnings.warn(
            f"X was read as predictions of {taken}, the second label in order, but is higher for "
            f"{other}. If it predicts {other}, pass y == {other}, or Recalibrator(labels=[{taken}, "
            f"{other}]).",
            UserWarning,
            stacklevel=2,
        )
