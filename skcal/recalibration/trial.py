"""Maps on held-out samples: splits, losses, the choice, and maps that have not seen a fold."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from sklearn.model_selection import check_cv
from sklearn.utils import check_random_state

from skcal._folds import read_splits, refuse_overlap, shuffled_folds
from skcal._groups import INDEPENDENT, Groups
from skcal._labels import rows_of_shares
from skcal._running import one_by_one
from skcal._scores import LOSSES, LossComparison, log_losses, of_outcomes
from skcal._selection import LEVEL, warn_of_fits
from skcal._validation import n_rows, row_blocks
from skcal.recalibration.features import log_probabilities
from skcal.recalibration.mixture import Mixture, fit_map, mapped_proba, mixture_weights
from skcal.recalibration.reading import LabelledPredictions
from skcal.recalibration.temperature import best_temperature

_NOT_WORSE = 0.1, 1.0  # standard errors by which a simpler map may be worse; beside a mixture
_LEAST_GAIN = 3.0  # of loss, calibration error and twice the evidence, in standard errors
#: Name of a loss → scikit-learn's name of its score.
SCORES = {"log_loss": "neg_log_loss", "brier_score": "neg_brier_score"}


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
    drawn, n_splits = data.take(chosen), min(int(cv), len(chosen))
    splits = shuffled_folds(drawn.groups, n_splits, seed, drawn.happened, drawn.weight)
    return [(chosen[train], chosen[test]) for train, test in splits]


def _given_splits(cv, data, chosen):
    """The splits of a splitter or an iterable, without what was not drawn."""
    n_samples = len(data.X)
    drawn = np.zeros(n_samples, dtype=bool)
    drawn[chosen] = True
    codes = data.happened.argmax(axis=1) if data.of_shares else data.happened
    cv = check_cv(cv, codes, classifier=True)
    splits = read_splits(cv, data.X, codes, data.groups, counted=drawn)
    refuse_overlap(splits, n_samples)
    return [(train[drawn[train]], test[drawn[test]]) for train, test in splits]


class JudgedMap(NamedTuple):
    """What a map says of samples that it was not fitted to.

    ``n_train`` is the number of rows that it was fitted to, by weights.
    ``log_losses`` are those of labels, of shares one for each class of a sample that has a share.
    ``surprise`` is the sum of what was gained over the identity, above its mean if the identity is
    calibrated, and ``variance`` the variance that the sum then has, of groups no less than that of
    their sums, of shares, whose law is not known, that of these sums.
    """

    fitted: Any
    n_train: float
    losses: np.ndarray
    log_losses: np.ndarray
    surprise: float
    variance: float
    times: tuple[float, float]
    warnings: Sequence[Any] = ()


def _fit_and_judge(estimator, identity, data, train, test, scoring) -> JudgedMap:
    start = time.perf_counter()
    with warnings.catch_warnings(record=True, action="always", category=UserWarning) as caught:
        fitted = fit_map(estimator, data.take(train))
        seconds = time.perf_counter() - start
        judged = judge(fitted, identity, data, train, test, scoring)
    return judged._replace(
        times=(seconds, judged.times[1]), warnings=[entry.message for entry in caught]
    )


def judge(fitted, identity, data, train, test, scoring) -> JudgedMap:
    """Judge a map that was fitted to some rows, beside the identity, on others."""
    start = time.perf_counter()
    n_train = n_rows(data.weight[train])
    data = data.take(test)
    losses, surprises, variances = np.empty((3, len(test)))
    logs = []
    for rows in row_blocks(len(test), 8 * data.n_classes, most=2**22):
        X = data.X[rows].astype(np.float64, copy=False)
        p = identity.predict_proba(X)
        q = mapped_proba(fitted, X, n_train, data.n_classes)
        happened, weight = data.happened[rows], data.weight[rows]
        after = LOSSES[scoring](q)
        losses[rows] = of_outcomes(after, happened)
        each = after if scoring == "neg_log_loss" else log_losses(q)
        labels = rows_of_shares(happened)[:2] if data.of_shares else None
        logs.append(of_outcomes(each, happened) if labels is None else each[labels])
        with np.errstate(invalid="ignore"):
            gain = np.where(p > 0, LOSSES[scoring](p) - after, 0)
        mean = np.einsum("ij,ij->i", p, gain)
        surprises[rows] = weight * (of_outcomes(gain, happened) - mean)
        variances[rows] = weight**2 * (np.einsum("ij,ij,ij->i", p, gain, gain) - mean**2)
    times = 0.0, time.perf_counter() - start
    variances = np.maximum(variances, 0)
    variance = float(variances.sum())
    if not data.groups.independent:
        variance = max(
            data.groups.variance_of_terms(np.sqrt(variances)),
            float(np.sum(data.groups.sums(surprises) ** 2)),
        )
    surprise = float(surprises.sum())
    return JudgedMap(fitted, n_train, losses, np.concatenate(logs), surprise, variance, times)


@dataclass(frozen=True, eq=False)
class Trial:
    """All settings of all candidates on all splits, or on some.

    Attributes
    ----------
    names : list of str
        The candidates.
    owners : ndarray of shape (n_settings,)
        The number of each setting's candidate.
    settings : list of dict
        A map and its parameters, as ``cv_results_["params"]`` names them.
    maps : list of maps
        Unfitted, one a setting.
    splits : list of (ndarray, ndarray)
        Training and test rows; test rows do not overlap.
    held_out : list of list of JudgedMap
        By setting and split.
    data : LabelledPredictions
    """

    names: list[str]
    owners: np.ndarray
    settings: list[dict]
    maps: list
    splits: list[tuple[np.ndarray, np.ndarray]]
    held_out: list[list[JudgedMap]]
    data: LabelledPredictions

    def of_splits(self, numbers) -> Trial:
        """The trial of some splits alone."""
        return replace(
            self,
            splits=[self.splits[k] for k in numbers],
            held_out=[[row[k] for k in numbers] for row in self.held_out],
        )

    def without(self, split: int) -> Trial:
        """The trial of all other splits, if there are any."""
        return self.of_splits([k for k in range(len(self.splits)) if k != split] or [split])

    @cached_property
    def tested(self) -> LabelledPredictions:
        """The test samples."""
        return self.data.take(np.concatenate([test for _, test in self.splits]))

    def losses(self, setting) -> np.ndarray:
        """Losses of the test samples."""
        return np.concatenate([judged.losses for judged in self.held_out[setting]])

    def compare(self, setting, other) -> LossComparison:
        """Compare the losses of two settings on the test samples."""
        tested = self.tested
        losses = self.losses(setting), self.losses(other)
        return LossComparison.of(*losses, tested.weight, tested.groups)

    def shares_of_mixture(self) -> dict[str, float]:
        """The weight of each candidate in the mixture, which is the last of the maps."""
        shares: dict[str, float] = {}
        owner_of = {id(map): owner for map, owner in zip(self.maps, self.owners, strict=True)}
        mixture = self.maps[-1]
        for part, weight in zip(mixture.estimators, mixture.weights, strict=True):
            name = self.names[owner_of[id(part)]]
            shares[name] = shares.get(name, 0.0) + float(weight)
        return shares

    def mean_losses(self) -> np.ndarray:
        """Mean loss of each setting, (n_settings,)."""
        weight = self.tested.weight
        counted = weight > 0
        losses = [self.losses(setting)[counted] for setting in range(len(self.maps))]
        return np.array([float(np.average(row, weights=weight[counted])) for row in losses])

    def best_of_candidates(self, means) -> list[int]:
        """The best setting of each candidate."""
        rows_of = [np.flatnonzero(self.owners == k) for k in range(len(self.names))]
        return [int(rows[np.argmin(means[rows])]) for rows in rows_of]

    def choose(self, do_no_harm=True) -> int:
        """The setting that the test samples choose.

        The identity stays unless the map of the lowest loss gains more than chance would if the
        identity were calibrated, at the 5 % level: given p and the map, mean and variance of the
        gain are then known. An average with the identity needs no such test, which would double its
        loss where predictions are a little miscalibrated. Otherwise the first map is taken whose
        loss is not above the lowest by more than a tenth of the standard error of the difference,
        or a whole one if there is a mixture, which is the last. Where one temperature is right, a
        mixture with maps of many parameters costs several times its loss.
        """
        if len(self.maps) == 1:
            return 0
        means = self.mean_losses()
        best = 1 + int(np.argmin(means[1:]))
        hedged = getattr(self.maps[best], "_shrinks_to_identity", False)
        if do_no_harm and not hedged and not self._is_significant(best, means):
            return 0
        slack = _NOT_WORSE[isinstance(self.maps[-1], Mixture)]
        for setting in self.best_of_candidates(means)[1:]:
            gap = self.compare(setting, best)
            if setting == best or gap.difference <= slack * gap.standard_error:
                return setting
        return best

    def _is_significant(self, setting, means) -> bool:
        if not means[setting] < means[0]:
            return False
        if np.isinf(means[0]):
            return True
        surprise = sum(judged.surprise for judged in self.held_out[setting])
        variance = sum(judged.variance for judged in self.held_out[setting])
        tested = self.tested
        quantile = tested.groups.quantile(LEVEL, tested.weight)
        return bool(surprise > quantile * np.sqrt(variance))


def try_maps(candidates, data, splits, scoring, mix=False, n_jobs=None, progress=None) -> Trial:
    """Fit every setting of every candidate to the training rows of every split, and judge it.

    ``mix`` adds a mixture of all; ``progress(results, names)`` yields the results of the fits and
    tells callbacks of them.
    """
    names = [candidate.name for candidate in candidates]
    owners = np.repeat(np.arange(len(candidates)), [len(c.maps) for c in candidates])
    maps = [unfitted for candidate in candidates for unfitted in candidate.maps]
    settings = [
        {"map": candidate.map} | {f"map__{name}": value for name, value in setting.items()}
        for candidate in candidates
        for setting in candidate.settings
    ]
    identity, judged_data = fit_map(maps[0], data), data
    if not data.groups.independent:
        groups = data.groups.of_outcomes(identity.predict_proba(data.X), data.happened)
        judged_data = data._replace(groups=groups)
    calls = [
        (_fit_and_judge, unfitted, identity, judged_data, *split, scoring)
        for unfitted in maps
        for split in splits
    ]
    results: Iterator[JudgedMap] = one_by_one(calls, n_jobs)
    if progress is not None:
        results = progress(results, [names[k] for k in np.repeat(owners, len(splits))])
    judged = list(results)
    # Of other warnings, that zeros were made by float32, one will do.
    caught = [warning for result in judged for warning in result.warnings]
    warn_of_fits(caught, "{} fit(s) of maps", most=1)
    held_out = [judged[k : k + len(splits)] for k in range(0, len(judged), len(splits))]
    trial = Trial(names, owners, settings, maps, splits, held_out, data)
    if not mix:
        return trial
    # fitted maps have said what they say of these predictions
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        return _with_mixture(trial, identity, judged_data, scoring)


def _with_mixture(trial: Trial, identity, data, scoring) -> Trial:
    """Add a mixture of all maps, each fold judging one whose weights come from the other folds."""
    mixtures, mixed = [], []
    for number, (_, test) in enumerate(trial.splits):
        mixture, used = _mixed_maps(trial.without(number))
        mixture.estimators_ = [trial.held_out[k][number].fitted for k in used]
        mixture.n_features_in_, mixture.classes_ = data.X.shape[1], np.arange(data.n_classes)
        mixtures.append(mixture)
        held_out_data = data.take(test)
        proba = mixture.predict_proba(held_out_data.X.astype(np.float64, copy=False))
        mixed.append(held_out_data._replace(X=proba))
    held_out = []
    for number, (mixture, split) in enumerate(zip(mixtures, trial.splits, strict=True)):
        mixture.temperature = _temperature_of(mixed[:number] + mixed[number + 1 :])
        held_out.append(judge(mixture, identity, data, *split, scoring))
    mixture, _ = _mixed_maps(trial)
    mixture.temperature = _temperature_of(mixed)
    return replace(
        trial,
        names=[*trial.names, "Mixture"],
        owners=np.append(trial.owners, len(trial.names)),
        settings=[*trial.settings, {"map": mixture}],
        maps=[*trial.maps, mixture],
        held_out=[*trial.held_out, held_out],
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


def _mixed_maps(trial: Trial) -> tuple[Mixture, np.ndarray]:
    """The mixture that the test samples choose, unfitted, and the numbers of its maps."""
    columns = [np.concatenate([judged.log_losses for judged in row]) for row in trial.held_out]
    weights = mixture_weights(np.stack(columns, axis=1), trial.tested.counted().as_labels().weight)
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
    n_train : float
        Rows that it was fitted to, by weights.
    """

    test: np.ndarray
    others: np.ndarray
    fitted: Any
    n_train: float


