"""How fast the controller's store is.

    python benchmarks/store.py [URL]

Two measurements: the time to load 10,000 running jobs and 100,000 families with 24 phases each, as
a controller does when it starts; and the part of a core that 1,000 phases per second, each with its
job's row and its family's, take in the controller's process. The database is a new SQLite file, or
an empty database at URL. Each line ends with its bar and whether it is met.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Callable

from penstock.learn.observations import History, ObservedPhase
from penstock.live.protocol.job_record import JobRecord
from penstock.live.store import Changes, Family, Knowledge, Store, WriteBehind

JOBS, FAMILIES, RATE, SECONDS, TICK = 10_000, 100_000, 1_000, 10, 0.01
PHASES, IO_NODES = 8, (1, 2, 4)
"""Of each family: phases with each of these numbers of I/O nodes."""
LOAD_BAR, CORE_BAR = 2.0, 0.05
COUNTERS = ("reads", "read_bytes", "writes", "write_bytes", "waits", "waited", "forwarded_writes")


def verdict(value: float, bar: float) -> str:
    return f"(bar <= {bar:g}: {'met' if value <= bar else 'NOT MET'})"


def family(k: int) -> Family:
    return Family(user=f"user{k % 100}", executable=f"/apps/code{k // 100}", nodes=2 ** (k % 8))


def knowledge(k: int) -> Knowledge:
    phases = tuple(
        ObservedPhase(bytes=10**9 + k + n, seconds=1.0 + n / 10, alone=n % 3 > 0, compute=12.345678)
        for n in range(PHASES)
    )
    return Knowledge(
        history=History(dict.fromkeys(IO_NODES, phases)),
        pattern="contiguous-shared-1MiB",
        updated=1.7e9 + k,
    )


def job(k: int, phases: int) -> JobRecord:
    of = family(k)
    return JobRecord(
        id=f"code.{k}",
        serial=k,
        user=of.user,
        uid=1000 + k % 100,
        name="code",
        state="running",
        began=1.7e9,
        seconds=float(phases),
        io_nodes=[],
        forwarded_bytes=k * phases,
        direct_bytes=0,
        fail_opens=0,
        waits=0,
        waited_seconds=0.0,
        pid=k,
        command=[of.executable, "--input", "case.nml", "--restart"],
        executable=of.executable,
        nodes=of.nodes,
        processes=64,
        counters=dict.fromkeys(COUNTERS, k * phases),
        phases=phases,
        phase_seconds=float(phases),
    )


def load(url: str) -> None:
    with Store(url) as store:
        store.write(
            Changes(
                families={family(k): knowledge(k) for k in range(FAMILIES)},
                jobs={f"code.{k}": job(k, 7) for k in range(JOBS)},
            )
        )

    def start() -> tuple[float, float]:
        began, cpu = time.perf_counter(), time.process_time()
        with Store(url) as store:
            memory = store.load()
            seconds, busy = time.perf_counter() - began, time.process_time() - cpu
            assert (len(memory.running), len(memory.families)) == (JOBS, FAMILIES)
        return seconds, busy

    seconds, busy = statistics.median_low(start() for _ in range(5))
    print(f"{JOBS:,} running jobs and {FAMILIES:,} families")
    print(
        f"  {seconds:8.3f} s from nothing to all in memory, {busy:.3f} of them on a core "
        f"{verdict(seconds, LOAD_BAR)}"
    )


def drive(
    running: Callable[[JobRecord], object], learn: Callable[[Family, Knowledge], object]
) -> list[float]:
    """Store phases as they arrive; return the seconds that each took."""
    held: list[float] = []
    made, began = 0, time.perf_counter()
    while made < RATE * SECONDS:
        due = min(int((time.perf_counter() - began) * RATE), RATE * SECONDS)
        for k in range(made, due):
            updated, of, known = job(k % RATE, k // RATE), family(k % RATE), knowledge(k)
            at = time.perf_counter()
            running(updated)
            learn(of, known)
            held.append(time.perf_counter() - at)
        made = due
        time.sleep(TICK)
    return held


def phases(url: str) -> None:
    began = time.process_time()
    drive(lambda _: None, lambda *_: None)
    without = time.process_time() - began
    with WriteBehind(Store(url)) as keeper:
        began = time.process_time()
        held = drive(keeper.running, keeper.learn)
        assert keeper.flush()
        spent = (time.process_time() - began - without) / SECONDS
        assert keeper.failed_total == 0
    p99 = statistics.quantiles(held, n=100)[-1]
    print(f"{RATE:,} phases a second for {SECONDS} s, two rows each")
    print(f"  {spent:8.3f} of a core {verdict(spent, CORE_BAR)}")
    print(
        f"  {1e3 * p99:8.3f} ms p99, {1e3 * max(held):.3f} ms at most, that a phase held its caller"
    )


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        url = sys.argv[1] if len(sys.argv) > 1 else f"sqlite:///{folder}/store.db"
        load(url)
        phases(url)
