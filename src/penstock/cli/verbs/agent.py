"""penstock agent: the agent of a node, in the foreground."""

import os
from pathlib import Path

import click

from penstock import units
from penstock.cli.common import live_options
from penstock.cli.common.output import emit_json, json_option
from penstock.cli.common.terminal import echo
from penstock.cli.verbs.slurm import agent_directory, run
from penstock.live.agent import node_agent
from penstock.live.agent.node_agent import REAP_INTERVAL, NodeAgent
from penstock.live.agent.reaper import Reaper, in_queue
from penstock.live.protocol.state_directory import StateDirectory
from penstock.progress import log_to_stderr


@click.command()
@live_options.state
@live_options.controller
@run
@click.option(
    "--grace",
    metavar="TIME",
    default="60 s",
    show_default=True,
    help="Ask Slurm about a job once it has had no process for this long.",
)
@click.option(
    "--reap-every",
    metavar="TIME",
    default=f"{REAP_INTERVAL:g} s",
    show_default=True,
    help="How often to look for jobs without a process.",
)
@json_option
def agent(
    *,
    folder: Path | None,
    controller: str | None,
    key_file: Path | None,
    run_folder: Path | None,
    grace: str,
    reap_every: str,
    as_json: bool,
) -> None:
    """Keep the shared pages of this node's jobs, until it is stopped.

    \b
    Examples:
      penstock agent --state /var/lib/penstock
      penstock agent --state ./state --run ./agent --grace '5 min'
      penstock agent --controller io1:7788 --key-file /etc/penstock/key

    Slurm's prolog registers a job with the agent, and its epilog releases it ('penstock slurm'). As
    root the agent serves all users' jobs, otherwise its own user's. It prints one line when it
    serves. SIGTERM and SIGINT end it, and running jobs continue unmanaged. After a crash, a new
    agent takes over the jobs of the old one. docs/live/slurm.md is the guide.
    """
    log_to_stderr()
    directory = agent_directory(run_folder)
    reaper = Reaper(in_queue, grace=units.seconds(grace))
    address = live_options.remote(controller, key_file) or StateDirectory(folder).controller
    node = NodeAgent(directory, address, find_ended=reaper, reap_interval=units.seconds(reap_every))

    def announce() -> None:
        if as_json:
            emit_json({"control": str(directory.control), "pid": os.getpid()})
        else:
            echo(f"the agent of this node serves {directory.control}")

    node_agent.serve(node, announce)
