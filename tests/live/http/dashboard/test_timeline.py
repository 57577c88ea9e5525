"""The dashboard's timeline of a real controller: what jobs did, sent once, without private data."""

import os
import re
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from live.http.api_site import ADMIN, WAIT, client, controlled, sharing_config, token_file

from penstock.live.deployment import launcher
from penstock.live.deployment.spec import Deployment
from penstock.live.protocol import messages
from penstock.live.protocol.client import ControlConnection, encode_line
from penstock.live.protocol.state_directory import StateDirectory, lock_holder

MIB = 1 << 20


class Job:
    """A job that reports its phases; the test is its agent."""

    def __init__(self, state: StateDirectory, name: str) -> None:
        self.channel = ControlConnection(state.controller)
        begin = messages.BeginJob(
            name=name,
            pid=os.getpid(),
            command=["./solve", "--key=hidden"],
            user="ada",
            protocol=messages.PROTOCOL,
            executable=name,  # an application of its own: other tests teach it nothing
        )
        self.id = self.channel.ask(begin, messages.JobAccepted).job
        self.phase = 0

    def begin(self, **fields: Any) -> None:
        self.phase += 1
        self.channel.send(messages.PhaseBegan(phase=self.phase, **fields))

    def end(self, moved: int = 10 * MIB, seconds: float = 0.1, **fields: Any) -> None:
        ended = messages.PhaseEnded(
            phase=self.phase, bytes=moved, seconds=seconds, waited=0.0, **fields
        )
        self.channel.send(ended)

    def count(self, **counters: int) -> None:
        self.channel.send(messages.JobCounters(counters=counters))

    def exit(self, status: int = 0) -> None:
        self.channel.send(messages.JobExit(counters={"write_bytes": MIB}, status=status))


class Page:
    """The data of a page: it applies one answer after the other."""

    def __init__(self, client: httpx.Client) -> None:
        self.client = client
        self.cursor: str | None = None
        self.jobs: dict[str, Any] = {}
        self.intervals: dict[tuple[str, str, float], tuple[float | None, float]] = {}
        self.samples: list[float] = []
        self.wholes = 0
        self.last: dict[str, Any] = {}

    def ask(self) -> "Page":
        query = {} if self.cursor is None else {"since": self.cursor}
        answer = self.client.get("/v1/timeline", params=query)
        assert answer.status_code == 200, answer.text
        self.last = timeline = answer.json()
        if timeline["whole"]:
            self.wholes += 1
            self.jobs, self.intervals, self.samples = {}, {}, []
        self.cursor = timeline["cursor"]
        self.jobs |= {job["id"]: job for job in timeline["jobs"]}
        for id in timeline["gone"]:
            self.jobs.pop(id, None)
        for job, kind, start, end, share in timeline["stretches"]:
            self.intervals[job, kind, start] = (end, share)
        self.samples += [sample["time"] for sample in timeline["samples"]]
        return self

    def until(self, holds: Callable[["Page"], object], what: str) -> "Page":
        deadline = time.monotonic() + WAIT
        while not holds(self.ask()):
            assert time.monotonic() < deadline, f"{what}: {self.last}"
            time.sleep(0.02)
        return self

    def intervals_of(self, job: str) -> list[tuple[str, float | None]]:
        """The intervals of a job: kind and end."""
        intervals = sorted(
            (start, kind, end) for (j, kind, start), (end, _) in self.all if j == job
        )
        return [(kind, end) for _, kind, end in intervals]

    @property
    def all(self) -> list[tuple[tuple[str, str, float], tuple[float | None, float]]]:
        return list(self.intervals.items())


@pytest.fixture(scope="module")
def enforced(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[StateDirectory, str]]:
    folder = tmp_path_factory.mktemp("enforced")
    with controlled(folder, io_nodes=1, config=sharing_config("enforce")) as site:
        yield site


@pytest.fixture
def state(enforced: tuple[StateDirectory, str]) -> StateDirectory:
    return enforced[0]


@pytest.fixture
def page(enforced: tuple[StateDirectory, str]) -> Iterator[Page]:
    with client(enforced[1]) as api:
        yield Page(api)


@contextmanager
def jobs(state: StateDirectory, *names: str) -> Iterator[list[Job]]:
    running = [Job(state, name) for name in names]
    try:
        yield running
    finally:
        for job in running:
            job.channel.close()


def waits(job: Job) -> Callable[[Page], bool]:
    return lambda page: bool(page.jobs[job.id]["doing"] == "waiting")


