"""The explorer: every cell once, figures as defined, every byte accounted for."""

import csv
import itertools
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from limits import COMPUTING, HANG

from penstock.errors import InputError
from penstock.live.deployment import launcher
from penstock.live.deployment.spec import Deployment
from penstock.live.measure import explore_survey, explorer, mpi, rank, scratch
from penstock.live.measure.access_patterns import Pattern, Phase
from penstock.live.measure.explorer import Cell, Distribution, Explorer, Run
from penstock.live.measure.rank import Plan, RankOperation
from penstock.live.protocol.state_directory import StateDirectory

PENSTOCK = (sys.executable, "-m", "penstock.cli")
KIB = 1024
OWN = Phase(
    name="own",
    patterns=[
        Pattern(operation="write", total_size=512 * KIB, request_size=64 * KIB, validation=True)
    ],
)
SHARED = Phase(
    name="shared",
    repetitions=2,
    patterns=[
        Pattern(
            operation=operation,
            number_of_files="shared",
            spatiality="strided",
            total_size=256 * KIB,
            request_size=16 * KIB,
            validation=True,
        )
        for operation in ("open", "write", "read", "close")
    ],
)
READ = Phase(
    name="read",
    patterns=[
        Pattern(
            operation="read",
            number_of_files="shared",
            total_size=256 * KIB,
            request_size=64 * KIB,
            validation=True,
        )
    ],
)
DIRECT_IO = Phase(
    name="direct-io",
    patterns=[
        Pattern(
            operation=operation,
            total_size=256 * KIB,
            request_size=64 * KIB,
            validation=True,
            direct_io=True,
        )
        for operation in ("write", "read")
    ],
)
WALL = Phase(
    name="wall",
    patterns=[
        Pattern(
            operation="write",
            number_of_files="shared",
            total_size=1 << 40,
            request_size=4 * KIB,
            stone_wall=0.2,
        )
    ],
)


@pytest.fixture(scope="module")
def exploring(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Explorer]:
    root = tmp_path_factory.mktemp("root")
    with scratch.private_state() as state:
        deployment = Deployment(state=str(state), roots=[str(root)], io_nodes=2, attached=True)
        with Explorer(
            deployment, [OWN, SHARED, READ, WALL, DIRECT_IO], seed=1, mpi=False
        ) as exploring:
            yield exploring
    assert not state.exists()
    assert list(root.iterdir()) == []


@pytest.mark.parametrize("io_nodes", [0, 1, 2])
@pytest.mark.parametrize(
    ("phase", "moved"), [("own", 512 * KIB), ("shared", 1024 * KIB), ("read", 256 * KIB)]
)
def test_every_byte_goes_where_it_should(
    exploring: Explorer, phase: str, moved: int, io_nodes: int
) -> None:
    run = exploring.run(Cell(phase, 2, io_nodes, 0))
    assert run.marked == ""
    expected = (moved, 0) if io_nodes else (0, moved)
    assert (run.forwarded_bytes, run.direct_bytes) == expected
    assert run.bandwidth == pytest.approx(moved / run.makespan / 1e6)
    assert {timed.rank for timed in run.ranks} == {0, 1}


def test_a_stone_wall_ends_an_endless_phase(exploring: Explorer) -> None:
    run = exploring.run(Cell("wall", 2, 1, 0))
    assert run.marked == ""
    assert 0.2 <= run.makespan < 5
    assert run.bytes == run.forwarded_bytes > 0


@pytest.mark.parametrize("io_nodes", [0, 1])
def test_direct_io_is_measured(exploring: Explorer, tmp_path: Path, io_nodes: int) -> None:
    try:
        os.close(os.open(tmp_path / "probe", os.O_CREAT | os.O_RDWR | os.O_DIRECT))
    except OSError:
        pytest.skip("the file system of temporary files has no O_DIRECT")
    run = exploring.run(Cell("direct-io", 2, io_nodes, 0))
    assert run.marked == ""
    assert run.bytes == 512 * KIB


