"""Every form of file that people bring is read, and its numbers are the right ones."""

import bz2
import gzip
import json
import lzma
import shlex
import zipfile

import numpy as np
import pytest
from read_files import read_predictions

from skcal.cli import predictions
from skcal.cli.commands import main
from skcal.cli.parser import parse
from skcal.cli.problems import FileError, Problems, read_or_list_problems

N = 60
RNG = np.random.default_rng(7)
Z = RNG.normal(-0.4, 1.3, N)
Y = (RNG.random(N) < 1 / (1 + np.exp(-Z))).astype(int)
P = np.round(1 / (1 + np.exp(-1.6 * Z)), 4)
Q = np.round(1 - P, 4)
GUESS = (P > 0.5).astype(int)
SURE = np.maximum(P, Q)
THREE = np.round(RNG.dirichlet([4, 2, 3], N), 3)
THREE[:, 2] = np.round(1 - THREE[:, 0] - THREE[:, 1], 3)
CLASS = np.array([RNG.choice(3, p=row / row.sum()) for row in THREE])


def write(path, header, rows, sep=","):
    lines = [header, *(sep.join(map(str, row)) for row in rows)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def read(path, *arguments):
    options = parse(["evaluate", str(path), *arguments])
    return read_or_list_problems(options, predictions.read_predictions)


def offers(path, *arguments, start="With these options the file can be read: "):
    """The commands that an error shows, as arguments, and its text."""
    with pytest.raises(Problems) as caught:
        read(path, *arguments)
    shown = [line for line in caught.value.lines if "python -m skcal" in line]
    assert all(line.startswith((start, "Read it so: ", "Or: ")) for line in shown)
    commands = [shlex.split(line.split("python -m skcal ")[1])[2:] for line in shown]
    return commands, " ".join(caught.value.lines)


def assert_event(found, p=P, y=Y):
    """The predictions are of the event, or of the other one of two classes."""
    of_event = found.proba if found.proba.ndim == 1 else found.proba[:, 1]
    happened = (found.labels == found.classes[1]).astype(int)
    if happened.mean() != y.mean():
        of_event, happened = 1 - of_event, 1 - happened
    np.testing.assert_allclose(of_event, p, atol=1e-9)
    np.testing.assert_array_equal(happened, y)
    said = f"The event is label {found.classes[1]} ({(found.labels == found.classes[1]).sum()} of"
    assert said in found.read.read_as
    if found.proba.ndim == 2 and len(found.names):
        assert f"(column {found.names[1]})" in found.read.read_as


@pytest.mark.parametrize("pos_label", [None, "0", "1"])
@pytest.mark.parametrize("header", ["0,1,label", "1,0,label"])
def test_of_columns_0_and_1_the_event_is_1_in_any_order(header, pos_label, tmp_path):
    of_columns = (P, 1 - P) if header[0] == "1" else (1 - P, P)
    path = write(tmp_path / "a.csv", header, zip(*of_columns, Y, strict=True))
    found = read(path, *([] if pos_label is None else ["--pos-label", pos_label]))
    assert str(found.classes[1]) == (pos_label or "1") == found.names[1]
    assert_event(found)


def assert_three(found, names):
    order = [found.classes.tolist().index(name) for name in names]
    np.testing.assert_allclose(found.proba[:, order], THREE, atol=1e-9)
    np.testing.assert_array_equal(found.labels, np.array(names)[CLASS])


NO_YES = np.array(["no", "yes"])
TWO = {
    "H2O": ('"predict","p0","p1","actual"', (GUESS, Q, P, Y), ["--label", "actual"]),
    "SAS": (
        "EM_PROBABILITY,EM_CLASSIFICATION,P_TARGET1,P_TARGET0,I_TARGET,TARGET",
        (SURE, GUESS, P, Q, GUESS, Y),
        ["--label", "TARGET"],
    ),
    "caret": (
        "pred,obs,no,yes,rowIndex",
        (NO_YES[GUESS], NO_YES[Y], Q, P, range(N)),
        ["--label", "obs"],
    ),
    "caret, prefix": ("probs.no,probs.yes,obs", (Q, P, NO_YES[Y]), ["--label", "obs"]),
    "tidymodels": (
        ".pred_class,.row,.pred_no,.pred_yes,truth",
        (NO_YES[GUESS], range(N), Q, P, NO_YES[Y]),
        ["--label", "truth"],
    ),
    "suffix": ("no_p,yes_p,label", (Q, P, NO_YES[Y]), []),
    "2.0 beside 2": ("1,2,label", (Q, P, Y + 1.0), []),
    "1 beside 1.0": ("0.0,1.0,label", (Q, P, Y), []),
    "other numbers": ("id,age,no,yes,label", (range(N), range(N), Q, P, NO_YES[Y]), []),
    "single, of a class": ("p_yes,label", (P, NO_YES[Y]), []),
    "single, of the other class": ("p_no,label", (Q, NO_YES[Y]), []),
    "R row names": ('"p" "label"', ([f'"{k}"' for k in range(N)], P, Y), ["--sep", " "]),
    "Weka": (
        "=== Predictions on test data ===\n\ninst#,actual,predicted,error,prediction",
        (range(N), NO_YES[Y], NO_YES[GUESS], np.where(Y == GUESS, "", "+"), SURE),
        ["--label", "actual", "--score", "prediction", "--predicted", "predicted"],
    ),
    "pipeline": (
        "label,score,gold",
        (NO_YES[GUESS], SURE, NO_YES[Y]),
        ["--label", "gold", "--predicted", "label"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", TWO)
def test_exports_of_two_classes_are_read(name, tmp_path):
    header, columns, options = TWO[name]
    sep = " " if "R row" in name else ","
    found = read(write(tmp_path / "a.csv", header, zip(*columns, strict=True), sep), *options)
    assert_event(found)


@pytest.mark.parametrize(
    "form", ["prob_{}", "{}.prob", ".pred_{}", '"Scored Probabilities for Class ""{}"""', "{}"]
)
@pytest.mark.parametrize("names", [("H", "D", "A"), ("0", "1", "2"), ("1", "10", "11")])
def test_words_before_and_behind_classes_are_found_and_said(form, names, tmp_path):
    header = ",".join([*(form.format(name) for name in names), "outcome", "id"])
    rows = ([*row, names[k], i] for i, (row, k) in enumerate(zip(THREE, CLASS, strict=True)))
    path = write(tmp_path / "a.csv", header, rows)
    found = read(path, "--label", "outcome")
    assert_three(found, names)
    notes = " ".join(found.notes)
    assert ("are the probabilities of" in notes) == (form != "{}")
    assert "not read: id" in notes
    if not form.startswith('"'):
        prefix = form.replace("{}", "*") if not form.endswith("{}") else form.removesuffix("{}")
        assert_three(read(path, "--label", "outcome", "--prefix", prefix), names)


def test_words_before_more_than_a_thousand_classes_are_found(tmp_path):
    names, proba = [str(k) for k in range(1100)], np.zeros((3, 1100))
    proba[range(3), [5, 5, 1050]], proba[:, 7] = 0.75, 0.25
    header = ",".join(["label", *(f"p{name}" for name in names)])
    rows = ([label, *row] for label, row in zip("517", proba, strict=True))
    path = write(tmp_path / "a.csv", header, rows)
    found = read(path, "--labels", ",".join(names))
    assert found.names == [f"p{name}" for name in names]
    np.testing.assert_array_equal(found.proba, proba)


def test_two_predictions_of_named_classes_are_not_told_apart(tmp_path):
    columns = zip(GUESS, Q, P, 1 - P**2, P**2, Y, strict=True)
    path = write(tmp_path / "a.csv", "predict,p0,p1,cal_p0,cal_p1,label", columns)
    commands, told = offers(path)
    assert "--prefix" in told
    assert [command[-1] for command in commands] == ["p", "cal_p"]
    assert_event(read(path, *commands[0]))
    assert_event(read(path, *commands[1]), P**2)


VECTORS = {
    "Spark": '"[{},{}]"',
    "numpy": "[{} {}]",
    "numpy, call": '"array([{}, {}], dtype=float32)"',
    "tuple": '"({}, {})"',
    "Spark, dense": '"DenseVector([{}, {}])"',
    "Spark, struct": '"{{""type"":1,""values"":[{},{}]}}"',
    "Spark, sparse": '"(2,[0,1],[{},{}])"',
    "log-likelihoods": '"[[""{}"",""False""],[""{}"",""True""]]"',
}


@pytest.mark.parametrize("form", VECTORS)
@pytest.mark.parametrize("score", [False, True])
def test_vectors_in_cells_are_read(form, score, tmp_path):
    cells = [VECTORS[form].format(q, p) for q, p in zip(Q, P, strict=True)]
    rows = zip(cells, GUESS.astype(float), Y.astype(float), strict=True)
    path = write(tmp_path / "a.csv", "probability,prediction,label", rows)
    assert_event(read(path, *["--score", "probability"] * score))


@pytest.mark.parametrize("kind", ["lists", "dicts", "pairs", "texts of dicts"])
def test_vectors_of_json_take_the_order_of_labels(kind, tmp_path):
    def cell(q, p):
        pairs = [{"label": "yes", "score": p}, {"label": "no", "score": q}]
        named = {"yes": p, "no": q}
        return {"lists": [q, p], "dicts": named, "pairs": pairs, "texts of dicts": str(named)}[kind]

    lines = [
        json.dumps({"probs": cell(q, p), "label": str(NO_YES[y])})
        for q, p, y in zip(Q.tolist(), P.tolist(), Y, strict=True)
    ]
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join(lines))
    if kind == "lists":
        commands, _ = offers(path)
        right = [c for c in commands if c[-1] == "no,yes"]
        assert len(commands) == 2
        assert_event(read(path, *right[0]))
        wrong = read(path, "--labels", "yes,no")
        np.testing.assert_allclose(wrong.proba[:, 0], P)
        assert wrong.classes.tolist() == ["no", "yes"]
    else:
        assert_event(read(path))


def test_lists_in_parquet_are_read(tmp_path):
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    lists = [list(pair) for pair in zip(Q, P, strict=True)]
    pd.DataFrame({"probability": lists, "label": Y}).to_parquet(tmp_path / "a.parquet")
    assert_event(read(tmp_path / "a.parquet"))


@pytest.mark.parametrize("n_classes", [10, 11, 12])
def test_digits_as_texts_have_two_orders_from_eleven_classes_on(n_classes, tmp_path):
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.full(n_classes, 0.5), 90)
    y = np.r_[np.arange(n_classes), rng.integers(n_classes, size=90 - n_classes)]
    lists = [
        json.dumps({"p": row.tolist(), "label": str(k)}) for row, k in zip(proba, y, strict=True)
    ]
    (tmp_path / "a.jsonl").write_text("\n".join(lists))
    np.savez(tmp_path / "a.npz", proba=proba, labels=y.astype(str))
    for name in ("a.jsonl", "a.npz"):
        if n_classes <= 10:
            if name == "a.jsonl":
                found = read(tmp_path / name)
            else:
                with pytest.warns(UserWarning, match="without an array 'classes'"):
                    found = read(tmp_path / name)
            orders = [found]
        else:
            commands, told = offers(tmp_path / name)
            assert "in the order of numbers" in told
            orders = [read(tmp_path / name, *command) for command in commands]
            by_text = sorted(map(str, range(n_classes)))
            assert orders[1].classes.astype(str).tolist() == by_text
        assert orders[0].classes.astype(str).tolist() == [str(k) for k in range(n_classes)]
        np.testing.assert_allclose(orders[0].proba, proba)


# What a single column may be


@pytest.mark.parametrize("names", [("1", "2"), ("-1", "1"), ("0", "2"), ("a", "b"), ("1.0", "2.0")])
def test_two_labels_are_named_with_their_numbers_and_none_is_taken(names, tmp_path):
    rows = zip(P, np.array(names)[Y], strict=True)
    path = write(tmp_path / "a.csv", "p,label", rows)
    commands, told = offers(path)
    assert "--drop-label" not in told
    plain = [name.removesuffix(".0") for name in names]
    for name, n in zip(plain, (N - Y.sum(), Y.sum()), strict=True):
        assert f"--pos-label {name}: {n} events of {N}" in told
    assert sorted(command[-1] for command in commands) == sorted(plain)
    assert_event(read(path, "--pos-label", names[1]))


@pytest.mark.parametrize("name", ["p_no_show", "no_of_visits", "yes_no", "prob_nothing"])
def test_a_name_that_holds_more_than_a_class_names_none(name, tmp_path):
    path = write(tmp_path / "a.csv", f"{name},label", zip(P, NO_YES[Y], strict=True))
    [command], _ = offers(path)
    assert_event(read(path, *command))


@pytest.mark.parametrize("names", [("no", "yes"), ("False", "True"), ("Negative", "Positive")])
def test_clear_words_for_an_event_are_offered(names, tmp_path):
    path = write(tmp_path / "a.csv", "p,label", zip(P, np.array(names)[Y], strict=True))
    [command], _ = offers(path)
    assert_event(read(path, *command))


def test_the_class_that_is_predicted_tells_the_event(tmp_path):
    names = np.array([">50K", "<=50K"])
    columns = range(N), names[Y], names[GUESS], P
    path = write(
        tmp_path / "a.csv",
        "age,income,Scored Labels,Scored Probabilities",
        zip(*columns, strict=True),
    )
    [command], told = offers(path, "--label", "income")
    assert "wherever the score is above 0.5" in told
    assert_event(read(path, *command))


@pytest.mark.filterwarnings("ignore:Column .* has no prediction below")  # of the other reading
@pytest.mark.parametrize("given", [[], ["--score", "score"]])
@pytest.mark.parametrize("names", [("NEG", "POS"), ("0", "1")])
def test_confidences_beside_a_predicted_class_are_two_readings(given, names, tmp_path):
    names = np.array(names)
    path = write(
        tmp_path / "a.csv", "guess,score,gold", zip(names[GUESS], SURE, names[Y], strict=True)
    )
    commands, told = offers(path, "--label", "gold", *given)
    assert "--predicted" in told
    as_class = [command for command in commands if "--predicted" in command]
    assert_event(read(path, *as_class[0]))
    assert any("--ignore" in command for command in commands)


def test_confidences_in_more_classes_are_answers(tmp_path):
    names, sure = np.array(["a", "b", "c"]), THREE.max(axis=1)
    guess = names[THREE.argmax(axis=1)]
    path = write(
        tmp_path / "a.csv", "guess,score,gold", zip(guess, sure, names[CLASS], strict=True)
    )
    found = read(path, "--label", "gold", "--predicted", "guess", "--score", "score")
    assert found.of_answers
    np.testing.assert_array_equal(found.labels, guess == names[CLASS])
    np.testing.assert_allclose(found.proba, sure)


def test_predictions_above_one_half_draw_a_hint(tmp_path):
    path = write(tmp_path / "a.csv", "p,label", zip(SURE, Y, strict=True))
    with pytest.warns(UserWarning, match="pass it by --predicted"):
        read(path)
    path = write(tmp_path / "a.csv", "p,label", zip(P, Y, strict=True))
    assert not read(path).notes


@pytest.mark.filterwarnings("ignore:Column .* has no prediction below")  # of the other reading
@pytest.mark.parametrize("explicit", [False, True])
def test_a_label_beside_another_truth_is_no_choice_of_ours(explicit, tmp_path):
    path = write(
        tmp_path / "a.csv", "label,score,gold", zip(NO_YES[GUESS], SURE, NO_YES[Y], strict=True)
    )
    commands, told = offers(path, *["--label", "gold"] * explicit)
    assert "--predicted" in told
    assert_event(read(path, *next(c for c in commands if c[-2:] == ["--predicted", "label"])))


@pytest.mark.filterwarnings("ignore:No logit in")
def test_log_probabilities_are_no_log_odds(tmp_path, capsys):
    p = np.clip(P, 0.01, 0.99)
    path = write(tmp_path / "a.csv", "logprob,label", zip(np.log(p), Y, strict=True))
    commands, told = offers(path)
    assert [command[-1] for command in commands] == ["--log-probabilities", "--logits"]
    assert f"the mean prediction is then {p.mean():.3g}" in told
    assert_event(read(path, *commands[0]), p)
    assert main(["test", str(path), "--logits", "--resamples", "19"]) == 0
    assert "pass --log-probabilities" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("sep", "texts", "options"),
    [
        (",", [f'"{1e4 * p:,.0f}"' for p in P], "--scale 10000"),
        (",", [f'"{1e4 * p:,.1f}"' for p in P], "--scale 10000"),
        (";", [f"{1e4 * p:,.0f}".replace(",", ".") for p in P], "--scale 10000 --decimal ,"),
        (";", [f"{1e4 * p:,.0f}".replace(",", " ") for p in P], "--scale 10000"),
        (";", [f"{1e4 * p:,.0f}".replace(",", "'") for p in P], "--scale 10000"),
    ],
)  # fmt: skip
def test_separators_of_thousands_are_refused_without_an_offer(sep, texts, options, tmp_path):
    path = write(tmp_path / "a.csv", f"score{sep}label", zip(texts, Y, strict=True), sep)
    commands, told = offers(path, *options.split(), *["--sep", ";"] * (sep == ";"))
    assert not commands
    row = next(k for k, text in enumerate(texts) if len(text.strip('"')) > 4)
    assert f"line {row + 2}" in told


def test_decimal_commas_that_are_no_thousands_are_offered(tmp_path):
    texts = [f"{p}".replace(".", ",") for p in P.round(3)]
    path = write(tmp_path / "a.csv", "p;label", zip(texts, Y, strict=True), ";")
    [command], _ = offers(path, "--sep", ";")
    assert_event(read(path, *command), P.round(3))


# Several scores, several roles


def test_scores_are_named_and_none_is_taken(tmp_path):
    path = write(
        tmp_path / "a.csv",
        "date,A,B,C,obs",
        (
            (f"2016-07-{k % 30 + 1:02}", p, q, p, y)
            for k, (p, q, y) in enumerate(zip(P, Q, Y, strict=True))
        ),
    )
    commands, told = offers(path, "--label", "obs")
    assert [command[-1] for command in commands] == ["A", "B", "C"]
    assert "Columns of probabilities may be A, B, C." in told
    assert_event(read(path, *commands[0]))


@pytest.mark.parametrize("n_columns", [13, 40, 300])
def test_the_list_of_columns_is_whole(n_columns, tmp_path):
    names = [f"M{k}" for k in range(n_columns)]
    rows = ([*[p] * n_columns, y] for p, y in zip(P, Y, strict=True))
    path = write(tmp_path / "a.csv", ",".join([*names, "rlz.C1"]), rows)
    with pytest.raises(FileError) as caught:
        read_predictions(path)
    assert all(f"{name}," in str(caught.value) for name in names[:-1])
    assert "(columns: rlz.C1, M0" in str(caught.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--score", "p", "--score", "q"], "--score is given twice"),
        (["--label", "p", "--label", "y"], "--label is given twice"),
        (["--pos-label", "1", "--pos-label", "0"], "--pos-label is given twice"),
        (["--score", "y", "--label", "y"], "--score and --label name the same column, y"),
        (["--score", "label"], "--score and --label name the same column, label"),
        (["--score", "p", "--weight", "p"], "--score and --weight name the same column, p"),
        (["--score", "p", "--predicted", "p"], "--score and --predicted name the same column"),
        (["--confidence", "c", "--correct", "c"], "--confidence and --correct name the same"),
        (["--logits", "--log-probabilities"], "exclude each other"),
    ],
)
def test_options_that_contradict_each_other_are_refused(options, message, capsys):
    with pytest.raises(SystemExit):
        main(["evaluate", "a.csv", *options])
    assert message in capsys.readouterr().err


