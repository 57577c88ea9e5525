"""What I/O nodes are for, through the real layer: clients, I/O nodes and emulated targets."""

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from limits import HANG
from live.deployment.emulated import MIB, Machine, Writer, go, memory, read_lines
from live.ionode.frames import TOKEN
from live.ionode.real_node import RealNode

from penstock.live.agent.page_server import PageServer
from penstock.live.deployment import emulator
from penstock.live.deployment.emulator import Emulation, TargetCounters
from penstock.live.protocol.shared_page import SharedPages

__all__ = ["memory"]
KIB = 1 << 10
ATTEMPTS = 10


class Forwarded(Machine):
    """An emulated file system whose clients go through I/O nodes; writers' `client` is a job.

    I/O nodes stand for other hosts: they carry data.
    """

    def __init__(self, directory: Path, emulation: Emulation) -> None:
        super().__init__(directory, emulation)
        self.jobs: dict[str, tuple[SharedPages, PageServer]] = {}

    @contextmanager
    def serving(self, number: int, *options: str) -> Iterator[list[RealNode]]:
        with ExitStack() as stack:
            nodes = []
            for k in range(number):
                below = emulator.environment(self.shared, io_node=k)
                below["LD_PRELOAD"] = str(emulator.target_library())
                node = RealNode(
                    self.shared.parent, k, *options, carries=self.root, environment=below
                )
                nodes.append(stack.enter_context(node))
            yield nodes

    @contextmanager
    def job(self, name: str, nodes: list[RealNode]) -> Iterator[SharedPages]:
        with (
            SharedPages([self.root], job=name, token=TOKEN, patience=HANG) as pages,
            PageServer(pages, self.shared.parent / f"{name}.agent") as agent,
        ):
            pages.assign([node.remote for node in nodes])
            self.jobs[name] = pages, agent
            yield pages

    def environment(
        self, *, io_node: int | None = None, client: str | None = None
    ) -> Mapping[str, str]:
        if client not in self.jobs:
            return super().environment(io_node=io_node, client=client)
        libraries = {
            "above": [str(emulator.link_library())],
            "below": [str(emulator.target_library())],
        }
        job = self.jobs[client][1].environment(**libraries)
        return os.environ | emulator.environment(self.shared, client=client) | job

    def write(self, *writers: Writer) -> list[TargetCounters]:
        """Let all writers run at once, to their ends; return what the targets did for them."""
        before = emulator.target_counters(self.shared)
        with ExitStack() as stack:
            processes = [stack.enter_context(self.started(writer)) for writer in writers]
            begin = time.monotonic() + 0.03  # so that all have heard of it
            for process in processes:
                go(process, begin)
            for writer, process in zip(writers, processes, strict=True):
                assert len(read_lines(process)) == writer.count
        return [
            TargetCounters(
                requests=now.requests - then.requests,
                bytes=now.bytes - then.bytes,
                switches=now.switches - then.switches,
            )
            for now, then in zip(emulator.target_counters(self.shared), before, strict=True)
        ]


@pytest.mark.rates
def test_bandwidth_rises_with_io_nodes_until_targets_are_busy(memory: Path) -> None:
    """min(n x link, targets x rate): with one, two, four I/O nodes and two targets."""
    link, rate = 40 * MIB, 60 * MIB
    machine = Forwarded(
        memory, Emulation(targets=2, rate=rate, latency=0.0, switch=0.0, io_node_link=link)
    )
    files = [machine.file_on(k % 2, f"f{k}") for k in range(4)]
    writers = [Writer(file=file, client="job", size=512 * KIB, count=24) for file in files]
    bandwidths = {}
    with machine.serving(4) as nodes:
        for number in (1, 2, 4):
            with machine.job("job", nodes[:number]) as pages:
                bandwidths[number] = machine.bandwidth(*writers)
                assert pages.total("forwarded_write_bytes") == pages.total("write_bytes") > 0
    assert bandwidths[1] == pytest.approx(link, rel=0.1)
    assert bandwidths[2] == pytest.approx(2 * link, rel=0.1)
    assert bandwidths[4] == pytest.approx(2 * rate, rel=0.1)


@pytest.mark.timed
def test_an_io_node_makes_few_large_requests_of_many_small_ones(memory: Path) -> None:
    """Eight clients write 4 KiB in turn; those that were served together are waited for.

    Without that they fall apart, two or three to a request. A client that is late on a busy machine
    parts them for a while, so one of many runs is enough.
    """
    machine = Forwarded(memory, Emulation(targets=1, rate=400 * MIB, latency=0.01, switch=0.002))
    size, count, clients = 4 * KIB, 16, 8
    shared = machine.root / "shared"

    def written(job: str) -> TargetCounters:
        writers = [
            Writer(
                file=shared, at=k * size, step=clients * size, size=size, count=count, client=job
            )
            for k in range(clients)
        ]
        shared.touch()
        (target,) = machine.write(*writers)
        assert shared.stat().st_size == target.bytes == clients * count * size
        shared.unlink()
        return target

    with machine.serving(1, "--scheduler", "time-order", "--depth", "1") as nodes:
        with machine.job("direct", []):
            direct = written("direct")
        with machine.job("forwarded", nodes) as pages:
            runs = [written("forwarded")]
            while len(runs) < ATTEMPTS and not (
                runs[-1].requests <= direct.requests / 2
                and runs[-1].switches <= direct.switches / 2
            ):
                runs.append(written("forwarded"))
            assert pages.total("forwarded_writes") == len(runs) * clients * count
        measured = nodes[0].measured()
    assert direct.requests == clients * count
    assert measured.batches == sum(run.requests for run in runs)
    assert runs[-1].requests <= direct.requests / 2
    assert runs[-1].switches <= direct.switches / 2


@pytest.mark.timed
def test_twins_keeps_io_nodes_off_each_others_targets(memory: Path) -> None:
    """Each I/O node has its own file on both targets, and clients that want each of them.

    In a window an I/O node goes to one target, which has no other guest; served as they come,
    requests of both alternate at each target, and each one is a switch.
    """
    stripe = 64 * KIB
    machine = Forwarded(
        memory,
        Emulation(targets=2, count=2, stripe=stripe, rate=50 * MIB, latency=0.001, switch=0.002),
    )
    # On target 0 first, as I/O nodes take it where the file system says nothing of its stripes.
    files = [machine.file_on(0, name) for name in ("a", "b")]
    writers = [
        Writer(
            file=files[k], at=target * stripe, step=2 * stripe, size=stripe, count=60, client=f"{k}"
        )
        for k in range(2)
        for target in range(2)
    ]
    options = ("--window", "60ms", "--servers", "2", "--stripe-size", str(stripe))

    def switches(scheduler: str) -> int:
        with ExitStack() as stack:
            serving = machine.serving(2, "--scheduler", scheduler, *options)
            nodes = stack.enter_context(serving)
            for k in range(2):
                stack.enter_context(machine.job(f"{k}", [nodes[k]]))
            targets = machine.write(*writers)
            assert [node.measured().writes for node in nodes] == [120, 120]
        assert [target.bytes for target in targets] == [120 * stripe] * 2
        return sum(target.switches for target in targets)

    # Clients that a busy machine delays come too late for their window: one of some runs is enough.
    runs = ((switches("twins"), switches("fifo")) for _ in range(ATTEMPTS))
    assert any(twins < fifo / 2 for twins, fifo in runs)
