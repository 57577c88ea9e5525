"""A phase that asked for its turn: how long it waited, and how long it has transferred."""

from dataclasses import dataclass


@dataclass(slots=True)
class Asked:
    """The phase under way: since when it waits for its turn, or has it."""

    number: int
    began: float
    asked: float  # when it last began to wait
    bytes: int | None = None  # that it will move, as its program said
    turn: float | None = None
    overdue: bool = False  # it transfers, whoever has the turn
    lent: bool = False  # it has not called for a while, and others have its turn
    waited: float = 0.0  # seconds, in waits that are over
    transferred: float = 0.0  # seconds, in turns that were taken from it

    @property
    def waits(self) -> bool:
        """Whether it waits for its turn."""
        return self.turn is None and not self.lent

    def go(self, now: float) -> None:
        """End the wait, whatever ended it: it counts from here on, once."""
        self.waited += max(now - self.asked, 0.0)
        self.turn = now

    def stop(self, now: float) -> None:
        """Wait again."""
        self.transferred += 0.0 if self.turn is None else now - self.turn
        self.asked, self.turn = now, None

    def lend(self, now: float) -> None:
        """Leave the turn to others until it calls again."""
        self.stop(now)
        self.lent = True

    def ask_again(self, now: float) -> None:
        """Want the turn back that was lent."""
        self.lent, self.asked = False, now

    def over(self, end: float, *, enforced: bool) -> float:
        """End it; return how long it transferred."""
        if self.waits and enforced:  # to its end
            self.go(max(end, self.asked))
        if self.lent:
            return self.transferred
        turn = self.began if self.turn is None else self.turn
        return max(end - turn, 0.0) + self.transferred
