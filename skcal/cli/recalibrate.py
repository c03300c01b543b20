"""The command ``recalibrate``: predictions of a file by a map that another file teaches."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from skcal._files import replacing
from skcal.cli.checks import FileError, Predictions
from skcal.cli.files import telling_damage
from skcal.cli.text_files import read_text
from skcal.cli.unlabelled import (
    Wanted,
    check_folder,
    check_kinds,
    read_unlabelled,
    write_recalibrated,
)
from skcal.recalibration import Recalibrator


def check_targets(options) -> None:
    """Say before the work what cannot be written."""
    if options.second is not None:
        check_kinds(options.second, options.out)
    if options.save is not None:
        check_folder(options.save)


def recalibrate(fit: Predictions | None, options) -> tuple[Recalibrator, int]:
    """Fit or read a recalibrator, save it and apply it, as far as that is asked for.

    Returns
    -------
    recalibrator : Recalibrator
    n_applied : int
        Predictions that were recalibrated.
    """
    if fit is None:
        recalibrator = read_map(options.map, options.max_size * 2**30)
        wanted = _wanted(recalibrator, recalibrator.n_features_in_ == 1, options)
    else:
        recalibrator = Recalibrator(
            scoring=options.scoring,
            labels=fit.classes,
            from_logits=options.logits,
            n_jobs=options.n_jobs,
            random_state=options.seed,
        )
        wanted = _wanted(recalibrator, fit.proba.ndim == 1, options)
    unlabelled = None
    if options.second is not None:
        unlabelled = read_unlabelled(options.second, wanted, options.max_size * 2**30)
    if fit is not None:
        recalibrator.fit(fit.proba, fit.labels)
    if options.save is not None:
        with replacing(options.save, "w", encoding="utf-8") as file:
            file.write(recalibrator.to_json())
    if unlabelled is None:
        return recalibrator, 0
    proba = recalibrator.predict_proba(unlabelled.predictions)
    write_recalibrated(options.out, unlabelled, proba)
    return recalibrator, len(proba)


def _wanted(recalibrator, single: bool, options) -> Wanted:
    classes = getattr(recalibrator, "classes_", recalibrator.labels)
    return Wanted(
        [str(name) for name in np.asarray(classes).tolist()],
        single,
        recalibrator.from_logits,
        options.normalize,
        (options.label, *options.ignore),
    )


def read_map(path, max_bytes: float) -> Recalibrator:
    """Read what ``--save`` has written."""
    path = Path(path)
    with telling_damage(path, max_bytes):
        text = read_text(path, max_bytes)
    try:
        return Recalibrator.from_json(text)
    except ValueError as error:
        raise FileError(f"{path}: {error} Give a file that recalibrate --save wrote.") from error


def facts(recalibrator: Recalibrator, options, n_applied: int) -> dict:
    """What was chosen and won, as plain numbers and strings."""
    told = {
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
        return told
    comparison = {
        name: {key: _plain(value) for key, value in vars(comparison).items()}
        for name, comparison in recalibrator.comparison_.items()
    }
    return told | {"comparison": comparison}


def _plain(value):
    return float(value) if np.isfinite(value) else None
