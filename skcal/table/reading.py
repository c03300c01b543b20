"""What the columns of a table mean, fixed by the samples that come first; tensors of torch.

Later samples must agree. Logits and probabilities of torch are reduced on their device: only single
columns leave it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from skcal._labels import GivenColumns, is_table, plain_labels
from skcal._validation import LARGEST_WEIGHT, InputError, check_weight, naming, row_blocks
from skcal.notions import ANSWERS, NOTIONS, resolve_notion
from skcal.sample import Sample, read_sample

COUNTED = tuple(name for name, notion in NOTIONS.items() if notion.scalar)
_LABELS = 2**17  # that are looked at at a time
_MOST_TOGETHER = 32  # classes of which products of the residuals of two are summed up


@dataclass(frozen=True)
class Columns:
    """The classes and the kind of the columns.

    Attributes
    ----------
    shape : tuple of int
        The shape of a row: () for 1-D predictions.
    names : list or None
        The names of a data frame's columns.
    labels : list
        The class of each column; (negative, positive) for 1-D predictions.
    notion : Notion
    pos_label : label or None
        The first of two columns, if that is the positive class.
    """

    shape: tuple
    names: list | None
    labels: list
    notion: Any
    pos_label: Any

    @classmethod
    def of(cls, y, proba, notion, labels, pos_label, from_logits) -> Columns:
        """Read the columns of the first samples, and the labels of all of them."""
        shape, names = GivenColumns.of(proba, "y_proba")
        swapped = (
            isinstance(y, np.ndarray) and y.dtype.kind == "f" and bool((y != np.trunc(y)).any())
        )
        if isinstance(proba, np.ndarray) and not (is_table(y) or swapped):
            n_classes = shape[0] if shape else 2
            y = _telling_labels(y, n_classes)
            proba, from_logits = np.full((len(y), *shape), 1 / max(n_classes, 1)), False
        sample = read_sample(y, proba, notion, None, labels, pos_label, from_logits)
        require_counted(sample.notion)
        positive = pos_label if sample.positive_first else None
        classes = sample.given_classes.tolist()  # the columns keep their order
        if pos_label is not None and not shape and labels is None:
            _require_both(classes, y)
        return cls(shape, names, classes, sample.notion, positive)

    @property
    def given(self) -> GivenColumns:
        """The columns as they were passed."""
        return GivenColumns(self.shape, self.names)

    @property
    def classes(self) -> list:
        """The classes in the order of the problems, of two (negative, positive)."""
        return self.labels[::-1] if self.pos_label is not None else self.labels

    @classmethod
    def named(cls, notion: Any, labels: Any) -> Columns:
        """The columns of a table that another engine counted."""
        names = np.asarray(labels).tolist()
        notion = resolve_notion(notion, np.zeros((1, len(names))))
        require_counted(notion)
        shape = () if len(names) == 2 and notion.of_positive_class else (len(names),)
        return cls(shape, None, names, notion, None)

    @property
    def titles(self) -> list[str]:
        """The name of each problem."""
        return self.notion.titles([str(label) for label in self.classes])

    @property
    def n_problems(self) -> int:
        """One, or one for each class."""
        return len(self.labels) if self.notion.by_class else 1

    @property
    def pairs_known(self) -> bool:
        """Whether products of the residuals of two classes are summed up."""
        return 1 < self.n_problems <= _MOST_TOGETHER and self.notion.shares_samples

    @property
    def plain(self) -> bool:
        """Whether labels are 0 and 1 beside one column, so that nothing is looked up."""
        numbers = all(isinstance(label, int | float | bool) for label in self.labels)
        return not self.shape and numbers and list(self.labels) == [0, 1]

    def read(self, y, proba, weight, from_logits) -> Sample:
        """Check samples; weights are as they were passed, those of 0 are left out."""
        self.given.refuse_other(GivenColumns.of(proba, "y_proba"), "y_proba", "calls")
        options = {"labels": self.labels, "pos_label": self.pos_label, "from_logits": from_logits}
        sample = read_sample(y, proba, self.notion, keep_weightless=True, from_sums=True, **options)
        if weight is not None:
            sample = sample.take(slice(None), sample.weight * weight)
        return sample

    def require(self, other: Columns) -> None:
        """Raise unless another table's columns mean the same."""
        self.given.refuse_other(other.given, "y_proba", "tables")
        for name in ("labels", "notion", "pos_label"):
            value, given = getattr(self, name), getattr(other, name)
            if value != given:
                reason = f"holds {name}={given!r}, this table {name}={value!r}."
                raise InputError("other", reason, f"Pass {name}= to each table.")

    def to_dict(self) -> dict[str, Any]:
        """Return what JSON holds of it."""
        notion = "answers" if self.notion == ANSWERS else str(self.notion)
        given = {"shape": list(self.shape), "names": self.names, "labels": self.labels}
        return given | {"notion": notion, "pos_label": self.pos_label}

    @classmethod
    def from_dict(cls, document: Any) -> Columns:
        """Check what JSON holds, a :class:`skcal._show.Document`."""
        name = document.value("notion", str)
        if name != "answers" and (name not in COUNTED):
            raise document.wrong("notion", f"is {name!r:.40}, not a kind of calibration")
        shape, labels = tuple(document.value("shape", list)), document.labels("labels")
        if shape not in ((), (len(labels),)):
            raise document.wrong("shape", "does not fit the labels")
        names, pos_label = document.parts.get("names"), document.parts.get("pos_label")
        if pos_label is not None and pos_label not in labels:
            raise document.wrong("pos_label", "is none of the labels")
        notion = ANSWERS if name == "answers" else NOTIONS[name]
        return cls(shape, names, labels, notion, pos_label)


