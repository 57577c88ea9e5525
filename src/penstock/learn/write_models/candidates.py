"""Other ways to write the same bytes: fewer writers, elsewhere, over more or fewer targets.

Paper write-models, IV-D. Some of a job's processes (n on each of m nodes) are *aggregators*: the
others send them their bytes, and only they write. The paper places them anywhere (`candidates`); a
library can realise less (`attainable_candidates`). These are tried:

- nodes with aggregators: m, m/2, m/4, ... 1, and the components in use of each group of nodes
  (links, I/O nodes, routers) once, twice, four times, ..., so that each has the same number;
- aggregators per node: n, n/2, ... 1;
- where they are: dealt in turn to the components of a group, coarse groups first, and within
  each to those of the finer groups; once per group to begin with;
- where users may choose: stripe counts of 1, 4, 16, ... and all targets, stripes of 1, 4, 16 and
  64 MiB, and those that the write has.

Stripes that leave every parameter of the write unchanged are one setting, the first of them.

What libraries can realise, for one shared file: ROMIO makes the first `c` processes of each host
aggregators, hosts in the order of their ranks, until there are `cb_nodes` (`cb_config_list` "*:c").
Others can only be named, which needs the names of the job's hosts and a list no longer than a hint
may be. On Lustre ROMIO then uses a number of them that is a multiple of the stripe count, or
divides it. For one file per process: ADIOS2 divides the ranks into as many runs as there are
aggregators, their lengths differing by at most one, and the first of each run writes. With
processes numbered node by node the aggregators are spread evenly over the nodes.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from penstock.learn.write_models.machine import Machine
from penstock.learn.write_models.parameters import parameters, stripe, width
from penstock.model.write import Write

MIB = 2**20
SIZES = (1 * MIB, 4 * MIB, 16 * MIB, 64 * MIB)
STEP = 4
"""The factor from one stripe count to the next."""
LONGEST = 1023
"""Characters of a hint's value in MPICH, without its terminator."""
SHORTEST = len("a:1,")
LUSTRE = "lfs "
"""The beginning of the command that sets stripes on Lustre, for which ROMIO has a driver."""
LUSTRE_UNIT = 64 * 2**10
"""Bytes: Lustre's stripe sizes are multiples of it."""


def candidates(machine: Machine, write: Write, *, aggregators: bool = True) -> Iterator[Write]:
    """Yield every way to write that is tried, the write itself first."""
    yield write
    for adapted in _aggregated(machine, write) if aggregators else [write]:
        for striped in restripe(machine, adapted):
            if striped != write:
                yield striped


def attainable_candidates(
    machine: Machine, write: Write, *, aggregators: bool = True, hosts: Sequence[str] = ()
) -> Iterator[Write]:
    """Yield every way to write that a library can realise, the write itself first."""
    yield write
    for adapted in _attainable(machine, write, hosts) if aggregators else [write]:
        for striped in restripe(machine, adapted):
            if striped != write and _all_aggregators_write(machine, write, striped):
                yield striped


def _aggregated(machine: Machine, write: Write) -> Iterator[Write]:
    nodes = tuple(sorted(write.placement)) or tuple(range(write.nodes))
    for count in _node_counts(machine, nodes):
        for cores in _halves(write.cores):
            if (count, cores) == (write.nodes, write.cores):
                yield write
                continue
            for placement in _placements(machine, nodes, count):
                yield _aggregate(write, cores, placement)


def _aggregate(write: Write, cores: int, placement: Sequence[int]) -> Write:
    """Return the write with its bytes written by `cores` processes on each of these nodes."""
    burst = write.bytes / (len(placement) * cores)
    return replace(
        write, nodes=len(placement), cores=cores, burst=burst, placement=tuple(placement)
    )


def _placements(machine: Machine, nodes: Sequence[int], count: int) -> list[tuple[int, ...]]:
    """Return where `count` nodes with aggregators may be, of those that a job has."""
    # If all nodes have aggregators, the result has one element.
    return sorted({tuple(sorted(order[:count])) for order in _orders(machine, nodes)})


