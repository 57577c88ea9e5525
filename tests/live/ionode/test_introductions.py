"""How a client and an I/O node of another host prove to each other that they have the token."""

import os
import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Self

import pytest
from live.ionode.frames import (
    HELLO,
    INTRODUCTION,
    MAGIC,
    NONCE_BYTES,
    PATIENCE,
    PROOF_BYTES,
    PROVE,
    REPLY,
    REQUEST,
    TOKEN,
    Carrier,
    Client,
    GoneError,
    proof,
)

from penstock.live.ionode._ionode import Node

pytestmark = pytest.mark.security

GREETING = REQUEST.size + INTRODUCTION.size


@pytest.fixture
def node() -> Iterator[Node]:
    node = Node(0, 5)
    yield node
    node.stop(5.0)


@pytest.fixture
def at(node: Node, tmp_path: Path) -> Carrier:
    port = node.listen_tcp("127.0.0.1", 0, TOKEN, [str(tmp_path)])
    node.start()
    return Carrier(port, tmp_path)


class Introduction:
    """A greeting and its answer, byte by byte; `flip` numbers a bit of the greeting."""

    def __init__(self, at: Carrier, flip: int | None = None) -> None:
        self.client = Client(at, hello=False)
        introduction = INTRODUCTION.pack(1, 2, os.getpid(), 0, b"job", os.urandom(NONCE_BYTES))
        self.hello = REQUEST.pack(MAGIC, HELLO, 1, 0, 0, len(introduction), 0) + introduction
        self.client.socket.sendall(self.hello if flip is None else flipped(self.hello, flip))
        self.reply = self.client.receive(REPLY.size)
        self.nonce = self.client.receive(NONCE_BYTES)
        self.proof = self.client.receive(PROOF_BYTES)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.client.close()

    def expected(self, role: bytes, token: bytes = TOKEN) -> bytes:
        return proof(role, token=token, hello=self.hello, reply=self.reply, nonce=self.nonce)

    def prove(self, proof: bytes, flip: int | None = None) -> bytes:
        """Send a proof; return the answer."""
        frame = REQUEST.pack(MAGIC, PROVE, 2, 0, 0, len(proof), 0) + proof
        self.client.socket.sendall(frame if flip is None else flipped(frame, flip))
        return self.client.receive(REPLY.size)


def flipped(data: bytes, bit: int) -> bytes:
    changed = bytearray(data)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def test_the_io_node_proves_first(at: Carrier) -> None:
    with Introduction(at) as introduction, Introduction(at) as another:
        assert introduction.proof == introduction.expected(b"node")
        assert introduction.prove(introduction.expected(b"client")) == REPLY.pack(MAGIC, 2, 0, 0, 0)
        assert another.nonce != introduction.nonce


@pytest.mark.parametrize("which", ["of another token", "its own", "nothing", "of another greeting"])
def test_a_wrong_or_repeated_proof_is_refused(at: Carrier, node: Node, which: str) -> None:
    with Introduction(at) as before, Introduction(at) as introduction:
        wrong = {
            "of another token": introduction.expected(b"client", bytes(32)),
            "its own": introduction.proof,
            "nothing": bytes(PROOF_BYTES),
            "of another greeting": before.expected(b"client"),
        }
        with pytest.raises(GoneError):
            introduction.prove(wrong[which])
        assert node.measure()["refused"] == 1


def test_a_recording_is_refused_by_another_io_node(at: Carrier, tmp_path: Path) -> None:
    """Byte by byte what a client said that was admitted."""
    with Introduction(at) as first:
        ours = first.expected(b"client")
        first.prove(ours)
    other = Node(1, 6)
    port = other.listen_tcp("127.0.0.1", 0, TOKEN, [str(tmp_path)])
    other.start()
    client = Client(Carrier(port, tmp_path), hello=False)
    client.socket.sendall(first.hello)
    client.receive(REPLY.size + NONCE_BYTES + PROOF_BYTES)
    client.socket.sendall(REQUEST.pack(MAGIC, PROVE, 2, 0, 0, PROOF_BYTES, 0) + ours)
    with pytest.raises(GoneError):
        client.receive(REPLY.size)
    other.stop(5.0)


def test_a_flipped_bit_of_a_greeting_shows(at: Carrier) -> None:
    """The I/O node refuses it, or proves another greeting than ours and refuses our proof."""
    for bit in range(0, 8 * GREETING, 5):
        with suppress(GoneError), Introduction(at, flip=bit) as introduction:
            assert introduction.proof != introduction.expected(b"node"), bit
            introduction.prove(introduction.expected(b"client"))
            pytest.fail(f"admitted with bit {bit} flipped")


def test_a_flipped_bit_of_a_proof_is_refused(at: Carrier) -> None:
    """But of its number: the client then sees another one than its own in the reply."""
    for bit in range(8 * (REQUEST.size + PROOF_BYTES)):
        with Introduction(at) as introduction:
            ours = introduction.expected(b"client")
            if 8 <= bit // 8 < 12:
                assert introduction.prove(ours, flip=bit) != REPLY.pack(MAGIC, 2, 0, 0, 0)
            else:
                with pytest.raises(GoneError):
                    introduction.prove(ours, flip=bit)


def test_a_client_of_the_last_version_is_refused(at: Carrier, node: Node) -> None:
    with socket.create_connection(("127.0.0.1", at.port), PATIENCE) as client:
        client.sendall(REQUEST.pack(0x31574E50, HELLO, 1, 0, 0, 120, 0) + bytes(120))
        with suppress(ConnectionResetError):
            assert client.recv(1) == b""
    assert node.measure()["refused"] == 1
