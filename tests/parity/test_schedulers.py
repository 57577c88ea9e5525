"""The I/O nodes' request schedulers: native and twin agree, and both do what their papers say.

The equations of the fair queue, and what is true of every scheduler, are in
native/ionode/schedulers_test.cpp.
"""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from parity.reference import schedulers
from parity.reference.fair_queue import SHARES, UserQueue
from parity.reference.schedulers import Request, Settings

from penstock.errors import InputError
from penstock.live.ionode import _schedulers

GRAIN = 30  # bytes: small multiples meet, overlap and coincide often


class Native:
    """The native fair queue behind the twin's interface, for timelines written once."""

    def __init__(self, name: str, config: Settings) -> None:
        self.queue = _schedulers.Scheduler(
            name,
            window=config.window,
            quantum=config.quantum,
            aggregation=config.aggregation,
            servers=config.servers,
            io_node=config.io_node,
            shares=config.shares,
        )
        self.weigh, self.served = self.queue.weigh, self.queue.served
        self.ready_at, self.drain = self.queue.ready_at, self.queue.drain

    def add(self, r: Request) -> None:
        self.queue.add(
            r.id, r.arrived, r.file, r.kind, r.offset, r.bytes, r.server, r.group, r.user
        )

    def take(self, now: int) -> list[int]:
        return self.queue.take(now)


class Twin(UserQueue):
    """The twin, whose batches are told by number."""

    def take(self, now: int) -> list[int]:  # type: ignore[override]
        return [request.id for request in super().take(now)]


SETTINGS = st.builds(
    Settings,
    window=st.sampled_from([1, 5, 40]),
    quantum=st.sampled_from([1, 45, 90]),
    aggregation=st.sampled_from([0, 60, 90, 1000]),
    servers=st.integers(1, 4),
    io_node=st.integers(0, 5),
    shares=st.sampled_from(SHARES),
)


@dataclass
class Traffic:
    """Random operations of a shape; a seed instead of draws, for there are many of them."""

    files: int
    groups: int
    users: int  # each has the groups whose numbers leave its own as remainder
    extents: int  # how many places requests may begin at
    kinds: tuple[str, ...]
    passed: tuple[int, ...]
    length: int
    seed: int

    def operations(
        self,
    ) -> Iterator[tuple[int, Request | tuple[int, float, int] | tuple[int, int] | None]]:
        """Yield the time and what is added, weighed, served (a group), or, if nothing, taken."""
        random, now = Random(self.seed), 0
        for number in range(self.length):
            now += random.choice(self.passed)
            dice = random.random()
            if dice < 0.03:
                weight = random.choice([0.1, 0.5, 1.0, 3.0])
                group = random.randrange(self.groups)
                yield now, (group, weight, group % self.users)
            elif dice > 0.8:
                group = random.randrange(self.groups)
                yield now, (group, group % self.users)
            elif dice < 0.45 or number < self.length // 4:
                kind = random.choice(self.kinds)
                sized = kind != "sync"
                group = random.randrange(self.groups)
                yield (
                    now,
                    Request(
                        id=number,
                        arrived=now,
                        file=random.randrange(self.files),
                        kind=kind,
                        offset=sized * GRAIN * random.randrange(self.extents),
                        bytes=sized * GRAIN * random.choice([1, 1, 1, 2, 3, 9, 0]),
                        server=random.randrange(5),
                        group=group,
                        user=group % self.users,
                    ),
                )
            else:
                yield now, None


TRAFFIC = st.builds(
    Traffic,
    files=st.integers(1, 4),
    groups=st.sampled_from([1, 1, 2, 3, 5]),
    users=st.integers(1, 3),
    extents=st.integers(1, 40),
    kinds=st.sampled_from([("write",), ("read",), ("read", "write", "write", "sync"), ("sync",)]),
    passed=st.sampled_from([(0,), (0, 1, 4), (0, 13, 150), (0, 0, 0, schedulers.LONGEST_WAIT)]),
    length=st.integers(0, 200),
    seed=st.integers(0, 2**32),
)


