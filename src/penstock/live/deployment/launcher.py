"""Starts a deployment in the background, sends it messages, and stops it.

Runs in the verbs (`up`, `down`, `standby`, `status`), and in measurements with a deployment of
their own.
"""

import os
import select
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

import msgspec

from penstock import trusted_files
from penstock.errors import InputError
from penstock.files import reason, replacing
from penstock.live.deployment.spec import (
    ANSWER_TIMEOUT,
    DRAIN_TIMEOUT,
    Deployment,
    with_stripe_layout,
)
from penstock.live.protocol import client, messages
from penstock.live.protocol.client import ControlConnection
from penstock.live.protocol.site_key import RemoteController
from penstock.live.protocol.state_directory import (
    GRACE,
    StateDirectory,
    end_holders,
    hold_lock,
    is_stopped,
    lock_holder,
    wait_for_exit,
)

CONTROLLER = (sys.executable, "-P", "-m", "penstock.live.controller")
CLEAN_UP_TIMEOUT = 10.0
"""Seconds that the controller may take to end the I/O nodes of an earlier one."""
STOP_TIMEOUT = DRAIN_TIMEOUT + 2 * ANSWER_TIMEOUT + 4.0
POLL_INTERVAL = 0.2
"""Seconds between two checks that the controller lives."""
MAX_TAKEOVERS, TAKEOVER_PERIOD = 5, 60.0
"""`stand_by` gives up if the controller dies more often than this within the period, in seconds."""
NOTICE_AFTER = 2.0
"""Seconds after which `down` says what it waits for."""


class LaunchError(Exception):
    """A deployment could not be started or stopped."""


def up(deployment: Deployment) -> "subprocess.Popen[bytes] | None":
    """Start a deployment, wait until all I/O nodes serve, and return an attached controller.

    Raises InputError if it is up already, and LaunchError if it cannot be started; then nothing is
    left running.
    """
    state = StateDirectory(Path(deployment.state))
    state.create()
    try:
        with hold_lock(state.lock) as lock:
            complete = with_stripe_layout(deployment)
            controller = _start(complete, state, lock)
            if not deployment.attached:
                with replacing(state.deployment, private=True) as unfinished:
                    unfinished.write_bytes(msgspec.json.encode(complete))
            return controller
    except BlockingIOError:
        raise InputError(f"already up in {state.folder}; 'penstock down' stops it") from None


def _start(
    deployment: Deployment, state: StateDirectory, lock: int
) -> "subprocess.Popen[bytes] | None":
    with _open_log(state.log) as log:
        controller = subprocess.Popen(
            [*CONTROLLER, str(lock), str(os.getpid())],
            pass_fds=[lock],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            start_new_session=True,
            env=os.environ | {"PENSTOCK_DISABLE": "1"},
        )
    assert controller.stdin is not None
    assert controller.stdout is not None
    try:
        with suppress(BrokenPipeError), controller.stdin as stdin:
            stdin.write(msgspec.json.encode(deployment))
        with controller.stdout as answer:
            _await_ready(state, answer.fileno(), deployment.serves_within + CLEAN_UP_TIMEOUT)
    except BaseException:
        end_holders([state.lock], grace=STOP_TIMEOUT)
        controller.kill()
        controller.wait()
        state.clean_up()
        raise
    if deployment.attached:
        return controller
    controller.wait()
    return None


def _open_log(path: Path) -> IO[bytes]:
    """Open the log, which names jobs and files, for nobody but this user."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(path, flags, 0o600)
    os.fchmod(descriptor, 0o600)  # it may be of an earlier version
    return open(descriptor, "ab")  # noqa: PTH123 - a descriptor


def stand_by(
    state: StateDirectory,
    report: Callable[[str], object] = lambda _: None,
    *,
    max_takeovers: int = MAX_TAKEOVERS,
    takeover_period: float = TAKEOVER_PERIOD,
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Start another controller whenever the controller dies; return once the deployment is down.

    Raises InputError if nothing is up or others can write what is, and LaunchError if controllers
    die too often or do not start.
    """
    if not state.exists() or _read_deployment(state) is None:
        raise InputError(f"nothing is up in {state.folder}; start it with 'penstock up'")
    report(f"standing by {state.folder}")
    deaths: deque[float] = deque(maxlen=max_takeovers)
    while (deployment := _read_deployment(state)) is not None:
        if not state.is_up():
            now = clock()
            if len(deaths) == max_takeovers and now - deaths[0] < takeover_period:
                raise LaunchError(f"the controller died {max_takeovers} times; {_log(state)}")
            deaths.append(now)
            if _take_over(deployment, state):
                report("the controller died; another one serves")
        time.sleep(POLL_INTERVAL)


def _take_over(deployment: Deployment, state: StateDirectory) -> bool:
    # Another process may be faster, or may be taking the deployment down.
    with suppress(BlockingIOError), hold_lock(state.lock) as lock:
        if state.deployment.exists():
            _start(deployment, state, lock)
            return True
    return False


