"""``python -m skcal``: estimate and test the calibration of predictions."""

from __future__ import annotations

import math
import os
import signal
import sys
import threading
from concurrent.futures import BrokenExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

from skcal._running import recorded_warnings
from skcal._show import as_columns, as_json, number, printable
from skcal.cli.checks import FileError, Predictions
from skcal.cli.evaluate import chosen_notions, demonstration, evaluate
from skcal.cli.files import align, read_predictions
from skcal.cli.monitor import watch
from skcal.cli.parser import MOST, parse
from skcal.cli.recalibrate import check_targets, facts, recalibrate
from skcal.cli.streams import flush, say, tell
from skcal.cli.text_files import STANDARD_INPUT
from skcal.displays import ReliabilityDisplay
from skcal.displays.base import default_resamples, require_matplotlib
from skcal.hypothesis_tests import adjust_pvalues, monte_carlo_test, skce_test
from skcal.notions import resolve_notion
from skcal.report import calibration_report
from skcal.report.figure import draw, save_figure
from skcal.report.measure import skce_options
from skcal.report.views import comparison_text

_FIGURES = (".png", ".svg", ".pdf")
_NO_MEMORY = (
    "The memory does not suffice. Pass fewer samples or classes, a lower --n-jobs or --bins, or "
    "--notion confidence."
)


def main(arguments=None) -> int:
    """Run the command line; return the exit status."""
    options = parse(arguments)
    commands = {
        None: _run_demonstration,
        "evaluate": _run_evaluate,
        "report": _run_report,
        "test": _run_test,
        "plot": _run_plot,
        "compare": _run_compare,
        "monitor": _run_monitor,
        "recalibrate": _run_recalibrate,
    }
    try:
        options.say = _say_nothing if options.quiet else say
        with _ending_orderly():
            status = _told(commands[options.command], options)
            flush()
        return status
    except KeyboardInterrupt:
        tell("interrupted")
        return 128 + 2  # as a shell says of SIGINT
    except BrokenPipeError:  # whoever reads, such as `head`, has read enough
        _close_output()
        return 128 + 13  # as a shell says of SIGPIPE
    except (MemoryError, BrokenExecutor):
        return _refuse(_NO_MEMORY)
    except (FileError, ValueError, ImportError, OSError, RuntimeError) as error:
        text = str(error)
        if isinstance(error, OSError) and error.filename:
            text = f"{error.filename}: {error.strerror}."
        return _refuse(text)


@contextmanager
def _ending_orderly():
    """Let what asks the process to end do so as an error does, after which no file is left behind.

    Signals are for the main thread alone, and one that someone handles, or ignores, is theirs.
    """
    handled = []
    if threading.current_thread() is threading.main_thread():
        ending = [getattr(signal, name, None) for name in ("SIGTERM", "SIGHUP")]
        handled = [one for one in ending if one and signal.getsignal(one) is signal.SIG_DFL]
    try:
        for one in handled:
            signal.signal(one, _end)
        yield
    finally:
        for one in handled:
            signal.signal(one, signal.SIG_DFL)


def _end(number, frame):
    sys.exit(128 + number)


def _say_nothing(text=""):
    """Print for ``--quiet``: the process's standard output is that of all its threads."""


def _told(command, options) -> int:
    """The exit status of a command; its warnings go to the error stream, each once.

    Of a command that fails the error alone is said.
    """
    with recorded_warnings() as caught:
        status = command(options) or 0
    if not options.quiet:
        for text in dict.fromkeys(str(one.message) for one in caught):
            tell(text)
    return status


def _refuse(text) -> int:
    tell(str(FileError(text)))
    return 2


