"""The classes, labels and shares among the columns of a table or the arrays of an archive."""

from __future__ import annotations

from typing import NamedTuple
from warnings import warn

import numpy as np

from skcal._show import listed
from skcal.cli.bounds import FileError, check_size
from skcal.cli.table import FileTable, read_arrays, read_table
from skcal.cli.text import LEAVE_OUT, NO_CLASS, Dialect, Texts, require_cells
from skcal.metrics.rounded import misses_1

_LIKELY_LABELS = frozenset(
    ["y", "labels", "y_true", "target", "outcome", "class", "truth", "true_label", "actual"]
)
_MOST_NAMES = 1000  # names and labels whose likeness is looked for
_SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabulators", "|": "bars"}


class Columns(NamedTuple):
    """The columns of a file by what they mean.

    Attributes
    ----------
    table : FileTable
        Of the predictions.
    outcomes : ndarray of shape (n_rows,) or FileTable
        The labels, or the table of shares or votes of the classes.
    classes : ndarray of shape (n_classes,) or None
        The class of each column; None where the labels tell it.
    others : dict of str to ndarray of shape (n_rows,)
        Further columns that options name.
    """

    table: FileTable
    outcomes: np.ndarray | FileTable
    classes: np.ndarray | None
    others: dict[str, np.ndarray]

    def take(self, rows: np.ndarray) -> Columns:
        """Return some of the rows."""
        outcomes = self.outcomes
        if isinstance(outcomes, FileTable):
            outcomes = outcomes.take(rows)
        else:
            outcomes = outcomes[rows]
            if outcomes.dtype.kind == "f" and not (outcomes % 1).any():  # for NaN alone
                outcomes = outcomes.astype(np.int64)
        others = {name: values[rows] for name, values in self.others.items()}
        return self._replace(table=self.table.take(rows), outcomes=outcomes, others=others)


def labelled_table(path, others, spared, options, dialect) -> Columns:
    """The predictions and outcomes of a file, and other columns, by the options that name them.

    Columns of ``spared`` may be absent.
    """
    label, score, soft = options.label, options.score, options.soft
    max_bytes, named = options.max_bytes, {**dict.fromkeys(options.ignore, "--ignore"), **others}
    if soft is None:
        named[label] = "--label"

    def choose(header, place):
        needed = named if score is None else {**named, score: "--score"}
        _check_header(path, header, place, needed, label, dialect.sep)
        shares = [k for k, name in enumerate(header) if _is_of_shares(name, soft)]
        if soft is not None and not shares:
            raise FileError(
                f"{path}: {place} has no column that begins with {soft!r} (columns: "
                f"{listed(header)}). Name a column of shares or votes of each class by what --soft "
                "says, and the class."
            )
        aside = {*named, *spared, label, *(header[k] for k in shares)}
        numbers = [k for k, name in enumerate(header) if name not in aside]
        texts = [header.index(name) for name in named if name in others or name == label]
        return (numbers if score is None else [header.index(score)]) + shares, texts

    table = read_table(path, max_bytes, choose, dialect=dialect)
    beside = {name: text_array(path, table.texts[name], max_bytes) for name in others}
    if soft is not None:
        return Columns(*_divided(table, soft), beside)
    labels, classes = text_array(path, table.texts[label], max_bytes), None
    if len(table.names) > 1:
        names = Texts(table.names, range(len(table.names)))
        classes = text_array(path, names, max_bytes)
    return Columns(table, labels, classes, beside)


def _is_of_shares(name: str, soft: str | None) -> bool:
    """Whether a column holds shares: its name is ``soft`` and a class."""
    return soft is not None and name.startswith(soft) and name != soft


def _divided(table: FileTable, soft: str) -> tuple[FileTable, FileTable, np.ndarray]:
    """The table of predictions, that of shares, and the classes of its columns."""
    n_predicted = sum(not _is_of_shares(name, soft) for name in table.names)
    predicted = table.part(slice(n_predicted))
    classes = [name.removeprefix(soft) for name in table.names[n_predicted:]]
    order = list(range(len(classes)))
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
    return predicted, table.part([n_predicted + k for k in order]), np.array(classes)


