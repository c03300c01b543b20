"""A file is written as a whole or not at all."""

import errno
import os
import stat
from unittest import mock

import pytest

from skcal._show import replacing
from skcal.cli.commands import main
from skcal.displays.draw import save_figure
from skcal.report import calibration_report
from skcal.report.views import draw, reliability


def write(path, content, fail=None):
    with replacing(path) as file:
        file.write(content)
        if fail is not None:
            raise fail


@pytest.mark.parametrize("fail", [ValueError(), KeyboardInterrupt(), OSError(errno.ENOSPC, "")])
@pytest.mark.parametrize("exists", [False, True])
def test_a_failure_leaves_the_old_file_and_no_other(tmp_path, fail, exists):
    path = tmp_path / "report.html"
    if exists:
        path.write_bytes(b"old")
    fail = type(fail)(*fail.args)
    with pytest.raises(type(fail)) as caught:
        write(path, b"new", fail)
    assert [one.name for one in tmp_path.iterdir()] == ["report.html"] * exists
    assert not exists or path.read_bytes() == b"old"
    if isinstance(fail, OSError):
        assert caught.value.filename == str(path)


def test_text_and_bytes_are_written(tmp_path):
    path = tmp_path / "table.csv"
    write(path, b"a\n")
    assert path.read_bytes() == b"a\n"
    with replacing(path, "w", encoding="utf-8", newline="") as file:
        file.write("é\r\n")
    assert path.read_bytes() == "é\r\n".encode()
    assert len(list(tmp_path.iterdir())) == 1


def test_permissions_are_kept_and_new_files_have_those_of_any(tmp_path):
    path, plain = tmp_path / "a", tmp_path / "b"
    write(path, b"")
    plain.write_bytes(b"")
    assert path.stat().st_mode == plain.stat().st_mode
    path.chmod(0o640)
    write(path, b"new")
    assert path.stat().st_mode & 0o777 == 0o640


def test_the_target_of_a_link_is_replaced_and_the_link_stays(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    target, link = folder / "target", tmp_path / "link"
    target.write_bytes(b"old")
    link.symlink_to(target)
    write(link, b"new")
    assert link.is_symlink()
    assert target.read_bytes() == b"new"
    assert len(list(tmp_path.rglob("*"))) == 3


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names")
def test_what_is_no_regular_file_is_written_directly(tmp_path):
    pipe = tmp_path / "pipe"  # a device of the machine would be lost if it were replaced
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write(pipe, b"new")
    assert os.read(reader, 10) == b"new"
    assert stat.S_ISFIFO(pipe.stat().st_mode)

    def write_to_nobody():
        with replacing(pipe) as file:
            os.close(reader)
            file.write(b"new")

    with pytest.raises(BrokenPipeError) as caught:
        write_to_nobody()
    assert caught.value.filename == str(pipe)
    with pytest.raises(IsADirectoryError):
        write(tmp_path, b"new")
    assert [one.name for one in tmp_path.iterdir()] == ["pipe"]


def test_what_cannot_be_written_names_the_path(tmp_path):
    missing = tmp_path / "absent" / "report.html"
    with pytest.raises(FileNotFoundError, match=r"report\.html'$") as caught:
        write(missing, b"")
    assert caught.value.filename == str(missing)
    if os.geteuid():  # root may write everything
        path = tmp_path / "report.html"
        path.write_bytes(b"old")
        path.chmod(0o400)
        with pytest.raises(PermissionError, match=r"report\.html"):
            write(path, b"new")


def test_everything_that_is_saved_leaves_the_old_file_whole(tmp_path, monkeypatch, capsys):
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "predictions.csv").write_text("0,1,label\n" + "0.25,0.75,1\n0.5,0.5,0\n" * 20)
    options = {"n_resamples": 19, "random_state": 0}
    report = calibration_report([1, 0] * 20, [0.75, 0.5] * 20, **options)
    figure = draw(reliability([report.overall], report.notion, report.settings))
    saves = dict.fromkeys(["report.html", "report.json"], report.save)
    saves["figure.png"] = lambda name: save_figure(figure, name)
    for name in (*saves, "command.json"):
        (tmp_path / name).write_bytes(b"old")
    full = mock.Mock(side_effect=OSError(errno.ENOSPC, "No space left on device"))
    monkeypatch.setattr("os.replace", full)
    for name, save in saves.items():
        with pytest.raises(OSError, match="No space") as caught:
            save(name)
        assert caught.value.filename == name
    assert (
        main(["recalibrate", "predictions.csv", "--save", "command.json", "--method", "slope"]) == 2
    )
    assert capsys.readouterr().err == "skcal: command.json: No space left on device.\n"
    assert {one.name for one in tmp_path.iterdir()} == {*saves, "command.json", "predictions.csv"}
    for name in (*saves, "command.json"):
        assert (tmp_path / name).read_bytes() == b"old"
