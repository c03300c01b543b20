"""``python -m skcal``: the commands, what they print, and the exit status."""

from __future__ import annotations

import os
import sys
import warnings
from concurrent.futures import BrokenExecutor
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from warnings import warn

import numpy as np

from skcal._show import (
    Table,
    as_data,
    as_json,
    import_pyplot,
    on_command_line,
    printable,
    pvalue_number,
    wrapped,
)
from skcal.cli.counted import read_or_count
from skcal.cli.evaluate import demonstration, evaluate, shown_progress
from skcal.cli.gates import (
    ALPHA,
    PASSED,
    REFUSED,
    UNKNOWN,
    chosen_notions,
    gate_of_comparison,
    gate_of_errors,
    gate_of_report,
    gate_of_tests,
    resamples_needed,
)
from skcal.cli.monitor import watch
from skcal.cli.options import MOST_RESAMPLES, with_option
from skcal.cli.parser import parse, takes
from skcal.cli.planning import (
    check_targets,
    error_in_target,
    facts_of_map,
    read_target,
    recalibrate,
    sample_size,
    text_of_map,
)
from skcal.cli.predictions import (
    Predictions,
    align,
    dialect_of,
    features_of,
    read_predictions,
    repeated,
    subgroups_of,
)
from skcal.cli.problems import (
    STANDARD_INPUT,
    FileError,
    Problems,
    check_output,
    read_or_list_problems,
)
from skcal.displays import ReliabilityDisplay
from skcal.hypothesis_tests import adjust_pvalues, calibration_test
from skcal.metrics import coverage_at_risk
from skcal.notions import ANSWERS, resolve_notion
from skcal.report import calibration_report
from skcal.report.words import likeness
from skcal.sample import read_sample

_REVERSED = (
    "{}: what happened has lower predictions than shuffled labels would have: columns may be "
    "swapped, or the positive label be the other one. Check the names of the columns and "
    "--pos-label."
)
#: What warnings of functions mean for who has a file, by their first words.
_IN_OPTIONS = {
    "All predictions in": "All predictions are 0 or 1, as predicted classes are. Name the column "
    "of probabilities by --score; if these are probabilities, the classifier gives 0 and 1 alone.",
    "All logits in": "All logits are from 0 to 1, as probabilities are. If they are probabilities, "
    "leave --logits out.",
    "No logit in": "No logit is above 0, as no logarithm of a probability is. If these are "
    "logarithms of probabilities, pass --log-probabilities in place of --logits.",
}


def main(arguments=None) -> int:
    """Run the command line; return the exit status."""
    with on_command_line():
        options = parse(arguments)
    with on_command_line(options.only):
        return _main(options)


def _main(options) -> int:
    options.print = _print_nothing if options.quiet else print_result
    try:
        return _run(_FUNCTIONS[options.command], options)
    except KeyboardInterrupt:
        print_message("interrupted")
        return 128 + 2  # as a shell says of SIGINT
    except BrokenPipeError:  # whoever reads, such as `head`, has read enough
        with suppress(AttributeError, OSError, ValueError):  # where Python flushes what is left
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + 13  # as a shell says of SIGPIPE
    except (MemoryError, BrokenExecutor):
        fewer = " or --n-jobs 1" * takes(options.command, "n-jobs")
        return _refuse(f"The memory does not suffice. Pass fewer samples or classes{fewer}.")
    except Problems as error:
        for line in error.lines:
            print_message(line)
        return REFUSED
    except (FileError, ValueError, ImportError, OSError, RuntimeError) as error:
        if isinstance(error, OSError) and error.filename:
            return _refuse(f"{error.filename}: {error.strerror}.")
        return _refuse(with_option(error))


def _run(command, options) -> int:
    """The exit status of a command; its warnings go to the error stream, each once.

    If a command fails, only the error is printed.
    """
    with warnings.catch_warnings(record=True, action="always", category=UserWarning) as caught:
        status = command(options) or PASSED
    texts = [str(warning.message) for warning in caught]
    for start, said in _IN_OPTIONS.items():
        texts = [said if text.startswith(start) else text for text in texts]
    for text in dict.fromkeys(texts) if not options.quiet else ():
        print_message(text)
    return status


def _refuse(text) -> int:
    print_message(str(FileError(text)))
    return REFUSED


# What is printed


def print_result(text="") -> None:
    """Print a text on the standard output, if there is one.

    Characters that its encoding lacks are escaped.

    Raises
    ------
    OSError
        With "standard output" as its ``filename``: nothing more can be written.
    """
    if sys.stdout is None:
        return
    try:
        encoding = sys.stdout.encoding or "utf-8"
        print(str(text).encode(encoding, "backslashreplace").decode(encoding), flush=True)
    except OSError as error:
        error.filename = "standard output"
        raise error from None


