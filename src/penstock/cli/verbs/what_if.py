"""penstock what-if: a recorded day under other policies."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import click

from penstock import registry
from penstock.cli.common import replay_check, what_if_record, what_if_tables
from penstock.cli.common.options import (
    METRICS,
    PATH,
    Configuration,
    argument,
    option,
    policy_names,
    typed,
)
from penstock.cli.common.output import emit_json, json_option
from penstock.cli.common.refused_live import refused_live
from penstock.cli.common.workload_files import as_live
from penstock.config import Loaded
from penstock.errors import InputError, error_prefix
from penstock.model import Site
from penstock.policies.base import Packer
from penstock.progress import progress
from penstock.records import Record
from penstock.records.reader import SUFFIXES
from penstock.sim import formats
from penstock.sim.checks import check as check_workload
from penstock.sim.evaluate import policy_runs, what_if_allocation, what_ran
from penstock.sim.evaluate import what_if as what_if_result
from penstock.sim.evaluate.what_if_lanes import lanes
from penstock.sim.evaluate.what_if_packing import pack
from penstock.sim.evaluate.what_ran import Ran
from penstock.sim.formats import from_record
from penstock.sim.formats.from_record import Recording

RECORDS = "records"
"""The directory of records in a state directory, which the first recorded event makes."""


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
    packing: Annotated[
        str | None,
        option(
            "--packing",
            metavar="A,B,...",
            help="Packers to try on the record's jobs, too; needs the site's number of nodes.",
        ),
    ]
    allocation: Annotated[
        str | None,
        option(
            "--allocation",
            metavar="A,B,...",
            help="Compare these allocation policies instead of sharing policies; 'own': jobs keep "
            "the I/O nodes that they had.",
        ),
    ]
    placement: Annotated[
        str | None,
        option(
            "--placement",
            metavar="A,B,...",
            help="Compare these placement policies, with each of --allocation, or with what ran.",
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
            help="Run this policy file, which the record names as what ran. Repeatable.",
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

    @property
    def of_allocation(self) -> bool:
        """Whether allocators or placers are compared."""
        return self.allocation is not None or self.placement is not None

    def verify(self, *, as_json: bool) -> None:
        """Raise InputError for options that exclude each other."""
        if self.lanes and (self.check or not as_json):
            raise InputError("--lanes needs --json, and cannot be combined with --check")
        others = self.policies is not None or self.packing is not None
        if self.check and (others or self.of_allocation):
            raise InputError(
                "--check does not simulate; leave out --policies, --packing, --allocation and "
                "--placement"
            )
        if self.of_allocation and others:
            raise InputError(
                "--allocation and --placement are compared under the sharing policy that ran; "
                "leave out --policies and --packing"
            )


@click.command(name="what-if")
@typed(Options)
@Configuration(METRICS, policies=("sharing", "packing", "allocation", "placement"))
@json_option
def what_if(*, options: Options, loaded: Loaded, as_json: bool) -> int:
    """Simulate the jobs of a RECORD under other policies, and compare with what ran.

    \b
    Examples:
      penstock what-if record-20260302-000000-a1b2-0003.jsonl --policies set-10,fair-share
      penstock what-if monday.jsonl.gz --window '9 h:17 h' --json
      penstock what-if monday.jsonl.gz --policies set-10,fair-share --lanes --json
      penstock what-if monday.jsonl.gz --packing first-fit,pack-partition --set site.nodes=256
      penstock what-if monday.jsonl.gz --allocation where-known,mckp,one
      penstock what-if monday.jsonl.gz --check
      penstock what-if state/records

    A RECORD is a file that a controller writes, .jsonl or .jsonl.gz. Several files are the parts of
    one run, in order; a directory stands for the last run in it. The simulation uses the computing
    and the isolated I/O of each job, without its waiting, on the record's site. Policies know
    w_iter as the controller did, unless --knowledge is given.

    The first lines are the model check: what ran, simulated, against what was recorded. What ran is
    the record's policy in mode enforce, and fair-share in all other modes, where nobody waits.
    Gains are relative to what ran, simulated, and count only where they exceed the model error: in
    --json, 'gain' of a metric says nothing unless 'beyond_model_error' of it is true. Where
    too much of the record is missing, 'judged' is false, and no gain counts.

    --allocation and --placement compare how I/O nodes are given to jobs, under the sharing policy
    that ran. What ran is then the record's allocation policy in mode enforce, and 'own' in all
    other modes. How long a job's I/O takes on another number of I/O nodes, its curve says; of jobs
    whose curve is not known, the I/O takes as long on any number, and 'cuts' counts them. A policy
    that gives a job a number that its curve does not have is skipped, with the reason.

    --check does not simulate: it replays the recorded events, from the first part of the run, and
    compares every decision with the recorded one.
    """
    record = _record(options.files)
    options.verify(as_json=as_json)
    if options.check:
        return replay_check.check(record, _trusted(options.trust), as_json=as_json)
    simulate = _simulate_allocation if options.of_allocation else _simulate
    result = simulate(record, loaded, options)
    in_window = loaded.config.simulation.seconds() is not None
    emit_json(result) if as_json else what_if_tables.show(result, in_window=in_window)
    return 0


def _record(files: Sequence[Path]) -> Record:
    files = _latest(files[0]) if len(files) == 1 and files[0].is_dir() else files
    for file in files:
        if not file.exists() and file.name == RECORDS and file.parent.is_dir():
            raise InputError(f"{file}: nothing is recorded yet; records begin with the first job")
        if file.is_file() and file.stat().st_size == 0:
            raise InputError(f"{file} is empty; a controller writes records while it is up")
        formats.check_readable(file)
        formats.check_suffix(file, SUFFIXES)
    return Record(*files)


def _latest(directory: Path) -> tuple[Path, ...]:
    """Return the files of a controller's last run in a directory."""
    files = sorted(f for suffix in SUFFIXES for f in directory.glob(f"record-*{suffix}"))
    if not files:
        raise InputError(f"{directory} has no records; a controller writes them while it is up")
    run = files[-1].name.split("-")[3]
    return tuple(file for file in files if file.name.split("-")[3] == run)


