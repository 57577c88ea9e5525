"""Training and test sets of simulated samples, as large as the paper's (write-models, IV-A)."""

import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from penstock.errors import InputError
from penstock.learn.write_models import templates
from penstock.learn.write_models.convergence import Convergence
from penstock.learn.write_models.machine import Machine
from penstock.learn.write_models.parameters import bandwidth
from penstock.learn.write_models.samples import SHORTEST, Sample
from penstock.model.write import Write
from penstock.sim.evaluate.write_path import WritePath

RULE = Convergence()
FOLLOWED = 400
"""Times that templates are followed for one scale, at most: a machine may be too fast for any of
their writes to take long enough."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How many converged samples there are to be for each number of nodes, and of how many runs."""

    converged: Mapping[int, int]
    runs: int
    """A sample that has not converged after so many never will."""


def plan(machine: Machine, *, part: float = 1.0) -> Plan:
    """Return the sizes of the paper's sets, or a part of them."""
    lustre = machine.striping.chosen
    # Paper, IV-A: totals of training and of each test set; scales of a set have equal parts.
    trained = 4004 if lustre else 3899
    tested = {"small": 237, "medium": 226, "large": 273} if lustre else {}
    tested = tested or {"small": 278, "medium": 174, "large": 133}
    wanted = {scale: trained / len(templates.TRAINED) for scale in templates.TRAINED}
    for name, scales in templates.TESTED.items():
        wanted |= {scale: tested[name] / len(scales) for scale in scales}
    counts = {scale: max(4, round(part * n)) for scale, n in wanted.items()}
    there = {scale: n for scale, n in counts.items() if scale <= machine.nodes}
    return Plan(converged=there, runs=20 if lustre else 5)


def samples(machine: Machine, nodes: int, wanted: int, *, runs: int, seed: int) -> list[Sample]:
    """Return samples of at least 5 s on so many nodes, of which `wanted` have converged."""
    if not any(map(bandwidth, machine.stage)):
        raise InputError(
            f"{machine.name} has no stage with a bandwidth, so that nothing can be simulated; "
            "describe some"
        )
    named = zlib.crc32(f"{machine.name} on {nodes}".encode())
    chance = np.random.default_rng([seed, named])
    path = WritePath(machine, chance)
    found: list[Sample] = []
    converged = 0
    for write in _writes(machine, nodes, chance):
        placed = replace(write, placement=path.place(nodes))
        # Hopeless ones are not run: interference makes a write longer, rarely twice as long.
        if path.quiet(placed) < SHORTEST / 2:
            continue
        sample = path.sample(placed, rule=RULE, runs=runs)
        if sample.seconds < SHORTEST:
            continue
        found.append(sample)
        converged += sample.converged(RULE)
        if converged >= wanted:
            return found
    raise InputError(
        f"{machine.name} on {nodes} nodes: only {converged} of {wanted} samples took "
        f"{SHORTEST:g} s and converged; are its bandwidths right?"
    )


def _writes(machine: Machine, nodes: int, chance: np.random.Generator) -> Iterator[Write]:
    """Yield writes in a random order for each time, so that a cut leaves no range out."""
    for _ in range(FOLLOWED):
        several: Sequence[Write] = list(templates.writes(machine, nodes, chance))
        yield from (several[index] for index in chance.permutation(len(several)))
