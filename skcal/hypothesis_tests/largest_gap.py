"""An upper limit of the difference of frequencies in any range with a share of the samples."""

from __future__ import annotations

import numpy as np

from skcal.metrics.gap_sums import GapSums

_CELLS = 200  # at whose ends ranges begin and end
_ROUNDING = 1e-12


def largest_gap_limit(gaps: GapSums, min_share: float, z: float, tail: float) -> float:
    """The largest mean residual of a range plus its half width.

    The range of the largest gap is a fixed one, so that its own half width is enough. Ranges of
    whole cells that hold nearly ``min_share`` stand for all that do.

    Parameters
    ----------
    gaps : GapSums
    min_share : float in (0, 1]
    z, tail : float
        The quantile of half widths, and its probability.
    """
    cells = gaps.in_cells(_CELLS)
    of_rows = gaps.of_rows(cells)
    weighted = gaps.weight * gaps.residuals
    mass, path, seen, implied = (
        np.append(0.0, np.cumsum(np.bincount(of_rows, values)))
        for values in (gaps.weight, weighted, gaps.seen, gaps.implied)
    )
    first, end = np.triu_indices(len(mass), 1)
    held = mass[end] - mass[first]
    merged = len(gaps.starts) > _CELLS  # the ends of a range may lie within cells
    wide = held >= min_share - 2 * merged / _CELLS - _ROUNDING
    first, end, held = first[wide], end[wide], held[wide]
    variances = np.maximum(seen[end] - seen[first], implied[end] - implied[first])
    for covariances in gaps.covariances(cells):
        variances = np.maximum(variances, variances_of_ranges(covariances)[first, end])
    deviations = np.sqrt(np.maximum(variances, 0))
    unseen = np.log(1 / tail) * (gaps.squares / gaps.weight).max()
    limits = (np.abs(path[end] - path[first]) + z * deviations + unseen) / held
    return float(min(limits.max(), 1.0))


def variances_of_ranges(covariances: np.ndarray) -> np.ndarray:
    """Variances of the sums over the cells from i to before j, by the covariances of the cells."""
    path = np.pad(covariances.cumsum(axis=0).cumsum(axis=1), ((1, 0), (1, 0)))
    squares = np.diagonal(path)
    return squares[:, None] + squares - path - path.T
