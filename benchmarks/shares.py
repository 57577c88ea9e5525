"""Shares by I/O concurrency: 32, 64 and 128 calls under way on one emulated file system.

    python benchmarks/shares.py [--seconds S]

After IO-SETS, VII-C1 and its Fig. 12 (about 1:2:4, and all of the bandwidth when alone), two ways:
direct jobs with 32, 64 and 128 threads; and jobs of 224 threads each through one I/O node of
depth 224 with shares=concurrency and weights 1, 2 and 4. Four targets of 16 MiB/s, requests of
128 KiB. Figures are MiB/s and shares of what all wrote; none of them is a test.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from live.ionode.competing_jobs import MIB, RATE, SharedStorage

from penstock.live.protocol import messages

THREADS = {"low": 32, "middle": 64, "high": 128}
DEPTH = sum(THREADS.values())


def print_shares(way: str, bandwidths: dict[str, float]) -> None:
    total = sum(bandwidths.values())
    each = ", ".join(
        f"{name} {bandwidth / MIB:.1f} ({bandwidth / total:.3f})"
        for name, bandwidth in bandwidths.items()
    )
    least = bandwidths.get("low", 0.0)
    ratio = ":".join(f"{bandwidth / least:.2f}" for bandwidth in bandwidths.values())
    print(
        f"{way:<28} {each}; {ratio}; total {total / RATE:.3f} of {RATE / MIB:g} MiB/s", flush=True
    )


def compared(way: str, storage: SharedStorage, volume: int, **how: list[messages.Node]) -> None:
    with ExitStack() as stack:
        for number, (name, threads) in enumerate(THREADS.items()):
            count = DEPTH if how else threads
            stack.enter_context(storage.job(name, count, *how.values()))
            if number == 0:
                print_shares(f"{way}, alone", storage.bandwidths(volume))
        storage.bandwidths(RATE)
        print_shares(f"{way}, together", storage.bandwidths(volume))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=4.0, help="of every measurement")
    volume = round(parser.parse_args().seconds * RATE)
    place = "/dev/shm" if Path("/dev/shm").is_dir() else None
    with tempfile.TemporaryDirectory(dir=place) as folder:
        compared("direct, 32/64/128 threads", SharedStorage(Path(folder)), volume)
    for shares in ("concurrency", "bytes"):
        with tempfile.TemporaryDirectory(dir=place) as folder:
            storage = SharedStorage(Path(folder))
            with storage.io_node("--depth", str(DEPTH), "--shares", shares) as node:
                node.ask(messages.SetWeights(weights={"low": 1.0, "middle": 2.0, "high": 4.0}))
                compared(f"I/O node, {shares}", storage, volume, nodes=[node.node])


if __name__ == "__main__":
    main()
