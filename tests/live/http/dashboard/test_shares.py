"""A transfer whose share changes near its end: the dashboard receives the correct end."""

from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from penstock.live.controller.job_table import JobEntry
from penstock.live.controller.turn_state import PhaseReport
from penstock.live.http.dashboard.history import History
from penstock.live.http.dashboard.lanes import Lane
from penstock.live.protocol import messages


class Clock:
    """A clock that the test moves."""

    def __init__(self) -> None:
        self.time = 1000.0

    def __call__(self) -> float:
        return self.time


def history_of(job: JobEntry, clock: Clock) -> History:
    """Return the history of a site with one job."""
    turn_service: Any = SimpleNamespace(
        turns=SimpleNamespace(states={}, observer=None),
        header=SimpleNamespace(epoch=1e9),
        members=lambda id: [id],
        turn_id=lambda id: id,
    )
    controller: Any = SimpleNamespace(
        turn_service=turn_service, jobs=SimpleNamespace(running={job.id: job}), history=None
    )
    return History(controller, clock)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def job() -> JobEntry:
    begin = messages.BeginJob(name="job", pid=1, command=["x"], user="ada")
    return JobEntry(id="job.1", serial=1, begin=begin, began=1e9)


@pytest.fixture
def history(job: JobEntry, clock: Clock) -> History:
    return history_of(job, clock)


@pytest.fixture
def lane(history: History) -> Lane:
    return history.lanes.by_id["job.1"]


def intervals(lane: Lane, since: int = -1) -> dict[float, float]:
    """Return the end of each interval by its start; a later end replaces an earlier one."""
    texts = lane.intervals_since(since)
    return {start: end for _, _, start, end, _ in map(msgspec.json.decode, texts)}


def transfer(history: History, lane: Lane, seconds: float) -> float:
    """Begin a transfer this long ago, alone; return its start."""
    began = history.clock() - seconds
    history.shares.set(began, "job.1", 1.0)
    history.open(lane, "io", history.epoch + began, 1.0)
    return round(history.epoch + began, 4)


def report_end(history: History, ago: float, after: float) -> float:
    """Report that the phase ended this long before a time; return its end."""
    report = PhaseReport(number=1, bytes=1, seconds=1.0, waited=0.0)
    history.phase_ended("job.1", after - history.epoch - ago, report)
    assert history.faults == 0
    return round(after - ago, 4)


def test_an_interval_that_began_after_the_end_is_closed(history: History, lane: Lane) -> None:
    began = transfer(history, lane, 5.0)
    history.shares.set(history.clock(), "job.2", 1.0)
    history.tick()  # its share is a half now: a new interval, which every client is sent
    opened, revision = lane.since, history.lanes.revision
    assert lane.kind == "io"
    assert opened > began + 4
    over = report_end(history, 0.15, opened)
    # The next answer closes the open interval, and shortens the one before it.
    assert intervals(lane, revision) == {began: over, round(opened, 4): round(opened, 4)}
    assert intervals(lane) == intervals(lane, revision)
    assert lane.since == over
    assert lane.kind is None


def test_an_end_before_several_changes_shortens_no_other_transfer(
    history: History, lane: Lane
) -> None:
    first = transfer(history, lane, 60.0)
    earlier = report_end(history, 0.0, first + 10)
    began = transfer(history, lane, 5.0)
    for later in (2.0, 3.0):
        history.open(lane, "io", began + later, 1.0)
    # A job that reports an hour of idle time has transferred nothing since it began.
    report_end(history, 3600.0, lane.since)
    later_ends = intervals(lane)
    assert later_ends.pop(first) == earlier
    assert len(later_ends) == 3
    assert all(start == end for start, end in later_ends.items())
    assert lane.since == began


def test_an_end_in_time_ends_only_the_last_interval(history: History, lane: Lane) -> None:
    began = transfer(history, lane, 5.0)
    over = report_end(history, 0.0, began + 4.0)
    assert intervals(lane) == {began: over}
