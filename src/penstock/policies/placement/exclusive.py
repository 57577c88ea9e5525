"""exclusive: every job has resources of its own, while they last.

The placement for mckp (paper forwarding, Section 5.3). If the counts add up to more than the site
has, the jobs of count one with the least bandwidth share the last resource, as many as necessary:
those of mckp's option `shared`. Jobs of larger counts never share.
"""

from typing import ClassVar

from penstock.errors import InputError
from penstock.model import Job, JobId, ResourceId, View
from penstock.policies.base import NOBODY, Counts, Placement


class Exclusive:
    """Resources for one job each, but for the jobs with the least bandwidth."""

    needs: ClassVar[frozenset[str]] = frozenset({"curve"})
    joint: ClassVar[bool] = True

    def place(self, view: View, counts: Counts, staying: Placement = NOBODY) -> Placement:
        """Return resources for every job, its own again where it can keep them."""
        last = view.site.resources - 1
        occupied = {r for name, places in staying.items() if name not in counts for r in places}
        free = {r for r in range(view.site.resources) if r not in occupied}
        sharing = _sharing(view, counts, len(free), len(free - {last}))
        # Jobs that share get the last resource, also together with jobs that stay there.
        free -= {last} if sharing else set()
        places: dict[JobId, tuple[ResourceId, ...]] = dict.fromkeys(sharing, (last,))
        for name, where in staying.items():
            unchanged = name not in sharing and len(where) == counts.get(name)
            if unchanged and free.issuperset(where):
                places[name] = where
                free -= set(where)
        rest = sorted(free)
        for name, count in counts.items():
            if name not in places:
                places[name], rest = tuple(rest[:count]), rest[count:]
        return places


def _sharing(view: View, counts: Counts, free: int, own: int) -> list[JobId]:
    """Return the jobs that share the last resource: none if all have room, else the least ones."""
    wanted = sum(counts.values())
    if wanted <= free:
        return []
    ones = sorted(
        (name for name, count in counts.items() if count == 1),
        key=lambda name: (_alone(view.jobs[name]), view.jobs[name].serial),
    )
    if wanted - own > len(ones):
        raise InputError(
            f"exclusive: jobs want {wanted} resources and {free} are free, but only the "
            f"{len(ones)} that want one may share; use another placement"
        )
    return ones[: wanted - own]


def _alone(job: Job) -> float:
    """Return the bandwidth with one resource; nothing is expected of what was never measured."""
    known = job.curve is not None and 1 in job.curve.choices(1)
    return job.curve.bandwidth(1) if known and job.curve is not None else 0.0
