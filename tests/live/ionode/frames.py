"""A client of the wire format, as small as can be: one connection, one request at a time."""

import hmac
import os
import socket
import struct
from dataclasses import dataclass
from pathlib import Path

from limits import HANG

MAGIC, LARGEST = 0x32574E50, 4 << 20
HELLO, OPEN, WRITE, READ, FSYNC, FDATASYNC, CLOSE, PROVE = range(1, 9)
REQUEST = struct.Struct("<IIIIQII")
INTRODUCTION = struct.Struct("<QQII64s32s")
REPLY = struct.Struct("<IIqQQ")
NONCE_BYTES = PROOF_BYTES = 32
TOKEN = b"t" * 32
PATIENCE = HANG


def proof(role: bytes, *, token: bytes, hello: bytes, reply: bytes, nonce: bytes) -> bytes:
    """Return what shows that one side (b"node", b"client") has the token and saw this greeting."""
    return hmac.digest(token, role.ljust(8, b"\0") + hello + reply + nonce, "sha256")


@dataclass(frozen=True)
class Reply:
    number: int
    result: int
    boot: int
    node: int


class GoneError(Exception):
    """The I/O node closed the connection."""


@dataclass(frozen=True, slots=True)
class Carrier:
    """Where an I/O node carries the data of clients on other hosts."""

    port: int
    root: Path
    host: str = "127.0.0.1"
    source: str = ""  # the client's own address


class Client:
    """A connection to an I/O node."""

    def __init__(
        self,
        carrier: Carrier,
        *,
        session: int = 1,
        job: bytes = b"job",
        token: bytes = TOKEN,
        hello: bool = True,
        check: bool = True,
        buffer: int = 0,
    ) -> None:
        self.root = carrier.root
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self.socket.settimeout(PATIENCE)
        if buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        self.number = 0
        self.job, self.session, self.token = job, session, token
        self.check = check  # the I/O node's proof
        self.greeting: Reply | None = None
        try:
            if carrier.source:
                self.socket.bind((carrier.source, 0))
            self.socket.connect((carrier.host, carrier.port))
            # As the client library's: a request is not held back for its data's acknowledgement.
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if hello:
                self.greeting = self.hello()
        except BaseException:
            self.close()  # else the collector complains of it in some later test
            raise

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.socket.close()

    def hello(self) -> Reply:
        """Greet, check the I/O node's proof, give ours; return the reply to the greeting."""
        introduction = INTRODUCTION.pack(
            self.session, 7, os.getpid(), 0, self.job, os.urandom(NONCE_BYTES)
        )
        greeting = self.ask(HELLO, length=len(introduction), follows=introduction)
        hello = REQUEST.pack(MAGIC, HELLO, self.number, 0, 0, len(introduction), 0) + introduction
        reply = REPLY.pack(MAGIC, greeting.number, greeting.result, greeting.boot, greeting.node)
        nonce, proof_of_node = self.receive(NONCE_BYTES), self.receive(PROOF_BYTES)
        seen = {"hello": hello, "reply": reply, "nonce": nonce}
        if self.check:
            assert proof_of_node == proof(b"node", token=self.token, **seen)
        ours = proof(b"client", token=self.token, **seen)
        assert self.ask(PROVE, length=len(ours), follows=ours) == Reply(self.number, 0, 0, 0)
        return greeting

    def send(
        self,
        operation: int,
        *,
        file: int = 0,
        offset: int = 0,
        length: int = 0,
        flags: int = 0,
        follows: bytes = b"",
        magic: int = MAGIC,
    ) -> None:
        self.number += 1
        self.socket.sendall(
            REQUEST.pack(magic, operation, self.number, file, offset, length, flags) + follows
        )

    def receive(self, length: int) -> bytes:
        parts = bytearray()
        while len(parts) < length:
            try:
                part = self.socket.recv(length - len(parts))
            except ConnectionResetError:
                part = b""
            if not part:
                self.close()
                raise GoneError
            parts += part
        return bytes(parts)

    def reply(self) -> Reply:
        magic, number, result, boot, node = REPLY.unpack(self.receive(REPLY.size))
        assert magic == MAGIC
        assert number == self.number
        return Reply(number, result, boot, node)

    def ask(self, operation: int, **fields: object) -> Reply:
        try:
            self.send(operation, **fields)  # type: ignore[arg-type]
        except (BrokenPipeError, ConnectionResetError) as error:
            self.close()
            raise GoneError from error
        return self.reply()

    def open(
        self, path: Path | str, flags: int = os.O_RDWR, *, inode: int | None = None, root: int = 0
    ) -> int:
        """Return a handle, or the error number, negated."""
        file = self.root / path
        inode = file.stat().st_ino if inode is None else inode
        name = os.fsencode(path if isinstance(path, str) else path.relative_to(self.root))
        return self.ask(
            OPEN, file=root, offset=inode, length=len(name), flags=flags, follows=name
        ).result

    def write(self, file: int, data: bytes, offset: int = 0, flags: int = 0) -> int:
        return self.ask(
            WRITE, file=file, offset=offset, length=len(data), flags=flags, follows=data
        ).result

    def read(self, file: int, length: int, offset: int = 0) -> bytes | int:
        result = self.ask(READ, file=file, offset=offset, length=length).result
        return result if result < 0 else self.receive(result)
