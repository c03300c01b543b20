"""The commands report, test, plot and compare: what they print is what the functions say."""

import json
import sys

import numpy as np
import pytest
from read_files import write_table
from report_cases import binary, predictions

from skcal import Sample
from skcal._show import on_command_line
from skcal.cli.commands import main
from skcal.cli.parser import make_parser
from skcal.displays import ReliabilityDisplay
from skcal.hypothesis_tests import adjust_pvalues, calibration_test
from skcal.metrics import expected_calibration_error
from skcal.report import calibration_report
from skcal.report.views import reliability

COMMANDS = ["evaluate", "report", "test", "plot", "compare"]
FEW = ["--resamples", 19]


def save(path, power=1.7, **more):
    labels, proba = predictions(200)
    proba = predictions(200, power=power)[1] if power != 1.7 else proba
    np.savez(path, proba=proba, labels=labels, **more)
    return str(path)


@pytest.fixture
def npz(tmp_path):
    return save(tmp_path / "predictions.npz")


def test_report_prints_and_writes_what_the_function_returns(run, npz, tmp_path):
    labels, proba = predictions(200)
    options = {"n_bins": 7, "n_resamples": 19, "random_state": 3}
    expected = calibration_report(labels, proba, name="predictions.npz", **options)
    page = tmp_path / "out.html"
    assert run("report", npz, "--bins", 7, "--seed", 3, "--html", page, *FEW) == f"{expected}\n"
    expected.save(tmp_path / "expected.html")
    assert page.read_bytes() == (tmp_path / "expected.html").read_bytes()


@pytest.mark.parametrize("limit", [0.01, 0.3])
def test_reports_take_the_limit_of_the_user(run, npz, limit):
    labels, proba = predictions(200)
    options = {"max_error": limit, "n_resamples": 19, "name": "predictions.npz"}
    expected = calibration_report(labels, proba, **options)
    status = {"above": 1, "below": 0}[expected.overall.gate.verdict]
    with on_command_line():  # whose sentences name options
        text = f"{expected}\n"
    assert run("report", npz, "--max-error", limit, *FEW, status=status) == text
    assert (f"less than your limit of {limit:g}" in str(expected)) == (limit > 0.1)


def test_report_as_json_tells_how_it_was_made(run, npz):
    report = json.loads(run("report", npz, "--json", "--strategy", "quantile", *FEW))
    assert report["overall"]["ece"]["strategy"] == "quantile"
    assert report["settings"]["random_state"] == 0