def print_message(text: str) -> None:
    """Print a line on the error stream, if there is one that takes it."""
    if sys.stderr is not None:
        with suppress(OSError):
            print(f"skcal: {printable(' '.join(text.split()))}", file=sys.stderr, flush=True)


def _print_nothing(text=""):
    """Print for ``--quiet``: the process's standard output is that of all its threads."""


def _answer(options, facts, text, gate=None) -> int:
    """Print ``facts()`` as JSON, or ``text()``; the exit status is that of a gate, if there is one.

    The sentence of the gate goes to the error stream.
    """
    if options.json:
        known = facts()
        options.print(as_json(known if gate is None else {**known, "gate": gate}))
    else:
        options.print(text())
    return PASSED if gate is None else _decide(options, gate["status"], [gate["reading"]])


def _decide(options, status: int, readings) -> int:
    """The exit status of a gate, whose sentences go to the error stream."""
    for reading in readings if not options.quiet else ():
        print_message(reading)
    return status


# What several commands need


def _shown_name(file) -> str:
    """The name of a file."""
    return "standard input" if file == STANDARD_INPUT else file


def _short_name(file) -> str:
    """The name of a file without its folders."""
    return Path(_shown_name(file)).name


def _with_only(options, name: str) -> str:
    """A name, with the rows that ``--only`` keeps of the file."""
    return ", ".join([name, *options.only])


def _predictions_of(options, **asked) -> Predictions:
    """The predictions of the first file, or everything that is wrong with it."""
    needs_rows = options.command in ("recalibrate", "abstain", "shift")
    read = partial(read_predictions if needs_rows else read_or_count, **asked)
    predictions = read_or_list_problems(options, read)
    options.frames.clear()
    if predictions.of_answers:
        options.notion = [ANSWERS]
    if options.command != "report":
        _warn_of(predictions, options)
    return predictions


def _warn_of(predictions: Predictions, options) -> None:
    """Warn of what a report says as a caveat."""
    told = [] if options.command == "evaluate" else list(predictions.notes)  # which it prints
    told += [str(predictions.left_out)] * (predictions.left_out is not None)
    for text in told:
        warn(text, stacklevel=2)
    kept = options.command == "recalibrate" and options.logits
    given = predictions.labels, predictions.proba
    if read_sample(*given, labels=predictions.classes, from_logits=kept or None).is_reversed:
        warn(_REVERSED.format(_shown_name(options.file)), stacklevel=2)


def _only_notion(options):
    notions = options.notion or ["auto"]
    if len(notions) > 1:
        raise FileError(f"--notion was given more than once; {options.command} takes one.")
    return notions[0]


def _check_figure(path) -> None:
    """Raise before the work where a figure cannot be drawn after it."""
    if path is not None:
        check_output(path, (".png", ".svg", ".pdf"))
        import_pyplot()


# evaluate


def _demonstrate(options):
    reports = [evaluate(name, each, options) for name, each in demonstration(options)]
    if options.json:
        options.print(as_json(reports))


def _evaluate_file(options):
    predictions = _predictions_of(options)
    # What the gate refuses is said before the search.
    gate = None if options.max_error is None else gate_of_errors(predictions, options)
    name = _with_only(options, _shown_name(options.file))
    report = evaluate(name, predictions, options, gate)
    if options.json:
        options.print(as_json([report if gate is None else {**report, "gate": gate}]))
    if gate is None:
        return PASSED
    readings = [result["reading"] for result in gate["results"]] if options.json else []
    return _decide(options, gate["status"], readings)


# abstain


def _abstain(options):
    """The threshold of the confidence that holds ``--max-risk``, in the units of the file."""
    predictions = _predictions_of(options)
    proba, notion = predictions.proba, _only_notion(options)
    if options.correct is None:  # whether the most probable class is right
        notion = "confidence"
        proba = np.column_stack([1 - proba, proba]) if proba.ndim == 1 else proba
    sample = read_sample(predictions.labels, proba, notion, labels=predictions.classes)
    [problem] = sample.problems()
    result = coverage_at_risk(
        problem.outcomes[:, 0],
        np.round(problem.features[:, 0] * options.scale, 12),
        options.max_risk,
        sample_weight=predictions.weight,
        groups=predictions.groups,
    )
    texts = [str(result)]
    if predictions.proba.ndim == 1 and options.correct is None:
        texts.append(wrapped(_as_probability(result, predictions, options)))
    _answer(options, lambda: as_data(result), lambda: "\n".join(texts))
    return UNKNOWN if result.risk is None else PASSED


