"""Which phases move data beside others costs no more the more jobs there are."""

import pytest

from penstock import registry
from penstock.core.ledger import Ledger
from penstock.core.manager import Manager
from penstock.live.controller.turns import Turns
from penstock.model import Job, Site


class FileSystem(int):
    """The number of a file system, which counts how often it is looked up."""

    looked_up = 0

    def __hash__(self) -> int:
        FileSystem.looked_up += 1
        return int.__hash__(self)

    def __eq__(self, other: object) -> bool:
        return int.__eq__(self, other) is True


def site(jobs: int, mode: str) -> Turns:
    """Return a site with these jobs, each in a phase on one file system."""
    ledger = Ledger(site=Site())
    manager = Manager(sharing=registry.sharing("exclusive-fcfs"), view=ledger)
    turns = Turns(manager, ledger)
    for k in range(jobs):
        turns.started(0.0, Job(id=f"job{k}", serial=k))
        turns.phase_began(1.0 + k, f"job{k}", 1, file_systems=[FileSystem(0)], mode=mode)
    return turns


@pytest.mark.parametrize("mode", ["observe", "enforce"])
def test_the_end_of_all_jobs_costs_each_of_them_the_same(mode: str) -> None:
    """950 jobs of one user that ended at once held the controller for 5 to 9 s."""

    def per_end(jobs: int) -> float:
        turns = site(jobs, mode)
        before = FileSystem.looked_up
        for k in range(jobs):
            turns.ended(1000.0, f"job{k}")
        assert not turns.states
        return (FileSystem.looked_up - before) / jobs

    assert per_end(80) <= 1.1 * per_end(20)


def test_who_moved_data_beside_another_stays_noted_when_that_one_is_gone() -> None:
    turns = site(3, "observe")
    turns.ended(10.0, "job1")
    turns.ended(10.0, "job2")
    last = turns.states["job0"].phase
    assert last is not None
    assert not last.alone
    turns.phase_began(11.0, "job0", 2, file_systems=[FileSystem(0)], mode="observe")
    assert turns.states["job0"].phase is not None
    assert turns.states["job0"].phase.alone
