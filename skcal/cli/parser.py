"""The parser of the command line."""

from __future__ import annotations

import argparse
import sys
from functools import cache
from typing import Any, NamedTuple

from skcal import __version__
from skcal._show import stated
from skcal.cli.gates import GATED_ERRORS
from skcal.cli.options import OPTIONS, Once, at_least
from skcal.cli.parts import files_named, name_of
from skcal.cli.planning import MAPS
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
    if options.command == "demo":
        return options
    if options.command in ("report", "compare"):
        for notion in options.notion or []:
            if notion not in _REPORTED:
                parser.error(
                    f"--notion {notion} is not an option of {options.command}: choose from "
                    f"{', '.join(_REPORTED)}; --search adds the canonical and class-wise error"
                )
    if options.command in ("evaluate", "report", "compare"):
        _check_limit(options, parser)
    if options.command in ("report", "compare") and options.outer_cv and not options.search:
        parser.error("--outer-cv is for --search: pass both")
    options.arguments = [str(argument) for argument in arguments]
    if options.command == "compare" and options.alpha is not None and not options.fail_if_worse:
        parser.error("--alpha is the level of --fail-if-worse: pass that, too")
    if options.command == "recalibrate":
        _complete_recalibrate(options, parser)
    if options.command == "sample-size" and not (
        options.file or options.linear_predictor or options.c_statistic
    ):
        parser.error("pass FILE, --linear-predictor or --c-statistic: what predictions to expect")
    if options.confidence is not None or options.correct is not None:
        _complete_answers(options, parser)
    if options.command == "compare":
        _complete_comparison(options, parser)
    _refuse_one_column_twice(options, parser)
    options.files = ()
    if isinstance(options.file, list):
        try:
            files = files_named(options.file)
        except FileError as error:
            parser.error(str(error))
        options.files = files if len(files) > 1 else ()
        options.file = name_of(files) if options.files else str(files[0])
    options.ignore, options.frames = [*options.ignore, *options.id], {}
    of_one_file = options.second_score is not None or options.second_only
    if options.file == options.second == "-" and not of_one_file:
        parser.error("the standard input can be one file, not both")
    return options


def _check_limit(options, parser):
    """Refuse errors without an upper bound and limits that no error can be above."""
    errors, limit = options.error or [], options.max_error
    if options.command == "evaluate" and options.by and limit is None:
        parser.error("--by decides for subgroups by --max-error: pass that. report --by shows them")
    for kind in errors:
        if limit is None and kind in GATED_ERRORS and kind not in ErrorEstimate.kinds:
            parser.error(f"--error {kind} is what --max-error can bound: pass --max-error, too")
        if limit is not None and kind not in GATED_ERRORS:
            parser.error(
                f"--error {kind}: without assumptions this error has no upper bound, so that "
                "--max-error cannot show that it is small. Use --error calibration, cutoff or ece"
            )
    if limit is not None and limit >= 1:
        kind = GATED_ERRORS[(errors or ["calibration"])[0]]
        parser.error(
            f"--max-error {limit:g}: no {kind} is above 1. Errors are in units of probability: "
            f"{limit:g} % is {limit / 100:g}"
        )


class _Command(NamedTuple):
    """A command's help, its arguments, and the options with another help, or more, there."""

    help: str
    example: str
    files: dict[str, dict[str, Any]]
    options: str
    changed: dict[str, str | dict[str, Any]] = {}
    description: str = ""


