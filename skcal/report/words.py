"""The sentences of a report: about subgroups and models, its caveats, and how it was made."""

from __future__ import annotations

import math
import re

import numpy as np

from skcal._show import (
    beside_limit,
    listed,
    only,
    percent,
    plain_number,
    pvalue_text,
    share,
    sides_of_limit,
    stated,
    worded,
)
from skcal.hypothesis_tests import adjust_pvalues
from skcal.report.answer import (
    AGAIN,
    N_NAMED,
    NO_EVIDENCE,
    SERIOUS,
    Answer,
    answer_of,
    heading_of,
    side_of,
    sizes,
)
from skcal.report.findings import likeness_of_neighbours
from skcal.sample import Sample

MEDIAN_WIDTH = "the median width"
VALIDATION = "validation"  # slope, C-statistic and the other measures of medicine
UNADJUSTED = "by itself, not adjusted for the other numbers"
#: Stands in every report.
STANDING = (
    "Whether the model or a recalibration was fitted to these samples cannot be seen from here; if "
    "so, every number is too optimistic."
)
_ALL_RIGHT = (
    "Every predicted class is right, as on training data, where forests look underconfident and "
    "other models calibrated. If so, use samples that the classifier was not trained on."
)
_FEW_SAMPLES = 300
_FEW_OUTCOMES = 100
_ONE_DOMINATES = 2.0  # the effective size below which Σ w² / (Σ w)² and so a share are above 1/2
_LIKE = 2.58  # standard deviations of neighbouring rows, beyond which a report says so
_FEWEST_NEIGHBOURS, _CLASSES_OF_NEIGHBOURS = 30, 10  # rows, and most frequent classes
_FEW_OF_A_CLASS = 10
_AS_ONE = (
    " After one recalibration of all samples there would be no significant difference between "
    "subgroups: recalibrate all together."
)
_NAMES_LISTED = 3
_ALL_SAMPLES = "all samples: "
_OF_ROWS = {
    "recalibration": "what recalibration would leave",
    VALIDATION: "slope, C-statistic, ICI",
}


def headings(report) -> list[str]:
    """The lines below the title: the samples, and the description by the user."""
    return [heading_of(report.overall), *filter(None, [report.description])]


def how_made(report) -> str:
    """The version and the settings that reproduce the report."""
    settings = report.settings
    searched = ""
    if report.overall.tuned and report.n_searched < report.overall.overview.n_samples:
        searched = (
            f" RMS errors are estimated on {report.n_searched:,} of the samples, drawn at random "
            f"({worded('max_search_samples', 'of a search')})."
        )
    return (
        f"skcal {report.version}, seed {settings['random_state']}, "
        f"{settings['n_resamples']} resamples.{searched}"
    )


# Subgroups, segments, two models


def answer_of_subgroups(report) -> str:
    """How many subgroups are miscalibrated, of two models those of the first."""
    text = _how_many_subgroups(report)
    if not text or report.comparison is None:
        return text
    second = models_of(report)[1]
    hidden = ", and may be off although it is not" * (not second.is_significant)
    return f"{text} Those of {second.name} were not compared{hidden}."


