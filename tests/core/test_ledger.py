"""What a live controller knows, from events and actions alone."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from strategies import REALS, examples, workloads

from penstock import registry
from penstock.core.ledger import Ledger, decide, knows
from penstock.core.manager import Manager
from penstock.errors import InputError
from penstock.model import (
    DIRECT_PATH,
    Action,
    Event,
    Job,
    JobEnded,
    JobStarted,
    PhaseBegan,
    PhaseEnded,
    Request,
    Site,
    Woke,
)
from penstock.sim import reference
from penstock.sim.checks import check
from penstock.sim.knowledge import Knowledge
from penstock.sim.workload import Workload

LIVE = sorted(
    name
    for name in registry.table("sharing")
    if "profile" not in registry.load("sharing", name).needs
)


class Desk:
    """A Manager with its ledger, told events in the order of the test."""

    def __init__(self, policy: str = "exclusive-fcfs", *jobs: Job) -> None:
        self.ledger = Ledger(site=Site(resources=2))
        self.manager = Manager(sharing=registry.sharing(policy), view=self.ledger)
        self.ledger.attend(self.manager)
        for job in jobs:
            self.hear(JobStarted(time=0.0, job=job))

    def hear(self, event: Event) -> Sequence[Action]:
        return decide(self.manager, self.ledger, event)[1]

    def begin(
        self,
        job: Job,
        time: float,
        *,
        io: float | None = None,
        resources: tuple[int, ...] = (0,),
    ) -> Request:
        self.hear(PhaseBegan(time=time, job=job.id, resources=resources, io=io))
        return Request(job=job, arrival=time, resources=resources, io=io)

    def end(self, job: Job, time: float, io: float, resource: int = 0) -> None:
        self.hear(PhaseEnded(time=time, job=job.id, resource=resource, io=io))

    def pass_until(self, time: float) -> None:
        self.hear(Woke(time=time))


A, B = Job(id="a", serial=0), Job(id="b", serial=1)


def test_waiting_for_a_turn_is_neither_computing_nor_io() -> None:
    desk = Desk("exclusive-fcfs", A, B)
    desk.begin(A, 10.0)
    desk.begin(B, 12.0)
    desk.pass_until(15.0)
    assert desk.ledger.age(B) == 15.0
    assert desk.ledger.progress(B) == 12.0
    assert desk.ledger.io_done(B) == 0.0
    desk.end(A, 20.0, io=9.0)
    desk.pass_until(23.0)
    assert desk.ledger.io_done(B) == 3.0
    desk.end(B, 25.0, io=4.0)
    desk.pass_until(26.0)
    assert desk.ledger.progress(B) == 12.0 + 4.0 + 1.0
    assert desk.ledger.io_done(A) == 9.0


def test_a_phase_is_expected_to_be_as_long_as_those_before_it() -> None:
    desk = Desk("exclusive-fcfs", A)
    for start, io in ((0.0, 2.0), (10.0, 4.0)):
        desk.begin(A, start)
        desk.end(A, start + 5, io=io)
    request = desk.begin(A, 20.0)
    assert desk.ledger.remaining(request) == 3.0
    desk.pass_until(21.0)
    assert desk.ledger.remaining(request) == 2.0
    desk.pass_until(30.0)
    assert desk.ledger.remaining(request) == -7.0, "overdue by 7 s"
    assert desk.ledger.done(request) == 10.0
    assert desk.ledger.io_done(A) == 16.0, "until the phase ends and its work is measured"


def test_phases_without_any_io_spoil_no_mean() -> None:
    """They were cut, proved small or lent their turn; neither the job's mean nor everybody's."""
    a, b = Job(id="a", serial=0), Job(id="b", serial=1)
    desk = Desk("exclusive-fcfs", a, b)
    desk.begin(a, 1.0)
    desk.end(a, 2.0, 0.0)
    assert desk.ledger.expected_io("a") is None
    desk.begin(a, 3.0)
    desk.end(a, 7.0, 4.0)
    desk.begin(a, 8.0)
    desk.end(a, 9.0, 0.0)
    assert desk.ledger.expected_io("a") == 4.0
    assert desk.ledger.expected(desk.begin(b, 10.0)) is None


def test_an_announced_length_wins_over_the_past() -> None:
    desk = Desk("exclusive-fcfs", A)
    desk.begin(A, 0.0)
    desk.end(A, 1.0, io=1.0)
    assert desk.ledger.remaining(desk.begin(A, 2.0, io=7.0)) == 7.0


def test_nothing_is_expected_of_a_job_before_its_first_phase_has_ended() -> None:
    """What others did says nothing of it: a policy decides what it takes it for."""
    desk = Desk("exclusive-fcfs", A, B)
    desk.begin(A, 0.0)
    desk.end(A, 6.0, io=6.0)
    request = desk.begin(B, 7.0)
    assert desk.ledger.expected(request) is None
    assert desk.ledger.remaining(request) == math.inf


def test_a_held_phase_keeps_what_it_has_done() -> None:
    desk = Desk("greedy-com", A, B)
    request = desk.begin(A, 0.0, io=10.0)
    desk.begin(B, 4.0, io=1.0)
    desk.pass_until(5.0)
    assert desk.ledger.remaining(request) == 6.0
    desk.end(B, 5.0, io=1.0)
    desk.pass_until(7.0)
    assert desk.ledger.remaining(request) == 4.0


def test_a_phase_counts_once_and_by_its_slowest_resource() -> None:
    desk = Desk("fair-share", A)
    request = desk.begin(A, 0.0, io=10.0, resources=(0, 1))
    desk.pass_until(4.0)
    desk.end(A, 5.0, io=10.0, resource=0)
    assert desk.ledger.remaining(request) == 5.0
    desk.end(A, 10.0, io=8.0, resource=1)
    assert desk.ledger.io_done(A) == 10.0


def test_a_direct_phase_transfers_at_once() -> None:
    desk = Desk("exclusive-fcfs", A)
    request = desk.begin(A, 1.0, io=4.0, resources=())
    desk.pass_until(2.0)
    assert desk.ledger.remaining(request) == 3.0
    desk.end(A, 5.0, io=4.0, resource=DIRECT_PATH)
    assert desk.ledger.progress(A) == 5.0


@pytest.mark.parametrize("wrong", [3.0, -1.0, math.nan, math.inf])
def test_time_never_goes_backwards(wrong: float) -> None:
    """A clock that was set back must not make an age, or a gap, negative."""
    desk = Desk("exclusive-fcfs", A)
    desk.pass_until(5.0)
    event = desk.ledger.take(PhaseBegan(time=wrong, job="a", resources=(0,)))
    assert event == PhaseBegan(time=5.0, job="a", resources=(0,))
    assert desk.ledger.now == 5.0
    assert desk.ledger.progress(A) == 5.0


def test_a_phase_that_was_seen_to_end_late_ended_when_it_did() -> None:
    desk = Desk("exclusive-fcfs", A)
    desk.begin(A, 10.0)
    desk.hear(PhaseEnded(time=15.0, job="a", resource=0, io=3.0, idle=2.0))
    assert desk.ledger.progress(A) == 10.0 + 3.0 + 2.0


@pytest.mark.parametrize("wrong", [-1.0, math.nan, math.inf])
def test_invalid_lengths_are_not_believed(wrong: float) -> None:
    """They come from a job's own process: NaN in an estimate would stay there."""
    desk = Desk("exclusive-fcfs", A)
    began = desk.ledger.take(PhaseBegan(time=1.0, job="a", resources=(0,), io=wrong))
    assert began == PhaseBegan(time=1.0, job="a", resources=(0,), io=None)
    ended = desk.ledger.take(PhaseEnded(time=2.0, job="a", resource=0, io=wrong, idle=wrong))
    assert ended == PhaseEnded(time=2.0, job="a", resource=0, io=0.0, idle=0.0)


