"""The classes, labels and shares among the columns of a table."""

from __future__ import annotations

import re
from argparse import Namespace
from collections.abc import Sequence
from typing import Any, NamedTuple
from warnings import warn

import numpy as np

from skcal._show import listed
from skcal.cli.cells import LEAVE_OUT, Dialect, is_missing
from skcal.cli.clusters import are_copies, refused_or_told
from skcal.cli.find import MOST_CHOICES, Found, Seeker
from skcal.cli.frames import Frame, SomeRows, Texts, all_names
from skcal.cli.happened import (
    ROUNDED,
    absent_column,
    check_header,
    ordered_names,
    refuse_two_columns_of_labels,
)
from skcal.cli.long import by_sample
from skcal.cli.names import (
    folded,
    is_known,
    looks_like,
    names_models,
    names_parts,
    words_of,
)
from skcal.cli.parts import read_table
from skcal.cli.problems import PERCENT, FileError
from skcal.cli.table import FileTable, decoded, require_cells

_FEW_BELOW = 0.1  # of the rows, where the class that is predicted has less than ½
_SURE = 20  # samples from which on confidences are told from probabilities of an event


class Columns(NamedTuple):
    """The columns of a file by what they mean.

    Attributes
    ----------
    table : FileTable
        Of the predictions.
    outcomes : ndarray of shape (n_rows,) or FileTable
        The labels, or the table of shares or votes of the classes.
    classes : ndarray of shape (n_classes,) or None
        The class of each column; None where the labels tell it.
    others : dict of str to ndarray of shape (n_rows,)
        Further columns that options name.
    notes : tuple of str
        What was decided by names and contents.
    predicted : ndarray of shape (n_rows,) or None
        The class whose probability the single column holds in each row.
    event : str or None
        The label whose probability a single column holds, as other columns say.
    """

    table: FileTable
    outcomes: np.ndarray | FileTable
    classes: np.ndarray | None
    others: dict[str, np.ndarray]
    notes: tuple[str, ...] = ()
    predicted: np.ndarray | None = None
    event: str | None = None

    def take(self, rows: np.ndarray) -> Columns:
        """Return some of the rows."""
        outcomes = self.outcomes
        if isinstance(outcomes, FileTable):
            outcomes = outcomes.take(rows)
        else:
            outcomes = outcomes[rows]
            if outcomes.dtype.kind == "f" and not (outcomes % 1).any():  # for NaN alone
                outcomes = outcomes.astype(np.int64)
        others = {name: values[rows] for name, values in self.others.items()}
        predicted = None if self.predicted is None else self.predicted[rows]
        table = self.table.take(rows)
        return self._replace(table=table, outcomes=outcomes, others=others, predicted=predicted)


