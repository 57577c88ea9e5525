"""The observations of an I/O node: one interval per request for an observation."""

from contextlib import ExitStack
from pathlib import Path

from live.ionode.frames import FSYNC, Client
from live.ionode.real_node import RealNode

from penstock.live.protocol import messages
from penstock.model import Observation


def observe(node: RealNode) -> Observation:
    answer = node.ask(messages.GetObservation())
    assert isinstance(answer, messages.NodeObservation), answer
    return answer.to_observation()


def test_sizes_distances_and_operations_are_those_of_the_requests(
    node: RealNode, file: Path
) -> None:
    with Client(node.socket) as client:
        handle = client.open(file)
        observe(node)
        client.write(handle, bytes(1000), 0)
        client.write(handle, bytes(3000), 1000)
        client.write(handle, bytes(500), 10_000)
        client.ask(FSYNC, file=handle)
        client.read(handle, 4000, 0)
        observation = observe(node)
    assert (observation.writes, observation.reads, observation.requests) == (3, 1, 4)
    assert (observation.write_bytes, observation.read_bytes, observation.moved) == (
        4500,
        4000,
        8500,
    )
    assert (observation.smallest, observation.largest, observation.asked) == (500, 4000, 8500)
    assert (observation.handles, observation.clients) == (1, 1)
    assert observation.distance == (1000 + 9000 + 10_000) / 3
    assert observation.forward == 1 / 3
    assert 0 < observation.busy < observation.seconds
    assert 0 < observation.queued < 1


def test_an_interval_begins_where_the_last_one_ended(node: RealNode, file: Path) -> None:
    with Client(node.socket) as client:
        handle = client.open(file)
        client.write(handle, bytes(100), 0)
        observe(node)
        nothing = observe(node)
        assert (nothing.requests, nothing.moved, nothing.handles, nothing.clients) == (0, 0, 0, 0)
        assert (nothing.smallest, nothing.largest, nothing.distance) == (0, 0, 0.0)
        assert nothing.busy == nothing.queued == 0
        client.write(handle, bytes(100), 100)
        observation = observe(node)
    assert (observation.handles, observation.clients, observation.forward) == (1, 1, 1.0), (
        "as the file was left"
    )


def test_a_handle_is_one_file_for_all_clients(node: RealNode, tmp_path: Path) -> None:
    shared, own = tmp_path / "shared", [tmp_path / "a", tmp_path / "b"]
    for path in (shared, *own):
        path.write_bytes(b"")
    with ExitStack() as stack:
        clients = [stack.enter_context(Client(node.socket, session=k + 1)) for k in range(2)]
        observe(node)
        for k, client in enumerate(clients):
            client.write(client.open(shared), bytes(100), 500 * k)
        observation = observe(node)
        assert (observation.handles, observation.clients, observation.distance) == (1, 2, 500.0)
        for path, client in zip(own, clients, strict=True):
            client.write(client.open(path), bytes(100), 0)
        observation = observe(node)
        assert (observation.handles, observation.clients, observation.distance) == (2, 2, 0.0)


def test_an_observation_has_the_settings_in_force(node: RealNode) -> None:
    assert node.ask(messages.Settings(scheduler="twins", window=0.002, depth=3)) == messages.Done()
    answer = node.ask(messages.GetObservation())
    assert isinstance(answer, messages.NodeObservation)
    assert answer.settings["scheduler"] == "twins"
    assert (answer.settings["window"], answer.settings["depth"]) == (0.002, 3)


def test_a_failed_request_counts_and_moves_nothing(node: RealNode, file: Path) -> None:
    with Client(node.socket) as client:
        file.write_bytes(b"")
        handle = client.open(file)
        observe(node)
        assert client.read(handle, 100, 0) == b""
        observation = observe(node)
    assert (observation.reads, observation.read_bytes, observation.asked) == (1, 0, 100)
