"""penstock predict: how long a write will take, with what confidence, and which stage decides."""

import click

from penstock import units
from penstock.cli.common import write_options
from penstock.cli.common.options import typed
from penstock.cli.common.output import emit_json, emit_table, json_option
from penstock.cli.common.terminal import echo
from penstock.cli.common.write_options import WriteOptions


@click.command()
@typed(WriteOptions)
@json_option
def predict(*, options: WriteOptions, as_json: bool) -> None:
    """Predict the mean time of a write: m nodes x n processes, each with a burst of K bytes.

    \b
    Examples:
      penstock predict --machine titan --nodes 256 --cores 16 --burst "100 MB"
      penstock predict --machine titan --log run.darshan
      penstock predict --model mine.json --nodes 512 --cores 16 --burst "1 GB" --shared

    Without --model the prediction comes from the machine's description alone, with a wide interval.
    A model is trained on measured runs, and knows how large its errors are. Where a write lies
    outside of the training data, the output says so and the interval is wider. 'part' is the part
    of the time in which a stage is busy; stages overlap, so the parts may add up to more than 100%.
    """
    model = options.model()
    write, notes = options.write(model.machine)
    prediction = model.predict(write)
    rate = write.bytes / prediction.seconds
    if as_json:
        emit_json(
            {
                "machine": model.machine.name,
                "write": write_options.write_fields(write),
                "notes": notes,
                "bandwidth": rate,
                **write_options.figures(prediction),
            }
        )
        return
    echo(f"{model.machine.name}: {write_options.describe(write)}")
    echo(f"time       {write_options.interval(prediction)}")
    if prediction.run is not None:
        low, high = map(units.show_seconds, prediction.run)
        echo(f"one run    {low} to {high}{write_options.confidence(prediction)}")
    echo(f"bandwidth  {units.show_bandwidth(rate)}")
    write_options.show_notes(prediction, notes)
    if prediction.stages:
        echo()
        rows = [(name, f"{part:.1%}") for name, part in prediction.stages.items()]
        emit_table(("stage", "part"), rows)