def labelled_table(path, others, spared, options: Namespace, dialect: Dialect) -> Columns:
    """The predictions and outcomes of a file, and other columns, by the options that name them.

    Columns of ``spared`` may be absent.
    """
    frame = read_table(path, options.max_bytes, dialect, options.frames, options.files)
    frame = by_sample(_only_rows(frame, options), options)
    label, soft, max_bytes = options.label, options.soft, options.max_bytes
    named = {**dict.fromkeys(options.ignore, "--ignore"), **others}
    named |= dict.fromkeys(columns_of_only(frame, options), "--only")
    of_options = {label if soft is None else None: "--label"}
    of_options |= {options.score: "--score", options.predicted: "--predicted"}
    named |= {name: option for name, option in of_options.items() if name is not None}
    check_header(frame, named, options, dialect)
    beside = {name: frame.texts(name).stripped().array(path, max_bytes) for name in others}
    aside = {*named, *spared, label}
    _refuse_several_models(frame, aside)
    if soft is not None:
        found, shares, classes = _with_shares(frame, soft, aside, options, dialect)
        require_cells(path, found.table.names, found.table.numbers)
        return Columns(found.table, shares, classes, beside, (*frame.notes, *found.notes))
    texts = frame.labels(label)
    labels, notes = _with_empty(texts.array(path, max_bytes), options)
    distinct = texts.distinct()
    distinct += [options.empty_label] * (len(notes) and options.empty_label not in distinct)
    words = [text for text in texts.values if len(text) > 1 and is_missing(text)]
    names = [name for name in frame.header if name not in aside]
    distinct += _named_as_others(names, words, distinct)
    if len(labels) and not (distinct or options.drop_missing or options.skip_unlabelled):
        raise FileError(f"{frame.place_of(0)} has no label. {LEAVE_OUT}", drop_missing=True)
    absent = np.flatnonzero(labels == "")
    leaves_out = options.drop_missing or options.missing or options.skip_unlabelled
    if len(absent) and not leaves_out and _class_of_empty(frame, distinct):
        raise _no_label(frame.place_of(int(absent[0])), labels, frame)
    refuse_two_columns_of_labels(frame, label, distinct, aside, options)
    if not len(labels):
        require_cells(path, names, labels)
    _refuse_files_of_the_same_samples(frame, options.id)
    found = Seeker(frame, distinct, labels, aside, options, dialect).find()
    table, classes, notes = found.table, None, [*frame.notes, *found.notes, *notes]
    predicted = event = None
    require_cells(path, table.names, table.numbers)
    if found.classes is not None:
        of_columns = Texts(found.classes, range(len(found.classes)))
        classes = of_columns.stripped().array(path, max_bytes)
    elif options.predicted is not None:
        predicted = frame.labels(options.predicted).array()
    elif options.correct is None:
        _refuse_unclear_percentages(table, options)
        likely = _predicted_columns(frame, distinct, {*aside, *table.names})
        numbers = table.numbers[:, 0] if options.scale == 1 else table.numbers[:, 0] / options.scale
        _doubt_certainty(table, numbers, labels, distinct, likely, options)
        event = _event_of(frame, numbers, likely, distinct)
    return Columns(table, labels, classes, beside, tuple(notes), predicted, event)


def columns_of_only(frame: Frame, options) -> dict[str, list[str]]:
    """The columns that ``--only`` names, with the values of each."""
    found = dict[str, list[str]]()
    for text in options.only:
        parts = text.split("=")
        starts = ["=".join(parts[:k]) for k in range(1, len(parts))]
        name = next((start for start in starts if start in frame.header), starts[0])
        found.setdefault(name, []).append(text[len(name) + 1 :].strip())
    return found


def _only_rows(frame: Frame, options) -> Frame:
    """The rows whose columns have the values that ``--only`` says."""
    keep, said = _kept(frame, options, is_labelled=True)
    if not said:
        return frame
    if not keep.any():
        raise FileError(f"{frame.path}: no row has {listed(said)}. Leave out an --only.")
    note = f"Read are {keep.sum():,} of {len(keep):,} rows: {listed(said)}."
    return SomeRows(frame, np.flatnonzero(keep), [*frame.notes, note])


def _kept(frame: Frame, options, is_labelled: bool) -> tuple[np.ndarray, list[str]]:
    """Which rows ``--only`` and ``--distinct`` keep, and why; other files may lack the columns."""
    keep, said = np.ones(len(frame), bool), list[str]()
    for name, values in columns_of_only(frame, options).items():
        if name in frame.header:
            texts = frame.labels(name)
            absent = [value for value in values if value not in texts.values]
            if is_labelled and absent:
                raise FileError(
                    f"{frame.path}: no row of column {name!r} is {absent[0]!r} (rows are: "
                    f"{listed(texts.distinct())}). Pass one of these by --only."
                )
            keep &= np.isin(texts.array(), values)
            said.append(f"{name} = {listed(values)}")
        elif not is_labelled:
            text = f"{frame.path}: has no column {name!r}, so that all of its rows are used."
            warn(text, stacklevel=2)
    if options.distinct:
        is_copy = are_copies(frame, np.flatnonzero(keep))
        said += [f"{is_copy.sum():,} are copies of others"] * bool(is_copy.any())
        keep[np.flatnonzero(keep)[is_copy]] = False
    return keep, said


