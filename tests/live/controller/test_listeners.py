"""Other hosts are heard once they have proven the site key; nobody else holds the service up."""

import asyncio
import os
import socket
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from limits import HANG

from penstock.errors import InputError
from penstock.live.controller.listeners import Admission
from penstock.live.controller.peer import LINES, Peer, RefusalLog
from penstock.live.protocol import client, messages
from penstock.live.protocol.address import Address
from penstock.live.protocol.client import ControlConnection
from penstock.live.protocol.site_key import RemoteController, SiteKey, nonce

pytestmark = pytest.mark.security

KEY, OTHER = SiteKey(b"k" * 32), SiteKey(b"o" * 32)
WAIT = HANG


class Door:
    """An Admission in a thread of its own; admitted connections get Done for every line."""

    def __init__(self, **limits: Any) -> None:
        self.limits = limits
        self.refusals = RefusalLog()
        self.why: list[str] = []
        self.changed = threading.Condition()
        self.refusals.note = self._note  # type: ignore[method-assign]
        self.listener = Address(host="127.0.0.1", port=0).listen()
        self.listener.setblocking(False)
        self.port = self.listener.getsockname()[1]
        self.end: Callable[[], object] = lambda: None
        ready = threading.Event()
        self.thread = threading.Thread(target=lambda: asyncio.run(self._serve(ready)))
        self.thread.start()
        assert ready.wait(WAIT)

    def _note(self, why: str) -> None:
        with self.changed:
            self.why.append(why)
            self.changed.notify_all()

    async def _serve(self, ready: threading.Event) -> None:
        ended, loop = asyncio.Event(), asyncio.get_running_loop()
        self.end = lambda: loop.call_soon_threadsafe(ended.set)
        admits = Admission(KEY, self._admitted, self.refusals, **self.limits)
        task = asyncio.create_task(admits.accept(self.listener))
        ready.set()
        await ended.wait()
        task.cancel()

    async def _admitted(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, peer: Peer
    ) -> None:
        assert (peer.is_local, peer.address) == (False, "127.0.0.1")
        while await reader.readline():
            writer.write(client.encode_line(messages.Done()))
        writer.close()

    def close(self) -> None:
        self.end()
        self.thread.join(WAIT)
        self.listener.close()

    def connect(self, key: SiteKey = KEY) -> ControlConnection:
        address = Address(host="127.0.0.1", port=self.port)
        return ControlConnection(RemoteController(address=address, key=key))

    def refused(self, count: int = 1) -> list[str]:
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.why) >= count, WAIT), self.why
            return self.why

    @contextmanager
    def raw(self) -> Iterator[tuple[socket.socket, str]]:
        """Connect, and get the challenge."""
        with socket.create_connection(("127.0.0.1", self.port), WAIT) as made:
            yield made, msgspec.json.decode(_line(made), type=messages.Challenge).nonce


def _line(made: socket.socket) -> bytes:
    text = b""
    while not text.endswith(b"\n") and (more := made.recv(4096)):
        text += more
    return text


@pytest.fixture
def door(request: pytest.FixtureRequest) -> Iterator[Door]:
    made = Door(**getattr(request, "param", {}))
    yield made
    made.close()


def test_both_ends_prove_the_key(door: Door) -> None:
    with door.connect() as made:
        assert made.ask(messages.GetStatus(), messages.Done) == messages.Done()
    assert door.why == []


def test_another_key_is_refused_and_the_service_goes_on(door: Door) -> None:
    with pytest.raises(PermissionError, match="not proven"):
        door.connect(OTHER)
    assert door.refused() == ["host 127.0.0.1: its proof of the site key is wrong"]
    with door.connect() as made:
        made.ask(messages.GetStatus(), messages.Done)