def _how_many_subgroups(report) -> str:
    """How many subgroups are miscalibrated, and how large the errors of the others may be."""
    tested = [part for part in report.subgroups if part.error is not None]
    if not tested:
        return ""
    wrong = sorted((one for one in tested if one.is_significant), key=lambda one: one.test.pvalue)
    others = [part for part in tested if not part.is_significant]
    of = name_of_parts(report)
    of += "" if report.comparison is None else f" of {report.overall.name}"
    sides = [side_of(part).lower() for part in wrong]
    several = len(set(sides)) > 1
    named = [
        f"{part.name} ({side})" if several else part.name
        for part, side in zip(wrong, sides, strict=True)
    ]
    names = listed(named, N_NAMED)
    text = f"{of}: {len(wrong):,} of {len(report.subgroups):,} significantly miscalibrated"
    alike = not report.differing.columns and len(tested) == len(report.subgroups) > 1
    text += (
        f": {names}."
        + _largest_error(wrong, report.overall.tolerance)
        + _AS_ONE * (alike and report.overall.is_significant and not segments_that_differ(report))
    )
    if not others:
        return text
    worst = max(others, key=lambda part: part.error.high)
    high = beside_limit(worst.error.high, worst.tolerance)
    limit = f"the error may be up to {high} ({worst.name})"
    if all(part.overview.has_few_groups for part in others):
        each = f"{len(others):,} of {len(report.subgroups):,}"
        return f"{text if wrong else f'{of}:'} {each} have too few groups for a test."
    segments = [one.name for one in segments_that_differ(report) if one.is_worse]
    found = [part.name for part in others if part.name in segments]
    as_segments = (
        f" As {'a segment' if len(found) == 1 else 'segments'}, {listed(found, N_NAMED)} "
        f"{'is' if len(found) == 1 else 'are'} significantly wrong by more than elsewhere."
    )
    more = as_segments * bool(found) + _off_alone(others, found)
    if not wrong:
        text = f"{of}: no evidence of miscalibration in any of {len(others):,}"
        return f"{text}, but {limit}.{more}"
    which = "the other" if len(others) == 1 else f"the other {len(others):,}"
    return f"{text} There is no evidence of miscalibration in {which}, but {limit}.{more}"


def _off_alone(parts, found: list[str]) -> str:
    """Name the other subgroups without a star, beside ``found``, whose O/E interval excludes 1."""
    known = [part for part in parts if part.ratio and not part.overview.has_few_groups]
    known = [part for part in known if part.name not in found]
    off = [part.name for part in known if not part.ratio.low <= 1 <= part.ratio.high]
    if not off:
        return ""
    named = listed(off, N_NAMED)
    level = known[0].error.confidence_level
    return (
        f" Without the correction for all rows, the O/E interval excludes 1 in {named}; "
        f"chance alone does this in {percent(1 - level)} of calibrated subgroups."
    )


def decided_together(report) -> str:
    """On which side of the limit that the user set all samples and each subgroup are."""
    if not report.decided:
        return ""
    names = ["all samples", *(part.name for part in report.subgroups)]
    verdicts = [(name, one.verdict) for name, one in zip(names, report.decided, strict=True)]
    sides = sides_of_limit(verdicts, report.settings["max_error"])
    level = percent(report.settings["confidence_level"])
    return f"The calibration error is {sides} (joint confidence {level}).{_alone(report, names)}"


def _alone(report, names: list[str]) -> str:
    """Which rows are below, or above, the limit by their own intervals, but not all together."""
    limit, said = report.settings["max_error"], []
    parts = [report.overall, *report.subgroups]
    for side in ("below", "above"):
        alone = [
            name
            for name, part, joint in zip(names, parts, report.decided, strict=True)
            if joint.verdict == "unknown"
            and part.error is not None
            and (part.error.high < limit if side == "below" else part.error.low > limit)
        ]
        said += [f"{side} {limit:g} in {listed(alone, N_NAMED)}"] if alone else []
    if not said:
        return ""
    return (
        f" Alone, by the limits in the table, the error is {' and '.join(said)}; all "
        f"{len(names):,} rows together need wider limits."
    )


def sentence_of_left_out(left, error) -> str:
    """What a recalibration by the other subgroups leaves in each one, and its O/E ratios."""
    of, gain = f" ({left.column})" * bool(left.column), left.gain
    before, after = ("{:.2f} to {:.2f}".format(*ends) for ends in (left.before, left.after))
    changes = "reduces" if gain.error < error.estimate else "changes"
    return (
        f"Recalibration fitted to the other {left.n_subgroups - 1} subgroups{of} {changes} the "
        f"error of all left-out samples together from {plain_number(error.estimate)} to "
        f"{plain_number(gain.error)} (at most {plain_number(gain.high)} with "
        f"{percent(error.confidence_level)} confidence). In single subgroups O/E is then {after} "
        f"({before} before)."
    )


