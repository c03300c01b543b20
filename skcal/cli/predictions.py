"""A table becomes predictions and labels; messages name the lines and columns of its file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple
from warnings import warn

import numpy as np

from skcal._labels import check_labels, read_shares
from skcal._validation import LOGITS, SWAPPED, InputError, check_proba
from skcal._validation import check_predictions as check_floats
from skcal.cli.bounds import FileError, check_size, errors_that_name, listed, one_sentence
from skcal.cli.table import FileTable, kind_of, read_arrays, read_table
from skcal.cli.text import NO_CLASS, Dialect, Texts, require_cells
from skcal.metrics.rounded import ROUNDING, divide_by_sums, misses_1

MAX_BYTES = 4 * 2**30
_COMMAS = Dialect()
_MISSING = ("", "na", "nan", "null", "none")  # what stands for no value of a feature
_MOST_NAMES = 1000  # names and labels whose likeness is looked for
_SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabulators", "|": "bars"}
_REMEDIES = {
    "logits": "If these are logits, apply the softmax.",
    "range": LOGITS.format("the softmax, to a single column the logistic function"),
    "rounding": f"--normalize mends rounding alone, sums within {ROUNDING} of 1.",
    "classes": "Every label must be the name of a column of probabilities.",
    "positive class": "Name the positive one by --pos-label.",
}


class Predictions(NamedTuple):
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
    """

    proba: np.ndarray
    labels: np.ndarray
    classes: np.ndarray
    others: Mapping[str, np.ndarray] = MappingProxyType({})

    def ordered_as(self, classes: np.ndarray) -> Predictions:
        """Bring the columns into the order of these, the same classes."""
        here, there = self.classes.tolist(), classes.tolist()
        if here == there:
            return self
        order = [here.index(name) for name in there]
        labels = self.labels if self.labels.ndim == 1 else self.labels[:, order]
        return self._replace(proba=self.proba[:, order], labels=labels, classes=classes)


def samples_of(predictions: Predictions, options) -> dict[str, Any]:
    """``sample_weight`` and ``groups`` by the columns that ``--weight`` and ``--groups`` name."""
    weight, groups = (getattr(options, name, None) for name in ("weight", "groups"))
    others = predictions.others
    return {
        "sample_weight": None if weight is None else _weights(others[weight], weight, options),
        "groups": None if groups is None else others[groups],
    }


def _weights(values, name, options) -> np.ndarray:
    """Numbers of at least 0, of which one is above."""
    dialect = dialect_of(options)
    distinct, codes = np.unique(values, return_inverse=True)
    texts = [str(one) for one in distinct.tolist()]
    if values.dtype.kind != "U":
        dialect = Dialect()
    numbers = np.array([dialect.parse(one) if dialect.is_number(one) else -1.0 for one in texts])
    wrong = np.flatnonzero(~((numbers >= 0) & (numbers < np.inf)))
    if len(wrong) or not numbers.any():
        found = repr(texts[wrong[0]]) if len(wrong) else "0 alone"
        raise FileError(
            f"{options.file}: column {name!r} holds {found}. Give weights of at least 0."
        )
    return numbers[codes]


def dialect_of(options) -> Dialect:
    """What ``--sep`` and ``--decimal`` say."""
    return Dialect(options.sep, options.decimal)


def subgroups_of(predictions: Predictions, column: str) -> np.ndarray:
    """The subgroup of each sample; those without a value are one."""
    values = predictions.others[column]
    return np.where(values == "", "missing", values) if values.dtype.kind == "U" else values


def features_of(predictions: Predictions, options) -> dict[str, np.ndarray]:
    """Columns of ``--segments``: numbers, as far as they hold nothing else, or names.

    None is missing.
    """
    dialect = dialect_of(options)
    features = {}
    for column in options.segments:
        values = predictions.others[column]
        if values.dtype.kind == "U":
            names, codes = np.unique(values, return_inverse=True)
            known = [None if name.lower() in _MISSING else name for name in names.tolist()]
            numeric = all(name is None or dialect.is_number(name) for name in known)
            parsed = [
                None if one is None else dialect.parse(one) if numeric else one for one in known
            ]
            values = np.array(parsed, dtype=np.float64 if numeric else object)[codes]
        features[column] = values
    return features


