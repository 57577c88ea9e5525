"""Measures access patterns through real I/O nodes, over numbers of I/O nodes (after FORGE).

Every run is a job of a private deployment. A run counts only if the job's counters show that every
byte went where it should: through I/O nodes, or, without any, direct.
"""

import hashlib
import random
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

from penstock.campaign.journal import Value
from penstock.live.agent import runner
from penstock.live.deployment import launcher
from penstock.live.deployment.spec import Deployment
from penstock.live.measure import rank
from penstock.live.measure.access_patterns import DATA, Patterns, Phase
from penstock.live.measure.io_node_work import IoNodeWork, counters, io_node_work, users
from penstock.live.measure.mpi import mpi_command
from penstock.live.measure.observation_poller import ObservationPoller
from penstock.live.measure.rank import Plan, RankOperation, RankResult
from penstock.live.measure.scratch import check_interrupted
from penstock.live.measure.slurm_hosts import HostPlacement
from penstock.live.protocol import messages
from penstock.live.protocol.client import ControlConnection
from penstock.live.protocol.job_record import direct_bytes, fail_opens, forwarded_bytes
from penstock.live.protocol.state_directory import StateDirectory
from penstock.model import Observation

MEGA = 1e6
DEFAULT_PROCESSES = 4
BARRIER_TIMEOUT = 86400.0
"""Seconds that a rank waits for the others, which may write for long; the end of one ends all."""

Distribution = Literal["block", "cyclic"]
"""Which ranks share an I/O node: consecutive ones (block), or every n-th (cyclic)."""


