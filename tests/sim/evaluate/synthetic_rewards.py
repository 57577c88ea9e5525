"""Synthetic rewards for tuners; never present them as measured.

Scenarios differ in how far the values are apart, in how their means lie, and in noise.
"""

import numpy as np
from numpy.typing import NDArray

from penstock.model import Value

WINDOWS: tuple[Value, ...] = (125e-6, 250e-6, 500e-6, 1e-3, 2e-3, 4e-3, 8e-3)
"""Seconds: the windows of TWINS in thesis forwarding, 4.2.2."""

Rewards = dict[str, dict[Value, NDArray[np.float64]]]


def rewards(
    scenarios: int = 108,
    *,
    values: tuple[Value, ...] = WINDOWS,
    samples: int = 120,
    widest: float = 0.5,
    noise: tuple[float, float] = (0.02, 0.15),
    seed: int = 0,
) -> Rewards:
    """Return rewards in bytes per second by scenario and value.

    A scenario's worst value is up to `widest` behind its best; its means fall from one end of the
    values to the other, on both sides of a best one, or lie at random; every fourth scenario has
    two values within 1% of the best. Rewards are normal around the mean, and never negative.
    """
    random = np.random.default_rng([seed, scenarios])
    result: Rewards = {}
    for number in range(scenarios):
        gaps = widest * random.random() * _shape(number % 3, len(values), random)
        if number % 4 == 3:
            near = np.argsort(gaps)[1 : min(3, len(values))]
            gaps[near] = 0.01 * random.random(len(near))
        level = 10 ** random.uniform(8, 9.5)
        deviation = random.uniform(*noise)
        result[f"synthetic-{number:03d}"] = {
            value: np.maximum(level * (1 - gap) * (1 + deviation * x), 0.0)
            for value, gap, x in zip(
                values, gaps, random.normal(size=(len(values), samples)), strict=True
            )
        }
    return result


def reverse_ranks(before: Rewards) -> Rewards:
    """Reverse the ranks of each scenario: the best value becomes the worst."""
    after: Rewards = {}
    for name, recorded in before.items():
        ranked = sorted(recorded, key=lambda value: float(recorded[value].mean()))
        swapped = dict(zip(ranked, reversed(ranked), strict=True))
        after[name] = {value: recorded[swapped[value]] for value in recorded}
    return after


def improve_worst(before: Rewards, *, by: float = 0.3) -> Rewards:
    """Make the worst value better than the best, whose rewards do not change.

    A tuner gets no sign of it: it must try a value that it has no reason to try.
    """
    after: Rewards = {}
    for name, recorded in before.items():
        means = {value: float(series.mean()) for value, series in recorded.items()}
        worst = min(means, key=lambda value: means[value])
        factor = (1 + by) * max(means.values()) / means[worst]
        after[name] = recorded | {worst: recorded[worst] * factor}
    return after


def _shape(kind: int, k: int, random: np.random.Generator) -> NDArray[np.float64]:
    """Return how far each value is behind the best, as a share of the worst."""
    if kind == 0:
        slope = np.linspace(0.0, 1.0, k)
        return slope if random.random() < 0.5 else slope[::-1].copy()
    if kind == 1:
        gaps = np.abs(np.arange(k) - random.integers(k)).astype(np.float64)
    else:
        gaps = random.random(k)
        gaps -= gaps.min()
    shares: NDArray[np.float64] = gaps / max(float(gaps.max()), 1e-9)
    return shares
