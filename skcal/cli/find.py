"""Which columns of a table hold the predictions, by their names and contents."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from contextlib import suppress
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from skcal._show import cut_apart, listed
from skcal._validation import likely_codes
from skcal.cli.cells import LEAVE_OUT, Dialect, names_in, vector_of, vectors_of, whole
from skcal.cli.clusters import hints
from skcal.cli.frames import LONGEST_NAME, all_names
from skcal.cli.names import looks_like
from skcal.cli.problems import PERCENT, FileError, check_size
from skcal.cli.table import FileTable
from skcal.metrics.base import ROUNDING

_FIRST = 1000  # rows by which columns are judged
MOST_CHOICES = 6  # commands that a message offers
_MOST_LISTED = 50  # entries of a list whose order a command shows
_BARE = ("", "")  # words before and behind a class in names that are classes
_ABSENT = 3  # columns from which on an entry may be absent: an option that a question lacks


class Found(NamedTuple):
    """Predictions.

    Attributes
    ----------
    table : FileTable
    classes : list of str or None
        The class of each column; None of a single column.
    notes : list of str
        What was decided.
    """

    table: FileTable
    classes: list[str] | None = None
    notes: Sequence[str] = ()


class Seeker:
    """Looks for the predictions of a file.

    Parameters
    ----------
    frame : Frame
    labels : sequence of str
        The different labels.
    outcomes : ndarray of str of shape (n_rows,) or None
        The label of each row.
    aside : set of str
        Columns that are no predictions.
    options : argparse.Namespace
    dialect : Dialect
    """

    def __init__(self, frame, labels, outcomes, aside, options: Namespace, dialect: Dialect):
        self.frame, self.labels, self.outcomes = frame, list(labels), outcomes
        self.options, self.dialect, self.path = options, dialect, frame.path
        aside = {*aside, *frame.aside, *frame.partitions}
        self.rest = [name for name in frame.header if name not in aside]
        self._are_named = False  # the entries of a vector
        self._named_by: list[str] = []  # the column of their names
        self._parsed: dict[str, np.ndarray] = {}
        self._starts: dict[str, np.ndarray | None] = {}

    def find(self) -> Found:
        """The predictions of a file with outcomes."""
        if self.options.score is not None:
            return self._scored(self.options.score)
        found = self._family()
        if found is not None:
            return found
        vectors = self._vectors()
        if not vectors and (self.options.labels or self.options.prefix is not None):
            in_order = self._in_order_of_labels()
            if in_order is None:
                raise self._no_family()
            return in_order
        if len(vectors) == 1 and not self.candidates():
            return self._vector(vectors[0])
        return self.single()

    def again(self, table: FileTable, classes: Sequence[str] | None) -> Found:
        """The same predictions as of another part of the table."""
        if classes is None:
            return self._scored(table.names[0])
        return self._of(dict(zip(classes, table.names, strict=True)))

    def of_classes(self) -> Found:
        """The columns of these classes, all of which must be there."""
        if self.options.score is not None:
            return self._scored(self.options.score)
        columns = self.patterns(self.rest, self.labels).get(_BARE, {})
        if len(columns) == len(self.labels):
            return self._of(columns)
        found = self._family(self.labels)
        if found is not None and found.classes == self.labels:
            return found
        vectors = self._vectors()
        if len(vectors) == 1:
            return self._vector(vectors[0])
        missing = next(name for name in self.labels if name not in self.rest)
        raise FileError(
            f"{self.path}: {self.frame.place} has no column {missing!r} (columns: "
            f"{all_names(self.frame.header)}). Name a column by each class of "
            "the predictions to fit to."
        )

    def numbers(self, name: str) -> np.ndarray:
        """The numbers of a column as they stand, NaN where one is missing."""
        if name not in self._parsed:
            lenient = self.dialect._replace(missing=True)
            self._parsed[name] = self.frame.numbers(name, lenient)
        return self._parsed[name]

    # Columns that classes name

    def _family(self, labels=None) -> Found | None:
        """Columns whose names are a class, perhaps with the same words before and behind each."""
        if not self.dialect.header:
            return None  # since the numbers in names are those of columns
        labels = labels or self.options.labels or self.labels
        names = [name for name in self.rest if self.frame.kind(name) in ("number", "empty")]
        patterns = self.patterns(names, labels)
        if self.options.prefix is not None:
            start, _, end = self.options.prefix.partition("*")
            patterns = {(start, end): patterns.get((start, end), {})}
        whole_ones = {key: found for key, found in patterns.items() if len(found) == len(labels)}
        tried = {
            key: self._complete(key, found, names)
            for key, found in whole_ones.items()
            if len(labels) > 1 or key == _BARE
        }
        likely = {key: columns for key, columns in tried.items() if columns is not None}
        # Columns of 0 and 1 beside others are what happened or was predicted.
        likely = {key: part for key, part in likely.items() if not self._are_marks(part)} or likely
        if len(likely) > 1:
            shown = [f"{start}*{end}" if end else start for start, end in likely]
            raise FileError(
                f"{self.path}: columns of several predictions are named by the labels, by the "
                f"prefixes {listed([repr(text) for text in shown], len(shown))}. Name one by "
                "--prefix.",
                choices=[{"prefix": text} for text in shown],
            )
        for columns in likely.values():
            return self._of(columns)
        bare = patterns.get(_BARE, {})
        partial = max(patterns.items(), key=lambda item: len(item[1]), default=(_BARE, {}))
        if bare and (len(bare) > 1 or len(names) > 1) and not self.options.logits:
            return self._incomplete(_BARE, bare, names, labels)
        if len(partial[1]) > 1 and len(labels) > 2:
            return self._incomplete(*partial, names, labels)
        if whole_ones and self.options.logits:
            return self._of(whole_ones.get(_BARE) or next(iter(whole_ones.values())))
        return None

    @staticmethod
    def patterns(names, labels) -> dict[tuple[str, str], dict[str, str]]:
        """Words before and behind labels in names, with the columns of the labels."""
        fold = str.lower if len({*map(str.lower, labels)}) == len({*labels}) else str
        number = {fold(label): k for k, label in enumerate(labels)}
        lengths = {*map(len, number)} - {0}
        places = []  # number of the label and of the name, and where it begins there
        plain = [name for name in dict.fromkeys(names) if len(fold(name)) == len(name)]
        for j, text in enumerate(map(fold, plain)):
            named = number.get(whole(text), -1)
            if named >= 0:
                places.append((named, j, -1))
            for length in lengths:  # each part of a name is looked up, not each label in each name
                for at in range(len(text) - length + 1):
                    k = number.get(text[at : at + length], named)
                    if k != named:
                        places.append((k, j, at))
        found = dict[tuple[str, str], dict[str, str]]()
        for k, j, at in sorted(places):
            label, name = labels[k], plain[j]
            if at < 0:
                found.setdefault(_BARE, {}).setdefault(label, name)
            else:
                found.setdefault((name[:at], name[at + len(label) :]), {})[label] = name
        return found

    @staticmethod
    def _others(key: tuple[str, str], found, names) -> dict[str, str]:
        """Other columns with the same words before and behind, by what stands between."""
        (start, end), known = key, {*found.values()}
        likely = [name for name in names if name.startswith(start) and name.endswith(end)]
        between = {name[len(start) : len(name) - len(end)]: name for name in likely}
        return {part: name for part, name in between.items() if part and name not in known}

    def _complete(self, key, found, names) -> dict[str, str] | None:
        """The columns of a pattern, with those of classes without a label, if rows sum to 1."""
        wider = found if self.options.labels else found | self._others(key, found, names)
        if self.options.logits:
            if len(wider) == len(found) or all(part.isdecimal() for part in wider):
                return self._in_order(wider)
            if key == _BARE:
                other = next(part for part in wider if part not in found)
                raise FileError(
                    f"{self.path}: no label has the name of column {other!r}. If it is no class, "
                    f"pass --ignore {other!r}; if it is one, pass --labels "
                    f"{','.join([*found, other])}.",
                    choices=[{"ignore": [other]}, {"labels": [*found, other]}],
                )
            return found
        inside = {part: name for part, name in wider.items() if self.is_in_unit(name)}
        several = [columns for columns in (found, wider, inside) if len(columns) > 1]
        shares = [self._share_of_rows(list(columns.values())) for columns in several]
        best = max(shares, default=0.0)
        return self._in_order(several[shares.index(best)]) if best > 0.5 else None

    def _in_order(self, columns: dict[str, str]) -> dict[str, str]:
        """The columns as the file has them, of objects without an order those of sorted classes."""
        if not self.frame.is_ordered:
            return dict(sorted(columns.items()))
        place = {name: k for k, name in enumerate(self.frame.header)}
        return dict(sorted(columns.items(), key=lambda item: place[item[1]]))

    def _are_rows(self, names) -> bool:
        """Whether most rows of columns sum to 1 or 100, as probabilities."""
        return self._share_of_rows(names) > 0.5

    def _share_of_rows(self, names) -> float:
        """The share of the rows of columns that sum to 1 or to 100; 0 beside negative numbers."""
        values = np.column_stack([self.numbers(name) for name in names]) / self.options.scale
        if self.options.log_probabilities:
            values = np.exp(values)
        with np.errstate(all="ignore"):
            known = ~np.isnan(values).all(axis=1)
            sums = np.nansum(values[known], axis=1)
            if not len(sums):
                return 1.0
            near = [np.abs(sums - total) <= ROUNDING * total for total in (1, PERCENT)]
        return max(part.mean() for part in near) * (np.nanmin(values) > -ROUNDING)

    def _are_marks(self, columns: dict[str, str]) -> bool:
        """Whether columns hold 0 and 1 alone."""
        return all(np.isin(self.numbers(name), (0, 1)).all() for name in columns.values())

    def _incomplete(self, key, found, names, labels) -> Found:
        """Columns of some of the classes, or of all with rows that do not sum to 1."""
        lacking = [label for label in labels if label not in found]
        if self._are_rows(list(found.values())):
            columns = found
        else:
            columns = self._complete(key, found, names) or found
            if columns is found and key == _BARE and not lacking:
                columns = self._in_order({whole(name): name for name in names})
        if lacking and not self._are_rows(list(columns.values())):
            counts = list(map(repr, lacking))
            if self.outcomes is not None:
                counts = [f"{x!r} ({np.sum(self.outcomes == x):,} samples)" for x in lacking]
            raise FileError(
                f"{self.path}: {listed(counts)} {'is' if len(lacking) == 1 else 'are'} among the "
                f"labels, but no column holds probabilities of that name, and the rows of "
                f"{listed(list(columns.values()))} do not sum to 1. Give a column of "
                "probabilities for each class, or one by --score."
            )
        return self._of(self._in_order(columns))

    def _of(self, columns: dict[str, str]) -> Found:
        """The table of the columns of these classes."""
        classes, names = list(columns), list(columns.values())
        check_size(self.path, 8 * len(names) * len(self.frame), self.options.max_bytes)
        numbers = np.column_stack([self.numbers(name) for name in names])
        numbers, notes = self._filled(numbers)
        if not self.dialect.missing and np.isnan(numbers).any():
            row, column = map(int, np.argwhere(np.isnan(numbers))[0])
            if not self.frame.is_numeric(names[column]):
                self.frame.numbers(names[column], self.dialect)  # which says what is missing
            text = str(self.frame.cells(names[column])[row]).strip()
            what = f"is {text!r}." if text else "is empty."
            place = f"{self.frame.place_of(row)}, column {names[column]!r} {what}"
            raise FileError(f"{place} {LEAVE_OUT}", drop_missing=True)
        if names not in (list(map(whole, classes)), classes):
            notes.append(f"The columns {listed(names)} are the probabilities of {listed(classes)}.")
        notes += self._unread(names, "Columns that are no classes")
        return Found(FileTable(self.path, numbers, names, frame=self.frame), classes, notes)

    def _unread(self, names, which="Other columns") -> list[str]:
        """A note of the columns beside these, the first names alone, long ones shortened."""
        read = {*names}
        others = [name for name in self.rest if name not in read]
        shown = listed(cut_apart(others, LONGEST_NAME))
        return [f"{which} are not read: {shown}."] if others else []

    def _filled(self, numbers: np.ndarray) -> tuple[np.ndarray, list[str]]:
        """Numbers with 0 for entries that are absent from rows whose others sum to 1."""
        absent = np.isnan(numbers)
        if numbers.shape[1] < _ABSENT or not absent.any():
            return numbers, []
        given = self.options.logits or self.options.log_probabilities
        if given or np.nanmax(numbers, initial=-np.inf) <= 0:
            rows = absent.any(axis=1) & ((~absent).sum(axis=1) > 1)
            fill: Any = -np.inf
        else:
            sums = np.nansum(numbers, axis=1) / self.options.scale
            rows, fill = absent.any(axis=1) & (np.abs(sums - 1) < 1e-3), 0.0
        numbers = np.where(absent & rows[:, None], fill, numbers)
        n = int(rows.sum())
        if n and fill and not given:
            raise FileError(
                f"{self.path}: {n:,} rows lack some classes, and no number is above 0. If these "
                "are logits, pass --logits: absent classes then have probability 0. If they are "
                "logarithms of probabilities, --log-probabilities gives the same.",
                logits=True,
            )
        note = f"{n:,} rows lack some classes, which have probability 0 there."
        return numbers, [note] if n else []

    def _in_order_of_labels(self) -> Found | None:
        """As many columns of numbers as ``--labels`` names, if their rows sum to 1."""
        names, labels = self.candidates(), self.options.labels
        names = [name for name in names if self.is_in_unit(name)] or names
        if self.options.prefix is not None or len(names) != len(labels):
            return None
        return self._of(dict(zip(labels, names, strict=True))) if self._are_rows(names) else None

    def _no_family(self) -> FileError:
        what = f"are named by {self.options.prefix!r} and the labels"
        if self.options.prefix is None:
            what = f"have the names {listed(self.options.labels)}"
        return FileError(
            f"{self.path}: no columns {what}, such as {self.labels[0]!r} (columns: "
            f"{all_names(self.frame.header)}). Name a column of probabilities for each class so, "
            "or leave the option out."
        )

    # Vectors in cells

    def _vectors(self) -> list[str]:
        """Columns of vectors that may be predictions, of those that are the same the last one."""
        names = [name for name in self.rest if self.frame.kind(name) == "vector"]
        if len(names) < 2:
            return names
        first = {
            name: vectors_of(self.frame.cells(name, _FIRST), self.frame.place_of, name)[1]
            for name in names
        }
        last = {repr(part.tolist()): name for name, part in first.items()}
        names = sorted(last.values(), key=names.index)
        names = [name for name in names if (first[name] % 1 > 0).any()] or names
        if self.options.logits:
            return names
        with np.errstate(all="ignore"):
            sums = {name: np.nansum(first[name], axis=1) for name in names}
        return [n for n in names if np.mean(np.abs(sums[n] - 1) < ROUNDING) > 0.5] or names

    def _vector(self, name: str) -> Found:
        """The numbers of a column of vectors, in the order that its classes have."""
        parts, numbers = vectors_of(self._cells_of(name), self.frame.place_of, name)
        check_size(self.path, numbers.nbytes, self.options.max_bytes)
        numbers, notes = self._filled(numbers)
        self._refuse_cut_lists(name, numbers)
        classes = self._classes_of(name, parts)
        order = list(range(len(parts)))
        if set(parts) == set(classes) and not all(part.isdecimal() for part in parts):
            order = [parts.index(label) for label in classes]
        names = [f"{name}[{parts[k]}]" for k in order]
        table = FileTable(self.path, numbers[:, order], names, frame=self.frame, vector=name)
        shown = listed(classes)
        by = f", as column {self._named_by[0]!r} names them" if self._named_by else ""
        notes.append(f"The entries of column {name!r} are the probabilities of {shown}{by}.")
        return Found(table, classes, [*notes, *self._unread([name, *self._named_by])])

    def _refuse_cut_lists(self, name: str, numbers: np.ndarray) -> None:
        """Raise where rows lack labels that others have, and do not sum to 1 without them."""
        absent = np.isnan(numbers)
        cut = absent.any(axis=1) & ~absent.all(axis=1)
        if not cut.any():
            return
        row, n = int(np.argmax(cut)), numbers.shape[1]
        total = np.nansum(numbers[row]) / self.options.scale
        raise FileError(
            f"{self.frame.place_of(row)}, column {name!r} holds {n - absent[row].sum()} of {n} "
            f"numbers that sum to {total:.3g}. {cut.sum():,} of {len(cut):,} lists are cut so, as "
            "those of the most probable labels are. Save the probability of each label; in a "
            "pipeline of transformers set top_k to None."
        )

    def _classes_of(self, name: str, parts: list[str]) -> list[str]:
        """The class of each entry of a vector."""
        given, known = self.options.labels, set(self.labels)
        if given:
            if len(given) != len(parts):
                raise FileError(
                    f"{self.path}: --labels names {len(given)} classes, column {name!r} has "
                    f"{len(parts)} entries. Name the class of each entry."
                )
            return list(given)
        if not known <= set(parts) and (written := self._written(parts)):
            return written
        numbered = {label.partition(":")[0]: label for label in known if ":" in label}
        places = [str(k) for k in range(1, len(parts) + 1)]
        if numbered.keys() == {*places}:
            return [numbered[k] for k in places]  # as Weka writes labels, 1:no and 2:yes
        if known <= set(parts):
            are_numbers = all(part.isdecimal() for part in parts) and sorted(parts) != parts
            if are_numbers and not self._are_named:
                few = len(parts) <= _MOST_LISTED
                texts, numbers = (
                    ",".join(order) if few else f"{','.join(order[:9])},…"
                    for order in (sorted(parts), parts)
                )
                raise FileError(
                    f"{self.path}: the entries of column {name!r} may be in the order of numbers, "
                    f"--labels {numbers}, or in that of texts, as classes_ of texts is: --labels "
                    f"{texts}. Pass the one that is right.",
                    choices=[{"labels": parts}, {"labels": sorted(parts)}] if few else [],
                )
            return parts
        as_texts = len(parts) >= len(known) and not all(label.isdecimal() for label in known)
        shown = sorted(known, key=lambda label: (0 if as_texts else len(label), label))
        orders = [shown, shown[::-1]] if len(parts) == len(shown) == 2 else []
        raise FileError(
            f"{self.path}: column {name!r} has {len(parts)} entries in each cell, and nothing says "
            f"which label each is of. Pass the labels in their order, such as --labels "
            f"{','.join(shown)}{' if they are sorted' * (len(parts) > 2)}.",
            choices=[{"labels": order} for order in orders],
        )

    def _written(self, parts: list[str]) -> list[str] | None:
        """The classes of entries that have the same words before and behind, such as LABEL_0."""
        for key, found in self.patterns(parts, self.labels).items():
            part_of = self._others(key, found, parts) | found
            if len(found) == len(self.labels) and {*part_of.values()} == {*parts}:
                label_of = {part: label for label, part in part_of.items()}
                return [label_of[part] for part in parts]
        return None

    def _cells_of(self, name: str):
        """The cells of a column of vectors, whose entries lists in another column may name."""
        cells, known, likely = self.frame.cells(name), {*self.labels}, list[tuple]()
        self._are_named = str(cells[0]).lstrip("[ ")[:1] == "{"
        first = vector_of(cells[0]) or {}
        if not first or not next(iter(first)).isdecimal():
            return cells
        for other in self.rest:
            start = names_in(self.frame.cells(other, 1)[0])
            if other == name or start is None or len(start) != len(first):
                continue
            names = [names_in(cell) or () for cell in self.frame.cells(other)]
            vectors = [tuple((vector_of(cell) or {}).values()) for cell in cells]
            if list(map(len, vectors)) == list(map(len, names)):
                pairs, parts = zip(names, vectors, strict=True), {*chain(*names)}
                has_all = known <= parts
                is_known = has_all or self._written(sorted(parts)) is not None
                if all(map(str.isdecimal, parts)):  # which may also be what was predicted
                    is_known = has_all and _name_entries(other, names, vectors)
                if is_known:
                    likely.append((not has_all, other, pairs))
        if not likely:
            return cells
        _, other, pairs = min(likely, key=lambda part: part[0])
        self._named_by = [other]
        return [dict(zip(*pair, strict=True)) for pair in pairs]

    # A single column

    def _scored(self, name: str) -> Found:
        """The column that an option names."""
        if self.frame.kind(name) == "vector":
            return self._vector(name)
        numbers = self.frame.numbers(name, self.dialect)[:, None]
        table = FileTable(self.path, numbers, [name], frame=self.frame)
        return Found(table, notes=self._unread([name]))

    def single(self) -> Found:
        """The only column that may be a prediction, or what to do where there are several."""
        if self.options.score is not None:
            return self._scored(self.options.score)
        if not self.rest:
            empty = np.empty((len(self.frame), 0))
            return Found(FileTable(self.path, empty, [], frame=self.frame))
        if len(self.rest) == 1:
            return self._scored(self.rest[0])
        raise self._several()

    def candidates(self) -> list[str]:
        """Columns of numbers that look like predictions, not like codes."""
        return [n for n in self.rest if self.frame.kind(n) == "number" and self._is_score(n)]

    def _is_score(self, name: str) -> bool:
        values = self._first_numbers(name)
        if values is None:
            return True  # what is wrong with it is said when it is read
        if not len(values) or np.isin(values, (0, 1)).all():
            return False
        if self.options.logits or self.options.log_probabilities:
            return bool((values % 1 != 0).any())
        most = PERCENT if self.options.scale == 1 else 1.0
        fractions = (values % 1 != 0).any() or self.options.scale != 1
        return bool(values.min() >= 0 and values.max() <= most and fractions)

    def _first_numbers(self, name: str) -> np.ndarray | None:
        """The first numbers of a column that are not missing; None if one is no number."""
        if name not in self._starts:
            self._starts[name] = self._start_of(name)
        return self._starts[name]

    def _start_of(self, name: str) -> np.ndarray | None:
        lenient = self.dialect._replace(missing=True, percent=True, bounds=True)
        for decimal in (self.dialect.decimal, ",", "."):
            with suppress(FileError):
                values = self.frame.numbers(name, lenient._replace(decimal=decimal), _FIRST)
                values = values[~np.isnan(values)]
                codes = likely_codes(values, max(PERCENT, self.options.scale))
                codes |= likely_codes(values, self.options.scale)
                return values[~np.isin(values, list(codes))] / self.options.scale
        return None

    def _several(self) -> FileError:
        """What to do where several columns may be predictions."""
        likely, rest = self.candidates(), self.rest
        vectors = [name for name in rest if self.frame.kind(name) == "vector"]
        in_unit = [name for name in likely if name and self.is_in_unit(name)]
        of_percent = [name for name in likely if looks_like("percent", name)]
        likely = [*(in_unit or of_percent or (likely if not vectors else [])), *vectors]
        names = [*likely, *(name for name in rest if name not in likely)]
        such = f", such as {self.labels[0]!r}" if self.labels else ""
        remedy = "Give a column per class, named by the class, or name a single column, of "
        remedy += "P(positive), by --score; other columns are then not read."
        if likely:
            remedy += f" Columns of probabilities may be {listed(likely, len(likely))}."
        more: dict[str, Any] = {}
        if not vectors and (named := self._named_otherwise(likely)):
            return FileError(f"{self.path}: {named} Give a column of probabilities for each class.")
        if len(likely) >= max(2, len(self.labels)) and not vectors and self._are_rows(likely):
            remedy = f"The rows of {all_names(likely)} sum to 1. Give each the name of its label, "
            remedy += "pass the labels in the order of these columns by --labels, or name the one "
            remedy += "of P(positive) by --score."
            if len(likely) == 2 and {*self.labels} == {"0", "1"}:
                more = {"choices": [{"score": name} for name in likely]}
                means = [f"{x!r} is {np.nanmean(self.numbers(x)):.3g}" for x in likely]
                remedy += f" The mean of {listed(means)}"
                if self.outcomes is not None:
                    remedy += f"; the share of label 1 is {np.mean(self.outcomes == '1'):.3g}"
                remedy += "."
            elif len(likely) == len(self.labels) == 2:
                more = {"choices": [{"labels": self.labels}, {"labels": self.labels[::-1]}]}
        elif len(likely) == 1:
            more = {"score": likely[0]}
        elif likely:
            more = {"choices": [{"score": name} for name in likely[:MOST_CHOICES]]}
        elif odds := self._of_log_odds():
            remedy += f" If {listed(odds)} {'holds' if len(odds) == 1 else 'hold'} log-odds, pass "
            remedy += f"--score {odds[0]!r} --logits."
            choices = [{"score": name, "logits": True} for name in odds[:MOST_CHOICES]]
            more = {"choices": choices}
        return FileError(
            f"{self.path}: columns {all_names(names)}: none has the name of a label{such}."
            f" {remedy}{hints(self.frame, rest)}",
            **more,
        )

    def _named_otherwise(self, columns: Sequence[str]) -> str | None:
        """A sentence where columns have the names of some labels and of classes that are none."""
        for key, found in self.patterns(columns, self.labels).items():
            named = self._others(key, found, columns)
            lacking = [repr(label) for label in self.labels if label not in found]
            are_all = len(named) + len({*found.values()}) == len(columns)
            are_words = not any(map(str.isdecimal, [*found, *named]))
            if named and are_all and are_words and lacking and key != _BARE:
                return (
                    f"the columns {listed(columns)} are named by the classes "
                    f"{listed([*found, *named])}, and none by {listed(lacking)}, for which there "
                    "are outcomes."
                )
        return None

    def _of_log_odds(self) -> list[str]:
        """Columns that are named as log-odds are, of numbers below and above 0."""
        found = []
        for name in self.rest:
            if self.frame.kind(name) == "number" and looks_like("log-odds", name):
                values = self._first_numbers(name)
                if values is not None and len(values) and values.min() < 0 < values.max():
                    found.append(name)
        return found

    def is_in_unit(self, name: str) -> bool:
        """Whether the first numbers of a column are in [0, 1]."""
        values = self._first_numbers(name)
        if values is None or not len(values):
            return False
        return bool(values.min() >= -ROUNDING and values.max() <= 1 + ROUNDING)


def _name_entries(column: str, names, vectors) -> bool:
    """Whether lists of integers name the entries of lists, and do not mark a class by 1."""
    is_named = looks_like("list of classes", column)
    are_marks = {*chain(*names)} == {"0", "1"} and len({*map(tuple, names)}) > 1
    are_sorted = all(tuple(sorted(row, reverse=True)) == row for row in vectors)
    return is_named and (are_sorted or not are_marks)
