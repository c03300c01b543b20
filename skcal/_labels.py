"""Labels, soft labels and named columns of any kind become arrays, once."""

from __future__ import annotations

import warnings
from contextlib import suppress
from functools import lru_cache
from itertools import combinations
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.utils import column_or_1d

from skcal._show import worded
from skcal._validation import (
    PLAIN,
    SUM_TOLERANCE,
    InputError,
    check_finite,
    decoded,
    first_of,
    is_code,
    naming,
    of_series,
    plain_array,
    refuse_list_of_labels,
    refuse_masked,
)

PASS_LABELS = "Pass labels= with the class of every column."
_FEWEST_COUNTED = 8  # labels of which it is said that they are counted from 1
_FEWEST_HARD = 20  # predictions of which it is said that all are 0 or 1
_IGNORED = (-100, 255)  # what mark ignored samples in PyTorch and in images of labels
_CLEARLY_LOWER = 3.0  # standard errors of a difference of means


class Outcomes(np.ndarray):
    """Outcomes as numbers that may lie outside of [0, 1], in place of labels.

    Of shape (n_samples,) for P(positive class), else (n_samples, n_classes).
    """


class Happened(NamedTuple):
    """Outcomes, read once from labels or soft labels.

    Attributes
    ----------
    codes : ndarray of shape (n_samples,)
        The column of each label; of shares that of the largest.
    classes : ndarray of shape (n_classes,)
        The class of each column.
    outcomes : ndarray of shape (n_samples, n_classes) or None
        How much of each class happened; None if ``codes`` say it all.
    votes : ndarray of shape (n_samples,) or None
        The number of votes behind the shares of each sample, NaN if unknown; None of labels.
    """

    codes: np.ndarray
    classes: np.ndarray
    outcomes: np.ndarray | None = None
    votes: np.ndarray | None = None


def read_outcomes(
    y_true,
    y_proba,
    proba: np.ndarray,
    labels=None,
    names: tuple[str, str] = ("y_true", "y_proba"),
    *,
    pos_label=None,
    of_labels: bool = False,
    counted: bool | str = False,
    of_logits: bool | None = False,
    single: str = "1-D",
    any_two: bool = False,
) -> Happened:
    """Read labels, shares or votes of the classes, sets of labels, or :class:`Outcomes`.

    Parameters
    ----------
    y_true, y_proba, labels, pos_label
        As users pass them.
    proba : ndarray of shape (n_samples,) or (n_samples, n_classes)
        The checked predictions.
    names : tuple of two str
        What error messages call ``y_true`` and ``y_proba``.
    of_labels : bool, default=False
        Whether each column is a label of its own, so that several may hold.
    counted : bool or str, default=False
        Whether to warn of labels without names that seem to be counted from 1; a str is the remedy
        where there is no ``labels``.
    of_logits : bool or None, default=False
        Whether ``proba`` was computed from logits; None if it holds logits.
    single, any_two
        As in :func:`check_labels`.
    """
    columns = class_names(y_proba)
    outcomes: np.ndarray | None = None
    votes: np.ndarray | None = None
    if of_labels:
        outcomes = read_label_sets(y_true, proba, names[0])
    elif isinstance(y_true, Outcomes):
        outcomes = np.asarray(y_true)
        if outcomes.ndim == 1:
            outcomes = np.column_stack([1 - outcomes, outcomes])
    else:
        outcomes, votes = read_shares(y_true, proba, *names) or (None, None)
    if outcomes is not None:
        if pos_label is not None:
            reason = "has no meaning for outcomes of all classes, whose columns are in order."
            raise InputError("pos_label", reason, "Leave it out.")
        classes = classes_of_shares(y_true, proba, labels, columns, *names)
        codes = outcomes.argmax(axis=1)
        if votes is not None:
            _warn_if_hard(proba, names[1], of_logits)
            if (votes == 1).all():  # a label each, which the codes tell
                return Happened(codes, classes)
        return Happened(codes, classes, outcomes, votes)
    if pos_label is not None and np.ndim(pos_label):
        raise ValueError(f"pos_label={pos_label!r} is an array. Pass one label.")
    given = labels
    if pos_label is not None and proba.ndim == 1:
        given = _labels_of_positive(y_true, labels, pos_label, names[0])
    codes, classes = check_labels(
        y_true,
        proba,
        given,
        columns=columns,
        name=names[0],
        proba_name=names[1],
        single=single,
        any_two=any_two,
    )
    _warn_if_hard(proba, names[1], of_logits)
    if counted and labels is None and columns is None:
        _warn_if_counted_from_1(codes, proba, *names, counted)
    if pos_label is not None:
        _require_one_of_two(pos_label, classes.tolist())
    return Happened(codes, classes)


