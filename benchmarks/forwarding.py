"""How fast the forwarding layer is, as ratios measured in one run on tmpfs.

    python benchmarks/forwarding.py [--repeats N]

Clients are one small program that writes blocks of its own file over and over. One and four of
them run plainly; under the client library with its gate open; with permission of an I/O node of
their host, by credits and with a question for each call, as request schedulers need it; and, four
of them, through an I/O node that carries their data over TCP, beside a bare server that does
nothing but copy from its socket into the file. The variants run in random order, and the median of
each counts. Plain runs are also compared with each other, which shows how far ratios can be
trusted: the best of 15 runs scattered by 4%. Then follow the emulated file system: aggregation, and
two I/O nodes against one; and a thousand processes at one I/O node. Each line ends with its bar and
whether it is met; none of them is a test.
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

from live.ionode.frames import TOKEN, Client  # noqa: E402
from live.ionode.permissions import Caller  # noqa: E402
from live.ionode.real_node import RealNode  # noqa: E402

from penstock.live.agent.page_server import PageServer  # noqa: E402
from penstock.live.deployment import emulator  # noqa: E402
from penstock.live.protocol.messages import Node  # noqa: E402
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
    folder: Path,
    root: Path,
    nodes: Sequence[Node],
    *,
    environment: Mapping[str, str] | None = None,
    below: Sequence[str] = (),
) -> Iterator[tuple[SharedPages, dict[str, str]]]:
    """Pages of a job on these I/O nodes, and what its processes have in their environment."""
    socket = folder / f"agent-{len(list(folder.iterdir()))}.sock"
    with SharedPages([root], token=TOKEN) as pages, PageServer(pages, socket) as agent:
        pages.assign(nodes)
        yield pages, os.environ | agent.environment(below=below) | dict(environment or {})


def ways(folder: Path, client: Path, repeats: int) -> None:
    """One and four clients: plain, under the library, by permission, and carried."""
    server = built(folder, "bare_server")
    root = folder / "root"
    root.mkdir()
    for k in range(CLIENTS):
        (root / f"f{k}").write_bytes(bytes(SPAN))
    with ExitStack() as stack:
        process = stack.enter_context(
            subprocess.Popen([str(server)], stdout=subprocess.PIPE, text=True)
        )
        stack.callback(process.kill)
        assert process.stdout is not None
        bare = process.stdout.readline().strip()
        free = stack.enter_context(RealNode(folder, 0))
        ordered = stack.enter_context(RealNode(folder, 1, "--scheduler", "time-order"))
        carrier = stack.enter_context(RealNode(folder, 2, carries=root))
        _, direct = stack.enter_context(job(folder, root, []))
        by_credit, credits = stack.enter_context(job(folder, root, [free.node]))
        by_call, each_call = stack.enter_context(job(folder, root, [ordered.node]))
        by_tcp, carried = stack.enter_context(job(folder, root, [carrier.remote]))
        tried: dict[str, tuple[dict[str, str], list[str]]] = {
            "plain": (dict(os.environ), []),
            "again": (dict(os.environ), []),
            "direct": (direct, []),
            "credits": (credits, []),
            "each call": (each_call, []),
            "bare server": (dict(os.environ), [bare]),
            "carried": (carried, []),
        }
        slow = ("each call", "bare server", "carried")
        for clients in (CLIENTS, 1):
            for size, many in ((4 * KIB, 100_000), (64 * KIB, 6_000), (MIB, 400)):
                measured: dict[str, list[float]] = {}
                for _ in range(repeats):
                    for way in random.sample(list(tried), len(tried)):
                        env, more = tried[way]
                        n = many // 5 if way in slow and size < MIB else many
                        commands = [
                            [str(client), str(root / f"f{k}"), *map(str, (size, n, SPAN, 0, size))]
                            for k in range(clients)
                        ]
                        speed = throughput([words + more for words in commands], env, n * size)
                        measured.setdefault(way, []).append(speed)
                report(size, clients, {way: measured[way] for way in tried})
        for pages in (by_credit, by_call, by_tcp):
            assert pages.total("failed_open") == 0
            assert pages.total("forwarded_write_bytes") == pages.total("write_bytes") > 0
        assert by_tcp.total("carried_bytes") == by_tcp.total("write_bytes")


PERMITTED = {  # clients, size: credits and direct, at least, relative to plain
    (4, 4 * KIB): (0.8, 0.97),
    (4, 64 * KIB): (0.9, 0.98),
    (4, MIB): (0.95, 0.99),
    (1, 4 * KIB): (0.75, 0.97),
    (1, 64 * KIB): (0.85, 0.98),
    (1, MIB): (0.9, 0.99),
}


def report(size: int, clients: int, measured: Mapping[str, Sequence[float]]) -> None:
    name = f"{size // KIB} KiB" if size < MIB else "1 MiB"
    rates = ", ".join(f"{way} {median(runs) / 1e6:,.0f}" for way, runs in measured.items())
    print(f"{name}, {clients} client{'s' * (clients > 1)}, MB/s: {rates}")

    def ratio(way: str, against: str) -> float:
        return median(measured[way]) / median(measured[against])

    def held(what: str, way: str, against: str, bar: float) -> None:
        best = max(measured[way]) / max(measured[against])
        value = ratio(way, against)
        print(f"  {what}: {value:.3f} {verdict(value, bar)}; best runs {best:.3f}")

    credits, direct = PERMITTED[clients, size]
    print(f"  plain against itself: {ratio('again', 'plain'):.3f}, the machine's own scatter")
    held("gate open, direct / plain", "direct", "plain", direct)
    held("permitted by credits / plain", "credits", "plain", credits)
    print(f"  permitted call by call / plain: {ratio('each call', 'plain'):.3f}")
    held("carried over TCP / bare TCP server", "carried", "bare server", 0.8)
    print(f"  carried over TCP / plain: {ratio('carried', 'plain'):.3f}")


def copies(folder: Path) -> None:
    """The ceiling for 1 MiB carried by an I/O node: what its copies alone cost."""
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
    """Return bytes per second on an emulated file system, through a number of I/O nodes.

    Those stand for other hosts, and carry.
    """
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
                    carries=root,
                    environment=emulator.environment(shared, io_node=k) | {"LD_PRELOAD": below},
                )
            )
            for k in range(nodes)
        ]
        pages, env = stack.enter_context(
            job(
                folder,
                root,
                [node.remote for node in started],
                environment=emulator.environment(shared),
                below=[below],
            )
        )
        volume = int(commands[0][2]) * int(commands[0][3])
        speed = throughput(commands, env, volume)
        assert nodes == 0 or pages.total("carried_bytes") == pages.total("write_bytes")
        return speed


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


def many_processes(folder: Path) -> None:
    """A thousand processes at one I/O node: its memory before, with them, and after their work."""
    root = folder / "many"
    root.mkdir()
    file = root / "file"
    file.write_bytes(bytes(MIB))
    with RealNode(folder, 9, carries=root) as node, ExitStack() as stack:
        before = resident(node.process.pid)
        callers = [stack.enter_context(Caller(node.socket)) for _ in range(1000)]
        for caller in callers:
            caller.make(4 * KIB)  # its page is touched
        connected = resident(node.process.pid)
        for _ in range(10):
            for caller in callers:
                caller.make(4 * KIB)
        worked = resident(node.process.pid)
        remote = [stack.enter_context(Client(node.carrier, session=k + 1)) for k in range(1000)]
        handles = [client.open(file) for client in remote]
        opened = resident(node.process.pid)
        for _ in range(10):
            for client, handle in zip(remote, handles, strict=True):
                assert client.write(handle, b"x" * 4 * KIB) == 4 * KIB
        carried = resident(node.process.pid)
    print("1,000 processes at one I/O node, and then 1,000 connections of other hosts:")
    sizes = ", ".join(
        f"{size / MIB:.1f} {when}"
        for size, when in (
            (before, "before"),
            (connected, "with the processes"),
            (worked, "after 10,000 permissions"),
            (opened, "with the connections"),
            (carried, "after 10,000 carried writes"),
        )
    )
    print(f"  resident MiB: {sizes}")
    growth = max(worked / connected, carried / opened)
    print(f"  growth by work: {growth:.3f} (bar <= 1.05: {'met' if growth <= 1.05 else 'NOT MET'})")


def resident(pid: int) -> int:
    """Bytes of a process's memory, with the pages that it shares with its clients."""
    status = Path(f"/proc/{pid}/status").read_text().split()
    kinds = ("RssAnon:", "RssShmem:")
    return KIB * sum(int(status[status.index(kind) + 1]) for kind in kinds)


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
        many_processes(folder)


if __name__ == "__main__":
    main()
