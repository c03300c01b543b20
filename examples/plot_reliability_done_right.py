"""
A reliability diagram done right
================================

Do 80 of 100 cases happen to which a model gives 80 %? The diagram draws what happened against
what was predicted, in bins that suit the samples, with a band for all bins at once. It shades what
a test of exact level shows, and nothing else, so that it cannot be read as saying more.
"""

# %%
# What is shown, and what is chance
# ---------------------------------
# Naive Bayes is far too sure of its digits. The 400 predictions on the right are of a calibrated
# model: 15 bins, as often drawn, look bad; the diagram below shades nothing.

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
data = make_dirichlet(400, n_classes=4, concentration=0.7, model="M1", random_state=3)

figure, axes = plt.subplots(1, 3, figsize=(13, 5), layout="constrained", width_ratios=(3, 2.2, 3))
digits = ReliabilityDisplay.from_predictions(
    y, proba, name="naive Bayes, digits", random_state=0, ax=axes[0]
)
bins = calibration_bins(data.labels, data.proba)
axes[1].plot([0, 1], [0, 1], color="0.6", linestyle=":")
axes[1].plot(bins.prediction, bins.frequency, "o-", color="black", markersize=4)
axes[1].set(xlabel="predicted probability", ylabel="observed frequency", aspect="equal")
axes[1].set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
axes[1].set_title("as often drawn:\nis this model calibrated?", fontsize="small")
display = ReliabilityDisplay.from_predictions(
    data.labels, data.proba, name="the same predictions", random_state=0, ax=axes[2]
)

# %%
# What bins hide
# --------------
# An error of both signs within each bin: y = 1 has probability p + 0.4 p (1 - p) sin(30 π p).
# Bins and ranges average it away, and an exact test with 15 bins finds nothing; 60 bins show it.

rng = np.random.default_rng(0)
p = rng.uniform(size=20_000)
y = (rng.uniform(size=20_000) < p + 0.4 * p * (1 - p) * np.sin(30 * np.pi * p)).astype(int)

figure, axes = plt.subplots(1, 2, figsize=(9.2, 5), layout="constrained")
pvalues = {}
for ax, n_bins in zip(axes, (15, 60), strict=True):
    ReliabilityDisplay.from_predictions(
        y, p, n_bins=n_bins, strategy="uniform", name=f"{n_bins} bins", random_state=0, ax=ax
    )
    test = monte_carlo_test(y, p, n_bins=n_bins, n_resamples=199, random_state=0)
    pvalues[n_bins] = test.pvalue
    print(f"{n_bins} bins: ECE {test.estimate:.3f}, p = {test.pvalue:.3f}")
