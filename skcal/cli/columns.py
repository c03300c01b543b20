"""The classes, labels and shares among the columns of a table or the arrays of an archive."""

from __future__ import annotations

import re
from argparse import Namespace
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NamedTuple
from warnings import warn

import numpy as np

from skcal._show import listed
from skcal.cli.cells import LEAVE_OUT, Dialect, bare, is_missing, is_whole, quoted, whole
from skcal.cli.clusters import are_copies, hints, refused_or_told
from skcal.cli.find import OF_PERCENT, Found, Seeker
from skcal.cli.frames import Frame, SomeRows, Texts, all_names
from skcal.cli.long import by_sample
from skcal.cli.names import folded, is_known, names_models, says_what_happened, words_of
from skcal.cli.parts import read_table
from skcal.cli.problems import PERCENT, FileError, check_size
from skcal.cli.table import FileTable, read_arrays, require_cells

#: Arrays of an archive, in the order in which they are taken.
_CLASSES = ("classes", "classes_", "class_names", "target_names", "label_names")
_SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabulators", "|": "bars", " ": "blanks"}
#: Columns of SAS, 1 of rows of training.
_PARTITIONS = frozenset(["_partind_", "_partition_", "_part_", "partition", "partind"])
_CODE = re.compile(r"-?9{1,4}|-[1-9]")  # for missing labels
_OF_PREDICTED = re.compile(r"pred|guess|classif|assigned|scored|decision|_hat", re.IGNORECASE)
_MOST_CHOICES, _MOST_SHOWN, _FEW_SHOWN, _MOST_LOOKED_AT = 6, 12, 4, 500  # columns, and texts of one
_FEW = 30  # different texts of a column that may hold labels
_ROUNDED = 0.01  # by which two rounded probabilities may sum to less than 1
_FEW_BELOW = 0.1  # of the rows, where the class that is predicted has less than ½
_OF_LIBRARY = re.compile(r"tensor\(|np\.|numpy\.")  # how one writes single numbers
_OF_OUTCOME = 1.5  # the rank of a column that is named as an outcome, behind those named as labels
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
    _check_header(frame, named, options, dialect)
    beside = {name: text_array(path, frame.texts(name), max_bytes) for name in others}
    aside = {*named, *spared, label}
    _refuse_several_models(frame, aside)
    if soft is not None:
        found, shares, classes = _with_shares(frame, soft, aside, options, dialect)
        require_cells(path, found.table.names, found.table.numbers)
        return Columns(found.table, shares, classes, beside, (*frame.notes, *found.notes))
    texts = frame.texts(label)
    check_size(path, 4 * len(texts.codes) * max(map(len, texts.values), default=0), max_bytes)
    labels, notes = _with_empty(plain_labels(texts), options)
    distinct = _distinct(texts)
    distinct += [options.empty_label] * (len(notes) and options.empty_label not in distinct)
    distinct += _classes_like_missing(frame, labels, distinct, aside)
    if len(labels) and not (distinct or options.drop_missing or options.skip_unlabelled):
        raise FileError(f"{frame.place_of(0)} has no label. {LEAVE_OUT}", drop_missing=True)
    absent = np.flatnonzero(labels == "")
    leaves_out = options.drop_missing or options.missing or options.skip_unlabelled
    if len(absent) and not leaves_out and _class_of_empty(frame, distinct):
        raise _no_label(frame.place_of(int(absent[0])), labels, frame)
    _refuse_two_columns_of_labels(frame, label, distinct, aside, options)
    if not len(labels):
        require_cells(path, [name for name in frame.header if name not in aside], labels)
    _refuse_files_of_the_same_samples(frame, options.id)
    found = Seeker(frame, distinct, labels, aside, options, dialect).find()
    table, classes, notes = found.table, None, [*frame.notes, *found.notes, *notes]
    predicted = event = None
    require_cells(path, table.names, table.numbers)
    if found.classes is not None:
        names = Texts(found.classes, range(len(found.classes)))
        classes = text_array(path, names, max_bytes)
    elif options.predicted is not None:
        predicted = plain_labels(frame.texts(options.predicted))
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
    keep, said = np.ones(len(frame), bool), list[str]()
    for name, values in columns_of_only(frame, options).items():
        if name in frame.header:
            texts = plain_labels(frame.texts(name))
            for value in values:
                if value not in texts:
                    raise FileError(
                        f"{frame.path}: no row of column {name!r} is {value!r} (rows are: "
                        f"{listed(_distinct(frame.texts(name)))}). Pass one of these by --only."
                    )
            keep &= np.isin(texts, values)
            said.append(f"{name} = {listed(values)}")
    if options.distinct:
        is_copy = are_copies(frame, np.flatnonzero(keep))
        said += [f"{is_copy.sum():,} are copies of others"] * bool(is_copy.any())
        keep[np.flatnonzero(keep)[is_copy]] = False
    if not said:
        return frame
    if not keep.any():
        raise FileError(f"{frame.path}: no row has {listed(said)}. Leave out an --only.")
    note = f"Read are {keep.sum():,} of {len(keep):,} rows: {listed(said)}."
    return SomeRows(frame, np.flatnonzero(keep), [*frame.notes, note])


