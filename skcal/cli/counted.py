"""Long files are read in blocks, which a table adds up; what needs rows is read at once."""

from __future__ import annotations

import warnings
from argparse import Namespace
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from warnings import warn

import numpy as np

from skcal.cli.evaluate import shown_progress
from skcal.cli.files import StandardInput, blocks_of, kind_of, n_rows_of, read_frame
from skcal.cli.frames import Frame
from skcal.cli.gates import GATED_ERRORS, chosen_notions
from skcal.cli.labels import Lost
from skcal.cli.later import Later
from skcal.cli.long import by_sample
from skcal.cli.parts import JoinedFrame, joined, key_of, tables_of, with_partitions
from skcal.cli.predictions import Predictions, dialect_of, read_more, read_predictions, subgroups_of
from skcal.cli.problems import STANDARD_INPUT, FileError, errors_that_name
from skcal.notions import ANSWERS
from skcal.report.compare import read_subgroups
from skcal.sample import Sample, read_sample
from skcal.table import CalibrationTable

_MOST_ROWS = 2**20  # that are read at once; more are counted
_SETTLING = 2**17  # rows from all blocks that settle what the columns are
_BLOCK_BYTES = 2**23  # of a file, of which some rows settle that
_MOST_TABLES = 64  # of subgroups


@dataclass(frozen=True, eq=False)
class CountedPredictions(Predictions):
    """Predictions of which some rows are held, and the sums of all.

    Attributes
    ----------
    tables : dict of str to dict of Notion to CalibrationTable
        The sums of all samples, named "", and of each subgroup.
    subgroup : str
        The one of the tables that answers.
    """

    tables: dict[str, dict[Any, CalibrationTable]] = field(default_factory=dict)
    subgroup: str = ""

    @property
    def read(self) -> Sample:
        """The sums of all samples."""
        return self.sample()

    @property
    def rows(self) -> Sample:
        """Samples that hold rows, which stand beside each other in the file."""
        return read_sample(**self.arguments)

    def parts(self, by: Sequence[str]) -> dict[str, Predictions]:
        """All samples, named "", and those of each subgroup that columns name."""
        return {name: self._replace(subgroup=name) for name in self.tables}

    def sample(self, notion: Any = "auto") -> Sample:
        """The sums for a question about a notion."""
        tables = self.tables[self.subgroup]
        table = tables.get(notion, next(iter(tables.values())))
        return table._as_sample().once("as read", lambda: self._as_read(table._as_sample()))

    def _as_read(self, sample: Sample) -> Sample:
        source = sample.source._replace(columns=self.names, notes=self.notes)
        return sample._replace(source=source)


def read_or_count(options: Namespace, known: Any = None, each: Any = None) -> Predictions:
    """Read the predictions of a command, or count them where there are many.

    Up to ``_MOST_ROWS`` rows are read at once, and so are files of options that need rows.

    Parameters
    ----------
    options : argparse.Namespace
    known : ndarray, default=None
        The classes of earlier files, whose order a table has.
    each : callable, default=None
        Called with the predictions of each block that is counted.
    """
    path, n_rows, needing = Path(options.file), 0, _needing_rows(options)
    files: Sequence[Path] = options.files or [path]
    if not options.files and kind_of(path) == "folder":
        files = tables_of(path)
    for part in files:
        with errors_that_name(part, options.max_bytes):
            if str(part) == STANDARD_INPUT:
                if needing:
                    return read_predictions(options, known=known)
                stream = options.frames.get(STANDARD_INPUT) or StandardInput(options.max_bytes)
                options.frames[STANDARD_INPUT] = stream
                n_rows = stream.n_rows(_MOST_ROWS)
            elif n_rows <= _MOST_ROWS:
                n_rows += n_rows_of(part, _MOST_ROWS - n_rows, options.max_bytes)
    if n_rows <= _MOST_ROWS:
        return read_predictions(options, known=known)
    if not needing:
        return _counted(options, files, known, each)
    warn(
        f"{path}: {needing} needs rows, so all rows are held in memory. Without it more than "
        f"{_MOST_ROWS:,} rows are counted in blocks.",
        stacklevel=2,
    )
    return read_predictions(options, known=known)


def _needing_rows(options) -> str:
    """The first option that sums do not answer, or nothing."""
    notions = set(options.notion or []) - {"auto", ANSWERS}
    needing = {
        "--details": options.details,
        "--groups": options.groups,
        "--count": options.count,
        "--only": options.only,
        "--distinct": options.distinct,
        "--predicted": options.predicted,
        "--soft": options.soft,
        "--resolution": options.resolution not in ("auto", None),
        "--notion": not notions <= {*CalibrationTable.notions},
        "--error": not {*(options.error or [])} <= {*GATED_ERRORS},
    }
    if options.command == "report":
        needing |= {"TARGET": options.second, "--by": options.by, "--segments": options.segments}
        needing |= {"--search": options.search, "--outer-cv": options.outer_cv}
        needing |= {"--bins": options.bins != 15, "--strategy": options.strategy != "uniform"}
    if options.command == "monitor":
        needing |= {"--id": options.id, "--date": options.date}
    if options.command == "plot":
        needing |= {"--method": options.method != "auto", "--bins": options.bins}
        needing |= {"--strategy": options.strategy != "uniform"}
    return next((option for option, is_given in needing.items() if is_given), "")


