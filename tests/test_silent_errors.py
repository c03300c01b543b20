"""Calls that would be answered, and wrongly: each is refused, or warned of, with the remedy."""

import re
import warnings

import numpy as np
import pytest
from scipy import sparse

from skcal import (
    Binning,
    CalibrationErrorEstimator,
    CalibrationErrorSearchCV,
    CalibrationTable,
    Recalibrator,
    Zero,
    calibration_report,
)
from skcal.__main__ import main
from skcal._validation import InputError
from skcal.displays import ReliabilityDisplay
from skcal.hypothesis_tests import (
    calibration_error_interval,
    calibration_test,
    cox_test,
    equivalence_test,
)
from skcal.metrics import (
    bootstrap_interval,
    expected_calibration_error,
    score_decomposition,
)
from skcal.monitoring import CalibrationMonitor
from skcal.recalibration import TemperatureScaling, VennAbers

RNG = np.random.default_rng(0)
P = RNG.beta(2, 2, 200)
Y = (RNG.uniform(size=200) < P).astype(int)
TWO = np.column_stack([1 - P, P])
THREE = RNG.dirichlet(np.ones(3), 200)
CLASS = (THREE.cumsum(axis=1) < RNG.uniform(size=(200, 1))).sum(axis=1)
FEW = [(Zero(), {}), (Binning(3), {})]

pytestmark = pytest.mark.usefixtures("few_draws")

# Of (labels, predictions), each with what it calls them.
FUNCTIONS = {
    "metric": expected_calibration_error,
    "interval": calibration_error_interval,
    "bootstrap": lambda y, p: bootstrap_interval(expected_calibration_error, y, p, n_resamples=9),
    "decomposition": score_decomposition,
    "test": lambda y, p: calibration_test(y, p, n_resamples=19, random_state=0),
    "cox": cox_test,
    "equivalence": lambda y, p: equivalence_test(y, p, limit=0.1),
    "report": lambda y, p: calibration_report(y, p, n_resamples=19),
    "display": lambda y, p: ReliabilityDisplay.from_predictions(y, p, plot=False),
    "chunks": lambda y, p: CalibrationTable().update(y, p),
}
ESTIMATORS = {
    "search": lambda y, p: CalibrationErrorSearchCV(FEW, cv=3, random_state=0).fit(p, y),
    "estimator": lambda y, p: CalibrationErrorEstimator(Binning(3)).fit(p, y),
    "recalibrator": lambda y, p: Recalibrator(cv=2, random_state=0).fit(p, y),
    "temperature": lambda y, p: TemperatureScaling().fit(p, y),
    "venn-abers": lambda y, p: VennAbers().fit(p, y),
    "monitor": lambda y, p: CalibrationMonitor().update(p, y),
}
NAMED = [
    *((call, "y_true", "y_proba") for call in FUNCTIONS.values()),
    *((call, "y", "X") for call in ESTIMATORS.values()),
]
IDS = [*FUNCTIONS, *ESTIMATORS]
every_call = pytest.mark.parametrize(("call", "y_name", "p_name"), NAMED, ids=IDS)


@every_call
def test_swapped_arguments_are_refused_by_name(call, y_name, p_name):
    message = (
        rf"^{y_name} row 0, column 0 is 0\.\d+, a fraction, while all predictions in {p_name} are "
        rf"0 or 1\. Are the arguments swapped\? Pass labels as {y_name} and .* as {p_name}"
    )
    with pytest.raises(ValueError, match=message):
        call(TWO, Y)
    with pytest.raises(ValueError, match=message):  # an array of one-hot labels, too
        call(TWO, np.eye(2)[Y])
    with pytest.raises(ValueError, match="swapped") as caught:
        call(P, Y)
    assert "shares" not in str(caught.value)
    with pytest.raises(ValueError, match=r"swapped|class predictions|continuous"):
        call(THREE, CLASS)