def _trusted(policies: Collection[str]) -> set[str]:
    """Return policies with those from files as a controller records them, with absolute paths."""
    files = [policy.rpartition(":") for policy in policies if ".py:" in policy]
    return {*policies, *(f"{Path(file).resolve()}:{name}" for file, _, name in files)}


def _simulate(record: Record, loaded: Loaded, options: Options) -> dict[str, Any]:
    selected = policy_runs.select(loaded, options.policies)
    packers = _packers(loaded, options.packing)
    record, ran, notes = what_ran.one_policy(record)
    ran.check_trust(_trusted([*options.trust, *selected]))
    # A policy file has the name that was typed, once.
    typed = (name for name in selected if ran.policy in _trusted([name]))
    ran = replace(ran, policy=next(typed, ran.policy))
    recording, site = from_record.load(record), record.header.site
    task = _task(record, recording, ran, loaded, options)
    workload = recording.workload
    skipped = policy_runs.missing_needs(workload, selected) if options.policies is None else {}
    skipped.pop(ran.policy, None)
    runnable = {name: policy for name, policy in selected.items() if name not in skipped}
    runnable[ran.policy] = registry.sharing(ran.policy, ran.options)
    with error_prefix(record.paths[0]):
        check_workload(workload, recording.run.site)
        with progress("simulating", len(runnable)) as bar:
            result = what_if_result.compare(recording, ran, runnable, task, bar.advance)
        packed = _packed(recording, packers, loaded, result.ran, site)
    notes += what_if_record.left_out(record, recording, ran)
    answer = {
        "record": what_if_record.about(record, recording, task.knowledge, notes),
        "kind": "sharing",
        "sharing": ran.policy,
        "baseline": None,
        **_with_needs(result, runnable),
        **({"packing": packed} if packers else {}),
        "skipped": [{"policy": name, "reason": reason} for name, reason in skipped.items()],
    }
    return answer | _lanes(record, recording, result, options)


