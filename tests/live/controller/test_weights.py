"""Weights that I/O nodes are told are those of all jobs, and only where turns are enforced."""

from collections.abc import Mapping
from itertools import count

import pytest

from penstock.config import Config
from penstock.config.sections import LiveSection, Mode
from penstock.identities import io_nodes
from penstock.live.controller.io_node_map import IoNodePath
from penstock.live.controller.job_table import JobTable
from penstock.live.controller.turn_service import TurnService
from penstock.live.protocol import messages


class Site:
    """A turn service, and the last table of weights that it sent to the I/O nodes."""

    def __init__(self, mode: Mode) -> None:
        self.weights: Mapping[str, float] = {}
        self.now = 0.0
        self.turn_service = TurnService(
            Config(live=LiveSection(mode=mode)),
            io_nodes=1,
            send=lambda _, __: None,
            set_weights=lambda weights, _: setattr(self, "weights", weights),
            path=lambda _: IoNodePath(io_nodes([0])),
            assign=lambda _: None,
            clock=lambda: self.now,
        )
        self._jobs = JobTable(count(1).__next__)
        self._phases = 0

    def job(self, name: str) -> str:
        begin = messages.BeginJob(
            name=name, pid=1, command=[name], user="ada", protocol=messages.PROTOCOL
        )
        job = self._jobs.begin(begin, 0.0)
        self.turn_service.started(job)
        return job.id

    def iterate(self, job: str, *, compute: float, times: int) -> None:
        for _ in range(times):
            self._phases += 1
            self.now += compute
            entry = self._jobs.running[job]
            self.turn_service.phase_began(entry, messages.PhaseBegan(phase=self._phases))
            self.now += 0.1
            ended = messages.PhaseEnded(
                phase=self._phases, bytes=1 << 20, seconds=0.1, waited=0.0, idle=0.0
            )
            self.turn_service.phase_ended(entry, ended)


def test_a_new_weight_does_not_undo_those_of_others() -> None:
    """An I/O node keeps the table that it was told last: what is not in it has weight one."""
    site = Site("enforce")
    slow, quick = site.job("slow"), site.job("quick")
    site.iterate(slow, compute=10.0, times=3)
    site.iterate(quick, compute=0.9, times=3)
    assert site.weights == pytest.approx({slow: 0.1, quick: 1.0})


def test_who_is_observed_has_no_weight() -> None:
    site = Site("observe")
    slow = site.job("slow")
    site.iterate(slow, compute=10.0, times=3)
    assert not site.weights


def test_weights_end_with_the_mode() -> None:
    """The switch that opens all gates leaves no job with a small share."""
    site = Site("enforce")
    slow = site.job("slow")
    site.iterate(slow, compute=10.0, times=3)
    assert site.weights[slow] == pytest.approx(0.1)
    site.turn_service.set_mode(messages.SetMode(mode="off"))
    assert site.weights == {slow: 1.0}