def read_predictions(
    path,
    label: str = "label",
    others: Mapping[str, str] = MappingProxyType({}),
    max_bytes: float = MAX_BYTES,
    *,
    pos_label: str | None = None,
    normalize: bool = False,
    ignored: Sequence[str] = (),
    spared: Sequence[str] = (),
    score: str | None = None,
    soft: str | None = None,
    from_logits: bool = False,
    known: np.ndarray | None = None,
    dialect: Dialect = _COMMAS,
) -> Predictions:
    """Read predictions and labels from a ``.csv``, ``.csv.gz``, ``.parquet`` or ``.npz`` file.

    Parameters
    ----------
    path : path-like
        ``-`` is the standard input, read as ``.csv``. ``.csv``, ``.csv.gz`` and ``.parquet``: a
        column of probabilities per class named by the class, and a column of labels; a single
        column of probabilities holds P(label 1) or P(``pos_label``).
        ``.npz``: arrays ``proba`` and ``labels``, and optionally ``classes``, the class of each
        column. No code in a file is run.
    label : str, default="label"
        Name of the label column of a table.
    others : mapping of str to str, default={}
        Names of further columns (arrays) to read, with the options that name them.
    max_bytes : float, default=4 GiB
        Files whose content takes more are refused.
    pos_label : str, default=None
        The positive label of a single column; of two columns that which comes second.
    normalize : bool, default=False
        Divide each row by its sum, which may miss 1 by 0.05: for rounded probabilities.
    ignored : sequence of str, default=()
        Columns of a table that are neither classes nor labels.
    spared : sequence of str, default=()
        Further such columns, which may be absent.
    score : str, default=None
        The only column of a table that holds predictions, where there are others as well.
    soft : str, default=None
        What the names of columns of shares or votes begin with, before the class; no labels are
        read then. Of an archive the array that holds them.
    from_logits : bool, default=False
        Whether there are logits in place of probabilities.
    known : ndarray of shape (2,), default=None
        The classes (negative, positive) of earlier files: a single column may lack one of them.
    dialect : Dialect, default=Dialect()
        Of a text file: commas between fields and decimal points, unless told otherwise.

    Returns
    -------
    predictions : Predictions

    Raises
    ------
    FileError
        Says which line and column are wrong and what to do.
    """
    path = Path(path)
    archive = kind_of(path) == "npz"
    with errors_that_name(path, max_bytes):
        if archive:
            table, labels, classes, beside = _labelled_arrays(path, others, soft, max_bytes)
        else:
            table, labels, classes, beside = _labelled_table(
                path, label, others, tuple(ignored), spared, score, soft, max_bytes, dialect
            )
        with errors_in_words_of(table):
            proba = _check_numbers(table.predictions, normalize, from_logits)
            if isinstance(labels, FileTable):
                predictions = _check_shares(proba, table.names, labels, classes, pos_label)
            else:
                if pos_label is None and proba.ndim == 1 and table.header:
                    pos_label = _label_of(table.names[0], labels, known)
                predictions = _check_labels(proba, labels, classes, pos_label, known)
    if archive and classes is None and proba.ndim == 2 and predictions.classes.dtype.kind == "U":
        names = listed([str(name) for name in predictions.classes])
        warn(
            f"{path}: without an array 'classes' the columns are taken to be in the order of the "
            f"sorted labels, {names}. Save classes=… to say which they are.",
            stacklevel=2,
        )
    return predictions._replace(others=beside)


