"""The GROUP BY of the page "A billion rows" gives the table that ``update`` counts."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from skcal import CalibrationTable, calibration_error_interval

pytestmark = pytest.mark.integrations
PAGE = Path(__file__).parents[2] / "doc" / "guide" / "billion_rows.rst"


def code_of(engine):
    """The code of the page under a title."""
    text = PAGE.read_text(encoding="utf-8")
    part = text.split(f"\n{engine}\n-", 1)[1]
    lines = part.split(".. code-block:: python\n", 1)[1].lstrip("\n").splitlines()
    end = next((k for k, line in enumerate(lines) if line and line[0] != " "), len(lines))
    return "\n".join(line[3:] for line in lines[:end])


@pytest.fixture
def folder(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    p = np.concatenate([rng.random(4000), rng.beta(0.1, 3, 3000), np.arange(16) / 15, [0.5, 1e-30]])
    p = np.concatenate([p, 1 - p, np.nextafter(np.arange(1, 15) / 15, 1)])
    y = (rng.random(len(p)) < p**1.2).astype(int)
    frame = pd.DataFrame({"p": p, "y": y})
    (tmp_path / "days").mkdir()
    for day, part in enumerate(np.array_split(rng.permutation(len(p)), 3)):
        frame.iloc[part].to_parquet(tmp_path / "days" / f"{day}.parquet")
    monkeypatch.chdir(tmp_path)
    return CalibrationTable().update(y, p)


@pytest.mark.parametrize("engine", ["DuckDB", "Polars", "dask", "Spark"])
@pytest.mark.filterwarnings("ignore")
def test_the_group_by_of_the_page_counts_the_same_table(engine, folder):
    module = {"DuckDB": "duckdb", "Polars": "polars", "dask": "dask.dataframe", "Spark": "pyspark"}
    pytest.importorskip(module[engine])
    names = {}
    code = code_of(engine)
    assert re.search("from_frame|sum\\(", code)
    try:
        exec(code, names)
    except Exception as error:
        if "JAVA" in str(error).upper():
            pytest.skip("Spark needs Java")
        raise
    table = names["table"]
    keys = ["cell", "bin", "outcome", "n"]
    found, expected = table.to_frame(), folder.to_frame()
    pd.testing.assert_frame_equal(found[keys], expected[keys])
    assert_allclose(found[["wp", "wp2"]], expected[["wp", "wp2"]], rtol=1e-12, atol=1e-15)
    one, other = map(calibration_error_interval, (table, folder))
    assert_allclose([one.low, one.high], [other.low, other.high], rtol=1e-9)
