"""A phase that transfers without a turn: the dashboard counts its share."""

from types import SimpleNamespace
from typing import Any

from live.controller.turn_harness import TurnHarness

from penstock.live.http.dashboard.history import History


def test_a_released_phase_and_the_one_whose_turn_it_is_have_a_half_each() -> None:
    site = TurnHarness("set-10")
    a, b = site.start("a"), site.start("b")
    jobs = SimpleNamespace(running=site.jobs)
    controller: Any = SimpleNamespace(turn_service=site.turn_service, jobs=jobs)
    history = History(controller, clock=lambda: site.now)
    site.begin(a, 1)
    site.begin(b, 1)
    assert [lane.kind for lane in history.lanes.by_id.values()] == ["io", "wait"]
    site.wait(31.0)
    history.tick()
    lanes = history.lanes.by_id.values()
    assert [(lane.kind, lane.share) for lane in lanes] == [("io", 0.5), ("io", 0.5)]
