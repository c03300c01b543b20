"""What every choice among candidates shares: their settings, names, scores, order and summary.

The search chooses functions by their pair risk, the recalibrator maps by their loss. Both compare
candidates to the chosen one by results with ``difference``, ``standard_error`` and ``pvalue``.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import rankdata
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import ParameterGrid
from sklearn.pipeline import Pipeline

from skcal._show import Summary, method_name

LEVEL = 0.05  # of tests, where a user names none


def as_pair(candidate: Any, place: str, is_model: Callable, remedy: str) -> tuple[Any, Any]:
    """Return the (model, param_grid) that a candidate is or, without parameters, stands for.

    Parameters
    ----------
    candidate : model or (model, param_grid)
    place : str
        What error messages call the candidate, such as "candidates[0]".
    is_model : callable
        Whether an object is a model.
    remedy : str
        What error messages advise.
    """
    if is_model(candidate):
        return candidate, {}
    try:
        model, grid = candidate
    except (TypeError, ValueError):
        model, grid = None, None
    if not is_model(model):
        raise ValueError(f"{place} is {candidate!r}. {remedy}")
    return model, grid


def settings_of(model: Any, grid: Any, place: str) -> tuple[list[dict], list]:
    """Return the parameter settings of a grid, and a clone of the model for each.

    Errors name the ``place`` of the candidate.
    """
    try:
        settings = list(ParameterGrid(grid)) if grid else [{}]
        with telling_parameters(model, set().union(*settings)):
            return settings, [clone(model).set_params(**setting) for setting in settings]
    except (TypeError, ValueError) as error:
        raise ValueError(f"{place}: {error}") from error


@contextmanager
def telling_parameters(estimator, names):
    """Let errors of ``set_params`` tell where a parameter is whose place in the name is wrong."""
    try:
        yield
    except ValueError as error:
        places = estimator.get_params()
        wrong = next((name for name in sorted(names) if name not in places), None)
        meant = [
            place for place in places if wrong and place.split("__")[-1] == wrong.split("__")[-1]
        ]
        if not meant:
            raise
        raise ValueError(f"{error} Write {' or '.join(meant)} for {wrong}.") from error


def short_name(estimator: Any) -> str:
    """Return the name of an estimator in tables: its class, of a pipeline that of its last step."""
    last = estimator.steps[-1][1] if isinstance(estimator, Pipeline) else estimator
    return getattr(last, "_shown_name", type(last).__name__)


def distinct_names(names: Iterable[str]) -> list[str]:
    """Number equal names from the second on: Binning, Binning 2."""
    seen: Counter = Counter()
    distinct = []
    for name in names:
        seen[name] += 1
        distinct.append(f"{name} {seen[name]}" if seen[name] > 1 else name)
    return distinct


def warn_of_fits(caught: Sequence[Warning], failed: str, most: int | None = None) -> None:
    """Warn once of what fits to several folds and with several settings warned of.

    Parameters
    ----------
    caught : sequence of Warning
    failed : str
        The message about fits that did not converge, with a place for their number.
    most : int, default=None
        Other warnings that are shown at most; None shows all that differ.
    """
    unconverged = [str(warning) for warning in caught if isinstance(warning, ConvergenceWarning)]
    if unconverged:
        warnings.warn(
            f"{failed.format(len(unconverged))} did not converge, the first said: {unconverged[0]}",
            ConvergenceWarning,
            stacklevel=2,
        )
    others = {
        str(warning): warning for warning in caught if not isinstance(warning, ConvergenceWarning)
    }
    for warning in list(others.values())[:most]:
        warnings.warn(warning, stacklevel=2)


def cv_results(
    scores: np.ndarray,
    means: np.ndarray,
    times: Sequence[np.ndarray],
    params: list[dict],
) -> dict[str, Any]:
    """Return ``cv_results_`` as one GridSearchCV over a list of grids has it.

    Parameters
    ----------
    scores : ndarray of shape (n_settings, n_splits)
    means : ndarray of shape (n_settings,)
        Mean scores, in which splits may count by the weight of their samples.
    times : sequence of ndarray of shape (n_fits, 2), one a setting
        Seconds of fits and of their scores.
    params : list of dict, one a setting
    """
    results: dict[str, Any] = {}
    for column, name in enumerate(("fit", "score")):
        results[f"mean_{name}_time"] = np.array(
            [of_setting[:, column].mean() for of_setting in times]
        )
        results[f"std_{name}_time"] = np.array(
            [of_setting[:, column].std() for of_setting in times]
        )
    for split, score in enumerate(scores.T):
        results[f"split{split}_test_score"] = score
    results["mean_test_score"] = means
    with np.errstate(invalid="ignore"):  # of losses that are infinite
        results["std_test_score"] = scores.std(axis=1)
    for name in dict.fromkeys(name for setting in params for name in setting):
        column_of_name = np.ma.masked_all(len(params), dtype=object)
        for row, setting in enumerate(params):
            if name in setting:
                column_of_name[row] = setting[name]
        results[f"param_{name}"] = column_of_name
    results["params"] = params
    results["rank_test_score"] = rankdata(-means, method="min").astype(np.int32)
    return results


def simplest(comparisons: Sequence[Any], complexity: Sequence[Any] | None = None) -> int:
    """Return the number of the simplest candidate that is not significantly worse than the chosen.

    Parameters
    ----------
    comparisons : sequence of RiskComparison or LossComparison
        Of each candidate to the chosen one; a positive difference is worse.
    complexity : sequence, default=None
        What orders the candidates; None: they are ordered from the simplest on.
    """
    good = [
        k
        for k, compared in enumerate(comparisons)
        if compared.difference <= 0 or compared.pvalue > LEVEL
    ]
    return good[0] if complexity is None else min(good, key=complexity.__getitem__)


class Judged(NamedTuple):
    """A candidate as a summary shows it.

    Attributes
    ----------
    name : str
    setting : str
        Its best parameters.
    loss : float
        The mean loss, or risk, that chose them.
    comparison : RiskComparison or LossComparison
        Of the candidate to the chosen one.
    chosen : bool
    """

    name: str
    setting: str
    loss: float
    comparison: Any
    chosen: bool

    @property
    def standard_error(self) -> float | None:
        """The standard error of the difference, None if there are too few samples for one."""
        error = self.comparison.standard_error
        return None if np.isposinf(error) else float(error)

    def record(self, loss: str, reference: str) -> dict[str, Any]:
        """Return the numbers in full, by the names of the loss and of the chosen candidate."""
        return {
            "candidate": self.name,
            "parameters": self.setting,
            loss: self.loss,
            f"{loss}_above_{reference}": self.comparison.difference,
            "standard_error": self.standard_error,
            "pvalue": self.comparison.pvalue,
            "chosen": self.chosen,
        }

    def cells(self, decimals: int) -> tuple[str, ...]:
        """Return the row of a table as text."""
        loss = "infinite" if np.isinf(self.loss) else f"{self.loss:.{decimals}f}"
        return method_name(self.name), self.setting, loss, *self._gap()

    def _gap(self) -> tuple[str, str]:
        if self.chosen or self.standard_error in (0, None):
            return "-", ""
        if not np.isfinite(self.comparison.difference):
            return "infinite", ""
        gap = f"{self.comparison.difference:+.1e} ± {self.standard_error:.1e}"
        return gap, f"{self.comparison.pvalue:.2g}"


def choice_summary(
    heading: str,
    judged: Sequence[Judged],
    loss: str,
    *,
    decimals: int,
    reference: str,
    record: str,
    choice: Sequence[str],
    facts: Sequence[tuple[str, str]],
) -> Summary:
    """Return the table of the candidates with what was chosen and found.

    Parameters
    ----------
    heading : str
    judged : sequence of Judged
    loss : str
        What the column of losses is called.
    decimals : int
        Decimals of losses.
    reference : {"best", "chosen"}
        What the candidate is called that others are compared to.
    record : {"risk", "loss"}
        What the records call the loss.
    choice, facts
        As of :class:`skcal._show.Summary`.
    """
    return Summary(
        heading,
        ("candidate", "best parameters", loss, f"above {reference} ± s.e.", "p"),
        [candidate.cells(decimals) for candidate in judged],
        next(k for k, candidate in enumerate(judged) if candidate.chosen),
        choice,
        facts,
        [candidate.record(record, reference) for candidate in judged],
    )
