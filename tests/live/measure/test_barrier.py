"""The barrier of the ranks: none passes before all are there, none waits for one that ended."""

import multiprocessing
import os
import signal
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from threading import BrokenBarrierError

import pytest

from penstock.live.measure.rank import serve_barrier, wait_at_barrier

FOREVER = 86400.0


Rank = Callable[[Connection], object]


def start(*ranks: Rank) -> dict[Connection, BaseProcess]:
    fork = multiprocessing.get_context("fork")
    processes: dict[Connection, BaseProcess] = {}
    for rank in ranks:
        parent_end, rank_end = fork.Pipe()
        process = fork.Process(target=rank, args=(rank_end,))
        process.start()
        rank_end.close()
        processes[parent_end] = process
    return processes


def run(*ranks: Rank) -> int:
    return serve_barrier(start(*ranks))


def test_no_rank_passes_before_all_are_there(tmp_path: Path) -> None:
    """In each round, every rank creates a file before it waits, and finds all files afterwards."""

    def rank(number: int) -> Callable[[Connection], None]:
        def runs(gate: Connection) -> None:
            for turn in range(50):
                (tmp_path / f"{turn}.{number}").touch()
                wait_at_barrier(gate, FOREVER)
                if not all((tmp_path / f"{turn}.{other}").exists() for other in range(4)):
                    os._exit(3)

        return runs

    assert run(*map(rank, range(4))) == 0


def wait_in_vain(gate: Connection) -> None:
    with pytest.raises(BrokenBarrierError):
        wait_at_barrier(gate, FOREVER)


def test_ranks_that_wait_for_an_ended_one_are_released_with_an_error() -> None:
    assert run(wait_in_vain, lambda gate: None, wait_in_vain) == 0


def test_if_one_rank_is_killed_all_are() -> None:
    def killed(gate: Connection) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def busy(gate: Connection) -> None:
        signal.pause()

    assert run(busy, killed, busy) == signal.SIGKILL


def test_a_wait_ends_at_its_timeout() -> None:
    """The other rank comes after the first has given up, and is released with an error."""

    def impatient(gate: Connection) -> None:
        with pytest.raises(BrokenBarrierError):
            wait_at_barrier(gate, 0.05)

    reading, writing = os.pipe()

    def late(gate: Connection) -> None:
        os.close(writing)
        os.read(reading, 1)  # ends when the impatient one has, and with it the pipe's other end
        wait_in_vain(gate)

    ranks = start(impatient, late)
    os.close(writing)
    assert serve_barrier(ranks) == 0
    os.close(reading)
