"""Every public name as a function of labels y, predictions X, weights w and class names."""

import inspect
from contextlib import suppress
from functools import partial

import numpy as np
from sklearn.base import clone
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import skcal
from skcal import (
    datasets,
    displays,
    functions,
    hypothesis_tests,
    metrics,
    monitoring,
    recalibration,
    report,
)
from skcal._border import keeping_filters
from skcal.model_selection import FunctionCorrection
from skcal.recalibration import Identity, Mixture, RecalibrationMap, Smoothed

FEW = {"random_state": 0, "n_resamples": 19}
CANDIDATES = [(skcal.Zero(), {}), (skcal.Binning(2), {}), (skcal.TwoStepKernelRidge(1e-2), {})]
FIT = {"y": "labels", "X": "proba", "w": "weight", "labels": "names"}
SAMPLE = {**FIT, "notion": "notion"}


class Call:
    """A public name, how it is called, and of what kind its arguments are.

    Parameters
    ----------
    function : callable
        Takes arguments by the names in ``kinds``.
    kinds : dict of str to str
        "labels", "proba", "weight", "names", "notion", "residuals", "numbers" or "text".
    seldom : bool
        Takes as long as dozens of others.
    exact : bool
        Says the same of float32 up to rounding; others choose, so that a rounding may decide.
    lenient : bool
        Documented to return what is no probability as it is.
    foreign : bool
        May be refused by a classifier of scikit-learn, which names no argument.
    """

    def __init__(self, function, kinds, *, seldom=False, exact=True, lenient=False, foreign=False):
        self.function, self.kinds, self.seldom, self.exact = function, kinds, seldom, exact
        self.lenient, self.foreign = lenient, foreign


class Told:
    """A fitted classifier of given predictions."""

    @keeping_filters()
    def __init__(self, proba):
        self.proba, self.classes_ = proba, np.arange(3)
        with suppress(TypeError, ValueError):
            shape = np.shape(np.asarray(proba))
            self.classes_ = np.arange(max(2, shape[-1]) if len(shape) == 2 else 2)

    def predict_proba(self, X):
        return self.proba


def weighted(w, name="sample_weight"):
    return {} if w is None else {name: w}


def of_samples(function, *others, **options):
    """A function of (y_true, y_proba, *others)."""
    takes = inspect.signature(function).parameters
    options = {key: value for key, value in {**FEW, **options}.items() if key in takes}
    kinds = {"w": "sample_weight", "labels": "labels", "notion": "notion"}
    kinds = {"y", "X"} | {key for key, name in kinds.items() if name in takes}

    def call(y, X, w=None, **given):
        return function(y, X, *others, **options, **weighted(w), **given)

    return Call(call, {key: SAMPLE[key] for key in SAMPLE if key in kinds})


# Methods whose arguments are none of a sample.
OTHER_METHODS = {
    **dict.fromkeys(["get_params", "set_params", "get_metadata_routing"], "scikit-learn's own"),
    **dict.fromkeys(["fit", "partial_fit", "update", "merge", "from_json"], "calls of their own"),
    **dict.fromkeys(["score_path", "serving_value", "shares_factor", "with_factor_of"], "searches"),
    **dict.fromkeys(["reading", "best_weights", "combined", "fit_parts", "products"], "searches"),
    "fit_transform": "fit and transform",
    "save": "writes a file",
    "plot": "draws: a call of its own",
}


def needed_by(takes):
    """The names of the parameters that a call has to pass."""
    return [key for key, one in takes.items() if one.default is one.empty and one.kind < 2]


def methods(thing):
    """The public methods of an object, and its required arguments."""
    for name in dir(type(thing)):  # of an estimator dir sets the filters of warnings
        method = None if name.startswith("_") else getattr(thing, name, None)
        if inspect.ismethod(method) and name[:4] != "set_" and name not in OTHER_METHODS:
            takes = inspect.signature(method).parameters
            yield method, takes, needed_by(takes)


