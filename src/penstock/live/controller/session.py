"""One connection to the controller: of a job's agent, a command, or a remote I/O node."""

import asyncio
from typing import TYPE_CHECKING, Any

import msgspec

from penstock.errors import InputError
from penstock.live.controller.application_requests import REQUESTS
from penstock.live.controller.io_node_link import IoNodeLink
from penstock.live.controller.job_table import JobEntry
from penstock.live.controller.lines import LineReader
from penstock.live.controller.pace import PHASES, Pace, TooFastError, check_delay
from penstock.live.controller.peer import Peer, RefusedError
from penstock.live.controller.status import as_seen_by
from penstock.live.protocol import messages
from penstock.live.protocol.client import FullError
from penstock.live.protocol.visitors import Visit

if TYPE_CHECKING:
    from penstock.live.controller.controller import Controller

_TO_CONTROLLER = (
    messages.BeginJob
    | messages.PhaseBegan
    | messages.PhaseEnded
    | messages.Idle
    | messages.JobCounters
    | messages.JobExit
    | messages.UnreportedExit
    | messages.Remap
    | messages.SetMode
    | messages.GetStatus
    | REQUESTS
    | messages.Stop
    | messages.RegisterNode
)
_REPORTS = (
    messages.PhaseBegan
    | messages.PhaseEnded
    | messages.Idle
    | messages.JobCounters
    | messages.JobExit
)
"""Of a job, while there is one."""


