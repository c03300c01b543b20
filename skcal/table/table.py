"""A table of predictions: sums in fine cells, from which limits and tests are computed."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from skcal._bins import equal_intervals, given_edges
from skcal._labels import GivenColumns, columns_of_labels, refuse_another_order, sorted_labels
from skcal._rounding import RESOLUTION
from skcal._sklearn_compat import validate_parameter_constraints
from skcal._validation import InputError, naming, row_blocks
from skcal.sample import Sample, Summed, error_of_shares, is_of_labels, refuse_lazy
from skcal.table import frames
from skcal.table.counted import counted_sample
from skcal.table.reading import COUNTED, Columns, as_rows, is_tensor, read_weights, reduced
from skcal.table.sums import Places, Products, Sums, count

_N_BINS = 15
_BLOCK, _FEWEST = 2**17, 2**10  # predictions that are counted at a time, and fewest rows


class CalibrationTable(Summed):
    """Labels and predictions as sums in fine cells: they add up, and answer questions.

    Fill it batch by batch, in every worker or by a GROUP BY, and add tables with ``+``. Its size
    does not grow with the number of samples. Pass it in place of ``y_true`` to
    :func:`~skcal.calibration_error_interval`, :func:`~skcal.calibration_test`,
    :func:`~skcal.scan_test`, :func:`~skcal.equivalence_test`,
    :func:`~skcal.metrics.expected_calibration_error` and others that sums answer.
    :class:`~skcal.displays.ReliabilityDisplay` draws it. Functions that need rows refuse it by
    name.

    Parameters
    ----------
    notion : {"auto", "binary", "confidence", "top-label", "classwise", "multi-label"}, \
