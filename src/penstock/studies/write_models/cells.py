"""The study's cells, their samples (all simulated), and models that several cells need.

Every process that needs samples and models makes them once, and always the same.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from statistics import fmean
from typing import Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from penstock.campaign.cells import Cell
from penstock.campaign.journal import Value
from penstock.campaign.sizes import Size
from penstock.learn.write_models import features, training
from penstock.learn.write_models.dataset import Dataset
from penstock.learn.write_models.features import Feature
from penstock.learn.write_models.machine import Machine, load
from penstock.learn.write_models.model import TrainedModel
from penstock.learn.write_models.regressors import (
    KERNEL_TECHNIQUES,
    PAPER_TECHNIQUES,
    Linear,
    Regressor,
)
from penstock.learn.write_models.samples import SHORTEST, Sample
from penstock.learn.write_models.training import Cell as Subset
from penstock.learn.write_models.training import CellResult, Search
from penstock.sim.evaluate import write_samples
from penstock.sim.evaluate.write_path import WritePath
from penstock.studies.write_models import adaptation, measured, unconverged
from penstock.studies.write_models.adaptation import Gain
from penstock.studies.write_models.unconverged import VARIATIONS

Floats = NDArray[np.float64]
MACHINES = ("cetus", "titan")
UNCONVERGED = "unconverged"
Subsets = Literal["all", "neighbours", "long"]
"""All 255 of eight scales, the 36 without gaps, or the 6 of these with six scales and more."""


AS_MANY = "as many samples as the paper"
LAMBDAS: Mapping[str, Sequence[float]] = {
    "lambda 0.001 to 1": (0.001, 0.01, 0.1, 1.0),
    "lambda 1 to 30": (1.0, 3.0, 10.0, 30.0),
}
"""What a lasso chooses from, in seconds per standard deviation. The paper chose 0.01 of a grid that
it does not print, in a unit that it does not print either."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Amounts:
    """How much of the paper's evaluation is done."""

    part: float
    """Part of the paper's training samples."""
    tested: float = 1.0
    """Part of the paper's test sets."""
    adapted: int
    """Test samples of each machine that are adapted by the chosen lasso."""
    advised: int
    """And by our model."""
    variations: int
    """Writes a scale whose runs are compared."""
    forests: Subsets
    """Forests are the cost of the search: which subsets of scales they are made of."""
    others: Subsets = "all"
    """And which the other four of the five."""
    lasso_parts: Mapping[str, float]
    """Parts of the paper's training samples that Table VII is judged with, in words."""
    lasso_seeds: int
    """And how often samples are drawn for it."""
    varied: int
    """Samples a test scale and draw of each variation of unconverged samples."""


SIZES: Mapping[Size, Amounts] = {
    "quick": Amounts(
        part=0.02,
        tested=0.05,
        adapted=6,
        advised=3,
        variations=2,
        forests="long",
        others="neighbours",
        lasso_parts={"a fiftieth of the paper's samples": 0.02},
        lasso_seeds=1,
        varied=4,
    ),
    "fast": Amounts(
        part=0.25,
        adapted=60,
        advised=30,
        variations=6,
        forests="neighbours",
        lasso_parts={AS_MANY: 1.0, "a quarter of them": 0.25},
        lasso_seeds=5,
        varied=12,
    ),
    "full": Amounts(
        part=1.0,
        adapted=400,
        advised=100,
        variations=20,
        forests="all",
        lasso_parts={AS_MANY: 1.0, "a quarter of them": 0.25},
        lasso_seeds=20,
        varied=12,
    ),
}


@lru_cache(maxsize=4)
def samples(name: str, part: float, seed: int) -> Sequence[Sample]:
    """Return the training samples of a machine, those that have not converged too."""
    machine = load(name)
    plan = write_samples.plan(machine, part=part)
    return [
        sample
        for scale in write_samples.TRAINING_SCALES
        for sample in _simulate(machine, scale, plan, seed)
    ]


@lru_cache(maxsize=4)
def searching(name: str, part: float, seed: int) -> Search:
    """Return the search over the converged training samples of a machine."""
    converged_samples = [
        one for one in samples(name, part, seed) if one.converged(write_samples.RULE)
    ]
    return Search(Dataset.from_samples(load(name), converged_samples), seed=seed)


