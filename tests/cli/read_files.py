"""Files of predictions, and predictions of files as a command with some options reads them."""

import csv

import numpy as np

from skcal.cli import predictions
from skcal.cli.parser import parse


def write_table(path, columns, sep=",", encoding="utf-8"):
    """Write columns by name; numbers of Python have all their digits."""
    with path.open("w", newline="", encoding=encoding) as file:
        rows = csv.writer(file, delimiter=sep, lineterminator="\n")
        rows.writerow(columns)
        rows.writerows(
            zip(*(np.asarray(cells).tolist() for cells in columns.values()), strict=True)
        )
    return path


def read_predictions(path, known=None, **given):
    """The predictions of a file; ``given`` are values of parsed options by name."""
    options = parse(["evaluate", str(path)])
    assert given.keys() <= vars(options).keys()
    vars(options).update(given)
    return predictions.read_predictions(options, known=known)
