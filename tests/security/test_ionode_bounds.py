"""One user, or one host, takes nothing from others at an I/O node: each has a bound."""

import errno
import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from limits import HANG
from live.conftest import folder, serve
from live.ionode.frames import LARGEST, READ, TOKEN, WRITE, Carrier, Client, GoneError
from live.ionode.permissions import CALLS_KEPT, CALLS_MADE, PERMIT_BYTES, PERMITS, UNMANAGED, Caller
from live.ionode.real_node import RealNode, Serve
from live.other_users import AS_ROOT, NOBODY, as_nobody

from penstock.live.ionode import _ionode
from penstock.live.protocol import messages

__all__ = ["folder", "serve"]
pytestmark = pytest.mark.security
MIB = 1 << 20
CALLS_IN_A_MEASUREMENT = 8192
"""Of one user."""


@pytest.fixture
def shared(serve: Serve) -> RealNode:
    """An I/O node of all users: root, who attacks, and nobody."""
    return all_users(serve)


def all_users(serve: Serve, *options: str, descriptors: int | None = None) -> RealNode:
    node = serve("--all-users", *options, descriptors=descriptors)
    for path in (node.folder.parent, node.folder):
        path.chmod(0o755)
    node.socket.chmod(0o666)
    return node


def is_served(node: RealNode) -> bool:
    """Whether nobody can make calls."""

    def use() -> object:
        with Caller(node.socket) as caller:
            return [caller.make(4096).terms & UNMANAGED for _ in range(20)]

    return as_nobody(use) == str([0] * 20)


def connect(node: RealNode, stack: ExitStack, count: int) -> list[Caller]:
    """Connect as many processes as are let in."""
    callers = []
    for _ in range(count):
        try:
            callers.append(stack.enter_context(Caller(node.socket)))
        except GoneError:
            break
    return callers


@AS_ROOT
def test_connections_without_a_name(shared: RealNode) -> None:
    with ExitStack() as stack:
        for _ in range(300):
            idle = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET))
            idle.connect(str(shared.socket))
        assert is_served(shared)


@AS_ROOT
def test_descriptors_of_processes(serve: Serve) -> None:
    node = all_users(serve, descriptors=256)
    with ExitStack() as stack:
        assert 64 <= len(connect(node, stack, 256)) <= 128
        assert is_served(node)
    node.until(lambda now: now.connections == 0)
    with ExitStack() as stack:
        assert len(connect(node, stack, 64)) == 64, "what was given back can be had again"


def test_descriptors_of_hosts(serve: Serve, folder: Path) -> None:
    """Files and connections of one host leave descriptors to the next."""
    node = serve(carries=folder, descriptors=256)
    path = folder / "file"
    path.write_bytes(b"data")
    with ExitStack() as stack:
        hostile = replace(node.carrier, source="127.0.0.2")
        opened = 0
        for session in range(1, 300):
            try:
                client = stack.enter_context(Client(hostile, session=session))
            except GoneError:
                break
            while (handle := client.open(path)) >= 0 and handle < 15:
                opened += 1
            if handle < 0:
                assert handle == -errno.EMFILE
                break
        assert opened >= 64
        with Client(node.carrier, session=1000) as bystander:
            handles = [bystander.open(path) for _ in range(20)]
            assert handles == list(range(20))
            assert bystander.read(handles[0], 4) == b"data"


def test_strangers_from_many_addresses(serve: Serve, folder: Path) -> None:
    """One connection each, which says nothing: together they had all descriptors."""
    node = serve(carries=folder, descriptors=256)
    path = folder / "file"
    path.write_bytes(b"data")
    with ExitStack() as stack:
        for number in range(400):
            idle = stack.enter_context(socket.socket())
            idle.bind((f"127.0.{1 + number // 200}.{1 + number % 200}", 0))
            idle.connect(("127.0.0.1", node.carrier.port))
        with Client(node.carrier) as bystander:
            assert bystander.read(bystander.open(path), 4) == b"data"


@AS_ROOT
def test_threads_and_the_memory_of_their_pages(shared: RealNode) -> None:
    """Whatever the pages say: a page that the I/O node reads is charged to the I/O node."""
    questions = 0
    with ExitStack() as stack:
        for caller in connect(shared, stack, 160):
            assert caller.page is not None
            for permit in range(PERMITS):
                caller.page[permit * PERMIT_BYTES + CALLS_MADE + 7] = 0xFF
            try:
                for permit in range(PERMITS):
                    caller.request(4096, permit=permit)
                    questions += 1
            except GoneError:
                break
        assert is_served(shared)
        shared.until(lambda now: now.refused > 0)
        assert shared.memory() < 512 * MIB


def test_calls_that_pages_claim(shared: RealNode) -> None:
    """A measurement reads a bounded number of them, and the others when their threads ask."""
    with ExitStack() as stack:
        callers = connect(shared, stack, 24)
        for caller in callers:
            assert caller.ask(4096).calls == CALLS_KEPT
            assert caller.page is not None
            caller.page[CALLS_MADE : CALLS_MADE + 8] = CALLS_KEPT.to_bytes(8, "little")
        assert shared.measured().requests == CALLS_IN_A_MEASUREMENT
        for caller in callers:
            caller.ask(4096)
        assert shared.measured().requests == len(callers) * CALLS_KEPT