def test_report_by_columns_and_of_groups_of_samples(run, tmp_path):
    where, site = np.where(np.arange(200) % 2, "odd", "even"), np.arange(200) // 100
    path = save(tmp_path / "p.npz", where=where, site=site, patient=np.arange(200) // 5)
    options = ["--by", "where", "--by", "site", "--groups", "patient"]
    found = json.loads(run("report", path, *options, "--json", *FEW))
    names = ["where = even", "where = odd", "site = 0", "site = 1"]
    assert [part["name"] for part in found["subgroups"]] == names
    assert "groups flipped" in found["overall"]["test"]["method"]


@pytest.fixture
def patients(tmp_path):
    """Two files of the same samples, the first with columns that describe them."""
    labels, proba = predictions(120)
    rng = np.random.default_rng(0)
    columns = {
        "age": rng.integers(20, 80, 120).astype(float),
        "sex": rng.choice(["F", "M", ""], 120),
        "patient": np.arange(120) // 2,
        "id": np.arange(120),
    }
    columns["age"][:30] = np.nan
    cells = {"label": labels, **dict(zip("012", proba.T, strict=True))}
    for name, more in (("a.csv", columns), ("b.csv", {"id": columns["id"]}), ("c.csv", columns)):
        write_table(tmp_path / name, cells | more)
        text = (tmp_path / name).read_text().replace(",nan,", ",,")
        (tmp_path / name).write_text(text)
    return tmp_path, labels, proba, columns


def test_report_of_segments_of_numbers_and_names(run, patients):
    folder, labels, proba, columns = patients
    columns["sex"] = np.where(columns["sex"] == "", None, columns["sex"].astype(object))
    features = {name: columns[name] for name in ("age", "sex")}
    expected = calibration_report(
        labels, proba, segments=features, n_resamples=19, name="a.csv", by=columns["patient"] % 2
    )
    left = ["--ignore", "id", "--ignore", "patient"]
    chosen = ["--segments", "age", "--segments", "sex"]
    shown = json.loads(run("report", folder / "a.csv", *chosen, *left, "--json", *FEW))
    assert shown["segments"] == json.loads(expected.to_json())["segments"]
    names = [segment["name"] for segment in shown["segments"]["worst"]]
    assert any(name.startswith("age in (") for name in names)
    assert any("missing" in name for name in names)
    assert run("report", folder / "a.csv", "--segments", "odds", status=2).endswith(
        "Name a column by --segments.\n"
    )


def test_decimal_commas_are_those_of_every_column(run, patients):
    folder = patients[0]
    text = (folder / "a.csv").read_text().replace(",", ";").replace(".", ",")
    (folder / "d.csv").write_text(text)
    options = ["--segments", "age", "--weight", "age", "--ignore", "sex", "--json", *FEW]
    options = [*options, "--ignore", "id", "--ignore", "patient"]
    (folder / "a.csv").write_text((folder / "a.csv").read_text().replace(",,", ",30,"))
    (folder / "d.csv").write_text((folder / "d.csv").read_text().replace(";;", ";30;"))
    first = json.loads(run("report", folder / "a.csv", *options))
    second = json.loads(run("report", folder / "d.csv", *options, "--sep", ";", "--decimal", ","))
    assert first["segments"] == second["segments"]
    assert first["overall"]["scores"] == second["overall"]["scores"]
    (folder / "d.tsv").write_text((folder / "d.csv").read_text().replace(";", "\t"))
    third = json.loads(run("report", folder / "d.tsv", *options, "--decimal", ","))
    assert first["overall"]["scores"] == third["overall"]["scores"]


def test_compare_reads_what_describes_the_samples_from_the_first_file(run, patients):
    folder, labels, proba, columns = patients
    groups = columns["patient"].astype(str)
    report = calibration_report(labels, proba, compare=proba, groups=groups, n_resamples=19)
    expected = json.loads(report.to_json())
    options = ["--id", "id", "--groups", "patient", "--segments", "age", "--json", *FEW]
    for second, by in (("b.csv", ["--by", "sex"]), ("c.csv", ["--ignore", "sex"])):
        shown = json.loads(run("compare", folder / "a.csv", folder / second, *options, *by))
        names = {part["name"] for part in shown["subgroups"]}
        assert names == ({"sex = F", "sex = M", "sex = missing"} if "--by" in by else set())
        assert shown["overall"]["test"] == expected["overall"]["test"]
        assert shown["comparison"]["tests"] == expected["comparison"]["tests"]
        assert shown["segments"]["n_segments"] > 2


@pytest.mark.usefixtures("reports_once")
def test_compare_is_a_report_of_two(run, npz, tmp_path):
    second = save(tmp_path / "second.npz", power=1.0)
    text = run("compare", npz, second, *FEW)
    assert text.startswith("Comparison of calibration: predictions.npz and second.npz\n")
    assert "predictions.npz minus second.npz" in run(
        "compare", npz, second, *FEW, "--detail", "full"
    )
    found = json.loads(run("compare", npz, second, "--json", *FEW))
    assert found["comparison"]["second"]["name"] == "second.npz"


@pytest.mark.parametrize("command", ["report", "compare"])
def test_two_columns_can_be_a_binary_question(run, tmp_path, command):
    labels, proba = binary()
    path = tmp_path / "p.npz"
    np.savez(path, proba=np.column_stack([1 - proba, proba]), labels=labels)
    files = [path, path][: 1 + (command == "compare")]
    options = ["--json", "--notion", "binary", "--pos-label", 0, *FEW]
    found = json.loads(run(command, *files, *options))
    assert found["notion"] == "binary"
    assert found["overall"]["overview"]["classes"] == [1, 0]
    assert found["overall"]["ece"]["estimate"] == expected_calibration_error(
        labels, 1 - proba, labels=[1, 0]
    )


def test_files_of_the_same_name_are_told_apart(run, npz, tmp_path):
    (tmp_path / "b").mkdir()
    second = save(tmp_path / "b" / "predictions.npz", power=1.0)
    found = json.loads(run("compare", npz, second, "--json", *FEW))
    names = found["overall"]["name"], found["comparison"]["second"]["name"]
    assert names == (npz, second)


def test_compare_refuses_other_samples(run, npz, tmp_path):
    labels, proba = predictions(200)
    np.savez(tmp_path / "other.npz", proba=proba, labels=np.roll(labels, 1))
    error = run("compare", npz, tmp_path / "other.npz", status=2)
    assert "has the label" in error
    assert error.count("\n") == 1


def test_test_prints_each_test_with_holms_pvalue(run, npz):
    labels, proba = predictions(200)
    asked = ["--notion", "confidence", "--notion", "canonical"]
    found = json.loads(run("test", npz, *asked, "--json", "--resamples", 99, "--seed", 5))
    options = {"n_resamples": 99, "random_state": 5}
    expected = [
        calibration_test(labels, proba, notion="confidence", **options),
        calibration_test(labels, proba, notion="canonical", **options),
    ]
    assert [one["pvalue"] for one in found] == [one.pvalue for one in expected]
    assert found[0]["statistic_pvalues"] == expected[0].statistic_pvalues
    holm = adjust_pvalues([one.pvalue for one in expected]).tolist()
    assert [one["pvalue_holm"] for one in found] == holm
    table = run("test", npz, "--notion", "classwise", "--resamples", 99)
    assert "H0: calibrated. 200 predictions" in table
    assert "Holm over 3 classes" in table


@pytest.mark.parametrize(
    ("ending", "start"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")]
)
def test_plot_writes_the_same_figure_each_time(run, npz, tmp_path, ending, start):
    files = [tmp_path / f"{k}.{ending}" for k in (1, 2)]
    by_class = ["--notion", "classwise", "--method", "isotonic"] if ending == "svg" else []
    for file in files:
        assert run("plot", npz, "--out", file, *by_class, *FEW) == ""
    assert files[0].read_bytes().startswith(start)
    assert files[0].read_bytes() == files[1].read_bytes()
    texts = ("class 2", "95 % intervals")  # the second of the legend
    assert all((text.encode() in files[0].read_bytes()) == bool(by_class) for text in texts)


@pytest.mark.parametrize("notion", ["confidence", "classwise"])
def test_plot_shows_the_numbers_of_the_report(run, npz, tmp_path, monkeypatch, notion):
    drawn = []
    monkeypatch.setattr(ReliabilityDisplay, "save", lambda display, path: drawn.append(display))
    run("plot", npz, "--out", tmp_path / "p.svg", "--notion", notion)
    [display] = drawn
    if notion == "confidence":
        report = calibration_report(*predictions(200), random_state=0)
        expected = reliability([report.overall], notion, report.settings).panels
    else:
        options = {"notion": notion, "n_resamples": 999, "random_state": 0, "plot": False}
        expected = ReliabilityDisplay.from_predictions(*predictions(200), **options).panels
    for found, panel in zip(display.panels, expected, strict=True):
        assert found.number == panel.number
        assert found.ranges == panel.ranges
        np.testing.assert_array_equal(found.band_low, panel.band_low)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["plot", "{npz}", "--out", "figure.bmp"], "unknown format '.bmp'. Use .png or .svg or"),
        (["plot", "{npz}", "--out", "{tmp}/absent/figure.png"], "absent or cannot be written"),
        (["plot", "{npz}", "--out", "{tmp}/folder.png"], "is a folder"),
        (["report", "{npz}", "--notion", "binary"], "needs 1-D predictions or two columns"),
        (["compare", "{npz}", "{npz}", *2 * ["--notion", "binary"]], "compare takes one"),
        (["plot", "{npz}", "--out", "f.png", *2 * ["--notion", "binary"]], "plot takes one"),
        (["test", "{npz}", "--pos-label", "1"], "--pos-label '1' is not one of two classes"),
        (["plot", "{npz}", "--out", "f.png", "--notion", "canonical"], "conditions on a vector"),
        (["report", "{npz}", "--html", "report.docx"], "unknown format '.docx'. Use .html"),
        (["report", "{tmp}/absent.npz"], "No such file"),
        (["report", "{npz}", "--by", "where"], "array 'where' is missing"),
        (["report", "{npz}", "--max-size", "1e-9"], "Raise --max-size"),
        (["test", "{npz}", "--notion", "nonsense"], "nonsense"),
        (["compare", "{npz}", "{tmp}/absent.npz"], "No such file"),
        (["evaluate", "{npz}", "--notion", "top-4"], "top-4"),
        (["evaluate", "{npz}", "--details", "--cv", "1000"], "1000"),
    ],
)
def test_bad_requests_are_one_line_and_status_2(run, npz, tmp_path, arguments, message):
    (tmp_path / "folder.png").mkdir()
    arguments = [one.format(npz=npz, tmp=tmp_path) for one in arguments]
    error = run(*arguments, status=2)
    assert error.startswith("skcal: ")
    assert message in error
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("report p.csv --bins 0", "argument --bins: "),
        ("report p.csv --bins 1000000000000", "argument --bins: "),
        ("report p.csv --seed x", "argument --seed: "),
        ("test p.csv --seed -1", "argument --seed: "),
        (f"test p.csv --seed {2**32}", "argument --seed: "),
        ("evaluate p.csv --cv 1", "argument --cv: "),
        ("evaluate p.csv --cv 100000", "argument --cv: "),
        ("evaluate p.csv --outer-cv x", "argument --outer-cv: "),
        ("test p.csv --resamples 1000000000", "argument --resamples: "),
        ("test p.csv --n-jobs 100000", "argument --n-jobs: "),
        ("test p.csv --n-jobs 0", "argument --n-jobs: "),
        *[(f"test p.csv --max-size={size}", "--max-size") for size in ("0", "nan", "-1", "x")],
        ("test p.csv --alpha 1.5", "--alpha"),
        ("test p.csv --bins 3", "unrecognized arguments: --bins 3"),
        ("test p.csv --soft ", "--soft"),
        ("test p.csv --cv 3", "unrecognized arguments: --cv 3"),
        ("report a.csv --notion classwise", "is not an option of report"),
        ("plot a.csv --out a.png --json", "unrecognized arguments: --json"),
        ("compare - -", "the standard input can be one file, not both"),
        ("report p.csv --outer-cv 3", "--outer-cv is for --search: pass both"),
        ("compare a.csv b.csv --outer-cv 3", "--outer-cv is for --search: pass both"),
        ("compare a.csv b.csv --alpha 0.05", "--alpha is the level of --fail-if-worse"),
        ("evaluate p.csv --max-error 0.1 --error l1", "--error l1: without assumptions this"),
        ("evaluate p.csv --max-error 0.1 --error ece --error log", "--error log: without"),
        ("evaluate p.csv --by sex", "--by decides for subgroups by --max-error: pass that"),
        ("evaluate p.csv --error ece", "--error ece is what --max-error can bound"),
        ("evaluate p.csv --max-error 1", "no calibration error is above 1"),
        ("report p.csv --max-error 5", "no calibration error is above 1"),
        ("evaluate p.csv --max-error 5", "Errors are in units of probability: 5 % is 0.05"),
        ("evaluate p.csv --max-error 5%", "'5%' is not a number, such as 0.05"),
        ("evaluate p.csv --max-error 0", "0.0 must be above 0"),
        ("evaluate p.csv --max-error nan", "nan must be above 0"),
        ("recalibrate fit.csv", "nothing to do: pass APPLY and --out NEW, or --save MAP"),
        ("recalibrate fit.csv new.csv", "--out NEW is missing"),
        ("recalibrate fit.csv --out out.csv", "APPLY is missing"),
        ("recalibrate fit.csv new.csv --map map.json --out o.csv", "pass APPLY alone"),
        ("recalibrate new.csv --map map.json", "--out NEW is missing"),
        ("recalibrate new.csv --map m --out o.csv --logits", "--logits is not an option"),
        ("recalibrate new.csv --map m --out o.csv --save n", "--save is not an"),
        ("recalibrate new.csv --map m --soft v", "--soft"),
    ],
)
def test_a_wrong_call_is_refused_with_the_usage_of_its_command(arguments, message, capsys):
    with pytest.raises(SystemExit) as stopped:
        main(arguments.split(" "))
    assert stopped.value.code == 2
    error = capsys.readouterr().err
    command = next(one for one in arguments.split() if one in [*COMMANDS, "recalibrate"])
    assert error.startswith(f"usage: skcal {command} [-h]")
    assert message in error


