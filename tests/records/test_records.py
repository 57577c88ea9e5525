"""Records of live days: what was written is read back, and a replay decides the same."""

import errno
import gzip
import logging
import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from limits import HANG
from records.random_days import LIVE, arbiters, days, header, run, write
from strategies import examples

from penstock import registry
from penstock.core.ledger import KNOWN
from penstock.errors import InputError
from penstock.live.controller.turn_state import PhaseReport
from penstock.live.controller.turns import Turns
from penstock.model import (
    Admit,
    Event,
    Hold,
    Job,
    JobEnded,
    JobStarted,
    NodeUp,
    PhaseBegan,
    PhaseEnded,
    WakeAt,
    Woke,
)
from penstock.records import Entry, Header, PolicySpec, Record, RecordWriter, replay
from penstock.records.lines import decode, encode
from penstock.records.writer import append_all_or_nothing
from penstock.sim.evaluate.what_ran import Ran
from penstock.sim.formats import from_record

GOOD_RECORD = (Path(__file__).parents[2] / "examples" / "record.jsonl").read_bytes()[:6000]
DAY = 86400.0
WITHIN = HANG


def a_day(count: int = 3) -> list[Event]:
    """One job after the other, `count` phases each."""
    events: list[Event] = []
    for serial in range(2):
        events.append(JobStarted(time=0.0, job=Job(id=f"j{serial}", serial=serial)))
    for i in range(count):
        for name in ("j0", "j1"):
            events.append(PhaseBegan(time=i * 10.0, job=name, resources=(0,)))
        for name in ("j0", "j1"):
            events.append(PhaseEnded(time=i * 10.0 + 5.0, job=name, resource=0, io=2.0))
    return events


def plain(entries: object) -> list[Entry]:
    return [replace(entry, where="") for entry in entries]  # type: ignore[attr-defined]


@pytest.mark.parametrize("policy", LIVE)
@examples(25)
@given(
    events=days(),
    learn=st.sampled_from([None, {}, {"gain": 0.5, "changes": True, "hysteresis": 1.3}]),
    arbiter=arbiters(),
)
def test_a_replay_decides_the_same(
    policy: str, events: list[Event], learn: dict[str, float] | None, arbiter: dict[str, object]
) -> None:
    """Determinism: nothing but the events, in a file and back, goes into a decision."""
    with tempfile.TemporaryDirectory() as directory:
        first_line = header(policy, learn=learn, **arbiter)
        entries = run(first_line, events)
        (path,) = write(Path(directory), first_line, entries)
        record = Record(path)
        assert plain(record) == entries
        replayed = replay(record)
        assert replayed.first_difference is None
        assert replayed.events == len(events)
        assert replayed.actions == sum(len(entry.actions) for entry in entries)


def test_the_policies_that_replays_are_tested_with_are_not_few() -> None:
    assert {"set-10", "fair-share", "greedy-com", "greedy-yield", "fair-finish"} <= set(LIVE)
    assert registry.load("sharing", "clairvoyant-sets").needs - KNOWN


def test_a_replay_tells_the_first_difference(tmp_path: Path) -> None:
    first_line = header("exclusive-fcfs")
    entries = run(first_line, a_day())
    at = next(i for i, e in enumerate(entries) if e.event.time == 10.0 and e.actions)
    wrong = (Admit(job="j0", resource=0, weight=7.0, max_share=1.0),)
    entries[at] = replace(entries[at], actions=wrong)
    (path,) = write(tmp_path, first_line, entries)
    result = replay(Record(path))
    assert result.events == at
    assert result.first_difference is not None
    assert result.first_difference.recorded == wrong
    assert result.first_difference.replayed is not None
    (admitted, *_) = result.first_difference.replayed
    assert isinstance(admitted, Admit)
    assert admitted.weight == 1.0
    assert result.first_difference.where == f"{path}, line {at + 2}"


