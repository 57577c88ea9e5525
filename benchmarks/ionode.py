"""How fast an I/O node is, as a ratio to a bare server that does nothing else.

    python benchmarks/ionode.py

Clients write to a file in memory through an I/O node (data in shared memory, fifo), and through a
C++ server with a thread for each connection (data through the socket); in turns, medians. Each
line ends with its bar and whether it is met; none of them is a test.
"""

import statistics
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

HERE = Path(__file__).parent
BAR = 0.8
CASES = [(4, 4 << 10), (4, 1 << 20), (1, 4 << 10), (1, 1 << 20)]
TURNS, SECONDS = 5, 1.0


def build() -> Path:
    program = HERE / "build" / "ionode_load"
    program.parent.mkdir(exist_ok=True)
    common = HERE.parent / "native" / "common"
    source = HERE / "ionode_load.cpp"
    command = ["c++", "-std=c++20", "-O2", "-pthread", "-I", common, source, "-o", program]
    subprocess.run(command, check=True)
    return program


def serving(stack: ExitStack, *command: str | Path) -> None:
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    stack.callback(process.wait)
    stack.callback(process.terminate)
    assert process.stdout is not None
    assert process.stdout.readline(), f"{command[0]} does not serve"


def main() -> None:
    program = build()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir="/dev/shm")))
        file = folder / "file"
        file.write_bytes(b"")
        serving(stack, program, "serve", folder / "bare", file)
        control = folder / "control"
        node = [sys.executable, "-m", "penstock.cli", "ionode", "--socket", folder / "node"]
        serving(stack, *node, "--control", control)

        def speed(how: str, clients: int, size: int) -> float:
            load = [program, how, folder / how, file, str(clients), str(size), str(SECONDS)]
            return float(subprocess.run(load, check=True, stdout=subprocess.PIPE).stdout)

        for clients, size in CASES:
            pairs: list[tuple[float, float]] = []
            for _ in range(TURNS):
                pairs.append((speed("bare", clients, size), speed("node", clients, size)))
            bare, ours = (statistics.median(column) for column in zip(*pairs, strict=True))
            ratio = ours / bare
            met = "met" if ratio >= BAR else "NOT MET"
            print(
                f"{clients} x {size >> 10} KiB: I/O node {ours:.0f} MB/s, bare {bare:.0f} MB/s, "
                f"ratio {ratio:.2f} (bar >= {BAR}: {met})",
                flush=True,
            )


if __name__ == "__main__":
    main()
