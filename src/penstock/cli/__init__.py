"""The command line: `penstock VERB`, one file per verb, each imported when it is used."""

import importlib
import os
import sys
from collections.abc import Mapping
from typing import Any

import click

from penstock import __version__
from penstock.cli.common.terminal import echo
from penstock.errors import InputError, unknown

VERBS: Mapping[str, tuple[str, str]] = {
    "simulate": ("penstock.cli.verbs.simulate:simulate", "Simulate a workload under one policy."),
    "compare": (
        "penstock.cli.verbs.compare:compare",
        "Simulate workloads under several policies, side by side.",
    ),
    "sweep": (
        "penstock.cli.verbs.sweep:sweep",
        "Compare policies over the parameters of a generator.",
    ),
    "what-if": (
        "penstock.cli.verbs.what_if:what_if",
        "Simulate a recorded day under other policies.",
    ),
    "allocate": (
        "penstock.cli.verbs.allocate:allocate",
        "Decide how many I/O nodes each job should get.",
    ),
    "place": ("penstock.cli.verbs.place:place", "Decide which I/O nodes each job should get."),
    "pack": (
        "penstock.cli.verbs.pack:pack",
        "Decide which jobs should run together, behind which I/O node.",
    ),
    "profile": (
        "penstock.cli.verbs.profile:profile",
        "Describe the I/O of a run from its Darshan log.",
    ),
    "predict": (
        "penstock.cli.verbs.predict:predict",
        "Predict how long a write will take, and why.",
    ),
    "advise": (
        "penstock.cli.verbs.advise:advise",
        "Advise how to write, and how often to checkpoint.",
    ),
    "write-model": (
        "penstock.cli.verbs.write_model:write_model",
        "Train and evaluate models of measured writes.",
    ),
    "machines": (
        "penstock.cli.verbs.machines:machines",
        "List the machines whose writes can be predicted.",
    ),
    "generate": ("penstock.cli.verbs.generate:generate", "Generate a synthetic workload."),
    "reproduce": ("penstock.cli.verbs.reproduce:reproduce", "Reproduce a paper's evaluation."),
    "up": ("penstock.cli.verbs.up:up", "Start I/O nodes and their controller in the background."),
    "run": ("penstock.cli.verbs.run:run", "Run an unmodified command as a job."),
    "status": (
        "penstock.cli.verbs.status:status",
        "Show jobs, I/O nodes, and the bytes they moved.",
    ),
    "top": (
        "penstock.cli.verbs.top:top",
        "Show which jobs transfer now, which wait, and for which.",
    ),
    "explain": (
        "penstock.cli.verbs.explain:explain",
        "Explain what a job does now, what it did, and why.",
    ),
    "mode": ("penstock.cli.verbs.mode:mode", "Show or change whether jobs wait for their turns."),
    "remap": ("penstock.cli.verbs.remap:remap", "Give a running job other I/O nodes."),
    "down": ("penstock.cli.verbs.down:down", "Stop what 'up' started."),
    "standby": ("penstock.cli.verbs.standby:standby", "Start another controller when one dies."),
    "explore": (
        "penstock.cli.verbs.explore:explore",
        "Measure access patterns over numbers of I/O nodes.",
    ),
    "curves": (
        "penstock.cli.verbs.curves:curves",
        "Show, import or forget what is known of applications.",
    ),
    "patterns": (
        "penstock.cli.verbs.patterns:patterns",
        "Train and evaluate access-pattern detectors.",
    ),
    "samples": ("penstock.cli.verbs.samples:samples", "Simulate or import samples of write times."),
    "tuner": ("penstock.cli.verbs.tuner:tuner", "Show and evaluate the tuning of I/O nodes."),
    "policies": ("penstock.cli.verbs.policies:policies", "List the policies, or explain one."),
    "ionode": ("penstock.cli.verbs.ionode:ionode", "Run one I/O node in the foreground."),
    "agent": ("penstock.cli.verbs.agent:agent", "Run the agent of a node, for a batch system."),
    "slurm": ("penstock.cli.verbs.slurm:slurm", "Slurm's hooks, licences and partitions."),
    "key": ("penstock.cli.verbs.key:key", "Make a site key, for deployments of several hosts."),
    "config": ("penstock.cli.verbs.config:config", "Show the effective configuration."),
    "man": ("penstock.cli.verbs.man:man", "Print or install manual pages."),
}
"""The module and the one-line summary of each verb: listing the verbs imports none of them."""

ALSO_CALLED = {"jobs": "status", "ps": "status", "start": "up", "stop": "down", "why": "explain"}
"""What other programs call our verbs, where the spelling does not show which is meant."""

WRONG_INPUT, FAILED, INTERRUPTED = 2, 1, 130


class _Verbs(click.Group):
    """A group that imports a command only when it is used, so that `--help` stays quick."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in VERBS:
            return None
        module, _, name = VERBS[cmd_name][0].partition(":")
        command: click.Command = getattr(importlib.import_module(module), name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Verbs"):
            formatter.write_dl([(verb, summary) for verb, (_, summary) in VERBS.items()])

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        if args and args[0] not in VERBS and not args[0].startswith("-"):
            if (meant := ALSO_CALLED.get(args[0])) is not None:
                raise InputError(f"unknown verb {args[0]!r}; did you mean {meant!r}?")
            raise unknown("verb", args[0], VERBS)
        return super().resolve_command(ctx, args)


@click.group(cls=_Verbs, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="penstock")
def penstock() -> None:
    """Manage shared I/O: decide which job may transfer now, with which share of the bandwidth.

    \b
    Start here:
      penstock generate io-sets --out jobs.json       generate a workload of the IO-SETS paper
      penstock simulate jobs.json --policy set-10     simulate it under one policy
      penstock compare jobs.json                      compare all policies
      penstock reproduce io-sets --out study          reproduce the paper's figures and claims
      penstock up --root /scratch --io-nodes 2        start I/O nodes for unmodified jobs
    """


def main(args: list[str] | None = None) -> int:
    """Run the command line and return its exit status: 2 for wrong input, 1 for a failed run."""
    args = sys.argv[1:] if args is None else args
    try:
        result = penstock.main(args or ["--help"], prog_name="penstock", standalone_mode=False)
    except BrokenPipeError:
        # The reader (head, less) has closed the pipe.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except (
        InputError,
        click.ClickException,
        click.Abort,
        KeyboardInterrupt,
        OSError,
        MemoryError,
    ) as error:
        message, status = _diagnosis(error)
        # One line, even if a file's name or a message has line breaks.
        echo(f"penstock: error: {' '.join(message.split())}", err=True)
        return status
    return result if isinstance(result, int) else 0


def _diagnosis(error: BaseException) -> tuple[str, int]:
    """Return the message for an error, and the exit status."""
    match error:
        case InputError():
            return str(error), WRONG_INPUT
        case click.UsageError():
            usage = f" (see '{error.ctx.command_path} --help')" if error.ctx is not None else ""
            return error.format_message() + usage, WRONG_INPUT
        case click.ClickException():
            return error.format_message(), FAILED
        case OSError():
            return f"{error.filename or ''}: {error.strerror or error}".lstrip(": "), FAILED
        case MemoryError():
            return "out of memory; use a smaller workload or a larger machine", FAILED
        case _:
            # click raises Abort from the interrupt, which may say what was interrupted.
            interrupt = error.__cause__ if isinstance(error, click.Abort) else error
            return " ".join(["interrupted", *map(str, interrupt.args if interrupt else ())]), (
                INTERRUPTED
            )
