"""Advice of displays and reports: as tests/advice_of_input.py."""

import warnings
from functools import cache, partial

import numpy as np
from advice_of_input import GROUPS, HOT, NAMES, THREE, WEIGHT, C, N, P, Y, quietly
from advice_of_searches import BINNING, FEATURES, RIDGE, Spread, of_binning, search
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import ShuffleSplit, StratifiedKFold, cross_validate
from sklearn.svm import SVC

import skcal
from skcal import CalibrationErrorEstimator, displays, report
from skcal import hypothesis_tests as tests

reliability = partial(
    quietly, displays.ReliabilityDisplay.from_predictions, plot=False, n_resamples=19
)
recalibration = partial(displays.RecalibrationDisplay.from_predictions, plot=False, n_resamples=19)
bin_count = partial(displays.BinCountDisplay.from_predictions, plot=False, n_resamples=19)
simplex = partial(displays.SimplexDisplay.from_predictions, plot=False)
risk = partial(displays.RiskDisplay.from_search, plot=False)
comparison = partial(displays.ComparisonDisplay.from_searches, plot=False)
MODEL = LogisticRegression().fit(FEATURES, Y)
OF_CONFIDENCE = CalibrationErrorEstimator(BINNING, notion="confidence").fit(THREE, C)
DENSE = (np.arange(1100) + 0.5) / 1100
MANY = (DENSE, (np.arange(1100) * 7919 % 1100 < 1100 * DENSE).astype(int))
RIGHT = ((THREE.argmax(axis=1) == C).astype(int), THREE.max(axis=1))
SKCE = tests.skce_test(Y, P, n_resamples=19, random_state=0)


def rows_of(display):
    """Means and frequencies of the bins of each panel."""
    return [np.column_stack([panel.prediction, panel.frequency]) for panel in display.panels]


def axes(n=1):
    import matplotlib.pyplot as plt

    figure, ax = plt.subplots(1, n)
    plt.close(figure)
    return ax


def drawn_twice(scale):
    ax = axes()
    for each in ("linear", scale):
        displays.ReliabilityDisplay.from_predictions(Y, P, scale=each, ax=ax, n_resamples=19)
    return len(ax.lines) > 1


@cache
def grid():
    varied = {"n_bins": [3, 5], "strategy": ["uniform", "quantile"]}
    candidates = [(skcal.Binning(), varied)]
    return skcal.CalibrationErrorSearchCV(candidates, cv=3, random_state=0).fit(P, Y)


@cache
def with_both():
    """A search whose best function has no residual, beside one that has."""
    return search(Spread(debias=True), RIDGE)


def validated(cv, **options):
    results = cross_validate(LogisticRegression(), FEATURES, Y, cv=cv, **options)
    return displays.ReliabilityDisplay.from_cv_results(
        results, FEATURES, Y, plot=False, n_resamples=19
    )


def out_of_fold(cv):
    p = np.empty(N)
    for train, test in cv.split(FEATURES, Y):
        fitted = LogisticRegression().fit(FEATURES[train], Y[train])
        p[test] = fitted.predict_proba(FEATURES[test])[:, 1]
    return reliability(Y, p)


def first(display):
    return display.panels[0].frequency


WITH_FITS = {"return_estimator": True, "return_indices": True}
FOLDS = StratifiedKFold(3)

