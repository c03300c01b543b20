"""Maps on held-out samples: splits, losses, the choice, and maps that have not seen a fold."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from sklearn.model_selection import check_cv
from sklearn.utils import check_random_state

from skcal._groups import INDEPENDENT, Groups, read_splits
from skcal._labels import rows_of_shares
from skcal._running import one_by_one, recorded_warnings
from skcal._scores import LOSSES, log_losses, of_outcomes
from skcal._selection import (
    LEVEL,
    warn_of_fits,
)
from skcal._validation import row_blocks
from skcal.recalibration.candidates import MapCandidate
from skcal.recalibration.features import log_probabilities
from skcal.recalibration.losses import LossComparison
from skcal.recalibration.mixture import (
    Mixture,
    fit_map,
    mapped_proba,
    mixture_weights,
)
from skcal.recalibration.reading import LabelledPredictions
from skcal.recalibration.temperature import best_temperature

_NOT_WORSE = 0.1  # standard errors by which a simpler map may be worse

#: Name of a loss → scikit-learn's name of its score.
SCORES = {"log_loss": "neg_log_loss", "brier_score": "neg_brier_score"}


def refuse_overlap(splits, n_samples: int) -> None:
    """Raise where a sample is tested twice."""
    count = np.bincount(np.concatenate([test for _, test in splits]), minlength=n_samples)
    if count.max() > 1:
        raise ValueError(
            f"cv tests sample {np.argmax(count > 1)} {count[count > 1][0]} times. Pass splits "
            "whose test sets do not overlap."
        )


def splits_that_choose(
    data: LabelledPredictions, cv, most: int, random_state
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Training and test rows of labelled predictions, of ``most`` that are drawn if there are more.

    Samples of weight 0 do not choose; an int ``cv`` means shuffled folds, which hold whole groups.
    """
    rng = check_random_state(random_state)
    seed = rng.randint(2**31 - 1)
    chosen = np.flatnonzero(data.weight > 0)
    if len(chosen) > most:
        chosen = np.sort(rng.choice(chosen, most, replace=False))
    if not isinstance(cv, Integral):
        return _given_splits(cv, data, chosen)
    if len(chosen) < 2:
        raise ValueError(
            f"n_samples={len(chosen)}: a map that is judged on other samples needs 2. Pass more "
            "samples."
        )
    folds, groups = data.groups.blocks(min(int(cv), len(chosen)), seed), data.groups.take(chosen)
    splits = folds.split(chosen, groups=groups.codes)
    return [(chosen[train], chosen[test]) for train, test in splits]


def _given_splits(cv, data, chosen):
    """The splits of a splitter or an iterable, without what was not drawn."""
    n_samples = len(data.X)
    drawn = np.zeros(n_samples, dtype=bool)
    drawn[chosen] = True
    codes = data.happened.argmax(axis=1) if data.of_shares else data.happened
    splits = read_splits(check_cv(cv, codes, classifier=True), data.X, codes, data.groups)
    refuse_overlap(splits, n_samples)
    splits = [(train[drawn[train]], test[drawn[test]]) for train, test in splits]
    empty = [k for k, pair in enumerate(splits) if min(map(len, pair)) == 0]
    if empty:
        raise ValueError(
            f"cv leaves no sample in a part of split {empty[0]} of {n_samples} samples. Pass fewer "
            "splits or more samples."
        )
    return splits


class JudgedMap(NamedTuple):
    """What a map says of samples that it was not fitted to.

    ``log_losses`` are those of labels, of shares one for each class of a sample that has a share.
    ``surprise`` is the sum of what was gained over the identity, above its mean if the identity is
    calibrated, and ``variance`` the variance that the sum then has, of groups no less than that of
    their sums, of shares, whose law is not known, that of these sums.
    """

    fitted: Any
    losses: np.ndarray
    log_losses: np.ndarray
    surprise: float
    variance: float
    times: tuple[float, float]
    warnings: Sequence[Any] = ()


def _fit_and_judge(estimator, identity, data, train, test, scoring) -> JudgedMap:
    start = time.perf_counter()
    training = data.take(train)
    with recorded_warnings() as caught:
        fitted = fit_map(estimator, training)
        seconds = time.perf_counter() - start
        judged = judge(fitted, identity, data.take(test), training.n_positive, scoring, seconds)
    return judged._replace(warnings=[entry.message for entry in caught])


