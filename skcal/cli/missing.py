"""Samples that are left out because a value is missing: their number, and the message."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from skcal._show import listed
from skcal.cli.bounds import FileError
from skcal.cli.cells import is_missing
from skcal.cli.columns import Columns
from skcal.cli.table import FileTable

NAMES_END = "\x1f"  # between the parts of a sample's name


class LeftOut(NamedTuple):
    """The samples of a file that are left out.

    Attributes
    ----------
    out : ndarray of bool of shape (n_rows,)
        Whether a row of the file is left out.
    reasons : dict of str to int
        Numbers of samples that are left out, by the reason.
    names : ndarray of str of shape (n_rows,)
        What a row is called, or its number.
    subgroups : dict of str to ndarray of shape (n_rows,)
        The columns of subgroups.
    """

    out: np.ndarray
    reasons: Mapping[str, int]
    names: np.ndarray
    subgroups: Mapping[str, np.ndarray]

    def __str__(self):
        n, size = np.count_nonzero(self.out), len(self.out)
        if not n:
            return "No sample is left out."
        whys = ", ".join(f"{count:,} {reason}" for reason, count in self.reasons.items() if count)
        text = f"{n:,} of {size:,} samples ({100 * n / size:.2g} %) are left out: {whys}."
        parts = []
        for column, values in self.subgroups.items():
            names, codes = np.unique(values, return_inverse=True)
            lost = np.bincount(codes[self.out], minlength=len(names)).tolist()
            for name, n, size in zip(names.tolist(), lost, np.bincount(codes), strict=True):
                parts.append(f"{column} = {'missing' if name == '' else name} {n:,} of {size:,}")
        return f"{text} By subgroup: {listed(parts)}." if parts else text

    def beside(self, other: LeftOut, name: str, other_name: str) -> LeftOut:
        """What is left out of this file where the other one lacks samples, too."""
        out = self.out | np.isin(self.names, other.names[other.out])
        reasons = {f"{why} in {name}": count for why, count in self.reasons.items()}
        reasons |= {f"{why} in {other_name}": count for why, count in other.reasons.items()}
        return self._replace(out=out, reasons=reasons)


def samples_left_out(columns: Columns, options) -> LeftOut | None:
    """Find the rows without a prediction or a label, or with a label that is dropped.

    Numbers are NaN where one is missing. Return None if no option asks for that.
    """
    if not (options.drop_missing or options.drop_label or options.skip_unlabelled):
        return None
    table, outcomes = columns.table, columns.outcomes
    n, reasons = len(table.numbers), dict[str, int]()
    out = np.zeros(n, dtype=bool)

    def leave_out(rows, reason):
        reasons[reason] = int((rows & ~out).sum())
        out[rows] = True

    if options.drop_missing and table.numbers.dtype.kind == "f":
        parts, what = [table.numbers], "a prediction"
        if isinstance(outcomes, FileTable):
            parts, what = [*parts, outcomes.numbers], "all predictions and shares"
        lost = [np.isnan(part).reshape(n, -1).any(axis=1) for part in parts]
        leave_out(np.any(lost, axis=0), f"without {what}")
    if not isinstance(outcomes, FileTable):
        texts = outcomes.astype(str)
        known = list(dict.fromkeys(texts.tolist()))
        if options.drop_missing or options.skip_unlabelled:
            absent = [text for text in known if is_missing(text) and text not in table.names]
            leave_out(np.isin(texts, absent), "without a label")
        for label in dict.fromkeys(options.drop_label):
            if label not in known:
                raise FileError(
                    f"{table.path}: no sample has the label {label!r} of --drop-label (labels: "
                    f"{listed(known)}). Leave the option out."
                )
            leave_out(texts == label, f"labelled {label!r}")
    if out.all():
        raise FileError(
            f"{table.path}: each sample would be left out. Check the columns of predictions and "
            "labels."
        )
    ids = [columns.others[name] for name in options.id if name in columns.others]
    names = joined_names(ids) if ids else np.arange(n).astype(str)
    subgroups = {name: columns.others[name] for name in options.by if name in columns.others}
    return LeftOut(out, reasons, names, subgroups)


def joined_names(columns: Sequence[np.ndarray]) -> np.ndarray:
    """Join columns to one of text, (n_rows,)."""
    first, *others = [np.asarray(column).astype(str) for column in columns]
    for other in others:
        first = np.char.add(np.char.add(first, NAMES_END), other)
    return first
