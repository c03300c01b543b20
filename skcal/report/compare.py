"""Subgroups, and two models on the same samples."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from skcal._groups import FEWEST_GROUPS
from skcal._labels import column_names, columns_of_labels, named_columns, plain_labels
from skcal._show import listed
from skcal.exceptions import InputError
from skcal.hypothesis_tests import (
    ComparisonResult,
    EquivalenceTestResult,
    adjust_pvalues,
    calibration_test,
    equivalence_tests,
)
from skcal.hypothesis_tests.comparison import comparison_of
from skcal.hypothesis_tests.error_interval import (
    ErrorDifference,
    score_differences,
)
from skcal.hypothesis_tests.joint import JointTestResult
from skcal.notions import Notion, resolve_notion
from skcal.report.findings import Attempts, ReportSamples, plain_label
from skcal.report.measure import Measures, Settings, measure
from skcal.sample import Sample, read_sample

_DRAWS_A_GROUP, _MOST_DRAWS = 100, 20_000  # of the tests of subgroups
_SKCE_PAIRS = 1e10
_LABEL_HOLDS = ("no label", "a label")  # the outcomes of a pair of a sample and a label


# Several labels of a sample


def as_pairs(sample: Sample) -> Sample:
    """The pairs of a sample and a label as samples of one outcome.

    The pairs of a sample depend on each other, and so do those of a group.
    """
    n, n_labels = sample.proba.shape
    rows, weight = np.repeat(np.arange(n), n_labels), sample.weight_of_samples
    labels = np.array(_LABEL_HOLDS)[sample.happened.ravel().astype(int)]
    groups = sample.groups.codes[rows] if sample.source.grouped else rows
    weight = None if weight is None else weight[rows]
    return _of_events(sample, labels, sample.proba.ravel(), weight, _LABEL_HOLDS, groups)


def _of_events(sample: Sample, y_true, y_proba, weight, labels, groups) -> Sample:
    """Events of a sample and their predictions, which are rounded as those of the sample."""
    options: dict[str, Any] = {"groups": groups, "resolution": sample.resolution, "at_least": 2}
    return read_sample(y_true, y_proba, "binary", weight, labels, keep_weightless=True, **options)


def of_pairs(sample: Sample, by, segments) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """The columns of subgroups, of which labels are one, and of segments for each pair."""
    n, n_labels = sample.proba.shape
    rows = np.repeat(np.arange(n), n_labels)
    columns = {"label": np.tile(sample.classes.astype(str), n)}
    if by is not None:
        named = {name or "subgroup": column for name, column in columns_of(by).items()}
        given = dict(named_columns(named, n, "by"))
        if "label" in given:
            reason = "has a column 'label', as are called the subgroups of each label."
            raise InputError("by", reason, "Give it another name.")
        columns |= {name: column[rows] for name, column in given.items()}
    if segments is not None:
        given = dict(named_columns(segments, n, "segments"))
        segments = {name: column[rows] for name, column in given.items()}
    return columns, segments


def precisions_of_labels(sample: Sample, compare) -> Sample:
    """Shares of the K first labels that hold beside the precision that is promised."""
    if compare is not None:
        raise InputError(
            "compare",
            f"is not for notion={str(sample.notion)!r}, where each model ranks labels of its own "
            "first, so that outcomes differ.",
            "Make a report of each model.",
        )
    [problem] = sample.problems()
    k = int(sample.notion.rpartition("-")[2])
    held = np.rint(k * problem.outcomes[:, 0]) / k
    first = "the first label" if k == 1 else f"a label of the first {k}"
    shares, labels = np.column_stack([1 - held, held]), (f"not {first}", first)
    groups = sample.groups.codes if sample.source.grouped else None
    about = sample.weight_of_samples, labels, groups
    return _of_events(sample, shares, problem.features[:, 0], *about)


# Subgroups


def columns_of(by) -> dict[str, Any]:
    """The columns that make subgroups by name; that of a single one is empty."""
    names = list(by) if isinstance(by, Mapping) else column_names(by)
    return {"": by} if names is None else {str(name): by[name] for name in names}


@dataclass(frozen=True, eq=False)
class Subgroup:
    """The samples with one value of a column.

    Attributes
    ----------
    name : str
    rows : ndarray of int
        Their numbers among the samples of positive weight.
    of : ReportSamples
        All samples.
    """

    name: str
    rows: np.ndarray
    of: ReportSamples

    @cached_property
    def about(self) -> ReportSamples:
        """Only its samples; the pairs of one label are samples of one event."""
        (pairs, samples), whole = self.of, None
        if samples.notion.of_labels:
            numbers, labels = np.divmod(self.rows, samples.proba.shape[1])
            whole = None if np.ptp(labels) == 0 else sample_of(samples, np.unique(numbers))
        return ReportSamples.of(sample_of(pairs, self.rows), whole)


def split(by, rows: Sample, about: ReportSamples) -> dict[str, list[Subgroup]]:
    """The subgroups of each column, whose values stand beside ``rows``; a single one has no name.

    ``about`` holds the samples of positive weight.
    """
    columns = {} if by is None else columns_of(by)
    return {
        name: [
            Subgroup(*part, about) for part in _subgroups_of(column, name, len(rows), rows.weight)
        ]
        for name, column in columns.items()
    }


def read_subgroups(by, n_samples: int) -> list[tuple[str, np.ndarray]]:
    """Name and rows of each subgroup; of several columns each makes its own."""
    return [
        part
        for name, column in columns_of(by).items()
        for part in _subgroups_of(column, name, n_samples)
    ]


def _subgroups_of(column, of: str, n_samples: int, weight=None) -> list[tuple[str, np.ndarray]]:
    """Name and rows of each subgroup of a column, in natural order of its values.

    Given weights, rows are numbered among the samples of positive weight.
    """
    groups = plain_labels(column, "by")
    if len(groups) != n_samples:
        raise ValueError(f"by has {len(groups)} entries, y_proba {n_samples} rows.")
    groups = groups if weight is None else groups[weight > 0]
    try:
        values, codes = np.unique(groups, return_inverse=True)
    except TypeError as error:
        raise ValueError(f"by cannot be sorted ({error}). Pass strings.") from error
    names = [str(plain_label(value)) for value in values.tolist()]
    parts = [(name, np.flatnonzero(codes == k)) for k, name in enumerate(names)]
    parts.sort(key=lambda part: _natural_order(part[0]))
    return [(f"{of} = {value}" if of else value, rows) for value, rows in parts]


def _natural_order(name: str) -> list:
    """A key that sorts texts by the numbers in them: "site 2" before "site 10"."""
    return [
        (0, int(part), part) if part.isdecimal() else (1, 0, part)
        for part in re.split(r"(\d+)", name)
        if part
    ]


def sample_of(sample: Sample, rows: np.ndarray) -> Sample:
    """A part of the samples; without groups where each of them is alone in its group."""
    part = sample.take(rows)
    return part if part.groups.of_shares else part._replace(groups=part.groups.of_several())


def measure_subgroups(
    parts: list[Subgroup], settings: Settings, overall: Measures
) -> tuple[list[Measures], list[str]]:
    """Measure each subgroup; return the measures and the warnings."""
    names, tested = [part.name for part in parts], [part.about.whole for part in parts]
    tests, cautions, warnings = subgroup_tests(names, tested, settings)
    measures = [
        measure(part.name, part.about, settings, test, part_of=overall)
        for part, test in zip(parts, tests, strict=True)
    ]
    few = []
    for one, of_test in zip(measures, cautions, strict=True):
        n_groups = one.overview.n_groups
        if one.overview.has_few_groups:
            few.append(f"{one.name} ({n_groups} group{'s' * (n_groups != 1)})")
        else:
            one.cautions[:0] = of_test
    if few:
        warnings.append(
            f"Too few groups for a test, which needs {FEWEST_GROUPS}: {listed(few, len(few))}."
        )
    return measures, warnings


def decide_together(
    parts: list[Subgroup], sample: Sample, max_error: float | None, level: float
) -> tuple[list[EquivalenceTestResult], list[str]]:
    """Whether the errors of all samples and each part are below a limit, and the warnings."""
    if max_error is None:
        return [], []
    samples = [sample, *(part.about.sample for part in parts)]
    attempt, asked = Attempts("all subgroups"), [(one, "calibration") for one in samples]
    options: dict[str, Any] = {"limit": max_error, "confidence_level": level}
    decided = attempt("joint decision", partial(equivalence_tests, **options), asked)
    return decided or [], attempt.messages


def subgroup_tests(
    names: list[str], samples: list[Sample], settings: Settings
) -> tuple[list[JointTestResult | None], list[list[str]], list[str]]:
    """Test each subgroup, with p-values adjusted for all of them by Holm's method.

    What is said of each test, and of all together, stands beside them.

    Many subgroups take more draws than ``n_resamples``, so that each of them can be shown: those
    alone whose p-value is small by ``n_resamples`` draws. The others keep that, so no p-value is
    small more often than it should be.
    """
    level = 1 - settings.confidence_level
    enough = min(_DRAWS_A_GROUP * len(samples), _MOST_DRAWS) - 1

    def by_stages(sample):
        test = calibration_test(sample, n_resamples=None, n_jobs=settings.n_jobs)
        drawn: Any = test.null_distribution
        if test.pvalue > 2 * level or drawn.shape[-1] >= enough:
            return test
        return calibration_test(sample, n_resamples=enough, n_jobs=settings.n_jobs)

    attempts = [Attempts(name, settings.verbose) for name in names]
    tests = [
        attempt("test", by_stages, sample) if len(sample.codes) > 1 else None
        for attempt, sample in zip(attempts, samples, strict=True)
    ]
    pvalues = [test.pvalue for test in tests if test is not None]
    tests = _adjusted(tests)
    warnings = []
    if len(pvalues) > level * (1 + _MOST_DRAWS):
        smallest = len(pvalues) / (1 + _MOST_DRAWS)
        warnings.append(
            f"{len(pvalues)} subgroups are too many for their tests: the smallest adjusted p-value "
            f"is {smallest:.2g} even with {_MOST_DRAWS:,} draws of each. Merge some."
        )
    return tests, [attempt.messages for attempt in attempts], warnings


def _adjusted(tests: list[JointTestResult | None]) -> list[JointTestResult | None]:
    """Tests whose p-values are adjusted for all of them by Holm's method, where there are some."""
    done = [test for test in tests if test is not None]
    pvalues = adjust_pvalues([test.pvalue for test in done]) if done else np.array([])
    lowest = [test.pvalue <= test.smallest_pvalue * (1 + 1e-9) for test in done]
    at_most = max(pvalues[lowest], default=0.0)  # what more redraws could lower
    adjusted = iter(zip(done, pvalues.tolist(), strict=True))
    return [None if test is None else _with_pvalue(*next(adjusted), at_most) for test in tests]


