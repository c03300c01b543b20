"""A calibration report: the function that makes it, and its views."""

from __future__ import annotations

from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed_version
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from skcal._labels import refuse_another_order
from skcal._rounding import RESOLUTION
from skcal._show import as_data, as_json, import_pyplot, replacing, stated
from skcal._sklearn_compat import Interval, StrOptions, validate_params
from skcal._validation import BIN_COUNT
from skcal.choice import CalibrationErrorSearchCV
from skcal.exceptions import InputError
from skcal.hypothesis_tests import segment_test
from skcal.hypothesis_tests.equivalence import EquivalenceTestResult
from skcal.hypothesis_tests.segments import SegmentTestResult
from skcal.metrics import BinRule, shifted_calibration_error
from skcal.metrics.shifted import ShiftedCalibrationError
from skcal.notions import Notion
from skcal.report import words
from skcal.report.answer import Answer, answer_of
from skcal.report.centres import (
    DifferingColumns,
    Heterogeneity,
    LeftOut,
    differing_columns,
    draw_forest,
    height_of_forest,
    heterogeneity,
    leave_out,
)
from skcal.report.compare import (
    ModelComparison,
    as_pairs,
    compare_models,
    decide_together,
    measure_subgroups,
    of_pairs,
    precisions_of_labels,
    read_second,
    split,
)
from skcal.report.findings import ReportSamples
from skcal.report.measure import Measures, Settings, measure
from skcal.report.rows import CENTRES, records_table
from skcal.report.views import as_fragment, as_latex, as_page, as_text, reliability
from skcal.sample import Sample, read_sample
from skcal.table import CalibrationTable

_NOTIONS = ("auto", "binary", "confidence", "multi-label")


