"""Where a verb's simulations run: --jobs, the executor that [campaign] names, and its failures."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from types import FrameType

import click

from penstock.campaign import executors
from penstock.campaign.executors import ExecutorError, WorkerPool
from penstock.cli.common.options import option
from penstock.cli.common.terminal import echo
from penstock.config import Loaded

SIGNALS = (signal.SIGTERM, signal.SIGHUP)

jobs = option(
    "--jobs",
    metavar="CORES",
    type=click.IntRange(min=1),
    help="The number of processes on this host; by default one per core.",
)


@contextmanager
def executor(loaded: Loaded, jobs: int | None) -> Iterator[WorkerPool]:
    """Open the workers that the configuration names; their failure ends the verb in one line."""
    with executor_errors(), pool(loaded, jobs) as workers:
        yield workers


@contextmanager
def pool(loaded: Loaded, jobs: int | None) -> Iterator[WorkerPool]:
    """Open the workers that the configuration names; their messages go to standard error."""
    with loaded.blame("campaign.on"):
        workers = executors.open_pool(loaded.config.campaign, cores=jobs, tell=_print)
    with _interrupt_on_signals() if workers.remote else nullcontext(), workers:
        yield workers


@contextmanager
def executor_errors() -> Iterator[None]:
    """Report in one line that the workers failed."""
    try:
        yield
    except ExecutorError as error:
        raise click.ClickException(str(error)) from error


def _print(line: str) -> None:
    echo(f"penstock: {line}", err=True)


@contextmanager
def _interrupt_on_signals() -> Iterator[None]:
    """Treat the end of a session as an interrupt, so that remote workers are stopped."""

    def interrupt(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
        raise KeyboardInterrupt

    handlers = {number: signal.getsignal(number) for number in SIGNALS}
    try:
        for number, handler in handlers.items():
            if handler is signal.SIG_DFL:
                signal.signal(number, interrupt)
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