def same_columns(frame: Frame, settled: Columns, others, options, dialect: Dialect) -> Columns:
    """The columns of further rows of a table, which mean what they mean in the first ones."""
    table, label, shares = settled.table, options.label, settled.outcomes
    named = dict(others) if isinstance(shares, FileTable) else {label: "--label", **others}
    for name, option in named.items():
        if name not in frame.header:
            raise _absent(frame, name, option, options, dialect)
    classes = None if settled.classes is None else settled.classes.tolist()
    seeker = Seeker(frame, classes or [], None, set(), options, dialect)
    found = seeker.again(table, classes)
    if isinstance(shares, FileTable):
        numbers = np.column_stack([frame.numbers(name, dialect) for name in shares.names])
        outcomes: Any = FileTable(frame.path, numbers, shares.names, frame=frame)
    else:
        outcomes, _ = _with_empty(plain_labels(frame.texts(label)), options)
    beside = {name: text_array(frame.path, frame.texts(name), options.max_bytes) for name in others}
    known = None if found.classes is None else np.array(found.classes)
    return Columns(found.table, outcomes, known, beside)


def text_array(path, texts: Texts, max_bytes) -> np.ndarray:
    """An array of texts without blanks around them; each takes the place of the longest."""
    values = [text.strip() for text in texts.values]
    check_size(path, 4 * len(texts.codes) * max(map(len, values), default=0), max_bytes)
    return np.array(values, dtype=str)[np.asarray(texts.codes)]


def _with_empty(labels: np.ndarray, options) -> tuple[np.ndarray, list[str]]:
    """Labels with ``--empty-label`` in place of none, and a sentence that says so."""
    absent = labels == ""
    if options.empty_label is None or not absent.any():
        return labels, []
    note = f"{absent.sum():,} empty labels are read as {options.empty_label!r}."
    return np.where(absent, options.empty_label, labels), [note]


def plain_labels(texts: Texts) -> np.ndarray:
    """Labels without blanks around them; whole numbers without decimals, ``2`` for ``2.0``."""
    values = [text.strip() for text in texts.values]
    values = [bare(text) if _OF_LIBRARY.match(text) else text for text in values]
    plain = [whole(text) for text in values]
    if all(is_missing(text) or text.lstrip("+-").isdecimal() for text in plain):
        values = plain
    return np.array(values, dtype=str)[np.asarray(texts.codes)] if values else np.array([], str)


# The header


def ordered_names(frame: Frame) -> list[str]:
    """All names of columns, first those that can be labels, then those that can be scores."""

    def rank(name: str) -> int:
        if is_known("label", name):
            return 0
        kind = frame.kind(name) if len(frame.header) < 500 else "text"
        if kind in ("number", "text") and 2 <= frame.n_distinct(name) <= _FEW:
            return 1
        return 2 if kind in ("number", "vector") else 3

    names = [name for name in dict.fromkeys(frame.header) if name]
    return sorted(names, key=rank)


