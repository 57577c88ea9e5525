"""What a study is: cells to run, and the findings that their results support."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from penstock import registry
from penstock.campaign.cells import Campaign, Cell, Results
from penstock.campaign.journal import Value
from penstock.campaign.sizes import Size
from penstock.policies.base import Sharing
from penstock.report.findings import Findings

AS_PUBLISHED: Mapping[str, Mapping[str, Any]] = {
    name: {"hedge": 0.0} for name in ("greedy-com", "look-ahead-greedy-yield", "best-next-event")
}
"""Options with which a policy is its authors', where our default differs."""


def published(name: str, options: Mapping[str, Any] = MappingProxyType({})) -> Sharing:
    """Return a sharing policy as its authors have it, but for `options`."""
    return registry.sharing(name, {**AS_PUBLISHED.get(name, {}), **options})


RunCell = Callable[[Cell], list[dict[str, Value]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """An evaluation that `penstock reproduce` runs by its name.

    `version` rises whenever the same cell would give other rows. `run_cell` returns the function
    that runs one cell at a size and seed; it must be picklable. A study that measures time runs
    `alone`: one cell after the other, in this process.
    """

    name: str
    title: str
    version: int
    cells: Callable[[Size], Iterable[Cell]]
    run_cell: Callable[[Size, int], RunCell]
    findings: Callable[[Results], Findings]
    alone: bool = False

    def campaign(self, *, size: Size, seed: int) -> Campaign:
        """Return the cells of a size and seed."""
        return Campaign(
            study=self.name,
            version=self.version,
            size=size,
            seed=seed,
            cells=list(self.cells(size)),
            work=self.run_cell(size, seed),
            alone=self.alone,
        )
