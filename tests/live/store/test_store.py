"""What a controller remembers is there after it, in SQLite and in a real PostgreSQL alike."""

import os
import sqlite3
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from live.store.old_stores import make_version_1, make_version_2
from live.store.postgres import Postgres
from live.store.sample_jobs import KNOWN, ended, family, running
from sqlalchemy import Connection, create_engine, text

from penstock.errors import InputError
from penstock.learn.imported import LONGEST_KEY, Imported
from penstock.learn.observations import History, ObservedPhase
from penstock.learn.tuned import TunedValues
from penstock.live.protocol.job_record import JobRecord, PinnedIoNodes
from penstock.live.store import (
    Changes,
    Families,
    Family,
    Knowledge,
    Limits,
    Store,
    Totals,
    WriteBehind,
)
from penstock.live.store.schema import LONGEST_COMMAND, Schema
from penstock.model import Context

PIN = PinnedIoNodes(io_nodes=[3, 1], stripe=4096)


def test_all_that_is_written_is_loaded_as_it_was(url: str) -> None:
    little = Knowledge(updated=2000.0)
    totals = Totals(forwarded_bytes=1 << 60, direct_bytes=2, fail_opens=3)
    with Store(url) as store:
        store.write(
            Changes(
                families={family(8): little, family(): KNOWN},
                jobs={
                    "ior.2": running(2, pinned=PIN),
                    "ior.1": running(1, processes=None, requested_io_nodes=None, command=[]),
                    "ior.3": ended(3),
                    "ior.4": ended(4, state="lost", status=None),
                },
                totals=totals,
                serial=9,
            )
        )
    with Store(url) as store:
        memory = store.load()
        assert store.ended("ior.4") == ended(4, state="lost", status=None)
        assert store.ended("ior.1") is None
        recalled = store.load().families.recall(family())
    assert memory.running == (
        running(1, processes=None, requested_io_nodes=None, command=[]),
        running(2, pinned=PIN),
    )
    assert memory.ended == (ended(3), ended(4, state="lost", status=None))
    assert (memory.totals, memory.serial) == (totals, 9)
    assert recalled is not None
    assert (recalled.knowledge, recalled.exact) == (KNOWN, True)
    again = memory.families.recall(family(8))
    assert again is not None
    assert again.knowledge == little


def test_the_newest_row_of_a_key_replaces_the_older_and_an_end_the_running_job(url: str) -> None:
    with Store(url) as store:
        store.write(Changes(families={family(): KNOWN}, jobs={"ior.1": running(1)}, serial=1))
        newer = Knowledge(updated=2.0)
        store.write(Changes(families={family(): newer}, jobs={"ior.1": running(1, phases=4)}))
        memory = store.load()
        assert len(memory.families) == 1
        assert [job.phases for job in memory.running] == [4]
        store.write(Changes(families={family(): None}, jobs={"ior.1": ended(1)}, serial=2))
        memory = store.load()
    assert len(memory.families) == 0
    assert (memory.running, memory.ended, memory.serial) == ((), (ended(1),), 2)


@pytest.mark.parametrize(
    ("size", "got"), [(1, 2), (2, 2), (3, 4), (5, 4), (6, 8), (64, 8), (65, 512), (4096, 512)]
)
def test_an_unknown_size_is_told_by_the_nearest_in_ratio(size: int, got: int) -> None:
    sizes = (2, 4, 8, 512)
    recalled = Families((family(n), Knowledge(updated=float(n))) for n in sizes).recall(
        family(size)
    )
    assert recalled is not None
    assert recalled.knowledge.updated == recalled.family.nodes == got
    assert recalled.exact == (size in sizes)


@pytest.mark.security
def test_another_users_jobs_tell_nothing(url: str) -> None:
    with Store(url) as store:
        store.write(Changes(families={family(): KNOWN}))
        known = store.load().families
        assert known.recall(family(user="bob")) is None
        assert known.recall(family(executable="/apps/other")) is None


