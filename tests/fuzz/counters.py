"""Hostile counters: a job writes anything into the page that it shares with its agent.

`PYTHONPATH=tests python -m fuzz.counters --cases 100000 --seed 1`. A case changes some words and
reads the page as an agent does. What must hold: nothing raises, what the agent would report is
what a controller takes, and explaining it gives printable sentences.
"""

import math
import os
import struct
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from random import Random

from fuzz.command import run_fuzzer
from live.agent.agent_harness import Harness

from penstock.identities import FileSystemId
from penstock.learn.phases import Ended
from penstock.live.agent.phase_sampler import PhaseSampler
from penstock.live.controller.explain import advised, explain
from penstock.live.controller.job_table import JobEntry
from penstock.live.protocol import _page_layout as layout
from penstock.live.protocol import messages
from penstock.live.protocol.client import encode_line
from penstock.live.protocol.job_record import JobRecord
from penstock.live.protocol.shared_page import LARGEST_COUNTER, SharedPages
from penstock.printable import is_printable

ROOTS = 3
CASES_PER_PAGE = 50
INTERVAL = 0.05
NAN = struct.unpack("<Q", struct.pack("<d", math.nan))[0]
EDGES = (0, 1, 2, 3, 4, 1023, 1024, 1025, 2**22, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**63 - 1,
         2**63, 2**64 - 1, 10**9, 10**18, NAN, os.getpid(), 1, os.getppid())  # fmt: skip
HEAD = (layout.TAKEN, layout.WAKEUPS, layout.PHASES_BEGUN, layout.PHASES_ENDED, layout.ANNOUNCED)
PATHS = (b"/tmp", b"\x1b]0;x\x07", b"\xff\xfe/\n", b"\0/a", "/\u202eb".encode(), b"/" * 248, b"")
USAGE = messages.Usage()


class Counters:
    """The pages of a job that writes odd counters."""

    def __init__(self, folder: Path, random: Random) -> None:
        roots = [folder / str(k) for k in range(ROOTS)]
        for root in roots:
            root.mkdir(exist_ok=True)
        self.random = random
        self.now = 1000.0
        systems = [FileSystemId(k) for k in range(ROOTS)]
        self.pages = SharedPages(roots, file_systems=systems, clock_ns=lambda: int(self.now * 1e9))
        self.sampler = PhaseSampler(self.pages)

    def write(self) -> None:
        """Change some words, or a stretch of bytes."""
        for _ in range(self.random.randrange(1, 12)):
            scribble(self.pages.counters_fd, self.random, int(self.now * 1e9))

    def read(self) -> JobRecord:
        """Read all, as an agent does; return what a controller makes of it."""
        pages, sampler = self.pages, self.sampler
        self.now += self.random.choice((0.0, 0.001, INTERVAL, 1.0, 60.0))
        for change in sampler.sample(self.now):
            if change is not None:
                assert math.isfinite(change.time)  # a job may say that its first call is old
                assert change.time <= self.now
            if isinstance(change, Ended):
                assert 0 <= change.moved <= LARGEST_COUNTER
                sampler.phase_over()
        assert 0.0 <= sampler.next_sample(self.now, INTERVAL) <= INTERVAL
        assert sampler.idle_seconds(self.now) >= 0.0
        announced = sampler.take_announced_bytes()
        assert announced is None or 0 < announced <= LARGEST_COUNTER
        assert sampler.first_file_systems() <= set(pages.file_systems)
        assert sampler.moved_on(pages.file_systems) | sampler.waiting_on() <= {*pages.file_systems}
        assert pages.implausible() >= 0
        list(pages.threads())
        counted = messages.JobCounters(
            counters=pages.totals(),
            usage=messages.Usage(
                io_nodes={str(k): size for k, size in pages.bytes_by_io_node().items()},
                file_systems={str(k): size for k, size in pages.bytes_by_file_system().items()},
                directories=pages.directories_elsewhere(),
            ),
        )
        report = messages.decode(encode_line(counted), messages.JobCounters)
        assert all(map(is_printable, report.usage.directories))
        begin = messages.BeginJob(name="job", pid=1, command=["x"], user="ann")
        entry = JobEntry(
            id="job.1",
            serial=1,
            begin=begin,
            began=1e9,
            counters=report.counters,
            usage=report.usage,
            file_system_names=["a", "b", "c"],
        )
        return entry.record(self.now)


