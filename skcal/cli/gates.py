"""The gates of the command line: what is decided by a limit or a level, and the exit status."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from skcal._show import (
    VERDICTS,
    Table,
    as_data,
    beside_limit,
    cut_apart,
    listed,
    number,
    percent,
    pvalue_number,
    says_above_0,
    share,
    sides_of_limit,
    stated,
)
from skcal.cli.problems import FileError
from skcal.hypothesis_tests import compare_calibration, equivalence_tests
from skcal.notions import Notion, resolve_notion
from skcal.sample import Sample

ALPHA = 0.05  # the level of gates and tests unless --alpha says another
PASSED, FAILED, REFUSED, UNKNOWN = 0, 1, 2, 3  # exit statuses; of REFUSED calls and files
#: What --max-error can bound; the first is what it bounds unless --error says another.
GATED_ERRORS = {
    "calibration": "calibration error",
    "cutoff": "cutoff calibration error",
    "ece": "ECE of 15 bins",
}
_SHORT = {**GATED_ERRORS, "cutoff": "cutoff error", "ece": "ECE, 15 bins"}
_STATUS = {"below": PASSED, "above": FAILED, "unknown": UNKNOWN}
WORST_FIRST = tuple(VERDICTS)
_STATUSES = {"below": "PASSED", "above": "FAILED", "unknown": "NOT DECIDED, too few samples"}
_WIDEST, _NARROW = 60, 24  # characters of a name in a table, and where lines would be too long
_LINE = 100
_LARGE_SHARE = 0.2  # of the rate of the rarer outcome; a limit above says little


# evaluate --max-error


def gate_of_errors(predictions, options) -> dict:
    """Bound each error of each notion that was asked for, of all samples and of each subgroup.

    Returns
    -------
    gate : dict
        ``status`` is 0 where all errors are shown to be below the limit, 1 where one is shown to
        be above, and 3 otherwise. ``results`` has an entry for each error, notion and subgroup,
        whose verdicts hold together, as by ``equivalence_tests``.
    """
    notions = chosen_notions(options, predictions.proba)
    for notion in notions:
        if not notion.scalar:
            raise FileError(
                f"--notion {notion}: --max-error bounds errors of a single probability, and this "
                "notion conditions on a vector, whose error has no upper bound without "
                "assumptions. Use --notion binary, confidence, top-label or classwise."
            )
    parts = predictions.parts(options.by).items()
    errors = list(dict.fromkeys(options.error or ["calibration"]))
    samples = [(name, part.sample(notion)) for name, part in parts for notion in notions]
    asked = [(name, sample, error) for name, sample in samples for error in errors]
    decision = {"limit": options.max_error, "confidence_level": 1 - ALPHA}
    tests = equivalence_tests([one[1:] for one in asked], **decision)
    groups = f"groups of column {options.groups!r}" if options.groups else "groups"
    named = {"whole": whole_of(options.only), "name_of_groups": groups}
    results = [_facts_of(*one, test, named) for one, test in zip(asked, tests, strict=True)]
    verdict = _worst(result["verdict"] for result in results)
    return {"status": _STATUS[verdict], "verdict": verdict, "results": results}


def gate_of_report(report, only: Sequence[str]) -> dict:
    """On which side of ``--max-error`` the calibration error is, as ``evaluate`` decides it."""
    overall = report.overall
    names = [whole_of(only), *(part.name for part in report.subgroups)]
    tests = report.decided or [overall.gate]
    verdicts = [
        (name, "unknown" if test is None else test.verdict)
        for name, test in zip(names, tests, strict=False)
    ]
    worst = _worst(verdict for _, verdict in verdicts)
    told = _first_line(verdicts, overall.max_error, overall.overview.n_groups is not None)
    return {"status": _STATUS[worst], "verdict": worst, "reading": told}


def _worst(verdicts: Iterable[str]) -> str:
    return min(verdicts, key=WORST_FIRST.index)


def chosen_notions(options, proba) -> list[Notion]:
    """The notions asked for, by default "auto"."""
    notions = options.notion or ["auto"]
    return list(dict.fromkeys(resolve_notion(notion, proba) for notion in notions))


def _facts_of(subgroup: str, sample: Sample, error: str, test, named: dict[str, str]) -> dict:
    """The verdict on one error, its numbers and the sentences that tell them."""
    notion, limit = sample.notion, test.limit
    outcome, rate = _rarest_outcome(sample)
    facts = {
        "subgroup": subgroup or "all",
        **as_data(test),
        "n_groups_needed": test.n_groups_needed,
        **named,
        "error": error,
        **_averages(sample),
        "rarest_outcome": outcome,
        "rate_of_rarest_outcome": rate,
        "limit_by_rate": limit / rate if rate > 0 else None,
    }
    name = f"The {GATED_ERRORS[error]}"
    if not notion.single and error in ("cutoff", "ece"):
        name = f"The largest {GATED_ERRORS[error]} of a class"
    name += f" ({notion})" * (not notion.of_positive_class)
    return {**facts, "reading": f"{subgroup}{': ' * bool(subgroup)}{_reading(name, facts)}"}


def _averages(sample) -> dict[str, float | None]:
    """The mean prediction and the observed frequency, of events their ratio; else None."""
    facts: dict[str, float | None] = dict.fromkeys(("ratio", "predicted", "observed"))
    if sample.notion.single:
        [problem] = sample.problems()
        columns = {"predicted": problem.features, "observed": problem.outcomes}
        predicted, observed = ((problem.weight @ x)[0] for x in columns.values())
        if sample.notion.of_positive_class and predicted > 0:
            facts["ratio"] = float(observed / predicted)
        for name, x in columns.items():
            facts[name] = float(np.average(x[:, 0], weights=problem.weight))
    return facts


def _rarest_outcome(sample) -> tuple[str, float]:
    """What is called the rate of the rarest outcome, and that rate."""
    notion, problems = sample.notion, sample.problems()
    if not notion.single and (notion.shares_samples or sample.knows_classes):
        shares = sample.frequencies
        if not sample.knows_classes:
            shares = np.array(
                [np.average(one.outcomes[:, 0], weights=one.weight) for one in problems]
            )
        return "rate of the rarest class", float(shares[shares > 0].min())
    happened = sum(float(one.weight @ one.outcomes[:, 0]) for one in problems)
    share = happened / sum(float(one.weight.sum()) for one in problems)
    if notion.of_positive_class:
        names = "event rate", "rate of no event"
    else:
        names = "rate of correct predictions", "rate of wrong predictions"
    return (names[0], share) if share <= 0.5 else (names[1], 1 - share)


def _level(facts) -> str:
    """The confidence of the limits, rounded down to a tenth of a percent."""
    return percent(math.floor(1000 * facts["confidence_level"] + 1e-9) / 1000)


def _reading(name, facts) -> str:
    """Two sentences: the verdict with its bounds, and what helps to judge it."""
    least = f"at least {_end(facts, 'low')}"
    if says_above_0(facts["low"], facts["estimate"]):
        least = "above 0"
    first = (
        f"{name} is {VERDICTS[facts['verdict']]} {facts['limit']:g}: the estimate is "
        f"{number(facts['estimate'])}, {least} and at most "
        f"{_end(facts, 'high')} (each at {_level(facts)} confidence)."
    )
    more = []
    if facts["verdict"] == "unknown":
        needed, n, what = facts["n_samples_needed"], facts["n_samples"], "samples"
        if facts["n_groups"] is not None:
            needed, n, what = facts["n_groups_needed"], facts["n_groups"], facts["name_of_groups"]
        many = "no number of" if needed is None else f"about {needed:,.0f}"
        more.append(
            f"if the error is {number(facts['assumed_error'])}, {many} {what} would show it to be "
            f"below in nine of ten cases (here are {n:,})"
        )
    gap, share = facts["largest_gap"], percent(facts["min_share"])
    if gap < 1:
        more.append(
            f"in a single range of predictions with {share} of the samples, observed and predicted "
            f"frequencies may still differ by up to {number(gap)}"
        )
    elif facts["verdict"] != "above":
        more.append(
            f"in a range of predictions with {share} of the samples, the gap may be of any size"
        )
    if facts["verdict"] != "above":
        more += _beside_rate(facts)
    return f"{first} {stated('; '.join(more))}" if more else first


def _end(facts, name) -> str:
    return beside_limit(facts[name], facts["limit"], number)


def status_of_gate(results) -> str:
    """A sentence: whether the gate is passed, and of several rows which are on which side."""
    verdicts: dict[str, set] = {}
    for facts in results:
        verdicts.setdefault(facts["subgroup"], set()).add(facts["verdict"])
    named = []
    for facts in results:
        name, verdict = _part(facts), facts["verdict"]
        if len(verdicts[facts["subgroup"]]) > 1:
            name += f" ({_SHORT[facts['error']]}, {facts['notion']})"
        named += [(name, verdict)] * ((name, verdict) not in named)
    first, several = results[0], len(results) > 1
    return _first_line(named, first["limit"], first.get("n_groups") is not None, several)


def _first_line(verdicts, limit: float, grouped: bool, several: bool = False) -> str:
    """Whether a gate is passed, and which of these names are on which side of the limit."""
    worst = _worst(verdict for _, verdict in verdicts)
    several = several or len(verdicts) > 1
    together = f" (joint confidence {percent(1 - ALPHA)})" * several
    status = _STATUSES[worst].replace("samples", "groups" if grouped else "samples")
    return f"{status}: {sides_of_limit(verdicts, limit)}{together}."


def table_of_gate(results, n_shown: int) -> list[str]:
    """The first results as rows below their names; columns of equal names are left out."""
    first = "", "kind", "kind of error", "predicted", "observed"
    limit = f"limit {results[0]['limit']:g}"
    names = *first, "error", limit, "at least", "at most"
    rows = [_row_of_gate(facts) for facts in results]
    shown = [
        k
        for k, column in enumerate(zip(*rows, strict=True))
        if any(column) and (k > 2 or len(set(column)) > 1)
    ]
    columns, sides = [names[k] for k in shown], "".join("lllrrrlrr"[k] for k in shown)
    for width in (_WIDEST, _NARROW):
        cut = [cut_apart(column, width) for column in zip(*rows[:n_shown], strict=True)]
        cells = list(zip(*(cut[k] for k in shown), strict=True))
        lines = Table(columns, cells, sides).lines()
        if max(map(len, lines)) <= _LINE:
            break
    return lines


def notes_of_gate(results) -> list[str]:
    """The confidence of the limits in the table, and where noise makes a cutoff error larger."""
    level = f"Each limit has {_level(results[0])} confidence"
    if results[0]["confidence_level"] > 1 - ALPHA:
        level += f", so that all {len(results):,} rows hold together with {percent(1 - ALPHA)}"
    return [f"{level}.", *_noise_of_gate(results)]


def _noise_of_gate(results) -> list[str]:
    """A line where noise makes a cutoff error larger than the calibration error it is a part of."""
    errors: dict[tuple, dict] = {}
    for facts in results:
        if facts["notion"] not in ("classwise", "top-label"):  # whose cutoff error is the largest
            errors.setdefault((facts["subgroup"], facts["notion"]), {})[facts["error"]] = facts
    for kinds in errors.values():
        if {"cutoff", "calibration"} <= kinds.keys():
            cutoff, calibration = (kinds[name]["estimate"] for name in ("cutoff", "calibration"))
            if round(cutoff - calibration, 4) > 0:
                return ["The part of a cutoff error above the calibration error is noise."]
    return []


def _row_of_gate(facts) -> tuple[str, ...]:
    """The bounds of an error: of what, kinds of calibration and of error, and numbers."""
    return (
        _part(facts),
        str(facts["notion"]),
        _SHORT[facts["error"]],
        *("" if facts[name] is None else share(facts[name]) for name in ("predicted", "observed")),
        number(facts["estimate"]),
        {"unknown": "not decided"}.get(facts["verdict"], facts["verdict"]),
        _end(facts, "low"),
        _end(facts, "high"),
    )


def _part(facts) -> str:
    whole = facts.get("whole", "all samples")
    return whole if facts["subgroup"] == "all" else facts["subgroup"]


def whole_of(only: Sequence[str]) -> str:
    """What all samples are called beside the rows that ``--only`` keeps."""
    kept = [" = ".join(text.split("=", 1)) for text in only]
    return f"all samples{' with ' * bool(kept)}{listed(kept, len(kept)) if kept else ''}"


def _beside_rate(facts) -> list[str]:
    """How large the limit is beside the rate of a rare outcome, if it is large."""
    times, rate, outcome = (
        facts[name] for name in ("limit_by_rate", "rate_of_rarest_outcome", "rarest_outcome")
    )
    if times is None:
        return [f"the {outcome} is 0 here, so that no limit says much"]
    if times <= _LARGE_SHARE:
        return []
    shown = f"{times:.1f}" if times >= 1 else f"{times:.2g}"
    said = f"{facts['limit']:g} is {shown} times the {outcome} of {rate:#.2g}"
    if times >= 1 and outcome == "event rate":
        said += ", so that a model that always says 0 would pass: choose a share of that rate"
    return [said]


# test --alpha


def resamples_needed(n_tests: int, alpha: float) -> int:
    """The least number of resamples whose p-values can reject, adjusted for so many tests."""
    enough = math.ceil(n_tests / alpha) - 1
    return enough + (n_tests * (1 / (1 + enough)) > alpha)  # as rounding has it


def gate_of_tests(adjusted, at_most, alpha) -> dict:
    """Whether calibration is rejected, by adjusted p-values, which up to ``at_most`` are limits."""
    smallest = pvalue_number(min(adjusted), at_most)
    at_level = f"at level {alpha:g}: the smallest adjusted p-value is {smallest}."
    if min(adjusted) <= alpha:
        return {"status": FAILED, "reading": f"Calibration is rejected {at_level}"}
    more = "This does not show that the error is small; evaluate --max-error asks for that."
    return {"status": PASSED, "reading": f"Calibration is not rejected {at_level} {more}"}


# compare --fail-if-worse


def gate_of_comparison(first, second, notion, options) -> dict:
    """Whether the squared calibration error of the second model is significantly larger."""
    alpha = options.alpha or ALPHA
    test = compare_calibration(
        first.labels,
        first.proba,
        second.proba,
        second_y_true=second.labels,
        notion=notion,
        confidence_level=min(1 - alpha, math.nextafter(1.0, 0.0)),
        **first.beside,
    )
    difference = test.error_difference
    assert difference is not None  # of a single probability, as all notions of this command
    worse = difference.better == 0
    return {
        "status": FAILED if worse else PASSED,
        "alpha": alpha,
        "notion": str(test.notion),
        "estimate": test.estimate,
        "pvalue": test.pvalue,
        "error_difference": as_data(difference),
        "reading": stated(difference.sentence("the first model", "the second")),
    }