def judge(fitted, identity, test, n_train, scoring, seconds=0.0) -> JudgedMap:
    """Judge a fitted map, beside the identity, on samples that it has not seen."""
    start = time.perf_counter()
    n_test, n_classes = len(test.X), test.n_classes
    losses, surprises, variances = np.empty((3, n_test))
    logs = []
    for rows in row_blocks(n_test, 8 * n_classes, most=2**22):
        p = identity.predict_proba(test.X[rows])
        q = mapped_proba(fitted, test.X[rows], n_train, n_classes)
        happened, weight = test.happened[rows], test.weight[rows]
        after = LOSSES[scoring](q)
        losses[rows] = of_outcomes(after, happened)
        each = after if scoring == "neg_log_loss" else log_losses(q)
        labels = rows_of_shares(happened)[:2] if test.of_shares else None
        logs.append(of_outcomes(each, happened) if labels is None else each[labels])
        with np.errstate(invalid="ignore"):
            gain = np.where(p > 0, LOSSES[scoring](p) - after, 0)
        mean = np.einsum("ij,ij->i", p, gain)
        surprises[rows] = weight * (of_outcomes(gain, happened) - mean)
        variances[rows] = weight**2 * (np.einsum("ij,ij,ij->i", p, gain, gain) - mean**2)
    times = seconds, time.perf_counter() - start
    variances = np.maximum(variances, 0)
    variance = float(variances.sum())
    if not test.groups.independent:
        variance = max(
            test.groups.variance_of_terms(np.sqrt(variances)),
            float(np.sum(test.groups.sums(surprises) ** 2)),
        )
    surprise = float(surprises.sum())
    return JudgedMap(fitted, losses, np.concatenate(logs), surprise, variance, times)


@dataclass(frozen=True, eq=False)
class Trial:
    """All settings of all candidates on all splits.

    Attributes
    ----------
    candidates : list of MapCandidate
    owners : ndarray of shape (n_settings,)
        The number of each setting's candidate.
    maps : list of maps
        Unfitted, one a setting.
    tests : list of ndarray
        Test rows of the splits, which do not overlap.
    held_out : list of list of JudgedMap
        By setting and split.
    data : LabelledPredictions
    """

    candidates: list[MapCandidate]
    owners: np.ndarray
    maps: list
    tests: list[np.ndarray]
    held_out: list[list[JudgedMap]]
    data: LabelledPredictions

    def losses(self, setting, splits) -> np.ndarray:
        """Losses of the test samples of some splits."""
        return np.concatenate([self.held_out[setting][k].losses for k in splits])

    def weights(self, splits) -> np.ndarray:
        """Weights of the test samples of some splits."""
        return np.concatenate([self.data.weight[self.tests[k]] for k in splits])

    def _groups_of(self, splits) -> Groups:
        return self.data.groups.take(np.concatenate([self.tests[k] for k in splits]))

    def compare(self, setting, other, splits) -> LossComparison:
        """Compare the losses of two settings on the test samples of some splits."""
        losses = self.losses(setting, splits), self.losses(other, splits)
        return LossComparison.of(*losses, self.weights(splits), self._groups_of(splits))

    def setting(self, number) -> dict:
        """A map and its parameters, as ``cv_results_["params"]`` names them."""
        candidate = self.candidates[self.owners[number]]
        first = int(np.flatnonzero(self.owners == self.owners[number])[0])
        setting = candidate.settings[number - first]
        return {"map": candidate.map} | {f"map__{name}": value for name, value in setting.items()}

    def shares_of_mixture(self) -> dict[str, float]:
        """The weight of each candidate in the mixture, which is the last of the maps."""
        shares: dict[str, float] = {}
        owner_of = {id(map): owner for map, owner in zip(self.maps, self.owners, strict=True)}
        mixture = self.maps[-1]
        for part, weight in zip(mixture.estimators, mixture.weights, strict=True):
            name = self.candidates[owner_of[id(part)]].name
            shares[name] = shares.get(name, 0.0) + float(weight)
        return shares

    def mean_losses(self, splits) -> np.ndarray:
        """Mean loss of each setting, (n_settings,)."""
        weight = self.weights(splits)
        counted = weight > 0
        return np.array(
            [
                float(np.average(self.losses(k, splits)[counted], weights=weight[counted]))
                for k in range(len(self.maps))
            ]
        )

    def best_of_candidates(self, means) -> list[int]:
        """The best setting of each candidate."""
        return [
            int(rows[np.argmin(means[rows])])
            for rows in (np.flatnonzero(self.owners == k) for k in range(len(self.candidates)))
        ]

    def choose(self, splits, do_no_harm=True) -> int:
        """The setting that the test samples of some splits choose.

        The identity stays unless the map of the lowest loss gains more than chance would if the
        identity were calibrated, at the 5 % level: given p and the map, mean and variance of the
        gain are then known. An average with the identity needs no such test, which would double its
        loss where predictions are a little miscalibrated. Otherwise the mixture is taken, unless
        the loss of a map is significantly lower (5 % over all candidates): of maps that can hardly
        be told apart the mean is better than the one that was lucky. Without a mixture the first
        map is taken whose loss is not above the lowest by more than a tenth of the standard error
        of the difference.
        """
        means = self.mean_losses(splits)
        if len(self.maps) == 1:
            return 0
        best = 1 + int(np.argmin(means[1:]))
        hedged = getattr(self.maps[best], "_shrinks_to_identity", False)
        if do_no_harm and not hedged and not self._is_significant(best, means, splits):
            return 0
        if isinstance(self.maps[-1], Mixture):
            last = len(self.maps) - 1
            gap = self.compare(last, best, splits)
            if not (gap.difference > 0 and gap.pvalue < LEVEL / (len(self.candidates) - 1)):
                return last
        for setting in self.best_of_candidates(means)[1:]:
            gap = self.compare(setting, best, splits)
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
        quantile = self._groups_of(splits).quantile(LEVEL, self.weights(splits))
        return bool(surprise > quantile * np.sqrt(variance))


