"""Where a file can be read in two ways, both are named and none is offered or taken alone."""

import json
import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from advice_of_commands import numbers_of, offers, run, write

from skcal.cli.parser import parse
from skcal.cli.predictions import read_predictions

N = 300
RNG = np.random.default_rng(1)
P = RNG.uniform(0.05, 0.95, N).round(3)
Y = (RNG.random(N) < P).astype(int)
THREE = RNG.dirichlet([2, 2, 2], N).round(3)
THREE[:, 2] = (1 - THREE[:, 0] - THREE[:, 1]).round(3)
CLASS = np.array([RNG.choice(3, p=np.clip(row, 0, 1) / np.clip(row, 0, 1).sum()) for row in THREE])


@pytest.fixture(autouse=True)
def in_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def assert_read(words, classes, proba, happened):
    """Predictions and outcomes, a column for each class, are those of the classes."""
    found = read_predictions(parse(shlex.split(words)))
    names = list(map(str, found.classes.tolist()))
    assert sorted(names) == sorted(classes)
    order, given = [names.index(name) for name in classes], found.proba
    given = np.column_stack([1 - given, given]) if given.ndim == 1 else given
    np.testing.assert_allclose(given[:, order], proba, atol=1e-9)
    labels = found.labels
    labels = labels if labels.ndim == 2 else found.classes == labels[:, None]
    np.testing.assert_allclose(labels[:, order], happened, atol=1e-9)


@pytest.mark.parametrize("names", ["abc", "012", ["a", "b", "unsure"]])
@pytest.mark.parametrize("given", ["", " --pos-label {}"])
def test_one_column_beside_three_labels_names_each_reading(names, given):
    names = np.array(list(names))
    largest, likeliest = THREE.max(axis=1), names[THREE.argmax(axis=1)]
    write("a.csv", ("p", THREE[:, 1]), ("label", names[CLASS]))
    told, commands = offers("evaluate a.csv" + given.format(names[1]))
    assert not commands
    assert not re.search(r"--(pos|drop)-label '?\w", told)  # of no class
    for k, name in enumerate(names):
        assert f"{name!s}' ({np.sum(k == CLASS)} of {N})" in told
    assert f"(its mean is {THREE[:, 1].mean():.3g})" in told
    # a column of probabilities for each class
    classes = list(zip(names, THREE.T, strict=True))
    write("b.csv", *classes, ("label", names[CLASS]))
    assert_read("evaluate b.csv", names.tolist(), THREE, np.eye(3)[CLASS])
    # a column of 1 for that class and 0 for all others
    write("c.csv", ("p", THREE[:, 1]), ("label", names[CLASS]), ("is", (CLASS == 1).astype(int)))
    write("d.csv", ("p", THREE[:, 1]), ("label", (CLASS == 1).astype(int)))
    followed = numbers_of("evaluate c.csv --label is --score p --json")
    assert followed == numbers_of("evaluate d.csv --json")
    # the class that another column names
    write("e.csv", ("p", largest), ("said", likeliest), ("label", names[CLASS]))
    write("f.csv", ("p", largest), ("right", (likeliest == names[CLASS]).astype(int)))
    followed = numbers_of("evaluate e.csv --score p --predicted said --json")
    assert followed == numbers_of("evaluate f.csv --confidence p --correct right --json")


def test_samples_of_a_third_label_that_is_a_mark_are_left_out_as_said():
    words = np.array(["no", "yes"], dtype=object)[Y]
    words[::60] = "unknown"
    keep = np.arange(N) % 60 > 0
    write("a.csv", ("p", P), ("label", words))
    told, commands = offers("evaluate a.csv --pos-label yes")
    assert "If a label marks missing ones, leave out its samples by --drop-label." in told
    assert not commands
    write("b.csv", ("p", P[keep]), ("label", Y[keep]))
    followed = numbers_of("evaluate a.csv --pos-label yes --drop-label unknown --json")
    assert followed == numbers_of("evaluate b.csv --json")


def test_a_third_class_beside_two_columns_is_not_offered_to_be_left_out():
    names = np.array(["a", "b"], dtype=object)[Y]
    names[::60] = "c"
    keep = np.arange(N) % 60 > 0
    write("a.csv", ("a", 1 - P), ("b", P), ("label", names))
    told, commands = offers("evaluate a.csv")
    assert f"{N // 60} of {N}, are of no class, leave them out by --drop-label 'c'." in told
    assert not commands
    write("b.csv", ("p", P[keep]), ("label", Y[keep]))
    followed = numbers_of("evaluate a.csv --drop-label c --json")
    np.testing.assert_allclose(followed, numbers_of("evaluate b.csv --json"))