def _check_header(frame: Frame, options: dict[str, str], given: Namespace, dialect) -> None:
    """Raise unless every column has a name of its own, and those that options name are there."""
    path, place, header = frame.path, frame.place, frame.header
    if not any(header):
        raise FileError(
            f"{path}: {place} is empty. Give a header: the class of each column, and the column "
            "of labels."
        )
    sep = frame.sep or ","
    other = next((sign for sign in _SEPARATORS if sign != sep and sign in header[0]), None)
    if len(header) == 1 and other and not options.keys() <= set(header):
        option = {"\t": "tab"}.get(other, repr(other))
        raise FileError(
            f"{path}: {place} is one column. If {_SEPARATORS[other]} separate its fields, not "
            f"{_SEPARATORS.get(sep, repr(sep))}, pass --sep {option}.",
            sep=other,
        )
    if header[0].startswith("#") and not options.keys() <= set(header):
        raise FileError(f"{path}: {place} is {header[0]!r}, not a header. Delete that line.")
    for name, option in options.items():
        if name not in header:
            raise _absent(frame, name, option, given, dialect)
    known: set[str] = set()
    for name in header:
        if not name and name not in options and name not in frame.aside:
            raise FileError(
                f"{path}: {place} has a column without a name. Pass --ignore '' if it numbers the "
                "rows.",
                ignore=[""],
            )
        if name in known:
            raise FileError(f"{path}: {place} names column {name!r} twice. Name each class once.")
        known.add(name)


def _absent(frame: Frame, name: str, option: str, given: Namespace, dialect) -> FileError:
    """What is wrong where a column is missing that an option names."""
    header = frame.header
    remedy, offer = f"Name a column by {option}.", dict[str, Any]()
    numbers = [name for name in header if Dialect(decimal=dialect.decimal).is_number(name)]
    again = next((n for n in header if n and n not in frame.aside and _is_its_value(frame, n)), "")
    if dialect.header and (len(numbers) == len(header) or not all(map(is_whole, numbers))):
        return FileError(
            f"{frame.path}: {frame.place} holds numbers where names of columns are expected, such "
            f"as {numbers[-1]!r}. If the file has no header, pass --header none; its columns are "
            f"then called column1 to column{len(header)}.",
            header="none",
        )
    if dialect.header and again and option == "--label":
        return FileError(
            f"{frame.path}: {frame.place} names a column {again!r}, which stands in its rows, too. "
            "If that line is a sample, pass --header none; the columns are then called column1 to "
            f"column{len(header)}. If not, name the column of labels by --label.",
        )
    if is_label := name == given.label and option == "--label":
        remedy = "Name the column of labels by --label."
        aside = {*given.ignore, given.score, given.predicted, *frame.aside}
        rest = [n for n in header if n not in aside]
        one_hot = _one_hot(frame, dialect) if not any(is_known("label", n) for n in rest) else None
        likely, others = ({}, {}) if one_hot else _likely_labels(frame, rest, given, dialect)
        if len(likely) == 1 and not others:
            offer = {"label": next(iter(likely))}
        elif len(likely) <= _MOST_CHOICES:
            offer = {"choices": [{"label": n} for n in likely]}
        if likely or others:
            shown = [f"{n!r} ({why})" for n, why in (likely | others).items()]
            remedy += f" What happened may be in {listed(shown, _MOST_SHOWN)}."
        if not (likely or one_hot):
            remedy = f"If no column holds what happened, add one. {remedy}"
        if one_hot:
            remedy += f" If the columns {one_hot}… hold 1 for the class that happened, pass --soft "
            remedy += f"{quoted(one_hot)}."
            offer = {"soft": one_hot}
    elif "," in name and option == "--ignore":
        remedy = "Repeat --ignore for each column."
    names = ordered_names(frame)
    return FileError(
        f"{frame.path}: {frame.place} has no column {name!r} (columns: "
        f"{all_names(names)}). {remedy}{hints(frame, names) if is_label and not offer else ''}",
        **offer,
    )


def _is_its_value(frame: Frame, name: str) -> bool:
    """Whether a column's cells hold its name, as where the first sample is read as a header."""
    return frame.kind(name) == "text" and name in _few_texts(frame, name)


