"""The study's cells: chunks of the model search, our model, and runs of the same write (Fig. 1)."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from penstock.learn.write_models import templates, training
from penstock.learn.write_models.machine import load
from penstock.learn.write_models.regressors import FAILING, FIVE
from penstock.learn.write_models.samples import SHORTEST
from penstock.learn.write_models.search import Cell as Subset
from penstock.learn.write_models.search import Search
from penstock.sim.write_path import WritePath
from penstock.studies.campaign import Cell
from penstock.studies.journal import Value
from penstock.studies.write_models import measured
from penstock.studies.write_models.adaptation import advised
from penstock.studies.write_models.sets import MACHINES, Size, searching, tests

VARIATION = "variation"
OURS = "ours"
RUNS = 10
"""Identical runs whose largest and smallest are compared."""
CHUNKS = {"linear": 1, "ridge": 1, "lasso": 4, "tree": 4, "forest": 30, "svr": 1, "gaussian": 1}
"""Cells that the subsets of a technique are spread over."""


def cells() -> Iterator[Cell]:
    """Yield all cells, the longest first."""
    for technique in ("forest", *(t for t in (*FIVE, *FAILING) if t != "forest")):
        for machine in MACHINES:
            for chunk in range(CHUNKS[technique]):
                yield Cell(scenario=f"{machine} {technique}", x=float(chunk), workload=0)
    for machine in MACHINES:
        yield Cell(scenario=f"{machine} {OURS}", x=0.0, workload=0)
    for machine in MACHINES:
        for nodes in (*templates.TRAINED, *(s for some in templates.TESTED.values() for s in some)):
            yield Cell(scenario=f"{machine} {VARIATION}", x=float(nodes), workload=0)
    yield from measured.cells()


def work(cell: Cell, *, size: Size, seed: int) -> list[dict[str, Value]]:
    """Return the rows of a cell."""
    machine, _, what = cell.scenario.partition(" ")
    if what == VARIATION:
        return list(_varied(machine, int(cell.x), size.variations, seed))
    if machine in measured.SOURCES:
        return measured.work(machine, what, seed)
    search = searching(machine, size.part, seed)
    if what == OURS:
        return list(_ours(machine, search, size.advised, seed))
    return [
        {
            "machine": machine,
            "technique": what,
            "scales": " ".join(map(str, subset.scales)),
            "option": (tried := search.tried(subset)).option,
            "error": tried.error,
        }
        for subset in subsets(search, what, size)[int(cell.x) :: CHUNKS[what]]
    ]


def subsets(search: Search, technique: str, size: Size) -> list[Subset]:
    """Return what is tried of a technique: 255 subsets, or all scales for those that fail."""
    if technique in FAILING:
        return [search.base(technique)]
    found = list(search.cells([technique]))
    if technique == "forest" and size.forests == "neighbours":
        places = {scale: place for place, scale in enumerate(search.scales)}
        # Without gaps: as many scales as places from the first to the last.
        return [s for s in found if places[s.scales[-1]] - places[s.scales[0]] < len(s.scales)]
    return found


def _ours(name: str, search: Search, most: int, seed: int) -> Iterator[dict[str, Value]]:
    """Yield what our model says of every test sample, and what its advice gains for some."""
    learned = training.of_term(search.samples, seed=seed)
    sets = tests(name, seed)
    converged = [sample for set_ in templates.TESTED for sample in sets[set_]]
    for gain in advised(learned, converged, most=most, seed=seed):
        yield {"machine": name, "promised": gain.promised, "gained": gain.simulated}
    for set_, some in sets.items():
        for sample in some:
            told = learned.predict(sample.write)
            yield {
                "machine": name,
                "set": set_,
                "seconds": told.seconds,
                "low": told.low,
                "high": told.high,
                "observed": sample.seconds,
            }


def _varied(name: str, nodes: int, writes: int, seed: int) -> Iterator[dict[str, Value]]:
    """Yield how much identical runs of the templates' writes differ."""
    machine = load(name)
    chance = np.random.default_rng([seed, nodes])
    path = WritePath(machine, chance)
    made = 0
    for _ in range(100):
        for write in templates.writes(machine, nodes, chance):
            placed = replace(write, placement=path.place(nodes))
            # One of ten, so that few writes are not all of the template's first core count.
            if chance.random() > 0.1 or path.quiet(placed) < SHORTEST:
                continue
            times = [path.run(placed).seconds for _ in range(RUNS)]
            yield {"machine": name, "nodes": nodes, "spread": max(times) / min(times)}
            made += 1
            if made == writes:
                return
