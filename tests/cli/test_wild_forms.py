"""Files as programs write them: what happened is told from features, and rows from remarks."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from advice_of_commands import numbers_of, offers, run, write

N = 300
RNG = np.random.default_rng(3)
P = RNG.uniform(0.02, 0.98, N).round(4)
Y = (RNG.random(N) < P).astype(int)
WORDS = np.array(["no", "yes"])[Y]
SEX = np.array(["m", "f"])[RNG.integers(0, 2, N)]
LOAN = np.array(["no", "yes"])[RNG.integers(0, 2, N)]
RATE = RNG.uniform(0.6, 5, N).round(3)  # that may be a percentage by its numbers alone


@pytest.fixture(autouse=True)
def in_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def rights(*more):
    """The numbers of the plain table of the same predictions."""
    write("right.csv", ("p", P), ("label", Y))
    return numbers_of(" ".join(["evaluate right.csv --json", *more]))


@pytest.mark.parametrize("name", ["Death ≤ 30 days", "default_12m", "Churned", "instance.y"])
def test_a_column_named_as_what_happened_is_offered_and_no_feature(name):
    write("a.csv", ("sex", SEX), ("loan", LOAN), (name, WORDS), ("p", P))
    told, commands = offers("evaluate a.csv")
    assert f"What happened may be in {name!r} (" in told
    assert "'sex' (" in told  # named, but behind it
    [command] = commands
    assert numbers_of(f"{command} --json") == rights()


def test_labels_are_the_words_that_were_predicted():
    """As SPSS writes beside the group that it predicts."""
    predicted = np.where(P > 0.5, "yes", "no")
    write("a.csv", ("sex", SEX), ("Sepsis", WORDS), ("PRE_1", P), ("PGR_1", predicted))
    told, commands = offers("evaluate a.csv")
    assert "'PGR_1' (" in told
    assert {command.split("--label ")[1].split()[0] for command in commands} == {"Sepsis"}
    assert rights() in [numbers_of(f"{command} --json") for command in commands]


def test_lists_of_probabilities_stand_before_numbers_that_could_be_percentages():
    rows = [
        {
            "instance": {"loan": loan, "rate": rate, "y": y},
            "prediction": {"classes": ["no", "yes"], "scores": [round(1 - p, 4), p]},
        }
        for loan, rate, y, p in zip(LOAN, RATE.tolist(), WORDS, P.tolist(), strict=True)
    ]
    Path("a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    told, [command] = offers("evaluate a.jsonl")
    assert "--percent" not in told
    assert "one 'instance.loan' belong together" not in told  # which has two values
    np.testing.assert_allclose(numbers_of(f"{command} --json")[:30], rights()[:30], rtol=1e-6)


def test_columns_named_as_percentages_stand_before_ages():
    age = RNG.integers(20, 90, N)
    write("a.csv", ("age", age), ("risk (%)", (100 * P).round(2)), ("death", Y))
    told, commands = offers("evaluate a.csv --label death")
    assert "Columns of probabilities may be risk (%)." in told
    [command] = commands
    found, wanted = numbers_of(f"{command} --json"), rights()
    np.testing.assert_allclose(found[:30], wanted[:30], rtol=1e-6)


def test_a_table_that_a_database_prints_below_a_line_of_its_own_is_read():
    lines = ["Changed database context to 'RISK'.", "id|grade|p|label", "--|-----|---|-----"]
    lines += [f"{k}|{'AB'[k % 2]}|{p}|{y}" for k, (p, y) in enumerate(zip(P, Y, strict=True))]
    Path("a.csv").write_text("\n".join([*lines, "", f"({N} rows affected)"]) + "\n")
    for more in ("", " --sep '|'"):
        status, out, told = run(f"evaluate a.csv --score p{more}")
        assert status == 0, told
        assert "The header is line 2; the lines above it are not read." in " ".join(out.split())
        assert numbers_of(f"evaluate a.csv --score p{more} --json") == rights()


def test_a_file_that_begins_with_a_sample_is_told_from_one_with_a_header():
    rows = [f"{word} {1 - p:.4f} {p}" for word, p in zip(WORDS, P, strict=True)]
    Path("a.txt").write_text("\n".join(rows) + "\n")
    told, _ = offers("evaluate a.txt --sep ' '")
    assert "line 1 holds numbers where names of columns are expected" in told
    read = "--header none --label column1 --score column3 --pos-label yes --json"
    assert numbers_of(f"evaluate a.txt --sep ' ' {read}") == rights()
    first = P.argmax()  # whose numbers are whole, and may be names
    sure = np.where(np.arange(N) == first, 1.0, P)
    order = np.r_[first, np.delete(np.arange(N), first)]
    rows = [f"{WORDS[k]},{1 - sure[k]:.4g},{sure[k]:g}" for k in order]
    Path("b.csv").write_text("\n".join(rows) + "\n")
    told, _ = offers("evaluate b.csv")
    assert f"line 1 names a column {str(WORDS[first])!r}, which stands in its rows, too." in told
    assert "If that line is a sample, pass --header none" in told
    write("c.csv", ("p", sure[order]), ("label", Y[order]))
    assert numbers_of(f"evaluate b.csv {read}") == numbers_of("evaluate c.csv --json")


@pytest.mark.parametrize("below", [["Total,0.5,9,"], ["Total,0.5,9,", ",,,", "Note: all cases,,,"]])
@pytest.mark.parametrize("remark", [[], ["Source: registry of 2024,,,"]])
def test_totals_and_remarks_at_the_end_are_no_samples(below, remark):
    rows = [f"{k},{p},{y},{p}" for k, (p, y) in enumerate(zip(P, Y, strict=True))]
    Path("a.csv").write_text("\n".join(["id,p,label,q", *rows, *below, *remark]) + "\n")
    status, out, told = run("evaluate a.csv --score p")
    assert status == 0, told
    said = " ".join(out.split())
    assert f"Line {N + 2}, 'Total', holds totals and is not read." in said
    for text in [*below[2:], *remark]:
        assert f"{text.split(',')[0]!r}, is a remark and is not read." in said
    assert numbers_of("evaluate a.csv --score p --json") == rights()


def test_a_row_with_words_in_one_cell_is_a_remark_only_at_the_end():
    rows = [f"{k},{p},{y}" for k, (p, y) in enumerate(zip(P, Y, strict=True))]
    Path("a.csv").write_text("\n".join(["id,p,label", *rows, "Source: a registry,,"]) + "\n")
    assert numbers_of("evaluate a.csv --score p --json") == rights()
    rows.insert(9, "Centre of the north,,")
    Path("a.csv").write_text("\n".join(["id,p,label", *rows]) + "\n")
    assert "line 11, column 'p' is empty" in offers("evaluate a.csv --score p")[0]


def test_the_day_of_what_did_not_happen_is_no_name_of_a_group():
    """A column that is missing wherever the event did not happen has one outcome a value."""
    day = np.where(Y == 1, [f"2024-01-{1 + k % 28:02d}" for k in range(N)], "NULL")
    write("a.csv", ("p", P), ("label", Y), ("default_date", day))
    status, out, told = run("evaluate a.csv --score p --max-error 0.3")
    assert status in (0, 3), told
    assert "--groups" not in out + told


def test_the_types_of_columns_below_a_header_are_said_to_be_no_samples():
    rows = [f"{word}\t{1 - p:.4f}\t{p}" for word, p in zip(WORDS, P, strict=True)]
    head = ["label\tno\tyes", "no yes\tcontinuous\tcontinuous", "class\tmeta\tmeta"]
    Path("a.tab").write_text("\n".join([*head, *rows]) + "\n")
    status, out, told = run("evaluate a.tab")
    assert status == 0, told
    assert "The two rows below the header describe the columns, no samples." in " ".join(
        out.split()
    )
    found, wanted = numbers_of("evaluate a.tab --json"), rights()
    np.testing.assert_allclose(found[:8], wanted[:8], atol=1e-6)


def test_percentages_beside_a_code_for_missing_are_read():
    """As a German spreadsheet writes them, with #NV where a formula found nothing."""
    cells = [f"{100 * p:.1f} %".replace(".", ",") for p in P.round(3)]
    for code in ("#NV", "k. A."):
        shown = [code if k % 9 == 4 else cell for k, cell in enumerate(cells)]
        rows = [f"{cell};{word}" for cell, word in zip(shown, WORDS, strict=True)]
        text = "\n".join(["Wahrscheinlichkeit;Rückfall", *rows]).replace("yes", "ja")
        Path("a.csv").write_text(text.replace(";no", ";nein"), encoding="cp1252")
        _, [command] = offers("evaluate a.csv --label Rückfall")
        assert command.endswith("--pos-label ja")
        keep = np.arange(N) % 9 != 4
        write("b.csv", ("p", P.round(3)[keep]), ("label", Y[keep]))
        found, wanted = numbers_of(f"{command} --json"), numbers_of("evaluate b.csv --json")
        np.testing.assert_allclose(found[:8], wanted[:8], rtol=1e-6)


