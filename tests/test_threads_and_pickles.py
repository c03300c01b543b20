"""Threads, processes and pickles: the same bits wherever a fitted object goes."""

import importlib
import inspect
import pickle
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from joblib import parallel_config
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from threadpoolctl import threadpool_limits

import skcal
from skcal import (
    Binning,
    CalibrationErrorEstimator,
    CalibrationErrorSearchCV,
    DirichletKernelDensity,
    KroneckerKernelRidge,
    PlugIn,
    RecalibratedClassifierCV,
    Recalibrator,
    Stacking,
    TemperatureScaling,
    TwoStepKernelRidge,
    Zero,
    calibration_report,
    hypothesis_tests,
    metrics,
)
from skcal.model_selection import ClassifierProbabilities, compare_risks
from skcal.recalibration import (
    BetaCalibration,
    ClassBasedTemperatureScaling,
    DirichletCalibration,
    EnsembleTemperatureScaling,
    IsotonicCalibration,
    LogProbabilities,
    MatrixScaling,
    ProbabilityInteractions,
    QuadraticScaling,
    SplineScaling,
    VectorScaling,
    VennAbers,
)

CANDIDATES = [(Zero(), {}), (TwoStepKernelRidge(), {"alpha": [1e-3, 1e-2]}), (Binning(3), {})]
RIDGE = TwoStepKernelRidge(1e-2)
LOGISTIC = make_pipeline(LogProbabilities(), LogisticRegression(C=0.1))
MAPS = [skcal.TemperatureScaling(), skcal.recalibration.MatrixScaling(C=0.1, structured=True)]
FUNCTIONS = [
    Zero(),
    Binning(5, debias=True),
    Binning(strategy="median-variance", min_samples=20),
    DirichletKernelDensity(0.05),
    KroneckerKernelRidge(1e-3),
    RIDGE,
    PlugIn(TemperatureScaling()),
    PlugIn(ClassBasedTemperatureScaling()),
    PlugIn(make_pipeline(ProbabilityInteractions(), Ridge()), equivariant=True),
    PlugIn(MatrixScaling(structured=True)),
    PlugIn(VectorScaling(structured=True)),
    PlugIn(DirichletCalibration(C=0.1)),
    PlugIn(EnsembleTemperatureScaling()),
    PlugIn(LOGISTIC),
    Stacking([Binning(5), RIDGE]),
]
SCALAR_FUNCTIONS = [
    PlugIn(SplineScaling(4)),
    PlugIn(BetaCalibration()),
    PlugIn(QuadraticScaling()),
    PlugIn(IsotonicCalibration()),
    PlugIn(VennAbers()),
    Binning(5, "quantile"),
]


@pytest.fixture(scope="module")
def data(tempered):
    proba, labels = tempered
    return proba[:200], labels[:200]


@pytest.fixture(scope="module")
def fitted(data):
    """Every public estimator, fitted, by name."""
    P, y = data
    estimators = {
        f"{notion} {number} {function}": CalibrationErrorEstimator(function, notion).fit(P, y)
        for functions, notion in ((FUNCTIONS, "canonical"), (SCALAR_FUNCTIONS, "confidence"))
        for number, function in enumerate(functions)
    }
    search = CalibrationErrorSearchCV(CANDIDATES, "top-label", cv=3, random_state=0)
    estimators["search"] = search.fit(P, y)
    mended = RecalibratedClassifierCV(GaussianNB(), Recalibrator(MAPS, random_state=0), cv=3)
    estimators["recalibrated classifier"] = mended.fit(P, y)
    return estimators


def test_every_public_estimator_is_fitted_here(fitted):
    shown = " ".join(map(repr, fitted.values()))
    named = {name: getattr(skcal, name) for name in skcal.__all__}
    fits = {
        name for name, thing in named.items() if inspect.isclass(thing) and hasattr(thing, "fit")
    }
    assert {name for name in fits if f"{name}(" not in shown} == set()


