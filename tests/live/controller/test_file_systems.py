"""Turns on the file systems of a site: a phase waits on those that others use, and nowhere else."""

from typing import Any

import pytest
from live.controller.turn_harness import TurnHarness

from penstock.core.manager import SQUEEZED
from penstock.live.controller.job_table import JobEntry
from penstock.live.protocol import messages
from penstock.model import FileSystem

HOME, SCRATCH, ARCHIVE = 0, 1, 2
THREE = (
    FileSystem(name="home", bandwidth=1e6),
    FileSystem(name="scratch", bandwidth=1e9),
    FileSystem(name="archive"),
)
SentTurns = list[tuple[str, list[int]]]


class Site(TurnHarness):
    """A site with three file systems, and jobs."""

    def __init__(self, policy: str = "exclusive-fcfs", **more: Any) -> None:
        super().__init__(policy, file_systems=THREE, **more)

    def use(self, job: JobEntry, phase: int, *file_systems: int) -> SentTurns:
        """Begin a phase, or let it use more; return the turns that jobs are told of."""
        used: Any = list(file_systems) or None
        self.turn_service.phase_began(job, messages.PhaseBegan(phase=phase, file_systems=used))
        return self.turns()

    def over(self, job: JobEntry, phase: int) -> SentTurns:
        ended = messages.PhaseEnded(phase=phase, bytes=10, seconds=1.0, waited=0.0)
        self.turn_service.phase_ended(job, ended)
        return self.turns()

    def turns(self) -> SentTurns:
        sent: Any = self.turns_sent()
        return sent  # type: ignore[no-any-return]


def test_phases_on_different_file_systems_have_their_turns_at_once() -> None:
    site = Site()
    a, b, c = (site.start(name) for name in "abc")
    assert site.use(a, 1, HOME) == [("a", [HOME])]
    assert site.use(b, 1, SCRATCH) == [("b", [SCRATCH])]
    assert site.use(c, 1, SCRATCH) == [("c", [])]
    assert site.record("c").behind == ["b"]
    assert [site.record(job).waits_on for job in "abc"] == [[], [], ["scratch"]]
    assert [site.record(job).share for job in "abc"] == [1.0, 1.0, 0.0]
    assert site.over(a, 1) == []
    assert site.over(b, 1) == [("c", [SCRATCH])]


def test_a_phase_transfers_where_it_has_its_turn_and_waits_elsewhere() -> None:
    site = Site()
    a, b = site.start("a"), site.start("b")
    site.use(a, 1, SCRATCH)
    assert site.use(b, 1, HOME, SCRATCH) == [("b", [HOME])]
    record = site.record("b")
    assert (record.doing, record.waits_on, record.behind) == ("transferring", ["scratch"], ["a"])
    assert record.file_systems == ["home", "scratch"]
    assert site.over(a, 1) == [("b", [HOME, SCRATCH])]
    assert site.record("b").waits_on == []


def test_a_phase_that_uses_another_file_system_asks_for_all_again() -> None:
    """So no two jobs wait for each other: what one has and the other wants is given up first."""
    site = Site()
    a, b = site.start("a"), site.start("b")
    assert site.use(a, 1, HOME) == [("a", [HOME])]
    assert site.use(b, 1, SCRATCH) == [("b", [SCRATCH])]
    assert site.use(a, 1, SCRATCH) == [("a", [HOME])]  # nobody else wants home
    # Now each would wait for the other, if b kept its turn on scratch: a has it now.
    assert site.use(b, 1, HOME) == [("a", [HOME, SCRATCH]), ("b", [])]
    assert site.over(a, 1) == [("b", [HOME, SCRATCH])]
    assert site.over(b, 1) == []
    assert site.turn_service.turns.states["a"].phases == 1


def test_a_phase_that_names_the_same_file_systems_again_keeps_its_turn() -> None:
    site = Site()
    a, b = site.start("a"), site.start("b")
    site.use(a, 1, HOME, SCRATCH)
    site.use(b, 1, SCRATCH)
    assert site.use(a, 1, SCRATCH) == [("a", [HOME, SCRATCH])]
    assert site.record("b").behind == ["a"]