def test_another_policy_than_the_recorded_one_is_a_difference(tmp_path: Path) -> None:
    entries = run(header("exclusive-fcfs"), a_day())
    (path,) = write(tmp_path, header("fair-share"), entries)
    assert replay(Record(path)).first_difference is not None


@pytest.mark.security
def test_a_record_runs_no_file_that_nobody_trusts(tmp_path: Path) -> None:
    """A record may come from anywhere, and names its policies."""
    mine = tmp_path / "mine.py"
    mine.write_text(
        "from penstock.policies.sharing.exclusive_fcfs import ExclusiveFcfs\n"
        "class Mine(ExclusiveFcfs): ...\n"
        "open(__file__ + '.ran', 'w').close()\n"
    )
    first_line = header(f"{mine}:Mine")
    entries = run(header("exclusive-fcfs"), a_day())
    (path,) = write(tmp_path / "records", first_line, entries)
    with pytest.raises(InputError, match="give --trust"):
        replay(Record(path))
    assert not Path(f"{mine}.ran").exists()
    assert replay(Record(path), trusted=[f"{mine}:Mine"]).first_difference is None


@pytest.mark.security
@pytest.mark.parametrize(
    "named",
    [
        {"policy": "mine.py"},  # without a class: it ran before that was missed
        {"policy": "search", "options": {"judge": "mine:Judge"}},
    ],
)
def test_a_record_imports_nothing_that_nobody_trusts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: dict[str, Any]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "mine.py").write_text("open(__file__ + '.ran', 'w').close()\n")
    first_line = msgspec.structs.replace(header("exclusive-fcfs"), allocation=PolicySpec(**named))
    entries = run(header("exclusive-fcfs"), a_day())
    (path,) = write(tmp_path / "records", first_line, entries)
    code = named.get("options", {}).get("judge", "mine.py")
    with pytest.raises(InputError, match=f"give --trust {code}"):
        replay(Record(path))
    with pytest.raises(InputError, match="give --trust"):
        Ran(**named).check_trust([])
    Ran(**named).check_trust([code])
    assert not (tmp_path / "mine.py.ran").exists()


FAILING = """
from penstock.policies.sharing.exclusive_fcfs import ExclusiveFcfs
class Failing(ExclusiveFcfs):
    def {where}(self, *about):
        if "bad" in repr(about):
            raise RuntimeError("no")
        return super().{where}(*about)
"""


@pytest.mark.parametrize("where", ["turn", "group"])
def test_a_day_on_which_the_policy_failed_is_replayed(tmp_path: Path, where: str) -> None:
    """The record holds each failure of the policy, because later decisions depend on it."""
    (tmp_path / "failing.py").write_text(FAILING.format(where=where))
    policy = f"{tmp_path}/failing.py:Failing"
    first_line = header(policy)
    (tmp_path / "records").mkdir()
    with RecordWriter(tmp_path / "records", first_line, flush=0.01) as writer:
        turns = Turns(*first_line.manager(), writer.write)
        for serial, name in enumerate(("good", "bad", "other")):
            turns.started(1.0, Job(id=name, serial=serial))
        turns.phase_began(2.0, "good", 1)
        with pytest.raises(RuntimeError):
            turns.phase_began(3.0, "bad", 1)
        turns.phase_began(4.0, "other", 1)
        report = PhaseReport(number=1, bytes=10, seconds=1.0, waited=0.0)
        for name in ("bad", "good", "other"):
            turns.phase_ended(5.0, name, report)
            turns.ended(6.0, name)
    (path,) = (tmp_path / "records").iterdir()
    result = replay(Record(path), trusted=[policy])
    assert result.first_difference is None
    assert [entry.event.time for entry in Record(path) if entry.failed] == [3.0]
    assert result.events == sum(1 for _ in Record(path)) >= 11
    # Mended, the policy decides where it failed: that is a difference, and told.
    (tmp_path / "failing.py").write_text(FAILING.format(where=where).replace('"bad"', '"no one"'))
    different = replay(Record(path), trusted=[policy]).first_difference
    assert different is not None
    assert different.recorded is None
    assert different.replayed is not None


