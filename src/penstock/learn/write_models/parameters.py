"""The load that a write puts on each stage of a machine (paper write-models, III-A and Table I).

`parameters` are the paper's symbols; `loads` are the bytes or operations of the busiest component
of every stage. Where the file system chooses targets at random, both are expectations: of m n files
that each use w of N targets, N (1 - (1 - w/N)^mn) targets are in use, and the busiest has the k-th
largest load for which less than one target is to be expected. Measured runs, whose targets are
known, may differ.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtrik

from penstock import units
from penstock.errors import InputError
from penstock.learn.write_models.machine import Machine, Stage
from penstock.model.write import Write

Floats = NDArray[np.float64]

MOST_BYTES = 2.0**60
"""Largest burst or stripe that is accepted."""
LATENCY = "latency"
"""The name of the time that does not depend on any load."""
LEAST = 1e-12
"""Stands for zero load where its logarithm is taken."""


def parameters(machine: Machine, write: Write) -> Mapping[str, float]:
    """Return every parameter of Table I by its symbol: m, n, K, n_b, s_b, n_ost, ..."""
    check(machine, write)
    values: dict[str, float] = {"m": write.nodes, "n": write.cores, "K": write.burst}
    for stage in machine.groups:
        values |= _group_parameters(stage, write)
    values |= _storage_parameters(machine, write)
    if machine.striping.subblocks:
        values["n_sub"] = _subblocks(machine, write)
    return values


def check(machine: Machine, write: Write) -> None:
    """Raise InputError for a write that the machine cannot do."""
    if not 1 <= write.nodes <= machine.nodes:
        raise InputError(f"{write.nodes} nodes of {machine.name}; it has 1 to {machine.nodes}")
    if not 1 <= write.cores <= machine.cores:
        raise InputError(f"{write.cores} cores per node; {machine.name} has 1 to {machine.cores}")
    if not 1 <= write.burst <= MOST_BYTES:
        raise InputError(f"a burst of {write.burst:g} bytes; give one to {MOST_BYTES:g}")
    if write.placement and (
        len(write.placement) != write.nodes or not _valid_nodes(write.placement, machine.nodes)
    ):
        raise InputError(f"placement must be {write.nodes} numbers below {machine.nodes}")
    stripes = (write.stripe_count, write.stripe_size)
    if any(value is not None for value in stripes) and not machine.striping.selectable:
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
    """Return the number of targets that a file of the write may use."""
    count = machine.striping.count if write.stripe_count is None else write.stripe_count
    return count or machine.striping.targets


def stripe(machine: Machine, write: Write) -> float:
    """Return the bytes that go to one target before the next."""
    return machine.block if write.stripe_size is None else write.stripe_size


def bandwidth(stage: Stage) -> float:
    """Return the bytes per second of one component; 0 if unknown."""
    return 0.0 if stage.bandwidth is None else units.bandwidth(stage.bandwidth)


def _group_parameters(stage: Stage, write: Write) -> dict[str, float]:
    """Return the most nodes behind one component of a group, and its components in use."""
    if write.placement:
        most, used = _nodes_behind(write.placement, stage.nodes_each)
    else:
        most, used = min(write.nodes, stage.nodes_each), -(-write.nodes // stage.nodes_each)
    return {f"s_{stage.symbol}": most, f"n_{stage.symbol}": used}


# Thousands of candidates for a write have a few placements, each of thousands of nodes.
@lru_cache(maxsize=64)
def _nodes_behind(placement: tuple[int, ...], nodes_each: int) -> tuple[int, int]:
    behind = Counter(node // nodes_each for node in placement)
    return max(behind.values()), len(behind)


@lru_cache(maxsize=64)
def _valid_nodes(placement: tuple[int, ...], nodes: int) -> bool:
    return min(placement) >= 0 and max(placement) < nodes


def _storage_parameters(machine: Machine, write: Write) -> dict[str, float]:
    """Return targets and servers in use, and the bytes on the busiest of each."""
    striping, size = machine.striping, write.bytes / write.files
    each = min(width(machine, write), math.ceil(size / stripe(machine, write)))
    # Targets are dealt to servers in turn, so that neighbours are on different servers.
    counts = {"target": striping.targets, "server": striping.servers}
    values: dict[str, float] = {}
    for stage in machine.stage:
        if stage.kind not in counts:
            continue
        places = counts[stage.kind]
        used = min(each, places)
        if stage.of_a_burst:
            values[f"n_{stage.of_a_burst}"] = used
        values[f"n_{stage.symbol}"] = in_use(write.files, used, places)
        values[f"s_{stage.symbol}"] = _heaviest(machine, write, places)
    return values


def _heaviest(machine: Machine, write: Write, places: int) -> float:
    """Return the bytes on the busiest place: blocks are dealt in rounds, the last cut short.

    Exact for one file; continuous, and never decreasing in the number of bytes.
    """
    block, wide = stripe(machine, write), width(machine, write)
    rounds, rest = divmod(write.bytes / write.files / block, wide)
    whole, part = divmod(rest, 1.0)
    full = rounds * _blocks(write.files, wide, places) if rounds else 0.0
    last = (1 - part) * _blocks(write.files, int(whole), places)
    last += part * _blocks(write.files, int(whole) + 1, places) if part else 0.0
    return block * (full + last)


def _blocks(files: int, each: int, places: int) -> float:
    """Return the blocks on the busiest place if every file deals out `each` blocks in turn."""
    rounds, rest = divmod(each, places)
    return rounds * files + (busiest(files, rest, places) if rest else 0.0)


def in_use(files: int, each: int, places: int) -> float:
    """Return the expected number of places in use by files that use `each` at random."""
    return places * -math.expm1(files * math.log1p(-each / places)) if each < places else places


def busiest(files: int, each: int, places: int) -> float:
    """Return the expected number of files on the busiest place."""
    if each >= places or files == 1:
        return float(files)
    return float(max(1, math.ceil(bdtrik(1 - 1 / places, files, each / places))))


def _subblocks(machine: Machine, write: Write) -> float:
    """Return the subblocks that hold the ends of files, per burst."""
    block = stripe(machine, write)
    rest = (write.bytes / write.files) % block
    parts = math.ceil(rest / (block / machine.striping.subblocks))
    return parts * write.files / write.bursts


def stage_names(machine: Machine) -> list[str]:
    """Return the names of everything that takes time: the stages, and the latency."""
    return [*(stage.name for stage in machine.stage), LATENCY]


def loads(machine: Machine, values: Mapping[str, float]) -> list[float]:
    """Return the load of every stage for the parameters of a write; 1 for the latency.

    No load falls when a write has more nodes, more cores or larger bursts, except for subblocks: a
    file whose last block is full has none. Every process opens its file, also a shared one.
    """
    node = values["n"] * values["K"]
    result = []
    for stage in machine.stage:
        match stage.kind:
            case "metadata":
                result.append(_senders(stage.through, values))
            case "subblocks":
                result.append(_senders(stage.through, values) * values["n_sub"])
            case "node":
                result.append(node)
            case "group":
                result.append(values[f"s_{stage.symbol}"] * node)
            case "network":
                result.append(values["m"] * node)
            case "server" | "target":
                result.append(values[f"s_{stage.symbol}"])
    return [*result, 1.0]


def _senders(through: str, values: Mapping[str, float]) -> float:
    return (values[f"s_{through}"] if through else values["m"]) * values["n"]


def log_loads(machine: Machine, rows: Sequence[Sequence[float]]) -> Floats:
    """Return the logarithms of rows of loads."""
    array = np.array(rows, np.float64).reshape(-1, len(machine.stage) + 1)
    return np.asarray(np.log(np.maximum(array, LEAST)), np.float64)


def load_growth(machine: Machine, nodes: NDArray[np.int64], largest: int) -> Floats:
    """Return by how much each log load has grown beyond `largest` nodes; 0 for fewer nodes.

    The load of a node, or of a group of nodes, does not grow with the number of nodes.
    """
    growing = [stage.kind not in ("node", "group") for stage in machine.stage]
    beyond = np.log(np.maximum(nodes / largest, 1.0))
    return np.asarray(np.outer(beyond, [*growing, False]), np.float64)
