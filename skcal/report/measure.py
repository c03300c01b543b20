"""The numbers of one set of predictions, each from the public function that defines it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from skcal._running import recorded_warnings
from skcal.displays import CalibrationCurveDisplay, ReliabilityDisplay
from skcal.displays.reliability_panel import ReliabilityPanel
from skcal.hypothesis_tests import monte_carlo_test, skce_test
from skcal.hypothesis_tests.result import CalibrationTestResult
from skcal.metrics import (
    bootstrap_interval,
    calibration_bins,
    decision_curve,
    expected_calibration_error,
    score_decomposition,
    sharpness,
    validation_measures,
)
from skcal.metrics.thresholds import DecisionCurve
from skcal.metrics.validation import ValidationMeasures
from skcal.model_selection import CalibrationErrorSearchCV
from skcal.model_selection.errors import error_facts
from skcal.model_selection.summary import as_dict
from skcal.notions import NOTIONS, Notion, resolve_notion
from skcal.report.words import cautions
from skcal.sample import Sample

_BY_CLASS = "log loss, one class against the rest"
# Work that takes about a second: pairs × columns (× resamples), samples × resamples.
_MONTE_CARLO_WORK = 5e10
_SPECTRAL_WORK = 1e10
_MONTE_CARLO_SAMPLES = 50_000
_CURVES = 199  # resamples whose curves are fitted


class Settings(NamedTuple):
    """How a report is made; the options of ``calibration_report``."""

    search: bool
    n_bins: int
    strategy: str
    min_bin_samples: int
    confidence_level: float
    n_resamples: int
    candidates: Any
    cv: Any
    outer_cv: Any
    max_search_samples: int | None
    n_jobs: int | None
    random_state: int
    verbose: bool | int = 0

    def bins(self, sample: Sample) -> dict:
        """The options of a function that bins the predictions of the sample."""
        options = {"n_bins": self.n_bins, "strategy": self.strategy}
        return {"notion": sample.notion, "labels": sample.classes, **options}

    @property
    def resampling(self) -> dict:
        """The options of a function that resamples."""
        return {
            "n_resamples": self.n_resamples,
            "random_state": self.random_state,
            "n_jobs": self.n_jobs,
        }

    def n_searched(self, n_samples: int) -> int:
        """How many of the samples the searches see."""
        most = self.max_search_samples
        return n_samples if most is None else min(most, n_samples)


@dataclass(frozen=True)
class Overview:
    """What was predicted and what happened."""

    n_samples: int
    classes: list
    base_rates: list[float]
    mean_predictions: list[float]
    accuracy: float
    mean_confidence: float


@dataclass(frozen=True)
class BinnedEce:
    """ECE with its bootstrap interval and what calibrated predictions would show."""

    notion: Notion
    estimate: float
    low: float
    high: float
    null_mean: float
    null_limit: float
    pvalue: float
    n_bins: int
    strategy: str
    n_empty: int
    n_nearly_empty: int


@dataclass(frozen=True)
class WorstBin:
    """MCE: the largest gap of the bins that hold enough samples."""

    notion: Notion
    estimate: float
    min_bin_samples: int
    left: float
    right: float
    count: int
    prediction: float
    frequency: float
    low: float
    high: float
    n_left_out: int
    n_bins: int
    strategy: str


@dataclass(frozen=True)
class Score:
    """A proper score = miscalibration - discrimination + uncertainty; None: no parts."""

    name: str
    notion: Notion
    score: float
    miscalibration: float | None = None
    discrimination: float | None = None
    uncertainty: float | None = None


@dataclass(frozen=True, eq=False)
class Measures:
    """Everything about one set of predictions; None is what could not be estimated.

    Attributes
    ----------
    name : str
    overview : Overview
    searches : dict of str to CalibrationErrorSearchCV
        The fitted searches behind the tuned errors.
    tuned : list of dict
        What each search found, as in the JSON of the command line, at the level of the report.
    ece : BinnedEce or None
    without_bins : dict or None
        The mean absolute error by the corrections of the first search, or of the diagram.
    mce : WorstBin or None
    skce : list of CalibrationTestResult
    scores : list of Score
    sharpness : float
    validation : ValidationMeasures or None
        Of predictions of one outcome, like the three that follow.
    curve : CalibrationCurveDisplay or None
    decision, at_prevalence : DecisionCurve or None
        The decision curve, and that of a single threshold, the prevalence.
    diagram : ReliabilityPanel or None
    warnings : list of str
    """

    name: str
    overview: Overview
    searches: dict[str, CalibrationErrorSearchCV] = field(repr=False)
    tuned: list[dict]
    ece: BinnedEce | None
    without_bins: dict | None
    mce: WorstBin | None
    skce: list[CalibrationTestResult]
    scores: list[Score]
    sharpness: float
    validation: ValidationMeasures | None
    curve: CalibrationCurveDisplay | None
    decision: DecisionCurve | None
    at_prevalence: DecisionCurve | None
    diagram: ReliabilityPanel | None
    warnings: list[str]


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
        texts = [f"{what}: {warning.message}" for warning in caught]
        self.messages += [text for text in dict.fromkeys(texts) if text not in self.messages]
        return result


def measure(name: str, sample: Sample, settings: Settings) -> Measures:
    """Compute all that a report says of one set of predictions."""
    attempt = Attempts(name, settings.verbose)
    searches = {
        notion: attempt(f"risk-tuned {notion} error", fit_search, sample, settings, notion)
        for notion in _searched_notions(sample, settings)
    }
    searches = {notion: search for notion, search in searches.items() if search is not None}
    tuned = [tuned_error(search, settings) for search in searches.values()]
    of_search = tuned[0]["l1"] if tuned else None
    ece = attempt("ECE", _binned_ece, sample, settings)
    skce = [
        attempt(f"SKCE ({notion})", _kernel_test, sample, settings, notion)
        for notion in _skce_notions(sample)
    ]
    mce = attempt("MCE", _worst_bin, sample, settings)
    scores = [attempt(score[0], _decomposed, sample, *score) for score in _asked_scores(sample)]
    diagram = attempt("reliability diagram", _diagram, name, sample, settings, ece, of_search)
    curve = attempt("calibration curve", _curve_display, name, sample, settings)
    decision, at_prevalence = attempt("decision curve", _decisions, sample, settings) or (None,) * 2
    validation = attempt("validation", _validated, sample, settings)
    overview, rows = _overview(sample), class_columns(sample)
    return Measures(
        name=name,
        overview=overview,
        searches=searches,
        tuned=tuned,
        ece=ece,
        mce=mce,
        skce=[part for part in skce if part is not None],
        scores=[part for part in scores if part is not None],
        sharpness=sharpness(
            sample.labels, sample.proba, notion=_all_classes(sample), labels=sample.classes
        ),
        curve=curve,
        decision=decision,
        at_prevalence=at_prevalence,
        validation=validation,
        without_bins=of_search or (None if diagram is None else diagram.without_bins),
        diagram=diagram,
        warnings=[*cautions(rows, sample.codes, overview, ece, tuned), *attempt.messages],
    )


def class_columns(sample: Sample) -> np.ndarray:
    """Probabilities with a column for each class."""
    p = sample.proba
    return np.column_stack([1 - p, p]) if p.ndim == 1 else p


def _overview(sample) -> Overview:
    rows, n_classes = class_columns(sample), len(sample.classes)
    return Overview(
        n_samples=len(rows),
        classes=[plain_label(label) for label in sample.classes.tolist()],
        base_rates=(np.bincount(sample.codes, minlength=n_classes) / len(rows)).tolist(),
        mean_predictions=rows.mean(axis=0, dtype=np.float64).tolist(),
        accuracy=float(np.mean(rows.argmax(axis=1) == sample.codes)),
        mean_confidence=float(rows.max(axis=1).mean(dtype=np.float64)),
    )


def plain_label(label):
    """A label as JSON can hold it."""
    is_number = isinstance(label, float) and np.isfinite(label)
    return label if is_number or isinstance(label, bool | int | str) else str(label)


# Tuned errors


def _searched_notions(sample, settings) -> list[str]:
    """Notions whose error is tuned; all of a single column are the same question."""
    more = ["canonical", "classwise"] if settings.search and sample.proba.ndim == 2 else []
    return [sample.notion, *more]


def fit_search(sample: Sample, settings: Settings, notion, candidates=None):
    """Choose a function by its risk on at most ``max_search_samples`` of the samples.

    Those are drawn without replacement and stay in their order.
    """
    size, n_samples = settings.n_searched(len(sample.codes)), len(sample.codes)
    if size < n_samples:
        rng = np.random.default_rng(settings.random_state)
        sample = sample.take(np.sort(rng.choice(n_samples, size=size, replace=False)))
    return CalibrationErrorSearchCV(
        settings.candidates if candidates is None else candidates,
        notion,
        labels=sample.classes,
        cv=settings.cv,
        outer_cv=settings.outer_cv,
        n_jobs=settings.n_jobs,
        verbose=settings.verbose,
        random_state=settings.random_state,
    ).fit(sample.proba, sample.labels)


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


# Errors of bins and kernels


def _binned_ece(sample, settings) -> BinnedEce:
    given, bins, resampling = _given(sample), settings.bins(sample), settings.resampling
    level = settings.confidence_level
    interval = bootstrap_interval(
        expected_calibration_error, *given, confidence_level=level, **bins, **resampling
    )
    test = monte_carlo_test(*given, **bins, **resampling)
    null: Any = test.null_distribution
    count = calibration_bins(*given, **bins).count
    return BinnedEce(
        notion=sample.notion,
        estimate=interval.estimate,
        low=max(interval.low, 0.0),
        high=max(interval.high, 0.0),
        null_mean=float(null.mean()),
        null_limit=float(np.quantile(null, level)),
        pvalue=test.pvalue,
        n_bins=len(count),
        strategy=settings.strategy,
        n_empty=int(np.count_nonzero(count == 0)),
        n_nearly_empty=int(np.count_nonzero((count > 0) & (count < 10))),
    )


def _given(sample) -> tuple[np.ndarray, np.ndarray]:
    """What public functions take first."""
    return sample.labels, sample.proba


def _worst_bin(sample, settings) -> WorstBin:
    guard, level = settings.min_bin_samples, settings.confidence_level
    bins = calibration_bins(*_given(sample), confidence_level=level, **settings.bins(sample))
    row = bins.largest_gap(guard)
    columns = ("prediction", "frequency", "low", "high")
    return WorstBin(
        notion=sample.notion,
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


def _skce_notions(sample):
    """The report's notion and "canonical", which for two columns would be "binary" twice."""
    if sample.notion.of_positive_class:
        return [sample.notion]
    return [sample.notion, resolve_notion("canonical", sample.proba)]


