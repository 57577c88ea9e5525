"""The history in bounded memory: mean shares are integrals, and clients notice losses."""

import subprocess
import sys

import msgspec
import pytest

from penstock.live.controller.job_table import JobEntry
from penstock.live.http.dashboard.lanes import (
    Kind,
    Lane,
    LaneLimits,
    Lanes,
    PhaseRecord,
    ShareClock,
)
from penstock.live.protocol import messages


def job(number: int) -> JobEntry:
    begin = messages.BeginJob(name="job", pid=1, command=["x"], user="ada")
    return JobEntry(id=f"job.{number}", serial=number, begin=begin, began=1e9)


def interval(lane: Lane, end: float) -> tuple[str, Kind, float, float, float]:
    return (lane.job.id, "io", end - 0.5, end, 1.0)


def ends(lanes: Lanes, since: int = -1) -> list[tuple[str, float]]:
    """Return job and end of each interval since a revision."""
    texts = (text for lane in lanes.by_id.values() for text in lane.intervals_since(since))
    return [(id, end) for id, _, _, end, _ in map(msgspec.json.decode, texts)]


def test_a_mean_share_is_an_integral_over_time() -> None:
    """Alone for 2 s, with one of three times its weight for 4 s, alone again for 2 s."""
    clock = ShareClock()
    clock.set(0.0, "a", 1.0)
    began = clock.mark(0.0)
    clock.set(2.0, "b", 3.0)
    assert clock.share(1.0) == 0.25
    clock.set(6.0, "b", 0.0)
    mean = 1.0 * (clock.mark(8.0) - began) / 8.0
    assert mean == pytest.approx((2 * 1.0 + 4 * 0.25 + 2 * 1.0) / 8)


def test_rounding_errors_of_many_changes_are_removed() -> None:
    """Differences of weights leave rounding errors, until all weights are summed again."""
    clock = ShareClock()
    clock.set(0.0, "a", 0.1)
    for k in range(10_000):
        clock.set(k, "b", 1e9 if k % 2 else 0.3)
    clock.set(10_000, "b", 0.3)
    clock.settle(10_000)
    assert clock.share(0.1) == pytest.approx(0.25, rel=1e-12)


def test_only_intervals_after_a_revision_are_sent() -> None:
    lanes = Lanes()
    one, other = lanes.began(job(1), 0.0), lanes.began(job(2), 0.0)
    lanes.add_interval(one, interval(one, 1.0))
    revision = lanes.revision
    lanes.add_interval(other, interval(other, 2.0))
    lanes.add_interval(one, interval(one, 3.0))
    assert sorted(ends(lanes, revision)) == [("job.1", 3.0), ("job.2", 2.0)]
    assert len(ends(lanes)) == 3


def test_intervals_are_bounded_and_a_client_that_missed_one_starts_again() -> None:
    lanes = Lanes(limits=LaneLimits(intervals=10, intervals_per_job=6))
    busy, calm = lanes.began(job(1), 0.0), lanes.began(job(2), 0.0)
    lanes.add_interval(calm, interval(calm, 0.5))
    for k in range(50):
        lanes.add_interval(busy, interval(busy, 1.0 + k))
    # A busy job drops its own intervals, and not those of others.
    assert ("job.2", 0.5) in ends(lanes)
    assert len(busy.intervals) == 6
    assert lanes.known_since == 44.0  # the last one that is missing ended then
    # A client that received all but the last six may continue; one that received less may not.
    assert lanes.dropped == busy.intervals[0][0] - 1
    for k in range(50):
        more = lanes.began(job(10 + k), 0.0)
        lanes.add_interval(more, interval(more, 100.0 + k))
    assert len(ends(lanes)) == 10
    assert lanes.known_since == 139.0


def test_jobs_that_ended_are_bounded_and_the_removed_ones_are_named() -> None:
    lanes = Lanes(limits=LaneLimits(ended_jobs=3, removed_ids=4))
    for k in range(10):
        lane = lanes.began(job(k), 0.0)
        lanes.add_interval(lane, interval(lane, float(k)))
        lanes.ended(lane)
    assert list(lanes.by_id) == ["job.7", "job.8", "job.9"]
    assert [id for _, id in lanes.removed] == ["job.3", "job.4", "job.5", "job.6"]
    # Earlier ids are dropped: a client that may not have received them starts again.
    assert 0 < lanes.dropped < lanes.removed[0][0]
    assert sorted(ends(lanes)) == [("job.7", 7.0), ("job.8", 8.0), ("job.9", 9.0)]


def test_intervals_older_than_the_window_are_dropped() -> None:
    lanes = Lanes()
    runs, ended = lanes.began(job(1), 0.0), lanes.began(job(2), 0.0)
    for end in (10.0, 20.0, 30.0):
        lanes.add_interval(runs, interval(runs, end))
    lanes.add_interval(ended, interval(ended, 12.0))
    ended.job.ended = 12.0
    lanes.ended(ended)
    lanes.prune(before=15.0)
    assert ends(lanes) == [("job.1", 20.0), ("job.1", 30.0)]
    assert lanes.known_since == 0.0  # the window implies it
    assert list(lanes.by_id) == ["job.1"]


def test_a_reconnecting_job_has_its_lane_again() -> None:
    lanes = Lanes()
    lane = lanes.began(job(1), 0.0)
    lanes.add_interval(lane, interval(lane, 1.0))
    lane.job.ended = 1.0
    lanes.ended(lane)
    assert lanes.began(job(1), 5.0) is lane
    lanes.prune(before=100.0)
    assert list(lanes.by_id) == ["job.1"]


def test_phases_are_bounded_per_job_and_in_all() -> None:
    lanes = Lanes(limits=LaneLimits(phases=8, phases_per_job=5))
    one, other = lanes.began(job(1), 0.0), lanes.began(job(2), 0.0)
    for k in range(20):
        lanes.add_phase(one, PhaseRecord(began=float(k)))
    assert [phase.began for phase in one.phases] == [15.0, 16.0, 17.0, 18.0, 19.0]
    for k in range(5):
        lanes.add_phase(other, PhaseRecord(began=float(k)))
    assert len(one.phases) + len(other.phases) == 8
    assert len(other.phases) == 5


def test_without_an_http_port_nothing_of_it_is_imported() -> None:
    program = (
        "import sys, penstock.live.controller.__main__\n"
        "print([m for m in sys.modules if m.startswith(('penstock.live.http', 'starlette'))])"
    )
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )
    assert result.stdout.strip() == "[]"
