"""Selective prediction: the risk of the answers that are kept, by how many are kept."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from math import ceil, floor, log, log1p, log10
from numbers import Real
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import digamma
from scipy.stats import norm, t
from sklearn.metrics import roc_auc_score

from skcal._groups import INDEPENDENT, Groups, read_groups
from skcal._matrices import two_columns
from skcal._show import ShownColumns, percent, rounded, wrapped
from skcal._sklearn_compat import Interval, validate_params
from skcal._validation import (
    CONFIDENCE_LEVEL,
    InputError,
    as_floats,
    check_finite,
    check_weight,
    plain_array,
)
from skcal.metrics.limits import clopper_pearson, proportion_limits
from skcal.sample import read_sample

_STARTS = 5  # of the sequence of tests
_LEAST_FREEDOM = 0.1
_MULTIPLES = np.geomspace(1.1, 10, 25)  # as many answers as are given, in steps of 10 %


@dataclass(frozen=True, eq=False, repr=False)
class RiskCoverageCurve(ShownColumns):
    """Risk and coverage at each threshold of the confidence.

    Attributes
    ----------
    thresholds : ndarray of shape (n_thresholds,)
        The distinct confidences, highest first. Answers that are at least as confident are kept.
    coverage : ndarray of shape (n_thresholds,)
        The share of answers that is kept.
    risk : ndarray of shape (n_thresholds,)
        The share of wrong answers among those that are kept.
    low, high : ndarray of shape (n_thresholds,)
        Pointwise Clopper-Pearson limits of the risk.
    area : float
        The area under the curve, as :func:`area_under_risk_coverage` returns it.
    generalized_area : float
        The same with ``generalized=True``.
    roc_auc : float or None
        The area under the ROC curve of correctness by confidence: the probability that a right
        answer is more confident than a wrong one. None if all answers are right, or all wrong.
    confidence_level : float
    n_samples : int
    """

    thresholds: np.ndarray
    coverage: np.ndarray
    risk: np.ndarray
    low: np.ndarray
    high: np.ndarray
    area: float
    generalized_area: float
    roc_auc: float | None
    confidence_level: float
    n_samples: int

    def _caption(self):
        auc = "" if self.roc_auc is None else f", ROC AUC {rounded(self.roc_auc)}"
        title = f"risk by coverage, {self.n_samples:,} answers, AURC {rounded(self.area)}{auc}"
        limits = f"low, high: {percent(self.confidence_level)} limits of the risk at one threshold"
        return title, limits


@dataclass(frozen=True, eq=False)
class CoverageAtRisk:
    """How many answers can be kept at a limited risk, and the threshold that does it.

    Attributes
    ----------
    max_risk : float
        The limit.
    coverage : float
        The share of answers that ``threshold`` keeps here; 0 if no threshold is proven.
    low : float
        A lower Clopper-Pearson limit of the share that it keeps of new answers.
    threshold : float
        Keep answers whose confidence is at least this. Their true risk is at most ``max_risk``,
        with ``confidence_level``. It is the shortest decimal that keeps the same answers. Infinity
        if no threshold is proven: abstain always.
    risk : float or None
        The observed risk of the answers that ``threshold`` keeps; None if it keeps none.
    confidence_level : float
    n_samples : int
    n_kept : int
        The number of answers that ``threshold`` keeps here.
    nearest : CoverageAtRisk or None
        If no threshold is proven: the result at the lowest limit, in steps of 0.1 %, that these
        answers would have proven. The guarantee needs a limit that was fixed before.
    lowest_risk : float or None
        If no threshold is proven: the lowest observed risk at a threshold that keeps enough answers
        for a proof if all were right, or at that of ``nearest``; None if there are too few answers.
    lowest_risk_low : float or None
        The lower Clopper-Pearson limit of ``lowest_risk``, as if its threshold were not chosen.
    n_needed : int or None
        If no threshold is proven: about how many answers prove ``max_risk`` if the risk at each
        threshold stays as it is here. With too few answers: how many are needed if all are right.
        None if more than 10 times as many as here: the estimate is too uncertain. With groups it
        counts these, such as questions: more answers to the same questions do not help as much.
    n_needed_low, n_needed_high : int or None
        The same if the risk at each threshold is its lower or its upper confidence limit.
    n_lowest : int or None
        The number of answers that ``lowest_risk`` rests on.
    lowest_risk_high : float or None
        The upper limit beside ``lowest_risk_low``.
    n_groups : int or None
        If no threshold is proven: the number of groups, if there are any.
    """

    max_risk: float
    coverage: float
    low: float
    threshold: float
    risk: float | None
    confidence_level: float
    n_samples: int
    n_kept: int = 0
    nearest: CoverageAtRisk | None = None
    lowest_risk: float | None = None
    lowest_risk_low: float | None = None
    n_needed: int | None = None
    n_needed_low: int | None = None
    n_needed_high: int | None = None
    n_lowest: int | None = None
    lowest_risk_high: float | None = None
    n_groups: int | None = None

    @property
    def _answers(self) -> str:
        return "answers" if self.n_groups is None else "questions"

    def _unproven(self) -> str:
        limit, said = percent(self.max_risk), []
        if self.nearest is not None:
            near = self.nearest
            said.append(
                f"A limit of {percent(near.max_risk)}, chosen in advance, would have been proven: "
                f"a confidence of at least {near.threshold:.12g} keeps {near.n_kept:,} answers, "
                f"and {100 * (near.risk or 0):.1f} % of them are wrong. Prove it on new answers."
            )
        if self.lowest_risk is None:
            said.append(
                f"There are too few {self._answers}: {limit} needs at least {self.n_needed:,} "
                "independent ones, even if all are right."
            )
        else:
            low, high = self.lowest_risk_low or 0.0, self.lowest_risk_high or 1.0
            lowest = (
                f"the lowest share of wrong answers at a threshold is {100 * self.lowest_risk:.1f} "
                f"% of {self.n_lowest:,} ({100 * low:.1f} to {100 * high:.1f} %, "
                f"{percent(self.confidence_level)} interval)."
            )
            said += [self._outlook(lowest, low)]
        return " ".join(said)

    def _outlook(self, lowest: str, low: float) -> str:
        """Whether more answers help, and about how many: with what this rests on and its range."""
        if low >= self.max_risk:
            return (
                f"More {self._answers} would hardly help: {lowest} Allow a higher risk, or find a "
                "confidence that separates right from wrong answers better."
            )
        if self.n_needed is None:
            return f"More {self._answers} may help, but how many cannot be said: {lowest}"
        most = f"more than {10 * (self.n_groups or self.n_samples):,}"
        most = most if self.n_needed_high is None else f"{self.n_needed_high:,}"
        return (
            f"More {self._answers} may help: {lowest} If the shares stay as here, about "
            f"{self.n_needed:,} {self._answers} in all are needed; if they are anywhere in such "
            f"intervals, {self.n_needed_low:,} to {most}."
        )

    def __str__(self):
        limit, level = percent(self.max_risk), percent(self.confidence_level)
        if self.risk is None:
            return wrapped(
                f"No threshold is proven to keep the share of wrong answers at or below {limit} "
                f"({level} confidence, {self.n_samples:,} answers"
                f"{f' to {self.n_groups:,} questions' if self.n_groups else ''}). "
                f"{self._unproven()}"
            )
        return wrapped(
            f"Keep answers whose confidence is at least {self.threshold:.12g}. At most {limit} of "
            f"them are wrong ({level} confidence); here {100 * self.risk:.1f} %. This keeps "
            f"{100 * self.coverage:.1f} % of the answers, and at least {100 * self.low:.1f} % of "
            f"new ones ({level} confidence)."
        )


@validate_params(CONFIDENCE_LEVEL)
def risk_coverage_curve(
    correct: ArrayLike,
    confidence: ArrayLike,
    *,
    confidence_level: float = 0.95,
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
) -> RiskCoverageCurve:
    """Risk-coverage curve: share of wrong answers among the most confident ones.

    A model abstains from the answers it is least sure of. The curve shows how much this lowers the
    risk.

    Parameters
    ----------
    correct : array-like of shape (n_samples,)
        Whether each answer is right: booleans, or 1 and 0.
    confidence : array-like of shape (n_samples,)
        Finite numbers; more is surer. Only their order matters, so percentages and log
        probabilities are taken, too.
    confidence_level : float in (0, 1), default=0.95
        The confidence level of the limits.
    sample_weight : array-like of shape (n_samples,), default=None
        Whole numbers count repeated rows. Only the ratios of other weights matter.
    groups : array-like of shape (n_samples,), default=None
        Answers of one group may depend on each other, such as several answers to one question.
        See :doc:`/guide/dependent_samples`.

    Returns
    -------
    curve : RiskCoverageCurve
        ``coverage`` and ``risk`` at each of the ``thresholds``, with limits, and the area below.

    Raises
    ------
    ValueError
        If the input is not valid.

    See Also
    --------
    coverage_at_risk : a threshold with a guarantee.
    skcal.displays.RiskCoverageDisplay : draws the curve.

    Notes
    -----
    Answers of equal confidence are kept or dropped together. Limits hold at a threshold chosen
    before the data were seen, not at the best of many. If groups are given, they are
    Clopper-Pearson limits at the effective number of answers (Korn & Graubard 1998). O(n log n).

    References
    ----------
    .. [1] Geifman & El-Yaniv, Selective classification for deep neural networks, NeurIPS 2017.

    Examples
    --------
    >>> from skcal.metrics import risk_coverage_curve
    >>> curve = risk_coverage_curve([1, 1, 0, 1, 0], [0.9, 0.9, 0.8, 0.6, 0.6])
    >>> print(curve)
    risk by coverage, 5 answers, AURC 0.2217, ROC AUC 0.75
    <BLANKLINE>
    threshold  coverage    risk       low    high
          0.9       0.4       0         0  0.8419
          0.8       0.6  0.3333  0.008404  0.9057
          0.6         1     0.4   0.05274  0.8534
    low, high: 95 % limits of the risk at one threshold
    """
    answers = _read_answers(correct, confidence, sample_weight, groups)
    low, high = _limits(answers, (1 - confidence_level) / 2)
    auc, weight = None, answers.weight
    if 0 < answers.risk[-1] < 1:
        auc = float(roc_auc_score(answers.right, answers.confidence, sample_weight=weight))
    return RiskCoverageCurve(
        answers.thresholds,
        answers.kept / answers.kept[-1],
        answers.risk,
        low,
        high,
        _area(answers, False),
        _area(answers, True),
        auc,
        confidence_level,
        answers.n_samples,
    )


@validate_params({"generalized": ["boolean"]})
def area_under_risk_coverage(
    correct: ArrayLike,
    confidence: ArrayLike,
    *,
    generalized: bool = False,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Area under the risk-coverage curve (AURC), or its generalised form (AUGRC).

    AURC is the mean risk of the k most confident answers over k = 1, …, n. AUGRC is the mean over k
    of their number of wrong answers divided by n.

    Parameters
    ----------
    correct : array-like of shape (n_samples,)
        Whether each answer is right: booleans, or 1 and 0.
    confidence : array-like of shape (n_samples,)
        Finite numbers; more is surer. Only their order matters.
    generalized : bool, default=False
        Whether to return AUGRC.
    sample_weight : array-like of shape (n_samples,), default=None
        Whole numbers count repeated rows. Only the ratios of other weights matter.

    Returns
    -------
    area : float in [0, 1]; lower is better
        Both depend on the accuracy. AUGRC is at most 1/2 (1 + 1/n). It is about the probability
        that a random answer is wrong and is kept at a random coverage.

    Raises
    ------
    ValueError
        If the input is not valid.

    See Also
    --------
    bootstrap_interval : an interval, also with ``groups=``.

    Notes
    -----
    Where confidences tie, the area is the mean over all orders of the ties. So it does not depend
    on the order of the rows. In AURC the most confident answers count in all terms; AUGRC weighs
    all wrong answers alike by their rank [2]_. O(n log n).

    References
    ----------
    .. [1] Geifman & El-Yaniv, Selective classification for deep neural networks, NeurIPS 2017.
    .. [2] Traub, Bungert, Lüth, Baumgartner, Maier-Hein, Maier-Hein & Jaeger, Overcoming common
       flaws in the evaluation of selective classification systems, NeurIPS 2024.

    Examples
    --------
    >>> from skcal.metrics import area_under_risk_coverage, bootstrap_interval
    >>> round(area_under_risk_coverage([1, 1, 0, 0], [4, 3, 2, 1]), 4)  # 0, 0, 1/3, 2/4
    0.2083
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> confidence = rng.choice([0.6, 0.8, 1.0], 400)
    >>> correct = rng.random(400) < confidence - 0.2
    >>> interval = bootstrap_interval(
    ...     area_under_risk_coverage, correct, confidence, random_state=0, n_resamples=199
    ... )
    >>> bool(interval.low < interval.estimate < interval.high)
    True
    """
    return _area(_read_answers(correct, confidence, sample_weight, None), generalized)


