"""Every public entrance of labels takes a Sample in place of them, or refuses it by name."""

import pickle
import re
from html import unescape
from inspect import isclass, signature

import numpy as np
import pytest
from sklearn.base import clone
from test_outcome_properties import (
    ENTRANCES,
    ESTIMATORS,
    MORE,
    Predictions,
    content,
    owner_of,
    quiet,
)

from skcal import Sample, calibration_report
from skcal.metrics import (
    expected_calibration_error,
    get_scorer,
    murphy_diagram,
    risk_coverage_curve,
)
from skcal.recalibration import TemperatureScaling
from skcal.sample import read_sample

pytestmark = [pytest.mark.usefixtures("few_draws"), *quiet]
RNG = np.random.default_rng(1)
N = 90
P = RNG.beta(1, 2, N)
ROWS = RNG.dirichlet(np.ones(3), N)
Y = (RNG.random(N) < P).astype(int)
LABELS = np.array([RNG.choice(3, p=row) for row in ROWS])
VOTES = np.array([RNG.multinomial(n, p) for n, p in zip(RNG.integers(1, 6, N), ROWS, strict=True)])
SEVERAL = (RNG.random((N, 3)) < ROWS).astype(int)
WEIGHT = np.where(np.arange(N) % 8 == 3, 0.0, RNG.uniform(0.5, 2, N))  # zeros in the middle
GROUPS = RNG.integers(0, 25, N)
FEATURE = RNG.normal(size=N)
TOGETHER = {"sample_weight": WEIGHT, "groups": GROUPS}
NAMED = {"pos_label": "no"}
#: Labels, predictions and how they are read.
CASES = {
    "one column, weights of 0 and groups": (Y, P, TOGETHER),
    "named events": (np.array(["yes", "no"])[Y], P, NAMED),
    "two columns, the first positive": (
        np.array(["yes", "no"])[Y],
        np.column_stack([P, 1 - P]),
        NAMED | {"labels": ["no", "yes"], "sample_weight": WEIGHT},
    ),
    "logits": (LABELS, np.log(ROWS) + 3, {"from_logits": True, "groups": GROUPS}),
    "class-wise": (LABELS, ROWS, TOGETHER | {"notion": "classwise"}),
    "votes": (VOTES, ROWS, {"sample_weight": WEIGHT}),
    "multi-label": (SEVERAL, ROWS, TOGETHER | {"notion": "multi-label"}),
    "precision": (SEVERAL, ROWS, TOGETHER | {"notion": "precision-at-2"}),
    "rounded": (Y, np.round(P, 1), {"resolution": 0.1}),
}
#: What has y_true, and takes no Sample.
REFUSED = {}
#: What a second model is called.
SECOND = {
    "compare_calibration": "y_proba_b",
    "RecalibrationDisplay.from_predictions": "y_after",
    "murphy_diagram": "compare",
}
FURTHER = {"segment_test": "features", "bias_curve": "feature"}
#: Whose limits or law are those of independent samples, and which therefore refuse groups.
INDEPENDENT = {
    "calibration_bins",
    "hosmer_lemeshow_test",
    "spiegelhalter_test",
    "BinCountDisplay.from_predictions",
}
TAKEN = [
    name
    for name, module in ENTRANCES.items()
    if name not in REFUSED
    and ("." not in name or name.endswith(".from_predictions"))
    and name not in ("compare_risks", "Sample")
]


def function_of(name):
    thing = owner_of(name, ENTRANCES[name])
    return getattr(thing, name.split(".")[1]) if "." in name else thing


def call(name, y, proba, second, **options):
    """What a function makes of arrays, or of a Sample and None, and of further arguments."""
    function = function_of(name)
    takes = signature(function).parameters
    options |= MORE.get(name.split(".")[0], ((), {}))[1]
    quick = {"n_resamples": 19, "random_state": 0, "plot": False}
    options |= {key: value for key, value in quick.items() if key in takes}
    if name in FURTHER:
        features = FEATURE if name == "bias_curve" else {"first": FEATURE}
        options |= {FURTHER[name]: features}
    if name == "shifted_calibration_error":
        options |= {"target_proba": second, "n_resamples": 20}
    given = (y,) if proba is None else (y, proba)
    if name == "bootstrap_interval":
        given = (expected_calibration_error, *given)
    if name == "murphy_diagram":
        options["compare"] = second
    elif name in SECOND:
        given = (*given, second)
    try:
        return content(function(*given, **options))
    except ValueError as error:
        return f"{type(error).__name__}: {error}"