def test_ranks_of_mpi_do_the_same(tmp_path: Path) -> None:
    pytest.importorskip("mpi4py", reason="mpi4py is not installed")
    (tmp_path / "root").mkdir()
    with scratch.private_state() as state:
        roots = [str(tmp_path / "root")]
        deployment = Deployment(state=str(state), roots=roots, io_nodes=1, attached=True)
        with Explorer(deployment, [SHARED], seed=1, mpi=True) as exploring:
            run = exploring.run(Cell("shared", 2, 1, 0))
    assert run.marked == ""
    assert run.bytes == run.forwarded_bytes == 1024 * KIB
    assert {timed.rank for timed in run.ranks} == {0, 1}


def test_a_missing_mpi_is_reported_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"--mpi: mpi4py is not installed: .*'\.\[mpi\]'"):
        mpi.check_mpi()


def test_two_ranks_find_each_other() -> None:
    mpi.check_mpi()


@pytest.mark.parametrize(
    ("mpiexec_does", "message"),
    [
        ('shift 2; "$@"; exec "$@"', "different MPIs"),
        ("echo no slots >&2; exit 1", "does not start mpi4py: no slots"),
    ],
    ids=["alone", "fails"],
)
def test_an_mpiexec_of_another_mpi_is_reported_at_once(
    mpiexec_does: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under the mpiexec of another MPI every rank is the only one of a world of its own."""
    program = tmp_path / "mpiexec"
    program.write_text(f'#!/bin/sh\n[ "$1" = --version ] && exit\n{mpiexec_does}\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    with pytest.raises(InputError, match=message):
        mpi.check_mpi()


def test_what_ranks_print_may_be_interleaved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a busy machine a quarter of all checks had "ranks ranks 2 2" for "ranks 2 ranks 2"."""
    program = tmp_path / "mpiexec"
    program.write_text("#!/bin/sh\nprintf 'ranks ranks 2\\n2\\n'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    mpi.check_mpi()


def test_runs_that_go_direct_are_marked(
    exploring: Explorer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without its client library a job goes direct, which no figure may hide."""
    monkeypatch.setenv("PENSTOCK_DISABLE", "1")
    run = exploring.run(Cell("own", 2, 1, 0))
    assert "0 were forwarded" in run.marked


def test_wrong_file_contents_are_found(tmp_path: Path) -> None:
    plan = Plan(phase=OWN, folder=str(tmp_path), ranks=1, seed=3, results="", timeout=1.0)
    operations = rank.Rank(plan, 0, lambda: None).run().operations
    assert rank.validate(plan, operations) == ""
    with (tmp_path / "forge.00000").open("r+b") as file:
        file.seek(70 * KIB)
        file.write(b"\0\0")
    assert "wrong at 65536" in rank.validate(plan, operations)


def test_a_rank_that_fails_ends_the_others_and_reports_its_error(tmp_path: Path) -> None:
    """Rank 1 finds a directory where its file should be; rank 0 would wait for it for a day."""
    (tmp_path / "forge.00001").mkdir()
    plan = Plan(
        phase=OWN, folder=str(tmp_path), ranks=2, seed=1, results=str(tmp_path), timeout=86400.0
    )
    (tmp_path / "plan").write_bytes(msgspec.json.encode(plan))
    command = [sys.executable, "-m", "penstock.live.measure.rank", str(tmp_path / "plan")]
    status = subprocess.run(command, timeout=HANG, check=False).returncode
    with pytest.raises(launcher.LaunchError, match=r"phase 'own': rank 1: .*directory"):
        explorer.collect(plan, status)


WITHOUT_SEMAPHORES = """
import _multiprocessing, runpy, sys

class Refused:
    SEM_VALUE_MAX = 1
    def __init__(self, *given):
        raise PermissionError(13, "Permission denied")

_multiprocessing.SemLock = Refused
runpy.run_module("penstock.live.measure.rank", run_name="__main__")
"""


def test_ranks_meet_where_shared_memory_may_not_be_written(tmp_path: Path) -> None:
    """Semaphores lie in /dev/shm, which is not every user's."""
    plan = Plan(
        phase=SHARED, folder=str(tmp_path), ranks=3, seed=1, results=str(tmp_path), timeout=20.0
    )
    (tmp_path / "plan").write_bytes(msgspec.json.encode(plan))
    command = [sys.executable, "-c", WITHOUT_SEMAPHORES, str(tmp_path / "plan")]
    ended = subprocess.run(command, timeout=HANG, check=False, capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (0, "")
    operations = [one for result in explorer.collect(plan, 0) for one in result.operations]
    for before, after in itertools.pairwise(itertools.product(range(2), range(4))):
        ends = [o.ended for o in operations if (o.repetition, o.pattern) == before]
        begins = [o.began for o in operations if (o.repetition, o.pattern) == after]
        assert max(ends) <= min(begins), "a rank went on before the others were done"


def test_a_makespan_is_the_slowest_ranks_time_since_the_first_began() -> None:
    def operation(rank: int, pattern: int, began: float, ended: float, name: str) -> RankOperation:
        return RankOperation(
            rank=rank,
            repetition=0,
            pattern=pattern,
            operation=name,
            bytes=1,
            began=began,
            ended=ended,
        )

    ranks = explorer.rank_times(
        [
            operation(0, 0, 5.0, 9.0, "open"),
            operation(0, 1, 10.0, 12.0, "write"),
            operation(1, 1, 10.5, 13.0, "write"),
            operation(0, 2, 20.0, 21.0, "read"),
            operation(1, 2, 20.0, 20.5, "read"),
        ]
    )
    assert explorer.data_operations(ranks) == {"write": (2, 3.0), "read": (2, 1.0)}
    assert [timed.seconds for timed in ranks] == [4.0, 2.0, 3.0, 1.0, 0.5]


@pytest.mark.parametrize(
    ("ranks", "io_nodes", "blocks"),
    [
        (4, 2, [0, 0, 1, 1]),
        (6, 3, [0, 0, 1, 1, 2, 2]),
        (7, 3, [0, 0, 0, 1, 1, 2, 2]),
        (2, 4, [0, 1]),
    ],
)
def test_ranks_connect_in_the_order_that_gives_them_their_io_nodes(
    ranks: int, io_nodes: int, blocks: list[int]
) -> None:
    """The k-th to come gets I/O node k mod n."""
    turns = [k % io_nodes for k in range(ranks)]
    expected: dict[Distribution, list[int]] = {"block": blocks, "cyclic": turns}
    for distribution, nodes in expected.items():
        order = explorer.arrival_order(ranks, io_nodes, distribution)
        assert sorted(order) == list(range(ranks))
        assert [order.index(k) % io_nodes for k in range(ranks)] == nodes


def test_all_cells_once_in_an_order_that_the_seed_determines() -> None:
    phases = [OWN, Phase(name="own-count", processes=8, patterns=OWN.patterns)]
    cells = explorer.cells(phases, [], [0, 1, 2], repeats=5, seed=1)
    assert len(set(cells)) == len(cells) == 2 * 3 * 5
    assert {cell.processes for cell in cells if cell.phase == "own-count"} == {8}
    assert cells != sorted(cells)
    assert cells == explorer.cells(phases, [], [0, 1, 2], repeats=5, seed=1)
    assert cells != explorer.cells(phases, [], [0, 1, 2], repeats=5, seed=2)
    assert {c.processes for c in explorer.cells(phases, [2, 4], [0], repeats=1, seed=1)} == {2, 4}


def run(io_nodes: int, repeat: int, bandwidth: float, *, marked: str = "") -> Run:
    return Run(
        cell=Cell("own", 2, io_nodes, repeat),
        bandwidth=bandwidth,
        bytes=5_000_000,
        makespan=5 / bandwidth,
        forwarded_bytes=0,
        direct_bytes=0,
        fail_opens=0,
        marked=marked,
    )


def test_curves_are_medians_without_marked_runs() -> None:
    runs = [run(0, k, b) for k, b in enumerate([10, 30, 20, 40, 1000])]
    runs += [run(1, 0, 7.0), run(1, 1, 1e6, marked="direct"), run(2, 0, 1.0, marked="direct")]
    points = explore_survey.points(runs)
    assert [(p.io_nodes, p.q1, p.median, p.q3, p.marked) for p in points] == [
        (0, 20, 30, 40, 0),
        (1, 7, 7, 7, 1),
        (2, None, None, None, 1),
    ]
    (job,) = explore_survey.curves(points, runs, [OWN])
    assert job == {
        "id": "own",
        "nodes": 1,
        "processes": 2,
        "curve": {"0": 30.0, "1": 7.0},
        "volume": 5.0,
    }


def penstock(*args: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*PENSTOCK, *map(str, args)],
        capture_output=True,
        text=True,
        timeout=COMPUTING,
        check=False,
        env=os.environ | environment,
    )


PATTERNS = {
    "name": "small",
    "processes": 2,
    "path": "small",
    "number_of_files": "shared",
    "total_size": "65536",
    "request_size": "8192",
}


def test_the_verb_writes_curves_for_allocate_and_continues_where_it_stopped(
    root: Path, tmp_path: Path
) -> None:
    file, out = tmp_path / "patterns.json", tmp_path / "out"
    file.write_text(json.dumps(PATTERNS))
    explore = ("explore", file, "--root", root, "--io-nodes", "0,2", "--out", out, "--json")
    spec = "targets=2,rate=1GiB/s,latency=0s,switch=0s"
    first = penstock(*explore, "--repeats", "2", "--emulate", spec)
    assert first.returncode == 0, first.stderr
    result: Any = json.loads(first.stdout)
    assert result["emulated"] == spec
    assert set(result["jobs"][0]["curve"]) == {"0", "2"}
    allocated = penstock("allocate", out / "curves.json", "--io-nodes", "2", "--json")
    assert set(json.loads(allocated.stdout)["allocation"]) == {"small"}
    with (out / "ranks.csv").open() as table:
        rows = list(csv.DictReader(table))
    assert len(rows) == 2 * 2 * 2 * 2  # counts, repeats, ranks, and write then read
    lines = (out / "runs.jsonl").read_bytes().splitlines()
    assert len(lines) == 1 + 4
    # Its last line half written, as by a kill; the others are not measured again.
    (out / "runs.jsonl").write_bytes(b"\n".join(lines[:-1]) + b"\n" + lines[-1][:20])
    again = penstock(*explore, "--repeats", "2", "--emulate", spec)
    assert again.returncode == 0, again.stderr
    assert (out / "runs.jsonl").read_bytes().splitlines()[:-1] == lines[:-1]
    other = penstock(*explore, "--repeats", "2")
    assert (other.returncode, "another run" in other.stderr) == (2, True)
    people = penstock(*explore[:-1], "--repeats", "2", "--emulate", spec)
    assert "emulated" in people.stdout


@pytest.mark.rates
def test_io_nodes_add_up_while_their_links_are_the_limit(root: Path) -> None:
    """Emulated: two ranks of 2 MiB over links of 16 MiB/s, then a link each: half the time."""
    spec = "targets=2,rate=10GiB/s,latency=0s,switch=0s,io-node-link=16MiB/s"
    pattern = Pattern(operation="write", total_size=4 << 20, request_size=256 * KIB)
    phase = Phase(name="linked", patterns=[pattern])
    with scratch.private_state() as state:
        deployment = Deployment(
            state=str(state), roots=[str(root)], io_nodes=2, emulate=spec, attached=True
        )
        with Explorer(deployment, [phase], seed=1, mpi=False) as exploring:
            one, two = (exploring.run(Cell("linked", 2, n, 0)) for n in (1, 2))
    assert (one.marked, two.marked) == ("", "")
    assert two.bandwidth / one.bandwidth == pytest.approx(2.0, rel=0.2)


def test_marked_runs_are_reported_and_fail_the_command(root: Path, tmp_path: Path) -> None:
    file = tmp_path / "patterns.json"
    file.write_text(json.dumps(PATTERNS))
    explore = ("explore", file, "--root", root, "--io-nodes", "1", "--repeats", "1")
    result = penstock(*explore, "--out", tmp_path / "out", PENSTOCK_DISABLE="1")
    assert result.returncode == 1
    assert "marked: small over 1 I/O nodes" in result.stderr
    assert json.loads((tmp_path / "out" / "curves.json").read_text())["jobs"] == []


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("--io-nodes", "0,x"), "not a list of numbers"),
        (("--io-nodes", "65"), "give 0 to 64"),
        (("--processes", "0"), "give 1 to"),
        (("--emulate", "targest=2"), "did you mean"),
        (("--root", "nowhere"), "no such directory"),
    ],
)
def test_invalid_input_is_refused_before_anything_starts(
    root: Path, tmp_path: Path, args: tuple[str, ...], message: str
) -> None:
    file = tmp_path / "patterns.json"
    file.write_text(json.dumps(PATTERNS))
    options = ("--root", str(root), *args, "--out", str(tmp_path / "out"))
    result = penstock("explore", file, *options)
    assert (result.returncode, message in result.stderr) == (2, True), result.stderr
    assert not (tmp_path / "out").exists()


