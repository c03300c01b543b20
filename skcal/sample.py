"""The Sample: labels, predictions, weights and groups, checked once for any number of questions."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, fields
from threading import Lock, RLock
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from skcal._groups import (
    FEW_OF_TESTS,
    INDEPENDENT,
    Groups,
    read_groups,
    warn_of_few_groups,
)
from skcal._labels import (
    Outcomes,
    class_names,
    columns_of_labels,
    is_positive_first,
    is_table,
    read_outcomes,
    refuse_another_order,
    refuse_several_labels,
)
from skcal._matrices import Softmax, hits, two_columns
from skcal._read_as import read_as
from skcal._rounding import RESOLUTION, likely_steps, step_of
from skcal._scores import of_outcomes
from skcal._show import wrapped
from skcal._sklearn_compat import validate_parameter_constraints
from skcal._validation import (
    PLAIN,
    InputError,
    check_logits,
    check_predictions,
    check_weight,
    effective_weights,
    row_blocks,
)
from skcal.notions import NOTIONS, Notion, Problem, make_problems, resolve_notion

_ARRAYS = "proba", "codes", "weight", "classes", "logits", "outcomes", "votes"
_SAME_WEIGHT = 1e-9  # by which weights may differ relatively that count as equal
_LARGE = 100_000  # samples
_REVERSED_FROM = 4.0  # standard errors, by which labels fit worse than shuffled ones
NO_MATTER = object()  # groups, for what is the same whatever they are
_SCALAR_NOTIONS = "'confidence', 'top-label', 'classwise'"


class Source(NamedTuple):
    """Facts about a sample that its numbers do not hold.

    Attributes
    ----------
    asked, pos_label : str, label or None
        The notion and the positive class as they were passed.
    grouped : bool
        Whether groups of several samples were passed.
    columns : sequence of str
        The names of the columns of predictions, if there are any.
    notes : sequence of str
        Sentences of who read the sample, such as from a file.
    left_out : int
        How many samples of weight 0 are left out.
    warned : bool
        Whether there was a warning if groups are few: further questions give none.
    """

    asked: str = "auto"
    pos_label: Any = None
    grouped: bool = False
    columns: Sequence[str] = ()
    notes: Sequence[str] = ()
    left_out: int = 0
    warned: bool = False


@dataclass(frozen=True, eq=False, init=False, repr=False)
class Sample:
    """Labels, predictions, weights and groups that are read once, for any number of questions.

    Metrics, tests, intervals, displays and reports take a Sample in place of ``y_true``; what it
    was read with is not passed again. It remembers the verdict of the calibration test and the
    limits of the calibration error, so that further questions cost less, and agree. ``print`` shows
    how it was read.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,) or (n_samples, n_classes)
        Labels, or shares or votes of the classes; see :doc:`/guide/soft_labels`. For "multi-label"
        and "precision-at-K" 0 or 1, whether each label holds.
    y_proba : array-like of shape (n_samples,) or (n_samples, n_classes)
        Probabilities in [0, 1]; rows sum to 1. A 1-D array holds P(positive class).
    notion : str or callable, default="auto"
        The kind of calibration that questions are about unless they name another, see
        :mod:`skcal.notions`; "auto" is "binary" for one and two columns and "confidence" for more.
        "multi-label" and "precision-at-K" read ``y_true`` in another way, so that only the Sample
        itself takes them.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the samples, not negative. Samples of weight 0 stay in the Sample and do not
        count.
    groups : array-like of shape (n_samples,), default=None
        Samples of one group may depend on each other; None: all are independent. See
        :doc:`/guide/dependent_samples`.
    labels : array-like of shape (n_classes,), default=None
        The class of each column; for 1-D predictions (negative class, positive class).
    pos_label : label, default=None
        The positive class of 1-D predictions, or of two columns for "binary"; an error otherwise.
        It overrules the order of ``labels``.
    from_logits : bool, default=False
        Whether ``y_proba`` holds logits; probabilities keep full precision.
    resolution : float in (0, 1], "auto" or None, default="auto"
        The step to which predictions were rounded, as in
        :func:`~skcal.hypothesis_tests.calibration_test`: "auto" recognises 0.1, 0.05 and 0.01, None
        reads 0 and 1 as certain.

    Attributes
    ----------
    proba : ndarray of shape (n_samples,) or (n_samples, n_classes)
        Probabilities, of two columns those of (negative class, positive class).
    codes : ndarray of shape (n_samples,)
        The column of each label.
    weight : ndarray of shape (n_samples,)
        The weight of each sample; with votes times their number.
    classes : ndarray of shape (n_classes,)
        The class of each column of ``proba``.
    notion : Notion
        The kind of calibration, never "auto".
    logits : ndarray of the shape of ``proba`` or None
        Logarithms of the rows, or logits of 1-D predictions, if logits were passed.
    positive_first : bool
        Whether the positive class was the first of the two columns that were passed.
    groups : Groups
        Which samples depend on each other.
    outcomes : ndarray of shape (n_samples, n_classes) or None
        How much of each class happened, if ``y_true`` held no labels.
    votes : ndarray of shape (n_samples,) or None
        The number of votes of each sample, NaN where it is unknown.
    resolution : float, "auto" or None
        As it was passed.
    source : Source
        Names of the columns, and what else was passed.

    Raises
    ------
    InputError
        Names the argument, the first wrong row and the remedy.

    See Also
    --------
    calibration_report : Everything about one Sample.

    Notes
    -----
    Arrays are read-only views of what was passed. Changing the originals afterwards is undefined:
    what is remembered would be of other data. Two Samples are equal if they are the same object.
    Pickles and ``take`` hold nothing of what is remembered.

    Examples
    --------
    >>> import numpy as np
    >>> import skcal
    >>> rng = np.random.default_rng(0)
    >>> p = np.round(rng.uniform(size=800), 2)
    >>> sick = np.where(rng.uniform(size=800) < p**1.3, "yes", "no")
    >>> sample = skcal.Sample(sick, p, pos_label="yes")
    >>> print(sample)
    800 samples of two classes. The event is label yes (372 of 800, 46.5 %); predictions are its
    probability, in steps of 0.01.
    >>> round(skcal.calibration_error(sample), 3)
    0.052
    >>> skcal.calibration_test(sample).direction
    'too high'
    """

    proba: np.ndarray
    codes: np.ndarray
    weight: np.ndarray
    classes: np.ndarray
    notion: Notion
    logits: np.ndarray | None
    positive_first: bool
    groups: Groups
    outcomes: np.ndarray | None
    votes: np.ndarray | None
    resolution: float | str | None
    source: Source
    holds_rows: ClassVar[bool] = True  # not sums over cells
    knows_classes: ClassVar[bool] = True  # not the largest probabilities only
    sizes: ClassVar[Any] = 1  # how many samples a row is
    effective_sizes: ClassVar[Any] = 1.0  # and as how many of equal weight it counts
    joint_square: ClassVar[float] = np.inf  # of sums: of the residuals of all classes together
    products: ClassVar[Any] = None  # and those of two classes
    _memory: ClassVar[_Memory]  # of each sample

    def __init__(
        self,
        y_true: ArrayLike,
        y_proba: ArrayLike,
        *,
        notion: str | Callable = "auto",
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        labels: ArrayLike | None = None,
        pos_label: Any = None,
        from_logits: bool = False,
        resolution: float | str | None = "auto",
    ):
        question = notion, sample_weight, labels, pos_label, groups, resolution
        self.__setstate__(_read(y_true, y_proba, question, from_logits).__getstate__())

    def __len__(self) -> int:
        return len(self.codes)

    def __str__(self) -> str:
        return wrapped(self.read_as)

    def __repr__(self) -> str:
        return f"<Sample of {len(self):,}, notion={str(self.notion)!r}>"

    @property
    def read_as(self) -> str:
        """How the sample was read: the event, whose the columns are, and what was decided."""
        return read_as(self)

    def __array__(self, *_: Any, **__: Any) -> Any:
        """Refuse to be read as an array, by what takes no sample."""
        raise InputError("a Sample", "is not taken here.", "Pass the arrays that it was read from.")

    def __getstate__(self) -> dict[str, Any]:
        """The parts, without what is remembered."""
        return {part.name: getattr(self, part.name) for part in fields(self)}

    def __setstate__(self, parts: dict[str, Any]) -> None:
        held = vars(self)
        held.update(parts)
        for name in _ARRAYS:
            value = held[name]
            if value is not None and value.flags.writeable:
                held[name] = kept = value.view()
                kept.setflags(write=False)
        held["_memory"] = _Memory()

    @classmethod
    def _of(cls, **parts: Any) -> Sample:
        sample = object.__new__(cls)
        sample.__setstate__(parts)
        return sample

    def _replace(self, **changes: Any) -> Sample:
        """A sample with other parts and an empty memory."""
        return self._of(**{**self.__getstate__(), **changes})

    def once(self, name: Hashable, compute: Callable[[], Any]) -> Any:
        """Return what was computed for this notion under a name, or is now, by one thread.

        Parameters
        ----------
        name : hashable
            What it is called.
        compute : callable
            Called without arguments, the first time; what it raises is not remembered.
        """
        return self._memory((self.notion, name), compute)

    def asked(self, notion: Any = "auto") -> Sample:
        """Return the same samples for a question about another notion.

        Parameters
        ----------
        notion : str or callable, default="auto"
            The kind of calibration; "auto" is that of the Sample. Not "multi-label" or
            "precision-at-K", for which ``y_true`` is read in another way.
        """
        if isinstance(notion, str) and notion == "auto":
            return self
        asked = resolve_notion(notion, self.proba)
        if asked == self.notion:
            return self
        if asked.of_labels or self.notion.of_labels:
            reason = f"is {str(asked)!r}, and the Sample was read for {str(self.notion)!r}."
            raise InputError("notion", reason, f"Pass notion={str(asked)!r} to skcal.Sample.")
        if self.source.pos_label is not None and self.proba.ndim == 2:
            _require_positive_class(self.source.pos_label, self.proba.shape[1], asked)
        return self._remembering(notion=asked, source=self.source._replace(asked=str(asked)))

    @property
    def counted(self) -> Sample:
        """The samples of positive weight."""
        if np.minimum.reduce(self.weight, initial=1.0) > 0:
            return self
        rows = self.weight > 0
        source = self.source._replace(left_out=self.source.left_out + int((~rows).sum()))
        return self._remembering(**self._parts_of(rows, self.weight[rows]), source=source)

    def _remembering(self, **changes: Any) -> Sample:
        """The sample with other parts that gives the same answers."""
        sample = self._replace(**changes)
        object.__setattr__(sample, "_memory", self._memory)
        return sample

    def problems(self) -> list[Problem]:
        """Translate into problems; those of ``top-label`` may hold no samples."""
        problems = make_problems(self.proba, self.happened, self._form, self.weight, self.logits)
        if self.groups.independent:
            return problems
        return [
            part._replace(groups=self.groups.take(part.rows).about(part.features, part.residuals))
            for part in problems
        ]

    @property
    def _form(self) -> Notion:
        """The notion that translates the columns as they are held."""
        return self.notion

    @property
    def effective(self) -> Sample:
        """The sample with weights whose sum is its effective size, in which votes are samples."""
        if (self.weight == 1).all():
            return self
        votes = np.ones(len(self)) if self.votes is None else np.nan_to_num(self.votes, nan=1.0)
        weight = self.weight / np.maximum(votes, 1)
        return self._replace(weight=effective_weights(weight, votes) * votes)

    @property
    def happened(self) -> np.ndarray:
        """The column of each label, (n_samples,), or how much of each class happened."""
        return self.codes if self.outcomes is None else self.outcomes

    @property
    def y_true(self) -> np.ndarray:
        """The outcomes as public functions take them: labels, or shares or counts of votes."""
        if self.outcomes is None:
            return self.classes[self.codes]
        if self.votes is None or np.isnan(self.votes).any():
            return self.outcomes
        return np.rint(self.outcomes * self.votes[:, None])

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments for the same samples of a function of arrays; groups are numbers."""
        weight = self.weight_of_samples
        logits = self.logits is not None
        return {
            "y_true": self.y_true,
            "y_proba": self.logits if logits else self.proba,
            "sample_weight": weight,
            "groups": self.groups.codes if self.source.grouped else None,
            "labels": self.classes,
            "from_logits": logits,
        }

    @property
    def weight_of_samples(self) -> np.ndarray | None:
        """The weights of samples where they differ, as they are without the numbers of votes."""
        weight = self.weight
        if self.votes is not None and not np.isnan(self.votes).any():
            weight = np.divide(weight, self.votes, out=np.zeros(len(weight)), where=weight > 0)
        counted = weight[weight > 0]
        same = len(counted) == len(weight) and np.ptp(counted) <= 1e-12 * counted.max()
        return None if same else weight

    @property
    def effective_size(self) -> float | None:
        """(Σ w)² / Σ w² of the samples, None where weights are equal."""
        weight = self.weight_of_samples
        return None if weight is None else float(weight.sum() ** 2 / (weight @ weight))

    @property
    def mean_predictions(self) -> np.ndarray:
        """The weighted mean of the probabilities of each class, (n_classes,)."""
        return np.average(self.proba_of_classes, axis=0, weights=self.weight)

    @property
    def accuracy(self) -> float:
        """The weighted share of outcomes that are the first most probable class, or of answers."""
        if self.notion.of_answers:
            return float(self.frequencies[-1])
        likely = self.proba_of_classes.argmax(axis=1)
        return float(np.average(hits(self.happened, likely), weights=self.weight))

    @property
    def mean_confidence(self) -> float:
        """The weighted mean of the largest probabilities, or of the confidences of answers."""
        rows = self.proba_of_classes
        confidence = rows[:, -1] if self.notion.of_answers else rows.max(axis=1)
        return float(np.average(confidence, weights=self.weight))

    @property
    def proba_of_classes(self) -> np.ndarray:
        """The probabilities of all classes, (n_samples, n_classes), also of a single column."""
        return two_columns(self.proba)

    @property
    def frequencies(self) -> np.ndarray:
        """The weighted share of each class among the outcomes, (n_classes,)."""
        if self.outcomes is None:
            sums = np.bincount(self.codes, self.weight, len(self.classes))
        else:
            sums = self.weight @ self.outcomes
        return sums / self.weight.sum()

    @property
    def counts(self) -> np.ndarray:
        """How many samples of positive weight have each class, or the sums of their shares."""
        rows = self.weight > 0
        if self.outcomes is None:
            return np.bincount(self.codes[rows], minlength=len(self.classes))
        return self.outcomes[rows].sum(axis=0)

    @property
    def impossible(self) -> np.ndarray:
        """Whether what happened, or a share of it, had the probability 0, (n_samples,)."""
        return of_outcomes((self.proba_of_classes == 0) * 1.0, self.happened) > 0

    @property
    def is_reversed(self) -> bool:
        """Whether shuffled labels would fit the predictions significantly better."""
        rows = self.proba_of_classes
        sizes = np.broadcast_to(self.sizes, len(rows))
        n, n_classes = sizes.sum(), rows.shape[1]
        if self.outcomes is None:
            rates = np.bincount(self.codes, sizes, n_classes) / n
        else:
            rates = sizes @ self.outcomes / n
        gain = of_outcomes(rows, self.happened) - rows @ rates
        mean = sizes @ gain / n
        deviation = np.sqrt(sizes @ (gain - mean) ** 2 / n)
        return bool(mean < -_REVERSED_FROM * max(deviation / np.sqrt(n), 1e-9))

    @property
    def likely_steps(self) -> int | None:
        """The least k of which all single probabilities are multiples of 1 / k, if there is one."""
        return likely_steps(self.problems())

    @property
    def given_classes(self) -> np.ndarray:
        """The class of each column as it was passed; of one-dimensional predictions ``classes``."""
        return self.classes[::-1] if self.positive_first else self.classes

    @property
    def columns(self) -> np.ndarray:
        """Predictions in two dimensions, (n_samples, 1) or (n_samples, n_classes)."""
        return self.proba.reshape(len(self.proba), -1)

    @property
    def typical_share(self) -> float:
        """The share of a sample in the weight of all, 1 / n of equal weights."""
        weight = np.sort(self.weight)
        return float(weight @ weight / weight.sum() ** 2)

    def quantile(self, tail: float) -> float:
        """The upper quantile of a studentised mean.

        Parameters
        ----------
        tail : float
            The probability to lie above it, in (0, 1).
        """
        groups = self.groups.or_singles(self.weight / self.weight.mean())
        return groups.quantile(tail, self.weight)

    def within(self, low: float, high: float) -> Sample:
        """Return the sample with predictions that are moved into an interval.

        Parameters
        ----------
        low, high : float
            Its ends, in [0, 1].
        """
        return self._replace(proba=np.clip(self.proba, low, high), logits=None)

    def take(self, rows: slice | np.ndarray, weight: np.ndarray | None = None) -> Sample:
        """Return some of the samples, with an empty memory.

        Parameters
        ----------
        rows : slice or ndarray
            Numbers of rows, or whether each is taken.
        weight : ndarray of shape (n_rows,), default=None
            Weights other than their own.
        """
        weight, source = self.weight[rows] if weight is None else weight, self.source
        return self._replace(**self._parts_of(rows, weight), source=source._replace(left_out=0))

    def blocks(self, row_bytes: int, most: float = np.inf) -> Iterator[Sample]:
        """Yield the samples in parts, for work that needs arrays of some bytes for each row.

        Parameters
        ----------
        row_bytes : int
            The bytes for a row; a part needs at most scikit-learn's ``working_memory``.
        most : float, default=inf
            The bytes for a part, if fewer are wanted.

        Yields
        ------
        part : Sample
        """
        for rows in row_blocks(len(self.codes), row_bytes, most):
            yield self.take(rows)

    @property
    def default_resamples(self) -> int:
        """How many outcomes a verdict redraws by default: 999, of more than 100,000 samples 199."""
        return 999 if len(self) <= _LARGE else 199

    def require_pairs(self, other: Any, name: str, **beside: Any) -> None:
        """Raise unless another model's sample has the same outcomes, row by row.

        Parameters
        ----------
        other : Sample
            Of the other model.
        name : str
            The name of its argument.
        **beside : object
            Further arguments by name, which may not be given: the Samples were read with theirs.
        """
        refuse_beside_sample(beside)
        if not isinstance(other, Sample):
            remedy = "Pass a skcal.Sample of the second model, too, or arrays of both."
            raise InputError(name, f"is a {type(other).__name__} beside a Sample.", remedy)
        if self.proba.shape != other.proba.shape or (self.classes != other.classes).any():
            shapes = f"shape {other.proba.shape} and classes {other.classes.tolist()[:8]}"
            own = f"{self.proba.shape} and {self.classes.tolist()[:8]}"
            raise InputError(name, f"has {shapes}, not {own}.", "Pass the same classes.")
        apart = {
            "outcome": (self.happened != other.happened).reshape(len(self), -1).any(axis=1),
            "weight": np.abs(self.weight - other.weight) > _SAME_WEIGHT * self.weight,
            "group": _first_of_group(self) != _first_of_group(other),
        }
        for what, rows in apart.items():
            if rows.any():
                reason = f"has another {what} than the first Sample."
                remedy = "Pass two models' predictions of the same outcomes, weights and groups."
                raise InputError(name, reason, remedy, row=int(np.argmax(rows)))

    def _parts_of(self, rows, weight) -> dict[str, Any]:
        return {
            "proba": self.proba[rows],
            "codes": self.codes[rows],
            "weight": weight,
            "logits": None if self.logits is None else self.logits[rows],
            "groups": self.groups.take(rows),
            "outcomes": None if self.outcomes is None else self.outcomes[rows],
            "votes": None if self.votes is None else self.votes[rows],
        }