def _simulate_allocation(record: Record, loaded: Loaded, options: Options) -> dict[str, Any]:
    """Simulate the jobs under other allocators or placers, and the sharing policy that ran."""
    allocations, placements = (
        [] if names is None else policy_names(flag, names)
        for flag, names in (
            ("--allocation", options.allocation),
            ("--placement", options.placement),
        )
    )
    record, sharing, notes = what_ran.one_policy(record)
    trusted = _trusted([*options.trust, *allocations, *placements])
    sharing.check_trust(trusted)
    header = record.header
    name, headers = what_if_allocation.candidates(header, loaded.config, allocations, placements)
    for spec in what_if_allocation.policies(headers[name]):
        Ran(policy=spec.policy, options=spec.options).check_trust(trusted)
    ran = Ran(policy=name, mode=header.mode)
    recording = from_record.load(record, by_io_node=True)
    task = _task(record, recording, sharing, loaded, options)
    with error_prefix(record.paths[0]):
        check_workload(recording.workload, header.site)
        with progress("simulating", len(headers)) as bar:
            compared = what_if_allocation.compare(
                recording, ran, headers, sharing=sharing.policy, task=task, advance=bar.advance
            )
    notes += what_if_allocation.notes(header, sharing)
    notes += what_if_record.left_out(record, recording, sharing)
    refused = refused_live({name: headers[name] for name in compared.decisions})
    result = replace(compared.result, simulated_only=refused).as_json()
    for policy, decisions in compared.decisions.items():
        about = {"needs": list(decisions.needs), "decisions": decisions.as_json()}
        result["policies"][policy] |= about
    answer = {
        "record": what_if_record.about(record, recording, task.knowledge, notes),
        "kind": "allocation",
        "sharing": sharing.policy,
        "baseline": what_if_allocation.BASELINE,
        **result,
        "skipped": [{"policy": p, "reason": reason} for p, reason in compared.skipped.items()],
    }
    return answer | _lanes(record, recording, compared.result, options)


def _with_needs(result: what_if_result.WhatIf, policies: Mapping[str, Any]) -> dict[str, Any]:
    """Return a result of sharing policies with what each must know of a job."""
    answer = result.as_json()
    for name, figures in answer["policies"].items():
        figures |= {"needs": sorted(policies[name].needs), "decisions": None}
    return answer


def _task(
    record: Record, recording: Recording, ran: Ran, loaded: Loaded, options: Options
) -> policy_runs.Task:
    """Return what all simulations have in common; `ran` is the sharing policy."""
    configured = loaded.config.sharing
    return policy_runs.Task(
        site=recording.run.site,
        knowledge=what_if_record.known(loaded, record.header),
        window=loaded.config.simulation.seconds(),
        arbiter=_no_arbiter,
        options={configured.policy: configured.options, ran.policy: ran.options},
        timeline=options.lanes,
        as_live=as_live(loaded),
        by_elapsed_time=True,
    )


def _lanes(
    record: Record, recording: Recording, result: what_if_result.WhatIf, options: Options
) -> dict[str, Any]:
    if not options.lanes:
        return {}
    runs = {name: o.run for name, o in result.outcomes.items() if o.run is not None}
    return {"lanes": lanes(record, recording, runs)}


def _packers(loaded: Loaded, names: str | None) -> dict[str, Packer]:
    """Return the packers to try, each with its configured options."""
    configured = loaded.config.packing
    packers = {}
    for name in [] if names is None else [name.strip() for name in names.split(",")]:
        options = configured.options if name == configured.policy else {}
        packers[name] = registry.policy("packing", name, options)
    return packers


def _packed(
    recording: Recording, packers: Mapping[str, Packer], loaded: Loaded, ran: Ran, site: Site
) -> dict[str, Any]:
    if not packers:
        return {}
    configured = loaded.config.site.site()
    if "site.nodes" in loaded.origins:
        site = replace(site, nodes=configured.nodes)
    sharing = registry.sharing(ran.policy, ran.options)
    measured = pack(recording, packers, sharing, site)
    return {
        "sharing": ran.policy,
        "nodes": site.nodes,
        "io_nodes": site.resources,
        "policies": {name: asdict(each) for name, each in measured.items()},
    }


def _no_arbiter() -> None:
    """Return None: jobs keep their recorded resources, as a record has no others' bandwidth."""