class Choice(NamedTuple):
    """The setting that is chosen, and what the choice changes, each fold by a choice of the others.

    Attributes
    ----------
    setting : int
    harm : str
        What the choice of the other folds does, so that the identity is chosen; else "".
    fold_maps : list of FoldMap
    out_of_fold : OutOfFold
    comparison : dict of LossComparison
        By names of losses.
    """

    setting: int
    harm: str
    fold_maps: list[FoldMap]
    out_of_fold: OutOfFold
    comparison: dict[str, LossComparison]


def judged_choice(trial: Trial, do_no_harm: bool, loss: str) -> Choice:
    """Choose a setting, and the identity if the choice of the other folds does harm.

    Harm is a loss that rises by more than a standard error. It is also a calibration error that
    does not clearly fall: its gain, and that of the loss above what calibrated predictions would
    give, sum to less than 3 + 2 log w standard errors, w the weight of the identity in an average,
    or 1/2. Chance of few events raises the error although the loss falls.
    """
    setting = trial.choose(do_no_harm)
    numbers = range(len(trial.splits))
    # If all folds choose the identity, so do all but one.
    of_folds = [trial.without(k).choose(do_no_harm) if setting else 0 for k in numbers]
    choice = _judged(trial, setting, of_folds)
    if not do_no_harm:
        return choice
    gap, saved = choice.comparison[loss], _gain_of_error(choice)
    held_out = [trial.held_out[number][k] for k, number in enumerate(of_folds)]
    noise = float(np.sqrt(sum(judged.variance for judged in held_out)))
    harm = ""
    if gap.difference < -gap.standard_error:
        harm = "raises the cross-validated loss"
    elif noise > 0 and saved.standard_error > 0 and np.isfinite(gap.difference):
        gain = sum(judged.surprise for judged in held_out) / noise
        gain += saved.difference / saved.standard_error
        if gain < _LEAST_GAIN + 2 * np.log(_weight_of_identity(held_out)):
            harm = "does not clearly lower the cross-validated calibration error"
    return _judged(trial, 0, [0 for _ in numbers])._replace(harm=harm) if harm else choice


