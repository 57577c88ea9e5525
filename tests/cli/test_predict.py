"""penstock predict, advise and machines: what is said, that a guess is called one, bad input."""

import json
from pathlib import Path
from typing import Any

import pytest

from penstock.learn.write_models import machine as machines
from penstock.learn.write_models.prediction import Physical
from penstock.model.write import Write

WRITE = ("--nodes", "256", "--cores", "16", "--burst", "100 MB")
TITAN = ("--machine", "titan", *WRITE)


def test_predict_says_what_the_model_says(penstock: Any) -> None:
    answer = penstock("predict", *TITAN, "--shared", "--stripe-count", "64", "--json").json
    write = Write(nodes=256, cores=16, burst=1e8, shared=True, stripe_count=64)
    model = Physical(machine=machines.load("titan"))
    assert answer["seconds"] == model.predict(write).seconds
    assert answer["bandwidth"] == pytest.approx(write.bytes / answer["seconds"])
    assert answer["dominant"] == next(iter(answer["stages"])) == "I/O router"
    assert answer["write"]["stripe_count"] == 64


def test_a_guess_is_called_one(penstock: Any) -> None:
    answer = penstock("predict", *TITAN, "--json").json
    assert answer["coverage"] is None, "nobody knows how sure it is"
    assert answer["low"] < answer["seconds"] < answer["high"]
    (why,) = answer["outside"]
    assert "not from measurements" in why
    out = penstock("predict", *TITAN).out
    assert "a guess" in out
    assert "not from measurements" in out


def test_where_a_job_is_matters(penstock: Any) -> None:
    apart = [str(109 * k) for k in range(8)]
    near = penstock("predict", "--machine", "titan", "--nodes", "8", "--cores", "16", "--burst",
                    "1 GB", "--json").json  # fmt: skip
    far = penstock("predict", "--machine", "titan", "--nodes", "8", "--cores", "16", "--burst",
                   "1 GB", "--placement", " ".join(apart), "--json").json  # fmt: skip
    assert far["seconds"] < near["seconds"], "eight routers rather than one"


def test_advise_has_all_that_is_to_be_set(penstock: Any, directory: Path) -> None:
    result = penstock("advise", "--machine", "titan", "--nodes", "128", "--cores", "16", "--burst",
                      "1 MB", "--shared", "--stripe-count", "1", "--path", "/scratch/run",
                      "--hints", "hints", "--interval-budget", "10%", "--compute-time", "6 h",
                      "--mtbf", "2 d", "--json")  # fmt: skip
    answer = result.json
    assert answer["worth_it"]
    assert answer["gain"]["low"] < answer["gain"]["expected"] < answer["gain"]["high"]
    assert answer["commands"][0].startswith("lfs setstripe --stripe-size ")
    assert answer["commands"][0].endswith(" /scratch/run")
    written = (directory / "hints").read_text().splitlines()
    assert dict(line.split(" ", 1) for line in written) == answer["hints"]
    checkpoints = answer["checkpoints"]
    total = answer["advised"]["total_seconds"]
    assert checkpoints["budget"]["seconds"] == pytest.approx(9 * total)
    assert checkpoints["budget_slow"]["seconds"] > checkpoints["budget"]["seconds"]
    assert checkpoints["mtbf"]["checkpoints"] >= 1


def test_hints_that_nobody_wrote_are_not_named(penstock: Any, directory: Path) -> None:
    answer = penstock("advise", *TITAN, "--shared", "--json").json
    assert answer["hints"]
    assert not any("ROMIO_HINTS" in command for command in answer["commands"])
    assert "write these with --hints FILE" in penstock("advise", *TITAN, "--shared").out
    answer = penstock("advise", *TITAN, "--shared", "--hints", "hints", "--json").json
    assert f"export ROMIO_HINTS={directory / 'hints'}" in answer["commands"]


def test_no_hints_are_no_file(penstock: Any, directory: Path) -> None:
    out = penstock("advise", *TITAN, "--gather", "1 MB/s", "--no-aggregators", "--hints", "h").out
    assert "no change" in out
    assert "h was not written" in out
    assert not (directory / "h").exists()


def test_what_is_advised_is_what_predict_says_of_it(penstock: Any, directory: Path) -> None:
    """Of the setting as it is typed: the first hosts, or those that were named."""
    (directory / "hosts").write_text("".join(f"n{k:05}\n" for k in range(256)))
    for more in ((), ("--hosts", "hosts")):
        answer = penstock("advise", *TITAN, "--shared", *more, "--json").json
        write = answer["advised"]["write"]
        where = " ".join(map(str, write["placement"] or range(256)))
        again = penstock(
            "predict", "--machine", "titan", "--shared", "--nodes", str(write["nodes"]),
            "--cores", str(write["cores"]), "--burst", repr(write["burst"]), "--placement", where,
            "--stripe-count", str(write["stripe_count"]),
            "--stripe-size", str(int(write["stripe_size"])), "--json",
        ).json  # fmt: skip
        assert again["seconds"] + answer["advised"]["moving_seconds"] == pytest.approx(
            answer["then"]["seconds"]
        )
    assert answer["hints"]["cb_config_list"].startswith("n00000:")
    assert "selected by host name" in penstock("advise", *TITAN, "--shared", "--hosts", "hosts").out