def _largest_error(wrong, tolerance: float) -> str:
    """The subgroup with the largest error, to which side it is, and when it would be small."""
    if not wrong:
        return ""
    worst = max(wrong, key=lambda part: part.error.estimate)
    ratio = worst.validation.observed_expected_ratio.estimate if worst.validation else math.nan
    said = [plain_number(worst.error.estimate), side_of(worst).lower()]
    said += [f"O/E {ratio:.2f}"] if math.isfinite(ratio) else []
    which = f"The largest error is that of {worst.name}:" if len(wrong) > 1 else "Its error is"
    beside = f" Relative to the rate there, {sizes(worst.tolerance)}."
    return f" {which} {', '.join(said)}." + beside * (worst.tolerance != tolerance)


def name_of_parts(report) -> str:
    """``Subgroups``, or what they are in a report of several labels."""
    if report.settings["notion_asked"] != "multi-label":
        return "Subgroups"
    only = all(part.name.startswith("label = ") for part in report.subgroups)
    return "Labels" if only else "Labels and subgroups"


def with_worst(answer: Answer, overall, parts, differ: bool) -> Answer:
    """The answer about all samples; its title begins with the subgroup of the largest error.

    That needs a subgroup that is significantly wrong. All samples are then not, or the subgroups
    ``differ``, or the error of this one is certainly larger than that of another.
    """
    wrong = [part for part in parts if part.is_significant]
    if not wrong:
        return answer
    worst = max(wrong, key=lambda part: part.error.estimate)
    best = min(part.error.high for part in parts if part.error is not None)
    if overall.is_significant and not differ and worst.error.low <= best:
        return answer
    own = answer_of(worst)
    title = f"{worst.name}: {_within(own.title)}; {_of_all(answer)}"
    return _beside(answer, title, own.grade == "bad")


def _within(title: str) -> str:
    """A title within another one."""
    return title[0].lower() + title[1:].replace(": ", ", ")


def _of_all(answer: Answer) -> str:
    """The title about all samples beside that of a part that is wrong."""
    none = answer.title.lower() == NO_EVIDENCE.lower()
    return _ALL_SAMPLES + ("error not significant" if none else _within(answer.title))


def _beside(answer: Answer, title: str, large: bool) -> Answer:
    """The answer about all samples below the title of a part, whose error may be large."""
    grade = "bad" if large or answer.grade == "bad" else "moderate"
    first, *others = answer.sentences
    if not first.startswith("All samples: "):
        first = f"All samples: {first[0].lower()}{first[1:]}"
    return Answer(title, grade, [first, *others])


def segments_that_differ(report) -> list:
    """The segments that differ from all samples, by p-values adjusted for all segments.

    First are those that are wrong by more than elsewhere, the worst one before the others.
    """
    test, level = report.segments, report.settings["confidence_level"]
    found = [] if test is None else [one for one in test.segments if one.is_significant(level)]
    return sorted(found, key=lambda one: not one.is_worse)


def with_worst_segment(answer: Answer, report) -> Answer:
    """The answer; its title begins with the worst segment if one differs from all samples."""
    different, overall = segments_that_differ(report), report.overall
    if not different:
        return answer
    worst, has_part = different[0], _ALL_SAMPLES in answer.title
    if has_part and worst.name in [part.name for part in report.subgroups]:
        return answer  # whose title has a subgroup of the same column
    happened = "happened" if overall.notion.of_positive_class else "right"
    beside = f"{share(worst.predicted)} predicted"
    if not worst.is_worse:
        beside = f"{share(worst.expected)} elsewhere"
    rates = f"{share(worst.observed)} {happened}, {beside}"
    title = f"{worst.name}: {_side_of_segment(worst, overall)}, {rates}"
    rest = answer.title if has_part else _of_all(answer)
    return _beside(answer, f"{title}; {rest}", worst.surely > SERIOUS * overall.tolerance)


def _side_of_segment(segment, overall) -> str:
    """To which side the predictions of a segment are wrong, or how it differs from elsewhere."""
    low, events = segment.difference > 0, overall.notion.of_positive_class
    if not segment.is_worse:
        what = "events" if events else "right answers"
        return f"{'more' if low else 'fewer'} {what} than elsewhere"
    if events:
        return "too low" if low else "too high"
    return "underconfident" if low else "overconfident"


