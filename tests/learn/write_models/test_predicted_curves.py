"""Curves of jobs never run: what the stage that is divided allows, and no more."""

import pytest

from penstock.errors import InputError
from penstock.learn.write_models import machine as machines
from penstock.learn.write_models.curves import curve
from penstock.learn.write_models.prediction import Physical
from penstock.model.write import Write

TITAN, CETUS = Physical(machine=machines.load("titan")), Physical(machine=machines.load("cetus"))


def test_routers_that_decide_give_bandwidth_in_proportion() -> None:
    write = Write(nodes=256, cores=16, burst=1e9)
    found = curve(TITAN, write)
    assert found.counts == (1, 2, 4, 8, 16, 32, 64, 128)
    assert found.bandwidth(1) == pytest.approx(2800, rel=0.01), "one router's 2.8 GB/s"
    assert found.bandwidth(8) == pytest.approx(8 * 2800, rel=0.01)


def test_beyond_what_nodes_can_send_more_routers_do_not_help() -> None:
    found = curve(TITAN, Write(nodes=4, cores=16, burst=1e9))
    assert found.counts == (1, 2, 4), "a node goes through one router"
    assert found.bandwidth(4) == pytest.approx(4 * 1400, rel=0.01)


def test_targets_may_be_what_is_divided() -> None:
    write = Write(nodes=64, cores=16, burst=1e9, shared=True, stripe_count=64)
    found = curve(TITAN, write, over="OST", counts=[1, 2, 4])
    assert found.bandwidths == pytest.approx((500, 1000, 2000), rel=0.01)


def test_the_machines_own_number_says_what_a_prediction_says() -> None:
    write = Write(nodes=256, cores=16, burst=1e9)
    found = curve(CETUS, write, over="I/O node", counts=[2])
    alone = CETUS.predict(write)
    assert found.bandwidth(2) == pytest.approx(write.bytes / alone.seconds / 1e6)


@pytest.mark.parametrize(
    ("over", "counts", "said"),
    [("OSTs", None, "did you mean 'OST'"), ("", [0], "1 to 64"), ("", [65], "1 to 64")],
)
def test_what_cannot_be_divided_is_refused(over: str, counts: list[int] | None, said: str) -> None:
    with pytest.raises(InputError, match=said):
        curve(TITAN, Write(nodes=64, cores=1, burst=1e6), over=over, counts=counts)