def test_a_test_draws_as_many_outcomes_as_a_report(run, monkeypatch, npz):
    drawn = []
    counted = property(lambda sample: drawn.append(len(sample)) or 99)
    monkeypatch.setattr(Sample, "default_resamples", counted)
    [found] = json.loads(run("test", npz, "--notion", "confidence", "--json"))
    assert set(drawn) == {200}
    expected = calibration_test(*predictions(200), n_resamples=99, random_state=0)
    assert found["pvalue"] == expected.pvalue


def test_options_before_a_command_are_told_where_they_stand(capsys):
    with pytest.raises(SystemExit):
        main(["--json", "evaluate", "a.csv"])
    assert "evaluate a.csv (options stand after the command)" in capsys.readouterr().err


def test_without_matplotlib_the_extra_is_named_before_the_work(run, monkeypatch, npz):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    assert "pip install matplotlib" in run("plot", npz, "--out", "f.png", status=2)


def test_without_matplotlib_a_page_has_no_figures(run, monkeypatch, npz, tmp_path):
    for name in ("matplotlib", "matplotlib.pyplot", "matplotlib.figure"):
        monkeypatch.setitem(sys.modules, name, None)
    run("report", npz, "--html", tmp_path / "page.html", *FEW)
    assert "no figures, since matplotlib" in (tmp_path / "page.html").read_text("utf-8")


