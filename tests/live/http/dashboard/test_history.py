"""The history in bounded memory: mean shares are integrals, and what is dropped leaves a mark."""

import subprocess
import sys

import msgspec
import pytest

from penstock.live.controller.job_table import JobEntry
from penstock.live.http.dashboard import lanes
from penstock.live.http.dashboard.lanes import Lane, Lanes, Phase, ShareClock
from penstock.live.protocol import messages


def job(number: int) -> JobEntry:
    begin = messages.BeginJob(name="job", pid=1, command=["x"], user="ada")
    return JobEntry(id=f"job.{number}", serial=number, begin=begin, began=1e9)


def stretch(lane: Lane, end: float) -> tuple[str, str, float, float, float]:
    return (lane.job.id, "io", end - 0.5, end, 1.0)


def told(kept: Lanes, since: int = -1) -> list[tuple[str, float]]:
    texts = (text for lane in kept.by_id.values() for text in lane.stretches_since(since))
    found = (msgspec.json.decode(text) for text in texts)
    return [(name, end) for name, _, _, end, _ in found]


def test_a_mean_share_is_the_integral_of_what_one_had() -> None:
    """Alone for 2 s, with one of three times its weight for 4 s, alone again for 2 s."""
    clock = ShareClock()
    clock.set(0.0, "a", 1.0)
    began = clock.mark(0.0)
    clock.set(2.0, "b", 3.0)
    assert clock.share(1.0) == 0.25
    clock.set(6.0, "b", 0.0)
    mean = 1.0 * (clock.mark(8.0) - began) / 8.0
    assert mean == pytest.approx((2 * 1.0 + 4 * 0.25 + 2 * 1.0) / 8)


def test_a_share_is_that_of_now_after_a_million_changes() -> None:
    """Differences of weights leave rounding errors: they are gone when all is added up anew."""
    clock = ShareClock()
    clock.set(0.0, "a", 0.1)
    for k in range(10_000):
        clock.set(k, "b", 1e9 if k % 2 else 0.3)
    clock.set(10_000, "b", 0.3)
    clock.settle(10_000)
    assert clock.share(0.1) == pytest.approx(0.25, rel=1e-12)


def test_only_what_came_after_a_revision_is_told() -> None:
    kept = Lanes()
    one, other = kept.began(job(1), 0.0), kept.began(job(2), 0.0)
    kept.add_stretch(one, stretch(one, 1.0))
    seen = kept.revision
    kept.add_stretch(other, stretch(other, 2.0))
    kept.add_stretch(one, stretch(one, 3.0))
    assert sorted(told(kept, seen)) == [("job.1", 3.0), ("job.2", 2.0)]
    assert len(told(kept)) == 3


def test_stretches_are_bounded_and_who_missed_one_must_begin_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lanes, "STRETCHES", 10)
    monkeypatch.setattr(lanes, "LANE_STRETCHES", 6)
    kept = Lanes()
    busy, calm = kept.began(job(1), 0.0), kept.began(job(2), 0.0)
    kept.add_stretch(calm, stretch(calm, 0.5))
    for k in range(50):
        kept.add_stretch(busy, stretch(busy, 1.0 + k))
    # One that is busy drops its own, and not those of others.
    assert ("job.2", 0.5) in told(kept)
    assert len(busy.stretches) == 6
    assert kept.known_since == 44.0  # the last that is missing ended then
    # Who has seen all but the last six may go on; who has seen less may not.
    assert kept.dropped == busy.stretches[0][0] - 1
    for k in range(50):
        more = kept.began(job(10 + k), 0.0)
        kept.add_stretch(more, stretch(more, 100.0 + k))
    assert len(told(kept)) == 10
    assert kept.known_since == 139.0


def test_jobs_that_ended_are_bounded_and_their_names_are_told_as_gone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lanes, "ENDED", 3)
    monkeypatch.setattr(lanes, "GONE", 4)
    kept = Lanes()
    for k in range(10):
        lane = kept.began(job(k), 0.0)
        kept.add_stretch(lane, stretch(lane, float(k)))
        kept.ended(lane)
    assert list(kept.by_id) == ["job.7", "job.8", "job.9"]
    assert [name for _, name in kept.gone] == ["job.3", "job.4", "job.5", "job.6"]
    # Names before those are not told any more: who might not know them begins anew.
    assert 0 < kept.dropped < kept.gone[0][0]
    assert sorted(told(kept)) == [("job.7", 7.0), ("job.8", 8.0), ("job.9", 9.0)]


def test_what_is_older_than_the_window_goes() -> None:
    kept = Lanes()
    runs, ended = kept.began(job(1), 0.0), kept.began(job(2), 0.0)
    for end in (10.0, 20.0, 30.0):
        kept.add_stretch(runs, stretch(runs, end))
    kept.add_stretch(ended, stretch(ended, 12.0))
    ended.job.ended = 12.0
    kept.ended(ended)
    kept.prune(before=15.0)
    assert told(kept) == [("job.1", 20.0), ("job.1", 30.0)]
    assert kept.known_since == 0.0  # the window says that they are gone
    assert list(kept.by_id) == ["job.1"]


def test_a_job_that_comes_back_has_its_lane_again() -> None:
    kept = Lanes()
    lane = kept.began(job(1), 0.0)
    kept.add_stretch(lane, stretch(lane, 1.0))
    lane.job.ended = 1.0
    kept.ended(lane)
    assert kept.began(job(1), 5.0) is lane
    kept.prune(before=100.0)
    assert list(kept.by_id) == ["job.1"]


def test_phases_are_bounded_by_job_and_in_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lanes, "PHASES", 8)
    monkeypatch.setattr(lanes, "LANE_PHASES", 5)
    kept = Lanes()
    one, other = kept.began(job(1), 0.0), kept.began(job(2), 0.0)
    for k in range(20):
        kept.add_phase(one, Phase(began=float(k)))
    assert [phase.began for phase in one.phases] == [15.0, 16.0, 17.0, 18.0, 19.0]
    for k in range(5):
        kept.add_phase(other, Phase(began=float(k)))
    assert len(one.phases) + len(other.phases) == 8
    assert len(other.phases) == 5


def test_without_an_http_port_no_history_is_even_imported() -> None:
    program = (
        "import sys, penstock.live.controller.__main__\n"
        "print([m for m in sys.modules if 'live.history' in m or 'live.what_if' in m])"
    )
    found = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )
    assert found.stdout.strip() == "[]"