@pytest.mark.parametrize("name", _schedulers.names())
@settings(max_examples=120, deadline=None)
@given(config=SETTINGS, traffic=TRAFFIC)
def test_native_scheduler_does_what_its_twin_does(
    name: str, config: Settings, traffic: Traffic
) -> None:
    native, twin = Native(name, config), Twin(name, config)
    waiting: list[int] = []
    for now, operation in traffic.operations():
        if isinstance(operation, Request):
            native.add(operation)
            twin.add(operation)
            waiting.append(operation.id)
        elif operation is None:
            assert native.ready_at(now) == twin.ready_at(now)
            batch = native.take(now)
            assert batch == twin.take(now)
            waiting = [number for number in waiting if number not in batch]
        elif len(operation) == 2:
            native.served(*operation)
            twin.served(*operation)
        else:
            native.weigh(*operation)
            twin.weigh(*operation)
    assert native.drain() == waiting  # the rest, in the order of arrival


def test_schedulers_have_their_twins() -> None:
    assert _schedulers.names() == list(schedulers.KINDS)


IMPLEMENTATIONS = pytest.mark.parametrize("implementation", [Native, Twin])
Implementation = type[Native] | type[Twin]


def queue_of(
    implementation: Implementation, name: str, config: Settings, added: list[Request]
) -> Native | Twin:
    queue = implementation(name, config)
    for request in added:
        queue.add(request)
    return queue


def write(number: int, **how: int) -> Request:
    return Request(id=number, kind="write", **({"arrived": 0, "file": 0} | how))


def all_batches(queue: Native | Twin, now: int = 0) -> list[list[int]]:
    batches = []
    while batch := queue.take(now):
        batches.append(batch)
    return batches


@IMPLEMENTATIONS
def test_oldest_takes_along_what_is_contiguous_within_the_limit(
    implementation: Implementation,
) -> None:
    added = [
        write(0, offset=100, bytes=10),
        write(1, offset=105, bytes=10),  # overlaps: never in one batch with 0
        write(2, offset=110, bytes=10),
        write(3, offset=90, bytes=10),
        write(4, offset=120, bytes=30),  # would make 60 bytes
        write(5, offset=80, bytes=10),
        Request(id=6, arrived=0, file=0, kind="read", offset=115, bytes=10),
        write(7, offset=115, bytes=10, file=1),
    ]
    queue = queue_of(implementation, "time-order", Settings(aggregation=50), added)
    assert all_batches(queue) == [[5, 3, 0, 2], [1], [4], [6], [7]]


@IMPLEMENTATIONS
def test_a_request_above_the_limit_goes_alone_and_so_do_syncs(
    implementation: Implementation,
) -> None:
    added = [
        write(0, offset=0, bytes=80),
        write(1, offset=80, bytes=10),
        Request(id=2, arrived=0, file=0, kind="sync"),
        Request(id=3, arrived=0, file=0, kind="sync"),
    ]
    queue = queue_of(implementation, "time-order", Settings(aggregation=50), added)
    assert all_batches(queue) == [[0], [1], [2], [3]]


TWINS = Settings(window=100, servers=3, io_node=1)
# Servers 0, 1, 2 are in queues 1, 2, 0: windows [100, 200), [200, 300) and [0, 100) of each 300.
FOR_TWINS = [
    write(0, server=0, file=0),
    write(1, server=1, file=1),
    write(2, server=0, file=2),
]


@IMPLEMENTATIONS
def test_twins_sleeps_until_the_window_of_a_queue_that_has_something(
    implementation: Implementation,
) -> None:
    queue = queue_of(implementation, "twins", TWINS, FOR_TWINS)
    assert (queue.take(50), queue.ready_at(50)) == ([], 100)
    assert (queue.take(100), queue.ready_at(100)) == ([0], 100)
    assert (queue.take(210), queue.ready_at(210)) == ([1], 400)
    assert (queue.take(399), queue.ready_at(399)) == ([], 400)
    assert (queue.take(499), queue.ready_at(499)) == ([2], None)


