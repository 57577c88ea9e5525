"""Why unconverged samples are predicted better here than in Table VII: one factor varied at a time.

The paper's unconverged samples are not public. Of what makes a sample unconverged it leaves open
zeta and the largest number of runs, and it says that the runs of a sample may be of several jobs
(III-D, step 5), so on other nodes; ours are all on the same. Each variation simulates samples of
the test scales, and holds two predictions against the means of those that do not converge: the
chosen lasso's, and the mean of further runs on the same nodes, which no model of a write can beat.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from statistics import fmean

import msgspec
import numpy as np
from numpy.typing import NDArray

from penstock.campaign.journal import Row, Value
from penstock.learn.convergence import Convergence
from penstock.learn.write_models import features
from penstock.learn.write_models.machine import Machine
from penstock.learn.write_models.regressors import Regressor
from penstock.learn.write_models.samples import SHORTEST, SIMULATED, Sample
from penstock.sim.evaluate import write_samples
from penstock.sim.evaluate.write_path import WritePath

Floats = NDArray[np.float64]
PRINTED: Mapping[str, tuple[int, int]] = {"cetus": (169, 754), "titan": (180, 916)}
"""IV-A: how many samples on 200 nodes and more do not converge, of how many."""
EXPECTED_RUNS = 25
"""Further runs whose mean is the expected time of a write."""
WITHIN = (0.2, 0.3)
PREDICTED = ("lasso", "expected", "converged")


@dataclass(frozen=True, slots=True, kw_only=True)
class Variation:
    """What is unlike the samples that the study tests with."""

    zeta: float = write_samples.RULE.within
    runs: int | None = None
    """Largest number of runs; None: as for the test samples."""
    stall: float = 1.0
    """Factor on the length of stalls."""
    load: Mapping[str, float] | None = None
    """Other settings of the load that other jobs are, by name."""
    other_nodes: float = 0.0
    """Part of the samples whose every run has nodes of its own; features are of the first's."""


AS_SIMULATED, OTHER_NODES = "as simulated", "each run on other nodes"
VARIATIONS: Mapping[str, Variation] = {
    AS_SIMULATED: Variation(),
    "at most 3 runs": Variation(runs=3),
    "stalls 8 times as long": Variation(stall=8.0),
    "a load that swings by 3 and lasts": Variation(load={"swing": 3.0, "memory": 0.95}),
    "zeta 0.2": Variation(zeta=0.2),
    OTHER_NODES: Variation(other_nodes=1.0),
    f"{OTHER_NODES}, zeta 0.2": Variation(other_nodes=1.0, zeta=0.2),
    f"{OTHER_NODES} for half the samples, zeta 0.2": Variation(other_nodes=0.5, zeta=0.2),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Unconverged:
    """How many samples of a variation do not converge, and how many of these are predicted."""

    samples: int
    unconverged: int
    lasso: Mapping[float, int]
    """How many means the chosen lasso predicts with at most such an error."""
    expected: Mapping[float, int]
    """How many means are as near to the expected time of their write."""
    converged: Mapping[float, int]
    """How many means of converged samples the chosen lasso predicts."""

    def parts(self, of: str) -> tuple[float, float]:
        """Return the parts within 0.2 and 0.3 of one of PREDICTED; 0 without any sample."""
        total = self.samples - self.unconverged if of == "converged" else self.unconverged
        counts: Mapping[float, int] = getattr(self, of)
        near, far = (counts[limit] / max(total, 1) for limit in WITHIN)
        return near, far

    def row(self) -> dict[str, Value]:
        """Return the counts as columns of a row."""
        return {
            "samples": self.samples,
            "unconverged": self.unconverged,
            **{f"{of}_{limit}": getattr(self, of)[limit] for of in PREDICTED for limit in WITHIN},
        }


def vary(
    machine: Machine, variation: Variation, model: Regressor, *, each: int, seed: int
) -> Unconverged:
    """Return how predictable the unconverged samples of a variation are, `each` per scale."""
    others = machine.interference
    others = msgspec.structs.replace(
        others, stall=others.stall * variation.stall, **(variation.load or {})
    )
    varied = msgspec.structs.replace(machine, interference=others)
    rule = replace(write_samples.RULE, within=variation.zeta)
    path = WritePath(varied, np.random.default_rng([seed, 13]))
    made = [
        sample
        for scales in write_samples.TEST_SCALES.values()
        for nodes in scales
        for sample in islice(_samples(path, nodes, variation, rule, seed), each)
    ]
    converged = np.array([rule.reached(sample.times) for sample in made])
    means = np.array([sample.seconds for sample in made])
    predicted = model.predict(features.matrix(machine, [sample.write for sample in made]))
    some = [sample for sample, known in zip(made, converged, strict=True) if not known]
    expected = np.array(
        [fmean(path.run(sample.write).seconds for _ in range(EXPECTED_RUNS)) for sample in some]
    )
    return Unconverged(
        samples=len(made),
        unconverged=len(some),
        lasso=_near(predicted[~converged], means[~converged]),
        expected=_near(expected, means[~converged]),
        converged=_near(predicted[converged], means[converged]),
    )


def _samples(
    path: WritePath, nodes: int, variation: Variation, rule: Convergence, seed: int
) -> Iterator[Sample]:
    """Yield samples of 5 s and more, as `write_samples.samples` does but for the variation."""
    machine = path.machine
    runs = variation.runs or write_samples.plan(machine).runs
    random = np.random.default_rng([seed, nodes, 17])
    while True:
        writes = list(write_samples.writes(machine, nodes, random))
        for index in random.permutation(len(writes)):
            write = replace(writes[index], placement=path.place(nodes))
            if path.quiet(write) < SHORTEST / 2:
                continue
            elsewhere = random.random() < variation.other_nodes
            times: list[float] = []
            while len(times) < runs and not rule.reached(times):
                moved = elsewhere and times
                now = replace(write, placement=path.place(nodes)) if moved else write
                times.append(path.run(now).seconds)
            if fmean(times) >= SHORTEST:
                yield Sample(
                    machine=machine.name, source=SIMULATED, write=write, times=tuple(times)
                )


def _near(predicted: Floats, means: Floats) -> dict[float, int]:
    errors = np.abs(predicted / means - 1)
    return {limit: int((errors <= limit).sum()) for limit in WITHIN}


def pooled(rows: Iterable[Row]) -> Unconverged:
    """Return the counts of the rows of several draws together."""
    some = list(rows)

    def total(name: str) -> int:
        return sum(int(str(row[name])) for row in some)

    counts = {of: {limit: total(f"{of}_{limit}") for limit in WITHIN} for of in PREDICTED}
    return Unconverged(samples=total("samples"), unconverged=total("unconverged"), **counts)
