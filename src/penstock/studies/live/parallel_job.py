"""A job of processes that compute and write in step, and notes when: `parallel_job.py PLAN`.

Computing is sleeping. Each process writes a file of its own, or blocks of one shared file in turn
with the others. It is an unmodified program: its phases are detected.

It says "ready", reads the time of the common clock (CLOCK_MONOTONIC) at which it begins, if the
plan says that it waits for it, and leaves the times of its phases in the file that the plan names.
Alone in its process it needs nothing but the standard library.
"""

import json
import mmap
import os
import signal
import struct
import sys
import time
from multiprocessing import get_context
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

FILE_REQUESTS = 64
"""Requests of a process after which its file is written over: the volume is not kept."""
FIRST = 4096
"""Bytes of the first request of each process, one process after the other. So they have their I/O
nodes in the order of their ranks, as those of an MPI job dealt out, and connections are there when
phases begin. That is too little to be detected as a phase."""
TIMES = struct.Struct("dd")


class Process:
    """One of the processes; all write their parts of a phase between two barriers."""

    def __init__(self, plan: dict[str, Any], rank: int, all_processes: Barrier) -> None:
        self._plan, self._rank, self._all = plan, rank, all_processes
        self._shared = bool(plan["shared"])
        name = plan["name"] if self._shared else f"{plan['name']}.{rank}"
        path = Path(plan["folder"]) / name
        self._file = os.open(path, os.O_CREAT | os.O_WRONLY, 0o600)
        self._buffer = memoryview(bytes(plan["request"]))
        os.pwrite(self._file, self._buffer[:FIRST], 0)

    def run(self, notes: mmap.mmap) -> None:
        """Do all phases; the first process notes when they began and ended."""
        begin = self._plan["begin"]
        for k in range(self._plan["phases"]):
            time.sleep(max(begin + self._plan["compute"] - time.monotonic(), 0.0))
            self._all.wait()
            began = time.monotonic()
            self._write(k)
            self._all.wait()
            begin = time.monotonic()
            if self._rank == 0:
                TIMES.pack_into(notes, k * TIMES.size, began, begin)

    def _write(self, phase: int) -> None:
        processes, request = self._plan["processes"], self._plan["request"]
        requests = self._plan["volume"] // (processes * request)
        for k in range(requests):
            at = (phase * requests + k) % FILE_REQUESTS
            offset = (at * processes + self._rank if self._shared else at) * request
            part = self._buffer
            while part:
                done = os.pwrite(self._file, part, offset)
                part, offset = part[done:], offset + done


def main() -> None:
    """Run the plan in the file named on the command line."""
    # An interrupt from the terminal ends all jobs at once, without a traceback from each.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    plan = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    plan["begin"] = time.monotonic()
    if plan["waits"]:
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        line = sys.stdin.readline()
        if not line:  # the parent process is gone
            sys.exit(1)
        plan["begin"] = float(line)
    with mmap.mmap(-1, plan["phases"] * TIMES.size) as notes:
        status = _run(plan, notes)
        times = [TIMES.unpack_from(notes, k * TIMES.size) for k in range(plan["phases"])]
    if status == 0:
        result = {"start": plan["begin"], "phases": times}
        Path(plan["results"]).write_text(json.dumps(result), encoding="utf-8")
    sys.exit(status)


def _run(plan: dict[str, Any], notes: mmap.mmap) -> int:
    """Run the processes; return the status of the last that failed, or zero."""
    all_processes = get_context("fork").Barrier(plan["processes"])
    children: list[int] = []

    def terminate(*_: object) -> None:
        for child in children:  # they would go on without it
            _end(child)
        os._exit(128 + signal.SIGTERM)

    signal.signal(signal.SIGTERM, terminate)
    for rank in range(plan["processes"]):
        ready, is_ready = os.pipe()
        child = os.fork()
        if child == 0:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            _child(plan, rank, all_processes, notes, is_ready)
        children.append(child)
        os.close(is_ready)
        os.read(ready, 1)
        os.close(ready)
    failed = 0
    for _ in children:
        _, status = os.wait()
        if status != 0 and failed == 0:
            failed = os.waitstatus_to_exitcode(status) or 1
            for child in children:  # the others would wait for it
                _end(child)
    return abs(failed)


def _end(child: int) -> None:
    """End a process, if it is still there."""
    try:
        os.kill(child, signal.SIGTERM)
    except ProcessLookupError:
        return


def _child(
    plan: dict[str, Any],
    rank: int,
    all_processes: Barrier,
    notes: mmap.mmap,
    is_ready: int,
) -> None:
    status = 1
    try:
        process = Process(plan, rank, all_processes)
        os.close(is_ready)
        process.run(notes)
        status = 0
    except OSError as error:
        sys.stderr.write(f"{error}\n")
    finally:
        os._exit(status)


if __name__ == "__main__":
    main()
