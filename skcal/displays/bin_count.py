"""The binned calibration error against the number of bins."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import KW_ONLY, dataclass
from functools import partial
from numbers import Integral
from typing import Any, Self

import numpy as np
from sklearn.utils import check_random_state

from skcal._show import percent
from skcal._sklearn_compat import Interval, StrOptions, validate_params
from skcal.displays import draw
from skcal.displays.base import DRAWN, Display, of_cv_results, of_estimator
from skcal.hypothesis_tests import monte_carlo_test
from skcal.metrics import expected_calibration_error
from skcal.sample import Sample, read_sample, refuse_groups

N_BINS = (1, 2, 3, 5, 8, 12, 15, 20, 30, 50, 80, 120)


@dataclass(eq=False, repr=False)
class BinCountDisplay(Display):
    """Binned calibration error against the number of bins, with its biases.

    Make it with :meth:`from_predictions` or :meth:`from_estimator`, which compute all numbers.

    Parameters
    ----------
    n_bins : ndarray of shape (k,)
        The numbers of bins.
    error : ndarray of shape (k,)
        Root mean squared calibration error, ``expected_calibration_error(norm=2)``.
    debiased_error : ndarray of shape (k,)
        The errors with ``debias=True``; 0 where the square is negative.
    null_mean, null_low, null_high : ndarray of shape (k,)
        The error of calibrated predictions: mean and pointwise band.
    notion, strategy : str
        The kind of calibration, and how the bins were made.
    n_samples : int
        Number of predictions that were binned.
    confidence_level : float, default=0.95
        The confidence level of the limits.
    name : str, default=None
        Name of the classifier, for the title. None: no name.

    Attributes
    ----------
    ax_, figure_ : matplotlib axes and figure
        Set by :meth:`plot`, as are the following.
    line_, debiased_line_, null_line_ : lines
    band_ : band of calibrated predictions

    See Also
    --------
    skcal.metrics.expected_calibration_error
    skcal.displays.RiskDisplay : the number of bins that the risk chooses.

    Notes
    -----
    Few bins average gaps of both signs away: the debiased error rises with their number until the
    bins are fine enough. Many bins add noise: the error rises with them even if the predictions are
    calibrated, as the band shows. The noise can be subtracted only for norm 2, and not in bins with
    one sample. If most bins have one sample, the debiased error means little. About 5 s for a
    million samples.

    References
    ----------
    .. [1] Kumar, Liang & Ma, Verified uncertainty calibration, NeurIPS 2019.
    .. [2] Roelofs et al., Mitigating bias in calibration error estimation, AISTATS 2022.

    Examples
    --------
    >>> from skcal.datasets import make_tempered
    >>> from skcal.displays import BinCountDisplay
    >>> data = make_tempered(500, temperature=1.0, random_state=0)
    >>> display = BinCountDisplay.from_predictions(
    ...     data.labels, data.proba, n_bins=[1, 10, 100], random_state=0, plot=False
    ... )
    >>> display.error.round(2)
    array([0.01, 0.03, 0.14])
    """

    n_bins: np.ndarray
    error: np.ndarray
    debiased_error: np.ndarray
    null_mean: np.ndarray
    null_low: np.ndarray
    null_high: np.ndarray
    _: KW_ONLY
    notion: str
    strategy: str
    n_samples: int
    confidence_level: float = 0.95
    name: str | None = None
    _size = (8.0, 4.2)

    def _facts(self):
        numbers = f"{draw.counted(len(self.n_bins), 'number')} of {self.strategy} bins"
        return [f"n = {self.n_samples:,}", self.notion, numbers]

    @classmethod
    @validate_params(
        {
            **DRAWN,
            "n_bins": ["array-like"],
            "strategy": [StrOptions({"uniform", "quantile"})],
            "n_resamples": [Interval(Integral, 19, None, closed="left")],
        },
        prefer_skip_nested_validation=False,
    )
    def from_predictions(
        cls,
        y_true,
        y_proba=None,
        *,
        notion="auto",
        n_bins=N_BINS,
        strategy="uniform",
        confidence_level=0.95,
        n_resamples=99,
        sample_weight=None,
        labels=None,
        pos_label=None,
        from_logits=False,
        random_state=0,
        name=None,
        ax=None,
        plot=True,
    ) -> Self:
        """Compute and plot the errors.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,), or Sample
            Labels.
        y_proba : array-like of shape (n_samples,) or (n_samples, n_classes), default=None
            Probabilities in [0, 1]; rows sum to 1. A 1-D array holds P(positive class).
            Left out beside a :class:`skcal.Sample`.
        notion : {"auto", "binary", "confidence", "top-label"}, default="auto"
            "auto" is "binary" for one and two columns and "confidence" for more. The classes of
            "classwise" have no joint law under calibration: pass them one by one.
        n_bins : array-like of int, default=(1, 2, 3, 5, 8, 12, 15, 20, 30, 50, 80, 120)
            The numbers of bins.
        strategy : {"uniform", "quantile"}, default="uniform"
        confidence_level : float in (0, 1), default=0.95
            The confidence level of the band.
        n_resamples : int ≥ 19, default=99
            Outcomes redrawn from the predictions, as by
            :func:`~skcal.hypothesis_tests.monte_carlo_test` with the same seed.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples.
        labels : array-like of shape (n_classes,), default=None
            The class of each column; for 1-D predictions (negative class, positive class).
        pos_label : label, default=None
            The positive class of 1-D predictions, or of two columns for "binary"; otherwise an
            error.
        from_logits : bool, default=False
            Whether ``y_proba`` holds logits; probabilities are computed from them without loss of
            precision.
        random_state : int, RandomState instance or None, default=0
            The seed of the draws.
        name : str, default=None
            The name of the classifier, for the title.
        ax : matplotlib axes, default=None
            None makes a figure.
        plot : bool, default=True
            False computes only the numbers, without matplotlib.

        Returns
        -------
        display : BinCountDisplay
        """
        question = notion, sample_weight, labels, pos_label, from_logits
        sample = read_sample(y_true, y_proba, *question, groups=None, scalar=True)
        _require_one_law(sample)
        refuse_groups(sample.groups, "BinCountDisplay", "Use ReliabilityDisplay.")
        n_bins = _check_n_bins(n_bins)
        binned = partial(expected_calibration_error, sample, strategy=strategy, norm=2)
        error, debiased = (
            np.array([binned(n_bins=int(number), debias=debias) for number in n_bins])
            for debias in (False, True)
        )
        null = _null_errors(sample, n_bins, strategy, n_resamples, random_state)
        tail = (1 - confidence_level) / 2
        display = cls(
            n_bins,
            error,
            debiased,
            null.mean(axis=0),
            *np.quantile(null, [tail, 1 - tail], axis=0),
            notion=sample.notion,
            strategy=strategy,
            n_samples=len(sample.codes),
            confidence_level=confidence_level,
            name=name,
        )
        return display.plot(ax=ax) if plot else display

    from_estimator = of_estimator(from_predictions)
    from_cv_results = of_cv_results(from_predictions)

    def _draw(self, axes, name, kwargs):
        [ax] = axes
        label = f"{percent(self.confidence_level)} if calibrated"
        band = self.n_bins, self.null_low, self.null_high
        self.band_ = draw.band(ax, *band, draw.ORANGE, 0.2, label)
        dashed = {"color": draw.ORANGE, "linestyle": "--", "label": "mean if calibrated"}
        [self.null_line_] = ax.plot(self.n_bins, self.null_mean, **dashed)
        look = {"color": draw.BLUE, "marker": "o", "markersize": 8, "label": "observed"}
        [self.line_] = ax.plot(self.n_bins, self.error, **draw.styled(kwargs, **look))
        [self.debiased_line_] = ax.plot(
            self.n_bins, self.debiased_error, "s-", color=draw.GREEN, markersize=4, label="debiased"
        )
        ax.set(xscale="log", xlabel=f"number of {self.strategy} bins", xticks=_ticks(self.n_bins))
        ax.xaxis.set_major_formatter("{x:,.0f}")
        ax.set_xticks([], minor=True)
        ax.set(ylabel=draw.side_label(ax, "RMS calibration error in bins"), ylim=(0, None))
        title = draw.titled(name, f"{self.notion}, n = {self.n_samples:,}")
        draw.set_title(ax, title)
        draw.legend_below(ax)


def _require_one_law(sample: Sample):
    if sample.notion.of_labels:
        raise ValueError(
            f"notion={sample.notion!r} says nothing of how several labels are drawn together. Use "
            "ReliabilityDisplay."
        )
    if not sample.notion.joint_law:
        raise ValueError(
            f"notion={sample.notion!r} says nothing of how the outcomes of several classes are "
            "drawn together. Pass y_true == labels[k] and y_proba[:, k] for a class k, or use "
            "notion='top-label'."
        )


def _check_n_bins(n_bins) -> np.ndarray:
    values = np.asarray(n_bins)
    if values.ndim != 1 or not len(values) or values.dtype.kind not in "iu" or values.min() < 1:
        raise ValueError(f"n_bins={n_bins!r} must be a list of integers from 1.")
    return np.unique(values)


def _null_errors(sample, n_bins, strategy, n_resamples, random_state) -> np.ndarray:
    """Errors (n_resamples, k) with outcomes redrawn from the predictions."""
    squared: dict[str, Any] = {"norm": 2, "root": False, "strategy": strategy}
    squared["n_resamples"] = n_resamples
    rng, nulls = check_random_state(random_state), list[Any]()
    for number in n_bins.tolist():
        test = monte_carlo_test(sample, n_bins=number, random_state=deepcopy(rng), **squared)
        nulls.append(test.null_distribution)
    return np.sqrt(nulls).T


def _ticks(n_bins):
    """At most eight of the numbers, so that their labels do not touch."""
    apart = [n_bins[0]]
    for value in n_bins[1:]:
        if np.log(value / apart[-1]) > np.log(n_bins[-1] / n_bins[0]) / 8:
            apart.append(value)
    return apart
