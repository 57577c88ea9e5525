"""What-if of the dashboard: a child process with limits, which ends with the controller."""

import asyncio
import gzip
import itertools
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import jsonschema_rs
import msgspec
import pytest
from limits import COMPUTING
from live.client.waiting_processes import until
from live.http.api_site import WAIT, client, controlled
from records.random_days import RecordedClock, header, write

from penstock.live.http.dispatch import ConflictError, NotFoundError
from penstock.live.http.openapi import Reply
from penstock.live.http.what_if_choices import RecordList
from penstock.live.http.what_if_runs import (
    KEPT_RESULTS,
    WhatIf,
    WhatIfLimits,
    WhatIfRequest,
    WhatIfRuns,
)
from penstock.model import Site
from penstock.sim.workload import Workload

RUN = "ab12"
LONG = COMPUTING
"""Seconds for a simulation at the lowest priority on a busy machine."""
HANGS = "open('pid', 'w').write(str(__import__('os').getpid())); import time; time.sleep(600)"


def record(folder: Path, run: str = RUN) -> RecordList:
    """Record two jobs that overlap, of a user and a program that must not be shown."""
    first_line = header("fair-share", site=Site(), run=run)
    jobs = Workload(
        compute=[3.0] * 20,
        io=[2.0] * 20,
        offsets=[0, 10, 20],
        release=[0.0, 0.5],
        ids=["one", "other"],
        details=[{"user": "lovelace", "executable": "/home/lovelace/solve"}] * 2,
    )
    clock = RecordedClock(jobs, first_line)
    clock.run()
    write(folder / "records", first_line, clock.entries)
    return RecordList(folder / "records", "none")


def request(**fields: Any) -> WhatIfRequest:
    return WhatIfRequest(**{"run": RUN, "policies": ["set-10", "fair-share"]} | fields)


def decoded(answer: Reply[WhatIf]) -> dict[str, Any]:
    """Return an answer as a client gets it."""
    return dict(json.loads(msgspec.json.encode(answer.content)))


async def ended(service: WhatIfRuns, id: str) -> dict[str, Any]:
    deadline = time.monotonic() + LONG + 30
    while (what_if := decoded(service.answer(id)))["state"] == "running":
        assert time.monotonic() < deadline
        await asyncio.sleep(0.02)
    return what_if


def python(program: str) -> tuple[str, ...]:
    return (sys.executable, "-c", program)


def run(
    folder: Path,
    test: Callable[[WhatIfRuns], Awaitable[Any]],
    program: str | None = None,
    clocks: dict[str, Callable[[], float]] | None = None,
    **limits: int,
) -> Any:
    """Run a coroutine with a service whose command is the real one, or a Python program."""
    options: dict[str, Any] = {"limits": WhatIfLimits(**{"seconds": LONG} | limits)}
    options |= clocks or {}
    if program is not None:
        options["command"] = python(program)

    async def whole() -> Any:
        service = WhatIfRuns(record(folder), **options)
        try:
            return await test(service)
        finally:
            await service.close()

    return asyncio.run(whole())


def has_ended(pid: int) -> bool:
    """Whether a process has ended and was reaped."""
    return not Path(f"/proc/{pid}").exists()


async def running(folder: Path) -> int:
    """Return the process of a command that has begun to hang."""
    file, deadline = folder / "records" / "pid", time.monotonic() + WAIT
    while not (file.exists() and file.read_text()):
        assert time.monotonic() < deadline
        await asyncio.sleep(0.02)
    return int(file.read_text())


def test_a_what_if_says_when_it_began_and_how_long_it_took(tmp_path: Path) -> None:
    ticks = itertools.count(100.0, 5.0)

    async def test(service: WhatIfRuns) -> dict[str, Any]:
        id = await service.start(request())
        await service.cancel(id)
        return await ended(service, id)

    clocks = {"clock": lambda: next(ticks), "wall_clock": lambda: 1e9}
    what_if = run(tmp_path, test, "import time; time.sleep(99)", clocks=clocks)
    assert (what_if["began"], what_if["seconds"]) == (1e9, 5.0)


def test_both_policies_are_simulated(tmp_path: Path) -> None:
    async def test(service: WhatIfRuns) -> dict[str, Any]:
        return await ended(service, await service.start(request()))

    what_if = run(tmp_path, test)
    assert (what_if["state"], what_if["error"], what_if["run"]) == ("done", None, RUN)
    result = what_if["result"]
    assert set(result["policies"]) == {"set-10", "fair-share"}
    lanes = result["lanes"]
    assert {job["id"] for job in lanes["jobs"]} == {"one", "other"}
    assert set(lanes["simulated"]) == {"set-10", "fair-share"}
    # No user, no program, no directory.
    text = json.dumps(what_if)
    assert [word for word in ("lovelace", "/home", "solve", str(tmp_path)) if word in text] == []


STUBBORN = """
import os, signal
for number in (1, 2, 15):
    signal.signal(number, signal.SIG_IGN)
os.close(1), os.close(2)
os.read(os.pipe()[0], 1)
"""


