"""penstock what-if: what other policies would have made of a recorded day."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
import numpy as np

from penstock.cli.common import comparison_table, options
from penstock.cli.common.output import emit_json
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
MOST = 3
"""Jobs that are named for gaining, and for losing, most."""
TOLD = 3
"""Policies whose jobs are named, the best ones; --json has all."""
NOTABLE = 0.001
"""A job whose time changes by a smaller part neither gains nor loses."""
FAILED = 1


@click.command(name="what-if", short_help="Other policies on a recorded day.")
@click.argument(
    "files", metavar="RECORD...", nargs=-1, required=True, type=click.Path(path_type=Path)
)
@click.option(
    "--policies", metavar="A,B,...", help="Which to simulate; else all that the record can feed."
)
@click.option(
    "--check", is_flag=True, help="Replay the events: the same decisions, or exit status 1."
)
@click.option(
    "--trust",
    multiple=True,
    metavar="FILE.py:CLASS",
    help="With --check: run this policy file, which the record names. Repeatable.",
)
@click.option(
    "--lanes",
    "with_lanes",
    is_flag=True,
    help="With --json: what each job did when, recorded and simulated.",
)
@options.measured
@options.configured
@options.as_json
def what_if(
    *,
    files: tuple[Path, ...],
    policies: str | None,
    check: bool,
    trust: tuple[str, ...],
    with_lanes: bool,
    knowledge: str | None,
    seed: str | None,
    window: str | None,
    config_file: Path | None,
    settings: tuple[str, ...],
    as_json: bool,
) -> int:
    """Simulate the jobs of a RECORD under other policies, beside what was recorded.

    \b
    Examples:
      penstock what-if record-20260302-000000-a1b2-0003.jsonl --policies set-10,fair-share
      penstock what-if monday.jsonl.gz --window '9 h:17 h' --json
      penstock what-if monday.jsonl.gz --policies set-10,fair-share --lanes --json
      penstock what-if monday.jsonl.gz --check
      penstock what-if state/records

    A RECORD is what a controller writes, .jsonl or .jsonl.gz; several are parts of one run, in
    order; a directory stands for the last run in it. Jobs keep their computing and their isolated
    I/O, which are simulated anew on the record's site; waiting is left out. Policies know w_iter as
    the controller did, unless --knowledge says otherwise. --check simulates nothing: it puts the
    recorded events, from the first part of the run on, through a fresh Manager, which must decide
    what is recorded.
    """
    flags = {"simulation.knowledge": knowledge, "simulation.seed": seed}
    loaded = options.load(config_file, settings, {**flags, "simulation.window": window})
    files = _latest(files[0]) if len(files) == 1 and files[0].is_dir() else files
    for file in files:
        formats.check_readable(file)
        formats.check_suffix(file, SUFFIXES)
    record = Record(*files)
    if with_lanes and (check or not as_json):
        raise InputError("--lanes are for programs, of what is simulated; give --json, not --check")
    if check:
        if policies is not None:
            raise InputError("--check simulates nothing; leave --policies out")
        return _check(record, trust, as_json=as_json)
    result = _simulate(record, loaded, policies, with_lanes=with_lanes)
    emit_json(result) if as_json else _show(result)
    return 0


def _latest(directory: Path) -> tuple[Path, ...]:
    """Return the parts of a controller's last run, of all that it left in a directory."""
    found = sorted(f for suffix in SUFFIXES for f in directory.glob(f"record-*{suffix}"))
    if not found:
        raise InputError(f"{directory} has no records; a controller writes them while it is up")
    run = found[-1].name.split("-")[3]
    return tuple(file for file in found if file.name.split("-")[3] == run)


def _check(record: Record, trust: Sequence[str], *, as_json: bool) -> int:
    """Replay the record; return the exit status."""
    replayed = replay(record, trusted={*trust, *map(_located, trust)})
    different = replayed.first_difference
    if as_json:
        emit_json(
            {
                "events": replayed.events,
                "actions": replayed.actions,
                "same": different is None,
                "first_difference": None if different is None else _told(different),
            }
        )
    elif different is None:
        click.echo(f"{replayed.events:,} events, {replayed.actions:,} actions: decided the same")
    else:
        click.echo(f"the first {replayed.events:,} events are decided the same; then")
        for key, value in _told(different).items():
            click.echo(f"  {key:9} {value}")
    return 0 if different is None else FAILED


