"""Which phases a controller learns from: where they were, and whether they were alone there."""

import pytest
from live.controller.turn_harness import TurnHarness

from penstock.learn.observations import ObservedPhase
from penstock.live.controller.job_table import JobEntry
from penstock.live.protocol import messages


def pass_phase(site: TurnHarness, job: JobEntry, number: int, *, compute: float = 10.0) -> None:
    site.now += compute
    site.begin(job, number)
    site.now += 1.0
    site.end(job, number, moved=100)


def alone(site: TurnHarness) -> list[tuple[str, bool]]:
    return [(job, phase.alone) for job, _, phase in site.learnt]


def test_a_phase_counts_where_it_was_and_a_moved_job_teaches_too() -> None:
    site = TurnHarness()
    job = site.start("a")
    site.io_nodes = (0, 1, 2, 3)
    pass_phase(site, job, 1)
    site.io_nodes, site.maps = (2,), 1
    pass_phase(site, job, 2, compute=5.0)
    site.io_nodes, site.maps = (), 2
    pass_phase(site, job, 3)
    assert [(count, phase.compute, phase.first) for _, count, phase in site.learnt] == [
        (4, 10.0, True),
        (1, 5.0, False),
        (0, 10.0, False),
    ]
    assert site.learnt[0][2] == ObservedPhase(
        bytes=100, seconds=1.0, alone=True, compute=10.0, first=True
    )


def test_a_phase_during_which_its_io_nodes_changed_shows_nothing_of_any_number() -> None:
    """Also if they changed back: 4, 1, 4."""
    site = TurnHarness()
    job = site.start("a")
    site.begin(job, 1)
    site.maps = 2
    site.now += 1.0
    site.end(job, 1, moved=100)
    assert site.learnt == []
    pass_phase(site, job, 2)
    assert [phase.compute for _, _, phase in site.learnt] == [10.0]


def test_a_phase_is_alone_while_others_wait_for_it_to_end() -> None:
    site = TurnHarness("exclusive-fcfs")
    first, second = site.start("a"), site.start("b")
    site.begin(first, 1)
    assert site.begin(second, 1) == [("b", "Hold", 1)]
    site.now += 1.0
    site.end(first, 1, moved=100)
    site.now += 1.0
    site.end(second, 1, moved=100, waited=1.0)
    assert alone(site) == [("a", True), ("b", True)]


@pytest.mark.parametrize("mode", ["observe", "enforce"])
def test_phases_that_transfer_at_once_are_not_alone(mode: str) -> None:
    """In fair-share nobody waits; where turns are observed, who would wait transfers."""
    site = TurnHarness("fair-share" if mode == "enforce" else "exclusive-fcfs", mode=mode)
    first, second, third = (site.start(name) for name in "abc")
    site.begin(first, 1)
    site.begin(second, 1)
    site.now += 1.0
    site.end(first, 1, moved=100)
    site.now += 1.0
    site.end(second, 1, moved=100)
    pass_phase(site, third, 1)
    assert alone(site) == [("a", False), ("b", False), ("c", True)]


def test_a_phase_that_was_released_after_its_longest_wait_is_beside_the_one_it_waited_for() -> None:
    site = TurnHarness("exclusive-fcfs", max_wait=30.0)
    first, second = site.start("a"), site.start("b")
    site.begin(first, 1)
    site.begin(second, 1)
    site.wait(31.0)
    site.end(first, 1, moved=100)
    site.end(second, 1, moved=100)
    assert alone(site) == [("a", False), ("b", False)]


def test_who_is_no_longer_made_to_wait_is_beside_those_that_transfer() -> None:
    site = TurnHarness("exclusive-fcfs")
    first, second = site.start("a"), site.start("b", user="bob")
    site.begin(first, 1)
    site.begin(second, 1)
    site.turn_service.set_mode(messages.SetMode(mode="observe"))
    site.messages.clear()
    site.end(first, 1, moved=100)
    site.end(second, 1, moved=100)
    assert alone(site) == [("a", False), ("b", False)]


