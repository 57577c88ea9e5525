"""What is advised can be had: libraries, told what is typed, choose the aggregators predicted."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import pytest

from penstock.learn.write_models import machine as machines
from penstock.learn.write_models.advice import Advice, Choice, Gain, advise, settings
from penstock.learn.write_models.candidates import LONGEST, attainable_candidates
from penstock.learn.write_models.machine import Machine
from penstock.learn.write_models.parameters import parameters, width
from penstock.learn.write_models.prediction import Physical, Prediction
from penstock.model.write import Write

CETUS, TITAN = machines.load("cetus"), machines.load("titan")
SCATTERED = tuple(range(300, 396)) + tuple(range(0, 96)) + tuple(range(120, 128))
WRITES = [
    (TITAN, Write(nodes=256, cores=16, burst=1e8, shared=True)),
    (TITAN, Write(nodes=200, cores=12, burst=1e7, shared=True, placement=SCATTERED)),
    (CETUS, Write(nodes=300, cores=16, burst=1e8, shared=True)),
    (TITAN, Write(nodes=256, cores=16, burst=1e8)),
    (TITAN, Write(nodes=200, cores=5, burst=1e7, placement=SCATTERED)),
    (CETUS, Write(nodes=130, cores=6, burst=1e8)),
]


def names(write: Write) -> list[str]:
    return [f"n{node}" for node in write.placement or range(write.nodes)]


def advising(write: Write, other: Write) -> Advice:
    """Return the advice to write in another way, whatever that takes."""
    prediction = Prediction(seconds=10.0, low=9.0, high=11.0, coverage=0.9)
    now, best = (Choice(write=one, prediction=prediction) for one in (write, other))
    twice = Gain(expected=2.0, low=1.5, high=2.5)
    return Advice(now=now, best=best, gain=twice, candidates=1, rejected=0, moves_counted=True)


def romio(hints: dict[str, str], host_of: Sequence[str], stripe_count: int | None) -> list[int]:
    """Return the ranks that write: ROMIO's documented rules, by hand.

    cb_config_list is gone through from the left; a star is every host not yet named, in the order
    of ranks; each gives at most the number after its name. On Lustre their number is cut to a
    multiple of the stripe count, at most romio_lustre_co_ratio times, or to a divisor of it.
    """
    aggregators: list[int] = []
    left: dict[str, list[int]] = {}
    for rank, name in enumerate(host_of):
        left.setdefault(name, []).append(rank)
    for item in hints["cb_config_list"].split(","):
        host, most = item.split(":")
        for name in list(left) if host == "*" else [host]:
            aggregators += left.pop(name)[: int(most)]
    aggregators = aggregators[: int(hints["cb_nodes"])]
    if stripe_count is None:
        return aggregators
    if len(aggregators) >= stripe_count:
        ratio = int(hints.get("romio_lustre_co_ratio", "1"))
        return aggregators[: stripe_count * min(len(aggregators) // stripe_count, ratio)]
    return aggregators[: max(k for k in range(1, len(aggregators) + 1) if stripe_count % k == 0)]


def adios2(parameters: dict[str, str], ranks: int) -> list[int]:
    """Return the ranks that write: the first of each run of ranks, the longer runs first."""
    count = int(parameters["NumAggregators"])
    aggregators, at = [], 0
    for k in range(count):
        aggregators.append(at)
        at += ranks // count + (k < ranks % count)
    return aggregators


@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize(("machine", "write"), WRITES)
def test_what_is_typed_does_what_was_predicted(machine: Machine, write: Write, named: bool) -> None:
    where = write.placement or tuple(range(write.nodes))
    hosts = names(write) if named and write.shared else []
    host_of = [name for name in names(write) for _ in range(write.cores)]
    node_of = dict(zip(names(write), where, strict=True))
    tried = 0
    for other in list(attainable_candidates(machine, write, hosts=hosts))[1::5]:
        typed = settings(machine, advising(write, other), "out", hosts=hosts)
        if other.bursts == write.bursts:
            assert "cb_nodes" not in typed.hints
            continue
        tried += 1
        if write.shared:
            lustre = width(machine, other) if machine is TITAN else None
            writers = romio(typed.hints, host_of, lustre)
        else:
            writers = adios2(typed.adios2, write.bursts)
        assert len(writers) == other.bursts
        on = Counter(node_of[host_of[rank]] for rank in writers)
        assert set(on) == set(other.placement)
        assert set(on.values()) == {other.cores}
    assert tried


@pytest.mark.parametrize(("machine", "write"), WRITES)
def test_the_same_bytes_from_the_jobs_own_nodes_and_none_twice(
    machine: Machine, write: Write
) -> None:
    others = list(attainable_candidates(machine, write))
    assert others[0] == write
    assert len(set(others)) == len(others) <= 3000
    for other in others:
        assert other.bytes == pytest.approx(write.bytes)
        parameters(machine, other)
    alone = list(attainable_candidates(machine, write, aggregators=False))
    assert {other.bursts for other in alone} == {write.bursts}


def test_placement_wants_names_that_fit_into_a_hint() -> None:
    write = WRITES[0][1]
    short, long = names(write), [f"{name}.cluster.example.org" for name in names(write)]
    spread = [
        {
            other.nodes
            for other in attainable_candidates(TITAN, write, hosts=hosts)
            if 109 in other.placement and other.nodes < 109
        }
        for hosts in ([], short, long)
    ]
    assert spread[0] == set()
    assert max(spread[2]) < max(spread[1])
    for other in attainable_candidates(TITAN, write, hosts=long):
        if other.nodes < 109 and 109 in other.placement:
            assert len(",".join(f"{long[k]}:{other.cores}" for k in other.placement)) <= LONGEST


def test_the_reviewed_write_is_not_promised_routers_that_it_does_not_get() -> None:
    """96 nodes behind three routers were promised; the first 96 hosts are behind one."""
    write, model = WRITES[0][1], Physical(machine=TITAN)
    advice = advise(model, write)
    spread = replace(
        write, nodes=96, burst=write.bytes / 1536, stripe_count=64, stripe_size=2.0**20,
        placement=(*range(32), *range(109, 141), *range(218, 250)),
    )  # fmt: skip
    assert model.predict(spread).seconds < advice.best.seconds
    with_names = advise(model, write, hosts=names(write))
    assert with_names.best.seconds < advice.best.seconds
    assert advice.best.write.bursts == write.bursts, "the stripes alone"
