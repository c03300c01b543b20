"""What skcal warns of names the line of its caller."""

import inspect
import warnings

import numpy as np

from skcal import CalibrationErrorSearchCV, PlugIn, TemperatureScaling, Zero
from skcal._notes import Note, listen, note
from skcal.metrics import bootstrap_interval, cross_fitted_calibration_error
from skcal.metrics import expected_calibration_error as ece

RNG = np.random.default_rng(0)
P = np.append(RNG.uniform(0.2, 0.8, 119), 0.0)
Y = np.append(RNG.uniform(size=119) < P[:-1], True).astype(int)


def line_of_warning(function):
    """The line that the warning names, counted from that of the function."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        function()
    assert caught
    assert {one.filename for one in caught} == {__file__}
    [line] = {one.lineno for one in caught}
    return line - inspect.getsourcelines(function)[1]


def search():
    return CalibrationErrorSearchCV([Zero(), PlugIn(TemperatureScaling())], cv=3, random_state=0)


def test_a_search_and_its_errors_warn_of_the_line_that_asked():
    assert line_of_warning(lambda: search().fit(P[:-1], Y[:-1])) == 0  # of a square below 0
    fitted = search()
    listen([], fitted.fit, P, Y)
    assert line_of_warning(lambda: fitted.error("log")) == 0


def test_metrics_warn_of_the_line_that_asked():
    assert line_of_warning(lambda: cross_fitted_calibration_error(Y, P, kind="log")) == 0
    y, p = Y[:8], P[:8]
    assert line_of_warning(lambda: bootstrap_interval(ece, y, p, n_resamples=19)) == 0


def test_a_listener_hears_instead():
    heard = []
    assert listen(heard, lambda: note("look", UserWarning)) is None
    assert heard == [Note("look", UserWarning)]
