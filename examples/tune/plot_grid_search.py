"""
Which estimator, and which setting? GridSearchCV chooses
========================================================

The estimators of the squared calibration error are scikit-learn estimators of features and
residuals. Their score is minus the risk of Gruber & Bach (2025), a mean squared error over pairs of
samples. `GridSearchCV` chooses each estimator's setting by the risk on validation folds, and the
mean of `predict` over test samples is the squared error. The four find about the same error.
"""

# %%
# Features and residuals
# ----------------------
# The feature is the confidence of a random forest. The residual is right (1) or wrong (0), minus
# the confidence. Every prediction comes from a forest that was not trained on the sample.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import GridSearchCV, cross_val_predict, train_test_split

from skcal import Binning, DirichletKernelDensity, KroneckerKernelRidge, TwoStepKernelRidge, Zero

X, y = load_digits(return_X_y=True)
forest = RandomForestClassifier(random_state=0)
proba = cross_val_predict(forest, X, y, cv=5, method="predict_proba")

features = proba.max(axis=1, keepdims=True)
residuals = (proba.argmax(axis=1) == y) - features[:, 0]
train, test, observed, _ = train_test_split(features, residuals, random_state=0)

# %%
# Four searches
# -------------
# Each fits on training folds, scores on validation folds, and fits the best setting to all training
# samples.

grids = {
    Binning(): {"n_bins": [2, 3, 5, 10, 15, 20, 30, 50, 100]},
    DirichletKernelDensity(): {"bandwidth": np.logspace(-5, 0, 16)},
    KroneckerKernelRidge(): {"alpha": np.logspace(-12, 0, 13)},
    TwoStepKernelRidge(): {"alpha": np.logspace(-9, 0, 10)},
}
searches = {
    type(estimator).__name__: GridSearchCV(estimator, grid).fit(train, observed)
    for estimator, grid in grids.items()
}
errors = {name: search.predict(test).mean() for name, search in searches.items()}
for name, search in searches.items():
    print(f"{name:22}  risk {-search.best_score_:.5f}  squared error {errors[name]:.4f}")

# %%
# The risk of every setting
# -------------------------
# The dashed line is the risk of an estimator that says "calibrated". The risk
# rises with too few or too many bins, with a bandwidth that is too small or too large, and with a
# large penalty `alpha`. Titles name the setting of the lowest risk.

zero = -Zero().fit(train, observed).score(train, observed)
figure, axes = plt.subplots(2, 2, figsize=(9, 6), sharey=True, layout="constrained")
for ax, (name, search) in zip(axes.flat, searches.items(), strict=True):
    [(parameter, best)] = search.best_params_.items()
    results = search.cv_results_
    ax.semilogx(results[f"param_{parameter}"].data, -results["mean_test_score"], marker="o")
    ax.axhline(zero, color="black", linestyle="--")
    ax.axvline(best, color="0.7", zorder=0)
    ax.set(xlabel=parameter, ylabel="risk", title=f"{name}: {best:.2g}")

# %%
# The root of the squared error is the RMS calibration error, 0.26: the forest is far too modest.
# `CalibrationErrorSearchCV` makes the same choices from predictions and labels. It adds a standard
# error and a lower limit.

print({name: round(float(error**0.5), 3) for name, error in errors.items()})