def test_a_proof_that_was_heard_before_is_worth_nothing(door: Door) -> None:
    """A replayed proof meets another challenge; a controller's proof does not serve a client."""
    with door.raw() as (first, challenge):
        ours = nonce()
        proof = client.encode_line(
            messages.Proof(nonce=ours, proof=KEY.proof("client", challenge, ours))
        )
        first.sendall(proof)
        answer = msgspec.json.decode(_line(first), type=messages.Proof)
    with door.raw() as (again, _):
        again.sendall(proof)
        assert b"not proven" in _line(again)
    with door.raw() as (reflecting, challenge):
        reflecting.sendall(client.encode_line(answer))
        assert b"not proven" in _line(reflecting)
    assert door.refused(2) == ["host 127.0.0.1: its proof of the site key is wrong"] * 2


def test_who_does_not_know_the_key_is_no_controller() -> None:
    """Else anybody who takes the controller's address would be told what jobs do."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def pose() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.sendall(client.encode_line(messages.Challenge(nonce="0" * 64)))
                proof = msgspec.json.decode(_line(connection), type=messages.Proof)
                connection.sendall(client.encode_line(proof))

        thread = threading.Thread(target=pose)
        thread.start()
        address = Address(host="127.0.0.1", port=listener.getsockname()[1])
        with pytest.raises(PermissionError, match="does not have the site key"):
            ControlConnection(RemoteController(address=address, key=KEY))
        thread.join(WAIT)


@pytest.mark.parametrize(
    ("sent", "why"),
    [
        (b"x" * 10_000, "too many bytes came before its proof"),
        (b"{}\n", "it sent something else than a proof"),
        (b'{"type": "Stop"}\n', "it sent something else than a proof"),
        (b"", "no proof came within"),
    ],
)
@pytest.mark.parametrize("door", [{"proof_seconds": 0.5}], indirect=True, ids=["quick"])
def test_the_unproven_are_heard_briefly(door: Door, sent: bytes, why: str) -> None:
    with door.raw() as (made, _):
        made.sendall(sent)
        assert why in door.refused()[0]
    with door.connect() as good:
        good.ask(messages.GetStatus(), messages.Done)


@pytest.mark.parametrize("door", [{"unproven_per_host": 3}], indirect=True, ids=["few"])
def test_one_address_cannot_hold_all_places(door: Door) -> None:
    silent = [socket.create_connection(("127.0.0.1", door.port), WAIT) for _ in range(3)]
    for made in silent:
        _line(made)  # it is heard
    with door.connect() as good:  # the oldest gives way: its own address is not kept out either
        good.ask(messages.GetStatus(), messages.Done)
    assert "too many connections" in door.refused()[0]
    assert [made.recv(4096) for made in silent[:1]] == [b""]
    for made in silent:
        made.close()


def test_refusals_do_not_fill_the_log(caplog: pytest.LogCaptureFixture) -> None:
    refusals = RefusalLog()
    for k in range(5 * LINES):
        refusals.note(f"number {k}")
    assert (len(caplog.records), refusals.total) == (LINES, 5 * LINES)


# The key's file.


def _key_file(folder: Path, content: bytes, mode: int = 0o600) -> Path:
    path = folder / "key"
    path.write_bytes(content)
    path.chmod(mode)
    return path


@pytest.mark.parametrize(
    ("made", "why"),
    [
        (lambda folder: _key_file(folder, b"k" * 31), "31 bytes"),
        (lambda folder: _key_file(folder, b"k" * 5000), "5000 bytes"),
        (lambda folder: _key_file(folder, b"k" * 32, 0o640), "read by others"),
        (lambda folder: folder, "not a regular file"),
        (lambda folder: folder / "none", "No such file"),
    ],
)
def test_a_key_that_is_weak_or_open_is_refused(
    tmp_path: Path, made: Callable[[Path], Path], why: str
) -> None:
    with pytest.raises(InputError, match=why):
        SiteKey.read(made(tmp_path))


def test_a_new_key_is_its_owners_alone_and_shows_nowhere(tmp_path: Path) -> None:
    path = tmp_path / "key"
    os.umask(os.umask(0o022))
    SiteKey.create(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    key = SiteKey.read(path)
    assert len(key.secret) == 32
    assert key.secret.hex() not in repr(key)
    assert repr(key.secret) not in repr(key)
    with pytest.raises(InputError, match="already exists"):
        SiteKey.create(path)
    assert key.token("ada") != key.token("bob")
