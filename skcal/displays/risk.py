"""Risks of the candidates of a search, and of the answers that are kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from scipy.stats import norm

from skcal._show import format_setting, percent
from skcal._sklearn_compat import validate_params
from skcal.displays import draw
from skcal.displays.base import DRAWN, Display, require_search
from skcal.metrics.selective import (
    CoverageAtRisk,
    RiskCoverageCurve,
    coverage_at_risk,
    risk_coverage_curve,
)

_MARKERS = "os^Dv<>"
_PLAIN = 3000  # ratio of the largest to the smallest value up to which ticks are plain numbers
_DECADES_FROM = 50.0  # between values: from there on only powers of ten have a label


@dataclass(frozen=True, eq=False)
class RiskCurve:
    """Validation risks of one candidate.

    Attributes
    ----------
    name : str
        The name of the candidate.
    values : ndarray of shape (n_values,)
        The values of the hyperparameter, ascending.
    risk : ndarray of shape (n_values,)
        Mean over folds; the lowest where other parameters vary too.
    above_best : ndarray of shape (n_values,)
        Risk minus the lowest of the search.
    standard_error : ndarray of shape (n_values,)
        The standard errors of ``above_best``, from its values on the folds; 0 for the chosen
        setting.
    chosen : int or None
        Position of the chosen setting.
    """

    name: str
    values: np.ndarray
    risk: np.ndarray
    above_best: np.ndarray
    standard_error: np.ndarray
    chosen: int | None


@dataclass(frozen=True, eq=False)
class CandidateRisk:
    """The best setting of one candidate.

    Attributes
    ----------
    name, setting : str
        The name of the candidate, and its best parameters.
    risk : float
    above_best, standard_error : float
        Paired difference to the best candidate's risk over validation samples, as in
        ``search.comparisons_``.
    chosen, simplest : bool
        Whether it is the chosen one; the simplest that is not significantly worse.
    """

    name: str
    setting: str
    risk: float
    above_best: float
    standard_error: float
    chosen: bool
    simplest: bool


@dataclass(eq=False, repr=False)
class RiskDisplay(Display):
    """Validation risk of a search, by hyperparameter or by candidate.

    Make it with :meth:`from_search`. The display shows the risk above the lowest, in which the
    irreducible part cancels. It says how much worse a setting estimates.

    Parameters
    ----------
    param : str or None
        The hyperparameter; None for the candidates side by side.
    curves : list of RiskCurve, default=()
        The risk of a family of candidates along one of its parameters.
    candidates : list of CandidateRisk, default=()
        The cross-validated risk of each candidate, with its standard error.
    best_name : str, default=""
        The name of the chosen candidate.
    best_risk : float, default=0.0
        The lowest risk, from which the others are drawn; squared probability units.
    n_folds : int, default=0
        Number of folds over which risks were averaged.
    confidence_level : float, default=0.95
        The confidence level of the limits.

    Attributes
    ----------
    ax_, figure_ : matplotlib axes and figure
        Set by :meth:`plot`, as are the following.
    lines_, bands_ : list of lines and of bands, one a curve
    chosen_ : line
        The chosen setting.
    bars_ : error bars of the candidates side by side, or None

    See Also
    --------
    skcal.CalibrationErrorSearchCV, skcal.model_selection.compare_risks

    Notes
    -----
    Bands of curves are normal intervals from the paired differences of few folds: rough. Bars of
    candidates come from the paired differences over all validation samples. Both describe the table
    after the choice.

    Examples
    --------
    >>> from skcal import Binning, CalibrationErrorSearchCV, Zero
    >>> from skcal.datasets import make_tempered
    >>> from skcal.displays import RiskDisplay
    >>> data = make_tempered(1000, temperature=2.0, n_truth_draws=0, random_state=0)
    >>> candidates = [(Zero(), {}), (Binning(), {"n_bins": [2, 5, 10, 20, 50]})]
    >>> search = CalibrationErrorSearchCV(candidates, "confidence", random_state=0)
    >>> search = search.fit(data.proba, data.labels)
    >>> display = RiskDisplay.from_search(search, param="n_bins", plot=False)
    >>> display.curves[0].name, display.curves[0].values
    ('Binning', array([ 2.,  5., 10., 20., 50.]))
    """

    param: str | None
    _: KW_ONLY
    curves: Sequence[RiskCurve] = ()
    candidates: Sequence[CandidateRisk] = ()
    best_name: str = ""
    best_risk: float = 0.0
    n_folds: int = 0
    confidence_level: float = 0.95

    def _facts(self):
        shown = draw.counted(len(self.candidates), "candidate")
        if self.param is not None:
            shown = f"{draw.counted(len(self.curves), 'curve')} of {self.param}"
        lowest = f"lowest {draw.as_label(self.best_name)}"
        return [shown, draw.counted(self.n_folds, "fold"), lowest]

    @classmethod
    @validate_params(DRAWN)
    def from_search(cls, search, *, param=None, confidence_level=0.95, ax=None, plot=True) -> Self:
        """Read a fitted search, and plot.

        Parameters
        ----------
        search : CalibrationErrorSearchCV
            A fitted search.
        param : str, default=None
            A hyperparameter with numbers, such as "alpha", "bandwidth", "n_bins" or
            "estimator__C": a curve for each candidate that has it. None: the best setting of each
            candidate side by side.
        confidence_level : float in (0, 1), default=0.95
            The confidence level of the bands or bars.
        ax : matplotlib axes, default=None
            None makes a figure.
        plot : bool, default=True
            False computes only the numbers, without matplotlib.

        Returns
        -------
        display : RiskDisplay
        """
        require_search("search", search)
        display = cls(
            param,
            curves=[] if param is None else _risk_curves(search, param),
            candidates=_candidate_risks(search) if param is None else [],
            best_name=search.best_family_.name,
            best_risk=search.best_risk_,
            n_folds=search.best_family_.split_scores.shape[1],
            confidence_level=confidence_level,
        )
        return display.plot(ax=ax) if plot else display

    def _layout(self):
        return 1, (8.0, 4.4 if self.param is not None else 1.4 + 0.42 * len(self.candidates))

    def _draw(self, axes, name, kwargs):
        [ax] = axes
        self.lines_: list[Any] = []
        self.bands_: list[Any] = []
        self.chosen_ = self.bars_ = None
        z = norm.ppf((1 + self.confidence_level) / 2)
        draw_risks = self._draw_candidates if self.param is None else self._draw_curves
        bars = draw_risks(ax, z, kwargs)
        of = f"{draw.as_label(name, 24)}: " if name else ""
        title = f"{of}lowest {self.best_risk:.6g}, {self.n_folds} folds\n{bars}"
        draw.set_title(ax, title)
        draw.legend_below(ax)

    def _draw_curves(self, ax, z, kwargs):
        for k, curve in enumerate(self.curves):
            colour, above = draw.colour_of(k), curve.above_best
            half, marker = z * curve.standard_error, _MARKERS[k % len(_MARKERS)]
            label = draw.as_label(curve.name).lstrip("_")
            look = draw.styled(kwargs, color=colour, marker=marker, markersize=4, label=label)
            self.lines_ += ax.plot(curve.values, above, **look)
            band = curve.values, above - half, above + half
            self.bands_.append(draw.band(ax, *band, colour, 0.15))
            if curve.chosen is not None:
                value = curve.values[curve.chosen]
                label = f"chosen: {str(self.param).rsplit('__')[-1]} = {value:.3g}"
                self.chosen_ = _star(ax, value, above[curve.chosen], colour, label)
        lowest = f"lowest: {draw.as_label(self.best_name, 24)}"
        ax.axhline(0, color=draw.GREY, linewidth=1, linestyle=":", label=lowest)
        _scale_axes(ax, self.curves)
        ylabel = draw.side_label(ax, "validation risk above the lowest")
        ax.set(xlabel=self.param, ylabel=ylabel)
        return f"bands {percent(self.confidence_level)}, paired over folds"

    def _draw_candidates(self, ax, z, kwargs):
        rows = np.arange(len(self.candidates))
        above = np.array([candidate.above_best for candidate in self.candidates])
        error = np.array([candidate.standard_error for candidate in self.candidates])
        error = np.where(np.isfinite(error), error, 0)
        look = draw.styled(kwargs, marker="o", linestyle="none", color=draw.BLUE, capsize=3)
        self.bars_ = ax.errorbar(above, rows, xerr=z * error, **look)
        for k, candidate in enumerate(self.candidates):
            if candidate.chosen:
                self.chosen_ = _star(ax, above[k], k, draw.ORANGE, "chosen")
        simplest = [k for k, candidate in enumerate(self.candidates) if candidate.simplest]
        ring = {"markersize": 13, "markerfacecolor": "none", "markeredgecolor": draw.GREY}
        ax.plot(above[simplest], simplest, "o", **ring, label="simplest, not significantly worse")
        ax.axvline(0, color=draw.GREY, linewidth=1, linestyle=":")
        _symlog(ax, "x", above, error)
        draw.name_rows(ax, [_candidate_label(row) for row in self.candidates], fontsize="medium")
        beside_powers = "left" if draw.is_small(ax) else "center"
        ax.set_xlabel("risk above the lowest", loc=beside_powers)
        return f"bars {percent(self.confidence_level)}, paired over samples"


def _star(ax, x, y, colour, label):
    """Mark the chosen setting."""
    look = {"color": colour, "markersize": 15, "markeredgecolor": draw.ink(ax), "zorder": 5}
    [star] = ax.plot(x, y, "*", label=label, **look)
    return star


def _candidate_label(candidate):
    setting = "" if candidate.setting == "-" else f"\n{draw.as_label(candidate.setting, 34)}"
    return draw.as_label(candidate.name, 28) + setting


def _scale_axes(ax, curves):
    values = np.concatenate([curve.values for curve in curves])
    if values.min() > 0 and values.max() > 20 * values.min():
        ax.set_xscale("log")
        if values.max() < _PLAIN * values.min():
            from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

            far = values.max() > _DECADES_FROM * values.min()
            ax.xaxis.set_major_locator(LogLocator(subs=(1,) if far else (1, 2, 5)))
            ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.3g}"))
            ax.xaxis.set_minor_formatter(NullFormatter())
    above = np.concatenate([curve.above_best for curve in curves])
    _symlog(ax, "y", above, np.concatenate([curve.standard_error for curve in curves]))


def _symlog(ax, axis, above, error):
    """Linear near the lowest risk, logarithmic where some are more than ten times worse."""
    positive = np.sort(above[above > 0])
    if len(positive) < 2 or positive[-1] < 20 * np.median(positive):
        ax.ticklabel_format(axis=axis, style="sci", scilimits=(-2, 4))
        return
    noise = np.nanmedian(error[error > 0]) if (error > 0).any() else positive[0]
    threshold = float(max(noise, positive[-1] * 1e-6))
    getattr(ax, f"set_{axis}scale")("symlog", linthresh=threshold)


def _risk_curves(search, param) -> list[RiskCurve]:
    """A curve for each candidate that varies the parameter."""
    families = [
        family
        for family in search.families_
        if any(param in setting for setting in family.settings)
    ]
    if not families:
        names = sorted(
            {name for f in search.families_ for setting in f.settings for name in setting}
        )
        others = f"one of {', '.join(map(repr, names))}, or " if names else ""
        raise ValueError(
            f"param={param!r} is not varied by any candidate. Use {others}None for the candidates."
        )
    best = search.best_family_.split_scores[search.best_family_.best]
    return [_risk_curve(family, param, search, best) for family in families]


def _risk_curve(family, param, search, best) -> RiskCurve:
    settings = [(k, s[param]) for k, s in enumerate(family.settings) if param in s]
    try:
        values = np.array([float(value) for _, value in settings])
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"param={param!r} of {family.name} has values that are not numbers. Use param=None."
        ) from error
    positions = np.array([k for k, _ in settings])
    # Where other parameters vary too, the best setting for each value.
    rows = np.array(
        [
            positions[values == value][np.argmax(family.scores[positions[values == value]])]
            for value in np.unique(values)
        ]
    )
    excess, n_folds = best - family.split_scores[rows], len(best)
    spread = excess.std(axis=1, ddof=1) if n_folds > 1 else np.full(len(rows), np.nan)
    chosen = np.flatnonzero(rows == family.best) if family is search.best_family_ else rows[:0]
    return RiskCurve(
        name=family.name,
        values=np.unique(values),
        risk=-family.scores[rows],
        above_best=-family.scores[rows] - search.best_risk_,
        standard_error=spread / np.sqrt(n_folds),
        chosen=int(chosen[0]) if len(chosen) else None,
    )


def _candidate_risks(search) -> list[CandidateRisk]:
    """The best setting of each candidate."""
    return [
        CandidateRisk(
            name=family.name,
            setting=format_setting(family.settings[family.best]),
            risk=-float(family.scores.max()),
            above_best=comparison.difference,
            standard_error=comparison.standard_error,
            chosen=family is search.best_family_,
            simplest=family is search.simplest_family_,
        )
        for family, comparison in zip(search.families_, search.comparisons_, strict=True)
    ]


@dataclass(eq=False, repr=False)
class RiskCoverageDisplay(Display):
    """Risk-coverage curve: share of wrong answers among the most confident ones.

    Make it with :meth:`from_predictions`.

    Parameters
    ----------
    curve : RiskCoverageCurve
        What is drawn; see :func:`skcal.metrics.risk_coverage_curve`.
    limited : CoverageAtRisk, default=None
        The threshold that holds a limit of the risk.
    name : str, default=None
        The name of the model, for the title.

    Attributes
    ----------
    ax_ : matplotlib axes
        Set by :meth:`plot`, as are the following.
    figure_ : matplotlib figure
    line_ : matplotlib line
    band_ : matplotlib collection
        Pointwise limits of the risk.

    See Also
    --------
    skcal.metrics.risk_coverage_curve, skcal.metrics.coverage_at_risk

    Examples
    --------
    >>> import numpy as np
    >>> from skcal.displays import RiskCoverageDisplay
    >>> rng = np.random.default_rng(0)
    >>> confidence = rng.uniform(0.5, 1, 2000)
    >>> correct = rng.random(2000) < confidence
    >>> RiskCoverageDisplay.from_predictions(correct, confidence, max_risk=0.1, plot=False)
    RiskCoverageDisplay(n = 2,000, AURC 0.123, risk ≤ 10 % at 33.1 %)
    """

    curve: RiskCoverageCurve
    _: KW_ONLY
    limited: CoverageAtRisk | None = None
    name: str | None = None
    _size = (4.8, 4.4)

    def _repr_html_(self):
        return self.curve._repr_html_()

    def _facts(self):
        facts = [f"n = {self.curve.n_samples:,}", f"AURC {self.curve.area:.3f}"]
        if self.limited is not None:
            limit, coverage = percent(self.limited.max_risk), self.limited.coverage
            facts.append(f"risk ≤ {limit} at {100 * coverage:.1f} %")
        return facts

    @classmethod
    def from_predictions(
        cls,
        correct,
        confidence,
        *,
        max_risk=None,
        confidence_level=0.95,
        sample_weight=None,
        groups=None,
        name=None,
        ax=None,
        plot=True,
    ) -> Self:
        """Compute and plot the curve.

        Parameters
        ----------
        correct : array-like of shape (n_samples,)
            Whether each answer is right: booleans, or 1 and 0.
        confidence : array-like of shape (n_samples,)
            Finite numbers; more is surer.
        max_risk : float in (0, 1), default=None
            Also show how many answers :func:`skcal.metrics.coverage_at_risk` keeps at this risk.
        confidence_level : float in (0, 1), default=0.95
            The confidence level of the limits.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples.
        groups : array-like of shape (n_samples,), default=None
            Answers of one group may depend on each other; None: all are independent.
        name : str, default=None
            The name of the model, for the title.
        ax : matplotlib axes, default=None
            None makes a figure.
        plot : bool, default=True
            False computes only the numbers, without matplotlib.

        Returns
        -------
        display : RiskCoverageDisplay
        """
        options = {
            "confidence_level": confidence_level,
            "sample_weight": sample_weight,
            "groups": groups,
        }
        curve = risk_coverage_curve(correct, confidence, **options)
        limited = None
        if max_risk is not None:
            limited = coverage_at_risk(correct, confidence, max_risk, **options)
        display = cls(curve, limited=limited, name=name)
        return display.plot(ax=ax) if plot else display

    def _draw(self, axes, name, kwargs):
        [ax], curve, limited = axes, self.curve, self.limited
        look = draw.styled(kwargs, color=draw.BLUE, linewidth=1.5, label="observed risk")
        if len(curve.coverage) == 1:
            look = {"marker": "o"} | look
        [self.line_] = ax.plot(curve.coverage, curve.risk, **look)
        band = f"{percent(curve.confidence_level)} limits at each threshold"
        colour = self.line_.get_color()
        self.band_ = draw.band(ax, curve.coverage, curve.low, curve.high, colour, 0.2, band)
        if limited is not None:
            label = f"allowed risk {percent(limited.max_risk)}"
            ax.axhline(limited.max_risk, color=draw.GREY, linestyle=":", label=label)
            if limited.risk is not None:
                label = f"keep {100 * limited.coverage:.1f} %: confidence ≥ {limited.threshold:.6g}"
                place = limited.coverage, limited.risk
                ax.plot(*place, "o", color=draw.ORANGE, label=label)
        most = max(curve.risk.max(), 0.0 if limited is None else limited.max_risk, curve.high[-1])
        ax.set(xlim=(0, 1.02), ylim=(0, min(1.02, 1.25 * most)))
        ax.set(
            xlabel="coverage: share of answers kept",
            ylabel=draw.side_label(ax, "risk: share of them wrong"),
        )
        draw.set_title(ax, draw.titled(name, ", ".join(self._facts()[:2])))
        draw.legend_below(ax)