def test_transferring_and_waiting_jobs(state: StateDirectory, page: Page) -> None:
    with jobs(state, "first", "second", "third") as (first, second, third):
        first.begin()
        page.until(lambda p: p.jobs[first.id]["doing"] == "transferring", "it has no turn")
        for job in (second, third):
            job.begin()
            page.until(waits(job), "it has a turn")
        state_of = page.ask().jobs
        assert state_of[first.id]["share"] == 1.0
        assert state_of[second.id]["behind"] == [first.id]
        last = state_of[third.id]
        assert (last["behind"], last["ahead"]) == ([first.id, second.id], 2)
        assert 0 < last["at_most_seconds"] <= 60
        assert page.intervals_of(first.id) == [("io", None)]
        assert page.intervals_of(third.id) == [("wait", None)]
        first.end()
        page.until(lambda p: p.jobs[second.id]["doing"] == "transferring", "no turn came")
        assert page.ask().jobs[third.id]["behind"] == [second.id]
        ((_, waited), (kind, goes_on)) = page.intervals_of(second.id)
        assert (kind, goes_on) == ("io", None)
        # It was given the turn when the one before it had done.
        ((_, ended),) = page.intervals_of(first.id)
        assert waited is not None
        assert ended is not None
        assert waited == pytest.approx(ended, abs=5.0)


def test_a_phase_that_is_over_at_once_is_not_lost(state: StateDirectory, page: Page) -> None:
    """Its beginning and end come in one piece, so no sample could have seen it."""

    def kinds() -> list[str]:
        """The intervals of a whole answer; two may begin in the same tenth of a millisecond."""
        intervals = page.client.get("/v1/timeline").json()["stretches"]
        return [kind for id, kind, *_ in intervals if id == job.id]

    with jobs(state, "short") as (job,):
        for _ in range(20):
            job.phase += 1
            both = (
                messages.PhaseBegan(phase=job.phase),
                messages.PhaseEnded(phase=job.phase, bytes=MIB, seconds=0.001, waited=0.0),
            )
            job.channel._socket.sendall(b"".join(encode_line(message) for message in both))
        page.until(lambda _: len(kinds()) >= 20, "phases are missing")
        assert kinds() == ["io"] * 20


def test_changes_add_up_to_the_whole(state: StateDirectory, page: Page) -> None:
    with client(state.http.read_text().strip()) as api, jobs(state, "a", "b", "c") as running:
        page.ask()
        for k in range(30):
            job = running[k % 3]
            job.begin()
            job.count(write_bytes=k * MIB, forwarded_write_bytes=k * MIB)
            if k % 2:
                page.ask()
            job.end()
        running[1].exit()
        page.until(lambda p: p.jobs[running[1].id]["state"] == "ended", "it does not end")
        page.until(lambda p: not any(end is None for _, (end, _) in p.all), "one goes on")
        whole = Page(api).ask()
        assert page.wholes == 1
        assert page.intervals.keys() == whole.intervals.keys()
        ends = {key: end for key, (end, _) in page.all}
        assert ends == {key: end for key, (end, _) in whole.all}
        assert page.jobs.keys() == whole.jobs.keys()
        for id, job in whole.jobs.items():
            for field in ("state", "doing", "since", "forwarded_bytes", "io_nodes", "began"):
                assert page.jobs[id][field] == job[field], (id, field)
        assert page.ask().samples == sorted(set(page.samples))  # each once


def test_shares_change_with_who_comes_and_goes(tmp_path: Path) -> None:
    """Two that share one file system have half of it each, and a mean in between over all."""
    config = sharing_config("enforce", "fair-share")
    with controlled(tmp_path, io_nodes=1, config=config) as (state, where), client(where) as api:
        page = Page(api)
        with jobs(state, "one", "other") as (one, other):
            one.begin()
            page.until(lambda p: p.jobs[one.id]["share"] == 1.0, "it has not all of it")
            other.begin()
            page.until(lambda p: p.jobs[other.id]["share"] == 0.5, "it has not its half")
            # A second later the first one's stretch at a whole share is closed.
            page.until(lambda p: len(p.intervals_of(one.id)) == 2, "its share did not change")
            one.end()
            other.end()
            page.until(lambda p: not any(end is None for _, (end, _) in p.all), "one goes on")
            shares = [
                s for (j, _, _), (_, s) in sorted(page.all, key=lambda x: x[0][2]) if j == one.id
            ]
            assert shares[0] > 0.5
            assert shares[1] == pytest.approx(0.5, abs=0.01)
            assert all(0.5 <= s <= 1 for (j, _, _), (_, s) in page.all if j == other.id)