@pytest.mark.parametrize("soft", [True, False])
def test_a_class_that_no_column_names_is_named_and_columns_are_not_renamed(soft):
    share = RNG.binomial(5, P) / 5
    labels = [("y_a", 1 - share), ("y_c", share)] if soft else [("label", np.array(["a", "c"])[Y])]
    option = " --soft y_" * soft
    write("a.csv", ("p_a", (1 - P).round(3)), ("p_b", P), *labels)
    told, commands = offers(f"evaluate a.csv{option}")
    assert "p_a, p_b are named by the classes a, b, and none by 'c'" in told
    assert "Give a column of probabilities for each class." in told
    assert "--labels" not in told
    assert not commands
    rest = ((1 - P) / 3).round(3)
    right = [("p_a", (1 - P - rest).round(3)), ("p_b", rest), ("p_c", P)]
    labels = [*labels, ("y_b", 0 * P)] if soft else labels
    write("b.csv", *right, *labels)
    of_c = share if soft else Y
    happened = np.column_stack([1 - of_c, 0 * of_c, of_c])
    proba = np.column_stack([values for _, values in right])
    assert_read(f"evaluate b.csv{option}", list("abc"), proba, happened)


def test_both_events_of_logits_are_named_with_their_numbers():
    write("a.csv", ("z", np.log(P / (1 - P))), ("word", np.array(["no", "yes"])[Y]))
    told, commands = offers("evaluate a.csv --logits --label word")
    for name, n in (("yes", Y.sum()), ("no", N - Y.sum())):
        assert f"--pos-label {name}: {n} events of {N}" in told
    assert f"the mean prediction is {P.mean():.3g}." in told
    assert sorted(shlex.split(command)[-1] for command in commands) == ["no", "yes"]
    for command in commands:
        event = shlex.split(command)[-1]
        other = {"no": "yes", "yes": "no"}[event]
        happened = Y if event == "yes" else 1 - Y
        rows, happened = np.column_stack([1 - P, P]), np.column_stack([1 - happened, happened])
        assert_read(command, [other, event], rows, happened)


def test_predicted_classes_beside_columns_of_all_classes_are_refused():
    said = np.array(["a", "b"])[(P > 0.5).astype(int)]
    of_said = np.where(P > 0.5, P, 1 - P)
    names = np.array(["a", "b"])[Y]
    write("a.csv", ("a", 1 - P), ("b", P), ("said", said), ("top", of_said), ("label", names))
    given = "evaluate a.csv --ignore top --predicted said"
    told, commands = offers(given)
    assert "The predictions here are a, b. Leave --predicted out, or name that column by" in told
    write("b.csv", ("p", P), ("label", Y))
    right = numbers_of("evaluate b.csv --json")
    assert commands == ["evaluate a.csv --ignore top"]
    np.testing.assert_allclose(numbers_of(f"{commands[0]} --json"), right)
    followed = numbers_of("evaluate a.csv --score top --predicted said --json")
    np.testing.assert_allclose(followed, right)
    np.savez("a.npz", proba=P, labels=Y)
    assert "The predictions here are an array." in offers("evaluate a.npz --predicted said")[0]


@pytest.mark.parametrize("name", ["shares", "labels"])
def test_arrays_of_another_shape_say_what_to_save(name):
    option = " --soft shares" * (name == "shares")
    shares = np.column_stack([1 - P, P]) / 2 + 0.25
    for wrong in (np.column_stack([shares, 0 * P]), shares[1:].T):
        np.savez("a.npz", proba=np.column_stack([1 - P, P]), **{name: wrong})
        told, commands = offers(f"evaluate a.npz{option}")
        assert "Save one label for each row of the predictions. An array of shares, with a" in told
        assert "argument" not in told
        assert not commands
    np.savez("b.npz", proba=np.column_stack([1 - P, P]), labels=Y)
    np.savez("c.npz", proba=np.column_stack([1 - P, P]), shares=np.column_stack([1 - Y, Y]))
    followed = numbers_of("evaluate c.npz --soft shares --json")
    np.testing.assert_allclose(followed, numbers_of("evaluate b.npz --json"))


def test_shares_of_one_class_say_what_to_save():
    share = RNG.binomial(5, P) / 5
    np.savez("a.npz", proba=P, labels=share)
    told, commands = offers("evaluate a.npz")
    assert "save the shares of both as two columns, and pass --soft labels." in told
    assert not commands
    np.savez("b.npz", proba=P, labels=np.column_stack([1 - share, share]))
    write("b.csv", ("p_1", P), ("y_0", 1 - share), ("y_1", share))
    followed = numbers_of("evaluate b.npz --soft labels --json")
    np.testing.assert_allclose(followed, numbers_of("evaluate b.csv --soft y_ --json"))


