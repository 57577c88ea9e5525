"""Jobs on several hosts: an agent on each, and one turn for all of them.

Agents whose jobs name the same team, of the same user, are members of one job. Its phase is that of
any of its members: it begins with the first, and ends with the last.
"""

from dataclasses import dataclass, field

from penstock.live.protocol import messages
from penstock.model import JobId


@dataclass(slots=True)
class MultiHostJob:
    """The members of a job; most have one. `id` is that of the first."""

    id: JobId
    members: set[JobId] = field(default_factory=set)
    asked: dict[JobId, int] = field(default_factory=dict)  # who is in a phase, by its own count
    phase: int = 0
    bytes: int = 0
    seconds: float = 0.0
    small: bool = True
    lent: tuple[JobId, int] | None = None  # whose phase lent the turn, by its own count

    def begins(self, member: JobId, number: int) -> bool:
        """A member begins a phase; say whether the team does."""
        first = not self.asked
        self.asked[member] = number
        if first:
            self.phase += 1
            self.bytes, self.seconds, self.small = 0, 0.0, True
        return first

    def lends(self, member: JobId, number: int) -> bool:
        """A member, alone in its phase, lends the turn; say whether it is in that phase."""
        if self.asked != {member: number}:
            return False
        self.asked, self.lent = {}, (member, number)
        return True

    def resumes(self, member: JobId, number: int) -> bool:
        """Say whether a phase that a member begins is the one that lent its turn."""
        lent, self.lent = self.lent, None
        return lent == (member, number)

    def ends(self, member: JobId, told: messages.PhaseEnded) -> messages.PhaseEnded | None:
        """A member ends its phase; return the team's, if that was the last."""
        if self.asked.get(member) != told.phase:
            return None
        del self.asked[member]
        self.bytes += told.bytes
        self.seconds = max(self.seconds, told.seconds)
        self.small &= told.small
        if self.asked:
            return None
        return messages.PhaseEnded(
            phase=self.phase,
            bytes=self.bytes,
            seconds=self.seconds,
            waited=told.waited,
            idle=told.idle,
            small=self.small,
        )


class MultiHostJobs:
    """All teams, by their members and by what they call themselves."""

    def __init__(self) -> None:
        self._of: dict[JobId, MultiHostJob] = {}
        self._named: dict[tuple[str, str], MultiHostJob] = {}
        self.by_id: dict[JobId, MultiHostJob] = {}

    def join(self, member: JobId, begin: messages.BeginJob) -> bool:
        """Take a member in; say whether it is the first of its team."""
        key = (begin.user, begin.team or "")
        team = self._named.get(key) if begin.team else None
        first = team is None
        if team is None:
            team = self.by_id[member] = MultiHostJob(member)
            if begin.team:
                self._named[key] = team
        team.members.add(member)
        self._of[member] = team
        return first

    def leave(self, member: JobId) -> MultiHostJob | None:
        """Let a member go; return its team if it was the last."""
        team = self._of.pop(member)
        team.members.discard(member)
        if team.members:
            return None
        del self.by_id[team.id]
        self._named = {key: named for key, named in self._named.items() if named is not team}
        return team

    def of(self, member: JobId) -> MultiHostJob | None:
        """Return a member's team; None: nobody knows it."""
        return self._of.get(member)