def of_arrays(name, case):
    y, proba, reading = CASES[case]
    takes = signature(function_of(name)).parameters
    asked = {
        key: value
        for key, value in reading.items()
        if (key in takes and not (key == "notion" and takes[key].default != "auto"))
        or (name == "bootstrap_interval" and key in ("notion", "pos_label", "from_logits"))
    }
    return call(name, y, proba, second_of(case), **asked)


def second_of(case):
    _, proba, reading = CASES[case]
    if reading.get("from_logits"):
        return proba * 0.7
    if case == "rounded":
        return np.round(proba**1.4, 1)
    if reading.get("notion") in ("multi-label", "precision-at-2") or proba.ndim == 1:
        return proba**1.4
    return 0.7 * proba + 0.3 / proba.shape[1]


def of_sample(name, case):
    y, proba, reading = CASES[case]
    second = second_of(case)
    if name in SECOND:
        second = Sample(y, second, **reading)
    return call(name, Sample(y, proba, **reading), None, second)


def test_the_list_is_complete():
    for name in TAKEN:
        parameters = list(signature(function_of(name)).parameters.values())
        place = [parameter.name for parameter in parameters].index("y_true")
        after = 1 if name == "RecalibrationDisplay.from_predictions" else 0
        after += name == "compare_calibration"
        for one in parameters[place + 1 + after :]:
            needed = one.kind is one.POSITIONAL_OR_KEYWORD and one.default is one.empty
            assert not needed, name
    assert {*REFUSED} < {*ENTRANCES}
    assert len(TAKEN) > 40


UNDRAWN = ("multi-label", "precision")  # of which some figures are none
REPORTED = ("one column, weights of 0 and groups", "logits", "multi-label", "precision")
#: Which take seconds, so that the others, with the same reader, answer for them in other cases.
DEAR = ("calibration_report", "refinement_loss", "bias_curve", "cross_fitted_calibration_error")


@pytest.mark.parametrize("name", TAKEN)
@pytest.mark.filterwarnings("ignore:groups holds 2")  # of bootstrap_interval
def test_a_sample_answers_as_the_arrays_that_it_was_read_from(name):
    function, answers = function_of(name), 0
    takes = signature(function).parameters
    for case, (_, _, reading) in CASES.items():
        if name in DEAR and case not in REPORTED:
            continue
        found = of_sample(name, case)
        if name in INDEPENDENT and "groups" in reading:
            assert isinstance(found, str)
            continue
        if name.startswith("RecalibrationDisplay") and (
            case in UNDRAWN or "from_logits" in reading
        ):
            continue  # of arrays y_after holds probabilities, whose rows sum to 1
        if name == "validation_measures" and reading.get("notion"):
            assert "notion" in found
            continue
        if name.startswith("SimplexDisplay") and (case in UNDRAWN or "pos_label" in reading):
            continue
        if "resolution" in reading and "resolution" not in takes:  # whose verdict is another
            continue
        expected = of_arrays(name, case)
        if name == "bootstrap_interval" and case == "logits":  # sums of rows in another order
            drawn = found.pop("distribution")
            np.testing.assert_allclose(drawn, expected.pop("distribution"), rtol=1e-14)
        assert found == expected, case
        answers += not isinstance(found, str)
    assert answers > 0


@pytest.mark.parametrize("name", TAKEN)
def test_what_was_read_is_refused_beside_a_sample_and_a_lack_is_named(name):
    function = function_of(name)
    takes = list(signature(function).parameters)
    sample, other = Sample(Y, P), Sample(Y, P**1.4)
    given = {"sample_weight": WEIGHT, "groups": GROUPS, "labels": [0, 1], "pos_label": 1}
    given |= {"from_logits": True, "resolution": 0.1}
    for option, value in given.items():
        if option in takes:
            second = other if name in SECOND else P
            found = call(name, sample, None, second, **{option: value})
            assert re.search(rf"InputError: {option} .*beside a Sample", str(found)), option
    second = other if name in SECOND and name != "murphy_diagram" else P
    if name not in SECOND:
        assert "y_proba is given beside a Sample" in call(name, sample, P, P)
        assert "y_proba is missing" in call(name, Y, None, P)
    else:
        assert re.search(
            r"(compare|y_proba_a|y_before).* beside a Sample", call(name, sample, None, P)
        )
    if "notion" in takes and not name.startswith("SimplexDisplay"):
        asked = {"notion": "multi-label"}
        read = Sample(SEVERAL, ROWS, notion="precision-at-2")
        pair = Sample(SEVERAL, ROWS**1.4, notion="precision-at-2") if name in SECOND else ROWS
        assert "notion is 'multi-label'" in str(call(name, read, None, pair, **asked))


