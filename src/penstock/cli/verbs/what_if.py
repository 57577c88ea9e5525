"""penstock what-if: a recorded day under other policies."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import click
import numpy as np

from penstock import units
from penstock.cli.common import comparison_table
from penstock.cli.common.options import (
    METRICS,
    PATH,
    Configuration,
    argument,
    option,
    typed,
)
from penstock.cli.common.output import emit_json, json_option
from penstock.cli.common.workload_files import as_live, knowledge
from penstock.config import Loaded
from penstock.errors import InputError, error_prefix
from penstock.model import Action
from penstock.progress import progress
from penstock.records import Difference, Header, Record, replay
from penstock.records.reader import SUFFIXES
from penstock.sim import formats, metrics
from penstock.sim.checks import check as check_workload
from penstock.sim.evaluate import policy_runs
from penstock.sim.evaluate.what_if_lanes import lanes
from penstock.sim.formats import from_record
from penstock.sim.formats.from_record import Recording
from penstock.sim.knowledge import Knowledge
from penstock.sim.workload import Floats

RECORDED = "recorded"
MOST_JOBS = 3
"""The number of jobs named as the largest gains, and losses."""
MOST_POLICIES = 3
"""The number of policies, the best ones, whose jobs are named; --json has all."""
NOTABLE = 0.001
"""The smallest relative change of a job's time that counts as a gain or loss."""
FAILED = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Options of the verb."""

    files: Annotated[
        tuple[Path, ...], argument(metavar="RECORD...", nargs=-1, required=True, type=PATH)
    ]
    policies: Annotated[
        str | None,
        option(
            "--policies",
            metavar="A,B,...",
            help="The sharing policies to simulate; by default all that the record has data for.",
        ),
    ]
    check: Annotated[
        bool,
        option(
            "--check",
            is_flag=True,
            help="Replay the recorded events; exit with status 1 if a decision differs.",
        ),
    ]
    trust: Annotated[
        tuple[str, ...],
        option(
            "--trust",
            multiple=True,
            metavar="FILE.py:CLASS",
            help="With --check: run this policy file, which the record names. Repeatable.",
        ),
    ]
    lanes: Annotated[
        bool,
        option(
            "--lanes",
            is_flag=True,
            help="With --json: add each job's activity over time, recorded and simulated.",
        ),
    ]


@click.command(name="what-if")
@typed(Options)
@Configuration(METRICS, policies=("sharing",))
@json_option
def what_if(*, options: Options, loaded: Loaded, as_json: bool) -> int:
    """Simulate the jobs of a RECORD under other policies, and compare with what happened.

    \b
    Examples:
      penstock what-if record-20260302-000000-a1b2-0003.jsonl --policies set-10,fair-share
      penstock what-if monday.jsonl.gz --window '9 h:17 h' --json
      penstock what-if monday.jsonl.gz --policies set-10,fair-share --lanes --json
      penstock what-if monday.jsonl.gz --check
      penstock what-if state/records

    A RECORD is a file that a controller writes, .jsonl or .jsonl.gz. Several files are the parts of
    one run, in order; a directory stands for the last run in it. The simulation uses the computing
    and the isolated I/O of each job, without its waiting, on the record's site. Policies know
    w_iter as the controller did, unless --knowledge is given.

    --check does not simulate: it replays the recorded events, from the first part of the run, and
    compares every decision with the recorded one.
    """
    files = options.files
    files = _latest(files[0]) if len(files) == 1 and files[0].is_dir() else files
    for file in files:
        formats.check_readable(file)
        formats.check_suffix(file, SUFFIXES)
    record = Record(*files)
    if options.lanes and (options.check or not as_json):
        raise InputError("--lanes needs --json, and cannot be combined with --check")
    if options.check:
        if options.policies is not None:
            raise InputError("--check does not simulate; leave out --policies")
        return _check(record, options.trust, as_json=as_json)
    result = _simulate(record, loaded, options.policies, with_lanes=options.lanes)
    emit_json(result) if as_json else _show(result)
    return 0


def _latest(directory: Path) -> tuple[Path, ...]:
    """Return the files of a controller's last run in a directory."""
    files = sorted(f for suffix in SUFFIXES for f in directory.glob(f"record-*{suffix}"))
    if not files:
        raise InputError(f"{directory} has no records; a controller writes them while it is up")
    run = files[-1].name.split("-")[3]
    return tuple(file for file in files if file.name.split("-")[3] == run)


