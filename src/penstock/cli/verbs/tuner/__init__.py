"""penstock tuner: what tuning has learned about the I/O nodes' parameters."""

import click

from penstock.cli.verbs.tuner.measure import measure
from penstock.cli.verbs.tuner.show import show
from penstock.cli.verbs.tuner.simulate import simulate


@click.group()
def tuner() -> None:
    """Show what tuning has learned in a deployment, or measure and simulate it.

    \b
    Examples:
      penstock tuner show
      penstock tuner show --state ./state --json
      penstock tuner measure --out windows.csv
      penstock tuner simulate --policy ucb1

    'penstock up --tune window --scheduler twins --mode enforce' starts tuning; docs/live/tuning.md
    is the guide.
    """


for command in (show, measure, simulate):
    tuner.add_command(command)
