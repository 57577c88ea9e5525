"""A site for tests of the HTTP API: a fake one, and a real controller with a job."""

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Literal

import httpx
import msgspec
from limits import HANG

from penstock.config import Config
from penstock.errors import InputError
from penstock.live.controller.peer import Peer
from penstock.live.controller.status import TurnWaits
from penstock.live.deployment import launcher
from penstock.live.deployment.spec import Deployment
from penstock.live.http.api import Api
from penstock.live.http.controller_service import ControllerService
from penstock.live.http.dashboard.lanes import PhaseRecord
from penstock.live.http.dashboard.operations import DashboardApi, Since
from penstock.live.http.dashboard.schema import JobPhases, LaneJob, Timeline, TuningNow
from penstock.live.http.dispatch import NotFoundError
from penstock.live.http.openapi import Reply
from penstock.live.http.schema import (
    Measures,
    Mode,
    Modes,
    Transferring,
    Turns,
    Waiting,
)
from penstock.live.http.server import ConnectionLimits, serving
from penstock.live.http.what_if_choices import PolicyChoice, RecordedDay, RecordedRun
from penstock.live.http.what_if_runs import WhatIf, WhatIfRequest, WhatIfStarted
from penstock.live.protocol import messages
from penstock.live.protocol.address import Address, url
from penstock.live.protocol.client import ControlConnection
from penstock.live.protocol.file_system_record import FileSystemRecord
from penstock.live.protocol.io_node_record import IoNodeRecord
from penstock.live.protocol.job_record import JobRecord, JobSummary
from penstock.live.protocol.state_directory import StateDirectory
from penstock.live.protocol.tokens import Bearer

ADMIN, READER = "an-admins-token-0123456789", "a-readers-token-0123456789"
WAIT = HANG


def token_file(folder: Path) -> Path:
    path = folder / "tokens"
    path.write_text(f"# who may\n\nops admin {ADMIN}\nprometheus read {READER}\n")
    path.chmod(0o600)
    return path


def bearing(token: str | None) -> dict[str, str]:
    return {} if token is None else {"Authorization": f"Bearer {token}"}


def job(number: int, user: str = "ada", state: str = "running", written: int = 0) -> JobRecord:
    fields: dict[str, Any] = {
        "id": f"job.{number}",
        "name": "job",
        "user": user,
        "pid": 64000 + number,
        "command": ["./solve", "--key=hidden"],
        "state": state,
        "status": None if state == "running" else 0,
        "began": 1e9,
        "seconds": 60.0,
        "io_nodes": [0],
        "forwarded_bytes": written,
        "direct_bytes": 0,
        "fail_opens": 0,
        "waits": 1,
        "waited_seconds": 2.5,
        "counters": {"write_bytes": written, "read_bytes": 7},
    }
    return JobRecord(**fields)