@dataclass(frozen=True, eq=False)
class CalibrationReport:
    """What :func:`skcal.calibration_report` found: numbers; text, HTML and figure are views.

    Parameters
    ----------
    overall : Measures
        All samples: ``overview``, ``test`` (whose p-value is the verdict), ``error`` (the
        calibration error with its limits), ``gate`` (whether it is below the tolerance), ``gain``
        (what recalibration leaves), ``scan`` (where), ``cutoff``, ``ece``, ``scores`` (a list),
        ``sharpness``, ``diagram`` (a panel of a reliability display) and ``warnings``; with
        ``search=True`` also ``searches`` (the fitted search of each notion) and ``tuned`` (a dict
        for each of them, as in the command line's JSON); of one outcome also ``validation``
        (``ValidationMeasures``), ``curve`` and ``decision``. What the samples do not allow is None.
    subgroups : list of Measures
        The measures of each subgroup, whose ``test`` is adjusted for all subgroups by Holm's
        method.
    segments : SegmentTestResult or None
        The test of the segments of given features.
    comparison : ModelComparison or None
        The second model: ``second`` (its measures), ``tests`` of
        calibration and ``score_tests``.
    target : ShiftedCalibrationError or None
        The calibration error in a target population without labels.
    notion : Notion
        The notion of the verdict, of ECE and of the figure.
    n_searched : int
        The number of samples on which tuned errors are estimated.
    settings : dict
        The options that made the report, with the seed.
    version : str
        The version of skcal that made the report.
    description : str
        A line about data, model and date.
    heterogeneity : list of Heterogeneity
        How O/E differs between the subgroups of each column of ``by`` with at least five: the
        standard deviation of log O/E and the prediction interval of a new subgroup.
    left_out : list of LeftOut
        If the error is significant: what a recalibration by all other subgroups of such a column
        leaves in each one.
    decided : list of EquivalenceTestResult
        With ``max_error`` and ``by``: whether the calibration error of all samples, and of each
        subgroup, is below ``max_error``. All verdicts hold together at the confidence level.
    differing : DifferingColumns
        The columns of ``by`` whose subgroups would still differ after one recalibration of all
        samples: ``columns``, each beside those before it, and ``explained`` by these.
    read_as : str
        How the samples were read, as :attr:`skcal.Sample.read_as` says it.

    See Also
    --------
    skcal.calibration_report : The function that makes a report.

    Examples
    --------
    >>> from skcal.datasets import make_tempered
    >>> from skcal.report import CalibrationReport, calibration_report
    >>> data = make_tempered(400, temperature=2.0, n_truth_draws=0, random_state=0)
    >>> report = calibration_report(data.labels, data.proba, n_resamples=99, random_state=0)
    >>> report.answer.title
    'Overconfident: large'
    >>> report.to_dict()["overall"]["ece"]["n_bins"]
    15
    """

    overall: Measures
    subgroups: list[Measures]
    segments: SegmentTestResult | None
    comparison: ModelComparison | None
    target: ShiftedCalibrationError | None
    notion: Notion
    n_searched: int
    settings: dict
    version: str
    description: str
    heterogeneity: list[Heterogeneity]
    left_out: list[LeftOut]
    decided: list[EquivalenceTestResult]
    differing: DifferingColumns
    read_as: str

    def __str__(self):
        return self.summary()

    def summary(self, detail: str = "short") -> str:
        """Return the report as text.

        Parameters
        ----------
        detail : {"short", "full"}, default="short"
            The verdict with five rows and the caveats, or all numbers.
        """
        check_detail(detail)
        return as_text(self, detail == "full")

    def __repr__(self):
        view = self.overall.overview
        return (
            f"<CalibrationReport of {view.n_samples} predictions, {len(view.classes)} classes; "
            "print() shows it>"
        )

    def _repr_html_(self):
        return as_fragment(self)

    @property
    def answer(self) -> Answer:
        """The title of the first screen, its colour, and at most three sentences."""
        differ = words.subgroups_differ(self)
        answer = answer_of(self.overall, words.advice_by_part(self), words.compared(self))
        answer = words.with_worst(answer, self.overall, self.subgroups, differ)
        return words.with_worst_segment(answer, self)

    @property
    def verdict(self) -> str:
        """The answer in plain words: what is wrong, how sure this is, and what to do."""
        return " ".join(self.paragraphs)

    @property
    def paragraphs(self) -> list[str]:
        """The parts of :attr:`verdict`: the answer, or those of two models, and what else is."""
        if self.comparison is None:
            return [str(self.answer), *self.further]
        texts = [f"{name}: {answer}" for name, answer in words.answers_of_models(self)]
        return [str(words.answer_of_comparison(self)), *texts, *self.further]

    @property
    def further(self) -> list[str]:
        """The sentences about subgroups, segments, other measures of two models, and a target."""
        sentences = [words.answer_of_subgroups(self)] if self.subgroups else []
        sentences += [words.decided_together(self), words.answer_of_segments(self)]
        sentences += [words.other_measures(self)]
        if self.target is not None:
            sentences.append(stated(self.target.sentence()))
        return [sentence for sentence in sentences if sentence]

    @property
    def warnings(self) -> list[str]:
        """The caveats; those of subgroups and of the second model name them."""
        return words.all_warnings(self)

    def to_dict(self) -> dict:
        """Return dicts, lists, strings and finite numbers; None for what is not known."""
        return as_data(self)

    def to_json(self, indent: int | None = 2) -> str:
        """Return strict JSON of :meth:`to_dict`.

        Parameters
        ----------
        indent : int, default=2
            None: one line.
        """
        return as_json(self.to_dict(), indent)

    def to_frame(self):
        """Return a pandas DataFrame: a row for each number of each set of predictions.

        ``part`` is "all", "subgroup", "second" (model) or "paired", differences of the two models.
        """
        frame = records_table(self).frame()
        return frame.astype(dict.fromkeys(("value", "low", "high", "pvalue"), float))

    def plot_subgroups(self, measure="O/E", *, ax=None):
        """Draw a forest plot: a measure of each subgroup with its interval, and of a new one.

        Parameters
        ----------
        measure : {"O/E", "calibration slope", "C-statistic"}, default="O/E"
            Of reports about one event.
        ax : matplotlib axes, default=None
            None makes a figure.

        Returns
        -------
        ax : matplotlib axes

        Raises
        ------
        ValueError
            Without subgroups, or if none has the measure.
        """
        if measure not in CENTRES:
            names = ", ".join(map(repr, CENTRES))
            raise ValueError(f"measure={measure!r} is unknown. Use one of {names}.")
        if ax is None:
            size = 5.0, height_of_forest(self)
            ax = import_pyplot().subplots(figsize=size, layout="constrained")[1]
        draw_forest(ax, self, measure)
        return ax

    def plot(self, ax=None, *, by=False):
        """Draw the reliability diagram, of two models side by side.

        Parameters
        ----------
        ax : matplotlib axes or array of axes, default=None
            One a panel; None makes a figure.
        by : bool, default=False
            Draw a panel for each subgroup instead, of more than 12 those with the largest ECE.

        Returns
        -------
        display : skcal.displays.ReliabilityDisplay
        """
        if by and not self.subgroups:
            raise ValueError("by=True, but the report has no subgroups. Make it with by=….")
        parts = self.subgroups if by else words.models_of(self)
        return reliability(parts, self.notion, self.settings).plot(ax=ax)

    def save(self, path, detail: str = "short") -> None:
        """Write one self-contained file: HTML with the figure inside, JSON, text or a table.

        Parameters
        ----------
        path : path-like
            ``.html``, ``.json``, ``.txt``, ``.csv`` (numbers in full; text that a spreadsheet would
            evaluate gets an apostrophe) or ``.tex`` (tables for the package booktabs, of
            subgroups and of two models too). Without matplotlib HTML has no figures, and says so.
            The same report gives the same bytes. A file of this name is replaced as a whole, or
            stays as it is if that fails.
        detail : {"short", "full"}, default="short"
            "short": one page; in HTML the other sections are collapsed and not printed. "full":
            everything. This applies to HTML, text and LaTeX. JSON always holds everything, and
            ``.csv`` everything but segments, which LaTeX lacks, too.

        Raises
        ------
        ValueError
            If the ending is another.
        """
        check_detail(detail)
        path, full = Path(path), detail == "full"
        views: dict[str, Any] = {
            ".html": lambda: as_page(self, full),
            ".json": self.to_json,
            ".txt": lambda: as_text(self, full),
            ".csv": lambda: records_table(self).csv(),
            ".tex": lambda: as_latex(self, full),
        }
        if path.suffix.lower() not in views:
            raise ValueError(
                f"path={str(path)!r} has the ending {path.suffix!r}. Use one of {', '.join(views)}."
            )
        text = views[path.suffix.lower()]().rstrip("\n") + "\n"
        with replacing(path) as file:
            file.write(text.encode("utf-8", "backslashreplace"))


