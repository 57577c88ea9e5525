"""The load that a write puts on each stage: bytes, or operations, of its busiest component."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from penstock.learn.write_models.machine import Machine

LATENCY = "latency"
LEAST = 1e-12
"""What stands for no load where its logarithm is taken."""


def stages(machine: Machine) -> list[str]:
    """Return the names of what takes time: the stages, and what does not depend on any load."""
    return [*(stage.name for stage in machine.stage), LATENCY]


def loads(machine: Machine, found: Mapping[str, float]) -> list[float]:
    """Return the load of every stage for the parameters of a write; 1 for the latency.

    None falls when a write has more nodes, more cores or larger bursts, but for subblocks: those of
    the last block are none where it is whole. Every process opens its file, also one for all.
    """
    node = found["n"] * found["K"]
    told = []
    for stage in machine.stage:
        match stage.kind:
            case "metadata":
                told.append(_senders(stage.through, found))
            case "subblocks":
                told.append(_senders(stage.through, found) * found["n_sub"])
            case "node":
                told.append(node)
            case "group":
                told.append(found[f"s_{stage.symbol}"] * node)
            case "network":
                told.append(found["m"] * node)
            case "server" | "target":
                told.append(found[f"s_{stage.symbol}"])
    return [*told, 1.0]


def _senders(through: str, found: Mapping[str, float]) -> float:
    return (found[f"s_{through}"] if through else found["m"]) * found["n"]


def logarithms(machine: Machine, rows: Sequence[Sequence[float]]) -> NDArray[np.float64]:
    """Return the logarithms of rows of loads."""
    told = np.array(rows, np.float64).reshape(-1, len(machine.stage) + 1)
    return np.asarray(np.log(np.maximum(told, LEAST)), np.float64)


def grown(machine: Machine, nodes: NDArray[np.int64], largest: int) -> NDArray[np.float64]:
    """Return by how much each log load has grown since that many nodes: none, for fewer.

    What a node or a group of nodes puts on its own component does not grow with their number.
    """
    growing = [stage.kind not in ("node", "group") for stage in machine.stage]
    beyond = np.log(np.maximum(nodes / largest, 1.0))
    return np.asarray(np.outer(beyond, [*growing, False]), np.float64)
