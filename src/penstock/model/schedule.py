"""Which jobs run together, in which order, and behind which I/O node."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from penstock.model.job import JobId
from penstock.model.site import ResourceId


@dataclass(frozen=True, slots=True, kw_only=True)
class Pack:
    """Jobs that run together on the compute nodes of one I/O node.

    A job in `behind` starts once the job it is mapped to has ended, on nodes that this one frees;
    all others start with the pack.
    """

    io_node: ResourceId
    jobs: tuple[JobId, ...]
    behind: Mapping[JobId, JobId] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """Packs in order; those of one I/O node run one after the other, I/O nodes side by side.

    With `barriers` a pack starts when all jobs of the one before it have ended; without, its jobs
    start in their order, each as soon as there are nodes for it. A job in `claims` then waits for
    that many nodes, more than it runs on, to keep others away from its I/O node.
    """

    packs: tuple[Pack, ...]
    barriers: bool = True
    claims: Mapping[JobId, int] = field(default_factory=dict)

    def behind_io_node(self, io_node: ResourceId) -> Iterator[Pack]:
        """Yield the packs of an I/O node in order."""
        return (pack for pack in self.packs if pack.io_node == io_node)
