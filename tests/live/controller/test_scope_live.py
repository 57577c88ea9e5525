"""Real jobs behind different I/O nodes, with turns per file system and per I/O node."""

import json

import pytest
from live.controller.turn_deployment import Deployed

from penstock.model import PhaseBegan
from penstock.records import Record, replay


@pytest.mark.parametrize("scope", ["file-system", "io-node"])
def test_jobs_behind_different_io_nodes_wait_only_where_the_file_system_is_shared(
    site: Deployed, scope: str
) -> None:
    site.up("--io-nodes", "2", "--set", f"sharing.scope={scope}")
    first, second = (site.obedient(name, "--io-nodes", "1") for name in ("first", "second"))
    assert [site.job(name).io_nodes for name in ("first", "second")] == [[0], [1]]
    if scope == "file-system":
        site.held(first, second)
    else:
        first.do("begin")
        second.do("write 4")  # the first one has its turn, on another I/O node
        assert site.job("second").waits == 0
        assert site.job("first").doing == "transferring"
    first.do("end")
    if scope == "file-system":
        assert second.answer() == "write"
    for job in (first, second):
        assert job.finish()["fail_opens"] == 0


def test_jobs_behind_one_io_node_take_turns_on_it(site: Deployed) -> None:
    site.up("--io-nodes", "2", "--set", "sharing.scope=io-node")
    first, _, third = (site.obedient(name, "--io-nodes", "1") for name in ("one", "two", "three"))
    assert site.job("three").io_nodes == [0]
    site.held(first, third)
    assert json.loads(site.penstock("status", "--json"))["scope"] == "io-node"
    assert "exclusive-fcfs per I/O node, enforce" in site.penstock("top", "--once")
    first.do("end")
    assert third.answer() == "write"
    third.finish()
    record = Record(*sorted(site.state.records.iterdir()))
    assert replay(record).first_difference is None
    assert record.header.scope == "io-node"
    places = {
        entry.event.job: entry.event.resources
        for entry in record
        if isinstance(entry.event, PhaseBegan)
    }
    assert places == {site.job("one").id: (0,), site.job("three").id: (0,)}
