"""A host's view of some of its jobs, on a part of its resources: what a policy decides about."""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from penstock.model import Job, JobId, View


def part(view: View, jobs: Mapping[JobId, Job], resources: int) -> View:
    """Return a view of these jobs on a number of resources."""
    if len(jobs) == len(view.jobs) and resources == view.site.resources:
        return view
    return PartView(view, jobs, resources)


class PartView:
    """A view of these jobs; a policy cannot change which they are."""

    def __init__(self, view: View, jobs: Mapping[JobId, Job], resources: int) -> None:
        self.site = replace(view.site, resources=resources)
        self.now, self.jobs = view.now, MappingProxyType(jobs)
        self.progress, self.age, self.work_left = view.progress, view.age, view.work_left
        self.io_done, self.expected = view.io_done, view.expected
        self.done, self.remaining = view.done, view.remaining