def test_a_long_temporary_directory_is_avoided(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sockets have short names; batch systems' directories of a job have long ones."""
    long = tmp_path / ("x" * 100)
    long.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(long))
    with scratch.private_state() as folder:
        StateDirectory(folder)
    assert not folder.exists()
    assert list(long.iterdir()) == []


SIGNALLED = """
import os, signal, sys
from penstock import cli
from penstock.campaign.journal import Journal

def then_a_signal(function, after):
    def called(*args, **options):
        result = function(*args, **options)
        called.times += 1
        if called.times == after:
            os.kill(os.getpid(), signal.{signal})
        return result
    called.times = 0
    return called

{where} = then_a_signal({where}, {after})
sys.exit(cli.main(sys.argv[1:]))
"""


@pytest.mark.parametrize(
    ("where", "number"),
    [
        ("Journal.add", signal.SIGTERM),
        ("Journal.add", signal.SIGINT),
        ("os.posix_spawnp", signal.SIGTERM),
        ("os.posix_spawnp", signal.SIGHUP),
    ],
    ids=["between runs", "interrupt between runs", "in a run", "hang-up in a run"],
)
def test_a_signal_leaves_only_finished_runs_behind(
    root: Path,
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
    where: str,
    number: signal.Signals,
) -> None:
    file, out, temporary = (
        tmp_path / "patterns.json",
        tmp_path / "out",
        tmp_path_factory.mktemp("s"),
    )
    file.write_text(json.dumps(PATTERNS))
    explore = ("explore", file, "--root", root, "--io-nodes", "1", "--repeats", "3", "--out", out)
    after = 1 if where == "Journal.add" else 2  # one run is over in either case
    program = SIGNALLED.format(where=where, after=after, signal=number.name)
    ended = subprocess.run(
        [sys.executable, "-c", program, *map(str, explore)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env=os.environ | {"TMPDIR": str(temporary)},
    )
    assert ended.returncode == 128 + number, ended.stderr
    assert "interrupted; 1 of 3 runs are kept" in ended.stderr
    assert (list(temporary.iterdir()), list(root.iterdir())) == ([], [])
    journal = (out / "runs.jsonl").read_bytes()
    again = penstock(*explore)
    assert again.returncode == 0, again.stderr
    assert (out / "runs.jsonl").read_bytes().startswith(journal)
