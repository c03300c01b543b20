"""Wrong calls of every public entrance of labels: an error that names the argument, or a warning.

The entrances are those of ``test_outcome_properties.py``, which reads them from the public surface,
and the options are those of their signatures, so that new ones are tried by themselves.
"""

import re
from inspect import signature

import numpy as np
import pytest
from test_outcome_properties import ENTRANCES, LABELS, PROBA, C, ask, owner_of, quiet

from skcal._sklearn_compat import ParameterError


def changed(value):
    proba = PROBA.astype(type(value) if isinstance(value, float) else object)
    proba[4, 1] = value
    return proba


# Labels and predictions.
WRONG = {
    "swapped": (PROBA, LABELS),
    "predictions twice": (PROBA, PROBA.copy()),
    "classes": (LABELS, LABELS),
    "percent": (LABELS, 100 * PROBA),
    "sums": (LABELS, 0.9 * PROBA),
    "logits": (LABELS, np.log(PROBA)),
    "NaN": (LABELS, changed(np.nan)),
    "infinity": (LABELS, changed(np.inf)),
    "negative": (LABELS, changed(-0.25)),
    "text": (LABELS, changed("x")),
    "None inside": (LABELS, changed(None)),
    "texts": (LABELS, PROBA.astype(str)),
    "dates": (LABELS, np.zeros(PROBA.shape, dtype="datetime64[D]")),
    "records": (LABELS, np.zeros(len(PROBA), dtype=[("a", float), ("b", float)])),
    "four dimensions": (LABELS, PROBA.reshape(2, 2, -1, C)),
    "generator": (LABELS, (row for row in [])),
    "too few": (LABELS, PROBA[:-1]),
    "no predictions": (LABELS, PROBA[:0]),
    "fractions": (LABELS / 7 + 0.01, PROBA),
    "NaN among labels": (np.where(LABELS == 1, np.nan, LABELS), PROBA),
    "marks": (np.where(np.arange(len(LABELS)) % 9 == 4, -100, LABELS), PROBA),
    "another class": (np.where(np.arange(len(LABELS)) == 7, C, LABELS), PROBA),
    "no labels": (None, PROBA),
}
# Words of numpy and Python about what a caller never passed.
RAW = re.compile(
    "broadcast|out of bounds|out of range|unhashable|not subscriptable|operands|cannot reshape"
    "|ufunc|object is not|inhomogeneous|Cannot cast|zero-size|too many indices|truth value"
    "|not supported"
)
NAMES = re.compile(r"\b(y_true|y_proba\w*|y_before|y_after|[yX])\b")
#: What takes features of any kind, or checks them by its classifier.
OF_FEATURES = ("RecalibratedClassifierCV", "SegmentRecalibrator")
#: Options of figures, which are read when they are drawn, and names that are shown as they are.
LATER = {
    "ax",
    "description",
    "line_kw",
    "ref_line",
    "plot",
    "name",
    "compare_name",
    "note",
    "metadata_routing",
}
#: What a report reads if it searches.
OF_SEARCHES = {("calibration_report", option) for option in ("cv", "outer_cv")}
every_entrance = pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=quiet)
        for name in ENTRANCES
        if not name.endswith(".from_estimator") and not name.startswith(OF_FEATURES)
    ],
)


def refusal(call):
    """What a call raises, or None."""
    try:
        call()
    except (ValueError, TypeError) as error:
        return error
    return None


@every_entrance
def test_wrong_labels_and_predictions_are_refused_by_name(name):
    if name == "validation_measures":
        pytest.skip("it takes one column")
    for kind, (y, proba) in WRONG.items():
        error = refusal(lambda: ask(name, y, proba))  # noqa: B023
        assert error is not None, kind
        assert NAMES.search(str(error)), (kind, str(error))
        assert not RAW.search(str(error)), (kind, str(error))


@every_entrance
def test_options_that_are_none_are_refused_by_name(name):
    _, _, method = name.partition(".")
    thing = owner_of(name, ENTRANCES[name])
    options = signature(getattr(thing, method) if method else thing).parameters.values()
    for option in options:
        read = option.name not in LATER and (name, option.name) not in OF_SEARCHES
        if option.kind is option.KEYWORD_ONLY and read:
            for value in (object(), "misspelt", np.array([3.0, -2.0])):
                error = refusal(lambda: ask(name, LABELS, PROBA, **{option.name: value}))  # noqa: B023
                assert error is not None, (option.name, value)
                if not isinstance(error, ParameterError):
                    assert re.search(rf"\b{option.name}(\b|_)", str(error)), str(error)
                    assert not RAW.search(str(error)), str(error)
