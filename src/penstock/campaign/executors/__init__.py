"""Where cells run: on this machine's cores, on a Dask cluster, or on workers that Slurm starts.

`open_pool` returns the pool of workers that a configuration names. A pool has an executor with
concurrent.futures' interface, so that its user need not know where the work is done. Dask is
imported only when it is used.
"""

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

from penstock.campaign.executors.local import LocalPool
from penstock.campaign.executors.pool import (
    LIMITS,
    ExecutorError,
    Limits,
    WorkerDiedError,
    WorkerPool,
)
from penstock.config.campaign import LOCAL, SLURM, CampaignSection
from penstock.errors import InputError

__all__ = ["ExecutorError", "Limits", "WorkerDiedError", "WorkerPool", "open_pool"]

SCHEMES = ("tcp", "tls", "ws", "wss", "ucx")
EXTRA = (
    "install the extra 'dask', in a checkout pip install '.[dask]' (docs/get-started/install.md)"
)


def open_pool(
    section: CampaignSection,
    *,
    cores: int | None = None,
    tell: Callable[[str], None] = lambda _: None,
    limits: Limits | None = None,
) -> WorkerPool:
    """Return the workers that a configuration names; InputError: it names none that can exist.

    The pool connects to no scheduler and submits no job before there is work. `cores` are of this
    machine. `tell` gets a line about everything that takes long.
    """
    if section.on == LOCAL:
        return LocalPool(cores, tell)
    if cores is not None:
        raise InputError(
            f"--jobs are cores of this machine, but the work goes to {section.on!r}; leave it out"
            + (" and set campaign.jobs" if section.on == SLURM else "")
        )
    _check(section.on)
    packages = ("distributed", "dask_jobqueue") if section.on == SLURM else ("distributed",)
    missing = [name for name in packages if find_spec(name) is None]
    if missing:
        raise InputError(f"{section.on!r} needs {' and '.join(missing)}: {EXTRA}")
    limits = limits or LIMITS
    if section.on == SLURM:
        from penstock.campaign.executors.slurm_jobs import slurm_pool  # noqa: PLC0415

        return slurm_pool(section, tell, limits)
    from penstock.campaign.executors.dask_pool import scheduler_pool  # noqa: PLC0415

    return scheduler_pool(section.on, wait=section.wait_seconds(), tell=tell, limits=limits)


def _check(where: str) -> None:
    if where == SLURM:
        return
    scheme, separator, rest = where.partition("://")
    if not separator and where.endswith(".json"):
        if not Path(where).is_file():
            raise InputError(
                f"there is no file {where!r}; 'dask scheduler --scheduler-file' writes it"
            )
        return
    host, colon, port = rest.rpartition(":")
    if scheme in SCHEMES and host and colon and port.isdigit() and int(port) < 1 << 16:
        return
    raise InputError(
        f"{where!r} names no workers; use local, slurm, tcp://HOST:PORT of a Dask scheduler, or "
        "its FILE.json"
    )