def answer_of_segments(report) -> str:
    """How many segments are wrong by more than elsewhere, and how much the worst one is."""
    different, test = segments_that_differ(report), report.segments
    if not different:
        return ""
    worse, worst = sum(one.is_worse for one in different), different[0]
    others, level = len(different) - worse, percent(test.confidence_level)
    verb, p = "is" if worse == 1 else "are", pvalue_text(worst.pvalue, test.smallest_pvalue)
    what = f"{worse:,} of {len(test.segments):,} segments {verb} wrong by more than elsewhere"
    if others:
        what += f", and {others:,} {'is' if others == 1 else 'are'} wrong by less, or right"
    which = "worst" if worst.is_worse else "most different"
    means, event, of_such = "predictions", *["the event happened in"] * 2
    if not report.overall.notion.of_positive_class:
        means, event = "confidences", "the share of right answers is"
        of_such = "the share of right is"
    predicted, expected = share(worst.predicted), share(worst.expected)
    such = f" Among all samples with such predictions, {of_such} {expected}."
    return (
        f"{what} (significant after adjustment for all). The {which} is {worst.name}, with "
        f"{worst.n_samples:,} samples ({p}): {means} average {predicted}, {event} "
        f"{share(worst.observed)} ({share(worst.low)} to {share(worst.high)}, {level} interval for "
        f"all segments together).{such * (expected != predicted)}"
    )


def subgroups_differ(report) -> bool:
    """Whether a subgroup is wrong, and one recalibration of all samples would not fix each."""
    return bool(report.differing.columns) and any(one.is_significant for one in report.subgroups)


def advice_by_part(report) -> str:
    """What to recalibrate where subgroups or segments differ; "" where they do not."""
    parts = [name_of_parts(report)] * subgroups_differ(report)
    segments = bool(segments_that_differ(report))
    parts += ["segments" if parts else "Segments"] * segments
    if not parts:
        return ""
    what, fit = " and ".join(parts), worded("Fit a SegmentRecalibrator to the features", "")
    text = f"{what} differ, so one recalibration of all samples does not fix each of them. "
    if segments and fit:
        return f"{text}{fit} on a held-out set, {AGAIN}"
    if segments and not subgroups_differ(report):  # of which one column may be the reason of all
        return f"{text}{_of_worst_segment(segments_that_differ(report)[0].name)}"
    first, *more = report.differing.columns
    if not more:
        explained = listed(report.differing.explained, N_NAMED)
        beside = f"Beside them, the differences by {explained} are not significant. "
        which = f"The differences by {first} are the largest. {beside}"
        text += which * bool(report.differing.explained)
        parts = _to_recalibrate(first, report)
        return (
            f"{text}{_each_of(first, parts)} on a held-out set, {AGAIN}{_too_small(parts, report)}"
        )
    names = " and one of ".join([first, *more])
    text += f"Each sample is in a subgroup of {names}, so these overlap. "
    fit = worded("Fit a SegmentRecalibrator to these columns", "")
    if fit and report.settings["notion_asked"] != "multi-label":
        return f"{text}{fit} on a held-out set, {AGAIN}"
    others = f"subgroups of {listed(more, N_NAMED)} may need the same after that."
    each = _each_of(first, _to_recalibrate(first, report))
    return f"{text}{each} on a held-out set, {AGAIN[:-1]}: {others}"


def compared(report) -> str | None:
    """Whether subgroups or segments are wrong where all samples are right; None without any."""
    if not report.subgroups and report.segments is None:
        return None
    wrong = sum(part.is_significant for part in report.subgroups)
    verb = "is" if wrong == 1 else "are"
    of = name_of_parts(report).lower()
    return f"But {wrong} of {len(report.subgroups)} {of} {verb} miscalibrated." * bool(wrong)


def _of_worst_segment(name: str) -> str:
    """How commands recalibrate a segment of given values, and what else does."""
    others = "SegmentRecalibrator of the Python package"
    pairs = [part.split(" = ", 1) for part in name.split(", also ")[0].split(" and ")]
    if any(len(pair) < 2 for pair in pairs):
        return (
            f"Commands recalibrate no segment such as the worst one, but {others} does. Fit it on "
            f"a held-out set, {AGAIN}"
        )
    command = f"recalibrate {only(['='.join(pair) for pair in pairs])}"
    return (
        f"Recalibrate the worst segment ({command}) on a held-out set, {AGAIN} Several segments "
        f"that overlap need {others}."
    )


