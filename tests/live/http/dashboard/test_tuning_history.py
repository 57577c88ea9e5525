"""Tuned values over time, of real I/O nodes under a real job."""

import logging
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from live.controller.test_tuning import CONTEXT, WITHIN, Tuned
from live.http.api_site import client

from penstock.live.controller.tuning import Tuning
from penstock.live.http.dashboard.tuning_history import TuningHistory
from penstock.live.protocol.io_node_record import TuningStatus
from penstock.policies.tuning.ucb1 import Ucb1


class OtherTuner(Ucb1):
    """A third party's tuner, with a state of its own."""

    def __init__(self, state: Any) -> None:
        super().__init__()
        self._state = state

    def learned(self) -> dict[str, Any]:
        if isinstance(self._state, Exception):
            raise self._state
        return cast("dict[str, Any]", self._state)


def history(**tuners: Ucb1) -> TuningHistory:
    fields = dict.fromkeys(TuningStatus.__struct_fields__, 0)
    status = TuningStatus(**fields | {"policy": "other", "parameters": [], "exploring": []})  # type: ignore[arg-type]
    experience = SimpleNamespace(tuners=tuners)
    tuning = SimpleNamespace(parameters=[], experience=experience, status=lambda: status)
    return TuningHistory(cast("Tuning", tuning), lambda: 0.0)


@pytest.mark.parametrize(
    "state",
    [
        ["no", "mapping"],
        {"contexts": 3},
        {"contexts": [{"values": [1]}]},
        {
            "contexts": [
                {"operation": "write", "pattern": "contiguous", "size": 4096, "load": 1}
                | {"values": [1, 2], "count": [1.0], "mean": [5.0]}
            ]
        },
        ValueError("broken"),
    ],
    ids=["list", "number", "fields", "lengths", "exception"],
)
def test_a_tuner_whose_state_cannot_be_read_is_named(
    state: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """The others' values are shown; it is logged once, not at every request."""
    good = Ucb1()
    good.learn(CONTEXT, 4096, 7.0)
    tuning = history(aggregation=good, window=OtherTuner(state))
    with caplog.at_level(logging.WARNING):
        answers = [tuning.answer() for _ in range(3)]
    assert {value.parameter for value in answers[-1].arms} == {"aggregation"}
    assert answers[-1].not_shown == ["window"]
    (line,) = [record.getMessage() for record in caplog.records]
    assert "window" in line


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