def test_predictions_of_three_dimensions_say_what_to_save():
    rows = np.column_stack([1 - P, P])
    np.savez("a.npz", proba=rows.reshape(2, -1, 2), labels=Y.reshape(2, -1))
    told, _ = offers("evaluate a.npz")
    assert "Save a row for each sample, of one number or of a column for each class." in told
    np.savez("b.npz", proba=rows, labels=Y)
    np.savez("c.npz", proba=P, labels=Y)
    followed = numbers_of("evaluate b.npz --json")
    np.testing.assert_allclose(followed, numbers_of("evaluate c.npz --json"))


def test_a_step_that_is_none_names_the_option():
    write("a.csv", ("p", P.round(1)), ("label", Y))
    test = "test a.csv --resamples 99 --json"
    told, _ = offers(f"{test} --resolution 0.3")
    assert "--resolution is 0.3, and a prediction is 0.1, which is no multiple of it." in told
    assert "Pass the step of the predictions, or leave --resolution out." in told
    right = numbers_of(f"{test} --resolution 1/10")
    assert numbers_of(f"{test} --resolution 0.1") == right == numbers_of(test)


def test_vectors_have_no_step_and_the_message_names_the_options():
    rows = THREE.round(1)
    rows[:, 2] = (1 - rows[:, 0] - rows[:, 1]).round(1)
    rows = np.abs(rows)
    keep = np.abs(rows.sum(axis=1) - 1) < 1e-9
    names = np.array(list("abc"))[CLASS]
    write("a.csv", *zip("abc", rows[keep].T, strict=True), ("label", names[keep]))
    test = "test a.csv --resamples 99 --json"
    told, _ = offers(f"{test} --notion canonical --resolution 0.1")
    assert "Leave --resolution out, or pass --notion classwise." in told
    found = numbers_of(f"{test} --notion canonical")
    assert found == numbers_of(f"{test} --notion canonical --resolution auto")
    found = numbers_of(f"{test} --notion classwise --resolution 0.1")
    assert found == numbers_of(f"{test} --notion classwise --resolution 1/10")


def read_as(words):
    """The answer on one line."""
    status, out, told = run(words)
    assert status == 0, told
    return " ".join(out.split())


def test_the_other_event_of_two_columns_is_asked_for_as_the_answer_says():
    names = np.array(["a", "b"])[Y]
    write("a.csv", ("a", 1 - P), ("b", P), ("label", names))
    said = read_as("evaluate a.csv")
    assert f"(outcome 'b') happened in {Y.sum()} of them" in said
    assert f"All predictions average {100 * P.mean():.0f} %." in said
    option = re.search(r"(--pos-label a) makes the other label the event\.", said)[1]
    other = read_as(f"evaluate a.csv {option}")
    assert f"(outcome 'a') happened in {N - Y.sum()} of them" in other
    assert f"All predictions average {100 * (1 - P.mean()):.0f} %." in other
    assert "makes the other label" not in other
    write("b.csv", ("no", 1 - P), ("yes", P), ("label", np.array(["no", "yes"])[Y]))
    assert "makes the other label" not in read_as("evaluate b.csv")


