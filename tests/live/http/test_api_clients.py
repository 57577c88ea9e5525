"""Slow, idle, greedy and broken clients of the HTTP API are disconnected, and others are served."""

import asyncio
import random
import select
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest
from live.http.api_site import (
    ADMIN,
    WAIT,
    FakeService,
    client,
    controlled,
    job,
    served,
    token_file,
)

from penstock.live.http.api import Api
from penstock.live.http.dispatch import RequestLimits
from penstock.live.http.schema import Turns
from penstock.live.http.server import ConnectionLimits
from penstock.live.protocol.tokens import Tokens

PUT = (
    f"PUT /v1/mode HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {ADMIN}\r\n"
    "content-type: application/json\r\n"
)


PATIENT = ConnectionLimits(exchange_seconds=WAIT, keep_alive_seconds=int(WAIT))
"""Limits that a busy machine does not reach."""


@pytest.fixture
def service() -> FakeService:
    return FakeService()


@pytest.fixture
def closed() -> threading.Semaphore:
    """Counts the connections that have been closed."""
    return threading.Semaphore(0)


@pytest.fixture
def api(service: FakeService, tmp_path: Path) -> Api:
    """An API that waits little for a body."""
    tokens = Tokens.read(token_file(tmp_path))
    return Api(service, tokens=tokens, limits=RequestLimits(body_seconds=0.2))


@pytest.fixture
def where(api: Api) -> Iterator[str]:
    """Its address, for clients that get an answer, however late on a busy machine."""
    with served(api, PATIENT) as url:
        yield url
        assert httpx.get(f"{url}/health", timeout=WAIT, trust_env=False).status_code == 200


@pytest.fixture
def impatient(api: Api, closed: threading.Semaphore) -> Iterator[str]:
    """Its address, where clients are given half a second."""
    with served(api, ConnectionLimits(exchange_seconds=0.5), closed.release) as url:
        yield url


def connected(url: str, receive_buffer: int = 0, source: str = "") -> socket.socket:
    host, _, port = url.removeprefix("http://").rpartition(":")
    connection = socket.socket()
    if source:
        connection.bind((source, 0))
    if receive_buffer:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    connection.settimeout(WAIT)
    connection.connect((host, int(port)))
    return connection


def receive_all(connection: socket.socket) -> bytes:
    """Return everything until the server closes the connection."""
    text = b""
    try:
        while more := connection.recv(65536):
            text += more
    except ConnectionResetError:
        pass
    return text


def test_a_silent_client_is_disconnected(impatient: str) -> None:
    with connected(impatient) as idle:
        assert receive_all(idle) == b""


def send_slowly(url: str, text: str) -> bytes:
    """Send each byte in time, but never the end; return what comes back."""
    with connected(url) as slow:
        slow.sendall(text.encode())
        until = time.monotonic() + WAIT
        while not select.select([slow], [], [], 0.05)[0]:
            assert time.monotonic() < until, "it is still connected"
            slow.send(b"y")
        return receive_all(slow)


def test_a_client_that_sends_its_head_slowly_is_disconnected(impatient: str) -> None:
    assert send_slowly(impatient, "GET /health HTTP/1.1\r\nx: ") == b""


def test_a_client_that_sends_its_body_slowly_is_disconnected(where: str) -> None:
    answer = send_slowly(where, PUT + "content-length: 99\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 408 ")


def test_half_a_body_is_refused(where: str, service: FakeService) -> None:
    with connected(where) as half:
        half.sendall((PUT + 'content-length: 18\r\n\r\n{"mode":').encode())
        assert receive_all(half).startswith(b"HTTP/1.1 408 ")
    with connected(where) as half:
        half.sendall((PUT + 'content-length: 18\r\n\r\n{"mode":').encode())
    assert service.mode == "observe"


