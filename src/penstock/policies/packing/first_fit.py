"""first-fit: each job goes into the fullest pack that has nodes for it, whatever its I/O.

The longest job (alone) comes first. The baseline of paper packs (6.2.3), and pack-partition with an
infinite sensitivity.

Option `estimate`: the assumed length of a pack when it is given an I/O node: "isolated" (the
paper's, its longest job) or "io-bound" (at least the I/O time of all its jobs).
"""

from penstock.policies.packing.pack_partition import INFINITE, ISOLATED, PackPartition


class FirstFit(PackPartition):
    """Packs limited by their nodes alone."""

    def __init__(self, *, estimate: str = ISOLATED) -> None:
        super().__init__(sensitivity=INFINITE, estimate=estimate)
