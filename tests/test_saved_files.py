"""Files that a release saved are read by every later one of the same 0.x, with the same answers.

``python tests/test_saved_files.py`` writes them for a release; its file then stays as it is.
"""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

import skcal
from skcal import Recalibrator, recalibration
from skcal.monitoring import CalibrationMonitor
from skcal.recalibration import RecalibrationMap

SAVED = sorted(Path(__file__).parent.glob("saved_by_*.json"))
MAPS = [
    thing()
    for _, thing in sorted(vars(recalibration).items())
    if isinstance(thing, type) and issubclass(thing, RecalibrationMap) and thing._formula
]


def draw(n_columns, n=200):
    rng = np.random.default_rng(n_columns)
    X = rng.dirichlet(np.ones(max(n_columns, 2)), n).round(3) * 0.998 + 0.001
    X /= X.sum(axis=1, keepdims=True)
    y = (X.cumsum(axis=1) ** 1.2 < rng.uniform(size=(n, 1))).sum(axis=1)
    return (X[:, 1] if n_columns == 1 else X), np.minimum(y, X.shape[1] - 1)


def entries():
    """Fit everything that has JSON, and yield its name, text, samples and answers."""
    for method in [*MAPS, Recalibrator(random_state=0)]:
        for n_columns in (1,) if getattr(method, "_of_single_probability", False) else (1, 3):
            X, y = draw(n_columns)
            fitted = method.fit(X, y)
            proba = fitted.predict_proba(X[:5])
            yield type(method).__name__, fitted.to_json(), X[:5].tolist(), proba.tolist()
    monitor = CalibrationMonitor("confidence", alpha=0.1)
    X, y = draw(3)
    monitor.update(X, y)
    text = monitor.to_json()
    monitor.update(X[:50], y[:50])
    yield "CalibrationMonitor", text, X[:50].tolist(), [monitor.e_value_, *y[:50].tolist()]


def load():
    for path in SAVED:
        for name, text, given, answer in json.loads(path.read_text(encoding="utf-8")):
            yield pytest.param(name, text, np.array(given), answer, id=f"{path.stem}-{name}")


@pytest.mark.parametrize(("name", "text", "given", "answer"), list(load()))
def test_a_saved_file_answers_as_it_did(name, text, given, answer):
    if name == "CalibrationMonitor":
        monitor = CalibrationMonitor.from_json(text)
        found = monitor.update(given, np.array(answer[1:])).e_value_
        return assert_allclose(found, answer[0], rtol=1e-9)
    reader = Recalibrator if name == "Recalibrator" else RecalibrationMap
    assert_allclose(reader.from_json(text).predict_proba(given), answer, rtol=1e-9)


def test_everything_that_has_json_was_saved():
    saved = {case.values[0] for case in load()}
    assert saved >= {type(method).__name__ for method in MAPS} | {"CalibrationMonitor"}


if __name__ == "__main__":
    written = Path(__file__).with_name(f"saved_by_{skcal.__version__}.json")
    sys.stdout.write(f"{written.name}\n")
    written.write_text("\n".join(["[", ",\n".join(map(json.dumps, entries())), "]", ""]))
