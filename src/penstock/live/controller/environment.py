"""What surrounds the processes of a deployment: environment, and libraries beside the client's."""

import os
from dataclasses import dataclass
from pathlib import Path

from penstock.live.deployment import emulator
from penstock.live.deployment.emulator import Emulation
from penstock.live.deployment.spec import Deployment
from penstock.live.protocol.state_directory import StateDirectory


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessEnvironment:
    """The environment of I/O nodes and of jobs: of the file system as it is, or an emulated one."""

    emulation: Path | None = None

    @classmethod
    def of(cls, deployment: Deployment, state: StateDirectory) -> "ProcessEnvironment":
        """Make what a deployment's processes share."""
        if deployment.emulate is None:
            return cls()
        (root,) = deployment.roots
        Emulation.parse(deployment.emulate).create(state.emulator, Path(root))
        return cls(emulation=state.emulator)

    @property
    def below(self) -> list[str]:
        """Return the libraries that go below the client library."""
        return [] if self.emulation is None else [str(emulator.target_library())]

    @property
    def above(self) -> list[str]:
        """Return the libraries that go above the client library."""
        return [] if self.emulation is None else [str(emulator.link_library())]

    def io_node(self, number: int) -> dict[str, str]:
        """Return an I/O node's whole environment; it is never its own client."""
        own = os.environ | {"PENSTOCK_DISABLE": "1"}
        if self.emulation is not None:
            others = filter(None, [os.environ.get("LD_PRELOAD", "")])
            own["LD_PRELOAD"] = ":".join([*others, *self.below])
            own |= emulator.environment(self.emulation, io_node=number)
        return own

    def job(self, job: str) -> dict[str, str]:
        """Return what a job's environment has besides."""
        return {} if self.emulation is None else emulator.environment(self.emulation, client=job)
