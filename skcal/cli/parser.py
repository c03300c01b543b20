"""The parser of the command line."""

from __future__ import annotations

import argparse
import codecs
import sys
from functools import cache

from skcal import __version__
from skcal.cli.gates import GATED_ERRORS
from skcal.cli.predictions import PERCENT
from skcal.cli.recalibrate import MAPS
from skcal.model_selection.errors import KINDS

_FILES = (
    "FILE: .csv, .csv.gz, .tsv, .jsonl (an object on each line) or .parquet (- is the standard "
    "input) with a column of probabilities per class, named by the class, and a column of labels "
    "(a single column of probabilities holds P(label 1), or P(--pos-label)); or .npz with arrays "
    "'proba' and 'labels', and perhaps 'classes'. If a file cannot be read, all of its problems "
    "are listed, with a command that reads it."
)
_NOTION = (
    "notion of calibration; may be repeated (default: binary for one and two columns, confidence "
    "and canonical for more)"
)
MOST_RESAMPLES = 10**6  # resamples
_REPORTED = ("confidence", "binary")
_OF_THE_PROGRAM = ("-h", "--help", "--version")
# What commands without these options take for them.
_WITHOUT: dict = {
    "second": None,
    "groups": None,
    "weight": None,
    "soft": None,
    "by": [],
    "segments": [],
    "logits": False,
    "skip_unlabelled": False,
    "correct": None,
}


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
    if options.command == "evaluate":
        _check_limit(options, parser)
    options.arguments = [str(one) for one in arguments]
    if options.command == "compare" and options.alpha is not None and not options.fail_if_worse:
        parser.error("--alpha is the level of --fail-if-worse: pass that, too")
    if options.command == "recalibrate":
        _complete_recalibrate(options, parser)
    if options.confidence is not None or options.correct is not None:
        _complete_answers(options, parser)
    if options.id is not None:
        options.ignore = [*options.ignore, options.id]
    if options.file == options.second == "-":
        parser.error("the standard input can be one file, not both")
    return options


def _check_limit(options, parser):
    """Refuse errors without an upper bound and limits that no error can be above."""
    errors, limit = options.error or [], options.max_error
    if options.by and limit is None:
        parser.error("--by decides for subgroups by --max-error: pass that. report --by shows them")
    for kind in errors:
        if limit is None and kind in GATED_ERRORS and kind not in KINDS:
            parser.error(f"--error {kind} is what --max-error can bound: pass --max-error, too")
        if limit is not None and kind not in GATED_ERRORS:
            parser.error(
                f"--error {kind}: without assumptions this error has no upper bound, so that "
                "--max-error cannot show that it is small. Use --error calibration, cutoff, ece or "
                "rms"
            )
    if limit is not None and limit >= 1:
        kind = GATED_ERRORS[(errors or ["calibration"])[0]]
        parser.error(
            f"--max-error {limit:g}: no {kind} is above 1. Errors are in units of probability: "
            f"{limit:g} % is {limit / 100:g}"
        )


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
    _add_demo(commands, [_random_options(), _json_option(), _search_options(), _quiet_option()])
    _add_evaluate(commands, [_random_options(), _json_option(), _search_options(), _file_options()])
    _add_report(commands, [_random_options(), _json_option(), _file_options()])
    _add_test(commands, [_random_options(), _json_option(), _file_options()])
    _add_plot(commands, [_random_options(), _file_options()])
    _add_compare(commands, [_random_options(), _json_option(), _file_options()])
    _add_monitor(commands, [_json_option(), _file_options()])
    _add_recalibrate(commands, [_random_options(), _json_option(), _file_options()])
    _add_abstain(commands, [_json_option(), _file_options()])
    return parser


def _random_options() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(add_help=False)
    options.add_argument(
        "--seed", type=at_least(0, 2**32 - 1), default=0, help="of everything random (default: 0)"
    )
    options.add_argument(
        "--n-jobs",
        type=_jobs,
        help="parallel jobs; -1 is all cores (default: 1)",
    )
    return options


def _json_option() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(add_help=False)
    options.add_argument("--json", action="store_true", help="print JSON instead of tables")
    return options


def _quiet_option() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(add_help=False)
    options.add_argument(
        "--quiet", action="store_true", help="print nothing but errors; the exit status tells"
    )
    return options


