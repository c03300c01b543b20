"""The numbers of one set of predictions, each from the public function that defines it."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, field, replace
from functools import partial
from inspect import signature
from typing import Any, NamedTuple

import numpy as np

from skcal._running import one_blas_thread
from skcal._show import as_data
from skcal.choice import CalibrationErrorSearchCV
from skcal.displays import CalibrationCurveDisplay, ReliabilityPanel
from skcal.hypothesis_tests import EquivalenceTestResult, equivalence_test, monte_carlo_test
from skcal.hypothesis_tests.joint import JointTestResult
from skcal.metrics import (
    BinRule,
    CalibrationBins,
    expected_calibration_error,
    score_decomposition,
    sharpness,
)
from skcal.metrics.bootstrap import bootstrap_interval
from skcal.metrics.thresholds import DecisionCurve, decision_curve
from skcal.metrics.validation import (
    Measure,
    ValidationMeasures,
    observed_expected_ratio,
    validation_of,
)
from skcal.notions import Notion, resolve_notion
from skcal.report.findings import Attempts, Findings, ReportSamples, find
from skcal.report.words import VALIDATION, cautions, rounding, sparse_bins, without_rows
from skcal.sample import Sample

_BY_CLASS = "log loss, one against the rest"
_CURVES = 199  # resamples whose curves are fitted


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
    resolution: float | str | None = "auto"
    verbose: bool | int = 0
    metrics: Any = None

    @property
    def resampling(self) -> dict:
        """The options of a function that resamples."""
        return {
            "n_resamples": self.n_resamples,
            "random_state": self.random_state,
            "n_jobs": self.n_jobs,
        }

    def n_searched(self, n_samples: int) -> int:
        """The number of samples that the searches use."""
        most = self.max_search_samples
        return n_samples if most is None else min(most, n_samples)


@dataclass(frozen=True)
class BinnedEce:
    """ECE with its bootstrap interval and what calibrated predictions would show.

    The interval is from 0 unless the verdict is "miscalibrated".
    """

    notion: Notion
    estimate: float
    low: float
    high: float
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


@dataclass(frozen=True)
class OwnMetric:
    """A user's metric with its bootstrap interval."""

    name: str
    notion: Notion
    estimate: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class Measures(Findings):
    """Everything about one set of predictions; None is what could not be estimated.

    Attributes
    ----------
    cutoff : EquivalenceTestResult or None
        How large the cutoff calibration error may be.
    ece : BinnedEce or None
    scores : list of Score
    sharpness : float or None
    own : list of OwnMetric
        The metrics that were passed.
    ratio : Measure or None
        O/E of predictions of one outcome, however few events there are.
    validation : ValidationMeasures or None
        Of predictions of one outcome, like the three that follow.
    curve : CalibrationCurveDisplay or None
    decision, at_prevalence : DecisionCurve or None
        The decision curve, and that of a single threshold, the prevalence.
    searches : dict of str to CalibrationErrorSearchCV
        The fitted searches behind the RMS errors.
    tuned : list of dict
        What each search found, as in the JSON of the command line, at the level of the report.
    diagram : ReliabilityPanel or None
    cautions, warnings : list of str
        From what every number suffers, and what is said of single ones.
    """

    cutoff: EquivalenceTestResult | None
    ece: BinnedEce | None
    scores: list[Score]
    sharpness: float | None
    own: list[OwnMetric]
    ratio: Measure | None
    validation: ValidationMeasures | None
    curve: CalibrationCurveDisplay | None
    decision: DecisionCurve | None
    at_prevalence: DecisionCurve | None
    searches: dict[str, CalibrationErrorSearchCV] = field(repr=False)
    tuned: list[dict]
    diagram: ReliabilityPanel | None
    cautions: list[str]
    warnings: list[str]

    def _data(self) -> dict[str, Any]:
        data = as_data(vars(self) | {"at_prevalence": None, "searches": None})
        del data["at_prevalence"], data["searches"]  # whose numbers are in "tuned"
        if self.at_prevalence is not None:
            data["decision"]["at_prevalence"] = at_threshold(self.at_prevalence)
        return data


def at_threshold(curve: DecisionCurve) -> list[float]:
    """The only threshold of a decision curve, and its net benefit with limits."""
    columns = curve.thresholds, curve.net_benefit, curve.low, curve.high
    return [float(column[0]) for column in columns]


