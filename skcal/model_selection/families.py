"""Scores of every parameter setting of every candidate on the same folds."""

from __future__ import annotations

import copy
import warnings
from collections import Counter
from dataclasses import dataclass, field
from itertools import chain, islice
from operator import itemgetter

import numpy as np
from joblib import effective_n_jobs
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import ParameterGrid

from skcal._running import one_by_one, over_jobs, recorded_warnings
from skcal._show import with_settings
from skcal.functions import BilinearFunction, Zero
from skcal.functions.base import telling_places
from skcal.model_selection.candidates import family_name
from skcal.model_selection.combination import combine, fit_parts, parts_of, stack_score
from skcal.model_selection.engine import Fit, Task, derived, excess, fit_again, fit_and_score
from skcal.notions import Problems


@dataclass(eq=False)
class Family:
    """A candidate function with its parameter settings and what the held-out samples said of them.

    Attributes
    ----------
    name : str
    function : calibration-estimation function
        The candidate as it was passed.
    settings : list of dict
    functions : list of calibration-estimation functions
        Unfitted, one a setting.
    column_scores : ndarray of shape (n_settings, n_columns)
        The score of each setting on each column of the plan.
    results : dict
        The part of ``cv_results_`` about the family.
    models : list of CalibrationErrorEstimator
        The best setting as fitted to the training samples of a column of each split.
    excess_risks : list of PairRisk
        The risks of the models above that of h = 0 on these columns.
    """

    name: str
    function: BilinearFunction
    settings: list[dict]
    functions: list[BilinearFunction]
    column_scores: np.ndarray = field(default_factory=lambda: np.empty((0, 0)), repr=False)
    results: dict = field(default_factory=dict, repr=False)
    models: list = field(default_factory=list, repr=False)
    excess_risks: list = field(default_factory=list, repr=False)
    _sources: list = field(default_factory=list, repr=False)  # fits that serve, one a training
    _held_out: list = field(default_factory=list, repr=False)  # what parts say, one a column
    _refits: dict = field(default_factory=dict, repr=False)  # by setting and training

    @property
    def scores(self) -> np.ndarray:
        """Mean score of each setting, (n_settings,)."""
        return self.results["mean_test_score"]

    @property
    def best(self) -> int:
        """Index of the best setting."""
        return int(np.argmax(self.scores))

    @property
    def best_function(self) -> BilinearFunction:
        """Unfitted function with the best parameters."""
        return self.functions[self.best]

    def report(self) -> str:
        """One line for ``verbose``."""
        n_splits = sum(key.startswith("split") for key in self.results)
        return (
            f"{self.name}: {len(self.settings)} setting(s), {n_splits} folds, "
            f"lowest risk {-self.scores.max():.9g}"
        )

    def knows(self, setting: int, training: int) -> bool:
        """Whether the fit of a setting to a training set is known."""
        return bool(self._sources) or (setting, training) in self._refits

    def fit_of(self, setting: int, training: int, columns: list[int]) -> Fit:
        """Return a fit that is known; the columns choose the weights of a stack."""
        if self.function.parts:
            held_out = [self._held_out[column] for column in columns]
            return combine(self.function, self._sources[training], held_out)
        if _is_path(self):
            return derived(self.functions[setting], self._sources[training])
        if self._sources:
            return self._sources[training]
        return self._refits[setting, training]

    def forget_fits(self) -> None:
        """Free the fits that the best setting does not need."""
        self._sources, self._held_out, self._refits = [], [], {}

    def fit_to_all(self, data: Problems) -> Fit:
        """Fit the best setting; all columns choose weights of a stack."""
        if self.function.parts:
            with recorded_warnings():
                parts = parts_of(self.function, data)
            return combine(self.function, parts, self._held_out)
        return fit_again(self.best_function, data)


def best_family(families) -> Family:
    """The family with the highest score; ties go to the first."""
    return families[int(np.argmax([family.scores.max() for family in families]))]


def ranking(families, columns, with_residual=False) -> list[tuple[Family, int]]:
    """Families with the numbers of their settings, from the highest mean score on some columns.

    ``with_residual`` leaves out functions without, and h = 0, whose correction says nothing.
    """
    scored = [
        (score, family, setting)
        for family in families
        for setting, score in enumerate(family.column_scores[:, columns].mean(axis=1))
        if not with_residual
        or (
            hasattr(family.functions[setting], "residual") and not isinstance(family.function, Zero)
        )
    ]
    scored.sort(key=itemgetter(0), reverse=True)
    return [(family, setting) for _, family, setting in scored]


