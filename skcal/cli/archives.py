"""The predictions and labels among the arrays of an archive."""

from __future__ import annotations

from warnings import warn

import numpy as np

from skcal._show import listed
from skcal.cli.cells import Dialect
from skcal.cli.columns import Columns
from skcal.cli.problems import FileError
from skcal.cli.table import FileTable, decoded, read_arrays

#: Arrays of an archive, in the order in which they are taken.
_CLASSES = ("classes", "classes_", "class_names", "target_names", "label_names")


def labelled_arrays(path, others, options) -> Columns:
    """Return what :func:`labelled_table` returns, of an archive."""
    proba = options.score or "proba"
    outcome = options.soft or ("labels" if options.label == "label" else options.label)
    arrays = read_arrays(path, options.max_bytes, [proba, outcome, *others], _CLASSES)
    arrays = {name: decoded(values) for name, values in arrays.items()}
    numbers = Dialect(codes=options.missing).without_codes(arrays[proba])
    notes = list[str]()
    if numbers.ndim == 2 and numbers.shape[1] == 1:  # as Keras gives
        numbers = numbers[:, 0]
        notes.append(f"Array {proba!r} has one column, the probability of one class.")
    table = FileTable(path, numbers, [])
    outcomes, classes = arrays[outcome], _array_of_classes(arrays)
    if classes is None and options.labels:
        kind = outcomes.dtype.kind
        classes = np.array([int(x) for x in options.labels] if kind in "iu" else options.labels)
    if options.score or outcome != "labels":
        notes.append(f"Array {proba!r} holds the predictions, array {outcome!r} what happened.")
    if classes is not None and "classes" not in arrays:
        notes.append(f"The columns of array {proba!r} are the classes {listed(classes.tolist())}.")
    beside = {name: arrays[name] for name in others}
    if options.soft is None:
        labels, how = _labels_of_array(path, outcome, outcomes, classes, arrays[proba].shape)
        return Columns(table, labels, classes, beside, (*notes, *how))
    if classes is None:
        classes = np.arange(outcomes.shape[-1] if outcomes.ndim else 0)
    return Columns(table, table._replace(numbers=outcomes), classes, beside, tuple(notes))


def _labels_of_array(path, name: str, outcomes, classes, shape) -> tuple[np.ndarray, list[str]]:
    """The label of each row: of one-hot rows, and of places among named classes, what they mean."""
    kind, known = outcomes.dtype.kind, classes is not None and classes.dtype.kind == "U"
    if outcomes.ndim == 2 and outcomes.shape[1] == 1:
        outcomes = outcomes[:, 0]
    of_classes = outcomes.shape == shape if len(shape) == 2 else outcomes.shape[1:] == (2,)
    are_rows = outcomes.ndim == 2 and of_classes and kind in "biuf"
    if are_rows and np.allclose(outcomes.sum(axis=1), 1):
        if not np.isin(outcomes, (0, 1)).all():
            raise FileError(
                f"{path}: array {name!r} has {outcomes.shape[1]} columns, whose rows sum to 1. "
                f"If these are shares of the classes, pass --soft {name}.",
                soft=name,
            )
        places = outcomes.argmax(axis=1)
        labels = places if classes is None else classes[places]
        return labels, [f"Array {name!r} holds 1 for the class that happened."]
    if kind == "f" and outcomes.ndim == 1 and (outcomes % 1 > 0).any():
        raise FileError(
            f"{path}: array {name!r} holds fractions, such as {outcomes[outcomes % 1 > 0][0]:.3g}, "
            "and no labels. If they are shares of the second of two classes, save the shares of "
            f"both as two columns, and pass --soft {name}."
        )
    are_places = kind in "iu" and known and not any(str(text).isdecimal() for text in classes)
    if are_places and outcomes.size and outcomes.min() >= 0 and outcomes.max() < len(classes):
        return classes[outcomes], [f"Array {name!r} holds places among the classes, from 0."]
    return outcomes, []


def _array_of_classes(arrays: dict[str, np.ndarray]) -> np.ndarray | None:
    """The class of each column, if an archive holds them."""
    return next((arrays[name] for name in _CLASSES if name in arrays), None)


def unlabelled_arrays(path, classes, single, options) -> FileTable:
    """Return what :func:`unlabelled_table` returns, of an archive."""
    name = options.score or "proba"
    arrays = read_arrays(path, options.max_bytes, [name])
    proba, n_classes = arrays[name], len(classes)
    if not proba.ndim or proba.shape[1:] != (() if single else (n_classes,)):
        wanted = "one dimension" if single else f"{n_classes} columns"
        raise FileError(
            f"{path}: array {name!r} has shape {proba.shape}, where the map reads {wanted}. Give "
            "the columns of the predictions to fit to."
        )
    order = list(range(n_classes))
    known = _array_of_classes(arrays)
    if known is not None and not single:
        names = [str(name) for name in known.tolist()]
        if sorted(names) != sorted(classes):
            raise FileError(f"{path}: has classes {listed(names)}, not {listed(classes)}.")
        order = [names.index(name) for name in classes]
        proba = proba[:, order]
    if not len(proba):
        raise FileError(f"{path}: no rows of probabilities. Give a row per sample.")
    proba = Dialect(codes=options.missing).without_codes(proba)
    return FileTable(path, proba, [], order=order, arrays=arrays)


def doubt_order(columns: Columns) -> None:
    """Warn, or raise, where only the order of columns says which classes they are."""
    path, labels = columns.table.path, columns.outcomes
    if isinstance(labels, FileTable):
        return
    if columns.classes is not None or columns.table.numbers.ndim != 2 or labels.dtype.kind != "U":
        return
    names = np.unique(labels).tolist()
    by_number = sorted(names, key=int) if all(map(str.isdecimal, names)) else names
    if by_number != names:
        raise FileError(
            f"{path}: the labels are digits as texts, and no array 'classes' says which class a "
            "column is of. The columns may be in the order of numbers, --labels "
            f"{','.join(by_number)}, or of texts, --labels {','.join(names)}. Pass the one that is "
            "right, or save classes=….",
            choices=[{"labels": by_number}, {"labels": names}],
        )
    warn(
        f"{path}: without an array 'classes' the columns are taken to be in the order of the "
        f"sorted labels, {listed(names)}. Save an array 'classes' or pass --labels to say which "
        "they are.",
        stacklevel=2,
    )
