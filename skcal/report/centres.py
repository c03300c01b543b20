"""How subgroups differ: in O/E, slope and C, after a recalibration of all, and when left out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import sparse, stats
from scipy.optimize import minimize_scalar
from scipy.special import expit, logit, wrightomega
from sklearn.linear_model import LogisticRegression

from skcal._groups import FEWEST_GROUPS
from skcal._show import broken
from skcal.displays import draw as drawing
from skcal.report.compare import Subgroup
from skcal.report.findings import Gain, gain_of, recalibrated
from skcal.report.measure import Measures
from skcal.sample import Sample

_FREEDOM_LOST = 2
_SHRUNK = 1.0  # events of all centres, beside those of one, in its variance of an event
_ABSCISSAS, _MASSES = np.polynomial.hermite.hermgauss(31)
_MEAN_STEPS, _SMALL = 100, 1e-10
_MOST_PRINTED = 1000  # of a limit that is printed


@dataclass(frozen=True)
class Heterogeneity:
    """A measure of several subgroups, as draws from a normal law: of log O/E, slope or logit C.

    Attributes
    ----------
    column : str
        The column that names the subgroups; "" if it has no name.
    measure : {"O/E", "calibration slope", "C-statistic"}
    n_subgroups : int
        Subgroups in which the measure is known.
    standard_deviation : float
        That of the true log O/E, slope or logit of C between subgroups.
    estimate : float
        The measure of a typical subgroup.
    low, high : float
        The prediction interval of the measure of a new subgroup.
    confidence_level : float
    """

    column: str
    measure: str
    n_subgroups: int
    standard_deviation: float
    estimate: float
    low: float
    high: float
    confidence_level: float

    def sentence(self) -> str:
        """Return what a new subgroup would have, in words."""
        of = f" ({self.column})" if self.column else ""
        high = f"{self.high:.2f}" if self.high < _MOST_PRINTED else f"more than {_MOST_PRINTED:,}"
        name = self.measure if self.measure == "O/E" else f"the {self.measure}"
        return (
            f"In a new subgroup{of}, {name} is expected between {self.low:.2f} and {high} "
            f"({100 * self.confidence_level:g} % prediction interval). {self._differences()}"
        )

    def _differences(self) -> str:
        shown = f"{self.standard_deviation:.2f}"
        if not float(shown):
            return f"Chance explains how the {self.n_subgroups} subgroups differ."
        return (
            f"Beyond chance, {_SCALE_OF[self.measure][0]} differs between the {self.n_subgroups} "
            f"subgroups by a standard deviation of {shown}."
        )


_SCALE_OF: dict[str, tuple[str, Callable, Callable]] = {
    "O/E": ("log O/E", np.log, lambda value: np.exp(np.minimum(value, 700))),
    "calibration slope": ("the slope", lambda value: value, lambda value: value),
    "C-statistic": ("logit C", logit, expit),
}


def heterogeneity_of_ratios(
    column: str, observed, expected, variance, confidence_level: float
) -> Heterogeneity | None:
    """Return how much O/E ratios differ between subgroups beyond sampling error.

    Parameters
    ----------
    column : str
    observed, expected : array-like of shape (n_subgroups,)
        Numbers of events.
    variance : array-like of shape (n_subgroups,)
        Sampling variances of the numbers that were observed.
    confidence_level : float
        The confidence level of the limits.

    Returns
    -------
    heterogeneity : Heterogeneity or None
        None if there was no event at all.

    Notes
    -----
    Given θ_k, the events O_k of subgroup k have the mean E_k exp(θ_k) and the likelihood of Poisson
    events of the dispersion φ_k, so that a subgroup without an event counts as what it is [1]_.
    θ_k is normal with mean μ and variance τ². The integral over θ_k is that of an adaptive
    Gauss-Hermite rule. φ_k is Var O_k / O_k, below 1 where events are frequent and above 1 in
    dependent samples, after one event of all subgroups was added to it. τ² maximises the profile
    likelihood of μ, adjusted by the information about it [2]_, which is the restricted likelihood
    if O_k is normal. The standard error of μ is that of the information, times the root of
    Pearson's statistic over k - 1 where that is above 1, as by Hartung and Knapp. The prediction
    interval is μ ± t √(τ² + se²), with Student's t of k - 2 degrees of freedom [3]_ [4]_.

    References
    ----------
    .. [1] Stijnen, Hamza & Özdemir, Random effects meta-analysis of event outcome in the framework
       of the generalized linear mixed model, Statistics in Medicine 2010.
    .. [2] Cox & Reid, Parameter orthogonality and approximate conditional inference, Journal of the
       Royal Statistical Society B 1987.
    .. [3] Higgins, Thompson & Spiegelhalter, A re-evaluation of random-effects meta-analysis,
       Journal of the Royal Statistical Society A 2009.
    .. [4] Debray et al., A guide to systematic review and meta-analysis of prediction model
       performance, BMJ 2017.
    """
    observed, expected, variance = (np.array(x, float) for x in (observed, expected, variance))
    if not observed.sum() > 0:
        return None
    shared = _SHRUNK * variance.sum() / observed.sum()
    dispersion = np.maximum((variance + shared) / (observed + _SHRUNK), 1e-9)
    events, offset = observed / dispersion, expected / dispersion

    def deviance(between):
        _, value, information = fitted_mean(between, events, offset)
        return np.log(information) - 2 * value

    rough = np.log((observed + 0.5) / (expected + 0.5))
    between = _least(deviance, 4 * np.ptp(rough) ** 2 + 1e-12)
    mean, _, information = fitted_mean(between, events, offset)
    marginal = offset * np.exp(mean + between / 2)
    pearson = (events - marginal) ** 2 / (marginal + marginal**2 * np.expm1(between))
    return _predicted(
        column, "O/E", mean, between, 1 / information, pearson.sum(), len(events), confidence_level
    )


def heterogeneity_of_limits(
    column: str, measure: str, values, low, high, confidence_level: float
) -> Heterogeneity:
    """Return how much slopes or C-statistics differ between subgroups beyond sampling error.

    Their estimates, on a scale on which they are about normal, have standard errors by their
    limits. τ² maximises the restricted likelihood; the rest is as of O/E.
    """
    _, scale, _ = _SCALE_OF[measure]
    values, low, high = (scale(np.array(x, float)) for x in (values, low, high))
    spread = ((high - low) / (2 * stats.norm.isf((1 - confidence_level) / 2))) ** 2
    between = restricted_likelihood_variance(values, spread)
    weight = 1 / (between + spread)
    mean = float(weight @ values / weight.sum())
    squares = float(weight @ (values - mean) ** 2)
    about = between, 1 / weight.sum(), squares, len(values), confidence_level
    return _predicted(column, measure, mean, *about)


def _predicted(column, measure, mean, between, variance, squares, n, level) -> Heterogeneity:
    """The prediction interval, from the variance of the mean and a sum of squares of n - 1."""
    error = np.sqrt(between + variance * max(squares / (n - 1), 1.0))
    half = stats.t(n - _FREEDOM_LOST).isf((1 - level) / 2) * error
    back, deviation = _SCALE_OF[measure][2], float(np.sqrt(between))
    estimate, low, high = back(np.array([mean, mean - half, mean + half])).tolist()
    return Heterogeneity(column, measure, n, deviation, estimate, low, high, level)


def fitted_mean(between: float, events, offset) -> tuple[float, float, float]:
    """Return μ, the log-likelihood there and its negative second derivative, given τ²."""
    mean = float(np.log(events.sum() / offset.sum()))
    for _ in range(_MEAN_STEPS):  # the likelihood is log-concave, as all marginals of such ones
        value, score, information = marginal_likelihood(mean, between, events, offset)
        step = float(np.clip(score / information, -1, 1))
        mean += step
        if abs(step) < _SMALL:
            break
    return mean, value, information


def marginal_likelihood(mean, between, events, offset) -> tuple[float, float, float]:
    """Return the log-likelihood of μ and τ², but for constants, and its derivatives by μ.

    Its first derivative is Σ E[O_k - r_k] and its second one Σ Var r_k - E[r_k], of the rates r_k =
    E_k exp(θ_k) given O_k.
    """
    if between == 0:
        rates = offset * np.exp(mean)
        value = events * mean - rates
        return float(value.sum()), float((events - rates).sum()), float(rates.sum())
    top = mean + between * events
    rate = wrightomega(np.log(between * offset) + top)  # of the mode, times τ²
    scale = np.sqrt(2 * between / (1 + rate))
    theta = (top - rate)[:, None] + scale[:, None] * _ABSCISSAS
    rates = offset[:, None] * np.exp(theta)
    logs = events[:, None] * theta - rates - (theta - mean) ** 2 / (2 * between)
    logs += np.log(_MASSES) + _ABSCISSAS**2 + np.log(scale / np.sqrt(2 * np.pi * between))[:, None]
    values = np.logaddexp.reduce(logs, axis=1)
    chance = np.exp(logs - values[:, None])
    means = (chance * rates).sum(axis=1)
    variances = (chance * (rates - means[:, None]) ** 2).sum(axis=1)
    return (
        float(values.sum()),
        float((events - means).sum()),
        max(float((means - variances).sum()), 1e-300),
    )


def restricted_likelihood_variance(values: np.ndarray, variances: np.ndarray) -> float:
    """Return the variance between values that have these sampling variances, by REML."""

    def deviance(between):
        weight = 1 / (between + variances)
        mean = weight @ values / weight.sum()
        return weight @ (values - mean) ** 2 - np.log(weight).sum() + np.log(weight.sum())

    return _least(deviance, 4 * np.ptp(values) ** 2 + 1e-12)


def _least(deviance: Callable[[float], float], top: float) -> float:
    """Where a function of a variance is least, from 0 to ``top``."""
    starts = np.concatenate([[0.0], np.geomspace(1e-5, 1, 25) * top])
    best = int(np.argmin([deviance(between) for between in starts]))
    bounds = starts[max(best - 1, 0)], starts[min(best + 1, len(starts) - 1)]
    inner = minimize_scalar(deviance, bounds=bounds, method="bounded", options={"xatol": 1e-10})
    return min([0.0, float(inner.x)], key=deviance)


_FEWEST_CENTRES = 5
_ROW, _NAME_WIDTH = 0.25, 20  # inches of a row of a forest plot, and letters of a line of its name
_MARGIN, _TOO_LONG = 0.05, 3.0  # beside what a plot shows; of the median, an interval that it holds


def heterogeneity(
    columns: dict[str, list[Subgroup]], subgroups: list[Measures], level: float
) -> list[Heterogeneity]:
    """How O/E, slope and C differ between the subgroups of each column that makes at least five.

    Those of too few groups are left out: they have no standard error.
    """
    if not (subgroups and subgroups[0].notion.of_positive_class):
        return []
    found, measured = [], iter(subgroups)
    for name, of_column in columns.items():
        parts = [(part, next(measured)) for part in of_column]
        parts = [(part, one) for part, one in parts if not one.overview.has_few_groups]
        if len(parts) < _FEWEST_CENTRES:
            continue
        validations = [one.validation for _, one in parts]
        events = [_events(part.about.sample) for part, _ in parts]
        observed, expected, variance = np.transpose(events)
        found.append(heterogeneity_of_ratios(name, observed, expected, variance, level))
        for measure_name, field in (("calibration slope", "slope"), ("C-statistic", "c_statistic")):
            values = [getattr(part, field) for part in validations if part is not None]
            known = [value for value in values if np.isfinite(value).all()]
            if len(known) >= _FEWEST_CENTRES:
                estimate, low, high = np.transpose(known)
                about = name, measure_name, estimate, low, high, level
                found.append(heterogeneity_of_limits(*about))
    return [part for part in found if part is not None]


@dataclass(frozen=True)
class LeftOut:
    """What a recalibration leaves in the subgroups of a column that it was not fitted to.

    Attributes
    ----------
    column : str
    n_subgroups : int
    gain : Gain
        The calibration error of all predictions, each recalibrated by the other subgroups.
    before, after : tuple of two float
        The smallest and the largest O/E ratio of a subgroup.
    """

    column: str
    n_subgroups: int
    gain: Gain
    before: tuple[float, float]
    after: tuple[float, float]


def leave_out(columns: dict[str, list[Subgroup]], sample: Sample, error) -> list[LeftOut]:
    """Recalibrate each subgroup of a column by the others, if there are at least five.

    That is of use where the error of all is significant.
    """
    if not (sample.notion.of_positive_class and error is not None and error.is_significant):
        return []
    found = []
    for name, parts in columns.items():
        if len(parts) < _FEWEST_CENTRES:
            continue
        blocks = np.empty(len(sample.codes), dtype=np.intp)
        for k, part in enumerate(parts):
            blocks[part.rows] = k
        proba = recalibrated(sample, blocks)
        after = sample._replace(proba=proba, logits=None)
        ranges = []
        for one in (sample, after):
            ratios = [
                events[0] / events[1] for events in (_events(one.take(p.rows)) for p in parts)
            ]
            ranges.append((min(ratios), max(ratios)))
        found.append(LeftOut(name, len(parts), gain_of(proba, sample, error), *ranges))
    return found


def _events(sample: Sample) -> tuple[float, float, float]:
    """Events that were observed, that were expected, and the variance of the first."""
    [problem] = sample.problems()
    weight, happened = problem.weight / problem.weight.mean(), problem.outcomes[:, 0]
    rate = np.average(happened, weights=weight)
    variance = sample.groups.variance_of_sum(weight * (happened - rate))
    return weight @ happened, weight @ problem.features[:, 0], float(variance)


def height_of_forest(report) -> float:
    """The height of a forest plot in inches."""
    n_rows = len(report.subgroups) + len({one.column for one in report.heterogeneity})
    _, names = _names_of_rows([part.name for part in report.subgroups])
    n_lines = max((name.count("\n") + 1 for name in names), default=1)
    return _ROW * (n_rows * (1 + n_lines) / 2 + 4)


def _names_of_rows(names: list[str]) -> tuple[str, list[str]]:
    """The column that all subgroups share, "" if none, and the names of rows beside it."""
    columns = {name.partition(" = ")[0] for name in names}
    column = columns.pop() if len(columns) == 1 and all(" = " in name for name in names) else ""
    names = [name.removeprefix(f"{column} = ") for name in names]
    cut = drawing.as_labels(names, 2 * _NAME_WIDTH)
    return column, [broken(name, _NAME_WIDTH) for name in cut]


def draw_forest(axis, report, measure: str) -> None:
    """A row for each subgroup with its interval of a measure, and the prediction intervals."""
    column, names = _names_of_rows([part.name for part in report.subgroups])
    rows = [
        (name, _ends(part, measure), drawing.BLUE, 1.5)
        for name, part in zip(names, report.subgroups, strict=True)
    ]
    for one in report.heterogeneity:
        if one.measure == measure:
            ends = one.estimate, one.low, one.high
            name = drawing.as_label(f"a new {one.column or 'subgroup'}", _NAME_WIDTH)
            rows.append((name, ends, drawing.GREY, 5))
    rows = [row for row in rows if np.isfinite(row[1]).all()]
    if not rows:
        raise ValueError(f"No subgroup has the measure {measure!r}. Pass by=… and one event.")
    first, last = _limits_of_forest(rows, measure)
    for k, (_, (estimate, low, high), colour, width) in enumerate(rows):
        axis.hlines(k, low, high, color=colour, linewidth=width, zorder=2)
        marker = "o" if estimate >= first else "<"  # no event: its logarithm is beyond the axis
        look = {"color": drawing.ink(axis), "markersize": 4, "zorder": 3}
        axis.plot(max(estimate, first), k, marker, clip_on=False, **look)
    if measure != "C-statistic":
        axis.axvline(1, color=drawing.GREY, linewidth=1, linestyle="--", zorder=1)
    axis.set_xlim(first, last)
    if measure == "O/E":
        drawing.ratio_ticks(axis, max(map(len, "\n".join(name for name, *_ in rows).split("\n"))))
    else:
        axis.locator_params(axis="x", nbins=3, steps=[1, 2, 5, 10])
    drawing.name_rows(axis, [name for name, *_ in rows], fontsize="medium")
    axis.set(xlabel=measure, ylabel=drawing.as_label(column, 24))


def _limits_of_forest(rows, measure: str) -> tuple[float, float]:
    """The ends of the axis, which intervals much longer than others may leave: of O/E by its logs.

    Prediction intervals are always whole.
    """
    ends = np.array([row[1] for row in rows])
    with np.errstate(divide="ignore"):
        places = np.log(ends) if measure == "O/E" else ends
    widths = places[:, 2] - places[:, 1]
    whole = widths <= _TOO_LONG * np.median(widths)
    whole |= np.array([colour == drawing.GREY for _, _, colour, _ in rows])
    ideal = [] if measure == "C-statistic" else [0.0 if measure == "O/E" else 1.0]
    shown = np.concatenate([places[:, 0], places[whole, 1:].ravel(), ideal])
    shown = shown[np.isfinite(shown)]
    margin = _MARGIN * np.ptp(shown) + 1e-3
    limits = np.array([shown.min() - margin, shown.max() + margin])
    first, last = (np.exp(limits) if measure == "O/E" else limits).tolist()
    return first, last


def _ends(part: Measures, measure: str) -> tuple[float, float, float]:
    """The estimate and the interval of a measure; NaN if there is none."""
    unknown = (np.nan,) * 3
    if measure == "O/E":
        return part.ratio or unknown
    name = "slope" if measure == "calibration slope" else "c_statistic"
    return unknown if part.validation is None else getattr(part.validation, name)


_KNOTS = (0.25, 0.5, 0.75)  # quantiles of the log-odds, between which one recalibration is a line
_FARTHEST_ODDS = 14.0  # log-odds of probabilities of 0 and 1
_C = 1e4  # of the ridge, which keeps subgroups finite whose outcomes are all the same


@dataclass(frozen=True)
class DifferingColumns:
    """Columns whose subgroups still differ after one recalibration of all samples.

    Attributes
    ----------
    columns : list of str
        Each differs after a recalibration by all columns before it; the first one differs most.
    explained : list of str
        Columns that differ alone, and not after a recalibration by ``columns``.
    """

    columns: list[str]
    explained: list[str]


def differing_columns(
    columns: dict[str, list[Subgroup]], sample: Sample, level: float
) -> DifferingColumns:
    """Find them by score tests, adjusted for all columns; ``level`` is that of the confidence.

    Notes
    -----
    The null hypothesis is a logistic regression of the outcomes on a linear spline of the log-odds,
    and on level and slope of each subgroup of the columns that were chosen. A candidate adds those
    of its own subgroups. If samples depend on each other, the variance of the scores is multiplied
    by the ratio of the sums of squares of groups and of samples.
    """
    if not (columns and sample.notion.single and sample.holds_rows):
        return DifferingColumns([], [])
    data = _ScoreData(sample)
    designs = {name: data.design(parts) for name, parts in columns.items() if len(parts) > 1}
    if not designs or data.n_groups < FEWEST_GROUPS or not data.has_both_outcomes:
        return DifferingColumns([], [])
    least = np.log((1 - level) / len(designs))
    alone: list[str] = []
    chosen: list[str] = []
    while len(chosen) < len(designs):
        null = sparse.hstack([data.spline, *(designs[name] for name in chosen)], "csr")
        found = data.log_pvalues(null, {k: v for k, v in designs.items() if k not in chosen})
        alone = alone if chosen else [name for name, value in found.items() if value <= least]
        best = min(found, key=found.__getitem__)
        if found[best] > least:
            break
        chosen.append(best)
    return DifferingColumns(chosen, [name for name in alone if name not in chosen])


class _ScoreData:
    """Outcomes, weights and the spline of the log-odds of a sample."""

    def __init__(self, sample: Sample):
        [problem] = sample.problems()
        n = len(problem.features)
        self.outcome = problem.outcomes[:, 0]
        self.weight = problem.weight / problem.weight.mean()
        self.has_both_outcomes = 0 < self.weight @ self.outcome < self.weight.sum()
        x = np.clip(logit(problem.features[:, 0]), -_FARTHEST_ODDS, _FARTHEST_ODDS)
        self._x = (x - x.mean()) / (x.std() or 1.0)
        knots = np.unique(np.quantile(self._x, _KNOTS))
        hinges = np.maximum(self._x[:, None] - knots, 0)
        self.spline = sparse.csr_array(np.column_stack([np.ones(n), self._x, hinges]))
        codes = np.arange(n)
        if not sample.groups.independent:
            codes = np.unique(sample.groups.units(n), return_inverse=True)[1]
        self.n_groups = int(codes.max()) + 1
        ones = np.ones(n), (codes, np.arange(n))
        self._of_groups = sparse.csr_array(ones, shape=(self.n_groups, n))

    def design(self, parts: list[Subgroup]) -> sparse.csr_array:
        """Level and slope of each subgroup."""
        code, rows = np.empty(len(self._x), np.intp), np.arange(len(self._x))
        for k, part in enumerate(parts):
            code[part.rows] = k
        shape = len(self._x), len(parts)
        columns = [sparse.csr_array((v, (rows, code)), shape) for v in (self._x**0, self._x)]
        return sparse.hstack(columns, "csr")

    def log_pvalues(self, null, candidates) -> dict[str, float]:
        """The logarithm of the p-value of each candidate beside the columns of ``null``."""
        n = len(self.outcome)
        model = LogisticRegression(C=_C, fit_intercept=False, solver="lbfgs", max_iter=1000)
        weight = np.concatenate([self.weight * self.outcome, self.weight * (1 - self.outcome)])
        kept = weight > 0
        model.fit(
            sparse.vstack([null, null], "csr")[kept], np.repeat([1, 0], n)[kept], weight[kept]
        )
        chance = model.predict_proba(null)[:, 1]
        residual, spread = self.weight * (self.outcome - chance), chance * (1 - chance)
        found = {}
        for name, design in candidates.items():
            both = sparse.hstack([null, design], "csr")
            m = null.shape[1]
            information = _gram_of(both, self.weight * spread)
            within = np.linalg.pinv(information[:m, :m], hermitian=True)
            # Scores of the candidate, less what the estimates of the null model take of them.
            effective = np.vstack([-within @ information[:m, m:], np.eye(design.shape[1])])
            score = effective.T @ (both.T @ residual)
            variance = effective.T @ _gram_of(both, self.weight**2 * spread) @ effective
            variance *= self._design_effect(both, residual, effective)
            roots, axes = np.linalg.eigh(variance)
            known = roots > 1e-8 * max(roots.max(), 1e-300)
            statistic = float(((axes[:, known].T @ score) ** 2 / roots[known]).sum())
            found[name] = float(stats.chi2.logsf(statistic, max(int(known.sum()), 1)))
        return found

    def _design_effect(self, both, residual, effective) -> float:
        """How much larger the variance of sums over groups is than that of samples, at least 1."""
        if self.n_groups == len(residual):
            return 1.0
        scores = sparse.diags_array(residual) @ both
        squares = [
            np.trace(effective.T @ (part.T @ part).toarray() @ effective)
            for part in (self._of_groups @ scores, scores)
        ]
        return max(squares[0] / squares[1], 1.0) if squares[1] > 0 else 1.0


def _gram_of(columns, weight) -> np.ndarray:
    return (columns.T @ (sparse.diags_array(weight) @ columns)).toarray()
