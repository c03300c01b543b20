"""How a sample was read, in words that are computed from it: what was decided for the user."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from skcal._rounding import step_of
from skcal._show import listed, one_line, stated

_NAME, _N_NAMES = 40, 6  # characters of a label, and labels that are named
_KIND_NAMES = {
    "top-label": "each class where it is the most probable one",
    "classwise": "the probability of each class by itself",
    "canonical": "all probabilities of a row together",
    "multi-label": "each of several labels of a sample",
}


def read_as(sample: Any) -> str:
    """Say which label is the event, whose the columns are, and what else was decided."""
    counted = sample.counted
    parts = [_size_in_words(counted), _question(counted), *_worth(counted)]
    return " ".join(map(stated, [*parts, *sample.source.notes]))


def _size_in_words(sample) -> str:
    """Say how many samples, classes and groups there are."""
    n, zeros = len(sample), sample.source.left_out
    n_classes = len(sample.classes)
    kind = "labels, any of which may hold" if sample.notion.of_labels else "classes"
    text = f"{n:,} sample{'s' * (n != 1)} of {_in_letters(n_classes)} {kind}"
    text += ", counted in a CalibrationTable" * (not sample.holds_rows)
    if sample.source.grouped:
        text += f", in {len(np.unique(sample.groups.codes)):,} groups"
    if zeros:
        text += f"; {zeros:,} more of weight 0 {'is' if zeros == 1 else 'are'} left out"
    return text


def _in_letters(number: int) -> str:
    return "two" if number == 2 else f"{number:,}"


def _question(sample) -> str:
    """Name the event, its frequency and the column of predictions, or the classes of columns."""
    notion = sample.notion
    if notion.of_positive_class:
        event = f"the event is label {one_line(sample.classes[1], _NAME)}{_how_often(sample, 1)}"
        return f"{event}; predictions are its probability{_column_of_event(sample)}{_scale(sample)}"
    if notion.of_answers:
        right = f"a right answer counts as 1{_how_often(sample, 1)}"
        return f"{right}; predictions are confidences{_column_of_event(sample)}{_scale(sample)}"
    names = [one_line(name, _NAME) for name in sample.given_classes.tolist()]
    columns = (
        f"columns are the labels {listed(names, _N_NAMES)}{_absent_labels(sample)}{_scale(sample)}"
    )
    if notion == "confidence":
        share = f"{100 * sample.accuracy:.3g} %"
        return f"the event is that the most probable class is right ({share}); {columns}"
    return f"kind of calibration: {_KIND_NAMES.get(str(notion), str(notion))}; {columns}"


def _absent_labels(sample) -> str:
    """The labels that no sample has."""
    if not sample.knows_classes:
        return ""
    present = dict(zip(sample.classes.tolist(), sample.frequencies > 0, strict=True))
    names = [one_line(name, _NAME) for name in sample.given_classes.tolist() if not present[name]]
    return f" (no sample has {listed(names, _N_NAMES)})" if names else ""


def _how_often(sample, code: int) -> str:
    """Say in how many samples a class happened; with shares or weights only its share."""
    share = f"{100 * sample.frequencies[code]:.3g} %"
    if sample.outcomes is not None:
        return f" ({share})"
    n, by_weight = round(sample.counts[code]), " by weight" * (sample.effective_size is not None)
    return f" ({n:,} of {len(sample):,}, {share}{by_weight})"


def _column_of_event(sample) -> str:
    """Which column holds the probability of the event."""
    columns: Sequence[Any] = sample.source.columns
    if sample.proba.ndim == 1:
        return f" (column {one_line(columns[0], _NAME)})" if columns else ""
    place = 0 if sample.positive_first else 1
    name = one_line(columns[place], _NAME) if columns else f"{place + 1} of 2"
    return f" (column {name})"


def _scale(sample) -> str:
    """Whether predictions were logits, and in which steps they are."""
    step = step_of(sample.problems(), sample.resolution)
    steps = "" if step is None else f", in steps of {step:g}"
    return f", computed from logits{steps}" if sample.logits is not None else steps


def _worth(sample):
    """How many votes there are, and how many samples the weights are worth."""
    if sample.votes is not None and not np.isnan(sample.votes).any():
        yield f"outcomes are {sample.votes.sum():,.0f} votes"
    elif sample.outcomes is not None and not sample.notion.of_labels:
        yield "outcomes are shares of the classes"
    if sample.effective_size is not None:
        worth = f"{sample.effective_size:,.0f}"
        if_independent = " if all rows were independent" * bool(sample.source.grouped)
        yield f"weights are worth {worth} sample{'s' * (worth != '1')}{if_independent}"
