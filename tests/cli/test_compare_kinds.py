"""penstock compare: allocators, placers and packers, by the metrics of their papers."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from penstock import registry
from penstock.model import Site, Snapshot
from penstock.policies.placement.greedy_non_clairvoyant import GreedyNonClairvoyant
from penstock.sim import formats
from penstock.sim.evaluate import packs
from penstock.sim.evaluate.placements import JobSet

RESOURCES = ("--set", "site.resources=8", "--set", "site.nodes=480")
SITE = Site(nodes=480, resources=8)


@pytest.fixture
def curves(penstock: Any) -> str:
    penstock("generate", "io-resources", "--jobs", "10", "--theta", "0.3", "--out", "curves.json")
    return "curves.json"


@pytest.mark.parametrize("name", ["one", "n-sys", "size"])
def test_allocators_have_the_paper_s_metrics(penstock: Any, curves: str, name: str) -> None:
    given = ("compare", curves, "--allocation", "one,n-sys,size", *RESOURCES, "--json")
    result = penstock(*given).json
    assert (result["kind"], result["base"]) == ("allocation", "one")
    jobs = list(formats.read(curves).jobs())
    counts = registry.policy("allocation", name).allocate(Snapshot.of(jobs, SITE))
    places = GreedyNonClairvoyant().place(Snapshot.of(jobs, SITE), counts)
    job_set = JobSet(jobs, SITE)
    outcome = job_set.simulate(job_set.places(places), occupancy=True)
    expected = {
        "mean_slowdown": outcome.slowdown.mean(),
        "max_slowdown": outcome.slowdown.max(),
        "rho_io": outcome.slowdown_io.mean(),
        "rho_con": (outcome.slowdown - outcome.slowdown_io).mean(),
        "spread": outcome.spread,
        "idle_time": outcome.idle_time,
        "bandwidth": outcome.bandwidth,
    }
    got = result["policies"][name]
    assert {metric: got[metric] for metric in expected} == pytest.approx(expected)
    base = result["policies"]["one"]["mean_slowdown"]
    assert got["gain"] == pytest.approx(1 - got["mean_slowdown"] / base)
    alone = penstock("simulate", curves, "--allocation", name, *RESOURCES, "--json").json
    assert {m: alone["io_resources"][m] for m in expected} == pytest.approx(expected)


def test_allocators_that_give_more_than_exists_say_so(penstock: Any, curves: str) -> None:
    """size gives resources by compute nodes, without regard to what exists."""
    site = ("--set", "site.resources=10", "--set", "site.nodes=480", "--json")
    result = penstock("compare", curves, "--allocation", "mckp,size", *site).json
    [file] = result["files"]
    for name, exceeds in (("mckp", False), ("size", True)):
        alone = penstock("simulate", curves, "--allocation", name, *site).json["io_resources"]
        for figures in (alone, file["policies"][name]):
            assert (figures["given"] > 10) is figures["exceeds"] is exceeds
        assert result["policies"][name]["exceeds"] is exceeds


def test_what_allocators_need_and_whether_they_run_live(penstock: Any, curves: str) -> None:
    given = ("compare", curves, "--allocation", "one,best-bandwidth,n-sys", *RESOURCES)
    policies = penstock(*given, "--json").json["policies"]
    assert {name: (p["needs"], p["live"]) for name, p in policies.items()} == {
        "one": ([], True),
        "best-bandwidth": (["best-count"], True),
        "n-sys": (["compute", "curve", "volume"], True),
    }
    out = penstock(*given, "--seeds", "4").out
    assert "4 draws of the generator io-resources" in out
    assert "yes, learnt" in out
    assert "over one" in out.splitlines()[-1] or "Keep one" in out.splitlines()[-1]


def test_placers_of_one_allocator_and_all_pairs(penstock: Any, curves: str) -> None:
    placers = ("--placement", "greedy-clairvoyant,random")
    one = ("compare", curves, "--allocation", "n-sys", *placers, *RESOURCES, "--json")
    assert list(penstock(*one).json["policies"]) == ["greedy-clairvoyant", "random"]
    pairs = ("compare", curves, "--allocation", "one,n-sys", *placers, *RESOURCES, "--json")
    result = penstock(*pairs).json["policies"]
    assert sorted(result) == [
        "n-sys + greedy-clairvoyant",
        "n-sys + random",
        "one + greedy-clairvoyant",
        "one + random",
    ]
    single = penstock(*one).json["policies"]["random"]
    assert result["n-sys + random"]["mean_slowdown"] == single["mean_slowdown"]


def test_a_single_allocator_still_divides_what_sharing_policies_share(
    penstock: Any, curves: str
) -> None:
    given = ("--policies", "fair-share,set-10", "--allocation", "n-sys", *RESOURCES, "--json")
    result = penstock("compare", curves, *given).json
    assert result["kind"] == "sharing"
    alone = ("simulate", curves, "--policy", "set-10", "--allocation", "n-sys", *RESOURCES)
    assert result["policies"]["set-10"]["makespan"] == penstock(*alone, "--json").json["makespan"]


@pytest.mark.parametrize("name", ["first-fit", "pack-partition", "dominant-share"])
def test_packers_have_the_paper_s_metrics(penstock: Any, name: str) -> None:
    penstock("generate", "packs", "--jobs", "25", "--out", "packs.npz")
    names = "first-fit,pack-partition,dominant-share"
    given = ("compare", "packs.npz", "--packing", names, "--set", "site.nodes=2048", "--json")
    result = penstock(*given).json
    assert (result["kind"], result["base"]) == ("packing", "first-fit")
    packer = registry.policy("packing", name)
    fifo = registry.sharing("exclusive-fcfs")
    run = packs.run(formats.read("packs.npz"), packer, fifo, Site(nodes=2048))
    expected = asdict(packs.measure(run))
    got = result["files"][0]["policies"][name]
    assert {metric: got[metric] for metric in expected} == pytest.approx(expected)
    base = result["policies"]["first-fit"]["makespan"]
    assert got["gain"] == pytest.approx(1 - expected["makespan"] / base)
    out = penstock(*given[:-1]).out
    for heading in ("exec", "delay", "idle", "overrun"):
        assert heading in out


def test_results_of_other_kinds_are_kept_too(penstock: Any, curves: str, directory: Path) -> None:
    given = ("compare", curves, "--allocation", "one,n-sys", *RESOURCES, "--json", "--out", "kept")
    first = penstock(*given).json
    assert penstock(*given).json == first
    assert len((directory / "kept" / "cells.jsonl").read_text().splitlines()) == 1 + 2


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("--allocation", "one,one"), "--allocation 'one,one' names a policy twice"),
        (("--allocation", "one,"), "has an empty name"),
        (("--allocation", "one,n-sis"), "did you mean 'n-sys'"),
        (("--placement", "random,greedy-clairvoyant"), "give the name of an allocation policy"),
        (("--allocation", "one,size", "--policies", "set-10"), "leave out --policies"),
        (("--allocation", "one,size", "--packing", "first-fit"), "--packing is compared alone"),
        (("--packing", "first-fits"), "did you mean 'first-fit'"),
        (("--packing", "first-fit"), "set site.nodes"),
    ],
)
def test_wrong_lists(penstock: Any, curves: str, given: tuple[str, ...], message: str) -> None:
    result = penstock("compare", curves, *given)
    assert result.status == 2
    assert message in result.err


def test_jobs_without_curves_cannot_be_allocated_resources(penstock: Any, jobs: str) -> None:
    result = penstock("compare", jobs, "--allocation", "one,n-sys")
    assert result.status == 2
    assert "job 'a' has no curve" in result.err


def test_a_better_allocator_whose_needs_are_learnt_is_taken(penstock: Any, curves: str) -> None:
    given = ("compare", curves, "--seeds", "6", "--allocation", "one,t-cpu", *RESOURCES)
    result = penstock(*given, "--json").json
    assert result["policies"]["t-cpu"]["low"] > 0
    assert result["choice"]["policy"] == "t-cpu"


def test_allocators_cannot_differ_on_one_resource(penstock: Any, curves: str) -> None:
    reason = penstock("compare", curves, "--allocation", "one,n-sys", "--json").json["choice"]
    assert "one and n-sys do not differ in any metric" in reason["reason"]
    assert "set site.resources" in reason["reason"]


def test_what_isolated_is_with_an_allocation_is_noted(penstock: Any, curves: str) -> None:
    """Metrics leave their range where an allocation is faster than the file's resources."""
    for verb in (("simulate", curves), ("compare", curves, "--policies", "fair-share,set-10")):
        given = (*verb, "--allocation", "t-cpu", *RESOURCES)
        (note,) = penstock(*given, "--json").json["notes"]
        assert "isolated is with the resources of the file, not with those that t-cpu gives" in note
        assert note in penstock(*given).out
        assert not penstock(*verb, "--json").json.get("notes")


def test_packings_are_compared_under_one_sharing_policy(penstock: Any) -> None:
    penstock("generate", "packs", "--jobs", "8", "--out", "packs.npz")
    sharing = ("--policies", "fair-share,set-10")
    error = penstock("compare", "packs.npz", "--packing", "first-fit,backfill", *sharing).err
    assert "packings are compared under one sharing policy" in error


def test_needs_of_an_allocator_in_a_file_are_not_checked(
    penstock: Any, curves: str, directory: Path
) -> None:
    (directory / "mine.py").write_text(
        "class Mine:\n"
        "    needs = frozenset()\n"
        "    def allocate(self, view):\n"
        "        return {job: 1 for job in view.jobs}\n"
    )
    given = ("compare", curves, "--allocation", "one,./mine.py:Mine", *RESOURCES, "--json")
    (note,) = penstock(*given).json["notes"]
    assert note.endswith("not checked: penstock policies check ./mine.py:Mine --kind allocation")
