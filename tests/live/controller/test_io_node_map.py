"""Who has which I/O nodes: decided without a socket."""

import pytest

from penstock.config.sections import LiveSection
from penstock.errors import InputError
from penstock.identities import IoNodeId
from penstock.identities import io_nodes as numbered
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
    assert sorted(numbers(assignments.begin("b", 2))) == [0, 3]
    assignments.end("a")
    assert sorted(numbers(assignments.begin("c", 2))) == [1, 2]


def test_one_that_is_down_is_given_last_and_left_out_of_maps() -> None:
    assignments = serving(3)
    assert assignments.node_down(IoNodeId(0)) == {}
    assert numbers(assignments.begin("a", 2)) == [1, 2]
    assert sorted(numbers(assignments.begin("b", 3))) == [1, 2]
    assert assignments.numbers("b") == (0, 1, 2)


def test_jobs_hear_of_the_death_and_the_return_of_their_own_nodes_alone() -> None:
    assignments = serving(2)
    assignments.begin("both")
    assignments.begin("one", 1)  # equally loaded: the lowest number
    moved = assignments.node_down(IoNodeId(0))
    assert {k: numbers(v) for k, v in moved.items()} == {"both": [1], "one": []}
    assert assignments.node_down(IoNodeId(0)) == {}
    back = assignments.node_up(node(0, run=2))
    assert [n.id for n in back["both"].nodes] == [200, 101]
    assert set(assignments.node_down(IoNodeId(1))) == {"both"}


def test_a_remap_takes_what_is_named() -> None:
    assignments = serving(3)
    assignments.begin("a")
    remapped = assignments.remap("a", numbered([2, 0]), 4096, in_order=True)
    assert remapped == NodeMap(nodes=[node(2), node(0)], stripe=4096)
    assert numbers(assignments.remap("a", [], 0)) == []


@pytest.mark.parametrize(
    ("job", "io_nodes", "message"),
    [("a", [3], "no I/O node 3"), ("a", [1, 1], "twice"), ("aa", [1], "did you mean 'a'")],
)
def test_wrong_remaps_change_nothing(job: str, io_nodes: list[int], message: str) -> None:
    assignments = serving(3)
    assignments.begin("a")
    with pytest.raises(InputError, match=message):
        assignments.remap(job, numbered(io_nodes), 0)
    assert assignments.numbers("a") == (0, 1, 2)


def test_more_than_there_are_cannot_be_had() -> None:
    with pytest.raises(InputError, match="5 I/O nodes are requested; there are 4"):
        serving(4).begin("a", 5)


def test_a_member_that_follows_another_has_its_io_nodes_where_it_reaches_them() -> None:
    """The other was remapped meanwhile; from another host no Unix socket is reached."""
    assignments = serving(4)
    assignments.begin("first", 2)
    assignments.remap("first", numbered([3, 1]), 1 << 20, in_order=True)
    for name, local, reached in (("second", True, [3, 1]), ("third", False, [])):
        assignments.begin(name, local=local)
        assignments.follow(name, "first")
        assert assignments.numbers(name) == (3, 1)
        assert numbers(assignments.map(name)) == reached
        assert assignments.map(name).stripe == 1 << 20


def first(assignments: IoNodeMap, job: str) -> int:
    return assignments.map(job).nodes[0].number


def test_each_job_begins_at_another_io_node_and_stays_there_when_one_dies() -> None:
    """A process uses the I/O node at its ordinal: all jobs of one process used the first."""
    assignments = serving(4)
    firsts = [assignments.begin(f"j.{k}").nodes[0].number for k in range(5)]
    assert firsts == [0, 1, 2, 3, 0]
    assert assignments.numbers("j.1") == (0, 1, 2, 3)
    assignments.node_down(IoNodeId(3))
    assert numbers(assignments.map("j.1")) == [1, 2, 0]
    assert numbers(assignments.map("j.2")) == [2, 0, 1]


def test_jobs_without_io_do_not_shift_those_that_do_it() -> None:
    """Three idle jobs between the writers gave all of these one I/O node of four."""
    now = 0.0
    assignments = IoNodeMap(4, clock=lambda: now)
    for number in range(4):
        assignments.node_up(node(number))
    writers = []
    for k in range(8):
        writers.append(f"w.{k}")
        assignments.begin(writers[-1])
        assignments.begins_io(writers[-1])
        for idle in range(3):
            assignments.begin(f"idle.{k}.{idle}")
        now += 10.0
    assert sorted(first(assignments, job) for job in writers) == [0, 0, 1, 1, 2, 2, 3, 3]