@pytest.mark.parametrize("program", ["import time; time.sleep(600)", STUBBORN])
def test_a_hanging_command_is_killed_in_time(tmp_path: Path, program: str) -> None:
    async def test(service: WhatIfRuns) -> dict[str, Any]:
        what_if = await ended(service, await service.start(request()))
        assert processes(tmp_path) == []
        return what_if

    what_if = run(tmp_path, test, f"'{tmp_path}'\n{program}", seconds=3)
    assert what_if["state"] == "failed"
    assert "longer than 3 s" in what_if["error"]


def processes(path: Path) -> list[str]:
    """Return the processes whose command line contains a path."""
    numbers = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            numbers += [entry.parent.name] if str(path).encode() in entry.read_bytes() else []
    return numbers


def test_memory_is_limited(tmp_path: Path) -> None:
    async def test(service: WhatIfRuns) -> dict[str, Any]:
        return await ended(service, await service.start(request()))

    what_if = run(tmp_path, test, "x = bytearray(3 << 29); print(len(x))", memory=1 << 28)
    assert what_if["state"] == "failed"
    assert "memory" in what_if["error"]


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_output_is_limited(tmp_path: Path, stream: str) -> None:
    """A long result is a failure; standard error is read and dropped."""

    async def test(service: WhatIfRuns) -> dict[str, Any]:
        return await ended(service, await service.start(request()))

    flood = (
        f"import sys\nfor k in range(100): print('x' * (1 << 20), file=sys.{stream})\nsys.exit(7)"
    )
    what_if = run(tmp_path, test, flood, output=1 << 20)
    assert what_if["state"] == "failed"
    assert ("more than" if stream == "stdout" else "status 7") in what_if["error"]
    assert len(what_if["error"]) < 500


def test_it_runs_at_the_lowest_priority_on_one_processor(tmp_path: Path) -> None:
    async def test(service: WhatIfRuns) -> tuple[int, int, str]:
        id = await service.start(request())
        pid = await running(tmp_path)
        limits = os.getpriority(os.PRIO_PROCESS, pid), len(os.sched_getaffinity(pid))
        await service.cancel(id)
        return *limits, decoded(service.answer(id))["state"]

    assert run(tmp_path, test, HANGS) == (19, 1, "cancelled")


def test_cancelling_leaves_nothing_behind(tmp_path: Path) -> None:
    async def test(service: WhatIfRuns) -> int:
        id = await service.start(request())
        pid = await running(tmp_path)
        what_if = decoded(await service.cancel(id))
        assert (what_if["state"], what_if["result"]) == ("cancelled", None)
        assert decoded(await service.cancel(id))["state"] == "cancelled"
        assert has_ended(pid)
        (tmp_path / "records" / "pid").unlink()
        again = await service.start(request())  # its place is free
        assert again != id
        return await running(tmp_path)

    assert has_ended(run(tmp_path, test, HANGS))  # closing ends what runs


def test_one_at_a_time(tmp_path: Path) -> None:
    async def test(service: WhatIfRuns) -> None:
        id = await service.start(request())
        with pytest.raises(ConflictError, match=id):
            await service.start(request())
        # Of several that come at once, one is taken.
        await service.cancel(id)
        answers = await asyncio.gather(
            *(service.start(request()) for _ in range(5)), return_exceptions=True
        )
        assert sum(isinstance(answer, str) for answer in answers) == 1

    run(tmp_path, test, HANGS)


def test_the_last_results_are_kept(tmp_path: Path) -> None:
    async def test(service: WhatIfRuns) -> None:
        ids = []
        for _ in range(KEPT_RESULTS + 2):
            ids.append(await service.start(request()))
            assert (await ended(service, ids[-1]))["result"] == {"so": 1}
        for id in ids[:2]:
            with pytest.raises(NotFoundError):
                service.answer(id)
        assert decoded(service.answer(ids[2]))["state"] == "done"

    run(tmp_path, test, "print('{\"so\": 1}')")


def test_the_error_names_what_cannot_be_simulated(tmp_path: Path) -> None:
    async def test(service: WhatIfRuns) -> dict[str, Any]:
        with pytest.raises(NotFoundError):
            await service.start(request(run="dead"))
        with pytest.raises(NotFoundError):
            await service.start(request(day="1999-01-01"))
        with pytest.raises(ConflictError, match="empty"):
            await service.start(request(window="5 h:2 h"))
        return await ended(service, await service.start(request(window="900 h:901 h")))

    what_if = run(tmp_path, test)
    assert what_if["state"] == "failed"
    assert what_if["error"]
    assert str(tmp_path) not in what_if["error"]


STARTS = """
import asyncio, sys
from pathlib import Path
from penstock.live.http.what_if_choices import RecordList
from penstock.live.http.what_if_runs import WhatIfRequest, WhatIfRuns

async def main():
    command = (sys.executable, "-c", sys.argv[2])
    service = WhatIfRuns(RecordList(Path(sys.argv[1]), "none"), command=command)
    await service.start(WhatIfRequest(run=sys.argv[3], policies=["set-10"]))
    await asyncio.sleep(600)

asyncio.run(main())
"""


