"""best-next-event: the division of the bandwidth that leaves the best yields at the next event.

The next event is the end of a transfer. It can be as soon as one of them could end alone, and no
later than all could have ended. For every transfer, and each of these times, suppose that it ends
then, that no other ends sooner, and that the rest of the bandwidth is divided so that the lowest
yield (work done over age) is as high as can be, then the second lowest, and so on. Of all these,
the division whose yields are lexicographically largest, lowest first. Chosen again at every event.
Benoit, Herault, Perotin, Robert and Vivien, "Revisiting I/O bandwidth-sharing strategies for HPC
applications", JPDC 2024 (BestNextEvent); the authors also look for better times between these.

Options: `horizon`, the time at which yields count in the end, in seconds of the host's clock: no
event is later, and it is one by itself. `hedge` and `unknown`: as in greedy-com.
"""

import math
from collections.abc import Sequence

from penstock.errors import InputError
from penstock.policies._support.division import Division, PhaseAhead

DIGITS = 9
"""Decimals of yields that are compared: rounding errors decide nothing."""


class BestNextEvent(Division):
    """The shares whose yields at the next event are lexicographically largest."""

    def __init__(
        self, *, horizon: float = math.inf, hedge: float = 0.2, unknown: float = 100.0
    ) -> None:
        super().__init__(hedge=hedge, unknown=unknown)
        if not horizon > 0:
            raise InputError(f"best-next-event: horizon is {horizon:g}; give seconds above 0")
        self.horizon = horizon

    def divide(self, phases: Sequence[PhaseAhead], now: float) -> Sequence[float]:
        """Return the shares whose yields at the next event are lexicographically largest."""
        if len(phases) == 1:
            return [phases[0].limit]
        end = self.horizon - now if self.horizon > now else math.inf
        times = {*(p.left for p in phases), sum(p.left * p.limit for p in phases), end}
        best, chosen = [-1.0], [0.0]
        for seconds in sorted(time for time in times if time <= end and time < math.inf):
            event = _NextEvent(phases, seconds)
            if event.lowest(event.level(None)) < best[0]:
                continue  # whatever ends then
            ending = [k for k, p in enumerate(phases) if p.left <= seconds]
            for k in [*ending, None] if seconds == end else ending:
                level = event.level(k)
                if event.lowest(level) < best[0]:
                    continue
                shares = event.shares(level, k)
                yields = event.yields(shares)
                if yields > best:
                    best, chosen = yields, shares
        return chosen


class _NextEvent:
    """The next event, `seconds` from now: until then no transfer ends, and one may end then."""

    def __init__(self, phases: Sequence[PhaseAhead], seconds: float) -> None:
        # A transfer takes no more than its limit, and no more than lets it end now.
        self._most = [p.limit * min(1.0, p.left / seconds) for p in phases]
        # A yield is `low` without a share, `high` with the most, and linear in between.
        self._low = [p.yield_after(seconds) for p in phases]
        self._high = [p.yield_after(seconds, m) for p, m in zip(phases, self._most, strict=True)]
        self._slope = [p.limit * (p.age + seconds) / seconds for p in phases]
        self._lowest_high = min(self._high)
        self._bends = sorted(
            [(low, self._slope[k], k) for k, low in enumerate(self._low)]
            + [(high, -self._slope[k], k) for k, high in enumerate(self._high)]
        )

    def level(self, ends: int | None) -> float:
        """Return the yield up to which the lowest can be lifted, if the transfer `ends` does."""
        bandwidth = 1.0 if ends is None else 1.0 - self._most[ends]
        level, rate = -math.inf, 0.0
        for bend, change, k in self._bends:
            if k == ends:
                continue
            if rate > 0:
                step = (bend - level) * rate
                if step >= bandwidth:
                    return level + bandwidth / rate
                bandwidth -= step
            level, rate = bend, rate + change
        return level

    def lowest(self, level: float) -> float:
        """Return the lowest yield at a level: no transfer goes beyond its own highest."""
        return round(min(level, self._lowest_high), DIGITS)

    def shares(self, level: float, ends: int | None) -> list[float]:
        """Return the shares that lift all yields to a level, as far as they can be."""
        shares = [
            min(max((level - low) * slope, 0.0), most)
            for low, slope, most in zip(self._low, self._slope, self._most, strict=True)
        ]
        if ends is not None:
            shares[ends] = self._most[ends]
        return shares

    def yields(self, shares: Sequence[float]) -> list[float]:
        """Return the yields with these shares, lowest first."""
        each = zip(self._low, shares, self._slope, strict=True)
        return sorted(round(low + share / slope, DIGITS) for low, share, slope in each)