def read_unlabelled(
    path,
    classes: Sequence[str],
    single: bool,
    max_bytes: float = MAX_BYTES,
    *,
    others: Sequence[str] = (),
    score: str | None = None,
    soft: str | None = None,
    normalize: bool = False,
    from_logits: bool = False,
    dialect: Dialect = _COMMAS,
) -> tuple[np.ndarray, FileTable]:
    """Read predictions of the kinds of :func:`read_predictions`; labels may be absent.

    Parameters
    ----------
    path : path-like
    classes : sequence of str
        The class of each column of the predictions that are wanted.
    single : bool
        Whether they are one column, of the positive class.
    max_bytes : float, default=4 GiB
    others : sequence of str, default=()
        Columns of a table that are no single column of predictions.
    score : str, default=None
        The column that is, where there are others as well.
    soft : str, default=None
        What the names of columns of shares begin with, which are not used.
    normalize, from_logits : bool, default=False
    dialect : Dialect, default=Dialect()
        As of :func:`read_predictions`.

    Returns
    -------
    predictions : ndarray of shape (n_samples,) or (n_samples, n_classes)
        Columns in the order of the classes.
    table : FileTable
        Holds all other columns, or arrays, for :func:`skcal.cli.table.write_table`.
    """
    path = Path(path)

    def choose(header, place):
        options = {} if score is None else {score: "--score"}
        _check_header(path, header, place, options, sep=dialect.sep)
        if score is not None:
            return [header.index(score)], []
        if single:
            shares = [name for name in header if soft is not None and name.startswith(soft)]
            return _only_column(path, header, place, (*others, *shares)), []
        return _columns_of_classes(path, header, place, classes), []

    archive = kind_of(path) == "npz"
    with errors_that_name(path, max_bytes):
        if archive:
            table = _unlabelled_arrays(path, classes, single, max_bytes)
        else:
            table = read_table(path, max_bytes, choose, keep=True, dialect=dialect)
        with errors_in_words_of(table):
            return _check_numbers(table.predictions, normalize, from_logits), table


def align(
    first: Predictions, second: Predictions, first_name, second_name, column=None
) -> Predictions:
    """Bring another model's predictions into the order of the first, rows and columns.

    Parameters
    ----------
    first, second : Predictions
        Predictions for the same samples, with the same labels; in the same order unless a column
        names the samples.
    first_name, second_name : str
        The names of their files, for messages.
    column : str, default=None
        A column of ``others`` that names each sample once.
    """
    if column is not None:
        second = _joined(first, second, first_name, second_name, column)
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
    different = first.labels != second.labels
    wrong = np.flatnonzero(different.reshape(len(different), -1).any(axis=1))
    if len(wrong):
        raise FileError(
            f"{second_name}: sample {wrong[0] + 1} has the label {second.labels[wrong[0]]!s}, in "
            f"{first_name} {first.labels[wrong[0]]!s}. Compare predictions for the same samples, "
            "in the same order."
        )
    return second


def _joined(first, second, first_name, second_name, column) -> Predictions:
    """The rows of the second predictions in the order of the names of the first."""
    names = [predictions.others[column].astype(str) for predictions in (first, second)]
    for own, path in zip(names, (first_name, second_name), strict=True):
        distinct, times = np.unique(own, return_counts=True)
        if len(distinct) < len(own):
            repeated = str(distinct[times > 1][0])
            raise FileError(f"{path}: {column} {repeated!r} names several rows. Name each once.")
    missing = np.setxor1d(*names).tolist()
    if missing:
        path = second_name if missing[0] in names[0] else first_name
        raise FileError(
            f"{path}: has no row of {column} {missing[0]!r}, as has the other file. Compare "
            "predictions for the same samples."
        )
    rows = np.argsort(names[1])[np.argsort(np.argsort(names[0]))]
    return second._replace(proba=second.proba[rows], labels=second.labels[rows])


# What the columns of a table mean


