"""Threads and interrupts for an hour, or for as many seconds as SKCAL_SOAK_SECONDS says."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("matplotlib")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_hours_of_threads_and_interrupts_change_nothing(capsys):
    seconds = os.environ.get("SKCAL_SOAK_SECONDS", "3600")
    command = [sys.executable, str(Path(__file__).parent / "soak.py"), seconds]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    with capsys.disabled():
        print(told)
    assert told["done"]["interrupts"] > int(float(seconds)) // 3
    assert len(told["threads"]) == 1
    least, most, *_ = told["mebibytes"]
    assert most < 1.1 * least
