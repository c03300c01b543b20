"""Maps on held-out samples: their losses, and the choice among them."""

from __future__ import annotations

import time
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import norm
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import ParameterGrid
from sklearn.pipeline import Pipeline

from skcal._running import one_by_one, recorded_warnings
from skcal._scores import LOSSES, log_losses, of_outcomes
from skcal._validation import row_blocks
from skcal.recalibration.base import Identity, Smoothed
from skcal.recalibration.losses import LossComparison
from skcal.recalibration.mixture import (
    Mixture,
    fit_map,
    mapped_proba,
    mixture_weights,
)

_SIGNIFICANT = norm.isf(0.05)  # standard deviations
_NOT_WORSE = 0.1  # standard errors by which a simpler map may be worse


@dataclass(eq=False)
class MapFamily:
    """A candidate: a map and its parameter settings."""

    name: str
    map: Any
    settings: list[dict]

    def maps(self) -> list:
        """Return unfitted maps, one a setting."""
        return [clone(self.map).set_params(**setting) for setting in self.settings]


def map_name(estimator) -> str:
    """Name of a map for tables: its class; of a pipeline that of its last step."""
    if isinstance(estimator, Smoothed):
        return f"Smoothed {map_name(estimator.estimator)}"
    last = estimator.steps[-1][1] if isinstance(estimator, Pipeline) else estimator
    return getattr(last, "_shown_name", type(last).__name__)


def make_map_families(candidates, from_logits=False) -> list[MapFamily]:
    """Expand maps or (map, param_grid) pairs; the identity comes first."""
    families = [MapFamily("Identity", Identity(from_logits), [{}])]
    seen: Counter = Counter()
    for position, candidate in enumerate(candidates):
        estimator, grid = _as_pair(candidate, position)
        if isinstance(estimator, Identity):
            continue
        estimator = _reading(estimator, from_logits, position)
        try:
            settings = list(ParameterGrid(grid)) if grid else [{}]
            for setting in settings:
                clone(estimator).set_params(**setting)
        except (TypeError, ValueError) as error:
            raise ValueError(f"candidates[{position}], {map_name(estimator)}: {error}") from error
        name = map_name(estimator)
        seen[name] += 1
        numbered = f"{name} {seen[name]}" if seen[name] > 1 else name
        families.append(MapFamily(numbered, estimator, settings))
    return families


def _as_pair(candidate, position):
    pair = candidate if isinstance(candidate, tuple | list) else (candidate, {})
    estimator, grid = pair if len(pair) == 2 else (None, None)
    if not (hasattr(estimator, "fit") and hasattr(estimator, "predict_proba")):
        raise ValueError(
            f"candidates[{position}] is {candidate!r}. Pass a map such as "
            "skcal.TemperatureScaling(), or (map, param_grid); a map has fit and predict_proba."
        )
    return estimator, grid


def _reading(estimator, from_logits, position):
    """A map that reads predictions of the kind of all."""
    if from_logits != getattr(estimator, "from_logits", False):
        if not hasattr(estimator, "from_logits"):
            raise ValueError(
                f"candidates[{position}], {map_name(estimator)}, has no from_logits. Pass maps "
                "that have it, or probabilities and from_logits=False."
            )
        return clone(estimator).set_params(from_logits=from_logits)
    return estimator


class HeldOut(NamedTuple):
    """What a map says of samples that it was not fitted to.

    ``surprise`` is the sum of what was gained over the identity, above its mean if the identity is
    calibrated, and ``variance`` the variance that the sum then has.
    """

    fitted: Any
    losses: np.ndarray
    log_losses: np.ndarray
    surprise: float
    variance: float
    times: tuple[float, float]
    warnings: Sequence[Any] = ()


def _fit_and_hold_out(estimator, identity, data, train, test, scoring) -> HeldOut:
    start = time.perf_counter()
    training = data.take(train)
    with recorded_warnings() as caught:
        fitted = fit_map(estimator, training)
        seconds = time.perf_counter() - start
        judged = hold_out(fitted, identity, data.take(test), training.n_positive, scoring, seconds)
    return judged._replace(warnings=[one.message for one in caught])


