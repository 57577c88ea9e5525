"""Brings a deployment up in the background, asks it, and takes it down."""

import os
import select
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import msgspec

from penstock.errors import InputError
from penstock.files import reason, replacing
from penstock.live.deployment.spec import ANSWERS_WITHIN, DRAINS_WITHIN, Deployment, laid_out
from penstock.live.protocol import client, messages
from penstock.live.protocol.client import ControlConnection
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
CLEANS_WITHIN = 10.0
"""Seconds that the controller may take beyond its I/O nodes: ending what an earlier one left."""
STOPS_WITHIN = DRAINS_WITHIN + 2 * ANSWERS_WITHIN + 4.0
LOOKS_EVERY = 0.2
"""Seconds between two looks whether the controller lives."""
TAKEOVERS, TAKEOVERS_WITHIN = 5, 60.0
"""A controller that dies more often than this, in so many seconds, is given up."""
TOLD_AFTER = 2.0
"""Seconds of silence after which people wonder."""


class LaunchError(Exception):
    """A deployment that did not come up, or go down, and why."""


def up(deployment: Deployment) -> "subprocess.Popen[bytes] | None":
    """Return when all I/O nodes serve; an attached deployment's controller is returned.

    InputError: it is up already. LaunchError: it cannot be brought up; nothing is left running.
    """
    state = StateDirectory(Path(deployment.state))
    state.create()
    try:
        with hold_lock(state.lock) as lock:
            laid = laid_out(deployment)
            controller = _up(laid, state, lock)
            if not deployment.attached:
                with replacing(state.deployment) as unfinished:
                    unfinished.write_bytes(msgspec.json.encode(laid))
            return controller
    except BlockingIOError:
        raise InputError(
            f"already up in {state.folder}; 'penstock down' ends what is there"
        ) from None


def _up(
    deployment: Deployment, state: StateDirectory, lock: int
) -> "subprocess.Popen[bytes] | None":
    with state.log.open("ab") as log:
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
        with suppress(BrokenPipeError), controller.stdin as told:
            told.write(msgspec.json.encode(deployment))
        with controller.stdout as answer:
            _await_ready(state, answer.fileno(), deployment.serves_within + CLEANS_WITHIN)
    except BaseException:
        end_holders([state.lock], grace=STOPS_WITHIN)
        controller.kill()
        controller.wait()
        state.clean_up()
        raise
    if deployment.attached:
        return controller
    controller.wait()
    return None


def stand_by(state: StateDirectory, tell: Callable[[str], object] = lambda _: None) -> None:
    """Return when the deployment is taken down; whenever its controller dies, start another.

    InputError: nothing is up. LaunchError: controllers die too often, or do not come up.
    """
    if _wanted(state) is None:
        raise InputError(f"nothing is up in {state.folder}; 'penstock up' brings it up")
    tell(f"standing by {state.folder}")
    died: deque[float] = deque(maxlen=TAKEOVERS)
    while (deployment := _wanted(state)) is not None:
        if not state.is_up():
            now = time.monotonic()
            if len(died) == TAKEOVERS and now - died[0] < TAKEOVERS_WITHIN:
                raise LaunchError(f"the controller died {TAKEOVERS} times; {_log(state)}")
            died.append(now)
            if _took_over(deployment, state):
                tell("the controller died; another one serves")
        time.sleep(LOOKS_EVERY)


def _took_over(deployment: Deployment, state: StateDirectory) -> bool:
    # Somebody may be faster, or may just take it down.
    with suppress(BlockingIOError), hold_lock(state.lock) as lock:
        if state.deployment.exists():
            _up(deployment, state, lock)
            return True
    return False


def _wanted(state: StateDirectory) -> Deployment | None:
    """Return what is to be up, and has not been taken down."""
    try:
        return msgspec.json.decode(state.deployment.read_bytes(), type=Deployment)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.DecodeError) as error:
        raise InputError(f"{state.deployment}: {reason(error)}; 'penstock up' anew") from error


def _await_ready(state: StateDirectory, descriptor: int, seconds: float) -> None:
    text, until = b"", time.monotonic() + seconds
    while not text.endswith(b"\n"):
        left = until - time.monotonic()
        if left <= 0 or not select.select([descriptor], [], [], left)[0]:
            raise LaunchError(f"the controller is not ready after {seconds:g} s; {_log(state)}")
        more = os.read(descriptor, 65536)
        if not more:
            raise LaunchError(f"the controller ended before it was ready; {_log(state)}")
        text += more
    answer = client.decode_line(text, messages.Done | messages.Failure)
    if isinstance(answer, messages.Failure):
        if answer.wrong_input:
            raise InputError(answer.error)
        raise LaunchError(f"{answer.error}; {_log(state)}")


def _log(state: StateDirectory) -> str:
    return f"the end of {state.log}: {state.log_tail() or 'nothing'}"


def ask(state: StateDirectory, message: messages.Message, answer: type[client.M]) -> client.M:
    """Return the controller's answer; InputError: none is up, or it says what is wrong."""
    if not state.is_up(allow_root=True):
        raise InputError(f"nothing is up in {state.folder}; 'penstock up' brings it up")
    try:
        with ControlConnection(state.controller) as controller:
            return controller.ask(message, answer)
    except TimeoutError as error:
        raise LaunchError(f"the controller does not answer; see {state.log}") from error
    except OSError as error:
        raise LaunchError(f"the controller cannot be asked: {error}; see {state.log}") from error


def down(state: StateDirectory, tell: Callable[[str], object] = lambda _: None) -> bool:
    """Return when nothing is left running; say whether there was anything.

    What has not ended when it is usually over is told once, in a line.
    """
    if not state.exists():
        return False
    state.deployment.unlink(missing_ok=True)
    pid = lock_holder(state.lock)
    if pid is None:
        return bool(_clean(state))
    with suppress(OSError):
        _stop(state, os.pidfd_open(pid), tell)
    end_holders([state.lock], grace=STOPS_WITHIN)
    _clean(state)
    return True


def _stop(state: StateDirectory, process: int, tell: Callable[[str], object]) -> None:
    try:
        with ControlConnection(state.controller, timeout=STOPS_WITHIN) as controller:
            controller.send(messages.Stop())
            try:
                controller.receive(messages.Done, TOLD_AFTER)
            except TimeoutError:
                tell(f"waiting up to {STOPS_WITHIN:g} s for {_unended(state)}; then it is killed")
                controller.receive(messages.Done, STOPS_WITHIN - TOLD_AFTER)
        wait_for_exit(process, GRACE)
    finally:
        os.close(process)


def _unended(state: StateDirectory) -> str:
    """Return whom the end of a deployment waits for: who is stopped, else who is there."""
    locks = {"the controller": state.lock}
    for lock in sorted(state.folder.glob("io-node-*.lock")):
        locks[f"I/O node {lock.stem.removeprefix('io-node-')}"] = lock
    living = {who: pid for who, lock in locks.items() if (pid := lock_holder(lock))}
    stopped = [
        f"{who} (its process is stopped; 'kill -CONT {pid}' lets it finish)"
        for who, pid in living.items()
        if is_stopped(pid)
    ]
    # The controller ends last, and waits itself.
    return ", ".join(stopped or list(living)[1:] or living)


def _clean(state: StateDirectory) -> int:
    try:
        with hold_lock(state.lock):
            return state.clean_up()
    except BlockingIOError:
        raise LaunchError(
            f"the controller in {state.folder} does not end; see {state.log}"
        ) from None
