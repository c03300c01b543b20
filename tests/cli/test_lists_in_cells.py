"""Lists and objects in cells, as services write them, name their classes in any order."""

import json

import numpy as np
import pytest
from test_forms import CLASS, GUESS, THREE, P, Q, Y, assert_event, assert_three, offers, read

INCOMES = np.array(["<=50K", ">50K"])  # neither is a word for an event
WORDS = np.array(["no", "yes"])
SPECIES = np.array(["setosa", "versicolor", "virginica"])


def likeliest_first(k):
    """The places of the two classes of a row, the more probable first."""
    return [1, 0] if P[k] > Q[k] else [0, 1]


def pairs(k, names, name="label", number="prob", **more):
    return [{name: names[j], number: float((Q, P)[j][k]), **more} for j in likeliest_first(k)]


# What a cell of row k holds, of two classes, and the names of these.
CELLS = {
    "BigQuery ML": (lambda k: pairs(k, WORDS.tolist()), WORDS),
    "BigQuery ML, no words": (lambda k: pairs(k, INCOMES.tolist()), INCOMES),
    "truth values": (lambda k: pairs(k, [False, True]), np.array([False, True])),
    "integers": (lambda k: pairs(k, [0, 1]), np.array([0, 1])),
    "a set of Oracle": (lambda k: pairs(k, [0, 1], "PREDICTION", "PROBABILITY"), np.array([0, 1])),
    "Comprehend": (lambda k: pairs(k, WORDS.tolist(), "Name", "Score"), WORDS),
    "tokens": (lambda k: pairs(k, WORDS.tolist(), "token", "prob", bytes=[1, 2]), WORDS),
    "a pipeline": (lambda k: [pairs(k, ["LABEL_0", "LABEL_1"], number="score")], np.array([0, 1])),
    "fastText": (lambda k: pairs(k, ["__label__no", "__label__yes"]), WORDS),
    "other case": (lambda k: pairs(k, ["No", "YES"]), WORDS),
    "an object": (lambda k: {INCOMES[j]: (Q, P)[j][k] for j in likeliest_first(k)}, INCOMES),
    "two lists": (
        lambda k: {
            "probabilities": [float((Q, P)[j][k]) for j in likeliest_first(k)],
            "labels": likeliest_first(k),
        },
        np.array([0, 1]),
    ),
    "a nested object": (
        lambda k: {"class": "no", "logs": None, "probability": {"yes": P[k], "no": Q[k]}},
        WORDS,
    ),
}


@pytest.mark.parametrize("kind", ["jsonl", "csv", "python"])
@pytest.mark.parametrize("name", CELLS)
@pytest.mark.parametrize("first", [0, 1])
def test_entries_take_their_classes_whatever_row_1_holds(first, name, kind, tmp_path):
    """The event is that of the sorted names, or a word for one, though rows differ in order."""
    cell, names = CELLS[name]
    start = next(k for k in range(len(P)) if likeliest_first(k)[0] == first)
    rows = [
        (names[Y[k]].item(), cell(k)) for k in [start, *range(start), *range(start + 1, len(P))]
    ]
    path = tmp_path / ("a.jsonl" if kind == "jsonl" else "a.csv")
    if kind == "jsonl":
        lines = [json.dumps({"y": label, "p": value}) for label, value in rows]
    else:
        write = json.dumps if kind == "csv" else str  # as pandas writes lists
        texts = (write(value).replace('"', '""') for _, value in rows)
        words = (str(label) for label, _ in rows)
        lines = ["y,p", *(f'{label},"{text}"' for label, text in zip(words, texts, strict=True))]
    path.write_text("\n".join(lines) + "\n")
    found = read(path, "--label", "y")
    order = [start, *range(start), *range(start + 1, len(P))]
    assert_event(found, P[order], Y[order])
    assert str(found.classes[1]).lower() == str(names[1]).lower()


NUMBERS = {
    "one in brackets": "[{}]",
    "a tensor": "tensor({}, device='cuda:0')",
    "a tensor in brackets": "tensor([{}])",
    "numpy 2": "np.float64({})",
}
LISTS = {
    "a tensor": "tensor([{}, {}, {}], device='cuda:0', grad_fn=<SoftmaxBackward0>)",
    "a row of numpy": "[[{} {} {}]]",
    "numpy 2": "[np.float32({}), np.float32({}), np.float32({})]",
    "flags": "[[{}, False], [{}, True], [{}, False]]",
}


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_in_brackets_are_numbers(name, tmp_path):
    lines = ["p,label", *(f'"{NUMBERS[name].format(p)}",{y}' for p, y in zip(P, Y, strict=True))]
    (tmp_path / "a.csv").write_text("\n".join(lines))
    assert_event(read(tmp_path / "a.csv"))


