"""Streams that are closed, full or of another encoding, and signals."""

import io
import json
import os
import signal
import subprocess
import sys
import time

import pytest

from skcal.cli.commands import main, print_message, print_result

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
    assert "\\u2212" in text  # the minus of a difference


def test_json_of_an_ascii_output_holds_the_names(folder, monkeypatch):
    monkeypatch.setattr(sys, "stdout", stream("ascii"))
    print_result(json.dumps(["chât", "🐄"], ensure_ascii=False))
    sys.stdout.flush()
    assert json.loads(sys.stdout.buffer.getvalue()) == ["chât", "🐄"]


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


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="no such signals")
@pytest.mark.parametrize("name", ["SIGTERM", pytest.param("SIGHUP", marks=pytest.mark.slow)])
def test_signals_that_end_it_leave_no_file_beside(folder, name):
    # The program stops while it writes: what it writes to is a file of its own until then. Under
    # nohup, say, it would inherit that the signal is ignored.
    script = (
        f"import signal; signal.signal(signal.{name}, signal.SIG_DFL)\n"
        "import sys, time; from skcal.cli import recalibrate; from skcal.cli.commands import main\n"
        "recalibrate.Recalibrator.to_json = lambda self: (print('here', flush=True), "
        "time.sleep(60))\n"
        "sys.exit(main(['recalibrate', 'predictions.csv', '--save', 'map.json']))"
    )
    number = getattr(signal, name)
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"here\n"
        time.sleep(0.1)
        process.send_signal(number)
        assert process.wait(30) == 128 + number
    assert [one.name for one in folder.iterdir()] == ["predictions.csv"]


def test_signals_that_others_handle_stay_theirs(folder, monkeypatch):
    def handle(number, frame):
        raise AssertionError

    before = signal.signal(signal.SIGTERM, handle)
    try:
        assert main([*TEST, "--quiet"]) == 0
        assert signal.getsignal(signal.SIGTERM) is handle
    finally:
        signal.signal(signal.SIGTERM, before)
    assert main([*TEST, "--quiet"]) == 0
    assert signal.getsignal(signal.SIGTERM) is before
