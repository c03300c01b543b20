"""The search as a text table."""

from __future__ import annotations


def format_setting(setting: dict) -> str:
    """Short text of a parameter setting."""
    parts = []
    for name, value in setting.items():
        short = name.rsplit("__", 1)[-1]
        parts.append(f"{short}={value:.3g}" if isinstance(value, float) else f"{short}={value}")
    return ", ".join(parts) or "-"


def summarize(search) -> str:
    """Return the table and the estimates of a fitted search."""
    return "\n".join([_heading(search), "", *_table(search), "", *_reading(search)])


def _heading(search) -> str:
    notion = search.notion_ if isinstance(search.notion_, str) else "lens"
    return f"{notion} calibration, {len(search.classes_)} classes"


def _table(search) -> list[str]:
    header = ("candidate", "best parameters", "risk", "above the best", "p")
    rows = []
    for family, comparison in zip(search.families_, search.comparisons_, strict=True):
        chosen = family.best_function is search.best_function_ or comparison.identical
        difference = "0" if comparison.identical else _plus_minus(comparison)
        rows.append(
            (
                ("* " if chosen else "  ") + family.name,
                format_setting(family.settings[family.best]),
                f"{-family.scores.max():.7f}",
                difference,
                "" if comparison.identical else f"{comparison.pvalue:.2g}",
            )
        )
    header = ("  " + header[0], *header[1:])
    widths = [max(len(row[k]) for row in [header, *rows]) for k in range(len(header))]
    return [_align(row, widths) for row in [header, *rows]]


def _align(row, widths) -> str:
    left = [cell.ljust(width) for cell, width in zip(row[:2], widths[:2], strict=True)]
    right = [cell.rjust(width) for cell, width in zip(row[2:], widths[2:], strict=True)]
    return "  ".join(left + right).rstrip()


def _plus_minus(comparison) -> str:
    return f"{comparison.difference:+.1e} ± {comparison.standard_error:.1e}"


def _reading(search) -> list[str]:
    lines = [
        f"chosen (*): {type(search.best_function_).__name__}, the lowest validation risk",
        f"calibration error: {search.calibration_error_:.4f} (squared {search.squared_error_:.6f}"
        f", spread over fold models {search.fold_spread_:.6f})",
    ]
    return lines
