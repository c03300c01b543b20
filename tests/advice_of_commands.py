"""Advice of commands: one that provokes it, what it says, and the answer to expect.

Each case is named by the text of its message, as tests/advice.py collects it: words of a command,
words of the one that follows the advice, and those of another one that gives the same answer, or
the exit status alone.
"""

import contextlib
import io
import json
import shlex
import zipfile
from pathlib import Path

import numpy as np

from skcal.cli.commands import main

N = 60
RNG = np.random.default_rng(4)
P = RNG.uniform(0.05, 0.95, N).round(3)
Y = (RNG.random(N) < P).astype(int)
Q = (0.5 * P + 0.2).round(3)
_COLUMNS = {"id": np.arange(N), "p": P, "q": Q, "label": Y, "half": np.arange(N) // 30}
_COLUMNS |= {"word": np.array(["no", "yes"])[Y], "rise": np.abs(P - 0.5) + 0.5}


def make_files():
    """The files that the cases name, in the folder of the test."""
    write("a.csv", "p", "label")
    write("b.csv", "q", "label")
    write("two.csv", "id", "p", "q", "label", "half")
    write("words.csv", "p", "word")
    write("more.csv", "id", "p", "word")
    write("id.csv", "id", "p", "label")
    days = np.where(np.arange(N) < 30, "2024-12-30", "2024-12-31")
    write("days.csv", ("day", days), ("pair", np.arange(N) % 30), "p", "label")
    write("more_days.csv", "p", "label", ("pair", np.arange(N) % 30))
    write(
        "dates.csv", ("day", np.where(days == "2024-12-30", "30.12.24", "31.12.24")), "p", "label"
    )
    lines = Path("id.csv").read_text().splitlines()
    Path("part.csv").write_text("\n".join(lines[:41]) + "\n")
    write("halves/0.csv", "p", "label")
    write("halves/1.csv", "q", "label")
    write("apart/0.csv", "p", "label")
    write("apart/1.csv", "p", "label")
    for name in ("empty", "page.html"):
        Path(name).mkdir(exist_ok=True)
    write("a.xyz", "p", "label")
    write("soft.csv", *[("p_a", 1 - P), ("p_b", P), ("y_a", 1 - Y), ("y_b", Y)])
    three = np.column_stack([P / 2, P / 2, 1 - P]).round(4)
    np.savez("three.npz", proba=three, labels=np.array(["x", "y", "z"])[np.arange(N) % 3])
    classes = np.array(["x", "y", "z"])
    np.savez("named.npz", proba=three, labels=classes[np.arange(N) % 3], classes=classes)
    with zipfile.ZipFile("two.zip", "w") as archive:
        for name in ("a.csv", "b.csv"):
            archive.write(name)
    with zipfile.ZipFile("a.csv.zip", "w") as archive:
        archive.write("a.csv")

    write("thirds.csv", *zip("xyz", three.T, strict=True), ("label", classes[np.arange(N) % 3]))
    write("far.csv", *zip("xyz", three.T / 2, strict=True), ("label", classes[np.arange(N) % 3]))
    write("lack.csv", *zip("xy", three.T[:2], strict=True), ("label", classes[np.arange(N) % 3]))
    write("mixed.csv", ("p_a", 1 - P), ("p_b", P), ("y_a", 1 - Y), ("y_b", Y), ("y_c", 0 * Y))
    write("several.csv", ("p_a", 1 - P), ("p_b", P), ("y_a", 1 - Y), ("y_b", np.ones(N, int)))
    write("pair.csv", ("of_no", (1 - P).round(3)), ("of_yes", P), "label")
    write("turned.csv", "p", ("label", 1 - Y))
    write("single.csv", ("p_b", P), ("y_a", 1 - Y), ("y_b", Y))
    write("runs.csv", *TWICE, "p", "label")
    write("others.csv", *TWICE, ("p", Q), "label")
    write("off.csv", ("p", (P / 4).round(4)), "label")
    write("rare.csv", ("p", (np.arange(N) / 2000 + 0.03).round(4)), ("label", RARE))
    known = [str(y) if k < 50 else "" for k, y in enumerate(Y)]
    write("later.csv", "p", ("label", np.array(known, dtype=object)))
    write("named.csv", "id", "p", ("label", np.array(known, dtype=object)))
    lists = np.array([f'"[{1 - p:.3f} {p:.3f}]"' for p in P], dtype=object)
    write("lists.csv", ("p", lists), ("label", np.array(["a", "b"])[Y]))
    write("sorted.csv", ("a", 1 - P), ("b", P), ("label", np.array(["a", "b"])[Y]))
    np.savez("other.npz", foo=P)
    lines = Path("a.csv").read_text().splitlines()
    rows = Path("b.csv").read_text().splitlines()[1:]
    Path("again.csv").write_text("\n".join(lines + rows[:20]) + "\n")
    Path("next.csv").write_text("\n".join(lines[:1] + rows[:20]) + "\n")


TWICE = [("question", np.arange(N) // 2), ("sample", np.arange(N) % 2)]
RARE = (np.arange(N) % 30 == 0).astype(int)


def write(path, *columns):
    """A table of columns, by their names or with numbers of their own."""
    Path(path).parent.mkdir(exist_ok=True)
    named = dict((name, _COLUMNS[name]) if isinstance(name, str) else name for name in columns)
    rows = zip(*(values.tolist() for values in named.values()), strict=True)
    lines = [",".join(named), *(",".join(map(str, row)) for row in rows)]
    Path(path).write_text("\n".join(lines) + "\n")


def run(words):
    """The exit status, the standard output and all that was printed of commands in turn."""
    for command in words.split(" ; "):
        out, error = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(error):
            try:
                status = main(shlex.split(command))
            except SystemExit as end:
                status = end.code
    return status, out.getvalue(), out.getvalue() + error.getvalue()


def offers(words):
    """What a command that is refused says, and the commands that it offers."""
    status, _, told = run(words)
    assert status == 2, told
    lines = [line for line in told.splitlines() if "python -m skcal " in line]
    return told, [line.split("python -m skcal ")[1] for line in lines]


def numbers_of(words):
    """The numbers of a command's JSON, without names of files."""
    status, out, told = run(words)
    assert status in (0, 1, 3), told
    found = json.loads(out)
    return list(_numbers(found))


def _numbers(part):
    if isinstance(part, dict):
        part = [value for name, value in part.items() if name not in ("classes", "seconds")]
    if isinstance(part, list):
        for value in part:
            yield from _numbers(value)
    elif isinstance(part, int | float):
        yield part


EVALUATE, TEST = "evaluate a.csv --json", "test a.csv --resamples 99 --json"
ANSWERS = "--confidence p --correct label"
STATE = "monitor s.json a.csv --quiet ; "
SHORT = "--resamples 19 --json"

CASES = {
    "--alpha is the level of --fail-if-worse: pass that, too": (
        f"compare a.csv b.csv --alpha 0.1 {SHORT}",
        f"compare a.csv b.csv --alpha 0.1 --fail-if-worse {SHORT}",
        f"compare two.csv --score p --score q --alpha 0.1 --fail-if-worse {SHORT}",
    ),
    "{} resamples are too few for {} tests to reject at --alpha {}. Pass --resamples {} or more.": (
        "test a.csv --alpha 0.01 --resamples 19",
        "test a.csv --alpha 0.01 --resamples 99 --json",
        TEST,
    ),
    "--alpha {} is below what {} resamples, the most, can show of {} tests. Pass a larger one.": (
        "test a.csv --alpha 1e-9 --resamples 19",
        "test a.csv --alpha 0.05 --resamples 99 --json",
        TEST,
    ),
    "{} With --alpha the exit status says so.": (
        "test a.csv --resamples 99",
        "test a.csv --resamples 99 --alpha 0.05 --json",
        TEST,
    ),
    "--batch is for --plan: pass both": (
        f"{STATE}monitor s.json --batch 20",
        f"{STATE}monitor s.json --batch 20 --plan 1.4 --json",
        f"{STATE}monitor s.json --plan 1.4 --batch 20 --format json",
    ),
    "--json is not an option with --format prometheus": (
        f"{STATE}monitor s.json --json --format prometheus",
        f"{STATE}monitor s.json --format prometheus",
        0,
    ),
    "--by decides for subgroups by --max-error: pass that. report --by shows them": (
        "evaluate two.csv --score p --by half",
        "report two.csv --score p --by half --resamples 19 --json",
        "report two.csv --score p --by half --resamples 19 --json --detail full",
    ),
    "--confidence is not an option of monitor: pass --score and --label": (
        f"monitor s.json two.csv {ANSWERS}",
        "monitor s.json two.csv --score p --label label --json",
        "monitor t.json a.csv --json",
    ),
    "--confidence, which settles that": (
        f"evaluate a.csv {ANSWERS} --score p",
        f"evaluate a.csv {ANSWERS} --json",
        "evaluate two.csv --confidence p --correct label --json",
    ),
    "{} COLUMN is missing: --confidence and --correct belong together": (
        "evaluate two.csv --confidence p",
        f"evaluate two.csv {ANSWERS} --json",
        f"evaluate a.csv {ANSWERS} --json",
    ),
    "--error {} is what --max-error can bound: pass --max-error, too": (
        "evaluate a.csv --error cutoff",
        "evaluate a.csv --error cutoff --max-error 0.5 --json",
        "evaluate a.csv --max-error 0.50 --error cutoff --json",
    ),
    "--error {}: without assumptions this error has no upper bound, so that --max-error cannot "
    "show "
    "that it is small. Use --error calibration, cutoff or ece": (
        "evaluate a.csv --error log --max-error 0.5",
        "evaluate a.csv --error calibration --max-error 0.5 --json",
        "evaluate a.csv --max-error 0.5 --json",
    ),
    "--max-error {}: no {} is above 1. Errors are in units of probability: {} % is {}": (
        "evaluate a.csv --max-error 5",
        "evaluate a.csv --max-error 0.05 --json",
        "evaluate a.csv --max-error .05 --json",
    ),
    "--logits and --log-probabilities exclude each other": (
        "evaluate a.csv --logits --log-probabilities",
        EVALUATE,
        "evaluate two.csv --score p --json",
    ),
    "--notion was given more than once; {} takes one.": (
        "plot a.csv --out a.svg --notion binary --notion confidence",
        "plot a.csv --out a.svg --notion binary",
        0,
    ),
    "--notion {} is not an option of {}: choose from {}; --search adds the canonical and "
    "class-wise "
    "error": (
        "report a.csv --notion canonical",
        f"report a.csv --notion binary {SHORT}",
        f"report a.csv {SHORT}",
    ),
    "--notion {}: --max-error bounds errors of a single probability, and this notion conditions on "
    "a vector, whose error has no upper bound without assumptions. Use --notion binary, "
    "confidence, "
    "top-label or classwise.": (
        "evaluate named.npz --notion canonical --max-error 0.5",
        "evaluate named.npz --notion confidence --max-error 0.5 --json",
        "evaluate named.npz --max-error 0.5 --json",
    ),
    "--out - : the standard output has the summary. Pass the name of a file.": (
        "recalibrate a.csv a.csv --out -",
        "recalibrate a.csv a.csv --out new.csv",
        0,
    ),
    "{} is missing: recalibrate FIT APPLY --out NEW": (
        "recalibrate a.csv a.csv",
        "recalibrate a.csv a.csv --out new.csv",
        0,
    ),
    "--out NEW": (
        "recalibrate a.csv a.csv",
        "recalibrate a.csv a.csv --out new.csv ; evaluate new.csv",
        0,
    ),
    "nothing to do: pass APPLY and --out NEW, or --save MAP to keep the map": (
        "recalibrate a.csv",
        "recalibrate a.csv --save map.json ; recalibrate a.csv a.csv --out new.csv",
        0,
    ),
    "with --map there is nothing to fit to: pass APPLY alone": (
        "recalibrate a.csv --save map.json ; recalibrate a.csv b.csv --map map.json --out new.csv",
        "recalibrate a.csv --save map.json ; recalibrate b.csv --map map.json --out new.csv",
        0,
    ),
    "--map, whose fit has settled that": (
        "recalibrate a.csv --map map.json --logits --out new.csv",
        "recalibrate a.csv --save map.json ; recalibrate a.csv --map map.json --out new.csv",
        0,
    ),
    "Give a file that recalibrate --save wrote.": (
        "recalibrate a.csv --map a.csv --out new.csv",
        "recalibrate a.csv --save map.json ; recalibrate a.csv --map map.json --out new.csv",
        0,
    ),
    "{}: is another kind of file than {}. Pass the same kind.": (
        "recalibrate a.csv a.csv --out new.npz",
        "recalibrate a.csv a.csv --out new.csv",
        0,
    ),
    "Pass a .csv, .tsv, .txt, .jsonl, .parquet or .npz file, of text perhaps as .gz.": (
        "recalibrate a.csv a.csv --out new.zip",
        "recalibrate a.csv a.csv --out new.csv.gz",
        0,
    ),
    "--pos-label {} is not one of two classes: {}.": (
        "evaluate words.csv --label word --pos-label maybe",
        "evaluate words.csv --label word --pos-label yes --json",
        "evaluate more.csv --label word --score p --pos-label yes --json",
    ),
    "--predicted and --label name the same column, {}": (
        "evaluate words.csv --label word --predicted word",
        "evaluate words.csv --label word --pos-label yes --json",
        "evaluate more.csv --label word --score p --pos-label yes --json",
    ),
    "--score is given more than twice: compare takes two models": (
        "compare two.csv --score p --score q --score half",
        f"compare two.csv --score p --score q {SHORT}",
        f"compare a.csv b.csv {SHORT}",
    ),
    "--score {} is given twice: name two columns": (
        "compare two.csv --score p --score p",
        f"compare two.csv --score p --score q {SHORT}",
        f"compare a.csv b.csv {SHORT}",
    ),
    "pass FILE, --linear-predictor or --c-statistic: what predictions to expect": (
        "sample-size --prevalence 0.5",
        "sample-size --prevalence 0.5 --linear-predictor 0 1 --json",
        "sample-size --linear-predictor 0 1 --prevalence 0.50 --json",
    ),
    "Pass or fail needs a limit: --max-error.": (
        "evaluate a.csv",
        "evaluate a.csv --max-error 0.5 --json",
        "evaluate two.csv --score p --max-error 0.5 --json",
    ),
    "This does not show that the error is small; evaluate --max-error asks for that.": (
        "test a.csv --alpha 0.0101 --resamples 999",
        "evaluate a.csv --max-error 0.5 --json",
        "evaluate two.csv --score p --max-error 0.5 --json",
    ),
    "Pass a FILE with predictions to begin it.": (
        "monitor new.json",
        "monitor new.json a.csv --json",
        "monitor t.json two.csv --score p --json",
    ),
    "{} was added before and is not added again (--again adds it).": (
        f"{STATE}monitor s.json a.csv",
        f"{STATE}monitor s.json a.csv --again --json",
        "monitor t.json id.csv --score p --quiet ; monitor t.json two.csv --score p --again --json",
    ),
    "{}: rows of one {} have several days, but belong to one batch, since they may depend on each "
    "other. Leave --date out.": (
        "monitor s.json days.csv --score p --groups pair --date day",
        "monitor s.json days.csv --score p --groups pair --ignore day --json",
        "monitor t.json more_days.csv --score p --groups pair --json",
    ),
    "{}: column {} holds {}, which is no date such as 2024-12-31. Write dates so, or leave "
    "--date out: the rows are then one batch.": (
        "monitor s.json dates.csv --score p --date day",
        "monitor s.json dates.csv --score p --json",
        "monitor t.json a.csv --json",
    ),
    "{}: {} of {} rows were added before, by their {}, and are left out (--again adds them).": (
        "monitor s.json part.csv --id id --score p --quiet ; monitor s.json id.csv --id id "
        "--score p",
        "monitor s.json part.csv --id id --score p --quiet ; "
        "monitor s.json id.csv --id id --score p --again",
        0,
    ),
    "{}: has the classes {}, {} {}. Pass batches of one model, and the same --pos-label.": (
        "monitor s.json words.csv --label word --pos-label yes --quiet ; "
        "monitor s.json words.csv --label word --pos-label no --again",
        "monitor s.json words.csv --label word --pos-label yes --quiet ; "
        "monitor s.json words.csv --label word --pos-label yes --again --json",
        "monitor t.json more.csv --score p --label word --pos-label yes --quiet ; "
        "monitor t.json more.csv --score p --label word --pos-label yes --again --json",
    ),
    "{}: holds {} GB, more than {}. Raise --max-size if that is meant.": (
        "evaluate a.csv --max-size 1e-9",
        "evaluate a.csv --max-size 0.001 --json",
        EVALUATE,
    ),
    "{}: unknown format {}. Use {}.": (
        "plot a.csv --out a.bmp",
        "plot a.csv --out a.svg",
        0,
    ),
    "{}: is a folder. Pass the path of a file.": (
        "report a.csv --html page.html",
        "report a.csv --resamples 19 --html page2.html",
        0,
    ),
    "{}: is a folder without tables. Pass the path of a file.": (
        "evaluate empty",
        EVALUATE,
        "evaluate two.csv --score p --json",
    ),
    "{}: is given twice, and its samples count once. Pass it once.": (
        "evaluate a.csv a.csv",
        EVALUATE,
        "evaluate two.csv --score p --json",
    ),
    "the standard input is one file. Pass - alone, or names of files.": (
        "evaluate a.csv -",
        EVALUATE,
        "evaluate two.csv --score p --json",
    ),
    "{}: an archive is no table of several files. Pass it alone.": (
        "evaluate a.csv named.npz",
        "evaluate named.npz --json",
        "evaluate named.npz --json",
    ),
    "{}: {} and {} have different columns; not in both: {}. Pass files of the same columns.": (
        "evaluate halves",
        "evaluate apart --json",
        "evaluate apart/ --json",
    ),
    "{}: holds {} files ({}). Pack one file, or unpack them and pass the folder.": (
        "evaluate two.zip",
        "evaluate a.csv.zip --json",
        EVALUATE,
    ),
    "{}: unknown kind of file. Pass a .csv, .tsv, .txt, .jsonl, .json, .parquet, .xlsx or .npz "
    "file; "
    "text may be packed as .gz, .bz2, .xz or .zip. Save other kinds as .csv.": (
        "evaluate a.xyz",
        EVALUATE,
        "evaluate two.csv --score p --json",
    ),
    "{}: no sample has the label {} of --drop-label (labels: {}). Leave the option out.": (
        "evaluate a.csv --drop-label unclear",
        EVALUATE,
        "evaluate two.csv --score p --json",
    ),
    "{}: {} has no column that begins with {} (columns: {}). Name a column of shares or votes of "
    "each class by what --soft says, and the class.": (
        "evaluate soft.csv --soft votes_",
        "evaluate soft.csv --soft y_ --json",
        "evaluate soft.csv --soft y_ --prefix p_ --json",
    ),
    "{}: without an array 'classes' the columns are taken to be in the order of the sorted labels, "
    "{}. Save an array 'classes' or pass --labels to say which they are.": (
        "evaluate three.npz",
        "evaluate three.npz --labels x,y,z --json",
        "evaluate named.npz --json",
    ),
    "All logits are from 0 to 1, as probabilities are. If they are probabilities, leave --logits "
    "out.": (
        "evaluate b.csv --logits",
        "evaluate b.csv --json",
        "evaluate two.csv --score q --json",
    ),
    "All predictions are 0 or 1, as predicted classes are. Name the column of probabilities by "
    "--score; if these are probabilities, the classifier gives 0 and 1 alone.": (
        "evaluate two.csv --score half",
        "evaluate two.csv --score p --json",
        EVALUATE,
    ),
    "{}: what happened has lower predictions than shuffled labels would have: columns may be "
    "swapped, or the positive label be the other one. Check the names of the columns and "
    "--pos-label.": (
        "evaluate words.csv --label word --pos-label no",
        "evaluate words.csv --label word --pos-label yes --json",
        EVALUATE,
    ),
    "--normalize is for rounded rows alone, sums within {} of 1. Give a column of probabilities "
    "for each class.": (
        "evaluate far.csv --normalize",
        "evaluate thirds.csv --json",
        "evaluate named.npz --json",
    ),
    "{}: --labels names {} classes, column {} has {} entries. Name the class of each entry.": (
        "evaluate lists.csv --labels a,b,c",
        "evaluate lists.csv --labels a,b --json",
        "evaluate sorted.csv --json",
    ),
    "{}: {} {} among the labels, but no column holds probabilities of that name, and the rows of "
    "{} do not sum to 1. Give a column of probabilities for each class, or one by --score.": (
        "evaluate lack.csv",
        "evaluate thirds.csv --json",
        "evaluate named.npz --json",
    ),
    "{}: of the classes {} there are probabilities or shares, not both. Name a column of shares by "
    "{} and the class, and columns that are no classes by --ignore.": (
        "evaluate mixed.csv --soft y_",
        "evaluate mixed.csv --soft y_ --ignore y_c --json",
        "evaluate soft.csv --soft y_ --json",
    ),
    "Name each once. If a question has several answers, number them in a column of both files, "
    "such as sample, and pass --id question --id sample --groups question.": (
        f"compare runs.csv others.csv --score p --id question {SHORT}",
        f"compare runs.csv others.csv --id question --id sample --groups question {SHORT}",
        0,
    ),
    "Name each prediction once, perhaps by two columns: --id customer --id date.": (
        "monitor s.json runs.csv --id question --score p",
        "monitor s.json runs.csv --id question --id sample --json",
        "monitor t.json a.csv --json",
    ),
    "Pass the name of one, which is made if absent.": (
        "monitor halves a.csv",
        "monitor s.json a.csv --json",
        "monitor t.json id.csv --score p --json",
    ),
    "by numpy.savez(file, {}).": (
        "evaluate other.npz",
        "evaluate named.npz --json",
        "evaluate thirds.csv --json",
    ),
    "{}: do not add it again when it has more labels, or its rows count twice. With --id only new "
    "rows would be added.": (
        "monitor s.json later.csv --skip-unlabelled",
        "monitor s.json named.csv --skip-unlabelled --id id --score p --quiet ; "
        "monitor s.json id.csv --id id --score p --quiet ; monitor s.json --format prometheus",
        0,
    ),
    "{}: {} of {} rows have predictions and label of rows that were added before, far more than "
    "chance would make. Pass new rows only, or begin another state file whose rows --id names. "
    "--again adds all rows.": (
        "monitor s.json a.csv --quiet ; monitor s.json again.csv",
        "monitor s.json a.csv --quiet ; monitor s.json next.csv --json",
        "monitor t.json a.csv --quiet ; monitor t.json next.csv --again --json",
    ),
    ", so that a model that always says 0 would pass: choose a share of that rate": (
        "evaluate rare.csv --max-error 0.5",
        "evaluate rare.csv --max-error 0.01 --json",
        "evaluate rare.csv --max-error 0.010 --json",
    ),
    "Give one class for each sample, or name one label's columns by --score and --label.": (
        "evaluate several.csv --soft y_",
        "evaluate several.csv --score p_b --label y_a --json",
        "evaluate turned.csv --json",
    ),
    "Name the positive one by --pos-label.": (
        "evaluate single.csv --soft y_",
        "evaluate single.csv --soft y_ --pos-label b --json",
        "evaluate soft.csv --soft y_ --json",
    ),
}
