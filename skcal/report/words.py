"""What a report says in sentences: its answer, its caveats, and how it was made."""

from __future__ import annotations

import math
import re

import numpy as np

from skcal._show import number, percent
from skcal.hypothesis_tests import adjust_pvalues

LEVEL = 0.05  # of every test that a report draws a conclusion from
MEDIAN_WIDTH = "the median width"
#: Stands in every report.
STANDING = (
    "Whether the classifier was trained on these samples cannot be seen from here; if it was, "
    "every number is too optimistic."
)
_FEW_SAMPLES = 300
_FEW_OF_A_CLASS = 10
_FEW_TESTED = 100
_NAMES = 3
_SURE = 4.0  # standard errors


def pvalue_text(value: float) -> str:
    """``p = 0.012``."""
    return f"p = {value:.2g}"


def heading(report) -> str:
    """One line about the samples."""
    view = report.overall.overview
    return (
        f"{view.n_samples:,} predictions of {len(view.classes)} classes, {report.notion} "
        "calibration unless said"
    )


def how_made(report) -> str:
    """What repeats the report."""
    settings = report.settings
    searched = ""
    if report.n_searched < report.overall.overview.n_samples:
        searched = (
            f" Tuned errors are estimated on {report.n_searched:,} of the samples, drawn at "
            "random (max_search_samples)."
        )
    return (
        f"skcal {report.version}, random_state={settings['random_state']}, "
        f"{settings['n_resamples']} resamples.{searched}"
    )


# The answer


def verdict_of(measures, settings: dict) -> str:
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
            f"Miscalibrated by the test of ECE ({pvalue_text(ece.pvalue)}). By how much is "
            f"uncertain: the {what} are estimated to be off by {size}, with a lower limit of 0, "
            f"and more samples would tell.{_frequency(measures)}"
        )
    return (
        f"No miscalibration is shown: the {what} are estimated to be off by {size}, and "
        f"calibrated ones could show as much.{_detectable(measures)}"
    )


def _frequency(measures) -> str:
    """On which side single predictions are, where that is shown."""
    if measures.validation is None:
        return ""
    ratio, low, high = measures.validation.observed_expected_ratio
    if not math.isfinite(low + high) or low <= 1 <= high:
        return ""
    return f" Events are {ratio:.2f} times as frequent as predicted ({low:.2f} to {high:.2f})."


def _remedy(measures) -> str:
    """The candidate that describes the error best, if one does better than none."""
    for facts in measures.tuned[:1]:
        chosen = next(fact["candidate"] for fact in facts["candidates"] if fact["chosen"])
        if chosen != "Zero":
            return (
                f"Recalibration on other samples would mend it; {chosen} describes the error best "
                "of what was tried."
            )
    return "Recalibrate on other samples, and test on new ones."


def _detectable(measures) -> str:
    """What errors would have been seen."""
    for facts in measures.tuned[:1]:
        limit = facts["calibrated_up_to"]
        if limit is not None and math.isfinite(limit) and limit > 0:
            return f" Errors below about {number(limit, 2)} cannot be told from none here."
    return ""


def powerless(measures, overall) -> bool:
    """Whether a group shows nothing, but could not have shown the error of all samples either."""
    ece, of_all = measures.ece, overall.without_bins
    if ece is None or of_all is None or of_all["estimate"] is None:
        return False
    # Errors of bins and noise add up about as squares.
    return ece.pvalue > LEVEL and math.hypot(of_all["estimate"], ece.null_mean) <= ece.null_limit


