"""A file becomes checked predictions and labels; messages name its lines and columns."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any
from warnings import warn

import numpy as np

from skcal._show import listed
from skcal._validation import check_predictions
from skcal.cli.archives import doubt_order, labelled_arrays, unlabelled_arrays
from skcal.cli.cells import Dialect, is_missing, whole
from skcal.cli.clusters import (
    may_name,
    refuse_or_tell,
    refuse_or_tell_copies,
    refuse_or_tell_weights,
    tell_counts,
)
from skcal.cli.columns import (
    Columns,
    as_labels,
    columns_of_only,
    labelled_table,
    require_labels,
    same_columns,
    tell_training,
    text_column,
    unlabelled_table,
)
from skcal.cli.files import kind_of
from skcal.cli.frames import Frame
from skcal.cli.labels import (
    MOST_ROUNDED,
    NAMES_END,
    WRONG_RIGHT,
    LeftOut,
    check_shares,
    drops_missing,
    encode,
    errors_in_words_of,
    joined_names,
    of_classes,
    positive_last,
    read_right,
    refuse_wrong_scale,
    samples_left_out,
)
from skcal.cli.names import is_known, is_of_weights, kind_of_samples
from skcal.cli.problems import PERCENT, FileError, check_size, errors_that_name
from skcal.cli.table import FileTable
from skcal.metrics import normalize_proba
from skcal.report.compare import read_subgroups
from skcal.sample import Sample, read_sample

_ONE_NAME_EACH = (
    "Name each once. If a question has several answers, number them in a column of both files, "
    "such as sample, and pass --id question --id sample --groups question."
)
_SLACK = 2.0**-21  # four units in the last place of 1 as float32, which texts may come from
_MOST_SUBGROUPS, _LEAST_OF_SUBGROUP = 12, 30  # of a column that may name some, and rows of one
_HARDLY = np.log(1e-6)  # the probability that all are right, below which that is remarked on
BELOW_LARGEST = 1e4  # the logit of an absent option, whose probability is 0


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
    of_answers : bool
        Whether the predictions are confidences of answers that are right, 1, or wrong, 0.
    doubts : sequence of str
        Those of the notes that are caveats of a report.
    subgroups : str or None
        A column that may name subgroups, which no option names.
    settled : Columns or None
        What the columns of further rows mean.
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
    of_answers: bool = False
    doubts: Sequence[str] = ()
    subgroups: str | None = None
    settled: Columns | None = None

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
    def read(self) -> Sample:
        """All samples, those of weight 0, too."""
        told: dict[str, Any] = {"columns": self.names, "notes": self.notes}
        told |= {"resolution": self.resolution, "keep_weightless": True}
        return read_sample(**self.arguments, **told)

    @property
    def rows(self) -> Sample:
        """Samples that hold rows, which stand beside each other in the file."""
        return self.sample()

    def parts(self, by: Sequence[str]) -> dict[str, Predictions]:
        """All samples, named "", and those of each subgroup that columns name."""
        columns = {name: subgroups_of(self, name) for name in by}
        parts = read_subgroups(columns, len(self.labels)) if by else []
        return {"": self} | {name: self.take(rows) for name, rows in parts}

    def sample(self, notion="auto") -> Sample:
        """The samples of positive weight for a question about a notion."""
        return self.read.asked(notion).counted

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
        here, there = (list(map(str, part.tolist())) for part in (self.classes, classes))
        if here == there:
            return self
        order = [here.index(name) for name in there]
        proba, labels = (
            part if part.ndim == 1 else part[:, order] for part in (self.proba, self.labels)
        )
        names = self.names
        if len(names) == len(order):
            names = [names[place] for place in order]
        return self._replace(proba=proba, labels=labels, classes=classes, names=names)


def dialect_of(options) -> Dialect:
    """What the options say of a file."""
    return Dialect(
        options.sep,
        options.decimal,
        options.encoding,
        percent=options.scale == PERCENT,
        header=options.header != "none",
        missing=drops_missing(options),
        codes=options.missing,
        bounds=options.bounds,
        sheet=options.sheet,
    )


def subgroups_of(predictions: Predictions, column: str) -> np.ndarray:
    """The subgroup of each sample; those without a value are one."""
    values = predictions.others[column]
    return np.where(values == "", "missing", values) if values.dtype.kind == "U" else values


def features_of(others: Mapping[str, np.ndarray], columns, dialect) -> dict[str, np.ndarray]:
    """Columns of numbers, as far as they hold nothing else, or of names; None is missing."""
    features, dialect = {}, dialect._replace(missing=True, codes=())
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


def read_predictions(
    options, second=False, known: np.ndarray | None = None, of_part: bool = False
) -> Predictions:
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
    of_part : bool, default=False
        Whether there are further rows, which mean the same by ``settled``.

    Returns
    -------
    predictions : Predictions

    Raises
    ------
    FileError
        Says which line and column are wrong and what to do.
    """
    path = Path(options.second if second else options.file)
    if second:
        options = Namespace(**vars(options))
        options.score = options.score if options.second_score is None else options.second_score
        options.only = options.second_only or options.only
    columns = _other_columns(options)
    others = {name: option for name, option in columns.items() if option == "--id" or not second}
    files = () if second else options.files
    archive = not files and kind_of(path) == "npz"
    with errors_that_name(path, options.max_bytes, files or None):
        if archive:
            read = labelled_arrays(path, others, options)
        else:
            read = labelled_table(path, others, columns, options, dialect_of(options))
        left_out = samples_left_out(read, options, of_part)
        if left_out is not None:
            read = read.take(~left_out.out)
        if options.predicted is not None and read.predicted is None:
            raise FileError(
                f"{path}: --predicted is for labels beside a single column of a table, which holds "
                "the probability of the class that was predicted. The predictions here are "
                f"{listed(read.table.names or ['an array'])}. Leave --predicted out, or name that "
                "column by --score.",
                predicted=None,
            )
        require_labels(read)
        if archive:
            doubt_order(read)
        refuse_wrong_scale(read.table, read.outcomes, options)
        read = read._replace(table=_on_scale(read.table, options))
        with errors_in_words_of(read.table, options):
            predictions = _checked(read, options, known)
    proba, beside = predictions.proba, read.others
    weight = _read_weights(beside, options, of_part)
    notes = *_notes_of(options, proba), *read.notes, *predictions.notes
    predictions = predictions._replace(
        settled=read if of_part else None,
        others=beside,
        left_out=left_out,
        weight=weight,
        groups=_read_groups(read.table, beside.get(options.groups), options.groups),
        resolution=options.resolution,
        notes=(*notes, *_other_event(predictions, options)),
        subgroups=_likely_subgroups(read.table, predictions.classes, options),
    )
    # Of two files the rows are brought into one order first.
    return predictions if options.command == "compare" else repeated(predictions, options)


