"""penstock sweep: how the gain of policies depends on a generator's parameters."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Annotated, Any

import click
import msgspec

from penstock.campaign.statistics import MOST_WORKLOADS, Estimate
from penstock.cli.common import contenders, executor_options
from penstock.cli.common.comparison_table import OF_KIND, show_gain, show_value
from penstock.cli.common.conditions import Conditions
from penstock.cli.common.options import PATH, argument, option, typed
from penstock.cli.common.output import emit_json, emit_table, json_option
from penstock.cli.common.terminal import echo
from penstock.config import Loaded
from penstock.errors import InputError, error_prefix, unknown
from penstock.files import check_writable
from penstock.printable import display_name
from penstock.sim.evaluate.comparison import Entrant
from penstock.sim.evaluate.gains import Contest
from penstock.sim.generators import PRESETS, draw
from penstock.units import show_count

MOST_POINTS = 1000
BY_CHANCE = " (each 95%: one of forty is above, and one below, by chance alone)"
Point = Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Options of the verb."""

    preset: Annotated[str, argument()]
    over: Annotated[
        tuple[str, ...],
        option(
            "--over",
            metavar="NAME=VALUES",
            multiple=True,
            required=True,
            help="An option of the generator, and its values: 0.5,0.8 or BEGIN:END:STEP. "
            "Repeatable: all combinations. A single value fixes it.",
        ),
    ]
    policies: Annotated[
        str | None,
        option(
            "--policies",
            metavar="A,B,...",
            help="The sharing policies to compare; by default fair-share and the configured one.",
        ),
    ]
    packing: Annotated[
        str | None,
        option("--packing", metavar="A,B,...", help="Compare these packing policies instead."),
    ]
    seeds: Annotated[
        int,
        option(
            "--seeds",
            metavar="N",
            type=click.IntRange(1, MOST_WORKLOADS),
            default=4,
            show_default=True,
            help="The number of workloads to draw at each point: seeds 1 to N.",
        ),
    ]
    metric: Annotated[
        str | None,
        option("--metric", metavar="NAME", help="The metric to show; by default the first."),
    ]
    plot: Annotated[
        Path | None,
        option("--plot", metavar="FILE", type=PATH, help="Draw the gains (.png, .svg or .pdf)."),
    ]
    out: Annotated[Path | None, contenders.out]
    jobs: Annotated[int | None, executor_options.jobs]


@click.command()
@typed(Options)
@contenders.configuration
@json_option
def sweep(
    *, options: Options, loaded: Loaded, several: Mapping[str, Sequence[str]], as_json: bool
) -> None:
    """Compare policies over the parameters of the generator PRESET: a table, or a plot of gains.

    \b
    Examples:
      penstock sweep io-sets --over omega=0.5,0.8 --over jobs=12 --over horizon=4000
      penstock sweep io-sets --over n_h=0:12:6 --over n_m=6 --over n_l=6 --over horizon=4000 \\
          --policies fair-share,set-10,greedy-yield --plot sweep.png
      penstock sweep packs --over alpha=1,3 --over jobs=25 --seeds 2 \\
          --packing first-fit,pack-partition --set site.nodes=2048

    'penstock generate --list' names the generators and their options. At each point all policies
    run the same N workloads (--seeds); the gain is relative to fair-share or the first policy, with
    its 95% interval, as in 'penstock compare'. --json has all metrics at all points.
    """
    if options.preset not in PRESETS:
        raise unknown("preset", options.preset, PRESETS)
    points = _points(options.preset, options.over)
    wanted = options.policies
    if wanted is None and not several and options.packing is None:
        configured = loaded.config.sharing.policy
        wanted = ",".join(dict.fromkeys((contenders.UNMANAGED, configured)))
    compared = contenders.choose(loaded, wanted, several=several, packing=options.packing)
    metric = options.metric or compared.metrics.primary
    if metric not in compared.metrics.higher_is_better:
        raise unknown("metric", metric, compared.metrics.higher_is_better)
    if options.plot is not None:
        from penstock.report import gantt, plots  # noqa: PLC0415 - matplotlib takes half a second

        gantt.check_format(options.plot)
        check_writable(options.plot)
    comparison = contenders.run(
        compared,
        _entrants(options.preset, points, options.seeds),
        len(points) * options.seeds,
        loaded=loaded,
        jobs=options.jobs,
        out=options.out,
    )
    contests = [
        compared.contest(comparison.files[k * options.seeds : (k + 1) * options.seeds])
        for k in range(len(points))
    ]
    conditions = Conditions.of(loaded, compared.kind)
    result = {
        "preset": options.preset,
        "kind": compared.kind,
        "base": contests[0].base,
        "seeds": options.seeds,
        **conditions.as_json(),
        "metric": metric,
        "points": [
            {
                "parameters": dict(point),
                "workloads": contest.count,
                "policies": contest.summary(),
                "choice": msgspec.to_builtins(contest.choose()),
            }
            for point, contest in zip(points, contests, strict=True)
        ],
        "skipped": comparison.skipped,
    }
    if options.out is not None:
        contenders.write_results(options.out, comparison, result)
    if options.plot is not None:
        plots.write(_figure(result, points, contests, conditions), options.plot)
    emit_json(result) if as_json else _show(result, points, contests, conditions, options.plot)


