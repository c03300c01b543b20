"""The numbers of a report, each from the public function that defines it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from skcal._running import recorded_warnings
from skcal.hypothesis_tests import monte_carlo_test, skce_test
from skcal.metrics import (
    bootstrap_interval,
    calibration_bins,
    expected_calibration_error,
    score_decomposition,
    sharpness,
    validation_measures,
)
from skcal.model_selection import CalibrationErrorSearchCV
from skcal.model_selection.error_text import error_facts
from skcal.model_selection.summary import as_dict
from skcal.notions import NOTIONS, resolve_notion
from skcal.report.cautions import caution
from skcal.report.figure import curve_of, decision_of, diagram_of
from skcal.report.parts import (
    BinnedError,
    Data,
    KernelError,
    Measures,
    Overview,
    Score,
    Settings,
    WorstBin,
)

_BY_CLASS = "log loss, one class against the rest"
# Work that takes about a second: pairs × columns (× resamples), samples × resamples.
_MONTE_CARLO_WORK = 5e10
_SPECTRAL_WORK = 1e10
_MONTE_CARLO_SAMPLES = 50_000
_CURVES = 199  # resamples whose curves are fitted


@dataclass
class Attempts:
    """Runs parts of a report; what fails and what skcal warns of is collected."""

    name: str
    verbose: bool | int = False
    messages: list[str] = field(default_factory=list)

    def __call__(self, what, function, *arguments):
        """Return the part, or None if the samples do not allow it."""
        if self.verbose:
            print(f"[calibration_report] {self.name}: {what}", flush=True)
        with recorded_warnings() as caught:
            try:
                result = function(*arguments)
            except ValueError as error:
                result = None
                self.messages.append(f"{what}: not estimated. {error}")
        said = [f"{what}: {one.message}" for one in caught]
        self.messages += [text for text in dict.fromkeys(said) if text not in self.messages]
        return result


def notions_of(data: Data, settings: Settings) -> list[str]:
    """Notions whose error is tuned; all of a single column are the same question."""
    more = ["canonical", "classwise"] if settings.search and data.proba.ndim == 2 else []
    return [settings.notion, *more]


def run_searches(data: Data, settings: Settings, attempt: Attempts) -> list:
    """A fitted search for each notion, or None."""
    return [
        attempt(f"risk-tuned {notion} error", fit_search, data, settings, notion)
        for notion in notions_of(data, settings)
    ]


def fit_search(data: Data, settings: Settings, notion, candidates=None):
    """Choose a function by its risk, or evaluate the one candidate."""
    part = data.searched(settings)
    return CalibrationErrorSearchCV(
        settings.candidates if candidates is None else candidates,
        notion,
        labels=part.classes,
        cv=settings.cv,
        outer_cv=settings.outer_cv,
        n_jobs=settings.n_jobs,
        verbose=settings.verbose,
        random_state=settings.random_state,
    ).fit(part.proba, part.labels)


def tuned_error(search, settings: Settings) -> dict:
    """``as_dict`` of a search with the lower bound at the level of the report."""
    facts = as_dict(search)
    one_step = facts["one_step"]
    if one_step is not None and one_step["lower_confidence_bound"] is not None:
        one_step["confidence_level"] = settings.confidence_level
        bound = search.lower_confidence_bound(settings.confidence_level)
        one_step["lower_confidence_bound"] = bound
        facts["l1"] = error_facts(search, "l1", settings.confidence_level)
    return facts


def measure(name: str, data: Data, settings: Settings, searches: list, attempt) -> Measures:
    """Compute all parts but the searches, which are fitted; None is one that failed."""
    tuned = [tuned_error(search, settings) for search in searches if search is not None]
    ece = attempt("ECE", _binned_error, data, settings)
    skce = [
        attempt(f"SKCE ({notion})", _kernel_error, data, settings, notion)
        for notion in _skce_notions(data, settings)
    ]
    mce = attempt("MCE", _worst_bin, data, settings)
    scores = [attempt(*score) for score in _scores(data, settings)]
    of_search = tuned[0]["l1"] if tuned else None
    diagram = attempt("reliability diagram", diagram_of, name, data, settings, ece, of_search)
    overview = _overview(data)
    return Measures(
        name=name,
        overview=overview,
        tuned=tuned,
        ece=ece,
        mce=mce,
        skce=[part for part in skce if part is not None],
        scores=[part for part in scores if part is not None],
        sharpness=sharpness(
            data.labels, data.proba, notion=_all_classes(data, settings), labels=data.classes
        ),
        curve=attempt("calibration curve", curve_of, data, settings),
        decision=attempt("decision curve", decision_of, data, settings),
        validation=attempt("validation", _validation, data, settings),
        without_bins=of_search or (diagram or {}).get("without_bins"),
        diagram=diagram,
        warnings=[*caution(data, overview, ece, tuned), *attempt.messages],
    )


def _skce_notions(data, settings):
    """The report's notion and "canonical", which for two columns would be "binary" twice."""
    if settings.notion.of_positive_class:
        return [settings.notion]
    return [settings.notion, resolve_notion("canonical", data.proba)]


def _all_classes(data, settings):
    """The notion of scores; a binary report shows of two columns what it shows of one."""
    own = settings.notion
    return own if own.of_positive_class else resolve_notion("classwise", data.proba)


