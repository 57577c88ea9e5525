"""penstock tuner: what was learnt about the I/O nodes' parameters."""

import click

from penstock.cli.verbs.tuner.measure import measure
from penstock.cli.verbs.tuner.show import show
from penstock.cli.verbs.tuner.simulate import simulate


@click.group(short_help="What was learnt about the I/O nodes' parameters.")
def tuner() -> None:
    """Look at what the Council of a deployment has learnt, or measure what there is to learn.

    \b
    Examples:
      penstock tuner show
      penstock tuner show --state ./state --json
      penstock tuner measure --out windows.csv
      penstock tuner simulate --policy ucb1

    'penstock up --tune window --scheduler twins --mode enforce' tunes; docs/live/tuning.md is the
    guide.
    """


for command in (show, measure, simulate):
    tuner.add_command(command)
