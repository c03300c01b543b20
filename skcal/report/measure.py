"""The numbers of one set of predictions, each from the public function that defines it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from skcal._groups import tail_quantile
from skcal._matrices import two_columns
from skcal._running import recorded_warnings
from skcal._validation import is_significant
from skcal.displays import CalibrationCurveDisplay
from skcal.displays.base import problem_titles, titled
from skcal.displays.reliability_panel import ReliabilityPanel, make_panel, sides_of
from skcal.hypothesis_tests import (
    calibration_test,
    equivalence_test,
    monte_carlo_test,
    scan_test,
)
from skcal.hypothesis_tests.equivalence import EquivalenceTestResult
from skcal.hypothesis_tests.joint import JointTestResult
from skcal.hypothesis_tests.scan import ScanTestResult
from skcal.metrics import (
    bootstrap_interval,
    calibration_bins,
    decision_curve,
    expected_calibration_error,
    score_decomposition,
    sharpness,
    validation_measures,
)
from skcal.metrics.cross_fitted import ece_without_bins
from skcal.metrics.thresholds import DecisionCurve
from skcal.metrics.validation import CURVE_DISTANCES, ValidationMeasures
from skcal.model_selection import CalibrationErrorSearchCV
from skcal.model_selection.summary import as_dict
from skcal.notions import NOTIONS, Notion, resolve_notion
from skcal.report.words import cautions, sparse_bins
from skcal.sample import Sample

_BY_CLASS = "log loss, one class against the rest"
_CURVES = 199  # resamples whose curves are fitted
_LIMIT, _SHARE_OF_RATE = 0.05, 0.2  # of the certificate: an error, or a share of the rarer outcome


class Settings(NamedTuple):
    """How a report is made; the options of ``calibration_report``."""

    search: bool
    n_bins: int
    strategy: str
    max_error: float | None
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
        return {**asked(sample), "n_bins": self.n_bins, "strategy": self.strategy}

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
    """What was predicted and what happened; the ends are of what the notion is about.

    ``n_groups`` is None where all samples are independent. ``effective_size`` is (Σw)² / Σw² where
    weights differ, by which shares and means are, else None. ``of_shares`` tells whether outcomes
    are shares or votes, whose events are not whole samples.
    """

    n_samples: int
    n_groups: int | None
    effective_size: float | None
    classes: list
    base_rates: list[float]
    mean_predictions: list[float]
    accuracy: float
    mean_confidence: float
    smallest: float
    largest: float
    of_shares: bool


@dataclass(frozen=True)
class IntervalEstimate:
    """An error with an interval that holds it; from 0 unless the verdict is "miscalibrated"."""

    notion: Notion
    estimate: float
    low: float
    high: float


@dataclass(frozen=True)
class BinnedEce(IntervalEstimate):
    """ECE with its bootstrap interval and what calibrated predictions would show."""

    null_mean: float
    null_limit: float
    n_bins: int
    strategy: str
    n_empty: int
    n_nearly_empty: int


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
    test : JointTestResult or None
        The test that decides the verdict.
    scan : ScanTestResult or None
        Where predictions are miscalibrated.
    certificate : EquivalenceTestResult or None
        How large the cutoff calibration error may be.
    without_bins : IntervalEstimate or None
        ECE without bins.
    ece : BinnedEce or None
    scores : list of Score
    sharpness : float
    validation : ValidationMeasures or None
        Of predictions of one outcome, like the three that follow.
    curve : CalibrationCurveDisplay or None
    decision, at_prevalence : DecisionCurve or None
        The decision curve, and that of a single threshold, the prevalence.
    searches : dict of str to CalibrationErrorSearchCV
        The fitted searches behind the tuned errors.
    tuned : list of dict
        What each search found, as in the JSON of the command line, at the level of the report.
    diagram : ReliabilityPanel or None
    cautions, warnings : list of str
        From what every number suffers, and what is said of single ones.
    """

    name: str
    overview: Overview
    test: JointTestResult | None
    scan: ScanTestResult | None
    certificate: EquivalenceTestResult | None
    without_bins: IntervalEstimate | None
    ece: BinnedEce | None
    scores: list[Score]
    sharpness: float
    validation: ValidationMeasures | None
    curve: CalibrationCurveDisplay | None
    decision: DecisionCurve | None
    at_prevalence: DecisionCurve | None
    searches: dict[str, CalibrationErrorSearchCV] = field(repr=False)
    tuned: list[dict]
    diagram: ReliabilityPanel | None
    cautions: list[str]
    warnings: list[str]

    def rejects(self, settings) -> bool:
        """Whether calibration is refuted at the level of the report: the verdict."""
        test, level = self.test, settings["confidence_level"]
        return test is not None and is_significant(test.pvalue, level)


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


