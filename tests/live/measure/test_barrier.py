"""The barrier of the ranks: nobody goes before all are there, nobody waits for who has ended."""

import multiprocessing
import os
import signal
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from threading import BrokenBarrierError

import pytest

from penstock.live.measure import barrier

FOREVER = 86400.0


Rank = Callable[[Connection], object]


def started(*ranks: Rank) -> dict[Connection, BaseProcess]:
    fork = multiprocessing.get_context("fork")
    processes: dict[Connection, BaseProcess] = {}
    for rank in ranks:
        ours, theirs = fork.Pipe()
        process = fork.Process(target=rank, args=(theirs,))
        process.start()
        theirs.close()
        processes[ours] = process
    return processes


def attended(*ranks: Rank) -> int:
    return barrier.attend(started(*ranks))


def test_nobody_goes_before_all_are_there(tmp_path: Path) -> None:
    """Each round, every rank leaves a mark before it waits, and finds all marks afterwards."""

    def rank(number: int) -> Callable[[Connection], None]:
        def runs(gate: Connection) -> None:
            for turn in range(50):
                (tmp_path / f"{turn}.{number}").touch()
                barrier.wait(gate, FOREVER)
                if not all((tmp_path / f"{turn}.{other}").exists() for other in range(4)):
                    os._exit(3)

        return runs

    assert attended(*map(rank, range(4))) == 0


def waits_in_vain(gate: Connection) -> None:
    with pytest.raises(BrokenBarrierError):
        barrier.wait(gate, FOREVER)


def test_who_waits_for_one_that_has_ended_is_told() -> None:
    assert attended(waits_in_vain, lambda gate: None, waits_in_vain) == 0


def test_when_one_is_killed_all_are() -> None:
    def killed(gate: Connection) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def busy(gate: Connection) -> None:
        signal.pause()

    assert attended(busy, killed, busy) == signal.SIGKILL


def test_patience_ends() -> None:
    """Of one that waits for another which never comes, until that one hears of its end."""

    def impatient(gate: Connection) -> None:
        with pytest.raises(BrokenBarrierError):
            barrier.wait(gate, 0.05)

    reading, writing = os.pipe()

    def late(gate: Connection) -> None:
        os.close(writing)
        os.read(reading, 1)  # ends when the impatient one has, and with it the pipe's other end
        waits_in_vain(gate)

    ranks = started(impatient, late)
    os.close(writing)
    assert barrier.attend(ranks) == 0
    os.close(reading)
