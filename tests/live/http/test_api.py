"""The HTTP API: private data for tokens only, changes for admins only, errors in JSON."""

import asyncio
import json
import logging
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
from limits import HANG
from live.http.api_site import (
    ADMIN,
    READER,
    WAIT,
    FakeService,
    bearing,
    client,
    controlled,
    running_job,
    served,
    token_file,
)

from penstock.config import Config
from penstock.errors import InputError
from penstock.live.controller.controller import Controller
from penstock.live.deployment import launcher
from penstock.live.deployment.spec import Deployment
from penstock.live.http.api import OPERATIONS, Api, SharedStatus
from penstock.live.http.controller_service import ControllerService
from penstock.live.http.dispatch import RequestLimits
from penstock.live.protocol import messages
from penstock.live.protocol.address import Address
from penstock.live.protocol.client import ControlConnection
from penstock.live.protocol.state_directory import StateDirectory, lock_holder
from penstock.live.protocol.tokens import Tokens

MESSAGES = messages.Turn | messages.Hold | messages.Heartbeat | messages.NodeMap
SECRETS = ("ada", "bob", "./solve", "hidden", "/home", "64001", "54321", "1000/")
READS = ["/v1/status", "/v1/jobs", "/v1/jobs/job.1", "/v1/io-nodes", "/v1/waiting", "/v1/mode"]
READS += ["/v1/timeline", "/v1/jobs/job.1/phases", "/v1/tuning", "/v1/policies", "/v1/records"]
CHANGES: list[tuple[str, str, dict[str, Any]]] = [
    ("PUT", "/v1/mode", {"mode": "enforce"}),
    ("PUT", "/v1/kill-switch", {"on": True}),
    ("POST", "/v1/jobs/job.1/io-nodes", {"nodes": []}),
]


@pytest.fixture
def service() -> FakeService:
    return FakeService()


@pytest.fixture
def tokens(tmp_path: Path) -> Tokens:
    return Tokens.read(token_file(tmp_path))


@pytest.fixture
def guarded(service: FakeService, tokens: Tokens) -> Iterator[str]:
    with served(Api(service, tokens=tokens)) as where:
        yield where


@pytest.fixture
def admin(guarded: str) -> Iterator[httpx.Client]:
    with client(guarded, ADMIN) as api:
        yield api


@pytest.fixture
def anonymous(service: FakeService) -> Iterator[httpx.Client]:
    with served(Api(service)) as where, client(where) as api:
        yield api


def refused(answer: httpx.Response, code: int) -> dict[str, str]:
    """Every refusal has an error and a hint, and nothing else."""
    assert answer.status_code == code, answer.text
    assert answer.headers["content-type"] == "application/json"
    problem = answer.json()
    assert sorted(problem) == ["error", "hint"]
    assert all(problem.values())
    return dict(problem)


# Access.


def test_file_systems_are_shown_without_their_directories(
    admin: httpx.Client, anonymous: httpx.Client
) -> None:
    full, public = (api.get("/v1/status").json()["file_systems"] for api in (admin, anonymous))
    assert [each["name"] for each in full] == [each["name"] for each in public]
    assert [each["roots"] for each in full] == [["/home"], ["/scratch"]]
    assert public[0] == {name: value for name, value in full[0].items() if name != "roots"}


@pytest.mark.security
@pytest.mark.parametrize("path", READS)
def test_without_tokens_nothing_private_is_shown(anonymous: httpx.Client, path: str) -> None:
    answer = anonymous.get(path)
    assert answer.status_code == 200
    assert [secret for secret in SECRETS if secret in answer.text] == []


@pytest.mark.security
@pytest.mark.parametrize(("method", "path", "body"), CHANGES)
def test_without_tokens_nothing_can_be_changed(
    anonymous: httpx.Client, service: FakeService, method: str, path: str, body: dict[str, Any]
) -> None:
    """TCP does not identify the user, so nobody may."""
    problem = refused(anonymous.request(method, path, json=body), 403)
    assert "--token-file" in problem["hint"]
    assert (service.mode, service.killed, service.remaps) == ("observe", False, [])


