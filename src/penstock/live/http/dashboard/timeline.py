"""The timeline: one answer per second for each dashboard, built in steps that delay no turn."""

import asyncio
import secrets
from collections.abc import Iterable, Mapping
from heapq import nlargest
from itertools import islice
from typing import TYPE_CHECKING

import msgspec
from msgspec import UNSET

from penstock.live.controller.status import waits_at_most
from penstock.live.controller.supervise import Steps
from penstock.live.http.dashboard.history import WINDOW, History
from penstock.live.http.dashboard.lanes import Lane
from penstock.live.http.dashboard.sampler import Sampler
from penstock.live.http.dashboard.schema import LaneJob, Timeline, UserNow
from penstock.live.protocol.job_record import direct_bytes, fail_opens, forwarded_bytes
from penstock.model import JobId

if TYPE_CHECKING:
    from penstock.live.controller.controller import Controller

BEHIND = 8
"""Jobs ahead of a waiting one that are named."""
USERS = 100
COMMAND_LENGTH = 200
_DOING = {"io": "transferring", "wait": "waiting", "would-wait": "would wait", None: "computing"}
Queue = Mapping[JobId, tuple[list[JobId], int]]


class TimelineBuilder:
    """Builds timelines from a controller's history."""

    def __init__(self, controller: "Controller", history: History, sampler: Sampler) -> None:
        self._controller, self._history, self._sampler = controller, history, sampler
        self._run = secrets.token_hex(6)
        self._lock = asyncio.Lock()

    async def answer(self, cursor: str | None, *, private: bool) -> bytes:
        """Return a Timeline since a cursor as JSON; `private`: include what is private to users."""
        async with self._lock:  # one dashboard after the other
            return await self._answer(cursor, private=private)

    async def _answer(self, cursor: str | None, *, private: bool) -> bytes:
        history, lanes = self._history, self._history.lanes
        since = self._since(cursor)
        # Later changes have a later revision: the next answer has them, possibly again.
        head = self._head(since)
        now = head.now
        all_lanes = list(lanes.by_id.values())
        queue = self._queue()
        # A job in a phase may have another share, or other jobs ahead of it, without an event.
        changed = [lane for lane in all_lanes if lane.revision > since or lane.kind is not None]
        jobs: list[bytes] = []
        intervals: list[bytes] = []
        steps = Steps()
        for lane in all_lanes:
            if newer := lane.intervals_since(since):
                intervals.append(b",".join(newer))  # per lane: joining all at once takes long
            await steps.pause()
        for lane in changed:
            jobs.append(msgspec.json.encode(self.job(lane, queue, private=private)))
            await steps.pause()
        for lane in all_lanes:
            if lane.kind is not None:
                share = round(history.mean_share(lane, max(now, history.now())), 4)
                interval = (lane.job.id, lane.kind, round(lane.since, 4), None, share)
                intervals.append(msgspec.json.encode(interval))
            await steps.pause()
        head = msgspec.structs.replace(head, known_since=lanes.known_since)  # meanwhile
        if private:
            head = msgspec.structs.replace(head, users=await self._users(all_lanes))
        lists = {"jobs": jobs, "stretches": intervals}
        raw = {name: msgspec.Raw(b"[" + b",".join(x) + b"]") for name, x in lists.items()}
        return msgspec.json.encode(msgspec.structs.replace(head, **raw))

    def _since(self, cursor: str | None) -> int:
        """Return the revision of a cursor; -1: everything must be sent."""
        run, _, revision = (cursor or "").partition("-")
        if run != self._run or not (revision.isascii() and revision.isdigit()):
            return -1
        lanes = self._history.lanes
        since = int(revision[:18])
        return since if lanes.dropped <= since <= lanes.revision else -1

    def _head(self, since: int) -> Timeline:
        controller, sampler = self._controller, self._sampler
        turn_service, lanes = controller.turn_service, self._history.lanes
        totals = sampler.totals
        return Timeline(
            cursor=f"{self._run}-{lanes.revision}",
            whole=since < 0,
            now=self._history.now(),
            window=WINDOW,
            known_since=lanes.known_since,
            site=controller.deployment.site_name,
            policy=turn_service.policy,
            scope=turn_service.header.scope,
            file_systems=[each.name for each in controller.deployment.all_file_systems],
            mode=turn_service.modes.site,
            bandwidth=turn_service.turns.ledger.site.bandwidth,
            kill_switch=turn_service.modes.site == "off",
            emulated=controller.deployment.emulate is not None,
            tuned=controller.tuning is not None,
            turns=turn_service.turns.turns,
            fail_opens=totals.fail_opens,
            policy_failures=turn_service.failures,
            forwarded_bytes=totals.forwarded_bytes,
            direct_bytes=totals.direct_bytes,
            gone=[id for revision, id in lanes.removed if revision > since] if since >= 0 else [],
            samples=sampler.since(since),
            io_nodes=sampler.io_nodes,
        )

    def _queue(self) -> Queue:
        """Return the jobs ahead of each waiting job: the next ones, and how many in all."""
        queue: dict[JobId, tuple[list[JobId], int]] = {}
        for transferring, waiting in self._history.turns.manager.queues():
            ahead = [*transferring, *waiting]
            for k, id in enumerate(waiting, len(transferring)):
                queue[id] = (ahead[: min(k, BEHIND)], k)
        return queue

    def job(self, lane: Lane, queue: Queue | None = None, *, private: bool) -> LaneJob:
        """Return a job of the timeline."""
        turn_service, history, job = self._controller.turn_service, self._history, lane.job
        id, counters, over = turn_service.turn_id(job.id), job.counters, job.state != "running"
        began, begin = history.epoch + job.since, job.begin
        model = None if id is None else history.turns.manager.jobs.get(id)
        behind, ahead, most = list[JobId](), 0, None
        uses, waits_on = ([], []) if id is None else turn_service.file_systems(id)
        if (lane.kind in {"wait", "would-wait"} or waits_on) and id is not None:
            behind, ahead = (self._queue() if queue is None else queue).get(id, ([], 0))
            phase = history.turns.states[id].phase
            if phase is not None and phase.is_waiting:
                most = waits_at_most(phase, turn_service.longest_wait, history.clock())
        failed = private and job.state == "ended" and job.status
        # Not from the job's whole record: that asks the host for the user's number.
        return LaneJob(
            id=job.id,
            serial=job.serial,
            state="failed" if failed else job.state,
            began=began,
            seconds=history.now() - began if job.lasted is None else job.lasted,
            ended=None if job.lasted is None else began + job.lasted,
            nodes=begin.nodes,
            processes=begin.processes,
            io_nodes=list(job.io_nodes),
            io_nodes_used=job.io_nodes_used,
            file_systems=list(dict.fromkeys([*job.bytes_by_file_system, *uses])),
            waits_on=[] if over else waits_on,
            zero_bytes_reason=job.zero_bytes_reason if private else UNSET,
            doing=job.state if over else _DOING[lane.kind],
            since=lane.since,
            share=history.shares.share(lane) if lane.kind == "io" else 0.0,
            received=self._controller.share_received(job),
            turn_waited_seconds=counters.get("turn_waited", 0) / 1e9,
            behind=behind,
            ahead=ahead,
            at_most_seconds=most,
            w_iter=_w_iter(lane) if model is None else model.w_iter,
            pattern=lane.patterns[-1][1] if lane.patterns else None,
            forwarded_bytes=forwarded_bytes(counters),
            direct_bytes=direct_bytes(counters),
            rate=lane.rate,
            waits=counters.get("waits", 0),
            waited_seconds=counters.get("waited", 0) / 1e9,
            fail_opens=fail_opens(counters),
            mode=turn_service.modes.of(begin.user) if private else UNSET,
            user=begin.user if private else UNSET,
            name=begin.name if private else UNSET,
            command=_command(begin.command) if private else UNSET,
        )

    async def _users(self, lanes: Iterable[Lane]) -> list[UserNow]:
        users: dict[str, UserNow] = {}
        steps = Steps()
        for lane in lanes:
            name, counters = lane.job.begin.user, lane.job.counters
            if name not in users:
                users[name] = UserNow(name, 0, 0, 0, 0.0, 0.0)
            user = users[name]
            user.jobs += lane.job.state == "running"
            user.forwarded_bytes += forwarded_bytes(counters)
            user.direct_bytes += direct_bytes(counters)
            user.rate += lane.rate
            user.waited_seconds += counters.get("waited", 0) / 1e9
            await steps.pause()
        return nlargest(
            USERS, users.values(), key=lambda u: (u.rate, u.forwarded_bytes + u.direct_bytes)
        )


def _w_iter(lane: Lane) -> float | None:
    return lane.phases[-1].w_iter if lane.phases else None


def _command(words: list[str]) -> str:
    """Return a command line, cut: users choose its length."""
    text = " ".join(word[:COMMAND_LENGTH] for word in islice(words, COMMAND_LENGTH))
    return text if len(text) <= COMMAND_LENGTH else text[: COMMAND_LENGTH - 1] + "…"
