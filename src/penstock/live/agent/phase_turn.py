"""The turn of the current phase: how long it waited for it, and how long it transferred."""

from dataclasses import dataclass


@dataclass(slots=True)
class PhaseTurn:
    """The current phase of a job; times are in seconds of the agent's clock."""

    number: int
    began: float
    waiting_since: float
    bytes: int | None = None  # that it will transfer, if the job announced it
    turn: float | None = None  # when it got its turn; None: it has no turn
    overdue: bool = False  # it transfers without a turn
    is_lent: bool = False  # it made no call for a while, and other jobs use its turn
    waited: float = 0.0  # in waits that have ended
    transferred: float = 0.0  # in turns that have ended

    @property
    def is_waiting(self) -> bool:
        """Whether it waits for its turn."""
        return self.turn is None and not self.is_lent

    def start(self, now: float) -> None:
        """End the wait, for whatever reason, and start to transfer."""
        self.waited += max(now - self.waiting_since, 0.0)
        self.turn = now

    def stop(self, now: float) -> None:
        """Lose the turn, and wait again."""
        self.transferred += 0.0 if self.turn is None else now - self.turn
        self.waiting_since, self.turn = now, None

    def lend(self, now: float) -> None:
        """Leave the turn to other jobs until the next call."""
        self.stop(now)
        self.is_lent = True

    def request_again(self, now: float) -> None:
        """Wait for the turn that was lent."""
        self.is_lent, self.waiting_since = False, now

    def end(self, end: float, *, enforced: bool) -> float:
        """End the phase and return for how long it transferred."""
        if self.is_waiting and enforced:  # it waited to its end
            self.start(max(end, self.waiting_since))
        if self.is_lent:
            return self.transferred
        turn = self.began if self.turn is None else self.turn
        return max(end - turn, 0.0) + self.transferred
