"""Every claim of README and the pages is held by a test, a study, or the code of its page.

``claims.py`` collects them. ``claims.txt`` says what holds those that their page does not hold:

- ``tests/…::name``: a test, which asserts something; ``tests/….py``: the study that measured it;
- ``doc/evidence/….csv``: a table that a study wrote, in which a number of the claim stands;
- ``this page``: the code beside it, in which its numbers stand;
- ``source``: a theorem, or the literature that the page names;
- ``definition``: what a word or an argument means, or advice, without a measured number;
- ``example``: the same with a number, of an example or a level;
- ``measured once``: without a script that measures it again. There must not be more of them.
"""

import ast
import contextlib
import csv
import inspect
import io
import re
from functools import cache
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from claims import READ, claims_of, is_held, numbers_in, open_claims, shown_by, stand_in
from page_code import snippets
from pages import DOC, TEXTS

from skcal import (
    ReliabilityDisplay,
    calibration_error_interval,
    calibration_report,
    displays,
    hypothesis_tests,
    metrics,
)
from skcal.cli.commands import main
from skcal.datasets import make_tempered

ROOT = DOC.parent
FILE = Path(__file__).with_name("claims.txt")
MEASURED_ONCE = 10


def entries(text):
    """Return (page, beginning of a sentence) → what holds it."""
    found, page = {}, None
    for line in text.splitlines():
        if match := re.fullmatch(r"\[(.+)\]", line):
            page = match[1]
        elif line:
            beginning, _, evidence = line.rpartition(" => ")
            found[page, beginning.removesuffix(" …")] = evidence
    return found


ENTRIES = entries(FILE.read_text(encoding="utf-8"))


def of_claim(claim, listed):
    return [key for key in listed if key[0] == claim.page and claim.sentence.startswith(key[1])]


@cache
def functions(path):
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}


def asserts(path, name):
    """Whether a test asserts something, perhaps by a helper of its file."""
    node = functions(path).get(name)
    if node is None:
        return False
    for part in ast.walk(node):
        called = getattr(part, "func", None)
        word = getattr(called, "attr", getattr(called, "id", ""))
        if isinstance(part, ast.Assert) or word.startswith(("assert", "raises", "warns")):
            return True
        if word in functions(path) and word != name and asserts(path, word):
            return True
    return False


def refute(claim, evidence):
    """Return why a claim is not held by what is named, None if it is."""
    numbers = numbers_in(claim.sentence)
    if evidence.startswith("tests/"):
        path, _, name = evidence.partition("::")
        if not (ROOT / path).is_file() or (name and not asserts(path, name)):
            return "there is no such test or study"
    elif evidence.startswith("doc/evidence/"):
        with (ROOT / evidence).open(newline="", encoding="utf-8") as file:
            cells = " ".join(cell for row in csv.reader(file) for cell in row)
        if not any(stand_in(cells, numbers)):
            return "none of its numbers stands there"
    elif evidence == "this page":
        shown = shown_by(READ[claim.page])
        if not shown or not all(stand_in(shown, numbers)):
            return "the code of the page does not show its numbers"
    elif evidence == "definition":
        return f"it has the numbers {numbers}" if numbers else None
    elif evidence not in ("example", "source", "measured once"):
        return "no such evidence"
    return None


CLAIMS = open_claims()


def test_every_claim_is_held_by_something():
    missing = [claim[:2] for claim in CLAIMS if len(of_claim(claim, ENTRIES)) != 1]
    assert missing == [], "say in claims.txt what holds it, or change the sentence"
    wrong = {
        claim[:2]: (ENTRIES[key], reason)
        for claim in CLAIMS
        for key in of_claim(claim, ENTRIES)
        if (reason := refute(claim, ENTRIES[key]))
    }
    assert wrong == {}


def test_no_entry_is_left_of_a_claim_that_is_gone():
    used = {key for claim in CLAIMS for key in of_claim(claim, ENTRIES)}
    assert set(ENTRIES) - used == set()
    assert sum(value == "measured once" for value in ENTRIES.values()) <= MEASURED_ONCE