@validate_params({"max_risk": [Interval(Real, 0, 1, closed="neither")], **CONFIDENCE_LEVEL})
def coverage_at_risk(
    correct: ArrayLike,
    confidence: ArrayLike,
    max_risk: float,
    *,
    confidence_level: float = 0.95,
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
) -> CoverageAtRisk:
    """Confidence threshold above which at most a given share of answers is wrong.

    Parameters
    ----------
    correct : array-like of shape (n_samples,)
        Whether each answer is right: booleans, or 1 and 0.
    confidence : array-like of shape (n_samples,)
        Finite numbers; more is surer. Only their order matters.
    max_risk : float in (0, 1)
        The largest share of wrong answers among those that are kept.
    confidence_level : float in (0, 1), default=0.95
        The probability that ``threshold`` keeps its promise.
    sample_weight : array-like of shape (n_samples,), default=None
        Whole numbers count repeated rows. Only the ratios of other weights matter. The guarantee is
        then approximate.
    groups : array-like of shape (n_samples,), default=None
        Answers of one group may depend on each other, such as several answers to one question.

    Returns
    -------
    result : CoverageAtRisk
        ``threshold``, and the ``coverage`` at it with its lower limit ``low``.

    Raises
    ------
    ValueError
        If the input is not valid.

    See Also
    --------
    risk_coverage_curve : the risk at all thresholds.

    Notes
    -----
    Assumption: the answers on which you will use the threshold come from the same distribution as
    these. The threshold was not chosen in another way.

    Thresholds are tested from the highest down. A threshold passes if the upper Clopper-Pearson
    limit of its risk is at most ``max_risk``. The allowed error of 1 - ``confidence_level`` is
    divided among 5 starts. A threshold that passes hands its part on to the next one, the fallback
    procedure [2]_ of a fixed sequence [1]_. So the probability that any threshold passes whose true
    risk is above ``max_risk`` is at most 1 - ``confidence_level``. At the highest thresholds few
    answers are kept; without the other starts a single wrong answer there would stop all.

    If groups are given, the limit uses the effective number of answers (Korn & Graubard 1998),
    which is approximate. O(n log n).

    References
    ----------
    .. [1] Angelopoulos, Bates, Candès, Jordan & Lei, Learn then test: calibrating predictive
       algorithms to achieve risk control, Annals of Applied Statistics 2025.
    .. [2] Wiens, A fixed sequence Bonferroni procedure for testing multiple endpoints,
       Pharmaceutical Statistics 2003.

    Examples
    --------
    >>> import numpy as np
    >>> from skcal.metrics import coverage_at_risk
    >>> rng = np.random.default_rng(0)
    >>> confidence = rng.uniform(0.5, 1, 2000)
    >>> correct = rng.random(2000) < confidence  # the risk of confidences above t is (1 - t) / 2
    >>> result = coverage_at_risk(correct, confidence, 0.1)
    >>> bool(result.threshold > 0.8)
    True
    >>> print(result)
    Keep answers whose confidence is at least 0.836. At most 10 % of them are wrong (95 %
    confidence); here 7.8 %. This keeps 33.1 % of the answers, and at least 31.4 % of new ones (95 %
    confidence).
    """
    answers = _read_answers(correct, confidence, sample_weight, groups)
    alpha = 1 - confidence_level
    highs = _highs(answers, alpha)
    last = _last_that_passes(answers, highs, max_risk, alpha)
    if last >= 0:
        return _at(answers, last, max_risk, confidence_level)
    higher = (np.floor(1000 * max_risk + 1e-9) + np.arange(1, 1000)) / 1000
    last, limit = -1, 1.0  # the lowest limit that could have been proven
    for limit in higher[higher < 1].tolist():
        last = _last_that_passes(answers, highs, limit, alpha)
        if last >= 0:
            break
    fewest = _fewest(max_risk, alpha)
    unproven = CoverageAtRisk(
        max_risk,
        coverage=0.0,
        low=0.0,
        threshold=np.inf,
        risk=None,
        confidence_level=confidence_level,
        n_samples=answers.n_samples,
        n_groups=answers.n_groups,
        nearest=_at(answers, last, limit, confidence_level) if last >= 0 else None,
        n_needed=fewest,
    )
    enough = answers.possible >= fewest
    if not enough.any():
        return unproven
    enough[last] |= last >= 0
    best = int(np.argmin(np.where(enough, answers.risk, np.inf)))
    low, high = _limits(answers, alpha / 2)

    def needed(risk):
        return _needed(answers._replace(wrong=risk * answers.kept), enough, max_risk, alpha)

    return replace(
        unproven,
        lowest_risk=float(answers.risk[best]),
        lowest_risk_low=float(low[best]),
        lowest_risk_high=float(high[best]),
        n_lowest=int((answers.confidence >= answers.thresholds[best]).sum()),
        n_needed=needed(answers.risk),
        n_needed_low=needed(low),
        n_needed_high=needed(high),
    )


