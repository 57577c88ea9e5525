"""The Council's speed: from the last report of many I/O nodes to the announcement at each of them;
and what it takes from an I/O node's throughput.

The I/O nodes are made up: one process answers for all of them, each on a Unix socket of its own,
with observations that differ from node to node. The Council is the controller's own, over its own
connections. Every interval all report at once; the time is from the last report that was sent to
the last announcement that arrived, as the process of the I/O nodes sees it. Thesis forwarding has
250 ms at 240 I/O nodes (Figure 4.12). Times are of this machine; the bar is printed beside them.
"""

import argparse
import asyncio
import gc
import multiprocessing
import resource
import select
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, replace
from multiprocessing.connection import Connection
from pathlib import Path

import msgspec

from penstock.config.tuning import TuningSection
from penstock.live import wire
from penstock.live.channel import line
from penstock.live.deployment import Deployment
from penstock.live.fleet import Fleet, IoNode
from penstock.live.state import State
from penstock.live.tuning import Tuning
from penstock.model import Observation

DECIDED_WITHIN = 0.050
OVERHEAD = 0.01
WRITES = """
import os, sys, time
fd, block = os.open(sys.argv[1], os.O_CREAT | os.O_WRONLY), bytes(4096)
began, n = time.monotonic(), 0
while time.monotonic() - began < 1.0:
    for k in range(256):
        os.pwrite(fd, block, 4096 * k)
    n += 256
print(n / (time.monotonic() - began))
"""
SEEN = Observation(
    seconds=1.0,
    busy=0.9,
    reads=0,
    writes=640,
    read_bytes=0,
    write_bytes=640 << 15,
    handles=1,
    clients=16,
    smallest=32 << 10,
    largest=32 << 10,
    asked=640 << 15,
    distance=float(32 << 10),
    forward=0.5,
    queued=12.0,
)


class Nodes:
    """All I/O nodes: what they report, and when they were told what."""

    def __init__(self, state: State, count: int) -> None:
        self.window = [1e-3] * count
        self.reported = 0.0
        self.told: list[float] = []
        self.latencies: list[float] = []
        self._poll = select.epoll()
        self._sockets: dict[int, tuple[int, socket.socket]] = {}
        self._listeners = [socket.socket(socket.AF_UNIX) for _ in range(count)]
        for k, listener in enumerate(self._listeners):
            listener.bind(str(state.control(k)))
            listener.listen()

    def serve(self, controller: Connection) -> None:
        """Answer until the controller's half says that it is over."""
        controller.send(True)
        for k, listener in enumerate(self._listeners):
            connection, _ = listener.accept()
            self._sockets[connection.fileno()] = (k, connection)
            self._poll.register(connection, select.EPOLLIN)
        while not controller.poll():
            for descriptor, _ in self._poll.poll(0.05):
                k, connection = self._sockets[descriptor]
                for text in connection.recv(1 << 16).splitlines():
                    self.heard(k, connection, text)
        self.over()
        controller.send(self.latencies)

    def heard(self, k: int, connection: socket.socket, text: bytes) -> None:
        now = time.monotonic()
        if b"Observe" in text:
            if self.told:
                self.over()
            connection.sendall(line(self.report(k)))
            self.reported = time.monotonic()
        else:
            self.told.append(now)
            told = msgspec.json.decode(text, type=wire.Settings)
            assert told.window is not None
            self.window[k] = told.window
            connection.sendall(line(wire.Done()))

    def report(self, k: int) -> wire.Observed:
        # The smaller the window the better, and no two I/O nodes alike.
        moved = int(SEEN.write_bytes * (1 - 50 * self.window[k]) * (1 + k / 10_000))
        return wire.Observed(
            node=k,
            observation=asdict(replace(SEEN, write_bytes=moved)),
            settings={"window": self.window[k], "scheduler": "twins"},
        )

    def over(self) -> None:
        """An interval in which all were told has one latency."""
        if len(self.told) == len(self.window):
            self.latencies.append(max(self.told) - self.reported)
        self.told.clear()


def be_nodes(folder: str, count: int, controller: Connection) -> None:
    Nodes(State(Path(folder)), count).serve(controller)


