"""The options and the version of a report as plain data."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed

from skcal.model_selection.candidates import family_name, resolve_candidates
from skcal.report.parts import Settings


def version() -> str:
    """Return the version of the installed package."""
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
    options = settings._asdict()
    del options["verbose"]  # which changes no number
    return {**options, "candidates": candidates, "cv": cv, "outer_cv": outer_cv}
