"""Every public entrance of labels: one-hot rows are labels, and shares are taken or refused.

An entrance is what ``tests/test_public_surface.py`` finds with ``y_true`` or ``y`` of labels.
"""

import re
from importlib import import_module
from inspect import signature

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.dummy import DummyClassifier
from test_public_surface import surface

import skcal
from skcal.functions import BilinearFunction, Binning
from skcal.metrics import expected_calibration_error
from skcal.model_selection import FunctionCorrection
from skcal.recalibration import Identity, Mixture, RecalibrationMap, Smoothed, TemperatureScaling

RNG = np.random.default_rng(0)
N, C = 80, 3
PROBA = RNG.dirichlet(np.ones(C), N)
VOTES = np.array([RNG.multinomial(n, p) for n, p in zip(RNG.integers(1, 6, N), PROBA, strict=True)])
SHARES = VOTES / VOTES.sum(axis=1, keepdims=True)
LABELS = VOTES.argmax(axis=1)
QUICK = {"n_resamples": 19, "random_state": 0}
SECOND = PROBA[:, [1, 2, 0]]


class Predictions(DummyClassifier):
    """A classifier of three classes that passes on its X."""

    classes_ = np.arange(C)

    def predict_proba(self, X):
        """Return X."""
        return X


def entrances_of_labels():
    """Names of public callables that take labels, with their modules."""
    found = {}
    for module, name, line in surface():
        if line.endswith("as above"):
            continue
        if "." not in name:
            takes = re.search(r"\by_true\b|\bX, y\b", line)
        elif name.endswith(".from_predictions"):
            takes = "(y_true" in line
        elif name == "CalibrationMonitor.update":  # whose labels a table holds, too
            takes = True
        else:
            takes = re.search(r"\(self, .*(\by_true\b|\bX, y\b(?!=))", line)
        if takes:
            found[name] = module
    return found


pytestmark = pytest.mark.usefixtures("few_draws")
#: Other arguments and options of a call.
MORE = {
    "compare_calibration": ((SECOND,), {}),
    "segment_test": ((), QUICK | {"features": {"first": PROBA[:, 0]}, "min_samples": 5}),
    "bias_curve": ((), QUICK | {"feature": PROBA[:, 0]}),
    "equivalence_test": ((), {"limit": 0.1}),
    "bootstrap_interval": ((), QUICK),
    "shifted_calibration_error": ((), {"target_proba": PROBA, "n_resamples": 20}),
    "validation_measures": ((), QUICK),
    "calibration_report": ((), {"n_resamples": 19}),
    "ReliabilityDisplay": ((), {"n_resamples": 19}),
    "BinCountDisplay": ((), {"n_bins": [3], **QUICK}),
    "RecalibrationDisplay": ((SECOND,), {"n_resamples": 19}),
    "SegmentRecalibrator": ((), {"segments": {"first": PROBA[:, 0]}}),
}
ESTIMATORS = {
    "Smoothed": Smoothed(TemperatureScaling()),
    "Mixture": Mixture([Identity(), TemperatureScaling()], [0.5, 0.5]),
    "FunctionCorrection": FunctionCorrection(
        skcal.CalibrationErrorEstimator(Binning(n_bins=3), "canonical")
    ),
    "Recalibrator": skcal.Recalibrator([TemperatureScaling()], cv=2, random_state=0),
    "CalibrationErrorEstimator": skcal.CalibrationErrorEstimator(Binning(n_bins=3)),
    "CalibrationErrorSearchCV": skcal.CalibrationErrorSearchCV(
        [skcal.Zero(), Binning(n_bins=3)], cv=3, random_state=0
    ),
}
#: Whose classifiers take labels alone, so that one-hot rows are refused, too.
LABELS_ALONE = dict.fromkeys(
    ("RecalibratedClassifierCV", "SegmentRecalibrator"), "should be a 1d array"
)
#: What refuses shares, and what it recommends.
REFUSES = LABELS_ALONE | {
    "hosmer_lemeshow_test": "Use monte_carlo_test",
    "spiegelhalter_test": "Use monte_carlo_test",
    "shifted_calibration_error": "Pass a row for each vote",
    "validation_measures": "Pass a row for each vote",
    "BinCountDisplay": "Use ReliabilityDisplay",
    "CalibrationMonitor": "Pass one vote of each sample",
}


def owner_of(name, module):
    """The function or class that an entrance is, or is a method of."""
    return getattr(import_module(module), name.split(".")[0])