@validate_params(
    {
        "notion": [str],
        "search": ["boolean"],
        "from_logits": ["boolean"],
        "n_bins": [BIN_COUNT],
        "strategy": [StrOptions(set(BinRule.strategies))],
        "max_error": [Interval(Real, 0, 1, closed="neither"), None],
        **RESOLUTION,
        "confidence_level": [Interval(Real, 0, 1, closed="neither")],
        "n_resamples": [Interval(Integral, 19, None, closed="left"), None],
        "candidates": [list, tuple, str, None],
        "cv": ["cv_object"],
        "outer_cv": ["cv_object", None],
        "max_search_samples": [Interval(Integral, 20, None, closed="left"), None],
        "metrics": [dict, None],
        "name": [str],
        "description": [str],
        "compare_name": [str],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
    },
    prefer_skip_nested_validation=False,
    used_with={
        "candidates": {"search": (True,)},
        "cv": {"search": (True,)},
        "outer_cv": {"search": (True,)},
        "max_search_samples": {"search": (True,)},
        "compare_name": "compare",
        "second_y_true": "compare",
    },
)
def calibration_report(
    y_true,
    y_proba=None,
    *,
    notion="auto",
    search=False,
    by=None,
    sample_weight=None,
    groups=None,
    segments=None,
    compare=None,
    second_y_true=None,
    target=None,
    n_bins=15,
    strategy="uniform",
    max_error=None,
    metrics=None,
    resolution="auto",
    confidence_level=0.95,
    n_resamples=None,
    candidates=None,
    cv=5,
    outer_cv=None,
    max_search_samples=100_000,
    labels=None,
    pos_label=None,
    from_logits=False,
    name="classifier",
    compare_name="second classifier",
    description="",
    random_state=0,
    n_jobs=None,
    verbose=0,
) -> CalibrationReport:
    """Estimate, test and show the calibration of predictions.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,), (n_samples, n_classes) or (n_samples, n_labels), \
Sample or CalibrationTable
        Labels, or shares or votes of the classes (see :doc:`/guide/soft_labels`); for
        "multi-label" whether each label holds, 0 or 1. A :class:`skcal.CalibrationTable` of one
        probability, of answers or of confidences: the report leaves out what needs rows, and says
        so.
    y_proba : array-like of shape (n_samples,) or (n_samples, n_classes), default=None
        Probabilities in [0, 1]; rows sum to 1. A 1-D array holds P(positive class).
        Left out beside a :class:`skcal.Sample`, where ``compare`` is one, too, and beside a
        table, which takes no ``by``, ``segments``, ``compare``, ``target``, ``metrics``,
        ``search``, ``n_bins`` and ``strategy``.
    notion : {"auto", "binary", "confidence", "multi-label", "precision-at-K"}, default="auto"
        The notion of the verdict, the errors and the figure; "auto" is "binary" for one
        and two columns and "confidence" for more. "multi-label" tests each label, and its
        calibration error estimates the mean over the labels from all of them at once, so that it
        need not be the mean of their rows; each label is a subgroup too. Ranges, figure
        and other numbers are about all pairs of a sample and a label, whatever the label. The
        pairs of a sample are a group, so that they may depend on each other. "precision-at-3" asks
        whether as many of the three labels that are ranked first hold as their mean probability
        says; it takes no ``compare``.
    search : bool, default=False
        Whether to estimate the RMS calibration errors by cross-validation too: of the notion, the
        canonical and the class-wise one, also of subgroups. This takes longer.
    by : array-like of shape (n_samples,), default=None
        The subgroup of each sample; the report holds the same numbers for each subgroup, without
        ``search`` but for the tuned error. A data frame or a dict of several columns makes the
        subgroups of each.
    sample_weight : array-like of shape (n_samples,), default=None
        Sample weights; only their ratios matter: every rate, error, interval, curve and
        test is that of a population in which a sample stands for as many as its weight says, and
        numbers of samples are of rows. Samples of weight 0 are left out. A weight of 2 is no
        repeated row.
    groups : array-like of shape (n_samples,), default=None
        Samples of one group, such as visits of one patient, may depend on each other. The verdict,
        its ranges, the limits and the intervals of ECE, of medicine and of net benefits take
        that into account. See :doc:`/guide/dependent_samples`.
    segments : data frame, arrow table, dict of columns or array-like, default=None
        Features of each sample, whose segments are compared with all samples, as by
        :func:`skcal.hypothesis_tests.segment_test` with ``relative=True``.
    compare : array-like of the shape of ``y_proba``, default=None
        Predictions of a second model for the same samples.
    second_y_true : array-like of the shape of ``y_true``, default=None
        The outcomes of the second model where it has its own, such as whether each answer of a
        second language model to the same questions was right. None: ``y_true`` holds for both.
    target : array-like of shape (n_target,) or (n_target, n_classes), default=None
        Predictions for a population without labels, in which events are more or less frequent. The
        report then holds the calibration error there, ``report.target``, by
        :func:`skcal.metrics.shifted_calibration_error`. Probabilities, also with ``from_logits``.
    n_bins : int, default=15
        The number of bins.
    strategy : {"uniform", "quantile", "sweep", "unique"}, default="uniform"
        The rule of the bins, as in :func:`skcal.metrics.expected_calibration_error`. With
        ``compare`` it is "uniform", since the others depend on the predictions.
    max_error : float in (0, 1), default=None
        The calibration error that you tolerate. A significant error is called small up to half of
        it, moderate up to twice of it, and large above. If its upper limit is below the
        ``max_error`` that you pass, the title says that instead, and nothing is advised. None is
        0.05; if the rarer of two outcomes happens in less than 25 %, a fifth of its rate, rounded
        to one digit.
    metrics : dict of str to callable, default=None
        Your own metrics, ``metric(y_true, y_proba) → float``: each is a row with its
        :func:`skcal.metrics.bootstrap_interval`, of ``n_resamples`` calls. It also gets
        ``labels``, ``notion`` and ``groups`` if it takes them, and ``sample_weight`` if there are
        weights.
    resolution : float in (0, 1], "auto" or None, default="auto"
        The step in which predictions are rounded, as in
        :func:`skcal.hypothesis_tests.calibration_test`: 0 and 1 then mean "within half a step".
    confidence_level : float in (0, 1), default=0.95
        The confidence level of intervals, bands and the one-sided lower bound.
    n_resamples : int ≥ 19, default=None
        The number of resamples of intervals, null bands and tests; None is 999, above 100,000
        samples 199.
    candidates : list of (function, param_grid), str or None, default=None
        The candidates of :class:`skcal.CalibrationErrorSearchCV`, with ``search=True``.
    cv, outer_cv : int, cross-validation generator or iterable, default=5 and None
        The inner and the outer splits of that search, with ``search=True``.
    max_search_samples : int, default=100_000
        The largest number of samples for tuned errors and their paired test; of more, they use this
        many, drawn by
        ``np.random.default_rng(seed).choice(n_samples, …, replace=False)`` and sorted; None uses
        all.
    labels : array-like of shape (n_classes,), default=None
        The class of each column; for 1-D predictions (negative class, positive class).
    pos_label : label, default=None
        The positive class of 1-D predictions, or of two columns for "binary"; an error otherwise.
    from_logits : bool, default=False
        Whether ``y_proba`` and ``compare`` hold logits; probabilities are computed from them
        without loss of precision.
    name, compare_name : str, default="classifier" and "second classifier"
        The names of the models, for titles; the second one with ``compare``.
    description : str, default=""
        A line about data, model and date, which the report shows below its title.
    random_state : int, RandomState instance or None, default=0
        The seed. An int goes to every function as it is; otherwise one is drawn and kept in
        ``settings``.
    n_jobs : int, default=None
        The number of workers; results do not depend on it.
    verbose : int, default=0
        1 prints a line when a part begins, and a line per candidate of the searches.

    Returns
    -------
    report : CalibrationReport
        The numbers, which ``print(report)``, ``report.save("report.html")``, ``report.plot()``,
        ``report.to_frame()`` and ``report.to_json()`` show.

    Raises
    ------
    ValueError
        If the input is not valid. If there are too few samples for a number, it is left out with a
        warning in the report.

    See Also
    --------
    skcal.CalibrationErrorSearchCV : The search behind the tuned error.
    skcal.hypothesis_tests.compare_calibration : The paired test of two models.
    skcal.Sample : Labels and predictions, read once for several questions.

    Notes
    -----
    One test decides the verdict: :func:`skcal.hypothesis_tests.calibration_test`, with seed 0
    whatever ``random_state`` is. The calibration error and its limits are those of
    :func:`skcal.calibration_error_interval`, whose lower limit is above 0 only where the
    test rejects. An interval that leaves out its ideal value where the test does not reject is
    called unadjusted. :func:`skcal.hypothesis_tests.scan_test` names the ranges that are wrong, and
    the gain of recalibration is the error that is left after temperature scaling, fitted to four
    fifths of the samples and applied to the others. Every other number is that of the public
    function with the same seed: ``expected_calibration_error`` with its ``bootstrap_interval``,
    which may lie below the estimate, since noise raises that, and the null distribution of
    ``monte_carlo_test``; ``score_decomposition`` by isotonic regression of
    each class, for "binary" of the positive class, also of two columns; there also
    ``validation_measures``, ``calibration_curve`` and ``decision_curve``. With ``search=True`` the
    RMS calibration errors are those of :class:`skcal.CalibrationErrorSearchCV`.

    The p-values of subgroups are adjusted by Holm's method, and drawn from more resamples where
    there are many.

    With ``compare``, ``compare_calibration`` tests the difference of the errors, by polynomials and
    by the SKCE, and a normal test that of the Brier scores and log losses.

    With ``sample_weight`` outcomes are redrawn sample by sample as without, so that the level of
    the verdict is the same, and the bootstrap of ECE resamples samples with their weights.

    About 3 s for 10,000 predictions of 10 classes and a minute for a million of one; a report of
    subgroups or of two models takes that for each.

    Examples
    --------
    >>> from skcal.datasets import make_tempered
    >>> from skcal.report import calibration_report
    >>> data = make_tempered(400, temperature=2.0, n_truth_draws=0, random_state=0)
    >>> report = calibration_report(data.labels, data.proba, n_bins=10, random_state=0)
    >>> print(report)  # doctest: +ELLIPSIS
    Calibration report: classifier
    ==============================
    400 predictions of 5 classes. Are they right as often as their largest probability says?
    ...
    """
    if isinstance(y_true, CalibrationTable):
        needing_rows = {"by": by, "segments": segments, "compare": compare, "target": target}
        needing_rows |= {"metrics": metrics, "search": search or None}
        needing_rows |= {"n_bins": None if n_bins == 15 else n_bins}
        needing_rows |= {"strategy": None if strategy == "uniform" else strategy}
        y_true, n_bins, strategy = _of_table(y_true, notion, resolution, needing_rows)
        resolution = "auto"
    _require_reported(notion)
    in_rows = {"y_proba": y_proba, "y_true": y_true, "by": by, "segments": segments}
    refuse_another_order({**in_rows, "compare": compare})
    for key, metric in (metrics or {}).items():
        if not (isinstance(key, str) and callable(metric)):
            reason = f"holds {key!r}: {metric!r:.80}."
            remedy = "Pass names with functions of labels and predictions."
            raise InputError("metrics", reason, remedy)
    options: dict[str, Any] = {"notion": notion, "labels": labels, "pos_label": pos_label}
    options |= {"sample_weight": sample_weight, "from_logits": from_logits, "groups": groups}
    options |= {"resolution": resolution, "at_least": 2, "keep_weightless": True}
    rows = read_sample(y_true, y_proba, **options)
    asked = rows.notion if rows.notion.of_answers else rows.source.asked
    of_labels = rows.notion.of_labels
    _require_reported(asked)  # that of a Sample
    in_pairs = rows.notion == "multi-label"
    models = [precisions_of_labels(rows, compare) if of_labels and not in_pairs else rows]
    if compare is not None:
        own = None if second_y_true is None else (second_y_true, rows.given_classes)
        models.append(read_second(y_true, y_proba, compare, strategy, options, own))
    if in_pairs:
        by, segments = of_pairs(rows, by, segments)
        pairs = [as_pairs(model) for model in models]
        abouts = [
            ReportSamples(*(part.counted for part in both))
            for both in zip(pairs, models, strict=True)
        ]
        rows = pairs[0]
    else:
        abouts = [ReportSamples.of(model.counted) for model in models]
        rows = models[0]
    about, sample = abouts[0], abouts[0].sample
    columns = split(by, rows, about)
    parts = [part for column in columns.values() for part in column]
    settings = Settings(
        search=search,
        n_bins=n_bins,
        strategy=strategy,
        max_error=max_error,
        confidence_level=confidence_level,
        n_resamples=n_resamples or sample.default_resamples,
        candidates=candidates,
        cv=cv,
        outer_cv=outer_cv,
        max_search_samples=max_search_samples,
        n_jobs=n_jobs,
        random_state=_seed(random_state),
        resolution=sample.resolution,
        verbose=verbose,
        metrics=metrics,
    )
    described = _options_as_data(settings, sample)  # which raises for candidates that are none
    described["notion_asked"] = asked
    overall = measure(name, about, settings)
    subgroups, warnings = measure_subgroups(parts, settings, overall)
    centres: list[Heterogeneity] = []
    decided: list[EquivalenceTestResult] = []
    left_out: list[LeftOut] = []
    differing = differing_columns(columns, sample, confidence_level)
    if by is not None and not of_labels:  # labels are no draws of new ones
        centres = heterogeneity(columns, subgroups, confidence_level)
        left_out = leave_out(columns, sample, overall.error)
        decided, undecided = decide_together(parts, sample, max_error, confidence_level)
        warnings += undecided
    if groups is None and not (in_pairs or sample.source.grouped) and sample.holds_rows:
        warnings += words.likeness(sample.proba_of_classes, sample.happened)
    comparison = None
    if compare is not None:
        comparison = compare_models(compare_name, overall, abouts, settings)
    return CalibrationReport(
        overall=replace(overall, cautions=overall.cautions + warnings),
        subgroups=subgroups,
        segments=None if segments is None else _segments(rows, segments, settings),
        comparison=comparison,
        notion=sample.notion,
        target=None if target is None else _in_target(sample, target, settings),
        n_searched=settings.n_searched(len(sample)),
        settings=described,
        version=_version(),
        description=" ".join(description.split()),
        heterogeneity=centres,
        left_out=left_out,
        decided=decided,
        differing=differing,
        read_as=(about.whole if in_pairs else rows).read_as,
    )


