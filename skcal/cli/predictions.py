"""A file becomes checked predictions and labels; messages name its lines and columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any
from warnings import warn

import numpy as np

from skcal._labels import check_labels, read_shares
from skcal._show import listed
from skcal._validation import SWAPPED, InputError, check_predictions
from skcal.cli.bounds import FileError, errors_that_name, one_sentence
from skcal.cli.columns import (
    check_names,
    labelled_arrays,
    labelled_table,
    unlabelled_arrays,
    unlabelled_table,
)
from skcal.cli.missing import NAMES_END, LeftOut, joined_names, samples_left_out
from skcal.cli.table import FileTable, kind_of
from skcal.cli.text import LEAVE_OUT, Dialect, is_missing
from skcal.metrics.rounded import ROUNDING, divide_by_sums, misses_1
from skcal.sample import Sample, read_sample

PERCENT = 100.0
_ONE_NAME_EACH = (
    "Name each once. If a question has several answers, number them in a column of both files, "
    "such as sample, and pass --id question --id sample --groups question."
)
_BINARY = frozenset(["0", "1", "0.0", "1.0"])
_RIGHT = dict.fromkeys(["1", "1.0", "true", "t", "yes", "y", "right", "correct"], 1)
_RIGHT |= dict.fromkeys(["0", "0.0", "false", "f", "no", "n", "wrong", "incorrect"], 0)
_WRONG_RIGHT = np.array([0, 1])
_POSITIVE = frozenset(["yes", "true", "positive", "pos", "y", "t", "event", "case", "correct"])
_HALF = 0.5  # of the samples, by labels that no column has
_REMEDIES = {
    "logits": "If these are logits, pass --logits.",
    "probabilities": "Leave --logits out.",
    "range": "Give probabilities. For percentages pass --percent, for logits --logits.",
    "rounding": f"--normalize is for rounded rows alone, sums within {ROUNDING} of 1.",
    "classes": "Every label must be the name of a column of probabilities.",
    "positive class": "Name the positive one by --pos-label.",
}


@dataclass(frozen=True, eq=False)
class Predictions:
    """Checked predictions and labels.

    Attributes
    ----------
    proba : ndarray of shape (n_samples,) or (n_samples, n_classes)
        Logits if these were asked for.
    labels : ndarray of shape (n_samples,) or (n_samples, n_classes)
        Labels, or shares or votes of the classes.
    classes : ndarray of shape (n_classes,)
        The class of each column; of a single column (negative class, positive class).
    others : dict of str to ndarray of shape (n_samples,)
        Further columns that were asked for, such as subgroups.
    left_out : LeftOut or None
        Samples of the file that are not among these.
    names : sequence of str
        The names of the columns of predictions; empty for archives, whose columns have none.
    weight, groups : ndarray of shape (n_samples,) or None
        What the columns of ``--weight`` and ``--groups`` hold.
    resolution : float, "auto" or None
        What ``--resolution`` says.
    notes : sequence of str
        Sentences on how the file was read, which :attr:`skcal.Sample.read_as` tells.
    """

    proba: np.ndarray
    labels: np.ndarray
    classes: np.ndarray
    others: Mapping[str, np.ndarray] = field(default_factory=dict)
    left_out: LeftOut | None = None
    names: Sequence[str] = ()
    weight: np.ndarray | None = None
    groups: np.ndarray | None = None
    resolution: float | str | None = "auto"
    notes: Sequence[str] = ()

    def _replace(self, **changes: Any) -> Predictions:
        return replace(self, **changes)

    @property
    def beside(self) -> dict[str, Any]:
        """What public functions take beside labels and predictions."""
        return {"labels": self.classes, "sample_weight": self.weight, "groups": self.groups}

    @property
    def arguments(self) -> dict[str, Any]:
        """What public functions take of labels and predictions."""
        return {"y_true": self.labels, "y_proba": self.proba, **self.beside}

    @cached_property
    def _sample(self) -> Sample:
        told: dict[str, Any] = {"columns": self.names, "notes": self.notes}
        return read_sample(**self.arguments, resolution=self.resolution, **told)

    def sample(self, notion="auto") -> Sample:
        """Return the sample of a notion, which is read once."""
        return self._sample.asked(notion)

    def take(self, rows: np.ndarray) -> Predictions:
        """Return some of the samples."""
        return self._replace(
            proba=self.proba[rows],
            labels=self.labels[rows],
            others={name: values[rows] for name, values in self.others.items()},
            weight=None if self.weight is None else self.weight[rows],
            groups=None if self.groups is None else self.groups[rows],
        )

    def ordered_as(self, classes: np.ndarray) -> Predictions:
        """Bring the columns into the order of these, the same classes."""
        here, there = self.classes.tolist(), classes.tolist()
        if here == there:
            return self
        order = [here.index(name) for name in there]
        proba, labels = (
            part if part.ndim == 1 else part[:, order] for part in (self.proba, self.labels)
        )
        return self._replace(proba=proba, labels=labels, classes=classes)


def dialect_of(file, options) -> Dialect:
    """What the options say of a file, or its name: of ``.tsv`` a tabulator."""
    tabs = str(file).lower().endswith((".tsv", ".tsv.gz"))
    return Dialect(
        options.sep or ("\t" if tabs else ","),
        options.decimal,
        options.encoding,
        percent=options.scale == PERCENT,
        missing=options.drop_missing,
    )


def subgroups_of(predictions: Predictions, column: str) -> np.ndarray:
    """The subgroup of each sample; those without a value are one."""
    values = predictions.others[column]
    return np.where(values == "", "missing", values) if values.dtype.kind == "U" else values


def features_of(others: Mapping[str, np.ndarray], columns, dialect) -> dict[str, np.ndarray]:
    """Columns of numbers, as far as they hold nothing else, or of names; None is missing."""
    features, dialect = {}, dialect._replace(missing=True)
    for column in columns:
        values = others[column]
        if values.dtype.kind == "U":
            names, codes = np.unique(values, return_inverse=True)
            try:
                known = np.array([dialect.parse(name) for name in names.tolist()])
            except ValueError:
                known = names.astype(object)
                known[[is_missing(name) for name in names.tolist()]] = None
            values = known[codes]
        features[column] = values
    return features


def read_predictions(options, second=False, known: np.ndarray | None = None) -> Predictions:
    """Read predictions and labels from a text file, ``.jsonl``, ``.parquet`` or ``.npz`` file.

    ``-`` is the standard input, read as ``.csv`` or, if it begins with a brace, as ``.jsonl``.
    Text, perhaps as ``.gz``, and ``.parquet``: a column of probabilities per class named by the
    class, and a column of labels; a single column of probabilities holds P(label 1) or
    P(``--pos-label``). ``.jsonl``: an object on each line, whose names are the columns. ``.npz``:
    arrays ``proba`` and ``labels``, and optionally ``classes``, the class of each column. No code
    in a file is run.

    Parameters
    ----------
    options : argparse.Namespace
        Of a command.
    second : bool, default=False
        Whether to read its second file, which need not describe the samples again.
    known : ndarray of shape (2,), default=None
        The classes (negative, positive) of earlier files: a single column may lack one of them.

    Returns
    -------
    predictions : Predictions

    Raises
    ------
    FileError
        Says which line and column are wrong and what to do.
    """
    path, pos_label = Path(options.second if second else options.file), options.pos_label
    columns = _other_columns(options)
    others = {name: option for name, option in columns.items() if option == "--id" or not second}
    archive = kind_of(path) == "npz"
    with errors_that_name(path, options.max_bytes):
        if archive:
            read = labelled_arrays(path, others, options)
        else:
            read = labelled_table(path, others, columns, options, dialect_of(path, options))
        left_out = samples_left_out(read, options)
        if left_out is not None:
            read = read.take(~left_out.out)
        check_names(read)
        table, labels, classes, beside = read
        table = _divided_by(options.scale, table)
        with errors_in_words_of(table):
            proba = _check_numbers(
                table.predictions, options, options.logits, options.command == "recalibrate"
            )
            if isinstance(labels, FileTable):
                predictions = _check_shares(proba, table.names, labels, classes, pos_label)
            elif options.correct is not None:
                labels = _read_right(table, labels)
                predictions = _check_labels(table, proba, labels, classes, None, _WRONG_RIGHT)
            else:
                if pos_label is None and proba.ndim == 1 and table.header:
                    pos_label = _label_of(table.names[0], labels, known)
                predictions = _check_labels(table, proba, labels, classes, pos_label, known)
    weight = beside.get(options.weight)
    if weight is not None:
        weight = _read_weights(weight, options.weight, options)
    return predictions._replace(
        others=beside,
        left_out=left_out,
        names=table.names,
        weight=weight,
        groups=beside.get(options.groups),
        resolution=options.resolution,
    )


def _other_columns(options) -> dict[str, str]:
    """Columns that are neither classes nor labels, with the options that name them."""
    several = {"--by": options.by, "--segments": options.segments, "--feature": options.feature}
    named = {column: option for option, columns in several.items() for column in columns}
    of_samples = {options.groups: "--groups", options.weight: "--weight"}
    if options.command in ("compare", "monitor"):
        of_samples |= dict.fromkeys(options.id, "--id")
    return named | {column: option for column, option in of_samples.items() if column is not None}


def _divided_by(scale: float, table: FileTable) -> FileTable:
    """The table on the scale of probabilities."""
    if scale == 1 or table.numbers.dtype.kind not in "fiu":
        return table
    numbers = table.numbers / scale
    if numbers.size and np.nanmax(numbers) <= 1 / scale:
        warn(
            f"{table.path}: the largest prediction is {np.nanmax(numbers):.3g}, after division by "
            f"{scale:g}. Leave the option out if the file holds probabilities.",
            stacklevel=2,
        )
    return table._replace(numbers=numbers)


def _read_weights(values, name, options) -> np.ndarray:
    """Weights (n_samples,) of at least 0, not all of them 0."""
    dialect = dialect_of(options.file, options) if values.dtype.kind == "U" else Dialect()
    texts, codes = np.unique(values.astype(str), return_inverse=True)
    numbers = [dialect.parse(text) if dialect.is_number(text) else -1.0 for text in texts.tolist()]
    weights = np.array(numbers)
    wrong = texts[~((weights >= 0) & (weights < np.inf))]
    if len(wrong) or not weights.any():
        shown = repr(str(wrong[0])) if len(wrong) else "0 alone"
        raise FileError(
            f"{options.file}: column {name!r} holds {shown}. Give weights of at least 0."
        )
    return weights[codes]


def read_unlabelled(
    options, classes: np.ndarray, single: bool, keep_logits: bool | None = None, features=()
) -> tuple[np.ndarray, FileTable]:
    """Read predictions of the second file of a command; labels may be absent.

    Parameters
    ----------
    options : argparse.Namespace
    classes : ndarray of shape (n_classes,)
        The class of each column of the predictions that are wanted.
    single : bool
        Whether they are one column, of the positive class.
    keep_logits : bool, default=None
        Whether the predictions are logits, which stay so; None: as the option ``--logits`` says,
        and logits become probabilities.
    features : sequence of str, default=()
        Further columns of a table that are read as texts.

    Returns
    -------
    predictions : ndarray of shape (n_samples,) or (n_samples, n_classes)
        Columns in the order of the classes.
    table : FileTable
        Holds all other columns, or arrays, for :func:`skcal.cli.table.write_table`.
    """
    path, names = Path(options.second), [str(name) for name in classes.tolist()]
    dialect = dialect_of(path, options)._replace(missing=False)
    with errors_that_name(path, options.max_bytes):
        if kind_of(path) == "npz":
            table = unlabelled_arrays(path, names, single, options.max_bytes)
        else:
            wanted = None if single else names
            table = unlabelled_table(path, wanted, features, options, dialect)
        predictions = _divided_by(options.scale, table).predictions
        with errors_in_words_of(table):
            from_logits = options.logits if keep_logits is None else keep_logits
            return _check_numbers(predictions, options, from_logits, keep_logits is not None), table


def align(first: Predictions, second: Predictions, options) -> tuple[Predictions, Predictions]:
    """Bring another model's predictions into the order of the first, rows and columns.

    Samples that are left out of one are left out of both.

    Parameters
    ----------
    first, second : Predictions
        Predictions for the same samples, with the same labels; in the same order unless ``--id``
        names the samples. With ``--correct`` the answers of each model are right or wrong.
    options : argparse.Namespace
    """
    first_name, second_name, columns = options.file, options.second, options.id
    first, second = _left_out_of_both(first, second, first_name, second_name)
    if columns:
        second = _joined(first, second, first_name, second_name, columns)
    if len(first.labels) != len(second.labels):
        raise FileError(
            f"{second_name} has {len(second.labels)} samples, {first_name} {len(first.labels)}. "
            "Compare predictions for the same samples, in the same order."
        )
    here, there = first.classes.tolist(), second.classes.tolist()
    if first.proba.ndim != second.proba.ndim or set(here) != set(there):
        missing = sorted(map(str, set(here) ^ set(there))) or ["of a single column"]
        raise FileError(
            f"{second_name} and {first_name} have different classes; not in both: "
            f"{', '.join(missing[:8])}."
        )
    if first.proba.ndim == 2:
        second = second.ordered_as(first.classes)
    elif here != there:
        raise FileError(
            f"{first_name} has probabilities of {here[1]!r}, {second_name} of {there[1]!r}. Give "
            "those of one label."
        )
    if options.correct is not None:  # answers of two models are right or wrong by themselves
        return first, second
    different = first.labels != second.labels
    wrong = np.flatnonzero(different.reshape(len(different), -1).any(axis=1))
    if len(wrong):
        raise FileError(
            f"{second_name}: sample {wrong[0] + 1} has the label {second.labels[wrong[0]]!s}, in "
            f"{first_name} {first.labels[wrong[0]]!s}. Compare predictions for the same samples, "
            "in the same order."
        )
    return first, second


def _left_out_of_both(first, second, first_name, second_name) -> list[Predictions]:
    """Both without the samples that one of them lacks; the first knows them all."""
    here, there = first.left_out, second.left_out
    if here is None or len(here.out) != len(there.out):
        return [first, second]
    return [
        predictions.take(~left_out.out[~predictions.left_out.out])._replace(left_out=left_out)
        for predictions, left_out in (
            (first, here.beside(there, first_name, second_name)),
            (second, there.beside(here, second_name, first_name)),
        )
    ]


def _joined(first, second, first_name, second_name, columns) -> Predictions:
    """The rows of the second predictions in the order of the names of the first."""
    names = [
        names_of(predictions, columns, path, _ONE_NAME_EACH)
        for predictions, path in ((first, first_name), (second, second_name))
    ]
    missing = np.setxor1d(names[0], names[1]).tolist()
    if missing:
        path = second_name if missing[0] in names[0] else first_name
        name = shown_name(columns, missing[0])
        raise FileError(
            f"{path}: has no row of {name}, as has the other file. Compare predictions for the "
            "same samples."
        )
    rows = np.argsort(names[1])[np.argsort(np.argsort(names[0]))]
    return second._replace(proba=second.proba[rows], labels=second.labels[rows])


def names_of(predictions: Predictions, columns: Sequence[str], path, remedy: str) -> np.ndarray:
    """Join columns of ``others`` to a name of each sample; raises where two have the same."""
    names = joined_names([predictions.others[column] for column in columns])
    distinct, times = np.unique(names, return_counts=True)
    if len(distinct) < len(names):
        repeated = shown_name(columns, distinct[times > 1][0])
        raise FileError(f"{path}: {repeated} names several rows. {remedy}")
    return names


def shown_name(columns: Sequence[str], name: str) -> str:
    """Return what an error calls a sample."""
    parts = zip(columns, str(name).split(NAMES_END), strict=True)
    return ", ".join(f"{column} {part!r}" for column, part in parts)


# Checks of numbers and labels


@contextmanager
def errors_in_words_of(table: FileTable):
    """Let errors about arrays name the file's lines and columns, and what its owner can do."""
    try:
        yield
    except InputError as error:
        remedy, options = _REMEDIES.get(error.kind), dict[str, Any]()
        numbers, is_of_proba = table.numbers, error.argument == "proba"
        if error.kind == "integers":
            remedy = f"{SWAPPED}{_REMEDIES['range']}"
        if error.kind == "sum" and not misses_1(numbers[[error.row]]).any():
            remedy, options = "If it was rounded, pass --normalize.", {"normalize": True}
        elif is_of_proba and error.row is not None and np.isnan(numbers[error.row]).any():
            remedy, options = LEAVE_OUT, {"drop_missing": True}
        elif is_of_proba and error.row is not None and _are_percentages(numbers):
            remedy, options = "If these are percentages, pass --percent.", {"scale": PERCENT}
        elif error.kind == "logits":
            options = {"logits": True}
        row = None if error.row is None else table.words_for_row(error.row)
        k = 0 if error.argument == "proba" and len(table.names) == 1 else error.column
        column = None if k is None else table.words_for_column(k)
        message = one_sentence(error.message(remedy, row, column))
        raise FileError(f"{table.path}: {message}", **options) from error


