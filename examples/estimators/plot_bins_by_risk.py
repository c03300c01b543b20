"""
How many bins?
==============

Few bins average errors away, many add noise, and which number is right depends on the data and on
how many there are. The pair risk chooses it without knowing the truth: here, where the truth is
known, the chosen bins come close to it.
"""

# %%
# The error against the number of bins
# ------------------------------------
# The true confidence error of this model is known. The binned error of calibrated predictions rises
# with the number of bins too, as the band shows; debiasing takes the noise out until bins hold
# single samples.

import numpy as np

from skcal import Binning, CalibrationErrorSearchCV
from skcal.datasets import make_distorted
from skcal.displays import BinCountDisplay, RiskDisplay

data = make_distorted(3000, distortion="non-monotone", n_truth_draws=100_000, random_state=0)
truth = np.sqrt(data.true_squared_errors["confidence"].value)
numbers = [1, 2, 3, 5, 8, 10, 15, 20, 30, 50, 80, 120, 200, 300]

display = BinCountDisplay.from_predictions(
    data.labels, data.proba, n_bins=numbers, random_state=0, name="non-monotone distortion"
)
display.ax_.axhline(truth, color="black", linestyle="-.", label=f"truth {truth:.3f}")
legend = display.ax_.legend(bbox_to_anchor=(1.01, 1), frameon=False, fontsize="small")

# %%
# The number that the risk chooses
# --------------------------------
# Validation risks above the lowest. ``outer_cv=5`` estimates the error on every sample, with bins
# that were chosen and filled without it.

search = CalibrationErrorSearchCV(
    [(Binning(), {"n_bins": numbers})], "confidence", outer_cv=5, random_state=0
).fit(data.proba, data.labels)
print(f"chosen: {search.best_params_['function__n_bins']} bins")
print(f"calibration error {search.rms_calibration_error_:.4f}, truth {truth:.4f}")
risks = RiskDisplay.from_search(search, param="n_bins")

# %%
# More samples, more bins
# -----------------------
# The usual 15 suit one sample size.

print(f"     n  chosen bins   error (truth {truth:.4f})")
chosen = {}
for n in (300, 3000, 30_000):
    sample = make_distorted(n, distortion="non-monotone", n_truth_draws=0, random_state=1)
    found = CalibrationErrorSearchCV(search.candidates, "confidence", random_state=0)
    found.fit(sample.proba, sample.labels)
    chosen[n] = found.best_params_["function__n_bins"]
    print(f"{n:6,}  {chosen[n]:11d}  {found.rms_calibration_error_:6.4f}")
