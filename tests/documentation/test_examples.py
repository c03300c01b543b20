"""Every example of the gallery runs without a warning and shows what its text says."""

import runpy
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest
from scipy.stats import binom

from skcal.datasets import make_tempered
from skcal.metrics import expected_calibration_error

EXAMPLES = {
    path.stem.removeprefix("plot_"): path
    for path in sorted(Path(__file__).parents[2].joinpath("examples").rglob("plot_*.py"))
}
SLOW = {"lower_risk", "test_levels", "which_family"}  # ten seconds or more each
SHORTER = {  # unless slow
    "imbalanced": {"[58_200, 1800]": "[19_400, 600]"},
    "digits": {"RandomForestClassifier(": "RandomForestClassifier(30, "},
    "estimate_distributions": {"(2, 10, 100, 1000)": "(2, 10, 100, 20)", "range(15)": "range(8)"},
    "simplex": {"200_000": "40_000", "n_estimators=50": "n_estimators=20"},
    "million": {"100_000": "20_000"},
    "bins_by_risk": {"3000, 30_000": "2000, 10_000"},
    "classifiers_table": {'"5 neighbours": KNeighborsClassifier(),': ""},
    "reliability_done_right": {"size=20_000": "size=10_000"},
}


def digits(names):
    assert names["accuracy"] - names["confidence"] > 0.15
    assert names["search"].lower_confidence_bound() > 0.2**2
    assert names["result"].pvalue == 0.001


def reliability_done_right(names):
    [shown], [panel] = names["digits"].panels, names["display"].panels
    assert len(shown.ranges) > 0
    assert panel.ranges == []
    assert names["pvalues"][15] > 0.05
    assert names["pvalues"][60] < 0.01


def risk_finds_temperature(names):
    assert abs(names["best"] - 2) <= 0.125  # one step of the grid


def bins_by_risk(names):
    few, some, many = names["chosen"].values()
    assert few < some < many
    assert abs(names["search"].rms_calibration_error_ - names["truth"]) < 0.02
    null = names["display"].null_mean
    assert null[-1] > 5 * null[0]


def which_family(names):
    shares, rows = names["shares"], list(names["candidates"])
    assert (shares[rows.index("temperature scaling"), :2] < 0.1).all()
    assert (shares[-1] < 0.2).all()  # the stack
    assert shares[names["chosen"][0], 0] > 1


def levels_of_tests(names):
    rejected = {name: np.count_nonzero(p <= 0.05) for name, p in names["pvalues"].items()}
    assert rejected.pop("ECE, consistency resampling") > 90
    assert rejected["SKCE, distribution-free"] == 0
    # Of each other test: false alarm 1e-4.
    assert max(rejected.values()) <= binom.isf(1e-4, names["n_datasets"], 0.05)


def estimate_distributions(names):
    values, truth = names["values"], names["truth"]
    assert values[100, "M1"][:, 0].mean() > 1.9 * values[2, "M3"][:, 0].mean()
    for key, draws in values.items():
        skce = draws[:, 1]
        # The truths of M2 and M3 are themselves estimates, with errors below 0.004.
        slack = 0 if key[1] == "M1" else 0.012
        assert abs(skce.mean() - truth[key][1]) < 4 * skce.std() / np.sqrt(len(skce)) + slack


def grid_search(names):
    for search in names["searches"].values():
        risks = -search.cv_results_["mean_test_score"]
        assert -search.best_score_ == risks.min() < 0.7 * names["zero"]
        assert risks[0] > 1.005 * risks.min() or risks[-1] > 1.1 * risks.min()
    assert max(names["errors"].values()) < 1.05 * min(names["errors"].values())
    assert round(np.mean(list(names["errors"].values())) ** 0.5, 2) == 0.26


def null_distribution(names):
    result, drawn = names["result"], names["extreme"].sum()
    assert result.statistic > result.null_mean
    assert result.pvalue == (1 + drawn) / (1 + len(names["null"]))


def recalibrate_protocol(names):
    assert names["result"].estimate > 0
    assert names["result"].pvalue < 0.05  # 5e-5 from 600 samples of 10 classes
    assert names["rest"].pvalue > 0.05  # 0.2: 600 samples do not refute what is left
    assert names["recalibrated"].recalibrator_.best_name_ != "Identity"


