"""Jobs that end while no controller runs: the next one learns of their exits."""

import asyncio
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest
from limits import HANG
from live.controller.turn_deployment import LEASE, PENSTOCK, WAIT, Deployed
from live.other_users import AS_ROOT, NOBODY

from penstock.live.controller.controller import Controller
from penstock.live.controller.unreported_exits import UnreportedExits
from penstock.live.protocol import messages
from penstock.live.protocol.client import ControlConnection
from penstock.live.protocol.exit_spool import ExitSpool
from penstock.live.protocol.state_directory import StateDirectory, wait_for_exit
from penstock.live.protocol.users import name_of
from penstock.live.store import Store
from penstock.model import JobEnded
from penstock.records import Record, replay


def kill_controller(site: Deployed) -> None:
    process = os.pidfd_open(site.controller)
    signal.pidfd_send_signal(process, signal.SIGKILL)
    assert wait_for_exit(process, WAIT)
    os.close(process)


def until(says: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + WAIT
    while not (result := says()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return result


def words(site: Deployed) -> list[Path]:
    return list(site.state.exit_spool.glob("*"))


def word(
    site: Deployed, job: str, *, user: str | None = None, **more: Any
) -> messages.UnreportedExit:
    begin = messages.BeginJob(
        name=job.rpartition(".")[0],
        pid=1,
        command=["true"],
        user=name_of(os.getuid()) if user is None else user,
    )
    fields: dict[str, Any] = {
        "began": time.time() - 9,
        "ended": time.time() - 1,
        "counters": {},
        "status": 0,
    }
    return messages.UnreportedExit(job=job, begin=begin, **(fields | more))


def test_a_job_that_ends_without_a_controller_is_told_of_by_the_next(site: Deployed) -> None:
    """Its status, counters and fail-opens are in the books, the totals, the store and the record,
    and are there once, however often the controller starts again."""
    site.up()
    first, second = site.obedient("first"), site.obedient("second")
    site.held(first, second)
    kill_controller(site)
    assert second.answer(LEASE + 2.0) == "write"
    ended = second.finish()
    assert ended["fail_opens"] == 1
    first.tell("die 3")
    assert first.run.wait(WAIT) == 3
    assert len(words(site)) == 2
    site.up()
    reported = site.until("second", lambda job: job.state == "ended")
    assert reported.fail_opens == ended["fail_opens"]
    assert reported.counters["lapses"] == 1
    assert 0 < reported.seconds < WAIT
    page = site.penstock("explain", "second.2")
    assert "It ended (exit status 0)" in page
    assert "(lapses)" in page
    assert "It waited for turns" in page
    assert site.job("second").seconds == reported.seconds
    assert site.until("first", lambda job: job.state == "ended").status == 3
    until(lambda: not words(site))
    total = site.status().fail_open_total
    assert total == 1
    site.penstock("down")
    with Store(f"sqlite:///{site.state.store}") as store:
        kept = {job.name: job.phases for job in store.load().ended}
    assert kept["second"] == reported.counters["phases"] > 0
    record = Record(max(site.state.records.iterdir(), key=lambda path: path.stat().st_mtime))
    ends = [entry.event.job for entry in record if isinstance(entry.event, JobEnded)]
    assert sorted(ends) == ["first.1", "second.2"]
    assert replay(record).first_difference is None
    site.up()
    assert site.status().fail_open_total == total


def test_a_last_word_that_comes_after_a_job_was_given_up_takes_the_place_of_lost(
    site: Deployed,
) -> None:
    site.up()
    job = site.obedient("late")
    site.until("late", bool)
    job.run.kill()
    site.until("late", lambda job: job.state == "lost")
    ExitSpool(site.state.exit_spool).write(word(site, "late.1", counters={"gave_up": 2}, status=4))
    entry = site.until("late", lambda job: job.state == "ended")
    assert (entry.status, entry.fail_opens) == (4, 2)
    assert [each.id for each in site.status().jobs] == ["late.1"]
    assert site.status().fail_open_total == 2


@pytest.mark.parametrize(
    "text",
    [b"", b"{}", b'{"type": "LastWord"}', b"\xff" * 4096],
    ids=["empty", "no word", "nothing in it", "no text"],
)
def test_what_is_no_last_word_is_refused_and_removed(site: Deployed, text: bytes) -> None:
    site.up()
    (site.state.exit_spool / "odd.json").write_bytes(text)
    until(lambda: not words(site))
    assert "refused: unreported exit odd.json" in site.state.log.read_text()
    assert site.status().jobs == []


def test_what_is_no_plain_file_is_refused_and_removed_unless_it_is_full(
    site: Deployed, tmp_path: Path
) -> None:
    """Once, not every few seconds; and none of it is followed, or stays open."""
    site.up()
    folder = site.state.exit_spool
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (folder / "link.json").symlink_to(victim)
    (folder / "empty.json").mkdir()
    unfinished = folder / ".full"
    unfinished.mkdir()
    (unfinished / "something").touch()
    unfinished.rename(folder / "full.json")
    until(lambda: [path.name for path in words(site)] == ["full.json"])
    log = until(lambda: (t := site.state.log.read_text()) and "full.json cannot be" in t and t)
    for name in ("link", "empty", "full"):
        assert f"refused: unreported exit {name}.json" in log
    assert victim.read_text() == "precious"
    ExitSpool(folder).write(word(site, "never.123456789"))
    until(lambda: len(words(site)) == 1)
    assert site.state.log.read_text().count("unreported exit full.json") == 2


def test_a_folder_leaves_no_descriptor_open(tmp_path: Path) -> None:
    (tmp_path / "odd.json").mkdir()
    words = ExitSpool(tmp_path)
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(5):
        assert [file.text for file in words.files()] == [b""]
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_words_that_the_store_has_not_yet_keep_no_others_from_being_heard(tmp_path: Path) -> None:
    """More than one round takes are there, and none can be removed: each is heard, once."""
    notes: list[str] = []

    class Refusing:
        archive = SimpleNamespace(store=SimpleNamespace(flush=lambda: False))
        refusals = SimpleNamespace(note=notes.append)

    late = UnreportedExits(cast(Controller, Refusing), ExitSpool(tmp_path, max_files_per_round=2))
    for k in range(5):
        (tmp_path / f"{k}.json").write_text("{}")

    async def rounds() -> None:
        for _ in range(4):
            await late.read_spool()
        Refusing.archive.store.flush = lambda: True
        await late.read_spool()

    asyncio.run(rounds())
    assert sorted(refusal.split(":")[0] for refusal in notes) == [
        f"unreported exit {k}.json" for k in range(5)
    ]
    assert not list(tmp_path.iterdir())


@pytest.mark.security
def test_the_end_of_a_job_that_nobody_began_is_refused(site: Deployed) -> None:
    site.up()
    ExitSpool(site.state.exit_spool).write(word(site, "never.123456789"))
    until(lambda: not words(site))
    assert "which never began" in site.state.log.read_text()


@pytest.mark.security
@AS_ROOT
def test_a_last_word_of_another_user_is_refused_and_logged(site: Deployed) -> None:
    """The kernel says who wrote a file: nobody ends the books of another's job."""
    site.up()
    job = site.obedient("mine")
    site.until("mine", bool)
    for name, user in (("forged", "root"), ("own", "nobody")):
        path = site.state.exit_spool / f"{name}.json"
        unfinished = path.with_suffix(".new")
        unfinished.write_bytes(msgspec.json.encode(word(site, "mine.1", user=user, status=9)))
        os.chown(unfinished, NOBODY, NOBODY)
        unfinished.rename(path)
    until(lambda: not words(site))
    log = site.state.log.read_text()
    assert (
        "unreported exit forged.json: user nobody cannot report the end of a job of user 'root'"
        in log
    )
    assert "unreported exit own.json: user nobody cannot report the end of mine.1" in log
    assert site.job("mine").state == "running"
    job.finish()


def test_words_for_another_hosts_controller_are_told_once_it_is_back(
    site: Deployed, tmp_path: Path
) -> None:
    """As an agent of another host does; one that is refused is not told for ever."""
    kept = ExitSpool(tmp_path / "untold")
    kept.write(word(site, "far.7", counters={"lapses": 1}))
    kept.write(word(site, "never.123456789"))
    with pytest.raises(OSError, match="No such file"):
        kept.deliver(lambda: ControlConnection(site.state.controller))
    assert len(list(kept.files())) == 2
    site.up()
    kill_controller(site)
    site.up()
    assert kept.deliver(lambda: ControlConnection(site.state.controller)) == 1
    assert site.job("far").status == 0
    assert site.status().fail_open_total == 1
    assert not list(kept.files())


def test_no_link_is_followed_where_a_word_is_left(tmp_path: Path, site: Deployed) -> None:
    """An agent of root writes into a folder that is another's."""
    victim = tmp_path / "victim"
    victim.write_text("precious")
    folder = tmp_path / "words"
    folder.mkdir()
    for name in (f".a.1.{os.getpid()}", f"a.1.{os.getpid()}.json"):
        (folder / name).symlink_to(victim)
    ExitSpool(folder).write(word(site, "a.1"))
    assert victim.read_text() == "precious"
    (tmp_path / "link").symlink_to(folder)
    with pytest.raises(OSError, match=r"Not a directory|symbolic"):
        ExitSpool(tmp_path / "link").write(word(site, "a.2"))


def test_a_job_of_another_host_is_told_of_by_the_next_one_there(
    site: Deployed, tmp_path: Path
) -> None:
    """Its 'penstock run' has no folder of the controller's to leave its word in."""
    key, there = str(tmp_path / "key"), StateDirectory(tmp_path / "there")
    subprocess.run([*PENSTOCK, "key", key], check=True, timeout=HANG)
    up = ("--root", str(site.root), "--io-nodes", "0", "--key-file", key, "--listen")
    site.penstock("up", *up, "127.0.0.1:0")
    where = site.state.listen.read_text().strip()
    run = [*PENSTOCK, "run", "--state", str(there.folder), "--controller", where]
    run += ["--key-file", key, "--name", "far", "--"]
    job = subprocess.Popen([*run, "sh", "-c", "read line; exit 5"], stdin=subprocess.PIPE)
    try:
        site.until("far", bool)
        kill_controller(site)
        job.communicate(b"\n", timeout=WAIT)
    finally:
        job.kill()
        job.wait()
    assert job.returncode == 5
    assert len(list(ExitSpool(there.remote_exit_spool(where)).files())) == 1
    site.penstock("up", *up, where)
    assert subprocess.run([*run, "true"], timeout=60, check=False).returncode == 0
    assert [(entry.id, entry.status) for entry in site.status().jobs][:1] == [("far.1", 5)]