def _likely_labels(
    frame: Frame, rest: Sequence[str], options, dialect: Dialect
) -> tuple[dict[str, str], dict[str, str]]:
    """Columns that may hold what happened, each with why: those that are likely, and others."""
    ranks, numbers = list[tuple[float, str, str]](), dict[str, np.ndarray]()
    words, of_predicted = dict[str, set[str]](), list[set[str]]()
    rest = rest if len(rest) < _MOST_LOOKED_AT else []
    seeker = Seeker(frame, [], None, {*frame.header} - {*rest}, options, dialect)
    for name in filter(seeker.is_in_unit, seeker.candidates()):
        with suppress(FileError):
            numbers[name] = seeker.numbers(name)
    for name in rest:
        texts = _few_texts(frame, name)
        known = [text for text in texts if not _CODE.fullmatch(text)]
        texts = known if len(known) > 1 else texts
        are_fractions = any(Dialect().is_number(t) and not is_whole(t) for t in texts)
        if name in numbers or not texts or are_fractions:
            continue
        found = plain_labels(frame.texts(name))
        n_empty = np.sum(found == "")
        if len(texts) + (n_empty > 0) < 2:
            continue
        why = ", ".join(f"{t}: {np.sum(found == t):,}" for t in texts[:_FEW_SHOWN])
        why += ", …" * (len(texts) > _FEW_SHOWN) + f", empty: {n_empty:,}" * bool(n_empty)
        columns, is_predicted = _columns_of(found, texts, numbers)
        if columns:
            why += f"; named so are the columns {listed(columns)}"
        is_pair = {*texts} == {"0", "1"} or any(is_known("negative", t) for t in texts)
        is_pair = len(texts) == 1 or (len(texts) == 2 and is_pair)
        last = name.rpartition(".")[2]  # of a field of an object
        is_named = is_known("label", last) and name.lower() not in ("label", "class")
        rank = 0.0 if is_named else 1.0 if columns else 2.0 if is_pair else 4.0 - (len(texts) == 2)
        if rank > 1 and says_what_happened(name):
            rank = _OF_OUTCOME
        words[name] = {*texts}
        if is_predicted or _OF_PREDICTED.search(name):
            rank = 5
            of_predicted.append(words[name])
            why += "; as the scores say in each row" if is_predicted else "; named as predictions"
        ranks.append((rank, name, why))
    ranks = [  # those of the words that were predicted, too
        (_OF_OUTCOME if 1 < rank < 5 and words[name] in of_predicted else rank, name, why)
        for rank, name, why in ranks
    ]
    ranks.sort(key=lambda entry: entry[0])
    best = max(1.0, min((rank for rank, *_ in ranks), default=0.0))
    best = {2.0: 3.0, 5.0: 0.0}.get(best, best)  # since of two labels the words say little
    likely = {name: why for rank, name, why in ranks if rank <= best}
    return likely, {name: why for rank, name, why in ranks if rank > best}


def _columns_of(found, texts, numbers: dict[str, np.ndarray]) -> tuple[list[str], bool]:
    """Columns of probabilities that labels name, and whether scores alone say the labels."""
    columns, is_said, marks = list[str](), False, np.isin(found, texts)
    for part in Seeker.patterns(list(numbers), texts).values():
        if 1 < len(part) == len(texts):
            rows = np.column_stack([numbers[part[text]] for text in texts])[marks]
            rows = np.where(np.isnan(rows), 0.0, rows)
            if np.mean(np.abs(rows.sum(axis=1) - 1) < _ROUNDED) > 0.5:
                columns = columns or [part[text] for text in texts]
                same = np.array(texts)[rows.argmax(axis=1)] == found[marks]
                is_said |= len(same) >= _SURE and same.mean() > 1 - _ROUNDED
    for values in numbers.values() if len(texts) == 2 else ():
        with np.errstate(invalid="ignore"):
            marks = np.isin(found, texts) & (values >= 0) & (values <= 1)
        first, second = (values[marks & (found == text)] for text in texts)
        if len(first) and len(second) and marks.sum() >= _SURE and np.ptp(values[marks]) > 0:
            is_said |= bool(first.min() >= second.max() or second.min() >= first.max())
    return columns, is_said


def _one_hot(frame: Frame, dialect: Dialect) -> str | None:
    """The prefix of columns of which one is 1 in each row, beside others of the same endings."""
    names = [name for name in frame.header if frame.kind(name) == "number"]
    if not 4 <= len(names) <= 200:
        return None
    found = set()
    for start in {name[:k] for name in names for k in range(1, len(name))}:
        ends = [name.removeprefix(start) for name in names if name.startswith(start)]
        ends = [end for end in ends if end]
        if len(ends) < 2 or 2 * len(ends) > len(names):
            continue
        hot = np.column_stack([frame.numbers(f"{start}{end}", dialect) for end in ends])
        if not (np.isin(hot, (0, 1)).all() and (hot.sum(axis=1) == 1).all()):
            continue
        others = [name for name in names if not name.startswith(start)]
        if all(any(name.endswith(end) for name in others) for end in ends):
            found.add(start)
    return max(found, key=len) if found else None