def require_counted(notion: Any) -> None:
    """Raise for kinds of calibration that are not about single probabilities of outcomes."""
    if not notion.scalar or notion.of_shares:
        reason = f"is {str(notion)!r}, which a CalibrationTable does not count."
        remedy = "Use 'binary', 'confidence', 'top-label', 'classwise' or 'multi-label'."
        raise InputError("notion", reason, remedy)


def read_weights(sample_weight: Any, n_samples: int) -> np.ndarray | None:
    """Weights that are not rescaled, so that calls agree, and may all be 0, or None."""
    if sample_weight is None:
        return None
    with naming("sample_weight"):
        weight = np.asarray(sample_weight)
    if weight.dtype.kind in "biuf" and weight.ndim and not weight.any():
        check_weight(weight + 1.0, n_samples)
        return np.zeros(n_samples)
    checked = check_weight(sample_weight, n_samples)
    if not 1 / LARGEST_WEIGHT < float(np.max(weight)) < LARGEST_WEIGHT:
        reason = f"is up to {np.max(weight):.3g}, and weights of several calls are not rescaled."
        remedy = "Divide all by one number, so that the largest is between 1e-60 and 1e+60."
        raise InputError("sample_weight", reason, remedy)
    return checked


def _require_both(classes, y) -> None:
    """Raise where one of two classes was not seen, which later samples might name otherwise."""
    present = set(plain_labels(y, "y_true").tolist())
    if len(present) < 2:
        reason = f"holds the label {next(iter(present))!r} only, beside pos_label."
        remedy = "Pass labels=[negative class, positive class] to the CalibrationTable."
        raise InputError("y_true", reason, remedy)


def _telling_labels(y, n_classes) -> np.ndarray:
    """A few labels that hold all classes; arrays are looked at block by block."""
    if isinstance(y, np.ndarray) and y.ndim == 1 and len(y) > _LABELS:
        blocks = row_blocks(len(y), 1, most=_LABELS)
        return np.concatenate([_telling_labels(y[rows], n_classes) for rows in blocks])
    y = plain_labels(y, "y_true")
    if y.dtype.kind in "iu" and len(y) and y.min() >= 0 and y.max() < n_classes:
        return np.array([y.min(), y.max()])
    return y if y.dtype.kind == "O" else np.unique(y)


_BLOCK = 2**20  # entries of which temporary copies are made at a time
_SUM = {2: 2e-2, 4: 1e-4, 8: 1e-6}  # what sums of rows may miss, by the bytes of a number