def test_refusals_are_logged_once_per_second(
    service: FakeService, caplog: pytest.LogCaptureFixture
) -> None:
    """A client cannot fill the log."""
    times = iter([0.0, 0.5, 0.9, 1.0])
    with served(Api(service, clock=lambda: next(times))) as where, client(where) as anyone:
        for _ in range(4):
            refused(anyone.get("/v1/jobs/job.1/explain"), 403)
    assert caplog.text.count("API: refused GET") == 2


@pytest.mark.security
def test_without_tokens_no_job_is_explained(anonymous: httpx.Client) -> None:
    refused(anonymous.get("/v1/jobs/job.1/explain"), 403)


@pytest.mark.security
def test_a_host_header_of_another_host_is_refused(anonymous: httpx.Client) -> None:
    refused(anonymous.get("/v1/status", headers={"host": "rebound.example:80"}), 403)
    for host in ("localhost:1234", "127.0.0.1", "[::1]:99"):
        assert anonymous.get("/v1/status", headers={"host": host}).status_code == 200


@pytest.mark.security
@pytest.mark.parametrize(
    "authorization",
    [None, "Bearer", "Bearer wrong-token-0123456789", f"Basic {ADMIN}", ADMIN, f"Bearer {ADMIN}x"],
)
def test_with_tokens_every_request_needs_one(guarded: str, authorization: str | None) -> None:
    headers = {} if authorization is None else {"authorization": authorization}
    with client(guarded) as anyone:
        for operation in OPERATIONS:
            path = operation.path.replace("{id}", "job.1").replace("{name}", "index.html")
            answer = anyone.request(operation.method, path, headers=headers)
            if operation.access == "open":
                assert answer.status_code == 200
            else:
                refused(answer, 401)
                assert answer.headers["www-authenticate"].startswith("Bearer")


@pytest.mark.security
@pytest.mark.parametrize(("method", "path", "body"), CHANGES)
def test_a_reader_reads_and_an_admin_changes(
    guarded: str, method: str, path: str, body: dict[str, Any]
) -> None:
    with client(guarded) as any_client:
        for read in (*READS, "/v1/jobs/job.1/explain", "/metrics"):
            assert any_client.get(read, headers=bearing(READER)).status_code == 200
        refused(any_client.request(method, path, json=body, headers=bearing(READER)), 403)
        answer = any_client.request(method, path, json=body, headers=bearing(ADMIN))
        assert answer.status_code == 200, answer.text


@pytest.mark.security
def test_no_token_is_in_the_log(
    guarded: str, caplog: pytest.LogCaptureFixture, service: FakeService
) -> None:
    caplog.set_level(logging.DEBUG)
    service.fails = RuntimeError("broken")
    with client(guarded) as any_client:
        for token in (ADMIN, READER, "wrong-token-0123456789"):
            any_client.get("/v1/status", headers=bearing(token))
            any_client.put("/v1/mode", headers=bearing(token), json={"mode": "advise"})
    assert "ops set the mode of the site to advise" in caplog.text
    assert "refused" in caplog.text
    assert "-token-0123456789" not in caplog.text


@pytest.mark.security
@pytest.mark.parametrize(
    ("content", "mode", "message"),
    [
        (f"ops admin {ADMIN}", 0o640, "can be read by other users"),
        (f"ops {ADMIN}", 0o600, "line 1: 2 words"),
        (f"ops root {ADMIN}", 0o600, "not a role"),
        ("ops admin short", 0o600, "less than 16"),
        ("ops admin 0123456789\u00e9123456789", 0o600, "less than 16"),
        (f"ops admin {ADMIN}\nops read {READER}", 0o600, "line 2: the name 'ops'"),
        (f"ops admin {ADMIN}\nme read {ADMIN}", 0o600, "line 2: the token is a duplicate"),
        ("# none\n", 0o600, "has no token"),
        ("x" * 70000, 0o600, "longer than"),
    ],
)
def test_the_error_of_a_wrong_token_file(
    tmp_path: Path, content: str, mode: int, message: str
) -> None:
    path = tmp_path / "wrong"
    path.write_text(content)
    path.chmod(mode)
    with pytest.raises(InputError, match=message) as caught:
        Tokens.read(path)
    assert ADMIN not in str(caught.value)


