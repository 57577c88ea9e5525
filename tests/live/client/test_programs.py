"""Unmodified programs, byte for byte: through an I/O node, directly, and re-mapped as they run."""

import hashlib
import os
import sys
import tarfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from failures import checking_data
from live.ionode.real_node import RealNode

from penstock.live.protocol.shared_page import SharedPages

PROGRAMS = Path(__file__).parents[1] / "programs"
MIB = 1 << 20
LETTERS = b"".join(bytes([ord("a") + k % 26]) * 65536 for k in range(32))
MPI = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


@dataclass(frozen=True, kw_only=True)
class Program:
    """What is run in the managed directory, and what must be there afterwards."""

    commands: Callable[[Callable[..., str]], list[list[str]]]
    check: Callable[[Path], object]
    written: int  # bytes that go through our calls, at least
    read: int = 0
    visible: bool = True  # by a preload library
    environment: dict[str, str] = field(default_factory=dict)


def shell(script: str) -> Callable[[Any], list[list[str]]]:
    return lambda _: [["bash", "-ec", script]]


def python(script: str) -> Callable[[Any], list[list[str]]]:
    return lambda _: [[sys.executable, "-c", script]]


def built(name: str, *options: str) -> Callable[[Any], list[list[str]]]:
    return lambda compiled: [[compiled(name, *options)]]


def fio(engine: str, *options: str) -> Callable[[Any], list[list[str]]]:
    base = ["fio", "--name=job", f"--ioengine={engine}", "--filename=fio.bin", "--size=4m"]
    return lambda _: [
        [*base, "--rw=write", "--bs=16k", "--verify=crc32c", "--verify_state_save=0", *options]
    ]


def mpi(component: str) -> Callable[[Any], list[list[str]]]:
    launcher = ["mpirun.openmpi", "--oversubscribe", "-n", "3", "--mca", "io", component]
    return lambda _: [[*launcher, sys.executable, str(PROGRAMS / "mpi_writer.py"), "mpi.bin"]]


def contents(name: str, expected: bytes) -> Callable[[Path], object]:
    def check(root: Path) -> None:
        assert hashlib.sha256((root / name).read_bytes()).digest() == (
            hashlib.sha256(expected).digest()
        ), name

    return check


def same(one: str, other: str, size: int) -> Callable[[Path], object]:
    def check(root: Path) -> None:
        assert (root / one).stat().st_size == size
        assert (root / one).read_bytes() == (root / other).read_bytes()

    return check


def tar_is_whole(root: Path) -> None:
    with tarfile.open(root / "all.tar") as archive:
        for k in range(4):
            packed = archive.extractfile(f"part{k}")
            assert packed is not None
            assert packed.read() == (root / f"part{k}").read_bytes()
            assert (root / "back" / f"part{k}").read_bytes() == (root / f"part{k}").read_bytes()


def numpy_arrays(root: Path) -> None:
    expected = np.arange(500_000.0)
    assert (np.load(root / "a.npy") == expected).all()
    assert (np.fromfile(root / "a.bin") == expected).all()


def hdf5_is_whole(root: Path) -> None:
    with h5py.File(root / "a.h5") as file:
        assert (file["chunked"][:] == np.arange(400_000.0).reshape(400, 1000)).all()
        assert file["chunked"].attrs["unit"] == "m"


def mpi_blocks(root: Path) -> None:
    data = np.fromfile(root / "mpi.bin", np.uint8)
    blocks = data[: 64 * 3 * 8192].reshape(-1, 8192)
    assert (blocks == (np.arange(64 * 3) % 251)[:, None]).all()
    assert (data[64 * 3 * 8192 :].reshape(3, -1) == np.arange(1, 4)[:, None]).all()


def threads_wrote_all(root: Path) -> None:
    serial = (root / "threads.serial").read_bytes()
    assert [serial.count(bytes([ord("A") + k])) for k in range(8)] == 8 * [64 * 16384]
    shared = np.fromfile(root / "threads.shared", np.uint8).reshape(64, 8, 16384)
    k, me = np.indices((64, 8))
    assert (shared == (1 + (me * 31 + k) % 250)[:, :, None]).all()


