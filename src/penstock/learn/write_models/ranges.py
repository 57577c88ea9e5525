"""The range that a model has seen, and how far outside it a write is."""

import math
from collections.abc import Mapping

import msgspec

from penstock.learn.write_models.machine import Machine
from penstock.learn.write_models.parameters import stripe, width
from penstock.learn.write_models.table import Table
from penstock.model.write import Write

STRANGE = 1.0
"""Octaves that a write counts as away whose kind was never seen."""
CLOSE = 1e-6
ALL = "bytes in all"


class Range(msgspec.Struct, frozen=True, kw_only=True):
    """What the samples of a model were like."""

    axes: dict[str, tuple[float, float]]
    """The least and the most of each."""
    shared: list[bool]
    tags: list[str]

    @classmethod
    def of(cls, table: Table) -> "Range":
        """Return the range of samples."""
        found = [axes(table.machine, write) for write in table.writes]
        return cls(
            axes={
                name: (min(one[name] for one in found), max(one[name] for one in found))
                for name in found[0]
            },
            shared=sorted({write.shared for write in table.writes}),
            tags=table.known,
        )

    def outside(self, machine: Machine, write: Write, tag: str = "") -> dict[str, float]:
        """Return by how many octaves a write is outside, for every respect in which it is.

        Bytes in all are out by what nodes, cores and bursts leave unsaid: nothing counts twice.
        """
        found: dict[str, float] = {}
        for name, value in axes(machine, write).items():
            low, high = self.axes[name]
            octaves = max(math.log2(value / high), math.log2(low / value))
            if octaves > CLOSE:
                told = sum(found.values()) if name == ALL else 0.0
                found[f"{name} {value:g}, seen {low:g} to {high:g}"] = max(octaves - told, 0.0)
        if write.shared not in self.shared:
            found["one file for all" if write.shared else "a file for each process"] = STRANGE
        if tag not in self.tags:
            found[f"tag {tag!r}, seen {', '.join(map(repr, self.tags))}"] = STRANGE
        return found


def axes(machine: Machine, write: Write) -> Mapping[str, float]:
    """Return the respects in which writes differ."""
    found: dict[str, float] = {
        "nodes": write.nodes,
        "cores a node": write.cores,
        "bytes of a burst": write.burst,
        ALL: write.bytes,
    }
    if machine.striping.chosen:
        found |= {"stripe count": width(machine, write), "stripe size": stripe(machine, write)}
    return found


def distance(outside: Mapping[str, float]) -> float:
    """Return how far outside a write is, in octaves: every respect in which it is adds to it."""
    return sum(outside.values())
