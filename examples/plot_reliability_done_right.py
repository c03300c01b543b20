"""
A reliability diagram done right
================================

Bins of few samples scatter even where the predictions are calibrated, and bins of many can hide
errors of both signs. Bands say what chance does, a histogram where the predictions are, and a
second look with other bins what the first has averaged away.
"""

# %%
# What chance does
# ----------------
# 400 predictions of a calibrated model: a line through 15 bins looks bad, and the band shows that
# it is not.

import matplotlib.pyplot as plt
import numpy as np

from skcal.datasets import make_dirichlet
from skcal.displays import ReliabilityDisplay
from skcal.hypothesis_tests import monte_carlo_test
from skcal.metrics import calibration_bins

data = make_dirichlet(400, n_classes=4, concentration=0.7, model="M1", random_state=3)

figure, (left, right) = plt.subplots(1, 2, figsize=(9.2, 6), layout="constrained")
bins = calibration_bins(data.labels, data.proba)
left.plot([0, 1], [0, 1], color="0.6", linestyle=":")
left.plot(bins.prediction, bins.frequency, "o-", color="black", markersize=4)
left.set(xlabel="predicted probability", ylabel="observed frequency", aspect="equal")
left.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
left.set_title("as often drawn:\nis this model calibrated?", fontsize="small")
display = ReliabilityDisplay.from_predictions(data.labels, data.proba, random_state=0, ax=right)

# %%
# What 15 bins hide
# -----------------
# An error of both signs within each bin: y = 1 has probability p + 0.4 p (1 - p) sin(30 π p).
# 15 bins average it away, and an exact test with them finds nothing; 60 bins show it.

rng = np.random.default_rng(0)
p = rng.uniform(size=20_000)
y = (rng.uniform(size=20_000) < p + 0.4 * p * (1 - p) * np.sin(30 * np.pi * p)).astype(int)

figure, axes = plt.subplots(1, 2, figsize=(9.2, 6), layout="constrained")
pvalues = {}
for ax, n_bins in zip(axes, (15, 60), strict=True):
    ReliabilityDisplay.from_predictions(y, p, n_bins=n_bins, random_state=0, ax=ax)
    test = monte_carlo_test(y, p, n_bins=n_bins, n_resamples=199, random_state=0)
    pvalues[n_bins] = test.pvalue
    print(f"{n_bins} bins: ECE {test.estimate:.3f}, p = {test.pvalue:.3f}")
