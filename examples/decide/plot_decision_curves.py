"""
Does the model help to decide?
==============================

Two models rank patients alike, so that their C-statistics are equal; one of them overestimates the
risk. Treating by it does harm at thresholds where treating by the other helps. Decision curves show
that, Murphy diagrams show it at every threshold, with what chance allows.
"""

# %%
# Two models of the same ranks
# ----------------------------
# Some 6 % of 3,000 patients have the event. The second model was made where 20 % of the patients
# had it, and nobody told it of the difference.

import numpy as np
from scipy.special import expit
from sklearn.metrics import roc_auc_score

from skcal.displays import DecisionCurveDisplay, MurphyDisplay
from skcal.metrics import decision_curve, net_benefit
from skcal.recalibration import adjust_prevalence

rng = np.random.default_rng(0)
p = expit(rng.normal(-3.4, 1.3, size=3000))
y = (rng.uniform(size=3000) < p).astype(int)
too_high = adjust_prevalence(p, prevalence=y.mean(), new_prevalence=0.2)
print(f"C-statistics: {roc_auc_score(y, p):.3f} and {roc_auc_score(y, too_high):.3f}")

# %%
# Decision curves
# ---------------
# At a threshold of 20 % four needless treatments weigh as much as one event that is found. The
# model that overestimates treats too many: treating nobody is better.

threshold = 0.2
benefit = {
    "calibrated": net_benefit(y, p, threshold=threshold),
    "too high": net_benefit(y, too_high, threshold=threshold),
}
print({name: round(value, 4) for name, value in benefit.items()})
grid = np.arange(51) / 100
curve = decision_curve(y, too_high, thresholds=grid)
harmful = grid[curve.band_high < 0]
print(f"harmful, as the band of all thresholds shows, from {harmful.min()} to {harmful.max()}")
display = DecisionCurveDisplay.from_predictions(y, p, thresholds=grid, name="calibrated")
DecisionCurveDisplay.from_predictions(y, too_high, thresholds=grid, name="too high", ax=display.ax_)

# %%
# The Murphy diagram
# ------------------
# Mean elementary scores, lower is better, and their difference. Where its band is above 0 the
# calibrated model is better, and every proper score that weighs these thresholds alone agrees.

murphy = MurphyDisplay.from_predictions(
    y, too_high, compare=p, name="too high", compare_name="calibrated"
)

# %%
# The remedy
# ----------
# One formula undoes it, if patients with the event look alike in both places.

mended = adjust_prevalence(too_high, prevalence=0.2, new_prevalence=y.mean())
print(f"net benefit after: {net_benefit(y, mended, threshold=threshold):.4f}")