default="auto"
        The kind of calibration that is counted; "auto" is "binary" for one and two columns and
        "confidence" for more.
    edges : array-like of shape (n_bins + 1,), default=None
        Increasing, from 0 to 1: edges of bins in which binned errors are exact. None: 15 bins of
        equal width. As everywhere a bin holds left < p ≤ right.
    labels : array-like of shape (n_classes,), default=None
        The class of each column; for 1-D predictions (negative class, positive class). None: the
        classes of the first call. Pass them if that may lack a class, unless labels are the column
        numbers.
    pos_label : label, default=None
        The positive class of 1-D predictions, or of two columns for "binary"; an error otherwise.
    resolution : float in (0, 1], "auto" or None, default="auto"
        The step in which predictions are rounded, as in :class:`skcal.Sample`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Classes in the order of the columns, of two (negative, positive).
    notion_ : Notion
        The kind of calibration that "auto" chose.
    n_samples_seen_ : int
        Samples of positive weight.
    edges : ndarray of shape (n_bins + 1,)
    notions : tuple of str
        The kinds of calibration that a table can count.

    See Also
    --------
    skcal.Sample : Labels and predictions that fit into memory.
    skcal.table.cells : The cell of each prediction.

    Notes
    -----
    Cells are at most p / 512 wide below 1/2, and (1 - p) / 512 above; 0, 1/2 and 1 have cells of
    their own. For each cell, bin, outcome and group a row holds the number of samples n, and Σ w,
    Σ w², Σ w p, Σ w p², Σ w y and Σ w y². Binned errors agree with those of the samples to
    rounding. Upper limits are up to 4 % below those of the samples, and 0.3 % above, since errors
    change their sign between cells only. Lower limits of 10,000 samples agree to 2 %, with weights
    to 8 % and with shares to 4 %; those of fewer samples may differ by more where they are close
    to 0. Neither misses the error more often than the samples do (:ref:`levels-of-tables`).
    Up to 32 classes sums of products tell which classes err together. Of more classes, and of a
    table from a frame, upper limits of class-wise errors are up to 12 % wider. Those of multi-label
    errors from a frame are 17 % wider with three labels, and 29 % with ten.

    Samples of a row are exchangeable. For a lower limit a fixed seed divides them among folds, up
    to 2²⁰ samples the same as in memory, so the order of samples, calls and tables does not matter.
    With ``groups`` a row belongs to one group, and questions cost as much as for samples.

    A call that raises leaves the table as it was. At most 24,593 cells of a class hold samples, in
    some 3 MB; more than 2 GiB of cells are refused.

    Examples
    --------
    >>> import numpy as np
    >>> import skcal
    >>> rng = np.random.default_rng(0)
    >>> days = [skcal.CalibrationTable() for _ in range(3)]
    >>> for day in days:
    ...     p = rng.uniform(size=1000)
    ...     _ = day.update(rng.uniform(size=1000) < p**1.3, p)
    >>> week = sum(days)
    >>> week
    <CalibrationTable of 3,000 samples, notion='binary'>
    >>> print(skcal.calibration_error_interval(week).sentence())
    calibration error 0.063 (at least 0.049, at most 0.083, each with 95 % confidence)
    """

    notions: ClassVar[tuple[str, ...]] = COUNTED

    def __init__(
        self,
        notion: Any = "auto",
        *,
        edges: ArrayLike | None = None,
        labels: ArrayLike | None = None,
        pos_label: Any = None,
        resolution: float | str | None = "auto",
    ):
        validate_parameter_constraints(RESOLUTION, {"resolution": resolution}, "CalibrationTable")
        self._intervals = equal_intervals(_N_BINS) if edges is None else given_edges(edges)
        self.notion, self.labels, self.pos_label = notion, labels, pos_label
        self.resolution = resolution
        self._given_columns: Columns | None = None  # which reset() keeps
        self.reset()

    def reset(self) -> Self:
        """Forget all samples; columns and classes stay.

        Returns
        -------
        self : CalibrationTable
        """
        self._columns: Columns | None = self._given_columns
        self._sums: Any = None
        self._group_labels: Any = None
        self._joint, self._of_shares, self._repeats = 0.0, False, True
        self._products: Any = None  # of two classes, where they are known
        self._asked: dict[Any, Sample] = {}
        return self

    def __repr__(self) -> str:
        notion = self.notion if self._columns is None else self._columns.notion
        return f"<CalibrationTable of {self.n_samples_seen_:,} samples, notion={str(notion)!r}>"

    @property
    def edges(self) -> np.ndarray:
        """Edges of the bins in which binned errors are exact."""
        return self._intervals.edges

    @property
    def n_samples_seen_(self) -> int:
        """Samples of positive weight."""
        if self._sums is None:
            return 0
        n, problem = self._sums.values[0], self._sums.parts()[1]
        of_sample = problem == 0 if self._known.notion.shares_samples else slice(None)
        return int(n[of_sample].sum())

    @property
    def classes_(self) -> np.ndarray:
        """Classes in the order of the columns, of two (negative, positive)."""
        return np.array(self._known.classes)

    @property
    def notion_(self) -> Any:
        """The kind of calibration that is counted."""
        return self._known.notion

    @property
    def _known(self) -> Columns:
        if self._columns is None:
            remedy = "Call update(y_true, y_proba) first."
            raise InputError("the CalibrationTable", "holds no samples.", remedy)
        return self._columns

    # Filling

    def update(
        self,
        y_true: ArrayLike,
        y_proba: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        from_logits: bool = False,
        ignore_label: Any = None,
    ) -> Self:
        """Count more samples.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,) or (n_samples, n_classes)
            Labels, or shares or votes of the classes. For "multi-label" 0 or 1 for each label.
            Beside images (N, H, W).
        y_proba : array-like of shape (n_samples,) or (n_samples, n_classes)
            Probabilities in [0, 1]; rows sum to 1. A 1-D array holds P(positive class). No rows
            change nothing. Of images (N, C, H, W). Tensors of torch may be on any device; for
            "confidence" and "top-label" they are reduced there, without a copy.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights, which are not rescaled, so that calls agree; those of 0 do not count.
        groups : array-like of shape (n_samples,), default=None
            Samples of one group may depend on each other, also those of several calls. All calls
            pass groups, or none does.
        from_logits : bool, default=False
            Whether ``y_proba`` holds logits.
        ignore_label : label, default=None
            Samples or pixels with this label are left out.

        Returns
        -------
        self : CalibrationTable

        Raises
        ------
        ValueError
            If the input is not valid, or columns or classes differ from those of earlier calls.
        """
        if is_of_labels(self.notion):
            y_proba = columns_of_labels(y_proba, "y_proba")
        given = {"y_true": y_true, "y_proba": y_proba, "sample_weight": sample_weight}
        if not isinstance(from_logits, bool | np.bool_):
            raise InputError("from_logits", f"is {from_logits!r}.", "Pass True or False.")
        if np.ndim(ignore_label):
            raise InputError("ignore_label", "is no single label.", "Pass one label, such as -100.")
        for name, value in given.items():
            if isinstance(value, Sample | Summed):
                reason = f"is a {type(value).__name__}."
                raise InputError(name, reason, "Pass arrays, or add up tables with +.")
        refuse_lazy({**given, "groups": groups})
        refuse_another_order({**given, "groups": groups})
        part = self._empty()
        if sample_weight is None and groups is None and part._reduces(y_true, y_proba):
            part._count_reduced(*reduced(y_true, y_proba, from_logits, ignore_label))
            return self._merge(part)
        if ignore_label is not None and (sample_weight is not None or groups is not None):
            remedy = "Leave those samples out of all arguments."
            raise InputError("ignore_label", "is not for weights and groups.", remedy)
        y_true, y_proba = as_rows(y_true, y_proba, ignore_label)
        part._count(y_true, y_proba, sample_weight, groups, from_logits)
        return self._merge(part)

    def _reduces(self, y_true, y_proba) -> bool:
        """Whether single columns of tensors suffice, which then fix classes by their number."""
        if not (is_tensor(y_true) and is_tensor(y_proba)) or y_proba.ndim not in (2, 4):
            return False
        columns, n_classes = self._columns, y_proba.shape[1]
        if columns is None:
            columns = Columns.named(self.notion, range(n_classes))
        given = columns.labels if self.labels is None else np.asarray(self.labels).tolist()
        numbered = given == columns.labels == list(range(n_classes))
        counted = str(columns.notion) in ("confidence", "top-label")
        if not (numbered and counted) or columns.shape != (n_classes,):
            return False
        self._columns = columns
        return True

    def _count_reduced(self, confidence, hit, top) -> None:
        """Count largest probabilities and whether they were right."""
        columns = self._known
        self._sums = Sums(columns.n_problems, self._intervals.n_bins)
        places = Places.of(self._intervals, confidence.dtype)
        for rows in row_blocks(len(confidence), 1, most=_BLOCK):
            problem = 0 if columns.n_problems == 1 else top[rows]
            count(self._sums, problem, places, confidence[rows], hit[rows], None, None)

    def _empty(self) -> CalibrationTable:
        """Return a table of the same columns without samples."""
        part = CalibrationTable(
            self.notion,
            edges=self.edges,
            labels=self.labels,
            pos_label=self.pos_label,
            resolution=self.resolution,
        )
        part._intervals = self._intervals
        part._given_columns = part._columns = self._columns
        return part

    def _count(self, y_true, y_proba, sample_weight, groups, from_logits) -> None:
        with naming("y_true"):
            y_true = y_true if hasattr(y_true, "__len__") else np.asarray(y_true)
            n_labels = len(y_true)
        with naming("y_proba"):
            y_proba = y_proba if hasattr(y_proba, "__len__") else np.asarray(y_proba)
            n = len(y_proba)
        if not n and not n_labels:
            return
        if n != n_labels:
            raise InputError(
                "y_true", f"has {n_labels} rows, y_proba {n}.", "Pass as many of each."
            )
        if self._columns is None:
            question = self.notion, self.labels, self.pos_label, from_logits
            self._columns = Columns.of(y_true, y_proba, *question)
        self._sums = Sums(self._columns.n_problems, self._intervals.n_bins)
        if self._columns.pairs_known and groups is None:
            self._products = Products.empty(self._columns.n_problems).values
        weight, codes = read_weights(sample_weight, n), None
        self._repeats = weight is None or frames.are_counts(weight)
        if groups is not None:
            self._group_labels, codes = sorted_labels(groups, "groups")
            if len(codes) != n:
                raise InputError("groups", f"has {len(codes)} rows, not {n}.")
        places = {
            kind: Places.of(self._intervals, np.dtype(kind)) for kind in ("float32", "float64")
        }
        whole = not (isinstance(y_proba, np.ndarray) and y_proba.ndim in (1, 2))
        most = max(_FEWEST, _BLOCK // max(1, np.shape(y_proba)[1] if np.ndim(y_proba) == 2 else 1))
        y_true = y_true if whole else np.asanyarray(y_true)
        for rows in [slice(0, n)] if whole else row_blocks(n, 1, most=most):
            of_rows = [None if part is None else part[rows] for part in (weight, codes)]
            y, p = (y_true, y_proba) if whole else (y_true[rows], y_proba[rows])
            try:
                self._count_block(y, p, of_rows, from_logits, places)
            except InputError as error:
                if rows.start:
                    error.add_note(f"Row 0 is row {rows.start} of the array.")
                raise

    def _count_block(self, y, p, of_rows, from_logits, places) -> None:
        weight, codes = of_rows
        if weight is not None and not weight.all():
            kept = np.flatnonzero(weight)
            y, p, weight = np.asanyarray(y)[kept], np.asanyarray(p)[kept], weight[kept]
            codes = None if codes is None else codes[kept]
            if not len(kept):
                return
        plain = not from_logits and self._known.plain and _plain_outcomes(y, p)
        if plain is not False:
            count(self._sums, 0, places[p.dtype.name], p, plain, weight, codes)
            return
        sample = self._known.read(y, p, weight, from_logits)
        shares = sample.outcomes is not None and not sample.notion.of_labels
        self._of_shares = self._of_shares or shares
        weight = sample.weight if weight is not None or sample.votes is not None else None
        problems, everyone = sample.problems(), np.arange(len(p))
        rows = np.concatenate([everyone[problem.rows] for problem in problems])
        x, delta = (
            np.concatenate([getattr(problem, name)[:, 0] for problem in problems])
            for name in ("features", "residuals")
        )
        outcomes = np.concatenate([problem.outcomes[:, 0] for problem in problems])
        of_problem = np.repeat(np.arange(len(problems)), [len(one.weight) for one in problems])
        of_rows = (None if part is None else part[rows] for part in (weight, codes))
        count(
            self._sums,
            of_problem if len(problems) > 1 else 0,
            places[x.dtype.name],
            x,
            outcomes if shares else outcomes > 0.5,
            *of_rows,
        )
        if self._products is not None:
            weighted = delta if weight is None else np.tile(weight, len(problems)) * delta
            shape = len(problems), len(p)
            Products(self._products, len(problems)).add(x.reshape(shape), weighted.reshape(shape))
        absolute = np.bincount(rows, np.abs(delta), len(p))
        self._joint += float(((absolute * (1.0 if weight is None else weight)) ** 2).sum())

    # Adding up

    def _merge(self, other: CalibrationTable) -> Self:
        if not np.array_equal(self.edges, other.edges):
            reason = f"has {len(other.edges) - 1} bins, this table other {len(self.edges) - 1}."
            raise InputError("other", reason, "Pass the same edges to each CalibrationTable.")
        if other._columns is None:
            return self
        if self._columns is None:
            self._columns = other._columns
        else:
            self._columns.require(other._columns)
        if other._sums is None or not other.n_samples_seen_:
            return self
        if self._sums is None:
            self._sums, self._group_labels = other._sums.copy(), other._group_labels
            self._products = other._products
        else:
            known = self._products is not None and other._products is not None
            self._products = self._products + other._products if known else None
            sums = other._sums.copy()
            self._join_groups(other, sums)
            self._sums.merge(sums)
        self._given_columns = self._columns
        self._joint += other._joint
        self._repeats = self._repeats and other._repeats
        self._of_shares = self._of_shares or other._of_shares
        self._asked = {}
        return self

    def _join_groups(self, other: CalibrationTable, sums: Sums) -> None:
        """Number the groups of both tables alike."""
        ours, theirs = self._group_labels, other._group_labels
        if (ours is None) != (theirs is None):
            reason = "are given for some samples only."
            raise InputError("groups", reason, "Pass groups for all samples or for none.")
        if ours is None or np.array_equal(ours, theirs):
            return
        joined, _ = sorted_labels(np.concatenate([ours, theirs]), "groups")
        self._sums.regroup(np.searchsorted(joined, ours))
        sums.regroup(np.searchsorted(joined, theirs))
        self._group_labels = joined

    def __add__(self, other):
        if not isinstance(other, CalibrationTable):
            return NotImplemented
        return self._empty()._merge(self)._merge(other)

    def __radd__(self, other):
        # sum() starts with 0.
        return (
            self._empty()._merge(self) if isinstance(other, int) and other == 0 else NotImplemented
        )

    # Frames and files

    def to_frame(self) -> Any:
        """Return the sums as a pandas data frame, which :meth:`from_frame` reads.

        Returns
        -------
        frame : DataFrame
            A row for each ``cell``, ``bin`` and ``outcome`` (0, 1, or 2 for shares between), of
            several classes each ``problem``, and each ``group`` if there are groups. ``n`` is the
            number of samples; ``w``, ``w2``, ``wp``, ``wp2``, ``wy`` and ``wy2`` are Σ w, Σ w²,
            Σ w p, Σ w p², Σ w y and Σ w y².
        """
        columns = self._known
        sums = (
            Sums(columns.n_problems, self._intervals.n_bins) if self._sums is None else self._sums
        )
        return frames.to_frame(sums, self._group_labels, columns.titles)

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        notion: Any = "binary",
        labels: ArrayLike = (0, 1),
        edges: ArrayLike | None = None,
        resolution: float | str | None = "auto",
    ) -> CalibrationTable:
        """Read what :meth:`to_frame` or a GROUP BY of another engine returned.

        Parameters
        ----------
        frame : DataFrame
            With the columns of :meth:`to_frame`, of pandas, Polars or Arrow. ``w`` and ``w2`` may
            be left out if there are no weights, and ``wy`` and ``wy2`` if there are no shares. Rows
            of the same cell are added up.
        notion : str, default="binary"
            The kind of calibration that was counted.
        labels : array-like of shape (n_classes,), default=(0, 1)
            The classes, of two (negative, positive).
        edges : array-like of shape (n_bins + 1,), default=None
            Edges of the bins that were counted; None: 15 bins of equal width.
        resolution : float in (0, 1], "auto" or None, default="auto"
            The step in which predictions are rounded.

        Returns
        -------
        table : CalibrationTable

        Raises
        ------
        ValueError
            If a column is missing, a cell or a bin is another, or no predictions have such sums.

        Examples
        --------
        >>> from skcal import CalibrationTable
        >>> table = CalibrationTable().update([0, 1, 1], [0.25, 0.25, 0.75])
        >>> frame = table.to_frame()
        >>> frame[["cell", "bin", "outcome", "n", "wp"]]
            cell  bin  outcome  n    wp
        0  11777    3        0  1  0.25
        1  11777    3        1  1  0.25
        2  12801   11        1  1  0.75
        >>> CalibrationTable.from_frame(frame)
        <CalibrationTable of 3 samples, notion='binary'>
        """
        table = cls(notion, edges=edges, labels=labels, resolution=resolution)
        table._columns = table._given_columns = Columns.named(notion, labels)
        read = frames.from_frame(frame, table._intervals, table._columns.titles)
        table._sums, table._group_labels = read
        table._of_shares = bool((table._sums.parts()[4] == 2).any())
        table._repeats = frames.repeats(table._sums)
        notion = table._columns.notion
        table._joint = np.inf  # what classes have in common is not known
        if notion.by_class and notion.shares_samples:
            titles = table._columns.titles
            table._joint = frames.joint_of_classes(table._sums, titles, not notion.of_labels)
        return table

    def to_json(self) -> str:
        """Return everything as JSON, from which :meth:`from_json` continues.

        Returns
        -------
        text : str
        """
        return frames.dump(self)

    @classmethod
    def from_json(cls, text: str) -> CalibrationTable:
        """Read a table; no code in the text is run.

        Parameters
        ----------
        text : str
            What :meth:`to_json` returned.

        Returns
        -------
        table : CalibrationTable

        Raises
        ------
        ValueError
            If the text is cut or not a table's; says what is wrong in it.
        """
        table = cls()
        frames.load(table, text, Columns.from_dict, given_edges)
        columns = table._known
        table.notion, table.labels = columns.notion, columns.labels
        table.pos_label = columns.pos_label
        return table

    # Asking

    def _as_sample(self, notion: Any = "auto", resolution: Any = "auto") -> Sample:
        """Return what functions ask, which remembers the answers until the next call of update."""
        columns = self._known
        if self._sums is None or not len(self._sums.keys):
            remedy = "Call update(y_true, y_proba) first."
            raise InputError("the CalibrationTable", "holds no samples.", remedy)
        step = self.resolution if resolution == "auto" else resolution
        if step not in self._asked:
            grouped = self._group_labels is not None
            together = self._joint, self._products
            given = columns, self._intervals, step, together, grouped, self._of_shares
            self._asked[step] = counted_sample(self._sums, *given)
        return self._asked[step].asked(notion)

    def _for_bets(self) -> tuple[Sample, GivenColumns]:
        """Return labels with counts, or with weights of at most 1, in a group of all together."""
        columns, sums = self._known, self._sums
        votes = self._of_shares and (sums.values[0] != sums.values[1]).any()
        if votes or (sums.parts()[4] == 2).any():
            remedy = "Pass a table of one vote of each sample, drawn at random."
            raise error_of_shares("a monitor", remedy, "X")
        if not self._repeats:
            reason = "of the CalibrationTable may be neither counts nor at most 1."
            remedy = "Pass one that update() counted, of counts or of weights up to 1."
            raise InputError("sample_weight", reason, remedy)
        if self._group_labels is not None:
            sums = sums.within_groups(columns.notion.shares_samples)
        given = columns, self._intervals, None, (np.inf, None), False, False
        return counted_sample(sums, *given), columns.given


def _plain_outcomes(y, p) -> Any:
    """Outcomes 0/1 as they are beside plain probabilities; False where a closer look is needed."""
    if not (isinstance(y, np.ndarray) and isinstance(p, np.ndarray) and type(y) is type(p)):
        return False
    if (
        y.shape != p.shape
        or p.ndim != 1
        or not len(p)
        or p.dtype.name not in ("float32", "float64")
    ):
        return False
    if not (p.min() >= 0 and p.max() <= 1) or (p[0] in (0, 1) and np.isin(p, (0, 1)).all()):
        return False  # which is warned of
    if y.dtype.kind == "f":
        return (y > 0) if ((y == 0) | (y == 1)).all() else False
    if y.dtype.kind in "iu":
        return y if y.min() >= 0 and y.max() <= 1 else False
    return y if y.dtype.kind == "b" else False
