"""The options of the command line, each said once, and the types of their values."""

from __future__ import annotations

import argparse
import codecs
import re
from collections.abc import Callable, Sequence
from typing import Any

from skcal.cli.gates import GATED_ERRORS
from skcal.cli.problems import PERCENT
from skcal.exceptions import InputError
from skcal.model_selection import ErrorEstimate

MOST_RESAMPLES = 10**6  # resamples


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


def _pair(text):
    if not text.partition("=")[0] or "=" not in text:
        raise argparse.ArgumentTypeError(f"{text!r} is not COLUMN=VALUE, such as split=test")
    return text


def _names(text):
    names = [name.strip() for name in text.split(",")]
    if len(names) < 2 or len(set(names)) < len(names):
        raise argparse.ArgumentTypeError(f"{text!r} is not several labels, such as no,yes")
    return names


class Once(argparse.Action):
    """Store a value; a second one is refused, since it would replace the first."""

    def __call__(self, parser, namespace, values, option_string=None):
        """Store the value, or end with the usage."""
        given = namespace.__dict__.setdefault("given", set())
        if self.dest in given:
            parser.error(f"{option_string} is given twice, and takes one value")
        given.add(self.dest)
        setattr(namespace, self.dest, values)


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


def _gigabytes(text):
    return _positive(text) * 2**30


def _resolution(text: str) -> float | str | None:
    """A step of predictions, "auto", or None for "none"."""
    if text in ("auto", "none"):
        return None if text == "none" else text
    whole, slash, steps = text.partition("/")  # as in 1/31, which messages offer
    return _share(str(_number(whole) / _positive(steps))) if slash else _share(text)


# What argparse knows of an option, by the kind of its value


def _flag(help: str) -> dict[str, Any]:
    return {"action": "store_true", "help": help}


def _column(help: str, **more: Any) -> dict[str, Any]:
    return {"metavar": "COLUMN", "help": help, **more}


def _columns(help: str, metavar: str = "COLUMN") -> dict[str, Any]:
    return {"metavar": metavar, "action": "append", "default": [], "help": help}


def _value(type: Callable, metavar: str | None, help: str, **more: Any) -> dict[str, Any]:
    return {"type": type, "metavar": metavar, "help": help, **more}


def _text(metavar: str, help: str, **more: Any) -> dict[str, Any]:
    return {"metavar": metavar, "help": help, **more}


def _choice(choices: Sequence[str], help: str) -> dict[str, Any]:
    """One of several words; without the option the first of them."""
    return {"default": choices[0], "choices": tuple(choices), "help": help}


def _width(what: str, default: float) -> dict[str, Any]:
    help = f"width of the interval of the {what}, from end to end (default: {default})"
    return _value(_positive, "WIDTH", help)


