"""A site of several I/O nodes on an emulated file system, and applications with known curves.

The link of each I/O node has a cap, and the storage targets behind are faster. So the number of
processes of an application decides what it gains from more I/O nodes: each process uses one, and
p processes on n I/O nodes have p / ceil(p / n) links. One that writes blocks of a shared file in
turn gains from one I/O node, which puts the blocks in order, and loses with several, between whose
requests the target switches.
"""

import contextlib
import json
import math
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from penstock.config import OWN, Config
from penstock.config.sections import (
    AllocationSection,
    LiveSection,
    PlacementSection,
    SharingSection,
    SiteSection,
)
from penstock.learn.imported import ImportedApplication
from penstock.live.deployment import launcher
from penstock.live.deployment.knowledge import knowledge
from penstock.live.deployment.spec import Deployment
from penstock.live.measure.scratch import in_memory, interruptible, private_state
from penstock.live.protocol import messages
from penstock.live.protocol.application_record import ApplicationRecord
from penstock.live.protocol.state_directory import StateDirectory
from penstock.studies.live.testbed import TestbedError, await_ready, end

IO_NODES = 4
COUNTS = (1, 2, 4)
LINK = 16 * 2**20
"""Bytes per second of an I/O node's link."""
REQUEST = 256 * 2**10
EMULATION = f"targets=64,rate={64 * LINK},latency=0,switch=20ms,io-node-link={LINK}"
IN_SERVICE = 2
"""Requests that an I/O node has in service, so that its link is never idle. Others wait, and are
put in order."""
ENDS_WITHIN = 60.0
_JOB = Path(__file__).with_name("parallel_job.py")