def _refuse_two_columns_of_labels(frame: Frame, label, distinct, aside, options) -> None:
    """Raise where ``label``, which no option names, may be what was predicted."""
    if options.correct is not None or options.predicted is not None:
        return
    if "label" in getattr(options, "given", ()):
        return
    for name in frame.header:
        is_plain = name.lower() in ("label", "labels", "class")
        if is_plain or name in aside or not is_known("label", name):
            continue
        texts = _few_texts(frame, name)
        if set(texts) == set(distinct):
            raise FileError(
                f"{frame.path}: the columns {label!r} and {name!r} hold the same labels. Name the "
                "one that holds what happened by --label; if the other is what was predicted, and "
                "the score its probability, name that by --predicted.",
                choices=[{"label": name}, {"label": label}],
            )
        if len(texts) == len(distinct) > 1 and _are_two_facts(frame, label, name, len(texts)):
            raise FileError(
                f"{frame.path}: the columns {label!r} and {name!r} hold {len(texts)} labels each, "
                "and differ. One may be what was predicted. Name the one that holds what happened "
                "by --label."
            )


def _are_two_facts(frame: Frame, label: str, other: str, n_labels: int) -> bool:
    """Whether columns of as many labels are more than two names of the same ones."""
    pairs = zip(*(plain_labels(frame.texts(name)).tolist() for name in (label, other)), strict=True)
    return len({pair for pair in pairs if not any(map(is_missing, pair))}) > n_labels


def _refuse_several_models(frame: Frame, aside) -> None:
    """Raise where a column names several models, or rows of training beside others."""
    for name in frame.header:
        known = [] if name in aside else models_in(frame, name)
        what, reading = "models", "all rows are of one model"
        if not names_models(name):
            what, reading = "parts", "the model was fitted to none of these rows"
            if name.lower() not in _PARTITIONS and not _are_parts(known, both=True):
                continue
        if 1 < len(known) <= len(frame) / 2:  # else these may be probabilities
            shown = [text for text in known if is_known("test", text)] or known
            beside = " Predictions of training rows look better than those of new ones."
            raise FileError(
                f"{frame.path}: column {name!r} names {len(known)} {what}: {listed(known)}."
                f"{beside if what == 'parts' else ''} The command report shows each by --by "
                f"{name!r}, and --only '{name}={shown[-1]}' keeps the rows of one. If {reading}, "
                f"pass --ignore {name!r}.",
                choices=[{"only": [f"{name}={value}"]} for value in shown[:_MOST_CHOICES]],
            )


def models_in(frame: Frame, name: str, before: Sequence[str] = ()) -> list[str]:
    """The models, or the parts such as training rows, that a column names; none of other columns.

    Those of earlier rows, ``before``, stand first.
    """
    of_models = names_models(name) or name.lower() in _PARTITIONS
    if not (of_models or frame.kind(name) == "text"):
        return []
    if not (of_models or _are_parts(_distinct(frame.texts(name, _SURE)))):
        return []
    known = list(dict.fromkeys([*before, *_few_texts(frame, name)]))
    return known if of_models or _are_parts(known, both=len(known) > 1) else []


def tell_training(frame: Frame, rest: Sequence[str], options) -> list[str]:
    """What columns say of all rows; no verdict where one says that they are of training."""
    same = []
    for name in rest:
        known = models_in(frame, name)
        of_part = name.lower() in _PARTITIONS
        if len(known) != 1:
            continue
        if not (is_known("training", known[0]) or (of_part and known == ["1"])):
            same.append(f"Column {name!r} is {known[0]!r} in all rows.")
            continue
        told = (
            f"Column {name!r} is {known[0]!r} in all rows, as those of training are, whose "
            "predictions look better than those of new ones. If the model was fitted to none of "
            f"them, pass --ignore {name!r}."
        )
        return [*same, *refused_or_told(frame.path, told, [{"ignore": [name]}], options)]
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
    names = zip(*(plain_labels(frame.texts(name)).tolist() for name in ids), strict=True)
    for name, file in zip(names, frame.files.tolist(), strict=True):
        if files.setdefault(name, file) != file:
            shown = ", ".join(f"{c} {part!r}" for c, part in zip(ids, name, strict=True))
            raise FileError(
                f"{frame.path}: {shown} is in {files[name]} and in {file}. If these are "
                "predictions of several models, read each file alone."
            )


