"""Which phases move data beside others: they show less than their jobs can do.

A phase that begins or ends costs the same however many others there are: thousands of jobs may end
at once.
"""

from collections import defaultdict
from collections.abc import Hashable
from typing import Literal

from penstock.live.controller.turn_state import Phase
from penstock.model import JobId

_Place = tuple[Literal["alone", "apart"], Hashable]
"""A file system or an I/O node, and what a phase is without others there."""


class Overlap:
    """The phases that move data, by the file systems and I/O nodes that they use."""

    def __init__(self) -> None:
        self._phases: dict[JobId, Phase] = {}
        self._places: dict[JobId, list[_Place]] = {}
        self._jobs_on: defaultdict[_Place, dict[JobId, None]] = defaultdict(dict)

    def leave(self, job: JobId) -> None:
        """A job moves no data from now on."""
        self._phases.pop(job, None)
        for place in self._places.pop(job, ()):
            del self._jobs_on[place][job]
            if not self._jobs_on[place]:
                del self._jobs_on[place]

    def enter(self, job: JobId, phase: Phase) -> None:
        """A job moves data from now on; note it, and whom it joins, as not alone there."""
        self.leave(job)
        self._phases[job] = phase
        places: list[_Place] = [("alone", each) for each in phase.file_systems]
        places += [("apart", each) for each in phase.io_nodes]
        self._places[job] = places
        for place in places:
            jobs = self._jobs_on[place]
            if len(jobs) == 1:  # where there are more, they are noted already
                setattr(self._phases[next(iter(jobs))], place[0], False)
            jobs[job] = None
            if len(jobs) > 1:
                setattr(phase, place[0], False)
