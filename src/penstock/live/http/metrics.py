"""`/metrics`: collected from the controller when Prometheus scrapes it.

Jobs come and go by the thousand, and each would leave series behind that Prometheus keeps for
weeks. So totals are the site's; jobs have series only on request, for the K that wrote most, and
only while they run.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from heapq import nlargest
from itertools import accumulate
from typing import Any

from msgspec import UNSET
from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from penstock.live.controller.status import WAIT_BOUNDS
from penstock.live.http.schema import Measures, Turns
from penstock.live.protocol import messages
from penstock.live.protocol.file_system_record import FileSystemRecord
from penstock.live.protocol.io_node_record import AllocationStatus, IoNodeRecord, TuningStatus
from penstock.live.protocol.job_record import JobRecord

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_TUNING = {
    "rounds": "Tuning rounds: choices of values for the I/O nodes' parameters.",
    "explored": "Choices made to explore.",
    "guarded": "Choices for which exploring would have cost too much.",
    "missed": "Reports of I/O nodes that came too late for a choice.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Scrape:
    """The data of one scrape."""

    status: messages.Status
    turns: Turns
    measures: Measures
    answers: Mapping[int, int]  # of the HTTP API, by status code
    seconds: float  # that collecting took


class ControllerMetrics(Collector):
    """The metrics of a controller; `names`: include user names, because a token is required."""

    def __init__(self, *, jobs: int = 0, names: bool = False) -> None:
        self._jobs, self._names = jobs, names
        self._scrape: Scrape | None = None
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        self._registry.register(self)

    def text(self, scrape: Scrape) -> bytes:
        """Return all metrics in Prometheus' text format."""
        self._scrape = scrape
        try:
            return generate_latest(self._registry)
        finally:
            self._scrape = None

    def collect(self) -> Iterator[Metric]:
        """Return the families of the current scrape."""
        return iter(()) if self._scrape is None else self.families(self._scrape)

    def families(self, scrape: Scrape) -> Iterator[Metric]:
        """Return the families of a scrape, without those of the process."""
        yield from self._totals(scrape)
        yield from _turns(scrape)
        yield from _io_nodes(scrape.status.io_nodes)
        yield from _file_systems(scrape.status.file_systems)
        yield from _allocation(scrape.status.allocation)
        yield from _tuning(scrape.status.tuning)
        yield from self._top_jobs(scrape.status.jobs)
        yield _counters(
            "http_answers", "Answers of the HTTP API, by status code.", "code", scrape.answers
        )
        yield GaugeMetricFamily(
            "penstock_scrape_duration_seconds",
            "Time that collecting this scrape took.",
            scrape.seconds,
        )

    def _totals(self, scrape: Scrape) -> Iterator[Metric]:
        status, measures = scrape.status, scrape.measures
        yield _total(
            "forwarded_bytes",
            "Bytes moved by I/O nodes, or with their permission.",
            status.forwarded_bytes,
        )
        yield _total(
            "carried_bytes",
            "Of those, bytes that I/O nodes carried: of other hosts, or emulated ones.",
            status.carried_bytes,
        )
        yield _total(
            "direct_bytes", "Bytes moved directly, not through an I/O node.", status.direct_bytes
        )
        yield _counters(
            "fail_open",
            "Fail-opens: calls that bypassed their I/O node or gate, by reason.",
            "reason",
            measures.fail_opens,
        )
        throttled = measures.throttled_seconds
        if not self._names:
            throttled = {"": sum(throttled.values())}
        help_text = "Seconds that jobs waited for their turns; by user if tokens are required."
        yield _counters("throttled_seconds", help_text, "user", throttled)
        states = Counter(job.state for job in status.jobs)
        yield _gauge(
            "jobs",
            "Running jobs, and jobs that ended and are still listed.",
            "state",
            {"running": 0} | states,
        )
        yield _total("store_failed", "Failed writes to the store.", measures.store_failures)
        yield _total("record_lost", "Events missing from the record.", measures.record_lost)
        yield _total("record_failed", "Failed writes to the record.", measures.record_failures)
        yield _total(
            "policy_failures",
            "Times that a policy (sharing, allocation, placement, fallback) raised an exception or "
            "returned an invalid result.",
            status.policy_failures,
        )

    def _top_jobs(self, jobs: list[JobRecord]) -> Iterator[Metric]:
        running = [job for job in jobs if job.state == "running"]
        top = nlargest(self._jobs, running, key=lambda job: job.counters.get("write_bytes", 0))
        for kind in ("read", "write") if top else ():
            family = CounterMetricFamily(
                f"penstock_job_{kind}_bytes",
                f"Bytes that a running job has requested to {kind}.",
                labels=["job", "user"],
            )
            for job in top:
                user = job.user if self._names else ""
                family.add_metric([job.id, user], job.counters.get(f"{kind}_bytes", 0))
            yield family


