"""The study's cells: chunks of the search, of adaptation and advice, our model, Figure 1."""

from collections.abc import Iterable, Iterator
from dataclasses import asdict, replace
from statistics import fmean

import numpy as np

from penstock.campaign.cells import Cell
from penstock.campaign.journal import Value
from penstock.learn.write_models import training
from penstock.learn.write_models.machine import load
from penstock.learn.write_models.regressors import KERNEL_TECHNIQUES, PAPER_TECHNIQUES
from penstock.learn.write_models.samples import SHORTEST
from penstock.learn.write_models.training import Cell as Subset
from penstock.learn.write_models.training import Search
from penstock.sim.evaluate import write_samples
from penstock.sim.evaluate.write_path import WritePath
from penstock.studies.write_models import adaptation, measured, sets
from penstock.studies.write_models.adaptation import Gain
from penstock.studies.write_models.sets import MACHINES, Amounts, searching

VARIATION = "variation"
OURS = "ours"
ADAPTED, ADVISED, BY_LASSO = "adaptation", "advice", "advice-by-lasso"
GAINS = (ADAPTED, ADVISED, BY_LASSO)
"""By the chosen lasso as in the paper; as 'penstock advise' does by our model, and by the lasso."""
RUNS = 10
"""Identical runs whose largest and smallest are compared."""
CHUNKS = {"linear": 1, "ridge": 1, "lasso": 4, "tree": 4, "forest": 30, "svr": 1, "gaussian": 1}
"""Cells that the subsets of a technique are spread over."""
PARTS = 8
"""Cells that the adapted samples of a machine are spread over."""


def cells() -> Iterator[Cell]:
    """Yield all cells, the longest first."""
    techniques = (*PAPER_TECHNIQUES, *KERNEL_TECHNIQUES)
    for technique in ("forest", *(t for t in techniques if t != "forest")):
        for machine in MACHINES:
            for chunk in range(CHUNKS[technique]):
                yield Cell(scenario=f"{machine} {technique}", x=float(chunk), workload=0)
    for machine in MACHINES:
        yield Cell(scenario=f"{machine} {OURS}", x=0.0, workload=0)
        for what in GAINS:
            for part in range(PARTS):
                yield Cell(scenario=f"{machine} {what}", x=float(part), workload=0)
    for machine in MACHINES:
        test_scales = (s for some in write_samples.TEST_SCALES.values() for s in some)
        for nodes in (*write_samples.TRAINING_SCALES, *test_scales):
            yield Cell(scenario=f"{machine} {VARIATION}", x=float(nodes), workload=0)
    yield from measured.cells()


def work(cell: Cell, *, size: Amounts, seed: int) -> list[dict[str, Value]]:
    """Return the rows of a cell."""
    machine, _, what = cell.scenario.partition(" ")
    if what == VARIATION:
        return list(_varied(machine, int(cell.x), size.variations, seed))
    if machine in measured.SOURCES:
        return measured.work(machine, what, seed)
    if what == OURS:
        return list(_ours(machine, size, seed))
    if what in GAINS:
        return list(_gains(machine, what, int(cell.x), size, seed))
    search = searching(machine, size.part, seed)
    some = subsets(search, what, size)[int(cell.x) :: CHUNKS[what]]
    return [_searched(machine, search, subset, size.tested, seed) for subset in some]


def _searched(
    name: str, search: Search, subset: Subset, tested: float, seed: int
) -> dict[str, Value]:
    """Return what a subset of scales reaches: validated, which chooses, and on the test sets."""
    result, model = search.fit_best(subset)
    return {
        "machine": name,
        "technique": subset.technique,
        "scales": " ".join(map(str, subset.scales)),
        "option": result.option,
        "error": result.error,
        **sets.squares(sets.missed(model, name, tested, seed)),
    }


def subsets(search: Search, technique: str, size: Amounts) -> list[Subset]:
    """Return what is tried of a technique: subsets, or all scales for those that fail."""
    if technique in KERNEL_TECHNIQUES:
        return [search.base(technique)]
    which = size.forests if technique == "forest" else size.others
    return sets.subsets(search, technique, which)


def _gains(name: str, what: str, part: int, size: Amounts, seed: int) -> Iterator[dict[str, Value]]:
    """Yield what adaptation or advice gains for a part of the samples."""
    most = size.adapted if what == ADAPTED else size.advised
    samples = adaptation.some(sets.converged(name, size.tested, seed), most)[part::PARTS]
    chance = np.random.default_rng([seed, 7 + GAINS.index(what), part])
    gains: Iterable[Gain]
    if what == ADVISED:
        gains = adaptation.advised(sets.ours(name, size.part, seed), samples, chance=chance)
    else:
        search, result = (
            searching(name, size.part, seed),
            sets.lasso(name, size.part, size.others, seed),
        )
        if what == BY_LASSO:
            gains = adaptation.advised(
                training.train_regression(search, result), samples, chance=chance
            )
        else:
            fitted = search.fit(result.cell, result.options)
            gains = adaptation.gains(search.samples.machine, fitted, samples, chance=chance)
    for gain in gains:
        yield {"machine": name, "gain": what, **asdict(gain)}


def _ours(name: str, size: Amounts, seed: int) -> Iterator[dict[str, Value]]:
    """Yield what our model says of every test sample."""
    learned = sets.ours(name, size.part, seed)
    for set_, some in sets.tests(name, size.tested, seed).items():
        for sample in some:
            prediction = learned.predict(sample.write)
            low, high = prediction.run or (prediction.low, prediction.high)
            yield {
                "machine": name,
                "set": set_,
                "seconds": prediction.seconds,
                "low": prediction.low,
                "high": prediction.high,
                "observed": sample.seconds,
                "runs_held": fmean(low <= t <= high for t in sample.times),
            }


def _varied(name: str, nodes: int, writes: int, seed: int) -> Iterator[dict[str, Value]]:
    """Yield how much identical runs of the templates' writes differ."""
    machine = load(name)
    chance = np.random.default_rng([seed, nodes])
    path = WritePath(machine, chance)
    count = 0
    for _ in range(100):
        for write in write_samples.writes(machine, nodes, chance):
            placed = replace(write, placement=path.place(nodes))
            # One of ten, so that few writes are not all of the template's first core count.
            if chance.random() > 0.1 or path.quiet(placed) < SHORTEST:
                continue
            times = [path.run(placed).seconds for _ in range(RUNS)]
            yield {"machine": name, "nodes": nodes, "spread": max(times) / min(times)}
            count += 1
            if count == writes:
                return
