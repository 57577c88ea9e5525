"""One check for every registered allocator and placer."""

import pytest

from penstock import registry
from penstock.data import g5k_applications
from penstock.model import Site, Snapshot
from penstock.sim.evaluate.contract import sample_jobs

ALLOCATORS = sorted(registry.table("allocation"))
PLACERS = sorted(registry.table("placement"))
KNOWABLE = {"nodes", "processes", "volume", "compute", "curve", "best-count", "w_iter"}
FICTITIOUS = {"oracle"}
"""Those that give more than there is."""


@pytest.mark.parametrize(
    ("name", "direct"),
    [(name, direct) for name in ALLOCATORS for direct in (True, False) if direct or name != "zero"],
)
def test_every_job_gets_a_count_that_it_can_have(name: str, direct: bool) -> None:
    view = sample_jobs(direct=direct)
    counts = registry.policy("allocation", name).allocate(view)
    assert counts.keys() == view.jobs.keys()
    for job, count in counts.items():
        assert type(count) is int
        curve = view.jobs[job].curve
        assert curve is not None
        assert count in curve
        assert (0 if direct else 1) <= count
        assert count <= view.site.resources or name in FICTITIOUS


@pytest.mark.parametrize("name", ALLOCATORS)
def test_the_same_view_gets_the_same_counts(name: str) -> None:
    first, second = (
        registry.policy("allocation", name).allocate(sample_jobs(direct=True)) for _ in range(2)
    )
    assert dict(first) == dict(second)


@pytest.mark.parametrize("kind", ["allocation", "placement"])
def test_needs_are_things_that_can_be_known(kind: str) -> None:
    for name in registry.table(kind):
        assert registry.load(kind, name).needs <= KNOWABLE, name


@pytest.mark.parametrize("name", PLACERS)
def test_every_job_gets_as_many_distinct_resources_as_counted(name: str) -> None:
    view = sample_jobs(direct=False)
    counts = registry.policy("allocation", "mckp").allocate(view)
    places = registry.policy("placement", name).place(view, counts)
    assert {job: len(set(resources)) for job, resources in places.items()} == dict(counts)
    assert all(0 <= r < view.site.resources for rs in places.values() for r in rs)


@pytest.mark.parametrize("name", PLACERS)
def test_a_placer_answers_for_those_who_move_alone(name: str) -> None:
    view = sample_jobs(direct=False)
    staying = {"j0": (0, 1), "j1": (2,)}
    moving = {"j2": 2, "j3": 1}
    placer = registry.policy("placement", name)
    assert placer.place(view, moving, staying).keys() == moving.keys()


@pytest.mark.parametrize("name", ["greedy-clairvoyant", "greedy-non-clairvoyant"])
def test_greedy_placers_go_where_nobody_stays(name: str) -> None:
    view = sample_jobs(direct=False, resources=4)
    places = registry.policy("placement", name).place(view, {"j2": 2}, {"j8": (0, 3)})
    assert set(places["j2"]) == {1, 2}


def test_the_nine_applications_can_be_allocated_by_all() -> None:
    jobs = [a.job(serial) for serial, a in enumerate(g5k_applications().values())]
    view = Snapshot.of(jobs, Site(resources=72, nodes=400, direct=True))
    for name in ALLOCATORS:
        assert registry.policy("allocation", name).allocate(view).keys() == view.jobs.keys()
