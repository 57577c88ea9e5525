"""Candidates: the same bytes, the job's own nodes, evenly over the machine, and not too many."""

from collections import Counter

import pytest

from penstock.learn.write_models import machine as machines
from penstock.learn.write_models.candidates import candidates, deal
from penstock.learn.write_models.parameters import parameters
from penstock.model.write import Write

CETUS, TITAN = machines.load("cetus"), machines.load("titan")
WRITES = [
    (CETUS, Write(nodes=200, cores=16, burst=100e6)),
    (CETUS, Write(nodes=192, cores=5, burst=3e6, placement=tuple(range(64, 448, 2)))),
    (TITAN, Write(nodes=300, cores=8, burst=1e9, shared=True)),
    (TITAN, Write(nodes=1, cores=1, burst=1.0)),
    (TITAN, Write(nodes=18688, cores=16, burst=1e6, stripe_count=8, stripe_size=2.0**20)),
]


@pytest.mark.parametrize(("machine", "write"), WRITES)
def test_they_write_the_same_from_the_jobs_own_nodes(
    machine: machines.Machine, write: Write
) -> None:
    own = set(write.placement or range(write.nodes))
    writes = list(candidates(machine, write))
    assert writes[0] == write
    for one in writes:
        assert one.bytes == pytest.approx(write.bytes)
        assert own.issuperset(one.placement)
        assert one.nodes <= write.nodes
        assert one.cores <= write.cores
        parameters(machine, one)
    assert len(set(writes)) == len(writes), "none is tried twice"
    assert len(writes) <= 3000, "the search is bounded"


@pytest.mark.parametrize("taken", [1, 3, 7, 12, 100, 299])
def test_every_beginning_is_spread_as_evenly_as_can_be(taken: int) -> None:
    order = deal(range(300), [128, 64])
    assert sorted(order) == list(range(300))
    behind = Counter(node // 128 for node in order[:taken])
    level = next(k for k in range(300) if 2 * min(k, 128) + min(k, 44) >= taken)
    assert max(behind.values()) == level
    within = Counter(node // 64 for node in order[:taken] if node < 128)
    assert abs(within[0] - within[1]) <= 1


def test_links_and_routers_are_in_balance_somewhere() -> None:
    write = Write(nodes=256, cores=16, burst=1e8)
    values = [parameters(CETUS, one) for one in candidates(CETUS, write) if one.nodes == 8]
    assert {(one["s_io"], one["n_io"], one["s_b"]) for one in values} == {(4, 2, 2)}


def test_stripes_are_chosen_only_where_users_may() -> None:
    assert {one.stripe_count for one in candidates(CETUS, WRITES[0][1])} == {None}
    counts = {one.stripe_count for one in candidates(TITAN, WRITES[2][1])}
    assert {1, 16, 256, 1008} <= counts


def test_without_aggregators_only_stripes_differ() -> None:
    write = Write(nodes=64, cores=16, burst=1e9)
    writes = list(candidates(TITAN, write, aggregators=False))
    assert {(one.nodes, one.cores, one.burst) for one in writes} == {(64, 16, 1e9)}
    assert len(writes) > 3


def test_settings_that_change_nothing_are_not_tried() -> None:
    small = Write(nodes=1, cores=1, burst=1e6)
    assert list(candidates(TITAN, small)) == [small], "a file of one stripe is on one target"