def test_work_left_is_what_the_job_announced() -> None:
    announced = Job(id="a", serial=0, compute=20.0, volume=10.0)
    desk = Desk("exclusive-fcfs", announced, B)
    desk.pass_until(5.0)
    assert desk.ledger.work_left(announced) == 25.0
    assert math.isnan(desk.ledger.work_left(B))
    desk.pass_until(50.0)
    assert desk.ledger.work_left(announced) == -20.0, "it takes longer than it announced"


def test_the_jobs_are_the_managers_and_go_with_them() -> None:
    desk = Desk("exclusive-fcfs", A, B)
    assert desk.ledger.jobs == {"a": A, "b": B}
    request = desk.begin(A, 2.0, io=5.0)
    desk.hear(JobEnded(time=3.0, job="a"))
    assert list(desk.ledger.jobs) == ["b"]
    assert desk.ledger.done(request) == desk.ledger.age(A) == desk.ledger.progress(A) == 0.0
    assert desk.ledger.expected(request) is None


@pytest.mark.parametrize("name", sorted(registry.table("sharing")))
def test_what_cannot_be_known_is_refused(name: str) -> None:
    needs = registry.load("sharing", name).needs
    if "profile" not in needs:
        knows(needs)
        return
    with pytest.raises(InputError, match=r"'profile'.*penstock policies"):
        knows(needs)