def test_two_columns_of_a_file_are_compared(tmp_path, run):
    path = write(tmp_path / "a.csv", "A,B,obs", zip(P, np.sqrt(P), Y, strict=True))
    one = write(tmp_path / "one.csv", "p,obs", zip(P, Y, strict=True))
    two = write(tmp_path / "two.csv", "p,obs", zip(np.sqrt(P), Y, strict=True))
    more = ["--label", "obs", "--json", "--resamples", "19"]
    found = json.loads(run("compare", path, "--score", "A", "--score", "B", *more))
    expected = json.loads(run("compare", one, two, *more))
    assert found["comparison"]["second"]["scores"] == expected["comparison"]["second"]["scores"]
    assert found["overall"]["scores"] == expected["overall"]["scores"]
    text = run("compare", path, "--score", "A", "--score", "B", *more[:2], *more[3:])
    assert "Comparison of calibration: A and B" in text


def test_outcomes_in_a_column_for_each_class_are_offered_as_shares(tmp_path):
    rows = ([*row, *np.eye(3, dtype=int)[k]] for row, k in zip(THREE, CLASS, strict=True))
    path = write(tmp_path / "a.csv", "p_A,p_B,p_C,y_A,y_B,y_C", rows)
    [command], _ = offers(path)
    assert command == ["--soft", "y_"]
    found = read(path, *command)
    np.testing.assert_array_equal(found.labels.argmax(axis=1), CLASS)
    np.testing.assert_allclose(found.proba, THREE)


