"""Measures access patterns through real I/O nodes, over numbers of I/O nodes (after FORGE).

Every run is a job of a private deployment. A run counts only if the job's counters show that every
byte went where it should: through I/O nodes, or, without any, direct.
"""

import hashlib
import importlib.util
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

from penstock.campaign.journal import Value
from penstock.errors import InputError
from penstock.live.agent import runner
from penstock.live.deployment import launcher
from penstock.live.deployment.spec import Deployment
from penstock.live.measure import rank
from penstock.live.measure.access_patterns import DATA, Patterns, Phase
from penstock.live.measure.rank import Plan, RankOperation, RankResult
from penstock.live.measure.scratch import check_interrupted
from penstock.live.protocol import messages
from penstock.live.protocol.client import ControlConnection
from penstock.live.protocol.job_record import direct_bytes, fail_opens, forwarded_bytes
from penstock.live.protocol.state_directory import StateDirectory

MEGA = 1e6
DEFAULT_PROCESSES = 4
BARRIER_TIMEOUT = 86400.0
"""Seconds that a rank waits for the others, which may write for long; the end of one ends all."""
_MPI_TIMEOUT = 60.0
"""Seconds for two ranks to start."""
_MPI_WORLD = "from mpi4py import MPI; print('ranks', MPI.COMM_WORLD.size, flush=True)"


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


@dataclass(frozen=True, slots=True, kw_only=True)
class IoNodeWork:
    """What an I/O node did in a run, by its own counters."""

    io_node: int
    ranks: int
    reads: int
    writes: int
    read_bytes: int
    write_bytes: int
    batches: int
    aggregated: int
    """Requests served together with others."""


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


def header(
    patterns: Patterns, deployment: Deployment, *, mpi: bool, distribution: Distribution
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
    }


class Explorer:
    """Runs phases on a deployment of its own; a context manager."""

    def __init__(
        self,
        deployment: Deployment,
        phases: Iterable[Phase],
        *,
        seed: int,
        mpi: bool,
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
                io_nodes=[
                    str(self._state.data_socket(k)) for k in range(self._deployment.io_nodes)
                ],
            )
            rank.prefill(plan)
            before = self._counters()
            outcome = runner.run(
                self._state, self._command(plan), name=cell.phase, io_nodes=cell.io_nodes
            )
            check_interrupted(outcome)
            ranks = collect(plan, outcome.status)
            work = _work(plan, ranks, before, self._counters())
            return _check(cell, plan, ranks, outcome.counters, work)

    def _order(self, cell: Cell) -> list[int]:
        """Return the order of arrival that gives ranks their I/O nodes; empty if any does."""
        if self._distribution is None or cell.io_nodes < 2 or self._deployment.stripe:
            return []
        return arrival_order(cell.processes, cell.io_nodes, self._distribution)

    def _counters(self) -> dict[int, messages.NodeCounters]:
        """Return the counters of all I/O nodes that answer, by the id of their process."""
        counters = {}
        for k in range(self._deployment.io_nodes):
            # One that is down serves nobody, and the run's own counters say so.
            with suppress(OSError), ControlConnection(self._state.control_socket(k)) as node:
                answer = node.ask(messages.GetCounters(), messages.NodeCounters)
                counters[answer.node] = answer
        return counters

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
    results: list[RankResult] = []
    errors = []
    for number in range(plan.ranks):
        try:
            result = msgspec.json.decode(plan.result(number).read_bytes(), type=RankResult)
        except (OSError, msgspec.DecodeError):
            errors.append(f"rank {number} left no result; the ranks ended with status {status}")
            continue
        results.append(result)
        if result.error:
            errors.append(result.error)
    if errors:
        # A rank that failed breaks the barrier of the others: report its error, not theirs.
        cause = next((error for error in errors if "Barrier" not in error), errors[0])
        raise launcher.LaunchError(f"phase {plan.phase.name!r}: {cause}")
    return results


def _work(
    plan: Plan,
    ranks: Sequence[RankResult],
    before: Mapping[int, messages.NodeCounters],
    after: Mapping[int, messages.NodeCounters],
) -> list[IoNodeWork]:
    """Return what each I/O node that served ranks did between two readings of its counters."""
    used = Counter(number for result in ranks for number in result.io_nodes)
    work = []
    for process in before.keys() & after.keys():
        old, new = before[process], after[process]
        if count := used[new.number]:
            names = ("reads", "writes", "read_bytes", "write_bytes", "batches", "aggregated")
            moved = {name: getattr(new, name) - getattr(old, name) for name in names}
            if plan.order:  # each rank read once to connect
                moved["reads"] -= count
                moved["batches"] -= count
            work.append(IoNodeWork(io_node=new.number, ranks=count, **moved))
    return sorted(work, key=lambda one: one.io_node)


def _check(
    cell: Cell,
    plan: Plan,
    results: Sequence[RankResult],
    counters: Mapping[str, int],
    work: list[IoNodeWork],
) -> Run:
    """Return the run, marked unless every byte went where it should."""
    operations = [one for result in results for one in result.operations]
    files = [pattern.number_of_files for pattern in plan.phase.patterns]
    io_nodes = [" ".join(map(str, result.io_nodes)) for result in results]
    ranks = rank_times(operations, files, io_nodes)
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
    operations: Sequence[RankOperation], files: Sequence[str] = (), io_nodes: Sequence[str] = ()
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


def mpi_command(ranks: int, words: Sequence[str]) -> list[str]:
    """Return the command that starts `words` as `ranks` ranks, with any MPI."""
    root = ["--allow-run-as-root"] if os.getuid() == 0 and _open_mpi() else []
    oversubscribe = ["--oversubscribe"] if _open_mpi() else []
    return ["mpiexec", *root, *oversubscribe, "-n", str(ranks), *words]


def check_mpi() -> None:
    """Start two ranks, and raise InputError unless both belong to one MPI world."""
    if shutil.which("mpiexec") is None:
        raise InputError("--mpi: there is no mpiexec; install an MPI, or leave --mpi out")
    if importlib.util.find_spec("mpi4py") is None:
        raise InputError(
            "--mpi: mpi4py is not installed: install the extra 'mpi', in a checkout "
            "pip install '.[mpi]' (docs/get-started/install.md), or leave --mpi out"
        )
    try:
        result = subprocess.run(
            mpi_command(2, [sys.executable, "-P", "-c", _MPI_WORLD]),
            capture_output=True,
            text=True,
            check=False,
            timeout=_MPI_TIMEOUT,
        )
    except subprocess.TimeoutExpired:
        raise InputError(f"--mpi: mpiexec did not start two ranks in {_MPI_TIMEOUT:g} s") from None
    if result.returncode:
        last = (result.stderr or result.stdout).strip().splitlines()[-1:] or ["no message"]
        raise InputError(f"--mpi: mpiexec does not start mpi4py: {last[0]}")
    if result.stdout.split() != ["ranks", "2"] * 2:
        # Each rank is alone in a world of its own.
        raise InputError(
            "--mpi: mpiexec and mpi4py belong to different MPIs; "
            "put the mpiexec of the library that mpi4py loads first in PATH"
        )


def _open_mpi() -> bool:
    result = subprocess.run(["mpiexec", "--version"], capture_output=True, text=True, check=False)
    return "Open" in result.stdout
