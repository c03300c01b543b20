"""Samples of 30 rows, and the odd forms in which a call is given them."""

import json
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from input_forms import BAD_LABELS, BAD_WEIGHTS, LABEL_FORMS, READABLE, UNREADABLE

FOLDER = tempfile.TemporaryDirectory()
N = 30


def _samples():
    """Labels and predictions in sixteenths, which every float holds exactly."""
    rng = np.random.default_rng(3)
    cuts = np.sort(rng.integers(0, 17, size=(N, 2)), axis=1)
    proba, labels = np.diff(cuts, axis=1, prepend=0, append=16) / 16, np.arange(N) % 3
    corners = np.eye(3)[(labels + (np.arange(N) % 5 == 0)) % 3]
    binary, positive = (labels == 1).astype(int), rng.integers(0, 17, N) / 16
    return {
        "three classes": (labels, proba),
        "binary": (binary, positive),
        "two columns": (binary, np.column_stack([1 - positive, positive])),
        "certain": (labels, corners),
        "constant": (labels, np.tile([0.5, 0.25, 0.25], (N, 1))),
        "one class": (np.ones(N, dtype=int), proba),
        "binary, one class": (np.ones(N, dtype=int), positive),
    }


SAMPLES = _samples()
WEIGHTS = {
    None: None,
    "ones": np.ones(N),
    "mixed": np.array([0, 0.25, 0.5, 1])[np.arange(N) % 4],
    "one giant": np.where(np.arange(N) == 7, 1e17, 1.0),
    "one": (np.arange(N) == 7).astype(float),
}
NAMINGS = {
    None: None,
    "numbers": np.array([10, 20, 30]),
    "strings": np.array(["a", "b", "c"]),
    "far apart": np.array([-(2**40), 3, 2**40]),
}
NOTIONS = ["auto", "confidence", "top-label", "classwise", "canonical", "top-2", "binary"]
BAD_NOTIONS = [3, "x", None, [], {}, b"binary", np.nan, "top-0", "top-99"]
# Labels that are not the numbers of the columns: `NAMINGS` has such.
RENAMED = ("range of strings", "bytes", "object strings", "StringDType", "negative", "far apart")
LABELS = {
    key: form
    for key, form in LABEL_FORMS.items()
    if key not in RENAMED and key not in ("pandas, string", "pandas, categorical")
}
STRINGS = ("list", "object", "every second", "read-only", "duck", "pandas, odd index")
COARSE = ("float16", "float32")


def _polars(array, _):
    return pl.DataFrame(array.tolist(), orient="row") if array.ndim > 1 else pl.Series(array)


def _arrow(array, _):
    if array.ndim == 1:
        return pa.chunked_array([array[:7], array[7:]])
    return pa.table({f"c{k}": column for k, column in enumerate(array.T)})


FORMS = dict(READABLE)
with suppress(ImportError):
    import polars as pl

    FORMS["polars"] = _polars
with suppress(ImportError):
    import pyarrow as pa

    FORMS["pyarrow"] = _arrow
NUMBERS = {
    "NaN": lambda a, _: np.where(np.arange(len(a)) == 3, np.nan, a),
    "negative": lambda a, _: a - 2,
    "empty": lambda a, _: [],
    "strings": lambda a, _: a.astype(str),
    "rows": lambda a, _: a[:, None],
    "ragged": lambda a, _: [[1], [1, 2]],
    "None": lambda a, _: None,
    "number inside": lambda a, _: [*a.tolist(), object()],
    "complex": lambda a, _: a + 1j,
}
SIZES = {"good": [1, 2, 7, np.int64(5), np.uint8(5), np.int8(3)],
         "bad": [0, -1, 1.5, "x", None, np.nan, [3], True, np.float64(5.5)]}  # fmt: skip
BAD_NAMES = [3, "abc", [0, 1], [0, 1, 2, 3], [0, 1, 1], np.eye(3), [0, 1, np.nan], [0, 1, None],
             [[0], [1, 2], 3], {0: "a"}, []]  # fmt: skip


ARRAYS = ("proba", "features", "raw", "told", "residuals")
NUMBERS_TOO = [
    "one column",
    "strings",
    "bytes",
    "huge for float32",
    "huge",
    "negative",
    "above 1",
    "percentages",
]
# What some calls read, for good reasons: maps read single probabilities, and the rest are numbers.
LENIENT = {
    "proba": ["one column", "strings", "bytes"],
    "told": ["matrix", "pandas, categorical", "pandas, NA"],  # in a column that is not needed
    "seen labels": ["another class"],
    "weight of a batch": ["zero"],
    "numbers": ["strings"],
    "features": NUMBERS_TOO,
    "residuals": NUMBERS_TOO,
    "raw": [form for form in UNREADABLE if form != "masked"],  # what the classifier reads
}


class Given(NamedTuple):
    """Arguments, and what is known of them."""

    arguments: dict[str, Any]
    sample: tuple  # of `plain_arguments`
    told: str
    broken: bool = False
    may_answer: bool = False
    coarse: bool = False
    scaled: bool = False


def plain_arguments(kinds, sample, weight, naming, notion):
    """Plain arrays of what a call takes; kinds are pairs of arguments and their kinds."""
    labels, proba = SAMPLES[sample]
    names = NAMINGS[naming]
    known = {
        "labels": labels if names is None else names[labels],
        "proba": proba,
        "features": proba,
        "raw": proba,
        "told": proba,
        "seen labels": labels,
        "weight of a batch": WEIGHTS[weight],
        "weight": WEIGHTS[weight],
        "names": None
        if names is None
        else names[: max(2, proba.ndim and proba.reshape(N, -1).shape[1])],
        "notion": notion,
        "numbers": SAMPLES["binary"][1],
        "residuals": residuals(labels, proba),
        "size": 5,
    }
    arguments = {key: known[kind] for key, kind in kinds if kind != "text"}
    return {
        key: one for key, one in arguments.items() if one is not None or key not in ("w", "labels")
    }


