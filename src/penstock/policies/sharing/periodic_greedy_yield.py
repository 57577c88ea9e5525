"""periodic-greedy-yield: greedy-yield, chosen again also every period.

greedy-yield changes its mind only when a phase begins or ends; between two events a job that waits
falls ever further behind. This one also looks every `period` seconds. Benoit, Herault, Perotin,
Robert and Vivien, "Revisiting I/O bandwidth-sharing strategies for HPC applications", JPDC 2024
(PeriodicGreedyYield).

Option `period`: seconds between two choices.
"""

from penstock.errors import InputError
from penstock.model import Event, View
from penstock.policies.sharing.greedy_yield import GreedyYield


class PeriodicGreedyYield(GreedyYield):
    """One group, re-chosen at every event and every period by the lowest progress / age."""

    def __init__(self, *, period: float = 10.0) -> None:
        if not 0 < period < float("inf"):
            raise InputError(f"periodic-greedy-yield: period is {period:g}; give seconds above 0")
        self.period = period
        self._next_choice = 0.0

    def observe(self, event: Event, view: View) -> float | None:  # noqa: ARG002
        """Ask to be woken a period from now, unless a wake is still to come."""
        if view.now < self._next_choice:
            return None
        self._next_choice = view.now + self.period
        return self._next_choice
