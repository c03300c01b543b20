"""The calibration error of three classes in their triangle."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from numbers import Integral
from typing import Any, Self

import numpy as np
from sklearn.base import clone

from skcal._sklearn_compat import Interval, StrOptions, validate_params
from skcal.displays import draw
from skcal.displays.base import (
    DRAWN,
    METHODS,
    Display,
    fitted_functions,
    of_cv_results,
    of_estimator,
    require_residual,
)
from skcal.functions.base import BilinearFunction, read_residual
from skcal.metrics import BinRule
from skcal.sample import Sample, read_sample

_CORNERS = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, np.sqrt(0.75)]])
_DENSITY_CELLS = 30  # along a side
_FIT_CELLS = 100  # along a side
_MAX_ROWS = 5000  # that a function is fitted to as they are; more are grouped in cells


@dataclass(frozen=True, eq=False)
class SimplexArrows:
    """Estimated residuals at mean predictions.

    Attributes
    ----------
    prediction : ndarray of shape (n_arrows, 3)
        Mean prediction of a cell.
    residual : ndarray of shape (n_arrows, 3)
        Estimate of E[δ | x] there: the arrow goes from the prediction to where the frequencies are.
    distance : ndarray of shape (n_arrows,)
        Total variation, half the sum of the absolute values.
    count : ndarray of shape (n_arrows,)
        Samples of the cell.
    noise : ndarray of shape (n_arrows,)
        Root mean squared length of the mean residual of the cell, were the predictions calibrated.
    distinct : ndarray of shape (n_arrows,), bool
        Whether the length exceeds twice the noise, as it does for at most about 5 % of the cells of
        calibrated predictions. True for the residuals of functions.
    """

    prediction: np.ndarray
    residual: np.ndarray
    distance: np.ndarray
    count: np.ndarray
    noise: np.ndarray
    distinct: np.ndarray


@dataclass(eq=False, repr=False)
class SimplexDisplay(Display):
    """Triangle of three classes, with arrows from predictions to observed frequencies.

    Make it with :meth:`from_predictions` or :meth:`from_estimator`, which compute all numbers.

    Parameters
    ----------
    arrows : SimplexArrows
        Where each arrow starts and ends in the triangle of three probabilities.
    density : ndarray of shape (1800,)
        Number of predictions in each small triangle.
    corners : list of str
        Names of the three classes or superclasses.
    name : str, default=None
        The name of the classifier, for the title.

    Attributes
    ----------
    ax_, figure_ : matplotlib axes and figure
        Set by :meth:`plot`, as are the following.
    arrows_, pale_arrows_ : quiver or None
        Arrows coloured by their total variation, and those within noise.
    density_ : polygons of the predictions, dark where there are many
    corner_texts_ : list of texts
    colorbar_ : colour bar or None

    See Also
    --------
    skcal.displays.ReliabilityDisplay : any number of classes, one by one.

    Notes
    -----
    Cells with fewer than ``min_samples`` have no arrow; arrows of bins that are no longer than
    calibrated predictions would show are pale.

    References
    ----------
    .. [1] Vaicenavicius et al., Evaluating model calibration in classification, AISTATS 2019.

    Examples
    --------
    >>> from skcal.datasets import make_tempered
    >>> from skcal.displays import SimplexDisplay
    >>> data = make_tempered(1000, n_classes=5, temperature=2.0, n_truth_draws=0, random_state=0)
    >>> superclasses = {"animal": [0, 1], "plant": [2], "mineral": [3, 4]}
    >>> display = SimplexDisplay.from_predictions(
    ...     data.labels, data.proba, superclasses=superclasses, labels=range(5), plot=False
    ... )
    >>> display.corners
    ['animal', 'plant', 'mineral']
    """

    arrows: SimplexArrows
    density: np.ndarray
    corners: list[str]
    _: KW_ONLY
    name: str | None = None
    _size = (7.0, 5.6)

    def _facts(self):
        corners = " / ".join(draw.as_labels(self.corners, 16))
        n_arrows = draw.counted(len(self.arrows.count), "arrow")
        return [f"n = {self.density.sum():,}", corners, n_arrows]

    @classmethod
    @validate_params(
        {
            "method": [StrOptions({"bins"}), *METHODS],
            "n_bins": [Interval(Integral, 1, 50, closed="both"), StrOptions({"auto"})],
            "min_samples": [Interval(Integral, 1, None, closed="left")],
            "superclasses": [dict, None],
            "corners": ["array-like", None],
            **DRAWN,
        },
        prefer_skip_nested_validation=False,
    )
    def from_predictions(
        cls,
        y_true,
        y_proba=None,
        *,
        superclasses=None,
        notion="canonical",
        method="bins",
        n_bins="auto",
        min_samples=10,
        sample_weight=None,
        labels=None,
        from_logits=False,
        corners=None,
        name=None,
        ax=None,
        plot=True,
    ) -> Self:
        """Compute and plot the triangle.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,) or (n_samples, n_classes), or Sample
            Labels, or shares or votes of the classes; see :doc:`/guide/soft_labels`.
        y_proba : array-like of shape (n_samples, n_classes), default=None
            Probabilities in [0, 1]; rows sum to 1.
            Left out beside a :class:`skcal.Sample`.
        superclasses : dict, default=None
            The corners for more than three classes: three names, each with the list of its classes,
            whose probabilities are summed. Every class belongs to one.
        notion : "canonical", "top-2" or callable, default="canonical"
            "canonical" for three classes; "top-2" for the most probable class, the second and the
            rest; or a lens with three groups, see :mod:`skcal.notions`.
        method : "bins", calibration-estimation function, estimator or search, default="bins"
            "bins": the mean residual of each cell (⌈B p_1⌉, ⌈B p_2⌉, ⌈B p_3⌉), as in [1].
            A function with ``residual``, fitted or not: a clone is fitted to these samples, of more
            than 5,000 to means of small cells. A fitted :class:`skcal.CalibrationErrorEstimator`
            or :class:`skcal.CalibrationErrorSearchCV` of this notion is used as it stands. The
            residual of functions is drawn at the mean prediction of the same cells. An estimator of
            superclasses comes with its lens as ``notion``.
        n_bins : int from 1 to 50 or "auto", default="auto"
            B; "auto" is √(n / 50), but at least 2 and at most 10.
        min_samples : int, default=10
            Cells with fewer samples have no arrow.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples.
        labels : array-like of shape (n_classes,), default=None
            The class of each column.
        from_logits : bool, default=False
            Whether ``y_proba`` holds logits; probabilities are computed from them without loss of
            precision.
        corners : list of three str, default=None
            Names of the corners; None takes those of the classes or superclasses.
        name : str, default=None
            The name of the classifier, for the title.
        ax : matplotlib axes, default=None
            None makes a figure.
        plot : bool, default=True
            False computes only the numbers, without matplotlib.

        Returns
        -------
        display : SimplexDisplay
        """
        if superclasses is not None:
            asked = {"notion": notion, "labels": labels, "from_logits": from_logits}
            labels, notion = _lens_of_superclasses(superclasses, y_true, y_proba, **asked)
        given = {"notion": notion, "sample_weight": sample_weight, "labels": labels}
        sample = read_sample(y_true, y_proba, **given, from_logits=from_logits)
        problem = sample.problems()[0]
        _require_three(sample, problem.features.shape[1])
        arrows = make_arrows(sample, problem, method, n_bins, min_samples)
        cells = triangles_of(problem.features, _DENSITY_CELLS)
        density = np.bincount(cells, minlength=2 * _DENSITY_CELLS**2)
        if corners is None:
            corners = superclasses or sample.notion.titles([str(name) for name in sample.classes])
        corners = [str(corner) for corner in corners]
        if len(corners) != 3:
            raise ValueError(f"corners has {len(corners)} names; a triangle has three corners.")
        display = cls(arrows, density, corners, name=name)
        return display.plot(ax=ax) if plot else display

    from_estimator = of_estimator(from_predictions)
    from_cv_results = of_cv_results(from_predictions)

    def _draw(self, axes, name, kwargs):
        [ax] = axes
        ax.set(aspect="equal", xlim=(-0.08, 1.08), ylim=(-0.1, 0.98))
        ax.set_axis_off()
        outline = _CORNERS[[0, 1, 2, 0]]
        ax.plot(outline[:, 0], outline[:, 1], color=draw.GREY, linewidth=1)
        self.density_ = _draw_density(ax, self.density)
        distinct, pale = self.arrows.distinct, ~self.arrows.distinct
        self.pale_arrows_ = _draw_arrows(ax, self.arrows, pale, color=draw.ink(ax), alpha=0.35)
        look = {"cmap": "viridis" if draw.is_dark(ax) else "viridis_r", **kwargs}
        self.arrows_ = _draw_arrows(ax, self.arrows, distinct, **look)
        self.colorbar_: Any = None
        if self.arrows_ is not None:
            self.arrows_.set_clim(0, self.arrows.distance.max())
            bar = ax.inset_axes([0.98, 0.3, 0.025, 0.5])
            label = "total variation of the arrow"
            self.colorbar_ = ax.figure.colorbar(self.arrows_, cax=bar, label=label)
        self.corner_texts_ = _draw_corners(ax, self.corners)
        draw.set_title(ax, self._title(name))

    def _title(self, name):
        n_pale = np.count_nonzero(~self.arrows.distinct)
        n_arrows = len(self.arrows.count)
        lines = [draw.as_label(name, 60)] if name else []
        lines.append(f"n = {self.density.sum():,}, arrows: prediction to frequency")
        if not n_arrows:
            lines.append("no arrow: no cell holds min_samples")
        if n_pale:
            lines.append(f"pale: {n_pale} of {n_arrows}, within noise")
        return "\n".join(lines)


def _lens_of_superclasses(superclasses, y_true, y_proba, notion, **options):
    """The classes of the columns, and the lens that sums the superclasses."""
    if notion != "canonical":
        raise ValueError(
            "superclasses and notion both say how to sum classes. Leave one of them out."
        )
    if len(superclasses) != 3:
        raise ValueError(
            f"superclasses has {len(superclasses)} names; a triangle has three corners."
        )
    classes = read_sample(y_true, y_proba, notion, **options).classes.tolist()
    members = [(label, k) for k, labels in enumerate(superclasses.values()) for label in labels]
    group_of = dict(members)
    unknown = [label for label in group_of if label not in classes]
    faults = [f"holds {label!r}, which is not a class" for label in unknown]
    faults += [f"lacks the class {label!r}" for label in classes if label not in group_of]
    if len(group_of) < len(members):
        faults.append("holds a class twice")
    if faults:
        all_classes = draw.as_label(classes, 60)
        raise ValueError(
            f"superclasses {faults[0]}. Put each of the classes {all_classes} into one."
        )
    codes = np.array([group_of[label] for label in classes])
    return classes, lambda proba: np.broadcast_to(codes, proba.shape)


def _require_three(sample: Sample, width: int):
    if width == 3:
        return
    if width < 3:
        shown = "a single probability" if width == 1 else "two classes or superclasses"
        raise ValueError(
            f"notion={sample.notion!r} is about {shown}, but a triangle has three corners. "
            "Use ReliabilityDisplay."
        )
    kind = "classes" if width == len(sample.classes) else "superclasses"
    raise ValueError(
        f"y_proba has {width} {kind}, but a triangle has three corners. Pass superclasses="
        "{'name': [classes], …} with three names, or notion='top-2' (first, second, rest)."
    )


def make_arrows(sample, problem, method, n_bins, min_samples) -> SimplexArrows:
    """Estimate the residual at the mean prediction of each cell that holds enough samples."""
    if n_bins == "auto":
        n_bins = int(np.clip(np.sqrt(len(problem.weight) / 50), 2, 10))
    cells = BinRule(n_bins, "uniform").moments(problem)
    count = np.rint(cells.count).astype(np.int64)
    enough = count >= min_samples
    prediction, residual = cells.predictions[enough], cells.gaps[enough]
    noise = _length_of_noise(problem, cells)[enough]
    distinct = np.linalg.norm(residual, axis=1) > 2 * noise
    if method != "bins" and enough.any():
        residual = np.asarray(read_residual(_fitted_function(method, sample, problem), prediction))
        distinct = np.ones(len(residual), dtype=bool)
    distance = 0.5 * np.abs(residual).sum(axis=1)
    return SimplexArrows(prediction, residual, distance, count[enough], noise, distinct)


def _length_of_noise(problem, cells) -> np.ndarray:
    """√E‖mean residual‖² of each cell under calibration: Σ w² (1 - ‖p‖²) / (Σ w)²."""
    spread = 1 - np.einsum("ij,ij->i", problem.features, problem.features)
    variance = np.bincount(cells.bins, problem.weight**2 * np.maximum(spread, 0))
    return np.sqrt(variance) / cells.weight


def _fitted_function(method, sample, problem):
    if not isinstance(method, BilinearFunction):
        return fitted_functions(method, sample)[0]
    require_residual(method)
    X, outcomes, weight = problem.features, problem.outcomes, problem.weight
    if len(X) > _MAX_ROWS:
        X, outcomes, weight = _grouped_in_cells(X, outcomes, weight)
    return clone(method).fit(X, outcomes - X, sample_weight=weight)


def _grouped_in_cells(X, outcomes, weight):
    """Mean predictions of small cells, with the weight of each outcome there."""
    cells = np.unique(triangles_of(X, _FIT_CELLS), return_inverse=True)[1]
    mass = np.bincount(cells, weight)
    sums, hits = (
        np.column_stack([np.bincount(cells, weight * column) for column in rows.T])
        for rows in (X, outcomes)
    )
    mean = sums / mass[:, None]
    mean /= mean.sum(axis=1, keepdims=True)
    cell, outcome = np.nonzero(hits)
    return mean[cell], np.eye(3)[outcome], hits[cell, outcome]


def triangles_of(X, n) -> np.ndarray:
    """The small triangle of each row of X, n along a side: (first, second, up or down)."""
    scaled = n * X[:, :2].astype(np.float64)
    i = np.minimum(scaled[:, 0].astype(np.intp), n - 1)
    j = np.minimum(scaled[:, 1].astype(np.intp), n - 1 - i)
    down = (scaled[:, 0] - i + scaled[:, 1] - j > 1) & (i + j < n - 1)
    return 2 * (i * n + j) + down


def _draw_density(ax, density):
    from matplotlib.collections import PolyCollection

    cells = np.flatnonzero(density)
    i, j, down = cells // 2 // _DENSITY_CELLS, cells // 2 % _DENSITY_CELLS, cells % 2
    # (i + 1, j), (i, j + 1) and (i, j) or, downwards, (i + 1, j + 1), in units of 1 / n.
    first = np.stack([i + 1, i, i + down], axis=1) / _DENSITY_CELLS
    second = np.stack([j, j + 1, j + down], axis=1) / _DENSITY_CELLS
    corners = np.stack([first, second, 1 - first - second], axis=2) @ _CORNERS
    shade = 0.12 + 0.33 * np.log(density[cells]) / max(np.log(density.max()), 1)
    colours = np.column_stack([np.full((len(shade), 3), 0.5), 2 * shade])  # grey, more or less
    return ax.add_collection(PolyCollection(corners, facecolors=colours, edgecolors="none"))


def _draw_arrows(ax, arrows, chosen, **options):
    if not chosen.any():
        return None
    start, step = arrows.prediction[chosen] @ _CORNERS, arrows.residual[chosen] @ _CORNERS
    values = [arrows.distance[chosen]] if "cmap" in options else []
    look = {"width": 0.005 if values else 0.0025, "zorder": 3, **options}
    look |= {"angles": "xy", "scale_units": "xy", "scale": 1}
    return ax.quiver(*start.T, *step.T, *values, **look)


def _draw_corners(ax, corners):
    places = [
        (0, -0.03, "left", "top"),
        (1, -0.03, "right", "top"),
        (0.5, 0.89, "center", "bottom"),
    ]
    return [
        ax.text(x, y, draw.as_label(corner, 30), horizontalalignment=side, verticalalignment=edge)
        for corner, (x, y, side, edge) in zip(corners, places, strict=True)
    ]
