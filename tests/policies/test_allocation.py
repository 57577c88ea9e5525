"""How many resources: the papers' definitions, an exact optimum, and the Table II of inputs."""

import itertools
import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples

from penstock import registry
from penstock.errors import InputError
from penstock.model import Curve, Job, Site, Snapshot
from penstock.policies._support import knapsack
from penstock.policies.allocation.mckp import Mckp
from penstock.policies.allocation.n_sys import NSys
from penstock.policies.allocation.static import Static
from penstock.policies.allocation.t_cpu import Candidate, Rounds, TCpu
from penstock.sim.generators.io_resources import SITE, io_resources

# Paper forwarding, Table 5.3 and Fig. 5.8: MB/s through 0, 1, 2, 4, 8 I/O nodes on Grid'5000
# (Bez et al., MIT-licensed companion data), rounded to 0.1; compute nodes and processes as run.
APPLICATIONS = {
    "BT-C": (32, 128, {0: 195.8, 1: 77.6, 2: 75.4}),
    "BT-D": (64, 512, {0: 231.8, 1: 597.2, 2: 594.2}),
    "IOR-MPI": (16, 128, {0: 1026.3, 1: 268.4, 2: 363.5, 8: 5089.9}),
    "POSIX-L": (64, 512, {0: 281.7, 1: 285.2, 2: 412.0}),
    "MAD": (32, 64, {0: 255.9, 1: 77.9, 2: 92.0}),
    "S3D": (64, 512, {0: 241.3, 1: 51.8, 2: 48.2}),
}


def snapshot(jobs: list[Job], **site: Any) -> Snapshot:
    return Snapshot.of(jobs, Site(**site))


def applications() -> list[Job]:
    return [
        Job(id=name, serial=k, nodes=nodes, processes=processes, curve=Curve.of(points))
        for k, (name, (nodes, processes, points)) in enumerate(APPLICATIONS.items())
    ]


def test_table_5_3_of_the_thesis() -> None:
    view = snapshot(applications(), resources=12, nodes=384, direct=True)
    mckp = registry.policy("allocation", "mckp", {"measured": True}).allocate(view)
    assert mckp == {"BT-C": 0, "BT-D": 1, "IOR-MPI": 8, "POSIX-L": 2, "MAD": 0, "S3D": 0}
    options = {"measured": True, "rule": "ceil"}
    static = registry.policy("allocation", "static", options).allocate(view)
    size = registry.policy("allocation", "size", {"measured": True}).allocate(view)
    assert static == {"BT-C": 1, "BT-D": 2, "IOR-MPI": 1, "POSIX-L": 2, "MAD": 1, "S3D": 2}
    assert size == static


def test_a_part_that_rounds_to_zero_is_direct_access_where_asked_for() -> None:
    """Fig. 5.9 of the thesis: MCKP is 4.1 times PROCESS, which has MAD (64 of 1856 processes) at 0.

    12 x 64 / 1856 = 0.41. At least one each, or no direct access, gives 1.
    """
    options = {"direct": True}
    process = registry.policy("allocation", "process", options)
    view = snapshot(applications(), resources=12, nodes=384, direct=True)
    given_ = process.allocate(view)
    assert given_ == {"BT-C": 1, "BT-D": 2, "IOR-MPI": 1, "POSIX-L": 2, "MAD": 0, "S3D": 2}
    curves = {name: job.curve for name, job in view.jobs.items() if job.curve is not None}
    reached = sum(curves[name].bandwidth(n) for name, n in given_.items())
    assert 6792.0 / reached == pytest.approx(4.1, abs=0.005)
    without = snapshot(applications(), resources=12, nodes=384)
    assert process.allocate(without)["MAD"] == 1
    assert registry.policy("allocation", "process").allocate(view)["MAD"] == 1


@given(
    classes=st.lists(
        st.lists(
            st.tuples(st.integers(0, 4), st.integers(0, 6).map(float)), min_size=1, max_size=4
        ),
        min_size=1,
        max_size=5,
    ),
    capacity=st.integers(0, 9),
)
@examples(300)
def test_the_knapsack_is_exact(classes: list[list[tuple[int, float]]], capacity: int) -> None:
    """Against all combinations: highest value, then lowest weight."""
    chosen = knapsack.solve(classes, capacity)
    totals = [
        (sum(v for _, v in pick), -sum(w for w, _ in pick))
        for pick in itertools.product(*classes)
        if sum(w for w, _ in pick) <= capacity
    ]
    if chosen is None:
        assert not totals
        return
    pick = [items[k] for items, k in zip(classes, chosen, strict=True)]
    assert (sum(v for _, v in pick), -sum(w for w, _ in pick)) == max(totals)