def same_columns(frame: Frame, settled, others, options, dialect: Dialect) -> Columns:
    """The columns of further rows of a table, which mean what they mean in the first ones."""
    for name, option in {options.label: "--label", **others}.items():
        if name not in frame.header:
            raise absent_column(frame, name, option, options, dialect)
    classes = None if settled.classes is None else settled.classes.tolist()
    found = Seeker(frame, classes or [], None, set(), options, dialect).again(
        settled.table, classes
    )
    outcomes, _ = _with_empty(frame.labels(options.label).array(), options)
    beside = {name: text_column(found.table, name, options.max_bytes) for name in others}
    known = None if found.classes is None else np.array(found.classes)
    return Columns(found.table, outcomes, known, beside)


def _with_empty(labels: np.ndarray, options) -> tuple[np.ndarray, list[str]]:
    """Labels with ``--empty-label`` in place of none, and a sentence that says so."""
    absent = labels == ""
    if options.empty_label is None or not absent.any():
        return labels, []
    note = f"{absent.sum():,} empty labels are read as {options.empty_label!r}."
    return np.where(absent, options.empty_label, labels), [note]


def _refuse_several_models(frame: Frame, aside) -> None:
    """Raise where a column names several models, or rows of training beside others."""
    for name in frame.header:
        known = [] if name in aside else models_in(frame, name)
        what, reading, beside = "models", "all rows are of one model", ""
        if not names_models(name):
            what, reading = "parts", "the model was fitted to none of these rows"
            beside = " Predictions of training rows look better than those of new ones."
            if not names_parts(name) and not _are_parts(known, both=True):
                continue
        if 1 < len(known) <= len(frame) / 2:  # else these may be probabilities
            shown = [text for text in known if is_known("test", text)] or known
            raise FileError(
                f"{frame.path}: column {name!r} names {len(known)} {what}: {listed(known)}."
                f"{beside} The command report shows each by --by {name!r}, and --only '{name}="
                f"{shown[-1]}' keeps the rows of one. If {reading}, pass --ignore {name!r}.",
                choices=[{"only": [f"{name}={value}"]} for value in shown[:MOST_CHOICES]],
            )


def models_in(frame: Frame, name: str, before: Sequence[str] = ()) -> list[str]:
    """The models, or the parts such as training rows, that a column names; none of other columns.

    Those of earlier rows, ``before``, stand first.
    """
    of_models = names_models(name) or names_parts(name)
    if not of_models and not (
        frame.kind(name) == "text" and _are_parts(frame.labels(name, _SURE).distinct())
    ):
        return []
    known = list(dict.fromkeys([*before, *frame.few_labels(name)]))
    return known if of_models or _are_parts(known, both=len(known) > 1) else []


def tell_training(frame: Frame, rest: Sequence[str], options) -> list[str]:
    """What columns say of all rows; no verdict where one says that they are of training."""
    same = list[str]()
    for name in rest:
        known = models_in(frame, name)
        if len(known) != 1:
            continue
        if is_known("training", known[0]) or (names_parts(name) and known == ["1"]):
            told = (
                f"Column {name!r} is {known[0]!r} in all rows, as those of training are, whose "
                "predictions look better than those of new ones. If the model was fitted to none "
                f"of them, pass --ignore {name!r}."
            )
            return [*same, *refused_or_told(frame.path, told, [{"ignore": [name]}], options)]
        same.append(f"Column {name!r} is {known[0]!r} in all rows.")
    return same


def _are_parts(texts: Sequence[str], both: bool = False) -> bool:
    """Whether all texts are words for rows of training or of tests, of ``both`` kinds."""
    words, training, tests = {*map(folded, texts)}, words_of("training"), words_of("test")
    has_both = bool(words & training) and bool(words & tests)
    return words <= training | tests and (has_both or not both)