def _labelled_table(path, label, others, ignored, spared, score, soft, max_bytes, dialect):
    """The table of a file, and its labels, classes (None of a single column) and other columns.

    In place of labels the table of shares, if there are any, and the classes of its columns.
    """
    options = {**dict.fromkeys(ignored, "--ignore"), **others}
    if soft is None:
        options[label] = "--label"

    def choose(header, place):
        known = options if score is None else {**options, score: "--score"}
        _check_header(path, header, place, known, label, dialect.sep)
        shares = [] if soft is None else _columns_of_shares(path, header, place, soft)
        aside = {*options, *spared, label, *(header[k] for k in shares)}
        numbers = [k for k, name in enumerate(header) if name not in aside]
        texts = [header.index(name) for name in options if name in others or name == label]
        return (numbers if score is None else [header.index(score)]) + shares, texts

    table = read_table(path, max_bytes, choose, dialect=dialect)
    beside = {name: _text_array(path, table.texts[name], max_bytes) for name in others}
    if soft is not None:
        return *_divided(table, soft), beside
    found = table.texts[label]
    absent = [k for k, text in enumerate(found.values) if text is None or not text.strip()]
    if absent:
        row = int(np.argmax(np.isin(np.asarray(found.codes), absent)))
        place = table.words_for_row(row)
        raise FileError(f"{path}: {place} has no label. Drop or label that sample.")
    labels, classes = _text_array(path, found, max_bytes), None
    if len(table.names) > 1:
        classes = _text_array(path, Texts(table.names, range(len(table.names))), max_bytes)
        _refuse_other_columns(table, [str(text).strip() for text in found.values])
    return table, labels, classes, beside


def _columns_of_shares(path, header, place, soft) -> list[int]:
    """The places of the columns whose names begin with ``soft``."""
    columns = [k for k, name in enumerate(header) if name.startswith(soft) and name != soft]
    if not columns:
        raise FileError(
            f"{path}: {place} has no column that begins with {soft!r} (columns: {listed(header)}). "
            "Name a column of shares or votes of each class by what --soft says, and the class."
        )
    return columns


def _divided(table: FileTable, soft: str) -> tuple[FileTable, FileTable, np.ndarray]:
    """The table of predictions, that of shares, and the classes of its columns."""
    n_shares = sum(name.startswith(soft) and name != soft for name in table.names)
    n_predicted = len(table.names) - n_shares
    predicted = table._replace(
        numbers=table.numbers[:, :n_predicted], columns=table.columns[:n_predicted]
    )
    classes = [name.removeprefix(soft) for name in table.names[n_predicted:]]
    order = list(range(n_shares))
    require_cells(table.path, predicted.columns, predicted.numbers)
    if n_predicted == 1:
        if len(classes) != 2:
            raise FileError(
                f"{table.path}: a single column of probabilities needs shares of two classes, "
                f"found {listed(classes)}. {NO_CLASS}"
            )
    elif set(classes) != set(predicted.names):
        unmatched = sorted(set(classes) ^ set(predicted.names))
        raise FileError(
            f"{table.path}: of the classes {listed(unmatched)} there are probabilities or shares, "
            f"not both. Name a column of shares by {soft!r} and the class. {NO_CLASS}"
        )
    else:
        order = [classes.index(name) for name in predicted.names]
        classes = predicted.names
    places = [n_predicted + k for k in order]
    of_shares = table._replace(
        numbers=table.numbers[:, places], columns=[table.columns[k] for k in places]
    )
    return predicted, of_shares, np.array(classes)


def _text_array(path, texts: Texts, max_bytes) -> np.ndarray:
    """An array of texts without blanks around them; each takes the place of the longest."""
    values = ["nan" if text is None else text.strip() for text in texts.values]
    check_size(path, 4 * len(texts.codes) * max(map(len, values), default=0), max_bytes)
    return np.array(values, dtype=str)[np.asarray(texts.codes)]


def _only_column(path, header, place, others) -> list[int]:
    columns = [k for k, name in enumerate(header) if name not in others]
    if len(columns) != 1:
        raise FileError(
            f"{path}: {place} has {len(columns)} columns that may be predictions (columns: "
            f"{listed(header)}), the map reads one. Name the others by --ignore, that of the "
            "labels by --label."
        )
    return columns


def _columns_of_classes(path, header, place, classes) -> list[int]:
    column_of = {name: column for column, name in enumerate(header)}
    missing = [name for name in classes if name not in column_of]
    if missing:
        raise FileError(
            f"{path}: {place} has no column {missing[0]!r} (columns: {listed(header)}). Name a "
            "column by each class of the predictions to fit to."
        )
    return [column_of[name] for name in classes]


