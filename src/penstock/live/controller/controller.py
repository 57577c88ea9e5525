"""The controller of a deployment: its I/O nodes, its running jobs, and which job has which."""

import asyncio
import logging
import signal
import socket
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import msgspec

from penstock.errors import InputError
from penstock.identities import IoNodeId, io_nodes
from penstock.live.controller.application_requests import ApplicationRequests
from penstock.live.controller.detection import Detection, DetectionService
from penstock.live.controller.explain import advised
from penstock.live.controller.fair_messages import FairMessages
from penstock.live.controller.io_node_link import IoNodeLink
from penstock.live.controller.io_node_map import IoNodeMap, IoNodePath
from penstock.live.controller.io_node_weights import IoNodeWeights
from penstock.live.controller.io_nodes import IoNodes
from penstock.live.controller.job_table import JobArchive, JobEntry, JobObserver, JobTable
from penstock.live.controller.lines import LineReader, UnfinishedLines
from penstock.live.controller.listeners import LocalListener
from penstock.live.controller.pace import BEGINNINGS, CONNECTIONS, QUESTIONS, JobLog, Paces
from penstock.live.controller.peer import Peer, Quotas, RefusalLog, RefusedError
from penstock.live.controller.policy_watch import watched
from penstock.live.controller.received_shares import ReceivedShares
from penstock.live.controller.session import Session
from penstock.live.controller.status import site_status
from penstock.live.controller.supervise import run_forever
from penstock.live.controller.tuning import Tuning
from penstock.live.controller.turn_service import TurnService
from penstock.live.controller.turns import Moment
from penstock.live.controller.unreported_exits import UnreportedExits
from penstock.live.deployment.carrying import carry_token
from penstock.live.deployment.emulator import ProcessEnvironment
from penstock.live.deployment.spec import ANSWER_TIMEOUT, Deployment
from penstock.live.protocol import client, messages
from penstock.live.protocol.client import FullError
from penstock.live.protocol.exit_spool import ExitSpool
from penstock.live.protocol.job_record import JobRecord, PinnedIoNodes
from penstock.live.protocol.state_directory import StateDirectory
from penstock.live.protocol.stripe import check_stripe
from penstock.live.protocol.users import uid_of
from penstock.live.protocol.visitors import PER_PEER, Visitors
from penstock.live.store import Store, WriteBehind
from penstock.model import Assign, JobId
from penstock.records import RecordWriter, Retention

RECONNECT_SECONDS = 10.0
"""Seconds after which a job of an earlier controller that has not reconnected is lost."""
LONGEST_BACKLOG = 1 << 20
"""Bytes that may wait for a job that does not read."""
log = logging.getLogger("penstock.controller")