def _with_pvalue(test: JointTestResult, pvalue: float, at_most: float) -> JointTestResult:
    parts = {name: max(own, pvalue) for name, own in test.statistic_pvalues.items()}
    at_most = pvalue if pvalue <= at_most else 0.0
    return replace(test, pvalue=pvalue, statistic_pvalues=parts, at_most=at_most)


# Two models


@dataclass(frozen=True)
class PairedTest:
    """Difference of a measure, first model minus second."""

    notion: Notion
    measure: str
    estimate: float
    low: float
    high: float
    pvalue: float
    method: str
    n_samples: int
    larger_is_better: bool = False


@dataclass(frozen=True)
class ModelComparison:
    """A second model on the same samples; ``tests`` are of calibration, the others of scores."""

    second: Measures
    error_difference: ErrorDifference | None
    tests: list[PairedTest]
    score_tests: list[PairedTest]
    warnings: list[str]


def read_second(y_true, y_proba, compare, strategy, options, own=None) -> Sample:
    """Check the predictions of a second model for the same samples.

    ``own`` are its outcomes and the classes of both, where they are not those of the first.
    """
    name = "y_true"
    if isinstance(y_true, Sample):
        y_true.require_pairs(compare, "compare", second_y_true=own)
        y_true, compare = compare, None
    elif own is not None:
        (y_true, labels), name = own, "second_y_true"
        options = options | {"labels": labels, "pos_label": None}
    if compare is not None:
        compare = columns_of_labels(compare, "compare")
        _require_same_shape(compare, columns_of_labels(y_proba, "y_proba"))
    if strategy != "uniform":
        raise ValueError(
            f"strategy={strategy!r} makes other bins for every model. With compare use 'uniform'."
        )
    return read_sample(y_true, compare, names=(name, "compare"), **options)