def test_a_class_without_a_column_is_named(tmp_path):
    rows = ([*row[:2], "ABC"[k]] for row, k in zip(THREE, CLASS, strict=True))
    path = write(tmp_path / "a.csv", "A,B,label", rows)
    commands, told = offers(path)
    assert not commands
    assert f"'C' ({(CLASS == 2).sum()} samples) is among the labels" in told


@pytest.mark.parametrize("share", [0.02, 0.3])
def test_a_class_is_never_offered_to_be_left_out(share, tmp_path):
    labels = Y.astype(str).astype(object)
    labels[: int(share * N) + 1] = "unknown"
    path = write(tmp_path / "a.csv", "p,label", zip(P, labels, strict=True))
    commands, told = offers(path)
    assert "--drop-label 'unknown'" in told
    assert bool(commands) == (share < 0.1)
    labels[labels == "unknown"] = "2"
    commands, _ = offers(write(path, "p,label", zip(P, labels, strict=True)))
    assert not commands


# Language models


def test_padded_options_have_probability_0(tmp_path):
    rng = np.random.default_rng(0)
    rows = [rng.dirichlet(np.ones(3 + k % 3)) for k in range(N)]
    gold = [int(rng.integers(len(row))) for row in rows]
    full = np.array([np.r_[row, np.zeros(5 - len(row))] for row in rows])
    texts = [[*map(repr, row.tolist()), *[""] * (5 - len(row))] for row in rows]
    logs = [[*(repr(float(np.log(p))) for p in row), *["-inf"] * (5 - len(row))] for row in rows]
    lists = [
        json.dumps({"p": np.log(r).tolist(), "gold": g}) for r, g in zip(rows, gold, strict=True)
    ]
    letters = np.array(list("ABCDE"))
    named = [[*row, letters[g]] for row, g in zip(texts, gold, strict=True)]
    found = read(write(tmp_path / "a.csv", "A,B,C,D,E,label", named))
    np.testing.assert_allclose(found.proba, full)
    assert "40 rows lack some classes" in " ".join(found.notes)
    named = [[*row, letters[g]] for row, g in zip(logs, gold, strict=True)]
    found = read(write(tmp_path / "b.csv", "A,B,C,D,E,label", named), "--logits")
    np.testing.assert_allclose(found.proba, full, atol=1e-12)
    (tmp_path / "c.jsonl").write_text("\n".join(lists))
    found = read(tmp_path / "c.jsonl", "--label", "gold", "--score", "p", "--logits")
    np.testing.assert_allclose(found.proba, full, atol=1e-12)
    np.testing.assert_array_equal(found.labels.astype(int), gold)


