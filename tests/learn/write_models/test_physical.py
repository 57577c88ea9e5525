"""What a description alone says: load over pace, stage by stage, and that it is a guess."""

import math

import msgspec
import numpy as np
import pytest

from penstock.errors import InputError
from penstock.learn.write_models import machine as machines
from penstock.learn.write_models.machine import OPERATIONS, Machine
from penstock.learn.write_models.parameters import loads, parameters
from penstock.learn.write_models.prediction import FACTOR, UNMEASURED, Physical, stage_seconds
from penstock.model.write import Write
from penstock.sim.evaluate.write_path import WritePath

CETUS, TITAN = machines.load("cetus"), machines.load("titan")


def test_each_stage_takes_its_busiest_load_over_its_pace() -> None:
    write = Write(nodes=200, cores=4, burst=64 * 2**20)
    busy = stage_seconds(CETUS, write)
    node = 4 * 64 * 2**20
    assert busy["compute node"] == pytest.approx(node / 1.8e9)
    assert busy["bridge node"] == pytest.approx(64 * node / 1.9e9)
    assert busy["I/O node"] == pytest.approx(128 * node / 3.2e9)
    assert busy["network"] == pytest.approx(200 * node / 90e9)
    assert busy["metadata"] == pytest.approx(128 * 4 / 1200), "an I/O node opens for its nodes"
    assert busy["subblocks"] == 0, "64 MiB are whole blocks of 8 MiB"


def test_a_file_for_all_is_opened_by_every_process_and_ends_once() -> None:
    write = Write(nodes=200, cores=4, burst=1e6, shared=True)
    busy = stage_seconds(CETUS, write)
    assert busy["metadata"] == pytest.approx(128 * 4 / 1200)
    assert busy["subblocks"] <= 32 / 60000


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("machine", [CETUS, TITAN])
def test_description_term_and_simulator_count_the_same_operations(
    machine: Machine, shared: bool
) -> None:
    write = Write(nodes=200, cores=4, burst=1e6, shared=shared)
    counts = loads(machine, parameters(machine, write))
    simulated = WritePath(machine, np.random.default_rng(1)).run(write).stages
    for stage, load in zip(machine.stage, counts, strict=False):
        if stage.kind in OPERATIONS:
            assert stage.rate is not None
            assert simulated[stage.name] == pytest.approx(load / stage.rate)
            assert stage_seconds(machine, write)[stage.name] == pytest.approx(load / stage.rate)


def test_operations_come_first_and_the_slowest_of_the_others_decides() -> None:
    write = Write(nodes=200, cores=4, burst=100e6)
    busy = stage_seconds(CETUS, write)
    first = busy.pop("metadata") + busy.pop("subblocks")
    prediction = Physical(machine=CETUS).predict(write)
    assert prediction.seconds == pytest.approx(first + max(busy.values()))
    assert prediction.stages is not None
    assert list(prediction.stages.values()) == sorted(prediction.stages.values(), reverse=True)
    assert next(iter(prediction.stages)) == "I/O node"


def test_it_says_that_it_is_a_guess() -> None:
    prediction = Physical(machine=TITAN).predict(Write(nodes=8, cores=16, burst=1e9))
    assert math.isnan(prediction.coverage)
    assert prediction.outside == (UNMEASURED,)
    assert (
        prediction.high / prediction.seconds
        == prediction.seconds / prediction.low
        == pytest.approx(FACTOR)
    )


@pytest.mark.parametrize("shared", [True, False])
def test_more_bytes_never_take_less_time(shared: bool) -> None:
    """1.2 MiB took less than 1 MiB, while the remainder of blocks was spread evenly."""
    model = Physical(machine=TITAN)
    for nodes in (1, 64):
        times = [
            model.predict(Write(nodes=nodes, cores=1, burst=1e5 * k, shared=shared)).seconds
            for k in range(1, 100)
        ]
        assert times == sorted(times)


def test_a_machine_without_any_pace_is_refused() -> None:
    silent = tuple(
        msgspec.structs.replace(stage, bandwidth=None, rate=None) for stage in TITAN.stage
    )
    model = Physical(machine=msgspec.structs.replace(TITAN, stage=silent))
    with pytest.raises(InputError, match="no stage with a bandwidth"):
        model.predict(Write(nodes=1, cores=1, burst=1e6))


def test_operations_alone_are_no_bandwidth() -> None:
    """A machine of metadata alone was said to write 47 GiB/s."""
    alone = msgspec.structs.replace(TITAN, stage=TITAN.stage[:1], cross=())
    with pytest.raises(InputError, match="no stage with a bandwidth"):
        Physical(machine=alone).predict(Write(nodes=1, cores=1, burst=1e9))