def _located(policy: str) -> str:
    """Return a policy's file and class as a controller writes them down: found from anywhere."""
    file, _, made = policy.rpartition(":")
    return f"{Path(file).resolve()}:{made}"


def _told(different: Difference) -> dict[str, Any]:
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
    chosen = policy_runs.select(loaded, policies)
    recording = from_record.load(record)
    workload, site = recording.workload, record.header.site
    task = policy_runs.Task(
        site=site,
        knowledge=_knowledge(loaded, record.header),
        window=loaded.config.simulation.seconds(),
        arbiter=_nobody,
        options={loaded.config.sharing.policy: loaded.config.sharing.options},
        timeline=with_lanes,
    )
    skipped = policy_runs.missing_needs(workload, chosen) if policies is None else {}
    runnable = {name: policy for name, policy in chosen.items() if name not in skipped}
    with error_prefix(record.paths[0]):
        check_workload(workload, site)
        happened = policy_runs.Outcome(
            metrics=metrics.measure(recording.run, task.window), finish=recording.run.finish
        )
        with progress("simulating", len(runnable)) as shown:
            outcomes = policy_runs.simulate(workload, runnable, task, shown.advance)
    figures = {RECORDED: happened.figures()}
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


def _nobody() -> None:
    """Jobs keep the resources that they had: a record does not tell what others would give."""


def _knowledge(loaded: Loaded, header: Header) -> Knowledge:
    """Return what policies know: what the record's did, unless somebody chose."""
    if header.learn is not None and "simulation.knowledge" not in loaded.origins:
        return Knowledge(kind="learned")
    return options.knowledge(loaded)


def _changes(recording: Recording, finish: Floats) -> dict[str, list[dict[str, Any]]]:
    """Return whose time from start to end shrinks, and grows, by the largest part."""
    workload = recording.workload
    before, after = recording.run.finish - workload.release, finish - workload.release
    change = after / before - 1
    order = np.argsort(change, kind="stable").tolist()

    def job(j: int) -> dict[str, Any]:
        times = {RECORDED: float(before[j]), "simulated": float(after[j])}
        return {"job": workload.id(j), **times, "change": float(change[j])}

    return {
        "gain": [job(j) for j in order[:MOST] if change[j] < -NOTABLE],
        "lose": [job(j) for j in order[::-1][:MOST] if change[j] > NOTABLE],
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
    title = f"{name}: {about['jobs']:,} jobs, {about['iterations']:,} iterations"
    # What happened comes first; all below it is simulated, and says so.
    rows = {RECORDED: result[RECORDED]}
    rows |= {f"{policy}, simulated": figures for policy, figures in simulated.items()}
    comparison_table.show(rows, title, set(rows) - {RECORDED})
    click.echo(f"* best of the simulated; gain: simulated utilization over the {RECORDED}")
    for policy, figures in list(simulated.items())[:TOLD]:
        told = [_named(kind, figures["jobs"][kind]) for kind in ("gain", "lose")]
        click.echo(f"{policy}: {'; '.join(filter(None, told)) or 'no job gains or loses'}")
    for entry in result["skipped"]:
        click.echo(f"left out {entry['policy']}: {entry['reason']}")
    for note in (*_cuts(about["cuts"]), *about["notes"]):
        click.echo(f"note: {note}")


def _named(kind: str, jobs: Sequence[Mapping[str, Any]]) -> str:
    if not jobs:
        return ""
    listed = (
        f"{job['job']} {100 * job['change']:+.1f}% "
        f"({job[RECORDED]:.4g} to {job['simulated']:.4g} s)"
        for job in jobs
    )
    return f"{kind}s most: {', '.join(listed)}"


def _cuts(cuts: Mapping[str, int]) -> list[str]:
    """Return what of the record could not be taken as it is, in words."""
    told = {
        "jobs_before": "jobs ran when the record began, and count from then on",
        "jobs_after": "jobs ran when the record ended, and count up to then",
        "jobs_idle": "jobs are left out: the record has no work of theirs",
        "jobs_moved": "jobs used several sets of resources, and count with the most used",
        "phases": "phases are left out: the record has not all of them",
        "phases_direct": "phases went past all I/O nodes, and count as computing",
        "phases_unmeasured": "phases have no isolated length, and count as none",
        "phases_too_fast": "phases were faster than alone: their jobs' bandwidth is known badly",
    }
    return [f"{cuts[key]:,} {words}" for key, words in told.items() if cuts[key]]
