"""The machine: compute nodes and the resources that I/O goes through."""

from collections.abc import Iterable
from dataclasses import dataclass

from penstock.errors import InputError

ResourceId = int
DIRECT_PATH: ResourceId = -1
"""The resource of a job with direct I/O: it competes with no other job."""
LARGEST = 10**6
"""The most nodes or resources: a larger number is a typing error, or a damaged file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSystem:
    """A file system of a site: the directories below which its files are, and its bandwidth."""

    name: str
    roots: tuple[str, ...] = ()
    bandwidth: float | None = None  # bytes per second

    def __post_init__(self) -> None:
        if self.bandwidth is not None and not 0 < self.bandwidth < float("inf"):
            raise InputError(
                f"the bandwidth of file system {self.name!r} is {self.bandwidth:g} B/s; give more "
                "than zero"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """A site with `resources` alike (a file system as a whole, I/O nodes, or storage targets).

    `nodes` = 0 means that compute nodes never run out. `bandwidth` is one resource's, in bytes a
    second; it only turns volumes into isolated seconds. `capacity` is what k transfers get
    together, k = 1, 2, ..., as a part of what one gets alone; the last value holds for all larger
    k. Interference makes it fall: a degradation d (paper packs, Section 1) of two jobs is
    capacity = (1, 1 - d). `direct` says that jobs may also do without I/O nodes. Phases of a live
    site name its `file_systems` by their place in the list, if its scope is the file system; none:
    it has one, of which nothing is known.

    `work_conserving`: a job whose curve has b(n) on n resources transfers with at most
    b(n) / (n x bandwidth) of each, and others have the rest. Without it a job that transfers
    alone occupies all of its resources, whatever it gets (paper io-resources, Figure 4).
    """

    name: str = "site"
    nodes: int = 0
    resources: int = 1
    bandwidth: float | None = None
    capacity: tuple[float, ...] = (1.0,)
    direct: bool = False
    work_conserving: bool = False
    file_systems: tuple[FileSystem, ...] = ()

    def bandwidth_on(self, file_systems: Iterable[ResourceId]) -> float | None:
        """Return the bandwidth of the file systems that a phase uses, if that is declared.

        Of several at once it is unknown how the phase divides its data.
        """
        own = {
            self.file_systems[each].bandwidth if each < len(self.file_systems) else None
            for each in file_systems
        }
        only = own.pop() if len(own) == 1 else None
        return self.bandwidth if only is None else only

    def __post_init__(self) -> None:
        if self.nodes < 0:
            raise InputError(f"site.nodes is {self.nodes}; give 0 (unlimited) or more")
        if self.resources < 1:
            raise InputError(f"site.resources is {self.resources}; give at least 1")
        for name, count in (("nodes", self.nodes), ("resources", self.resources)):
            if count > LARGEST:
                raise InputError(f"site.{name} is {count}; give at most {LARGEST}")
        if self.bandwidth is not None and not 0 < self.bandwidth < float("inf"):
            raise InputError(f"site.bandwidth is {self.bandwidth:g} B/s; give more than zero")
        if self.work_conserving and self.bandwidth is None:
            raise InputError("site.work-conserving needs site.bandwidth, what one resource carries")
        if not self.capacity or any(not 1e-9 <= c <= 1 for c in self.capacity):
            raise InputError(f"site.capacity is {list(self.capacity)}; give values from 1e-9 to 1")
