"""What an I/O node sees of its clients' requests, by intervals that end when it is asked."""

from contextlib import ExitStack
from pathlib import Path

from live.ionode.frames import FSYNC, Client
from live.ionode.real_node import RealNode

from penstock.live.protocol import messages
from penstock.model import Observation


def observed(node: RealNode) -> Observation:
    answer = node.ask(messages.GetObservation())
    assert isinstance(answer, messages.NodeObservation), answer
    return answer.to_observation()


def test_sizes_distances_and_operations_are_those_of_the_requests(
    node: RealNode, file: Path
) -> None:
    with Client(node.socket) as client:
        handle = client.open(file)
        observed(node)
        client.write(handle, bytes(1000), 0)
        client.write(handle, bytes(3000), 1000)
        client.write(handle, bytes(500), 10_000)
        client.ask(FSYNC, file=handle)
        client.read(handle, 4000, 0)
        seen = observed(node)
    assert (seen.writes, seen.reads, seen.requests) == (3, 1, 4)
    assert (seen.write_bytes, seen.read_bytes, seen.moved) == (4500, 4000, 8500)
    assert (seen.smallest, seen.largest, seen.asked) == (500, 4000, 8500)
    assert (seen.handles, seen.clients) == (1, 1)
    assert seen.distance == (1000 + 9000 + 10_000) / 3
    assert seen.forward == 1 / 3
    assert 0 < seen.busy < seen.seconds
    assert 0 < seen.queued < 1


def test_an_interval_begins_where_the_last_one_ended(node: RealNode, file: Path) -> None:
    with Client(node.socket) as client:
        handle = client.open(file)
        client.write(handle, bytes(100), 0)
        observed(node)
        nothing = observed(node)
        assert (nothing.requests, nothing.moved, nothing.handles, nothing.clients) == (0, 0, 0, 0)
        assert (nothing.smallest, nothing.largest, nothing.distance) == (0, 0, 0.0)
        assert nothing.busy == nothing.queued == 0
        client.write(handle, bytes(100), 100)
        seen = observed(node)
    assert (seen.handles, seen.clients, seen.forward) == (1, 1, 1.0), "as the file was left"


def test_a_handle_is_a_file_whoever_has_it_open(node: RealNode, tmp_path: Path) -> None:
    shared, own = tmp_path / "shared", [tmp_path / "a", tmp_path / "b"]
    for path in (shared, *own):
        path.write_bytes(b"")
    with ExitStack() as stack:
        clients = [stack.enter_context(Client(node.socket, session=k + 1)) for k in range(2)]
        observed(node)
        for k, client in enumerate(clients):
            client.write(client.open(shared), bytes(100), 500 * k)
        seen = observed(node)
        assert (seen.handles, seen.clients, seen.distance) == (1, 2, 500.0)
        for path, client in zip(own, clients, strict=True):
            client.write(client.open(path), bytes(100), 0)
        seen = observed(node)
        assert (seen.handles, seen.clients, seen.distance) == (2, 2, 0.0)


def test_the_settings_in_force_come_along(node: RealNode) -> None:
    assert node.ask(messages.Settings(scheduler="twins", window=0.002, depth=3)) == messages.Done()
    answer = node.ask(messages.GetObservation())
    assert isinstance(answer, messages.NodeObservation)
    assert answer.settings["scheduler"] == "twins"
    assert (answer.settings["window"], answer.settings["depth"]) == (0.002, 3)


def test_what_fails_is_seen_and_moves_nothing(node: RealNode, file: Path) -> None:
    with Client(node.socket) as client:
        file.write_bytes(b"")
        handle = client.open(file)
        observed(node)
        assert client.read(handle, 100, 0) == b""
        seen = observed(node)
    assert (seen.reads, seen.read_bytes, seen.asked) == (1, 0, 100)
