"""What answers questions from the sums of a table: a sample whose problems hold cells as rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from skcal._bins import Intervals
from skcal._groups import INDEPENDENT, Groups, quantile_of_weights, read_groups
from skcal._validation import InputError
from skcal.notions import Counted, Problem, resolve_notion
from skcal.sample import Sample, Source, refused_sums
from skcal.table.reading import Columns
from skcal.table.sums import NAMES, Products, Sums

_MOST_ROWS = 2**25  # of samples with groups
_SAME = 1e-11  # relative squared differences of predictions that rounding of sums makes


@dataclass(frozen=True, eq=False, init=False, repr=False)
class CountedSample(Sample):
    """A sample of which sums over cells are known.

    Attributes
    ----------
    parts : list of Problem
        The rows are cells with an outcome, or of groups samples at the means of their cells.
    intervals : Intervals
        The bins that were counted.
    n_samples : int
    squares : float
        Σ w² / (Σ w)² of the samples.
    joint_square : float
        The variance of the mean over the classes of the absolute residuals at most, infinity where
        it is not known.
    products : Products or None
        Of weighted residuals of two classes each, where they are known.
    """

    parts: list[Problem]
    intervals: Intervals
    n_samples: int
    squares: float
    joint_square: float  # type: ignore[misc]
    products: Products | None  # type: ignore[misc]

    holds_rows = False

    def __len__(self) -> int:
        return self.n_samples

    @property
    def sizes(self) -> np.ndarray:
        """How many samples each row of the only problem is."""
        return self.parts[0].sizes

    @property
    def effective_sizes(self) -> np.ndarray:
        """As how many samples of equal weight each row counts."""
        part = self.parts[0]
        return part.weight**2 / part.squares

    @property
    def effective_size(self) -> float | None:
        """(Σ w)² / Σ w² of the samples, None where weights are equal."""
        size = 1 / self.squares
        return size if size < self.n_samples * (1 - _SAME) else None

    @property
    def knows_classes(self) -> bool:  # type: ignore[override]
        """Whether more is known than the largest probabilities of the samples."""
        return self.notion.of_positive_class or self.notion.of_answers

    @property
    def frequencies(self) -> np.ndarray:
        """The weighted share of each class, or nothing of confidences."""
        return super().frequencies if self.knows_classes else np.empty(0)

    @property
    def counts(self) -> np.ndarray:
        """How many samples have each class, or the sums of their shares; nothing of confidences."""
        if not self.knows_classes:
            return np.empty(0)
        events = float(self.sizes @ self.parts[0].outcomes[:, 0])
        counts = np.array([self.n_samples - events, events])
        return counts if self.outcomes is not None else np.rint(counts).astype(np.intp)

    @property
    def mean_predictions(self) -> np.ndarray:
        """The weighted mean of the probabilities of each class, or nothing of confidences."""
        return super().mean_predictions if self.knows_classes else np.empty(0)

    @property
    def accuracy(self) -> float:
        """The weighted share of right predictions."""
        if self.knows_classes:
            return super().accuracy
        return float(np.average(self.codes, weights=self.weight))

    @property
    def mean_confidence(self) -> float:
        """The weighted mean of the largest probabilities, or of the confidences of answers."""
        if self.knows_classes:
            return super().mean_confidence
        return float(np.average(self.proba, weights=self.weight))

    @property
    def effective(self) -> Sample:
        """The sample, whose problems know what weights are worth."""
        return self

    def within(self, low: float, high: float) -> Sample:
        """Return the sample with predictions that are moved into an interval."""
        parts = []
        for part in self.parts:
            x = np.clip(part.features, low, high)
            counted = part.counted
            if counted is not None:
                counted = counted._replace(means=np.clip(counted.means, low, high))
            residuals = part.outcomes - x
            parts.append(part._replace(features=x, residuals=residuals, counted=counted))
        proba = np.concatenate([part.features[:, 0] for part in parts])
        return self._replace(parts=parts, proba=proba)

    def __repr__(self) -> str:
        return f"<sums of {len(self):,} samples, notion={str(self.notion)!r}>"

    def problems(self) -> list[Problem]:
        """Return the problems, whose rows are cells."""
        return self.parts

    @property
    def typical_share(self) -> float:
        """The share of a sample in the weight of all."""
        return self.squares

    def quantile(self, tail: float) -> float:
        """The upper quantile of a studentised mean."""
        if not self.groups.independent:
            return super().quantile(tail)
        return quantile_of_weights(tail, 1 / self.squares, self.n_samples)

    def asked(self, notion: Any = "auto") -> Sample:
        """Return the sample, for a question about the kind of calibration that was counted."""
        if isinstance(notion, str) and notion == "auto":
            return self
        if resolve_notion(notion, np.zeros((1, max(len(self.classes), 2)))) != self.notion:
            reason = f"is {str(notion)!r}, and the CalibrationTable counts {str(self.notion)!r}."
            raise InputError("notion", reason, f"Count a CalibrationTable({str(notion)!r}).")
        return self

    def take(self, rows: Any, weight: Any = None) -> Sample:
        """Refuse to choose among rows that are not held."""
        raise refused_sums("y_true")


def counted_sample(
    sums: Sums,
    columns: Columns,
    intervals: Intervals,
    resolution: Any,
    together: tuple[float, np.ndarray | None],
    grouped: bool,
    of_shares: bool,
) -> CountedSample:
    """Return the sample of a table's sums."""
    group, problem, cell, bin_, outcome = sums.parts()
    total = dict(zip(NAMES, sums.values, strict=True))
    sums_of_cells = np.stack([total["w"], total["wp"], total["wp2"]])
    places = (problem * (cell.max() + 1) + cell) * intervals.n_bins + bin_
    _, of_row = np.unique(places, return_inverse=True)
    w, wp, wp2 = (np.bincount(of_row, values) for values in sums_of_cells)
    x = wp / w
    varies = wp2 / w - x**2 > _SAME * x**2
    x = x[of_row]
    y = np.where(outcome == 2, total["wy"] / total["w"], outcome)
    scatter = np.where(outcome == 2, np.maximum(total["wy2"] / total["w"] - y**2, 0), 0.0)
    means = total["wp"] / total["w"]
    spread = np.maximum(total["wp2"] / total["w"] - means**2, 0)
    spread[spread < _SAME * means**2] = 0
    uneven = total["w2"] / total["w"] ** 2
    notion, n_problems = columns.notion, columns.n_problems
    of_sample = problem == 0 if notion.shares_samples else np.ones(len(problem), dtype=bool)
    n, mass, squares = (total[name][of_sample].sum() for name in ("n", "w", "w2"))
    joint, products = together
    parts: list[Problem] = []
    belonging: Any = INDEPENDENT
    if grouped:
        numbers = total["n"].astype(np.intp)
        if numbers.sum() > _MOST_ROWS:
            reason = f"hold {numbers.sum():,} samples, and {_MOST_ROWS:,} can be asked about."
            raise InputError("groups", reason, "Count fewer samples in a table.")
        ones = np.ones(int(n))
        belonging = read_groups(np.repeat(group[of_sample], numbers[of_sample]), ones, few=None)
    counted = Counted(total["n"], uneven, means, spread, scatter, bin_, intervals, of_shares)
    start, weights, codes = 0, [], []
    order = np.argsort(problem, kind="stable")
    ends = np.cumsum(np.bincount(problem, minlength=n_problems))[:-1]
    for rows in np.split(order, ends):
        weight = total["w"][rows]
        share = 1.0 if notion.shares_samples else float(weight.sum() / mass)
        part = Problem(x[rows, None], (y - x)[rows, None], weight, share)
        if belonging.independent:
            part = part._replace(counted=counted.take(rows))
        else:
            part, row = _samples(part, rows, total, bin_, intervals)
            codes.append(group[row])
        stop = start + len(part.weight)
        parts.append(part._replace(rows=np.arange(start, stop)))
        weights.append(part.weight)
        start = stop
    if not belonging.independent:
        sizes = np.bincount(np.repeat(group[of_sample], numbers[of_sample]))
        belonging = Groups(np.concatenate(codes), (sizes <= 1)[np.concatenate(codes)], len(sizes))
        parts = [
            part._replace(groups=belonging.take(part.rows).about(part.features, part.residuals))
            for part in parts
        ]
    weight = np.concatenate(weights)
    outcomes = None
    if of_shares and len(parts) == 1:
        outcomes = np.column_stack([1 - parts[0].outcomes, parts[0].outcomes])
    parts_of_sample: dict[str, Any] = {
        "proba": np.concatenate([part.features[:, 0] for part in parts]),
        "codes": np.concatenate([np.rint(part.outcomes[:, 0]).astype(np.intp) for part in parts]),
        "weight": weight,
        "classes": np.array(columns.classes),
        "notion": notion,
        "logits": None,
        "positive_first": columns.pos_label is not None,
        "groups": belonging,
        "outcomes": outcomes,
        "votes": None,
        "resolution": _step(resolution, bool(varies.any())),
        "source": Source(str(notion), columns.pos_label, not belonging.independent),
        "parts": parts,
        "intervals": intervals,
        "n_samples": int(n),
        "squares": float(squares / mass**2),
        "joint_square": float(joint / (mass * n_problems) ** 2),
        "products": None if products is None else Products(products / mass**2, n_problems),
    }
    sample: Any = CountedSample._of(**parts_of_sample)
    return sample


