"""Scores of every parameter setting of every candidate on the same folds."""

from __future__ import annotations

import copy
import warnings
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain
from operator import itemgetter

import numpy as np
from joblib import effective_n_jobs
from scipy.stats import rankdata
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import ParameterGrid
from sklearn.utils.parallel import Parallel, delayed

from skcal.functions import BilinearFunction, Zero
from skcal.functions.base import telling_places
from skcal.model_selection.candidates import family_name
from skcal.model_selection.engine import Task, derived, fit_and_compare, fit_and_score


@dataclass(eq=False)
class Family:
    """A candidate function with its parameter settings and what the folds said of them."""

    name: str
    function: BilinearFunction
    settings: list[dict]
    functions: list[BilinearFunction]  # unfitted, one a setting
    results: dict = field(default_factory=dict)
    fits: list = field(default_factory=list)  # of the best setting, one a fold
    models: list = field(default_factory=list)  # the same as estimators
    excess_risks: list = field(default_factory=list)  # theirs, on the validation samples

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


def residual_functions(families) -> list[BilinearFunction]:
    """Functions with ``residual``, other than Zero, unfitted, from the highest score down."""
    scored = [
        (score, function)
        for family in families
        for score, function in zip(family.scores, family.functions, strict=True)
    ]
    # Zero's one-step estimate is 0 ± 0, which says nothing.
    scored = [
        (score, function)
        for score, function in scored
        if hasattr(function, "residual") and not isinstance(function, Zero)
    ]
    ranked = sorted(scored, key=itemgetter(0), reverse=True)
    return [function for _, function in ranked]


def best_family(families) -> Family:
    """The family with the highest score; ties go to the first."""
    return families[int(np.argmax([family.scores.max() for family in families]))]


def make_families(candidates, memory=None) -> list[Family]:
    """Expand (function, param_grid) pairs; functions that can cache get the ``memory``."""
    families: list[Family] = []
    for function, grid in candidates:
        try:
            settings = list(ParameterGrid(grid)) if grid else [{}]
            if memory is not None and "memory" in function.get_params(deep=False):
                function = clone(function).set_params(memory=memory)
            with telling_places(function, set().union(*settings)):
                functions = [clone(function).set_params(**setting) for setting in settings]
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


def evaluate(groups, data, splits, n_jobs):
    """Score every setting of every family on every fold; yield each group when it is done.

    Settings that share what is computed once, such as a factor, are one task a fold; others are
    spread over the jobs.
    """
    n_parts = effective_n_jobs(n_jobs)
    tasks = [_tasks(group, n_parts) for group in groups]
    folds = Parallel(n_jobs=n_jobs, return_as="generator")(
        delayed(fit_and_score)(task, data, train, [validation])
        for task in chain(*tasks)
        for train, validation in splits
    )
    for group, own in zip(groups, tasks, strict=True):
        with _one_convergence_warning(group[0]):
            scored = [[next(folds) for _ in splits] for _ in own]
        _record(group, scored)
        yield group


def _tasks(group, n_parts) -> list[Task]:
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


def _record(group, scored):
    """Fill in the results of a group, and the fits of folds that are known without a refit."""
    scores = np.concatenate([np.hstack([fold.scores for fold in folds]) for folds in scored])
    times = np.concatenate([np.stack([fold.times for fold in folds], axis=1) for folds in scored])
    ends = np.cumsum([len(family.settings) for family in group])[:-1]
    for family, *results in zip(group, np.split(scores, ends), np.split(times, ends), strict=True):
        family.results = _results(*results)
        if not np.isfinite(family.scores).all():
            setting = family.settings[int(np.argmin(np.isfinite(family.scores)))]
            raise ValueError(
                f"{family.name} with {setting} has a risk that is not finite. Mend the candidate."
            )
        best = family.best_function
        family.fits = [derived(best, fitted) for fold in scored[0] for fitted in fold.fits]


@contextmanager
def _one_convergence_warning(family):
    """Say once for a family what every fold and setting would say."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        yield
    first = None
    for warning in caught:
        if issubclass(warning.category, ConvergenceWarning):
            first = first or warning
        else:
            warnings.warn_explicit(
                warning.message, warning.category, warning.filename, warning.lineno
            )
    if first is not None:
        count = sum(issubclass(warning.category, ConvergenceWarning) for warning in caught)
        warnings.warn(
            f"{family.name}: {count} fit(s) did not converge, the first said: {first.message}",
            ConvergenceWarning,
            stacklevel=4,
        )


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


def compare_folds(families, data, splits, n_jobs):
    """Fill in the fits of folds and excess risks of the families that lack them."""
    lacking = [family for family in families if not family.excess_risks]
    folds = iter(
        Parallel(n_jobs=n_jobs)(
            delayed(fit_and_compare)(family.best_function, fitted, data, train, [validation])
            for family in lacking
            for fitted, (train, validation) in zip(
                family.fits or [None] * len(splits), splits, strict=True
            )
        )
    )
    for family in lacking:
        results = [next(folds) for _ in splits]
        family.fits = family.fits or [fitted for fitted, _ in results]
        family.excess_risks = [risk for _, [risk] in results]


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
    for name in dict.fromkeys(name for setting in params for name in setting):
        column = np.ma.masked_all(len(params), dtype=object)
        for row, setting in enumerate(params):
            if name in setting:
                column[row] = setting[name]
        merged[f"param_{name}"] = column
    merged["params"] = params
    rank = rankdata(-merged["mean_test_score"], method="min")
    merged["rank_test_score"] = rank.astype(np.int32)
    return merged


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
    arguments = [problem.features[rows], problem.residuals[rows]]
    if weight is not None and weight[rows].any():
        arguments.append(weight[rows])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            clone(function).fit(*arguments)
        except (ValueError, TypeError) as error:
            return error
    return None
