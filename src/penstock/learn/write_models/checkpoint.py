"""How often to write a checkpoint: within a budget of time, or against failures.

A checkpoint of C seconds after every t of computation takes C / (t + C) of the run; to keep that
below a part b, t must be at least C (1 - b) / b (paper write-models, II-A1, has 10%). With a mean
time M between failures the waste is least at about sqrt(2 C M) (J. W. Young, CACM 17(9), 1974);
J. T. Daly (FGCS 22(3), 2006, Eq. 37) gives the next terms.
"""

import math
from dataclasses import dataclass

from penstock.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """Computation between two checkpoints, and the cost of the checkpoints."""

    seconds: float
    cost: float
    """Fraction of the run spent on checkpoints."""
    checkpoints: int | None = None
    """Number in the run, if its total computation is known."""


def for_budget(write: float, budget: float, compute: float | None = None) -> Interval:
    """Return the shortest interval that keeps checkpoints within a fraction of the run."""
    if not 0 < budget < 1:
        raise InputError(f"a budget of {budget:g} of the run; give more than 0% and less than 100%")
    return _interval(write, write * (1 - budget) / budget, compute)


def for_failures(write: float, mtbf: float, compute: float | None = None) -> Interval:
    """Return the interval that wastes the least time, by Daly's formula."""
    if not 0 < mtbf < math.inf:
        raise InputError(f"a mean time between failures of {mtbf:g} s; give more than zero")
    part = write / (2 * mtbf)
    if part >= 1:  # a checkpoint takes longer than the machine lasts: Daly's second case
        return _interval(write, mtbf, compute)
    optimum = math.sqrt(2 * write * mtbf) * (1 + math.sqrt(part) / 3 + part / 9) - write
    return _interval(write, optimum, compute)


def _interval(write: float, seconds: float, compute: float | None) -> Interval:
    if not 0 < write < math.inf:
        raise InputError(f"a checkpoint of {write:g} s; give more than zero")
    if compute is not None and not 0 < compute < math.inf:
        raise InputError(f"a computation of {compute:g} s; give more than zero")
    times = 0.0 if compute is None else compute / seconds if seconds else math.inf
    if not (0 < seconds < math.inf and times < math.inf):
        raise InputError(f"the interval would be {seconds:g} s; give other numbers")
    return Interval(
        seconds=seconds,
        cost=write / (seconds + write),
        checkpoints=None if compute is None else math.floor(times),
    )
