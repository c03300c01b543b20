"""Binned calibration errors and scores of samples that arrive, or are read, in chunks."""

from __future__ import annotations

from copy import deepcopy
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError

from skcal._bins import Intervals, equal_intervals
from skcal._labels import columns_of_labels, refuse_another_order
from skcal._sklearn_compat import validate_params
from skcal._validation import BIN_COUNT, CONFIDENCE_LEVEL, naming
from skcal.metrics.bin_table import tabulate
from skcal.metrics.binned import (
    ERROR_OPTIONS,
    LEAST_SAMPLES,
    expected_error,
    largest_error,
    resolve_distance,
)
from skcal.metrics.bins import BinTable, given_edges, moments_together
from skcal.metrics.chunks import Chunk, Columns, array_chunks, dask_chunks, is_dask
from skcal.metrics.decomposition import SCORES, prediction_variance, scaled_parts, sum_of_parts
from skcal.sample import HoldsNotion, error_of_shares, is_of_labels

_SEEN = "classes_", "notion_", "edges_", "n_samples_seen_"
_FAN_IN = 8  # states of dask chunks that one task merges


class CalibrationAccumulator(HoldsNotion, BaseEstimator):
    """Binned calibration errors and scores, accumulated chunk by chunk.

    The accumulator holds sums over bins, so its size does not depend on the number of samples. It
    returns the values of the functions in :mod:`skcal.metrics` for all samples in the same bins, up
    to rounding. The default of :func:`score_decomposition` is isotonic regression instead.

    Parameters
    ----------
    notion : {"auto", "binary", "confidence", "top-label", "classwise"}, default="auto"
        The kind of calibration; "auto" is "binary" for one and two columns and "confidence" for
        more.
    n_bins : int, default=15
        Number of bins of equal width.
    edges : array-like of shape (n_bins + 1,), default=None
        Increasing, from 0 to 1; used instead of ``n_bins`` for bins that are known beforehand,
        such as the quantiles of an earlier sample. As everywhere a bin holds left < x ≤ right.
    labels : array-like of shape (n_classes,), default=None
        The class of each column; for 1-D predictions (negative class, positive class). None: the
        classes of the first chunk. Pass them if a chunk may lack a class, unless labels are the
        column numbers.
    pos_label : label, default=None
        The positive class of 1-D predictions, or of two columns for "binary"; an error otherwise.
    from_logits : bool, default=False
        Whether predictions are logits; probabilities keep full precision.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    notion_ : str
        The kind of calibration that "auto" chose for these predictions.
    edges_ : ndarray of shape (n_bins + 1,)
    n_samples_seen_ : int
        Samples of positive weight.

    See Also
    --------
    expected_calibration_error, maximum_calibration_error, calibration_bins, score_decomposition

    Notes
    -----
    ``partial_fit`` reads arrays on disk (:class:`numpy.memmap`) in slices. Dask's scheduler sums up
    the chunks of a dask array where they are. Neither is gathered in memory. If you have another
    source, loop over its chunks. Or let workers accumulate their chunks, and add up the
    accumulators in any order with ``+``, ``sum`` or ``merge``. A chunk that is not valid raises,
    and leaves the accumulator as it was.

    Sums are float64, compensated between blocks of some 10⁴ samples: they do not lose digits with
    the number of samples. O(n log n_bins) time; memory O(n_bins n_problems) and that of a chunk.

    Bins that depend on all predictions ("quantile", "sweep", "unique") and notions with vectors
    cannot be accumulated.

    Examples
    --------
    >>> from skcal.datasets import make_dirichlet
    >>> from skcal.metrics import CalibrationAccumulator, expected_calibration_error
    >>> data = make_dirichlet(1000, n_classes=3, model="M2", random_state=0)
    >>> accumulator = CalibrationAccumulator(n_bins=10)
    >>> for start in range(0, 1000, 250):
    ...     rows = slice(start, start + 250)
    ...     _ = accumulator.partial_fit(data.labels[rows], data.proba[rows])
    >>> round(accumulator.expected_calibration_error(), 6)
    0.287017
    >>> round(expected_calibration_error(data.labels, data.proba, n_bins=10), 6)
    0.287017
    >>> accumulator.n_samples_seen_
    1000
    """

    _columns: Any = None  # Columns, once there are samples
    _of_shares = False
    _parameter_constraints: dict = {
        "notion": [str, callable],
        "n_bins": [BIN_COUNT],
        "edges": ["array-like", None],
        "labels": ["array-like", None],
        "pos_label": "no_validation",
        "from_logits": ["boolean"],
    }

    def __init__(
        self,
        notion="auto",
        *,
        n_bins=15,
        edges=None,
        labels=None,
        pos_label=None,
        from_logits=False,
    ):
        self.notion = notion
        self.n_bins = n_bins
        self.edges = edges
        self.labels = labels
        self.pos_label = pos_label
        self.from_logits = from_logits

    # Accumulating

    def partial_fit(self, y_true, y_proba, sample_weight=None) -> Self:
        """Add samples.

        Parameters
        ----------
        y_true : array-like or dask array of shape (n_samples,)
            Labels.
        y_proba : array-like or dask array of shape (n_samples,) or (n_samples, n_classes)
            Probabilities in [0, 1]; rows sum to 1. A 1-D array holds P(positive class). No rows
            change nothing.
        sample_weight : array-like or dask array of shape (n_samples,), default=None
            A weight of 2 counts as a repeated row.

        Returns
        -------
        self : CalibrationAccumulator

        Raises
        ------
        ValueError
            If predictions, labels or weights are not valid, or columns or classes differ from
            earlier chunks. Also if the chunks of dask arrays differ. Then nothing is added.
        """
        self._validate_params()
        if is_of_labels(self.notion):
            y_proba = columns_of_labels(y_proba, "y_proba")
        part = self._empty()
        if any(is_dask(array) for array in (y_true, y_proba, sample_weight)):
            part = _accumulate_dask(part, dask_chunks(y_true, y_proba, sample_weight))
        else:
            refuse_another_order({"y_proba": y_proba, "sample_weight": sample_weight})
            part._read(list(array_chunks(y_true, y_proba, sample_weight)))
        return self.merge(part)

    def _empty(self) -> CalibrationAccumulator:
        """Return an accumulator of the same columns without samples."""
        part = clone(self)
        part._columns = self._columns
        return part

    def _read(self, chunks: list[Chunk]) -> None:
        """Check and add arrays; what raises leaves sums that no one uses."""
        with naming("y_true"):
            if all(np.shape(chunk.y_true) == (0,) and not len(chunk.y_proba) for chunk in chunks):
                return
        for chunk in chunks:
            try:
                if self._columns is None:
                    options = self.notion, self.labels, self.pos_label, self.from_logits
                    self._columns = Columns.of(chunks, *options)
                sample = self._columns.read(*chunk[:3])
            except ValueError as error:
                raise ValueError(" ".join([str(error), chunk.place]).strip()) from error
            if not hasattr(self, "_table"):
                intervals = self._intervals()
                self.classes_, self.notion_ = sample.classes, sample.notion
                self.edges_, self.n_samples_seen_ = intervals.edges, 0
                self._table = BinTable(intervals, sample.notion)
            self._of_shares = self._of_shares or sample.outcomes is not None
            self._table.add(sample)
            self.n_samples_seen_ += len(sample.proba)

    def _intervals(self) -> Intervals:
        if self.edges is None:
            return equal_intervals(self.n_bins)
        return given_edges(self.edges)

    def merge(self, other) -> Self:
        """Add the samples of another accumulator.

        Parameters
        ----------
        other : CalibrationAccumulator
            An accumulator with the same bins, notion and classes; it is left as it is.

        Returns
        -------
        self : CalibrationAccumulator

        Raises
        ------
        ValueError
            If bins, notions, columns or classes differ; then nothing is added.
        """
        if not isinstance(other, CalibrationAccumulator):
            raise TypeError(f"A CalibrationAccumulator cannot merge a {type(other).__name__}.")
        if not np.array_equal(self._current_edges(), other._current_edges()):
            raise ValueError("The accumulators have different bins: n_bins or edges.")
        if not hasattr(other, "_table"):
            return self
        if not hasattr(self, "_table"):
            options = self.notion, self.labels, self.pos_label, self.from_logits
            other._columns.require_options(*options)
            for name in ("_columns", "_table", "_of_shares", *_SEEN):
                setattr(self, name, deepcopy(getattr(other, name)))
            return self
        self._columns.require(other._columns)
        self._table.merge(other._table)
        self._of_shares = self._of_shares or other._of_shares
        self.n_samples_seen_ += other.n_samples_seen_
        return self

    def _current_edges(self) -> np.ndarray:
        return self.edges_ if hasattr(self, "_table") else self._intervals().edges

    def __add__(self, other):
        if not isinstance(other, CalibrationAccumulator):
            return NotImplemented
        return deepcopy(self).merge(other)

    def __radd__(self, other):
        # sum() starts with 0.
        return deepcopy(self) if isinstance(other, int) and other == 0 else NotImplemented

    # Reading

    def _moments(self):
        if not hasattr(self, "_table"):
            raise NotFittedError(f"This {type(self).__name__} has seen no samples yet.")
        if not self.n_samples_seen_:
            raise ValueError("No sample of positive weight has been seen.")
        return self._table.moments()

    @validate_params(ERROR_OPTIONS)
    def expected_calibration_error(self, *, norm=1, debias=False, average="sum", root=True):
        """Binned calibration error, as :func:`skcal.metrics.expected_calibration_error`.

        Parameters
        ----------
        norm : float in [1, inf], default=1
            The power q: 1 is ECE, 2 the root mean squared calibration error, ``inf`` the maximum.
        debias : bool or "labels", default=False
            Whether, for ``norm=2``, to subtract the estimated variance of each bin's mean residual,
            or of the labels.
        average : {"sum", "macro", "micro"} or None, default="sum"
            The average over the classes of "classwise" and "top-label" and over labels.
        root : bool, default=True
            False returns the q-th power.

        Returns
        -------
        error : float, or ndarray of shape (n_classes,) for ``average=None``
        """
        distance, moments = resolve_distance("auto", norm, debias), self._moments()
        if average == "micro" and len(moments) > 1:
            if debias:
                raise ValueError(
                    "average='micro' is debiased where all samples are seen at once: use "
                    "skcal.metrics.expected_calibration_error."
                )
            moments = [moments_together(moments)]
        if debias == "labels" and self._of_shares:
            raise error_of_shares("debias='labels'", "Use debias=True.")
        return expected_error(moments, norm, debias, distance, average, root)

    @validate_params({"min_samples": LEAST_SAMPLES})
    def maximum_calibration_error(self, *, min_samples=None):
        """Largest gap of any bin, as :func:`skcal.metrics.maximum_calibration_error`.

        Parameters
        ----------
        min_samples : int, default=None
            Bins with fewer samples (a smaller sum of weights) do not count.

        Returns
        -------
        error : float
        """
        return largest_error(self._moments(), min_samples)

    @validate_params(CONFIDENCE_LEVEL)
    def calibration_bins(self, *, confidence_level=0.95):
        """Table of the bins, as :func:`skcal.metrics.calibration_bins`.

        Parameters
        ----------
        confidence_level : float in (0, 1), default=0.95
            The confidence level of the Clopper-Pearson intervals of the frequencies.

        Returns
        -------
        bins : CalibrationBins
        """
        return tabulate(self._moments(), self.notion_, self.classes_, confidence_level)

    @validate_params(SCORES)
    def score_decomposition(self, *, score="brier"):
        """Proper score in parts, as :func:`skcal.metrics.score_decomposition` in bins.

        That is, with ``strategy="uniform"``; its default, isotonic regression, needs all samples
        at once.

        Parameters
        ----------
        score : {"brier", "log-loss"}, default="brier"
            An outcome with the predicted probability 0 has an infinite log loss. It counts as that
            of 2.2e-16, without a warning.

        Returns
        -------
        parts : ScoreDecomposition
        """
        parts = sum_of_parts(self._moments(), score)
        return scaled_parts(parts, score, self.notion_, len(self.classes_))

    def sharpness(self):
        """Variance of the predictions, as :func:`skcal.metrics.sharpness`.

        Returns
        -------
        variance : float
        """
        return prediction_variance(self._moments())


def _accumulate_dask(
    template: CalibrationAccumulator, chunks: list[Chunk]
) -> CalibrationAccumulator:
    """Accumulate each chunk of dask arrays where it is, and merge the accumulators in a tree."""
    from dask import delayed

    accumulate, combine = delayed(_accumulate, pure=False), delayed(sum, pure=False)
    parts = [accumulate(template, *chunk) for chunk in chunks]
    while len(parts) > 1:
        groups = range(0, len(parts), _FAN_IN)
        parts = [combine(parts[start : start + _FAN_IN]) for start in groups]
    return parts[0].compute()


def _accumulate(template, y_true, y_proba, sample_weight, place) -> CalibrationAccumulator:
    part = template._empty()
    part._read([Chunk(y_true, y_proba, sample_weight, place)])
    return part