def _refuse_files_of_the_same_samples(frame: Frame, ids: Sequence[str]) -> None:
    """Raise where two files of a folder hold a sample of the same name."""
    if frame.files is None or not ids:
        return
    files: dict[tuple[str, ...], str] = {}
    names = zip(*(frame.labels(name).array().tolist() for name in ids), strict=True)
    for name, file in zip(names, frame.files.tolist(), strict=True):
        if files.setdefault(name, file) != file:
            shown = ", ".join(f"{c} {part!r}" for c, part in zip(ids, name, strict=True))
            raise FileError(
                f"{frame.path}: {shown} is in {files[name]} and in {file}. If these are "
                "predictions of several models, read each file alone."
            )


def _named_as_others(names: Sequence[str], words, labels: Sequence[str]) -> dict[str, str]:
    """Words by which a column is named as others are by labels, and how the column writes them."""
    found = dict[str, str]()
    for word in dict.fromkeys(words):
        for (start, end), part in Seeker.patterns(names, [*labels, word]).items():
            if word in part and len(part) > 1:
                found.setdefault(word, part[word][len(start) : len(part[word]) - len(end)])
    return found


# Columns that name the class of which a single column holds the probability


def as_labels(names: Sequence[str], labels: Sequence[str]) -> dict[str, str]:
    """The label that each name writes, such as LABEL_1, True or NEG for 1, 1 or negative, or {}."""
    if set(names) <= set(labels):
        return {name: name for name in names}
    by_key = {_key(label): label for label in labels}
    written = {name: by_key[_key(name)] for name in names if _key(name) in by_key}
    if len(by_key) == len(labels) and len(set(written.values())) == len(names):
        return written
    pairs = [(name, label) for name in names for label in labels if _is_short_for(name, label)]
    shortened = dict(pairs)
    one_to_one = len(pairs) == len(shortened) == len(set(shortened.values())) == len(names)
    return shortened if one_to_one else {}


def _is_short_for(name: str, label: str) -> bool:
    """Whether one of two words is the start of the other, as neg of NEGATIVE."""
    short, long = sorted((name.casefold(), label.casefold()), key=len)
    return len(short) > 2 and short.isalpha() and long.startswith(short)


def _key(name: str) -> str:
    key = re.sub(r"^\D*[a-z][\W_](?=\d+$)", "", name.casefold())  # label_1 is 1, -1 is not
    return {"false": "0", "true": "1"}.get(key, key)


def _predicted_columns(frame: Frame, labels: Sequence[str], aside) -> list[str]:
    """Columns that hold labels, of at least two kinds, and are not the labels."""
    return [
        name
        for name in frame.header
        if name not in aside
        and as_labels(frame.few_labels(name, _SURE), labels)
        and len(texts := frame.few_labels(name)) > 1
        and as_labels(texts, labels)
    ]


def _doubt_certainty(table, numbers, labels, distinct, likely, options) -> None:
    """Warn of predictions that are all at least ½; refuse them where a column names a class."""
    n = np.count_nonzero(~np.isnan(numbers))
    if options.logits or n < _SURE or not len(distinct) > 1 or not np.nanmax(numbers) <= 1:
        return
    name, floor, are_two = table.names[0], 1 / len(distinct), len(distinct) == 2
    is_sure = np.nanmin(numbers) >= floor
    if are_two:
        likely = [x for x in likely if _is_of_predicted(table.frame, numbers, x, options)]
    if likely and (are_two or is_sure):
        other, reading = likely[0], "Other readings need a column for each class."
        choices: list[dict] = [{"predicted": other}]
        if are_two:
            counts = [(labels == label).sum() for label in distinct]
            often = (
                f"label {label} happened in {count:,} of {sum(counts):,}"
                for label, count in zip(distinct, counts, strict=True)
            )
            reading = (
                f"If it is the probability of one event, pass --ignore {other!r}: its mean is "
                f"{np.nanmean(numbers):.3g}, and {', '.join(often)}."
            )
            choices.append({"ignore": [other]})
        raise FileError(
            f"{table.path}: column {name!r} is at least {floor:.2g} in "
            f"{(numbers >= floor).sum():,} of {n:,} rows, as is the probability of the class that "
            f"a model predicts. Column {other!r} names a class. If {name!r} is the probability of "
            f"that class, pass --predicted {other!r}. {reading}",
            choices=choices,
        )
    if are_two and is_sure:
        warn(
            f"Column {name!r} has no prediction below 0.5, though both labels occur, as "
            "probabilities of the predicted class have none. If a column names that class, pass it "
            "by --predicted.",
            stacklevel=2,
        )


