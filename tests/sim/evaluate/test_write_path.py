"""The write path simulator: its equations without others, and what others do to it."""

import re
import statistics
from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np
import pytest

from penstock.errors import InputError
from penstock.learn.convergence import Convergence
from penstock.learn.write_models.machine import Interference, Machine, load, parse
from penstock.model.write import Write
from penstock.sim.evaluate import write_samples
from penstock.sim.evaluate.write_path import WritePath, _around

QUIET = Interference(load=0.0, swing=0.0, hit=0.0, stalls=0.0, noise=0.0, pieces=1.0, scattered=0.0)
MIB = 2**20


def quiet(name: str, **changes: float) -> Machine:
    calm = msgspec.structs.replace(QUIET, **changes)
    return msgspec.structs.replace(load(name), interference=calm)


def path(machine: Machine, seed: int = 1) -> WritePath:
    return WritePath(machine, np.random.default_rng(seed))


def test_a_stage_takes_its_busiest_components_load_over_its_bandwidth() -> None:
    """96 nodes on Cetus, 64 of them behind one link of 1.7 GB/s."""
    write = Write(nodes=96, cores=4, burst=64 * MIB)
    run = path(quiet("cetus")).run(write)
    assert run.stages["link"] == pytest.approx(64 * 4 * 64 * MIB / 1.7e9)
    assert run.stages["compute node"] == pytest.approx(4 * 64 * MIB / 1.8e9)
    assert run.stages["network"] == pytest.approx(96 * 4 * 64 * MIB / 90e9)
    assert run.stages["metadata"] == pytest.approx(96 * 4 / 1200)


def test_stages_work_at_once_and_operations_come_one_by_one() -> None:
    """(sum of t^p)^(1/p) over data, and metadata in addition; p = 1 is one after the other."""
    write = Write(nodes=64, cores=16, burst=100 * MIB)
    for power in (1.0, 3.0):
        run = path(quiet("cetus", overlap=power)).run(write)
        before = run.stages["metadata"] + run.stages["subblocks"]
        data = [t for n, t in run.stages.items() if n not in ("metadata", "subblocks")]
        expected = before + sum(t**power for t in data) ** (1 / power)
        assert run.seconds == pytest.approx(expected)
        assert run.quiet == pytest.approx(expected)


def test_nodes_that_are_spread_share_links_with_nobody() -> None:
    together = Write(nodes=64, cores=16, burst=100 * MIB, placement=tuple(range(64)))
    apart = Write(nodes=64, cores=16, burst=100 * MIB, placement=tuple(range(0, 4096, 64)))
    simulated = path(quiet("cetus"))
    slow, fast = simulated.run(together), simulated.run(apart)
    assert slow.stages["link"] == pytest.approx(64 * fast.stages["link"])


def test_all_bytes_of_a_write_are_on_targets() -> None:
    for name, write in (
        ("cetus", Write(nodes=3, cores=5, burst=100e6)),
        ("cetus", Write(nodes=3, cores=5, burst=5e9)),
        ("titan", Write(nodes=7, cores=5, burst=33e6, stripe_count=64)),
        ("titan", Write(nodes=7, cores=5, burst=33e6, shared=True, stripe_count=9)),
    ):
        targets = path(quiet(name))._on_targets(write)
        assert targets.sum() == pytest.approx(write.bytes)


def test_a_file_takes_as_many_targets_as_it_may() -> None:
    one = Write(nodes=1, cores=1, burst=1e9, stripe_count=5)
    targets = path(quiet("titan"))._on_targets(one)
    assert np.count_nonzero(targets) == 5
    assert targets.max() - targets[targets > 0].min() <= 1e6 * 1.1


@pytest.mark.parametrize("wide", [0, 1, 3, 7])
def test_rows_that_go_round_are_counted_as_one_by_one(wide: int) -> None:
    starts = np.array([2, 0, 0, 1, 0, 0, 3])
    counted = [0] * 7
    for place, times in enumerate(starts):
        for step in range(wide):
            counted[(place + step) % 7] += int(times)
    assert _around(starts, wide).tolist() == counted


def test_a_placement_has_each_node_once() -> None:
    for name in ("cetus", "titan"):
        simulated = path(load(name))
        for nodes in (1, 2, 128, 2000):
            places = [simulated.place(nodes) for _ in range(20)]
            for place in places:
                assert len(set(place)) == nodes
                assert 0 <= min(place) <= max(place) < load(name).nodes
    full = path(load("cetus")).place(4096)
    assert sorted(full) == list(range(4096))


def test_the_seed_decides_everything() -> None:
    def times(seed: int) -> list[float]:
        simulated = path(load("titan"), seed)
        write = Write(nodes=64, cores=8, burst=1e9, placement=simulated.place(64))
        return [simulated.run(write).seconds for _ in range(5)]

    assert times(1) == times(1)
    assert times(1) != times(2)


