"""Advice of commands about rows, labels and kinds of files: as tests/advice_of_repairs.py."""

import io

import numpy as np
import pandas as pd
from advice_of_commands import N, P, Y
from advice_of_repairs import FILES, NAMES, RIGHT, THREE, table

BOUNDED = np.arange(N) % 4 == 1
CODES = np.searchsorted(np.array(list("xyz")), NAMES)
IDS = "monitor {} ids.csv --id id --quiet ; monitor {} {} --id id --json"


def more(label_of_3):
    """The samples of ids.csv, of which one has a label of its own, and a sample after them."""
    labels = np.where(np.arange(N) == 3, label_of_3, Y)
    return table("id,p,label", np.arange(N + 1), np.r_[P, 0.5], np.r_[labels, 1])


def excel():
    file = io.BytesIO()
    pd.DataFrame({"p": P, "label": Y}).to_excel(file, index=False)
    return file.getvalue()


def parquet():
    file = io.BytesIO()
    pd.DataFrame({"p": P, "label": Y}).to_parquet(file)
    return file.getvalue()


CASES = {
    "{} If not, delete these rows.": (
        {"a.csv": table("p,label", np.where(BOUNDED, "<" + P.astype(str).astype(object), P), Y)},
        "evaluate a.csv",
        {"a.csv": table("p,label", P[~BOUNDED], Y[~BOUNDED])},
        "evaluate a.csv",
        "evaluate rest.csv",
    ),
    "If no column holds what happened, add one. {}": (
        {"a.csv": table("p,patient", P, np.arange(N))},
        "evaluate a.csv",
        {"a.csv": table("p,patient,label", P, np.arange(N), Y)},
        "evaluate a.csv --ignore patient",
        RIGHT,
    ),
    "classes, write the labels as the names of the columns.": (
        {"a.csv": table("0,1,2,label", *THREE.T, CODES + 1)},
        "evaluate a.csv",
        {"a.csv": table("0,1,2,label", *THREE.T, CODES)},
        "evaluate a.csv --notion confidence",
        "evaluate thirds.csv --notion confidence",
    ),
    "Use 'classwise', 'confidence' or 'canonical'.": (
        {"a.npz": {"proba": THREE, "labels": NAMES, "classes": np.array(list("xyz"))}},
        "evaluate thirds.csv --notion binary",
        {},
        "evaluate thirds.csv --notion confidence ; evaluate thirds.csv --notion classwise",
        "evaluate a.npz --notion confidence ; evaluate a.npz --notion classwise",
    ),
    "{}: {} was added before with another prediction or label. {} If a label was corrected, leave "
    "the row out: what was added stays.": (
        {"a.csv": more(1 - Y[3])},
        IDS.format("s.json", "s.json", "a.csv"),
        {"s.json": None, "a.csv": table("id,p,label", [N], [0.5], [1])},
        IDS.format("s.json", "s.json", "a.csv"),
        IDS.format("t.json", "t.json", "more.csv"),
    ),
}
FILES |= {
    "rest.csv": table("p,label", P[~BOUNDED].tolist(), Y[~BOUNDED].tolist()),
    "more.csv": more(Y[3]),
}
#: Files that a package reads which may be absent.
NEEDED = {
    "{}: reading it needs openpyxl: pip install openpyxl.": ("openpyxl", "a.xlsx", excel),
    "{}: reading Parquet needs pandas and pyarrow: pip install pandas pyarrow.": (
        "pyarrow",
        "a.parquet",
        parquet,
    ),
}
