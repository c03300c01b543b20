"""The border: arrays of numbers that a user passes in are checked here, once."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from numbers import Integral, Real
from typing import Any

import numpy as np
from scipy.special import expit, log_softmax, softmax
from sklearn import get_config
from sklearn.utils import check_array
from sklearn.utils.validation import validate_data

from skcal._sklearn_compat import Interval, get_namespace
from skcal.exceptions import InputError

FLOATS = (np.float64, np.float32)
PLAIN = {np.ndarray, type(None)}  # types of arguments that other libraries do not hold
# Read as unsigned integers, floats from 0 to 1 keep their order; all others, NaN too, are above.
_BITS_OF_ONE: dict[str, Any] = {
    "d": np.float64(1).view(np.uint64),
    "f": np.float32(1).view(np.uint32),
}

# Softmax outputs of float32 networks that were stored or printed as float64 miss 1 by some 1e-7.
SUM_TOLERANCE = 1e-5
# Averages of probabilities leave [0, 1] by a few units in the last place; those are rounding.
ROUNDING_ULPS = 4
_HALVES = {"float16": 2e-3, "bfloat16": 1.6e-2}  # what rows may miss: two units in the last place
_ROUNDED_SUMS = 0.01  # what rows of rounded numbers may miss
LARGEST_WEIGHT = 2.0**200
_MOST_WEIGHT = 2.0**40  # that a weight of a fit counts as
NOT_CLASSES = "Are the arguments swapped, or are these class predictions instead of predict_proba?"
_FEWEST_LOGITS = 20  # single logits, below which logits from 0 to 1 are not suspected
_UNEQUAL_WEIGHTS = 1e-9  # of all weight that pairs of different samples have at least

#: Constraint of a confidence level.
CONFIDENCE_LEVEL = {"confidence_level": [Interval(Real, 0, 1, closed="neither")]}
#: Constraint of a number of bins, whose edges have to fit into memory.
BIN_COUNT = Interval(Integral, 1, 100_000, closed="both")


def decoded(values: Any) -> Any:
    """Arrays of torch, cupy, jax and others of the array API as numpy's; else the input.

    Of an Arrow column, or table, the values in place of codes of dictionaries: numpy reads a null
    among the codes of a column in chunks as the last value.
    """
    if is_foreign_array(values):
        return _as_numpy(values)
    kind: Any = getattr(values, "type", None)
    if type(kind).__name__ == "DictionaryType":
        return values.cast(kind.value_type)
    schema: Any = getattr(values, "schema", None)
    if type(schema).__module__ != "pyarrow.lib":
        return values
    for k, field in enumerate(schema):
        if type(field.type).__name__ == "DictionaryType":
            values = values.set_column(k, field.name, decoded(values.column(k)))
    return values


def of_series(values: Any) -> Any:
    """The array of a pandas series of numpy's numbers, which other checks take long to find."""
    kind = type(values)
    if kind is np.ndarray or kind.__module__.partition(".")[0] != "pandas":
        return values
    dtype = getattr(values, "dtype", None)
    is_of_numpy = isinstance(dtype, np.dtype) and dtype.kind in "biuf"
    return values.to_numpy() if is_of_numpy else values


def is_foreign_array(values: Any) -> bool:
    """Whether it is an array of the array API, or a tensor, of another library than numpy."""
    kind = type(values)
    is_array = hasattr(kind, "__array_namespace__") or kind.__module__.partition(".")[0] == "torch"
    return is_array and not isinstance(values, np.ndarray | np.generic)


def _as_numpy(values: Any) -> np.ndarray:
    if hasattr(values, "detach"):  # torch
        values = values.detach().cpu()
        return (values.float() if "bfloat16" in str(values.dtype) else values).numpy()
    library = type(values).__module__.partition(".")[0]
    if library == "cupy":
        return values.get()
    if library == "array_api_strict":  # whose other devices stand for those of other libraries
        values = values.to_device(values.__array_namespace__().Device("CPU_DEVICE"))
    return np.asarray(values)


def is_dispatched(given: Any) -> bool:
    """Whether scikit-learn answers such an array in its own library."""
    return is_foreign_array(given) and get_config()["array_api_dispatch"]


