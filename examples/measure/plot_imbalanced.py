"""
Rare positives and weighted samples
===================================

Negatives are often thinned out to balance a training or test set. Probabilities are then calibrated
for the thinned data and far too high for the population; weights that undo the sampling show it,
without them nothing does. Elkan's correction repairs most of it.
"""

# %%
# A balanced sample of a population with 3 % positives
# ----------------------------------------------------
# All positives and as many negatives; a negative of the sample stands for many of the population.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_blobs
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

from skcal.displays import ReliabilityDisplay
from skcal.metrics import expected_calibration_error
from skcal.recalibration import adjust_prevalence

X, y = make_blobs([58_200, 1800], centers=[[0, 0], [1.2, 1.2]], random_state=0)
X, X_population, y, y_population = train_test_split(X, y, test_size=0.5, random_state=0)


def thin_out(X, y):
    """All positives, as many negatives, and the weights that undo it."""
    positive, negative = np.flatnonzero(y == 1), np.flatnonzero(y == 0)
    rows = np.concatenate([positive, negative[: len(positive)]])
    weight = np.where(y[rows] == 1, 1, len(negative) / len(positive))
    return X[rows], y[rows], weight


X_train, y_train, train_weight = thin_out(X, y)
X_test, y_test, weight = thin_out(X_population, y_population)
classifier = LogisticRegression().fit(X_train, y_train)
p = classifier.predict_proba(X_test)[:, 1]

# %%
# With and without weights
# ------------------------
# The weighted ECE of the sample estimates that of the whole population, known here. The correction
# of Elkan (2001) divides the odds by the number of negatives that each one stands for: half of the
# sample is positive, one in 1 + that number of the population.


def corrected(p):
    return adjust_prevalence(p, prevalence=0.5, new_prevalence=1 / (1 + train_weight.max()))


p_population = classifier.predict_proba(X_population)[:, 1]
rows = {
    "sample, unweighted": (y_test, p, None),
    "sample, weighted": (y_test, p, weight),
    "population": (y_population, p_population, None),
}
ece = {}
print("ECE                   raw  corrected")
for name, (labels, raw, sample_weight) in rows.items():
    ece[name] = [
        expected_calibration_error(labels, one, sample_weight=sample_weight)
        for one in (raw, corrected(raw))
    ]
    print(f"{name:20s} {ece[name][0]:.3f}  {ece[name][1]:9.3f}")

# %%
# Reliability
# -----------
# These weights depend on the labels. Means of the weighted sample are right, but bands and tests,
# which redraw outcomes with the weights as they are, do not apply to it. So the diagrams are those
# of the unweighted sample, which looks well, and of the population.

figure, axes = plt.subplots(1, 3, figsize=(12, 5.6), layout="constrained")
for ax, name, labels, one in (
    (axes[0], "raw, balanced sample", y_test, p),
    (axes[1], "raw, population", y_population, p_population),
    (axes[2], "corrected, population", y_population, corrected(p_population)),
):
    ReliabilityDisplay.from_predictions(labels, one, n_bins=10, name=name, random_state=0, ax=ax)
