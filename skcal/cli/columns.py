"""The classes, labels and shares among the columns of a table or the arrays of an archive."""

from __future__ import annotations

import re
from argparse import Namespace
from collections.abc import Sequence
from typing import Any, NamedTuple
from warnings import warn

import numpy as np

from skcal._show import listed
from skcal.cli.cells import LEAVE_OUT, Dialect, is_missing, is_whole, whole
from skcal.cli.find import Found, Seeker
from skcal.cli.frames import Frame, Texts, all_names
from skcal.cli.parts import read_table
from skcal.cli.problems import PERCENT, FileError, check_size
from skcal.cli.table import FileTable, read_arrays, require_cells

_LIKELY_LABELS = {"label", "labels", "y", "y_true", "y_test", "target", "outcome", "class", "truth"}
_LIKELY_LABELS |= {"true_label", "true_class", "actual", "actual_class", "obs", "observed", "gold"}
_LIKELY_LABELS |= {"gold_label", "ground_truth", "reference"}
#: Last words of names of columns that tell models apart, such as model_id, modelVersion, variant.
_OF_MODELS = re.compile(
    r"\.config|mtry|system|(.*[\W_])?(model|classifier|algorithm|engine|version|variant)"
    r"([\W_]*(name|id|key|tag))?"
)
_OF_TRAINING = {"train", "training", "learn", "learning", "in-sample", "in_sample"}
_OF_TESTS = {"test", "testing", "validation", "validate", "valid", "val", "holdout", "hold-out"}
_OF_TESTS |= {"dev", "oot", "oos", "out-of-sample", "out_of_sample", "out-of-time", "out_of_time"}
#: Arrays of an archive, in the order in which they are taken.
_CLASSES = ("classes", "classes_", "class_names", "target_names", "label_names")
OF_PERCENT = re.compile(r"%|(?<![a-z])(pct|percent|percentage|prozent)(?![a-z])", re.IGNORECASE)
_SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabulators", "|": "bars", " ": "blanks"}
_FEW = 30  # different texts of a column that may hold labels
_ROUNDED = 0.01  # by which two rounded probabilities may sum to less than 1
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
    label, soft, max_bytes = options.label, options.soft, options.max_bytes
    named = {**dict.fromkeys(options.ignore, "--ignore"), **others}
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
    labels = plain_labels(texts)
    distinct = _distinct(texts)
    distinct += _classes_like_missing(frame, labels, distinct, aside)
    if len(labels) and not (distinct or options.drop_missing or options.skip_unlabelled):
        raise FileError(f"{frame.place_of(0)} has no label. {LEAVE_OUT}", drop_missing=True)
    _refuse_two_columns_of_labels(frame, label, distinct, aside, options)
    if not len(labels):
        require_cells(path, [name for name in frame.header if name not in aside], labels)
    _refuse_files_of_the_same_samples(frame, options.id)
    found = Seeker(frame, distinct, labels, aside, options, dialect).find()
    table, classes, notes = found.table, None, [*frame.notes, *found.notes]
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
        outcomes = plain_labels(frame.texts(label))
    beside = {name: text_array(frame.path, frame.texts(name), options.max_bytes) for name in others}
    known = None if found.classes is None else np.array(found.classes)
    return Columns(found.table, outcomes, known, beside)


def text_array(path, texts: Texts, max_bytes) -> np.ndarray:
    """An array of texts without blanks around them; each takes the place of the longest."""
    values = [text.strip() for text in texts.values]
    check_size(path, 4 * len(texts.codes) * max(map(len, values), default=0), max_bytes)
    return np.array(values, dtype=str)[np.asarray(texts.codes)]


def plain_labels(texts: Texts) -> np.ndarray:
    """Labels without blanks around them; whole numbers without decimals, ``2`` for ``2.0``."""
    values = [text.strip() for text in texts.values]
    plain = [whole(text) for text in values]
    if all(is_missing(text) or text.lstrip("+-").isdecimal() for text in plain):
        values = plain
    return np.array(values, dtype=str)[np.asarray(texts.codes)] if values else np.array([], str)


# The header