def _counted(options, files: Sequence[Path], known=None, each=None) -> Predictions:
    """Settle by some rows of all blocks what the columns mean, and count all rows."""
    path, dialect = Path(options.file), dialect_of(options)
    key = key_of(path, dialect)
    options.frames[key] = _first_rows(options, files)
    if by_sample(options.frames[key], options) is not options.frames[key]:  # of several rows each
        del options.frames[key]
        return read_predictions(options)
    try:
        first = read_predictions(options, known=known, of_part=True)
    finally:
        del options.frames[key]  # which does not hold all rows
    assert first.settled is not None
    if first.settled.table.vector is not None:  # another column may name its entries
        return read_predictions(options, known=known)
    notions = [ANSWERS] if first.of_answers else chosen_notions(options, first.proba)
    same = known is not None and {*first.classes.tolist()} == {*known.tolist()}
    given = {"labels": known if same else first.classes, "resolution": options.resolution}

    def empty():
        return {notion: CalibrationTable(notion, **given) for notion in notions}

    tables, n_rows, notes = {"": empty()}, 0, dict.fromkeys(first.notes)
    of_parts: dict[tuple[str, Any], dict] = {}
    later = Later(first, options)
    lost: Lost | None = None
    with shown_progress(options), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the first rows have raised those
        for frame in _blocks(options, files, first, later.names):
            part, left_out = read_more(frame, first, options)
            n_rows += len(frame)
            notes.update(dict.fromkeys(frame.notes))
            print(f"{n_rows:,} rows of {path.name} are read")
            if left_out is not None:
                lost = left_out.total if lost is None else lost.plus(left_out.total)
            if part is None:
                continue
            later.compare(frame, part)
            part = part.ordered_as(given["labels"])
            if each is not None:
                each(part)
            _count(tables[""], part, slice(None))
            for name in options.by:
                values = subgroups_of(part, name)
                for value in np.unique(values).tolist():
                    of_part = of_parts.setdefault((name, value), empty())
                    _count(of_part, part, np.flatnonzero(values == value))
                if len(of_parts) > _MOST_TABLES:
                    raise FileError(
                        f"{path}: column {name!r} names more than {_MOST_TABLES} subgroups of "
                        f"{n_rows:,} rows. Leave out --by {name!r}, or pass a column of fewer."
                    )
    _check_all(tables[""], lost, options)
    for name in options.by:
        values = np.array([value for column, value in of_parts if column == name])
        for shown, [row] in read_subgroups({name: values}, len(values)):
            tables[shown] = of_parts[name, values[row].item()]
    doubts = later.doubts()
    facts = {**vars(first), "tables": tables, "settled": None}
    facts |= {
        "notes": (*notes, *doubts),
        "doubts": (*first.doubts, *doubts),
        "left_out": lost if first.left_out is not None else None,
        "weight": None,
    }
    return CountedPredictions(**facts)


def _count(tables, part: Predictions, rows) -> None:
    weight = None if part.weight is None else part.weight[rows]
    for table in tables.values():
        table.update(part.labels[rows], part.proba[rows], sample_weight=weight)


def _check_all(tables, lost: Lost | None, options) -> None:
    """Raise for what is wrong only if it is so in all blocks."""
    if not any(table.n_samples_seen_ for table in tables.values()):
        raise FileError(
            f"{options.file}: each sample would be left out, or has weight 0. Check the columns of "
            "predictions, labels and weights."
        )
    for label in options.drop_label:
        if lost is not None and not lost.reasons.get(f"labelled {label!r}"):
            raise FileError(
                f"{options.file}: no sample has the label {label!r} of --drop-label. Leave the "
                "option out."
            )


# Blocks


def _first_rows(options, files: Sequence[Path]) -> Frame:
    """The first rows of each block of all files."""
    path = Path(options.file)
    sizes = [part.stat().st_size for part in files if str(part) != STANDARD_INPUT]
    sizes = sizes or [len(options.frames[STANDARD_INPUT].held)]
    n_rows = max(16, _SETTLING // sum(1 + size // _BLOCK_BYTES for size in sizes))
    frames: list[Frame] = []
    for part in files:
        with errors_that_name(part, options.max_bytes):
            blocks = list(_blocks_of(options, part, None, n_rows))
            blocks = blocks or [read_frame(part, options.max_bytes, dialect_of(options))]
        filled = [block for block in blocks if len(block)] or blocks[:1]
        if len(filled) > 1:
            filled = [JoinedFrame(part, filled, [""] * len(filled))]
        frames += filled
    if len(files) > 1 or path.is_dir():
        return joined(path, frames, dialect_of(options))
    return frames[0]


def _blocks_of(options, part: Path, names=None, n_rows=None) -> Iterator[Frame]:
    """The blocks of a file, or their first rows."""
    dialect = dialect_of(options)
    if str(part) == STANDARD_INPUT:
        yield from options.frames[STANDARD_INPUT].blocks(dialect, n_rows)
        return
    root = Path(options.file)
    for frame in blocks_of(part, options.max_bytes, dialect, names, n_rows):
        yield with_partitions(frame, root)


def _blocks(options, files: Sequence[Path], first: Predictions, more) -> Iterator[Frame]:
    """All rows, with the columns that are needed."""
    settled = first.settled
    assert settled is not None
    names = [options.label, options.weight, *options.by, *more]
    names += settled.table.names
    names += getattr(settled.outcomes, "names", [])
    for part in files:
        with errors_that_name(part, options.max_bytes):
            for frame in _blocks_of(options, part, [n for n in names if n is not None]):
                if len(frame):
                    yield frame
