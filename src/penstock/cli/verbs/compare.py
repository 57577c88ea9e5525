"""penstock compare: policies side by side."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import click
import msgspec

from penstock.campaign.statistics import MOST_WORKLOADS
from penstock.cli.common import comparison_table, contenders, executor_options, workload_files
from penstock.cli.common.conditions import Conditions
from penstock.cli.common.contenders import Contenders
from penstock.cli.common.options import PATH, argument, option, typed
from penstock.cli.common.output import emit_json, json_option
from penstock.cli.common.terminal import echo
from penstock.cli.common.workload_files import Reader, explain_window
from penstock.config import Loaded
from penstock.files import check_writable
from penstock.model import Site
from penstock.printable import display_name
from penstock.sim.evaluate import divisions
from penstock.sim.evaluate.comparison import Entrant
from penstock.sim.evaluate.draws import Distinct, Draws, check_distinct
from penstock.units import show_count

FEW_WORKLOADS = 2
FEW = "two workloads say little: give more files, or more --seeds"
PANELS = 3
"""The metrics that are drawn: the first of the table."""
OF_KIND = {
    "sharing": "sharing policies",
    "allocation": "allocations, all jobs at once and resources shared evenly",
    "packing": "packings",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Options of the verb."""

    files: Annotated[tuple[Path, ...], argument(nargs=-1, required=True, type=PATH)]
    policies: Annotated[
        str | None,
        option(
            "--policies",
            metavar="A,B,...",
            help="The sharing policies to compare; by default all that the files have data for. "
            "All take minutes with --seeds 20, a few take seconds.",
        ),
    ]
    packing: Annotated[
        str | None,
        option(
            "--packing",
            metavar="A,B,...",
            help="Compare these packing policies instead, under --policies NAME (by default "
            "exclusive-fcfs).",
        ),
    ]
    seeds: Annotated[
        int,
        option(
            "--seeds",
            metavar="N",
            type=click.IntRange(1, MOST_WORKLOADS),
            default=1,
            show_default=True,
            help="Compare on N workloads per file: draws of its generator, or variants of it.",
        ),
    ]
    plot: Annotated[
        Path | None,
        option("--plot", metavar="FILE", type=PATH, help="Draw the metrics (.png, .svg or .pdf)."),
    ]
    out: Annotated[Path | None, contenders.out]
    jobs: Annotated[int | None, executor_options.jobs]
    io_ratio: Annotated[float | None, workload_files.io_ratio]
    w_iter: Annotated[str | None, workload_files.w_iter]


@click.command()
@typed(Options)
@contenders.configuration
@json_option
def compare(
    *, options: Options, loaded: Loaded, several: Mapping[str, Sequence[str]], as_json: bool
) -> None:
    """Simulate each of the FILES under each policy, and print the metrics side by side.

    \b
    Examples:
      penstock compare jobs.json --seeds 20
      penstock compare monday.json tuesday.json --policies fair-share,set-10,greedy-yield
      penstock compare jobs.npz --knowledge learned --window '2 h:4 h' --json
      penstock compare jobs.json --seeds 8 --policies fair-share,set-10 --plot compared.png
      penstock compare days/*.json --out year --on slurm --set campaign.jobs=20

    The gain is relative to fair-share, or to the first policy where fair-share is not compared:
    of the mean over all workloads, with its 95% interval (paired: by the differences workload by
    workload) and the number of workloads on which the policy is better. A star marks the best
    value of a column. 'needs to know' and 'can run live' say what a policy must know of jobs, and
    whether a live controller can. The last line says which policy to take, or that the workloads
    do not tell; it tests all policies at once, by wider intervals than the printed ones, so that
    the best of many is not taken by chance. By default the site is ideal: before you take a policy
    live, add --as-live --knowledge learned.

    With --seeds N each file stands for N workloads. A file of 'penstock generate' says what drew
    it, and the same generator draws the others with the following seeds. Of any other file there
    are variants: each job is released later by a random part of its w_iter. The output says which.

    Lists of allocators or placers are compared by the metrics of paper io-resources, packers
    (--packing) by those of paper packs: see docs/simulate/resources.md and docs/simulate/packs.md.

    \b
      penstock compare resources.json --allocation one,n-sys,t-cpu --set site.resources=20
      penstock compare packs.json --packing first-fit,pack-partition --set site.nodes=2048

    [sharing.options] of the configuration apply to the policy that [sharing] names. 'penstock
    simulate --help' describes the file formats. With --out, DIR gets cells.jsonl (one line per
    finished simulation), results.csv and comparison.json. After an interruption the same command
    continues where it stopped; files, seeds and policies can be added later. See
    docs/simulate/campaigns.md for clusters.
    """
    compared = contenders.choose(loaded, options.policies, several=several, packing=options.packing)
    if options.plot is not None:
        from penstock.report import gantt, plots  # noqa: PLC0415 - matplotlib takes half a second

        gantt.check_format(options.plot)
        check_writable(options.plot)
    reader = Reader(loaded, options.files, options.io_ratio, options.w_iter)
    entrants = _Entrants(reader, options.files, options.seeds)
    comparison = contenders.run(
        compared,
        entrants,
        len(options.files) * options.seeds,
        loaded=loaded,
        jobs=options.jobs,
        out=options.out,
    )
    contest = compared.contest(comparison.files)
    conditions = Conditions.of(loaded, compared.kind)
    for k, file in enumerate(comparison.files):
        for name, gain in contest.of_workload(k).items():
            file["policies"][name]["gain"] = gain
    policies = contest.summary()
    if compared.kind == "allocation":
        _add_exceeds(policies, comparison.files, loaded.config.site.site())
    result = {
        "kind": compared.kind,
        "base": contest.base,
        **conditions.as_json(),
        "workloads": contest.count,
        "method": entrants.methods,
        "policies": policies,
        "choice": msgspec.to_builtins(contest.choose()),
        "files": comparison.files,
        "skipped": comparison.skipped,
        "notes": list(compared.notes),
    }
    if options.out is not None:
        contenders.write_results(options.out, comparison, result)
    if options.plot is not None:
        figure = _figure(result, compared, conditions)
        plots.write(figure, options.plot)
    if as_json:
        emit_json(result)
    else:
        _show(result, compared, conditions, loaded, options.plot)


