"""penstock patterns: detecting access patterns from what I/O nodes observe."""

import click

from penstock.cli.verbs.patterns.evaluate import evaluate
from penstock.cli.verbs.patterns.measure import measure
from penstock.cli.verbs.patterns.show import show
from penstock.cli.verbs.patterns.train import train


@click.group(no_args_is_help=False)
def patterns() -> None:
    """Detect access patterns from what I/O nodes observe; docs/live/patterns.md is the guide.

    \b
    Examples:
      penstock patterns show                                 show the model that is shipped
      penstock patterns evaluate                             test it on other request sizes
      penstock patterns measure --out seen.csv               measure observations of your own
      penstock patterns train seen.csv --out model.json      train a model on them
    """


for command in (measure, train, evaluate, show):
    patterns.add_command(command)
