"""The calibration error on a target population without labels, by weights of labelled samples."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_array, check_random_state

from skcal._matrices import two_columns
from skcal._show import percent, plain_number, worded, wrapped
from skcal._sklearn_compat import HasMethods, Interval, StrOptions, validate_params
from skcal._validation import (
    CONFIDENCE_LEVEL,
    InputError,
    check_predictions,
    decoded,
    naming,
    refuse_masked,
)
from skcal.metrics.bootstrap import resample_counts
from skcal.metrics.error_limits import ErrorLimits
from skcal.recalibration.prevalence import estimate_prevalence
from skcal.recalibration.scalar_scaling import BetaCalibration
from skcal.recalibration.scaling import VectorScaling
from skcal.sample import Sample, error_of_shares, read_sample

_LEAST_COUNT = 50  # effective samples, below which there is a warning
_SHIFT_CELLS = 20  # of predictions, whose shares are compared with those of the target
_UNLIKELY = 0.01  # p-value from which there is a warning that the weights do not fit
_SHARE_ROUNDING = 1e-12  # of the share of a class that is absent from the target
_SEPARATE = 0.999  # area under the ROC curve from which source and target are separate
_BEYOND = 0.05  # share of target samples unlike any source sample, from which there is a warning
_SHIFT_FOLDS = 5
_LEAST_OF_CLASS = 10  # samples, or groups
_SINGULAR_MATRIX = 1e8


@dataclass(frozen=True, eq=False)
class ShiftedCalibrationError:
    """The calibration error on a target population, with its limits.

    Attributes
    ----------
    estimate : float
        The mean absolute difference of predicted probability and frequency in the target.
    low, high : float
        One-sided confidence limits, each at ``confidence_level``. They include the error of the
        weights.
    shift : str
    effective_size : float
        Effective number of source samples, (Σ w)² / Σ w².
    weights : ndarray of shape (n_samples,)
        The weight of each source sample, with mean 1: how much more frequent it is in the target.
        Other metrics take them as ``sample_weight``; their own limits leave out the error of the
        weights.
    prevalences, prevalence_errors : ndarray of shape (n_classes,) or None
        Of label shift the share of each class in the target, and its standard error.
    pvalue : float or None
        That the weighted source has the target's distribution of predictions. Small values
        contradict the assumed shift. None without ``target_proba``.
    confidence_level : float
    notion : str
    n_samples, n_target : int
    """

    estimate: float
    low: float
    high: float
    shift: str
    effective_size: float
    weights: np.ndarray = field(repr=False)
    prevalences: np.ndarray | None
    prevalence_errors: np.ndarray | None
    pvalue: float | None
    confidence_level: float
    notion: str
    n_samples: int
    n_target: int

    def _data(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "weights"}

    def sentence(self) -> str:
        """Return the error with its limits in words."""
        estimate, low, high = map(plain_number, (self.estimate, self.low, self.high))
        return (
            f"calibration error in the target {estimate} (at least {low}, at most {high}, each "
            f"with {percent(self.confidence_level)} confidence)"
        )

    def __str__(self):
        lines = [
            self.sentence(),
            f"The {self.n_samples:,} labelled samples count as {self.effective_size:,.0f} after "
            f"weighting; {self.n_target:,} target samples without labels.",
        ]
        if self.prevalences is not None and self.prevalence_errors is not None:
            pairs = zip(self.prevalences, self.prevalence_errors, strict=True)
            shares = ", ".join(f"{share:.3f} ± {error:.3f}" for share, error in pairs)
            lines.append(f"Class shares in the target (± standard error): {shares}.")
            lines.append("Assumption: within each class, cases look as in the source.")
        else:
            lines.append("Assumption: cases with the same X have the same risk as in the source.")
        if self.pvalue is not None and self.pvalue <= _UNLIKELY:
            lines.append(
                f"Warning: the weighted source does not have the target's predictions (p ≤ "
                f"{self.pvalue:.2g}). The assumption is wrong, so these numbers may be, too."
            )
        return "\n".join(wrapped(line) for line in lines)


@validate_params(
    {
        "shift": [StrOptions({"label", "covariate"})],
        "estimator": [HasMethods(["fit", "predict_proba"]), None],
        **CONFIDENCE_LEVEL,
        "n_resamples": [Interval(Integral, 20, None, closed="left")],
        "random_state": ["random_state"],
    },
    prefer_skip_nested_validation=False,
)
def shifted_calibration_error(
    y_true: ArrayLike | Sample,
    y_proba: ArrayLike | None = None,
    *,
    shift: Literal["label", "covariate"] = "label",
    target_proba: ArrayLike | None = None,
    X: ArrayLike | None = None,
    target_X: ArrayLike | None = None,
    estimator: Any = None,
    notion: str = "auto",
    confidence_level: float = 0.95,
    n_resamples: int = 100,
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    pos_label: Any = None,
    from_logits: bool = False,
    random_state: int | np.random.RandomState | None = 0,
) -> ShiftedCalibrationError:
    """Calibration error in a shifted population without labels, by reweighting labelled samples.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,), or Sample
        Labels of the source: the samples that have labels.
    y_proba : array-like of shape (n_samples,) or (n_samples, n_classes), default=None
        Probabilities in [0, 1] for the source; rows sum to 1. A 1-D array holds P(positive class).
        Left out beside a :class:`skcal.Sample`.
    shift : {"label", "covariate"}, default="label"
        The kind of shift. "label": the classes are more or less frequent, and within each class
        cases look as before. "covariate": cases with other ``X`` are more or less frequent, and
        cases with the same ``X`` have the same risk as before.
    target_proba : array-like of shape (n_target,) or (n_target, n_classes), default=None
        Probabilities for the target, in the form of ``y_proba``. Needed for "label". With
        "covariate" they check the weights.
    X : array-like of shape (n_samples, n_features), default=None
        Numbers that describe the source. Only with "covariate".
    target_X : array-like of shape (n_target, n_features), default=None
        The same for the target.
    estimator : classifier, default=None
        Tells source from target by ``X``, in 5 folds. None: logistic regression of standardised
        features.
    notion : str, default="auto"
        A scalar notion; "auto" is "binary" for one and two columns and "confidence" for more.
    confidence_level : float in (0, 1), default=0.95
        The confidence level of the limits.
    n_resamples : int, default=100
        Resamples of source and target from which the error of the weights is found.
    sample_weight : array-like of shape (n_samples,), default=None
        Sample weights of the source; only their ratios matter.
    groups : array-like of shape (n_samples,), default=None
        Source samples of one group may depend on each other; groups are resampled.
    labels : array-like of shape (n_classes,), default=None
        The class of each column; for 1-D predictions (negative class, positive class).
    pos_label : label, default=None
        The positive class of 1-D predictions, or of two columns for "binary"; an error otherwise.
    from_logits : bool, default=False
        Whether ``y_proba`` and ``target_proba`` hold logits.
    random_state : int, RandomState instance or None, default=0
        The seed of resamples and folds. The estimate of "label" does not depend on it.

    Returns
    -------
    result : ShiftedCalibrationError
        The ``estimate`` in the target with its limits ``low`` and ``high``, the weights of the
        samples, and how many of equal weight they are worth. It has ``sentence()``.

    Raises
    ------
    ValueError
        If the input is not valid or a class has no source sample. Also if predictions do not
        distinguish classes, or ``X`` separates source and target.

    Warns
    -----
    UserWarning
        If the effective sample size is below 50, or more than 5 % of the target is unlike any
        source sample. Also if the weighted source does not have the target's distribution of
        predictions (p ≤ 0.01).

    See Also
    --------
    calibration_error_interval : where the target has labels.
    skcal.recalibration.adjust_prevalence : predictions for other prevalences.

    Notes
    -----
    Source samples are weighted so that they stand for the target, and the error is
    :func:`calibration_error` with these weights.

    "label": the weight of a class is the ratio of its prevalences. Recalibrated predictions give
    scores ψ; the prevalences π solve mean(ψ in the target) = Σ_k π_k mean(ψ in class k). If the
    recalibration is right, this is as precise as maximum likelihood, whose scores it uses [1]_. If
    it is not, the estimate is still consistent [2]_. "covariate": the weight is the odds of target
    against source given X.

    Limits are those of :func:`calibration_error_interval`, with the variance of a bootstrap of
    source and target, in which the weights are estimated anew. If the assumption is wrong the
    limits are wrong; a few target labels check it.

    Cost: "label" needs 0.2 s for 3,000 and 3,000 samples, "covariate" 5 (1 + n_resamples) fits of
    the estimator. Memory: 8 n_resamples (n_samples + n_target) bytes.

    References
    ----------
    .. [1] Saerens, Latinne & Decaestecker, Adjusting the outputs of a classifier to new a priori
       probabilities, Neural Computation 2002.
    .. [2] Lipton, Wang & Smola, Detecting and correcting for label shift with black box predictors,
       ICML 2018.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.special import expit
    >>> from skcal.metrics import shifted_calibration_error
    >>> rng = np.random.default_rng(0)
    >>> def draw(n, prevalence):
    ...     y = rng.random(n) < prevalence
    ...     return y, expit(2 * rng.normal(np.where(y, 1, -1)))  # calibrated at 0.5
    >>> y, p = draw(2000, 0.5)
    >>> _, target = draw(2000, 0.1)
    >>> result = shifted_calibration_error(y, p, target_proba=target)
    >>> print(result)
    calibration error in the target 0.168 (at least 0.144, at most 0.191, each with 95 % confidence)
    The 2,000 labelled samples count as 1,247 after weighting; 2,000 target samples without labels.
    Class shares in the target (± standard error): 0.885 ± 0.014, 0.115 ± 0.014.
    Assumption: within each class, cases look as in the source.
    """
    question = notion, sample_weight, labels, pos_label, from_logits
    rows = read_sample(y_true, y_proba, *question, groups=groups, keep_weightless=True)
    sample, seen = rows.counted, rows.weight > 0
    if sample.outcomes is not None:
        raise error_of_shares("shifted_calibration_error", "Pass a row for each vote.")
    sample = sample._replace(weight=sample.weight / sample.weight.mean())
    target = None
    if target_proba is not None:
        logits = from_logits or (isinstance(y_true, Sample) and sample.logits is not None)
        target = _read_target(target_proba, sample, logits)
    rng = check_random_state(random_state)
    seeds = rng.randint(2**31 - 1, size=n_resamples)
    if shift == "label":
        weights = _label_shift(sample, target, seeds, (X, target_X, estimator))
    else:
        pair = _read_features(X, target_X, seen, target)
        weights = _covariate_shift(sample, pair, estimator, seeds, rng)
    weight = weights.source[0] / weights.source[0].mean()
    effective = float(weight.sum() ** 2 / (weight @ weight))
    if effective < _LEAST_COUNT:
        _warn(
            f"After weighting, the {len(weight):,} source samples count as {effective:.1f}, fewer "
            f"than {_LEAST_COUNT}: few of them are like the target. Estimate and limits are rough. "
            "Collect labels in the target."
        )
    pvalue = None
    if target is not None:
        pvalue = _fit_of_predictions(two_columns(sample.proba), two_columns(target), weights)
        if pvalue <= _UNLIKELY:
            of_X = shift == "covariate"
            what = worded(
                f"shift={shift!r}",
                "a difference of the columns of --feature" if of_X else "another share of events",
            )
            other = worded(
                "Try the other shift",
                "Leave --feature out" if of_X else "Name the columns that may differ by --feature",
            )
            _warn(
                "The weighted source does not have the target's distribution of predictions (p ≤ "
                f"{pvalue:.2g}), so {what} does not describe what "
                f"changed. {other}, or collect labels in the target."
            )
    occurs = np.flatnonzero(weight)  # a class may be absent from the target
    limits = _ShiftedLimits(sample.take(occurs, weight[occurs]), weights.source[1:, occurs])
    tail = 1 - confidence_level
    low, high = limits.low(tail), max(limits.high(tail)[0], limits.estimate)
    return ShiftedCalibrationError(
        limits.estimate,
        min(low, limits.estimate),
        high,
        shift,
        effective,
        weight,
        weights.prevalences,
        weights.errors,
        pvalue,
        confidence_level,
        str(sample.notion),
        len(weight),
        len(weights.target[0]),
    )


def _warn(text: str) -> None:
    warnings.warn(text, stacklevel=4)


class _Weights(NamedTuple):
    """Weights of source and target samples: in the first row as estimated, in others of resamples.

    Weights of a resample are those of its samples times how often they were drawn.
    """

    source: np.ndarray
    target: np.ndarray
    prevalences: np.ndarray | None = None
    errors: np.ndarray | None = None


def _read_target(target_proba, sample, from_logits) -> np.ndarray:
    target = check_predictions(target_proba, from_logits, name="target_proba")[0]
    if target.shape[1:] != sample.proba.shape[1:]:
        reason = f"has shape {target.shape}, but y_proba {sample.proba.shape}."
        raise InputError("target_proba", reason, "Pass predictions of the same classes.")
    return target[:, ::-1] if sample.positive_first and target.ndim == 2 else target


def _drawn_counts(seed, sample, n_target):
    """How often each sample of source and target is drawn; groups of the source together."""
    rng = np.random.default_rng(seed)
    groups, n = sample.groups, len(sample.weight)
    drawn = resample_counts(rng, groups.n_units(n))[groups.units(n)]
    return drawn, resample_counts(rng, n_target)


def _label_shift(sample, target, seeds, unused) -> _Weights:
    """Weights by class, the ratios of its prevalences."""
    if target is None:
        remedy = "Pass the predictions for the target, whose distribution tells the prevalences."
        raise InputError("target_proba", "is missing, and shift='label' needs it.", remedy)
    if any(option is not None for option in unused):
        reason = "has no meaning for shift='label', which uses predictions only."
        raise InputError("X", reason, "Leave X, target_X and estimator out, or use 'covariate'.")
    share, units = sample.frequencies, sample.groups.units(len(sample.codes))
    held = [len(np.unique(units[sample.codes == k])) for k in range(len(share))]
    if min(held) < _LEAST_OF_CLASS:
        name = sample.classes.tolist()[int(np.argmin(held))]
        what = "sample" if sample.groups.independent else "group"
        reason = f"holds {min(held)} {what}(s) of class {name!r}, too few to know how it looks."
        remedy = f"Add labels until it has {_LEAST_OF_CLASS}, or merge it with another class."
        raise InputError("y_true", reason, remedy)
    of_source, of_target = _class_scores(sample, target, share)
    one_hot = np.eye(len(share))[sample.codes]

    def solve(source, drawn):
        mass = one_hot * source[:, None]
        means = of_source.T @ (mass / mass.sum(axis=0))
        if not np.linalg.cond(means) < _SINGULAR_MATRIX:
            reason = "does not tell the classes apart, so that their prevalences are unknown."
            raise InputError("y_proba", reason, "Use a model with some discrimination.")
        return np.linalg.solve(means, drawn @ of_target / drawn.sum()), mass.sum(axis=0)

    target_shares, _ = solve(sample.weight, np.ones(len(target)))
    target_shares = np.where(target_shares > _SHARE_ROUNDING, target_shares, 0.0)
    target_shares = target_shares / target_shares.sum()
    sources = [sample.weight * (target_shares / share)[sample.codes]]
    targets, prevalences = [np.ones(len(target))], []
    for seed in seeds:
        source, drawn = _drawn_counts(seed, sample, len(target))
        source = source * sample.weight
        if (np.bincount(sample.codes, source, len(share)) == 0).any():
            continue  # a resample without a class says nothing of it
        shares, mass = solve(source, drawn)
        prevalences.append(shares)
        sources.append(source * (shares / (mass / mass.sum()))[sample.codes])
        targets.append(drawn)
    errors = np.std(prevalences, axis=0, ddof=1)
    return _Weights(np.array(sources), np.array(targets), target_shares, errors)


def _class_scores(sample, target, share) -> tuple[np.ndarray, np.ndarray]:
    """Ratios r_k / Σ_j π_j r_j of source and target at the prevalences of highest likelihood."""
    method = BetaCalibration() if len(share) == 2 else VectorScaling()
    source, target = two_columns(sample.proba), two_columns(target)
    if len(share) == 2:
        source, target = source[:, 1], target[:, 1]
    method.fit(source, sample.codes, sample_weight=sample.weight)
    ratios = [method.predict_proba(proba) / share for proba in (source, target)]
    with warnings.catch_warnings():  # prevalences are solved for below
        warnings.simplefilter("ignore")
        likely = estimate_prevalence(ratios[1] * share, prevalence=share)
    likely = np.maximum(likely, 1 / len(target))
    likely = likely / likely.sum()
    of_source, of_target = (ratio / (ratio @ likely)[:, None] for ratio in ratios)
    return of_source, of_target


def _read_features(X, target_X, seen, target) -> tuple[np.ndarray, np.ndarray]:
    pair = []
    for name, features in (("X", X), ("target_X", target_X)):
        if features is None:
            reason = "is missing, and shift='covariate' needs it."
            raise InputError(name, reason, "Pass what describes the samples, (n, n_features).")
        refuse_masked(features, name)
        with naming(name):
            pair.append(check_array(decoded(features), dtype=np.float64, input_name=name))
    source, other = pair
    if len(source) != len(seen):
        reason = f"has {len(source)} rows, and y_true {len(seen)}."
        raise InputError("X", reason, "Pass one row per sample.")
    if source.shape[1] != other.shape[1]:
        reason = f"has {other.shape[1]} columns, and X {source.shape[1]}."
        raise InputError("target_X", reason, "Pass the same features.")
    if target is not None and len(target) != len(other):
        reason = f"has {len(other)} rows, and target_proba {len(target)}."
        raise InputError("target_X", reason, "Pass one row per target sample.")
    return source[seen], other


def _covariate_shift(sample, pair, estimator, seeds, rng) -> _Weights:
    """Weights by X, the odds of target against source by a cross-fitted classifier."""
    if estimator is None:
        estimator = make_pipeline(
            StandardScaler(), LogisticRegression(C=1e3, solver="newton-cholesky")
        )
    features = np.vstack(pair)
    n, n_target = map(len, pair)
    domain = np.r_[np.zeros(n, dtype=int), np.ones(n_target, dtype=int)]
    if min(n, n_target) < 2 * _SHIFT_FOLDS:
        name = "X" if n < n_target else "target_X"
        reason = f"has {min(n, n_target)} rows of positive weight."
        raise InputError(name, reason, f"At least {2 * _SHIFT_FOLDS} are needed.")
    folds = np.empty(n + n_target, dtype=np.intp)
    splitter = StratifiedKFold(_SHIFT_FOLDS, shuffle=True, random_state=rng.randint(2**31 - 1))
    for k, (_, rows) in enumerate(splitter.split(features, domain)):
        folds[rows] = k
    if not sample.groups.independent:  # whose samples stay together
        folds[:n] = (sample.groups.codes + folds[n]) % _SHIFT_FOLDS
    fit = (estimator, features, domain, folds)
    ones = np.ones(n + n_target, dtype=np.intp)
    odds = _cross_fitted_odds(*fit, ones)
    if roc_auc_score(domain, odds) >= _SEPARATE:
        reason = "separates source and target: no source sample is like the target."
        remedy = "Collect labels in the target, or leave out features that only name the place."
        raise InputError("X", reason, remedy)
    beyond = float(np.mean(odds[n:] > odds[:n].max()))
    if beyond > _BEYOND:
        _warn(
            f"{beyond:.0%} of the target samples are unlike any source sample (by X). Nothing is "
            "known of the error there. Collect labels for such cases."
        )
    counts = [np.concatenate(_drawn_counts(seed, sample, n_target)) for seed in seeds]
    sources = [sample.weight * odds[:n]]
    sources += [sample.weight * count[:n] * _cross_fitted_odds(*fit, count)[:n] for count in counts]
    targets = [np.ones(n_target), *(count[n:] for count in counts)]
    return _Weights(np.array(sources), np.array(targets))


def _cross_fitted_odds(estimator, features, domain, folds, count) -> np.ndarray:
    """Odds of target against source of all samples, each by a fit to the other folds."""
    odds = np.empty(len(domain))
    for k in range(_SHIFT_FOLDS):
        rows = np.repeat(np.arange(len(domain)), np.where(folds == k, 0, count))
        fitted = clone(estimator).fit(features[rows], domain[rows])
        proba = fitted.predict_proba(features[folds == k])[:, 1]
        odds[folds == k] = proba / np.maximum(1 - proba, 1e-12)
        odds[folds == k] *= np.mean(domain[rows] == 0) / np.mean(domain[rows] == 1)
    return odds


def _fit_of_predictions(source, target, weights: _Weights) -> float:
    """P-value that the weighted source has the target's distribution of each class's probability.

    The largest difference of distribution functions is compared with how far it moves in resamples.
    """
    differences = []
    for of_source, of_target in zip(source.T, target.T, strict=True):
        edges = np.unique(np.quantile(of_target, np.arange(1, _SHIFT_CELLS) / _SHIFT_CELLS))
        shares = [
            mass @ (values[:, None] <= edges) / mass.sum(axis=1, keepdims=True)
            for mass, values in ((weights.source, of_source), (weights.target, of_target))
        ]
        differences.append(shares[0] - shares[1])
    moves = np.concatenate(differences, axis=1)
    observed = np.abs(moves[0]).max()
    drawn = np.abs(moves[1:] - moves[0]).max(axis=1)
    return float((1 + np.count_nonzero(drawn >= observed)) / (1 + len(drawn)))


class _ShiftedLimits(ErrorLimits):
    """Limits under estimated weights, by the weights of resamples (n_resamples, n_samples)."""

    def __init__(self, sample: Sample, resampled: np.ndarray):
        super().__init__(sample)
        self.resampled, self.widths_differ = resampled, True

    def _variance(self, signs, sums) -> float:
        """The variance of the mean of the residuals times signs over resamples.

        It is enlarged as the variance of Student's distribution, since resamples are few.
        """
        n, total = len(self.resampled), self.resampled.sum(axis=1)
        means = np.zeros(n)
        for part, share, sign in zip(self.parts, self.shares, signs, strict=True):
            signed = self.resampled[:, part.rows] @ (part.residuals * sign)
            means += signed / total * (1.0 if self.divided else share)
        return float(means.var(ddof=1)) * (n - 1) / (n - 3)
