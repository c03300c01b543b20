"""The search of the built site finds the page that answers a user's question."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from pages import DOC

QUESTIONS = {
    "ECE confidence interval": "howto/ece_interval",
    "fix overconfident model": "howto/fix_overconfident",
    "which bins": "howto/which_bins",
    "compare two models": "guide/comparing",
    "class-wise calibration": "howto/classwise",
    "LLM": "guide/llm_confidence",
    "fairness": "guide/fairness",
    "PyTorch": "users/networks",
    "temperature scaling logits": "users/networks",
    "scorer GridSearchCV": "howto/scorers",
    "report for my boss": "howto/report_for_my_boss",
    "confidence band": "howto/diagram_band",
    "sample size": "guide/sample_size",
    "scale_pos_weight": "howto/boosted_trees",
    "rare events": "howto/rare_events",
    "several visits": "guide/dependent_samples",
    "image segmentation": "howto/image_segmentation",
    "monitor production": "guide/monitoring",
    "clinical validation": "guide/clinical",
    "gate CI": "guide/good_enough",
    "torchmetrics": "howto/coming_from",
    "recalibration method": "howto/which_method",
    "FAQ": "faq",
}


@pytest.mark.integrations
def test_the_right_page_is_among_the_first_three(tmp_path):
    pytest.importorskip("sphinx_gallery", reason="needs the extra doc")
    if shutil.which("node") is None:
        pytest.skip("needs node")
    generated = shutil.ignore_patterns("_build", "auto_examples", "generated")
    for folder in ("doc", "examples"):
        shutil.copytree(DOC.parent / folder, tmp_path / folder, ignore=generated)
    for name in ("CHANGELOG.md", "CONTRIBUTING.md"):
        shutil.copy(DOC.parent / name, tmp_path)
    options = ["-q", "-D", "plot_gallery=0", "-b", "html"]
    folders = [tmp_path / "doc", tmp_path / "html"]
    subprocess.run([sys.executable, "-m", "sphinx", *options, *folders], check=True)
    script = Path(__file__).with_name("search.js")
    command = ["node", script, tmp_path / "html", json.dumps(list(QUESTIONS))]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    found = dict(zip(QUESTIONS, json.loads(result.stdout), strict=True))
    missed = {query: found[query] for query, page in QUESTIONS.items() if page not in found[query]}
    assert not missed
