"""Measurements over several hosts: where ranks go, one barrier, one clock, and hosts that fail.

Here srun is a shell script that starts all launchers on this host; tests/slurm has a real one.
"""

import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path

import msgspec
import pytest
from limits import HANG

from penstock.errors import InputError
from penstock.live.deployment.launcher import LaunchError
from penstock.live.deployment.spec import Deployment
from penstock.live.measure import explorer, host_ranks, hosts_explorer, scratch, slurm_hosts
from penstock.live.measure.access_patterns import Pattern, Phase
from penstock.live.measure.explorer import Cell, Distribution
from penstock.live.measure.host_ranks import HostNotes, HostPlan
from penstock.live.measure.hosts_explorer import HostsExplorer
from penstock.live.measure.rank import BROKEN, GO, READY, Plan, RankResult
from penstock.live.measure.slurm_hosts import HostPlacement

KIB = 1024
OWN = Phase(
    name="own", patterns=[Pattern(operation="write", total_size=512 * KIB, request_size=64 * KIB)]
)
LARGE = Phase(
    name="large",
    patterns=[Pattern(operation="write", total_size=20 * 2**20, request_size=10 * 2**20)],
)
ENDLESS = Phase(
    name="endless",
    patterns=[
        Pattern(operation="write", total_size=1 << 40, request_size=4 * KIB, stone_wall=60.0)
    ],
)
SRUN = """#!/bin/sh
until [ "$1" = --kill-on-bad-exit=0 ]; do shift; done
shift
read -r introduction
for host in n0 n1; do
    (
        export SLURMD_NODENAME=$host SLURM_LAUNCH_NODE_IPADDR=127.0.0.1
        [ "$host" != "$SMALL_FILES" ] || ulimit -f 16384
        echo "$introduction" | exec "$@"
    ) &
done
wait
"""


@pytest.mark.parametrize("ranks", [1, 2, 3, 5, 8])
def test_every_rank_is_on_one_host(ranks: int) -> None:
    for placement in ("block", "cyclic"):
        dealt = HostPlacement(hosts=("a", "b", "c"), ranks=placement).ranks_of_hosts(ranks)
        assert sorted(rank for each in dealt.values() for rank in each) == list(range(ranks))
        assert all(dealt.values()), "a host without ranks has no part in a job"


def test_ranks_are_in_blocks_or_in_turn() -> None:
    hosts = ("a", "b")
    block = HostPlacement(hosts=hosts).ranks_of_hosts(5)
    assert block == {"a": [0, 1, 2], "b": [3, 4]}
    cyclic = HostPlacement(hosts=hosts, ranks="cyclic").ranks_of_hosts(5)
    assert cyclic == {"a": [0, 2, 4], "b": [1, 3]}


def test_hosts_of_io_nodes_alone_are_the_last() -> None:
    placement = HostPlacement(hosts=("a", "b", "c"), io_node_hosts=2)
    assert [placement.host_of_io_node(k) for k in range(4)] == ["b", "c", "b", "c"]
    assert placement.ranks_of_hosts(2) == {"a": [0, 1]}
    with pytest.raises(InputError, match="ranks need one"):
        HostPlacement(hosts=("a",), io_node_hosts=1)


@pytest.mark.parametrize("distribution", ["block", "cyclic"])
@pytest.mark.parametrize(("ranks", "io_nodes"), [(8, 2), (7, 3), (2, 4)])
def test_ranks_have_the_same_io_nodes_on_one_host_and_on_several(
    ranks: int, io_nodes: int, distribution: Distribution
) -> None:
    """On one host, the k-th rank to arrive gets I/O node k mod n."""
    arrivals = explorer.arrival_order(ranks, min(ranks, io_nodes), distribution)
    on_one = {number: k % io_nodes for k, number in enumerate(arrivals)}
    wanted = hosts_explorer.io_nodes_of_ranks(ranks, io_nodes, distribution)
    assert dict(enumerate(wanted)) == on_one


def test_clocks_are_compared_by_the_shortest_exchange() -> None:
    """This host's clock shows 100 when the other's shows 500; long exchanges are far from even."""
    exchanges = [(100.0, 500.9, 101.0), (102.0, 502.1, 102.2), (103.0, 503.0, 105.0)]
    assert host_ranks.clock_offset(exchanges) == pytest.approx(400.0)