class FakeDashboard(DashboardApi):
    """A history of one job, whose user ada is private to clients with a token."""

    def __init__(self) -> None:  # without a controller
        self.request: WhatIfRequest | None = None
        self.state: Literal["running", "cancelled"] = "running"

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        yield

    async def timeline(self, client: Bearer | None, query: Since) -> Reply[Timeline]:
        timeline = Timeline(
            cursor="here-1",
            whole=query.since != "here-1",
            now=1e9,
            window=900.0,
            known_since=1e9 - 60,
            site="lab",
            policy="set-10",
            scope="file-system",
            file_systems=["home", "scratch"],
            mode="observe",
            bandwidth=None,
            kill_switch=False,
            emulated=False,
            tuned=False,
            turns=5,
            fail_opens=3,
            policy_failures=9,
            forwarded_bytes=30,
            direct_bytes=40,
            gone=[],
            samples=[],
            io_nodes=[],
            jobs=[self.job("job.1", private=client is not None)],
            stretches=[("job.1", "io", 1e9, None, 0.5)],
        )
        return Reply(timeline)

    def job(self, id: str, *, private: bool) -> LaneJob:
        names = {*JobSummary.__struct_fields__, "serial", "nodes", "processes"} - {"id"}
        record = job(1)
        return LaneJob(
            **{name: getattr(record, name) for name in names},
            id=id,
            ended=None,
            doing="transferring",
            since=1e9,
            share=0.5,
            received=0.25,
            turn_waited_seconds=0.0,
            behind=[],
            ahead=0,
            at_most_seconds=None,
            w_iter=None,
            pattern=None,
            rate=3.0,
            mode="observe" if private else msgspec.UNSET,
            user="ada" if private else msgspec.UNSET,
            command="./solve --key=hidden" if private else msgspec.UNSET,
        )

    async def phases(self, client: Bearer | None, id: str) -> JobPhases:
        if id != "job.1":
            raise NotFoundError(f"there is no job {id!r}")
        phases = [PhaseRecord(began=1e9, admitted=1e9 + 1, predicted_seconds=2.0)]
        lane = self.job(id, private=client is not None)
        return JobPhases(job=lane, phases=phases, w_iter=[(1e9, 10.0)], pattern=[], known=None)

    async def tuning(self, _: Bearer | None) -> TuningNow:
        return TuningNow(policy=None)

    async def policies(self, _: Bearer | None) -> list[PolicyChoice]:
        return [
            PolicyChoice(name="set-10", summary="Sets.", kind="sharing", needs=["w_iter"]),
            PolicyChoice(name="one", summary="One each.", kind="allocation"),
        ]

    async def records(self, _: Bearer | None) -> list[RecordedRun]:
        day = RecordedDay(day="2026-11-15", parts=1, bytes=5)
        return [
            RecordedRun(
                mode="observe",
                run="ab12",
                began=1e9,
                ended=None,
                policy="set-10",
                allocation="mckp",
                placement=None,
                parts=1,
                bytes=5,
                days=[day],
            )
        ]

    async def start_what_if(self, client: Bearer | None, body: WhatIfRequest) -> WhatIfStarted:
        if body.run != "ab12":
            raise NotFoundError(f"there is no run {body.run}")
        self.request = body
        return WhatIfStarted(id="5e")

    async def what_if(self, _: Bearer | None, id: str) -> Reply[WhatIf]:
        if id != "5e" or self.request is None:
            raise NotFoundError(f"there is no what-if {id!r}")
        fields = msgspec.structs.asdict(self.request)
        return Reply(
            WhatIf(id=id, state=self.state, began=1e9, seconds=1, **fields, error=None, result=None)
        )

    async def cancel_what_if(self, client: Bearer | None, id: str) -> Reply[WhatIf]:
        self.state = "cancelled"
        return await self.what_if(client, id)


class FakeService(ControllerService):
    """A site where ada's job transfers and bob's waits for it."""

    def __init__(self) -> None:  # without a controller
        self.dashboard = FakeDashboard()
        waiting = msgspec.structs.replace(job(2, "bob", written=1 << 20), behind=["job.1"])
        self.listed = [job(1, written=1 << 30), waiting, job(3, state="ended", written=1 << 40)]
        self.mode: Mode = "observe"
        self.users: dict[str, Mode] = {"bob": "enforce"}
        self.killed = False
        self.remaps: list[messages.Remap] = []
        self.statuses = 0
        self.fails: Exception | None = None
        self.answers = asyncio.Event()  # status waits for it
        self.answers.set()
        self.waits = TurnWaits()
        self.policy = "set-10"

    async def status(self, _: Peer | None = None) -> messages.Status:
        self.statuses += 1
        await self.answers.wait()
        if self.fails:
            raise self.fails
        serving = IoNodeRecord(
            number=0,
            alive=True,
            state="serving",
            pid=54321,
            id=1,
            deaths=2,
            jobs=["job.1"],
            queued=5,
            read_bytes=10,
            write_bytes=20,
            groups={"1000/job.1": 20},
        )
        down = IoNodeRecord(number=1, alive=False, state="down", deaths=6, jobs=[])
        return messages.Status(
            site="lab",
            roots=["/home/ada/project"],
            jobs=list(self.listed),
            file_systems=[
                FileSystemRecord(
                    number=0, name="home", roots=["/home"], bytes=50, waiting=["job.2"]
                ),
                FileSystemRecord(number=1, name="scratch", roots=["/scratch"], bandwidth=1e9),
            ],
            io_nodes=[serving, down],
            forwarded_bytes=30,
            direct_bytes=40,
            fail_open_total=3,
            turns=5,
            policy_failures=9,
        )

    async def job(self, job: str) -> JobRecord:
        for record in self.listed:
            if record.id == job:
                return record
        raise NotFoundError(f"there is no job {job!r}")

    async def remap(self, remap: messages.Remap) -> None:
        if remap.stripe == 13 << 16:
            raise InputError("the job does not answer")
        self.remaps.append(remap)
        number = self.listed.index(await self.job(remap.job))
        self.listed[number] = msgspec.structs.replace(self.listed[number], io_nodes=remap.nodes)

    async def modes(self) -> Modes:
        return Modes(site=self.mode, kill_switch=self.killed, users=dict(self.users))

    async def set_mode(self, user: str | None, mode: Mode | None) -> None:
        if user is None:
            assert mode is not None
            self.mode = mode
        elif mode is None:
            self.users.pop(user, None)
        else:
            self.users[user] = mode

    async def kill_switch(self, on: bool) -> None:
        self.killed = on

    async def waiting(self) -> Turns:
        return Turns(
            transferring=[Transferring(job="job.1", user="ada", since=1e9, share=0.75, group="0")],
            waiting=[Waiting(job="job.2", user="bob", since=1e9 + 1, behind=["job.1"], group="0")],
        )

    async def measures(self) -> Measures:
        return Measures(
            fail_opens={"lease": 1, "max-wait": 2},
            throttled_seconds={"ada": 1.5, "bob": 2.0},
            turn_waits=self.waits,
            store_failures=4,
            record_lost=7,
            record_failures=8,
        )


