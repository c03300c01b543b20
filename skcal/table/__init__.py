"""Predictions counted in fine cells: sums that add up over batches, days, workers and engines."""

from skcal.table.sums import cells
from skcal.table.table import CalibrationTable

__all__ = ["CalibrationTable", "cells"]
