"""The commands ``shift``, ``sample-size`` and ``recalibrate``."""

from __future__ import annotations

from dataclasses import replace
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np

from skcal._show import as_data, listed, printable, replacing, wrapped
from skcal.choice import Recalibrator
from skcal.cli.columns import text_column
from skcal.cli.files import kind_of
from skcal.cli.predictions import (
    BELOW_LARGEST,
    Predictions,
    dialect_of,
    features_of,
    is_of_second,
    read_unlabelled,
)
from skcal.cli.problems import STANDARD_INPUT, FileError, check_output, errors_that_name, read_text
from skcal.cli.table import FileTable, refuse_unwritable, write_table
from skcal.metrics import shifted_calibration_error, validation_sample_size
from skcal.metrics.sample_size import ValidationSampleSize
from skcal.metrics.shifted import ShiftedCalibrationError
from skcal.recalibration import InterceptCalibration, TemperatureScaling


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
    return validation_sample_size(**given)


MAPS = {"intercept": InterceptCalibration(), "slope": TemperatureScaling()}


def check_targets(options) -> None:
    """Raise before the work where a file cannot be written after it."""
    if options.second is not None:
        if str(options.out) == STANDARD_INPUT:
            text = "--out - : the standard output has the summary. Pass the name of a file."
            raise FileError(text)
        refuse_unwritable(options.out)
        if kind_of(options.second) != kind_of(options.out):
            raise FileError(
                f"{options.out}: is another kind of file than {options.second}. Pass the same kind."
            )
    check_output(options.out)
    check_output(options.save)


def recalibrate(fit: Predictions | None, options) -> tuple[Recalibrator, int, int]:
    """Fit or read a recalibrator, save it and apply it, as far as that is asked for.

    Returns
    -------
    recalibrator : Recalibrator
    n_applied, n_kept : int
        Predictions that were recalibrated, and other rows of the file, which stay as they are.
    """
    if fit is None:
        recalibrator = read_map(options.map, options.max_bytes)
        options.logits = recalibrator.from_logits and not options.log_probabilities
        classes, single = recalibrator.classes_, recalibrator.n_features_in_ == 1
    else:
        recalibrator = Recalibrator(
            None if options.method is None else [MAPS[options.method]],
            scoring=options.scoring,
            labels=fit.classes,
            from_logits=options.logits or (options.log_probabilities and fit.proba.ndim == 2),
            n_jobs=options.n_jobs,
            random_state=options.seed,
        )
        classes, single = fit.classes, fit.proba.ndim == 1
    # Log-probabilities of several classes are logits, so that absent options stay absent.
    are_logs = options.log_probabilities and recalibrator.from_logits
    if options.second is not None:  # what is wrong with it is said before the work
        keep_logits = recalibrator.from_logits and not are_logs
        predictions, table = read_unlabelled(options, classes, single, keep_logits)
    if fit is not None:
        proba = _as_logits(fit.proba) if are_logs else fit.proba
        if recalibrator.from_logits and options.method != "intercept":
            proba = _with_absent(proba)
        recalibrator.fit(proba, fit.labels, fit.weight, fit.groups)
    if options.save is not None:
        with replacing(options.save, "w", encoding="utf-8") as file:
            file.write(recalibrator.to_json())
    if options.second is None:
        return recalibrator, 0, 0
    if are_logs:
        predictions = _as_logits(predictions)
    proba = _applied(recalibrator, predictions, options.second)
    if options.predicted is not None and not single:
        of_second = is_of_second(table, classes, options).astype(int)
        proba = proba[np.arange(len(proba)), of_second][:, None]
    if single:
        proba = proba[:, 1:].reshape(table.numbers.shape)
    write_table(options.out, table, proba, dialect_of(options))
    n_kept = len(table.frame) - len(table.rows) if table.frame and table.rows is not None else 0
    return recalibrator, len(proba), n_kept


def text_of_map(recalibrator: Recalibrator, options, n_applied: int, n_kept: int) -> str:
    """The choice of a map, what it does and where the results are."""
    summary = recalibrator._summary()
    if options.correct is not None:  # a recalibrated confidence changes no answer
        kept = [fact for fact in summary.facts if fact[0] not in ("accuracy", "predicted classes")]
        summary = replace(summary, facts=kept)
    lines = [f"{summary.as_text()}\n"]
    if applied := _map_in_words(recalibrator):
        lines.append(wrapped(printable(applied)))
    if options.save is not None:
        lines.append(printable(f"The map is in {options.save}."))
    if options.out is not None:
        form = " as probabilities" * (options.logits or options.log_probabilities)
        text = f"{n_applied:,} recalibrated predictions are in {options.out}{form}"
        if n_kept:
            rows = f"{n_kept:,} rows are kept as they are" if n_kept > 1 else "row is kept as it is"
            text += f"; the other {rows}"
        lines.append(printable(f"{text}."))
    return "\n".join(lines)


