"""penstock generate: synthetic workloads by name."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from penstock import units
from penstock.cli.common.options import PATH
from penstock.cli.common.output import emit_json, emit_table, json_option
from penstock.cli.common.terminal import echo
from penstock.cli.common.workload_files import show_progress
from penstock.errors import InputError, error_prefix, unknown
from penstock.files import check_writable
from penstock.printable import display_name
from penstock.sim import formats, generators
from penstock.sim.formats import free_memory
from penstock.sim.generators import PRESETS
from penstock.sim.generators.io_sets import HORIZON
from penstock.sim.generators.packs import SIZES
from penstock.sim.workload import MOST_SEED, Workload

SAMPLE_JOBS = 60
CLASSES = ("n_h", "n_m", "n_l")
"""Options of io-sets that set the jobs of one class."""
BYTES_PER_ITERATION = 48
LONG = 2_000_000
"""The number of iterations from which writing shows its progress."""


@click.command()
@click.argument("preset", required=False)
@click.option("--out", metavar="FILE", type=PATH, help="The file to write, .json or .npz.")
@click.option("--jobs", metavar="N", type=int, help="The number of jobs.")
@click.option(
    "--omega", metavar="SUM", type=float, help="io-sets, plafrim: the sum of the jobs' I/O ratios."
)
@click.option(
    "--noise", metavar="PART", type=float, help="io-sets, plafrim: the variation of phases, as 0.1."
)
@click.option("--horizon", metavar="TIME", help="io-sets, plafrim: how long jobs last.")
@click.option(
    "--n-h", metavar="N", type=int, help="io-sets: the jobs of w_iter 10 s; by default a third."
)
@click.option("--n-m", metavar="N", type=int, help="io-sets: the jobs of w_iter 100 s.")
@click.option("--n-l", metavar="N", type=int, help="io-sets: the jobs of w_iter 1000 s.")
@click.option(
    "--theta",
    metavar="LOAD",
    type=float,
    help="io-resources, targets: the I/O load if every job had one resource.",
)
@click.option(
    "--alpha", metavar="LOAD", type=float, help="packs: the I/O occupation of an I/O node."
)
@click.option(
    "--loads",
    metavar="LOW HIGH",
    type=(float, float),
    help="packs: the interval of a job's I/O time over its compute time.",
)
@click.option(
    "--deviation", metavar="VALUE", type=float, help="packs: the standard deviation of that load."
)
@click.option(
    "--sizes",
    type=click.Choice(SIZES),
    help="packs: the distribution of job sizes on 1, 2, 4, ..., 2048 nodes.",
)
@click.option(
    "--size-factor", metavar="F", type=float, help="packs: multiplies the mean of job sizes."
)
@click.option(
    "--seed",
    metavar="N",
    type=click.IntRange(0, MOST_SEED),
    default=1,
    show_default=True,
    help="The seed of the random numbers.",
)
@click.option("--list", "list_presets", is_flag=True, help="List the presets and their options.")
@json_option
def generate(
    *,
    preset: str | None,
    out: Path | None,
    seed: int,
    list_presets: bool,
    as_json: bool,
    **flags: Any,
) -> None:
    """Generate a synthetic workload, and write it to a file.

    \b
    Examples:
      penstock generate --list
      penstock generate io-sets --out jobs.json
      penstock generate io-sets --jobs 1000 --omega 0.9 --seed 7 --out large.npz
      penstock generate io-sets --n-h 40 --n-m 10 --n-l 10 --out short.json
      penstock generate plafrim --horizon '6 h' --out plafrim.json
      penstock generate io-resources --theta 0.8 --out resources.json
      penstock generate packs --alpha 3 --out packs.json
      penstock generate packs --sizes geometric --loads 0 2 --out wide.json

    The same options and seed always give the same workload, and the file says which they were:
    'penstock compare FILE --seeds 20' draws more of the same kind, 'penstock sweep' varies an
    option. A .json file can be read and changed by
    people and scripts; a .npz file is smaller, and much faster to read.
    """
    if list_presets:
        _list(as_json)
        return
    if preset is None:
        raise InputError(f"give a preset: {', '.join(PRESETS)}; --list describes them")
    if preset not in PRESETS:
        raise unknown("preset", preset, PRESETS)
    if out is None:
        raise InputError(f"give --out FILE, with a suffix of {', '.join(formats.WRITABLE)}")
    formats.check_suffix(out, formats.WRITABLE)
    check_writable(out)
    options = _options(preset, flags)
    workload = _make(preset, options, seed)
    with show_progress(f"writing {out.name}", large=workload.iterations > LONG) as watch:
        formats.write(workload, out, report=watch)
    size = out.stat().st_size
    result = {
        "preset": preset,
        "file": display_name(out),
        "bytes": size,
        "jobs": len(workload),
        "iterations": workload.iterations,
        "omega": workload.omega,
        "seed": seed,
        **{n: v for n, v in options.items() if n not in ("jobs", "omega") and v is not None},
    }
    if as_json:
        emit_json(result)
    else:
        echo(
            f"{result['file']}: {units.show_count(len(workload), 'job')}, "
            f"{units.show_count(workload.iterations, 'iteration')}, "
            f"omega (sum of I/O ratios) {workload.omega:.4g}, {units.show_volume(size)}; "
            f"next: {PRESETS[preset].next.format(file=result['file'])}"
        )


def _options(preset: str, flags: Mapping[str, Any]) -> dict[str, Any]:
    """Return all options of a preset: the flags, and defaults for the rest."""
    defaults = PRESETS[preset].options
    options = {name: value for name, value in flags.items() if value is not None}
    for name in options:
        if name not in defaults:
            valid = ", ".join(map(_flag, defaults))
            raise InputError(f"{_flag(name)} is not an option of {preset}, which has {valid}")
    if "horizon" in options:
        with error_prefix("--horizon"):
            options["horizon"] = units.seconds(options["horizon"])
        if not options["horizon"] > 0:
            raise InputError("--horizon is 0; give a positive time")
    if options.get("jobs", 1) < 1:
        raise InputError(f"--jobs is {options['jobs']}; give at least 1")
    return defaults | options


def _make(preset: str, options: dict[str, Any], seed: int) -> Workload:
    if "horizon" not in options:
        return generators.draw(preset, seed, options)
    # A small sample tells how much memory this one will need.
    small = {"jobs": SAMPLE_JOBS, "horizon": min(options["horizon"], HORIZON)}
    jobs, classes = options["jobs"], [name for name in CLASSES if options.get(name) is not None]
    if classes:  # as if all were of the class that has the most iterations
        small |= {"n_h": SAMPLE_JOBS, "n_m": 0, "n_l": 0}
        jobs = sum(options[name] for name in classes) + jobs // 3 * (len(CLASSES) - len(classes))
    sample = PRESETS[preset].make(**(options | small | {"omega": 1.0, "noise": 0.0}), seed=seed)
    scale = max(1.0, jobs / SAMPLE_JOBS) * max(1.0, options["horizon"] / HORIZON)
    need, free = sample.iterations * scale * BYTES_PER_ITERATION, free_memory.available()
    if free is not None and need > free:
        raise InputError(
            f"{jobs:,} jobs over {units.show_seconds(options['horizon'])} need "
            f"{units.show_volume(need)} of memory, but {units.show_volume(free)} are available; "
            "lower --jobs or --horizon"
        )
    return generators.draw(preset, seed, options)


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
    columns = ("preset", "content", "options and their defaults")
    emit_table(columns, rows, text=columns)


def _option(name: str, default: Any) -> str:
    if default is None:
        return _flag(name)
    values = default if isinstance(default, tuple) else (default,)
    texts = (one if isinstance(one, str) else f"{one:g}" for one in values)
    return " ".join([_flag(name), *texts])


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"
