"""Draw the pictures of the documentation from real runs: ``python tests/studies/pictures.py``.

Screenshots of the report need Chromium; ``CHROMIUM`` names it, by default "chromium".
"""

import os
import subprocess
import tempfile
from pathlib import Path

import matplotlib
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.model_selection import cross_val_predict
from sklearn.naive_bayes import GaussianNB

from skcal import calibration_report
from skcal.displays import ReliabilityDisplay

STATIC = Path(__file__).parents[2] / "doc" / "_static"
SIZE = "1000,870"


def screenshots():
    """The first screen of a report, light and dark."""
    X, y = load_digits(return_X_y=True)
    proba = cross_val_predict(GaussianNB(), X, y, cv=5, method="predict_proba")
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "report.html"
        calibration_report(y, proba, name="naive Bayes").save(page)
        for mode, flags in (("light", []), ("dark", ["--force-dark-mode"])):
            command = [os.environ.get("CHROMIUM", "chromium"), "--headless", "--no-sandbox"]
            command += ["--disable-gpu", "--hide-scrollbars", f"--window-size={SIZE}", *flags]
            picture = STATIC / f"report_{mode}.png"
            subprocess.run([*command, f"--screenshot={picture}", page.as_uri()], check=True)


def diagram():
    """A reliability diagram of two classes."""
    X, y = load_breast_cancer(return_X_y=True)
    proba = cross_val_predict(GaussianNB(), X, y, cv=10, method="predict_proba")
    display = ReliabilityDisplay.from_predictions(y, proba, name="naive Bayes")
    display.figure_.savefig(STATIC / "diagram.png", dpi=120, bbox_inches="tight")


if __name__ == "__main__":
    matplotlib.use("Agg")
    diagram()
    screenshots()