@pytest.mark.parametrize("name", FURTHER)
def test_what_stands_beside_a_sample_is_missed_by_name(name):
    with pytest.raises(ValueError, match=f"^{FURTHER[name]} is missing"):
        function_of(name)(Sample(Y, P))


def samples_of_two(**changes):
    given = {"y": Y, "p": P, "w": WEIGHT, "g": GROUPS} | changes
    return Sample(given["y"], given["p"], sample_weight=given["w"], groups=given["g"])


def change(array, row, value):
    array = array.copy()
    array[row] = value
    return array


@pytest.mark.parametrize("name", [*SECOND, "calibration_report"])
def test_two_samples_are_pairs_of_the_same_outcomes_weights_and_groups(name):
    function = function_of(name)

    def ask(first, second):
        if name in ("murphy_diagram", "calibration_report"):
            return function(first, compare=second)
        return function(first, second, **{"plot": False} if "Display" in name else {})

    first = samples_of_two()
    wrong = {
        "outcome": samples_of_two(y=change(Y, 7, 1 - Y[7])),
        "weight": samples_of_two(w=change(WEIGHT, 7, 3.0)),
        "group": samples_of_two(g=change(GROUPS, N - 1, 99)),
    }
    for what, second in wrong.items():
        row = N - 1 if what == "group" else 7
        with pytest.raises(ValueError, match=f"row {row} has another {what} than the first"):
            ask(first, second)
    with pytest.raises(ValueError, match=r"has shape .* Pass the same classes"):
        ask(first, Sample(LABELS, ROWS))
    with pytest.raises(ValueError, match="is a ndarray beside a Sample"):
        ask(first, P)
    names = np.array([f"centre {k}" for k in range(25)])
    renamed = samples_of_two(p=P**1.2, g=names[(GROUPS + 7) % 25])  # the same groups
    if name == "compare_calibration":
        assert ask(first, renamed).pvalue > 0


# What takes no Sample


def test_estimators_refuse_a_sample_by_name():
    sample = Sample(LABELS, ROWS)
    for name, module in ENTRANCES.items():
        owner, _, method = name.partition(".")
        if not method or method in ("from_predictions", "from_cv_results"):
            continue
        thing = owner_of(name, module)
        if method == "from_estimator":
            with pytest.raises((ValueError, TypeError), match=r"\by\b.*Sample"):
                thing.from_estimator(Predictions(), ROWS, sample, plot=False)
            continue
        estimator = clone(ESTIMATORS[owner]) if owner in ESTIMATORS else thing()
        if method not in ("fit", "update", "partial_fit"):
            continue
        more = MORE.get(owner, ((), {}))[1]
        of_labels = method == "partial_fit" or owner == "CalibrationTable"
        arguments = (sample, ROWS) if of_labels else (ROWS, sample)
        word = "y_true" if of_labels else "y"
        with pytest.raises((ValueError, TypeError), match=rf"\b{word}\b.*Sample"):
            getattr(estimator, method)(*arguments, **more)


def test_options_and_scorers_refuse_a_sample_by_name():
    sample = Sample(Y, P)
    bootstrap = function_of("bootstrap_interval")
    with pytest.raises(ValueError, match=r"edges.*Sample"):
        bootstrap(expected_calibration_error, Y, P, edges=sample)
    monte_carlo = function_of("monte_carlo_test")
    with pytest.raises(ValueError, match=r"edges.*Sample"):
        monte_carlo(Y, P, edges=sample)
    with pytest.raises((ValueError, TypeError), match=r"y_true.*Sample"):
        get_scorer("neg_expected_calibration_error")(Predictions().fit(ROWS, LABELS), ROWS, sample)
    with pytest.raises((ValueError, TypeError), match=r"correct.*Sample"):
        risk_coverage_curve(sample, P)
    with pytest.raises((ValueError, TypeError), match=r"Sample"):
        np.asarray(sample)
    with pytest.raises(ValueError, match=r"compare: a Sample"):
        murphy_diagram(Y, P, compare=sample)
    with pytest.raises(ValueError, match=r"Sample"):
        TemperatureScaling().fit(sample, Y)
    assert isclass(Sample)


