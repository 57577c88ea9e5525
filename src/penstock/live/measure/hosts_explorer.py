"""The explorer over the hosts of an allocation: ranks on all of them, meeting at every operation.

The controller runs where the command was started. I/O nodes and ranks run on the hosts, and the
ranks of all hosts are one job. They reach I/O nodes over TCP, those of their own host too.
"""

import time
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TypeVar

import msgspec

from penstock.live.deployment import launcher
from penstock.live.deployment.launcher import LaunchError
from penstock.live.deployment.spec import Deployment
from penstock.live.measure import explorer, host_launcher
from penstock.live.measure.access_patterns import Phase
from penstock.live.measure.explorer import Cell, Distribution, Explorer, Run
from penstock.live.measure.host_messages import (
    Configure,
    Done,
    EndWatch,
    HostMessage,
    IoNodesServe,
    RunRanks,
    StartIoNodes,
    Watch,
    Watched,
)
from penstock.live.measure.hosts import Hosts
from penstock.live.measure.io_node_work import io_node_work, users
from penstock.live.measure.rank import Plan
from penstock.live.measure.slurm_hosts import HostPlacement
from penstock.live.protocol import messages
from penstock.live.protocol.site_key import SiteKey
from penstock.model import Observation

M = TypeVar("M", bound=HostMessage)
K = TypeVar("K")
V = TypeVar("V")
POLL = 0.05
"""Seconds between two questions whether all I/O nodes have registered."""


def make(
    deployment: Deployment,
    phases: Iterable[Phase],
    *,
    seed: int,
    mpi: bool = False,
    distribution: Distribution | None = None,
    placement: HostPlacement | None = None,
) -> Explorer:
    """Return the explorer of this host, or of several."""
    if placement is None:
        return Explorer(deployment, phases, seed=seed, mpi=mpi, distribution=distribution)
    return HostsExplorer(
        deployment, phases, seed=seed, distribution=distribution, placement=placement
    )