def _as_probability(result, predictions, options) -> str:
    """What the confidence of a single probability is, and which probabilities are kept."""
    other, event = (printable(str(label)) for label in predictions.classes)
    half, high = options.scale / 2, result.threshold
    text = (
        f"Confidence is max(p, {options.scale:g} − p), where p is the predicted probability of "
        f"{event}: the answer is {event} if p is above {half:g}, else {other}."
    )
    if result.risk is None or high <= half:
        return text
    low = round(options.scale - high, 12)
    return f"{text} So keep a row if p is at most {low:.12g} or at least {high:.12g}."


# shift and sample-size


def _shift(options):
    predictions = _predictions_of(options)
    result = error_in_target(predictions, _only_notion(options), options)
    return _answer(options, lambda: as_data(result), lambda: result)


def _sample_size(options):
    size = sample_size(options)
    needed = {"n_samples": size.n_samples, "n_events": size.n_events}
    return _answer(options, lambda: needed | as_data(size), lambda: size)


# report, compare and plot


def _report(options):
    check_output(options.html, (".html",))
    predictions, more = _predictions_of(options), {}
    if options.second is not None:
        more["target"] = read_target(predictions, options)[0]
    name = _with_only(options, _short_name(options.file))
    report = _report_on(predictions, options, name=name, **more)
    gate = None if options.max_error is None else gate_of_report(report, options.only)
    return _answer(options, report.to_dict, lambda: report.summary(options.detail), gate)


def _compare(options):
    check_output(options.html, (".html",))
    first, second = read_or_list_problems(options, _read_both)
    names = _short_name(options.file), _short_name(options.second)
    if options.second_only:
        names = options.only[0], options.second_only[0]
    elif options.file == options.second and options.second_score is not None:
        names = options.score, options.second_score
    elif names[0] == names[1]:
        names = options.file, options.second
    gate = None
    if options.fail_if_worse:
        gate = gate_of_comparison(first, second, _only_notion(options), options)
    second = second._replace(weight=first.weight, groups=first.groups)
    more: dict[str, Any] = {"y_true": first.read, "compare": second.read}
    if options.correct is not None:  # each answer is right or wrong by itself
        more = {**first.arguments, "resolution": options.resolution}
        more |= {"compare": second.proba, "second_y_true": second.labels}
    report = _report_on(first, options, **more, name=names[0], compare_name=names[1])
    return _answer(options, report.to_dict, lambda: report.summary(options.detail), gate)


def _read_both(options) -> tuple[Predictions, Predictions]:
    """The predictions of two models for the same samples."""
    first, second = align(
        read_predictions(options), read_predictions(options, second=True), options
    )
    counts = {name: first.others[name] for name in first.others if name == options.count}
    second = second._replace(others={**second.others, **counts})
    return repeated(first, options), repeated(second, options)


def _report_on(predictions, options, **more):
    """A report, saved as a page if that is asked for; its first caveat is what was left out."""
    columns = {name: subgroups_of(predictions, name) for name in options.by}
    dialect = dialect_of(options)
    with shown_progress(options):
        report = calibration_report(
            **{"y_true": predictions.read, **more},
            notion=_only_notion(options),
            by=columns or None,
            segments=features_of(predictions.others, options.segments, dialect) or None,
            search=options.search,
            n_bins=options.bins,
            strategy=options.strategy,
            n_resamples=options.resamples,
            outer_cv=options.outer_cv,
            max_error=options.max_error,
            description=options.description,
            random_state=options.seed,
            n_jobs=options.n_jobs,
            verbose=1,
        )
    cautions = [str(predictions.left_out)] * (predictions.left_out is not None)
    cautions += predictions.doubts
    if not predictions.read.holds_rows:
        cautions += likeness(predictions.rows.proba_of_classes, predictions.rows.happened)
    if cautions:
        cautions += report.overall.cautions
        report = replace(report, overall=replace(report.overall, cautions=cautions))
    if options.html is not None:
        report.save(options.html, options.detail)
    return report


def _plot(options):
    _check_figure(options.out)
    predictions = _predictions_of(options)
    notion = resolve_notion(_only_notion(options), predictions.proba)
    display = ReliabilityDisplay.from_predictions(
        predictions.sample(notion),
        method=options.method,
        n_bins=options.bins or "auto",
        strategy=options.strategy,
        scale=options.axes,
        n_resamples=options.resamples,
        random_state=options.seed,
        name=_with_only(options, _short_name(options.file)),
        plot=False,
    )
    display.save(options.out)