def test_members_on_several_hosts_use_the_file_systems_of_all_of_them() -> None:
    site = Site()
    a, b, c = site.start("a", "team"), site.start("b", "team"), site.start("c")
    assert site.use(a, 1, HOME) == [("a", [HOME])]
    assert site.use(b, 1, SCRATCH) == [("a", [HOME, SCRATCH]), ("b", [HOME, SCRATCH])]
    assert site.use(c, 1, SCRATCH) == [("c", [])]
    site.over(a, 1)
    assert site.over(b, 1) == [("c", [SCRATCH])]


def test_an_agent_that_does_not_name_file_systems_uses_all() -> None:
    site = Site()
    a, b = site.start("a"), site.start("b")
    assert site.use(a, 1) == [("a", [HOME, SCRATCH, ARCHIVE])]
    assert site.use(b, 1, ARCHIVE) == [("b", [])]


@pytest.mark.parametrize("named", [(7,), (5, 6)])
def test_a_file_system_that_the_site_does_not_have_counts_as_none_named(
    named: tuple[int, ...],
) -> None:
    site = Site()
    assert site.use(site.start("a"), 1, *named) == [("a", [HOME, SCRATCH, ARCHIVE])]


def test_a_phase_is_alone_if_it_was_alone_on_its_file_systems() -> None:
    """What a phase shows on one file system, those on others do not spoil."""
    site = Site("fair-share")
    a, b, c = (site.start(name) for name in "abc")
    for job, on in ((a, HOME), (b, SCRATCH), (c, SCRATCH)):
        site.use(job, 1, on)
    for job in (a, b, c):
        site.over(job, 1)
    alone = {name: phase.alone for name, _, phase in site.learnt}
    assert alone == {"a": True, "b": False, "c": False}


def test_a_phase_that_came_to_use_another_file_system_teaches_no_bandwidth() -> None:
    site = Site("fair-share")
    a = site.start("a")
    site.use(a, 1, HOME)
    site.use(a, 1, SCRATCH)
    site.over(a, 1)
    assert [phase.alone for _, _, phase in site.learnt] == [False]


def test_weights_count_among_jobs_on_the_same_file_system() -> None:
    """An I/O node serves all file systems. By the policy alone, both would have almost nothing."""
    site = Site("look-ahead-greedy-yield")
    first, both = site.start("first"), site.start("both")
    site.use(first, 1, SCRATCH)
    site.use(both, 1, HOME, SCRATCH)
    weights = site.turn_service.turns.weights
    assert weights(HOME) == {"both": SQUEEZED}
    assert site.record("both").waits_on == ["scratch"]
    assert {site.weights.get(job, 1.0) for job in ("first", "both")} == {1.0}


def test_shares_of_one_file_system_are_those_of_the_policy() -> None:
    site = Site("share-priority")
    jobs = [site.start(name) for name in "abc"]
    for job, on in zip(jobs, (HOME, SCRATCH, SCRATCH), strict=True):
        site.use(job, 1, on)
    assert [site.record(job).share for job in "abc"] == [1.0, 0.5, 0.5]


def test_lengths_of_phases_are_expected_by_the_bandwidth_of_their_file_system() -> None:
    site = Site()
    site.start("a")
    turns = site.turn_service.turns
    assert turns.expected_seconds("a", 1e6, (HOME,)) == 1.0
    assert turns.expected_seconds("a", 1e6, (SCRATCH,)) == 1e-3
    assert turns.expected_seconds("a", 1e6, (HOME, SCRATCH)) is None


def test_a_policy_that_fails_keeps_no_job_waiting_on_any_file_system(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    site = Site()
    a, b = site.start("a"), site.start("b")
    site.use(a, 1, SCRATCH)
    site.use(b, 1, SCRATCH)

    def failing(*_: object) -> Any:
        raise RuntimeError("a policy's fault")

    monkeypatch.setattr(site.turn_service.turns.manager, "handle", failing)
    assert site.use(a, 1, HOME) == [("a", [HOME, SCRATCH]), ("b", [SCRATCH])]
    monkeypatch.undo()
    assert not list(site.turn_service.turns.waiting())


def test_modes_that_only_observe_name_file_systems_too() -> None:
    site = Site(mode="observe")
    a, b = site.start("a"), site.start("b")
    site.use(a, 1, HOME)
    site.use(b, 1, SCRATCH)
    assert [site.record(job).doing for job in "ab"] == ["transferring"] * 2
    site.over(b, 1)
    site.use(b, 2, HOME)
    assert site.record("b").doing == "waiting"  # it would wait
    assert site.record("b").waits_on == ["home"]
