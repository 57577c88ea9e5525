"""Brings a deployment up in the background, asks it, and takes it down."""

import os
import select
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import msgspec

from penstock.errors import InputError
from penstock.live import channel, wire
from penstock.live.channel import Channel
from penstock.live.deployment import ANSWERS_WITHIN, DRAINS_WITHIN, Deployment, laid_out
from penstock.live.state import GRACE, State, end, gone, holder, holding, is_stopped

CLEANS_WITHIN = 10.0
"""Seconds that the controller may take beyond its I/O nodes: ending what an earlier one left."""
STOPS_WITHIN = DRAINS_WITHIN + 2 * ANSWERS_WITHIN + 4.0
TOLD_AFTER = 2.0
"""Seconds of silence after which people wonder."""


class LaunchError(Exception):
    """A deployment that did not come up, or go down, and why."""


def up(deployment: Deployment) -> "subprocess.Popen[bytes] | None":
    """Return when all I/O nodes serve; an attached deployment's controller is returned.

    InputError: it is up already. LaunchError: it cannot be brought up; nothing is left running.
    """
    state = State(Path(deployment.state))
    state.create()
    try:
        with holding(state.lock) as lock:
            return _up(laid_out(deployment), state, lock)
    except BlockingIOError:
        raise InputError(
            f"already up in {state.folder}; 'penstock down' ends what is there"
        ) from None


def _up(deployment: Deployment, state: State, lock: int) -> "subprocess.Popen[bytes] | None":
    with state.log.open("ab") as log:
        controller = subprocess.Popen(
            [sys.executable, "-P", "-m", "penstock.live.controller", str(lock), str(os.getpid())],
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
        end([state.lock], grace=STOPS_WITHIN)
        controller.kill()
        controller.wait()
        state.clean()
        raise
    if deployment.attached:
        return controller
    controller.wait()
    return None


def _await_ready(state: State, descriptor: int, seconds: float) -> None:
    text, until = b"", time.monotonic() + seconds
    while not text.endswith(b"\n"):
        left = until - time.monotonic()
        if left <= 0 or not select.select([descriptor], [], [], left)[0]:
            raise LaunchError(f"the controller is not ready after {seconds:g} s; {_log(state)}")
        more = os.read(descriptor, 65536)
        if not more:
            raise LaunchError(f"the controller ended before it was ready; {_log(state)}")
        text += more
    answer = channel.parse(text, wire.Done | wire.Failed)
    if isinstance(answer, wire.Failed):
        if answer.wrong_input:
            raise InputError(answer.error)
        raise LaunchError(f"{answer.error}; {_log(state)}")


def _log(state: State) -> str:
    return f"the end of {state.log}: {state.tail() or 'nothing'}"


def ask(state: State, message: wire.Message, answer: type[channel.M]) -> channel.M:
    """Return the controller's answer; InputError: none is up, or it says what is wrong."""
    if not state.is_up():
        raise InputError(f"nothing is up in {state.folder}; 'penstock up' brings it up")
    try:
        with Channel(state.controller) as controller:
            return controller.ask(message, answer)
    except TimeoutError as error:
        raise LaunchError(f"the controller does not answer; see {state.log}") from error
    except OSError as error:
        raise LaunchError(f"the controller cannot be asked: {error}; see {state.log}") from error


def down(state: State, tell: Callable[[str], object] = lambda _: None) -> bool:
    """Return when nothing is left running; say whether there was anything.

    What has not ended when it is usually over is told once, in a line.
    """
    if not state.exists():
        return False
    pid = holder(state.lock)
    if pid is None:
        return bool(_clean(state))
    with suppress(OSError):
        _stop(state, os.pidfd_open(pid), tell)
    end([state.lock], grace=STOPS_WITHIN)
    _clean(state)
    return True


def _stop(state: State, process: int, tell: Callable[[str], object]) -> None:
    try:
        with Channel(state.controller, patience=STOPS_WITHIN) as controller:
            controller.send(wire.Stop())
            try:
                controller.receive(wire.Done, TOLD_AFTER)
            except TimeoutError:
                tell(f"waiting up to {STOPS_WITHIN:g} s for {_unended(state)}; then it is killed")
                controller.receive(wire.Done, STOPS_WITHIN - TOLD_AFTER)
        gone(process, GRACE)
    finally:
        os.close(process)


def _unended(state: State) -> str:
    """Return whom the end of a deployment waits for: who is stopped, else who is there."""
    locks = {"the controller": state.lock}
    for lock in sorted(state.folder.glob("io-node-*.lock")):
        locks[f"I/O node {lock.stem.removeprefix('io-node-')}"] = lock
    living = {who: pid for who, lock in locks.items() if (pid := holder(lock))}
    stopped = [
        f"{who} (its process is stopped; 'kill -CONT {pid}' lets it finish)"
        for who, pid in living.items()
        if is_stopped(pid)
    ]
    # The controller ends last, and waits itself.
    return ", ".join(stopped or list(living)[1:] or living)


def _clean(state: State) -> int:
    try:
        with holding(state.lock):
            return state.clean()
    except BlockingIOError:
        raise LaunchError(
            f"the controller in {state.folder} does not end; see {state.log}"
        ) from None
