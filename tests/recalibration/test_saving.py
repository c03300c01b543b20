"""Maps as JSON: bit-exact round trips, formulas that hold, and refusals of everything else."""

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.interpolate import BSpline
from scipy.special import expit, log_expit, log_softmax, logsumexp, softmax
from sklearn.exceptions import NotFittedError

from skcal import RecalibratedClassifierCV, Recalibrator, TemperatureScaling, recalibration
from skcal.recalibration import Identity, MatrixScaling, RecalibrationMap, Smoothed, VectorScaling
from skcal.recalibration.base import known_maps
from skcal.recalibration.features import COORDINATES

BY_NAME = {
    name: thing
    for name, thing in sorted(vars(recalibration).items())
    if isinstance(thing, type) and issubclass(thing, RecalibrationMap) and thing._formula
}
SCALAR = {name for name, thing in BY_NAME.items() if thing._of_single_probability}
MAPS = [(name, {}) for name in BY_NAME]
MAPS += [("VectorScaling", {"structured": True})]
MAPS += [
    ("MatrixScaling", {"structured": structured, "coordinates": coordinates})
    for structured in (False, True)
    for coordinates in COORDINATES
]
CASES = [(*case, d) for case in MAPS for d in (1, 2, 4)]


def fit(name, options, d, from_logits, rng, labels=None, unit=1):
    z = rng.normal(scale=1.5, size=(80, max(d, 2)))
    y = (softmax(z, axis=1).cumsum(axis=1) < rng.uniform(size=(80, 1))).sum(axis=1)
    y = np.minimum(y, z.shape[1] - 1)
    z = z[:, 1:] - z[:, :1] if d == 1 else z
    z = z * unit
    X = z if from_logits else (expit(z) if d == 1 else softmax(z, axis=1))
    y = y if labels is None else np.array(labels)[y]
    return getattr(recalibration, name)(from_logits=from_logits, **options).fit(X, y), X


@pytest.mark.filterwarnings("ignore:The frequency of events clearly falls")
@pytest.mark.filterwarnings("ignore:.* lacks the slope or the offset")
@pytest.mark.parametrize(("from_logits", "unit"), [(False, 1), (True, 1), (True, 300)])
@pytest.mark.parametrize(("name", "options", "d"), CASES)
def test_what_is_read_and_the_formula_give_the_prediction(name, options, d, from_logits, unit, rng):
    labels = ["c", "d"] if d == 1 else ["d", "c", "b", "a"]  # a single column is of the second
    fitted, X = fit(name, options, d, from_logits, rng, labels=labels, unit=unit)
    if unit > 1:
        X = X[:10]
    read = RecalibrationMap.from_json(fitted.to_json())
    assert type(read) is type(fitted)
    assert read.get_params() == fitted.get_params()
    assert_array_equal(read.predict_proba(X), fitted.predict_proba(X))
    assert_array_equal(read.predict(X), fitted.predict(X))
    assert type(fitted).from_json(fitted.to_json()).to_json() == fitted.to_json()
    told = json.loads(fitted.to_json())
    assert told["formula"]
    assert told["z"]
    found = evaluate(told, X)
    if found is None:
        found = [by_its_text(told, x[0] if d == 1 else x) for x in X]
    assert_allclose(found, fitted.predict_proba(X), atol=1e-9)