def risk_coverage_of_predictions(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    generalized: bool = False,
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
) -> float:
    """AURC, or AUGRC, of whether the most probable class is right, by its probability."""
    proba = two_columns(np.asarray(y_proba))
    sample = read_sample(y_true, proba, "confidence", sample_weight, labels)
    [problem] = sample.problems()
    ones = np.ones(len(problem.weight)) if sample_weight is None else problem.weight
    answers = _by_threshold(problem.outcomes[:, 0], problem.features[:, 0], ones, INDEPENDENT)
    return _area(answers, generalized)


class _AnswersByConfidence(NamedTuple):
    """Sums over all answers that are at least as confident, at each distinct confidence; answers.

    ``number`` is the effective number of answers, ``freedom`` the degrees of freedom of its
    variance (infinite without groups), ``possible`` the number if no answer were wrong, which
    depends on confidences and groups only.
    """

    thresholds: np.ndarray
    kept: np.ndarray
    wrong: np.ndarray
    number: np.ndarray
    freedom: np.ndarray
    possible: np.ndarray
    confidence: np.ndarray
    right: np.ndarray
    weight: np.ndarray
    groups: Groups

    @property
    def n_samples(self) -> int:
        return len(self.weight)

    @property
    def n_groups(self) -> int | None:
        """The number of groups, such as questions; None if answers are independent."""
        if self.groups.independent:
            return None
        return len(np.unique(self.groups.units(self.n_samples)))

    @property
    def risk(self) -> np.ndarray:
        return self.wrong / self.kept


