"""Hostile HTTP: bytes that are nearly requests, at the API's own port.

`PYTHONPATH=tests python -m fuzz.http_bytes --cases 20000 --seed 1`. A case is one connection. What
must hold: it ends, each answer in it is whole, none is a 5xx, and an administrator is served
afterwards. Requests that are HTTP are tests/live/http/test_api_schema.py's.
"""

import asyncio
import tempfile
from contextlib import suppress
from pathlib import Path
from random import Random

import h11
from fuzz.command import Problems, run_fuzzer
from fuzz.odd import BYTES, VALUES
from limits import HANG
from live.http.api_site import ADMIN, READER, FakeService, client, served, token_file

from penstock.live.http.api import Api
from penstock.live.http.dispatch import RequestLimits
from penstock.live.http.server import ConnectionLimits
from penstock.live.protocol.tokens import Tokens

AT_A_TIME = 16
CASES_PER_CHECK = 1000
SECONDS = 0.3
"""Of silence, after which a connection is closed: most cases leave a request unfinished."""
METHODS = (b"GET", b"PUT", b"POST", b"DELETE", b"HEAD", b"OPTIONS", b"PRI", b"get", b"G\0T", b"")
PATHS = (b"/v1/jobs", b"/v1/jobs/job.1", b"/v1/jobs/job.1/io-nodes", b"/v1/kill-switch",
         b"/metrics", b"/health", b"/v1/modes", b"/v1/modes/bob", b"/openapi.json", b"/", b"*",
         b"//", b"/%00", b"/v1/jobs/%ff%fe", b"/v1/jobs/../../etc/passwd", b"/v1/jobs?x=1&x=2",
         b"http://a/health", b"/" + b"a" * 20_000, b"/?" + b"&" * 9000, b"/v1/jobs/" + b"%2e" * 500,
         b"/\xff", b"")  # fmt: skip
VERSIONS = (b"HTTP/1.1", b"HTTP/1.1", b"HTTP/1.1", b"HTTP/1.0", b"HTTP/2.0", b"HTTP/9.9", b"", b"X")
HEADERS = (
    b"host: localhost", b"host: localhost", b"host: evil.example", b"host:", b"host: a\0b",
    b"authorization: Bearer " + ADMIN.encode(), b"authorization: Bearer " + READER.encode(),
    b"authorization: Bearer \xff", b"authorization: Bearer", b"authorization:",
    b"content-type: application/json", b"content-type: text/plain", b"content-type: \xff/;=",
    b"connection: close", b"connection: keep-alive, upgrade", b"upgrade: websocket",
    b"expect: 100-continue", b"expect: 200-ok", b"transfer-encoding: chunked",
    b"transfer-encoding: gzip, chunked", b"transfer-encoding: identity", b"te: trailers",
    b"content-length: -1", b"content-length: 0x10", b"content-length: 1, 1", b"content-length: 5",
    b"content-length: 99999999999999999999999", b"content-length: 18446744073709551616",
    b"content-length: \xb2", b"origin: http://evil.example", b"cookie: " + b"a" * 9000,
    b"x: " + b"b" * 20_000, b": empty", b" folded", b"x : y", b"x\0: y", b"\xff: y", b"no colon",
    b"range: bytes=0-", b"if-modified-since: never", b"x-http-method-override: PUT",
)  # fmt: skip
BODIES = (b'{"on":true}', b'{"mode":"enforce"}', b'{"io_nodes":[0],"stripe":0}', b"", b"{", b"\xff",
          b"x" * 300_000)  # fmt: skip
CHUNKS = (b"5\r\nhello\r\n0\r\n\r\n", b"0\r\n\r\n", b"-1\r\n", b"f" * 20 + b"\r\nx", b"5\r\nhe",
          b"5;" + b"e" * 9000 + b"\r\nhello\r\n0\r\n\r\n", b"G\r\n", b"0\r\nx: y\r\n\r\n",
          b"1\n1\n0\n\n")  # fmt: skip