def scribble(page: int, random: Random, now: int) -> None:
    """Change a word of the counters page, or a few hundred bytes."""
    word = random.choice((*EDGES, now, now + 10**10, now - 10**9, random.getrandbits(64)))
    slot = layout.FIRST_SLOT + random.choice((0, 1, 2, 1023)) * layout.SLOT_BYTES
    match random.randrange(8):
        case 0:
            at = random.choice(HEAD)
            if at == layout.TAKEN and random.random() < 0.95:  # more of them take long to look at
                word %= 5
        case 1:
            at = layout.NODE_BYTES + 8 * random.randrange(layout.SITE_NODES)
        case 2:
            at = random.choice((layout.MOVED, layout.BY_NODE)) + 8 * random.randrange(64)
        case 3:
            at = layout.FIRST_DIRECTORY + random.randrange(5) * layout.DIRECTORY_ENTRY_BYTES
            path = random.choice((*PATHS, random.randbytes(248)))
            length = random.choice((len(path), 0, 248, 249, 2**32 - 1))
            os.pwrite(page, struct.pack("<II", random.choice((2, 2, 2, 1)), length) + path, at)
            return
        case 4 if random.random() < 0.02:
            at = random.randrange(layout.COUNTERS_BYTES - 512)
            os.pwrite(page, random.randbytes(512), at)
            return
        case _:
            at = slot + random.choice(list(layout.SLOT_FIELDS.values()))
    os.pwrite(page, struct.pack("<Q", word), at)


def _ignore(_: messages.Status) -> None:
    pass


def fuzz(cases: int, seed: int, show: Callable[[messages.Status], object] = _ignore) -> None:
    """Try some cases; AssertionError, or any other: what must hold does not."""
    random = Random(seed)
    with tempfile.TemporaryDirectory(prefix="fz", dir="/dev/shm") as folder:
        for first in range(0, cases, CASES_PER_PAGE):
            counters = Counters(Path(folder), random)
            with counters.pages:
                for _ in range(min(CASES_PER_PAGE, cases - first)):
                    counters.write()
                    record = counters.read()
                    status = messages.Status(
                        site="here",
                        jobs=[record],
                        io_nodes=[],
                        forwarded_bytes=record.forwarded_bytes,
                        carried_bytes=record.carried_bytes,
                        direct_bytes=record.direct_bytes,
                        fail_open_total=record.fail_opens,
                    )
                    told = explain(status, record.id)
                    for line in (*told.now, *told.did, *told.through, told.advice or ""):
                        assert is_printable(line), line
                    advised(record, "set-10")
            show(status)
        fuzz_agent(Path(folder), random, cases // 20)


def fuzz_agent(folder: Path, random: Random, cases: int) -> None:
    """The same with an agent, which has a controller; every report is a message that it may send.

    Harness checks this; it ends the agent, too.
    """
    roots = [folder / str(k) for k in range(ROOTS)]
    harness = Harness(folder, roots)
    died: list[threading.ExceptHookArgs] = []
    before, threading.excepthook = threading.excepthook, died.append
    with ExitStack() as stack:
        stack.callback(setattr, threading, "excepthook", before)
        stack.callback(harness.close)
        for k in range(cases):
            for _ in range(random.randrange(1, 6)):
                scribble(harness.pages.counters_fd, random, round(harness.clock.now * 1e9))
            harness.pages.wake()
            if k % 10 == 0:
                harness.clock.advance(random.choice((0.01, 1.0, 10.0)))
            if k % 100 == 0:
                harness.send(messages.Heartbeat(mode=random.choice(("enforce", "observe"))))
                harness.synchronise()
            time.sleep(0)
            assert not died, died
        harness.send(messages.Heartbeat())
        harness.synchronise()
    assert not died, died


if __name__ == "__main__":
    run_fuzzer("counters of jobs", fuzz, cases=20_000)
