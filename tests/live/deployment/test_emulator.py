"""The emulated parallel file system shows what real ones are known for, with real processes.

A machine that stands still for a while can only make them slower, so lower bounds of times hold on
every machine; bandwidths are compared where it keeps time (`make rates`).
"""

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import fields
from itertools import pairwise
from pathlib import Path

import pytest
from limits import HANG
from live.deployment.emulated import Machine, Writer, go, memory, served_at_least

from penstock.errors import InputError
from penstock.live.agent.page_server import PageServer, library
from penstock.live.deployment import emulator
from penstock.live.deployment.emulator import Emulation, TargetCounters
from penstock.live.storage.stripe_layout import StripeMap

__all__ = ["memory"]
KIB, MIB = 1 << 10, 1 << 20


@pytest.mark.rates
def test_one_writer_of_large_requests_reaches_the_rate(memory: Path) -> None:
    machine = Machine(memory, Emulation(targets=1, rate=200 * MIB, latency=0.0))
    bandwidth = machine.bandwidth(Writer(file=machine.root / "f", count=40))
    assert 0.95 <= bandwidth / (200 * MIB) <= 1.02


@pytest.mark.rates
def test_two_jobs_halve_each_other(memory: Path) -> None:
    machine = Machine(memory, Emulation(targets=1, rate=100 * MIB, switch=0.0))
    one, two = (Writer(file=machine.root / name, count=20) for name in "ab")
    alone, together = machine.bandwidth(one), machine.bandwidth(one, two)
    assert together / 2 / alone == pytest.approx(0.5, rel=0.1)


@pytest.mark.rates
def test_jobs_on_different_targets_leave_each_other_alone(memory: Path) -> None:
    machine = Machine(memory, Emulation(targets=2, rate=100 * MIB))
    one, two = (Writer(file=machine.file_on(k, f"f{k}"), count=25) for k in range(2))
    assert machine.bandwidth(one, two) / machine.bandwidth(one) == pytest.approx(2.0, rel=0.1)


@pytest.mark.rates
def test_interleaved_streams_cost_more_than_one(memory: Path) -> None:
    """Each request of two streams in turn pays the switch: (10 + 0.5 + 4) / (10 + 0.5) ms."""
    machine = Machine(memory, Emulation(targets=1, rate=100 * MIB, switch=4e-3))
    one, two = (Writer(file=machine.root / name, count=20) for name in "ab")
    alone = machine.bandwidth(one)
    assert alone / machine.bandwidth(one, two) == pytest.approx(14.5 / 10.5, rel=0.1)


@pytest.mark.rates
def test_a_shared_file_with_small_strided_requests_is_slower_than_a_file_a_process(
    memory: Path,
) -> None:
    """Four processes keep to a target each, or meet on one and switch there: 4 x 7 / 3 ms."""
    machine = Machine(
        memory, Emulation(targets=4, count=4, stripe=4 * MIB, rate=25 * MIB, switch=4e-3)
    )
    size, count = 64 * KIB, 30
    strided = [
        Writer(file=machine.root / "shared", at=k * size, step=4 * size, size=size, count=count)
        for k in range(4)
    ]
    own = [Writer(file=machine.file_on(k, f"f{k}"), size=size, count=count) for k in range(4)]
    ratio = machine.bandwidth(*own) / machine.bandwidth(*strided)
    assert ratio == pytest.approx(4 * 7 / 3, rel=0.15)


@pytest.mark.rates
def test_bandwidth_rises_with_io_nodes_until_the_targets_are_busy(memory: Path) -> None:
    """b(n) = min(n links, all targets): here 100, 200, 300, 300 MiB/s."""
    emulation = Emulation(
        targets=3, count=3, rate=100 * MIB, latency=0.0, switch=0.0, io_node_link=100 * MIB
    )
    machine = Machine(memory, emulation)
    curve = [
        machine.bandwidth(
            *(
                Writer(file=machine.file_on(k % 3, f"{n}.{k}"), size=3 * MIB, count=8, io_node=k)
                for k in range(n)
            )
        )
        for n in range(1, 5)
    ]
    assert [b / curve[0] for b in curve] == pytest.approx([1, 2, 3, 3], rel=0.12)
    assert all(more > 0.95 * fewer for fewer, more in pairwise(curve))


@pytest.mark.rates
def test_processes_of_one_client_share_its_link(memory: Path) -> None:
    emulation = Emulation(targets=4, count=4, latency=0.0, switch=0.0, client_link=100 * MIB)
    machine = Machine(memory, emulation)
    same = [Writer(file=machine.root / n, size=4 * MIB, count=8, client="one") for n in "ab"]
    each = [Writer(file=machine.root / n, size=4 * MIB, count=8, client=n) for n in "ab"]
    assert machine.bandwidth(*same) / (100 * MIB) == pytest.approx(1.0, rel=0.1)
    assert machine.bandwidth(*each) / (100 * MIB) == pytest.approx(2.0, rel=0.1)