def test_a_body_without_end_is_refused(where: str) -> None:
    """It has no content-length: what counts is what has arrived."""
    piece = b"1000\r\n" + b" " * 4096 + b"\r\n"
    with connected(where) as greedy:
        greedy.sendall((PUT + "transfer-encoding: chunked\r\n\r\n").encode())
        try:
            for _ in range(10000):
                greedy.sendall(piece)
                if select.select([greedy], [], [], 0)[0]:
                    break
            else:
                pytest.fail("all of 40 MB was taken")
        except (BrokenPipeError, ConnectionResetError):
            return
        assert receive_all(greedy).startswith(b"HTTP/1.1 413 ")


def test_a_body_with_a_large_content_length_is_refused_before_it_arrives(where: str) -> None:
    with connected(where) as greedy:
        greedy.sendall((PUT + "content-length: 9999999999\r\n\r\n").encode())
        assert receive_all(greedy).startswith(b"HTTP/1.1 413 ")


def test_an_endless_head_is_refused(where: str) -> None:
    for head in (b"GET /" + b"x" * 200000, b"GET / HTTP/1.1\r\n" + b"x: y\r\n" * 40000):
        with connected(where) as greedy:
            try:
                greedy.sendall(head)
            except (BrokenPipeError, ConnectionResetError):
                continue
            answer = receive_all(greedy)
            # A reset may overtake the answer: more came than was read.
            assert answer == b"" or answer.startswith(b"HTTP/1.1 400 "), answer[:80]


def test_input_that_is_not_http_is_refused(where: str) -> None:
    chance = random.Random(5)
    texts = [chance.randbytes(chance.randrange(1, 400)) + b"\r\n\r\n" for _ in range(200)]
    texts += [b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"GET  HTTP/9\r\n\r\n", b"\r\n\r\n"]
    for text in texts:
        with connected(where) as senseless:
            senseless.sendall(text)
            senseless.shutdown(socket.SHUT_WR)
            answer = receive_all(senseless)
            assert answer == b"" or answer.startswith(b"HTTP/1.1 400 "), answer[:80]


JOBS = f"GET /v1/jobs HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {ADMIN}\r\n\r\n".encode()


def test_an_answer_that_is_not_read_is_dropped(
    impatient: str, service: FakeService, closed: threading.Semaphore
) -> None:
    """Else each would hold the memory of an answer for as long as the client likes."""
    service.listed = [job(k) for k in range(20000)]  # more than sockets' buffers hold
    with connected(impatient, receive_buffer=4096) as slow:
        slow.sendall(JOBS)
        assert closed.acquire(timeout=WAIT)


def test_answers_that_are_not_read_are_bounded_together(
    service: FakeService, closed: threading.Semaphore
) -> None:
    """Before their time is over: few of these fill the limit, and the others exceed it."""
    service.listed = [job(1)] * 60000
    with served(Api(service)) as where, client(where) as reader:
        length = len(reader.get("/v1/jobs").content)
    # Some of an answer is in the sockets' buffers, which do not count.
    limits = ConnectionLimits(unread_bytes=length, exchange_seconds=300, keep_alive_seconds=300)
    with served(Api(service), limits, closed.release) as where, ExitStack() as stack:
        for _ in range(6):
            slow = stack.enter_context(connected(where, receive_buffer=4096))
            slow.sendall(JOBS)
            assert slow.recv(1)
        assert closed.acquire(timeout=WAIT)


PROMPT = ConnectionLimits(exchange_seconds=WAIT, keep_alive_seconds=int(WAIT), young_seconds=0.0)
"""Limits under which a new connection counts as idle at once."""


def test_idle_clients_give_way(service: FakeService) -> None:
    """Idle connections are limited, and do not keep others out."""
    with served(Api(service), PROMPT) as where, ExitStack() as stack:
        many = ConnectionLimits().connections + 100
        idle = [stack.enter_context(connected(where)) for _ in range(many)]
        with client(where) as honest:
            for _ in range(5):
                assert honest.get("/v1/status").status_code == 200
            # It came last and sent requests: the oldest were closed.
            cut = [c for c in idle if select.select([c], [], [], 0)[0]]
            assert len(cut) >= 100
            assert cut == idle[: len(cut)]


