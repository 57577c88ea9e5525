"""What-if for the dashboard: runs `penstock what-if` in a confined child process.

One at a time, at the lowest priority, bounded in time, memory and output, ended with the
controller. A simulation takes seconds, and the controller grants turns within milliseconds: so it
is a process of its own.
"""

import asyncio
import logging
import os
import re
import secrets
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from penstock.config.sections import window as checked_window
from penstock.errors import InputError
from penstock.live.http.dispatch import ConflictError, NotFoundError
from penstock.live.http.openapi import Reply
from penstock.live.http.what_if_choices import RecordList
from penstock.live.http.what_if_result import WhatIfResult

COMMAND = (sys.executable, "-P", "-m", "penstock.cli", "what-if", "--json", "--lanes")
SANDBOX = (sys.executable, "-P", "-m", "penstock.live.http.sandbox")
KEPT_RESULTS = 4
STDERR_BYTES = 4096
"""The last bytes of standard error that are read."""
KILL_SECONDS = 5.0
WRONG_INPUT = 2
"""The exit status of a penstock command whose arguments are wrong."""
log = logging.getLogger("penstock.controller")
State = Literal["running", "done", "failed", "cancelled"]
_TIME = r"[0-9]{1,9}(\.[0-9]{1,6})? ?(ms|s|min|h|d)?"
_WINDOW = re.compile(rf"{_TIME}:{_TIME}")
PolicyName = Annotated[str, Meta(pattern=r"^[a-z0-9][a-z0-9-]{0,39}$(?!\n)")]
Policies = Annotated[list[PolicyName], Meta(max_length=4, extra_json_schema={"uniqueItems": True})]


class WhatIfRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A run of /v1/records, or a day of it, and the policies of /v1/policies to simulate it with.

    These are sharing policies, or else allocation and placement policies, which are compared under
    the sharing policy that ran: each allocation policy with each placement policy. Without
    allocation policies the one that ran is compared with each placement policy; without placement
    policies each allocation policy has its own. The window bounds the metrics, as that of
    `penstock what-if` does: "9 h:17 h".
    """

    run: Annotated[str, Meta(pattern=r"^[0-9a-f]{1,32}$(?!\n)")]
    policies: Policies = []
    allocation: Policies = []
    placement: Policies = []
    day: Annotated[str, Meta(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$(?!\n)")] | None = None
    window: (
        Annotated[str, Meta(max_length=64, extra_json_schema={"pattern": f"^{_WINDOW.pattern}$"})]
        | None
    ) = None

    def __post_init__(self) -> None:
        """Raise ValueError (422) unless policies of one kind are named."""
        of_allocation = bool(self.allocation or self.placement)
        if of_allocation == bool(self.policies):
            raise ValueError(
                "name sharing policies in policies, or else allocation and placement policies"
            )


ONE_KIND = Meta(
    extra_json_schema={
        "anyOf": [
            {
                "properties": {
                    "policies": {"minItems": 1},
                    "allocation": {"maxItems": 0},
                    "placement": {"maxItems": 0},
                },
                "required": ["policies"],
            },
            {
                "properties": {"policies": {"maxItems": 0}, "allocation": {"minItems": 1}},
                "required": ["allocation"],
            },
            {
                "properties": {"policies": {"maxItems": 0}, "placement": {"minItems": 1}},
                "required": ["placement"],
            },
        ]
    }
)
"""What WhatIfRequest checks, for the OpenAPI document."""


class WhatIfStarted(msgspec.Struct, frozen=True, kw_only=True):
    """The what-if runs; GET /v1/what-if/{id} returns its state."""

    id: str


class WhatIf(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a what-if; `result` is that of `penstock what-if --lanes --json`."""

    id: str
    state: State
    began: float  # seconds since the epoch
    seconds: float
    run: str
    day: str | None
    policies: list[str]
    allocation: list[str]
    placement: list[str]
    window: str | None
    error: str | None
    result: WhatIfResult | None


@dataclass(frozen=True, slots=True, kw_only=True)
class WhatIfLimits:
    """What one what-if may take."""

    seconds: int = 120
    """By the clock, and of a processor."""
    memory: int = 1 << 30
    output: int = 8 << 20


class WhatIfError(Exception):
    """Why a what-if has no result."""


@dataclass(slots=True)
class _Run:
    request: WhatIfRequest
    clock: Callable[[], float]
    began: float  # seconds since the epoch
    since: float = field(init=False)
    lasted: float | None = None
    state: State = "running"
    error: str | None = None
    result: bytes | None = None
    task: "asyncio.Task[None] | None" = None

    def __post_init__(self) -> None:
        self.since = self.clock()

    @property
    def seconds(self) -> float:
        return self.clock() - self.since if self.lasted is None else self.lasted

    def finish(self) -> None:
        """Note how long it took; a task that was cancelled before it started set no state."""
        self.lasted = self.clock() - self.since
        if self.state == "running":
            self.state = "cancelled"


