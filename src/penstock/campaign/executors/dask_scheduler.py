"""Connect to a Dask scheduler that somebody else runs, by address; leave it running."""

import json
import logging
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.campaign.executors.dask_pool import DaskPool
from penstock.campaign.executors.pool import ExecutorError, Limits
from penstock.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class ExternalScheduler:
    """A scheduler whose workers somebody else starts."""

    client: Any

    def look_after_workers(self, workers: int, done: int) -> str:  # noqa: ARG002
        """Return nothing: only the owner of the cluster can start workers."""
        return ""


def scheduler_pool(
    where: str, *, wait: float, tell: Callable[[str], None], limits: Limits
) -> DaskPool:
    """Return the workers behind a scheduler's address or scheduler file."""
    address = where if "://" in where else _address(Path(where))
    name = f"the Dask scheduler at {address}"

    @contextmanager
    def connect() -> Iterator[ExternalScheduler]:
        with connected(address, name, limits) as client:
            yield ExternalScheduler(client=client)

    return DaskPool(name, connect, wait=wait, tell=tell, limits=limits)


def _address(file: Path) -> str:
    try:
        address = json.loads(file.read_text(encoding="utf-8"))["address"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{file} is not a Dask scheduler file: {error!r}") from error
    return str(address)


@contextmanager
def connected(address: Any, name: str, limits: Limits) -> Iterator[Any]:
    """Connect to the scheduler at an address, or to a cluster."""
    import distributed  # noqa: PLC0415
    from distributed.versions import VersionMismatchWarning  # noqa: PLC0415

    new_client: Any = distributed.Client
    silence_dask()
    with warnings.catch_warnings():
        # worker_check compares the versions that matter.
        warnings.simplefilter("ignore", VersionMismatchWarning)
        try:
            client = new_client(address, timeout=limits.connect, set_as_default=False)
        except (OSError, TimeoutError, RuntimeError) as error:
            raise ExecutorError(
                f"{name} did not answer within {limits.connect:g} s; check that it runs and that "
                "this host reaches it"
            ) from error
        except (ValueError, TypeError) as error:
            raise InputError(f"{name}: {error}") from error
    try:
        yield client
    finally:
        with suppress(Exception):
            client.close(timeout=limits.close)


def silence_dask() -> None:
    """Keep Dask's log off the terminal: an error is reported once, in one line."""
    for name in ("distributed", "tornado.application", *logging.root.manager.loggerDict):
        if name.partition(".")[0] in ("distributed", "tornado"):
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)