@given(
    classes=st.lists(
        st.lists(
            st.tuples(st.integers(0, 4), st.integers(0, 6).map(float)), min_size=1, max_size=4
        ),
        min_size=1,
        max_size=5,
    ),
    capacity=st.integers(0, 9),
    data=st.data(),
)
@examples(200)
def test_one_program_answers_for_every_capacity(
    classes: list[list[tuple[int, float]]], capacity: int, data: st.DataObject
) -> None:
    """Each set of classes at each capacity: the value of what `solve` chooses there."""
    member = st.integers(0, len(classes) - 1)
    sets = data.draw(st.lists(st.tuples(member, member, member), min_size=1, max_size=4))
    best = knapsack.totals(classes, sets, capacity)
    assert best.shape == (len(sets), capacity + 1)
    for row, members in zip(best, sets, strict=True):
        of = [classes[c] for c in members]
        for limit, total in enumerate(row):
            chosen = knapsack.solve(of, limit)
            value = (
                -np.inf
                if chosen is None
                else sum(items[k][1] for items, k in zip(of, chosen, strict=True))
            )
            assert total == value


def test_a_set_may_only_name_classes_that_are_there() -> None:
    """The native code would read beyond its arrays."""
    for wrong in ([[0, 1]], [[-1, 0]]):
        with pytest.raises(ValueError, match="no class"):
            knapsack.totals([[(0, 1.0)]], wrong, 3)


curves = st.lists(st.floats(1.0, 100.0), min_size=4, max_size=4).map(
    lambda b: Curve.of(dict(zip((1, 2, 4, 8), b, strict=True)))
)
some_jobs = st.lists(
    st.tuples(curves, st.integers(1, 40), st.floats(1.0, 100.0), st.floats(1.0, 5000.0)),
    min_size=1,
    max_size=12,
).map(
    lambda rows: [
        Job(id=f"j{k}", serial=k, nodes=q, curve=curve, compute=compute, volume=volume)
        for k, (curve, q, compute, volume) in enumerate(rows)
    ]
)


def load(view: Snapshot, counts: Mapping[str, int]) -> float:
    options = {name: NSys().options(job, view.site) for name, job in view.jobs.items()}
    stress = (o.stress[o.index(counts[name])] for name, o in options.items())
    return float(sum(stress)) / view.site.resources


@given(jobs=some_jobs)
@examples(200)
def test_n_sys_is_at_most_n_perf(jobs: list[Job]) -> None:
    """Lemma 1 of paper io-resources."""
    view = snapshot(jobs, resources=20, nodes=480)
    for job in jobs:
        options = NSys().options(job, view.site)
        assert options.n_sys <= options.n_perf


@given(jobs=some_jobs, strict=st.booleans())
@examples(200)
def test_t_cpu_is_best_bandwidth_while_that_does_not_saturate(
    jobs: list[Job], strict: bool
) -> None:
    view = snapshot(jobs, resources=20, nodes=480)
    best = registry.policy("allocation", "best-bandwidth").allocate(view)
    given_ = TCpu(strict=strict).allocate(view)
    if load(view, best) < 1:
        assert given_ == best
    if load(view, NSys().allocate(view)) <= 1:
        assert load(view, given_) <= 1 + 1e-9


@pytest.mark.parametrize("strict", [False, True])
def test_on_the_measured_curves(strict: bool) -> None:
    """Lemma 1, and t-cpu = best-bandwidth while I/O-load(pi_perf) < 1, on the generator's sets."""
    unsaturated = 0
    for seed in range(30):
        view = Snapshot.of(io_resources(0.4, seed=seed), SITE)
        best = registry.policy("allocation", "best-bandwidth").allocate(view)
        least = NSys().allocate(view)
        assert all(least[name] <= best[name] for name in view.jobs)
        given_ = TCpu(strict=strict).allocate(view)
        if load(view, best) < 1:
            unsaturated += 1
            assert given_ == best
        else:
            assert given_ != best
    assert 5 < unsaturated < 30


