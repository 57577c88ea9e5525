"""Verdicts on words and on rounded figures.

Where a paper has a word and no figure ("close", "similar", "much better"), any limit would be ours.
So a claim is judged at several limits, and the verdict says at how many it holds.

In the studies of papers io-sets, io-resources and packs one ladder of limits serves all such claims
(`at_limits`, `better_by`). In those of the thesis (detection, tuning, forwarding) and of paper
write-models the limits were chosen for each claim (`over`), with results in sight; the report lists
them with the claim.
"""

from collections.abc import Callable, Iterable, Sequence

from penstock.studies.table import Estimate

LADDER = (0.01, 0.02, 0.05, 0.1, 0.2)
FINE = tuple(limit / 10 for limit in LADDER)
"""The same for Utilization, of which policies move a few per cent."""
AT_ALL = "at all"


def over(limits: Iterable[float], form: str, judge: Callable[[float], bool]) -> dict[str, bool]:
    """Judge a claim with each of several limits, where the paper prints none; ours is first."""
    return {form.format(limit): bool(judge(limit)) for limit in limits}


def at_limits(judge: Callable[[float], bool], limits: Sequence[float] = LADDER) -> dict[str, bool]:
    """Judge a claim at each limit of the ladder, or of another; limits are parts of one."""
    return {f"{100 * limit:g}%": bool(judge(limit)) for limit in limits}


def better_by(least: float) -> dict[str, bool]:
    """Judge "much better" or "very good" by the least gain: above zero, then at each limit."""
    return {AT_ALL: least > 0} | at_limits(lambda limit: least >= limit)


def contains(estimate: Estimate, *figures: float, digits: int = 2) -> bool:
    """Say whether the interval contains a figure of a paper, as rounded, or one between two."""
    rounding: float = 0.5 * 10**-digits
    low, high = min(figures) - rounding, max(figures) + rounding
    return estimate.low <= high and low <= estimate.high