def _of_table(table, notion, resolution, beside: dict[str, Any]) -> tuple[Any, int, str]:
    """The sample of a table, and the number and the kind of its bins; raise for what needs rows."""
    for name, value in beside.items():
        if value is not None:
            reason, remedy = "needs rows beside a CalibrationTable.", "Pass a skcal.Sample."
            if name in ("n_bins", "strategy"):
                reason = "is not for a CalibrationTable, whose bins were counted."
                remedy = f"Leave {name} out, or count a CalibrationTable(edges=…)."
            raise InputError(name, reason, remedy)
    options: dict[str, Any] = {"groups": None, "few_groups": 0, "from_sums": True}
    sample: Any = read_sample(table, None, notion, resolution=resolution, **options)
    if sample.notion not in _NOTIONS or sample.notion.of_labels:
        reason = f"is {str(sample.notion)!r} in the CalibrationTable, of which there is no report."
        raise InputError("notion", reason, "Count a CalibrationTable of 'binary' or 'confidence'.")
    edges = sample.intervals.edges
    n_bins = len(edges) - 1
    equal = np.array_equal(edges, np.arange(n_bins + 1) / n_bins)
    return sample, n_bins, "uniform" if equal else "given"


def _require_reported(notion: str) -> None:
    """Raise for a kind of calibration that has no report."""
    if not (notion in _NOTIONS or notion.startswith("precision-at-")):
        reason = f"is {notion!r}, of which there is no report."
        listed = ", ".join(map(repr, _NOTIONS))
        raise InputError("notion", reason, f"Use one of {listed}, 'precision-at-K'.")


