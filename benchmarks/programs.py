"""What programs of small calls pay for the client library: SQLite, and single calls, on tmpfs.

    python benchmarks/programs.py [--repeats N]

Each row runs plainly, with the gate alone (no I/O nodes), with an I/O node of the host that gives
credits, with one that decides about each call, and with one that carries data as another host's
would. A run does its work in short pieces and tells the quickest one, scaled to the whole: what a
busy machine adds is left out. The ways run in random order; a row gives the least of their runs, as
a multiple of the plain one, and in brackets the median. Cached data, so that nothing hides what the
library costs; calls are Python's, which adds about 0.3 us to each. No row is a test.
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
import os, sqlite3, time
path = f"db{os.getpid()}"
c = sqlite3.connect(path, isolation_level=None)
c.execute("pragma synchronous=off")
c.execute("pragma journal_mode=MODE")
c.execute("create table t (k integer primary key, v text)")
least = 1e9
for _ in range(20):
    began = time.perf_counter()
    for k in range(50):
        c.execute("begin")
        c.execute("insert into t (v) values (1)")
        c.execute("commit")
    least = min(least, time.perf_counter() - began)
print(20 * least)
c.close()
os.unlink(path)
"""
CALLS = """
import os, time
name = f"f{os.getpid()}"
fd = os.open(name, os.O_RDWR | os.O_CREAT)
os.write(fd, bytes(4 << 20))
data = bytes(SIZE)
places = [SIZE * (k % ((4 << 20) // SIZE)) for k in range(COUNT)]
least = 1e9
for _ in range(40):
    began = time.perf_counter()
    for at in places:
        CALL
    least = min(least, time.perf_counter() - began)
print(least / COUNT)
os.unlink(name)
"""
STARTS = """
import os, subprocess, time
least = 1e9
for _ in range(50):
    began = time.perf_counter()
    subprocess.run(["/bin/true"], check=True)
    least = min(least, time.perf_counter() - began)
print(least)
"""


def calls(call: str, size: int, count: int) -> str:
    return CALLS.replace("CALL", call).replace("SIZE", str(size)).replace("COUNT", str(count))


ROWS = {
    "SQLite, 1,000 commits, journal": (SQLITE.replace("MODE", "delete"), 1e3, "ms"),
    "SQLite, 1,000 commits, WAL": (SQLITE.replace("MODE", "wal"), 1e3, "ms"),
    "pwrite 4 KiB": (calls("os.pwrite(fd, data, at)", 4 << 10, 250), 1e6, "us"),
    "pread 4 KiB": (calls("os.pread(fd, SIZE, at)", 4 << 10, 250), 1e6, "us"),
    "pwrite 64 KiB": (calls("os.pwrite(fd, data, at)", 64 << 10, 60), 1e6, "us"),
    "pread 64 KiB": (calls("os.pread(fd, SIZE, at)", 64 << 10, 60), 1e6, "us"),
    "pwrite 1 MiB": (calls("os.pwrite(fd, data, at)", 1 << 20, 10), 1e6, "us"),
    "pread 1 MiB": (calls("os.pread(fd, SIZE, at)", 1 << 20, 10), 1e6, "us"),
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