def base_rate(names):
    parts, ece = names["parts"], names["ece"]
    assert min(ece, key=ece.get) == "base rates"
    assert max(parts, key=lambda name: parts[name].score) == "base rates"
    assert parts["base rates"].discrimination < 1e-12
    assert ece["random forest"] > ece["naive Bayes"]
    assert parts["random forest"].score < parts["naive Bayes"].score


def model_selection(names):
    loss, penalties = names["scores"]["log loss"], list(names["C"])
    for name in ("ECE", "smooth ECE"):
        assert loss[penalties.index(names["best"][name])] > 5 * loss.min()


def simplex(names):
    overconfident, mixed = names["errors"].values()
    assert abs(overconfident - mixed) < 0.002
    assert (names["display"].arrows.residual[:, 0] > 0).all()


def imbalanced(names):
    ece = names["ece"]
    assert ece["sample, unweighted"][0] < 0.05 < ece["sample, unweighted"][1]
    assert abs(ece["sample, weighted"][0] - ece["population"][0]) < 0.03
    assert ece["population"][1] < ece["population"][0] / 10


def classifiers_table(names):
    search = names["searches"]["naive Bayes"]
    assert search.plug_in_squared_error_ < search.lower_confidence_bound()
    assert search.squared_error_ > search.lower_confidence_bound()
    risks = [-family.scores.max() for family in search.families_]
    assert max(risks) < 1.01 * min(risks)


def decision_curves(names):
    assert names["benefit"]["too high"] < 0 < names["benefit"]["calibrated"]
    assert names["harmful"].min() <= names["threshold"] <= names["harmful"].max()
    assert (names["murphy"].diagram.low > 0).any()
    np.testing.assert_allclose(names["mended"], names["p"])


def million(names):
    table = names["table"]
    assert table.n_samples_seen_ == names["n_chunks"] * names["size"]
    chunks = [
        make_tempered(names["size"], temperature=1.5, n_truth_draws=0, random_state=seed)
        for seed in range(names["n_chunks"])
    ]
    labels, proba = (
        np.concatenate([getattr(chunk, name) for chunk in chunks]) for name in ("labels", "proba")
    )
    at_once = expected_calibration_error(labels, proba, n_bins=50)
    assert expected_calibration_error(table, edges=table.edges) == pytest.approx(at_once, rel=1e-10)


def lower_risk(names):
    published = {"Zero", "DirichletKernelDensity", "KroneckerKernelRidge", "TwoStepKernelRidge"}
    chosen = {name: search.best_family_.name for name, search in names["searches"].items()}
    assert not {chosen["naive Bayes"], chosen["random forest"]} & published


CLAIMS = {
    "base_rate": base_rate,
    "bins_by_risk": bins_by_risk,
    "classifiers_table": classifiers_table,
    "decision_curves": decision_curves,
    "digits": digits,
    "estimate_distributions": estimate_distributions,
    "grid_search": grid_search,
    "imbalanced": imbalanced,
    "lower_risk": lower_risk,
    "million": million,
    "model_selection": model_selection,
    "null_distribution": null_distribution,
    "recalibrate_protocol": recalibrate_protocol,
    "reliability_done_right": reliability_done_right,
    "risk_finds_temperature": risk_finds_temperature,
    "simplex": simplex,
    "test_levels": levels_of_tests,
    "which_family": which_family,
}


def test_every_example_has_its_claim():
    assert set(EXAMPLES) == set(CLAIMS)


@pytest.mark.parametrize("name", sorted(set(CLAIMS) - SLOW))
def test_example_shows_what_it_says(name, tmp_path, monkeypatch):
    run(name, tmp_path, monkeypatch, SHORTER.get(name, {}))


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(SLOW | set(SHORTER)))
def test_long_example_shows_what_it_says(name, tmp_path, monkeypatch):
    run(name, tmp_path, monkeypatch, {})


def run(name, folder, monkeypatch, changes):
    """Run an example with these changes, and test its claim."""
    matplotlib.use("Agg")
    monkeypatch.chdir(folder)
    code = EXAMPLES[name].read_text(encoding="utf-8")
    for as_written, instead in changes.items():
        assert as_written in code
        code = code.replace(as_written, instead)
    (folder / "example.py").write_text(code, encoding="utf-8")
    try:
        names = runpy.run_path(str(folder / "example.py"))
        assert plt.get_fignums()
        for number in plt.get_fignums():
            plt.figure(number).savefig(folder / f"{number}.png", dpi=30)
        CLAIMS[name](names)
    finally:
        plt.close("all")