@pytest.mark.security
def test_a_token_file_that_is_no_file_is_refused(tmp_path: Path) -> None:
    for path, message in ((tmp_path / "none", "No such file"), (tmp_path, "not a regular file")):
        with pytest.raises(InputError, match=message):
            Tokens.read(path)


@pytest.mark.security
@pytest.mark.parametrize("text", ["0.0.0.0:80", "[::]:80", "example.org:80", "10.0.0.1:80"])
def test_an_address_reachable_from_other_hosts_needs_tokens(text: str, tmp_path: Path) -> None:
    deployment = Deployment(state=str(tmp_path), roots=["/"], io_nodes=0, http=text)
    with pytest.raises(InputError, match="--token-file"):
        deployment.tokens()


@pytest.mark.parametrize("text", ["8080", ":8080", "localhost:8080", "127.0.0.9:8080", "[::1]:80"])
def test_an_address_of_this_host_needs_none(text: str) -> None:
    Address.parse(text).check(tokens=False)


@pytest.mark.parametrize("text", ["", "host", "host:", "host:99999", "::1:80", "a b:-1", "[x]:1"])
def test_a_wrong_address_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="not an address"):
        Address.parse(text)


# Answers.


@pytest.mark.security
def test_a_token_shows_everything(admin: httpx.Client) -> None:
    content = admin.get("/v1/status").json()
    assert content["jobs"] == admin.get("/v1/jobs").json()
    assert content["jobs"][0] == admin.get("/v1/jobs/job.1").json()
    assert content["jobs"][0]["command"] == ["./solve", "--key=hidden"]
    assert content["io_nodes"] == admin.get("/v1/io-nodes").json()
    assert (content["roots"], content["forwarded_bytes"]) == (["/home/ada/project"], 30)


def test_waiting_has_start_share_and_the_jobs_ahead(admin: httpx.Client) -> None:
    content = admin.get("/v1/waiting").json()
    assert [(t["job"], t["user"], t["share"]) for t in content["transferring"]] == [
        ("job.1", "ada", 0.75)
    ]
    (waits,) = content["waiting"]
    assert (waits["job"], waits["behind"], waits["since"]) == ("job.2", ["job.1"], 1e9 + 1)
    assert admin.get("/v1/jobs/job.2/explain").json()["behind"] == ["job.1"]


def test_health_needs_no_token(guarded: str, service: FakeService) -> None:
    with client(guarded) as anybody:
        content = anybody.get("/health")
        assert content.json() == {"live": True, "ready": True, "io_nodes": 2, "serving": 1}
        service.fails = ConnectionError("gone")
        content = anybody.get("/health")
        assert (content.status_code, content.json()["ready"]) == (503, False)


def test_requests_at_once_share_one_status(service: FakeService) -> None:
    """A hundred clients do not cause a hundred requests to every I/O node."""

    async def ask() -> None:
        now = SharedStatus(service)
        service.answers.clear()
        requests = [asyncio.create_task(now.get()) for _ in range(100)]
        await asyncio.sleep(0)
        now.invalidate()  # a request after a change does not share a status from before it
        requests.append(asyncio.create_task(now.get()))
        await asyncio.sleep(0)
        service.answers.set()
        await asyncio.wait_for(asyncio.gather(*requests), WAIT)

    asyncio.run(ask())
    assert service.statuses == 2


def test_answers_are_made_one_at_a_time(service: FakeService) -> None:
    """Between two of them the controller grants turns."""

    async def ask() -> list[int]:
        now, rounds = SharedStatus(service), 0

        async def count() -> None:
            nonlocal rounds
            while True:
                rounds += 1
                await asyncio.sleep(0)

        async def request() -> int:
            await now.get()
            return rounds

        counting = asyncio.create_task(count())
        content = await asyncio.wait_for(asyncio.gather(*(request() for _ in range(50))), WAIT)
        counting.cancel()
        return content

    assert len(set(asyncio.run(ask()))) == 50


# Changes.


def test_modes_of_the_site_and_of_users(admin: httpx.Client) -> None:
    def put(**body: Any) -> Any:
        answer = admin.put("/v1/mode", json=body)
        assert answer.status_code == 200
        assert answer.json() == admin.get("/v1/mode").json()
        return answer.json()

    assert put(mode="advise")["site"] == "advise"
    assert put(mode="enforce", user="ada")["users"] == {"ada": "enforce", "bob": "enforce"}
    assert put(mode=None, user="bob")["users"] == {"ada": "enforce"}


