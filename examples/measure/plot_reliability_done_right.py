"""
A reliability diagram done right
================================

Of the cases for which a model says 80 %, does the event happen in 80 %? The diagram plots observed
frequency against predicted probability. Each bin has an interval, and only ranges with significant
miscalibration are shaded.
"""

# %%
# An overconfident classifier
# ---------------------------
# Naive Bayes says 99 % on average for its digits, and is right in 81 %. The title has the
# calibration error with its limits; the histograms below count right and wrong predictions.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import cross_val_predict
from sklearn.naive_bayes import GaussianNB

from skcal.datasets import make_dirichlet
from skcal.displays import ReliabilityDisplay
from skcal.hypothesis_tests import monte_carlo_test
from skcal.metrics import calibration_bins

X, y = load_digits(return_X_y=True)
proba = cross_val_predict(GaussianNB(), X, y, cv=5, method="predict_proba")
digits = ReliabilityDisplay.from_predictions(y, proba, name="naive Bayes, digits")

# %%
# Noise or miscalibration?
# ------------------------
# These 400 predictions are calibrated. Points without intervals, as often drawn, suggest that they
# are not. With intervals, and with shading only where a test rejects, the diagram does not.

data = make_dirichlet(400, n_classes=4, concentration=0.7, model="M1", random_state=3)
figure, axes = plt.subplots(1, 2, figsize=(8.4, 5), layout="constrained")
bins = calibration_bins(data.labels, data.proba)
axes[0].plot([0, 1], [0, 1], color="0.6", linestyle=":")
axes[0].plot(bins.prediction, bins.frequency, "o-", color="black", markersize=4)
axes[0].set(xlabel="confidence", ylabel="accuracy", box_aspect=1)
axes[0].set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
axes[0].set_title("as often drawn:\nis this model calibrated?", fontsize="medium")
display = ReliabilityDisplay.from_predictions(
    data.labels, data.proba, name="the same predictions", ax=axes[1]
)

# %%
# What bins hide
# --------------
# Errors of both signs within a bin cancel out. Here y = 1 has probability
# p + 0.4 p (1 - p) sin(30 π p): a test with 15 bins does not reject, one with 60 bins does. The
# calibration error in the titles needs no bins, and the shaded ranges do not depend on them.

rng = np.random.default_rng(0)
p = rng.uniform(size=20_000)
y = (rng.uniform(size=20_000) < p + 0.4 * p * (1 - p) * np.sin(30 * np.pi * p)).astype(int)

figure, axes = plt.subplots(1, 2, figsize=(8.4, 5), layout="constrained")
pvalues = {}
for ax, n_bins in zip(axes, (15, 60), strict=True):
    ReliabilityDisplay.from_predictions(
        y, p, n_bins=n_bins, method="bins", name=f"{n_bins} bins", ax=ax
    )
    test = monte_carlo_test(y, p, n_bins=n_bins, n_resamples=199, random_state=0)
    pvalues[n_bins] = test.pvalue
    print(f"{n_bins} bins: ECE {test.estimate:.3f}, p = {test.pvalue:.3f}")
