"""The base of displays: their repr, their axes, and how they read searches and functions.

Displays of classifiers and of cross-validation results come from displays of predictions.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from math import ceil
from numbers import Integral, Real
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skcal._show import import_pyplot
from skcal._sklearn_compat import (
    HasMethods,
    Interval,
    StrOptions,
    _safe_indexing,
    validate_params,
)
from skcal.choice import CalibrationErrorSearchCV
from skcal.displays import draw
from skcal.displays.axis import SCALES
from skcal.displays.draw import save_figure
from skcal.exceptions import InputError
from skcal.functions.base import BilinearFunction
from skcal.metrics.scorers import align_columns, predicted
from skcal.model_selection import CalibrationErrorEstimator
from skcal.sample import Sample

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


#: Constraints of options that several displays have, which are read before anything is computed.
DRAWN: dict[str, list] = {
    "ax": [_Axes(), None],
    "line_kw": [dict, None],
    "ref_line": ["boolean"],
    "plot": ["boolean"],
    "scale": [StrOptions(set(SCALES))],
    "n_resamples": [Interval(Integral, 19, None, closed="left"), None],
    "random_state": ["random_state"],
    "confidence_level": [Interval(Real, 0, 1, closed="neither")],
}

#: Constraints of what estimates a curve, besides the names of methods.
METHODS: list = [BilinearFunction, CalibrationErrorEstimator, CalibrationErrorSearchCV]


class Display:
    """Base of all displays: a line that says what they hold, and one way to draw and save it.

    A subclass says what it holds, how many panels it has, and draws them.
    """

    name: str | None = None
    n_panels_left_out = 0
    _size: tuple[float, float]
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
        drawn = hasattr(self, "figure_")
        if not drawn:
            self.plot()
        save_figure(self.figure_.figure, path)
        if not drawn:  # which nobody looks at
            import_pyplot().close(self.figure_.figure)

    def _facts(self) -> list[str]:
        """The contents of the display in few words each; empty ones are left out."""
        raise NotImplementedError

    def _layout(self) -> tuple[int, tuple[float, float]]:
        """The number of panels, and width and height of each in a new figure, in inches."""
        return 1, self._size

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
    return {1: (4.6, 5.6), 2: (3.6, 4.6), 4: (3.6, 4.6)}.get(n_panels, (2.9, 4.0))


def make_axes(ax, n_panels: int, size: tuple[float, float]) -> np.ndarray:
    """Return axes (n_panels,): those given, or those of a new figure.

    Parameters
    ----------
    ax : matplotlib axes, array of axes or None
    n_panels : int
    size : tuple of float
        Width and height of a panel of a new figure, in inches.
    """
    plt = import_pyplot()
    if ax is not None:
        axes = np.atleast_1d(np.asarray(ax, dtype=object)).ravel()
        if len(axes) != n_panels or not all(hasattr(panel, "plot") for panel in axes):
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
    # Older matplotlib places titles of two lines up to two pixels higher than it reckoned.
    figure.get_layout_engine().set(h_pad=0.06)
    for unused in grid.ravel()[n_panels:]:
        figure.delaxes(unused)
    return grid.ravel()[:n_panels]


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
            f"method is fitted for the classes {draw.as_label(estimator.classes_.tolist(), 60)}, "
            f"not for {draw.as_label(sample.classes.tolist(), 60)}. Pass the same labels."
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


_Display = TypeVar("_Display")
_Options = ParamSpec("_Options")
_LEFT_OUT = ("cls", "y_true", "y_proba", "labels", "from_logits")  # the classifier tells them


_FromPredictions = Callable[Concatenate[Any, Any, Any, _Options], Any]


class _ClassMethod(Protocol[_Options]):
    """What a type checker knows: three samples' arguments and options in, the display out."""

    def __get__(
        self, instance: Any, owner: type[_Display]
    ) -> Callable[Concatenate[Any, Any, Any, _Options], _Display]: ...


def of_estimator(from_predictions: _FromPredictions[_Options]) -> _ClassMethod[_Options]:
    """A class method ``from_estimator`` with the options of ``from_predictions``."""

    def from_estimator(cls, estimator, X, y, **options):
        """Compute and plot for a fitted classifier.

        The predictions of two classes are P(``classes_[1]``), or those of ``pos_label``.

        Parameters
        ----------
        estimator : classifier
            A fitted classifier with ``predict_proba`` and ``classes_``. It should not have been
            fitted to these samples.
        X : array-like of shape (n_samples, n_features)
            The features of the samples.
        y : array-like of shape (n_samples,)
            Their labels. A label that the classifier lacks gets a column of zeros.
        """
        _require_classifier("estimator", estimator)
        proba = predicted(estimator, X)
        return _from_estimates(cls, type(estimator).__name__, y, proba, estimator.classes_, options)

    return _like(from_estimator, from_predictions)


