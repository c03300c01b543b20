"""A file, or an option, is changed as a command says, and the answer is the right one."""

import sys
from pathlib import Path

import numpy as np
import pytest
from advice import matches
from advice_of_commands import numbers_of, run
from advice_of_repairs import CASES, FILES
from advice_of_rows import CASES as OF_ROWS
from advice_of_rows import NEEDED


def save(files):
    """Texts, bytes and archives of arrays by their names; None takes a file away."""
    for name, content in files.items():
        path = Path(name)
        if content is None:
            path.unlink()
        elif isinstance(content, dict):
            np.savez(path, **content)
        else:
            path.write_bytes(content if isinstance(content, bytes) else content.encode())


CASES |= OF_ROWS


@pytest.mark.parametrize("text", CASES)
def test_advice_to_repair_a_file_is_followed(text, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    wrong, words, repaired, followed, right = CASES[text]
    save(FILES | wrong)
    told = run(words)[2]
    assert matches(text, told), told
    save(repaired)
    if right is None:
        assert run(followed)[0] == 0
        return
    found, wanted = (
        numbers_of(line if "--json" in line else f"{line} --json") for line in (followed, right)
    )
    assert len(found) > 3
    np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("text", NEEDED)
def test_a_package_is_installed_as_a_message_says(text, tmp_path, monkeypatch):
    package, name, content = NEEDED[text]
    monkeypatch.chdir(tmp_path)
    pytest.importorskip(package)
    save(FILES | {name: content()})
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, package, None)  # as where it is not installed
        told = run(f"evaluate {name}")[2]
    assert matches(text, told), told
    found, wanted = (numbers_of(f"evaluate {each} --json") for each in (name, "right.csv"))
    np.testing.assert_allclose(found, wanted, rtol=1e-9)
