"""Watching models in production: evidence of miscalibration that may be read at any time.

An *e-value* is evidence against "calibrated": 1 says nothing, and 20 or more happens with a
probability of at most 1/20 if the predictions are calibrated, at whatever time one looks. A
:class:`CalibrationMonitor` gathers it over batches of outcomes; those of many streams are merged by
:func:`merge_e_values`, or chosen among by :func:`e_benjamini_hochberg`.
"""

from skcal.monitoring.e_values import e_benjamini_hochberg, merge_e_values
from skcal.monitoring.monitor import CalibrationMonitor

__all__ = ["CalibrationMonitor", "e_benjamini_hochberg", "merge_e_values"]