def streams_wrote_all(root: Path) -> None:
    assert (root / "streams.bin").stat().st_size == 4 * MIB
    assert (root / "streams.txt").read_text().endswith("number 19999\nend\n")


def stdio_wrote_all(root: Path) -> None:
    expected = b"".join(bytes([ord("a") + k % 26]) * 65536 for k in range(128))
    assert (root / "stdio.bin").read_bytes() == expected[:-1] + b"Z"
    assert (root / "stdio.update").read_text() == "0123AX6789"
    lines = "".join(f"line {k}\n" for k in range(2000))
    assert (root / "stdio.txt").read_text() == lines + "appended\n"
    assert (root / "stdio.wide").read_text() == "weiß 7\n"
    assert (root / "stdio.again").read_text() == "again\n"


def fortran_wrote_all(root: Path) -> None:
    lines = "".join(f"line {k:6d}\n" for k in range(1, 5001))
    assert (root / "fortran.txt").read_text() == lines
    assert (np.fromfile(root / "fortran.dir", np.int32) == np.arange(1, 1001)).all()
    records = np.fromfile(root / "fortran.seq", np.uint8).reshape(100, -1)[:, 4:-4]
    fields = np.ascontiguousarray(records).view(np.float64)
    assert (fields == np.arange(1.0, 101.0)[:, None]).all()


SUBPROCESSES = """
import os, subprocess, sys, threading
def write(name, count):
    with open(name, "wb", buffering=0) as file:
        for k in range(count): file.write(bytes([k % 256]) * 32768)
if os.fork() == 0:
    write("forked", 64); os._exit(0)
threads = [threading.Thread(target=write, args=(f"t{k}", 32)) for k in range(4)]
[t.start() for t in threads]; [t.join() for t in threads]
assert os.wait()[1] == 0
with open("log.txt", "w") as log:
    subprocess.run([sys.executable, "-c", "print('x' * 100000)"], stdout=log, check=True)
with open("log.txt", "a") as log: log.write("end\\n")
assert open("log.txt").read() == "x" * 100000 + "\\nend\\n"
"""


def subprocesses_wrote_all(root: Path) -> None:
    for name, count in [("forked", 64), *((f"t{k}", 32) for k in range(4))]:
        assert (root / name).read_bytes() == b"".join(bytes([k]) * 32768 for k in range(count))


SQLITE = """
import sqlite3
c = sqlite3.connect("a.db"); c.execute("create table t (k integer primary key, v blob)")
for k in range(40):
    with c: c.executemany("insert into t (v) values (?)", [(bytes([k]) * 900,) for _ in range(50)])
with c: c.execute("delete from t where k % 3 = 0"); c.execute("update t set v = zeroblob(901)")
c.execute("vacuum"); assert c.execute("pragma integrity_check").fetchone() == ("ok",)
c.close()
"""


def database_is_whole(root: Path) -> None:
    import sqlite3  # noqa: PLC0415

    connection = sqlite3.connect(root / "a.db")
    assert connection.execute("pragma integrity_check").fetchone() == ("ok",)
    assert connection.execute("select count(*), sum(length(v)) from t").fetchone() == (
        1334,
        1334 * 901,
    )
    connection.close()


HDF5 = (
    "import h5py, numpy as np\n"
    "with h5py.File('a.h5', 'w') as f:\n"
    "    d = f.create_dataset('chunked', (400, 1000), chunks=(10, 1000), dtype='f8')\n"
    "    for k in range(400): d[k] = np.arange(1000.) + 1000 * k\n"
    "    d.attrs['unit'] = 'm'\n"
    "with h5py.File('a.h5') as f: assert f['chunked'][7, 3] == 7003\n"
)
BLOCKS = "for k in $(seq 0 3); do head -c 1500000 /dev/urandom > part$k; done;"
MANY = 3 * MIB

