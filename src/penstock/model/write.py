"""A write as a scientific code makes it: all its processes, at once, each with a burst."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """m x n bursts of K bytes (paper write-models, III-A), which are over when the last one is."""

    nodes: int
    """m: the compute nodes that write."""
    cores: int
    """n: the processes of each that write."""
    burst: float
    """K: bytes of each process."""
    shared: bool = False
    """All bursts go to one file, rather than to a file each."""
    stripe_count: int | None = None
    stripe_size: float | None = None
    """How a file is spread over targets; None: as the file system does by itself."""
    placement: tuple[int, ...] = ()
    """The numbers of its compute nodes on the machine; empty: side by side, from the first on."""

    @property
    def bursts(self) -> int:
        """Return m n."""
        return self.nodes * self.cores

    @property
    def bytes(self) -> float:
        """Return m n K."""
        return self.bursts * self.burst

    @property
    def files(self) -> int:
        """Return how many files it goes to."""
        return 1 if self.shared else self.bursts
