"""Figures are drawn without a screen, closed after each test, and leave the settings alone."""

import matplotlib as mpl
import pytest

mpl.use("Agg")


@pytest.fixture(autouse=True)
def figures():
    import matplotlib.pyplot as plt

    plt.close("all")
    before = dict(mpl.rcParams)
    yield plt
    plt.close("all")
    assert dict(mpl.rcParams) == before
