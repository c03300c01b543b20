"""The command ``recalibrate``: predictions of a file by a map that was fitted to another."""

from __future__ import annotations

from pathlib import Path

from skcal._files import replacing
from skcal.choice import Recalibrator
from skcal.cli.bounds import STANDARD_INPUT, FileError, check_output, errors_that_name, read_text
from skcal.cli.frames import kind_of
from skcal.cli.predictions import Predictions, dialect_of, read_unlabelled
from skcal.cli.table import refuse_unwritable, write_table
from skcal.recalibration import InterceptCalibration, TemperatureScaling
from skcal.report.views import as_data

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


def recalibrate(fit: Predictions | None, options) -> tuple[Recalibrator, int]:
    """Fit or read a recalibrator, save it and apply it, as far as that is asked for.

    Returns
    -------
    recalibrator : Recalibrator
    n_applied : int
        Predictions that were recalibrated.
    """
    if fit is None:
        recalibrator = read_map(options.map, options.max_bytes)
        classes, single = recalibrator.classes_, recalibrator.n_features_in_ == 1
    else:
        recalibrator = Recalibrator(
            None if options.method is None else [MAPS[options.method]],
            scoring=options.scoring,
            labels=fit.classes,
            from_logits=options.logits,
            n_jobs=options.n_jobs,
            random_state=options.seed,
        )
        classes, single = fit.classes, fit.proba.ndim == 1
    if options.second is not None:  # what is wrong with it is said before the work
        predictions, table = read_unlabelled(options, classes, single, recalibrator.from_logits)
    if fit is not None:
        recalibrator.fit(fit.proba, fit.labels, fit.weight, fit.groups)
    if options.save is not None:
        with replacing(options.save, "w", encoding="utf-8") as file:
            file.write(recalibrator.to_json())
    if options.second is None:
        return recalibrator, 0
    proba = recalibrator.predict_proba(predictions)
    if single:
        proba = proba[:, 1:].reshape(table.numbers.shape)
    write_table(options.out, table, proba, dialect_of(options))
    return recalibrator, len(proba)


def read_map(path, max_bytes: float) -> Recalibrator:
    """Read what ``--save`` has written."""
    path = Path(path)
    with errors_that_name(path, max_bytes):
        text = read_text(path, max_bytes)
    try:
        return Recalibrator.from_json(text)
    except ValueError as error:
        raise FileError(f"{path}: {error} Give a file that recalibrate --save wrote.") from error


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