def comparison_verdict(report) -> str:
    """Which model is better calibrated, by the paired tests together."""
    names, tests = (report.overall.name, report.comparison.second.name), report.comparison.tests
    if not tests:
        return "Which model is better calibrated was not tested."
    level = 1 - report.settings["confidence_level"]
    adjusted = adjust_pvalues([test.pvalue for test in tests])
    how = f"paired tests, adjusted by Holm's method over {len(tests)}"
    evidence: list[list[str]] = [[], []]
    for test, p in zip(tests, adjusted, strict=True):
        if p <= level:
            better = int(test.estimate > 0)
            evidence[better].append(f"{test.notion} {test.measure}, {pvalue_text(p)}")
    if all(evidence):
        by_model = "; ".join(
            f"{name} by {' and '.join(shown)}" for name, shown in zip(names, evidence, strict=True)
        )
        return f"Which model is better calibrated depends on the measure: {by_model} ({how})."
    if not any(evidence):
        return (
            f"Neither model is shown to be better calibrated: the smallest p-value is "
            f"{adjusted.min():.2g} ({how})."
        )
    better = int(bool(evidence[1]))
    return f"{names[better]} is better calibrated: {' and '.join(evidence[better])} ({how})."


def paired_lines(report) -> list[str]:
    """What the paired tests of two models say, those of scores last."""
    comparison, level = report.comparison, percent(report.settings["confidence_level"])
    names = f"{report.overall.name} minus {comparison.second.name}"
    of_calibration = [(f"{test.notion} {test.measure}", test) for test in comparison.tests]
    of_scores = [(test.measure, test) for test in comparison.score_tests]
    return [
        f"{measure}, {names}: {test.estimate:+.2e}, {level} interval "
        f"[{test.low:+.2e}, {test.high:+.2e}], {pvalue_text(test.pvalue)} ({how_tested(test)})"
        for measure, test in [*of_calibration, *of_scores]
    ]


def how_tested(test) -> str:
    """The method of a paired test, its kernel and the number of samples."""
    kernel = f", Laplacian kernel of {MEDIAN_WIDTH}" if test.measure == "SKCE" else ""
    return f"{test.method}{kernel}, {test.n_samples:,} samples"


def segment_verdict(test, n_shown: int) -> str:
    """A sentence about all segments, of which the table below shows ``n_shown``."""
    small = f", {test.n_left_out:,} more are too small" if test.n_left_out else ""
    several = len(test.segments) > 1
    shown = f"; the {n_shown} with the smallest p-values" if several else ""
    verdict = "some are miscalibrated" if test.pvalue <= LEVEL else "none is shown miscalibrated"
    return (
        f"Of {len(test.segments):,} overlapping segments {verdict} ({pvalue_text(test.pvalue)}, "
        f"adjusted for all of them){small}{shown}:"
    )


# Caveats


def all_warnings(report, groups: bool = True) -> list[str]:
    """Warnings of every part, those of groups and of the second model by name."""
    warnings = list(report.overall.warnings)
    others = list(report.groups) if groups else []
    if report.comparison is not None:
        others.append(report.comparison.second)
        warnings += report.comparison.warnings
    return [*dict.fromkeys([*warnings, *by_kind(others)]), STANDING]


def by_kind(parts) -> list[str]:
    """The warnings of groups, once for each kind: they differ in numbers alone."""
    kinds: dict[str, list] = {}
    for measures in parts:
        for text in measures.warnings:
            kinds.setdefault(re.sub(r"[\d.,]*\d", "#", text), []).append((measures.name, text))
    texts = []
    for (name, text), *more in kinds.values():
        also = f" (and alike in {len(more)} more)" if more else ""
        texts.append(f"{name}{also}: {text}")
    return texts


def cautions(rows: np.ndarray, codes: np.ndarray, overview, ece, tuned) -> list[str]:
    """Warnings about samples, bins, predictions and estimates that contradict each other.

    Parameters
    ----------
    rows : ndarray of shape (n_samples, n_classes)
        The predictions, with a column for each class.
    codes : ndarray of shape (n_samples,)
        The column of each label.
    overview, ece, tuned
        Those of :class:`skcal.report.measure.Measures`.
    """
    texts = [_few_samples(overview), *_rare_classes(codes, overview)]
    if ece is not None:
        texts.append(_sparse_bins(ece))
    texts += [_reversed(rows, codes), *_extreme_predictions(rows, codes)]
    texts += [_few_tested(facts) for facts in tuned] + [_contradiction(facts) for facts in tuned]
    return [text for text in texts if text]