def _require_same_shape(compare, y_proba) -> None:
    if np.shape(compare) != np.shape(y_proba):
        raise ValueError(
            f"compare has shape {np.shape(compare)}, y_proba {np.shape(y_proba)}. Pass predictions "
            "of the same classes for the same samples."
        )


def compare_models(
    name: str,
    measures: Measures,
    abouts: Sequence[ReportSamples],
    settings: Settings,
) -> ModelComparison:
    """Measure the second model as the first, whose ``measures`` are given, and test differences."""
    others = measure(name, abouts[1], settings, tolerance=measures.tolerance)
    attempt = Attempts("both models", settings.verbose)
    tests: list[ComparisonResult | None] = []
    wholes = [asked.whole for asked in abouts]
    first = wholes[0]
    more = [notion for notion in measures.searches if notion in others.searches]
    for notion in dict.fromkeys([first.notion, *more]):
        notion = resolve_notion(notion, first.proba)
        both = [whole._replace(notion=notion) for whole in wholes] if tests else wholes
        level = None if tests else settings.confidence_level
        about = *both, "auto", "projection", level
        tests.append(attempt(f"{notion} comparison, projection", comparison_of, *about))
        affordable = len(first.codes) ** 2 * len(first.classes) <= _SKCE_PAIRS or notion.scalar
        if affordable and first.groups.independent:
            about = *both, "auto", "skce", None
            tests.append(attempt(f"{notion} comparison, SKCE", comparison_of, *about))
    of_notion = tests[0]  # of the report
    return ModelComparison(
        others,
        None if of_notion is None else of_notion.error_difference,
        [_paired(test, settings, len(first.codes)) for test in tests if test is not None],
        _score_tests(abouts[0].sample, abouts[1].sample, others.scores, settings),
        attempt.messages,
    )


def _paired(test: Any, settings: Settings, n_samples: int) -> PairedTest:
    measured = "SKCE" if "SKCE" in test.method else "squared error"
    low, high = test.confidence_interval(settings.confidence_level)
    about = test.pvalue, test.method, n_samples
    return PairedTest(test.notion, measured, test.estimate, low, high, *about)


def _score_tests(first, second, scores, settings) -> list[PairedTest]:
    """Differences of scores and, if predictions are right or wrong, of selective prediction."""
    asked = settings.confidence_level, settings.n_resamples, settings.random_state
    notions = {score.name: score.notion for score in scores}
    return [
        PairedTest(
            notions.get(one.measure, first.notion),
            *one[:-1],
            n_samples=len(first.codes),
            larger_is_better=one.larger_is_better,
        )
        for one in score_differences(first, second, *asked)
    ]
