"""What-if of the HTTP API compares allocation and placement policies, as the command does."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import jsonschema_rs
import pytest
from limits import COMPUTING
from live.http.api_site import client, controlled
from records.random_days import RecordedClock, header, write

from penstock import cli
from penstock.live.http.what_if_choices import RecordList, policy_choices
from penstock.model import Curve, Site
from penstock.records import PolicySpec
from penstock.sim.workload import Workload

ACTED, OBSERVED = "ac7e", "0b5e"
STEEP = Curve.of({1: 1.0, 2: 2.0, 4: 4.0})
FLAT = Curve.of({1: 1.0, 2: 1.1, 4: 1.2})


def record(folder: Path, run: str, mode: str) -> None:
    """Record a job with a steep curve, one with a flat one, and one of which nothing is known."""
    made = header(
        "fair-share",
        site=Site(nodes=64, resources=4, direct=True),
        source="simulated",
        allocation=PolicySpec(policy="one"),
        placement=PolicySpec(policy="greedy-non-clairvoyant"),
        mode=mode,
        run=run,
    )
    jobs = Workload(
        compute=[4.0] * 15,
        io=[8.0] * 15,
        offsets=[0, 5, 10, 15],
        release=[0.0, 0.5, 1.0],
        ids=["steep", "flat", "unknown"],
        curves=[STEEP, FLAT, None],
        details=[{"user": "lovelace", "processes": 4}] * 3,
    )
    clock = RecordedClock(jobs, made)
    clock.run()
    write(folder / "records", made, clock.entries)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, httpx.Client]]:
    folder = tmp_path_factory.mktemp("site")
    record(folder / "state", ACTED, "enforce")
    record(folder / "state", OBSERVED, "observe")
    with controlled(folder, io_nodes=0) as (_, where), client(where) as api:
        yield folder, api


def what_if(api: httpx.Client, **body: Any) -> dict[str, Any]:
    """Run a what-if to its end, and return it."""
    started = api.post("/v1/what-if", json={"run": ACTED} | body)
    assert started.status_code == 200, started.text
    id = started.json()["id"]
    deadline = time.monotonic() + COMPUTING
    while (answer := dict(api.get(f"/v1/what-if/{id}").json()))["state"] == "running":
        assert time.monotonic() < deadline
        time.sleep(0.1)
    return answer


def result(api: httpx.Client, **body: Any) -> dict[str, Any]:
    answer = what_if(api, **body)
    assert answer["state"] == "done", answer["error"]
    return dict(answer["result"])


@pytest.mark.parametrize(
    ("body", "options"),
    [
        ({"policies": ["set-10"]}, ["--policies", "set-10"]),
        ({"allocation": ["mckp", "own"]}, ["--allocation", "mckp,own"]),
        ({"placement": ["random"]}, ["--placement", "random"]),
    ],
    ids=["sharing", "allocation", "placement"],
)
def test_it_is_the_result_of_the_command(
    site: tuple[Path, httpx.Client],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    body: dict[str, Any],
    options: list[str],
) -> None:
    """One result type for terminal, JSON and dashboard: equal, every figure."""
    folder, api = site
    monkeypatch.chdir(folder / "state" / "records")
    (file,) = Path().glob(f"record-*-{ACTED}-*")
    assert cli.main(["what-if", *options, "--lanes", "--json", "--", str(file)]) == 0
    assert result(api, **body) == json.loads(capsys.readouterr().out)


def test_allocation_policies_with_what_they_do_not_know(site: tuple[Path, httpx.Client]) -> None:
    compared = result(site[1], allocation=["mckp", "where-known"])
    assert (compared["kind"], compared["ran"]) == ("allocation", "one")
    assert compared["sharing"] == "fair-share"
    assert set(compared["policies"]) == {"one", "mckp", "where-known"}
    assert set(compared["lanes"]["simulated"]) == set(compared["policies"])
    mckp = compared["policies"]["mckp"]
    assert mckp["needs"] == ["curve"]
    assert mckp["decisions"]["unmet_needs"] == {"curve": 1}
    assert mckp["decisions"]["jobs_by_fallback"] == 1
    assert compared["policies"]["one"]["needs"] == []
    assert compared["record"]["cuts"]["jobs_without_curve"] == 1


def test_placement_policies_of_a_record_that_no_allocation_acted_on(
    site: tuple[Path, httpx.Client],
) -> None:
    failed = what_if(site[1], run=OBSERVED, placement=["random"])
    assert (failed["state"], failed["result"]) == ("failed", None)
    assert "no allocation policy acted in the record" in failed["error"]
    compared = result(site[1], run=OBSERVED, allocation=["one"], placement=["random"])
    assert compared["ran"] == "own"
    assert set(compared["policies"]) == {"own", "one + random"}
    assert compared["policies"]["own"]["decisions"]["reasons"] == {}


def test_every_documented_field_is_answered_and_no_other(site: tuple[Path, httpx.Client]) -> None:
    _, api = site
    document = api.get("/openapi.json").json()
    answers = [
        what_if(api, policies=["set-10"]),
        what_if(api, allocation=["mckp", "static"]),
        what_if(api, run=OBSERVED, placement=["random"]),
    ]
    schema = {"$ref": "#/components/schemas/WhatIf"}
    for answer in answers:
        jsonschema_rs.validate(schema | document, answer)
    shapes = document["components"]["schemas"]
    for name in ("WhatIf", "WhatIfResult", "Figures", "AllocationDecisions"):
        fields = set().union(*(names for a in answers for names in objects(a, name, shapes)))
        assert fields == set(shapes[name]["properties"]), name


def objects(answer: dict[str, Any], name: str, shapes: dict[str, Any]) -> Iterator[set[str]]:
    """Yield the fields of each object of a type in a what-if."""
    results = [answer["result"]] if answer["result"] is not None else []
    policies = [figures for each in results for figures in each["policies"].values()]
    decisions = [figures["decisions"] for figures in policies if figures["decisions"] is not None]
    of_type = {
        "WhatIf": [answer],
        "WhatIfResult": results,
        "Figures": policies,
        "AllocationDecisions": decisions,
    }
    yield from map(set, of_type[name])


@pytest.mark.parametrize(
    ("fields", "code", "message"),
    [
        ({}, 422, "name sharing policies"),
        ({"policies": ["set-10"], "allocation": ["mckp"]}, 422, "or else allocation"),
        ({"policies": ["set-10"], "placement": ["random"]}, 422, "or else allocation"),
        ({"allocation": ["mkcp"]}, 404, "did you mean 'mckp'"),
        ({"allocation": ["set-10"]}, 404, "allocation policy"),
        ({"placement": ["own"]}, 404, "placement policy"),
        ({"allocation": ["mckp", "mckp"]}, 422, "named twice"),
        ({"allocation": ["./mine.py:Mine"]}, 422, ""),
        ({"placement": ["--check"]}, 422, ""),
        ({"allocation": ["one", "size", "mckp", "static", "own"]}, 422, ""),
    ],
)
def test_wrong_requests_are_refused(
    site: tuple[Path, httpx.Client], fields: dict[str, Any], code: int, message: str
) -> None:
    """No policy file is run, and nothing becomes an option of the command."""
    answer = site[1].post("/v1/what-if", json={"run": ACTED} | fields)
    assert answer.status_code == code, answer.text
    assert message in answer.json()["error"]


def test_policies_are_listed_by_kind_with_what_they_must_know() -> None:
    choices = {(choice.kind, choice.name): choice for choice in policy_choices()}
    assert choices["allocation", "t-cpu"].needs == ["compute", "curve", "nodes", "volume"]
    assert choices["placement", "greedy-non-clairvoyant"].needs == []
    assert choices["allocation", "own"].summary == "Jobs keep the I/O nodes that they had."
    assert all(choice.summary for choice in choices.values())


def test_records_say_which_allocation_and_placement_policies_they_have(
    site: tuple[Path, httpx.Client],
) -> None:
    runs = {run["run"]: run for run in site[1].get("/v1/records").json()}
    for run, mode in ((ACTED, "enforce"), (OBSERVED, "observe")):
        assert (runs[run]["allocation"], runs[run]["mode"]) == ("one", mode)
        assert runs[run]["placement"] == "greedy-non-clairvoyant"


def test_the_folder_of_an_allocation_policy_is_private(tmp_path: Path) -> None:
    path = tmp_path / "record-20261115-120000-ab12-0001.jsonl"
    path.write_text(
        '{"sharing":{"policy":"set-10"},"allocation":{"policy":"/home/lovelace/mine.py:Mine"}}'
    )
    (run,) = RecordList(tmp_path, "none").runs()
    assert (run.allocation, run.placement) == ("mine.py:Mine", None)
