"""
Select by a proper score, watch calibration
===========================================

A grid search can score calibration beside the log loss. It should not choose by it: the smallest
ECE may belong to a model that hardly separates the classes. Choose by the log loss, and read the
calibration of what was chosen.
"""

# %%
# One grid, two scores
# --------------------
# ``get_scorer`` knows the class of each column from ``classes_``, so it works in every fold.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skcal.metrics import get_scorer

X, y = load_breast_cancer(return_X_y=True)
C = np.logspace(-6, 4, 11)
search = GridSearchCV(
    make_pipeline(StandardScaler(), LogisticRegression(solver="newton-cholesky")),
    {"logisticregression__C": C},
    scoring={
        "log loss": "neg_log_loss",
        "ECE": get_scorer("neg_binary_expected_calibration_error"),
        "smooth ECE": get_scorer("neg_binary_smooth_calibration_error"),
    },
    refit="log loss",
    cv=StratifiedKFold(5, shuffle=True, random_state=0),
).fit(X, y)
scores = {name: -search.cv_results_[f"mean_test_{name}"] for name in search.scorer_}
best = {name: C[values.argmin()] for name, values in scores.items()}
for name, value in best.items():
    at = search.cv_results_["mean_test_log loss"][list(C).index(value)]
    print(f"lowest {name:10s} at C = {value:8.0e}, log loss {-at:.3f}")

# %%
# The scores against the penalty
# ------------------------------

figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained", sharex=True)
axes[0].plot(C, scores["log loss"], "o-", color="#0072B2")
axes[0].set_ylabel("log loss")
axes[1].plot(C, scores["ECE"], "s-", color="#D55E00", label="ECE, 15 bins")
axes[1].plot(C, scores["smooth ECE"], "D-", color="#009E73", label="smooth ECE")
axes[1].set_ylabel("calibration error")
for ax in axes:
    ax.axvline(best["log loss"], color="0.5", linestyle=":", label="chosen by log loss")
    ax.set(xscale="log", xlabel="C, inverse of the penalty", ylim=(0, None))
legend = axes[1].legend(frameon=False, fontsize="small")
