"""The risk of the answers that are kept, by the share that is kept."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Self

from skcal._show import percent
from skcal.displays import draw
from skcal.displays.base import Display
from skcal.metrics.selective import (
    CoverageAtRisk,
    RiskCoverageCurve,
    coverage_at_risk,
    risk_coverage_curve,
)


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
        ax.set(xlabel="coverage: share of answers kept", ylabel="risk: share of them wrong")
        ax.set_title(draw.titled(name, ", ".join(self._facts()[:2])), fontsize="medium")
        draw.legend_below(ax)
