"""penstock generate: synthetic workloads by name."""

from pathlib import Path
from typing import Any

import click

from penstock.cli import options
from penstock.cli.output import emit_json, emit_table
from penstock.errors import InputError, unknown
from penstock.files import check_writable
from penstock.model import units
from penstock.sim import traces
from penstock.sim.generators import PRESETS, Preset
from penstock.sim.generators.io_sets import HORIZON
from penstock.sim.traces import memory
from penstock.sim.workload import Workload

SAMPLE_JOBS = 60
BYTES_AN_ITERATION = 48
LONG = 2_000_000
"""Iterations that take more than a moment to write."""


@click.command(short_help="Draw a synthetic workload.")
@click.argument("preset", required=False)
@click.option("--out", metavar="FILE", type=click.Path(path_type=Path), help=".json or .npz.")
@click.option("--jobs", type=int, default=SAMPLE_JOBS, show_default=True, help="How many jobs.")
@click.option("--omega", type=float, default=0.8, show_default=True, help="Sum of I/O ratios.")
@click.option("--noise", type=float, default=0.1, show_default=True, help="Phases vary by +- this.")
@click.option(
    "--horizon",
    metavar="TIME",
    default=f"{HORIZON:g}",
    show_default=True,
    help="How long jobs last.",
)
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True, help="Of the draws.")
@click.option("--list", "list_presets", is_flag=True, help="List the presets.")
@options.as_json
def generate(
    *,
    preset: str | None,
    out: Path | None,
    jobs: int,
    omega: float,
    noise: float,
    horizon: str,
    seed: int,
    list_presets: bool,
    as_json: bool,
) -> None:
    """Draw a synthetic workload and write it to a file.

    \b
    Examples:
      penstock generate --list
      penstock generate io-sets --out jobs.json
      penstock generate io-sets --jobs 1000 --omega 0.9 --seed 7 --out large.npz
      penstock generate plafrim --horizon '6 h' --out plafrim.json

    The same options and seed always give the same workload. The file is .json, to be read and
    changed by people and scripts, or .npz, smaller and much faster to read.
    """
    if list_presets:
        _list(as_json)
        return
    if preset is None:
        raise InputError(f"which preset? give one of {', '.join(PRESETS)}, or --list")
    if preset not in PRESETS:
        raise unknown("preset", preset, PRESETS)
    if out is None:
        raise InputError(f"where to? give --out FILE with one of {', '.join(traces.WRITTEN)}")
    traces.check_suffix(out, traces.WRITTEN)
    check_writable(out)
    try:
        seconds = units.seconds(horizon)
    except InputError as error:
        raise InputError(f"--horizon: {error}") from error
    drawn = {"omega": omega, "noise": noise, "seed": seed}
    workload = _make(PRESETS[preset], jobs, seconds, drawn)
    with options.watching(f"writing {out.name}", large=workload.iterations > LONG) as watch:
        traces.write(workload, out, watch=watch)
    size = out.stat().st_size
    result = {
        "preset": preset,
        "file": click.format_filename(out),
        "bytes": size,
        "jobs": len(workload),
        "iterations": workload.iterations,
        "omega": workload.omega,
        "horizon": seconds,
        "noise": noise,
        "seed": seed,
    }
    if as_json:
        emit_json(result)
    else:
        click.echo(
            f"{result['file']}: {len(workload):,} jobs, {workload.iterations:,} iterations, "
            f"omega {workload.omega:.4g}, {units.show_volume(size)}; "
            f"next: penstock compare {result['file']}"
        )


def _make(preset: Preset, jobs: int, horizon: float, drawn: dict[str, Any]) -> Workload:
    if jobs < 1:
        raise InputError(f"--jobs is {jobs}; give at least 1")
    if not horizon > 0:
        raise InputError("--horizon is 0; give a positive time")
    # A small draw tells how large this one will be, before the machine finds out.
    sample = preset.make(
        jobs=SAMPLE_JOBS, horizon=min(horizon, HORIZON), **(drawn | {"omega": 1.0, "noise": 0.0})
    )
    scale = max(1.0, jobs / SAMPLE_JOBS) * max(1.0, horizon / HORIZON)
    need, free = sample.iterations * scale * BYTES_AN_ITERATION, memory.available()
    if free is not None and need > free:
        raise InputError(
            f"{jobs:,} jobs over {units.show_seconds(horizon)} need {units.show_volume(need)} of "
            f"memory, but {units.show_volume(free)} are available; lower --jobs or --horizon"
        )
    return preset.make(jobs=jobs, horizon=horizon, **drawn)


def _list(as_json: bool) -> None:
    if as_json:
        emit_json([{"name": name, "description": p.description} for name, p in PRESETS.items()])
    else:
        rows = [(name, preset.description) for name, preset in PRESETS.items()]
        emit_table(("preset", "what it draws"), rows, text={"what it draws"})
