"""penstock samples: writes and what they took, simulated or imported."""

import click

from penstock.cli.verbs.samples.import_ import bring
from penstock.cli.verbs.samples.simulate import simulate


@click.group(no_args_is_help=False)
def samples() -> None:
    """Samples of writes, for models of what a write costs; docs/formats/samples.md is the guide.

    \b
    Examples:
      penstock samples simulate titan --part 0.02 --out titan.csv     never measured, and says so
      penstock samples import ior.txt --machine titan --out mine.csv  what IOR printed
      penstock samples import curves/runs.jsonl --from explorer --machine here --out mine.csv
    """


for command in (simulate, bring):
    samples.add_command(command)
