"""Logits and probabilities of torch, reduced on their device: only single columns leave it."""

from __future__ import annotations

from typing import Any

import numpy as np

from skcal._validation import InputError

_BLOCK = 2**20  # entries of which temporary copies are made at a time
_SUM = {2: 2e-2, 4: 1e-4, 8: 1e-6}  # what sums of rows may miss, by the bytes of a number


def is_tensor(values: Any) -> bool:
    """Whether it is a tensor of torch."""
    return type(values).__module__.partition(".")[0] == "torch"


def as_rows(y: Any, proba: Any, ignore_label: Any) -> tuple[Any, Any]:
    """Pixels of images (N, C, H, W) beside labels (N, H, W) as rows, less those to ignore."""
    n_dimensions = len(np.shape(proba))
    if n_dimensions > 4:
        raise InputError("y_proba", f"has {n_dimensions} dimensions.", "Pass (N, C, H, W).")
    if n_dimensions > 2:
        last = proba.movedim(1, -1) if is_tensor(proba) else np.moveaxis(np.asarray(proba), 1, -1)
        y = y if is_tensor(y) else np.asarray(y)
        if tuple(y.shape) != tuple(last.shape[:-1]):
            reason = f"has the shape {tuple(y.shape)} beside y_proba of {tuple(proba.shape)}."
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
