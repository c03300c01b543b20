"""The command ``abstain``: a threshold above which few answers are wrong."""

from __future__ import annotations

import numpy as np

from skcal._matrices import two_columns
from skcal._show import as_json
from skcal.cli.predictions import samples_of
from skcal.metrics import coverage_at_risk
from skcal.metrics.selective import CoverageAtRisk
from skcal.report.views import as_data
from skcal.sample import read_sample

_UNPROVEN = 3  # the exit status where no threshold is proven


def threshold_of(predictions, notion, options) -> CoverageAtRisk:
    """The threshold of the confidence that holds ``--max-risk``, in the units of the file.

    Parameters
    ----------
    predictions : Predictions
    notion : Notion or str
        That of answers, or "confidence", whether the most probable class is right.
    options : argparse.Namespace
    """
    proba = predictions.proba
    if notion == "confidence":
        proba = two_columns(proba)
    sample = read_sample(predictions.labels, proba, notion, labels=predictions.classes)
    [problem] = sample.problems()
    return coverage_at_risk(
        problem.outcomes[:, 0],
        np.round(problem.features[:, 0] * options.scale, 12),
        options.max_risk,
        **samples_of(predictions, options),
    )


def shown(result: CoverageAtRisk, as_object: bool) -> tuple[str, int]:
    """The printed text and the exit status."""
    status = 0 if result.risk is not None else _UNPROVEN
    if not as_object:
        return str(result), status
    return as_json(as_data(result)), status
