"""The agent of a node: keeps the pages of all its jobs, from a batch system's prolog to its epilog.

Hooks speak to one Unix socket, a JSON line each way. Every job has a folder below the agent's own,
with a socket that the job's user alone can connect to and the environment that its tasks want.
"""

import asyncio
import logging
import os
import shutil
import signal
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path

import msgspec

from penstock.errors import InputError
from penstock.files import reason
from penstock.live.agent.adopted_job import Tenant, connect
from penstock.live.protocol import client, messages
from penstock.live.protocol.exit_spool import ExitSpool
from penstock.live.protocol.hook_messages import (
    AdoptJob,
    AgentDirectory,
    JobEnvironment,
    JobList,
    ListJobs,
    ReleaseJob,
)
from penstock.live.protocol.site_key import RemoteController
from penstock.live.protocol.state_directory import StateDirectory, hold_lock, write_holder

HEARS_WITHIN = 5.0
"""Seconds for a hook to say what it wants."""
LONGEST_REQUEST = 1 << 16
REAPED_EVERY = 10.0
THREADS = 32

log = logging.getLogger("penstock.agent")


class NodeAgent:
    """Serves hooks until it is told to end; jobs that still run then pass through.

    `gone(jobs)` says which jobs ended although no epilog said so; it may take its time.
    """

    def __init__(
        self,
        folder: AgentDirectory,
        controller: Path | RemoteController,
        *,
        gone: Callable[[Collection[str]], list[str]] = lambda _: [],
        reaped_every: float = REAPED_EVERY,
    ) -> None:
        self.folder = folder
        self.tenants: dict[str, Tenant] = {}
        self._controller = controller
        self._is_remote = isinstance(controller, RemoteController)
        self._last_words = ExitSpool(
            folder.exit_spool
            if isinstance(controller, RemoteController)
            else StateDirectory(controller.parent).exit_spool
        )
        self._gone = gone
        self._reaped_every = reaped_every
        self._locks = [asyncio.Lock() for _ in range(64)]  # a job's messages one after the other

    async def serve(self, ready: Callable[[], object]) -> None:
        """Go on until SIGTERM or SIGINT; `ready` is called when hooks can connect."""
        stop = asyncio.Event()
        # A controller that does not answer keeps a thread for each job that it is asked to take in.
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(THREADS))
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
        await asyncio.gather(*map(self._adopt_again, self.folder.adopted_jobs()))
        self.folder.control.unlink(missing_ok=True)
        server = await asyncio.start_unix_server(
            self._accept, self.folder.control, limit=LONGEST_REQUEST, backlog=1024
        )
        reaping = asyncio.create_task(self._reap())
        try:
            async with server:
                ready()
                await stop.wait()
        finally:
            reaping.cancel()
            await asyncio.gather(reaping, return_exceptions=True)
            for job in list(self.tenants):
                await self.end(job, 0)
            self.folder.control.unlink(missing_ok=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(HEARS_WITHIN):
                text = await reader.readline()
            writer.write(client.encode_line(await self.heard(text)))
            await writer.drain()
        except (OSError, ValueError):
            pass  # silent, gone, or a line without end: nobody is left to be answered
        finally:
            writer.close()

    async def heard(self, text: bytes) -> messages.Message:
        """Return the answer to a line."""
        try:
            match msgspec.json.decode(text, type=AdoptJob | ReleaseJob | ListJobs):
                case AdoptJob() as adopt:
                    return await self.adopt(adopt)
                case ReleaseJob() as release:
                    await self.release(release)
                    return messages.Done()
                case _:
                    return JobList(jobs=sorted(self.tenants))
        except (InputError, msgspec.DecodeError, UnicodeDecodeError, OSError) as error:
            log.warning("refused: %s", reason(error))
            return messages.Failure(error=reason(error))

    async def adopt(self, adopt: AdoptJob) -> JobEnvironment:
        """Take a job in, or find it here."""
        if os.geteuid() != 0 and adopt.uid != os.geteuid():
            raise InputError(f"job {adopt.job} is another user's; only root's agent keeps it")
        async with self._lock(adopt.job):
            tenant = self.tenants.get(adopt.job)
            if tenant is not None and tenant.adopt.uid != adopt.uid:
                # The batch system began its numbers anew.
                await self._end(adopt.job, 0)
                tenant = None
            if tenant is None:
                folder = self.folder.job(adopt.job)
                tenant = await asyncio.to_thread(
                    Tenant, adopt, self._controller, folder, self._last_words
                )
                self.tenants[adopt.job] = tenant
                log.info("job %s of %s adopted", adopt.job, adopt.user)
            tenant.nodes.add(adopt.node)
            return JobEnvironment(environment=tenant.environment)

    async def _adopt_again(self, adopt: AdoptJob) -> None:
        try:
            await self.adopt(adopt)
        except (InputError, OSError) as error:
            log.warning("job %s goes on without an agent: %s", adopt.job, reason(error))
            shutil.rmtree(self.folder.job(adopt.job), ignore_errors=True)

    async def release(self, release: ReleaseJob) -> None:
        """Let a job go once all nodes that this host is have said so."""
        async with self._lock(release.job):
            tenant = self.tenants.get(release.job)
            if tenant is not None:
                tenant.nodes.discard(release.node)
                if not tenant.nodes:
                    await self._end(release.job, release.status)

    async def end(self, job: str, status: int) -> None:
        """Let a job go, whatever nodes have not said so."""
        async with self._lock(job):
            await self._end(job, status)

    async def _end(self, job: str, status: int) -> None:
        tenant = self.tenants.pop(job, None)
        if tenant is not None:
            await asyncio.to_thread(tenant.end, status)
            log.info("job %s released", job)

    def _lock(self, job: str) -> asyncio.Lock:
        return self._locks[hash(job) % len(self._locks)]

    async def _reap(self) -> None:
        while True:
            await asyncio.sleep(self._reaped_every)
            await self._tell_last_words()
            if self.tenants:
                for job in await asyncio.to_thread(self._gone, list(self.tenants)):
                    log.warning("job %s has ended and no epilog said so: released", job)
                    await self.end(job, 0)

    async def _tell_last_words(self) -> None:
        """Tell a controller of another host what it did not hear; on this one it looks itself."""
        if self._is_remote:
            with suppress(OSError, InputError):  # not there yet
                await asyncio.to_thread(
                    self._last_words.deliver, partial(connect, self._controller)
                )


def serve(agent: NodeAgent, ready: Callable[[], object]) -> None:
    """Be the agent of this node; InputError: there is one already."""
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
