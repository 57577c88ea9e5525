"""How fast the forwarding layer is, as ratios measured in one run on tmpfs.

    python benchmarks/forwarding.py [--repeats N] [--quick]

Clients are one small program that writes blocks of its own file over and over, four at a time, with
and without the client library, through one I/O node, and to a bare server that does nothing but copy
from its socket into the file. Ways take turns, and the median of their throughputs counts. Then the
emulated file system: aggregation, two I/O nodes against one; and a thousand connections. Each line
ends with its bar and whether it is met; none of them is a test.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "tests"))

from live.real_node import RealNode  # noqa: E402

from penstock.live.agent import Agent  # noqa: E402
from penstock.live.page import Pages  # noqa: E402

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


def throughput(command: Callable[[int], list[str]], env: Mapping[str, str], volume: int) -> float:
    """Bytes a second of all clients together, from the first's begin to the last's end."""
    clients = [
        subprocess.Popen(
            command(k), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=dict(env)
        )
        for k in range(CLIENTS)
    ]
    for client in clients:
        assert client.stdout is not None
        assert client.stdout.readline() == "ready\n"
    for client in clients:
        assert client.stdin is not None
        client.stdin.write("g")
        client.stdin.close()
        client.stdin = None
    seconds = [float(client.communicate()[0]) for client in clients]
    return CLIENTS * volume / max(seconds)


@contextmanager
def job(folder: Path, root: Path, nodes: list[RealNode]) -> Iterator[tuple[Pages, dict[str, str]]]:
    with Pages([root]) as pages, Agent(pages, folder / f"agent-{len(nodes)}.sock") as agent:
        pages.assign([node.node for node in nodes])
        yield pages, os.environ | agent.environment()


def ways(folder: Path, repeats: int) -> None:
    client, server = built(folder, "client"), built(folder, "bare_server")
    root = folder / "root"
    root.mkdir()
    bare = folder / "bare.sock"
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
        plain = dict(os.environ)
        for size, count in ((4 * KIB, 40_000), (MIB, 600)):
            measured: dict[str, list[float]] = {}

            def blocks(k: int, n: int, size: int = size) -> list[str]:
                return [str(client), str(root / f"f{k}"), str(size), str(n), str(SPAN)]

            for _ in range(repeats):
                for way, env, n, more in (
                    ("plain", plain, 10 * count if size < MIB else count, []),
                    ("direct", direct, 10 * count if size < MIB else count, []),
                    ("bare", plain, count, [str(bare)]),
                    ("forwarded", forwarded, count, []),
                ):
                    speed = throughput(lambda k, n=n, more=more: blocks(k, n) + more, env, n * size)
                    measured.setdefault(way, []).append(speed)
            report(size, {way: statistics.median(values) for way, values in measured.items()})
        assert pages.total("failed_open") == 0
        assert pages.total("forwarded_write_bytes") == pages.total("write_bytes") > 0


def report(size: int, speed: Mapping[str, float]) -> None:
    name = "4 KiB" if size < MIB else "1 MiB"
    rates = ", ".join(f"{way} {value / 1e6:,.0f} MB/s" for way, value in speed.items())
    print(f"{name}, {CLIENTS} clients: {rates}")
    gate = speed["direct"] / speed["plain"]
    print(f"  gate open, direct / plain: {gate:.3f} {verdict(gate, 0.97 if size < MIB else 0.99)}")
    bare = speed["forwarded"] / speed["bare"]
    print(f"  through an I/O node / bare server: {bare:.2f} {verdict(bare, 0.8)}")
    if size == MIB:
        through = speed["forwarded"] / speed["plain"]
        print(f"  through an I/O node / direct: {through:.2f} {verdict(through, 0.7)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=7, help="of each way (7)")
    arguments = parser.parse_args()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 65536), hard))
    with tempfile.TemporaryDirectory(prefix="penstock-", dir="/dev/shm") as folder:
        ways(Path(folder), arguments.repeats)


if __name__ == "__main__":
    main()
