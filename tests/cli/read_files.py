"""Predictions of files, as a command with some options reads them."""

from skcal.cli import predictions
from skcal.cli.parser import parse


def read_predictions(path, known=None, **given):
    """The predictions of a file; ``given`` are values of parsed options by name."""
    options = parse(["evaluate", str(path)])
    assert given.keys() <= vars(options).keys()
    vars(options).update(given)
    return predictions.read_predictions(options, known=known)
