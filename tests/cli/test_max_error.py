"""``evaluate --max-error``: 0 is shown to be below, 1 above, 3 cannot tell, 2 a wrong call."""

import json

import numpy as np
import pytest
from scipy.stats import binom

from skcal._show import share
from skcal.cli import commands
from skcal.cli.commands import main
from skcal.cli.evaluate import _lines_of_gate
from skcal.cli.gates import status_of_gate
from skcal.cli.parser import make_parser
from skcal.hypothesis_tests import equivalence_test


def save(path, p, truth, rng):
    np.savez(path, proba=p, labels=(rng.random(len(p)) < truth).astype(int))
    return str(path)


def predictions(n, off=0.0, seed=0):
    """Predictions that are too high by ``off``; their cutoff calibration error is the same."""
    rng = np.random.default_rng(seed)
    p = rng.uniform(off, 1, n)
    return p, p - off, rng


@pytest.fixture
def file(tmp_path):
    return lambda n, off=0.0, seed=0: save(tmp_path / "p.npz", *predictions(n, off, seed))


@pytest.fixture
def rare(tmp_path):
    rng = np.random.default_rng(0)
    p = rng.uniform(0.005, 0.015, 1500)
    return save(tmp_path / "rare.npz", p, p, rng)


@pytest.fixture
def three(tmp_path):
    rng = np.random.default_rng(0)
    proba = rng.dirichlet([1, 1, 1], 2000)
    labels = (rng.random((2000, 1)) > proba.cumsum(axis=1)).sum(axis=1)
    np.savez(tmp_path / "three.npz", proba=proba, labels=labels)
    return str(tmp_path / "three.npz")


@pytest.fixture
def no_searches(monkeypatch):
    monkeypatch.setattr(commands, "evaluate", lambda *_: {})


def gate(capsys, file, *options, status, limit="0.05"):
    """The gate of the JSON, and what is printed on the error stream."""
    assert main(["evaluate", file, "--max-error", limit, "--json", *options]) == status
    printed = capsys.readouterr()
    [report] = json.loads(printed.out)
    assert report["gate"]["status"] == status
    for result in report["gate"]["results"]:
        assert f"skcal: {result['reading']}\n" in printed.err
    return report["gate"], printed.err


@pytest.mark.parametrize(
    ("n", "off", "status", "verdict", "told"),
    [
        (
            1200,
            0.0,
            0,
            "PASSED: below 0.1",
            "is significantly below 0.1: the estimate is 0.0",
        ),
        (
            800,
            0.3,
            1,
            "FAILED: above 0.1",
            "is significantly above 0.1: the estimate is 0.2",
        ),
        (150, 0.0, 3, "NOT DECIDED, too few samples: undecided", "cases (here are 150)"),
        (40, 0.16, 3, "NOT DECIDED, too few samples: undecided", "no number of samples would"),
    ],
)
def test_each_status_with_its_sentence(file, capsys, n, off, status, verdict, told):
    assert main(["evaluate", file(n, off, seed=2), "--max-error", "0.1"]) == status
    printed = capsys.readouterr()
    assert printed.err == ""
    assert len(printed.out.splitlines()) <= 12  # the last ones are how the file was read
    assert printed.out.splitlines()[2] == f"{verdict} in all samples."
    text = " ".join(printed.out.split())
    assert text.count(told) == 1
    p, truth, rng = predictions(n, off, 2)
    bounds = equivalence_test((rng.random(n) < truth).astype(int), p, limit=0.1)
    limits = f"at least {bounds.low:.4f} and at most {bounds.high:.4f} (each at 95 % confidence)"
    assert f"the estimate is {bounds.estimate:.4f}, {limits}." in text


def test_json_holds_the_result_of_the_test(file, capsys, no_searches):
    found, told = gate(capsys, file(1200), status=0, limit="0.095")
    p, truth, rng = predictions(1200)
    expected = equivalence_test((rng.random(1200) < truth).astype(int), p, limit=0.095)
    [result] = found["results"]
    assert found["verdict"] == result["verdict"] == "below"
    for name in ("estimate", "low", "high", "n_samples", "n_samples_needed", "largest_gap"):
        assert result[name] == getattr(expected, name)
    assert f"frequencies may still differ by up to {expected.largest_gap:.4f}" in told
    assert "times" not in told


def test_infinitely_many_samples_are_null(file, capsys, no_searches):
    found, told = gate(capsys, file(40, 0.08, seed=2), status=3)
    assert found["results"][0]["n_samples_needed"] is None
    assert "the gap may be of any size" in told