def test_a_missing_number_is_no_absent_option(tmp_path):
    text = "A,B,C,label\n0.5,0.3,0.2,A\n0.5,,0.2,A\n"
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(FileError, match="line 3, column 'B' is empty"):
        read_predictions(tmp_path / "a.csv")


@pytest.mark.parametrize("name", ["a.jsonl", "a.json"])
def test_calls_that_failed_are_left_out_and_counted(name, tmp_path):
    rows = [
        {"id": 0, "error": "limit"},
        *({"id": 1, "p": float(p), "label": int(y)} for p, y in zip(P, Y, strict=True)),
    ]
    text = json.dumps(rows) if name.endswith("json") else "\n".join(map(json.dumps, rows))
    (tmp_path / name).write_text(text)
    found = read(tmp_path / name, "--score", "p", "--drop-missing")
    assert_event(found)
    assert "1 of 61 samples" in str(found.left_out)


@pytest.mark.parametrize(
    "words",
    [
        "0 1",
        "wrong right",
        "incorrect correct",
        "INCORRECT CORRECT",
        "fail pass",
        "I C",
        "F T",
        "no yes",
    ],
)
def test_words_of_judges_are_right_and_wrong(words, tmp_path):
    rows = zip(P, np.array(words.split())[Y], strict=True)
    path = write(tmp_path / "a.csv", "sure,grade", rows)
    found = read(path, "--confidence", "sure", "--correct", "grade")
    np.testing.assert_array_equal(found.labels, Y)


# Kinds of files


def plain_text():
    return "p,label\n" + "".join(f"{p},{y}\n" for p, y in zip(P, Y, strict=True))


@pytest.mark.parametrize("ending", ["", ".gz", ".bz2", ".xz", ".zip"])
@pytest.mark.parametrize("kind", ["csv", "txt", "jsonl"])
def test_packed_text_is_read(kind, ending, tmp_path):
    text = plain_text()
    if kind == "jsonl":
        text = "".join(f'{{"p": {p}, "label": {y}}}\n' for p, y in zip(P, Y, strict=True))
    path, content = tmp_path / f"a.{kind}{ending}", text.encode()
    pack = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}
    if ending == ".zip":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr(f"folder/a.{kind}", content)
    else:
        path.write_bytes(pack.get(ending, bytes)(content))
    assert_event(read(path))
    if ending:
        path.write_bytes(path.read_bytes()[:-9])
        with pytest.raises(FileError, match=r"cannot be read \(.+\)\. Save it again"):
            read_predictions(path)


@pytest.mark.parametrize("ending", [".gz", ".bz2", ".xz", ".zip"])
def test_packed_text_is_held_to_what_it_expands_to(ending, tmp_path):
    content, path = b"p,label\n" + b"0.5,1\n" * 200_000, tmp_path / f"a.csv{ending}"
    pack = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}
    if ending == ".zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("a.csv", content)
    else:
        path.write_bytes(pack[ending](content))
    with pytest.raises(FileError, match="--max-size"):
        read_predictions(path, max_bytes=100_000)


@pytest.mark.parametrize("orient", ["records", "columns", "split", "lines", "nested"])
def test_json_is_read_as_pandas_writes_it(orient, tmp_path):
    pd = pytest.importorskip("pandas")
    frame, path = pd.DataFrame({"p": P, "label": Y}), tmp_path / "a.json"
    if orient == "nested":
        path.write_text(json.dumps({"eval": {"x": 1}, "samples": frame.to_dict("records")}))
    elif orient == "lines":
        frame.to_json(path, orient="records", lines=True)
    else:
        frame.to_json(path, orient=orient)
    assert_event(read(path))