def test_events_that_cannot_be_are_an_error_with_a_line(tmp_path: Path) -> None:
    entries = [Entry(event=PhaseEnded(time=1.0, job="nobody", resource=0, io=1.0))]
    (path,) = write(tmp_path, header(), entries)
    with pytest.raises(InputError, match=r"line 2: no job 'nobody'"):
        replay(Record(path))


def test_every_action_and_event_comes_back() -> None:
    actions = (
        Hold(job="a", resource=1),
        WakeAt(time=3.25),
    )
    entry = Entry(event=PhaseEnded(time=0.1, job="a", resource=0, io=1 / 3), actions=actions)
    assert decode(encode(entry)) == entry
    large = replace(entry, bytes=2**50)
    assert decode(encode(large)) == large


def test_words_of_an_earlier_version_are_skipped_and_counted(tmp_path: Path) -> None:
    """Version 0.1 had them in its vocabulary; no decision ever depended on one."""
    (path,) = write(tmp_path, header(version=1), run(header(), a_day()))
    before = plain(Record(path))
    with path.open("ab") as file:
        file.write(b'{"event":"Measured","time":1e6,"resource":0,"metrics":{"rate":1.0}}\n')
        file.write(b'{"event":"Woke","time":1e6,"actions":[{"action":"SetShare","job":"a",')
        file.write(b'"resource":1,"weight":0.25},{"action":"Tune","resource":2,"settings":{}}]}\n')
    record = Record(path)
    assert plain(record) == [*before, Entry(event=Woke(time=1e6))]
    assert record.notes == [f"{path}: 1 events of an earlier version are left out"]
    assert replay(record).first_difference is None


@pytest.mark.parametrize("cut", range(1, 60, 7))
def test_a_torn_last_line_is_left_out_with_a_note(tmp_path: Path, cut: int) -> None:
    first_line = header()
    entries = run(first_line, a_day())
    (path,) = write(tmp_path, first_line, entries)
    os.truncate(path, path.stat().st_size - cut)
    record = Record(path)
    read = plain(record)
    if cut == 1:
        assert (read, record.notes) == (entries, []), "only the end of the line is missing"
    else:
        assert read == entries[:-1]
        assert record.notes == [f"{path}, line {len(entries) + 1} breaks off and is left out"]
    assert replay(record).first_difference is None


