"""Synthetic workloads, a module a paper's protocol, and those that can be asked for by name."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from penstock.sim.generators import io_sets
from penstock.sim.workload import Workload


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """A workload that can be asked for by name."""

    description: str
    make: Callable[..., Workload]


PRESETS: Mapping[str, Preset] = {
    "io-sets": Preset(
        description="paper io-sets VI-B1: a third each with w_iter around 10, 100 and 1000 s",
        make=lambda jobs=60, **options: io_sets.io_sets(
            io_sets.three_profiles((jobs + 2) // 3, (jobs + 1) // 3, jobs // 3), **options
        ),
    ),
    "plafrim": Preset(
        description="paper io-sets VIII: the shares of sets in a year of PlaFRIM's jobs",
        make=io_sets.plafrim,
    ),
}
