"""penstock generate: synthetic workloads by name."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from penstock import units
from penstock.cli.common.output import emit_json, emit_table, json_option
from penstock.cli.common.workload_files import show_progress
from penstock.errors import InputError, unknown
from penstock.files import check_writable
from penstock.sim import formats
from penstock.sim.formats import free_memory
from penstock.sim.generators import PRESETS, Preset
from penstock.sim.generators.io_sets import HORIZON
from penstock.sim.workload import Workload

SAMPLE_JOBS = 60
BYTES_AN_ITERATION = 48
LONG = 2_000_000
"""Iterations that take more than a moment to write."""


@click.command(short_help="Draw a synthetic workload.")
@click.argument("preset", required=False)
@click.option("--out", metavar="FILE", type=click.Path(path_type=Path), help=".json or .npz.")
@click.option("--jobs", type=int, help="How many jobs.")
@click.option("--omega", type=float, help="Of io-sets and plafrim: the sum of I/O ratios.")
@click.option("--noise", type=float, help="Of io-sets and plafrim: phases vary by +- this.")
@click.option("--horizon", metavar="TIME", help="Of io-sets and plafrim: how long jobs last.")
@click.option(
    "--theta", type=float, help="Of io-resources and targets: the I/O-load with one resource each."
)
@click.option("--alpha", type=float, help="Of packs: the I/O occupation of an I/O node.")
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True, help="Of the draws.")
@click.option("--list", "list_presets", is_flag=True, help="List the presets and their options.")
@json_option
def generate(
    *,
    preset: str | None,
    out: Path | None,
    seed: int,
    list_presets: bool,
    as_json: bool,
    **given: Any,
) -> None:
    """Draw a synthetic workload and write it to a file.

    \b
    Examples:
      penstock generate --list
      penstock generate io-sets --out jobs.json
      penstock generate io-sets --jobs 1000 --omega 0.9 --seed 7 --out large.npz
      penstock generate plafrim --horizon '6 h' --out plafrim.json
      penstock generate io-resources --theta 0.8 --out resources.json
      penstock generate packs --alpha 3 --out packs.json

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
        raise InputError(f"where to? give --out FILE with one of {', '.join(formats.WRITTEN)}")
    formats.check_suffix(out, formats.WRITTEN)
    check_writable(out)
    drawn = _options(preset, given)
    workload = _make(PRESETS[preset], drawn, seed)
    with show_progress(f"writing {out.name}", large=workload.iterations > LONG) as watch:
        formats.write(workload, out, watch=watch)
    size = out.stat().st_size
    result = {
        "preset": preset,
        "file": click.format_filename(out),
        "bytes": size,
        "jobs": len(workload),
        "iterations": workload.iterations,
        "omega": workload.omega,
        "seed": seed,
        **{name: value for name, value in drawn.items() if name not in ("jobs", "omega")},
    }
    if as_json:
        emit_json(result)
    else:
        click.echo(
            f"{result['file']}: {len(workload):,} jobs, {workload.iterations:,} iterations, "
            f"omega {workload.omega:.4g}, {units.show_volume(size)}; "
            f"next: {PRESETS[preset].next.format(file=result['file'])}"
        )


def _options(preset: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return all options of a preset, those that were given in place of its defaults."""
    known = PRESETS[preset].options
    asked = {name: value for name, value in given.items() if value is not None}
    for name in asked:
        if name not in known:
            flags = ", ".join(f"--{option}" for option in known)
            raise InputError(f"--{name} is no option of {preset}, which has {flags}")
    if "horizon" in asked:
        try:
            asked["horizon"] = units.seconds(asked["horizon"])
        except InputError as error:
            raise InputError(f"--horizon: {error}") from error
        if not asked["horizon"] > 0:
            raise InputError("--horizon is 0; give a positive time")
    if asked.get("jobs", 1) < 1:
        raise InputError(f"--jobs is {asked['jobs']}; give at least 1")
    return known | asked


def _make(preset: Preset, drawn: dict[str, Any], seed: int) -> Workload:
    if "horizon" not in drawn:
        return preset.make(**drawn, seed=seed)
    # A small draw tells how large this one will be, before the machine finds out.
    small = {"jobs": SAMPLE_JOBS, "horizon": min(drawn["horizon"], HORIZON)}
    sample = preset.make(**(drawn | small | {"omega": 1.0, "noise": 0.0}), seed=seed)
    scale = max(1.0, drawn["jobs"] / SAMPLE_JOBS) * max(1.0, drawn["horizon"] / HORIZON)
    need, free = sample.iterations * scale * BYTES_AN_ITERATION, free_memory.available()
    if free is not None and need > free:
        raise InputError(
            f"{drawn['jobs']:,} jobs over {units.show_seconds(drawn['horizon'])} need "
            f"{units.show_volume(need)} of memory, but {units.show_volume(free)} are available; "
            "lower --jobs or --horizon"
        )
    return preset.make(**drawn, seed=seed)


def _list(as_json: bool) -> None:
    if as_json:
        emit_json(
            [
                {"name": name, "description": preset.description, "options": preset.options}
                for name, preset in PRESETS.items()
            ]
        )
        return
    rows = [
        (name, preset.description, " ".join(_option(o, d) for o, d in preset.options.items()))
        for name, preset in PRESETS.items()
    ]
    columns = ("preset", "what it draws", "options and their defaults")
    emit_table(columns, rows, text=columns)


def _option(name: str, default: Any) -> str:
    return f"--{name}" if default is None else f"--{name} {default:g}"