class _Reduced(Sample):
    """Confidences as ``proba`` (n,), and as ``codes`` whether their classes are right."""

    _form = NOTIONS["binary"]


class _Memory:
    """Results by key, each computed once; other threads wait for the one that computes it."""

    def __init__(self):
        self._lock, self._entries = Lock(), {}

    def __call__(self, key: Hashable, compute: Callable[[], Any]) -> Any:
        with self._lock:
            entry = self._entries.setdefault(key, [RLock()])
        with entry[0]:
            if len(entry) == 1:
                entry.append(compute())
        return entry[1]


class Summed:
    """What holds sums over cells of predictions in place of rows: a table."""

    def _as_sample(self, notion: Any, resolution: Any) -> Sample:
        """Return what answers questions from the sums."""
        raise NotImplementedError

    def __array__(self, *_: Any, **__: Any) -> Any:
        """Refuse to be read as an array, by what takes no table."""
        raise refused_sums("a CalibrationTable")


def refused_sums(name: str) -> InputError:
    """What is raised where rows are needed and a table is passed."""
    reason = "is a CalibrationTable, which holds sums and no rows: rows are needed here."
    return InputError(name, reason, "Pass arrays, or a skcal.Sample of them.")


class HoldsNotion:
    """A base of objects with a notion, which restores it where skops stored it as text."""

    _notion_name: ClassVar[str] = "notion_"

    def __setstate__(self, state: dict[str, Any]) -> None:
        stored = state.get(self._notion_name)
        if type(stored) is str:
            columns = np.empty((0, 2 if stored == "binary" else 10_000))
            state = {**state, self._notion_name: resolve_notion(stored, columns)}
        getattr(super(), "__setstate__", self.__dict__.update)(state)