def test_the_kill_switch(admin: httpx.Client, service: FakeService) -> None:
    assert admin.put("/v1/kill-switch", json={"on": True}).json()["kill_switch"] is True
    assert service.killed
    assert admin.put("/v1/kill-switch", json={"on": False}).json()["kill_switch"] is False


def test_a_remap_and_its_refusals(admin: httpx.Client, service: FakeService) -> None:
    def post(job: str, **body: Any) -> httpx.Response:
        return admin.post(f"/v1/jobs/{job}/io-nodes", json=body)

    assert post("job.1", nodes=[1, 0], stripe=65536).json()["io_nodes"] == [1, 0]
    assert [(m.job, m.nodes, m.stripe) for m in service.remaps] == [("job.1", [1, 0], 65536)]
    refused(post("none.1", nodes=[0]), 404)
    assert "ended" in refused(post("job.3", nodes=[0]), 409)["error"]
    refused(post("job.1", nodes=[7]), 409)
    refused(post("job.1", nodes=["0"]), 422)
    refused(post("job.1", nodes=[0.5]), 422)
    refused(post("job.1", nodes=[0, 0]), 422)
    refused(post("job.1", nodes=[0], stripe=1), 422)
    refused(post("job.1", nodes=[0], stripe=100_000), 422)
    assert "does not answer" in refused(post("job.1", nodes=[0], stripe=13 << 16), 409)["error"]
    assert len(service.remaps) == 1
    assert post("job.1", nodes=[1.0]).json()["io_nodes"] == [1]  # JSON has one kind of number


@pytest.mark.parametrize(
    ("content", "kind", "code"),
    [
        (b"", "application/json", 400),
        (b'{"mode":', "application/json", 400),
        (b'{"mode":"\xff"}', "application/json", 400),
        (b'{"mode":"observe"}', "text/plain", 415),
        (b'{"mode":"observe"}', "", 415),
        (b'{"mode":"off"}', "application/json", 422),
        (b'{"mode":null}', "application/json", 422),
        (b'{"mode":"observe","users":"x"}', "application/json", 422),
        (b'{"mode":"observe","user":"../x"}', "application/json", 422),
        (b'{"mode":"observe","user":"a\\nb"}', "application/json", 422),
        (b'{"mode":"observe","user":"a\\n"}', "application/json", 422),
        (b"[" * 60000, "application/json", 400),
        (b"[" * 50 + b"]" * 50, "application/json", 422),
        (b" " * 65537, "application/json", 413),
    ],
)
def test_a_wrong_body_is_refused(
    admin: httpx.Client, service: FakeService, content: bytes, kind: str, code: int
) -> None:
    answer = admin.put("/v1/mode", content=content, headers={"content-type": kind})
    refused(answer, code)
    assert service.mode == "observe"
    assert set(service.users) == {"bob"}


def test_a_repeated_query_parameter_is_refused(admin: httpx.Client) -> None:
    refused(admin.get("/v1/timeline?since=a&since=b"), 422)


def test_unknown_paths_and_methods(admin: httpx.Client) -> None:
    for path in ("/v2", "/v1", "/v1/jobs/", "/v1/status/", "/v1/jobs/none", "/v1/jobs/a%2Fb"):
        refused(admin.get(path), 404)
    answer = admin.delete("/v1/mode")
    refused(answer, 405)
    assert {"GET", "PUT"} <= set(answer.headers["allow"].replace(" ", "").split(","))


def test_an_internal_error_shows_no_details(
    admin: httpx.Client, service: FakeService, caplog: pytest.LogCaptureFixture
) -> None:
    service.fails = RuntimeError("inside")
    assert "inside" not in json.dumps(refused(admin.get("/v1/status"), 500))
    assert "inside" in caplog.text
    service.fails = None
    assert admin.get("/v1/status").status_code == 200


def test_a_controller_that_does_not_answer_is_not_waited_for(service: FakeService) -> None:
    slow = Api(service, limits=RequestLimits(answer_seconds=0.5), status_seconds=0.2)
    service.answers.clear()
    with served(slow) as where, client(where) as anonymous:
        refused(anonymous.get("/v1/status"), 503)
        refused(anonymous.get("/metrics"), 503)
        assert anonymous.get("/v1/mode").status_code == 200