def _kernel_test(sample, settings, notion) -> CalibrationTestResult:
    n_columns = 1 if notion.scalar else len(sample.classes)
    return skce_test(
        *_given(sample),
        notion=notion,
        labels=sample.classes,
        random_state=settings.random_state,
        n_jobs=settings.n_jobs,
        **skce_options(len(sample.codes), n_columns, settings.n_resamples),
    )


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


# Scores


def _all_classes(sample):
    """The notion of scores; a binary report shows of two columns what it shows of one."""
    notion = sample.notion
    return notion if notion.of_positive_class else resolve_notion("classwise", sample.proba)


def _asked_scores(sample) -> list[tuple[str, Notion, str]]:
    """The name of each score in the report, its notion and its name in ``score_decomposition``."""
    notion = _all_classes(sample)
    brier = ("Brier score", notion, "brier")
    if notion.single:
        return [brier, ("log loss", notion, "log-loss")]
    vector = ("log loss", NOTIONS["canonical"], "log-loss")
    return [brier, vector, (_BY_CLASS, notion, "log-loss")]


def _decomposed(sample, name, notion, score) -> Score:
    """A score with its parts; that of whole vectors has none."""
    options = {"score": score, "notion": notion, "labels": sample.classes}
    if not notion.scalar:
        parts = score_decomposition(*_given(sample), strategy="median-variance", **options)
        return Score(name, notion, parts.score)
    parts = score_decomposition(*_given(sample), **options)
    saved = parts.miscalibration, parts.discrimination, parts.uncertainty
    return Score(name, notion, parts.score, *saved)