def test_excel_is_read(tmp_path):
    pytest.importorskip("openpyxl")
    pd = pytest.importorskip("pandas")
    pd.DataFrame({"p": P, "label": Y}).to_excel(tmp_path / "a.xlsx", index=False)
    assert_event(read(tmp_path / "a.xlsx"))


def test_the_tables_of_a_folder_are_one(tmp_path):
    rows = [*zip(P, Y, strict=True)]
    write(tmp_path / "1.csv", "p,label", rows[:20])
    write(tmp_path / "2.csv", "label,p", [(y, p) for p, y in rows[20:]])
    (tmp_path / "readme.md").write_text("no table")
    found = read(tmp_path)
    assert_event(found)
    assert "2 files" in " ".join(found.notes)
    write(tmp_path / "3.csv", "label,q", rows)
    with pytest.raises(FileError, match="have different columns; not in both: p, q"):
        read_predictions(tmp_path)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_archives_of_any_precision_and_names_are_read(dtype, tmp_path):
    np.savez(tmp_path / "a.npz", probs=P.astype(dtype), y_true=Y)
    found = read(tmp_path / "a.npz", "--score", "probs", "--label", "y_true")
    np.testing.assert_allclose(found.proba, P, atol=1e-3)
    np.savez(tmp_path / "b.npz", proba=THREE.astype(dtype), labels=CLASS)
    np.testing.assert_allclose(read(tmp_path / "b.npz").proba, THREE, atol=1e-3)


@pytest.mark.parametrize("over", ["1.0000001", "1.0000004", "1.001", "1.004"])
def test_rounding_above_1_is_read_or_offered_to_be(over, tmp_path):
    texts = [over, *map(str, P[1:])]
    path = write(tmp_path / "a.csv", "p,label", zip(texts, Y, strict=True))
    expected = np.r_[1.0, P[1:]]
    if float(over) < 1.000001:
        assert_event(read(path), expected)
        return
    with pytest.raises(FileError) as caught:
        read_predictions(path)
    text = "If that is rounding, pass --normalize. 1 of 60 numbers are then set to 0 or 1."
    assert str(caught.value).endswith(text)
    with pytest.warns(
        UserWarning, match=r"1 number outside \[0, 1\] is set to 0 or 1, as --normal"
    ):
        found = read(path, "--normalize")
    assert_event(found, expected)


def test_rows_of_several_models_are_not_taken_for_one(tmp_path):
    columns = np.repeat(P, 2), np.repeat(Y, 2), ["A", "B"] * N
    path = write(tmp_path / "a.csv", "p,label,model", zip(*columns, strict=True))
    for options in ([], ["--score", "p"]):
        commands, told = offers(path, *options)
        assert [command[-1] for command in commands] == ["model=A", "model=B"]
        for command in commands:
            assert_event(read(path, *command))
        assert "names 2 models: A, B. The command report shows each by --by 'model'" in told
    assert len(read(path, "--score", "p", "--by", "model", "--max-error", "0.1").proba) == 2 * N
    assert len(read(path, "--score", "p", "--ignore", "model").proba) == 2 * N


@pytest.mark.parametrize("names", [("no", "yes"), ("0", "x")])
def test_a_label_in_two_spellings_is_named(names, tmp_path):
    labels = [names[y].upper() if k % 2 else names[y] for k, y in enumerate(Y)]
    path = write(tmp_path / "a.csv", "p,label", zip(P, labels, strict=True))
    commands, told = offers(path)
    assert not commands
    assert "written in two ways" in told


def test_columns_of_other_names_that_sum_to_1_are_to_be_renamed(tmp_path):
    rows = ([*row, ["H", "D", "A"][k]] for row, k in zip(THREE, CLASS, strict=True))
    text = write(tmp_path / "a.csv", "home,draw,away,label", rows).read_text()
    commands, told = offers(tmp_path / "a.csv")
    assert not commands
    assert "The rows of home, draw, away sum to 1. Give each the name of its label, " in told
    (tmp_path / "a.csv").write_text(text.replace("home,draw,away", "H,D,A"))
    assert_three(read(tmp_path / "a.csv"), ["H", "D", "A"])


def test_arrays_of_other_names_are_named_by_options(tmp_path):
    np.savez(tmp_path / "a.npz", y_prob=P, y_true=Y)
    with pytest.raises(FileError, match="Name the array of predictions by --score and that of la"):
        read_predictions(tmp_path / "a.npz")
    assert_event(read(tmp_path / "a.npz", "--score", "y_prob", "--label", "y_true"))


def test_a_class_without_a_label_that_is_nearly_always_impossible_keeps_its_column(tmp_path):
    third = np.where(np.arange(N) % 5 == 0, 0.1, 0.0)
    columns = (1 - third) * (1 - P), (1 - third) * P, third
    names = np.array(["no", "yes"])[Y]
    path = write(tmp_path / "a.csv", "no,yes,other,label", zip(*columns, names, strict=True))
    found = read(path)
    assert found.classes.tolist() == ["no", "yes", "other"]
    np.testing.assert_allclose(found.proba[:, 2], third)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_labels_one_above_the_columns_are_not_left_out(n_classes, tmp_path):
    proba = THREE if n_classes == 3 else np.column_stack([1 - P, P])
    labels = (CLASS if n_classes == 3 else Y) + 1
    header = ",".join([*map(str, range(n_classes)), "label"])
    rows = ([*row, label] for row, label in zip(proba, labels, strict=True))
    commands, told = offers(write(tmp_path / "a.csv", header, rows))
    assert not commands
    assert "one above the names of the columns" in told
    assert "--drop-label" not in told


def test_no_class_of_two_is_left_out(tmp_path):
    rows = ((a, b, "xy"[k]) for a, b, k in zip(1 - P, P, Y, strict=True))
    commands, told = offers(write(tmp_path / "a.csv", "w,x,label", rows))
    assert not commands
    assert "--drop-label" not in told


@pytest.mark.parametrize("changes", [False, True])
@pytest.mark.parametrize("kind", ["jsonl", "csv"])
def test_lists_of_labels_beside_their_probabilities_name_the_entries(kind, changes, tmp_path):
    names, lines = np.array(["bill", "other", "tech"]), []
    for k, (row, y) in enumerate(zip(THREE, CLASS, strict=True)):
        order = np.roll([2, 0, 1], k % 3 * changes)
        lines.append([names[order].tolist(), row[order].tolist(), str(names[y])])
    if kind == "jsonl":
        keys = "labels", "scores", "gold"
        text = "\n".join(json.dumps(dict(zip(keys, line, strict=True))) for line in lines)
    else:
        text = "labels;scores;gold\n" + "\n".join(";".join(map(str, line)) for line in lines)
    path = tmp_path / f"a.{kind}"
    path.write_text(text)
    given = ["--label", "gold", *(["--sep", ";"] if kind == "csv" else [])]
    assert_three(read(path, *given), names.tolist())