VISIBLE = {
    "dd": Program(
        commands=shell(
            "dd if=/dev/urandom of=one bs=16k count=256 status=none conv=fsync;"
            "dd if=one of=two bs=64k status=none; dd if=one of=two bs=4k seek=3 skip=3 count=90"
            " conv=notrunc status=none"
        ),
        check=same("one", "two", 4 * MIB),
        written=8 * MIB,
        read=4 * MIB,
    ),
    "tar": Program(
        commands=shell(BLOCKS + "tar cf all.tar part*; mkdir back; tar xf all.tar -C back"),
        check=tar_is_whole,
        written=17 * MIB,
        read=11 * MIB,
    ),
    "bash": Program(
        commands=shell(
            "for k in $(seq 400); do echo line $k; done > log; echo more >> log;"
            "printf 'x%.0s' $(seq 5000) > x; exec 3>three; echo three >&3; exec 3>&-;"
            "cat log > copy"
        ),
        check=contents("log", "".join(f"line {k}\n" for k in range(1, 401)).encode() + b"more\n"),
        written=3000,
    ),
    "fio-psync": Program(
        commands=fio("psync"), check=lambda root: None, written=4 * MIB, read=4 * MIB
    ),
    "fio-pvsync2": Program(
        commands=fio("pvsync2", "--rw=randwrite"), check=lambda root: None, written=4 * MIB
    ),
    "python": Program(commands=python(SUBPROCESSES), check=subprocesses_wrote_all, written=6 * MIB),
    "numpy": Program(
        commands=python(
            "import numpy as np; a = np.arange(500000.)\n"
            "for _ in range(10): np.save('a.npy', a); a.tofile('a.bin')\n"
            "assert (np.load('a.npy') == a).all() and (np.fromfile('a.bin') == a).all()"
        ),
        check=numpy_arrays,
        written=8_000_000,
        read=8_000_000,
    ),
    "c++-streams": Program(
        commands=built("streams.cpp"), check=streams_wrote_all, written=4 * MIB, read=4 * MIB
    ),
    "hdf5": Program(commands=python(HDF5), check=hdf5_is_whole, written=MANY),
    "sqlite": Program(commands=python(SQLITE), check=database_is_whole, written=MANY),
    "mpi-io-ompio": Program(
        commands=mpi("ompio"), check=mpi_blocks, written=3 * MIB, read=MIB, environment=MPI
    ),
    "mpi-io-romio": Program(
        commands=mpi("romio321"), check=mpi_blocks, written=3 * MIB, read=MIB, environment=MPI
    ),
    "fortran": Program(
        commands=built("writer.f90"), check=fortran_wrote_all, written=3_200_000, read=3_200_000
    ),
    "c-stdio": Program(
        commands=built("stdio.c"), check=stdio_wrote_all, written=8 * MIB, read=18_000
    ),
    "threads": Program(
        commands=built("threads.c"), check=threads_wrote_all, written=16 * MIB, read=8 * MIB
    ),
}

LEFT = {
    "cp": Program(
        commands=shell("head -c 3000000 /dev/urandom > one; cp one two"),
        check=same("one", "two", 3_000_000),
        written=3_000_000,
    ),
    "shutil": Program(
        commands=python(
            "import os, shutil; open('one', 'wb').write(os.urandom(3000000))\n"
            "shutil.copyfile('one', 'two')"
        ),
        check=same("one", "two", 3_000_000),
        written=3_000_000,
    ),
    "fio-posixaio": Program(commands=fio("posixaio"), check=lambda root: None, written=0),
}

UNSEEN = {
    "static": Program(
        commands=built("static.c", "-static"), check=contents("static.bin", LETTERS), written=0
    ),
    "go": Program(commands=built("writer.go"), check=contents("go.bin", LETTERS), written=0),
    "fio-libaio": Program(commands=fio("libaio"), check=lambda root: None, written=0),
    "fio-io_uring": Program(commands=fio("io_uring"), check=lambda root: None, written=0),
}


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[RealNode]]:
    folder = tmp_path_factory.mktemp("nodes")
    with RealNode(folder, 0) as first, RealNode(folder, 1, "--scheduler", "time-order") as second:
        yield [first, second]


