"""Windows chosen by the detected access pattern, against 1 ms (thesis, 3.5: Tables 3.6 and 3.7).

As there, whoever detects a pattern rightly is given the best window: what is counted is what wrong
detections cost. Observations are those that come with the package.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from penstock.data.windows import Scenario
from penstock.learn.detection import samples, selection, training
from penstock.learn.detection.samples import Sample
from penstock.model import Observation

BASELINE, STATIC = 1e-3, 125e-6
NOTICED = 0.01
"""A window counts as better or worse by this part or more: rewards are measured."""
Means = Mapping[Scenario, Mapping[float, float]]
Key = tuple[str, str, int]
"""Operation, approach, I/O nodes."""


class Choices:
    """How many observations are of a run that a chosen window makes better, or worse."""

    def __init__(
        self, means: Means, observations: Sequence[Sample], *, trees: int, seed: int
    ) -> None:
        self._means = means
        self.increased: Counter[Key] = Counter()
        self.decreased: Counter[Key] = Counter()
        self.observations = 0
        ways = approaches(trees, seed)
        for one in observations:
            scenario = _scenario(one)
            if scenario not in means:
                continue
            self.observations += 1
            self._count(scenario, "oracle", self._best(scenario))
            self._count(scenario, "static", STATIC)
            for name, detect in ways.items():
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

    def total(self, counts: Counter[Key], approach: str, operation: str | None = None) -> int:
        """Return a count over all numbers of I/O nodes."""
        return sum(
            n
            for (does, name, _), n in counts.items()
            if name == approach and operation in (None, does)
        )


def approaches(trees: int, seed: int) -> dict[str, Callable[[Observation], str]]:
    """Return models of each kind, trained on 70% of the observations of 32 and 256 KiB."""
    training_samples = samples.of_sizes(samples.shipped(), samples.TRAINED_ON)
    first, _ = training.split(training_samples, seed=seed)
    features = selection.select(training_samples)
    models = {
        kind: training.train(first, kind, features, seed=seed, trees=trees).model
        for kind in training.KINDS
    }

    def teller(kind: training.Kind) -> Callable[[Observation], str]:
        return lambda observation: models[kind].detect(observation).pattern

    return {kind: teller(kind) for kind in models}


def _scenario(one: Sample) -> Scenario:
    return Scenario(
        pattern=one.pattern,
        operation=one.operation,
        request=one.request,
        processes=one.processes,
        io_nodes=one.io_nodes,
    )
