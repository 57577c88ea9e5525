"""A phase that asked for its turn: how long it waited, and how long it has transferred."""

from dataclasses import dataclass


@dataclass(slots=True)
class Asked:
    """The phase under way: since when it waits for its turn, or has it."""

    number: int
    began: float
    asked: float  # when it last began to wait
    turn: float | None = None
    overdue: bool = False  # it transfers, whoever has the turn
    waited: float = 0.0  # seconds, in waits that are over
    transferred: float = 0.0  # seconds, in turns that were taken from it

    def go(self, now: float) -> None:
        """End the wait, whatever ended it: it counts from here on, once."""
        self.waited += max(now - self.asked, 0.0)
        self.turn = now

    def stop(self, now: float) -> None:
        """Wait again."""
        self.transferred += 0.0 if self.turn is None else now - self.turn
        self.asked, self.turn = now, None