def test_claims_are_collected_and_wrong_evidence_is_seen():
    found = [claim for page, text in READ.items() for claim in claims_of(page, text)]
    assert len(found) > 400
    assert len({claim.page for claim in found}) > 0.8 * len(READ)
    text = (
        "A title for all\n===============\n\nNone here, `all=0.5`. It never fails in practice.\n"
        "It takes 377 s.\n\n>>> print('all')\nall\n\n* In 4.5 % of the sets, see `x`.\n\n"
        ".. code-block:: text\n\n   always 0.3\n\nWith scikit-learn 1.9 too.\n"
    )
    claims = claims_of("a.rst", text)
    told = [claim.sentence for claim in claims]
    assert told == [
        "It never fails in practice.",
        "It takes 377 s.",
        "In 4.5 % of the sets, see `x`.",
    ]
    assert [is_held(claim, "4.5 3.2") for claim in claims] == [False, False, True]
    assert refute(claims[0], "definition") is None
    assert refute(claims[1], "definition")
    assert refute(claims[0], "tests/test_readme.py::test_that_is_gone")
    assert refute(claims[0], "tests/documentation/test_claims.py::entries")
    assert refute(claims[1], "doc/evidence/packages.csv")
    assert refute(claims[1], "somebody said so")


# Claims that have no test elsewhere


