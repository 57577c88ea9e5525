"""How fast the forwarding layer is, as ratios measured in one run on tmpfs.

    python benchmarks/forwarding.py [--repeats N]

Clients are one small program that writes blocks of its own file over and over, four at a time, with
and without the client library, through one I/O node, and to a bare server that does nothing but
copy from its socket into the file. The variants run in random order, and the median of each counts.
Plain runs are also compared with each other, which shows how far ratios can be trusted: the best of
15 runs scattered by 4%. Then follow the emulated file system: aggregation, and two I/O nodes
against one; and a thousand connections. Each line ends with its bar and whether it is met; none of
them is a test.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "tests"))

from live.ionode.frames import WRITE, Client  # noqa: E402
from live.ionode.real_node import RealNode  # noqa: E402

from penstock.live.agent.page_server import PageServer  # noqa: E402
from penstock.live.deployment import emulator  # noqa: E402
from penstock.live.protocol.shared_page import SharedPages  # noqa: E402

MIB, KIB = 1 << 20, 1 << 10
CLIENTS = 4
SPAN = 16 * MIB


def verdict(value: float, bar: float) -> str:
    return f"(bar >= {bar:g}: {'met' if value >= bar else 'NOT MET'})"


def built(folder: Path, name: str) -> Path:
    target = folder / name
    source = HERE / "forwarding" / f"{name}.cpp"
    command = ["c++", "-O2", "-std=c++20", "-pthread", "-o", str(target), str(source)]
    subprocess.run(command, check=True)
    return target


def throughput(commands: Sequence[list[str]], env: Mapping[str, str], volume: int) -> float:
    """Return bytes per second of all clients together, until the last one ends."""
    clients = [
        subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=dict(env)
        )
        for command in commands
    ]
    for client in clients:
        assert client.stdout is not None
        assert client.stdout.readline() == "ready\n"
    for client in clients:
        assert client.stdin is not None
        client.stdin.write("g")
        client.stdin.close()
        client.stdin = None
    return len(clients) * volume / max(float(client.communicate()[0]) for client in clients)


@contextmanager
def job(
    folder: Path, root: Path, nodes: Sequence[RealNode], *, below: Sequence[str] = ()
) -> Iterator[tuple[SharedPages, dict[str, str]]]:
    socket = folder / f"agent-{len(nodes)}.sock"
    with SharedPages([root]) as pages, PageServer(pages, socket) as agent:
        pages.assign([node.node for node in nodes])
        yield pages, os.environ | agent.environment(below=below)


def ways(folder: Path, client: Path, repeats: int) -> None:
    """Four clients, four ways: plain, under the library, to a bare server, through an I/O node."""
    server, bare = built(folder, "bare_server"), folder / "bare.sock"
    root = folder / "root"
    root.mkdir()
    with ExitStack() as stack:
        process = stack.enter_context(
            subprocess.Popen([str(server), str(bare)], stdout=subprocess.PIPE, text=True)
        )
        stack.callback(process.kill)
        assert process.stdout is not None
        process.stdout.readline()
        node = stack.enter_context(RealNode(folder))
        _, direct = stack.enter_context(job(folder, root, []))
        pages, forwarded = stack.enter_context(job(folder, root, [node]))
        for k in range(CLIENTS):
            (root / f"f{k}").write_bytes(bytes(SPAN))
        for size, count, many in ((4 * KIB, 20_000, 100_000), (MIB, 200, 400)):
            measured: dict[str, list[float]] = {}
            tried: list[tuple[str, dict[str, str], int, list[str]]] = [
                ("plain", dict(os.environ), many, []),
                ("again", dict(os.environ), many, []),
                ("direct", direct, many, []),
                ("bare", dict(os.environ), count, [str(bare)]),
                ("forwarded", forwarded, count, []),
            ]
            for _ in range(repeats):
                for way, env, n, more in random.sample(tried, len(tried)):
                    commands = [
                        [str(client), str(root / f"f{k}"), *map(str, (size, n, SPAN, 0, size))]
                        for k in range(CLIENTS)
                    ]
                    speed = throughput([command + more for command in commands], env, n * size)
                    measured.setdefault(way, []).append(speed)
            report(size, {way: measured[way] for way, *_ in tried})
        assert pages.total("failed_open") == 0
        assert pages.total("forwarded_write_bytes") == pages.total("write_bytes") > 0


def report(size: int, measured: Mapping[str, Sequence[float]]) -> None:
    name = "4 KiB" if size < MIB else "1 MiB"
    rates = ", ".join(f"{way} {median(runs) / 1e6:,.0f}" for way, runs in measured.items())
    print(f"{name}, {CLIENTS} clients, MB/s: {rates}")

    def held(what: str, way: str, against: str, bar: float) -> None:
        one, other = measured[way], measured[against]
        ratio, best = median(one) / median(other), max(one) / max(other)
        print(f"  {what}: {ratio:.3f} {verdict(ratio, bar)}; best runs {best:.3f}")

    itself = median(measured["again"]) / median(measured["plain"])
    print(f"  plain against itself: {itself:.3f}, the machine's own scatter")
    held("gate open, direct / plain", "direct", "plain", 0.97 if size < MIB else 0.99)
    held("through an I/O node / bare server", "forwarded", "bare", 0.8)
    if size == MIB:
        held("through an I/O node / direct", "forwarded", "plain", 0.7)


def copies(folder: Path) -> None:
    """The ceiling for 1 MiB through an I/O node: what its copies alone cost."""
    command = [str(built(folder, "copies")), str(folder / "copied")]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    plain, copied, piped = map(float, output.split())
    print(
        f"1 MiB in one thread: pwrite {plain:.0f} us; copied once before {copied:.0f} us, "
        f"{plain / copied:.2f} of it; through a pipe without a copy {piped:.0f} us, "
        f"{plain / piped:.2f} of it"
    )


def emulated(
    folder: Path, spec: str, nodes: int, options: Sequence[str], commands: Sequence[list[str]]
) -> float:
    """Return bytes per second on an emulated file system, through a number of I/O nodes."""
    root, shared = folder / "root", folder / "emulation"
    root.mkdir(parents=True)
    emulator.Emulation.parse(spec).create(shared, root)
    below = str(emulator.target_library())
    with ExitStack() as stack:
        started = [
            stack.enter_context(
                RealNode(
                    folder,
                    k,
                    *options,
                    environment=emulator.environment(shared, io_node=k) | {"LD_PRELOAD": below},
                )
            )
            for k in range(nodes)
        ]
        _, env = stack.enter_context(job(folder, root, started, below=[below]))
        volume = int(commands[0][2]) * int(commands[0][3])
        return throughput(commands, env | emulator.environment(shared), volume)


def aggregation(folder: Path, client: Path) -> None:
    """Eight clients write one file in turn, 4 KiB each: directly, and through one I/O node."""
    spec, clients, count = "targets=1,rate=400MiB/s,latency=2ms,switch=1ms", 8, 60
    speed = {}
    for way, nodes in (("direct", 0), ("aggregated", 1)):
        place = folder / way
        block = 4 * KIB
        commands = [
            [
                str(client),
                str(place / "root" / "shared"),
                *map(str, (block, count, 1 << 40, k * block, clients * block)),
            ]
            for k in range(clients)
        ]
        options = ["--scheduler", "time-order", "--depth", "1"]
        speed[way] = emulated(place, spec, nodes, options, commands)
    ratio = speed["aggregated"] / speed["direct"]
    print(f"4 KiB strided, shared file, {clients} clients, emulated file system ({spec}):")
    rates = ", ".join(f"{way} {value / MIB:.2f} MiB/s" for way, value in speed.items())
    print(f"  {rates}: {ratio:.1f} times {verdict(ratio, 3.0)}")


def two_nodes(folder: Path, client: Path) -> None:
    """Link caps below the targets' sum: what a second I/O node brings."""
    spec = "targets=8,rate=200MiB/s,latency=50us,switch=0 s,io-node-link=200MiB/s"
    speed = {}
    for nodes in (1, 2):
        place = folder / f"nodes-{nodes}"
        commands = [
            [str(client), str(place / "root" / f"f{k}"), *map(str, (MIB, 100, SPAN, 0, MIB))]
            for k in range(CLIENTS)
        ]
        speed[nodes] = emulated(place, spec, nodes, [], commands)
    ratio = speed[2] / speed[1]
    print(f"1 MiB, {CLIENTS} clients, emulated file system ({spec}):")
    print(
        f"  one I/O node {speed[1] / MIB:.0f} MiB/s, two {speed[2] / MIB:.0f} MiB/s: "
        f"{ratio:.2f} times {verdict(ratio, 1.6)}"
    )