@pytest.mark.parametrize("command", [*COMMANDS, "recalibrate"])
@pytest.mark.filterwarnings("ignore:The squared calibration error is estimated as -")
def test_every_command_reads_rounded_rows_and_positive_labels(command, run, tmp_path):
    labels, proba = predictions(60)
    rounded = tmp_path / "p.npz"
    np.savez(rounded, proba=proba.round(2), labels=labels)
    more = {"compare": [rounded, *FEW], "plot": ["--out", tmp_path / "p.svg", *FEW]}
    more |= {"evaluate": [], "recalibrate": ["--save", tmp_path / "m.json"]}
    more = more.get(command, FEW)
    assert "pass --normalize" in run(command, rounded, *more, status=2)
    run(command, rounded, *more, "--normalize")


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example(command, capsys):
    with pytest.raises(SystemExit) as status:
        main([command, "--help"])
    assert status.value.code == 0
    text = capsys.readouterr().out
    assert f"example: python -m skcal {command} " in text
    example = " ".join(text.split("example: python -m skcal ")[1].split())
    assert make_parser().parse_args(example.split()).command == command


def test_compare_joins_by_id(tmp_path, capsys):
    rng = np.random.default_rng(0)
    p, name = rng.uniform(size=60).round(3), [f"s{k}" for k in range(60)]
    y = (rng.uniform(size=60) < p).astype(int)
    rows = [f"{a},{b},{c}" for a, b, c in zip(name, y, p, strict=True)]
    order = rng.permutation(60)
    (tmp_path / "a.csv").write_text("\n".join(["id,label,p", *rows, ""]))
    (tmp_path / "b.csv").write_text("\n".join(["id,label,p", *np.array(rows)[order], ""]))
    files, options = (
        [str(tmp_path / f) for f in ("a.csv", "b.csv")],
        ["--json", "--resamples", "19"],
    )
    main(["compare", *files, "--id", "id", *options])
    facts = json.loads(capsys.readouterr().out)
    assert facts["comparison"]["second"]["scores"] == facts["overall"]["scores"]
    assert main(["compare", *files, "--ignore", "id", *options]) == 2
    assert "in the same order" in capsys.readouterr().err
    for text, message in (
        (rows[0], "s0' names several rows. Name each once. If a question has several answers"),
        ("new,1,.5", "has no row of id 'new'"),
    ):
        (tmp_path / "b.csv").write_text("\n".join(["id,label,p", *rows[:-1], text, ""]))
        assert main(["compare", *files, "--id", "id", *options]) == 2
        assert message in capsys.readouterr().err


def test_one_score_of_a_table_with_other_columns(tmp_path, capsys):
    rows = "\n".join(f"{k % 2},{0.3 + 0.4 * (k % 2)},{k},x" for k in range(20))
    (tmp_path / "p.csv").write_text(f"label,risk,age,site\n{rows}\n")
    assert main(["test", str(tmp_path / "p.csv"), "--score", "risk", "--resamples", "19"]) == 0
    assert "p-value" in capsys.readouterr().out
    assert main(["test", str(tmp_path / "p.csv"), "--score", "odds"]) == 2
    assert "Name a column by --score" in capsys.readouterr().err