def cases():
    rng = np.random.default_rng(0)
    p = rng.uniform(size=600)
    yield "too high", p, rng.uniform(size=600) < p**1.6, {}
    yield "calibrated", p, rng.uniform(size=600) < p, {}
    yield "tenths", np.round(p, 1), rng.uniform(size=600) < p, {}
    yield "rare", p / 30, rng.uniform(size=600) < p / 15, {}
    yield "clusters", p, rng.uniform(size=600) < p**1.6, {"groups": np.arange(600) // 4}
    yield "weights", p, rng.uniform(size=600) < p**1.6, {"sample_weight": 1 + p}
    data = make_tempered(400, temperature=2.0, n_truth_draws=0, random_state=0)
    yield "classes", data.proba, data.labels, {}


@pytest.mark.parametrize("case", list(cases()), ids=lambda case: case[0])
def test_reports_diagrams_and_evaluate_print_the_same_error(case, tmp_path):
    _, p, y, options = case
    error = calibration_error_interval(y.astype(int), p, **options)
    digits = re.findall(r"\d\.\d+", error.sentence().partition("with")[0])
    report = calibration_report(y.astype(int), p, n_resamples=99, **options)
    matplotlib.use("Agg")
    title = ReliabilityDisplay.from_predictions(y.astype(int), p, **options).ax_.get_title()
    columns = {"groups": "groups", "sample_weight": "weight"}
    named = {columns[name]: value for name, value in options.items()}
    np.savez(tmp_path / "one.npz", proba=p, labels=y.astype(int), **named)
    asked = [word for name in named for word in (f"--{name}", name)]
    with contextlib.redirect_stdout(io.StringIO()) as out:
        main(["evaluate", str(tmp_path / "one.npz"), *asked])
    for text in (str(report), title, out.getvalue()):
        missing = [one for one in digits if one not in text]
        assert not missing, text
    assert len(digits) >= 2


def test_formats_of_a_report_hold_what_the_pages_say(tmp_path):
    rng = np.random.default_rng(0)
    age, p = rng.integers(30, 90, 800), rng.uniform(size=800)
    y = (rng.uniform(size=800) < np.where(age > 70, p / 2, p)).astype(int)
    site = {"site": np.where(np.arange(800) % 2, "north", "south")}
    report = calibration_report(y, p, by=site, segments={"age": age}, n_resamples=99)
    texts = {}
    for ending in ("tex", "csv", "html", "txt", "json"):
        report.save(tmp_path / f"report.{ending}")
        texts[ending] = (tmp_path / f"report.{ending}").read_text(encoding="utf-8")
    assert texts["tex"].count(r"\begin{tabular}") == 2  # all patients, and the sites
    assert all("north" in text for text in texts.values())
    segment = report.segments.segments[0].name
    assert segment.startswith("age > ")
    words = {
        ending: segment.replace(">", "&gt;") if ending == "html" else segment for ending in texts
    }
    rows = texts["tex"].replace("$>$", ">").split("\n%")[0]
    assert segment not in rows
    assert segment not in texts["csv"]
    assert all(words[ending] in texts[ending] for ending in ("html", "txt", "json"))


def test_every_metric_test_and_display_takes_weights():
    taken = {}
    for room in (metrics, hypothesis_tests, displays):
        for name in room.__all__:
            thing = getattr(room, name)
            function = getattr(thing, "from_predictions", thing)
            parameters = inspect.signature(function).parameters
            if "y_true" in parameters:
                taken[name] = "sample_weight" in parameters
    assert [name for name, takes in taken.items() if not takes] == []
    assert len(taken) > 40


def test_every_leaf_leads_to_a_page_with_code():
    leaves = re.findall(r"-> (\S+)$", TEXTS["howto/index.rst"], re.M)
    pages = [f"{leaf[1:] if leaf[0] == '/' else f'howto/{leaf}'}.rst" for leaf in leaves]
    assert [page for page in pages if not snippets(TEXTS[page])] == []
    assert len(pages) > 25


def test_ratios_to_the_smooth_error_are_those_of_the_table_of_accuracy():
    with (DOC / "evidence" / "accuracy.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    ratios = {
        row["curve"]: float(row["calibration error"]) / float(row["smooth ECE"]) for row in rows
    }
    calibrated = [ratio for curve, ratio in ratios.items() if curve.startswith("calibrated")]
    others = [ratio for curve, ratio in ratios.items() if not curve.startswith("calibrated")]
    assert (len(calibrated), len(others)) == (5, 16)
    said = re.search(
        r"(\S+) to (\S+) times its error on five calibrated curves; (\S+) to (\S+) times on the "
        "sixteen others",
        " ".join(TEXTS["validation/index.rst"].split()),
    )
    found = [min(calibrated), max(calibrated), min(others), max(others)]
    np.testing.assert_allclose([float(one) for one in said.groups()], found, atol=0.005)


def test_what_classes_share_is_said_as_their_table_has_it():
    with (DOC / "evidence" / "accuracy_classes.csv").open(newline="", encoding="utf-8") as file:
        rows = {row["predictions"]: row for row in csv.DictReader(file)}
    names = ["calibration error", "prior 0.25", "each class alone", "smooth ECE", "15 bins"]
    errors = {
        cell: np.array([float(row[name].split()[0]) for name in names])
        for cell, row in rows.items()
    }
    assert all(error[0] < min(error[3:]) for error in errors.values())
    page = " ".join(TEXTS["validation/index.rst"].split())
    said = re.search(
        r"of ten classes therefore read (\S+) of .* and those of 100 classes (\S+)\. T", page
    )
    by_ten = ["calibrated, 10", "calibrated, 10 of a network"]
    for cell, text in zip((*by_ten, "calibrated, 100"), said.group(1, 1, 2), strict=True):
        np.testing.assert_allclose(errors[cell][0] / errors[cell][2], float(text), atol=0.01)
    read = float(re.search(r"Calibrated predictions then read (\S+),", page)[1])
    for cell in by_ten:
        np.testing.assert_allclose(errors[cell][1] / errors[cell][2], read, atol=0.005)
    said = re.search(
        r"grows by (\d+) % with the power 0.93, (\d+) % .*, and (\d+) % with one", page
    )
    cells = "overconfident, power 0.93", "odds times or by 1.1", "one class, odds times 1.35"
    grows = [100 * (errors[cell][1] / errors[cell][0] - 1) for cell in cells]
    np.testing.assert_allclose([float(text) for text in said.groups()], grows, atol=0.5)


@pytest.mark.parametrize(("d", "loss"), [(2, 7.8), (3, 12.6), (4, 16.2)])
def test_the_best_test_of_several_directions_loses_what_the_joint_test_says(d, loss):
    """By Neyman and Pearson it rejects where Σ cosh(μ x_k) is large."""
    mu = 2.8015818  # of a two-sided test with a power of 80 %
    x = np.random.default_rng(0).normal(size=(1_000_000, d))
    parts = np.cosh(mu * x)
    bound = np.quantile(parts.sum(axis=1), 0.95)
    power = np.mean(parts[:, 1:].sum(axis=1) + np.cosh(mu * (x[:, 0] + mu)) > bound)
    assert abs(100 * (0.8 - power) - loss) < 0.2  # four standard errors
