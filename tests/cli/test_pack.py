"""penstock pack: packs, what fills them, and what cannot be packed."""

import json
from pathlib import Path
from typing import Any

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "queue.json"
SITE = ("--io-nodes", "2", "--nodes", "16")


def write(*jobs: dict[str, Any]) -> str:
    Path("jobs.json").write_text(json.dumps({"jobs": jobs}))
    return "jobs.json"


@pytest.fixture
def half_io(directory: Path) -> str:
    """Three jobs that are half I/O: two fill a pack of load one, the third needs another."""
    return write(
        {"id": "a", "nodes": 4, "compute": 50, "volume": 100, "curve": {"1": 2.0, "2": 4.0}},
        {"id": "b", "nodes": 4, "compute": "45 s", "volume": 90, "curve": {"0": 9.0, "1": 2.0}},
        {"id": "c", "nodes": 4, "compute": 20, "volume": 20},
    )


def test_packs_as_json(penstock: Any, half_io: str) -> None:
    answer = penstock("pack", half_io, "--nodes", "16", "--json").json
    assert [p["jobs"] for p in answer["packs"]] == [["a", "b"], ["c"]]
    first, second = answer["packs"]
    assert (first["io_node"], first["nodes"], first["start"], first["length"]) == (0, 8, 0, 100)
    assert first["io_load"] == pytest.approx(0.95)
    assert (second["start"], answer["makespan"]) == (100, 140)
    assert answer["alpha"] == pytest.approx(16 * 115 / (4 * (100 + 90 + 40)))
    assert (answer["policy"], answer["partition"], answer["barriers"]) == (
        "pack-partition",
        16,
        True,
    )


def test_packs_are_spread_over_io_nodes(penstock: Any, half_io: str) -> None:
    answer = penstock("pack", half_io, *SITE, "--json").json
    assert [(p["io_node"], p["start"]) for p in answer["packs"]] == [(0, 0), (1, 0)]
    assert answer["makespan"] == 100


def test_options_reach_the_packer(penstock: Any, half_io: str) -> None:
    def packs(*args: str) -> int:
        return len(penstock("pack", half_io, "--nodes", "16", "--json", *args).json["packs"])

    assert packs("--policy", "first-fit") == 1
    assert packs("--option", "sensitivity=infinite") == 1
    assert packs("--option", "sensitivity=0.6") == 3
    assert packs("--option", "sensitivity=alpha", "--option", "estimate=io-bound") == 1


def test_people_read_what_fills_a_pack(penstock: Any, half_io: str) -> None:
    out = penstock("pack", half_io, "--nodes", "16").out
    assert "2 packs behind 1 I/O nodes with 16 compute nodes each" in out
    assert "the I/O node is busy 95% of its length" in out
    assert "makespan without contention: 2.33 min" in out
    crowded = penstock("pack", half_io, "--nodes", "16", "--policy", "first-fit").out
    assert "its I/O takes 1.15 times its length: jobs will wait" in crowded
    free = penstock("pack", half_io, "--nodes", "16", "--policy", "dominant-share").out
    assert "packs only set the order" in free


def test_backfilled_jobs_are_told(penstock: Any) -> None:
    answer = penstock(
        "pack", str(EXAMPLE), "--io-nodes", "2", "--nodes", "192", "--policy", "backfill"
    )
    assert "render (after genome)" in answer.out


def test_a_workload_file_will_do(penstock: Any, jobs: str) -> None:
    answer = penstock("pack", jobs, "--nodes", "1", "--json").json
    assert [(p["jobs"], p["length"]) for p in answer["packs"]] == [(["a"], 22), (["b"], 13)]


def test_a_site_may_come_from_the_configuration(penstock: Any, half_io: str) -> None:
    answer = penstock(
        "pack", half_io, "--set", "site.nodes=32", "--set", "site.resources=2", "--json"
    )
    assert answer.json["partition"] == 16


def test_a_policy_of_ones_own(penstock: Any, half_io: str) -> None:
    Path("mine.py").write_text(
        "from penstock.policies.packing.first_fit import FirstFit\n"
        "class Mine(FirstFit):\n"
        "    def pack(self, jobs, site):\n"
        "        return super().pack([j for j in jobs if j.id != 'c'], site)\n"
    )
    result = penstock("pack", half_io, "--nodes", "16", "--policy", "./mine.py:Mine")
    assert result.status == 2
    assert "every job of the workload in exactly one pack" in result.err


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("--nodes", "2"), "job 'a' needs 4 nodes, but a partition has 2"),
        (("--nodes", "16", "--io-nodes", "5"), "job 'a' needs 4 nodes, but a partition has 3"),
        (("--nodes", "16", "--out", "jobs.json"), "would replace the jobs"),
        (("--nodes", "16", "--out", "packed.csv"), "ends in none of .json, .npz"),
        ((), "set site.nodes"),
        (("--nodes", "16", "--io-nodes", "0"), "give at least 1"),
        (("--nodes", "-1"), "site.nodes is -1"),
        (("--nodes", "16", "--policy", "pack-partitions"), "did you mean 'pack-partition'"),
        (("--nodes", "16", "--option", "sensitivty=1"), "did you mean 'sensitivity'"),
        (("--nodes", "16", "--option", "sensitivity"), "not of the form NAME=VALUE"),
        (("--nodes", "16", "--option", "sensitivity=0"), "sensitivity is 0"),
        (("--nodes", "16", "--policy", "first-fit", "--option", "sensitivity=1"), "option"),
    ],
)
def test_wrong_arguments(penstock: Any, half_io: str, args: tuple[str, ...], message: str) -> None:
    result = penstock("pack", half_io, *args)
    assert result.status == 2
    assert message in result.err
    assert result.err.count("\n") == 1