def is_positive_first(proba, classes, pos_label) -> bool:
    """Whether the first of two columns holds the probabilities of ``pos_label``."""
    return pos_label is not None and proba.ndim == 2 and bool(classes[0] == pos_label)


def _labels_of_positive(y_true, labels, pos_label, name: str) -> list:
    """Labels (negative, positive) of 1-D predictions."""
    if labels is not None:
        labels = plain_labels(labels, "labels").tolist()
    else:
        labels = list(dict.fromkeys(plain_labels(y_true, name).tolist()))
        if len(labels) == 1 and isinstance(labels[0], str) == isinstance(pos_label, str):
            # The other class is absent, so its name does not matter.
            other = labels[0] if labels[0] != pos_label else another(pos_label)
            labels = [other, pos_label]
    _require_one_of_two(pos_label, labels)
    return labels[::-1] if labels[0] == pos_label else labels


def _require_one_of_two(pos_label, labels: list) -> None:
    if len(labels) != 2 or pos_label not in labels:
        shown = f"{labels[:8]}{' …' if len(labels) > 8 else ''}"
        raise ValueError(f"pos_label={pos_label!r} is not one of two classes; the labels: {shown}.")


def another(label):
    """A label other than this one, of the same type."""
    if isinstance(label, str):
        return f"not {label}"
    return 0 if label != 0 else 1


def check_labels(
    y_true,
    proba: np.ndarray,
    labels=None,
    *,
    columns=None,
    name: str = "y_true",
    proba_name: str = "y_proba",
    single: str = "1-D",
    any_two: bool = False,
):
    """Encode labels as column numbers of ``proba``.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Class labels of any sortable type.
    proba : ndarray of shape (n_samples,) or (n_samples, n_classes)
        Checked probabilities.
    labels : array-like of shape (n_classes,), default=None
        The class of each column, in any order; for 1-D probabilities
        (negative class, positive class).
    columns : array-like of shape (n_classes,), default=None
        Names of the columns of a data frame; they are the classes when they name all labels.
    name, proba_name : str, default="y_true" and "y_proba"
        The arguments that error messages name.
    single : str, default="1-D"
        What error messages call probabilities of the positive class alone.
    any_two : bool, default=False
        Whether, of these, any two labels are classes, of which the second in order is positive.

    Returns
    -------
    codes : ndarray of shape (n_samples,), int64
    classes : ndarray of shape (n_classes,)
    """
    y = plain_labels(y_true, name)
    if len(y) != len(proba):
        lead = "Found input variables with inconsistent numbers of samples: "
        raise InputError(proba_name, f"has {len(proba)} rows, {name} {len(y)}.", lead=lead)
    n_classes = 2 if proba.ndim == 1 else proba.shape[1]
    if labels is None and columns is None and _are_codes(y, n_classes):
        return y.astype(np.int64, copy=False), np.arange(n_classes)  # without a sort
    present, inverse = _distinct_labels(y, name)
    if labels is None and columns is not None and proba.ndim == 2:
        labels = _labels_of_columns(columns, present, name, proba_name)
    if labels is None:
        refuse_mark(y, present, n_classes, name, proba_name)
    if labels is None and proba.ndim == 1:
        if present.dtype.kind == "f" and (present % 1 != 0).any() and _are_hard(proba):
            raise _swapped(y, y % 1 != 0, name, proba_name)
        classes = _binary_classes(present, name, f"{single} {proba_name}", any_two)
    elif labels is None:
        classes = _sorted_classes(present, proba.shape[1], name, proba_name)
        _warn_of_digits(classes, name, proba_name)
        _warn_of_order(y_true, classes, name, proba_name)
    else:
        classes = _given_classes(labels, proba, proba_name)
    column = {label: k for k, label in enumerate(classes.tolist())}
    code_of = np.array([column.get(label, -1) for label in present.tolist()], dtype=np.int64)
    codes = code_of[inverse.reshape(-1)]
    if (codes < 0).any():
        row = int(np.argmax(codes < 0))
        label = y.tolist()[row]
        reason = f"is {label!r}, which is not one of the classes {shortened(classes)}."
        remedy = f"{PASS_LABELS} {_to_drop(label, name, proba_name)}"
        raise InputError(name, reason, remedy, row=row, kind="classes")
    return codes, classes