@lru_cache(maxsize=4)
def lasso(name: str, part: float, which: Subsets, seed: int) -> CellResult:
    """Return the chosen lasso: the same as from the rows of its cells."""
    search = searching(name, part, seed)
    return search.best(map(search.evaluate, scale_subsets(search, "lasso", which)))["lasso"]


def scale_subsets(search: Search, technique: str, which: Subsets) -> list[Subset]:
    """Return the subsets of scales that a technique is tried with."""
    cells = list(search.cells([technique]))
    if which == "all":
        return cells
    places = {scale: place for place, scale in enumerate(search.scales)}
    # Without gaps: as many scales as places from the first to the last.
    cells = [s for s in cells if places[s.scales[-1]] - places[s.scales[0]] < len(s.scales)]
    least = len(search.scales) - 2 if which == "long" else 1
    return [s for s in cells if len(s.scales) >= least]


@lru_cache(maxsize=4)
def ours(name: str, part: float, seed: int) -> TrainedModel:
    """Return our model: of all samples, as 'penstock write-model train' makes it.

    One that has not converged counts for less in the fit, and for as much as any in the interval of
    one run: leaving out what varies most would make runs look alike.
    """
    return training.train(Dataset.from_samples(load(name), samples(name, part, seed)), seed=seed)


@lru_cache(maxsize=4)
def tests(name: str, part: float, seed: int) -> Mapping[str, Sequence[Sample]]:
    """Return the test sets of a machine: small, medium, large and unconverged."""
    machine = load(name)
    plan = write_samples.plan(machine, part=part)
    by_set: dict[str, list[Sample]] = {
        set_: [] for set_ in (*write_samples.TEST_SCALES, UNCONVERGED)
    }
    for set_, scales in write_samples.TEST_SCALES.items():
        for scale in scales:
            for sample in _simulate(machine, scale, plan, seed):
                place = set_ if sample.converged(write_samples.RULE) else UNCONVERGED
                by_set[place].append(sample)
    return by_set


def _simulate(machine: Machine, scale: int, plan: write_samples.Plan, seed: int) -> list[Sample]:
    return write_samples.samples(machine, scale, plan.converged[scale], runs=plan.runs, seed=seed)


def converged(name: str, part: float, seed: int) -> list[Sample]:
    """Return the converged test samples of a machine."""
    by_set = tests(name, part, seed)
    return [sample for set_ in write_samples.TEST_SCALES for sample in by_set[set_]]


@lru_cache(maxsize=4)
def features_and_seconds(name: str, part: float, seed: int) -> Mapping[str, tuple[Floats, Floats]]:
    """Return the features of each test set's samples, and what they took."""
    machine = load(name)
    return {
        set_: (
            features.matrix(machine, [sample.write for sample in some]),
            np.array([sample.seconds for sample in some]),
        )
        for set_, some in tests(name, part, seed).items()
    }


def missed(model: Regressor, name: str, part: float, seed: int) -> Mapping[str, Floats]:
    """Return by how many seconds a model errs on the samples of each test set."""
    by_set = features_and_seconds(name, part, seed)
    return {set_: model.predict(matrix) - seconds for set_, (matrix, seconds) in by_set.items()}


def squares(errors: Mapping[str, Floats]) -> dict[str, float]:
    """Return mean square errors on all converged test samples, and on the unconverged."""
    converged = np.concatenate([errors[set_] for set_ in write_samples.TEST_SCALES])
    both = {"converged": converged, UNCONVERGED: errors[UNCONVERGED]}
    return {part: float(np.mean(some**2)) for part, some in both.items()}


VARIATION, LASSO_SEARCH, SLOWEST = "variation", "lasso-search", "slowest"
SLOW_METADATA = "slow-metadata"
BY_METADATA = "cetus"
"""The machine whose writes the load of metadata dominates, says the paper (IV-C2)."""
SLOWED = 30
"""How many times as slow metadata are made, to see whether a lasso then keeps their load."""
OURS = "ours"
BY_TEST, FOREST = "chosen by the converged test samples", "forest with as many samples"
"""What models are tested instead of the chosen lasso, to learn why it differs from the paper's."""
ADAPTED, ADVISED, BY_LASSO = "adaptation", "advice", "advice-by-lasso"
GAINS = (ADAPTED, ADVISED, BY_LASSO)
"""By the chosen lasso as in the paper; as 'penstock advise' does by our model, and by the lasso."""
RUNS = 10
"""Identical runs whose largest and smallest are compared."""
CHUNKS = {"linear": 1, "ridge": 1, "lasso": 4, "tree": 4, "forest": 30, "svr": 1, "gaussian": 1}
"""Cells that the subsets of a technique are spread over."""
PARTS = 8
"""Cells that the adapted samples of a machine are spread over."""