# A real controller.


def test_a_real_controller(tmp_path: Path) -> None:
    options = {"token_file": str(token_file(tmp_path))}
    with controlled(tmp_path, **options) as (state, where), client(where, ADMIN) as admin:
        assert admin.get("/health").json() == {
            "live": True,
            "ready": True,
            "io_nodes": 2,
            "serving": 2,
        }
        with running_job(state, write_bytes=123) as job:
            content = admin.get(f"/v1/jobs/{job}").json()
            assert (content["user"], content["command"]) == ("ada", ["test", "--key"])
            answer = admin.post(f"/v1/jobs/{job}/io-nodes", json={"nodes": [1]})
            assert answer.json()["io_nodes"] == [1]
            assert admin.get("/v1/io-nodes").json()[1]["jobs"] == [job]
            assert admin.get(f"/v1/jobs/{job}/explain").json()["io_nodes"] == [1]
            assert admin.get("/v1/waiting").json() == {"transferring": [], "waiting": []}
        assert admin.put("/v1/mode", json={"mode": "enforce"}).json()["site"] == "enforce"
        content = admin.put("/v1/kill-switch", json={"on": True}).json()
        assert (content["kill_switch"], content["site"]) == (True, "enforce")
        # A mode that is set meanwhile counts once the switch is off, and not before.
        assert admin.put("/v1/mode", json={"mode": "advise"}).json()["kill_switch"]
        assert admin.get("/v1/status").json()["mode"] == "off"
        content = admin.put("/v1/kill-switch", json={"on": False}).json()
        assert (content["kill_switch"], content["site"]) == (False, "advise")
        # 'penstock mode off' is the same switch, with the same memory.
        for mode in ("enforce", "off"):
            launcher.ask(state, messages.SetMode(mode=mode), messages.Done)
        assert admin.get("/v1/mode").json()["kill_switch"]
        content = admin.put("/v1/kill-switch", json={"on": False}).json()
        assert (content["kill_switch"], content["site"]) == (False, "enforce")
        assert ADMIN not in state.log.read_text()
        assert "ops gave job" in state.log.read_text()
    assert not state.http.exists()


def test_since_is_by_the_wall_clock_that_is_given(tmp_path: Path) -> None:
    deployment = Deployment(state=str(tmp_path), roots=[str(tmp_path)], io_nodes=0)

    async def since() -> list[float]:
        now = 50.0
        controller = Controller(deployment, clock=lambda: now, wall_clock=lambda: 1e9 + now)
        begin = messages.BeginJob(name="a", pid=1, command=["x"], user="ada", protocol=2)
        job = controller.jobs.begin(begin, 1e9)
        controller.io_node_map.begin(job.id)
        controller.turn_service.started(job)
        controller.turn_service.phase_began(job, messages.PhaseBegan(phase=1))
        now = 53.0
        service = ControllerService(controller, wall_clock=lambda: 1e9 + now)
        return [turn.since for turn in (await service.waiting()).transferring]

    assert asyncio.run(since()) == [1e9 + 50.0]


@pytest.mark.parametrize("name", ["mysite", None])
def test_the_site_has_its_configured_name_or_the_hosts(tmp_path: Path, name: str | None) -> None:
    config = msgspec.convert({} if name is None else {"site": {"name": name}}, Config)
    with controlled(tmp_path, io_nodes=0, config=config) as (_, where), client(where) as api:
        names = [api.get(path).json()["site"] for path in ("/v1/status", "/v1/timeline")]
    assert names == [name or socket.gethostname()] * 2