def _weight_of_identity(held_out: list[JudgedMap]) -> float:
    """The mean weight of the identity in averages with it, 1/2 of other maps."""
    weights: list[Any] = [getattr(judged.fitted, "weights_", None) for judged in held_out]
    of_averages = [one["identity"] for one in weights if isinstance(one, dict)]
    if len(of_averages) < len(weights):
        return 0.5
    return max(float(np.mean(of_averages)), np.finfo(float).tiny)


def _gain_of_error(choice: Choice) -> LossComparison:
    """By how much recalibration moves predictions towards the frequency of the predicted class.

    If p becomes q where the frequency is t, (2 t - p - q) sign(q - p) is at most the error that is
    saved where q is nearer to t than p, and at most the error that is added where it is not. The
    outcome has the mean t, so that each sample counts alike, also where the loss hardly sees it.
    """
    _, before, after, happened, weight, groups = choice.out_of_fold
    rows, top = np.arange(len(before)), before.argmax(axis=1)
    p, q = before[rows, top], after[rows, top]
    y = happened[rows, top] if happened.ndim == 2 else happened == top
    saved = np.sign(q - p) * (2 * y - p - q)
    return LossComparison.of(saved, np.zeros(len(saved)), weight, groups)


def _judged(trial: Trial, setting: int, of_folds: list[int]) -> Choice:
    """Compare losses before and after, each fold by its own setting."""
    data, rows = trial.data, np.sort(np.concatenate([test for _, test in trial.splits]))
    maps = []
    for number, untested in enumerate(_untested_rows(data, trial.splits)):
        judged = trial.held_out[of_folds[number]][number]
        maps.append(FoldMap(trial.splits[number][1], untested, judged.fitted, judged.n_train))
    # the maps have said what they say of these predictions
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        after = cross_fitted(maps, data.X, data.n_classes)[rows]
        tested = data.take(rows)
        before = fit_map(trial.maps[0], data).predict_proba(tested.X.astype(np.float64, copy=False))
    outcomes, others = (tested.happened, tested.happened), (tested.weight, tested.groups)
    comparison = {
        name: LossComparison.of_predictions(LOSSES[score], (before, after), outcomes, *others)
        for name, score in SCORES.items()
    }
    out_of_fold = OutOfFold(rows, before, after, tested.happened, *others)
    return Choice(setting, "", maps, out_of_fold, comparison)


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
        of_rows = X[rows].astype(np.float64, copy=False)
        proba[rows] = mapped_proba(fold_map.fitted, of_rows, fold_map.n_train, n_classes)
    return proba
