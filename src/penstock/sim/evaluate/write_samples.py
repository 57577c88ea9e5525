"""Training and test sets of simulated samples, as large as the paper's (write-models, III-D, IV-A).

The writes to sample come from the templates of Tables IV and V. A template is a set of nested loops
over ranges; every pass draws one number from each range, so that many passes cover the ranges
without a grid.
"""

import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from penstock.errors import InputError
from penstock.learn.convergence import Convergence
from penstock.learn.write_models.machine import Machine
from penstock.learn.write_models.parameters import bandwidth
from penstock.learn.write_models.samples import SHORTEST, Sample
from penstock.model.write import Write
from penstock.sim.evaluate.write_path import WritePath

MIB = 2**20
TRAINING_SCALES = (1, 2, 4, 8, 16, 32, 64, 128)
"""Numbers of compute nodes that models are trained with."""
TEST_SCALES = {"small": (200, 256), "medium": (400, 512), "large": (800, 1000, 2000)}
"""Numbers of compute nodes that models are tested on, by the name of the test set."""
RULE = Convergence()
MOST_PASSES = 400
"""Passes through the templates for one scale: a machine may be too fast for any of their writes to
take long enough."""

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
CODE_BURSTS: Sequence[Range] = tuple(
    (mib, mib) for mib in (4, 23, 59, 69, 121, 376, 750, 1024, 1280)
)
"""Bursts of XGC, GTC, S3D and other codes."""
STRIPES: Sequence[Range] = ((1, 4), (5, 8), (9, 16), (17, 32), (33, 64))


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """One row of a table: loops over compute nodes, cores, bursts and stripe counts."""

    scales: Sequence[int]
    cores: Sequence[int] = ()
    random_cores: int = 0
    """How many numbers of cores to draw at random, if `cores` is empty."""
    bursts: Sequence[Range]
    stripes: Sequence[Range] = ()

    def generate(
        self, nodes: int, machine: Machine, random: np.random.Generator
    ) -> Iterator[Write]:
        """Yield the writes of one pass on `nodes` nodes that the machine can do."""
        most, targets = machine.cores, machine.striping.targets
        stripes = [(low, min(high, targets)) for low, high in self.stripes if low <= targets]
        drawn = random.choice(np.arange(1, most + 1), min(self.random_cores, most), replace=False)
        for cores in [n for n in self.cores if n <= most] or sorted(drawn.tolist()):
            for burst in self.bursts:
                for counts in stripes or ((0, 0),):
                    yield Write(
                        nodes=nodes,
                        cores=int(cores),
                        burst=float(_draw(burst, random) * MIB),
                        stripe_count=_draw(counts, random) or None,
                    )


def _draw(limits: Range, random: np.random.Generator) -> int:
    return int(random.integers(limits[0], limits[1] + 1))


_ALL_TEST_SCALES = tuple(scale for scales in TEST_SCALES.values() for scale in scales)
GPFS = (
    Template(scales=(*TRAINING_SCALES, *_ALL_TEST_SCALES), cores=(1, 2, 4, 8, 16), bursts=BURSTS),
    Template(scales=TRAINING_SCALES, cores=(1, 2, 4, 8, 16), bursts=LARGE_BURSTS),
    Template(scales=(1000, 2000), cores=(1, 2, 4, 8, 16), bursts=CODE_BURSTS),
)
"""Table IV."""
LUSTRE = (
    Template(
        scales=(*TRAINING_SCALES, 200, 256, 400, 512, 800),
        random_cores=8,
        bursts=BURSTS,
        stripes=STRIPES,
    ),
    Template(scales=TRAINING_SCALES, random_cores=4, bursts=LARGE_BURSTS, stripes=STRIPES),
    Template(scales=(1000, 2000), cores=(1, 4), bursts=CODE_BURSTS, stripes=((4, 4), (5, 64))),
)
"""Table V."""


def templates(machine: Machine) -> Sequence[Template]:
    """Return a machine's templates: Table V if users choose stripes, else Table IV."""
    return LUSTRE if machine.striping.selectable else GPFS


def writes(machine: Machine, nodes: int, random: np.random.Generator) -> Iterator[Write]:
    """Yield the writes of one pass through all templates for this number of nodes."""
    for template in templates(machine):
        if nodes in template.scales:
            yield from template.generate(nodes, machine, random)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The number of converged samples for each number of nodes, and the runs of a sample."""

    converged: Mapping[int, int]
    runs: int
    """A sample that has not converged after this many runs is given up."""


def plan(machine: Machine, *, part: float = 1.0) -> Plan:
    """Return the sizes of the paper's sets, or a fraction of them."""
    lustre = machine.striping.selectable
    # Paper, IV-A: totals of training and of each test set; scales of a set have equal parts.
    training = 4004 if lustre else 3899
    tests = (237, 226, 273) if lustre else (278, 174, 133)
    sizes = {scale: training / len(TRAINING_SCALES) for scale in TRAINING_SCALES}
    for total, scales in zip(tests, TEST_SCALES.values(), strict=True):
        sizes |= {scale: total / len(scales) for scale in scales}
    counts = {scale: max(4, round(part * n)) for scale, n in sizes.items()}
    possible = {scale: n for scale, n in counts.items() if scale <= machine.nodes}
    return Plan(converged=possible, runs=20 if lustre else 5)


def samples(machine: Machine, nodes: int, count: int, *, runs: int, seed: int) -> list[Sample]:
    """Return samples of at least 5 s on this number of nodes, `count` of them converged."""
    if not any(map(bandwidth, machine.stage)):
        raise InputError(
            f"{machine.name} has no stage with a bandwidth, so that nothing can be simulated; "
            "describe some"
        )
    name = zlib.crc32(f"{machine.name} on {nodes}".encode())
    random = np.random.default_rng([seed, name])
    path = WritePath(machine, random)
    result: list[Sample] = []
    converged = 0
    for write in _shuffled_writes(machine, nodes, random):
        placed = replace(write, placement=path.place(nodes))
        # Writes that are far too short are not run: interference rarely doubles the time.
        if path.quiet(placed) < SHORTEST / 2:
            continue
        sample = path.sample(placed, rule=RULE, runs=runs)
        if sample.seconds < SHORTEST:
            continue
        result.append(sample)
        converged += sample.converged(RULE)
        if converged >= count:
            return result
    raise InputError(
        f"{machine.name} on {nodes} nodes: only {converged} of {count} samples took "
        f"{SHORTEST:g} s and converged; are its bandwidths right?"
    )


def _shuffled_writes(machine: Machine, nodes: int, random: np.random.Generator) -> Iterator[Write]:
    """Yield writes in a random order within each pass, so that stopping omits no range."""
    for _ in range(MOST_PASSES):
        batch: Sequence[Write] = list(writes(machine, nodes, random))
        yield from (batch[index] for index in random.permutation(len(batch)))
