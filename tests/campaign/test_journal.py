"""The results file survives half a line, and nothing but half a line."""

from pathlib import Path

import pytest

from penstock.campaign.journal import Entry, Journal, rows_of
from penstock.errors import InputError

HEADER: dict[str, str | int | float | None] = {
    "study": "test",
    "version": 1,
    "size": "fast",
    "seed": 0,
}


def entry(number: int) -> Entry:
    return Entry(
        cell=("one", 0.25, number),
        seconds=0.5,
        rows=[{"workload": number, "value": 0.1 + 0.2, "nothing": None}],
    )


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "cells.jsonl"
    with Journal(path, HEADER) as journal:
        for number in range(3):
            journal.add(entry(number))
    return path


def test_entries_read_back_as_written(file: Path) -> None:
    with Journal(file, HEADER) as journal:
        assert [journal.entries["one", 0.25, n] for n in range(3)] == [entry(n) for n in range(3)]


@pytest.mark.parametrize("cut", [1, 5, 20])
def test_a_half_written_line_is_cut_off(file: Path, cut: int) -> None:
    whole = file.read_bytes()
    file.write_bytes(whole[:-cut])
    with Journal(file, HEADER) as journal:
        assert [cell[2] for cell in journal.entries] == [0, 1]
        journal.add(entry(2))
    assert file.read_bytes() == whole


def test_half_a_header_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "cells.jsonl"
    path.write_bytes(b'{"study":"te')
    with Journal(path, HEADER) as journal:
        journal.add(entry(0))
    with Journal(path, HEADER) as journal:
        assert len(journal.entries) == 1


@pytest.mark.parametrize(
    "content", [b"my thesis", b"my thesis\n", b'{"study":"other"}\n', b"[1, 2]\n{}\n"]
)
def test_a_file_of_something_else_is_refused_and_left_alone(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "cells.jsonl"
    path.write_bytes(content)
    with pytest.raises(InputError, match="belongs to another run"):
        Journal(path, HEADER)
    assert path.read_bytes() == content


def test_damage_in_the_middle_is_refused(file: Path) -> None:
    lines = file.read_bytes().split(b"\n")
    lines[2] = b"\0" * 10
    file.write_bytes(b"\n".join(lines))
    with pytest.raises(InputError, match="line 3 is no result"):
        Journal(file, HEADER)


def test_two_runs_cannot_write_at_once(file: Path) -> None:
    with Journal(file, HEADER), pytest.raises(InputError, match="being written by another run"):
        Journal(file, HEADER)


def test_rows_are_ordered_by_cell_not_by_time() -> None:
    entries = [entry(n) for n in (2, 0, 1)]
    assert [row["workload"] for row in rows_of(entries)] == [0, 1, 2]