def read_sample(
    y_true,
    y_proba=None,
    notion="auto",
    sample_weight=None,
    labels=None,
    pos_label=None,
    from_logits: bool | None = None,
    *,
    groups: Any = NO_MATTER,
    resolution: Any = "auto",
    few_groups: int = FEW_OF_TESTS,
    at_least: int = 1,
    names: tuple[str, str] = ("y_true", "y_proba"),
    keep_weightless: bool = False,
    columns: Sequence[str] = (),
    notes: Sequence[str] = (),
    from_sums: bool = False,
    scalar: bool = False,
) -> Sample:
    """Check what a function was given: labels, predictions and weights, once for all that follows.

    Parameters
    ----------
    y_true, y_proba, notion, sample_weight, labels, pos_label, from_logits, resolution
        The arguments as users pass them; ``from_logits=None`` where there is no such option. Of
        shares and votes of the classes, (n_samples, n_classes), those of a sample belong together,
        so that whoever needs independent labels refuses them by :func:`refuse_groups`. Beside a
        :class:`Sample` as ``y_true`` only the notion may be given.
    groups : array-like of shape (n_samples,) or None
        The argument as users pass it. Left out by who estimates the same whatever the groups are:
        those of a :class:`Sample` do not count then.
    few_groups : int
        Below so many groups there is a warning.
    at_least : int
        Fewest samples of positive weight that are needed.
    names : tuple of two str
        What error messages call ``y_true`` and ``y_proba``.
    keep_weightless : bool, default=False
        Whether samples of weight 0 stay, so that rows are those of the arguments.
    columns, notes : sequence of str, default=()
        Names of the columns of predictions and sentences that :class:`Sample` is to tell.
    from_sums : bool, default=False
        Whether sums over cells, of a :class:`Summed`, answer the question; the largest probability
        of each row then answers that about confidences.
    scalar : bool, default=False
        Whether the question is about single probabilities, so that vectors are refused.

    Returns
    -------
    sample : Sample
    """
    together, may_lack_weight = None if groups is NO_MATTER else groups, True
    if isinstance(y_true, Summed):
        if not from_sums:
            raise refused_sums(names[0])
        y_true, notion, resolution = y_true._as_sample(notion, resolution), "auto", "auto"
    if isinstance(y_true, Sample):
        beside = {names[1]: y_proba, "sample_weight": sample_weight, "groups": together}
        beside |= {"labels": labels, "pos_label": pos_label, "from_logits": from_logits or None}
        refuse_beside_sample(beside | {"resolution": None if resolution == "auto" else resolution})
        sample = y_true.asked(notion)
        if groups is NO_MATTER and sample.source.grouped:
            alone = _with_votes(INDEPENDENT, sample.notion, sample.votes, sample.weight)
            sample = sample._replace(groups=alone, source=sample.source._replace(grouped=False))
    elif y_proba is None:
        raise InputError(names[1], "is missing.", "Pass predictions, or a skcal.Sample alone.")
    else:
        question = notion, sample_weight, labels, pos_label, together, resolution
        source = columns, notes
        sample = _read(
            y_true, y_proba, question, from_logits, names, source=source, reduces=from_sums
        )
        may_lack_weight = sample_weight is not None
    if sample.source.grouped and not sample.source.warned:
        warn_of_few_groups(sample.groups, sample.weight, few_groups)
        sample = sample._remembering(source=sample.source._replace(warned=True))
    if may_lack_weight and not keep_weightless:
        sample = sample.counted
    has_others = may_lack_weight and keep_weightless and sample.holds_rows
    n_counted = np.count_nonzero(sample.weight) if has_others else len(sample)
    if n_counted < at_least:
        raise ValueError(
            f"{names[1]} has {n_counted} sample(s) of positive weight, but {at_least} are needed."
        )
    if scalar:
        refuse_vectors(sample)
    return sample


