"""What people are told of a site: its status, the turn of each job, and how long phases waited."""

import asyncio
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Container, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from msgspec import UNSET, UnsetType, structs

from penstock.files import reason
from penstock.identities import IoNodeId
from penstock.live.controller.io_nodes import IoNode
from penstock.live.controller.peer import Peer
from penstock.live.controller.policy_watch import Watch
from penstock.live.controller.turn_state import Phase, TurnState
from penstock.live.controller.turns import Moment, Turns
from penstock.live.deployment.spec import ANSWER_TIMEOUT
from penstock.live.protocol import messages
from penstock.live.protocol.file_system_record import FileSystemRecord
from penstock.live.protocol.io_node_record import IoNodeRecord
from penstock.live.protocol.job_record import JobRecord
from penstock.model import JobId
from penstock.policies.base import Own

if TYPE_CHECKING:
    from penstock.live.controller.controller import Controller

WAIT_BOUNDS = (0.001, 0.005, 0.02, 0.1, 0.5, 2.0, 10.0, 30.0, 120.0)
"""Upper bounds of the histogram's buckets, in seconds."""
BEHIND = 10
"""Jobs ahead of a waiting one that are named."""
OF_ANOTHER = "a job of another user"
"""What users see instead of the id of one."""


async def site_status(controller: "Controller", peer: Peer | None = None) -> messages.Status:
    """Return what a controller knows, and what its I/O nodes answer; to a peer, with jobs it sees.

    A peer is charged for the time that this takes.
    """
    turn_service = controller.turn_service
    io_nodes = await asyncio.gather(
        *(_io_node(controller, io_node) for io_node in controller.io_nodes.nodes)
    )
    if peer is not None:
        await controller.messages.next_of(peer.charged)
    totals = controller.jobs.totals()
    return messages.Status(
        site=controller.deployment.site_name,
        roots=controller.deployment.roots,
        emulated=controller.deployment.emulate,
        jobs=controller.job_records(peer),
        io_nodes=list(io_nodes),
        file_systems=_file_systems(controller),
        forwarded_bytes=totals.forwarded_bytes,
        carried_bytes=totals.carried_bytes,
        direct_bytes=totals.direct_bytes,
        fail_open_total=totals.fail_opens,
        policy=turn_service.policy,
        scope=turn_service.header.scope,
        mode=turn_service.modes.site,
        bandwidth=turn_service.turns.ledger.site.bandwidth,
        modes=turn_service.modes.users,
        turns=turn_service.turns.turns,
        tuning=None if controller.tuning is None else controller.tuning.status(),
        allocation=(
            None
            if turn_service.allocations is None
            else turn_service.allocations.status(controller.moves)
        ),
        refused=controller.refusals.total,
        policy_failures=turn_service.failures,
        dropped_observations=controller.archive.impossible,
    )


def as_seen_by(status: messages.Status, peer: Peer) -> messages.Status:
    """Return a status without what a peer may not know of other users' jobs: all but how many wait.

    An id has the name that its user gave the job, or that of its program.
    """
    if peer.is_trusted:
        return status
    jobs = [job for job in status.jobs if peer.sees(job.user)]
    own = {job.id for job in jobs}
    jobs = [structs.replace(job, behind=unnamed(job.behind, own)) for job in jobs]
    return structs.replace(
        status,
        jobs=jobs,
        modes={user: mode for user, mode in status.modes.items() if peer.may_read(user)},
        io_nodes=[
            structs.replace(
                each,
                jobs=[job for job in each.jobs if job in own],
                groups=_of_jobs(each.groups, own),
                in_service=_of_jobs(each.in_service, own),
            )
            for each in status.io_nodes
        ],
        file_systems=[
            structs.replace(
                each,
                transferring=[job for job in each.transferring if job in own],
                waiting=[job for job in each.waiting if job in own],
            )
            for each in status.file_systems
        ],
    )


def unnamed(jobs: Iterable[str], own: Container[str]) -> list[str]:
    """Return jobs without the names of those that are not a user's own."""
    return [job if job in own else OF_ANOTHER for job in jobs]


def _of_jobs(groups: dict[str, int] | UnsetType, jobs: set[str]) -> dict[str, int] | UnsetType:
    """Return the figures of some jobs; an I/O node for all users names them UID/job."""
    if groups is UNSET:
        return UNSET
    return {name: moved for name, moved in groups.items() if name.rpartition("/")[2] in jobs}


def _file_systems(controller: "Controller") -> list[FileSystemRecord]:
    moved = controller.jobs.bytes_by_file_system()
    records = []
    for number, each in enumerate(controller.deployment.all_file_systems):
        transferring, waiting = controller.turn_service.on_file_system(number)
        records.append(
            FileSystemRecord(
                number=number,
                name=each.name,
                roots=list(each.roots),
                bandwidth=each.bandwidth,
                bytes=moved.get(each.name, 0),
                transferring=transferring,
                waiting=waiting,
            )
        )
    return records