def check_detail(detail: str) -> None:
    """Raise unless it is "short" or "full"."""
    if detail not in ("short", "full"):
        raise ValueError(f"detail={detail!r} is unknown. Use 'short' or 'full'.")


def _seed(random_state) -> int:
    """An int as it is, or one drawn."""
    if isinstance(random_state, Integral):
        return int(random_state)
    return int(check_random_state(random_state).randint(2**31 - 1))


def _in_target(sample, target, settings) -> ShiftedCalibrationError:
    of_proba, level = sample._replace(logits=None), settings.confidence_level  # as the target is
    return shifted_calibration_error(of_proba, target_proba=target, confidence_level=level)


def _segments(sample, features, settings) -> SegmentTestResult:
    options = {"confidence_level": settings.confidence_level, **settings.resampling}
    try:
        return segment_test(sample, features=features, relative=True, **options)
    except InputError as error:
        if error.argument == "features":
            error.argument = "segments"
        raise


def _options_as_data(settings: Settings, sample: Sample) -> dict:
    """Options as JSON can hold them."""
    options: dict[str, Any] = {"notion": sample.notion} | settings._asdict()
    del options["verbose"]  # which changes no number
    options["metrics"] = list(settings.metrics or ())
    return (
        options
        | CalibrationErrorSearchCV(
            settings.candidates, cv=settings.cv, outer_cv=settings.outer_cv
        ).settings()
    )


def _version() -> str:
    """The version of the installed package."""
    try:
        return installed_version("skcal")
    except PackageNotFoundError:
        return "unknown"
