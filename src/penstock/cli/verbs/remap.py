"""penstock remap: other I/O nodes for a running job."""

from pathlib import Path

import click

from penstock.cli.common import live_options
from penstock.cli.common.output import emit_json, json_option
from penstock.cli.common.terminal import echo
from penstock.errors import InputError
from penstock.live.deployment import launcher
from penstock.live.protocol import messages
from penstock.live.protocol.state_directory import StateDirectory
from penstock.units import show_volume


@click.command()
@click.argument("job")
@click.option("--io-nodes", metavar="K,...", help="The new I/O nodes, by number: 0,2.")
@click.option("--direct", is_flag=True, help="Use no I/O node: direct I/O.")
@click.option(
    "--stripe",
    metavar="SIZE",
    help="Spread each file over the I/O nodes in pieces of this size, a multiple of 64 KiB; by "
    "default each process uses one I/O node.",
)
@live_options.state
@json_option
def remap(
    *,
    job: str,
    io_nodes: str | None,
    direct: bool,
    stripe: str | None,
    folder: Path | None,
    as_json: bool,
) -> None:
    """Give the running JOB other I/O nodes, between two of its requests.

    \b
    Examples:
      penstock remap solver.3 --io-nodes 0,2
      penstock remap solver --io-nodes 0,1,2,3 --stripe 1MiB
      penstock remap solver.3 --direct

    JOB is an id from 'penstock status', or a name that only one running job has.
    """
    if direct == (io_nodes is not None):
        raise InputError("give either --io-nodes K,... or --direct")
    nodes = [] if io_nodes is None else live_options.numbers(io_nodes, "--io-nodes")
    message = messages.Remap(job=job, nodes=nodes, stripe=live_options.stripe(stripe))
    with live_options.launch_errors():
        launcher.ask(StateDirectory(folder), message, messages.Done)
    if as_json:
        emit_json({"job": job, "io_nodes": nodes, "stripe": message.stripe})
    else:
        several = f"I/O node{'s' if len(nodes) > 1 else ''} {', '.join(map(str, nodes))}"
        spread = f", in pieces of {show_volume(message.stripe)}" if message.stripe else ""
        where = several + spread if nodes else "direct I/O"
        echo(f"{job} now uses {where}")