def test_a_limit_is_compared_with_the_rate_of_rare_events(rare, capsys, no_searches, tmp_path):
    found, told = gate(capsys, rare, status=0)
    [result] = found["results"]
    assert result["rarest_outcome"] == "event rate"
    rate = result["rate_of_rarest_outcome"]
    assert result["limit_by_rate"] == 0.05 / rate
    assert f"0.05 is {0.05 / rate:.1f} times the event rate of {rate:.4f}, so that a model" in told
    assert "that always says 0 would pass" in told
    archive = np.load(rare)
    np.savez(tmp_path / "other.npz", proba=1 - archive["proba"], labels=1 - archive["labels"])
    _, told = gate(capsys, str(tmp_path / "other.npz"), status=0)
    assert f"times the rate of no event of {rate:.4f}." in told
    np.savez(tmp_path / "none.npz", proba=archive["proba"], labels=0 * archive["labels"])
    found, told = gate(capsys, str(tmp_path / "none.npz"), status=0)
    assert "the event rate is 0 here, so that no limit says much." in told
    assert found["results"][0]["limit_by_rate"] is None


def test_ece_and_several_notions_are_bounded_as_asked(three, capsys, no_searches):
    found, _ = gate(capsys, three, status=0, limit="0.08")
    assert [result["notion"] for result in found["results"]] == ["confidence"]
    archive = np.load(three)
    options = ["--error", "ece", "--notion", "confidence", "--notion", "classwise"]
    found, told = gate(capsys, three, *options, status=3, limit="0.04")
    assert "The largest ECE of 15 bins of a class (classwise) is" in told
    for result, notion in zip(found["results"], ("confidence", "classwise"), strict=True):
        asked = {"limit": 0.04, "error": "ece", "notion": notion, "confidence_level": 0.975}
        expected = equivalence_test(archive["labels"], archive["proba"], **asked)
        assert (result["error"], result["notion"]) == ("ece", notion)
        assert (result["high"], result["verdict"]) == (expected.high, expected.verdict)
        assert result["largest_gap"] == expected.largest_gap


def test_one_error_above_fails_whatever_the_others(tmp_path, capsys, no_searches):
    """Steps cancel in the cutoff error, and in ECE of 15 bins they do not."""
    rng = np.random.default_rng(0)
    k = rng.integers(15, size=4000)
    p = (k + 0.5) / 15
    path = save(tmp_path / "steps.npz", p, np.clip(p + np.where(k % 2, 0.15, -0.15), 0, 1), rng)
    options = ["--error", "cutoff", "--error", "ece"]
    found, _ = gate(capsys, path, *options, status=1)
    assert [result["verdict"] for result in found["results"]] == ["below", "above"]


@pytest.mark.parametrize("notion", ["canonical", "top-2"])
def test_errors_of_vectors_are_refused_before_the_search(three, capsys, monkeypatch, notion):
    monkeypatch.setattr(commands, "evaluate", lambda *_: pytest.fail("searched"))
    options = ["--notion", "confidence", "--notion", notion]
    assert main(["evaluate", three, "--max-error", "0.05", *options, "--quiet"]) == 2
    assert f"--notion {notion}: --max-error bounds errors of a single" in capsys.readouterr().err


def test_help_tells_each_status(capsys):
    with pytest.raises(SystemExit):
        make_parser().parse_args(["evaluate", "--help"])
    text = " ".join(capsys.readouterr().out.split())
    for words in ("with 0 if the --error is shown to be below", "with 1 if", "with 3 if"):
        assert words in text


def test_forty_samples_with_an_error_of_015_never_pass(file, capsys, no_searches):
    for seed in range(20):
        status = main(["evaluate", file(40, 0.15, seed), "--max-error", "0.05", "--quiet"])
        assert status in (1, 3)
    assert capsys.readouterr() == ("", "")