def _read_deployment(state: StateDirectory) -> Deployment | None:
    """Return the deployment that should be up, or None once it is taken down.

    It names the commands that are run: InputError if others could have written it.
    """
    try:
        return msgspec.json.decode(trusted_files.read(state.deployment), type=Deployment)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.DecodeError) as error:
        raise InputError(f"{state.deployment}: {reason(error)}; run 'penstock up' again") from error


def _await_ready(state: StateDirectory, descriptor: int, seconds: float) -> None:
    text, deadline = b"", time.monotonic() + seconds
    while not text.endswith(b"\n"):
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([descriptor], [], [], left)[0]:
            raise LaunchError(f"the controller is not ready after {seconds:g} s; {_log(state)}")
        data = os.read(descriptor, 65536)
        if not data:
            raise LaunchError(f"the controller ended before it was ready; {_log(state)}")
        text += data
    answer = client.decode_line(text, messages.Done | messages.Failure)
    if isinstance(answer, messages.Failure):
        if answer.wrong_input:
            raise InputError(answer.error)
        raise LaunchError(f"{answer.error}; {_log(state, besides=answer.error)}")


def _log(state: StateDirectory, besides: str = "") -> str:
    """Return the end of the log, without the lines that say what is said already."""
    tail = state.log_tail()
    lines = [line for line in tail.split(" | ") if not besides or besides not in line]
    if tail and not lines:
        return f"see {state.log}"
    return f"the end of {state.log}: {' | '.join(lines) or 'nothing'}"


def ask(
    state: StateDirectory | RemoteController, message: messages.Message, answer: type[client.M]
) -> client.M:
    """Return the controller's answer; raise InputError if it refuses, or none is up.

    `state` is its directory, or where it listens on another host.
    """
    if isinstance(state, RemoteController):
        return _ask_remote(state, message, answer)
    if not state.is_of_another_user() and not state.is_up(allow_root=True):
        raise InputError(f"nothing is up in {state.folder}; start it with 'penstock up'")
    with connected(state) as controller:
        return controller.ask(message, answer)


def _ask_remote(
    remote: RemoteController, message: messages.Message, answer: type[client.M]
) -> client.M:
    try:
        with ControlConnection(remote) as controller:
            return controller.ask(message, answer)
    except PermissionError as error:
        raise LaunchError(f"the controller at {remote} refuses: {reason(error)}") from error
    except TimeoutError as error:
        raise LaunchError(f"the controller at {remote} does not answer") from error
    except OSError as error:
        raise LaunchError(
            f"the controller at {remote} cannot be reached: {reason(error)}"
        ) from error


@contextmanager
def connected(state: StateDirectory) -> Iterator[ControlConnection]:
    """Connect to a controller that is up; LaunchError: it does not answer."""
    try:
        with ControlConnection(state.controller) as controller:
            yield controller
    except TimeoutError as error:
        raise LaunchError(f"the controller does not answer; see {state.log}") from error
    except OSError as error:
        raise LaunchError(f"the controller cannot be reached: {error}; see {state.log}") from error


def down(state: StateDirectory, report: Callable[[str], object] = lambda _: None) -> bool:
    """Stop a deployment, wait until nothing is left running, and return whether there was one.

    If it takes longer than usual, `report` receives one line about what it waits for.
    """
    if not state.exists():
        return False
    state.deployment.unlink(missing_ok=True)
    pid = lock_holder(state.lock)
    if pid is None:
        return bool(_clean(state))
    with suppress(OSError):
        _stop(state, os.pidfd_open(pid), report)
    end_holders([state.lock], grace=STOP_TIMEOUT)
    _clean(state)
    return True


def _stop(state: StateDirectory, process: int, report: Callable[[str], object]) -> None:
    try:
        with ControlConnection(state.controller, timeout=STOP_TIMEOUT) as controller:
            controller.send(messages.Stop())
            try:
                controller.receive(messages.Done, NOTICE_AFTER)
            except TimeoutError:
                report(f"waiting up to {STOP_TIMEOUT:g} s for {_survivors(state)}, then killing it")
                controller.receive(messages.Done, STOP_TIMEOUT - NOTICE_AFTER)
        wait_for_exit(process, GRACE)
    finally:
        os.close(process)


def _survivors(state: StateDirectory) -> str:
    """Return the processes that have not ended: those that are stopped, else all of them."""
    locks = {"the controller": state.lock}
    for lock in sorted(state.folder.glob("io-node-*.lock")):
        locks[f"I/O node {lock.stem.removeprefix('io-node-')}"] = lock
    living = {name: pid for name, lock in locks.items() if (pid := lock_holder(lock))}
    stopped = [
        f"{name} (its process is stopped; 'kill -CONT {pid}' lets it finish)"
        for name, pid in living.items()
        if is_stopped(pid)
    ]
    # The controller ends last, and waits for the others itself.
    return ", ".join(stopped or list(living)[1:] or living)


def _clean(state: StateDirectory) -> int:
    try:
        with hold_lock(state.lock):
            return state.clean_up()
    except BlockingIOError:
        raise LaunchError(
            f"the controller in {state.folder} does not end; see {state.log}"
        ) from None