def _to_recalibrate(column: str, report) -> list:
    """The subgroups of a column that are significantly miscalibrated; all if none of them is."""
    start = f"{column} = " if column else ""
    parts = [part for part in report.subgroups if part.name.startswith(start)]
    return [part for part in parts if part.is_significant] or parts


def _each_of(column: str, parts: list) -> str:
    """Which subgroups of a column to recalibrate, each by itself."""
    start = f"{column} = " if column else ""
    values = [part.name.removeprefix(start) for part in parts]
    which = start + (" and ".join(values) if len(values) == 2 else listed(values))
    value = values[0] if len(values) == 1 else "…"
    return worded(
        f"Fit a Recalibrator to {'each of ' * (len(values) > 1)}{which}",
        f"Recalibrate {which} separately (recalibrate {only([f'{column}={value}'])})",
    )


def _too_small(parts: list, report) -> str:
    """Which of some subgroups have few samples for a recalibration of their own."""
    what = "samples" if report.overall.overview.n_groups is None else "groups"
    few = [
        part.name
        for part in parts
        if (part.overview.n_groups or part.overview.n_samples) < _FEW_SAMPLES
    ]
    if not few:
        return ""
    return f" Each recalibration needs about {_FEW_SAMPLES} {what}; fewer are in {listed(few)}."


def models_of(report) -> list:
    """The measures of all samples, and those of the second model if there is one."""
    return [report.overall] + ([] if report.comparison is None else [report.comparison.second])


def answers_of_models(report) -> list[tuple[str, Answer]]:
    """The name of each model and the answer about it."""
    first, *others = models_of(report)
    return [(first.name, report.answer), *((other.name, answer_of(other)) for other in others)]


def answer_of_comparison(report) -> Answer:
    """Which model is better calibrated and by how much."""
    difference, names = report.comparison.error_difference, [m.name for m in models_of(report)]
    if difference is None:
        return Answer("Comparison", "unknown", [paired_verdict(report)])
    sentences, better = [stated(difference.sentence(*names))], difference.better
    if better is None:
        none = "No significant difference in calibration"
        title = "Measures disagree" if difference.is_significant else none
        return Answer(title, "unknown", sentences)
    sentences += _other_is_better_by_scores(report, better)
    still = models_of(report)[better].is_significant
    title = f"{names[better]} is better calibrated{', but still miscalibrated' * still}"
    return Answer(title, "moderate" if still else "good", sentences)


def _other_is_better_by_scores(report, better: int) -> list[str]:
    """Why the model of the larger calibration error has lower scores, if it has."""
    sign, other = (-1 if better else 1), 1 - better  # of a difference, first minus second
    lower = [
        test.measure
        for test in report.comparison.score_tests
        if not test.larger_is_better and min(sign * test.low, sign * test.high) > 0
    ]
    if not lower:
        return []
    names, why = [model.name for model in models_of(report)], ""
    for pair in zip(*(model.scores for model in models_of(report)), strict=False):
        one, two = pair[better], pair[other]
        if one.name in lower and None not in (one.discrimination, two.discrimination):
            gain, cost = two.discrimination - one.discrimination, two.miscalibration
            if gain > max(cost - one.miscalibration, 0):
                why = (
                    f": it discriminates better ({plain_number(two.discrimination)} against "
                    f"{plain_number(one.discrimination)} in the {one.name}), which outweighs its "
                    f"miscalibration ({plain_number(cost)} against "
                    f"{plain_number(one.miscalibration)}). Recalibration would keep that"
                )
            break
    if not why and any("risk-coverage" in name for name in lower):
        why = ": its confidences tell right answers from wrong ones better"
    scores = " and ".join(lower)
    return [f"But {names[other]} has the lower {scores}{why}."]