def _overview(data) -> Overview:
    rows, n_classes = data.rows, len(data.classes)
    return Overview(
        n_samples=len(data.codes),
        classes=[plain(label) for label in data.classes.tolist()],
        base_rates=(np.bincount(data.codes, minlength=n_classes) / len(data.codes)).tolist(),
        mean_predictions=rows.mean(axis=0, dtype=np.float64).tolist(),
        accuracy=float(np.mean(rows.argmax(axis=1) == data.codes)),
        mean_confidence=float(rows.max(axis=1).mean(dtype=np.float64)),
    )


def plain(label):
    """A label as JSON can hold it."""
    is_number = isinstance(label, float) and np.isfinite(label)
    return label if is_number or isinstance(label, bool | int | str) else str(label)


def _binned_error(data, settings) -> BinnedError:
    options = {**settings.bins, "labels": data.classes}
    resampling = {
        "n_resamples": settings.n_resamples,
        "random_state": settings.random_state,
        "n_jobs": settings.n_jobs,
    }
    interval = bootstrap_interval(
        expected_calibration_error,
        data.labels,
        data.proba,
        confidence_level=settings.confidence_level,
        **options,
        **resampling,
    )
    test = monte_carlo_test(data.labels, data.proba, **options, **resampling)
    null: Any = test.null_distribution
    count = calibration_bins(data.labels, data.proba, **options).count
    return BinnedError(
        notion=settings.notion,
        estimate=interval.estimate,
        low=max(interval.low, 0.0),
        high=max(interval.high, 0.0),
        null_mean=float(null.mean()),
        null_limit=float(np.quantile(null, settings.confidence_level)),
        pvalue=test.pvalue,
        n_bins=len(count),
        strategy=settings.strategy,
        n_empty=int(np.count_nonzero(count == 0)),
        n_nearly_empty=int(np.count_nonzero((count > 0) & (count < 10))),
    )


def _worst_bin(data, settings) -> WorstBin:
    guard, level = settings.min_bin_samples, settings.confidence_level
    bins = calibration_bins(
        data.labels, data.proba, labels=data.classes, confidence_level=level, **settings.bins
    )
    row = bins.largest_gap(guard)
    columns = ("prediction", "frequency", "low", "high")
    return WorstBin(
        notion=settings.notion,
        estimate=float(abs(bins.gap[row, 0])),
        min_bin_samples=guard,
        left=float(bins.left[row]),
        right=float(bins.right[row]),
        count=int(bins.count[row]),
        n_left_out=int(np.count_nonzero((bins.count > 0) & (bins.count < guard))),
        n_bins=len(bins.count),
        strategy=settings.strategy,
        **{name: float(getattr(bins, name)[row, 0]) for name in columns},
    )


def _validation(data, settings) -> dict | None:
    """(estimate, low, high) by name, of predictions of one outcome; None for an end that is not."""
    if not settings.notion.of_positive_class:
        return None
    found = validation_measures(
        data.labels,
        data.proba,
        confidence_level=settings.confidence_level,
        n_resamples=min(settings.n_resamples, _CURVES),
        labels=data.classes,
        random_state=settings.random_state,
    )
    return {
        name: [value if np.isfinite(value) else None for value in measure]
        for name, measure in found.measures.items()
    }


def skce_options(n_samples: int, n_columns: int, n_resamples: int) -> dict:
    """Options of ``skce_test`` that take seconds: exact level where affordable."""
    pairs = n_samples**2 * n_columns
    if n_columns == 1:
        affordable = n_samples <= _MONTE_CARLO_SAMPLES
    else:
        affordable = pairs * n_resamples <= _MONTE_CARLO_WORK
    if affordable:
        method = "monte-carlo"
    elif n_columns == 1 or pairs <= _SPECTRAL_WORK:
        method = "spectral"
    else:
        return {"method": "block"}
    return {"method": method, "n_resamples": n_resamples}


def _kernel_error(data, settings, notion) -> KernelError:
    n_columns = 1 if notion.scalar else len(data.classes)
    test = skce_test(
        data.labels,
        data.proba,
        notion=notion,
        labels=data.classes,
        random_state=settings.random_state,
        n_jobs=settings.n_jobs,
        **skce_options(len(data.codes), n_columns, settings.n_resamples),
    )
    return KernelError(notion, float(test.estimate), test.pvalue, test.method)


def _scores(data, settings) -> list[tuple]:
    """Name, function and arguments of each score."""
    notion = _all_classes(data, settings)
    brier, log_loss = ("Brier score", _brier, data, notion), (_log_loss, data, notion)
    if notion.single:
        return [brier, ("log loss", *log_loss)]
    return [brier, ("log loss", _plain_log_loss, data), (_BY_CLASS, *log_loss)]


def _brier(data, notion) -> Score:
    return _decomposed("Brier score", data, notion, "brier")


def _log_loss(data, notion) -> Score:
    name = "log loss" if notion.single else _BY_CLASS
    return _decomposed(name, data, notion, "log-loss")


def _decomposed(name, data, notion, score) -> Score:
    options = {"score": score, "notion": notion, "labels": data.classes}
    parts = score_decomposition(data.labels, data.proba, **options)
    saved = parts.miscalibration, parts.discrimination, parts.uncertainty
    return Score(name, notion, parts.score, *saved)


def _plain_log_loss(data) -> Score:
    notion = NOTIONS["canonical"]
    options = {"notion": notion, "strategy": "median-variance", "labels": data.classes}
    parts = score_decomposition(data.labels, data.proba, score="log-loss", **options)
    return Score("log loss", notion, parts.score)