def test_where_nodes_are_taken_to_be_is_noted(penstock: Any) -> None:
    note = "assumes the nodes 0, 1, 2, ..."
    assert note in penstock("predict", *TITAN).out
    assert any(note in one for one in penstock("advise", *TITAN, "--json").json["notes"])
    assert penstock("predict", *TITAN, "--placement", "10-265", "--json").json["notes"] == []


def test_a_measurement_far_from_the_model_is_no_certainty(penstock: Any) -> None:
    args = ("advise", *TITAN, "--shared")
    alone = penstock(*args, "--json").json
    answer = penstock(*args, "--measured", "1 h", "--json").json
    assert answer["contradicted"]
    assert answer["gain"] == alone["gain"]
    assert answer["then"]["seconds"] == pytest.approx(3600 / answer["gain"]["expected"])
    out = penstock(*args, "--measured", "1 h").out
    assert "outside of the interval: the model does not fit this write" in out
    assert "outside of that" not in penstock(*args, "--measured", "3 min").out


def test_nobody_reads_hundreds_of_digits(penstock: Any) -> None:
    out = penstock("predict", *TITAN, "--burst", "1e18").out
    assert max(map(len, out.split())) < 30


def test_what_is_measured_counts(penstock: Any) -> None:
    """Trap 11: t / (t'' - e), e = t' - t."""
    answer = penstock("advise", *TITAN, "--measured", "80 s", "--json").json
    error = answer["now"]["seconds"] - 80
    best = answer["advised"]["total_seconds"]
    assert answer["gain"]["expected"] == pytest.approx(80 / (best - error))


def test_moves_may_cost_more_than_they_bring(penstock: Any) -> None:
    answer = penstock("advise", *TITAN, "--gather", "1 MB/s", "--json").json
    assert answer["advised"]["write"]["nodes"] == 256
    out = penstock("advise", *TITAN, "--gather", "1 MB/s", "--no-aggregators").out
    assert "no change" in out


def test_people_read_the_same(penstock: Any) -> None:
    args = ("advise", *TITAN, "--burst", "1 MB", "--interval-budget", "10%")
    answer = penstock(*args, "--json").json
    out = penstock(*args).out
    assert f"{answer['gain']['expected']:.2f}x" in out
    assert answer["may_be_slower"]
    assert "it may be slower" in out, "a guess's interval goes below 1"
    assert "checkpoint every" in out
    assert f"NumAggregators {answer['adios2']['NumAggregators']}" in out


def test_machines_are_listed_and_explained(penstock: Any) -> None:
    listed = penstock("machines", "--json").json
    assert {"cetus", "titan"} <= {one["name"] for one in listed}
    assert penstock("machines", "titan", "--json").json["striping"]["targets"] == 1008
    out = penstock("machines", "cetus").out
    assert "bridge node" in out
    assert "(fixed)" in out


def test_allocate_takes_jobs_that_were_never_run(penstock: Any, directory: Path) -> None:
    jobs = [
        {"id": "big", "nodes": 512, "machine": "titan", "write": {"cores": 16, "burst": "1 GB"}},
        {"id": "small", "nodes": 8, "machine": "titan",
         "write": {"cores": 16, "burst": "1 GB", "shared": True}},
    ]  # fmt: skip
    (directory / "jobs.json").write_text(json.dumps({"jobs": jobs}))
    answer = penstock("allocate", "jobs.json", "--io-nodes", "16", "--json").json
    assert answer["allocation"]["big"] > answer["allocation"]["small"]
    assert answer["bandwidth"] > 20_000, "in MB/s: ten routers or so of 2,800"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"machine": "titen"}, "did you mean 'titan'"),
        ({"machine": None}, "neither a machine nor a model"),
        ({"write": None}, "has a machine or a model but no write"),
        ({"curve": {"1": 5}}, "a curve and a write"),
        ({"write": {"cores": 99, "burst": 1e6}}, "job 'a', write: 99 cores per node"),
        ({"write": {"cores": 1, "burst": "1 GBB"}}, "unit 'GBB' is unknown"),
        ({"write": {"cores": 1, "burst": 1e6, "over": "OS"}}, "did you mean 'OST'"),
        ({"write": {"core": 1, "burst": 1e6}}, "core"),
        ({"nodes": 20000}, "20000 nodes of titan"),
    ],
)
def test_wrong_jobs_are_refused(
    penstock: Any, directory: Path, change: dict[str, Any], message: str
) -> None:
    job = {"id": "a", "nodes": 2, "machine": "titan", "write": {"cores": 1, "burst": 1e6}} | change
    (directory / "jobs.json").write_text(json.dumps({"jobs": [job]}))
    result = penstock("allocate", "jobs.json", "--io-nodes", "4")
    assert result.status == 2
    assert message in result.err
    assert result.err.count("\n") == 1


