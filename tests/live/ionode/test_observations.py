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
    with Client(node.carrier) as client:
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
    with Client(node.carrier) as client:
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


def test_a_handle_is_one_file_for_all_clients(node: RealNode, folder: Path) -> None:
    shared, own = folder / "common", [folder / "a", folder / "b"]
    for path in (shared, *own):
        path.write_bytes(b"")
    with ExitStack() as stack:
        clients = [stack.enter_context(Client(node.carrier, session=k + 1)) for k in range(2)]
        observe(node)
        for k, client in enumerate(clients):
            client.write(client.open(shared), bytes(100), 500 * k)
        observation = observe(node)
        assert (observation.handles, observation.clients, observation.distance) == (1, 2, 500.0)
        for path, client in zip(own, clients, strict=True):
            client.write(client.open(path), bytes(100), 0)
        observation = observe(node)
        assert (observation.handles, observation.clients, observation.distance) == (2, 2, 0.0)


def test_a_stream_goes_on_leaps_by_a_stride_or_neither(node: RealNode, file: Path) -> None:
    """Whether a leap is a stride, only the next one shows."""
    with ExitStack() as stack:
        clients = [stack.enter_context(Client(node.carrier, session=k + 1)) for k in range(2)]
        handles = [client.open(file) for client in clients]

        def observed(*offsets: int) -> Observation:
            observe(node)
            for offset in offsets:
                for client, handle in zip(clients, handles, strict=True):
                    client.write(handle, bytes(100), offset)
            return observe(node)

        first = observed(0, 1000, 2000, 2100)
        assert (first.sequential, first.strided) == (1 / 4, 1 / 4)
        leaps = observed(3000, 4000, 5000, 6000, 7000)
        assert (leaps.sequential, leaps.strided, leaps.forward) == (0, 1, 0)
        runs = observed(7100, 7200, 7300, 7400)
        assert (runs.sequential, runs.strided) == (1, 0), "whatever others do to the file"
        assert runs.forward == 0.5, "of the file: every other request is where the last one was"
        neither = observed(50, 9000, 20, 500)
        assert (neither.sequential, neither.strided) == (0, 0)
        again = observed(500, 500, 500)
        back = observed(400, 300, 200)
        assert (again.sequential, again.strided) == (back.sequential, back.strided) == (0, 0)
        pairs = observed(10_000, 10_100, 12_000, 12_100, 14_000, 14_100)
        assert (pairs.sequential, pairs.strided) == (2 / 6, 2 / 6), "a stride may be of several"


def test_requests_to_files_of_several_processes_are_shared(node: RealNode, folder: Path) -> None:
    shared, own = folder / "common", folder / "own"
    for path in (shared, own):
        path.write_bytes(b"")
    with ExitStack() as stack:
        first, second = (stack.enter_context(Client(node.carrier, session=k + 1)) for k in range(2))
        own_file, part, other_part = first.open(own), first.open(shared), second.open(shared)
        observe(node)
        first.write(part, bytes(100), 0)
        assert observe(node).shared == 0, "the other has opened it, and asks for nothing"
        first.write(own_file, bytes(100), 0)
        for k in range(2):
            first.write(part, bytes(100), 100 * k)
        second.write(other_part, bytes(100), 500)
        assert observe(node).shared == 3 / 4
        assert observe(node).shared == 0


def test_an_observation_has_the_settings_in_force(node: RealNode) -> None:
    assert node.ask(messages.Settings(scheduler="twins", window=0.002, depth=3)) == messages.Done()
    answer = node.ask(messages.GetObservation())
    assert isinstance(answer, messages.NodeObservation)
    assert answer.settings["scheduler"] == "twins"
    assert (answer.settings["window"], answer.settings["depth"]) == (0.002, 3)


def test_a_failed_request_counts_and_moves_nothing(node: RealNode, file: Path) -> None:
    with Client(node.carrier) as client:
        file.write_bytes(b"")
        handle = client.open(file)
        observe(node)
        assert client.read(handle, 100, 0) == b""
        observation = observe(node)
    assert (observation.reads, observation.read_bytes, observation.asked) == (1, 0, 100)