def _search_options() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(add_help=False)
    _add_notion(options, _NOTION)
    options.add_argument(
        "--cv", type=at_least(2, 1000), default=5, help="folds that choose (default: 5)"
    )
    options.add_argument(
        "--outer-cv",
        type=at_least(2, 1000),
        help="a whole search in each of this many outer folds (default: fits without every pair of "
        "blocks test every sample too, at less cost)",
    )
    return options


def _file_options() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(add_help=False, parents=[_quiet_option()])
    options.add_argument(
        "--label", default="label", help="column of labels in a table (default: label)"
    )
    options.add_argument(
        "--pos-label",
        metavar="LABEL",
        help="positive label of a single column; of two columns, that which --notion binary means",
    )
    options.add_argument(
        "--normalize",
        action="store_true",
        help="divide each row by its sum, for probabilities that were rounded (sums within 0.05 "
        "of 1)",
    )
    options.add_argument(
        "--ignore",
        metavar="COLUMN",
        action="append",
        default=[],
        help="column of a table that is neither class nor label; may be repeated",
    )
    options.add_argument(
        "--id",
        metavar="COLUMN",
        help="column of a table with the name of each sample, by which compare joins two files and "
        "monitor knows rows again",
    )
    options.add_argument(
        "--score",
        metavar="COLUMN",
        help="the one column of a table that holds P(positive class); others are left alone",
    )
    options.add_argument(
        "--confidence",
        metavar="COLUMN",
        help="of answers, as of a language model: the column of their confidences; with --correct",
    )
    options.add_argument(
        "--correct",
        metavar="COLUMN",
        help="the column that says whether an answer was right: 1 or 0, true or false, yes or no",
    )
    options.add_argument(
        "--sep",
        type=_separator,
        metavar="CHARACTER",
        help="what separates the fields of a text file, such as ';' or tab (default: a comma, of "
        ".tsv a tab)",
    )
    options.add_argument(
        "--decimal",
        default=".",
        choices=(".", ","),
        help="what stands before the decimals of a text file (default: a point)",
    )
    options.add_argument(
        "--encoding",
        type=_encoding,
        default="utf-8",
        help="encoding of a text file, such as cp1252 or utf-16 (default: utf-8)",
    )
    scale = options.add_mutually_exclusive_group()
    scale.add_argument(
        "--scale",
        type=_positive,
        default=1.0,
        metavar="NUMBER",
        help="divide the predictions by NUMBER, such as 10 if they go from 0 to 10",
    )
    scale.add_argument(
        "--percent",
        dest="scale",
        action="store_const",
        const=PERCENT,
        help="the predictions are percentages, with or without the sign",
    )
    options.add_argument(
        "--drop-missing",
        action="store_true",
        help="leave out samples without a prediction or a label, and say how many",
    )
    options.add_argument(
        "--drop-label",
        metavar="LABEL",
        action="append",
        default=[],
        help="leave out samples with this label, and say how many; may be repeated",
    )
    options.add_argument(
        "--max-size",
        type=_positive,
        default=4.0,
        metavar="GB",
        help="refuse files that hold more (default: 4)",
    )
    return options


def _add_command(commands, name, parents, help, example, description=""):
    parser = commands.add_parser(
        name,
        parents=parents,
        help=help,
        description=f"{description or help[0].upper() + help[1:] + '.'} {_FILES}",
        epilog=f"example: python -m skcal {name} {example}",
    )
    parser.set_defaults(parser=parser, **_WITHOUT)
    return parser


def _add_demo(commands, parents):
    parser = commands.add_parser(
        "demo",
        parents=parents,
        help="evaluate two classifiers of handwritten digits, as a demonstration",
        description="Evaluate two classifiers of scikit-learn's handwritten digits.",
    )
    _add_details(parser)
    parser.set_defaults(parser=parser, error=None, **_WITHOUT)


def _add_details(parser):
    parser.add_argument(
        "--details",
        action="store_true",
        help="also choose a calibration function by cross-validation and print the RMS calibration "
        "error with the table of candidates",
    )