def hold_out(fitted, identity, test, n_train, scoring, seconds=0.0) -> HeldOut:
    """Judge a fitted map, beside the identity, on samples that it has not seen."""
    start = time.perf_counter()
    n_test, n_classes = len(test.codes), test.n_classes
    losses, logs, surprise, variance = np.empty(n_test), np.empty(n_test), 0.0, 0.0
    for rows in row_blocks(n_test, 8 * n_classes, most=2**22):
        p = identity.predict_proba(test.X[rows])
        q = mapped_proba(fitted, test.X[rows], n_train, n_classes)
        codes, weight = test.codes[rows], test.weight[rows]
        after = LOSSES[scoring](q)
        losses[rows] = of_outcomes(after, codes)
        logs[rows] = (
            losses[rows] if scoring == "neg_log_loss" else of_outcomes(log_losses(q), codes)
        )
        with np.errstate(invalid="ignore"):
            gain = np.where(p > 0, LOSSES[scoring](p) - after, 0)
        mean = np.einsum("ij,ij->i", p, gain)
        surprise += float(weight @ (of_outcomes(gain, codes) - mean))
        variance += float(weight**2 @ (np.einsum("ij,ij,ij->i", p, gain, gain) - mean**2))
    times = seconds, time.perf_counter() - start
    return HeldOut(fitted, losses, logs, surprise, max(variance, 0.0), times)


@dataclass(frozen=True, eq=False)
class Trial:
    """All settings of all families on all splits.

    Attributes
    ----------
    families : list of MapFamily
    owners : ndarray of shape (n_settings,)
        The family of each setting.
    maps : list of maps
        Unfitted, one a setting.
    tests : list of ndarray
        Test rows of the splits, which do not overlap.
    held_out : list of list of HeldOut
        By setting and split.
    weight : ndarray of shape (n_samples,)
    """

    families: list[MapFamily]
    owners: np.ndarray
    maps: list
    tests: list[np.ndarray]
    held_out: list[list[HeldOut]]
    weight: np.ndarray

    def losses(self, setting, splits) -> np.ndarray:
        """Losses of the test samples of some splits."""
        return np.concatenate([self.held_out[setting][k].losses for k in splits])

    def weights(self, splits) -> np.ndarray:
        """Weights of the test samples of some splits."""
        return np.concatenate([self.weight[self.tests[k]] for k in splits])

    def setting(self, number) -> dict:
        """A map and its parameters, as ``cv_results_["params"]`` names them."""
        family = self.families[self.owners[number]]
        first = int(np.flatnonzero(self.owners == self.owners[number])[0])
        own = {f"map__{name}": value for name, value in family.settings[number - first].items()}
        return {"map": family.map} | own

    def mixture(self, splits) -> np.ndarray:
        """Weights of the best mixture on some splits."""
        columns = [np.concatenate([row[k].log_losses for k in splits]) for row in self.held_out]
        return mixture_weights(np.stack(columns, axis=1), self.weights(splits))

    def mean_losses(self, splits) -> np.ndarray:
        """Mean loss of each setting, (n_settings,)."""
        weight = self.weights(splits)
        return np.array([_mean(self.losses(k, splits), weight) for k in range(len(self.maps))])

    def best_of_families(self, means) -> list[int]:
        """The best setting of each family."""
        return [
            int(rows[np.argmin(means[rows])])
            for rows in (np.flatnonzero(self.owners == k) for k in range(len(self.families)))
        ]

    def choose(self, splits, do_no_harm=True) -> int:
        """The setting that the test samples of some splits choose.

        The identity stays unless the map of the lowest loss gains more than chance would if the
        identity were calibrated, at the 5 % level: given p and the map, mean and variance of the
        gain are then known. Otherwise the mixture is taken: of maps that can hardly be told apart
        the mean is better than the one that was lucky. Without a mixture the first map is taken
        whose loss is not above the lowest by more than a tenth of the standard error of the
        difference.
        """
        means, weight = self.mean_losses(splits), self.weights(splits)
        if len(self.maps) == 1:
            return 0
        best = 1 + int(np.argmin(means[1:]))
        if do_no_harm and not self._is_significant(best, means, splits):
            return 0
        if isinstance(self.maps[-1], Mixture):
            return len(self.maps) - 1
        lowest = self.losses(best, splits)
        for setting in self.best_of_families(means)[1:]:
            gap = LossComparison.of(self.losses(setting, splits), lowest, weight)
            if setting == best or gap.difference <= _NOT_WORSE * gap.standard_error:
                return setting
        return best

    def _is_significant(self, setting, means, splits) -> bool:
        if not means[setting] < means[0]:
            return False
        if np.isinf(means[0]):
            return True
        surprise = sum(self.held_out[setting][k].surprise for k in splits)
        variance = sum(self.held_out[setting][k].variance for k in splits)
        return bool(surprise > _SIGNIFICANT * np.sqrt(variance))


