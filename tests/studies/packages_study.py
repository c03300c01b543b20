"""Try every claim of the table of packages in one run: ``python tests/studies/packages_study.py``.

It prints the table and writes ``doc/evidence/packages.csv``, which the home page includes; a test
holds README to it. Needs the extra ``peers``. The row of R's rms runs where Rscript is found
(``RSCRIPT`` names it) with the package rms; else its cells are from rms's documentation.

A cell is what a call printed. A dash means that the package has no public function for it, as far
as its names and documentation say: that is read, not tried.
"""

import csv
import inspect
import os
import re
import shutil
import subprocess
import tempfile
import time
import warnings
from functools import partial
from importlib import import_module, metadata
from pathlib import Path

import numpy as np
from scipy.integrate import quad
from scipy.special import expit, logit
from sklearn.calibration import CalibratedClassifierCV, calibration_curve
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

from skcal import Recalibrator, calibration_error_interval
from skcal.datasets import make_tempered
from skcal.hypothesis_tests import calibration_test
from skcal.metrics import expected_calibration_error

TABLE = Path(__file__).parents[2] / "doc" / "evidence" / "packages.csv"
PACKAGES = ["skcal", "scikit-learn", "netcal", "torchmetrics", "relplot", "MAPIE", "probmetrics"]
RMS = "R rms"
N, N_SETS, N_LIMITS, SLOPE = 1000, 400, 100, 0.7
NONE = "–"


def binary(seed, n=N, slope=1.0, rate=None):
    """Return outcomes and predictions that are uniform, or rare events."""
    rng = np.random.default_rng(seed)
    p = rng.uniform(size=n) if rate is None else rate * rng.exponential(size=n).clip(0, 10)
    truth = p if slope == 1 else expit(slope * logit(p))
    return (rng.uniform(size=n) < truth).astype(int), p


TRUE_ERROR = quad(lambda p: abs(p - expit(SLOPE * logit(p))), 1e-12, 1 - 1e-12, points=[0.5])[0]


# Limits of the error: share of samples in which both hold, calibrated and overconfident


def torch_limits(y, p):
    torch = import_module("torch")
    wrappers = import_module("torchmetrics.wrappers")
    classification = import_module("torchmetrics.classification")
    torch.manual_seed(0)
    ends = torch.tensor([0.05, 0.95])
    metric = classification.BinaryCalibrationError(n_bins=15)
    many = wrappers.BootStrapper(metric, num_bootstraps=100, mean=False, std=False, quantile=ends)
    many.update(torch.tensor(p, dtype=torch.float32), torch.tensor(y))
    return many.compute()["quantile"].tolist()


def relplot_limits(y, p):
    found = import_module("relplot").prepare_rel_diagram(p, y, plot_confidence_band=False)
    return found["ce"] - found["ce_ci_width"], found["ce"] + found["ce_ci_width"]


def skcal_limits(y, p):
    found = calibration_error_interval(y, p)
    return found.low, found.high


def held(limits, slope, truth):
    """Return the percentage of samples whose limits hold the true error."""
    pairs = [limits(*binary(seed, slope=slope)) for seed in range(N_LIMITS)]
    return f"{100 * np.mean([low <= truth <= high for low, high in pairs]):.0f} %"


# Tests: share of calibrated samples that are rejected at 5 %, uniform and with 1 % events

DRAWS = {"uniform": {}, "1 % events": {"rate": 0.01}}


def rejected(draws, *tests):
    """The percentage of samples that a test rejects, the largest of several tests."""
    samples = [binary(seed, **DRAWS[draws]) for seed in range(N_SETS)]
    shares = [np.mean([pvalue(y, p) <= 0.05 for y, p in samples]) for pvalue in tests]
    return f"{100 * max(shares):.1f} %"


def mapie_tests():
    tests = import_module("mapie.metrics.calibration")
    names = ("kolmogorov_smirnov", "kuiper", "spiegelhalter")
    return [getattr(tests, f"{name}_p_value") for name in names]


# Many classes: the log loss of 5,000 new samples after recalibration on 1,000


def classes():
    data = make_tempered(6000, n_classes=10, temperature=2.0, n_truth_draws=0, random_state=0)
    return data.proba[:1000], data.labels[:1000], data.proba[1000:], data.labels[1000:]


def loss(recalibrate):
    P, y, new, new_y = classes()
    proba = recalibrate(P, y, new)
    return f"{-np.log(np.clip(proba, 1e-15, 1))[np.arange(len(new_y)), new_y].mean():.3f}"


def of_logs(P, y):
    """A classifier of log P whose predictions are P: a regression with the identity."""
    model = LogisticRegression(C=1e6, max_iter=2000).fit(np.log(P), y)
    model.coef_, model.intercept_ = np.eye(10), np.zeros(10)
    return model


def by_scikit_learn(P, y, new):
    calibrated = CalibratedClassifierCV(FrozenEstimator(of_logs(P, y)), method="temperature")
    return calibrated.fit(np.log(P), y).predict_proba(np.log(new))


