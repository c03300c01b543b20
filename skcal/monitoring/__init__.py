"""Watch models in production: evidence of miscalibration that may be read at any time.

An *e-value* is evidence against "calibrated". It starts at 1. If the predictions are calibrated, it
ever reaches 20 with a probability of at most 1/20, however often you look. A
:class:`CalibrationMonitor` computes it from batches of outcomes. :func:`merge_e_values` merges the
e-values of several streams, and :func:`e_benjamini_hochberg` says which streams are miscalibrated.
"""

from skcal.monitoring.e_values import e_benjamini_hochberg, merge_e_values
from skcal.monitoring.evidence import Estimate
from skcal.monitoring.history import Period
from skcal.monitoring.monitor import CalibrationMonitor
from skcal.monitoring.planning import MonitorPlan
from skcal.monitoring.status import Entry, FoundByNow

__all__ = [
    "CalibrationMonitor",
    "Entry",
    "Estimate",
    "FoundByNow",
    "MonitorPlan",
    "Period",
    "e_benjamini_hochberg",
    "merge_e_values",
]