def test_waiting_jobs_of_a_real_controller(tmp_path: Path) -> None:
    """Two jobs of one set: the first transfers, the second waits for it, then has its turn."""
    options = {"token_file": str(token_file(tmp_path)), "io_nodes": 0}
    with controlled(tmp_path, **options) as (state, where), client(where, ADMIN) as admin:
        admin.put("/v1/mode", json={"mode": "enforce"})
        with (
            ControlConnection(state.controller) as first,
            ControlConnection(state.controller) as second,
        ):
            for job in (first, second):
                begin = messages.BeginJob(name="test", pid=1, command=["x"], user="ada", protocol=2)
                job.ask(begin, messages.JobAccepted)
                job.send(messages.PhaseBegan(phase=1))
                while not isinstance(job.receive(MESSAGES, WAIT), messages.Turn | messages.Hold):
                    pass
            content = admin.get("/v1/waiting").json()
            assert [(t["job"], t["share"]) for t in content["transferring"]] == [("test.1", 1.0)]
            assert [(w["job"], w["behind"]) for w in content["waiting"]] == [("test.2", ["test.1"])]
            # The set of jobs with no history, as in `penstock status --json`.
            assert [(t["weight"], t["group"]) for t in content["transferring"]] == [(1e-5, "5")]
            assert [w["group"] for w in content["waiting"]] == ["5"]
            first.send(messages.PhaseEnded(phase=1, bytes=1, seconds=0.1, waited=0.0))
            while not isinstance(second.receive(MESSAGES, WAIT), messages.Turn):
                pass
            second.send(messages.PhaseEnded(phase=1, bytes=1, seconds=0.1, waited=0.25))
            deadline = time.monotonic() + WAIT
            while 'penstock_throttled_seconds_total{user="ada"} 0.25' not in (
                lines := admin.get("/metrics").text.splitlines()
            ):
                assert time.monotonic() < deadline, lines
        assert "penstock_turns_total 2.0" in lines
        assert "penstock_turn_wait_seconds_count 2.0" in lines


def test_a_hanging_io_node_blocks_no_request(tmp_path: Path) -> None:
    """The controller waits 2 s for it; then clients get the state of that I/O node."""
    with controlled(tmp_path) as (state, where), client(where) as anonymous:
        pid = lock_holder(state.node_lock(1))
        assert pid
        os.kill(pid, signal.SIGSTOP)
        try:
            lines = anonymous.get("/metrics").text.splitlines()
            assert 'penstock_io_node_up{node="0"} 1.0' in lines
            assert 'penstock_io_node_up{node="1"} 0.0' in lines
            assert anonymous.get("/health").json()["serving"] == 1
            content = anonymous.get("/v1/io-nodes").json()[1]
            assert (content["state"], "why" in content) == (
                "not answering",
                False,
            )  # it names a process
        finally:
            os.kill(pid, signal.SIGCONT)


def test_up_prints_the_address_and_refuses_wrong_options(tmp_path: Path) -> None:
    root = tmp_path / "managed"
    root.mkdir()

    def up(*args: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "penstock.cli", "up", "--root", str(root)]
        options = ["--io-nodes", "0", "--state", str(tmp_path / "state"), "--json", *args]
        return subprocess.run(
            [*command, *options], capture_output=True, text=True, timeout=60, check=False
        )

    for args, message in (
        (["--http", "0.0.0.0:0"], "--token-file"),
        (["--http", "here"], "not an address"),
        (["--http", "0", "--token-file", str(tmp_path / "none")], "No such file"),
        (["--job-metrics", "3"], "need --http"),
    ):
        wrong = up(*args)
        assert (wrong.returncode, message in wrong.stderr) == (2, True), wrong.stderr
        assert wrong.stderr.count("\n") == 1
    try:
        where = json.loads(up("--http", "0").stdout)["http"]
        assert httpx.get(f"{where}/health", timeout=WAIT, trust_env=False).json()["live"]
        # A port in use: the second deployment does not start without its API.
        port = where.rpartition(":")[2]
        second = Deployment(
            state=str(tmp_path / "second"), roots=[str(root)], io_nodes=0, http=port
        )
        with pytest.raises(InputError, match="in use"):
            launcher.up(second)
    finally:
        launcher.down(StateDirectory(tmp_path / "state"))


def test_down_does_not_wait_for_clients(tmp_path: Path) -> None:
    with controlled(tmp_path, io_nodes=0) as (state, where):
        host, _, port = where.removeprefix("http://").rpartition(":")
        with socket.create_connection((host, int(port)), timeout=WAIT) as half:
            half.sendall(b"PUT /v1/mode HTTP/1.1\r\nhost: localhost\r\ncontent-length: 9\r\n")
            over = threading.Thread(target=launcher.down, args=(state,))
            over.start()
            over.join(HANG)
            assert not over.is_alive()
