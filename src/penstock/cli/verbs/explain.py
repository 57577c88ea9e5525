"""penstock explain: one job in plain sentences."""

from dataclasses import asdict

import click

from penstock.cli.common import live_options
from penstock.cli.common.output import emit_json, json_option
from penstock.cli.common.site import Site
from penstock.cli.common.site import site as with_site
from penstock.cli.common.terminal import echo
from penstock.live.controller import explain as explained


@click.command()
@click.argument("job")
@with_site
@json_option
def explain(*, job: str, site: Site, as_json: bool) -> None:
    """Explain in plain sentences what JOB does now and why, what it did, and its path to storage.

    \b
    Examples:
      penstock explain solver.3
      penstock explain solver --json
      penstock explain solver --controller login1:7000      on another host

    JOB is an id or a name from 'penstock status'. Jobs that ended can be explained as long as they
    are listed there. --controller (or $PENSTOCK_CONTROLLER and $PENSTOCK_KEY_FILE) asks the
    controller of another host, as in 'penstock run'.
    """
    with live_options.launch_errors():
        status = site.status()
    explanation = explained.explain(status, job)
    if as_json:
        record = explained.find(status.jobs, explanation.job)
        emit_json(asdict(explanation) | {"record": record})
        return
    record = explained.find(status.jobs, explanation.job)
    command = " ".join(" ".join(record.command).split())
    echo(f"{explanation.job} ({record.user}): {command}")
    parts = {"Now": explanation.now, "So far": explanation.did, "Path": explanation.through}
    for head, sentences in parts.items():
        echo(f"\n{head}")
        for sentence in sentences:
            echo(f"  {sentence}")
    if explanation.advice is not None:
        echo(f"\nAdvice\n  {explanation.advice}")
