"""A job whose beginning fails at the controller leaves nothing there, and runs unmanaged."""

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
from live.controller.turn_harness import TurnHarness

from penstock.identities import IoNodeId
from penstock.learn.knowledge import Knowledge
from penstock.learn.observations import History, ObservedPhase
from penstock.live.controller.controller import Controller
from penstock.live.controller.job_table import JobEntry, JobObserver
from penstock.live.controller.peer import Peer
from penstock.live.deployment.spec import Deployment
from penstock.live.protocol import messages
from penstock.live.protocol.client import FullError

BEGIN = messages.BeginJob(name="a", pid=1, command=["x"], user="ada", executable="x", protocol=2)


class Broken(JobObserver):
    """Stands for any fault in the controller while a job begins."""

    def began(self, job: JobEntry) -> None:
        raise RuntimeError("oops")


def with_controller(folder: Path, check: Callable[[Controller], None]) -> None:
    async def run() -> None:
        deployment = Deployment(state=str(folder), roots=[str(folder)], io_nodes=1)
        controller = Controller(deployment)
        try:
            check(controller)
        finally:
            controller.archive.store.close()

    asyncio.run(run())


def begin(controller: Controller, name: str = "a") -> JobEntry:
    message = messages.BeginJob(**{**as_dict(BEGIN), "name": name})
    return controller.begin(message, cast(asyncio.StreamWriter, None), Peer(uid=0))[0]


def as_dict(message: messages.BeginJob) -> dict[str, Any]:
    return {name: getattr(message, name) for name in message.__struct_fields__}


def test_a_beginning_that_fails_is_undone_and_the_job_is_told_to_run_unmanaged(
    tmp_path: Path,
) -> None:
    """The fault: the job was listed as running for ever, and its command was not run."""

    def check(controller: Controller) -> None:
        works, controller.history = controller.history, Broken()
        with pytest.raises(FullError, match="internal error"):
            begin(controller)
        assert controller.jobs.running == {}
        assert controller.turn_service.turns.states == {}
        assert controller.io_node_map.on(IoNodeId(0)) == []
        assert controller.archive.store.flush()
        controller.history = works
        assert begin(controller).state == "running"

    with_controller(tmp_path, check)
    with_controller(tmp_path, _only_the_second)


def _only_the_second(controller: Controller) -> None:
    assert list(controller.archive.unclaimed) == ["a.2"]


@pytest.mark.security
def test_a_job_begins_whatever_is_stored_of_its_application(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The fault: one bandwidth of 8e18 B/s, and no job of that application began ever after."""
    huge = ObservedPhase(bytes=2**63 - 1, seconds=0.5, alone=True)
    usual = ObservedPhase(bytes=10**8, seconds=1.0, alone=True)
    stored = Knowledge(history=History({1: (huge,), 2: (usual,)}))
    site = TurnHarness()
    with caplog.at_level(logging.WARNING):
        site.start("a", knowledge=stored)
    curve = site.turn_service.turns.manager.jobs["a"].curve
    assert curve is not None
    assert (curve.counts, curve.bandwidths) == ((2,), (1e8,))
    assert caplog.text.count("impossible bandwidths left out") == 1
