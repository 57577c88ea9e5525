"""Turns alternate between users: who has many jobs waits for who has one, and not only the reverse.

A site of unit phases, in which whoever ends a phase asks for the next at once.
"""

import random
from collections import deque
from pathlib import Path

import msgspec
import pytest

from penstock import registry
from penstock.core.ledger import Ledger, decide
from penstock.core.manager import Manager
from penstock.model import Action, Admit, Event, Hold, Job, JobStarted, PhaseBegan, PhaseEnded, Site
from penstock.records import Header, PolicySpec, Record, RecordWriter, replay

MANY = 200


class Busy:
    """A Manager whose jobs are always in a phase; `now` counts phases that ended."""

    def __init__(self, policy: str, *jobs: Job, fair_users: bool = True) -> None:
        self.ledger = Ledger(site=Site(bandwidth=1.0))
        self.manager = Manager(
            sharing=registry.sharing(policy), view=self.ledger, fair_users=fair_users
        )
        self.ledger.attend(self.manager)
        self.now = 0.0
        self.transferring: deque[str] = deque()
        self.requested_at: dict[str, float] = {}
        for job in jobs:
            self.hear(JobStarted(time=0.0, job=job))

    def hear(self, event: Event) -> list[Action]:
        _, actions = decide(self.manager, self.ledger, event)
        for action in actions:
            if isinstance(action, Admit):
                self.transferring.append(action.job)
            elif isinstance(action, Hold):
                self.transferring.remove(action.job)
        return actions

    def begin(self, job: str, io: float = 1.0) -> list[Action]:
        self.requested_at[job] = self.now
        return self.hear(PhaseBegan(time=self.now, job=job, resources=(0,), io=io))

    def end(self, job: str) -> list[Action]:
        self.transferring.remove(job)
        return self.hear(PhaseEnded(time=self.now, job=job, resource=0, io=1.0))

    def served(self, turns: int) -> list[str]:
        """Return whose phases end, one after the other; each begins another at once."""
        order = []
        for _ in range(turns):
            self.now += 1.0
            job = self.transferring[0]
            order.append(job)
            self.end(job)
            self.begin(job)
        return order


def crowd(w_iter: float | None = None) -> list[Job]:
    """Return many jobs of one user, and one of another, who comes last."""
    many = [Job(id=f"many{k}", serial=k, user="many", w_iter=w_iter) for k in range(MANY)]
    return [*many, Job(id="one", serial=MANY, user="one", w_iter=w_iter)]


@pytest.mark.parametrize("policy", ["exclusive-fcfs", "set-10", "lowest-id", "shortest-io"])
def test_one_job_against_two_hundred_has_every_other_turn(policy: str) -> None:
    """Without fair users, first come first served makes the job wait for 200 phases each time."""
    site = Busy(policy, *crowd(w_iter=10.0))
    for job in crowd():
        site.begin(job.id)
    order = site.served(40)
    assert order[1::2] == ["one"] * 20
    unfair = Busy(policy, *crowd(w_iter=10.0), fair_users=False)
    for job in crowd():
        unfair.begin(job.id)
    assert unfair.served(40).count("one") == 0


def test_many_users_each_wait_for_one_phase_of_every_other() -> None:
    """Jobs of user k: k + 1; each round serves every user once, whatever it has waiting."""
    users = [f"user{k}" for k in range(8)]
    jobs = [
        Job(id=f"{user}.{n}", serial=10 * k + n, user=user)
        for k, user in enumerate(users)
        for n in range(k + 1)
    ]
    site = Busy("exclusive-fcfs", *jobs)
    for job in jobs:
        site.begin(job.id)
    order = [job.partition(".")[0] for job in site.served(80)]
    for first in range(8, 80, 8):
        assert sorted(order[first : first + 8]) == users