@IMPLEMENTATIONS
def test_twins_busy_serves_the_queue_whose_window_comes_next(
    implementation: Implementation,
) -> None:
    queue = queue_of(implementation, "twins-busy", TWINS, FOR_TWINS)
    assert [queue.take(250), queue.take(250), queue.take(250)] == [[1], [0], [2]]
    assert queue.ready_at(250) is None


@IMPLEMENTATIONS
def test_twins_priority_is_algorithm_1_with_the_translation(
    implementation: Implementation,
) -> None:
    # Priority: arrived / window * servers + (server + io_node) % servers.
    table = {  # (arrived, server): priority, with windows of 100, three servers, I/O node 1
        (0, 0): 1,
        (99, 2): 0,
        (100, 2): 3,
        (150, 1): 5,
        (199, 0): 4,
        (730, 0): 22,
        (50, 1): 2,
    }
    added = [
        write(k, arrived=arrived, server=server, file=k)
        for k, (arrived, server) in enumerate(table)
    ]
    twin = schedulers.TwinsPriority(TWINS)
    assert [twin.priority(request) for request in added] == list(table.values())
    queue = queue_of(implementation, "twins-priority", TWINS, added)
    order = sorted(range(len(added)), key=lambda k: list(table.values())[k])
    assert all_batches(queue) == [[k] for k in order]


@IMPLEMENTATIONS
@pytest.mark.parametrize("servers", [2, 5])
def test_twins_of_different_io_nodes_serve_different_servers_in_every_window(
    implementation: Implementation, servers: int
) -> None:
    for now in range(0, 20 * servers, 10):
        served = set()
        for io_node in range(servers):
            config = Settings(window=20, servers=servers, io_node=io_node)
            added = [write(server, server=server, file=server) for server in range(servers)]
            served.update(queue_of(implementation, "twins", config, added).take(now))
        assert served == set(range(servers))


@IMPLEMENTATIONS
def test_hbrr_gives_each_file_its_quantum_in_turn(implementation: Implementation) -> None:
    added = [write(k, offset=20 * k, bytes=20) for k in (3, 2, 1, 0)]
    added += [write(10 + k, offset=30 * k, bytes=10, file=1) for k in range(2)]
    queue = queue_of(implementation, "hbrr", Settings(quantum=40, aggregation=100), added)
    assert all_batches(queue) == [[0, 1], [10], [11], [2, 3]]


@IMPLEMENTATIONS
def test_mlf_doubles_the_quantum_of_a_file_that_has_more(implementation: Implementation) -> None:
    added = [write(k, offset=10 * k, bytes=10) for k in range(7)]
    added += [write(10 + k, offset=10 * k, bytes=10, file=1) for k in range(2)]
    queue = queue_of(implementation, "mlf", Settings(quantum=10, aggregation=100), added)
    assert all_batches(queue) == [[0], [10], [1, 2], [11], [3, 4, 5, 6]]


@IMPLEMENTATIONS
def test_sjf_serves_the_shortest_file_until_a_request_is_overdue(
    implementation: Implementation,
) -> None:
    added = [write(0, offset=0, bytes=100), write(1, offset=200, bytes=100)]
    added += [write(2 + k, offset=0, bytes=10 - k, file=1 + k) for k in range(3)]
    queue = queue_of(implementation, "sjf", Settings(), added)
    assert queue.take(schedulers.LONGEST_WAIT - 1) == [4]
    assert queue.take(schedulers.LONGEST_WAIT) == [0]
    queue.add(write(9, arrived=schedulers.LONGEST_WAIT, bytes=1, file=9))
    assert queue.take(schedulers.LONGEST_WAIT) == [1]


