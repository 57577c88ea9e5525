"""Synthetic rewards for tuners, where none were measured: never present them as measured.

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
    """Return rewards in bytes a second by scenario and value.

    A scenario's worst value is up to `widest` behind its best; its means fall from one end of the
    values to the other, on both sides of a best one, or lie at random; every fourth scenario has
    two values within 1% of the best. Rewards are normal around the mean, and never negative.
    """
    chance = np.random.default_rng([seed, scenarios])
    made: Rewards = {}
    for number in range(scenarios):
        gaps = widest * chance.random() * _shape(number % 3, len(values), chance)
        if number % 4 == 3:
            near = np.argsort(gaps)[1 : min(3, len(values))]
            gaps[near] = 0.01 * chance.random(len(near))
        level = 10 ** chance.uniform(8, 9.5)
        deviation = chance.uniform(*noise)
        made[f"synthetic-{number:03d}"] = {
            value: np.maximum(level * (1 - gap) * (1 + deviation * drawn), 0.0)
            for value, gap, drawn in zip(
                values, gaps, chance.normal(size=(len(values), samples)), strict=True
            )
        }
    return made


def turned(before: Rewards) -> Rewards:
    """Return a world in which the best values are the worst: each scenario's ranks are reversed."""
    after: Rewards = {}
    for name, recorded in before.items():
        ranked = sorted(recorded, key=lambda value: float(recorded[value].mean()))
        swapped = dict(zip(ranked, reversed(ranked), strict=True))
        after[name] = {value: recorded[swapped[value]] for value in recorded}
    return after


def overtaken(before: Rewards, *, by: float = 0.3) -> Rewards:
    """Return a world in which the worst value has become better than the best, which stayed.

    Nothing that a tuner does then looks wrong: it must try what it has no reason to try.
    """
    after: Rewards = {}
    for name, recorded in before.items():
        means = {value: float(series.mean()) for value, series in recorded.items()}
        worst = min(means, key=lambda value: means[value])
        factor = (1 + by) * max(means.values()) / means[worst]
        after[name] = recorded | {worst: recorded[worst] * factor}
    return after


def _shape(kind: int, k: int, chance: np.random.Generator) -> NDArray[np.float64]:
    """Return how far each value is behind the best, as a share of the worst."""
    if kind == 0:
        slope = np.linspace(0.0, 1.0, k)
        return slope if chance.random() < 0.5 else slope[::-1].copy()
    if kind == 1:
        gaps = np.abs(np.arange(k) - chance.integers(k)).astype(np.float64)
    else:
        gaps = chance.random(k)
        gaps -= gaps.min()
    shares: NDArray[np.float64] = gaps / max(float(gaps.max()), 1e-9)
    return shares
