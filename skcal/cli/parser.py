"""The parser of the command line."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from functools import cache
from typing import Any

from skcal import __version__
from skcal._show import stated
from skcal.cli.gates import GATED_ERRORS
from skcal.cli.options import OPTIONS, Once
from skcal.cli.parts import files_named, name_of
from skcal.cli.problems import FileError
from skcal.model_selection import ErrorEstimate
from skcal.notions import ANSWERS

_FILES = (
    "FILE: .csv, .tsv, .txt, .jsonl (an object on each line), .json, .xlsx or .parquet, perhaps as "
    ".gz, .bz2, .xz or .zip, or a folder of them (- is the standard input), with a column of "
    "probabilities per class, named by the class, perhaps behind the same words (prob_cat), and a "
    "column of labels (a single column of probabilities, or --score, holds P(label 1), or "
    "P(--pos-label); a column may hold lists of probabilities, see --labels); or .npz with arrays "
    "'proba' and 'labels' (or those of --score and --label), and perhaps 'classes'. "
    "Several files, and names with *, are one table. "
    "If a file cannot be read, all of its problems are listed, with the command that reads it, or, "
    "where several readings are possible, with the command of each."
)
_REPORTED = ("confidence", "binary")
_OF_THE_PROGRAM = ("-h", "--help", "--version")


def parse(arguments=None) -> argparse.Namespace:
    """Read the arguments; without a command they are those of the demonstration."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if not arguments or (arguments[0][0] == "-" and arguments[0] not in _OF_THE_PROGRAM):
        arguments = ["demo", *arguments]
    options, unknown = make_parser().parse_known_args(arguments)
    parser = options.parser  # of the command, whose usage errors show
    if unknown:
        place = " (options stand after the command)" if options.command == "demo" else ""
        parser.error(f"unrecognized arguments: {' '.join(unknown)}{place}")
    options.arguments = [str(argument) for argument in arguments]
    for problem in _problems(options) if options.command != "demo" else ():
        parser.error(problem)
    return options


_OF_FILES = (
    "quiet label pos-label normalize only distinct ignore id score predicted prefix labels "
    "confidence correct sep decimal header encoding scale percent logits log-probabilities bounds "
    "drop-missing missing drop-label empty-label sheet max-size"
)
_OF_REPORTS = (
    "groups weight count soft by segments detail html description outer-cv notion search bins "
    "strategy resamples resolution max-error"
)
#: Commands with their files (dest=METAVAR, with ? if it may be absent, + if there may be several),
#: and what help says of them; a description is in the help of the command itself.
_COMMANDS_TABLE = f"""
demo
  help: evaluate two classifiers of handwritten digits, as a demonstration
  example: --details
  options: seed n-jobs json notion cv outer-cv quiet details resolution
evaluate file=FILE+
  help: say whether the probabilities can be trusted, and how large the calibration error is
  example: predictions.csv --label y
  options: seed n-jobs json notion cv outer-cv {_OF_FILES} groups weight count soft details
    all-rows error max-error by resolution
report file=FILE+
  help: estimates, tests, scores and a reliability diagram in one report
  example: predictions.csv --html report.html
  options: seed n-jobs json {_OF_FILES} {_OF_REPORTS} target
test file=FILE+
  help: test whether the predictions are calibrated
  example: predictions.csv --notion canonical
  options: seed n-jobs json {_OF_FILES} groups weight count soft notion resamples alpha resolution
plot file=FILE+
  help: draw a reliability diagram
  example: predictions.csv --out figure.svg --method isotonic
  options: seed n-jobs {_OF_FILES} groups weight count soft out notion method axes bins strategy
    resamples
compare file=A second=B?
  help: compare two models on the same samples
  description: Compare two models on the same samples, row by row: one estimator, the same bins, a
    paired test. Two columns of one file: compare A --score FIRST --score SECOND. Rows of two
    models in one file: compare A --only model=FIRST --only model=SECOND --id COLUMN.
  example: a.csv b.csv --html comparison.html
  options: seed n-jobs json {_OF_FILES} fail-if-worse alpha {_OF_REPORTS}
monitor state=STATE file=FILE?
  help: watch a model: add a batch to the evidence, exit with 1 after an alarm
  description: Add a batch of predictions and labels to the evidence in STATE. A batch that was
    added already, as when a job runs twice, is not added again, and a file with many old rows is
    refused; with --id no row is added twice. Exit status: 0 no alarm or an acknowledged one, 1
    alarm, 2 the batch could not be read, and STATE is as it was. With --soft a sample has one
    vote.
  example: state.json today.csv --id customer --id date
  options: json {_OF_FILES} groups soft date plot notion alpha run-length again skip-unlabelled
    acknowledge reset note plan batch format
recalibrate file=FIT second=APPLY?
  help: fit a recalibration map to one file and apply it to another, or save it
  description: Choose a recalibration map by its held-out loss on labelled predictions and apply it
    to others, whose labels are not used and may be absent; their other columns stay. The
    predictions stay as they are if recalibration raises the cross-validated loss, or if the gains
    of loss and calibration error are too small. An average of maps that includes no change needs
    no significant gain; the result says if a gain is not certain. With --map the only file is
    APPLY.
  example: labelled.csv new.csv --out recalibrated.csv
  options: seed n-jobs json {_OF_FILES} groups weight count soft out save map method scoring
abstain file=FILE
  help: find the confidence from which on few answers are wrong
  description: Find the lowest confidence from which on at most a given share of answers is wrong,
    with 95 % confidence: use such answers, and abstain from the others. Without --confidence, an
    answer is the most probable class. Exit with 3 if no threshold is proven.
  example: answers.jsonl --confidence confidence --correct correct --max-risk 0.1
  options: json {_OF_FILES} groups weight count soft max-risk
shift file=SOURCE second=TARGET
  help: estimate the calibration error where the population has shifted and has no labels
  description: Estimate the calibration error in TARGET, a file of predictions without labels, by
    weights of the labelled samples of SOURCE. Assumption: events are more or less frequent, and
    within each class cases look as before; or, with --feature, cases are others, and those with
    the same features have the same risk.
  example: labelled.csv new.csv --feature age --feature sex --score p
  options: seed json {_OF_FILES} groups weight count notion feature resamples
sample-size file=FILE?
  help: say how many samples a validation study needs
  example: --prevalence 0.1 --c-statistic 0.8 --threshold 0.2
  options: json quiet label ignore score sep decimal header encoding scale percent logits
    log-probabilities max-size prevalence c-statistic linear-predictor oe-width slope-width c-width
    threshold net-benefit-width max-error confidence-level
"""
_COMMANDS = {
    name: {"files": files, **dict(re.findall(r"^  (\w+): (.*(?:\n    .*)*)", lines, re.MULTILINE))}
    for name, files, lines in re.findall(
        r"^(\S+)(.*)\n((?:  .*\n)*)", _COMMANDS_TABLE, re.MULTILINE
    )
}


