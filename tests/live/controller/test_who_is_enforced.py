"""Only jobs in mode enforce divide the I/O nodes; what is learnt is used; bad policies."""

import asyncio
import logging
from pathlib import Path

import pytest
from live.controller.turn_harness import TurnHarness

from penstock.errors import InputError
from penstock.learn.imported import Imported
from penstock.live.controller.policy_watch import unwatched, watched
from penstock.live.protocol import messages
from penstock.live.store import Knowledge
from penstock.model import JobsChanged

STEEP = Knowledge(imported=Imported(curve={1: 1e8, 2: 1.9e8, 4: 3.5e8}))


def site(*settings: str, mode: str = "enforce", seconds: float | None = None) -> TurnHarness:
    """Four I/O nodes that are up."""
    made = TurnHarness(
        "fair-share",
        mode=mode,
        more=["allocation.policy=where-known", *settings],
        watch=unwatched if seconds is None else watched(seconds),
    )
    for number in range(4):
        made.turn_service.node_up(messages.Node(number=number, id=number + 1, address="x"))
    return made


def moved(harness: TurnHarness) -> dict[str, int]:
    moves = {assign.job: len(assign.resources) for assign in harness.assigned}
    harness.assigned.clear()
    return moves


def test_a_job_in_mode_observe_moves_no_job_in_mode_enforce() -> None:
    harness = site()
    harness.turn_service.modes.set("observe", "bob")
    harness.start("a", knowledge=STEEP)
    assert moved(harness) == {"a": 4}
    bob = harness.start("b", user="bob", knowledge=STEEP)
    assert moved(harness) == {}
    assert harness.record("b").would_have == [2, 3]
    assert harness.record("a").would_have is None
    harness.turn_service.ended(bob)
    assert moved(harness) == {}


@pytest.mark.parametrize("mode", ["off", "observe", "advise"])
def test_leaving_enforce_gives_all_io_nodes_back_and_the_other_way(mode: str) -> None:
    """The fault: after `penstock mode off` running jobs kept what they had been cut to."""
    harness = site()
    harness.start("a", knowledge=STEEP)
    harness.start("b", knowledge=STEEP)
    moved(harness)
    harness.turn_service.set_mode(messages.SetMode(mode=mode))
    assert (moved(harness), sorted(harness.released)) == ({}, ["a", "b"])
    harness.turn_service.set_mode(messages.SetMode(mode="enforce"))
    assert moved(harness) == {"a": 2, "b": 2}


def test_one_user_leaves_enforce_and_the_others_divide_what_he_had() -> None:
    harness = site()
    harness.start("a", knowledge=STEEP)
    harness.start("b", user="bob", knowledge=STEEP)
    moved(harness)
    harness.turn_service.set_mode(messages.SetMode(mode="observe", user="bob"))
    assert (moved(harness), harness.released) == ({"a": 4}, ["b"])


def test_a_controller_that_ends_gives_nothing_back() -> None:
    """Its I/O nodes end, too."""
    harness = site()
    harness.start("a", knowledge=STEEP)
    harness.turn_service.open_gates()
    assert harness.released == []


def test_what_is_learnt_in_a_run_is_used_in_it_and_told_once() -> None:
    """The fault: after 21 phases of an application's first run its curve was "not known"."""
    harness = site("allocation.policy=best-bandwidth", "allocation.settle=0 s")
    events = []
    harness.turn_service.turns.record = lambda event, *_: events.append(event)
    harness.io_nodes = (0, 1, 2, 3)
    job = harness.start("a")
    before = harness.record("a").allocation
    assert before is not None
    assert before.reason == "unknown"
    for phase in range(1, 6):
        harness.begin(job, phase)
        harness.end(job, phase, moved=1 << 20)
    after = harness.record("a").allocation
    assert after is not None
    assert (after.reason, after.lacks) == ("policy", [])
    assert sum(isinstance(event, JobsChanged) for event in events) == 1


def test_exploration_ends_after_three_phases_at_a_number() -> None:
    harness = site("allocation.settle=0 s")
    known = Knowledge(imported=Imported(curve={1: 1e8, 2: 1.1e7}))
    harness.known[""] = known
    job = harness.start("a", knowledge=known)
    explored = harness.record("a").allocation
    assert explored is not None
    assert (explored.reason, len(explored.io_nodes)) == ("explored", 4)
    harness.io_nodes = (0, 1, 2, 3)
    for phase in (1, 2, 3):
        harness.begin(job, phase)
        harness.end(job, phase, moved=1 << 20)
    ended = harness.record("a").allocation
    assert ended is not None
    assert (ended.reason, len(ended.io_nodes)) == ("policy", 1)


@pytest.mark.parametrize(
    ("fallback", "refusal"),
    [
        ("search", "fallback policy 'search' cannot run live"),
        ("oracle", "fallback policy 'oracle' cannot run live"),
        ("t-cpu", "fallback policy 't-cpu' needs compute, curve, volume"),
        ("process", "fallback policy 'process' needs processes"),
        ("static", "fallback policy 'static' cannot decide for this site"),
        ("zero", "fallback policy 'zero' cannot decide for this site"),
    ],
)
def test_a_fallback_policy_that_cannot_decide_is_refused(fallback: str, refusal: str) -> None:
    with pytest.raises(InputError, match=refusal):
        site(f"allocation.fallback={fallback}")


POLICY = """
class Mine:
    needs = frozenset()
    sticky = False

    def allocate(self, view):
        {body}
"""


def mine(folder: Path, body: str) -> str:
    (folder / "mine.py").write_text(POLICY.format(body=body))
    return f"allocation.policy={folder}/mine.py:Mine"


def test_a_policy_that_never_answers_is_refused_when_the_site_comes_up(tmp_path: Path) -> None:
    """The fault: `penstock up` did not return, and the controller computed for ever."""
    with pytest.raises(InputError, match=r"allocation policy .*allocate\(\) of policy Mine took"):
        site(mine(tmp_path, "while True: pass"), seconds=0.05)


def test_failures_of_an_allocation_policy_are_counted_and_name_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The fault: all decisions failed, and policy_failures was 0."""
    caplog.set_level(logging.WARNING)
    body = "return {} if 'a' in view.jobs else dict.fromkeys(view.jobs, 1)"
    harness = site(mine(tmp_path, body))

    async def run() -> None:
        harness.start("a")

    asyncio.run(run())
    assert harness.turn_service.failures == 1
    assert "Mine left out job 'a'" in caplog.text


def test_a_slow_decision_names_the_policy_at_fault(caplog: pytest.LogCaptureFixture) -> None:
    """The fault: the log named the sharing policy."""
    harness = site("allocation.policy=one")
    allocations = harness.turn_service.allocations
    assert allocations is not None

    def take_long(*_: object) -> None:
        harness.now += 5.0

    allocations.arbiter.observe = take_long
    harness.start("a", knowledge=STEEP)
    assert "a decision of allocation policy one with placement policy" in caplog.text
