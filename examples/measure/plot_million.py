"""
A million predictions
=====================

Predictions that do not fit into memory are counted in a table chunk by chunk: some megabytes, and
the same binned errors and scores as at once. Kernel errors of as
many samples come from a random part of their pairs, with a standard error.
"""

# %%
# Chunks
# ------
# Here the chunks are drawn one after the other; they could be files, or a memory map passed to
# ``update`` as it is. Tables of several machines are added with ``+``.

from time import perf_counter

import matplotlib.pyplot as plt
import numpy as np

from skcal import CalibrationTable, calibration_error_interval
from skcal.datasets import make_tempered
from skcal.metrics import (
    calibration_bins,
    expected_calibration_error,
    score_decomposition,
    squared_kernel_calibration_error,
)

n_chunks, size = 10, 100_000
edges = np.arange(51) / 50
table = CalibrationTable("confidence", edges=edges, labels=range(5))
seconds = 0.0
for seed in range(n_chunks):
    chunk = make_tempered(size, temperature=1.5, n_truth_draws=0, random_state=seed)
    start = perf_counter()
    table.update(chunk.labels, chunk.proba)
    seconds += perf_counter() - start

parts = score_decomposition(table)
debiased = expected_calibration_error(table, edges=edges, norm=2, debias=True)
print(f"{table.n_samples_seen_:,} predictions counted in {seconds:.1f} s")
print(calibration_error_interval(table).sentence())
print(f"ECE, 50 bins      {expected_calibration_error(table, edges=edges):.5f}")
print(f"debiased norm 2   {debiased:.5f}")
print(
    f"Brier score       {parts.score:.5f}, of confidence; miscalibration {parts.miscalibration:.5f}"
)

# %%
# A kernel error
# --------------
# All pairs of the last chunk would be 5 billion.

start = perf_counter()
value, error = squared_kernel_calibration_error(
    chunk.labels,
    chunk.proba,
    notion="canonical",
    method="incomplete",
    n_pairs=10 * size,
    return_standard_error=True,
    random_state=0,
)
seconds = perf_counter() - start
print(f"canonical SKCE {value:.5f} ± {error:.5f} (s.e.), {size:,} predictions in {seconds:.1f} s")

# %%
# The diagram
# -----------
# The table of the bins is all that a reliability diagram needs. At this n the intervals are so
# short that the gap is drawn instead of the frequency, in bins with 100 samples or more.

bins = calibration_bins(table, edges=edges)
filled = bins.count >= 100
x, frequency = bins.prediction[filled, 0], bins.frequency[filled, 0]
bars = np.abs(np.stack([bins.low[filled, 0], bins.high[filled, 0]]) - frequency)
figure, ax = plt.subplots(figsize=(7, 3.6), layout="constrained")
ax.axhline(0, color="0.6", linestyle=":")
ax.set(xlabel="confidence", ylabel="accuracy - confidence", xlim=(0, 1.02))
ax.set_title("50 bins, 95 % Clopper-Pearson intervals", fontsize="small")
points = ax.errorbar(x, frequency - x, bars, fmt="o", color="#0072B2", markersize=4, elinewidth=1)
