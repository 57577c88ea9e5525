"""Who uses which resources while jobs come and go, without any clock."""

from typing import Any

import pytest

from penstock import registry
from penstock.core.arbiter import Arbiter
from penstock.errors import InputError
from penstock.model import (
    Action,
    Assign,
    Curve,
    Event,
    Job,
    JobEnded,
    JobStarted,
    NodeDown,
    NodeUp,
    Site,
    Snapshot,
    WakeAt,
    Woke,
)

FLAT = Curve.of({1: 10.0})
LINEAR = Curve.of({1: 10.0, 2: 20.0, 3: 30.0, 4: 40.0})
STEEP = Curve.of({1: 10.0, 2: 20.0, 4: 40.0})


class Site4:
    """Four I/O nodes, eight compute nodes, and an arbiter between jobs that come and go."""

    def __init__(
        self,
        allocator: Any,
        delay: float = 0.0,
        placer: str = "greedy-non-clairvoyant",
        direct: bool = False,
        **options: object,
    ) -> None:
        self.direct = direct
        self.jobs: dict[str, Job] = {}
        if isinstance(allocator, str):
            allocator = registry.policy("allocation", allocator, options)
        self.arbiter = Arbiter(
            allocator=allocator,
            placer=registry.policy("placement", placer),
            remap_delay=delay,
        )

    def start(self, name: str, time: float, curve: Curve, nodes: int = 2) -> list[Action]:
        job = Job(id=name, serial=len(self.jobs), nodes=nodes, curve=curve)
        self.jobs[name] = job
        return self.tell(JobStarted(time=time, job=job))

    def end(self, name: str, time: float) -> list[Action]:
        del self.jobs[name]
        return self.tell(JobEnded(time=time, job=name))

    def wake(self, time: float) -> list[Action]:
        return self.tell(Woke(time=time))

    def tell(self, event: Event) -> list[Action]:
        view = Snapshot(
            site=Site(resources=4, nodes=8, direct=self.direct), jobs=self.jobs, now=event.time
        )
        return self.arbiter.handle(event, view)


def assign(job: str, *resources: int) -> Assign:
    return Assign(job=job, resources=resources)


def test_a_running_job_gives_up_what_another_needs_and_gets_it_back() -> None:
    site = Site4("mckp", measured=True)
    assert site.start("a", 0.0, STEEP) == [assign("a", 0, 1, 2, 3)]
    assert site.start("b", 5.0, FLAT) == [assign("a", 0, 1), assign("b", 2)]
    assert site.end("b", 9.0) == [assign("a", 0, 1, 2, 3)]
    assert site.arbiter.moves == 2


def test_a_job_that_goes_direct_gives_its_resources_back() -> None:
    """A placer that decides for all jobs took it for one that stays where it was."""
    site = Site4("mckp", placer="exclusive", direct=True, measured=True)
    assert site.start("a", 0.0, Curve.of({0: 1.0, 4: 5.0})) == [assign("a", 0, 1, 2, 3)]
    assert site.start("b", 1.0, STEEP) == [assign("a"), assign("b", 0, 1, 2, 3)]


def test_a_job_whose_count_stays_is_not_moved() -> None:
    site = Site4("mckp", measured=True)
    site.start("a", 0.0, FLAT)
    site.start("b", 1.0, FLAT)
    assert site.start("c", 2.0, FLAT) == [assign("c", 2)]
    assert site.end("a", 3.0) == []
    assert site.start("d", 4.0, FLAT) == [assign("d", 0)]


def test_static_never_moves_a_running_job() -> None:
    """Paper forwarding, 5.6.3."""
    site = Site4("static", measured=True)
    assert site.start("a", 0.0, STEEP, nodes=4) == [assign("a", 0, 1)]
    assert site.start("b", 1.0, STEEP, nodes=4) == [assign("b", 2, 3)]
    assert site.end("a", 2.0) == []


def test_a_move_takes_effect_after_the_delay_and_a_start_at_once() -> None:
    site = Site4("mckp", delay=10.0, measured=True)
    site.start("a", 0.0, STEEP)
    assert site.start("b", 5.0, FLAT) == [WakeAt(time=15.0), assign("b", 2)]
    assert site.wake(14.0) == []
    assert site.wake(15.0) == [assign("a", 0, 1)]


