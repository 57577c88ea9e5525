"""Ends the call of a policy that computes for too long, so that the controller goes on.

Turns are decided in the controller's loop: while a policy computes, no heartbeat is sent, and after
a lease all gates open by themselves. A policy that never returned would keep the controller for
ever. The watch counts the processor time of the policy's own thread, so neither a busy host nor
another thread of the controller is a reason to end a call. It ends Python code; a call into native
code that does not return is not ended, and neither is one that sleeps, or waits for a thread.
"""

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from traceback import format_exception
from types import FrameType

from penstock.policies._support.asking import OutOfTime, guard, is_in_policy

AGAIN = 0.02
"""Seconds of processor time after which a policy that went on is interrupted again."""
LONGEST_TRACEBACK = 4000
"""Characters of an exception in the log: the last of them, which say what it was."""
Watch = Callable[[], AbstractContextManager[None]]
"""Makes the context of one decision."""
unwatched: Watch = nullcontext


def watched(seconds: float) -> Watch:
    """Return a watch on the processor time of each decision; the main thread's alone."""
    if threading.current_thread() is not threading.main_thread():
        return unwatched

    began = 0.0

    def interrupt(_: int, frame: FrameType | None) -> None:
        # The timer counts all threads of the process; it fires again until it is set to zero.
        # Elsewhere than in a policy an exception would leave a decision half made.
        if time.thread_time() - began >= seconds and is_in_policy(frame):
            raise OutOfTime(f"{seconds:g} s")

    @contextmanager
    def decision() -> Iterator[None]:
        nonlocal began
        began = time.thread_time()
        signal.setitimer(signal.ITIMER_PROF, seconds, AGAIN)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0.0)

    signal.signal(signal.SIGPROF, interrupt)
    return decision


def failure_text(watch: Watch, policy: object, error: BaseException) -> str:
    """Return the traceback of what a policy raised: its text is code of the policy, and watched."""
    with suppress(BaseException), watch():
        lines = guard(policy, "an exception", format_exception, error)
        return "".join(lines)[-LONGEST_TRACEBACK:]
    return type(error).__name__
