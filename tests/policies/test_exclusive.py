"""exclusive: own resources while they last, and who shares the last one."""

import pytest

from penstock import registry
from penstock.errors import InputError
from penstock.model import Curve, Job, Site, Snapshot
from penstock.policies.placement.exclusive import Exclusive
from penstock.sim.generators.io_resources import SITE, io_resources

JOBS = [Job(id=f"j{k}", serial=k, curve=Curve.of({1: 10.0 + k, 2: 20.0})) for k in range(5)]


def view(resources: int) -> Snapshot:
    return Snapshot.of(JOBS, Site(resources=resources))


def test_own_resources_while_they_last() -> None:
    places = Exclusive().place(view(7), {"j0": 2, "j1": 1, "j2": 2, "j3": 1, "j4": 1})
    assert sorted(r for where in places.values() for r in where) == list(range(7))


def test_the_least_jobs_of_count_one_share_the_last() -> None:
    places = Exclusive().place(view(4), {"j0": 1, "j1": 1, "j2": 1, "j3": 2, "j4": 1})
    assert places == {"j0": (3,), "j1": (3,), "j2": (3,), "j3": (0, 1), "j4": (2,)}


def test_direct_access_takes_no_resource() -> None:
    assert Exclusive().place(view(4), {"j0": 0, "j1": 1})["j0"] == ()


def test_larger_counts_never_share() -> None:
    with pytest.raises(InputError, match="want 6 resources and 4 are free, but only the 2"):
        Exclusive().place(view(4), {"j0": 1, "j1": 1, "j2": 2, "j3": 2})


def test_mckp_with_a_shared_resource_comes_out_as_it_meant() -> None:
    """40 jobs on 20 I/O nodes: 19 are had exclusively, all others share the twentieth."""
    jobs = io_resources(0.5, seed=1)
    full = Snapshot.of(jobs, SITE)
    counts = registry.policy("allocation", "mckp", {"shared": True}).allocate(full)
    places = Exclusive().place(full, counts)
    users = [[name for name, where in places.items() if r in where] for r in range(20)]
    assert all(len(on) == 1 for on in users[:19])
    last = users[19]
    assert len(last) == sum(counts.values()) - 19
    alone = [name for name, n in counts.items() if n == 1 and name not in last]
    bandwidth = {job.id: job.curve.bandwidth(1) for job in jobs if job.curve is not None}
    assert max(bandwidth[name] for name in last) <= min((bandwidth[n] for n in alone), default=1e9)


def test_those_who_stay_keep_theirs() -> None:
    places = Exclusive().place(view(4), {"j1": 1, "j2": 1}, {"j0": (0, 2)})
    assert places == {"j1": (1,), "j2": (3,)}