def text_array(path, texts: Texts, max_bytes) -> np.ndarray:
    """An array of texts without blanks around them; each takes the place of the longest."""
    values = [text.strip() for text in texts.values]
    check_size(path, 4 * len(texts.codes) * max(map(len, values), default=0), max_bytes)
    return np.array(values, dtype=str)[np.asarray(texts.codes)]


def _check_header(path, header, place, options, label=None, sep=",") -> None:
    """Raise unless every column has a name of its own, and those that options name are there."""
    if not any(header):
        raise FileError(
            f"{path}: {place} is empty. Give a header: the class of each column, and the column "
            "of labels."
        )
    if header[0].startswith(("#", "sep=")) and not options.keys() <= set(header):
        raise FileError(f"{path}: {place} is {header[0]!r}, not a header. Delete that line.")
    other = next((sign for sign in _SEPARATORS if sign != sep and sign in header[0]), None)
    if len(header) == 1 and other:
        option = "tab" if other == "\t" else repr(other)
        raise FileError(
            f"{path}: {place} is one column. Separate the fields by "
            f"{_SEPARATORS.get(sep, repr(sep))}, not {_SEPARATORS[other]}, or pass --sep {option}.",
            sep=other,
        )
    for name, option in options.items():
        if name not in header:
            remedy, likely = f"Name a column by {option}.", []
            if name == label:
                remedy = _remedy_without_labels(header)
                likely = [name for name in header if name.lower() in _LIKELY_LABELS]
            elif "," in name and option == "--ignore":
                remedy = "Repeat --ignore for each column."
            raise FileError(
                f"{path}: {place} has no column {name!r} (columns: {listed(header)}). {remedy}",
                **({"label": likely[0]} if len(likely) == 1 else {}),
            )
    known: set[str] = set()
    for name in header:
        if not name and name not in options:
            raise FileError(
                f"{path}: {place} has a column without a name. Pass --ignore '' if it numbers the "
                "rows; pandas writes none with to_csv(…, index=False).",
                ignore=[""],
            )
        if name in known:
            raise FileError(f"{path}: {place} names column {name!r} twice. Name each class once.")
        known.add(name)


def _remedy_without_labels(header) -> str:
    if all(Dialect().is_number(name) for name in header):
        return "Give a header: the class of each column, and the column of labels."
    return "Name the column of labels by --label."


def check_names(columns: Columns) -> None:
    """Raise where a row of a table has no label, or no label has the name of a column.

    Columns that no label names are no classes if the rows sum to 1 without them. Warn where only
    the order of an archive's columns says what they are.
    """
    table, labels = columns.table, columns.outcomes
    if isinstance(labels, FileTable):
        return
    if not table.header:
        if columns.classes is None and table.numbers.ndim == 2 and labels.dtype.kind == "U":
            warn(
                f"{table.path}: without an array 'classes' the columns are taken to be in the "
                f"order of the sorted labels, {listed(np.unique(labels).tolist())}. Save classes=… "
                "to say which they are.",
                stacklevel=2,
            )
        return
    absent = np.flatnonzero(labels == "")
    if len(absent):
        place = table.words_for_row(int(absent[0]))
        raise FileError(f"{table.path}: {place} has no label. {LEAVE_OUT}", drop_missing=True)
    if columns.classes is not None:
        _refuse_other_columns(table, list(dict.fromkeys(labels.tolist())))


def _refuse_other_columns(table: FileTable, labels) -> None:
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
        scores = [name for name, column in zip(names, values.T, strict=True) if _are_scores(column)]
        raise FileError(
            f"{table.path}: columns {listed(names)}: none has the name of a label, such as "
            f"{labels[0]!r} in {table.words_for_row(0)}. {remedy}",
            **({"score": scores[0]} if len(scores) == 1 and not like else {}),
        )
    if not misses_1(values).any():
        return
    for other in (unnamed & ((values < 0) | (values > 1)).any(axis=0), unnamed):
        if other.any() and not misses_1(values[:, ~other]).any():
            others = [name for name, is_other in zip(names, other, strict=True) if is_other]
            raise FileError(
                f"{table.path}: {listed([repr(name) for name in others])}: no label has this name, "
                f"and the rows sum to 1 without it. {NO_CLASS}",
                ignore=others,
            )


