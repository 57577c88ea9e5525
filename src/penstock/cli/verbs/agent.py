"""penstock agent: the agent of a node, in the foreground."""

import logging
import os
from pathlib import Path

import click

from penstock import units
from penstock.cli.common import live_options
from penstock.cli.common.output import emit_json, json_option
from penstock.cli.verbs.slurm import folder_of, run
from penstock.live.agent import node_agent
from penstock.live.agent.node_agent import REAP_INTERVAL, NodeAgent
from penstock.live.agent.reaper import Reaper, in_queue
from penstock.live.protocol.state_directory import StateDirectory


@click.command(short_help="Keep the pages of a node's jobs, for a batch system.")
@live_options.state
@live_options.controller
@run
@click.option("--grace", default="60 s", help="Without a process so long: Slurm is asked.")
@click.option("--reap-every", default=f"{REAP_INTERVAL:g} s", help="How often to look for them.")
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
    """Keep the shared pages of all jobs of this node until told to end.

    \b
    Examples:
      penstock agent --state /var/lib/penstock
      penstock agent --state ./state --run ./agent --grace '5 min'
      penstock agent --controller io1:7788 --key-file /etc/penstock/key

    Slurm's prolog hands it a job, its epilog takes it back ('penstock slurm'). As root it keeps
    every user's jobs, else its own user's. One line says that it serves; SIGTERM and SIGINT end it,
    and jobs that still run go on unmanaged. One that was killed takes its jobs in again when it is
    started the next time. docs/live/slurm.md is the guide.
    """
    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", level=logging.INFO)
    where = folder_of(run_folder)
    reaper = Reaper(in_queue, grace=units.seconds(grace))
    there = live_options.remote(controller, key_file) or StateDirectory(folder).controller
    told = NodeAgent(where, there, find_ended=reaper, reap_interval=units.seconds(reap_every))

    def announce() -> None:
        if as_json:
            emit_json({"control": str(where.control), "pid": os.getpid()})
        else:
            click.echo(f"the agent of this node serves {where.control}")

    node_agent.serve(told, announce)
