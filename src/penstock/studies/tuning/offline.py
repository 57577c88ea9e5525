"""What policies learn from recorded rewards (thesis, 4.2.2): no I/O is done, rewards are drawn."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import fmean

import numpy as np
from numpy.typing import ArrayLike

from penstock.data.windows import TWINS, RewardSeries, Scenario, by_window
from penstock.learn.detection import features as feature_table
from penstock.learn.detection import samples, training
from penstock.learn.detection.samples import Sample
from penstock.model import Observation, Value
from penstock.sim.evaluate.bandits import TIE, Evaluation, Learning, Rewards

EPSILONS = (0.07, 0.10, 0.15, 0.20)
OURS = "discounted-ucb"
OTHERS = ("thompson", "sliding-ucb")
UNITS = {"MiB/s": 1.0, "bytes/s": 2.0**-20}
"""Units that Equation 4.2 may have, in MiB/s, which the rewards have."""
COMPARED = ("epsilon-greedy", "ucb1", "scaled-ucb1", OURS, *OTHERS)
KIB = 2**10
SIX: Mapping[str, tuple[str, str, int, int]] = {
    "A": ("shared-strided", "read", 16, 4),
    "B": ("shared-contiguous", "write", 16, 2),
    "C": ("shared-contiguous", "read", 16, 4),
    "D": ("shared-strided", "write", 16, 1),
    "E": ("file-per-process", "write", 16, 1),
    "F": ("shared-strided", "read", 16, 2),
}
"""Table 4.1: pattern, operation, processes, I/O nodes; all of 32 KiB. Ours have 16 processes where
the thesis' have 128 or 512, and half of its 8 and 4 I/O nodes in A and F."""
CHANGES_AT, AGAIN_WITHIN = 250, 150
MATTERS = 0.15
"""A window matters where the worst is worse than the best by this part or more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Last:
    """What is reached in the last bin: shares of right choices, and of the performance."""

    precision: float
    near_best: float
    performance: float


class Offline:
    """Evaluations of recorded rewards; each is computed at its first use."""

    def __init__(
        self, rewards: Sequence[RewardSeries], *, observations: int, repetitions: int, seed: int
    ) -> None:
        self.rewards: dict[Scenario, dict[float, tuple[float, ...]]] = by_window(rewards)
        self.baselines = {
            (one.scenario, one.scheduler): one.mean for one in rewards if one.scheduler != TWINS
        }
        self.observations = observations
        self.repetitions = repetitions
        self._seed = seed
        self.recorded: dict[str, dict[Value, ArrayLike]] = {
            s.name: dict(each.items()) for s, each in self.rewards.items()
        }
        self.table = Rewards(self.recorded)

    @cached_property
    def means(self) -> dict[Scenario, dict[float, float]]:
        """Return the mean reward of each window."""
        return {
            scenario: {window: fmean(series) for window, series in each.items()}
            for scenario, each in self.rewards.items()
        }

    @cached_property
    def six(self) -> dict[str, Scenario]:
        """Return the scenarios of Table 4.1, as far as they were measured."""
        scenarios = {
            letter: Scenario(
                pattern=pattern,
                operation=operation,
                request=32 * KIB,
                processes=processes,
                io_nodes=io_nodes,
            )
            for letter, (pattern, operation, processes, io_nodes) in SIX.items()
        }
        return {letter: one for letter, one in scenarios.items() if one in self.rewards}

    def _evaluation(self, policy: str, **options: float) -> Evaluation:
        return Evaluation(
            policy=policy,
            options=options,
            observations=self.observations,
            repetitions=self.repetitions,
            seed=self._seed,
        )

    def _of_six(self) -> dict[str, dict[Value, ArrayLike]]:
        return {letter: self.recorded[one.name] for letter, one in self.six.items()}

    @cached_property
    def epsilons(self) -> dict[float, Learning]:
        """Return how epsilon-greedy learns the six, each alone (Fig. 4.3)."""
        return {
            epsilon: self._evaluation("epsilon-greedy", epsilon=epsilon).alone(self._of_six())
            for epsilon in EPSILONS
        }

    @cached_property
    def interleaved(self) -> Learning:
        """Return how it learns the six at once (Fig. 4.4)."""
        return self._evaluation("epsilon-greedy", epsilon=0.15).interleaved(self._of_six())

    @cached_property
    def units(self) -> dict[str, Learning]:
        """Return how UCB1 learns the six, by the unit of its rewards (Table 4.4)."""
        return {
            name: self._evaluation("ucb1", unit=unit).alone(self._of_six())
            for name, unit in UNITS.items()
        }

    @cached_property
    def ties(self) -> dict[Scenario, int]:
        """Return how many windows of each scenario are nearly as good as the best, or it."""
        return {
            scenario: sum(mean >= (1 - TIE) * max(means.values()) for mean in means.values())
            for scenario, means in self.means.items()
        }

    @cached_property
    def policies(self) -> dict[str, Learning]:
        """Return how UCB1 and ours learn the six (Fig. 4.5)."""
        return {name: self._evaluation(name).alone(self._of_six()) for name in ("ucb1", OURS)}

    @cached_property
    def everywhere(self) -> dict[str, Learning]:
        """Return how policies learn all scenarios."""
        return {name: self._evaluation(name).alone(self.recorded) for name in COMPARED}

    @cached_property
    def mattering(self) -> list[str]:
        """Return the scenarios in which the window matters."""
        lost = 1 - self.table.mean.min(axis=1) / self.table.mean.max(axis=1)
        return [
            name for name, part in zip(self.table.scenarios, lost, strict=True) if part >= MATTERS
        ]

    @cached_property
    def changed(self) -> dict[str, Learning]:
        """Return how policies do where the window matters and the windows' ranks are reversed."""
        before = {name: self.recorded[name] for name in self.mattering}
        after = {name: reversed_ranks(each) for name, each in before.items()}
        return {
            name: self._evaluation(name).changing(before, after, at=CHANGES_AT) for name in COMPARED
        }

    def again(self, policy: str) -> float:
        """Return the mean performance AGAIN_WITHIN observations after the change."""
        return float(self.changed[policy].after(CHANGES_AT + AGAIN_WITHIN).mean())