def test_a_job_whose_agent_fell_silent_may_still_transfer() -> None:
    site = TurnHarness("exclusive-fcfs")
    first, second = site.start("a"), site.start("b")
    site.begin(first, 1)
    site.begin(second, 1)
    site.now += 10.0
    site.turn_service.mark_alive(second)
    assert ("b", "Turn", 1) in site.wait(0.0, alive=False)
    site.end(second, 1, moved=100)
    assert alone(site) == [("b", False)]
    site.turn_service.ended(first)
    pass_phase(site, second, 2)
    assert alone(site)[1:] == [("b", True)]


def test_a_phase_that_lent_its_turn_was_not_measured() -> None:
    site = TurnHarness("exclusive-fcfs")
    first, second = site.start("a"), site.start("b")
    site.now += 3.0
    site.begin(first, 1)
    site.begin(second, 1)
    site.turn_service.idle(first, messages.Idle(phase=1, lends=True))
    site.end(second, 1, moved=100)
    site.begin(first, 1)
    site.end(first, 1, moved=100)
    assert alone(site) == [("b", True), ("a", False)]
    assert site.learnt[1][2].compute == 3.0


def test_small_phases_are_part_of_the_computation() -> None:
    site = TurnHarness()
    job = site.start("a")
    site.now += 4.0
    site.begin(job, 1)
    small = messages.PhaseEnded(phase=1, bytes=10, seconds=0.1, waited=0.0, small=True)
    site.turn_service.phase_ended(job, small)
    pass_phase(site, job, 2, compute=6.0)
    assert [(phase.compute, phase.first) for _, _, phase in site.learnt] == [(10.0, True)]


def test_what_came_before_a_job_reconnected_is_not_known() -> None:
    site = TurnHarness()
    job = site.start("a", reconnected=True)
    pass_phase(site, job, 1)
    pass_phase(site, job, 2)
    assert [phase.compute for _, _, phase in site.learnt] == [None, 10.0]


def test_members_that_use_different_io_nodes_show_no_number() -> None:
    site = TurnHarness()
    one, two = site.start("a", team="t"), site.start("b", team="t")
    site.io_nodes_of["b"] = (3,)
    site.begin(one, 1)
    site.begin(two, 1)
    site.end(one, 1, moved=100)
    site.end(two, 1, moved=100)
    assert site.learnt == []
    site.io_nodes_of.clear()
    site.begin(one, 2)
    site.begin(two, 2)
    site.end(one, 2, moved=100)
    site.end(two, 2, moved=100)
    assert [(job, count, phase.bytes) for job, count, phase in site.learnt] == [("a", 1, 200)]


@pytest.mark.parametrize("scope", ["file-system", "io-node"])
def test_jobs_that_share_the_file_system_are_not_alone_whatever_turns_are_taken_on(
    scope: str,
) -> None:
    """The fault: with turns per I/O node, four jobs on four I/O nodes each counted as alone."""
    site = TurnHarness("fair-share", scope=scope)
    site.io_nodes_of = {"a": (0,), "b": (1,), "c": (), "d": (2, 3), "e": (3,)}
    jobs = [site.start(name) for name in site.io_nodes_of]
    for job in jobs:
        site.begin(job, 1)
    site.now += 1.0
    for job in jobs:
        site.end(job, 1, moved=100)
    pass_phase(site, jobs[2], 2)
    assert alone(site) == [(name, False) for name in "abcde"] + [("c", True)]
    apart = [(job, phase.apart) for job, _, phase in site.learnt]
    assert apart == [
        ("a", True),
        ("b", True),
        ("c", False),
        ("d", False),
        ("e", False),
        ("c", False),
    ]


def test_a_job_that_is_moved_to_the_io_nodes_of_another_is_beside_it_there() -> None:
    site = TurnHarness("fair-share")
    site.io_nodes_of = {"a": (0,), "b": (1,)}
    a, b = site.start("a"), site.start("b")
    site.begin(a, 1)
    site.begin(b, 1)
    site.io_nodes_of["b"] = (0,)
    site.turn_service.mapped("b")
    site.now += 1.0
    site.end(a, 1, moved=100)
    assert [phase.apart for _, _, phase in site.learnt] == [False]
