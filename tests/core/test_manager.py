"""The one turn logic, without any clock: events in, actions out."""

from typing import Any

import pytest

from penstock import registry
from penstock.core.manager import Manager
from penstock.model import (
    Action,
    Admit,
    Event,
    Hold,
    Job,
    JobEnded,
    JobStarted,
    PhaseBegan,
    PhaseEnded,
    Request,
    View,
)
from penstock.policies.base import ByArrival, Own, Sharing


class Still:
    """A view in which every request still needs what it asked for."""

    now = 0.0
    jobs: dict[str, Job] = {}  # noqa: RUF012

    def progress(self, job: Job) -> float:
        return 1.0

    def age(self, job: Job) -> float:
        return 1.0

    def expected(self, request: Request) -> float | None:
        return request.io

    def done(self, request: Request) -> float:
        return 0.0


def manager(policy: str, *w_iters: float, max_share: float = 1.0) -> Manager:
    view: Any = Still()
    new = Manager(sharing=registry.sharing(policy), view=view)
    for serial, w_iter in enumerate(w_iters):
        job = Job(id=f"j{serial}", serial=serial, w_iter=w_iter, max_share=max_share)
        assert new.handle(JobStarted(time=0.0, job=job)) == []
    return new


def begin(job: str, time: float, io: float = 1.0) -> PhaseBegan:
    return PhaseBegan(time=time, job=job, resources=(0,), io=io)


def end(job: str, time: float) -> PhaseEnded:
    return PhaseEnded(time=time, job=job, resource=0, io=1.0)


def admitted(actions: list[Action]) -> list[str]:
    return [action.job for action in actions if isinstance(action, Admit)]


def test_a_set_goes_one_by_one_in_order_of_arrival() -> None:
    m = manager("set-10", 10.0, 12.0, 100.0, 9.0)
    assert admitted(m.handle(begin("j1", 1.0))) == ["j1"]
    assert admitted(m.handle(begin("j3", 2.0))) == []
    assert admitted(m.handle(begin("j0", 3.0))) == []
    other_set = m.handle(begin("j2", 4.0))
    assert other_set == [Admit(job="j2", resource=0, weight=10.0**-2, max_share=1.0)]
    assert admitted(m.handle(end("j1", 5.0))) == ["j3"]
    assert admitted(m.handle(end("j3", 6.0))) == ["j0"]


def test_ties_go_to_the_earlier_job() -> None:
    m = manager("exclusive-fcfs", 1.0, 1.0, 1.0)
    m.handle(begin("j1", 0.0))
    m.handle(begin("j2", 1.0))
    m.handle(begin("j0", 1.0))
    assert admitted(m.handle(end("j1", 2.0))) == ["j0"]


def test_a_preempted_job_is_held_and_comes_back() -> None:
    m = manager("greedy-com", 1.0, 1.0)
    assert admitted(m.handle(begin("j0", 0.0, io=5.0))) == ["j0"]
    assert m.handle(begin("j1", 1.0, io=2.0)) == [
        Hold(job="j0", resource=0),
        Admit(job="j1", resource=0, weight=1.0, max_share=1.0),
    ]
    assert admitted(m.handle(end("j1", 3.0))) == ["j0"]


def test_a_phase_that_ends_while_it_waits_gets_no_turn() -> None:
    """Live, a waiting job may be killed, or its gate open by itself."""
    m = manager("exclusive-fcfs", 1.0, 1.0, 1.0)
    for job in ("j0", "j1", "j2"):
        m.handle(begin(job, 0.0))
    assert m.handle(end("j1", 1.0)) == []
    assert admitted(m.handle(end("j0", 2.0))) == ["j2"]
    assert m.handle(end("j2", 3.0)) == []


def test_caps_let_more_than_one_in() -> None:
    m = manager("exclusive-fcfs", 1.0, 1.0, 1.0, max_share=0.5)
    assert admitted(m.handle(begin("j0", 0.0))) == ["j0"]
    assert admitted(m.handle(begin("j1", 0.0))) == ["j1"]
    assert admitted(m.handle(begin("j2", 0.0))) == []


def test_replaying_a_record_gives_the_same_actions() -> None:
    record: list[Event] = [
        begin("j0", 1.0),
        begin("j1", 1.5),
        end("j0", 2.0),
        begin("j2", 2.0),
        end("j1", 4.0),
        JobEnded(time=4.0, job="j1"),
        end("j2", 5.0),
        begin("j0", 6.0),
    ]
    first, second = manager("set-10", 10, 11, 12), manager("set-10", 10, 11, 12)
    assert [first.handle(e) for e in record] == [second.handle(e) for e in record]


def test_a_phase_at_whose_end_the_policy_raises_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the job would stay in the phase, and its next phase could not begin."""
    m = manager("shortest-io", 10.0, 10.0, 10.0)
    for name in ("j0", "j1"):
        m.handle(begin(name, 1.0))

    def raises(*_: object) -> None:
        raise RuntimeError

    with monkeypatch.context() as broken:
        broken.setattr(m, "_choose", raises)
        with pytest.raises(RuntimeError):
            m.handle(end("j0", 2.0))
    assert not m.in_phase("j0")
    assert admitted(m.handle(begin("j2", 3.0))) == ["j1"]
    assert admitted(m.handle(end("j1", 4.0))) == ["j2"]


class Raises(ByArrival):
    """One job at a time; observe() raises when a test says so."""

    now = False

    def group(self, job: Job) -> str:
        return "all"

    def observe(self, event: Event, view: View) -> None:
        if self.now:
            raise RuntimeError


class RaisesOnce(ByArrival):
    """All jobs share; weight() raises at its third call, between the two resources of a phase."""

    reweighs = True

    def __init__(self) -> None:
        self.calls = 0

    def group(self, job: Job) -> Own:
        return Own.GROUP

    def weight(self, job: Job) -> float:
        self.calls += 1
        if self.calls == 3:
            raise RuntimeError
        return 1.0


def two_jobs(policy: Sharing) -> Manager:
    view: Any = Still()
    made = Manager(sharing=policy, view=view)
    for serial in range(2):
        made.handle(JobStarted(time=0.0, job=Job(id=f"j{serial}", serial=serial)))
    return made


def test_a_phase_at_which_observe_raised_takes_no_place() -> None:
    """Its end is not told to the Manager, so that it would hold its place for ever."""
    policy = Raises()
    m = two_jobs(policy)
    policy.now = True
    with pytest.raises(RuntimeError):
        m.handle(begin("j0", 1.0))
    policy.now = False
    assert not m.in_phase("j0")
    assert admitted(m.handle(begin("j1", 2.0))) == ["j1"]


def test_what_a_decision_left_to_say_of_a_phase_ends_with_it() -> None:
    """j0 was admitted on its first resource, which nobody was told before it ended."""
    m = two_jobs(RaisesOnce())
    with pytest.raises(RuntimeError):
        m.handle(PhaseBegan(time=1.0, job="j0", resources=(0, 1), io=1.0))
    for resource in (0, 1):
        m.hear(PhaseEnded(time=2.0, job="j0", resource=resource, io=1.0))
    assert admitted(m.handle(begin("j1", 3.0))) == ["j1"]
