"""Which writes are to be sampled: the templates of Tables IV and V (paper write-models, III-D).

A template is a set of loops over ranges. Each time it is followed, every range gives one number
drawn anew, so that many times cover the ranges without a grid.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from penstock.learn.write_models.machine import Machine
from penstock.model.write import Write

MIB = 2**20
TRAINED = (1, 2, 4, 8, 16, 32, 64, 128)
"""Compute nodes that models are made of."""
TESTED = {"small": (200, 256), "medium": (400, 512), "large": (800, 1000, 2000)}
"""Compute nodes that they are held against, by the set's name."""

Range = tuple[int, int]
BURSTS: Sequence[Range] = (
    (1, 5),
    (6, 25),
    (25, 100),
    (101, 250),
    (251, 500),
    (501, 1024),
    (1025, 2560),
)
"""MiB; the paper prints MB, as IOR does for these."""
LARGE_BURSTS: Sequence[Range] = ((2561, 5120), (5121, 7680), (7681, 10240))
OF_CODES: Sequence[Range] = tuple((mib, mib) for mib in (4, 23, 59, 69, 121, 376, 750, 1024, 1280))
"""Bursts of XGC, GTC, S3D and others."""
STRIPES: Sequence[Range] = ((1, 4), (5, 8), (9, 16), (17, 32), (33, 64))


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """One row of a table: loops over compute nodes, cores, bursts and stripe counts."""

    scales: Sequence[int]
    cores: Sequence[int] = ()
    drawn: int = 0
    """So many numbers of cores at random, where none are given."""
    bursts: Sequence[Range]
    stripes: Sequence[Range] = ()

    def follow(self, nodes: int, machine: Machine, chance: np.random.Generator) -> Iterator[Write]:
        """Yield the writes of one time, on so many nodes, as far as the machine can do them."""
        most, targets = machine.cores, machine.striping.targets
        there = [(low, min(high, targets)) for low, high in self.stripes if low <= targets]
        drawn = chance.choice(np.arange(1, most + 1), min(self.drawn, most), replace=False)
        for cores in [n for n in self.cores if n <= most] or sorted(drawn.tolist()):
            for burst in self.bursts:
                for stripes in there or ((0, 0),):
                    yield Write(
                        nodes=nodes,
                        cores=int(cores),
                        burst=float(_one(burst, chance) * MIB),
                        stripe_count=_one(stripes, chance) or None,
                    )


def _one(of: Range, chance: np.random.Generator) -> int:
    return int(chance.integers(of[0], of[1] + 1))


_ALL = tuple(scale for scales in TESTED.values() for scale in scales)
GPFS = (
    Template(scales=(*TRAINED, *_ALL), cores=(1, 2, 4, 8, 16), bursts=BURSTS),
    Template(scales=TRAINED, cores=(1, 2, 4, 8, 16), bursts=LARGE_BURSTS),
    Template(scales=(1000, 2000), cores=(1, 2, 4, 8, 16), bursts=OF_CODES),
)
"""Table IV."""
LUSTRE = (
    Template(scales=(*TRAINED, 200, 256, 400, 512, 800), drawn=8, bursts=BURSTS, stripes=STRIPES),
    Template(scales=TRAINED, drawn=4, bursts=LARGE_BURSTS, stripes=STRIPES),
    Template(scales=(1000, 2000), cores=(1, 4), bursts=OF_CODES, stripes=((4, 4), (5, 64))),
)
"""Table V."""


def of(machine: Machine) -> Sequence[Template]:
    """Return the templates for a machine: Table V's where users choose stripes, else Table IV's."""
    return LUSTRE if machine.striping.chosen else GPFS


def writes(machine: Machine, nodes: int, chance: np.random.Generator) -> Iterator[Write]:
    """Yield the writes of all templates for so many nodes, followed once."""
    for template in of(machine):
        if nodes in template.scales:
            yield from template.follow(nodes, machine, chance)
