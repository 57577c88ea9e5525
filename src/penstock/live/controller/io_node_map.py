"""Which I/O nodes each running job has."""

import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import NamedTuple

from penstock import identities
from penstock.errors import InputError, unknown
from penstock.identities import IoNodeId
from penstock.live.protocol.messages import Node, NodeMap
from penstock.live.protocol.shared_page import MAP_NODES
from penstock.model import JobId

FRESH = 2.0
"""Seconds after its begin for which a job may still be one that does I/O."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """The I/O nodes of a job, by number, whether they are up or not."""

    numbers: tuple[IoNodeId, ...]
    stripe: int = 0
    user: str = ""
    local: bool = True  # the job is on the controller's host, and reaches Unix sockets there
    served: tuple[IoNodeId, ...] = ()  # all that it may use
    lead: IoNodeId | None = None  # the one that the job's first process uses; None: it has none
    member: int = 0  # of a job on several hosts: which of its hosts this is
    whole: str = ""  # the first of a job's members: they have one lead

    def reaches(self, node: Node) -> bool:
        """Tell whether the job can reach an I/O node: on its host, or its user's over TCP."""
        return self.local if node.transport == "unix" else node.user in ("", self.user)


class IoNodePath(NamedTuple):
    """Where the data of a job goes: the I/O nodes that it can use (none: direct)."""

    numbers: tuple[IoNodeId, ...]
    maps: int = 0  # sent to it so far: equal paths at two times were equal in between


def same_count(paths: Mapping[JobId, IoNodePath]) -> int | None:
    """Return how many I/O nodes all members of a job have; None: they have different ones."""
    numbers = {path.numbers for path in paths.values()}
    return len(numbers.pop()) if len(numbers) == 1 else None


