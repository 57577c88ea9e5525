"""A Dask cluster that somebody runs: connected to by address, left running."""

import json
import logging
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.campaign.executors.dask_executor import CLOSE, Away
from penstock.campaign.executors.executor import ExecutorError
from penstock.errors import InputError

CONNECT = 10.0
"""Seconds that a scheduler has to answer at all, at first and after it went away."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Theirs:
    """A scheduler of somebody else, who starts its workers, too."""

    client: Any

    def look(self, workers: int, done: int) -> str:  # noqa: ARG002
        """Return nothing: only who runs the cluster knows."""
        return ""


def on_dask(where: str, *, wait: float, tell: Callable[[str], None]) -> Away:
    """Return the place behind a scheduler's address or scheduler file."""
    address = where if "://" in where else _address(Path(where))
    name = f"the Dask scheduler at {address}"

    @contextmanager
    def connect() -> Iterator[Theirs]:
        with connected(address, name) as client:
            yield Theirs(client=client)

    return Away(name, connect, wait=wait, tell=tell)


def _address(file: Path) -> str:
    try:
        address = json.loads(file.read_text(encoding="utf-8"))["address"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{file} is not a Dask scheduler file: {error!r}") from error
    return str(address)


@contextmanager
def connected(address: Any, name: str) -> Iterator[Any]:
    """Give a client of the scheduler at an address, or of a cluster."""
    import distributed  # noqa: PLC0415
    from distributed.versions import VersionMismatchWarning  # noqa: PLC0415

    made: Any = distributed.Client

    quiet()
    with warnings.catch_warnings():
        # The versions that matter are checked, and the others do not.
        warnings.simplefilter("ignore", VersionMismatchWarning)
        try:
            client = made(address, timeout=CONNECT, set_as_default=False)
        except (OSError, TimeoutError, RuntimeError) as error:
            raise ExecutorError(
                f"{name} did not answer within {CONNECT:g} s; see that it runs and can be reached"
            ) from error
        except (ValueError, TypeError) as error:
            raise InputError(f"{name}: {error}") from error
    try:
        yield client
    finally:
        with suppress(Exception):
            client.close(timeout=CLOSE)


def quiet() -> None:
    """Keep Dask's log off the terminal: what goes wrong is told once, in one line."""
    for name in ("distributed", "tornado.application", *logging.root.manager.loggerDict):
        if name.partition(".")[0] in ("distributed", "tornado"):
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)