async def tune(state: State, count: int, seconds: float) -> None:
    gc.freeze()  # as the controller does
    gc.set_threshold(50_000, 20, 50)
    deployment = Deployment(state=str(state.folder), roots=[], io_nodes=count)
    fleet = Fleet(deployment, lambda _: {}, up=lambda _: None, down=lambda _: None)
    # A policy that never settles: every interval has something to announce.
    section = TuningSection(
        tune=("window",), policy="epsilon-greedy", options={"epsilon": 1.0}, interval=0.25, guard=1
    )
    settings = wire.Settings(scheduler="twins")
    tuning = Tuning(section, settings, fleet, state.tuning, enforced=lambda: True)
    for io_node in fleet.io_nodes:
        io_node.node = wire.Node(number=io_node.number, id=io_node.number + 1, address="")
        await connected(fleet, io_node)
        tuning.up(io_node.number)
    running = asyncio.create_task(tuning.run())
    await asyncio.sleep(seconds)
    running.cancel()


async def connected(fleet: Fleet, io_node: IoNode) -> None:
    await fleet.link(io_node)
    assert io_node.link is not None


def decided(count: int, seconds: float) -> bool:
    with tempfile.TemporaryDirectory(prefix="pst") as folder:
        ours, theirs = multiprocessing.Pipe()
        nodes = multiprocessing.Process(target=be_nodes, args=(folder, count, theirs))
        nodes.start()
        try:
            ours.recv()
            asyncio.run(tune(State(Path(folder)), count, seconds))
            ours.send(True)
            latencies = ours.recv()[2:]
        finally:
            nodes.terminate()
            nodes.join()
    if len(latencies) < 10:
        sys.exit(f"{len(latencies)} announcements are too few to tell; give more --seconds")
    p50 = statistics.median(latencies)
    p99 = statistics.quantiles(latencies, n=100, method="inclusive")[98]
    met = p99 <= DECIDED_WITHIN
    print(
        f"{count} I/O nodes, {len(latencies)} choices: p50 {1e3 * p50:.1f} ms, "
        f"p99 {1e3 * p99:.1f} ms, most {1e3 * max(latencies):.1f} ms "
        f"(bar: p99 {1e3 * DECIDED_WITHIN:g} ms, {'met' if met else 'NOT met'})"
    )
    return met


def overhead(rounds: int) -> bool:
    """Two deployments in memory, one with a Council that sets nothing; runs in turn."""
    rates: dict[str, list[float]] = {"plain": [], "tuned": []}
    with tempfile.TemporaryDirectory(prefix="pst", dir="/dev/shm") as folder:
        for name in rates:
            Path(folder, name).mkdir()
            tuned = ["--tune", "depth", "--set", "tuning.dry-run=true", "--mode", "enforce"]
            up = ["up", "--root", f"{folder}/{name}", "--io-nodes", "1"]
            up += ["--policy", "fair-share", "--state", f"{folder}/{name}.s"]
            penstock(*up, *(tuned if name == "tuned" else tuned[-2:]))
        try:
            for _ in range(rounds):
                for name, found in rates.items():
                    command = ("--", sys.executable, "-c", WRITES, f"{folder}/{name}/f")
                    found.append(float(penstock("run", "--state", f"{folder}/{name}.s", *command)))
        finally:
            for name in rates:
                penstock("down", "--state", f"{folder}/{name}.s")
    ratios = [tuned / plain for plain, tuned in zip(*rates.values(), strict=True)]
    lost = 1 - statistics.median(ratios)
    met = lost <= OVERHEAD
    print(
        f"4 KiB writes through an I/O node, {statistics.median(rates['plain']):,.0f} a second: the "
        f"Council costs {lost:+.1%}, median of {rounds} pairs from {1 - max(ratios):+.1%} to "
        f"{1 - min(ratios):+.1%} (bar: {OVERHEAD:.0%}, {'met' if met else 'NOT met'})"
    )
    return met


def penstock(*words: str) -> str:
    command = [sys.executable, "-m", "penstock.cli", *words]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout


def main() -> None:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--io-nodes", type=int, nargs="+", default=[48, 240, 768])
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--rounds", type=int, default=15)
    told = parser.parse_args()
    met = [overhead(told.rounds), *(decided(count, told.seconds) for count in told.io_nodes)]
    sys.exit(not all(met))


if __name__ == "__main__":
    main()
