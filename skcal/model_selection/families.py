"""Scores of every parameter setting of every candidate on the same folds."""

from __future__ import annotations

import time
import warnings
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field
from operator import itemgetter
from typing import NamedTuple

import numpy as np
from scipy.stats import rankdata
from sklearn import config_context
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, ParameterGrid, cross_validate
from sklearn.utils.parallel import Parallel, delayed

from skcal.functions import BilinearFunction, Zero
from skcal.model_selection.candidates import family_name


@dataclass(eq=False)
class Family:
    """A candidate function with its parameter settings and what the folds said of them."""

    name: str
    function: BilinearFunction
    settings: list[dict]
    results: dict = field(default_factory=dict)
    models: list = field(default_factory=list)

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
        return clone(self.function).set_params(**self.settings[self.best])

    def report(self) -> str:
        """One line for ``verbose``."""
        n_splits = sum(key.startswith("split") for key in self.results)
        return (
            f"{self.name}: {len(self.settings)} setting(s), {n_splits} folds, "
            f"lowest risk {-self.scores.max():.7f}"
        )


def residual_functions(families) -> list[BilinearFunction]:
    """Functions with ``residual``, other than Zero, unfitted, from the highest score down."""
    scored = [
        (score, clone(family.function).set_params(**setting))
        for family in families
        for score, setting in zip(family.scores, family.settings, strict=True)
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


def make_families(candidates) -> list[Family]:
    """Expand (function, param_grid) pairs."""
    families: list[Family] = []
    for function, grid in candidates:
        try:
            settings = list(ParameterGrid(grid)) if grid else [{}]
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"candidates[{len(families)}], {family_name(function)}: {error}"
            ) from error
        families.append(Family(family_name(function), function, settings))
    return _with_distinct_names(families)


def _with_distinct_names(families):
    """Number the candidates of one name from the second on: Binning, Binning 2."""
    seen: Counter = Counter()
    for family in families:
        seen[family.name] += 1
        if seen[family.name] > 1:
            family.name = f"{family.name} {seen[family.name]}"
    return families


def evaluate_family(family, estimator, data, splits, n_jobs):
    """Score every setting by GridSearchCV and keep the fold models of the best."""
    P, y, weight = data
    estimator = clone(estimator).set_params(function=family.function)
    grid = [{f"function__{k}": [v] for k, v in setting.items()} for setting in family.settings]
    options = {"cv": splits, "n_jobs": n_jobs, "error_score": "raise"}
    with _one_convergence_warning(family), _routed(estimator, weight) as (estimator, params):
        if len(grid) > 1:
            search = GridSearchCV(estimator, grid, refit=False, **options).fit(P, y, **params)
            family.results = search.cv_results_
            best = family.best_function
        else:
            best = clone(family.function).set_params(**family.settings[0])
        folds = cross_validate(
            estimator.set_params(function=best),
            P,
            y,
            params=params or None,
            return_estimator=True,
            **options,
        )
        family.models = folds["estimator"]
        if len(grid) == 1:
            times = np.column_stack([folds["fit_time"], folds["score_time"]])
            family.results = _results(folds["test_score"][None], times)


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


@contextmanager
def _routed(estimator, weight):
    """The estimator and the fit parameters that carry the weights to its fit and score."""
    if weight is None:
        yield estimator, {}
        return
    with config_context(enable_metadata_routing=True):
        estimator.set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        yield estimator, {"sample_weight": weight}


def evaluate_paths(families, estimator, data, splits, n_jobs):
    """The same for functions that share what every fold computes once, such as a factor."""
    estimator = clone(estimator).set_params(function=families[0].function)
    paths = [
        (f.function, [setting[f.function.path_parameter] for setting in f.settings])
        for f in families
    ]
    folds = Parallel(n_jobs=n_jobs)(
        delayed(_evaluate_fold)(estimator, paths, data, train, test) for train, test in splits
    )
    n_settings = sum(len(family.settings) for family in families)
    for position, family in enumerate(families):
        scores = np.array([fold.scores[position] for fold in folds])
        times = np.array([[fold.fit_time, fold.score_time] for fold in folds]) / n_settings
        family.results = _results(scores.T, times)
        best = family.best_function
        family.models = [
            fold.model._with_functions(best, [_refit(best, f) for f in fold.model.functions_])
            for fold in folds
        ]


class _Fold(NamedTuple):
    model: BaseEstimator
    scores: list[np.ndarray]
    fit_time: float
    score_time: float


def _evaluate_fold(estimator, paths, data, train, test):
    start = time.perf_counter()
    model = clone(estimator).fit(*data.take(train))
    fitted = time.perf_counter()
    scores = [model._score_path(template, values, *data.take(test)) for template, values in paths]
    return _Fold(model, scores, fitted - start, time.perf_counter() - fitted)


def _refit(best, fitted):
    return best.with_factor_of(fitted) if hasattr(fitted, "with_factor_of") else fitted


def _results(scores, times):
    """The part of cv_results_ that scores (n_settings, n_splits) and (n_splits, 2) times give."""
    count = len(scores)
    results = {}
    for column, name in enumerate(("fit", "score")):
        results[f"mean_{name}_time"] = np.full(count, times[:, column].mean())
        results[f"std_{name}_time"] = np.full(count, times[:, column].std())
    for split, score in enumerate(scores.T):
        results[f"split{split}_test_score"] = score
    results["mean_test_score"] = scores.mean(axis=1)
    results["std_test_score"] = scores.std(axis=1)
    return results


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
            if _is_path(family) and _is_path(group[0]) and first.shares_factor(family.function):
                group.append(family)
                break
        else:
            groups.append([family])
    return groups


def _is_path(family) -> bool:
    return hasattr(family.function, "score_path") and all(
        setting.keys() == {family.function.path_parameter} for setting in family.settings
    )


def evaluate_group(group, estimator, data, splits, n_jobs):
    """Fill in the results and fold models of all families of a group."""
    if _is_path(group[0]):
        evaluate_paths(group, estimator, data, splits, n_jobs)
    else:
        evaluate_family(group[0], estimator, data, splits, n_jobs)
    for family in group:
        if not np.isfinite(family.scores).all():
            setting = family.settings[int(np.argmin(np.isfinite(family.scores)))]
            raise ValueError(
                f"{family.name} with {setting} has a risk that is not finite. Mend the candidate."
            )


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
        for setting in family.settings:
            error = _fit_error(family.function, setting, problem, weight, few)
            if error is not None and len(rows) > len(few):
                error = _fit_error(family.function, setting, problem, weight, rows)
            if error is not None:
                shown = ", ".join(f"{k}={v!r}" for k, v in setting.items())
                raise ValueError(
                    f"candidates[{position}], {family.name}({shown}), cannot be fitted: {error}"
                ) from error


def _fit_error(function, setting, problem, weight, rows):
    arguments = [problem.features[rows], problem.residuals[rows]]
    if weight is not None and weight[rows].any():
        arguments.append(weight[rows])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            clone(function).set_params(**setting).fit(*arguments)
        except (ValueError, TypeError) as error:
            return error
    return None