def read_fit(
    estimator: Any, X, y, notion, sample_weight, labels, groups=None, reset: bool = True
) -> Sample:
    """Check what the method of an estimator was given, which has ``pos_label``, ``from_logits``.

    Its number and names of columns are set, or compared (``reset=False``). Samples of weight 0
    stay, so that rows are those of ``X``. Weights of a fit are as they were passed.
    """
    question = notion, sample_weight, labels, estimator.pos_label, groups, "auto"
    sample = _read(
        y,
        X,
        question,
        estimator.from_logits,
        ("y", "X"),
        estimator,
        reset,
        is_effective=not reset,
    )
    if sample.source.grouped:
        warn_of_few_groups(sample.groups, sample.weight, FEW_OF_TESTS)
        sample = sample._remembering(source=sample.source._replace(warned=True))
    return sample


def read_proba(
    y_proba, notion, from_logits: bool | None, name: str, estimator: Any = None, reset: bool = True
) -> tuple[np.ndarray, np.ndarray | None]:
    """Checked probabilities, whose rows are those of labels or sum to 1, and their logits."""
    of_labels = is_of_labels(notion)
    return check_predictions(
        columns_of_labels(y_proba, name) if of_labels else y_proba,
        from_logits,
        name=name,
        estimator=estimator,
        reset=reset,
        sums=not of_labels,
    )