def _add_evaluate(commands, parents):
    parser = _add_command(
        commands,
        "evaluate",
        parents,
        "say whether the probabilities can be trusted, and how large the calibration error is",
        "predictions.csv --label y",
    )
    parser.add_argument("file", metavar="FILE")
    _add_samples(parser)
    _add_details(parser)
    parser.add_argument(
        "--error",
        action="append",
        choices=tuple(dict.fromkeys((*GATED_ERRORS, *KINDS))),
        help="what --max-error bounds: the calibration error (default); cutoff, the largest "
        "difference of the numbers of observed and predicted events in any range of predictions, "
        "per sample, which needs half as many samples and does not see errors that alternate; ece "
        "or rms, of 15 bins; without --max-error also print the error of this kind: l1 is ECE "
        "without bins, log the log loss that calibration would save; may be repeated",
    )
    parser.add_argument(
        "--max-error",
        type=_positive,
        metavar="LIMIT",
        help="exit with 0 if the --error is shown to be below this limit, with 1 if it is shown to "
        "be above, with 3 if the samples cannot tell, each at 95 %% confidence; default notion: "
        "binary or confidence",
    )
    parser.add_argument(
        "--by",
        metavar="COLUMN",
        action="append",
        default=[],
        help="with --max-error: decide for each subgroup that this column names, too: 0 if the "
        "error of each is shown to be below, 1 if that of one is shown to be above; may be "
        "repeated",
    )


def _add_report(commands, parents):
    parser = _add_command(
        commands,
        "report",
        parents,
        "estimates, tests, scores and a reliability diagram in one report",
        "predictions.csv --html report.html",
    )
    parser.add_argument("file", metavar="FILE")
    _add_report_options(parser)


def _add_samples(parser):
    parser.add_argument(
        "--groups",
        metavar="COLUMN",
        help="column that names what samples belong to, such as a patient: samples of one may "
        "depend on each other",
    )
    parser.add_argument(
        "--weight", metavar="COLUMN", help="column of importance weights of the samples"
    )
    _add_soft(parser)


def _add_soft(parser):
    parser.add_argument(
        "--soft",
        metavar="PREFIX",
        type=_prefix,
        help="in place of labels, shares or votes of the classes, in columns whose names are this "
        "and the class; of an .npz file the array that holds them",
    )


def _add_report_options(parser):
    _add_samples(parser)
    parser.add_argument(
        "--by",
        metavar="COLUMN",
        action="append",
        default=[],
        help="the same for each subgroup that this column names, of two files for the first; may "
        "be repeated",
    )
    parser.add_argument(
        "--segments",
        metavar="COLUMN",
        action="append",
        default=[],
        help="test the segments that this column of numbers or names makes, alone and with the "
        "others; may be repeated",
    )
    parser.add_argument(
        "--detail", default="short", choices=("short", "full"), help="print one screen, or all"
    )
    parser.add_argument("--html", metavar="OUT", help="write a page with the figure to OUT")
    parser.add_argument(
        "--outer-cv",
        type=at_least(2, 1000),
        help="a whole search in each of this many outer folds for tuned errors",
    )
    _add_notion(parser, "confidence, or binary for one or two columns")
    parser.add_argument(
        "--search",
        action="store_true",
        help="also tune the canonical and the class-wise error, and those of subgroups",
    )
    _add_bins(parser)


def _add_notion(parser, help):
    parser.add_argument("--notion", action="append", help=help)


def _add_bins(parser, default: int | None = 15):
    told = f"default: {default or 'as many as suit the samples'}"
    parser.add_argument("--bins", type=at_least(1, 100_000), default=default, help=told)
    parser.add_argument(
        "--strategy", default="uniform", choices=("uniform", "quantile"), help="of the bins"
    )
    parser.add_argument(
        "--resamples",
        type=at_least(19),
        help="of intervals, bands and tests (default: 999; of more than 100,000 samples 199)",
    )


def _add_test(commands, parents):
    parser = _add_command(
        commands,
        "test",
        parents,
        "test whether the predictions are calibrated",
        "predictions.csv --notion canonical",
    )
    parser.add_argument("file", metavar="FILE")
    _add_samples(parser)
    _add_notion(parser, _NOTION)
    parser.add_argument(
        "--resamples",
        type=at_least(19),
        help="of the outcomes (default: 999, of more than 100,000 samples 199, or as many as the "
        "level takes)",
    )
    parser.add_argument(
        "--alpha",
        type=_share,
        help="exit with 1 if a p-value, adjusted by Holm's method, is at most this, else with 0, "
        "which does not show calibration; with 2 if the given --resamples are too few to reject",
    )