@contextmanager
def calling(callers: list[Caller]) -> Iterator[None]:
    """Let pages say all the time that calls are made, and others are under way."""
    ends = threading.Event()

    def claim() -> None:
        count = 0
        while not ends.is_set():
            count += 1
            for caller in callers:
                assert caller.page is not None
                caller.page[CALLS_MADE : CALLS_MADE + 8] = count.to_bytes(8, "little")

    thread = threading.Thread(target=claim)
    thread.start()
    try:
        yield
    finally:
        ends.set()
        thread.join()


@AS_ROOT
def test_places_in_service(serve: Serve) -> None:
    """Calls that never end, and pages that say that others did, hold nobody else up."""
    node = all_users(serve, "--depth", "4")
    with ExitStack() as stack:
        callers = connect(node, stack, 12)
        for caller in callers:
            caller.request(1)
            caller.set_in_call(caller.number)
        stack.enter_context(calling(callers))
        assert is_served(node)


@AS_ROOT
def test_names_of_jobs(shared: RealNode) -> None:
    """They reach people and the controller, whose messages have an end."""
    for name in (b"\x01" * 63, b"a\x1b[2J", b"\x7f", b"new\nline"):
        with pytest.raises(GoneError):
            Caller(shared.socket, job=name)
    with ExitStack() as stack:
        for number in range(1100):
            try:
                stack.enter_context(Caller(shared.socket, job=b"%063d" % number))
            except GoneError:
                break
        assert is_served(shared)
        groups = shared.until(lambda now: f"{NOBODY}/job" in now.groups).groups
        assert 1000 <= len(groups) <= 1100


@AS_ROOT
def test_names_of_jobs_that_have_ended(shared: RealNode) -> None:
    """One user's do not displace what is known of another's."""
    assert is_served(shared)
    for number in range(2500):
        with Caller(shared.socket, job=b"%d" % number):
            pass
    groups = shared.measured().groups
    assert groups[f"{NOBODY}/job"] == 20 * 4096
    assert len(groups) <= 2048


@AS_ROOT
def test_invented_jobs_have_no_share_beside_one_that_the_controller_named(serve: Serve) -> None:
    """The user with fifty of them and the user with one job take turns."""
    node = all_users(serve, "--depth", "1")
    weights = {"0/named": 1.0, f"{NOBODY}/named": 1.0}
    assert node.ask(messages.SetWeights(weights=weights)) == messages.Done()
    with ExitStack() as stack:
        holder = stack.enter_context(Caller(node.socket, job=b"named"))
        holder.ask(1)
        holder.set_in_call(holder.number)
        names = [b"named"] * 20 + [b"%d" % k for k in range(50)]
        hostile = [stack.enter_context(Caller(node.socket, job=name)) for name in names]
        honest = [stack.enter_context(other_user(node)) for _ in range(20)]
        for caller in (*hostile, *honest):
            caller.request(MIB)
        node.until(lambda now: now.queued == len(hostile) + len(honest))
        holder.set_in_call(0)
        holder.give_back()
        served = [serve_one(hostile, honest) for _ in range(20)]
        assert 9 <= served.count("honest") <= 11, served


def serve_one(hostile: list[Caller], honest: list[Caller]) -> str:
    """Wait until one of them has a credit, and use it up; return whose it was."""
    deadline = time.monotonic() + HANG
    while time.monotonic() < deadline:
        for name, callers in (("hostile", hostile), ("honest", honest)):
            for caller in callers:
                if (credit := caller.answer()) is not None:
                    caller.called(credit.bytes)
                    caller.give_back()
                    callers.remove(caller)
                    return name
    raise AssertionError("nobody is served")


def other_user(node: RealNode) -> Caller:
    os.setresuid(NOBODY, NOBODY, 0)
    try:
        return Caller(node.socket, job=b"named")
    finally:
        os.setresuid(0, 0, 0)


def test_memory_for_data_of_hosts(folder: Path) -> None:
    """A host whose requests never come to an end leaves memory to the next."""
    path = folder / "file"
    path.write_bytes(bytes(LARGEST))
    node = _ionode.Node(0, 1, memory=4 * LARGEST)
    port = node.listen_tcp("127.0.0.1", 0, TOKEN, [str(folder)])
    node.start()
    with ExitStack() as stack:
        for session in range(10):
            hostile = Carrier(port, folder, source="127.0.0.2")
            client = stack.enter_context(Client(hostile, session=session, job=b"%d" % session))
            client.send(WRITE, file=client.open(path), length=LARGEST)  # and no data
        bystander = stack.enter_context(Client(Carrier(port, folder), session=100))
        handle = bystander.open(path)
        bystander.send(READ, file=handle, length=LARGEST)
        assert bystander.reply().result == LARGEST
        assert bystander.receive(LARGEST) == bytes(LARGEST)
    assert node.drain(60)
    assert node.stop()