def cells(size: Amounts) -> Iterator[Cell]:
    """Yield all cells, the longest first."""
    techniques = (*PAPER_TECHNIQUES, *KERNEL_TECHNIQUES)
    for technique in ("forest", *(t for t in techniques if t != "forest")):
        for machine in MACHINES:
            for chunk in range(CHUNKS[technique]):
                yield Cell(scenario=f"{machine} {technique}", x=float(chunk), workload=0)
    for machine in MACHINES:
        for number in range(size.lasso_seeds):
            yield Cell(scenario=f"{machine} {LASSO_SEARCH}", x=float(number), workload=0)
    for machine in MACHINES:
        yield Cell(scenario=f"{machine} {SLOWEST}", x=0.0, workload=0)
        yield Cell(scenario=f"{machine} {OURS}", x=0.0, workload=0)
        for what in GAINS:
            for part in range(PARTS):
                yield Cell(scenario=f"{machine} {what}", x=float(part), workload=0)
    yield Cell(scenario=f"{BY_METADATA} {SLOW_METADATA}", x=0.0, workload=0)
    for machine in MACHINES:
        test_scales = (s for some in write_samples.TEST_SCALES.values() for s in some)
        for nodes in (*write_samples.TRAINING_SCALES, *test_scales):
            yield Cell(scenario=f"{machine} {VARIATION}", x=float(nodes), workload=0)
    yield from measured.cells()


def work(cell: Cell, *, size: Amounts, seed: int) -> list[dict[str, Value]]:
    """Return the rows of a cell."""
    machine, _, what = cell.scenario.partition(" ")
    number = int(cell.x)
    if machine in measured.SOURCES:
        return measured.work(machine, what, seed)
    if what in GAINS:
        return list(_gains(machine, what, number, size, seed))
    parts: Mapping[str, Callable[[], Iterable[dict[str, Value]]]] = {
        VARIATION: lambda: _varied(machine, number, size.variations, seed),
        OURS: lambda: _ours(machine, size, seed),
        LASSO_SEARCH: lambda: _lasso_searches(machine, number, size, seed),
        SLOWEST: lambda: _slowest(machine, size, seed),
        SLOW_METADATA: lambda: _slow_metadata(machine, size, seed),
    }
    if what in parts:
        return list(parts[what]())
    search = searching(machine, size.part, seed)
    some = subsets(search, what, size)[number :: CHUNKS[what]]
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
        **squares(missed(model, name, tested, seed)),
    }


def _lasso_searches(name: str, number: int, size: Amounts, seed: int) -> Iterator[dict[str, Value]]:
    """Yield the accuracy of the chosen lasso, by the number of samples and the lambdas tried.

    With the first number of samples also what would be otherwise: the lasso of least error on the
    test samples, unconverged samples of other kinds, and, for the first draw, a forest.
    """
    seed += number
    chosen: Regressor | None = None
    for some, part in size.lasso_parts.items():
        search = searching(name, part, seed)
        fits = [
            (penalty, subset, search.fit(subset, {"penalty": penalty}))
            for subset in scale_subsets(search, "lasso", size.others)
            for penalty in sorted({x for grid in LAMBDAS.values() for x in grid})
        ]
        errors = [search.error(model) for _, _, model in fits]
        for lambdas, grid in LAMBDAS.items():
            best = min((k for k in range(len(fits)) if fits[k][0] in grid), key=lambda k: errors[k])
            penalty, subset, model = fits[best]
            for row in _accuracies(name, model, size.tested, seed):
                yield row | {
                    "reading": f"{some}, {lambdas}",
                    "seed": seed,
                    "penalty": penalty,
                    "scales": " ".join(map(str, subset.scales)),
                }
            chosen = chosen or model
        if some != next(iter(size.lasso_parts)):
            continue
        model = min(
            (model for _, _, model in fits),
            key=lambda model: squares(missed(model, name, size.tested, seed))["converged"],
        )
        for row in _accuracies(name, model, size.tested, seed):
            yield row | {"instead": BY_TEST}
        if not number:
            forest = search.fit_best(search.base("forest"))[1]
            for row in _accuracies(name, forest, size.tested, seed):
                yield row | {"instead": FOREST}
    assert chosen
    for variation, settings in VARIATIONS.items():
        made = unconverged.vary(load(name), settings, chosen, each=size.varied, seed=seed)
        yield {"machine": name, "variation": variation, **made.row()}


