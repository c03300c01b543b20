"""The options of the command line, each said once, and the types of their values."""

from __future__ import annotations

import argparse
import codecs
import re
from collections.abc import Callable
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


def _checked(read, is_right, wrong: str):
    """A type for argparse: what ``read`` makes of a text; what is not right is said to be wrong."""

    def checked(text):
        value = read(text)
        if not is_right(value):
            raise argparse.ArgumentTypeError(wrong.format(value))
        return value

    checked.__name__ = read.__name__  # by which argparse calls what ``read`` refuses
    return checked


def _number(text):
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number, such as 0.05") from None


def _encoding(text):
    try:
        "".encode(text)  # which refuses codecs of other things than text
        return codecs.lookup(text).name
    except LookupError:
        raise argparse.ArgumentTypeError(f"{text!r} is not an encoding, such as cp1252") from None


def _is_separator(sign: str) -> bool:
    return len(sign) == 1 and sign.isascii() and not sign.isalnum() and sign not in '"\r\n\0+-._'


def _names(text):
    names = [name.strip() for name in text.split(",")]
    if len(names) < 2 or len(set(names)) < len(names):
        raise argparse.ArgumentTypeError(f"{text!r} is not several labels, such as no,yes")
    return names


_share = _checked(_number, lambda number: 0 < number < 1, "{} must be between 0 and 1")
_positive = _checked(_number, lambda number: number > 0, "{} must be above 0")


def _resolution(text: str) -> float | str | None:
    """A step of predictions, "auto", or None for "none"."""
    if text in ("auto", "none"):
        return None if text == "none" else text
    whole, slash, steps = text.partition("/")  # as in 1/31, which messages offer
    return _share(str(_number(whole) / _positive(steps))) if slash else _share(text)


class Once(argparse.Action):
    """Store a value; a second one is refused, since it would replace the first."""

    def __call__(self, parser, namespace, values, option_string=None):
        """Store the value, or end with the usage."""
        given = namespace.__dict__.setdefault("given", set())
        if self.dest in given:
            parser.error(f"{option_string} is given twice, and takes one value")
        given.add(self.dest)
        setattr(namespace, self.dest, values)


