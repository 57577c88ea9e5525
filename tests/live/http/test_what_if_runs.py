"""What-if of the dashboard: a child that cannot hang, eat, flood or outlive the controller."""

import asyncio
import gzip
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
import pytest
from live.client.waiting_processes import until
from live.http.api_site import WAIT, client, controlled
from records.random_days import RecordedClock, header, write

from penstock.live.http import what_if_runs
from penstock.live.http.faults import ConflictError, NotFoundError
from penstock.live.http.record_list import Records
from penstock.live.http.what_if_runs import AskWhatIf, WhatIfs
from penstock.model import Site
from penstock.sim.workload import Workload

RUN = "ab12"
LONG = 250
"""Seconds for a simulation at the lowest priority, beside whatever else a machine has to do."""
HANGS = "open('pid', 'w').write(str(__import__('os').getpid())); import time; time.sleep(600)"


def record(folder: Path, run: str = RUN) -> Records:
    """The record of two jobs that meet, of a user and a program that nobody is to hear of."""
    made = header("fair-share", site=Site(), run=run)
    jobs = Workload(
        compute=[3.0] * 20,
        io=[2.0] * 20,
        offsets=[0, 10, 20],
        release=[0.0, 0.5],
        ids=["one", "other"],
        details=[{"user": "ada", "executable": "/home/ada/solve"}] * 2,
    )
    clock = RecordedClock(jobs, made)
    clock.run()
    write(folder / "records", made, clock.entries)
    return Records(folder / "records", "none")


def asked(**more: Any) -> AskWhatIf:
    return AskWhatIf(**{"run": RUN, "policies": ["set-10", "fair-share"]} | more)


async def ended(service: WhatIfs, id: str) -> dict[str, Any]:
    deadline = time.monotonic() + LONG + 30
    while (told := json.loads(service.told(id)))["state"] == "running":
        assert time.monotonic() < deadline
        await asyncio.sleep(0.02)
    return dict(told)


def python(program: str) -> tuple[str, ...]:
    return (sys.executable, "-c", program)


def run(
    folder: Path, does: Callable[[WhatIfs], Awaitable[Any]], command: str | None = None, **more: Any
) -> Any:
    """Let a coroutine work with a service whose command is the real one, or a program."""
    told = {"seconds": LONG} | ({} if command is None else {"command": python(command)}) | more

    async def whole() -> Any:
        service = WhatIfs(record(folder), **told)
        try:
            return await does(service)
        finally:
            await service.close()

    return asyncio.run(whole())


def gone(pid: int) -> bool:
    """Whether nothing is left of a process, a zombie neither."""
    return not Path(f"/proc/{pid}").exists()


async def running(folder: Path) -> int:
    """Return the process of a command that has begun to hang."""
    file, deadline = folder / "records" / "pid", time.monotonic() + WAIT
    while not (file.exists() and file.read_text()):
        assert time.monotonic() < deadline
        await asyncio.sleep(0.02)
    return int(file.read_text())


def test_both_policies_beside_what_was_recorded(tmp_path: Path) -> None:
    async def does(service: WhatIfs) -> dict[str, Any]:
        return await ended(service, await service.start(asked()))

    told = run(tmp_path, does)
    assert (told["state"], told["error"], told["run"]) == ("done", None, RUN)
    result = told["result"]
    assert set(result["simulated"]) == {"set-10", "fair-share"}
    lanes = result["lanes"]
    assert {job["id"] for job in lanes["jobs"]} == {"one", "other"}
    assert set(lanes["simulated"]) == {"set-10", "fair-share"}
    # Nothing of users, nor of where the record is.
    text = json.dumps(told)
    assert [word for word in ("ada", "/home", "solve", str(tmp_path)) if word in text] == []


STUBBORN = """
import os, signal
for number in (1, 2, 15):
    signal.signal(number, signal.SIG_IGN)
os.close(1), os.close(2)
os.read(os.pipe()[0], 1)
"""


@pytest.mark.parametrize("program", ["import time; time.sleep(600)", STUBBORN])
def test_one_that_hangs_is_ended_in_time(tmp_path: Path, program: str) -> None:
    async def does(service: WhatIfs) -> dict[str, Any]:
        told = await ended(service, await service.start(asked()))
        assert left(tmp_path) == []
        return told

    told = run(tmp_path, does, f"'{tmp_path}'\n{program}", seconds=3)
    assert told["state"] == "failed"
    assert "longer than 3 s" in told["error"]