def evaluate(told, X):
    """The formula of a map from the object alone; None of formulas that are nearly Python."""
    par = {k: np.array(v) for k, v in told["parameters"].items()}
    if told["options"]["from_logits"]:
        z = X if X.shape[1] == 1 else log_softmax(X, axis=1)
    else:
        z = logarithm(X, told["probability_floor"])
        z = z - logarithm(1 - X, 2.0**-52) if X.shape[1] == 1 else z
    name = told["map"]
    if "estimators" in par:
        z = by_line(z, told["line"])
        z = np.transpose([z[:, k] - logsumexp(np.delete(z, k, 1), axis=1) for k in range(4)])
        q = [evaluate(one, z[:, [k]])[:, 1] for k, one in enumerate(par["estimators"])]
        return eval(told["formula"].partition(",")[0], {"q": np.array(q)}).T
    if name in SCALAR:
        z = by_line(z[:, -1] - (z[:, 0] if z.shape[1] == 2 else 0), told["line"])
        p, c = expit(z), par.get("coef")
        u = p + 1e-6 * (z - np.clip(z, -30, 30))
        if name == "IsotonicCalibration":
            c = np.interp(u, par["x_thresholds"], par["y_thresholds"])
        elif name == "VennAbers":
            p0 = np.array([par["lower"][par["scores"] <= v + 1e-12][-1] for v in z])
            p1 = np.array([par["upper"][par["scores"] >= v - 1e-12][0] for v in z])
            c = p1 / (1 - p0 + p1)
        elif name == "HistogramBinning":
            c = par["frequencies"][np.searchsorted(par["edges"][1:-1], u, side="left")]
        elif name == "BayesianCalibration":
            d = z - np.clip(z, par["logits"][0], par["logits"][-1])
            mapped = np.interp(z, par["logits"], par["mapped_logits"])
            c = expit(mapped + 0.001 * np.sign(d) * np.log1p(np.abs(d)))
        elif name == "PlattScaling":
            c = expit(par["slope"] * z + par["intercept"])
        elif name == "BetaCalibration":
            c = expit(z + c[0] * log_expit(z) - c[1] * log_expit(-z) + par["intercept"])
        elif name == "QuadraticScaling":
            c = expit(z / par["temperature"] + c[0] * z + c[1] * z**2 + par["intercept"])
        elif name == "SplineScaling":
            t, steps = par["knots"], np.arange(1, 4)
            t = np.r_[t[0] - steps[::-1] * (t[1] - t[0]), t, t[-1] + steps * (t[-1] - t[-2])]
            basis = BSpline.design_matrix(np.clip(p, par["knots"][0], par["knots"][-1]), t, 3)
            c = expit(z / par["temperature"] + basis @ c[:, 0] + par["intercept"])
        else:
            raise NotImplementedError(f"write the formula of {name} here")
        return np.column_stack([1 - c, c])
    if name == "EnsembleTemperatureScaling":
        z = np.hstack([0 * z, z]) if z.shape[1] == 1 else z
        parts = softmax(z / par["temperature"], axis=1), softmax(z, axis=1), 1 / z.shape[1]
        return sum(w * part for w, part in zip(par["weights"], parts, strict=True))
    return None


def logarithm(p, floor):
    return np.log(np.maximum(p, floor)) + 1e-7 * np.log(np.clip(p, 5e-324, floor) / floor)


def by_line(z, line):
    """Log-odds (n,), or log-probabilities (n, C), by the line of a map."""
    if line is None:
        return z
    w = z if z.ndim == 1 else z - z.mean(axis=1, keepdims=True)
    if z.ndim == 2 and z.shape[1] == 2:
        w = z[:, 1:] - z[:, :1]
    t = (w - line["centre"]) / line["spread"]
    far = np.sign(t) * (3 + 0.05 * np.log1p(np.maximum(np.abs(t) - 3, 0)))
    v = line["slope"] * np.where(np.abs(t) > 3, far, t) + line["offset"]
    if z.ndim == 1:
        return v
    return log_softmax(np.hstack([0 * v, v]) if v.shape[1] == 1 else v, axis=1)


def by_its_text(told, x):
    """Probabilities of a row by the texts of z and of the formula, which are nearly Python."""
    known = {"softmax": softmax, "log": np.log, "exp": np.exp, "sqrt": np.sqrt, "mean": np.mean}
    known |= {
        "max": np.maximum,
        "min": np.minimum,
        "sum": np.sum,
        "argmax": np.argmax,
        "σ": expit,
        "x": x,
    }
    known |= {"probability_floor": told["probability_floor"], "n_classes": len(told["classes"])}
    known |= {name: np.array(value) for name, value in told["parameters"].items()}

    def value(text):
        text = text.replace("^", "**").replace("⊙", "*").replace("(0, ", "np.append(0, ")
        return np.atleast_1d(eval(text, {"np": np, "__builtins__": {}}, known))

    z = value(told["z"])
    if told["line"]:
        single = told["n_features_in"] == 1
        z = (
            np.append(0, by_line(z[-1:], told["line"]))
            if single
            else by_line(z[None], told["line"])[0]
        )
    known["z"] = z
    formula, *where = (
        told["formula"].replace(" of the classes present, 0 of others", "").split(", f = ")
    )
    if where:
        features, p = where[0].split(", p = ")
        known["p"] = value(p)
        known["f"] = value(features)
    return value(formula)


def test_a_map_that_misses_classes_is_read(rng):
    X = rng.dirichlet(np.ones(4), 30)
    for y in (rng.choice([0, 2], 30), np.full(30, 3)):
        fitted = MatrixScaling().fit(X, y)
        read = MatrixScaling.from_json(fitted.to_json())
        assert_array_equal(read.predict_proba(X), fitted.predict_proba(X))


