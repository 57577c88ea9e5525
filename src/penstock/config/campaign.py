"""The section [campaign]: where `penstock compare` and `reproduce` run their simulations."""

from typing import Annotated

from msgspec import Meta

from penstock import units
from penstock.config.section import Section, quantity

LOCAL, SLURM = "local", "slurm"
LARGEST = 10**5
"""The most Slurm jobs or cores: a larger number is a typing error."""


class CampaignSection(Section, frozen=True, kw_only=True):
    """Where campaigns run. All keys but `on` and `wait` concern workers that Slurm starts."""

    on: Annotated[
        str,
        Meta(
            description="where to run: 'local' (this host's cores), 'slurm', or a Dask scheduler "
            "(tcp://HOST:PORT, or its scheduler file)",
            extra={"metavar": "WHERE"},
        ),
    ] = LOCAL
    wait: Annotated[
        str | float,
        Meta(description="how long to wait for a first or another worker, as '10 min'"),
    ] = "10 min"
    jobs: Annotated[
        int, Meta(description="the number of Slurm jobs to submit, at least 1", ge=1, le=LARGEST)
    ] = 2
    cores: Annotated[
        int,
        Meta(
            description="cores per Slurm job; each core runs one simulation at a time",
            ge=1,
            le=LARGEST,
        ),
    ] = 1
    memory: Annotated[str | float, Meta(description="memory per Slurm job, as '4 GiB'")] = "4 GiB"
    walltime: Annotated[
        str | float, Meta(description="the time limit of each Slurm job, as '1 h'")
    ] = "1 h"
    partition: Annotated[
        str | None, Meta(description="the Slurm partition; if unset, Slurm's default")
    ] = None
    account: Annotated[
        str | None, Meta(description="the Slurm account to charge; if unset, your default")
    ] = None
    sbatch: Annotated[
        tuple[str, ...], Meta(description="a list of further sbatch options: ['--qos=long']")
    ] = ()
    setup: Annotated[
        tuple[str, ...],
        Meta(description="a list of shell lines to run before a worker: ['module load python']"),
    ] = ()
    python: Annotated[
        str | None,
        Meta(description="the workers' Python; if unset, the one that runs penstock"),
    ] = None
    interface: Annotated[
        str | None,
        Meta(description="the network interface by which workers reach this host, as 'ib0'"),
    ] = None
    directory: Annotated[
        str,
        Meta(description="the directory for workers' logs and keys; all nodes must see it"),
    ] = "~/.cache/penstock/campaigns"

    def check(self) -> None:
        """Raise InputError for a time or size that is impossible."""
        self.wait_seconds()
        self.walltime_seconds()
        self.memory_bytes()

    def wait_seconds(self) -> float:
        """Return the seconds without a worker after which a campaign fails."""
        return quantity("campaign.wait", self.wait, units.seconds)

    def walltime_seconds(self) -> float:
        """Return the time limit of a Slurm job."""
        limits = (60.0, float("inf"))
        return quantity("campaign.walltime", self.walltime, units.seconds, limits, "1 min or more")

    def memory_bytes(self) -> float:
        """Return the memory of a Slurm job."""
        limits = (float(64 << 20), float("inf"))
        return quantity("campaign.memory", self.memory, units.volume, limits, "64 MiB or more")
