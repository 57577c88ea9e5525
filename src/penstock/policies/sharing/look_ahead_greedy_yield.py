"""look-ahead-greedy-yield: greedy-yield that first looks what its choice will have done.

greedy-yield serves the job with the lowest yield (work done over age), however long that takes; the
others' yields fall meanwhile. This one tries every job that is in I/O as the first to be served,
the others after it by increasing yield, each up to its own bandwidth until all is used up. It goes
on to the next end of a transfer, and takes the job with which the lowest yield is highest then.
Chosen again at every event. Benoit, Herault, Perotin, Robert and Vivien, "Revisiting I/O
bandwidth-sharing strategies for HPC applications", JPDC 2024 (LookAheadGreedyYield).

Options `hedge` and `unknown`: as in greedy-com, for lengths that are estimates.
"""

from collections.abc import Sequence

from penstock.policies._support.division import Division, PhaseAhead, in_order


class LookAheadGreedyYield(Division):
    """Whoever is served first leaves the highest lowest yield at the next end of a transfer."""

    def divide(self, phases: Sequence[PhaseAhead], now: float) -> Sequence[float]:  # noqa: ARG002
        """Return the shares with which the lowest yield is highest at the next end."""
        by_yield = sorted(range(len(phases)), key=lambda k: phases[k].yield_after(0.0))
        best, chosen = -1.0, in_order(phases, by_yield)
        for first in by_yield:
            shares = in_order(phases, [first, *(k for k in by_yield if k != first)])
            both = list(zip(phases, shares, strict=True))
            soon = min(p.left * p.limit / share for p, share in both if share > 0)
            lowest = min(p.yield_after(soon, share) for p, share in both)
            if lowest > best:  # if equal, the one with the lower yield now
                best, chosen = lowest, shares
        return chosen
