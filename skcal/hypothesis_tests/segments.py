"""Which segments of the samples are miscalibrated: one test of all, with family-wise p-values.

The residuals of a segment make a statistic, of observed and of redrawn outcomes; the largest ones
of redrawn outcomes make step-down p-values.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import reduce
from numbers import Integral
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state

from skcal._labels import refuse_another_order
from skcal._running import over_jobs
from skcal._selection import LEVEL
from skcal._show import Table, number, pvalue_number, pvalue_text, wrapped
from skcal._sklearn_compat import Interval, StrOptions, validate_params
from skcal._validation import CONFIDENCE_LEVEL, InputError, is_significant, row_blocks
from skcal.hypothesis_tests.monte_carlo import flip, level_of
from skcal.hypothesis_tests.result import RESAMPLING, CalibrationTestResult, warn_if_few
from skcal.hypothesis_tests.segment_features import make_segments
from skcal.metrics.limits import clopper_pearson, proportion_limits
from skcal.metrics.statistic import draw_codes, observed_draw, redraw
from skcal.notions import Problem
from skcal.recalibration.scalar_scaling import SplineScaling
from skcal.sample import Sample, read_sample, require_given

_METHODS = {"bias": "standardised bias", "ece": "standardised ECE"}
_SHOWN, _SHOWN_IN_PAGES = 5, 10  # of the segments
_SEGMENT_BINS = 10  # of the ECE within a segment
_N_SCALES = 200  # further draws by which it is standardised
_REDRAW_BYTES = 2**27
_SEGMENT_ROUNDING = 1e-9  # relative differences of weighted sums


class Segment(NamedTuple):
    """One segment, or one class in it.

    Attributes
    ----------
    name : str
        Such as ``age in (40, 55] and sex = F``.
    outcome : str
        The predicted quantity: ``P(1)``, ``confidence``, ``class cat``, …
    n_samples : int
    predicted, observed : float
        Weighted means over the segment, of the probability and of what happened.
    difference : float
        Observed minus predicted; under ``relative=True`` minus what the calibration curve of all
        samples says of these predictions.
    low, high : float
        Interval of the observed mean. The intervals of all segments hold together with the
        confidence of the test, so that of the worst one does, too.
    statistic : float
        The standardised statistic; under ``statistic="bias"`` it has the sign of observed minus
        predicted.
    pvalue : float
        Adjusted for all segments.
    """

    name: str
    outcome: str
    n_samples: int
    predicted: float
    observed: float
    difference: float
    low: float
    high: float
    statistic: float
    pvalue: float

    @property
    def expected(self) -> float:
        """The observed frequency minus the difference: the prediction, or that of all."""
        return self.observed - self.difference

    @property
    def surely(self) -> float:
        """The difference that is certain: how far the interval is from the expected mean."""
        return max(self.low - self.expected, self.expected - self.high, 0.0)

    @property
    def is_worse(self) -> bool:
        """Whether predictions are wrong by more than the same predictions of all samples."""
        return abs(self.observed - self.predicted) > abs(self.expected - self.predicted)

    def is_significant(self, confidence_level: float) -> bool:
        """Whether the segment differs significantly, adjusted for all segments.

        Parameters
        ----------
        confidence_level : float in (0, 1)
            Of all segments together.

        Returns
        -------
        significant : bool
        """
        return is_significant(self.pvalue, confidence_level)

    def __str__(self):
        relative = not np.isclose(self.expected, self.predicted)
        than_all = " more than all samples" if relative else ""
        way = "underpredicted" if self.difference > 0 else "overpredicted"
        return (
            f"{self.name}, {self.outcome}: {way}{than_all} by {number(abs(self.difference))}, "
            f"{number(self.expected)} against {number(self.observed)} ({number(self.low)} to "
            f"{number(self.high)}) observed in {self.n_samples} samples; "
            f"p = {pvalue_number(self.pvalue)}"
        )


@dataclass(frozen=True, eq=False)
class SegmentTestResult(CalibrationTestResult):
    """Result of :func:`~skcal.hypothesis_tests.segment_test`, beside what every test returns.

    Attributes
    ----------
    statistic : float
        The largest statistic of all segments.
    pvalue : float
        The p-value of the hypothesis that no segment is miscalibrated.
    segments : list of Segment
        The worst one first: the smallest p-value, and of several the largest certain difference.
    n_left_out : int
        Segments with fewer than ``min_samples`` samples, which are not tested.
    null_distribution : ndarray of shape (n_resamples,) or None
        The largest statistic of redrawn outcomes; None for the notion "classwise".
    confidence_level : float
        With which all intervals hold together.
    """

    segments: list[Segment] = field(repr=False)
    n_left_out: int
    confidence_level: float = field(default=1 - LEVEL, repr=False)

    @property
    def compared_with(self) -> str:
        """What is observed is compared with "predicted" or, if relative, with "all samples"."""
        return "all samples" if "relative" in self.method else "predicted"

    def _data(self):
        worst = [segment._asdict() for segment in self.segments[:_SHOWN_IN_PAGES]]
        counts = {"n_segments": len(self.segments), "n_left_out": self.n_left_out}
        return {"pvalue": self.pvalue, **counts, "worst": worst}

    def to_frame(self):
        """Return the segments as a pandas data frame, a row each."""
        return Table(Segment._fields, self.segments).frame()

    def _parts(self):
        more = len(self.segments) - _SHOWN_IN_PAGES
        table = self.worst(_SHOWN_IN_PAGES)
        notes = [f"… and {more:,} more segments: to_frame()"] if more > 0 else []
        return (replace(table, notes=[*notes, *table.notes]),)

    def sentence(self) -> str:
        """Return how many segments are miscalibrated, in words."""
        level = self.confidence_level
        wrong = sum(segment.is_significant(level) for segment in self.segments)
        p = pvalue_text(self.pvalue, self.smallest_pvalue)
        if not wrong:
            return f"no evidence of miscalibration in any of {len(self.segments):,} segments ({p})"
        be = "is" if wrong == 1 else "are"
        return (
            f"{wrong:,} of {len(self.segments):,} segments {be} significantly miscalibrated ({p}, "
            "adjusted for all)"
        )

    def __str__(self):
        head = f"{wrapped(self._head())}\nmethod   {self.method}; kind: {self.notion}"
        if self.n_left_out:
            head += f"; {self.n_left_out} segments are too small to be tested"
        if len(self.segments) > _SHOWN:
            head += f"; the worst {_SHOWN} below"
        return f"{head}\n\n{self.worst(_SHOWN).text()}"

    def worst(self, n_worst: int) -> Table:
        """Return a table of the first segments: what was expected, and what happened.

        Parameters
        ----------
        n_worst : int
            Number of segments, those with the smallest p-values first.
        """
        several = len({segment.outcome for segment in self.segments}) > 1
        relative = self.compared_with != "predicted"
        columns = ["segment", *["outcome"] * several, "samples", "predicted"]
        columns += ["expected"] * relative
        columns += ["observed", *["difference"] * (not relative), "p-value"]
        rows = [
            [
                segment.name,
                *[segment.outcome] * several,
                f"{segment.n_samples:,}",
                *[number(segment.predicted)] * relative,
                number(segment.expected),
                f"{number(segment.observed)} ({number(segment.low)} to {number(segment.high)})",
                *[f"{segment.difference:+.4f}"] * (not relative),
                pvalue_number(segment.pvalue, self.smallest_pvalue),
            ]
            for segment in self.segments[:n_worst]
        ]
        notes = ["Expected is what was observed in all samples with such predictions."] * relative
        notes += ["Intervals hold, and p-values are adjusted, for all segments together."]
        sides = "l" + "l" * several + "rrrrr"
        return Table(columns, rows, sides, notes=notes)


@validate_params(
    {
        "statistic": [StrOptions({"bias", "ece"})],
        "relative": ["boolean"],
        "n_bins": [Interval(Integral, 2, None, closed="left")],
        "order": [Interval(Integral, 1, 2, closed="both")],
        "min_samples": [Interval(Integral, 1, None, closed="left")],
        **CONFIDENCE_LEVEL,
        **RESAMPLING,
    }
)
def segment_test(
    y_true: ArrayLike | Sample,
    y_proba: ArrayLike | None = None,
    features: Any = None,
    *,
    statistic: Literal["bias", "ece"] = "bias",
    relative: bool = False,
    notion: Any = "auto",
    n_bins: int = 4,
    order: int = 2,
    min_samples: int = 20,
    confidence_level: float = 0.95,
    n_resamples: int = 999,
    random_state: int | np.random.RandomState | None = 0,
    n_jobs: int | None = None,
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    pos_label: Any = None,
    from_logits: bool = False,
) -> SegmentTestResult:
    """Test calibration in all segments of the features, and name the miscalibrated ones.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,) or (n_samples, n_classes), or Sample
        Labels, or shares or votes of the classes; see :doc:`/guide/soft_labels`.
    y_proba : array-like of shape (n_samples,) or (n_samples, n_classes), default=None
        Probabilities in [0, 1]; rows sum to 1. A 1-D array holds P(positive class).
        Left out beside a :class:`skcal.Sample`.
    features : data frame, arrow table, dict of columns, or array-like, default=None
        Shape (n_samples, n_features), by name beside a Sample. Strings and categories make a
        segment each, numbers quantile ranges, booleans one segment of those where they are true;
        missing values make one too. They need not be the features of the model.
    statistic : {"bias", "ece"}, default="bias"
        "bias": the absolute value of observed minus predicted in the segment, in standard
        deviations, of several classes that of the worst. "ece": the expected calibration error
        within the segment, of 10 bins of equal width for single probabilities, of all samples for
        vectors, in standard deviations above what calibration leads to; it detects errors that
        cancel within the segment.
    relative : bool, default=False
        Whether a segment is compared with all samples instead of with its predictions: H0 is that
        its calibration curve is that of all samples. A model that is off everywhere is off in all
        segments; this option shows which segments differ. With the single feature of a group it
        tests whether the groups differ. Not for notions that condition on vectors.
    notion : str or callable, default="auto"
        "auto" is "binary" for one and two columns and "confidence" for more. With "top-label" every
        predicted class has its segments.
    n_bins : int ≥ 2, default=4
        Quantile ranges of a column of numbers; one with no more distinct values has a segment a
        value.
    order : {1, 2}, default=2
        1: segments of single features; 2: also the intersections of two.
    min_samples : int, default=20
        Smaller segments are left out; ``n_left_out`` of the result is their number.
    confidence_level : float in (0, 1), default=0.95
        The intervals of all segments hold together with this confidence.
    n_resamples : int, default=999
        p-values are multiples of 1 / (1 + n_resamples).
    random_state : int, RandomState instance or None, default=0
        The seed of the draws.
    n_jobs : int, default=None
        Workers; results do not depend on it.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the means, kept fixed; they must not depend on the labels.
    groups : array-like of shape (n_samples,), default=None
        Samples of one group may depend on each other; None: all are independent. See
        :doc:`/guide/dependent_samples`.
    labels : array-like of shape (n_classes,), default=None
        The class of each column; for 1-D predictions (negative class, positive class).
    pos_label : label, default=None
        The positive class of 1-D predictions, or of two columns for "binary"; an error otherwise.
    from_logits : bool, default=False
        Whether ``y_proba`` holds logits; probabilities are computed from them without loss of
        precision.

    Returns
    -------
    result : SegmentTestResult
        ``segments``, the smallest adjusted p-value first, and the ``pvalue`` of all together.
        ``worst()`` is a table of the first.

    Raises
    ------
    ValueError
        If the input is not valid, or no segment has enough samples.

    See Also
    --------
    monte_carlo_test : tests calibration of all samples together.

    Notes
    -----
    H0 of a segment: the outcome of each of its samples has the predicted distribution, whatever its
    features. With N_s the weighted sum of what happened in segment s, E_s of what was predicted,
    V_s = Σ wᵢ² pᵢ (1 - pᵢ) and u_s² the mean of the squared weights,

        "bias":  T_s = abs(N_s - E_s) / √(V_s + u_s²).

    The last term, that of a single sample, keeps segments with a tiny expected number of events
    from ruling the maximum. Outcomes of all samples are redrawn from the predictions together, so
    p-values know how segments overlap. They are those of Westfall and Young's step-down maximum.
    The probability that any segment that fulfils its H0 has a p-value ≤ α is at most α. This holds
    at every sample size, if labels are independent given the predictions. Classes of the notion
    "classwise" have no joint law: their p-values are multiplied by the number of classes. Under
    ``relative=True`` p is what a spline of all samples makes of the predictions
    (:class:`~skcal.recalibration.SplineScaling`), so that the level is asymptotic.

    Intervals are those of Clopper and Pearson, at α divided by the number of segments, which cover
    the means of unequal probabilities too [3]_. Weights count by their effective number of samples,
    as do groups. They assume nothing of the predictions, and are wider than the p-values need.

    Segments of the same samples are one, with the names of all.

    Time O(n_resamples × n_columns × members of all segments); memory within scikit-learn's
    ``working_memory`` beside 8 bytes a member. The test takes some 25 s for 100,000 samples of 20
    features, whose pairs are segments too. ``order=1``, which leaves pairs out, takes half of that,
    and ``n_resamples=199`` a fifth.

    References
    ----------
    .. [1] Westfall & Young, Resampling-based multiple testing, Wiley 1993.
    .. [2] Hébert-Johnson et al., Multicalibration: calibration for the (computationally-
       identifiable) masses, ICML 2018.
    .. [3] Hoeffding, On the distribution of the number of successes in independent trials, Annals
       of Mathematical Statistics 1956.

    Examples
    --------
    >>> import numpy as np
    >>> from skcal.hypothesis_tests import segment_test
    >>> rng = np.random.default_rng(0)
    >>> features = {"age": rng.integers(20, 80, 2000), "sex": rng.choice(["F", "M"], 2000)}
    >>> proba = rng.uniform(size=2000)
    >>> wrong = (features["age"] > 65) & (features["sex"] == "F")
    >>> y = rng.uniform(size=2000) < np.where(wrong, proba**2, proba)
    >>> result = segment_test(y, proba, features, random_state=0)
    >>> result.pvalue
    0.001
    >>> worst = result.segments[0]
    >>> worst.name, worst.n_samples, round(worst.predicted, 2), round(worst.observed, 2)
    ('age > 65 and sex = F', 252, 0.49, 0.32)
    """
    require_given(features=features)
    options: dict[str, Any] = {"keep_weightless": True, "groups": groups}
    question = notion, sample_weight, labels, pos_label, from_logits
    refuse_another_order({"y_proba": y_proba, "y_true": y_true, "features": features})
    sample = read_sample(y_true, y_proba, *question, scalar=relative, **options)
    segments = make_segments(
        features, len(sample.codes), n_bins=n_bins, order=order, min_samples=min_samples
    )
    weighted = np.flatnonzero(sample.weight)
    if len(weighted) < len(sample.codes):
        sample = sample.counted
        segments = segments.take(weighted)
    rng = check_random_state(random_state)
    kind = SegmentBias if statistic == "bias" else SegmentECE
    parts = _make_parts(kind, sample, segments, min_samples, relative, rng)
    families = [parts] if sample.notion.joint_law else [[part] for part in parts]
    warn_if_few(n_resamples, len(families), sample.groups)
    tested = [step_down(family, n_resamples, rng, n_jobs) for family in families]
    worst_first = _worst_first(families, tested, 1 - confidence_level)
    return SegmentTestResult(
        statistic=max(abs(segment.statistic) for segment in worst_first),
        pvalue=worst_first[0].pvalue,
        method=f"segments{' relative to all samples' * relative} by {_METHODS[statistic]}, "
        f"{'asymptotic level' if relative else level_of(sample)} over all segments",
        notion=str(sample.notion),
        null_distribution=tested[0][1][0] if sample.notion.joint_law else None,
        segments=worst_first,
        n_left_out=segments.n_left_out + sum(part.n_left_out for part in parts),
        confidence_level=confidence_level,
    )


def _make_parts(kind, sample, segments, min_samples, relative, rng) -> list:
    """The statistics of the problems that have segments."""
    titles = sample.notion.titles([str(label) for label in sample.classes.tolist()])
    parts = []
    for k, problem in enumerate(sample.problems()):
        outcome_titles = titles[k : k + 1] if sample.notion.scalar else titles
        part = kind(problem, segments, outcome_titles, min_samples, rng, relative)
        if len(part.n_samples):
            parts.append(part)
    if not parts:
        reason = f"make no segment of at least {min_samples} samples of positive weight."
        raise InputError("features", reason, "Lower min_samples.")
    return parts


def _worst_first(families, tested, alpha) -> list[Segment]:
    """Segments of all families, the worst one first; p-values are adjusted for the families."""
    segments = []
    n_segments = sum(len(part.n_samples) for family in families for part in family)
    for family, (pvalues, _) in zip(families, tested, strict=True):
        adjusted = iter(np.minimum(len(families) * pvalues, 1).tolist())
        segments += [one for part in family for one in part.describe(adjusted, alpha, n_segments)]
    return sorted(segments, key=lambda one: (one.pvalue, -one.surely, -abs(one.statistic)))


def _calibration_curve(problem: Problem) -> np.ndarray:
    """The observed frequency as a smooth function of a single prediction, (n_rows, 1)."""
    outcomes = problem.outcomes[:, 0]
    happened = np.column_stack([1 - outcomes, outcomes]) if problem.of_shares else outcomes
    curve = SplineScaling().fit(problem.features, happened, problem.weight)
    return curve.predict_proba(problem.features)[:, 1:]


class _Sums:
    """Weighted sums over segments of whether something happens, minus what was predicted."""

    def __init__(self, segments, weight, predicted):
        self._segments = segments
        self._weight = None if (weight == 1).all() else weight[:, None]
        variance = weight**2 * predicted * (1 - predicted)
        sums = segments.sums(np.column_stack([weight * predicted, variance]))
        self.predicted, self.variance = sums[:, :1], sums[:, 1:]

    def deviations(self, happens):
        """Sums (n_segments, k) of values (n_rows, k); booleans without weights count exactly."""
        if self._weight is None:
            counts = happens.dtype.kind == "b" and len(happens) < 2**24
            values = happens.astype(np.float32 if counts else np.float64)
        else:
            values = happens * self._weight
        return self._segments.sums(values).astype(np.float64) - self.predicted


class SegmentBias:
    """|observed - predicted| of each segment of a problem in standard deviations.

    The worst of several columns counts.

    Attributes
    ----------
    features : ndarray of shape (n_rows, d)
    codes : ndarray of shape (1, n_rows), of shares of vectors (1, n_rows, d)
        The observed outcomes.
    n_samples : ndarray of shape (n_segments,)
        Sizes of the segments that have enough samples of the problem.
    """

    def __init__(self, problem: Problem, segments, titles, min_samples, rng, relative=False):
        segments = segments.take(problem.rows)
        sizes = segments.sums(np.ones((len(problem.weight), 1)))[:, 0].astype(int)
        large = np.flatnonzero(sizes >= min_samples)
        self.n_left_out = int(np.count_nonzero(sizes)) - len(large)
        self._segments = segments = segments.keep(large, self.n_left_out)
        self.n_samples, self._titles = sizes[large], titles
        self._shown_features = problem.features.astype(np.float64)
        if relative:
            curve = _calibration_curve(problem)
            problem = problem._replace(features=curve, residuals=problem.outcomes - curve)
        self.features, self.codes = problem.features.astype(np.float64), observed_draw(problem)
        self._weight, self.problem = problem.weight, problem
        sums = segments.sums(np.column_stack([self._weight, self._weight**2]))
        self._mass, self._squares = sums[:, :1], sums[:, 1:]
        self._smallest = self._squares / self.n_samples[:, None]
        labels = range(self.features.shape[1]) if self.features.shape[1] > 1 else [1]
        self._columns = [
            (label, _Sums(segments, self._weight, x))
            for label, x in zip(labels, self.features.T, strict=True)
        ]
        self._prepare(rng)

    def _prepare(self, rng):
        pass

    def _signed(self, codes):
        """Standardised sums (n_segments, k) of each column, for outcomes (k, n_rows)."""
        for label, sums in self._columns:
            yield sums.deviations(_happened(codes, label)) / np.sqrt(sums.variance + self._smallest)

    def __call__(self, codes):
        """Statistics (k, n_segments) of outcomes (k, n_rows)."""
        return reduce(np.maximum, map(np.abs, self._signed(codes))).T

    @property
    def scale(self):
        """Standard deviations of observed minus predicted means of the first column, (n,)."""
        return (np.sqrt(self._columns[0][1].variance + self._smallest) / self._mass)[:, 0]

    def describe(self, pvalues, alpha=0.05, n_segments=1) -> list[Segment]:
        """Return the segments, with the next of the p-values, and limits adjusted for so many."""
        signed = np.hstack(list(self._signed(self.codes)))
        column = np.abs(signed).argmax(axis=1)
        worst = np.arange(len(column)), column
        predicted = self._segments.sums(self._weight[:, None] * self._shown_features) / self._mass
        expected = np.hstack([sums.predicted for _, sums in self._columns]) / self._mass
        happened = [sums.deviations(_happened(self.codes, label)) for label, sums in self._columns]
        difference = np.hstack(happened) / self._mass
        observed = expected + difference
        limits = self._limits(observed[worst], column, alpha / 2 / n_segments)
        values = [each[worst].tolist() for each in (predicted, observed, difference)]
        values += [ends.tolist() for ends in limits]
        statistics = self._shown(signed[worst]).tolist()
        outcomes = [self._titles[k] for k in column.tolist()]
        columns = [self._segments.names, outcomes, self.n_samples.tolist(), *values, statistics]
        rows = zip(*columns, strict=True)
        return [Segment._make([*row, next(pvalues)]) for row in rows]

    def _limits(self, observed, column, tail):
        """Clopper-Pearson limits (2, n) of the observed means."""
        effective = self._mass[:, 0] ** 2 / self._squares[:, 0]
        if self.problem.groups.independent:
            return clopper_pearson(observed * effective, effective, tail)
        ends = []
        for segment, k in enumerate(column):
            rows = self._segments.rows_of(segment)
            about = self._weight[rows], self.problem.groups.take(rows), tail
            ends.append(proportion_limits(self.problem.outcomes[rows, k], *about))
        return np.transpose(ends)

    def _shown(self, signed):
        """Return the statistics as they are printed."""
        return signed


class SegmentECE(SegmentBias):
    """ECE of each segment, in standard deviations above its mean under calibration."""

    def _prepare(self, rng):
        self._contrasts: list = [(*column, slice(None)) for column in self._columns]
        if len(self._columns) == 1:
            x = self.features[:, 0]
            bins = np.minimum((x * _SEGMENT_BINS).astype(int), _SEGMENT_BINS - 1)
            rows = [np.flatnonzero(bins == k) for k in np.unique(bins)]
            self._contrasts = [
                (1, _Sums(self._segments.take(of_bin), self._weight[of_bin], x[of_bin]), of_bin)
                for of_bin in rows
            ]
        seeds = rng.randint(2**31 - 1, size=_N_SCALES).tolist()
        draws = np.concatenate([self._errors(draw_codes(self.features, [s])) for s in seeds])
        self._mean = draws.mean(axis=0)
        self._scale = np.sqrt(draws.var(axis=0) + self._smallest[:, 0])

    def _errors(self, codes):
        """Σ |observed - predicted| over bins or columns, (k, n_segments)."""
        errors = np.zeros((len(self.n_samples), len(codes)))
        for label, sums, rows in self._contrasts:
            errors += np.abs(sums.deviations(_happened(codes, label)[rows]))
        return errors.T

    def __call__(self, codes):
        """Statistics (k, n_segments) of outcomes (k, n_rows)."""
        return (self._errors(codes) - self._mean) / self._scale

    def _shown(self, signed):
        return self(self.codes)[0]


def _happened(outcomes, label):
    """Whether a label happened, or, of a block of numbers, how much; (n_rows, k)."""
    if outcomes.dtype.kind != "f":
        return label == outcomes.T
    return (outcomes if outcomes.ndim == 2 else outcomes[:, :, label]).T


def step_down(family, n_resamples, rng, n_jobs):
    """Adjusted p-values of all segments of a family, and the largest statistic of each redraw.

    With groups, the p-values are the larger ones of flips and of redraws; the largest statistics
    (n_laws, n_resamples) are in this order, those of the larger p-value first.
    """
    observed = np.concatenate([part(part.codes)[0] for part in family])
    order = np.argsort(-observed, kind="stable")
    bar = observed[order] - _SEGMENT_ROUNDING * (1 + np.abs(observed[order]))
    seeds = common = rng.randint(2**31 - 1, size=(n_resamples, len(family)))
    laws: list[Any] = [redraw]
    # All problems flip the same groups, and share what those share.
    if not family[0].problem.groups.independent:
        common = rng.randint(2**31 - 1, size=(n_resamples, 1))
        laws.append(flip)
    row_bytes = 32 * max(sum(part.features.size for part in family), len(observed))
    blocks = list(row_blocks(n_resamples, row_bytes, _REDRAW_BYTES))
    tested = []
    for law in laws:
        calls = (
            (_exceedances, law, family, seeds[rows].T, common[rows, 0], order, bar)
            for rows in blocks
        )
        counted = over_jobs(calls, n_jobs)
        counts = np.sum([count for count, _ in counted], axis=0)
        tested.append((counts, np.concatenate([maxima for _, maxima in counted])))
    tested.sort(key=lambda counts_and_maxima: -counts_and_maxima[0][0])
    adjusted = np.empty(len(observed))
    counts = np.max([counts for counts, _ in tested], axis=0)
    adjusted[order] = np.maximum.accumulate((1 + counts) / (1 + n_resamples))
    return adjusted, np.stack([maxima for _, maxima in tested])


def _exceedances(law, family, seeds, common, order, bar):
    """How often the largest of each segment and those after it reaches the bar; all maxima."""
    drawn = [
        part(law(part.problem, of_part, common))
        for part, of_part in zip(family, seeds, strict=True)
    ]
    largest = np.hstack(drawn)[:, order[::-1]]
    largest = np.maximum.accumulate(largest, axis=1)[:, ::-1]
    return np.count_nonzero(largest >= bar, axis=0), largest[:, 0]
