"""Whom an I/O node serves: users of its host, and clients on other hosts."""

import errno
import os
import time
from pathlib import Path

import pytest
from limits import within
from live.ionode import frames
from live.ionode.frames import CLOSE, FSYNC, OPEN, READ, Carrier, Client, GoneError
from live.ionode.permissions import Caller
from live.ionode.real_node import PATIENCE, RealNode, Serve
from live.other_users import AS_ROOT, NOBODY, as_nobody, as_user

from penstock.errors import InputError
from penstock.live.ionode import _ionode, process

pytestmark = pytest.mark.security


def open_to_all(node: RealNode) -> None:
    for path in (node.folder.parent, node.folder):
        path.chmod(0o755)
    node.socket.chmod(0o666)


@AS_ROOT
def test_another_user_is_refused(serve: Serve) -> None:
    node = serve()
    open_to_all(node)
    assert as_nobody(lambda: Caller(node.socket)) == "GoneError()"
    assert node.measured().refused == 1


@AS_ROOT
def test_a_users_jobs_are_not_another_users_of_that_name(serve: Serve) -> None:
    """Else a user would get the weight of another's job by naming one of his own like it."""
    node = serve("--all-users")
    open_to_all(node)

    def write() -> object:
        with Caller(node.socket) as caller:
            return caller.make(5).bytes >= 5

    for user in (NOBODY, NOBODY - 1):
        assert as_user(user, write) == "True"
    node.until(lambda now: now.groups == {f"{NOBODY}/job": 5, f"{NOBODY - 1}/job": 5})


@pytest.fixture
def remote(serve: Serve, folder: Path) -> Carrier:
    root = folder / "root"
    root.mkdir(exist_ok=True)
    return serve("--coherent", carries=root).carrier


def test_clients_on_other_hosts(remote: Carrier) -> None:
    root = remote.root
    file = root / "file"
    file.write_bytes(b"")
    inode = file.stat().st_ino
    data = os.urandom(frames.LARGEST)
    with Client(remote) as client:
        handle = client.open("file", inode=inode)
        assert handle >= 0
        for size in (1, 4096, 4097, 70000, frames.LARGEST):
            assert client.write(handle, data[:size], 5) == size
            assert client.read(handle, size, 5) == data[:size]
        assert client.read(handle, 10, 1 << 40) == b""
        assert client.write(99, data) == -errno.EBADF
        assert client.read(99, 10) == -errno.EBADF
        assert client.ask(FSYNC, file=handle).result == 0
        assert client.ask(CLOSE, file=handle).result == 0
    assert file.read_bytes()[5:] == data


def test_tokens_roots_and_inodes_are_checked(remote: Carrier, folder: Path) -> None:
    root = remote.root
    file, outside = root / "file", folder / "outside"
    for path in (file, outside):
        path.write_bytes(b"")
    (root / "link").symlink_to(outside)
    (root / "folder").mkdir(exist_ok=True)
    with pytest.raises(GoneError):
        Client(remote, token=b"t" * 31 + b"u", check=False)
    with Client(remote) as client:
        inode = file.stat().st_ino
        for name, expected, error in [
            ("../outside", outside.stat().st_ino, errno.EXDEV),
            (str(outside), outside.stat().st_ino, errno.EXDEV),
            ("link", outside.stat().st_ino, errno.EXDEV),
            ("file", inode + 1, errno.ESTALE),
            ("missing", inode, errno.ENOENT),
            ("folder", (root / "folder").stat().st_ino, errno.EISDIR),
        ]:
            assert client.open(name, inode=expected) == -error, name
        with_zero = b"file\0x"
        request = {
            "offset": inode,
            "length": len(with_zero),
            "flags": os.O_RDWR,
            "follows": with_zero,
        }
        assert client.ask(OPEN, **request).result == -errno.EINVAL
        assert client.ask(OPEN, **(request | {"file": 1})).result < 0
        assert client.open("file", inode=inode) >= 0
    (root / "link").unlink()


def test_a_peer_that_stops_reading_delays_no_other(folder: Path) -> None:
    """Only its own reply waits, and is dropped in the end."""
    root = folder / "stalled"
    root.mkdir()
    file = root / "file"
    file.write_bytes(bytes(frames.LARGEST))
    node = _ionode.Node(0, 1, patience=within(0.5), settings={"depth": 1})
    port = node.listen_tcp("127.0.0.1", 0, frames.TOKEN, [str(root)])
    node.start()
    clients = [Client(Carrier(port, root), session=k, buffer=1 << 16) for k in range(5)]
    handles = [client.open(file) for client in clients]
    lazy = list(zip(clients, handles, strict=True))[:4]
    for client, handle in lazy:
        client.send(READ, file=handle, length=frames.LARGEST)
    data = clients[4].read(handles[4], frames.LARGEST)
    assert data == bytes(frames.LARGEST)
    end = time.monotonic() + PATIENCE
    while node.measure()["connections"] > 1 and time.monotonic() < end:
        assert clients[4].write(handles[4], b"x") == 1
        time.sleep(0.01)
    measured = node.measure()
    assert (measured["connections"], measured["refused"]) == (1, 4)
    for client, _ in lazy:
        client.reply()
        with pytest.raises(GoneError):
            client.receive(frames.LARGEST)
    clients[4].close()
    assert node.drain(PATIENCE)
    assert node.stop()


def test_a_slow_reader_gets_everything(remote: Carrier) -> None:
    root = remote.root
    file, data = root / "slow", os.urandom(frames.LARGEST)
    file.write_bytes(data)
    with Client(remote, buffer=1 << 16) as client:
        handle = client.open(file)
        for _ in range(3):
            client.send(READ, file=handle, length=len(data))
            assert client.reply().result == len(data)
            assert client.receive(len(data)) == data


LUSTRE, GPFS, FUSE, NFS, EXT4 = 0x0BD00BD0, 0x47504653, 0x65735546, 0x6969, 0xEF53


@pytest.mark.parametrize(
    ("magic", "declared", "may"),
    [
        (LUSTRE, False, True),
        (GPFS, False, True),
        (EXT4, False, False),
        (EXT4, True, True),
        (FUSE, True, False),
        (NFS, True, False),
    ],
)
def test_only_coherent_file_systems_for_other_hosts(magic: int, declared: bool, may: bool) -> None:
    problem = process.coherence_problem(
        Path("/x"), declared=declared, file_system=lambda root: magic
    )
    assert (problem == "") == may


def test_the_kernel_is_asked_which_file_system_it_is() -> None:
    assert "--coherent" in process.coherence_problem(Path("/dev/shm"))
    with pytest.raises(InputError, match="No such file"):
        process.coherence_problem(Path("/no/such/root"))