def test_a_link_does_not_make_up_for_time_spent_elsewhere(memory: Path) -> None:
    """After waiting for a slow target, a client's link is no faster than it is."""
    emulation = Emulation(targets=1, rate=1e12, latency=0.0, sync=0.5, client_link=100 * MIB)
    machine = Machine(memory, emulation)
    took = machine.run(
        "import os, time; fd = os.open('f', os.O_WRONLY | os.O_CREAT); os.fsync(fd)\n"
        "began = time.monotonic(); os.write(fd, bytes(20 << 20)); print(time.monotonic() - began)",
        client="one",
    )
    assert float(took) >= 0.2


@pytest.mark.rates
def test_reads_may_lose_more_by_a_switch_than_writes(memory: Path) -> None:
    """Every second request elsewhere: writes 1 ms each, reads 1 ms and a switch of 4 ms."""
    emulation = Emulation(targets=1, rate=1e12, latency=1e-3, switch=0.0, read_switch=4e-3)
    machine = Machine(memory, emulation)
    program = (
        "import os, time; fd = os.open('f', os.O_RDWR | os.O_CREAT)\n"
        "def each(call):\n"
        "    began = time.monotonic()\n"
        "    for k in range(50): call(8192 * (k % 2))\n"
        "    return (time.monotonic() - began) / 50\n"
        "write = each(lambda at: os.pwrite(fd, bytes(4096), at))\n"
        "print(each(lambda at: os.pread(fd, 4096, at)) / write)"
    )
    assert float(machine.run(program)) == pytest.approx(5.0, rel=0.15)


@pytest.mark.rates
@pytest.mark.parametrize("percent", [2, 16, 11])
def test_the_degradations_of_paper_packs_are_calibrated(memory: Path, percent: int) -> None:
    """d = 1 - bandwidth of several jobs together / bandwidth of one (section 2), to 3 points."""
    emulation = Emulation.parse(f"degradation-{percent},targets=1,rate=80MiB/s")
    machine = Machine(memory, emulation)
    jobs = [Writer(file=machine.root / name, count=20) for name in "ab"]
    degradation = 1 - machine.bandwidth(*jobs) / machine.bandwidth(jobs[0])
    assert degradation == pytest.approx(percent / 100, abs=0.03)


@pytest.mark.rates
def test_a_killed_process_leaves_the_targets_usable(memory: Path) -> None:
    machine = Machine(memory, Emulation(targets=1, rate=100 * MIB))
    writer = Writer(file=machine.root / "f", count=20)
    alone = machine.bandwidth(writer)
    endless = Writer(file=machine.root / "g", step=1, count=10**9)
    for _ in range(5):
        with machine.started(endless) as process:
            before = emulator.target_counters(machine.shared)[0].requests
            go(process)
            served_at_least(machine, before + 3)
            process.kill()
            assert process.wait(timeout=HANG) == -signal.SIGKILL
    assert machine.bandwidth(writer) / alone == pytest.approx(1.0, rel=0.15)