def _turns(scrape: Scrape) -> Iterator[Metric]:
    waits = scrape.measures.turn_waits
    bounds = [*map(str, WAIT_BOUNDS), "+Inf"]
    cumulative = [float(count) for count in accumulate(waits.counts)]
    yield GaugeMetricFamily(
        "penstock_waiting_jobs", "Jobs that wait for their turn.", len(scrape.turns.waiting)
    )
    yield GaugeMetricFamily(
        "penstock_transferring_jobs", "Jobs that transfer.", len(scrape.turns.transferring)
    )
    yield _total("turns", "Turns granted.", scrape.status.turns)
    yield HistogramMetricFamily(
        "penstock_turn_wait_seconds",
        "Time that a phase waited for its turn; counted once, when the phase is over.",
        buckets=list(zip(bounds, cumulative, strict=True)),
        sum_value=waits.seconds,
    )


def _io_nodes(io_nodes: list[IoNodeRecord]) -> Iterator[Metric]:
    serving = {str(node.number): float(node.state == "serving") for node in io_nodes}
    yield _gauge("io_node_up", "1 if an I/O node serves and answers, else 0.", "node", serving)
    queued = {str(node.number): node.queued for node in io_nodes if node.queued is not UNSET}
    yield _gauge("io_node_queue", "Requests queued in an I/O node.", "node", queued)
    deaths = {str(node.number): node.deaths for node in io_nodes}
    yield _counters("io_node_deaths", "Times that an I/O node's process died.", "node", deaths)
    moved = CounterMetricFamily(
        "penstock_io_node_bytes",
        "Bytes that an I/O node moved since its process started.",
        labels=["node", "direction"],
    )
    for node in io_nodes:
        for direction, value in (("read", node.read_bytes), ("write", node.write_bytes)):
            if value is not UNSET:
                moved.add_metric([str(node.number), direction], value)
    yield moved


def _file_systems(file_systems: list[FileSystemRecord]) -> Iterator[Metric]:
    yield _counters(
        "file_system_bytes",
        "Bytes that jobs moved on a file system since the controller started.",
        "file_system",
        {each.name: each.bytes for each in file_systems},
    )
    yield _gauge(
        "file_system_waiting_jobs",
        "Jobs that wait for their turn on a file system.",
        "file_system",
        {each.name: len(each.waiting) for each in file_systems},
    )


def _allocation(allocation: AllocationStatus | None) -> Iterator[Metric]:
    if allocation is None:
        return
    yield _total("moves", "Times that a running job was given other I/O nodes.", allocation.moves)
    yield _counters(
        "allocations",
        "Times that I/O nodes were decided on for a job, by reason.",
        "reason",
        allocation.reasons,
    )


def _tuning(tuning: TuningStatus | None) -> Iterator[Metric]:
    for name, text in _TUNING.items() if tuning is not None else ():
        yield _total(f"tuning_{name}", text, getattr(tuning, name))


def _total(name: str, text: str, value: float) -> Metric:
    return CounterMetricFamily(f"penstock_{name}", text, value)


def _gauge(name: str, text: str, label: str, values: dict[str, Any]) -> Metric:
    family = GaugeMetricFamily(f"penstock_{name}", text, labels=[label])
    for key, value in values.items():
        family.add_metric([key], value)
    return family


def _counters(name: str, text: str, label: str, values: Any) -> Metric:
    family = CounterMetricFamily(f"penstock_{name}", text, labels=[label])
    for key, value in sorted(values.items()):
        family.add_metric([str(key)], value)
    return family