@pytest.mark.parametrize("name", LISTS)
def test_lists_of_any_library_are_lists(name, tmp_path):
    cells = (LISTS[name].format(*row) for row in THREE)
    lines = ["p,label", *(f'"{cell}",{k}' for cell, k in zip(cells, CLASS, strict=True))]
    (tmp_path / "a.csv").write_text("\n".join(lines))
    assert_three(read(tmp_path / "a.csv"), ["0", "1", "2"])


@pytest.mark.parametrize("text", ["[[0.1, 0.9], [0.2, 0.8]]", "[0.1, 0.9", '[{"a": 1, "b": 2}, 3]'])
def test_what_is_no_list_of_numbers_is_named(text, tmp_path):
    text = text.replace('"', '""')
    lines = ["p,label", *(f'"[{q}, {p}]",{y}' for p, q, y in zip(P, Q, Y, strict=True))]
    lines[4] = f'"{text}",1'
    (tmp_path / "a.csv").write_text("\n".join(lines))
    with pytest.raises(ValueError, match=r"line 5, column 'p' is .* not a list of numbers"):
        read(tmp_path / "a.csv")


@pytest.mark.parametrize("target", ["number", "text", "letter"])
def test_answers_of_lm_eval_are_logits(target, tmp_path):
    """The two columns of the same log-likelihoods are one; softmax divides by their sum."""
    logs = np.log(np.clip(THREE, 1e-3, 1)) - 3
    lines = []
    for k, row in zip(CLASS.tolist(), logs.tolist(), strict=True):
        doc = {"choices": {"text": ["x", "y", "z"], "label": ["A", "B", "C"]}, "key": "ABC"[k]}
        if target != "letter":
            doc["choices"] = ["x", "y", "z"]
        answers = [[str(value), "False"] for value in row]
        gold = {"number": k, "text": str(k), "letter": "ABC"[k]}[target]
        lines.append({"doc": doc, "target": gold, "resps": [[pair] for pair in answers]})
        lines[-1] |= {"filtered_resps": answers, "filter": "none", "acc": 1.0}
    path = tmp_path / "samples.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)))
    [command], told = offers(path, "--label", "target")
    assert "Log-likelihoods of answers are logits, too" in told
    found = read(path, *command)
    expected = np.exp(logs) / np.exp(logs).sum(axis=1, keepdims=True)
    assert found.classes.astype(str).tolist() == (
        list("ABC") if target == "letter" else list("012")
    )
    np.testing.assert_allclose(found.proba, expected)


def test_of_several_lists_the_one_whose_rows_sum_to_1_is_read(tmp_path):
    one_hot, raw = np.eye(2, dtype=int)[GUESS], np.log(P / Q)
    lines = [
        json.dumps({"rawPrediction": [-r, r], "hot": h, "probability": [q, p], "label": y})
        for r, h, p, q, y in zip(*(x.tolist() for x in (raw, one_hot, P, Q, Y)), strict=True)
    ]
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    assert_event(read(tmp_path / "a.jsonl"))


@pytest.mark.parametrize("field", ["hot", "predicted_class"])
def test_integers_beside_a_list_are_no_names_of_its_entries(field, tmp_path):
    hot = np.eye(2, dtype=int)[GUESS]
    rows = zip(hot.tolist(), np.column_stack([Q, P]).tolist(), Y.tolist(), strict=True)
    lines = [json.dumps({field: h, "probability": p, "label": y}) for h, p, y in rows]
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    assert_event(read(tmp_path / "a.jsonl"))


@pytest.mark.parametrize("guessed", [("NEGATIVE", "POSITIVE"), ("Neg", "Pos")])
@pytest.mark.parametrize("known", [("neg", "pos"), ("negative", "positive")])
def test_predicted_classes_may_be_short_for_labels(guessed, known, tmp_path):
    sure = np.maximum(P, Q)
    rows = zip(np.array(guessed)[GUESS], sure, np.array(known)[Y], strict=True)
    lines = ["label,score,gold", *(",".join(map(str, row)) for row in rows)]
    (tmp_path / "a.csv").write_text("\n".join(lines))
    given = ["--label", "gold", "--score", "score", "--predicted", "label"]
    assert_event(read(tmp_path / "a.csv", *given))