def _close_output():
    """Give Python, which flushes the output when it ends, somewhere to write."""
    with suppress(AttributeError, OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _run_demonstration(options):
    reports = [
        evaluate(name, predictions, options) for name, predictions in demonstration(options.seed)
    ]
    if options.json:
        options.say(as_json(reports))


def _run_evaluate(options):
    report = evaluate(_name(options.file), _read(options), options)
    if options.json:
        options.say(as_json([report]))
    gate = report.get("gate", {"status": 0})
    if gate["status"] == 2 or (gate["status"] and not options.quiet):
        tell(gate["reading"])
    return gate["status"]


def _name(file) -> str:
    """What a file is called."""
    return "standard input" if file == STANDARD_INPUT else file


def _read(options, file=None, groups=None) -> Predictions:
    path = options.file if file is None else file
    return read_predictions(
        path,
        options.label,
        groups,
        options.max_size * 2**30,
        pos_label=options.pos_label,
        normalize=options.normalize,
        ignored=options.ignore,
        from_logits=getattr(options, "logits", False),
    )


def _run_report(options):
    _check_output(options.html, (".html",))
    predictions = _read(options, groups=options.groups)
    name = Path(_name(options.file)).name
    report = _report(predictions, options, name, groups=predictions.groups)
    _save(report, options)
    options.say(report.to_json() if options.json else report)


def _run_compare(options):
    _check_output(options.html, (".html",))
    first = _read(options)
    second = align(first, _read(options, options.second), options.file, options.second)
    names = Path(_name(options.file)).name, Path(_name(options.second)).name
    if names[0] == names[1]:
        names = options.file, options.second
    report = _report(first, options, names[0], compare=second.proba, compare_name=names[1])
    _save(report, options)
    options.say(report.to_json() if options.json else comparison_text(report))


def _run_monitor(options):
    notion = _one_notion(options)
    return watch(_read(options), notion, options)


def _run_recalibrate(options):
    check_targets(options)
    fit = _read(options) if options.map is None else None
    recalibrator, n_applied = recalibrate(fit, options)
    if options.json:
        options.say(as_json(facts(recalibrator, options, n_applied)))
        return
    options.say(f"{recalibrator.summary()}\n")
    if options.save is not None:
        options.say(printable(f"The map is in {options.save}."))
    if options.out is not None:
        options.say(printable(f"{n_applied:,} recalibrated predictions are in {options.out}."))


def _report(predictions, options, name, **more):
    return calibration_report(
        predictions.labels,
        predictions.proba,
        labels=predictions.classes,
        notion=_one_notion(options),
        search=options.search,
        n_bins=options.bins,
        strategy=options.strategy,
        n_resamples=options.resamples,
        outer_cv=options.outer_cv,
        name=name,
        random_state=options.seed,
        n_jobs=options.n_jobs,
        **more,
    )


def _one_notion(options):
    notions = options.notion or ["auto"]
    if len(notions) > 1:
        raise FileError(f"--notion was given more than once; {options.command} takes one.")
    return notions[0]


def _save(report, options):
    if options.html is not None:
        report.save(options.html)


def _check_output(path, endings):
    """Say before the work what would fail after it."""
    if path is None:
        return
    path = Path(path)
    if path.suffix.lower() not in endings:
        raise FileError(f"{path}: unknown format {path.suffix!r}. Use {' or '.join(endings)}.")
    if path.is_dir():
        raise FileError(f"{path}: is a folder. Pass the path of a file.")
    if not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
        raise FileError(f"{path}: the folder {path.parent} is absent or cannot be written.")
    require_matplotlib()


def _run_plot(options):
    _check_output(options.out, _FIGURES)
    proba, labels, classes = _read(options)[:3]
    notion = _one_notion(options)
    drawn = len(labels) * resolve_notion(notion, proba).values_per_row(len(classes))
    display = ReliabilityDisplay.from_predictions(
        labels,
        proba,
        labels=classes,
        notion=notion,
        method=options.method,
        n_bins=options.bins,
        strategy=options.strategy,
        n_resamples=options.resamples or default_resamples(drawn),
        random_state=options.seed,
        name=Path(_name(options.file)).name,
        plot=False,
    )
    save_figure(draw(display), options.out)


def _run_test(options):
    predictions = _read(options)
    facts = [
        fact
        for notion in chosen_notions(options.notion, predictions.proba)
        for fact in _tests(predictions, notion, options)
    ]
    adjusted = adjust_pvalues([fact["pvalue"] for fact in facts]).tolist()
    facts = [{**fact, "pvalue_holm": p} for fact, p in zip(facts, adjusted, strict=True)]
    _print_tests(facts, predictions, options)
    return _status_of_tests(adjusted, options)


def _status_of_tests(adjusted, options) -> int:
    """1 where calibration is rejected, 2 where the resamples are too few for that."""
    if options.alpha is None or min(adjusted) <= options.alpha:
        return int(options.alpha is not None)
    enough = math.ceil(len(adjusted) / options.alpha) - 1
    if enough > MOST:
        return _refuse(
            f"--alpha {options.alpha:g} is below what {MOST:,} resamples, the most, can show of "
            f"{len(adjusted)} tests. Pass a larger one."
        )
    if options.resamples < enough:
        return _refuse(
            f"{options.resamples} resamples are too few for {len(adjusted)} tests to reject at "
            f"--alpha {options.alpha:g}. Pass --resamples {enough} or more."
        )
    return 0


def _print_tests(facts, predictions, options):
    if options.json:
        options.say(as_json(facts))
        return
    n = len(predictions.labels)
    options.say(printable(f"H0: calibrated. {n:,} predictions in {_name(options.file)}\n"))
    table = [
        (
            fact["notion"],
            number(fact["estimate"]),
            f"{fact['pvalue']:.2g}",
            f"{fact['pvalue_holm']:.2g}",
            fact["test"],
        )
        for fact in facts
    ]
    header = ("notion", "estimate", "p", "p (Holm)", "test")
    options.say("\n".join(as_columns([header, *table], "<>>><")))


def _tests(predictions, notion, options):
    """ECE for scalar notions, and the SKCE, by the outcomes redrawn where affordable."""
    proba, labels, classes = predictions[:3]
    shared = {
        "notion": notion,
        "labels": classes,
        "random_state": options.seed,
        "n_jobs": options.n_jobs,
    }
    results = []
    if notion.scalar:
        results.append(monte_carlo_test(labels, proba, n_resamples=options.resamples, **shared))
    n_columns = 1 if notion.scalar else len(classes)
    method = skce_options(len(labels), n_columns, options.resamples)
    if not notion.by_class or method["method"] == "monte-carlo":
        results.append(skce_test(labels, proba, **shared, **method))
    for result in results:
        yield {
            "notion": result.notion,
            "test": result.method,
            "estimate": result.estimate,
            "statistic": result.statistic,
            "pvalue": result.pvalue,
        }
