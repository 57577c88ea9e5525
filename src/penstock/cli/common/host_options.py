"""Options of verbs that measure on the hosts of a Slurm allocation."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, get_args

import click

from penstock.cli.common.options import option
from penstock.errors import InputError
from penstock.live.measure import slurm_hosts
from penstock.live.measure.slurm_hosts import HostPlacement, RankPlacement


@dataclass(frozen=True, slots=True, kw_only=True)
class HostOptions:
    """Base of the options of such a verb."""

    slurm: Annotated[
        bool | None,
        option(
            "--slurm/--no-slurm",
            default=None,
            help="Run ranks and I/O nodes on all hosts of the Slurm allocation, or on this host "
            "alone. Default: on all, if there are several (docs/live/slurm.md).",
        ),
    ]
    rank_placement: Annotated[
        RankPlacement | None,
        option(
            "--rank-placement",
            type=click.Choice(get_args(RankPlacement)),
            help="With --slurm, the ranks of a host: consecutive ones (block), or every N-th "
            "(cyclic). Default: block.",
        ),
    ]
    io_node_hosts: Annotated[
        int | None,
        option(
            "--io-node-hosts",
            metavar="N",
            type=click.IntRange(0),
            help="With --slurm, the last N hosts run I/O nodes only. Default: 0, all hosts run "
            "ranks and I/O nodes.",
        ),
    ]
    coherent: Annotated[
        bool,
        option(
            "--coherent",
            is_flag=True,
            help="With --slurm, declare that all hosts see the same data below --root at all "
            "times. Lustre and GPFS need no declaration.",
        ),
    ]

    def placement(self, one_host: Mapping[str, object]) -> HostPlacement | None:
        """Return what runs where, or None for this host alone.

        `one_host` has the options that work on one host only, by flag, and their values.
        """
        wanted = slurm_hosts.has_several_hosts() if self.slurm is None else self.slurm
        if not wanted:
            given: dict[str, object] = {
                "--rank-placement": self.rank_placement,
                "--io-node-hosts": self.io_node_hosts,
                "--coherent": self.coherent,
            }
            if flags := [flag for flag, value in given.items() if value]:
                raise InputError(f"{flags[0]} needs an allocation of several hosts, or --slurm")
            return None
        for flag, value in one_host.items():
            if value:
                raise InputError(f"{flag} works on one host; add --no-slurm, or leave it out")
        return HostPlacement(
            hosts=slurm_hosts.allocated_hosts(),
            ranks=self.rank_placement or "block",
            io_node_hosts=self.io_node_hosts or 0,
            coherent=self.coherent,
        )


def where(placement: HostPlacement | None) -> str:
    """Return in words where a measurement with these options ran."""
    if placement is None:
        return "on an emulated file system"
    return f"on {len(placement.hosts)} hosts ({', '.join(placement.hosts)})"