@IMPLEMENTATIONS
def test_aioli_serves_first_what_its_doubling_quantum_covers_first(
    implementation: Implementation,
) -> None:
    # Shifts with a quantum of 10: 75 bytes 3, 20 bytes 1, 10 bytes 0; all are busy since choice 0.
    added = [
        write(0, offset=0, bytes=40),
        write(1, offset=50, bytes=35),
        write(2, offset=0, bytes=20, file=1),
        write(3, offset=0, bytes=10, file=2),
    ]
    queue = queue_of(implementation, "aioli", Settings(quantum=10), added)
    assert queue.take(0) == [3]
    queue.add(
        write(4, bytes=20, file=3)
    )  # busy since choice 1: due at 2, before the large one at 3
    assert [queue.take(0) for _ in range(4)] == [[2], [4], [0], [1]]


@IMPLEMENTATIONS
def test_aioli_lets_no_stream_of_small_files_starve_a_large_one(
    implementation: Implementation,
) -> None:
    queue = queue_of(
        implementation, "aioli", Settings(quantum=10), [write(0, offset=0, bytes=1000)]
    )
    for k in range(1, 9):  # its shift is 7: it is due at choice 7
        queue.add(write(k, bytes=1, file=k))
        if queue.take(0) == [0]:
            break
    assert k == 8


@IMPLEMENTATIONS
@pytest.mark.parametrize("name", ["hbrr", "aioli", "sjf", "mlf"])
def test_a_stream_ahead_of_the_sweep_does_not_starve_those_behind_it(
    implementation: Implementation, name: str
) -> None:
    added = [write(k, offset=1000 + 20 * k, bytes=10) for k in range(2)]
    queue = queue_of(implementation, name, Settings(aggregation=0), added)
    assert queue.take(0) == [0]
    queue.add(write(2, offset=0, bytes=10))
    served = []
    for k in range(3, 3 + 100):
        queue.add(write(k, offset=1000 + 20 * k, bytes=10))
        served += queue.take(0)
    assert served.index(2) + 2 == schedulers.BATCHES_OF_A_SWEEP  # counted from 1, after the first


@IMPLEMENTATIONS
def test_fair_queue_serves_backlogged_groups_by_weight(implementation: Implementation) -> None:
    config, share = Settings(), {1: 1.0, 2: 3.0}
    added = [write(k, bytes=4096, file=k, group=1 + k % 2) for k in range(80)]
    queue = queue_of(implementation, "fifo", config, added)
    for group, weight in share.items():
        queue.weigh(group, weight)
    groups = [1 + queue.take(0)[0] % 2 for _ in range(40)]
    # Batches are equal: after any n of them the counts by weight differ by 1/1 + 1/3 at most.
    for n in range(len(groups) + 1):
        served = [groups[:n].count(group) / weight for group, weight in share.items()]
        assert abs(served[0] - served[1]) <= 1 + 1 / 3
    assert groups.count(1) == 10


