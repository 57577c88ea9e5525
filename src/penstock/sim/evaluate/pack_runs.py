"""Packers side by side, by the metrics of paper packs (Sections 4.3 and 6.2.3)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from penstock import registry
from penstock.campaign.policy_file import PolicyFile, policy_errors
from penstock.config.sections import PackingSection
from penstock.errors import InputError
from penstock.model import Site
from penstock.sim.evaluate import packs
from penstock.sim.evaluate.gains import Metrics
from penstock.sim.workload import Workload

METRICS = Metrics(
    primary="makespan",
    higher_is_better={
        "makespan": False,
        "pack_stretch": False,
        "max_stretch": False,
        "executing": True,
        "delayed": False,
        "idle": False,
        "overrun": False,
    },
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PackingTask:
    """Runs workloads under packers, all with one sharing policy."""

    site: Site
    sharing: str
    packers: Mapping[str, PackingSection]
    files: Mapping[str, PolicyFile] = field(default_factory=dict)

    @property
    def options(self) -> dict[str, Mapping[str, Any]]:
        """The options of each packer."""
        return {name: section.options for name, section in self.packers.items()}

    def figures(self, workload: Workload, policy: str) -> dict[str, Any]:
        """Return the metrics of a packer on a workload."""
        for file in self.files.values():
            file.check()
        sharing = registry.sharing(self.sharing)
        try:
            with policy_errors(policy, self.sharing):
                run = packs.run(workload, self.packers[policy].packer(), sharing, self.site)
        except InputError as error:
            raise InputError(f"{policy}: {error}") from error
        return asdict(packs.measure(run))

    def missing(self, workload: Workload, policies: Iterable[str]) -> dict[str, str]:  # noqa: ARG002
        """Return nothing: all policies were named by the user, and each says what it lacks."""
        return {}

    def light(self, workload: Workload, policies: Sequence[str], workers: int) -> bool:  # noqa: ARG002
        """Return False: policies are Python, which threads do not make faster."""
        return len(policies) < 2
