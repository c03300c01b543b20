"""The answer of a report: a word with a size, and three sentences that its numbers give."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from skcal._show import (
    about,
    beside_limit,
    listed,
    not_compared,
    percent,
    plain_number,
    pvalue_text,
    share,
    worded,
)

_SLIGHT, SERIOUS = 0.5, 2.0  # times the tolerance
LIMIT = 0.05  # the tolerance, which is less where an outcome is rare
NO_EVIDENCE = "No evidence of miscalibration"
NOWHERE = "No single range of predictions is significant by itself."
_OF_AVERAGE = 0.5  # share of the error that the difference of the averages makes
N_NAMED = 5  # of classes and subgroups that are wrong
AGAIN = "then run this report again on fresh data."


class Answer(NamedTuple):
    """The first sentences of a report.

    Attributes
    ----------
    title : str
        What is wrong and its size, such as "Overconfident: large".
    grade : {"good", "unknown", "moderate", "bad"}
        The colour of the title.
    sentences : list of str
        What is wrong and how much, how sure this is, and what to do.
    """

    title: str
    grade: str
    sentences: list[str]

    def __str__(self):
        return " ".join([f"{self.title}.", *self.sentences])

    def verdict(self) -> str:
        """The title, which begins with the verdict in capitals."""
        side, _, size = self.title.replace(", but by", ": but by").partition(": ")
        if not size:
            return f"{side.upper()}."
        return f"MISCALIBRATED: {f'{side.lower()}, ' * (side != 'Miscalibrated')}{size}."


def answer_of(found: Any, by_part: str = "", parts: str | None = None) -> Answer:
    """The answer about one set of predictions.

    Parameters
    ----------
    found : Findings
    by_part : str, default=""
        The advice where subgroups or segments differ.
    parts : str, default=None
        What was found in subgroups or segments beside an error below the tolerance; None if there
        are none.
    """
    if found.test is None or found.error is None:
        return Answer("Not tested", "unknown", ["The test failed; the warnings say why."])
    if not found.is_significant:
        return _no_evidence(found, by_part, parts)
    size, grade = _size(found.error.estimate, found.tolerance)
    if found.doubt is not None:
        advice = "Recalibration does not fix this. Run this report again on the right columns."
        return Answer(f"Miscalibrated: {size}", grade, [found.doubt, how_sure(found), advice])
    within, beside = _is_within(found), _beside_limit(found)
    advice = by_part or _what_to_do(found)
    if within and not by_part:
        advice = "" if beside else _not_needed("your limit", parts)
    sentences = [what_is_wrong(found), how_sure(found), *filter(None, [advice]), *beside]
    if not within:
        return Answer(f"{side_of(found)}: {size}", grade, sentences)
    high = beside_limit(found.error.high, found.tolerance)
    title = f"{side_of(found)}, but by less than your limit of {found.tolerance:g} (at most {high})"
    return Answer(title, "good", sentences)


def _is_within(found) -> bool:
    """Whether an error is certainly below the limit that the user set."""
    return found.max_error is not None and found.error.high < found.tolerance


def _beside_limit(found) -> list[str]:
    """Whether an error that is significant is above the limit that the user set."""
    more = _large_limit(found)
    if found.max_error is None or _is_within(found):
        return more
    limit, low = f"your limit of {found.tolerance:g}", found.error.low
    if low > found.tolerance:
        return [f"It is above {limit} (at least {beside_limit(low, found.tolerance)}).", *more]
    unknown = f"The samples do not decide whether the error is below {limit}."
    return [unknown, *_samples_needed(found), *more]


def _not_needed(limit: str, parts: str | None) -> str:
    parts = not_compared() if parts is None else parts
    text = (
        f"The error of all samples together is below {limit}: recalibration of all is not needed."
    )
    return f"{text} {parts}".rstrip()


def _no_evidence(found, by_part, parts) -> Answer:
    tolerance, by_subgroup = f"{found.tolerance:g}", [by_part] * bool(by_part)
    if found.error.high < found.tolerance:
        good = _not_needed(tolerance, parts)
        advice = by_subgroup or _large_limit(found) or [good]
        return Answer(f"Calibrated within {tolerance}", "good", [how_sure(found), *advice])
    sentences = [how_sure(found), *(by_subgroup or _samples_needed(found))]
    return Answer(NO_EVIDENCE, "unknown", sentences)


def _large_limit(found) -> list[str]:
    """A warning where a model that always says 0, or always 1, would be within the tolerance."""
    rates = found.overview.base_rates
    rate = min(rates) if len(rates) == 2 else 1.0
    if found.tolerance < rate:
        return []
    if not rate:
        return ["One of the outcomes never happened, so no limit says much. Collect more samples."]
    return [
        f"The tolerance of {found.tolerance:g} is above the rate of the rarer outcome "
        f"({share(rate)}): a model that never predicts it would pass. "
        f"Pass {worded('max_error=', '--max-error')} as a share of that rate."
    ]


def _size(error: float, tolerance: float) -> tuple[str, str]:
    shown, small, moderate = (
        float(plain_number(x)) for x in (error, _SLIGHT * tolerance, SERIOUS * tolerance)
    )
    if shown <= small:
        return "small", "moderate"
    return ("moderate", "moderate") if shown <= moderate else ("large", "bad")


def sizes(tolerance: float) -> str:
    """The errors that are called small, moderate and large."""
    small, moderate = (plain_number(times * tolerance) for times in (_SLIGHT, SERIOUS))
    return f"small is up to {small}, moderate up to {moderate}"


def side_of(found) -> str:
    """``Overconfident`` or ``Too high on average``, by what is significant and makes the error."""
    test, (mean, rate) = found.test, found.overview.averages(found.notion)
    off_on_average = abs(mean - rate) >= _OF_AVERAGE * found.error.estimate
    if test.direction and (off_on_average or not test.spread):
        if found.notion.of_positive_class:
            return f"{test.direction.capitalize()} on average"
        return "Overconfident" if test.direction == "too high" else "Underconfident"
    if test.spread:
        return "Overconfident" if test.spread == "too extreme" else "Underconfident"
    return "Miscalibrated"


def heading_of(found) -> str:
    """One line about the samples."""
    view = found.overview
    if found.notion.of_answers:
        return f"{_how_many(view, 'answers')}. Are answers right as often as their confidence says?"
    if not found.notion.of_positive_class:
        many = f"{_how_many(view, 'predictions')} of {len(view.classes)} classes"
        if found.notion.by_class and found.notion.shares_samples:
            return f"{many}. Does each class happen as often as its probability says?"
        return f"{many}. Are they right as often as their largest probability says?"
    rate, by_weight = view.base_rates[-1], "" if view.effective_size is None else " by weight"
    happened = f"{round(view.counts[-1]):,} of them ({share(rate)}{by_weight})"
    if view.of_shares:
        happened = f"{share(rate)}{by_weight}"
    many = _how_many(view, "samples with a predicted probability")
    return f"{many}. The event (outcome {view.classes[-1]!r}) happened in {happened}."


def _how_many(view, what) -> str:
    groups = "" if view.n_groups is None else f" in {view.n_groups:,} groups"
    size = view.effective_size
    if_independent = " if all rows were independent" * bool(groups)
    weighted = ""
    if size is not None:
        weighted = f" (weighted, worth {size:,.0f} of equal weight{if_independent})"
    return f"{view.n_samples:,} {what}{groups}{weighted}"


# What is wrong


def what_is_wrong(found) -> str:
    """How far the predictions are off in the most important ranges, or on average."""
    test, notion = found.test, found.notion
    if notion.by_class:
        return _wrong_classes(found)
    ranges = [range_sentence(one, found.overview, notion) for one in found.both_sides]
    if ranges:
        return " ".join(ranges)
    if test.direction:
        return average_sentence(found.overview, notion)
    return impossible_outcomes(found) if test.n_impossible else NOWHERE


def _wrong_classes(found) -> str:
    """Which classes are miscalibrated, by tests that are adjusted for all of them."""
    pvalues, classes = found.test.class_pvalues, found.overview.classes
    wrong = np.flatnonzero(pvalues <= 1 - found.error.confidence_level)
    wrong = wrong[np.argsort(pvalues[wrong], kind="stable")]
    verb, names = "is" if len(wrong) == 1 else "are", listed([classes[k] for k in wrong], N_NAMED)
    return (
        f"{len(wrong):,} of {len(classes):,} classes {verb} significantly miscalibrated: {names}."
    )


def range_sentence(one, view, notion) -> str:
    """How far the predictions of a range are from what happened there."""
    gap = _gap_sentence(_place(one, view), one.predicted, one.observed, notion)
    return f"{gap} ({one.size_in_words('cases')})."


def _place(one, view) -> str:
    """``predictions of 14 % or more``."""
    from_first, to_last = one.low <= view.smallest, one.high >= view.largest
    if from_first and to_last:
        return "all predictions"
    if share(one.low) == share(one.high):
        return f"predictions of {share(one.low)}"
    if from_first:
        return f"predictions up to {share(one.high)}"
    if to_last:
        return f"predictions of {share(one.low)} or more"
    return f"predictions from {share(one.low)} to {share(one.high)}"


def average_sentence(view, notion) -> str:
    """The mean prediction and the observed frequency of all samples."""
    mean, rate = view.averages(notion)
    return f"{_gap_sentence('predictions', mean, rate, notion)}."


def _gap_sentence(place, predicted, observed, notion) -> str:
    """``Predictions of 14 % or more average 31 %, but the event happened in 20 %``."""
    happened = f"the event happened in {share(observed)}"
    if not notion.of_positive_class:
        place = place.replace("predictions", "confidences")
        happened = f"{share(observed)} of the {_answers(notion)} are right"
    return f"{place[0].upper()}{place[1:]} average {share(predicted)}, but {happened}"


def _answers(notion) -> str:
    return "answers" if notion.of_answers else "predictions"


def impossible_outcomes(found) -> str:
    """How many predictions of exactly 0 or 1 were wrong, and which share of them."""
    n, n_certain = found.test.n_impossible, found.overview.n_certain
    certain = "0 or 100 %" if found.notion.of_positive_class else "100 %"
    return (
        f"{n:,} of {n_certain:,} predictions of exactly {certain} {'was' if n == 1 else 'were'} "
        f"wrong ({share(n / n_certain)})."
    )


# How sure, and what to do


def how_sure(found) -> str:
    """The verdict with its p-value, and the error with its limits."""
    test, error = found.test, found.error
    p = pvalue_text(test.pvalue, test.smallest_pvalue)
    if found.is_significant:
        this = "Overall it" if what_is_wrong(found) == NOWHERE else "This"
        size = _size_beside_rate(found)
        return f"{this} is significant ({p}): {error.sentence(found.tolerance)}.{size}"
    estimate, high = plain_number(error.estimate), beside_limit(error.high, found.tolerance)
    return (
        f"The calibration error is not significantly above 0 ({p}): {estimate}, at most {high} "
        f"with {percent(error.confidence_level)} confidence."
    )


def _size_beside_rate(found) -> str:
    """To what the size in the title is relative, where the tolerance is less than usual."""
    if found.max_error is not None or found.tolerance >= LIMIT:
        return ""
    size, _ = _size(found.error.estimate, found.tolerance)
    ends = {
        "small": ("up to", _SLIGHT),
        "moderate": ("up to", SERIOUS),
        "large": ("above", SERIOUS),
    }
    side, times = ends[size]
    _, rate = found.overview.averages(found.notion)
    end, rarer = plain_number(times * found.tolerance), share(min(rate, 1 - rate))
    return f" Sizes are relative to the rarer outcome ({rarer}): {size} is {side} {end}."


def _what_to_do(found) -> str:
    gain = found.gain
    if gain is None or not gain.helps:
        return f"Recalibrate on a held-out set, {AGAIN}"
    before, after = plain_number(found.error.estimate), about(gain.error, gain.high)
    high, level = plain_number(gain.high), f"{percent(found.error.confidence_level)} confidence"
    limit = f" (at most {high} with {level})."
    if gain.high >= found.error.estimate:
        limit = (
            ". The samples are too few to be sure of a reduction: the error after it may be up to "
            f"{high} ({level})."
        )
    return (
        f"{gain.method} is expected to reduce the error from {before} to {after}{limit} Fit it "
        f"on a held-out set, {AGAIN}"
    )


def _samples_needed(found) -> list[str]:
    """How many samples would show that the error is small, if it is as it seems."""
    gate = found.gate
    if gate is None or gate.verdict != "unknown" or not math.isfinite(gate.n_samples_needed):
        return []
    needed, what = float(f"{gate.n_samples_needed:.2g}"), "samples in all"
    if gate.n_groups_needed is not None:  # more samples of the same groups would not
        needed, what = float(f"{gate.n_groups_needed:.2g}"), f"groups, not {gate.n_groups:,},"
    option = worded("max_error", "--max-error")
    choose = f" ({option} sets another limit)" * (found.max_error is None)
    return [
        f"If the error is {plain_number(gate.assumed_error)}, about {needed:,.0f} {what} "
        f"would show that it is below {gate.limit:g}{choose}."
    ]


def worst_range(test, notion) -> str:
    """How many events a decision about a range of predictions can get wrong."""
    right = notion.of_answers or (notion.of_largest and notion.single)
    what = f"right {_answers(notion)}" if right else "events"
    return (
        f"acting on any range: at most {per_thousand(test.high)} {what} per 1,000 of all cases "
        f"more or fewer than predicted ({percent(test.confidence_level)} confidence)"
    )


def per_thousand(value: float) -> str:
    """Cases in 1,000, of two digits."""
    return f"{1000 * value:.0f}" if value >= 0.0095 else f"{1000 * value:.1f}"