def _node_counts(machine: Machine, nodes: Sequence[int]) -> list[int]:
    """Return how many nodes may have aggregators, the most first."""
    counts = set(_halves(len(nodes)))
    for stage in machine.groups:
        used = len({node // stage.nodes_each for node in nodes})
        while used < len(nodes):
            counts.add(used)
            used *= 2
    return sorted(counts, reverse=True)


def _halves(most: int) -> list[int]:
    """Return a number, its half, and so on down to one."""
    result = [most]
    while result[-1] > 1:
        result.append(-(-result[-1] // 2))
    return result


def _orders(machine: Machine, nodes: Sequence[int]) -> list[list[int]]:
    sizes = sorted({stage.nodes_each for stage in machine.groups}, reverse=True)
    return [deal(nodes, sizes[first:]) for first in range(len(sizes))] or [list(nodes)]


def deal(nodes: Sequence[int], sizes: Sequence[int]) -> list[int]:
    """Order nodes so that every prefix is spread over groups of these sizes.

    The first node of each group comes first, then the second of each, as cards are dealt; within a
    group the order is decided alike by the next size.
    """
    if not sizes:
        return list(nodes)
    groups: dict[int, list[int]] = {}
    for node in nodes:
        groups.setdefault(node // sizes[0], []).append(node)
    hands = [deal(group, sizes[1:]) for group in groups.values()]
    rounds = range(max(map(len, hands), default=0))
    return [hand[k] for k in rounds for hand in hands if k < len(hand)]


def restripe(machine: Machine, write: Write) -> Iterator[Write]:
    """Yield a write with its own stripes, and with others where users may choose."""
    yield write
    if not machine.striping.selectable:
        return
    targets = machine.striping.targets
    counts = [STEP**k for k in range(math.ceil(math.log(targets, STEP)))] + [targets]
    loads = {_load(machine, write)}
    for count in counts:
        for size in (stripe(machine, write), *SIZES):
            striped = replace(write, stripe_count=count, stripe_size=size)
            if (load := _load(machine, striped)) not in loads:
                loads.add(load)
                yield striped


def _load(machine: Machine, write: Write) -> tuple[float, ...]:
    """Return all parameters but those of the placement, which stripes do not change."""
    return tuple(parameters(machine, replace(write, placement=())).values())


def config_list(write: Write, other: Write, hosts: Sequence[str]) -> str:
    """Return the cb_config_list that makes ROMIO choose the aggregators of `other`."""
    nodes = _nodes(write)
    if tuple(other.placement) == tuple(nodes[: other.nodes]):
        return f"*:{other.cores}"
    return _host_list(other, dict(zip(nodes, hosts, strict=True)))


def on_lustre(machine: Machine) -> bool:
    """Return True if a machine's file system is Lustre."""
    return machine.striping.set_by.startswith(LUSTRE)


def _nodes(write: Write) -> Sequence[int]:
    """Return a job's nodes in the order of its hosts."""
    return write.placement or range(write.nodes)


def _all_aggregators_write(machine: Machine, write: Write, other: Write) -> bool:
    """Return True if ROMIO uses all the aggregators that it chooses, rather than some."""
    if not other.shared or other.bursts == write.bursts or not on_lustre(machine):
        return True
    count = width(machine, other)
    return other.bursts % count == 0 or count % other.bursts == 0


def _attainable(machine: Machine, write: Write, hosts: Sequence[str]) -> Iterator[Write]:
    yield write
    yield from _romio(machine, write, hosts) if write.shared else _adios2(machine, write)


def _romio(machine: Machine, write: Write, hosts: Sequence[str]) -> Iterator[Write]:
    nodes = tuple(_nodes(write))
    names = dict(zip(nodes, hosts, strict=True)) if hosts else {}
    for count in _node_counts(machine, nodes):
        first = nodes[:count]
        nameable = count < write.nodes and count * SHORTEST <= LONGEST
        others = _placements(machine, nodes, count) if names and nameable else []
        for cores in _halves(write.cores):
            if (count, cores) == (write.nodes, write.cores):
                continue
            yield _aggregate(write, cores, first)
            for placement in others:
                other = _aggregate(write, cores, placement)
                if placement != first and len(_host_list(other, names)) <= LONGEST:
                    yield other


def _adios2(machine: Machine, write: Write) -> Iterator[Write]:
    nodes = tuple(_nodes(write))
    for cores in _halves(write.cores)[1:]:
        if write.cores % cores == 0:  # else nodes would have different numbers
            yield _aggregate(write, cores, nodes)
    for count in _node_counts(machine, nodes):
        if count < write.nodes:
            run, longer = divmod(write.bursts, count)
            ranks = (k * run + min(k, longer) for k in range(count))
            yield _aggregate(write, 1, [nodes[rank // write.cores] for rank in ranks])


def _host_list(other: Write, names: Mapping[int, str]) -> str:
    return ",".join(f"{names[node]}:{other.cores}" for node in other.placement)