def test_compressed_records_are_read_and_may_break_off(tmp_path: Path) -> None:
    first_line = header()
    entries = run(first_line, a_day(200))
    (path,) = write(tmp_path, first_line, entries)
    packed = path.with_name(path.name + ".gz")
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert plain(Record(packed)) == entries
    os.truncate(packed, packed.stat().st_size // 2)
    record = Record(packed)
    read = plain(record)
    assert 0 < len(read) < len(entries)
    assert read == entries[: len(read)]
    assert "breaks off" in record.notes[-1]


WRONG = [
    (0, b"", "line 1 is not the header"),
    (0, b'{"jobs": []}', "line 1 is not the header"),
    (0, b'{"format": "penstock-record", "version": 99, "penstock": "7.0"}', "version 99.*7.0"),
    (0, b'{"format": "penstock-record", "version": 0}', "version 0 .* does not exist"),
    (0, b'{"format": "penstock-record", "version": -3}', "version -3 .* does not exist"),
    (0, b'{"format": "penstock-record"}', "version 0 .* does not exist"),
    (0, b'{"format": "penstock-record", "version": 1}', "line 1: .*missing"),
    (2, b"nonsense", "line 3: JSON is malformed"),
    (2, b'{"event":"PhaseBegun","time":1.0}', "line 3: unknown event.*did you mean 'PhaseBegan'"),
    (2, b'{"event":"Woke","time":"now"}', "line 3: Expected float, got str - at time"),
    (2, b'{"event":"Woke","time":-1.0}', "line 3: time is -1"),
    (2, b'{"event":"Woke","time":1.0,"actions":[{"action":"Fly"}]}', "line 3: unknown action"),
    (2, b'{"event":"PhaseEnded","time":1.0,"job":"a","resource":0,"io":null}', "line 3: .* io"),
    (2, b"\xff\xfe", "line 3: "),
    (2, b"[" * 100_000, "line 3: "),
    (2, b'{"event":"Woke","time":0,"bytes":9223372036854775808}', "line 3: .* at bytes"),
    (2, b'{"event":"Woke","time":0}', "line 3 has no number, not 2"),
    (3, b'{"event":"Woke","time":0,"number":2}', "line 4 has number 2, not 3"),
    (3, b'{"event":"Woke","time":9e9,"number":3}', "line 5: time goes back"),
]


@pytest.mark.parametrize(("at", "text", "message"), WRONG)
def test_bad_files_are_refused_with_their_line(
    tmp_path: Path, at: int, text: bytes, message: str
) -> None:
    (path,) = write(tmp_path, header(), run(header(), a_day()))
    lines = path.read_bytes().splitlines()
    lines[at] = text
    path.write_bytes(b"\n".join(lines) + b"\n")
    with pytest.raises(InputError, match=message) as error:
        list(Record(path))
    assert str(path) in str(error.value)


@pytest.mark.parametrize("name", ["nodes", "resources"])
@pytest.mark.parametrize("count", [2**63, 10**6 + 1])
def test_a_site_larger_than_any_is_refused_with_its_line(
    tmp_path: Path, name: str, count: int
) -> None:
    """Arrays of resources are made of it, and the engine's integers have 64 bits."""
    (path,) = write(tmp_path, header(), run(header(), a_day()))
    first, rest = path.read_text().split("\n", 1)
    damaged = msgspec.json.decode(first)
    damaged["site"][name] = count
    path.write_text(msgspec.json.encode(damaged).decode() + "\n" + rest)
    with pytest.raises(InputError, match=rf"line 1: site.{name} is {count}; give at most") as error:
        list(Record(path))
    assert str(path) in str(error.value)


@examples(150)
@given(data=st.data())
def test_damaged_records_are_read_or_refused(data: st.DataObject) -> None:
    """Whatever a disk made of a record: an InputError that names the file, and no other."""
    text = bytearray(GOOD_RECORD)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(text) - 1))
        cut = data.draw(st.integers(0, 30))
        text[at : at + cut] = data.draw(st.binary(max_size=10))
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "record.jsonl"
        path.write_bytes(text)
        for use in (from_record.load, replay):
            message = ""
            try:
                use(Record(path))
            except InputError as error:
                message = str(error)
            assert not message or str(path) in message


def test_a_line_without_end_is_not_read_into_memory(tmp_path: Path) -> None:
    (path,) = write(tmp_path, header(), run(header(), a_day()))
    with path.open("ab") as file:
        file.write(b'{"event":"Woke","time":1.0,"x":"' + b"y" * 5000)
    with pytest.raises(InputError, match="is too long"):
        list(Record(path, longest_line=2000))


def test_parts_by_size_make_one_record(tmp_path: Path) -> None:
    """A part alone tells who runs; a replay finds the parts before it."""
    first_line = header("set-10", learn={})
    entries = run(first_line, a_day(1500))
    parts = write(tmp_path, first_line, entries, size=200_000)
    assert len(parts) > 3
    assert all(path.stat().st_size < 400_000 for path in parts)
    assert plain(Record(*parts)) == entries
    last = Record(parts[-1])
    assert [started.job.id for started in last.header.running] == ["j0", "j1"]
    assert last.header.began == next(iter(last)).event.time
    assert replay(last).events == len(entries)
    with pytest.raises(InputError, match="does not follow"):
        Record(parts[0], parts[2])
    parts[0].unlink()
    with pytest.raises(InputError, match="continues part 1"):
        replay(last)


