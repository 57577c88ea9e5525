"""A transfer whose share changes near its end: the page hears of the end, and of the right one."""

import time
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from penstock.live.controller.job_table import JobEntry
from penstock.live.http.dashboard.history import History
from penstock.live.http.dashboard.lanes import Lane
from penstock.live.protocol import messages


def kept(job: JobEntry) -> History:
    """The history of one that transfers, and of nobody else."""
    governor: Any = SimpleNamespace(
        turns=SimpleNamespace(standings={}, watch=None),
        header=SimpleNamespace(epoch=1e9),
        members=lambda id: [id],
        turn_id=lambda id: id,
    )
    controller: Any = SimpleNamespace(
        governor=governor, jobs=SimpleNamespace(running={job.id: job}), history=None
    )
    return History(controller)


@pytest.fixture
def job() -> JobEntry:
    begin = messages.BeginJob(name="job", pid=1, command=["x"], user="ada")
    return JobEntry(id="job.1", serial=1, begin=begin, began=1e9)


@pytest.fixture
def history(job: JobEntry) -> History:
    return kept(job)


@pytest.fixture
def lane(history: History) -> Lane:
    return history.lanes.by_id["job.1"]


def told(lane: Lane, since: int = -1) -> dict[float, float]:
    """The ends by starts, a later one in the place of one before it."""
    texts = lane.stretches_since(since)
    return {start: end for _, _, start, end, _ in map(msgspec.json.decode, texts)}


def transfers(history: History, lane: Lane, seconds: float) -> float:
    """Let it have transferred for a while, alone; return since when."""
    began = time.monotonic() - seconds
    history.shares.set(began, "job.1", 1.0)
    history._open(lane, "io", history.epoch + began, 1.0)
    return round(history.epoch + began, 4)


def ends(history: History, ago: float, after: float) -> float:
    """Say that its phase was over a while before a time; return when that was."""
    over = messages.PhaseEnded(phase=1, bytes=1, seconds=1.0, waited=0.0)
    history.over("job.1", after - history.epoch - ago, over)
    assert history.faults == 0
    return round(after - ago, 4)


def test_a_stretch_that_began_after_the_end_is_closed(history: History, lane: Lane) -> None:
    began = transfers(history, lane, 5.0)
    history.shares.set(time.monotonic(), "job.2", 1.0)
    history.tick()  # it has half of it now: a new stretch, which every page is told of
    opened, seen = lane.since, history.lanes.revision
    assert lane.kind == "io"
    assert opened > began + 4
    over = ends(history, 0.15, opened)
    # The next answer closes what was told as going on, and shortens what was told before it.
    assert told(lane, seen) == {began: over, round(opened, 4): round(opened, 4)}
    assert told(lane) == told(lane, seen)
    assert (lane.kind, lane.since) == (None, over)


def test_an_end_before_several_changes_shortens_no_other_transfer(
    history: History, lane: Lane
) -> None:
    first = transfers(history, lane, 60.0)
    earlier = ends(history, 0.0, first + 10)
    began = transfers(history, lane, 5.0)
    for later in (2.0, 3.0):
        history._open(lane, "io", began + later, 1.0)
    # Whoever says that it was idle for an hour has done nothing since it began.
    ends(history, 3600.0, lane.since)
    found = told(lane)
    assert found.pop(first) == earlier
    assert len(found) == 3
    assert all(start == end for start, end in found.items())
    assert lane.since == began


def test_an_end_in_time_ends_the_last_stretch_alone(history: History, lane: Lane) -> None:
    began = transfers(history, lane, 5.0)
    over = ends(history, 0.0, began + 4.0)
    assert told(lane) == {began: over}