@pytest.mark.parametrize("threshold", ["0.3", "0", "1"])
def test_a_column_of_one_number_says_no_label(threshold, tmp_path):
    names = np.array(["False", "True"])
    path = write(
        tmp_path / "a.csv",
        "readmitted,readmitted_True_P,readmitted_False_P,readmitted_P,THRESHOLD",
        zip(names[Y], P, Q, names[(P > 0.3).astype(int)], [threshold] * N, strict=True),
    )
    (command,), told = offers(path)
    assert "'readmitted_P' (" in told
    assert told.count("as the scores say in each row") == 1
    assert command[-2:] == ["--label", "readmitted"]
    assert_event(read(path, *command))


# What nothing in a file decides is asked, and what was decided is said


@pytest.mark.filterwarnings("ignore:Column .* has no prediction below")  # of the other reading
@pytest.mark.parametrize("threshold", [0.3, 0.46, 0.5])
@pytest.mark.parametrize("names", [("no", "yes"), ("0", "1")])
def test_a_predicted_class_of_any_threshold_is_two_readings(names, threshold, tmp_path):
    guess, names = (threshold <= P).astype(int), np.array(names)
    sure = np.where(guess == 1, P, Q)
    assert (threshold < 0.5) == (sure < 0.5).any()
    path = write(
        tmp_path / "a.csv",
        "actual,predicted_class,probability",
        zip(names[Y], names[guess], sure, strict=True),
    )
    commands, told = offers(path, "--label", "actual")
    assert f"at least 0.5 in {(sure >= 0.5).sum()} of {N} rows" in told
    as_class, as_event = commands
    assert as_class[-2:] == ["--predicted", "predicted_class"]
    assert "--ignore" in as_event
    assert_event(read(path, *as_class))


@pytest.mark.parametrize("names", [("no", "yes"), ("0", "1")])
def test_a_few_rows_that_contradict_a_predicted_class_do_not_decide(names, tmp_path):
    names, sure = np.array(names), SURE.copy()
    sure[:2] = 0.46
    columns = zip(names[Y], names[GUESS], sure, strict=True)
    path = write(tmp_path / "a.csv", "actual,predicted_class,probability", columns)
    commands, _ = offers(path, "--label", "actual", "--score", "probability")
    assert len(commands) == 2
    np.testing.assert_allclose(
        read(path, *commands[0]).proba[:, 1], np.where(GUESS == 1, sure, 1 - sure)
    )


@pytest.mark.parametrize("names", [("no", "yes"), ("0", "1")])
def test_a_feature_of_the_same_texts_is_no_predicted_class(names, tmp_path):
    names, smokes = np.array(names), np.arange(N) % 3 == 0
    columns = zip(names[Y], names[smokes.astype(int)], P, strict=True)
    path = write(tmp_path / "a.csv", "died,smokes,p", columns)
    given = ["--label", "died", "--score", "p", "--pos-label", names[1]]
    assert_event(read(path, *given))


@pytest.mark.parametrize("threshold", [0.3, 0.5])
def test_a_prediction_named_label_beside_the_outcome_is_never_all_that_is_offered(
    threshold, tmp_path
):
    columns = zip(Y, (threshold <= P).astype(int), P, strict=True)
    path = write(tmp_path / "a.csv", "y_true,label,prob_1", columns)
    commands, _ = offers(path)
    assert commands[0] == ["--label", "y_true", "--score", "prob_1"]
    assert len(commands) == 2
    found = read(path, *commands[0])
    assert_event(found)
    assert "Other columns are not read: label." in found.read.read_as


def test_two_columns_of_as_many_labels_are_both_named(tmp_path):
    gold, label = np.array(["negative", "positive"])[Y], np.array(["neg", "pos"])[GUESS]
    path = write(tmp_path / "a.csv", "gold,label,neg,pos", zip(gold, label, Q, P, strict=True))
    commands, told = offers(path)
    assert not commands
    assert "'label' and 'gold' hold 2 labels each, and differ" in told
    commands, _ = offers(path, "--label", "gold")
    assert [command[-1] for command in commands] == ["negative,positive", "positive,negative"]
    found = read(path, *commands[0])
    assert_event(found)
    assert "The columns neg, pos are the probabilities of negative, positive." in found.notes
    found = read(path, "--label", "label")
    assert "Column 'label' holds the most probable class in all of 60 rows" in found.read.read_as
    assert "most probable class in all" not in read(path, *commands[0]).read.read_as


def test_two_names_of_one_outcome_are_no_two_facts(tmp_path):
    columns = zip(NO_YES[Y], Y, P, strict=True)
    path = write(tmp_path / "a.csv", "target,label,p", columns)
    assert_event(read(path, "--score", "p"))


def test_outcomes_without_any_event_are_no_predicted_class(tmp_path):
    path = write(tmp_path / "a.csv", "p,label", ((p / 3, 0) for p in P))
    assert not any("most probable" in note for note in read(path).notes)


@pytest.mark.parametrize("options", [[], ["--drop-missing"], ["--drop-missing", "--normalize"]])
def test_lists_of_the_most_probable_labels_are_cut(options, tmp_path):
    lines = [
        json.dumps(
            {
                "label": "ABC"[k],
                "p": [{"label": "ABC"[j], "score": row[j]} for j in np.argsort(-row)[:2]],
            }
        )
        for k, row in zip(CLASS, THREE, strict=True)
    ]
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join(lines))
    with pytest.raises(FileError, match=r"2 of 3 numbers that sum to .* lists are cut") as caught:
        read(path, *options)
    assert "python -m skcal" not in " ".join(getattr(caught.value, "lines", []))


@pytest.mark.parametrize("name", ["classes", "classes_"])
def test_the_order_of_classes_in_an_archive_is_taken(name, tmp_path):
    arrays = {"probs": np.column_stack([P, Q]), "y": NO_YES[Y], name: NO_YES[::-1]}
    np.savez(tmp_path / "a.npz", **arrays)
    found = read(tmp_path / "a.npz", "--score", "probs", "--label", "y")
    assert found.classes.tolist() == ["no", "yes"]
    np.testing.assert_allclose(found.proba[:, 1], P)
    told = found.read.read_as
    assert "Array 'probs' holds the predictions, array 'y' what happened." in told
    assert ("array 'probs' are the classes yes, no" in told) == (name == "classes_")


def test_columns_that_a_score_leaves_unread_are_named(tmp_path):
    names = [f"{'very long ' * 20}{k}" for k in range(30)]
    rows = ([p, y, *range(30)] for p, y in zip(P, Y, strict=True))
    path = write(tmp_path / "a.csv", ",".join(["p", "label", *names]), rows)
    told = " ".join(read(path, "--score", "p").notes)
    assert "Other columns are not read: " in told
    assert "… 18 more" in told
    assert len(told) < 1200