def left(mark: Path) -> list[str]:
    """Return the processes in whose command something is."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            found += [entry.parent.name] if str(mark).encode() in entry.read_bytes() else []
    return found


def test_one_that_wants_all_memory_gets_none(tmp_path: Path) -> None:
    async def does(service: WhatIfs) -> dict[str, Any]:
        return await ended(service, await service.start(asked()))

    told = run(tmp_path, does, "x = bytearray(3 << 29); print(len(x))", memory=1 << 28)
    assert told["state"] == "failed"
    assert "memory" in told["error"]


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_one_that_floods_is_bounded(tmp_path: Path, stream: str) -> None:
    """Its result is cut off as a failure; what it says on the way out is read and dropped."""

    async def does(service: WhatIfs) -> dict[str, Any]:
        return await ended(service, await service.start(asked()))

    flood = (
        f"import sys\nfor k in range(100): print('x' * (1 << 20), file=sys.{stream})\nsys.exit(7)"
    )
    told = run(tmp_path, does, flood, output=1 << 20)
    assert told["state"] == "failed"
    assert ("more than" if stream == "stdout" else "status 7") in told["error"]
    assert len(told["error"]) < 500


def test_it_runs_at_the_lowest_priority_on_one_processor(tmp_path: Path) -> None:
    async def does(service: WhatIfs) -> tuple[int, int, str]:
        id = await service.start(asked())
        pid = await running(tmp_path)
        found = os.getpriority(os.PRIO_PROCESS, pid), len(os.sched_getaffinity(pid))
        await service.cancel(id)
        return *found, json.loads(service.told(id))["state"]

    assert run(tmp_path, does, HANGS) == (19, 1, "cancelled")


def test_cancelling_leaves_nothing_behind(tmp_path: Path) -> None:
    async def does(service: WhatIfs) -> int:
        id = await service.start(asked())
        pid = await running(tmp_path)
        told = json.loads(await service.cancel(id))
        assert (told["state"], told["result"]) == ("cancelled", None)
        assert json.loads(await service.cancel(id))["state"] == "cancelled"
        assert gone(pid)
        (tmp_path / "records" / "pid").unlink()
        again = await service.start(asked())  # its place is free
        assert again != id
        return await running(tmp_path)

    assert gone(run(tmp_path, does, HANGS))  # closing ends what runs


def test_one_at_a_time(tmp_path: Path) -> None:
    async def does(service: WhatIfs) -> None:
        id = await service.start(asked())
        with pytest.raises(ConflictError, match=id):
            await service.start(asked())
        # Of several that come at once, one is taken.
        await service.cancel(id)
        found = await asyncio.gather(
            *(service.start(asked()) for _ in range(5)), return_exceptions=True
        )
        assert sum(isinstance(one, str) for one in found) == 1

    run(tmp_path, does, HANGS)


def test_the_last_results_are_kept(tmp_path: Path) -> None:
    async def does(service: WhatIfs) -> None:
        ids = []
        for _ in range(what_if_runs.KEPT + 2):
            ids.append(await service.start(asked()))
            assert (await ended(service, ids[-1]))["result"] == {"so": 1}
        for id in ids[:2]:
            with pytest.raises(NotFoundError):
                service.told(id)
        assert json.loads(service.told(ids[2]))["state"] == "done"

    run(tmp_path, does, "print('{\"so\": 1}')")


def test_what_cannot_be_simulated_is_said(tmp_path: Path) -> None:
    async def does(service: WhatIfs) -> dict[str, Any]:
        with pytest.raises(NotFoundError):
            await service.start(asked(run="dead"))
        with pytest.raises(NotFoundError):
            await service.start(asked(day="1999-01-01"))
        with pytest.raises(ConflictError, match="empty"):
            await service.start(asked(window="5 h:2 h"))
        return await ended(service, await service.start(asked(window="900 h:901 h")))

    told = run(tmp_path, does)
    assert told["state"] == "failed"
    assert told["error"]
    assert str(tmp_path) not in told["error"]


STARTS = """
import asyncio, sys
from pathlib import Path
from penstock.live.http.record_list import Records
from penstock.live.http.what_if_runs import AskWhatIf, WhatIfs

async def main():
    command = (sys.executable, "-c", sys.argv[2])
    service = WhatIfs(Records(Path(sys.argv[1]), "none"), command=command)
    await service.start(AskWhatIf(run=sys.argv[3], policies=["set-10"]))
    await asyncio.sleep(600)

