"""The turn of the current phase: how long it waited for it, and how long it transferred.

A phase has a turn on each file system that it uses. It waits while it has none of them.
"""

from dataclasses import dataclass, field

from penstock.identities import FileSystemId


@dataclass(slots=True)
class PhaseTurn:
    """The current phase of a job; times are in seconds of the agent's clock."""

    number: int
    began: float
    waiting_since: float
    bytes: int | None = None  # that it will transfer, if the job announced it
    file_systems: set[FileSystemId] = field(default_factory=set)  # that it uses
    turns: set[FileSystemId] = field(default_factory=set)  # where it has its turn
    out_of_turn: set[FileSystemId] = field(default_factory=set)  # where it transfers without one
    requested: dict[FileSystemId, float] = field(default_factory=dict)  # for its turn there
    turn: float | None = None  # when it got its turn; None: it has no turn
    is_lent: bool = False  # it made no call for a while, and other jobs use its turn
    waited: float = 0.0  # in waits that have ended
    transferred: float = 0.0  # in turns that have ended

    @property
    def is_waiting(self) -> bool:
        """Whether it waits for its turn; it needs none before it uses a file system."""
        return self.turn is None and not self.is_lent and bool(self.file_systems)

    @property
    def overdue(self) -> bool:
        """Whether it transfers without a turn."""
        return bool(self.out_of_turn)

    @property
    def open_gates(self) -> set[FileSystemId]:
        """The file systems on which it may transfer."""
        return set() if self.turn is None else self.turns | self.out_of_turn

    def use(self, now: float, file_systems: set[FileSystemId]) -> bool:
        """Add file systems that it uses; tell whether any is new to it."""
        new = file_systems - self.file_systems
        if not self.file_systems and self.turn is None:
            self.waiting_since = now
        self.file_systems |= new
        self.requested |= dict.fromkeys(new, now)
        return bool(new)

    def waits_on(self) -> dict[FileSystemId, float]:
        """Return where it waits although it transfers elsewhere, and since when."""
        if self.turn is None:
            return {}
        open_gates = self.open_gates
        return {each: since for each, since in self.requested.items() if each not in open_gates}

    def start(self, now: float) -> None:
        """End the wait, for whatever reason, and start to transfer."""
        self.waited += max(now - self.waiting_since, 0.0)
        self.turn = now

    def stop(self, now: float) -> None:
        """Lose the turn, and wait again."""
        self.transferred += 0.0 if self.turn is None else now - self.turn
        self.turns.clear()
        self.waiting_since, self.turn = now, None

    def lend(self, now: float) -> None:
        """Leave the turn to other jobs until the next call."""
        self.stop(now)
        self.is_lent = True

    def request_again(self, now: float, file_systems: set[FileSystemId]) -> None:
        """Wait for the turn that was lent, on the file systems that it uses now."""
        self.is_lent, self.waiting_since = False, now
        self.file_systems = file_systems or self.file_systems
        self.requested = dict.fromkeys(self.file_systems, now)

    def end(self, end: float, *, enforced: bool) -> float:
        """End the phase and return for how long it transferred."""
        if self.is_waiting and enforced:  # it waited to its end
            self.start(max(end, self.waiting_since))
        if self.is_lent:
            return self.transferred
        turn = self.began if self.turn is None else self.turn
        return max(end - turn, 0.0) + self.transferred