def paired_verdict(report) -> str:
    """Which model is better calibrated, by the paired tests together."""
    names, tests = [model.name for model in models_of(report)], report.comparison.tests
    if not tests:
        return "Which model is better calibrated was not tested."
    how = "a paired test"
    if len(tests) > 1:
        how = f"paired tests, adjusted by Holm's method over {len(tests)}"
    pvalues = adjust_pvalues([test.pvalue for test in tests]).tolist()
    found: list[list[str]] = [[], []]  # that show the first model, and the second, to be better
    for test, p in zip(tests, pvalues, strict=True):
        if p <= 1 - report.settings["confidence_level"]:
            found[int(test.estimate > 0)].append(f"{test.notion} {test.measure}, {pvalue_text(p)}")
    evidence = [" and ".join(shown) for shown in found]
    if all(evidence):
        by_model = "; ".join(f"{name} by {by}" for name, by in zip(names, evidence, strict=True))
        return f"Which model is better calibrated depends on the measure: {by_model} ({how})."
    if not any(evidence):
        return (
            "There is no evidence that either model is better calibrated: the smallest p-value is "
            f"{min(pvalues):.2g} ({how})."
        )
    better = int(bool(evidence[1]))
    return f"{names[better]} is better calibrated: {evidence[better]} ({how})."


def paired_lines(report) -> list[str]:
    """A line for each paired test of two models, those of scores last."""
    comparison, level = report.comparison, percent(report.settings["confidence_level"])
    names = " minus ".join(model.name for model in models_of(report))
    of_calibration = [(f"{test.notion} {test.measure}", test) for test in comparison.tests]
    of_scores = [(test.measure, test) for test in comparison.score_tests]
    return [
        f"{measure}, {names}: {_signed(test.estimate)}, {level} interval "
        f"[{_signed(test.low)}, {_signed(test.high)}], {pvalue_text(test.pvalue)} "
        f"({how_tested(test)})"
        for measure, test in [*of_calibration, *of_scores]
    ]


def other_measures(report) -> str:
    """Which model is better by accuracy, scores and selective prediction, each by itself."""
    if report.comparison is None or not report.comparison.score_tests:
        return ""
    better: list[list[str]] = [[], []]
    alike = []
    for test in report.comparison.score_tests:
        if test.low <= 0 <= test.high:
            alike.append(test.measure)
            continue
        low, high = sorted(map(abs, (test.low, test.high)))
        side = "higher" if test.larger_is_better else "lower"
        size = f"{plain_number(abs(test.estimate))}, {plain_number(low)} to {plain_number(high)}"
        which = better[int((test.estimate > 0) != test.larger_is_better)]
        which.append(f"{test.measure} ({side} by {size})")
    parts = [
        f"{model.name} is better by {', '.join(measures)}"
        for model, measures in zip(models_of(report), better, strict=True)
        if measures
    ]
    parts += [f"no significant difference in {listed(alike, len(alike))}"] if alike else []
    level = percent(report.settings["confidence_level"])
    return f"By measure: {'; '.join(parts)} (each with its {level} interval)."


def _signed(value: float) -> str:
    """Two digits with a sign and no exponent."""
    digits = 2 if not value else max(2, 1 - math.floor(math.log10(abs(value))))
    return f"{value:+.{min(digits, 9)}f}"


def how_tested(test) -> str:
    """The method of a paired test, its kernel and the number of samples."""
    kernel = f", Laplacian kernel of {MEDIAN_WIDTH}" if test.measure == "SKCE" else ""
    return f"{test.method}{kernel}, {test.n_samples:,} samples"


def segment_verdict(test, n_shown: int, level: float) -> str:
    """A sentence about all segments, of which the table below shows ``n_shown``."""
    small = f"; {test.n_left_out:,} more are too small" if test.n_left_out else ""
    several = len(test.segments) > 1
    shown = f" The {n_shown} with the smallest p-values:" if several else ""
    different = sum(segment.is_significant(level) for segment in test.segments)
    return (
        f"{different or 'None'} of {len(test.segments):,} overlapping segments "
        f"{'differ' if different > 1 else 'differs'} significantly from all samples in "
        f"calibration ({pvalue_text(test.pvalue, test.smallest_pvalue)}, adjusted for all of "
        f"them{small}).{shown}"
    )


# Caveats