def _warn_if_hard(proba: np.ndarray, name: str, of_logits: bool | None) -> None:
    """Warn of predictions that are all 0 or 1, as the classes from ``predict`` are."""
    if of_logits is None or len(proba) < _FEWEST_HARD or not _are_hard(proba):
        return
    source = worded(" from predict_proba", "")
    text = (
        f"All predictions in {name} are 0 or 1, as the classes from predict are. Pass the "
        f"probabilities{source}; if these are, the classifier gives none in between."
    )
    if of_logits:
        text = (
            f"All logits in {name} are so large that their probabilities are 0 or 1. If they are "
            "points, such as a credit score, fit skcal.recalibration.PlattScaling("
            "from_logits=True) to other samples of them, and pass its probabilities."
        )
    warnings.warn(text, stacklevel=2)


def _are_hard(proba: np.ndarray) -> bool:
    if 0 < proba.item(0) < 1:  # which mostly settles it
        return False
    first, others = proba[:64], proba[64:]
    return all(bool(((rows == 0) | (rows == 1)).all()) for rows in (first, others))


def is_clearly_lower(proba, codes) -> bool:
    """Whether predictions of the second class are, by far, lower where it happened."""
    negative, positive = proba[codes == 0], proba[codes == 1]
    if min(len(negative), len(positive)) < 2:
        return False
    error = np.sqrt(negative.var() / len(negative) + positive.var() / len(positive))
    return bool(negative.mean() - positive.mean() > _CLEARLY_LOWER * error)


def read_shares(y_true, proba: np.ndarray, name: str, proba_name: str):
    """Shares (n, C) of the classes and votes (n,) of soft labels; None of labels.

    Rows are shares that sum to 1, of unknown numbers of votes (NaN), or counts of votes.
    """
    if not is_table(y_true):
        return None
    n_classes = 2 if proba.ndim == 1 else proba.shape[1]
    array = plain_array(y_true.toarray() if sparse.issparse(y_true) else y_true, name)
    if array.dtype.kind not in "biuf" or array.shape != (len(proba), n_classes):
        remedy = f"Pass one label per sample, or shares of the {n_classes} classes; are the "
        remedy += "arguments swapped?"
        if array.size == len(proba):
            remedy = f"Pass {name}.ravel()."
        reason = f"should be a 1d array, got an array of shape {array.shape} instead."
        raise InputError(name, reason, remedy, kind="shape")
    array = array.astype(np.float64)
    check_finite(array, name)
    if (array < 0).any():
        where = first_of(array < 0)
        reason = f"is {array[tuple(where.values())]:.6g}: negative."
        raise InputError(name, reason, "Pass shares or counts of votes.", **where)
    total = array.sum(axis=1)
    fractions = array != np.rint(array)
    whole = not fractions.any()
    if not whole and _are_hard(proba):
        raise _swapped(array, fractions, name, proba_name)
    if not whole and np.array_equal(array, proba):
        reason = f"holds the predictions of {proba_name} themselves."
        raise InputError(name, reason, "Pass labels, or shares of the classes that happened.")
    if (np.abs(total - 1) <= SUM_TOLERANCE).all():
        return array / total[:, None], np.where(whole, 1.0, np.nan) * np.ones(len(array))
    if whole and array.max() <= 1 < total.max():
        raise _several_labels(array, name, proba_name)
    if not total.all():
        row = int(np.argmin(total))
        raise InputError(name, "has no votes.", "Drop that sample.", row=row)
    if not whole:
        row = int(np.argmax(np.abs(total - 1) > SUM_TOLERANCE))
        remedy = "Pass shares that sum to 1, or whole numbers of votes."
        raise InputError(name, f"sums to {total[row]:.6g}.", remedy, row=row)
    return array / total[:, None], total