class WhatIfRuns:
    """Runs what-ifs, one at a time, and keeps the last results."""

    def __init__(
        self,
        records: RecordList,
        *,
        command: tuple[str, ...] = COMMAND,
        limits: WhatIfLimits | None = None,
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self._clock, self._wall_clock = clock, wall_clock
        self._records, self._command = records, command
        self._limits = limits or WhatIfLimits()
        self._runs: dict[str, _Run] = {}
        self._starting = asyncio.Lock()

    async def start(self, request: WhatIfRequest) -> str:
        """Start a simulation and return its id.

        ConflictError: another one runs, or the window is empty. NotFoundError: no such record.
        InputError: the window is not one.
        """
        # Not by the type: its message would be the pattern.
        if request.window is not None and not _WINDOW.fullmatch(request.window):
            raise InputError(
                f"window {request.window!r} is not BEGIN:END, counted from the beginning of the "
                "record, for example 9 h:17 h"
            )
        async with self._starting:
            for id, other in self._runs.items():
                if other.state == "running":
                    raise ConflictError(
                        f"what-if {id} of run {other.request.run} has been running for "
                        f"{other.seconds:.0f} s, and only one runs at a time; wait for it, or "
                        f"DELETE /v1/what-if/{id}"
                    )
            files = await asyncio.to_thread(self._records.files, request.run, request.day)
            if not files:
                day = "" if request.day is None else f" with a day {request.day}"
                raise NotFoundError(f"there is no run {request.run}{day}; see /v1/records")
            if request.window is not None:
                try:
                    checked_window(request.window)
                except InputError as error:
                    raise ConflictError(str(error)) from error
            id = secrets.token_hex(8)
            run = _Run(request, self._clock, self._wall_clock())
            self._runs[id] = run
            run.task = asyncio.create_task(self._work(run, files))
            run.task.add_done_callback(lambda _: run.finish())
        while len(self._runs) > KEPT_RESULTS:
            del self._runs[next(iter(self._runs))]
        return id

    def answer(self, id: str) -> Reply[WhatIf]:
        """Return the what-if of this id; NotFoundError: it is not kept."""
        run = self._find(id)
        what_if = WhatIf(
            id=id,
            state=run.state,
            began=run.began,
            seconds=run.seconds,
            **msgspec.structs.asdict(run.request),
            error=run.error,
            result=None,
        )
        if run.result is not None:
            # Megabytes of JSON already, not to be decoded in the controller's loop.
            what_if = msgspec.structs.replace(what_if, result=msgspec.Raw(run.result))
        return Reply(what_if)

    async def cancel(self, id: str) -> Reply[WhatIf]:
        """End a what-if that runs, and return it; one that is over stays as it is."""
        run = self._find(id)
        if run.state == "running" and run.task is not None:
            run.task.cancel()
            await asyncio.wait([run.task], timeout=KILL_SECONDS)
        return self.answer(id)

    async def close(self) -> None:
        """End what runs."""
        tasks = [run.task for run in self._runs.values() if run.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _find(self, id: str) -> _Run:
        if id not in self._runs:
            raise NotFoundError(
                f"there is no what-if {id[:40]!r}; the last {KEPT_RESULTS} are kept"
            )
        return self._runs[id]

    async def _work(self, run: _Run, files: list[str]) -> None:
        try:
            run.result = await self._simulate(run.request, files)
            run.state = "done"
        except asyncio.CancelledError:
            run.state = "cancelled"
        except WhatIfError as error:
            run.state, run.error = "failed", str(error)
        except Exception:
            log.exception("a what-if failed")
            run.state, run.error = "failed", "internal error; see the controller's log"

    async def _simulate(self, request: WhatIfRequest, files: list[str]) -> bytes:
        named = {
            "policies": request.policies,
            "allocation": request.allocation,
            "placement": request.placement,
        }
        options = [f"--{option}={','.join(names)}" for option, names in named.items() if names]
        options += [f"--window={request.window}"] if request.window is not None else []
        limits = self._limits
        process = await asyncio.create_subprocess_exec(
            *SANDBOX,
            *map(str, (limits.seconds, limits.memory, os.getpid())),
            *self._command,
            *options,
            "--",
            *files,
            # File names without their directory, so that no message shows it.
            cwd=self._records.directory,
            env=os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        assert process.stdout is not None
        assert process.stderr is not None
        errors = asyncio.create_task(_read_last(process.stderr))
        try:
            async with asyncio.timeout(limits.seconds):
                output = await _read(process.stdout, limits.output)
                status = await process.wait()
                if status:
                    raise WhatIfError(_reason(status, await errors))
                return output
        except TimeoutError:
            raise WhatIfError(
                f"it took longer than {limits.seconds} s; choose a day or fewer policies, or run "
                "'penstock what-if' on a command line"
            ) from None
        finally:
            await _kill(process, errors)


async def _read(stream: asyncio.StreamReader, most: int) -> bytes:
    output = bytearray()
    while piece := await stream.read(1 << 16):
        output += piece
        if len(output) > most:
            raise WhatIfError(f"its result has more than {most} bytes; choose a day")
    return bytes(output)


async def _read_last(stream: asyncio.StreamReader) -> str:
    last = b""
    while piece := await stream.read(STDERR_BYTES):
        last = (last + piece)[-STDERR_BYTES:]
    return last.decode(errors="replace")


def _reason(status: int, errors: str) -> str:
    """Return why there is no result; details that clients must not see go to the log."""
    lines = [line for line in errors.splitlines() if line.strip()]
    if status == WRONG_INPUT and lines:
        return lines[-1].removeprefix("Error: ")[:400]
    if "memory" in errors.lower():
        return "it needs more memory than is allowed here; choose a day, or use a command line"
    log.warning("a what-if ended with status %d: %s", status, errors[-1000:])
    if status == -signal.SIGXCPU:
        return "it used too much processor time; choose a day, or use a command line"
    if status < 0:
        return f"it was ended by signal {-status}; see the controller's log"
    return f"it ended with status {status}; see the controller's log"


async def _kill(process: asyncio.subprocess.Process, errors: asyncio.Task[str]) -> None:
    """Kill the process and all its children."""
    if process.returncode is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    try:
        async with asyncio.timeout(KILL_SECONDS):
            await process.wait()
            # A pipe is closed only once it has been read to its end.
            while process.stdout is not None and await process.stdout.read(1 << 16):
                pass
            await errors
    except TimeoutError:
        log.warning("a what-if, process %d, does not end", process.pid)
        errors.cancel()
