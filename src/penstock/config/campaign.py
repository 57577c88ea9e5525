"""The section [campaign]: where the cells of `penstock compare` and `penstock reproduce` run."""

from collections.abc import Callable
from typing import Annotated

import msgspec
from msgspec import Meta

from penstock import units
from penstock.errors import InputError

LOCAL, SLURM = "local", "slurm"
LARGEST = 10**5
"""More jobs or cores than this are a slip of the finger."""


class CampaignSection(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="kebab"
):
    """Where campaigns run; all keys but `on` and `wait` are of workers that Slurm starts."""

    on: Annotated[
        str,
        Meta(
            description="local, slurm, or a Dask scheduler: tcp://HOST:PORT, or its scheduler file"
        ),
    ] = LOCAL
    wait: Annotated[
        str | float, Meta(description="how long a campaign goes on without a single worker")
    ] = "10 min"
    jobs: Annotated[int, Meta(description="Slurm jobs to submit, at least 1", ge=1, le=LARGEST)] = 2
    cores: Annotated[
        int, Meta(description="cores of a Slurm job, each runs a cell", ge=1, le=LARGEST)
    ] = 1
    memory: Annotated[str | float, Meta(description="memory of a Slurm job, as '4 GiB'")] = "4 GiB"
    walltime: Annotated[str | float, Meta(description="time limit of a Slurm job, as '1 h'")] = (
        "1 h"
    )
    partition: Annotated[
        str | None, Meta(description="Slurm's partition; not set: the default one")
    ] = None
    account: Annotated[
        str | None, Meta(description="whom Slurm charges; not set: your default")
    ] = None
    sbatch: Annotated[
        tuple[str, ...], Meta(description="a list of further options of sbatch: ['--qos=long']")
    ] = ()
    setup: Annotated[
        tuple[str, ...],
        Meta(description="a list of shell lines before a worker: ['module load python']"),
    ] = ()
    python: Annotated[
        str | None, Meta(description="the workers' Python; not set: the one that runs penstock")
    ] = None
    interface: Annotated[
        str | None, Meta(description="the network that workers reach this host by, as 'ib0'")
    ] = None
    directory: Annotated[
        str, Meta(description="where workers' logs and keys go; all nodes must see it")
    ] = "~/.cache/penstock/campaigns"

    def waits(self) -> float:
        """Return the seconds without a worker after which a campaign fails."""
        return self._positive("wait", units.seconds)

    def limit(self) -> float:
        """Return the seconds that a Slurm job may take."""
        return self._positive("walltime", units.seconds, least=60.0)

    def bytes(self) -> float:
        """Return the memory of a Slurm job."""
        return self._positive("memory", units.volume, least=float(64 << 20))

    def _positive(
        self, key: str, read: Callable[[float | str], float], least: float = 0.0
    ) -> float:
        given = getattr(self, key)
        try:
            value = read(given)
        except InputError as error:
            raise InputError(f"campaign.{key}: {error}") from error
        if value < least:
            raise InputError(f"campaign.{key} is {given}; give more")
        return value
