"""One test of calibration: the combined p-value of statistics that detect different errors."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, logit
from scipy.stats import rankdata
from sklearn.metrics import pairwise_distances_argmin
from sklearn.utils import check_random_state

from skcal._rounding import RESOLUTION, n_moved, step_of, within_half_a_step
from skcal._show import pvalue_number, wrapped
from skcal._sklearn_compat import validate_params
from skcal._validation import row_blocks
from skcal.hypothesis_tests.monte_carlo import Draws, draw_nulls, level_of
from skcal.hypothesis_tests.result import (
    RESAMPLING,
    CalibrationTestResult,
    adjust_pvalues,
    default_resamples,
    of_classes,
    warn_if_few,
)
from skcal.hypothesis_tests.scan import RangeScan
from skcal.hypothesis_tests.skce import all_pairs, covariance_products
from skcal.kernels import Kernel
from skcal.metrics.gap_sums import in_canonical_order
from skcal.metrics.statistic import observed_draw
from skcal.notions import Problem
from skcal.sample import Sample, read_sample

_MOST_CELLS = 256
_WIDTHS = (0.01, 0.1, 1.0)
_BLOCK = 2**21  # outcomes that are drawn at a time
_ENDS = 1e-6  # from 0 and 1, within which logits do not change
_MOST_SHIFT, _MOST_STEPS = 20.0, 40  # of an intercept, and of Newton's method
_COX_STEPS, _MOST_STEP, _RIDGE = 2, 2.0, 0.02  # of a likelihood ratio
_BINS, _DIGITS = 10, 9
_LEVEL = 0.05  # of what is told of sides
#: How much each statistic of single probabilities counts.
WEIGHTS = {
    "bias": 2.0,
    "intercept": 2.0,
    "slope": 4.0,
    "cox": 2.0,
    "bins": 1.5,
    "scan": 1.5,
}
#: What each statistic detects; those of vectors are "bias", "kernel" and "certainty".
STATISTICS_SEE = {
    "bias": "is predicted minus observed 0 on average?",
    "intercept": "the same, by the likelihood ratio of an intercept",
    "slope": "are predictions too extreme, or not enough?",
    "cox": "intercept and slope together, by their likelihood ratio",
    "bins": "ten bins of equally many predictions (Hosmer-Lemeshow)",
    "scan": "ranges of predictions",
    "kernel": "squared kernel error, the largest of widths 0.01, 0.1 and 1",
    "certainty": "outcomes that were given the probability 0",
}


@dataclass(frozen=True, eq=False)
class JointTestResult(CalibrationTestResult):
    """Result of :func:`~skcal.hypothesis_tests.calibration_test`, beside what every test returns.

    Attributes
    ----------
    statistic : float
        The negative logarithm of the weighted harmonic mean of the p-values of the statistics,
        before adjustment.
    statistic_pvalues : dict of str to float
        The p-value of each statistic, adjusted for all of them and for the classes; the smallest
        is ``pvalue``.
    direction : {"too high", "too low", ""}
        On which side predictions are on average, if "bias" or "intercept" is significant at the
        5 % level; always empty for several classes, like ``spread``.
    spread : {"too extreme", "not extreme enough", ""}
        Whether predictions are too far from their mean or too near, if "slope" is significant at
        the 5 % level.
    n_impossible : int
        Samples with an outcome that was given the probability 0. One of them is enough to reject
        calibration; only then is "certainty" among the statistics.
    resolution : float or None
        The step in which predictions are rounded, as it was given or found; None if they are not.
    n_rounded : int
        Samples with an outcome against a prediction of 0 or 1 that rounding may explain.
    """

    statistic_pvalues: dict[str, float]
    direction: str
    spread: str
    n_impossible: int
    resolution: float | None
    n_rounded: int

    def _how(self) -> str:
        confidence = {"too extreme": "overconfident", "not extreme enough": "underconfident"}
        average = f"{self.direction} on average" if self.direction else ""
        words = " and ".join(filter(None, [average, confidence.get(self.spread)]))
        return f", {words}" if words else ""

    def __str__(self):
        lines = [wrapped(self._head()), f"method   {self.method}; kind: {self.notion}"]
        if self.n_rounded:
            lines.append(
                f"{self.n_rounded:,} outcomes against predictions of 0 or 1: these may be rounded, "
                f"in steps of {self.resolution:g}"
            )
        lines.append("p-values of its statistics, adjusted for all of them:")
        lines += [
            f"  {name:9} {pvalue_number(p):<7}{what}" for name, p, what in self._read_statistics()
        ]
        return "\n".join(lines)

    def _shown(self):
        return [
            ("method", self.method),
            ("kind of calibration", str(self.notion)),
            *(
                (f"p-value of {name}", f"{pvalue_number(p)}: {what}")
                for name, p, what in self._read_statistics()
            ),
        ]

    def _read_statistics(self) -> list[tuple[str, float, str]]:
        """Name and p-value of each statistic, and what it says or would have found."""
        said = {"bias": self.direction, "intercept": self.direction, "slope": self.spread}
        return [
            (name, p, f"predictions {said[name]}")
            if said.get(name) and p <= _LEVEL
            else (name, p, STATISTICS_SEE[name])
            for name, p in self.statistic_pvalues.items()
        ]


@validate_params({**RESOLUTION, **RESAMPLING})
def calibration_test(
    y_true: ArrayLike | Sample,
    y_proba: ArrayLike | None = None,
    *,
    notion: str = "auto",
    resolution: float | str | None = "auto",
    n_resamples: int = 999,
    random_state: int | np.random.RandomState | None = 0,
    n_jobs: int | None = None,
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    pos_label: Any = None,
    from_logits: bool = False,
) -> JointTestResult:
    """Test whether predictions are calibrated, by one test that combines several statistics.

    Its p-value decides the verdict of :func:`skcal.calibration_report` and of the command line.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,) or (n_samples, n_classes), or Sample
        Labels, or shares or votes of the classes; see :doc:`/guide/soft_labels`.
    y_proba : array-like of shape (n_samples,) or (n_samples, n_classes), default=None
        Probabilities in [0, 1]; rows sum to 1. A 1-D array holds P(positive class).
        Left out beside a :class:`skcal.Sample`.
    notion : str or callable, default="auto"
        "auto" is "binary" for one and two columns and "confidence" for more. "classwise" and
        "top-label" test each class and adjust by Holm's method.
    resolution : float in (0, 1], "auto" or None, default="auto"
        The step in which single probabilities are rounded. 0 and 1 then mean "within half a step":
        one outcome against them is no evidence of miscalibration, more than half a step of them
        is. "auto" is the first of 0.1, 0.05 and 0.01 of which all predictions are multiples, if at
        least three different ones lie between 0 and 1; None takes predictions as they are.
    n_resamples : int, default=999
        Outcomes are redrawn so often; p-values are multiples of 1 / (1 + n_resamples), never 0.
    random_state : int, RandomState instance or None, default=0
        Seed of the redraws; another one changes the p-value within its Monte Carlo error.
    n_jobs : int, default=None
        Workers; results do not depend on it.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the statistics, kept fixed; only their ratios matter, and they must not depend on
        the labels. Outcomes are redrawn sample by sample, so that the level is as without weights.
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
    result : JointTestResult
        ``estimate`` is NaN: the test estimates no error.

    Raises
    ------
    ValueError
        If the input is not valid, or there are fewer than 6 groups.

    Warns
    -----
    UserWarning
        If there are fewer than 10 groups, or no p-value can reach 5 %.

    See Also
    --------
    scan_test : where predictions are miscalibrated; the statistic "scan" is its.
    equivalence_test : whether the error is shown to be small.
    skcal.Sample : Labels and predictions, read once for several questions.

    Notes
    -----
    All statistics are computed of the same redrawn outcomes. The p-value of each is its rank among
    those of all draws. The weighted harmonic mean of these p-values is compared with that of each
    draw, so that P(p-value ≤ α) ≤ α at every sample size, whatever the statistics have in common
    [1]_ [3]_; with ``groups`` the level is asymptotic in their number. The statistics are

    - "bias", the sum of the residuals, of vectors the largest over the classes, in standard
      deviations (weight 2);
    - "intercept", the likelihood ratio of the intercept of a logistic regression on the logit of
      the prediction, with slope 1 (weight 2);
    - "slope", the score of the slope of that regression at slope 1 and the fitted intercept [2]_
      (weight 4);
    - "cox", the likelihood ratio of intercept and slope together, after two steps of Newton's
      method (weight 2);
    - "bins", the sum over ten bins of the squared sums of residuals, in standard deviations, as in
      :func:`hosmer_lemeshow_test` (weight 1.5);
    - "scan", the largest penalised deviation of a range, as in :func:`scan_test` (weight 1.5);

    of vectors with equal weights "bias" and "kernel", the squared kernel calibration error, the
    largest of the widths 0.01, 0.1 and 1 in standard deviations, as in :func:`skce_test`.

    ``statistic_pvalues`` compares each statistic with the smallest p-value of each draw. No draw
    holds an outcome that was given the probability 0: "certainty" is then the smallest p-value
    there is. The regressions, the bins and the kernel use at most 256 cells of predictions, of
    equal mass, of vectors the nearest of 256: they do not detect errors that are finer. Cells and
    bins are counted from the smallest prediction on, and every draw compares uniform numbers with
    the predictions. So the p-value of (1 - y, 1 - p) is another one, as valid, such as 0.025 in
    place of 0.044.

    Share of rejections in % at level 5 %, 300 data sets (standard error at most 2.9 %) of five
    draws of the predictions, with 1,999 resamples. The others are single statistics, each of exact
    level: likelihood ratios of the intercept and of Cox's regression, the score of the slope, ten
    bins (HL), the squared kernel error of width 0.1 (SKCE) and the scan. Four of the last eight
    cells were evaluated only after all choices. ``tests/studies/power_study.py`` draws them:

    ========================================== ==== ==== ==== ===== ==== ==== ====
    predictions                                this int. Cox  slope HL   SKCE scan
    ========================================== ==== ==== ==== ===== ==== ==== ====
    1 % events, 1.7 times too high, n = 3,000  50   67   59   5     2    60   6
    1 % events, 1.5 times too low, n = 4,000   71   75   71   4     59   81   54
    1 % events, slope 0.6, n = 3,000           41   4    39   49    26   5    20
    20 % events, slope 1.4, n = 500            64   5    68   77    24   25   24
    20 % events, slope 0.7, n = 600            67   7    65   74    44   32   37
    20 % events, odds 1.28, n = 500            47   53   46   4     33   52   48
    up to 0.4, a fifth too low, n = 800        70   77   71   6     49   76   71
    a twentieth off by 0.3, n = 2,000          88   39   36   9     81   84   96
    a sine of ±0.07, n = 1,000                 29   4    5    4     55   23   21
    90 % at the ends, 1 % noise, n = 500       90   6    83   92    95   64   70
    5 % events, odds 1.5, n = 800              65   71   63   4     56   73   61
    2 % events, 1.6 times too high, n = 2,500  74   84   77   7     10   83   39
    10 % events, slope 0.65, n = 900           82   30   86   80    54   39   53
    uniform, slope 1.25, n = 900               76   3    81   87    33   43   31
    sure, top ones 0.03 too high, n = 600      100  86   100  100   100  99   100
    two jumps of 0.1, n = 2,000                72   5    9    13    85   83   82
    top decile 0.1 too high, n = 2,000         57   29   56   48    49   36   49
    Beta-shaped, n = 700                       67   77   64   4     41   61   66
    ========================================== ==== ==== ==== ===== ==== ==== ====

    The test loses 11 points on average in the first ten cells and 7 in the others to the statistic
    that happens to suit a cell. The worst cell is the sine of three periods: 26 points, and 33 in
    120 other data sets, in which the averages were 12 and 7. Any test that detects
    several kinds of errors pays for it. Let an error lie in one of d unrelated directions, in which
    a test of that direction alone has a power of 80 %. Then the best test for all of them loses
    7.8, 12.6 and 16.2 points on average for d = 2, 3, 4.

    Calibrated predictions were rejected in 3.7 % to 5.3 % of 300 data sets each (standard error 1.3
    %): four distinct predictions at n = 30, 1 % events, and uniform ones with lognormal weights,
    five votes, or in pairs.

    0.02 s for 1,000 samples, 0.2 s for 100,000 and 2 s for a million with 199 resamples; O(n) a
    resample. With "classwise" every class has its own test: some 20 s for 10,000 samples of 100
    classes.

    References
    ----------
    .. [1] Westfall & Young, Resampling-based multiple testing, Wiley 1993.
    .. [2] Cox, Two further applications of a model for binary regression, Biometrika 1958.
    .. [3] Wilson, The harmonic mean p-value for combining dependent tests, PNAS 2019.

    Examples
    --------
    >>> import numpy as np
    >>> from skcal.hypothesis_tests import calibration_test
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(0, 0.4, size=1000)
    >>> print(calibration_test(rng.uniform(size=1000) < 1.2 * p, p, random_state=0))
    Significantly miscalibrated, too low on average (p ≤ 0.001).
    method   Combined p-value of several statistics, exact level; kind: binary
    p-values of its statistics, adjusted for all of them:
      bias      0.001  predictions too low
      intercept 0.001  predictions too low
      slope     0.54   are predictions too extreme, or not enough?
      cox       0.001  intercept and slope together, by their likelihood ratio
      bins      0.006  ten bins of equally many predictions (Hosmer-Lemeshow)
      scan      0.001  ranges of predictions
    """
    question = notion, sample_weight, labels, pos_label, from_logits
    sample = read_sample(y_true, y_proba, *question, groups=groups, resolution=resolution)
    return joint_test(sample, n_resamples, random_state, n_jobs)


def verdict_of(sample: Sample, n_jobs: int | None = None) -> JointTestResult:
    """Return the test of calibration that decides a verdict, by fixed draws."""
    return joint_test(sample, default_resamples(len(sample)), 0, n_jobs)


def joint_test(sample: Sample, n_resamples: int, random_state, n_jobs) -> JointTestResult:
    """Test a sample, which remembers the verdict."""
    draws = n_resamples, random_state
    of_verdict = default_resamples(len(sample)), 0
    if isinstance(random_state, Integral) and draws == of_verdict:
        test = sample.once("verdict", lambda: _tested(sample, *of_verdict, n_jobs))
    else:
        test = _tested(sample, *draws, n_jobs)
    n_tests = len(np.atleast_2d(test.null_distribution))
    warn_if_few(n_resamples, n_tests, sample.groups)
    return test


def _tested(sample: Sample, n_resamples: int, random_state, n_jobs) -> JointTestResult:
    """Test a sample; single probabilities whatever the order of the rows."""
    given = sample.problems()
    step = step_of(given, sample.resolution)
    problems = [within_half_a_step(problem, step) for problem in given]
    filled = [k for k, problem in enumerate(problems) if len(problem.weight)]
    rng = check_random_state(random_state)
    statistics = [JointStatistics(problems[k]) for k in filled]
    draws = draw_nulls(
        statistics, [joint.problem for joint in statistics], n_resamples, rng, n_jobs
    )
    tests = [_ProblemTest.of(*pair) for pair in zip(statistics, draws, strict=True)]
    pvalues = adjust_pvalues([min(test.adjusted.values()) for test in tests])
    names = dict.fromkeys(name for test in tests for name in test.adjusted)
    adjusted = {
        name: min(1.0, len(tests) * min(test.adjusted.get(name, 1.0) for test in tests))
        for name in names
    }
    sides, by_class = {}, sample.notion.by_class
    method = f"Combined p-value of several statistics, {level_of(sample)}"
    if len(tests) == 1:
        of_sides = {**adjusted, "bias": min(adjusted["bias"], adjusted.get("intercept", 1.0))}
        sides = {name: side for name, side in tests[0].sides.items() if of_sides[name] <= _LEVEL}
    if by_class:
        method += f", Holm over {len(tests)} classes"
    nulls = np.stack([test.null for test in tests])
    values = [test.statistic for test in tests]
    return JointTestResult(
        statistic=max(values),
        pvalue=float(pvalues.min()),
        method=method,
        notion=str(sample.notion),
        null_distribution=nulls if by_class else nulls[0],
        statistic_pvalues=adjusted,
        direction=sides.get("bias", ""),
        spread=sides.get("slope", ""),
        n_impossible=sum(joint.n_impossible for joint in statistics),
        resolution=step,
        n_rounded=sum(map(n_moved, given, problems)),
        **of_classes(sample, filled, values, pvalues),
    )


class _ProblemTest(NamedTuple):
    """The test of one problem: -log of the mean p-value, observed and of the draws."""

    statistic: float
    null: np.ndarray
    adjusted: dict[str, float]
    sides: dict[str, str]

    @classmethod
    def of(cls, joint: JointStatistics, draws: Draws) -> _ProblemTest:
        """Rank the draws of every law; the p-value is the largest of the laws."""
        laws = [
            combined_pvalues(np.vstack([null, observed]), joint.weights)
            for null, observed in zip(draws.snapped, draws.observed, strict=True)
        ]
        *null, observed = laws[int(np.argmax([adjusted.min() for _, adjusted in laws]))][0]
        pvalues = np.max([adjusted for _, adjusted in laws], axis=0)
        named = dict(zip(joint.names, pvalues.tolist(), strict=True))
        if joint.n_impossible:  # no draw holds such an outcome
            observed = named["certainty"] = 1 / (1 + len(null))
        return cls(-float(np.log(observed)), -np.log(null), named, joint.sides())


def combined_pvalues(values: np.ndarray, weights: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """P-values of each statistic and of all together, for the last of exchangeable rows.

    The p-values of a row's statistics are their ranks among all rows. Rows are compared by the
    weighted harmonic mean of these: one small p-value makes it small, several make it smaller. A
    single statistic is compared with the smallest p-value of each row.

    Parameters
    ----------
    values : ndarray of shape (1 + n_resamples, n_statistics)
    weights : array-like of shape (n_statistics,)

    Returns
    -------
    means : ndarray of shape (1 + n_resamples,)
        The harmonic mean of each row, before adjustment.
    adjusted : ndarray of shape (n_statistics,)
        Adjusted p-values of the statistics of the last row; the smallest is that of all together.
    """
    n_rows, shares = len(values), np.asarray(weights) / np.sum(weights)
    ranks = np.column_stack([rankdata(-column, method="max") for column in values.T])
    means = 1 / (shares / ranks).sum(axis=1)
    together, smallest = np.count_nonzero(means <= means[-1]), ranks.min(axis=1)
    adjusted = np.array([np.count_nonzero(smallest <= rank) for rank in ranks[-1]])
    adjusted = np.where(ranks[-1] == smallest[-1], together, np.maximum(adjusted, together))
    return means / n_rows, adjusted / n_rows


class JointStatistics:
    """Statistics that detect different errors, as a function of blocks of outcomes.

    A residual counts with the weight of its sample, divided by the mean of all. Predictions are
    merged into cells: single probabilities into cells of equally many, equal ones together; vectors
    by the nearest of evenly chosen ones. Few distinct ones have a cell each.

    Attributes
    ----------
    problem : Problem
        In the order of the outcomes that are passed: single probabilities in increasing order.
    names : tuple of str
        What the columns of a call are.
    chunk : int
        How many rows of outcomes to hand over at a time.
    """

    def __init__(self, problem: Problem):
        n, m = problem.features.shape
        self.scalar = m == 1
        if self.scalar:
            problem = in_canonical_order(problem)
        problem = problem._replace(weight=problem.weight / problem.weight.mean())
        if self.scalar:
            self.scan = RangeScan(problem)
            problem = self.scan.problem
        self.problem = problem
        self.X = X = problem.features.astype(np.float64, copy=False)
        self.names = tuple(WEIGHTS) if self.scalar else ("bias", "kernel")
        self.weights = tuple(WEIGHTS.values()) if self.scalar else (1, 1)
        self.chunk = max(1, min(128, _BLOCK // n))
        self.cells = _cells_of_equal_mass(X[:, 0]) if self.scalar else _nearest_points(X)
        self.starts = np.flatnonzero(np.diff(self.cells, prepend=-1))  # of cells in order
        self.weight, self.squares = problem.weight, problem.weight**2
        self.equal = bool((self.weight == 1).all())
        mass, sizes, fourth = (np.bincount(self.cells, self.weight**k) for k in (1, 2, 4))
        self.sums = np.column_stack([np.bincount(self.cells, self.weight * x) for x in X.T])
        centres = self.sums / mass[:, None]
        self.spread = _roots((self.squares[:, None] * (X * (1 - X))).sum(axis=0))
        if self.scalar:
            z = logit(np.clip(centres[:, 0], _ENDS, 1 - _ENDS))
            self.logistic = _Logistic(z, mass, sizes)
            place = (mass.cumsum() - mass / 2) / mass.sum()  # of a cell's middle, from 0 to 1
            self.bins = np.flatnonzero(np.diff(np.floor(_BINS * place), prepend=-1))
            variances = np.bincount(self.cells, self.squares * X[:, 0] * (1 - X[:, 0]))
            self.deviations = _roots(np.add.reduceat(variances, self.bins))
            return
        kernels = [Kernel.of("laplacian", width, centres) for width in _WIDTHS]
        self.kernels = [kernel.matrix(centres, centres) for kernel in kernels]
        # Standard deviations under H0, as if all predictions of a cell were its centre.
        products = np.outer(sizes, sizes) * covariance_products(centres, centres, None, all_pairs)
        products[np.diag_indices(len(sizes))] *= np.maximum(1 - fourth / sizes**2, 0)
        self.scales = _roots([2 * np.vdot(K**2, products) for K in self.kernels])

    @property
    def shape(self) -> tuple[int]:
        """How many statistics there are of a draw."""
        return (len(self.names),)

    @property
    def n_impossible(self) -> int:
        """Samples with an observed outcome that was given the probability 0."""
        outcomes, X = self.problem.outcomes, self.X
        happened = (X == 0) & (outcomes > 0) | self.scalar & (X == 1) & (outcomes < 1)
        return int(np.count_nonzero(happened.any(axis=1)))

    def __call__(self, codes):
        """Return the statistics (k, n_statistics) of each row of outcomes."""
        if self.scalar:
            gaps = self._gaps(codes)
            in_bins = np.add.reduceat(gaps, self.bins, axis=1) / self.deviations
            columns = [
                np.abs(gaps.sum(axis=1)) / self.spread,
                *self.logistic.statistics(self.sums[:, 0] + gaps),
                (in_bins**2).sum(axis=1).round(_DIGITS),
                self.scan(codes),
            ]
            return np.stack(columns, axis=1)
        gaps, squares = self._of_vectors(codes)
        errors = [
            (np.einsum("kcm,kcm->k", gaps, K @ gaps) - squares) / scale
            for K, scale in zip(self.kernels, self.scales, strict=True)
        ]
        bias = (np.abs(gaps.sum(axis=1)) / self.spread).max(axis=1)
        return np.stack([bias, np.max(errors, axis=0)], axis=1)

    def sides(self) -> dict[str, str]:
        """On which side the observed outcomes are, by "bias" and "slope"."""
        if not self.scalar:
            return {}
        gaps = self._gaps(observed_draw(self.problem))
        low, steep = gaps.sum() > 0, self.logistic.scores(self.sums[:, 0] + gaps)[0] > 0
        return {
            "bias": "too low" if low else "too high",
            "slope": "not extreme enough" if steep else "too extreme",
        }

    def _gaps(self, codes):
        """Sums of residuals of single probabilities over cells (k, n_cells), which are in order."""
        if codes.dtype.kind == "f":  # outcomes are numbers, perhaps of flipped residuals
            delta = (codes - self.X[:, 0]) * self.weight
            return np.add.reduceat(delta, self.starts, axis=1)
        events = codes if self.equal else codes * self.weight
        return np.add.reduceat(events, self.starts, axis=1) - self.sums[:, 0]

    def _of_vectors(self, codes):
        """Sums of residuals over cells (k, n_cells, m), and of their squares (k,)."""
        X, k = self.X, len(codes)
        if codes.ndim == 3:  # outcomes are numbers, perhaps of flipped residuals
            delta = (codes - X) * self.weight[:, None]
            gaps = [[np.bincount(self.cells, column) for column in row.T] for row in delta]
            squares = np.einsum("kim,kim->k", delta, delta)
            return np.swapaxes(gaps, 1, 2), squares
        n_cells, m = self.sums.shape
        counts = np.stack(
            [np.bincount(self.cells * m + row, self.weight, n_cells * m) for row in codes]
        )
        squares, drawn = self.squares[:, None], np.take_along_axis(X, codes.T, axis=1)
        # ‖e_c - x‖² = 1 + ‖x‖² - 2 x_c
        squares = (squares * X**2).sum() + squares.sum() - 2 * (squares * drawn).sum(axis=0)
        return counts.reshape(k, n_cells, m) - self.sums, squares


class _Logistic(NamedTuple):
    """Logistic regressions of outcomes on the logits of cells; calibrated ones have slope 1.

    Attributes
    ----------
    logits, mass, squares : ndarray of shape (n_cells,)
        Of each cell the logit, and the sums of the weights and of their squares.
    """

    logits: np.ndarray
    mass: np.ndarray
    squares: np.ndarray

    def statistics(self, events) -> list[np.ndarray]:
        """Return how far intercept, slope and both are off, for sums of outcomes (k, n_cells).

        They are the root of the likelihood ratio of the intercept, the score of the slope, and the
        likelihood ratio of both after two steps of Newton's method from the fitted intercept.
        """
        shifts = self._intercepts(events.sum(axis=1))
        z = self.logits - np.average(self.logits, weights=self.mass)
        a, b = shifts, np.zeros_like(shifts)
        for _ in range(_COX_STEPS):
            p = expit(self.logits + a[:, None] + b[:, None] * z)
            residual, rate = events - self.mass * p, self.mass * p * (1 - p)
            aa, ab, bb = rate.sum(axis=1) + _RIDGE, rate @ z, rate @ z**2 + _RIDGE
            by_a, by_b = residual.sum(axis=1), residual @ z
            determinant = aa * bb - ab**2
            step, turn = (bb * by_a - ab * by_b, aa * by_b - ab * by_a) / determinant
            size = np.maximum(np.maximum(np.abs(step), np.abs(turn) * np.ptp(z)) / _MOST_STEP, 1)
            a, b = a + step / size, b + turn / size
        of_intercept = self._log_ratios(events, shifts[:, None])
        of_both = self._log_ratios(events, a[:, None] + b[:, None] * z)
        columns = (
            np.sqrt(np.maximum(2 * of_intercept, 0)),
            np.abs(self.scores(events, shifts)),
            np.maximum(of_both, of_intercept),
        )
        return [column.round(_DIGITS) for column in columns]  # equal outcomes tie

    def _log_ratios(self, events, shift):
        """Log likelihood ratios of logits with a shift (k, n_cells) to those without."""
        odds = np.logaddexp(0, self.logits + shift) - np.logaddexp(0, self.logits)
        return (events * shift).sum(axis=1) - odds @ self.mass

    def scores(self, events, shifts=None):
        """Scores of the slope in standard deviations, for sums of outcomes (k, n_cells).

        They have the sign of the fitted slope minus 1: a bias, whose residuals differ from cell to
        cell, is taken by the intercept.
        """
        shifts = self._intercepts(events.sum(axis=1)) if shifts is None else shifts
        p = expit(self.logits + shifts[:, None])
        variance = p * (1 - p)
        inner = variance * self.mass
        means = inner @ self.logits / np.maximum(inner.sum(axis=1), np.finfo(np.float64).tiny)
        z = self.logits - means[:, None]
        scores = ((events - self.mass * p) * z).sum(axis=1)
        return scores / _roots((variance * self.squares * z**2).sum(axis=1))

    def _intercepts(self, events):
        """The intercepts at which as many events (k,) are expected, half of one at the least."""
        events = np.clip(events, 0.5, self.mass.sum() - 0.5)
        intercepts, active = np.zeros(len(events)), np.arange(len(events))
        for _ in range(_MOST_STEPS):
            p = expit(self.logits + intercepts[active, None])
            rate = np.maximum((p * (1 - p)) @ self.mass, np.finfo(np.float64).tiny)
            step = np.clip((events[active] - p @ self.mass) / rate, -1, 1)
            intercepts[active] = np.clip(intercepts[active] + step, -_MOST_SHIFT, _MOST_SHIFT)
            active = active[np.abs(step) > 1e-9]
            if not len(active):
                break
        return intercepts


def _roots(variances) -> np.ndarray:
    """Square roots by which statistics are divided: 1 where nothing is left to chance."""
    variances = np.asarray(variances, dtype=np.float64)
    return np.sqrt(np.where(variances > 0, variances, 1.0))


def _cells_of_equal_mass(x) -> np.ndarray:
    """The cell of each prediction; equal predictions share one."""
    edges = np.arange(1, _MOST_CELLS) / _MOST_CELLS
    edges = np.unique(np.quantile(x, edges, method="inverted_cdf"))
    return np.unique(np.searchsorted(edges, x), return_inverse=True)[1]


def _nearest_points(X) -> np.ndarray:
    """The nearest of some rows for each row of X; names of classes do not matter."""
    order = np.lexsort(np.hstack([-np.sort(-X, axis=1), X]).T[::-1])
    steps = np.linspace(0, len(X) - 1, min(len(X), _MOST_CELLS)).round().astype(np.intp)
    points = X[order[steps]]
    nearest = [
        pairwise_distances_argmin(X[rows], points) for rows in row_blocks(len(X), 8 * len(points))
    ]
    return np.unique(np.concatenate(nearest), return_inverse=True)[1]
