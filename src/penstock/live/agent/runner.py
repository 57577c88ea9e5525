"""Runs an unmodified command as a job of a deployment, with its exit status.

The job's pages and its agent live in this process, which is a Member of the deployment. When the
controller goes, the job goes on with the map that it has, and comes back to the next one.
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
from penstock.live.agent.group_signals import Witness
from penstock.live.agent.job_agent import Member
from penstock.live.agent.page_server import Agent, pages_of
from penstock.live.protocol import messages
from penstock.live.protocol.client import ControlConnection
from penstock.live.protocol.errors import FullError
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
    """A command cannot be a job now, and why: nothing was run."""


class CannotRunError(Exception):
    """A command that is not there, or is no program; the exit status is as shells have it."""

    def __init__(self, program: str, error: OSError) -> None:
        # A directory of PATH that may not be searched, or is none, says nothing of the command.
        absent = "/" not in program and shutil.which(program, os.F_OK) is None
        missing = absent or isinstance(error, FileNotFoundError)
        if absent:
            why = "command not found"
        elif missing and ("/" not in program or Path(program).exists()):
            why = "the interpreter that its first line names is not there"
        else:
            why = str(error.strerror)
        super().__init__(f"{program}: {why}")
        self.status = 127 if missing else 126


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a job ended: its exit status, and its counters summed over threads."""

    job: str
    status: int
    counters: dict[str, int]
    advice: str = ""


def check(command: Sequence[str]) -> None:
    """Refuse a command that can be none, whatever is installed."""
    if not command[0]:
        raise CannotRunError("''", FileNotFoundError())


def plainly(command: Sequence[str]) -> NoReturn:
    """Become the command."""
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
    """Return how shells, and execvp, run an executable text without a first line that says how."""
    return [_SHELL, shutil.which(command[0]) or command[0], *command[1:]]


def run(
    state: StateDirectory,
    command: Sequence[str],
    *,
    name: str,
    io_nodes: int | None = None,
    environment: Mapping[str, str] | None = None,
    controller: RemoteController | None = None,
    hints: messages.Hints | None = None,
) -> Outcome:
    """Run a command as a job, of another host's controller or this one's.

    InputError: the controller refuses it.
    To be called from the main thread, whose signals go to the command meanwhile.
    """
    begin = messages.BeginJob(
        name=name,
        pid=os.getpid(),
        command=list(command),
        user=name_of(os.getuid()),
        io_nodes=io_nodes,
        protocol=messages.PROTOCOL,
        executable=Path(command[0]).name,
        hints=hints or messages.Hints(),
    )
    where = controller or state.controller
    last_words = ExitSpool(
        state.exit_spool if controller is None else state.remote_exit_spool(controller)
    )
    try:
        if controller is not None:
            state.create()  # for the agent's socket
            with suppress(InputError, OSError):  # a job is not kept waiting for others' words
                last_words.deliver(lambda: ControlConnection(controller))
        channel = ControlConnection(where)
    except (InputError, OSError) as error:
        at = f"in {state.folder}" if controller is None else f"at {controller}"
        raise NoJobError(f"no controller {at}: {reason(error)}") from error
    with channel, ExitStack() as stack:
        try:
            begun = channel.ask(begin, messages.JobAccepted)
        except FullError as error:
            raise NoJobError(str(error)) from error
        except OSError as error:
            raise NoJobError(f"no answer of the controller: {reason(error)}") from error
        before = stack.enter_context(blocked(FORWARDED | {signal.SIGCHLD}))
        try:
            witness = stack.enter_context(Witness(FORWARDED))
            pages = stack.enter_context(pages_of(begun))
            path = state.agent_socket(os.getpid())
            path.unlink(missing_ok=True)  # of one that had this number and was killed
            agent = stack.enter_context(Agent(pages, path))
            preload = agent.environment(above=begun.above, below=begun.preload)
        except (InputError, OSError) as error:
            raise NoJobError(reason(error)) from error
        member = Member(
            channel, begin, begun, pages, lambda: ControlConnection(where), last_words=last_words
        )
        surrounded = os.environ | (environment or {}) | begun.environment | preload
        try:
            pid = _spawn(command, surrounded, before)
        except CannotRunError as error:
            member.end(error.status)
            raise
        try:
            status = _follow(pid, witness)
        except BaseException:  # of a handler that another thread's signal ran
            member.end(_killed(pid))
            raise
        counters = member.end(status)
        return Outcome(job=member.id, status=status, counters=counters, advice=member.advice)


@contextmanager
def blocked(signals: Collection[int]) -> Iterator[Collection[int]]:
    """Let signals wait to be asked for, also in threads that are started meanwhile."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    try:
        yield before
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


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


def _follow(pid: int, witness: Witness) -> int:
    """Return how the process ended; signals that come meanwhile are its own."""
    while (status := _ended(pid)) is None:
        got = signal.sigwaitinfo(FORWARDED | {signal.SIGCHLD})
        if got.si_signo != signal.SIGCHLD and _is_ours_alone(got, pid, witness):
            with suppress(ProcessLookupError):
                os.kill(pid, got.si_signo)
    return status


def _killed(pid: int) -> int:
    with suppress(ProcessLookupError, ChildProcessError):  # it had ended
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    return 128 + signal.SIGKILL


def _is_ours_alone(got: signal.struct_siginfo, pid: int, witness: Witness) -> bool:
    """Say whether a signal has not come to the command by itself."""
    to_the_group = witness.saw(got.si_signo)
    if got.si_code > 0:  # what the kernel sent, such as the terminal's, it has sent to the job too
        return False
    try:
        return not to_the_group or os.getpgid(pid) != os.getpgrp()
    except ProcessLookupError:
        return False


def _ended(pid: int) -> int | None:
    """Return the exit status of a process as shells have it; None: it runs."""
    found, status = os.waitpid(pid, os.WNOHANG)
    if not found:
        return None
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code