@contextmanager
def served(
    api: Api,
    limits: ConnectionLimits | None = None,
    on_close: Callable[[], None] = lambda: None,
) -> Iterator[str]:
    """Serve in a thread; yield the URL."""
    listener = Address(host="127.0.0.1", port=0).listen()
    where, up, loop = url(listener), threading.Event(), asyncio.new_event_loop()
    over = asyncio.Event()

    async def serve() -> None:
        async with serving(api.app(), listener, limits, on_close):
            up.set()
            await over.wait()

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()), daemon=True)
    thread.start()
    try:
        assert up.wait(WAIT)
        yield where
    finally:
        loop.call_soon_threadsafe(over.set)
        thread.join(WAIT)
        assert not thread.is_alive()
        loop.close()


@contextmanager
def controlled(folder: Path, **options: Any) -> Iterator[tuple[StateDirectory, str]]:
    """Bring a real deployment up with an API; yield its state and URL."""
    (folder / "managed").mkdir(exist_ok=True)
    state = StateDirectory(folder / "state")
    settings: dict[str, Any] = {"io_nodes": 2, "http": "127.0.0.1:0"} | options
    launcher.up(Deployment(state=str(state.folder), roots=[str(folder / "managed")], **settings))
    try:
        yield state, state.http.read_text().strip()
    finally:
        launcher.down(state)


@contextmanager
def running_job(state: StateDirectory, **counters: int) -> Iterator[str]:
    """Run a job that has written, and applies every map at once; yield its id."""
    with ControlConnection(state.controller) as controller:
        begin = messages.BeginJob(
            name="test", pid=os.getpid(), command=["test", "--key"], user="ada"
        )
        accepted = controller.ask(begin, messages.JobAccepted)
        controller.send(messages.JobCounters(counters=counters))

        def answer() -> None:
            maps = 0
            try:
                while controller.receive(messages.NodeMap, None):
                    maps += 1
                    controller.send(messages.JobCounters(counters=counters | {"maps": maps}))
            except ConnectionError:
                pass

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        try:
            yield accepted.job
        finally:
            controller.shut_down()
            thread.join(WAIT)


def sharing_config(mode: str, policy: str = "exclusive-fcfs") -> Config:
    """Return a configuration in which jobs that send nothing between phases keep their turns."""
    live = {"mode": mode, "lease": "60 s", "max-wait": "60 s"}
    return msgspec.convert({"sharing": {"policy": policy}, "live": live}, Config)


def client(where: str, token: str | None = None) -> httpx.Client:
    return httpx.Client(base_url=where, headers=bearing(token), timeout=WAIT, trust_env=False)