@one_blas_thread()  # many products are small
def measure(
    name: str,
    about: ReportSamples,
    settings: Settings,
    test: JointTestResult | None = None,
    *,
    tolerance: float | None = None,
    part_of: Measures | None = None,
) -> Measures:
    """Compute all that a report says of one set of predictions, which may be tested already.

    Errors of a part of all samples are tuned only if the settings ask for more searches, and the
    distances of its curve have no intervals. Its axis is that of all. Sizes of errors are beside
    ``tolerance``, by default that of the samples, so that those of a part are those of its own
    report.
    """
    sample, whole = about
    level = settings.confidence_level
    attempt = Attempts(name, settings.verbose, sample.holds_rows)
    of_part = part_of is not None
    beside = part_of.diagram if part_of is not None else None
    options: Any = {"of_part": of_part, "n_jobs": settings.n_jobs, "tolerance": tolerance}
    findings = find(attempt, about, level, settings.max_error, test, **options)
    refuted = findings.is_significant
    inner = sample if findings.test is None else findings.test.inside(sample)
    diagram = None
    if findings.test is not None:
        drawn: Any = {"number": findings.error, "ranges": findings.ranges, "beside": beside}
        panel = partial(ReliabilityPanel.of, confidence_level=level, **drawn)
        diagram = attempt("reliability diagram", panel, sample, name)
    of_classes = attempt if sample.knows_classes else attempt.of_rows
    scores = [  # the Brier score of predictions as they are
        of_classes(score[0], _decomposed, sample if score[2] == "brier" else inner, *score)
        for score in _asked_scores(sample)
    ]
    ece = attempt("binned ECE", _binned_ece, whole, settings, refuted)
    given = (settings.metrics or {}).items()
    asked = Attempts(name, settings.verbose)  # short reports, too, say which metric failed
    own = [asked(called, _own_metric, sample, called, metric, settings) for called, metric in given]
    searches: dict[str, CalibrationErrorSearchCV] = {}
    for notion in _searched_notions(whole) if settings.search else []:
        search = attempt(f"RMS {notion} error", fit_search, whole, settings, notion)
        searches |= {} if search is None else {notion: search}
    bounds: dict[str, Any] = {"limit": findings.tolerance, "confidence_level": level}
    cutoff = attempt("cutoff error", partial(equivalence_test, error="cutoff", **bounds), sample)
    ratio = validation = curve = decision = at_prevalence = None
    if sample.notion.of_positive_class:
        n_curves = None if of_part else min(settings.n_resamples, _CURVES)
        ratio = attempt("O/E", observed_expected_ratio, sample, level)
        medicine = sample, inner, settings, refuted, n_curves
        validation = attempt.of_rows(VALIDATION, _validated, *medicine)
        look: Any = {"name": name, "confidence_level": level, "plot": False}
        smooth = partial(CalibrationCurveDisplay.from_predictions, **look)
        curve = attempt.of_rows("calibration curve", smooth, sample)
        curves = attempt.of_rows("decision curve", _decision_curves, sample, level)
        decision, at_prevalence = curves or (None, None)
    return Measures(
        **vars(findings),
        cutoff=cutoff,
        ece=ece,
        scores=[part for part in scores if part is not None],
        sharpness=of_classes("sharpness", _spread, sample),
        own=[metric for metric in own if metric is not None],
        ratio=ratio,
        validation=validation,
        curve=curve,
        decision=decision,
        at_prevalence=at_prevalence,
        searches=searches,
        tuned=[tuned_error(search, settings, refuted) for search in searches.values()],
        diagram=diagram,
        cautions=[
            *without_rows(attempt.left_out),
            *cautions(sample, findings),
            *rounding(findings.test, sample, validation),
            *asked.messages,
        ],
        warnings=[*filter(None, [sparse_bins(ece, sample)]), *attempt.messages],
    )


# Tuned errors


def _searched_notions(sample) -> list[str]:
    """Notions whose RMS error is tuned; all of a single column are the same question."""
    classes = sample.proba.ndim == 2 and not sample.notion.of_labels
    more = ["canonical", "classwise"] if classes else []
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
    ).fit(
        sample.proba,
        sample.y_true,
        sample_weight=sample.weight_of_samples,
        groups=None if sample.groups.independent else sample.groups.codes,
    )


def tuned_error(search, settings: Settings, refuted: bool) -> dict:
    """``to_dict()`` of a search with the lower bound at the level of the report.

    The bound is 0 unless the verdict is that calibration is refuted.
    """
    facts = search.to_dict()
    one_step = facts["one_step"]
    if one_step is not None and one_step["lower_confidence_bound"] is not None:
        one_step["confidence_level"] = settings.confidence_level
        bound = search.lower_confidence_bound(settings.confidence_level)
        one_step["lower_confidence_bound"] = bound if refuted else min(bound, 0.0)
    return facts


