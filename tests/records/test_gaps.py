"""Events that are missing in a record: they are noticed by their numbers, and counted."""

from pathlib import Path

import pytest
from records.random_days import header, run, write

from penstock.errors import InputError
from penstock.model import Event, Job, JobEnded, JobStarted, PhaseBegan, PhaseEnded
from penstock.records import Record, replay
from penstock.sim.formats import from_record

DAY = 86400.0


def a_day(phases: int, *, every: float = 2.0) -> list[Event]:
    """One job whose phases come one after the other."""
    events: list[Event] = [JobStarted(time=0.0, job=Job(id="a.1", serial=1))]
    for k in range(phases):
        began, ended = every * (k + 0.5), every * (k + 0.7)
        events.append(PhaseBegan(time=began, job="a.1", resources=(0,)))
        events.append(PhaseEnded(time=ended, job="a.1", resource=0, io=ended - began))
    return [*events, JobEnded(time=every * phases, job="a.1")]


def a_record(directory: Path, phases: int = 20, **fields: object) -> Path:
    first_line = header("fair-share", **fields)
    (path,) = write(directory, first_line, run(first_line, a_day(phases)))
    return path


def without(path: Path, first: int, last: int) -> Path:
    """Remove lines, counted from 1."""
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[: first - 1] + lines[last:]))
    return path


def gaps(*paths: Path) -> list[tuple[int, str]]:
    record = Record(*paths)
    list(record)
    return [(gap.events, gap.where.partition(", ")[2]) for gap in record.gaps]


def test_events_are_numbered_from_1_over_all_parts_of_a_run(tmp_path: Path) -> None:
    first_line = header("fair-share")
    events = a_day(20, every=DAY / 8)
    parts = write(tmp_path, first_line, run(first_line, events))
    assert len(parts) > 2
    numbers = [[entry.number for entry in Record(part)] for part in parts]
    assert [n for part in numbers for n in part] == list(range(1, len(events) + 1))
    assert [Record(part).header.first for part in parts] == [part[0] for part in numbers]
    assert gaps(*parts) == []
    assert gaps(*parts[1:]) == []


@pytest.mark.parametrize(
    ("first", "last", "expected"),
    [(5, 5, [(1, "line 5")]), (10, 19, [(10, "line 10")]), (2, 3, [(2, "line 2")])],
)
def test_removed_lines_are_counted_where_they_are_missing(
    tmp_path: Path, first: int, last: int, expected: list[tuple[int, str]]
) -> None:
    assert gaps(without(a_record(tmp_path), first, last)) == expected


def test_lines_are_missing_at_the_end_of_a_part_that_is_not_the_last(tmp_path: Path) -> None:
    first_line = header("fair-share")
    _, before, after, *_ = write(tmp_path, first_line, run(first_line, a_day(20, every=DAY / 8)))
    count = len(before.read_bytes().splitlines())
    assert gaps(without(before, count - 2, count), after) == [(3, "line 2")]


def test_a_replay_refuses_to_cross_a_gap(tmp_path: Path) -> None:
    path = without(a_record(tmp_path), 5, 6)
    with pytest.raises(InputError, match="line 5: 2 events before it are missing, so those after"):
        replay(Record(path))


def test_what_is_missing_matters_if_it_can_change_a_figure(tmp_path: Path) -> None:
    path = without(a_record(tmp_path), 10, 13)
    missing = from_record.load(Record(path)).missing
    assert (missing.events, missing.unmatched, missing.matters) == (4, 0, True)
    assert f"4 of 42 events are missing (first before {path}, line 10)" == str(missing)
    with pytest.raises(InputError, match="give a record without a gap"):
        from_record.read(path, header().site)


def test_one_event_of_thousands_is_negligible_and_said(tmp_path: Path) -> None:
    path = without(a_record(tmp_path, 1500), 100, 101)
    missing = from_record.load(Record(path)).missing
    assert (missing.events, missing.matters) == (2, False)
    assert str(missing).startswith("2 of 3,002 events are missing")
    assert str(missing).endswith("less than 0.1%, which is negligible")


@pytest.mark.parametrize(("first", "last", "unmatched"), [(4, 4, 1), (5, 5, 1), (2, 2, 41)])
def test_events_without_numbers_must_follow_from_those_before(
    tmp_path: Path, first: int, last: int, unmatched: int
) -> None:
    """Version 1: a phase that ends without having begun shows that a line is missing."""
    path = a_record(tmp_path, version=1)
    whole = from_record.load(Record(path)).missing
    assert (whole.events, whole.unmatched, str(whole)) == (None, 0, "")
    without(path, first, last)
    if first == 2:  # the job's start: all its events are of a job that nobody knows
        with pytest.raises(InputError, match="no job in it did any work"):
            from_record.load(Record(path))
        return
    missing = from_record.load(Record(path)).missing
    assert (missing.events, missing.unmatched, missing.matters) == (None, unmatched, True)
    assert "lines are missing in the record (1 event does not follow" in str(missing)


def test_a_phase_whose_policy_failed_may_have_no_end(tmp_path: Path) -> None:
    """That is how version 1 was written, and nothing is missing."""
    path = a_record(tmp_path, version=1)
    lines = path.read_bytes().splitlines(keepends=True)
    lines[2] = lines[2].replace(b',"actions"', b',"failed":true,"actions"')
    del lines[3]
    path.write_bytes(b"".join(lines))
    recording = from_record.load(Record(path))
    assert recording.missing.unmatched == 0
    assert recording.cuts.phases_unmeasured == 1
    assert recording.iterations == 19, "the job goes on after the phase that was cut off"
