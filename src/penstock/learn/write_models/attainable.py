"""Other ways to write that a library can be told of: what is advised has to be had.

One file for all: ROMIO makes the first `c` processes of each host aggregators, hosts in the order
of their ranks, until there are `cb_nodes` (`cb_config_list` "*:c"). Others it takes by name alone,
which takes the names of the job's hosts, and a list that is no longer than a hint may be. On Lustre
it then uses as many of them as are a multiple of the stripe count, or divide it.

A file each: ADIOS2 divides the ranks into as many runs as there shall be aggregators, lengths
differing by one at most, and the first of each writes. With processes numbered node by node they
are spread evenly over the nodes; nobody can choose others.
"""

from collections.abc import Iterator, Mapping, Sequence

from penstock.learn.write_models.candidates import gathered, halves, numbers, places, stripes
from penstock.learn.write_models.machine import Machine
from penstock.learn.write_models.parameters import width
from penstock.model.write import Write

LONGEST = 1023
"""Characters of a hint's value in MPICH, less its end."""
SHORTEST = len("a:1,")
LUSTRE = "lfs "
"""What the command that sets stripes begins with, where ROMIO has a driver that looks at them."""

LUSTRE_UNIT = 64 * 2**10
"""Bytes: Lustre's stripes are multiples of it."""


def attainable(
    machine: Machine, write: Write, *, aggregators: bool = True, hosts: Sequence[str] = ()
) -> Iterator[Write]:
    """Return every way to write that is tried and can be had, the write itself first."""
    yield write
    for adapted in _gathered(machine, write, hosts) if aggregators else [write]:
        for striped in stripes(machine, adapted):
            if striped != write and all_write(machine, write, striped):
                yield striped


def on(write: Write) -> Sequence[int]:
    """Return a job's nodes in the order of its hosts."""
    return write.placement or range(write.nodes)


def config_list(write: Write, other: Write, hosts: Sequence[str]) -> str:
    """Return the cb_config_list that makes ROMIO choose the aggregators of another way to write."""
    if tuple(other.placement) == tuple(on(write)[: other.nodes]):
        return f"*:{other.cores}"
    return _listed(other, dict(zip(on(write), hosts, strict=True)))


def all_write(machine: Machine, write: Write, other: Write) -> bool:
    """Say whether all aggregators that ROMIO chooses will write, rather than some of them."""
    if not other.shared or other.bursts == write.bursts or not on_lustre(machine):
        return True
    count = width(machine, other)
    return other.bursts % count == 0 or count % other.bursts == 0


def on_lustre(machine: Machine) -> bool:
    """Say whether a machine's file system is Lustre."""
    return machine.striping.set_by.startswith(LUSTRE)


def _gathered(machine: Machine, write: Write, hosts: Sequence[str]) -> Iterator[Write]:
    yield write
    yield from _romio(machine, write, hosts) if write.shared else _adios2(machine, write)


def _romio(machine: Machine, write: Write, hosts: Sequence[str]) -> Iterator[Write]:
    where = tuple(on(write))
    names = dict(zip(where, hosts, strict=True)) if hosts else {}
    for nodes in numbers(machine, where):
        first = where[:nodes]
        fewer = nodes < write.nodes and nodes * SHORTEST <= LONGEST
        others = places(machine, where, nodes) if names and fewer else []
        for cores in halves(write.cores):
            if (nodes, cores) == (write.nodes, write.cores):
                continue
            yield gathered(write, cores, first)
            for place in others:
                named = gathered(write, cores, place)
                if place != first and len(_listed(named, names)) <= LONGEST:
                    yield named


def _adios2(machine: Machine, write: Write) -> Iterator[Write]:
    where = tuple(on(write))
    for cores in halves(write.cores)[1:]:
        if write.cores % cores == 0:  # else nodes would have different numbers
            yield gathered(write, cores, where)
    for nodes in numbers(machine, where):
        if nodes < write.nodes:
            run, longer = divmod(write.bursts, nodes)
            ranks = (k * run + min(k, longer) for k in range(nodes))
            yield gathered(write, 1, [where[rank // write.cores] for rank in ranks])


def _listed(other: Write, names: Mapping[int, str]) -> str:
    return ",".join(f"{names[node]}:{other.cores}" for node in other.placement)
