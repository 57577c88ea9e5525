"""The emulated parallel file system shows what real ones are known for, with real processes.

Time is emulated by sleeping, so ratios of times hold on a busy machine too: what is left of its
noise only adds time, and the shortest of a few runs is taken.
"""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, fields
from itertools import pairwise
from pathlib import Path
from typing import IO, cast

import pytest

from penstock.errors import InputError
from penstock.live import emulator
from penstock.live.emulator import Emulation

MIB = 1 << 20
KIB = 1 << 10
WRITER = """
import os, sys, time
path, at, step, size, count = sys.argv[1], *map(int, sys.argv[2:])
fd, data = os.open(path, os.O_WRONLY | os.O_CREAT), bytes(size)
print("ready", flush=True)
sys.stdin.readline()
began = time.monotonic()
for k in range(count):
    assert os.pwrite(fd, data, at + k * step) == size
print(began, time.monotonic(), flush=True)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Writer:
    """A process that writes `count` requests of `size` bytes, each `step` after the one before."""

    file: Path
    at: int = 0
    size: int = MIB
    step: int = 0
    count: int = 25
    io_node: int | None = None
    client: str | None = None

    def command(self) -> list[str]:
        numbers = (self.at, self.step or self.size, self.size, self.count)
        return [sys.executable, "-S", "-c", WRITER, str(self.file), *map(str, numbers)]


class Machine:
    """An emulated file system and the processes on it."""

    def __init__(self, directory: Path, emulation: Emulation) -> None:
        self.emulation = emulation
        self.root = directory / "root"
        self.root.mkdir()
        self.shared = directory / "emulation"
        emulation.create(self.shared, self.root)

    def environment(self, writer: Writer | None = None) -> Mapping[str, str]:
        libraries = [emulator.below()]
        link = {}
        if writer is not None and writer.io_node is not None:
            link = emulator.environment(self.shared, io_node=writer.io_node)
        elif writer is not None and writer.client is not None:
            libraries = [emulator.above(), emulator.below()]
            link = emulator.environment(self.shared, client=writer.client)
        preload = {"LD_PRELOAD": ":".join(map(str, libraries))}
        return os.environ | emulator.environment(self.shared) | preload | link

    def file_on(self, target: int, name: str) -> Path:
        """Make a file whose first stripe is on this target; inodes decide, so several may be tried."""
        for k in range(100):
            file = self.root / f"{name}.{k}"
            file.touch()
            if self.emulation.first_target(file) == target:
                return file
        raise AssertionError("no file came to that target")

    @contextmanager
    def started(self, writer: Writer) -> Iterator[subprocess.Popen[str]]:
        with subprocess.Popen(
            writer.command(),
            env=self.environment(writer),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as process:
            try:
                assert output(process).readline() == "ready\n"
                yield process
            finally:
                process.kill()

    def seconds(self, *writers: Writer) -> float:
        """Let them write at once; return the time from the first's begin to the last's end."""
        return min(self._seconds(writers) for _ in range(3))

    def _seconds(self, writers: Sequence[Writer]) -> float:
        with ExitStack() as stack:
            processes = [stack.enter_context(self.started(writer)) for writer in writers]
            for process in processes:
                cast(IO[str], process.stdin).write("go\n")
                cast(IO[str], process.stdin).flush()
            times = [[float(word) for word in output(p).readline().split()] for p in processes]
        return max(end for _, end in times) - min(began for began, _ in times)

    def bandwidth(self, *writers: Writer) -> float:
        return sum(w.size * w.count for w in writers) / self.seconds(*writers)

    def run(self, program: str) -> str:
        result = subprocess.run(
            [sys.executable, "-c", program],
            cwd=self.root,
            env=self.environment(),
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        )
        return result.stdout


@pytest.fixture
def memory() -> Iterator[Path]:
    """A directory without a disk's own delays, where there is one."""
    place = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=place) as directory:
        yield Path(directory)


def output(process: subprocess.Popen[str]) -> IO[str]:
    return cast(IO[str], process.stdout)


def test_one_writer_of_large_requests_reaches_the_rate(memory: Path) -> None:
    machine = Machine(memory, Emulation(targets=1, rate=200 * MIB, latency=0.0))
    bandwidth = machine.bandwidth(Writer(file=machine.root / "f", count=40))
    assert 0.95 <= bandwidth / (200 * MIB) <= 1.02