def try_maps(candidates, data, splits, scoring, mix=False, n_jobs=None, progress=None) -> Trial:
    """Fit every setting of every candidate to the training rows of every split, and judge it.

    ``mix`` adds a mixture of all; ``progress(results, names)`` yields the results of the fits and
    tells callbacks of them.
    """
    owners = np.repeat(
        np.arange(len(candidates)), [len(candidate.settings) for candidate in candidates]
    )
    maps = [unfitted for candidate in candidates for unfitted in candidate.maps]
    identity = fit_map(maps[0], data)
    if not data.groups.independent:
        groups = data.groups.of_outcomes(identity.predict_proba(data.X), data.happened)
        data = data._replace(groups=groups)
    calls = [
        (_fit_and_judge, unfitted, identity, data, train, test, scoring)
        for unfitted in maps
        for train, test in splits
    ]
    results: Iterator[JudgedMap] = one_by_one(calls, n_jobs)
    if progress is not None:
        results = progress(results, [candidates[k].name for k in np.repeat(owners, len(splits))])
    judged = list(results)
    # Of other warnings, that zeros were made by float32, one will do.
    caught = [warning for result in judged for warning in result.warnings]
    warn_of_fits(caught, "{} fit(s) of maps", most=1)
    held_out = [judged[k : k + len(splits)] for k in range(0, len(judged), len(splits))]
    tests = [test for _, test in splits]
    trial = Trial(candidates, owners, maps, tests, held_out, data)
    if not mix:
        return trial
    with recorded_warnings():  # fitted maps have said what they say of these predictions
        return _with_mixture(trial, identity, data, splits, scoring)


def _with_mixture(trial, identity, data, splits, scoring) -> Trial:
    """Add a mixture of all maps, each fold judging one whose weights come from the other folds."""
    numbers = range(len(splits))
    mixtures, mixed = [], []
    for number, (_, test) in enumerate(splits):
        mixture, used = _mixture(trial, [k for k in numbers if k != number])
        mixture.estimators_ = [trial.held_out[k][number].fitted for k in used]
        mixture.n_features_in_, mixture.classes_ = data.X.shape[1], np.arange(data.n_classes)
        mixtures.append(mixture)
        held_out_data = data.take(test)
        mixed.append(held_out_data._replace(X=mixture.predict_proba(held_out_data.X)))
    held_out = []
    for number, (train, test) in enumerate(splits):
        mixture = mixtures[number]
        mixture.temperature = _temperature_of([mixed[k] for k in numbers if k != number])
        n_train = data.take(train).n_positive
        held_out.append(judge(mixture, identity, data.take(test), n_train, scoring))
    mixture, _ = _mixture(trial, numbers)
    mixture.temperature = _temperature_of(mixed)
    return Trial(
        [*trial.candidates, MapCandidate("Mixture", mixture, [{}], [mixture])],
        np.append(trial.owners, len(trial.candidates)),
        [*trial.maps, mixture],
        trial.tests,
        [*trial.held_out, held_out],
        data,
    )


def _temperature_of(mixed: list[LabelledPredictions]) -> float:
    """The temperature of cross-fitted mixtures: flexible maps of many classes are overconfident.

    Of two classes it is 1.
    """
    if mixed[0].n_classes == 2:
        return 1.0
    parts = [part.as_labels() for part in mixed]
    proba, codes, weight = (np.concatenate([part[k] for part in parts]) for k in range(3))
    return float(best_temperature(log_probabilities(proba), codes, weight))