def test_a_new_day_begins_a_new_part(tmp_path: Path) -> None:
    first_line = header(epoch=10 * DAY - 100.0)
    entries = [Entry(event=Woke(time=time)) for time in (1.0, 99.0, 100.0, 101.0, DAY + 200.0)]
    parts = write(tmp_path, first_line, entries)
    assert [len(list(Record(part))) for part in parts] == [2, 2, 1]
    assert parts[1].name == "record-19700111-000000-test-0002.jsonl"
    assert parts[0].stat().st_mode & 0o777 == 0o600, "a record tells what users run"


def test_a_gone_job_is_not_carried_on(tmp_path: Path) -> None:
    first_line = header(epoch=0.0)
    jobs = [Job(id=name, serial=i) for i, name in enumerate("ab")]
    events = [JobStarted(time=1.0, job=job) for job in jobs]
    entries = [Entry(event=e) for e in (*events, JobEnded(time=2.0, job="a"), Woke(time=DAY))]
    parts = write(tmp_path, first_line, entries)
    assert Record(parts[1]).header.running == [events[1]]


def until(condition: object, message: str) -> None:
    limit = time.monotonic() + WITHIN
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < limit, message
        time.sleep(0.005)


FULL = """
import resource, sys, time
from pathlib import Path
from penstock.records import RecordWriter
from penstock.model import Woke
from records.random_days import header
hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
writer = RecordWriter(Path(sys.argv[1]), header(), flush=0.01)
limit = time.monotonic() + 120.0
def until(condition):
    while not condition():
        assert time.monotonic() < limit
        time.sleep(0.005)
writer.write(Woke(time=0.0))
until(lambda: writer.path is not None)
resource.setrlimit(resource.RLIMIT_FSIZE, (3000, hard))
for i in range(1, 500):
    writer.write(Woke(time=float(i)))
until(lambda: writer.failed_total > 3)
resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
assert writer.close()
assert writer.lost_total == 0
"""


def test_a_full_disk_costs_nothing_but_time(tmp_path: Path) -> None:
    """A file that may not grow, for real: a half-written piece is taken back, and lines wait."""
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])}
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(tmp_path)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (path,) = tmp_path.iterdir()
    assert [entry.event.time for entry in Record(path)] == [float(i) for i in range(500)]


class Disk:
    """A disk that is full until `full` is cleared."""

    full = True

    def append(self, file: int, text: bytes, end: int) -> None:
        if self.full:
            raise OSError(errno.ENOSPC, "No space left on device")
        append_all_or_nothing(file, text, end)


def test_a_failing_disk_is_logged_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    disk = Disk()
    with (
        caplog.at_level(logging.INFO, "penstock.records"),
        RecordWriter(tmp_path, header(), flush=0.01, append=disk.append) as book,
    ):
        book.write(Woke(time=1.0))
        until(lambda: book.failed_total > 3, "it is tried again and again")
        assert not list(tmp_path.iterdir()), "no empty file is left behind"
        disk.full = False
        until(lambda: book.path is not None, "the disk works again")
    assert [record.message.split(": ")[-1] for record in caplog.records] == [
        "No space left on device",
        f"the record in {tmp_path} can be written again",
    ]


