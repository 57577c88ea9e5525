"""The wall clock jumps back an hour, and ahead a year, while jobs wait for their turns."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from live.controller.turn_deployment import Deployed, deployed
from live.store.sample_jobs import ended

from penstock.live.store import Limits, Store, WriteBehind
from penstock.records import Record, replay

HOUR, YEAR = 3600.0, 365 * 86400.0
JUMPING = """
import pathlib, time
_time, _ahead = time.time, pathlib.Path({path!r})
time.time = lambda: _time() + float(_ahead.read_text())
"""


class Clock:
    """The wall clock of every Python process that is started from here on."""

    def __init__(self, folder: Path) -> None:
        self._ahead = folder / "ahead"
        self.jump(0.0)
        (folder / "sitecustomize.py").write_text(JUMPING.format(path=str(self._ahead)))

    def jump(self, seconds: float) -> None:
        fresh = self._ahead.with_suffix(".fresh")
        fresh.write_text(repr(seconds))
        fresh.rename(self._ahead)


@pytest.fixture
def clock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Clock:
    folder = tmp_path / "clock"
    folder.mkdir()
    monkeypatch.setenv("PYTHONPATH", str(folder))
    return Clock(folder)


@pytest.fixture
def site(tmp_path: Path, clock: Clock) -> Iterator[Deployed]:
    with deployed(tmp_path) as site:
        yield site


@pytest.mark.parametrize("jump", [-HOUR, YEAR], ids=["an hour back", "a year ahead"])
def test_turns_leases_and_times_do_not_follow_the_wall_clock(
    site: Deployed, clock: Clock, jump: float
) -> None:
    """Nobody is let go or lost, nothing took longer than it did, and the record is in order."""
    site.up()
    first, second = site.obedient("first"), site.obedient("second")
    began = site.job("first").began
    site.held(first, second)
    clock.jump(jump)
    site.until("second", lambda job: (job.since_seconds or 0) > 1.2)  # longer than the lease
    assert second.is_silent()
    assert site.job("first").doing == "transferring"
    first.do("end")
    assert second.answer() == "write"
    for line in ("begin", "write 2", "end", "begin", "write 2", "end"):
        first.do(line)
    third = site.obedient("third")
    assert site.job("third").began - began == pytest.approx(jump, abs=60.0)
    assert [job.finish()["fail_opens"] for job in (first, second, third)] == [0, 0, 0]
    for name in ("first", "second", "third"):
        entry = site.job(name)
        assert entry.state == "ended"
        assert 0 < entry.seconds < 60
        assert (entry.w_iter or 0.0) < 60
    site.penstock("down")
    [record] = site.state.records.iterdir()
    replayed = replay(Record(record))
    assert replayed.events > 8
    assert replayed.first_difference is None


def test_a_clock_that_jumped_ahead_deletes_no_history(tmp_path: Path) -> None:
    """Jobs that ended a minute ago would be older than any history kept."""
    now = [1.7e9]
    store = Store(f"sqlite:///{tmp_path}/store.db")
    limits = Limits(history=30 * 86400.0)
    with WriteBehind(store, limits=limits, wall_clock=lambda: now[0]) as kept:
        kept.ended(ended(1, id="a.1", began=now[0], ended=now[0]))
        kept.flush()
        now[0] += YEAR
        kept.prune()
        assert store.ended("a.1") is not None
