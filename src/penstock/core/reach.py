"""Which resources are up, which jobs reach them, and who divides which.

Jobs that reach the same resources divide these. Where jobs reach some resources in common and
others not, every resource belongs to one group of jobs: to the one that has the fewest for each of
its jobs, those that few groups reach first. What a group leaves unused goes to the next ones.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from penstock.model import Job, JobId, NodeUp, ResourceId

Jobs = Mapping[JobId, Job]


@dataclass(slots=True)
class Group:
    """Jobs that reach the same resources."""

    usable: tuple[ResourceId, ...]
    jobs: dict[JobId, Job] = field(default_factory=dict)
    own: list[ResourceId] = field(default_factory=list)
    """Those of the usable ones that they divide; none: they share what others have."""


class Reach:
    """The resources that are up, and whom they serve."""

    def __init__(self, *, all_up: bool) -> None:
        """`all_up`: resources serve before the first NodeUp."""
        self._all_up = all_up
        self._up: dict[ResourceId, NodeUp | None] = {}  # None: it is down

    def up(self, event: NodeUp) -> None:
        """A resource serves."""
        self._up[event.resource] = event

    def down(self, resource: ResourceId) -> None:
        """A resource is gone."""
        self._up[resource] = None

    def groups(self, resources: int, jobs: Jobs, young: Iterable[JobId]) -> list[Group]:
        """Return the jobs by what they reach; `young` ones take nothing from other groups."""
        if not jobs:
            return []
        up = [r for r in range(resources) if self._up.get(r, self._all_up)]
        limits = {r: node for r in up if (node := self._up.get(r)) and node.is_limited}
        if not limits:
            return [Group(usable=tuple(up), jobs=dict(jobs), own=up)]
        members: dict[tuple[str, str, str], dict[JobId, Job]] = {}
        for id, job in jobs.items():
            members.setdefault((job.user, job.host, job.partition), {})[id] = job
        groups: dict[tuple[ResourceId, ...], Group] = {}
        for member, their_jobs in members.items():
            usable = tuple(r for r in up if r not in limits or limits[r].serves(*member))
            groups.setdefault(usable, Group(usable=usable)).jobs.update(their_jobs)
        _divide(up, list(groups.values()), frozenset(young))
        return sorted(groups.values(), key=lambda group: (len(group.usable), group.usable))


def _divide(up: list[ResourceId], groups: list[Group], young: frozenset[JobId]) -> None:
    """Give every resource to one of the groups that reach it."""
    weights = [len(group.jobs.keys() - young) for group in groups]
    reached = {r: [k for k, group in enumerate(groups) if r in group.usable] for r in up}
    for r in sorted(up, key=lambda r: (len(reached[r]), r)):
        # A resource that one group alone reaches is its own, however young its jobs are.
        rivals = [k for k in reached[r] if weights[k]] or reached[r][:1]
        if rivals:
            least = min(rivals, key=lambda k: (len(groups[k].own) / max(weights[k], 1), k))
            groups[least].own.append(r)
    for group in groups:
        group.own.sort()
