"""Tuned values over time, of real I/O nodes under a real job."""

import time
from pathlib import Path

from live.controller.test_tuning import WITHIN, Tuned
from live.http.api_site import client


def test_tuned_values_and_what_was_learned(tmp_path: Path) -> None:
    site = Tuned(tmp_path)
    site.up("--http", "0")
    try:
        with site.job(), client(site.state.http.read_text().strip()) as api:
            deadline = time.monotonic() + 2 * WITHIN
            tuning = api.get("/v1/tuning").json()
            while not any(value["reward"] for value in tuning["arms"]):
                assert time.monotonic() < deadline, tuning
                time.sleep(0.2)
                tuning = api.get("/v1/tuning").json()
            # Its I/O node has no other job, so the node's pattern is the job's.
            while not (jobs := api.get("/v1/timeline").json()["jobs"])[0]["pattern"]:
                assert time.monotonic() < deadline, jobs
                time.sleep(0.2)
            phases = api.get(f"/v1/jobs/{jobs[0]['id']}/phases").json()
            assert phases["pattern"][-1][1] == phases["job"]["pattern"]
    finally:
        site.penstock("down")
    assert tuning["applied"]
    (window,) = tuning["parameters"]
    assert window["name"] == "window"
    for value in tuning["arms"]:
        assert (value["parameter"], value["value"] in window["values"]) == ("window", True)
        assert (value["reward"] is None) == (value["chosen"] == 0)
    times = [entry[0] for entry in tuning["history"]]
    assert times == sorted(times)
    assert {(node, name) for _, node, name, _, _ in tuning["history"]} == {(0, "window")}
    assert {type(explored) for *_, explored in tuning["history"]} <= {bool}


def test_without_tuning_there_is_no_policy(tmp_path: Path) -> None:
    site = Tuned(tmp_path)
    site.penstock("up", "--root", str(site.root), "--io-nodes", "0", "--http", "0")
    try:
        with client(site.state.http.read_text().strip()) as api:
            assert api.get("/v1/tuning").json()["policy"] is None
    finally:
        site.penstock("down")