def by_netcal(P, y, new):
    scaling = import_module("netcal.scaling").TemperatureScaling()
    return scaling.fit(P, y).transform(new)


def by_mapie(P, y, new):
    method = import_module("mapie.calibration").VennAbersCalibrator
    calibrator = method(of_logs(P, y), inductive=True, random_state=0)
    calibrator.cv = "prefit"
    return calibrator.fit(np.log(P), y).predict_proba(np.log(new))


def by_probmetrics(P, y, new):
    calibrators = import_module("probmetrics.calibrators")
    return calibrators.get_calibrator("logistic").fit(P, y).predict_proba(new)


def by_skcal(P, y, new):
    return Recalibrator(random_state=0).fit(P, y).predict_proba(new)


# Time of a binned ECE of a million predictions


def milliseconds(ece):
    y, p = binary(0, n=1_000_000)
    ece(y, p)
    times = []
    for _ in range(3):
        start = time.process_time()
        ece(y, p)
        times.append(time.process_time() - start)
    return f"{1000 * min(times):.0f} ms"


def torch_ece(y, p):
    torch = import_module("torch")
    functional = import_module("torchmetrics.functional.classification")
    return functional.binary_calibration_error(torch.tensor(p), torch.tensor(y), 15)


def probmetrics_ece(y, p):
    torch = import_module("torch")
    metric = import_module("probmetrics.metrics").CalibrationError(15)
    return metric.compute_from_labels_probs(
        torch.tensor(y), torch.tensor(np.column_stack([1 - p, p]))
    )


ECE = {
    "skcal": lambda y, p: expected_calibration_error(y, p, n_bins=15),
    "scikit-learn": lambda y, p: calibration_curve(y, p, n_bins=15),
    "netcal": lambda y, p: import_module("netcal.metrics").ECE(15).measure(p, y),
    "torchmetrics": torch_ece,
    "relplot": lambda y, p: import_module("relplot.metrics").binnedECE(p, y, 15),
    "MAPIE": lambda y, p: import_module("mapie.metrics.calibration").expected_calibration_error(
        y, p, 15, "uniform"
    ),
    "probmetrics": probmetrics_ece,
}


# R

R_CODE = """
suppressMessages(library(rms)); options(digits = 7)
share <- function(rate, name) {
  rejected <- 0
  for (file in list.files(pattern = rate)) {
    d <- read.csv(file); v <- val.prob(d$p, d$y, pl = FALSE)
    rejected <- rejected + (v[name] <= 0.05)
  }
  100 * rejected / length(list.files(pattern = rate))
}
for (rate in c("uniform", "rare"))
  cat(sprintf("%s;%.1f %%\\n", rate, max(share(rate, "U:p"), share(rate, "S:p"))))
"""


def rms():
    """Return what R printed, or None without Rscript."""
    rscript = os.environ.get("RSCRIPT") or shutil.which("Rscript")
    if rscript is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        for name, options in (("uniform", {}), ("rare", {"rate": 0.01})):
            for seed in range(N_SETS):
                y, p = binary(seed, **options)
                table = np.column_stack([y, p])
                path = Path(folder, f"{name}{seed}.csv")
                np.savetxt(path, table, delimiter=",", header="y,p", comments="")
        script = Path(folder, "script.R")
        script.write_text(R_CODE)
        command = [*rscript.split(), str(script)]
        run = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    return dict(line.split(";", 1) for line in run.stdout.strip().splitlines() if ";" in line)


# What a function takes: True if the call passes


def passes(call):
    """Return whether a call runs, as a word."""
    try:
        call()
    except (TypeError, ValueError, IndexError, AttributeError) as error:
        print("   ", type(error).__name__, str(error)[:90])
        return NONE
    return "yes"


def many_classes():
    """Which of the packages' calibration errors take 10 classes."""
    P, y, *_ = classes()
    torch = import_module("torch")
    functional = import_module("torchmetrics.functional.classification")
    metrics = import_module("probmetrics.metrics")
    mapie = import_module("mapie.metrics.calibration").expected_calibration_error
    relplot = import_module("relplot.metrics")
    to_confidences = relplot.multiclass_logits_to_confidences
    tensors = torch.tensor(P), torch.tensor(y)
    smooth = metrics.SmoothCalibrationError()
    calls = {
        "skcal": lambda: calibration_error_interval(y, P),
        "scikit-learn": lambda: calibration_curve(y, P),
        "netcal": lambda: import_module("netcal.metrics").ECE(15).measure(P, y),
        "torchmetrics": lambda: functional.multiclass_calibration_error(*tensors, 10),
        "relplot": lambda: relplot.smECE(*to_confidences(P, y, probs=True)),
        "MAPIE": lambda: mapie(None, P, 15, "uniform", classwise=True, class_labels=y),
        "probmetrics": lambda: smooth.compute_from_labels_probs(*tensors[::-1]),
    }
    return {name: partial(passes, call) for name, call in calls.items()}