def _few_texts(frame: Frame, name: str, most: int | None = None) -> list[str]:
    """The different texts of a column, or of its first rows, as labels are read, if few."""
    if frame.kind(name) not in ("number", "text") or frame.n_distinct(name) > _FEW:
        return []
    return _distinct(frame.texts(name, most))


def _classes_like_missing(frame: Frame, labels: np.ndarray, others, aside) -> list[str]:
    """Labels such as none that a column is named by, with the same words beside as another's."""
    names = {name.lower() for name in frame.header if name not in aside}
    return [
        text
        for text in dict.fromkeys(labels.tolist())
        if len(text) > 1 and is_missing(text)
        for part in [text.lower()]
        if any(
            f"{name[: found.start()]}{other.lower()}{name[found.end() :]}" in names
            for name in names
            for found in re.finditer(re.escape(part), name)
            for other in others
        )
    ]


def _distinct(texts: Texts) -> list[str]:
    """The different labels of a column that are not missing."""
    known = plain_labels(Texts(texts.values, range(len(texts.values)))).tolist()
    return [text for text in dict.fromkeys(known) if not is_missing(text)]


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
        and as_labels(_few_texts(frame, name, _SURE), labels)
        and len(texts := _few_texts(frame, name)) > 1
        and as_labels(texts, labels)
    ]


def _doubt_certainty(table, numbers, labels, distinct, likely, options) -> None:
    """Warn of predictions that are all at least ½; refuse them where a column names a class."""
    n = np.count_nonzero(~np.isnan(numbers))
    if options.logits or n < _SURE or not len(distinct) > 1 or not np.nanmax(numbers) <= 1:
        return
    lowest = np.nanmin(numbers)
    floor, frame = 1 / len(distinct), table.frame
    if len(distinct) == 2:
        likely = [other for other in likely if _is_of_predicted(frame, numbers, other, options)]
    elif lowest < floor:
        return
    name = table.names[0]
    if likely:
        mean, other = f"{np.nanmean(numbers):.3g}", likely[0]
        reading = "Other readings need a column for each class."
        choices: list[dict] = [{"predicted": other}]
        if len(distinct) == 2:
            happened = [(labels == label).sum() for label in distinct]
            counts = ", ".join(
                f"label {label} happened in {n:,} of {sum(happened):,}"
                for label, n in zip(distinct, happened, strict=True)
            )
            reading = (
                f"If it is the probability of one event, pass --ignore {other!r}: its mean is "
                f"{mean}, and {counts}."
            )
            choices.append({"ignore": [other]})
        often = f"{(numbers >= floor).sum():,} of {n:,} rows"
        raise FileError(
            f"{table.path}: column {name!r} is at least {floor:.2g} in {often}, as is the "
            f"probability of the class that a model predicts. Column {other!r} names a class. If "
            f"{name!r} is the "
            f"probability of that class, pass --predicted {other!r}. {reading}",
            choices=choices,
        )
    if len(distinct) == 2 and lowest >= floor:
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
    if given or options.logits or not OF_PERCENT.search(name) or not 0 < largest <= 1:
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
    texts = plain_labels(frame.texts(other))
    parts = [numbers[(texts == text) & ~np.isnan(numbers)] for text in _few_texts(frame, other)]
    if all(map(len, parts)) and sum(part.min() for part in parts) >= 1 - _ROUNDED:
        return True  # with any threshold t, since one class has at least t, the other 1 - t
    below = [int((part < 0.5).sum()) for part in parts]
    above = [int((part > 0.5).sum()) for part in parts]
    n, as_event = sum(map(len, parts)), min(above[0] + below[-1], below[0] + above[-1])
    unclear = options.pos_label is None and not set(_few_texts(frame, other)) <= {"0", "1"}
    named = unclear or "pred" in other.lower()
    return named and sum(below) < min(as_event, _FEW_BELOW * n)