def test_a_process_becomes_a_rank_that_should_have_its_io_node() -> None:
    missing = {4: 0, 5: 1, 6: 1}
    assert host_ranks.choose(missing, 1, any_one=False) == 5
    assert host_ranks.choose(missing, 2, any_one=False) is None
    assert host_ranks.choose(missing, 2, any_one=True) == 4


@pytest.fixture
def measurement() -> Iterator[tuple[Connection, Connection]]:
    own_end, host_end = Pipe()
    with own_end, host_end:
        yield own_end, host_end


def leave(connection: Connection) -> None:
    """Close a connection, in forked processes too."""
    with socket.socket(fileno=os.dup(connection.fileno())) as own:
        own.shutdown(socket.SHUT_RDWR)


def host_plan(folder: Path, phase: Phase) -> HostPlan:
    plan = Plan(phase=phase, folder=str(folder), ranks=4, seed=1, results=str(folder), timeout=HANG)
    return HostPlan(plan=plan, ranks=[2, 3], wanted=[])


def run_host(work: HostPlan, host_end: Connection) -> "tuple[threading.Thread, list[int]]":
    statuses: list[int] = []
    thread = threading.Thread(
        target=lambda: statuses.append(host_ranks.run(work, host_end, lambda _: 7.0))
    )
    thread.start()
    return thread, statuses


def result(folder: Path, number: int) -> RankResult:
    return msgspec.json.decode((folder / f"rank-{number}.json").read_bytes(), type=RankResult)


def test_the_ranks_of_a_host_wait_for_the_other_hosts(
    tmp_path: Path, measurement: tuple[Connection, Connection]
) -> None:
    """OWN has two barriers: before the write, and after it."""
    own_end, host_end = measurement
    host, statuses = run_host(host_plan(tmp_path, OWN), host_end)
    for _ in range(2):
        assert own_end.poll(HANG)
        assert own_end.recv_bytes() == READY
        assert not (tmp_path / "rank-2.json").exists()
        own_end.send_bytes(GO)
    host.join()
    assert statuses == [0]
    assert [result(tmp_path, number).error for number in (2, 3)] == ["", ""]
    notes = msgspec.json.decode(HostNotes.file(str(tmp_path)).read_bytes(), type=HostNotes)
    assert notes.clock_offset == 7.0
    assert not own_end.poll(), "ranks said more than that they wait"


@pytest.mark.parametrize("end", ["broken", "gone"])
def test_ranks_end_when_another_host_fails_or_the_measurement_ends(
    tmp_path: Path, measurement: tuple[Connection, Connection], end: str
) -> None:
    """Otherwise they would write for as long as the stone wall allows."""
    own_end, host_end = measurement
    host, statuses = run_host(host_plan(tmp_path, ENDLESS), host_end)
    assert own_end.poll(HANG)
    assert own_end.recv_bytes() == READY
    own_end.send_bytes(GO)
    own_end.send_bytes(BROKEN) if end == "broken" else leave(own_end)
    host.join()
    assert statuses == [int(signal.SIGKILL)]


@contextmanager
def exploring(folder: Path, io_nodes: int, *, coherent: bool = True) -> Iterator[HostsExplorer]:
    (folder / "root").mkdir()
    with scratch.private_state() as state:
        deployment = Deployment(
            state=str(state), roots=[str(folder / "root")], io_nodes=io_nodes, attached=True
        )
        with HostsExplorer(
            deployment,
            [OWN, LARGE, ENDLESS],
            seed=1,
            distribution="cyclic",
            placement=HostPlacement(hosts=("n0", "n1"), coherent=coherent),
        ) as explorer:
            yield explorer
    assert list((folder / "root").iterdir()) == []


@pytest.fixture
def srun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "bin/srun"
    program.parent.mkdir()
    program.write_text(SRUN)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent), prepend=os.pathsep)
    monkeypatch.setenv("SMALL_FILES", "none")


