"""An I/O node as its clients see it: a real process, spoken to in frames."""

import errno
import os
import resource
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from live import frames
from live.frames import CLOSE, FDATASYNC, FSYNC, HELLO, OPEN, READ, WRITE, Client, GoneError

from penstock.errors import InputError
from penstock.live import _ionode, ionode, wire

AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="needs root for a second user")
NOBODY = 65534
PATIENCE = 20.0
RWF_HIPRI, RWF_DSYNC, RWF_SYNC, RWF_APPEND = 1, 2, 4, 16


class Served:
    """A running `penstock ionode`."""

    def __init__(self, folder: Path, *options: str, file_size: int | None = None) -> None:
        self.folder, self.socket = folder, folder / "data"
        self.control = folder / "control"
        paths = ("--socket", str(self.socket), "--control", str(self.control))
        self.process = subprocess.Popen(
            [sys.executable, "-m", "penstock.cli", "ionode", *paths, "--json", *options],
            stdout=subprocess.PIPE,
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, "the I/O node did not begin"
        self.told = msgspec.json.decode(line)
        if file_size is not None:
            limits = (file_size, file_size)
            resource.prlimit(self.process.pid, resource.RLIMIT_FSIZE, limits)
        self.controlling: socket.socket | None = None

    def say(self, message: wire.Message) -> Any:
        """Return the answer; over one connection, so that descriptors can be counted."""
        if self.controlling is None:
            self.controlling = socket.socket(socket.AF_UNIX)
            self.controlling.settimeout(PATIENCE)
            self.controlling.connect(str(self.control))
        self.controlling.sendall(msgspec.json.encode(message) + b"\n")
        line = b""
        while not line.endswith(b"\n"):
            part = self.controlling.recv(1 << 16)
            assert part, "the I/O node is gone"
            line += part
        return msgspec.json.decode(line, type=wire.Done | wire.Failed | wire.Measured)

    def measured(self) -> wire.Measured:
        answer = self.say(wire.Measure())
        assert isinstance(answer, wire.Measured)
        return answer

    def until(self, holds: Callable[[wire.Measured], bool]) -> wire.Measured:
        """Return the first measurement of which that holds."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            if holds(measured := self.measured()):
                return measured
        raise AssertionError(f"still {measured}")

    def memory(self) -> int:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return 1024 * next(int(line.split()[1]) for line in status.splitlines() if "VmRSS" in line)

    def descriptors(self) -> int:
        return len(list(Path(f"/proc/{self.process.pid}/fd").iterdir()))

    def end(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(PATIENCE)
        if self.controlling is not None:
            self.controlling.close()
        assert self.process.stdout is not None
        self.process.stdout.close()


Serve = Callable[..., Served]


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """A short path, for sockets, in memory."""
    with tempfile.TemporaryDirectory(prefix="io", dir="/dev/shm") as path:
        yield Path(path)


@pytest.fixture(scope="module")
def node(folder: Path) -> Iterator[Served]:
    """The node of all tests that leave it as it was."""
    (folder / "shared").mkdir()
    served = Served(folder / "shared")
    yield served
    served.end()


@pytest.fixture
def serve(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serve]:
    """Start a node of the test's own."""
    with tempfile.TemporaryDirectory(prefix="io", dir="/dev/shm") as path:
        nodes: list[Served] = []

        def start(*options: str, **more: Any) -> Served:
            (own := Path(path) / str(len(nodes))).mkdir()
            nodes.append(Served(own, *options, **more))
            return nodes[-1]

        yield start
        for served in nodes:
            served.end()


@pytest.fixture
def file(folder: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    path = folder / "file"
    path.write_bytes(b"")
    yield path
    path.unlink()


def test_it_says_who_it_is(node: Served) -> None:
    with Client(node.socket) as client:
        assert client.greeting is not None
        assert client.greeting.node == node.told["id"] == node.measured().node
        text = Path("/proc/sys/kernel/random/boot_id").read_text().replace("-", "")
        assert client.greeting.boot == int(text[:16], 16)


def test_every_operation(node: Served, file: Path) -> None:
    before = node.measured()
    with Client(node.socket) as client:
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


def test_a_whole_window(node: Served, file: Path) -> None:
    data = os.urandom(frames.LARGEST)
    with Client(node.socket, window=frames.LARGEST) as client:
        handle = client.open(file)
        assert client.write(handle, data) == len(data)
        assert file.read_bytes() == data
        assert client.read(handle, len(data)) == data


def test_connections_of_a_process_share_its_files(node: Served, file: Path) -> None:
    with Client(node.socket, session=5) as first, Client(node.socket, session=5) as second:
        handle = first.open(file)
        first.close()
        assert second.write(handle, b"x") == 1
        with Client(node.socket, session=6) as other:
            assert other.write(handle, b"y") == -errno.EBADF
    node.until(lambda measured: measured.files == 0)


def test_the_descriptor_is_reopened(node: Served, file: Path) -> None:
    """A shared description would entangle O_APPEND, locks and the position."""
    with Client(node.socket) as client:
        descriptor = os.open(file, os.O_RDWR | os.O_APPEND)
        file.write_bytes(b"0123")
        handle = client.ask(OPEN, flags=os.O_RDWR, descriptors=[descriptor]).result
        assert client.write(handle, b"ab", 1) == 2
        assert file.read_bytes() == b"0ab3"
        assert os.lseek(descriptor, 0, os.SEEK_CUR) == 0
        os.close(descriptor)


@pytest.mark.parametrize(
    ("opened", "flags", "error"),
    [
        (os.O_RDWR, os.O_RDWR | os.O_TRUNC, errno.EINVAL),
        (os.O_RDWR, os.O_RDWR | os.O_APPEND, errno.EINVAL),
        (os.O_RDWR, os.O_RDWR | os.O_CREAT, errno.EINVAL),
        (os.O_RDONLY, os.O_RDWR, errno.EACCES),
        (os.O_RDONLY, os.O_WRONLY, errno.EACCES),
        (os.O_PATH, os.O_RDONLY, errno.EBADF),
    ],
)
def test_opens_that_are_refused(
    node: Served, file: Path, opened: int, flags: int, error: int
) -> None:
    file.write_bytes(b"kept")
    with Client(node.socket) as client:
        assert client.open(file, flags, opened=opened) == -error
        assert file.read_bytes() == b"kept"
        assert client.open(file) >= 0, "the connection lives on"


@pytest.mark.parametrize("path", ["/dev/null", "/dev/shm"])
def test_only_regular_files_are_served(node: Served, path: str) -> None:
    with Client(node.socket) as client:
        result = client.open(Path(path), os.O_RDONLY)
        assert result == -errno.EINVAL


def test_errors_are_those_of_the_call(node: Served, file: Path) -> None:
    with Client(node.socket) as client:
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
    node = serve(file_size=4096)
    with Client(node.socket) as client:
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


def unintroduced(address: Path, **fields: Any) -> Client:
    return Client(address, hello=False, **fields)


HOSTILE: dict[str, Callable[[Path], object]] = {
    "magic": lambda at: Client(at).ask(FSYNC, magic=1),
    "operation": lambda at: Client(at).ask(99),
    "no-hello": lambda at: unintroduced(at).ask(FSYNC),
    "second-hello": lambda at: Client(at).hello(),
    "oversize": lambda at: Client(at).ask(READ, length=frames.LARGEST + 1),
    "beyond-window": lambda at: Client(at, window=4096).ask(WRITE, length=4097),
    "bytes-of-a-sync": lambda at: Client(at).ask(FSYNC, length=1),
    "open-without-descriptor": lambda at: Client(at).ask(OPEN, flags=os.O_RDWR),
    "early": lambda at: early(Client(at)),
    "no-window": lambda at: unintroduced(at).ask(HELLO, length=120, follows=bytes(120)),
    "short-hello": lambda at: unintroduced(at).ask(HELLO, length=119, follows=bytes(119)),
    "unsealed": lambda at: unintroduced(at).hello(sealed=False),
    "small-window": lambda at: unintroduced(at).hello(size=4096),
    "vast-window": lambda at: unintroduced(at, window=frames.LARGEST + 1).hello(),
    "nameless-job": lambda at: unintroduced(at, job=b"").hello(),
    "endless-job": lambda at: unintroduced(at, job=b"j" * 64).hello(),
    "no-memory-file": lambda at: unintroduced(at).ask(
        HELLO,
        length=120,
        follows=frames.INTRODUCTION.pack(1, 1, 1, 4096, b"job", b""),
        descriptors=[sys.stderr.fileno()],
    ),
    "too-many-descriptors": lambda at: Client(at).ask(
        OPEN, flags=os.O_RDWR, descriptors=[0, 0, 0, 0]
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_frames_end_their_connection_alone(node: Served, file: Path, name: str) -> None:
    with Client(node.socket) as bystander:
        handle = bystander.open(file)
        before = node.measured()
        descriptors = node.descriptors()
        with pytest.raises(GoneError):
            HOSTILE[name](node.socket)
        after = node.until(lambda measured: measured.connections == before.connections)
        assert after.refused == before.refused + 1
        assert node.descriptors() == descriptors
        assert bystander.write(handle, b"x") == 1


def test_frames_may_come_in_pieces(node: Served, file: Path) -> None:
    with Client(node.socket) as client:
        handle = client.open(file)
        client.put(b"slowly")
        client.number += 1
        frame = frames.REQUEST.pack(frames.MAGIC, WRITE, client.number, handle, 0, 6, 0)
        for byte in frame:
            client.socket.sendall(bytes([byte]))
        assert client.reply().result == 6


def test_a_truncated_frame_is_never_begun(node: Served, file: Path) -> None:
    requests = node.measured().requests
    with Client(node.socket) as client:
        handle = client.open(file)
        client.put(b"half")
        client.socket.sendall(frames.REQUEST.pack(frames.MAGIC, WRITE, 1, handle, 0, 4, 0)[:31])
    after = node.until(lambda measured: measured.connections == 0)
    assert (after.requests - requests, after.sessions, after.files) == (2, 0, 0)
    assert file.read_bytes() == b""


def test_handles_and_connections_are_bounded(folder: Path, file: Path) -> None:
    node = _ionode.Node(0, 1, connections=2, handles=3)
    address = folder / "bounded"
    node.listen_unix(str(address))
    node.start()
    with Client(address) as first, Client(address) as second:
        assert [first.open(file) for _ in range(4)] == [0, 1, 2, -errno.EMFILE]
        assert second.ask(CLOSE, file=1).result == 0
        assert second.open(file) == 1
        with pytest.raises(GoneError):
            Client(address)
        with Client(address, job=b"another"):
            pass
    assert node.measure()["refused"] == 1
    assert node.drain(PATIENCE)
    assert node.stop()


KILLED = """
import os, sys
from live.frames import Client
from pathlib import Path
client = Client(Path(sys.argv[1]))
client.open(Path(sys.argv[2]))
print("open", flush=True)
sys.stdin.read()
"""


def test_a_killed_client_leaves_nothing_behind(node: Served, file: Path) -> None:
    before = node.until(lambda measured: measured.connections == 0)
    descriptors = node.descriptors()
    with subprocess.Popen(
        [sys.executable, "-c", KILLED, str(node.socket), str(file)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])},
    ) as client:
        assert client.stdout is not None
        assert client.stdout.readline() == b"open\n"
        assert node.measured().files == 1
        client.kill()
        client.wait(PATIENCE)
    after = node.until(lambda measured: measured.connections == 0)
    assert (after.sessions, after.files, after.refused) == (0, 0, before.refused)
    assert node.descriptors() == descriptors


def test_what_a_dead_client_asked_for_does_not_overwrite_its_successor(
    serve: Serve, file: Path
) -> None:
    """The node stood still meanwhile: it must not begin what nobody waits for."""
    node = serve()
    client = Client(node.socket)
    handle = client.open(file)
    os.kill(node.process.pid, signal.SIGSTOP)
    client.put(b"old")
    client.send(WRITE, file=handle, length=3)
    client.close()
    file.write_bytes(b"new")
    os.kill(node.process.pid, signal.SIGCONT)
    node.until(lambda measured: measured.dropped == 1 and measured.connections == 0)
    assert file.read_bytes() == b"new"


def test_a_node_that_stood_still_serves_those_who_waited(serve: Serve, file: Path) -> None:
    node = serve()
    with Client(node.socket) as client:
        handle = client.open(file)
        os.kill(node.process.pid, signal.SIGSTOP)
        client.put(b"here")
        client.send(WRITE, file=handle, length=4)
        os.kill(node.process.pid, signal.SIGCONT)
        assert client.reply().result == 4


@pytest.mark.parametrize("how", ["SIGTERM", "SIGINT", "Drain", "Stop"])
def test_it_drains_then_ends(serve: Serve, file: Path, how: str) -> None:
    node = serve()
    with Client(node.socket) as client:
        handle = client.open(file)
        os.kill(node.process.pid, signal.SIGSTOP)
        client.put(b"last")
        client.send(WRITE, file=handle, length=4)
        asking = None
        if how.startswith("SIG"):
            os.kill(node.process.pid, signal.Signals[how])
        else:
            message = wire.Drain(seconds=PATIENCE) if how == "Drain" else wire.Stop()
            answers: list[object] = []
            asking = threading.Thread(target=lambda: answers.append(node.say(message)))
            asking.start()
        os.kill(node.process.pid, signal.SIGCONT)
        # Begun or not: an answer means that it is done, none that it never will be.
        try:
            assert client.reply().result == 4
            assert file.read_bytes() == b"last"
        except GoneError:
            assert file.read_bytes() == b""
        with pytest.raises(GoneError):
            client.reply()
    if asking is not None:
        asking.join(PATIENCE)
        assert answers == [wire.Done()]
    assert node.process.wait(PATIENCE) == 0
    assert not node.socket.exists()
    assert not node.control.exists()


def test_control_messages_that_are_none(node: Served) -> None:
    answer = node.say(wire.Settings(scheduler="twin"))
    assert answer == wire.Failed(error="unknown scheduler 'twin'; did you mean 'twins'?")
    assert isinstance(node.say(wire.Settings(quantum=0)), wire.Failed)
    assert isinstance(node.say(wire.Weigh(weights={"job": -1.0})), wire.Failed)
    assert isinstance(node.say(wire.Weigh(weights={"not-yet-here": 0.0})), wire.Failed)
    with Client(node.socket, job=b"not-yet-here") as client:
        assert client.greeting is not None
    assert isinstance(node.say(wire.Ask()), wire.Failed)
    assert node.say(wire.Weigh(weights={"job": 2.0})) == wire.Done()
    assert node.say(wire.Weigh(weights={})) == wire.Done()


def test_schedulers_change_under_load(serve: Serve, folder: Path) -> None:
    """Nothing is lost, doubled or mixed up when one queue becomes another."""
    node, shared = serve("--servers", "2", "--window", "200 us"), folder / "shared-file"
    blocks, size, writers = 200, 4096, 4
    shared.write_bytes(b"")
    wrong: list[object] = []

    def write(k: int) -> None:
        with Client(node.socket, session=10 + k, job=f"job{k % 2}".encode()) as client:
            handle = client.open(shared)
            for block in range(blocks):
                at = (block * writers + k) * size
                data = struct.pack("<II", k, block) * (size // 8)
                if client.write(handle, data, at) != size or client.read(handle, size, at) != data:
                    wrong.append((k, block))

    threads = [threading.Thread(target=write, args=(k,)) for k in range(writers)]
    for thread in threads:
        thread.start()
    names = _ionode.scheduler_names()
    turns = 0
    while any(thread.is_alive() for thread in threads):
        name = names[turns % len(names)]
        assert node.say(wire.Settings(scheduler=name, depth=1 + turns % 4)) == wire.Done()
        turns += 1
    for thread in threads:
        thread.join(PATIENCE)
    assert wrong == []
    assert turns > len(names)
    content = shared.read_bytes()
    expected = [
        struct.pack("<II", at % writers, at // writers) * (size // 8)
        for at in range(blocks * writers)
    ]
    assert content == b"".join(expected)
    assert set(node.measured().groups) == {"job0", "job1"}


def wakeups(node: Served) -> int:
    """Return how often any of its threads has waited so far."""
    tasks = Path(f"/proc/{node.process.pid}/task").glob("*/status")
    lines = [line for task in tasks for line in task.read_text().splitlines()]
    return sum(int(line.split()[1]) for line in lines if line.startswith("voluntary_ctxt"))


def test_an_idle_node_wakes_up_for_nothing(serve: Serve, file: Path) -> None:
    """Once the relief has seen two milliseconds without a request, nothing is timed any more."""
    node = serve()
    with Client(node.socket) as client:
        handle = client.open(file)
        for _ in range(100):
            assert client.write(handle, b"x") == 1
        quiet, end = 0, time.monotonic() + PATIENCE
        while not quiet and time.monotonic() < end:
            before = wakeups(node)
            time.sleep(0.2)  # the rule is about time that passes
            quiet = wakeups(node) == before
        assert quiet


def test_a_thousand_connections_and_flat_memory(serve: Serve, file: Path) -> None:
    """A connection costs no more than a few KiB, and nothing once it is gone."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(8192, hard), hard))
    node = serve()
    rounds = []
    try:
        for _ in range(3):
            clients = [Client(node.socket, session=k, window=4096) for k in range(1000)]
            handles = [client.open(file) for client in clients]
            assert {
                client.write(handle, b"x" * 4096)
                for client, handle in zip(clients, handles, strict=True)
            } == {4096}
            rounds.append(node.memory())
            for client in clients:
                client.close()
            node.until(lambda measured: measured.connections == 0)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert max(rounds) - min(rounds) < 4 << 20, rounds
    assert node.descriptors() < 30


def as_nobody(does: Callable[[], object]) -> str:
    """Do something as another user, in a process of its own; return what comes of it."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            os.write(writing, str(does()).encode())
        except BaseException as error:
            os.write(writing, repr(error).encode())
        os._exit(0)
    os.close(writing)
    with open(reading) as told:  # noqa: PTH123 - a pipe
        said = told.read()
    os.waitpid(child, 0)
    return said


def open_to_all(node: Served) -> None:
    for path in (node.folder.parent, node.folder):
        path.chmod(0o755)
    node.socket.chmod(0o666)


@AS_ROOT
def test_another_user_is_refused(serve: Serve) -> None:
    node = serve()
    open_to_all(node)
    assert as_nobody(lambda: Client(node.socket)) == "GoneError()"
    assert node.measured().refused == 1


@AS_ROOT
def test_every_user_is_served_as_that_user(serve: Serve, folder: Path) -> None:
    """As nobody, a write clears the set-user-ID bit, and root's file stays out of reach."""
    node = serve("--all-users")
    open_to_all(node)
    folder.chmod(0o755)
    ours, roots = folder / "ours", folder / "roots"
    ours.write_bytes(b"")
    os.chown(ours, NOBODY, NOBODY)
    ours.chmod(0o4777)
    roots.write_bytes(b"secret")
    roots.chmod(0o600)
    passed = os.open(roots, os.O_RDWR)

    def use() -> object:
        with Client(node.socket) as client:
            handle = client.open(ours)
            written = client.write(handle, b"hello"), client.read(handle, 9)
            # Who holds a descriptor of root's file still cannot have it opened anew.
            return *written, client.ask(OPEN, flags=os.O_RDWR, descriptors=[passed]).result

    assert as_nobody(use) == str((5, b"hello", -errno.EACCES))
    os.close(passed)
    assert ours.read_bytes() == b"hello"
    assert ours.stat().st_mode & 0o4000 == 0
    assert roots.read_bytes() == b"secret"
    with pytest.raises(GoneError):  # root itself is not served
        Client(node.socket)


@pytest.fixture
def remote(serve: Serve, folder: Path) -> "Remote":
    root = folder / "root"
    root.mkdir(exist_ok=True)
    token = folder / "token"
    token.write_bytes(b"t" * 32)
    options = ("--tcp", "127.0.0.1:0", "--token-file", str(token), "--root", str(root))
    node = serve(*options, "--coherent")
    return ("127.0.0.1", node.told["tcp_port"]), root


Remote = tuple[tuple[str, int], Path]


def test_clients_on_other_hosts(remote: Remote) -> None:
    address, root = remote
    file = root / "file"
    file.write_bytes(b"")
    inode = file.stat().st_ino
    data = os.urandom(frames.LARGEST)
    with Client(address, token=b"t" * 32) as client:
        handle = client.open(Path("file"), opened=inode)
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


def test_tokens_roots_and_inodes_are_checked(remote: Remote, folder: Path) -> None:
    address, root = remote
    file, outside = root / "file", folder / "outside"
    for path in (file, outside):
        path.write_bytes(b"")
    (root / "link").symlink_to(outside)
    (root / "folder").mkdir(exist_ok=True)
    with pytest.raises(GoneError):
        Client(address, token=b"t" * 31 + b"u")
    with Client(address, token=b"t" * 32) as client:
        inode = file.stat().st_ino
        for path, expected, error in [
            ("../outside", outside.stat().st_ino, errno.EXDEV),
            (str(outside), outside.stat().st_ino, errno.EXDEV),
            ("link", outside.stat().st_ino, errno.EXDEV),
            ("file", inode + 1, errno.ESTALE),
            ("missing", inode, errno.ENOENT),
            ("folder", (root / "folder").stat().st_ino, errno.EISDIR),
        ]:
            assert client.open(Path(path), opened=expected) == -error, path
        name = b"file\0x"
        asked = {"offset": inode, "length": len(name), "flags": os.O_RDWR, "follows": name}
        assert client.ask(OPEN, **asked).result == -errno.EINVAL
        assert client.ask(OPEN, **(asked | {"file": 1})).result < 0
        assert client.open(Path("file"), opened=inode) >= 0
    (root / "link").unlink()


def test_a_peer_that_stops_reading_holds_nobody_up(folder: Path) -> None:
    """Its reply waits on the socket alone, and is given up in the end."""
    root = folder / "stalled"
    root.mkdir()
    file = root / "file"
    file.write_bytes(bytes(frames.LARGEST))
    node = _ionode.Node(0, 1, patience=0.5, settings={"depth": 1})
    port = node.listen_tcp("127.0.0.1", 0, b"t" * 32, [str(root)])
    node.start()
    clients = [
        Client(("127.0.0.1", port), session=k, token=b"t" * 32, buffer=1 << 16) for k in range(5)
    ]
    handles = [client.open(Path("file"), opened=file.stat().st_ino) for client in clients]
    lazy = list(zip(clients, handles, strict=True))[:4]
    for client, handle in lazy:
        client.send(READ, file=handle, length=frames.LARGEST)
    data = clients[4].read(handles[4], frames.LARGEST)
    assert data == bytes(frames.LARGEST)
    end = time.monotonic() + PATIENCE
    while node.measure()["connections"] > 1 and time.monotonic() < end:
        assert clients[4].write(handles[4], b"x") == 1
    measured = node.measure()
    assert (measured["connections"], measured["refused"]) == (1, 4)
    for client, _ in lazy:
        client.reply()
        with pytest.raises(GoneError):
            client.receive(frames.LARGEST)
    clients[4].close()
    assert node.drain(PATIENCE)
    assert node.stop()


def test_a_slow_reader_gets_everything(remote: Remote) -> None:
    address, root = remote
    file, data = root / "slow", os.urandom(frames.LARGEST)
    file.write_bytes(data)
    with Client(address, token=b"t" * 32, buffer=1 << 16) as client:
        handle = client.open(Path("slow"), opened=file.stat().st_ino)
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
def test_only_coherent_file_systems_for_other_hosts(
    magic: int, declared: bool, may: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ionode, "_file_system", lambda root: magic)
    assert (ionode.coherent(Path("/x"), declared=declared) == "") == may


def test_the_kernel_is_asked_which_file_system_it_is() -> None:
    assert "--coherent" in ionode.coherent(Path("/dev/shm"))
    with pytest.raises(InputError, match="No such file"):
        ionode.coherent(Path("/no/such/root"))


def test_a_socket_in_use_is_not_taken(node: Served) -> None:
    told = ionode.IONode(socket=node.socket, control=node.folder / "other")
    with pytest.raises(InputError, match="another process serves"):
        told.serve(lambda *_: None)
