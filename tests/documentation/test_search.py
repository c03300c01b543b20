"""The search of the built site finds the page that answers a user's question."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from pages import TEXTS

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
    "GridSearchCV bandwidth": "grid_search",
    "HalvingGridSearchCV": "grid_search",
    "tune calibration estimator": "grid_search",
    # in other words
    "error bars for calibration error": "howto/ece_interval",
    "probabilities too extreme": "howto/fix_overconfident",
    "how many bins for ECE": "howto/which_bins",
    "which of two classifiers is better calibrated": "guide/comparing",
    "calibrate each class": "howto/classwise",
    "ChatGPT says it is 90% sure": "guide/llm_confidence",
    "bias by gender": "guide/fairness",
    "neural network softmax overconfidence": "users/networks",
    "cross_val_score calibration": "howto/scorers",
    "share results with management": "howto/report_for_my_boss",
    "plot calibration curve": "howto/diagram_band",
    "is my validation set large enough": "guide/sample_size",
    "xgboost probabilities": "howto/boosted_trees",
    "fraud detection 1 percent": "howto/rare_events",
    "repeated measurements per subject": "guide/dependent_samples",
    "pixel labels": "howto/image_segmentation",
    "detect drift after deployment": "guide/monitoring",
    "risk model for patients": "guide/clinical",
    "fail the pipeline if calibration is bad": "guide/good_enough",
    "migrate from netcal": "howto/coming_from",
    "isotonic or Platt": "howto/which_method",
    "what does cutoff error mean": "glossary",
    "lightgbm early stopping": "howto/with_other_libraries",
    "new hospital without labels": "guide/shifted",
    "optimism corrected bootstrap": "guide/clinical",
    "order of columns": "howto/files",
    "selective prediction": "guide/abstain",
    # as users type
    "brier score decomposition": "api/generated/skcal.metrics.score_decomposition",
    "why is my ECE different from torchmetrics": "howto/coming_from",
    "sample size validation study": "guide/sample_size",
    "calibrate xgboost probabilities": "howto/boosted_trees",
    "calibration plot in python with error bars": "howto/diagram_band",
    "predict_proba not accurate": "getting_started",
    "calibrated probabilities random forest": "howto/fix_overconfident",
    "hosmer lemeshow alternative": "guide/calibrated",
    "temperature scaling pytorch example": "users/networks",
    "calibration drift alert": "guide/monitoring",
    "logprobs to confidence": "guide/llm_confidence",
    "TRIPOD+AI checklist": "guide/clinical",
    "val.prob in python": "howto/coming_from",
    "probability of default backtesting": "tutorials/credit",
    "class_weight balanced probabilities too high": "howto/boosted_trees",
    "multiclass ECE": "howto/classwise",
    "load saved model json old version": "api/stability",
    "CalibratedClassifierCV prefit pipeline": "guide/mend",
    "annotator disagreement labels": "guide/soft_labels",
    "how to report calibration in a paper": "users/papers",
    "p value of calibration": "guide/calibrated",
    "bootstrap confidence interval clustered patients": "guide/dependent_samples",
    "self-consistency sampling confidence": "guide/llm_confidence",
    "decision curve analysis": "guide/clinical",
    "reject option threshold error rate": "guide/abstain",
    "github actions calibration check": "guide/good_enough",
    "calibration by race": "guide/fairness",
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


def test_keywords_are_single_words():
    """The index takes a keyword as a whole, so that nobody would find one of two words."""
    listed = [re.search(r":keywords: (.*)", text) for text in TEXTS.values()]
    keywords = [word for match in listed if match for word in match[1].split(", ")]
    assert [word for word in keywords if " " in word] == []
    assert len(keywords) > 200
