"""The physical term: load over capacity at every stage, and a soft maximum over stages.

    t^p = sum over stages of (load / capacity)^p,  p >= 1

p = 1: one stage after the other; large p: all at once, and the slowest decides. What does not
depend on any load, the latency, is a stage of load 1. A tag (the library that wrote, say) has
capacities of its own, as far from the common ones as samples ask for. Time falls with no load, and
grows with the loads at any scale: that is what lets the term extrapolate.
"""

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from penstock.learn.write_models.arrays import Floats
from penstock.learn.write_models.table import Table

TIE = 0.002
"""How strongly capacities are held to where they began: stages that samples do not tell apart."""


class Term(msgspec.Struct, frozen=True, kw_only=True):
    """A fitted term."""

    power: float
    level: list[float]
    """Of every stage: the logarithm of seconds for a load of one."""
    by_tag: dict[str, list[float]]
    """What a tag adds to that."""

    def levels(self, tags: Sequence[str]) -> Floats:
        """Return the levels of every stage for each tag; the common ones for an unknown tag."""
        none = [0.0] * len(self.level)
        added = np.array([self.by_tag.get(tag, none) for tag in tags], np.float64)
        return np.asarray(np.array(self.level) + added, np.float64)

    def evaluate(self, loads: Floats, tags: Sequence[str]) -> tuple[Floats, Floats]:
        """Return log seconds for rows of log loads, and the part of each stage in them."""
        return soft_maximum(loads + self.levels(tags), self.power)


def soft_maximum(logs: Floats, power: float) -> tuple[Floats, Floats]:
    """Return log((sum of e^(p x))^(1/p)) of rows, and how much each entry has in it."""
    top = logs.max(axis=1, keepdims=True)
    raised = np.exp(power * (logs - top))
    whole = raised.sum(axis=1, keepdims=True)
    return (top + np.log(whole) / power)[:, 0], raised / whole


def fit(samples: Table, *, power: float, apart: float) -> Term:
    """Return the term with the least squares of log errors; `apart` holds tags together."""
    from scipy.optimize import least_squares  # noqa: PLC0415 - slow to import

    loads = samples.loads
    groups = samples.known if len(samples.known) > 1 else []
    stages, target = loads.shape[1], np.log(samples.seconds)
    worth = np.sqrt(samples.weights)
    member = np.array([[tag == one for one in groups] for tag in samples.tags], np.float64)
    member = member.reshape(len(target), len(groups))
    # All stages are given the same part of the time to begin with, so that none is out of sight.
    start = target.mean() - loads.mean(axis=0) - np.log(stages) / power
    held = np.concatenate([np.full(stages, TIE), np.full(stages * len(groups), apart)])

    def spread(found: Floats) -> Floats:
        by_tag = member @ found[stages:].reshape(-1, stages)
        return np.asarray(loads + start + found[:stages] + by_tag, np.float64)

    def residuals(found: Floats) -> Floats:
        told, _ = soft_maximum(spread(found), power)
        return np.concatenate([worth * (told - target), held * found])

    def slopes(found: Floats) -> Floats:
        _, parts = soft_maximum(spread(found), power)
        parts = worth[:, None] * parts
        by_tag = (member[:, :, None] * parts[:, None, :]).reshape(len(parts), -1)
        return np.vstack([np.hstack([parts, by_tag]), np.diag(held)])

    found = least_squares(
        residuals, np.zeros(len(held)), slopes, loss="soft_l1", f_scale=0.3, max_nfev=100, ftol=1e-6
    ).x
    added: Mapping[str, Floats] = dict(zip(groups, found[stages:].reshape(-1, stages), strict=True))
    return Term(
        power=power,
        level=(start + found[:stages]).tolist(),
        by_tag={tag: values.tolist() for tag, values in added.items()},
    )