def _are_percentages(numbers: np.ndarray) -> bool:
    """Whether numbers from 0 to 100 look like percentages: most are above 1, or rows sum to 100."""
    known = numbers[~np.isnan(numbers)]
    if not known.size or known.min() < 0 or known.max() > PERCENT:
        return False
    if numbers.ndim == 2 and numbers.shape[1] > 1:
        with np.errstate(invalid="ignore"):
            return bool(np.median(np.abs(np.nansum(numbers, axis=1) - PERCENT)) < 5)
    return bool(np.median(known) > 1)


def _check_numbers(numbers, options, from_logits: bool, keep_logits: bool) -> np.ndarray:
    """Probabilities of checked rows, divided by their sums if asked for; or logits as they are."""
    numbers = divide_by_sums(numbers) if options.normalize and not from_logits else numbers
    proba, _ = check_predictions(numbers, from_logits or None, name="proba")
    return numbers if from_logits and keep_logits else proba


def _check_labels(table, proba, labels, classes, pos_label, known) -> Predictions:
    if proba.ndim == 1 and classes is None:
        labels, classes = _labels_of_one_column(table, labels, pos_label, known)
    if classes is not None and labels.dtype.kind == classes.dtype.kind == "U":
        what = f", which is not one of the classes {listed(classes.tolist())}."
        _refuse_other_labels(table, labels, classes.tolist(), what, _REMEDIES["classes"])
    codes, classes = check_labels(labels, proba, classes, name="label", proba_name="proba")
    return _with_positive_last(Predictions(proba, classes[codes], classes), pos_label)