def _check(record: Record, trust: Sequence[str], *, as_json: bool) -> int:
    """Replay the record; return the exit status."""
    replayed = replay(record, trusted={*trust, *map(_absolute, trust)})
    different = replayed.first_difference
    if as_json:
        emit_json(
            {
                "events": replayed.events,
                "actions": replayed.actions,
                "same": different is None,
                "first_difference": None if different is None else _description(different),
            }
        )
    elif different is None:
        click.echo(f"{replayed.events:,} events, {replayed.actions:,} actions: same decisions")
    else:
        click.echo(f"the decisions on the first {replayed.events:,} events are the same; then:")
        for key, value in _description(different).items():
            click.echo(f"  {key:9} {value}")
    return 0 if different is None else FAILED


def _absolute(policy: str) -> str:
    """Return a policy's file and class as a controller records them, with an absolute path."""
    file, _, name = policy.rpartition(":")
    return f"{Path(file).resolve()}:{name}"


def _description(different: Difference) -> dict[str, Any]:
    return {
        "where": different.where,
        "event": repr(different.event),
        "recorded": _listed(different.recorded),
        "replayed": _listed(different.replayed),
    }


def _listed(actions: Sequence[Action] | None) -> list[str] | str:
    return "the policy failed" if actions is None else [repr(action) for action in actions]


def _simulate(
    record: Record, loaded: Loaded, policies: str | None, *, with_lanes: bool
) -> dict[str, Any]:
    selected = policy_runs.select(loaded, policies)
    recording = from_record.load(record)
    workload, site = recording.workload, record.header.site
    task = policy_runs.Task(
        site=site,
        knowledge=_knowledge(loaded, record.header),
        window=loaded.config.simulation.seconds(),
        arbiter=_no_arbiter,
        options={loaded.config.sharing.policy: loaded.config.sharing.options},
        timeline=with_lanes,
        as_live=as_live(loaded),
    )
    skipped = policy_runs.missing_needs(workload, selected) if policies is None else {}
    runnable = {name: policy for name, policy in selected.items() if name not in skipped}
    with error_prefix(record.paths[0]):
        check_workload(workload, site)
        recorded = policy_runs.Outcome(
            metrics=metrics.measure(recording.run, task.window), finish=recording.run.finish
        )
        with progress("simulating", len(runnable)) as bar:
            outcomes = policy_runs.simulate(workload, runnable, task, bar.advance)
    figures = {RECORDED: recorded.figures()}
    figures |= {name: outcome.figures() for name, outcome in outcomes.items()}
    ranked = policy_runs.rank(figures, RECORDED)
    for name, outcome in outcomes.items():
        ranked[name]["jobs"] = _changes(recording, outcome.finish)
    result = {
        "record": _about(record, recording, task.knowledge),
        RECORDED: ranked.pop(RECORDED),
        "simulated": ranked,
        "skipped": [{"policy": name, "reason": reason} for name, reason in skipped.items()],
    }
    if with_lanes:
        runs = {name: o.run for name, o in outcomes.items() if o.run is not None}
        result["lanes"] = lanes(record, recording, runs)
    return result


def _no_arbiter() -> None:
    """Return None: jobs keep their recorded resources, as a record has no others' bandwidth."""


def _knowledge(loaded: Loaded, header: Header) -> Knowledge:
    """Return how well policies know jobs: as when recorded, unless the configuration says."""
    if header.learn is not None and "simulation.knowledge" not in loaded.origins:
        return Knowledge(kind="learned")
    return knowledge(loaded)


