"""An I/O node as its clients see it: a real process, spoken to in frames."""

import errno
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from live.ionode import frames
from live.ionode.frames import (
    CLOSE,
    FDATASYNC,
    FSYNC,
    HELLO,
    OPEN,
    PROVE,
    READ,
    WRITE,
    Carrier,
    Client,
    GoneError,
)
from live.ionode.real_node import PATIENCE, RealNode, Serve

from penstock.errors import InputError
from penstock.live.ionode import _ionode, process
from penstock.live.protocol import messages

RWF_HIPRI, RWF_DSYNC, RWF_SYNC, RWF_APPEND = 1, 2, 4, 16


def test_it_says_who_it_is(node: RealNode) -> None:
    with Client(node.carrier) as client:
        assert client.greeting is not None
        assert client.greeting.node == node.announcement["id"] == node.measured().node
        text = Path("/proc/sys/kernel/random/boot_id").read_text().replace("-", "")
        assert client.greeting.boot == int(text[:16], 16)


def test_every_operation(node: RealNode, file: Path) -> None:
    before = node.measured()
    with Client(node.carrier) as client:
        handle = client.open(file)
        assert client.write(handle, b"penstock", 3) == 8
        assert client.write(handle, b"PEN", 3, RWF_DSYNC | RWF_SYNC) == 3
        assert file.read_bytes() == b"\0\0\0PENstock"
        assert client.read(handle, 100, 3) == b"PENstock", "a short read is returned as it is"
        assert client.read(handle, 100, 11) == b""
        assert client.read(handle, 0) == b""
        for operation in (FSYNC, FDATASYNC, CLOSE):
            assert client.ask(operation, file=handle).result == 0
        assert client.ask(CLOSE, file=handle).result == -errno.EBADF
    after = node.until(lambda measured: measured.connections == 0)
    assert after.write_bytes - before.write_bytes == 11
    assert after.read_bytes - before.read_bytes == 8
    assert after.syncs - before.syncs == 2
    assert after.groups["job"] - before.groups.get("job", 0) == 19
    assert after.files == after.sessions == 0


def test_the_largest_requests(node: RealNode, file: Path) -> None:
    data = os.urandom(frames.LARGEST)
    with Client(node.carrier) as client:
        handle = client.open(file)
        assert client.write(handle, data) == len(data)
        assert file.read_bytes() == data
        assert client.read(handle, len(data)) == data


def test_connections_of_a_process_share_its_files(node: RealNode, file: Path) -> None:
    with Client(node.carrier, session=5) as first, Client(node.carrier, session=5) as second:
        handle = first.open(file)
        first.close()
        assert second.write(handle, b"x") == 1
        with Client(node.carrier, session=6) as other:
            assert other.write(handle, b"y") == -errno.EBADF
    node.until(lambda measured: measured.files == 0)


@pytest.mark.security
@pytest.mark.parametrize("flags", [os.O_TRUNC, os.O_APPEND, os.O_CREAT])
def test_opens_that_are_refused(node: RealNode, file: Path, flags: int) -> None:
    file.write_bytes(b"kept")
    with Client(node.carrier) as client:
        assert client.open(file, os.O_RDWR | flags) == -errno.EINVAL
        assert file.read_bytes() == b"kept"
        assert client.open(file) >= 0, "the connection lives on"


@pytest.mark.security
def test_only_regular_files_are_served(node: RealNode, folder: Path) -> None:
    """And nothing blocks: opening a FIFO would wait for its other end."""
    fifo, link, directory = folder / "fifo", folder / "zero", folder / "directory"
    os.mkfifo(fifo)
    directory.mkdir()
    link.symlink_to("/dev/zero")
    with Client(node.carrier) as client:
        assert client.open(fifo, os.O_RDONLY) == -errno.ESTALE
        # Landlock, where the kernel has it, lets nothing but files be opened.
        assert client.open(directory, os.O_RDONLY) in (-errno.ESTALE, -errno.EACCES)
        assert client.open(link, os.O_RDONLY) == -errno.EXDEV
    for path in (fifo, link):
        path.unlink()
    directory.rmdir()