def as_given(result: np.ndarray, given: Any) -> Any:
    """The result as an array of the library and device of the input, if scikit-learn dispatches."""
    if not is_dispatched(given) or result.dtype.kind not in "biuf":  # of text there are no arrays
        return result
    namespace, _ = get_namespace(given)
    return namespace.asarray(result, device=given.device)


def row_blocks(n_rows: int, row_bytes: int, most: float = np.inf) -> Iterator[slice]:
    """Slices of consecutive rows whose temporaries fit scikit-learn's ``working_memory``.

    ``most`` bytes are wanted at most, for blocks that stay in the processor's cache.
    """
    limit = min(most, get_config()["working_memory"] * 2**20)
    step = max(1, int(limit) // max(1, row_bytes))
    for start in range(0, n_rows, step):
        yield slice(start, min(start + step, n_rows))


def is_plain(array: Any, *dimensions: int) -> bool:
    """Whether scikit-learn's checks return this array as it is, which they take long to tell.

    They ask first for every other container. Plain is an array of numpy of finite float64 or
    float32, in the byte order of the machine, with at least one entry.
    """
    return _is_array(array, *dimensions) and _all_finite(array)


def _is_array(array: Any, *dimensions: int) -> bool:
    """Whether it is plain but for its values."""
    return (
        type(array) is np.ndarray
        and array.dtype in FLOATS
        and array.ndim in dimensions
        and array.size > 0
    )


def read_features(estimator, X, y=None, reset: bool = True) -> np.ndarray:
    """The features X (n, d) of a fit, or of a later call (``reset=False``)."""
    if _is_as_fitted(estimator, X, reset):
        return X
    X = decoded(X)
    refuse_no_features(X, y)
    with naming("X"):
        return validate_data(estimator, X, dtype=FLOATS, reset=reset)


def _is_as_fitted(estimator, X, reset: bool) -> bool:
    """Whether features are plain and, in a later call, as many as in the fit."""
    if not is_plain(X, 2) or hasattr(estimator, "feature_names_in_"):
        return False
    if reset:
        estimator.n_features_in_ = X.shape[1]
    return X.shape[1] == estimator.n_features_in_


def check_proba(
    y_proba,
    *,
    name: str = "y_proba",
    estimator=None,
    reset: bool = True,
    option: str = "",
    sums: bool = True,
) -> np.ndarray:
    """Return probabilities as a float array, (n,) or (n, C), or say which row is not one.

    Parameters
    ----------
    y_proba : array-like of shape (n_samples,) or (n_samples, n_classes)
        Probabilities in [0, 1]; rows sum to 1. A 1-D array holds P(positive class).
    name : str, default="y_proba"
        The argument that error messages name.
    estimator : object, default=None
        The estimator whose number and names of columns are set (``reset=True``) or compared.
    reset : bool, default=True
        Whether to set them instead of comparing.
    option : str, default=""
        What error messages add for those who have logits.
    sums : bool, default=True
        Whether rows must sum to 1; those of several labels need not.

    Returns
    -------
    proba : ndarray of the same shape, float64 or float32
        float32 input stays float32. Values outside [0, 1] by rounding (4 units in the last
        place) are read as 0 or 1; rows may miss 1 by 1e-5 (float16: 2e-3, bfloat16: 1.6e-2) and are
        left as they are.
    """
    y_proba = of_series(y_proba)
    if estimator is None and _is_array(y_proba, 1):
        one = _BITS_OF_ONE[y_proba.dtype.char]
        bits = y_proba.view(one.dtype)
        if bits[bits.argmax()] <= one:  # which takes half the time of a maximum
            return y_proba
    proba = _check_floats(y_proba, name, estimator, reset)
    if proba.ndim == 2:
        _check_columns(proba, name)
        if sums:
            _check_rows(proba, _sum_tolerance(y_proba), name, option)
    return _check_range(proba, name, option, _ulp(y_proba))


def check_predictions(
    predictions,
    from_logits: bool | None,
    *,
    name: str = "y_proba",
    estimator=None,
    reset=True,
    sums: bool = True,
) -> tuple[np.ndarray, np.ndarray | None]:
    """Return probabilities and, of logits, these without loss.

    Parameters
    ----------
    predictions : array-like of shape (n_samples,) or (n_samples, n_classes)
        Probabilities or logits, those of the positive class if 1-D.
    from_logits : bool or None
        Whether they are logits; None where the caller has no such option.
    name, estimator, reset, sums
        As of :func:`check_proba`.

    Returns
    -------
    proba : ndarray of the same shape
        As of :func:`check_proba`; of logits the softmax, or the logistic function, in float64.
    logits : ndarray of the same shape, float64, or None
        Logarithms of the rows' probabilities, or the logits as they are where each entry has one.
    """
    if not (from_logits is False or isinstance(from_logits, bool | np.bool_ | None)):
        raise InputError("from_logits", f"is {from_logits!r}.", "Pass True or False.")
    if not from_logits:
        option = "" if from_logits is None else " or from_logits=True"
        proba = check_proba(
            predictions, name=name, estimator=estimator, reset=reset, option=option, sums=sums
        )
        return proba, None
    logits = check_logits(predictions, name, estimator, reset).astype(np.float64, copy=False)
    if logits.ndim == 1 or not sums:
        return expit(logits), logits
    return softmax(logits, axis=1), normalized_logits(logits)


def check_logits(predictions, name: str, estimator=None, reset=True) -> np.ndarray:
    """Return logits, (n,) or (n, C), as floats of their precision, uncopied if they are such."""
    logits = _check_floats(predictions, name, estimator, reset)
    refuse_probabilities(logits, name)
    if logits.ndim == 2:
        _check_columns(logits, name)
    elif len(logits) >= _FEWEST_LOGITS and logits.min() >= 0 and logits.max() <= 1:
        warnings.warn(
            f"All logits in {name} are from 0 to 1, as probabilities are. If they are "
            "probabilities, do not pass them as logits.",
            stacklevel=2,
        )
    elif len(logits) >= _FEWEST_LOGITS and logits.max() <= 0:
        warnings.warn(
            f"No logit in {name} is above 0, as no log-probability is. If they are logarithms of "
            f"probabilities, pass numpy.exp({name}) without from_logits.",
            stacklevel=2,
        )
    return logits


def normalized_logits(X: np.ndarray) -> np.ndarray:
    """Return log p of logits X, each row less its log-sum-exp; a single column as it is."""
    z = X.astype(np.float64)
    for rows in row_blocks(len(z), 8 * z.shape[1], most=2**20):
        if z.shape[1] > 1:
            z[rows] = log_softmax(z[rows], axis=1)
    return z


def _check_floats(predictions, name, estimator, reset) -> np.ndarray:
    """Finite floats of one or two dimensions."""
    if estimator is None:
        read_before = is_plain(predictions, 1, 2)
    else:
        read_before = _is_as_fitted(estimator, predictions, reset)
    if read_before:
        return predictions
    with naming(name):
        passed, predictions = predictions, decoded(predictions)
        proba = predictions if hasattr(predictions, "ndim") else np.asarray(predictions)
        refuse_no_numbers(proba, name)
        if proba.ndim not in (1, 2):
            refuse_list_of_labels(predictions, name)
            reason = f"has {proba.ndim} dimensions."
            remedy = "Pass (n_samples,) probabilities of the positive class"
            remedy = f"{remedy} or (n_samples, n_classes) rows.{_to_reshape(passed, proba, name)}"
            raise InputError(name, reason, remedy, kind="dimensions")
        half = _kind_of_half(proba) is not None
        options = {"dtype": np.float32 if half else FLOATS, "ensure_all_finite": False}
        if estimator is None:
            proba = check_array(proba, input_name=name, ensure_2d=False, **options)
        else:
            proba = _validate_columns(estimator, proba, name, reset, options)
    absent = np.isneginf(proba) if getattr(estimator, "_takes_absent", False) else None
    if absent is None or proba.ndim < 2 or proba.shape[1] < 2 or not absent.any():
        check_finite(proba, name)
        return proba
    check_finite(np.where(absent, 0, proba), name)
    if absent.all(axis=1).any():
        row = int(np.argmax(absent.all(axis=1)))
        raise InputError(name, "is -inf for every class.", "Drop that sample.", row=row)
    return proba


def refuse_list_of_labels(predictions, name: str, y_name: str | None = None) -> None:
    """Raise for a list of arrays of two columns, of which a forest returns one for each label."""
    if type(predictions) in PLAIN or not (isinstance(predictions, list | tuple) and predictions):
        return
    if all(np.ndim(part) == 2 and np.shape(part)[1] == 2 for part in predictions):
        y_name = y_name or {"X": "y", "y_proba": "y_true"}.get(name, "labels")
        raise InputError(
            name,
            f"is a list of {len(predictions)} arrays of two columns, as predict_proba returns of "
            "several labels.",
            f"Pass notion='multi-label' and {y_name} of shape (n_samples, {len(predictions)}) of 0 "
            f"and 1, or one label at a time: {y_name}[:, k] and {name}[k][:, 1]. If each array is "
            f"one text of several words, pass numpy.concatenate({name}) and the labels alike.",
            kind="multi-label",
        )


def _to_reshape(passed, proba, name: str) -> str:
    """How predictions for the words of texts or the pixels of images become rows.

    ``passed`` is what the user has, whose own methods the advice names.
    """
    if proba.ndim < 3:
        return ""
    array = np.asarray(decoded(proba), dtype=np.float64)
    last = np.allclose(array.sum(axis=-1), 1)
    first = not last and (array.ndim > 3 or np.allclose(array.sum(axis=1), 1))
    has_methods = hasattr(passed, "reshape") and hasattr(passed, "ravel")
    whole, labels = (name, "ravel()") if has_methods else (f"numpy.asarray({name})", "numpy.ravel")
    axis, rows = "the last axis", whole
    if first:  # numpy's function does not take tensors of torch
        rows = f"numpy.moveaxis({whole}, 1, -1)"
        axis, rows = "axis 1", f"{name}.movedim(1, -1)" if hasattr(passed, "movedim") else rows
    n_classes = proba.shape[1 if first else -1]
    return (
        f" If the classes are {axis}, pass {rows}.reshape(-1, {n_classes}), and the labels by "
        f"{labels}. What belongs to one text or image depends on each other: name it by groups "
        "where that is an option."
    )


def _kind_of_half(array) -> str | None:
    """The name of a type of 16 bits, of numpy or of a tensor; None of other numbers."""
    name = str(getattr(array, "dtype", "")).removeprefix("torch.")
    return name if name in _HALVES else None


def _ulp(proba) -> float | None:
    """The rounding of a type of 16 bits, which is read as another; None of other types."""
    return {"float16": 2.0**-10, "bfloat16": 2.0**-7}.get(_kind_of_half(proba) or "")


def _sum_tolerance(proba) -> float:
    """By how much rows of this type may miss 1."""
    return _HALVES.get(_kind_of_half(proba) or "", SUM_TOLERANCE)


def _validate_columns(estimator, proba, name, reset, options):
    """Check against the columns that the estimator was fitted on; 1-D counts as one."""
    if proba.ndim == 2:
        return validate_data(estimator, proba, reset=reset, **options)
    if not reset and estimator.n_features_in_ != 1:
        lead = "Expected 2D array, got 1D array instead: "
        reason = f"has shape {proba.shape}; {type(estimator).__name__} was fitted on "
        reason += f"{estimator.n_features_in_} columns."
        raise InputError(name, reason, "Reshape your data: a row per sample.", lead=lead)
    if reset:
        estimator.n_features_in_ = 1
        vars(estimator).pop("feature_names_in_", None)
    return check_array(proba, ensure_2d=False, **options)


@contextmanager
def naming(name: str, *others: str):
    """Let errors of numpy and scikit-learn name the argument; overflow makes infinities.

    Errors that name it or one of the others stay as they are.
    """
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            yield
    except OverflowError as error:
        raise InputError(name, f"holds a number too large for float64 ({error}).") from error
    except (ValueError, TypeError) as error:
        if any(re.search(rf"\b{re.escape(known)}\b", str(error)) for known in (name, *others)):
            raise
        if isinstance(error, TypeError):
            raise TypeError(f"{name}: {error}") from error
        raise InputError(name, f": {error}") from error


def refuse_no_numbers(array, name: str, remedy: str = NOT_CLASSES) -> None:
    """Raise for what scikit-learn reads as numbers, or refuses without a place.

    Those are masked entries, dates, complex numbers, records, texts, and objects that are no
    arrays.
    """
    refuse_masked(array, name)
    frame = hasattr(array, "columns") and hasattr(array, "dtypes")
    dtypes = list(array.dtypes) if frame else [getattr(array, "dtype", None)]
    kinds = {getattr(dtype, "kind", None): dtype for dtype in dtypes}
    if times := kinds.keys() & {"m", "M"}:
        dtype = kinds[times.pop()]
        raise InputError(name, f"holds dates or times ({dtype}).", "Pass numbers.")
    if "c" in kinds:
        lead = "Complex data not supported: "
        raise InputError(name, f"holds complex numbers ({kinds['c']}).", "Pass numbers.", lead=lead)
    if "V" in kinds:
        raise InputError(name, f"holds records ({kinds['V']}).", "Pass an array of numbers.")
    if not kinds.keys() & {"U", "S", "O", "T"}:
        return
    entries = np.asarray(array)
    if not entries.ndim:
        reason = f"is a {type(entries.item()).__name__}."
        raise InputError(name, reason, "Pass an array of numbers.")
    if entries.dtype == object:
        texts = np.reshape(
            [isinstance(entry, str | bytes) for entry in entries.flat], entries.shape
        )
    else:
        texts = np.ones(entries.shape, dtype=bool)
    if texts.any():
        where = first_of(texts)
        text = str(entries[tuple(where.values())])
        raise InputError(name, f"holds {text!r}, not a number.", remedy, **where)


def refuse_masked(array, name: str) -> None:
    if np.ma.is_masked(array):
        raise InputError(name, "is masked.", "Drop the masked rows first.")


def _all_finite(array: np.ndarray) -> bool:
    with np.errstate(all="ignore"):
        total = array.sum()  # finite only if all entries are, and without a temporary array
    return bool(np.isfinite(total) or np.isfinite(array).all())


def check_finite(array: np.ndarray, name: str, remedy="Drop or fix that sample.") -> None:
    if _all_finite(array):
        return
    where = first_of(~np.isfinite(array))
    value = "NaN" if np.isnan(array[tuple(where.values())]) else "infinity"
    lead = f"Input {name} contains {value}: "
    if np.isneginf(array[tuple(where.values())]):
        remedy = f"For logits in which classes are masked pass numpy.maximum({name}, -1e4)."
    raise InputError(name, ".", remedy, **where, lead=lead)


def first_of(wrong: np.ndarray) -> dict[str, int]:
    """Row and, of two dimensions, column of the first entry that is true."""
    return dict(zip(("row", "column"), map(int, np.argwhere(wrong)[0]), strict=False))


def refuse_probabilities(logits, name):
    if logits.ndim < 2 or logits.min() < 0:
        return
    if np.allclose(logits.sum(axis=1, dtype=np.float64), 1):
        reason = "holds probabilities already, not logits."
        remedy = "Pass logits, or leave from_logits out and pass no logits."
        raise InputError(name, reason, remedy, kind="probabilities")


def _check_columns(proba: np.ndarray, name: str) -> None:
    if proba.shape[1] < 2:
        raise InputError(
            name,
            "has a single column (n_features = 1), where a column per class is needed.",
            f"Pass that of the positive class as a 1-D array, {name}.ravel().",
        )


def is_code(label: int, most: int) -> bool:
    """Whether a number beside labels from 0 to ``most`` seems to mark missing ones: -1 or 99."""
    return label < 0 or (label > max(most + 1, 6) and len(set(str(label))) == 1)


def likely_codes(numbers: np.ndarray, most: float = 1.0) -> dict[float, int]:
    """Numbers that seem to mark missing values, such as -99, with how many there are of each.

    They are at most three different whole numbers far outside of [0, most], in fewer entries than
    those inside, which are no whole numbers alone. {} if there are none.
    """
    with np.errstate(invalid="ignore"):
        outside = (numbers == -1) | (numbers <= -7) | (numbers >= 7 * most)
        others = (numbers >= -_ROUNDED_SUMS) & (numbers <= most * (1 + _ROUNDED_SUMS))
        fractions = (numbers[others] % 1 != 0).any()
        values, counts = np.unique(numbers[outside], return_counts=True)
        are_whole = not (values % 1).any()  # infinity is not
    n_known, n_others = np.count_nonzero(~np.isnan(numbers)), np.count_nonzero(others)
    are_few = 0 < len(values) <= 3 and counts.sum() == n_known - n_others < n_others
    if not (are_few and fractions and are_whole):
        return {}
    return dict(zip(values.tolist(), counts.tolist(), strict=True))


def _refuse_codes(proba: np.ndarray, name: str) -> None:
    """Raise where a few numbers seem to mark missing values."""
    codes = likely_codes(proba)
    if codes:
        code = next(iter(codes))
        rows = f"numpy.asarray({name}) != {code:g}"
        rows = rows if proba.ndim == 1 else f"({rows}).all(axis=1)"
        raise InputError(
            name,
            f"is {code:g}, not a probability in [0, 1], as are {codes[code]:,} entries.",
            f"If {code:g} marks missing values, drop them: keep = {rows}, then pass {name}[keep], "
            "and the labels of these rows.",
            **first_of(proba == code),
            kind="codes",
        )


def _check_rows(proba: np.ndarray, tolerance: float, name: str, option: str) -> None:
    double = proba.dtype == np.float64
    total = proba @ np.ones(proba.shape[1]) if double else proba.sum(axis=1, dtype=np.float64)
    wrong = np.abs(total - 1) > tolerance
    if not wrong.any():
        return
    _refuse_codes(proba, name)
    row = int(np.argmax(wrong))
    kind, remedy = "sum", "Pass predict_proba output, or divide each row by its sum."
    if abs(total[row] - 1) < _ROUNDED_SUMS:
        remedy = f"If it was rounded (float16, text), pass skcal.metrics.normalize_proba({name})."
    if abs(total[row] - 100) < 1 and proba.min() >= 0:
        kind, remedy = "", "If these are percentages, divide by 100."
    elif proba.min() < 0 or proba.max() > 1 + tolerance:
        kind = "logits"
        remedy = f"If these are logits, apply scipy.special.softmax(…, axis=1){option}."
    raise InputError(name, f"sums to {total[row]:.6g}, not 1.", remedy, row=row, kind=kind)


def _check_range(
    proba: np.ndarray, name: str, option: str = "", ulp: float | None = None
) -> np.ndarray:
    rounding = ROUNDING_ULPS * (ulp or np.finfo(proba.dtype).eps)
    low, high = proba.min(initial=0), proba.max(initial=1)
    if low < -rounding or high > 1 + rounding:
        outside = (proba < -rounding) | (proba > 1 + rounding)
        _refuse_outside(proba, outside, name, option, low, high)
    return np.clip(proba, 0, 1) if low < 0 or high > 1 else proba


LOGITS = "Pass predict_proba output; divide percentages by 100; for logits apply {}."
SWAPPED = "Are the arguments swapped, or are these class predictions? "


def _refuse_outside(proba, outside, name, option, low, high):
    _refuse_codes(proba, name)
    where = first_of(outside)
    kind, remedy = "range", LOGITS.format(f"scipy.special.softmax or expit{option}")
    if (proba.ndim == 1 or proba.shape[1] == 1) and not (proba % 1).any():
        kind, remedy = "integers", f"{SWAPPED}{remedy}"
    elif low > -SUM_TOLERANCE and high < 1 + SUM_TOLERANCE:
        kind, remedy = "rounded", f"If that is rounding, pass numpy.clip({name}, 0, 1)."
    elif (proba.ndim == 1 or proba.shape[1] == 1) and proba.max() <= 0:
        remedy = f"No value is above 0: of log-probabilities pass numpy.exp({name}), of log-odds "
        kind, remedy = "log-probabilities", f"{remedy}scipy.special.expit({name}){option}."
    value = proba[tuple(where.values())]
    reason = f"is {value:.9g}, not a probability in [0, 1]."
    raise InputError(name, reason, remedy, **where, kind=kind)


def check_weight(sample_weight, n_samples: int) -> np.ndarray:
    """Return finite, non-negative float64 weights, not all zero; ones for None.

    Where the largest is above 2²⁰⁰ or below its inverse, all are divided by it, so that squares and
    sums stay numbers.
    """
    if sample_weight is None:
        weight = np.empty(n_samples)
        weight.fill(1.0)  # as numpy.ones, which takes longer
        return weight
    sample_weight = weight = of_series(sample_weight)
    if not (is_plain(weight, 1) and weight.dtype == np.float64):
        weight = _read_weight(sample_weight, n_samples)
    if weight.ndim != 1:
        lead = f"Sample weights must be 1D array or scalar, got {weight.ndim}D array as "
        raise InputError("sample_weight", ".", lead=lead)
    if len(weight) != n_samples:
        reason = f".shape == {weight.shape}, expected {(n_samples,)}: one per sample."
        raise InputError("sample_weight", reason)
    if (weight < 0).any():
        row = int(np.argmax(weight < 0))
        reason, remedy = f"is {weight[row]:.6g}: negative.", "Pass weights ≥ 0."
        raise InputError("sample_weight", reason, remedy, row=row)
    if not weight.any():
        lead = "Sample weights must contain at least one non-zero number; "
        raise InputError("sample_weight", "is all zero.", lead=lead)
    if not 1 / LARGEST_WEIGHT < weight.max() < LARGEST_WEIGHT:
        return weight / weight.max()
    return weight


def effective_weights(weight: np.ndarray, votes: np.ndarray | None = None) -> np.ndarray:
    """Return weights whose sum is the effective sample size, n_eff = (Σ w)² / Σ w².

    So statements of uncertainty depend on ratios of weights alone. Equal weights become 1. A sample
    of several votes counts as that many samples of its weight.
    """
    share = weight / weight.max()
    sums = share if votes is None else share * votes
    ordered = np.sort(sums), np.sort(sums * share)  # which no order of rows changes
    return share * (ordered[0].sum() / ordered[1].sum())


def row_weights(weight: np.ndarray) -> np.ndarray:
    """Return the weights of a fit as numbers of rows: 2 is a row twice, 0 no row.

    A sum below the effective sample size cannot be of numbers of rows, and is raised to it.
    """
    effective, largest = effective_weights(weight), weight.max()
    if largest > _MOST_WEIGHT:
        return effective * max(1.0, _MOST_WEIGHT / effective.max())
    return effective if effective.max() > largest * (1 + 1e-12) else weight


def n_rows(weight: np.ndarray) -> float:
    """Return how many rows the weights of a fit stand for; see :func:`row_weights`."""
    return float(row_weights(weight).sum())


def _read_weight(sample_weight, n_samples: int) -> np.ndarray:
    """Finite float64 weights of any shape."""
    refuse_masked(sample_weight, "sample_weight")
    sample_weight = decoded(sample_weight)
    options = {"dtype": np.float64, "ensure_2d": False, "ensure_all_finite": False}
    with naming("sample_weight"):
        remedy = "Pass one weight per sample."
        refuse_no_numbers(np.asarray(sample_weight), "sample_weight", remedy)
        if isinstance(sample_weight, Real):
            sample_weight = np.full(n_samples, sample_weight)
        weight = check_array(sample_weight, **options)
    check_finite(weight, "sample_weight")
    return weight


def weight_of_pairs(total: Any, squares: Any) -> Any:
    """Σ_{i≠j} w_i w_j = (Σ w)² - Σ w², or an error where rounding leaves nothing of it."""
    pairs = total**2 - squares
    if np.sum(squares) > 0:
        refuse_lost_pairs(np.sum(pairs), np.sum(total**2))
    return pairs


def refuse_lost_pairs(pairs: float, squared_total: float) -> None:
    """Raise where pairs of different samples vanish in rounding beside one sample."""
    if squared_total * _UNEQUAL_WEIGHTS >= pairs:
        raise InputError(
            "sample_weight",
            "is so unequal that the pairs of different samples vanish in rounding: one sample has "
            "nearly all of the weight.",
            "Lower that weight, or drop the sample.",
        )


def is_significant(pvalue, confidence_level: float):
    """Whether p-values are at most 1 - confidence_level, whose rounding does not count."""
    return pvalue <= 1 - confidence_level + 1e-12


def refuse_no_features(X, y=None) -> None:
    """Raise for features of another form than (n, d), and say whether X and y are swapped."""
    with naming("X", "y"):
        swapped = " Are X and y swapped?" if _are_probabilities(y) else ""
        array = X if hasattr(X, "ndim") else np.asarray(X)
    refuse_no_numbers(array, "X", f"Pass probabilities.{swapped}")
    if array.ndim == 1:
        raise InputError(
            "X",
            f"has shape {array.shape}.",
            "Reshape your data by X.reshape(-1, 1) if it is single probabilities, "
            f"P(positive class); else pass (n_samples, n_classes).{swapped}",
            lead="Expected 2D array, got 1D array instead: ",
        )


def _are_probabilities(y) -> bool:
    """Whether there are fractions, and none negative as residuals are."""
    array = np.asarray(y)
    return array.dtype.kind == "f" and bool((array % 1 != 0).any() and (array >= 0).all())


def plain_array(values: Any, name: str) -> np.ndarray:
    """What numpy reads as an array, of any type."""
    refuse_masked(values, name)
    with naming(name):
        return np.asarray(decoded(values))


def as_floats(values: Any, name: str) -> np.ndarray:
    """Real numbers of any shape as float64, finite or not."""
    options = {"ensure_2d": False, "allow_nd": True, "ensure_min_samples": 0}
    with naming(name):
        return check_array(decoded(values), dtype=np.float64, ensure_all_finite=False, **options)


def check_unit_interval(
    X: np.ndarray,
    remedy: str = "Wrap the function in CalibrationErrorEstimator(function, from_logits=True) for "
    "logits.",
) -> None:
    """Raise unless every feature is a probability, up to the rounding of sums."""
    rounding = ROUNDING_ULPS * np.finfo(X.dtype).eps
    outside = np.less(X, -rounding) | np.greater(X, 1 + rounding)
    if outside.any():
        where = first_of(outside)
        reason = f"is {X[tuple(where.values())]:.6g}, not a probability in [0, 1]."
        if not (X % 1).any():
            remedy = f"{SWAPPED}{remedy}"
        raise InputError("X", reason, remedy, **where)


def read_probabilities(estimator, X, y=None, reset=True) -> np.ndarray:
    """The probabilities X (n, d), of any sum, of a fit, or of a later call (``reset=False``)."""
    X = read_features(estimator, X, y, reset)
    link = "softmax(logits, axis=1)" if X.shape[1] > 1 else "expit(logits)"
    check_unit_interval(X, f"For logits pass scipy.special.{link}.")
    return X


def read_columns(estimator, X, reset=True) -> np.ndarray:
    """Predictions X of a fit, or of a later call (``reset=False``), as columns (n, 1) or (n, C).

    They are logits if the estimator has ``from_logits=True``.
    """
    from_logits = getattr(estimator, "from_logits", None)
    floats = _check_floats(X, "X", estimator, reset)
    columns = floats.reshape(len(floats), -1)
    if from_logits:
        if columns.shape[1] > 1:
            refuse_probabilities(columns, "X")
        return columns
    option = " or from_logits=True" if from_logits is not None else ""
    if columns.shape[1] > 1:
        _check_rows(columns, _sum_tolerance(X), "X", option)
        if _kind_of_half(X) is not None:  # which no later check knows
            columns = columns / columns.sum(axis=1, keepdims=True)
    return _check_range(columns, "X", option, _ulp(X))