def test_the_files_of_a_folder_are_named_and_share_no_samples(tmp_path):
    for k, p in enumerate([P, P**2]):
        rows = zip(range(N), 1 - p, p, Y, strict=True)
        write(tmp_path / f"{k}.csv", "id,0,1,label", rows)
    told = " ".join(read(tmp_path).notes)
    assert "2 files stand one after the other: 0.csv, 1.csv." in told
    with pytest.raises(FileError, match=r"id .0. is in 0\.csv and in 1\.csv"):
        read(tmp_path, "--id", "id")
    write(tmp_path / "1.csv", "id,0,1,label", zip(range(N, 2 * N), Q, P, Y, strict=True))
    assert len(read(tmp_path, "--id", "id").proba) == 2 * N


def test_advice_on_numbers_of_fields_runs_in_no_circle(tmp_path):
    rows = zip(
        range(N),
        NO_YES[Y],
        NO_YES[GUESS],
        [f"{q},{p}" for p, q in zip(P, Q, strict=True)],
        strict=True,
    )
    path = write(tmp_path / "a.csv", "inst#,actual,predicted,probabilities", rows)
    commands, _ = offers(path, "--label", "actual", "--sep", ";")
    assert not commands
    with pytest.raises(FileError, match="line 2 has 5 fields, the header 4") as caught:
        read_predictions(path, label="actual")
    assert "--sep" not in str(caught.value)
    text = path.read_text().replace("probabilities", "no,yes")
    path.write_text(text)
    assert_event(read(path, "--label", "actual"))


@pytest.mark.filterwarnings("ignore:.*the largest prediction is")  # of the other reading
@pytest.mark.parametrize("name", ["pd_pct", "PD (%)", "percent", "probPercent"])
def test_percentages_below_1_are_two_readings(name, tmp_path):
    path = write(tmp_path / "a.csv", f"{name},label", zip(P, Y, strict=True))
    if name == "probPercent":
        assert_event(read(path))
        return
    commands, told = offers(path)
    assert [command[-1] for command in commands] == ["--percent", "1"]
    assert f"the mean is then {P.mean() / 100:.3g}" in told
    assert_event(read(path, *commands[0]), P / 100)
    assert_event(read(path, *commands[1]))
    write(path, f"{name},label", zip(100 * P, Y, strict=True))
    [command], _ = offers(path)
    assert_event(read(path, *command))


def test_columns_of_other_names_are_read_in_the_order_of_labels(tmp_path):
    names = ["setosa", "versicolor", "virginica"]
    rows = ([k, *row, names[c]] for k, (row, c) in enumerate(zip(THREE, CLASS, strict=True)))
    path = write(tmp_path / "a.csv", ",0,1,2,species", rows)
    commands, told = offers(path, "--label", "species", "--ignore", "")
    assert not commands
    assert "pass the labels in the order of these columns by --labels" in told
    given = ["--label", "species", "--ignore", "", "--labels"]
    found = read(path, *given, ",".join(names))
    assert_three(found, names)
    assert "The columns 0, 1, 2 are the probabilities of setosa, versi" in found.read.read_as
    with pytest.raises(FileError, match="no columns have the names"):
        read(path, *given, "setosa,virginica")


# Exports that spread what belongs together over fields, lines or files


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_distribution_of_weka_is_a_list_in_the_order_of_numbered_labels(n_classes, tmp_path):
    rows, outcomes = (np.column_stack([Q, P]), Y) if n_classes == 2 else (THREE, CLASS)
    names = np.array(["1:z", "2:y", "3:x"])
    lines = [
        [k, names[y], names[row.argmax()], "+" * int(y != row.argmax())]
        + [f"{'*' * int(j == row.argmax())}{p}" for j, p in enumerate(row)]
        for k, (y, row) in enumerate(zip(outcomes, rows, strict=True), 1)
    ]
    header = "=== Predictions on test data ===\n\ninst#,actual,predicted,error,distribution"
    path = write(tmp_path / "a.csv", header, lines)
    found = read(path, "--label", "actual")
    if n_classes == 3:
        assert_three(found, names.tolist())
    else:
        assert_event(found)
    lines[3][4] = "?"
    with pytest.raises(FileError, match=r"line 7, column .distribution. is .\[\?"):
        read(write(path, header, lines), "--label", "actual")


def test_the_lines_of_types_and_roles_of_orange_are_no_rows(tmp_path):
    names = [f"Random Forest ({name})" for name in NO_YES]
    head = [["age", "died", *names], ["continuous", "no yes", *["continuous"] * 2]]
    head.append(["", "class", "meta", "meta"])
    rows = zip(range(N), NO_YES[Y], Q, P, strict=True)
    header = "\n".join("\t".join(line) for line in head)
    path = write(tmp_path / "a.tab", header, rows, sep="\t")
    assert_event(read(path, "--label", "died"))
    path.write_text(path.read_text().replace(f"\t{P[2]}", "\tx", 1))
    with pytest.raises(FileError, match=r"line 6, column .* is 'x', not a number"):
        read(path, "--label", "died")


def in_parts(folder, records):
    """Two parts without an ending, as services write their predictions."""
    folder.mkdir()
    for k in range(2):
        lines = map(json.dumps, records[k::2])
        (folder / f"prediction.results-0000{k}-of-00002").write_text("\n".join(lines))
    return folder


@pytest.mark.parametrize("with_ids", [False, True])
def test_parts_of_predictions_name_the_entries_of_each_row(with_ids, tmp_path):
    names, records = ["setosa", "versicolor", "virginica"], []
    for y, row in zip(CLASS, THREE, strict=True):
        order = np.argsort(-row, kind="stable").tolist()
        parts = {"ids": [str(17 + k) for k in order]} if with_ids else {}
        parts |= {"displayNames": [names[k] for k in order]}
        parts |= {"confidences": row[order].tolist()}
        records.append({"instance": {"species": names[y]}, "prediction": parts})
    folder = in_parts(tmp_path / "vertex", records)
    found = read(folder, "--label", "instance.species")
    order = [found.classes.tolist().index(name) for name in names]
    rows = np.concatenate([THREE[::2], THREE[1::2]])
    np.testing.assert_allclose(found.proba[:, order], rows, atol=1e-9)
    expected = np.array(names)[np.concatenate([CLASS[::2], CLASS[1::2]])]
    np.testing.assert_array_equal(found.labels, expected)


def test_parts_without_a_header_are_named(tmp_path):
    for k in range(2):
        rows = list(zip(P, Y, strict=True))[k::2]
        write(tmp_path / f"part-0000{k}.csv", "0.25,1", rows)
    with pytest.raises(FileError, match=r"part-00000\.csv has no header.*in Spark by header=True"):
        read(tmp_path)


def test_entries_named_by_numbers_behind_words_are_the_classes(tmp_path):
    lines = [
        json.dumps({"label": int(y), "p": {"LABEL_0": q, "LABEL_1": p}})
        for y, p, q in zip(Y, P, Q, strict=True)
    ]
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join(lines))
    assert_event(read(path))
    pairs = [
        {"label": int(y), "p": [{"label": "LABEL_1", "score": p}, {"label": "LABEL_0", "score": q}]}
        for y, p, q in zip(Y, P, Q, strict=True)
    ]
    path.write_text("\n".join(map(json.dumps, pairs)))
    assert_event(read(path))


