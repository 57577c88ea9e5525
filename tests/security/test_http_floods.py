"""The kill switch answers an admin whatever connections without a token do."""

import select
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import cycle
from pathlib import Path

import pytest
from live.http.api_site import ADMIN, READER, WAIT, FakeService, client, served, token_file

from penstock.live.http.api import Api
from penstock.live.http.dispatch import RequestLimits
from penstock.live.http.server import ConnectionLimits
from penstock.live.protocol.tokens import Tokens

REFUSED = b"GET /v1/jobs HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer wrong\r\n\r\n"
OPEN = b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n"
READ = REFUSED.replace(b"wrong", READER.encode())
GARBAGE = b"\x16\x03\x01\x02\x00\r\n\r\n"
HALF = b"PUT /v1/kill-switch HTTP/1.1\r\nhost: "
KINDS = {
    "idle": b"",
    "refused": REFUSED,
    "anonymous": OPEN,
    "garbage": GARBAGE,
    "half": HALF,
    "no such path": b"GET /x HTTP/1.1\r\n\r\n",
}
PATIENT = ConnectionLimits(exchange_seconds=WAIT, keep_alive_seconds=int(WAIT))

pytestmark = pytest.mark.security


def connected(where: str, text: bytes) -> socket.socket:
    host, _, port = where.removeprefix("http://").rpartition(":")
    connection = socket.create_connection((host, int(port)), WAIT)
    connection.sendall(text)
    return connection


@contextmanager
def api(folder: Path, pause: float) -> Iterator[tuple[FakeService, str]]:
    service = FakeService()
    limits = RequestLimits(pause_seconds=pause, answer_seconds=WAIT)
    tokens = Tokens.read(token_file(folder))
    with served(Api(service, tokens=tokens, limits=limits), PATIENT) as where:
        yield service, where


@pytest.mark.parametrize("text", KINDS.values(), ids=KINDS.keys())
def test_an_admin_gets_through_400_connections(tmp_path: Path, text: bytes) -> None:
    """None of them ever gets its answer in turn, and all of them came first."""
    with api(tmp_path, pause=300.0) as (service, where), ExitStack() as stack:
        for _ in range(400):
            stack.enter_context(connected(where, text))
        for on in (True, False) * 5:
            with client(where, ADMIN) as admin:
                assert admin.put("/v1/kill-switch", json={"on": on}).status_code == 200
            assert service.killed == on


def test_an_admin_gets_through_while_strangers_keep_coming(tmp_path: Path) -> None:
    over = threading.Event()

    def flood(where: str) -> None:
        texts = cycle(KINDS.values())
        held: list[socket.socket] = []
        while not over.is_set():
            try:
                held.append(connected(where, next(texts)))
            except OSError:
                continue
            if len(held) >= 400:
                held.pop(0).close()
        for connection in held:
            connection.close()

    with api(tmp_path, pause=0.01) as (service, where):
        flooding = threading.Thread(target=flood, args=[where])
        flooding.start()
        try:
            for on in (True, False) * 20:
                with client(where, ADMIN) as admin:
                    assert admin.put("/v1/kill-switch", json={"on": on}).status_code == 200
                assert service.killed == on
        finally:
            over.set()
            flooding.join()


def test_a_reader_does_not_wait_behind_strangers(tmp_path: Path) -> None:
    """Refusals and anonymous requests have lanes of their own; each is as long as its limit."""
    with api(tmp_path, pause=300.0) as (_, where), ExitStack() as stack:
        limit = RequestLimits().waiting_each
        for text in (REFUSED, OPEN):
            asking = [stack.enter_context(connected(where, text)) for _ in range(limit + 1)]
            answered, _, _ = select.select(asking, [], [], WAIT)
            assert len(answered) == 1
            assert answered[0].recv(99).startswith(b"HTTP/1.1 429 ")
        reading = stack.enter_context(connected(where, READ))
        assert not select.select([reading], [], [], 0.2)[0]  # it waits, and is not refused
