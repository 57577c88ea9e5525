"""A live site's arbiter between jobs and resources that come and go."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from penstock import registry
from penstock.core.allotment import Allotment
from penstock.core.arbiter import Arbiter
from penstock.core.explorer import EXPLORE, Explorer
from penstock.model import (
    Action,
    Assign,
    Curve,
    Event,
    Job,
    JobEnded,
    JobsChanged,
    JobStarted,
    Site,
    Snapshot,
)

STEEP = Curve.of({1: 10.0, 2: 20.0, 4: 40.0})
FLAT = Curve.of({1: 10.0, 2: 10.5})
SETTLE = 10.0


class Live:
    """Resources that all jobs reach unless a test says otherwise, and a fallback policy."""

    def __init__(
        self,
        allocator: Any = "where-known",
        placer: str | None = None,
        *,
        resources: int = 4,
        explore: bool = False,
        all_up: bool = True,
        direct: bool = True,
        fallback: Any = None,
        **options: Any,
    ) -> None:
        by_name = isinstance(allocator, str)
        policy: Any = registry.policy("allocation", allocator) if by_name else allocator
        placement = placer or str(getattr(policy, "brings", "greedy-non-clairvoyant"))
        self.jobs: dict[str, Job] = {}
        self.site = Site(resources=resources, nodes=8, direct=direct)
        self.arbiter = Arbiter(
            allocator=policy,
            placer=registry.policy("placement", placement),
            fallback=fallback or registry.policy("allocation", "size"),
            settle=SETTLE,
            explorer=Explorer() if explore else None,
            all_up=all_up,
            hears_phases=True,
            **options,
        )
        self.serial = 0

    def start(self, name: str, time: float, **known: Any) -> list[Action]:
        self.serial += 1
        job = self.jobs[name] = Job(id=name, serial=self.serial, **known)
        return self.tell(JobStarted(time=time, job=job))

    def end(self, name: str, time: float) -> list[Action]:
        del self.jobs[name]
        return self.tell(JobEnded(time=time, job=name))

    def change(self, name: str, time: float, **known: Any) -> list[Action]:
        job = self.jobs[name] = replace(self.jobs[name], **known)
        return self.tell(JobsChanged(time=time, jobs=(job,)))

    def tell(self, event: Event) -> list[Action]:
        return self.arbiter.handle(event, Snapshot(site=self.site, jobs=self.jobs, now=event.time))

    def given(self, name: str) -> Allotment:
        return self.arbiter.allotments[name]

    @property
    def counts(self) -> Mapping[str, int]:
        return {name: len(where) for name, where in self.arbiter.assigned.items()}


def moved(actions: Sequence[Action]) -> set[str]:
    return {action.job for action in actions if isinstance(action, Assign)}


EXPLORING = {EXPLORE: 1.0}
