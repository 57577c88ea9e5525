"""The agent of a node: serves the jobs of a batch system, from their prolog to their epilog.

Hooks connect to one Unix socket, and exchange one JSON line each way. Every job has a folder below
the agent's, with a socket for the job's user alone and the environment of its tasks.
"""

import asyncio
import logging
import os
import shutil
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, asynccontextmanager, closing, suppress
from functools import partial
from pathlib import Path

import msgspec

from penstock.errors import InputError
from penstock.files import reason
from penstock.live.agent import page_server
from penstock.live.agent.job_agent import JobAgent, begin_job
from penstock.live.agent.page_server import PageServer, create_pages
from penstock.live.agent.user_keys import user_key
from penstock.live.protocol import client, messages
from penstock.live.protocol.client import ControlConnection, FullError
from penstock.live.protocol.exit_spool import ExitSpool
from penstock.live.protocol.hook_messages import (
    AdoptJob,
    AgentDirectory,
    GetUserKey,
    JobEnvironment,
    JobList,
    ListJobs,
    ReleaseJob,
)
from penstock.live.protocol.preload import readable_by_all, with_asan
from penstock.live.protocol.site_key import RemoteController, SiteKey
from penstock.live.protocol.state_directory import StateDirectory, hold_lock, write_holder
from penstock.live.protocol.users import SubordinateIds, peer_credentials
from penstock.live.protocol.visitors import Visitors
from penstock.printable import printable

REQUEST_TIMEOUT = 5.0
"""Seconds for a hook to send its request."""
MAX_REQUEST_BYTES = 1 << 16
REAP_INTERVAL = 10.0
THREADS = 32
CONTROLLER_TIMEOUT = 5.0
"""Seconds for the controller to accept a job. A hook waits for less; the tasks that start after the
job is accepted are still managed."""

log = logging.getLogger("penstock.agent")


