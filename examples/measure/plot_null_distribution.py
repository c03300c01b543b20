"""
What ECE calibrated predictions would have
==========================================

ECE of a calibrated model is not 0: it grows with the number of bins and falls with the number of
samples. A test that resamples keeps what it drew, so that the picture needs only matplotlib.
"""

# %%
# A test that resamples
# ---------------------
# Confidences of three classes, too high by a temperature of 1.5. The test draws labels from the
# predictions, 999 times, and computes the ECE of each data set.

import matplotlib.pyplot as plt

from skcal.datasets import make_tempered
from skcal.hypothesis_tests import monte_carlo_test

data = make_tempered(500, temperature=1.5, n_truth_draws=0, random_state=0)
result = monte_carlo_test(data.labels, data.proba, random_state=0)
null = result.null_distribution
print(f"ECE {result.statistic:.3f}, if calibrated {null.mean():.3f} on average")

# %%
# The picture
# -----------
# Grey are the ECEs of calibrated models, orange those that are at least as large as the ECE of
# this model. Their number gives the p-value: (1 + number) / (1 + 999).

extreme = null >= result.statistic
figure, ax = plt.subplots(figsize=(6.4, 4), layout="constrained")
labels = [f"{len(null)} calibrated models", f"{extreme.sum()} of them at least as large"]
colors = ["#999999", "#E69F00"]
ax.hist([null[~extreme], null[extreme]], 30, stacked=True, color=colors, label=labels)
label = f"this model, p = {result.pvalue:.3g}"
ax.axvline(result.statistic, color="#0072B2", linewidth=2, label=label)
ax.set(xlabel="ECE", ylabel="resamples")
ax.legend()

# %%
# Where every class is tested (``notion="classwise"``), ``null_distribution`` has a row a class;
# draw one with ``result.class_statistics[k]`` and ``result.class_pvalues[k]``.