def measure(
    name: str,
    sample: Sample,
    settings: Settings,
    test: JointTestResult | None = None,
    *,
    of_part: bool = False,
) -> Measures:
    """Compute all that a report says of one set of predictions, which may be tested already.

    Errors of a part of the samples are tuned only if the settings ask for more searches, and the
    distances of its curve have no intervals.
    """
    attempt = Attempts(name, settings.verbose)
    test = test or attempt("test", tested, calibration_test, sample, settings)
    refuted = test is not None and is_significant(test.pvalue, settings.confidence_level)
    scan = attempt("ranges", tested, scan_test, sample, settings)
    certificate = attempt("certificate", _certificate, sample, settings)
    facts = attempt("ECE without bins", _without_bins, sample, settings)
    ece = attempt("ECE", _binned_ece, sample, settings, refuted)
    scores = [attempt(score[0], _decomposed, sample, *score) for score in _asked_scores(sample)]
    shown = np.nan if scan is None else scan.pvalue, scan.ranges if refuted and scan else []
    if test is not None:
        shown = test.pvalue, shown[1]
    diagram = attempt("reliability diagram", _diagram, name, sample, settings, *shown, facts)
    curve = attempt("calibration curve", _curve_display, name, sample, settings)
    decision, at_prevalence = attempt("decision curve", _decisions, sample, settings) or (None,) * 2
    n_curves = None if of_part else min(settings.n_resamples, _CURVES)
    validation = attempt("validation", _validated, sample, settings, refuted, n_curves)
    searches = {
        notion: attempt(f"risk-tuned {notion} error", fit_search, sample, settings, notion)
        for notion in (
            _searched_notions(sample, settings) if settings.search or not of_part else []
        )
    }
    searches = {notion: search for notion, search in searches.items() if search is not None}
    tuned = [tuned_error(search, settings, refuted) for search in searches.values()]
    overview = _overview(sample)
    return Measures(
        name=name,
        overview=overview,
        test=test,
        scan=scan,
        certificate=certificate,
        without_bins=None if facts is None else _error_with_interval(facts, sample, refuted),
        ece=ece,
        scores=[part for part in scores if part is not None],
        sharpness=sharpness(
            sample.y_true,
            sample.proba,
            notion=_all_classes(sample),
            labels=sample.classes,
            **weighted(sample),
        ),
        validation=validation,
        curve=curve,
        decision=decision,
        at_prevalence=at_prevalence,
        searches=searches,
        tuned=tuned,
        diagram=diagram,
        cautions=cautions(two_columns(sample.proba), sample.happened, overview),
        warnings=[*filter(None, [sparse_bins(ece)]), *attempt.messages],
    )


