"""Between hosts: who can change packets changes no message, and no host runs code in a job."""

import asyncio
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from limits import HANG
from live.controller.test_listeners import KEY, Door
from live.other_users import AS_ROOT, NOBODY, as_user
from security.relay import Attack, Relay

from penstock.live.agent import page_server
from penstock.live.agent.job_agent import JobAgent, begin_job
from penstock.live.controller.listeners import Admission
from penstock.live.controller.peer import Peer, RefusalLog
from penstock.live.deployment import launcher
from penstock.live.deployment.spec import Deployment
from penstock.live.protocol import _page_layout as layout
from penstock.live.protocol import client, messages
from penstock.live.protocol.address import Address
from penstock.live.protocol.client import ControlConnection
from penstock.live.protocol.shared_page import SharedPages
from penstock.live.protocol.site_key import RemoteController, SiteKey
from penstock.live.protocol.state_directory import StateDirectory

pytestmark = pytest.mark.security

PENSTOCK = (sys.executable, "-m", "penstock.cli")


class Site:
    """A deployment that listens to other hosts."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.key = folder, folder / "key"
        self.state = StateDirectory(folder / "state")
        (folder / "root").mkdir()
        SiteKey.create(self.key)
        launcher.up(
            Deployment(
                state=str(self.state.folder),
                roots=[str(folder / "root")],
                io_nodes=0,
                listen="127.0.0.1:0",
                key_file=str(self.key),
            )
        )
        host, _, port = self.state.listen.read_text().strip().rpartition(":")
        self.controller = host, int(port)

    def status(self) -> messages.Status:
        return launcher.ask(self.state, messages.GetStatus(), messages.Status)

    def run(self, port: int, *command: str) -> "subprocess.CompletedProcess[str]":
        """Run a command as a job of another host."""
        where = ("--controller", f"127.0.0.1:{port}", "--key-file", str(self.key))
        return subprocess.run(
            [*PENSTOCK, "run", *where, "--state", str(self.folder / "jobs"), "--", *command],
            capture_output=True,
            text=True,
            timeout=HANG,
            check=False,
        )


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with tempfile.TemporaryDirectory(prefix="hosts", dir="/dev/shm") as path:
        made = Site(Path(path))
        yield made
        launcher.down(made.state)


def in_place_of(line: bytes, change: dict[str, object]) -> bytes:
    """Return a line with other fields in its JSON, whatever is before that."""
    before, brace, text = line.partition(b"{")
    return before + json.dumps(json.loads(brace + text) | change).encode() + b"\n"


def test_a_relay_runs_no_code_in_a_job(site: Site) -> None:
    """It once added BASH_ENV to the controller's answer, which every shell of a job executes."""
    proof = site.folder / "proof"

    def adds_bash_env(from_controller: bool, _: int, line: bytes) -> list[tuple[bool, bytes]]:
        if from_controller and b'"Begun"' in line:
            line = in_place_of(line, {"environment": {"BASH_ENV": f"$(id > {proof})"}})
        return [(from_controller, line)]

    script = site.folder / "script.sh"
    script.write_text("echo done\n")
    with Relay(site.controller, adds_bash_env) as relay:
        result = site.run(relay.port, "bash", str(script))
    assert not proof.exists()
    assert (result.returncode, result.stdout) == (0, "done\n")
    assert "was changed, lost or repeated on its way" in result.stderr
    assert "running the command unmanaged" in result.stderr


def test_a_running_job_goes_on_and_counts_what_was_changed(site: Site) -> None:
    """Its connection ends, as when the network breaks, and is made again."""
    changed = site.folder / "changed"

    def changes_a_heartbeat(from_controller: bool, _: int, line: bytes) -> list[tuple[bool, bytes]]:
        if from_controller and b'"Beat"' in line and not changed.exists():
            changed.touch()
            line = in_place_of(line, {"mode": "off"})
        return [(from_controller, line)]

    waits = 'until [ -e "$0" ]; do sleep 0.05; done; sleep 1; echo done'
    with Relay(site.controller, changes_a_heartbeat) as relay:
        result = site.run(relay.port, "sh", "-c", waits, str(changed))
    assert (result.returncode, result.stdout) == (0, "done\n")
    job = site.status().jobs[-1]
    assert (job.state, job.counters["tampered"]) == ("ended", 1)


def test_an_honest_relay_is_not_noticed(site: Site) -> None:
    with Relay(site.controller) as relay:
        result = site.run(relay.port, "true")
    assert (result.returncode, result.stderr) == (0, "")
    assert site.status().jobs[-1].state == "ended"


def test_what_is_changed_on_its_way_to_the_controller_is_counted(site: Site) -> None:
    """A job in the name of another user, say."""
    refused = site.status().refused

    def names_another(from_controller: bool, _: int, line: bytes) -> list[tuple[bool, bytes]]:
        if not from_controller and b'"Begin"' in line:
            line = in_place_of(line, {"user": "ada"})
        return [(from_controller, line)]

    with Relay(site.controller, names_another) as relay:
        result = site.run(relay.port, "echo", "done")
    assert (result.returncode, result.stdout) == (0, "done\n")
    assert site.status().refused == refused + 1
    assert not [job for job in site.status().jobs if job.user == "ada"]
    assert "was changed, lost or repeated on its way" in site.state.log.read_text()


