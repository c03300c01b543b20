"""``cv_results_`` as scikit-learn's searches have it, and settings as text."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import rankdata


def with_settings(results: dict[str, Any], params: list[dict]) -> dict[str, Any]:
    """Add the parameters of every setting, and the ranks of their mean scores."""
    for name in dict.fromkeys(name for setting in params for name in setting):
        column = np.ma.masked_all(len(params), dtype=object)
        for row, setting in enumerate(params):
            if name in setting:
                column[row] = setting[name]
        results[f"param_{name}"] = column
    results["params"] = params
    rank = rankdata(-results["mean_test_score"], method="min")
    results["rank_test_score"] = rank.astype(np.int32)
    return results


def format_setting(setting: dict) -> str:
    """Short text of a parameter setting."""
    parts = []
    for name, value in setting.items():
        short = name.rsplit("__", 1)[-1]
        parts.append(f"{short}={value:.3g}" if isinstance(value, float) else f"{short}={value}")
    return ", ".join(parts) or "-"