def test_the_column_whose_rows_share_an_outcome_stands_before_names_of_users():
    """Forecasts of several users for each question, which has one answer."""
    question, user = np.arange(N) % 30, RNG.integers(0, 20, N)
    happened = (RNG.random(30) < 0.4).astype(int)[question]
    columns = [("p", P), ("label", happened)]
    columns += [("user", np.char.add("u", user.astype(str))), ("topic", question)]
    write("a.csv", *columns)
    for more, words in (("", "pass --groups 'topic'. "), ("user", "'topic' in place of 'user'. ")):
        given = f"--groups {more}" if more else ""
        said = " ".join(run(f"evaluate a.csv --score p {given}")[1].split())
        assert words in said
        assert "and the rows of a value have one outcome" in said
        told, commands = offers(f"evaluate a.csv --score p --max-error 0.3 {given}")
        right = numbers_of("evaluate a.csv --score p --max-error 0.3 --groups topic --json")
        assert numbers_of(f"{commands[0]} --json") == right, told
    write("a.csv", *columns, ("part", question // 3))
    said = " ".join(run("evaluate a.csv --score p --groups part")[1].split())
    assert "belong together" not in said  # since each topic lies within a part


@pytest.mark.parametrize("comment", ["# Forecasts, of rain", "# Forecasts"])
def test_a_header_below_comments_whose_fields_blanks_separate_is_read(comment):
    rows = [f"  {k}  {p}   {y}" for k, (p, y) in enumerate(zip(P, Y, strict=True))]
    Path("a.txt").write_text("\n".join([comment, "# id   p   label", *rows]) + "\n")
    told, [command] = offers("evaluate a.txt --score p")
    assert "If blanks separate its fields, not commas, pass --sep ' '." in told
    assert numbers_of(f"{command} --json") == rights()


def test_amounts_are_no_classes():
    write("a.csv", ("p", P), ("rain", (RNG.random(N) * 9).round(1)))
    told, commands = offers("evaluate a.csv --label rain --score p")
    assert not commands
    assert "amounts and not classes. No option makes an event of an amount" in told
    write("a.csv", ("p", P), ("rain", Y))
    assert numbers_of("evaluate a.csv --label rain --score p --json") == rights()


def test_a_third_label_of_few_samples_has_its_option_named_first():
    few = np.where(np.arange(N) % 20 == 0, "void", WORDS)
    write("a.csv", ("p", P), ("label", few))
    told, commands = offers("evaluate a.csv --pos-label yes")
    assert not commands
    assert "If 'void' marks no outcome, pass --drop-label 'void'." in told
    keep = few != "void"
    write("b.csv", ("p", P[keep]), ("label", Y[keep]))
    followed = numbers_of("evaluate a.csv --pos-label yes --drop-label void --json")
    assert followed == numbers_of("evaluate b.csv --json")


def test_the_mean_of_all_confidences_is_said():
    three = RNG.dirichlet([2, 2, 2], N).round(3)
    three[:, 2] = (1 - three[:, 0] - three[:, 1]).round(3)
    label = np.array(list("abc"))[RNG.integers(0, 3, N)]
    write("a.csv", *zip("abc", np.abs(three).T, strict=True), ("label", label))
    _, out, told = run("evaluate a.csv --normalize")
    mean = 100 * np.abs(three).max(axis=1).mean()
    assert f"All confidences average {mean:.0f} %." in " ".join(out.split()), told


@pytest.mark.parametrize("n_values", [2, 12, 13])
@pytest.mark.parametrize("fewest", [29, 30])
def test_a_column_of_few_names_of_several_rows_each_may_name_subgroups(n_values, fewest):
    region = np.resize(np.arange(n_values), 1200 - fewest) % max(n_values - 1, 1)
    region = np.char.add("r", np.r_[region, np.full(fewest, n_values - 1)].astype(str))
    region = np.random.default_rng(0).permutation(region)
    p = np.random.default_rng(1).uniform(0.05, 0.95, 1200).round(4)
    y = (np.random.default_rng(2).random(1200) < p).astype(int)
    write("a.csv", ("p", p), ("label", y), ("region", region))
    _, out, told = run("evaluate a.csv --score p --max-error 0.3")
    assert ("--by region" in out) == (n_values <= 12 and fewest >= 30), told


def test_a_monitor_says_that_errors_of_subgroups_can_cancel():
    """A channel that is too high and one that is too low give no alarm together."""
    channel = np.array(["app", "store"])[np.arange(3000) % 2]
    rng = np.random.default_rng(4)
    p = rng.uniform(0.1, 0.4, 3000).round(4)
    y = (rng.random(3000) < p * np.where(channel == "app", 0.6, 1.4)).astype(int)
    write("a.csv", ("p", p), ("label", y), ("channel", channel))
    status, out, told = run("monitor all.json a.csv --score p")
    assert (status, "No alarm" in out) == (0, True), told
    assert "Column 'channel' may name subgroups, whose errors can cancel" in out
    option = re.search(r"(--only 'channel=…') and a STATE of its own", out)[1]
    for value, side in (("app", "less"), ("store", "more")):
        only = option.replace("…", value)
        status, out, told = run(f"monitor {value}.json a.csv --score p {only}")
        assert (status, f"happens {side} often than predicted" in out) == (1, True), told
        assert "may name subgroups" not in out
        assert "off from the first one on" in out or "since about sample" in out


def test_rows_of_questions_and_of_their_ids_are_no_samples():
    """As Qualtrics writes below the names, with line breaks in the questions."""
    head = ["Q1,Q2", '"How likely,\nin your view?","What\nhappened?"']
    head.append('"{""ImportId"":""QID1""}","{""ImportId"":""QID2""}"')
    rows = [f"{p},{word}" for p, word in zip(P, WORDS, strict=True)]
    Path("a.csv").write_text("\n".join([*head, *rows]) + "\n")
    status, out, told = run("evaluate a.csv --score Q1 --label Q2 --pos-label yes")
    assert status == 0, told
    assert "The two rows below the header describe the columns" in " ".join(out.split())
    assert numbers_of("evaluate a.csv --score Q1 --label Q2 --pos-label yes --json") == rights()


def test_classes_beside_columns_of_json_name_the_entries_of_lists():
    """As one saves what scikit-learn's cross_val_predict returns."""
    three = RNG.dirichlet([2, 2, 2], N).round(3)
    three[:, 2] = (1 - three[:, 0] - three[:, 1]).round(3)
    names, place = ["a", "b", "c"], RNG.integers(0, 3, N)
    label = np.array(names)[place]
    saved = {
        "model": "forest",
        "classes": names,
        "y_true": label.tolist(),
        "y_prob": np.abs(three).tolist(),
        "auc": [0.7, 0.8, 0.6, 0.7, 0.7],
    }
    Path("a.json").write_text(json.dumps(saved))
    write("b.csv", *zip(names, np.abs(three).T, strict=True), ("label", label))
    wanted = numbers_of("evaluate b.csv --json")
    for more in ("", " --score y_prob"):
        found = numbers_of(f"evaluate a.json --label y_true{more} --json")
        np.testing.assert_allclose(found[:12], wanted[:12])


def test_missing_marks_of_databases_and_labels_of_tensors_are_read():
    p = np.where(np.arange(N) % 7 == 3, "\\N", P.astype(str))
    y = np.where(np.arange(N) % 7 == 5, "\\N", Y.astype(str))
    write("a.csv", ("p", p), ("label", y))
    _, [command] = offers("evaluate a.csv --score p")
    keep = ~np.isin(np.arange(N) % 7, (3, 5))
    write("b.csv", ("p", P[keep]), ("label", Y[keep]))
    wanted = numbers_of("evaluate b.csv --json")
    found = numbers_of(f"{command} --json")
    np.testing.assert_allclose(found[:12], wanted[:12])
    code = np.where(np.arange(N) % 7 == 3, "\\X", P.astype(str))
    write("c.csv", ("p", code), ("label", Y))
    told, [command] = offers("evaluate c.csv --score p")
    assert r"marks missing values, pass --missing '\X'." in told
    assert len(numbers_of(f"{command} --json")) == len(wanted)
    rows = [f'"tensor({p})","tensor({y}, device=\'cuda:0\')"' for p, y in zip(P, Y, strict=True)]
    Path("d.csv").write_text("\n".join(["p,label", *rows]) + "\n")
    assert numbers_of("evaluate d.csv --score p --json") == rights()


def test_signs_around_the_name_of_a_class_are_parts_of_it():
    pair = np.array(["[UNK]", "UNK"])[Y], np.array(["grade(2)", "2"])[Y]
    for words in pair:
        first, second = (str(words[k == Y][0]) for k in (0, 1))
        write("a.csv", (first, 1 - P), (second, P), ("label", words))
        found, wanted = numbers_of("evaluate a.csv --json"), rights()
        assert found[0] == N
        assert sorted(found[1:3]) == sorted(wanted[1:3])


def test_labels_with_a_sign_are_the_classes_of_columns_without():
    """As programs for labels of 1 and -1 write them."""
    write("a.csv", ("-1", (1 - P).round(4)), ("1", P), ("label", np.array(["-1", "+1"])[Y]))
    write("right.csv", ("no", (1 - P).round(4)), ("yes", P), ("label", WORDS))
    found, wanted = (numbers_of(f"evaluate {name} --json") for name in ("a.csv", "right.csv"))
    assert found == wanted


def test_amounts_are_no_names_of_what_has_several_samples():
    """Sums of money are rounded and repeat; names of customers are and do not."""
    amounts = 100 * RNG.integers(10, 100, N)
    write("a.csv", ("LOAN", amounts), ("p", P), ("label", Y))
    write("b.csv", ("LOAN", RNG.integers(10, 100, N)), ("p", P), ("label", Y))
    told, [command] = offers("evaluate a.csv")
    assert "--groups" not in told
    assert "--groups" not in run(command)[2]
    told, commands = offers("evaluate b.csv")
    assert "pass --groups 'LOAN'" in told
    assert len(commands) == 2


def test_the_truth_values_of_json_are_no_event_and_the_event():
    values = [False, True]
    rows = [{"p": p, "label": values[y]} for p, y in zip(P.tolist(), Y.tolist(), strict=True)]
    Path("a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert numbers_of("evaluate a.jsonl --json") == rights()
    other = [{"false": round(1 - row["p"], 4), "label": row["label"]} for row in rows]
    Path("b.jsonl").write_text("".join(json.dumps(row) + "\n" for row in other))
    of_no = numbers_of("evaluate b.jsonl --pos-label false --json")
    assert numbers_of("evaluate b.jsonl --json") == of_no