# test


def _test_calibration(options):
    predictions = _predictions_of(options)
    notions = chosen_notions(options, predictions.proba)
    n_tests = sum(len(predictions.classes) if notion.by_class else 1 for notion in notions)
    level = options.alpha or ALPHA
    needed = resamples_needed(n_tests, level)
    samples = [predictions.sample(notion) for notion in notions]
    default = samples[0].default_resamples  # as those of a report
    n_resamples = options.resamples or max(default, min(5 * needed, MOST_RESAMPLES))
    how = {"n_resamples": n_resamples, "random_state": options.seed, "n_jobs": options.n_jobs}
    results = [calibration_test(sample, **how) for sample in samples]
    adjusted = adjust_pvalues([result.pvalue for result in results]).tolist()
    pairs = list(zip(results, adjusted, strict=True))
    at_most = max((p for one, p in pairs if one.pvalue <= one.smallest_pvalue), default=0.0)
    head = f"{len(samples[0]):,} predictions in {_with_only(options, _shown_name(options.file))}"
    shown = partial(_text_of_tests, printable(head), pairs, at_most)
    _answer(options, partial(_facts_of_tests, pairs), shown)
    if min(adjusted) > level and n_resamples < needed and options.alpha is not None:
        return _refuse(_more_resamples(n_resamples, needed, n_tests, level))
    gate = gate_of_tests(adjusted, at_most, level)
    if options.alpha is not None:
        return _decide(options, gate["status"], [gate["reading"]])
    if not options.json:
        options.print(f"{gate['reading']} With --alpha the exit status says so.")
    return PASSED


def _more_resamples(n_resamples, needed, n_tests, alpha) -> str:
    """Why tests cannot reject, and what lets them."""
    if needed > MOST_RESAMPLES:
        return (
            f"--alpha {alpha:g} is below what {MOST_RESAMPLES:,} resamples, the most, can show of "
            f"{n_tests} tests. Pass a larger one."
        )
    return (
        f"{n_resamples} resamples are too few for {n_tests} tests to reject at --alpha {alpha:g}. "
        f"Pass --resamples {needed} or more."
    )


def _facts_of_tests(pairs) -> list[dict]:
    """The tests with their p-values, adjusted for all, as plain data."""
    names = "statistic_pvalues", "direction", "spread", "n_impossible"
    return [
        {"notion": test.notion, "test": test.method, "pvalue": test.pvalue, "pvalue_holm": p}
        | {name: getattr(test, name) for name in names}
        for test, p in pairs
    ]


def _text_of_tests(head, pairs, at_most) -> str:
    """The tests and, of several, a table of their p-values, adjusted for all."""
    texts = [f"H0: calibrated. {head}\n", *(f"{result}\n" for result, _ in pairs)]
    if len(pairs) > 1:
        rows = [(result.notion, pvalue_number(p, at_most)) for result, p in pairs]
        texts.append(Table(("notion", "p, adjusted for all"), rows, "lr").text() + "\n")
    return "\n".join(texts)


# monitor and recalibrate


def _monitor(options):
    _check_figure(options.plot)
    return watch(partial(_predictions_of, options), _only_notion(options), options)


def _same_file(first: str, second: str) -> bool:
    paths = Path(first), Path(second)
    return all(path.exists() for path in paths) and paths[0].samefile(paths[1])


def _recalibrate(options):
    check_targets(options)
    fit = _predictions_of(options) if options.map is None else None
    recalibrator, n_applied, n_kept = recalibrate(fit, options)
    facts = partial(facts_of_map, recalibrator, options, n_applied)
    status = _answer(options, facts, partial(text_of_map, recalibrator, options, n_applied, n_kept))
    is_own = fit is not None and options.second is not None
    if is_own and not options.json and _same_file(options.file, options.second):
        warn(
            f"{options.second}: the recalibration was fitted to these rows. Numbers of the result "
            "are too good; the cross-validated ones above are not. Judge it on other rows.",
            stacklevel=2,
        )
    return status


_FUNCTIONS = {
    "demo": _demonstrate,
    "evaluate": _evaluate_file,
    "report": _report,
    "test": _test_calibration,
    "plot": _plot,
    "compare": _compare,
    "monitor": _monitor,
    "recalibrate": _recalibrate,
    "abstain": _abstain,
    "shift": _shift,
    "sample-size": _sample_size,
}