def ordered_names(frame: Frame) -> list[str]:
    """All names of columns, first those that can be labels, then those that can be scores."""

    def rank(name: str) -> int:
        if name.lower() in _LIKELY_LABELS:
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
    if header[0].startswith("#") and not options.keys() <= set(header):
        raise FileError(f"{path}: {place} is {header[0]!r}, not a header. Delete that line.")
    sep = frame.sep or ","
    other = next((sign for sign in _SEPARATORS if sign != sep and sign in header[0]), None)
    if len(header) == 1 and other and not options.keys() <= set(header):
        option = {"\t": "tab"}.get(other, repr(other))
        raise FileError(
            f"{path}: {place} is one column. Separate the fields by "
            f"{_SEPARATORS.get(sep, repr(sep))}, not {_SEPARATORS[other]}, or pass --sep {option}.",
            sep=other,
        )
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
    if dialect.header and (len(numbers) == len(header) or not all(map(is_whole, numbers))):
        return FileError(
            f"{frame.path}: {frame.place} holds numbers where names of columns are expected, such "
            f"as {numbers[-1]!r}. If the file has no header, pass --header none; its columns are "
            f"then called column1 to column{len(header)}.",
            header="none",
        )
    if name == given.label and option == "--label":
        remedy = "Name the column of labels by --label."
        aside = {*given.ignore, given.score, given.predicted, *frame.aside}
        rest = [n for n in header if n not in aside]
        likely = [n for n in rest if n.lower() in _LIKELY_LABELS]
        if not dialect.header:
            likely = [n for n in rest if _hold_labels(frame, n)]
        one_hot = _one_hot(frame, dialect) if not likely else None
        if len(likely) == 1:
            offer = {"label": likely[0]}
        elif likely and not dialect.header:
            offer = {"choices": [{"label": n} for n in likely]}
        elif one_hot:
            remedy += f" If the columns {one_hot}… hold 1 for the class that happened, pass --soft "
            remedy += f"{one_hot}."
            offer = {"soft": one_hot}
    elif "," in name and option == "--ignore":
        remedy = "Repeat --ignore for each column."
    names = ordered_names(frame)
    return FileError(
        f"{frame.path}: {frame.place} has no column {name!r} (columns: "
        f"{all_names(names)}). {remedy}",
        **offer,
    )


def _hold_labels(frame: Frame, name: str) -> bool:
    """Whether a column without a name holds few different texts or whole numbers."""
    texts = _few_texts(frame, name)
    return len(texts) > 1 and not any(Dialect().is_number(t) and not is_whole(t) for t in texts)


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
        if name.lower() not in _LIKELY_LABELS - {"label", "labels", "class"} or name in aside:
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
        if not _names_models(name):
            what, reading = "parts", "the model was fitted to none of these rows"
            if not _are_parts(known, both=True):
                continue
        if 1 < len(known) <= len(frame) / 2:  # else these may be probabilities
            beside = " Predictions of training rows look better than those of new ones."
            raise FileError(
                f"{frame.path}: column {name!r} names {len(known)} {what}: {listed(known)}."
                f"{beside if what == 'parts' else ''} The command report shows each by --by "
                f"{name!r}. If {reading}, pass --ignore {name!r}."
            )


def models_in(frame: Frame, name: str, before: Sequence[str] = ()) -> list[str]:
    """The models, or the parts such as training rows, that a column names; none of other columns.

    Those of earlier rows, ``before``, stand first.
    """
    of_models = _names_models(name)
    if not (of_models or frame.kind(name) == "text"):
        return []
    if not (of_models or _are_parts(_distinct(frame.texts(name, _SURE)))):
        return []
    known = list(dict.fromkeys([*before, *_few_texts(frame, name)]))
    return known if of_models or _are_parts(known, both=len(known) > 1) else []


def _names_models(name: str) -> bool:
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
    return _OF_MODELS.fullmatch(words) is not None


def _are_parts(texts: Sequence[str], both: bool = False) -> bool:
    """Whether all texts are words for rows of training or of tests, of ``both`` kinds."""
    words = {text.casefold() for text in texts}
    has_both = bool(words & _OF_TRAINING) and bool(words & _OF_TESTS)
    return words <= _OF_TRAINING | _OF_TESTS and (has_both or not both)


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
        place = table.words_for_row(int(absent[0]))
        raise FileError(f"{table.path}: {place} has no label. {LEAVE_OUT}", drop_missing=True)


def _by_number(names: list[str]) -> list[str]:
    """Digits in the order of numbers; other names as they are."""
    return sorted(names, key=int) if all(name.isdecimal() for name in names) else names


def unlabelled_table(path, classes, features, options, dialect) -> FileTable:
    """The table of a file of predictions of these classes, or of a single column (None)."""
    frame = read_table(path, options.max_bytes, dialect, options.frames)
    score, soft = options.score, options.soft
    named = dict.fromkeys(features, "--feature") | ({} if score is None else {score: "--score"})
    _check_header(frame, named, options, dialect)
    aside = {options.label, *options.ignore, options.weight, options.groups, *features}
    if soft is not None:
        aside |= {name for name in frame.header if _is_of_shares(name, soft, aside)}
    seeker = Seeker(frame, classes or [], None, aside, options, dialect)
    table = (seeker.single() if classes is None else seeker.of_classes()).table
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
    return FileTable(path, proba, [], order=order, arrays=arrays)