def _checked(read: Columns, options, known) -> Predictions:
    """Predictions and labels that suit each other, with notes on rows that do not look as usual."""
    table, labels, classes = read.table, read.outcomes, read.classes
    keep_logits = options.logits and options.command == "recalibrate"
    proba = _check_numbers(table.predictions, options, options.logits, keep_logits)
    pos_label, names, of_answers = options.pos_label, table.names, options.correct is not None
    if isinstance(labels, FileTable):
        assert classes is not None
        pos_label = check_shares(proba, names, labels, classes, options)
        predictions = Predictions(proba, labels.numbers, classes, names=names)
        return predictions.ordered_as(positive_last(classes, pos_label))
    if read.predicted is not None:
        proba, labels, classes, of_answers = _of_predicted(table, read, proba)
        names = names if proba.ndim == 1 else []
    elif of_answers:
        labels, classes = read_right(table, labels, pos_label), WRONG_RIGHT
        pos_label = None
    labels, classes = encode(table, proba, labels, classes, options, known, read.event)
    notes = []
    if not (of_answers or keep_logits):
        notes = _remark_on_hits(proba, labels, classes, options.label)
    doubts = _rows_that_belong_together(read, proba, (labels, classes), options)
    predictions = Predictions(proba, labels, classes, names=names, of_answers=of_answers)
    predictions = predictions._replace(notes=(*notes, *doubts), doubts=doubts)
    if pos_label is not None or proba.ndim == 2:
        predictions = predictions.ordered_as(positive_last(classes, pos_label))
    return predictions


def read_more(
    frame: Frame, first: Predictions, options
) -> tuple[Predictions | None, LeftOut | None]:
    """Read further rows of the file of predictions of its first rows; None if all are left out.

    Parameters
    ----------
    frame : Frame
    first : Predictions
        With ``settled``.
    options : argparse.Namespace
    """
    others, dialect = _other_columns(options), dialect_of(options)
    with errors_that_name(frame.path, np.inf, ()):
        read = same_columns(frame, first.settled, others, options, dialect)
        left_out = samples_left_out(read, options, of_part=True)
        if left_out is not None:
            if left_out.out.all():
                return None, left_out
            read = read.take(~left_out.out)
        require_labels(read)
        table, classes, labels = _on_scale(read.table, options), read.classes, read.outcomes
        assert not isinstance(labels, FileTable)  # all rows are held
        with errors_in_words_of(table, options):
            proba = _check_numbers(table.predictions, options, options.logits, keep_logits=False)
            if first.of_answers:
                labels = read_right(table, labels, options.pos_label)
            else:
                labels = of_classes(table, labels, first.classes)
    weight = _read_weights(read.others, options, of_part=True)
    classes = first.classes if first.of_answers or classes is None else classes
    part = Predictions(proba, labels, classes, read.others, weight=weight)
    return part.ordered_as(first.classes), left_out