def _event_of(frame: Frame, numbers, likely, distinct) -> str | None:
    """The label that a column names where the score is above ½, and nowhere below."""
    high, low = numbers > 0.5, numbers < 0.5
    for name in likely if len(distinct) == 2 and high.any() and low.any() else ():
        texts = plain_labels(frame.texts(name))
        above, below = set(texts[high].tolist()), set(texts[low].tolist())
        if len(above) == len(below) == 1 and above != below:
            return as_labels(list(above), distinct)[above.pop()]
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


def check_names(columns: Columns) -> None:
    """Raise where a row has no label, or only the order of columns says what they are."""
    table, labels = columns.table, columns.outcomes
    if isinstance(labels, FileTable):
        return
    if not table.names:
        if columns.classes is None and table.numbers.ndim == 2 and labels.dtype.kind == "U":
            names = np.unique(labels).tolist()
            by_number = _by_number(names)
            if by_number != names:
                raise FileError(
                    f"{table.path}: the labels are digits as texts, and no array 'classes' says "
                    "which class a column is of. The columns may be in the order of numbers, "
                    f"--labels {','.join(by_number)}, or of texts, --labels {','.join(names)}. "
                    "Pass the one that is right, or save classes=….",
                    choices=[{"labels": by_number}, {"labels": names}],
                )
            warn(
                f"{table.path}: without an array 'classes' the columns are taken to be in the "
                f"order of the sorted labels, {listed(names)}. Save an array "
                "'classes' or pass --labels to say which they are.",
                stacklevel=2,
            )
        return
    absent = np.flatnonzero(labels == "")
    if len(absent):
        place = f"{table.path}: {table.words_for_row(int(absent[0]))}"
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
    names = {name.casefold(): name for name in frame.header}
    for word in ("none", "na", "nan", "null", "missing"):
        for name in names:
            for other in map(str.casefold, known):
                start, found, end = name.partition(other)
                if found and (column := names.get(f"{start}{word}{end}")) is not None:
                    return column[len(start) : len(start) + len(word)]
    return None


def _by_number(names: list[str]) -> list[str]:
    """Digits in the order of numbers; other names as they are."""
    return sorted(names, key=int) if all(name.isdecimal() for name in names) else names


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
    _check_header(frame, named, options, dialect)
    aside = {options.label, *options.ignore, options.weight, options.groups, *features}
    aside |= {options.count, options.predicted, *options.by, *options.segments}
    aside |= columns_of_only(frame, options).keys()
    if soft is not None:
        aside |= {name for name in frame.header if _is_of_shares(name, soft, aside)}
    seeker = Seeker(frame, classes or [], None, aside, options, dialect)
    table = (seeker.single() if classes is None else seeker.of_classes()).table
    keep = np.ones(len(frame), bool)
    for name, values in columns_of_only(frame, options).items():
        if name in frame.header:
            keep &= np.isin(plain_labels(frame.texts(name)), values)
        else:
            warn(f"{path}: has no column {name!r}, so that all of its rows are used.", stacklevel=2)
    if options.distinct:
        keep[np.flatnonzero(keep)[are_copies(frame, np.flatnonzero(keep))]] = False
    table = table if keep.all() else table.take(keep)
    require_cells(path, table.names, table.numbers)
    return table


def text_column(table: FileTable, name: str, max_bytes) -> np.ndarray:
    """A column of a table that is read as texts, or an array of an archive."""
    if table.frame is not None:
        return text_array(table.path, table.frame.texts(name), max_bytes)
    if table.arrays is None or name not in table.arrays:
        raise FileError(f"{table.path}: has no array {name!r}. Save it beside 'proba'.")
    return _decoded(table.arrays[name])


# What the arrays of an archive mean


