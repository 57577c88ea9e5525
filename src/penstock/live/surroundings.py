"""What surrounds the processes of a deployment: environment, and libraries beside the client's."""

import os
from dataclasses import dataclass, field

from penstock.live.deployment import Deployment
from penstock.live.state import State


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """The environment of I/O nodes and of jobs, on the file system as it is or an emulated one."""

    below: list[str] = field(default_factory=list)
    above: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, deployment: Deployment, state: State) -> "Surroundings":
        """Make what a deployment's processes need."""
        return cls()

    def io_node(self, number: int) -> dict[str, str]:
        """Return an I/O node's whole environment; it is never its own client."""
        kept = {k: v for k, v in os.environ.items() if k not in {"LD_PRELOAD", "PENSTOCK_AGENT"}}
        return kept | {"PENSTOCK_DISABLE": "1"}

    def job(self, job: str) -> dict[str, str]:
        """Return what a job's environment has besides."""
        return {}
