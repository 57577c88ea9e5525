"""penstock write-model: models of write times, trained on measured runs."""

import click

from penstock.cli.verbs.write_model.evaluate import evaluate
from penstock.cli.verbs.write_model.show import show
from penstock.cli.verbs.write_model.train import train


@click.group(name="write-model", no_args_is_help=False)
def write_model() -> None:
    """Train, evaluate and show models of write times; docs/writes/write-models.md is the guide.

    \b
    Examples:
      penstock write-model train runs.csv --machine titan --out model.json
      penstock write-model evaluate model.json later.csv      test it on other samples
      penstock write-model show model.json                    show what costs time
      penstock predict --model model.json --nodes 256 --cores 16 --burst "100 MB"
    """


for command in (train, evaluate, show):
    write_model.add_command(command)
