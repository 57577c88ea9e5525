"""Whatever comes over an I/O node's control socket, it answers the next who asks."""

import random
import socket

import msgspec
import pytest
from limits import HANG
from live.conftest import serve
from live.ionode.real_node import RealNode, Serve

from penstock.live.protocol import messages

__all__ = ["serve"]
pytestmark = pytest.mark.security
SOUND: list[messages.Message] = [
    messages.Settings(scheduler="fifo", window=0.01, quantum=4096),
    messages.SetWeights(weights={"job": 2.0}),
    messages.GetCounters(),
    messages.GetObservation(),
]
ODD = [
    b"",
    b"\0" * 100,
    b"\xff\xfe",
    b"null",
    b"[]",
    b'{"type": 7}',
    b'{"type": "Settings", "window": 1e999, "quantum": -1}',
    b'{"type": "Settings", "servers": 4294967296, "depth": 99999999999999999999}',
    b'{"type": "SetWeights", "weights": {"a": "x"}}',
    b"[" * 100_000,
    b'{"type": "SetWeights", "weights": ' + b'{"a": ' * 50_000,
    b"x" * (2 << 20),
]


def say(node: RealNode, *lines: bytes) -> None:
    """Send lines over a connection of their own, and wait until it ends or each is answered."""
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(HANG)
        client.connect(str(node.control))
        try:
            client.sendall(b"".join(line + b"\n" for line in lines))
            client.shutdown(socket.SHUT_WR)
            while client.recv(1 << 16):
                pass
        except (BrokenPipeError, ConnectionResetError):
            pass


def test_settings_that_cannot_be(serve: Serve) -> None:
    """Also for the controller of another host, whose connection they must not end."""
    node = serve()
    for settings in (
        messages.Settings(servers=1 << 32),
        messages.Settings(quantum=1 << 64),
        messages.Settings(quantum=-1),
        messages.Settings(window=1e300),
    ):
        assert isinstance(node.ask(settings), messages.Failure), settings
    assert node.measured().requests == 0


@pytest.mark.parametrize("line", ODD, ids=range(len(ODD)))
def test_odd_lines(serve: Serve, line: bytes) -> None:
    node = serve()
    say(node, line)
    assert node.measured().requests == 0


def test_lines_that_were_changed(serve: Serve) -> None:
    node, chance = serve(), random.Random(7)
    for _ in range(100):
        lines = []
        for message in chance.choices(SOUND, k=10):
            line = bytearray(msgspec.json.encode(message))
            for _ in range(chance.randrange(4)):
                place = chance.randrange(len(line))
                if chance.random() < 0.5:
                    line[place] = chance.choice(b'0123456789-"{}[]:,.eE\\\0\xff')
                else:
                    del line[place : place + chance.randrange(8)]
                    line = line or bytearray(b"{")
            lines.append(bytes(line).replace(b"\n", b" "))
        say(node, *lines, lines[0][: len(lines[0]) // 2])
    assert node.measured().requests == 0