def _refuse_unclear_percentages(table: FileTable, options) -> None:
    """Raise where a column is named as percentages and no number is above 1."""
    name, largest = table.names[0], np.nanmax(table.numbers, initial=0.0)
    given = options.scale != 1 or "scale" in getattr(options, "given", ())
    if given or options.logits or not looks_like("percent", name) or not 0 < largest <= 1:
        return
    mean = np.nanmean(table.numbers)
    raise FileError(
        f"{table.path}: column {name!r} is named as percentages, and none is above {largest:.3g}. "
        f"If they are percentages, pass --percent: the mean is then {mean / PERCENT:.3g}. If they "
        f"are probabilities, pass --scale 1: it is then {mean:.3g}.",
        choices=[{"scale": PERCENT}, {"scale": 1}],
    )


def _is_of_predicted(frame: Frame, numbers: np.ndarray, other: str, options) -> bool:
    """Whether scores may be probabilities of the one of two classes that a column names."""
    texts, words = frame.labels(other).array(), frame.few_labels(other)
    parts = [numbers[(texts == text) & ~np.isnan(numbers)] for text in words]
    if all(map(len, parts)) and sum(part.min() for part in parts) >= 1 - ROUNDED:
        return True  # with any threshold t, since one class has at least t, the other 1 - t
    below = [int((part < 0.5).sum()) for part in parts]
    above = [int((part > 0.5).sum()) for part in parts]
    n, as_event = sum(map(len, parts)), min(above[0] + below[-1], below[0] + above[-1])
    is_unclear = options.pos_label is None and not {*words} <= {"0", "1"}
    is_named = is_unclear or "pred" in other.lower()
    return is_named and sum(below) < min(as_event, _FEW_BELOW * n)


def _event_of(frame: Frame, numbers, likely, distinct) -> str | None:
    """The label that a column names where the score is above ½, and nowhere below."""
    for name in likely if len(distinct) == 2 else ():
        texts = frame.labels(name).array()
        above, below = (np.unique(texts[part]).tolist() for part in (numbers > 0.5, numbers < 0.5))
        if len(above) == len(below) == 1 and above != below:
            return as_labels(above, distinct)[above[0]]
    return None


# Shares


def _with_shares(frame: Frame, soft: str, aside, options, dialect):
    """The table of predictions, that of shares in the same order, and the classes."""
    columns = {n.removeprefix(soft): n for n in frame.header if _is_of_shares(n, soft, aside)}
    if not columns:
        names = ordered_names(frame)
        raise FileError(
            f"{frame.path}: {frame.place} has no column that begins with {soft!r} (columns: "
            f"{all_names(names)}). Name a column of shares or votes of each class by what "
            "--soft says, and the class."
        )
    classes = list(columns)
    numbers = np.column_stack([frame.numbers(name, dialect) for name in columns.values()])
    aside = {*aside, *columns.values()}
    found: Found = Seeker(frame, classes, None, aside, options, dialect).find()
    predicted = found.classes
    if predicted is None:
        if len(classes) != 2:
            raise FileError(
                f"{frame.path}: a single column of probabilities needs shares of two classes, "
                f"found {listed(classes)}. Name a column of probabilities for each class."
            )
        predicted = classes
    elif set(classes) != set(predicted):
        unmatched = sorted(set(classes) ^ set(predicted))
        raise FileError(
            f"{frame.path}: of the classes {listed(unmatched)} there are probabilities or shares, "
            f"not both. Name a column of shares by {soft!r} and the class, and columns that are no "
            "classes by --ignore."
        )
    order = [classes.index(name) for name in predicted]
    names = [columns[name] for name in predicted]
    shares = FileTable(frame.path, numbers[:, order], names, frame=frame)
    return found, shares, np.array(predicted)