@pytest.mark.security
def test_files_of_the_kernel_are_not_served(folder: Path) -> None:
    """They show a process of privilege more than they would show to its client."""
    node = _ionode.Node(0, 1)
    port = node.listen_tcp("127.0.0.1", 0, frames.TOKEN, ["/proc", "/sys"])
    node.start()
    with Client(Carrier(port, Path("/proc"))) as client:
        assert client.open(f"{os.getpid()}/maps", os.O_RDONLY) == -errno.EINVAL
        assert client.open("kallsyms", os.O_RDONLY) == -errno.EINVAL
    with Client(Carrier(port, Path("/sys"))) as client:
        assert client.open("kernel/uevent_seqnum", os.O_RDONLY, root=1) == -errno.EINVAL
    assert node.drain(PATIENCE)
    assert node.stop()


def test_errors_are_those_of_the_call(node: RealNode, file: Path) -> None:
    with Client(node.carrier) as client:
        reading = client.open(file, os.O_RDONLY)
        assert client.write(reading, b"x") == -errno.EBADF
        handle = client.open(file)
        assert client.write(99, b"x") == -errno.EBADF
        assert client.write(handle, b"x", 2**64 - 1) == -errno.EINVAL
        assert client.write(handle, b"x", 2**63 - 1) == -errno.EINVAL
        assert client.write(handle, b"x", flags=RWF_APPEND) == -errno.EOPNOTSUPP
        assert client.write(handle, b"x", flags=RWF_HIPRI) == -errno.EOPNOTSUPP
        assert client.write(handle, b"x") == 1


def test_a_file_size_limit_is_an_error_and_not_the_end(serve: Serve, file: Path) -> None:
    node = serve(file_size=4096, carries=file.parent)
    with Client(node.carrier) as client:
        handle = client.open(file)
        assert client.write(handle, b"x" * 8192) == 4096, "a short write is returned as it is"
        assert client.write(handle, b"x", 4096) == -errno.EFBIG
        assert client.write(handle, b"y", 4095) == 1


def early(client: Client) -> None:
    """A second request before the first is answered."""
    request = frames.REQUEST.pack(frames.MAGIC, FSYNC, 7, 0, 0, 0, 0)
    client.socket.sendall(request + request)
    for _ in range(3):  # the first may be answered
        client.receive(frames.REPLY.size)


def unintroduced(at: Carrier, **fields: Any) -> Client:
    return Client(at, hello=False, **fields)


HOSTILE: dict[str, Callable[[Carrier], object]] = {
    "magic": lambda at: Client(at).ask(FSYNC, magic=1),
    "operation": lambda at: Client(at).ask(99),
    "no-hello": lambda at: unintroduced(at).ask(FSYNC),
    "second-hello": lambda at: Client(at).hello(),
    "oversize": lambda at: Client(at).ask(READ, length=frames.LARGEST + 1),
    "bytes-of-a-sync": lambda at: Client(at).ask(FSYNC, length=1),
    "open-without-path": lambda at: Client(at).ask(OPEN, flags=os.O_RDWR),
    "endless-path": lambda at: Client(at).ask(OPEN, length=4097, follows=bytes(4097)),
    "early": lambda at: early(Client(at)),
    "no-token": lambda at: unintroduced(at, token=bytes(32), check=False).hello(),
    "proof-first": lambda at: unintroduced(at).ask(PROVE, length=32, follows=bytes(32)),
    "short-hello": lambda at: unintroduced(at).ask(HELLO, length=119, follows=bytes(119)),
    "nameless-job": lambda at: unintroduced(at, job=b"").hello(),
    "endless-job": lambda at: unintroduced(at, job=b"j" * 64).hello(),
}


@pytest.mark.security
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_frames_end_their_connection_alone(node: RealNode, file: Path, name: str) -> None:
    with Client(node.carrier) as bystander:
        handle = bystander.open(file)
        before = node.measured()
        descriptors = node.descriptors()
        with pytest.raises(GoneError):
            HOSTILE[name](node.carrier)
        after = node.until(lambda measured: measured.connections == before.connections)
        assert after.refused == before.refused + 1
        # What came with the frame is closed with its connection, a moment after it was counted.
        node.until(lambda _: node.descriptors() == descriptors)
        assert bystander.write(handle, b"x") == 1