def ask(thing, w=None, **known):
    """What all public methods of an object say."""
    said = {}
    for method, takes, needed in methods(thing):
        if not known.keys() >= set(needed):
            continue
        arguments = {key: known[key] for key in needed}
        more = weighted(w) if "sample_weight" in takes else {}
        try:
            said[method.__name__] = method(**arguments, **more)
        except (TypeError, ValueError) as error:  # "Identity is no map of skcal and …"
            said[method.__name__] = f"refused: {error}"
    return said


def fitted(estimator, y, X, w=None, labels=None):
    estimator = clone(estimator)
    if labels is not None:
        estimator.set_params(labels=labels)
    takes = inspect.signature(estimator.fit).parameters
    return estimator.fit(X, y, **(weighted(w) if "sample_weight" in takes else {}))


def of_estimator(estimator, kinds=FIT, **options):
    def call(X, y=None, w=None, labels=None):
        return ask(fitted(estimator, y, X, w, labels), w, X=X, y=y)

    takes = inspect.signature(estimator.fit).parameters
    without = {"labels"} - set(estimator.get_params(deep=False))
    without |= set() if "sample_weight" in takes else {"w"}
    without |= {"y"} if "y" in takes and takes["y"].default is None else set()
    return Call(call, {key: kinds[key] for key in kinds if key not in without}, **options)


def accumulate(y, X, w=None, **options):
    one, other = (metrics.CalibrationAccumulator(**options).partial_fit(y, X, w) for _ in range(2))
    return ask(one.partial_fit(y, X, w)), ask(one.merge(other))


def watch(y, X, w=None, labels=None, notion="auto"):
    monitor = monitoring.CalibrationMonitor(notion, labels, run_length=100)
    monitor.update(X, y, w).update(X, y, w)
    return monitor.log_e_value_, monitor.detector_, monitor.estimates_, ask(monitor)


def scored(scorer, y, X):
    return scorer(Told(X), np.zeros((30, 1)), y)


def mended(y, X, w=None):
    inner = skcal.Recalibrator([skcal.TemperatureScaling()], random_state=0)
    model = skcal.RecalibratedClassifierCV(
        DecisionTreeClassifier(max_depth=2, random_state=0), inner, cv=2
    )
    model.fit(X, y, **weighted(w))
    return ask(model, X=X, y=y)


def reported(y, X, **options):
    made = report.calibration_report(y, X, candidates=CANDIDATES[:1], cv=2, **FEW, **options)
    return made.to_dict(), made.to_json()[:0], made.to_frame(), made._repr_html_()[:0]


def compared(y, X, w=None):
    p = np.random.default_rng(0).dirichlet(np.ones(3), 40)
    estimators = [
        skcal.CalibrationErrorEstimator(one, "canonical").fit(p, np.arange(40) % 3)
        for one in (skcal.Zero(), skcal.Binning(2))
    ]
    return skcal.compare_risks(*estimators, X, y, w)


def drawn(display):
    """The numbers of a display that draws itself on a figure of its own."""
    from matplotlib.figure import Figure

    figure = Figure()
    for count in (1, 2, 3, 4, 6):
        try:
            display.plot(ax=figure.subplots(1, count, squeeze=False)[0])
        except ValueError as error:
            if "panel(s)" not in str(error):
                raise
    return [one for key, one in vars(display).items() if not key.endswith("_")]


def displayed(kind, y, X, w=None, **given):
    before = {"y_before": X, "y_after": X} if kind is displays.RecalibrationDisplay else {}
    arguments = before or {"y_proba": X}
    options = {**FEW, **weighted(w), **given, "plot": False}
    takes = inspect.signature(kind.from_predictions).parameters
    if kind is not displays.RecalibrationDisplay:  # which hands options on
        options = {key: value for key, value in options.items() if key in takes}
    return drawn(kind.from_predictions(y, **arguments, **options))


def displayed_of_estimator(kind, y, X):
    takes = inspect.signature(kind.from_predictions).parameters
    options = {key: value for key, value in FEW.items() if key in takes}
    return drawn(kind.from_estimator(Told(X), X, y, plot=False, **options))