# How it was read


def facts_of(y, proba, reading):
    """What was decided for the user, each as words that must be said."""
    counted = reading.get("sample_weight", np.ones(N)) > 0
    weight = reading.get("sample_weight", np.ones(N))[counted]
    y, proba, several = y[counted], proba[counted], reading.get("notion") is not None
    yield f"{len(y)} samples"
    if len(y) < N:
        yield f"{N - len(y)} more of weight 0"
    if "groups" in reading:
        yield f"in {len(set(reading['groups'][counted]))} groups"
    if np.ptp(weight) > 0:
        yield f"worth {weight.sum() ** 2 / (weight**2).sum():.0f} samples"
    if reading.get("from_logits"):
        yield "from logits"
    if (np.abs(proba * 10 - np.rint(proba * 10)) < 1e-9).all():
        yield "in steps of 0.1"
    names = reading.get("columns", [])
    if y.ndim == 2 and not several:
        yield f"{y.sum()} votes"
    if proba.ndim == 2 and proba.shape[1] > 2:
        yield f"columns are the labels {', '.join(map(str, range(proba.shape[1])))}"
        if several:
            yield {"classwise": "each class by itself"}.get(
                reading["notion"], "labels, any of which may hold"
            )
        else:
            yield "most probable class is right"
        return
    event = reading.get("pos_label", 1)
    n = np.count_nonzero(y == event)
    share = f"{100 * weight @ (y == event) / weight.sum():.3g} %"
    yield f"event is label {event} ({n} of {len(y)}, {share}"
    if proba.ndim == 2:
        place = reading["labels"].index(event)
        yield f"(column {place + 1} of 2{''.join(f', {name}' for name in names[place:][:1])})"


@pytest.mark.parametrize("case", CASES)
def test_whatever_was_decided_is_said(case):
    y, proba, reading = CASES[case]
    for resolution in ("auto", None):
        options = {"resolution": resolution} if "resolution" not in reading else {}
        sample = Sample(y, proba, **reading, **options)
        said = sample.read_as
        for fact in facts_of(y, proba, reading):
            if fact != "in steps of 0.1" or resolution == "auto" or not options:
                assert fact in said, (fact, said)
        assert ("steps" in said) == ("in steps of 0.1" in [*facts_of(y, proba, reading)])
        assert " ".join(str(sample).split()) == said
        assert sample.counted.read_as == said
        assert pickle.loads(pickle.dumps(sample)).read_as == said
        assert len(said) < 420


def test_names_of_columns_absent_labels_and_notes_are_said():
    pd = pytest.importorskip("pandas")
    assert "probability (column risk)" in Sample(Y, pd.Series(P, name="risk")).read_as
    frame = pd.DataFrame({"sick": P, "well": 1 - P})
    named = Sample(np.array(["well", "sick"])[Y], frame, pos_label="sick").read_as
    assert "label sick" in named
    assert "(column sick)" in named
    absent = Sample(np.where(LABELS == 2, 0, LABELS), ROWS, labels=[0, 1, 2]).read_as
    assert "(no sample has 2)" in absent
    many = Sample(LABELS, np.hstack([ROWS / 2, ROWS / 2]), labels=range(6)).read_as
    assert "(no sample has 3, 4, 5)" in many
    told = read_sample(Y, P, columns=["p"], notes=["values were divided by 100"])
    assert told.read_as.endswith("(column p). Values were divided by 100.")


def test_report_and_json_show_how_samples_were_read():
    for case in REPORTED:
        y, proba, reading = CASES[case]
        sample = Sample(y, proba, **reading)
        report = calibration_report(sample, n_resamples=19, random_state=0)
        if case != "precision":
            assert report.read_as == sample.read_as
        for shown in (str(report), report.summary("full")):
            assert report.read_as in " ".join(shown.split())
        assert report.to_dict()["read_as"] == report.read_as
        assert report.read_as in unescape(report._repr_html_()).replace("\xa0", " ")
