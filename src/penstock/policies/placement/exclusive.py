"""exclusive: every job has resources of its own, while they last.

What mckp brings along (paper forwarding, Section 5.3). Where the counts come to more than the site
has, the jobs of count one with the least bandwidth share the last resource, as many as it takes:
those that mckp's `shared` meant. Jobs of larger counts never share.
"""

from collections.abc import Mapping
from typing import ClassVar

from penstock.errors import InputError
from penstock.model import Job, JobId, ResourceId, View
from penstock.policies.base import NOBODY


class Exclusive:
    """Nobody in the way, but for the least of the jobs."""

    needs: ClassVar[frozenset[str]] = frozenset({"curve"})

    def place(
        self,
        view: View,
        counts: Mapping[JobId, int],
        staying: Mapping[JobId, tuple[ResourceId, ...]] = NOBODY,
    ) -> Mapping[JobId, tuple[ResourceId, ...]]:
        """Return resources for every job, each with one job but the last."""
        taken = {r for places in staying.values() for r in places}
        free = [r for r in range(view.site.resources) if r not in taken]
        last = view.site.resources - 1
        resources, wanted = len(free), sum(counts.values())
        sharing: set[JobId] = set()
        if wanted > resources:
            # Whoever shares has the last resource, be it with jobs that stay there.
            free = [r for r in free if r != last]
            ones = sorted(
                (name for name, count in counts.items() if count == 1),
                key=lambda name: (_alone(view.jobs[name]), view.jobs[name].serial),
            )
            too_many = wanted - len(free)
            if too_many > len(ones):
                raise InputError(
                    f"exclusive: jobs want {wanted} resources and {resources} are free, but "
                    f"only the {len(ones)} that want one may share; use another placement"
                )
            sharing = set(ones[:too_many])
        places: dict[JobId, tuple[ResourceId, ...]] = {}
        for name, count in counts.items():
            if name in sharing:
                places[name] = (last,)
            else:
                places[name], free = tuple(free[:count]), free[count:]
        return places


def _alone(job: Job) -> float:
    """Return the bandwidth with one resource; nothing is expected of what was never measured."""
    known = job.curve is not None and 1 in job.curve.choices(1)
    return job.curve.bandwidth(1) if known and job.curve is not None else 0.0
