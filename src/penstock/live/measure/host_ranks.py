"""The ranks of one host, where a measurement has several: they meet those of the other hosts.

`python -m penstock.live.measure.host_ranks PLAN DESCRIPTOR LAUNCHER` is the command of a job. It
forks the ranks of its host. Once all of them wait, it says so to the measurement, on the connection
whose descriptor it inherits, and the measurement releases all hosts together. It ends with the
process LAUNCHER.

Hosts have clocks of their own. The measurement's is asked for several times; the shortest exchange
says how far this host's is from it, to half its duration.
"""

import multiprocessing
import os
import signal
import struct
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from multiprocessing import connection
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path

import msgspec

from penstock.live.measure import rank
from penstock.live.measure.rank import BROKEN, GO, READY, Plan
from penstock.live.protocol.process import end_with_parent

TIME = b"time"
"""Asks for the measurement's clock."""
CLOCK = struct.Struct("<d")
EXCHANGES = 8
_LEAVE, _DIRECT = -1, -1
Ranks = dict[Connection, BaseProcess]


class HostPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The ranks of a host."""

    plan: Plan
    ranks: list[int]
    wanted: list[int]  # the I/O node of each of them; empty: any


class HostNotes(msgspec.Struct, frozen=True, kw_only=True):
    """What is not of a single rank."""

    clock_offset: float  # seconds to add to this host's monotonic clock
    reads_to_connect: dict[int, int]

    @staticmethod
    def file(results: str) -> Path:
        """Return where it is written."""
        return Path(results) / "host.json"


def clock_offset(exchanges: Sequence[tuple[float, float, float]]) -> float:
    """Return what to add to this host's clock, from exchanges: sent, the other's clock, received.

    The other end read its clock somewhere between; the middle is off by half an exchange at most.
    """
    sent, other, received = min(exchanges, key=lambda one: one[2] - one[0])
    return other - (sent + received) / 2


def _compare_clocks(measurement: Connection) -> float:
    exchanges = []
    for _ in range(EXCHANGES):
        sent = time.monotonic()
        measurement.send_bytes(TIME)
        answer = measurement.recv_bytes()
        if len(answer) != CLOCK.size:
            raise ConnectionAbortedError("the ranks of another host have failed")
        (other,) = CLOCK.unpack(answer)
        exchanges.append((sent, other, time.monotonic()))
    return clock_offset(exchanges)


def _run_forked_rank(
    plan: Plan, number: int | None, gate: Connection, measurement: Connection, parent: int
) -> None:
    end_with_parent(signal.SIGKILL, parent)
    measurement.close()
    if number is None:
        rank.connect(plan)
        io_nodes = rank.connected(plan.io_nodes)
        gate.send_bytes(msgspec.json.encode(io_nodes[0] if io_nodes else _DIRECT))
        number = msgspec.json.decode(gate.recv_bytes(), type=int)
        if number == _LEAVE:
            return
    rank.run_rank(plan, number, lambda: rank.wait_at_barrier(gate, plan.timeout))


def _fork(work: HostPlan, measurement: Connection, reads: Counter[int]) -> Ranks:
    """Fork the ranks of this host.

    The order of arrival determines the I/O node of a process. So a process connects first, and then
    becomes a rank that should have this I/O node; without such a rank, it ends.
    """
    fork = multiprocessing.get_context("fork")

    def start(number: int | None) -> tuple[Connection, BaseProcess]:
        gate, rank_end = fork.Pipe()
        arguments = (work.plan, number, rank_end, measurement, os.getpid())
        process = fork.Process(target=_run_forked_rank, args=arguments)
        process.start()
        rank_end.close()  # a later rank would inherit it, and hide the end of this one
        return gate, process

    if not work.wanted:
        return dict(start(number) for number in work.ranks)
    missing = dict(zip(work.ranks, work.wanted, strict=True))
    ranks: Ranks = {}
    dismissed = 0
    while missing:
        gate, process = start(None)
        try:
            io_node = msgspec.json.decode(gate.recv_bytes(), type=int)
        except EOFError:
            raise SystemExit("a rank ended before it had connected") from None
        reads[io_node] += 1
        # An I/O node that is down comes to nobody: whoever wants it takes another, and is marked.
        number = choose(missing, io_node, any_one=dismissed >= 2 * len(work.plan.io_nodes))
        if number is None:
            gate.send_bytes(msgspec.json.encode(_LEAVE))
            process.join()
            gate.close()
            dismissed += 1
            continue
        gate.send_bytes(msgspec.json.encode(number))
        del missing[number]
        ranks[gate] = process
        dismissed = 0
    return ranks


def choose(missing: Mapping[int, int], io_node: int, *, any_one: bool) -> int | None:
    """Return the rank that a process with this I/O node becomes, or None if no rank wants it."""
    for number, wanted in missing.items():
        if wanted == io_node or any_one or io_node == _DIRECT:
            return number
    return None


def serve_barrier(ranks: Ranks, measurement: Connection) -> int:
    """Release the ranks whenever the measurement does; return their worst exit status.

    If one of them fails, or ends while others wait, or the measurement says so, all are ended.
    """
    alive, waiting = dict(ranks), set[Connection]()
    broken = announced = False
    while alive:
        for ready in connection.wait([*alive, measurement]):
            assert isinstance(ready, Connection)
            if ready is measurement:
                answer = _released(measurement)
                if answer == GO:
                    _release(waiting, GO)
                    announced = False
                else:
                    broken = True
                    _kill(alive)
            elif not _arrived(ready, waiting):
                ended = alive.pop(ready, None)
                if ended is not None:
                    ended.join()
                    if ended.exitcode:
                        _kill(alive)
        if waiting and (broken or len(alive) < len(ranks)):
            _release(waiting, BROKEN)
        elif len(waiting) == len(ranks) and not announced:
            with suppress(OSError):  # its end is noticed above
                measurement.send_bytes(READY)
            announced = True
    return max(abs(process.exitcode or 0) for process in ranks.values())


def _released(measurement: Connection) -> bytes:
    try:
        return measurement.recv_bytes()
    except (EOFError, OSError):
        return BROKEN


def _arrived(gate: Connection, waiting: set[Connection]) -> bool:
    try:
        gate.recv_bytes()
    except (EOFError, OSError):
        waiting.discard(gate)
        return False
    waiting.add(gate)
    return True


def _release(waiting: set[Connection], answer: bytes) -> None:
    for gate in waiting:
        with suppress(OSError):  # it has just ended
            gate.send_bytes(answer)
    waiting.clear()


def _kill(ranks: Ranks) -> None:
    for process in ranks.values():
        process.kill()


def run(
    work: HostPlan, measurement: Connection, compare_clocks: Callable[[Connection], float]
) -> int:
    """Run the ranks; return their worst exit status."""
    offset = compare_clocks(measurement)
    reads: Counter[int] = Counter()
    status = serve_barrier(_fork(work, measurement, reads), measurement)
    notes = HostNotes(clock_offset=offset, reads_to_connect=dict(reads))
    HostNotes.file(work.plan.results).write_bytes(msgspec.json.encode(notes))
    return status


def main() -> int:
    """Run the plan in the file that the first argument names."""
    # The measurement would wait for a connection that this process holds open.
    end_with_parent(signal.SIGKILL, int(sys.argv[3]))
    work = msgspec.json.decode(Path(sys.argv[1]).read_bytes(), type=HostPlan)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        return run(work, Connection(int(sys.argv[2])), _compare_clocks)
    except (EOFError, ConnectionError):
        return 1  # the measurement has ended


if __name__ == "__main__":
    sys.exit(main())
