"""The lines of other packages beside ours, run as the page shows them: python -m pytest -m peers.

Each row of the first table of ``doc/howto/coming_from.rst`` is evaluated, and has to give the two
numbers of its second column. R's row runs where ``RSCRIPT`` names Rscript and rms is installed.
"""

import os
import re
import subprocess

import numpy as np
import pytest
from pages import TEXTS
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax
from sklearn.metrics import roc_auc_score

import skcal
import skcal.metrics
import skcal.recalibration

pytestmark = [pytest.mark.peers, pytest.mark.filterwarnings("ignore")]
PAGE = TEXTS["howto/coming_from.rst"]
ROW = re.compile(
    r"   \* - (?P<package>.+)\n     - (?P<shown>\d.+)\n"
    r"     - `(?P<theirs>.+)`\n     - `(?P<ours>.+)`\n"
)
ROWS = {match["package"]: match for match in ROW.finditer(PAGE)}


def val_prob(p, y):
    """R's val.prob: C statistic, Brier score and slope."""
    if "RSCRIPT" not in os.environ:
        pytest.skip("RSCRIPT names no Rscript")
    values = ", ".join(f"{value:.17g}" for value in p), ", ".join(map(str, y))
    code = "library(rms); v <- val.prob(c({}), c({}), pl = FALSE); cat(v[c('C (ROC)', 'Brier')])"
    command = [*os.environ["RSCRIPT"].split(), "/dev/stdin"]
    run = subprocess.run(command, input=code.format(*values), capture_output=True, text=True)
    return [float(value) for value in run.stdout.split()[-2:]]


@pytest.fixture(scope="module")
def names():
    """What the page has: its data, and the functions of both sides."""
    torch = pytest.importorskip("torch")
    netcal = pytest.importorskip("netcal.metrics")
    mapie = pytest.importorskip("mapie.metrics.calibration")
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.frozen import FrozenEstimator

    data = {}
    block = re.search(r"\.\. code-block:: python\n\n((?:   .*\n|\n)+)", PAGE)[1]
    exec(re.sub("^   ", "", block, flags=re.MULTILINE), data)
    for name in ("X", "y", "P", "p", "happened", "model"):
        assert name in data
    return {
        **{name: getattr(skcal.recalibration, name) for name in skcal.recalibration.__all__},
        **{name: getattr(skcal.metrics, name) for name in skcal.metrics.__all__},
        **data,
        "torch": torch,
        "multiclass_calibration_error": pytest.importorskip(
            "torchmetrics.functional.classification"
        ).multiclass_calibration_error,
        "ECE": netcal.ECE,
        "calibration": pytest.importorskip("calibration"),
        "relplot": pytest.importorskip("relplot"),
        "mapie": mapie,
        "get_calibrator": pytest.importorskip("probmetrics.calibrators").get_calibrator,
        "CalibratedClassifierCV": CalibratedClassifierCV,
        "FrozenEstimator": FrozenEstimator,
        "val_prob": val_prob,
    }


def number(value, names):
    """What the page shows of a result: its numbers, or the log loss of probabilities of digits."""
    if hasattr(value, "c_statistic"):  # of R's measures the C statistic and the Brier score
        return [float(value.c_statistic.estimate), float(value.brier_score.estimate)]
    if np.ndim(value) == 2:
        labels = names["y"]
        return [float(-np.log(np.maximum(value[np.arange(len(labels)), labels], 1e-300)).mean())]
    return [float(one) for one in np.atleast_1d(value)]


@pytest.mark.parametrize("package", ROWS)
def test_both_lines_give_the_numbers_that_the_page_shows(package, names):
    row = ROWS[package]
    lines = row["theirs"].replace("val.prob(", "val_prob("), row["ours"]  # R's name has a dot
    found = [number(eval(line, dict(names)), names) for line in lines]
    shown = [[f"{value:.3f}" for value in side] for side in found]
    text = ", ".join(shown[0]) + "; " + ", ".join(shown[1])
    assert row["shown"].split(" (")[0] == text, text


def test_every_package_has_its_row():
    assert len(ROWS) == 8


def test_probmetrics_and_ours_raise_small_probabilities_to_other_floors(names):
    y = names["y"]

    def loss(inverse, floor):
        scores = log_softmax(inverse * np.log(np.maximum(names["P"], floor)), axis=1)
        return -scores[np.arange(len(y)), y].mean()

    for floor, shown in [(np.finfo(np.float32).tiny, "0.693"), (np.finfo(float).eps, "0.704")]:
        best = minimize_scalar(loss, bounds=(0.01, 1), args=(floor,), method="bounded")
        assert f"{best.fun:.3f}" == shown


def test_with_their_edges_the_debiased_error_is_that_of_uncertainty_calibration(names):
    P, y = names["P"], names["y"]
    squares = []
    for k in range(10):
        edges = np.unique([0, *names["calibration"].utils.get_equal_bins(P[:, k], num_bins=15)])
        options = {"norm": 2, "debias": "labels", "edges": edges}
        squares.append(skcal.metrics.expected_calibration_error(y == k, P[:, k], **options) ** 2)
    assert f"{np.sqrt(np.mean(squares)):.3f}" == "0.079"


def test_clipped_predictions_have_the_smooth_error_of_relplot(names):
    p, happened = np.clip(names["p"], 0.001, 0.999), names["happened"]
    assert (names["p"] != p).sum() == 530
    assert f"{names['relplot'].smECE(p, happened):.3f}" == "0.052"
    assert f"{skcal.metrics.smooth_calibration_error(happened, p):.3f}" == "0.053"


def test_the_c_statistic_of_val_prob_is_that_of_rounded_predictions(names):
    assert f"{roc_auc_score(names['happened'], np.round(500 * names['p'])):.3f}" == "0.966"