def _read(
    y_true,
    y_proba,
    question,
    from_logits,
    names=("y_true", "y_proba"),
    estimator: Any = None,
    reset: bool = True,
    source: tuple[Sequence[str], Sequence[str]] = ((), ()),
    is_effective: bool = False,
    reduces: bool = False,
) -> Sample:
    """Labels and predictions in the order of their classes, with weights and groups.

    If ``is_effective``, the sum of the weights is the effective sample size. If ``reduces``,
    nothing but the largest probabilities is held of logits, where the notion asks for no more.
    """
    notion, sample_weight, labels, pos_label, groups, resolution = question
    given = {names[1]: y_proba, names[0]: y_true, "sample_weight": sample_weight, "groups": groups}
    are_plain = PLAIN.issuperset(map(type, given.values()))
    if not are_plain:
        refuse_lazy(given)
    if not is_of_labels(notion):
        refuse_several_labels(y_true, y_proba, names)
    proba: Any
    logits: Any
    largest = reduces and _largest_of(y_true, y_proba, notion, from_logits, names[1])
    if largest:
        proba, logits = largest, largest.odds
    else:
        proba, logits = read_proba(y_proba, notion, from_logits, names[1], estimator, reset)
    if not are_plain:
        refuse_another_order(given)
    if not (isinstance(resolution, str) and resolution == "auto"):
        validate_parameter_constraints(RESOLUTION, {"resolution": resolution}, "Sample")
    asked = notion if isinstance(notion, str) else "lens"
    notion = resolve_notion(notion, proba)
    of_labels = notion.of_labels and proba.ndim == 2
    if pos_label is not None and proba.ndim == 2 and not of_labels:
        _require_positive_class(pos_label, proba.shape[1], notion)
    codes, classes, outcomes, votes = read_outcomes(
        y_true,
        y_proba,
        proba,
        labels,
        names,
        pos_label=pos_label,
        of_labels=of_labels,
        counted=True,
        of_logits=logits is not None,
    )
    positive_first = is_positive_first(proba, classes, pos_label)
    if largest:
        proba, codes = largest.confidence, (codes == largest.top).astype(np.intp)
    if positive_first:
        proba, codes, classes = proba[:, ::-1], 1 - codes, classes[::-1]
        logits = None if logits is None else logits[:, ::-1]
    weight = check_weight(sample_weight, len(proba))
    n_votes = None if votes is None else np.nan_to_num(votes, nan=1.0)
    if is_effective and sample_weight is not None:
        weight = effective_weights(weight, n_votes)
    if n_votes is not None:
        weight = weight * n_votes
    together = read_groups(groups, weight, few=None)
    grouped = not (together.independent or isinstance(groups, Groups))
    columns, notes = source
    if not (columns or are_plain):
        columns = _names_of(y_proba)
    sample = (_Reduced if largest else Sample)._of(
        proba=proba,
        codes=codes,
        weight=weight,
        classes=classes,
        notion=notion,
        logits=logits,
        positive_first=positive_first,
        groups=_with_votes(together, notion, votes, weight),
        outcomes=outcomes,
        votes=votes,
        resolution=resolution,
        source=Source(asked, pos_label, grouped, tuple(columns), notes),
    )
    if not (resolution is None or isinstance(resolution, str)):  # a wrong step is an error at once
        step_of(sample.counted.problems(), float(resolution))
    return sample


