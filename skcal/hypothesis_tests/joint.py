"""One test of calibration: the combined p-value of statistics that detect different errors."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import rankdata
from sklearn.utils import check_random_state

from skcal._rounding import RESOLUTION, n_moved, step_of, within_half_a_step
from skcal._show import pvalue_number, wrapped
from skcal._sklearn_compat import validate_params
from skcal.hypothesis_tests.joint_statistics import JointStatistics
from skcal.hypothesis_tests.monte_carlo import Draws, draw_nulls, level_of
from skcal.hypothesis_tests.result import (
    RESAMPLING,
    CalibrationTestResult,
    adjust_pvalues,
    of_classes,
    warn_if_few,
)
from skcal.hypothesis_tests.scan import ScanTestResult, scan_test
from skcal.sample import Sample, read_sample

_TAIL, _FAR = 20, 99.0  # the largest of so many draws are a tail; mean excesses beyond it
_LEVEL = 0.05  # of what is told of sides
#: What each statistic detects; "certainty" is that of outcomes that are impossible.
STATISTICS_SEE = {
    "bias": "is predicted minus observed 0 on average?",
    "slope": "are predictions too extreme, or not enough?",
    "curvature": "is the error of medium predictions opposite to that of both ends?",
    "waves": "errors that change their sign two to seven times",
    "kernel": "squared kernel error: errors of nearby predictions together",
    "scan": "ranges of predictions",
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
        On which side single probabilities are on average, if "bias" is significant at the 5 %
        level; empty for vectors.
    spread : {"too extreme", "not extreme enough", ""}
        Whether predictions are too far from their mean or too near, if "slope" is significant at
        the 5 % level. Both are empty where every class has its own test.
    n_impossible : int
        Samples with an outcome that was given the probability 0. One of them is enough to reject
        calibration; only then is "certainty" among the statistics.
    resolution : float or None
        The step in which predictions are rounded, as it was given or found; None if they are not.
    n_rounded : int
        Samples with an outcome against a prediction of 0 or 1 that rounding may explain.
    at_most : float
        The p-value if it was adjusted for other tests and more redraws could lower it, else 0.
    """

    statistic_pvalues: dict[str, float]
    direction: str
    spread: str
    n_impossible: int
    resolution: float | None
    n_rounded: int
    at_most: float = field(default=0.0, repr=False)

    def _how(self) -> str:
        confidence = {"too extreme": "overconfident", "not extreme enough": "underconfident"}
        average = f"{self.direction} on average" if self.direction else ""
        words = " and ".join(filter(None, [average, confidence.get(self.spread)]))
        return f", {words}" if words else ""

    def __str__(self):
        lines = [wrapped(self._head()), f"method   {self.method}; kind: {self.notion}"]
        if self.n_rounded:
            lines.append(
                f"{self.n_rounded:,} outcome{'s' * (self.n_rounded > 1)} against predictions of 0 "
                f"or 1: these may be rounded, in steps of {self.resolution:g}"
            )
        lines.append("p-values of its statistics, adjusted for all of them:")
        rows = self._read_statistics()
        width = max([6, *(len(p) for _, p, _ in rows)])
        lines += [f"  {name:9} {p:<{width}} {what}" for name, p, what in rows]
        return "\n".join(lines)

    def _shown(self):
        return [
            ("method", self.method),
            ("kind of calibration", str(self.notion)),
            *((f"p-value of {name}", f"{p}: {what}") for name, p, what in self._read_statistics()),
        ]

    def _read_statistics(self) -> list[tuple[str, str, str]]:
        """Name and p-value of each statistic, and what it says or would have found."""
        said = {"bias": self.direction, "slope": self.spread}
        return [
            (name, pvalue_number(p, self.smallest_pvalue), f"predictions {said[name]}")
            if said.get(name) and p <= _LEVEL
            else (name, pvalue_number(p, self.smallest_pvalue), STATISTICS_SEE[name])
            for name, p in self.statistic_pvalues.items()
        ]

    @property
    def smallest_pvalue(self) -> float:
        """The smallest p-value that the number of redraws allows, also after adjustment."""
        return max(super().smallest_pvalue, self.at_most)

    def inside(self, sample: Sample) -> Sample:
        """Return the tested sample, its rounded 0 and 1 moved by a quarter of a step.

        They are then in the middle of what they may have been before they were rounded.

        Parameters
        ----------
        sample : Sample
            The one that was tested. It is returned as it is unless ``n_rounded`` is above 0.
        """
        if not self.n_rounded or len(sample.classes) > 2:
            return sample
        assert self.resolution is not None
        return sample.within(self.resolution / 4, 1 - self.resolution / 4)

    def scan(self, sample: Sample, n_resamples: int | None = None, **options) -> ScanTestResult:
        """Return where the tested sample is miscalibrated, if this test rejects.

        Predictions that are rounded to 0 or 1 are no evidence of their own.

        Parameters
        ----------
        sample : Sample
            The one that was tested.
        n_resamples : int ≥ 19, default=None
            None: as often as for a verdict, 999 times, for more than 100,000 samples 199 times.
        **options : dict
            Others of :func:`~skcal.hypothesis_tests.scan_test`.
        """
        moved = self.inside(sample) if sample.notion.single else sample
        found = scan_test(moved, n_resamples=n_resamples or sample.default_resamples, **options)
        if moved is sample:
            return found
        assert self.resolution is not None
        ends = {self.resolution / 4: 0.0, 1 - self.resolution / 4: 1.0}
        [problem] = sample.problems()
        features, ranges = problem.features[:, 0], []
        for one in found.ranges:  # of which ends and mean are shown as they were given
            low, high = ends.get(one.low, one.low), ends.get(one.high, one.high)
            part = (features >= low) & (features <= high)
            predicted = float(np.average(features[part], weights=problem.weight[part]))
            ranges.append(one._replace(low=low, high=high, predicted=predicted))
        return replace(found, ranges=ranges)