def _remark_on_hits(proba: np.ndarray, labels, classes, name: str) -> list[str]:
    """A note where each outcome is the most probable class, though predictions are less sure."""

    def are_hits(rows):
        part = proba[rows]
        likeliest = (part > 0.5).astype(int) if part.ndim == 1 else part.argmax(axis=1)
        return (classes[likeliest] == labels[rows]).all()

    if not (are_hits(slice(1000)) and are_hits(slice(None)) and (labels != labels[:1]).any()):
        return []
    sure = np.maximum(proba, 1 - proba) if proba.ndim == 1 else proba.max(axis=1)
    if np.log(sure).sum() > _HARDLY:
        return []
    return [
        f"Column {name!r} holds the most probable class in all of {len(proba):,} rows, as a column "
        "of predicted classes does. If it was predicted, name the column that holds what happened "
        "by --label."
    ]


def _rows_that_belong_together(read, proba, pair, options) -> list[str]:
    """Notes on rows of a file that may depend on each other or have weights no option names."""
    table, (labels, classes) = read.table, pair
    if table.frame is None or not hasattr(options, "groups"):
        return []
    rest = unused_columns(table, options)
    told = tell_training(table.frame, rest, options)
    if options.weight is not None:
        told += tell_counts(table.frame, table.rows, options)
    elif options.count is None and options.command != "monitor":
        told += refuse_or_tell_weights(table.frame, rest, table.rows, options)
    copies = refuse_or_tell_copies(table.frame, rest, table.rows, options)
    if copies or not (options.groups is None or options.groups in table.frame.header):
        return told + copies
    order = np.argsort(classes)
    happened = order[np.searchsorted(classes[order], labels)]
    return told + refuse_or_tell(table.frame, rest, table.rows, proba, happened, options)


def unused_columns(table: FileTable, options) -> list[str]:
    """The columns of a table that nothing was read from."""
    used = {*_other_columns(options), *table.names, table.vector, *options.ignore, options.label}
    frame: Any = table.frame
    used |= {options.predicted, options.score, options.weight, options.count}
    used |= columns_of_only(frame, options).keys()
    return [name for name in dict.fromkeys(frame.header) if name not in used]


def _likely_subgroups(table: FileTable, classes, options) -> str | None:
    """The first unused column of few names, each of several rows, that are no labels."""
    frame, labels = table.frame, {str(label) for label in classes.tolist()}
    if frame is None or not (hasattr(options, "by") or options.command == "monitor"):
        return None
    for name in unused_columns(table, options):
        of_rows = kind_of_samples(name) or is_of_weights(name) or is_known("fold", name)
        if of_rows or not may_name(frame, name):
            continue
        if 2 <= frame.n_distinct(name) <= _MOST_SUBGROUPS:
            values, codes = frame.texts(name)
            few = np.bincount(np.asarray(codes)).min() < _LEAST_OF_SUBGROUP
            few |= len(values) > _MOST_SUBGROUPS
            if not few and not {value.strip() for value in values} <= labels:
                return name
    return None


def _notes_of(options, proba: np.ndarray) -> list[str]:
    """What options did to the numbers of a file."""
    notes = [f"Predictions were divided by {options.scale:g}."] * (options.scale != 1)
    rows = "; those of a row become probabilities that sum to 1" * (proba.ndim == 2)
    notes += [f"Predictions were read as logits{rows}."] * bool(options.logits)
    if options.predicted is not None:
        notes += [f"Column {options.predicted!r} names the class of each probability."]
    return notes + ["Predictions are the exponentials of the file's."] * options.log_probabilities


def _other_event(predictions: Predictions, options) -> list[str]:
    """A sentence on ``--pos-label`` where names of two classes do not say which is the event."""
    names = list(map(str, predictions.classes.tolist()))
    is_asked = options.pos_label is not None or predictions.of_answers
    if predictions.proba.ndim != 2 or len(names) != 2 or is_asked or {*names} <= {"0", "1", "-1"}:
        return []
    words = is_known("negative", names[0]) and is_known("positive", names[1])
    return [] if words else [f"--pos-label {names[0]} makes the other label the event."]


