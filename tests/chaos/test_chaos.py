"""Checksummed data is written while I/O nodes and writers die, stall and are re-mapped.

Writers overwrite their own blocks again and again: a late write of a node that stalled, or of a
writer that was killed, would show as an older generation. Every byte is compared at the end, and by
the writers all along. PENSTOCK_SOAK=MINUTES makes it longer; PENSTOCK_CHAOS_SEED repeats a run.
"""

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from chaos.writer import ENTRY, ROOM, contents, size_of
from limits import HANG
from live.ionode.real_node import RealNode

from penstock.live.agent.page_server import PageServer
from penstock.live.protocol.shared_page import SharedPages

RANKS, BLOCKS, NODES = 4, 64, 2
SECONDS = 60 * float(os.environ.get("PENSTOCK_SOAK", "0")) or 15.0
SCHEDULERS = ("fifo", "time-order", "twins-busy", "hbrr", "sjf")
PATIENCE = 0.2


@dataclass
class Stack:
    """Writers and I/O nodes that can be hurt."""

    folder: Path
    pages: SharedPages
    environment: dict[str, str]
    rng: random.Random
    nodes: list[RealNode] = field(default_factory=list)
    writers: list[subprocess.Popen[str]] = field(default_factory=list)
    injected: Counter[str] = field(default_factory=Counter)
    starts: int = 0

    def start_node(self) -> RealNode:
        self.starts += 1
        scheduler = SCHEDULERS[self.starts % len(SCHEDULERS)]
        return RealNode(self.folder, self.starts, "--scheduler", scheduler)

    def start_writer(self, rank: int) -> subprocess.Popen[str]:
        self.starts += 1
        script = str(Path(__file__).with_name("writer.py"))
        arguments = [rank, RANKS, BLOCKS, self.rng.randrange(1 << 30)]
        return subprocess.Popen(
            [sys.executable, script, "data", "../ledger", *map(str, arguments)],
            cwd=self.folder / "managed",
            env=self.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def assign(self) -> None:
        """Give the job other I/O nodes: one, several, striped, or none."""
        some = self.rng.sample(self.nodes, self.rng.randint(0, len(self.nodes)))
        stripe = self.rng.choice((0, 0, 65536)) if some else 0
        self.pages.assign([node.node for node in some], stripe=stripe)
        self.injected["re-mapped"] += 1

    def kill_node(self) -> None:
        k = self.rng.randrange(len(self.nodes))
        self.nodes[k].process.send_signal(signal.SIGKILL)
        self.nodes[k].process.communicate(timeout=HANG)
        self.nodes[k] = self.start_node()
        self.pages.assign([node.node for node in self.nodes])
        self.injected["I/O nodes killed"] += 1

    def stall_node(self) -> None:
        """Stop one for longer than clients are patient; sometimes a writer is killed meanwhile."""
        node = self.rng.choice(self.nodes)
        node.process.send_signal(signal.SIGSTOP)
        self.injected["I/O nodes stalled"] += 1
        time.sleep(self.rng.uniform(0.5, 3) * PATIENCE)
        if self.rng.random() < 0.7:
            self.kill_writer()
            time.sleep(self.rng.uniform(0, 2) * PATIENCE)
        node.process.send_signal(signal.SIGCONT)

    def kill_writer(self) -> None:
        rank = self.rng.randrange(RANKS)
        self.writers[rank].send_signal(signal.SIGKILL)
        self.check(rank, -signal.SIGKILL)
        self.writers[rank] = self.start_writer(rank)
        self.injected["writers killed"] += 1

    def check(self, rank: int, status: int) -> None:
        _, complaints = self.writers[rank].communicate(timeout=HANG)
        assert self.writers[rank].returncode in (status, 0), complaints

    def hurt(self) -> None:
        self.rng.choice([self.assign, self.kill_node, self.stall_node, self.kill_writer])()

    def close(self) -> None:
        for process in [*self.writers, *(node.process for node in self.nodes)]:
            process.kill()
            process.communicate(timeout=HANG)


def compare(folder: Path) -> tuple[int, int]:
    """Compare every block with the ledger; return generations acknowledged, and blocks in doubt."""
    data = (folder / "managed" / "data").read_bytes().ljust(BLOCKS * ROOM, b"\0")
    ledger = (folder / "ledger").read_bytes()
    acknowledged_in_all = doubtful = 0
    for block in range(BLOCKS):
        begun, acknowledged = ENTRY.unpack_from(ledger, block * ENTRY.size)
        seen = data[block * ROOM : block * ROOM + size_of(block)]
        if begun == acknowledged:
            assert seen == contents(block, acknowledged), f"block {block}: {acknowledged} is lost"
        else:
            # Its writer was killed during this write: any part of it may have happened.
            old, new = contents(block, acknowledged), contents(block, begun)
            assert all(s in (o, n) for s, o, n in zip(seen, old, new, strict=True)), block
            doubtful += 1
        acknowledged_in_all += acknowledged
    return acknowledged_in_all, doubtful


@pytest.mark.slow
@pytest.mark.timeout(SECONDS + 1200)
def test_nothing_acknowledged_is_lost_and_nothing_old_comes_back(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    seed = int(os.environ.get("PENSTOCK_CHAOS_SEED", time.time_ns() % 10**9))
    (tmp_path / "managed").mkdir()
    (tmp_path / "managed" / "data").touch()
    (tmp_path / "ledger").write_bytes(bytes(BLOCKS * ENTRY.size))
    with (
        SharedPages([tmp_path / "managed"], patience=PATIENCE) as pages,
        PageServer(pages, tmp_path / "agent.sock") as agent,
    ):
        environment = os.environ | agent.environment()
        stack = Stack(tmp_path, pages, environment, random.Random(seed))
        try:
            stack.nodes = [stack.start_node() for _ in range(NODES)]
            pages.assign([node.node for node in stack.nodes])
            stack.writers = [stack.start_writer(rank) for rank in range(RANKS)]
            end = time.monotonic() + SECONDS
            while time.monotonic() < end:
                time.sleep(stack.rng.uniform(0.02, 0.3))
                stack.hurt()
            for rank in range(RANKS):
                stack.check(rank, 0)
        finally:
            stack.close()
        acknowledged, doubtful = compare(tmp_path)
        forwarded = pages.total("forwarded_write_bytes") / max(1, pages.total("write_bytes"))
        with capsys.disabled():
            print(
                f"\nchaos, seed {seed}, {SECONDS:g} s: {acknowledged} writes acknowledged, "
                f"{100 * forwarded:.0f}% of bytes forwarded, {pages.total('failed_open')} calls "
                f"failed open, {doubtful} blocks in a killed write; "
                + ", ".join(f"{count} {what}" for what, count in sorted(stack.injected.items()))
            )
        assert acknowledged > 1000
        assert pages.total("forwarded_writes") > 1000
