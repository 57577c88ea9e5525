"""A store that fails stops nobody, and loses nothing that fits in memory; a crash loses a batch."""

import asyncio
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from limits import HANG
from live.storage.real_storage import small_memory
from live.store.postgres import Postgres, postgres_server
from live.store.sample_jobs import KNOWN, ended, family, running

from penstock.errors import InputError
from penstock.live.store import Changes, Limits, Store, StoreError, Totals, WriteBehind

WAIT = HANG


def until(holds: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + WAIT
    while not holds():
        assert time.monotonic() < deadline, what
        time.sleep(0.005)


def errors(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.message for record in caplog.records if record.levelname == "ERROR"]


def goes_on_while(kept: WriteBehind, caplog: pytest.LogCaptureFixture) -> None:
    """Tell a failing store of jobs until it has failed several times; it logs that once a kind."""
    for k in range(1, 200):
        kept.running(running(k, command=("x" * 3000,)))
    kept.ended(ended(1))
    kept.learn(family(), KNOWN)
    until(lambda: kept.failed_total >= 2, "the store does not fail")
    kept.running(running(2, phases=99))
    assert kept.failing
    assert kept.lag_seconds > 0
    assert kept.waiting > 200
    assert len(errors(caplog)) == len(set(errors(caplog))) <= kept.failed_total
    assert kept.recall(family()) is not None


def all_is_there(kept: WriteBehind, url: str) -> None:
    """Await that a store that works again has everything."""
    assert kept.flush(WAIT), kept.failing
    assert (kept.failing, kept.waiting, kept.lag_seconds, kept.dropped_total) == (None, 0, 0.0, 0)
    assert kept.close()
    with Store(url) as store:
        memory = store.load()
    assert [job.serial for job in memory.running] == list(range(2, 200))
    assert memory.running[0].phases == 99
    assert memory.ended == (ended(1),)
    assert len(memory.families) == 1
    assert memory.totals == Totals(forwarded_bytes=10, direct_bytes=7, fail_opens=1)


def test_a_full_disk(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with small_memory(tmp_path, size=4 << 20) as mount:
        url = f"sqlite:///{mount}/store.db"
        kept = WriteBehind(Store(url))
        with suppress(OSError), (mount / "ballast").open("wb", 0) as ballast:
            while ballast.write(bytes(4096)):
                pass
        goes_on_while(kept, caplog)
        assert "full" in str(kept.failing)
        (mount / "ballast").unlink()
        all_is_there(kept, url)


def test_a_file_that_another_process_has_locked(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    url = f"sqlite:///{tmp_path}/store.db"
    kept = WriteBehind(Store(url))
    backup = sqlite3.connect(tmp_path / "store.db", isolation_level=None)
    backup.execute("BEGIN IMMEDIATE")
    goes_on_while(kept, caplog)
    backup.close()
    all_is_there(kept, url)


def test_a_killed_server_that_comes_back(caplog: pytest.LogCaptureFixture) -> None:
    with postgres_server() as server:
        url = server.database()
        kept = WriteBehind(Store(url))
        kept.running(running(150))
        assert kept.flush()
        server.end(signal.SIGKILL)
        goes_on_while(kept, caplog)
        server.start()
        all_is_there(kept, url)


def test_a_database_that_may_not_be_written(
    postgres: Postgres, caplog: pytest.LogCaptureFixture
) -> None:
    url = postgres.database()
    kept = WriteBehind(Store(url))
    postgres.execute("ALTER SYSTEM SET default_transaction_read_only = on")
    postgres.execute("SELECT pg_reload_conf()")
    try:
        goes_on_while(kept, caplog)
        assert "read-only" in str(kept.failing)
    finally:
        postgres.execute("SET default_transaction_read_only = off")
        postgres.execute("ALTER SYSTEM RESET default_transaction_read_only")
        postgres.execute("SELECT pg_reload_conf()")
    all_is_there(kept, url)


def test_who_lost_the_server_and_came_back_late_writes_nothing(postgres: Postgres) -> None:
    """Two controllers never write to one store, also when the first was cut off for a while."""
    url = postgres.database()
    first = Store(url)
    postgres.execute("SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory'")
    until(lambda: not postgres.locked(), "the session goes on")
    with Store(url) as second:
        second.write(Changes(serial=2))
        for _ in range(2):  # the connection that is broken, and the next
            with pytest.raises(StoreError):
                first.write(Changes(serial=1))
    first.write(Changes(serial=3))
    assert first.load().serial == 3
    first.close()


def test_a_file_that_is_removed_is_missed_and_not_made_again(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    kept = WriteBehind(Store(f"sqlite:///{path}"))
    path.unlink()
    kept.running(running(1))
    until(lambda: kept.failing, "nobody misses the file")
    assert "removed" in str(kept.failing)
    assert not kept.close(timeout=0.5)
    assert not path.exists()


def test_all_is_written_without_being_asked_for(url: str) -> None:
    kept = WriteBehind(Store(url), limits=Limits(later=0.5))
    changes: tuple[Callable[[], object], ...] = (
        lambda: kept.running(running(1)),
        lambda: kept.running(running(1, phases=9)),
        lambda: kept.learn(family(), KNOWN),
        lambda: kept.ended(ended(1)),
    )
    for change in changes:
        written = kept.written_total
        change()
        until(lambda: not kept.waiting, "nothing is written")
        assert kept.written_total > written
    kept.close()


class Stuck(Store):
    """A store whose database does not answer until it may."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.may, self.called = threading.Event(), threading.Event()
        self.may.set()

    def write(self, changes: Changes) -> list[str]:
        self.called.set()
        assert self.may.wait(WAIT)
        return super().write(changes)


@contextmanager
def stuck(url: str, **limits: int) -> Iterator[tuple[WriteBehind, Stuck]]:
    store = Stuck(url)
    kept = WriteBehind(store, limits=Limits(**limits))
    store.called.clear()
    store.may.clear()
    try:
        kept.serial()
        kept.running(running(7))
        assert store.called.wait(WAIT)
        yield kept, store
    finally:
        store.may.set()
        kept.close()


def test_nobody_waits_for_a_database_that_does_not_answer(url: str) -> None:
    with stuck(url) as (kept, store):
        for k in range(Limits().reserved + 10):
            kept.serial()
            kept.running(running(k % 10, phases=k))
            kept.learn(family(), KNOWN)
        kept.ended(ended(7))
        assert asyncio.run(kept.find_ended("ior.7")) == ended(7)
        assert kept.waiting < 20  # the newest of each alone, and what is being written
        assert not kept.flush(timeout=0.01)
        store.may.set()
        assert kept.flush()
        assert asyncio.run(kept.find_ended("ior.7")) == ended(7)
        assert asyncio.run(kept.find_ended("ior.8")) is None


def test_what_waits_is_bounded_and_the_oldest_goes_first(
    url: str, caplog: pytest.LogCaptureFixture
) -> None:
    with stuck(url, most=100) as (kept, store):
        for k in range(100, 400):
            kept.ended(ended(k))
        assert kept.dropped_total == 200
        store.may.set()
    assert len([error for error in errors(caplog) if "dropped" in error]) == 1
    with Store(url) as again:
        memory = again.load()
    assert [job.serial for job in memory.ended] == list(range(300, 400))
    assert memory.totals.forwarded_bytes == 3000


WRITER = """
import sys
sys.path[:0] = sys.argv[2:]
from live.store.sample_jobs import ended, running
from penstock.live.store import WriteBehind, Store
kept, k = WriteBehind(Store(sys.argv[1])), 0
while True:
    serial = kept.serial()
    kept.running(running(serial))
    if serial % 3 == 0:
        kept.ended(ended(serial))
    if serial % 200 == 0:
        assert kept.flush()
        print(serial, flush=True)
"""


def test_a_killed_controller_loses_no_more_than_its_last_batch(url: str) -> None:
    """Numbers never come twice, what was flushed is there, totals are those of the jobs."""
    tests = str(Path(__file__).parents[2])
    last = 0
    for life in range(3):
        command = [sys.executable, "-c", WRITER, url, tests]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
            assert writer.stdout is not None
            try:
                lines = [int(writer.stdout.readline()) for _ in range(3 + life)]
            finally:
                writer.kill()
            lines += [int(line) for line in writer.stdout if line.endswith("\n")]
        assert lines[0] > last
        with opened_in_time(url) as store:
            memory = store.load(ended=1_000_000)
            jobs = {job.serial for job in (*memory.running, *memory.ended)}
            assert jobs >= set(range(lines[0], lines[-1] + 1))
            assert all(job.serial % 3 == 0 for job in memory.ended)
            assert memory.totals.forwarded_bytes == 10 * len(memory.ended)
            assert memory.serial >= max(jobs)
        last = memory.serial


@contextmanager
def opened_in_time(url: str) -> Iterator[Store]:
    """A server takes a moment to see that its client was killed."""
    deadline = time.monotonic() + WAIT
    while True:
        try:
            store = Store(url)
            break
        except InputError:
            assert time.monotonic() < deadline, "the store is still in use"
            time.sleep(0.01)
    with store:
        yield store


class Refusing(Store):
    """A store that can be read, and written to only when it may."""

    may = False

    def write(self, changes: Changes) -> list[str]:
        if not self.may:
            raise StoreError("full", "the disk is full")
        return super().write(changes)


def test_numbers_that_could_not_be_written_down_do_not_come_twice(url: str) -> None:
    """A controller that starts under a full disk and crashes is followed by another such one."""
    with WriteBehind(Store(url)) as kept:
        assert kept.serial() == 1
    store = Refusing(url)
    kept = WriteBehind(store)
    now = time.time()
    first = [kept.serial(), kept.serial()]
    assert first[0] >= int(now)
    assert first[1] == first[0] + 1
    store.may = True
    assert kept.flush(WAIT)
    assert kept.serial() == first[1] + 1
    assert kept.close()
    with WriteBehind(Store(url)) as kept:
        assert kept.serial() == first[1] + 2


def test_a_controller_that_was_closed_gives_unused_numbers_back(url: str) -> None:
    for life in range(3):
        with WriteBehind(Store(url)) as kept:
            assert [kept.serial(), kept.serial()] == [2 * life + 1, 2 * life + 2]


def test_jobs_that_are_taken_back_or_run_again_are_as_was_said_last(url: str) -> None:
    with WriteBehind(Store(url)) as kept:
        kept.running(running(1))
        kept.running(running(2))
        assert kept.flush()
        kept.forget("ior.1")
        kept.running(running(2, phases=8))
        kept.ended(ended(2))
        kept.running(running(3))
        kept.running(running(3, phases=5))
    with Store(url) as store:
        memory = store.load()
    assert memory.running == (running(3, phases=5),)
    assert memory.ended == (ended(2),)


def test_old_history_is_forgotten_as_time_goes(url: str) -> None:
    with Store(url) as store:
        store.write(Changes(jobs={"ior.1": ended(1, ended=time.time() - 100.0)}))
        store.write(Changes(jobs={"ior.2": ended(2, ended=time.time() + os.getpid())}))
    with WriteBehind(Store(url), limits=Limits(history=50.0)) as kept:
        assert len(kept.memory.ended) == 2
    with Store(url) as store:
        assert [job.serial for job in store.load().ended] == [2]


def test_what_comes_after_a_flush_does_not_keep_it_waiting(url: str) -> None:
    """A busy controller always has something to write: last words would be kept for ever."""
    over = threading.Event()
    with WriteBehind(Store(url)) as kept:

        def busy() -> None:
            k = 10
            while not over.wait(0.0005):
                kept.running(running(k, phases=k))
                k += 1

        others = threading.Thread(target=busy)
        others.start()
        try:
            for k in range(5):
                kept.running(running(k, phases=77))
                kept.learn(family(nodes=k + 1), KNOWN)
                assert kept.flush(WAIT / 3)
        finally:
            over.set()
            others.join(WAIT)
        assert not {f"ior.{k}" for k in range(5)} & kept.waiting_jobs()


def test_a_flush_says_no_while_the_store_refuses(url: str) -> None:
    store = Refusing(url)
    kept = WriteBehind(store)
    kept.learn(family(), KNOWN)
    assert not kept.flush(0.1)
    store.may = True
    assert kept.flush(WAIT)
    assert kept.close()
    with Store(url) as reopened:
        assert reopened.load().families.recall(family()) is not None