# Predictions of one outcome, and figures


def _validated(sample, settings) -> ValidationMeasures | None:
    if not sample.notion.of_positive_class:
        return None
    return validation_measures(
        *_given(sample),
        confidence_level=settings.confidence_level,
        n_resamples=min(settings.n_resamples, _CURVES),
        labels=sample.classes,
        random_state=settings.random_state,
    )


def _curve_display(name, sample, settings) -> CalibrationCurveDisplay | None:
    """The smooth curve of predictions of one outcome with its limits and a histogram."""
    if not sample.notion.of_positive_class:
        return None
    level = settings.confidence_level
    options = {"labels": sample.classes, "confidence_level": level, "name": name}
    return CalibrationCurveDisplay.from_predictions(*_given(sample), plot=False, **options)


def _decisions(sample, settings) -> tuple[DecisionCurve, DecisionCurve] | None:
    """The decision curve of predictions of one outcome, and its limits at the prevalence."""
    rate = float(np.mean(sample.codes == 1))
    if not (sample.notion.of_positive_class and 0 < rate < 1):
        return None
    options = {"labels": sample.classes, "confidence_level": settings.confidence_level}
    whole = decision_curve(*_given(sample), **options)
    return whole, decision_curve(*_given(sample), thresholds=[rate], **options)


def _diagram(name, sample, settings, ece, of_search) -> ReliabilityPanel:
    """The panel of a reliability display, with the interval, limit and error of the table."""
    display = ReliabilityDisplay.from_predictions(
        *_given(sample),
        confidence_level=settings.confidence_level,
        n_resamples=settings.n_resamples,
        random_state=settings.random_state,
        name=name,
        plot=False,
        **settings.bins(sample),
    )
    [panel] = display.panels
    if ece is not None:
        panel = replace(panel, error_interval=(ece.low, ece.high), null_error=ece.null_limit)
    return panel if of_search is None else replace(panel, without_bins=of_search)