IMPOSSIBLE = """
name = "ours"
nodes = 8
cores = 4
striping = {{ targets = {targets}, servers = {servers}, size = "1 MiB" }}
stage = [{{ name = "node", kind = "node", bandwidth = "{bandwidth}" }}]
"""


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("predict", *WRITE), "neither a machine nor a model"),
        (("predict", "--machine", "titen", *WRITE), "did you mean 'titan'"),
        (("predict", "--machine", "none.toml", *WRITE), "none.toml cannot be read"),
        (("predict", "--machine", "swapped.toml", *WRITE), "4 servers for 2 targets"),
        (("predict", "--machine", "nothing.toml", *WRITE), "bandwidth of stage 'node'"),
        (("predict", "--machine", "titan"), "--nodes and --cores and --burst missing"),
        (("predict", *TITAN, "--cores", "17"), "17 cores per node"),
        (("predict", *TITAN, "--nodes", "0"), "0 nodes of titan"),
        (("predict", *TITAN, "--burst", "0"), "a burst of 0 bytes"),
        (("predict", *TITAN, "--burst", "much"), "--burst: 'much' is not a volume"),
        (("predict", *TITAN, "--stripe-count", "2000"), "1 to 1008 targets"),
        (("predict", *TITAN, "--stripe-count", "0"), "0 is not in the range"),
        (("predict", *TITAN, "--stripe-size", "-1"), "--stripe-size"),
        (("predict", *TITAN, "--stripe-size", "100000"), "a multiple of 64 KiB"),
        (("predict", "--machine", "cetus", *WRITE, "--stripe-count", "4"), "cannot choose stripes"),
        (("predict", *TITAN, "--placement", "1-3"), "placement must be 256 numbers"),
        (("predict", *TITAN, "--placement", "0-x"), "--placement: '0-x'"),
        (("predict", *TITAN, "--placement", "0-99999999999999"), "is not a range of nodes"),
        (("predict", *TITAN, "--placement", "5 4-6"), "a node is listed twice"),
        (("predict", *TITAN, "--tag", "hdf5"), "only a model has tags"),
        (("predict", "--machine", "archer", *WRITE), "no stage with a bandwidth"),
        (("predict", "--model", "none.json", *WRITE), "none.json"),
        (("predict", "--machine", "titan", "--log", "none.darshan"), "none.darshan"),
        (("advise", *TITAN, "--measured", "0"), "a measured time of 0 s"),
        (("advise", *TITAN, "--gather", "0"), "a bandwidth of 0 B/s"),
        (("advise", *TITAN, "--interval-budget", "much"), "give '10%'"),
        (("advise", *TITAN, "--interval-budget", "100%"), "less than 100%"),
        (("advise", *TITAN, "--interval-budget", "nan"), "less than 100%"),
        (("advise", *TITAN, "--interval-budget", "1e-320"), "give other numbers"),
        (("advise", *TITAN, "--mtbf", "0"), "--mtbf"),
        (("advise", *TITAN, "--mtbf", "1e-300", "--compute-time", "1e300"), "give other numbers"),
        (("advise", *TITAN, "--compute-time", "1 h"), "--compute-time needs"),
        (("advise", *TITAN, "--hints", "no/hints"), "there is no directory"),
        (
            ("advise", "--machine", "swapped.toml", *WRITE, "--hints", "swapped.toml"),
            "swapped.toml is read by this command",
        ),
        (("advise", *TITAN, "--log", "hosts", "--hints", "hosts"), "hosts is read by this"),
        (("advise", *TITAN, "--shared", "--hosts", "none"), "--hosts: none cannot be read"),
        (("advise", *TITAN, "--shared", "--hosts", "hosts"), "hosts has 2 hosts; give each of"),
        (("advise", *TITAN, "--shared", "--hosts", "odd"), "'a:1' is not a host name"),
        (("advise", *TITAN, "--hosts", "hosts"), "only for one shared file"),
        (("machines", "titen"), "did you mean 'titan'"),
        (("machines", "swapped.toml"), "4 servers for 2 targets"),
    ],
)
def test_wrong_input_is_said_in_a_line(
    penstock: Any, directory: Path, args: tuple[str, ...], message: str
) -> None:
    swapped = IMPOSSIBLE.format(targets=2, servers=4, bandwidth="1 GB/s")
    (directory / "swapped.toml").write_text(swapped)
    (directory / "nothing.toml").write_text(
        IMPOSSIBLE.format(targets=4, servers=2, bandwidth="0 GB/s")
    )
    (directory / "hosts").write_text("a\nb\n")
    (directory / "odd").write_text("a:1\n")
    result = penstock(*args)
    assert result.status == 2, result.out
    assert message in result.err
    assert result.err.count("\n") == 1
    assert result.out == ""