def test_t_cpu_as_printed_takes_less_than_it_had_on_a_curve_that_dips() -> None:
    """Trap: over a dip from 10 to 5, the printed comparison calls 6 a gain.

    The stress of the others leaves room for a count of 3 (1.875) but not of 4 (1.951), the best.
    """
    dip = Curve.of({1: 10.0, 2: 5.0, 3: 6.0, 4: 10.5})
    one = Curve.of({1: 1.0})
    jobs = [
        Job(id="dips", serial=0, curve=dip, compute=10.0, volume=100.0),
        Job(id="heavy", serial=1, curve=one, compute=0.5, volume=100.0),
        Job(id="heavier", serial=2, curve=one, compute=0.5, volume=100.0),
        Job(id="light", serial=3, curve=one, compute=90.0, volume=10.0),
    ]
    view = snapshot(jobs, resources=4, nodes=4)
    assert TCpu().allocate(view)["dips"] == 3
    assert TCpu(strict=True).allocate(view)["dips"] == 1


def algorithm_1(view: Snapshot, *, strict: bool) -> dict[str, int]:
    """Algorithm 1 line by line: in each round every job looks for its next count."""
    options = {name: TCpu().options(job, view.site) for name, job in view.jobs.items()}
    at, resources = {name: o.index(o.n_sys) for name, o in options.items()}, view.site.resources
    while True:
        load = math.fsum(o.stress[at[name]] for name, o in options.items()) / resources
        steps, gains = dict(at), dict.fromkeys(at, -1.0)
        for name, o in options.items():
            now = at[name]
            for i in range(now + 1, o.index(o.n_perf) + 1):
                if load + (o.stress[i] - o.stress[now]) / resources <= 1:
                    gains[name] = o.cpu[i] - o.cpu[now if strict else steps[name]]
                    steps[name] = i
                    if gains[name] >= 0:
                        break
        best = max(gains, key=lambda name: gains[name], default=None)
        if best is None or gains[best] < 0:
            return {name: int(options[name].counts[i]) for name, i in at.items()}
        at[best] = steps[best]


@given(jobs=some_jobs, strict=st.booleans(), resources=st.integers(1, 20))
@examples(300)
def test_t_cpu_is_algorithm_1(jobs: list[Job], strict: bool, resources: int) -> None:
    view = snapshot(jobs, resources=resources, nodes=480)
    assert TCpu(strict=strict).allocate(view) == algorithm_1(view, strict=strict)


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("theta", [0.3, 0.7, 1.0])
def test_t_cpu_is_algorithm_1_on_the_measured_curves(theta: float, strict: bool) -> None:
    for seed in range(8):
        view = Snapshot.of(io_resources(theta, seed=seed), SITE)
        assert TCpu(strict=strict).allocate(view) == algorithm_1(view, strict=strict)


@pytest.mark.parametrize("strict", [False, True])
def test_a_job_of_t_cpu_looks_again_only_when_its_answer_changes(strict: bool) -> None:
    """Where every job looks in every round, as printed, 400 jobs look some 200,000 times."""
    site = replace(SITE, resources=200, nodes=4800)
    jobs = io_resources(0.7, seed=3, jobs=400, site=site)
    candidates = [
        Candidate(TCpu().options(job, site), resources=site.resources, strict=strict)
        for job in jobs
    ]
    indices = Rounds(candidates, site.resources).run()
    counts = [TCpu().options(job, site).counts[i] for job, i in zip(jobs, indices, strict=True)]
    assert counts == list(TCpu(strict=strict).allocate(Snapshot.of(jobs, site)).values())
    assert sum(candidate.looks for candidate in candidates) < 10 * len(jobs)


def test_static_as_both_papers_define_it() -> None:
    jobs = [Job(id="a", serial=0, nodes=26), Job(id="b", serial=1, nodes=1)]
    view = snapshot(jobs, resources=20, nodes=100)
    assert Static(rule="nearest").allocate(view) == {"a": 5, "b": 1}
    assert Static(rule="ceil").allocate(view) == {"a": 6, "b": 1}


