"""What a reader sees of a report, measured in headless Chromium, where it is installed."""

import json
import re
import shutil
import subprocess

import numpy as np
import pytest

from skcal import calibration_report

pytestmark = pytest.mark.integrations
BROWSER = shutil.which("chromium") or shutil.which("google-chrome")
MEASURE = """<script>
addEventListener("load", () => {
  const all = selector => [...document.querySelectorAll(selector)];
  const bottom = element => element.getBoundingClientRect().bottom + scrollY;
  const seen = all("h2, table, img, aside li, section > ul li").filter(one => one.offsetHeight > 0);
  const told = {
    inner: innerWidth, scroll: document.documentElement.scrollWidth,
    verdict: bottom(all(".skcal-verdict")[0]), diagram: bottom(all(".skcal-first img")[0]),
    rows: all(".skcal-first tbody tr").map(bottom),
    wide: all("h1, p, img, aside, figure, .skcal-first").filter(
      one => one.getBoundingClientRect().right > innerWidth + 1).map(one => one.tagName),
    seen: seen.map(one => one.tagName == "H2" ? one.textContent : one.tagName),
    text: document.querySelector("article").innerText,
  };
  parent.postMessage(JSON.stringify(told), "*");
});
</script></body>"""
FRAME = """<body style="margin: 0"><pre id="told"></pre><script>
addEventListener("message", ({{data}}) => document.getElementById("told").textContent = data);
</script><iframe src="measured.html" width="{}" height="{}" style="border: 0"></iframe></body>"""


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    rng = np.random.default_rng(0)
    proba = rng.beta(0.6, 0.6, 600)
    y = rng.random(600) < proba**2
    side = rng.choice(["left", "right"], 600)
    options = {"n_resamples": 99, "random_state": 0, "name": "risk score"}
    report = calibration_report(y, proba, by={"side": side}, segments={"side": side}, **options)
    path = tmp_path_factory.mktemp("report") / "report.html"
    report.save(path)
    return path


def measured(page, width, height, media="screen"):
    """What the browser says of the page in a window of this size, or as it would be printed."""
    if BROWSER is None:
        pytest.skip("Chromium is not installed")
    text = re.sub('<meta http-equiv="Content-Security-Policy"[^>]*>', "", page.read_text())
    if media == "print":
        text = text.replace("@media print", "@media all").replace("@media screen", "@media print")
    page.with_name("measured.html").write_text(text.replace("</body>", MEASURE))
    frame = page.with_name("frame.html")  # windows are at least 500 pixels wide
    frame.write_text(FRAME.format(width, height))
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
    window, time = f"--window-size={max(width, 500)},{height}", "--virtual-time-budget=5000"
    command = [BROWSER, *options, window, time, "--dump-dom", frame.as_uri()]
    shown = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
    found = re.search('<pre id="told">(.*)</pre>', shown, re.DOTALL)[1]
    for entity, sign in (("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&")):
        found = found.replace(entity, sign)
    return json.loads(found)


def test_the_first_screen_holds_verdict_diagram_and_five_rows(page):
    found = measured(page, 1400, 900)
    assert found["inner"] == 1400
    assert found["verdict"] < 300
    assert found["diagram"] < 900
    assert len(found["rows"]) == 5
    assert max(found["rows"]) < 900


@pytest.mark.parametrize("width", [400, 1400])
def test_nothing_overflows(page, width):
    found = measured(page, width, 900)
    assert found["inner"] == width
    assert found["scroll"] <= width
    assert found["wide"] == []


def test_the_print_holds_subgroups_and_segments_with_their_caveats(page):
    found = measured(page, 800, 1100, media="print")
    assert {"Caveats", "Subgroups", "Segments"} <= set(found["seen"])
    assert found["seen"].count("TABLE") >= 3
    assert found["seen"].count("IMG") == 3  # of all samples and of two subgroups
    assert "side = left" in found["text"]
    assert "All numbers" not in found["seen"]
    assert found["seen"].count("LI") >= 2