def test_others_make_a_write_longer_and_quiet_runs_differ_by_targets_alone() -> None:
    write = Write(nodes=256, cores=8, burst=200e6)
    alone = [path(quiet("titan"), seed).run(write) for seed in range(20)]
    assert all(run.seconds == pytest.approx(run.quiet) for run in alone)
    met = [path(load("titan"), seed).run(write) for seed in range(20)]
    assert statistics.fmean(r.seconds for r in met) > 1.05 * statistics.fmean(
        r.seconds for r in alone
    )


def spread(of: str, write: Write, seeds: Sequence[int]) -> float:
    """Return the median of max / min of ten runs, as Figure 1 has them."""
    ratios = []
    for seed in seeds:
        simulated = path(load(of), seed)
        times = [simulated.run(write).seconds for _ in range(10)]
        ratios.append(max(times) / min(times))
    return statistics.median(ratios)


def test_titan_varies_more_than_cetus() -> None:
    """Figure 1: Cetus is relatively stable, Titan worse."""
    write = Write(nodes=128, cores=8, burst=200e6)
    assert 1.0 < spread("cetus", write, range(25)) < spread("titan", write, range(25)) < 4.0


def test_longer_writes_vary_less() -> None:
    """Interference goes with 1 / (m n K): bursts of others come and go in a long write."""
    short = Write(nodes=128, cores=8, burst=50e6)
    long = Write(nodes=128, cores=8, burst=5e9)
    assert spread("titan", long, range(25)) < spread("titan", short, range(25))


def test_a_sample_stops_when_it_has_converged_or_after_the_most_runs() -> None:
    write = Write(nodes=16, cores=8, burst=1e9)
    rule = Convergence()
    steady = path(quiet("cetus")).sample(write, rule=rule, runs=10)
    assert len(steady.times) == rule.least
    assert steady.source == "simulated"
    wild = path(quiet("cetus", noise=2.0)).sample(write, rule=rule, runs=10)
    assert len(wild.times) == 10
    assert not wild.converged(rule)


def test_sets_are_as_large_as_asked_and_long_enough() -> None:
    machine = load("cetus")
    samples = write_samples.samples(machine, 256, 12, runs=5, seed=4)
    assert sum(sample.converged() for sample in samples) == 12
    assert all(sample.seconds >= 5 and len(sample.write.placement) == 256 for sample in samples)
    again = write_samples.samples(machine, 256, 12, runs=5, seed=4)
    assert again == samples


def test_plans_are_of_the_papers_sizes() -> None:
    for name, trained, tested in (
        ("cetus", 3899, (278, 174, 133)),
        ("titan", 4004, (237, 226, 273)),
    ):
        plan = write_samples.plan(load(name))
        small = sum(n for scale, n in plan.converged.items() if scale <= 128)
        assert small == pytest.approx(trained, abs=8)
        sets = ((200, 256), (400, 512), (800, 1000, 2000))
        for scales, expected in zip(sets, tested, strict=True):
            assert sum(plan.converged[s] for s in scales) == pytest.approx(expected, abs=2)


def test_a_machine_that_is_too_fast_for_the_templates_says_so() -> None:
    fast = load("cetus")
    stages = tuple(
        msgspec.structs.replace(s, bandwidth="1000 TB/s") if s.bandwidth else s for s in fast.stage
    )
    fast = msgspec.structs.replace(fast, stage=stages)
    with pytest.raises(InputError, match=r"only 0 of 4 samples took 5 s"):
        write_samples.samples(fast, 1, 4, runs=5, seed=1)


@pytest.mark.parametrize("wrong", ["hit = 1.0", "tail = 1.0", "noise = -1.0", "hits = 0.1"])
def test_impossible_interference_is_refused(wrong: str) -> None:
    text = (
        'name = "x"\nnodes = 4\ncores = 2\nstriping = {targets = 2, servers = 1, size = "1 MiB"}\n'
        'stage = [{name = "node", kind = "node", bandwidth = "1 GB/s"}]\n[interference]\n'
    )
    parse((text + "hit = 0.1\n").encode(), "x.toml")
    with pytest.raises(InputError, match=r"x\.toml: .*"):
        parse((text + wrong + "\n").encode(), "x.toml")


def test_the_guides_machine_is_one() -> None:
    """docs/formats/machines.md: what people begin with has to work."""
    page = Path(__file__).parents[3] / "docs/formats/machines.md"
    (example,) = re.findall(r"^```toml\n(.*?)^```", page.read_text(), re.M | re.S)
    machine = parse(example.encode(), "small.toml")
    run = path(machine).run(Write(nodes=64, cores=8, burst=1e9))
    assert set(run.stages) == {stage.name for stage in machine.stage}
    assert run.stages["router"] >= 16 * 8 * 1e9 / 2e9