def test_mckp_options() -> None:
    curve = Curve.of({1: 10.0, 2: 25.0, 3: 40.0, 4: 41.0})
    jobs = [Job(id=name, serial=k, nodes=4, curve=curve) for k, name in enumerate("abc")]
    unknown = Job(id="new", serial=9, nodes=4)
    assert Mckp().allocate(snapshot(jobs[:1], resources=3)) == {"a": 3}
    assert Mckp(divisible=True).allocate(snapshot(jobs[:1], resources=3)) == {"a": 2}
    assert Mckp(default=2).allocate(snapshot([*jobs[:1], unknown], resources=4)) == {
        "a": 2,
        "new": 2,
    }
    with pytest.raises(InputError, match="3 jobs need at least 3 resources and the site has 2"):
        Mckp().allocate(snapshot(jobs, resources=2))
    shared = Mckp(shared=True).allocate(snapshot(jobs, resources=2))
    assert sorted(shared.values()) == [1, 1, 1]


@pytest.mark.parametrize("name", sorted(registry.POLICIES["allocation"]))
def test_every_allocator_gives_every_job_a_count_that_it_may_have(name: str) -> None:
    jobs = [
        Job(
            id=f"j{k}",
            serial=k,
            nodes=8,
            processes=64,
            curve=Curve.of({0: 30.0, 1: 10.0 + k, 2: 25.0, 4: 41.0}),
            compute=100.0,
            volume=1000.0,
        )
        for k in range(5)
    ]
    view = snapshot(jobs, resources=16, nodes=64, direct=True)
    policy = registry.policy("allocation", name)
    counts = policy.allocate(view)
    assert set(counts) == set(view.jobs)
    for job, count in counts.items():
        curve = view.jobs[job].curve
        assert curve is not None
        assert count in curve.choices(16)
    assert policy.allocate(view) == counts


@pytest.mark.parametrize(
    ("name", "needs"),
    [
        ("random", set()),
        ("static", {"nodes"}),
        ("best-bandwidth", {"best-count"}),
        ("n-sys", {"compute", "curve", "volume"}),
        ("t-cpu", {"compute", "curve", "nodes", "volume"}),
    ],
)
def test_inputs_as_in_table_ii(name: str, needs: set[str]) -> None:
    assert set(registry.policy("allocation", name).needs) == needs


@pytest.mark.parametrize(
    ("name", "needs"),
    [
        ("random", set()),
        ("greedy-non-clairvoyant", set()),
        ("greedy-clairvoyant", {"compute", "curve", "volume"}),
    ],
)
def test_placers_inputs_as_in_table_ii(name: str, needs: set[str]) -> None:
    assert set(registry.policy("placement", name).needs) == needs


@pytest.mark.parametrize("name", sorted(registry.POLICIES["placement"]))
@given(jobs=some_jobs)
@examples(60)
def test_every_placer_gives_distinct_resources(name: str, jobs: list[Job]) -> None:
    view = snapshot(jobs, resources=20, nodes=480)
    # exclusive places only what can be had exclusively.
    allocator = "mckp" if name == "exclusive" else "best-bandwidth"
    counts = registry.policy("allocation", allocator).allocate(view)
    options = {"budget": 5} if name == "search" else {}
    places = registry.policy("placement", name, options).place(view, counts)
    assert set(places) == set(counts)
    for job, where in places.items():
        assert len(set(where)) == len(where) == counts[job]
        assert all(0 <= r < 20 for r in where)


def test_round_robin_balances_numbers_and_the_clairvoyant_one_balances_load() -> None:
    rng = np.random.default_rng(1)
    jobs = [
        Job(
            id=f"j{k}",
            serial=k,
            curve=Curve.of({1: 1.0, 2: 2.0}),
            compute=100.0,
            volume=float(rng.uniform(1, 400)),
        )
        for k in range(40)
    ]
    view = snapshot(jobs, resources=8)
    counts = dict.fromkeys(view.jobs, 1)
    spread = {}
    for name in registry.POLICIES["placement"]:
        places = registry.policy("placement", name).place(view, counts)
        jobs_on, load_on = np.zeros(8), np.zeros(8)
        for job, where in places.items():
            volume = view.jobs[job].volume
            assert volume is not None
            jobs_on[list(where)] += 1
            load_on[list(where)] += volume / (100 + volume)
        spread[name] = (np.ptp(jobs_on), np.ptp(load_on))
    assert spread["greedy-non-clairvoyant"][0] == 0
    assert spread["greedy-clairvoyant"][1] < spread["greedy-non-clairvoyant"][1]
    assert spread["greedy-non-clairvoyant"][1] < spread["random"][1]