def _is_of_shares(name: str, soft: str, aside) -> bool:
    """Whether a column holds shares: its name is ``soft`` and a class."""
    return name.startswith(soft) and name != soft and name not in aside


def require_labels(columns: Columns) -> None:
    """Raise where a row has no label."""
    table, labels = columns.table, columns.outcomes
    if isinstance(labels, FileTable):
        return
    absent = labels == ""
    if table.names and absent.any():
        place = f"{table.path}: {table.words_for_row(int(np.argmax(absent)))}"
        raise _no_label(place, labels, table.frame)


def _no_label(place: str, labels: np.ndarray, frame: Frame | None) -> FileError:
    """What rows without a label may mean."""
    n = np.count_nonzero(labels == "")
    text = f"{place} has no label, as {n:,} of {len(labels):,} rows. {LEAVE_OUT}"
    choices: list[dict[str, Any]] = [{"drop_missing": True}]
    known = [text for text in dict.fromkeys(labels.tolist()) if text]
    if frame is not None and (name := _class_of_empty(frame, known)):
        text += f" A column is named by {name!r}, which programs write as an empty cell. If it "
        text += f"is the label of these rows, pass --empty-label {name}."
        choices.append({"empty_label": name})
    elif len(known) == 1:
        [other] = known
        name = "other" if other != "other" else "none"
        text += f" All others are {other!r}. If an empty cell is the other class, pass "
        text += f"--empty-label {name} --pos-label {other!r}."
        choices = [{"empty_label": name, "pos_label": other}]
    return FileError(text, choices=choices)


def _class_of_empty(frame: Frame, known: Sequence[str]) -> str | None:
    """A word for missing values by which a column is named, as others are by labels."""
    words = ("none", "na", "nan", "null", "missing")
    return next(iter(_named_as_others(frame.header, words, known).values()), None)


def unlabelled_table(path, classes, features, options, dialect) -> FileTable:
    """The table of a file of predictions of these classes, or of a single column (None)."""
    long = read_table(path, options.max_bytes, dialect, options.frames)
    frame = by_sample(long, options)
    if frame is not long and options.command == "recalibrate":
        raise FileError(
            f"{path}: has a row for each sample and class, and such a table is not written. Save a "
            "column for each class."
        )
    score, soft = options.score, options.soft
    named = dict.fromkeys(features, "--feature") | ({} if score is None else {score: "--score"})
    check_header(frame, named, options, dialect)
    aside = {options.label, *options.ignore, options.weight, options.groups, *features}
    aside |= {options.count, options.predicted, *options.by, *options.segments}
    aside |= columns_of_only(frame, options).keys()
    if soft is not None:
        aside |= {name for name in frame.header if _is_of_shares(name, soft, aside)}
    seeker = Seeker(frame, classes or [], None, aside, options, dialect)
    table = (seeker.single() if classes is None else seeker.of_classes()).table
    keep, _ = _kept(frame, options, is_labelled=False)
    table = table if keep.all() else table.take(keep)
    require_cells(path, table.names, table.numbers)
    return table


def text_column(table: FileTable, name: str, max_bytes) -> np.ndarray:
    """A column of a table that is read as texts, or an array of an archive."""
    if table.frame is not None:
        return table.frame.texts(name).stripped().array(table.path, max_bytes)
    if table.arrays is None or name not in table.arrays:
        raise FileError(f"{table.path}: has no array {name!r}. Save it beside 'proba'.")
    return decoded(table.arrays[name])