class IoNodeMap:
    """Gives I/O nodes to jobs, the least loaded first.

    A process uses the I/O node at its ordinal, counted from its job's lead. Without a choice of the
    lead, all jobs of one process would share an I/O node. It is the one with the fewest running
    jobs that do I/O; of equal ones, the one that fewer jobs have used, those that began less than
    `FRESH` seconds ago included. Where others have come to use it before the job's first phase, the
    lead is chosen again, and then stays.
    """

    def __init__(
        self,
        io_nodes: int,
        *,
        stripe: int = 0,
        partitions_of: Callable[[IoNodeId], tuple[str, ...]] = lambda _: (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`partitions_of` returns the partitions that an I/O node serves; none: all jobs."""
        self._io_nodes = io_nodes
        self._partitions_of = partitions_of
        self._stripe = stripe
        self._up: dict[IoNodeId, Node] = {}
        self._jobs: dict[str, Assignment] = {}
        self._clock = clock
        self._began: dict[str, float] = {}  # when jobs began of which no I/O is known
        self._uses: dict[str, set[IoNodeId]] = {}  # the I/O nodes that jobs use, once they do I/O
        self._ever = [0] * io_nodes  # jobs that have used an I/O node

    def begin(
        self,
        job: str,
        requested: int | None = None,
        *,
        user: str = "",
        partition: str = "",
        local: bool = True,
        used: Collection[IoNodeId] = (),
    ) -> NodeMap:
        """Give a new job the number of I/O nodes that it requests, or all.

        One that comes from an earlier controller has `used` some: it keeps to them.
        """
        all_of_them = identities.io_nodes(range(self._io_nodes))
        served = [k for k in all_of_them if self._serves(k, partition)]
        wanted = len(served) if requested is None else requested
        if not 0 <= wanted <= len(served):
            there = f"partition {partition} has" if partition else "there are"
            raise InputError(f"{wanted} I/O nodes are requested; {there} {len(served)}")
        load = [0] * self._io_nodes
        for assigned in self._jobs.values():
            for number in assigned.numbers:
                load[number] += 1
        own = Assignment(
            numbers=(),
            stripe=self._stripe,
            user=user,
            local=local,
            served=tuple(served),
            whole=job,
        )

        def reached(number: IoNodeId) -> bool:
            return number in self._up and own.reaches(self._up[number])

        order = sorted(served, key=lambda k: (not reached(k), k not in self._up, load[k], k))
        numbers = tuple(sorted(order[:wanted]))
        own = replace(own, numbers=numbers)
        if (lead := self._first_used(numbers, used)) is None:
            lead = self._least_used(own)
            self._began[job] = self._clock()
        else:
            self._use(job, {lead})
        self._jobs[job] = replace(own, lead=lead)
        return self.map(job)

    @staticmethod
    def _first_used(numbers: Sequence[IoNodeId], used: Collection[IoNodeId]) -> IoNodeId | None:
        """Return where the first process of a job was, by the I/O nodes that it used."""
        among = [k for k, number in enumerate(numbers) if number in used]
        before = [k for k in among if numbers[k - 1] not in used]
        return numbers[(before or among)[0]] if among else None

    def _users(self) -> Counter[IoNodeId]:
        """Count the running jobs that use each I/O node."""
        return Counter(k for used in self._uses.values() for k in used)

    def _least_used(self, own: Assignment) -> IoNodeId | None:
        """Return the I/O node of a job that the fewest jobs use."""
        users, ever = self._users(), Counter(dict(enumerate(self._ever)))
        since = self._clock() - FRESH
        for job, began in self._began.items():
            if began > since and (first := self._first(job)) is not None:
                ever[first] += 1
        among = [k for k in own.numbers if k in self._up and own.reaches(self._up[k])]
        least = [(users[k], ever[k], k) for k in among or own.numbers]
        return min(least)[2] if least else None

    def _first(self, job: str) -> IoNodeId | None:
        """Return the I/O node of the first process of a job, or of a member of it."""
        order = self._order(self._jobs[job])
        return order[0] if order else None

    def _use(self, job: str, numbers: Collection[IoNodeId]) -> None:
        """Note that a job uses I/O nodes."""
        self._began.pop(job, None)
        known = self._uses.setdefault(job, set())
        for number in numbers:
            if number not in known:
                known.add(number)
                self._ever[number] += 1

    def begins_io(self, job: str) -> NodeMap | None:
        """Note that a job begins its first phase; return its map if it has another lead now."""
        if job in self._uses or job not in self._jobs:
            return None
        own, first, moved = self._jobs[job], self._first(job), False
        alone = all(id == job or other.whole != own.whole for id, other in self._jobs.items())
        # All members of a job count from one lead; so do all pieces of striped files.
        if first is not None and alone and not own.stripe:
            users = self._users()
            least = self._least_used(own)
            if least is not None and users[least] < users[first]:
                self._jobs[job] = replace(own, lead=least)
                first, moved = least, True
        self._use(job, () if first is None else {first})
        return self.map(job) if moved else None

    def used(self, job: str, numbers: Collection[IoNodeId]) -> None:
        """Note which I/O nodes have moved data for a running job."""
        if job in self._jobs and numbers:
            self._use(job, set(numbers) & set(self._jobs[job].numbers))

    def _serves(self, number: IoNodeId, partition: str) -> bool:
        partitions = self._partitions_of(number)
        return not partitions or partition in partitions

    def follow(self, job: str, other: str) -> None:
        """Give a job the I/O nodes of another member of the same job."""
        had, own = self._jobs[other], self._jobs[job]
        members = {
            assigned.member for assigned in self._jobs.values() if assigned.whole == had.whole
        }
        self._jobs[job] = replace(
            own,
            numbers=had.numbers,
            stripe=had.stripe,
            lead=had.lead,
            member=next(k for k in count() if k not in members),
            whole=had.whole,
        )

    def end(self, job: str) -> None:
        """Remove a job."""
        for of_job in (self._jobs, self._began, self._uses):
            of_job.pop(job, None)

    def remap(
        self, job: str, numbers: Sequence[IoNodeId], stripe: int, *, in_order: bool = False
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
        own = replace(self._jobs[job], numbers=tuple(numbers), stripe=stripe)
        if in_order:
            own = replace(own, lead=numbers[0] if numbers else None, member=0)
        elif own.lead not in numbers:
            own = replace(own, lead=self._lead_of_others(own, job))
        self._jobs[job] = own
        if in_order:
            self._began.pop(job, None)
            self._uses.setdefault(job, set())
        if job in self._uses:
            first = self._first(job)
            self._uses[job] = set()
            self._use(job, () if first is None else {first})
        return self.map(job)

    def release(self, job: str) -> NodeMap | None:
        """Give a running job all I/O nodes that it may use; None: it has them already."""
        own = self._jobs[job]
        if set(own.numbers) == set(own.served):
            return None
        self._jobs[job] = replace(own, numbers=own.served, stripe=self._stripe)
        return self.map(job)

    def _lead_of_others(self, own: Assignment, job: str) -> IoNodeId | None:
        """Return the lead that the other members of a job have on the same I/O nodes, or a new."""
        for id, other in self._jobs.items():
            if id != job and other.whole == own.whole and other.lead in own.numbers:
                return other.lead
        return self._least_used(own)

    def node_up(self, node: Node) -> dict[str, NodeMap]:
        """Add an I/O node; return the jobs whose map changed."""
        number = IoNodeId(node.number)
        self._up[number] = node
        return self._on(number)

    def node_down(self, number: IoNodeId) -> dict[str, NodeMap]:
        """Remove an I/O node until it is up again; return the jobs whose map changed."""
        return self._on(number) if self._up.pop(number, None) else {}

    def _on(self, number: IoNodeId) -> dict[str, NodeMap]:
        return {job: self.map(job) for job, had in self._jobs.items() if number in had.numbers}

    def map(self, job: str) -> NodeMap:
        """Return a job's map: its I/O nodes that are up and that it can reach.

        One host uses at most MAP_NODES of them; the hosts of a job use different ones, unless its
        files are striped: a stripe is on the same I/O node for all hosts.
        """
        assigned = self._jobs[job]
        nodes = [self._up[k] for k in self._order(assigned) if k in self._up]
        nodes = [node for node in nodes if assigned.reaches(node)]
        return NodeMap(nodes=nodes[:MAP_NODES], stripe=assigned.stripe)

    def out_of_reach(self, job: str) -> frozenset[IoNodeId]:
        """Return those of a job's I/O nodes that are up, and that it cannot use."""
        own = self._jobs[job]
        up = (number for number in own.numbers if number in self._up)
        return frozenset(number for number in up if not own.reaches(self._up[number]))

    @staticmethod
    def _order(assigned: Assignment) -> tuple[IoNodeId, ...]:
        """Return a job's I/O nodes in the order of its processes, that of a member's first."""
        numbers = assigned.numbers
        if assigned.lead not in numbers:
            return numbers
        apart = 1 if len(numbers) <= MAP_NODES else MAP_NODES
        member = 0 if assigned.stripe else assigned.member
        first = (numbers.index(assigned.lead) + apart * member) % len(numbers)
        return numbers[first:] + numbers[:first]

    def numbers(self, job: str) -> tuple[IoNodeId, ...]:
        """Return the numbers of a job's I/O nodes, whether they are up or not."""
        return self._jobs[job].numbers

    def on(self, number: IoNodeId) -> list[str]:
        """Return the jobs of an I/O node."""
        return [job for job, assigned in self._jobs.items() if number in assigned.numbers]