_OF_FILES = (
    "quiet label pos-label normalize only distinct ignore id score predicted prefix labels "
    "confidence correct sep decimal header encoding scale percent logits log-probabilities bounds "
    "drop-missing missing drop-label empty-label sheet max-size"
)
_RANDOM = "seed n-jobs"
_SAMPLES = "groups weight count soft"
_REPORT = (
    f"{_SAMPLES} by segments detail html description outer-cv notion search bins strategy "
    "resamples resolution max-error"
)
_OF_REPORTS: dict = {
    "max-error": "the calibration error that you tolerate, such as 0.02: the report says whether "
    "the error is below it, or small, moderate or large beside it (default: 0.05, or a fifth of "
    "the rate of a rare outcome)",
    "notion": "confidence, or binary for one or two columns",
    "outer-cv": "a whole search in each of this many outer folds for tuned errors",
}
_FILE: dict = {"file": {"metavar": "FILE"}}
_SEVERAL: dict = {"file": {"metavar": "FILE", "nargs": "+"}}
_COMMANDS = {
    "demo": _Command(
        "evaluate two classifiers of handwritten digits, as a demonstration",
        "--details",
        {},
        f"{_RANDOM} json notion cv outer-cv quiet details resolution",
    ),
    "evaluate": _Command(
        "say whether the probabilities can be trusted, and how large the calibration error is",
        "predictions.csv --label y",
        _SEVERAL,
        f"{_RANDOM} json notion cv outer-cv {_OF_FILES} {_SAMPLES} details all-rows error "
        "max-error by resolution",
        {
            "by": "with --max-error: decide for each subgroup that this column names, too: 0 if "
            "the error of each is shown to be below, 1 if that of one is shown to be above; may be "
            "repeated"
        },
    ),
    "report": _Command(
        "estimates, tests, scores and a reliability diagram in one report",
        "predictions.csv --html report.html",
        _SEVERAL,
        f"{_RANDOM} json {_OF_FILES} {_REPORT} target",
        {
            **_OF_REPORTS,
            "max-error": f"{_OF_REPORTS['max-error']}; exit with 0, 1 or 3 as evaluate",
        },
    ),
    "test": _Command(
        "test whether the predictions are calibrated",
        "predictions.csv --notion canonical",
        _SEVERAL,
        f"{_RANDOM} json {_OF_FILES} {_SAMPLES} notion resamples alpha resolution",
        {
            "resamples": "of the outcomes (default: 999, of more than 100,000 samples 199, or as "
            "many as the level takes)",
            "alpha": "exit with 1 if a p-value, adjusted by Holm's method, is at most this, else "
            "with 0, which does not show calibration; with 2 if the given --resamples are too few "
            "to reject",
        },
    ),
    "plot": _Command(
        "draw a reliability diagram",
        "predictions.csv --out figure.svg --method isotonic",
        _SEVERAL,
        f"{_RANDOM} {_OF_FILES} {_SAMPLES} out notion method axes bins strategy resamples",
        {
            "notion": "confidence, top-label, classwise (a panel a class) or binary",
            "bins": {"default": None, "help": "default: as many as suit the samples"},
        },
    ),
    "compare": _Command(
        "compare two models on the same samples",
        "a.csv b.csv --html comparison.html",
        {"file": {"metavar": "A"}, "second": {"metavar": "B", "nargs": "?"}},
        f"{_RANDOM} json {_OF_FILES} fail-if-worse alpha {_REPORT}",
        {
            **_OF_REPORTS,
            "max-error": f"{_OF_REPORTS['max-error']}; the exit status is that of --fail-if-worse",
            "alpha": "level of --fail-if-worse, two-sided (default: 0.05)",
            "score": {
                "action": "append",
                "help": "the one column that holds P(positive class); given twice, those of the "
                "first and of the second model",
            },
        },
        "Compare two models on the same samples, row by row: one estimator, the same bins, a "
        "paired test. Two columns of one file: compare A --score FIRST --score SECOND. Rows of two "
        "models in one file: compare A --only model=FIRST --only model=SECOND --id COLUMN.",
    ),
    "monitor": _Command(
        "watch a model: add a batch to the evidence, exit with 1 after an alarm",
        "state.json today.csv --id customer --id date",
        {
            "state": {"metavar": "STATE", "help": "of the monitor, JSON; made if absent"},
            "file": {
                "metavar": "FILE",
                "nargs": "?",
                "help": "the batch; without one STATE is shown as it is",
            },
        },
        f"json {_OF_FILES} groups soft date plot notion alpha run-length again skip-unlabelled "
        "acknowledge reset note plan batch format",
        {
            "confidence": argparse.SUPPRESS,  # which it refuses with a remedy
            "correct": argparse.SUPPRESS,
            "notion": "what is watched, for a new STATE (default: binary or confidence)",
            "alpha": {
                "type": float,
                "help": "largest probability of a false alarm over all time, for a new STATE "
                "(default: 0.05)",
            },
        },
        "Add a batch of predictions and labels to the evidence in STATE. A batch that was added "
        "already, as when a job runs twice, is not added again, and a file with many old rows is "
        "refused; with --id no row is added twice. "
        "Exit status: 0 no alarm or an acknowledged one, 1 alarm, 2 the batch could not be read, "
        "and STATE is as it was. With --soft a sample has one vote.",
    ),
    "recalibrate": _Command(
        "fit a recalibration map to one file and apply it to another, or save it",
        "labelled.csv new.csv --out recalibrated.csv",
        {"file": {"metavar": "FIT"}, "second": {"metavar": "APPLY", "nargs": "?"}},
        f"{_RANDOM} json {_OF_FILES} {_SAMPLES} out save map method scoring",
        {
            "out": {
                "metavar": "NEW",
                "required": False,
                "help": "like APPLY, with recalibrated probabilities",
            },
            "method": {
                "default": None,
                "choices": sorted(MAPS),
                "help": "the only map to try: intercept, softmax(log p + b), where the base rate "
                "is new, or slope, softmax(log p / T) (default: several, and the mean of them)",
            },
        },
        "Choose a recalibration map by its held-out loss on labelled predictions and apply it to "
        "others, whose labels are not used and may be absent; their other columns stay. The "
        "predictions stay as they are if recalibration raises the cross-validated loss, or if the "
        "gains of loss and calibration error are too small. An average of maps that includes no "
        "change needs no significant gain; the result says if a gain is not certain. With --map "
        "the only file is APPLY.",
    ),
    "abstain": _Command(
        "find the confidence from which on few answers are wrong",
        "answers.jsonl --confidence confidence --correct correct --max-risk 0.1",
        _FILE,
        f"json {_OF_FILES} {_SAMPLES} max-risk",
        {},
        "Find the lowest confidence from which on at most a given share of answers is wrong, with "
        "95 % confidence: use such answers, and abstain from the others. Without --confidence, an "
        "answer is the most probable class. Exit with 3 if no threshold is proven.",
    ),
    "shift": _Command(
        "estimate the calibration error where the population has shifted and has no labels",
        "labelled.csv new.csv --feature age --feature sex --score p",
        {"file": {"metavar": "SOURCE"}, "second": {"metavar": "TARGET"}},
        f"seed json {_OF_FILES} groups weight count notion feature resamples",
        {
            "notion": "confidence, binary or top-label (default: binary or confidence)",
            "resamples": {
                "type": at_least(20),
                "default": 100,
                "help": "of both files, for the error of the weights (default: 100)",
            },
        },
        "Estimate the calibration error in TARGET, a file of predictions without labels, by "
        "weights of the labelled samples of SOURCE. Assumption: events are more or less frequent, "
        "and within each class cases look as before; or, with --feature, cases are others, and "
        "those with the same features have the same risk.",
    ),
    "sample-size": _Command(
        "say how many samples a validation study needs",
        "--prevalence 0.1 --c-statistic 0.8 --threshold 0.2",
        {
            "file": {
                "metavar": "FILE",
                "nargs": "?",
                "help": "predictions like those of the study, such as those of a pilot",
            }
        },
        "json quiet label ignore score sep decimal header encoding scale percent logits "
        "log-probabilities max-size "
        "prevalence c-statistic linear-predictor oe-width slope-width c-width "
        "threshold net-benefit-width max-error confidence-level",
        {
            "max-error": "also find the number of samples at which 9 in 10 studies of a "
            "calibrated model show that the calibration error is below LIMIT"
        },
    ),
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
        said = stated(command.description or command.help)
        subparser = commands.add_parser(
            name,
            help=command.help,
            description=f"{said} {_FILES}" if command.files else said,
            epilog=f"example: python -m skcal {name} {command.example}",
        )
        subparser.set_defaults(parser=subparser, **_defaults())  # before those of the command
        for file, how in command.files.items():
            subparser.add_argument(file, **how)
        scale = subparser.add_mutually_exclusive_group() if command.files else subparser
        for option in command.options.split():
            group = scale if option in ("scale", "percent") else subparser
            changed = command.changed.get(option, {})
            changed = {"help": changed} if isinstance(changed, str) else changed
            how = OPTIONS[f"--{option}"] | changed
            group.add_argument(f"--{option}", **{"action": Once} | how)
    return parser


def takes(command: str, option: str) -> bool:
    """Whether a command has an option."""
    return option in _COMMANDS[command].options.split()


def _defaults() -> dict[str, Any]:
    """What commands without an option take for it, by names of parsed options."""
    defaults: dict[str, Any] = {"second": None, "second_score": None, "second_only": []}
    for option, how in OPTIONS.items():
        value = how.get("default", False if how.get("action") == "store_true" else None)
        defaults.setdefault(how.get("dest", option[2:].replace("-", "_")), value)
    return defaults


def _complete_comparison(options, parser):
    """Let two scores be those of two models, perhaps of one file."""
    scores = [options.score] if isinstance(options.score, str) else options.score or []
    pairs = [text.partition("=")[0] for text in options.only]
    if options.second is None and len(pairs) == 2 and pairs[0] == pairs[1]:  # two models
        options.second, options.second_only = options.file, options.only[1:]
        options.only = options.only[:1]
    if len(scores) > 2:
        parser.error("--score is given more than twice: compare takes two models")
    if options.second is None:
        if len(scores) != 2:
            parser.error(
                "pass two files, or one with --score FIRST --score SECOND or --only MODEL=FIRST "
                "--only MODEL=SECOND"
            )
        options.second = options.file
        if scores[0] == scores[1]:
            parser.error(f"--score {scores[0]} is given twice: name two columns")
    options.score = scores[0] if scores else options.score
    options.second_score = scores[-1] if scores else None


def _refuse_one_column_twice(options, parser):
    """Refuse a column of predictions that is that of labels, too, or of something else."""
    roles = {"--label": options.label, "--weight": options.weight, "--groups": options.groups}
    roles |= {"--predicted": options.predicted, "--count": options.count, "--date": options.date}
    scores = {options.score, options.second_score} - {None}
    if options.confidence is not None:
        roles["--correct"] = roles.pop("--label")
    for option, column in roles.items():
        if column in scores:
            score = "--confidence" if options.confidence is not None else "--score"
            parser.error(f"{score} and {option} name the same column, {column}")
    if options.predicted is not None and options.predicted == options.label:
        parser.error(f"--predicted and --label name the same column, {options.label}")
    if options.logits and options.log_probabilities:
        parser.error("--logits and --log-probabilities exclude each other")


def _complete_answers(options, parser):
    """Let the columns of confidences and of right answers be those of predictions and labels."""
    if options.confidence is None or options.correct is None:
        lacking = "--correct" if options.correct is None else "--confidence"
        parser.error(f"{lacking} COLUMN is missing: --confidence and --correct belong together")
    settled = ("score", "soft", "notion", "predicted", "prefix", "labels")
    _refuse(options, settled, "--confidence, which settles that", parser)
    if options.command == "monitor":
        parser.error("--confidence is not an option of monitor: pass --score and --label")
    options.score, options.label = options.confidence, options.correct
    options.notion = [ANSWERS]


def _refuse(options, names, reason, parser):
    """Refuse options, by their names in the parsed arguments, if they are given."""
    for name in names:
        if getattr(options, name):
            parser.error(f"--{name.replace('_', '-')} is not an option with {reason}")


def _complete_recalibrate(options, parser):
    """Check which files there are; with --map the first is APPLY."""
    if options.map is not None:
        settled = ("save", "logits", "pos_label", "method", "groups", "weight", "count", "soft")
        _refuse(options, settled, "--map, whose fit has settled that", parser)
        if options.second is not None:
            parser.error("with --map there is nothing to fit to: pass APPLY alone")
        options.file, options.second = None, options.file
    if (options.second is None) != (options.out is None):
        lacking = "--out NEW" if options.out is None else "APPLY"
        parser.error(f"{lacking} is missing: recalibrate FIT APPLY --out NEW")
    if options.second is None and options.save is None:
        parser.error("nothing to do: pass APPLY and --out NEW, or --save MAP to keep the map")