@pytest.fixture
def execute(run: Any, compiled: Any, root: Path) -> Callable[[Program], None]:
    """Run a program, and compare what it left behind."""

    def execute(program: Program) -> None:
        for command in program.commands(compiled):
            run(*command, **program.environment)
        with checking_data():
            program.check(root)

    return execute


@pytest.mark.parametrize("name", VISIBLE)
def test_forwarded(name: str, execute: Any, pages: SharedPages, nodes: list[RealNode]) -> None:
    program = VISIBLE[name]
    before = nodes[0].measured()
    pages.assign([nodes[0].node])
    execute(program)
    after = nodes[0].measured()
    assert pages.total("failed_open") == 0
    assert after.write_bytes - before.write_bytes == pages.total("forwarded_write_bytes")
    assert after.read_bytes - before.read_bytes == pages.total("forwarded_read_bytes")
    # Appending, wide and reopened streams are direct; they are a few bytes of these programs.
    assert pages.total("forwarded_write_bytes") >= program.written
    assert pages.total("forwarded_write_bytes") >= 0.97 * pages.total("write_bytes")
    assert pages.total("forwarded_read_bytes") >= program.read
    assert after.files == before.files, "every file is closed at the I/O node, too"


@pytest.mark.parametrize("name", VISIBLE)
def test_direct(name: str, execute: Any, pages: SharedPages) -> None:
    execute(VISIBLE[name])
    assert pages.total("write_bytes") >= VISIBLE[name].written
    assert pages.total("forwarded_write_bytes") == pages.total("failed_open") == 0


@pytest.mark.parametrize("name", VISIBLE)
def test_remapped_in_the_middle(
    name: str, execute: Any, pages: SharedPages, nodes: list[RealNode]
) -> None:
    """The map changes every millisecond: the other I/O node, both, striped; none between."""
    program = VISIBLE[name]
    done, places = threading.Event(), [nodes[0].node, nodes[1].node]
    maps = [(places[1:], 0), (places, 0), (places, 65536), (places[:1], 0)]
    before = [node.measured().write_bytes for node in nodes]

    def remap() -> None:
        turn = 0
        while not done.wait(0.001):
            assigned, stripe = maps[turn % len(maps)]
            pages.assign([])
            pages.assign(assigned, stripe=stripe)
            turn += 1

    def used() -> list[int]:
        return [node.measured().write_bytes - b for node, b in zip(nodes, before, strict=True)]

    pages.assign(places[:1])
    remapper = threading.Thread(target=remap)
    remapper.start()
    try:
        for _ in range(5):  # a file that is opened while there is no I/O node may stay direct
            execute(program)
            if all(used()):
                break
    finally:
        done.set()
        remapper.join()
    assert pages.total("failed_open") == 0
    assert sum(used()) == pages.total("forwarded_write_bytes")
    assert all(used()), "both I/O nodes had their part"


@pytest.mark.parametrize("name", LEFT)
def test_left_to_the_kernel_and_counted(
    name: str, execute: Any, pages: SharedPages, nodes: list[RealNode]
) -> None:
    pages.assign([nodes[0].node])
    execute(LEFT[name])
    assert pages.total("left_to_kernel") >= 1
    assert pages.total("left_bytes") >= 3_000_000
    assert pages.total("forwarded_write_bytes") >= LEFT[name].written


@pytest.mark.parametrize("name", UNSEEN)
def test_what_cannot_be_seen_is_direct(
    name: str, execute: Any, pages: SharedPages, nodes: list[RealNode]
) -> None:
    pages.assign([nodes[0].node])
    execute(UNSEEN[name])
    assert pages.total("forwarded_write_bytes") == pages.total("write_bytes") == 0


def test_the_environment_is_whole(run: Any) -> None:
    """Programs of a job see each other and their environment as without the library."""
    out = run("bash", "-c", "env | cut -d= -f1 | sort; ls /proc/self/fd | wc -l").stdout.split()
    assert "LD_PRELOAD" in out
    assert int(out[-1]) <= 5
    assert os.environ.get("PENSTOCK_AGENT") is None