def test_inside_a_user_the_policy_decides() -> None:
    """shortest-io: b's two alternate with a's, and each user's shorter phase is its first."""
    jobs = [Job(id=f"{user}{k}", serial=k, user=user) for k, user in enumerate("aabb")]
    site = Busy("shortest-io", Job(id="first", serial=9, user="c"), *jobs)
    site.begin("first")
    for job, io in (("a0", 5.0), ("a1", 4.0), ("b2", 9.0), ("b3", 8.0)):
        site.begin(job, io)
    order = []
    for _ in range(4):
        site.end(site.transferring[0])
        order.append(site.transferring[0])
    assert order == ["a1", "b3", "a0", "b2"]


def test_who_waits_is_told_the_order_in_which_turns_will_come() -> None:
    jobs = [Job(id=name, serial=k, user=name[0]) for k, name in enumerate(("a0", "a1", "a2", "b0"))]
    site = Busy("exclusive-fcfs", *jobs)
    for job in jobs:
        site.begin(job.id)
    assert site.manager.ahead_of("b0") == ["a0"]
    assert site.manager.ahead_of("a2") == ["a0", "b0", "a1"]


def test_a_user_keeps_a_preemptive_policys_place_until_a_phase_ends() -> None:
    """greedy-com: b's shorter phase does not interrupt a's turn; a's own shorter one does."""
    jobs = [Job(id=name, serial=k, user=name[0]) for k, name in enumerate(("a0", "a1", "b0"))]
    site = Busy("greedy-com", *jobs)
    site.begin("a0", 9.0)
    assert site.begin("b0", 1.0) == []
    site.begin("a1", 2.0)
    assert list(site.transferring) == ["a1"]
    site.end("a1")
    assert list(site.transferring) == ["b0"]


@pytest.mark.parametrize("fair_users", [True, False])
def test_a_record_says_whether_and_replays_so(tmp_path: Path, fair_users: bool) -> None:
    """One of before there was a choice has none, and is replayed without."""
    header = Header(run="r", epoch=0.0, site=Site(), sharing=PolicySpec(policy="exclusive-fcfs"))
    with_flag = msgspec.structs.replace(header, fair_users=fair_users)
    assert not header.fair_users
    with RecordWriter(tmp_path, with_flag) as record:
        site = Busy("exclusive-fcfs", fair_users=fair_users)
        for event in [
            *(JobStarted(time=0.0, job=Job(id=f"a{k}", serial=k, user="a")) for k in range(3)),
            JobStarted(time=0.0, job=Job(id="b", serial=3, user="b")),
            *(PhaseBegan(time=1.0, job=job, resources=(0,)) for job in ("a0", "a1", "a2", "b")),
            PhaseEnded(time=2.0, job="a0", resource=0, io=1.0),
        ]:
            record.write(event, site.hear(event))
    [path] = tmp_path.iterdir()
    assert site.transferring[-1] == ("b" if fair_users else "a1")
    assert replay(Record(path)).first_difference is None


@pytest.mark.parametrize("policy", sorted(registry.table("sharing")))
def test_where_all_jobs_are_one_users_nothing_is_another(policy: str) -> None:
    """Also with caps, under which several of a group transfer at once."""
    jobs = [
        Job(
            id=f"j{k}",
            serial=k,
            user="ann",
            w_iter=10.0 ** (k % 3),
            max_share=0.4 if k % 4 == 0 else 1.0,
            hints={"profile": 10.0 ** (k % 3), "phases": 100.0 + k, "period": 1.0},
        )
        for k in range(12)
    ]
    fair, plain = Busy(policy, *jobs), Busy(policy, *jobs, fair_users=False)
    random_ = random.Random(5)
    in_phase: set[str] = set()
    for step in range(300):
        fair.now = plain.now = float(step)
        job = random_.choice(jobs).id
        if job not in in_phase:
            io = random_.uniform(0.5, 5.0)
            in_phase.add(job)
            assert fair.begin(job, io) == plain.begin(job, io)
        elif job in fair.transferring:
            in_phase.discard(job)
            assert fair.end(job) == plain.end(job)
    assert in_phase