@IMPLEMENTATIONS
@pytest.mark.parametrize("shares", SHARES)
def test_users_share_before_their_jobs_do(implementation: Implementation, shares: str) -> None:
    # User 1 has nineteen jobs of weight 1, one of weight 2, all there first; user 2 has one of
    # weight 1: twice as much for user 1, and for its heavy job twice as much as for each other.
    many = 20
    added = [
        write(1000 * job + k, bytes=4096, file=job, group=job, user=1 + job // many)
        for job in range(many + 1)
        for k in range(300)
    ]
    queue = queue_of(implementation, "fifo", Settings(shares=shares), added)
    queue.weigh(0, 2.0, 1)
    turns = []
    serving: list[int] = []
    for _ in range(630):
        if len(serving) == 63:  # those that are in service longest end first
            job = serving.pop(0)
            queue.served(job, 1 + job // many)
        serving.append(queue.take(0)[0] // 1000)
        turns.append(serving[-1])
    assert abs(turns.count(many) - 210) <= 3
    assert abs(turns.count(0) - 40) <= 3
    assert all(abs(turns.count(job) - 20) <= 3 for job in range(1, many))


@IMPLEMENTATIONS
def test_concurrency_is_by_weight_and_whoever_is_alone_has_all(
    implementation: Implementation,
) -> None:
    added = [write(k, bytes=4096 * (1 + k % 5), file=k, group=1) for k in range(28)]
    queue = queue_of(implementation, "fifo", Settings(shares="concurrency"), added)
    for group, weight in {1: 1.0, 2: 2.0, 3: 4.0}.items():
        queue.weigh(group, weight)
    serving = [queue.take(0)[0] // 1000 + 1 for _ in range(28)]
    assert serving == [1] * 28, "alone, it is not held back"
    for group in (1, 2, 3):
        for k in range(100):
            queue.add(write(1000 * (group - 1) + k + 28, bytes=4096, file=k, group=group))
    for _ in range(60):  # those that are in service longest end first
        queue.served(serving.pop(0))
        serving.append(queue.take(0)[0] // 1000 + 1)
    assert Counter(serving) == {1: 4, 2: 8, 3: 16}


@IMPLEMENTATIONS
def test_a_batch_holds_requests_of_one_group_only(implementation: Implementation) -> None:
    added = [write(k, offset=10 * k, bytes=10, group=k // 2) for k in range(4)]
    assert all_batches(queue_of(implementation, "time-order", Settings(), added)) == [
        [0, 1],
        [2, 3],
    ]


@IMPLEMENTATIONS
def test_groups_asleep_save_nothing_up(implementation: Implementation) -> None:
    # Group 1 has requests for server 1 alone, and sleeps through server 0's window, in which
    # group 0 is served ten times. In its own window it shares equally with group 0.
    config = Settings(window=100, servers=2)
    added = [write(k, file=k, server=0, group=0, bytes=1) for k in range(10)]
    added += [write(10 + k, file=k, server=1, group=0, bytes=1) for k in range(10)]
    added += [write(20 + k, file=k, server=1, group=1, bytes=1) for k in range(10)]
    queue = queue_of(implementation, "twins", config, added)
    assert [len(queue.take(0)) for _ in range(11)] == [1] * 10 + [0]
    groups = [queue.take(100)[0] >= 20 for _ in range(10)]
    assert all(a != b for a, b in pairwise(groups))


def test_the_example_in_the_documentation_runs() -> None:
    page = Path(__file__).parents[2] / "docs/live/schedulers.md"
    (example,) = re.findall(r"^```python\n(.*?)^```", page.read_text(), re.M | re.S)
    exec(example, {})


def test_the_documentation_has_every_scheduler() -> None:
    page = Path(__file__).parents[2] / "docs/live/schedulers.md"
    titles = ", ".join(re.findall(r"^## (.*)", page.read_text(), re.M)).split(", ")
    assert [title for title in titles if title in _schedulers.names()] == _schedulers.names()


def test_wrong_settings_are_refused() -> None:
    wrongs: tuple[dict[str, Any], ...] = ({"window": 0}, {"servers": 0}, {"quantum": 0})
    for wrong in wrongs:
        with pytest.raises(ValueError, match=r"window|server|quantum"):
            _schedulers.Scheduler("twins", **wrong)
    with pytest.raises(ValueError, match="unknown scheduler 'twin'"):
        _schedulers.Scheduler("twin")
    with pytest.raises(InputError, match="did you mean 'twins'"):
        UserQueue("twin", Settings())
    with pytest.raises(ValueError, match="not of 'byte'"):
        _schedulers.Scheduler("fifo", shares="byte")
    with pytest.raises(InputError, match="did you mean 'bytes'"):
        UserQueue("fifo", Settings(shares="byte"))
    for weight in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="above zero"):
            _schedulers.Scheduler("fifo").weigh(1, weight)
        with pytest.raises(InputError, match="above zero"):
            UserQueue("fifo", Settings()).weigh(1, weight)
