"""Wrong calls of every public entrance of labels: an error that names the argument, or a warning.

The entrances are those of ``test_outcome_properties.py``, which reads them from the public surface,
and the options are those of their signatures, so that new ones are tried by themselves.
"""

import re
from inspect import signature

import numpy as np
import pytest
from test_outcome_properties import ENTRANCES, LABELS, PROBA, C, ask, content, owner_of, quiet

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
#: Names, which are shown as they are.
LATER = {"name", "compare_name", "description", "note", "metadata_routing", "ignore_label"}
#: What may be any whole number, or would take its time.
ANY_NUMBER = {"n_resamples", "random_state", "n_jobs", "verbose", "max_search_samples"}
#: Arguments beside labels and predictions that hold a value for each sample, or a row.
OF_SAMPLES = ("sample_weight", "groups", "by", "segments", "features", "feature", "compare")
every_entrance = pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=quiet)
        for name in ENTRANCES
        if not name.endswith(".from_estimator") and not name.startswith(OF_FEATURES)
    ],
)


def options_of(name):
    """The parameters of an entrance."""
    thing, _, method = owner_of(name, ENTRANCES[name]), *name.partition(".")[1:]
    return signature(getattr(thing, method) if method else thing).parameters.values()


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
    for option in options_of(name):
        if option.kind is option.KEYWORD_ONLY and option.name not in LATER:
            for value in (object(), "misspelt", np.array([3.0, -2.0])):
                error = refusal(lambda: ask(name, LABELS, PROBA, **{option.name: value}))  # noqa: B023
                assert error is not None, (option.name, value)
                if not isinstance(error, ParameterError):
                    assert re.search(rf"\b{option.name}(\b|_)", str(error)), str(error)
                    assert not RAW.search(str(error)), str(error)


@every_entrance
def test_huge_numbers_are_answered_or_refused_by_name(name):
    for option in options_of(name):
        whole = type(option.default) is int or option.name == "n_bins"
        if whole and option.name not in ANY_NUMBER:
            error = refusal(lambda: ask(name, LABELS, PROBA, **{option.name: 10**9}))  # noqa: B023
            assert error is None or not RAW.search(str(error)), (option.name, error)


@every_entrance
def test_rows_in_another_order_are_refused_by_name(name):
    pd = pytest.importorskip("pandas")
    n = len(LABELS)
    if name.startswith("validation_measures"):  # which `ask` gives another outcome
        pytest.skip("it reads its sample as the others do")
    y = pd.Series(LABELS)
    proba = pd.DataFrame(PROBA)
    other = pd.Series(np.arange(n) // 4 + 1).sample(frac=1, random_state=0)
    frame = pd.DataFrame(PROBA).sample(frac=1, random_state=0)
    options = {option.name for option in options_of(name) if option.default is not option.empty}
    wrong = [("y", {})] + [
        (option, {option: frame if option == "compare" else other})
        for option in OF_SAMPLES
        if option in options
    ]
    for option, given in wrong:
        labels = y.sample(frac=1, random_state=0) if option == "y" else y
        error = refusal(lambda: ask(name, labels, proba, **given))  # noqa: B023
        assert error is not None, option
        assert "the same in another order" in str(error), (option, str(error))
        assert re.search(rf"\b{option}", str(error)), (option, str(error))


@every_entrance
def test_named_columns_may_be_in_any_order(name):
    pd = pytest.importorskip("pandas")
    takes_labels = "labels" in {option.name for option in options_of(name)}
    if not takes_labels or name.startswith("compare_calibration"):
        pytest.skip("it takes no labels, or second predictions without names")
    order = [2, 0, 1]
    frame = pd.DataFrame(PROBA, columns=range(C))[order]
    try:
        expected = ask(name, LABELS, frame.to_numpy(), labels=order)
    except ValueError:  # of what needs another argument
        expected = None
    found = ask(name, LABELS, frame) if expected is not None else None
    found, expected = content(found), content(expected)
    if name == "Sample":  # which tells the names
        assert found.pop("source") != expected.pop("source")
    assert found == expected