async def _io_node(controller: "Controller", io_node: IoNode) -> IoNodeRecord:
    record = IoNodeRecord(
        number=io_node.number,
        alive=io_node.node is not None,
        state=io_node.absence,
        deaths=io_node.deaths,
        jobs=controller.io_node_map.on(IoNodeId(io_node.number)),
    )
    if io_node.node is None:
        return record
    fields: dict[str, Any] = {"pid": io_node.node.pid, "id": io_node.node.id}
    if io_node.node.user:
        fields["user"] = io_node.node.user
    if controller.tuning is not None:
        fields |= structs.asdict(controller.tuning.node(io_node.number))
    try:
        answer = await controller.io_nodes.ask(
            io_node.number, messages.GetCounters(), messages.NodeCounters
        )
        if not isinstance(answer, messages.Failure):
            counters = structs.asdict(answer)
            del counters["node"]
            counters["bytes"] = answer.read_bytes + answer.write_bytes
            return structs.replace(record, **fields | counters | {"state": "serving"})
        why = answer.error
    except TimeoutError:
        why = f"no answer came within {ANSWER_TIMEOUT:g} s"
    except OSError as error:
        why = reason(error)
    silent, why = io_node.silence(controller.io_nodes.clock(), why)
    return structs.replace(record, **fields, state="not answering", silent_seconds=silent, why=why)


def with_progress(record: JobRecord, state: TurnState) -> JobRecord:
    """Return a job's record with what its phases did so far."""
    phases = state.phases
    return structs.replace(
        record,
        phases=phases,
        phase_bytes=state.bytes / phases if phases else None,
        phase_seconds=state.transferred / phases if phases else 0.0,
        phases_by_mode=dict(state.modes),
        turn_waited_seconds=state.waited,
        would_have_waited_seconds=state.would_have_waited,
        bandwidth=state.bandwidth or None,
        best_bandwidth=state.best or None,
    )


def with_turn(
    record: JobRecord,
    turns: Turns,
    id: JobId,
    *,
    moment: Moment,
    mode: str,
    longest_wait: float,
    now: float,
    watch: Watch,
) -> JobRecord:
    """Return a job's record with its phases and its turn; `id` is that of its turns."""
    state, manager = turns.states[id], turns.manager
    job, group, weight = manager.jobs[id], None, None
    with suppress(BaseException), watch():  # a policy file may raise anything, or never return
        group = manager.rule.group(job, turns.ledger)
        weight = manager.rule.weight(job, turns.ledger)
    period, phase = manager.period(id), state.phase
    record = structs.replace(
        with_progress(record, state),
        mode=mode,
        doing="computing" if record.state == "running" else record.state,
        group=None if group is Own.GROUP else str(group),
        weight=weight,
        w_iter=job.w_iter,
        iterations=period.iterations if period else 0,
        earlier_iterations=period.earlier_iterations if period else 0,
    )
    if phase is not None and not phase.observed:  # else its end says which part was a wait
        waited = state.waited + phase.waited_until(now)
        record = structs.replace(record, turn_waited_seconds=waited)
    if phase is None or record.state != "running":
        return record
    behind, ahead = moment.queues.ahead_of(id, BEHIND)
    if phase.is_waiting:
        return structs.replace(
            record,
            doing="waiting",
            since_seconds=now - phase.since,
            at_most_seconds=waits_at_most(phase, longest_wait, now),
            behind=behind,
            ahead=ahead,
        )
    since = now if phase.transfers_since is None else phase.transfers_since
    return structs.replace(
        record,
        doing="transferring",
        behind=behind if record.waits_on else [],
        ahead=ahead if record.waits_on else 0,
        since_seconds=now - since,
        share=turns.share(id, moment.totals),
        out_of_turn=not turns.has_turn(id),
    )


def waits_at_most(phase: Phase, longest: float, now: float) -> float:
    """Return how much longer a phase can wait.

    The controller counts from the beginning of the phase, turns that it lost since included; its
    agent counts waits only, also those before it yielded its turn.
    """
    return max(longest - max(now - phase.began, phase.waited_until(now)), 0.0)


class TurnWaits:
    """A histogram of the waits for turns, and their sum by user."""

    def __init__(self) -> None:
        self.counts = [0] * (len(WAIT_BOUNDS) + 1)
        self.seconds = 0.0
        self.by_user: defaultdict[str, float] = defaultdict(float)

    def add(self, seconds: float, user: str = "") -> None:
        """Count the wait of one phase."""
        self.counts[bisect_left(WAIT_BOUNDS, seconds)] += 1
        self.seconds += seconds
        self.by_user[user] += seconds
