"""Every table and picture of the page "Evidence" and of the costs beside peers, in one go.

Each part is a command of its own, here with numbers of draws for which all of them take less than
half an hour on two cores. What was drawn is kept in the folder ``--work``: a run that was stopped
resumes, its times add up, and with more draws a study adds to what it has. Run

    python tests/studies/evidence.py FOLDER                          # writes doc/evidence
    python tests/studies/evidence.py FOLDER --only number errors     # some parts

with the predictions that ``published_tables.py`` describes in FOLDER, and the extras ``plot`` and
``peers``, catboost, lightgbm and xgboost installed.
"""

import argparse
import os
import shlex
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

from study_tools import append, rows_of, write_table

ROOT = Path(__file__).parents[2]
TODAY = datetime.now(UTC).date().isoformat()
TABLES = "--tables {out}"
#: What is run for each part, one command after the other.
PARTS = {
    "number": ["tests/studies/truth_study.py --out {work}/truth.csv --peers --seeds 2 " + TABLES],
    "networks": ["tests/studies/published_tables.py networks {data} " + TABLES],
    "tests": [
        "tests/studies/errors_of_tests.py --out {work}/pvalues.csv --closed 250 --resampled 60 "
        + TABLES
    ],
    "costs": ["tests/benchmarks/peers.py --out {work}/costs.csv " + TABLES],
    "maps": [
        "tests/benchmarks/recalibration.py {work}/networks --networks {data}/cifar10 --seeds 1 "
        + TABLES,
        "tests/benchmarks/recalibration.py {work}/tabular --tabular --seeds 1 " + TABLES,
    ],
    "errors": [
        "tests/studies/errors_study.py --out {work}/errors.csv --sizes 200 1069 --seeds 3",
        "tests/studies/errors_study.py --out {work}/errors.csv --sizes 200 1069 --seeds 3 "
        "--peers temperature isotonic " + TABLES,
    ],
    "estimates": ["tests/studies/estimates_study.py --slow-sets 3 " + TABLES],
    "risks": ["tests/studies/published_tables.py risks {data} " + TABLES],
}


def run(part, folders, environment):
    """Run the commands of a part."""
    log = folders["work"] / f"{part}.log"
    with log.open("w", encoding="utf-8") as file:
        for command in PARTS[part]:
            start = time.monotonic()
            words = [sys.executable, *shlex.split(command.format(**folders))]
            child = subprocess.Popen(words, cwd=ROOT, env=environment, stdout=file, stderr=file)
            _, status, usage = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(status)
            seconds = time.monotonic() - start, usage.ru_utime + usage.ru_stime
            append(folders["work"] / "seconds.csv", [[[part, *seconds, TODAY]]])
            if child.returncode:
                sys.exit(f"{part} failed: {command}; see {log}")
    print(part, "is done", flush=True)


def describe(work, out):
    """Write the commands of each part with their time, and all times."""
    rows = []
    for part, commands in PARTS.items():
        own = [row for row in rows_of(work / "seconds.csv") if row[0] == part]
        if not own:
            continue
        processor = sum(float(row[2]) for row in own)
        rows.append([part, f"{processor:.0f}", own[-1][3]])
        shown = [one.format(data="FOLDER", out="OUT", work="WORK") for one in commands]
        lines = [".. code-block:: bash", "", *(f"   python {one}" for one in shown), ""]
        lines.append(f"{processor:.0f} seconds of one processor, on {own[-1][3]}.")
        (out / f"{part}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    total = sum(float(row[1]) for row in rows)
    rows.append(["all", f"{total:.0f}, {total / 120:.0f} minutes of two cores", ""])
    write_table(out, "runs", ["part", "seconds of one processor", "day"], rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path, help="the folder of published predictions")
    parser.add_argument("--out", type=Path, default=ROOT / "doc" / "evidence")
    parser.add_argument("--work", type=Path, default=ROOT / "build" / "evidence")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--n-jobs", type=int, default=2, help="parts at the same time")
    options = parser.parse_args()
    folders = {key: getattr(options, key).resolve() for key in ("data", "out", "work")}
    for name in ("out", "work"):
        folders[name].mkdir(parents=True, exist_ok=True)
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    with ThreadPoolExecutor(options.n_jobs) as pool:
        for _ in pool.map(lambda part: run(part, folders, environment), options.only):
            describe(folders["work"], folders["out"])


if __name__ == "__main__":
    main()