def test_it_ends_with_a_killed_controller(tmp_path: Path) -> None:
    record(tmp_path)
    command = [sys.executable, "-c", STARTS, str(tmp_path / "records"), HANGS, RUN]
    with subprocess.Popen(command) as controller:
        try:
            pid = asyncio.run(running(tmp_path))
        finally:
            controller.send_signal(signal.SIGKILL)
    until(lambda: has_ended(pid) or _is_zombie(pid), "it outlives its controller")


def _is_zombie(pid: int) -> bool:
    """An orphan may not be reaped, but it does nothing any more."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


# RecordList.


def test_records_are_listed_by_run_and_day(tmp_path: Path) -> None:
    folder = tmp_path / "records"
    record(tmp_path)
    record(tmp_path, "cd34")
    (only,) = folder.glob("record-*-cd34-0001.jsonl")
    later = folder / "record-20301231-000000-cd34-0002.jsonl.gz"
    later.write_bytes(gzip.compress(only.read_bytes()))
    (folder / "record-20301231-000000-ee-0001.jsonl").write_text("no record\n")
    (folder / "notes.txt").write_text("mine")
    runs = {run.run: run for run in RecordList(folder, "cd34").runs()}
    assert set(runs) == {RUN, "cd34"}
    assert runs["cd34"].ended is None  # it goes on
    assert runs[RUN].ended is not None
    assert (runs["cd34"].parts, runs["cd34"].policy) == (2, "fair-share")
    assert runs["cd34"].days[0].day == "2030-12-31"
    assert RecordList(folder, "").files("cd34", "2030-12-31") == [later.name]
    assert RecordList(folder, "").files("cd34", None) == [only.name, later.name]
    assert RecordList(tmp_path / "none", "").runs() == []


# Through the API of a real controller.


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, httpx.Client]]:
    folder = tmp_path_factory.mktemp("site")
    record(folder / "state")
    with controlled(folder, io_nodes=0) as (_, where), client(where) as api:
        yield folder, api


def test_a_what_if_of_the_api(site: tuple[Path, httpx.Client]) -> None:
    folder, api = site
    assert RUN in [run["run"] for run in api.get("/v1/records").json()]
    names = {policy["name"] for policy in api.get("/v1/policies").json()}
    assert {"set-10", "fair-share"} <= names
    body = {"run": RUN, "policies": ["set-10", "fair-share"]}
    id = api.post("/v1/what-if", json=body).json()["id"]
    deadline = time.monotonic() + LONG
    while (what_if := api.get(f"/v1/what-if/{id}").json())["state"] == "running":
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert what_if["state"] == "done", what_if["error"]
    assert set(what_if["result"]["lanes"]["simulated"]) == {"set-10", "fair-share"}
    assert str(folder) not in json.dumps(what_if)
    schema = {"$ref": "#/components/schemas/WhatIf"}
    jsonschema_rs.validate(schema | api.get("/openapi.json").json(), what_if)
    assert api.delete(f"/v1/what-if/{id}").json()["state"] == "done"  # it was over


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"run": "dead"}, 404),
        ({"run": "../x"}, 422),
        ({"policies": ["no-such-policy"]}, 404),
        ({"policies": ["set-10", "set-10"]}, 422),
        ({"policies": ["./mine.py:Mine"]}, 422),
        ({"policies": ["--check"]}, 422),
        ({"policies": []}, 422),
        ({"window": "--check"}, 422),
        ({"window": "2 h:1 h"}, 409),
        ({"day": "yesterday"}, 422),
        ({"surprise": 1}, 422),
    ],
)
def test_wrong_requests_are_refused(
    site: tuple[Path, httpx.Client], fields: dict[str, Any], code: int
) -> None:
    """No policy file is run, and nothing becomes an option of the command."""
    answer = site[1].post("/v1/what-if", json={"run": RUN, "policies": ["set-10"]} | fields)
    assert answer.status_code == code, answer.text
    assert set(answer.json()) == {"error", "hint"}


@pytest.mark.security
def test_no_other_web_page_starts_or_ends_a_what_if(site: tuple[Path, httpx.Client]) -> None:
    _, api = site
    body = {"run": RUN, "policies": ["set-10"]}
    foreign = {"origin": "http://elsewhere.example"}
    assert api.post("/v1/what-if", json=body, headers=foreign).status_code == 403
    assert api.delete("/v1/what-if/5e", headers=foreign).status_code == 403
    rebound = {"host": "elsewhere.example"}
    assert api.post("/v1/what-if", json=body, headers=rebound).status_code == 403
    assert api.delete("/v1/what-if/5e", headers=rebound).status_code == 403
    # Another page can send a form without a preflight request; JSON it cannot.
    form = {"content-type": "text/plain"}
    assert api.post("/v1/what-if", content=json.dumps(body), headers=form).status_code == 415
    own = {"origin": str(api.base_url).rstrip("/")}
    assert api.delete("/v1/what-if/5e", headers=own).status_code == 404
