"""A process that is killed leaves a state from which another continues with the same numbers."""

import subprocess
import sys
import time

import numpy as np
import pytest

from skcal.monitoring import CalibrationMonitor

SCRIPT = """
import sys
from pathlib import Path
import numpy as np
from skcal._show import replacing
from skcal.monitoring import CalibrationMonitor

path, data = Path(sys.argv[1]), np.load(sys.argv[2])
monitor = CalibrationMonitor("canonical")
if path.exists():
    monitor = CalibrationMonitor.from_json(path.read_text())
while (seen := monitor.n_samples_seen_) < len(data["y"]):
    monitor.update(data["proba"][seen : seen + 20], data["y"][seen : seen + 20])
    with replacing(path, "w") as file:
        file.write(monitor.to_json())
"""


@pytest.mark.slow
def test_a_killed_process_is_continued_with_the_same_numbers(tmp_path, rng):
    proba = rng.dirichlet(np.ones(3), 40_000)
    y = (proba.cumsum(axis=1) < rng.uniform(size=(40_000, 1))).sum(axis=1)
    np.savez(tmp_path / "data.npz", proba=proba, y=y)
    state, seen = tmp_path / "state.json", []
    for kills in range(4):
        command = [sys.executable, "-c", SCRIPT, str(state), str(tmp_path / "data.npz")]
        process = subprocess.Popen(command)
        before = state.stat().st_mtime_ns if state.exists() else None
        while process.poll() is None and (not state.exists() or state.stat().st_mtime_ns == before):
            time.sleep(0.01)
        time.sleep(0.05 + 0.1 * kills)  # some batches
        process.kill()
        process.wait()
        seen.append(CalibrationMonitor.from_json(state.read_text()).n_samples_seen_)
    assert 0 < seen[0] < seen[1] < seen[2] < seen[3] < 40_000
    through = CalibrationMonitor("canonical")
    for start in range(0, seen[-1], 20):
        through.update(proba[start : start + 20], y[start : start + 20])
    assert state.read_text() == through.to_json()
