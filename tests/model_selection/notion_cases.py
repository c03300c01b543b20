"""Every notion, for tests that hold under each."""

import numpy as np
import pytest


def superclass(proba):
    """A lens: classes 0 and 1 against classes 2 and 3."""
    return np.tile([0, 0, 1, 1], (len(proba), 1))


NOTIONS = [
    "canonical",
    "confidence",
    "top-label",
    "classwise",
    "top-2",
    pytest.param(superclass, id="lens"),
    "binary",
]
every_notion = pytest.mark.parametrize("notion", NOTIONS)
