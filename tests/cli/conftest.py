"""What the tests of commands share."""

import pytest
from report_cases import CANDIDATES

from skcal.cli.commands import main
from skcal.model_selection import candidates


@pytest.fixture(autouse=True)
def short_searches(monkeypatch):
    """What is recommended does not matter here, and takes long."""
    monkeypatch.setitem(candidates.CANDIDATES, "recommended", lambda *_: CANDIDATES[:1])


@pytest.fixture
def run(capsys):
    """What a command prints, or of status 2 what it says on the error stream."""

    def call(*arguments, status=0):
        assert main([str(one) for one in arguments]) == status
        captured = capsys.readouterr()
        return captured.err if status == 2 else captured.out

    return call
