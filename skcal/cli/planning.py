"""The commands ``shift`` and ``sample-size``: what to expect where there are no labels yet."""

from __future__ import annotations

from inspect import signature
from typing import Any

import numpy as np

from skcal._sklearn_compat import ParameterError
from skcal._validation import InputError
from skcal.cli.bounds import FileError
from skcal.cli.columns import text_column
from skcal.cli.options import OPTIONS
from skcal.cli.predictions import (
    Predictions,
    dialect_of,
    features_of,
    read_unlabelled,
)
from skcal.cli.table import FileTable
from skcal.metrics import shifted_calibration_error, validation_sample_size
from skcal.metrics.sample_size import ValidationSampleSize
from skcal.metrics.shifted import ShiftedCalibrationError


def read_target(predictions: Predictions, options, features=()) -> tuple[np.ndarray, FileTable]:
    """The predictions of the second file, with its table."""
    return read_unlabelled(
        options, predictions.classes, predictions.proba.ndim == 1, features=features
    )


def error_in_target(predictions: Predictions, notion, options) -> ShiftedCalibrationError:
    """The calibration error in the second file, which has no labels."""
    target, table = read_target(predictions, options, options.feature)
    more: dict[str, Any] = {}
    if options.feature:
        there = {name: text_column(table, name, options.max_bytes) for name in options.feature}
        pair = _numbers_of(predictions.others, there, options)
        more = {"shift": "covariate", "X": pair[0], "target_X": pair[1]}
    return shifted_calibration_error(
        **predictions.arguments,
        target_proba=target,
        notion=notion,
        n_resamples=options.resamples,
        random_state=options.seed,
        **more,
    )


def _numbers_of(here, there, options) -> tuple[np.ndarray, np.ndarray]:
    """Features of both files: numbers as they are, and 0 or 1 for each name but the first."""
    both = {name: np.concatenate([here[name], there[name]]) for name in options.feature}
    columns = []
    for name, values in features_of(both, both, dialect_of(options)).items():
        if values.dtype.kind == "O":
            codes = np.unique(values.astype(str), return_inverse=True)[1]
            columns.append(codes[:, None] == np.arange(1, codes.max() + 1))
            continue
        if not np.isfinite(values).all():
            raise FileError(f"Column {name!r} has missing numbers. Fill them in both files.")
        columns.append(values[:, None])
    X, n_here = np.hstack(columns).astype(np.float64), len(here[options.feature[0]])
    return X[:n_here], X[n_here:]


def sample_size(options) -> ValidationSampleSize:
    """The samples of a study with the widths that are asked for."""
    names = signature(validation_sample_size).parameters
    given: dict[str, Any] = {name: getattr(options, name, None) for name in names}
    if options.file is not None:
        options.second, classes = options.file, np.array(["0", "1"])
        given["y_proba"] = read_unlabelled(options, classes, single=True)[0].ravel()
    given = {name: value for name, value in given.items() if value is not None}
    try:
        return validation_sample_size(**given)
    except (InputError, ParameterError) as error:
        option = f"--{error.argument.replace('_', '-')}"
        name = option if option in OPTIONS else "FILE"
        if isinstance(error, InputError):
            message = error.message(argument=name)
        else:  # without the option there is no None
            allowed = [kind for kind in error.allowed if kind != "None"]
            message = f"{name} {error.reason(allowed)}"
        raise FileError(message) from error
