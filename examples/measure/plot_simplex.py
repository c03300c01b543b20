"""
Three classes in one triangle
=============================

A single error says how far predictions are from the observed frequencies; arrows in the simplex say
in which direction. Two models with the same canonical error: one overconfident, whose
arrows point away from the corners, one that takes classes for their neighbours, whose arrows turn.
"""

# %%
# Two models
# ----------
# Arrows lead from the mean prediction of a cell to its observed frequencies; pale ones are no
# longer than chance would make them.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import cross_val_predict

from skcal.datasets import make_distorted, make_tempered
from skcal.displays import SimplexDisplay

options = {"n_classes": 3, "concentration": 1.0, "n_truth_draws": 200_000, "random_state": 0}
models = {
    "overconfident": make_tempered(10_000, temperature=2.4, **options),
    "classes mixed up": make_distorted(10_000, distortion="non-monotone", **options),
}
errors = {}
figure, axes = plt.subplots(1, 2, figsize=(12, 5), layout="constrained")
for ax, (name, data) in zip(axes, models.items(), strict=True):
    SimplexDisplay.from_predictions(
        data.labels,
        data.proba,
        n_bins=7,
        min_samples=50,
        corners=["cat", "dog", "cow"],
        name=name,
        ax=ax,
    )
    errors[name] = np.sqrt(data.true_squared_errors["canonical"].value)
    print(f"{name}: canonical error {errors[name]:.3f}")

# %%
# More than three classes
# -----------------------
# Groups of classes, or the most probable class, the second and the rest, make a triangle of any
# number of classes. Digits by a random forest: the arrows point to the most probable class, since
# the forest is underconfident.

X, y = load_digits(return_X_y=True)
forest = RandomForestClassifier(n_estimators=50, random_state=0)
proba = cross_val_predict(forest, X, y, cv=5, method="predict_proba")
display = SimplexDisplay.from_predictions(y, proba, notion="top-2", name="random forest, digits")
