"""Samples that are left out because a value is missing: their number, and the message."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from skcal._show import listed
from skcal.cli.bounds import FileError
from skcal.cli.table import FileTable
from skcal.cli.text import LEAVE_OUT, Texts, is_missing

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
    subgroups : dict of str to Texts
        The columns of subgroups.
    """

    out: np.ndarray
    reasons: Mapping[str, int]
    names: np.ndarray
    subgroups: Mapping[str, Texts]

    @property
    def kept(self) -> np.ndarray:
        """Whether a row of the file is kept."""
        return ~self.out

    def __str__(self):
        facts = self.facts()
        if not facts["n_left_out"]:
            return "No sample is left out."
        n, size = facts["n_left_out"], facts["n_samples"]
        whys = ", ".join(f"{count:,} {reason}" for reason, count in self.reasons.items() if count)
        text = f"{n:,} of {size:,} samples ({100 * n / size:.2g} %) are left out: {whys}."
        parts = [f"{name} {n:,} of {size:,}" for name, (n, size) in facts["subgroups"].items()]
        return f"{text} By subgroup: {listed(parts)}." if parts else text

    def facts(self) -> dict[str, Any]:
        """Plain data: of each subgroup the number of samples that are left out, and of all."""
        subgroups = {}
        for column, texts in self.subgroups.items():
            codes, n = np.asarray(texts.codes), len(texts.values)
            counts = np.bincount(codes[self.out], minlength=n), np.bincount(codes, minlength=n)
            for value, lost, size in zip(texts.values, *counts, strict=True):
                name = f"{column} = {(value or '').strip() or 'missing'}"
                subgroups[name] = int(lost), int(size)
        n_left_out, n_samples = int(self.out.sum()), len(self.out)
        about = {"reasons": dict(self.reasons), "subgroups": subgroups}
        return {"n_samples": n_samples, "n_left_out": n_left_out, **about}

    def beside(self, other: LeftOut, name: str, other_name: str) -> LeftOut:
        """What is left out of this file where the other one lacks samples, too."""
        out = self.out | np.isin(self.names, other.names[other.out])
        reasons = {f"{why} in {name}": count for why, count in self.reasons.items()}
        reasons |= {f"{why} in {other_name}": count for why, count in other.reasons.items()}
        return self._replace(out=out, reasons=reasons)


def leaves_out(options) -> bool:
    """Whether the options of a command leave samples out."""
    return bool(options.drop_missing or options.drop_label or options.skip_unlabelled)


def samples_left_out(
    table: FileTable, labels: Texts | None, described: Mapping[str, Texts], options
) -> LeftOut:
    """Find the rows of a table without a prediction or a label, or with a label that is dropped.

    Parameters
    ----------
    table : FileTable
        Its numbers are NaN where one is missing.
    labels : Texts or None
        None where the table holds shares.
    described : mapping of str to Texts
        Columns that describe samples.
    options : argparse.Namespace
    """
    n, reasons = len(table.numbers), dict[str, int]()
    out = np.zeros(n, dtype=bool)

    def leave_out(rows, reason):
        reasons[reason] = int((rows & ~out).sum())
        return out | rows

    if options.drop_missing and table.numbers.dtype.kind == "f":
        what = "a prediction" if labels is not None else "all predictions and shares"
        out = leave_out(np.isnan(table.numbers).reshape(n, -1).any(axis=1), f"without {what}")
    if labels is not None:
        texts = np.array([str(text or "").strip() for text in labels.values])
        codes = np.asarray(labels.codes)
        if options.drop_missing or options.skip_unlabelled:
            absent = [is_missing(text) and text not in table.names for text in texts.tolist()]
            out = leave_out(np.array(absent)[codes], "without a label")
        for label in dict.fromkeys(options.drop_label):
            if label not in texts:
                raise FileError(
                    f"{table.path}: no sample has the label {label!r} of --drop-label (labels: "
                    f"{listed(texts.tolist())}). Leave the option out."
                )
            out = leave_out((texts == label)[codes], f"labelled {label!r}")
    if out.all():
        raise FileError(
            f"{table.path}: each sample would be left out. Check the columns of predictions and "
            "labels."
        )
    ids = [described[name].strip() for name in options.id if name in described]
    names = joined_names(ids) if ids else np.arange(n).astype(str)
    subgroups = {name: described[name] for name in options.by if name in described}
    return LeftOut(out, reasons, names, subgroups)


def joined_names(columns: Sequence[np.ndarray]) -> np.ndarray:
    """Join columns to one of text, (n_rows,)."""
    first, *others = [np.asarray(column).astype(str) for column in columns]
    for other in others:
        first = np.char.add(np.char.add(first, NAMES_END), other)
    return first


def refuse_absent_labels(table: FileTable, labels: Texts) -> None:
    """Raise where a sample has no label."""
    absent = np.array([text is None or not text.strip() for text in labels.values])
    without = absent[np.asarray(labels.codes)]
    if without.any():
        place = table.words_for_row(int(np.argmax(without)))
        raise FileError(f"{table.path}: {place} has no label. {LEAVE_OUT}", drop_missing=True)
