"""Jobs on several hosts: one agent on each, and one turn for all of them.

Agents whose jobs name the same team, and have the same user, are members of one job. A phase of
the job begins with the first member's phase, and ends with the last; it transfers from the first
member's first call to the last one's last.
"""

import math
from dataclasses import dataclass, field, replace

from penstock.identities import FIRST_FILE_SYSTEM, FileSystemId
from penstock.live.controller.turn_state import PhaseReport
from penstock.live.protocol import messages
from penstock.model import JobId


@dataclass(slots=True)
class MultiHostJob:
    """The members of a job, mostly one. `id` is that of the first."""

    id: JobId
    members: set[JobId] = field(default_factory=set)
    in_phase: dict[JobId, int] = field(default_factory=dict)  # members' own numbers of the phase
    uses: dict[JobId, frozenset[FileSystemId]] = field(default_factory=dict)
    """The file systems that each member uses, or used, in its last phase."""
    phase: int = 0
    bytes: int = 0
    transfers_since: float = math.inf
    last_call: float = -math.inf
    small: bool = True
    yielded: tuple[JobId, int] | None = None  # the member, and its number of the phase

    @property
    def file_systems(self) -> tuple[FileSystemId, ...]:
        """The file systems that its phase uses."""
        return tuple(sorted(set[FileSystemId]().union(*map(self.uses.__getitem__, self.in_phase))))

    def begin_phase(
        self,
        member: JobId,
        number: int,
        file_systems: frozenset[FileSystemId] = frozenset({FIRST_FILE_SYSTEM}),
    ) -> bool:
        """Begin a member's phase; tell whether the job's phase begins with it."""
        first = not self.in_phase
        goes_on = self.in_phase.get(member) == number
        self.uses[member] = file_systems | (self.uses[member] if goes_on else frozenset())
        self.in_phase[member] = number
        if first:
            self.phase += 1
            self.bytes, self.small = 0, True
            self.transfers_since, self.last_call = math.inf, -math.inf
        return first

    def yield_turn(self, member: JobId, number: int) -> bool:
        """Yield the turn, if this member alone is in a phase and it is this one."""
        if self.in_phase != {member: number}:
            return False
        self.in_phase, self.yielded = {}, (member, number)
        return True

    def resumes(self, member: JobId, number: int) -> bool:
        """Tell whether a phase that a member begins is the one that yielded its turn."""
        yielded, self.yielded = self.yielded, None
        return yielded == (member, number)

    def end_phase(self, member: JobId, report: PhaseReport, now: float) -> PhaseReport | None:
        """End a member's phase; return the report of the job's phase, if that was the last."""
        if self.in_phase.get(member) != report.number:
            return None
        del self.in_phase[member]
        self.bytes += report.bytes
        self.small &= report.small
        alone = not self.in_phase and self.last_call == -math.inf
        if report.seconds > 0:  # it made calls; a member that is lost says nothing
            last_call = now - report.idle
            self.transfers_since = min(self.transfers_since, last_call - report.seconds)
            self.last_call = max(self.last_call, last_call)
        if self.in_phase:
            return None
        whole = replace(report, number=self.phase, bytes=self.bytes, small=self.small)
        if alone or self.last_call == -math.inf:  # as the only member reports it, to the last digit
            return whole
        return replace(
            whole,
            seconds=self.last_call - self.transfers_since,
            idle=max(now - self.last_call, 0.0),
        )


class MultiHostJobs:
    """All jobs, by their members."""

    def __init__(self) -> None:
        self._of_member: dict[JobId, MultiHostJob] = {}
        self._of_team: dict[tuple[str, str], MultiHostJob] = {}
        self.by_id: dict[JobId, MultiHostJob] = {}

    def join(self, member: JobId, begin: messages.BeginJob) -> bool:
        """Add a member; tell whether it is the first of its job."""
        key = (begin.user, begin.team or "")
        job = self._of_team.get(key) if begin.team else None
        first = job is None
        if job is None:
            job = self.by_id[member] = MultiHostJob(member)
            if begin.team:
                self._of_team[key] = job
        job.members.add(member)
        self._of_member[member] = job
        return first

    def leave(self, member: JobId) -> MultiHostJob | None:
        """Remove a member; return its job if it was the last."""
        job = self._of_member.pop(member)
        job.members.discard(member)
        job.uses.pop(member, None)
        if job.members:
            return None
        del self.by_id[job.id]
        self._of_team = {key: other for key, other in self._of_team.items() if other is not job}
        return job

    def find(self, member: JobId) -> MultiHostJob | None:
        """Return a member's job, if it has one."""
        return self._of_member.get(member)
