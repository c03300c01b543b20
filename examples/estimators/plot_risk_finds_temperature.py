"""
The risk finds the true temperature
===================================

Of a family of calibration-estimation functions h(p, p'), one for each assumed temperature, only one
is right. Its mean-squared-error risk over pairs of samples is lowest there, although no sample
shows its true probabilities: Figure 1 of `Gruber & Bach (2025) <https://arxiv.org/abs/2410.07014>`_.
"""

# %%
# The model
# ---------
# True probabilities π are Dirichlet(0.04), labels are drawn from π, and the predictions are
# p ∝ π^2: overconfident, of temperature 2. Assuming the temperature t, the correction of p is
# p^(1/t) normalised minus p, and h(p, p') the inner product of two corrections. As in the paper,
# 100 data sets of 500 samples; here of 5 classes.

import matplotlib.pyplot as plt
import numpy as np

from skcal.datasets import make_tempered
from skcal.pair_risk import pair_risk

assumed = np.linspace(1, 4, 25)  # 1 says that p is calibrated


def correction(proba, temperature):
    softer = proba ** (1 / temperature)
    return softer / softer.sum(axis=1, keepdims=True) - proba


risks = np.empty((100, len(assumed)))
for seed in range(100):
    data = make_tempered(500, concentration=0.04, temperature=2, n_truth_draws=0, random_state=seed)
    residuals = np.eye(5)[data.labels] - data.proba
    for k, temperature in enumerate(assumed):
        risks[seed, k] = pair_risk(correction(data.proba, temperature), residuals).value

# %%
# Risk against assumed temperature
# --------------------------------
# The risks of one data set move up and down together, so their differences are far more certain
# than the risks: the right panel shows each data set's risk above that at the truth.

mean, error = risks.mean(axis=0), risks.std(axis=0, ddof=1) / 10
above = risks - risks[:, [np.argmin(np.abs(assumed - 2))]]
best = assumed[mean.argmin()]
found = assumed[risks.argmin(axis=1)]
print(f"mean risk lowest at {best:.3f}")
print(f"single data sets: half of the minima within {np.quantile(found, [0.25, 0.75])}")

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
left.plot(assumed, mean, color="#0072B2")
left.fill_between(assumed, mean - 2 * error, mean + 2 * error, color="#0072B2", alpha=0.2)
left.set_ylabel("risk, mean ± 2 standard errors")
right.plot(assumed, above.mean(axis=0), color="#0072B2", label="mean")
low, high = np.quantile(above, [0.05, 0.95], axis=0)
right.fill_between(assumed, low, high, color="#0072B2", alpha=0.2, label="90 % of the data sets")
right.axhline(0, color="0.6", linewidth=1, linestyle=":")
right.set_ylabel("risk above that at the truth")
for ax in (left, right):
    ax.axvline(2, color="#D55E00", linestyle="--", label="true temperature")
    ax.set_xlabel("assumed temperature")
    ax.ticklabel_format(axis="y", style="sci", scilimits=(-2, 3))
legend = right.legend(loc="upper left", framealpha=1, edgecolor="none", fontsize="small")
