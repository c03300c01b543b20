"""Later blocks of a long file are compared with its first rows: scale, models and clusters."""

from __future__ import annotations

from typing import Any

import numpy as np

from skcal.cli.clusters import Cluster, may_name_owners, told_of_clusters
from skcal.cli.columns import models_in
from skcal.cli.frames import Frame
from skcal.cli.predictions import Predictions, unused_columns
from skcal.cli.problems import PERCENT, FileError

_SURE = 20  # rows of a block from which on its scale is judged
_MOST_KEPT = 2**18  # rows of a column of names that are compared at a time
_OFTEN = 30.0  # times the mean prediction that the rarer label happens
_OF_ODDS = 1 / (1 + np.exp(-1.0))  # the probability of a log-odds of 1
_WIDE = 1 / (1 + np.exp(-0.5)) - 0.5  # the range of probabilities of log-odds within a half


class Later:
    """What later rows may contradict.

    Parameters
    ----------
    first : Predictions
        Of the first rows of all blocks, with ``settled``.
    options : argparse.Namespace
    """

    def __init__(self, first: Predictions, options: Any):
        assert first.settled is not None
        frame: Any = first.settled.table.frame
        rest = [] if frame is None else unused_columns(first.settled.table, options)
        self._options, self._n_rows = options, 0
        self._before: Any = None  # the range and the kind of the block before
        one_model = {name: models_in(frame, name) for name in rest}
        self._models = {name: known for name, known in one_model.items() if len(known) == 1}
        is_told = options.groups is not None or first.doubts
        owners = [] if is_told else [name for name in rest if may_name_owners(frame, name)]
        self._owners = {name: _Repeated() for name in owners}
        self.names = [*self._models, *self._owners]

    def compare(self, frame: Frame, part: Predictions) -> None:
        """Raise where a block has another scale or another model; count its names."""
        self._compare_scale(frame, part)
        for name, known in self._models.items():
            other = models_in(frame, name, known)
            if len(other) > 1:
                texts = frame.texts(name)
                found = [texts.values[code].strip() != known[0] for code in texts.codes]
                raise FileError(
                    f"{frame.path}: {frame.words_for_row(int(np.argmax(found)))}, column {name!r} "
                    f"is {other[1]!r}, and all rows before it are {known[0]!r}. If all rows are of "
                    f"one model that was fitted to none of them, pass --ignore {name!r}."
                )
        for name, repeated in self._owners.items():
            repeated.add(frame, name, self._n_rows)
        self._n_rows += len(frame)

    def _compare_scale(self, frame: Frame, part: Predictions) -> None:
        """Raise where percentages, or log-odds, stand beside probabilities in another block.

        Sorted predictions are on one scale: those of the block before are on one side.
        """
        p, options = part.proba, self._options
        is_percent = options.scale == PERCENT
        if p.ndim > 1 or len(p) < _SURE or not (options.logits or is_percent):
            return
        low, high = float(p.min()), float(p.max())
        rate = float(np.mean(part.labels == part.classes[-1]))
        if is_percent:
            kinds = high <= 1 / PERCENT and min(rate, 1 - rate) > _OFTEN * p.mean(), True
        else:
            inside = low >= 0.5 and high <= _OF_ODDS and high - low > _WIDE
            kinds = inside, low < 0.5 and high > _OF_ODDS
        before, self._before = self._before, (low, high, kinds)
        if before is None or not (kinds[0] != before[2][0] and (kinds[1] or before[2][1])):
            return
        values = np.array([*before[:2], low, high])
        with np.errstate(divide="ignore"):
            c, d, e, f = values * PERCENT if is_percent else np.log(values) - np.log1p(-values)
        what = "percentages" if is_percent else "log-odds"
        raise FileError(
            f"{frame.path}: from {frame.words_for_row(0)} on predictions are from {e:.3g} to "
            f"{f:.3g}, and in the rows before from {c:.3g} to {d:.3g}: {what} beside "
            "probabilities. Save all on one scale."
        )

    def doubts(self) -> list[str]:
        """A sentence on rows that may belong together; raise before a verdict on such rows."""
        found = [repeated.cluster(name) for name, repeated in self._owners.items()]
        clusters = [cluster for cluster in found if cluster is not None]
        return told_of_clusters(self._options.file, clusters, self._n_rows, self._options)


class _Repeated:
    """Which values of a column of names repeat: the rows of some of its values, all of these."""

    def __init__(self):
        self._hashes, self._rows, self._mask = [], [], np.uint64(0)
        self._n_kept = 0

    def add(self, frame: Frame, name: str, start: int) -> None:
        """Add the rows of a block; of many values those whose hash ends in more zeros are kept."""
        from pandas.util import hash_array

        texts = frame.texts(name)
        values = np.array([text.strip() for text in texts.values], dtype=object)
        hashes = hash_array(values, categorize=False)
        hashes[values == ""] = 1  # which is dropped from the first doubling on
        hashes = hashes[np.asarray(texts.codes)]
        kept = np.flatnonzero((hashes & self._mask == 0) & (hashes != 1))
        self._hashes.append(hashes[kept])
        self._rows.append(kept + start)
        self._n_kept += len(kept)
        while self._n_kept > _MOST_KEPT:
            self._mask = self._mask * np.uint64(2) + np.uint64(1)
            joined = np.concatenate(self._hashes)
            rows = np.concatenate(self._rows)[joined & self._mask == 0]
            self._hashes, self._rows = [joined[joined & self._mask == 0]], [rows]
            self._n_kept = len(rows)

    def cluster(self, name: str) -> Cluster | None:
        """The column as one of clusters, if its values repeat as those do."""
        hashes, rows = np.concatenate(self._hashes), np.concatenate(self._rows)
        _, first, codes, sizes = np.unique(
            hashes, return_index=True, return_inverse=True, return_counts=True
        )
        n_values = len(sizes) * (int(self._mask) + 1)
        if not Cluster.repeats(sizes, int(sizes.sum()), n_values, True):
            return None
        again = np.flatnonzero(first[codes] != np.arange(len(codes)))[0]
        pair = rows[first[codes[again]]] + 1, rows[again] + 1
        why = f", as names of what has several samples do: rows {pair[0]:,} and {pair[1]:,} share"
        return Cluster(name, n_values, f"{why} one")