def all_warnings(report, subgroups: bool = True, full: bool = True) -> list[str]:
    """Warnings of every part, those of subgroups and of the second model by name.

    Not ``full`` are those that every number suffers from, and what could not be estimated.
    """
    others = list(report.subgroups) if subgroups else []
    if report.comparison is None:
        warnings = shown_warnings(report.overall, full)
    else:
        warnings = by_kind(models_of(report), full) + report.comparison.warnings * full
    return [*dict.fromkeys([*warnings, *by_kind(others, full)]), STANDING]


def shown_warnings(measures, full: bool) -> list[str]:
    """All warnings of some predictions, or those that every number suffers from."""
    return [*measures.cautions, *(measures.warnings if full else [])]


def by_kind(parts, full: bool = True) -> list[str]:
    """The warnings of subgroups, once for each kind; those of a kind differ only in numbers."""
    kinds: dict[str, list] = {}
    for measures in parts:
        for text in shown_warnings(measures, full):
            kinds.setdefault(re.sub(r"[\d.,]*\d", "#", text), []).append((measures.name, text))
    texts = []
    for (name, text), *others in kinds.values():
        names = listed([other for other, _ in others], _NAMES_LISTED)
        holds = "holds" if all(text == other for _, other in others) else "holds, in other numbers,"
        texts.append(f"{name}: {text}" + f" The same {holds} for {names}." * bool(others))
    return texts


def without_rows(left_out: list[str]) -> list[str]:
    """What a report of a table leaves out, if it is one."""
    parts = [_OF_ROWS.get(part, part) for part in dict.fromkeys(left_out)]
    parts.append("whether neighbouring rows err alike")
    what = listed(parts, len(parts))
    text = f"A CalibrationTable holds no rows. So this report leaves out: {what}."
    remedy = worded("Pass a skcal.Sample for these.", "Pass --strategy quantile to hold all rows.")
    return [f"{text} {remedy}"] if left_out else []


def cautions(sample: Sample, found) -> list[str]:
    """Warnings about samples and predictions, from which every number suffers.

    Parameters
    ----------
    sample : Sample
    found : skcal.report.findings.Findings
    """
    view = found.overview
    texts = [*_few_samples(view), *_rare_classes(view)]
    if (
        max(view.base_rates, default=0) < 1
        and view.n_samples >= _FEW_OUTCOMES
        and view.accuracy == 1
    ):
        texts.append(_ALL_RIGHT)
    if found.doubt is not None and not found.is_significant:  # else the answer says it
        texts.append(found.doubt)
    rounded = found.test is not None and found.test.n_rounded > 0 and len(view.classes) == 2
    return [*texts, *_extreme_predictions(sample, rounded)]


def likeness(proba: np.ndarray, happened: np.ndarray) -> list[str]:
    """That neighbouring rows resemble each other, what it could mean and what to pass."""
    if len(proba) < _FEWEST_NEIGHBOURS:
        return []
    if happened.ndim == 1:
        proba, happened = proba[:, -1:], happened[:, None]
    columns = np.argsort(-happened.sum(axis=0))[:_CLASSES_OF_NEIGHBOURS]
    columns = columns[:1] if happened.shape[1] == 2 else columns
    found = likeness_of_neighbours(proba[:, columns], happened[:, columns])
    if found <= _LIKE:
        return []
    groups = worded("groups=", "--groups COLUMN")
    return [
        f"Neighbouring rows err to the same side more often than independent rows do ({found:.1f} "
        "standard deviations). Outcomes may depend on each other, as in a time series, calibration "
        "may change along the rows, or rows may be sorted by outcome. If outcomes depend on each "
        f"other, limits are too narrow and p-values too small: pass {groups}, such as the week or "
        "the patient of each row."
    ]


def rounding(test, sample, validation) -> list[str]:
    """How predictions of 0 and 1 are read that were rounded, or what they leave undefined."""
    if test is None or not test.n_rounded:
        return _undefined(test, sample, validation)
    n = test.n_rounded
    what, were = ("prediction", "was") if n == 1 else ("predictions", "were")
    return [
        f"Predictions are rounded to {test.resolution:g}, so 100 % may mean "
        f"{percent(1 - test.resolution / 2)} or more, and 0 up to {percent(test.resolution / 2)}. "
        f"{n:,} {what} of 0 or 100 % {were} wrong. The test counts only what rounding cannot "
        f"explain. Slopes and log losses replace 0 by {percent(test.resolution / 4)} and 100 % by "
        f"{percent(1 - test.resolution / 4)}."
    ]


