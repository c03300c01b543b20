"""Streams that are closed, full or of another encoding, and signals."""

import io
import os
import sys

import pytest

from skcal.cli.commands import main, print_message

TABLE = "chât,dog,label\n" + "0.25,0.75,dog\n0.5,0.5,chât\n" * 20
TEST = ["test", "predictions.csv", "--resamples", "19"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "predictions.csv").write_text(TABLE, encoding="utf-8")
    return tmp_path


def stream(encoding):
    return io.TextIOWrapper(io.BytesIO(), encoding=encoding, newline="")


def test_characters_that_the_output_lacks_are_escaped(folder, monkeypatch):
    monkeypatch.setattr(sys, "stdout", stream("cp1252"))
    assert main(["report", *TEST[1:]]) == 0
    text = sys.stdout.buffer.getvalue().decode("cp1252")
    assert "95 %" in text
    assert "\\u2264" in text  # at most


def test_a_closed_output_takes_nothing_and_the_status_tells(folder, monkeypatch):
    monkeypatch.setattr(sys, "stdout", None)
    assert main(TEST) == 0
    assert main([*TEST[:2], "--alpha", "0.9", "--resamples", "99"]) == 1


def test_a_closed_error_stream_does_not_lead_to_the_output(folder, monkeypatch, capsys):
    monkeypatch.setattr(sys, "stderr", None)
    assert main(["test", "absent.csv"]) == 2
    assert capsys.readouterr().out == ""


def test_a_closed_input_is_named(folder, monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdin", None)
    assert main(["test", "-"]) == 2
    assert capsys.readouterr().err == (
        "skcal: standard input: is closed. Pass the name of a file.\n"
    )


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no full device")
@pytest.mark.parametrize("form", [[], ["--json"]])
def test_a_full_output_is_named(folder, form, monkeypatch, capsys):
    full = open("/dev/full", "w", encoding="utf-8")  # noqa: SIM115
    monkeypatch.setattr(sys, "stdout", full)
    assert main([*TEST, *form]) == 2
    assert capsys.readouterr().err == "skcal: standard output: No space left on device.\n"
    with pytest.raises(OSError, match="No space"):
        full.close()


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no full device")
def test_a_full_error_stream_changes_no_status(folder, monkeypatch):
    class Full(io.StringIO):
        def write(self, text):
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(sys, "stderr", Full())
    print_message("nothing")
    assert main(["test", "absent.csv"]) == 2