def _read_answers(correct, confidence, sample_weight, groups) -> _AnswersByConfidence:
    """Check the input; samples of weight 0 are left out."""
    right = plain_array(correct, "correct")
    sure = as_floats(confidence, "confidence")
    for name, array in (("correct", right), ("confidence", sure)):
        if array.ndim != 1 or not len(array):
            reason = f"has shape {array.shape}."
            raise InputError(name, reason, "Pass one number per answer, (n_samples,).")
    if len(right) != len(sure):
        reason = f"has {len(right)} rows and confidence {len(sure)}."
        raise InputError("correct", reason, "Pass one of each per answer.")
    check_finite(sure, "confidence")
    if right.dtype.kind == "O":
        right = np.array([float(entry) if entry in (0, 1) else np.nan for entry in right.tolist()])
    neither = np.full(len(right), right.dtype.kind not in "biuf") | ((right != 0) & (right != 1))
    if neither.any():
        row = int(np.argmax(neither))
        given = plain_array(correct, "correct")[row : row + 1].tolist()[0]
        reason = f"is {given!r}, neither right (1) nor wrong (0)."
        remedy = "Pass booleans, or 1 and 0. Are the arguments swapped?"
        raise InputError("correct", reason, remedy, row=row)
    weight = check_weight(sample_weight, len(right))
    together = read_groups(groups, weight)
    seen = weight > 0
    together = together.take(seen)
    return _by_threshold(right[seen].astype(np.float64), sure[seen], weight[seen], together)


