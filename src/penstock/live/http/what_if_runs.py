"""What-if for the dashboard: `penstock what-if` as a child that can harm nobody.

One at a time, at the lowest priority, bounded in time, memory and output, gone with the controller.
A simulation is another process because it takes seconds, and turns are given within milliseconds.
"""

import asyncio
import logging
import os
import secrets
import signal
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from penstock.config.sections import window as checked_window
from penstock.errors import InputError
from penstock.live.http.faults import ConflictError, NotFoundError
from penstock.live.http.record_list import Records

COMMAND = (sys.executable, "-P", "-m", "penstock.cli", "what-if", "--json", "--lanes")
CONFINED = (sys.executable, "-P", "-m", "penstock.live.http.sandbox")
SECONDS, MEMORY, OUTPUT = 120, 1 << 30, 8 << 20
"""What one may take: seconds by the clock and of a processor, bytes of memory, bytes of result."""
KEPT = 4
"""Results that are kept, the newest."""
LAST_WORDS = 4096
"""Bytes of what it says on its way out that are read."""
DIES_WITHIN = 5.0
WRONG_INPUT = 2
"""The exit status of a command that was asked what cannot be."""
log = logging.getLogger("penstock.controller")
State = Literal["running", "done", "failed", "cancelled"]
_TIME = r"[0-9]{1,9}(\.[0-9]{1,6})? ?(ms|s|min|h|d)?"
PolicyName = Annotated[str, Meta(pattern=r"^[a-z0-9][a-z0-9-]{0,39}$(?!\n)")]


