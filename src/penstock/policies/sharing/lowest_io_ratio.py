"""lowest-io-ratio: one job at a time; the job with the least I/O for its age goes first.

The ratio is of I/O done, in isolated seconds, to the time since the job started: a job that was
served much waits for one that was not. Paper packs, Section 5.1 (Bandwidth oriented), which leaves
open whether the ratio is of I/O done or of I/O requested; we use I/O done.
"""

from typing import ClassVar

from penstock.model import Request, View
from penstock.policies.sharing.exclusive_fcfs import ExclusiveFcfs


class LowestIoRatio(ExclusiveFcfs):
    """One group, in order of I/O done over age."""

    dynamic: ClassVar[bool] = True
    needs: ClassVar[frozenset[str]] = frozenset({"progress"})

    def turn(self, request: Request, view: View) -> float:
        """Return the job's I/O so far over its age."""
        age = view.age(request.job)
        return view.io_done(request.job) / age if age > 0 else 0.0