def _by_threshold(right, confidence, weight, groups: Groups) -> _AnswersByConfidence:
    whole = not (weight % 1).any()
    weight = weight if whole else weight / weight.mean()
    order = np.argsort(-confidence, kind="stable")
    confidence, weight, wrong = confidence[order], weight[order], (1 - right)[order]
    last = np.flatnonzero(np.append(np.diff(confidence) < 0, True))  # of equal ones
    kept, lost = np.cumsum(weight)[last], np.cumsum(weight * wrong)[last]
    groups = groups.take(order) if whole else groups.take(order).or_singles(weight)
    number, freedom, possible = kept, np.full(len(last), np.inf), kept
    if not groups.independent:
        possible, variance = _of_groups(groups, weight, wrong, last)
        risk = lost / kept
        with np.errstate(divide="ignore", invalid="ignore"):
            number = np.where(
                variance > 0, np.minimum(kept, risk * (1 - risk) / variance), possible
            )
        freedom = np.maximum(possible - 1, _LEAST_FREEDOM)
    sums = confidence[last], kept, lost, number, freedom, possible
    return _AnswersByConfidence(*sums, confidence, 1 - wrong, weight, groups)


def _of_groups(groups: Groups, weight, wrong, last):
    """Effective number of groups among the answers that are kept, and variance of their risk.

    Sums over groups of (Σ w e)², (Σ w e)(Σ w) and (Σ w)² grow with each answer by what its group
    holds before.
    """
    codes, n = groups.codes, len(weight)
    by_group = np.argsort(codes, kind="stable")
    first = np.searchsorted(codes[by_group], codes[by_group])

    def before(step):
        path = np.append(0.0, np.cumsum(step[by_group]))
        held = np.empty(n)
        held[by_group] = path[:-1] - path[first]
        return held

    a, b = weight * wrong, weight
    in_a, in_b = before(a), before(b)
    squares = np.cumsum(a * (2 * in_a + a))[last]
    mixed = np.cumsum(a * in_b + b * in_a + a * b)[last]
    sizes = np.cumsum(b * (2 * in_b + b))[last]
    n_groups = np.cumsum(in_b == 0)[last]
    kept = np.cumsum(b)[last]
    risk = np.cumsum(a)[last] / kept
    variance = squares - 2 * risk * mixed + risk**2 * sizes
    variance = np.where(variance > 1e-12 * sizes, variance, 0) / kept**2
    return kept**2 / sizes, variance * n_groups / np.maximum(n_groups - 1, 1)