def test_who_is_observed_would_wait(tmp_path: Path) -> None:
    config = sharing_config("observe")
    with controlled(tmp_path, io_nodes=1, config=config) as (state, where), client(where) as api:
        page = Page(api)
        with jobs(state, "one", "other") as (one, other):
            one.begin()
            page.until(lambda p: p.jobs[one.id]["doing"] == "transferring", "it has no turn")
            other.begin()
            page.until(lambda p: p.jobs[other.id]["doing"] == "would wait", "it has a turn")
            assert page.intervals_of(other.id) == [("would-wait", None)]
            launcher.ask(state, messages.SetMode(mode="enforce"), messages.Done)
            page.until(lambda p: p.jobs[other.id]["doing"] == "waiting", "it does not wait")
            assert [kind for kind, _ in page.intervals_of(other.id)] == ["would-wait", "wait"]


@pytest.mark.parametrize("cursor", ["", "nonsense", "0123456789ab-3", "-", "x-99999999999999999"])
def test_a_cursor_of_nobody_gets_the_whole(page: Page, cursor: str) -> None:
    page.ask()
    page.cursor = cursor
    assert page.ask().last["whole"]


def test_a_cursor_of_the_future_gets_the_whole(page: Page) -> None:
    run = (page.ask().cursor or "").partition("-")[0]
    page.cursor = f"{run}-{10**15}"
    assert page.ask().last["whole"]
    assert not page.ask().last["whole"]


def test_after_another_controller_the_page_begins_again(tmp_path: Path) -> None:
    with controlled(tmp_path, io_nodes=1) as (state, where):
        port = where.rpartition(":")[2]
        with client(where) as api:
            page = Page(api).ask()
            known_since = page.last["known_since"]
            assert known_since < page.last["now"]
            assert not page.ask().last["whole"]
            assert page.last["known_since"] == known_since
            killed = time.time()
            pid = lock_holder(state.lock)
            assert pid is not None
            os.kill(pid, signal.SIGKILL)
            deadline = time.monotonic() + WAIT
            while lock_holder(state.lock) is not None and time.monotonic() < deadline:
                time.sleep(0.02)
            roots = [str(tmp_path / "managed")]
            http = f"127.0.0.1:{port}"
            launcher.up(Deployment(state=str(state.folder), roots=roots, io_nodes=1, http=http))
        with client(where) as api:
            page.client = api
            assert page.ask().last["whole"]
            # What was before is not known to this one, and it does not say that all computed.
            assert page.last["known_since"] >= killed - 0.1


def test_phases_predicted_and_observed(state: StateDirectory, page: Page) -> None:
    """Nothing is expected of the first; then as much, and as long, as before."""
    with jobs(state, "phased") as (job,):
        for _ in range(3):
            job.begin()
            page.until(lambda p: p.jobs[job.id]["doing"] == "transferring", "it has no turn")
            job.end(moved=20 * MIB, seconds=0.2)
            page.until(lambda p: p.jobs[job.id]["doing"] == "computing", "it goes on")
        job.begin(bytes=7 * MIB)
        page.until(lambda p: p.jobs[job.id]["doing"] == "transferring", "it has no turn")
        answer = page.client.get(f"/v1/jobs/{job.id}/phases").json()
    first, second, third, last = answer["phases"]
    assert (first["predicted_bytes"], first["predicted_seconds"]) == (None, None)
    for phase in (second, third):
        assert phase["predicted_bytes"] == 20 * MIB
        assert phase["predicted_seconds"] == pytest.approx(0.2)
    for phase in (first, second, third):
        assert (phase["bytes"], phase["seconds"]) == (20 * MIB, 0.2)
        assert phase["began"] <= phase["admitted"] <= phase["ended"]
        assert phase["share"] == pytest.approx(1.0)
    assert (last["predicted_bytes"], last["ended"]) == (7 * MIB, None)
    assert answer["job"]["id"] == job.id
    assert [when for when, _ in answer["w_iter"]] == sorted(when for when, _ in answer["w_iter"])
    assert answer["w_iter"][-1][1] == answer["job"]["w_iter"] > 0


def test_a_small_phase_is_no_phase(state: StateDirectory, page: Page) -> None:
    with jobs(state, "small") as (job,):
        job.begin()
        job.end(moved=10, small=True)
        job.begin()
        job.end(moved=MIB)
        page.until(lambda p: len(p.intervals_of(job.id)) == 2, "what it did is missing")
        phases = page.client.get(f"/v1/jobs/{job.id}/phases").json()["phases"]
        assert [phase["bytes"] for phase in phases] == [MIB]


