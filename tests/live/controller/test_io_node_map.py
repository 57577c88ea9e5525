"""Who has which I/O nodes: decided without a socket."""

import pytest

from penstock.config.sections import LiveSection
from penstock.errors import InputError
from penstock.live.controller.io_node_map import IoNodeMap
from penstock.live.protocol.messages import Node, NodeMap
from penstock.live.protocol.shared_page import MAP_NODES, SITE_NODES


def node(number: int, *, run: int = 1) -> Node:
    return Node(number=number, id=100 * run + number, address=f"/run/{number}")


def serving(io_nodes: int, *, stripe: int = 0) -> IoNodeMap:
    assignments = IoNodeMap(io_nodes, stripe=stripe)
    for number in range(io_nodes):
        assignments.node_up(node(number))
    return assignments


def numbers(mapped: NodeMap) -> list[int]:
    return [node.number for node in mapped.nodes]


def test_a_job_gets_all_unless_it_asks() -> None:
    assignments = serving(4, stripe=1 << 20)
    assert assignments.begin("all") == NodeMap(nodes=[node(k) for k in range(4)], stripe=1 << 20)
    assert numbers(assignments.begin("none", 0)) == []


def test_the_least_loaded_are_given_first() -> None:
    assignments = serving(4)
    assert numbers(assignments.begin("a", 3)) == [0, 1, 2]
    assert numbers(assignments.begin("b", 2)) == [0, 3]
    assignments.end("a")
    assert numbers(assignments.begin("c", 2)) == [1, 2]


def test_one_that_is_down_is_given_last_and_left_out_of_maps() -> None:
    assignments = serving(3)
    assert assignments.node_down(0) == {}
    assert numbers(assignments.begin("a", 2)) == [1, 2]
    assert numbers(assignments.begin("b", 3)) == [1, 2]
    assert assignments.numbers("b") == (0, 1, 2)


def test_jobs_hear_of_the_death_and_the_return_of_their_own_nodes_alone() -> None:
    assignments = serving(2)
    assignments.begin("both")
    assignments.begin("one", 1)  # equally loaded: the lowest number
    assert {k: numbers(v) for k, v in assignments.node_down(0).items()} == {"both": [1], "one": []}
    assert assignments.node_down(0) == {}
    back = assignments.node_up(node(0, run=2))
    assert [n.id for n in back["both"].nodes] == [200, 101]
    assert set(assignments.node_down(1)) == {"both"}


def test_a_remap_takes_what_is_named() -> None:
    assignments = serving(3)
    assignments.begin("a")
    assert assignments.remap("a", [2, 0], 4096) == NodeMap(nodes=[node(2), node(0)], stripe=4096)
    assert numbers(assignments.remap("a", [], 0)) == []


@pytest.mark.parametrize(
    ("job", "io_nodes", "message"),
    [("a", [3], "no I/O node 3"), ("a", [1, 1], "twice"), ("aa", [1], "did you mean 'a'")],
)
def test_wrong_remaps_change_nothing(job: str, io_nodes: list[int], message: str) -> None:
    assignments = serving(3)
    assignments.begin("a")
    with pytest.raises(InputError, match=message):
        assignments.remap(job, io_nodes, 0)
    assert assignments.numbers("a") == (0, 1, 2)


def test_more_than_there_are_cannot_be_had() -> None:
    with pytest.raises(InputError, match="5 I/O nodes are requested; there are 4"):
        serving(4).begin("a", 5)


def test_a_member_that_follows_another_has_its_io_nodes_where_it_reaches_them() -> None:
    """The other was remapped meanwhile; from another host no Unix socket is reached."""
    assignments = serving(4)
    assignments.begin("first", 2)
    assignments.remap("first", [3, 1], 1 << 20)
    for name, local, reached in (("second", True, [3, 1]), ("third", False, [])):
        assignments.begin(name, local=local)
        assignments.follow(name, "first")
        assert assignments.numbers(name) == (3, 1)
        assert numbers(assignments.map(name)) == reached
        assert assignments.map(name).stripe == 1 << 20


def test_each_job_begins_at_another_io_node_and_stays_there_when_one_dies() -> None:
    """A process uses the I/O node at its ordinal: all jobs of one process used the first."""
    assignments = serving(4)
    first = [assignments.begin(f"j.{k}", serial=k).nodes[0].number for k in range(1, 6)]
    assert first == [1, 2, 3, 0, 1]
    assert assignments.numbers("j.2") == (0, 1, 2, 3)
    assignments.node_down(3)
    assert numbers(assignments.map("j.2")) == [2, 0, 1]
    assert numbers(assignments.map("j.3")) == [0, 1, 2]


@pytest.mark.parametrize(("stripe", "order"), [(0, [2, 0, 1]), (1 << 20, [1, 2, 0])])
def test_hosts_of_a_job_begin_apart_unless_its_files_are_striped(
    stripe: int, order: list[int]
) -> None:
    """A piece of a striped file goes to the same I/O node from every host."""
    assignments = serving(3, stripe=stripe)
    assignments.begin("job.1", serial=1)
    assignments.begin("job.2", serial=2)
    assignments.follow("job.2", "job.1")
    assert numbers(assignments.map("job.2")) == order


def test_the_hosts_of_a_large_job_use_different_io_nodes() -> None:
    """A host's page has room for 64 of up to 1,024."""
    assignments = serving(SITE_NODES)
    hosts = [numbers(assignments.begin(f"j.{k}", serial=k)) for k in range(16)]
    assert {len(used) for used in hosts} == {MAP_NODES}
    assert sorted(number for used in hosts for number in used) == list(range(SITE_NODES))


def test_a_stripe_is_on_one_io_node_for_all_hosts_of_a_large_job() -> None:
    assignments = serving(100, stripe=1 << 20)
    first = assignments.begin("j.1", serial=1)
    assignments.begin("j.2", serial=2)
    assignments.follow("j.2", "j.1")
    assert assignments.map("j.2") == first
    assert len(first.nodes) == MAP_NODES


def test_a_partition_has_its_io_nodes_to_itself() -> None:
    live = LiveSection(partitions={"gpu": [0, 1], "viz": [1]})
    assignments = IoNodeMap(4, partitions_of=live.partitions_of)
    for number in range(4):
        assignments.node_up(node(number))
    given = {
        name: numbers(assignments.begin(name, partition=live.tied(name)))
        for name in ("gpu", "viz", "batch")
    }
    assert given == {"gpu": [0, 1], "viz": [1], "batch": [2, 3]}
    with pytest.raises(InputError, match="3 I/O nodes are requested; partition gpu has 2"):
        assignments.begin("greedy", 3, partition="gpu")


@pytest.mark.parametrize(
    ("partitions", "wrong"),
    [
        ({"gpu": [0, 4]}, "live.partitions.gpu names I/O node 4; there are 4, counted from 0"),
        ({"gpu": []}, "live.partitions.gpu is empty"),
    ],
)
def test_a_partition_without_io_nodes_is_refused(
    partitions: dict[str, list[int]], wrong: str
) -> None:
    with pytest.raises(InputError, match=wrong):
        LiveSection(partitions=partitions).check_partitions(4)