def changes(line: bytes) -> bytes:
    return in_place_of(line, {"advice": "as the relay says"})


def on(attack: Callable[[int, bytes], list[bytes]], *, controller: bool) -> Attack:
    """Attack what one end sends after the handshake: number 0 on."""
    first = 2 if controller else 1

    def changed(from_controller: bool, number: int, line: bytes) -> list[tuple[bool, bytes]]:
        if from_controller is not controller or number < first:
            return [(from_controller, line)]
        return [(from_controller, text) for text in attack(number - first, line)]

    return changed


def reflected(*, controller: bool) -> Attack:
    """Send to one end what it sent itself, once both know each other."""

    def reflects(from_controller: bool, number: int, line: bytes) -> list[tuple[bool, bytes]]:
        if from_controller is controller or number < (2 if from_controller else 1):
            return [(from_controller, line)]
        return [(not from_controller, line)]

    return reflects


def reordered() -> Callable[[int, bytes], list[bytes]]:
    held: list[bytes] = []

    def swaps(number: int, line: bytes) -> list[bytes]:
        held.append(line)
        return [] if number == 0 else held[::-1]

    return swaps


def attack(kind: str, *, controller: bool) -> Attack:
    """Return an attack on what the controller sends, or what is sent to it."""
    ways: dict[str, Callable[[int, bytes], list[bytes]]] = {
        "changed": lambda number, line: [changes(line) if number == 1 else line],
        "unsealed": lambda number, line: [b"{" + line.partition(b"{")[2]] if number else [line],
        "dropped": lambda number, line: [] if number == 1 else [line],
        "replayed": lambda number, line: [line] * (2 if number == 0 else 1),
        "reordered": reordered(),
    }
    if kind == "reflected":
        return reflected(controller=controller)
    return on(ways[kind], controller=controller)


KINDS = ("changed", "unsealed", "dropped", "replayed", "reordered", "reflected")


@pytest.fixture
def door() -> Iterator[Door]:
    made = Door()
    yield made
    made.close()


def connected(port: int) -> ControlConnection:
    address = Address(host="127.0.0.1", port=port)
    return ControlConnection(RemoteController(address=address, key=KEY))


def receive_all(controller: ControlConnection) -> None:
    while True:
        controller.receive(messages.Done | messages.GetStatus, HANG)


def send_many(controller: ControlConnection) -> None:
    for _ in range(4):
        controller.send(messages.GetStatus())


@pytest.mark.parametrize("kind", KINDS)
def test_a_job_accepts_only_what_the_controller_sent_in_its_order(door: Door, kind: str) -> None:
    relay = Relay(("127.0.0.1", door.port), attack(kind, controller=True))
    with relay, connected(relay.port) as controller:
        send_many(controller)
        with pytest.raises(ConnectionError, match="was changed, lost or repeated on its way"):
            receive_all(controller)


@pytest.mark.parametrize("kind", KINDS)
def test_a_controller_accepts_only_what_was_sent_in_its_order(door: Door, kind: str) -> None:
    relay = Relay(("127.0.0.1", door.port), attack(kind, controller=False))
    with relay, connected(relay.port) as controller:
        with suppress(OSError):  # the controller may have noticed
            send_many(controller)
        with pytest.raises(ConnectionError):
            receive_all(controller)
        assert "was changed, lost or repeated on its way" in door.refused()[0]


def test_a_session_opens_no_other(door: Door) -> None:
    """What was sealed for one connection is worth nothing on the next."""
    lines: list[bytes] = []

    def hears(from_controller: bool, number: int, line: bytes) -> list[tuple[bool, bytes]]:
        if not from_controller and number == 1:
            lines.append(line)
            line = lines[0]  # on the second connection: what was heard on the first
        return [(from_controller, line)]

    with Relay(("127.0.0.1", door.port), hears) as relay:
        with connected(relay.port) as first:
            first.ask(messages.GetStatus(), messages.Done)
        with connected(relay.port) as second, pytest.raises(ConnectionError):
            second.ask(messages.GetStatus(), messages.Done)
    assert len(lines) == 2
    assert "changed, lost or repeated on its way" in door.refused()[0]


class Posing:
    """A controller with the right key, and a will of its own: what it sends a job that begins."""

    def __init__(self, **fields: Any) -> None:
        self.refusals = RefusalLog()
        accepted = {"job": "job.1", "roots": ["/nowhere"], "nodes": []} | fields
        self._accepted = messages.JobAccepted(**accepted)
        self._listener = Address(host="127.0.0.1", port=0).listen()
        self._listener.setblocking(False)
        self.port = self._listener.getsockname()[1]

    async def _admitted(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, _: Peer
    ) -> None:
        writer.write(client.encode_line(self._accepted))
        while text := await reader.readline():
            if b'"Ended"' in text:
                writer.write(client.encode_line(messages.Done()))
        writer.close()

    async def serve(self, key: SiteKey, until: asyncio.Event) -> None:
        admission = Admission(key, self._admitted, self.refusals)
        task = asyncio.create_task(admission.accept(self._listener))
        await until.wait()
        task.cancel()
        self._listener.close()