def test_a_long_request_lets_others_in_between(memory: Path) -> None:
    """... and, killed, keeps nobody waiting for the minutes that it would have taken."""
    machine = Machine(memory, Emulation(targets=1, rate=MIB // 4))
    small = "import os; os.write(os.open('small', os.O_WRONLY | os.O_CREAT), bytes(4096))"
    with machine.started(Writer(file=machine.root / "long", size=100 * MIB, count=1)) as process:
        go(process)
        served_at_least(machine, 1)
        began = time.monotonic()
        machine.run(small)
        process.kill()
        machine.run(small)
        assert time.monotonic() - began < HANG


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
    assert [[t.requests, t.bytes] for t in emulator.target_counters(machine.shared)] == expected


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
    (target,) = emulator.target_counters(machine.shared)
    assert target.bytes == 6000 + 4000 + 2 * 1000 + 2 * 1000
    assert target.requests == 12


def test_a_vectored_call_is_one_request(memory: Path) -> None:
    """What an I/O node aggregates pays the latency once."""
    machine = Machine(memory, Emulation(targets=1))
    machine.run(
        "import os; os.pwritev(os.open('f', os.O_WRONLY | os.O_CREAT), 16 * [b'x' * 4096], 0)"
    )
    (target,) = emulator.target_counters(machine.shared)
    assert (target.requests, target.bytes, target.switches) == (1, 16 * 4096, 0)


def test_what_continues_is_no_switch_and_what_jumps_is_one(memory: Path) -> None:
    machine = Machine(memory, Emulation(targets=1, latency=0.0, switch=1e-6))
    machine.run(
        "import os; fd = os.open('f', os.O_WRONLY | os.O_CREAT | os.O_APPEND)\n"
        "for _ in range(10): os.write(fd, bytes(1000))\n"
        "os.pread(os.open('f', os.O_RDONLY), 10, 5000)\n"
    )
    assert emulator.target_counters(machine.shared)[0].switches == 1


def test_another_process_that_goes_on_in_the_file_is_a_switch(memory: Path) -> None:
    machine = Machine(memory, Emulation(targets=1, latency=0.0, switch=1e-6))
    machine.run(
        "import os; fd = os.open('f', os.O_WRONLY | os.O_CREAT); os.write(fd, bytes(1000))\n"
        "if os.fork() == 0:\n"
        "    os.write(fd, bytes(1000)); os._exit(0)\n"
        "os.wait()\n"
    )
    assert emulator.target_counters(machine.shared) == [
        TargetCounters(requests=2, bytes=2000, switches=1)
    ]


def test_fsync_costs_no_less_than_it_is_said_to(memory: Path) -> None:
    machine = Machine(memory, Emulation(targets=2, count=2, sync=0.02))
    took = machine.run(
        "import os, time; fd = os.open('f', os.O_WRONLY | os.O_CREAT); began = time.monotonic()\n"
        "for _ in range(10): os.fsync(fd); os.fdatasync(fd)\n"
        "print(time.monotonic() - began)"
    )
    assert float(took) >= 0.4


def test_it_works_above_and_below_the_client_library(agent: PageServer, root: Path) -> None:
    """A job's bytes are counted once, pass its link once and are served once."""
    shared = root.parent / "emulation"
    Emulation(targets=1, latency=0.0, client_link=100 * MIB).create(shared, root)
    libraries = [emulator.link_library(), library(), emulator.target_library()]
    environment = agent.environment() | emulator.environment(shared, client="job")
    began = time.monotonic()
    subprocess.run(
        ["dd", "if=/dev/urandom", "of=f", "bs=1M", "count=40"],
        cwd=root,
        env=os.environ | environment | {"LD_PRELOAD": ":".join(map(str, libraries))},
        timeout=60,
        check=True,
    )
    assert time.monotonic() - began >= 0.4
    assert (root / "f").stat().st_size == 40 * MIB
    assert agent.pages.total("write_bytes") == 40 * MIB
    assert emulator.target_counters(shared) == [
        TargetCounters(requests=40, bytes=40 * MIB, switches=0)
    ]


def test_files_elsewhere_cost_nothing(memory: Path) -> None:
    machine = Machine(memory, Emulation(targets=1, rate=float(MIB)))
    (memory / "root-too").mkdir()
    machine.run(
        "import os\n"
        "for name in ('../elsewhere', '../root-too/f'):\n"
        "    os.write(os.open(name, os.O_WRONLY | os.O_CREAT), bytes(1 << 24))\n"
        "one, other = os.pipe(); os.write(other, b'x'); os.read(one, 1)\n"
    )
    assert emulator.target_counters(machine.shared)[0].requests == 0


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
    assert Emulation.parse("degradation-16") == Emulation.with_degradation(0.16)
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
        ("stripe=2TiB", "at most"),
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


@pytest.mark.parametrize("emulator_library", [emulator.target_library, emulator.link_library])
def test_it_needs_the_c_library_alone_and_no_symbol_newer_than_glibc_2_17(
    emulator_library: Callable[[], Path],
) -> None:
    """A symbol that an older system does not have is fatal to every program there."""
    table = subprocess.run(
        ["objdump", "-Tp", emulator_library()], capture_output=True, text=True, check=True
    ).stdout
    words = table.replace("(", " ").replace(")", " ").split()
    versions = {word[6:] for word in words if word.startswith("GLIBC_")}
    assert versions
    assert max(tuple(map(int, version.split("."))) for version in versions) <= (2, 17)
    needed = {line.split()[1] for line in table.splitlines() if "NEEDED" in line}
    assert needed <= {"libc.so.6", "libdl.so.2"}


def test_the_layout_is_the_documented_one() -> None:
    text = (Path(__file__).parents[3] / "docs/live/emulator.md").read_text()
    assert f"{emulator.FILE_BYTES:,} bytes" in text


def test_it_tells_where_a_file_lies(tmp_path: Path) -> None:
    """As Lustre does, in its extended attribute: targets and stripe size of that very file."""
    root, shared = tmp_path / "root", tmp_path / "emulation"
    root.mkdir()
    machine = Emulation.parse("targets=6,count=3,stripe=64KiB")
    machine.create(shared, root)
    program = (
        "import os, sys; fd = os.open(sys.argv[1], os.O_CREAT | os.O_RDWR)\n"
        "sys.stdout.write(os.getxattr(fd, 'lustre.lov').hex())\n"
    )
    environment = os.environ | emulator.environment(shared)
    result = subprocess.run(
        [sys.executable, "-c", program, str(root / "file")],
        env=environment | {"LD_PRELOAD": str(emulator.target_library())},
        capture_output=True,
        text=True,
        check=True,
        timeout=HANG,
    ).stdout
    layout = StripeMap.from_lustre(bytes.fromhex(result))
    first = machine.first_target(root / "file")
    assert [layout.server(k * 65536) for k in range(6)] == [(first + k % 3) % 6 for k in range(6)]