def _few_samples(overview):
    n = overview.n_samples
    if n >= _FEW_SAMPLES:
        return None
    return (
        f"{n} samples are few: calibrated and miscalibrated predictions can look alike. "
        f"Collect at least {_FEW_SAMPLES}."
    )


def _rare_classes(codes, overview):
    count = np.bincount(codes, minlength=len(overview.classes))
    absent = np.flatnonzero(count == 0)
    rare = np.flatnonzero((count > 0) & (count < _FEW_OF_A_CLASS))
    if len(absent):
        yield f"{_names(absent, overview)} never {_verb('occur', absent)} in y_true."
    if len(rare):
        yield (
            f"{_names(rare, overview)} {_verb('occur', rare)} fewer than {_FEW_OF_A_CLASS} times; "
            "nothing about single classes can be shown there."
        )


def _names(which, overview):
    names = ", ".join(repr(overview.classes[k]) for k in which[:_NAMES])
    more = f" and {len(which) - _NAMES} more" if len(which) > _NAMES else ""
    return f"Class{'es' if len(which) > 1 else ''} {names}{more}"


def _verb(verb, which):
    return verb + "s" if len(which) == 1 else verb


def _sparse_bins(ece):
    if not ece.n_nearly_empty:
        return None
    hold = "holds" if ece.n_nearly_empty == 1 else "hold"
    empty = f", {ece.n_empty} none" if ece.n_empty else ""
    return (
        f"{ece.n_nearly_empty} of {ece.n_bins} bins {hold} fewer than 10 samples{empty}: their "
        "gaps are mostly noise. Use fewer bins or strategy='quantile'."
    )


def _reversed(rows, codes):
    """Whether outcomes and probabilities of classes are negatively correlated on the whole."""
    n = len(rows)
    share = np.bincount(codes, minlength=rows.shape[1]) / n
    gain = rows[np.arange(n), codes] - rows @ share
    if gain.mean() >= -_SURE * max(gain.std() / math.sqrt(n), 1e-9):
        return None
    return (
        "What happened had lower probabilities than shuffled labels would have: the columns may be "
        "in another order than the labels, or the positive class be the other one. Check labels= "
        "and pos_label=."
    )


def _extreme_predictions(rows, codes):
    if (rows.max(axis=1) == 1).all():
        yield (
            "All probabilities are 0 or 1: these look like class predictions, which say nothing "
            "about confidence. Pass predict_proba output."
        )
    impossible = np.count_nonzero(rows[np.arange(len(rows)), codes] == 0)
    if impossible:
        yield (
            f"{impossible:,} sample{'s' if impossible > 1 else ''} had probability 0 for the class "
            "that occurred: the log loss is infinite; shown is that of the smallest probability "
            f"that {rows.dtype} resolves."
        )
    if len(rows) > 1 and (rows == rows[0]).all():
        yield "All predictions are equal, so there is one point to calibrate."


def _few_tested(facts):
    if facts["n_test_samples"] >= _FEW_TESTED or facts["one_step"] is None:
        return None
    return (
        f"The one-step estimate of the {facts['notion']} error rests on "
        f"{facts['n_test_samples']} test samples: too few for the normal limit of its bound."
    )


def _contradiction(facts):
    one_step = facts["one_step"] or {}
    bound = one_step.get("lower_confidence_bound")
    if bound is None or bound <= max(facts["squared_error"], 0):
        return None
    return (
        f"The lower bound {math.sqrt(bound):.4f} of the {facts['notion']} error is above its "
        f"estimate {facts['calibration_error']:.4f}: too few samples, or errors that the chosen "
        "form averages away."
    )