def of_result(kind, make, y, X):
    return drawn(kind(make(y, X), plot=False))


def maps():
    kinds = [one for one in vars(skcal).values() if inspect.isclass(one)]
    found = {one.__name__: one() for one in kinds if issubclass(one, RecalibrationMap)}
    found |= {"Identity": Identity(), "Smoothed": Smoothed(skcal.VectorScaling())}
    return {name: one for name, one in found.items() if name != "RecalibrationMap"}


def of_functions():
    plug_in = skcal.PlugIn(DecisionTreeRegressor(max_depth=2, random_state=0))
    made = {"PlugIn": plug_in, "Stacking": skcal.Stacking([skcal.Zero(), skcal.Binning(2)], cv=2)}
    kinds = {**FIT, "y": "residuals", "X": "features"}
    return {
        name: of_estimator(made.get(name) or getattr(functions, name)(), kinds)
        for name in functions.__all__
        if name != "BilinearFunction"
    }


def of_packages():
    """Metrics and tests."""
    others = {
        "bias_curve": (np.arange(30) % 7,),
        "segment_test": ({"a": np.arange(30) % 3, "b": np.arange(30) % 5},),
        "compare_calibration": (np.full((30, 3), 1 / 3),),
    }
    for package in (metrics, hypothesis_tests):
        for name in package.__all__:
            function = getattr(package, name)
            takes = list(inspect.signature(function).parameters)
            if takes[:1] == ["y_true"] and inspect.isfunction(function):
                yield name, of_samples(function, *others.get(name, ()), min_samples=5)
    interval = partial(metrics.bootstrap_interval, metrics.expected_calibration_error)
    yield "bootstrap_interval", of_samples(interval)
    ece = metrics.make_calibration_scorer(metrics.expected_calibration_error)
    plain = {"y": "seen labels", "X": "told"}
    yield "make_calibration_scorer", Call(partial(scored, ece), plain)
    for name in metrics.get_scorer_names():
        yield f"get_scorer({name})", Call(partial(scored, metrics.get_scorer(name)), plain)
    yield "get_scorer_names", Call(metrics.get_scorer_names, {})


def of_displays():
    plain = {"y": "labels", "X": "proba"}
    for name in displays.__all__:
        kind = getattr(displays, name)
        if hasattr(kind, "from_predictions"):
            call = partial(displayed, kind)
            yield f"{name}.from_predictions", Call(call, SAMPLE, seldom=True, exact=False)
        if hasattr(kind, "from_estimator"):
            call = partial(displayed_of_estimator, kind)
            seen = {"y": "seen labels", "X": "told"}
            yield f"{name}.from_estimator", Call(call, seen, seldom=True, exact=False)
    test, segments, curve = (
        CALLS[name].function for name in ("monte_carlo_test", "segment_test", "bias_curve")
    )
    search = partial(fitted, skcal.CalibrationErrorSearchCV(CANDIDATES, cv=3, random_state=0))
    for kind, method, make in (
        (displays.NullDistributionDisplay, "from_result", test),
        (displays.SegmentDisplay, "from_result", segments),
        (displays.BiasCurveDisplay, "from_result", curve),
        (displays.RiskDisplay, "from_search", search),
        (displays.ComparisonDisplay, "from_searches", lambda y, X: {"a": search(y, X)}),
        (displays.MonitorDisplay, "from_monitor",
         lambda y, X: monitoring.CalibrationMonitor().update(X, y)),
    ):  # fmt: skip
        call = partial(of_result, getattr(kind, method), make)
        yield f"{kind.__name__}.{method}", Call(call, plain, seldom=True, exact=False)


@keeping_filters()
def prevalences(function, X, *others, **options):
    shape = ()
    with suppress(ValueError, TypeError):
        shape = np.shape(np.asarray(X))
    one = np.arange(1, shape[1] + 1) / sum(range(shape[1] + 1)) if len(shape) == 2 else 0.3
    return function(X, prevalence=one, **dict.fromkeys(others, one), **options)


