"""Where a verb's work is done: --on, --jobs, and how work elsewhere fails."""

import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from penstock.campaign.executors import Place
    from penstock.config import Loaded

ENDING = (signal.SIGTERM, signal.SIGHUP)

on = click.option(
    "--on",
    metavar="WHERE",
    help="local: this machine's cores (the default); tcp://HOST:PORT of a Dask scheduler, or its "
    "FILE.json; slurm: jobs as [campaign] of the configuration says.",
)
cores = click.option(
    "--jobs",
    metavar="CORES",
    type=click.IntRange(min=1),
    help="Processes of this machine to use; else all cores.",
)


def load(config_file: Path | None, settings: Sequence[str], on: str | None) -> "Loaded":
    """Return the configuration in force for a verb that has no other part of it."""
    from penstock import config  # noqa: PLC0415

    given = [config.Setting.parse(setting) for setting in settings]
    given += [config.Setting.flag("--on", "campaign.on", on)] if on is not None else []
    return config.load(config_file, given)


@contextmanager
def opened(loaded: "Loaded", jobs: int | None) -> Iterator["Place"]:
    """Open the workers that the configuration names; their failure ends the verb in one line."""
    with failing(), place(loaded, jobs) as workers:
        yield workers


@contextmanager
def place(loaded: "Loaded", jobs: int | None) -> Iterator["Place"]:
    """Open the workers that the configuration names; their messages go to standard error."""
    from penstock.campaign import executors  # noqa: PLC0415 - so that --help stays quick

    with loaded.blaming("campaign.on"):
        workers = executors.named(loaded.config.campaign, cores=jobs, tell=_tell)
    with _ending() if workers.away else nullcontext(), workers:
        yield workers


@contextmanager
def failing() -> Iterator[None]:
    """Tell as a failed run, in one line, that those who were to work cannot."""
    from penstock.campaign.executors import ExecutorError  # noqa: PLC0415

    try:
        yield
    except ExecutorError as error:
        raise click.ClickException(str(error)) from error


def _tell(line: str) -> None:
    click.echo(f"penstock: {line}", err=True)


@contextmanager
def _ending() -> Iterator[None]:
    """Take an end of the session as an interrupt: what was started elsewhere is ended."""

    def interrupt(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
        raise KeyboardInterrupt

    before = {number: signal.getsignal(number) for number in ENDING}
    try:
        for number, handler in before.items():
            if handler is signal.SIG_DFL:
                signal.signal(number, interrupt)
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