class Compared(reference.Clock):
    """A simulation whose truth is compared with what a ledger makes of its events."""

    def __init__(self, workload: Workload, policy: str, site: Site) -> None:
        sharing = registry.sharing(policy)
        super().__init__(workload, sharing, site, Knowledge(), None)
        self.ledger = Ledger(site=self.site)
        self.ledger.attend(self.manager)
        volume, compute = workload.total(workload.io), workload.total(workload.compute)
        self.known = [
            replace(job, curve=None, volume=float(volume[j]), compute=float(compute[j]))
            for j, job in enumerate(self.known)
        ]
        self.requests: dict[str, Request] = {}
        self.compared = 0

    def tell(self, event: Event) -> None:
        self.ledger.take(event)
        super().tell(event)
        if isinstance(event, PhaseBegan):
            request = Request(
                job=self.jobs[event.job], arrival=event.time, resources=event.resources, io=event.io
            )
            self.requests[event.job] = request
        self.compare(event)

    def act(self, actions: Iterable[Action]) -> None:
        actions = list(actions)
        super().act(actions)
        self.ledger.did(actions)
        self.compare(actions)

    def compare(self, happened: object) -> None:
        for job in self.jobs.values():
            for quantity in ("age", "progress", "io_done", "work_left"):
                truth, ours = getattr(self, quantity)(job), getattr(self.ledger, quantity)(job)
                assert ours == pytest.approx(truth, abs=1e-6), (happened, job.id, quantity)
            request = self.requests.get(job.id)
            if request is not None and self.manager.in_phase(job.id):
                for quantity in ("expected", "done", "remaining"):
                    truth = getattr(self, quantity)(request)
                    ours = getattr(self.ledger, quantity)(request)
                    assert ours == pytest.approx(truth, abs=1e-6), (happened, job.id, quantity)
            self.compared += 1


@pytest.mark.parametrize("policy", LIVE)
@examples(25)
@given(workload=workloads(times=REALS, max_jobs=4, resources=2, caps=True))
def test_a_ledger_knows_what_the_simulator_knows_of_every_job_at_every_event(
    policy: str, workload: Workload
) -> None:
    """While jobs compute, wait and transfer, alone or sharing, narrow or not."""
    site = Site(resources=2, capacity=(1.0, 0.9))
    check(workload, site)
    clock = Compared(workload, policy, site)
    clock.run()
    assert clock.compared
