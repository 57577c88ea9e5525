"""The environment of a deployment's processes, and the libraries to preload beside the client's."""

import os
from dataclasses import dataclass
from pathlib import Path

from penstock.live.deployment import emulator
from penstock.live.deployment.emulator import Emulation
from penstock.live.deployment.spec import Deployment
from penstock.live.protocol.state_directory import StateDirectory


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessEnvironment:
    """The environment of I/O nodes and jobs, on a real file system or an emulated one."""

    emulation: Path | None = None

    @classmethod
    def prepare(cls, deployment: Deployment, state: StateDirectory) -> "ProcessEnvironment":
        """Create the emulation, if the deployment has one."""
        if deployment.emulate is None:
            return cls()
        (root,) = deployment.roots
        Emulation.parse(deployment.emulate).create(state.emulator, Path(root))
        return cls(emulation=state.emulator)

    @property
    def below(self) -> list[str]:
        """Libraries to load below the client library."""
        return [] if self.emulation is None else [str(emulator.target_library())]

    @property
    def above(self) -> list[str]:
        """Libraries to load above the client library."""
        return [] if self.emulation is None else [str(emulator.link_library())]

    def io_node(self, number: int) -> dict[str, str]:
        """Return an I/O node's whole environment; it does not load the client library."""
        environment = os.environ | {"PENSTOCK_DISABLE": "1"}
        if self.emulation is not None:
            others = filter(None, [os.environ.get("LD_PRELOAD", "")])
            environment["LD_PRELOAD"] = ":".join([*others, *self.below])
            environment |= emulator.environment(self.emulation, io_node=number)
        return environment

    def job(self, job: str) -> dict[str, str]:
        """Return the variables to add to a job's environment."""
        return {} if self.emulation is None else emulator.environment(self.emulation, client=job)