CASES = {
    "ax holds a diagram with scale={}, this one has {}. Use the same scale, or leave ax out.": (
        lambda: drawn_twice("logit"),
        lambda: [drawn_twice("linear"), len(first(reliability(Y, P, scale="logit"))) > 1],
        [True, True],
    ),
    "searches[{}] is of notion {}, searches[{}] of {}. Errors of different notions are not "
    "comparable: fit all with the same.": (
        lambda: comparison({"a": of_binning(), "b": search(proba=THREE, y=C, notion="classwise")}),
        lambda: [
            each.plug_in for each in comparison(dict.fromkeys("ab", of_binning())).classifiers
        ],
        lambda: [of_binning().squared_error_ ** 0.5] * 2,
    ),
    "ax holds {} axes, the display has {} panel(s). Pass plt.subplots(1, {})[1], or leave ax out "
    "for a new figure.": (
        lambda: displays.ReliabilityDisplay.from_predictions(
            C, THREE, notion="classwise", ax=axes(), n_resamples=19
        ),
        lambda: first(
            displays.ReliabilityDisplay.from_predictions(
                C, THREE, notion="classwise", ax=axes(3), n_resamples=19, n_bins=5
            )
        ),
        lambda: first(reliability((C == 0).astype(int), THREE[:, 0], n_bins=5)),
    ),
    "Pass a fitted skcal.CalibrationErrorSearchCV.": (
        lambda: risk(BINNING),
        lambda: len(risk(of_binning()).candidates),
        1,
    ),
    "method is fitted for the notion {}, the display is of {}. Pass the notion of the fit, or "
    "refit.": (
        lambda: reliability(C, THREE, notion="classwise", method=OF_CONFIDENCE),
        lambda: [
            len(reliability(C, THREE, notion=notion, method=method).panels)
            for notion, method in [
                ("confidence", OF_CONFIDENCE),
                (
                    "classwise",
                    CalibrationErrorEstimator(BINNING, notion="classwise").fit(THREE, C),
                ),
            ]
        ],
        [1, 3],
    ),
    "method is fitted for the classes {}, not for {}. Pass the same labels.": (
        lambda: reliability(
            NAMES[C], THREE, notion="confidence", method=OF_CONFIDENCE, labels=NAMES
        ),
        lambda: first(
            reliability(C, THREE, notion="confidence", method=OF_CONFIDENCE, labels=[0, 1, 2])
        ),
        lambda: first(reliability(C, THREE, notion="confidence", method=OF_CONFIDENCE)),
    ),
    "method={} has no residual(X), so there is no curve to draw. Use {} or another function that "
    "has.": (
        lambda: reliability(Y, P, method=with_both()),
        lambda: reliability(Y, P, method=with_both().one_step_function_).panels[0].line_y,
        lambda: reliability(Y, P, method=RIDGE).panels[0].line_y,
    ),
    "skcal.TwoStepKernelRidge()": (
        lambda: reliability(Y, P, method=skcal.Binning(debias=True)),
        lambda: np.isfinite(
            reliability(Y, P, method=skcal.TwoStepKernelRidge()).panels[0].line_y
        ).all(),
        True,
    ),
    "Pass a fitted classifier with probabilities, or use from_predictions.": (
        lambda: displays.ReliabilityDisplay.from_estimator(SVC().fit(FEATURES, Y), FEATURES, Y),
        lambda: first(
            displays.ReliabilityDisplay.from_estimator(
                MODEL, FEATURES, Y, plot=False, n_resamples=19
            )
        ),
        lambda: first(reliability(Y, MODEL.predict_proba(FEATURES)[:, 1])),
    ),
    "Pass cross_validate(..., return_estimator=True, return_indices=True).": (
        lambda: validated(FOLDS),
        lambda: first(validated(FOLDS, return_estimator=True, return_indices=True)),
        lambda: first(out_of_fold(FOLDS)),
    ),
    "Use a splitter whose test folds hold every sample once, such as StratifiedKFold.": (
        lambda: validated(ShuffleSplit(2, random_state=0), **WITH_FITS),
        lambda: first(validated(StratifiedKFold(3), **WITH_FITS)),
        lambda: first(out_of_fold(FOLDS)),
    ),
    "Use ReliabilityDisplay.": (
        lambda: bin_count(skcal.Sample(Y, P, groups=GROUPS)),
        lambda: first(reliability(skcal.Sample(Y, P, groups=GROUPS), n_bins=5)),
        lambda: first(reliability(Y, P, n_bins=5)),
    ),
    "notion={} says nothing of how several labels are drawn together. Use ReliabilityDisplay.": (
        lambda: bin_count(HOT, THREE, notion="multi-label"),
        lambda: first(reliability(HOT, THREE, notion="multi-label", n_bins=5)),
        lambda: first(reliability(HOT[:, 0].astype(int), THREE[:, 0], n_bins=5)),
    ),
    "notion={} says nothing of how the outcomes of several classes are drawn together. Pass y_true "
    "== labels[k] and y_proba[:, k] for a class k, or use notion='top-label'.": (
        lambda: bin_count(NAMES[C], THREE, notion="classwise", labels=NAMES),
        lambda: [
            bin_count(NAMES[C] == NAMES[1], THREE[:, 1], n_bins=[15]).error[0] ** 2,
            bin_count(NAMES[C], THREE, notion="top-label", labels=NAMES).error[0] > 0,
        ],
        lambda: [squared_by_hand(C == 1, THREE[:, 1]), True],
    ),
    "tests holds {}, which searches does not. Use the same names.": (
        lambda: comparison({"a": of_binning()}, tests={"b": SKCE}),
        lambda: comparison({"a": of_binning()}, tests={"a": SKCE}).classifiers[0].pvalue,
        lambda: SKCE.pvalue,
    ),
    "Pass what a test returned.": (
        lambda: comparison({"a": of_binning()}, tests={"a": SKCE.pvalue}),
        lambda: comparison({"a": of_binning()}, tests={"a": SKCE}).classifiers[0].pvalue,
        lambda: SKCE.pvalue,
    ),
    "Pass what segment_test returned.": (
        lambda: displays.SegmentDisplay.from_result(WEIGHT, plot=False),
        lambda: displays.SegmentDisplay.from_result(SEGMENTS, plot=False).n_segments,
        lambda: len(SEGMENTS.segments),
    ),
    "Pass what bias_curve returned.": (
        lambda: displays.BiasCurveDisplay.from_result(WEIGHT, plot=False),
        lambda: displays.BiasCurveDisplay.from_result(CURVE, plot=False).curve.pvalue,
        lambda: CURVE.pvalue,
    ),
    "Pass a CalibrationMonitor.": (
        lambda: displays.MonitorDisplay.from_monitor(P, plot=False),
        lambda: displays.MonitorDisplay.from_monitor(MONITOR, plot=False).columns["n_samples"][-1],
        N,
    ),
    "notion={} has a diagram a class. Use {}a ReliabilityDisplay before and one after.": (
        lambda: recalibration(C, THREE, THREE**2 / (THREE**2).sum(1)[:, None], notion="classwise"),
        lambda: [
            len(recalibration(C, THREE, THREE, notion="confidence").panels),
            len(reliability(C, THREE, notion="classwise").panels),
        ],
        [2, 3],
    ),
    "{} conditions on a vector, which one frequency axis does not show. Use one of "
    "'confidence', 'top-label', 'classwise': 'classwise' has a panel a class": (
        lambda: reliability(C, THREE, notion="canonical"),
        lambda: [
            len(reliability(C, THREE, notion=notion).panels)
            for notion in ("confidence", "top-label", "classwise")
        ],
        [1, 3, 3],
    ),
    "{} bins hold samples, more than the {} that a diagram can show. Pass {}.": (
        lambda: reliability(MANY[1], MANY[0], n_bins=1100),
        lambda: [
            len(first(reliability(MANY[1], MANY[0], **options))) <= 1000
            for options in (
                {"n_bins": 20},
                {"n_bins": "auto"},
                {"n_bins": 15, "strategy": "quantile"},
                {"edges": [0, 0.5, 1]},
            )
        ],
        [True] * 4,
    ),
    "param={} is not varied by any candidate. Use {}None for the candidates.": (
        lambda: risk(grid(), param="x"),
        lambda: [len(risk(grid(), param="n_bins").curves), len(risk(grid()).candidates)],
        [1, 1],
    ),
    "param={} of {} has values that are not numbers. Use param=None.": (
        lambda: risk(grid(), param="strategy"),
        lambda: len(risk(grid(), param=None).candidates),
        1,
    ),
    "notion={} is about {}, but a triangle has three corners. Use ReliabilityDisplay.": (
        lambda: simplex(Y, P),
        lambda: len(reliability(Y, P).panels),
        1,
    ),
    "y_proba has {} {}, but a triangle has three corners. Pass superclasses={'name': [classes], …} "
    "with three names, or notion='top-2' (first, second, rest).": (
        lambda: simplex(FOURTH, FOUR),
        lambda: [
            simplex(
                FOURTH, FOUR, superclasses={"a": [0], "b": [1], "c": [2, 3]}
            ).arrows.count.sum(),
            len(simplex(FOURTH, FOUR, notion="top-2").corners),
        ],
        lambda: [simplex(C, THREE).arrows.count.sum(), 3],
    ),
}