def _swapped(array: np.ndarray, fractions: np.ndarray, name: str, proba_name: str) -> InputError:
    """The error for outcomes that are fractions beside predictions of 0 and 1 alone."""
    where = first_of(fractions)
    value = array[tuple(where.values())]
    reason = f"is {value:.6g}, a fraction, while all predictions in {proba_name} are 0 or 1."
    remedy = f"Are the arguments swapped? Pass labels as {name} and probabilities as {proba_name}."
    return InputError(name, reason, remedy, **where, kind="swapped")


def _several_labels(array: np.ndarray, name: str, proba_name: str) -> InputError:
    """The error for a sample in which several labels hold."""
    total = array.sum(axis=1)
    row = int(np.argmax(total > 1))
    return InputError(
        name,
        f"has several classes: {total[row]:.0f} of {array.shape[1]}.",
        "If several labels of a sample may hold, pass notion='multi-label', or one label at a "
        f"time, {name}[:, k] and {proba_name}[:, k]. Pass votes of several annotators as "
        "shares that sum to 1.",
        row=row,
        kind="multi-label",
    )


def refuse_several_labels(y_true, y_proba, names: tuple[str, str]) -> None:
    """Raise if ``y_true`` and ``y_proba`` are those of several labels of each sample.

    Labels (n, K) are 0 or 1 with more than one 1 in a row, and rows of predictions (n, K) do not
    sum to 1.
    """
    refuse_list_of_labels(y_proba, names[1], names[0])
    if not (is_table(y_true) and is_table(y_proba)):
        return
    labels, proba = np.asarray(decoded(y_true)), np.asarray(decoded(y_proba))
    if labels.shape == proba.shape and labels.dtype.kind in "biuf" and proba.dtype.kind == "f":
        sums = proba.sum(axis=1, dtype=np.float64)
        are_of_labels = ((proba >= 0) & (proba <= 1)).all() and (np.abs(sums - 1) > 0.05).any()
        if are_of_labels and np.isin(labels, (0, 1)).all() and (labels.sum(axis=1) > 1).any():
            raise _several_labels(labels, *names)


def read_label_sets(y_true, proba: np.ndarray, name: str) -> np.ndarray:
    """Which of several labels hold, (n, K) floats of 0 and 1, as scikit-learn's multilabel y."""
    array = plain_array(y_true.toarray() if sparse.issparse(y_true) else y_true, name)
    n_labels = proba.shape[1]
    if array.dtype.kind not in "biuf" or array.shape != (len(proba), n_labels):
        raise InputError(
            name,
            f"has shape {array.shape}, where 0 or 1 for each of {n_labels} labels is needed, shape "
            f"{proba.shape}.",
            "Pass sklearn.preprocessing.MultiLabelBinarizer().fit_transform(…) of sets of labels.",
        )
    array = array.astype(np.float64)
    check_finite(array, name)
    wrong = (array != 0) & (array != 1)
    if wrong.any():
        where = first_of(wrong)
        reason = f"is {array[tuple(where.values())]:.6g}, not 0 or 1."
        raise InputError(name, reason, "Pass whether each label holds.", **where)
    return array


def columns_of_labels(y_proba, name: str):
    """Predictions of several labels as columns: lists of arrays (n, 2), a label each, as (n, K).

    Such lists are what ``MultiOutputClassifier.predict_proba`` returns; other input stays.
    """
    listed = isinstance(y_proba, list | tuple) and len(y_proba)
    if not (listed and all(np.ndim(array) == 2 for array in y_proba)):
        return y_proba
    for k, array in enumerate(y_proba):
        if np.shape(array)[1] != 2:
            raise InputError(
                name,
                f"holds an array of shape {np.shape(array)} for label {k}, where two columns are "
                "needed.",
                "If the classifier saw one outcome of that label alone, leave the label out.",
            )
    return np.column_stack([np.asarray(array)[:, 1] for array in y_proba])


def is_table(y_true) -> bool:
    """Whether outcomes have several columns, so that they are not one label each."""
    if type(y_true) is np.ndarray:
        shape: Any = y_true.shape
    elif isinstance(y_true, list | tuple):
        if not (len(y_true) and isinstance(y_true[0], list | tuple | np.ndarray)):
            return False
        shape = (len(y_true), *np.shape(y_true[0]))
    else:
        shape = getattr(y_true, "shape", None)
    return isinstance(shape, tuple) and len(shape) == 2 and shape[1] > 1


