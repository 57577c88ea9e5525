"""What several verbs take: --json, the configuration, and how to read workload files."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

import click

from penstock import config, units
from penstock.cli.common import configuration_options, output
from penstock.cli.common.configuration_options import gathered
from penstock.errors import InputError
from penstock.progress import progress
from penstock.sim import formats
from penstock.sim.knowledge import Knowledge
from penstock.sim.workload import Workload

LARGE = 50_000_000
"""Bytes of a workload file that take more than a moment to read."""

DEFAULT_ALLOCATION = "mckp"
"""Who divides a site unless told otherwise."""

F = TypeVar("F", bound=Callable[..., Any])

as_json = output.as_json
configured = configuration_options.configured


def simulated(command: F) -> F:
    """Add what the simulation of a file can be told: allocation, SWF's missing I/O, `measured`."""
    for option in (
        click.option(
            "--w-iter", metavar="TIME", help="For .swf: how long an iteration is ('100 s')."
        ),
        click.option(
            "--io-ratio", type=float, help="For .swf: the part of a job's time that is I/O."
        ),
        click.option(
            "--remap-delay", metavar="TIME", help="Until a running job hears of its new resources."
        ),
        click.option(
            "--placement",
            metavar="NAME",
            help="Which resources each job gets; 'penstock policies --kind placement' lists them.",
        ),
        click.option(
            "--allocation",
            metavar="NAME",
            help="How many resources each job gets, decided anew when one starts or ends; else "
            "jobs keep those they name. 'penstock policies --kind allocation' lists them.",
        ),
    ):
        command = option(command)
    return measured(command)


def measured(command: F) -> F:
    """Add what policies know of jobs, and when metrics are taken."""
    for option in (
        click.option("--seed", metavar="N", help="The seed of noisy knowledge."),
        click.option(
            "--knowledge",
            metavar="WHAT",
            help="How policies know w_iter: exact, learned, or noisy:DECADES (noisy:0.5).",
        ),
        click.option(
            "--window",
            metavar="BEGIN:END",
            help="Measure between these times (6000:14000, or '2 h:4 h'); else 0.3 to 0.7 of the "
            "file's horizon, or all of the run.",
        ),
    ):
        command = option(command)
    return command


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What a verb that divides a site was told of its size, its policy's options, and the rest."""

    config_file: Path | None
    settings: tuple[str, ...]
    io_nodes: str | None
    nodes: str | None
    chosen: tuple[str, ...]

    def load(self, section: str, flags: Mapping[str, str | None]) -> config.Loaded:
        """Return the configuration in force; --policy and --option are of `section`."""
        sizes = {"site.resources": self.io_nodes, "site.nodes": self.nodes}
        return load(
            self.config_file,
            self.settings,
            {**flags, **sizes},
            own={"allocation.policy": DEFAULT_ALLOCATION},
            more=[_option(section, text) for text in self.chosen],
            names={f"{section}.policy": "--policy"},
        )


def _option(section: str, text: str) -> config.Setting:
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise InputError(f"--option {text!r} is not of the form NAME=VALUE")
    return config.Setting.flag("--option", f"{section}.options.{name.strip()}", value.strip())


def divided(command: Callable[..., None]) -> Callable[..., None]:
    """Add what those are told who divide a site, --config and --set included, as one `Told`."""

    choices = (
        click.option(
            "--option",
            "chosen",
            multiple=True,
            metavar="NAME=VALUE",
            help="An option of the policy, as 'penstock policies NAME' lists them. Repeatable.",
        ),
        click.option("--nodes", metavar="N", help="Compute nodes in all; else site.nodes."),
        click.option(
            "--io-nodes", metavar="N", help="I/O nodes (or storage targets); else site.resources."
        ),
    )
    return configured(gathered(command, Told, choices))


direct = click.option(
    "--direct/--no-direct",
    default=None,
    help="Whether jobs may go past all I/O nodes; else where their curves know it.",
)


def yes_no(flag: bool | None) -> str | None:
    """Return a flag as the configuration writes it."""
    return None if flag is None else str(flag).lower()


FLAGS = {
    "site.resources": "--io-nodes",
    "site.direct": "--direct",
    "allocation.policy": "--allocation",
    "placement.policy": "--placement",
}
"""The flags that are not called like the last part of their key."""
NOTHING: Mapping[str, str] = MappingProxyType({})


def load(
    config_file: Path | None,
    settings: tuple[str, ...],
    flags: Mapping[str, str | None],
    *,
    own: Mapping[str, str] = NOTHING,
    more: Sequence[config.Setting] = (),
    names: Mapping[str, str] = NOTHING,
) -> config.Loaded:
    """Return the configuration in force; `flags` is KEY to the value of its flag.

    `own` are a verb's own defaults, `more` what it was told otherwise, `names` its flags' names
    where they differ from the usual.
    """
    called = {**FLAGS, **names}
    given = [config.Setting.parse(setting) for setting in settings]
    given += [
        config.Setting.flag(called.get(key, f"--{key.rpartition('.')[2]}"), key, text)
        for key, text in flags.items()
        if text is not None
    ]
    defaults = [config.Setting(key=k, value=v, origin=config.Origin()) for k, v in own.items()]
    loaded = config.load(config_file, [*given, *more], defaults=defaults)
    knowledge(loaded)
    return loaded


def knowledge(loaded: config.Loaded) -> Knowledge:
    """Return how much policies know."""
    simulation = loaded.config.simulation
    with loaded.blaming("simulation.knowledge"):
        return Knowledge.parse(simulation.knowledge, seed=simulation.seed)


class Reader:
    """Reads the workload files of a command line."""

    def __init__(
        self,
        loaded: config.Loaded,
        files: tuple[Path, ...],
        io_ratio: float | None,
        w_iter: str | None,
    ) -> None:
        for file in files:
            formats.check_readable(file)
        swf = any(file.suffix.lower() == ".swf" for file in files)
        if not swf and (io_ratio is not None or w_iter is not None):
            raise InputError("--io-ratio and --w-iter are for .swf files; other files have I/O")
        try:
            self._w_iter = None if w_iter is None else units.seconds(w_iter)
        except InputError as error:
            raise InputError(f"--w-iter: {error}") from error
        self._io_ratio = io_ratio
        self._site = loaded.config.site.site()

    def read(self, file: Path) -> Workload:
        """Return the workload in a file."""
        with watching(f"reading {file.name}", large=file.stat().st_size > LARGE) as watch:
            return formats.read(
                file, self._site, io_ratio=self._io_ratio, w_iter=self._w_iter, watch=watch
            )


@contextmanager
def watching(label: str, *, large: bool) -> Iterator[formats.Watch | None]:
    """Show how many jobs of a large file are read or written."""
    if not large:
        yield None
        return
    with progress(label, 0) as shown:
        yield shown.reach
