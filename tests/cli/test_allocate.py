"""penstock allocate and place: counts, places, and why."""

import json
from pathlib import Path
from typing import Any

import pytest

from penstock.data import g5k_applications
from penstock.sim.formats.decode import curve_points

SIX = ("BT-C", "BT-D", "IOR-MPI", "POSIX-L", "MAD", "S3D")
WORKLOAD = [{"id": name, "phases": [[1, 1]]} for name in SIX]


@pytest.fixture
def jobs(directory: Path) -> list[dict[str, Any]]:
    """Write the six applications of paper forwarding, 5.6.2, as jobs.json."""
    applications = g5k_applications()
    listed = [
        {
            "id": name,
            "nodes": applications[name].nodes,
            "processes": applications[name].processes,
            "curve": curve_points(applications[name].curve),
            "volume": applications[name].volume,
            "compute": "2 min",
        }
        for name in SIX
    ]
    write(listed)
    return listed


def write(jobs: Any) -> None:
    Path("jobs.json").write_text(json.dumps({"jobs": jobs}))


def test_table_5_3(penstock: Any, jobs: Any) -> None:
    result = penstock(
        "allocate", "jobs.json", "--io-nodes", "12", "--policy", "mckp", "--json"
    ).json
    assert result["allocation"] == {
        "BT-C": 0,
        "BT-D": 1,
        "IOR-MPI": 8,
        "POSIX-L": 2,
        "MAD": 0,
        "S3D": 0,
    }
    assert result["bandwidth"] == pytest.approx(
        195.8 + 597.2 + 5090 + 412.0 + 255.9 + 241.3, abs=0.3
    )
    for policy in ("static", "size"):
        given = ("--io-nodes", "12", "--nodes", "384", "--policy", policy, "--json")
        static = penstock("allocate", "jobs.json", *given).json
        assert list(static["allocation"].values()) == [1, 2, 1, 2, 1, 2]


def test_people_read_counts_bandwidths_and_why(penstock: Any, jobs: Any) -> None:
    out = penstock("allocate", "jobs.json", "--io-nodes", "12").out
    assert "mckp: 11 of 12 I/O nodes allocated" in out
    assert "50% of its best, 388.066 with 4 I/O nodes" in out
    assert "its best: direct I/O" in out


def test_more_io_nodes_than_exist_have_no_bandwidth(penstock: Any, jobs: Any) -> None:
    """size gives every job one I/O node at least; 5 for 6 jobs leave nobody its bandwidth."""
    given = ("allocate", "jobs.json", "--io-nodes", "5", "--nodes", "192")
    size = penstock(*given, "--policy", "size", "--json").json
    assert size["given"] == sum(size["allocation"].values()) > size["io_nodes"] == 5
    assert (size["exceeds"], size["bandwidth"]) == (True, None)
    assert f"{size['given']} I/O nodes are given, 5 exist" in size["reason"]
    assert {job["bandwidth"] for job in size["jobs"]} == {None}
    assert all(job["bandwidth_alone"] > 0 for job in size["jobs"])
    out = penstock(*given, "--policy", "size").out
    assert size["reason"] in out.replace("\n", " ")
    assert out.count("jobs share") == 1
    assert "total bandwidth" not in out
    fits = penstock(*given, "--policy", "mckp", "--json").json
    assert (fits["exceeds"], "reason" in fits) == (False, False)
    assert fits["bandwidth"] == pytest.approx(sum(job["bandwidth"] for job in fits["jobs"]))
    placed = ("place", "jobs.json", "--io-nodes", "5", "--nodes", "192", "--allocation", "size")
    assert penstock(*placed, "--json").json["exceeds"]
    assert "5 exist: jobs share" in penstock(*placed).out


def test_options_and_the_configuration_count(penstock: Any, jobs: Any) -> None:
    given = ("--io-nodes", "6", "--no-direct", "--set", "allocation.options.shared=true")
    out = penstock("allocate", "jobs.json", *given).out
    assert "jobs share" in out
    Path("penstock.toml").write_text('[allocation]\npolicy = "one"\n[site]\nresources = 6\n')
    result = penstock("allocate", "jobs.json", "--json").json
    assert result["policy"] == "one"
    assert set(result["allocation"].values()) == {1}


def test_a_workload_file_will_do(penstock: Any, jobs: Any) -> None:
    write([{"id": "a", "curve": {"1": 5, "2": 9}, "phases": [[1, 1]]}])
    result = penstock("allocate", "jobs.json", "--io-nodes", "2", "--json").json
    assert result["allocation"] == {"a": 2}


