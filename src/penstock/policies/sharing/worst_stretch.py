"""worst-stretch: one job at a time; the job with the worst stretch so far goes first.

Stretch is age over work done; it grows while a job waits, so `turn` is called again whenever the
resource becomes free. As greedy-yield, but a transfer that has begun is never interrupted.
Paper packs, Section 5.1 (Stretch oriented).
"""

from typing import ClassVar

from penstock.policies.sharing.greedy_yield import GreedyYield


class WorstStretch(GreedyYield):
    """One group, chosen by the lowest progress / age whenever the resource becomes free."""

    preemptive: ClassVar[bool] = False
