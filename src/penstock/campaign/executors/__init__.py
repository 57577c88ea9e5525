"""Where cells run: on this machine's cores, on a Dask cluster, or on workers that Slurm starts.

`named` gives a place by its name. A place has an executor with concurrent.futures' interface, so
that whoever has work to do need not know where it is done. Dask is imported only when it is asked
for.
"""

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

from penstock.campaign.executors.executor import ExecutorError, Place, WorkerDiedError
from penstock.campaign.executors.local import Local
from penstock.config.campaign import LOCAL, SLURM, CampaignSection
from penstock.errors import InputError

__all__ = ["ExecutorError", "Place", "WorkerDiedError", "named"]

SCHEMES = ("tcp", "tls", "ws", "wss", "ucx")
EXTRA = (
    "install the extra 'dask', in a checkout pip install '.[dask]' (docs/get-started/install.md)"
)


def named(
    section: CampaignSection,
    *,
    cores: int | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> Place:
    """Return the place that a configuration names; InputError: there cannot be such a one.

    Nothing is connected to and no job is submitted before there is work. `cores` are of this
    machine. `tell` hears, in a line each, what takes long.
    """
    if section.on == LOCAL:
        return Local(cores, tell)
    if cores is not None:
        raise InputError(
            f"--jobs are cores of this machine, but the work goes to {section.on!r}; leave it out"
            + (" and set campaign.jobs" if section.on == SLURM else "")
        )
    _check(section.on)
    wanted = ("distributed", "dask_jobqueue") if section.on == SLURM else ("distributed",)
    missing = [name for name in wanted if find_spec(name) is None]
    if missing:
        raise InputError(f"{section.on!r} needs {' and '.join(missing)}: {EXTRA}")
    if section.on == SLURM:
        from penstock.campaign.executors.on_slurm import on_slurm  # noqa: PLC0415

        return on_slurm(section, tell)
    from penstock.campaign.executors.on_dask import on_dask  # noqa: PLC0415

    return on_dask(section.on, wait=section.wait_seconds(), tell=tell)


def _check(where: str) -> None:
    if where == SLURM:
        return
    scheme, there, rest = where.partition("://")
    if not there and where.endswith(".json"):
        if not Path(where).is_file():
            raise InputError(
                f"there is no file {where!r}; 'dask scheduler --scheduler-file' writes it"
            )
        return
    host, colon, port = rest.rpartition(":")
    if scheme in SCHEMES and host and colon and port.isdigit() and int(port) < 1 << 16:
        return
    raise InputError(
        f"{where!r} is no place to work at; say local, slurm, tcp://HOST:PORT of a Dask scheduler, "
        "or its FILE.json"
    )