def test_those_of_the_address_with_most_connections_give_way_first(service: FakeService) -> None:
    with served(Api(service), PROMPT) as where, ExitStack() as stack:
        few = [stack.enter_context(connected(where, source="127.0.0.2")) for _ in range(20)]
        many = [stack.enter_context(connected(where)) for _ in range(200)]
        for connection in many[:60]:  # those of 127.0.0.2 are the oldest
            assert receive_all(connection) == b""
        assert not select.select(few, [], [], 0)[0]


def test_busy_connections_are_not_closed() -> None:
    requests = threading.Semaphore(0)

    class Busy(FakeService):
        async def waiting(self) -> Turns:
            requests.release()
            await asyncio.Event().wait()
            return Turns()

    limits = ConnectionLimits(exchange_seconds=WAIT, connections=20, burst=20, young_seconds=0.0)
    with served(Api(Busy()), limits) as where, ExitStack() as stack:
        asking = [stack.enter_context(connected(where)) for _ in range(limits.connections)]
        for connection in asking:
            connection.sendall(b"GET /v1/waiting HTTP/1.1\r\nhost: localhost\r\n\r\n")
        for _ in asking:
            assert requests.acquire(timeout=WAIT)
        assert receive_all(stack.enter_context(connected(where))) == b""
        assert not select.select(asking, [], [], 0)[0]


def test_a_change_does_not_wait_behind_reads(service: FakeService, tmp_path: Path) -> None:
    """A flood of reads, and of wrong tokens, must not keep an admin from the kill switch."""
    limits = RequestLimits(pause_seconds=300.0)
    tokens = Tokens.read(token_file(tmp_path))
    with served(Api(service, tokens=tokens, limits=limits), PATIENT) as where, ExitStack() as stack:
        asking = [stack.enter_context(connected(where)) for _ in range(20)]
        for connection in asking:
            connection.sendall(JOBS if connection.fileno() % 2 else JOBS.replace(b"Bearer", b"X"))
        with client(where, ADMIN) as admin:
            assert admin.put("/v1/kill-switch", json={"on": True}).status_code == 200
        assert service.killed
        assert not select.select(asking, [], [], 0)[0]


def test_a_connection_serves_one_request_after_the_other(where: str) -> None:
    with connected(where) as connection:
        for _ in range(50):
            connection.sendall(b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n")
            text = b""
            while not text.endswith(b"}"):
                more = connection.recv(65536)
                assert more, f"closed after {text!r}"
                text += more
            assert text.startswith(b"HTTP/1.1 200 ")


@pytest.mark.security
def test_a_controller_under_attack_keeps_its_memory_and_its_service(tmp_path: Path) -> None:
    options = {"token_file": str(token_file(tmp_path)), "io_nodes": 1}
    with controlled(tmp_path, **options) as (_, where):

        def get(path: str) -> str:
            with client(where, ADMIN) as admin:
                answer = admin.get(path)
            assert answer.status_code == 200
            return answer.text

        def resident() -> float:
            lines = get("/metrics").splitlines()
            (value,) = (x.split()[1] for x in lines if x.startswith("process_resident_memory"))
            return float(value)

        get("/v1/status")
        before = resident()
        for _ in range(3):
            with ExitStack() as stack:
                for _ in range(200):
                    half = stack.enter_context(connected(where))
                    half.sendall(b"GET / HTTP/1.1\r\nx: " + b"y" * 15000)
                for _ in range(50):
                    greedy = stack.enter_context(connected(where))
                    greedy.sendall((PUT + "content-length: 60000\r\n\r\n").encode() + b" " * 50000)
                get("/v1/status")
                get("/health")
        # 250 clients with 16 to 64 KiB each would be 6 MB; what is kept of all 750 is less.
        grown = resident() - before
        print(f"memory grew by {grown / 2**20:.1f} MiB")
        assert grown < 16e6