def takes_labels(thing):
    """Whether y is of labels: calibration-estimation functions take residuals."""
    return not (isinstance(thing, type) and issubclass(thing, BilinearFunction))


ENTRANCES = {
    name: module
    for name, module in entrances_of_labels().items()
    if takes_labels(thing := owner_of(name, module)) and thing is not RecalibrationMap
}


def ask(name, y, proba=PROBA, **changed):
    """Call an entrance with predictions and outcomes, and options of its own or changed ones."""
    owner, _, method = name.partition(".")
    thing = owner_of(name, ENTRANCES[name])
    if owner == "validation_measures" and proba is PROBA:
        proba, y = (
            PROBA[:, 0],
            (y[:, [1, 0]] + y[:, [2, 0]] * [1, 0] if y.ndim == 2 else 1 * (y == 0)),
        )
    more, options = MORE.get(owner, ((), {}))
    options = options | changed
    if owner == "bootstrap_interval":
        return thing(expected_calibration_error, y, proba, **options)
    if owner == "compare_risks":
        fitted = [
            skcal.CalibrationErrorEstimator(f).fit(SECOND, LABELS)
            for f in (skcal.Zero(), Binning())
        ]
        return thing(*fitted, proba, y, **options)
    if method == "from_estimator":
        return thing.from_estimator(Predictions(), proba, y, plot=False, **options)
    if method == "from_predictions":
        return thing.from_predictions(y, proba, *more, plot=False, **options)
    if thing is skcal.Sample:
        return thing(y, proba, **options)
    if not isinstance(thing, type):
        named = QUICK.keys() & set(signature(thing).parameters)
        return thing(y, proba, *more, **{key: QUICK[key] for key in named} | options)
    estimator = clone(ESTIMATORS[owner]) if owner in ESTIMATORS else thing()
    if method in ("fit", "update", "partial_fit"):
        of_labels = method == "partial_fit" or name == "CalibrationTable.update"
        arguments = (y, proba) if of_labels else (proba, y)
        return getattr(estimator, method)(*arguments, **options)
    if owner == "RecalibratedClassifierCV":
        pytest.skip("it is fitted to labels alone")
    return getattr(estimator.fit(SECOND, LABELS), method)(proba, y, **options)


def content(thing, depth=0):
    """All that a result holds, as plain values that compare."""
    if isinstance(thing, np.ndarray):
        return content(thing.tolist(), depth)
    if isinstance(thing, dict):
        return {str(k): content(v, depth) for k, v in thing.items() if "time" not in str(k)}
    if isinstance(thing, list | tuple):
        return [content(part, depth) for part in thing]
    if isinstance(thing, float) and thing != thing:
        return "NaN"
    if hasattr(thing, "__dict__") and depth < 8 and not callable(thing):
        return {"of": type(thing).__name__, **content(vars(thing), depth + 1)}
    return thing if isinstance(thing, str | int | float | bool | None) else repr(type(thing))


quiet = [
    pytest.mark.filterwarnings("ignore:The squared calibration error is estimated as"),
    pytest.mark.filterwarnings("ignore:Too few outcomes are uncertain"),
    pytest.mark.filterwarnings("ignore:.*n_resamples"),
]


def entrances(but=()):
    return pytest.mark.parametrize(
        "name", [pytest.param(n, marks=quiet) for n in ENTRANCES if n.split(".")[0] not in but]
    )


@entrances(but=LABELS_ALONE)
def test_one_hot_rows_are_labels_to_the_last_bit(name):
    assert content(ask(name, np.eye(C)[LABELS])) == content(ask(name, LABELS))


# What takes an estimator asks it and goes on as what takes predictions.
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=quiet) for n in ENTRANCES if not n.endswith(".from_estimator")]
)
def test_shares_and_votes_are_taken_or_refused_by_name(name):
    refusal = REFUSES.get(name.split(".")[0])
    for y in (SHARES, VOTES):
        if refusal is None:
            ask(name, y)
        else:
            with pytest.raises(ValueError, match=refusal):
                ask(name, y)


def test_the_surface_is_read():
    names = {name.split(".")[0] for name in ENTRANCES}
    assert {"monte_carlo_test", "Recalibrator", "ReliabilityDisplay", "calibration_report"} < names
    assert {*MORE, *ESTIMATORS, *REFUSES} <= names
    assert isinstance(Predictions(), BaseEstimator)