def many_connections(folder: Path) -> None:
    """A thousand clients of one I/O node: its memory before, with them, and after their work."""
    file = folder / "many"
    file.write_bytes(bytes(MIB))
    with RealNode(folder, 9) as node, ExitStack() as stack:
        before = resident(node.process.pid)
        clients = []
        for k in range(1000):
            client = stack.enter_context(Client(Path(node.node.address), session=k + 1))
            clients.append((client, client.open(file)))
        connected = resident(node.process.pid)
        for _ in range(10):
            for client, handle in clients:
                client.put(b"x" * 4 * KIB)
                assert client.ask(WRITE, file=handle, length=4 * KIB).result == 4 * KIB
        worked = resident(node.process.pid)
    print("1,000 connections on one I/O node:")
    print(
        f"  resident {before / MIB:.1f} MiB before, {connected / MIB:.1f} with them, "
        f"{worked / MIB:.1f} after 10,000 writes"
    )
    growth = worked / connected
    print(f"  growth by work: {growth:.3f} (bar <= 1.05: {'met' if growth <= 1.05 else 'NOT MET'})")


def resident(pid: int) -> int:
    """Bytes of a process's own memory; windows are its clients'."""
    status = Path(f"/proc/{pid}/status").read_text().split()
    return KIB * int(status[status.index("RssAnon:") + 1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=50, help="of each way (50)")
    arguments = parser.parse_args()
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 65536), hard))
    with tempfile.TemporaryDirectory(prefix="penstock-", dir="/dev/shm") as name:
        folder = Path(name)
        client = built(folder, "client")
        ways(folder, client, arguments.repeats)
        copies(folder)
        aggregation(folder / "aggregation", client)
        two_nodes(folder / "two", client)
        many_connections(folder)


if __name__ == "__main__":
    main()