def test_two_jobs_halve_each_other(memory: Path) -> None:
    machine = Machine(memory, Emulation(targets=1, switch=0.0))
    one, two = (Writer(file=machine.root / name, count=25) for name in "ab")
    assert machine.seconds(one, two) / machine.seconds(one) == pytest.approx(2.0, rel=0.1)


def test_jobs_on_different_targets_leave_each_other_alone(memory: Path) -> None:
    machine = Machine(memory, Emulation(targets=2))
    one, two = (Writer(file=machine.file_on(k, f"f{k}"), count=25) for k in range(2))
    assert machine.seconds(one, two) / machine.seconds(one) == pytest.approx(1.0, rel=0.1)


def test_interleaved_streams_cost_more_than_one(memory: Path) -> None:
    """Each request of two streams in turn pays the switch: (5 + 0.5 + 2) / (5 + 0.5) ms."""
    machine = Machine(memory, Emulation(targets=1))
    one, two = (Writer(file=machine.root / name, count=25) for name in "ab")
    alone = machine.bandwidth(one)
    assert alone / machine.bandwidth(one, two) == pytest.approx(7.5 / 5.5, rel=0.1)


def test_a_shared_file_with_small_strided_requests_is_slower_than_a_file_a_process(
    memory: Path,
) -> None:
    """Strided requests of four processes meet on one target and switch; files keep to their own."""
    machine = Machine(memory, Emulation(targets=4, count=4, switch=1e-3))
    size, count = 64 * KIB, 48
    strided = [
        Writer(file=machine.root / "shared", at=k * size, step=4 * size, size=size, count=count)
        for k in range(4)
    ]
    own = [Writer(file=machine.file_on(k, f"f{k}"), size=size, count=count) for k in range(4)]
    assert machine.bandwidth(*own) > 3 * machine.bandwidth(*strided)


def test_bandwidth_rises_with_io_nodes_until_the_targets_are_busy(memory: Path) -> None:
    """b(n) = min(n links, all targets): here 100, 200, 300, 300 MiB/s."""
    emulation = Emulation(
        targets=3, count=3, rate=100 * MIB, latency=0.0, switch=0.0, io_node_link=100 * MIB
    )
    machine = Machine(memory, emulation)
    curve = [
        machine.bandwidth(
            *(
                Writer(file=machine.file_on(k % 3, f"{n}.{k}"), size=3 * MIB, count=5, io_node=k)
                for k in range(n)
            )
        )
        for n in range(1, 5)
    ]
    assert [b / curve[0] for b in curve] == pytest.approx([1, 2, 3, 3], rel=0.12)
    assert all(more > 0.95 * fewer for fewer, more in pairwise(curve))


def test_processes_of_one_client_share_its_link(memory: Path) -> None:
    emulation = Emulation(targets=4, count=4, latency=0.0, switch=0.0, client_link=100 * MIB)
    machine = Machine(memory, emulation)
    same = [Writer(file=machine.root / n, size=4 * MIB, count=5, client="one") for n in "ab"]
    each = [Writer(file=machine.root / n, size=4 * MIB, count=5, client=n) for n in "ab"]
    assert machine.bandwidth(*same) / (100 * MIB) == pytest.approx(1.0, rel=0.1)
    assert machine.bandwidth(*each) / (100 * MIB) == pytest.approx(2.0, rel=0.1)


@pytest.mark.parametrize("percent", [2, 16, 11])
def test_the_degradations_of_paper_packs_are_calibrated(memory: Path, percent: int) -> None:
    """d = 1 - bandwidth of several jobs together / bandwidth of one (section 2), to 3 points."""
    emulation = Emulation.parse(f"degradation-{percent},targets=1,rate=400MiB/s,latency=200us")
    machine = Machine(memory, emulation)
    jobs = [Writer(file=machine.root / name, count=60) for name in "ab"]
    degradation = 1 - machine.bandwidth(*jobs) / machine.bandwidth(jobs[0])
    assert degradation == pytest.approx(percent / 100, abs=0.03)


