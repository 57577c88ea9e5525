"""One check for every registered sharing policy."""

import importlib
import math
from typing import Any

import pytest

from penstock import registry
from penstock.model import Job, Request
from penstock.policies.base import NEEDS, Sharing
from penstock.sim import _engine
from penstock.sim.engine import order_of

POLICIES = sorted(registry.table("sharing"))
JOBS = [
    Job(id=f"j{k}", serial=k, nodes=1 + k, w_iter=w, hints={"profile": w or 1.0})
    for k, w in enumerate([0.02, 1.0, 9.9, 100.0, 31622.0, None])
]


class StillView:
    now = 100.0
    jobs = {job.id: job for job in JOBS}  # noqa: RUF012

    def progress(self, job: Job) -> float:
        return 10.0 * job.serial

    def age(self, job: Job) -> float:
        return 100.0

    def expected(self, request: Request) -> float | None:
        return 5.0

    def done(self, request: Request) -> float:
        return 1.0

    def remaining(self, request: Request) -> float:
        return 4.0

    def work_left(self, job: Job) -> float:
        return 50.0

    def io_done(self, job: Job) -> float:
        return 1.0 * job.serial


@pytest.fixture(params=POLICIES)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_it_follows_the_protocol(name: str) -> None:
    policy = registry.sharing(name)
    assert isinstance(policy, Sharing)
    assert policy.needs <= NEEDS.keys()
    if order_of(policy) is _engine.Order.ARRIVAL:
        assert not policy.dynamic


def test_it_is_pure(name: str) -> None:
    """The same question has the same answer, also from another instance."""
    one, other = registry.sharing(name), registry.sharing(name)
    view: Any = StillView()
    for job in JOBS:
        request = Request(job=job, arrival=1.0, resources=(0,), io=5.0)
        answers = [(p.group(job), p.weight(job), p.turn(request, view)) for p in (one, one, other)]
        assert answers[0] == answers[1] == answers[2]
        group, weight, turn = answers[0]
        hash(group)
        assert 0 < weight < math.inf
        assert not math.isnan(turn)


def test_one_policy_one_file_of_a_page(name: str) -> None:
    module_name, _, class_name = registry.table("sharing")[name].partition(":")
    module = importlib.import_module(module_name)
    assert module_name.rpartition(".")[2] == name.replace("-", "_")
    assert class_name == "".join(word.capitalize() for word in name.split("-"))
    assert module.__doc__ is not None
    assert module.__doc__.startswith(f"{name}: ")
    assert "aper " in module.__doc__ or "JPDC" in module.__doc__, "name the paper"


def test_unknown_options_fail_at_once(name: str) -> None:
    with pytest.raises(ValueError, match="option"):
        registry.sharing(name, {"no-such-option": 1})