def test_what_does_not_fit_into_memory_is_lost_and_counted(tmp_path: Path) -> None:
    job = Job(id="late", serial=9)
    disk = Disk()
    with RecordWriter(tmp_path, header(), flush=0.01, most=10, append=disk.append) as book:
        book.write(Woke(time=0.0))
        until(lambda: book.failed_total, "the first line fails")
        for i in range(1, 30):
            book.write(Woke(time=float(i)))
        book.write(JobStarted(time=30.0, job=job))
        lost = book.lost_total
        assert lost == 20
        disk.full = False
        until(lambda: not book.waiting, "the disk works again")
        book.write(Woke(time=31.0))
    parts = sorted(tmp_path.iterdir())
    assert [len(list(Record(part))) for part in parts] == [11, 1]
    behind = Record(parts[1]).header
    assert behind.lost == lost
    assert [started.job for started in behind.running] == [job], "though its start was lost"
    with pytest.raises(InputError, match="20 events"):
        replay(Record(parts[1]))
    assert replay(Record(parts[0])).events == 11


def test_a_directory_that_cannot_be_is_logged_not_raised(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    book = RecordWriter(tmp_path / "file" / "records", header(), flush=0.01)
    book.write(Woke(time=1.0))
    assert not book.close()
    assert book.failed_total
    assert book.lost_total == 1


def test_an_event_that_cannot_be_encoded_is_a_gap(tmp_path: Path) -> None:
    with RecordWriter(tmp_path, header(), flush=0.01) as book:
        book.write(Woke(time=1.0))
        book.write(Woke(time=2.0), [WakeAt(time=object())])  # type: ignore[arg-type]
        book.write(Woke(time=3.0))
    assert book.lost_total == 1
    assert [Record(part).header.lost for part in sorted(tmp_path.iterdir())] == [0, 1]


KILLED = """
import sys, time
from pathlib import Path
from records.random_days import header
from penstock.records import RecordWriter
from penstock.model import Woke
writer = RecordWriter(Path(sys.argv[1]), header(), flush=0.02)
for i in range(10**9):
    writer.write(Woke(time=float(i)))
    while writer.waiting > 2000:
        time.sleep(0.001)
    if i == 8000:
        print("going", flush=True)
"""


def test_kill_9_leaves_a_record_that_can_be_read(tmp_path: Path) -> None:
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])}
    child = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(tmp_path)], stdout=subprocess.PIPE, env=environment
    )
    assert child.stdout is not None
    try:
        assert child.stdout.readline() == b"going\n"
    finally:
        child.send_signal(signal.SIGKILL)
        child.wait(WITHIN)
        child.stdout.close()
    record = Record(*sorted(tmp_path.glob("record-*")))
    times = [entry.event.time for entry in record]
    assert times == [float(i) for i in range(len(times))]
    assert len(times) > 4000
    assert len(record.notes) <= 1


def test_a_header_says_all_that_a_manager_is_made_of() -> None:
    first_line = header(
        "set-10",
        allocation=PolicySpec(policy="one"),
        placement=PolicySpec(policy="random", options={"seed": 7}),
        remap_delay=5.0,
        learn={"gain": 0.25},
    )
    again = msgspec.json.decode(msgspec.json.encode(first_line), type=Header)
    assert again == first_line
    manager, ledger = again.manager()
    assert manager.rule.policy.unknown == 5  # type: ignore[attr-defined]
    assert ledger.site == first_line.site
    job = Job(id="a", serial=0, w_iter=30.0, hints={"observations": 12})
    manager.handle(JobStarted(time=0.0, job=job))
    period = manager.period("a")
    assert period is not None
    assert (period.gain, period.w_iter_, period.observations_) == (0.25, 30.0, 12)
    with pytest.raises(InputError, match="must have a placement"):
        header(allocation=PolicySpec(policy="one")).manager()
    with pytest.raises(InputError, match="did you mean 'set-10'"):
        header("set-11").manager()


def test_io_nodes_that_come_and_go_begin_no_record(tmp_path: Path) -> None:
    """The dashboard offered a record of a site that had run no job."""
    with RecordWriter(tmp_path, header()) as writer:
        writer.write(NodeUp(time=1.0, resource=0))
    assert (list(tmp_path.iterdir()), writer.lost_total) == ([], 0)
