"""The fluid model of a shared resource in Python: the twin of native/engine/resource.hpp.

Every arithmetic expression stands there in the same order, so that reference and engine agree to
the last bit. Sums of weights and caps are exact (math.fsum), as they are there.
"""

import math
from dataclasses import dataclass, field


@dataclass(slots=True, eq=False)
class Transfer:
    """One job's part of an I/O phase on one resource."""

    job: int
    remaining: float
    weight: float = 1.0
    max_share: float = 1.0
    finish: float = 0.0  # virtual while sharing, real while capped
    state: str = "waiting"
    wants_cap: bool = False
    segment: tuple[float, float] = (0.0, 0.0)  # since when, at which share

    @property
    def rank(self) -> tuple[float, int]:
        """The level at which the cap binds; ties by job."""
        return self.max_share / self.weight, self.job


@dataclass(slots=True)
class Resource:
    """The fluid model of one resource; see native/engine/resource.hpp."""

    index: int
    capacity: tuple[float, ...]
    timeline: list[tuple[int, int, float, float, float]]
    transfers: dict[int, Transfer] = field(default_factory=dict)
    clock: float = 0.0
    updated: float = 0.0
    level: float = 1.0

    def in_state(self, state: str) -> list[Transfer]:
        """Return the transfers in a state."""
        return [x for x in self.transfers.values() if x.state == state]

    def weight(self, transfers: list[Transfer] | None = None) -> float:
        """Return the exact sum of weights, by default of the transfers that share."""
        return math.fsum(
            x.weight for x in (self.in_state("sharing") if transfers is None else transfers)
        )

    def clock_at(self, now: float) -> float:
        """Return the virtual clock, which runs at level / (sum of weights)."""
        passed = now - self.updated
        return self.clock + passed * self.level / self.weight() if self.in_state("sharing") else 0.0

    def remaining(self, x: Transfer, now: float) -> float:
        """Return the isolated seconds that a transfer still needs."""
        if x.state == "capped":
            return max(0.0, x.finish - now) * x.max_share
        if x.state == "sharing":
            return max(0.0, x.finish - self.clock_at(now)) * x.weight
        return x.remaining

    def advance(self, now: float) -> None:
        """Advance the clock to now, before transfers are added or removed."""
        self.clock, self.updated = self.clock_at(now), now

    def share(self, x: Transfer) -> None:
        """Let a transfer run in virtual time; the clock restarts if no other does."""
        if not self.in_state("sharing"):
            self.clock = 0.0
        x.state, x.finish = "sharing", self.clock + x.remaining / x.weight

    def next_end(self) -> tuple[float, int, int]:
        """Return when the next transfer ends, of which job, and this resource."""
        ends = [(math.inf, 0, self.index)]
        first = min(self.in_state("sharing"), key=lambda x: (x.finish, x.job), default=None)
        if first is not None:
            left = max(0.0, first.finish - self.clock)
            ends.append((self.updated + left * self.weight() / self.level, first.job, self.index))
        first = min(self.in_state("capped"), key=lambda x: (x.finish, x.job), default=None)
        if first is not None:
            ends.append((max(first.finish, self.updated), first.job, self.index))
        return min(ends)

    def admit(self, x: Transfer) -> None:
        """Admit a waiting transfer."""
        self.share(x)
        x.wants_cap, x.segment = False, (self.updated, 0.0)

    def hold(self, x: Transfer) -> None:
        """Preempt a transfer; it keeps what it has done."""
        x.remaining = self.remaining(x, self.updated)
        self.close_segment(x)
        x.state = "waiting"

    def finish(self, x: Transfer, now: float) -> None:
        """End the transfer that `next_end` announced."""
        self.advance(now)
        if x.state == "sharing":
            self.clock = x.finish
        self.close_segment(x)
        del self.transfers[x.job]

    def close_segment(self, x: Transfer) -> None:
        """Write the stretch of constant share that ends now to the timeline."""
        since, share = x.segment
        if share and self.updated > since:
            self.timeline.append((x.job, self.index, since, self.updated, share))

    def settle(self) -> None:
        """Compute caps and shares after the changes of an event."""
        active = self.in_state("sharing") + self.in_state("capped")
        if not active:
            return
        self.fill(self.capacity[min(len(active), len(self.capacity)) - 1], active)
        for x in active:
            fluid = x.state == "sharing"
            share = x.weight * self.level / self.weight() if fluid else x.max_share
            if share != x.segment[1]:
                self.close_segment(x)
                x.segment = (self.updated, share)

    def fill(self, capacity: float, active: list[Transfer]) -> None:
        """Water-filling: a transfer is capped when its cap is below its part of the level."""

        def rest(capped: list[Transfer]) -> float:
            return math.fsum([capacity, *(-x.max_share for x in capped)])

        capped = sorted((x for x in active if x.wants_cap), key=lambda x: x.rank)
        others = sorted((x for x in active if not x.wants_cap), key=lambda x: x.rank)
        while capped:
            *lower, x = capped
            if x.max_share / x.weight < rest(lower) / self.weight([*others, x]):
                break
            capped, others = lower, sorted([*others, x], key=lambda x: x.rank)
        while others and others[0].rank[0] < rest(capped) / self.weight(others):
            capped.append(others.pop(0))
        for x in active:
            x.wants_cap = x in capped
            if x.wants_cap and x.state == "sharing":
                left = max(0.0, x.finish - self.clock) * x.weight
                x.state, x.finish = "capped", self.updated + left / x.max_share
        for x in active:
            if not x.wants_cap and x.state == "capped":
                x.remaining = max(0.0, x.finish - self.updated) * x.max_share
                self.share(x)
        self.level = rest(capped)