def _samples(part: Problem, rows, total, bins, intervals) -> tuple[Problem, np.ndarray]:
    """The samples of a problem at the means of their cells, and the row of each."""
    numbers = total["n"][rows].astype(np.intp)
    row = np.repeat(np.arange(len(rows)), numbers)
    first = np.cumsum(numbers) - numbers
    place = np.arange(len(row)) - first[row]  # of a sample among those of its row
    edges, bin_ = intervals.edges, bins[rows]
    low = np.where(bin_ > 0, np.nextafter(edges[bin_], 1), 0)
    x = np.clip(part.features[:, 0], low, edges[bin_ + 1])  # rounding moves none across an edge
    y = part.features[:, 0] + part.residuals[:, 0]
    mean = part.weight / numbers
    apart = np.sqrt(np.maximum(total["w2"][rows] / numbers - mean**2, 0))
    apart[apart < 1e-6 * mean] = 0
    paired = place < numbers[row] // 2 * 2  # half of the weights above their mean, half below
    weight = mean[row] + np.where(place % 2, 1, -1) * paired * apart[row]
    weight = np.maximum(weight, 1e-9 * mean[row])
    parts = x[row, None], (y - x)[row, None], weight, part.share
    return Problem(*parts), rows[row]


def _step(resolution: Any, varies: bool) -> Any:
    """The step to look for in the means of cells, which hold one prediction each if rounded."""
    if not varies or resolution is None:
        return resolution
    if resolution != "auto":
        reason = f"is {resolution:g}, and a cell of the CalibrationTable holds several predictions."
        raise InputError("resolution", reason, "Leave it out: predictions are not rounded.")
    return None