def test_threads_predict_the_same_bits(fitted, data):
    P, y = data
    alone = {name: (e.predict(P).tobytes(), e.score(P, y)) for name, e in fitted.items()}

    def ask(name):
        return name, (fitted[name].predict(P).tobytes(), fitted[name].score(P, y))

    with ThreadPoolExecutor(8) as pool:
        for name, found in pool.map(ask, [*fitted] * 2):
            assert found == alone[name], name


def test_threads_fit_and_test_the_same_bits(data):
    P, y = data

    def work(_):
        estimator = CalibrationErrorEstimator(KroneckerKernelRidge(1e-3), "classwise").fit(P, y)
        test = hypothesis_tests.monte_carlo_test(y, P, n_resamples=39, random_state=0)
        ece = metrics.expected_calibration_error(y, P, strategy="quantile")
        return estimator.predict(P).tobytes(), test.null_distribution.tobytes(), ece

    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(work, range(8)))) == 1


def results(P, y):
    """Objects that functions return."""
    halves = slice(0, 100), slice(100, None)
    estimators = [
        CalibrationErrorEstimator(function, "confidence").fit(P[halves[0]], y[halves[0]])
        for function in (Binning(5), TwoStepKernelRidge())
    ]
    options = {"n_resamples": 39, "random_state": 0}
    return {
        "monte_carlo_test": hypothesis_tests.monte_carlo_test(y, P, **options),
        "cox_test": hypothesis_tests.cox_test(y, P),
        "compare_calibration": hypothesis_tests.compare_calibration(y, P, P[::-1]),
        "bootstrap_interval": metrics.bootstrap_interval(
            metrics.expected_calibration_error, y, P, **options
        ),
        "calibration_bins": metrics.calibration_bins(y, P),
        "score_decomposition": metrics.score_decomposition(y, P),
        "cox_recalibration": metrics.cox_recalibration(y, P),
        "compare_risks": compare_risks(*estimators, P[halves[1]], y[halves[1]]),
        "risk": estimators[1].risk(P, y),
        "one_step": estimators[1].one_step(P, y),
        "confidence_interval": estimators[1].one_step(P, y).confidence_interval(),
        "CalibrationTable": skcal.CalibrationTable().update(y, P),
        "get_scorer": metrics.get_scorer("neg_expected_calibration_error"),
        "report": calibration_report(y, P, n_resamples=19),
    }


SCRIPT = """
    import pickle, sys
    with open(sys.argv[1], "rb") as file:
        cases, P = pickle.load(file)
    for name, (thing, shown, bits) in cases.items():
        assert repr(thing) == shown, (name, repr(thing), shown)
        assert bits is None or thing.predict(P).tobytes() == bits, name
    from skcal.metrics import expected_calibration_error
    table = cases["CalibrationTable"][0]
    scorer = cases["get_scorer"][0]
    classifier, X, y, score = cases["classifier"][0]
    assert scorer(classifier, X, y) == score
    print(len(cases), expected_calibration_error(table).hex())
"""