@validate_params({**RESOLUTION, **RESAMPLING, "n_resamples": [*RESAMPLING["n_resamples"], None]})
def calibration_test(
    y_true: ArrayLike | Sample,
    y_proba: ArrayLike | None = None,
    *,
    notion: str = "auto",
    resolution: float | str | None = "auto",
    n_resamples: int | None = 999,
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
    n_resamples : int or None, default=999
        Outcomes are redrawn so often; p-values are multiples of 1 / (1 + n_resamples), never 0.
        None: as often as for a verdict, 999 times, for more than 100,000 samples 199 times.
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
    those of all draws; that of the largest value is smaller the farther it is from the next. The
    weighted harmonic mean of these p-values is compared with that of each draw, so that
    P(p-value ≤ α) ≤ α at every sample size, whatever the statistics have in common [1]_ [3]_; with
    ``groups`` the level is asymptotic in their number. The statistics are

    - "bias", the root of the likelihood ratio of the intercept of a logistic regression on the
      logit of the prediction, with slope 1; of vectors the sum over classes of the fourth power of
      their sums of residuals, in standard deviations (weights 2.25 and 1);
    - "slope", the score of the slope of that regression at slope 1 and the fitted intercept [2]_;
      of vectors the score of a temperature, the mean of log p of the class that happened less its
      mean if calibrated (weights 3 and 1.5);
    - "kernel", the squared kernel calibration error of width 0.1, of vectors the largest of the
      widths 0.01, 0.1 and 1 in standard deviations, as in :func:`skce_test` (weights 1.25 and 1);

    and of single probabilities also

    - "curvature", the score of the squared logit beside intercept and slope (weight 2.5);
    - "waves", the sum of the squared scores of cosines of two to seven half waves over the
      predictions, by their variance (weight 1);
    - "scan", the largest penalised deviation of a range, as in :func:`scan_test` (weight 0.5).

    Few samples can show no error of a fine shape: the weights of these three are multiplied by
    I / (I + 60), where I is the sum of p (1 - p). With sample weights, I is the square of the
    weighted sum, divided by the sum with squared weights.

    ``statistic_pvalues`` compares each statistic with the smallest p-value of each draw. No draw
    holds an outcome that was given the probability 0: "certainty" is then the smallest p-value
    there is. Logits and logarithms are those of at least 10⁻⁶ and at most 1 - 10⁻⁶. All but "scan"
    and the first two of vectors use at most 256 cells of predictions, of equal mass, of vectors the
    nearest of 256: they do not detect errors that are finer. Cells are counted from the smallest
    prediction on, and every draw compares uniform numbers with the predictions. So the p-value of
    (1 - y, 1 - p) is another one, as valid, such as 0.025 in place of 0.044. From 50,000 samples
    without weights and groups on, the numbers of events in the cells are drawn by their law, which
    visits few samples.

    Share of rejections in % at level 5 %, 480 data sets (standard error at most 2.3 %) of eight
    draws of the predictions, with 1,999 resamples. The others are single statistics, each of exact
    level: the likelihood ratio of the intercept, the scores of Cox's regression, of the slope and
    of the curvature, ten bins (HL), the squared kernel error of width 0.1 (SKCE) and the scan. The
    last eleven cells were drawn after the statistics were chosen; the width of the waves was then
    set after they were seen, the weights by other cells. ``tests/studies/power_study.py`` draws
    them:

    ========================================== ==== ==== ==== ===== ===== ==== ==== ====
    predictions                                this int. Cox  slope curv. HL   SKCE scan
    ========================================== ==== ==== ==== ===== ===== ==== ==== ====
    1 % events, 1.7 times too high, n = 3,000  53   68   47   5     1     2    62   5
    1 % events, 1.5 times too low, n = 4,000   70   76   75   5     10    58   82   52
    1 % events, slope 0.6, n = 3,000           38   4    36   49    7     30   6    19
    20 % events, slope 1.4, n = 500            57   5    61   75    1     24   27   24
    20 % events, slope 0.7, n = 600            63   8    66   73    10    42   31   35
    20 % events, odds 1.28, n = 500            46   56   51   5     6     35   55   52
    up to 0.4, a fifth too low, n = 800        67   77   73   7     6     48   77   70
    a twentieth off by 0.3, n = 2,000          88   39   35   9     12    82   85   97
    a sine of ±0.07, n = 1,000                 38   4    5    4     8     54   24   23
    90 % at the ends, 1 % noise, n = 500       90   9    90   92    54    94   62   67
    5 % events, odds 1.5, n = 800              63   72   66   5     9     54   74   61
    2 % events, 1.6 times too high, n = 2,500  75   84   71   6     1     9    81   37
    10 % events, slope 0.65, n = 900           77   30   83   79    9     53   37   51
    uniform, slope 1.25, n = 900               73   3    75   86    1     34   44   30
    sure, top ones 0.03 too high, n = 600      100  85   100  100   100   100  98   100
    two jumps of 0.1, n = 2,000                82   5    9    12    3     86   84   83
    top decile 0.1 too high, n = 2,000         53   28   52   44    31    48   34   46
    Beta-shaped, n = 700                       64   76   67   5     15    42   63   66
    uniform, U of ±0.06, n = 900               51   4    5    6     70    42   40   31
    25 % events, U of log-odds, n = 1,100      40   4    6    6     57    25   16   18
    69 % events, cap of log-odds, n = 800      35   3    8    13    56    21   15   16
    forest of 20, slope 0.75, n = 500          75   18   77   78    11    61   61   55
    forest of 8, slope 1.4, n = 400            61   6    64   74    1     33   38   27
    forest of 5, slope 1.5, n = 300            64   4    62   75    3     45   42   27
    a quarter 0.09 too low, n = 900            47   41   39   14    11    40   61   58
    a sine of ±0.08, n = 900                   56   5    11   13    9     70   33   29
    15 % events, slope 1.35, n = 900           77   24   85   86    2     48   53   56
    42 % events, odds 1.28, n = 500            57   69   60   4     4     35   63   62
    sure, top ones 0.02 too high, n = 500      98   60   97   96    97    98   81   97
    ========================================== ==== ==== ==== ===== ===== ==== ==== ====

    To the statistic that happens to suit a cell, the test loses 9 points on average in the first
    eighteen cells and 12 in the others, and 21 in the worst one. Any test that detects several
    kinds of errors pays for it. A test that knows these 29 errors and is the best for them on
    average loses 7 points, and 36 in the worst cell, if each error may have either sign. Let an
    error lie in one of d unrelated directions, in which a test of that direction alone has a power
    of 80 %. Then the best test for all of them loses 7.8, 12.6 and 16.2 points on average for d =
    2, 3, 4.

    Calibrated predictions were rejected in 2.5 % to 4.2 % of 400 data sets each (standard error 1.0
    %): four distinct predictions at n = 30, 1 % events, and uniform ones with lognormal weights,
    five votes, or in pairs.

    0.06 s for 1,000 samples, 0.2 s for 100,000 and 0.7 s for a million. With "classwise" every
    class has its own test: some 20 s for 10,000 samples of 100 classes.

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
      bias      ≤ 0.001 predictions too low
      slope     0.66    are predictions too extreme, or not enough?
      curvature 1       is the error of medium predictions opposite to that of both ends?
      waves     1       errors that change their sign two to seven times
      kernel    ≤ 0.001 squared kernel error: errors of nearby predictions together
      scan      ≤ 0.001 ranges of predictions
    """
    question = notion, sample_weight, labels, pos_label, from_logits
    options: dict[str, Any] = {"resolution": resolution, "from_sums": True}
    sample = read_sample(y_true, y_proba, *question, groups=groups, **options)
    of_verdict = sample.default_resamples
    n_draws = n_resamples or of_verdict
    tested = partial(_tested, sample, n_draws, random_state, n_jobs)
    is_verdict = isinstance(random_state, Integral) and (n_draws, random_state) == (of_verdict, 0)
    test = sample.once("verdict", tested) if is_verdict else tested()
    null: Any = test.null_distribution
    warn_if_few(n_draws, len(np.atleast_2d(null)), sample.groups)
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
        sides = {name: side for name, side in tests[0].sides.items() if adjusted[name] <= _LEVEL}
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
    ranks = np.column_stack([_ranks(column) for column in values.T])
    means = 1 / (shares / ranks).sum(axis=1)
    together, smallest = np.count_nonzero(means <= means[-1]), ranks.min(axis=1)
    adjusted = np.array([np.count_nonzero(smallest <= rank) for rank in ranks[-1]])
    adjusted = np.where(ranks[-1] == smallest[-1], together, np.maximum(adjusted, together))
    return means / n_rows, adjusted / n_rows


def _ranks(values: np.ndarray) -> np.ndarray:
    """How many values are at least as large as each; less than 1 for one far above all others.

    It falls with its distance from the next, as if the tail were exponential. This treats all
    values alike, so that ranks of exchangeable values are exchangeable.
    """
    ranks, n_tail = rankdata(-values, method="max"), max(1, len(values) // _TAIL)
    first, tail = np.split(np.sort(values)[: -n_tail - 3 : -1], [1])
    with np.errstate(over="ignore"):  # values of outcomes that are all but impossible
        scale = np.sum(tail - tail[-1]) / n_tail
        if scale > 0:
            far = np.minimum((first - tail[0]) / scale, _FAR)
            ranks = np.where(ranks > 1, ranks, np.exp(-far))
    return ranks