class Cell(NamedTuple):
    """One measurement: a phase, its processes and I/O nodes, and the number of the repeat."""

    phase: str
    processes: int
    io_nodes: int
    repeat: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RankTime:
    """One operation of one rank: seconds since the first rank began it."""

    operation: str
    repetition: int
    pattern: int
    rank: int
    bytes: int
    seconds: float
    files: str = ""
    """"shared" or "individual"."""
    io_node: str = ""
    """The I/O node that served the rank; several, with spaces between them, if files are striped;
    empty: it went direct, or an older version did not record it."""
    host: str = ""
    """The host that it ran on; empty: an older version did not record it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """The result of a cell: its bandwidth in MB/s, and why it does not count, if `marked`."""

    cell: Cell
    bandwidth: float
    bytes: int
    makespan: float
    forwarded_bytes: int
    direct_bytes: int
    fail_opens: int
    marked: str = ""
    ranks: list[RankTime] = field(default_factory=list)
    io_nodes: list[IoNodeWork] = field(default_factory=list)


def cells(
    phases: Sequence[Phase],
    processes: Sequence[int],
    io_nodes: Sequence[int],
    *,
    repeats: int,
    seed: int,
) -> list[Cell]:
    """Return all cells, in a random order that the seed determines."""

    def counts(phase: Phase) -> Sequence[int]:
        return processes or [phase.processes or DEFAULT_PROCESSES]

    result = [
        Cell(phase.name, ranks, n, repeat)
        for phase in phases
        for ranks in counts(phase)
        for n in io_nodes
        for repeat in range(repeats)
    ]
    random.Random(seed).shuffle(result)
    return result


def hosts_of_header(placement: HostPlacement | None) -> dict[str, Value]:
    """Return what runs on several hosts have in common; nothing on one host."""
    return {} if placement is None else {"hosts": placement.description}


def header(
    patterns: Patterns,
    deployment: Deployment,
    *,
    mpi: bool,
    distribution: Distribution,
    placement: HostPlacement | None = None,
) -> dict[str, Value]:
    """Return what all runs of a journal have in common."""
    ranks = "mpi" if mpi else "forked"
    return {
        "study": "explore",
        "patterns": hashlib.sha256(msgspec.json.encode(patterns)).hexdigest()[:16],
        "root": deployment.roots[0],
        "emulated": deployment.emulate,
        "settings": msgspec.json.encode(deployment.settings).decode(),
        "stripe": deployment.stripe,
        "ranks": ranks if distribution == "cyclic" else f"{ranks}, {distribution}",
    } | hosts_of_header(placement)


class Explorer:
    """Runs phases on a deployment of its own, on this host; a context manager."""

    hosts: tuple[str, ...] = ()
    """The hosts, if there are several."""

    def __init__(
        self,
        deployment: Deployment,
        phases: Iterable[Phase],
        *,
        seed: int,
        mpi: bool = False,
        distribution: Distribution | None = None,
    ) -> None:
        self._deployment = deployment
        self._phases = {phase.name: phase for phase in phases}
        self._seed = seed
        self._mpi = mpi
        self._distribution = distribution
        self._state = StateDirectory(Path(deployment.state))
        self._controller: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> "Explorer":
        self._controller = launcher.up(self._deployment)
        return self

    def __exit__(self, *_: object) -> None:
        try:
            launcher.down(self._state)
        finally:
            if self._controller is not None:
                self._controller.kill()
                self._controller.wait()

    def run(self, cell: Cell) -> Run:
        """Measure a cell, and remove its files."""
        with self._plan(cell) as plan:
            before = self._counters()
            outcome = runner.run(
                self._state, self._command(plan), name=cell.phase, io_nodes=cell.io_nodes
            )
            check_interrupted(outcome)
            ranks = collect(plan, outcome.status)
            used = users(ranks)
            reads = used if plan.order else {}  # each rank read once to connect
            host = socket.gethostname()
            work = io_node_work(used, before, self._counters(), reads, lambda _: host)
            hosts = [host] * plan.ranks
            return result(cell, plan, ranks, counters=outcome.counters, work=work, hosts=hosts)

    def observed(self, cell: Cell, interval: float) -> tuple[Run, list[list[Observation]]]:
        """Measure a cell; return also the observations of each I/O node meanwhile, in order."""
        with ObservationPoller(self._controls(), interval) as poller:
            run = self.run(cell)
        return run, poller.observations()

    def configure(self, settings: messages.Settings) -> None:
        """Change the settings of all I/O nodes."""
        for control in self._controls():
            with ControlConnection(control) as node:
                node.ask(settings, messages.Done)

    @contextmanager
    def _plan(self, cell: Cell) -> Iterator[Plan]:
        """Give the plan of a run, with all files that it reads; remove its files afterwards."""
        with (
            tempfile.TemporaryDirectory(prefix="penstock-ranks-") as results,
            tempfile.TemporaryDirectory(prefix="explore-", dir=self._deployment.roots[0]) as folder,
        ):
            plan = Plan(
                phase=self._phases[cell.phase],
                folder=folder,
                ranks=cell.processes,
                seed=self._seed,
                results=results,
                timeout=BARRIER_TIMEOUT,
                mpi=self._mpi,
                order=self._order(cell),
                io_nodes=self._addresses(),
            )
            rank.prefill(plan)
            yield plan

    def _addresses(self) -> list[str]:
        return [str(self._state.data_socket(k)) for k in range(self._deployment.io_nodes)]

    def _controls(self) -> list[Path]:
        return [self._state.control_socket(k) for k in range(self._deployment.io_nodes)]

    def _order(self, cell: Cell) -> list[int]:
        """Return the order of arrival that gives ranks their I/O nodes; empty if any does."""
        if self._distribution is None or cell.io_nodes < 2 or self._deployment.stripe:
            return []
        return arrival_order(cell.processes, cell.io_nodes, self._distribution)

    def _counters(self) -> dict[int, messages.NodeCounters]:
        return counters(self._controls())

    def _command(self, plan: Plan) -> list[str]:
        file = Path(plan.results) / "plan.json"
        file.write_bytes(msgspec.json.encode(plan))
        command = [sys.executable, "-P", "-m", "penstock.live.measure.rank", str(file)]
        return mpi_command(plan.ranks, command) if self._mpi else command


def arrival_order(ranks: int, io_nodes: int, distribution: Distribution) -> list[int]:
    """Return the order in which ranks connect: the k-th to come gets I/O node k mod `io_nodes`."""
    if distribution == "cyclic":
        return list(range(ranks))
    size, larger = divmod(ranks, io_nodes)  # the first `larger` blocks have one rank more
    firsts = [k * size + min(k, larger) for k in range(io_nodes)]
    return [firsts[k % io_nodes] + k // io_nodes for k in range(ranks)]


def collect(plan: Plan, status: int) -> list[RankResult]:
    """Return the results of all ranks, or raise LaunchError if one of them failed."""
    results = {}
    for number in range(plan.ranks):
        with suppress(OSError, msgspec.DecodeError):
            content = plan.result(number).read_bytes()
            results[number] = msgspec.json.decode(content, type=RankResult)
    return complete(plan, results, status)


def complete(
    plan: Plan, results: Mapping[int, RankResult], status: int, hosts: Mapping[int, str] = {}
) -> list[RankResult]:
    """Return the results in the order of ranks, or raise LaunchError if one of them failed.

    `hosts` are those of the ranks, if there are several; the first to fail is the first in it.
    """
    lost = f"left no result; the ranks ended with status {status}"
    order = list(hosts) or list(range(plan.ranks))
    errors = {n: results[n].error for n in order if n in results and results[n].error}
    errors |= {n: f"rank {n} {lost}" for n in order if n not in results}
    if errors:
        # A rank that failed breaks the barrier of the others: report its error, not theirs.
        others = [n for n, error in errors.items() if "Barrier" not in error]
        number = (others or list(errors))[0]
        host = f"host {hosts[number]}: " if hosts else ""
        raise launcher.LaunchError(f"phase {plan.phase.name!r}: {host}{errors[number]}")
    return [results[number] for number in range(plan.ranks)]


def result(
    cell: Cell,
    plan: Plan,
    results: Sequence[RankResult],
    *,
    counters: Mapping[str, int],
    work: list[IoNodeWork],
    hosts: Sequence[str],
) -> Run:
    """Return the run, marked unless every byte went where it should; `hosts` are the ranks'."""
    operations = [one for result in results for one in result.operations]
    files = [pattern.number_of_files for pattern in plan.phase.patterns]
    io_nodes = [" ".join(map(str, result.io_nodes)) for result in results]
    ranks = rank_times(operations, files, io_nodes, hosts)
    moved = sum(operation.bytes for operation in operations)
    makespan = sum(seconds for _, seconds in data_operations(ranks).values())
    forwarded, direct = forwarded_bytes(counters), direct_bytes(counters)
    marked = ""
    if (forwarded, direct) != ((moved, 0) if cell.io_nodes else (0, moved)):
        marked = (
            f"of {moved} bytes {forwarded} were forwarded and {direct} went direct; "
            f"all should have been {'forwarded' if cell.io_nodes else 'direct'}"
        )
    elif fail_opens(counters):
        marked = f"{fail_opens(counters)} calls failed open"
    return Run(
        cell=cell,
        bandwidth=moved / makespan / MEGA,
        bytes=moved,
        makespan=makespan,
        forwarded_bytes=forwarded,
        direct_bytes=direct,
        fail_opens=fail_opens(counters),
        marked=marked or rank.validate(plan, operations),
        ranks=ranks,
        io_nodes=work,
    )