def test_what_is_decided_while_a_job_has_not_heard_replaces_what_it_would_have() -> None:
    site = Site4("mckp", delay=10.0, measured=True)
    site.start("a", 0.0, STEEP)
    site.start("b", 5.0, FLAT)
    assert site.end("b", 7.0) == []
    assert site.wake(15.0) == [assign("a", 0, 1, 2, 3)]


def test_jobs_that_start_together_are_mapped_together() -> None:
    site = Site4("mckp", delay=10.0, measured=True)
    site.start("a", 0.0, STEEP)
    assert site.start("b", 0.0, FLAT) == [assign("a", 0, 1), assign("b", 2)]
    assert site.arbiter.moves == 0


def test_nobody_is_told_after_its_end() -> None:
    site = Site4("mckp", delay=10.0, measured=True)
    site.start("a", 0.0, STEEP)
    site.start("b", 5.0, FLAT)
    site.end("a", 6.0)
    assert site.wake(15.0) == []


def test_a_negative_delay_is_refused() -> None:
    with pytest.raises(InputError, match="remap-delay"):
        Site4("mckp", delay=-1.0)


def test_an_allocator_that_gives_more_than_there_is_is_told_so() -> None:
    class Greedy:
        needs = frozenset[str]()
        sticky = False

        def allocate(self, view: Snapshot) -> dict[str, int]:
            return dict.fromkeys(view.jobs, 5)

    site = Site4(Greedy())
    with pytest.raises(InputError, match="Greedy gives job 'a' 5 resources; the site has 4"):
        site.start("a", 0.0, FLAT)


def exclusive(*, shared: bool = True) -> Site4:
    return Site4("mckp", placer="exclusive", measured=True, shared=shared)


def test_who_had_a_node_of_its_own_steps_down_to_the_shared_one() -> None:
    """Five jobs on four nodes: three have their own, the two least share the last."""
    site = exclusive()
    curves = {name: Curve.of({1: 10.0 + k}) for k, name in enumerate("abcde")}
    places: dict[str, tuple[int, ...]] = {}
    for time, (name, curve) in enumerate(curves.items()):
        for action in site.start(name, float(time), curve):
            assert isinstance(action, Assign)
            assert isinstance(action, Assign)
            places[action.job] = action.resources
    assert places["a"] == places["b"] == (3,)
    assert {places[name] for name in "cde"} == {(0,), (1,), (2,)}


def test_who_shared_gets_a_node_of_its_own_once_there_is_one() -> None:
    site = exclusive()
    for time, name in enumerate("abcde"):
        site.start(name, float(time), Curve.of({1: 10.0 + time}))
    assert site.end("e", 9.0) != []
    assert sorted(site.arbiter.assigned.values()) == [(0,), (1,), (2,), (3,)]


def test_a_job_leaves_a_resource_that_is_gone_and_no_job_is_assigned_to_it() -> None:
    """The policies then see a site of three resources; the others keep their numbers."""
    site = Site4("mckp", measured=True)
    site.start("a", 0.0, LINEAR)
    before = site.arbiter.assigned["a"]
    assert 1 in before
    (assign,) = site.tell(NodeDown(time=1.0, resource=1))
    assert isinstance(assign, Assign)
    assert (assign.job, 1 in assign.resources) == ("a", False)
    site.start("b", 2.0, LINEAR)
    assert all(1 not in resources for resources in site.arbiter.assigned.values())
    site.tell(NodeUp(time=3.0, resource=1))
    used = {r for resources in site.arbiter.assigned.values() for r in resources}
    assert used == {0, 1, 2, 3}


def test_without_any_resource_jobs_keep_what_they_have() -> None:
    site = Site4("mckp", measured=True)
    site.start("a", 0.0, LINEAR)
    for resource in range(4):
        last = site.arbiter.assigned["a"]
        actions = site.tell(NodeDown(time=1.0 + resource, resource=resource))
    assert actions == []
    assert site.arbiter.assigned["a"] == last == (3,)