def _check_header(path, header, place, options, label=None, sep=",") -> None:
    """Raise unless every column has a name of its own, and those that options name are there."""
    if not any(header):
        raise FileError(
            f"{path}: {place} is empty. Give a header: the class of each column, and the column "
            "of labels."
        )
    other = next((sign for sign in _SEPARATORS if sign != sep and sign in header[0]), None)
    if len(header) == 1 and other:
        option = "tab" if other == "\t" else repr(other)
        raise FileError(
            f"{path}: {place} is one column. Separate the fields by "
            f"{_SEPARATORS.get(sep, repr(sep))}, not {_SEPARATORS[other]}, or pass --sep {option}."
        )
    for name, option in options.items():
        if name not in header:
            remedy = f"Name a column by {option}."
            if name == label:
                remedy = _remedy_without_labels(header)
            elif "," in name and option == "--ignore":
                remedy = "Repeat --ignore for each column."
            raise FileError(
                f"{path}: {place} has no column {name!r} (columns: {listed(header)}). {remedy}"
            )
    known: set[str] = set()
    for name in header:
        if not name:
            raise FileError(
                f"{path}: {place} has a column without a name. Remove it; pandas writes none with "
                "to_csv(…, index=False)."
            )
        if name in known:
            raise FileError(f"{path}: {place} names column {name!r} twice. Name each class once.")
        known.add(name)


def _remedy_without_labels(header) -> str:
    if all(Dialect().is_number(name) for name in header):
        return "Give a header: the class of each column, and the column of labels."
    return "Name the column of labels by --label."


def _refuse_other_columns(table, labels) -> None:
    """Name columns that none of the different labels names, where the rows sum to 1 without."""
    names, values = table.names, table.numbers
    unnamed = ~np.isin(names, labels)
    if unnamed.all():
        like = _name_like_labels(names, labels)
        remedy = (
            f"Rename them to the labels, such as {like!r} to {labels[0]!r}."
            if like
            else "Give a column per class, named by the class, or a single column, of P(positive). "
            f"{NO_CLASS}"
        )
        raise FileError(
            f"{table.path}: columns {listed(names)}: none has the name of a label, such as "
            f"{labels[0]!r} in {table.words_for_row(0)}. {remedy}"
        )
    if not misses_1(values).any():
        return
    for other in (unnamed & ((values < 0) | (values > 1)).any(axis=0), unnamed):
        if other.any() and not misses_1(values[:, ~other]).any():
            others = [repr(name) for name, is_other in zip(names, other, strict=True) if is_other]
            raise FileError(
                f"{table.path}: {listed(others)}: no label has this name, and the rows sum to 1 "
                f"without it. {NO_CLASS}"
            )


def _name_like_labels(names, labels):
    """The first label's column if columns are named as p_cat, p_dog for labels cat, dog."""
    first, others, known = labels[0], set(labels), set(names)
    for name in names[:_MOST_NAMES] if len(others) <= _MOST_NAMES else ():
        if first and first in name and {name.replace(first, k, 1) for k in others} <= known:
            return name
    return None


# What the arrays of an archive mean


def _labelled_arrays(path, others, soft, max_bytes):
    """What :func:`_labelled_table` returns, of an archive."""
    outcome = "labels" if soft is None else soft
    arrays = read_arrays(path, max_bytes, ["proba", outcome, *others], ["classes"])
    found, classes = arrays[outcome], arrays.get("classes")
    table = FileTable(path, arrays["proba"], [], (), {})
    beside = {name: arrays[name] for name in others}
    classes = None if classes is None else _decoded(classes)
    if soft is not None:
        if classes is None:
            classes = np.arange(found.shape[-1] if found.ndim else 0)
        return table, table._replace(numbers=found), classes, beside
    if found.ndim == 2 and found.shape[1] == 1:
        found = found[:, 0]
    return table, _decoded(found), classes, beside


def _decoded(names):
    """Names as text where they are bytes, which JSON and messages do not hold."""
    return np.char.decode(names, "utf-8") if names.dtype.kind == "S" else names