@pytest.mark.parametrize(
    ("job", "message"),
    [
        ({"compute": 1}, "job 'x' has no volume"),
        ({"volume": 1}, "job 'x' has no compute"),
        ({"volume": 1, "compute": 1, "curve": {"2": 5.0}}, "says nothing of 1 resources"),
        ({"volume": 1, "compute": 1, "curve": {"1": 0}}, "job 'x', curve"),
        ({"volume": 1, "compute": 1, "curve": {"1": -3.0}}, "job 'x', curve"),
        ({"volume": -1, "compute": 1}, "volume is -1"),
        ({"volume": 0, "compute": 0}, "takes 0 s alone"),
        ({"volume": 1, "compute": 1, "nodez": 3}, "did you mean 'nodes'"),
    ],
)
def test_jobs_that_cannot_be_packed(
    penstock: Any, directory: Path, job: dict[str, Any], message: str
) -> None:
    result = penstock("pack", write({"id": "x", **job}), "--nodes", "4")
    assert result.status == 2
    assert message in result.err
    assert "jobs.json" in result.err


def test_nodes_that_do_not_divide_are_left_over(penstock: Any, half_io: str) -> None:
    given = ("pack", half_io, "--nodes", "14", "--io-nodes", "3")
    answer = penstock(*given, "--json").json
    assert (answer["partition"], answer["left_over"], answer["left_out"]) == (4, 2, [])
    assert answer == penstock(*given[:3], "12", *given[4:], "--json").json | {"left_over": 2}
    assert "2 compute nodes are left over" in penstock(*given).out


def test_a_job_larger_than_a_partition_is_left_out(penstock: Any, directory: Path) -> None:
    small = {"nodes": 4, "compute": 50, "volume": 50}
    file = write({"id": "a", **small}, {"id": "wide", **small, "nodes": 9}, {"id": "b", **small})
    answer = penstock("pack", file, *SITE, "--json", "--out", "packed.json").json
    (out,) = answer["left_out"]
    assert (out["job"], out["nodes"]) == ("wide", 9)
    assert sorted(job for pack in answer["packs"] for job in pack["jobs"]) == ["a", "b"]
    written = json.loads(Path("packed.json").read_text())
    assert [job["id"] for job in written["jobs"]] == ["a", "b"]
    text = penstock("pack", file, *SITE).out
    assert "left out wide: it needs 9 nodes, a partition has 8 nodes" in text


def test_packed_jobs_are_a_workload_that_simulate_reads(penstock: Any, half_io: str) -> None:
    """a and b run together, c after both; alone they take 100, 90 and 40 s."""
    out = penstock("pack", half_io, "--nodes", "16", "--out", "packed.json").out
    assert "--set site.resources=1 --set site.nodes=16" in out
    jobs = json.loads(Path("packed.json").read_text())["jobs"]
    assert [(job["id"], job["pack"], job.get("after")) for job in jobs] == [
        ("a", "0", None),
        ("b", "0", None),
        ("c", "1", "0"),
    ]
    assert len(jobs[0]["phases"]) == 11
    assert sum(compute for compute, _ in jobs[0]["phases"]) == pytest.approx(50)
    given = ("simulate", "packed.json", "--policy", "exclusive-fcfs", "--set", "site.nodes=16")
    result = penstock(*given, "--jobs", "--json").json
    by_name = {job["job"]: job for job in result["per_job"]}
    c = by_name["c"]
    assert c["start"] == pytest.approx(max(by_name[name]["finish"] for name in "ab"))
    assert c["stretch"] == c["stretch_from_start"] == pytest.approx(1)
    assert c["stretch_from_release"] == pytest.approx(c["finish"] / 40)
    from_start = max(job["stretch_from_start"] for job in result["per_job"])
    assert result["max_stretch"] == result["max_stretch_from_start"] == pytest.approx(from_start)
    assert result["max_stretch_from_release"] == pytest.approx(c["finish"] / 40)
    assert (result["packs"], result["min_yield"]) == (2, 1 / result["max_stretch"])
    worst = max(by_name[name]["stretch_from_start"] for name in "ab")
    assert result["pack_stretch"] == pytest.approx((worst + 1) / 2)
    assert result["executing"] == pytest.approx(4 * 230 / (16 * result["makespan"]))
    assert result["executing"] + result["delayed"] + result["idle"] == pytest.approx(1)
    assert result["overrun"] == pytest.approx(result["makespan"] / 140)
    text = penstock(*given).out
    for name in ("max_stretch_from_start", "max_stretch_from_release", "pack_stretch", "overrun"):
        assert name in text
    assert "set site.nodes" not in text


def test_parts_of_node_time_without_the_number_of_nodes_say_why(
    penstock: Any, half_io: str
) -> None:
    penstock("pack", half_io, "--nodes", "16", "--out", "packed.json")
    result = penstock("simulate", "packed.json", "--json").json
    assert {result[name] for name in ("executing", "delayed", "idle")} == {None}
    [note] = result["notes"]
    assert note.endswith("set site.nodes")
    assert note in penstock("simulate", "packed.json").out


def test_a_queue_without_barriers_is_no_workload_file(penstock: Any, half_io: str) -> None:
    given = ("pack", half_io, *SITE, "--policy", "dominant-share", "--out", "packed.json")
    result = penstock(*given)
    assert result.status == 2
    assert "'penstock compare FILE --packing A,B' simulates it exactly" in result.err
    assert not Path("packed.json").exists()


def test_a_curve_with_nan(penstock: Any, directory: Path) -> None:
    Path("jobs.json").write_text('{"jobs": [{"id": "x", "curve": {"1": NaN}}]}')
    result = penstock("pack", "jobs.json", "--nodes", "4")
    assert result.status == 2
    assert "NaN" in result.err