def _mixture(trial: Trial, splits) -> tuple[Mixture, np.ndarray]:
    """The mixture that some splits choose, unfitted, and the numbers of its maps."""
    columns = [np.concatenate([row[k].log_losses for k in splits]) for row in trial.held_out]
    judged = trial.data.take(np.concatenate([trial.tests[k] for k in splits])).as_labels()
    weights = mixture_weights(np.stack(columns, axis=1), judged.weight)
    used = np.flatnonzero(weights)
    return Mixture([trial.maps[k] for k in used], weights[used]), used


class OutOfFold(NamedTuple):
    """Predictions of samples by maps, and classifiers, that were not fitted to them.

    Attributes
    ----------
    rows : ndarray of shape (n_judged,)
        The samples.
    before, after : ndarray of shape (n_judged, n_classes)
        Probabilities as they were, and recalibrated ones.
    codes : ndarray of shape (n_judged,) or (n_judged, n_classes)
        Their labels as column numbers, or the shares of the classes.
    weight : ndarray of shape (n_judged,)
    groups : Groups
        Which of them belong together.
    """

    rows: np.ndarray
    before: np.ndarray
    after: np.ndarray
    codes: np.ndarray
    weight: np.ndarray
    groups: Groups = INDEPENDENT


class FoldMap(NamedTuple):
    """A map, and samples that took part in neither its fit nor its choice.

    Attributes
    ----------
    test : ndarray of int
        Rows of the fold that it judges.
    others : ndarray of int
        Rows that no fold judges, such as those that were not drawn.
    fitted : map
    n_train : int
        Samples of positive weight that it was fitted to.
    """

    test: np.ndarray
    others: np.ndarray
    fitted: Any
    n_train: int


def judge_choice(
    trial: Trial, data: LabelledPredictions, splits, do_no_harm: bool, unchanged: bool
) -> tuple[list[FoldMap], OutOfFold, dict[str, LossComparison]]:
    """Compare losses before and after, each fold by a map that the other folds choose.

    ``unchanged`` means that they choose the identity.
    """
    with recorded_warnings():  # the maps have said what they say of these predictions
        identity = fit_map(trial.maps[0], data)
        maps = _fold_maps(trial, data, splits, do_no_harm, unchanged)
        rows = np.sort(np.concatenate([fold_map.test for fold_map in maps]))
        after = cross_fitted(maps, data.X, data.n_classes)[rows]
        before = identity.predict_proba(data.X[rows])
    judged = data.take(rows)
    happened, weight, groups = judged.happened, judged.weight, judged.groups
    comparison = {
        name: LossComparison.of_predictions(
            LOSSES[score], (before, after), (happened, happened), weight, groups
        )
        for name, score in SCORES.items()
    }
    out_of_fold = OutOfFold(rows, before, after, happened, weight, groups)
    return maps, out_of_fold, comparison


def _fold_maps(trial: Trial, data, splits, do_no_harm, unchanged) -> list[FoldMap]:
    """For each split the map that the others choose, or the identity."""
    maps = []
    untested = _untested_rows(data, splits)
    for number, (train, test) in enumerate(splits):
        others = [k for k in range(len(splits)) if k != number] or [number]
        setting = 0 if unchanged else trial.choose(others, do_no_harm)
        fitted = trial.held_out[setting][number].fitted
        n_train = int(np.count_nonzero(data.weight[train]))
        maps.append(FoldMap(test, untested[number], fitted, n_train))
    return maps


def _untested_rows(data, splits) -> list[np.ndarray]:
    """Rows that no split tests, each given to a split that did not train on its group, in turns.

    A row that all splits train on is given to none.
    """
    n_samples, n_splits = len(data.X), len(splits)
    codes = data.groups.units(n_samples)
    rows = np.setdiff1d(np.arange(n_samples), np.concatenate([test for _, test in splits]))
    split_of = np.full(len(rows), -1)
    free = np.empty((n_splits, len(rows)), dtype=bool)
    for number, (train, _) in enumerate(splits):
        used = np.zeros(codes.max() + 1, dtype=bool)
        used[codes[train[data.weight[train] > 0]]] = True
        free[number] = ~used[codes[rows]]
    for step in range(n_splits):
        turn = (np.arange(len(rows)) + step) % n_splits
        split_of = np.where((split_of < 0) & free[turn, np.arange(len(rows))], turn, split_of)
    return [rows[split_of == number] for number in range(n_splits)]


def cross_fitted(fits: list[FoldMap], X: np.ndarray, n_classes: int) -> np.ndarray:
    """Probabilities (n, C) by maps that have not seen the sample; NaN where all have."""
    proba = np.full((len(X), n_classes), np.nan)
    for fold_map in fits:
        rows = np.concatenate([fold_map.test, fold_map.others])
        proba[rows] = mapped_proba(fold_map.fitted, X[rows], fold_map.n_train, n_classes)
    return proba