def test_places_balance_the_load(penstock: Any, jobs: Any) -> None:
    given = ("--io-nodes", "4", "--no-direct", "--allocation", "n-sys", "--json")
    result = penstock("place", "jobs.json", *given, "--policy", "greedy-clairvoyant").json
    assert {job: len(r) for job, r in result["placement"].items()} == result["allocation"]
    for node in result["io_nodes"]:
        assert all(node["io_node"] in result["placement"][job] for job in node["jobs"])
        assert node["load"] > 0


def test_direct_jobs_have_no_place(penstock: Any, jobs: Any) -> None:
    out = penstock("place", "jobs.json", "--io-nodes", "12").out
    assert "direct: BT-C, MAD, S3D" in out


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"curve": {"1": 0}}, "job 'BT-C', curve: a curve has the bandwidth 0 at 1"),
        ({"curve": {"1": -3}}, "bandwidth -3 at 1"),
        ({"curve": {}}, "needs at least one count"),
        ({"curve": {"-1": 3}}, "'-1' is not a number of resources"),
        ({"curve": {"16": 3}}, "curve at [16], none possible with 12"),
        ({"curve": [1, 2]}, "jobs[0], curve: expected an object"),
        ({"nodes": 0}, "jobs[0], nodes"),
        ({"volume": -1}, "job 'BT-C', volume is -1"),
        ({"compute": "soon"}, "job 'BT-C', compute: 'soon'"),
        ({"id": "MAD"}, "two jobs are called 'MAD'"),
        ({"curv": {}}, "unknown key 'curv'; did you mean 'curve'"),
    ],
)
def test_wrong_jobs(penstock: Any, jobs: Any, change: dict[str, Any], message: str) -> None:
    write([jobs[0] | change, *jobs[1:]])
    result = penstock("allocate", "jobs.json", "--io-nodes", "12")
    assert result.status == 2
    assert message in result.err


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("allocate", "jobs.json", "--io-nodes", "0"), "site.resources is 0"),
        (("allocate", "jobs.json", "--io-nodes", "many"), "--io-nodes"),
        (("allocate", "jobs.json", "--io-nodes", "3", "--no-direct"), "need at least 6 resources"),
        (("allocate", "jobs.json", "--policy", "mkcp"), "did you mean 'mckp'"),
        (("allocate", "jobs.json", "--policy", "static"), "set site.nodes"),
        (("allocate", "jobs.json", "--policy", "zero", "--no-direct"), "zero needs direct access"),
        (("allocate", "none.json"), "no such file"),
        (
            ("place", "jobs.json", "--io-nodes", "2", "--allocation", "oracle"),
            "'BT-C' 4 resources; the site has 2",
        ),
        (("place", "jobs.json", "--policy", "greedy"), "did you mean 'greedy-"),
    ],
)
def test_wrong_questions(penstock: Any, jobs: Any, given: tuple[str, ...], message: str) -> None:
    result = penstock(*given)
    assert result.status == 2
    assert message in result.err
    assert result.err.count("\n") == 1


OWN = """
class Allocator:
    needs, sticky, answer = frozenset(), False, None
    def allocate(self, view): return eval(self.answer)
class Placer:
    needs, answer = frozenset(), None
    def place(self, view, counts, staying={}): return eval(self.answer)
"""
COUNTS = {
    "Missing": ("{}", "left out job"),
    "Ghost": ("dict.fromkeys([*view.jobs, 'ghost'], 1)", "'ghost', which is not one"),
    "Text": ("dict.fromkeys(view.jobs, '2')", "'2' resources"),
    "Half": ("dict.fromkeys(view.jobs, 1.7)", "1.7 resources"),
    "Negative": ("dict.fromkeys(view.jobs, -1)", "-1 resources"),
    "Many": ("dict.fromkeys(view.jobs, 99)", "99 resources; the site has 6"),
    "Nothing": ("None", "must return counts by job"),
}
PLACES = {
    "Missing": ("{}", "left out job"),
    "Ghost": ("{'ghost': (0,), **dict.fromkeys(counts, (0,))}", "'ghost', which is not one"),
    "Beyond": ("{j: tuple(range(6, 6 + n)) for j, n in counts.items()}", "distinct ones of 0 to 5"),
    "Negative": ("{j: (-1,) * n for j, n in counts.items()}", "distinct ones of 0 to 5"),
    "Twice": ("{j: (0,) * 2 for j, n in counts.items()}", "distinct ones of 0 to 5"),
    "Text": ("{j: 'ab' for j in counts}", "distinct ones of 0 to 5"),
    "Nothing": ("None", "must return resources by job"),
}