class HostsExplorer(Explorer):
    """Runs phases on the hosts of an allocation; a context manager."""

    def __init__(
        self,
        deployment: Deployment,
        phases: Iterable[Phase],
        *,
        seed: int,
        distribution: Distribution | None = None,
        placement: HostPlacement,
    ) -> None:
        super().__init__(deployment, phases, seed=seed, distribution=distribution)
        self.hosts = placement.hosts
        self._placement = placement
        self._stack = ExitStack()
        self._runs = 0
        self._io_node_addresses: dict[int, str] = {}
        self._io_nodes_of_host: dict[str, list[int]] = {}
        for number in range(deployment.io_nodes):
            host = placement.host_of_io_node(number)
            self._io_nodes_of_host.setdefault(host, []).append(number)

    def __enter__(self) -> "HostsExplorer":
        with self._stack:
            self._start()
            self._stack = self._stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def run(self, cell: Cell) -> Run:
        """Measure a cell, and remove its files."""
        return self.observed(cell, 0.0)[0]

    def observed(self, cell: Cell, interval: float) -> tuple[Run, list[list[Observation]]]:
        """Measure a cell; return also the observations of each I/O node meanwhile, in order."""
        with self._plan(cell) as plan:
            members = self._members(cell, plan)
            self._ask_io_nodes(Watch(interval=interval), Done)
            ended = self._hosts.run(members)
            watched: list[Watched] = self._ask_io_nodes(EndWatch(), Watched)
            observations = merged(one.observations for one in watched)
            host_of = {rank: host for host in ended for rank in members[host].ranks}
            ranks = explorer.complete(
                plan,
                merged(one.results for one in ended.values()),
                next((one.status for one in ended.values() if one.status), 0),
                host_of,
            )
            work = io_node_work(
                users(ranks),
                merged(one.before for one in watched),
                merged(one.after for one in watched),
                added(one.reads_to_connect for one in ended.values()),
                self._placement.host_of_io_node,
            )
            run = explorer.result(
                cell,
                plan,
                ranks,
                counters=added(one.counters for one in ended.values()),
                work=work,
                hosts=[host_of[rank] for rank in range(plan.ranks)],
            )
            return run, [observations[number] for number in sorted(observations)]

    def configure(self, settings: messages.Settings) -> None:
        """Change the settings of all I/O nodes."""
        self._ask_io_nodes(Configure(settings=settings), Done)

    def _start(self) -> None:
        """Start the controller, the launchers, and the I/O nodes."""
        folder = self._state.folder
        key_file = folder / "site.key"
        SiteKey.create(key_file)
        deployment = msgspec.structs.replace(
            self._deployment,
            io_nodes=0,
            remote_io_nodes=self._deployment.io_nodes,
            listen=f"{host_launcher.ANY_ADDRESS}:0",
            key_file=str(key_file),
        )
        self._controller = launcher.up(deployment)
        self._stack.callback(super().__exit__)
        self._port = int(self._state.listen.read_text().rpartition(":")[2])
        hosts = Hosts(self.hosts, SiteKey.read(key_file), folder)
        self._hosts = self._stack.enter_context(hosts)
        self._hosts.check_root(Path(self._deployment.roots[0]))
        questions = {
            host: StartIoNodes(
                numbers=numbers,
                controller_port=self._port,
                root=self._deployment.roots[0],
                coherent=self._placement.coherent,
                serves_within=self._deployment.serves_within,
            )
            for host, numbers in self._io_nodes_of_host.items()
        }
        answers: dict[str, IoNodesServe] = self._hosts.ask(questions, IoNodesServe)
        self._io_node_addresses = merged(one.addresses for one in answers.values())
        self._await_io_nodes()

    def _await_io_nodes(self) -> None:
        """Return once all I/O nodes have registered with the controller."""
        deadline = time.monotonic() + self._deployment.serves_within
        while missing := [
            one.number
            for one in launcher.ask(self._state, messages.GetStatus(), messages.Status).io_nodes
            if not one.alive
        ]:
            if time.monotonic() > deadline:
                host = self._placement.host_of_io_node(missing[0])
                raise LaunchError(
                    f"I/O node {missing[0]} on host {host} did not register with the controller "
                    f"within {self._deployment.serves_within:g} s: {self._state.log_tail()}"
                )
            time.sleep(POLL)

    def _members(self, cell: Cell, plan: Plan) -> dict[str, RunRanks]:
        """Return what each host runs: a member of one job."""
        self._runs += 1
        Path(plan.folder, "empty").touch(mode=0o600)  # for ranks to connect
        wanted: list[int] = []
        if self._distribution is not None and cell.io_nodes > 1 and not self._deployment.stripe:
            wanted = io_nodes_of_ranks(cell.processes, cell.io_nodes, self._distribution)
        return {
            host: RunRanks(
                plan=plan,
                ranks=ranks,
                wanted=[wanted[rank] for rank in ranks] if wanted else [],
                name=cell.phase,
                team=f"run-{self._runs}",
                io_nodes=cell.io_nodes,
                controller_port=self._port,
            )
            for host, ranks in self._placement.ranks_of_hosts(cell.processes).items()
        }

    def _order(self, cell: Cell) -> list[int]:  # noqa: ARG002
        return []  # each host has an order of its own

    def _addresses(self) -> list[str]:
        return [self._io_node_addresses[k] for k in range(self._deployment.io_nodes)]

    def _ask_io_nodes(self, message: HostMessage, answer: type[M]) -> list[M]:
        """Return the answers of all hosts that have I/O nodes."""
        return list(
            self._hosts.ask(dict.fromkeys(self._io_nodes_of_host, message), answer).values()
        )


def io_nodes_of_ranks(ranks: int, io_nodes: int, distribution: Distribution) -> list[int]:
    """Return the I/O node of each rank."""
    if distribution == "cyclic":
        return [rank % io_nodes for rank in range(ranks)]
    size, larger = divmod(ranks, io_nodes)  # the first `larger` blocks have one rank more
    return [k for k in range(io_nodes) for _ in range(size + (k < larger))]


def merged(parts: Iterable[Mapping[K, V]]) -> dict[K, V]:
    """Return what several hosts have, as one."""
    return {key: value for part in parts for key, value in part.items()}


def added(parts: Iterable[Mapping[K, int]]) -> dict[K, int]:
    """Return the sums of what several hosts counted."""
    sums: Counter[K] = Counter()
    for part in parts:
        sums.update(part)
    return dict(sums)