def _map_in_words(recalibrator: Recalibrator) -> str:
    """What a map of intercept or slope alone does, as it is applied; "" of others."""
    best, n = recalibrator.best_estimator_, recalibrator.n_rows_
    names = [str(name) for name in recalibrator.classes_.tolist()]
    if type(best) is TemperatureScaling:
        text = "Logits or log-probabilities are"
        if len(names) == 2:
            text = "The map that is applied: log-odds are"
        text += f" divided by {best.temperature_:.4g}, the temperature."
    elif type(best) is InterceptCalibration and len(names) == 2:
        [shift] = best.intercept_.tolist()
        sign = "-" if shift < 0 else "+"
        text = f"The map that is applied: new log-odds = log-odds {sign} {abs(shift):.3g}."
    elif type(best) is InterceptCalibration:
        shifts = zip(names, best.intercept_.tolist(), strict=True)
        each = listed([f"{name} {shift:+.3g}" for name, shift in shifts])
        text = f"The map that is applied adds to log-probabilities: {each}."
    else:
        return ""
    return (
        f"{text} Then each probability p becomes ({n:.6g} p + 1/{len(names)}) / {n + 1:.6g}, away "
        "from 0 and 1."
    )


def _as_logits(proba: np.ndarray) -> np.ndarray:
    """Logarithms of probabilities, which are 0 for absent options, as logits are read."""
    with np.errstate(divide="ignore"):
        logits = np.log(proba)
    return np.maximum(logits, logits.max(axis=-1, keepdims=True) - BELOW_LARGEST)


def _with_absent(logits: np.ndarray) -> np.ndarray:
    """Give absent options, which a file was read to have a low logit, the logit -inf again."""
    return np.where(_is_absent(logits), -np.inf, logits)


def _is_absent(logits: np.ndarray) -> np.ndarray:
    """Whether an option is absent; never of a single column."""
    if logits.ndim == 1:
        return np.zeros(len(logits), dtype=bool)
    return logits <= logits.max(axis=1, keepdims=True) - BELOW_LARGEST


def _applied(recalibrator: Recalibrator, predictions: np.ndarray, file) -> np.ndarray:
    """Recalibrated probabilities, which are 0 where an option is absent."""
    if not recalibrator.from_logits:
        return recalibrator.predict_proba(predictions)
    best = recalibrator.best_estimator_
    if getattr(best, "_takes_absent", False):
        return recalibrator.predict_proba(_with_absent(predictions))
    proba, absent = recalibrator.predict_proba(predictions), _is_absent(predictions)
    if not absent.any():
        return proba
    if not isinstance(best, InterceptCalibration):
        raise FileError(
            f"{file}: sample {int(absent.any(axis=1).argmax()) + 1} lacks options, and the map, "
            "which was fitted to samples that lack none, does not treat all options alike. Fit it "
            "to a file in which samples lack options, or pass --method slope."
        )
    proba = np.where(absent, 0, proba)  # of what remains; the rest has the mass of a digit
    return proba / proba.sum(axis=1, keepdims=True)


def read_map(path, max_bytes: float) -> Recalibrator:
    """Read what ``--save`` has written."""
    path = Path(path)
    with errors_that_name(path, max_bytes):
        text = read_text(path, max_bytes)
    try:
        return Recalibrator.from_json(text)
    except ValueError as error:
        raise FileError(f"{path}: {error}") from error


def facts_of_map(recalibrator: Recalibrator, options, n_applied: int) -> dict:
    """The choice and its gain, as plain numbers and strings."""
    facts = {
        "fitted_to": options.file,
        "map": options.map or options.save,
        "applied_to": options.second,
        "written_to": options.out,
        "n_fitted": recalibrator.n_samples_,
        "n_applied": n_applied,
        "classes": [str(name) for name in recalibrator.classes_.tolist()],
        "chosen": recalibrator.best_name_,
    }
    if options.map is not None:  # of a map that was read its comparison is not known
        return facts
    return facts | {"comparison": as_data(recalibrator.comparison_)}
