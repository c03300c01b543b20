"""Advice of functions, followed to the letter, gives the right number."""

import ast
import re
import sys
import warnings
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from advice import CASES, FOLLOWED, OF_FUNCTIONS, collected, matches, not_followed
from scipy.special import expit, softmax

from skcal import (
    Binning,
    CalibrationErrorEstimator,
    Recalibrator,
    datasets,
    hypothesis_tests,
    metrics,
    report,
)
from skcal._sklearn_compat import refuse_unused
from skcal._validation import InputError
from skcal.displays import ReliabilityDisplay
from skcal.hypothesis_tests import calibration_test
from skcal.metrics import calibration_error, expected_calibration_error
from skcal.recalibration import PlattScaling, TemperatureScaling
from skcal.report import views

N = 200
RNG = np.random.default_rng(0)
P = RNG.uniform(0.02, 0.98, (N, 3))
Y = (RNG.uniform(size=P.shape) < P).astype(int)
FOREST = [np.column_stack([1 - p, p]) for p in P.T]


def told(function, *args, **kwargs):
    with pytest.raises(InputError) as caught:
        function(*args, **kwargs)
    return str(caught.value)


@pytest.mark.parametrize(
    ("function", "of_labels"), [(expected_calibration_error, np.sum), (calibration_error, np.mean)]
)
@pytest.mark.parametrize("proba", [FOREST, P], ids=["forest", "columns"])
def test_several_labels_are_read_as_the_message_says(function, of_labels, proba):
    message = told(function, Y, proba)
    assert "notion='multi-label'" in message
    assert "reshape" not in message
    followed = function(Y, proba, notion="multi-label")
    k, each = 1, [function(Y[:, k], P[:, k]) for k in range(3)]
    pooled = function is calibration_error  # whose labels lend each other strength
    assert followed == pytest.approx(of_labels(each), rel=0.4 if pooled else 1e-9)
    place = re.search(r"one label at a time[:,] (\S+ k\]) and ([^.]*\])", message)
    names = {"y_true": Y, "y_proba": proba, "k": k}
    one = [eval(text, names) for text in place.groups()]
    assert function(*one) == each[k]


@pytest.mark.parametrize("estimator", [TemperatureScaling(), Recalibrator(random_state=0)])
@pytest.mark.parametrize("proba", [FOREST, P], ids=["forest", "columns"])
def test_maps_of_several_labels_are_fitted_as_the_message_says(estimator, proba):
    message = told(estimator.fit, proba, Y)
    place = re.search(r"Fit a map for each label, to (X\S+ [k1]\]) and (\S+ k\])\.$", message)
    X, y = (eval(text, {"X": proba, "y": Y, "k": 2}) for text in place.groups())
    np.testing.assert_array_equal(X, P[:, 2])
    np.testing.assert_array_equal(y, Y[:, 2])


def test_a_list_of_texts_of_words_is_joined_as_the_message_says():
    texts = [FOREST[0][:80], FOREST[0][80:]]
    labels = [Y[:80, 0], Y[80:, 0]]
    message = told(expected_calibration_error, np.concatenate(labels), texts)
    assert "pass numpy.concatenate(y_proba) and the labels alike" in message
    followed = expected_calibration_error(np.concatenate(labels), np.concatenate(texts))
    assert followed == expected_calibration_error(Y[:, 0], FOREST[0])


@pytest.mark.parametrize("n_classes", [10, 11, 12])
def test_digits_as_texts_warn_where_numbers_have_another_order(n_classes):
    rng = np.random.default_rng(1)
    proba = softmax(2 * rng.normal(size=(500, n_classes)), axis=1)
    y = (proba.cumsum(axis=1) > rng.random((500, 1))).argmax(axis=1)
    right = expected_calibration_error(y, proba)
    texts = y.astype(str)
    if n_classes <= 10:
        assert expected_calibration_error(texts, proba) == right
        return
    with pytest.warns(UserWarning, match=r"pass the labels as integers, numpy.asarray\(y_true\)"):
        expected_calibration_error(texts, proba)
    assert expected_calibration_error(np.asarray(texts).astype(int), proba) == right
    with pytest.warns(UserWarning, match=r"pass the labels as integers, numpy.asarray\(y\)"):
        TemperatureScaling().fit(proba, texts)
    by_name = np.argsort(np.arange(n_classes).astype(str))
    with pytest.warns(UserWarning, match="order of texts"):  # which is right here
        assert expected_calibration_error(texts, proba[:, by_name]) == pytest.approx(right)


