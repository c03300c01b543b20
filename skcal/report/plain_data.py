"""A report as plain data, and back."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed

from skcal.model_selection.candidates import family_name, resolve_candidates
from skcal.report.comparison import Comparison, PairedTest, SameEstimator
from skcal.report.parts import (
    BinnedError,
    KernelError,
    Measures,
    Overview,
    Score,
    Settings,
    WorstBin,
)


def version() -> str:
    """Of the installed package."""
    try:
        return installed("skcal")
    except PackageNotFoundError:
        return "unknown"


def as_settings(settings: Settings, n_samples: int) -> dict:
    """Options as JSON can hold them; raises for candidates that are none."""
    candidates = settings.candidates
    if candidates is not None and not isinstance(candidates, str):
        resolved = resolve_candidates(candidates, settings.notion, 1, n_samples)
        candidates = [family_name(function) for function, _ in resolved]
    cv, outer_cv = (
        value if isinstance(value, int | None) else repr(value)
        for value in (settings.cv, settings.outer_cv)
    )
    return {**settings._asdict(), "candidates": candidates, "cv": cv, "outer_cv": outer_cv}


def rebuild(cls, data: dict):
    """The report of a dict."""
    comparison = data["comparison"]
    return cls(
        **{
            **data,
            "overall": _measures(data["overall"]),
            "groups": [_measures(part) for part in data["groups"]],
            "comparison": comparison and _comparison(comparison),
        }
    )


def _measures(data) -> Measures:
    ece, mce = data["ece"], data["mce"]
    return Measures(
        **{
            **data,
            "overview": Overview(**data["overview"]),
            "ece": ece and BinnedError(**ece),
            "mce": mce and WorstBin(**mce),
            "skce": [KernelError(**part) for part in data["skce"]],
            "scores": [Score(**part) for part in data["scores"]],
        }
    )


def _comparison(data) -> Comparison:
    return Comparison(
        second=_measures(data["second"]),
        estimators=[SameEstimator(**part) for part in data["estimators"]],
        tests=[PairedTest(**part) for part in data["tests"]],
        warnings=data["warnings"],
    )