def test_rates_and_bytes_as_jobs_count_them(state: StateDirectory, page: Page) -> None:
    with jobs(state, "counting") as (job,):
        job.count(write_bytes=0)
        page.until(lambda p: job.id in p.jobs, "it is not there")
        moved = 0
        deadline = time.monotonic() + WAIT
        while not page.ask().jobs[job.id]["rate"]:
            assert time.monotonic() < deadline, "it moves nothing"
            moved += 50 * MIB
            job.count(write_bytes=moved, forwarded_write_bytes=moved // 2)
            time.sleep(0.3)
        assert page.jobs[job.id]["direct_bytes"] == page.jobs[job.id]["forwarded_bytes"] > 0
        # Who counts no more moves nothing.
        page.until(lambda p: p.jobs[job.id]["rate"] == 0, "it moves on")
        assert page.last["io_nodes"][0]["state"] == "serving"
        assert job.id in page.last["io_nodes"][0]["jobs"]


def test_an_io_node_that_hangs_is_seen_and_holds_nothing_up(tmp_path: Path) -> None:
    with controlled(tmp_path, io_nodes=2) as (state, where), client(where) as api:
        page = Page(api)
        pid = lock_holder(state.node_lock(1))
        assert pid
        os.kill(pid, signal.SIGSTOP)
        try:
            page.until(
                lambda p: [n["state"] for n in p.last["io_nodes"]] == ["serving", "not answering"],
                "it is said to serve",
            )
            page.until(lambda p: p.last["samples"], "no samples come")
            assert page.last["samples"][-1]["io_nodes"][1] is None
            assert page.last["samples"][-1]["io_nodes"][0] is not None
        finally:
            os.kill(pid, signal.SIGCONT)
        page.until(lambda p: p.last["io_nodes"][1]["state"] == "serving", "it does not come back")


@pytest.mark.security
def test_what_is_a_users_own_needs_a_token(tmp_path: Path) -> None:
    tokens = str(token_file(tmp_path))
    with controlled(tmp_path, io_nodes=1, token_file=tokens) as (state, where):
        with jobs(state, "mine") as (job,), client(where, ADMIN) as api:
            page = Page(api).until(lambda p: job.id in p.jobs, "it is not there")
            shown = page.jobs[job.id]
            assert (shown["user"], shown["command"]) == ("ada", "./solve --key=hidden")
            assert shown["mode"] == page.last["mode"]
            assert [user["user"] for user in page.last["users"]] == ["ada"]
            job.exit(status=3)
            page.until(lambda p: p.jobs[job.id]["state"] == "failed", "it did not fail")
        with client(where) as anonymous:
            assert anonymous.get("/v1/timeline").status_code == 401


def test_a_job_in_its_first_phase_has_no_reason_for_zero_bytes(tmp_path: Path) -> None:
    """While its first write waited for its turn, it was said to make no data call."""
    settings = {"config": sharing_config("enforce"), "token_file": str(token_file(tmp_path))}
    with (
        controlled(tmp_path, io_nodes=1, **settings) as (state, where),
        jobs(state, "holder", "writer") as (holder, writer),
        client(where, ADMIN) as api,
    ):
        page = Page(api)

        def reasons() -> list[str | None]:
            status = launcher.ask(state, messages.GetStatus(), messages.Status)
            listed = {record.id: record.zero_bytes_reason for record in status.jobs}
            return [listed[writer.id], page.ask().jobs[writer.id]["zero_bytes_reason"]]

        holder.begin()
        page.until(lambda p: p.jobs[holder.id]["doing"] == "transferring", "it has no turn")
        writer.count(attached=1, opens=1)
        page.until(lambda _: reasons() == ["no data call"] * 2, "its file was not noticed")
        writer.begin()
        page.until(waits(writer), "it has a turn")
        assert reasons() == [None, None]
        holder.end()
        page.until(lambda p: p.jobs[writer.id]["doing"] == "transferring", "no turn came")
        assert reasons() == [None, None]
        writer.end(small=True)
        page.until(lambda p: p.jobs[writer.id]["doing"] == "computing", "it goes on")
        assert reasons() == [None, None]


def test_anonymous_clients_are_told_of_no_user(state: StateDirectory, page: Page) -> None:
    with jobs(state, "secret") as (job,):
        job.begin()
        page.until(lambda p: job.id in p.jobs, "it is not there")
        texts = [page.client.get("/v1/timeline").text]
        texts.append(page.client.get(f"/v1/jobs/{job.id}/phases").text)
        job.exit(status=3)
        page.until(lambda p: p.jobs[job.id]["state"] != "running", "it does not end")
        texts.append(page.client.get("/v1/timeline").text)
        assert page.jobs[job.id]["state"] == "ended"  # how it ended is its user's to know
        assert "mode" not in page.jobs[job.id]  # a mode of a user's own would show whose it is
    for text in texts:
        # Whole words: a random identifier may contain these letters.
        assert {"ada", "solve", "hidden", "failed"} & set(re.findall(r"\w+", text)) == set()


def test_unknown_jobs_have_no_phases(page: Page) -> None:
    answer = page.client.get("/v1/jobs/nobody.7/phases")
    assert answer.status_code == 404
    assert "nobody.7" in answer.json()["error"]