def _of_predicted(table: FileTable, read, proba):
    """Predictions, labels and classes where a column names the class of each probability.

    Of two classes these are columns; of more the confidences of answers, right or wrong.
    """
    labels, predicted = read.outcomes, _as_labels(table, read)
    classes = np.array(sorted({*labels.tolist(), *predicted.tolist()}))
    if len(classes) > 2:
        return proba, (labels == predicted).astype(int), WRONG_RIGHT, True
    second = np.where(predicted == classes[-1], proba, 1 - proba)
    return np.column_stack([1 - second, second]), labels, classes, False


def _as_labels(table: FileTable, read) -> np.ndarray:
    """The predicted classes, by the names of the labels; raise if none is among these."""
    known, names = (
        [name for name in np.unique(part).tolist() if not is_missing(name)]
        for part in (read.outcomes, read.predicted)
    )
    written = as_labels(names, known)
    if not written and {*names}.isdisjoint(known):
        raise FileError(
            f"{table.path}: the column of --predicted holds {listed(names)}, and the column of "
            f"--label {listed(known)}. Write the same names in both."
        )
    return np.array([written.get(name, name) for name in read.predicted.tolist()])


def _other_columns(options) -> dict[str, str]:
    """Columns that are neither classes nor labels, with the options that name them."""
    several = {"--by": options.by, "--segments": options.segments, "--feature": options.feature}
    named = {column: option for option, columns in several.items() for column in columns}
    of_samples = {options.groups: "--groups", options.weight: "--weight", options.count: "--count"}
    if options.command in ("compare", "monitor"):
        of_samples |= {options.date: "--date", **dict.fromkeys(options.id, "--id")}
    return named | {column: option for column, option in of_samples.items() if column is not None}


def _read_weights(others, options, of_part: bool = False) -> np.ndarray | None:
    """The weights of ``--weight``, if it is given."""
    name = options.weight
    return _amounts(others[name], name, options, of_part) if name in others else None


def _amounts(values, name, options, of_part: bool = False) -> np.ndarray:
    """Numbers (n_samples,) of at least 0, not all of them 0 unless they are of a part."""
    dialect = dialect_of(options) if values.dtype.kind == "U" else Dialect()
    dialect = dialect._replace(codes=())
    texts, codes = np.unique(values.astype(str), return_inverse=True)
    numbers = {x: dialect.parse(x) if dialect.is_number(x) else -1.0 for x in texts.tolist()}
    wrong = [repr(text) for text, number in numbers.items() if not 0 <= number < np.inf]
    if not (any(numbers.values()) or of_part):
        wrong.append("0 alone")
    if wrong:
        raise FileError(
            f"{options.file}: column {name!r} holds {wrong[0]}. Give weights of at least 0."
        )
    return np.array(list(numbers.values()))[codes]


def repeated(predictions: Predictions, options) -> Predictions:
    """Each row as often as ``--count`` says, in an order in which equal rows are no neighbours."""
    name = options.count
    if name is None:
        return predictions
    values = predictions.others[name]
    numbers = _amounts(values, name, options)
    wrong = np.flatnonzero(numbers % 1)
    if len(wrong):
        raise FileError(
            f"{options.file}: column {name!r} holds {values[wrong[0]]!s}, which is no number of "
            f"samples. If it holds sample weights, pass --weight {name!r} in its place.",
            count=None,
            weight=name,
        )
    width = predictions.proba[:1].size + len(predictions.others)
    check_size(options.file, 8.0 * numbers.sum() * width, options.max_bytes)
    rows = np.repeat(np.arange(len(numbers)), numbers.astype(np.int64))
    note = f"Column {name!r} says how many samples each of {len(numbers):,} rows stands for."
    predictions = predictions._replace(notes=(*predictions.notes, note))
    return predictions.take(np.random.default_rng(0).permutation(rows))