def test_a_user_of_ever_new_programs_forgets_his_own_alone(url: str) -> None:
    with WriteBehind(Store(url), limits=Limits(families_per_user=3)) as keeper:
        keeper.learn(family(user="bob"), KNOWN)
        for k in range(3):
            keeper.learn(family(executable=f"a{k}"), KNOWN)
        keeper.learn(family(executable="a0"), Knowledge(updated=1001.0))  # a1 is now the oldest
        keeper.learn(family(executable="a3"), Knowledge(updated=1002.0))
        assert keeper.recall(family(executable="a1")) is None
    with Store(url) as store:
        known = store.load().families
    assert len(known) == 4
    assert known.recall(family(executable="a1")) is None
    assert known.recall(family(user="bob")) is not None


HOSTILE = "x\0y\udcff" + "ü" * 9000
"""No database takes all of it: a zero byte, half a character, too long for an index."""


def test_no_name_or_number_of_a_job_keeps_others_from_being_written(url: str) -> None:
    odd = family(executable=HOSTILE)
    with WriteBehind(Store(url)) as keeper:
        keeper.learn(odd, replace(KNOWN, pattern=HOSTILE))
        keeper.running(
            running(1, name=HOSTILE, user=HOSTILE, command=(HOSTILE, HOSTILE), uid=1 << 70)
        )
        keeper.ended(ended(2, forwarded_bytes=1 << 70, direct_bytes=-(1 << 70)))
        keeper.running(running(3))
        assert keeper.flush()
        assert (keeper.dropped_total, keeper.failed_total) == (0, 0)
    with Store(url) as store:
        memory = store.load()
    assert memory.running[-1] == running(3)
    assert len(memory.running[0].name.encode()) <= LONGEST_KEY
    assert sum(len(word.encode()) for word in memory.running[0].command) <= LONGEST_COMMAND
    assert memory.ended[0].forwarded_bytes == 2**63 - 1
    recalled = memory.families.recall(odd)
    assert recalled is not None
    assert (recalled.exact, recalled.knowledge.history) == (True, KNOWN.history)


def test_a_row_that_no_database_takes_is_left_out_and_counted(
    url: str, caplog: pytest.LogCaptureFixture
) -> None:
    with WriteBehind(Store(url)) as keeper:
        for k in range(1, 5):
            keeper.running(running(k, began=float("nan") if k % 2 else 1.0))
        keeper.running(running(9, counters={"a": object()}))
        assert keeper.flush()
        assert (keeper.dropped_total, keeper.failed_total) == (3, 0)
    assert len([r for r in caplog.records if "left out" in r.message]) == 1
    with Store(url) as store:
        assert [job.serial for job in store.load().running] == [2, 4]


def test_history_is_bounded_by_age_and_number_and_knowledge_stays(url: str) -> None:
    with Store(url) as store:
        jobs: dict[str, JobRecord | None] = {
            f"ior.{k}": ended(k, ended=float(k)) for k in range(1, 11)
        }
        store.write(Changes(jobs=jobs, families={family(): KNOWN}))
        assert store.prune(ended_before=4.0) == 3
        assert store.prune(ended_before=0.0, most=2) == 5
        assert [job.serial for job in store.load().ended] == [9, 10]
        assert [job.serial for job in store.load(ended=1).ended] == [10]
        assert store.load().families.recall(family()) is not None


def test_a_second_controller_is_refused_until_the_first_is_gone(url: str) -> None:
    with Store(url) as store:
        with pytest.raises(InputError, match="in use by another controller"):
            Store(url)
        store.write(Changes(serial=1))
    with Store(url) as store:
        assert store.load().serial == 1


def test_a_server_that_is_late_to_notice_an_end_is_waited_for(postgres: Postgres) -> None:
    """A controller that is started again at once must not be refused for the one before."""
    url = postgres.database()
    first = Store(url)
    ends = threading.Timer(0.3, first.close)
    ends.start()
    with Store(url) as store:
        store.write(Changes(serial=1))
        assert store.load().serial == 1
    ends.join()


def rename_serial(connection: Connection) -> None:
    connection.execute(text("UPDATE penstock_counts SET value = value + 100"))


