"""What each sharing policy answers, by its paper's equations."""

from typing import Any

import pytest

from penstock import registry
from penstock.model import Job, Request
from penstock.policies.base import Own


class At:
    """A view in which a job has this age, progress and remaining I/O."""

    def __init__(self, *, age: float, progress: float, remaining: float = 1.0) -> None:
        self._age, self._progress, self._remaining = age, progress, remaining

    def age(self, job: Job) -> float:
        return self._age

    def progress(self, job: Job) -> float:
        return self._progress

    def remaining(self, request: Request) -> float:
        return self._remaining


def job(w_iter: float | None, **more: Any) -> Job:
    return Job(id="a", serial=0, w_iter=w_iter, **more)


def turn(policy: str, view: Any, **options: float) -> float:
    request = Request(job=job(10.0), arrival=0.0, resources=(0,), io=1.0)
    return registry.sharing(policy, options).turn(request, view)


@pytest.mark.parametrize(
    ("w_iter", "set_"),
    [(0.2, -1), (3.0, 0), (4.0, 1), (31.0, 1), (32.0, 2), (316.0, 2), (317.0, 3)],
)
def test_sets_are_the_nearest_orders_of_magnitude(w_iter: float, set_: int) -> None:
    """Paper io-sets IV-C: w_iter between 4 and 31 go into S_1, between 32 and 316 into S_2."""
    policy = registry.sharing("set-10")
    assert policy.group(job(w_iter)) == set_
    assert policy.weight(job(w_iter)) == pytest.approx(10.0**-set_)


def test_a_stranger_goes_to_the_slowest_set_seen() -> None:
    policy = registry.sharing("set-10")
    assert policy.group(job(None)) == 5
    assert policy.weight(job(None)) == pytest.approx(1e-5)
    assert registry.sharing("set-10", {"unknown": 2}).group(job(None)) == 2


def test_the_parts_of_set_10() -> None:
    """Section IV-D: the same sets at equal weights, and the same weights without sets."""
    sets, weights = registry.sharing("set-fair-share"), registry.sharing("share-priority")
    assert (sets.group(job(100.0)), sets.weight(job(100.0))) == (2, 1.0)
    assert weights.group(job(100.0)) == Own.GROUP
    assert weights.weight(job(100.0)) == pytest.approx(0.01)


def test_clairvoyant_sets_go_by_the_generators_class() -> None:
    policy = registry.sharing("clairvoyant-sets")
    stranger_to_its_class = job(5.0, hints={"profile": 1000.0})
    assert policy.group(stranger_to_its_class) == 1000.0
    assert policy.weight(stranger_to_its_class) == pytest.approx(1e-3)
    with pytest.raises(ValueError, match="no positive hint 'profile'"):
        policy.group(job(5.0))


def test_greedy_turns() -> None:
    assert turn("greedy-yield", At(age=8.0, progress=2.0)) == 0.25
    assert turn("greedy-yield", At(age=0.0, progress=0.0)) == 1.0, "nothing is lost at age zero"
    assert turn("greedy-com", At(age=8.0, progress=2.0, remaining=7.0)) == 7.0


def test_fair_finish_multiplies_the_two() -> None:
    """turn = remaining x yield^fairness."""
    view = At(age=10.0, progress=9.0, remaining=3.0)
    assert turn("fair-finish", view, fairness=2.0) == pytest.approx(3 * 0.81)
    assert turn("fair-finish", view, fairness=0.0) == 3.0, "0 is greedy-com"
    assert turn("fair-finish", view) == pytest.approx(3 * 0.9**80)
    with pytest.raises(ValueError, match="fairness is -1"):
        registry.sharing("fair-finish", {"fairness": -1.0})