# Binned errors


def _binned_ece(sample, settings, refuted) -> BinnedEce:
    bins: dict[str, Any] = {"n_bins": settings.n_bins, "strategy": settings.strategy}
    rule, level = BinRule.of(**bins), settings.confidence_level
    if not sample.holds_rows:
        bins = {"edges": sample.intervals.edges}
        rule = BinRule.of(**bins, n_bins=settings.n_bins, strategy=settings.strategy)
    options: dict[str, Any] = {"confidence_level": level, **settings.resampling, **bins}
    interval = bootstrap_interval(expected_calibration_error, sample, average="macro", **options)
    low = min(max(interval.low, 0.0), interval.estimate) if refuted else 0.0  # noise may raise it
    ece: dict[str, Any] = {"statistic": "expected_calibration_error", **settings.resampling}
    null: Any = monte_carlo_test(sample, **ece, **bins).null_distribution
    table = CalibrationBins.of_sample(sample, rule, level)
    counts = (table.count[table.problem == k] for k in np.unique(table.problem))
    count = max(counts, key=lambda count: np.count_nonzero(count < 10))
    return BinnedEce(
        notion=sample.notion,
        estimate=interval.estimate,
        low=low,
        high=float(np.clip(interval.high, low, 1.0)),
        null_mean=float(null.mean()),
        null_limit=float(np.quantile(null, level, axis=-1).mean()),  # as if labels moved together
        n_bins=len(count),
        strategy=settings.strategy,
        n_empty=int(np.count_nonzero(count == 0)),
        n_nearly_empty=int(np.count_nonzero((count > 0) & (count < 10))),
    )


def _own_metric(sample, name, metric, settings) -> OwnMetric:
    """A metric of the samples, of their notion if it takes one, with its interval."""
    options = {**settings.resampling}
    if "notion" in signature(metric).parameters:
        options["notion"] = sample.notion
    level = settings.confidence_level
    of_proba = sample._replace(logits=None)
    of = bootstrap_interval(metric, of_proba, confidence_level=level, **options)
    return OwnMetric(name, sample.notion, of.estimate, of.low, of.high)


# Scores


def _spread(sample) -> float:
    """The variance of the probabilities."""
    return sharpness(sample._replace(notion=_all_classes(sample)))


def _all_classes(sample):
    """The notion of scores; a binary report shows of two columns what it shows of one."""
    notion = sample.notion
    one_column = notion.of_positive_class or notion.of_answers
    return notion if one_column else resolve_notion("classwise", sample.proba)


def _asked_scores(sample) -> list[tuple[str, Notion, str]]:
    """The name of each score in the report, its notion and its name in ``score_decomposition``."""
    notion = _all_classes(sample)
    brier = ("Brier score", notion, "brier")
    if notion.single:
        return [brier, ("log loss", notion, "log-loss")]
    vector = ("log loss", resolve_notion("canonical", sample.proba), "log-loss")
    return [brier, vector, (_BY_CLASS, notion, "log-loss")]


def _decomposed(sample, name, notion, score) -> Score:
    """A score with its parts; that of whole vectors has none."""
    bins: Any = {} if notion.scalar else {"strategy": "median-variance", "min_samples": 1}
    # a caution says that the log loss is infinite
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        parts = score_decomposition(sample._replace(notion=notion), score=score, **bins)
    if not notion.scalar:
        return Score(name, notion, parts.score)
    saved = parts.miscalibration, parts.discrimination, parts.uncertainty
    return Score(name, notion, parts.score, *saved)


# Predictions of one outcome, and figures


def _validated(sample, inner, settings, refuted, n_curves) -> ValidationMeasures:
    level, seed = settings.confidence_level, settings.random_state
    measures = validation_of(sample, "splines", level, n_curves, seed, inner)
    if refuted or n_curves is None or math.isnan(measures.ici.low):
        return measures
    distances: Any = {name: one._replace(low=0.0) for name, one in measures.distances.items()}
    return replace(measures, **distances)


def _decision_curves(sample, level) -> tuple[DecisionCurve, DecisionCurve] | None:
    """The decision curve, and that at the prevalence alone, if both outcomes happened."""
    rate = sample.frequencies[1:]
    if not 0 < rate[0] < 1:
        return None
    curves = partial(decision_curve, sample, confidence_level=level)
    return curves(), curves(thresholds=rate)