#: How argparse reads each option.
OPTIONS: dict[str, dict[str, Any]] = {
    # of every command
    "--json": _flag("print JSON instead of tables"),
    "--quiet": _flag("print nothing but errors; read the exit status"),
    "--seed": _value(
        at_least(0, 2**32 - 1), None, "seed of random numbers (default: 0)", default=0
    ),
    "--n-jobs": _value(_jobs, None, "parallel jobs; -1 is all cores (default: 1)"),
    # how a file is written
    "--sep": _value(
        _separator,
        "CHARACTER",
        "what separates the fields of a text file, such as ';', tab or ' ' for any blanks "
        "(default: a comma, of .tsv a tab)",
    ),
    "--decimal": _choice(".,", "what stands before the decimals of a text file (default: a point)"),
    "--header": {
        "choices": ("none",),
        "help": "none: line 1 holds numbers, not names; the columns are then called column1, "
        "column2, …",
    },
    "--encoding": _value(
        _encoding,
        None,
        "encoding of a text file, such as cp1252 or utf-16 (default: utf-8)",
        default="utf-8",
    ),
    "--scale": _value(
        _positive,
        "NUMBER",
        "divide the predictions by NUMBER, such as 10 if they go from 0 to 10",
        default=1.0,
    ),
    "--percent": {
        "dest": "scale",
        "action": "store_const",
        "const": PERCENT,
        "help": "the predictions are percentages, with or without the sign",
    },
    "--normalize": _flag(
        "divide each row by its sum, for probabilities that were rounded (sums within 0.05 of 1, "
        "numbers within 0.005 of 0 and 1)"
    ),
    "--bounds": _flag("read <1, >99 and ~5 as the number in them"),
    "--drop-missing": _flag("leave out samples without a prediction or a label, and say how many"),
    "--missing": _columns(
        "leave out samples whose prediction is this, such as -99, or is missing, and say how many; "
        "may be repeated",
        "CODE",
    ),
    "--drop-label": _columns(
        "leave out samples with this label, and say how many; may be repeated", "LABEL"
    ),
    "--empty-label": _text("LABEL", "the label of rows whose label is empty"),
    "--sheet": _text("NAME", "the sheet of an .xlsx file"),
    "--max-size": _value(
        _gigabytes,
        "GB",
        "refuse files that hold more (default: 4)",
        dest="max_bytes",
        default=4 * 2**30,
    ),
    # what its columns are
    "--label": _column("column of labels (default: label)", default="label"),
    "--pos-label": _text(
        "LABEL",
        "positive label of a single column; of two columns, that which --notion binary means; with "
        "--correct the only word for a right answer",
    ),
    "--score": _column(
        "the one column that holds P(positive class), or a list of probabilities; other columns "
        "are not read"
    ),
    "--predicted": _column(
        "the column that names the class whose probability --score holds in each row, as "
        "predictions with their confidence do"
    ),
    "--prefix": _text(
        "PREFIX",
        "columns of probabilities are named by this and the class, such as prob_; '*_prob' if it "
        "stands behind the class",
    ),
    "--labels": _value(
        _names,
        "LABEL,LABEL,…",
        "the classes in the order of lists of probabilities, or of which there are columns",
    ),
    "--confidence": _column(
        "the column that says how sure a model, such as a language model, was of each answer; with "
        "--correct"
    ),
    "--correct": _column(
        "the column that says whether an answer was right: 1 or 0, true or false, yes or no, "
        "correct or incorrect, pass or fail, C or I"
    ),
    "--only": {
        "type": _pair,
        "metavar": "COLUMN=VALUE",
        "action": "append",
        "default": [],
        "help": "read only the rows in which this column has this value, such as model=v2 or "
        "split=test; may be repeated",
    },
    "--distinct": _flag("leave out rows that are equal to an earlier one in all columns"),
    "--ignore": _columns("column that is neither class nor label; may be repeated"),
    "--id": _columns(
        "column with the name of each sample, by which compare joins two files and monitor knows "
        "rows again; may be repeated, as for customer and date"
    ),
    "--groups": _column(
        "column that names what samples belong to, such as a patient: samples of one may depend on "
        "each other"
    ),
    "--weight": _column("column of sample weights"),
    "--count": _column("column that says how many equal samples each row stands for"),
    "--soft": _value(
        _prefix,
        "PREFIX",
        "in place of labels, shares or votes of the classes, in columns whose names are this and "
        "the class; of an .npz file the array that holds them",
    ),
    "--by": _columns(
        "the same for each subgroup that this column names, of two files for the first; may be "
        "repeated"
    ),
    "--segments": _columns(
        "test the segments that this column of numbers or names makes, alone and with the others; "
        "may be repeated"
    ),
    # what is asked
    "--notion": {
        "action": "append",
        "help": "kind of calibration; may be repeated (default: binary for one and two columns, "
        "confidence for more)",
    },
    "--all-rows": _flag("with --max-error: print every row of a long table"),
    "--details": _flag(
        "also choose a calibration function by cross-validation and print the RMS calibration "
        "error with the table of candidates"
    ),
    "--error": {
        "action": "append",
        "choices": tuple(dict.fromkeys((*GATED_ERRORS, *ErrorEstimate.kinds))),
        "help": "what --max-error bounds: the calibration error (default); cutoff, the largest "
        "difference of the numbers of observed and predicted events in any range of predictions, "
        "per sample, which needs half as many samples and does not see errors that alternate; ece, "
        "of 15 bins; without --max-error also print the error of this kind: l1 is the "
        "mean absolute error, log the log loss that calibration would save; may be repeated",
    },
    "--resolution": _value(
        _resolution,
        "STEP",
        "step in which predictions are rounded, such as 0.05: 0 and 1 then mean within half a "
        "step; none takes them as they are (default: auto, the first of 0.1, 0.05 and 0.01 of "
        "which all are multiples)",
        default="auto",
    ),
    "--max-error": _value(
        _positive,
        "LIMIT",
        "exit with 0 if the --error is shown to be below this limit, with 1 if it is shown to be "
        "above, with 3 if the samples cannot tell, each at 95 %% confidence; with --by for all "
        "subgroups together; default notion: binary or confidence",
    ),
    "--max-risk": _value(
        _share,
        "SHARE",
        "the largest share of wrong answers among those that are used, such as 0.1",
        required=True,
    ),
    "--alpha": {"type": _share},
    "--target": _text(
        "TARGET",
        "predictions without labels, where events are more or less frequent; also report the "
        "calibration error there, as the command shift",
        dest="second",
    ),
    # shift and sample-size
    "--feature": _columns(
        "column of numbers or names that describes the cases, in both files; the cases have "
        "changed, not the frequency of events; may be repeated"
    ),
    "--prevalence": _value(
        _share, "SHARE", "the share of events that the study will have", required=True
    ),
    "--c-statistic": _value(
        _share,
        "C",
        "the C-statistic that you expect; without FILE and --linear-predictor it says how the "
        "predictions are distributed",
    ),
    "--linear-predictor": {
        "type": _number,
        "nargs": 2,
        "metavar": ("MEAN", "SD"),
        "help": "mean and standard deviation of the log-odds of the predictions",
    },
    "--threshold": _value(
        _share, "P", "the probability from which you would act; adds the net benefit"
    ),
    "--confidence-level": _value(_share, "SHARE", "of the intervals (default: 0.95)"),
    "--oe-width": _width("O/E ratio", 0.2),
    "--slope-width": _width("calibration slope", 0.2),
    "--c-width": _width("C-statistic", 0.1),
    "--net-benefit-width": _width("standardised net benefit", 0.2),
    "--fail-if-worse": _flag(
        "exit with 1 if the calibration error of B is significantly larger, else with 0"
    ),
    "--cv": _value(at_least(2, 1000), None, "folds that choose (default: 5)", default=5),
    "--outer-cv": _value(
        at_least(2, 1000),
        None,
        "a whole search in each of this many outer folds (default: none, which costs less)",
    ),
    "--search": _flag("also tune the canonical and the class-wise error, and those of subgroups"),
    "--bins": _value(at_least(1, 100_000), None, "default: 15", default=15),
    "--strategy": _choice(
        ("uniform", "quantile"), "bins of equal width, or of equally many samples"
    ),
    "--resamples": _value(
        at_least(19),
        None,
        "of intervals, bands and tests (default: 999; of more than 100,000 samples 199)",
    ),
    # what is written
    "--detail": _choice(("short", "full"), "print one screen, or all"),
    "--html": _text("OUT", "write a page with the figure to OUT"),
    "--description": _text(
        "TEXT", "a line about data, model and date, below the title", default=""
    ),
    "--out": _text("OUT", ".png, .svg or .pdf", required=True),
    "--method": _choice(
        ("auto", "bins", "splines", "isotonic", "kernel-density"),
        "the line; auto: a smooth curve for continuous predictions, otherwise joined bins",
    ),
    "--axes": _choice(
        ("linear", "logit"),
        "their scale; logit spreads probabilities near 0 and 1, as of rare events",
    ),
    # recalibrate
    "--save": _text("MAP", "write the fitted map to MAP, as JSON"),
    "--map": _text("MAP", "apply a saved map instead of fitting one"),
    "--logits": _flag("the predictions are logits, or of a single column the log-odds"),
    "--log-probabilities": _flag(
        "the predictions are logarithms of probabilities, as language models give"
    ),
    "--scoring": _choice(
        ("neg_log_loss", "neg_brier_score"), "what chooses the map (default: neg_log_loss)"
    ),
    # monitor
    "--date": _column(
        "column with the date of each row: the rows of each day are a batch, in their order, and "
        "an alarm names the day"
    ),
    "--plot": _text("OUT", "a figure of the evidence: .png, .svg or .pdf"),
    "--run-length": _value(
        _positive,
        "SAMPLES",
        "for a new STATE: alarm by the e-detector, on average not before so many samples of a "
        "calibrated model",
    ),
    "--again": _flag("add a file even if it, or rows of it, were added"),
    "--skip-unlabelled": _flag(
        "leave out rows of a table without a label; add the file again when they have one (with "
        "--id)"
    ),
    "--acknowledge": _flag(
        "say that the alarm is known: the exit status is 0 until the next alarm"
    ),
    "--reset": _flag(
        "begin anew after the model was recalibrated or replaced, before FILE is added"
    ),
    "--note": _text("TEXT", "why, kept with --acknowledge or --reset", default=""),
    "--plan": _value(
        _positive,
        "RATIO",
        "say how soon a drift to this ratio of observed to predicted events is found",
    ),
    "--batch": _value(
        at_least(1, 10**9),
        "N",
        "samples between two looks, for --plan (default: the mean of the batches so far)",
    ),
    "--format": _choice(
        ("text", "json", "prometheus"), "how to print; prometheus: the text format of metrics"
    ),
}


def with_option(error: Exception) -> str:
    """The message of an error, which names an option instead of the argument that it stands for."""
    if isinstance(error, InputError):
        return error.message(argument=_option_of(error.argument))
    parameter = re.fullmatch(r"The '(\w+)' parameter of \S+ (must .*)", str(error), re.DOTALL)
    if parameter is None or _option_of(parameter[1]) is None:
        return str(error)
    # Without the option there is no None.
    return f"{_option_of(parameter[1])} {parameter[2].replace(' or None. Got', '. Got')}"


def _option_of(argument: str) -> str | None:
    option = f"--{argument.replace('_', '-')}"
    return option if option in OPTIONS else {"y_proba": "FILE"}.get(argument)