def _undefined(test, sample, validation) -> list[str]:
    """What outcomes against predictions of exactly 0 or 1 leave undefined, and a likely step."""
    if validation is None or not validation.slope_note.startswith("undefined"):
        return []
    text = f"Slope {validation.slope_note}. "
    text += "The slope of the others is shown. " * math.isfinite(validation.slope.estimate)
    text += "O/E, Brier score and calibration error are those of all predictions as they are."
    steps = None if test is None or test.resolution else sample.likely_steps
    if steps:
        text += f" All predictions are multiples of 1/{steps}. "
        option = worded(f"resolution=1/{steps}", f"--resolution {1 / steps:g}")
        text += f"Pass {option} if they "
        text += "were rounded: 0 and 1 then mean within half a step."
    return [text]


def _few_samples(overview):
    n, rarest = overview.n_samples, min(overview.counts, default=math.inf)
    if overview.effective_size is not None and overview.effective_size < _ONE_DOMINATES:
        yield (
            "One sample has more than half of the weight, so every number here is mostly about "
            f"that sample. Check {worded('sample_weight', '--weight')}."
        )
    uncertain = "every number here is uncertain, so read its limits."
    if len(overview.classes) == 2 and rarest < _FEW_OUTCOMES:
        have = "has" if round(rarest) == 1 else "have"
        few = f"Only {rarest:.0f} of {n:,} samples {have} the rarer outcome"
        yield f"{few if round(rarest) else f'All {n:,} samples have the same outcome'}: {uncertain}"
    elif n < _FEW_SAMPLES:
        yield f"{n:,} samples are few: {uncertain}"


def _rare_classes(overview):
    count = np.rint(overview.counts)
    labels = [repr(label) for label in overview.classes[: len(count)]]
    absent = [label for label, n in zip(labels, count, strict=True) if n == 0]
    rare = [label for label, n in zip(labels, count, strict=True) if 0 < n < _FEW_OF_A_CLASS]
    if absent:
        yield f"{_classes_that(absent, 'never occur')} among the labels."
    if rare and len(labels) > 2:  # of two classes, few outcomes are said already
        yield (
            f"{_classes_that(rare, 'occur')} fewer than {_FEW_OF_A_CLASS} times: numbers of single "
            "classes are mostly noise there."
        )


def _classes_that(labels, verb):
    names = listed(labels, _NAMES_LISTED)
    return f"Class {names} {verb}s" if len(labels) == 1 else f"Classes {names} {verb}"


def sparse_bins(ece, sample: Sample) -> str | None:
    """A warning of bins whose gaps are mostly noise."""
    if ece is None or not ece.n_nearly_empty:
        return None
    hold = "holds" if ece.n_nearly_empty == 1 else "hold"
    empty = f", {ece.n_empty} none" if ece.n_empty else ""
    remedy = "Use fewer bins, or bins of equally many samples."
    if not sample.holds_rows:
        remedy = "Count a CalibrationTable(edges=…) of fewer bins."
    sparse = (
        f"{ece.n_nearly_empty} of the {ece.n_bins} bins of the binned ECE {hold} fewer than 10 "
    )
    sparse += f"samples{empty}"
    return f"{sparse}: their gaps are mostly noise. {remedy}"


def _extreme_predictions(sample, rounded):
    rows = sample.proba_of_classes
    if (rows.max(axis=1) == 1).all():
        yield (
            "All probabilities are 0 or 1: these look like class predictions, which say nothing "
            "about confidence. Pass probabilities in their place."
        )
    impossible = int((sample.impossible * sample.sizes).sum())
    if impossible and not rounded and sample.knows_classes:
        yield (
            f"{impossible:,} outcome{'s' if impossible > 1 else ''} had a predicted probability of "
            "0, so the log loss is infinite. The log loss shown replaces 0 by "
            f"{np.finfo(rows.dtype).eps:.0g}."
        )
    if len(sample) > 1 and (rows == rows[0]).all():
        yield "All predictions are equal, so there is one point to calibrate."
