"""process: all resources, divided among the running jobs by their processes.

As `size`, with processes for compute nodes: paper forwarding, Section 5.4.
"""

from typing import ClassVar

from penstock.errors import InputError
from penstock.model import Job
from penstock.policies.allocation.size import Size


class Process(Size):
    """Counts by the job's part of all processes that run now."""

    needs: ClassVar[frozenset[str]] = frozenset({"processes"})

    def size(self, job: Job) -> int:
        """Return the job's processes."""
        if job.processes is None:
            raise InputError(f"job {job.id!r} has no number of processes; give it, or use size")
        return job.processes
