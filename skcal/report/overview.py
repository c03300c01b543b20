"""The answer of a report in one or two sentences."""

from __future__ import annotations

import math

from skcal._show import number, percent
from skcal.report.parts import LEVEL, Measures


def verdict_of(measures: Measures, settings: dict) -> str:
    """How far off, on which side, whether it is shown, and what to do."""
    error, ece = measures.without_bins, measures.ece
    if error is None or error["estimate"] is None:
        return "The samples do not allow an estimate of the calibration error."
    what = "probabilities" if settings["notion"].of_positive_class else "confidences"
    size = f"{number(error['estimate'], 3)} on average"
    bound = error["lower_confidence_bound"]
    if bound is not None and bound > 0:
        level = percent(error["confidence_level"])
        least = number(bound, 4 if bound < 0.01 else 3)
        side = f"; they are {error['reading']}" if error["reading"] else ""
        return (
            f"Miscalibrated: the {what} are off by {size}, at least {least} at {level} "
            f"confidence{side}. {_remedy(measures)}"
        )
    if ece is not None and ece.pvalue <= LEVEL:
        return (
            f"Miscalibrated by the test of ECE (p = {ece.pvalue:.2g}). By how much is uncertain: "
            f"the {what} are estimated to be off by {size}, with a lower limit of 0, and more "
            f"samples would tell.{_frequency(measures)}"
        )
    return (
        f"No miscalibration is shown: the {what} are estimated to be off by {size}, and "
        f"calibrated ones could show as much.{_power(measures)}"
    )


def _frequency(measures) -> str:
    """On which side single predictions are, where that is shown."""
    ratio, low, high = (measures.validation or {}).get("observed_expected_ratio", [None] * 3)
    if low is None or high is None or low <= 1 <= high:
        return ""
    return f" Events are {ratio:.2f} times as frequent as predicted ({low:.2f} to {high:.2f})."


def _remedy(measures) -> str:
    """The candidate that describes the error best, if one does better than none."""
    for facts in measures.tuned[:1]:
        chosen = next(one["candidate"] for one in facts["candidates"] if one["chosen"])
        if chosen != "Zero":
            return (
                f"Recalibration on other samples would mend it; {chosen} describes the error best "
                "of what was tried."
            )
    return "Recalibrate on other samples, and test on new ones."


def _power(measures) -> str:
    """What errors would have been seen."""
    for facts in measures.tuned[:1]:
        limit = facts["calibrated_up_to"]
        if limit is not None and math.isfinite(limit) and limit > 0:
            return f" Errors below about {number(limit, 2)} cannot be told from none here."
    return ""


def powerless(measures: Measures, overall: Measures) -> bool:
    """Whether a group shows nothing, but could not have shown the error of all samples either."""
    ece, of_all = measures.ece, overall.without_bins
    if ece is None or of_all is None or of_all["estimate"] is None:
        return False
    # Errors of bins and noise add up about as squares.
    return ece.pvalue > LEVEL and math.hypot(of_all["estimate"], ece.null_mean) <= ece.null_limit
