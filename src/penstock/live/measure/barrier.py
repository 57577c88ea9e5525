"""A barrier of processes that one has forked: they tell it that they are there, it lets them go.

Of sockets alone: semaphores need a shared memory that not every user may write.
"""

from collections.abc import Mapping
from contextlib import suppress
from multiprocessing import connection
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from threading import BrokenBarrierError

_HERE, _GO, _BROKEN = b"here", b"go", b"broken"


def wait(gate: Connection, patience: float) -> None:
    """Return when every process waits; BrokenBarrierError: one has ended, or takes too long."""
    gate.send_bytes(_HERE)
    if not gate.poll(patience):
        raise BrokenBarrierError
    if gate.recv_bytes() != _GO:
        raise BrokenBarrierError


def attend(processes: Mapping[Connection, BaseProcess]) -> int:
    """Let the processes go together until all have ended; return their worst exit status.

    Each is known by its gate, whose other end it alone holds, as long as it lives. Who waits while
    another has ended waits for nothing, and is told; when one is killed, all are.
    """
    alive = dict(processes)
    waiting: set[Connection] = set()
    while alive:
        for gate in connection.wait(list(alive)):
            assert isinstance(gate, Connection)
            try:
                gate.recv_bytes()
                waiting.add(gate)
            except (EOFError, OSError):
                ended = alive.pop(gate)
                waiting.discard(gate)
                ended.join()
                if ended.exitcode:
                    for other in alive.values():
                        other.kill()
        broken = len(alive) < len(processes)
        if broken or len(waiting) == len(processes):
            for gate in waiting:
                with suppress(OSError):  # it has just ended
                    gate.send_bytes(_BROKEN if broken else _GO)
            waiting.clear()
    return max(abs(process.exitcode or 0) for process in processes.values())