def request(random: Random) -> bytes:
    """Return a request, or what is nearly one."""
    end = random.choice((b"\r\n",) * 8 + (b"\n", b"\r"))
    line = b" ".join(map(random.choice, (METHODS, PATHS, VERSIONS)))
    lines = [line, *random.choices(HEADERS, k=random.randrange(7))]
    if random.random() < 0.02:
        lines += [b"a: b"] * 5000
    body = random.choice((*BODIES, *CHUNKS, random.choice(VALUES)))
    match random.randrange(4):
        case 0:
            lines.append(
                b"content-length: %d" % random.choice((len(body), len(body) + 1, 1, 10**9))
            )
        case 1:
            lines += [b"transfer-encoding: chunked", b"content-length: 3"]
        case 2:
            body = b""
    text = end.join(lines) + 2 * end + body
    if random.random() < 0.2:
        at = random.randrange(len(text) + 1)
        text = text[:at] + random.choice((*BYTES, random.randbytes(20), b"")) + text[at + 1 :]
    return text[: random.randrange(len(text))] if random.random() < 0.1 else text


async def converse(where: tuple[str, int], random: Random) -> None:
    """Send some requests over one connection, and check what is answered."""
    pipelined = [request(random) for _ in range(random.choice((1, 1, 1, 2, 5)))]
    silent = random.random() < 0.02
    reader, writer = await asyncio.open_connection(*where)
    answered = bytearray()
    with suppress(OSError):
        for text in pipelined:
            writer.write(text)
            if random.random() < 0.3:
                await asyncio.sleep(0)
        if not silent:
            writer.write_eof()
        while part := await reader.read(1 << 16):
            answered += part
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()
    check(bytes(answered), pipelined)


def check(answered: bytes, sent: list[bytes]) -> None:
    """Check that only answers were sent, and no 5xx; one may be cut off by the end."""
    parser = h11.Connection(h11.CLIENT)
    parser.send(h11.Request(method="GET", target="/", headers=[("host", "x")]))
    if not answered:
        return
    assert answered.startswith(b"HTTP/1.1 "), (answered[:200], sent)
    for status in (b"HTTP/1.1 5", b"Traceback"):
        assert status not in answered, (answered[:2000], sent)
    parser.receive_data(answered)
    event = parser.next_event()
    while isinstance(event, h11.InformationalResponse):
        event = parser.next_event()
    assert isinstance(event, h11.Response), (event, answered[:200], sent)


def fuzz(cases: int, seed: int) -> None:
    """Try some cases; AssertionError: what must hold does not."""
    random = Random(seed)
    limits = ConnectionLimits(exchange_seconds=SECONDS, keep_alive_seconds=1)
    with tempfile.TemporaryDirectory(prefix="fz", dir="/dev/shm") as folder:
        tokens = Tokens.read(token_file(Path(folder)))
        service = FakeService()
        waits = RequestLimits(pause_seconds=0.0, body_seconds=SECONDS)
        api = Api(service, tokens=tokens, limits=waits)
        with Problems() as problems, served(api, limits) as where:
            host, _, port = where.removeprefix("http://").rpartition(":")

            async def some(count: int) -> None:
                async with asyncio.timeout(HANG):
                    await asyncio.gather(
                        *(converse((host, int(port)), random) for _ in range(count))
                    )

            async def all_of(count: int) -> None:
                for _ in range(0, count, AT_A_TIME):
                    await some(AT_A_TIME)

            for first in range(0, cases, CASES_PER_CHECK):
                asyncio.run(all_of(min(CASES_PER_CHECK, cases - first)))
                problems.check()
                with client(where, ADMIN) as admin:
                    assert admin.put("/v1/kill-switch", json={"on": True}).status_code == 200
                    assert service.killed
                    assert admin.put("/v1/kill-switch", json={"on": False}).status_code == 200


if __name__ == "__main__":
    run_fuzzer("HTTP", fuzz, cases=5_000)
