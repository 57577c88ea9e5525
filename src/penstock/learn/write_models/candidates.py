"""Other ways to write the same bytes: fewer writers, elsewhere, over more or fewer targets.

Paper write-models, IV-D. Of a job's m nodes and n processes a node, some are *aggregators*: the
others send them their bytes, and they alone write. What is tried, and nothing else:

- nodes with aggregators: m, m/2, m/4, ... 1, and the components in use of each group of nodes
  (links, I/O nodes, routers) once, twice, four times, ..., so that each has the same number;
- aggregators of a node: n, n/2, ... 1;
- where they are: dealt in turn to the components of a group, coarse groups first, and within
  each to those of the finer groups; as often as there are groups to begin with;
- where users may choose: stripe counts of 1, 4, 16, ... and all targets, stripes of 1, 4, 16 and
  64 MiB, and those that the write has.

Settings that put each file on equally many targets are one, the first of them.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from penstock.learn.write_models.machine import Machine
from penstock.learn.write_models.parameters import stripe, width
from penstock.model.write import Write

MIB = 2**20
SIZES = (1 * MIB, 4 * MIB, 16 * MIB, 64 * MIB)
STEP = 4
"""From one stripe count to the next."""


def candidates(machine: Machine, write: Write, *, aggregators: bool = True) -> Iterator[Write]:
    """Return every way to write that is tried, the write itself first."""
    yield write
    for adapted in _aggregated(machine, write) if aggregators else [write]:
        for striped in _striped(machine, adapted):
            if striped != write:
                yield striped


def _aggregated(machine: Machine, write: Write) -> Iterator[Write]:
    where = tuple(sorted(write.placement)) or tuple(range(write.nodes))
    orders = _orders(machine, where)
    for nodes in _numbers(machine, where):
        # As many nodes as there are leave nothing to place.
        places = {tuple(sorted(order[:nodes])) for order in orders}
        for cores in _halves(write.cores):
            if (nodes, cores) == (write.nodes, write.cores):
                yield write
                continue
            burst = write.bytes / (nodes * cores)
            for place in sorted(places):
                yield replace(write, nodes=nodes, cores=cores, burst=burst, placement=place)


def _numbers(machine: Machine, where: Sequence[int]) -> list[int]:
    """Return how many nodes may have aggregators, the most first."""
    found = set(_halves(len(where)))
    for stage in machine.groups:
        used = len({node // stage.nodes_each for node in where})
        while used < len(where):
            found.add(used)
            used *= 2
    return sorted(found, reverse=True)


def _halves(most: int) -> list[int]:
    found = [most]
    while found[-1] > 1:
        found.append(-(-found[-1] // 2))
    return found


def _orders(machine: Machine, where: Sequence[int]) -> list[list[int]]:
    sizes = sorted({stage.nodes_each for stage in machine.groups}, reverse=True)
    return [dealt(where, sizes[first:]) for first in range(len(sizes))] or [list(where)]


def dealt(nodes: Sequence[int], sizes: Sequence[int]) -> list[int]:
    """Return nodes in an order whose every beginning is spread over groups of these sizes.

    The first node of each group comes first, then the second of each, as cards are dealt; which
    one of a group is the first is decided alike by the next size.
    """
    if not sizes:
        return list(nodes)
    groups: dict[int, list[int]] = {}
    for node in nodes:
        groups.setdefault(node // sizes[0], []).append(node)
    hands = [dealt(group, sizes[1:]) for group in groups.values()]
    rounds = range(max(map(len, hands), default=0))
    return [hand[k] for k in rounds for hand in hands if k < len(hand)]


def _striped(machine: Machine, write: Write) -> Iterator[Write]:
    """Return a write with the stripes it has, and with others where users may choose."""
    yield write
    if not machine.striping.chosen:
        return
    targets = machine.striping.targets
    counts = [STEP**k for k in range(math.ceil(math.log(targets, STEP)))] + [targets]
    seen = {_targets(machine, write)}
    for count in counts:
        for size in (stripe(machine, write), *SIZES):
            striped = replace(write, stripe_count=count, stripe_size=size)
            if (used := _targets(machine, striped)) not in seen:
                seen.add(used)
                yield striped


def _targets(machine: Machine, write: Write) -> int:
    """Return the targets of a file, which is all that stripes change of a write's load."""
    blocks = math.ceil(write.bytes / write.files / stripe(machine, write))
    return min(width(machine, write), blocks)
