"""
Which family of functions estimates best?
=========================================

Temperature scaling where the model is tempered, kernels or trees where it is not; a stack of both
kinds is at or near the top in all six columns. Stars are what a search chooses from the n samples
alone: 200 are so few that it can choose worse than to assume calibration.
"""

# %%
# Three models and two sample sizes
# ---------------------------------
# Each search chooses parameters and family on n samples. Each family is then judged on 3,000
# others: its risk above the lowest, as a share of what assuming calibration costs. 0 is best,
# 1 no better than assuming calibration, more than 1 worse. One draw each;
# ``truth_study.py`` has many.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import ExtraTreesRegressor

from skcal import (
    CalibrationErrorEstimator,
    CalibrationErrorSearchCV,
    DirichletKernelDensity,
    PlugIn,
    Stacking,
    TemperatureScaling,
    TwoStepKernelRidge,
    Zero,
)
from skcal.datasets import make_distorted, make_tempered
from skcal.recalibration import MatrixScaling

temperature = PlugIn(TemperatureScaling())
matrix = PlugIn(MatrixScaling())
trees = PlugIn(ExtraTreesRegressor(n_estimators=10, min_samples_leaf=20, random_state=0))
candidates = {
    "assume calibrated": (Zero(), {}),
    "temperature scaling": (temperature, {}),
    "matrix scaling": (matrix, {}),
    "kernel density": (DirichletKernelDensity(), {"bandwidth": [0.01, 0.05, 0.2]}),
    "kernel ridge": (TwoStepKernelRidge(gamma=4, max_rank=50), {"alpha": [1e-3, 1e-2, 1e-1]}),
    "trees": (trees, {}),
    "stack: temperature, trees": (Stacking([temperature, trees], cv=3, random_state=0), {}),
}
models = {
    "tempered": make_tempered,
    "class-dependent": make_distorted,
    "non-monotone": lambda n, **options: make_distorted(n, distortion="non-monotone", **options),
}
sizes = (200, 1000)


def excess(make, n):
    """Risk of each family above the lowest, and which one is chosen."""
    options = {"n_classes": 3, "n_truth_draws": 0}
    data, test = make(n, random_state=0, **options), make(3000, random_state=1, **options)
    search = CalibrationErrorSearchCV(
        list(candidates.values()), cv=3, random_state=0, notion="canonical"
    )
    search.fit(data.proba, data.labels)
    risks = np.empty(len(candidates))
    for k, family in enumerate(search.families_):
        estimator = CalibrationErrorEstimator(family.best_function, notion="canonical").fit(
            data.proba, data.labels
        )
        risks[k] = -estimator.score(test.proba, test.labels)
    above = risks - risks.min()
    return above / above[0], search.families_.index(search.best_family_)


columns = [excess(make, n) for make in models.values() for n in sizes]

# %%
# Excess risks
# ------------

shares, chosen = np.array([share for share, _ in columns]).T, [row for _, row in columns]
figure, ax = plt.subplots(figsize=(8.6, 4.2), layout="constrained")
image = ax.imshow(shares, cmap="cividis_r", vmin=0, vmax=1, aspect="auto")
for row, column in np.ndindex(shares.shape):
    value = shares[row, column]
    text = f"{value:.2f}" + (" ★" if row == chosen[column] else "")
    ax.text(column, row, text, ha="center", va="center", color="white" if value > 0.5 else "black")
ax.set_yticks(range(len(candidates)), candidates)
ax.set_xticks(range(6), [f"n = {n:,}" for n in sizes] * 3)
for k, name in enumerate(models):
    ax.text(2 * k + 0.5, -0.65, name, ha="center")
    ax.axvline(2 * k - 0.5, color="white", linewidth=3)
bar = figure.colorbar(image, label="excess risk, share of that of Zero", extend="max")