def test_frames_may_come_in_pieces(node: RealNode, file: Path) -> None:
    with Client(node.carrier) as client:
        handle = client.open(file)
        client.number += 1
        frame = frames.REQUEST.pack(frames.MAGIC, WRITE, client.number, handle, 0, 6, 0)
        for byte in frame + b"slowly":
            client.socket.sendall(bytes([byte]))
        assert client.reply().result == 6


def test_a_truncated_frame_is_never_begun(node: RealNode, file: Path) -> None:
    requests = node.measured().requests
    with Client(node.carrier) as client:
        handle = client.open(file)
        frame = frames.REQUEST.pack(frames.MAGIC, WRITE, 1, handle, 0, 4, 0)
        client.socket.sendall(frame + b"hal")
    after = node.until(lambda measured: measured.connections == 0)
    assert (after.requests - requests, after.sessions, after.files) == (2, 0, 0)
    assert file.read_bytes() == b""


def test_handles_and_connections_are_bounded(folder: Path, file: Path) -> None:
    node = _ionode.Node(0, 1, connections=2, handles=3)
    port = node.listen_tcp("127.0.0.1", 0, frames.TOKEN, [str(folder)])
    node.start()
    at = Carrier(port, folder)
    with Client(at) as first, Client(at) as second:
        assert [first.open(file) for _ in range(4)] == [0, 1, 2, -errno.EMFILE]
        assert second.ask(CLOSE, file=1).result == 0
        assert second.open(file) == 1
        with pytest.raises(GoneError):
            Client(at)
        with Client(at, job=b"another"):
            pass
    assert node.measure()["refused"] == 1
    assert node.drain(PATIENCE)
    assert node.stop()


def test_the_window_that_is_told_is_the_one_that_was_set() -> None:
    """A tuner's reward counts only if both are equal: a cut nanosecond loses it for good."""
    node = _ionode.Node(0, 1)
    assert node.settings()["window"] == 1e-3
    literal = [float(f"{k}e-6") for k in range(1, 1000)]
    literal += [float(f"{k}e-4") for k in range(1, 100)] + [
        float(f"{k}e-3") for k in range(1, 1000)
    ]
    computed = [k * 1e-6 for k in range(1, 1000)] + [k * 1e-3 for k in range(1, 1000)]
    for window in (*literal, *computed, 1.0, 60.0):
        node.configure({"window": window})
        assert node.settings()["window"] == window


@pytest.mark.parametrize("window", [0.0, -1e-3, 1e-10, 60.1, 1e300, math.inf, -math.inf, math.nan])
def test_windows_that_cannot_be_change_nothing(window: float) -> None:
    node = _ionode.Node(0, 1, settings={"window": 2e-3})
    with pytest.raises(ValueError, match="window"):
        node.configure({"window": window})
    with pytest.raises(ValueError, match="window"):
        _ionode.Node(0, 1, settings={"window": window})
    assert node.settings()["window"] == 2e-3


def test_invalid_control_messages(node: RealNode) -> None:
    answer = node.ask(messages.Settings(scheduler="twin"))
    assert answer == messages.Failure(error="unknown scheduler 'twin'; did you mean 'twins'?")
    assert isinstance(node.ask(messages.Settings(quantum=0)), messages.Failure)
    assert isinstance(node.ask(messages.SetWeights(weights={"job": -1.0})), messages.Failure)
    assert isinstance(
        node.ask(messages.SetWeights(weights={"not-yet-here": 0.0})), messages.Failure
    )
    with Client(node.carrier, job=b"not-yet-here") as client:
        assert client.greeting is not None
    assert isinstance(node.ask(messages.GetStatus()), messages.Failure)
    assert node.ask(messages.SetWeights(weights={"job": 2.0})) == messages.Done()
    assert node.ask(messages.SetWeights(weights={})) == messages.Done()


def test_a_socket_in_use_is_not_taken(node: RealNode) -> None:
    options = process.IONode(socket=node.socket, control=node.folder / "other")
    with pytest.raises(InputError, match="another process serves"):
        options.serve(lambda *_: None)
