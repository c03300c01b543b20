"""The classes, labels and shares among the columns of a table or the arrays of an archive."""

from __future__ import annotations

import numpy as np

from skcal._show import listed
from skcal.cli.bounds import FileError, check_size
from skcal.cli.missing import leaves_out, refuse_absent_labels, samples_left_out
from skcal.cli.table import FileTable, read_arrays, read_table
from skcal.cli.text import NO_CLASS, Dialect, Texts, require_cells
from skcal.metrics.rounded import misses_1

_LIKELY_LABELS = frozenset(
    ["y", "labels", "y_true", "target", "outcome", "class", "truth", "true_label", "actual"]
)
_MOST_NAMES = 1000  # names and labels whose likeness is looked for
_SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabulators", "|": "bars"}


def labelled_table(path, others, spared, options, dialect):
    """The table of a file, and its labels, classes (None of a single column) and other columns.

    ``others`` are columns to read, by the options that name them; those of ``spared`` may be
    absent. In place of labels the table of shares, if there are any, and the classes of its
    columns. The last is what was left out.
    """
    label, score, soft = options.label, options.score, options.soft
    max_bytes, named = options.max_bytes, {**dict.fromkeys(options.ignore, "--ignore"), **others}
    if soft is None:
        named[label] = "--label"

    def choose(header, place):
        needed = named if score is None else {**named, score: "--score"}
        _check_header(path, header, place, needed, label, dialect.sep)
        shares = [] if soft is None else _columns_of_shares(path, header, place, soft)
        aside = {*named, *spared, label, *(header[k] for k in shares)}
        numbers = [k for k, name in enumerate(header) if name not in aside]
        texts = [header.index(name) for name in named if name in others or name == label]
        return (numbers if score is None else [header.index(score)]) + shares, texts

    table = read_table(path, max_bytes, choose, dialect=dialect)
    texts = None if soft is not None else table.texts[label]
    described = {name: table.texts[name] for name in others}
    left_out = samples_left_out(table, texts, described, options) if leaves_out(options) else None
    if left_out is not None:
        table = table.take(left_out.kept)
    if soft is None:
        refuse_absent_labels(table, table.texts[label])
    beside = {name: _text_array(path, table.texts[name], max_bytes) for name in others}
    if soft is not None:
        return *_divided(table, soft), beside, left_out
    texts = table.texts[label]
    labels, classes = _text_array(path, texts, max_bytes), None
    if len(table.names) > 1:
        classes = _text_array(path, Texts(table.names, range(len(table.names))), max_bytes)
        _refuse_other_columns(table, list(dict.fromkeys(labels.tolist())))
    return table, labels, classes, beside, left_out


def _columns_of_shares(path, header, place, soft) -> list[int]:
    """The places of the columns whose names begin with ``soft``."""
    columns = [k for k, name in enumerate(header) if _is_of_shares(name, soft)]
    if not columns:
        raise FileError(
            f"{path}: {place} has no column that begins with {soft!r} (columns: {listed(header)}). "
            "Name a column of shares or votes of each class by what --soft says, and the class."
        )
    return columns


def _is_of_shares(name: str, soft: str) -> bool:
    """Whether a column holds shares: its name is ``soft`` and a class."""
    return name.startswith(soft) and name != soft


def _divided(table: FileTable, soft: str) -> tuple[FileTable, FileTable, np.ndarray]:
    """The table of predictions, that of shares, and the classes of its columns."""
    n_shares = sum(_is_of_shares(name, soft) for name in table.names)
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
    aside = [options.label, *options.ignore, options.weight, options.groups, *features]

    def choose(header, place):
        named = dict.fromkeys(features, "--feature")
        named |= {} if score is None else {score: "--score"}
        _check_header(path, header, place, named, sep=dialect.sep)
        texts = [header.index(name) for name in features]
        if score is not None:
            return [header.index(score)], texts
        if classes is None:
            shares = [] if soft is None else [name for name in header if _is_of_shares(name, soft)]
            return _only_column(path, header, place, [*aside, *shares]), texts
        return _columns_of_classes(path, header, place, classes), texts

    return read_table(path, options.max_bytes, choose, keep=True, dialect=dialect)


def texts_of_column(table: FileTable, name: str) -> np.ndarray:
    """A column of a table that was read as texts, or an array of an archive."""
    if name in table.texts:
        return table.texts[name].strip()
    if not isinstance(table.source, dict) or name not in table.source:
        raise FileError(f"{table.path}: has no array {name!r}. Save it beside 'proba'.")
    return _decoded(table.source[name])


# What the arrays of an archive mean


def labelled_arrays(path, others, options):
    """What :func:`labelled_table` returns, of an archive."""
    soft, outcome = options.soft, "labels" if options.soft is None else options.soft
    arrays = read_arrays(path, options.max_bytes, ["proba", outcome, *others], ["classes"])
    outcomes, classes = arrays[outcome], arrays.get("classes")
    table = FileTable(path, arrays["proba"], [], (), {})
    beside = {name: arrays[name] for name in others}
    classes = None if classes is None else _decoded(classes)
    if soft is None and outcomes.ndim == 2 and outcomes.shape[1] == 1:
        outcomes = outcomes[:, 0]
    left_out = None
    if leaves_out(options):
        described = {name: _texts_of_array(values) for name, values in beside.items()}
        texts, read = _texts_of_array(outcomes) if soft is None else None, table
        if soft is not None:
            read = table._replace(numbers=np.column_stack([table.numbers, outcomes]))
        left_out = samples_left_out(read, texts, described, options)
        table, outcomes = table.take(left_out.kept), outcomes[left_out.kept]
        beside = {name: values[left_out.kept] for name, values in beside.items()}
    if soft is not None:
        if classes is None:
            classes = np.arange(outcomes.shape[-1] if outcomes.ndim else 0)
        return table, table._replace(numbers=outcomes), classes, beside, left_out
    labels = _decoded(outcomes)
    return table, labels if left_out is None else _whole(labels), classes, beside, left_out


def _texts_of_array(values) -> Texts:
    """The entries of an array as texts, each different one once."""
    distinct, codes = np.unique(_decoded(values), return_inverse=True)
    return Texts([str(value) for value in distinct.tolist()], codes.reshape(-1))


def _whole(labels):
    """Labels as integers where NaN alone had made them floats."""
    whole = labels.dtype.kind == "f" and not (labels % 1).any()
    return labels.astype(np.int64) if whole else labels


def _decoded(names):
    """Names as text where they are bytes, which JSON and messages do not hold."""
    return np.char.decode(names, "utf-8") if names.dtype.kind == "S" else names


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