def _unlabelled_arrays(path, classes, single, max_bytes) -> FileTable:
    arrays = read_arrays(path, max_bytes, ["proba"])
    proba, n_classes = arrays["proba"], len(classes)
    if not proba.ndim or proba.shape[1:] != (() if single else (n_classes,)):
        wanted = "one dimension" if single else f"{n_classes} columns"
        raise FileError(
            f"{path}: array 'proba' has shape {proba.shape}, where the map reads {wanted}. Give "
            "the columns of the predictions to fit to."
        )
    order = list(range(n_classes))
    if "classes" in arrays and not single:
        names = [str(name) for name in arrays["classes"].tolist()]
        if sorted(names) != sorted(classes):
            raise FileError(f"{path}: has classes {listed(names)}, not {listed(classes)}.")
        order = [names.index(name) for name in classes]
        proba = proba[:, order]
    if not len(proba):
        raise FileError(f"{path}: no rows of probabilities. Give a row per sample.")
    return FileTable(path, proba, order, (), {}, source=arrays)


# Checks of numbers and labels


@contextmanager
def errors_in_words_of(table: FileTable):
    """Let errors about arrays name the file's lines and columns, and what its owner can do."""
    try:
        yield
    except InputError as error:
        remedy = _REMEDIES.get(error.kind)
        if error.kind == "integers":
            remedy = f"{SWAPPED}{_REMEDIES['range']}"
        if error.kind == "sum" and not misses_1(table.numbers[[error.row]]).any():
            remedy = f"{error.remedy} If it was rounded, --normalize does that."
        row = None if error.row is None else table.words_for_row(error.row)
        k = 0 if error.argument == "proba" and len(table.names) == 1 else error.column
        column = None if k is None else table.words_for_column(k)
        message = one_sentence(error.message(remedy, row, column))
        raise FileError(f"{table.path}: {message}") from error


def _check_numbers(numbers, normalize: bool, from_logits: bool) -> np.ndarray:
    """Probabilities of checked rows, divided by their sums if asked for; or logits as they are."""
    if from_logits:
        check_floats(numbers, True, name="proba")
        return numbers
    return check_proba(divide_by_sums(numbers) if normalize else numbers, name="proba")


def _check_labels(proba, labels, classes, pos_label, known) -> Predictions:
    if proba.ndim == 1 and classes is None:
        labels, classes = _labels_of_one_column(labels, pos_label, known)
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
        raise ValueError(f"{len(classes)} classes for {shares.numbers.shape[1]} columns of shares.")
    if proba.ndim == 1 and pos_label is None:
        found = [str(name) for name in classes.tolist()]
        pos_label = next((name for name in (*names, "1") if name in found), None)
        if pos_label is None or (pos_label == "1" and "0" not in found):
            raise ValueError(
                f"The single column of probabilities may be of either class, {listed(found)}. "
                f"{_REMEDIES['positive class']}"
            )
    return _with_positive_last(Predictions(proba, shares.numbers, classes), pos_label)


def _with_positive_last(predictions: Predictions, pos_label) -> Predictions:
    """Let the positive one of two classes be the second; of a single column it is its class."""
    if pos_label is None:
        return predictions
    proba, labels, classes, _ = predictions
    names = [str(name) for name in classes.tolist()]
    if len(names) != 2 or pos_label not in names:
        raise ValueError(f"--pos-label {pos_label!r} is not one of two classes: {listed(names)}.")
    if pos_label == names[1]:
        return predictions
    labels = labels if labels.ndim == 1 else labels[:, ::-1]
    return Predictions(proba if proba.ndim == 1 else proba[:, ::-1], labels, classes[::-1])


def _label_of(name, labels, known):
    """The name of a single column if it is that of a label, and not of the one that is implied."""
    if known is not None:
        return name if name == str(known[0]) else None
    found = np.unique(labels).tolist()
    return name if len(found) == 2 and name in found and (name, *found) != ("1", "0", "1") else None


def _labels_of_one_column(labels, pos_label, known):
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
    for row, label in enumerate(labels.tolist()):
        if label not in ("0", "1"):
            remedy = (
                "With a single column of probabilities labels must be 0 or 1; for other labels "
                "name the positive one by --pos-label."
            )
            raise InputError("label", f"is {label!r}.", remedy, row=row)
    return labels.astype(int), None