def _largest_of(y_true, y_proba, notion, from_logits, name: str) -> Softmax | None:
    """Checked logits as their largest probabilities, if labels and the notion need no others."""
    known = isinstance(notion, str) and (notion == "auto" or notion == NOTIONS["confidence"])
    if not (known and from_logits is True) or is_table(y_true) or isinstance(y_true, Outcomes):
        return None
    if getattr(y_proba, "ndim", 0) != 2 or (notion == "auto" and y_proba.shape[1] == 2):
        return None
    return Softmax(check_logits(y_proba, name))


def _names_of(y_proba) -> Sequence[str]:
    """The names of the columns of predictions, or of a single one, if they have any."""
    name = getattr(y_proba, "name", None)
    return [name] if isinstance(name, str) else class_names(y_proba) or ()


def _with_votes(together: Groups, notion: Notion, votes, weight) -> Groups:
    """The groups of outcomes of a notion; votes of one sample form a group, too."""
    if notion.of_shares:
        return together.with_votes(np.full(len(weight), np.nan), weight)
    return together if votes is None else together.with_votes(votes, weight)


def refuse_lazy(given: dict[str, Any]) -> None:
    """Raise for arguments that a cluster or an engine holds, which would have to be gathered."""
    for name, value in given.items():
        kind = type(value)
        if kind in PLAIN:
            continue
        library = kind.__module__.partition(".")[0]
        if hasattr(kind, "__dask_graph__") or library == "pyspark" or kind.__name__ == "LazyFrame":
            reason = f"is held by {library} ({kind.__name__}), not in memory."
            remedy = (
                "Count a skcal.CalibrationTable where it is (see the guide, A billion rows), or "
                "gather it first."
            )
            raise InputError(name, reason, remedy)


