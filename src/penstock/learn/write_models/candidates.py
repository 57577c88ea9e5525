"""Other ways to write the same bytes: fewer writers, elsewhere, over more or fewer targets.

Paper write-models, IV-D. Of a job's m nodes and n processes a node, some are *aggregators*: the
others send them their bytes, and they alone write. The paper puts them anywhere; what a library can
be told is less (`attainable`). What is tried, and nothing else:

- nodes with aggregators: m, m/2, m/4, ... 1, and the components in use of each group of nodes
  (links, I/O nodes, routers) once, twice, four times, ..., so that each has the same number;
- aggregators of a node: n, n/2, ... 1;
- where they are: dealt in turn to the components of a group, coarse groups first, and within
  each to those of the finer groups; as often as there are groups to begin with;
- where users may choose: stripe counts of 1, 4, 16, ... and all targets, stripes of 1, 4, 16 and
  64 MiB, and those that the write has.

Stripes that leave every parameter of the write as it is are one setting, the first of them.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from penstock.learn.write_models.machine import Machine
from penstock.learn.write_models.parameters import parameters, stripe
from penstock.model.write import Write

MIB = 2**20
SIZES = (1 * MIB, 4 * MIB, 16 * MIB, 64 * MIB)
STEP = 4
"""From one stripe count to the next."""


def candidates(machine: Machine, write: Write, *, aggregators: bool = True) -> Iterator[Write]:
    """Return every way to write that is tried, the write itself first."""
    yield write
    for adapted in _aggregated(machine, write) if aggregators else [write]:
        for striped in stripes(machine, adapted):
            if striped != write:
                yield striped


def _aggregated(machine: Machine, write: Write) -> Iterator[Write]:
    where = tuple(sorted(write.placement)) or tuple(range(write.nodes))
    for nodes in numbers(machine, where):
        for cores in halves(write.cores):
            if (nodes, cores) == (write.nodes, write.cores):
                yield write
                continue
            for place in places(machine, where, nodes):
                yield gathered(write, cores, place)


def gathered(write: Write, cores: int, place: Sequence[int]) -> Write:
    """Return a write whose bytes so many processes write, of each of these nodes."""
    burst = write.bytes / (len(place) * cores)
    return replace(write, nodes=len(place), cores=cores, burst=burst, placement=tuple(place))


def places(machine: Machine, where: Sequence[int], nodes: int) -> list[tuple[int, ...]]:
    """Return where so many nodes may be, of those that a job has."""
    # As many nodes as there are leave nothing to place.
    return sorted({tuple(sorted(order[:nodes])) for order in _orders(machine, where)})


def numbers(machine: Machine, where: Sequence[int]) -> list[int]:
    """Return how many nodes may have aggregators, the most first."""
    found = set(halves(len(where)))
    for stage in machine.groups:
        used = len({node // stage.nodes_each for node in where})
        while used < len(where):
            found.add(used)
            used *= 2
    return sorted(found, reverse=True)


def halves(most: int) -> list[int]:
    """Return a number, its half, and so on down to one."""
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


def stripes(machine: Machine, write: Write) -> Iterator[Write]:
    """Return a write with the stripes it has, and with others where users may choose."""
    yield write
    if not machine.striping.chosen:
        return
    targets = machine.striping.targets
    counts = [STEP**k for k in range(math.ceil(math.log(targets, STEP)))] + [targets]
    seen = {_load(machine, write)}
    for count in counts:
        for size in (stripe(machine, write), *SIZES):
            striped = replace(write, stripe_count=count, stripe_size=size)
            if (load := _load(machine, striped)) not in seen:
                seen.add(load)
                yield striped


def _load(machine: Machine, write: Write) -> tuple[float, ...]:
    """Return all that a model is told of a write, but where its nodes are: stripes leave that."""
    return tuple(parameters(machine, replace(write, placement=())).values())