def _limits(answers: _AnswersByConfidence, tail: float) -> tuple[np.ndarray, np.ndarray]:
    """Clopper-Pearson limits of the risk at each threshold."""
    number = answers.number
    if np.isfinite(answers.freedom).any():
        number = number * (norm.isf(tail) / t.isf(tail, answers.freedom)) ** 2
    return clopper_pearson(answers.risk * number, number, tail)


def _at(answers: _AnswersByConfidence, last: int, max_risk: float, level: float) -> CoverageAtRisk:
    """The share of answers that this threshold keeps, and their risk."""
    threshold = _short(answers.thresholds[last : last + 2])
    kept = answers.confidence >= threshold
    low, _ = proportion_limits(kept, answers.weight, answers.groups, 1 - level)
    return CoverageAtRisk(
        max_risk,
        float(answers.kept[last] / answers.kept[-1]),
        low,
        threshold,
        float(answers.risk[last]),
        level,
        answers.n_samples,
        int(kept.sum()),
    )


def _fewest(max_risk: float, alpha: float) -> int:
    """The fewest answers that pass if all are right."""
    return ceil(log(alpha / _STARTS) / log1p(-max_risk))


def _highs(answers: _AnswersByConfidence, alpha: float) -> np.ndarray:
    """Upper limits of the risk at each threshold, for 1, 2, … parts of the allowed error."""
    parts = np.arange(1, _STARTS + 1)
    return np.array([_limits(answers, alpha * part / _STARTS)[1] for part in parts])


