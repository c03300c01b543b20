"""What a command says to do is done, and gives the answer of another command that is right."""

from pathlib import Path

import numpy as np
import pytest
from advice import matches
from advice_of_commands import CASES, make_files, numbers_of, run


@pytest.fixture(autouse=True)
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    make_files()


@pytest.mark.parametrize("text", CASES)
def test_advice_of_commands_is_followed(text):
    words, followed, right = CASES[text]
    assert matches(text, run(words)[2])
    for path in ("s.json", "map.json", "new.csv"):
        (Path.cwd() / path).unlink(missing_ok=True)
    if isinstance(right, int):
        assert run(followed)[0] == right
        return
    numbers = numbers_of(followed)
    assert len(numbers) > 3
    np.testing.assert_allclose(numbers, numbers_of(right), rtol=1e-9)