def _are_scores(values) -> bool:
    """Whether numbers look like probabilities or percentages, not like codes."""
    return bool((values >= 0).all() and (values <= 100).all() and (values % 1 != 0).any())


def _name_like_labels(names, labels):
    """The first label's column if columns are named as p_cat, p_dog for labels cat, dog."""
    first, others, known = labels[0], set(labels), set(names)
    for name in names[:_MOST_NAMES] if len(others) <= _MOST_NAMES else ():
        if first and first in name and {name.replace(first, k, 1) for k in others} <= known:
            return name
    return None


def unlabelled_table(path, classes, features, options, dialect):
    """The table of a file of predictions of these classes, or of a single column (None).

    Its other columns are kept, so that they can be written again, and its features as texts.
    """
    score, soft = options.score, options.soft
    aside = {options.label, *options.ignore, options.weight, options.groups, *features}

    def choose(header, place):
        named = dict.fromkeys(features, "--feature") | ({} if score is None else {score: "--score"})
        _check_header(path, header, place, named, sep=dialect.sep)
        place_of = {name: column for column, name in enumerate(header)}
        names = classes if score is None else [score]
        if names is None:
            names = [name for name in header if not (name in aside or _is_of_shares(name, soft))]
            if len(names) != 1:
                raise FileError(
                    f"{path}: {place} has {len(names)} columns that may be predictions (columns: "
                    f"{listed(header)}), the map reads one. Name the others by --ignore, that of "
                    "the labels by --label."
                )
        missing = [name for name in names if name not in place_of]
        if missing:
            raise FileError(
                f"{path}: {place} has no column {missing[0]!r} (columns: {listed(header)}). Name a "
                "column by each class of the predictions to fit to."
            )
        return [place_of[name] for name in names], [place_of[name] for name in features]

    return read_table(path, options.max_bytes, choose, keep=True, dialect=dialect)


def text_column(table: FileTable, name: str, max_bytes) -> np.ndarray:
    """A column of a table that was read as texts, or an array of an archive."""
    if name in table.texts:
        return text_array(table.path, table.texts[name], max_bytes)
    if not isinstance(table.source, dict) or name not in table.source:
        raise FileError(f"{table.path}: has no array {name!r}. Save it beside 'proba'.")
    return _decoded(table.source[name])


# What the arrays of an archive mean


def labelled_arrays(path, others, options) -> Columns:
    """Return what :func:`labelled_table` returns, of an archive."""
    soft, outcome = options.soft, "labels" if options.soft is None else options.soft
    arrays = read_arrays(path, options.max_bytes, ["proba", outcome, *others], ["classes"])
    arrays = {name: _decoded(values) for name, values in arrays.items()}
    table = FileTable(path, arrays["proba"], [], (), {})
    outcomes, classes = arrays[outcome], arrays.get("classes")
    beside = {name: arrays[name] for name in others}
    if soft is None:
        is_column = outcomes.ndim == 2 and outcomes.shape[1] == 1
        return Columns(table, outcomes[:, 0] if is_column else outcomes, classes, beside)
    if classes is None:
        classes = np.arange(outcomes.shape[-1] if outcomes.ndim else 0)
    return Columns(table, table._replace(numbers=outcomes), classes, beside)


def _decoded(values):
    """Text where there are bytes, which JSON and messages do not hold."""
    return np.char.decode(values, "utf-8") if values.dtype.kind == "S" else values


def unlabelled_arrays(path, classes, single, max_bytes) -> FileTable:
    """Return what :func:`unlabelled_table` returns, of an archive."""
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
