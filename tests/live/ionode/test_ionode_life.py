"""An I/O node whose clients die, that is stopped, that ends, or that is busy."""

import os
import resource
import signal
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from live.ionode.frames import WRITE, Client, GoneError
from live.ionode.real_node import PATIENCE, RealNode, Serve

from penstock.live.ionode import _ionode
from penstock.live.protocol import messages

KILLED = """
import os, sys
from live.ionode.frames import Carrier, Client
from pathlib import Path
file = Path(sys.argv[2])
client = Client(Carrier(int(sys.argv[1]), file.parent))
client.open(file)
print("open", flush=True)
sys.stdin.read()
"""


def test_a_killed_client_leaves_nothing_behind(node: RealNode, file: Path) -> None:
    before = node.until(lambda measured: measured.connections == 0)
    descriptors = node.descriptors()
    with subprocess.Popen(
        [sys.executable, "-c", KILLED, str(node.carrier.port), str(file)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])},
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
    node = serve(carries=file.parent)
    client = Client(node.carrier)
    handle = client.open(file)
    node.stand_still()
    client.send(WRITE, file=handle, length=3, follows=b"old")
    client.close()
    file.write_bytes(b"new")
    node.go_on()
    node.until(lambda measured: measured.dropped == 1 and measured.connections == 0)
    assert file.read_bytes() == b"new"


def test_a_node_that_stood_still_serves_those_who_waited(serve: Serve, file: Path) -> None:
    node = serve(carries=file.parent)
    with Client(node.carrier) as client:
        handle = client.open(file)
        node.stand_still()
        client.send(WRITE, file=handle, length=4, follows=b"here")
        node.go_on()
        assert client.reply().result == 4


@pytest.mark.parametrize("how", ["SIGTERM", "SIGINT", "Drain", "Stop"])
def test_it_drains_then_ends(serve: Serve, file: Path, how: str) -> None:
    node = serve(carries=file.parent)
    with Client(node.carrier) as client:
        handle = client.open(file)
        node.stand_still()
        client.send(WRITE, file=handle, length=4, follows=b"last")
        asking = None
        if how.startswith("SIG"):
            os.kill(node.process.pid, signal.Signals[how])
        else:
            message = messages.Drain(seconds=PATIENCE) if how == "Drain" else messages.Stop()
            answers: list[object] = []
            asking = threading.Thread(target=lambda: answers.append(node.ask(message)))
            asking.start()
        node.go_on()
        # Begun or not: an answer means that it is done, none that it never will be.
        try:
            assert client.reply().result == 4
        except GoneError:
            assert file.read_bytes() == b""
        else:
            assert file.read_bytes() == b"last"
            with pytest.raises(GoneError):
                client.reply()
    if asking is not None:
        asking.join(PATIENCE)
        assert answers == [messages.Done()]
    assert node.process.wait(PATIENCE) == 0
    assert not node.socket.exists()
    assert not node.control.exists()


def test_schedulers_change_under_load(serve: Serve, folder: Path) -> None:
    """Nothing is lost, doubled or mixed up when one queue becomes another."""
    node, shared = (
        serve("--servers", "2", "--window", "200 us", carries=folder),
        folder / "shared-file",
    )
    blocks, size, writers = 200, 4096, 4
    shared.write_bytes(b"")
    wrong: list[object] = []

    def write(k: int) -> None:
        with Client(node.carrier, session=10 + k, job=f"job{k % 2}".encode()) as client:
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
        assert node.ask(messages.Settings(scheduler=name, depth=1 + turns % 4)) == messages.Done()
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


def wakeups(node: RealNode) -> int:
    """Return how often any of its threads has waited so far."""
    tasks = Path(f"/proc/{node.process.pid}/task").glob("*/status")
    lines = [line for task in tasks for line in task.read_text().splitlines()]
    return sum(int(line.split()[1]) for line in lines if line.startswith("voluntary_ctxt"))


def test_an_idle_node_wakes_up_for_nothing(serve: Serve, file: Path) -> None:
    """Once the relief has seen two milliseconds without a request, nothing is timed any more."""
    node = serve(carries=file.parent)
    with Client(node.carrier) as client:
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
    node = serve(carries=file.parent)
    before, rounds = node.memory(), []
    try:
        for _ in range(6):
            clients = [Client(node.carrier, session=k) for k in range(1000)]
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
    cost = rounds[0] - before
    assert cost < 1000 * (16 << 10)
    # Threads may have two places to keep what they free; a leak would cost as much in each round.
    assert max(rounds) - rounds[0] < 2 * cost, rounds
    end = time.monotonic() + PATIENCE
    while node.descriptors() >= 30:  # files are closed after their connections
        assert time.monotonic() < end
