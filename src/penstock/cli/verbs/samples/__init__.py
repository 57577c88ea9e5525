"""penstock samples: samples of write times, simulated or imported."""

import click

from penstock.cli.verbs.samples.import_ import import_samples
from penstock.cli.verbs.samples.simulate import simulate


@click.group(no_args_is_help=False)
def samples() -> None:
    """Collect samples of write times, for write models; docs/formats/samples.md is the guide.

    \b
    Examples:
      penstock samples simulate titan --part 0.02 --out titan.csv     simulated, and marked so
      penstock samples import ior.txt --machine titan --out mine.csv  from the output of IOR
      penstock samples import curves/runs.jsonl --from explorer --machine here --out mine.csv
    """


for command in (simulate, import_samples):
    samples.add_command(command)