def test_a_column_that_orders_the_scores_is_not_said_to_be_unread():
    names = np.array(["a", "b"])[Y].tolist()
    rows = [
        {"prediction": {"classes": ["b", "a"], "scores": [p, 1 - p]}, "x": 1, "label": label}
        for p, label in zip(P.tolist(), names, strict=True)
    ]
    Path("a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    said = read_as("evaluate a.jsonl")
    assert "the probabilities of a, b, as column 'prediction.classes' names them." in said
    assert re.search(r"not read: x\.", said)
    happened = np.column_stack([1 - Y, Y])
    assert_read("evaluate a.jsonl", ["a", "b"], np.column_stack([1 - P, P]), happened)


def test_columns_without_a_number_above_0_are_logits_or_logarithms():
    rows, names = np.log(np.column_stack([1 - P, P])), np.array(["a", "b"])[Y]
    write("a.csv", *zip("ab", rows.T, strict=True), ("label", names))
    told, commands = offers("evaluate a.csv")
    assert "If they are logarithms of probabilities, --log-probabilities gives the same." in told
    happened = np.column_stack([1 - Y, Y])
    assert commands == ["evaluate a.csv --logits"]
    for option in ("--logits", "--log-probabilities"):
        command = f"evaluate a.csv {option}"
        assert_read(command, ["a", "b"], np.column_stack([1 - P, P]), happened)
    write("b.csv", *zip("ab", (rows - 3).T, strict=True), ("label", names))
    [command] = offers("evaluate b.csv")[1]  # whose exponentials do not sum to 1
    assert command.endswith("--logits")
    said = read_as(command)
    assert "read as logits; those of a row become probabilities that sum to 1." in said


@pytest.mark.parametrize("weight", ["WTMEC2YR", "wt", "weight"])
def test_columns_of_weights_and_of_owners_are_hinted_at_and_never_chosen(weight):
    w = RNG.uniform(1, 9, N).round(2)
    columns = [(weight, w), ("patient", np.arange(N) // 4), ("p", P), ("q", P / 2)]
    write("a.csv", *columns, ("label", Y))
    told, commands = offers("evaluate a.csv")
    assert f"If {weight!r} holds sample weights, name it by --weight." in told
    assert "If rows of one 'patient' belong together, name it by --groups." in told
    asked = [("--groups", "patient"), *[("--weight", weight)] * (weight == "WTMEC2YR")]
    assert len(commands) == 2 * 2 ** len(asked)  # of two scores
    for option, name in asked:
        for words in (f"{option} {name}", f"--ignore {name}"):
            assert sum(words in command for command in commands) == len(commands) / 2
    write("b.csv", ("p", P), ("w", w), ("g", np.arange(N) // 4), ("label", Y))
    followed = numbers_of(f"evaluate a.csv --score p --weight {weight} --groups patient --json")
    assert followed == numbers_of("evaluate b.csv --score p --weight w --groups g --json")
    write("c.csv", *columns[2:], ("patient", np.arange(N)), ("label", Y))
    assert "belong together" not in offers("evaluate c.csv")[0]


def test_a_column_of_parts_that_is_the_same_in_all_rows_is_said():
    write("a.csv", ("p", P), ("label", Y), ("split", np.full(N, "test")))
    assert "Column 'split' is 'test' in all rows." in read_as("evaluate a.csv --score p")


@pytest.mark.parametrize("order", [("model", "split"), ("split", "model")])
def test_rows_of_training_are_found_beside_another_column_that_is_the_same_in_all(order):
    same = {"model": np.full(N, "a"), "split": np.full(N, "train")}
    write("a.csv", ("p", P), ("label", Y), *((name, same[name]) for name in order))
    words = "evaluate a.csv --score p --max-error 0.3"
    told, commands = offers(words)
    assert "column 'split' is 'train' in all rows, as those of training are" in told
    found = numbers_of(commands[0] + " --json")
    write("a.csv", ("p", P), ("label", Y))
    assert found == numbers_of(f"{words} --json")


def test_a_reduction_that_is_not_certain_is_said_with_both_numbers():
    seen = set()
    for k in range(13):
        truth = P[:150] if k < 12 else np.tile(P, 10)
        p = np.clip(0.5 + 1.25 * (truth - 0.5), 0.01, 0.99).round(3)
        y = (np.random.default_rng(k).random(len(truth)) < truth).astype(int)
        write("a.csv", ("p", p), ("label", y))
        said = read_as("evaluate a.csv")
        found = re.search(r"reduce the error from ([\d.]+) to .*?(?:at most|up to) ([\d.]+)", said)
        if found is not None:
            before, high = map(float, found.groups())
            assert ("too few to be sure of a reduction" in said) == (high >= before)
            assert said.count(f" {found[2]} ") == 1
            seen.add(high >= before)
    assert seen == {False, True}


def rows_of(name):
    """The probabilities of the four options in a file."""
    with open(name, encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    return np.array([[row[f"logprob_{k}"] for k in "ABCD"] for row in rows], float)


@pytest.fixture
def options():
    """Logarithms of probabilities of four options, with and without absent ones."""
    rng = np.random.default_rng(5)
    logits = rng.normal(size=(200, 4)) * 1.6
    for name, lacking in [("full", []), ("options", np.arange(0, 200, 3))]:
        logits[lacking, 3] = -np.inf
        logs = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
        label = [rng.choice(list("ABCD"), p=np.exp(row)) for row in logs]
        stated = 1.5 * logits
        stated -= np.log(np.exp(stated).sum(axis=1, keepdims=True))
        with open(f"{name}.jsonl", "w", encoding="utf-8") as file:
            for row, right in zip(stated.round(6).tolist(), label, strict=True):
                cells = [(k, None if np.isinf(v) else v) for k, v in zip("ABCD", row, strict=True)]
                named = {f"logprob_{k}": v for k, v in cells}
                file.write(json.dumps({**named, "label": right}) + "\n")


def test_options_that_a_question_lacks_are_no_missing_numbers(options):
    """Null in logarithms of probabilities says that a question lacks an option."""
    told, commands = offers("evaluate options.jsonl")
    assert "--drop-missing" not in told
    assert "67 rows lack some classes" in told
    status, out, same = run("evaluate options.jsonl --log-probabilities")
    assert status == 0, same
    assert out.split("\n\n")[0] == run(commands[0])[1].split("\n\n")[0]


@pytest.mark.parametrize("method", ["", "--method intercept", "--method slope"])
def test_a_map_leaves_absent_options_at_0_in_either_reading(options, method):
    for reading in ("--logits", "--log-probabilities"):
        given = f"recalibrate options.jsonl options.jsonl {reading} {method}"
        status, _, told = run(f"{given} --save map.json --out 1.jsonl")
        assert status == 0, told
        logs = reading * (reading == "--log-probabilities")  # a map knows that it takes logits
        again = f"recalibrate --map map.json options.jsonl {logs} --out 2.jsonl"
        assert run(again)[0] == 0
        fixed = rows_of("1.jsonl")
        np.testing.assert_array_equal(rows_of("2.jsonl"), fixed)
        np.testing.assert_array_equal(fixed[::3, 3], 0)
        np.testing.assert_allclose(fixed.sum(axis=1), 1)
        if reading == "--logits":
            first = fixed
    np.testing.assert_allclose(first, fixed, atol=1e-6)


def test_a_map_of_full_rows_that_treats_options_alike_leaves_absent_ones_at_0(options):
    fit = "recalibrate full.jsonl options.jsonl --log-probabilities --out 1.jsonl"
    for method in ("intercept", "slope"):
        assert run(f"{fit} --method {method}")[0] == 0
        fixed = rows_of("1.jsonl")
        np.testing.assert_array_equal(fixed[::3, 3], 0)
        np.testing.assert_allclose(fixed.sum(axis=1), 1)


def test_a_map_that_weighs_options_apart_is_not_applied_to_rows_that_lack_some(options):
    rng = np.random.default_rng(6)
    logits = rng.normal(size=(3000, 4)) * 1.6
    stated = logits * [1, 3, 0.3, 1] + [0, 2, -1, 0]
    stated -= np.log(np.exp(stated).sum(axis=1, keepdims=True))
    share = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    label = np.array(list("ABCD"))[(rng.random((3000, 1)) > share.cumsum(axis=1)).sum(axis=1)]
    columns = [(f"logprob_{k}", v.round(6)) for k, v in zip("ABCD", stated.T, strict=True)]
    write("apart.csv", *columns, ("label", label))
    with open("options.jsonl", encoding="utf-8") as file:
        rows = [list(json.loads(line).values()) for line in file]
    table = np.array([[np.nan if v is None else v for v in row[:4]] for row in rows], float)
    columns = [(f"logprob_{k}", v) for k, v in zip("ABCD", table.T, strict=True)]
    write("options.csv", *columns, ("label", np.array([row[4] for row in rows])))
    Path("options.csv").write_text(Path("options.csv").read_text().replace("nan", ""))
    given = "recalibrate apart.csv options.csv --log-probabilities --out 1.csv"
    told, _ = offers(given)
    assert "options.csv: sample 1 lacks options, and the map, which was fitted to" in told
    for followed in (f"{given} --method slope", given.replace("apart", "options")):
        status, _, told = run(followed)
        assert status == 0, told
        fixed = np.genfromtxt("1.csv", delimiter=",", skip_header=1)[:, :4]
        np.testing.assert_array_equal(fixed[::3, 3], 0)
        np.testing.assert_allclose(fixed.sum(axis=1), 1)


def test_two_models_of_one_table_are_compared_by_their_names():
    lines = [f"{m},{p:.3f},{y}" for m in "AB" for p, y in zip(P, Y, strict=True)]
    with open("models.csv", "w", encoding="utf-8") as file:
        file.write("\n".join(["model,confidence,correct", *lines]) + "\n")
    words = "--confidence confidence --correct correct --only model=A --only model=B"
    status, out, told = run(f"compare models.csv {words} --resamples 19")
    assert status == 0, told
    assert "model=A and model=B" in out
    assert "confidence and confidence" not in out
    given = words.rpartition(" --only")[0]
    status, _, told = run(f"plot models.csv {given} --resamples 19 --out a.svg")
    assert status == 0, told
    assert "models.csv, model=A" in Path("a.svg").read_text(encoding="utf-8")