def reversed_ranks(each: Mapping[Value, ArrayLike]) -> dict[Value, ArrayLike]:
    """Return the rewards of the best value as those of the worst, and so on."""
    ranked = sorted(each, key=lambda value: float(np.mean(np.asarray(each[value], dtype=float))))
    turned = dict(zip(ranked, reversed(ranked), strict=True))
    return {value: each[turned[value]] for value in each}


def last(learning: Learning, scenario: str) -> Last:
    """Return what is reached in the last bin of a scenario."""
    k = learning.scenarios.index(scenario)
    return Last(
        precision=float(learning.precision[k, -1]),
        near_best=float(learning.near_best[k, -1]),
        performance=float(learning.performance[k, -1]),
    )


BASELINE, STATIC = 1e-3, 125e-6
NOTICED = 0.01
"""A window counts as better or worse by this part or more: rewards are measured."""
Means = Mapping[Scenario, Mapping[float, float]]
Key = tuple[str, str, int]
"""Operation, approach, I/O nodes."""


class Choices:
    """How many observations are of a run that a chosen window makes better, or worse.

    The window is chosen by the detected access pattern, and held against 1 ms (thesis, 3.5: Tables
    3.6 and 3.7). A right detection gets the best window: what is counted is what wrong ones cost.
    """

    def __init__(
        self,
        means: Means,
        observations: Sequence[Sample],
        detectors: Mapping[str, Callable[[Observation], str]],
    ) -> None:
        self._means = means
        self.increased: Counter[Key] = Counter()
        self.decreased: Counter[Key] = Counter()
        self.observations = 0
        for one in observations:
            scenario = _scenario(one)
            if scenario not in means:
                continue
            self.observations += 1
            self._count(scenario, "oracle", self._best(scenario))
            self._count(scenario, "static", STATIC)
            for name, detect in detectors.items():
                detected = replace(scenario, pattern=detect(one.observation))
                window = self._best(detected) if detected in means else BASELINE
                self._count(scenario, name, window)

    def _best(self, scenario: Scenario) -> float:
        means = self._means[scenario]
        return max(means, key=lambda window: means[window])

    def _count(self, scenario: Scenario, approach: str, window: float) -> None:
        means = self._means[scenario]
        gain = means[window] / means[BASELINE] - 1
        key = (scenario.operation, approach, scenario.io_nodes)
        self.increased[key] += gain > NOTICED
        self.decreased[key] += gain < -NOTICED

    @property
    def columns(self) -> list[tuple[str, int]]:
        """Return the operations and numbers of I/O nodes that there are counts of."""
        return sorted({(operation, io_nodes) for operation, _, io_nodes in self.increased})

    def total(self, counts: Counter[Key], approach: str) -> int:
        """Return a count over all operations and numbers of I/O nodes."""
        return sum(n for (_, name, _), n in counts.items() if name == approach)


@dataclass(frozen=True, slots=True, kw_only=True)
class Detectors:
    """Models of each kind, and the observations of their sizes that they were not trained with."""

    detect: Mapping[str, Callable[[Observation], str]]
    held_out: Sequence[Sample]

    @classmethod
    def train(cls, trees: int, seed: int) -> "Detectors":
        """Train them on 70% of the observations of 32 and 256 KiB."""
        training_samples = samples.of_sizes(samples.shipped(), samples.TRAINED_ON)
        first, held_out = training.split(training_samples, seed=seed)
        features = feature_table.select(training_samples)

        def detector(kind: training.Kind) -> Callable[[Observation], str]:
            model = training.train(first, kind, features, seed=seed, trees=trees).model
            return lambda observation: model.detect(observation).pattern

        return cls(detect={kind: detector(kind) for kind in training.KINDS}, held_out=held_out)


def _scenario(one: Sample) -> Scenario:
    return Scenario(
        pattern=one.pattern,
        operation=one.operation,
        request=one.request,
        processes=one.processes,
        io_nodes=one.io_nodes,
    )
