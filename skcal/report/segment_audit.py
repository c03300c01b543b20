"""The segments of features where a model is miscalibrated, for reports."""

from __future__ import annotations

from dataclasses import dataclass

from skcal._show import number
from skcal.hypothesis_tests import segment_test
from skcal.report.parts import LEVEL
from skcal.report.rows import pvalue

SEGMENT_COLUMNS = ("segment", "samples", "predicted", "observed", "95 % interval", "p-value")
_N_WORST = 10


@dataclass(frozen=True)
class SegmentAudit:
    """What :func:`skcal.hypothesis_tests.segment_test` found.

    Attributes
    ----------
    pvalue : float
        That of the hypothesis that no segment is miscalibrated.
    n_segments, n_left_out : int
        How many were tested, and how many had too few samples.
    worst : list of dict
        The fields of at most ten of the segments, from the smallest p-value on.
    """

    pvalue: float
    n_segments: int
    n_left_out: int
    worst: list[dict]


def audit(data, features, settings) -> SegmentAudit:
    """Test the segments of features of all samples."""
    result = segment_test(
        data.labels,
        data.proba,
        features,
        notion=settings.notion,
        n_resamples=settings.n_resamples,
        random_state=settings.random_state,
        n_jobs=settings.n_jobs,
        labels=data.classes,
    )
    worst = [one._asdict() for one in result.segments[:_N_WORST]]
    return SegmentAudit(result.pvalue, len(result.segments), result.n_left_out, worst)


def segment_rows(found: SegmentAudit) -> list[tuple[str, ...]]:
    """Cells of text for each of the worst segments."""
    return [
        (
            one["name"],
            f"{one['n_samples']:,}",
            number(one["predicted"]),
            number(one["observed"]),
            f"{number(one['low'])} to {number(one['high'])}",
            f"{one['pvalue']:.2g}",
        )
        for one in found.worst
    ]


def segment_verdict(found: SegmentAudit) -> str:
    """A sentence about all segments."""
    small = f", {found.n_left_out:,} more are too small" if found.n_left_out else ""
    shown = f"; the {len(found.worst)} with the smallest p-values" if found.n_segments > 1 else ""
    verdict = "some are miscalibrated" if found.pvalue <= LEVEL else "none is shown miscalibrated"
    return (
        f"Of {found.n_segments:,} overlapping segments {verdict} ({pvalue(found.pvalue)}, "
        f"adjusted for all of them){small}{shown}:"
    )
