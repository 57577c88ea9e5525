"""`penstock run`: runs an unmodified command as a job of a deployment.

The job's pages and its agent live in this process. If the controller ends, the job continues with
the map that it has, and reconnects to the next controller.
"""

import errno
import os
import shutil
import signal
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from penstock.errors import InputError
from penstock.files import reason
from penstock.learn.applications import application_of
from penstock.live.agent.group_signals import GroupSignalProbe
from penstock.live.agent.job_agent import JobAgent, begin_job
from penstock.live.agent.left_behind import left_behind
from penstock.live.agent.page_server import PageServer, create_pages
from penstock.live.protocol import messages
from penstock.live.protocol.client import ControlConnection
from penstock.live.protocol.exit_spool import ExitSpool
from penstock.live.protocol.site_key import RemoteController
from penstock.live.protocol.state_directory import StateDirectory
from penstock.live.protocol.users import name_of

FORWARDED = frozenset(
    {
        signal.SIGINT,
        signal.SIGTERM,
        signal.SIGHUP,
        signal.SIGQUIT,
        signal.SIGUSR1,
        signal.SIGUSR2,
        signal.SIGALRM,
    }
)
_IGNORED_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)
_SHELL = "/bin/sh"


class NoJobError(Exception):
    """A command cannot be a job now; nothing was run."""