def residuals(labels, proba):
    if proba.ndim == 1:
        return labels - proba
    return np.eye(proba.shape[1])[labels] - proba


def draw(call, rng, plain=False):
    """Arguments of a call in odd forms, one of them in five calls beyond reading."""
    pick = lambda choices: list(choices)[rng.integers(len(choices))]  # noqa: E731
    kinds = tuple(call.kinds.items())
    if "text" in call.kinds:
        return _text(call, rng, plain)
    has = set(call.kinds.values())
    name = "three classes" if plain or rng.random() < 0.5 else pick(SAMPLES)
    weight = None if plain or "w" not in call.kinds or rng.random() < 0.4 else pick(WEIGHTS)
    naming = None if plain or "names" not in has or rng.random() < 0.7 else pick(NAMINGS)
    notion = "auto" if plain or rng.random() < 0.3 else pick(NOTIONS)
    broken = pick(call.kinds) if kinds and rng.random() < 0.25 else None
    if "labels" in call.kinds.get(broken, ""):
        name, naming = "three classes", None
    weight = "mixed" if broken == "w" else weight
    sample = kinds, name, weight, naming, notion
    arguments = plain_arguments(*sample)
    if plain:
        return Given(arguments, sample, "plain")
    broken = broken if broken in arguments else None
    told, coarse, scaled, lenient = [name, weight, naming, notion], False, False, call.lenient
    for key in arguments:
        kind = call.kinds[key]
        if key == broken:
            form, arguments[key] = _break(kind, arguments[key], pick)
            lenient = lenient or form in LENIENT.get(kind, ())
            lenient = lenient or (len(arguments) == 1 and form in ("fewer rows", "more rows"))
        else:
            if key == "w" and weight != "one giant" and rng.random() < 0.3:
                scaled, scale = True, pick([1e-300, 1e-170, 1e-17, 1e17, 1e153, 1e300])
                arguments[key] = arguments[key] * scale
                told.append(f"scale {scale}")
            form, arguments[key] = _odd(kind, arguments[key], pick, exact=key == "w")
            coarse = coarse or form in COARSE
        told.append(f"{key}: {form}{' (broken)' * (key == broken)}")
    return Given(
        arguments, sample, ", ".join(map(str, told)), broken is not None, lenient, coarse, scaled
    )


def _odd(kind, value, pick, exact):
    if kind in (*ARRAYS, "numbers", "weight", "weight of a batch"):
        form = pick([one for one in FORMS if not (exact and one in COARSE)])
        return form, FORMS[form](value, Path(FOLDER.name))
    if kind in ("labels", "seen labels"):
        form = pick(LABELS if value.dtype.kind == "i" and abs(value).max() < 9 else STRINGS)
        return form, LABELS[form](value, Path(FOLDER.name))
    if kind == "names":
        form = pick(["list", "tuple", "array", "Index"])
        return form, {"list": list, "tuple": tuple, "array": np.array, "Index": pd.Index}[form](
            value.tolist()
        )
    if kind == "size":
        form = pick(range(len(SIZES["good"])))
        return "5", 5
    return value, value


def _break(kind, value, pick):
    if kind in ARRAYS:
        free = kind in ("features", "residuals")  # of which squares overflow
        form = pick([one for one in UNREADABLE if not (free and one.startswith("huge"))])
        return form, UNREADABLE[form](value)
    if kind in ("labels", "seen labels"):
        form = pick(BAD_LABELS)
        return form, BAD_LABELS[form](value)
    if kind.startswith("weight"):
        form = pick(BAD_WEIGHTS)
        return form, BAD_WEIGHTS[form](value)
    if kind == "numbers":
        form = pick(NUMBERS)
        return form, NUMBERS[form](value, None)
    form = pick({"names": BAD_NAMES, "notion": BAD_NOTIONS, "size": SIZES["bad"]}[kind])
    return repr(form), form


def _text(call, rng, plain):
    """JSON as it was written, laid out anew, or damaged at one place."""
    text, pick = call.text, lambda choices: list(choices)[rng.integers(len(choices))]
    place = int(rng.integers(len(text)))
    if plain:
        return Given({"text": text}, (), "plain")
    kind = pick(["cut", "deleted", "changed", "null", "NaN", "key", "type", "huge"])
    data = json.loads(text)
    if kind == "cut":
        text = text[:place]
    elif kind == "deleted":
        text = text[:place] + text[place + 1 :]
    elif kind == "changed":
        text = text[:place] + pick('09-.e"{}[]:,x\x00é') + text[place + 1 :]
    elif kind == "type":
        text = pick([None, 3, b"{}", [], {}, "[]", "{}", "null", "3", '"x"', ""])
    else:
        _damage(data, kind, pick)
        text = json.dumps(data)
    return Given({"text": text}, (), f"{kind} at {place}", True, True)


def _damage(data, kind, pick):
    """Replace or drop one entry, at any depth."""
    while True:
        keys = list(data) if isinstance(data, dict) else list(range(len(data)))
        key = pick(keys)
        if isinstance(data[key], dict | list) and len(data[key]) and pick([0, 1, 2]):
            data = data[key]
            continue
        if kind == "key":
            del data[key]
        else:
            data[key] = {"null": None, "NaN": float("nan"), "huge": 1e308}[kind]
        return
