"""The options of the command line, each said once, and the types of their values."""

from __future__ import annotations

import argparse
import codecs
from typing import Any

from skcal.cli.gates import GATED_ERRORS
from skcal.cli.predictions import PERCENT
from skcal.model_selection.errors import KINDS

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
    return _share(text)


_FLAG: dict = {"action": "store_true"}
_ONE: dict = {"metavar": "COLUMN"}
_SEVERAL: dict = {"metavar": "COLUMN", "action": "append", "default": []}
_FOLDS: dict = {"type": at_least(2, 1000)}

#: How argparse reads each option.
OPTIONS: dict[str, dict[str, Any]] = {
    # of every command
    "--json": {**_FLAG, "help": "print JSON instead of tables"},
    "--quiet": {**_FLAG, "help": "print nothing but errors; read the exit status"},
    "--seed": {
        "type": at_least(0, 2**32 - 1),
        "default": 0,
        "help": "seed of random numbers (default: 0)",
    },
    "--n-jobs": {"type": _jobs, "help": "parallel jobs; -1 is all cores (default: 1)"},
    # how a file is written
    "--sep": {
        "type": _separator,
        "metavar": "CHARACTER",
        "help": "what separates the fields of a text file, such as ';' or tab (default: a comma, "
        "of .tsv a tab)",
    },
    "--decimal": {
        "default": ".",
        "choices": (".", ","),
        "help": "what stands before the decimals of a text file (default: a point)",
    },
    "--encoding": {
        "type": _encoding,
        "default": "utf-8",
        "help": "encoding of a text file, such as cp1252 or utf-16 (default: utf-8)",
    },
    "--scale": {
        "type": _positive,
        "default": 1.0,
        "metavar": "NUMBER",
        "help": "divide the predictions by NUMBER, such as 10 if they go from 0 to 10",
    },
    "--percent": {
        "dest": "scale",
        "action": "store_const",
        "const": PERCENT,
        "help": "the predictions are percentages, with or without the sign",
    },
    "--normalize": {
        **_FLAG,
        "help": "divide each row by its sum, for probabilities that were rounded (sums within 0.05 "
        "of 1)",
    },
    "--drop-missing": {
        **_FLAG,
        "help": "leave out samples without a prediction or a label, and say how many",
    },
    "--drop-label": {
        **_SEVERAL,
        "metavar": "LABEL",
        "help": "leave out samples with this label, and say how many; may be repeated",
    },
    "--max-size": {
        "dest": "max_bytes",
        "type": _gigabytes,
        "default": 4 * 2**30,
        "metavar": "GB",
        "help": "refuse files that hold more (default: 4)",
    },
    # what its columns are
    "--label": {"default": "label", **_ONE, "help": "column of labels (default: label)"},
    "--pos-label": {
        "metavar": "LABEL",
        "help": "positive label of a single column; of two columns, that which --notion binary "
        "means",
    },
    "--score": {
        **_ONE,
        "help": "the one column that holds P(positive class); other columns are not read",
    },
    "--confidence": {
        **_ONE,
        "help": "the column that says how sure a model, such as a language model, was of each "
        "answer; with --correct",
    },
    "--correct": {
        **_ONE,
        "help": "the column that says whether an answer was right: 1 or 0, true or false, yes or "
        "no",
    },
    "--ignore": {**_SEVERAL, "help": "column that is neither class nor label; may be repeated"},
    "--id": {
        **_SEVERAL,
        "help": "column with the name of each sample, by which compare joins two files and monitor "
        "knows rows again; may be repeated, as for customer and date",
    },
    "--groups": {
        **_ONE,
        "help": "column that names what samples belong to, such as a patient: samples of one may "
        "depend on each other",
    },
    "--weight": {**_ONE, "help": "column of sample weights"},
    "--soft": {
        "metavar": "PREFIX",
        "type": _prefix,
        "help": "in place of labels, shares or votes of the classes, in columns whose names are "
        "this and the class; of an .npz file the array that holds them",
    },
    "--by": {
        **_SEVERAL,
        "help": "the same for each subgroup that this column names, of two files for the first; "
        "may be repeated",
    },
    "--segments": {
        **_SEVERAL,
        "help": "test the segments that this column of numbers or names makes, alone and with the "
        "others; may be repeated",
    },
    # what is asked
    "--notion": {
        "action": "append",
        "help": "kind of calibration; may be repeated (default: binary for one and two columns, "
        "confidence for more)",
    },
    "--details": {
        **_FLAG,
        "help": "also choose a calibration function by cross-validation and print the RMS "
        "calibration error with the table of candidates",
    },
    "--error": {
        "action": "append",
        "choices": tuple(dict.fromkeys((*GATED_ERRORS, *KINDS))),
        "help": "what --max-error bounds: the calibration error (default); cutoff, the largest "
        "difference of the numbers of observed and predicted events in any range of predictions, "
        "per sample, which needs half as many samples and does not see errors that alternate; ece "
        "or rms, of 15 bins; without --max-error also print the error of this kind: l1 is the "
        "mean absolute error, log the log loss that calibration would save; may be repeated",
    },
    "--resolution": {
        "type": _resolution,
        "default": "auto",
        "metavar": "STEP",
        "help": "step in which predictions are rounded, such as 0.05: 0 and 1 then mean within "
        "half a step; none takes them as they are (default: auto, the first of 0.1, 0.05 and 0.01 "
        "of which all are multiples)",
    },
    "--max-error": {
        "type": _positive,
        "metavar": "LIMIT",
        "help": "exit with 0 if the --error is shown to be below this limit, with 1 if it is shown "
        "to be above, with 3 if the samples cannot tell, each at 95 %% confidence; default notion: "
        "binary or confidence",
    },
    "--max-risk": {
        "type": _share,
        "required": True,
        "metavar": "SHARE",
        "help": "the largest share of wrong answers among those that are used, such as 0.1",
    },
    "--alpha": {"type": _share},
    "--target": {
        "dest": "second",
        "metavar": "TARGET",
        "help": "predictions without labels, where events are more or less frequent; also report "
        "the calibration error there, as the command shift",
    },
    # shift and sample-size
    "--feature": {
        **_SEVERAL,
        "help": "column of numbers or names that describes the cases, in both files; the cases "
        "have changed, not the frequency of events; may be repeated",
    },
    "--prevalence": {
        "type": _share,
        "required": True,
        "metavar": "SHARE",
        "help": "the share of events that the study will have",
    },
    "--c-statistic": {
        "type": _share,
        "metavar": "C",
        "help": "the C-statistic that you expect; without FILE and --linear-predictor it says how "
        "the predictions are distributed",
    },
    "--linear-predictor": {
        "type": _number,
        "nargs": 2,
        "metavar": ("MEAN", "SD"),
        "help": "mean and standard deviation of the log-odds of the predictions",
    },
    "--threshold": {
        "type": _share,
        "metavar": "P",
        "help": "the probability from which you would act; adds the net benefit",
    },
    "--confidence-level": {
        "type": _share,
        "metavar": "SHARE",
        "help": "of the intervals (default: 0.95)",
    },
    **{
        f"--{name}-width": {
            "type": _positive,
            "metavar": "WIDTH",
            "help": f"width of the interval of the {what}, from end to end (default: {width})",
        }
        for name, what, width in (
            ("oe", "O/E ratio", 0.2),
            ("slope", "calibration slope", 0.2),
            ("c", "C-statistic", 0.1),
            ("net-benefit", "standardised net benefit", 0.2),
        )
    },
    "--fail-if-worse": {
        **_FLAG,
        "help": "exit with 1 if the calibration error of B is significantly larger, else with 0",
    },
    "--cv": {**_FOLDS, "default": 5, "help": "folds that choose (default: 5)"},
    "--outer-cv": {
        **_FOLDS,
        "help": "a whole search in each of this many outer folds (default: none, which costs less)",
    },
    "--search": {
        **_FLAG,
        "help": "also tune the canonical and the class-wise error, and those of subgroups",
    },
    "--bins": {"type": at_least(1, 100_000), "default": 15, "help": "default: 15"},
    "--strategy": {
        "default": "uniform",
        "choices": ("uniform", "quantile"),
        "help": "bins of equal width, or of equally many samples",
    },
    "--resamples": {
        "type": at_least(19),
        "help": "of intervals, bands and tests (default: 999; of more than 100,000 samples 199)",
    },
    # what is written
    "--detail": {
        "default": "short",
        "choices": ("short", "full"),
        "help": "print one screen, or all",
    },
    "--html": {"metavar": "OUT", "help": "write a page with the figure to OUT"},
    "--description": {
        "metavar": "TEXT",
        "default": "",
        "help": "a line about data, model and date, below the title",
    },
    "--out": {"metavar": "OUT", "required": True, "help": ".png, .svg or .pdf"},
    "--method": {
        "default": "auto",
        "choices": ("auto", "bins", "splines", "isotonic", "kernel-density"),
        "help": "the line; auto: a smooth curve for continuous predictions, otherwise joined bins",
    },
    "--axes": {
        "default": "linear",
        "choices": ("linear", "logit"),
        "help": "their scale; logit spreads probabilities near 0 and 1, as of rare events",
    },
    # recalibrate
    "--save": {"metavar": "MAP", "help": "write the fitted map to MAP, as JSON"},
    "--map": {"metavar": "MAP", "help": "apply a saved map instead of fitting one"},
    "--logits": {
        **_FLAG,
        "help": "the predictions are logits, or of a single column the log-odds",
    },
    "--scoring": {
        "default": "neg_log_loss",
        "choices": ("neg_log_loss", "neg_brier_score"),
        "help": "what chooses the map (default: neg_log_loss)",
    },
    # monitor
    "--plot": {"metavar": "OUT", "help": "a figure of the evidence: .png, .svg or .pdf"},
    "--run-length": {
        "type": _positive,
        "metavar": "SAMPLES",
        "help": "for a new STATE: alarm by the e-detector, on average not before so many samples "
        "of a calibrated model",
    },
    "--again": {**_FLAG, "help": "add a file even if it, or rows of it, were added"},
    "--skip-unlabelled": {
        **_FLAG,
        "help": "leave out rows of a table without a label; add the file again when they have one "
        "(with --id)",
    },
    "--acknowledge": {
        **_FLAG,
        "help": "say that the alarm is known: the exit status is 0 until the next alarm",
    },
    "--reset": {
        **_FLAG,
        "help": "begin anew after the model was recalibrated or replaced, before FILE is added",
    },
    "--note": {
        "default": "",
        "metavar": "TEXT",
        "help": "why, kept with --acknowledge or --reset",
    },
    "--plan": {
        "type": _positive,
        "metavar": "RATIO",
        "help": "say how soon a drift to this ratio of observed to predicted events is found",
    },
}
