"""What numpy says of overflows is as before, whenever an interrupt comes."""

import numpy as np
import pytest

from skcal._floats import ignoring


def test_only_what_is_named_is_ignored_inside():
    before = np.geterr()
    with ignoring("over", "divide"):
        assert np.geterr() == {**before, "over": "ignore", "divide": "ignore"}
    assert np.geterr() == before


@pytest.mark.parametrize("at", [1, 2])
def test_an_interrupt_at_either_end_leaves_no_trace(at, monkeypatch):
    before, seterr, calls = np.geterr(), np.seterr, []

    def interrupted(**kinds):
        calls.append(kinds)
        if len(calls) == at:
            raise KeyboardInterrupt
        return seterr(**kinds)

    monkeypatch.setattr(np, "seterr", interrupted)
    with pytest.raises(KeyboardInterrupt), ignoring("all"):
        pass
    assert np.geterr() == before