def rows_of_shares(shares: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows of labels that stand for shares (n, C): samples, columns, and their shares."""
    rows, codes = np.nonzero(shares)
    return rows, codes, shares[rows, codes]


def classes_of_shares(y_true, proba, labels, columns, name: str, proba_name: str) -> np.ndarray:
    """The class of each column of soft labels, which is that of the predictions."""
    named = columns if labels is None and proba.ndim == 2 else labels
    if named is None:
        return np.arange(2 if proba.ndim == 1 else proba.shape[1])
    classes = _given_classes(named, proba, proba_name)
    given = class_names(y_true)
    if given is not None and given != classes.tolist():
        reordered = set(given) == set(classes.tolist())
        reason = "the classes in another order than" if reordered else "other classes than"
        reason = f"has the columns {shortened(np.array(given))}, {reason} {proba_name}."
        remedy = f"Pass {name}[{shortened(classes)}]."
        if not reordered:
            remedy = "Name the columns of both alike, or pass arrays of the same order."
        raise InputError(name, reason, remedy)
    return classes


def sorted_labels(values: Any, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Check labels; return the distinct ones, and which of them each label is."""
    present, inverse = _distinct_labels(plain_labels(values, name), name)
    return present, inverse.reshape(-1)


def _distinct_labels(y: np.ndarray, name: str) -> tuple[np.ndarray, np.ndarray]:
    try:
        return np.unique(y, return_inverse=True)
    except TypeError as error:
        raise InputError(
            name,
            f"holds labels that cannot be sorted ({error}).",
            "Pass integers or strings, of one type.",
            lead="Unknown label type: ",
        ) from error


def _labels_of_columns(columns, present, name, proba_name):
    """Names of the columns, which must name all labels."""
    if set(present.tolist()) <= set(columns):
        return columns
    numerals = {str(label) for label in present.tolist()}
    if present.dtype.kind in "iu" and numerals <= set(columns) and _are_integers(columns):
        return [int(entry) for entry in columns]  # names that were read from a file are strings
    raise InputError(
        proba_name,
        f"has the columns {columns[:8]}, which do not name all labels of {name}, "
        f"{shortened(present)}.",
        f"Pass labels= with the class of every column, in the order of {columns[:8]}, or name the "
        "columns by the labels.",
        kind="names",
    )


def _warn_of_order(y_true, classes, name, proba_name) -> None:
    """Warn where the categories of labels are in another order than the columns are read in."""
    categories = getattr(getattr(y_true, "dtype", None), "categories", None)
    column = {label: k for k, label in enumerate(classes.tolist())}
    order = [column[label] for label in np.asarray(categories).ravel() if label in column]
    if order != sorted(order):
        warnings.warn(
            f"{name} has the categories {shortened(np.asarray(categories))}, but the columns of "
            f"{proba_name} are read in sorted order, as scikit-learn has them: "
            f"{shortened(classes)}. {PASS_LABELS}",
            stacklevel=2,
        )


def _warn_of_digits(classes, name: str, proba_name: str) -> None:
    """Warn if labels are numbers as texts, which sort "10" before "2", as columns may not be."""
    texts = classes.tolist()
    if _are_integers(texts) and texts != sorted(texts, key=int):
        warnings.warn(
            f"{name} holds digits as texts. The columns of {proba_name} are read in the order of "
            f"texts, as classes_ has it: {shortened(classes)}. If they are in the order of the "
            f"numbers, pass the labels as integers, numpy.asarray({name}).astype(int).",
            stacklevel=2,
        )


def _are_integers(columns) -> bool:
    return all(isinstance(entry, str) and entry.removeprefix("-").isdecimal() for entry in columns)


def _warn_if_counted_from_1(codes, proba, name: str, proba_name: str, remedy: bool | str) -> None:
    """Warn of labels without names that fit the columns far better when counted from 1."""
    if proba.ndim == 1 or proba.shape[1] == 1 or codes.min() == 0 or len(codes) < _FEWEST_COUNTED:
        return
    rows = np.arange(len(codes))
    gain = proba[rows, codes - 1].astype(np.float64) - proba[rows, codes]
    if gain.mean() > 4 * gain.std() / np.sqrt(len(codes)) > 0:
        n_classes = proba.shape[1]
        if not isinstance(remedy, str):
            remedy = f"If so pass labels=range(1, {n_classes + 1}), else labels=range({n_classes})."
        warnings.warn(
            f"{name} holds integers from {codes.min()}, which are read as column numbers from 0, "
            f"but {proba_name} fits them better counted from 1. {remedy}",
            stacklevel=2,
        )


def _to_drop(label, name: str, proba_name: str) -> str:
    """Say how to leave out the samples with a label."""
    return (
        f"If {label!r} marks samples to ignore, drop them: keep = numpy.asarray({name}) != "
        f"{label!r}, then pass {name}[keep] and {proba_name}[keep]."
    )


def refuse_mark(
    y, present, n_classes: int, name: str, proba_name: str, to_keep=PASS_LABELS
) -> None:
    """Raise where one number beside column numbers seems to mark samples without a label."""
    if present.dtype.kind not in "iuf" or (present % 1 != 0).any():
        return
    others = [int(label) for label in present.tolist() if not 0 <= label < n_classes]
    if not others or len(present) == len(others):
        return
    mark, surplus = others[0], len(present) > n_classes
    are_codes = surplus and all(is_code(label, n_classes - 1) for label in others)
    if are_codes or (mark in _IGNORED and len(others) == 1):
        raise InputError(
            name,
            f"is {mark}, which is not the number of one of {n_classes} classes.",
            f"{_to_drop(mark, name, proba_name)} If it is a class: {to_keep}",
            row=int(np.argmax(y == mark)),
            kind="mark",
        )


def _are_codes(y: np.ndarray, n_classes: int) -> bool:
    if y.dtype.kind not in "iu" or len(y) == 0:
        return False
    unsigned = y.view(_unsigned(y.dtype))  # in which those below 0 are the largest
    return bool(unsigned[unsigned.argmax()] < n_classes)


@lru_cache
def _unsigned(dtype: np.dtype) -> np.dtype:
    return np.dtype(dtype.str.replace("i", "u"))


def plain_labels(y_true, name: str) -> np.ndarray:
    """Return labels as a 1-D array, or say which is missing."""
    if y_true is None:
        reason = "is None: requires y to be passed, but the target y is None."
        raise InputError(name, reason)
    y = _as_column(y_true, name, warn=True)
    if y.dtype.kind == "T":  # searches copy labels, which numpy 2.0.0 cannot with its strings
        y = y.astype(object)
    if y.dtype.kind in "fc" and not np.isfinite(y).all():
        row = int(np.argmin(np.isfinite(y)))
        reason = f"is {y[row]}: Input {name} contains NaN or infinity."
        raise InputError(name, reason, "Drop or label that sample.", row=row)
    if y.dtype.kind in "OM":
        missing = np.array([is_missing(label) for label in y.tolist()])
        if missing.any():
            row = int(np.argmax(missing))
            reason, remedy = f"is missing ({y[row]}).", "Drop or label that sample."
            raise InputError(name, reason, remedy, row=row)
    if y.dtype.kind == "O" and all(isinstance(label, Real) for label in y.tolist()):
        return np.array(y.tolist())  # numbers in an object array
    return y


def _as_column(values, name: str, warn: bool = False) -> np.ndarray:
    if type(values) in (list, tuple, range):
        with suppress(Exception):  # which comes again below
            array = np.asarray(values)
            are_mixed = array.dtype.kind == "U" and any(map(is_missing, values))
            values = np.asarray(values, dtype=object) if are_mixed else array
    values = of_series(values)
    if type(values) is np.ndarray and values.ndim == 1 and values.dtype.kind in "biufUS":
        return np.ascontiguousarray(values)  # as scikit-learn's check, which takes longer
    refuse_masked(values, name)
    with naming(name):
        try:
            return column_or_1d(decoded(values), warn=warn)
        except ValueError as error:
            shape = np.shape(values)
            if len(shape) == 1:
                raise
            remedy = ""
            if name != "labels":
                remedy = "Pass one label per sample; are the arguments swapped?"
            if len(shape) > 2:
                remedy = f"Pass {name}.ravel() beside predictions of shape (n_samples, n_classes)."
            reason = f"should be a 1d array, got an array of shape {shape} instead."
            raise InputError(name, reason, remedy, kind="shape") from error


def is_missing(value) -> bool:
    """Whether a label or an entry of a column is None, NaN or pandas' NA or NaT."""
    nameless = value is None or type(value).__name__ in ("NAType", "NaTType")
    return nameless or (isinstance(value, float) and value != value)


def _given_classes(labels, proba, proba_name) -> np.ndarray:
    """Return ``labels`` if they name each column once."""
    n_classes = 2 if proba.ndim == 1 else proba.shape[1]
    classes = plain_labels(labels, "labels")
    distinct = len(set(classes.tolist()))
    if len(classes) == distinct == n_classes:
        return classes
    entries = "" if distinct == len(classes) else f" in {len(classes)} entries"
    kind, columns, remedy = "", f"{n_classes} columns.", "Pass the class of each column, once."
    if proba.ndim == 1:
        kind, columns = "positive class", "one."
        remedy = "Pass labels=[negative class, positive class]."
    reason = f"holds {distinct} distinct classes{entries}, {proba_name} has {columns}"
    raise InputError("labels", reason, remedy, kind=kind)


def _sorted_classes(present: np.ndarray, n_classes: int, name: str, proba_name: str) -> np.ndarray:
    """Return the class of each of several columns: the sorted labels."""
    if present.dtype.kind == "f" and (present % 1 != 0).any():
        lead = "Unknown label type: continuous. "
        raise InputError(name, "must hold the class labels of the samples.", lead=lead)
    if len(present) == n_classes:
        return present
    if present.dtype.kind in "biuf" and present[0] >= 0 and present[-1] < n_classes:
        return np.arange(n_classes)
    has = f"has {len(present)} classes {shortened(present)}"
    reason = f"{has}, {proba_name} has {n_classes} columns."
    raise InputError(name, reason, PASS_LABELS, kind="classes")


def _binary_classes(present: np.ndarray, name: str, single: str, any_two: bool) -> np.ndarray:
    for classes in (np.array([0, 1]), np.array([-1, 1])):
        if present.dtype.kind in "biuf" and np.isin(present, classes).all():
            return classes
    fractions = present.dtype.kind == "f" and (present % 1 != 0).any()
    if any_two and len(present) == 2 and not fractions:
        return present
    swapped = " (are the arguments swapped?)" if fractions else ""
    takes = f"takes values in {shortened(present)}{swapped}"
    reason = f"{takes}, so the positive class of a {single} is unknown."
    of_shares = ""
    if fractions and 0 <= present[0] <= present[-1] <= 1:
        of_shares = (
            " If these are shares of the positive class, as of raters, pass "
            f"numpy.column_stack([1 - numpy.asarray({name}), {name}])."
        )
    raise InputError(
        name,
        reason,
        f"Pass labels=[negative class, positive class]{_example(present)}{_where(name)}, or labels "
        "in {0, 1} or {-1, 1}." + of_shares,
        kind="positive class",
    )


def _where(name: str) -> str:
    """Metrics and tests have y_true and take pos_label; estimators have y."""
    return " or pos_label=" if name == "y_true" else " (of the constructor)" if name == "y" else ""


def _example(present: np.ndarray) -> str:
    if len(present) != 2:
        return ""
    return f" ({present.tolist()} for probabilities of {present.tolist()[1]!r})"


def refuse_another_order(rows: dict[str, Any]) -> None:
    """Raise where two series or frames of the same samples hold their index in another order.

    Other indices may differ: labels of a split of the data stand beside a new frame of predictions.
    """
    if PLAIN.issuperset(map(type, rows.values())):
        return
    indices: dict[str, Any] = {name: getattr(v, "index", None) for name, v in rows.items()}
    named = [(name, index) for name, index in indices.items() if hasattr(index, "equals")]
    for (other, theirs), (name, ours) in combinations(named, 2):
        if len(ours) != len(theirs) or ours.equals(theirs) or not ours.is_unique:
            continue
        if set(ours) == set(theirs):
            row = int(np.argmax(np.asarray(ours != theirs)))
            reason = f"has the index {ours[row]!s}, {other} {theirs[row]!s}: the same in another"
            remedy = f"Pass {name}.loc[{other}.index], or arrays if the rows belong together."
            raise InputError(name, f"{reason} order.", remedy, row=row)


def column_names(y_proba):
    """Names of the columns of a data frame or an arrow table, or None."""
    if type(y_proba) is np.ndarray:
        return None
    names = getattr(y_proba, "column_names", getattr(y_proba, "columns", None))
    return None if names is None else list(names)


def class_names(y_proba):
    """Names of the columns that name classes, or None; numbers from 0, as if unnamed, do not."""
    names = column_names(y_proba)
    if names is None:
        return None
    numbers = range(len(names))
    # as pandas and polars name columns of arrays
    return None if names in (list(numbers), [f"column_{k}" for k in numbers]) else names


def named_columns(features, n_samples, argument: str = "features"):
    """Return name and values of each column of an argument."""
    names = list(features) if isinstance(features, dict) else column_names(features)
    if names is None:
        array, name = np.asarray(features), None
        if array.ndim == 1:
            array = array[:, None]
            name = getattr(features, "name", None)  # of a pandas Series
        if array.ndim != 2:
            reason = f"has {array.ndim} dimensions."
            raise InputError(argument, reason, "Pass (n_samples, n_features).")
        names = [f"feature {k}" for k in range(array.shape[1])] if name is None else [str(name)]
        columns = list(zip(names, array.T, strict=True))
    else:
        _refuse_equal(names, argument)
        columns = [(str(name), _column_values(features, name, argument)) for name in names]
    if not columns:
        raise InputError(argument, "has no columns.", "Pass at least one.")
    for name, column in columns:
        _refuse_nested(name, column, argument)
        if column.shape != (n_samples,):
            reason = f"column {name!r} has shape {column.shape}, y_proba {n_samples} rows."
            raise InputError(argument, reason, "Pass one value a sample.")
    return columns


def _refuse_equal(names, argument):
    """Raise where two columns have the same name."""
    known = set()
    for name in map(str, names):
        if name in known:
            raise InputError(argument, f"has two columns {name!r}.", "Name each once.")
        known.add(name)


def _column_values(features, name, argument):
    """A column of a data frame, an arrow table or a dict."""
    try:
        return np.asarray(decoded(features[name]))
    except TypeError as error:
        reason = f"is a {type(features).__name__}, whose columns cannot be read."
        raise InputError(argument, reason, "Pass a data frame, or collect() it.") from error


def _refuse_nested(name, column, argument):
    """Raise where an entry holds several values."""
    kinds = (list, tuple, dict, set, np.ndarray)
    nested = [isinstance(value, kinds) for value in column] if column.dtype.kind == "O" else []
    if any(nested):
        raise InputError(
            argument,
            f"column {name!r} holds {type(column[nested.index(True)]).__name__}s.",
            "Pass a column for each of their parts.",
            row=nested.index(True),
        )


class GivenColumns(NamedTuple):
    """Columns of predictions as they were passed.

    Attributes
    ----------
    shape : tuple of int
        The shape of a row: () for 1-D predictions.
    names : list or None
        The names of a data frame's columns.
    """

    shape: tuple
    names: list | None

    @classmethod
    def of(cls, values: Any, name: str) -> GivenColumns:
        """Read them; errors call the argument ``name``."""
        with naming(name):
            return cls(np.shape(values)[1:], column_names(values))

    def refuse_other(self, given: GivenColumns, name: str, of: str) -> None:
        """Raise where later columns are others; ``of`` says of what these are the earlier ones."""
        if given.shape != self.shape:
            now, then = (
                f"{columns[0]} columns" if columns else "one dimension"
                for columns in (given.shape, self.shape)
            )
            kind = "CalibrationMonitor" if of == "batches" else "CalibrationTable"
            remedy = f"Make a new {kind} for another model."
            raise InputError(name, f"has {now}, earlier {of} have {then}.", remedy)
        if given.names and self.names and given.names != self.names:
            reason = f"has the columns {given.names[:8]}, earlier {of} have {self.names[:8]}."
            raise InputError(name, reason, "Bring the columns into the same order.")


def shortened(classes: np.ndarray, most: int = 8) -> str:
    """Return the first classes as text."""
    shown = ", ".join(repr(label) for label in classes[:most].tolist())
    return f"[{shown}{', …' if len(classes) > most else ''}]"
