"""The search of the built site finds the page that answers a user's question."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

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
def test_the_right_page_is_among_the_first_three(site):
    if shutil.which("node") is None:
        pytest.skip("needs node")
    script = Path(__file__).with_name("search.js")
    command = ["node", script, site, json.dumps(list(QUESTIONS))]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    found = dict(zip(QUESTIONS, json.loads(result.stdout), strict=True))
    missed = {query: found[query] for query, page in QUESTIONS.items() if page not in found[query]}
    assert not missed