def test_of_columns_of_words_the_event_is_the_positive_one_in_any_order(tmp_path):
    header, names = "p_True,p_False,label", np.array(["False", "True"])
    path = write(tmp_path / "a.csv", header, zip(P, Q, names[Y], strict=True))
    found = read(path)
    assert found.classes.tolist() == ["False", "True"]
    assert_event(found)


def test_lists_of_more_entries_than_two_are_in_no_order_that_is_offered(tmp_path):
    lines = [
        json.dumps({"label": "abc"[y], "p": row.tolist()})
        for y, row in zip(CLASS, THREE, strict=True)
    ]
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join(lines))
    commands, told = offers(path)
    assert not commands
    assert "--labels a,b,c if they are sorted" in told
    assert_three(read(path, "--labels", "a,b,c"), list("abc"))


@pytest.mark.parametrize("kind", ["jsonl", "csv"])
def test_vectors_with_names_are_written_with_their_names(kind, tmp_path):
    rows = [
        {"label": str(NO_YES[y]), "p": {"yes": p, "no": q} if k % 2 else {"no": q, "yes": p}}
        for k, (y, p, q) in enumerate(zip(Y, P, Q, strict=True))
    ]
    path, out = tmp_path / f"a.{kind}", tmp_path / f"new.{kind}"
    if kind == "jsonl":
        path.write_text("\n".join(json.dumps({**row, "p": pairs_of(row["p"])}) for row in rows))
    else:
        texts = ('"' + json.dumps(row["p"]).replace('"', '""') + '"' for row in rows)
        labels = (row["label"] for row in rows)
        write(path, "label,p", zip(labels, texts, strict=True))
    given = [str(path), str(path), "--out", str(out), "--method", "slope"]
    assert main(["recalibrate", *given]) == 0
    found, before = read(out), read(path)
    assert found.classes.tolist() == before.classes.tolist()
    assert (np.diff(found.proba[np.argsort(P, kind="stable"), 1]) >= 0).all()
    assert not np.allclose(found.proba, before.proba)


def pairs_of(named):
    return [{"label": name, "score": value} for name, value in named.items()]


# Predicted classes under other names than the labels


OTHER_NAMES = {
    "LABEL_k": (["LABEL_0", "LABEL_1"], ["0", "1"]),
    "case": (["NO", "YES"], ["no", "yes"]),
    "truth values": (["False", "True"], ["0", "1"]),
    "numbers with a sign": (["-1", "1"], ["-1", "1"]),
}


@pytest.mark.filterwarnings("ignore:Column .* has no prediction below")  # of the other reading
@pytest.mark.parametrize("names", OTHER_NAMES)
def test_a_predicted_class_is_known_under_another_spelling(names, tmp_path):
    guessed, known = map(np.array, OTHER_NAMES[names])
    columns = zip(guessed[GUESS], np.where(GUESS == 1, P, Q), known[Y], strict=True)
    path = write(tmp_path / "a.csv", "label,score,gold", columns)
    commands, _ = offers(path, "--label", "gold", "--score", "score")
    assert commands[0][-2:] == ["--predicted", "label"]
    assert "--ignore" in commands[1]
    assert_event(read(path, *commands[0]))


@pytest.mark.filterwarnings("ignore:Column .* has no prediction below")  # and names --predicted
def test_predicted_names_that_are_no_labels_are_refused(tmp_path):
    columns = zip(
        np.array(["LOW", "HIGH"])[GUESS],
        np.where(GUESS == 1, P, Q),
        np.array(["neg", "pos"])[Y],
        strict=True,
    )
    path = write(tmp_path / "a.csv", "label,score,gold", columns)
    given = ["--label", "gold", "--score", "score", "--predicted", "label"]
    with pytest.raises(FileError, match=r"holds HIGH, LOW, .* --label neg, pos"):
        read(path, *given)
    path.write_text(path.read_text().replace("LOW", "neg").replace("HIGH", "pos"))
    assert_event(read(path, *given))


OF_MODELS = [(".config", ["Model1", "Model2"]), ("mtry", [2, 4]), ("model", [1, 2])]
OF_MODELS += [("model_version", ["v1", "v2"]), ("endpoint_variant", ["champion", "challenger"])]
OF_MODELS += [("modelVersion", ["1.1", "1.2"]), ("Classifier Name", ["rf", "xgb"])]
OF_PARTS = [("Validation", ["Training", "Validation"]), ("set", ["TRAIN", "TEST"])]
OF_PARTS += [("fold", ["learn", "holdout"]), ("x", ["train", "val"]), ("x", ["train", "oot"])]


def write_of_each(tmp_path, name, values):
    rows = ([p, NO_YES[y], value] for value in values for p, y in zip(P, Y, strict=True))
    return write(tmp_path / "a.csv", f"yes,label,{name}", rows)


@pytest.mark.parametrize(
    ("name", "values", "what"),
    [(*case, "models") for case in OF_MODELS] + [(*case, "parts") for case in OF_PARTS],
)
def test_rows_of_several_models_or_of_training_are_not_pooled(name, values, what, tmp_path):
    path = write_of_each(tmp_path, name, values)
    with pytest.raises(FileError, match=f"column '{name}' names 2 {what}") as caught:
        read(path)
    assert f"--by '{name}'" in str(caught.value)
    assert f"--ignore '{name}'" in str(caught.value)
    for more in ([], ["--score", "yes"]):
        assert len(read(path, *more, "--ignore", name).labels) == 2 * len(Y)
    assert main(["report", str(path), "--by", name]) == 0


@pytest.mark.parametrize(
    ("name", "values"),
    [
        *(("conversion", [0, 1]), ("engine_size", [2, 3]), ("model_year", [1, 2])),
        *(("exam", ["train"]), ("set", ["test", "val"]), ("vehicle", ["train", "bus"])),
        ("test", ["valid", "invalid"]),
    ],
)
def test_other_columns_tell_no_models_or_parts_apart(name, values, tmp_path):
    path = write_of_each(tmp_path, name, values)
    assert len(read(path, "--score", "yes").labels) == len(values) * len(Y)


@pytest.mark.parametrize("before", ["p_", ".pred_", ""])
@pytest.mark.parametrize("word", ["none", "None", "NA", "na", "null", "nan"])
def test_classes_with_names_like_missing_values_are_classes(word, before, tmp_path):
    names = np.array([word, "relapse"])[Y]
    header = f"{before}{word},{before}relapse,label"
    rows = [*zip(Q, P, names, strict=True), (0.5, 0.5, "")]
    read_in = read(write(tmp_path / "a.csv", header, rows), "--drop-missing")
    assert len(read_in.labels) == len(Y)
    assert set(map(str, read_in.labels)) == {word, "relapse"}
    rows = [*zip(P, Y, strict=True), (0.5, word)]  # no column says that it is a class
    path = write(tmp_path / "b.csv", f"{before}score,label", rows)
    assert len(read(path, "--drop-missing").labels) == len(Y)