class Controller:
    """Answers on a Unix socket, and to other hosts, until it is stopped."""

    def __init__(
        self,
        deployment: Deployment,
        *,
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self.deployment = deployment
        self._clock, self._wall_clock = clock, wall_clock
        self.state = StateDirectory(Path(deployment.state))
        self.environment = ProcessEnvironment.prepare(
            deployment.emulate, deployment.roots, self.state.emulator
        )
        self.carry_token = (
            None if deployment.emulate is None else carry_token(self.state.carry_token)
        )
        self.io_node_map = IoNodeMap(
            deployment.all_io_nodes,
            stripe=deployment.stripe,
            partitions_of=deployment.config.live.partitions_of,
            clock=clock,
        )
        self.key = deployment.site_key()
        self.refusals = RefusalLog(clock)
        self.quotas = Quotas(deployment.config.live.user_jobs)
        self.messages = FairMessages(clock=clock)
        self.unfinished = UnfinishedLines()
        self.questions, self.beginnings = Paces(QUESTIONS, clock), Paces(BEGINNINGS, clock)
        self._connects = Paces(CONNECTIONS, clock)
        self._job_log = JobLog(clock)
        self.visitors = Visitors(
            per_peer=min(PER_PEER, max(self.quotas.most // 8, 1)),
            in_total=max(self.quotas.most // 2, 1),
            evicted=lambda peer: self.refusals.note(f"{peer}: too many connections without a job"),
        )
        store = WriteBehind(Store(deployment.store or f"sqlite:///{self.state.store}"))
        self.archive = JobArchive(store, wall_clock)
        self.jobs = JobTable(
            store.serial,
            store.totals,
            file_systems=[each.name for each in deployment.all_file_systems],
            clock=clock,
        )
        self.io_nodes = IoNodes(
            deployment,
            self.environment.io_node,
            up=self._node_up,
            down=self._node_down,
            clock=clock,
        )
        self._weights = IoNodeWeights(
            self.io_nodes,
            self._group,
            named=(lambda: self.jobs.running) if deployment.all_users else tuple,
        )
        self.turn_service = TurnService(
            deployment.config,
            io_nodes=deployment.all_io_nodes,
            file_systems=deployment.all_file_systems,
            send=self._send,
            set_weights=self._weights.set,
            path=self._path,
            assign=self._assign,
            release=self._release,
            learn=self.archive.learn,
            recall=self.archive.knowledge,
            clock=clock,
            wall_clock=wall_clock,
            emulated=deployment.emulate is not None,
            # Half a lease: the next heartbeat comes before gates open.
            watch=watched(deployment.config.live.seconds()[0] / 2),
            job_log=self._job_log,
        )
        self.detection = Detection(self.jobs.running, self.archive.keep_class)
        self.tuning = self._tuning()
        seconds, size = deployment.config.live.retention()
        keep = Retention(seconds=seconds, bytes=size)
        self.record_writer = RecordWriter(
            self.state.records,
            self.turn_service.header,
            keep=keep,
            clock=clock,
            wall_clock=wall_clock,
        )
        self.turn_service.record(self.record_writer)
        self.received = ReceivedShares()
        self.moves = 0
        """Times that the site's policies gave a running job other I/O nodes."""
        self.history = JobObserver()
        """The dashboard's history, if there is a dashboard."""
        self.unreported_exits = UnreportedExits(self, ExitSpool(self.state.exit_spool), wall_clock)
        self._writers: dict[str, asyncio.StreamWriter] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._connections: set[asyncio.Task[None]] = set()
        self._counted = asyncio.Condition()
        self._stop = asyncio.Event()
        self._stopped = asyncio.Event()

    def _tuning(self) -> Tuning | None:
        section = self.deployment.config.tuning
        if not section.tune or not self.io_nodes.nodes:
            return None
        return Tuning(
            section,
            self.deployment.settings,
            self.io_nodes,
            self.state.tuning,
            enforced=lambda: self.turn_service.modes.site == "enforce",
            detection=self.detection,
            applications=self.archive,
            clock=self._clock,
            wall_clock=self._wall_clock,
        )

    async def start(self) -> LocalListener:
        """Return once all I/O nodes serve; StartError: one does not."""
        await self.io_nodes.start()
        return LocalListener(
            self.state.controller,
            self._accept_local,
            all_users=self.deployment.all_users,
            admits=self.admits,
        )

    async def serve(self, server: LocalListener) -> None:
        """Serve until stopped; jobs that still run then continue directly."""
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, self._stop.set)
        background = {
            "heartbeats": self.turn_service.run,
            "gate slices": self.turn_service.run_slices,
            "unreported exits": self.unreported_exits.run,
        }
        if self.tuning is not None:
            background["tuning"] = self.tuning.run
        elif self.io_nodes.nodes:
            background["detection"] = DetectionService(
                self.deployment.config.tuning,
                self.io_nodes,
                self.detection,
                self.jobs.running,
                clock=self._clock,
            ).run
        tasks = [asyncio.create_task(run_forever(work, name)) for name, work in background.items()]
        asyncio.get_running_loop().call_later(RECONNECT_SECONDS, self._give_up)
        await self._stop.wait()
        for task in tasks:
            task.cancel()
        if self.tuning is not None:
            await self.tuning.save()
        log.info("stopping: running jobs that continue directly: %d", len(self.jobs.running))
        # Before the gates open: a call that waited there goes to no I/O node that is about to end.
        for job in list(self.jobs.running):
            self._push(job, messages.NodeMap(nodes=[]))
        self.turn_service.open_gates()
        self.state.deployment.unlink(missing_ok=True)
        await self.io_nodes.stop()
        self._stopped.set()
        server.close()
        # The client that asked for the stop gets its answer first.
        if self._connections:
            await asyncio.wait(self._connections, timeout=1.0)
        for connection in self._connections:
            connection.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        await asyncio.to_thread(self._close)

    def _give_up(self) -> None:
        if lost := self.archive.give_up():
            log.warning("%d jobs of an earlier controller did not reconnect", len(lost))
        for record in lost:
            self.jobs.remember(record)

    def _close(self) -> None:
        self.record_writer.close()
        self.archive.store.close()

    def _node_up(self, node: messages.Node) -> None:
        for job, mapped in self.io_node_map.node_up(node).items():
            self._push(job, mapped)
        self.turn_service.node_up(node)
        self._weights.send_again()
        if self.tuning is not None:
            self.tuning.up(node.number)

    def _node_down(self, number: int) -> None:
        for job, mapped in self.io_node_map.node_down(IoNodeId(number)).items():
            self._push(job, mapped)
        self.turn_service.node_down(number)
        self.detection.down(number)
        if self.tuning is not None:
            self.tuning.down(number)

    def _push(self, job: str, mapped: messages.NodeMap) -> None:
        if job in self._writers:
            self.jobs.running[job].maps += 1
            self._send(job, mapped)
            self.turn_service.mapped(job)

    def _send(self, job: str, message: messages.Message) -> None:
        writer = self._writers.get(job)
        if writer is None or writer.is_closing():
            return
        if writer.transport.get_write_buffer_size() > LONGEST_BACKLOG:
            writer.transport.abort()  # it does not read: it counts as lost, and opens its gate
            return
        writer.write(client.encode_line(message))

    def _path(self, job: str) -> IoNodePath:
        numbers = sorted(node.number for node in self.io_node_map.map(job).nodes)
        return IoNodePath(io_nodes(numbers), self.jobs.running[job].maps)

    def _assign(self, assign: Assign) -> None:
        """Give a job the arbiter's I/O nodes, unless it is pinned to others."""
        job = self.jobs.running.get(assign.job)
        if job is None or job.pinned or self.turn_service.modes.of(job.begin.user) != "enforce":
            return
        before = self.io_node_map.numbers(job.id)
        if set(before) == set(assign.resources):
            return
        stripe = self.deployment.stripe
        self._push(job.id, self.io_node_map.remap(job.id, io_nodes(assign.resources), stripe))
        job.io_nodes = self.io_node_map.numbers(job.id)
        self.history.changed(job.id)
        if job.id in self._writers:  # it runs
            self.moves += 1
            self._job_log.note(
                job.begin.user,
                "job %s is moved from I/O nodes %s to %s",
                *(job.id, sorted(before), sorted(job.io_nodes)),
            )

    def _release(self, id: JobId) -> None:
        """Give a job that is no longer enforced all its I/O nodes back, unless it is pinned."""
        job = self.jobs.running.get(id)
        if job is None or job.pinned or (mapped := self.io_node_map.release(id)) is None:
            return
        self._push(id, mapped)
        job.io_nodes = self.io_node_map.numbers(id)
        self.history.changed(id)
        text = "job %s is no longer enforced: it gets all its I/O nodes"
        self._job_log.note(job.begin.user, text, id)

    def begins_io(self, job: JobEntry) -> None:
        """A job is about to move data: choose its first I/O node by who else does."""
        if (mapped := self.io_node_map.begins_io(job.id)) is not None:
            self._push(job.id, mapped)

    def _group(self, job: JobId) -> str | None:
        """Return the name of a job's queue at the I/O nodes; None: it is gone."""
        if not self.deployment.all_users:
            return job
        entry = self.jobs.running.get(job)
        return None if entry is None else f"{uid_of(entry.begin.user)}/{job}"

    def _do_soon(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def admits(self, connection: socket.socket) -> bool:
        """Tell whether a user may have another connection already."""
        peer = Peer.from_socket(connection)
        if peer.rules or self._connects.delay(str(self.quotas.owner(peer)), at_most=0.0) == 0.0:
            return True
        self.refusals.note(f"{peer}: too many connections in a short time")
        return False

    async def _accept_local(self, reader: LineReader, writer: asyncio.StreamWriter) -> None:
        await self.accept(reader, writer, Peer.from_socket(writer.get_extra_info("socket")))

    async def accept(self, reader: LineReader, writer: asyncio.StreamWriter, peer: Peer) -> None:
        """Serve one connection to its end."""
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        session = Session(self, reader, writer, peer)
        try:
            if (refusal := session.enter()) is not None:
                writer.write(client.encode_line(refusal))
                return
            await self._serve(session, writer)
            # Jobs may end by the thousand at once. Who is cancelled meanwhile ends at once.
            await session.wait_to_close()
        finally:
            self._connections.discard(task)
            session.close()
            writer.close()

    async def _serve(self, session: Session, writer: asyncio.StreamWriter) -> None:
        """Answer what a connection sends, until its end."""
        try:
            while not (self._stopped.is_set() or session.over) and (text := await session.line()):
                answer = await session.handle(text)
                if answer is not None:
                    writer.write(client.encode_line(answer))
                    await writer.drain()
        except OSError:
            pass  # the connection broke, or sent an endless line

    def register_node(self, link: IoNodeLink) -> IoNodeLink:
        """Add an I/O node of another host."""
        self.io_nodes.join(link)
        self._do_soon(self.io_nodes.welcome(link))
        return link

    async def earlier(self, begin: messages.BeginJob, peer: Peer) -> JobRecord | None:
        """Look up the earlier incarnation of a reconnecting job, or None."""
        assert begin.resumes is not None
        running = self.jobs.running.get(begin.resumes)
        if running is not None and running.begin.user == begin.user:
            if running.begin.pid != begin.pid:
                return None
            # It reconnects before the end of its old connection was noticed.
            if (writer := self._writers.get(running.id)) is not None:
                writer.transport.abort()
            self.end(running, None)
            running = None
        earlier = None if running is not None else await self.archive.earlier(begin.resumes)
        owner = running.begin.user if running is not None else earlier and earlier.user
        if owner is not None and owner != begin.user:
            raise RefusedError(f"{peer} cannot resume {begin.resumes}: it is another user's")
        return earlier

    def begin(
        self,
        begin: messages.BeginJob,
        writer: asyncio.StreamWriter,
        peer: Peer,
        earlier: JobRecord | None = None,
    ) -> tuple[JobEntry, messages.JobAccepted]:
        """Begin a job and give it its I/O nodes."""
        if self._stop.is_set():
            # Not a refusal: the job runs its command without Penstock, as it would a moment later.
            raise ConnectionError("the deployment is stopping")
        if earlier is not None and earlier.state != "running":
            self.jobs.take_back(earlier)
        job = self.jobs.begin(begin, self._wall_clock(), peer.address)
        try:
            self.io_node_map.begin(
                job.id,
                begin.io_nodes,
                user=begin.user,
                partition=self.deployment.config.live.tied(begin.partition),
                local=peer.is_local,
                used=() if begin.resumes is None else set(io_nodes(map(int, begin.usage.io_nodes))),
            )
        except InputError:
            del self.jobs.running[job.id]
            raise
        try:
            return job, self._begin(job, writer, peer, earlier)
        except Exception as error:  # whatever failed, the command is to run
            log.exception("job %s cannot begin", job.id)
            self._undo(job)
            raise FullError(
                f"the controller could not begin job {job.id}: internal error, see its log"
            ) from error

    def _begin(
        self,
        job: JobEntry,
        writer: asyncio.StreamWriter,
        peer: Peer,
        earlier: JobRecord | None,
    ) -> messages.JobAccepted:
        job.agent = job.begin.pid if job.begin.pid == peer.pid else 0
        if earlier is not None and earlier.id == job.id:
            self.archive.resumed(job, earlier)
            self._pin_again(job, earlier.pinned)
        job.io_nodes = self.io_node_map.numbers(job.id)
        # The answer contains what the arbiter assigns now.
        self.turn_service.started(job, self.archive.knowledge(job))
        if (other := self.turn_service.another_member(job)) is not None:
            self.io_node_map.follow(job.id, other)
            job.pinned = self.jobs.running[other].pinned
        mapped = self.io_node_map.map(job.id)
        job.io_nodes, job.stripe = self.io_node_map.numbers(job.id), mapped.stripe
        self.archive.began(job.record(self._clock()))
        self._weights.job_began()
        self.received.began(job.id, self._clock(), job.moved_bytes)
        self._writers[job.id] = writer
        if self.tuning is not None:
            self.tuning.began(job, self._served_alone(job))
        self.history.began(job)
        began = "began" if job.reconnected is None else "reconnected"
        numbers = [node.number for node in mapped.nodes]
        self._job_log.note(job.begin.user, "job %s %s on I/O nodes %s", job.id, began, numbers)
        return messages.JobAccepted(
            job=job.id,
            roots=self.deployment.roots,
            file_systems=self.deployment.file_system_of_roots(),
            nodes=mapped.nodes,
            stripe=mapped.stripe,
            environment=self.environment.job(job.id),
            preload=self.environment.below,
            above=self.environment.above,
            mode=self.turn_service.modes.of(job.begin.user),
            lease=self.turn_service.lease,
            longest_wait=self.turn_service.longest_wait,
            token=self._token(job.begin.user),
            dirty_window=self.deployment.config.live.dirty_bytes(),
        )

    def _token(self, user: str) -> str:
        """Return what the I/O nodes that carry a user's data ask of it, in hexadecimal."""
        if self.carry_token is not None:
            return self.carry_token.hex()
        return "" if self.key is None else self.key.token(user).hex()

    def _pin_again(self, job: JobEntry, pinned: PinnedIoNodes | None) -> None:
        """Give a job the I/O nodes that it had asked for from an earlier controller, if it had."""
        if pinned is None:
            return
        if any(not 0 <= number < self.deployment.all_io_nodes for number in pinned.io_nodes):
            log.warning("job %s: there are fewer I/O nodes than it had asked for", job.id)
            return
        in_order = job.begin.io_nodes is None  # a person named them
        self.io_node_map.remap(job.id, io_nodes(pinned.io_nodes), pinned.stripe, in_order=in_order)
        job.pinned = True

    def _undo(self, job: JobEntry) -> None:
        """Leave nothing of a job that could not begin."""
        self.jobs.running.pop(job.id, None)
        self._writers.pop(job.id, None)
        self.io_node_map.end(job.id)
        self.received.ended(job.id)
        try:
            self.turn_service.ended(job)
        finally:
            if job.id not in self.archive.unclaimed:
                self.archive.store.forget(job.id)

    def _served_alone(self, job: JobEntry) -> set[int]:
        """Return the I/O nodes that no other running job uses."""
        others = (other.io_nodes for other in self.jobs.running.values() if other is not job)
        return set(job.io_nodes).difference(*others)

    def end(self, job: JobEntry, status: int | None) -> str:
        """End a job; without a status its connection broke. Return advice for its user."""
        if self.jobs.running.get(job.id) is not job:
            return ""  # it reconnected
        job.out_of_reach = self.io_node_map.out_of_reach(job.id)
        self.jobs.end(job, status, self._wall_clock())
        self.io_node_map.end(job.id)
        self._writers.pop(job.id, None)
        record = self.record(job)
        self.turn_service.ended(job)
        self.jobs.remember(record)
        self.archive.ended(record)
        self.history.ended(job)
        self.received.ended(job.id)
        if job.agent:
            self.state.agent_socket(job.agent).unlink(missing_ok=True)
        lost = "continues without a controller" if self._stop.is_set() else "was lost"
        ended = lost if status is None else f"ended with {status}"
        self._job_log.note(job.begin.user, "job %s %s", job.id, ended)
        return advised(record, self.turn_service.policy) if record.mode == "advise" else ""

    def record(self, job: JobEntry, moment: Moment | None = None) -> JobRecord:
        """Return the record of a job, with its turn; `moment` is that of many jobs."""
        if self.jobs.running.get(job.id) is job:
            job.out_of_reach = self.io_node_map.out_of_reach(job.id)
        record = self.turn_service.describe(job.record(self._clock()), moment)
        return msgspec.structs.replace(record, received=self.share_received(job))

    def share_received(self, job: JobEntry) -> float | None:
        """Return the share that a job, on all its hosts, receives; None: it moves no data now."""
        service = self.turn_service
        id = service.turn_id(job.id)
        state = None if id is None else service.turns.states.get(id)
        since = None if state is None or state.phase is None else state.phase.moves_since
        if id is None or since is None or job.state != "running":
            return None
        return self.received.received(service.members(id), self._clock(), since)

    def job_records(self, peer: Peer | None = None) -> list[JobRecord]:
        """Return all jobs that are listed, or those that a peer sees, the oldest first."""
        ended, running = self.jobs.ended(), list(self.jobs.running.values())
        if peer is not None:
            users = {job.user for job in ended} | {job.begin.user for job in running}
            seen = set(filter(peer.sees, users))
            ended = [job for job in ended if job.user in seen]
            running = [job for job in running if job.begin.user in seen]
        moment = self.turn_service.turns.moment()
        return [*ended, *(self.record(job, moment) for job in running)]

    async def remap(self, remap: messages.Remap) -> None:
        """Give a running job other I/O nodes; return when it uses them."""
        job = self.jobs.find(remap.job)
        check_stripe(remap.stripe, f"stripe {remap.stripe}")
        job.pinned = True
        mapped = self.io_node_map.remap(job.id, io_nodes(remap.nodes), remap.stripe, in_order=True)
        self._push(job.id, mapped)
        job.io_nodes, job.stripe = self.io_node_map.numbers(job.id), mapped.stripe
        self.turn_service.pinned(job)
        self.archive.progressed(self.turn_service.progress(job.record(self._clock())))
        self.history.changed(job.id)
        log.info("job %s is remapped to I/O nodes %s", job.id, remap.nodes)
        expected = job.maps
        try:
            async with asyncio.timeout(ANSWER_TIMEOUT), self._counted:
                await self._counted.wait_for(
                    lambda: job.state != "running" or job.counters.get("maps", 0) >= expected
                )
        except TimeoutError:
            raise InputError(f"job {job.id} does not answer; its new map is on its way") from None

    def application_requests(self, peer: Peer) -> ApplicationRequests:
        """Return what answers a peer's requests about applications."""
        return ApplicationRequests(
            self.archive.store,
            peer,
            io_nodes=self.deployment.all_io_nodes,
            clock=self._wall_clock,
        )

    async def counted(self, job: JobEntry, counters: dict[str, int], usage: messages.Usage) -> None:
        """Handle a job's counters."""
        self.turn_service.mark_alive(job)
        async with self._counted:
            job.counters, job.usage = counters, usage
            self._counted.notify_all()
        if self.jobs.running.get(job.id) is job:
            self.io_node_map.used(job.id, io_nodes(job.io_nodes_used))
            self.received.counted(job.id, self._clock(), job.moved_bytes)
            self.archive.progressed(self.turn_service.progress(job.record(self._clock())))
        self.history.counted(job)

    async def stop(self) -> None:
        """Stop; return when the I/O nodes have ended."""
        self._stop.set()
        await self._stopped.wait()

    async def status(self, peer: Peer | None = None) -> messages.Status:
        """Return the status, with the I/O nodes' own counters; of a peer, it is charged for it."""
        return await site_status(self, peer)