def _changes(recording: Recording, finish: Floats) -> dict[str, list[dict[str, Any]]]:
    """Return the jobs whose time from start to end changes most, relative to the recorded."""
    workload = recording.workload
    before, after = recording.run.finish - workload.release, finish - workload.release
    change = after / before - 1
    order = np.argsort(change, kind="stable").tolist()

    def job(j: int) -> dict[str, Any]:
        times = {RECORDED: float(before[j]), "simulated": float(after[j])}
        return {"job": workload.id(j), **times, "change": float(change[j])}

    return {
        "gain": [job(j) for j in order[:MOST_JOBS] if change[j] < -NOTABLE],
        "lose": [job(j) for j in order[::-1][:MOST_JOBS] if change[j] > NOTABLE],
    }


def _about(record: Record, recording: Recording, knowledge: Knowledge) -> dict[str, Any]:
    header = record.header
    return {
        "files": [click.format_filename(path) for path in record.paths],
        "run": header.run,
        "began": datetime.fromtimestamp(header.epoch + header.began, UTC).isoformat(),
        "policy": header.sharing.policy,
        "jobs": len(recording.workload),
        "iterations": recording.workload.iterations,
        "omega": recording.workload.omega,
        "knowledge": knowledge.kind,
        "cuts": asdict(recording.cuts),
        "notes": list(recording.notes),
    }


def _show(result: Mapping[str, Any]) -> None:
    about, simulated = result["record"], result["simulated"]
    name = about["files"][0] if len(about["files"]) == 1 else f"run {about['run']}"
    title = (
        f"{name}: {units.show_count(about['jobs'], 'job')}, "
        f"{units.show_count(about['iterations'], 'iteration')}"
    )
    # The recorded run comes first; every row below it is labelled as simulated.
    rows = {RECORDED: result[RECORDED]}
    rows |= {f"{policy}, simulated": figures for policy, figures in simulated.items()}
    comparison_table.show(rows, title, set(rows) - {RECORDED})
    click.echo(f"* best of the simulated; gain: in utilization, relative to the {RECORDED}")
    for policy, figures in list(simulated.items())[:MOST_POLICIES]:
        changes = [_jobs(kind, figures["jobs"][kind]) for kind in ("gain", "lose")]
        click.echo(f"{policy}: {'; '.join(filter(None, changes)) or 'no job gains or loses'}")
    for entry in result["skipped"]:
        click.echo(f"skipped {entry['policy']}: {entry['reason']}")
    for note in (*_cuts(about["cuts"]), *about["notes"]):
        click.echo(f"note: {note}")


def _jobs(kind: str, jobs: Sequence[Mapping[str, Any]]) -> str:
    if not jobs:
        return ""
    listed = (
        f"{job['job']} {100 * job['change']:+.1f}% "
        f"({job[RECORDED]:.4g} to {job['simulated']:.4g} s)"
        for job in jobs
    )
    return f"{kind}s most: {', '.join(listed)}"


def _cuts(cuts: Mapping[str, int]) -> list[str]:
    """Return in words what of the record could not be used as it is."""
    texts = {
        "jobs_before": ("job", "began before the record, counted from then"),
        "jobs_after": ("job", "still ran when the record ended, counted until then"),
        "jobs_idle": ("job", "did no work in the record, left out"),
        "jobs_moved": ("job", "used several sets of resources, counted with the most used set"),
        "phases": ("phase", "left out: the record has only a part"),
        "phases_direct": ("phase", "did direct I/O, counted as computing"),
        "phases_unmeasured": ("phase", "had no isolated length, counted as length zero"),
        "phases_too_fast": ("phase", "ran faster than isolated: the bandwidth is inaccurate"),
    }
    return [
        f"{units.show_count(cuts[key], noun)} {text}"
        for key, (noun, text) in texts.items()
        if cuts[key]
    ]