def labelled_arrays(path, others, options) -> Columns:
    """Return what :func:`labelled_table` returns, of an archive."""
    proba = options.score or "proba"
    outcome = options.soft or ("labels" if options.label == "label" else options.label)
    arrays = read_arrays(path, options.max_bytes, [proba, outcome, *others], _CLASSES)
    arrays = {name: _decoded(values) for name, values in arrays.items()}
    numbers = Dialect(codes=options.missing).without_codes(arrays[proba])
    notes = list[str]()
    if numbers.ndim == 2 and numbers.shape[1] == 1:  # as Keras gives
        numbers = numbers[:, 0]
        notes.append(f"Array {proba!r} has one column, the probability of one class.")
    table = FileTable(path, numbers, [])
    outcomes, classes = arrays[outcome], _array_of_classes(arrays)
    if classes is None and options.labels:
        kind = outcomes.dtype.kind
        classes = np.array([int(x) for x in options.labels] if kind in "iu" else options.labels)
    if options.score or outcome != "labels":
        notes.append(f"Array {proba!r} holds the predictions, array {outcome!r} what happened.")
    if classes is not None and "classes" not in arrays:
        notes.append(f"The columns of array {proba!r} are the classes {listed(classes.tolist())}.")
    beside = {name: arrays[name] for name in others}
    if options.soft is None:
        labels, how = _labels_of_array(path, outcome, outcomes, classes, arrays[proba].shape)
        return Columns(table, labels, classes, beside, (*notes, *how))
    if classes is None:
        classes = np.arange(outcomes.shape[-1] if outcomes.ndim else 0)
    return Columns(table, table._replace(numbers=outcomes), classes, beside, tuple(notes))


def _labels_of_array(path, name: str, outcomes, classes, shape) -> tuple[np.ndarray, list[str]]:
    """The label of each row: of one-hot rows, and of places among named classes, what they mean."""
    kind, known = outcomes.dtype.kind, classes is not None and classes.dtype.kind == "U"
    if outcomes.ndim == 2 and outcomes.shape[1] == 1:
        outcomes = outcomes[:, 0]
    of_classes = outcomes.shape == shape if len(shape) == 2 else outcomes.shape[1:] == (2,)
    are_rows = outcomes.ndim == 2 and of_classes and kind in "biuf"
    if are_rows and np.allclose(outcomes.sum(axis=1), 1):
        if not np.isin(outcomes, (0, 1)).all():
            raise FileError(
                f"{path}: array {name!r} has {outcomes.shape[1]} columns, whose rows sum to 1. "
                f"If these are shares of the classes, pass --soft {name}.",
                soft=name,
            )
        places = outcomes.argmax(axis=1)
        labels = places if classes is None else classes[places]
        return labels, [f"Array {name!r} holds 1 for the class that happened."]
    if kind == "f" and outcomes.ndim == 1 and (outcomes % 1 > 0).any():
        raise FileError(
            f"{path}: array {name!r} holds fractions, such as {outcomes[outcomes % 1 > 0][0]:.3g}, "
            "and no labels. If they are shares of the second of two classes, save the shares of "
            f"both as two columns, and pass --soft {name}."
        )
    are_places = kind in "iu" and known and not any(str(text).isdecimal() for text in classes)
    if are_places and outcomes.size and outcomes.min() >= 0 and outcomes.max() < len(classes):
        return classes[outcomes], [f"Array {name!r} holds places among the classes, from 0."]
    return outcomes, []


def _array_of_classes(arrays: dict[str, np.ndarray]) -> np.ndarray | None:
    """The class of each column, if an archive holds them."""
    return next((arrays[name] for name in _CLASSES if name in arrays), None)


def _decoded(values):
    """Text where there are bytes, which JSON and messages do not hold."""
    return np.char.decode(values, "utf-8") if values.dtype.kind == "S" else values


def unlabelled_arrays(path, classes, single, options) -> FileTable:
    """Return what :func:`unlabelled_table` returns, of an archive."""
    name = options.score or "proba"
    arrays = read_arrays(path, options.max_bytes, [name])
    proba, n_classes = arrays[name], len(classes)
    if not proba.ndim or proba.shape[1:] != (() if single else (n_classes,)):
        wanted = "one dimension" if single else f"{n_classes} columns"
        raise FileError(
            f"{path}: array {name!r} has shape {proba.shape}, where the map reads {wanted}. Give "
            "the columns of the predictions to fit to."
        )
    order = list(range(n_classes))
    known = _array_of_classes(arrays)
    if known is not None and not single:
        names = [str(name) for name in known.tolist()]
        if sorted(names) != sorted(classes):
            raise FileError(f"{path}: has classes {listed(names)}, not {listed(classes)}.")
        order = [names.index(name) for name in classes]
        proba = proba[:, order]
    if not len(proba):
        raise FileError(f"{path}: no rows of probabilities. Give a row per sample.")
    proba = Dialect(codes=options.missing).without_codes(proba)
    return FileTable(path, proba, [], order=order, arrays=arrays)
