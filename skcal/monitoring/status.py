"""The status of a monitor: alarm, periods, evidence, and what it would have found."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from skcal._show import percent, printable, share, worded
from skcal.monitoring.history import RECENT, Period, are_said

_CHECKS = {  # what may be the cause, by words of what an alarm was raised for
    "probability was 0": "whether predictions are rounded to 0, or labels are of other rows",
    "rarer the event": "whether classes, columns or labels are swapped",
    "often than predicted": "whether cases come from a new source, or labels are late, missing or "
    "defined anew",
    "extreme": "whether inputs are missing, noisier or scaled anew, or the model is another one",
}
CHANCE = 0.8  # of finding what "would have been found" says
# Standard deviations, beyond: one of two by chance in 5 %, 0.1 %.
_LIKELY_OFF, _SURELY_OFF = 2.24, 3.5
_PAST = {" happens": " happened", " is ": " was ", " are ": " were "}
_GONE = " Later samples speak against a drift: it is over, or the alarm came by chance."
_REVERSED_ORDER, _SWAPPED = 4.0, 6.0  # standard deviations, of an order below 0 and of a mean


class Entry(NamedTuple):
    """An entry in the journal of a monitor.

    Attributes
    ----------
    what : {"alarm", "acknowledged", "reset", "merged"}
    n_samples : int
        ``n_samples_seen_`` at that time.
    note : str
        Of an alarm, what it was raised for: which way predictions were off.
    since : int or None
        Of an alarm, the first sample of the drift as it was estimated at that time.
    low, high : float or None
        Of an alarm by a range of predictions, the ends of that range.
    """

    what: str
    n_samples: int
    note: str = ""
    since: int | None = None
    low: float | None = None
    high: float | None = None


class FoundByNow(NamedTuple):
    """The drifts that would have raised an alarm in 8 of 10 cases, had they lasted a period.

    Attributes
    ----------
    n_samples : int
        The last samples, over which the drift would have lasted.
    ratio_low, ratio_high : float or None
        O/E of at most ``ratio_low`` or at least ``ratio_high`` would have been found; None: none.
    """

    n_samples: int
    ratio_low: float | None
    ratio_high: float | None


def facts(monitor) -> dict[str, Any]:
    """Return what the text says as plain data; infinite evidence as text."""
    return {
        "n_samples_seen": monitor.n_samples_seen_,
        "notion": str(getattr(monitor, "notion_", monitor.notion)),
        "alpha": monitor.alpha,
        "run_length": monitor.run_length,
        "alarm": monitor.alarm_,
        "acknowledged": monitor.acknowledged_,
        "e_value": _finite_or_text(monitor.e_value_),
        "log_e_value": _finite_or_text(monitor.log_e_value_),
        "detector": _finite_or_text(monitor.detector_),
        "threshold": threshold(monitor),
        "direction": direction(monitor),
        "periods": {name: period._asdict() for name, period in monitor.periods_.items()},
        "found_by_now": [found._asdict() for found in monitor.found_by_now_],
        "e_values": {name: _finite_or_text(value) for name, value in monitor.e_values_.items()},
        "estimates": {title: found._asdict() for title, found in monitor.estimates_.items()},
        "journal": [entry._asdict() for entry in monitor.journal_],
    }


def _finite_or_text(value: float) -> float | str:
    return value if np.isfinite(value) else str(value)


def threshold(monitor) -> float:
    """Return the e-value, or the e-detector, at which there is an alarm."""
    return float(1 / monitor.alpha if monitor.run_length is None else monitor.run_length)


def summary(monitor) -> str:
    """Return the alarm, the periods, the evidence and what to do as text."""
    if not monitor.n_samples_seen_:
        return f"No samples yet{_last_reset(monitor)}"
    lines = [_alarm(monitor), *_periods(monitor), _evidence_so_far(monitor)]
    if (impossible := _shown_impossible(monitor)) and impossible not in lines[0]:
        lines.insert(1, f"{impossible}.")
    lines += [_detectable(drifts) for drifts in monitor.found_by_now_[:1]]  # of the last samples
    if len(monitor.e_values_) > 1:
        largest = sorted(monitor.e_values_.items(), key=lambda item: -item[1])[:3]
        shown = ", ".join(f"{title}: {value:.3g}" for title, value in largest)
        of_all = "half the weight is that of all predictions; " * monitor._layout.pooled
        lines.append(
            f"The evidence is the mean of {len(monitor._evidence)} e-values ({of_all}the largest: "
            f"{shown})."
        )
    if monitor._is_open:
        then = worded(  # the command line knows what STATE is
            "calibration_report with by= shows which subgroups are off. Then acknowledge(note) "
            "closes the alarm and watches on; after a recalibration reset(note) begins without "
            "samples.",
            "The command report with --by COLUMN shows which subgroups are off.\n"
            "To close the alarm and watch on: python -m skcal monitor STATE --acknowledge "
            "--note CAUSE\nAfter a recalibration, to begin anew: python -m skcal monitor STATE "
            "--reset --note CAUSE",
        )
        lines.append(f"Next: {_where_to_look(monitor)} {then}")
    return printable("\n".join(lines))


def _last_reset(monitor) -> str:
    resets = [entry for entry in monitor.journal_ if entry.what == "reset"]
    if not resets:
        return ""
    note = f": {resets[-1].note}" if resets[-1].note else ""
    return f" since the reset at sample {resets[-1].n_samples:,}{note}"


def _where_to_look(monitor) -> str:
    """Which samples to compare after an alarm, and what may have changed in them."""
    raised, titles = _raised_for(monitor), monitor.e_values_
    which = "the samples"
    if not monitor._layout.common:
        which = f"the samples of {max(titles, key=titles.__getitem__)}"
    if raised.get("low") is not None:
        which = f"the samples with {_predictions_in(raised['low'], raised['high'])}"
    drift = monitor.periods_.get("drift")
    since = raised.get("since") if drift is None else drift.first_sample  # as it is known now
    place = f" since about sample {since:,} with earlier ones" if since else " with earlier ones"
    if since == 1:  # there are none before
        place = ", which are off from the first one on, with those that the model was validated on"
    checks = [check for words, check in _CHECKS.items() if words in raised.get("note", "")]
    return f"compare {which}{place}{', and check ' + checks[0] if checks else ''}."


def _alarm(monitor) -> str:
    if monitor.alarm_ is None:
        return f"No alarm after {monitor.n_samples_seen_:,} samples."
    first = f"ALARM at sample {monitor.alarm_:,}, not acknowledged"
    if monitor.acknowledged_ is not None:
        first = f"Alarm at sample {monitor.alarm_:,}, acknowledged at {monitor.acknowledged_:,}"
    said = direction(monitor)
    now = f"{monitor.n_samples_seen_:,} samples until now"
    return f"{first} ({now}){': ' + said if said else ''}.{_is_over(monitor)}"


def _is_over(monitor) -> str:
    """Whether a drift that ended is over: which of shift and slope are back since then."""
    period = monitor.periods_.get("since_drift")
    if period is None:
        return _GONE * monitor._evidence_is_gone
    history, rows = monitor._history, monitor._drift_rows()
    others = "".join(_other_drift(monitor, *ends) for ends in pairwise(rows[1:-1]))
    before, start = rows[-3:-1]
    variance = history.variance_since(start)
    ratio = variance / max(history.variance_since(before) - variance, 1e-300)
    # By so many standard deviations predictions would be off now, had the drift gone on.
    gone_on = np.abs(history.leanings(before, start)).max() * np.sqrt(ratio)
    if variance < RECENT or gone_on < 2 * _LIKELY_OFF:
        return f"{others} Since then there are too few events to say whether the drift is over."
    leanings = np.array(history.leanings(start))
    is_back = np.abs(leanings) <= np.clip(gone_on / 2, _LIKELY_OFF, _SURELY_OFF)
    if is_back.all():
        return f"{others} The drift seems to be over."
    if np.abs(leanings).max() < _SURELY_OFF:
        return f"{others} The drift changed there, but it is not clear whether it is over."
    back = f"the {'mean' if is_back[0] else 'slope'} is right, but "
    said = back * bool(is_back.any()) + _leaning_words(monitor, *np.where(is_back, 0.0, leanings))
    return f"{others} It is not over: {said} since about sample {period.first_sample:,}."


def _other_drift(monitor, start: int, end: int) -> str:
    """Which way predictions were off between two changes after a drift, if they were."""
    leanings, period = monitor._history.leanings(start, end), monitor._history.between(start, end)
    if np.abs(leanings).max() <= _LIKELY_OFF:
        return ""
    said = _in_the_past(_leaning_words(monitor, *leanings))
    return f" From about sample {period.first_sample:,} to {period.last_sample:,} {said}."


def direction(monitor) -> str | None:
    """Say what the alarm was raised for, and until when; None without an alarm or a direction."""
    if monitor.alarm_ is None:
        return None
    raised, drift = _raised_for(monitor), monitor.periods_.get("drift")
    said = raised.get("note", "")
    lasts = drift is None or drift.last_sample == monitor.n_samples_seen_
    if lasts and monitor._evidence_is_gone:
        return _in_the_past(said) or None
    if lasts or raised.get("since") is None:
        return said or None
    return f"{_in_the_past(said)} until about sample {drift.last_sample:,}"


def _in_the_past(said: str) -> str:
    for now, then in _PAST.items():
        said = said.replace(now, then)
    return said


def _raised_for(monitor) -> dict[str, Any]:
    """Return the cause of the last alarm in the journal; states of earlier versions lack it."""
    alarms = [entry for entry in monitor.journal_ if entry.what == "alarm" and entry.note]
    return alarms[-1]._asdict() if alarms else cause(monitor)


def cause(monitor) -> dict[str, Any]:
    """Return what raises an alarm now: parts of an :class:`Entry`.

    The note is empty where a notion has no common direction.
    """
    if note := _shown_impossible(monitor):
        return {"note": note}
    if not monitor._layout.common:
        return {}
    evidence, history = monitor._evidence[0], monitor._history
    if found := evidence.winning_range(monitor.run_length is None):
        low, high, shift, weight = found
        note = f"among {_predictions_in(low, high)} {_leaning_words(monitor, shift, 0.0)}"
        return {"note": note, "since": history.first_after(weight), "low": low, "high": high}
    drift, notion = monitor.periods_["drift"], monitor._layout.notion
    leanings = history.leanings(*monitor._drift_rows()[:2])
    if _is_reversed(evidence.order(), leanings[0], drift):
        note = "the higher the prediction, the rarer the event"
        note += ", as if classes were swapped" * (notion.of_positive_class or notion.of_labels)
    else:
        note = _leaning_words(monitor, *leanings)
    return {"note": note, "since": drift.first_sample}


def _shown_impossible(monitor) -> str:
    """Say how many outcomes since the last acknowledgement had the probability 0, if any."""
    n = max(evidence.totals[4] for evidence in monitor._evidence)
    outcomes = f"{n:,.0f} outcome{'s' * bool(n != 1)}"
    return f"{outcomes} happened whose predicted probability was 0" if n else ""


def _leaning_words(monitor, of_mean: float, of_slope: float) -> str:
    """Which way predictions are off by a mean and a slope, or by the larger of both."""
    notion, said = monitor._layout.notion, []
    mean_is_off, slope_is_off = are_said(np.array([of_mean, of_slope]))
    of_events = notion.of_positive_class or notion.of_labels
    if mean_is_off:
        event = "the event happens" if of_events else "the predicted class is right"
        said.append(f"{event} {'more' if of_mean > 0 else 'less'} often than predicted")
    if slope_is_off:
        subject = "predictions" if notion.scalar else "the probabilities of all classes together"
        said.append(f"{subject} are {'too extreme' if of_slope < 0 else 'not extreme enough'}")
    return " and ".join(said)


def _predictions_in(low: float, high: float) -> str:
    if low == 0:
        return f"predictions up to {share(high)}"
    to = "or more" if high == 1 else f"to {share(high)}"
    return f"predictions {'of' if high == 1 else 'from'} {share(low)} {to}"


def _is_reversed(order: float, of_mean: float, drift: Period) -> bool:
    """Whether outcomes have the reverse order of predictions, or the mean that 1 - p predicts."""
    away = drift.observed - drift.predicted
    of_swapped = of_mean * (drift.observed + drift.predicted - drift.n_samples) / (away or 1.0)
    clearly = abs(of_mean) > _SWAPPED and abs(of_swapped) < abs(of_mean) / 4
    return order < -_REVERSED_ORDER or (order < 0 and clearly)


def _periods(monitor) -> list[str]:
    periods, lines = monitor.periods_, []
    notion = monitor._layout.notion
    events = "events" if notion.of_positive_class or notion.of_labels else "right predictions"
    if "drift" in periods:
        drift = periods["drift"]
        start = f"Since about sample {drift.first_sample:,}"
        if "since_drift" in periods:
            start = f"From about sample {drift.first_sample:,} to {drift.last_sample:,}"
        of_range = _raised_for(monitor).get("low") is not None
        lines.append(
            f"{start}{', of all predictions' * of_range}: {_observed_and_predicted(drift, events)}."
        )
    later = [period for name, period in periods.items() if name.startswith("later_")]
    lines += [
        f"From about sample {period.first_sample:,} to {period.last_sample:,}: "
        f"{_observed_and_predicted(period, events)}."
        for period in later
    ]
    if "since_drift" in periods:
        period = periods["since_drift"]
        begun = f"Since about sample {period.first_sample:,}" if later else "Since then"
        lines.append(f"{begun}: {_observed_and_predicted(period, events)}.")
    if "recent" in periods:
        period = periods["recent"]
        text = f"Last {period.n_samples:,} samples: {_observed_and_predicted(period, events)}."
        if period.ratio is not None:
            low, high = period.chance_low, period.chance_high
            text += (
                f" If predictions are calibrated, O/E is {low:.2f} to {high:.2f} in 19 of 20 such "
                "periods"
            )
            outside = monitor.alarm_ is None and not low <= period.ratio <= high
            text += "; one period outside is no alarm." if outside else "."
        lines.append(text)
    if "all" in periods and monitor.alarm_ is None:  # after an alarm it lags behind
        period = periods["all"]
        lines.append(
            f"All {period.n_samples:,} samples: {_observed_and_predicted(period, events)}."
        )
    return lines


def _observed_and_predicted(period: Period, events: str) -> str:
    ratio = "" if period.ratio is None else f" (O/E {period.ratio:.2f})"
    return f"{period.observed:,.4g} {events} observed, {period.predicted:,.4g} predicted{ratio}"


def _evidence_so_far(monitor) -> str:
    begun, ever = "", "an alarm ever comes"
    begins = [entry for entry in monitor.journal_ if entry.what in ("acknowledged", "reset")]
    if begins and begins[-1].what == "acknowledged":
        begun = (
            f" since the acknowledgement at sample {begins[-1].n_samples:,}, with which it began"
        )
        begun, ever = f"{begun} anew", "another alarm ever comes"
    if monitor.run_length is not None:
        needed = f"{monitor.run_length:,.0f}"
        return (
            f"Evidence{begun}: e-detector {monitor.detector_:,.3g}, alarm at {needed}. A false "
            f"alarm comes after {needed} samples or more on average."
        )
    needed = f"{threshold(monitor):,.4g}"
    return (
        f"Evidence{begun}: e-value {monitor.e_value_:,.3g}, alarm at {needed}. If predictions are "
        f"calibrated, the probability that {ever} is at most {percent(monitor.alpha)}."
    )


def _beside_one(ratio: float) -> str:
    return f"{ratio:.2f}" if abs(ratio - 1) >= 0.01 else f"{ratio:.4f}"


def _detectable(drifts: FoundByNow) -> str:
    sides = []
    if drifts.ratio_high is not None:
        sides.append(f"O/E {_beside_one(drifts.ratio_high)} or more")
    if drifts.ratio_low is not None:
        sides.append(f"O/E {_beside_one(drifts.ratio_low)} or less")
    period = f"the last {drifts.n_samples:,} samples"
    if not sides:
        return f"No drift during {period} could have been found yet."
    return (
        f"If {period} had drifted to {' or to '.join(sides)}, the monitor would have raised an "
        f"alarm in {round(10 * CHANCE)} of 10 cases."
    )
