"""Numbers and words that mark missing values are named, and left out by the option that is said."""

import shlex

import numpy as np
import pandas as pd
import pytest

from skcal._validation import is_code, likely_codes
from skcal.cli.parser import parse
from skcal.cli.predictions import read_predictions
from skcal.cli.problems import FileError, Problems, read_or_list_problems

N = 120
RNG = np.random.default_rng(4)
P = RNG.uniform(0.03, 0.97, N).round(3)
Y = (RNG.random(N) < P).astype(int)
MISSING = np.arange(N) % 15 == 3
LOGITS = np.log(P / (1 - P)).round(6)


def coded(numbers, code):
    return np.where(
        MISSING, code, np.asarray(numbers).astype(str if isinstance(code, str) else float)
    )


def read(file, *more):
    labels = () if file.suffix == ".npz" else ("--label", "y")
    options = parse(["evaluate", str(file), *labels, *more])
    return read_or_list_problems(options, read_predictions)


def commands(file, *more):
    with pytest.raises(Problems) as caught:
        read(file, *more)
    lines = caught.value.lines
    shown = [line.split("python -m skcal ")[1] for line in lines if "python -m skcal" in line]
    return " ".join(lines), [shlex.split(line) for line in shown]


def follow(command):
    return read_or_list_problems(parse(command), read_predictions)


def save(path, columns):
    if path.suffix == ".npz":
        np.savez(path, proba=columns["p"], labels=columns["y"])
    elif path.suffix == ".parquet":
        pd.DataFrame(columns).to_parquet(path)
    else:
        pd.DataFrame(columns).to_csv(path, index=False)
    return path


def assert_without(found, rows=MISSING, near=1e-9):
    assert found.left_out.out.tolist() == rows.tolist()
    of_event = found.proba if found.proba.ndim == 1 else found.proba[:, 1]
    np.testing.assert_allclose(of_event, P[~rows], atol=near)
    np.testing.assert_array_equal((found.labels == found.classes[1]).astype(int), Y[~rows])


@pytest.mark.parametrize("form", ["a.csv", "a.npz", "a.parquet", "percent", "--percent", "two"])
@pytest.mark.parametrize("code", [-99, -1, 999, 9, "unknown"])
def test_codes_among_predictions_are_named_and_left_out(form, code, tmp_path):
    if code == 9 and "percent" in form:
        pytest.skip("9 is a percentage")
    if code == "unknown" and form in ("a.npz", "a.parquet"):
        pytest.skip("numbers hold no words")
    path, more = tmp_path / (form if "." in form else "a.csv"), ()
    p = 100 * P if "percent" in form else P
    columns = {"p": coded(p, code), "y": Y}
    if form == "two":
        columns = {"0": coded(1 - P, code), "1": coded(P, code), "y": Y}
    if form == "--percent":
        more = ("--percent",)
    text, offered = commands(save(path, columns), *more)
    assert f"--missing {code!r}" in text
    assert "--logits" not in text
    [command] = offered
    assert_without(follow(command))


@pytest.mark.parametrize("code", ["9", "-1", "-99", "99", "999", "unknown"])
@pytest.mark.parametrize("form", ["one", "two", "words"])
def test_codes_among_labels_are_named_and_left_out(form, code, tmp_path):
    y = np.array(["no", "yes"])[Y] if form == "words" else Y
    columns = {"p": P, "y": coded(y, code)}
    if form == "two":
        columns = {"0": 1 - P, "1": P, "y": coded(y, code)}
    file = save(tmp_path / "a.csv", columns)
    if form == "words" and code == "unknown":  # any two of three words may be the labels
        with pytest.raises(FileError, match="leave out its samples by --drop-label"):
            read(file, "--pos-label", "yes")
        assert_without(read(file, "--pos-label", "yes", "--drop-label", "unknown"))
        return
    text, offered = commands(file)
    assert f"--drop-label {code!r}" in text or f"--drop-label {code}" in text
    [command] = offered
    assert_without(follow(command))


@pytest.mark.parametrize("code", [-99, 9, None])
@pytest.mark.parametrize("option", ["--logits", "--percent"])
def test_probabilities_are_not_read_as_logits_or_percentages(option, code, tmp_path):
    file = save(tmp_path / "a.csv", {"p": P if code is None else coded(P, code), "y": Y})
    text, [command] = commands(file, option)
    assert f"as probabilities are. Leave {option} out." in text
    assert option not in command
    found = follow(command)
    if code is None:
        np.testing.assert_array_equal(found.proba, P)
    else:
        assert_without(found)


def test_log_odds_and_small_percentages_are_read_as_they_are(tmp_path):
    file = save(tmp_path / "a.csv", {"p": LOGITS, "y": Y})
    np.testing.assert_allclose(read(file, "--logits").proba, P, atol=1e-6)
    rare = (RNG.random(N) < 0.03).astype(int)
    rare[0] = 1
    file = save(tmp_path / "b.csv", {"p": P, "y": rare})  # all below 1 %, of a rare event
    with pytest.warns(UserWarning, match="Leave the option out if"):
        assert read(file, "--percent").proba.max() < 0.01


def test_a_code_among_log_odds_is_said(tmp_path):
    file = save(tmp_path / "a.csv", {"p": coded(LOGITS, -99), "y": Y})
    with pytest.warns(UserWarning, match="pass --missing -99"):
        read(file, "--logits")
    assert_without(read(file, "--logits", "--missing", "-99"), near=1e-6)


def test_weights_and_subgroups_that_equal_a_code_stay(tmp_path):
    columns = {"p": coded(P, 9), "y": Y, "w": np.full(N, 9), "age": np.full(N, 9)}
    file = save(tmp_path / "a.csv", columns)
    found = read(
        file,
        "--score",
        "p",
        "--missing",
        "9",
        "--weight",
        "w",
        "--by",
        "age",
        "--max-error",
        "1e-9",
    )
    assert (found.weight == 9).all()
    assert len(found.others["age"]) == (~MISSING).sum()


@pytest.mark.parametrize(
    ("numbers", "codes"),
    [
        ([0.2, 0.7, -99, 0.4], {-99: 1}),
        ([0.2, 0.7, -1, 9, 0.4, 0.1], {-1: 1, 9: 1}),
        ([0.2, 0.7, 1.5, 0.4], {}),
        ([0.2, 0.7, 3, 0.4], {}),
        ([0.2, -3.0, 7, 0.4], {}),  # as many as others
        ([0.2, -2.5, 0.3, 0.4], {}),
        ([1.0, 0.0, 9, 1.0], {}),  # labels
        ([0.2, np.inf, 0.3, 0.4], {}),
    ],
)
def test_codes_are_few_whole_numbers_far_away(numbers, codes):
    assert likely_codes(np.array(numbers)) == codes


@pytest.mark.parametrize(("n_words", "is_offered"), [(1, True), (3, True), (4, False)])
def test_few_words_among_numbers_may_mark_missing_ones(n_words, is_offered, tmp_path):
    p = P.astype(object)
    p[:n_words] = ["pending", "lost", "refused", "dead"][:n_words]
    file = save(tmp_path / "a.csv", {"p": p, "y": Y})
    if is_offered:
        assert_without(follow(commands(file)[1][0]), np.arange(N) < n_words)
        return
    with pytest.raises(FileError, match="Give a number, or drop the row"):
        read(file)


def test_numbers_beside_labels_that_are_codes():
    assert [k for k in range(-2, 12) if is_code(k, 1)] == [-2, -1, 7, 8, 9, 11]
    assert not is_code(9, 8)
    assert not is_code(10, 9)