def _overview(sample) -> Overview:
    rows, own = two_columns(sample.proba), weighted(sample).get("sample_weight")
    [problem] = sample.problems()
    n_groups = 0 if sample.groups is None else len(np.unique(sample.groups.codes))
    return Overview(
        n_samples=len(rows),
        n_groups=n_groups if 0 < n_groups < len(rows) else None,
        classes=[plain_label(label) for label in sample.classes.tolist()],
        effective_size=None if own is None else float(own.sum() ** 2 / (own @ own)),
        base_rates=sample.frequencies.tolist(),
        mean_predictions=np.average(rows, axis=0, weights=sample.weight).tolist(),
        accuracy=sample.accuracy,
        mean_confidence=float(np.average(rows.max(axis=1), weights=sample.weight)),
        smallest=float(problem.features.min()),
        largest=float(problem.features.max()),
        of_shares=sample.outcomes is not None,
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


def fit_search(sample: Sample, settings: Settings, notion):
    """Choose a function by its risk on at most ``max_search_samples`` of the samples.

    Those are drawn without replacement and stay in their order.
    """
    size, n_samples = settings.n_searched(len(sample.codes)), len(sample.codes)
    if size < n_samples:
        rng = np.random.default_rng(settings.random_state)
        sample = sample.take(np.sort(rng.choice(n_samples, size=size, replace=False)))
    return CalibrationErrorSearchCV(
        settings.candidates,
        notion,
        labels=sample.classes,
        cv=settings.cv,
        outer_cv=settings.outer_cv,
        n_jobs=settings.n_jobs,
        verbose=settings.verbose,
        random_state=settings.random_state,
    ).fit(sample.proba, sample.y_true, **beside(sample))


def tuned_error(search, settings: Settings, refuted: bool) -> dict:
    """``as_dict`` of a search with the lower bound at the level of the report.

    The bound is 0 unless the verdict is that calibration is refuted.
    """
    facts = as_dict(search)
    one_step = facts["one_step"]
    if one_step is not None and one_step["lower_confidence_bound"] is not None:
        one_step["confidence_level"] = settings.confidence_level
        bound = search.lower_confidence_bound(settings.confidence_level)
        one_step["lower_confidence_bound"] = bound if refuted else min(bound, 0.0)
    return facts


# The verdict, the certificate and errors


def asked(sample: Sample) -> dict:
    """The notion and the classes of the columns, for public functions."""
    return {"notion": sample.notion, "labels": sample.classes}


def _given(sample) -> tuple[np.ndarray, np.ndarray]:
    """What public functions take first."""
    return sample.y_true, sample.proba


def weighted(sample) -> dict:
    """The weights of samples where they differ, for public functions, which count votes again."""
    weight = sample.weight
    if sample.votes is not None and not np.isnan(sample.votes).any():
        weight = np.divide(weight, sample.votes, out=np.zeros(len(weight)), where=weight > 0)
    counted = weight[weight > 0]
    same = len(counted) == len(weight) and np.ptp(counted) <= 1e-12 * counted.max()
    return {} if same else {"sample_weight": weight}


def beside(sample) -> dict:
    """Weights, and the groups of samples that depend on each other, for public functions."""
    groups = {} if sample.groups is None else {"groups": sample.groups.codes}
    return {**weighted(sample), **groups}


def tested(test, sample, settings):
    """The result of a test of calibration, as its public function gives it."""
    options = {**asked(sample), **beside(sample), **settings.resampling}
    if test is scan_test:
        options["confidence_level"] = settings.confidence_level
    return test(*_given(sample), **options)


def _certificate(sample, settings) -> EquivalenceTestResult:
    """Bounds of the cutoff error, and whether it is below the limit that the rate suggests."""
    limit = settings.max_error
    if limit is None:
        [problem] = sample.problems()
        share = float(np.average(problem.outcomes[:, 0], weights=problem.weight))
        rate = min(share, 1 - share) or 1.0
        limit = min(_LIMIT, float(f"{_SHARE_OF_RATE * rate:.1g}"))
    return equivalence_test(
        *_given(sample),
        limit=limit,
        confidence_level=settings.confidence_level,
        **asked(sample),
        **beside(sample),
    )


def _interval(estimate, low, high, refuted) -> dict[str, float]:
    """An interval from 0 unless calibration is refuted; noise may raise the estimate above it."""
    low = min(max(float(low), 0.0), estimate) if refuted else 0.0
    return {"estimate": float(estimate), "low": low, "high": float(np.clip(high, low, 1.0))}


def _without_bins(sample, settings) -> dict:
    options = {"random_state": settings.random_state}
    return ece_without_bins(sample, **options, confidence_level=settings.confidence_level)


def _error_with_interval(facts, sample, refuted) -> IntervalEstimate:
    level, estimate = facts["confidence_level"], facts["estimate"]
    half = tail_quantile((1 - level) / 2, sample.weight, sample.groups)
    half *= facts["standard_error"] or np.inf
    return IntervalEstimate(
        sample.notion, **_interval(estimate, estimate - half, estimate + half, refuted)
    )


def _binned_ece(sample, settings, refuted) -> BinnedEce:
    given, bins, resampling = _given(sample), settings.bins(sample), settings.resampling
    level = settings.confidence_level
    resampling |= beside(sample)
    interval = bootstrap_interval(
        expected_calibration_error, *given, confidence_level=level, **bins, **resampling
    )
    null: Any = monte_carlo_test(*given, **bins, **resampling).null_distribution
    count = calibration_bins(*given, **bins).count
    return BinnedEce(
        notion=sample.notion,
        **_interval(interval.estimate, interval.low, interval.high, refuted),
        null_mean=float(null.mean()),
        null_limit=float(np.quantile(null, level)),
        n_bins=len(count),
        strategy=settings.strategy,
        n_empty=int(np.count_nonzero(count == 0)),
        n_nearly_empty=int(np.count_nonzero((count > 0) & (count < 10))),
    )


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
    options = {"score": score, "notion": notion, "labels": sample.classes, **weighted(sample)}
    if not notion.scalar:
        parts = score_decomposition(*_given(sample), strategy="median-variance", **options)
        return Score(name, notion, parts.score)
    parts = score_decomposition(*_given(sample), **options)
    saved = parts.miscalibration, parts.discrimination, parts.uncertainty
    return Score(name, notion, parts.score, *saved)


# Predictions of one outcome, and figures


def _validated(sample, settings, refuted, n_curves) -> ValidationMeasures | None:
    if not sample.notion.of_positive_class:
        return None
    found = validation_measures(
        *_given(sample),
        confidence_level=settings.confidence_level,
        n_resamples=n_curves,
        labels=sample.classes,
        random_state=settings.random_state,
        **beside(sample),
    )
    if refuted or n_curves is None or math.isnan(found.ici.low):
        return found
    return replace(
        found, **{name: getattr(found, name)._replace(low=0.0) for name in CURVE_DISTANCES}
    )


def _curve_display(name, sample, settings) -> CalibrationCurveDisplay | None:
    """The smooth curve of predictions of one outcome with its limits and a histogram."""
    if not sample.notion.of_positive_class:
        return None
    level = settings.confidence_level
    options = {"labels": sample.classes, "confidence_level": level, "name": name, **beside(sample)}
    return CalibrationCurveDisplay.from_predictions(*_given(sample), plot=False, **options)


def _decisions(sample, settings) -> tuple[DecisionCurve, DecisionCurve] | None:
    """The decision curve of predictions of one outcome, and its limits at the prevalence."""
    if not sample.notion.of_positive_class:
        return None
    rate = float(sample.frequencies[1])
    if not 0 < rate < 1:
        return None
    options = {"labels": sample.classes, "confidence_level": settings.confidence_level}
    options |= beside(sample)
    whole = decision_curve(*_given(sample), **options)
    return whole, decision_curve(*_given(sample), thresholds=[rate], **options)


def _diagram(name, sample, settings, pvalue, ranges, facts) -> ReliabilityPanel:
    """The panel of a reliability display, with the ranges and the p-value of the verdict."""
    [problem], [title], [sides] = sample.problems(), problem_titles(sample), sides_of(sample)
    told = {"pvalue": pvalue, "ranges": ranges, "without_bins": facts}
    level = settings.confidence_level
    return make_panel(titled(name, title), problem, sides=sides, level=level, **told)
