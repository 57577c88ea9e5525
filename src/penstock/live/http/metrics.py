"""`/metrics`: what Prometheus scrapes, collected from the controller when it does.

Jobs come and go by the thousand, and each would leave series behind that a Prometheus keeps for
weeks. So totals are the site's; jobs have series only where asked for, the K that wrote most, and
only while they run.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from heapq import nlargest
from itertools import accumulate
from typing import Any

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from penstock.live.controller.wait_histogram import WAIT_BOUNDS
from penstock.live.http.schema import Measures, Turns
from penstock.live.protocol import messages
from penstock.live.protocol.job_record import JobRecord

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scrape:
    """What is known at the time of a scrape."""

    status: messages.Status
    turns: Turns
    measures: Measures
    answers: Mapping[int, int]  # of the HTTP API, by status code
    seconds: float  # that it took to learn it


class Telemetry(Collector):
    """The metrics of a controller; users are named where `names` says that a token guards them."""

    def __init__(self, *, jobs: int = 0, names: bool = False) -> None:
        self._jobs, self._names = jobs, names
        self._scrape: Scrape | None = None
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        self._registry.register(self)

    def text(self, scrape: Scrape) -> bytes:
        """Return all metrics in Prometheus's text format."""
        self._scrape = scrape
        try:
            return generate_latest(self._registry)
        finally:
            self._scrape = None

    def describe(self) -> list[Metric]:
        """Say nothing before the first scrape."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Return the families of the scrape under way."""
        scrape = self._scrape
        if scrape is None:
            return
        yield from self._totals(scrape)
        yield from _turns(scrape)
        yield from _io_nodes(scrape.status.io_nodes)
        yield from _tuning(scrape.status.tuning or {})
        yield from self._top_jobs(scrape.status.jobs)
        yield _counted(
            "http_answers", "Answers of the HTTP API, by status code.", "code", scrape.answers
        )
        yield GaugeMetricFamily(
            "penstock_scrape_duration_seconds",
            "Time that it took to collect this scrape.",
            scrape.seconds,
        )

    def _totals(self, scrape: Scrape) -> Iterator[Metric]:
        status, measures = scrape.status, scrape.measures
        yield _total("forwarded_bytes", "Bytes moved by I/O nodes.", status.forwarded_bytes)
        yield _total("direct_bytes", "Bytes moved past the I/O nodes.", status.direct_bytes)
        yield _counted(
            "fail_open",
            "Calls let past their I/O node or gate, by reason.",
            "reason",
            measures.fail_opens,
        )
        throttled = measures.throttled_seconds
        if not self._names:
            throttled = {"": sum(throttled.values())}
        help_text = "Seconds that jobs waited for their turns, by user where a token guards this."
        yield _counted("throttled_seconds", help_text, "user", throttled)
        states = Counter({"running": 0}) + Counter(job.state for job in status.jobs)
        yield _gauge(
            "jobs",
            "Jobs that run, and those that ended and are still listed.",
            "state",
            {"running": 0} | states,
        )
        yield _total("store_failed", "Writes that the store refused.", measures.store_failures)
        yield _total("record_lost", "Events missing in the record.", measures.record_lost)
        yield _total("record_failed", "Failed writes of the record.", measures.record_failures)
        yield _total(
            "policy_failures",
            "Times that the policy raised something, or answered nonsense.",
            status.policy_failures,
        )

    def _top_jobs(self, jobs: list[JobRecord]) -> Iterator[Metric]:
        running = [job for job in jobs if job.state == "running"]
        top = nlargest(self._jobs, running, key=lambda job: _moved(job, "write_bytes"))
        for kind in ("read", "write") if top else ():
            family = CounterMetricFamily(
                f"penstock_job_{kind}_bytes",
                f"Bytes that a running job has asked to {kind}.",
                labels=["job", "user"],
            )
            for job in top:
                user = job.user if self._names else ""
                family.add_metric([job.id, user], _moved(job, f"{kind}_bytes"))
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
        "Time that a phase waited, counted once, when it is over, however its wait ended.",
        buckets=list(zip(bounds, cumulative, strict=True)),
        sum_value=waits.seconds,
    )


def _io_nodes(io_nodes: list[dict[str, Any]]) -> Iterator[Metric]:
    serving = {str(node["number"]): float(node["state"] == "serving") for node in io_nodes}
    yield _gauge("io_node_up", "Whether an I/O node serves and answers.", "node", serving)
    queued = {str(node["number"]): node["queued"] for node in io_nodes if "queued" in node}
    yield _gauge("io_node_queue", "Requests queued in an I/O node.", "node", queued)
    deaths = {str(node["number"]): node["deaths"] for node in io_nodes}
    yield _counted("io_node_deaths", "Deaths of an I/O node's process.", "node", deaths)
    moved = CounterMetricFamily(
        "penstock_io_node_bytes",
        "Bytes that an I/O node moved since its process began.",
        labels=["node", "direction"],
    )
    for node in io_nodes:
        for direction in ("read", "write"):
            if f"{direction}_bytes" in node:
                moved.add_metric([str(node["number"]), direction], node[f"{direction}_bytes"])
    yield moved


def _tuning(tuning: dict[str, Any]) -> Iterator[Metric]:
    texts = {
        "rounds": "Choices of the Council for the I/O nodes' parameters.",
        "explored": "Choices that were made to learn.",
        "guarded": "Choices for which learning would have cost too much.",
        "missed": "Reports of I/O nodes that a choice did not wait for.",
    }
    for name in texts if tuning else ():
        yield _total(f"tuning_{name}", texts[name], tuning[name])


def _moved(job: JobRecord, counter: str) -> int:
    return job.counters.get(counter, 0)


def _total(name: str, text: str, value: float) -> Metric:
    return CounterMetricFamily(f"penstock_{name}", text, value)


def _gauge(name: str, text: str, label: str, values: dict[str, Any]) -> Metric:
    family = GaugeMetricFamily(f"penstock_{name}", text, labels=[label])
    for key, value in values.items():
        family.add_metric([key], value)
    return family


def _counted(name: str, text: str, label: str, values: Any) -> Metric:
    family = CounterMetricFamily(f"penstock_{name}", text, labels=[label])
    for key, value in sorted(values.items()):
        family.add_metric([str(key)], value)
    return family