def _points(preset: str, texts: Sequence[str]) -> list[Point]:
    """Return all combinations of the parameters' values."""
    known = PRESETS[preset].options
    values: dict[str, list[float]] = {}
    for text in texts:
        name, equals, listed = text.partition("=")
        name = name.strip().replace("-", "_")
        if not equals:
            raise InputError(f"--over {text!r} is not of the form NAME=VALUES (omega=0.5,0.8)")
        if name not in known:
            raise unknown(f"option of {preset}", name, known)
        if isinstance(known[name], str | tuple):
            raise InputError(f"--over {name}: it is no number; 'penstock generate' sets it")
        if name in values:
            raise InputError(f"--over names {name} twice; give all its values at once")
        with error_prefix(f"--over {text!r}"):
            values[name] = _values(listed)
    if math.prod(map(len, values.values())) > MOST_POINTS:
        raise InputError(f"--over gives more than {MOST_POINTS} points; take larger steps")
    return [dict(zip(values, point, strict=True)) for point in product(*values.values())]


def _values(text: str) -> list[float]:
    parts = text.split(":")
    try:
        if len(parts) == 1:
            return [_number(part) for part in text.split(",")]
        begin, end, step = map(_number, parts)
    except ValueError as error:
        raise InputError("give numbers: 0.5,0.8, or BEGIN:END:STEP") from error
    if not step > 0 or not begin <= end or not (end - begin) / step < MOST_POINTS:
        raise InputError(f"give BEGIN <= END and a positive STEP, at most {MOST_POINTS} values")
    # The tolerance keeps the end where steps such as 0.1 do not add up to it exactly.
    count = int((end - begin) / step + 1e-9) + 1
    return [_rounded(begin + k * step) for k in range(count)]


def _number(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(text)
    return _rounded(number)


def _rounded(number: float) -> float:
    """Return whole numbers as int, which generators count with, and others without a tail."""
    return int(number) if number == int(number) else float(f"{number:.12g}")


def _entrants(preset: str, points: Sequence[Point], seeds: int) -> Iterator[Entrant]:
    for point in points:
        name = ", ".join(f"{key}={value:g}" for key, value in point.items())
        for seed in range(1, seeds + 1):
            with error_prefix(f"{preset} at {name}"):
                workload = draw(preset, seed, point)
            yield Entrant(file=preset, workload=workload, seed=seed, point=name)


def _show(
    result: Mapping[str, Any],
    points: Sequence[Point],
    contests: Sequence[Contest],
    conditions: Conditions,
    plot: Path | None,
) -> None:
    base, metric = result["base"], result["metric"]
    names = [name for name in contests[0].names if name != base]
    varied = [key for key in points[0] if len({point[key] for point in points}) > 1] or list(
        points[0]
    )
    rows = [
        (
            *(f"{point[key]:g}" for key in varied),
            show_value(float(contest.values(base, metric).mean())),
            *(show_gain(contest.gain(name, metric)) for name in names),
        )
        for point, contest in zip(points, contests, strict=True)
    ]
    fixed = "".join(f", {key} {points[0][key]:g}" for key in points[0] if key not in varied)
    label = metric.replace("_", " ")
    echo(
        f"{result['preset']}{fixed}: {label} of {base}, and the gain of others over it, "
        f"{show_count(result['seeds'], 'workload')} per point"
    )
    emit_table((*varied, base, *names), rows, drop=list(reversed(names))[:-1])
    if conditions.text:
        echo(conditions.text)
    for name in names:
        gains = [contest.gain(name, metric) for contest in contests]
        better, worse = (
            sum(getattr(gain, which) for gain in gains) for which in ("above_zero", "below_zero")
        )
        echo(
            f"{name}: of {show_count(len(points), 'point')}, the interval is above zero at "
            f"{better} and below at {worse}"
            f"{BY_CHANCE if result['seeds'] > 1 else '; --seeds 1 has no intervals'}"
        )
    if plot is not None:
        echo(f"{display_name(plot)}: drawn")


def _figure(
    result: Mapping[str, Any],
    points: Sequence[Point],
    contests: Sequence[Contest],
    conditions: Conditions,
) -> Any:
    """Return gains over the first parameter that varies, one panel per value of the others."""
    from penstock.report.findings import Curves, Figure, Reference, Series  # noqa: PLC0415

    base, metric = result["base"], result["metric"]
    varied = [key for key in points[0] if len({point[key] for point in points}) > 1]
    x = varied[0] if varied else next(iter(points[0]))
    panels: dict[str, list[tuple[float, Contest]]] = {}
    for point, contest in zip(points, contests, strict=True):
        title = ", ".join(f"{key} {point[key]:g}" for key in varied if key != x)
        panels.setdefault(title, []).append((point[x], contest))
    heading = " ".join(OF_KIND[result["kind"]].get(metric, metric.replace("_", " ")).split())

    def series(name: str, at: Sequence[tuple[float, Contest]]) -> Series:
        gains = [contest.gain(name, metric) for _, contest in at]
        return Series(
            label=name,
            x=[value for value, _ in at],
            y=[100 * gain.value for gain in gains],
            low=[100 * _end(gain, gain.low) for gain in gains],
            high=[100 * _end(gain, gain.high) for gain in gains],
        )

    return Figure(
        name="sweep",
        title=f"{result['preset']}: gain over {base}, "
        f"{show_count(result['seeds'], 'workload')} per point",
        source=conditions.brief,
        caption="means with 95% intervals",
        panels=[
            Curves(
                title=title or heading,
                x=x,
                y=f"gain in {heading}, %",
                series=[series(name, at) for name in contests[0].names if name != base],
                references=[Reference(y=0.0, label=base)],
            )
            for title, at in panels.items()
        ],
        columns=3,
    )


def _end(gain: Estimate, end: float) -> float:
    return gain.value if math.isnan(end) else end