def test_log_probabilities_are_read_as_the_message_says():
    p, y = P[:, 0], Y[:, 0]
    message = told(calibration_test, y, np.log(p))
    assert "of log-probabilities pass numpy.exp(y_proba)" in message
    right = calibration_test(y, p).pvalue
    assert calibration_test(y, np.exp(np.log(p))).pvalue == pytest.approx(right, rel=1e-6)
    rare = np.minimum(-0.1, np.log(p))
    message = told(calibration_error, y, rare)
    assert "of log-odds scipy.special.expit(y_proba)" in message
    assert calibration_error(y, expit(rare)) >= 0
    with pytest.warns(UserWarning, match=r"pass numpy.exp\(X\) without from_logits"):
        CalibrationErrorEstimator(Binning(), from_logits=True).fit(np.log(p), y)


@pytest.mark.parametrize("ulps", [1, 4])
def test_half_precision_above_one_by_rounding_is_one(ulps):
    p = P[:, 0].astype(np.float16)
    p[0] = np.float16(1 + ulps * 2.0**-10)
    expected = p.astype(np.float64).clip(0, 1)
    assert calibration_error(Y[:, 0], p) == pytest.approx(calibration_error(Y[:, 0], expected))
    p[0] = np.float16(1.02)
    assert "not a probability" in told(calibration_error, Y[:, 0], p)


def test_the_choice_among_maps_takes_half_precision():
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.full(20, 0.5), 300)
    y = (proba.cumsum(axis=1) > rng.random((300, 1))).argmax(axis=1)
    half = proba.astype(np.float16)
    fitted = Recalibrator([TemperatureScaling()], random_state=0).fit(half, y)
    exact = Recalibrator([TemperatureScaling()], random_state=0).fit(proba, y)
    np.testing.assert_allclose(fitted.predict_proba(half), exact.predict_proba(proba), atol=5e-3)


@pytest.mark.parametrize("text", OF_FUNCTIONS)
def test_advice_of_functions_is_followed(text):
    call, then, right = OF_FUNCTIONS[text]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            call()
        except (ValueError, TypeError, AttributeError) as error:
            message = f"{error} {error.__cause__ or ''}"
        else:
            message = " ".join(str(warning.message) for warning in caught)
    assert matches(text, message)
    expected = right() if callable(right) else right
    np.testing.assert_allclose(then(), expected, rtol=1e-9)


def kernel(X, Z):
    return np.minimum(X, Z.T)


#: A value of each option that is not its default, and a value of others that leaves it unused.
GIVEN = {"n_bins": 7, "strategy": "quantile", "min_samples": 5, "n_pairs": 50, "degree": 2}
GIVEN |= {"bandwidth": 0.5, "block_size": 4, "n_locations": 3, "kernel": "rbf", "noise": 0.25}
GIVEN |= {"net_benefit_width": 0.1, "error": "cutoff", "min_share": 0.2, "n_resamples": 99}
GIVEN |= {"estimator": "block", "variance": "sample", "kernel_bound": 2.0, "n_jobs": 1}
GIVEN |= {"candidates": "fast", "cv": 3, "outer_cv": 3, "max_search_samples": 100}
GIVEN |= {"compare_name": "b", "pvalue": 0.5, "second_y_true": Y[:, 0]}
OTHERS = {"strategy": "unique", "edges": [0, 0.5, 1], "kernel": kernel, "locations": [0.5, 0.2]}
OTHERS |= {"threshold": None, "interval": (0.2, 0.8), "error": "calibration", "model": "M1"}
OTHERS |= {"method": "unbiased", "search": False, "compare": None}
METHODS = {"compare_calibration": {"degree": "skce"}, "skce_test": {"estimator": "block"}}
METHODS["compare_calibration"] |= dict.fromkeys(["kernel", "bandwidth"], "projection")
METHODS["skce_test"] |= dict.fromkeys(["n_resamples", "n_jobs"], "block")
METHODS["skce_test"] |= dict.fromkeys(["variance", "kernel_bound"], "monte-carlo")
METHODS["mean_embedding_test"] = {"n_resamples": "chi2"}
ARGUMENTS = {
    "make_dirichlet": ((50,), {}),
    "compare_calibration": ((Y[:, 0], P[:, 0], P[:, 1]), {}),
    "equivalence_test": ((Y[:, 0], P[:, 0]), {"limit": 0.3}),
    "validation_sample_size": ((0.5,), {"linear_predictor": (0, 1)}),
}
UNUSED = [
    (function, option, other)
    for module in (datasets, metrics, hypothesis_tests, report)
    for function in (getattr(module, name) for name in module.__all__)
    for option, others in getattr(function, "_used_with", {}).items()
    for other in others
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("function", "option", "other"), UNUSED)
def test_options_that_are_not_used_are_left_out_or_used_as_the_message_says(
    function, option, other
):
    name = function.__name__
    args, given = ARGUMENTS.get(name, ((Y[:, 0], P[:, 0]), {}))
    if name == "calibration_report":
        function, given = partial(refuse_unused, function), {}
        args = ()
    of_method = METHODS.get(name, {}).get(option, OTHERS["method"])
    unused = {other: of_method if other == "method" else OTHERS[other]}
    if (option, other) == ("pvalue", "error"):
        unused = {other: "cutoff"}
    if (name, other) == ("compare_calibration", "kernel"):
        given = {"method": "skce"}
    with pytest.raises(InputError, match=f"Leave {option} out") as caught:
        call(function, *args, **given | unused | {option: GIVEN[option]})
    call(function, *args, **given | unused)  # left out
    told = re.search(r"or pass (\w+)=(.*)\.$", str(caught.value))
    if told is not None:
        followed = {told[1]: ast.literal_eval(told[2])}
        more = {"kernel": kernel} if option == "kernel_bound" else {}
        call(function, *args, **given | followed | more | {option: GIVEN[option]})


