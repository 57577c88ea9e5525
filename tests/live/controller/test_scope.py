"""Turns per I/O node: jobs behind different ones do not wait for each other."""

from typing import Any

import pytest
from live.controller.turn_harness import TurnHarness

from penstock.config import Setting, load
from penstock.core.manager import SQUEEZED
from penstock.errors import InputError
from penstock.live.controller.io_node_map import IoNodePath
from penstock.live.controller.io_node_weights import squeeze
from penstock.live.controller.turn_service import TurnService
from penstock.live.controller.turn_state import PhaseReport
from penstock.live.controller.turns import Turns
from penstock.model import Job, Site
from penstock.records import Header, PolicySpec


def behind(**io_nodes: tuple[int, ...]) -> TurnHarness:
    """Return a site with turns per I/O node, and a job behind each of these sets."""
    site = TurnHarness(scope="io-node")
    site.io_nodes_of = dict(io_nodes)
    for job in io_nodes:
        site.start(job)
    return site


@pytest.mark.parametrize(
    ("scope", "second"), [("file-system", "Hold"), ("io-node", "Turn")], ids=["site", "io-node"]
)
def test_jobs_behind_different_io_nodes_wait_only_where_the_file_system_is_shared(
    scope: str, second: str
) -> None:
    site = TurnHarness(scope=scope)
    site.io_nodes_of = {"a": (0, 1), "b": (2,)}
    a, b = site.start("a"), site.start("b")
    assert site.begin(a, 1) == [("a", "Turn", 1)]
    assert site.begin(b, 1) == [("b", second, 1)]


def test_jobs_behind_one_io_node_take_turns_on_it() -> None:
    site = behind(a=(0,), b=(0,), c=(1,))
    site.begin(site.jobs["a"], 1)
    assert site.begin(site.jobs["b"], 1) == [("b", "Hold", 1)]
    assert site.record("b").behind == ["a"]
    assert site.begin(site.jobs["c"], 1) == [("c", "Turn", 1)]
    assert [site.record(job).share for job in "abc"] == [1.0, 0.0, 1.0]
    assert site.end(site.jobs["a"], 1) == [("b", "Turn", 1)]


def test_a_job_with_one_of_its_turns_transfers_and_has_what_is_left_elsewhere() -> None:
    site = behind(a=(0,), b=(0, 1))
    site.begin(site.jobs["a"], 1)
    assert site.begin(site.jobs["b"], 1) == [("b", "Turn", 1)]  # on I/O node 1
    assert site.out_of_turn == {0: {"b"}}
    assert [site.record(job).share for job in "ab"] == [1.0, 0.5]
    site.now += 1.0
    assert site.end(site.jobs["a"], 1) == []  # it transfers already
    assert site.out_of_turn == {}
    assert site.record("b").share == 1.0


def test_jobs_on_overlapping_io_nodes_never_wait_for_each_other_forever() -> None:
    """If a phase waited for all its turns, two could each have what the other waits for."""
    site = behind(a=(0, 1), b=(1, 2), c=(2, 0))
    for job in "abc":
        site.begin(site.jobs[job], 1)
    transferring = {job for job in "abc" if site.record(job).doing == "transferring"}
    for job in sorted(transferring):
        site.end(site.jobs[job], 1)
    assert all(site.record(job).doing != "waiting" for job in "abc")


def test_a_direct_job_waits_for_nobody() -> None:
    site = behind(a=(), b=(), c=(0,))
    for job in "abc":
        assert site.begin(site.jobs[job], 1) == [(job, "Turn", 1)]
        assert site.record(job).share == 1.0
    for job in "abc":
        assert site.end(site.jobs[job], 1) == []
    assert site.begin(site.jobs["a"], 2) == [("a", "Turn", 2)]


def test_a_phase_is_apart_while_others_transfer_through_other_io_nodes_alone() -> None:
    """It is not alone: all share the file system."""
    site = TurnHarness("fair-share", scope="io-node")
    site.io_nodes_of = {"a": (0,), "b": (1,), "c": (1,)}
    jobs = {name: site.start(name) for name in "abc"}
    for job in jobs.values():
        site.begin(job, 1)
    for job in jobs.values():
        site.end(job, 1)
    assert {name: phase.apart for name, _, phase in site.learnt} == {
        "a": True,
        "b": False,
        "c": False,
    }


def test_a_phase_that_waited_too_long_is_as_heavy_as_those_on_its_io_nodes() -> None:
    site = TurnHarness("set-10", scope="io-node", max_wait=5.0)
    site.io_nodes_of = {"a": (0,), "b": (0,)}
    a, b = site.start("a"), site.start("b")
    site.begin(a, 1)
    site.begin(b, 1)
    assert ("b", "Turn", 1) in site.wait(6.0)
    assert [site.record(job).doing for job in "ab"] == ["transferring"] * 2


def turns(policy: str = "exclusive-fcfs") -> Turns:
    header = Header(
        source="live",
        run="r",
        epoch=0.0,
        began=0.0,
        site=Site(resources=4, direct=True),
        sharing=PolicySpec(policy=policy),
        scope="io-node",
    )
    return Turns(*header.manager())


def test_an_exception_on_one_io_node_does_not_keep_the_turns_on_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    site = turns()
    for serial, name in enumerate("abc"):
        site.started(0.0, Job(id=name, serial=serial))
    site.phase_began(1.0, "a", 1, resources=(0, 1))
    site.phase_began(1.0, "b", 1, resources=(0,))
    site.phase_began(1.0, "c", 1, resources=(1,))
    assert [job for job, _ in site.waiting()] == ["b", "c"]
    handled = site.manager.handle

    def failing(event: Any) -> Any:
        actions = handled(event)
        if getattr(event, "resource", None) == 0:
            raise RuntimeError("a policy's fault")
        return actions

    monkeypatch.setattr(site.manager, "handle", failing)
    with pytest.raises(RuntimeError):
        site.phase_ended(2.0, "a", PhaseReport(number=1, bytes=10, seconds=1.0, waited=0.0))
    monkeypatch.undo()
    notified = {release.job for release in site.release_all(2.0)}
    assert notified == {"b", "c"}  # c was admitted on I/O node 1 and nobody had told it
    assert site.phase_began(3.0, "a", 2, resources=(1,))


def test_turns_per_io_node_need_io_nodes() -> None:
    config = load(None, [Setting.parse("sharing.scope=io-node")]).config
    with pytest.raises(InputError, match="there is no I/O node; give --io-nodes"):
        TurnService(
            config,
            io_nodes=0,
            send=lambda *_: None,
            set_weights=lambda *_: None,
            path=lambda _: IoNodePath(()),
            assign=lambda _: None,
        )


def test_a_job_without_its_turn_has_what_others_leave() -> None:
    assert squeeze({"a": 2.0, "b": 1.0}, {"a"}) == {"a": 2.0 * SQUEEZED, "b": 1.0}
    assert squeeze({"a": 2.0}, ()) == {"a": 2.0}


def test_the_record_says_what_turns_were_taken_on() -> None:
    site = behind(a=(0, 2))
    assert site.turn_service.header.scope == "io-node"
    seen: list[Any] = []
    site.turn_service.turns.record = lambda event, *rest: seen.append((event, rest))
    site.begin(site.jobs["a"], 1)
    site.end(site.jobs["a"], 1, moved=7)
    began, *ended = seen
    assert began[0].resources == (0, 2)
    assert [(event.resource, rest[1]) for event, rest in ended] == [(0, None), (2, 7)]