def taking(argument):
    """Whether the calibration error or the recalibration of a package takes an argument."""
    mapie = import_module("mapie.calibration")
    functions = {
        "skcal": calibration_error_interval,
        "scikit-learn": CalibratedClassifierCV.fit,
        "netcal": import_module("netcal.metrics").ECE.measure,
        "relplot": import_module("relplot").smECE,
        "MAPIE": mapie.TopLabelCalibrator.fit,
        "probmetrics": import_module("probmetrics.calibrators").get_calibrator("logistic").fit,
    }
    taken = {name: inspect.signature(one).parameters for name, one in functions.items()}
    return {name: "yes" if argument in found else NONE for name, found in taken.items()}


def others():
    """What other packages have and skcal has not, each called once."""
    torch = import_module("torch")
    functional = import_module("torchmetrics.functional.classification")
    P, y, *_ = classes()
    tensor = functional.multiclass_calibration_error(torch.tensor(P), torch.tensor(y), 10)
    loss = import_module("probmetrics.metrics").BrierLoss()
    also = loss.compute_from_labels_probs(torch.tensor(y), torch.tensor(P))
    ece = import_module("netcal.metrics").ECE(5, detection=True)
    import_module("mapie.classification").SplitConformalClassifier  # noqa: B018
    import_module("mapie.exchangeability_testing").RiskMonitoring  # noqa: B018
    boxes = ece.measure(np.column_stack([P[:, 0], P[:, 1]]), (y == 0).astype(int))
    return isinstance(tensor, torch.Tensor), isinstance(also, torch.Tensor), boxes


def table():
    """Return the rows of the table: what is asked, and a cell for each package."""
    r = rms()
    rows = []

    def row(what, found, of_rms=NONE):
        cells = [*(found.get(name, NONE) for name in PACKAGES), of_rms]
        cells = [cell() if callable(cell) else cell for cell in cells]
        units = re.compile(r"(?<=\d) (?=%|ms)")  # a number stays on a line with its unit
        rows.append([what, *(units.sub("\u00a0", cell) for cell in cells)])
        print(*rows[-1], sep=" | ", flush=True)

    limits = {"skcal": skcal_limits, "torchmetrics": torch_limits, "relplot": relplot_limits}
    asked = " (asked: 90 %, relplot 95 %)"
    for of, slope, truth in [
        (f"of calibrated predictions{asked}", 1.0, 0),
        ("of overconfident ones", SLOPE, TRUE_ERROR),
    ]:
        found = {name: held(one, slope, truth) for name, one in limits.items()}
        row(f"limits hold the true error {of}", found)

    def ours(y, p):
        return calibration_test(y, p, random_state=0).pvalue

    asked = " (allowed: 5 %; MAPIE and rms: the highest of several tests)"
    for of, draws, name in [
        (f"uniform{asked}", "uniform", "uniform"),
        ("1 % events", "1 % events", "rare"),
    ]:
        found = {"skcal": rejected(draws, ours), "MAPIE": rejected(draws, *mapie_tests())}
        of_rms = r[name].strip() if r else "asymptotic tests"
        row(f"test rejects calibrated predictions, {of}", found, of_rms)
    row(
        "log loss of 10 classes after its recalibration (as predicted "
        f"{loss(lambda P, y, new: new)})",
        {
            "skcal": lambda: loss(by_skcal),
            "scikit-learn": lambda: loss(by_scikit_learn),
            "netcal": lambda: loss(by_netcal),
            "MAPIE": lambda: loss(by_mapie),
            "probmetrics": lambda: loss(by_probmetrics),
        },
    )
    row("binned ECE of a million predictions", {n: (lambda n=n: milliseconds(ECE[n])) for n in ECE})
    row("calibration error of 10 classes", many_classes())
    row("sample weights", taking("sample_weight"), "yes")
    row("clusters", taking("groups"), "yes")
    for what in (
        "shows that an error is small",
        "reports of calibration",
        "monitor of calibration",
    ):
        row(what, {"skcal": "yes"})
    on_tensors, also, boxes = others()
    assert on_tensors
    assert also
    assert boxes >= 0
    row(
        "takes tensors of a training loop where they are",  # tests/table/test_tensors.py
        {"skcal": "largest probabilities", "torchmetrics": "yes", "probmetrics": "yes"},
    )
    row(
        "more than calibration of classifiers",
        {
            "scikit-learn": "models",
            "netcal": "boxes, regression",
            "torchmetrics": "other metrics",
            "MAPIE": "conformal sets, risk monitor",
            "probmetrics": "losses, classifiers",
        },
        "regression, survival",
    )
    row("on a package index", {name: "yes" for name in PACKAGES if name != "skcal"}, "CRAN")
    return rows


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    names = {"MAPIE": "mapie"}
    versions = [metadata.version(names.get(name, name)) for name in PACKAGES]
    print(
        *(f"{name} {version}" for name, version in zip(PACKAGES, versions, strict=True)), sep=", "
    )
    with TABLE.open("w", newline="") as file:
        csv.writer(file).writerows([["claim", *PACKAGES, RMS], *table()])