# The predictions and what happens at each; the limit is a bit below the true error, which is the
# same as the cutoff error, since all gaps are on one side.
WRONG = {
    "one range": (lambda rng, n: rng.uniform(0, 1, n), lambda p: p - 0.4 * (p > 0.8)),
    "rare events": (lambda rng, n: rng.uniform(0.005, 0.015, n), lambda p: 2 * p),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", WRONG)
def test_an_error_above_the_limit_passes_in_at_most_5_percent(name, tmp_path, no_searches):
    draw, truth = WRONG[name]
    p = np.sort(draw(np.random.default_rng(1), 400_000))
    path = np.append(0, np.cumsum(truth(p) - p)) / len(p)
    limit = 0.99 * np.ptp(path)  # the largest range of a cumulative sum is that of its ends
    passed, n_files = 0, 0
    for n in (40, 600):
        for seed in range(25):
            rng = np.random.default_rng([seed, n])
            p = draw(rng, n)
            file = save(tmp_path / "p.npz", p, truth(p), rng)
            status = main(["evaluate", file, "--max-error", f"{limit:.6f}", "--quiet"])
            assert status in (0, 1, 3)
            passed, n_files = passed + (status == 0), n_files + 1
    assert passed <= binom.ppf(0.999, n_files, 0.05)


LETTERS = "abcdefghijklmnopqrstuvwxyz"


def with_subgroups(path, sizes, off):
    """Samples of subgroups a, b, …, of which only the last has an error, ``off``."""
    rng = np.random.default_rng(4)
    where = np.repeat(list(LETTERS)[: len(sizes)], sizes)
    p = rng.uniform(off, 1, len(where))
    truth = p - off * (where == where[-1])
    np.savez(path, proba=p, labels=(rng.random(len(p)) < truth).astype(int), where=where)
    return str(path)


@pytest.mark.parametrize(
    ("sizes", "off", "status", "verdicts"),
    [
        ([1000, 1000], 0.0, 0, ["below", "below", "below"]),
        ([1000, 1000], 0.3, 1, ["above", "below", "above"]),
        ([1500, 500], 0.24, 1, ["unknown", "below", "above"]),
        ([1000, 60], 0.0, 3, ["below", "below", "unknown"]),
        ([1000, 150], 0.0, 3, ["below", "below", "unknown"]),
    ],
)
def test_every_subgroup_decides(tmp_path, capsys, no_searches, sizes, off, status, verdicts):
    path = with_subgroups(tmp_path / "p.npz", sizes, off)
    limit, options = "0.1" if off != 0.24 else "0.06", ["--by", "where", "--error", "cutoff"]
    found, told = gate(capsys, path, *options, status=status, limit=limit)
    assert [result["subgroup"] for result in found["results"]] == ["all", "where = a", "where = b"]
    assert [result["verdict"] for result in found["results"]] == verdicts
    assert "skcal: where = b: The cutoff calibration error is" in told
    data = np.load(path)
    last = data["where"] == "b"
    level = 0.95 if status == 0 else 1 - 0.05 / 3
    more = {"limit": float(limit), "error": "cutoff", "confidence_level": level}
    parts = np.ones(len(last), dtype=bool), ~last, last
    for result, rows in zip(found["results"], parts, strict=True):
        test = equivalence_test(data["labels"][rows], data["proba"][rows], **more)
        assert (result["low"], result["high"]) == (test.low, test.high)
        assert result["confidence_level"] == level


def test_many_subgroups_are_a_table_the_worst_first_and_all_with_details(
    tmp_path, capsys, monkeypatch
):
    gates, decide = [], commands.gate_of_errors
    monkeypatch.setattr(
        commands, "gate_of_errors", lambda *given: gates.append(decide(*given)) or gates[0]
    )
    path = with_subgroups(tmp_path / "p.npz", [100] * 25 + [1500], 0.25)
    options = ["--max-error", "0.05", "--error", "cutoff", "--by", "where"]
    assert main(["evaluate", path, *options]) == 1
    printed = capsys.readouterr()
    shown, more, told = printed.out.partition("… and 3 more rows: --all-rows shows them\n")
    lines = (shown + more).splitlines()
    head = next(k for k, line in enumerate(lines) if line.split()[:1] == ["predicted"])
    assert len(lines) == head + 1 + 24 + 2  # of 25 rows 24, then the level and this line
    assert "calibration may change along the rows" in printed.err  # sorted by subgroup, as they are
    assert told.startswith("4,000 samples of two classes.")
    assert " ".join(lines[head].split()) == "predicted observed error limit 0.05 at least at most"
    assert max(map(len, lines)) <= 100
    above = [line for line in lines if "  above  " in line]
    assert above == lines[head + 1 : head + 1 + len(above)] != []
    names = ", ".join(line.split("  ")[0] for line in above)
    told = " ".join(lines[2 : head - 1])
    assert told.startswith(f"FAILED: above 0.05 in {names}; undecided in where = ")
    assert told.endswith(" (joint confidence 95 %).")
    each = "Each limit has 99.8 % confidence, so that all 27 rows hold together with 95 %."
    assert each in lines
    data = np.load(path)
    name = above[0].split("  ")[0]
    worst = (data["where"] == name.removeprefix("where = ")) | (name == "all samples")
    said, happened = (share(data[name][worst].mean()) for name in ("proba", "labels"))
    assert f" {said} {happened} " in " ".join(lines[head + 1].split())
    assert main(["evaluate", path, *options, "--all-rows"]) == 1
    every = capsys.readouterr().out
    assert "more row" not in every
    assert all(f"\nwhere = {name}  " in every for name in LETTERS)
    lines = _lines_of_gate(gates[0]["results"], full=True, most=10)  # with --details
    text = " ".join(" ".join(lines).split())
    assert all(f"where = {name}: The cutoff calibration error is" in text for name in LETTERS)


def test_rows_and_first_lines_hold_names_that_differ(tmp_path, capsys):
    rng = np.random.default_rng(0)
    p, n = rng.uniform(size=900), 900
    names = "Verified", "Not Verified", "Source Verified"
    where = np.array(names)[np.arange(n) % 3]
    y = rng.uniform(size=n) < p**2
    path = str(tmp_path / "p.npz")
    np.savez(path, proba=p, labels=y.astype(int), verification_status=where)
    options = ["--max-error", "0.05", "--by", "verification_status", "--all-rows"]
    assert main(["evaluate", path, *options]) == 1
    printed = capsys.readouterr().out
    told = " ".join(printed.split())
    assert all(f"verification_status = {name}" in told for name in names)  # in the first lines
    rows = [line.split("  ")[0] for line in printed.splitlines() if "Verified  " in line]
    assert len(set(rows)) == len(rows) == 3
    assert max(map(len, printed.splitlines())) <= 100
    assert all(f"verification_status = {name}  " in printed for name in names)  # there is room


@pytest.mark.parametrize(
    ("verdicts", "sentence"),
    [
        (
            ("above", "unknown"),
            "FAILED: above 0.1 in all samples (ECE, 15 bins, binary); undecided in all "
            "samples (cutoff error, binary)",
        ),
        (
            ("below", "unknown"),
            "NOT DECIDED, too few samples: undecided in all samples (cutoff error, binary); below "
            "0.1 in all samples (ECE, 15 bins, binary)",
        ),
        (
            ("unknown", "unknown"),
            "NOT DECIDED, too few samples: undecided in all samples",
        ),
        (("below", "below"), "PASSED: below 0.1 in all samples"),
    ],
)
def test_the_status_names_errors_of_one_part_if_their_verdicts_differ(verdicts, sentence):
    facts = {"subgroup": "all", "notion": "binary", "confidence_level": 0.975, "limit": 0.1}
    results = [
        {**facts, "error": error, "verdict": verdict}
        for error, verdict in zip(("ece", "cutoff"), verdicts, strict=True)
    ]
    assert status_of_gate(results) == f"{sentence} (joint confidence 95 %)."


def test_each_kind_of_calibration_has_its_question(three, tmp_path, capsys):
    few = {name: values[:300] for name, values in np.load(three).items()}
    np.savez(tmp_path / "few.npz", **few)
    options = ["--notion", "classwise", "--notion", "confidence", "--error", "cutoff"]
    assert main(["evaluate", str(tmp_path / "few.npz"), *options, "--max-error", "0.2"]) == 0
    questions = [line for line in capsys.readouterr().out.splitlines() if line.endswith("?")]
    assert [line.split(". ")[1] for line in questions] == [
        "Does each class happen as often as its probability says?",
        "Are they right as often as their largest probability says?",
    ]


@pytest.mark.slow
def test_calibrated_subgroups_fail_in_at_most_5_percent_of_files(tmp_path, no_searches):
    """Eight subgroups whose error is the limit: one is shown to be above in few files."""
    failed = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        where, p = np.repeat(list("abcdefgh"), 200), rng.uniform(0.1, 1, 1600)
        labels = (rng.random(1600) < p - 0.1).astype(int)
        np.savez(tmp_path / "p.npz", proba=p, labels=labels, where=where)
        command = ["evaluate", str(tmp_path / "p.npz"), "--max-error", "0.1", "--by", "where"]
        failed += main([*command, "--quiet"]) == 1
    assert failed <= binom.ppf(0.999, 100, 0.05)
