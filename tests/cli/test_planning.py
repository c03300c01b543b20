"""The commands ``shift`` and ``sample-size``, and ``report --target``: numbers of the functions."""

import json

import numpy as np
import pytest
from read_files import write_table
from scipy.special import expit

from skcal.cli import planning
from skcal.cli.commands import main
from skcal.metrics import shifted_calibration_error, validation_sample_size
from skcal.report import calibration_report

N = 300


def cases(age, seed):
    rng = np.random.default_rng(seed)
    columns = {"age": rng.normal(age, 1, N), "sex": rng.choice(["F", "M", "X"], N)}
    z = columns["age"] + 0.8 * (columns["sex"] == "F")
    columns["p"], columns["clinic"] = expit(1.6 * z - 0.3), np.arange(N) // 3
    return columns, (rng.random(N) < expit(z)).astype(int)


@pytest.fixture
def files(tmp_path):
    """A file with labels, and one without, whose columns are in another order."""
    (here, y), (there, _) = cases(0, 0), cases(0.7, 1)
    write_table(tmp_path / "here.csv", {**here, "label": y})
    write_table(tmp_path / "there.csv", {name: there[name] for name in ("sex", "p", "age")})
    return tmp_path, here, y, there


def as_dict(result):
    names = "estimate", "low", "high", "shift", "effective_size", "pvalue", "n_target"
    return {name: getattr(result, name) for name in names}


@pytest.mark.filterwarnings("ignore:The weighted source does not have")
def test_shift_is_shifted_calibration_error_of_two_files(files, run):
    folder, here, y, there = files
    command = ["shift", folder / "here.csv", folder / "there.csv", "--score", "p"]
    expected = shifted_calibration_error(y, here["p"], target_proba=there["p"])
    assert run(*command) == f"{expected}\n"
    expected = shifted_calibration_error(
        y,
        here["p"],
        target_proba=there["p"],
        groups=here["clinic"].astype(str),
        sample_weight=here["age"] + 9,
    )
    write_table(folder / "here.csv", {**here, "label": y, "w": here["age"] + 9})
    found = json.loads(run(*command, "--groups", "clinic", "--weight", "w", "--json"))
    assert {name: found[name] for name in as_dict(expected)} == as_dict(expected)
    assert "weights" not in found


def test_features_of_both_files_make_it_a_covariate_shift(files, run, monkeypatch):
    folder, here, y, there = files
    pair = [
        np.column_stack([one["age"], one["sex"] == "M", one["sex"] == "X"]) for one in (here, there)
    ]
    options = {"shift": "covariate", "X": pair[0], "target_X": pair[1], "n_resamples": 20}
    expected = shifted_calibration_error(y, here["p"], target_proba=there["p"], **options)
    features = ["--feature", "age", "--feature", "sex", "--json", "--resamples", 20]
    tables = [folder / "here.csv", folder / "there.csv", "--score", "p"]
    assert json.loads(run("shift", *tables, *features)).items() >= as_dict(expected).items()
    arrays = [folder / "here.npz", folder / "there.npz"]
    for path, one in zip(arrays, (here, there), strict=True):
        np.savez(path, proba=one["p"], labels=y, age=one["age"], sex=one["sex"])
    given = {}
    monkeypatch.setattr(
        planning, "shifted_calibration_error", lambda **more: given.update(more) or expected
    )
    run("shift", *arrays, *features)
    np.testing.assert_array_equal(given["X"], pair[0])
    np.testing.assert_array_equal(given["target_X"], pair[1])
    missing = run("shift", *arrays, "--feature", "clinic", status=2)
    assert "here.npz: array 'clinic' is missing" in missing
    np.savez(arrays[1], proba=there["p"])
    assert "there.npz: has no array 'age'" in run("shift", *arrays, *features, status=2)


def test_features_that_are_missing_are_named(files, run):
    folder, _, _, there = files
    command = ["shift", folder / "here.csv", folder / "there.csv", "--score", "p", "--feature"]
    write_table(folder / "there.csv", {"p": there["p"]})
    assert "there.csv: line 1 has no column 'age'" in run(*command, "age", status=2)
    there["age"] = there["age"].astype(str)
    there["age"][7] = ""
    write_table(folder / "there.csv", there)
    message = "Column 'age' has missing numbers. Fill them in both files."
    assert message in run(*command, "age", status=2)


@pytest.mark.filterwarnings("ignore:The weighted source does not have")
def test_a_report_with_a_target_holds_the_error_there(files, run):
    folder, here, y, there = files
    command = ["report", folder / "here.csv", "--score", "p", "--target", folder / "there.csv"]
    found = json.loads(run(*command, "--resamples", 19, "--json"))
    report = calibration_report(y, here["p"], target=there["p"], n_resamples=19)
    assert found["target"] == json.loads(report.to_json())["target"]
    assert found["target"]["n_target"] == N


def test_sample_size_is_validation_sample_size(files, run):
    options = ["--prevalence", 0.1, "--c-statistic", 0.8, "--threshold", 0.2, "--max-error", 0.05]
    widths = ["--oe-width", 0.3, "--slope-width", 0.4, "--c-width", 0.08]
    expected = validation_sample_size(
        0.1, c_statistic=0.8, threshold=0.2, max_error=0.05, oe_width=0.3, slope_width=0.4,
        c_width=0.08,
    )  # fmt: skip
    assert run("sample-size", *options, *widths) == f"{expected}\n"
    found = json.loads(run("sample-size", *options, *widths, "--json"))
    assert (found["n_samples"], found["slope"]) == (expected.n_samples, expected.slope)
    numbers = ["--linear-predictor", -2, 1, "--net-benefit-width", 0.3, "--threshold", 0.2]
    found = json.loads(run("sample-size", "--prevalence", 0.16, *numbers, "--json"))
    expected = validation_sample_size(
        0.16, linear_predictor=(-2, 1), threshold=0.2, net_benefit_width=0.3
    )
    assert found["net_benefit"] == expected.net_benefit
    folder, _, _, there = files
    command = ["sample-size", folder / "there.csv", "--score", "p", "--prevalence", 0.65, "--json"]
    expected = validation_sample_size(0.65, y_proba=there["p"])
    assert json.loads(run(*command))["slope"] == expected.slope


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--c-statistic", 0.4], "skcal: --c-statistic must be a float in the range (0.5, 1.0)."),
        (["--linear-predictor", 0, -1], "skcal: --linear-predictor is [0.0, -1.0]. Pass mean"),
    ],
)
def test_errors_of_sample_size_name_options(run, options, message):
    assert run("sample-size", "--prevalence", 0.1, *options, status=2).startswith(message)


def test_sample_size_lists_only_options_of_predictions_without_labels(capsys):
    with pytest.raises(SystemExit):
        main(["sample-size", "--help"])
    listed = capsys.readouterr().out
    assert "--percent" in listed
    assert "--score" in listed
    assert not any(f"--{one} " in listed for one in ("correct", "groups", "drop-label", "id"))


def test_sample_size_asks_for_the_predictions_to_expect(capsys):
    with pytest.raises(SystemExit):
        main(["sample-size", "--prevalence", "0.1"])
    assert "pass FILE, --linear-predictor or --c-statistic" in capsys.readouterr().err