def fails_half_way(connection: Connection) -> None:
    connection.execute(text("ALTER TABLE penstock_counts ADD COLUMN extra TEXT"))
    raise InputError("half way")


def test_an_older_schema_is_migrated_as_a_whole_or_refused(url: str) -> None:
    with Store(url) as store:
        store.write(Changes(serial=5))
    with pytest.raises(InputError, match="version 3, which this Penstock cannot bring to 5"):
        Store(url, Schema(version=5))
    with pytest.raises(InputError, match="half way"):
        Store(url, Schema(version=5, migrations={3: rename_serial, 4: fails_half_way}))
    for _ in range(2):  # and once only
        with Store(
            url, Schema(version=5, migrations={3: rename_serial, 4: rename_serial})
        ) as store:
            assert store.load().serial == 205
    with pytest.raises(InputError, match="version 5, of a newer Penstock; this one knows 3"):
        Store(url, Schema(version=3))


def test_a_store_of_version_1_keeps_what_can_be_trusted_and_loses_nothing(url: str) -> None:
    """Its curves were bandwidths of other numbers of I/O nodes: kept in their table, not used."""
    make_version_1(url)
    for _ in range(2):
        with WriteBehind(Store(url)) as keeper:
            recalled = keeper.recall(family())
            assert recalled is not None
            known = recalled.knowledge
            assert known.imported == Imported(volume=1e9, w_iter=12.5, iterations=9)
            assert (known.curve, known.pattern, known.updated) == ({}, "strided", 1000.0)
            assert (len(keeper.families), keeper.memory.serial) == (2, 7)
    engine = create_engine(url)
    with engine.begin() as connection:
        rows = connection.execute(text("SELECT curve FROM penstock_families ORDER BY nodes"))
        assert rows.scalars().all() == [None, '{"1": 5.35e7, "4": 6.2e7}']
    engine.dispose()


ODD = {
    "negative-volume": "1, 1.0, 1, -1.0, NULL, NULL, NULL, 1.0",
    "negative-time": "1, -3.0, 1, NULL, NULL, NULL, NULL, 1.0",
    "no-time": "1, 0.0, 1, NULL, NULL, NULL, NULL, 1.0",
    "huge": "1, NULL, 1, 1e300, NULL, NULL, NULL, 1.0",
    "no-nodes": "0, NULL, 1, NULL, NULL, NULL, NULL, 1.0",
    "text": "1, NULL, 'x', 'many', NULL, NULL, NULL, 1.0",
}
"""Rows of version 1 that SQLite takes, and that no Penstock should have written."""


def test_rows_of_version_1_that_cannot_be_true_are_left_out_and_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The fault: the store did not open, or gave a policy negative volumes."""
    url = f"sqlite:///{tmp_path / 'store.db'}"
    make_version_1(url)
    with sqlite3.connect(tmp_path / "store.db") as connection:
        for name, values in ODD.items():
            connection.execute(f"INSERT INTO penstock_families VALUES ('eve', '{name}', {values})")
    connection.close()
    with WriteBehind(Store(url)) as keeper:
        assert sorted(keeper.families.users()) == ["ann", "bob"]
    for name in ODD:
        assert f"application '{name}' of user 'eve' is not taken over" in caplog.text
    assert f"not taken over from version 1: {len(ODD)}" in caplog.text


def test_what_cannot_be_true_in_a_row_is_not_read(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'store.db'}"
    with WriteBehind(Store(url)) as keeper:
        keeper.learn(family(), KNOWN)
    history = '{"-3":[[1,1.0,true]],"1":[[9223372036854775807,0.1,true]],"2":[[10,1.0,true]]}'
    imported = '{"curve":{"1":0.0,"2":-5,"4":1e300,"8":7.0},"volume":-1.0,"w_iter":1e300}'
    with sqlite3.connect(tmp_path / "store.db") as connection:
        connection.execute(
            "UPDATE penstock_applications SET history = ?, imported = ?", (history, imported)
        )
    connection.close()
    with WriteBehind(Store(url)) as keeper:
        known = keeper.families.known(family())
        assert known.bandwidths == {2: 10.0, 8: 7.0}
        assert known.imported == Imported(curve={8: 7.0})


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("nonsense", "is not a URL"),
        ("mysql://host/db", "cannot be in 'mysql'"),
        ("sqlite://", "would be lost at the end"),
        ("sqlite:////no/such/folder/store.db", "No such file or directory"),
        ("postgresql://ann:secret@/db?host=/no/such/folder", "check that the server runs"),
    ],
)
def test_what_cannot_be_opened_says_why_in_a_line_and_no_password(url: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as refused:
        Store(url)
    assert "secret" not in str(refused.value)
    assert "\n" not in str(refused.value)


# SQLite's file.


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store that was closed, with many rows."""
    path = tmp_path / "store.db"
    with Store(f"sqlite:///{path}") as store:
        store.write(Changes(jobs={f"ior.{k}": running(k) for k in range(500)}))
    return path