def _mean(losses, weight) -> float:
    counted = weight > 0
    return float(np.average(losses[counted], weights=weight[counted]))


def try_maps(families, data, splits, scoring, mix=False, n_jobs=None, told=None) -> Trial:
    """Fit every setting of every family to the training rows of every split, and judge it.

    ``mix`` adds a mixture of all; ``told(results, names)`` yields the results of the fits and tells
    of the progress.
    """
    owners = np.repeat(np.arange(len(families)), [len(family.settings) for family in families])
    maps = [one for family in families for one in family.maps()]
    identity = fit_map(maps[0], data)
    calls = [
        (_fit_and_hold_out, one, identity, data, train, test, scoring)
        for one in maps
        for train, test in splits
    ]
    results = one_by_one(calls, n_jobs)
    if told is not None:
        results = told(results, [families[k].name for k in np.repeat(owners, len(splits))])
    flat = list(results)
    caught = [one for result in flat for one in result.warnings]
    failed = [one for one in caught if isinstance(one, ConvergenceWarning)]
    if failed:
        warnings.warn(
            f"{len(failed)} fit(s) of maps did not converge, the first said: {failed[0]}",
            ConvergenceWarning,
            stacklevel=2,
        )
    for one in [one for one in caught if one not in failed][:1]:  # of zeros that float32 made
        warnings.warn(one, stacklevel=2)
    held_out = [flat[k : k + len(splits)] for k in range(0, len(flat), len(splits))]
    tests = [test for _, test in splits]
    trial = Trial(families, owners, maps, tests, held_out, data.weight)
    if not mix:
        return trial
    with recorded_warnings():  # fitted maps have said what they say of these predictions
        return _with_mixture(trial, identity, data, splits, scoring)


def _with_mixture(trial, identity, data, splits, scoring) -> Trial:
    """Add a mixture of all maps, each fold judging one whose weights come from the other folds."""
    numbers = range(len(splits))
    held_out = []
    for number, (train, test) in enumerate(splits):
        weights = trial.mixture([k for k in numbers if k != number])
        used = np.flatnonzero(weights)
        mixture = Mixture([trial.maps[k] for k in used], weights[used])
        mixture.estimators_ = [trial.held_out[k][number].fitted for k in used]
        mixture.classes_ = np.arange(data.n_classes)
        n_train = data.take(train).n_positive
        held_out.append(hold_out(mixture, identity, data.take(test), n_train, scoring))
    weights = trial.mixture(numbers)
    used = np.flatnonzero(weights)
    mixture = Mixture([trial.maps[k] for k in used], weights[used])
    return Trial(
        [*trial.families, MapFamily("Mixture", mixture, [{}])],
        np.append(trial.owners, len(trial.families)),
        [*trial.maps, mixture],
        trial.tests,
        [*trial.held_out, held_out],
        trial.weight,
    )
