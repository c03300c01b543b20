"""What the tests of commands share."""

import pytest
from report_cases import CANDIDATES

from skcal.cli.commands import main
from skcal.hypothesis_tests import joint
from skcal.model_selection import candidates
from skcal.report import compare, findings


@pytest.fixture(autouse=True)
def short_searches(monkeypatch):
    """What is recommended does not matter here, and takes long."""
    monkeypatch.setitem(candidates.CANDIDATES, "recommended", lambda *_: CANDIDATES[:1])


@pytest.fixture
def few_draws(monkeypatch):
    """199 draws suffice for what reports print; how many there are is asked elsewhere."""
    scan = findings.scan_of
    for module in (joint, compare):
        monkeypatch.setattr(module, "default_resamples", lambda n_samples: 199)
    monkeypatch.setattr(
        findings, "scan_of", lambda sample, level, _, *more: scan(sample, level, 199, *more)
    )


@pytest.fixture
def run(capsys):
    """What a command prints, or of status 2 what it says on the error stream."""

    def call(*arguments, status=0):
        assert main([str(one) for one in arguments]) == status
        captured = capsys.readouterr()
        return captured.err if status == 2 else captured.out

    return call