@pytest.mark.security
def test_the_file_is_its_owners_alone(path: Path) -> None:
    assert path.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("damage", ["cut", "empty", "overwritten", "other"])
def test_a_damaged_file_is_refused_and_left_as_it_is(path: Path, damage: str) -> None:
    whole = path.read_bytes()
    middle = len(whole) // 8192 * 4096
    damaged = {
        "cut": whole[:middle],
        "empty": b"",
        "overwritten": whole[:middle] + os.urandom(4096) + whole[middle + 4096 :],
        "other": b"no database at all\n" * 1000,
    }[damage]
    path.write_bytes(damaged)
    with pytest.raises(InputError, match=r"is damaged: .*move it and store.db-wal away"):
        Store(f"sqlite:///{path}")
    assert path.read_bytes() == damaged


def test_a_file_that_is_gone_but_not_its_journal_is_not_created_again(path: Path) -> None:
    path.unlink()
    path.with_name("store.db-wal").write_bytes(b"rows")
    with pytest.raises(InputError, match=r"its journal store\.db-wal exists"):
        Store(f"sqlite:///{path}")
    assert not path.exists()


def test_a_row_of_nonsense_costs_that_row_alone(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE penstock_running SET counters = '{' WHERE serial = 7")
    connection.close()
    with Store(f"sqlite:///{path}") as store:
        assert len(store.load().running) == 499
    assert "skipped a row" in caplog.text


@pytest.mark.security
def test_a_server_that_lets_nobody_in_is_quoted_without_the_password(postgres: Postgres) -> None:
    url = postgres.database().replace("penstock@", "nobody:secret@")
    with pytest.raises(InputError, match="nobody") as refused:
        Store(url)
    assert "secret" not in str(refused.value)


def scaling(*bandwidths: float, pattern: str | None = "file-per-process") -> Knowledge:
    """An application that was alone with 1, 2, 4, ... I/O nodes once each."""
    history = History()
    for k, bandwidth in enumerate(bandwidths):
        phase = ObservedPhase(bytes=round(bandwidth), seconds=1.0, alone=True)
        history = history.plus(1 << k, phase)
    return Knowledge(history=history, pattern=pattern, request_size=1 << 20)


def named(user: str, executable: str) -> Family:
    return Family(user=user, executable=executable, nodes=1)


def test_a_prior_is_made_of_the_users_own_applications_of_the_class(url: str) -> None:
    """Two suffice: it is the user's own knowledge."""
    with WriteBehind(Store(url)) as keeper:
        keeper.learn(named("ann", "a"), scaling(100.0, 150.0))
        keeper.learn(named("ann", "other"), scaling(100.0, 100.0, pattern="shared-strided"))
        keeper.learn(named("ann", "new"), scaling())
        assert keeper.families.record(named("ann", "new")).source == "none"
        keeper.learn(named("ann", "b"), scaling(300.0, 450.0))
        assert keeper.families.record(named("ann", "new")).source == "prior"
    with WriteBehind(Store(url)) as keeper:  # classes are read with the rows
        families = keeper.families
        record = families.record(named("ann", "new"))
        assert record.source == "prior"
        assert {n: point.median for n, point in record.curve.items()} == {"1": 200.0, "2": 300.0}
        assert record.prior is not None
        assert (record.prior.counts, record.prior.applications) == ([1, 2], 2)
        assert families.record(named("ann", "a")).source == "observed"
        for name, alone in (("a", 100.0), ("b", 300.0)):
            keeper.learn(named("ann", name), scaling(alone, 2 * alone))
        assert families.record(named("ann", "new")).curve["2"].median == 400.0
        keeper.forget_family(named("ann", "a"))
        assert families.record(named("ann", "new")).source == "none"


@pytest.mark.security
def test_other_users_make_a_prior_only_together_and_only_its_shape(url: str) -> None:
    """The fault: three applications of one user, or one of many, showed its exact bandwidths."""
    with WriteBehind(Store(url)) as keeper:
        families, new = keeper.families, named("bob", "new")
        for k in range(5):
            keeper.learn(named("ann", f"a{k}"), scaling(123_456_789.0, 222_222_222.0))
        keeper.learn(named("cid", "c"), scaling(100.0, 300.0))
        keeper.learn(new, scaling(1000.0))
        assert families.record(new).source == "observed"
        keeper.learn(named("dan", "d"), scaling(1.0, 1.0))
        keeper.learn(new, scaling())
        assert families.record(new).source == "none", "no bandwidth of another user is shown"
        keeper.learn(new, scaling(1000.0))
        record = families.record(new)
        assert record.source == "observed and prior"
        two = record.curve["2"]
        assert (two.low, two.high) == (two.median, two.median)
        assert two.median == pytest.approx(1800.0, rel=0.05)  # in steps of a ninth
        assert two.median != 1000.0 * 222_222_222.0 / 123_456_789.0


@pytest.mark.security
def test_one_user_has_one_vote_in_what_others_are_told(url: str) -> None:
    """The fault: 32 invented applications of one user changed the prior of everybody."""
    with WriteBehind(Store(url)) as keeper:
        families, new = keeper.families, named("bob", "new")
        for k in range(4):
            keeper.learn(named(f"user{k}", "a"), scaling(100.0, 200.0, 400.0))
        keeper.learn(new, scaling(10.0))
        before = {n: point.median for n, point in families.record(new).curve.items()}
        assert before == {"1": 10.0, "2": pytest.approx(20.0), "4": pytest.approx(40.0)}
        for k in range(100):
            keeper.learn(named("mallory", f"x{k}"), scaling(1e15, 1e3, 1e3))
        after = {n: point.median for n, point in families.record(new).curve.items()}
        assert after == before


def test_what_tuning_learnt_is_kept_with_its_application(url: str) -> None:
    context = Context(operation="write", pattern="shared-strided", size=65536, load=4)
    tuned = TunedValues().plus(context, "depth", 16, 1e6).plus(context, "scheduler", "fifo", 2e6)
    with WriteBehind(Store(url)) as keeper:
        keeper.learn(named("ann", "a"), replace(scaling(100.0), tuned=tuned))
    with WriteBehind(Store(url)) as keeper:
        assert keeper.families.known(named("ann", "a")).tuned == tuned
        record = keeper.families.record(named("ann", "a"))
        (depth,) = record.tuned["write shared-strided"]["depth"]
        assert (depth.value, depth.rate, depth.intervals) == (16, 1e6, 1)


def test_a_store_of_version_2_is_migrated_and_loses_nothing(url: str) -> None:
    with WriteBehind(Store(url)) as keeper:
        keeper.learn(named("ann", "a"), scaling(100.0, 150.0))
    make_version_2(url)
    with WriteBehind(Store(url)) as keeper:
        known = keeper.families.known(named("ann", "a"))
        assert (known.pattern, known.request_size) == ("file-per-process", None)
        assert not known.tuned
        assert known.bandwidths == {1: 100.0, 2: 150.0}
        keeper.running(running(7, pinned=PIN))
    with WriteBehind(Store(url)) as keeper:
        assert [job.pinned for job in keeper.memory.running] == [PIN]
