"""Where predictions are miscalibrated: the ranges of predictions that cannot be chance."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import norm
from sklearn.utils import check_random_state

from skcal._show import Table, number, percent, pvalue_text, wrapped
from skcal._sklearn_compat import validate_params
from skcal._validation import CONFIDENCE_LEVEL, is_significant
from skcal.hypothesis_tests.kolmogorov_smirnov import variances_of_ranges
from skcal.hypothesis_tests.monte_carlo import draw_nulls, level_of
from skcal.hypothesis_tests.result import (
    RESAMPLING,
    CalibrationTestResult,
    adjust_pvalues,
    of_classes,
    require_reachable,
    warn_if_few,
)
from skcal.metrics.limits import clopper_pearson
from skcal.metrics.statistic import observed_draw
from skcal.notions import Problem
from skcal.sample import Sample, read_sample

_FEWEST_CELLS, _MOST_SCAN_CELLS = 32, 128  # √n between them
_NEGLIGIBLE, _MOSTLY = 0.1, 0.5  # shares of a range that may be calibrated, from which words say so
_BETWEEN = 1.645  # standard deviations: the normal's one-sided 5 %
_ENDS_TAIL = 8.8  # of both ends at once: -2 log(1 - √.975)
_CONTRADICTS = 1e-6  # of an outcome, against rounding of sums of predictions of 0 and 1
_TINY_TAIL = 1e-30  # tails below leave every probability possible, as far as quantiles are known


class ScanRange(NamedTuple):
    """A range of predictions whose observed frequency differs from what was predicted.

    Attributes
    ----------
    low, high : float
        The smallest and the largest prediction in it.
    n_samples : int
    predicted, observed : float
        Mean prediction and frequency of the outcome.
    observed_low, observed_high : float
        Confidence limits of the probability of the outcome, which hold for all ranges at once.
    outcome : str
        The class, where every class is tested; else empty.
    may_be_calibrated : float
        The share of its samples that may be calibrated: at its ends, those which a range misses
        whose gap is almost as unlikely to be chance, unless other significant ranges lie beyond;
        and the largest part between whose own gap is not significant.
    """

    low: float
    high: float
    n_samples: int
    predicted: float
    observed: float
    observed_low: float
    observed_high: float
    outcome: str = ""
    may_be_calibrated: float = 0.0

    def _data(self) -> dict[str, Any]:
        return self._asdict()

    def size_in_words(self, samples: str = "samples") -> str:
        """Say how many samples the range has, and whether most of them are surely in a wrong part.

        Parameters
        ----------
        samples : str, default="samples"
            What the samples are called.

        Returns
        -------
        text : str
        """
        size = f"{self.n_samples:,} {samples}"
        if self.may_be_calibrated <= _NEGLIGIBLE:
            return size
        if self.may_be_calibrated <= _MOSTLY:
            return f"{size}, most of them in a part that is wrong"
        return f"somewhere among {size}"


@dataclass(frozen=True, eq=False)
class ScanTestResult(CalibrationTestResult):
    """Result of :func:`~skcal.hypothesis_tests.scan_test`, beside what every test returns.

    Attributes
    ----------
    statistic : float
        The largest penalised deviation of all ranges, in standard deviations; of several classes
        the largest.
    ranges : list of ScanRange
        Ranges that do not overlap, in increasing order; none unless ``pvalue`` is at most
        1 - ``confidence_level``.
    lower_bound : float
        Lower confidence bound of the mean absolute gap, E abs(E[δ | x]); of several classes of the
        sum over classes. Above 0 exactly where there are ranges.
    confidence_level : float
    """

    ranges: list[ScanRange] = field(repr=False)
    lower_bound: float
    confidence_level: float

    def to_frame(self):
        """Return the ranges as a pandas data frame, a row each."""
        return self._parts()[0].frame()

    def _parts(self):
        return (Table(ScanRange._fields, self.ranges),)

    def sentence(self) -> str:
        """Return how many ranges are miscalibrated, in words."""
        p, n = pvalue_text(self.pvalue, self.smallest_pvalue), len(self.ranges)
        if n:
            ranges = "1 range of predictions is" if n == 1 else f"{n} ranges of predictions are"
            return f"{ranges} significantly miscalibrated ({p})"
        if is_significant(self.pvalue, self.confidence_level):
            return f"miscalibrated overall ({p}); no single range is significant by itself"
        return f"no evidence of miscalibration in any range of predictions ({p})"

    def __str__(self):
        lines = [wrapped(self._head()), f"method     {self.method}; kind: {self.notion}"]
        level = percent(self.confidence_level)
        if not self.ranges:
            return "\n".join(lines)
        of = "mean gap " if self.class_pvalues is None else "mean gap, summed over the classes,"
        lines.append(f"{of}  at least {number(self.lower_bound)} at {level} confidence")
        columns = ["predictions", "samples", "predicted", f"observed ({level} for all ranges)"]
        rows = [
            [
                f"{part.outcome} {number(part.low)} to {number(part.high)}".strip(),
                f"{part.n_samples:,}",
                number(part.predicted),
                f"{number(part.observed)} ({number(part.observed_low)} to "
                f"{number(part.observed_high)})",
            ]
            for part in self.ranges
        ]
        share = max(part.may_be_calibrated for part in self.ranges)
        some = "most samples of each range are in a part that is wrong"
        if share > _MOSTLY:
            some = "the part of a range that is wrong may hold less than half of its samples"
        notes = [some] if share > _NEGLIGIBLE else []
        return "\n".join([*lines, "", Table(columns, rows, "lrrr", notes=notes).text()])


@validate_params({**CONFIDENCE_LEVEL, **RESAMPLING})
def scan_test(
    y_true: ArrayLike | Sample,
    y_proba: ArrayLike | None = None,
    *,
    notion: str = "auto",
    n_resamples: int = 999,
    confidence_level: float = 0.95,
    random_state: int | np.random.RandomState | None = 0,
    n_jobs: int | None = None,
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    pos_label: Any = None,
    from_logits: bool = False,
) -> ScanTestResult:
    """Test calibration over all ranges of predictions, and name those where it fails.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,) or (n_samples, n_classes), or Sample
        Labels, or shares or votes of the classes; see :doc:`/guide/soft_labels`.
    y_proba : array-like of shape (n_samples,) or (n_samples, n_classes), default=None
        Probabilities in [0, 1]; rows sum to 1. A 1-D array holds P(positive class).
        Left out beside a :class:`skcal.Sample`.
    notion : {"auto", "binary", "confidence", "top-label", "classwise"}, default="auto"
        "auto" is "binary" for one and two columns and "confidence" for more. The last two test each
        class and adjust by Holm's method; their ranges are those of Bonferroni's.
    n_resamples : int, default=999
        The p-value is (1 + #{T_b ≥ T}) / (1 + n_resamples), so never 0.
    confidence_level : float in (0, 1), default=0.95
        Of the ranges' limits, all at once, and of ``lower_bound``.
    random_state : int, RandomState instance or None, default=0
        Seed of the redraws; another one changes the p-value within its Monte Carlo error.
    n_jobs : int, default=None
        Workers; results do not depend on it.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the statistic, kept fixed; only their ratios matter, and they must not depend on
        the labels. Outcomes are redrawn sample by sample, so that the level is as without weights;
        limits of ranges count effective numbers of samples, (Σw)² / Σw².
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
    result : ScanTestResult
        ``estimate`` is NaN: the test estimates only a lower bound.

    Raises
    ------
    ValueError
        If the input is not valid, the notion has vectors, or so few ``groups`` cannot reach the
        confidence level.

    Warns
    -----
    UserWarning
        If ``n_resamples`` is so small that no p-value can reach 5 %.

    See Also
    --------
    segment_test : where in the space of other features.
    equivalence_test : whether the error is shown to be small.
    skcal.Sample : Labels and predictions, read once for several questions.

    Notes
    -----
    The predictions are divided into √n cells of equally many samples, at least 32 and at most 128,
    equal predictions together. Where a cell holds 0 or 1 alone, one outcome that contradicts it is
    enough; its limits are binomial by Bonferroni's method. For every other range of cells, with
    V = Σ p (1 - p) over its samples and over all samples ΣV,

    T = abs(Σ y - Σ p) / √V - √(2 log(e ΣV / V)),

    so that small and large ranges compete on equal terms [1]_. The largest T is compared with that
    of outcomes redrawn from the predictions: P(p-value ≤ α) ≤ α at every sample size. With κ the
    critical value, the observed frequency of each range has binomial limits at the normal tail of κ
    + √(2 log(e ΣV / V)); the binomial bounds sums of unequal probabilities [2]_. With ``groups`` V
    is no less than the sum over the groups of (Σ y - Σ p)² in the range, and than the variance that
    the estimated dependence of the outcomes of a group makes; limits are as much wider. The lower
    bound is that of the set of disjoint ranges whose limits leave out the most.

    Reported are the ranges of the largest T, without those ends that their minimal significant
    ranges leave out [3]_: a wider range may be significant for what it holds of these, and the rest
    be calibrated. At n = 10,000 and level 5 %, with 199 resamples:

    ======================================== =========== ========= =========
    errors of uniform predictions            rejects     wrong     bound
    ======================================== =========== ========= =========
    a twentieth too low by 0.2               1.00 / .92  .02 / .23 .59 / .28
    a twentieth too low by 0.15              1.00 / .60  .08 / .36 .47 / .13
    top decile too high by 0.1               1.00 / 1.00 .01 / .08 .60 / .31
    top decile too high by 0.05              1.00 / .84  .02 / .13 .34 / .09
    2 % events, top 5 % six times too high   1.00 / .08  .04 / –   .46 / –
    2 % events, top 5 % 2.2 times too low    1.00 / .12  .02 / –   .28 / –
    logistic slope 0.7                       1.00 / 1.00 0 / 0     .63 / .44
    ======================================== =========== ========= =========

    "wrong" is the share of the samples of a reported range that were calibrated, "bound" that of
    ``lower_bound`` in the true mean gap; on the right of a stroke with lognormal weights, which
    leave the information of 3,700 samples. In 1.9 % of 937 data sets with ranges, more of one was
    calibrated than its ``may_be_calibrated`` and 15 %. They were of thirteen other designs; the
    worst, 12 of 80, has a calibrated part between two errors.

    The bound is short since it holds for all ranges at once. The gaps of the second and the fourth
    row are 7 standard errors, and limits of all ranges take 4 of them, which leaves 1 - 4 / 7 = .43
    at most. A range that was named before the data were seen would keep 1 - 1.645 / 7 = .77: bound
    it by :func:`~skcal.hypothesis_tests.equivalence_test` with ``interval=``.

    The tails rest on the normal law. In simulations (15 kinds of scalar predictions, six of them
    calibrated, n = 300 to 3,000, 200 data sets each) the lower bound was above the truth in at most
    1.5 % of miscalibrated data sets, and of calibrated ones in no more than the test rejects.

    It has little power where errors change their sign within a cell. 999 resamples take 1 s for a
    million samples of one probability, and some 10 s with weights or groups, or for 10,000 samples
    of each of 100 classes.

    References
    ----------
    .. [1] Dümbgen & Spokoiny, Multiscale testing of qualitative hypotheses, Ann. Statist. 2001.
    .. [2] Hoeffding, On the distribution of the number of successes in independent trials,
       Ann. Math. Statist. 1956.
    .. [3] Dümbgen & Walther, Multiscale inference about a density, Ann. Statist. 2008.

    Examples
    --------
    >>> import numpy as np
    >>> from skcal.hypothesis_tests import scan_test
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(size=2000)
    >>> happened = rng.uniform(size=2000) < np.where(p > 0.6, p - 0.2, p)
    >>> print(scan_test(happened, p, random_state=0))
    1 range of predictions is significantly miscalibrated (p ≤ 0.001).
    method     Scan of ranges of predictions, exact level; kind: binary
    mean gap   at least 0.0552 at 95 % confidence
    <BLANKLINE>
    predictions       samples  predicted  observed (95 % for all ranges)
    0.6209 to 0.9995      755     0.8130       0.6225 (0.5613 to 0.6811)
    """
    question = notion, sample_weight, labels, pos_label, from_logits
    sample = read_sample(y_true, y_proba, *question, groups=groups, from_sums=True, scalar=True)
    rng = check_random_state(random_state)
    problems = sample.problems()
    filled = [k for k, problem in enumerate(problems) if len(problem.weight)]
    titles = [""]
    if sample.notion.by_class:
        titles = sample.notion.titles([str(name) for name in sample.classes])
    warn_if_few(n_resamples, len(filled), sample.groups)
    level = (1 - confidence_level) / len(filled)
    require_reachable(level, sample.groups)
    scans = [RangeScan(problems[k]) for k in filled]
    draws = draw_nulls(scans, [scan.problem for scan in scans], n_resamples, rng, n_jobs)
    pvalues = adjust_pvalues([draw.pvalue for draw in draws])
    ranges: list[ScanRange] = []
    bound = 0.0
    for k, scan, draw in zip(filled, scans, draws, strict=True):
        critical_value = max(_critical_value(null, level) for null in draw.snapped)
        of_class, excess = scan.ranges(critical_value, draw.observed.min(), titles[k], level)
        ranges, bound = ranges + of_class, bound + problems[k].share * excess
    by_class, values = sample.notion.by_class, [float(draw.observed[-1]) for draw in draws]
    return ScanTestResult(
        statistic=max(values),
        pvalue=float(pvalues.min()),
        method=f"Scan of ranges of predictions, {level_of(sample)}",
        notion=str(sample.notion),
        null_distribution=np.stack([draw.null for draw in draws]) if by_class else draws[0].null,
        ranges=ranges,
        lower_bound=bound,
        confidence_level=confidence_level,
        **of_classes(sample, filled, values, pvalues),
    )


def _critical_value(null, level) -> float:
    """κ: a statistic above it, and no other, has a p-value of at most the level."""
    allowed = int(np.floor(level * (1 + len(null)) * (1 + 1e-12))) - 1  # resamples that reach it
    return np.inf if allowed < 0 else float(np.sort(null)[len(null) - 1 - allowed])


class RangeScan:
    """The largest penalised deviation of all ranges of cells, as a function of outcomes.

    Attributes
    ----------
    order : ndarray of shape (n_rows,)
        The increasing order of the predictions, in which outcomes are passed.
    problem : Problem
        In that order.
    starts : ndarray of shape (n_cells,)
        The first sample of each cell.
    first, end : ndarray of shape (n_ranges,)
        The cells of each range, the last one excluded.
    """

    def __init__(self, problem: Problem):
        problem = problem.as_cells
        order = np.argsort(problem.features[:, 0], kind="stable")
        self.problem = problem.take(order, order, problem.of_mean_1.weight)._replace(
            rows=slice(None), share=problem.share
        )
        x, weight = self.problem.features[:, 0].astype(np.float64), self.problem.weight
        self.weight = None if (weight == 1).all() else weight
        n_cells = int(np.clip(round(np.sqrt(problem.number())), _FEWEST_CELLS, _MOST_SCAN_CELLS))
        edges = self.problem.quantiles(np.arange(1, n_cells) / n_cells)
        certain = np.searchsorted(x, edges[edges == 1])  # as many as a cell are one, as of 0
        starts = np.searchsorted(x, edges, side="right")
        self.starts = np.unique(np.concatenate([[0], starts, certain]))
        self.starts = self.starts[self.starts < len(x)]
        self.first, self.end = np.triu_indices(len(self.starts) + 1, 1)
        counts = np.append(0, np.cumsum(self.problem.sizes))
        self.ends = counts[np.append(self.starts, len(x))]  # samples before each cell
        squares = self.problem.squares
        self.mass, self.squares = self._over_ranges(weight), self._over_ranges(squares)
        self.predicted = self._over_ranges(weight * x)
        implied = variance = self._over_ranges(squares * x * (1 - x))
        self.certain = implied <= 0  # where the predictions leave nothing to chance
        self.certainty = np.ones_like(implied)  # independent samples, as a share of all
        if not self.problem.groups.independent:
            seen, together = self._variances_of_groups()
            variance = np.where(self.certain, 0.0, np.maximum(implied, seen))
            independent = np.where(self.certain, self.squares, implied)
            self.certainty = independent / np.where(self.certain, together, variance)
        self.deviation = np.sqrt(variance)
        with np.errstate(divide="ignore", invalid="ignore"):
            self.penalty = np.sqrt(2 * (1 + np.log(variance.max() / variance)))
        self.penalty[self.certain] = np.inf

    def counted(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Predictions in order and the first row of each cell; None if outcomes have weights."""
        x = self.problem.features[:, 0].astype(np.float64)
        return (x, self.starts) if self.weight is None else None

    def _over_ranges(self, values) -> np.ndarray:
        """Sums (…, n_ranges) over the ranges, of values (…, n_samples)."""
        return self._joined(np.add.reduceat(values, self.starts, axis=-1))

    def _joined(self, cells) -> np.ndarray:
        """Sums (…, n_ranges) over the ranges, of sums (…, n_cells)."""
        total = np.zeros((*cells.shape[:-1], len(self.starts) + 1), dtype=cells.dtype)
        np.cumsum(cells, axis=-1, out=total[..., 1:])
        return total[..., self.end] - total[..., self.first]

    def _variances_of_groups(self) -> np.ndarray:
        """Variances over the ranges, and Σ_g (Σ w)² over the samples of each group in each.

        A variance is the larger one of what is seen and what the dependence within groups says.
        Seen is Σ_g (Σ w δ)², which flips do not change; it is tiny where no group has an event.
        """
        problem, groups, n_cells = self.problem, self.problem.groups, len(self.starts)
        x, weight = problem.features[:, 0].astype(np.float64), problem.weight
        cell = np.repeat(np.arange(n_cells), np.diff([*self.starts, len(x)]))
        residuals, weights = (
            groups.sums_in_cells(values, cell, n_cells)
            for values in (weight * problem.residuals[:, 0], weight)
        )
        law = groups.covariance_of_cells(weight, x, cell, n_cells)
        products = residuals.T @ residuals, law, weights.T @ weights
        seen, by_law, together = (
            variances_of_ranges(each)[self.first, self.end] for each in products
        )
        return np.stack([np.maximum(seen, by_law), together])

    def __call__(self, codes):
        """Return the statistic of each row of outcomes."""
        return self.of_sums(np.add.reduceat(self.weighted(codes), self.starts, axis=-1))

    def of_sums(self, sums):
        """Return the same of sums (k, n_cells) of outcomes by weight, without weights of counts."""
        gap = np.abs(self._joined(sums) - self.predicted)
        certain = self.certain
        contradicted = (gap[:, certain] > _CONTRADICTS).any(axis=1)
        scores = (gap / np.where(certain, 1, self.deviation) - self.penalty).max(axis=1)
        scores = np.where(certain.all(), 0.0, scores)
        return np.where(contradicted, np.finfo(np.float64).max, scores)

    def weighted(self, codes) -> np.ndarray:
        """Outcomes times the weights of their samples."""
        return codes if self.weight is None else codes * self.weight

    def ranges(self, critical_value, value, title, level) -> tuple[list[ScanRange], float]:
        """Disjoint ranges whose limits leave out the most, and how much per sample of all."""
        if not value > critical_value:
            return [], 0.0
        # Effective numbers of samples and of hits; of equal weights they are the numbers.
        effective = self.certainty * self.mass / self.squares
        sizes = effective * self.mass
        hits = self._over_ranges(self.weighted(observed_draw(self.problem)))[0]
        gaps, frequency, hits = hits - self.predicted, hits / self.mass, hits * effective
        tail = norm.sf(max(critical_value, 0.0) + self.penalty)
        tail[self.certain] = level / (2 * max(self.certain.sum(), 1))  # they have no κ
        low, high = clopper_pearson(hits, sizes, np.maximum(tail, _TINY_TAIL))
        low, high = np.where(tail > _TINY_TAIL, low, 0.0), np.where(tail > _TINY_TAIL, high, 1.0)
        mean = self.predicted / self.mass
        excess = self.mass * np.maximum(np.maximum(low - mean, mean - high), 0)
        excess[self.certain & (np.abs(gaps) <= _CONTRADICTS)] = 0
        best = excess[_best_disjoint(self.first, self.end, excess)]
        bound = best.sum() / self.problem.number()
        chosen, minimal = self._named(gaps, excess, critical_value)
        x, bounds = self.problem.features[:, 0], np.append(self.starts, len(self.problem.weight))
        first, end = bounds[self.first[chosen]], bounds[self.end[chosen]]
        n_samples = self.ends[self.end[chosen]] - self.ends[self.first[chosen]]
        shown = (values[chosen].tolist() for values in (mean, frequency, low, high))
        columns = x[first].tolist(), x[end - 1].tolist(), n_samples.tolist(), *shown
        shares = [
            min(1.0, self._outside_of_core(k, chosen, gaps, minimal) + self._without_error(k, gaps))
            for k in chosen
        ]
        rows = zip(*columns, [title] * len(chosen), shares, strict=True)
        return [ScanRange(*row) for row in rows], float(bound)

    def _named(self, gaps, excess, critical_value) -> tuple[list[int], dict]:
        """Disjoint ranges in order less their ends, and the minimal significant ones of each side.

        The ends of a range that its minimal significant ranges leave out are cut off: those hold no
        other significant range of their side, where wider ones may be significant for what
        they hold of these, and the rest be calibrated. Ranges of one side that touch are one.
        """
        first, end, varies = self.first, self.end, ~self.certain
        signed = np.divide(gaps, self.deviation, out=np.zeros_like(gaps), where=varies)
        scores = np.where(
            excess > 0, np.where(varies, np.abs(signed) - self.penalty, np.inf), -np.inf
        )
        minimal = {
            side: self._minimal(side * signed - self.penalty > critical_value) for side in (1, -1)
        }
        number = np.zeros((len(self.starts) + 1,) * 2, dtype=np.intp)
        number[first, end] = np.arange(len(first))
        chosen = []
        while scores.max() > critical_value:
            best = int(np.lexsort((excess, scores))[-1])
            inside = (
                minimal[1 if gaps[best] > 0 else -1] & (first >= first[best]) & (end <= end[best])
            )
            if inside.any():
                core = number[first[inside].min(), end[inside].max()]
                best = int(core) if excess[core] > 0 else best
            chosen.append(best)
            scores[(first < end[best]) & (end > first[best])] = -np.inf
        joined: list[int] = []
        for k in sorted(chosen, key=lambda k: first[k]):
            if joined and end[joined[-1]] == first[k] and gaps[joined[-1]] * gaps[k] > 0:
                k = int(number[first[joined.pop()], end[k]])
            joined.append(k)
        return joined, minimal

    def _outside_of_core(self, chosen, others, gaps, minimal) -> float:
        """The share of a range's samples, at its ends, that may be calibrated.

        They are outside of all ranges that are as likely as the likeliest, and of what lies between
        the first and the last minimal significant range, each of which holds an error somewhere.
        Were the gap of a range the same everywhere, its score squared would be twice a
        log-likelihood, of which the true ends fall short by at most ``_ENDS_TAIL`` in 95 %.
        """
        if self.certain[chosen]:  # one prediction of 0 or 1, which cannot be
            return 0.0
        first, end = self.first, self.end
        overlaps = (first < end[chosen]) & (end > first[chosen]) & (gaps * gaps[chosen] > 0)
        for other in others:
            if other != chosen:
                overlaps &= (end <= first[other]) | (first >= end[other])
        likely = np.full(len(gaps), -np.inf)
        varies = overlaps & (self.deviation > 0)
        likely[varies] = (gaps[varies] / self.deviation[varies]) ** 2
        likely = likely >= likely.max() - _ENDS_TAIL
        ends = self.ends
        low, high = max(first[likely].max(), first[chosen]), min(end[likely].min(), end[chosen])
        cores = [(low, high)] if varies.any() else []
        inside = minimal[1 if gaps[chosen] > 0 else -1]
        inside = inside & (first >= first[chosen]) & (end <= end[chosen])
        if inside.any():
            cores.append((end[inside].min() - 1, first[inside].max() + 1))
        cores = [core for core in cores if core[0] < core[1]]
        if not cores:
            return 1.0
        low, high = min(low for low, _ in cores), max(high for _, high in cores)
        return float(1 - (ends[high] - ends[low]) / (ends[end[chosen]] - ends[first[chosen]]))

    def _without_error(self, chosen, gaps) -> float:
        """The largest share of a range's samples between its ends that may be calibrated.

        The gap of such a part is not significant at the one-sided level of 5 % by itself.
        """
        part = np.flatnonzero((self.first > self.first[chosen]) & (self.end < self.end[chosen]))
        ends = self.ends
        sizes = ends[self.end] - ends[self.first]
        calibrated = np.sign(gaps[chosen]) * gaps[part] < _BETWEEN * self.deviation[part]
        return float(np.max(sizes[part][calibrated], initial=0) / sizes[chosen])

    def _minimal(self, significant) -> np.ndarray:
        """Which of some ranges hold none of the others."""
        n_cells = len(self.starts)
        known = np.zeros((n_cells + 1, n_cells + 1), dtype=bool)
        known[self.first, self.end] = significant
        inner = np.zeros_like(known)
        for length in range(2, n_cells + 1):
            first = np.arange(n_cells + 1 - length)
            held = (
                (known | inner)[first + 1, first + length],
                (known | inner)[first, first + length - 1],
            )
            inner[first, first + length] = np.logical_or(*held)
        return significant & ~inner[self.first, self.end]


def _best_disjoint(first, end, value) -> list[int]:
    """Disjoint ranges of the largest sum of values, in order, by dynamic programming."""
    n_cells = int(end.max())
    best, last = np.zeros(n_cells + 1), np.full(n_cells + 1, -1)
    for stop in range(1, n_cells + 1):
        best[stop] = best[stop - 1]
        for k in np.flatnonzero(end == stop):
            if best[first[k]] + value[k] > best[stop]:
                best[stop], last[stop] = best[first[k]] + value[k], k
    chosen: list[int] = []
    stop = n_cells
    while stop > 0:
        if last[stop] < 0:
            stop -= 1
        else:
            chosen.append(int(last[stop]))
            stop = int(first[last[stop]])
    return chosen[::-1]