def is_tensor(values: Any) -> bool:
    """Whether it is a tensor of torch."""
    return type(values).__module__.partition(".")[0] == "torch"


def as_rows(y: Any, proba: Any, ignore_label: Any) -> tuple[Any, Any]:
    """Pixels of images (N, C, H, W) beside labels (N, H, W) as rows, less those to ignore."""
    with naming("y_proba"):
        n_dimensions = len(np.shape(proba))
    if n_dimensions > 4:
        raise InputError("y_proba", f"has {n_dimensions} dimensions.", "Pass (N, C, H, W).")
    if n_dimensions > 2:
        last = proba.movedim(1, -1) if is_tensor(proba) else np.moveaxis(np.asarray(proba), 1, -1)
        y = y if is_tensor(y) else np.asarray(y)
        if tuple(y.shape) != tuple(last.shape[:-1]):
            reason = f"has the shape {tuple(y.shape)} beside y_proba of {np.shape(proba)}."
            raise InputError("y_true", reason, "Pass one label for each sample or pixel.")
        y, proba = y.reshape(-1), last.reshape(-1, last.shape[-1])
    if ignore_label is None:
        return y, proba
    y = y if is_tensor(y) else np.asarray(y)
    kept = y != ignore_label
    return y[kept], proba[kept]


def reduced(y: Any, proba: Any, from_logits: bool, ignore_label: Any) -> tuple[np.ndarray, ...]:
    """The largest probability of each sample, whether its class is right, and that class.

    Parameters
    ----------
    y : Tensor of int of shape (N,) or (N, H, W)
        Numbers of columns.
    proba : Tensor of shape (N, C) or (N, C, H, W)
        Logits or probabilities; they stay on their device and are not copied.
    from_logits : bool
    ignore_label : int or None
        Samples with this label are left out.
    """
    import torch

    if tuple(y.shape) != (proba.shape[0], *proba.shape[2:]):
        reason = f"has the shape {tuple(y.shape)} beside y_proba of {tuple(proba.shape)}."
        raise InputError("y_true", reason, "Pass one label for each sample or pixel.")
    if y.dtype.is_floating_point:
        raise InputError("y_true", f"holds numbers of {y.dtype}.", "Pass numbers of columns.")
    y, n_classes, parts = y.to(proba.device), proba.shape[1], []
    step = max(1, _BLOCK // max(1, proba[:1].numel()))
    with torch.no_grad():
        for start in range(0, len(proba), step):
            z, label = proba[start : start + step], y[start : start + step]
            kept = torch.ones_like(label, dtype=torch.bool)
            if ignore_label is not None:
                kept = label != ignore_label
            known = (label >= 0) & (label < n_classes) | ~kept
            z = z.float() if z.element_size() < 4 else z
            largest, top = z.max(dim=1)
            if from_logits:
                total = (z - largest.unsqueeze(1)).exp_().sum(dim=1)
                confidence, valid = 1 / total, torch.isfinite(total)
            else:
                confidence, slack = largest, _SUM[proba.element_size()]
                valid = ((z.sum(dim=1) - 1).abs() <= slack) & (z.amin(dim=1) >= 0)
            wrong = {"y_true": ~known, "y_proba": ~valid & kept}
            for name, rows in wrong.items():
                _refuse(name, rows, start, n_classes, from_logits)
            part = confidence[kept], (top == label)[kept], top[kept]
            parts.append([column.cpu().numpy() for column in part])
    return tuple(np.concatenate(columns) for columns in zip(*parts, strict=True))


def _refuse(name, rows, start, n_classes, from_logits) -> None:
    if not rows.any():
        return
    first = start + int(rows.reshape(len(rows), -1).any(dim=1).int().argmax())
    if name == "y_true":
        reason = f"is none of the columns 0 to {n_classes - 1}."
        remedy = "Pass numbers of columns, and ignore_label= for one to leave out."
    elif from_logits:
        reason, remedy = "holds NaN or infinity.", "Drop or fix that sample."
    else:
        reason, remedy = "does not sum to 1.", "Pass probabilities, or from_logits=True."
    raise InputError(name, reason, remedy, row=first)