def _check_shares(proba, names, shares: FileTable, classes, pos_label) -> Predictions:
    """Predictions and shares; of a single column its name may tell the positive class."""
    with errors_in_words_of(shares):
        if read_shares(shares.numbers, proba, "shares", "proba") is None:
            raise InputError(
                "shares", f"have shape {shares.numbers.shape}.", "Give a column for each class."
            )
    if len(classes) != shares.numbers.shape[1]:
        raise ValueError(
            f"array 'classes' has {len(classes)} entries, that of shares {shares.numbers.shape[1]} "
            "columns. Save the class of each column, once."
        )
    if proba.ndim == 1 and pos_label is None:
        known = [str(name) for name in classes.tolist()]
        pos_label = next((name for name in (*names, "1") if name in known), None)
        if pos_label is None or (pos_label == "1" and "0" not in known):
            raise ValueError(
                f"The single column of probabilities may be of either class, {listed(known)}. "
                f"{_REMEDIES['positive class']}"
            )
    return _with_positive_last(Predictions(proba, shares.numbers, classes), pos_label)


def _with_positive_last(predictions: Predictions, pos_label) -> Predictions:
    """Let the positive one of two classes be the second; of a single column it is its class."""
    if pos_label is None:
        return predictions
    names = [str(name) for name in predictions.classes.tolist()]
    if len(names) != 2 or pos_label not in names:
        raise ValueError(f"--pos-label {pos_label!r} is not one of two classes: {listed(names)}.")
    negative_first = predictions.classes[:: 1 if pos_label == names[1] else -1]
    return predictions.ordered_as(negative_first)