def told(*args, **options):
    """A report, and what it says as a warning."""
    options = {"n_resamples": 19, "random_state": 0, **options}
    found = quietly(report.calibration_report, *args, **options)
    warnings.warn(" ".join(found.summary("full").split()), stacklevel=2)
    return found


def is_said(text, *args, **options):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        told(*args, **options)
    return text in " ".join(str(warning.message) for warning in caught)


told_quietly = partial(quietly, told)


def error(*args, **options):
    return told_quietly(*args, **options).overall.error.estimate


RARE = np.linspace(0.01, 0.04, 300)
RARELY = (np.arange(300) * 37 % 300 < 300 * RARE).astype(int)
SWAPPED = np.tile(THREE[:, [1, 0, 2]], (4, 1))
MIXED = np.array(["a", 1] * (N // 2), dtype=object)
DRAWN = np.random.default_rng(2).random(31)
FIFTY = np.repeat(DRAWN, 8)  # rows of groups that share their outcome
SHARED = np.repeat(np.random.default_rng(3).random(31) < DRAWN, 8).astype(int)
VOTED = np.rint(P * 31) / 31  # predictions of steps of 1/31, of which some are 0 and 1
VOTED[:6] = [0, 1, 0, 1, 0, 1]
TURNED = np.r_[[1, 0], Y[2:]]
REPORTS = {
    "The columns seem to be in the wrong order: {} would fit the labels much better. Check it, and "
    "pass {} if columns are not in the order of the sorted labels.": (
        lambda: told(np.tile(C, 4), SWAPPED),
        lambda: error(np.tile(C, 4), SWAPPED, labels=[1, 0, 2]),
        lambda: error(np.tile(C, 4), np.tile(THREE, (4, 1))),
    ),
    "Every predicted class is right, as on training data, where forests look underconfident and "
    "other models calibrated. If so, use samples that the classifier was not trained on.": (
        lambda: told(THREE.argmax(axis=1), THREE),
        lambda: is_said("Every predicted class is right", C, THREE),
        False,
    ),
    "The tolerance of {} is above the rate of the rarer outcome ({}): a model that never predicts "
    "it would pass. Pass {} as a share of that rate.": (
        lambda: told(RARELY, RARE, max_error=0.09),
        lambda: is_said("would pass", RARELY, RARE, max_error=0.01),
        False,
    ),
    "Neighbouring rows err to the same side more often than independent rows do ({} standard "
    "deviations). Outcomes may depend on each other, as in a time series, calibration may change "
    "along the rows, or rows may be sorted by outcome. If outcomes depend on each other, limits "
    "are too narrow and p-values too small: pass {}, such as the week or the patient of each "
    "row.": (
        lambda: told(SHARED, FIFTY),
        lambda: (
            error(SHARED, FIFTY, groups=np.arange(248) // 8) < 0.05  # 0.30 of single rows
        ),
        True,
    ),
    "All probabilities are 0 or 1: these look like class predictions, which say nothing about "
    "confidence. Pass probabilities in their place.": (
        lambda: told(Y, P.round()),
        lambda: is_said("look like class predictions", Y, P),
        False,
    ),
    "Pass {} if they": (
        lambda: told(TURNED, VOTED),
        lambda: is_said("Slope undefined", TURNED, VOTED, resolution=1 / 31),
        False,
    ),
    "by cannot be sorted ({}). Pass strings.": (
        lambda: told(Y, P, by=MIXED),
        lambda: [part.error.estimate for part in by_mixed()],
        lambda: [error(Y[1::2], P[1::2]), error(Y[::2], P[::2])],
    ),
    "Pass names with functions of labels and predictions.": (
        lambda: told(Y, P, metrics={"bias": 0.1}),
        lambda: told_quietly(Y, P, metrics={"bias": bias}).overall.own[0].estimate,
        np.mean(Y - P),
    ),
}


def bias(y, p):
    return np.mean(y - p)


def by_mixed():
    return told_quietly(Y, P, by=MIXED.astype(str)).subgroups


CASES |= REPORTS
FOUR = np.column_stack([THREE[:, :2], THREE[:, 2] / 2, THREE[:, 2] / 2])
FOURTH = np.where((C == 2) & (np.arange(N) % 2 == 0), 3, C)
SEGMENTS = tests.segment_test(Y, P, {"w": WEIGHT}, n_resamples=19, random_state=0)
CURVE = tests.bias_curve(Y, P, WEIGHT, random_state=0)
MONITOR = skcal.CalibrationMonitor().update(P, Y)


def squared_by_hand(y, p):
    place = np.minimum((p * 15).astype(int), 14)
    return sum(((y - p)[place == k].sum()) ** 2 / max(1, (place == k).sum()) for k in range(15)) / N