class Session:
    """One connection, with at most one job, which lasts as long as the connection."""

    def __init__(
        self,
        controller: "Controller",
        reader: LineReader,
        writer: asyncio.StreamWriter,
        peer: Peer,
    ) -> None:
        self.over = False
        """Whether it ends with the answer to what came last."""
        self._controller = controller
        self._reader = reader
        self._writer = writer
        self._peer = peer
        self._job: JobEntry | None = None
        self._link: IoNodeLink | None = None
        self._inside = False
        self._pace = Pace(PHASES)
        self._visit: Visit | None = None  # until it has a job
        self._user: str | None = None  # who is charged for its job
        self._charged = peer.charged  # for its messages
        self._waited = 0.0  # seconds since the last message came
        close = writer.transport.abort
        reader.kept = lambda size: controller.unfinished.keep(self._charged, close, size)
        self._applications = controller.application_requests(peer)

    def enter(self) -> messages.Failure | None:
        """Count the connection; return the answer if it is refused."""
        try:
            self._controller.quotas.enter(self._peer)
        except (FullError, RefusedError) as error:
            return self._refusal(error)
        self._inside = True
        if not self._peer.is_trusted:
            close = self._writer.transport.abort
            self._visit = self._controller.visitors.enter(str(self._peer), close)
        return None

    async def line(self) -> bytes:
        """Return the next line; TimeoutError: whoever is no job says nothing."""
        if self._visit is None:
            return await self._reader.readline()
        return await self._controller.visitors.line(self._reader)

    def _end_visit(self) -> None:
        if self._visit is not None:
            self._controller.visitors.leave(str(self._peer), self._visit)
            self._visit = None

    def _refusal(self, error: InputError) -> messages.Failure:
        self._controller.refusals.note(str(error))
        return messages.Failure(error=str(error), full=isinstance(error, FullError))

    async def handle(self, text: bytes) -> messages.Message | None:
        """Handle one line when it is this user's turn; return its answer, if it has one."""
        self._waited = await self._controller.messages.next_of(self._charged)
        if self._link is not None:
            self._link.receive(text)
            return None
        try:
            message = messages.decode(text, _TO_CONTROLLER)
            if self._is_request(message):
                await self._wait_in_time(
                    self._controller.questions.wait(self._charged, self._waited)
                )
            return await self._do(message)
        except TooFastError as error:
            self.over = True
            return self._refusal(error)
        except (FullError, RefusedError) as error:
            return self._refusal(error)
        except msgspec.DecodeError as error:
            self._controller.refusals.note(f"{self._peer}: {error}")
            # Agents of a later version send what this controller does not know.
            self.over = self._job is None or self._job.begin.protocol <= messages.PROTOCOL
            return messages.Failure(error=str(error))
        except InputError as error:
            return messages.Failure(error=str(error))

    async def wait_to_close(self) -> None:
        """Wait until it is this user's turn to have the end of its job handled."""
        if self._job is not None:
            await self._controller.messages.next_of(self._charged)

    def close(self) -> None:
        """The connection has ended."""
        if self._job is not None:
            self._controller.end(self._job, None)
            self._job = None
        self._end_visit()
        if self._inside:
            self._controller.quotas.leave(self._peer, self._user)
        self._controller.io_nodes.leave(self._link)

    async def _do(self, message: Any) -> messages.Message | None:
        match message:
            case messages.BeginJob():
                self._job, accepted = await self._begin(message)
                return accepted
            case (
                messages.PhaseBegan()
                | messages.PhaseEnded()
                | messages.Idle()
                | messages.JobCounters()
            ):
                if self._job is not None and self._job.state == "running":
                    await self._report(self._job, message)
                return None
            case messages.JobExit():
                if self._job is not None:
                    job, self._job = self._job, None
                    job.counters, job.usage = message.counters, message.usage
                    advice = self._controller.end(job, message.status)
                    await self._controller.counted(job, message.counters, message.usage)
                    return messages.Done(advice=advice)
            case messages.UnreportedExit():
                await self._controller.unreported_exits.accept(message, self._peer)
            case messages.RegisterNode(node=node):
                self._peer.check_node()
                self._link = self._controller.register_node(IoNodeLink(node, self._writer))
            case messages.SetMode():
                self._peer.check_rule("change a mode")
                self._controller.turn_service.set_mode(message)
            case messages.Remap():
                self._peer.check_rule("remap a job")
                await self._controller.remap(message)
            case messages.GetStatus():
                status = msgspec.structs.replace(
                    await self._controller.status(self._peer),
                    directories=self._controller.jobs.directories(self._peer.may_read),
                )
                return as_seen_by(status, self._peer)
            case (
                messages.GetApplications()
                | messages.ImportKnowledge()
                | messages.ForgetApplications()
            ):
                return self._applications.answer(message)
            case messages.Stop():
                self._peer.check_rule("stop the deployment")
                await self._controller.stop()
        return messages.Done()

    async def _begin(self, begin: messages.BeginJob) -> tuple[JobEntry, messages.JobAccepted]:
        delay = self._delay_of_job(begin)
        if self._job is not None:
            raise InputError("this connection already has a job")
        self._peer.check_user(begin.user)
        if self._peer.is_trusted:
            self._charged = f"user {begin.user}"
        if self._user is None:
            self._controller.quotas.begin(begin.user)
            self._user = begin.user
        self._end_visit()  # it has a job's place while it waits
        await self._wait_in_time(delay)
        earlier = None
        if begin.resumes is not None:
            earlier = await self._controller.earlier(begin, self._peer)
            ended = earlier is not None and earlier.state == "ended"
            # A job that began just before the controller was killed may not be in the store.
            unknown = earlier is None and not self._controller.archive.may_exist(begin.resumes)
            if ended or unknown:  # it cannot have had this id
                begin, earlier = msgspec.structs.replace(begin, resumes=None), None
        return self._controller.begin(begin, self._writer, self._peer, earlier)

    def _is_request(self, message: messages.Message) -> bool:
        """Tell whether a message is one that users send now and then."""
        reports = self._job is not None and isinstance(message, _REPORTS)
        return not (self._peer.is_trusted or reports or isinstance(message, messages.BeginJob))

    def _delay_of_job(self, begin: messages.BeginJob) -> float:
        """Return for how many seconds a job that begins has to wait, unless it reconnects."""
        earlier = self._controller.archive.unclaimed.get(begin.resumes or "")
        reconnects = earlier is not None and self._peer.may_read(earlier.user)
        if self._peer.is_trusted or reconnects:
            return 0.0
        return self._controller.beginnings.wait(self._charged, self._waited)

    async def _wait(self, delay: float) -> None:
        """Wait until what came too soon may be handled, and it is this user's turn again."""
        if delay > 0.0:
            await asyncio.sleep(delay)
            self._waited += delay + await self._controller.messages.next_of(self._charged)

    async def _wait_in_time(self, delay: float) -> None:
        """Wait for no longer than whoever sent the request does."""
        await self._wait(delay)
        if delay > 0.0:
            check_delay(self._charged, self._waited)

    async def _report(self, job: JobEntry, message: messages.Message) -> None:
        """Handle a job's message that has no answer."""
        match message:
            case messages.PhaseBegan():
                # Nothing more is read of this connection meanwhile: the flood waits at its source.
                await self._wait(self._pace.delay())
                if job.state != "running":
                    return
                job.phase_seen = True
                self._controller.begins_io(job)
                self._controller.turn_service.phase_began(job, message)
            case messages.PhaseEnded():
                self._controller.turn_service.phase_ended(job, message)
            case messages.Idle():
                self._controller.turn_service.idle(job, message)
            case messages.JobCounters():
                await self._controller.counted(job, message.counters, message.usage)
