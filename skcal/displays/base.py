"""The base of displays: their repr, axes, colours, labels, and how they read predictions."""

from __future__ import annotations

from math import ceil
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skcal._show import one_line
from skcal._sklearn_compat import HasMethods, validate_params
from skcal.displays.files import save_figure
from skcal.model_selection import CalibrationErrorEstimator, CalibrationErrorSearchCV
from skcal.sample import Sample

# Okabe & Ito's palette, which colour-blind readers tell apart.
BLUE, ORANGE, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "0.6"
COLOURS = (BLUE, ORANGE, GREEN, "#CC79A7", "#E69F00", "#56B4E9", "0.45")
LEGEND = {"fontsize": "medium", "frameon": False, "handlelength": 1.2, "labelspacing": 0.3}
MARKERS = "os^Dv<>"
MAX_PANELS = 12
_COLUMNS = {1: 1, 2: 2, 3: 3, 4: 2}  # panels side by side; of more, 3


class _Axes(HasMethods):
    """The constraint of ``ax``."""

    def __init__(self) -> None:
        super().__init__("plot")

    def is_satisfied_by(self, val: Any) -> bool:
        return all(map(super().is_satisfied_by, np.asarray(val, dtype=object).ravel()))

    def __str__(self) -> str:
        return "matplotlib axes or an array of them (leave ax out for a new figure)"


#: Constraints of the options of drawing, which are read before anything is computed.
DRAWN = {
    "ax": [_Axes(), None],
    "line_kw": [dict, None],
    "ref_line": ["boolean"],
    "plot": ["boolean"],
}


class Display:
    """Base of all displays: a line that says what they hold, and one way to draw and save it.

    A subclass says what it holds, how many panels it has, and draws them.
    """

    name: str | None = None
    n_panels_left_out = 0
    ax_: Any
    figure_: Any
    ref_lines_: Any = ()

    def __repr__(self):
        return f"{type(self).__name__}({', '.join(filter(None, self._facts()))})"

    @validate_params(DRAWN, prefer_skip_nested_validation=False)
    def plot(self, ax=None, *, name=None, ref_line=True, **kwargs):
        """Draw the numbers that the display holds.

        Parameters
        ----------
        ax : matplotlib axes or array of axes, default=None
            One for each panel. None makes a figure. The layout of a given figure is not changed:
            make it with ``layout="constrained"`` if labels overlap.
        name : str, default=None
            A name for the title. None takes that of the display, if it has one.
        ref_line : bool, default=True
            Whether to draw the lines of reference, such as the diagonal, if the display has any.
        **kwargs : dict
            Options of the main artists: of :meth:`matplotlib.axes.Axes.plot` for curves, points
            and markers, of ``bar`` for histograms of a null distribution, of ``errorbar`` for
            candidates of a search and of ``quiver`` for arrows.

        Returns
        -------
        display : object of this class
        """
        n_panels, size = self._layout()
        axes = make_axes(ax, n_panels, size)
        self._draw(axes, self.name if name is None else name, kwargs)
        if not ref_line:
            for line in self.ref_lines_:
                line.remove()
            self.ref_lines_ = []
        self.ax_ = axes[0] if n_panels == 1 else axes
        self.figure_ = axes[0].figure
        if ax is None:
            self._finish(self.figure_)
        return self

    def save(self, path) -> None:
        """Write the drawn figure to a file; if it is not drawn yet, it is drawn first.

        Parameters
        ----------
        path : path-like
            The ending is the format: ``.png``, ``.svg`` or ``.pdf``. The same figure gives the same
            bytes. A file of this name is replaced as a whole, or stays as it is if that fails.

        Raises
        ------
        ValueError
            If the ending is another.
        """
        if not hasattr(self, "figure_"):
            self.plot()
        save_figure(self.figure_.figure, path)

    def _facts(self) -> list[str]:
        """The contents of the display in few words each; empty ones are left out."""
        raise NotImplementedError

    def _layout(self) -> tuple[int, tuple[float, float]]:
        """The number of panels, and width and height of each in a new figure, in inches."""
        raise NotImplementedError

    def _draw(self, axes, name, kwargs) -> None:
        """Draw into these axes and no others."""
        raise NotImplementedError

    def _finish(self, figure) -> None:
        """Add to a figure of its own what belongs to all panels."""
        if self.n_panels_left_out:
            n_panels, _ = self._layout()
            total = n_panels + self.n_panels_left_out
            figure.suptitle(
                f"the {n_panels} of {total} classes that stand out most", fontsize="medium"
            )


