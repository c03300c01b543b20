"""Draw the pictures of the documentation from real runs: ``python tests/studies/pictures.py``.

A picture in ``doc/_static/made`` is the last figure of the code above it on its page. Names of
pages, such as ``howto/ece_interval.rst``, draw those alone; ``screenshots`` takes pictures of a
report, of a notebook and of a monitor with Chromium, which ``CHROMIUM`` names ("chromium").
"""

import contextlib
import io
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
from PIL import Image
from PIL.PngImagePlugin import PngInfo
from scipy.special import expit, logit
from sklearn.datasets import load_digits
from sklearn.model_selection import cross_val_predict
from sklearn.naive_bayes import GaussianNB

TESTS = Path(__file__).parents[1]
sys.path += [str(TESTS), str(TESTS / "documentation")]

from page_code import PICTURE, last_figure, run_page, texts, words  # noqa: E402
from pages import DOC, TEXTS  # noqa: E402

from skcal import calibration_report  # noqa: E402
from skcal.monitoring import CalibrationMonitor  # noqa: E402

STATIC = DOC / "_static"
DPI = 192  # twice that of a screen, which shows texts in their size
NOTEBOOK = """<!doctype html><meta charset="utf-8"><meta name="color-scheme" content="light dark">
<style>body {{ font: 15px/1.5 sans-serif; margin: 16px; }}
pre {{ padding: 8px 12px; border: 1px solid #8886; background: #8881; overflow: hidden; }}</style>
<pre>{code}</pre>{shown}"""


def save(path):
    """Write the last figure, with its words and the size of its smallest text in points."""
    figure = last_figure()
    about = PngInfo()
    about.add_text("Words", words(figure))
    about.add_text("Smallest", f"{min(one.get_fontsize() for one in texts(figure)):g}")
    drawn = io.BytesIO()
    figure.savefig(drawn, dpi=DPI, bbox_inches="tight")
    path.parent.mkdir(exist_ok=True)
    picture = Image.open(drawn).convert("RGB").quantize(64)
    picture.save(path, pnginfo=about, optimize=True)
    print(f"{path.name}: :width: {round(picture.width * 96 / DPI)}px")


def draw(page):
    """Draw the pictures of a page."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        run_page(page, save)
    plt.close("all")


def screenshot(name, write, size):
    """Take a light and a dark picture of the first screen of the HTML page that `write` writes."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "page.html"
        write(path)
        for mode, flags in (("light", []), ("dark", ["--force-dark-mode"])):
            command = [os.environ.get("CHROMIUM", "chromium"), "--headless", "--no-sandbox"]
            command += ["--disable-gpu", "--hide-scrollbars", f"--window-size={size}", *flags]
            command += ["--force-device-scale-factor=2"]
            picture = STATIC / f"{name}_{mode}.png"
            subprocess.run([*command, f"--screenshot={picture}", path.as_uri()], check=True)
            Image.open(picture).convert("RGB").quantize(128).save(picture, optimize=True)


def screenshots():
    """Take pictures of a report as a page, of one in a notebook, and of a monitor there."""
    X, y = load_digits(return_X_y=True)
    proba = cross_val_predict(GaussianNB(), X, y, cv=5, method="predict_proba")
    report = calibration_report(y, proba, name="naive Bayes")
    screenshot("report", report.save, "760,1205")
    screenshot("report_narrow", report.save, "520,956")
    screenshot("notebook", cell("calibration_report(y, proba)", report), "760,800")
    narrow = cell("calibration_report(y, proba)", report)
    screenshot("notebook_narrow", narrow, "520,1004")
    screenshot("monitor", cell("monitor.update(p, y)", watched()), "760,376")
    screenshot("monitor_narrow", cell("monitor.update(p, y)", watched()), "520,468")


def cell(code, result):
    """Return what writes a cell of a notebook with its result."""
    page = NOTEBOOK.format(code=code, shown=result._repr_html_())
    return lambda path: path.write_text(page, encoding="utf-8")


def watched():
    """Return the monitor of doc/guide/monitoring.rst after its last day."""
    monitor = CalibrationMonitor(alpha=0.05)
    for k in range(80):
        rng = np.random.default_rng(k)
        p = rng.beta(1, 6, size=200)
        drift = 0.0 if k < 60 else np.log(1.4)
        monitor.update(p, (rng.uniform(size=200) < expit(logit(p) + drift)).astype(int))
    return monitor


if __name__ == "__main__":
    matplotlib.use("Agg")
    asked = sys.argv[1:] or [*TEXTS, "screenshots"]
    for page in asked:
        if page == "screenshots":
            screenshots()
        elif PICTURE.search(TEXTS[page]):
            draw(page)