def make_families(candidates, memory=None, from_logits=False) -> list[Family]:
    """Expand (function, param_grid) pairs; functions that can cache get the ``memory``.

    Recalibration maps take logits if ``from_logits`` and probabilities otherwise.
    """
    families: list[Family] = []
    for function, grid in candidates:
        try:
            settings = list(ParameterGrid(grid)) if grid else [{}]
            if memory is not None and "memory" in function.get_params(deep=False):
                function = clone(function).set_params(memory=memory)
            with telling_places(function, set().union(*settings)):
                functions = [clone(function).set_params(**setting) for setting in settings]
            function = function.reading(from_logits)
            functions = [one.reading(from_logits) for one in functions]
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"candidates[{len(families)}], {family_name(function)}: {error}"
            ) from error
        families.append(Family(family_name(function), function, settings, functions))
    return _with_distinct_names(families)


def _with_distinct_names(families):
    """Number the candidates of one name from the second on: Binning, Binning 2."""
    seen: Counter = Counter()
    for family in families:
        seen[family.name] += 1
        if seen[family.name] > 1:
            family.name = f"{family.name} {seen[family.name]}"
    return families


def evaluate(groups, data, plan, n_jobs):
    """Score every setting of every family on every column; yield each group when it is done.

    Settings that share what is computed once, such as a factor, are one task a training; others
    are spread over the jobs. Of a stack the parts are fitted, once a training.
    """
    n_parts = effective_n_jobs(n_jobs)
    tasks = [_tasks(group, n_parts) for group in groups]
    calls = [
        (fit_and_score if isinstance(task, Task) else fit_parts, task, data, *training)
        for task in chain(*tasks)
        for training in plan.trainings
    ]
    trainings = one_by_one(calls, n_jobs)
    for group, own in zip(groups, tasks, strict=True):
        n = len(plan.trainings)
        results = list(islice(trainings, len(own) * n))
        _warn_once(group[0], [warning for one in results for warning in one.warnings])
        scored = [results[k : k + n] for k in range(0, len(results), n)]
        _record(group, scored, plan)
        yield group


def _tasks(group, n_parts) -> list:
    if group[0].function.parts:
        return [group[0].function]
    if _is_path(group[0]):
        paths = [
            (f.function, [setting[f.function.path_parameter] for setting in f.settings])
            for f in group
        ]
        return [Task([_source(group)], paths, True)]
    functions = group[0].functions
    parts = np.array_split(np.arange(len(functions)), min(n_parts, len(functions)))
    return [Task([functions[k] for k in part], [], len(functions) == 1) for part in parts]


def _source(group) -> BilinearFunction:
    """A function of a group whose fit serves all others."""
    source, *others = map(_serving, group)
    for function in others:
        if not function.shares_factor(source):
            source = function
    return source


def _serving(family) -> BilinearFunction:
    """The function of a path whose fit serves its other settings."""
    name = family.function.path_parameter
    value = family.function.serving_value([setting[name] for setting in family.settings])
    return copy.copy(family.function).set_params(**{name: value})  # no copy of a kernel's objects


def _record(group, scored, plan):
    """Fill in the scores of a group, and the fits that are known without a refit."""
    if group[0].function.parts:
        [family] = group
        family._sources = [one.fits for one in scored[0]]
        family._held_out = [column for one in scored[0] for column in one.held_out]
        scores = _stack_scores(family, plan)
    else:
        scores = np.concatenate([np.hstack([one.scores for one in task]) for task in scored])
        for family in group:
            family._sources = [fit for one in scored[0] for fit in one.fits]
    times = np.concatenate([np.stack([one.times for one in task], axis=1) for task in scored])
    ends = np.cumsum([len(family.settings) for family in group])[:-1]
    for family, own, spent in zip(
        group, np.split(scores, ends), np.split(times, ends), strict=True
    ):
        if not np.isfinite(own).all():
            setting = family.settings[int(np.argmin(np.isfinite(own).all(axis=1)))]
            raise ValueError(
                f"{family.name} with {setting} has a risk that is not finite. Mend the candidate."
            )
        family.column_scores = own
        by_split = np.stack([own[:, columns].mean(axis=1) for columns in plan.splits], axis=1)
        family.results = _results(by_split, spent)


def _stack_scores(family, plan) -> np.ndarray:
    """Scores on each column by the weights that the other columns of its group choose."""
    scores, held_out = np.empty((1, len(plan.columns))), family._held_out
    for columns in plan.groups:
        for column in columns:
            others = [held_out[other] for other in columns if other != column]
            scores[0, column] = stack_score(family.function, held_out[column], others)
    return scores


def _warn_once(family, caught):
    """Warn once for a family of what fits of every fold and setting warned of."""
    failed = [str(one) for one in caught if isinstance(one, ConvergenceWarning)]
    if failed:
        warnings.warn(
            f"{family.name}: {len(failed)} fit(s) did not converge, the first said: {failed[0]}",
            ConvergenceWarning,
            stacklevel=2,
        )
    others = {str(one): one for one in caught if not isinstance(one, ConvergenceWarning)}
    for one in others.values():
        warnings.warn(one, stacklevel=2)