@dataclass(frozen=True, slots=True, kw_only=True)
class Application:
    """A program: how many processes write, and where."""

    name: str
    nodes: int  # compute nodes
    processes: int
    shared: bool = False  # one file for all processes
    request: int = REQUEST

    @property
    def links(self) -> Mapping[int, float]:
        """Bytes per second by number of I/O nodes, if links alone decide."""
        return {
            n: LINK * self.processes / math.ceil(self.processes / min(n, self.processes))
            for n in COUNTS
        }

    def whole(self, volume: float) -> int:
        """Return a volume as bytes: of all processes the same number of requests."""
        row = self.processes * self.request
        return max(round(volume / row), 1) * row


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """When a job was started and did its phases, in seconds of CLOCK_MONOTONIC."""

    launched: float
    phases: list[tuple[float, float]]  # each one's beginning and end

    @property
    def seconds(self) -> float:
        """From its first to its last byte."""
        return self.phases[-1][1] - self.phases[0][0]

    @property
    def start_up(self) -> float:
        """From its launch to its first byte."""
        return self.phases[0][0] - self.launched

    @property
    def io(self) -> list[float]:
        """Seconds of each phase."""
        return [end - begin for begin, end in self.phases]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningJob:
    """A job that was started."""

    application: Application
    name: str
    process: "subprocess.Popen[bytes]"
    results: Path
    launched: float

    def begin(self, at: float) -> None:
        """Tell a job that waits for it when it begins."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{at!r}\n".encode())
        self.process.stdin.close()

    def wait(self, within: float = ENDS_WITHIN) -> Times:
        """Return its times once it has ended; TestbedError: it failed, or does not end."""
        try:
            status = self.process.wait(within)
        except subprocess.TimeoutExpired:
            raise TestbedError(f"job {self.name} has not ended after {within:g} s") from None
        if status != 0:
            raise TestbedError(f"job {self.name} ended with status {status}")
        noted = json.loads(self.results.read_text(encoding="utf-8"))
        phases = [(begin, end) for begin, end in noted["phases"]]
        return Times(launched=self.launched, phases=phases)


@dataclass(slots=True, kw_only=True)
class EmulatedSite:
    """A controller that is up, its I/O nodes, and the jobs that are run on them."""

    folder: Path
    root: Path
    in_service: int = IN_SERVICE
    _stack: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)
    _jobs: int = 0

    @property
    def state(self) -> StateDirectory:
        """The state directory, whose store outlives the controller."""
        return StateDirectory(self.folder)

    @contextlib.contextmanager
    def up(
        self,
        *,
        allocation: str = OWN,
        placement: str = OWN,
        nodes: int,
        options: Mapping[str, object] | None = None,
        settle: str = "10 s",
    ) -> Iterator[None]:
        """Run a controller in mode enforce with an allocation policy, on `nodes` compute nodes."""
        controller = launcher.up(
            Deployment(
                state=str(self.folder),
                roots=[str(self.root)],
                io_nodes=IO_NODES,
                emulate=EMULATION,
                settings=messages.Settings(scheduler="time-order", depth=self.in_service),
                attached=True,
                config=Config(
                    site=SiteSection(nodes=nodes),
                    sharing=SharingSection(policy="fair-share"),
                    allocation=AllocationSection(
                        policy=allocation, options=dict(options or {}), settle=settle
                    ),
                    placement=PlacementSection(policy=placement),
                    live=LiveSection(mode="enforce"),
                ),
            )
        )
        assert controller is not None
        with contextlib.ExitStack() as self._stack:
            self._stack.callback(controller.wait)
            self._stack.callback(launcher.down, self.state)
            yield

    def start(
        self,
        application: Application,
        *,
        volume: float,
        phases: int = 1,
        compute: float = 0.0,
        io_nodes: int | None = None,
        waits: bool = False,
    ) -> RunningJob:
        """Start a job that writes `volume` bytes in each phase."""
        self._jobs += 1
        name = f"{application.name}-{self._jobs}"
        plan, results = self.folder / f"{name}.plan", self.folder / f"{name}.times"
        plan.write_text(
            json.dumps(
                {
                    "name": name,
                    "folder": str(self.root),
                    "results": str(results),
                    "processes": application.processes,
                    "shared": application.shared,
                    "request": application.request,
                    "volume": application.whole(volume),
                    "phases": phases,
                    "compute": compute,
                    "waits": waits,
                }
            ),
            encoding="utf-8",
        )
        options = [] if io_nodes is None else ["--io-nodes", str(io_nodes)]
        launched = time.monotonic()
        process = self._stack.enter_context(
            subprocess.Popen(
                [
                    *(sys.executable, "-P", "-m", "penstock.cli", "run", "--require"),
                    *("--state", str(self.folder), "--name", name),
                    *("--application", application.name, "--nodes", str(application.nodes)),
                    *(*options, "--", sys.executable, "-P", str(_JOB), str(plan)),
                ],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
            )
        )
        self._stack.callback(end, process)
        if waits:
            await_ready([process])
        return RunningJob(
            application=application,
            name=name,
            process=process,
            results=results,
            launched=launched,
        )

    def run(
        self,
        application: Application,
        *,
        volume: float,
        phases: int = 1,
        compute: float = 0.0,
        io_nodes: int | None = None,
    ) -> Times:
        """Run a job to its end."""
        job = self.start(
            application, volume=volume, phases=phases, compute=compute, io_nodes=io_nodes
        )
        return job.wait()

    def status(self) -> messages.Status:
        """Return what `penstock status --json` prints."""
        return launcher.ask(self.state, messages.GetStatus(), messages.Status)

    def curves(self) -> dict[str, ApplicationRecord]:
        """Return what `penstock curves show --json` prints, by application."""
        with knowledge(self.state) as known:
            return {one.application: one for one in known.records(None)}

    def tell(self, applications: list[ImportedApplication]) -> None:
        """Import what is known of applications, as `penstock curves import` does."""
        with knowledge(self.state, create=True) as known:
            known.add(applications)


@contextlib.contextmanager
def emulated_site(*, in_service: int = IN_SERVICE) -> Iterator[EmulatedSite]:
    """Give a site that knows nothing; its controller is still to be brought up."""
    with interruptible(), private_state() as folder, in_memory() as root:
        StateDirectory(folder).create()
        yield EmulatedSite(folder=folder, root=root, in_service=in_service)
