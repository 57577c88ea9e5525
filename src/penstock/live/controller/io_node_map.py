"""Which I/O nodes each running job has."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from penstock.errors import InputError, unknown
from penstock.live.protocol.messages import Node, NodeMap
from penstock.live.protocol.shared_page import MAP_NODES
from penstock.model import JobId


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """The I/O nodes of a job, by number, whether they are up or not."""

    numbers: tuple[int, ...]
    stripe: int = 0
    user: str = ""
    local: bool = True  # the job is on the controller's host, and reaches Unix sockets there
    served: tuple[int, ...] = ()  # all that it may use
    first: int = 0  # which of them its first process uses, counted around

    def reaches(self, node: Node) -> bool:
        """Tell whether the job can reach an I/O node: on its host, or its user's over TCP."""
        return self.local if node.transport == "unix" else node.user in ("", self.user)


class IoNodePath(NamedTuple):
    """Where the data of a job goes: the I/O nodes that it can use (none: direct)."""

    numbers: tuple[int, ...]
    maps: int = 0  # sent to it so far: equal paths at two times were equal in between


def same_count(paths: Mapping[JobId, IoNodePath]) -> int | None:
    """Return how many I/O nodes all members of a job have; None: they have different ones."""
    numbers = {path.numbers for path in paths.values()}
    return len(numbers.pop()) if len(numbers) == 1 else None


class IoNodeMap:
    """Gives I/O nodes to jobs, the least loaded first."""

    def __init__(
        self,
        io_nodes: int,
        *,
        stripe: int = 0,
        partitions_of: Callable[[int], tuple[str, ...]] = lambda _: (),
    ) -> None:
        """`partitions_of` returns the partitions that an I/O node serves; none: all jobs."""
        self._io_nodes = io_nodes
        self._partitions_of = partitions_of
        self._stripe = stripe
        self._up: dict[int, Node] = {}
        self._jobs: dict[str, Assignment] = {}

    def begin(
        self,
        job: str,
        requested: int | None = None,
        *,
        user: str = "",
        partition: str = "",
        local: bool = True,
        serial: int = 0,
    ) -> NodeMap:
        """Give a new job the number of I/O nodes that it requests, or all.

        Processes use them in turn. The first one depends on the `serial` number of the job, so that
        jobs of one process spread over the I/O nodes; each host of a job has a number of its own.
        """
        served = [k for k in range(self._io_nodes) if self._serves(k, partition)]
        count = len(served) if requested is None else requested
        if not 0 <= count <= len(served):
            there = f"partition {partition} has" if partition else "there are"
            raise InputError(f"{count} I/O nodes are requested; {there} {len(served)}")
        load = [0] * self._io_nodes
        for assigned in self._jobs.values():
            for number in assigned.numbers:
                load[number] += 1
        order = sorted(served, key=lambda k: (k not in self._up, load[k], k))
        numbers = tuple(sorted(order[:count]))
        self._jobs[job] = Assignment(
            numbers=numbers,
            stripe=self._stripe,
            user=user,
            local=local,
            served=tuple(served),
            first=serial,
        )
        return self.map(job)

    def _serves(self, number: int, partition: str) -> bool:
        partitions = self._partitions_of(number)
        return not partitions or partition in partitions

    def follow(self, job: str, other: str) -> None:
        """Give a job the I/O nodes of another member of the same job."""
        had, own = self._jobs[other], self._jobs[job]
        # A striped file has the same order of I/O nodes on all hosts.
        first = had.first if had.stripe else own.first
        self._jobs[job] = replace(own, numbers=had.numbers, stripe=had.stripe, first=first)

    def end(self, job: str) -> None:
        """Remove a job."""
        self._jobs.pop(job, None)

    def remap(
        self, job: str, numbers: Sequence[int], stripe: int, *, in_order: bool = False
    ) -> NodeMap:
        """Give a running job these I/O nodes instead; `in_order`: its first process the first."""
        if job not in self._jobs:
            raise unknown("running job", job, self._jobs)
        for number in numbers:
            if not 0 <= number < self._io_nodes:
                raise InputError(
                    f"there is no I/O node {number}; they are 0 to {self._io_nodes - 1}"
                    if self._io_nodes
                    else "there is no I/O node; jobs go direct"
                )
        if len(set(numbers)) < len(numbers):
            raise InputError("an I/O node is named twice; name it once")
        own = self._jobs[job]
        first = 0 if in_order else own.first
        self._jobs[job] = replace(own, numbers=tuple(numbers), stripe=stripe, first=first)
        return self.map(job)

    def release(self, job: str) -> NodeMap | None:
        """Give a running job all I/O nodes that it may use; None: it has them already."""
        own = self._jobs[job]
        if set(own.numbers) == set(own.served):
            return None
        self._jobs[job] = replace(own, numbers=own.served, stripe=self._stripe)
        return self.map(job)

    def node_up(self, node: Node) -> dict[str, NodeMap]:
        """Add an I/O node; return the jobs whose map changed."""
        self._up[node.number] = node
        return self._on(node.number)

    def node_down(self, number: int) -> dict[str, NodeMap]:
        """Remove an I/O node until it is up again; return the jobs whose map changed."""
        return self._on(number) if self._up.pop(number, None) else {}

    def _on(self, number: int) -> dict[str, NodeMap]:
        return {job: self.map(job) for job, had in self._jobs.items() if number in had.numbers}

    def map(self, job: str) -> NodeMap:
        """Return a job's map: its I/O nodes that are up and that it can reach.

        One host uses at most MAP_NODES of them; the hosts of a job use different ones, unless its
        files are striped: a stripe is on the same I/O node for all hosts.
        """
        assigned = self._jobs[job]
        apart = 1 if len(assigned.numbers) <= MAP_NODES else MAP_NODES
        first = apart * assigned.first % max(len(assigned.numbers), 1)
        order = assigned.numbers[first:] + assigned.numbers[:first]
        nodes = [self._up[k] for k in order if k in self._up]
        nodes = [node for node in nodes if assigned.reaches(node)]
        return NodeMap(nodes=nodes[:MAP_NODES], stripe=assigned.stripe)

    def numbers(self, job: str) -> tuple[int, ...]:
        """Return the numbers of a job's I/O nodes, whether they are up or not."""
        return self._jobs[job].numbers

    def on(self, number: int) -> list[str]:
        """Return the jobs of an I/O node."""
        return [job for job, assigned in self._jobs.items() if number in assigned.numbers]
