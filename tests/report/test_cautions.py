"""What a report warns of before its numbers are read."""

import numpy as np
import pytest

from skcal import Zero, calibration_report
from skcal.datasets import make_tempered

OPTIONS = {"candidates": [Zero()], "n_resamples": 19, "random_state": 0, "cv": 2}


def is_warned_of(y, proba):
    report = calibration_report(y, proba, **OPTIONS)
    return any("columns may be in another order" in text for text in report.warnings)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_columns_in_another_order_are_suspected(n_classes):
    data = make_tempered(300, n_classes=n_classes, temperature=1.5, random_state=0)
    assert not is_warned_of(data.labels, data.proba)
    assert is_warned_of(data.labels, np.roll(data.proba, 1, axis=1))


def test_predictions_without_information_are_not_suspected():
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=400)
    assert not is_warned_of(y, rng.uniform(size=400))
    assert not is_warned_of(y, np.full(400, 0.3))