def require_given(**arguments: Any) -> None:
    """Raise for an argument that has a default only because a sample may stand before it."""
    for name, value in arguments.items():
        if value is None:
            raise InputError(name, "is missing.", f"Pass it, beside a Sample by name: {name}=….")


def _first_of_group(sample: Sample) -> np.ndarray:
    """The first row of the group of each row, which names of groups do not change."""
    units = sample.groups.units(len(sample))
    _, first, codes = np.unique(units, return_index=True, return_inverse=True)
    return first[codes]


def refuse_beside_sample(given: dict[str, Any]) -> None:
    """Raise if what a sample was read with is passed again; None is not passed."""
    for name, value in given.items():
        if value is not None:
            remedy = f"Pass {name} to skcal.Sample."
            if name not in ("sample_weight", "groups", "labels", "pos_label", "from_logits"):
                remedy = "Leave it out, and pass what follows by name."
            raise InputError(name, "is given beside a Sample, which was read with its own.", remedy)


def is_of_labels(notion: Any) -> bool:
    """Whether columns are labels, any of which may hold, by the notion as users pass it."""
    if isinstance(notion, Notion):
        return notion.of_labels
    return isinstance(notion, str) and notion.startswith(("multi-label", "precision-at-"))


def refuse_groups(groups: Groups, who: str, remedy: str, name: str = "y_true") -> None:
    """Raise where outcomes belong together, for what holds for independent labels alone."""
    if groups.independent:
        return
    if groups.of_shares:
        raise error_of_shares(who, remedy, name)
    reason = f"is not for {who}, whose law is that of independent samples."
    raise InputError("groups", reason, remedy)