def _last_that_passes(answers: _AnswersByConfidence, highs, max_risk: float, alpha: float) -> int:
    """The lowest threshold that passes the sequence of tests; -1 if none does."""
    # Starts depend on confidences and groups only: from the fewest answers that may pass to all.
    fewest, most = _fewest(max_risk, alpha), answers.possible.max()
    if fewest > most:
        return -1
    grid = np.geomspace(fewest, most, _STARTS + 1)[:-1]
    reached = np.maximum.accumulate(answers.possible)
    parts, last = 0, -1
    for start, end in pairwise([*np.searchsorted(reached, grid - 1e-9), len(reached)]):
        parts += 1
        fails = np.flatnonzero(highs[parts - 1, start:end] > max_risk)
        n_passed = fails[0] if len(fails) else end - start
        last = start + n_passed - 1 if n_passed else last
        parts = 0 if len(fails) else parts
    return int(last)


def _needed(answers: _AnswersByConfidence, enough, max_risk: float, alpha: float) -> int | None:
    """About how many answers, or groups, let a threshold pass; None if more than 10 times."""

    def passes(times: float) -> bool:
        names = "number", "freedom", "possible"
        many = answers._replace(**{name: times * getattr(answers, name) for name in names})
        highs = np.where(enough, _highs(many, alpha), 1)
        return _last_that_passes(many, highs, max_risk, alpha) >= 0

    times = next((times for times in _MULTIPLES if passes(times)), None)
    if times is None:
        return None
    needed = times * (answers.n_groups or answers.n_samples)
    digits = 1 - floor(log10(needed))  # two significant ones
    return ceil(needed * 10.0**digits) * 10**-digits if digits < 0 else ceil(needed)


def _short(thresholds: np.ndarray) -> float:
    """The shortest decimal that is at most the first threshold and above the second, if any."""
    first = float(thresholds[0])
    for digits in range(1, 15) if len(thresholds) == 2 else ():
        short = round(float(np.floor(first * 10.0**digits)) / 10.0**digits, digits)
        if thresholds[1] < short <= first:
            return short
    return first


def _area(answers: _AnswersByConfidence, generalized: bool) -> float:
    """Σ_k of the risk of k answers, over the orders of ties: a tie of w answers that follow W."""
    before = np.append(0.0, answers.kept[:-1])
    lost = np.append(0.0, answers.wrong[:-1])
    size = answers.kept - before
    rate = (answers.wrong - lost) / size
    if generalized:  # Σ_j (E + r j), j = 1, …, w
        area = np.sum(lost * size + rate * size * (size + 1) / 2) / answers.kept[-1]
    else:  # Σ_j (E + r j) / (W + j) = r w + (E - r W) Σ_j 1 / (W + j)
        harmonic = digamma(answers.kept + 1) - digamma(before + 1)
        area = np.sum(rate * size + (lost - rate * before) * harmonic)
    return float(area / answers.kept[-1])