def of_cv_results(from_predictions: _FromPredictions[_Options]) -> _ClassMethod[_Options]:
    """A class method ``from_cv_results`` with the options of ``from_predictions``."""

    def from_cv_results(cls, cv_results, X, y, **options):
        """Compute and plot out-of-fold predictions of a cross-validation.

        Each sample is predicted by the classifier that was not fitted to it.

        Parameters
        ----------
        cv_results : dict
            What :func:`sklearn.model_selection.cross_validate` returned with
            ``return_estimator=True`` and ``return_indices=True``. Every sample must be in exactly
            one test fold.
        X : array-like of shape (n_samples, n_features)
            The features of the samples.
        y : array-like of shape (n_samples,)
            Their labels. A label that the classifier lacks gets a column of zeros.
        """
        estimators, folds = _fitted_in_folds(cv_results, len(y))
        classes = np.unique(np.concatenate([estimator.classes_ for estimator in estimators]))
        proba = np.zeros((len(y), len(classes)))
        for estimator, rows in zip(estimators, folds, strict=True):
            columns = np.searchsorted(classes, estimator.classes_)
            proba[np.ix_(rows, columns)] = predicted(estimator, _safe_indexing(X, rows))
        return _from_estimates(cls, type(estimators[0]).__name__, y, proba, classes, options)

    return _like(from_cv_results, from_predictions)


def _from_estimates(cls, name, y, proba, classes, options):
    proba, labels = align_columns(proba, classes, y, options.get("pos_label"))
    return cls.from_predictions(y, proba, labels=labels, **{"name": name, **options})


def _require_classifier(argument, estimator) -> None:
    if not (hasattr(estimator, "predict_proba") and hasattr(estimator, "classes_")):
        raise InputError(
            f"{argument}={estimator!r}",
            "has no predict_proba or no classes_.",
            "Pass a fitted classifier with probabilities, or use from_predictions.",
        )


def _fitted_in_folds(cv_results, n_samples) -> tuple[list, list]:
    """The fitted classifiers and the rows of their test folds."""
    if not {"estimator", "indices"} <= set(cv_results):
        reason = (
            f"holds {', '.join(map(repr, sorted(cv_results)))}, but not the fitted classifiers."
        )
        remedy = "Pass cross_validate(..., return_estimator=True, return_indices=True)."
        raise InputError("cv_results", reason, remedy)
    estimators, folds = cv_results["estimator"], cv_results["indices"]["test"]
    for estimator in estimators:
        _require_classifier("cv_results['estimator']", estimator)
    counts = np.bincount(np.concatenate(folds), minlength=n_samples)
    if len(counts) != n_samples or (counts != 1).any():
        k = int(np.argmax(counts != 1)) if len(counts) == n_samples else n_samples
        reason = f"has sample {k} in {counts[k]} test folds, of {n_samples:,} samples in y."
        remedy = "Use a splitter whose test folds hold every sample once, such as StratifiedKFold."
        raise InputError("cv_results", reason, remedy)
    return estimators, folds


def _like(function, from_predictions) -> Any:
    """A class method whose options, also in signature and docstring, are those of another."""
    model = from_predictions.__func__
    *arguments, _ = inspect.signature(function).parameters.values()
    options = inspect.signature(model).parameters.values()
    kept = [option for option in options if option.name not in _LEFT_OUT]
    signature = inspect.Signature([*arguments, *kept])

    def method(cls, *args, **kwargs):
        given = signature.bind(cls, *args, **kwargs)
        return function(*given.args, **given.kwargs)

    method.__name__ = function.__name__
    method.__qualname__ = f"{model.__qualname__.rsplit('.', 1)[0]}.{function.__name__}"
    method.__module__ = model.__module__
    method.__doc__ = function.__doc__.rstrip() + "\n" + _options_of(model.__doc__)
    method.__signature__ = signature  # type: ignore[attr-defined]
    return classmethod(validate_params({}, prefer_skip_nested_validation=False)(method))


def _options_of(text: str) -> str:
    """The sections of a docstring from its options on, without those that another gives."""
    _, _, text = text.partition("----------")
    entries = re.split(r"\n(?=        \S)", text)[1:]
    names = [re.match(r"        (\w+) :", entry) for entry in entries]
    named = zip(names, entries, strict=True)
    return "\n".join(entry for name, entry in named if not name or name[1] not in _LEFT_OUT)
