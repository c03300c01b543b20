"""Advice of commands to change a file, or an option: what is wrong, and what is right after it.

Each case is named by the text of its message, as tests/advice.py collects it: files, a command that
refuses them, files in their place that follow the advice, the command for these, and another one
that gives the same numbers.
"""

import gzip
import io
import json
import zipfile

import numpy as np
from advice_of_commands import N, P, Q, Y

from skcal.monitoring import CalibrationMonitor

NAMES = np.array(list("xyz"))[np.random.default_rng(0).integers(0, 3, N)]
THREE = np.column_stack([P / 2, P / 2, 1 - P]).round(4)
PAIR = np.column_stack([(1 - P).round(3), P])


def table(header, *columns):
    """A text with a header and columns."""
    rows = zip(*(np.asarray(column, object).tolist() for column in columns), strict=True)
    return "\n".join([header, *(",".join(map(str, row)) for row in rows)]) + "\n"


def changed(column, value, place=3):
    """A list with another value at a place."""
    cells = list(column.tolist())
    cells[place] = value
    return cells


def packed(text):
    """The bytes of a zip archive that holds a.csv."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("a.csv", text)
    return file.getvalue()


def lines(records):
    """Objects of JSON, one a line."""
    return "".join(json.dumps(record) + "\n" for record in records)


A = table("p,label", P, Y)
OTHER = table("q,label", Q, Y)
#: Files of all cases, which hold what is right.
FILES = {
    "right.csv": A,
    "q.csv": table("p,label", Q, Y),
    "less.csv": table("p,label", np.delete(P, 3), np.delete(Y, 3)),
    "thirds.csv": table("x,y,z,label", *THREE.T, NAMES),
    "pair.csv": table("0,1,label", *PAIR.T, Y),
    "w.csv": table("w,p,label", 1 + Y, P, Y),
    "ids.csv": table("id,p,label", np.arange(N), P, Y),
    "qs.csv": table("id,p,label", np.arange(N), Q, Y),
    "soft.csv": table("p_0,p_1,y_0,y_1", 1 - P, P, 1 - Y, Y),
}
RIGHT = "evaluate right.csv"
RECORDS = [{"p": p, "label": y} for p, y in zip(P.tolist(), Y.tolist(), strict=True)]
LISTS = [f'"[{1 - p:.3f}, {p}]"' for p in P.tolist()]


def tops(proba, labels, names, most=3):
    """Records with a list of the most probable labels, as pipelines of transformers give."""
    for row, label in zip(proba.tolist(), labels, strict=True):
        parts = [{"label": x, "score": p} for x, p in zip(names, row, strict=True)]
        parts = sorted(parts, key=lambda part: -part["score"])
        yield {"scores": parts[:most], "label": str(label)}


TOPS = list(tops(PAIR, np.array(["a", "b"])[Y], "ab"))
CUT = TOPS[:1] + list(tops(PAIR, np.array(["a", "b"])[Y], "ab", 1))[1:]
TOPS_OF_3, CUT_OF_3 = (list(tops(THREE, NAMES, "xyz", most)) for most in (3, 2))
TEXTS = [{"a": json.dumps({"p": row["p"]}), "label": row["label"]} for row in RECORDS]
RECALIBRATE = "recalibrate right.csv {} --out new.csv ; evaluate new.csv"
_ARRAYS = {"proba": THREE, "labels": NAMES, "classes": np.array(list("xyz"))}
NPZ = "recalibrate fit.npz apply.npz --out new.npz"
STATE = "monitor s.json right.csv --quiet ; "

CASES = {
    "Close its quotation mark.": (
        {"a.csv": 'label,p\n1,"0.5\n0,0.6"\n1,0.7\n'},
        "evaluate a.csv",
        {"a.csv": table("label,p", Y, [f'"{p}"' for p in P])},
        "evaluate a.csv",
        RIGHT,
    ),
    "{}, not a number. Give a number, or drop the row.": (
        {"a.jsonl": lines(CUT)},
        "evaluate a.jsonl",
        {"a.jsonl": lines(TOPS)},
        "evaluate a.jsonl --pos-label b",
        RIGHT,
    ),
    "Leave that option out.": (
        {"a.csv": A},
        "evaluate a.csv --decimal ,",
        {},
        "evaluate a.csv",
        RIGHT,
    ),
    "{}, column {} is {}, {} a percent sign, unlike those above. Write all of them alike.": (
        {"a.csv": table("p,label", changed(100 * P, "5%"), Y)},
        "evaluate a.csv --percent",
        {"a.csv": table("p,label", [f"{100 * p:.1f}%" for p in P], Y)},
        "evaluate a.csv --percent",
        RIGHT,
    ),
    "{}. It may have separators of thousands, or {} before its decimals. Write the numbers of this "
    "column without separators of thousands.": (
        {"a.csv": table("p,label", [f'"{2e6 * p:,.1f}"' for p in P], Y)},
        "evaluate a.csv --scale 2000000",
        {"a.csv": table("p,label", [f"{2e6 * p:.1f}" for p in P], Y)},
        "evaluate a.csv --scale 2000000",
        RIGHT,
    ),
    "{}, column {} is {}, not a list of numbers, as others are. Give a list of numbers, or drop "
    "the row.": (
        {"a.csv": table("p,label", [*LISTS[:3], "none at all", *LISTS[4:]], Y)},
        "evaluate a.csv",
        {"a.csv": table("p,label", LISTS, Y)},
        "evaluate a.csv",
        RIGHT,
    ),
    "Name a column by {}.": (
        {"a.csv": table("p,label,w", P, Y, 1 + Y)},
        "evaluate a.csv --weight much",
        {},
        "evaluate a.csv --weight w",
        "evaluate w.csv --weight w",
    ),
    "{}: {} is empty. Give a header: the class of each column, and the column of labels.": (
        {"a.csv": A.replace("p,label", '""')},
        "evaluate a.csv",
        {"a.csv": A},
        "evaluate a.csv",
        RIGHT,
    ),
    "{}: {} is {}, not a header. Delete that line.": (
        {"a.csv": table("# of May,2026", P, Y)},
        "evaluate a.csv",
        {"a.csv": A},
        "evaluate a.csv",
        RIGHT,
    ),
    "{}: has a row for each sample and class, and such a table is not written. Save a column for "
    "each class.": (
        {
            "a.csv": table(
                "id,class,p", np.repeat(np.arange(N), 2), np.arange(2 * N) % 2, PAIR.ravel()
            )
        },
        "recalibrate pair.csv a.csv --out new.csv",
        {"a.csv": FILES["pair.csv"]},
        "recalibrate pair.csv a.csv --out new.csv ; evaluate new.csv",
        "recalibrate pair.csv pair.csv --out other.csv ; evaluate other.csv",
    ),
    "{}: has no array {}. Save it beside 'proba'.": (
        {
            "a.npz": {"proba": P, "labels": Y, "age": np.arange(N)},
            "b.npz": {"proba": Q},
        },
        "shift a.npz b.npz --feature age --resamples 20",
        {"b.npz": {"proba": Q, "age": np.arange(N)}},
        "shift a.npz b.npz --feature age --resamples 20",
        "shift ids.csv qs.csv --feature id --score p --resamples 20",
    ),
    "{}: array {} has shape {}, where the map reads {}. Give the columns of the predictions to fit "
    "to.": (
        {"fit.npz": _ARRAYS, "apply.npz": _ARRAYS | {"proba": PAIR}},
        NPZ,
        {"apply.npz": _ARRAYS},
        f"{NPZ} ; evaluate new.npz --notion confidence",
        "recalibrate thirds.csv thirds.csv --out new.csv ; evaluate new.csv --notion confidence",
    ),
    "{}: no rows of probabilities. Give a row per sample.": (
        {"fit.npz": _ARRAYS, "apply.npz": _ARRAYS | {"proba": THREE[:0]}},
        NPZ,
        {"apply.npz": _ARRAYS},
        f"{NPZ} ; evaluate new.npz --notion confidence",
        "recalibrate thirds.csv thirds.csv --out new.csv ; evaluate new.csv --notion confidence",
    ),
    "{}: {} names column {} twice. Name each class once.": (
        {"a.csv": table("1,1,label", *PAIR.T, Y)},
        "evaluate a.csv",
        {"a.csv": table("0,1,label", *PAIR.T, Y)},
        "evaluate a.csv",
        "evaluate pair.csv",
    ),
    "{}: a single column of probabilities needs shares of two classes, found {}. Name a column of "
    "probabilities for each class.": (
        {"a.csv": table("p,y_x,y_y,y_z", P, *((x == NAMES) / 1 for x in "xyz"))},
        "evaluate a.csv --soft y_",
        {
            "a.csv": table(
                "p_x,p_y,p_z,y_x,y_y,y_z", *THREE.T, *((x == NAMES).astype(int) for x in "xyz")
            )
        },
        "evaluate a.csv --soft y_ --notion confidence",
        "evaluate thirds.csv --notion confidence",
    ),
    "Give a column of probabilities for each class.": (
        {"a.csv": table("x,y,z,label", *(THREE / 2).T, NAMES)},
        "evaluate a.csv",
        {"a.csv": FILES["thirds.csv"]},
        "evaluate a.csv",
        "evaluate thirds.csv",
    ),
    "{}: a monitor without samples. Remove it to begin.": (
        {"state.json": CalibrationMonitor().to_json()},
        "monitor state.json right.csv --json",
        {"state.json": None},
        "monitor state.json right.csv --json",
        "monitor other.json right.csv --json",
    ),
    "{}: cannot be read ({}). Save it again.": (
        {"a.csv.gz": gzip.compress(A.encode())[:-30]},
        "evaluate a.csv.gz",
        {"a.csv.gz": gzip.compress(A.encode())},
        "evaluate a.csv.gz",
        RIGHT,
    ),
    "{}: the quotation mark that opens in line {} closes in line {} or never. Close it, or delete "
    "it.": (
        {"a.csv": A.replace(f"\n{P[7]},", f'\n"{P[7]},', 1)},
        "evaluate a.csv",
        {"a.csv": A.replace(f"\n{P[7]},", f'\n"{P[7]}",', 1)},
        "evaluate a.csv",
        RIGHT,
    ),
    "Give a column per class, named by the class, or name a single column, of": (
        {"a.csv": table("p,q,label", P, Q, Y)},
        "evaluate a.csv",
        {"a.csv": table("1,0,q,label", *PAIR.T[::-1], Q, Y)},
        "evaluate a.csv",
        RIGHT,
    ),
    "The rows of {} sum to 1. Give each the name of its label,": (
        {"a.csv": table("no,yes,label", *PAIR.T, Y)},
        "evaluate a.csv",
        {"a.csv": table("0,1,label", *PAIR.T, Y)},
        "evaluate a.csv",
        RIGHT,
    ),
    "{}: {} has no column {} (columns: {}). Name a column by each class of the predictions to fit "
    "to.": (
        {"a.csv": table("x,y,other,label", *THREE.T, NAMES)},
        "recalibrate thirds.csv a.csv --out new.csv",
        {"a.csv": FILES["thirds.csv"]},
        "recalibrate thirds.csv a.csv --out new.csv ; evaluate new.csv --notion confidence",
        "recalibrate thirds.csv thirds.csv --out b.csv ; evaluate b.csv --notion confidence",
    ),
    "{}: no columns {}, such as {} (columns: {}). Name a column of probabilities for each class "
    "so, or leave the option out.": (
        {},
        "evaluate pair.csv --prefix q_",
        {"a.csv": table("q_0,q_1,label", *PAIR.T, Y)},
        "evaluate a.csv --prefix q_",
        "evaluate pair.csv",
    ),
    "{}, column {} holds {} of {} numbers that sum to {}. {} of {} lists are cut so, as those of "
    "the most probable labels are. Save the probability of each label; in a pipeline of "
    "transformers set top_k to None.": (
        {"a.jsonl": lines(TOPS_OF_3[:1] + CUT_OF_3[1:])},
        "evaluate a.jsonl",
        {"a.jsonl": lines(TOPS_OF_3)},
        "evaluate a.jsonl --notion confidence",
        "evaluate thirds.csv --notion confidence",
    ),
    "{}: the labels {} and {} may be one label, written in two ways. Write each label in one "
    "way.": (
        {"a.csv": table("p,label", P, changed(np.array(["no", "yes"])[Y], "Yes"))},
        "evaluate a.csv",
        {"a.csv": table("p,label", P, np.array(["no", "yes"])[Y])},
        "evaluate a.csv --pos-label yes",
        RIGHT,
    ),
    "--pos-label {} needs two labels, found {}. Give samples of both.": (
        {"a.csv": table("p,label", P, ["yes"] * N)},
        "evaluate a.csv --pos-label yes",
        {"a.csv": table("p,label", P, np.array(["no", "yes"])[Y])},
        "evaluate a.csv --pos-label yes",
        RIGHT,
    ),
    "array 'classes' has {} entries, that of shares {} columns. Save the class of each column, "
    "once.": (
        {"a.npz": {"proba": PAIR, "soft": np.eye(2)[Y], "classes": np.array(["0"])}},
        "evaluate a.npz --soft soft",
        {"a.npz": {"proba": PAIR, "soft": np.eye(2)[Y], "classes": np.array(["0", "1"])}},
        "evaluate a.npz --soft soft",
        "evaluate soft.csv --soft y_",
    ),
    "Give a column for each class.": (
        {"a.npz": {"proba": PAIR, "soft": Y / 1}},
        "evaluate a.npz --soft soft",
        {"a.npz": {"proba": PAIR, "soft": np.eye(2)[Y]}},
        "evaluate a.npz --soft soft",
        "evaluate soft.csv --soft y_",
    ),
    "{}: each sample would be left out. Check the columns of predictions and labels.": (
        {"a.csv": table("p,label,y", P, [""] * N, Y)},
        "evaluate a.csv --score p --drop-missing",
        {},
        "evaluate a.csv --score p --label y",
        RIGHT,
    ),
    "{}: {}, earlier batches in {} had {}. Give the same columns, or begin another state file.": (
        {"a.csv": OTHER},
        f"{STATE}monitor s.json a.csv",
        {"s.json": None, "a.csv": FILES["q.csv"]},
        f"{STATE}monitor s.json a.csv --json",
        f"{STATE.replace('s.json', 't.json')}monitor t.json q.csv --json",
    ),
    "{}: watches with {} {}, not {}. Leave the option out, or begin another state file.": (
        {},
        f"{STATE}monitor s.json q.csv --alpha 0.2",
        {"s.json": None},
        f"{STATE}monitor s.json q.csv --json",
        f"{STATE.replace('s.json', 't.json')}monitor t.json q.csv --json",
    ),
    'Give a list of objects, such as [{"confidence": 0.9, "correct": 1}].': (
        {"a.json": '"text"'},
        "evaluate a.json",
        {"a.json": json.dumps(RECORDS)},
        "evaluate a.json",
        RIGHT,
    ),
    "{}: line {} is not an object of JSON ({}). Give one a line, such as "
    '{"confidence": 0.9, "correct": 1}.': (
        {"a.jsonl": lines(RECORDS) + "[1, 2]\n"},
        "evaluate a.jsonl",
        {"a.jsonl": lines(RECORDS)},
        "evaluate a.jsonl",
        RIGHT,
    ),
    "Column {} has missing numbers. Fill them in both files.": (
        {"a.csv": table("id,p,label", changed(np.arange(N), ""), P, Y)},
        "shift a.csv qs.csv --feature id --score p --resamples 20",
        {"a.csv": FILES["ids.csv"]},
        "shift a.csv qs.csv --feature id --score p --resamples 20",
        "shift ids.csv qs.csv --feature id --score p --resamples 20",
    ),
    "{}: column {} holds {}. Give weights of at least 0.": (
        {"a.csv": table("w,p,label", changed(1 + Y, -1), P, Y)},
        "evaluate a.csv --weight w",
        {"a.csv": FILES["w.csv"]},
        "evaluate a.csv --weight w",
        "evaluate w.csv --weight w",
    ),
    "{} has {} samples, {} {}. Compare predictions for the same samples, in the same order.": (
        {"a.csv": FILES["less.csv"]},
        "compare right.csv a.csv --resamples 19",
        {"a.csv": FILES["q.csv"]},
        "compare right.csv a.csv --resamples 19",
        "compare right.csv q.csv --resamples 19",
    ),
    "{}: sample {} has the label {}, in {} {}. Compare predictions for the same samples, in the "
    "same order.": (
        {"a.csv": table("p,label", Q[::-1], Y[::-1])},
        "compare right.csv a.csv --resamples 19",
        {"a.csv": FILES["q.csv"]},
        "compare right.csv a.csv --resamples 19",
        "compare right.csv q.csv --resamples 19",
    ),
    "{}: has no row of {}, as has the other file. Compare predictions for the same samples.": (
        {"a.csv": table("id,p,label", 1 + np.arange(N), Q, Y)},
        "compare ids.csv a.csv --id id --resamples 19",
        {"a.csv": FILES["qs.csv"]},
        "compare ids.csv a.csv --id id --resamples 19",
        "compare right.csv q.csv --resamples 19",
    ),
    "{}: {}, column {} is {}, in {} rows. Name what each row belongs to, and a row that stands "
    "alone by a name of its own.": (
        {"a.csv": table("g,p,label", changed(np.arange(N) // 2, "", 0), P, Y)},
        "evaluate a.csv --groups g",
        {"a.csv": table("g,p,label", changed(np.arange(N) // 2, "alone", 0), P, Y)},
        "evaluate a.csv --groups g",
        None,
    ),
    "{} has probabilities of {}, {} of {}. Give those of one label.": (
        {
            "a.csv": table("no,label", P, np.array(["no", "yes"])[Y]),
            "b.csv": table("yes,label", Q, np.array(["no", "yes"])[Y]),
        },
        "compare a.csv b.csv --resamples 19",
        {"a.csv": table("yes,label", P, np.array(["no", "yes"])[Y])},
        "compare a.csv b.csv --resamples 19",
        "compare right.csv q.csv --resamples 19",
    ),
    "{}: the largest prediction is {}, after division by {}. Leave the option out if the file "
    "holds probabilities.": (
        {"a.csv": table("p,label", P, Y)},
        "evaluate a.csv --scale 50",
        {},
        "evaluate a.csv",
        RIGHT,
    ),
    "Give a header, a column per class and a row per sample.": (
        {"a.csv": "p,label\n"},
        "evaluate a.csv",
        {"a.csv": A},
        "evaluate a.csv",
        RIGHT,
    ),
    "{}: array {} holds Python objects. Save numbers or {}.astype(str).": (
        {"a.npz": {"proba": P, "labels": Y.astype(str).astype(object)}},
        "evaluate a.npz",
        {"a.npz": {"proba": P, "labels": Y.astype(str)}},
        "evaluate a.npz",
        RIGHT,
    ),
    "{}: {} is a part of a text, which is not written. Save it as a field of its own.": (
        {"a.jsonl": lines(TEXTS)},
        "recalibrate a.jsonl a.jsonl --score a.p --out new.jsonl",
        {"a.jsonl": lines(RECORDS)},
        "recalibrate right.csv a.jsonl --score p --out new.jsonl ; evaluate new.jsonl",
        RECALIBRATE.format("right.csv"),
    ),
    "Give each column one, or delete the line if it is no sample.": (
        {"a.csv": A + "the end\n" + "0.5,1\n"},
        "evaluate a.csv",
        {"a.csv": A},
        "evaluate a.csv",
        RIGHT,
    ),
    "Delete lines of comments.": (
        {"a.csv": A.replace("\n", "\n# first part\n", 1)},
        "evaluate a.csv",
        {"a.csv": A},
        "evaluate a.csv",
        RIGHT,
    ),
    "{}: line 1 has more than {} characters. Save it as a table, one line a sample.": (
        {"a.csv": "0.5," * 10**7},
        "evaluate a.csv",
        {"a.csv": A},
        "evaluate a.csv",
        RIGHT,
    ),
    **dict.fromkeys(
        ["Leave --feature out", "a difference of the columns of --feature"],
        (
            {},
            "shift ids.csv qs.csv --feature id --score p --resamples 199",
            {},
            "shift ids.csv qs.csv --score p --resamples 20",
            "shift right.csv q.csv --resamples 20",
        ),
    ),
    "Name the columns that may differ by --feature": (
        {"a.npz": {"proba": P, "labels": Y, "x": np.arange(N)}, "b.npz": {"proba": Q}},
        "shift a.npz b.npz --resamples 199",
        {"b.npz": {"proba": Q, "x": np.arange(N)}},
        "shift a.npz b.npz --feature x --resamples 20",
        "shift ids.csv qs.csv --feature id --score p --resamples 20",
    ),
}
