"""What the tests of commands share."""

import pickle

import pytest
from python_names import python_names, recorded
from report_cases import CANDIDATES

from skcal.cli import commands
from skcal.cli.commands import main
from skcal.model_selection import candidates
from skcal.report import calibration_report


@pytest.fixture(autouse=True)
def short_searches(few_draws, monkeypatch):
    """What is recommended, and how many draws tests make, does not matter here, and takes long."""
    monkeypatch.setitem(candidates.CANDIDATES, "recommended", lambda *_: CANDIDATES[:1])


@pytest.fixture(autouse=True)
def words_of_commands(monkeypatch):
    """Whatever a test lets commands print names options and commands, no arguments of Python."""
    parsed, given = commands.parse, []

    def parse(arguments):
        given.extend(map(str, arguments or ()))
        return parsed(arguments)

    monkeypatch.setattr(commands, "parse", parse)
    with recorded(monkeypatch) as said:
        yield
    for text in said:
        names = python_names(text, " ".join(given))
        assert not names, f"{names} in {text!r}"


@pytest.fixture
def reports_once(monkeypatch):
    """Each report of a test is made once, however often and in whatever form it is printed."""
    made = {}

    def report(*arguments, **options):
        key = pickle.dumps((arguments, options))
        if key not in made:
            made[key] = calibration_report(*arguments, **options)
        return made[key]

    monkeypatch.setattr(commands, "calibration_report", report)


@pytest.fixture
def run(capsys):
    """What a command prints, or of status 2 what it says on the error stream."""

    def call(*arguments, status=0):
        assert main([str(one) for one in arguments]) == status
        captured = capsys.readouterr()
        return captured.err if status == 2 else captured.out

    return call