@pytest.mark.parametrize("missing", [float("nan"), None])
@pytest.mark.parametrize("kind", [list, tuple])
def test_missing_texts_of_a_list_are_no_text(kind, missing):
    words = ["no", "yes"]
    labels = kind([missing, *(words[label] for label in Y[1:])])
    with pytest.raises(ValueError, match="row 0 is missing"):
        expected_calibration_error(labels, P, labels=words)
    names = kind([missing, *(f"a{k // 3}" for k in range(1, len(P)))])
    with pytest.raises(ValueError, match="groups row 0 is missing"):
        calibration_error_interval(Y, P, groups=names)


def test_one_hot_labels_may_be_sparse():
    hot = np.eye(2)[Y]
    found = expected_calibration_error(sparse.csr_matrix(hot), TWO)
    assert found == expected_calibration_error(hot, TWO)


def said(call, y, p):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call(y, p)
    return [str(one.message) for one in caught if str(one.message).startswith("All predictions")]


@every_call
def test_classes_in_place_of_probabilities_are_warned_of(call, y_name, p_name):
    if call is FUNCTIONS["cox"]:  # which refuses them
        return
    hard = (P > 0.5).astype(int)
    forms = [np.eye(2)[hard], hard.astype(float), hard]
    for predictions in forms[: 1 if call is FUNCTIONS["report"] else 3]:
        text = said(call, Y, predictions)[0]
        assert f"in {p_name} are 0 or 1" in text
        assert "predict_proba" in text


def test_nearly_certain_and_few_predictions_are_no_classes():
    hard = (P > 0.5).astype(float)
    for k in (0, 100, 199):
        changed = hard.copy()
        changed[k] = 0.5
        assert said(expected_calibration_error, Y, changed) == []
    assert said(expected_calibration_error, Y[:19], hard[:19]) == []
    assert len(said(expected_calibration_error, Y[:20], hard[:20])) == 1


def test_one_dimensional_confidences_are_binary():
    message = r"^notion is 'confidence', which needs a column for each class.*notion='binary'"
    for call in (
        lambda: expected_calibration_error(Y, P, notion="confidence"),
        lambda: calibration_test(Y, P, notion="confidence", n_resamples=19, random_state=0),
        lambda: calibration_report(Y, P, notion="confidence"),
        lambda: ReliabilityDisplay.from_predictions(Y, P, notion="confidence", plot=False),
        lambda: CalibrationErrorSearchCV(FEW, notion="confidence").fit(P, Y),
        lambda: CalibrationTable("confidence").update(Y, P),
        lambda: CalibrationMonitor(notion="confidence").update(P, Y),
    ):
        with pytest.raises(ValueError, match=message):
            call()
    # The remedies that the message names.
    expected = expected_calibration_error(P.round() == Y, TWO.max(axis=1), notion="binary")
    found = expected_calibration_error(Y, TWO, notion="confidence")
    assert found == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("mark", [-100, 255])
@every_call
def test_labels_that_mark_ignored_samples_are_refused_and_the_remedy_works(
    call, y_name, p_name, mark
):
    y = np.where(np.arange(200) % 9 == 4, mark, CLASS)
    y_of_two = np.where(np.arange(200) % 9 == 4, mark, Y)
    absent = np.where(CLASS == 2, mark, CLASS)  # three classes and three columns, but not these
    for labels, predictions in ((y, THREE), (y_of_two, TWO), (y_of_two, P), (absent, THREE)):
        with pytest.raises(ValueError, match=rf"^{y_name} row \d+ is {mark}, which") as caught:
            call(labels, predictions)
        remedy = re.search(r"(keep = .*?), then pass (\S+) and (\S+)\. ", str(caught.value))
        names = {"numpy": np, y_name: labels, p_name: predictions}
        exec(remedy[1], names)
        kept, rows = eval(remedy[2], names), eval(remedy[3], names)
        assert (kept == labels[labels != mark]).all()
        assert len(kept) == len(rows) < 200
        if predictions is P and call in FUNCTIONS.values():
            call(kept, rows)


