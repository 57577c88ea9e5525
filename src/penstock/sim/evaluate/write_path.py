"""Simulate a write on a machine's write path: never a measurement (docs/formats/machines.md).

A run has a quiet time and what it meets. Quiet: every component has the bytes that really fall on
it, those of a job's own nodes behind a group, and those of files that begin at random targets; the
time of a stage is that of its busiest component. Stages work at once, though not perfectly: their
times are added as (t1^p + t2^p + ...)^(1/p). Opens, closes and ends of files come before and after
the data, one by one.

Met: other jobs take a part of all that is shared, which changes slowly; some components are in the
middle of another job's burst, so that a write over many components meets more of them and a long
one sees them come and go; a component may stand still for a time with a heavy tail; and what is
left is noise. All constants are in the machine's file, under interference.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from penstock.learn.convergence import Convergence
from penstock.learn.write_models.machine import OPERATIONS, Machine, Stage
from penstock.learn.write_models.parameters import Floats, bandwidth, check, stripe, width
from penstock.learn.write_models.prediction import stage_seconds
from penstock.learn.write_models.samples import SIMULATED, Sample
from penstock.model.write import Write

LONGEST = 600.0
"""Seconds of the longest stall: a target that is unavailable for longer is replaced."""
HOUR = 3600.0
MOST_STALLS = 1e6
"""Limit per run, which bounds memory; no realistic run is long enough to reach it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What one run took, and what each stage would have taken alone."""

    seconds: float
    quiet: float
    """Seconds without others and without noise."""
    stages: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fixed:
    """What all runs of a write have in common."""

    behind: Mapping[str, Floats]
    """Nodes of the job behind each component of a group that it uses."""
    operations: Mapping[str, float]


class WritePath:
    """A machine that runs writes one after the other, in weather that a seed decides."""

    def __init__(self, machine: Machine, random: np.random.Generator) -> None:
        self.machine = machine
        self._others = machine.interference
        self._operating = {s.name for s in machine.stage if s.kind in OPERATIONS}
        self._speed = {s.name: bandwidth(s) for s in machine.stage if bandwidth(s)}
        self._random = random
        self._weather = random.standard_normal()
        self._last: tuple[Write, _Fixed] | None = None

    def place(self, nodes: int) -> tuple[int, ...]:
        """Return nodes for a job as a busy machine gives them: some runs of neighbours."""
        chance, there = self._random, self.machine.nodes
        if chance.random() < self._others.scattered:
            return tuple(np.sort(chance.choice(there, nodes, replace=False)).tolist())
        pieces = min(nodes, int(chance.geometric(1 / self._others.pieces)))
        cuts = np.sort(chance.choice(np.arange(1, nodes), pieces - 1, replace=False))
        lengths = np.diff(np.concatenate(([0], cuts, [nodes])))
        # The free nodes between the pieces are dealt at random, so that pieces never overlap.
        gaps = np.sort(chance.integers(0, there - nodes + 1, pieces))
        starts = gaps + np.concatenate(([0], np.cumsum(lengths)[:-1]))
        pairs = zip(starts, lengths, strict=True)
        return tuple(int(node) for start, length in pairs for node in range(start, start + length))

    def sample(self, write: Write, *, rule: Convergence, runs: int) -> Sample:
        """Run a write until the rule is reached: at least its minimum, at most `runs` times."""
        times: list[float] = []
        while len(times) < runs and not rule.reached(times):
            times.append(self.run(write).seconds)
        return Sample(machine=self.machine.name, source=SIMULATED, write=write, times=tuple(times))

    def quiet(self, write: Write) -> float:
        """Return the seconds without others; targets are random still."""
        return self._quiet(self._loads(write), self._fixed(write).operations)

    def run(self, write: Write) -> Run:
        """Return what the next run of a write takes."""
        loads, operations = self._loads(write), self._fixed(write).operations
        quiet = self._quiet(loads, operations)
        stages = {**self._data(loads, write, quiet), **operations}
        seconds = self._total(stages) + self._stalled(loads, quiet)
        seconds *= math.exp(self._random.normal(0.0, self._others.noise))
        return Run(seconds=seconds, quiet=quiet, stages=stages)

    def _fixed(self, write: Write) -> "_Fixed":
        """Return what is the same in all runs of a write, which come one after the other."""
        if self._last is None or self._last[0] is not write:
            check(self.machine, write)
            where = np.array(write.placement or range(write.nodes), np.int64)
            behind = {s.name: np.bincount(where // s.nodes_each) for s in self.machine.groups}
            used = {name: count[count > 0].astype(np.float64) for name, count in behind.items()}
            self._last = (write, _Fixed(behind=used, operations=self._operations(write)))
        return self._last[1]

    def _loads(self, write: Write) -> dict[str, Floats]:
        """Return the bytes of each component in use, by the name of its stage."""
        each = write.cores * write.burst
        behind = self._fixed(write).behind
        targets = self._on_targets(write)
        on = np.arange(targets.size) % self.machine.striping.servers
        servers = np.bincount(on, targets).astype(np.float64)
        loads: dict[str, Floats] = {}
        for stage in self.machine.stage:
            match stage.kind:
                case "node":
                    loads[stage.name] = np.array([each], np.float64)
                case "group":
                    loads[stage.name] = behind[stage.name] * each
                case "network":
                    loads[stage.name] = np.array([write.bytes])
                case "server":
                    loads[stage.name] = servers[servers > 0]
                case "target":
                    loads[stage.name] = targets[targets > 0]
        return loads

    def _on_targets(self, write: Write) -> Floats:
        """Return the bytes on every target: files begin anywhere and go round from there."""
        there = self.machine.striping.targets
        size = write.bytes / write.files
        blocks = math.ceil(size / stripe(self.machine, write))
        used = min(width(self.machine, write), blocks)
        starts = np.bincount(self._random.integers(0, there, write.files), minlength=there)
        rounds, rest = divmod(blocks, used)
        return (rounds * _around(starts, used) + _around(starts, rest)) * (size / blocks)

    def _quiet(self, loads: Mapping[str, Floats], operations: Mapping[str, float]) -> float:
        alone = {
            name: float(loads[name].max()) / speed
            for name, speed in self._speed.items()
            if name in loads
        }
        return self._total({**alone, **operations})

    def _data(self, loads: Mapping[str, Floats], write: Write, quiet: float) -> dict[str, float]:
        """Return the seconds of each stage that data go through, others being there."""
        everywhere = self._everywhere()
        seconds: dict[str, float] = {}
        for stage in self.machine.stage:
            if stage.name not in loads or stage.name not in self._speed:
                continue
            load = loads[stage.name]
            left = np.ones(load.size)
            if stage.kind in ("network", "server", "target"):
                left *= 1 - everywhere
            if stage.kind in ("group", "server", "target"):
                left *= 1 - self._bursts(load.size, quiet) * self._shared(stage, load, write)
            seconds[stage.name] = float((load / left).max()) / self._speed[stage.name]
        return seconds

    def _everywhere(self) -> float:
        """Return the part of network and storage that others take now; it changes slowly."""
        others = self._others
        fresh = math.sqrt(1 - others.memory**2) * self._random.standard_normal()
        self._weather = others.memory * self._weather + fresh
        if not others.load:
            return 0.0
        odds = math.log(others.load / (1 - others.load)) + others.swing * self._weather
        return 1 / (1 + math.exp(-odds))

    def _bursts(self, components: int, quiet: float) -> Floats:
        """Return the part of each component that bursts of others take, over the whole write."""
        others = self._others
        met = self._random.random(components) < others.hit
        part = np.where(met, self._random.uniform(0, 2 * others.loss, components), 0.0)
        # A write that outlasts them sees them come and go: what is left is nearer to the mean.
        felt = math.sqrt(others.lasts / (others.lasts + quiet))
        mixed: Floats = felt * part + (1 - felt) * others.hit * others.loss
        return np.minimum(mixed, 0.95)

    def _shared(self, stage: Stage, load: Floats, write: Write) -> Floats:
        """Return the part of each component that other jobs can use, which excludes a job's own."""
        if stage.kind != "group":
            return np.ones(load.size)
        return 1 - self._fixed(write).behind[stage.name] / stage.nodes_each

    def _operations(self, write: Write) -> dict[str, float]:
        """Return the seconds for opens, closes and ends of files."""
        busy = stage_seconds(self.machine, write)
        return {name: seconds for name, seconds in busy.items() if name in self._operating}

    def _total(self, stages: Mapping[str, float]) -> float:
        power = self._others.overlap
        data = [t for name, t in stages.items() if name not in self._operating]
        slowest = max(data, default=0.0)
        if not slowest:
            return sum(stages.values())
        parts = sum((t / slowest) ** power for t in data)
        return float(slowest * parts ** (1 / power)) + sum(
            t for name, t in stages.items() if name in self._operating
        )

    def _stalled(self, loads: Mapping[str, Floats], quiet: float) -> float:
        """Return the seconds of the stalls that the write meets."""
        others = self._others
        used = sum(load.size for load in loads.values())
        met = int(self._random.poisson(min(others.stalls * used * quiet / HOUR, MOST_STALLS)))
        if not met:
            return 0.0
        lengths = others.stall * (1 + self._random.pareto(others.tail, met))
        return float(np.minimum(lengths, LONGEST).sum())


def _around(starts: NDArray[np.int64], wide: int) -> Floats:
    """Return how many of the rows that begin at each place, `wide` long, cover each place."""
    if not wide:
        return np.zeros(starts.size)
    if wide == starts.size:
        return np.full(starts.size, float(starts.sum()))
    twice = np.concatenate(([0], np.cumsum(np.concatenate((starts, starts)))))
    ends = np.arange(starts.size, 2 * starts.size) + 1
    return (twice[ends] - twice[ends - wide]).astype(np.float64)