def rank_times(
    operations: Sequence[RankOperation],
    files: Sequence[str] = (),
    io_nodes: Sequence[str] = (),
    hosts: Sequence[str] = (),
) -> list[RankTime]:
    """Return the time of each operation of each rank since the first rank began it."""
    began: dict[tuple[int, int], float] = {}
    for done in operations:
        key = (done.repetition, done.pattern)
        began[key] = min(began.get(key, done.began), done.began)
    return [
        RankTime(
            operation=done.operation,
            repetition=done.repetition,
            pattern=done.pattern,
            rank=done.rank,
            bytes=done.bytes,
            seconds=done.ended - began[done.repetition, done.pattern],
            files=files[done.pattern] if files else "",
            io_node=io_nodes[done.rank] if io_nodes else "",
            host=hosts[done.rank] if hosts else "",
        )
        for done in operations
    ]


def data_operations(ranks: Iterable[RankTime]) -> dict[str, tuple[int, float]]:
    """Return the bytes and the makespan of a run's writes, and of its reads.

    A makespan is the sum of the slowest ranks' times, over all writes or all reads of the run.
    """
    moved: dict[str, int] = {}
    slowest: dict[str, dict[tuple[int, int], float]] = {}
    for done in ranks:
        if done.operation in DATA:
            moved[done.operation] = moved.get(done.operation, 0) + done.bytes
            times = slowest.setdefault(done.operation, {})
            key = (done.repetition, done.pattern)
            times[key] = max(times.get(key, 0.0), done.seconds)
    return {
        operation: (moved[operation], max(sum(times.values()), 1e-9))
        for operation, times in slowest.items()
    }