def sizes(make, size):
    made = make(size, n_classes=3, random_state=0)
    return made.proba, made.labels


def of_text(cls, make):
    """``from_json`` of what was written and then damaged."""
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(3), 40).round(3)
    p[:, 2] = 1 - p[:, :2].sum(axis=1)
    text = make(p, np.arange(40) % 3).to_json()
    call = Call(lambda text: ask(cls.from_json(text), X=np.full((2, 3), 1 / 3)), {"text": "text"})
    call.text = text
    return call


CALLS = dict(of_packages()) | of_functions()
CALLS |= {name: of_estimator(one) for name, one in maps().items()}
CALLS |= {
    "LogProbabilities": of_estimator(skcal.LogProbabilities()),
    "ProbabilityInteractions": of_estimator(skcal.ProbabilityInteractions()),
    "Mixture": of_estimator(Mixture([Identity(), skcal.TemperatureScaling()], [0.5, 0.5])),
    "CalibrationErrorEstimator": of_estimator(skcal.CalibrationErrorEstimator(skcal.Binning(3))),
    "CalibrationErrorSearchCV": of_estimator(
        skcal.CalibrationErrorSearchCV(CANDIDATES, cv=3, random_state=0), seldom=True, exact=False
    ),
    "Recalibrator": of_estimator(
        skcal.Recalibrator([skcal.TemperatureScaling()], cv=2, random_state=0),
        seldom=True,
        exact=False,
    ),
    "RecalibratedClassifierCV": Call(
        mended,
        {"y": "labels", "X": "raw", "w": "weight"},
        seldom=True,
        exact=False,
        foreign=True,
    ),
    "FunctionCorrection": of_estimator(
        FunctionCorrection(skcal.CalibrationErrorEstimator(skcal.Binning(3), "canonical"))
    ),
    "compare_risks": Call(compared, {"y": "labels", "X": "proba", "w": "weight"}),
    "CalibrationAccumulator": Call(accumulate, {**SAMPLE, "w": "weight of a batch"}),
    "CalibrationMonitor": Call(watch, {**SAMPLE, "w": "weight of a batch"}),
    "calibration_report": Call(
        reported,
        {key: SAMPLE[key] for key in ("y", "X", "labels", "notion")},
        seldom=True,
        exact=False,
    ),
    "normalize_proba": Call(lambda X: metrics.normalize_proba(X), {"X": "proba"}, lenient=True),
    "adjust_prevalence": Call(
        lambda X: prevalences(recalibration.adjust_prevalence, X, "new_prevalence"), {"X": "proba"}
    ),
    "estimate_prevalence": Call(
        lambda X, w=None: prevalences(recalibration.estimate_prevalence, X, **weighted(w)),
        {"X": "proba", "w": "weight"},
    ),
    "adjust_pvalues": Call(lambda p: hypothesis_tests.adjust_pvalues(p), {"p": "numbers"}),
    "e_benjamini_hochberg": Call(lambda e: monitoring.e_benjamini_hochberg(e), {"e": "numbers"}),
    "merge_e_values": Call(
        lambda e, w=None: monitoring.merge_e_values(e, **weighted(w)),
        {"e": "numbers", "w": "weight"},
    ),
    "RecalibrationMap.from_json": of_text(
        RecalibrationMap, lambda p, y: skcal.VectorScaling().fit(p, y)
    ),
    "Recalibrator.from_json": of_text(
        skcal.Recalibrator,
        lambda p, y: skcal.Recalibrator([skcal.VectorScaling()], cv=2, random_state=0).fit(p, y),
    ),
    "CalibrationMonitor.from_json": of_text(
        monitoring.CalibrationMonitor, lambda p, y: monitoring.CalibrationMonitor().update(p, y)
    ),
}
CALLS |= {
    f"datasets.{name}": Call(partial(sizes, getattr(datasets, name)), {"size": "size"})
    for name in ("make_dirichlet", "make_tempered")
}
CALLS |= dict(of_displays())
