"""The risks that a fitted search holds, as numbers to draw."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skcal._show import format_setting
from skcal.model_selection import CalibrationErrorSearchCV


@dataclass(frozen=True, eq=False)
class RiskCurve:
    """Validation risks of one candidate.

    Attributes
    ----------
    name : str
        The name of the candidate.
    values : ndarray of shape (n_values,)
        The values of the hyperparameter, ascending.
    risk : ndarray of shape (n_values,)
        Mean over folds; the lowest where other parameters vary too.
    above_best : ndarray of shape (n_values,)
        Risk minus the lowest of the search.
    standard_error : ndarray of shape (n_values,)
        The standard errors of ``above_best``, from its values on the folds; 0 for the chosen
        setting.
    chosen : int or None
        Position of the chosen setting.
    """

    name: str
    values: np.ndarray
    risk: np.ndarray
    above_best: np.ndarray
    standard_error: np.ndarray
    chosen: int | None


@dataclass(frozen=True, eq=False)
class CandidateRisk:
    """The best setting of one candidate.

    Attributes
    ----------
    name, setting : str
        The name of the candidate, and its best parameters.
    risk : float
    above_best, standard_error : float
        Paired difference to the best candidate's risk over validation samples, as in
        ``search.comparisons_``.
    chosen, simplest : bool
        Whether it is the chosen one; the simplest that is not significantly worse.
    """

    name: str
    setting: str
    risk: float
    above_best: float
    standard_error: float
    chosen: bool
    simplest: bool


def require_search(name, search):
    """Raise unless it is a fitted search."""
    if not isinstance(search, CalibrationErrorSearchCV):
        raise TypeError(
            f"{name} is {type(search).__name__}. Pass a fitted skcal.CalibrationErrorSearchCV."
        )
    check_is_fitted(search)


def fold_scores(family) -> np.ndarray:
    """Scores of a candidate on each fold (n_folds, n_settings)."""
    names = [key for key in family.results if key.startswith("split") and key.endswith("_score")]
    return np.array([family.results[f"split{k}_test_score"] for k in range(len(names))])


def make_curves(search, param) -> list[RiskCurve]:
    """A curve for each candidate that varies the parameter."""
    having = [family for family in search.families_ if any(param in s for s in family.settings)]
    if not having:
        names = sorted({name for family in search.families_ for s in family.settings for name in s})
        raise ValueError(
            f"param={param!r} is not varied by any candidate. Use one of "
            f"{', '.join(map(repr, names)) or '(none is varied)'}, or None for the candidates."
        )
    best = fold_scores(search.best_family_)[:, search.best_family_.best]
    return [_curve(family, param, search, best) for family in having]


def _curve(family, param, search, best) -> RiskCurve:
    settings = [(k, s[param]) for k, s in enumerate(family.settings) if param in s]
    try:
        values = np.array([float(value) for _, value in settings])
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"param={param!r} of {family.name} has values that are not numbers. Use param=None."
        ) from error
    positions = np.array([k for k, _ in settings])
    # Where other parameters vary too, the best setting for each value.
    rows = np.array(
        [
            positions[values == value][np.argmax(family.scores[positions[values == value]])]
            for value in np.unique(values)
        ]
    )
    excess = best[:, None] - fold_scores(family)[:, rows]
    n_folds = len(best)
    spread = excess.std(axis=0, ddof=1) if n_folds > 1 else np.full(len(rows), np.nan)
    chosen = np.flatnonzero(rows == family.best) if family is search.best_family_ else rows[:0]
    return RiskCurve(
        name=family.name,
        values=np.unique(values),
        risk=-family.scores[rows],
        above_best=-family.scores[rows] - search.best_risk_,
        standard_error=spread / np.sqrt(n_folds),
        chosen=int(chosen[0]) if len(chosen) else None,
    )


def make_candidates(search) -> list[CandidateRisk]:
    """The best setting of each candidate."""
    return [
        CandidateRisk(
            name=family.name,
            setting=format_setting(family.settings[family.best]),
            risk=-float(family.scores.max()),
            above_best=comparison.difference,
            standard_error=comparison.standard_error,
            chosen=family is search.best_family_,
            simplest=family is search.simplest_family_,
        )
        for family, comparison in zip(search.families_, search.comparisons_, strict=True)
    ]