def test_a_label_that_is_none_of_those_given_may_mark_ignored_samples():
    y = np.where(np.arange(200) % 9 == 4, -1, CLASS)
    remedy = r"If -1 marks samples to ignore, drop them: keep = numpy.asarray\(y_true\) != -1"
    for labels in (None, range(3)):
        with pytest.raises(InputError, match=remedy):
            expected_calibration_error(y, THREE, labels=labels)
    assert expected_calibration_error(CLASS - 1, THREE) == expected_calibration_error(CLASS, THREE)
    shifted = np.where(CLASS == 2, 255, CLASS)  # which may be a class
    found = expected_calibration_error(shifted, THREE, labels=[0, 1, 255])
    assert found == expected_calibration_error(CLASS, THREE)


@pytest.mark.parametrize("kind", ["numpy", "torch", "list", "array_api_strict"])
def test_predictions_for_pixels_and_words_are_told_how_to_be_rows(kind):
    images = THREE.reshape(2, 10, 10, 3)
    cases = {
        "images": (images.transpose(0, 3, 1, 2), CLASS.reshape(2, 10, 10)),
        "words": (THREE.reshape(20, 10, 3), CLASS.reshape(20, 10)),
        "channels first": (THREE.reshape(20, 10, 3).transpose(0, 2, 1), CLASS.reshape(20, 10)),
    }
    expected = expected_calibration_error(CLASS, THREE)
    for proba, y in cases.values():
        y_proba, y_true = proba, y
        if kind == "torch":
            torch = pytest.importorskip("torch")
            y_proba, y_true = torch.asarray(proba.copy()), torch.asarray(y.copy())
        if kind == "list":
            y_proba, y_true = proba.tolist(), y.tolist()
        if kind == "array_api_strict":
            strict = pytest.importorskip("array_api_strict")
            y_proba, y_true = strict.asarray(proba.copy()), strict.asarray(y.copy())
        with pytest.raises(InputError, match=rf"^y_proba has {y.ndim + 1} dimensions") as caught:
            expected_calibration_error(y_true, y_proba)
        remedy = re.search(
            r"pass (.*?), and the labels by (ravel\(\)|numpy.ravel)\.", str(caught.value)
        )
        rows = eval(remedy[1], {"numpy": np, "y_proba": y_proba})
        flat = y_true.ravel() if remedy[2] == "ravel()" else np.ravel(y_true)
        assert expected_calibration_error(flat, rows) == expected
        with pytest.raises(InputError, match=r"Pass y_true\.ravel\(\)"):
            expected_calibration_error(y_true, rows)


def test_the_command_line_warns_of_classes_and_refuses_marks(tmp_path, capsys):
    lines = [f"{y},{int(p > 0.5)}" for y, p in zip(Y, P, strict=True)]
    (tmp_path / "hard.csv").write_text("\n".join(["label,p", *lines]))
    assert main(["evaluate", str(tmp_path / "hard.csv")]) == 0
    assert "All predictions are 0 or 1, as predicted classes are" in "".join(capsys.readouterr())
    lines = [f"{-100 if k % 9 == 4 else y},{p}" for k, (y, p) in enumerate(zip(Y, P, strict=True))]
    (tmp_path / "marks.csv").write_text("\n".join(["label,p", *lines]))
    assert main(["evaluate", str(tmp_path / "marks.csv")]) == 2
    assert "-100" in capsys.readouterr().err


def test_logits_that_look_like_probabilities_are_warned_of():
    with pytest.warns(UserWarning, match="All logits in y_proba are from 0 to 1.*do not pass"):
        expected_calibration_error(Y, P, from_logits=True)
    with pytest.raises(InputError, match=r"^from_logits is 'yes'\. Pass True or False"):
        expected_calibration_error(Y, P, from_logits="yes")
    expected_calibration_error(Y, 4 * P - 2, from_logits=True)


def test_maps_read_what_metrics_read():
    rows = THREE / 2
    for call in (expected_calibration_error, lambda y, p: TemperatureScaling().fit(p, y)):
        with pytest.raises(InputError, match=r"row 0 sums to 0\.5, not 1"):
            call(CLASS, rows)
        with pytest.raises(InputError, match=r"row 0, column 0 holds '0\.\d+', not a number"):
            call(CLASS, THREE.astype(str))