@cache
def make_parser() -> argparse.ArgumentParser:
    """Return the parser of ``skcal``."""
    parser = argparse.ArgumentParser(
        prog="skcal",
        description="Estimate and test the calibration of a classifier's probabilities. Without a "
        "command: demo.",
        epilog="example: python -m skcal report predictions.csv --html report.html",
    )
    parser.add_argument("--version", action="version", version=f"skcal {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    for name, command in _COMMANDS.items():
        files = command["files"].split()
        said = stated(" ".join(command.get("description", command["help"]).split()))
        subparser = commands.add_parser(
            name,
            help=command["help"],
            description=f"{said} {_FILES}" if files else said,
            epilog=f"example: python -m skcal {name} {command['example']}",
        )
        subparser.set_defaults(parser=subparser, **_defaults())  # before those of the command
        for dest, metavar in (file.split("=") for file in files):
            how = OPTIONS.get(f"{name}.{dest}", {}) | {"metavar": metavar.rstrip("?+")}
            subparser.add_argument(dest, **how, nargs={"?": "?", "+": "+"}.get(metavar[-1]))
        scale = subparser.add_mutually_exclusive_group() if files else subparser
        for option in command["options"].split():
            group = scale if option in ("scale", "percent") else subparser
            how = OPTIONS.get(f"{name}.{option}", OPTIONS[option])
            group.add_argument(f"--{option}", **{"action": Once} | how)
    return parser


def takes(command: str, option: str) -> bool:
    """Whether a command has an option."""
    return option in _COMMANDS[command]["options"].split()


def _defaults() -> dict[str, Any]:
    """What commands without an option take for it, by names of parsed options."""
    defaults: dict[str, Any] = {"second": None, "second_score": None, "second_only": []}
    for option in [name for name in OPTIONS if "." not in name]:
        how = OPTIONS[option]
        value = how.get("default", False if how.get("action") == "store_true" else None)
        defaults.setdefault(how.get("dest", option.replace("-", "_")), value)
    return defaults


# What is checked of options beside each other


def _problems(options) -> Iterator[str]:
    """What is wrong with the options, if anything; what follows from them is completed."""
    command = options.command
    if command in ("report", "compare"):
        for notion in options.notion or []:
            if notion not in _REPORTED:
                yield (
                    f"--notion {notion} is not an option of {command}: choose from "
                    f"{', '.join(_REPORTED)}; --search adds the canonical and class-wise error"
                )
    if command in ("evaluate", "report", "compare"):
        yield from _wrong_limits(options)
    if command in ("report", "compare") and options.outer_cv and not options.search:
        yield "--outer-cv is for --search: pass both"
    if command == "compare" and options.alpha is not None and not options.fail_if_worse:
        yield "--alpha is the level of --fail-if-worse: pass that, too"
    if command == "recalibrate":
        yield from _complete_recalibrate(options)
    expected = options.file or options.linear_predictor or options.c_statistic
    if command == "sample-size" and not expected:
        yield "pass FILE, --linear-predictor or --c-statistic: what predictions to expect"
    if options.confidence is not None or options.correct is not None:
        yield from _complete_answers(options)
    if command == "compare":
        yield from _complete_comparison(options)
    yield from _columns_named_twice(options)
    options.files = ()
    if isinstance(options.file, list):
        try:
            files = files_named(options.file)
        except FileError as error:
            yield str(error)
        options.files = files if len(files) > 1 else ()
        options.file = name_of(files) if options.files else str(files[0])
    options.ignore, options.frames = [*options.ignore, *options.id], {}
    of_one_file = options.second_score is not None or options.second_only
    if options.file == options.second == "-" and not of_one_file:
        yield "the standard input can be one file, not both"


def _wrong_limits(options) -> Iterator[str]:
    """Refuse errors without an upper bound and limits that no error can be above."""
    errors, limit = options.error or [], options.max_error
    if options.command == "evaluate" and options.by and limit is None:
        yield "--by decides for subgroups by --max-error: pass that. report --by shows them"
    for kind in errors:
        if limit is None and kind in GATED_ERRORS and kind not in ErrorEstimate.kinds:
            yield f"--error {kind} is what --max-error can bound: pass --max-error, too"
        if limit is not None and kind not in GATED_ERRORS:
            yield (
                f"--error {kind}: without assumptions this error has no upper bound, so that "
                "--max-error cannot show that it is small. Use --error calibration, cutoff or ece"
            )
    if limit is not None and limit >= 1:
        kind = GATED_ERRORS[(errors or ["calibration"])[0]]
        yield (
            f"--max-error {limit:g}: no {kind} is above 1. Errors are in units of probability: "
            f"{limit:g} % is {limit / 100:g}"
        )


def _complete_recalibrate(options) -> Iterator[str]:
    """Check which files there are; with --map the first is APPLY."""
    if options.map is not None:
        settled = "save logits pos_label method groups weight count soft"
        yield from _given(options, settled, "--map, whose fit has settled that")
        if options.second is not None:
            yield "with --map there is nothing to fit to: pass APPLY alone"
        options.file, options.second = None, options.file
    if (options.second is None) != (options.out is None):
        lacking = "--out NEW" if options.out is None else "APPLY"
        yield f"{lacking} is missing: recalibrate FIT APPLY --out NEW"
    if options.second is None and options.save is None:
        yield "nothing to do: pass APPLY and --out NEW, or --save MAP to keep the map"


def _complete_answers(options) -> Iterator[str]:
    """Let the columns of confidences and of right answers be those of predictions and labels."""
    if options.confidence is None or options.correct is None:
        lacking = "--correct" if options.correct is None else "--confidence"
        yield f"{lacking} COLUMN is missing: --confidence and --correct belong together"
    settled = "score soft notion predicted prefix labels"
    yield from _given(options, settled, "--confidence, which settles that")
    if options.command == "monitor":
        yield "--confidence is not an option of monitor: pass --score and --label"
    options.score, options.label = options.confidence, options.correct
    options.notion = [ANSWERS]


def _given(options, names: str, reason: str) -> Iterator[str]:
    """Refuse options, by their names in the parsed arguments, that are given."""
    for name in filter(vars(options).get, names.split()):
        yield f"--{name.replace('_', '-')} is not an option with {reason}"


def _complete_comparison(options) -> Iterator[str]:
    """Let two scores be those of two models, perhaps of one file."""
    scores = [options.score] if isinstance(options.score, str) else options.score or []
    pairs = [text.partition("=")[0] for text in options.only]
    if options.second is None and len(pairs) == 2 and pairs[0] == pairs[1]:  # two models
        options.second, options.second_only = options.file, options.only[1:]
        options.only = options.only[:1]
    if len(scores) > 2:
        yield "--score is given more than twice: compare takes two models"
    if options.second is None:
        if len(scores) != 2:
            yield (
                "pass two files, or one with --score FIRST --score SECOND or --only MODEL=FIRST "
                "--only MODEL=SECOND"
            )
        options.second = options.file
        if scores[0] == scores[1]:
            yield f"--score {scores[0]} is given twice: name two columns"
    options.score = scores[0] if scores else options.score
    options.second_score = scores[-1] if scores else None


def _columns_named_twice(options) -> Iterator[str]:
    """Refuse a column of predictions that is that of labels, too, or of something else."""
    of_answers = options.confidence is not None
    score, label = ("--confidence", "--correct") if of_answers else ("--score", "--label")
    roles = [label, "--weight", "--groups", "--predicted", "--count", "--date"]
    for role in [*roles[1:], label] if of_answers else roles:
        column = getattr(options, role[2:])
        if column is not None and column in (options.score, options.second_score):
            yield f"{score} and {role} name the same column, {column}"
    if options.predicted is not None and options.predicted == options.label:
        yield f"--predicted and --label name the same column, {options.label}"
    if options.logits and options.log_probabilities:
        yield "--logits and --log-probabilities exclude each other"
