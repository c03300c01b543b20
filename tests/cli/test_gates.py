"""Exit status, silence, the standard input, compressed tables and columns that are left out."""

import gzip
import io
import json
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from read_files import read_predictions
from report_cases import USUAL

from skcal import Sample
from skcal.cli import commands
from skcal.cli.commands import main
from skcal.cli.gates import resamples_needed
from skcal.cli.problems import FileError
from skcal.hypothesis_tests import compare_calibration
from skcal.report.compare import read_subgroups

HEADER = "id,no,yes,label,site"


def rows(n=120, power=4.0, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.uniform(0.05, 0.95, n)
    y = rng.random(n) < p**power
    return [
        f"{k},{1 - a!r},{a!r},{'yes' if b else 'no'},s{k % 3}"
        for k, (a, b) in enumerate(zip(p.tolist(), y, strict=True))
    ]


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "p.csv"
    path.write_text("\n".join([HEADER, *rows()]) + "\n")
    return path


IGNORED = ["--id", "id", "--ignore", "site"]


def test_test_exits_with_1_where_calibration_is_refuted(table, tmp_path, capsys):
    arguments = ["test", str(table), *IGNORED, "--resamples", "99"]
    assert main(arguments) == 0
    assert main([*arguments, "--alpha", "0.05"]) == 1
    assert "H0: calibrated. 120 predictions" in capsys.readouterr().out
    calibrated = tmp_path / "c.csv"
    calibrated.write_text("\n".join([HEADER, *rows(power=1.0)]) + "\n")
    arguments = ["test", str(calibrated), *arguments[2:], "--alpha", "0.05"]
    assert main(arguments) == 0
    assert "This does not show that the error is small" in capsys.readouterr().err
    assert main([*arguments, "--quiet"]) == 0
    assert capsys.readouterr() == ("", "")


def test_too_few_resamples_cannot_tell(table, capsys):
    """The smallest p-value of 99 resamples is 0.01."""
    arguments = ["test", str(table), *IGNORED, "--resamples", "99", "--quiet", "--alpha"]
    assert main([*arguments, "0.01"]) == 1
    assert capsys.readouterr() == ("", "")
    assert main([*arguments, "0.005"]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "--alpha 0.005. Pass --resamples 199 or more." in printed.err
    arguments[arguments.index("99")] = "199"
    assert main([*arguments, "0.005"]) == 1


def test_by_class_each_pvalue_is_adjusted_too(tmp_path, capsys):
    rng = np.random.default_rng(0)
    proba = rng.dirichlet([1, 1, 1], 200)
    file = str(tmp_path / "three.npz")
    np.savez(file, proba=proba, labels=rng.integers(3, size=200))
    arguments = ["test", file, "--notion", "classwise", "--alpha", "0.02", "--quiet"]
    assert main([*arguments, "--resamples", "148"]) == 2
    assert "Pass --resamples 149 or more." in capsys.readouterr().err
    assert main([*arguments, "--resamples", "149"]) == 1


@pytest.mark.parametrize("alpha", ["0.001", pytest.param("0.0003", marks=pytest.mark.slow)])
def test_a_small_level_draws_as_many_resamples_as_it_needs(table, capsys, alpha, monkeypatch):
    monkeypatch.setattr(Sample, "default_resamples", USUAL)
    table.write_text("\n".join([HEADER, *rows(n=400)]) + "\n")
    arguments = ["test", str(table), *IGNORED, "--json"]
    assert main([*arguments, "--alpha", alpha]) == 1
    printed = capsys.readouterr()
    smallest = min(fact["pvalue_holm"] for fact in json.loads(printed.out))
    assert float(alpha) / 6 < smallest <= float(alpha)
    assert f"Calibration is rejected at level {alpha}" in printed.err
    assert main(arguments) == 0
    printed = capsys.readouterr()
    assert {fact["pvalue"] for fact in json.loads(printed.out)} == {0.001}
    assert main(arguments[:-1]) == 0
    assert "Calibration is rejected at level 0.05" in capsys.readouterr().out  # without a gate


@pytest.mark.parametrize("n_tests", [1, 2, 3, 7, 30])
def test_no_fewer_resamples_could_reject(n_tests):
    for alpha in np.concatenate([np.arange(1, 1000) / 1000, np.arange(1, 100) * 1e-6]):
        needed = resamples_needed(n_tests, alpha)
        assert n_tests * (1 / (1 + needed)) <= alpha
        assert n_tests / needed > alpha * (1 - 1e-12) if needed else alpha >= n_tests


# compare --fail-if-worse


@pytest.fixture
def models(tmp_path):
    """Files of a calibrated model and of one that squares its probabilities."""
    rng = np.random.default_rng(0)
    p = rng.uniform(size=400)
    labels = (rng.random(400) < p).astype(int)
    files = [str(tmp_path / name) for name in ("good.npz", "bad.npz")]
    for file, proba in zip(files, (p, p**2), strict=True):
        np.savez(file, proba=proba, labels=labels)
    return files


def test_a_comparison_fails_only_where_the_second_is_worse(models, capsys, monkeypatch):
    good, bad = models
    report = SimpleNamespace(to_dict=dict, summary=lambda detail: detail)
    monkeypatch.setattr(commands, "calibration_report", lambda **_: report)
    y, p = np.load(good)["labels"], np.load(good)["proba"]
    test = compare_calibration(y, p, p**2)
    assert main(["compare", good, bad, "--fail-if-worse", "--json"]) == 1
    printed = capsys.readouterr()
    gate = json.loads(printed.out)["gate"]
    assert gate["status"] == 1
    assert gate["reading"] in printed.err
    assert (gate["pvalue"], gate["estimate"]) == (test.pvalue, test.estimate)
    assert main(["compare", bad, good, "--fail-if-worse"]) == 0
    said = capsys.readouterr().err
    assert "The calibration error of the second is smaller than that of the first model" in said
    assert main(["compare", good, good, "--fail-if-worse", "--quiet"]) == 0
    assert main(["compare", good, bad, "--fail-if-worse", "--quiet"]) == 1
    assert capsys.readouterr() == ("", "")
    assert main(["compare", good, bad, "--fail-if-worse", "--alpha", "1e-200"]) == 0
    capsys.readouterr()
    assert main(["compare", good, bad, "--json"]) == 0
    assert "gate" not in json.loads(capsys.readouterr().out)


# All commands


@pytest.mark.parametrize("command", ["report", "compare", "plot"])
def test_resamples_are_those_of_intervals_and_bands(command, table, tmp_path, capsys, monkeypatch):
    taken = []

    def noted(*_, n_resamples, **__):
        taken.append(n_resamples)
        raise ValueError("enough")

    monkeypatch.setattr("skcal.cli.commands.calibration_report", noted)
    monkeypatch.setattr("skcal.cli.commands.ReliabilityDisplay.from_predictions", noted)
    more = {"compare": [str(table)], "plot": ["--out", str(tmp_path / "p.svg")]}.get(command, [])
    assert main([command, str(table), *more, *IGNORED, "--resamples", "37"]) == 2
    assert taken == [37]


def test_what_is_quiet_leaves_the_output_of_other_threads(table, monkeypatch):
    """The standard output is that of the whole process."""
    seen, before = [], sys.stdout
    monkeypatch.setattr(
        commands, "_predictions_of", lambda *_, **__: seen.append(sys.stdout) or 1 / 0
    )
    with pytest.raises(ZeroDivisionError):
        main(["test", str(table), "--quiet"])
    assert seen == [before]


def test_the_standard_input_and_compressed_tables_are_read_alike(table, tmp_path, monkeypatch):
    ignored = ("id", "site")
    plain = read_predictions(table, ignore=ignored)
    packed = tmp_path / "p.csv.gz"
    packed.write_bytes(gzip.compress(table.read_bytes()))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(table.read_bytes())))
    for other in (read_predictions(packed, ignore=ignored), read_predictions("-", ignore=ignored)):
        assert other.proba.tolist() == plain.proba.tolist()
        assert other.labels.tolist() == plain.labels.tolist()
    assert plain.classes.tolist() == ["no", "yes"]
    with pytest.raises(FileError, match=r"holds .* GB, more than"):
        read_predictions(packed, ignore=ignored, max_bytes=len(packed.read_bytes()) + 1)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(packed.read_bytes())))
    assert read_predictions("-", ignore=ignored).proba.tolist() == plain.proba.tolist()


def test_columns_that_are_left_out_must_exist_and_may_be_groups_too(table):
    with pytest.raises(FileError, match=r"no column 'weight'.* Name a column by --ignore"):
        read_predictions(table, ignore=("weight",))
    with pytest.raises(FileError, match=r"no column 'id,site'.* Repeat --ignore for each column"):
        read_predictions(table, ignore=("id,site",))
    found = read_predictions(table, by=["site"], ignore=("id",))
    assert found.others["site"].tolist()[:4] == ["s0", "s1", "s2", "s0"]
    assert found.proba.shape == (120, 2)
    found = read_predictions(table)
    assert found.proba.shape == (120, 2)
    assert found.notes == ("Columns that are no classes are not read: id, site.",)


def test_groups_are_in_the_order_of_their_numbers():
    groups = np.repeat(["site 10", "site 2", "B", "a9", "3"], 2)
    assert [name for name, _ in read_subgroups(groups, 10)] == ["3", "B", "a9", "site 2", "site 10"]
    assert [name for name, _ in read_subgroups(np.repeat([10, 9, 1], 2), 6)] == ["1", "9", "10"]
