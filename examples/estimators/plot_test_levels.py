"""
Which tests keep their level?
=============================

A test at level 5 % should reject 5 % of calibrated models. Monte Carlo tests do, at every sample
size, since they redraw the outcomes from the predictions; consistency resampling of ECE, which
redraws the predictions too, rejects nearly all; distribution-free bounds reject none: Figure 2 of
`Widmann et al. (2019) <https://arxiv.org/abs/1910.11385>`_.
"""

# %%
# Calibrated data sets
# --------------------
# Model M1 of the paper: predictions from Dir(0.1) over 10 classes, labels drawn from them. Here 100
# data sets of 100 samples and 59 resamples; ``errors_of_tests.py`` draws as many as the paper does,
# of 250 samples, and models that are not calibrated.

from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import binom

from skcal.datasets import make_dirichlet
from skcal.hypothesis_tests import monte_carlo_test, skce_test
from skcal.metrics import expected_calibration_error

canonical = {"notion": "canonical", "labels": range(10)}


def consistency_test(y, p, n_resamples=59):
    """p-value by resampled predictions, and outcomes that are drawn from these."""
    rng = np.random.default_rng(0)
    null = []
    for _ in range(n_resamples):
        drawn = p[rng.integers(len(p), size=len(p))]
        outcomes = (rng.uniform(size=(len(p), 1)) > drawn.cumsum(axis=1)[:, :-1]).sum(axis=1)
        null.append(expected_calibration_error(outcomes, drawn, n_bins=10, **canonical))
    observed = expected_calibration_error(y, p, n_bins=10, **canonical)
    return SimpleNamespace(pvalue=np.mean([*(null >= np.float64(observed)), True]))


resampled = {**canonical, "n_resamples": 59, "random_state": 0}
tests = {
    "ECE, consistency resampling": consistency_test,
    "ECE, Monte Carlo": lambda y, p: monte_carlo_test(y, p, n_bins=10, **resampled),
    "SKCE, Monte Carlo": lambda y, p: skce_test(y, p, **resampled),
    "SKCE, asymptotic": lambda y, p: skce_test(y, p, method="asymptotic", **resampled),
    "SKCE, linear": lambda y, p: skce_test(y, p, method="block", block_size=2, **canonical),
    "SKCE, distribution-free": lambda y, p: skce_test(
        y, p, method="distribution-free", **canonical
    ),
}
n_datasets = 100
pvalues = {name: np.empty(n_datasets) for name in tests}
for seed in range(n_datasets):
    data = make_dirichlet(100, model="M1", random_state=seed)
    for name, test in tests.items():
        pvalues[name][seed] = test(data.labels, data.proba).pvalue

# %%
# Share of false rejections
# -------------------------
# The grey band holds 95 % of what a test with the nominal level would show.

levels = np.linspace(0.01, 0.99, 99)
figure, ax = plt.subplots(figsize=(7.6, 4.6), layout="constrained")
band = binom.ppf([[0.025], [0.975]], n_datasets, levels) / n_datasets
ax.fill_between(levels, *band, color="0.85", linewidth=0, label="chance, at the nominal level")
ax.plot([0, 1], [0, 1], color="0.5", linestyle=":")
colours = ("#D55E00", "#0072B2", "#56B4E9", "#009E73", "#CC79A7", "black")
for (name, values), colour in zip(pvalues.items(), colours, strict=True):
    shares = (values[:, None] <= levels + 1e-9).mean(axis=0)
    ax.plot(levels, shares, color=colour, label=name, linestyle="--" if "SKCE" in name else "-")
    print(f"{name:28s} rejects {np.mean(values <= 0.05):6.1%} at level 5 %")
ax.set(xlabel="nominal level", ylabel="share of calibrated data sets rejected", aspect="equal")
legend = ax.legend(bbox_to_anchor=(1.02, 1), loc="upper left", frameon=False, fontsize="small")