class NodeAgent:
    """Serves hooks until it ends; the calls of jobs that still run then pass through.

    `find_ended(jobs)` returns the jobs that ended without an epilog; it may block.
    """

    def __init__(
        self,
        folder: AgentDirectory,
        controller: Path | RemoteController,
        *,
        find_ended: Callable[[Collection[str]], list[str]] = lambda _: [],
        reap_interval: float = REAP_INTERVAL,
        request_timeout: float = REQUEST_TIMEOUT,
    ) -> None:
        self.folder = folder
        self.jobs: dict[str, AdoptedJob] = {}
        self._controller = controller
        self._is_remote = isinstance(controller, RemoteController)
        self._exit_spool = ExitSpool(
            folder.exit_spool
            if isinstance(controller, RemoteController)
            else StateDirectory(controller.parent).exit_spool
        )
        self._find_ended = find_ended
        self._reap_interval = reap_interval
        self._visitors = Visitors(silent_seconds=request_timeout)
        self._subordinate_ids = SubordinateIds()
        self._locks = [asyncio.Lock() for _ in range(64)]  # one request of a job at a time

    async def serve(self, ready: Callable[[], object]) -> None:
        """Serve until SIGTERM or SIGINT; call `ready` once hooks can connect."""
        stop = asyncio.Event()
        # A controller that does not answer blocks one thread per job.
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(THREADS))
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
        await asyncio.gather(*map(self._adopt_again, self.folder.adopted_jobs()))
        self.folder.control.unlink(missing_ok=True)
        server = await asyncio.start_unix_server(
            partial(self._accept, self.answer),
            self.folder.control,
            limit=MAX_REQUEST_BYTES,
            backlog=1024,
        )
        reaping = asyncio.create_task(self._reap())
        try:
            async with server, self._giving_keys():
                ready()
                await stop.wait()
        finally:
            reaping.cancel()
            await asyncio.gather(reaping, return_exceptions=True)
            for job in list(self.jobs):
                await self.end(job, 0)
            self.folder.control.unlink(missing_ok=True)

    @asynccontextmanager
    async def _giving_keys(self) -> AsyncIterator[None]:
        """Give users their keys, if this is root's agent, which has the site key."""
        controller, path = self._controller, self.folder.users
        path.unlink(missing_ok=True)
        if not isinstance(controller, RemoteController) or not isinstance(controller.key, SiteKey):
            yield
            return
        key = controller.key

        async def give(text: bytes, uid: int) -> messages.Message:
            messages.decode(text, GetUserKey)
            return user_key(key, uid)

        server = await asyncio.start_unix_server(
            partial(self._accept, give), path, limit=MAX_REQUEST_BYTES
        )
        path.chmod(0o666)
        try:
            async with server:
                yield
        finally:
            path.unlink(missing_ok=True)

    async def _accept(
        self,
        answer: Callable[[bytes, int], Awaitable[messages.Message]],
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        """Answer one request, which the user of the other end makes.

        Nothing answers one that does not come in time, is too long, or is not one.
        """
        with suppress(OSError, ValueError), closing(writer):
            _, uid = peer_credentials(writer.get_extra_info("socket"))
            if self._subordinate_ids.owner(uid) is not None:
                return  # one user must not connect as thousands
            with self._visitors.visiting(uid, writer.transport.abort):
                text = await self._visitors.line(reader)
            writer.write(client.encode_line(await answer(text, uid)))
            await writer.drain()

    async def answer(self, text: bytes, _: int = 0) -> messages.Message:
        """Return the answer to a request of a hook."""
        try:
            match messages.decode(text, AdoptJob | ReleaseJob | ListJobs):
                case AdoptJob() as adopt:
                    return await self.adopt(adopt)
                case ReleaseJob() as release:
                    await self.release(release)
                    return messages.Done()
                case _:
                    return JobList(jobs=sorted(self.jobs))
        except (InputError, msgspec.DecodeError, OSError) as error:
            log.warning("refused: %s", reason(error))
            return messages.Failure(error=reason(error))

    async def adopt(self, adopt: AdoptJob) -> JobEnvironment:
        """Adopt a job, unless it is adopted already."""
        if os.geteuid() != 0 and adopt.uid != os.geteuid():
            raise InputError(f"job {adopt.job} is another user's; only an agent of root adopts it")
        async with self._lock(adopt.job):
            job = self.jobs.get(adopt.job)
            if job is not None and job.adopt.uid != adopt.uid:
                # The batch system started again with its first number.
                await self._end(adopt.job, 0)
                job = None
            if job is None:
                folder = self.folder.job(adopt.job)
                job = await asyncio.to_thread(
                    AdoptedJob, adopt, self._controller, folder, self._exit_spool
                )
                self.jobs[adopt.job] = job
                log.info("job %s of %s adopted", adopt.job, adopt.user)
            job.nodes.add(adopt.node)
            return JobEnvironment(environment=job.environment)

    async def _adopt_again(self, adopt: AdoptJob) -> None:
        try:
            await self.adopt(adopt)
        except (InputError, OSError) as error:
            log.warning("job %s continues without an agent: %s", adopt.job, reason(error))
            shutil.rmtree(self.folder.job(adopt.job), ignore_errors=True)

    async def release(self, release: ReleaseJob) -> None:
        """Release a job once every node that this host represents has released it."""
        async with self._lock(release.job):
            job = self.jobs.get(release.job)
            if job is not None:
                job.nodes.discard(release.node)
                if not job.nodes:
                    await self._end(release.job, release.status)

    async def end(self, job: str, status: int) -> None:
        """Release a job, on all its nodes."""
        async with self._lock(job):
            await self._end(job, status)

    async def _end(self, job: str, status: int) -> None:
        adopted = self.jobs.pop(job, None)
        if adopted is not None:
            await asyncio.to_thread(adopted.end, status)
            log.info("job %s released", job)

    def _lock(self, job: str) -> asyncio.Lock:
        return self._locks[hash(job) % len(self._locks)]

    async def _reap(self) -> None:
        while True:
            await asyncio.sleep(self._reap_interval)
            await self._deliver_exits()
            if self.jobs:
                for job in await asyncio.to_thread(self._find_ended, list(self.jobs)):
                    log.warning("job %s has ended without an epilog: released", job)
                    await self.end(job, 0)

    async def _deliver_exits(self) -> None:
        """Send unreported exits to a controller of another host; a local one reads the spool."""
        if self._is_remote:
            with suppress(OSError, InputError):  # it is not back yet
                await asyncio.to_thread(
                    self._exit_spool.deliver, partial(connect, self._controller)
                )


def serve(agent: NodeAgent, ready: Callable[[], object]) -> None:
    """Run as the agent of this node, or raise InputError if there is one already."""
    os.umask(0o077)
    agent.folder.create()
    try:
        with hold_lock(agent.folder.lock) as lock:
            write_holder(lock, os.getpid())
            asyncio.run(agent.serve(ready))
    except BlockingIOError:
        raise InputError(
            f"an agent serves {agent.folder.path} already; end it, or give another --run"
        ) from None


class AdoptedJob:
    """A job on this node, from its adoption to its release.

    Raises InputError if there is no controller, or it refuses the job; OSError if it does not
    answer.
    """

    def __init__(
        self,
        adopt: AdoptJob,
        address: Path | RemoteController,
        folder: Path,
        exit_spool: ExitSpool | None = None,
    ) -> None:
        self.adopt = adopt
        self.nodes = {adopt.node}
        with ExitStack() as stack:
            try:
                controller = stack.enter_context(connect(address))
            except OSError as error:
                option = "--controller" if isinstance(address, RemoteController) else "--state"
                raise InputError(
                    f"no controller at {address} ({reason(error)}); start it with 'penstock up', "
                    f"or give 'penstock agent' the right {option}"
                ) from error
            for refusal in adopt.refused:
                log.warning("job %s of %s: %s", adopt.job, adopt.user, printable(refusal))
            begin, accepted = _accepted(controller, _begin(adopt), adopt.uid)
            stack.callback(shutil.rmtree, folder, ignore_errors=True)
            _create_folder(folder, adopt)
            pages = stack.enter_context(create_pages(accepted))
            server = stack.enter_context(PageServer(pages, folder / "agent.sock"))
            _give_to_user(server.path, adopt)
            self.environment = _environment(accepted, server.path, folder.parent.parent / "lib")
            _write(folder / "environment", self.environment, adopt)
            self._agent = JobAgent(
                controller,
                begin,
                accepted,
                pages,
                partial(connect, address),
                uid=adopt.uid,
                exit_spool=exit_spool,
            )
            self._stack = stack.pop_all()

    def end(self, status: int) -> None:
        """Release the job: the calls of processes that still run pass through."""
        self._agent.end(status)
        self._stack.close()


def connect(address: Path | RemoteController) -> ControlConnection:
    """Connect to the controller, or raise OSError."""
    return ControlConnection(address, timeout=CONTROLLER_TIMEOUT)


def _begin(adopt: AdoptJob) -> messages.BeginJob:
    return messages.BeginJob(
        name=adopt.name or adopt.job,
        pid=os.getpid(),
        command=[adopt.executable] if adopt.executable else [],
        user=adopt.user,
        protocol=messages.PROTOCOL,
        executable=adopt.executable,
        nodes=adopt.nodes,
        processes=adopt.processes,
        partition=adopt.partition,
        io_nodes=adopt.io_nodes,
        hints=adopt.hints,
        team=adopt.job,
    )


def _accepted(
    controller: ControlConnection, begin: messages.BeginJob, uid: int
) -> tuple[messages.BeginJob, messages.JobAccepted]:
    """Ask for a job, if need be without the number of I/O nodes that its user wants."""
    try:
        return begin, begin_job(controller, begin, uid)
    except InputError as error:
        if begin.io_nodes is None or isinstance(error, FullError):
            raise
        log.warning("job %s: %s; it goes on without that hint", begin.team, reason(error))
        begin = msgspec.structs.replace(begin, io_nodes=None)
        return begin, begin_job(controller, begin, uid)


def _environment(accepted: messages.JobAccepted, socket: Path, copies: Path) -> dict[str, str]:
    """Return the environment of tasks; LD_PRELOAD_BELOW comes after a task's own LD_PRELOAD."""

    def preload(*files: str | Path) -> str:
        return ":".join(str(readable_by_all(Path(file), copies)) for file in files)

    above = preload(*accepted.above, page_server.library())
    below = {"LD_PRELOAD_BELOW": preload(*accepted.preload)} if accepted.preload else {}
    ours = {"LD_PRELOAD": above, "PENSTOCK_AGENT": str(socket), "ASAN_OPTIONS": with_asan("")}
    return accepted.environment | ours | below


def _create_folder(folder: Path, adopt: AdoptJob) -> None:
    # The files belong to the job's user, the folder does not: the user cannot add files.
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o711)
    folder.chmod(0o711)
    (folder / "adopted").write_bytes(msgspec.json.encode(adopt))


def _give_to_user(path: Path, adopt: AdoptJob) -> None:
    path.chmod(0o600)
    if adopt.uid != os.geteuid():
        os.chown(path, adopt.uid, adopt.gid)


def _write(path: Path, environment: dict[str, str], adopt: AdoptJob) -> None:
    lines = [f"{name}={value}" for name, value in environment.items() if "\n" not in value]
    unfinished = path.with_suffix(".unfinished")
    unfinished.write_text("\n".join(lines) + "\n")
    _give_to_user(unfinished, adopt)
    unfinished.rename(path)
