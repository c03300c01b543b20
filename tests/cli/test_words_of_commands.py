"""Commands name options where functions name arguments: the fixture ``words_of_commands`` looks."""

import ast
import re
from pathlib import Path

import numpy as np
import pytest
from python_names import python_names
from read_files import write_table
from report_cases import predictions

import skcal
from skcal.cli.commands import main

ROOT = Path(skcal.__file__).parent
FEW = ["--resamples", "19"]


def of_one_event(p, y, **more):
    return {"prob": p, "label": y, **more}


def cases():
    """Files whose reports have caveats and advice, by name, with options."""
    rng = np.random.default_rng(63)
    p = rng.beta(1, 2, 240)
    y = (rng.random(240) < p).astype(int)
    half = np.where(np.arange(240) % 2, "a", "b")
    shifted = (rng.random(240) < np.where(half == "a", p**3, p**0.3)).astype(int)
    rounded = p.round(1)
    labels, proba = predictions(240)
    several = dict(zip("abc", proba.T, strict=True)) | {"label": np.array(list("abc"))[labels]}
    return {
        "calibrated": (of_one_event(p, y), []),
        "swapped": (of_one_event(1 - p, y), []),
        "of two halves": (of_one_event(p, shifted, half=half), ["--by", "half"]),
        "of segments": (of_one_event(p, shifted, half=half), ["--segments", "half"]),
        "sorted": (of_one_event(p[np.argsort(y)], np.sort(y)), []),
        "rounded": (of_one_event(rounded, y), ["--resolution", "none"]),
        "heavy": (of_one_event(p, y, w=np.where(np.arange(240) == 7, 1e4, 1.0)), ["--weight", "w"]),
        "certain": (of_one_event((p > 0.5).astype(float), y), []),
        "equal": (of_one_event(np.full(240, 0.3), y), []),
        "of three": (several, []),
        "of three, swapped": ({**several, "a": several["b"], "b": several["a"]}, []),
        "falling": (of_one_event(p, (rng.random(240) < np.abs(2 * p - 1)).astype(int)), []),
    }


CASES = cases()
REPORT = ["report", *FEW, "--detail", "full"]
RECALIBRATE = ["recalibrate", "--save", "map.json"]
OTHERS = (["evaluate", "--max-error", "0.1"], ["test", *FEW], ["abstain", "--max-risk", "0.3"])
CALLS = [
    *((REPORT, case) for case in CASES),
    (["evaluate", "--details", "--cv", "3"], "calibrated"),
    *((RECALIBRATE, case) for case in ("falling", "heavy", "of three", "calibrated")),
    *((other, case) for other in OTHERS for case in ("calibrated", "swapped", "of three")),
]
TAKEN = {"--by": ("report", "evaluate"), "--segments": ("report",), "--resolution": ("report",)}


@pytest.mark.parametrize(("words", "case"), CALLS)
def test_commands_name_options(words, case, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    columns, options = CASES[case]
    write_table(Path("data.csv"), columns)
    used = options if not options or words[0] in TAKEN.get(options[0], words) else []
    extra = [
        x
        for name in ("half", "w")
        if name in columns and name not in used
        for x in ("--ignore", name)
    ]
    assert main([*words[:1], "data.csv", *words[1:], *used, *extra]) < 4
    assert capsys.readouterr().out


def test_too_few_folds_are_refused_with_the_options_that_help(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write_table(Path("data.csv"), CASES["calibrated"][0])
    asked = "evaluate", "data.csv", "--details", "--cv"
    assert main([*asked, "2"]) == 2
    assert "Pass --cv 3 or more, or --outer-cv." in capsys.readouterr().err
    assert main([*asked, "3"]) == main([*asked, "2", "--outer-cv", "2"]) == 0


def test_python_names_are_found():
    text = "Pass max_error, skcal.Sample or SegmentRecalibrator"
    assert python_names(text) == ["max_error", "skcal.Sample", "SegmentRecalibrator"]
    assert python_names(text, "max_error") == ["skcal.Sample", "SegmentRecalibrator"]
    assert python_names("by n_bins=5, groups= and strategy='x'") == [
        "n_bins=5",
        "groups=",
        "strategy='x'",
    ]
    assert not python_names("p = 0.05, intercept and slope, Platt (see --max-error), e.g. x.csv")


def test_functions_name_no_options():
    """Outside of the room of the commands only ``worded``, which knows who reads, has options."""
    found = []
    for path in sorted(ROOT.rglob("*.py")):
        if path.parent.name == "cli":
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        aside = {
            part
            for node in ast.walk(tree)
            if (isinstance(node, ast.Call) and getattr(node.func, "id", "") == "worded")
            or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
            for part in ast.walk(node)
        }
        found += [
            f"{path.name}:{node.lineno}: {node.value}"
            for node in ast.walk(tree)
            if isinstance(node, ast.Constant) and isinstance(node.value, str)
            if node not in aside and re.search(r"(?<![\w-])--[a-z]", node.value)
        ]
    assert not found