def _add_plot(commands, parents):
    parser = _add_command(
        commands,
        "plot",
        parents,
        "draw a reliability diagram",
        "predictions.csv --out figure.svg --method isotonic",
    )
    parser.add_argument("file", metavar="FILE")
    _add_samples(parser)
    parser.add_argument("--out", required=True, metavar="OUT", help=".png, .svg or .pdf")
    _add_notion(parser, "confidence, top-label, classwise (a panel a class) or binary")
    parser.add_argument(
        "--method",
        default="auto",
        choices=("auto", "bins", "splines", "isotonic", "kernel-density"),
        help="the line; auto: a smooth curve for continuous predictions, otherwise joined bins",
    )
    parser.add_argument(
        "--axes",
        default="linear",
        choices=("linear", "logit"),
        help="their scale; logit spreads probabilities near 0 and 1, as of rare events",
    )
    _add_bins(parser, None)


def _add_compare(commands, parents):
    parser = _add_command(
        commands,
        "compare",
        parents,
        "compare two models on the same samples",
        "a.csv b.csv --html comparison.html",
        "Compare two models on the same samples, row by row: one estimator, the same bins, a "
        "paired test.",
    )
    parser.add_argument("file", metavar="A")
    parser.add_argument("second", metavar="B")
    parser.add_argument(
        "--fail-if-worse",
        action="store_true",
        help="exit with 1 if the calibration error of B is significantly larger, else with 0",
    )
    parser.add_argument(
        "--alpha", type=_share, help="level of --fail-if-worse, two-sided (default: 0.05)"
    )
    _add_report_options(parser)


def _add_monitor(commands, parents):
    parser = _add_command(
        commands,
        "monitor",
        parents,
        "watch a model: add a batch to the evidence, exit with 1 after an alarm",
        "state.json today.csv --id prediction",
        "Add a batch of predictions and labels to the evidence in STATE. A batch that was added "
        "already, as when a job runs twice, is not added again; with --id no row is added twice. "
        "Exit status: 0 no alarm or an acknowledged one, 1 alarm, 2 the batch could not be read, "
        "and STATE is as it was. With --soft a sample has one vote.",
    )
    parser.add_argument("state", metavar="STATE", help="of the monitor, JSON; made if absent")
    parser.add_argument(
        "file", metavar="FILE", nargs="?", help="the batch; without one STATE is shown as it is"
    )
    _add_soft(parser)
    parser.add_argument(
        "--plot", metavar="OUT", help="a figure of the evidence: .png, .svg or .pdf"
    )
    _add_notion(parser, "what is watched, for a new STATE (default: binary or confidence)")
    parser.add_argument(
        "--alpha",
        type=float,
        help="largest probability of a false alarm over all time, for a new STATE (default: 0.05)",
    )
    parser.add_argument(
        "--run-length",
        type=_positive,
        metavar="SAMPLES",
        help="for a new STATE: alarm by the e-detector, on average not before so many samples of a "
        "calibrated model",
    )
    parser.add_argument(
        "--again", action="store_true", help="add a file even if it, or rows of it, were added"
    )
    parser.add_argument(
        "--skip-unlabelled",
        action="store_true",
        help="leave out rows of a table without a label; add the file again when they have one "
        "(with --id)",
    )
    parser.add_argument(
        "--acknowledge",
        action="store_true",
        help="say that the alarm is known: the exit status is 0 until --reset",
    )
    parser.add_argument(
        "--reset",
        action="store_true",
        help="begin anew after the model was recalibrated or replaced, before FILE is added",
    )
    parser.add_argument(
        "--note", default="", metavar="TEXT", help="why, kept with --acknowledge or --reset"
    )
    parser.add_argument(
        "--plan",
        type=_positive,
        metavar="RATIO",
        help="say how soon a drift to this ratio of observed to predicted events is found",
    )


def _add_abstain(commands, parents):
    parser = _add_command(
        commands,
        "abstain",
        parents,
        "find the confidence from which on few answers are wrong",
        "answers.jsonl --confidence confidence --correct correct --max-risk 0.1",
        "Find the lowest confidence from which on at most a given share of answers is wrong, with "
        "95 %% confidence: use such answers, and abstain from the others. Without --confidence, an "
        "answer is the most probable class. Exit with 3 if no threshold is proven.",
    )
    parser.add_argument("file", metavar="FILE")
    _add_samples(parser)
    parser.add_argument(
        "--max-risk",
        type=_share,
        required=True,
        metavar="SHARE",
        help="the largest share of wrong answers among those that are used, such as 0.1",
    )