asyncio.run(main())
"""


def test_it_goes_with_a_controller_that_is_killed(tmp_path: Path) -> None:
    record(tmp_path)
    command = [sys.executable, "-c", STARTS, str(tmp_path / "records"), HANGS, RUN]
    with subprocess.Popen(command) as controller:
        try:
            pid = asyncio.run(running(tmp_path))
        finally:
            controller.send_signal(signal.SIGKILL)
    until(lambda: gone(pid) or _is_zombie(pid), "it goes on without its controller")


def _is_zombie(pid: int) -> bool:
    """Nobody may be there to take the exit status of an orphan, but it does nothing any more."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


# Records.


def test_records_are_listed_by_run_and_day(tmp_path: Path) -> None:
    folder = tmp_path / "records"
    record(tmp_path)
    record(tmp_path, "cd34")
    (only,) = folder.glob("record-*-cd34-0001.jsonl")
    later = folder / "record-20301231-000000-cd34-0002.jsonl.gz"
    later.write_bytes(gzip.compress(only.read_bytes()))
    (folder / "record-20301231-000000-ee-0001.jsonl").write_text("no record\n")
    (folder / "notes.txt").write_text("mine")
    found = {told.run: told for told in Records(folder, "cd34").listed()}
    assert set(found) == {RUN, "cd34"}
    assert found["cd34"].ended is None  # it goes on
    assert found[RUN].ended is not None
    assert (found["cd34"].parts, found["cd34"].policy) == (2, "fair-share")
    assert found["cd34"].days[0].day == "2030-12-31"
    assert Records(folder, "").files("cd34", "2030-12-31") == [later.name]
    assert Records(folder, "").files("cd34", None) == [only.name, later.name]
    assert Records(tmp_path / "none", "").listed() == []


# Through the API of a real controller.


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, httpx.Client]]:
    folder = tmp_path_factory.mktemp("site")
    record(folder / "state")
    with controlled(folder, io_nodes=0) as (_, where), client(where) as found:
        yield folder, found


def test_a_what_if_of_the_api(site: tuple[Path, httpx.Client]) -> None:
    folder, api = site
    assert RUN in [told["run"] for told in api.get("/v1/records").json()]
    names = {told["name"] for told in api.get("/v1/policies").json()}
    assert {"set-10", "fair-share"} <= names
    body = {"run": RUN, "policies": ["set-10", "fair-share"]}
    id = api.post("/v1/what-if", json=body).json()["id"]
    deadline = time.monotonic() + LONG
    while (told := api.get(f"/v1/what-if/{id}").json())["state"] == "running":
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert told["state"] == "done", told["error"]
    assert set(told["result"]["lanes"]["simulated"]) == {"set-10", "fair-share"}
    assert str(folder) not in json.dumps(told)
    assert api.delete(f"/v1/what-if/{id}").json()["state"] == "done"  # it was over


@pytest.mark.parametrize(
    ("more", "code"),
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
def test_what_is_refused(site: tuple[Path, httpx.Client], more: dict[str, Any], code: int) -> None:
    """No policy file is run, and nothing becomes an option of the command."""
    answer = site[1].post("/v1/what-if", json={"run": RUN, "policies": ["set-10"]} | more)
    assert answer.status_code == code, answer.text
    assert set(answer.json()) == {"error", "hint"}


def test_no_other_web_page_starts_or_ends_one(site: tuple[Path, httpx.Client]) -> None:
    _, api = site
    body = {"run": RUN, "policies": ["set-10"]}
    foreign = {"origin": "http://elsewhere.example"}
    assert api.post("/v1/what-if", json=body, headers=foreign).status_code == 403
    assert api.delete("/v1/what-if/5e", headers=foreign).status_code == 403
    rebound = {"host": "elsewhere.example"}
    assert api.post("/v1/what-if", json=body, headers=rebound).status_code == 403
    assert api.delete("/v1/what-if/5e", headers=rebound).status_code == 403
    # A form of another page can be sent without being asked for; as JSON it cannot.
    form = {"content-type": "text/plain"}
    assert api.post("/v1/what-if", content=json.dumps(body), headers=form).status_code == 415
    own = {"origin": str(api.base_url).rstrip("/")}
    assert api.delete("/v1/what-if/5e", headers=own).status_code == 404