def test_pickles_load_in_a_new_process_and_predict_the_same_bits(fitted, data, tmp_path):
    P, y = data
    X = np.log(P + 1e-3)
    classifier = GaussianNB().fit(X, y)
    probabilities = ClassifierProbabilities(GaussianNB()).fit(X, y)
    np.testing.assert_array_equal(
        pickle.loads(pickle.dumps(probabilities)).transform(X), probabilities.transform(X)
    )
    made = results(P, y)
    scored = classifier, X, y, made["get_scorer"](classifier, X, y)
    cases = {name: (one, repr(one), one.predict(P).tobytes()) for name, one in fitted.items()}
    cases |= {name: (one, repr(one), None) for name, one in made.items()}
    cases["classifier"] = scored, repr(scored), None
    path = tmp_path / "cases.pickle"
    path.write_bytes(pickle.dumps((cases, P)))
    command = [sys.executable, "-W", "error", "-c", textwrap.dedent(SCRIPT), str(path)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    ece = metrics.expected_calibration_error(made["CalibrationTable"])
    assert done.stdout.split() == [str(len(cases)), ece.hex()]


# Workers


def searched(n_jobs, P, y):
    scaling = PlugIn(skcal.TemperatureScaling())
    several = [scaling, Stacking([scaling, Binning(3)]), DirichletKernelDensity(0.05)]
    answers = []
    for candidates, options in (
        (CANDIDATES, {"cv": 2, "outer_cv": 2}),
        (several, {"cv": 3, "n_repeats": 2}),
    ):
        search = CalibrationErrorSearchCV(candidates, "classwise", random_state=0, n_jobs=n_jobs)
        search.set_params(**options).fit(P, y)
        answers += [search.squared_error_, search.one_step_squared_error_, search.best_risk_]
        answers += [*search.cv_results_["mean_test_score"], *search.predict(P), search.summary()]
    return answers


def reported(n_jobs, P, y):
    options = {"n_resamples": 39, "random_state": 0}
    report = calibration_report(y, P, n_jobs=n_jobs, **options)
    assert report.settings.pop("n_jobs") == n_jobs
    return [report.to_json()]


def bootstrapped(n_jobs, P, y):
    ece = metrics.expected_calibration_error
    options = {"n_resamples": 39, "random_state": 0, "strategy": "quantile"}
    return metrics.bootstrap_interval(ece, y, P, n_jobs=n_jobs, **options).distribution


def recalibrated(n_jobs, P, y):
    return Recalibrator(MAPS, random_state=0, n_jobs=n_jobs).fit(P, y).predict_proba(P).ravel()


def recalibrated_classifier(n_jobs, P, y):
    mended = RecalibratedClassifierCV(GaussianNB(), Recalibrator(MAPS, random_state=0), cv=3)
    return mended.set_params(n_jobs=n_jobs).fit(P, y).predict_proba(P).ravel()


def of_test(name, with_feature=False, **options):
    def run(n_jobs, P, y):
        test = getattr(hypothesis_tests, name)
        arguments = (y, P, P[:, 0]) if with_feature else (y, P)
        return test(
            *arguments, n_resamples=39, random_state=0, n_jobs=n_jobs, **options
        ).null_distribution

    return run


WITH_WORKERS = {
    "CalibrationErrorSearchCV": searched,
    "Recalibrator": recalibrated,
    "RecalibratedClassifierCV": recalibrated_classifier,
    "calibration_report": reported,
    "bootstrap_interval": bootstrapped,
    "monte_carlo_test": of_test("monte_carlo_test", notion="top-label"),
    "skce_test": of_test("skce_test", notion="canonical"),
    "mean_embedding_test": of_test("mean_embedding_test", notion="canonical"),
    "risk_test": of_test("risk_test"),
    "scan_test": of_test("scan_test", notion="confidence"),
    "calibration_test": of_test("calibration_test", notion="canonical"),
    "segment_test": of_test("segment_test", with_feature=True),
    "bias_curve": of_test("bias_curve", with_feature=True),
}


def test_everything_that_takes_workers_is_tested_with_two():
    packages = [skcal, metrics, hypothesis_tests, importlib.import_module("skcal.displays")]
    public = {name: getattr(package, name) for package in packages for name in package.__all__}
    takes = {name for name, one in public.items() if "n_jobs" in inspect.signature(one).parameters}
    assert takes == set(WITH_WORKERS)


@pytest.mark.parametrize("name", WITH_WORKERS)
def test_two_workers_give_the_bits_of_one(name, data):
    data = [one[:100] for one in data]
    with threadpool_limits(1):  # the threads of BLAS change the order of its sums
        alone = list(WITH_WORKERS[name](1, *data))
        for options in ({"backend": "threading"}, {"backend": "loky", "inner_max_num_threads": 1}):
            with parallel_config(**options):
                assert list(WITH_WORKERS[name](2, *data)) == alone