def _results(scores, times):
    """The part of cv_results_ that scores and times (n_settings, n_splits[, 2]) give."""
    results = {}
    for column, name in enumerate(("fit", "score")):
        results[f"mean_{name}_time"] = times[..., column].mean(axis=1)
        results[f"std_{name}_time"] = times[..., column].std(axis=1)
    for split, score in enumerate(scores.T):
        results[f"split{split}_test_score"] = score
    results["mean_test_score"] = scores.mean(axis=1)
    results["std_test_score"] = scores.std(axis=1)
    return results


def fit_lacking(requests, data, plan, n_jobs) -> None:
    """Fit the families, settings and trainings whose fits are not known yet."""
    lacking = list(
        dict.fromkeys(
            (family, setting, training)
            for family, setting, training in requests
            if not family.knows(setting, training)
        )
    )
    calls = [
        (_fit_rows, family.functions[setting], data, plan.trainings[training].rows)
        for family, setting, training in lacking
    ]
    fits = over_jobs(calls, n_jobs)
    for (family, setting, training), fitted in zip(lacking, fits, strict=True):
        family._refits[setting, training] = fitted


def _fit_rows(function, data, rows):
    return fit_again(function, data.take(rows))


def compare_folds(families, data, plan, n_jobs) -> None:
    """Fill in the excess risks of the best setting of each family on a column of each split."""
    columns = [plan.columns[number] for number in plan.compared]
    requests = [(f, f.best, column.training) for f in families for column in columns]
    fit_lacking(requests, data, plan, n_jobs)
    calls = [
        (_excess_of_rows, fitted, data, column.rows)
        for family in families
        for fitted, column in zip(known_fits(family, plan), columns, strict=True)
    ]
    risks = iter(over_jobs(calls, n_jobs))
    for family in families:
        family.excess_risks = [next(risks) for _ in columns]


def known_fits(family, plan) -> list[Fit]:
    """Fits of the best setting to the training samples of the columns that are compared."""
    groups = plan.groups
    return [
        family.fit_of(
            family.best,
            plan.columns[number].training,
            [k for group in groups if number in group for k in group if k != number],
        )
        for number in plan.compared
    ]


def _excess_of_rows(fitted, data, rows):
    return excess(fitted, data.take(rows))


def merge_results(families) -> dict:
    """``cv_results_`` over all families, as one GridSearchCV over a list of grids gives it."""
    params = [
        {"function": family.function} | {f"function__{k}": v for k, v in setting.items()}
        for family in families
        for setting in family.settings
    ]
    merged: dict = {}
    shared = [
        key
        for key in families[0].results
        if key.endswith(("_time", "_score")) and key != "rank_test_score"
    ]
    for key in shared:
        merged[key] = np.concatenate([family.results[key] for family in families])
    return with_settings(merged, params)


def group_families(families) -> list[list[Family]]:
    """Put functions that share a factor and vary one parameter alone into one group each."""
    groups: list[list[Family]] = []
    for family in families:
        for group in groups:
            first = group[0].function
            other = family.function
            shares = first.shares_factor(other) or other.shares_factor(first)
            if shares and _is_path(family) and _is_path(group[0]):
                group.append(family)
                break
        else:
            groups.append([family])
    return groups


def _is_path(family) -> bool:
    parameter = family.function.path_parameter
    return parameter is not None and all(s.keys() == {parameter} for s in family.settings)


def try_families(families, problem, weight, rows, n_rows=30):
    """Fit every setting on a few samples, so that what cannot work is said at once.

    A candidate that fails on few samples is fitted once on a whole fold before it is refused.
    """
    if not isinstance(problem.rows, slice):  # the rows are those of the problem
        rows = np.arange(len(problem.features))
    if len(rows) < 2:
        return
    few = rows[:n_rows]
    weight = None if weight is None else weight[problem.rows]
    for position, family in enumerate(families):
        for setting, function in zip(family.settings, family.functions, strict=True):
            error = _fit_error(function, problem, weight, few)
            if error is not None and len(rows) > len(few):
                error = _fit_error(function, problem, weight, rows)
            if error is not None:
                shown = ", ".join(f"{k}={v!r}" for k, v in setting.items())
                raise ValueError(
                    f"candidates[{position}], {family.name}({shown}), cannot be fitted: {error}"
                ) from error


def _fit_error(function, problem, weight, rows):
    arguments = [problem.seen_by(function)[rows], problem.residuals[rows]]
    if weight is not None and weight[rows].any():
        arguments.append(weight[rows])
    try:
        with recorded_warnings():
            clone(function).fit(*arguments)
    except (ValueError, TypeError) as error:
        return error
    return None
