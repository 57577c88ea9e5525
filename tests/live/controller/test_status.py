"""What a job's record says of its present wait, on a clock that the test moves."""

from typing import Any

import pytest
from live.controller.turn_harness import TurnHarness

from penstock.live.protocol import messages


def times(harness: TurnHarness, id: str) -> tuple[Any, ...]:
    record = harness.record(id)
    return record.doing, record.since_seconds, record.at_most_seconds, record.turn_waited_seconds


def test_the_present_wait_is_a_part_of_what_a_job_waited() -> None:
    """It had been waiting for 2.8 s, and had waited for 1 ms."""
    harness = TurnHarness(max_wait=30.0)
    first, second = harness.start("first"), harness.start("second")
    harness.begin(second, 1)
    harness.end(second, 1, waited=0.5)
    harness.begin(first, 1)
    harness.begin(second, 2)
    harness.now += 2.0
    assert times(harness, "second") == ("waiting", 2.0, 28.0, 2.5)
    harness.end(first, 1)
    harness.now += 1.0
    assert times(harness, "second") == ("transferring", 1.0, None, 2.5)
    harness.end(second, 2, waited=2.0)
    assert times(harness, "second") == ("computing", None, None, 2.5)


def test_a_job_that_lost_its_turn_waits_since_then() -> None:
    """It waits since it was held, and goes on live.max-wait after its phase began."""
    harness = TurnHarness("greedy-yield", max_wait=30.0)
    old = harness.start("old")
    harness.now += 10.0
    harness.begin(old, 1)
    harness.now += 2.0
    assert times(harness, "old") == ("transferring", 2.0, None, 0.0)
    young = harness.start("young")
    assert ("old", "Hold", 1) in harness.begin(young, 1)
    harness.now += 0.5
    assert times(harness, "old") == ("waiting", 0.5, 27.5, 0.5)
    assert ("old", "Turn", 1) in harness.wait(27.5)


def test_the_wait_of_a_job_that_is_lost_while_it_waits_is_kept() -> None:
    harness = TurnHarness()
    first, second = harness.start("first"), harness.start("second")
    harness.begin(first, 1)
    harness.begin(second, 1)
    harness.now += 3.0
    second.state = "lost"
    assert times(harness, "second") == ("lost", None, None, 3.0)


@pytest.mark.parametrize("modes", [("observe", "observe"), ("observe", "enforce")])
def test_a_wait_that_is_only_observed_is_not_a_wait(modes: tuple[str, str]) -> None:
    """Of a phase whose mode changed, its end says which part of it was a wait."""
    harness = TurnHarness(mode=modes[0])
    first, second = harness.start("first"), harness.start("second")
    harness.begin(first, 1)
    harness.begin(second, 1)
    harness.now += 1.0
    harness.turn_service.set_mode(messages.SetMode(mode=modes[1]))
    harness.now += 1.0
    record = harness.record("second")
    assert (record.doing, record.turn_waited_seconds) == ("waiting", 0.0)