def _label_of(name, labels, known):
    """The name of a single column if it is that of a label, and not of the one that is implied."""
    if known is not None:
        return name if name == str(known[0]) else None
    names = np.unique(labels).tolist()
    is_label = len(names) == 2 and name in names and (name, *names) != ("1", "0", "1")
    return name if is_label else None


def _labels_of_one_column(table, labels, pos_label, known):
    """Labels of a single column, and the classes where they are known."""
    if known is not None and set(labels.tolist()) <= set(known.tolist()):
        return labels, known[::-1] if pos_label == str(known[0]) else known
    if pos_label is not None:
        present = np.unique(labels)
        if len(present) != 2:
            raise ValueError(
                f"--pos-label {pos_label!r} needs two labels, found {listed(present.tolist())}."
            )
        return labels, present
    if labels.dtype.kind != "U" or labels.ndim != 1:
        return labels, None
    names = [text for text in dict.fromkeys(labels.tolist()) if not is_missing(text)]
    likely = [text for text in names if text.lower() in _POSITIVE]
    is_clear = len(names) == 2 and len(likely) == 1 and _BINARY.isdisjoint(names)
    remedy = (
        "With a single column of probabilities labels must be 0 or 1; for other labels name the "
        "positive one by --pos-label."
    )
    options = {"pos_label": likely[0]} if is_clear else {}
    _refuse_other_labels(table, labels, [*_BINARY], ".", remedy, **options)
    return labels.astype(float).astype(int), None


