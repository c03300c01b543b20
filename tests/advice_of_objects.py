"""Advice of estimators, maps, searches and files of them, as tests/advice_of_input.py has it."""

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
from advice_of_input import GROUPS, MOST, NAMES, THREE, C, N, P, Y, ece, quietly
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold

import skcal
from skcal import hypothesis_tests as tests
from skcal import metrics
from skcal.model_selection import compare_risks
from skcal.recalibration import PlattScaling, TemperatureScaling

HEATED = TemperatureScaling().fit(THREE, C)
COOLED = HEATED.predict_proba(THREE)
WORDS = np.array(["a", "b"])[Y]
BINNED = [(skcal.Binning(), {"n_bins": [5]})]
ROWS = np.arange(N)
HALVES = [(ROWS[: N // 2], ROWS[N // 2 :]), (ROWS[N // 2 :], ROWS[: N // 2])]
LOGITS = np.where(THREE < 0.05, -np.inf, np.log(THREE))
FEATURES = np.log(P / (1 - P))[:, None]
MONITOR = skcal.CalibrationMonitor().update(P, Y).to_json()
MODEL = LogisticRegression().fit(FEATURES, Y)
SCORER = metrics.get_scorer("neg_expected_calibration_error")


def recalibrated(cv):
    method = skcal.Recalibrator([TemperatureScaling()], cv=cv, do_no_harm=False, random_state=0)
    return quietly(method.fit, THREE, C).predict_proba(THREE)


def searched(candidates, cv=3):
    search = skcal.CalibrationErrorSearchCV(candidates, cv=cv, random_state=0)
    return list(quietly(search.fit, P, Y).best_params_.values())[1]


def fitted(function=None, **options):
    return skcal.CalibrationErrorEstimator(function or skcal.Binning(), **options).fit(P, Y)


@cache
def report():
    return skcal.report.calibration_report(Y, P, n_resamples=19, random_state=0)


def save_page():
    with TemporaryDirectory() as folder:
        path = Path(folder) / "page.html"
        report().save(path)
        return path.stat().st_size > 1000


def named_fit():
    return skcal.CalibrationErrorEstimator(skcal.Binning(), labels=["a", "b"]).fit(P, WORDS)


def skce(**options):
    return tests.skce_test(C, THREE, notion="canonical", n_resamples=19, **options)


CASES = {
    "Pass what to_json() of a map returned.": (
        lambda: TemperatureScaling.from_json("{}"),
        lambda: TemperatureScaling.from_json(HEATED.to_json()).predict_proba(THREE),
        lambda: COOLED,
    ),
    "Pass what Recalibrator.to_json() returned; maps are read by their own from_json.": (
        lambda: skcal.Recalibrator.from_json(HEATED.to_json()),
        lambda: TemperatureScaling.from_json(HEATED.to_json()).predict_proba(THREE),
        lambda: COOLED,
    ),
    "Pass what to_json() of a monitor returned.": (
        lambda: skcal.CalibrationMonitor.from_json("{}"),
        lambda: skcal.CalibrationMonitor.from_json(MONITOR).to_json() == MONITOR,
        True,
    ),
    "candidates is empty. Pass at least one (function, param_grid).": (
        lambda: searched([]),
        lambda: searched(BINNED),
        5,
    ),
    "candidates={} is unknown. Use one of {}, or a list of (function, param_grid).": (
        lambda: searched("many"),
        lambda: searched(BINNED),
        5,
    ),
    "Pass (function, param_grid) with a calibration-estimation function such as skcal.Binning(); "
    "wrap scikit-learn estimators and recalibration maps as skcal.PlugIn(estimator).": (
        lambda: searched([(TemperatureScaling(), {})]),
        lambda: searched(BINNED),
        5,
    ),
    "functions is empty. Pass at least one function.": (
        lambda: skcal.Stacking([]).fit(P[:, None], (Y - P)[:, None]),
        lambda: np.isfinite(fitted(skcal.Stacking([skcal.Binning()])).score(P, Y)),
        True,
    ),
    "function is {}. Pass an instance of a calibration-estimation function, such as "
    "skcal.Binning(); wrap a scikit-learn estimator as skcal.PlugIn(estimator).": (
        lambda: fitted(skcal.Binning),
        lambda: fitted(skcal.Binning()).score(P, Y),
        lambda: fitted().score(P, Y),
    ),
    "{} is {}. Pass a fitted CalibrationErrorEstimator or CalibrationErrorSearchCV.": (
        lambda: compare_risks(skcal.Binning(), fitted(), P, Y),
        lambda: compare_risks(fitted(), fitted(), P, Y).difference,
        0.0,
    ),
    "cv tests sample {} {} times. Pass splits whose test sets do not overlap.": (
        lambda: recalibrated([HALVES[0], HALVES[0]]),
        lambda: recalibrated(HALVES),
        lambda: recalibrated(KFold(2)),
    ),
    "Pass rows of these samples. ({})": (
        lambda: recalibrated([(ROWS[: N // 2], ROWS[N // 2 :] + N)]),
        lambda: recalibrated(HALVES),
        lambda: recalibrated(KFold(2)),
    ),
    "Pass y == positive class.": (
        lambda: PlattScaling().fit(P, np.array(["a", "b", "c"])[C]),
        lambda: PlattScaling().fit(P, np.array(["a", "b"])[Y] == "b").predict_proba(P),
        lambda: PlattScaling().fit(P, Y).predict_proba(P),
    ),
    "Pass y as column numbers of X, from 0, or X as a data frame whose columns are named by the "
    "classes.": (
        lambda: TemperatureScaling().fit(THREE, NAMES[C % 2]),
        lambda: [
            TemperatureScaling().fit(X, y).predict_proba(X)
            for X, y in [(THREE, C), (pd.DataFrame(THREE, columns=NAMES), NAMES[C])]
        ],
        lambda: [COOLED, COOLED],
    ),
    "Name the columns by the classes, or pass X as an array.": (
        lambda: TemperatureScaling().fit(pd.DataFrame(THREE, columns=["x", "y", "z"]), NAMES[C]),
        lambda: [
            TemperatureScaling().fit(X, NAMES[C]).predict_proba(X)
            for X in (THREE, pd.DataFrame(THREE, columns=NAMES))
        ],
        lambda: [COOLED, COOLED],
    ),
    "Unknown label type: continuous. y_true holds {}; pass labels.": (
        lambda: SCORER(MODEL, FEATURES, P),
        lambda: SCORER(MODEL, FEATURES, Y),
        lambda: -ece(Y, MODEL.predict_proba(FEATURES)[:, 1]),
    ),
    "For logits in which classes are masked pass numpy.maximum({}, -1e4).": (
        lambda: ece(C, LOGITS, from_logits=True),
        lambda: ece(C, np.maximum(LOGITS, -1e4), from_logits=True),
        lambda: ece(C, softmax(LOGITS, axis=1)),
    ),
    "Pass logits, or leave from_logits out and pass no logits.": (
        lambda: ece(C, THREE, from_logits=True),
        lambda: [ece(C, np.log(THREE), from_logits=True), ece(C, THREE)],
        [MOST, MOST],
    ),
    "Pass finer groups if those are independent, or collect more.": (
        lambda: tests.calibration_error_interval(Y, P, groups=ROWS // (N // 2)),
        lambda: tests.calibration_error_interval(Y, P, groups=GROUPS).estimate,
        lambda: tests.calibration_error_interval(Y, P, groups=GROUPS.astype(str)).estimate,
    ),
    "Use one of {}, or the RMS calibration error of skcal.CalibrationErrorSearchCV.": (
        lambda: metrics.calibration_error(C, THREE, notion="canonical"),
        lambda: metrics.calibration_error(C, THREE, notion="confidence"),
        lambda: metrics.calibration_error(THREE.argmax(axis=1) == C, THREE.max(axis=1)),
    ),
    "Use one of {}, 'precision-at-K'.": (
        lambda: skcal.report.calibration_report(C, THREE, notion="topmost"),
        lambda: ece(C, THREE, notion="confidence"),
        MOST,
    ),
    "a and b were fitted with different classes_. Pass the same labels=.": (
        lambda: compare_risks(fitted(), named_fit(), P, Y),
        lambda: compare_risks(named_fit(), named_fit(), P, WORDS).difference,
        0.0,
    ),
    "method='monte-carlo' takes no class_kernel and no estimator='block'. Use monte_carlo_test(…, "
    "'squared_kernel_calibration_error', class_kernel=…).": (
        lambda: skce(method="monte-carlo", class_kernel=np.eye(3)),
        lambda: (
            tests.monte_carlo_test(
                C,
                THREE,
                "squared_kernel_calibration_error",
                notion="canonical",
                class_kernel=np.eye(3),
                n_resamples=19,
                random_state=0,
            ).statistic
        ),
        lambda: metrics.squared_kernel_calibration_error(C, THREE, notion="canonical"),
    ),
    "path={} has the ending {}. Use one of {}.": (
        lambda: report().save("a.xyz"),
        lambda: save_page(),
        True,
    ),
    "detail={} is unknown. Use 'short' or 'full'.": (
        lambda: report().summary("long"),
        lambda: [len(report().summary(detail)) > 100 for detail in ("short", "full")],
        [True, True],
    ),
    "strategy={} makes other bins for every model. With compare use 'uniform'.": (
        lambda: skcal.report.calibration_report(Y, P, compare=P**2, strategy="quantile"),
        lambda: report().overall.error.estimate,
        lambda: tests.calibration_error_interval(Y, P).estimate,
    ),
    "compare has shape {}, y_proba {}. Pass predictions of the same classes for the same "
    "samples.": (
        lambda: skcal.report.calibration_report(Y, P, compare=P[1:]),
        lambda: report().overall.error.estimate,
        lambda: tests.calibration_error_interval(Y, P).estimate,
    ),
}