GOOD = json.loads(
    TemperatureScaling().fit([[0.7, 0.3], [0.4, 0.6], [0.6, 0.4]], [0, 1, 1]).to_json()
)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"map": "os.system"}, "map is 'os.system', which is none of"),
        ({"map": "PenalizedScaling"}, "which is none of"),
        ({"map": 3}, "map is missing or of another kind"),
        ({"format": 2}, "format is 2, and 1 can be read"),
        ({"format": True}, "format is True, and 1 can be read"),
        ({"options": {"__class__": 1}}, "'__class__', which is unknown"),
        ({"options": {"max_temperature": -1}}, "'max_temperature' parameter"),
        ({"options": []}, "options is missing or of another kind"),
        ({"parameters": {}}, "temperature is not an array of numbers"),
        ({"parameters": {"temperature": "1"}}, "temperature is not an array of numbers"),
        ({"parameters": {"temperature": "inf"}}, "temperature holds a number that is not possible"),
        ({"parameters": {"temperature": [[1.0], 2.0]}}, "temperature is not an array of numbers"),
        ({"parameters": {"temperature": [1.0, 2.0, 3.0]}}, "parameters do not fit together"),
        ({"parameters": {"temperature": float("nan")}}, "NaN is no number of JSON"),
        ({"parameters": {"temperature": None}}, "temperature is not an array of numbers"),
        ({"classes": [0]}, "classes is not one name or number a column, each once"),
        ({"classes": [0, 0]}, "classes is not one name or number a column, each once"),
        ({"classes": [[0], [1]]}, "classes is not one name or number a column"),
        ({"n_features_in": 10**9}, "n_features_in is 1000000000 for 2 classes"),
        ({"n_features_in": 1.5}, "n_features_in is 1.5, not a count"),
        ({"probability_floor": None}, "probability_floor is None, not a number"),
        ({"probability_floor": -1.0}, "probability_floor is -1.0, not a number"),
        ({"probability_floor": 10**400}, "probability_floor is 1"),
    ],
)
def test_what_is_no_map_is_refused(changed, message):
    with pytest.raises(ValueError, match=message) as raised:
        RecalibrationMap.from_json(json.dumps(GOOD | changed))
    assert "max_temperature" in message or str(raised.value).endswith("of a map returned.")


@pytest.mark.parametrize("text", ["", "[]", "{}", "{", None, b"\xff", "[" * 100_000])
def test_what_is_no_object_is_refused(text):
    with pytest.raises(ValueError, match=r"text is not|map is missing"):
        RecalibrationMap.from_json(text)


def test_a_class_reads_its_own_maps_alone():
    with pytest.raises(
        ValueError, match="map is 'TemperatureScaling', which is none of VectorScaling"
    ):
        VectorScaling.from_json(json.dumps(GOOD))


def test_maps_of_users_and_unfitted_ones_are_not_written():
    class Mine(TemperatureScaling):
        pass

    with pytest.raises(NotFittedError):
        TemperatureScaling().to_json()
    with pytest.raises(TypeError, match="Mine is no map of skcal"):
        Mine().fit([0.2, 0.7, 0.6], [0, 1, 0]).to_json()


def test_skops_stores_what_predicts_with_the_types_of_the_documentation(rng):
    skops = pytest.importorskip("skops.io")
    path = Path(__file__).parents[2] / "doc" / "skops_types.txt"
    listed, seen = path.read_text().split(), set()
    X = rng.dirichlet(np.ones(3), 60)
    y = (X.cumsum(axis=1) < rng.uniform(size=(60, 1))).sum(axis=1)
    maps = [known() for known in BY_NAME.values()] + [MatrixScaling(structured=True), Identity()]
    few = Recalibrator([TemperatureScaling(), VectorScaling()], cv=3, random_state=0)
    maps += [Smoothed(TemperatureScaling()), few, RecalibratedClassifierCV(recalibrator=few, cv=2)]
    for fitted in [one.fit(X, y) for one in maps]:
        stored = skops.dumps(fitted)
        types = skops.get_untrusted_types(data=stored)
        seen.update(types)
        assert set(types) <= set(listed)
        read = skops.loads(stored, trusted=types)
        assert_array_equal(read.predict_proba(X), fitted.predict_proba(X))
    assert seen == set(listed)


def test_files_name_maps_of_the_package_that_have_a_formula():
    class Own(TemperatureScaling):
        """A map of a user, which only its own ``from_json`` may know."""

    known = known_maps(RecalibrationMap)
    assert known["TemperatureScaling"] is TemperatureScaling
    assert {"Own", "RecalibrationMap"}.isdisjoint(known)