class AskWhatIf(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A run of /v1/records, or a day of it, and the policies of /v1/policies to simulate it with.

    The window bounds the metrics, as that of `penstock what-if` does: "9 h:17 h".
    """

    run: Annotated[str, Meta(pattern=r"^[0-9a-f]{1,32}$(?!\n)")]
    policies: Annotated[
        list[PolicyName],
        Meta(min_length=1, max_length=4, extra_json_schema={"uniqueItems": True}),
    ]
    day: Annotated[str, Meta(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$(?!\n)")] | None = None
    window: Annotated[str, Meta(pattern=rf"^{_TIME}:{_TIME}$(?!\n)")] | None = None


class WhatIfStarted(msgspec.Struct, frozen=True, kw_only=True):
    """It runs; GET /v1/what-if/{id} tells how far it is."""

    id: str


class WhatIf(msgspec.Struct, frozen=True, kw_only=True):
    """How a what-if stands; `result` is that of `penstock what-if --lanes --json`."""

    id: str
    state: State
    began: float  # seconds since the epoch
    seconds: float
    run: str
    day: str | None
    policies: list[str]
    window: str | None
    error: str | None
    result: dict[str, Any] | None


class FailedError(Exception):
    """It has no result, and why."""


@dataclass(slots=True)
class _Asked:
    wanted: AskWhatIf
    began: float = field(default_factory=time.time)
    since: float = field(default_factory=time.monotonic)
    lasted: float | None = None
    state: State = "running"
    error: str | None = None
    result: bytes | None = None
    task: "asyncio.Task[None] | None" = None

    def over(self) -> None:
        """Say how long it took; one that was ended before it began has not said anything."""
        self.lasted = time.monotonic() - self.since
        if self.state == "running":
            self.state = "cancelled"


class WhatIfs:
    """Runs what is asked, one at a time, and keeps the last results."""

    def __init__(
        self,
        records: Records,
        *,
        command: tuple[str, ...] = COMMAND,
        seconds: int = SECONDS,
        memory: int = MEMORY,
        output: int = OUTPUT,
    ) -> None:
        self._records, self._command = records, command
        self._seconds, self._memory, self._output = seconds, memory, output
        self._asked: dict[str, _Asked] = {}
        self._starting = asyncio.Lock()

    async def start(self, wanted: AskWhatIf) -> str:
        """Begin a simulation and return its id.

        ConflictError: another one runs, or the window is empty. NotFoundError: no such record.
        """
        async with self._starting:
            for id, other in self._asked.items():
                if other.state == "running":
                    seconds = time.monotonic() - other.since
                    raise ConflictError(
                        f"what-if {id} of run {other.wanted.run} runs since {seconds:.0f} s, and "
                        f"one runs at a time; wait for it, or DELETE /v1/what-if/{id}"
                    )
            files = await asyncio.to_thread(self._records.files, wanted.run, wanted.day)
            if not files:
                day = "" if wanted.day is None else f" with a day {wanted.day}"
                raise NotFoundError(f"there is no run {wanted.run}{day}; see /v1/records")
            if wanted.window is not None:
                try:
                    checked_window(wanted.window)
                except InputError as error:
                    raise ConflictError(str(error)) from error
            id, asked = secrets.token_hex(8), _Asked(wanted)
            self._asked[id] = asked
            asked.task = asyncio.create_task(self._work(asked, files))
            asked.task.add_done_callback(lambda _: asked.over())
        while len(self._asked) > KEPT:
            del self._asked[next(iter(self._asked))]
        return id

    def told(self, id: str) -> bytes:
        """Return how one stands, as JSON; NotFoundError: it is not kept."""
        asked = self._find(id)
        lasted = time.monotonic() - asked.since if asked.lasted is None else asked.lasted
        wanted = asked.wanted
        told = WhatIf(
            id=id,
            state=asked.state,
            began=asked.began,
            seconds=lasted,
            run=wanted.run,
            day=wanted.day,
            policies=wanted.policies,
            window=wanted.window,
            error=asked.error,
            result=None,
        )
        if asked.result is not None:
            # It is JSON already, and megabytes of it: not to be read in the controller's loop.
            told = msgspec.structs.replace(told, result=msgspec.Raw(asked.result))
        return msgspec.json.encode(told)

    async def cancel(self, id: str) -> bytes:
        """End one that runs, and return how it stands; one that is over stays as it is."""
        asked = self._find(id)
        if asked.state == "running" and asked.task is not None:
            asked.task.cancel()
            await asyncio.wait([asked.task], timeout=DIES_WITHIN)
        return self.told(id)

    async def close(self) -> None:
        """End what runs."""
        tasks = [asked.task for asked in self._asked.values() if asked.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _find(self, id: str) -> _Asked:
        if id not in self._asked:
            raise NotFoundError(f"there is no what-if {id[:40]!r}; the last {KEPT} are kept")
        return self._asked[id]

    async def _work(self, asked: _Asked, files: list[str]) -> None:
        try:
            asked.result = await self._result(asked.wanted, files)
            asked.state = "done"
        except asyncio.CancelledError:
            asked.state = "cancelled"
        except FailedError as error:
            asked.state, asked.error = "failed", str(error)
        except Exception:
            log.exception("a what-if failed")
            asked.state, asked.error = "failed", "this is a fault of ours; the log has it"

    async def _result(self, wanted: AskWhatIf, files: list[str]) -> bytes:
        asked = [f"--policies={','.join(wanted.policies)}"]
        asked += [f"--window={wanted.window}"] if wanted.window is not None else []
        limits = (self._seconds, self._memory, os.getpid())
        process = await asyncio.create_subprocess_exec(
            *CONFINED,
            *map(str, limits),
            *self._command,
            *asked,
            "--",
            *files,
            # Names alone: nobody is told in which directory they are.
            cwd=self._records.directory,
            env=os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        try:
            async with asyncio.timeout(self._seconds):
                assert process.stdout is not None
                assert process.stderr is not None
                output, words = await asyncio.gather(
                    _read(process.stdout, self._output), _last(process.stderr)
                )
                status = await process.wait()
        except TimeoutError:
            raise FailedError(
                f"it took longer than {self._seconds} s; choose a day or fewer policies, or run "
                "'penstock what-if' on a command line"
            ) from None
        finally:
            await _end(process)
        if status == 0:
            return output
        raise FailedError(_reason(status, words))


async def _read(stream: asyncio.StreamReader, most: int) -> bytes:
    found = bytearray()
    while piece := await stream.read(1 << 16):
        found += piece
        if len(found) > most:
            raise FailedError(f"its result has more than {most} bytes; choose a day")
    return bytes(found)


async def _last(stream: asyncio.StreamReader) -> str:
    found = b""
    while piece := await stream.read(LAST_WORDS):
        found = (found + piece)[-LAST_WORDS:]
    return found.decode(errors="replace")


def _reason(status: int, words: str) -> str:
    """Return why there is no result; what only the site may know goes to the log."""
    lines = [line for line in words.splitlines() if line.strip()]
    if status == WRONG_INPUT and lines:
        return lines[-1].removeprefix("Error: ")[:400]
    if "MemoryError" in words or "memory" in words.lower():
        return "it needs more memory than a controller spares; choose a day, or a command line"
    log.warning("a what-if ended with status %d: %s", status, words[-1000:])
    if status == -signal.SIGXCPU:
        return "it took too much of the processor; choose a day, or a command line"
    if status < 0:
        return f"it was ended by signal {-status}; the controller's log may have why"
    return f"it ended with status {status}; the controller's log has what it said"


async def _end(process: asyncio.subprocess.Process) -> None:
    """Leave no process behind, whatever it does."""
    if process.returncode is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    try:
        async with asyncio.timeout(DIES_WITHIN):
            await process.wait()
            # A pipe that was not read to its end is not closed either.
            while process.stdout is not None and await process.stdout.read(1 << 16):
                pass
    except TimeoutError:
        log.warning("a what-if, process %d, does not end", process.pid)
