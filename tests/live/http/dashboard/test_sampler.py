"""Samples: a rate is what an I/O node moved between two answers, over the time between them."""

import asyncio
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec import UNSET

from penstock.live.controller.job_table import JobEntry
from penstock.live.http.dashboard.history import History
from penstock.live.http.dashboard.sampler import Sampler
from penstock.live.protocol import messages
from penstock.live.protocol.io_node_record import NodeTuning
from penstock.live.store import Totals

MIB = 1 << 20


class Site:
    """A controller as the sampler sees it, with two I/O nodes and a clock that the test moves."""

    def __init__(self) -> None:
        self.clock = 1000.0
        self.slow = 0.0  # seconds until the second one answers
        self.pattern: dict[int, str] = {}
        self.idle = False
        node = SimpleNamespace(node=1, link=1, remote=False, number=0, absence="", deaths=0)
        nodes = [node, SimpleNamespace(**{**vars(node), "number": 1})]
        self.io_nodes = SimpleNamespace(nodes=nodes, ask_each=self.ask_each)
        self.jobs = SimpleNamespace(running={}, totals=lambda: Totals(direct_bytes=10**15))
        self.tuning = SimpleNamespace(node=self.node_tuning)
        self.turn_service = SimpleNamespace(
            turns=SimpleNamespace(states={}, observer=None),
            header=SimpleNamespace(epoch=1e9),
            turn_id=lambda id: None,
        )
        self.history: History = History(self.as_controller, lambda: self.clock)
        self.sampler = Sampler(self.as_controller, self.history)

    def node_tuning(self, number: int) -> NodeTuning:
        operation = None if self.idle else "write"
        return NodeTuning(pattern=self.pattern.get(number, UNSET), operation=operation)

    @property
    def as_controller(self) -> Any:
        return self

    async def ask_each(
        self,
        requests: Mapping[int, messages.Message],
        _answer: object,
        receive: Callable[[int, Any], None],
        _within: float,
    ) -> None:
        for number in requests:
            self.clock += self.slow * number
            receive(number, measured(number, int(self.clock * MIB)))  # a MiB every second

    def sample(self, after: float = 1.0) -> Any:
        self.clock += after
        asyncio.run(self.sampler.sample())
        return self.sampler.since(-1)[-1]

    def job(self, number: int, io_node: int = 0, **fields: Any) -> JobEntry:
        begin = messages.BeginJob(name="job", pid=1, command=["x"], user="ada", **fields)
        job = JobEntry(
            id=f"job.{number}", serial=number, begin=begin, began=1e9, io_nodes=(io_node,)
        )
        self.history.began(job)
        return job

    def counts(self, job: JobEntry, moved: int) -> None:
        job.counters = {"write_bytes": moved}
        self.history.counted(job)


def measured(number: int, moved: int) -> messages.NodeCounters:
    counters = dict.fromkeys(messages.NodeCounters.__struct_fields__, 0)
    counters |= {"node": 1, "number": number, "write_bytes": moved}
    return messages.NodeCounters(**{**counters, "scheduler": "fifo"})  # type: ignore[arg-type]


@pytest.fixture
def site() -> Site:
    return Site()


def test_a_slow_sample_makes_no_io_node_fast(site: Site) -> None:
    """The first answered long before the sample was made, and at once the next time."""
    site.sample()
    site.slow = 0.8
    rates = [site.sample().io_nodes]
    site.slow = 0.0
    rates += [site.sample(after=0.2).io_nodes, site.sample().io_nodes]
    for both in rates:
        assert both == pytest.approx([MIB, MIB], rel=0.01)


def test_what_a_job_did_before_a_restart_is_not_of_the_first_second(site: Site) -> None:
    job = site.job(1, resumes="job.1")
    site.sample()
    site.counts(job, 10**12)
    assert site.sample().direct == 0.0
    site.counts(job, 10**12 + MIB)
    assert site.sample().direct == MIB
    assert site.sample().direct == 0.0


def test_a_job_that_begins_and_counts_once_has_moved_that(site: Site) -> None:
    site.sample()
    site.counts(site.job(1), MIB)
    assert site.sample().direct == MIB


def test_counters_that_fall_move_nothing(site: Site) -> None:
    job = site.job(1)
    site.counts(job, 5 * MIB)
    site.sample()
    site.counts(job, MIB)
    assert site.sample().direct == 0.0


def test_a_job_that_begins_to_write_elsewhere_has_changed(site: Site) -> None:
    """It moves nothing, so no rate ever changes, and why it shows 0 bytes was never sent."""
    job = site.job(1)
    site.sample()
    before = site.history.lanes.by_id[job.id].revision
    job.counters = {"attached": 1, "opens_elsewhere": 1}
    site.history.counted(job)
    after = site.history.lanes.by_id[job.id].revision
    assert after > before
    site.history.counted(job)  # the same again is no change
    assert site.history.lanes.by_id[job.id].revision == after


def test_a_pattern_is_that_of_a_job_that_has_its_io_node_to_itself(site: Site) -> None:
    alone, one, other = site.job(1, 0), site.job(2, 1), site.job(3, 1)
    lanes = site.history.lanes.by_id
    for job in (alone, one):  # the other computes: the report may still be of what it did
        lanes[job.id].kind = "io"
    site.pattern = {0: "sequential", 1: "random"}
    site.sample()
    assert [pattern for _, pattern in lanes[alone.id].patterns] == ["sequential"]
    assert not lanes[one.id].patterns
    assert not lanes[other.id].patterns
    site.sample()
    assert len(lanes[alone.id].patterns) == 1  # each change once


def test_a_pattern_that_is_no_longer_known_is_unknown_unless_nothing_is_asked_for(
    site: Site,
) -> None:
    job = site.job(1, 0)
    lane = site.history.lanes.by_id[job.id]
    lane.kind = "io"
    for pattern, idle in (("sequential", False), ("unknown", True), ("unknown", False)):
        site.pattern[0], site.idle = pattern, idle
        site.sample()
    assert [pattern for _, pattern in lane.patterns] == ["sequential", "unknown"]