def test_a_killed_process_leaves_the_targets_usable(memory: Path) -> None:
    machine = Machine(memory, Emulation(targets=1, rate=100 * MIB))
    writer = Writer(file=machine.root / "f", count=20)
    alone = machine.seconds(writer)
    endless = Writer(file=machine.root / "g", step=1, count=10**9)
    for _ in range(5):
        with machine.started(endless) as process:
            cast(IO[str], process.stdin).write("go\n")
            cast(IO[str], process.stdin).flush()
            before = emulator.served(machine.shared)[0].requests
            deadline = time.monotonic() + 10
            while emulator.served(machine.shared)[0].requests < before + 3:
                assert time.monotonic() < deadline
            process.send_signal(signal.SIGKILL)
            assert process.wait(timeout=10) == -signal.SIGKILL
    assert machine.seconds(writer) / alone == pytest.approx(1.0, rel=0.15)


@pytest.mark.parametrize("count", [1, 3, 4])
def test_stripes_go_round_the_targets_of_a_file(memory: Path, count: int) -> None:
    emulation = Emulation(
        targets=4, count=count, stripe=64 * KIB, rate=1e12, latency=0.0, switch=0.0
    )
    machine = Machine(memory, emulation)
    file = machine.root / "f"
    file.touch()
    requests = [(0, 10), (64 * KIB - 1, 2), (100_000, 400_000), (5 * MIB, 64 * KIB)]
    machine.run(
        "import os; fd = os.open('f', os.O_WRONLY)\n"
        f"for at, n in {requests}: os.pwrite(fd, bytes(n), at)"
    )
    expected = [[0, 0] for _ in range(4)]
    for at, size in requests:
        targets = Counter(byte // (64 * KIB) % count for byte in range(at, at + size))
        for k, part in targets.items():
            served = expected[(emulation.first_target(file) + k) % 4]
            served[0] += 1
            served[1] += part
    assert [[t.requests, t.bytes] for t in emulator.served(machine.shared)] == expected


def test_every_call_that_moves_data_is_charged(memory: Path) -> None:
    machine = Machine(memory, Emulation(targets=1, latency=0.0, switch=0.0))
    machine.run(
        "import os\n"
        "fd, d = os.open('f', os.O_RDWR | os.O_CREAT), bytes(1000)\n"
        "os.write(fd, d); os.pwrite(fd, d, 0); os.writev(fd, [d, d]); os.pwritev(fd, [d, d], 9)\n"
        "os.lseek(fd, 0, 0)\n"
        "os.read(fd, 1000); os.pread(fd, 1000, 0); b = bytearray(500)\n"
        "os.readv(fd, [b, b]); os.preadv(fd, [b, b], 9)\n"
        "to = os.open('g', os.O_RDWR | os.O_CREAT)\n"
        "assert os.copy_file_range(fd, to, 1000, 0, 0) == 1000\n"
        "assert os.sendfile(to, fd, 0, 1000) == 1000\n"
        "assert os.read(to, 10) == b''\n"
    )
    (target,) = emulator.served(machine.shared)
    assert target.bytes == 6000 + 4000 + 2 * 1000 + 2 * 1000
    assert target.requests == 12


def test_a_vectored_call_is_one_request(memory: Path) -> None:
    """What an I/O node aggregates pays the latency once."""
    machine = Machine(memory, Emulation(targets=1))
    machine.run(
        "import os; os.pwritev(os.open('f', os.O_WRONLY | os.O_CREAT), 16 * [b'x' * 4096], 0)"
    )
    (target,) = emulator.served(machine.shared)
    assert (target.requests, target.bytes, target.switches) == (1, 16 * 4096, 0)


def test_what_continues_is_no_switch_and_what_jumps_is_one(memory: Path) -> None:
    machine = Machine(memory, Emulation(targets=1, latency=0.0, switch=1e-6))
    machine.run(
        "import os; fd = os.open('f', os.O_WRONLY | os.O_CREAT | os.O_APPEND)\n"
        "for _ in range(10): os.write(fd, bytes(1000))\n"
        "os.pread(os.open('f', os.O_RDONLY), 10, 5000)\n"
    )
    assert emulator.served(machine.shared)[0].switches == 1


def test_fsync_costs_what_it_is_said_to(memory: Path) -> None:
    machine = Machine(memory, Emulation(targets=2, count=2, sync=0.02))
    took = machine.run(
        "import os, time; fd = os.open('f', os.O_WRONLY | os.O_CREAT); began = time.monotonic()\n"
        "for _ in range(10): os.fsync(fd); os.fdatasync(fd)\n"
        "print(time.monotonic() - began)"
    )
    assert float(took) == pytest.approx(0.4, rel=0.1)


def test_files_elsewhere_cost_nothing(memory: Path) -> None:
    machine = Machine(memory, Emulation(targets=1, rate=float(MIB)))
    (memory / "root-too").mkdir()
    machine.run(
        "import os\n"
        "for name in ('../elsewhere', '../root-too/f'):\n"
        "    os.write(os.open(name, os.O_WRONLY | os.O_CREAT), bytes(1 << 24))\n"
        "one, other = os.pipe(); os.write(other, b'x'); os.read(one, 1)\n"
    )
    assert emulator.served(machine.shared)[0].requests == 0


@pytest.mark.parametrize("fault", ["missing", "short", "version", "another boot"])
def test_without_a_sound_file_programs_pass_through(memory: Path, fault: str) -> None:
    machine = Machine(memory, Emulation(targets=1, rate=1.0))
    content = bytearray(machine.shared.read_bytes())
    if fault == "missing":
        machine.shared.unlink()
    elif fault == "short":
        machine.shared.write_bytes(content[:4096])
    elif fault == "version":
        content[8] = 99
        machine.shared.write_bytes(content)
    else:
        content[16:24] = (time.monotonic_ns() + 10**15).to_bytes(8, "little")
        machine.shared.write_bytes(content)
    machine.run("import os; os.write(os.open('f', os.O_WRONLY | os.O_CREAT), bytes(1 << 20))")
    assert (machine.root / "f").stat().st_size == MIB


def test_a_specification_is_read_from_words_and_from_toml(tmp_path: Path) -> None:
    words = "targets=8,rate=1GiB/s,latency=50us,switch=1ms,stripe=4MiB,count=2,io-node-link=2GB/s"
    expected = Emulation(
        targets=8,
        rate=2.0**30,
        latency=50e-6,
        switch=1e-3,
        stripe=4 * MIB,
        count=2,
        io_node_link=2e9,
    )
    assert Emulation.parse(words) == expected
    file = tmp_path / "machine.toml"
    pairs = (item.split("=") for item in words.split(","))
    file.write_text("".join(f"{key} = '{value}'\n" for key, value in pairs))
    assert Emulation.parse(str(file)) == expected
    assert Emulation.parse("laptop") == Emulation()
    assert Emulation.parse("degradation-16") == Emulation.degrading(0.16)
    assert Emulation.parse("degradation-16,switch=0").switch == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("target=4", "did you mean 'targets'"),
        ("labtop", "did you mean 'laptop'"),
        ("rate=fast", "not a bandwidth"),
        ("rate=0", "rate of 0"),
        ("targets=1.5", "whole number"),
        ("targets=2,count=3", "count of 1 to 2"),
        ("targets=2,targets=3", "twice"),
        ("targets=2,rate", "key=value"),
        ("latency=5h", "0 to 60 s"),
        ("nowhere.toml", "cannot be read"),
    ],
)
def test_wrong_specifications_say_what_to_do(words: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Emulation.parse(words)


def test_every_part_of_a_machine_can_be_specified() -> None:
    for field in fields(Emulation):
        key = field.name.replace("_", "-")
        assert getattr(Emulation.parse(f"{key}=1"), field.name) == 1


@pytest.mark.parametrize("library", [emulator.below, emulator.above])
def test_it_needs_the_c_library_alone_and_no_symbol_newer_than_glibc_2_17(
    library: Callable[[], Path],
) -> None:
    """A symbol that an older system does not have is fatal to every program there."""
    table = subprocess.run(
        ["objdump", "-Tp", library()], capture_output=True, text=True, check=True
    ).stdout
    words = table.replace("(", " ").replace(")", " ").split()
    versions = {word[6:] for word in words if word.startswith("GLIBC_")}
    assert versions
    assert max(tuple(map(int, version.split("."))) for version in versions) <= (2, 17)
    needed = {line.split()[1] for line in table.splitlines() if "NEEDED" in line}
    assert needed <= {"libc.so.6", "libdl.so.2"}


def test_the_layout_is_the_documented_one() -> None:
    text = (Path(__file__).parents[2] / "docs" / "emulator.md").read_text()
    assert f"{emulator.FILE_BYTES:,} bytes" in text
