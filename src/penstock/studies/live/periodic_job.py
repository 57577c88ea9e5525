"""A job that computes and writes in turn, and notes when: `periodic_job.py PLAN`.

Computing is sleeping, so that many such jobs fit on few cores. A phase is written by several
threads, as jobs do it: an I/O node shares by weight only among jobs that have requests waiting.
Alone in its process it needs nothing but the standard library, so that sixteen start quickly.

It says "ready", reads the time of the common clock (CLOCK_MONOTONIC) that is the site's zero, and
leaves its times, in seconds since then, in the file that the plan names.
"""

import itertools
import json
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

import penstock

FILE_REQUESTS = 16
"""Requests after which a file is written over: the volume is not kept."""


class Writers:
    """Threads that write a phase together, each to a file of its own; the caller is one of them.

    They meet at plain locks: a hundredth of a phase is soon lost.
    """

    def __init__(self, folder: Path, name: str, threads: int, request: int) -> None:
        self._request = request
        self._volume = 0
        self._next = itertools.count()
        self._files = [
            os.open(folder / f"{name}.{k}", os.O_CREAT | os.O_WRONLY, 0o600) for k in range(threads)
        ]
        self._starts = [threading.Lock() for _ in self._files[1:]]
        self._ends = [threading.Lock() for _ in self._files[1:]]
        for file, start, end in zip(self._files[1:], self._starts, self._ends, strict=True):
            start.acquire()
            end.acquire()
            threading.Thread(target=self._serve, args=(file, start, end), daemon=True).start()

    def write(self, volume: int) -> None:
        """Write that many bytes; return when all are written."""
        self._volume, self._next = volume, itertools.count()
        for start in self._starts:
            start.release()
        self._share(self._files[0])
        for end in self._ends:
            end.acquire()

    def _serve(self, file: int, start: threading.Lock, end: threading.Lock) -> None:
        while True:
            start.acquire()
            self._share(file)
            end.release()

    def _share(self, file: int) -> None:
        """Take requests of the phase until none is left."""
        buffer = memoryview(bytes(self._request))
        for mine in itertools.count():
            left = self._volume - next(self._next) * self._request
            if left <= 0:
                return
            part, offset = buffer[:left], mine % FILE_REQUESTS * self._request
            try:
                while part:
                    done = os.pwrite(file, part, offset)
                    part, offset = part[done:], offset + done
            except OSError as error:
                sys.stderr.write(f"{error}\n")
                os._exit(1)


def play(plan: dict[str, Any], writers: Writers, zero: float) -> dict[str, list[float]]:
    """Do the phases until none is left, or the plan's time is over; return when they were."""
    times: dict[str, list[float]] = {"start": [], "request": [], "turn": [], "end": []}
    begun = zero + plan["release"]
    time.sleep(max(begun - time.monotonic(), 0.0))
    for compute, volume in plan["phases"]:
        time.sleep(max(begun + compute - time.monotonic(), 0.0))
        request = time.monotonic()
        with penstock.phase(bytes=volume):
            turn = time.monotonic()
            writers.write(volume)
        end = time.monotonic()
        for name, at in zip(times, (begun, request, turn, end), strict=True):
            times[name].append(at - zero)
        begun = end
        if end - zero >= plan["until"]:
            break
    return times


def main() -> None:
    """Run the plan in the file named on the command line."""
    # An interrupt from the terminal ends all jobs at once, without a traceback from each.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    plan = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    writers = Writers(Path(plan["folder"]), plan["name"], plan["threads"], plan["request"])
    # Each thread connects with its first request, which must not count in a phase. These few bytes
    # are too little to be detected as a phase.
    writers.write(plan["threads"] * plan["request"])
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    line = sys.stdin.readline()
    if not line:  # the parent process is gone
        sys.exit(1)
    times = play(plan, writers, float(line))
    Path(plan["results"]).write_text(json.dumps(times), encoding="utf-8")


if __name__ == "__main__":
    main()
