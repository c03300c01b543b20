"""What a reader must know before reading the numbers."""

from __future__ import annotations

import math

import numpy as np

#: Stands in every report.
STANDING = (
    "Whether the classifier was trained on these samples cannot be seen from here; if it was, "
    "every number is too optimistic."
)
FEW_SAMPLES = 300
_FEW_OF_A_CLASS = 10
_FEW_TESTED = 100
_NAMES = 3
_SURE = 4.0  # standard errors


def caution(data, overview, ece, tuned) -> list[str]:
    """Warnings about samples, bins, predictions and estimates that contradict each other."""
    found = [_few_samples(overview), *_rare_classes(data, overview)]
    if ece is not None:
        found.append(_sparse_bins(ece))
    found += [_reversed(data), *_extreme_predictions(data)]
    found += [_few_tested(facts) for facts in tuned] + [_contradiction(facts) for facts in tuned]
    return [text for text in found if text]


def _few_samples(overview):
    n = overview.n_samples
    if n >= FEW_SAMPLES:
        return None
    return (
        f"{n} samples are few: calibrated and miscalibrated predictions can look alike. "
        f"Collect at least {FEW_SAMPLES}."
    )


def _rare_classes(data, overview):
    count = np.bincount(data.codes, minlength=len(overview.classes))
    absent, rare = (
        np.flatnonzero(count == 0),
        np.flatnonzero((count > 0) & (count < _FEW_OF_A_CLASS)),
    )
    if len(absent):
        yield f"{_classes(absent, overview)} never occur{_s(absent)} in y_true."
    if len(rare):
        yield (
            f"{_classes(rare, overview)} occur{_s(rare)} fewer than {_FEW_OF_A_CLASS} times; "
            "nothing about single classes can be shown there."
        )


def _s(which):
    return "s" if len(which) == 1 else ""


def _classes(which, overview):
    names = ", ".join(repr(overview.classes[k]) for k in which[:_NAMES])
    more = f" and {len(which) - _NAMES} more" if len(which) > _NAMES else ""
    return f"Class{'es' if len(which) > 1 else ''} {names}{more}"


def _sparse_bins(ece):
    if not ece.n_nearly_empty:
        return None
    hold = "holds" if ece.n_nearly_empty == 1 else "hold"
    empty = f", {ece.n_empty} none" if ece.n_empty else ""
    return (
        f"{ece.n_nearly_empty} of {ece.n_bins} bins {hold} fewer than 10 samples{empty}: their "
        "gaps are mostly noise. Use fewer bins or strategy='quantile'."
    )


def _reversed(data):
    """Whether outcomes and probabilities of classes are negatively correlated on the whole."""
    n, rows = len(data.rows), data.rows
    share = np.bincount(data.codes, minlength=rows.shape[1]) / n
    gain = rows[np.arange(n), data.codes] - rows @ share
    if gain.mean() >= -_SURE * max(gain.std() / math.sqrt(n), 1e-9):
        return None
    return (
        "What happened had lower probabilities than shuffled labels would have: the columns may be "
        "in another order than the labels, or the positive class be the other one. Check labels= "
        "and pos_label=."
    )


def _extreme_predictions(data):
    rows = data.rows
    if (rows.max(axis=1) == 1).all():
        yield (
            "All probabilities are 0 or 1: these look like class predictions, which say nothing "
            "about confidence. Pass predict_proba output."
        )
    impossible = np.count_nonzero(rows[np.arange(len(rows)), data.codes] == 0)
    if impossible:
        yield (
            f"{impossible:,} sample{'s' if impossible > 1 else ''} had probability 0 for the class "
            "that occurred: the log loss is infinite; shown is that of the smallest probability "
            f"that {rows.dtype} resolves."
        )
    if len(rows) > 1 and (rows == rows[0]).all():
        yield "All predictions are equal, so there is one point to calibrate."


def _few_tested(facts):
    if facts["n_test_samples"] >= _FEW_TESTED or facts["one_step"] is None:
        return None
    return (
        f"The one-step estimate of the {facts['notion']} error rests on "
        f"{facts['n_test_samples']} test samples: too few for the normal limit of its bound."
    )


def _contradiction(facts):
    one_step = facts["one_step"] or {}
    bound = one_step.get("lower_confidence_bound")
    if bound is None or bound <= max(facts["squared_error"], 0):
        return None
    return (
        f"The lower bound {math.sqrt(bound):.4f} of the {facts['notion']} error is above its "
        f"estimate {facts['calibration_error']:.4f}: too few samples, or errors that the chosen "
        "form averages away."
    )
