"""The check of a policy in a process of its own, with a limit on its processor time.

A policy may never return. Processor time, unlike the time of day, does not depend on what else the
machine does; a policy that sleeps uses none, and is ended after a long time of day.
"""

import math
import multiprocessing
import os
import resource
import signal
import time
from multiprocessing.connection import Connection
from pathlib import Path
from types import FrameType

import msgspec

from penstock.errors import InputError
from penstock.policies._support.asking import policy_method

GRACE = 2
"""Seconds of processor time after the limit: a call that does not return to Python is killed."""
PATIENCE, LEAST_PATIENCE = 10, 60.0
"""The time of day that a check may take: a factor of its processor time, and seconds at least."""


class Checked(msgspec.Struct, frozen=True, kw_only=True):
    """What was found: `problems` break the contract, `warnings` may."""

    problems: list[str] = []
    warnings: list[str] = []
    refused: str | None = None
    """Why the policy could not be made at all."""


def check_within(kind: str, name: str, seconds: int, *, patience: float | None = None) -> Checked:
    """Check a policy, within a limit of processor time; InputError: it cannot be made.

    `patience` is the time of day that it may take, in seconds.
    """
    patience = max(PATIENCE * seconds, LEAST_PATIENCE) if patience is None else patience
    context = multiprocessing.get_context("spawn")
    reader, writer = context.Pipe(duplex=False)
    process = context.Process(target=_check, args=(writer, kind, name, seconds))
    process.start()
    writer.close()
    try:
        if not reader.poll(patience):
            return Checked(problems=[f"it did not return within {patience:g} s{_IDLE}"])
        answer = reader.recv_bytes()
    except EOFError:
        process.join()
        return Checked(problems=[_end(process.exitcode, seconds)])
    finally:
        process.kill()
        process.join()
        reader.close()
    checked = msgspec.json.decode(answer, type=Checked)
    if checked.refused is not None:
        raise InputError(checked.refused)
    return checked


def _end(status: int | None, seconds: int) -> str:
    if status in {-signal.SIGKILL, -signal.SIGXCPU}:
        return f"one of its calls was killed after {seconds} s of processor time; {_ADVICE}"
    return f"it ended the process that checked it (exit status {status})"


_IDLE = ", and did not use its processor time: it sleeps, or waits for something"
_ADVICE = "if it is slow and not endless, raise --cpu-limit"


def _check(writer: Connection, kind: str, name: str, seconds: int) -> None:
    """Send what was found."""
    from penstock.sim.evaluate import contract  # noqa: PLC0415 - loads the engine

    def out_of_time(_: int, frame: FrameType | None) -> None:
        problem = f"it takes more than {seconds} s of processor time{_where(frame)}; {_ADVICE}"
        writer.send_bytes(msgspec.json.encode(Checked(problems=[problem])))
        os._exit(1)

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent is interrupted, and ends this
    signal.signal(signal.SIGXCPU, out_of_time)
    limit = math.ceil(time.process_time()) + seconds
    _, most = resource.getrlimit(resource.RLIMIT_CPU)
    hard = limit + GRACE if most == resource.RLIM_INFINITY else min(limit + GRACE, most)
    resource.setrlimit(resource.RLIMIT_CPU, (min(limit, hard), hard))
    try:
        result = Checked(
            problems=contract.check(kind, name), warnings=contract.warnings(kind, name)
        )
    except InputError as error:
        result = Checked(refused=str(error))
    except BaseException as error:  # Ctrl-C is the parent's: it is the policy's own
        result = Checked(problems=[f"it raises {type(error).__name__} {error}".rstrip()])
    writer.send_bytes(msgspec.json.encode(result))


def _where(frame: FrameType | None) -> str:
    """Say where a policy was when its time was over."""
    if frame is None:
        return ""
    method = policy_method(frame)
    line = f"{Path(frame.f_code.co_filename).name}, line {frame.f_lineno}"
    return f", the last of it in {method or frame.f_code.co_qualname} ({line})"
