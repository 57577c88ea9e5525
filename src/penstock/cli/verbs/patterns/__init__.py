"""penstock patterns: how access patterns are told from what I/O nodes see."""

import click

from penstock.cli.verbs.patterns.evaluate import evaluate
from penstock.cli.verbs.patterns.measure import measure
from penstock.cli.verbs.patterns.show import show
from penstock.cli.verbs.patterns.train import train


@click.group(no_args_is_help=False)
def patterns() -> None:
    """Access patterns, told from what I/O nodes see; docs/live/patterns.md is the guide.

    \b
    Examples:
      penstock patterns show                                 the model that comes with penstock
      penstock patterns evaluate                             how good it is, on sizes never seen
      penstock patterns measure --out seen.csv               observations of your own
      penstock patterns train seen.csv --out model.json      and a model of them
    """


for command in (measure, train, evaluate, show):
    patterns.add_command(command)
