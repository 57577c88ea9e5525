"""A file is written whole or not at all."""

import os
from pathlib import Path

import pytest

from penstock.errors import InputError
from penstock.files import check_writable, replacing


def interrupted(file: Path) -> None:
    with replacing(file) as partial:
        partial.write_text("half")
        raise KeyboardInterrupt


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("old")
    with pytest.raises(KeyboardInterrupt):
        interrupted(file)
    assert file.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["a.csv"]


def test_nothing_can_be_seen_before_the_end(tmp_path: Path) -> None:
    file = tmp_path / "a.png"
    with replacing(file) as partial:
        partial.write_text("new")
        assert partial.suffix == ".png"
        assert not file.exists()
    assert file.read_text() == "new"
    assert [path.name for path in tmp_path.iterdir()] == ["a.png"]


def test_a_link_goes_on_pointing_at_the_file(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to("real")
    with replacing(tmp_path / "link") as partial:
        partial.write_text("new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "new"


def test_what_is_no_file_is_never_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to("loop")
    for path in (
        tmp_path,
        tmp_path / "pipe",
        tmp_path / "missing" / "a.csv",
        tmp_path / "loop" / "a.csv",
        Path("/dev/null"),
        tmp_path / "nul\0byte",
    ):
        with pytest.raises(InputError):
            check_writable(path)


def test_a_directory_that_cannot_be_written_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(InputError, match="cannot be written to"):
        check_writable(tmp_path / "a.csv")


def test_what_a_command_reads_is_not_written_over(tmp_path: Path) -> None:
    """By whatever name: a link to the file is the file."""
    source = tmp_path / "runs.csv"
    source.write_text("measured for weeks")
    (tmp_path / "link").symlink_to("runs.csv")
    for path in (source, tmp_path / "link"):
        with pytest.raises(InputError, match="is read by this command"):
            check_writable(path, not_one_of=(None, tmp_path / "missing", source))
    check_writable(tmp_path / "other.csv", not_one_of=(source,))


def test_two_writers_of_one_file_do_not_share_a_partial_one(tmp_path: Path) -> None:
    """Process numbers are no help: two hosts may have the same on one file system."""
    with replacing(tmp_path / "a") as one, replacing(tmp_path / "a") as other:
        assert one != other
        one.write_text("one")
        other.write_text("other")
    assert (tmp_path / "a").read_text() == "one"
