"""
Calibrated and useless
======================

A classifier that always predicts the base rates is calibrated and tells nothing. So a calibration
error does not rank classifiers. Proper scores do, as they also reward discrimination: what the
predictions tell apart. The random forest has a larger ECE than naive Bayes and the better score.
"""

# %%
# Three classifiers of digits
# ---------------------------
# The Brier score is miscalibration minus discrimination plus uncertainty, here by isotonic
# regression of each class (CORP, Dimitriadis et al. 2021), so without a choice of bins.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skcal.metrics import expected_calibration_error, score_decomposition, sharpness

X, y = load_digits(return_X_y=True)
folds = StratifiedKFold(5, shuffle=True, random_state=0)
classifiers = {
    "base rates": DummyClassifier(strategy="prior"),
    "naive Bayes": GaussianNB(),
    "random forest": RandomForestClassifier(n_estimators=50, random_state=0),
    "logistic regression": make_pipeline(StandardScaler(), LogisticRegression()),
}
parts, ece = {}, {}
print("                       ECE  miscalibration  discrimination  Brier  sharpness")
for name, classifier in classifiers.items():
    proba = cross_val_predict(classifier, X, y, cv=folds, method="predict_proba")
    ece[name] = expected_calibration_error(y, proba, notion="confidence")
    part = parts[name] = score_decomposition(y, proba, notion="classwise")
    print(
        f"{name:20s} {ece[name]:5.3f}  {part.miscalibration:14.3f}  {part.discrimination:14.3f}  "
        f"{part.score:5.3f}  {sharpness(y, proba, notion='classwise'):9.3f}"
    )

# %%
# Miscalibration against discrimination
# -------------------------------------
# On a dotted line the Brier score is constant; lower lines, to the right, are better. The base
# rates sit at the origin.

uncertainty = parts["base rates"].uncertainty
figure, ax = plt.subplots(figsize=(6.6, 4.2), layout="constrained")
edge = np.array([-0.05, 1.0])
for score in np.arange(0.1, 1.3, 0.2):
    ax.plot(edge, edge + score - uncertainty, color="0.6", linewidth=1, linestyle=":")
    at = max(0.3 + uncertainty - score, -0.02)
    ax.text(
        min(at, 0.93),
        min(at, 0.93) + score - uncertainty,
        f"{score:.1f}",
        color="0.4",
        fontsize="small",
        ha="center",
        va="center",
        backgroundcolor="white",
    )
styles = zip(parts.items(), "osD^", ("black", "#D55E00", "#009E73", "#0072B2"), strict=True)
for (name, part), marker, colour in styles:
    at = part.discrimination, part.miscalibration
    ax.plot(*at, marker, color=colour, markersize=9, label=name)
ax.set(
    xlim=(-0.05, 1),
    ylim=(-0.02, 0.32),
    xlabel="discrimination",
    ylabel="miscalibration (0: calibrated)",
)
place = {"loc": "upper left", "bbox_to_anchor": (1.01, 1), "frameon": False}
legend = ax.legend(title="dotted: Brier score", fontsize="small", title_fontsize="small", **place)
