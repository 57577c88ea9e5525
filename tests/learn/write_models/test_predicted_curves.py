"""Curves of jobs never run: what the stage that is divided allows, and no more."""

from pathlib import Path

import pytest

from penstock.errors import InputError
from penstock.learn.write_models import machine as machines
from penstock.learn.write_models.curves import curve
from penstock.learn.write_models.prediction import Physical
from penstock.model.write import Write
from penstock.sim.formats.jobs_file import read_jobs

TITAN, CETUS = Physical(machine=machines.load("titan")), Physical(machine=machines.load("cetus"))


def test_routers_that_decide_give_bandwidth_in_proportion() -> None:
    write = Write(nodes=256, cores=16, burst=1e9)
    predicted = curve(TITAN, write)
    assert predicted.counts == (1, 2, 4, 8, 16, 32, 64, 128)
    assert predicted.bandwidth(1) == pytest.approx(2800, rel=0.01), "one router's 2.8 GB/s"
    assert predicted.bandwidth(8) == pytest.approx(8 * 2800, rel=0.01)


def test_beyond_what_nodes_can_send_more_routers_do_not_help() -> None:
    predicted = curve(TITAN, Write(nodes=4, cores=16, burst=1e9))
    assert predicted.counts == (1, 2, 4), "a node goes through one router"
    assert predicted.bandwidth(4) == pytest.approx(4 * 1400, rel=0.01)


def test_targets_may_be_what_is_divided() -> None:
    write = Write(nodes=64, cores=16, burst=1e9, shared=True, stripe_count=64)
    predicted = curve(TITAN, write, over="OST", counts=[1, 2, 4])
    assert predicted.bandwidths == pytest.approx((500, 1000, 2000), rel=0.01)


def test_the_machines_own_number_says_what_a_prediction_says() -> None:
    write = Write(nodes=256, cores=16, burst=1e9)
    predicted = curve(CETUS, write, over="I/O node", counts=[2])
    alone = CETUS.predict(write)
    assert predicted.bandwidth(2) == pytest.approx(write.bytes / alone.seconds / 1e6)


@pytest.mark.parametrize(
    ("over", "counts", "message"),
    [("OSTs", None, "did you mean 'OST'"), ("", [0], "1 to 64"), ("", [65], "1 to 64")],
)
def test_what_cannot_be_divided_is_refused(
    over: str, counts: list[int] | None, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        curve(TITAN, Write(nodes=64, cores=1, burst=1e6), over=over, counts=counts)


@pytest.mark.parametrize(
    ("write", "message"),
    [
        ('{"burst": "1 GB"}', "jobs.0., write: 'cores' is missing; give an object .\"cores\""),
        ('{"cores": 1, "burst": 1, "strip": 4}', "jobs.0., write: unknown key 'strip'"),
    ],
)
def test_an_incomplete_write_in_a_jobs_file_is_refused(
    tmp_path: Path, write: str, message: str
) -> None:
    path = tmp_path / "jobs.json"
    path.write_text(f'{{"jobs": [{{"machine": "titan", "write": {write}}}]}}')
    with pytest.raises(InputError, match=message):
        read_jobs(path)