def _accuracies(
    name: str, model: Regressor, tested: float, seed: int
) -> Iterator[dict[str, Value]]:
    """Yield what a model reaches on each test set."""
    truths = features_and_seconds(name, tested, seed)
    for set_, missing in missed(model, name, tested, seed).items():
        relative = missing / truths[set_][1]
        yield {
            "machine": name,
            "tested": set_,
            "bias": float(np.median(relative)),
            "within_0.2": float(np.mean(np.abs(relative) <= 0.2)),
            "within_0.3": float(np.mean(np.abs(relative) <= 0.3)),
            "square": float(np.mean(missing**2)),
        }


def _slowest(name: str, size: Amounts, seed: int) -> Iterator[dict[str, Value]]:
    """Yield which stage of the simulated path takes longest, for every converged test sample."""
    path = WritePath(load(name), np.random.default_rng([seed, 11]))
    for sample in converged(name, size.tested, seed):
        stages = path.run(sample.write).stages
        yield {"machine": name, "slowest": max(stages, key=lambda stage: stages[stage])}


def _slow_metadata(name: str, size: Amounts, seed: int) -> Iterator[dict[str, Value]]:
    """Yield what a lasso keeps for the machine with metadata that is SLOWED times as slow."""
    machine = load(name)
    stages = tuple(
        msgspec.structs.replace(stage, rate=stage.rate / SLOWED)
        if stage.kind == "metadata" and stage.rate
        else stage
        for stage in machine.stage
    )
    slow = msgspec.structs.replace(machine, stage=stages)
    plan = write_samples.plan(slow, part=size.part)
    made = (
        sample
        for scale in write_samples.TRAINING_SCALES
        for sample in _simulate(slow, scale, plan, seed)
    )
    known = [sample for sample in made if sample.converged(write_samples.RULE)]
    search = Search(Dataset.from_samples(slow, known), seed=seed)
    results = map(search.evaluate, scale_subsets(search, "lasso", "neighbours"))
    best = search.best(results)["lasso"]
    for feature in leading_features(search, search.fit(best.cell, best.options)):
        yield {"machine": name, "kept": feature.name}


def leading_features(search: Search, model: Regressor) -> list[Feature]:
    """Return the features that a lasso model kept, those that matter most first."""
    assert isinstance(model, Linear)
    matrix = features.matrix(search.samples.machine, search.training.writes)
    names = features.features(search.samples.machine)
    weight = np.abs(model.coefficients) * matrix.std(axis=0)
    return [names[int(k)] for k in np.argsort(-weight) if weight[k] > 1e-3 * weight.max()]


def subsets(search: Search, technique: str, size: Amounts) -> list[Subset]:
    """Return what is tried of a technique: subsets, or all scales for those that fail."""
    if technique in KERNEL_TECHNIQUES:
        return [search.base(technique)]
    which = size.forests if technique == "forest" else size.others
    return scale_subsets(search, technique, which)


def _gains(name: str, what: str, part: int, size: Amounts, seed: int) -> Iterator[dict[str, Value]]:
    """Yield what adaptation or advice gains for a part of the samples."""
    most = size.adapted if what == ADAPTED else size.advised
    samples = adaptation.some(converged(name, size.tested, seed), most)[part::PARTS]
    chance = np.random.default_rng([seed, 7 + GAINS.index(what), part])
    gains: Iterable[Gain]
    if what == ADVISED:
        gains = adaptation.advised(ours(name, size.part, seed), samples, chance=chance)
    else:
        search, result = (
            searching(name, size.part, seed),
            lasso(name, size.part, size.others, seed),
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
    learned = ours(name, size.part, seed)
    for set_, some in tests(name, size.tested, seed).items():
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