def _read_groups(table: FileTable, names: np.ndarray | None, column) -> np.ndarray | None:
    """Names of clusters (n_samples,), none of them missing, which would make one of many."""
    if names is not None and names.dtype.kind == "U":
        absent = [name for name in np.unique(names).tolist() if is_missing(name)]
        wrong = np.isin(names, absent)
        if wrong.any():
            raise FileError(
                f"{table.path}: {table.words_for_row(int(np.argmax(wrong)))}, column {column!r} is "
                f"{names[wrong].tolist()[0]!r}, in {wrong.sum():,} rows. Name what each row "
                "belongs to, and a row that stands alone by a name of its own."
            )
    return names


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
    dialect = dialect_of(options)
    with errors_that_name(path, options.max_bytes):
        if kind_of(path) == "npz":
            table = unlabelled_arrays(path, names, single, options)
        else:
            wanted = None if single or options.predicted is not None else names
            table = unlabelled_table(path, wanted, features, options, dialect)
        if drops_missing(options) and table.numbers.dtype.kind == "f":
            absent = np.isnan(table.numbers).reshape(len(table.numbers), -1).any(axis=1)
            if absent.any():
                stay = "stay as they are" if options.command == "recalibrate" else "are left out"
                n, size = np.count_nonzero(absent), len(absent)
                warn(f"{path}: {n:,} of {size:,} rows without a prediction {stay}.", stacklevel=2)
                table = table.take(~absent)
        predictions = _on_scale(table, options).predictions
        with errors_in_words_of(table, options):
            from_logits = options.logits if keep_logits is None else keep_logits
            checked = _check_numbers(predictions, options, from_logits, keep_logits is not None)
        if options.predicted is not None and not single:
            second = is_of_second(table, classes, options)
            checked = np.where(second, checked, 1 - checked)
            checked = np.column_stack([1 - checked, checked])
        return checked, table


def is_of_second(table: FileTable, classes: np.ndarray, options) -> np.ndarray:
    """Whether the column of ``--predicted`` names the second of two classes in each row."""
    names = np.array([whole(name) for name in text_column(table, options.predicted, np.inf)])
    distinct = np.unique(names).tolist()
    written = as_labels(distinct, list(map(str, classes.tolist())))
    if not written:
        raise FileError(
            f"{table.path}: the column of --predicted holds {listed(distinct)}, and the labels are "
            f"{listed(classes.tolist())}. Write the same names in both."
        )
    names = names if table.rows is None else names[table.rows]
    return np.array([written[name] for name in names.tolist()]) == str(classes[1])


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


# Numbers


def _on_scale(table: FileTable, options) -> FileTable:
    """The table on the scale of probabilities, or of logits."""
    numbers = table.numbers
    if numbers.dtype.kind not in "fiu":
        return table
    if options.scale != 1:
        numbers = numbers / options.scale
        if numbers.size and np.nanmax(numbers) <= 1 / options.scale:
            warn(
                f"{table.path}: the largest prediction is {np.nanmax(numbers):.3g}, after division "
                f"by {options.scale:g}. Leave the option out if the file holds probabilities.",
                stacklevel=2,
            )
    if options.log_probabilities:
        if np.nanmax(numbers, initial=-np.inf) > _SLACK:
            raise FileError(
                f"{table.path}: a prediction is {np.nanmax(numbers):.6g}, above 0 as no logarithm "
                "of a probability is. Leave --log-probabilities out."
            )
        numbers = np.exp(numbers)
    elif options.logits and numbers.ndim == 2 and numbers.shape[1] > 1:
        with np.errstate(invalid="ignore"):  # -inf is probability 0
            absent = np.isneginf(numbers) & np.isfinite(numbers.max(axis=1, keepdims=True))
            numbers = np.where(absent, numbers.max(axis=1, keepdims=True) - BELOW_LARGEST, numbers)
    if not options.logits and not _are_inside(numbers):
        slack = MOST_ROUNDED if options.normalize else _SLACK
        with np.errstate(invalid="ignore"):
            high, low = (numbers > 1) & (numbers <= 1 + slack), (numbers < 0) & (numbers >= -slack)
        far = (high & (numbers > 1 + _SLACK)) | (low & (numbers < -_SLACK))
        if far.any():
            words = "number outside [0, 1] is" if far.sum() == 1 else "numbers outside [0, 1] are"
            warn(f"{far.sum():,} {words} set to 0 or 1, as --normalize asks.", stacklevel=2)
        numbers = np.where(high, 1.0, np.where(low, 0.0, numbers))
    return table._replace(numbers=numbers)


def _are_inside(numbers: np.ndarray) -> bool:
    """Whether all numbers are from 0 to 1, without a copy."""
    return np.nanmin(numbers, initial=0.0) >= 0 and np.nanmax(numbers, initial=1.0) <= 1


def _check_numbers(numbers, options, from_logits: bool, keep_logits: bool) -> np.ndarray:
    """Probabilities of checked rows, divided by their sums if asked for; or logits as they are."""
    numbers = normalize_proba(numbers) if options.normalize and not from_logits else numbers
    proba, _ = check_predictions(numbers, from_logits or None, name="proba")
    return numbers if from_logits and keep_logits else proba
