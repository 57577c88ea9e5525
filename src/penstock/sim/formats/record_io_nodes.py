"""The I/O nodes that each job of a record had, and which ones served when.

A live record has one turn for the whole file system, which its phases name. The I/O nodes of a job
follow from the actions and events: those that it was assigned, where assignments act (mode
enforce); those that it, or a person, asked for; else all that were up and that it could reach.
"""

from collections.abc import Mapping
from dataclasses import replace

from penstock.model import Assign, Job, JobEnded, JobId, NodeDown, NodeUp, Pinned, ResourceId
from penstock.records import ENFORCE, Entry, Header

Resources = tuple[ResourceId, ...]


class IoNodesOfRecord:
    """Follows the entries of a record."""

    def __init__(self, header: Header) -> None:
        self._named = header.source not in ("live", "emulated")
        self._began = header.began
        self._modes: Mapping[str, str] = header.user_modes
        self._mode = header.mode
        self._arbitrated = header.allocation is not None
        # What served before the first part that is read, nobody knows: all, until one is gone.
        known = not header.resources_up and header.part == 1
        everything = range(header.site.resources)
        self._up: dict[ResourceId, NodeUp | None] = {} if known else dict.fromkeys(everything)
        self._assigned: dict[JobId, Resources] = {}
        self.pinned: dict[JobId, Resources] = {}
        """The I/O nodes that jobs, or people, asked for."""
        self.changes: list[NodeUp | NodeDown] = []
        """When which I/O node came or went, in seconds from the beginning of the record."""

    def take(self, entry: Entry) -> None:
        """Process a line of the record."""
        match event := entry.event:
            case NodeUp():
                self._up[event.resource] = event
                self._note(event)
            case NodeDown():
                self._up.pop(event.resource, None)
                self._note(event)
            case Pinned():
                self.pinned[event.job] = event.resources
            case JobEnded():
                self._assigned.pop(event.job, None)
        for action in entry.actions:
            if isinstance(action, Assign):
                self._assigned[action.job] = action.resources

    def of(self, job: Job, named: Resources) -> Resources | None:
        """Return what a job has in a phase that names these resources; None: it is not known."""
        if self._named:
            return named
        if job.id in self.pinned:
            return self.pinned[job.id]
        if self._arbitrated and self._modes.get(job.user, self._mode) == ENFORCE:
            return self._assigned.get(job.id)
        return tuple(
            resource
            for resource, node in sorted(self._up.items())
            if node is None or node.serves(job.user, job.host)
        )

    def _note(self, event: NodeUp | NodeDown) -> None:
        self.changes.append(replace(event, time=max(event.time - self._began, 0.0)))