@pytest.mark.parametrize("name", COUNTS)
def test_an_allocator_that_makes_no_sense(penstock: Any, jobs: Any, name: str) -> None:
    answer, message = COUNTS[name]
    Path("own.py").write_text(f"{OWN}class {name}(Allocator): answer = {answer!r}\n")
    policy = f"./own.py:{name}"
    site = ("--set", "site.resources=6")
    Path("w.json").write_text(json.dumps({"jobs": WORKLOAD}))
    for verb in (
        ("allocate", "jobs.json", "--no-direct", "--policy", policy, *site),
        ("simulate", "w.json", "--allocation", policy, *site),
    ):
        result = penstock(*verb)
        assert result.status == 2, verb
        assert message in result.err
        assert result.err.count("\n") == 1


@pytest.mark.parametrize("name", PLACES)
def test_a_placer_that_makes_no_sense(penstock: Any, jobs: Any, name: str) -> None:
    answer, message = PLACES[name]
    Path("own.py").write_text(f"{OWN}class {name}(Placer): answer = {answer!r}\n")
    Path("w.json").write_text(json.dumps({"jobs": WORKLOAD}))
    policy = f"./own.py:{name}"
    one = ("--allocation", "one", "--set", "site.resources=6")
    for verb in (
        ("place", "jobs.json", "--no-direct", "--policy", policy, *one),
        ("simulate", "w.json", "--placement", policy, *one),
    ):
        result = penstock(*verb)
        assert result.status == 2, verb
        assert message in result.err
        assert result.err.count("\n") == 1


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("--option", "default=-5"), "default is -5"),
        (("--policy", "random", "--option", "seed=-1"), "seed is -1"),
        (("--policy", "search", "--option", "seed=-1"), "seed is -1"),
        (("--policy", "search", "--option", "judge=os:system"), "is not a judge"),
        (("--policy", "search", "--option", "judge=builtins:dict"), "is not a judge"),
        (("--policy", "search", "--option", "judge=nowhere:X"), "cannot be loaded"),
        (("--option", "shared"), "not of the form NAME=VALUE"),
        (("--policy", "mcpk"), "--policy: unknown allocation policy 'mcpk'"),
    ],
)
def test_wrong_options(penstock: Any, jobs: Any, given: tuple[str, ...], message: str) -> None:
    result = penstock("allocate", "jobs.json", "--io-nodes", "12", *given)
    assert (result.status, result.out) == (2, "")
    assert message in result.err


def test_a_job_without_a_curve_gets_the_default(penstock: Any, jobs: Any) -> None:
    write([{"id": "new"}, *jobs])
    given = ("allocate", "jobs.json", "--io-nodes", "12", "--option")
    assert penstock(*given, "default=2", "--json").json["allocation"]["new"] == 2
    assert "would go direct" in penstock(*given, "default=0", "--no-direct").err


def test_mckp_brings_its_own_placement(penstock: Any, jobs: Any) -> None:
    """Those it gives nodes of their own are alone on them; the others share the last."""
    given = ("--io-nodes", "4", "--no-direct", "--set", "allocation.options.shared=true", "--json")
    result = penstock("place", "jobs.json", *given).json
    assert result["policy"] == "exclusive"
    assert [len(node["jobs"]) for node in result["io_nodes"][:-1]] == [1, 1, 1]


def test_n_sys_does_not_flee_to_direct_access(penstock: Any, jobs: Any) -> None:
    for policy in ("n-sys", "t-cpu"):
        result = penstock("allocate", "jobs.json", "--io-nodes", "12", "--policy", policy, "--json")
        assert min(result.json["allocation"].values()) >= 1


def test_a_curve_of_a_billion_counts_takes_no_time(penstock: Any, jobs: Any) -> None:
    write([{"id": "a", "curve": {"1": 1, "1000000000": 2}}])
    given = ("--io-nodes", "3", "--option", "measured=false", "--json")
    assert penstock("allocate", "jobs.json", *given).json["allocation"] == {"a": 3}


def test_a_job_that_does_nothing_warns_nobody(penstock: Any, jobs: Any) -> None:
    write([*jobs, {"id": "idle", "curve": {"1": 1}, "volume": 0, "compute": 0}])
    result = penstock("allocate", "jobs.json", "--io-nodes", "12", "--policy", "t-cpu")
    assert (result.status, result.err) == (0, "")


def test_nan_is_refused(penstock: Any, jobs: Any) -> None:
    Path("jobs.json").write_text('{"jobs": [{"id": "a", "curve": {"1": NaN}}]}')
    result = penstock("allocate", "jobs.json", "--io-nodes", "12")
    assert (result.status, "line 1 has NaN" in result.err) == (2, True)