def test_jobs_one_after_the_other_use_all_io_nodes() -> None:
    assignments = serving(3)
    used = []
    for k in range(6):
        assignments.begin(f"j.{k}")
        assignments.begins_io(f"j.{k}")
        used.append(first(assignments, f"j.{k}"))
        assignments.end(f"j.{k}")
    assert sorted(used) == [0, 0, 1, 1, 2, 2]


def test_a_job_that_begins_its_io_leaves_an_io_node_that_another_uses_and_then_stays() -> None:
    now = 0.0
    assignments = IoNodeMap(2, clock=lambda: now)
    for number in range(2):
        assignments.node_up(node(number))
    assignments.begin("a")
    now += 10.0  # what has done no I/O by now does not count
    assignments.begin("b")
    assert (first(assignments, "a"), first(assignments, "b")) == (0, 0)
    assert assignments.begins_io("a") is None
    moved = assignments.begins_io("b")
    assert moved is not None
    assert numbers(moved) == [1, 0]
    assignments.end("a")
    assignments.begin("c")
    assignments.begins_io("c")
    assert assignments.begins_io("b") is None
    assert (first(assignments, "b"), first(assignments, "c")) == (1, 0)


@pytest.mark.parametrize(
    ("used", "order"), [((2,), [2, 0, 1]), ((0, 2), [2, 0, 1]), ((0, 1, 2), [0, 1, 2])]
)
def test_a_job_of_an_earlier_controller_keeps_its_first_io_node(
    used: tuple[int, ...], order: list[int]
) -> None:
    """Its files are open there; a job of two processes used two, one after the other."""
    assignments = serving(3)
    assert numbers(assignments.begin("back", used=numbered(used))) == order
    assert assignments.begins_io("back") is None


def test_two_jobs_on_four_hosts_use_all_io_nodes_whatever_order_their_agents_come_in() -> None:
    """Numbered over the site, the hosts of each of two jobs were on two I/O nodes of four."""
    assignments = serving(4)
    for host in range(4):
        for job in "AB":
            assignments.begin(f"{job}.{host}")
            if host:
                assignments.follow(f"{job}.{host}", f"{job}.0")
    for job in "AB":
        assert sorted(first(assignments, f"{job}.{host}") for host in range(4)) == [0, 1, 2, 3]


@pytest.mark.parametrize(("stripe", "order"), [(0, [1, 2, 0]), (1 << 20, [0, 1, 2])])
def test_hosts_of_a_job_begin_apart_unless_its_files_are_striped(
    stripe: int, order: list[int]
) -> None:
    """A piece of a striped file goes to the same I/O node from every host."""
    assignments = serving(3, stripe=stripe)
    assignments.begin("job.1")
    assignments.begin("job.2")
    assignments.follow("job.2", "job.1")
    assert numbers(assignments.map("job.2")) == order


def test_the_hosts_of_a_large_job_use_different_io_nodes() -> None:
    """A host's page has room for 64 of up to 1,024."""
    assignments = serving(SITE_NODES)
    assignments.begin("j.0")
    for k in range(1, 16):
        assignments.begin(f"j.{k}")
        assignments.follow(f"j.{k}", "j.0")
    hosts = [numbers(assignments.map(f"j.{k}")) for k in range(16)]
    assert {len(used) for used in hosts} == {MAP_NODES}
    assert sorted(number for used in hosts for number in used) == list(range(SITE_NODES))


def test_a_stripe_is_on_one_io_node_for_all_hosts_of_a_large_job() -> None:
    assignments = serving(100, stripe=1 << 20)
    mapped = assignments.begin("j.1")
    assignments.begin("j.2")
    assignments.follow("j.2", "j.1")
    assert assignments.map("j.2") == mapped
    assert len(mapped.nodes) == MAP_NODES


def test_a_pinned_number_is_of_io_nodes_that_the_job_can_reach() -> None:
    """The least loaded ones were another user's: all its data went direct."""
    assignments = IoNodeMap(4)
    for number in range(4):
        user = "alice" if number < 2 else "bob"
        assignments.node_up(
            Node(number=number, id=number + 1, address="h", transport="tcp", user=user)
        )
    assignments.begin("a", user="alice", local=False)
    assert numbers(assignments.begin("b", 2, user="bob", local=False)) == [2, 3]
    assert numbers(assignments.begin("c", 1, user="alice", local=False)) == [0]


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
