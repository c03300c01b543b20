"""
Why ECE of a calibrated model is not zero
=========================================

Estimates from 250 samples scatter, and ECE scatters around the wrong value: for a calibrated model
with 100 classes it lies at 0.9, twice what random labels show with two. The unbiased kernel error
averages to its truth, on a scale of its own: Figure 1 of
`Widmann et al. (2019) <https://arxiv.org/abs/1910.11385>`_.
"""

# %%
# Draws
# -----
# Model M1 is calibrated, M2 mixes one class into half of the labels, and M3 draws labels at random.
# ECE is the canonical one, 10 bins a class, with the total variation distance. Here 15 data sets
# for each model and number of classes; the paper drew 10,000.

import matplotlib.pyplot as plt
import numpy as np

from skcal.datasets import make_dirichlet
from skcal.metrics import expected_calibration_error, squared_kernel_calibration_error

n_classes, models = (2, 10, 100, 1000), ("M1", "M2", "M3")


def estimates(C, model, seed):
    data = make_dirichlet(250, n_classes=C, model=model, random_state=seed)
    options = {"notion": "canonical", "labels": range(C)}
    ece = expected_calibration_error(data.labels, data.proba, n_bins=10, **options)
    skce = squared_kernel_calibration_error(data.labels, data.proba, **options)
    return ece, skce


def truths(C, model):
    """ECE in closed form; the kernel error of M1 is 0, the others' from 40,000 pairs."""
    data = make_dirichlet(2000, n_classes=C, model=model, random_state=0)
    if model == "M1":
        return data.true_total_variation, 0.0
    options = {"notion": "canonical", "labels": range(C), "random_state": 0}
    skce = squared_kernel_calibration_error(
        data.labels, data.proba, method="incomplete", n_pairs=40_000, **options
    )
    return data.true_total_variation, skce


values = {
    (C, m): np.array([estimates(C, m, s) for s in range(15)]) for C in n_classes for m in models
}
truth = {(C, model): truths(C, model) for C in n_classes for model in models}

# %%
# Distributions
# -------------
# Compare the mean of the estimates with the truth, row by row.

figure, axes = plt.subplots(2, 4, figsize=(11, 5.2), layout="constrained", sharey="row")
for row, name in enumerate(("ECE", "SKCE, unbiased")):
    for ax, C in zip(axes[row], n_classes, strict=True):
        draws = [values[C, model][:, row] for model in models]
        parts = ax.violinplot(draws, showextrema=False, widths=0.9)
        for body in parts["bodies"]:
            body.set(facecolor="#0072B2", alpha=0.3)
        means = [one.mean() for one in draws]
        ax.plot([1, 2, 3], means, "o", color="#0072B2", label="mean of the estimates")
        exact = [truth[C, model][row] for model in models]
        ax.plot([1, 2, 3], exact, "_", color="#D55E00", markersize=26, mew=2, label="truth")
        ax.set_xticks([1, 2, 3], models)
        ax.set_title(f"{C:,} classes", fontsize="medium")
    axes[row, 0].set_ylabel(name)
legend = figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