@pytest.mark.usefixtures("srun")
@pytest.mark.parametrize("io_nodes", [0, 1, 2])
def test_every_byte_goes_where_it_should(tmp_path: Path, io_nodes: int) -> None:
    with exploring(tmp_path, 2) as explorer:
        run = explorer.run(Cell("own", 3, io_nodes, 0))
    assert run.marked == ""
    assert run.bytes == 6 * 64 * KIB
    assert [one.host for one in run.ranks] == ["n0", "n0", "n1"]
    expected = ["", "", ""] if not io_nodes else [str(k % io_nodes) for k in range(3)]
    assert [one.io_node for one in run.ranks] == expected
    assert sum(one.write_bytes for one in run.io_nodes) == (run.bytes if io_nodes else 0)
    assert sum(one.reads for one in run.io_nodes) == 0, "what ranks read to connect is counted"


@pytest.mark.usefixtures("srun")
def test_a_rank_that_fails_ends_those_of_other_hosts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On n1 files may have 8 MiB; the ranks of n0 would wait for host_end."""
    monkeypatch.setenv("SMALL_FILES", "n1")
    with (
        exploring(tmp_path, 0) as explorer,
        pytest.raises(LaunchError, match=r"phase 'large': host n1: rank 1: .*File too large"),
    ):
        explorer.run(Cell("large", 2, 0, 0))


def processes_of(module: str, host: str) -> list[int]:
    """Return the processes of this test that run a module for a host."""
    processes = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes().split(b"\0")
            variables = (process / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if module.encode() in words and f"SLURMD_NODENAME={host}".encode() in variables:
            own = f"PATH={os.environ['PATH']}".encode()
            processes += [int(process.name)] if own in variables else []
    return processes


@pytest.mark.usefixtures("srun")
@pytest.mark.parametrize(
    ("module", "message"),
    [
        ("penstock.live.measure.host_launcher", "host n1 has gone and left no result"),
        (
            "penstock.live.measure.host_ranks",
            "host n1: rank 1 left no result; the ranks ended with status",
        ),
    ],
    ids=["launcher", "ranks"],
)
def test_a_host_that_fails_ends_the_run_and_is_named(
    tmp_path: Path, module: str, message: str
) -> None:
    def kill_once_ranks_write() -> None:
        until = time.monotonic() + HANG
        while time.monotonic() < until:
            if list((tmp_path / "root").glob("explore-*/forge.00001")):
                for process in processes_of(module, "n1"):
                    with suppress(ProcessLookupError):  # it has ended with another
                        os.kill(process, signal.SIGKILL)
                return
            time.sleep(0.01)

    with exploring(tmp_path, 1) as explorer:
        killer = threading.Thread(target=kill_once_ranks_write)
        killer.start()
        with pytest.raises(LaunchError, match=message):
            explorer.run(Cell("endless", 2, 1, 0))
        killer.join()
    for host in ("n0", "n1"):
        assert processes_of("ionode", host) == []


@pytest.mark.usefixtures("srun")
def test_a_host_that_does_not_come_is_named(tmp_path: Path) -> None:
    (tmp_path / "bin/srun").write_text("#!/bin/sh\necho srun: error: no such nodes >&2\nexit 1\n")
    with (
        pytest.raises(LaunchError, match="no launcher on n0, n1: srun: error: no such nodes"),
        exploring(tmp_path, 0),
    ):
        pass


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        ({}, "this is no allocation of Slurm"),
        ({"SLURM_JOB_ID": "7"}, "this is no allocation of Slurm"),
        (
            {"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "n0", "SLURM_STEP_NUM_TASKS": "4"},
            "srun has started this command 4 times",
        ),
    ],
)
def test_what_is_no_allocation_is_refused(environment: dict[str, str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        slurm_hosts.allocated_hosts(environment)


def test_one_host_is_measured_as_without_slurm() -> None:
    inside = {"SLURM_JOB_ID": "7", "SLURM_JOB_NUM_NODES": "1"}
    assert not slurm_hosts.has_several_hosts(inside)
    assert slurm_hosts.has_several_hosts(inside | {"SLURM_JOB_NUM_NODES": "2"})
    assert not slurm_hosts.has_several_hosts({})


@pytest.mark.usefixtures("srun")
def test_io_nodes_refuse_a_root_that_nobody_declares_coherent(tmp_path: Path) -> None:
    with (
        pytest.raises(
            LaunchError, match=r"host n0: I/O node 0 ended: .*; give --coherent if it is"
        ),
        exploring(tmp_path, 1, coherent=False),
    ):
        pass