def _add_exceeds(
    policies: Mapping[str, dict[str, Any]], files: Sequence[Mapping[str, Any]], site: Site
) -> None:
    """Say of each policy whether it gave more resources than exist, by workload and on any."""
    for name, entry in policies.items():
        figures = [file["policies"][name] for file in files]
        for each in figures:
            each["exceeds"] = divisions.exceeds(each, site)
        entry["exceeds"] = any(each["exceeds"] for each in figures)


class _Entrants:
    """The workloads of the files, made one after the other when they are needed."""

    def __init__(self, reader: Reader, files: Sequence[Path], seeds: int) -> None:
        self._reader, self._files, self._seeds = reader, files, seeds
        self._draws: list[Draws] = []
        self._distinct = Distinct()
        self.methods: list[str] = []
        """How the workloads of each file were made."""

    def __iter__(self) -> Iterator[Entrant]:
        for path in self._files:
            name = display_name(path)
            draws = Draws.of(name, self._reader.read(path), self._seeds)
            self._draws.append(draws)
            check_distinct(self._draws)
            self.methods.append(draws.method)
            for seed, workload in draws:
                number = None if self._seeds == 1 else seed
                entrant = Entrant(file=name, workload=workload, seed=number)
                self._distinct.check(workload, entrant.name)
                yield entrant


def _show(
    result: Mapping[str, Any],
    compared: Contenders,
    conditions: Conditions,
    loaded: Loaded,
    plot: Path | None,
) -> None:
    policies, count, choice = result["policies"], result["workloads"], result["choice"]
    shown = comparison_table.show_contest(
        policies,
        _title(result),
        kind=compared.kind,
        higher_is_better=compared.metrics.higher_is_better,
        workloads=count,
        base=result["base"],
    )
    metric = compared.metrics.primary.replace("_", " ")
    interval = " [95% interval]; wins: workloads on which it is better" if count > 1 else ""
    if len(policies) > 1:
        star = "* best; " if shown.starred else ""
        echo(f"{star}gain: in {metric}, relative to {result['base']}{interval}")
    if shown.dropped:
        echo(f"left out of this narrow terminal: {', '.join(shown.dropped)}; --json has all")
    if count > 1:
        echo(f"workloads: {'; '.join(result['method'])}")
    if conditions.text:
        echo(conditions.text)
    for entry in result["skipped"]:
        echo(f"skipped {entry['policy']} on {entry['file']}: {entry['reason']}")
    for note in result["notes"]:
        echo(note)
    if plot is not None:
        echo(f"{display_name(plot)}: drawn")
    windows = {f.get("window") for file in result["files"] for f in file["policies"].values()}
    if len(windows) == 1 and (window := windows.pop()) is not None:
        echo(explain_window(window, loaded))
    if len(policies) == 1:
        return
    if count == FEW_WORKLOADS:
        echo(FEW)
    taken = choice["policy"] not in (None, result["base"])
    caution = conditions.caution(needs=bool(policies[choice["policy"]]["needs"])) if taken else ""
    reason = choice["reason"]
    echo(f"{reason[0].upper()}{reason[1:]}. {caution}".rstrip())


def _title(result: Mapping[str, Any]) -> str:
    files = result["files"]
    names = list(dict.fromkeys(file["file"] for file in files))
    jobs, iterations = (sum(file[key] for file in files) for key in ("jobs", "iterations"))
    name = names[0] if len(names) == 1 else f"{len(names)} files"
    means = f"means over {len(files)} workloads, " if len(files) > 1 else ""
    kind = "" if result["kind"] == "sharing" else f"{OF_KIND[result['kind']]}, "
    size = f"{show_count(jobs, 'job')}, {show_count(iterations, 'iteration')}"
    return f"{name}: {kind}{means}{size}"


def _figure(result: Mapping[str, Any], compared: Contenders, conditions: Conditions) -> Any:
    """Return what policies gain in the three first metrics, as dots with intervals."""
    from penstock.report.findings import Dots, Figure  # noqa: PLC0415

    headings = list(comparison_table.OF_KIND[compared.kind].items())[:PANELS]
    return Figure(
        name="compare",
        title=_title(result),
        source=conditions.brief,
        caption="; ".join(result["method"]),
        panels=[
            Dots(
                title=f"{' '.join(heading.split())}: gain over {result['base']}, %",
                labels=list(result["policies"]),
                value=_ends(result, metric, "value"),
                low=_ends(result, metric, "low"),
                high=_ends(result, metric, "high"),
                better="higher",
                reference=0.0,
                form="+.1f",
            )
            for metric, heading in headings
        ],
    )


def _ends(result: Mapping[str, Any], metric: str, end: str) -> list[float]:
    """Return one end of the policies' gains in per cent; without intervals it is the gain."""
    gains = [figures["gains"][metric] for figures in result["policies"].values()]
    return [100 * (g["value"] if math.isnan(g[end]) else g[end]) for g in gains]