def _add_recalibrate(commands, parents):
    parser = _add_command(
        commands,
        "recalibrate",
        parents,
        "fit a recalibration map to one file and apply it to another, or save it",
        "labelled.csv new.csv --out recalibrated.csv",
        "Choose a recalibration map by its held-out loss on labelled predictions and apply it to "
        "others, whose labels are not used and may be absent; their other columns stay. The "
        "predictions stay as they are unless a map is significantly better. With --map the only "
        "file is APPLY.",
    )
    _add_samples(parser)
    parser.add_argument("file", metavar="FIT")
    parser.add_argument("second", metavar="APPLY", nargs="?")
    parser.add_argument("--out", metavar="NEW", help="like APPLY, with recalibrated probabilities")
    parser.add_argument("--save", metavar="MAP", help="write the fitted map to MAP, as JSON")
    parser.add_argument("--map", metavar="MAP", help="apply a saved map instead of fitting one")
    parser.add_argument(
        "--logits",
        action="store_true",
        help="FIT and APPLY hold logits, which lose no digit; NEW holds probabilities",
    )
    parser.add_argument(
        "--method",
        default=None,
        choices=sorted(MAPS),
        help="the only map to try: intercept, softmax(log p + b), where the base rate is new, or "
        "slope, softmax(log p / T) (default: several, and the mean of them)",
    )
    parser.add_argument(
        "--scoring",
        default="neg_log_loss",
        choices=("neg_log_loss", "neg_brier_score"),
        help="what chooses the map (default: neg_log_loss)",
    )


def _complete_answers(options, parser):
    """Let the columns of confidences and of right answers be those of predictions and labels."""
    if options.confidence is None or options.correct is None:
        lacking = "--correct" if options.correct is None else "--confidence"
        parser.error(f"{lacking} COLUMN is missing: --confidence and --correct belong together")
    for name in ("score", "pos_label", "soft", "notion"):
        if getattr(options, name, None):
            option = f"--{name.replace('_', '-')}"
            parser.error(f"{option} is not an option with --confidence, which settles that")
    if options.command == "monitor":
        parser.error("--confidence is not an option of monitor: pass --score and --label")
    options.score, options.label = options.confidence, options.correct


def _complete_recalibrate(options, parser):
    """Check which files there are; with --map the first is APPLY."""
    if options.map is not None:
        for name in ("save", "logits", "pos_label", "method", "groups", "weight", "soft"):
            if getattr(options, name):
                option = f"--{name.replace('_', '-')}"
                parser.error(f"{option} is not an option with --map, whose fit has settled that")
        if options.second is not None:
            parser.error("with --map there is nothing to fit to: pass APPLY alone")
        options.file, options.second = None, options.file
    if (options.second is None) != (options.out is None):
        lacking = "--out NEW" if options.out is None else "APPLY"
        parser.error(f"{lacking} is missing: recalibrate FIT APPLY --out NEW")
    if options.second is None and options.save is None:
        parser.error("nothing to do: pass APPLY and --out NEW, or --save MAP to keep the map")


def at_least(smallest, most=MOST_RESAMPLES):
    """A type for argparse: integers from ``smallest`` to ``most``."""

    def integer(text):
        number = int(text)
        if number < smallest:
            raise argparse.ArgumentTypeError(f"{number} must be at least {smallest}")
        if number > most:
            raise argparse.ArgumentTypeError(f"{number} must be at most {most:,}")
        return number

    return integer


def _jobs(text):
    number = at_least(-1000, 1000)(text)
    if number == 0:
        raise argparse.ArgumentTypeError("0 must be positive, or negative: -1 is all cores")
    return number


def _number(text):
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number, such as 0.05") from None


def _separator(text):
    sign = {"tab": "\t", "\\t": "\t"}.get(text, text)
    if len(sign) != 1 or sign.isalnum() or not sign.isascii() or sign in '"\r\n\0+-._':
        raise argparse.ArgumentTypeError(f"{text!r} is not one character, such as ';', or tab")
    return sign


def _encoding(text):
    try:
        "".encode(text)  # which refuses codecs of other things than text
        return codecs.lookup(text).name
    except LookupError:
        raise argparse.ArgumentTypeError(f"{text!r} is not an encoding, such as cp1252") from None


def _prefix(text):
    if not text:
        raise argparse.ArgumentTypeError("is empty, and so no beginning of the names of shares")
    return text


def _share(text):
    number = _number(text)
    if not 0 < number < 1:
        raise argparse.ArgumentTypeError(f"{number} must be between 0 and 1")
    return number


def _positive(text):
    number = _number(text)
    if not number > 0:
        raise argparse.ArgumentTypeError(f"{number} must be above 0")
    return number