def _read_right(table: FileTable, labels: np.ndarray) -> np.ndarray:
    """1 of right answers and 0 of wrong ones, of any of the words for that."""
    labels = labels.astype(str)
    words, codes = np.unique(labels, return_inverse=True)
    known = [word for word in words.tolist() if word.lower() in _RIGHT]
    remedy = "Write 1 or 0, true or false, yes or no, right or wrong."
    _refuse_other_labels(table, labels, known, ", neither right nor wrong.", remedy)
    return np.array([_RIGHT[word.lower()] for word in known])[codes]


def _refuse_other_labels(
    table: FileTable, labels, known: Sequence[str], what: str, remedy: str, **options: Any
) -> None:
    """Raise where texts are not among the known labels, with what would leave out the others."""
    wrong = ~np.isin(labels, known)
    if not wrong.any():
        return
    row = int(np.argmax(wrong))
    label = str(labels[row])
    if is_missing(label):
        remedy, options = LEAVE_OUT, {"drop_missing": True}
    elif wrong.mean() < _HALF:
        others = [text for text in dict.fromkeys(labels[wrong].tolist()) if not is_missing(text)]
        remedy += f" To leave out such samples, {wrong.sum():,} of {len(wrong):,}, pass "
        remedy += " ".join(f"--drop-label {text!r}" for text in others) + "."
        options = {"drop_label": others}
    place = f"{table.path}: label {table.words_for_row(row)}"
    raise FileError(f"{place} is {label!r}{what} {remedy}", **options)