#: How argparse reads a value, by the word for its kind in the table.
_ACTIONS: dict[str, dict[str, Any]] = {
    "flag": {"action": "store_true"},
    "texts": {"action": "append"},
    "list": {"action": "append", "default": []},
    "pairs": {
        "action": "append",
        "default": [],
        "type": _checked(
            str, re.compile("[^=]+=").match, "{!r} is not COLUMN=VALUE, such as split=test"
        ),
    },
    "scale": {"action": "store_const", "const": PERCENT, "dest": "scale"},
}
_VALUE_TYPES: dict[str, Callable] = {
    "text": str,
    "names": _names,
    "separator": _checked(
        lambda text: {"tab": "\t", "\\t": "\t"}.get(text, text),
        _is_separator,
        "{!r} is not one character, such as ';', or tab",
    ),
    "encoding": _encoding,
    "prefix": _checked(str, len, "is empty, and so no beginning of the names of shares"),
    "number": _number,
    "positive": _positive,
    "share": _share,
    "level": float,
    "gigabytes": lambda text: _positive(text) * 2**30,
    "step": _resolution,
    "jobs": _checked(
        at_least(-1000, 1000), bool, "{} must be positive, or negative: -1 is all cores"
    ),
    "seed": at_least(0, 2**32 - 1),
    "folds": at_least(2, 1000),
    "bins": at_least(1, 100_000),
    "draws": at_least(19),
    "repetitions": at_least(20),
    "samples": at_least(1, 10**9),
}
#: Settings of argparse that the table of options leaves out.
_MORE: dict[str, dict[str, Any]] = {
    "error": {"choices": tuple(dict.fromkeys((*GATED_ERRORS, *ErrorEstimate.kinds)))},
    "max-size": {"dest": "max_bytes"},
    "target": {"dest": "second"},
    "linear-predictor": {"nargs": 2, "metavar": ("MEAN", "SD")},
    "monitor.confidence": {"help": argparse.SUPPRESS},  # which it refuses with a remedy
    "monitor.correct": {"help": argparse.SUPPRESS},
}
#: Name, kind (with ! if it is required) or words to choose from, METAVAR, =default, and help.
_OPTIONS_TABLE = """
# of every command
json flag: print JSON instead of tables
quiet flag: print nothing but errors; read the exit status
seed seed =0: seed of random numbers (default: 0)
n-jobs jobs: parallel jobs; -1 is all cores (default: 1)
# how a file is written
sep separator CHARACTER: what separates the fields of a text file, such as ';', tab or ' ' for any
  blanks (default: a comma, of .tsv a tab)
decimal {.|,} =.: what stands before the decimals of a text file (default: a point)
header {none}: none: line 1 holds numbers, not names; the columns are then called column1,
  column2, …
encoding encoding =utf-8: encoding of a text file, such as cp1252 or utf-16 (default: utf-8)
scale positive NUMBER =1: divide the predictions by NUMBER, such as 10 if they go from 0 to 10
percent scale: the predictions are percentages, with or without the sign
normalize flag: divide each row by its sum, for probabilities that were rounded (sums within 0.05
  of 1, numbers within 0.005 of 0 and 1)
bounds flag: read <1, >99 and ~5 as the number in them
drop-missing flag: leave out samples without a prediction or a label, and say how many
missing list CODE: leave out samples whose prediction is this, such as -99, or is missing, and say
  how many; may be repeated
drop-label list LABEL: leave out samples with this label, and say how many; may be repeated
empty-label text LABEL: the label of rows whose label is empty
sheet text NAME: the sheet of an .xlsx file
max-size gigabytes GB =4: refuse files that hold more (default: 4)
# what its columns are
label text COLUMN =label: column of labels (default: label)
pos-label text LABEL: positive label of a single column; of two columns, that which --notion
  binary means; with --correct the only word for a right answer
score text COLUMN: the one column that holds P(positive class), or a list of probabilities; other
  columns are not read
predicted text COLUMN: the column that names the class whose probability --score holds in each
  row, as predictions with their confidence do
prefix text PREFIX: columns of probabilities are named by this and the class, such as prob_;
  '*_prob' if it stands behind the class
labels names LABEL,LABEL,…: the classes in the order of lists of probabilities, or of which there
  are columns
confidence text COLUMN: the column that says how sure a model, such as a language model, was of
  each answer; with --correct
correct text COLUMN: the column that says whether an answer was right: 1 or 0, true or false, yes
  or no, correct or incorrect, pass or fail, C or I
only pairs COLUMN=VALUE: read only the rows in which this column has this value, such as model=v2
  or split=test; may be repeated
distinct flag: leave out rows that are equal to an earlier one in all columns
ignore list COLUMN: column that is neither class nor label; may be repeated
id list COLUMN: column with the name of each sample, by which compare joins two files and monitor
  knows rows again; may be repeated, as for customer and date
groups text COLUMN: column that names what samples belong to, such as a patient: samples of one
  may depend on each other
weight text COLUMN: column of sample weights
count text COLUMN: column that says how many equal samples each row stands for
soft prefix PREFIX: in place of labels, shares or votes of the classes, or 1 for the class that
  happened and 0 for the others, in columns whose names are this and the class; of an .npz file the
  array that holds them
by list COLUMN: the same for each subgroup that this column names, of two files for the first; may
  be repeated
segments list COLUMN: test the segments that this column of numbers or names makes, alone and with
  the others; may be repeated
# what is asked
notion texts: kind of calibration; may be repeated (default: binary for one and two columns,
  confidence for more)
all-rows flag: with --max-error: print every row of a long table
details flag: also choose a calibration function by cross-validation and print the RMS calibration
  error with the table of candidates
error texts: what --max-error bounds: the calibration error (default); cutoff, the largest
  difference of the numbers of observed and predicted events in any range of predictions, per
  sample, which needs half as many samples and does not see errors that alternate; ece, of 15
  bins; without --max-error also print the error of this kind: l1 is the mean absolute error, log
  the log loss that calibration would save; may be repeated
resolution step STEP =auto: step in which predictions are rounded, such as 0.05: 0 and 1 then mean
  within half a step; none takes them as they are (default: auto, the first of 0.1, 0.05 and 0.01
  of which all are multiples)
max-error positive LIMIT: exit with 0 if the --error is shown to be below this limit, with 1 if it
  is shown to be above, with 3 if the samples cannot tell, each at 95 %% confidence; with --by for
  all subgroups together; default notion: binary or confidence
max-risk share! SHARE: the largest share of wrong answers among those that are used, such as 0.1
alpha share: exit with 1 if a p-value, adjusted by Holm's method, is at most this, else with 0,
  which does not show calibration; with 2 if the given --resamples are too few to reject
target text TARGET: predictions without labels, where events are more or less frequent; also
  report the calibration error there, as the command shift
# of shift and sample-size
feature list COLUMN: column of numbers or names that describes the cases, in both files; the cases
  have changed, not the frequency of events; may be repeated
prevalence share! SHARE: the share of events that the study will have
c-statistic share C: the C-statistic that you expect; without FILE and --linear-predictor it says
  how the predictions are distributed
linear-predictor number: mean and standard deviation of the log-odds of the predictions
threshold share P: the probability from which you would act; adds the net benefit
confidence-level share SHARE: of the intervals (default: 0.95)
oe-width positive WIDTH: width of the interval of the O/E ratio, from end to end (default: 0.2)
slope-width positive WIDTH: width of the interval of the calibration slope, from end to end
  (default: 0.2)
c-width positive WIDTH: width of the interval of the C-statistic, from end to end (default: 0.1)
net-benefit-width positive WIDTH: width of the interval of the standardised net benefit, from end
  to end (default: 0.2)
# how it is computed
fail-if-worse flag: exit with 1 if the squared calibration error of B is significantly larger, else
  with 0
cv folds =5: folds that choose (default: 5)
outer-cv folds: a whole search in each of this many outer folds (default: none, which costs less)
search flag: also tune the canonical and the class-wise error, and those of subgroups
bins bins =15: default: 15
strategy {uniform|quantile} =uniform: bins of equal width, or of equally many samples
resamples draws: of intervals, bands and tests (default: 999; of more than 100,000 samples 199)
# what is written
detail {short|full} =short: print one screen, or all
html text OUT: write a page with the figure to OUT
description text TEXT =: a line about data, model and date, below the title
out text! OUT: .png, .svg or .pdf
method {auto|bins|splines|isotonic|kernel-density} =auto: the line; auto: a smooth curve for
  continuous predictions, otherwise joined bins
axes {linear|logit} =linear: their scale; logit spreads probabilities near 0 and 1, as of rare
  events
# of recalibrate
save text MAP: write the fitted map to MAP, as JSON
map text MAP: apply a saved map instead of fitting one
logits flag: the predictions are logits, or of a single column the log-odds
log-probabilities flag: the predictions are logarithms of probabilities, as language models give
scoring {neg_log_loss|neg_brier_score} =neg_log_loss: what chooses the map (default: neg_log_loss)
# of monitor
date text COLUMN: column with the date of each row: the rows of each day are a batch, in their
  order, and an alarm names the day
plot text OUT: a figure of the evidence: .png, .svg or .pdf
run-length positive SAMPLES: for a new STATE: alarm by the e-detector, on average not before so
  many samples of a calibrated model
again flag: add a file even if it, or rows of it, were added
skip-unlabelled flag: leave out rows of a table without a label; add the file again when they have
  one (with --id)
acknowledge flag: say that the alarm is known: the exit status is 0 until the next alarm
reset flag: begin anew after the model was recalibrated or replaced, before FILE is added
note text TEXT =: why, kept with --acknowledge or --reset
plan positive RATIO: say how soon a drift to this ratio of observed to predicted events is found
batch samples N: samples between two looks, for --plan (default: the mean of the batches so far)
format {text|json|prometheus} =text: how to print; prometheus: the text format of metrics
# what some commands say of an option
evaluate.by list COLUMN: with --max-error: decide for each subgroup that this column names, too: 0
  if the error of each is shown to be below, 1 if that of one is shown to be above; may be
  repeated
report.max-error positive LIMIT: the calibration error that you tolerate, such as 0.02: the report
  says whether the error is below it, or small, moderate or large beside it (default: 0.05, or a
  fifth of the rate of a rare outcome); exit with 0, 1 or 3 as evaluate
report,compare.notion texts: confidence, or binary for one or two columns
report,compare.outer-cv folds: a whole search in each of this many outer folds for tuned errors
test.resamples draws: of the outcomes (default: 999, of more than 100,000 samples 199, or as many
  as the level takes)
plot.notion texts: confidence, top-label, classwise (a panel a class) or binary
plot.bins bins: default: as many as suit the samples
compare.max-error positive LIMIT: the calibration error that you tolerate, such as 0.02: the
  report says whether the error is below it, or small, moderate or large beside it (default: 0.05,
  or a fifth of the rate of a rare outcome); the exit status is that of --fail-if-worse
compare.alpha share: level of --fail-if-worse, two-sided (default: 0.05)
compare.score texts COLUMN: the one column that holds P(positive class); given twice, those of the
  first and of the second model
monitor.confidence text COLUMN:
monitor.correct text COLUMN:
monitor.notion texts: what is watched, for a new STATE (default: binary or confidence)
monitor.alpha level: largest probability of a false alarm over all time, for a new STATE (default:
  0.05)
recalibrate.out text NEW: like APPLY, with recalibrated probabilities
recalibrate.method {intercept|slope}: the only map to try: intercept, softmax(log p + b), where
  the base rate is new, or slope, softmax(log p / T) (default: several, and the mean of them)
shift.notion texts: confidence, binary or top-label (default: binary or confidence)
shift.resamples repetitions =100: of both files, for the error of the weights (default: 100)
sample-size.max-error positive LIMIT: also find the number of samples at which 9 in 10 studies of
  a calibrated model show that the calibration error is below LIMIT
monitor.state text STATE: of the monitor, JSON; made if absent
monitor.file text FILE: the batch; without one STATE is shown as it is
sample-size.file text FILE: predictions like those of the study, such as those of a pilot
"""
_ENTRY = re.compile(
    r"^(?P<names>[^#\s]\S*) (?P<kind>\S+?)(?P<required>!?)(?: (?P<metavar>[A-Z]\S*))?"
    r"(?: =(?P<default>\S*))?:(?P<help>.*(?:\n  .*)*)",
    re.MULTILINE,
)


def _read_table() -> dict[str, dict[str, Any]]:
    """What argparse knows of each option and, as "command.option", what it knows in a command."""
    options: dict[str, dict[str, Any]] = {}
    for entry in _ENTRY.finditer(_OPTIONS_TABLE):
        kind, default = entry["kind"], entry["default"]
        how: dict[str, Any] = {"help": " ".join(entry["help"].split())}
        how |= _ACTIONS[kind] if kind in _ACTIONS else {"type": _VALUE_TYPES.get(kind, str)}
        if kind[0] == "{":
            how["choices"] = kind[1:-1].split("|")
        if entry["metavar"]:
            how["metavar"] = entry["metavar"]
        if entry["required"]:
            how["required"] = True
        if default is not None:
            how["default"] = how["type"](default)
        *commands, name = re.split(r"[,.]", entry["names"])
        if commands:
            how.setdefault("default", None)  # whatever it is elsewhere
        for option in [f"{command}.{name}" for command in commands] or [name]:
            options[option] = how | _MORE.get(option, {})
    return options


OPTIONS = _read_table()


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
    return option if option[2:] in OPTIONS else {"y_proba": "FILE"}.get(argument)