def diagram_size(n_panels: int) -> tuple[float, float]:
    """Width and height of a diagram with its histogram, in inches; a row is at most 8.7 wide."""
    return {1: (4.6, 5.8), 2: (3.6, 5.0), 4: (3.6, 5.0)}.get(n_panels, (2.9, 4.4))


def require_matplotlib():
    """Return ``matplotlib.pyplot``, or name the extra that installs it."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("Displays need matplotlib: pip install matplotlib.") from error
    return plt


def make_axes(ax, n_panels: int, size: tuple[float, float]) -> np.ndarray:
    """Return axes (n_panels,): those given, or those of a new figure.

    Parameters
    ----------
    ax : matplotlib axes, array of axes or None
    n_panels : int
    size : tuple of float
        Width and height of a panel of a new figure, in inches.
    """
    plt = require_matplotlib()
    if ax is not None:
        axes = np.atleast_1d(np.asarray(ax, dtype=object)).ravel()
        if len(axes) != n_panels:
            raise ValueError(
                f"ax holds {len(axes)} axes, the display has {n_panels} panel(s). Pass "
                f"plt.subplots(1, {n_panels})[1], or leave ax out for a new figure."
            )
        return axes
    n_columns = _COLUMNS.get(n_panels, 3)
    n_rows = ceil(n_panels / n_columns)
    figsize = (size[0] * n_columns, size[1] * n_rows)
    figure, grid = plt.subplots(
        n_rows, n_columns, figsize=figsize, squeeze=False, layout="constrained"
    )
    for unused in grid.ravel()[n_panels:]:
        figure.delaxes(unused)
    return grid.ravel()[:n_panels]


def styled(given: dict, **defaults) -> dict:
    """Options of lines: those given, by their long or short names, before the defaults."""
    from matplotlib.cbook import normalize_kwargs
    from matplotlib.lines import Line2D

    return {**defaults, **normalize_kwargs(given, Line2D)}


def in_inches(ax, edge: int):
    """Across in widths of the axes, up in inches from their lower (0) or upper (1) edge."""
    from matplotlib.transforms import ScaledTranslation, blended_transform_factory

    up = ax.figure.dpi_scale_trans + ScaledTranslation(0, edge, ax.transAxes)
    return blended_transform_factory(ax.transAxes, up)


def legend_below(ax, **options):
    """Draw a legend below the labels of the axes."""
    look = {"fontsize": "medium", "frameon": False, "bbox_to_anchor": (0.5, -0.45)} | options
    return ax.legend(loc="upper center", bbox_transform=in_inches(ax, 0), **look)


def titled(name, facts: str, width: int = 32) -> str:
    """A title: the name, if there is one, above the facts."""
    return f"{as_label(name, width)}\n{facts}" if name else facts


def as_label(text, width: int = 32) -> str:
    """A name that fits: its start and end if longer, no formula, nothing that does not print."""
    return one_line(text, width).replace("$", r"\$")


def three_digits(value: float) -> str:
    """A number with three significant digits."""
    return f"{value:.3g}"


def counted(number: int, noun: str) -> str:
    """``1 curve``, ``2 curves``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def problem_titles(sample: Sample) -> list[str]:
    """The predicted quantity of each problem of a scalar notion, with names that fit."""
    return sample.notion.titles([as_label(label, 24) for label in sample.classes])


def as_percent(probability: float, digits: int = 3) -> str:
    """The first digits of 100 times a probability, without an exponent."""
    return np.format_float_positional(100 * probability, digits, fractional=False, trim="-")


def ink(ax):
    """The colour of the text of axes, which suits light and dark styles."""
    return ax.xaxis.label.get_color()


def is_dark(ax) -> bool:
    """Whether the text of axes is light, as on a dark background."""
    from matplotlib.colors import to_rgb

    return sum(to_rgb(ink(ax))) > 1.5