class CannotRunError(Exception):
    """A command does not exist or cannot be executed; the exit status is as in shells."""

    def __init__(self, program: str, error: OSError) -> None:
        # An error about a directory of PATH says nothing about the command.
        absent = "/" not in program and shutil.which(program, os.F_OK) is None
        missing = absent or isinstance(error, FileNotFoundError)
        if absent:
            cause = "command not found"
        elif missing and ("/" not in program or Path(program).exists()):
            cause = "the interpreter in its first line does not exist"
        else:
            cause = str(error.strerror)
        super().__init__(f"{program}: {cause}")
        self.status = 127 if missing else 126


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The result of a job: its exit status, and its counters summed over threads."""

    job: str
    status: int
    counters: dict[str, int]
    advice: str = ""
    signal: int | None = None
    """The last signal that arrived while it ran, which it may have answered by any exit status."""
    left_behind: int = 0
    """Processes that it started and that still run: unmanaged from now on."""


def check(command: Sequence[str]) -> None:
    """Raise CannotRunError for an empty command."""
    if not command[0]:
        raise CannotRunError("''", FileNotFoundError())


def execute_unmanaged(command: Sequence[str]) -> NoReturn:
    """Replace this process by the command."""
    for number in _IGNORED_BY_PYTHON:
        signal.signal(number, signal.SIG_DFL)
    try:
        try:
            os.execvp(command[0], list(command))
        except OSError as error:
            if error.errno != errno.ENOEXEC:
                raise
            os.execv(_SHELL, _as_script(command))
    except OSError as error:
        raise CannotRunError(command[0], error) from error


def _as_script(command: Sequence[str]) -> list[str]:
    """Return the command that runs a script without an interpreter line, as shells do."""
    return [_SHELL, shutil.which(command[0]) or command[0], *command[1:]]


def run(
    state: StateDirectory,
    command: Sequence[str],
    *,
    name: str,
    application: str = "",
    partition: str = "",
    io_nodes: int | None = None,
    environment: Mapping[str, str] | None = None,
    controller: RemoteController | Path | None = None,
    hints: messages.Hints | None = None,
    nodes: int = 1,
    team: str | None = None,
) -> Outcome:
    """Run a command as a job of the controller in `state`, or of another one.

    `controller` is that of another host, or the socket of another user's; `state` is then a
    directory of this user's for the job's own socket.
    Without `application`, that is the program found in the command. `nodes` is the number of
    compute nodes that the command uses, by its own launcher; commands on several hosts with the
    same `team` are one job. Call it from the main thread: it forwards signals to the command.
    Raises NoJobError, before the command runs, for whatever keeps it from being a job.
    """
    begin = messages.BeginJob(
        name=name,
        pid=os.getpid(),
        command=list(command),
        user=name_of(os.getuid()),
        io_nodes=io_nodes,
        protocol=messages.PROTOCOL,
        executable=application or application_of(command),
        partition=partition,
        hints=hints or messages.Hints(),
        nodes=nodes,
        team=team,
    )
    address = controller or state.controller
    exit_spool = ExitSpool(
        state.exit_spool if controller is None else state.remote_exit_spool(controller)
    )
    try:
        if controller is not None:
            state.create()
            with suppress(InputError, OSError):  # the exits of earlier jobs do not delay this one
                exit_spool.deliver(lambda: ControlConnection(controller))
        connection = ControlConnection(address)
    except (InputError, OSError) as error:
        place = f"in {state.folder}" if controller is None else f"at {controller}"
        raise NoJobError(f"no controller {place}: {reason(error)}") from error
    with connection, ExitStack() as stack:
        try:
            accepted = begin_job(connection, begin, os.getuid())
        except InputError as error:
            raise NoJobError(str(error)) from error
        except OSError as error:
            raise NoJobError(f"no answer from the controller: {reason(error)}") from error
        old_mask = stack.enter_context(blocked(FORWARDED | {signal.SIGCHLD}))
        try:
            probe = stack.enter_context(GroupSignalProbe(FORWARDED))
            pages = stack.enter_context(create_pages(accepted))
            path = state.agent_socket(os.getpid())
            path.unlink(missing_ok=True)  # left by a killed process with the same id
            server = stack.enter_context(PageServer(pages, path))
            preload = server.environment(above=accepted.above, below=accepted.preload)
            agent = JobAgent(
                connection,
                begin,
                accepted,
                pages,
                lambda: ControlConnection(address),
                exit_spool=exit_spool,
            )
        except (InputError, OSError) as error:
            raise NoJobError(reason(error)) from error
        variables = os.environ | (environment or {}) | accepted.environment | preload
        try:
            pid = _spawn(command, variables, old_mask)
        except CannotRunError as error:
            agent.end(error.status)
            raise
        try:
            status, arrived = _wait(pid, probe)
        except BaseException:  # raised by a signal handler
            agent.end(_kill(pid))
            raise
        left = len(left_behind(path))
        return Outcome(
            job=agent.id,
            status=status,
            counters=agent.end(status),
            advice=agent.advice,
            signal=arrived,
            left_behind=left,
        )


@contextmanager
def blocked(signals: Collection[int]) -> Iterator[Collection[int]]:
    """Block signals, also in threads that are started meanwhile; yield the old mask."""
    old_mask = signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    try:
        yield old_mask
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, old_mask)


def _spawn(command: Sequence[str], environment: Mapping[str, str], mask: Collection[int]) -> int:
    def spawn(command: Sequence[str]) -> int:
        return os.posix_spawnp(
            command[0],
            list(command),
            environment,
            setsigmask=mask,
            setsigdef=_IGNORED_BY_PYTHON,
        )

    try:
        try:
            return spawn(command)
        except OSError as error:
            if error.errno != errno.ENOEXEC:
                raise
            return spawn(_as_script(command))
    except OSError as error:
        raise CannotRunError(command[0], error) from error


def _wait(pid: int, probe: GroupSignalProbe) -> tuple[int, int | None]:
    """Wait for the process, and forward signals to it; return its exit status and the last one."""
    last = None
    while (status := _exit_status(pid)) is None:
        info = signal.sigwaitinfo(FORWARDED | {signal.SIGCHLD})
        if info.si_signo == signal.SIGCHLD:
            continue
        last = info.si_signo
        if _must_forward(info, pid, probe):
            with suppress(ProcessLookupError):
                os.kill(pid, last)
    return status, last


def _kill(pid: int) -> int:
    with suppress(ProcessLookupError, ChildProcessError):  # it had ended
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    return 128 + signal.SIGKILL


def _must_forward(info: signal.struct_siginfo, pid: int, probe: GroupSignalProbe) -> bool:
    """Return whether the command has not received a signal itself."""
    sent_to_group = probe.received(info.si_signo)
    if info.si_code > 0:  # from the kernel, such as the terminal's: the command got it too
        return False
    try:
        return not sent_to_group or os.getpgid(pid) != os.getpgrp()
    except ProcessLookupError:
        return False


def _exit_status(pid: int) -> int | None:
    """Return the exit status of a process as in shells, or None while it runs."""
    ended, status = os.waitpid(pid, os.WNOHANG)
    if not ended:
        return None
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code