def error_of_shares(who: str, remedy: str, name: str = "y_true") -> InputError:
    """The error where shares are refused."""
    reason = f"holds shares or votes, where {who} needs labels."
    return InputError(name, reason, remedy)


def refuse_weights(sample: Any, who: str, remedy: str) -> None:
    """Raise where weights differ, for what counts samples."""
    if np.ptp(sample.weight) > _SAME_WEIGHT * sample.weight.max():
        raise InputError("sample_weight", f"is not for {who}, which counts samples.", remedy)


def refuse_vectors(sample: Sample) -> None:
    """Raise where features are vectors, for what is about single probabilities."""
    if not sample.notion.scalar:
        raise ValueError(
            f"notion={sample.notion!r} conditions on a vector, where a single probability is "
            f"needed. Use one of {scalar_notions(sample)}."
        )


def scalar_notions(sample: Sample) -> str:
    """Names of notions of single probabilities that these classes have."""
    return _SCALAR_NOTIONS if len(sample.classes) > 2 else f"'binary', {_SCALAR_NOTIONS}"


def _require_positive_class(pos_label, n_columns: int, notion: Notion) -> None:
    """Raise unless the notion is about one of two columns."""
    if n_columns > 2:
        raise ValueError(
            f"pos_label={pos_label!r} has no meaning for {n_columns} columns. Leave it out."
        )
    if not notion.of_positive_class:
        raise ValueError(
            f"pos_label={pos_label!r} has no meaning for notion={notion!r}, which takes two "
            "columns alike. Leave it out, or use notion='binary'."
        )
