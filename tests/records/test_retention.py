"""Old parts of the record go, the oldest first; what is no part, or is being written, stays."""

import logging
import math
import os
import time
from pathlib import Path

import pytest
from limits import HANG
from records.random_days import header

from penstock.config import Setting, load
from penstock.errors import InputError
from penstock.model import Woke
from penstock.records import RecordWriter, Retention
from penstock.records.writer import append_all_or_nothing

DAY = 86400.0
NOW = 1e9


def part(directory: Path, days: int, size: int = 100, suffix: str = "jsonl") -> Path:
    path = directory / f"record-20260101-000000-a1b2-{9000 - days:04}.{suffix}"
    path.write_bytes(bytes(size))
    os.utime(path, (NOW - days * DAY, NOW - days * DAY))
    return path


def test_parts_that_are_too_old_are_removed(tmp_path: Path) -> None:
    old, packed, young = (
        part(tmp_path, 40),
        part(tmp_path, 35, suffix="jsonl.gz"),
        part(tmp_path, 9),
    )
    other = tmp_path / "record-of-my-own.jsonl"
    other.write_text("")
    os.utime(other, (0, 0))
    assert Retention(seconds=30 * DAY).prune(tmp_path, NOW) == [old, packed]
    assert sorted(tmp_path.iterdir()) == sorted([young, other])


def test_the_newest_parts_are_kept_up_to_a_size(tmp_path: Path) -> None:
    parts = [part(tmp_path, days) for days in (4, 3, 2, 1)]
    assert Retention(bytes=250).prune(tmp_path, NOW, but=parts[-1]) == parts[:2]


def test_the_part_that_is_being_written_stays(tmp_path: Path) -> None:
    only = part(tmp_path, 400, size=5000)
    assert Retention(seconds=DAY, bytes=10).prune(tmp_path, NOW, but=only) == []


def test_unless_told_otherwise_nothing_is_removed(tmp_path: Path) -> None:
    part(tmp_path, 11000)
    assert Retention().prune(tmp_path, NOW) == []


def test_a_writer_removes_old_parts_when_it_begins_one(tmp_path: Path) -> None:
    old, young = part(tmp_path, 91), part(tmp_path, 89)
    keep = Retention(seconds=90 * DAY)
    with RecordWriter(tmp_path, header(), flush=0.01, keep=keep, wall_clock=lambda: NOW) as book:
        book.write(Woke(time=1.0))
    assert not old.exists()
    assert set(tmp_path.iterdir()) == {book.path, young}


def test_parts_that_cannot_be_removed_do_not_end_the_record(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    class Refusing(Retention):
        def prune(self, directory: Path, now: float, but: Path | None = None) -> list[Path]:
            raise RuntimeError("no")

    with RecordWriter(tmp_path, header(), flush=0.01, keep=Refusing(seconds=DAY)) as book:
        book.write(Woke(time=1.0))
    assert book.lost_total == 0
    assert any("cannot be removed" in record.message for record in caplog.records)


def test_a_fault_of_the_writer_is_logged_with_its_place_and_tried_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Not only OSError: its thread must neither die nor be silent."""
    faults = iter([TypeError("odd"), KeyError("odder")])

    def append(file: int, text: bytes, end: int) -> None:
        for fault in faults:
            raise fault
        append_all_or_nothing(file, text, end)

    with (
        caplog.at_level(logging.ERROR, "penstock.records"),
        RecordWriter(tmp_path, header(), flush=0.01, append=append) as book,
    ):
        book.write(Woke(time=1.0))
        deadline = time.monotonic() + HANG
        while book.path is None:
            assert time.monotonic() < deadline
            time.sleep(0.01)
    assert (book.failed_total, book.lost_total) == (2, 0)
    assert [record.exc_info is not None for record in caplog.records] == [True, True]


@pytest.mark.parametrize(
    ("limit", "kept"),
    [
        ("30 d", (30 * DAY, math.inf)),
        ("2 GiB", (math.inf, 2 << 30)),
        ("0", (math.inf, math.inf)),
        ("0 B", (math.inf, math.inf)),
    ],
)
def test_the_configuration_says_how_long(limit: str, kept: tuple[float, float]) -> None:
    assert load(None, [Setting.parse(f"live.keep-records={limit}")]).config.live.retention() == kept


@pytest.mark.parametrize("limit", ["30 days", "1 s", "3 KiB", "-1 d"])
def test_nonsense_is_refused(limit: str) -> None:
    with pytest.raises(InputError, match=r"live\.keep-records"):
        load(None, [Setting.parse(f"live.keep-records={limit}")])
