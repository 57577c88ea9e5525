"""What a write puts on each stage of a machine (paper write-models, III-A and Table I).

Where the file system chooses targets at random, these are expectations: of m n files that each take
w of N targets, N (1 - (1 - w/N)^mn) are in use, and the busiest has the k-th largest load for which
less than one target is to be expected. Measured runs, whose targets are known, may differ.
"""

import math
from collections import Counter
from collections.abc import Mapping
from functools import lru_cache

from scipy.special import bdtrik

from penstock import units
from penstock.errors import InputError
from penstock.learn.write_models.machine import Machine, Stage
from penstock.model.write import Write

MOST_BYTES = 2.0**60
"""Of a burst or a stripe: more are a slip of the finger."""


def parameters(machine: Machine, write: Write) -> Mapping[str, float]:
    """Return every parameter of Table I by its symbol: m, n, K, n_b, s_b, n_ost, ..."""
    check(machine, write)
    found: dict[str, float] = {"m": write.nodes, "n": write.cores, "K": write.burst}
    for stage in machine.groups:
        found |= _grouped(stage, write)
    found |= _spread(machine, write)
    if machine.striping.subblocks:
        found["n_sub"] = _subblocks(machine, write)
    return found


def check(machine: Machine, write: Write) -> None:
    """Raise InputError for a write that the machine cannot be asked to do."""
    if not 1 <= write.nodes <= machine.nodes:
        raise InputError(f"{write.nodes} nodes of {machine.name}; it has 1 to {machine.nodes}")
    if not 1 <= write.cores <= machine.cores:
        raise InputError(f"{write.cores} cores a node; {machine.name} has 1 to {machine.cores}")
    if not 1 <= write.burst <= MOST_BYTES:
        raise InputError(f"a burst of {write.burst:g} bytes; give one to {MOST_BYTES:g}")
    if write.placement and (
        len(write.placement) != write.nodes or not _there(write.placement, machine.nodes)
    ):
        raise InputError(f"placement must be {write.nodes} numbers below {machine.nodes}")
    chosen = (write.stripe_count, write.stripe_size)
    if any(value is not None for value in chosen) and not machine.striping.chosen:
        raise InputError(f"users of {machine.name} cannot choose stripes; leave them out")
    if write.stripe_count is not None and not 1 <= write.stripe_count <= machine.striping.targets:
        raise InputError(
            f"a stripe count of {write.stripe_count}; {machine.name} has 1 to "
            f"{machine.striping.targets} targets"
        )
    if write.stripe_size is not None and not 1 <= write.stripe_size <= MOST_BYTES:
        raise InputError(
            f"a stripe size of {write.stripe_size:g} bytes; give one to {MOST_BYTES:g}"
        )


def width(machine: Machine, write: Write) -> int:
    """Return the targets that a file of the write may take."""
    count = machine.striping.count if write.stripe_count is None else write.stripe_count
    return count or machine.striping.targets


def stripe(machine: Machine, write: Write) -> float:
    """Return the bytes that go to one target before the next one's turn."""
    return machine.block if write.stripe_size is None else write.stripe_size


def _grouped(stage: Stage, write: Write) -> dict[str, float]:
    """Return the most nodes behind a component of a stage, and its components in use."""
    if write.placement:
        most, used = _behind(write.placement, stage.nodes_each)
    else:
        most, used = min(write.nodes, stage.nodes_each), -(-write.nodes // stage.nodes_each)
    return {f"s_{stage.symbol}": most, f"n_{stage.symbol}": used}


# Thousands of candidates for a write have a few placements, each of thousands of nodes.
@lru_cache(maxsize=64)
def _behind(placement: tuple[int, ...], nodes_each: int) -> tuple[int, int]:
    behind = Counter(node // nodes_each for node in placement)
    return max(behind.values()), len(behind)


@lru_cache(maxsize=64)
def _there(placement: tuple[int, ...], nodes: int) -> bool:
    return min(placement) >= 0 and max(placement) < nodes


def _spread(machine: Machine, write: Write) -> dict[str, float]:
    """Return targets and servers in use, and the bytes of the busiest."""
    striping, size = machine.striping, write.bytes / write.files
    each = min(width(machine, write), math.ceil(size / stripe(machine, write)))
    # Targets are dealt to servers in turn, so that neighbours are on different ones.
    places = {"target": striping.targets, "server": striping.servers}
    found: dict[str, float] = {}
    for stage in machine.stage:
        if stage.kind not in places:
            continue
        there = places[stage.kind]
        used = min(each, there)
        if stage.of_a_burst:
            found[f"n_{stage.of_a_burst}"] = used
        found[f"n_{stage.symbol}"] = in_use(write.files, used, there)
        found[f"s_{stage.symbol}"] = _heaviest(machine, write, there)
    return found


def _heaviest(machine: Machine, write: Write, places: int) -> float:
    """Return the bytes of the busiest place: blocks are dealt in rounds, the last one cut short.

    Exact for one file; continuous, and never less for more bytes.
    """
    block, wide = stripe(machine, write), width(machine, write)
    rounds, rest = divmod(write.bytes / write.files / block, wide)
    whole, part = divmod(rest, 1.0)
    several = rounds * _pieces(write.files, wide, places) if rounds else 0.0
    last = (1 - part) * _pieces(write.files, int(whole), places)
    last += part * _pieces(write.files, int(whole) + 1, places) if part else 0.0
    return block * (several + last)


def _pieces(files: int, each: int, places: int) -> float:
    """Return how many blocks the busiest place has, of files that deal out `each` in turn."""
    all_round, rest = divmod(each, places)
    return all_round * files + (busiest(files, rest, places) if rest else 0.0)


def in_use(files: int, each: int, places: int) -> float:
    """Return how many places files may be expected to take that take `each`, at random."""
    return places * -math.expm1(files * math.log1p(-each / places)) if each < places else places


def busiest(files: int, each: int, places: int) -> float:
    """Return how many files the busiest place may be expected to have."""
    if each >= places or files == 1:
        return float(files)
    return float(max(1, math.ceil(bdtrik(1 - 1 / places, files, each / places))))


def _subblocks(machine: Machine, write: Write) -> float:
    """Return the subblocks in which the end of a file is kept, for each burst."""
    block = stripe(machine, write)
    rest = (write.bytes / write.files) % block
    parts = math.ceil(rest / (block / machine.striping.subblocks))
    return parts * write.files / write.bursts


def bandwidth(stage: Stage) -> float:
    """Return the bytes a second of one component; nothing: not known."""
    return 0.0 if stage.bandwidth is None else units.bandwidth(stage.bandwidth)