def display(**options):
    options |= {"n_bins": 15, "strategy": "uniform", "n_resamples": 19}
    return ReliabilityDisplay.from_predictions(Y[:, 0], P[:, 0], **options)


@cache
def short_report():
    return report.calibration_report(Y[:, 0], P[:, 0], n_resamples=19, random_state=0)


def page():
    """The text of a saved report."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "report.html"
        short_report().save(path)
        return path.read_text(encoding="utf-8")


MISSING = {
    "to_frame() needs pandas: pip install pandas.": (
        "pandas",
        lambda: metrics.calibration_bins(Y[:, 0], P[:, 0]).to_frame()["frequency"],
        lambda: metrics.calibration_bins(Y[:, 0], P[:, 0]).frequency,
    ),
    "Displays need matplotlib: pip install matplotlib.": (
        "matplotlib",
        lambda: display().panels[0].frequency,
        lambda: metrics.calibration_bins(Y[:, 0], P[:, 0]).frequency,
    ),
    "Figures need matplotlib: pip install matplotlib.": (
        "matplotlib",
        lambda: len(views.draw(display(plot=False)).axes) > 0,
        lambda: True,
    ),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("message", MISSING)
def test_what_is_not_installed_is_needed_as_the_message_says(message, monkeypatch):
    package, function, right = MISSING[message]
    with monkeypatch.context() as patch:
        for name in [name for name in sys.modules if name.split(".")[0] == package] + [package]:
            patch.setitem(sys.modules, name, None)  # as where it is not installed
        with pytest.raises(ImportError) as caught:
            function()
    assert str(caught.value).endswith(message)
    np.testing.assert_allclose(np.ravel(function()), np.ravel(right()))


def test_a_page_without_figures_says_how_to_have_them(monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr("skcal.report.views.find_spec", lambda name: None)
        without = page()
    assert "matplotlib is not installed: pip install matplotlib, and make the report" in without
    assert "data:image/svg+xml" not in without
    assert "data:image/svg+xml" in page()


def call(function, *args, **options):
    """A call whose options beside arrays are a dict for what only checks them."""
    if isinstance(function, partial):
        return function(options)
    return function(*args, **options)


@pytest.mark.parametrize("as_list", [False, True])
def test_shares_are_read_as_the_message_says(as_list):
    shares = RNG.binomial(5, P[:, 0]) / 5
    given = shares.tolist() if as_list else shares
    message = told(calibration_error, given, P[:, 0])
    followed = eval(
        re.search(r"pass (numpy\S+ .*\))\.$", message)[1], {"numpy": np, "y_true": given}
    )
    rows = np.repeat(np.arange(N), 5)
    votes = np.arange(5 * N) % 5 < np.rint(5 * shares)[rows]
    bias = np.mean(votes - P[rows, 0])
    assert np.mean(followed[:, 1] - P[:, 0]) == pytest.approx(bias, abs=1e-12)
    assert 0 <= calibration_error(followed, P[:, 0]) <= 1


def test_points_are_recalibrated_as_the_message_says():
    """The error of a recalibrated half of 4,000 is below 0.05 in each of 20 seeds."""
    rng = np.random.default_rng(0)
    z = rng.normal(size=4000)
    points, y = 600 + 50 * z, (rng.random(4000) < expit(1.5 * z - 1)).astype(int)
    with pytest.warns(UserWarning, match="All logits in y_proba are so large") as caught:
        calibration_error(y, points, from_logits=True)
    text = re.search(r"fit skcal\.recalibration\.(PlattScaling\(\S+\))", str(caught[0].message))[1]
    method = eval(text, {"PlattScaling": PlattScaling}).fit(points[:2000], y[:2000])
    assert calibration_error(y[2000:], method.predict_proba(points[2000:])) < 0.05


def test_each_message_that_names_a_remedy_is_followed():
    """New advice needs a test that follows it."""
    texts = {text for _, text in collected()}
    alive = {part for part in FOLLOWED if any(part in text for text in texts)}
    assert alive == FOLLOWED.keys()
    assert CASES.keys() <= texts
    assert not_followed() == set(), "follow this advice in a test, see tests/advice.py"
