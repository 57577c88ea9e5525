"""The command line: `penstock VERB`, one file a verb, each imported when it is asked for."""

import importlib
import os
import sys
from collections.abc import Mapping
from typing import Any

import click

from penstock import __version__
from penstock.errors import InputError, unknown

VERBS: Mapping[str, tuple[str, str]] = {
    "simulate": ("penstock.cli.verbs.simulate:simulate", "Run a workload under one policy."),
    "compare": ("penstock.cli.verbs.compare:compare", "Run workloads under several policies."),
    "what-if": (
        "penstock.cli.verbs.what_if:what_if",
        "What other policies would have made of a record.",
    ),
    "allocate": ("penstock.cli.verbs.allocate:allocate", "How many I/O nodes each job should get."),
    "place": ("penstock.cli.verbs.place:place", "Which I/O nodes each job should get."),
    "pack": (
        "penstock.cli.verbs.pack:pack",
        "Which jobs should run together, behind which I/O node.",
    ),
    "profile": ("penstock.cli.verbs.profile:profile", "What a run did to its files, from its log."),
    "predict": ("penstock.cli.verbs.predict:predict", "How long a write will take, and why."),
    "advise": ("penstock.cli.verbs.advise:advise", "How a write should be made, and how often."),
    "write-model": ("penstock.cli.verbs.write_model:write_model", "Models of measured writes."),
    "machines": ("penstock.cli.verbs.machines:machines", "List the machines, or explain one."),
    "generate": ("penstock.cli.verbs.generate:generate", "Draw a synthetic workload."),
    "reproduce": ("penstock.cli.verbs.reproduce:reproduce", "Repeat a paper's evaluation."),
    "up": (
        "penstock.cli.verbs.up:up",
        "Bring I/O nodes and their controller up, in the background.",
    ),
    "run": ("penstock.cli.verbs.run:run", "Run an unmodified command as a job."),
    "status": ("penstock.cli.verbs.status:status", "Jobs, I/O nodes, and what they moved."),
    "top": ("penstock.cli.verbs.top:top", "Who transfers now, who waits, and for whom."),
    "explain": ("penstock.cli.verbs.explain:explain", "What a job does now, what it did, and why."),
    "mode": ("penstock.cli.verbs.mode:mode", "Show or change whether jobs wait for turns."),
    "remap": ("penstock.cli.verbs.remap:remap", "Give a running job other I/O nodes."),
    "down": ("penstock.cli.verbs.down:down", "Take down what 'up' brought up."),
    "standby": ("penstock.cli.verbs.standby:standby", "Start another controller when one dies."),
    "explore": ("penstock.cli.verbs.explore:explore", "Measure access patterns over I/O nodes."),
    "patterns": (
        "penstock.cli.verbs.patterns:patterns",
        "Learn and judge how access patterns are told.",
    ),
    "samples": (
        "penstock.cli.verbs.samples:samples",
        "Writes and what they took: simulate, import.",
    ),
    "tuner": ("penstock.cli.verbs.tuner:tuner", "What was learnt about I/O nodes' parameters."),
    "policies": ("penstock.cli.verbs.policies:policies", "List the policies, or explain one."),
    "ionode": ("penstock.cli.verbs.ionode:ionode", "Serve clients as one I/O node."),
    "agent": (
        "penstock.cli.verbs.agent:agent",
        "Keep the pages of a node's jobs, for a batch system.",
    ),
    "slurm": ("penstock.cli.verbs.slurm:slurm", "Slurm's hooks, licences and partitions."),
    "key": ("penstock.cli.verbs.key:key", "Make a site key, for deployments of several hosts."),
    "config": ("penstock.cli.verbs.config:config", "Show the configuration in force."),
    "man": ("penstock.cli.verbs.man:man", "The manual pages of penstock and its verbs."),
}
"""Where each verb is, and its line in the list of them: listing them imports none."""

WRONG_INPUT, FAILED, INTERRUPTED = 2, 1, 130


class _Verbs(click.Group):
    """A group whose commands are imported only when named, so that `--help` stays quick."""

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
            raise unknown("verb", args[0], VERBS)
        return super().resolve_command(ctx, args)


@click.group(cls=_Verbs, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="penstock")
def penstock() -> None:
    """Decide who may do I/O now, at what share: simulate, compare and explain policies.

    \b
    Start here:
      penstock generate io-sets --out jobs.json       a workload of the IO-SETS paper
      penstock simulate jobs.json --policy set-10     what one policy makes of it
      penstock compare jobs.json                      all policies side by side
      penstock reproduce io-sets --out study          the paper's figures and claims
      penstock up --root /scratch --io-nodes 2        I/O nodes for unmodified jobs
    """


def main(args: list[str] | None = None) -> int:
    """Run the command line and return its exit status: 2 for wrong input, 1 for a failed run."""
    args = sys.argv[1:] if args is None else args
    try:
        result = penstock.main(args or ["--help"], prog_name="penstock", standalone_mode=False)
    except BrokenPipeError:
        # The reader (head, less) has gone: nobody is left to be told.
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
        # One line, whatever line breaks a file's name or a message holds.
        click.echo(f"penstock: error: {' '.join(message.split())}", err=True)
        return status
    return result if isinstance(result, int) else 0


def _diagnosis(error: BaseException) -> tuple[str, int]:
    """Return what to say of an error, and the exit status."""
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
            return "memory ran out; take a smaller workload or a larger machine", FAILED
        case _:
            return "interrupted", INTERRUPTED