@contextmanager
def posing(key: SiteKey, **fields: Any) -> Iterator[Posing]:
    made, ready = Posing(**fields), threading.Event()
    loops: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []

    async def serve() -> None:
        until = asyncio.Event()
        loops.append((asyncio.get_running_loop(), until))
        ready.set()
        await made.serve(key, until)

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    assert ready.wait(HANG)
    yield made
    loop, until = loops[0]
    loop.call_soon_threadsafe(until.set)
    thread.join(HANG)


def test_a_controller_of_another_host_runs_no_code_in_a_job(site: Site) -> None:
    """It has the key, so what it says is not changed; its host may be in other hands."""
    proof = site.folder / "proof-of-a-host"
    library = site.folder / "not-there.so"
    code: dict[str, Any] = {
        "environment": {"BASH_ENV": f"$(id > {proof})"},
        "preload": [str(library)],
        "above": [str(library)],
    }
    with posing(SiteKey.read(site.key), roots=[str(site.folder)], **code) as controller:
        result = site.run(controller.port, "bash", "-c", "echo $LD_PRELOAD $BASH_ENV")
    assert not proof.exists()
    assert result.returncode == 0
    assert (result.stdout.strip(), result.stderr) == (str(page_server.library()), "")


@pytest.mark.parametrize(
    "fields",
    [
        {"token": "no hexadecimal"},
        {"roots": ["/" + 5000 * "x"]},
        {"roots": ["/no/such/directory"]},
        {"nodes": [messages.Node(number=0, id=1, address=5000 * "x")]},
        {"nodes": [messages.Node(number=-5, id=1 << 70, address="x")]},
        {"longest_wait": -1e300},
        {"lease": 1e300, "mode": "enforce"},
    ],
    ids=str,
)
def test_a_command_runs_whatever_a_controller_says(site: Site, fields: dict[str, Any]) -> None:
    fields = {"roots": [str(site.folder)]} | fields
    with posing(SiteKey.read(site.key), **fields) as controller:
        result = site.run(controller.port, "sh", "-c", "echo ran; exit 3")
    assert (result.returncode, result.stdout) == (3, "ran\n")
    assert "Traceback" not in result.stderr


@AS_ROOT
@pytest.mark.parametrize(("controllers", "job"), [(NOBODY, 0), (NOBODY, 1), (1, 1), (0, 1)])
def test_code_and_ways_of_data_are_roots_or_its_users(
    tmp_path: Path, controllers: int, job: int
) -> None:
    """The agent of root speaks for all users of Slurm to a controller of the user penstock."""
    carries = messages.Node(number=0, id=7, address="127.0.0.1", transport="tcp", port=9)
    permits = messages.Node(number=1, id=8, address="/run/io-node-1.sock")
    nodes = [carries, permits]
    accepted = messages.JobAccepted(
        job="job.1", roots=[], nodes=nodes, environment={"A": "b"}, above=["x.so"]
    )
    with tempfile.TemporaryDirectory(prefix="peer", dir="/dev/shm") as folder:
        Path(folder).chmod(0o777)
        path = f"{folder}/controller.sock"

        def listens() -> str:
            with socket.socket(socket.AF_UNIX) as listener:
                listener.bind(path)
                listener.listen()
                os.chmod(path, 0o666)  # noqa: PTH101
                connection, _ = listener.accept()
                with connection, connection.makefile("rb") as lines:
                    lines.readline()
                    connection.sendall(client.encode_line(accepted))
                    connection.sendall(client.encode_line(messages.NodeMap(nodes=nodes * 2)))
                    for line in lines:
                        if b'"Ended"' in line:
                            connection.sendall(client.encode_line(messages.Done()))
            return ""

        thread = threading.Thread(target=lambda: as_user(controllers, listens))
        thread.start()
        while not os.access(path, os.W_OK):
            thread.join(0.01)
        with ControlConnection(Path(path)) as controller, SharedPages([tmp_path]) as pages:
            begin = messages.BeginJob(name="job", pid=1, command=[], user=str(job))
            begun = begin_job(controller, begin, job)
            agent = JobAgent(controller, begin, begun, pages, uid=job)
            while agent.counters()["maps"] < 1:
                thread.join(0.01)
            count = os.pread(pages.control_fd, 4, layout.MAP_COUNT)
            agent.end(0)
        thread.join(HANG)
    trusted = controllers in (0, job)
    assert (begun.environment, begun.above) == (({"A": "b"}, ["x.so"]) if trusted else ({}, []))
    assert int.from_bytes(count, sys.byteorder) == (4 if trusted else 2)
