"""What programs of small calls pay for the client library: SQLite, and single calls, on tmpfs.

    python benchmarks/programs.py [--repeats N]

Each row runs plainly, with the gate alone (no I/O nodes), with an I/O node of the host that gives
credits, with one that decides about each call, and with one that carries data as another host's
would. The ways run in random order; a row gives the least that each took, as a multiple of the
plain one, and the median: what a busy machine adds is in the second. Cached data, so that nothing
hides what the library costs; calls are Python's, which adds about 0.3 us to each. No row is a test.
"""

from __future__ import annotations

import argparse
import random
import sys
from contextlib import ExitStack
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from live.client.set_ups import set_up

WAYS = {
    "gate alone": ("no I/O nodes", ()),
    "credits": ("observe", ()),
    "each call": ("observe", ("--scheduler", "time-order")),
    "carried": ("carried over TCP", ()),
}
SQLITE = """
import os, sqlite3, sys, time
path = f"db{os.getpid()}"
c = sqlite3.connect(path, isolation_level=None)
c.execute("pragma synchronous=off"); c.execute("pragma journal_mode=MODE")
c.execute("create table t (k integer primary key, v text)")
began = time.perf_counter()
for k in range(1000):
    c.execute("begin"); c.execute("insert into t (v) values (1)"); c.execute("commit")
print(time.perf_counter() - began)
c.close(); os.unlink(path)
"""
CALLS = """
import os, time
fd = os.open(f"f{os.getpid()}", os.O_RDWR | os.O_CREAT)
os.write(fd, bytes(4 << 20)); data = bytes(SIZE)
places = [SIZE * (k % ((4 << 20) // SIZE)) for k in range(COUNT)]
began = time.perf_counter()
for at in places: CALL
print((time.perf_counter() - began) / COUNT)
os.unlink(f"f{os.getpid()}")
"""
STARTS = """
import os, subprocess, time
began = time.perf_counter()
for _ in range(100): subprocess.run(["/bin/true"], check=True)
print((time.perf_counter() - began) / 100)
"""


def calls(call: str, size: int, count: int) -> str:
    return CALLS.replace("CALL", call).replace("SIZE", str(size)).replace("COUNT", str(count))


ROWS = {
    "SQLite, 1,000 commits, journal": (SQLITE.replace("MODE", "delete"), 1e3, "ms"),
    "SQLite, 1,000 commits, WAL": (SQLITE.replace("MODE", "wal"), 1e3, "ms"),
    "pwrite 4 KiB": (calls("os.pwrite(fd, data, at)", 4 << 10, 20_000), 1e6, "us"),
    "pread 4 KiB": (calls("os.pread(fd, SIZE, at)", 4 << 10, 20_000), 1e6, "us"),
    "pwrite 64 KiB": (calls("os.pwrite(fd, data, at)", 64 << 10, 4_000), 1e6, "us"),
    "pread 64 KiB": (calls("os.pread(fd, SIZE, at)", 64 << 10, 4_000), 1e6, "us"),
    "pwrite 1 MiB": (calls("os.pwrite(fd, data, at)", 1 << 20, 400), 1e6, "us"),
    "pread 1 MiB": (calls("os.pread(fd, SIZE, at)", 1 << 20, 400), 1e6, "us"),
    "start of a process": (STARTS, 1e3, "ms"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--repeats", type=int, default=7)
    repeats = parser.parse_args().repeats
    print("| what |", *(f"{way} |" for way in ("plain", *WAYS)))
    print(f"|{'---|' * (2 + len(WAYS))}", flush=True)
    with ExitStack() as stack:
        jobs = {way: stack.enter_context(set_up(name, *more)) for way, (name, more) in WAYS.items()}
        for row, (program, unit, name) in ROWS.items():
            taken: dict[str, list[float]] = {way: [] for way in ("plain", *WAYS)}
            for _ in range(repeats):
                for way in random.sample(list(taken), len(taken)):
                    job = jobs[way if way in jobs else "gate alone"]
                    ended = job.run(sys.executable, "-S", "-c", program, managed=way != "plain")
                    taken[way].append(unit * float(ended.stdout))
            least = {way: min(values) for way, values in taken.items()}
            cells = [f"{least['plain']:.3g} {name} ({median(taken['plain']):.3g})"]
            for way in WAYS:
                times = least[way] / least["plain"]
                cells.append(f"x {times:.2f}: {least[way]:.3g} ({median(taken[way]):.3g})")
            print(f"| {row} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
