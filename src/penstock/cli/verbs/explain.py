"""penstock explain: one job in plain sentences."""

from dataclasses import asdict
from pathlib import Path

import click

from penstock.cli.common import live_options
from penstock.cli.common.output import emit_json, json_option
from penstock.live.controller import explain as explained
from penstock.live.deployment import launcher
from penstock.live.protocol import messages
from penstock.live.protocol.state_directory import StateDirectory


@click.command(short_help="What a job does now, what it did, and why.")
@click.argument("job")
@live_options.state
@json_option
def explain(*, job: str, folder: Path | None, as_json: bool) -> None:
    """Say what JOB does now and why, what it did, and what it goes through.

    \b
    Examples:
      penstock explain solver.3
      penstock explain solver --json

    JOB is an id of 'penstock status', or a name. Jobs that ended are explained while they are
    listed there.
    """
    with live_options.launch_errors():
        found = launcher.ask(StateDirectory(folder), messages.GetStatus(), messages.Status)
    said = explained.explain(found, job)
    if as_json:
        emit_json(asdict(said) | {"record": explained.find(found.jobs, said.job)})
        return
    record = explained.find(found.jobs, said.job)
    click.echo(f"{said.job} ({record.user}): {' '.join(' '.join(record.command).split())}")
    for head, sentences in (("Now", said.now), ("So far", said.did), ("Through", said.through)):
        click.echo(f"\n{head}")
        for sentence in sentences:
            click.echo(f"  {sentence}")
    if said.advice is not None:
        click.echo(f"\nAdvice\n  {said.advice}")