def draw_band(ax, x, low, high, colour, alpha, label=None):
    """Fill the area between two curves, on a dark background with more colour."""
    alpha *= 1.8 if is_dark(ax) and colour not in (GREY, ink(ax)) else 1
    return ax.fill_between(x, low, high, color=colour, alpha=alpha, linewidth=0, label=label)


def shade(ax, first, last, label=None):
    """Shade a range of the horizontal axis that matters."""
    look = {"color": ORANGE, "alpha": 0.3 if is_dark(ax) else 0.12, "linewidth": 0, "zorder": 0}
    return ax.axvspan(first, last, label=label, **look)


def draw_diagonal(ax):
    """Draw where calibrated predictions lie."""
    ends = 1e-9, 1 - 1e-9  # of a logit axis too
    [line] = ax.plot(ends, ends, color=GREY, linewidth=1, linestyle=(0, (4, 3)), zorder=1)
    return line


def hide_inner_labels(axes) -> None:
    """Leave vertical labels to the first axes of each row, if these are panels too."""
    specs = {ax: ax.get_subplotspec() for ax in axes}
    first = {spec.rowspan.start for spec in specs.values() if spec and spec.is_first_col()}
    for ax, spec in specs.items():
        if spec and spec.rowspan.start in first and not spec.is_first_col():
            ax.set_ylabel("")
            for one in (ax, *ax.child_axes):
                one.tick_params(axis="y", labelleft=False)


def name_rows(ax, labels, **look) -> None:
    """Name rows of markers from the top down."""
    ax.set(yticks=np.arange(len(labels)), ylim=(len(labels) - 0.4, -0.6))
    ax.set_yticklabels(labels, **look)


def head_rows(ax, name) -> None:
    """Draw the legend of rows of markers above them, and a title, if there is a name."""
    ax.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=2, fontsize="medium", frameon=False)
    if name:
        ax.set_title(as_label(name, 60), fontsize="medium", pad=30)


def write_pvalues(ax, pvalues, rejected, **emphasis) -> list:
    """Write p-values right of the rows, with emphasis on rejections; NaN is left out."""
    place = {"transform": ax.get_yaxis_transform(), "verticalalignment": "center"}
    texts = []
    for row, (pvalue, reject) in enumerate(zip(pvalues, rejected, strict=True)):
        if not np.isnan(pvalue):
            look = {"color": ORANGE, **emphasis} if reject else {"color": ink(ax)}
            text = f"p = {three_digits(pvalue)}{' *' if reject else ''}"
            texts.append(ax.text(1.02, row, text, fontsize="medium", **look, **place))
    return texts


def require_instance(argument: str, value, kind: type, remedy: str) -> None:
    """Raise TypeError, with the remedy, unless the value is of this kind."""
    if not isinstance(value, kind):
        raise TypeError(f"{argument} is {type(value).__name__}. {remedy}")


def require_search(argument: str, search) -> None:
    """Raise unless it is a fitted search."""
    remedy = "Pass a fitted skcal.CalibrationErrorSearchCV."
    require_instance(argument, search, CalibrationErrorSearchCV, remedy)
    check_is_fitted(search)


def fitted_functions(method, sample: Sample) -> list:
    """Functions of a fitted estimator or search that estimates this notion, one a problem."""
    is_search = isinstance(method, CalibrationErrorSearchCV)
    check_is_fitted(method)
    estimator: CalibrationErrorEstimator = method.best_estimator_ if is_search else method
    if estimator.notion_ != sample.notion:
        raise ValueError(
            f"method is fitted for the notion {estimator.notion_!r}, the display is "
            f"of {sample.notion!r}. Pass the notion of the fit, or refit."
        )
    if estimator.classes_.tolist() != sample.classes.tolist():
        raise ValueError(
            f"method is fitted for the classes {as_label(estimator.classes_.tolist(), 60)}, not "
            f"for {as_label(sample.classes.tolist(), 60)}. Pass the same labels."
        )
    for function in estimator.functions_:
        require_residual(function, is_search)
    return estimator.functions_


def require_residual(function, of_search: bool = False) -> None:
    """Raise unless the function estimates the residual itself."""
    if not hasattr(function, "residual"):
        remedy = "method=search.one_step_function_" if of_search else "skcal.TwoStepKernelRidge()"
        raise ValueError(
            f"method={type(function).__name__} has no residual(X), so there is no curve to draw. "
            f"Use {remedy} or another function that has."
        )
